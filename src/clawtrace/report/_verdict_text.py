"""What people read about verdicts, case by case: what several of them say alike is said once.

Repetitions that fail in the same way are one block that names them all; the assertions that have nothing but the same
sentence to say (there is no trace) are one block, too. Why a trace is incomplete is printed once for a case, before what
it leaves open; a hint is printed once, too. What many cases say alike comes first, as one block that names them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from typing import TYPE_CHECKING, Any, NamedTuple

from clawtrace.model.verdict import RunResult, Status, Verdict
from clawtrace.report.base import CampaignReport, cases_of, is_open, without_reasons

if TYPE_CHECKING:
    from clawtrace.report.console import ConsoleOutput, Segment
    from clawtrace.verdicts.reading.tree_view import SpanNode

__all__ = ["STATUS_STYLE", "print_verdicts", "title_of"]

STATUS_STYLE: Mapping[Status | None, str] = {
    Status.PASS: "green",
    Status.FAIL: "red",
    Status.ERROR: "bold red",
    Status.INCONCLUSIVE: "yellow",
    Status.SKIP: "yellow",
    Status.WARN: "yellow",
    None: "yellow",
}
_MANY_CASES = 3
"""Cases from which on what they say alike is one block."""
_NAMED_CASES = 10
"""Of the cases of such a block, those that are named; the table of runs has them all."""
_ORDER = [Status.ERROR, Status.FAIL, Status.INCONCLUSIVE, Status.SKIP, Status.WARN, Status.PASS]


class _Block(NamedTuple):
    """Verdicts that say the same: of several repetitions, or of several assertions."""

    runs: Sequence[RunResult]
    labels: Sequence[str]
    """One assertion each, with its type where its id does not say it."""
    verdict: Verdict
    """The first of them, in the first of the runs."""
    message: str
    """What it says, without what is said once for the case."""
    shows_spans: bool
    cases: Sequence[str] = ()
    """What the block is of, where it is of several cases: each case with its model and repetitions."""


def print_verdicts(report: CampaignReport, console: ConsoleOutput, *, verbose: bool = False) -> None:
    """Print what did not pass, case by case, the gravest first; with `verbose` also what passed, each by itself."""
    cases = list(cases_of(report.results).values())
    hidden: set[tuple[int, int]] = set()
    hints: set[str] = set()
    printed: set[tuple[int, str]] = set()
    printed_reasons = set() if verbose else _print_reasons_of_many(cases, console)
    for block in () if verbose else _of_many_cases(cases, hidden, printed_reasons):
        _print_block(block, report.trees, console, numbered=False, hints=hints, verbose=False)
        for note in _notes_of_all(block.runs):
            if (id(block.runs[0]), note) not in printed:
                console.paragraph(note, first="  note: ", indent="        ", style="dim")
            printed |= {(id(run), note) for run in block.runs}
    for runs in cases:
        _print_case(runs, hidden, printed, printed_reasons, report.trees, console, verbose=verbose)


def title_of(result: RunResult) -> str:
    """Return what a run is called: its case, and where there are several its model and repetition."""
    return _title([result], numbered=result.model_id is not None or result.repetition != 1)


def _print_case(
    runs: Sequence[RunResult],
    hidden: Set[tuple[int, int]],
    printed: Set[tuple[int, str]],
    printed_reasons: Set[tuple[int, str]],
    trees: Mapping[str, Sequence[SpanNode]],
    console: ConsoleOutput,
    *,
    verbose: bool,
) -> None:
    found = {id(run): list(run.verdicts) if verbose else run.not_passed() for run in runs}
    reported = [run for run in runs if found[id(run)] or run.error]
    shown = {run: [one for place, one in enumerate(of) if (run, place) not in hidden] for run, of in found.items()}
    numbered = _is_numbered(runs)
    for error, broken in _by((run.error, run) for run in runs if run.error).items():
        console.line()
        console.line(("ERROR", "bold red"), (f"  {_title(broken, numbered)}", "bold"))
        console.paragraph(error, indent="  ")
    pairs = [(run, verdict) for run in runs for verdict in shown[id(run)]]
    blocks = _alone(pairs) if verbose else _folded(pairs)
    silent = [run for run in reported if not run.spans]
    _print_notes(silent, printed, console, apart=True, which=lambda of: _title(of, numbered))  # why there is no trace
    _print_reasons(reported, printed_reasons, console, numbered)
    hints: set[str] = set()
    for block in blocks:
        _print_block(block, trees, console, numbered=numbered, hints=hints, verbose=verbose)
    others = [run for run in reported if run.spans]
    which = _repetitions if len(runs) > 1 else lambda _: ""
    _print_notes(others, printed, console, apart=verbose or len(blocks) > 1, which=which)


def _is_numbered(runs: Sequence[RunResult]) -> bool:
    return len(runs) > 1 or runs[0].model_id is not None or runs[0].repetition != 1


# -- what is said once ------------------------------------------------------------------------------------------------


def _alone(pairs: Sequence[tuple[RunResult, Verdict]]) -> list[_Block]:
    """Return a block for each verdict, run by run."""
    blocks = [_Block([run], [_label(verdict)], verdict, without_reasons(run, verdict), True) for run, verdict in pairs]
    places = {id(run): place for place, (run, _) in enumerate(pairs)}
    return sorted(blocks, key=lambda block: (places[id(block.runs[0])], *_gravity(block.verdict)))


def _folded(pairs: Sequence[tuple[RunResult, Verdict]]) -> list[_Block]:
    """Return the blocks of a case: verdicts that are alike over its repetitions, then assertions that say the same."""
    # What could still change is a matter of the trace: said once, and where several verdicts could, no span decided.
    several = sum(is_open(run, verdict) for run, verdict in pairs) > 1
    alike: dict[tuple[Any, ...], list[tuple[RunResult, Verdict, str]]] = {}
    for run, verdict in sorted(pairs, key=lambda pair: _gravity(pair[1])):
        cut = several and is_open(run, verdict)
        message = without_reasons(run, verdict)
        why = () if cut else tuple((item.name, item.why, item.span_id is None) for item in verdict.evidence)
        key = (verdict.id, verdict.description, why, *_said(verdict, message), cut)
        alike.setdefault(key, []).append((run, verdict, message))
    blocks: list[_Block] = []
    plain: dict[tuple[Any, ...], int] = {}
    for (*_, cut), members in alike.items():
        runs, (_, verdict, message) = [run for run, _, _ in members], members[0]
        block = _Block(runs, [_label(verdict)], verdict, message, not cut)
        if verdict.evidence or verdict.description or cut:
            blocks.append(block)
            continue
        place = plain.setdefault((*_said(verdict, message), *map(id, runs)), len(blocks))
        if place == len(blocks):
            blocks.append(block)
        else:
            blocks[place] = blocks[place]._replace(labels=[*blocks[place].labels, _label(verdict)])
    return blocks


def _of_many_cases(
    cases: Sequence[Sequence[RunResult]], hidden: set[tuple[int, int]], printed_reasons: Set[tuple[int, str]]
) -> list[_Block]:
    """Return what many cases say alike, the gravest first, then what most of them say.

    Args:
        hidden: run and place of the verdicts that are in a block; they are added here. A verdict itself is not kept: of thousands
            of runs only those that are read are in memory.
        printed_reasons: runs with the reasons, why their traces are incomplete, that were printed for many cases.
    """
    alike: dict[tuple[Any, ...], dict[int, list[tuple[RunResult, int]]]] = {}
    for number, runs in enumerate(cases):
        for run in runs:
            explained = all((id(run), reason) in printed_reasons for reason in run.incomplete_because)
            for place, verdict in enumerate(run.not_passed()):
                cut = is_open(run, verdict)
                if explained or not cut:  # else what could still change is explained with its case
                    key = (cut, verdict.type, verdict.description, *_said(verdict, without_reasons(run, verdict)))
                    alike.setdefault(key, {}).setdefault(number, []).append((run, place))
    blocks = []
    for (cut, *_), by_case in alike.items():
        if len(by_case) < _MANY_CASES:
            continue
        members = [member for of_case in by_case.values() for member in of_case]
        hidden |= {(id(run), place) for run, place in members}
        first, place = members[0]
        verdict = first.not_passed()[place]
        titles = [_title([run for run, _ in of], _is_numbered(cases[number])) for number, of in by_case.items()]
        runs_of, message = [run for run, _ in members], without_reasons(first, verdict)
        blocks.append(_Block(runs_of, [verdict.type], verdict, message, not cut, titles))
    return sorted(blocks, key=lambda block: (*_gravity(block.verdict), -len(block.cases)))


def _notes_of_all(runs: Sequence[RunResult]) -> list[str]:
    """Return the notes that all of the runs have."""
    return [note for note in runs[0].diagnostics if all(note in run.diagnostics for run in runs)]


def _said(verdict: Verdict, message: str) -> tuple[Any, ...]:
    """Return the text about a verdict, apart from its name and its spans."""
    return verdict.status, verdict.severity, verdict.known_failure, verdict.stale, verdict.hint, message


def _gravity(verdict: Verdict) -> tuple[bool, int]:
    return verdict.severity == "warn", _ORDER.index(verdict.status)


def _label(verdict: Verdict) -> str:
    return verdict.id if verdict.id == verdict.type else f"{verdict.id} ({verdict.type})"


def _by(pairs: Iterable[tuple[str, RunResult]]) -> dict[str, list[RunResult]]:
    found: dict[str, list[RunResult]] = {}
    for text, run in pairs:
        found.setdefault(text, []).append(run)
    return found


# -- how it is written ------------------------------------------------------------------------------------------------


def _print_block(
    block: _Block,
    trees: Mapping[str, Sequence[SpanNode]],
    console: ConsoleOutput,
    *,
    numbered: bool,
    hints: set[str],
    verbose: bool,
) -> None:
    verdict, first = block.verdict, block.runs[0]
    console.line()
    word = "known failure" if verdict.known_failure else verdict.status.value
    severity = ", severity warn" if verdict.severity == "warn" else ""
    status: Segment = (word.upper(), STATUS_STYLE[verdict.status])
    labels = f" · {', '.join(block.labels)}{severity}"
    title = f"{len(block.cases)} cases" if block.cases else _title(block.runs, numbered)
    console.line(status, (f"  {title}", "bold"), (labels, ""))
    if verdict.description:
        console.paragraph(verdict.description, indent="  ", style="dim")
    console.paragraph(block.message, indent="  ")
    _print_cases(block.cases, console)
    if block.shows_spans:
        among = f"spans of repetition {first.repetition}" if len(block.runs) > 1 else ""
        among = f"spans of {block.cases[0]}" if block.cases else among
        _print_spans(verdict, trees.get(first.run_id, ()), console, among)
    if verdict.stale:
        console.paragraph("Spans of this run arrived after the verdict.", indent="  ", style="yellow")
    if verdict.hint and verdict.hint not in hints:
        console.paragraph(verdict.hint, first="  hint: ", indent="        ", style="cyan")
        hints.add(verdict.hint)
    if verbose and verdict.sql:
        _print_sql(verdict, console)


def _print_cases(titles: Sequence[str], console: ConsoleOutput) -> None:
    """Name the first cases of a block of several."""
    if titles:
        more = len(titles) - _NAMED_CASES
        named = ", ".join(titles[:_NAMED_CASES]) + (f" and {more} more" if more > 0 else "")
        console.paragraph(named, first="  in ", indent="     ", style="dim")


def _print_spans(verdict: Verdict, nodes: Sequence[SpanNode], console: ConsoleOutput, among: str) -> None:
    """Print the tree with the spans that decided, and what decided without being one of its spans."""
    in_tree = {node.span_id for node in nodes}
    marks = {item.span_id: item.why for item in verdict.evidence if item.span_id is not None}
    if marks.keys() & in_tree:
        from clawtrace.report.tree import tree_lines

        console.line()
        if among:
            console.paragraph(among, indent="  ", style="dim")
        for line in tree_lines(nodes, marks=marks, only_marked=True, width=console.width):
            console.line(*line)
    for item in verdict.evidence:
        if item.span_id not in in_tree:
            console.paragraph(": ".join(filter(None, (item.name, item.why))), first="  • ", indent="    ")


def _print_sql(verdict: Verdict, console: ConsoleOutput) -> None:
    console.line()
    for line in verdict.sql.strip().splitlines():
        console.line((f"    {line}", "dim"))
    if verdict.decided_by:
        console.paragraph(f"decided by {verdict.decided_by['function']}, from these rows", indent="    ", style="dim")


def _print_reasons_of_many(cases: Sequence[Sequence[RunResult]], console: ConsoleOutput) -> set[tuple[int, str]]:
    """Say why the traces of many cases are incomplete, once for each reason; return the runs with it."""
    by_reason: dict[str, dict[int, list[RunResult]]] = {}
    for number, runs in enumerate(cases):
        for run in runs:
            if run.error or any(one.status is not Status.PASS for one in run.standings):
                for reason in run.incomplete_because:
                    by_reason.setdefault(reason, {}).setdefault(number, []).append(run)
    printed_reasons = set()
    for reason, by_case in by_reason.items():
        if len(by_case) >= _MANY_CASES:
            console.line()
            console.line(("INCOMPLETE", "yellow"), (f"  {len(by_case)} cases", "bold"))
            console.paragraph(reason, indent="  ", style="yellow")
            _print_cases([_title(of, _is_numbered(cases[number])) for number, of in by_case.items()], console)
            printed_reasons |= {(id(run), reason) for of in by_case.values() for run in of}
    return printed_reasons


def _print_reasons(
    runs: Sequence[RunResult], printed_reasons: Set[tuple[int, str]], console: ConsoleOutput, numbered: bool
) -> None:
    """Say why traces are incomplete: the cause of everything that could not be decided below it."""
    reasons = _by(
        (reason, run) for run in runs for reason in run.incomplete_because if (id(run), reason) not in printed_reasons
    )
    by_runs: dict[tuple[int, ...], list[str]] = {}
    for reason, runs_of in reasons.items():
        by_runs.setdefault(tuple(map(id, runs_of)), []).append(reason)
    for of_same in by_runs.values():
        console.line()
        console.line(("INCOMPLETE", "yellow"), (f"  {_title(reasons[of_same[0]], numbered)}", "bold"))
        for reason in of_same:
            console.paragraph(reason, indent="  ", style="yellow")


def _print_notes(
    runs: Sequence[RunResult],
    printed: Set[tuple[int, str]],
    console: ConsoleOutput,
    *,
    apart: bool,
    which: Callable[[Sequence[RunResult]], str],
) -> None:
    """Say what else there is to know of the runs."""
    notes = _by((note, run) for run in runs for note in run.diagnostics if (id(run), note) not in printed)
    if apart and notes:
        console.line()
    for text, runs_of in notes.items():
        named = which(runs_of)
        console.paragraph(text, first=f"  note{f' ({named})' if named else ''}: ", indent="        ", style="dim")


def _title(runs: Sequence[RunResult], numbered: bool) -> str:
    first = runs[0]
    parts = [first.case_id, first.model_id, _repetitions(runs) if numbered else None]
    return " · ".join(part for part in parts if part is not None)


def _repetitions(runs: Sequence[RunResult]) -> str:
    """Return ``repetition 3``, or ``repetitions 1-4, 6``."""
    ranges: list[list[int]] = []
    for number in sorted({run.repetition for run in runs}):
        if ranges and ranges[-1][-1] == number - 1:
            ranges[-1][1:] = [number]
        else:
            ranges.append([number])
    listed = ", ".join("-".join(map(str, one)) for one in ranges)
    return f"repetition{'s' if listed != str(runs[0].repetition) else ''} {listed}"
