"""`train`: from settings to a model folder. Read top to bottom, it tells which object is made of which."""

from __future__ import annotations

import dataclasses
import os
import shutil
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import torch

import transduce
from transduce import machine
from transduce.config import Settings, merge
from transduce.data.batching import Batching
from transduce.data.corpora import count_pairs
from transduce.data.prepare import Prepared
from transduce.errors import ConfigError, TrainingError, UsageError
from transduce.files import write_json
from transduce.model.config import ModelConfig
from transduce.model.transformer import Transformer
from transduce.training.checkpoint import Checkpoints
from transduce.training.distributed import Workers, joined
from transduce.training.finish import finish
from transduce.training.folder import check_room, locked, make_room
from transduce.training.log import RunLog, duration
from transduce.training.optimizer import adam
from transduce.training.parallel import learner
from transduce.training.settings import (
    RunSettings,
    check_sections,
    differences,
    expand,
    resolve,
    stored_settings,
    with_absolute_paths,
)
from transduce.training.together import describe_workers, prepare_together, validate_together
from transduce.training.trainer import Trainer
from transduce.training.validation import validate

PAPER_TOKENS, FEW_TOKENS = 25_000, 15_000


@dataclass(frozen=True)
class TrainingResult:
    """Where the model is, why training ended, and its scores on the validation set."""

    folder: Path
    reason: str
    steps: int
    seconds: float
    scores: dict[str, Any]
    interrupted: int | None = None


def train(
    output: str | Path,
    *,
    source: str | Path | Sequence[str | Path] = (),
    target: str | Path | Sequence[str | Path] = (),
    preset: str = "",
    settings: Mapping[str, Any] | None = None,
    resume: bool = False,
    overwrite: bool = False,
    stream: IO[str] | None = None,
) -> TrainingResult:
    """The result of a run whose model folder is ``output``.

    ``settings`` holds what a TOML file holds, nested or with dotted names: ``{"training.max_steps": 1000}``.
    What is not said is chosen from the amount of data and said on ``stream`` (default: stderr). ``resume``
    goes on from the newest checkpoint in ``output``. Raises ConfigError, DataError, TrainingError.
    """
    folder = Path(output)
    files: Settings = {"source": _names("source", source), "target": _names("target", target)}
    flags: Settings = {
        "data": {n: v for n, v in files.items() if v},
        **({"preset": preset} if preset else {}),
    }
    given = merge(expand(settings or {}), flags)
    if resume and overwrite:
        raise UsageError("--resume goes on with a run and --overwrite replaces it: give one of them")
    with joined() as workers:
        stored = workers.first(lambda: _stored(folder, resume, workers))
        resume = bool(stored)
        given = merge(stored, given)
        data = check_sections(given)
        if not resume:
            workers.first(lambda: check_room(folder, overwrite=overwrite))
        device = workers.device(given.get("training", {}).get("device", "auto"))
        pairs = workers.first(lambda: count_pairs(data.source, data.target, data.tsv))
        run = resolve(given, pairs=pairs, device=device)
        workers.check_same(run.as_dict())
        if changed := differences(stored, run.as_dict()) if stored else []:
            raise ConfigError(f"this would be another run than the one in {folder}: {'; '.join(changed)}")
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(
                f"{folder}: cannot be made ({error.strerror}); choose another --output"
            ) from error
        with locked(folder) if workers.primary else nullcontext():
            if not resume:
                workers.first(lambda: make_room(folder))
            log = (
                RunLog(folder / "log.jsonl", stream)
                if workers.primary
                else RunLog(os.devnull, stream, quiet=True)
            )
            return _Run(run, folder, device, log, workers).train(resume=resume)


def _stored(folder: Path, resume: bool, workers: Workers) -> Settings:
    """The settings of the run that goes on; empty for a new one.

    A launcher starts again with the command that it began with: --resume then also begins.
    """
    if not resume or (workers.launched and not (folder / "settings.json").exists()):
        return {}
    return stored_settings(folder)


def _names(side: str, files: str | Path | Sequence[str | Path]) -> list[str]:
    names = [files] if isinstance(files, str | Path) else files
    if not isinstance(names, Sequence) or not all(isinstance(name, str | Path) for name in names):
        raise UsageError(f"{side} is {files!r}; it must be the name of a file, or a list of names")
    return [str(name) for name in names]


