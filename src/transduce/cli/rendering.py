"""What a translated line looks like: plain text, score and text, or JSON; and what is told beside it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from transduce.decoding.translation import Translation

_FIELDS = ("text", "score", "log_probability", "length", "truncated")


@dataclass(frozen=True, kw_only=True)
class Rendering:
    """How lines are written. ``explained`` is the exponent with which scores are explained; None: not."""

    as_json: bool
    scores: bool
    explained: float | None

    def write(
        self,
        first: int,
        pairs: Iterable[tuple[str, Translation]],
        say: Callable[[str], None],
        output: Callable[[bytes], object],
        links: Callable[[bytes], object] | None = None,
    ) -> None:
        """Nothing; lines went to ``output``, alignments to ``links``, and the rest was told to ``say``."""
        for number, (line, translation) in enumerate(pairs, first):
            self.tell(number, translation, say)
            output(self.line(number, line, translation).encode())
            if links is not None:
                links(alignment_line(translation))

    def tell(self, number: int, translation: Translation, say: Callable[[str], None]) -> None:
        """Nothing; what is to be told of a line was told to ``say``."""
        for warning in translation.warnings:
            say(f"transduce: warning: {warning}")
        if self.explained is not None and translation.source:
            for told in translation.explain(self.explained):
                say(f"line {number}, {told}")

    def line(self, number: int, source: str, translation: Translation) -> str:
        """One line of the output, with its end."""
        if self.as_json:
            return _json(number, source, translation)
        if self.scores:  # an empty line has no score, but its TAB, so that columns stay columns
            score = f"{translation.alternatives[0].score:.4f}" if translation.source else ""
            return f"{score}\t{translation.text}\n"
        return translation.text + "\n"


def alignment_line(translation: Translation) -> bytes:
    """The word alignment of the best output as one line."""
    from transduce.decoding.alignment import pharaoh

    return f"{pharaoh(translation.alignment or ())}\n".encode()


def _json(number: int, source: str, translation: Translation) -> str:
    outputs: list[dict[str, Any]] = []
    for alternative in translation.alternatives:
        outputs.append({name: getattr(alternative, name) for name in _FIELDS})
        if alternative.word_confidences is not None:
            words = zip(alternative.text.split(), alternative.word_confidences, strict=True)
            outputs[-1]["confidence"] = alternative.confidence
            outputs[-1]["words"] = [{"text": word, "confidence": value} for word, value in words]
        for name in ("expected", "alignment"):
            if getattr(alternative, name) is not None:
                outputs[-1][name] = getattr(alternative, name)
    value = {"line": number, "source": source, "translations": outputs, "warnings": translation.warnings}
    return json.dumps(value, ensure_ascii=False) + "\n"
