"""The inside of a DOCX paragraph: runs of text, each with its formatting, and what stands between them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from transduce.documents.inline import Builder, Segment
from transduce.documents.marks import Pieces, Run
from transduce.documents.paragraph_slot import paragraph_slot
from transduce.documents.slots import Slot
from transduce.documents.xml_text import Element, escaped

# What stands around runs without changing the text; and what is left out of a translated paragraph.
_AROUND = {"hyperlink", "ins", "smartTag", "customXml", "moveTo", "dir", "bdo"}
_DROPPED = {"proofErr", "lastRenderedPageBreak"}
_CUTS = {"tab", "ptab", "br", "cr"}
_CHARACTERS = {"noBreakHyphen": "\u2011", "softHyphen": "\u00ad"}
# Things with a beginning and an end that have the same number.
_RANGES = re.compile(r"(bookmark|commentRange|moveFromRange|moveToRange|perm)(Start|End)")
# Of the formatting of a run, what no reader sees.
_UNSEEN = re.compile(r"<\w+:(?:lang|noProof)\b[^<>]*/>")


@dataclass(frozen=True)
class _Atom:
    """A step through the paragraph. ``raw`` is how it may stand between runs, ``key`` the formatting of text.

    Kinds: text, alone, cut, open, close, field (``name`` is begin, separate or end), instruction.
    """

    kind: str
    raw: Pieces
    name: str = ""
    text: str = ""
    key: str = ""


class Paragraph:
    """What one paragraph consists of; ``prefix`` is that of the names of its elements, such as ``w:``."""

    def __init__(self, text: str, prefix: str, element: Element) -> None:
        self.text, self.prefix = text, prefix
        self.runs: dict[str, Run] = {}
        children = [child for child in element.children if self._name(child) != "pPr"]
        self.begin = children[0].begin if children else element.inner_end
        self.end = children[-1].end if children else element.inner_end
        self.atoms = list(_without_fields(list(self._atoms(element)), 0))

    def slot(self, place: str) -> Slot | None:
        """The slot of the paragraph; None where there is nothing to translate."""
        lengths: Counter[str] = Counter()
        for atom in self.atoms:
            if atom.kind == "text":
                lengths[atom.key] += len(atom.text.strip())
        if not any(lengths.values()):
            return None
        parts = list(self._parts(lengths.most_common(1)[0][0]))
        return paragraph_slot(parts, self.text, self.begin, self.end, place)

    def _parts(self, base: str) -> Iterator[Segment | Pieces]:
        """The texts between tabs and line breaks, and these; ``base`` is the formatting without marks."""
        builder = _Runs(self.runs, base)
        for at, atom in enumerate(self.atoms):
            if atom.kind == "text":
                builder.words(atom.text, atom.key)
            elif atom.kind == "cut" and not self._goes_on(at):
                yield builder.cut()
                yield atom.raw
            elif atom.kind in ("open", "close"):
                builder.switch(base)
                getattr(builder, atom.kind)(atom.name, *atom.raw)
            else:
                builder.alone(*atom.raw, separates=atom.kind == "cut")
        yield builder.cut()

    def _goes_on(self, at: int) -> bool:
        """Whether a sentence goes on behind a line break: with a small letter."""
        after = self.atoms[at + 1] if at + 1 < len(self.atoms) else None
        return self.atoms[at].name == "br" and after is not None and after.text.lstrip()[:1].islower()

    def _name(self, child: object) -> str:
        """The name of an element without the prefix; with it where it is another; empty for what is none."""
        return child.name.removeprefix(self.prefix) if isinstance(child, Element) else ""

    def _atoms(self, element: Element) -> Iterator[_Atom]:
        for child in element.elements:
            name = self._name(child)
            ranges = _RANGES.fullmatch(name)
            whole = (child.begin, child.end)
            content = child.first(f"{self.prefix}sdtContent") if name == "sdt" else None
            if name == "r":
                yield from self._run(child)
            elif content is not None and not content.is_empty:
                yield _Atom("open", ((child.begin, content.inner_begin),), "sdt")
                yield from self._atoms(content)
                yield _Atom("close", ((content.inner_end, child.end),), "sdt")
            elif name in _AROUND and not child.is_empty:
                own = [one for one in child.elements if self._name(one) in ("smartTagPr", "customXmlPr")]
                inner = own[-1].end if own else child.inner_begin
                yield _Atom("open", ((child.begin, inner),), name)
                yield from self._atoms(child)
                yield _Atom("close", ((child.inner_end, child.end),), name)
            elif ranges:
                number = child.attributes.get(f"{self.prefix}id", "")
                kind = "open" if ranges[2] == "Start" else "close"
                yield _Atom(kind, (whole,), f"{ranges[1]} {number}")
            elif name not in _DROPPED and not name.endswith("Pr"):
                yield _Atom("alone", (whole,))

    def _run(self, run: Element) -> Iterator[_Atom]:
        properties = run.first(f"{self.prefix}rPr")
        look = "" if properties is None else self.text[properties.begin : properties.end]
        key = _UNSEEN.sub("", look)
        key = "" if key == f"<{self.prefix}rPr></{self.prefix}rPr>" else key
        w = self.prefix
        before: Pieces = (f"<{w}r>{look}",)
        after: Pieces = (f"</{w}r>",)
        self.runs.setdefault(key, ((f'<{w}r>{look}<{w}t xml:space="preserve">',), (f"</{w}t></{w}r>",)))
        for child in run.elements:
            name = self._name(child)
            raw = (*before, (child.begin, child.end), *after)
            if name == "t" or name in _CHARACTERS:
                text = _CHARACTERS.get(name) or child.text
                yield _Atom("text", raw, text=text, key=key)
            elif name in _CUTS:
                yield _Atom("cut", raw, name)
            elif name == "fldChar":
                yield _Atom("field", raw, child.attributes.get(f"{w}fldCharType", ""))
            elif name == "instrText":
                yield _Atom("instruction", raw, text=child.text)
            elif name not in _DROPPED and name != "rPr":
                yield _Atom("alone", raw)


class _Runs(Builder):
    """Collects texts with their formatting; texts that follow one another with the same are one."""

    def __init__(self, runs: dict[str, Run], base: str) -> None:
        super().__init__()
        self.runs, self.base, self.current = runs, base, base

    def words(self, text: str, key: str) -> None:
        """Nothing; text of this formatting comes next. That of spaces does not show."""
        if not text.isspace():
            self.switch(key)
        self.text(text)

    def switch(self, key: str) -> None:
        """Nothing; what comes next has another formatting."""
        if key != self.current and self.current != self.base:
            self.close("run")
        if key not in (self.current, self.base):
            self.open("run", run=self.runs[key])
        self.current = key

    def cut(self) -> Segment:
        """What was collected since the last call."""
        self.switch(self.base)
        return self.segment(escaped, base=self.runs[self.base])


def _without_fields(atoms: Sequence[_Atom], number: int) -> Iterator[_Atom]:
    """The atoms with each field as one thing; but of a link the text that it shows stays text."""
    at = 0
    while at < len(atoms):
        atom = atoms[at]
        if atom.kind != "field" or atom.name != "begin":
            yield _Atom("alone", atom.raw) if atom.kind in ("field", "instruction") else atom
            at += 1
            continue
        separate, end = _field(atoms, at)
        if end < 0:
            yield _Atom("alone", atom.raw)
            at += 1
            continue
        told = "".join(one.text for one in atoms[at : max(separate, at)] if one.kind == "instruction")
        if told.split()[:1] == ["HYPERLINK"]:
            yield _Atom("open", _raw(atoms[at : separate + 1]), f"field {number}")
            yield from _without_fields(atoms[separate + 1 : end], number + 1)
            yield _Atom("close", atoms[end].raw, f"field {number}")
        else:
            yield _Atom("alone", _raw(atoms[at : end + 1]))
        at = end + 1


def _field(atoms: Sequence[_Atom], begin: int) -> tuple[int, int]:
    """Where the result of a field begins, and where the field ends; -1 where that is not in the paragraph."""
    depth, separate, wrappings = 0, -1, 0
    for at in range(begin, len(atoms)):
        atom = atoms[at]
        wrappings += (atom.kind == "open") - (atom.kind == "close")
        if wrappings < 0:
            break
        if atom.kind == "field":
            depth += {"begin": 1, "end": -1}.get(atom.name, 0)
            if atom.name == "separate" and depth == 1 and not wrappings:
                separate = at
            if not depth:
                return (separate, at) if not wrappings else (-1, -1)
    return -1, -1


def _raw(atoms: Sequence[_Atom]) -> Pieces:
    return tuple(piece for atom in atoms for piece in atom.raw)
