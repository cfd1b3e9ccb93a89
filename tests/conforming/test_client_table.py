"""The table of many clients: what is kept of a result, and one client tried again as `make conformance` does."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from not_run import not_run

sys.path.insert(0, str(Path(__file__).parent))

import client_table as table
from environments import CannotInstallError, program_of


def test_what_is_kept_is_what_another_version_is_compared_with() -> None:
    """Marks of each fact by scenario come back as they were; a fact that a scenario does not decide has none."""
    trials = [
        {"scenario": "answer", "happened": True, "attributes": {"a": "int"}, "facts": {"models": {"status": "absent"}}},
        {"scenario": "delegation", "happened": False, "attributes": {}, "facts": {}},
        {
            "scenario": "one_tool",
            "happened": True,
            "attributes": {"b": "string"},
            "facts": {"models": {"status": "true"}, "tool_calls": {"status": "wrong"}},
        },
    ]
    kept = table.packed({"trials": trials}, {"agent": "1.0"})
    again = table.unpacked(json.loads(json.dumps(kept)))["trials"]

    assert kept["facts"] == {"models": "·✓", "tool_calls": "-✗"}
    assert [(one["scenario"], one["facts"]) for one in again] == [
        (one["scenario"], one["facts"]) for one in trials if one["happened"]
    ]
    assert again[0]["attributes"] == {"a": "int", "b": "string"}


@pytest.mark.parametrize(
    ("pinned", "free"),
    [
        ("agno==2.1", "agno"),
        ("smolagents[openai]==1.2", "smolagents[openai]"),
        ("@ai-sdk/mcp@2.0", "@ai-sdk/mcp"),
        ("ai@7.0", "ai"),
    ],
)
def test_the_newest_version_is_the_one_without_a_pin(pinned: str, free: str) -> None:
    assert table.newest(pinned) == free


def test_the_results_are_of_thirty_clients_and_none_tells_of_nothing() -> None:
    kept = json.loads(table.KEPT.read_text("utf-8"))

    assert len(kept) >= 30
    assert kept.keys() <= {name for name, *_ in table.clients()}
    for name, one in kept.items():
        assert one["packages"], name
        assert any("✓" in marks for marks in one["facts"].values()), name


@pytest.mark.full
def test_a_client_tells_what_the_table_says() -> None:
    """Pydantic AI with its pinned packages: each fact as it is kept, but of `killed`: what was sent before is a matter of time."""
    kept = json.loads(table.KEPT.read_text("utf-8"))["pydantic-ai+native"]
    ((framework, instrumentations),) = [(one, on) for name, one, on in table.clients() if name == "pydantic-ai+native"]
    try:
        program = program_of(framework)
    except CannotInstallError as error:
        not_run("registry", str(error))
    found = table.packed(
        json.loads(table.tried(framework, instrumentations, "--json").stdout), table.versions(framework, program)
    )

    assert (found["packages"], found["scenarios"]) == (kept["packages"], kept["scenarios"])
    assert _untimed(found) == _untimed(kept)


def _untimed(one: dict[str, Any]) -> dict[str, str]:
    timed = one["scenarios"].index("killed")
    return {name: marks[:timed] + marks[timed + 1 :] for name, marks in one["facts"].items()}
