"""`get`: a public corpus as aligned text files, train, valid and test."""

from __future__ import annotations

import io
import shutil
import subprocess
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from transduce.config import unknown_name
from transduce.data.conversion import Inputs, convert
from transduce.data.downloads import Download, Progress, fetch
from transduce.data.formats.pair import Pair
from transduce.data.formats.sgm import read_sgm_side
from transduce.data.formats.sides import Wanted
from transduce.data.formats.tally import Tally
from transduce.data.formats.text_pair import unequal
from transduce.data.formats.writing import TEXT, write_pairs
from transduce.data.known_corpora import KNOWN, Corpus, Text
from transduce.data.lines import read_lines
from transduce.errors import DataError, UsageError

DOWNLOADS = "downloads"
_MTDATA = "mtdata:"


@dataclass(frozen=True)
class Got:
    """What is in the folder now: the pairs of each part, and what a person should know."""

    folder: str
    pairs: dict[str, int]
    languages: tuple[str, str]
    note: str


def get(
    name: str,
    folder: str | Path,
    *,
    source_language: str = "",
    target_language: str = "",
    mirror: str = "",
    say: Callable[[str], None] = lambda line: None,
    progress: Progress = lambda name, done, total: None,
) -> Got:
    """The corpus ``name`` in ``folder``: ``train.en``, ``train.de`` ...; downloads are kept beside them.

    ``mtdata:ID`` is fetched by the command mtdata, where it is installed. ConfigError for a name that is not
    known, UsageError for languages that it is not there in, DataError where the network or a file fails.
    """
    folder = Path(folder)
    if name.startswith(_MTDATA):
        return _by_mtdata(name.removeprefix(_MTDATA), folder, source_language, target_language)
    if name not in KNOWN:
        raise unknown_name(name, KNOWN, "corpus")
    known = KNOWN[name]
    usual = known.usual
    languages = (source_language or usual[0], target_language or usual[1])
    if known.pairs is not None and languages not in known.pairs:
        there = ", ".join(sorted("-".join(pair) for pair in known.pairs))
        raise UsageError(f"{name} is not there from {languages[0]} to {languages[1]}; it is there in {there}")
    corpus = known.make(*languages)
    texts = [text for part in corpus.parts.values() for both in part for text in both]
    files = {
        text.download: fetch(text.download, folder / DOWNLOADS, mirror=mirror, say=say, progress=progress)
        for text in texts
    }
    counts = {part: _write(corpus, part, folder, files) for part in corpus.parts}
    return Got(str(folder), counts, languages, corpus.note)


def _write(corpus: Corpus, part: str, folder: Path, files: dict[Download, Path]) -> int:
    pairs = (pair for both in corpus.parts[part] for pair in _aligned(*both, files))
    return write_pairs(pairs, folder / part, Wanted(*corpus.languages), Tally(), TEXT)


def _aligned(source: Text, target: Text, files: dict[Download, Path]) -> Iterator[Pair]:
    """The pairs of two texts; DataError where they do not have the same number of lines."""
    names = [text.member or text.download.name for text in (source, target)]
    with _lines(source, files) as sources, _lines(target, files) as targets:
        number = 0
        for number, one in enumerate(sources, 1):
            other = next(targets, None)
            if other is None:
                raise unequal(names[0], number + sum(1 for _ in sources), names[1], number - 1)
            yield Pair(one, other, names[0], number)
        if rest := sum(1 for _ in targets):
            raise unequal(names[0], number, names[1], number + rest)


@contextmanager
def _lines(text: Text, files: dict[Download, Path]) -> Iterator[Iterator[str]]:
    """The segments of a text: lines, those of SGM and XML by their elements, of IWSLT's between its tags."""
    path = files[text.download]
    if not text.member:
        yield read_lines(path)
        return
    # As a file of its own: members are read twice as fast so, and by the readers that everything else uses.
    unpacked = path.with_name(f"{path.name}.{text.member.replace('/', '_')}")
    try:
        with _member(path, text.member) as packed, unpacked.open("wb") as file:
            shutil.copyfileobj(packed, file, 1 << 20)
        if text.member.endswith((".sgm", ".xml")):
            yield iter(read_sgm_side(unpacked)[0])
        elif ".tags." in text.member:
            yield (line.strip() for line in read_lines(unpacked) if not line.lstrip().startswith("<"))
        else:
            yield read_lines(unpacked)
    finally:
        unpacked.unlink(missing_ok=True)


@contextmanager
def _member(path: Path, name: str) -> Iterator[IO[bytes]]:
    """The bytes of the file in an archive whose name ends so; nothing else of it is unpacked."""
    try:
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as packed:
                found = next((one for one in packed.namelist() if _ends(one, name)), None)
                if found is not None:
                    with packed.open(found) as file:
                        yield file
                    return
        else:
            with tarfile.open(path) as archive:
                for entry in archive:
                    if entry.isfile() and _ends(entry.name, name):
                        yield archive.extractfile(entry) or io.BytesIO()
                        return
    except (tarfile.TarError, zipfile.BadZipFile, EOFError, OSError) as error:
        problem = " ".join(str(error).split())
        raise DataError(f"{path}: is a damaged archive ({problem}); remove it and get it again") from None
    raise DataError(f"{path}: holds no {name}; the archive is another one than expected: remove it")


def _ends(path: str, name: str) -> bool:
    return path == name or path.endswith(f"/{name}")


def _by_mtdata(identity: str, folder: Path, source_language: str, target_language: str) -> Got:
    """What ``mtdata echo`` writes, as train: its source and target are those of the name."""
    command = shutil.which("mtdata")
    if command is None:
        raise UsageError(
            f"mtdata:{identity} needs the command mtdata; install it with `pipx install mtdata` (its "
            "requirements do not go together with ours in one environment)"
        )
    folder.mkdir(parents=True, exist_ok=True)
    raw = folder / "mtdata.tsv"
    try:
        with raw.open("wb") as file:
            done = subprocess.run(
                [command, "echo", identity], stdout=file, stderr=subprocess.PIPE, check=False
            )
        if done.returncode:
            last = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
            raise DataError(f"mtdata:{identity}: mtdata ended with {done.returncode}: {last[:300]}")
        ends = identity.rsplit("-", 2)[-2:]
        languages = (source_language or ends[0], target_language or ends[-1])
        inputs = Inputs(pairs=(str(raw),), wanted=Wanted(*languages))
        count = convert(inputs, folder / "train", kind=TEXT).pairs
    finally:
        raw.unlink(missing_ok=True)
    return Got(str(folder), {"train": count}, languages, f"{identity}, by mtdata")
