"""A server from its settings to its end: this is where each part is given the others it needs."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import uvicorn

from transduce.decoding.translator import Translator
from transduce.errors import UsageError
from transduce.serving.app import build_app
from transduce.serving.config import ServingConfig
from transduce.serving.detection import prepare
from transduce.serving.logs import Handler, Log
from transduce.serving.metrics import Metrics
from transduce.serving.models import Models, Served, Watch
from transduce.serving.pairs import Spec
from transduce.serving.protocol import Protocol
from transduce.serving.service import Service
from transduce.serving.worker import Pace, Supervisor, Worker

LAST = 1.5
"""Seconds that the worker has, after the last request, to come to the end of what it computes."""


class TranslationServer:
    """A server; `run` serves until `stop`, or a signal, ends it."""

    def __init__(
        self,
        specs: Sequence[str | Spec],
        config: ServingConfig,
        load: Callable[[Path], Translator],
        log: Log | None = None,
    ) -> None:
        """``load`` makes a translator of a folder; what it raises is raised before anything listens."""
        self.config, self.log = config, log or Log()
        self.metrics = Metrics()
        self.models = Models([one if isinstance(one, Spec) else Spec.read(one) for one in specs], load)
        pace = Pace(batch_tokens=config.batch_tokens, queue=config.queue, gather=config.gather)
        self.worker = Worker(pace, self.metrics)
        self._supervisor = Supervisor(self.worker, self._worker_died, self._give_up)
        self._watch = Watch(self.models, config.reload, self._model_changed)
        service = Service(self.models, self.worker, config)
        app = build_app(service, config, self.log, self.metrics, self._state)
        self._socket = _listening(config.host, config.port)
        self._http = _Http(self._settings(app))
        self._gave_up = False
        self.is_stuck = False
        """Whether, at the end, the worker was left computing: then the process has to end without it."""

    @property
    def address(self) -> str:
        """Where it listens."""
        host, port = self._socket.getsockname()[:2]
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    def run(self) -> int:
        """The exit code, once the server has ended: 0, or 1 where its worker could not be kept alive."""
        self._supervisor.start()
        self._watch.start()
        threading.Thread(target=prepare, name="detection", daemon=True).start()
        pairs = [str(pair) for pair, _ in self.models.pairs]
        self.log("serving", address=self.address, pairs=pairs, pid=os.getpid())
        begin = time.monotonic()
        try:
            self._http.run(sockets=[self._socket])
        finally:
            begin = self._http.told_at or begin
            self._watch.stop()
            self._supervisor.stop()
            self.is_stuck = not self.worker.stop(LAST)
            self.log("ended", seconds=round(time.monotonic() - begin, 2), worker=not self.is_stuck)
        return int(self._gave_up)

    def stop(self) -> None:
        """Nothing; what was asked is answered, and then `run` returns."""
        self._http.told()

    @property
    def is_started(self) -> bool:
        """Whether connections are taken."""
        return self._http.started

    def _settings(self, app: Any) -> uvicorn.Config:
        config = self.config
        names = ("header_timeout", "write_timeout")
        values = {"most": config.connections, **{name: getattr(config, name) for name in names}}
        protocol = type("ServerProtocol", (Protocol,), values)
        logger = logging.getLogger("uvicorn.error")
        logger.handlers, logger.propagate = [Handler(self.log)], False
        logger.setLevel(logging.WARNING)
        return uvicorn.Config(
            app,
            http=protocol,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=bool(config.proxy),
            forwarded_allow_ips=config.proxy or None,
            timeout_keep_alive=max(1, round(config.keep_alive)),
            timeout_graceful_shutdown=max(1, round(config.drain)),
        )

    def _state(self) -> dict[str, list[str]]:
        dead, busy, warnings = [], [], []
        if not self.worker.is_alive:
            dead.append("the worker has ended")
        since = self.worker.busy_since
        if since is not None and time.monotonic() - since > 2 * self.config.timeout:
            dead.append("the worker has been at one batch for too long")
        if self._http.should_exit:
            busy.append("the server is stopping")
        if self.worker.waiting >= self.config.queue:
            busy.append("the queue is full")
        for served in self.models.served:
            if served.problem is not None:
                warnings.append(f"{served.current.name}: an older state is served: {served.problem}")
        return {"dead": dead, "busy": busy, "warnings": warnings}

    def _model_changed(self, served: Served, is_new: bool) -> None:
        name = served.current.name
        self.metrics.reloads.labels(name, "loaded" if is_new else "failed").inc()
        if is_new:
            self.log("reloaded", model=name, pairs=[str(pair) for pair in served.current.pairs])
        else:
            self.log("not reloaded", level="warning", model=name, problem=served.problem)

    def _worker_died(self, error: BaseException | None) -> None:
        self.metrics.worker_deaths.inc()
        if error is None:
            self.log("worker died", level="error")
        else:
            self.log.failure("worker died", error)

    def _give_up(self) -> None:
        self._gave_up = True
        self.log("giving up", level="error", message="the worker died too often")
        self.stop()


class _Http(uvicorn.Server):
    """uvicorn's server, except that being told to stop is no failure."""

    told_at: float | None = None

    def told(self, *_: object) -> None:
        """Nothing; the server ends. Who says it twice does not wait for answers."""
        self.told_at = self.told_at or time.monotonic()
        self.force_exit = self.should_exit and bool(_)
        self.should_exit = True

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Nothing; SIGINT and SIGTERM end the server meanwhile."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, self.told) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def _listening(host: str, port: int) -> socket.socket:
    """A socket that listens there; UsageError where it cannot."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    found = socket.socket(family)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((host, port))
        found.listen(1024)
    except (OSError, OverflowError) as error:
        found.close()
        raise UsageError(
            f"{host}:{port} cannot be listened at: {getattr(error, 'strerror', None) or error}; "
            "name another --host or --port"
        ) from None
    found.set_inheritable(True)
    return found


def serve(specs: Sequence[str], config: ServingConfig, **how: Any) -> int:
    """The exit code of a server of these models, once it has ended; ``how`` is that of `Translator.load`."""
    _open_more_files()
    server = TranslationServer(specs, config, partial(Translator.load, **how))
    if sys.stderr.isatty():  # elsewhere the log is what is read
        print(f"transduce: serving at {server.address}", file=sys.stderr)
    code = server.run()
    if server.is_stuck:  # native code that cannot be interrupted would crash where Python takes its leave
        sys.stderr.flush()
        os._exit(code)
    return code


def _open_more_files() -> None:
    """Nothing; as many connections may be open as the system allows this process."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
