"""``transduce inspect``: parameters by part, operations, memory, and what the training cost."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from transduce.counts import counted
from transduce.errors import UsageError

if TYPE_CHECKING:
    from transduce.bundle import Bundle

_BESIDE = ("paper-base", "paper-big")
# Section 5.2: hours, GPUs and the rate of one; printed in Table 2 as 3.3e18 and 2.3e19.
_PAPER_RUNS = {"paper-base": (12 * 3600.0, 8), "paper-big": (3.5 * 24 * 3600.0, 8)}


def inspect(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model folder, as `train` writes it.")],
    *,
    source_tokens: Annotated[int, typer.Option(help="Source tokens of the sentence that is costed.")] = 25,
    target_tokens: Annotated[int, typer.Option(help="Its target tokens, the end counted.")] = 25,
    beam: Annotated[int, typer.Option(help="Hypotheses kept in the search.")] = 4,
    rate: Annotated[
        str,
        typer.Option(
            help="TFLOP/s of one training device, or k80, k40, m40, p100 as the paper takes them; "
            "empty: this processor's, measured."
        ),
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object for machines.")] = False,
) -> None:
    """Say what a model holds and costs: parameters by part, operations, memory, its training run."""
    for name, value in (("source-tokens", source_tokens), ("target-tokens", target_tokens), ("beam", beam)):
        if value < 1:
            raise UsageError(f"--{name} is {value}; use 1 or more")
    from transduce.bundle import load_bundle
    from transduce.inspection.cost import measured_rate, sustained_rate

    sustained = sustained_rate(rate) if rate else None
    bundle = load_bundle(model)
    found = costs(bundle, source_tokens, target_tokens, beam, sustained or measured_rate())
    found["rate"] = rate or "measured here"
    print(json.dumps(found) if as_json else describe(found))


def costs(bundle: Bundle, source: int, target: int, beam: int, sustained: float) -> dict[str, Any]:
    """All figures of a model for a sentence of these lengths, beside those of the paper's models."""
    import dataclasses

    from transduce.inspection import cost
    from transduce.model.config import ModelConfig

    config = bundle.model.config
    named = {
        name: cost.shape_of(ModelConfig.named(name, vocabulary=cost.PAPER_VOCABULARY)) for name in _BESIDE
    }
    models = {"this model": bundle.model, **named}

    def operations(of: Any) -> dict[str, int]:
        return {**dataclasses.asdict(of), "total": of.total}

    run = cost.run_cost(bundle.model, bundle.training, sustained)
    return {
        "parameters": {name: cost.parameters_by_part(found) for name, found in models.items()},
        "sentence": {"source_tokens": source, "target_tokens": target, "beam": beam},
        "training_flops": {
            name: operations(cost.training_operations(found.config, source, target))
            for name, found in models.items()
        },
        "translation_flops": {
            name: operations(cost.translation_operations(found.config, source, target, beam))
            for name, found in models.items()
        },
        "memory_bytes": {
            "weights": 4 * bundle.model.parameter_count(),
            "training": cost.ADAM_BYTES * bundle.model.parameter_count(),
            "cache_per_token_and_hypothesis": cost.cache_bytes_per_token(config),
        },
        "run": run
        and {**dataclasses.asdict(run), "paper_unit": run.paper_unit, "utilisation": run.utilisation},
        "paper_runs": {
            name: {
                "paper_unit": seconds * devices * cost.SUSTAINED["p100"],
                "arithmetic": cost.arithmetic_cost(named[name], tokens := _paper_tokens(name), tokens),
            }
            for name, (seconds, devices) in _PAPER_RUNS.items()
        },
    }


def _paper_tokens(name: str) -> float:
    """Tokens a side in the paper's run: 25,000 in each of 100,000 or 300,000 updates (section 5)."""
    return 25_000.0 * (100_000 if name == "paper-base" else 300_000)


def describe(found: dict[str, Any]) -> str:
    """The figures as tables for people."""
    parameters, sentence, memory = found["parameters"], found["sentence"], found["memory_bytes"]
    names = list(parameters)
    parts = dict.fromkeys(part for counts in parameters.values() for part in counts)
    rows = [["parameters", *names]]
    rows += [[part, *(f"{parameters[name].get(part, 0):,}" for name in names)] for part in parts]
    rows.append(["total", *(f"{sum(parameters[name].values()):,}" for name in names)])
    lines = _table(rows)
    what = f"{sentence['source_tokens']} source and {counted(sentence['target_tokens'], 'target token')}"
    for title, key in (("training on", "training_flops"), ("translating", "translation_flops")):
        how = f", beam {sentence['beam']}" if key == "translation_flops" else ""
        counts = found[key]
        rows = [[f"MFLOP, {title}", *names]]
        rows += [[part, *(f"{counts[name][part] / 1e6:,.1f}" for name in names)] for part in counts[names[0]]]
        divisor = sentence["target_tokens"] * 1e6
        rows.append(["per target token", *(f"{counts[name]['total'] / divisor:,.2f}" for name in names)])
        lines += [
            "",
            f"{title} one pair of {what}{how}: matrix products, 2 for a multiply-add",
            *_table(rows),
        ]
    lines += [
        "",
        f"memory in fp32: weights {memory['weights'] / 2**20:,.1f} MiB; while training, with gradients and "
        f"Adam's moments, {memory['training'] / 2**20:,.1f} MiB and the activations; a search keeps "
        f"{memory['cache_per_token_and_hypothesis'] / 1024:,.1f} KiB for each token of each hypothesis",
    ]
    return "\n".join([*lines, *_runs(found)])


def _runs(found: dict[str, Any]) -> list[str]:
    run = found["run"]
    lines = ["", "training run, FLOPs: time x devices x sustained rate (Table 2), and by arithmetic"]
    if run is None:
        lines.append("this model: training.json does not tell how long it took")
    else:
        lines.append(
            f"this model: {run['seconds']:,.0f} s x {run['devices']} x {run['sustained'] / 1e12:.3g} TFLOP/s "
            f"({found['rate']}) = {run['paper_unit']:.2e}; 6 x weights x tokens = {run['arithmetic']:.2e}, "
            f"{run['utilisation']:.0%} of it"
        )
    for name, paper in found["paper_runs"].items():
        seconds, devices = _PAPER_RUNS[name]
        share = paper["arithmetic"] / paper["paper_unit"]
        lines.append(
            f"{name}: {seconds:,.0f} s x {devices} x 9.5 TFLOP/s (p100) = {paper['paper_unit']:.2e}; "
            f"6 x weights x tokens = {paper['arithmetic']:.2e}, {share:.0%} of it"
        )
    return lines


def _table(rows: list[list[str]]) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        row[0].ljust(widths[0])
        + "".join(f"  {cell:>{width}}" for cell, width in zip(row[1:], widths[1:], strict=True))
        for row in rows
    ]
