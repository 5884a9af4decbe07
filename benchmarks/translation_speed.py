"""Seconds to translate the 1,000 sentences of Multi30k test_2016_flickr with a trained model.

python benchmarks/translation_speed.py MODEL [--data ../shared/data/multi30k] [--repeat 3] [--beams 4 1]

Loading is not counted. Every run translates all sentences; the table shows the median.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import sys
import time
from pathlib import Path

import torch

from transduce import machine
from transduce.data.lines import read_lines
from transduce.decoding.translator import Translator
from transduce.evaluation.scores import score


def main() -> int:
    """Zero, or 1 where the data are not there."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("--data", type=Path, default=Path(__file__).parents[2] / "shared/data/multi30k")
    parser.add_argument("--target", default="de")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--beams", type=int, nargs="+", default=[4, 1])
    parser.add_argument("--precision", default="auto")
    parser.add_argument("--threads", type=int, default=0)
    given = parser.parse_args()
    test = given.data / "test_2016_flickr.en.gz"
    if not test.exists():
        print(f"{given.data}: Multi30k is not there (test_2016_flickr.en.gz); name its folder with --data")
        return 1
    machine.tune_allocator()
    sources = list(read_lines(test))
    references = list(read_lines(given.data / f"test_2016_flickr.{given.target}.gz"))
    translator = Translator.load(given.model, device="cpu", precision=given.precision, threads=given.threads)
    translator.translate(sources[:20])
    figures = []
    print(f"{'beam':>4}{'seconds':>9}{'sentences/s':>13}{'tokens/s':>10}{'BLEU':>7}")
    for beam in given.beams:
        seconds = []
        for _ in range(given.repeat):
            begin = time.perf_counter()
            outputs = translator.translate(sources, beam=beam)
            seconds.append(time.perf_counter() - begin)
        tokens = sum(len(translator.bundle.tokenizer.encode(output)) + 1 for output in outputs)
        middle, bleu = statistics.median(seconds), score(outputs, references, ter=False).bleu
        print(f"{beam:4}{middle:9.2f}{len(sources) / middle:13,.0f}{tokens / middle:10,.0f}{bleu:7.2f}")
        figures.append(
            {
                "beam": beam,
                "seconds": [round(x, 2) for x in sorted(seconds)],
                "sentences_per_second": round(len(sources) / middle, 1),
                "target_tokens_per_second": round(tokens / middle),
                "bleu": round(bleu, 2),
            }
        )
    peak = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2)
    threads = torch.get_num_threads()
    print(f"recipe: test_2016_flickr, {len(sources):,} sentences, {given.repeat} runs, {threads} threads")
    print(
        json.dumps(
            {
                "model": given.model.name,
                "precision": translator.precision,
                "threads": torch.get_num_threads(),
                "peak_memory_gib": peak,
                "runs": figures,
                "torch": torch.__version__,
            }
        )
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
