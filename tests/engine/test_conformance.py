"""Every recording against its truth: what is wrong is named, unknown is told.

Two facts are wrong today and stand in `WRONG`: nothing may be added to it.

A fact that the recording lacks is None, and listed in `unknown.yaml` with its reason; a fact that is there and differs
is wrong.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import conformance
import pytest
import yaml

HERE = Path(__file__).parent
RECORDINGS = HERE.parent / "recordings"
CORPUS = HERE.parents[1].parent / "shared" / "corpus"
CLIENTS = ("pydantic-ai", "openai-agents+openinference", "openai-sdk+official")
"""The clients whose dialects exist; the others of the corpus come with their dialects."""

UNKNOWN: dict[str, dict[str, str]] = yaml.safe_load((HERE / "unknown.yaml").read_text(encoding="utf-8"))

WRONG = {
    # The SDK retries inside of one span: 0 is told where the number cannot be known.
    ("openai-sdk+official/model_error", "failed_llm_attempts"),
    # Its tools run outside of any span: no error is told where errors of tools cannot be known.
    ("openai-sdk+official/tool_error", "errors"),
}
"""(recording, fact) that come out as 0 and should be None; a fact that is listed as unknown must be None or true."""

CASES = conformance.recordings(CORPUS, CLIENTS) or conformance.recordings(RECORDINGS, CLIENTS)


@pytest.fixture(scope="module")
def inspected() -> dict[str, dict[str, Any]]:
    """What `clawtrace inspect --json` says of each recording, by ``client/scenario``."""
    return conformance.inspect(CASES)


@pytest.mark.parametrize("path", CASES, ids=conformance.name)
def test_recording_against_its_truth(path: Path, inspected: dict[str, dict[str, Any]]) -> None:
    """Each fact is true, or unknown for a listed reason; what is wrong is named, and taken off once it is mended."""
    name = conformance.name(path)
    facts = conformance.compare(path, inspected[name])
    listed = {**UNKNOWN.get(path.parent.name, {}), **UNKNOWN.get(name, {})}
    wrong = {fact: found for fact, found in facts.items() if found[0] == "wrong"}
    unknown = {fact for fact, (status, _, truth) in facts.items() if status == "unknown" and truth not in (None, 0)}

    assert set(wrong) == {fact for recording, fact in WRONG if recording == name}, wrong
    assert unknown - set(listed) == set()


def test_the_list_of_unknown_facts_is_short_and_needed(inspected: dict[str, dict[str, Any]]) -> None:
    """Every entry names a recording's client or the recording, a fact, and a reason."""
    clients = {run_id.split("/")[0] for run_id in inspected}

    for key, entries in UNKNOWN.items():
        if key.split("/")[0] in clients:
            assert set(entries) <= set(conformance.FACTS)
            assert all(len(reason) > 20 for reason in entries.values())
    assert sum(map(len, UNKNOWN.values())) <= 15
