"""The transduce command, and Python, without the seconds in which torch is loaded: one that has it runs each.

`python command_server.py serve FOLDER` loads everything, and returns when another process of its own listens
at sockets in FOLDER. `python -S command_server.py call FOLDER ARGUMENTS` has that one run a command, and `...
run FOLDER CODE ARGUMENTS` some Python, in a fork with the caller's arguments, folder, environment, stdin,
stdout and stderr, and ends with its exit code. COMMAND_SERVER_PYTHON in the caller's environment names the
program that is `sys.executable` there: where that one calls `run`, workers start as quickly.

Whoever wants it to stay connects to `hold`; it ends when the last of these has gone, killed or not.
"""

from __future__ import annotations

import array
import contextlib
import gc
import importlib
import json
import os
import pkgutil
import runpy
import select
import signal
import socket
import sys
import threading
from typing import Any


def serve(folder: str) -> None:
    """Nothing; a process listens in ``folder``."""
    import torch._dynamo  # noqa: F401 - what takes long; the optimizer asks for the compiler too

    import transduce

    modules = [found.name for found in pkgutil.walk_packages(transduce.__path__, "transduce.")]
    for name in (*modules, "matplotlib.pyplot", "pyarrow", "py3langid.langid", "ftfy", "pytest"):
        if not name.endswith("__main__"):
            with contextlib.suppress(ImportError):  # an extra that is not installed
                importlib.import_module(name)
    gc.collect()
    gc.freeze()  # what is there is never looked through again, and so stays shared by all forks
    listener, hold = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)
    for one, name in ((hold, "hold"), (listener, "calls")):
        one.bind(os.path.join(folder, name))
        one.listen(64)
    if os.fork():
        os._exit(0)  # ready
    os.setsid()  # Ctrl-C is for the tests
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(nothing, number)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody asks how the forks ended
    _listen(listener, hold)
    os._exit(0)  # threads of libraries, which the fork does not have, would be waited for


def _listen(listener: socket.socket, hold: socket.socket) -> None:
    holders: list[socket.socket] = []
    while True:
        for ready in select.select([listener, hold, *holders], [], [])[0]:
            if ready is hold:
                holders.append(hold.accept()[0])
            elif ready is not listener:
                holders.remove(ready)
                if not holders:
                    return
            else:
                caller, _ = listener.accept()
                if os.fork():
                    caller.close()
                    continue
                listener.close()
                _keep(caller)


def _keep(caller: socket.socket) -> None:
    """Never returns; the caller is told the number of the process that works for it, and how that ended."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    text, files = _receive(caller)
    call = json.loads(text)
    worker = os.fork()
    if not worker:
        caller.close()
        _work(call, files)
    for file in files:
        os.close(file)
    ended = threading.Event()
    threading.Thread(target=_end_with, args=(caller, worker, ended), daemon=True).start()
    with contextlib.suppress(OSError):  # the caller may have gone
        caller.sendall(f"{worker}\n".encode())
        code = os.waitstatus_to_exitcode(os.waitpid(worker, 0)[1])
        ended.set()
        caller.sendall(f"{code}\n".encode())
    os._exit(0)


def _end_with(caller: socket.socket, worker: int, ended: threading.Event) -> None:
    """Nothing; the worker was told to end because the caller had ended before it."""
    waiting = select.poll()
    waiting.register(caller, 0)  # only that the other side is gone altogether is told
    waiting.poll()
    if not ended.is_set():
        os.kill(worker, signal.SIGTERM)


def _work(call: dict[str, Any], files: list[int]) -> None:
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    os.chdir(call["folder"])
    os.environ.clear()
    os.environ.update(call["environment"])
    sys.executable = os.environ.get("COMMAND_SERVER_PYTHON", sys.executable)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os._exit(_done(call["what"], call["arguments"]))


def _done(what: str, arguments: list[str]) -> int:
    """The exit code of a command, or of Python code."""
    code: object = 1
    try:
        if what == "run":
            sys.argv = ["-c", *arguments[1:]]
            exec(compile(arguments[0], "<block>", "exec"), {"__name__": "__main__"})
        else:
            sys.argv = ["transduce", *arguments]
            runpy.run_module("transduce", run_name="__main__", alter_sys=True)
        code = 0
    except SystemExit as end:
        code = end.code or 0
    except BaseException:
        sys.excepthook(*sys.exc_info())  # type: ignore[arg-type]
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    return code if isinstance(code, int) else 1


def _receive(caller: socket.socket) -> tuple[str, list[int]]:
    files = array.array("i")
    size = socket.CMSG_SPACE(3 * files.itemsize)
    text, extra, _, _ = caller.recvmsg(1 << 16, size)
    for _, _, data in extra:
        files.frombytes(data[: 3 * files.itemsize])
    while more := caller.recv(1 << 16):
        text += more
    return text.decode(), list(files)


def connect(
    folder: str, what: str, arguments: list[str], files: tuple[int, int, int], environment: dict[str, str]
) -> socket.socket:
    """What says the number of the process that does it, call or run, and then its exit code, a line each."""
    asked = {"what": what, "arguments": arguments, "folder": os.getcwd(), "environment": environment}
    server = socket.socket(socket.AF_UNIX)
    server.connect(os.path.join(folder, "calls"))
    text = json.dumps(asked).encode()
    sent = server.sendmsg([text], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", files))])
    server.sendall(text[sent:])
    server.shutdown(socket.SHUT_WR)
    return server


def ask(folder: str, what: str, arguments: list[str]) -> int:
    """The exit code of what is to be done, 128 and the signal's number where it was killed."""
    with (
        connect(folder, what, arguments, (0, 1, 2), dict(os.environ)) as server,
        server.makefile("r") as answers,
    ):
        worker = int(answers.readline() or 0)
        if worker:  # whoever ends us waits until that has ended
            signal.signal(signal.SIGTERM, lambda *_: os.kill(worker, signal.SIGTERM))
        code = int(answers.readline() or 1)
    return 128 - code if code < 0 else code


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(sys.argv[2])
    else:
        sys.exit(ask(sys.argv[2], sys.argv[1], sys.argv[3:]))
