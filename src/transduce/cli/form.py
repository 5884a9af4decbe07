"""What the output of `transduce translate` is made of, and which of its flags do not go together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from transduce.errors import UsageError


@dataclass(frozen=True, kw_only=True)
class Form:
    """The flags that say what is written for each line, as the command has them."""

    as_json: bool
    scores: bool
    confidence: bool
    align: bool
    alignments: str
    stream: bool
    alternatives: int
    document: bool
    paragraphs: bool
    prefix_file: str | None
    glossary: str | None
    glossary_inflect: bool
    glossary_languages: str

    def check(self, *, n_best: int, samples: int, mbr: str, output: str) -> None:
        """Nothing; UsageError, with the way out, for what has no place to go or cannot be had together."""
        if self.confidence and not self.as_json:
            raise UsageError("--confidence stands in JSON lines: add --json")
        for flag, count in (("--n-best", n_best), ("--samples", samples)):
            if count > 1 and not self.as_json and not mbr:
                raise UsageError(
                    f"{flag} {count} gives several outputs a line; add --json to have them as JSON lines"
                )
        if self.align and not self.as_json:
            raise UsageError(
                "--align puts word alignments into JSON lines: add --json, or use --alignments FILE"
            )
        if self.alignments and self.alignments == output:
            raise UsageError(f"{output}: is named twice; text and alignments need a file each")
        if self.alternatives < 0:
            raise UsageError(f"--alternatives is {self.alternatives}; it must be 1 or more, or 0: none")
        if self.alternatives and not self.as_json:
            raise UsageError("--alternatives gives several words a line: add --json to have JSON lines")
        if self.paragraphs and not self.document:
            raise UsageError("--paragraphs joins the lines of a document: add --document")
        self._check_glossary()
        self._check_modes()

    def check_options(self, options: Mapping[str, Any]) -> None:
        """Nothing; UsageError for options that are wrong, or that this form has no use for."""
        from transduce.decoding.config import TranslationOptions
        from transduce.decoding.next_words import check_next_words
        from transduce.decoding.streaming import check_streamed

        chosen = TranslationOptions.from_mapping(options)
        chosen.check_prefixes(given=self.prefix_file is not None)
        if self.stream:
            check_streamed(chosen)
        if self.alternatives:
            check_next_words(self.alternatives, chosen)

    def _check_glossary(self) -> None:
        for flag, is_given in (
            ("--glossary-inflect", self.glossary_inflect),
            ("--glossary-languages", bool(self.glossary_languages)),
        ):
            if is_given and self.glossary is None:
                raise UsageError(f"{flag} is about the terms of a glossary: add --glossary FILE")

    def _check_modes(self) -> None:
        """Nothing; UsageError where a way to translate meets a flag that it has no use for."""
        others = {
            "--json": self.as_json,
            "--scores": self.scores,
            "--alignments": bool(self.alignments),
            "--stream": self.stream,
            "--alternatives": bool(self.alternatives),
            "--paragraphs": self.paragraphs,
            "--prefix-file": self.prefix_file is not None,
            "--glossary": self.glossary is not None,
        }
        modes = (
            ("--stream", "gives text as it comes", ("--json", "--scores", "--alternatives", "--paragraphs")),
            (
                "--paragraphs",
                "gives no line for a line",
                ("--scores", "--alignments", "--alternatives", "--prefix-file"),
            ),
            (
                "--alternatives",
                "lists words instead of translating",
                ("--scores", "--alignments", "--glossary"),
            ),
        )
        for mode, what, without in modes:
            for flag in without:
                if others[mode] and others[flag]:
                    raise UsageError(f"{mode} {what}; leave out {flag}")
