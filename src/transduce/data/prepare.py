"""From the files of a ``DataConfig`` to a tokenizer, token shards and a report; re-used when nothing changed.

The folder then holds ``tokenizer.model``, the shards ``train/`` and ``valid/``, the validation text
``valid.jsonl``, and ``prepared.json``, which is written last and says from what the rest was made.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transduce.data.cleaning.kept import FILES as CLEANING
from transduce.data.cleaning.kept import cleaning_lines
from transduce.data.config import LABELS, DataConfig
from transduce.data.corpora import count_pairs, files_in, identity
from transduce.data.formats.pair import Pair
from transduce.data.formats.tally import Tally
from transduce.data.journal import FILE as UNFINISHED
from transduce.data.journal import Journal
from transduce.data.preparation import TOKENIZER, VALID, Preparation, Say, Tell, filters_of, read_pairs
from transduce.data.report import Report
from transduce.data.seen import FILE as SEEN
from transduce.data.seen import Seen
from transduce.data.shard_writer import write_shards
from transduce.data.shards import TokenShards
from transduce.data.streams import COMPRESSIONS
from transduce.data.tokenizer import Tokenizer
from transduce.errors import ConfigError, DataError
from transduce.files import check_free, write_json

FORMAT = 1
_PACKED = (*COMPRESSIONS, ".parquet")
PARTS = (TOKENIZER, "train", "valid", VALID, "prepared.json", UNFINISHED, SEEN, *CLEANING)
# What a pair takes beside its tokens: an offset of 8 and a length of 4 bytes on either side.
_PAIR_BYTES = 24


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """All that training needs to know of the data."""

    tokenizer: Tokenizer
    train: TokenShards
    valid: TokenShards
    valid_pairs: list[Pair]
    """The validation set as text: of whole lines, so overlong pairs are in it, unlike in ``valid``."""
    report: Report
    valid_report: Report
    cleaning: Sequence[str] = ()
    """What cleaning did, a line each; none where it was not wanted."""
    reused: bool = False
    """Nothing was done: the folder already held this."""

    def lines(self) -> list[str]:
        """The reports of both sets for the log."""
        return [
            *(f"cleaning: {line}" for line in self.cleaning),
            *(f"training: {line}" for line in self.report.lines()),
            *(f"validation: {line}" for line in self.valid_report.lines()),
        ]


def prepare(
    config: DataConfig,
    folder: str | Path,
    *,
    max_length: int,
    seed: int,
    unchanged: bool = False,
    keep_tokenizer: bool = False,
    say: Say = lambda line: None,
    tell: Tell = lambda what, done, total: None,
) -> Prepared:
    """The prepared data in ``folder``; files and settings that agree with what is there are not read again.

    A preparation that was killed goes on where it was, and ends with the same bytes.
    ``config.max_length`` goes before ``max_length``, the model's. ``say`` gets a line before each long step,
    ``tell`` how far it is.
    ``unchanged`` refuses files or settings that differ from what the folder was made from; ``keep_tokenizer``
    prepares them anew with the tokenizer that is in the folder, unless the settings name one. Raises
    ConfigError where no training files are named, DataError for whatever is wrong in them.
    """
    folder = Path(folder)
    if not config.corpora:
        raise ConfigError(
            "no training files are named; give data.source and data.target, data.tsv or data.pairs"
        )
    limit = config.max_length or max_length
    seen = Seen(folder)
    wanted = _identity(config, limit, seed, seen)
    made_from = _made_from(folder)
    if unchanged and made_from is not None and made_from != wanted:
        names = {*wanted, *made_from}
        changed = sorted(name for name in names if wanted.get(name) != made_from.get(name))
        files = sorted(
            {file["name"] for name in changed for file in _differing(wanted.get(name), made_from.get(name))}
        )
        raise DataError(
            f"{folder}: this run began with other data: {', '.join(changed)} changed"
            f"{' (' + ', '.join(files) + ')' if files else ''}; restore the files and settings, start a new "
            "run, or go on with --accept-changes"
        )
    foreign = sorted(p.name for p in folder.glob("[!.]*") if p.name not in PARTS)
    if made_from is None and foreign:
        raise DataError(f"{folder}: holds {foreign[0]}, which no run wrote; choose another output folder")
    if made_from == wanted:
        with suppress(DataError):
            return _reused(folder, seen)
    kept = folder / TOKENIZER
    tokenizer = Tokenizer.load(kept) if keep_tokenizer and not config.tokenizer and kept.exists() else None
    if config.clean:
        filters_of(config)  # what is not installed is said before files are read
    try:
        folder.mkdir(parents=True, exist_ok=True)
        count = _counted(config, seen, say)
        needed = _room(config, count)
        say(f"the prepared data will take up to {needed / 2**20:,.0f} MiB of disk")
        check_free(folder, needed - _there(folder), "make room, or choose another output folder")
        seen.save(folder)
        journal = Journal(folder, wanted)
        (folder / "prepared.json").unlink(missing_ok=True)
        steps = Preparation(config, folder, journal, count=count, seed=seed, say=say, tell=tell)
        prepared = _prepare(steps, limit, wanted, tokenizer)
        write_json(folder / "prepared.json", wanted)
        journal.close()
    except OSError as error:
        raise DataError(f"{folder}: cannot be written: {error.strerror or error}") from None
    return prepared


def _reused(folder: Path, seen: Seen) -> Prepared:
    prepared = open_prepared(folder)
    with suppress(OSError):  # a folder that cannot be written to can be used
        (folder / UNFINISHED).unlink(missing_ok=True)
        if seen.changed:
            seen.save(folder)
    return prepared


def _counted(config: DataConfig, seen: Seen, say: Say) -> int:
    tally = Tally()
    count = count_pairs(*config.files, tally, seen)
    if not count:
        told = "".join(f"; {line}" for line in tally.lines())
        raise DataError(f"{', '.join(config.corpora)}: no pairs at all; name files with text{told}")
    count_pairs(*config.valid_files, tally, seen)
    for line in tally.lines():
        say(line)
    return count


def _room(config: DataConfig, count: int) -> int:
    """About the most bytes that shards will take: two a token, which has seldom less than two characters."""
    names = (*config.source, *config.target, *config.tsv, *config.valid_source, *config.valid_target)
    for files in (*files_in(config.pairs, config.wanted), *files_in(config.validation, config.valid_wanted)):
        names += tuple(files)
    sizes = ((Path(name).stat().st_size, Path(name).suffix in _PACKED) for name in names)
    return sum(size * (4 if packed else 1) for size, packed in sizes) + count * _PAIR_BYTES


def _there(folder: Path) -> int:
    """Bytes of shards that are there already and will be written over, or gone on with."""
    return sum(path.stat().st_size for path in (folder / "train").glob("*") if path.is_file())


def _differing(wanted: Any, made_from: Any) -> list[dict[str, Any]]:
    """The files of one group of identities that are new or have changed; none where it is a plain setting."""
    both = (wanted, made_from)
    if not all(isinstance(groups, list) and all(isinstance(g, list) for g in groups) for groups in both):
        return []
    before = [file for group in made_from for file in group]
    return [file for group in wanted for file in group if file not in before]


def _prepare(steps: Preparation, limit: int, wanted: dict[str, Any], kept: Tokenizer | None) -> Prepared:
    steps.clean()
    valid_pairs = steps.validation()
    tokenizer = steps.tokenizer(kept)
    report, valid_report = Report(limit=limit, held_out=len(steps.held_out)), Report(limit=limit)
    train = steps.shards(tokenizer, report, wanted["train"])
    valid = write_shards(valid_pairs, tokenizer, steps.folder / "valid", valid_report, corpus=wanted["valid"])
    return Prepared(
        tokenizer=tokenizer,
        train=train,
        valid=valid,
        valid_pairs=read_pairs(steps.folder / VALID),
        report=report,
        valid_report=valid_report,
        cleaning=cleaning_lines(steps.folder),
    )


def open_prepared(folder: str | Path) -> Prepared:
    """What ``prepare`` left in ``folder``; DataError where parts are missing or do not agree."""
    folder = Path(folder)
    if _made_from(folder) is None:
        raise DataError(f"{folder}: holds no prepared data; prepare it first")
    tokenizer = Tokenizer.load(folder / TOKENIZER)
    train, valid = TokenShards.open(folder / "train"), TokenShards.open(folder / "valid")
    for shards in (train, valid):
        if shards.meta["tokenizer"] != tokenizer.sha256:
            raise DataError(
                f"{shards.folder}: was made with another tokenizer than {folder / 'tokenizer.model'}; "
                "prepare the data again"
            )
    return Prepared(
        tokenizer=tokenizer,
        train=train,
        valid=valid,
        valid_pairs=read_pairs(folder / VALID),
        report=Report(**train.meta["report"]),
        valid_report=Report(**valid.meta["report"]),
        cleaning=cleaning_lines(folder),
        reused=True,
    )


def _identity(config: DataConfig, limit: int, seed: int, seen: Seen) -> dict[str, Any]:
    """Everything that decides what the prepared data are, as JSON holds it."""
    by_language = config.pairs or config.validation or config.clean
    return {
        "format": FORMAT,
        "train": _train_files(config, seen),
        "valid": _valid_files(config, seen),
        "tokenizer": identity((config.tokenizer,) if config.tokenizer else (), seen=seen),
        "vocabulary": config.vocabulary,
        "subwords": config.subwords,
        "tokenizer_sample": config.tokenizer_sample,
        "valid_pairs": config.valid_pairs,
        "max_length": limit,
        "seed": seed,
        **({"data.alignments": identity(config.alignments, seen=seen)} if config.alignments else {}),
        # Named only where there are any: what an older version prepared is still the same.
        **{f"data.{name}": list(getattr(config, name)) for name in LABELS if getattr(config, name)},
        **({"languages": [config.source_language, config.target_language]} if by_language else {}),
        **({"cleaning": dataclasses.asdict(config.cleaning)} if config.clean else {}),
    }


def _train_files(config: DataConfig, seen: Seen) -> list[list[dict[str, Any]]]:
    """What tells the training files from others; those of each of ``pairs`` follow the three kinds."""
    files = (config.source, config.target, config.tsv, *files_in(config.pairs, config.wanted))
    return identity(*files, seen=seen)


def _valid_files(config: DataConfig, seen: Seen) -> list[list[dict[str, Any]]]:
    files = (config.valid_source, config.valid_target, config.valid_tsv)
    return identity(*files, *files_in(config.validation, config.valid_wanted), seen=seen)


def _made_from(folder: Path) -> dict[str, Any] | None:
    try:
        found: dict[str, Any] = json.loads((folder / "prepared.json").read_bytes())
    except (OSError, ValueError):
        return None
    return found
