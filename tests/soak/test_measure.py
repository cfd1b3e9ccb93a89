"""The measure: what it says of a few recordings and programs, and of two series that differ."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from measure import Answer, differences, everything, findings, tables

pytestmark = pytest.mark.full

RECORDINGS = Path(__file__).parents[1] / "recordings"


def test_a_recording_and_a_program_are_measured(tmp_path: Path) -> None:
    """Facts and verdicts of these are compared with their truth, and nothing is wrong."""
    one = tmp_path / "some" / "pydantic-ai"
    one.mkdir(parents=True)
    (one / "delegation").symlink_to(RECORDINGS / "pydantic-ai" / "delegation")

    answers = everything([tmp_path / "some"], range(1))

    assert {answer.run for answer in answers} == {"pydantic-ai/delegation", "hand-written/00000", "foreign/00000"}
    assert {"true", "right"} <= {answer.state for answer in answers}
    assert list(findings(answers)) == []
    assert any(line.startswith("| pydantic-ai | ") for line in tables(answers, reasons=5))


def test_a_claim_that_fails_is_contrary_and_listed() -> None:
    """What a change made wrong is among the differences, with both sentences."""
    claim = json.dumps({"type": "tool_not_invoked", "tool": "refund"})
    before = [Answer("a/b", claim, "undecided", "It may have been called.", holds=True)]
    after = [Answer("a/b", claim, "contrary", "It was called.", holds=True)]

    lines = list(differences(before, after, cases=1))

    assert lines[0].split(maxsplit=1) == ["1", "tool_not_invoked: undecided → contrary"]
    assert "It may have been called." in lines[2]
    assert list(findings(after)) == [f"contrary: a/b: {claim}: It was called."]
