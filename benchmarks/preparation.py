"""Time, memory and disk of preparing a corpus: text to token shards, at several sizes.

python benchmarks/preparation.py [--pairs 100000 1000000 10000000] [--workers 0] [--folder DIR] [--texts DIR]

Text comes from the embedded generator (seed 1), written before the clock starts and removed afterwards,
unless --texts says where it is kept for later calls. Each size is prepared by a process of its own. Memory is
the sum of the proportional set sizes (shared pages are divided among those that share them) of that process
and all it started, looked at ten times a second. The last line is JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import sentencepiece

from transduce.data.corpus.generator import write_corpus

PREPARE = """
import json, resource, sys, time
from transduce.data.config import DataConfig
from transduce.data.prepare import prepare

text, folder, workers = sys.argv[1:]
said, begin = [], time.monotonic()
config = DataConfig(source=(f"{text}/train.en",), target=(f"{text}/train.de",), workers=int(workers))
prepared = prepare(
    config, f"{folder}/data", max_length=256, seed=1,
    say=lambda line: said.append((round(time.monotonic() - begin, 1), line)),
)
said.append((round(time.monotonic() - begin, 1), "done"))
report, vocabulary = prepared.report.to_dict(), prepared.tokenizer.vocabulary
used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
busy = sum(one.ru_utime + one.ru_stime for one in used)
print(json.dumps({"said": said, "report": report, "vocabulary": vocabulary, "busy": busy}))
"""


def processes_under(root: int) -> list[int]:
    """The process and all that it has started, as far as they are there now."""
    found, waiting = [], [root]
    while waiting:
        process = waiting.pop()
        found.append(process)
        try:
            for task in Path(f"/proc/{process}/task").iterdir():
                waiting += map(int, (task / "children").read_text().split())
        except OSError:
            continue
    return found


def memory(processes: list[int]) -> dict[str, int]:
    """Bytes: proportional set size, and of it what is no file."""
    total = {"pss": 0, "anonymous": 0}
    for process in processes:
        try:
            lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()[1:]
        except OSError:
            continue
        values = {name: int(rest.split()[0]) * 1024 for name, rest in (line.split(":") for line in lines)}
        total["pss"] += values["Pss"]
        total["anonymous"] += values["Pss_Anon"]
    return total


def watched(command: list[str]) -> tuple[float, dict[str, int], str]:
    """Seconds that the command took, the most memory it had, and what it printed."""
    begin = time.monotonic()
    peak = {"pss": 0, "anonymous": 0}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        while process.poll() is None:
            now = memory(processes_under(process.pid))
            peak = {name: max(peak[name], now[name]) for name in peak}
            time.sleep(0.1)
        assert process.stdout is not None
        printed = process.stdout.read()
    if process.returncode:
        raise SystemExit(f"{command[:2]} ended with {process.returncode}")
    return time.monotonic() - begin, peak, printed


def measured(pairs: int, workers: int, folder: Path, texts: Path) -> dict[str, Any]:
    """The figures of one size."""
    if not (texts / "train.de").exists():
        write_corpus(texts, pairs, seed=1, valid=1, test=1)
    text = sum((texts / f"train.{side}").stat().st_size for side in ("en", "de"))
    command = [sys.executable, "-c", PREPARE, str(texts), str(folder), str(workers)]
    seconds, peak, printed = watched(command)
    told = json.loads(printed)
    disk = sum(path.stat().st_size for path in (folder / "data").rglob("*") if path.is_file())
    steps = [[line, after - before] for (before, line), (after, _) in pairwise(told["said"])]
    return {
        "pairs": pairs,
        "text_mib": round(text / 2**20),
        "seconds": round(seconds, 1),
        "cpu_seconds": round(told["busy"], 1),
        "pairs_per_second": round(pairs / seconds),
        "peak_mib": round(peak["pss"] / 2**20),
        "peak_anonymous_mib": round(peak["anonymous"] / 2**20),
        "disk_mib": round(disk / 2**20),
        "vocabulary": told["vocabulary"],
        "kept": told["report"]["kept"],
        "steps": [[line, round(taken, 1)] for line, taken in steps],
    }


def main() -> int:
    """Zero."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, nargs="+", default=[100_000, 1_000_000, 10_000_000])
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--folder", default=tempfile.gettempdir(), help="where text and shards go meanwhile")
    parser.add_argument("--texts", default="", help="where texts are, and are kept if they have to be made")
    given = parser.parse_args()
    rows = []
    print(
        f"{len(os.sched_getaffinity(0))} cores, Python {platform.python_version()}, numpy {np.__version__}, ",
        end="",
    )
    print(f"sentencepiece {sentencepiece.__version__}, load {os.getloadavg()[0]:.1f} at the start")
    print("pairs        seconds  CPU s  pairs/s  peak MiB  (anonymous)  shards MiB  vocabulary")
    for pairs in given.pairs:
        folder = Path(tempfile.mkdtemp(prefix="preparation-", dir=given.folder))
        try:
            texts = Path(given.texts) / str(pairs) if given.texts else folder
            row = measured(pairs, given.workers, folder, texts)
        finally:
            shutil.rmtree(folder)
        rows.append(row)
        print(
            f"{pairs:<12,} {row['seconds']:>7,.1f}  {row['cpu_seconds']:>5,.0f}  "
            f"{row['pairs_per_second']:>7,}  {row['peak_mib']:>8,}  {row['peak_anonymous_mib']:>11,}  "
            f"{row['disk_mib']:>10,}  {row['vocabulary']:>10,}"
        )
        for line, taken in row["steps"]:
            print(f"    {taken:>8.1f} s  {line}")
    print(json.dumps({"benchmark": "preparation", "workers": given.workers, "rows": rows}))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
