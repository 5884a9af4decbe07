"""What a run is made of: data, model, optimizer, batches, checkpoints, trainer. Read it top to bottom."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

import transduce
from transduce import machine
from transduce.config import Settings
from transduce.counts import counted
from transduce.data.batching import Batching
from transduce.data.prepare import Prepared
from transduce.data.shards import TokenShards
from transduce.errors import ConfigError, TrainingError, UsageError
from transduce.model.config import ModelConfig
from transduce.model.transformer import Transformer
from transduce.training.changing import ChangingWeights, lines_of, mixture_of
from transduce.training.checkpoint import Checkpoints
from transduce.training.compiled import compiled
from transduce.training.distributed import Workers
from transduce.training.finish import finish
from transduce.training.folder import begin, check_space, clear_leftovers, disk_error, locked, settle
from transduce.training.guided import guided
from transduce.training.log import RunLog, duration
from transduce.training.optimizer import adam
from transduce.training.pace import pace
from transduce.training.parallel import learner
from transduce.training.rehearsal import ShardedTrial
from transduce.training.resume import basis, go_on
from transduce.training.settings import RunSettings, with_absolute_paths
from transduce.training.start import Start, with_own_tokenizer
from transduce.training.tensorboard import TensorBoard
from transduce.training.together import describe_workers, prepare_together, validate_together
from transduce.training.trainer import Trainer
from transduce.training.trial import Trial, fitting_micro_batch, try_largest
from transduce.training.validation import first_of_each, validate
from transduce.training.varied import longest, shares_of, varied

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


class Run:
    """One run of training: decided settings in, a model folder out.

    ``device`` is chosen; with several workers each has a Run of its own, and worker 0 alone writes files.
    ``asked`` is what was said of the settings, from which a run that is killed before its first update begins
    again.
    """

    def __init__(
        self,
        settings: RunSettings,
        folder: Path,
        device: str,
        log: RunLog,
        workers: Workers,
        *,
        asked: Settings,
        prepare_only: bool = False,
    ) -> None:
        self.asked, self.prepare_only = asked, prepare_only
        self.settings, self.folder, self.device, self.log = settings, folder, device, log
        self.workers = workers
        self.config = settings.training
        self.precision = machine.pick_precision(self.config.precision, device)

    def start(
        self, origin: Start | None, *, resume: bool, accept: bool, accepted: Sequence[str]
    ) -> TrainingResult:
        """The result of training in the folder, which no other process may use meanwhile.

        ``origin`` is the model that a new run starts from; ``accept`` allows changes in a run that goes on,
        of which ``accepted`` are to be said. Raises TrainingError where the disk refuses.
        """
        folder = self.folder
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(
                f"{folder}: cannot be made ({error.strerror}); choose another --output"
            ) from error
        with locked(folder) if self.workers.primary else nullcontext():
            try:
                if not resume:
                    self.workers.first(lambda: begin(folder, with_absolute_paths(self.asked)))
                self.workers.first(lambda: clear_leftovers(folder))
                for line in accepted:
                    self.log.say(f"accepted: {line}")
                return self._train(origin, resume=resume, accept=accept)
            except BrokenPipeError:  # whoever reads what is said has left
                raise
            except OSError as error:
                raise disk_error(folder, error) from error

    def _train(self, origin: Start | None, *, resume: bool, accept: bool) -> TrainingResult:
        config, say = self.config, self.log.say
        self.workers.connect(self.device, config.timeout_minutes)
        machine.set_threads(self.workers.threads(config.threads))
        checkpoints = Checkpoints(self.folder / "checkpoints", keep=config.average, workers=self.workers)
        self.workers.first(checkpoints.recover)
        for line in self.settings.chosen:
            say(f"chosen: {line}")
        data = self._prepared(origin, checkpoints, resume=resume, accept=accept)
        if self.prepare_only:
            say(f"the data are prepared in {self.folder / 'data'}; train with the same command and --output")
            return TrainingResult(self.folder, "the data are prepared", 0, 0.0, {})
        torch.manual_seed(config.seed)
        model = self._model(self.settings.model_config(data.tokenizer.vocabulary))
        model.recompute(config.recompute_layers)
        batching = self._batching(data.train)
        self._describe(model, data, batching, checkpoints)
        batching = self._tried(model, data, batching)
        layers = compiled(model, device=self.device, precision=self.precision) if config.compile else None
        learns = learner(model, self.workers, how=config.parallel, device=self.device)
        learns.compiled = layers
        optimizer = adam(model, config)
        if origin is not None:
            origin.load(model, optimizer)
        trainer = Trainer(
            learns,
            optimizer,
            data.train,
            dataclasses.replace(self.config, precision=self.precision),
            batching=batching,
            checkpoints=checkpoints,
            log=self.log,
            validate=lambda: validate_together(
                learns,
                lambda whole: validate(
                    whole,
                    data.tokenizer,
                    data.valid,
                    first_of_each(data.valid_pairs, config.valid_lines),
                    device=self.device,
                    precision=self.precision,
                ),
            ),
        )
        self._shape(trainer, data, model)
        if self.settings.data.later_weights:
            trainer.weights = ChangingWeights(self.settings.data)
        trainer.basis = basis(self.folder / "data", data.tokenizer, self.settings, batching.blocks)
        resumed = resume and go_on(trainer, trainer.basis, accept=accept)
        if config.tensorboard and self.workers.primary:
            after = trainer.progress.step if resume else None
            self.log.mirror = TensorBoard(self.folder / "tensorboard", after=after)
        if not resumed:
            self._begin(origin, trainer, data)
        if self.workers.primary:
            settle(self.folder, with_absolute_paths(self.settings.as_dict()))
        if (over := trainer.over()) is not None:
            say(f"nothing is left to train: {over}; raise that limit to go on")
        reason = trainer.run()
        p = trainer.progress
        say(f"training ended: {reason}; {counted(p.step, 'update')} in {duration(p.seconds)}")
        scores = self.workers.first(
            lambda: finish(trainer, data, self.settings, self.folder, reason=reason, log=self.log)
        )
        return TrainingResult(self.folder, reason, p.step, p.seconds, scores, trainer.interrupted)

    def _shape(self, trainer: Trainer, data: Prepared, model: Transformer) -> None:
        """Nothing; the trainer knows what guides the attention, and what varies from update to update."""
        trainer.guided = guided(data, model, self.config)
        trainer.varied = varied(data, model, self.config, self.workers, self.log.say, trainer.guided)

    def _prepared(
        self, origin: Start | None, checkpoints: Checkpoints, *, resume: bool, accept: bool
    ) -> Prepared:
        with pace(self.log) as tell:
            data = prepare_together(
                self.workers,
                with_own_tokenizer(self.settings, self.folder, origin if self.workers.primary else None),
                self.folder / "data",
                max_length=self.settings.model.get("max_length", ModelConfig.max_length),
                seed=self.config.seed,
                unchanged=resume and not accept,
                keep_tokenizer=resume and checkpoints.newest() is not None,
                say=self.log.say,
                tell=tell,
            )
        for line in data.lines():
            self.log.say(line)
        if not len(data.train):
            raise ConfigError("no training pairs are left; give more data or a larger data.max_length")
        return data

    def _begin(self, origin: Start | None, trainer: Trainer, data: Prepared) -> None:
        if origin is not None:
            origin.begin(trainer, data.report, self.log.say)
        elif self.settings.start:
            raise TrainingError(
                f"{trainer.checkpoints.folder}: its checkpoints are gone, and with them what the run started "
                "from; start anew with --from and --overwrite"
            )

    def _batching(self, shards: TokenShards) -> Batching:
        config, data = self.config, self.settings.data
        mixed = mixture_of(data, shards.corpora, config.seed)
        for line in lines_of(mixed, data) if mixed is not None else []:
            self.log.say(line)
        return Batching(
            shards.source_lengths,
            shards.target_lengths,
            batch_tokens=config.batch_tokens,
            micro_batch_tokens=config.micro_batch_tokens,
            seed=config.seed,
            mixture=mixed,
            grown=longest(config, shards) if shares_of(config) else 0,
        )

    def _tried(self, model: Transformer, data: Prepared, batching: Batching) -> Batching:
        """The batches of this run, of which the largest fits in memory; ConfigError where it does not."""
        config = self.config
        if config.fit_micro_batch:
            found = fitting_micro_batch(self._trial(model, batching))
            self.log.say(f"chosen: training.micro_batch_tokens = {found}, the most that fits in memory")
            self.config = dataclasses.replace(config, micro_batch_tokens=found, fit_micro_batch=False)
            self.settings = dataclasses.replace(self.settings, training=self.config)
            batching = self._batching(data.train)
        try_largest(self._trial(model, batching), batching.micro_batch_tokens)
        return batching

    def _trial(self, model: Transformer, batching: Batching) -> Trial:
        config, workers = self.config, self.workers
        if workers.count > 1 and config.parallel == "sharded":
            return ShardedTrial(model, batching, config, precision=self.precision, workers=workers)
        optimizer = adam(model, config)
        return Trial(model, optimizer, batching, config, precision=self.precision, workers=workers)

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
        first, parameters = batching.block(0, 0), model.parameter_count()
        updates = len(first) * batching.blocks
        source, target = (tokens / len(first) for tokens in batching.tokens(first))
        say(
            f"model {self.settings.preset}{self.settings.reshaped()}: {parameters:,} parameters, "
            f"vocabulary {data.tokenizer.vocabulary:,}; "
            f"{self.device}, {self.precision}, {counted(torch.get_num_threads(), 'thread')}"
        )
        say(
            f"an update sees about {source:,.0f} source and {target:,.0f} target tokens; "
            f"{'about ' if batching.blocks > 1 else ''}{counted(updates, 'update')} an epoch"
        )
        for line in describe_workers(self.workers, config, batching):
            say(line)
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
                "workers": self.workers.count,
                "data": data.report.to_dict(),
            },
        )
