"""Hints on unknown facts: what would record them, and nothing where no setting would."""

import pytest

from clawtrace.dialects.load import load_dialects
from clawtrace.model.reasons import REASONS
from clawtrace.verdicts.coverage import hint_for

DIALECTS = [dialect for dialect in load_dialects() if dialect.name == "otel-genai"]


def test_a_reason_of_an_instrumentation_names_its_setting() -> None:
    """What a dialect says that it could record is named with the setting that would record it."""
    assert "CAPTURE_MESSAGE_CONTENT" in hint_for("tool_calls", [REASONS["arguments-not-recorded"]], DIALECTS)


def test_another_reason_says_what_settles_it() -> None:
    """Without a fact that an instrumentation records, its own words are the hint; the first reason that has any goes first."""
    reasons = [REASONS["recovery-unknown"], REASONS["no-price"]]

    assert hint_for("llm_calls", [REASONS["no-price"]], DIALECTS) == REASONS["no-price"].settled_by != ""
    assert hint_for("errors", reasons, DIALECTS) == next(one.settled_by for one in reasons if one.settled_by)


@pytest.mark.parametrize("missing", ["runs.workspace", "runs.run_id", "spans.end_ns", "redaction"])
def test_what_no_instrumentation_records_gets_no_setting(missing: str) -> None:
    """Where the fact is the runner's, a file's or was taken out, no setting of an instrumentation is named."""
    assert hint_for(missing, [], DIALECTS) == ""


@pytest.mark.parametrize("missing", ["tool_calls", "errors", "agents", "llm_calls", "runs.final_output"])
def test_a_program_with_spans_of_its_own_learns_what_shows_the_fact(missing: str) -> None:
    """No instrumentation wrote them, so no setting helps: the hint names attributes of the GenAI conventions."""
    others = [dialect for dialect in load_dialects() if dialect.name == "langsmith"]

    assert "`gen_ai." in hint_for(missing, [], DIALECTS)
    assert "`gen_ai." not in hint_for(missing, [], others)
