"""The files that a name stands for: a file, a pattern, a folder, or what two text files have in common."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from glob import glob, has_magic
from pathlib import Path

from transduce.data.formats.languages import agreement, is_language
from transduce.data.formats.pair import Pair
from transduce.data.formats.pair_file import ROOTS, format_of, read_pair_file
from transduce.data.formats.sides import REMEDY, OtherLanguages, Wanted
from transduce.data.formats.tally import Tally
from transduce.data.formats.two_files import read_two_files
from transduce.data.formats.xml_file import root_of
from transduce.data.streams import bare_name
from transduce.errors import DataError

# How the parts of a corpus are called, at the beginning of a file's name or as the name of a folder.
_PART = re.compile(r"(?:^|/)(train|valid|validation|val|dev|test)(?:(?![A-Za-z])[^/]*$|/)", re.IGNORECASE)
Files = tuple[str] | tuple[str, str]


def read_pairs(path: str, wanted: Wanted, tally: Tally, corpus: int = 0) -> Iterator[Pair]:
    """The pairs of all that a name stands for (see `files_of`), file by file.

    Of several files those in other languages are left out, which ``tally`` tells, unless all of them are.
    """
    several = files_of(path, wanted, tally)
    left_out = 0
    for files in several:
        if len(files) == 2:
            yield from read_two_files(*files, tally, corpus)
            continue
        any_read = False
        try:
            for pair in read_pair_file(files[0], wanted, tally, corpus):
                any_read = True
                yield pair
        except OtherLanguages:
            left_out += 1
            if any_read or left_out == len(several):
                raise
            tally.leave(files[0])


def files_of(path: str, wanted: Wanted, tally: Tally | None = None) -> list[Files]:
    """The files of a name: one that holds both sides, or two of aligned text.

    A folder stands for all that is in it and that is known, also deeper; a pattern such as ``data/*.tmx`` for
    what fits it; and ``corpus/train`` for ``corpus/train.en`` and ``corpus/train.de``. DataError where there
    is nothing, or parts of a corpus that must not be mixed.
    """
    place = Path(path)
    if path == "-" or place.is_file():
        return [(path,)]
    if place.is_dir():
        return _in_folder(place, wanted, tally)
    if has_magic(path):
        found = sorted(name for name in glob(path, recursive=True) if Path(name).is_file())
        if not found:
            raise DataError(f"{path}: no file fits this pattern; check it, or name the files")
        return _sorted_out([Path(name) for name in found], path, wanted, tally)
    beside = [
        one for one in place.parent.glob("*") if one.name.startswith(f"{place.name}.") and one.is_file()
    ]
    texts = {str(place): _by_stem(beside).get(str(place), {})}
    both = _text_pairs(texts, wanted).get(str(place))
    if both is None:
        if len(texts[str(place)]) > 1:
            raise _in_others(path, texts, wanted)
        raise DataError(f"{path}: no such file or folder, and no two texts that begin so; check the path")
    return [both]


def _in_folder(folder: Path, wanted: Wanted, tally: Tally | None) -> list[Files]:
    if (state := folder / "state.json").is_file():  # one part of a dataset that Hugging Face's library saved
        try:
            names = [str(part["filename"]) for part in json.loads(state.read_bytes())["_data_files"]]
        except (OSError, ValueError, KeyError, TypeError):
            raise DataError(
                f"{state}: does not name the files of the dataset; save the dataset again"
            ) from None
        return [(str(folder / Path(name).name),) for name in names]
    found = sorted(
        one
        for one in folder.rglob("*")
        if one.is_file() and not any(part.startswith(".") for part in one.relative_to(folder).parts)
    )
    return _sorted_out(found, str(folder), wanted, tally)


def _sorted_out(found: list[Path], said: str, wanted: Wanted, tally: Tally | None) -> list[Files]:
    """What can be read of these, in order; what cannot is told."""
    files: list[Files] = [(str(one),) for one in found if _known(one)]
    rest = [one for one in found if not _known(one)]
    texts = _by_stem(rest)
    pairs = _text_pairs(texts, wanted)
    files += pairs.values()
    taken = {name for both in pairs.values() for name in both}
    if not files:
        if any(len(names) > 1 for names in texts.values()):
            raise _in_others(said, texts, wanted)
        names = ", ".join(one.name for one in found[:5]) or "nothing"
        raise DataError(f"{said}: holds no parallel text that is known by its name: {names}; name the files")
    found_parts = [_part(both[0], said) for both in files]
    parts = set(filter(None, found_parts))
    if len(parts) > 1 and ("train" in parts or all(found_parts)):
        raise DataError(
            f"{said}: holds several parts of a corpus: {', '.join(sorted(parts))}; name one of them, as a "
            "folder, a file or a pattern such as 'data/train*'"
        )
    if tally is not None:
        left = [one.name for one in rest if str(one) not in taken]
        if left:
            shown = ", ".join(left[:3]) + (", ..." if len(left) > 3 else "")
            told = f"{len(files):,} read, {len(left):,} not, of no known format or other languages: {shown}"
            tally.choose(said, told)
    return sorted(files)


def _part(file: str, said: str) -> str:
    """The part of a corpus that the name of a file tells, below what was named; "" where it tells none."""
    inside = Path(file)
    if Path(said).is_dir():
        inside = inside.relative_to(said)
    found = _PART.search(inside.as_posix())
    return found[1].lower() if found else ""


def _known(path: Path) -> bool:
    if path.name in ("dataset_dict.json", "dataset_info.json", "state.json"):
        return False
    if Path(bare_name(path)).suffix.lower() == ".xml":
        return not (root := root_of(path)) or root in ROOTS
    return bool(format_of(path))


def _by_stem(files: list[Path]) -> dict[str, dict[str, str]]:
    """Text files that differ in their language only: by what they have in common, then by their languages."""
    groups: dict[str, dict[str, str]] = {}
    for one in files:
        stem, dot, language = bare_name(one).rpartition(".")
        if dot and is_language(language):
            groups.setdefault(str(one.parent / stem), {})[language] = str(one)
    return groups


def _in_others(said: str, groups: dict[str, dict[str, str]], wanted: Wanted) -> OtherLanguages:
    there = sorted({language for texts in groups.values() for language in texts})
    return OtherLanguages(
        f"{said}: has no text in {wanted.names} with its translation; its languages are: {', '.join(there)}; "
        f"{REMEDY}"
    )


def _text_pairs(groups: dict[str, dict[str, str]], wanted: Wanted) -> dict[str, tuple[str, str]]:
    """Source and target file of each group that has both."""
    found = {}
    for stem, texts in groups.items():
        if (both := _two(list(texts), stem, wanted)) is not None:
            found[stem] = (texts[both[0]], texts[both[1]])
    return found


def _two(languages: list[str], stem: str, wanted: Wanted) -> tuple[str, str] | None:
    """Source and target among the languages of a text; None where there is one only."""
    if len(languages) < 2:
        return None
    sources = [one for one in languages if wanted.source and agreement(one, wanted.source)]
    targets = [one for one in languages if wanted.target and agreement(one, wanted.target)]
    if not sources and len(targets) == 1 and len(languages) == 2 and not wanted.source:
        sources = [one for one in languages if one not in targets]
    if not targets and len(sources) == 1 and len(languages) == 2 and not wanted.target:
        targets = [one for one in languages if one not in sources]
    if wanted.both and not (sources and targets):
        return None
    if len(sources) != 1 or len(targets) != 1:
        asked = f", and {wanted.names} is wanted" if wanted.names else ""
        raise DataError(f"{stem}: is there in {', '.join(sorted(languages))}{asked}; {REMEDY}")
    return sources[0], targets[0]
