"""What each attention head does, in numbers, over many pairs (section 4 and Figures 3 to 5)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from transduce.bundle import Bundle
from transduce.data.tokenizer import Tokenizer
from transduce.decoding.words import words_by_character, words_of_tokens
from transduce.errors import DataError
from transduce.inspection.attention_maps import KINDS, AttentionMaps, attention_maps

NAMES = {
    "encoder": "encoder self-attention",
    "decoder": "decoder self-attention",
    "cross": "cross-attention",
}
"""What the kinds of attention are called where people read them."""
Table = Float[Tensor, "layers heads"]
Links = Sequence[tuple[int, int]]


@dataclass(frozen=True)
class HeadStatistics:
    """Means over all tokens that look (rows), [layers, heads]; shares lie between 0 and 1.

    A decoder's token stands at the place of the token that it has read, one to the left of what it predicts,
    so that ``same`` is the newest token it knows. For cross-attention the places are those of the two texts.
    """

    entropy: Table
    """In bits: 0 for a head that looks at one token, log2 n for one that looks at n alike."""
    distance: Table
    """How many tokens away what it looks at is."""
    previous: Table
    same: Table
    next: Table
    first: Table
    last: Table
    """The share of the last token that can be seen: the end of the source, or the newest target token."""
    agreement: Table | None = None
    """Of cross-attention: the weight that words with a link in given alignments give to the linked words."""

    def rows(self) -> list[dict[str, float | int]]:
        """One row a head, layers and heads counted from 1."""
        named = {name: value for name, value in vars(self).items() if value is not None}
        layers, heads = self.entropy.shape
        return [
            {
                "layer": layer + 1,
                "head": head + 1,
                **{name: float(t[layer, head]) for name, t in named.items()},
            }
            for layer in range(layers)
            for head in range(heads)
        ]


def head_statistics(
    bundle: Bundle,
    pairs: Sequence[tuple[str, str]],
    links: Sequence[Links] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, HeadStatistics]:
    """The statistics of the heads of each of `KINDS` over these pairs, each given to the model as it is.

    ``links`` are alignments of words (see `str.split`), source before target, one list for each pair.
    ``progress`` is called with the numbers of finished and of all pairs. Raises DataError where there is no
    pair, or a link to a word that a text does not have.
    """
    if not pairs:
        raise DataError("no pairs to look at; give at least one source and its translation")
    sums: dict[str, dict[str, Table]] = {kind: {} for kind in KINDS}
    counts = dict.fromkeys(KINDS, 0)
    agreed: Table | None = None
    linked = 0
    for number, (source, target) in enumerate(pairs):
        maps = attention_maps(bundle, source, target)
        for kind in KINDS:
            weights: Float[Tensor, "layers heads rows columns"] = getattr(maps, kind).double()
            counts[kind] += weights.shape[2]
            for name, value in _sums(weights, causal=kind == "decoder").items():
                sums[kind][name] = sums[kind].get(name, torch.zeros(())) + value
        if links is not None:
            share, words = _agreement(maps, bundle.tokenizer, source, target, links[number], number + 1)
            agreed = share if agreed is None else agreed + share
            linked += words
        if progress is not None:
            progress(number + 1, len(pairs))
    found = {kind: {name: value / counts[kind] for name, value in sums[kind].items()} for kind in KINDS}
    extra = None if agreed is None else agreed / max(1, linked)
    return {
        kind: HeadStatistics(**values, agreement=extra if kind == "cross" else None)
        for kind, values in found.items()
    }


def _sums(weights: Float[Tensor, "layers heads rows columns"], *, causal: bool) -> dict[str, Table]:
    """Each statistic summed over the rows."""
    rows, columns = weights.shape[2:]
    away = torch.arange(columns)[None] - torch.arange(rows)[:, None]
    logs = torch.where(weights > 0, weights, 1.0).log2()
    last = away == 0 if causal else (torch.arange(columns) == columns - 1).expand(rows, -1)

    def share(where: Tensor) -> Table:
        return (weights * where).sum((2, 3))

    return {
        "entropy": -(weights * logs).sum((2, 3)),
        "distance": (weights * away.abs()).sum((2, 3)),
        "previous": share(away == -1),
        "same": share(away == 0),
        "next": share(away == 1),
        "first": share((torch.arange(columns) == 0).expand(rows, -1)),
        "last": share(last),
    }


def _agreement(
    maps: AttentionMaps, tokenizer: Tokenizer, source: str, target: str, links: Links, line: int
) -> tuple[Table, int]:
    """For each head the weight that linked target words give the words that they are linked to, summed."""
    sources = _words(tokenizer, tokenizer.encode(source), source)
    targets = _words(tokenizer, tokenizer.encode_target(target), target)
    for one, other in links:
        for place, text, what in ((one, source, "source"), (other, target, "target")):
            if not 0 <= place < len(text.split()):
                raise DataError(
                    f"alignment of pair {line}: word {place} of {len(text.split())} of the {what} (words "
                    "count from 0); the links must be of these texts, source before target"
                )
    total = torch.zeros(maps.cross.shape[:2], dtype=torch.double)
    linked = sorted({other for _, other in links})
    for word in linked:
        partners = {one for one, other in links if other == word}
        rows = [t for t, some in enumerate(targets) if word in some]
        columns = [s for s, some in enumerate(sources) if some & partners]
        if rows and columns:
            total += maps.cross.double()[:, :, rows][:, :, :, columns].sum(3).mean(2)
    return total, len(linked)


def _words(tokenizer: Tokenizer, ids: Sequence[int], text: str) -> list[set[int]]:
    return words_of_tokens(tokenizer, ids, 0, words_by_character(text))
