"""The settings of a training run, with the paper's recipe for its base model as default (section 5)."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass

from transduce.errors import ConfigError

SCHEDULES = ("paper", "linear", "constant")
METRICS = ("bleu", "chrf", "loss")
OPTIMIZER_STATES = ("fresh", "kept")
PARALLEL = ("replicated", "sharded")
# What lets pairs vary from update to update.
SHARES = ("sample_source", "sample_target", "lower_case", "upper_case", "title_case", "typos")


@dataclass(frozen=True, kw_only=True)
class TrainingConfig:
    """How a model is trained.

    Tokens are real ones, padding excluded, except ``micro_batch_tokens``, which bounds rows x longest on each
    side. A limit of 0 is no limit; the first limit that is reached ends the run. ``save_every``,
    ``valid_every`` and ``report_every`` count updates; ``patience`` counts validations without a better
    ``metric``, and only after the warm-up. With ``save_every`` = 0 the run is saved at each fiftieth, and
    validated at each tenth, of its length. With ``fit_micro_batch`` the most ``micro_batch_tokens`` that
    memory holds take the place of those named. ``ema`` is the decay of a moving average of the weights, which
    is then validated and becomes the final model; 0 is none. ``optimizer_state`` says what becomes of Adam's
    moments where a run starts from a model. ``recompute_layers`` is activation checkpointing: less memory for
    more time, the same result. ``compile`` is `torch.compile` of the layers, the same result within float
    error. ``sample_source`` and ``sample_target`` draw the subwords of a side anew for each update: the share
    of merges left out with BPE (BPE-dropout), the exponent alpha with a unigram model; 0 is off.
    ``lower_case``, ``upper_case``, ``title_case`` and ``typos`` are shares of the pairs that are changed so
    (see `transduce.data.variation`). ``guided_weight`` is that of the alignment term where
    ``data.alignments`` are given, for decoder layer ``guided_layer`` (0: the last but one).
    ``deterministic`` lets only kernels run that give the same bits every time.
    """

    seed: int = 1
    batch_tokens: int = 25_000
    micro_batch_tokens: int = 0
    fit_micro_batch: bool = False
    schedule: str = "paper"
    rate: float = 0.0
    warmup: int = 4000
    beta_1: float = 0.9
    beta_2: float = 0.98
    epsilon: float = 1e-9
    clip_norm: float = 0.0
    label_smoothing: float = 0.1
    max_steps: int = 100_000
    max_epochs: int = 0
    max_minutes: float = 0.0
    patience: int = 0
    metric: str = "bleu"
    save_every: int = 1500
    valid_every: int = 0
    valid_lines: int = 1000
    report_every: int = 50
    tensorboard: bool = False
    average: int = 5
    ema: float = 0.0
    optimizer_state: str = "fresh"
    device: str = "auto"
    precision: str = "auto"
    sample_source: float = 0.0
    sample_target: float = 0.0
    lower_case: float = 0.0
    upper_case: float = 0.0
    title_case: float = 0.0
    typos: float = 0.0
    guided_weight: float = 0.05
    guided_layer: int = 0
    recompute_layers: bool = False
    compile: bool = False
    threads: int = 0
    deterministic: bool = False
    parallel: str = "replicated"
    timeout_minutes: float = 10.0

    def __post_init__(self) -> None:
        self._check_finite()
        self._check_ranges()
        for name, choices in (
            ("schedule", SCHEDULES),
            ("metric", METRICS),
            ("optimizer_state", OPTIMIZER_STATES),
            ("parallel", PARALLEL),
        ):
            if getattr(self, name) not in choices:
                raise ConfigError(
                    f"training.{name} is {getattr(self, name)!r}; choose one of {', '.join(choices)}"
                )
        if self.schedule == "paper" and self.warmup < 1:
            raise ConfigError("training.warmup is 0; the paper's schedule needs at least 1 step of it")
        if self.schedule == "constant" and self.rate == 0:
            raise ConfigError("training.schedule is 'constant' without training.rate; set it, e.g. 1e-4")
        if not (self.max_steps or self.max_epochs or self.max_minutes):
            if self.schedule == "linear":
                raise ConfigError(
                    "training.schedule is 'linear' without an end: set training.max_steps, max_epochs or "
                    "max_minutes"
                )
            if not self.save_every:
                raise ConfigError(
                    "training.save_every is 0 (by share of the run) but the run has no length; set it"
                )
            if not self.patience:
                raise ConfigError(
                    "nothing ends this run: set training.max_steps, max_epochs, max_minutes or patience"
                )

    def _check_finite(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if isinstance(value, float) and not math.isfinite(value):
                raise ConfigError(f"training.{field.name} is {value}; it must be a finite number")

    def _check_ranges(self) -> None:
        for name in ("batch_tokens", "report_every", "average"):
            if getattr(self, name) < 1:
                raise ConfigError(f"training.{name} is {getattr(self, name)}; it must be at least 1")
        limits = (
            "max_steps",
            "max_epochs",
            "max_minutes",
            "patience",
            "micro_batch_tokens",
            "rate",
            "warmup",
        )
        for name in (*limits, "save_every", "clip_norm", "valid_every", "valid_lines", "threads", "seed"):
            if getattr(self, name) < 0:
                raise ConfigError(f"training.{name} is {getattr(self, name)}; it must not be negative")
        for name in ("label_smoothing", "beta_1", "beta_2", "ema"):
            if not 0.0 <= getattr(self, name) < 1.0:
                raise ConfigError(f"training.{name} is {getattr(self, name)}; it must be at least 0, below 1")
        self._check_shares()
        if self.seed >= 2**63:
            raise ConfigError(f"training.seed is {self.seed}; it must be below 2^63")
        for name in ("epsilon", "timeout_minutes"):
            if getattr(self, name) <= 0:
                raise ConfigError(f"training.{name} is {getattr(self, name)}; it must be above 0")

    def _check_shares(self) -> None:
        for name in ("guided_weight", "guided_layer"):
            if getattr(self, name) < 0:
                raise ConfigError(f"training.{name} is {getattr(self, name)}; it must not be negative")
        for name in SHARES:
            if not 0.0 <= getattr(self, name) <= 1.0:
                raise ConfigError(f"training.{name} is {getattr(self, name)}; it must lie between 0 and 1")
        if (cases := self.lower_case + self.upper_case + self.title_case) > 1.0:
            raise ConfigError(
                f"training.lower_case, upper_case and title_case are {cases:g} together; at most 1, as a "
                "pair has one case"
            )
