"""From the files of a ``DataConfig`` to a tokenizer, token shards and a report; re-used when nothing changed.

The folder then holds ``tokenizer.model``, the shards ``train/`` and ``valid/``, the validation text
``valid.jsonl``, and ``prepared.json``, which is written last and says from what the rest was made.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transduce.data.config import DataConfig
from transduce.data.corpora import (
    choose_held_out,
    count_pairs,
    files_in,
    identity,
    read_corpora,
    without,
)
from transduce.data.formats.pair import Pair
from transduce.data.formats.tally import Tally
from transduce.data.report import Report
from transduce.data.shards import TokenShards, write_shards
from transduce.data.streams import COMPRESSIONS
from transduce.data.tokenizer import Tokenizer
from transduce.errors import ConfigError, DataError
from transduce.files import atomic_writer, check_free, write_json

FORMAT = 1
_PACKED = (*COMPRESSIONS, ".parquet")
PARTS = ("tokenizer.model", "train", "valid", "valid.jsonl", "prepared.json")


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
    reused: bool = False
    """Nothing was done: the folder already held this."""

    def lines(self) -> list[str]:
        """The reports of both sets for the log."""
        return [f"training: {line}" for line in self.report.lines()] + [
            f"validation: {line}" for line in self.valid_report.lines()
        ]


def prepare(
    config: DataConfig,
    folder: str | Path,
    *,
    max_length: int,
    seed: int,
    unchanged: bool = False,
    keep_tokenizer: bool = False,
    say: Callable[[str], None] = lambda line: None,
) -> Prepared:
    """The prepared data in ``folder``; files and settings that agree with what is there are not read again.

    ``config.max_length`` goes before ``max_length``, the model's. ``say`` gets a line before each long step.
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
    wanted = _identity(config, limit, seed)
    made_from = _made_from(folder)
    if unchanged and made_from is not None and made_from != wanted:
        changed = sorted(name for name in wanted if wanted[name] != made_from.get(name))
        files = sorted(
            {file["name"] for name in changed for file in _differing(wanted[name], made_from.get(name))}
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
            return open_prepared(folder)
    kept = folder / "tokenizer.model"
    tokenizer = Tokenizer.load(kept) if keep_tokenizer and not config.tokenizer and kept.exists() else None
    try:
        folder.mkdir(parents=True, exist_ok=True)
        check_free(folder, _room(config), "make room, or choose another output folder")
        (folder / "prepared.json").unlink(missing_ok=True)
        prepared = _prepare(config, folder, limit, seed, say, tokenizer)
        write_json(folder / "prepared.json", wanted)
    except OSError as error:
        raise DataError(f"{folder}: cannot be written: {error.strerror or error}") from None
    return prepared


def _room(config: DataConfig) -> int:
    """About the most bytes that shards will take: two a token, which has seldom less than two characters."""
    names = (*config.source, *config.target, *config.tsv, *config.valid_source, *config.valid_target)
    for files in files_in((*config.pairs, *config.validation), config.wanted):
        names += tuple(files)
    sizes = ((Path(name).stat().st_size, Path(name).suffix in _PACKED) for name in names)
    return sum(size * (4 if packed else 1) for size, packed in sizes)


def _differing(wanted: Any, made_from: Any) -> list[dict[str, Any]]:
    """The files of one group of identities that are new or have changed; none where it is a plain setting."""
    if not isinstance(wanted, list) or not isinstance(made_from, list):
        return []
    before = [file for group in made_from for file in group]
    return [file for group in wanted for file in group if file not in before]


def _prepare(
    config: DataConfig,
    folder: Path,
    limit: int,
    seed: int,
    say: Callable[[str], None],
    tokenizer: Tokenizer | None = None,
) -> Prepared:
    files = (config.source, config.target, config.tsv, config.pairs, config.wanted)
    valid_files = (config.valid_source, config.valid_target, config.valid_tsv, config.validation)
    tally = Tally()
    count = count_pairs(*files, tally)
    held_out: list[Pair] = []
    if not count:
        told = "".join(f"; {line}" for line in tally.lines())
        raise DataError(f"{', '.join(config.corpora)}: no pairs at all; name files with text{told}")
    if any(valid_files):
        count_pairs(*valid_files, config.wanted, tally)
        valid_pairs = list(read_corpora(*valid_files, config.wanted))
    else:
        wanted = config.valid_pairs or automatic_valid_pairs(count)
        say(f"choosing {wanted:,} of {count:,} pairs for validation")
        valid_pairs = held_out = choose_held_out(read_corpora(*files), wanted, seed)
    for line in tally.lines():
        say(line)
    if held_out and next(without(read_corpora(*files), held_out), None) is None:
        raise DataError(
            f"{', '.join(config.corpora)}: all {count:,} pairs are held out for validation, "
            "or repeat one that is; give more pairs, or validation files"
        )
    tokenizer = tokenizer or _tokenizer(config, without(read_corpora(*files), held_out), count, seed, say)
    tokenizer.save(folder / "tokenizer.model")
    say(f"turning {count:,} pairs into tokens")
    report, valid_report = Report(limit=limit, held_out=len(held_out)), Report(limit=limit)
    pairs = without(read_corpora(*files), held_out, report)
    train = write_shards(pairs, tokenizer, folder / "train", report, corpus=_train_files(config))
    valid = write_shards(valid_pairs, tokenizer, folder / "valid", valid_report, corpus=_valid_files(config))
    valid_pairs = [pair for pair in valid_pairs if pair.source.strip() and pair.target.strip()]
    _write_pairs(folder / "valid.jsonl", valid_pairs)
    return Prepared(
        tokenizer=tokenizer,
        train=train,
        valid=valid,
        valid_pairs=valid_pairs,
        report=report,
        valid_report=valid_report,
    )


def open_prepared(folder: str | Path) -> Prepared:
    """What ``prepare`` left in ``folder``; DataError where parts are missing or do not agree."""
    folder = Path(folder)
    if _made_from(folder) is None:
        raise DataError(f"{folder}: holds no prepared data; prepare it first")
    tokenizer = Tokenizer.load(folder / "tokenizer.model")
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
        valid_pairs=_read_pairs(folder / "valid.jsonl"),
        report=Report(**train.meta["report"]),
        valid_report=Report(**valid.meta["report"]),
        reused=True,
    )


