"""`train`: from settings to a model folder. Read top to bottom, it tells which object is made of which."""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import torch

import transduce
from transduce import machine
from transduce.config import Settings, merge
from transduce.data.batching import Batching
from transduce.data.corpora import count_pairs
from transduce.data.prepare import Prepared, prepare
from transduce.errors import ConfigError, TrainingError, UsageError
from transduce.files import write_json
from transduce.model.config import ModelConfig
from transduce.model.transformer import Transformer
from transduce.training.checkpoint import Checkpoints
from transduce.training.finish import finish
from transduce.training.folder import check_room, locked, make_room
from transduce.training.log import RunLog, duration
from transduce.training.optimizer import adam
from transduce.training.settings import (
    RunSettings,
    check_sections,
    differences,
    expand,
    resolve,
    stored_settings,
    with_absolute_paths,
)
from transduce.training.tensorboard import TensorBoard, check_tensorboard
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
    stored = stored_settings(folder) if resume else {}
    given = merge(stored, given)
    if resume and overwrite:
        raise UsageError("--resume goes on with a run and --overwrite replaces it: give one of them")
    data = check_sections(given)
    if not resume:
        check_room(folder, overwrite=overwrite)
    device = machine.pick_device(given.get("training", {}).get("device", "auto"))
    pairs = count_pairs(data.source, data.target, data.tsv)
    run = resolve(given, pairs=pairs, device=device)
    if changed := differences(stored, run.as_dict()) if stored else []:
        raise ConfigError(f"this would be another run than the one in {folder}: {'; '.join(changed)}")
    if run.training.tensorboard:
        check_tensorboard()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{folder}: cannot be made ({error.strerror}); choose another --output") from error
    with locked(folder):
        if not resume:
            make_room(folder)
        with closing(RunLog(folder / "log.jsonl", stream)) as log:
            return _Run(run, folder, device, log).train(resume=resume)


def _names(side: str, files: str | Path | Sequence[str | Path]) -> list[str]:
    names = [files] if isinstance(files, str | Path) else files
    if not isinstance(names, Sequence) or not all(isinstance(name, str | Path) for name in names):
        raise UsageError(f"{side} is {files!r}; it must be the name of a file, or a list of names")
    return [str(name) for name in names]


class _Run:
    def __init__(self, settings: RunSettings, folder: Path, device: str, log: RunLog) -> None:
        self.settings, self.folder, self.device, self.log = settings, folder, device, log
        self.config = settings.training
        self.precision = machine.pick_precision(self.config.precision, device)

    def train(self, *, resume: bool) -> TrainingResult:
        config, say = self.config, self.log.say
        machine.set_threads(config.threads)
        for line in self.settings.chosen:
            say(f"chosen: {line}")
        limit = self.settings.model.get("max_length", ModelConfig.max_length)
        data = prepare(
            self.settings.data,
            self.folder / "data",
            max_length=limit,
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
        optimizer = adam(model, config)
        batching = Batching(
            data.train.source_lengths,
            data.train.target_lengths,
            batch_tokens=config.batch_tokens,
            micro_batch_tokens=config.micro_batch_tokens,
            seed=config.seed,
        )
        checkpoints = Checkpoints(self.folder / "checkpoints", keep=config.average)
        self._describe(model, data, batching, checkpoints)
        trainer = Trainer(
            model,
            optimizer,
            data.train,
            dataclasses.replace(config, precision=self.precision),
            batching=batching,
            checkpoints=checkpoints,
            log=self.log,
            validate=lambda: validate(
                model,
                data.tokenizer,
                data.valid,
                data.valid_pairs[: config.valid_lines],
                device=self.device,
                precision=self.precision,
            ),
        )
        if resume:
            if trainer.resume():
                say(f"resuming after update {trainer.progress.step:,}")
            self.log.write("resume", {"step": trainer.progress.step})
        if config.tensorboard:
            after = trainer.progress.step if resume else None
            self.log.mirror = TensorBoard(self.folder / "tensorboard", after=after)
        write_json(self.folder / "settings.json", with_absolute_paths(self.settings.as_dict()))
        if (over := trainer.over()) is not None:
            say(f"nothing is left to train: {over}; raise that limit to go on")
        reason = trainer.run()
        p = trainer.progress
        say(f"training ended: {reason}; {p.step:,} updates in {duration(p.seconds)}")
        scores = finish(trainer, data, self.settings, self.folder, reason=reason, log=self.log)
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
                "data": data.report.to_dict(),
            },
        )
