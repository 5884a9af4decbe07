"""`train`: from settings to a model folder. Read top to bottom, it tells which object is made of which."""

from __future__ import annotations

import dataclasses
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
from transduce.data.mixing import mixture
from transduce.data.prepare import Prepared, prepare
from transduce.data.shards import TokenShards
from transduce.errors import ConfigError, TrainingError, UsageError
from transduce.files import write_json
from transduce.model.config import ModelConfig
from transduce.model.transformer import Transformer
from transduce.training.checkpoint import Checkpoints
from transduce.training.config import TrainingConfig
from transduce.training.deterministic import deterministic
from transduce.training.finish import finish
from transduce.training.folder import (
    check_room,
    check_space,
    clear_leftovers,
    disk_error,
    locked,
    make_room,
)
from transduce.training.log import RunLog, duration
from transduce.training.optimizer import adam
from transduce.training.resume import basis, changes, go_on
from transduce.training.settings import (
    RunSettings,
    check_sections,
    expand,
    resolve,
    stored_settings,
    with_absolute_paths,
)
from transduce.training.start import Start, start_of, with_own_tokenizer
from transduce.training.tensorboard import TensorBoard, check_tensorboard
from transduce.training.trainer import Trainer
from transduce.training.trial import Trial, fitting_micro_batch, try_largest
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


def train(  # noqa: PLR0913 - all but the first by name, as in the command line
    output: str | Path,
    *,
    source: str | Path | Sequence[str | Path] = (),
    target: str | Path | Sequence[str | Path] = (),
    preset: str = "",
    settings: Mapping[str, Any] | None = None,
    start: str | Path = "",
    resume: bool = False,
    overwrite: bool = False,
    accept_changes: bool = False,
    stream: IO[str] | None = None,
) -> TrainingResult:
    """The result of a run whose model folder is ``output``.

    ``settings`` holds what a TOML file holds, nested or with dotted names: ``{"training.max_steps": 1000}``.
    What is not said is chosen from the amount of data and said on ``stream`` (default: stderr). ``start``
    names a model folder, a run or a checkpoint, whose weights, shape and tokenizer the run starts from.
    ``resume`` goes on from the newest checkpoint in ``output``; ``accept_changes`` lets it go on with other
    data or settings than it began with. Raises ConfigError, DataError, TrainingError.
    """
    folder = Path(output)
    files: Settings = {"source": _names("source", source), "target": _names("target", target)}
    flags: Settings = {
        "data": {n: v for n, v in files.items() if v},
        **({"preset": preset} if preset else {}),
        **({"start": str(start)} if start else {}),
    }
    given = merge(expand(settings or {}), flags)
    if resume and overwrite:
        raise UsageError("--resume goes on with a run and --overwrite replaces it: give one of them")
    if accept_changes and not resume:
        raise UsageError("--accept-changes is about a run that goes on: give --resume as well")
    stored = stored_settings(folder) if resume else {}
    found, given, lines = start_of(given, folder, stored)
    given = merge(stored, given)
    data = check_sections(given)
    if not resume:
        check_room(folder, overwrite=overwrite)
    with deterministic(given.get("training", {}).get("deterministic", False)):
        device = machine.pick_device(given.get("training", {}).get("device", "auto"))
        pairs = count_pairs(data.source, data.target, data.tsv)
        resolved = resolve(given, pairs=pairs, device=device)
        resolved = dataclasses.replace(resolved, chosen=(*lines, *resolved.chosen))
        accepted = changes(stored, resolved, folder, accept=accept_changes) if stored else []
        if resolved.training.tensorboard:
            check_tensorboard()
        with closing(RunLog(folder / "log.jsonl", stream)) as log:
            run = _Run(resolved, folder, device, log, found)
            return run.start(resume=resume, accept=accept_changes, accepted=accepted)


def _names(side: str, files: str | Path | Sequence[str | Path]) -> list[str]:
    names = [files] if isinstance(files, str | Path) else files
    if not isinstance(names, Sequence) or not all(isinstance(name, str | Path) for name in names):
        raise UsageError(f"{side} is {files!r}; it must be the name of a file, or a list of names")
    return [str(name) for name in names]


