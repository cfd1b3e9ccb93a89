"""Recordings of agents whose truth is in spans and logs, with one of the two missing: less is known, nothing is wrong."""

from __future__ import annotations

import shutil
from pathlib import Path

import conformance
import pytest

RECORDINGS = Path(__file__).parents[2] / "recordings"
CASES = [
    path
    for path in conformance.recordings(RECORDINGS, ("claude-code", "codex", "gemini-cli"))
    if any(path.glob("logs.*"))
]


@pytest.mark.parametrize("missing", ["traces", "logs"])
@pytest.mark.full
def test_what_half_of_a_recording_says_is_true(missing: str, tmp_path: Path) -> None:
    """Each fact is true or unknown; what the other half still records is known."""
    for path in CASES:
        whole = tmp_path / path.parent.name / path.name
        shutil.copytree(path, whole)
        for file in whole.glob(f"{missing}.*"):
            file.unlink()
    halves = conformance.recordings(tmp_path)
    with conformance.loaded(halves) as session:
        runs = conformance.inspected(session)

    assert len(halves) == len(CASES) > 3
    for half in halves:
        facts = conformance.compare(half, runs[conformance.name(half)])
        wrong = {fact: found for fact, found in facts.items() if found[0] == "wrong"}

        assert (conformance.name(half), wrong) == (conformance.name(half), {})
        assert facts["llm_calls"][0] == facts["input_tokens"][0] == "true"
