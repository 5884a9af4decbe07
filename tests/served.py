"""Processes in which transduce is loaded from the beginning, by one server that all tests of a run share."""

from __future__ import annotations

import atexit
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

import command_server

FOLDER: list[Path] = []  # where the tests of this run keep what they share; set by conftest.py
_held: list[socket.socket] = []


def server() -> str:
    """The folder of the server's sockets; it is started where nobody has, and stays as long as we do."""
    folder = FOLDER[0] / "served"
    folder.mkdir(exist_ok=True)
    if _held:
        return str(folder)
    import fcntl  # where there is fork

    with (FOLDER[0] / "served.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        hold = socket.socket(socket.AF_UNIX)
        try:
            hold.connect(str(folder / "hold"))
        except OSError:  # nobody, or the last who held it has gone
            for name in ("hold", "calls"):
                (folder / name).unlink(missing_ok=True)
            command = [sys.executable, "-W", "error", command_server.__file__, "serve", str(folder)]
            subprocess.run(command, env={**os.environ, "OMP_NUM_THREADS": "1"}, check=True)
            hold.connect(str(folder / "hold"))
    _held.append(hold)
    atexit.register(hold.close)
    return str(folder)


class Served:
    """A process of the server's, used like `subprocess.Popen` with stderr as text; warnings are no errors."""

    def __init__(self, code: str, arguments: Sequence[str], environment: Mapping[str, str]) -> None:
        reading, writing = os.pipe()
        nothing = os.open(os.devnull, os.O_RDWR)
        code = f"import warnings; warnings.resetwarnings()\n{code}"
        try:
            self._server = command_server.connect(
                server(), "run", [code, *arguments], (nothing, nothing, writing), dict(environment)
            )
        finally:
            os.close(writing)
            os.close(nothing)
        self.stderr: IO[str] = os.fdopen(reading, encoding="utf-8")
        self.pid = self._number()
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """The exit code, or minus the signal that killed it; None while it runs."""
        if self.returncode is None and select.select([self._server], [], [], 0)[0]:
            self.returncode = self._number()
        return self.returncode

    def _number(self) -> int:
        line = b""
        while not line.endswith(b"\n"):  # one by one, so that `select` sees what comes after
            line += self._server.recv(1) or b"\n"
        return int(line)

    def wait(self, timeout: float) -> int:
        """The same, at the latest after so many seconds; TimeoutExpired where it still runs."""
        if self.returncode is None and not select.select([self._server], [], [], timeout)[0]:
            raise subprocess.TimeoutExpired("served", timeout)
        code = self.poll()
        assert code is not None
        return code

    def communicate(self, timeout: float = 60) -> tuple[None, str]:
        """Nothing, and the rest of stderr, when it has ended."""
        deadline, said = time.monotonic() + timeout, b""
        while not self.stderr.closed:
            if not select.select([self.stderr], [], [], max(0.0, deadline - time.monotonic()))[0]:
                raise subprocess.TimeoutExpired("served", timeout)
            part = os.read(self.stderr.fileno(), 1 << 16)
            said += part
            if not part:
                self.stderr.close()
        self.wait(max(0.1, deadline - time.monotonic()))
        return None, said.decode()

    def send_signal(self, number: signal.Signals) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def __enter__(self) -> Served:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        self.wait(60)
        self.stderr.close()
        self._server.close()


def transduce(*arguments: str, environment: Mapping[str, str]) -> Served:
    """A process that runs the command."""
    code = 'import runpy; runpy.run_module("transduce", run_name="__main__", alter_sys=True)'
    return Served(code, arguments, environment)


def script(path: str | Path, *arguments: str, environment: Mapping[str, str]) -> Served:
    """A process that runs a file of Python."""
    code = f"""
import os, runpy, sys
sys.argv[0] = {str(path)!r}
sys.path.insert(0, os.path.dirname(sys.argv[0]))
runpy.run_path(sys.argv[0], run_name="__main__")"""
    return Served(code, arguments, environment)
