"""A server under load: many clients at once, each with texts of its own, against offline translation.

python benchmarks/serving_load.py MODEL [--source FILE] [--clients 1 8 64 256] [--seconds 60]

The server runs in a process of its own, the clients in another, on the same machine: what they cost is part
of the figures. Every answer is compared with what `Translator` gives for the text alone. Offline is one call
for all lines, with the options of the server, once before and once after the load; loading is not counted.
With --url a server that runs already is loaded instead, such as LibreTranslate: answers are not compared.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from transduce import __version__, machine
from transduce.data.lines import read_lines

DATA = Path(__file__).parents[2] / "shared/data/multi30k"
AS_SERVED = {"document": True, "protect": "all"}


@dataclass
class Load:
    """What so many clients met."""

    clients: int
    seconds: float = 0.0
    latencies: list[float] = field(default_factory=list)
    statuses: Counter[int] = field(default_factory=Counter)
    wrong: int = 0

    def row(self, mib: float) -> dict[str, Any]:
        """Its figures."""
        ordered = sorted(self.latencies)

        def share(of: float) -> float:
            return round(1000 * ordered[min(len(ordered) - 1, int(of * len(ordered)))], 1) if ordered else 0.0

        return {
            "clients": self.clients,
            "requests": len(ordered),
            "per_second": round(len(ordered) / self.seconds, 1),
            "p50_ms": share(0.5),
            "p95_ms": share(0.95),
            "p99_ms": share(0.99),
            "wrong": self.wrong,
            "statuses": {str(status): count for status, count in sorted(self.statuses.items())},
            "server_mib": round(mib, 1),
        }


async def client(
    load: Load,
    address: tuple[str, int],
    texts: list[str],
    expected: dict[str, str],
    given: argparse.Namespace,
) -> None:
    """Nothing; one client asked for one text after the other until time was over."""
    reader, writer = await asyncio.open_connection(*address)
    end = time.perf_counter() + given.seconds
    at = 0
    while time.perf_counter() < end:
        text = texts[at % len(texts)]
        at += 1
        asked = {"q": text, "source": given.pair[0], "target": given.pair[1]}
        body = json.dumps(asked).encode()
        head = f"POST /translate HTTP/1.1\r\nHost: {address[0]}\r\nContent-Type: application/json\r\n"
        begin = time.perf_counter()
        writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        headers = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        length = re.search(r"content-length: (\d+)", headers, re.IGNORECASE)
        assert length is not None, headers
        answer = await reader.readexactly(int(length[1]))
        load.latencies.append(time.perf_counter() - begin)
        status = int(headers[9:12])
        load.statuses[status] += 1
        if status != 200 or (expected and json.loads(answer).get("translatedText") != expected[text]):
            load.wrong += 1
    writer.close()


async def loaded(clients: int, given: argparse.Namespace, expected: dict[str, str], lines: list[str]) -> Load:
    """What so many clients at once met."""
    load = Load(clients)
    parts = urlsplit(given.url)
    address = (parts.hostname or "127.0.0.1", parts.port or 80)
    begin = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for number in range(clients):
            group.create_task(client(load, address, lines[number::clients], expected, given))
    load.seconds = time.perf_counter() - begin
    return load


def offline(given: argparse.Namespace) -> int:
    """Zero; the translations and the seconds that they took are printed as JSON."""
    from transduce import Translator

    machine.tune_allocator()
    translator = Translator.load(given.model, engine=given.engine, threads=given.threads)
    lines = [line.strip() for line in read_lines(given.source) if line.strip()]
    options = {**AS_SERVED, "beam": given.beam, "language": given.pair[0]}
    translator.translate(lines[:64], **options)
    begin = time.perf_counter()
    outputs = translator.translate(lines, **options)
    print(json.dumps({"seconds": time.perf_counter() - begin, "lines": lines, "outputs": outputs}))
    return 0


def run_offline(given: argparse.Namespace) -> dict[str, Any]:
    """What `offline` says in a process of its own."""
    words = [sys.executable, __file__, str(given.model), "--offline", "--source", str(given.source)]
    words += ["--pair", *given.pair, "--beam", str(given.beam), "--engine", given.engine]
    done = subprocess.run([*words, "--threads", str(given.threads)], check=True, capture_output=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def start(given: argparse.Namespace, log: Path) -> subprocess.Popen[bytes]:
    """A server of the model; its address is in ``given.url``."""
    words = [
        sys.executable,
        "-m",
        "transduce",
        "serve",
        f"{'-'.join(given.pair)}={given.model}",
        "--port",
        "0",
    ]
    words += ["--beam", str(given.beam), "--engine", given.engine, "--threads", str(given.threads)]
    with log.open("wb") as file:
        process = subprocess.Popen([*words, "--queue", "1024"], stderr=file)
    while (found := re.search(r'"address": "([^"]+)"', log.read_text())) is None:
        assert process.poll() is None, log.read_text()
        time.sleep(0.1)
    given.url = found[1]
    return process


def resident(pid: int | None) -> float:
    """MiB that a process holds; 0 where that cannot be known."""
    try:
        text = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0.0
    return int(re.search(r"VmRSS:\s+(\d+)", text)[1]) / 1024  # type: ignore[index]


def main() -> int:
    """Zero, or 1 where an answer was wrong or the data are not there."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("--source", type=Path, default=DATA / "test_2016_flickr.en.gz")
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 8, 64, 256])
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--beam", type=int, default=4)
    parser.add_argument("--engine", default="auto")
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--pair", nargs=2, default=["en", "de"])
    parser.add_argument("--url", default="", help="Of a server that runs already.")
    parser.add_argument("--offline", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if not given.source.exists():
        print(f"{given.source}: is not there; name the text with --source")
        return 1
    if given.offline:
        return offline(given)
    with tempfile.TemporaryDirectory() as folder:
        rows, speeds = measured(given, Path(folder))
    report(rows, speeds, given)
    return int(any(row["wrong"] for row in rows))


def measured(given: argparse.Namespace, folder: Path) -> tuple[list[dict[str, Any]], list[float]]:
    """The figures of each number of clients, and the lines a second of each offline run."""
    compared = not given.url
    first = run_offline(given)
    lines = first["lines"]
    expected = dict(zip(lines, first["outputs"], strict=True)) if compared else {}
    speeds = [len(lines) / first["seconds"]]
    process = start(given, folder / "log") if compared else None
    rows = []
    try:
        for clients in given.clients:
            load = asyncio.run(loaded(clients, given, expected, lines))
            rows.append(load.row(resident(process.pid if process else None)))
            print(json.dumps(rows[-1]), file=sys.stderr)
    finally:
        if process is not None:
            process.send_signal(signal.SIGTERM)
            process.wait(30)
    again = run_offline(given)
    speeds.append(len(lines) / again["seconds"])
    return rows, speeds


def report(rows: list[dict[str, Any]], speeds: list[float], given: argparse.Namespace) -> None:
    """Nothing; the table, the recipe and a line of JSON were printed."""
    offline_speed = statistics.mean(speeds)
    print("| clients | requests | a second | of offline | p50 ms | p95 ms | p99 ms | wrong | server MiB |")
    print("|---|---|---|---|---|---|---|---|---|")
    for row in rows:
        row["of_offline"] = round(row["per_second"] / offline_speed, 3)
        names = ("clients", "requests", "per_second", "of_offline", "p50_ms", "p95_ms", "p99_ms", "wrong")
        print("| " + " | ".join(f"{row[name]:,}" for name in (*names, "server_mib")) + " |")
    shown = " and ".join(f"{speed:.1f}" for speed in speeds)
    print(f"offline: {shown} lines a second (before and after)")
    recipe = {
        "model": str(given.model),
        "source": given.source.name,
        "seconds": given.seconds,
        "beam": given.beam,
        "engine": given.engine,
        "server": given.url if not rows or rows[0]["server_mib"] == 0 else "transduce",
        "cores": machine.usable_cores(),
        "machine": platform.processor() or platform.machine(),
        "python": platform.python_version(),
        "version": __version__,
    }
    print(f"recipe: {' '.join([os.path.basename(sys.argv[0]), *sys.argv[1:]])}")
    print(json.dumps({"rows": rows, "offline_per_second": speeds, "recipe": recipe}))


if __name__ == "__main__":
    sys.exit(main())
