"""Table 2: systems on newstest2014, by both kinds of BLEU, with the cost of their training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from transduce.bundle import Bundle
from transduce.evaluation.paper_bleu import paper_bleu
from transduce.evaluation.scores import score
from transduce.inspection.cost import run_cost


class Printed(NamedTuple):
    """A row of the paper's table: BLEU and training FLOPs, None where it has none."""

    system: str
    bleu_de: float | None
    bleu_fr: float | None
    flops_de: float | None
    flops_fr: float | None


PRINTED: tuple[Printed, ...] = (
    Printed("ByteNet", 23.75, None, None, None),
    Printed("Deep-Att + PosUnk", None, 39.2, None, 1.0e20),
    Printed("GNMT + RL", 24.6, 39.92, 2.3e19, 1.4e20),
    Printed("ConvS2S", 25.16, 40.46, 9.6e18, 1.5e20),
    Printed("MoE", 26.03, 40.56, 2.0e19, 1.2e20),
    Printed("Deep-Att + PosUnk ensemble", None, 40.4, None, 8.0e20),
    Printed("GNMT + RL ensemble", 26.30, 41.16, 1.8e20, 1.1e21),
    Printed("ConvS2S ensemble", 26.36, 41.29, 7.7e19, 1.2e21),
    Printed("Transformer (base model)", 27.3, 38.1, 3.3e18, None),
    Printed("Transformer (big)", 28.4, 41.8, 2.3e19, None),
)


def score_system(
    name: str,
    outputs: Sequence[str],
    reference: Sequence[str],
    *,
    language: str,
    bundle: Bundle | None = None,
    sustained: float = 0.0,
) -> dict[str, Any]:
    """Both BLEUs of the outputs, and of the model that made them, where it is known, what its training cost.

    ``sustained`` is FLOP/s of one training device. Raises DataError for unequal line counts.
    """
    cost = None if bundle is None else run_cost(bundle.model, bundle.training, sustained)
    flops = None if cost is None else {"paper_unit": cost.paper_unit, "arithmetic": cost.arithmetic}
    names = [name, "the reference"]
    plain = score(outputs, reference, ter=False, names=names)
    paper = paper_bleu(outputs, [reference], language=language, names=names)
    return {
        "system": name,
        "bleu": plain.bleu,
        "signature": plain.signature,
        "paper_bleu": paper.bleu,
        "paper_signature": paper.signature,
        "flops": flops,
    }


def describe(rows: Sequence[Mapping[str, Any]], language: str) -> str:
    """The rows below the printed ones; only ``paper BLEU`` may be compared with those."""
    names = [row.system for row in PRINTED] + [row["system"] for row in rows]
    width = max(map(len, names))
    lines = [f"{'system':{width}}{'paper BLEU':>12}{'sacreBLEU':>11}{'FLOPs':>10}{'by arithmetic':>15}"]
    for row in PRINTED:
        bleu, flops = (getattr(row, f"{what}_{language}") for what in ("bleu", "flops"))
        if bleu is not None:
            cost = "" if flops is None else f"{flops:.1e}"
            lines.append(f"{row.system:{width}}{bleu:>12.2f}{'':>11}{cost:>10}")
    for found in rows:
        cost, counted = "", ""
        if found["flops"] is not None:
            cost, counted = (f"{found['flops'][kind]:.1e}" for kind in ("paper_unit", "arithmetic"))
        lines.append(
            f"{found['system']:{width}}{found['paper_bleu']:>12.2f}{found['bleu']:>11.2f}{cost:>10}{counted:>15}"
        )
    lines += dict.fromkeys(found[kind] for found in rows for kind in ("signature", "paper_signature"))
    return "\n".join(lines)
