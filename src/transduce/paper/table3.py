"""Table 3: variations of the base model, each trained on the same data, at the paper's size or smaller.

A smaller ladder keeps the paper's ratios: every width is divided by one number and every depth by another, so
that each row still changes against base what it changes in the paper.
"""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transduce.config import merge
from transduce.errors import UsageError
from transduce.files import write_json
from transduce.inspection.cost import PAPER_VOCABULARY, shape_of
from transduce.model.config import ModelConfig
from transduce.training.run import train
from transduce.training.settings import expand

WIDTHS = ("d_model", "d_ff", "d_k", "d_v")
DEPTHS = ("encoder_layers", "decoder_layers")


@dataclass(frozen=True)
class Printed:
    """What the paper prints of a row: perplexity by word piece, BLEU on newstest2013, million parameters."""

    perplexity: float
    bleu: float
    parameters: int | None = None


PRINTED: dict[str, Printed] = {
    "base": Printed(4.92, 25.8, 65),
    "A1": Printed(5.29, 24.9),
    "A2": Printed(5.00, 25.5),
    "A3": Printed(4.91, 25.8),
    "A4": Printed(5.01, 25.4),
    "B1": Printed(5.16, 25.1, 58),
    "B2": Printed(5.01, 25.4, 60),
    "C1": Printed(6.11, 23.7, 36),
    "C2": Printed(5.19, 25.3, 50),
    "C3": Printed(4.88, 25.5, 80),
    "C4": Printed(5.75, 24.5, 28),
    "C5": Printed(4.66, 26.0, 168),
    "C6": Printed(5.12, 25.4, 53),
    "C7": Printed(4.75, 26.2, 90),
    "D1": Printed(5.77, 24.6),
    "D2": Printed(4.95, 25.5),
    "D3": Printed(4.67, 25.3),
    "D4": Printed(5.47, 25.7),
    "E": Printed(4.92, 25.7),
    "big": Printed(4.33, 26.4, 213),
}
_SMOOTHING = {"D3": 0.0, "D4": 0.2}


@dataclass(frozen=True, kw_only=True)
class Scale:
    """By what the paper's sizes are divided; 1 and 1 are the paper's own."""

    width: int = 8
    depth: int = 2

    def settings(self, row: str) -> dict[str, Any]:
        """The model settings of a row; UsageError where a size does not divide."""
        full = ModelConfig.named("paper-base" if row == "base" else row, vocabulary=PAPER_VOCABULARY)
        base = ModelConfig.named("paper-base", vocabulary=PAPER_VOCABULARY)
        found: dict[str, Any] = {"heads": full.heads, "dropout": full.dropout, "positions": full.positions}
        for names, divisor in ((WIDTHS, self.width), (DEPTHS, self.depth)):
            for name in names:
                size = getattr(full, name)
                if size % divisor:
                    raise UsageError(
                        f"row {row}: {name} is {size}, which {divisor} does not divide; choose a divisor of "
                        f"{math.gcd(*(getattr(base, other) for other in names))}"
                    )
                found[name] = size // divisor
        return found


def run_name(row: str, seed: int) -> str:
    """The folder of one run below the table's."""
    return f"{row}-seed{seed}"


def table_3(
    output: str | Path,
    *,
    settings: Mapping[str, Any],
    rows: Sequence[str] = tuple(PRINTED),
    seeds: Sequence[int] = (1, 2),
    scale: Scale | None = None,
    say: Callable[[str], None] = lambda line: None,
    **named: Any,
) -> list[dict[str, Any]]:
    """The rows with their scores, seed by seed; what ``output`` holds already is not trained again.

    ``settings`` are those of `transduce.training.run.train` that all rows share (steps, batch, schedule), and
    ``named`` its other arguments (source, target); all runs share the tokenizer of the first. A run that was
    interrupted goes on from its newest checkpoint. Scores are those of the validation set: perplexity of its
    tokens, and BLEU with beam 4 and alpha 0.6, of the last weights without averaging, as in the paper.
    """
    scale, output = scale or Scale(), Path(output)
    for row in rows:
        if row not in PRINTED:
            raise UsageError(f"row {row!r}; the rows of Table 3 are {', '.join(PRINTED)}")
        scale.settings(row)
    jobs = [(row, seed) for seed in seeds for row in rows]
    found: dict[str, list[dict[str, Any]]] = {row: [] for row in rows}
    tokenizer = ""
    for number, (row, seed) in enumerate(jobs, 1):
        folder = output / run_name(row, seed)
        if not _finished(folder):
            say(f"run {number} of {len(jobs)}: {row}, seed {seed}")
            own = {f"model.{name}": value for name, value in scale.settings(row).items()}
            own |= {"model.norm": "post", "training.average": 1, "training.seed": seed}
            own["training.label_smoothing"] = _SMOOTHING.get(row, 0.1)
            if tokenizer:
                own |= {"data.tokenizer": tokenizer, "data.vocabulary": 0}
            resume = (folder / "settings.json").exists()
            train(
                folder,
                preset="paper-base",
                settings=merge(expand(settings), expand(own)),
                resume=resume,
                **named,
            )
        tokenizer = tokenizer or str(folder / "tokenizer.model")
        found[row].append(_result(folder, seed))
        write_json(output / "table3.json", summary(found))
    return summary(found)


