"""A comparison of systems as text for the terminal and as one page for a browser."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from transduce.counts import counted
from transduce.evaluation.compare import SIGNIFICANT, Comparison, significant

_STYLE = """
:root { color-scheme: light dark; --line: #8884; --mark: #b5410d; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 1rem auto; padding: 0 1rem; }
table { border-collapse: collapse; margin: .5rem 0 1.5rem; }
th, td { text-align: left; padding: .2rem .6rem; border-bottom: 1px solid var(--line); vertical-align: top; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
.best { font-weight: 700; } .real { color: var(--mark); }
"""


def describe(found: Comparison) -> str:
    """Tables for the terminal; * marks a difference to the first system with p < 0.05."""
    lines = [f"warning: {warning}" for warning in found.warnings]
    width = max(8, *(len(name) for name in found.systems))
    comet = "comet" in found.whole[0]
    heads = f"{'system':{width}}   BLEU   chrF    TER{'   COMET' if comet else ''}"
    lines += [counted(found.sentences, "sentence"), heads]
    for name, whole in zip(found.systems, found.whole, strict=True):
        more = f"{whole['comet']:8.4f}" if comet else ""
        lines.append(f"{name:{width}} {whole['bleu']:6.2f} {whole['chrf']:6.2f} {whole['ter']:6.2f}{more}")
    for test, rows in found.tests.items():
        lines += ["", f"paired {test} against {found.systems[0]}"]
        for tested in rows:
            if tested.p is not None:
                mark = " *" if significant(tested) else ""
                digits = _digits(tested.metric)
                spread = ""
                if tested.interval is not None:
                    spread = f", {tested.mean:.{digits}f} +- {tested.interval:.{digits}f}"
                told = f"{tested.score:6.{digits}f}{spread}, p = {tested.p:.4f}{mark}"
                lines.append(f"{tested.system:{width}} {tested.metric:5} {told}")
    for title, parts in found.parts.items():
        value = "F1" if title.startswith("frequency") else "BLEU"
        names = max([len(title), *(len(part.name) for part in parts)])
        heads = "".join(f"{name[-12:]:>13}" for name in found.systems)
        lines += ["", f"{title:{names}}{'count':>9}{heads}  ({value})"]
        for part in parts:
            cells = "".join(f"{value:13.2f}" for value in part.scores)
            lines.append(f"{part.name:{names}}{part.size:>9,}{cells}")
    lines += _sentences(found)
    return "\n".join([*lines, "", *dict.fromkeys(whole["signature"] for whole in found.whole)])


def _digits(metric: str) -> int:
    """Decimals of a score: COMET's lie between 0 and 1."""
    return 4 if metric == "comet" else 2


def _sentences(found: Comparison) -> list[str]:
    if not found.differing:
        return []
    lines = ["", "sentences that differ most (chrF)"]
    width = max(9, *(len(name) for name in found.systems))
    for sentence in found.differing:
        lines += [f"line {sentence.line}", f"  {'source':{width}}        {sentence.source}"]
        lines.append(f"  {'reference':{width}}        {sentence.reference}")
        for name, output, value in zip(found.systems, sentence.outputs, sentence.scores, strict=True):
            lines.append(f"  {name:{width}} {value:6.1f} {output}")
    return lines


def page(found: Comparison) -> str:
    """One HTML page with all tables; it needs nothing else."""
    parts = [f"<p>{escape(warning)}</p>" for warning in found.warnings]
    parts.append(f"<p>{counted(found.sentences, 'sentence')}.</p>")
    metrics = [name for name in ("bleu", "chrf", "ter", "comet") if name in found.whole[0]]
    rows = [
        [name, *(f"{whole[metric]:.{_digits(metric)}f}" for metric in metrics)]
        for name, whole in zip(found.systems, found.whole, strict=True)
    ]
    heads = ["system", *("BLEU", "chrF", "TER", "COMET")[: len(metrics)]]
    parts.append(_table(heads, rows, best=(1, 2, -3, 4)[: len(metrics)]))
    for test, tested_rows in found.tests.items():
        parts.append(f"<h2>Paired {escape(test)} against {escape(found.systems[0])}</h2>")
        rows = [
            [
                t.system,
                t.metric,
                f"{t.score:.{_digits(t.metric)}f}",
                f"{t.p:.4f}" + (" *" if significant(t) else ""),
            ]
            for t in tested_rows
            if t.p is not None
        ]
        parts.append(_table(["system", "metric", "score", f"p (* below {SIGNIFICANT})"], rows))
    for title, of in found.parts.items():
        value = "F1" if title.startswith("frequency") else "BLEU"
        parts.append(f"<h2>{value} by {escape(title)}</h2>")
        rows = [[part.name, f"{part.size:,}", *(f"{v:.2f}" for v in part.scores)] for part in of]
        parts.append(_table([title, "count", *found.systems], rows))
    parts.append("<h2>Sentences that differ most</h2>" if found.differing else "")
    for sentence in found.differing:
        rows = [["source", "", sentence.source], ["reference", "", sentence.reference]]
        rows += [
            [name, f"{value:.1f}", output]
            for name, output, value in zip(found.systems, sentence.outputs, sentence.scores, strict=True)
        ]
        parts.append(_table([f"line {sentence.line}", "chrF", ""], rows))
    signatures = "".join(f"<p>{escape(s)}</p>" for s in dict.fromkeys(w["signature"] for w in found.whole))
    title = escape(" / ".join(found.systems))
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title><style>{_STYLE}</style></head><body>\n<h1>{title}</h1>\n"
        + "\n".join(part for part in parts if part)
        + f"\n{signatures}\n</body></html>\n"
    )


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]], best: Sequence[int] = ()) -> str:
    """A table; of the columns in ``best`` the highest number is marked (of negative ones the lowest)."""
    marked = set()
    for column in best:
        values = [float(row[abs(column)]) for row in rows]
        goal = max(values) if column > 0 else min(values)
        marked |= {(i, abs(column)) for i, value in enumerate(values) if value == goal}

    def kind(row: int, column: int, cell: str) -> str:
        numeric = cell.replace(",", "").replace(".", "").replace(" *", "").isdecimal()
        names = [name for name, on in (("number", numeric), ("best", (row, column) in marked)) if on]
        names += ["real"] if cell.endswith(" *") else []
        return f' class="{" ".join(names)}"' if names else ""

    head = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in heads)
    body = "".join(
        "<tr>" + "".join(f"<td{kind(i, j, cell)}>{escape(cell)}</td>" for j, cell in enumerate(row)) + "</tr>"
        for i, row in enumerate(rows)
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
