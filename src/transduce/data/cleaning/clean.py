"""A corpus from any files through all filters into a file of any format, with a side file and a report."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from itertools import chain, count
from pathlib import Path

from transduce.data.cleaning.cleaner import judged
from transduce.data.cleaning.dropped import dropped_format
from transduce.data.cleaning.filters import Filters
from transduce.data.cleaning.report import CleaningReport
from transduce.data.cleaning.scores import ByScore
from transduce.data.cleaning.verdict import Verdict
from transduce.data.conversion import Inputs, check_outputs, languages_of, peeked, written_names
from transduce.data.crew import ALONE, Crew
from transduce.data.formats.pair import Pair
from transduce.data.formats.tally import Tally
from transduce.data.formats.writing import write_pairs
from transduce.data.outputs import open_output
from transduce.errors import UsageError
from transduce.files import same_file

Drop = Callable[[Verdict], object]
Tell = Callable[[int], object]


def cleaned(
    verdicts: Iterable[list[Verdict]],
    report: CleaningReport,
    drop: Drop = lambda verdict: None,
    tell: Tell = lambda done: None,
) -> Iterator[Pair]:
    """The pairs that are kept, mended, in order; ``report`` counts all of them.

    ``drop`` gets the verdict on each other pair, ``tell`` how many are done, now and then.
    """
    for chunk in verdicts:
        for verdict in chunk:
            report.add(verdict)
            if verdict.kept:
                yield verdict.mended
            else:
                drop(verdict)
        tell(report.pairs)


def clean(
    inputs: Inputs,
    output: str | Path,
    filters: Filters,
    *,
    kind: str = "",
    dropped: str | Path = "",
    by_score: ByScore | None = None,
    crew: Crew = ALONE,
    tell: Tell = lambda done: None,
) -> CleaningReport:
    """What became of the pairs of ``inputs``: those that are kept are in ``output``, others in ``dropped``.

    The filters look at the languages that are wanted, else at those that the first file names. The name
    ``output`` or ``kind`` tells the format that is written. Without a name for the side file it
    stands beside the output: ``out.tsv`` has ``out.tsv.dropped.jsonl``. Neither file appears before both are
    complete. UsageError where something is read as well as written, or standard input would be read twice.
    """
    dropped = str(dropped) or dropped_name(output)
    as_line = dropped_format(dropped)
    check_outputs(inputs, [output], kind)
    check_free_name(dropped, inputs, output, kind, what="the dropped pairs")
    if by_score is not None and by_score.share is not None and "-" in inputs.files():
        raise UsageError(
            "standard input can be read once only, and the best share is known when all was read; name a file"
        )
    tally = Tally()
    first, pairs = peeked(inputs.read(tally))
    languages = languages_of(inputs.wanted, tally, first)
    filters = replace(filters, source_language=languages.source, target_language=languages.target)
    names = [*filters.names(), *(["score"] if by_score else [])]
    report = CleaningReport.of(names, filters.repair_names(), filters.idle())
    readings = chain([pairs], (inputs.read(Tally()) for _ in count()))

    def judge() -> Iterator[list[Verdict]]:
        return judged(next(readings), filters, crew=crew)

    with ExitStack() as stack:
        side = stack.enter_context(open_output(dropped))
        verdicts = by_score.judged(judge) if by_score else judge()
        kept = cleaned(verdicts, report, lambda verdict: side.write(as_line(verdict).encode()), tell)
        write_pairs(kept, output, languages, tally, kind)
    report.notes += tally.lines()
    return report


def check_free_name(path: str, inputs: Inputs, output: str | Path, kind: str, *, what: str) -> None:
    """Nothing; UsageError where ``path`` is one of the inputs, or of the files that the output will be."""
    written = {Path(name).resolve() for name in (*written_names(inputs, [output], kind), output)}
    if Path(path).resolve() in written or any(same_file(path, name) for name in inputs.files()):
        raise UsageError(f"{path}: is read or written as well; name another file for {what}")


def dropped_name(output: str | Path) -> str:
    """The name of the side file where none was given; UsageError where the output has no name."""
    if str(output) == "-":
        raise UsageError("the output is standard output; name a file for the dropped pairs with --dropped")
    return f"{output}.dropped.jsonl"
