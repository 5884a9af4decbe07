"""What may be asked of ``/v1/``, and what is answered."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from transduce.decoding.glossary import Entry, Glossary
from transduce.decoding.terms import Term
from transduce.decoding.translation import Alternative, Translation
from transduce.serving.service import Wanted

_OPTIONS = (
    "beam",
    "alpha",
    "n_best",
    "min_length",
    "max_extra",
    "stop",
    "samples",
    "temperature",
    "top_k",
    "top_p",
    "seed",
    "mbr",
    "no_repeat_ngram",
    "repetition_penalty",
    "confidence",
    "alignments",
    "flag_unusual",
    "protect",
    "document",
    "domain",
    "shortlist",
)
_SOME = Field(default=None, max_length=1_000)


class _Asked(BaseModel):
    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    source: str = Field(default="auto", max_length=20, description="Code of the source language, or auto.")
    target: str = Field(max_length=20, description="Code of the target language.")
    api_key: str | None = Field(default=None, max_length=200)


class WantedTerm(BaseModel):
    """A term that the output must contain."""

    model_config = ConfigDict(extra="forbid")

    text: str = Field(min_length=1, max_length=200)
    exact: bool = Field(default=True, description="False: its words may end otherwise.")


class GlossaryEntry(BaseModel):
    """A source term, and what its translation must contain."""

    model_config = ConfigDict(extra="forbid")

    source: str = Field(min_length=1, max_length=200)
    target: str = Field(min_length=1, max_length=200)
    exact: bool = True


class _Searched(_Asked):
    """The options are those of `transduce translate`; what is left out is as the server was started."""

    beam: int | None = Field(default=None, ge=1)
    alpha: float | None = Field(default=None, ge=-10, le=10)
    min_length: int | None = Field(default=None, ge=0, le=1_000)
    max_extra: int | None = Field(default=None, ge=0, le=500)
    stop: Literal["exact", "full"] | None = None
    no_repeat_ngram: int | None = Field(default=None, ge=0, le=20)
    repetition_penalty: float | None = Field(default=None, ge=1, le=10)
    samples: int | None = Field(default=None, ge=0)
    temperature: float | None = Field(default=None, ge=0.001, le=100)
    top_k: int | None = Field(default=None, ge=0, le=1_000_000)
    top_p: float | None = Field(default=None, gt=0, le=1)
    seed: int | None = Field(default=None, ge=0, lt=1 << 63)
    confidence: bool | None = Field(default=None, description="How sure the model is of each word.")
    alignments: bool | None = Field(default=None, description="Which source words each word comes from.")
    flag_unusual: bool | None = None
    protect: str | None = Field(default=None, max_length=60)
    document: bool | None = Field(default=None, description="Lines are paragraphs of sentences; the default.")
    domain: str | None = Field(default=None, max_length=60)
    shortlist: bool | None = None
    glossary: list[GlossaryEntry] | None = _SOME

    def options(self) -> dict[str, Any]:
        """The options that are said."""
        said = {name: getattr(self, name, None) for name in _OPTIONS}
        chosen = {name: value for name, value in said.items() if value is not None}
        if chosen.get("alignments"):
            chosen.setdefault("protect", "")  # they are of the model's own words
        return chosen

    def entries(self) -> Glossary | None:
        """The glossary."""
        if not self.glossary:
            return None
        return Glossary(
            Entry(one.source, Term(one.target, one.exact), f"glossary entry {number}")
            for number, one in enumerate(self.glossary, 1)
        )


class TranslationRequest(_Searched):
    """Texts to translate."""

    text: str | list[str]
    format: Literal["text", "html"] = "text"
    n_best: int | None = Field(default=None, ge=1)
    mbr: Literal["", "chrf", "bleu"] | None = None
    prefix: str | list[str] | None = Field(default=None, description="How each output begins.")
    terms: list[WantedTerm] | list[list[WantedTerm]] | None = _SOME

    @property
    def texts(self) -> list[str]:
        """The texts, as a list."""
        return [self.text] if isinstance(self.text, str) else self.text

    def wanted(self) -> Wanted:
        """What is asked of them."""
        prefixes = [self.prefix] if isinstance(self.prefix, str) else self.prefix
        terms = None
        if self.terms:
            lists = self.terms if isinstance(self.terms[0], list) else [self.terms]
            terms = [[Term(one.text, one.exact) for one in some] for some in lists]
        return Wanted(options=self.options(), prefixes=prefixes, terms=terms, glossary=self.entries())


class StreamRequest(_Searched):
    """One text whose translation comes piece by piece."""

    text: str
    prefix: str = ""
    terms: list[WantedTerm] | None = _SOME

    def wanted(self) -> Wanted:
        """What is asked of it."""
        terms = [[Term(one.text, one.exact) for one in self.terms]] if self.terms else None
        return Wanted(options=self.options(), prefixes=[self.prefix], terms=terms, glossary=self.entries())


class NextWordsRequest(_Asked):
    """A sentence, and how its output begins so far."""

    text: str
    prefix: str = ""
    count: int = Field(default=5, ge=1, le=20)
    beam: int | None = Field(default=None, ge=1)
    alpha: float | None = Field(default=None, ge=-10, le=10)


class AttentionRequest(_Asked):
    """A sentence, and its translation; empty: the model's own."""

    text: str
    translation: str = ""


class TreeRequest(_Asked):
    """A sentence whose search is shown."""

    text: str
    beam: int = Field(default=4, ge=1)
    alpha: float = Field(default=0.6, ge=-10, le=10)
    shown: int = Field(
        default=0, ge=0, le=16, description="Continuations of each hypothesis; 0: as the beam."
    )


def told(translation: Translation) -> dict[str, Any]:
    """A line with its outputs, for JSON."""
    return {
        "source": translation.source,
        "outputs": [_output(alternative) for alternative in translation.alternatives],
        "warnings": list(translation.warnings),
    }


def _output(alternative: Alternative) -> dict[str, Any]:
    names = ("text", "score", "log_probability", "length", "truncated", "confidence")
    found: dict[str, Any] = {name: getattr(alternative, name) for name in names}
    # Where each sentence begins in the source and in the output.
    found["parts"] = [[part.source_begin, part.begin] for part in alternative.parts]
    if alternative.word_confidences is not None:
        words: Sequence[str] = alternative.text.split()
        found["words"] = [
            {"text": word, "confidence": value}
            for word, value in zip(words, alternative.word_confidences, strict=True)
        ]
    for name in ("alignment", "expected"):
        if getattr(alternative, name) is not None:
            found[name] = getattr(alternative, name)
    return found
