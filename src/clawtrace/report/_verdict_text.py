"""Text about verdicts, case by case; what several verdicts share is printed once.

Repetitions that fail in the same way are one block that names them all; the assertions that have nothing but the same
sentence to say (there is no trace) are one block, too. Why a trace is incomplete is printed once for a case, before what
it leaves open; a hint is printed once, too. What many cases say alike comes first, as one block that names them. Texts
are alike where only figures differ; then the first is an example. After so many blocks each has one line.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from clawtrace.model.verdict import RunResult, Status, Verdict
from clawtrace.report._failures import without_figures
from clawtrace.report.base import CampaignReport, cases_of, is_open, without_reasons
from clawtrace.report.console import cut
from clawtrace.support.figures import count, listed

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
_MOST_SAID = 200
"""Characters of a message in one line."""
_WHOLE_BLOCKS = 20
_MOST_BLOCKS = 100
"""Blocks that are written with their spans, and at all; `-v` writes all of them."""
_ORDER = [Status.ERROR, Status.FAIL, Status.INCONCLUSIVE, Status.SKIP, Status.WARN, Status.PASS]


class _Block(NamedTuple):
    """Verdicts that say the same: of several repetitions, or of several assertions."""

    runs: Sequence[RunResult]
    labels: Sequence[str]
    """One assertion each, with its type where its id does not say it."""
    verdict: Verdict
    """The first of them, in the first of the runs."""
    message: str
    """Its text, without the parts printed once for the case."""
    shows_spans: bool
    cases: Sequence[str] = ()
    """What the block is of, where it is of several cases: each case with its model and repetitions."""


class _Common(NamedTuple):
    """Text that runs of many cases share."""

    key: Any
    members: Sequence[tuple[RunResult, int]]
    """The runs, with the place of what says it."""
    titles: Sequence[str]
    """Each case with its model and repetitions."""
    example: str
    """What the first run is called, where the figures of the texts differ."""


def print_verdicts(report: CampaignReport, console: ConsoleOutput, *, verbose: bool = False) -> None:
    """Print what did not pass, case by case, the gravest first; with `verbose` also what passed, each by itself."""
    cases = list(cases_of(report.results).values())
    writer = _Writer(console, report.trees, verbose)
    if not verbose and len(cases) >= _MANY_CASES:
        writer.write_many(cases)
    for runs in cases:
        writer.write_case(runs)
    if writer.blocks > _MOST_BLOCKS and not verbose:
        console.line((f"and {count(writer.blocks - _MOST_BLOCKS)} more that did not pass; -v shows all", "dim"))


def title_of(result: RunResult) -> str:
    """Return what a run is called: its case, and where there are several its model and repetition."""
    return _title([result], numbered=_is_numbered([result]))


def _is_numbered(runs: Sequence[RunResult]) -> bool:
    return len(runs) > 1 or runs[0].model_id is not None or runs[0].repetition != 1


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
        shown = () if cut else verdict.evidence
        why = tuple((item.name, without_figures(item.why), item.span_id is None) for item in shown)
        key = (verdict.id, verdict.description, why, *_said(verdict, message), cut)
        alike.setdefault(key, []).append((run, verdict, message))
    blocks: list[_Block] = []
    plain: dict[tuple[Any, ...], int] = {}
    for (*_, cut), members in alike.items():
        runs, (first, verdict, message) = [run for run, _, _ in members], members[0]
        message = _example(_repetitions([first]) if any(text != message for *_, text in members) else "", message)
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


def _said_by_many(
    cases: Sequence[Sequence[RunResult]], said: Callable[[RunResult], Iterable[tuple[Any, int, str]]]
) -> Iterable[_Common]:
    """Yield what many cases say alike; `said` yields of a run what is compared, a place and the text."""
    alike: dict[Any, dict[int, list[tuple[RunResult, int, int]]]] = {}
    for number, runs in enumerate(cases):
        for run in runs:
            for key, place, text in said(run):  # of thousands of runs only those that are read are in memory
                alike.setdefault(key, {}).setdefault(number, []).append((run, place, hash(text)))
    for key, by_case in alike.items():
        if len(by_case) >= _MANY_CASES:
            members = [member for of_case in by_case.values() for member in of_case]
            titles = [_title([run for run, *_ in of], _is_numbered(cases[number])) for number, of in by_case.items()]
            example = _title([members[0][0]], _is_numbered(cases[next(iter(by_case))]))
            example = example if len({text for *_, text in members}) > 1 else ""
            yield _Common(key, [(run, place) for run, place, _ in members], titles, example)


def _said(verdict: Verdict, message: str) -> tuple[Any, ...]:
    """Return what is said of a verdict, apart from its name, its spans and the figures."""
    texts = (without_figures(verdict.hint), without_figures(message))
    return verdict.status, verdict.severity, verdict.known_failure, verdict.stale, *texts


def _example(title: str, message: str) -> str:
    return f"For example in {title}: {message}" if title else message


def _gravity(verdict: Verdict) -> tuple[bool, int]:
    return verdict.severity == "warn", _ORDER.index(verdict.status)


def _label(verdict: Verdict) -> str:
    return verdict.id if verdict.id == verdict.type else f"{verdict.id} ({verdict.type})"


def _by(pairs: Iterable[tuple[str, RunResult]]) -> dict[str, list[RunResult]]:
    found: dict[str, list[RunResult]] = {}
    for text, run in pairs:
        found.setdefault(text, []).append(run)
    return found


class _Writer:
    """Writes blocks, and remembers what was said."""

    def __init__(self, console: ConsoleOutput, trees: Mapping[str, Sequence[SpanNode]], verbose: bool) -> None:
        self._console = console
        self._trees = trees
        self._verbose = verbose
        self._hidden: set[tuple[int, int]] = set()
        """Run and place of the verdicts that are in a block of many cases."""
        self._drawn: set[str] = set()
        """Runs whose trees were written."""
        self._notes: set[tuple[int, str]] = set()
        self.blocks = 0
        """How many there were, also those that were left out."""
        self._open: tuple[object, ...] = ()
        """Status and runs of the block before, where its verdicts have one line each."""
        self._errors: set[int] = set()
        """Runs whose error was written for many cases."""
        self._reasons: set[tuple[int, str]] = set()
        """Runs with the reasons, why their traces are incomplete, that were written for many cases."""

    def write_many(self, cases: Sequence[Sequence[RunResult]]) -> None:
        """Write what many cases say alike."""
        self._write_errors_of_many(cases)
        self._write_reasons_of_many(cases)
        hints: set[str] = set()
        for block in self._blocks_of_many(cases):
            self._write_block(block, numbered=False, hints=hints)
            for note in block.runs[0].diagnostics:
                of_all = {(id(run), note) for run in block.runs if note in run.diagnostics}
                if len(of_all) == len(block.runs) and not of_all <= self._notes:
                    self._console.paragraph(note, first="  note: ", indent="        ", style="dim")
                    self._notes |= of_all

    def write_case(self, runs: Sequence[RunResult]) -> None:
        """Write what the repetitions of a case have to say."""
        found = {id(run): list(run.verdicts) if self._verbose else run.not_passed() for run in runs}
        reported = [run for run in runs if found[id(run)] or run.error]
        numbered = _is_numbered(runs)
        for error, broken in _by((run.error, run) for run in runs if run.error and id(run) not in self._errors).items():
            self._write_cause("ERROR", "bold red", _title(broken, numbered), [error])
        pairs = [
            (run, verdict)
            for run in runs
            for place, verdict in enumerate(found[id(run)])
            if (id(run), place) not in self._hidden
        ]
        blocks = _alone(pairs) if self._verbose else _folded(pairs)
        silent = [run for run in reported if not run.spans]
        self._write_notes(silent, apart=True, which=lambda of: _title(of, numbered))  # why there is no trace
        self._write_reasons(reported, numbered)
        hints: set[str] = set()
        for block in blocks:
            self._write_block(block, numbered=numbered, hints=hints)
        others = [run for run in reported if run.spans]
        which = _repetitions if len(runs) > 1 else lambda _: ""
        self._write_notes(others, apart=self._verbose or len(blocks) > 1, which=which)

    def _write_block(self, block: _Block, *, numbered: bool, hints: set[str]) -> None:
        verdict, first, console = block.verdict, block.runs[0], self._console
        word = "known failure" if verdict.known_failure else verdict.status.value
        severity = ", severity warn" if verdict.severity == "warn" else ""
        status: Segment = (word.upper(), STATUS_STYLE[verdict.status])
        title = _of_cases(len(block.cases), len(block.runs)) if block.cases else _title(block.runs, numbered)
        open_runs = () if block.shows_spans or block.cases or self._verbose else tuple(map(id, block.runs))
        undecided = f"{', '.join(block.labels)}: {block.message.removesuffix(' More spans could change this.')}"
        if open_runs and self._open == (verdict.status, *open_runs):
            console.paragraph(undecided, first="  • ", indent="    ")
            return
        self._open = (verdict.status, *open_runs)
        heading = (status, (f"  {title}", "bold"), (f" · {', '.join(block.labels)}{severity}", ""))
        self.blocks += 1
        if self.blocks > _WHOLE_BLOCKS and not self._verbose:
            if self.blocks == _WHOLE_BLOCKS + 1:
                console.line()
            if self.blocks <= _MOST_BLOCKS:
                console.line(*heading, (f": {cut(block.message, _MOST_SAID)}", ""))
            return
        console.line()
        if open_runs:  # what the trace lacks was said: each has one line
            console.line(status, (f"  {title}", "bold"), (" · more spans could change each", ""))
            console.paragraph(undecided, first="  • ", indent="    ")
            return
        console.line(*heading)
        if verdict.description:
            console.paragraph(verdict.description, indent="  ", style="dim")
        console.paragraph(block.message, indent="  ")
        self._write_cases(block.cases)
        if block.shows_spans:
            among = f"spans of repetition {first.repetition}" if len(block.runs) > 1 else ""
            among = f"spans of {block.cases[0]}" if block.cases else among
            self._write_spans(verdict, first.run_id, among)
        if verdict.stale:
            console.paragraph("Spans of this run arrived after the verdict.", indent="  ", style="yellow")
        if verdict.hint and verdict.hint not in hints:
            console.paragraph(verdict.hint, first="  hint: ", indent="        ", style="cyan")
            hints.add(verdict.hint)
        if self._verbose and verdict.sql:
            console.line()
            for line in verdict.sql.strip().splitlines():
                console.line((f"    {line}", "dim"))
            if verdict.decided_by:
                said = f"decided by {verdict.decided_by['function']}, from these rows"
                console.paragraph(said, indent="    ", style="dim")

    def _write_cases(self, titles: Sequence[str]) -> None:
        """Name the first cases of a block of several."""
        if titles:
            self._console.paragraph(listed(titles, _NAMED_CASES), first="  in ", indent="     ", style="dim")

    def _write_spans(self, verdict: Verdict, run_id: str, among: str) -> None:
        """Write the tree with the spans that decided, and what decided without being one of its spans.

        A small tree is written whole once; after that, what is far from those spans is folded.
        """
        nodes = self._trees.get(run_id, ())
        in_tree = {node.span_id for node in nodes}
        marks = {item.span_id: item.why for item in verdict.evidence if item.span_id is not None}
        if marks.keys() & in_tree:
            from clawtrace.report.tree import tree_lines

            self._console.line()
            if among:
                self._console.paragraph(among, indent="  ", style="dim")
            first = run_id not in self._drawn
            for line in tree_lines(nodes, marks=marks, only_marked=True, small_whole=first, width=self._console.width):
                self._console.line(*line)
            self._drawn.add(run_id)
        elsewhere = (item for item in verdict.evidence if item.span_id not in in_tree)
        for said, times in Counter(": ".join(filter(None, (item.name, item.why))) for item in elsewhere).items():
            self._console.paragraph(f"{times} × {said}" if times > 1 else said, first="  • ", indent="    ")

    def _write_cause(self, word: str, style: str, title: str, texts: Iterable[str], text_style: str = "") -> None:
        self._console.line()
        self._console.line((word, style), (f"  {title}", "bold"))
        for text in texts:
            self._console.paragraph(text, indent="  ", style=text_style)

    def _blocks_of_many(self, cases: Sequence[Sequence[RunResult]]) -> list[_Block]:
        """Return what the verdicts of many cases say alike, the gravest first, then what most of them say."""

        def said(run: RunResult) -> Iterable[tuple[Any, int, str]]:
            explained = all((id(run), reason) in self._reasons for reason in run.incomplete_because)
            for place, verdict in enumerate(run.not_passed()):
                cut = is_open(run, verdict)
                if explained or not cut:  # else what could still change is explained with its case
                    message = without_reasons(run, verdict)
                    yield (cut, verdict.type, verdict.description, *_said(verdict, message)), place, message

        blocks = []
        for common in _said_by_many(cases, said):
            self._hidden |= {(id(run), place) for run, place in common.members}
            first, place = common.members[0]
            verdict = first.not_passed()[place]
            message = _example(common.example, without_reasons(first, verdict))
            runs = [run for run, _ in common.members]
            blocks.append(_Block(runs, [verdict.type], verdict, message, not common.key[0], common.titles))
        return sorted(blocks, key=lambda block: (*_gravity(block.verdict), -len(block.cases)))

    def _write_errors_of_many(self, cases: Sequence[Sequence[RunResult]]) -> None:
        """Write the errors that runs of many cases ended with, once for each."""
        for common in _said_by_many(
            cases, lambda run: [(without_figures(run.error), 0, run.error)] if run.error else ()
        ):
            runs = [run for run, _ in common.members]
            title, error = _of_cases(len(common.titles), len(runs)), _example(common.example, runs[0].error or "")
            self._write_cause("ERROR", "bold red", title, [error])
            self._write_cases(common.titles)
            self._errors |= set(map(id, runs))

    def _write_reasons_of_many(self, cases: Sequence[Sequence[RunResult]]) -> None:
        """Print why the traces of many cases are incomplete, once for each reason."""

        def said(run: RunResult) -> Iterable[tuple[str, int, str]]:
            if run.error or any(one.status is not Status.PASS for one in run.standings):
                yield from ((reason, 0, reason) for reason in run.incomplete_because)

        for common in _said_by_many(cases, said):
            self._write_cause("INCOMPLETE", "yellow", f"{len(common.titles)} cases", [common.key], "yellow")
            self._write_cases(common.titles)
            self._reasons |= {(id(run), common.key) for run, _ in common.members}

    def _write_reasons(self, runs: Sequence[RunResult], numbered: bool) -> None:
        """Print why traces are incomplete: the cause of all undecided verdicts below."""
        reasons = _by(
            (reason, run) for run in runs for reason in run.incomplete_because if (id(run), reason) not in self._reasons
        )
        by_runs: dict[tuple[int, ...], list[str]] = {}
        for reason, runs_of in reasons.items():
            by_runs.setdefault(tuple(map(id, runs_of)), []).append(reason)
        for of_same in by_runs.values():
            self._write_cause("INCOMPLETE", "yellow", _title(reasons[of_same[0]], numbered), of_same, "yellow")

    def _write_notes(
        self, runs: Sequence[RunResult], *, apart: bool, which: Callable[[Sequence[RunResult]], str]
    ) -> None:
        """Print further notes on the runs."""
        notes = _by((note, run) for run in runs for note in run.diagnostics if (id(run), note) not in self._notes)
        if apart and notes:
            self._console.line()
        for text, runs_of in notes.items():
            named = f" ({which(runs_of)})" if which(runs_of) else ""
            self._console.paragraph(text, first=f"  note{named}: ", indent="        ", style="dim")


def _title(runs: Sequence[RunResult], numbered: bool) -> str:
    parts = (runs[0].case_id, runs[0].model_id, _repetitions(runs) if numbered else None)
    return " · ".join(part for part in parts if part is not None)


def _of_cases(cases: int, runs: int) -> str:
    return f"{count(cases)} cases" + (f" ({count(runs)} runs)" if runs > cases else "")


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
