"""What a run starts from: weights, tokenizer and shape of a trained model, and Adam's moments where kept."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from transduce.bundle import load_bundle
from transduce.config import Settings, merge
from transduce.counts import counted
from transduce.data.config import DataConfig
from transduce.data.report import Report
from transduce.data.tokenizer import Tokenizer
from transduce.errors import ConfigError, TrainingError, UsageError
from transduce.model.config import ModelConfig
from transduce.training.averaging import config_and_tokenizer
from transduce.training.checkpoint import MOMENTS, Checkpoints, load_moments, load_parameters
from transduce.training.optimizer import paper_rate
from transduce.training.presets import FINE_TUNING, recipe
from transduce.training.settings import RunSettings, check_names
from transduce.training.trainer import Trainer

# What teaches a tokenizer: a model that was trained has its own.
_OF_TOKENIZERS = ("tokenizer", "vocabulary", "subwords", "tokenizer_sample")
# All else of the model's settings is its shape, or what its weights have learned to work with.
_MAY_CHANGE = ("dropout", "attention_dropout", "relu_dropout")
# With which the moments were made, and with which they go on.
_OF_ADAM = ("beta_1", "beta_2", "epsilon")
_OF_THE_SCHEDULE = ("schedule", "rate", "warmup")
# A rate for a model that is trained already: the paper's peak for its width, divided.
PEAK_WARMUP, RATE_DIVISOR = 4000, 10


@dataclass(frozen=True, kw_only=True)
class Start:
    """A trained model as the beginning of a run. ``moments`` and ``steps`` are Adam's where they are kept."""

    folder: Path
    config: ModelConfig
    tokenizer: Tokenizer
    weights: dict[str, Tensor]
    sha256: str
    recipe: Mapping[str, Any]
    """The training settings of the run that made the model, as far as they are known."""
    moments: dict[str, Tensor] | None = None
    steps: int = 0

    def load(self, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        """Nothing; the model has these weights, and Adam these moments where they are kept.

        They are given up here: a large model need not stay in memory twice.
        """
        load_parameters(self.folder, model, self.weights)
        self.weights.clear()
        if self.moments is not None:
            load_moments(model, optimizer, self.moments)
            self.moments.clear()

    def begin(self, trainer: Trainer, report: Report, say: Callable[[str], None]) -> None:
        """Nothing; the log says what the run starts from and how good it is on the new validation set.

        It is the run's first checkpoint, so that going on never needs the old model.
        """
        say(f"starting from {self.folder}, weights {self.sha256[:12]}")
        for side, spelled, tokens in (
            ("source", report.source_bytes, report.source_tokens),
            ("target", report.target_bytes, report.target_tokens),
        ):
            if spelled:
                say(
                    f"the model's tokenizer spells {spelled:,} of {counted(tokens, f'{side} token')} "
                    f"({spelled / tokens:.2%}) in bytes"
                )
        trainer.progress.earlier = self.steps
        trainer.begin()

    def record(self) -> Settings:
        """What settings.json and training.json say of it."""
        return {
            "folder": str(self.folder.absolute()),
            "weights": self.sha256,
            "tokenizer": self.tokenizer.sha256,
            "earlier_updates": self.steps,
        }

    def settings(self, given: Settings) -> tuple[Settings, list[str]]:
        """``given`` with what the model decides and what suits it, and a line on each thing that was chosen.

        Raises ConfigError where ``given`` contradicts the model.
        """
        if given.get("preset"):
            raise ConfigError(
                f"preset is {given['preset']}, but the model of {self.folder} has its own shape; leave out "
                "the preset, and set training.* by name"
            )
        for name in _OF_TOKENIZERS:
            if given.get("data", {}).get(name):
                raise ConfigError(
                    f"data.{name} is {given['data'][name]}, but the model of {self.folder} knows only its "
                    "own tokenizer; leave it out, or train a new model without --from"
                )
        shape = {n: v for n, v in dataclasses.asdict(self.config).items() if n != "vocabulary"}
        for name, value in given.get("model", {}).items():
            if name in shape and name not in _MAY_CHANGE and value != shape[name]:
                raise ConfigError(
                    f"model.{name} is {value}, but {shape[name]} in {self.folder}; leave it out, or train a "
                    "new model without --from"
                )
        said = given.get("training", {})
        chosen = {name: value for name, value in self._choices().items() if name not in said}
        training = {name: value for name, (value, _) in chosen.items()}
        lines = [f"training.{name} = {value}, {why}" for name, (value, why) in chosen.items()]
        first = {"preset": FINE_TUNING, "model": shape, "training": training}
        return {**merge(first, given), "start": self.record()}, lines

    def _choices(self) -> dict[str, tuple[Any, str]]:
        """Training settings that suit the model, each with the reason."""
        divided = f"1/{RATE_DIVISOR} of the paper's peak for d_model {self.config.d_model}"
        training = recipe(FINE_TUNING)[1]
        choices: dict[str, tuple[Any, str]] = {
            "schedule": (training["schedule"], "down to 0 at the end of the run"),
            "rate": (tuning_rate(self.config.d_model), f"{divided}: the model is trained already"),
            "warmup": (training["warmup"], "until Adam knows the new gradients"),
        }
        for name in ("batch_tokens", "label_smoothing"):
            if name in self.recipe:
                choices[name] = self.recipe[name], f"as the model of {self.folder} was trained"
        if self.moments is not None:
            going_on = _OF_THE_SCHEDULE if self.recipe.get("schedule") == "paper" else ()
            for name in (*_OF_ADAM, *going_on):
                if name in self.recipe:
                    choices[name] = self.recipe[name], f"as before: goes on after update {self.steps:,}"
        return choices


def start_of(given: Settings, output: Path, stored: Settings) -> tuple[Start | None, Settings, list[str]]:
    """What a run in ``output`` starts from, if anything; its settings, and lines on what was chosen.

    A run that goes on with ``stored`` settings starts from nothing again, and is not told to by ``given``.
    """
    named = given.get("start", "")
    if not isinstance(named, str):
        raise ConfigError(f"start is {named!r}; it must be the name of a model folder, a run or a checkpoint")
    if not named:
        return None, given, []
    if stored:
        before = stored.get("start", {}).get("folder")
        if before is None or not Path(before).is_relative_to(Path(named).absolute()):
            raise UsageError(
                f"{output}: this run started from {before or 'no model'}, not from {named}; leave out --from"
            )
        return None, {name: value for name, value in given.items() if name != "start"}, []
    if Path(named).resolve().is_relative_to(output.resolve()):
        raise UsageError(f"{output}: holds the model that --from names; choose another --output")
    check_names(given)
    kept = given.get("training", {}).get("optimizer_state") == "kept"
    start = open_start(named, keep_optimizer=kept)
    return start, *start.settings(given)


def with_own_tokenizer(settings: RunSettings, folder: Path, start: Start | None) -> DataConfig:
    """The data settings; in a run that starts from a model, with its tokenizer as a file of the run.

    Going on with the run then needs nothing of the model's folder. Raises ConfigError for another tokenizer.
    """
    if not settings.start:
        return settings.data
    if settings.data.tokenizer:
        raise ConfigError(
            f"data.tokenizer is {settings.data.tokenizer}, but the run started from a model with its own; "
            "leave it out"
        )
    path = folder / "data" / "tokenizer.model"
    if start is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        start.tokenizer.save(path)
    return dataclasses.replace(settings.data, tokenizer=str(path))


def tuning_rate(d_model: int) -> float:
    """The peak of the learning rate for a trained model of this width, to two digits."""
    return float(f"{paper_rate(PEAK_WARMUP, d_model, PEAK_WARMUP) / RATE_DIVISOR:.2g}")


def open_start(folder: str | Path, *, keep_optimizer: bool) -> Start:
    """What ``folder`` offers to start from: a model folder, a checkpoint, or a run's folder.

    Of a run's folder the final model is taken, or the newest checkpoint where there is none or where Adam's
    moments are wanted. Raises ConfigError where they are wanted and not there, BundleError or TrainingError
    where the folder cannot be read.
    """
    folder = Path(folder)
    checkpoint = folder if (folder / "state.json").exists() else None
    if checkpoint is None and (keep_optimizer or not (folder / "config.json").exists()):
        checkpoint = Checkpoints(folder / "checkpoints", keep=1).newest()
    if checkpoint is not None:
        return _from_checkpoint(checkpoint, keep_optimizer=keep_optimizer)
    bundle = load_bundle(folder)
    if keep_optimizer:
        raise ConfigError(
            f"training.optimizer_state is 'kept', but {folder} holds no checkpoint with Adam's moments; name "
            "a run's folder or one of its checkpoints, or leave it at 'fresh'"
        )
    made_by = bundle.training.get("recipe")
    return Start(
        folder=folder,
        config=bundle.model.config,
        tokenizer=bundle.tokenizer,
        weights=dict(bundle.model.state_dict()),
        sha256=_sha256(folder / "model.safetensors"),
        recipe=made_by.get("training", {}) if isinstance(made_by, dict) else {},
    )


def _from_checkpoint(path: Path, *, keep_optimizer: bool) -> Start:
    config, tokenizer, training = config_and_tokenizer(path)
    moments, steps = None, 0
    try:
        weights = load_file(path / "model.safetensors")
        sha256 = _sha256(path / "model.safetensors")
        if keep_optimizer:
            stored = load_file(path / "optimizer.safetensors")
            moments = {name: value for name, value in stored.items() if name.partition(".")[0] in MOMENTS}
            progress = json.loads((path / "state.json").read_bytes())["progress"]
            steps = progress["step"] + progress.get("earlier", 0)
    except (OSError, ValueError, KeyError, SafetensorError) as error:
        raise TrainingError(f"{path}: the checkpoint is damaged ({error}); name another one") from error
    if keep_optimizer and not moments:
        raise ConfigError(
            f"training.optimizer_state is 'kept', but {path} was saved before the first update and holds no "
            "moments; leave it at 'fresh'"
        )
    return Start(
        folder=path,
        config=config,
        tokenizer=tokenizer,
        weights=weights,
        sha256=sha256,
        recipe=training["recipe"].get("training", {}),
        moments=moments,
        steps=steps,
    )


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
