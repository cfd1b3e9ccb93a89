"""The mutation score as `suggest`, `init` and `mutate` print it."""

from __future__ import annotations

import io
import re

import pytest

from clawtrace.campaign.mutating.mutations import Mutant, ScoredRun
from clawtrace.cli.sources.recorded_run import print_score
from clawtrace.report.console import console_for

SCORE = ScoredRun(
    run_id="run",
    caught=1,
    faults=2,
    score=0.5,
    mutants=[
        Mutant(fault="left_out", what="`search` is not called", caught=True, caught_by=["order"], undecided=[]),
        Mutant(
            fault="other_argument",
            what="`send_the_monthly_report` gets another `recipient_of_the_report`",
            caught=False,
            caught_by=[],
            undecided=["who"],
        ),
    ],
    not_holding=["an_assertion_with_a_long_name_that_was_wrong_from_the_start"],
    not_asked=["file_exists"],
    not_made=["a tool is not called"],
)
SHOWN = """\
Mutation score: 1 of 2 faults are caught.
fault                         caught
────────────────────────────────────
a tool is not called          1 of 1
a tool gets another argument  0 of 1
  missed: `send_the_monthly_report` gets another `recipient_of_the_report`
    (undecided: who)
  Not counted: further faults that this telemetry would not show (1).
  an_assertion_with_a_long_name_that_was_wrong_from_the_start does not pass on
  the run itself, and was not asked
  Not scored, because not about the trace: file_exists
"""


class Tty(io.StringIO):
    """A stream that is a terminal of 80 columns."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("no_color", [False, True])
def test_it_fits_80_columns_with_and_without_colour(monkeypatch: pytest.MonkeyPatch, no_color: bool) -> None:
    """On a terminal nothing is wider than 80 columns; NO_COLOR takes every colour away, and no word."""
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("NO_COLOR", raising=False)
    if no_color:
        monkeypatch.setenv("NO_COLOR", "1")
    stream = Tty()
    print_score(SCORE, console_for(stream))
    plain = re.sub(r"\x1b\[[0-9;]*m", "", stream.getvalue())

    assert "".join(f"{line.rstrip()}\n" for line in plain.splitlines()) == SHOWN
    assert bool(re.search(r"\x1b\[(3|9)\dm", stream.getvalue())) is not no_color


def test_a_pipe_gets_plain_lines() -> None:
    """No escape, and each sentence on one line."""
    stream = io.StringIO()
    print_score(SCORE, console_for(stream))

    assert "\x1b" not in stream.getvalue()
    assert "does not pass on the run itself, and was not asked\n" in stream.getvalue()
