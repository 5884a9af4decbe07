"""The settings of a run: preset, TOML file and flags in layers, and what is chosen where nothing is said."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transduce.config import Settings, build, checked, merge, unknown_name
from transduce.counts import counted
from transduce.data.cleaning.config import CleaningConfig
from transduce.data.config import NO_FILES, DataConfig
from transduce.errors import ConfigError, UsageError
from transduce.model.config import NAMED, ModelConfig
from transduce.training.config import TrainingConfig
from transduce.training.presets import (
    FINE_TUNING,
    automatic_dropout,
    automatic_epochs,
    automatic_preset,
    automatic_tuning_epochs,
    recipe,
)

SECTIONS = ("preset", "start", "data", "cleaning", "model", "training")
WEIGHTS = ("data.weights", "data.weights_after_epochs", "data.weights_after_updates")
LIMITS = ("max_steps", "max_epochs", "max_minutes", "patience")
# What may change when a run goes on: when it ends and what it tells, not what it learns.
FREE = (
    *LIMITS,
    "save_every",
    "valid_every",
    "valid_lines",
    "report_every",
    "tensorboard",
    "average",
    "device",
    "recompute_layers",
    "threads",
    "metric",
    "parallel",
    "timeout_minutes",
)


@dataclass(frozen=True, kw_only=True)
class RunSettings:
    """One run, fully decided except for the vocabulary, which the tokenizer brings."""

    preset: str
    data: DataConfig
    model: Settings
    training: TrainingConfig
    start: Settings = dataclasses.field(default_factory=dict)
    """The record of the model that the run started from; empty for one that started from nothing."""
    chosen: tuple[str, ...] = ()

    def model_config(self, vocabulary: int) -> ModelConfig:
        """The model's shape once the vocabulary is known."""
        return ModelConfig(**{**self.model, "vocabulary": vocabulary})

    def reshaped(self) -> str:
        """What of the model is not as its preset has it, as a phrase; a settings file may have said it."""
        named = NAMED.get(self.preset)
        if named is None:
            return ""
        usual = {field.name: field.default for field in dataclasses.fields(ModelConfig)}
        own = [
            f"{name} = {value}"
            for name, value in self.model.items()
            if value != named.get(name, usual.get(name)) and value is not None
        ]
        return f" with {', '.join(own)}" if own else ""

    def as_dict(self) -> Settings:
        """Plain values, as JSON holds them and `resolve` takes them back."""
        data = {n: _as_lists(v) for n, v in dataclasses.asdict(self.data).items()}
        cleaning = data.pop("cleaning")
        return {
            "preset": self.preset,
            **({"start": dict(self.start)} if self.start else {}),
            "data": data,
            **({"cleaning": cleaning} if self.data.clean else {}),
            "model": dict(self.model),
            "training": dataclasses.asdict(self.training),
        }


def _as_lists(value: Any) -> Any:
    return [_as_lists(part) for part in value] if isinstance(value, tuple) else value


def expand(settings: Mapping[str, Any]) -> Settings:
    """The settings with dotted names ("training.seed") turned into sections."""
    result: Settings = {}
    for name, value in settings.items():
        for part in reversed(name.split(".")[1:]):
            value = {part: value}
        result = merge(result, {name.split(".")[0]: value})
    return result


def check_names(given: Mapping[str, Any]) -> None:
    """Nothing; raises ConfigError where a name does not exist or a value is of the wrong type."""
    for name, value in given.items():
        if name not in SECTIONS:
            raise unknown_name(name, SECTIONS, "section")
        if name not in ("preset", "start") and not isinstance(value, Mapping):
            raise ConfigError(f"{name} is {value!r}; it must be a section with settings, e.g. {name}.x=1")
    checked(ModelConfig, given.get("model", {}), "model")
    checked(TrainingConfig, given.get("training", {}), "training")
    checked(CleaningConfig, given.get("cleaning", {}), "cleaning")
    if "cleaning" in given.get("data", {}):
        raise ConfigError("data.cleaning is a section of its own: cleaning.max_ratio=4 with data.clean=true")
    checked(DataConfig, given.get("data", {}), "data")


def check_sections(given: Mapping[str, Any]) -> DataConfig:
    """The data settings, after every name and type was checked: before any file is read."""
    check_names(given)
    if "vocabulary" in given.get("model", {}):
        raise ConfigError("model.vocabulary comes from the tokenizer; set data.vocabulary instead")
    if not given.get("start"):
        _check_no_start(given)
    preset = given.get("preset") or "tiny"
    model, training = recipe(preset) if preset != "auto" else recipe("tiny")
    # A vocabulary of any size shows whether the rest makes sense, before time is spent on the data.
    build(ModelConfig, {**model, **given.get("model", {}), "vocabulary": 1000}, "model")
    # Limits may still be chosen from the amount of data, so one stands in for them here.
    build(TrainingConfig, {"max_epochs": 1, **training, **_limited(given.get("training", {}))}, "training")
    return _data(given)