def _finished(folder: Path) -> bool:
    """Whether the run has ended and its model was scored."""
    try:
        return bool(json.loads((folder / "training.json").read_bytes())["scores"])
    except (OSError, ValueError, KeyError):
        return False


def _result(folder: Path, seed: int) -> dict[str, Any]:
    training = json.loads((folder / "training.json").read_bytes())
    config = json.loads((folder / "config.json").read_bytes())["model"]
    return {
        "seed": seed,
        "perplexity": math.exp(training["scores"]["loss"]),
        "bleu": training["scores"]["bleu"],
        "parameters": shape_of(ModelConfig.from_mapping(config)).parameter_count(),
        "steps": training["steps"],
        "seconds": training["seconds"],
    }


def summary(found: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[dict[str, Any]]:
    """A row for each that has runs: means, spread, the difference to base, whether the paper's holds."""
    rows = []
    base = found.get("base", ())
    for row, runs in found.items():
        if not runs:
            continue
        printed = PRINTED[row]
        told: dict[str, Any] = {"row": row, "parameters": runs[0]["parameters"], "runs": list(runs)}
        for name in ("perplexity", "bleu"):
            values = [run[name] for run in runs]
            own = getattr(printed, name)
            told[name] = statistics.mean(values)
            told[f"{name}_spread"] = max(values) - min(values)
            told[f"printed_{name}"] = own
            if base and row != "base":
                others = [run[name] for run in base]
                difference = told[name] - statistics.mean(others)
                told[f"{name}_difference"] = difference
                told[f"printed_{name}_difference"] = own - getattr(PRINTED["base"], name)
                told[f"{name}_p"] = welch_p(values, others)
                told[f"{name}_verdict"] = verdict(
                    difference, own - getattr(PRINTED["base"], name), told[f"{name}_p"]
                )
        rows.append(told)
    return rows


def verdict(here: float, printed: float, p: float | None) -> str:
    """In a word whether the printed direction holds here; ``p`` of 0.05 or more, or none, leaves it open."""
    if abs(printed) < 1e-9:
        return "the paper has no difference"
    same = (here > 0) == (printed > 0)
    if p is not None and p < 0.05:
        return "as printed" if same else "against the paper"
    return "as printed, not significant" if same else "other sign, not significant"


def welch_p(one: Sequence[float], other: Sequence[float]) -> float | None:
    """The two-sided p of Welch's t-test; None for a sample of fewer than two values, or without spread."""
    if min(len(one), len(other)) < 2:
        return None
    variances = [statistics.variance(values) / len(values) for values in (one, other)]
    total = sum(variances)
    if total == 0:
        return None
    t = abs(statistics.mean(one) - statistics.mean(other)) / math.sqrt(total)
    degrees = total**2 / sum(v**2 / (len(s) - 1) for v, s in zip(variances, (one, other), strict=True))
    return student_tail(t, degrees)


def student_tail(t: float, degrees: float) -> float:
    """P(|T| >= t) for Student's t, by Simpson's rule over the angle: T = sqrt(degrees) tan(angle)."""
    constant = math.exp(math.lgamma((degrees + 1) / 2) - math.lgamma(degrees / 2)) / math.sqrt(math.pi)
    begin, end, steps = math.atan(t / math.sqrt(degrees)), math.pi / 2, 2000
    width = (end - begin) / steps
    heights = [max(0.0, math.cos(begin + i * width)) ** (degrees - 1) for i in range(steps + 1)]
    inner = sum(heights[i] * (4 if i % 2 else 2) for i in range(1, steps))
    return min(1.0, float(2 * constant * (heights[0] + inner + heights[-1]) * width / 3))


def describe(rows: Sequence[Mapping[str, Any]]) -> str:
    """The table beside the printed one."""
    lines = [
        f"{'row':5}{'PPL':>8}{'+-':>6}{'printed':>9}{'BLEU':>8}{'+-':>6}{'printed':>9}{'params':>12}"
        f"{'M printed':>11}  BLEU against base: here, printed"
    ]
    for row in rows:
        millions = PRINTED[row["row"]].parameters
        note = ""
        if "bleu_difference" in row:
            p = row["bleu_p"]
            chance = "" if p is None else f", p = {p:.3f}"
            both = f"{row['bleu_difference']:+.2f}, {row['printed_bleu_difference']:+.1f}"
            note = f"  {both}: {row['bleu_verdict']}{chance}"
        lines.append(
            f"{row['row']:5}{row['perplexity']:8.2f}{row['perplexity_spread']:6.2f}{row['printed_perplexity']:9.2f}"
            f"{row['bleu']:8.2f}{row['bleu_spread']:6.2f}{row['printed_bleu']:9.1f}{row['parameters']:>12,}"
            f"{'' if millions is None else f'{millions:.0f}':>11}{note}"
        )
    seeds = max(len(row["runs"]) for row in rows)
    lines.append(f"means over {seeds} seeds; +- is the largest value less the smallest; p by Welch's t-test")
    return "\n".join(lines)
