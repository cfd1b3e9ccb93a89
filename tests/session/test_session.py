"""The session: what it refuses, and that one question at a time sees current facts."""

from __future__ import annotations

from pathlib import Path

import pytest

from clawtrace.assertions.registry import parse_assertion
from clawtrace.config.projects.session_settings import SessionSettings
from clawtrace.errors import ReceiverError, UsageError
from clawtrace.receiver.recordings.recording import Grouping
from clawtrace.receiver.redaction.redact import RedactionSettings
from clawtrace.session.session import Session

RECORDING = Path(__file__).parents[1] / "recordings" / "pydantic-ai" / "one_tool"


def test_a_question_about_secrets_cannot_be_asked_without_redaction() -> None:
    """It would pass whatever leaked: a verdict that is not true is refused."""
    settings = SessionSettings(redaction=RedactionSettings(enabled=False))
    with Session.open(settings=settings) as session:
        session.load_recordings([RECORDING], Grouping("one", "r"))
        with pytest.raises(UsageError, match="redaction is off"):
            session.evaluate(["r"], [parse_assertion({"type": "no_secret_leak"})])


@pytest.mark.parametrize(
    ("redaction", "words"),
    [
        (RedactionSettings(kinds_off=("jwt",)), "to ignore secrets of the kind `jwt`: these would not be found."),
        (RedactionSettings(environment=False), "to ignore values of environment variables: these"),
        (RedactionSettings(), ""),
    ],
    ids=["kinds off", "environment off", "all"],
)
def test_a_verdict_on_secrets_says_what_was_not_looked_for(redaction: RedactionSettings, words: str) -> None:
    """Narrower redaction is never a silent pass; verdicts that do not rest on marks say nothing of it."""
    asked = [parse_assertion({"type": "no_secret_leak"}), parse_assertion({"type": "no_span_errors"})]
    with Session.open(settings=SessionSettings(redaction=redaction)) as session:
        session.load_recordings([RECORDING], Grouping("one", "r"))
        leak, errors = session.evaluate(["r"], asked)[0].verdicts

    assert words in leak.message
    assert ("Redaction is set" in leak.message) is bool(words)
    assert "Redaction is set" not in errors.message


def test_an_unknown_run_is_named() -> None:
    with Session.open() as session, pytest.raises(UsageError, match="no run 'r1'"):
        session.inspect(["r1"])


def test_a_session_that_does_not_receive_says_so() -> None:
    with Session.open() as session, pytest.raises(ReceiverError, match="receive=True"):
        _ = session.endpoints


def test_a_store_on_disk_keeps_runs_facts_and_numbers(tmp_path: Path) -> None:
    """What one session recorded, the next one is asked about, without computing it again."""
    with Session.open(tmp_path / "spans.duckdb") as session:
        session.load_recordings([RECORDING], Grouping("one", "r"))
        first = session.inspect()
    with Session.open(tmp_path / "spans.duckdb") as session:
        assert session.run_ids() == ["r"]
        assert session.inspect() == first


def test_evidence_of_passes_can_be_left_out() -> None:
    called = parse_assertion({"type": "tool_was_called", "tool": "get_weather"})
    with Session.open() as session:
        session.load_recordings([RECORDING], Grouping("one", "r"))
        ((full,), (bare,)) = (
            session.evaluate(["r"], [called], evidence_of_passes=wanted)[0].verdicts for wanted in (True, False)
        )

    assert full.evidence
    assert not bare.evidence
    assert full.status == bare.status
