"""Hints on unknown facts: what would record them, and nothing where no setting would."""

import pytest

from clawtrace.dialects import load_dialects
from clawtrace.verdicts.judging.coverage import hint_for

DIALECTS = [dialect for dialect in load_dialects() if dialect.name == "otel-genai"]


@pytest.mark.parametrize(
    "missing", ["the text of the file", "runs.workspace", "runs.run_id", "spans.end_ns", "redaction"]
)
def test_what_no_instrumentation_records_gets_no_setting(missing: str) -> None:
    """Where the fact is the runner's, a file's or was taken out, no setting of an instrumentation is named."""
    assert hint_for(missing, DIALECTS) == ""


def test_a_command_that_could_not_be_split_is_no_matter_of_content_capture() -> None:
    """Its text was recorded: the hint says how to ask about all of it."""
    assert "could not be split" in hint_for("commands.last_no", DIALECTS)
    assert "CAPTURE_MESSAGE_CONTENT" in hint_for("commands.text", DIALECTS)


@pytest.mark.parametrize("missing", ["tool_calls", "errors", "agents", "llm_calls", "runs.final_output"])
def test_a_program_with_spans_of_its_own_learns_what_shows_the_fact(missing: str) -> None:
    """No instrumentation wrote them, so no setting helps: the hint names attributes of the GenAI conventions."""
    others = [dialect for dialect in load_dialects() if dialect.name == "langsmith"]

    assert "`gen_ai." in hint_for(missing, DIALECTS)
    assert "`gen_ai." not in hint_for(missing, others)
