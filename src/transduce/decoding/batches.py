"""Sentences in batches of similar length, so that little of a batch is padding."""

from __future__ import annotations

from collections.abc import Iterator, Sequence


def batches_by_rows(lengths: Sequence[int], rows: Sequence[int], batch_tokens: int) -> Iterator[list[int]]:
    """What `batches` gives, of those that take equally many rows each in turn."""
    for count in sorted(set(rows)):
        members = [i for i, own in enumerate(rows) if own == count]
        for batch in batches([lengths[i] for i in members], batch_tokens, count):
            yield [members[i] for i in batch]


def batches(lengths: Sequence[int], batch_tokens: int, beam: int) -> Iterator[list[int]]:
    """The indices of ``lengths`` in batches, longest first, each at most ``batch_tokens`` or one sentence.

    A batch counts sentences x ``beam`` x its longest, the end included. Equal lengths keep their order.
    """
    order = sorted(range(len(lengths)), key=lambda i: -lengths[i])
    begin = 0
    while begin < len(order):
        count = max(1, batch_tokens // ((lengths[order[begin]] + 1) * beam))
        yield order[begin : begin + count]
        begin += count
