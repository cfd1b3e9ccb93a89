"""Every recording against its truth: what is wrong is named, unknown is told.

Two facts are wrong today and stand in `WRONG`: nothing may be added to it.

`truth.json` was written by the model server and the tools themselves, never from the trace. A fact that the recording
lacks is None, and listed in `unknown.yaml` with its reason; a fact that is there and differs is wrong.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml

from clawtrace.receiver.recording import Grouping
from clawtrace.session import Session

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


def cases(root: Path) -> list[Path]:
    found = (path.parent for client in CLIENTS for path in root.glob(f"{client}/*/truth.json"))
    return sorted(path for path in found if any(path.glob("traces.otlp.jsonl*")))


CASES = cases(CORPUS) or cases(RECORDINGS)


def summed(calls: list[dict[str, Any]], key: str) -> int:
    return sum(call[key] or 0 for call in calls)


def tools(calls: list[tuple[str, Any, bool]]) -> Counter[str]:
    return Counter(json.dumps(call, sort_keys=True) for call in calls)


def true_facts(truth: dict[str, Any]) -> dict[str, Any]:
    calls = truth["llm_calls"]
    return {
        "llm_calls": len(calls),
        "failed_llm_attempts": len(truth["failed_llm_attempts"]),
        "models": Counter(call["response_model"] or call["model"] for call in calls),
        "input_tokens": summed(calls, "input_tokens"),
        "output_tokens": summed(calls, "output_tokens"),
        "cache_read_tokens": summed(calls, "cached_input_tokens"),
        "cache_write_tokens": summed(calls, "cache_write_tokens"),
        "reasoning_tokens": summed(calls, "reasoning_tokens"),
        "tool_calls": tools([(call["name"], call["arguments"], call["error"]) for call in truth["tools"]]),
        "agents": set(truth["agents"]),
        "delegations": {tuple(pair) for pair in truth["delegations"]},
        "errors": truth["errors"],
        "final_output": truth["final_output"],
        "complete": True,
    }


def found_facts(run: dict[str, Any]) -> dict[str, Any]:
    totals, calls = run["totals"], run["llm_calls"]
    executed = None if run["tool_calls"] is None else [c for c in run["tool_calls"] if c["outcome"] != "requested"]
    # What no call recorded is unknown; a server that never says "cached: 0" had none to tell of.
    optional = {name: totals[name] for name in ("cache_read_tokens", "cache_write_tokens", "reasoning_tokens")}
    return {
        "llm_calls": totals["llm_calls"],
        "failed_llm_attempts": totals["failed_llm_attempts"],
        "models": None if calls is None else Counter(call["response_model"] or call["request_model"] for call in calls),
        "input_tokens": totals["input_tokens"],
        "output_tokens": totals["output_tokens"],
        **optional,
        "tool_calls": None
        if executed is None
        else tools([(call["name"], call["arguments"], call["outcome"] == "error") for call in executed]),
        "agents": None if run["agents"] is None else {agent["name"] for agent in run["agents"]},
        "delegations": None if run["delegations"] is None else {tuple(pair) for pair in run["delegations"]},
        "errors": None if run["errors"] is None else len(run["errors"]),
        "final_output": run["final_output"],
        "complete": run["complete"],
    }


@pytest.fixture(scope="module")
def inspected() -> dict[str, dict[str, Any]]:
    """What `clawtrace inspect --json` says of each recording, by ``client/scenario``."""
    with Session.open() as session:
        for path in CASES:
            session.load_recordings([path], Grouping.one_run(name(path)))
        return {run["run_id"]: run for run in session.inspect()["runs"]}


def name(path: Path) -> str:
    return f"{path.parent.name}/{path.name}"


@pytest.mark.parametrize("path", CASES, ids=name)
def test_recording_against_its_truth(path: Path, inspected: dict[str, dict[str, Any]]) -> None:
    """Each fact is true, or unknown for a listed reason; what is wrong is named, and taken off once it is mended."""
    truth = true_facts(json.loads((path / "truth.json").read_text(encoding="utf-8")))
    found = found_facts(inspected[name(path)])
    listed = {**UNKNOWN.get(path.parent.name, {}), **UNKNOWN.get(name(path), {})}
    wrong = {fact: (found[fact], truth[fact]) for fact in truth if found[fact] not in (None, truth[fact])}
    unknown = {fact for fact in truth if found[fact] is None and truth[fact] not in (None, 0)}

    assert set(wrong) == {fact for recording, fact in WRONG if recording == name(path)}
    assert unknown - set(listed) == set()


def test_the_list_of_unknown_facts_is_short_and_needed(inspected: dict[str, dict[str, Any]]) -> None:
    """Every entry names a recording's client or the recording, a fact, and a reason."""
    facts = set(true_facts({"llm_calls": [], "failed_llm_attempts": [], "tools": [], "agents": [], "delegations": [], "errors": 0, "final_output": None}))  # fmt: skip
    clients = {run_id.split("/")[0] for run_id in inspected}

    for key, entries in UNKNOWN.items():
        if key.split("/")[0] in clients:
            assert set(entries) <= facts
            assert all(len(reason) > 20 for reason in entries.values())
    assert sum(map(len, UNKNOWN.values())) <= 15
