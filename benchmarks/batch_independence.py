"""How many translations change with batch size, order and neighbours, by engine and precision.

python benchmarks/batch_independence.py MODEL --source FILE [--precisions fp32 int8] [--beam 4]

Every line is translated in large batches, in small ones, and in reverse order in middling ones. In fp32 no
output may change; in bf16 and int8 sums in another order fall otherwise now and then, and how often is what
the last column says.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from transduce import machine
from transduce.data.lines import read_lines
from transduce.decoding.translator import Translator

DATA = Path(__file__).parents[2] / "shared/data/multi30k"


def main() -> int:
    """Zero, or 1 where the text is not there."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("--source", type=Path, default=DATA / "test_2016_flickr.en.gz")
    parser.add_argument("--engine", default="auto")
    parser.add_argument("--precisions", nargs="+", default=["fp32", "int8"])
    parser.add_argument("--beam", type=int, default=4)
    parser.add_argument("--threads", type=int, default=0)
    given = parser.parse_args()
    if not given.source.exists():
        print(f"{given.source}: is not there; name the text with --source")
        return 1
    machine.tune_allocator()
    lines = list(read_lines(given.source))
    print(f"{'precision':12}{'lines':>8}{'small batches':>15}{'reversed':>10}{'changed':>9}")
    rows = []
    for precision in given.precisions:
        translator = Translator.load(
            given.model, device="cpu", engine=given.engine, precision=precision, threads=given.threads
        )
        large = translator.translate(lines, beam=given.beam)
        small = translator.translate(lines, beam=given.beam, batch_tokens=600)
        turned = translator.translate(lines[::-1], beam=given.beam, batch_tokens=3000)[::-1]
        counts = [sum(a != b for a, b in zip(large, other, strict=True)) for other in (small, turned)]
        share = max(counts) / len(lines)
        print(f"{precision:12}{len(lines):8,}{counts[0]:15,}{counts[1]:10,}{share:9.2%}", flush=True)
        rows.append({"precision": precision, "lines": len(lines), "small": counts[0], "reversed": counts[1]})
    engine = type(translator.searcher.engine).__name__
    print(f"recipe: {given.source.name}, beam {given.beam}, {engine}, batches of 8,192, 600 and 3,000 tokens")
    print(json.dumps({"model": given.model.name, "beam": given.beam, "engine": engine, "rows": rows}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
