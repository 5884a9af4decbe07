"""The transduce command, and Python, without the seconds in which torch is loaded: one that has it runs each.

`python command_server.py serve SOCKET` loads everything and listens; `python -S command_server.py call SOCKET
ARGUMENTS` has it run one command, and `... run SOCKET CODE` some Python, in a fork with the caller's
arguments, folder, environment, stdin, stdout and stderr, and ends with its exit code.
"""

from __future__ import annotations

import array
import contextlib
import json
import os
import runpy
import select
import signal
import socket
import sys
import threading


def serve(path: str) -> None:
    """Never returns; whoever started this process ends it."""
    import torch._dynamo  # noqa: F401 - what takes long; the optimizer asks for the compiler too

    import transduce.cli.main
    import transduce.decoding.translator
    import transduce.evaluation.evaluate
    import transduce.training.run

    with contextlib.suppress(ImportError):
        import transduce.decoding.quiet_openvino  # noqa: F401

    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody asks how the forks ended
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen()
    while True:
        caller, _ = listener.accept()
        if os.fork():
            caller.close()
            continue
        listener.close()
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        text, files = _receive(caller)
        call = json.loads(text)
        for number, file in enumerate(files):
            os.dup2(file, number)
            os.close(file)
        os.chdir(call["folder"])
        os.environ.clear()
        os.environ.update(call["environment"])
        threading.Thread(target=_end_with, args=(caller,), daemon=True).start()
        code = str(_done(call["what"], call["arguments"])).encode()
        with contextlib.suppress(OSError):  # the caller was killed
            caller.sendall(code)
        os._exit(0)


def _end_with(caller: socket.socket) -> None:
    """Nothing; this process was told to end because the caller had ended."""
    waiting = select.poll()
    waiting.register(caller, 0)  # only that the other side is gone altogether is told
    waiting.poll()
    os.kill(os.getpid(), signal.SIGTERM)


def _done(what: str, arguments: list[str]) -> int:
    """The exit code of a command, or of Python code."""
    code: object = 1
    try:
        if what == "run":
            sys.argv = ["-c"]
            exec(compile(arguments[0], "<block>", "exec"), {"__name__": "__main__"})
        else:
            sys.argv = ["transduce", *arguments]
            runpy.run_module("transduce", run_name="__main__", alter_sys=True)
        code = 0
    except SystemExit as end:
        code = end.code or 0
    except BaseException:
        sys.excepthook(*sys.exc_info())  # type: ignore[arg-type]
    sys.stdout.flush()
    sys.stderr.flush()
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


def ask(what: str, path: str, arguments: list[str]) -> int:
    """The exit code of what is to be done, call or run; 1 where it was killed."""
    environment = dict(os.environ)
    asked = {"what": what, "arguments": arguments, "folder": os.getcwd(), "environment": environment}
    with socket.socket(socket.AF_UNIX) as server:
        server.connect(path)
        text = json.dumps(asked).encode()
        files = array.array("i", [0, 1, 2])
        sent = server.sendmsg([text], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, files)])
        server.sendall(text[sent:])
        server.shutdown(socket.SHUT_WR)
        return int(server.recv(16) or b"1")


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(sys.argv[2])
    sys.exit(ask(sys.argv[1], sys.argv[2], sys.argv[3:]))
