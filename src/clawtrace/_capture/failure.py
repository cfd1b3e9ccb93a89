"""What a check that did not pass says: the report's own words, with the span tree."""

from __future__ import annotations

import io
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from clawtrace.errors import ExitCode
from clawtrace.model.verdict import RunResult, Verdict

if TYPE_CHECKING:
    from clawtrace.verdicts.reading.tree_view import SpanNode

__all__ = ["CheckFailedError", "CheckWarning", "failure_text", "tree_text"]


class CheckFailedError(AssertionError):
    """Something that was asked of a trace is not known to be true; the message is a whole report with the tree."""

    def __init__(self, message: str, verdicts: Sequence[Verdict] = ()) -> None:
        super().__init__(message)
        self.verdicts = tuple(verdicts)
        """Those that did not pass, in the order of the question."""


class CheckWarning(UserWarning):
    """A verdict that did not pass and does not fail the test: its severity is `warn`, or it is a warning itself."""


for _public in (CheckFailedError, CheckWarning):
    _public.__module__ = "clawtrace"  # where people import it from is what tracebacks name


def failure_text(result: RunResult, failed: Sequence[Verdict], nodes: Sequence[SpanNode]) -> str:
    """Return the text about the verdicts `failed` of a run: sentence, evidence, hints, and the tree with its marks."""
    from clawtrace.report.base import CampaignReport
    from clawtrace.report.console import PlainConsole
    from clawtrace.report.terminal import print_verdicts

    stream = io.StringIO()
    shown = result._replace(verdicts=tuple(failed))
    report = CampaignReport(None, datetime.now(UTC), [shown], ExitCode.FAILED, trees={result.run_id: nodes})
    print_verdicts(report, PlainConsole(stream))
    text = stream.getvalue().strip("\n")
    drawn = {node.span_id for node in nodes} & {item.span_id for verdict in failed for item in verdict.evidence}
    return text if drawn or not nodes else f"{text}\n\n{tree_text(nodes)}"


def tree_text(nodes: Sequence[SpanNode]) -> str:
    """Return the spans of a run as a tree, as plain text."""
    from clawtrace.report.console import PlainConsole
    from clawtrace.report.tree import tree_lines

    stream = io.StringIO()
    console = PlainConsole(stream)
    for line in tree_lines(nodes):
        console.line(*line)
    return stream.getvalue().rstrip("\n")
