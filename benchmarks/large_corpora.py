"""Start-up, memory and speed of reading batches, for corpora of several sizes whose shards are made up.

python benchmarks/large_corpora.py [--pairs 100000 1000000 30000000] [--updates 300] [--folder DIR]

The shards hold random ids (seed 1) in lengths like those of real text, 25 tokens a side on average; no text
is there. Each size is read by a process of its own, which opens the shards as a run does, works out what a
run says of them, and takes so many updates of 25,000 tokens as arrays. Memory of that process: what is no
file, and besides it the pages of mapped files that it looked at last; and the most of both together. The last
line is JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from preparation import watched
from transduce.data.shards import FORMAT

VOCABULARY, MEAN = 32_000, 25
CHUNK = 500_000
READ = """
import json, resource, sys, time

import transduce.training.composition  # all that a run loads
from transduce.data.batching import Batching, collate
from transduce.data.shards import TokenShards


def resident():
    status = dict(line.split(":", 1) for line in open("/proc/self/status"))
    return {name: int(status[name].split()[0]) // 1024 for name in ("RssAnon", "RssFile")}


folder, updates = sys.argv[1], int(sys.argv[2])
before, begin, busy = resident(), time.monotonic(), time.process_time()
shards = TokenShards.open(folder)
batching = Batching(
    shards.source_lengths, shards.target_lengths, batch_tokens=25_000, micro_batch_tokens=4096, seed=1
)
batching.updates_an_epoch(), batching.largest_shapes(), batching.target_tokens(1)
first = batching.block(0, 0)
collate(shards, first[0][0], 2)
started, busy = time.monotonic() - begin, time.process_time() - busy
peak, pairs, begin = resident(), 0, time.monotonic()
for number in range(updates):
    for ids in first[number % len(first)]:
        collate(shards, ids, 2)
        pairs += len(ids)
    now = resident()
    peak = {name: max(peak[name], now[name]) for name in peak}
print(json.dumps({
    "start_seconds": round(started, 2),
    "start_cpu_seconds": round(busy, 2),
    "blocks": batching.blocks,
    "before_mib": before["RssAnon"],
    "anonymous_mib": peak["RssAnon"],
    "mapped_mib": peak["RssFile"],
    "highest_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    "pairs_per_second": round(pairs / (time.monotonic() - begin)),
}))
"""


def make(folder: Path, pairs: int) -> int:
    """The bytes of the shards that stand in the folder afterwards, as `write_shards` lays them out."""
    random = np.random.default_rng(1)
    kinds = ("tokens", "offsets", "lengths")
    files = {(s, k): (folder / f"{s}.{k}").open("wb") for s in ("source", "target") for k in kinds}
    written = dict.fromkeys(("source", "target"), 0)
    for side in written:
        files[side, "offsets"].write(np.zeros(1, "<i8").tobytes())
    for start in range(0, pairs, CHUNK):
        count = min(CHUNK, pairs - start)
        source = np.clip(random.lognormal(np.log(MEAN) - 0.1, 0.45, count), 2, 128)
        target = np.clip(source * random.normal(1.05, 0.15, count), 2, 128)
        for side, drawn in (("source", source), ("target", target)):
            lengths = drawn.astype("<i4")
            ends = np.cumsum(lengths, dtype=np.int64)
            tokens = random.integers(260, VOCABULARY, int(ends[-1]), dtype=np.uint16)
            tokens[ends - 1] = 1
            files[side, "tokens"].write(tokens.tobytes())
            files[side, "lengths"].write(lengths.tobytes())
            files[side, "offsets"].write((ends + written[side]).tobytes())
            written[side] += len(tokens)
    for file in files.values():
        file.close()
    sizes = {path.name: path.stat().st_size for path in folder.iterdir()}
    meta: dict[str, Any] = {
        "format": FORMAT,
        "pairs": pairs,
        "corpora": [pairs],
        "dtype": "<u2",
        "tokenizer": "",
        "sizes": sizes,
        "report": {},
    }
    (folder / "meta.json").write_text(json.dumps(meta))
    return sum(sizes.values())


def main() -> int:
    """Zero."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, nargs="+", default=[100_000, 1_000_000, 30_000_000])
    parser.add_argument("--updates", type=int, default=300)
    parser.add_argument("--folder", default=tempfile.gettempdir(), help="where the shards go meanwhile")
    given = parser.parse_args()
    rows = []
    print(
        f"{len(os.sched_getaffinity(0))} cores, Python {platform.python_version()}, numpy {np.__version__}, ",
        end="",
    )
    print(f"load {os.getloadavg()[0]:.1f} at the start; {given.updates} updates of 25,000 tokens")
    print("pairs        shards MiB  start s  CPU s  RAM MiB  (of it before)  + mapped MiB  highest  pairs/s")
    for pairs in given.pairs:
        folder = Path(tempfile.mkdtemp(prefix="large-corpora-", dir=given.folder))
        try:
            disk = make(folder, pairs)
            _, _, printed = watched([sys.executable, "-c", READ, str(folder), str(given.updates)])
        finally:
            shutil.rmtree(folder)
        row = {"pairs": pairs, "disk_mib": round(disk / 2**20), **json.loads(printed)}
        rows.append(row)
        print(
            f"{pairs:<12,} {row['disk_mib']:>10,}  {row['start_seconds']:>7.2f}  "
            f"{row['start_cpu_seconds']:>5.2f}  {row['anonymous_mib']:>7,}  "
            f"{row['before_mib']:>14,}  {row['mapped_mib']:>12,}  {row['highest_mib']:>7,}  "
            f"{row['pairs_per_second']:>7,}"
        )
    print(json.dumps({"benchmark": "large corpora", "updates": given.updates, "rows": rows}))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
