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

    Tokens are real ones, padding excluded, except ``micro_batch_tokens``. A limit of 0 is no limit; the first
    limit that is reached ends the run.
    """

    seed: int = 1
    """Of all randomness: first weights, dropout, the order of the data."""
    batch_tokens: int = 25_000
    """At most so many source tokens and so many target tokens in an update (section 5.1)."""
    micro_batch_tokens: int = 0
    """Rows times the longest, on each side, that are held at once; an update gathers several. 0: all at
    once."""
    fit_micro_batch: bool = False
    """The most ``micro_batch_tokens`` that memory holds take the place of those named."""
    schedule: str = "paper"
    """``paper`` (section 5.3); ``linear``: up over ``warmup``, down to 0 at the run's end; ``constant``."""
    rate: float = 0.0
    """The schedule's peak; 0 is the paper's, d_model^-0.5 warmup^-0.5."""
    warmup: int = 4000
    """So many updates until the peak."""
    beta_1: float = 0.9
    """Adam's decay of the mean of gradients."""
    beta_2: float = 0.98
    """Adam's decay of the mean of squared gradients."""
    epsilon: float = 1e-9
    """What Adam adds to the root of the latter."""
    clip_norm: float = 0.0
    """Longer gradients are shortened to this length; 0: never, as in the paper."""
    label_smoothing: float = 0.1
    """The probability that the other classes share (section 5.4)."""
    max_steps: int = 100_000
    """Updates of the run."""
    max_epochs: int = 0
    """Epochs of the run."""
    max_minutes: float = 0.0
    """Minutes of updates, validations and checkpoints; what comes before does not count."""
    patience: int = 0
    """So many validations in a row without a better ``metric`` end the run, once the warm-up is over."""
    metric: str = "bleu"
    """What says which checkpoint is the best: ``bleu``, ``chrf`` or ``loss``."""
    save_every: int = 1500
    """Updates between checkpoints; 0: a fiftieth of the run."""
    valid_every: int = 0
    """Updates between validations; 0: a tenth of the run where ``save_every`` is 0, else as often."""
    valid_lines: int = 1000
    """So many validation pairs at most are translated."""
    report_every: int = 50
    """Updates between two lines of the log."""
    tensorboard: bool = False
    """The log's numbers for TensorBoard as well."""
    average: int = 5
    """So many of the last checkpoints are kept, and averaged into the final model (section 6.1)."""
    ema: float = 0.0
    """The decay of a moving average of the weights, which is then validated and becomes the model; 0:
    none."""
    optimizer_state: str = "fresh"
    """Adam's moments where a run starts from a model: ``fresh``, or ``kept`` from its run."""
    device: str = "auto"
    """``auto``, ``cpu``, ``cuda``, ``cuda:1``, ``mps``."""
    precision: str = "auto"
    """``fp32`` or ``bf16`` products; ``auto``: bf16 where the device is fast at it. Weights are fp32
    always."""
    sample_source: float = 0.0
    """Subwords of sources are drawn anew each time: with BPE the share of merges left out (BPE-dropout),
    with a unigram model the exponent alpha. 0: off."""
    sample_target: float = 0.0
    """The same for targets."""
    lower_case: float = 0.0
    """The share of pairs that are seen in lower case (see `transduce.data.variation`)."""
    upper_case: float = 0.0
    """The share of pairs that are seen in upper case."""
    title_case: float = 0.0
    """The share of pairs that are seen with each word capitalised."""
    typos: float = 0.0
    """The share of pairs whose source gets typing errors."""
    guided_weight: float = 0.05
    """The weight of the alignment term where there are ``data.alignments``."""
    guided_layer: int = 0
    """The decoder layer that alignments guide, from 1; 0: the last but one."""
    recompute_layers: bool = False
    """Activation checkpointing: less memory for more time, the same result."""
    compile: bool = False
    """Layers go through `torch.compile`: the same result within float error."""
    threads: int = 0
    """CPU threads; 0: all usable cores."""
    deterministic: bool = False
    """Only kernels that give the same bits every time (GPU)."""
    parallel: str = "replicated"
    """With several workers: ``replicated``, each holds the model; ``sharded``, each holds a part (FSDP2)."""
    timeout_minutes: float = 10.0
    """A worker that is silent for so long ends the run on the others."""

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
