"""Damaged files: a sound one of each format, what is done to it, and how many units are then in it."""

from __future__ import annotations

import csv
import random
import re
import struct
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from xml.parsers import expat

from transduce.data.formats.pair import Pair
from transduce.data.formats.sides import Wanted
from transduce.data.formats.tally import Tally
from transduce.data.formats.writing import write_pairs

WORDS = ["dog", "Größe", "犬", "a & b", "<b>", '"quoted"', "two words", "%s", "x\\n", "café", "1,5", "Æ"]
PAIRS = [Pair(f"{word} {n}", f"{word[::-1]} {n}", "made", n) for n, word in enumerate(WORDS * 2)]
TBX = (
    "<martif><text><body>"
    + "".join(
        f'<termEntry id="{n}"><langSet xml:lang="en"><tig><term>t{n}</term></tig></langSet>'
        f'<langSet xml:lang="de"><tig><term>b{n}</term>'
        '<termNote type="administrativeStatus">x</termNote></tig></langSet>'
        "</termEntry>\n"
        for n in range(20)
    )
    + "</body></text></martif>"
)
FORMATS = {
    "tsv": ".tsv", "csv": ".csv", "jsonl": ".jsonl", "parquet": ".parquet", "tmx": ".tmx", "xliff": ".xlf",
    "po": ".po", "sgm": ".sgm", "wmt-xml": ".xml", "mo": ".mo", "tbx": ".tbx", "srt": ".srt", "vtt": ".vtt",
}  # fmt: skip


def sound(kind: str, folder: Path) -> bytes:
    """A sound file of this format."""
    path = folder / f"sound{FORMATS[kind]}"
    if kind == "tbx":
        return TBX.encode()
    if kind in ("srt", "vtt"):
        mark = "," if kind == "srt" else "."
        times = (f"00:00:{n:02}{mark}000 --> 00:00:{n:02}{mark}900" for n in range(24))
        blocks = [
            f"{n}\n{time}\n<i>{pair.source}</i>\n"
            for (n, time), pair in zip(enumerate(times), PAIRS, strict=True)
        ]
        return "\n".join([*(["WEBVTT\n"] if kind == "vtt" else []), *blocks]).encode()
    if kind == "mo":
        write_pairs(PAIRS, folder / "sound.po", Wanted("en", "de"), Tally())
        subprocess.run(["msgfmt", "-o", path, folder / "sound.po"], check=True)
        return path.read_bytes()
    write_pairs(PAIRS, path, Wanted("en", "de"), Tally())
    return path.read_bytes()


def mutated(content: bytes, draw: random.Random) -> bytes:
    """The bytes after one to three accidents."""
    raw = bytearray(content)
    for _ in range(draw.choice((1, 1, 1, 2, 3))):
        at = draw.randrange(len(raw) + 1)
        length = draw.choice((1, 1, 2, 4, 16, 64))
        match draw.randrange(7):
            case 0:
                raw[at : at + 1] = bytes([draw.randrange(256)])
            case 1:
                del raw[at : at + length]
            case 2:
                raw[at:at] = raw[at : at + length]
            case 3:
                raw[at:at] = draw.choice(
                    (b"\n", b"\r", b"\0", b"<", b">", b'"', b"&", b"\\", b"\xff", b"\t", b"-->", b"#")
                )
            case 4:
                del raw[at:]
            case 5:
                other = draw.randrange(len(raw) + 1)
                raw[at : at + length] = raw[other : other + length]
            case 6 if at < len(raw):
                raw[at] ^= 1 << draw.randrange(8)
    return bytes(raw)


def _elements(*names: str) -> Callable[[bytes], int]:
    def count(content: bytes) -> int:
        found: Counter[str] = Counter()
        parser = expat.ParserCreate()
        parser.StartElementHandler = lambda name, _: found.update([name.rpartition(":")[2]])
        parser.Parse(content, True)
        return sum(found[name] for name in names)

    return count


def _messages(content: bytes) -> int:
    text = content.removeprefix(b"\xef\xbb\xbf").decode(errors="replace")
    return len(re.findall(r'^[^\S\n]*(?:#~[^\S\n]*)?msgid\s*(?=["\s])', text, re.MULTILINE))


def _rows(content: bytes) -> int:
    text = content.removeprefix(b"\xef\xbb\xbf").decode()
    delimiter = max(",;\t", key=lambda d: len(next(csv.reader([text.split("\n")[0]], delimiter=d), [])))
    return sum(1 for _ in csv.reader(re.findall(r"[^\n]*\n|[^\n]+", text), delimiter=delimiter))


UNITS: dict[str, Callable[[bytes], int]] = {
    "tsv": lambda content: content.count(b"\n") + (not content.endswith(b"\n") and content != b""),
    "csv": _rows,
    "jsonl": lambda content: content.count(b"\n") + (not content.endswith(b"\n") and content != b""),
    "tmx": _elements("tu"),
    "xliff": _elements("trans-unit"),
    "wmt-xml": _elements("seg"),
    "tbx": _elements("termEntry", "conceptEntry"),
    "sgm": lambda content: len(
        re.findall(
            rb"<seg\b[^<>]*>", re.sub(rb"<!--.*?-->|<[!?][^>]*>", b"", content, flags=re.S | re.I), re.I
        )
    ),
    "po": _messages,
    "mo": lambda content: int(struct.unpack("<I", content[8:12])[0]),
    "srt": lambda content: content.count(b"-->"),
    "vtt": lambda content: content.count(b"-->"),
}
"""How many units a file holds, told without our readers."""
