"""What language texts are in: py3langid's model, asked about many texts at once.

The model is that of langid.py (Lui and Baldwin, 2012): an automaton over UTF-8 bytes finds features, naive
Bayes weighs how often each was found. py3langid walks text by text, byte by byte; here all texts take a step
together, with the same result several times as fast.
"""

from __future__ import annotations

import functools
import unicodedata
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from transduce.errors import UsageError

_AT_ONCE = 1024


class Identifier:
    """The languages it knows, by their codes, and what texts are in."""

    def __init__(self) -> None:
        from py3langid.langid import MODEL_FILE, LanguageIdentifier

        model = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
        self.codes: list[str] = list(model.nb_classes)
        self._next = np.asarray(model.tk_nextmove).astype(np.int32)
        self._row = np.asarray(model.tk_row).astype(np.int64) << 8
        self._feature = np.asarray(model.tk_output, np.int32)
        self._weights = np.asarray(model.nb_ptc, np.float32)
        self._prior = np.asarray(model.nb_pc, np.float32)
        # Some languages have two columns, one for each script: the first becomes the sum.
        first = {code: self.codes.index(code) for code in self.codes}
        self._again = [(first[code], at) for at, code in enumerate(self.codes) if first[code] != at]

    def classify(self, texts: Sequence[str]) -> list[tuple[str, float]]:
        """The most probable language of each text, and its probability; ``zxx`` is no language."""
        found: list[tuple[str, float]] = []
        for begin in range(0, len(texts), _AT_ONCE):
            probabilities = self._probabilities([_bytes(text) for text in texts[begin : begin + _AT_ONCE]])
            best = probabilities.argmax(axis=1)
            likely = probabilities[np.arange(len(best)), best].tolist()
            found += zip((self.codes[at] for at in best.tolist()), likely, strict=True)
        return found

    def probabilities(self, texts: Sequence[str]) -> list[list[float]]:
        """How probable each of `codes` is for each text; where a code stands twice, the first has the sum."""
        return [[float(p) for p in row] for row in self._probabilities([_bytes(text) for text in texts])]

    def _probabilities(self, texts: Sequence[bytes]) -> npt.NDArray[np.float32]:
        lengths = np.fromiter(map(len, texts), np.int64, len(texts))
        scores = np.zeros((len(texts), len(self.codes)), np.float32)
        features, counts, ends = self._features(texts, lengths)
        begin = 0
        for at, end in enumerate(ends.tolist()):
            if end > begin:
                scores[at] = counts[begin:end] @ self._weights[features[begin:end]] + self._prior
            begin = end
        # Longer texts are no surer than their length is worth: py3langid's calibration.
        scores *= (1 / np.sqrt(np.maximum(lengths, 1))).astype(np.float32)[:, None]
        np.exp(scores - scores.max(axis=1, keepdims=True), out=scores)
        scores /= scores.sum(axis=1, keepdims=True)
        for one, other in self._again:
            scores[:, one] += scores[:, other]
        return scores

    def _features(
        self, texts: Sequence[bytes], lengths: npt.NDArray[np.int64]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32], npt.NDArray[np.int64]]:
        """The features that are found, text by text, log(1 + count) of each, and where each text ends."""
        order = np.argsort(-lengths, kind="stable")  # those that are at their end leave the front
        width = int(lengths.max(initial=0))
        table = np.frombuffer(b"".join(texts[at].ljust(width, b"\0") for at in order.tolist()), np.uint8)
        columns = np.ascontiguousarray(table.reshape(len(texts), width).T).astype(np.int64)
        alive = len(texts) - np.searchsorted(np.sort(lengths), np.arange(width), side="right")
        state = np.zeros(len(texts), np.int64)
        met = []
        for column, count in zip(columns, alive.tolist(), strict=True):
            state = self._next[self._row[state[:count]] + column[:count]]
            feature = self._feature[state]
            hit = np.flatnonzero(feature >= 0)
            met.append(order[hit] * len(self._weights) + feature[hit])
        keys, counts = np.unique(np.concatenate(met or [np.empty(0, np.int64)]), return_counts=True)
        text, features = np.divmod(keys, len(self._weights))
        ends = np.searchsorted(text, np.arange(len(texts)), side="right")
        return features, np.log1p(counts.astype(np.float32)), ends


@functools.cache
def identifier() -> Identifier:
    """The identifier of this process; UsageError where py3langid is not installed."""
    check_identifier()
    return Identifier()


def check_identifier() -> None:
    """Nothing; raises UsageError where py3langid is not installed."""
    try:
        import py3langid  # noqa: F401
    except ImportError:
        raise UsageError(
            "telling languages needs py3langid; install it with `pip install 'transduce[cleaning]'`, or turn "
            "it off with cleaning.language=0"
        ) from None


def _bytes(text: str) -> bytes:
    """What the automaton reads: composed, and not all in capitals, as the model was trained."""
    return unicodedata.normalize("NFC", text.lower() if text.isupper() else text).encode(
        errors="surrogatepass"
    )
