"""Real system outputs with published scores; they stand beside a checkout and are never copied into it."""

import functools
import math
import re
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import pytest

from transduce.data.lines import read_lines

FOLDER = Path(__file__).parents[3] / "shared" / "data" / "newstest"


@pytest.fixture(scope="session")
def newstest():
    """A function from the names of a system and its reference to output, reference and published score."""
    if not FOLDER.is_dir():
        pytest.skip("needs ../shared/data/newstest beside the checkout")
    return functools.cache(load)


def load(system: str, name: str) -> tuple[list[str], list[str], str]:
    """The system's output, the reference in its order, and the published score as printed."""
    output, reference = (list(read_lines(FOLDER / f"{file}.gz")) for file in (f"systems/{system}", name))
    if system.startswith("newstest2014.en-fr"):
        reference = in_order_of(output, reference)
    published = (FOLDER / "systems" / f"{system}.published_sacrebleu").read_text().strip()
    return output, reference, published


def in_order_of(output: list[str], reference: list[str]) -> list[str]:
    """The reference with its documents in the order in which the system met them.

    The system's input held the same documents in another order, a line of which can be told by its rarer
    words. The best path through all pairs of lines either goes on by one or pays for a jump. That it meets
    each line of the reference exactly once shows that it is right.
    """
    words = [set(re.findall(r"\w+", line.lower())) for line in reference]
    places = defaultdict(list)
    for number, known in enumerate(words):
        for word in known:
            places[word].append(number)
    weights = {
        word: math.log(len(reference) / len(lines)) for word, lines in places.items() if len(lines) < 300
    }
    norm = np.sqrt([len(known) + 3 for known in words])
    total, backs, jump_costs = np.zeros(len(reference)), [], 5.0
    for line in output:
        likeness = np.zeros(len(reference))
        for word in set(re.findall(r"\w+", line.lower())) & weights.keys():
            likeness[places[word]] += weights[word]
        best = int(total.argmax())
        going_on = np.concatenate([[-np.inf], total[:-1]])
        jumps = going_on < total[best] - jump_costs
        backs.append(np.where(jumps, best, np.arange(len(reference)) - 1))
        total = np.where(jumps, total[best] - jump_costs, going_on) + likeness / norm
    path = [int(total.argmax())]
    for back in reversed(backs[1:]):
        path.append(int(back[path[-1]]))
    assert Counter(path) == Counter(range(len(reference)))
    return [reference[number] for number in reversed(path)]