def automatic_vocabulary(pairs: int) -> int:
    """A joint vocabulary size that suits so many pairs; the paper has 37,000 for 4.5 million."""
    for limit, size in ((10_000, 4_000), (200_000, 8_000), (1_000_000, 16_000), (3_000_000, 24_000)):
        if pairs < limit:
            return size
    return 37_000


def automatic_valid_pairs(pairs: int) -> int:
    """How many pairs to hold out: one in twenty, at most 1,000."""
    return max(1, min(1_000, pairs // 20))


def _identity(config: DataConfig, limit: int, seed: int) -> dict[str, Any]:
    """Everything that decides what the prepared data are, as JSON holds it."""
    several = config.pairs or config.validation
    return {
        "format": FORMAT,
        "train": _train_files(config),
        "valid": _valid_files(config),
        "tokenizer": identity((config.tokenizer,) if config.tokenizer else ()),
        "vocabulary": config.vocabulary,
        "subwords": config.subwords,
        "tokenizer_sample": config.tokenizer_sample,
        "valid_pairs": config.valid_pairs,
        "max_length": limit,
        "seed": seed,
        **({"languages": [config.source_language, config.target_language]} if several else {}),
    }


def _train_files(config: DataConfig) -> list[list[dict[str, Any]]]:
    """What tells the training files from others; those of each of ``pairs`` follow the three kinds."""
    return identity(config.source, config.target, config.tsv, *files_in(config.pairs, config.wanted))


def _valid_files(config: DataConfig) -> list[list[dict[str, Any]]]:
    files = (config.valid_source, config.valid_target, config.valid_tsv)
    return identity(*files, *files_in(config.validation, config.wanted))


def _made_from(folder: Path) -> dict[str, Any] | None:
    try:
        found: dict[str, Any] = json.loads((folder / "prepared.json").read_bytes())
    except (OSError, ValueError):
        return None
    return found


def _tokenizer(
    config: DataConfig, pairs: Iterator[Pair], count: int, seed: int, say: Callable[[str], None]
) -> Tokenizer:
    if config.tokenizer:
        return Tokenizer.load(config.tokenizer)
    size = config.vocabulary or automatic_vocabulary(count)
    say(f"learning {size:,} {config.subwords} subwords")
    return Tokenizer.train(
        (text for pair in pairs for text in (pair.source, pair.target)),
        size,
        subwords=config.subwords,
        sample=config.tokenizer_sample,
        seed=seed,
        strict=config.vocabulary > 0,
    )


def _write_pairs(path: Path, pairs: list[Pair]) -> None:
    with atomic_writer(path) as file:
        for pair in pairs:
            file.write(json.dumps(pair._asdict()).encode() + b"\n")


def _read_pairs(path: Path) -> list[Pair]:
    try:
        return [Pair(**json.loads(line)) for line in path.read_bytes().split(b"\n") if line]
    except (OSError, ValueError, TypeError):
        raise DataError(f"{path}: is missing or damaged; prepare the data again") from None
