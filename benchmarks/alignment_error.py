"""Alignment error rate of models against an aligner's links: the mean of all decoder layers, and each layer.

python benchmarks/alignment_error.py MODEL... --source FILE --target FILE --forward LINKS --backward LINKS

The links, in Pharaoh format, are those of an aligner in both directions (with eflomal: `eflomal-align -i both
-f forward -r backward`, best on the training text and this one together). Links in both count as sure (S),
links in one as possible (P). The models are given the targets as they stand; nothing is searched.
AER = 1 - (|A & S| + |A & P|) / (|A| + |S|).
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from transduce import machine
from transduce.bundle import Bundle, load_bundle
from transduce.data.lines import read_lines
from transduce.data.links import read_link
from transduce.data.tokenizer import EOS_ID
from transduce.decoding.alignment import Aligner, mutual_links, trained_layer
from transduce.decoding.translation import Alternative, OutputPart

Links = set[tuple[int, int]]


def main() -> int:
    """Zero."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="+", metavar="MODEL")
    for name in ("source", "target", "forward", "backward"):
        parser.add_argument(f"--{name}", required=True, metavar="FILE")
    parser.add_argument("--lines", type=int, default=0, help="only the first so many; 0: all")
    parser.add_argument("--threads", type=int, default=0)
    given = parser.parse_args()
    machine.tune_allocator()
    machine.set_threads(given.threads)
    texts = [list(read_lines(path))[: given.lines or None] for path in (given.source, given.target)]
    silver = [read_links(path)[: given.lines or None] for path in (given.forward, given.backward)]
    if len({len(lines) for lines in (*texts, *silver)}) != 1:
        sys.exit(
            f"lines of the four files: {[len(lines) for lines in (*texts, *silver)]}; they must be as many"
        )
    figures = {}
    print(f"{'model':28}{'layer':>18}{'AER':>7}{'precision':>11}{'recall':>8}")
    for name in given.models:
        bundle = load_bundle(name)
        layers = bundle.model.config.decoder_layers
        trained = trained_layer(bundle.training, layers)
        for layer in range(layers + 1):
            found = [set(links) for links in aligned(bundle, *texts, layer)]
            figures[f"{name}, {layer}"] = one = error_rate(found, *silver)
            told = "mean of all" if layer == 0 else f"{layer}{', guided' if layer == trained else ''}"
            print(f"{name:28}{told:>18}{one['aer']:>7.3f}{one['precision']:>11.3f}{one['recall']:>8.3f}")
    print(f"recipe: {' '.join(sys.argv)}; {len(texts[0]):,} pairs")
    print(json.dumps(figures))
    return 0


def read_links(path: str) -> list[Links]:
    """The links of each line; a file that ends early or holds anything else is an error of the caller."""
    return [
        {read_link(item, f"{path}:{number}") for item in line.split()}
        for number, line in enumerate(read_lines(path), 1)
    ]


def aligned(
    bundle: Bundle, sources: Sequence[str], targets: Sequence[str], layer: int
) -> Iterator[tuple[tuple[int, int], ...]]:
    """The links of each pair, its target given to the decoder as it stands."""
    pairs = []
    for source, target in zip(sources, targets, strict=True):
        ids, outputs = (tuple(bundle.tokenizer.encode(text.strip())) for text in (source, target))
        part = OutputPart(ids, 0, (*outputs, EOS_ID), 0)
        pairs.append(
            (source.strip(), Alternative(target.strip(), 0.0, 0.0, 1, False, outputs, parts=(part,)))
        )
    weights = Aligner(bundle.model, bundle.tokenizer, layer=layer).weights(pairs)
    return (mutual_links(one) for one in weights)


def error_rate(found: Sequence[Links], forward: Sequence[Links], backward: Sequence[Links]) -> dict[str, Any]:
    """AER, precision (against possible links) and recall (of sure ones) over all lines."""
    hits = possible = links = sure = 0
    for own, one, other in zip(found, forward, backward, strict=True):
        hits += len(own & (one & other))
        possible += len(own & (one | other))
        links += len(own)
        sure += len(one & other)
    return {
        "aer": 1 - (hits + possible) / max(1, links + sure),
        "precision": possible / max(1, links),
        "recall": hits / max(1, sure),
    }


if __name__ == "__main__":
    sys.exit(main())