class _Run:
    def __init__(
        self, settings: RunSettings, folder: Path, device: str, log: RunLog, origin: Start | None
    ) -> None:
        self.settings, self.folder, self.device, self.log = settings, folder, device, log
        self.origin = origin
        self.config = settings.training
        self.precision = machine.pick_precision(self.config.precision, device)

    def start(self, *, resume: bool, accept: bool, accepted: Sequence[str]) -> TrainingResult:
        folder = self.folder
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(
                f"{folder}: cannot be made ({error.strerror}); choose another --output"
            ) from error
        with locked(folder):
            try:
                if not resume:
                    make_room(folder)
                clear_leftovers(folder)
                for line in accepted:
                    self.log.say(f"accepted: {line}")
                return self.train(resume=resume, accept=accept)
            except BrokenPipeError:  # whoever reads what is said has left
                raise
            except OSError as error:
                raise disk_error(folder, error) from error

    def train(self, *, resume: bool, accept: bool) -> TrainingResult:
        config, say = self.config, self.log.say
        machine.set_threads(config.threads)
        checkpoints = Checkpoints(self.folder / "checkpoints", keep=config.average)
        checkpoints.recover()
        for line in self.settings.chosen:
            say(f"chosen: {line}")
        limit = self.settings.model.get("max_length", ModelConfig.max_length)
        data = prepare(
            with_own_tokenizer(self.settings, self.folder, self.origin),
            self.folder / "data",
            max_length=limit,
            seed=config.seed,
            unchanged=resume and not accept,
            keep_tokenizer=resume and checkpoints.newest() is not None,
            say=say,
        )
        for line in data.lines():
            say(line)
        if not len(data.train):
            raise ConfigError("no training pairs are left; give more data or a larger data.max_length")
        torch.manual_seed(config.seed)
        model = self._model(self.settings.model_config(data.tokenizer.vocabulary))
        model.recompute(config.recompute_layers)
        optimizer = adam(model, config)
        batching = self._batching(data.train)
        self._describe(model, data, batching, checkpoints)
        trial = Trial(model, optimizer, batching, config, precision=self.precision)
        if config.fit_micro_batch:
            config, batching = self._fitted(trial, data)
        try_largest(trial, batching.micro_batch_tokens)
        if self.origin is not None:
            self.origin.load(model, optimizer)
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
        trainer.basis = basis(self.folder / "data", data.tokenizer, self.settings)
        resumed = resume and go_on(trainer, trainer.basis, accept=accept)
        if config.tensorboard:
            after = trainer.progress.step if resume else None
            self.log.mirror = TensorBoard(self.folder / "tensorboard", after=after)
        if not resumed:
            self._begin(trainer, data)
        write_json(self.folder / "settings.json", with_absolute_paths(self.settings.as_dict()))
        if (over := trainer.over()) is not None:
            say(f"nothing is left to train: {over}; raise that limit to go on")
        reason = trainer.run()
        p = trainer.progress
        say(f"training ended: {reason}; {p.step:,} updates in {duration(p.seconds)}")
        scores = finish(trainer, data, self.settings, self.folder, reason=reason, log=self.log)
        return TrainingResult(self.folder, reason, p.step, p.seconds, scores, trainer.interrupted)

    def _begin(self, trainer: Trainer, data: Prepared) -> None:
        if self.origin is not None:
            self.origin.begin(trainer, data.report, self.log.say)
        elif self.settings.start:
            raise TrainingError(
                f"{trainer.checkpoints.folder}: its checkpoints are gone, and with them what the run started "
                "from; start anew with --from and --overwrite"
            )

    def _batching(self, shards: TokenShards) -> Batching:
        config, data, mixed = self.config, self.settings.data, None
        if data.weights:
            mixed = mixture(shards.corpora, data.weights, data.corpora, seed=config.seed)
            for line in mixed.lines(data.corpora):
                self.log.say(f"corpus {line}")
        return Batching(
            shards.source_lengths,
            shards.target_lengths,
            batch_tokens=config.batch_tokens,
            micro_batch_tokens=config.micro_batch_tokens,
            seed=config.seed,
            mixture=mixed,
        )

    def _fitted(self, trial: Trial, data: Prepared) -> tuple[TrainingConfig, Batching]:
        """The settings with the largest micro-batch that fits instead of the wish for it, and batches."""
        found = fitting_micro_batch(trial)
        self.log.say(f"chosen: training.micro_batch_tokens = {found}, the most that fits in memory")
        self.config = dataclasses.replace(self.config, micro_batch_tokens=found, fit_micro_batch=False)
        self.settings = dataclasses.replace(self.settings, training=self.config)
        return self.config, self._batching(data.train)

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
        first, parameters = batching.epoch(0), model.parameter_count()
        updates = len(first)
        source, target = (tokens / updates for tokens in batching.tokens(first))
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
        there = len(checkpoints.steps())
        values = parameters * (4 if config.ema else 3)  # the weights, Adam's two moments, the moving average
        say(check_space(self.folder, values, kept=config.average, there=there))
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
