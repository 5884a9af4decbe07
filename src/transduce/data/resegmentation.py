"""Other subwords for the same text, drawn at random: sub-word regularisation.

BPE-dropout (Provilkov et al., 2020, algorithm 1): at every step each possible merge is left out with a
probability, and the best of the others is made. Unigram sampling (Kudo, 2018): of all ways to cut a word, one
is drawn with the probability that the unigram model gives it, to the power alpha. sentencepiece has both, but
cannot be told what to draw; here it follows from a key alone.

No piece spans a space, so the cuts of words are independent. Each occurrence of a word takes one of 64 cuts,
which are drawn from the distribution once and kept: by itself each is an exact draw.
"""

from __future__ import annotations

import hashlib
import math
import random
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from transduce.data.chance import Keys, further
from transduce.data.tokenizer import UNK_ID, Tokenizer

Ids = npt.NDArray[np.integer]
Cut = tuple[str | int, ...]

CUTS = 64
# Cuts that are kept, about 200 bytes each; then all are forgotten. They come out the same again.
_KEPT = 500_000
_SPACE = "\u2581"


class Resegmenter:
    """Draws cuts for one tokenizer; ``rate`` is BPE's share of merges left out, or unigram's alpha."""

    def __init__(self, tokenizer: Tokenizer, rate: float, seed: int) -> None:
        self.tokenizer, self.rate, self.seed = tokenizer, rate, seed
        pieces = [tokenizer.piece(index) for index in range(tokenizer.vocabulary)]
        fixed = tokenizer.byte_pieces.copy()
        fixed[[UNK_ID, *tokenizer.silent]] = True
        self._fixed = fixed
        self._pieces = pieces
        self._ids = {piece: index for index, piece in enumerate(pieces) if not fixed[index]}
        self._starts = np.array([p.startswith(_SPACE) for p in pieces]) | fixed & ~tokenizer.byte_pieces
        self._scores = {piece: tokenizer.score(index) for piece, index in self._ids.items()}
        self._longest = max(map(len, self._ids), default=1)
        self._dtype = np.dtype("<u2" if tokenizer.vocabulary <= 1 << 16 else "<u4")
        self._kept: dict[tuple[bytes, int], bytes] = {}
        # BPE numbers its merges; a unigram model has logarithms of probabilities.
        self.unigram = any(score % 1 for score in self._scores.values())

    def draw(self, rows: Sequence[Ids], keys: Keys, longest: int) -> list[Ids]:
        """The rows with other cuts, each by its key; one that would be longer than ``longest`` stays."""
        if not rows:
            return []
        lengths = np.fromiter(map(len, rows), np.int64, len(rows))
        flat = np.concatenate(rows).astype(self._dtype)
        row_begins = np.cumsum(lengths) - lengths
        starts = self._starts[flat]
        starts[row_begins[lengths > 0]] = True
        begins = np.flatnonzero(starts)
        row_of = np.searchsorted(np.cumsum(lengths), begins, side="right")
        firsts = np.searchsorted(begins, row_begins)
        chosen = further(keys[row_of], np.arange(len(begins)) - firsts[row_of]) % np.uint64(CUTS)
        raw, size = flat.tobytes(), self._dtype.itemsize
        ends = np.append(begins[1:], len(flat)) * size
        cuts = [
            self._cut(raw[begin:end], number)
            for begin, end, number in zip(
                (begins * size).tolist(), ends.tolist(), chosen.tolist(), strict=True
            )
        ]
        found = np.frombuffer(b"".join(cuts), dtype=self._dtype)
        cut_lengths = np.fromiter(map(len, cuts), np.int64, len(cuts)) // size
        new_lengths = np.bincount(row_of, cut_lengths, minlength=len(rows)).astype(np.int64)
        new_ends = np.cumsum(new_lengths)
        return [
            found[end - length : end] if length <= longest else row
            for row, length, end in zip(rows, new_lengths.tolist(), new_ends.tolist(), strict=True)
        ]

    def _cut(self, word: bytes, number: int) -> bytes:
        """Cut ``number`` of the word with these ids."""
        kept = self._kept.get((word, number))
        if kept is None:
            ids = np.frombuffer(word, dtype=self._dtype).tolist()
            entropy = hashlib.blake2b(word, digest_size=8, salt=self.seed.to_bytes(8, "little", signed=True))
            entropy.update(number.to_bytes(2, "little"))
            chance = random.Random(int.from_bytes(entropy.digest()))
            kept = np.array(self.cut_word(ids, chance), dtype=self._dtype).tobytes()
            if len(self._kept) >= _KEPT:
                self._kept.clear()
            self._kept[word, number] = kept
        return kept

    def cut_word(self, ids: Sequence[int], chance: random.Random) -> list[int]:
        """The ids of the word in another cut; bytes, ends and tags stay as they are."""
        symbols: list[str | int] = []
        for index in ids:
            symbols += [index] if self._fixed[index] else self._pieces[index]
        if len(symbols) == 1:
            return list(ids)
        cut = self._sampled(symbols, chance) if self.unigram else self._merged(symbols, chance)
        found: list[int] = []
        for symbol in cut:
            if isinstance(symbol, int):
                found.append(symbol)
            else:
                found += [self._ids[symbol]] if symbol in self._ids else self.tokenizer.bytes_of(symbol)
        return found

    def _merged(self, symbols: list[str | int], chance: random.Random) -> list[str | int]:
        scores, drop = self._scores, self.rate
        while True:
            best, at, merged = -math.inf, -1, ""
            for i in range(len(symbols) - 1):
                left, right = symbols[i], symbols[i + 1]
                if isinstance(left, int) or isinstance(right, int):
                    continue
                score = scores.get(left + right)
                # Every merge that is possible is given its chance, whether it is the best or not.
                if score is None or (drop and chance.random() < drop):
                    continue
                if score > best:
                    best, at, merged = score, i, left + right
            if at < 0:
                return symbols
            symbols[at : at + 2] = [merged]

    def _sampled(self, symbols: list[str | int], chance: random.Random) -> list[str | int]:
        """Forward filtering, backward sampling over the ways to cut the word."""
        ways, total = self._ways(symbols)
        found: list[str | int] = []
        end = len(symbols)
        while end:
            weights = [weight for _, _, weight in ways[end]]
            begin, piece, _ = ways[end][_drawn([math.exp(w - total[end]) for w in weights], chance)]
            found.append(piece)
            end = begin
        return found[::-1]

    def _ways(self, symbols: list[str | int]) -> tuple[list[list[tuple[int, str | int, float]]], list[float]]:
        """For each end the last pieces that there may be, each with its cuts' log weight; and their sums."""
        count = len(symbols)
        total = [0.0] + [-math.inf] * count  # log of the weights of all cuts of the first symbols
        ways: list[list[tuple[int, str | int, float]]] = [[] for _ in range(count + 1)]
        for end in range(1, count + 1):
            last = symbols[end - 1]
            if isinstance(last, int):
                ways[end].append((end - 1, last, total[end - 1]))
            else:
                piece = ""
                for begin in range(end - 1, max(-1, end - 1 - self._longest), -1):
                    symbol = symbols[begin]
                    if isinstance(symbol, int):
                        break
                    piece = symbol + piece
                    score = self._scores.get(piece)
                    if score is None and len(piece) == 1:
                        score = 0.0  # bytes, whatever else: the only way to spell it alone
                    if score is not None and total[begin] > -math.inf:
                        ways[end].append((begin, piece, total[begin] + self.rate * score))
            best = max((weight for _, _, weight in ways[end]), default=-math.inf)
            if best > -math.inf:
                total[end] = best + math.log(sum(math.exp(weight - best) for _, _, weight in ways[end]))
        return ways, total


def _drawn(probabilities: Sequence[float], chance: random.Random) -> int:
    """Which of them; they add up to 1 but for rounding."""
    left = chance.random()
    for place, probability in enumerate(probabilities):
        left -= probability
        if left < 0:
            return place
    return len(probabilities) - 1