class _Run:
    def __init__(
        self, settings: RunSettings, folder: Path, device: str, log: RunLog, workers: Workers
    ) -> None:
        self.settings, self.folder, self.device, self.log = settings, folder, device, log
        self.workers = workers
        self.config = settings.training
        self.precision = machine.pick_precision(self.config.precision, device)

    def train(self, *, resume: bool) -> TrainingResult:
        config, say = self.config, self.log.say
        self.workers.connect(self.device, config.timeout_minutes)
        machine.set_threads(self.workers.threads(config.threads))
        for line in self.settings.chosen:
            say(f"chosen: {line}")
        data = prepare_together(
            self.workers,
            self.settings.data,
            self.folder / "data",
            max_length=self.settings.model.get("max_length", ModelConfig.max_length),
            seed=config.seed,
            unchanged=resume,
            say=say,
        )
        for line in data.lines():
            say(line)
        if not len(data.train):
            raise ConfigError("no training pairs are left; give more data or a larger data.max_length")
        torch.manual_seed(config.seed)
        model = self._model(self.settings.model_config(data.tokenizer.vocabulary))
        learns = learner(model, self.workers, how=config.parallel, device=self.device)
        optimizer = adam(model, config)
        batching = Batching(
            data.train.source_lengths,
            data.train.target_lengths,
            batch_tokens=config.batch_tokens,
            micro_batch_tokens=config.micro_batch_tokens,
            seed=config.seed,
        )
        checkpoints = Checkpoints(self.folder / "checkpoints", keep=config.average, workers=self.workers)
        self._describe(model, data, batching, checkpoints)
        trainer = Trainer(
            learns,
            optimizer,
            data.train,
            dataclasses.replace(config, precision=self.precision),
            batching=batching,
            checkpoints=checkpoints,
            log=self.log,
            validate=lambda: validate_together(
                learns,
                lambda whole: validate(
                    whole,
                    data.tokenizer,
                    data.valid,
                    data.valid_pairs[: config.valid_lines],
                    device=self.device,
                    precision=self.precision,
                ),
            ),
        )
        if resume and trainer.resume():
            say(f"resuming after update {trainer.progress.step:,}")
        if self.workers.primary:
            write_json(self.folder / "settings.json", with_absolute_paths(self.settings.as_dict()))
        if (over := trainer.over()) is not None:
            say(f"nothing is left to train: {over}; raise that limit to go on")
        reason = trainer.run()
        p = trainer.progress
        say(f"training ended: {reason}; {p.step:,} updates in {duration(p.seconds)}")
        scores = self.workers.first(
            lambda: finish(trainer, data, self.settings, self.folder, reason=reason, log=self.log)
        )
        return TrainingResult(self.folder, reason, p.step, p.seconds, scores, trainer.interrupted)

    def _model(self, config: ModelConfig) -> Transformer:
        try:
            return Transformer(config).to(self.device)
        except (RuntimeError, MemoryError) as error:
            raise ConfigError(
                f"a model with d_model {config.d_model} and d_ff {config.d_ff} does not fit in the memory of "
                f"{self.device}; choose a smaller one"
            ) from error

    def _describe(
        self, model: Transformer, data: Prepared, batching: Batching, checkpoints: Checkpoints
    ) -> None:
        config, say = self.config, self.log.say
        updates, parameters = len(batching.epoch(0)), model.parameter_count()
        lengths = data.train.source_lengths, data.train.target_lengths
        source, target = (int(side.sum()) / updates for side in lengths)
        say(
            f"model {self.settings.preset}: {parameters:,} parameters, "
            f"vocabulary {data.tokenizer.vocabulary:,}; "
            f"{self.device}, {self.precision}, {torch.get_num_threads()} threads"
        )
        say(
            f"an update sees about {source:,.0f} source and {target:,.0f} target tokens; "
            f"{updates:,} updates an epoch"
        )
        for line in describe_workers(self.workers, config, batching):
            say(line)
        if self.settings.preset.startswith("paper") and min(source, target) < FEW_TOKENS:
            say(
                f"warning: the paper's updates see about {PAPER_TOKENS:,} tokens of each side; "
                "raise training.batch_tokens"
            )
        # Weights and Adam's two moments, for those kept, the best and the one being written.
        needed = 12 * parameters * (config.average + 2) / 2**20
        free = shutil.disk_usage(self.folder).free / 2**20
        say(f"checkpoints will take up to {needed:,.0f} MiB; {free:,.0f} MiB are free")
        if needed > free:
            raise TrainingError(
                f"{checkpoints.folder}: checkpoints need {needed:,.0f} MiB but {free:,.0f} MiB are free; "
                "make room, lower training.average or choose another --output"
            )
        self.log.write(
            "start",
            {
                "transduce": transduce.__version__,
                "settings": self.settings.as_dict(),
                "parameters": parameters,
                "device": self.device,
                "precision": self.precision,
                "source_tokens_per_update": source,
                "target_tokens_per_update": target,
                "updates_per_epoch": updates,
                "workers": self.workers.count,
                "data": data.report.to_dict(),
            },
        )