def _data(given: Mapping[str, Any]) -> DataConfig:
    """The data settings with those of cleaning in them."""
    data, cleaning = given.get("data", {}), given.get("cleaning", {})
    if cleaning and "clean" not in data:
        raise ConfigError(
            f"cleaning.{next(iter(cleaning))} is set, but nothing is cleaned; add data.clean=true, or leave "
            "it out"
        )
    built = build(CleaningConfig, cleaning, "cleaning")
    return build(DataConfig, {**data, "cleaning": built}, "data")


def _check_no_start(given: Mapping[str, Any]) -> None:
    if given.get("preset") == FINE_TUNING:
        raise ConfigError(f"preset {FINE_TUNING} needs a model to start from; name its folder with --from")
    if given.get("training", {}).get("optimizer_state") == "kept":
        raise ConfigError(
            "training.optimizer_state is 'kept', but the run starts from no model; name a run's folder with "
            "--from"
        )


def _limited(training: Mapping[str, Any]) -> Settings:
    """Training settings in which a limit that was named replaces the preset's other limits."""
    named = any(training.get(name) for name in LIMITS)
    return {**({"max_steps": 0, "max_epochs": 0} if named else {}), **training}


def resolve(given: Mapping[str, Any], *, pairs: int, device: str) -> RunSettings:
    """The settings of a run on a corpus of ``pairs`` pairs; ``chosen`` says what was picked and why."""
    data = check_sections(given)
    chosen: list[str] = []
    preset = given.get("preset") or "auto"
    if preset == "auto":
        preset = automatic_preset(pairs, device)
        chosen.append(f"preset {preset}, for {counted(pairs, 'pair')} on {device}")
    model, training = recipe(preset)
    if preset == "tiny" != given.get("preset") and "dropout" not in given.get("model", {}):
        model["dropout"] = automatic_dropout(pairs)
        chosen.append(f"model.dropout = {model['dropout']}, for {counted(pairs, 'pair')}")
    wanted = given.get("training", {})
    training = {**training, **_limited(wanted)}
    if not any(training.get(name, TrainingConfig.max_steps if name == "max_steps" else 0) for name in LIMITS):
        epochs = automatic_tuning_epochs if preset == FINE_TUNING else automatic_epochs
        training["max_epochs"] = epochs(pairs)
        chosen.append(f"training.max_epochs = {training['max_epochs']}, for {counted(pairs, 'pair')}")
    if not training.get("micro_batch_tokens"):
        batch = training.get("batch_tokens", TrainingConfig.batch_tokens)
        training["micro_batch_tokens"] = min(batch, 4096 if device == "cpu" else 25_000)
    if data.weights_after_updates and training.get("max_epochs"):
        raise ConfigError(
            "data.weights_after_updates cuts epochs short, but the run ends by training.max_epochs = "
            f"{training['max_epochs']}; set training.max_steps instead, or use data.weights_after_epochs"
        )
    model = checked(ModelConfig, {**model, **given.get("model", {})}, "model")
    return RunSettings(
        preset=preset,
        data=data,
        model=model,
        training=build(TrainingConfig, training, "training"),
        start=given.get("start", {}),
        chosen=tuple(chosen),
    )


def with_absolute_paths(settings: Settings) -> Settings:
    """The settings with the names of files made absolute, so that a run goes on from any folder."""
    data: Settings = {
        name: [str(Path(path).absolute()) for path in value]
        if isinstance(value, list | tuple) and name not in NO_FILES
        else value
        for name, value in settings.get("data", {}).items()
    }
    if data.get("tokenizer"):
        data["tokenizer"] = str(Path(data["tokenizer"]).absolute())
    start = settings.get("start")
    named = {"start": str(Path(start).absolute())} if isinstance(start, str) and start else {}
    return {**settings, **named, "data": data}


def differences(old: Settings, new: Settings) -> list[str]:
    """What makes ``new`` another run than ``old``, one "name: was x, is y" each."""
    found = []
    for weights in WEIGHTS:
        name = weights.removeprefix("data.")
        if (before := old["data"].get(name, [])) != (now := new["data"][name]):
            found.append(f"{weights} was {before}, is {now}")
    if old["preset"] != new["preset"]:
        found.append(f"preset was {old['preset']}, is {new['preset']}")
    for section in ("model", "training"):
        for name in sorted(set(old[section]) | set(new[section])):
            # A setting that the older version lacked had the value that is the default now.
            default = getattr(TrainingConfig, name, None) if section == "training" else None
            before, now = old[section].get(name, default), new[section].get(name)
            if before != now and not (section == "training" and name in FREE):
                found.append(f"{section}.{name} was {before}, is {now}")
    return found


def stored_settings(folder: Path) -> Settings:
    """The settings that the run in ``folder`` was started with."""
    try:
        stored: Settings = json.loads((folder / "settings.json").read_bytes())
    except FileNotFoundError:
        raise UsageError(
            f"{folder}: holds no run (there is no settings.json); name the folder of a run, or start one "
            "without --resume"
        ) from None
    except (OSError, ValueError) as error:
        raise UsageError(f"{folder / 'settings.json'}: cannot be read: {error}; restore it") from error
    return stored
