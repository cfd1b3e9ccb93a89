"""Facts of a recording compared with its truth: `true`, `unknown` or `wrong`, fact by fact.

    python tests/facts/conformance.py CORPUS [CLIENT…]      # a table, and what is wrong in words

`truth.json` was written by the model server and the tools themselves, never from the trace.
"""

from __future__ import annotations

import gzip
import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from clawtrace.model.relations import NOT_EXECUTED
from clawtrace.receiver.recordings.recording import Grouping
from clawtrace.session.session import Session

FACTS = (
    "llm_calls", "failed_llm_attempts", "models", "input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens",
    "reasoning_tokens", "tool_calls", "arguments", "agents", "delegations", "errors", "final_output", "complete",
)  # fmt: skip

DETAILS = ("failed_llm_attempts", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens")
"""Facts that many instrumentations never record; the others are the core."""

LOST = frozenset(("opencode",))
"""Clients that end without sending their last spans: their recordings must not be complete, and what is counted in them is at
most what happened."""


def recordings(root: Path, clients: tuple[str, ...] = ()) -> list[Path]:
    """Return the folders below `root` that hold a recording and its truth, of those `clients` (all when none is named)."""
    found = (path.parent for path in root.glob("*/*/truth.json") if not clients or path.parent.parent.name in clients)
    return sorted(path for path in found if any(path.glob("*.otlp.jsonl*")))


def name(path: Path) -> str:
    """Return ``client/scenario``."""
    return f"{path.parent.name}/{path.name}"


@contextmanager
def loaded(paths: Iterable[Path]) -> Iterator[Session]:
    """Open a session whose runs are the recordings, each named ``client/scenario``."""
    with Session.open() as session:
        for path in paths:
            session.load_recordings([path], Grouping.one_run(name(path)))
        yield session


def inspected(session: Session) -> dict[str, dict[str, Any]]:
    """Return what `clawtrace inspect --json` says of each run, by its id."""
    return {run["run_id"]: run for run in session.inspect()["runs"]}


def compare(path: Path, run: dict[str, Any]) -> dict[str, tuple[str, Any, Any]]:
    """Return for each fact whether it is true, unknown or wrong, what was found and what is true."""
    truth = _truth(path)
    facts = found(run)
    result = {}
    for fact in FACTS:
        if fact in truth["unjudged"]:
            continue
        result[fact] = (_status(facts[fact], truth[fact], path.parent.name in LOST), facts[fact], truth[fact])
    return result


def _status(found: Any, truth: Any, lost: bool) -> str:
    if found == truth:
        return "true"
    fewer = lost and isinstance(found, int | Counter | set) and not isinstance(found, bool) and found <= truth
    return "unknown" if fewer or (found is None and truth is not None) else "wrong"


def _truth(path: Path) -> dict[str, Any]:
    truth = json.loads((path / "truth.json").read_text(encoding="utf-8"))
    calls = truth["llm_calls"]
    return {
        "llm_calls": len(calls),
        "failed_llm_attempts": len(truth["failed_llm_attempts"]),
        "models": Counter(call["response_model"] or call["model"] for call in calls),
        "input_tokens": _summed(calls, "input_tokens"),
        "output_tokens": _summed(calls, "output_tokens"),
        "cache_read_tokens": _summed(calls, "cached_input_tokens"),
        "cache_write_tokens": _summed(calls, "cache_write_tokens"),
        "reasoning_tokens": _summed(calls, "reasoning_tokens"),
        "tool_calls": multiset((call["name"], call["error"]) for call in truth["tools"]),
        "arguments": multiset((call["name"], call["arguments"]) for call in truth["tools"]),
        "agents": set(truth["agents"]),
        "delegations": {tuple(pair) for pair in truth["delegations"]},
        "errors": truth["errors"],
        "final_output": truth["final_output"],
        "complete": path.parent.name not in LOST,
        "unjudged": {"tool_calls" if fact == "tools" else fact for fact in truth.get("unjudged", ())},
    }


def is_absent(path: Path, fact: str) -> bool:
    """Return whether a recording cannot tell a core fact: a value that makes it up occurs nowhere in what was exported.

    False does not mean that it can: a name may occur and be no agent's. Of numbers of calls and failures nothing is said.
    """
    truth = json.loads((path / "truth.json").read_text(encoding="utf-8"))
    calls, tools = truth["llm_calls"], truth["tools"]
    values: dict[str, list[Any]] = {
        "models": [call["response_model"] or call["model"] for call in calls],
        "tool_calls": [tool["name"] for tool in tools],
        "arguments": [value for tool in tools for value in tool["arguments"].values()],
        "agents": truth["agents"],
        "delegations": [name for pair in truth["delegations"] for name in pair],
        "final_output": [] if truth["final_output"] is None else [truth["final_output"]],
    }
    text = _exported(path)
    if fact in ("input_tokens", "output_tokens"):
        sums = [call[fact] for call in calls], [_summed(calls, fact)]
        return not any(all(_holds(text, value) for value in of) for of in sums)
    return any(not _holds(text, value) for value in values.get(fact, ()))


def _exported(path: Path) -> str:
    """Return what was exported, without the escapes of JSON inside of JSON."""
    texts = []
    for file in sorted(path.glob("*.otlp.jsonl*")):
        data = file.read_bytes()
        texts.append((gzip.decompress(data) if file.suffix == ".gz" else data).decode())
    return re.sub(r'\\+(["\\/])', r"\1", "".join(texts))


def _holds(text: str, value: Any) -> bool:
    """Return whether a value occurs as a whole word."""
    return re.search(rf"(?<![\w.-]){re.escape(str(value))}(?![\w-])", text) is not None


def found(run: dict[str, Any]) -> dict[str, Any]:
    """Return the facts of a run of `clawtrace inspect --json`, None where they are unknown."""
    totals, calls = run["totals"], run["llm_calls"]
    executed = None if run["tool_calls"] is None else [c for c in run["tool_calls"] if c["outcome"] not in NOT_EXECUTED]
    return {
        **{fact: totals[fact] for fact in FACTS if fact in totals and fact != "errors"},
        "models": None
        if calls is None or any(call["response_model"] is None for call in calls)
        else Counter(call["response_model"] for call in calls),
        "tool_calls": None
        if executed is None or any(call["outcome"] == "unknown" or call["name"] is None for call in executed)
        else multiset((call["name"], call["outcome"] in ("error", "blocked")) for call in executed),
        "arguments": None
        if executed is None or any(call["arguments"] is None or call["name"] is None for call in executed)
        else multiset((call["name"], call["arguments"]) for call in executed),
        "agents": None if run["agents"] is None else {agent["name"] for agent in run["agents"]},
        "delegations": None if run["delegations"] is None else {tuple(pair) for pair in run["delegations"]},
        "errors": None if run["errors"] is None else len(run["errors"]),
        "final_output": run["final_output"],
        "complete": run["complete"],
    }


def _summed(calls: list[dict[str, Any]], key: str) -> int:
    return sum(call[key] or 0 for call in calls)


def multiset(calls: Iterable[tuple[str, Any]]) -> Counter[str]:
    """Return calls, each with a fact of it, in a form that is the same whatever their order."""
    return Counter(json.dumps(_as_json(call), sort_keys=True) for call in calls)


def _as_json(value: Any) -> Any:
    """Return a value with its numbers as JSON knows them: 21 and 21.0 are one."""
    if isinstance(value, dict):
        return {key: _as_json(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_as_json(inner) for inner in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def main(root: Path, clients: tuple[str, ...]) -> None:
    """Print the table client x fact, and below it each wrong fact with what was found and what is true."""
    paths = recordings(root, clients)
    with loaded(paths) as session:
        runs = inspected(session)
    table: dict[str, dict[str, Counter[str]]] = {}
    words = []
    sums: Counter[str] = Counter()
    for path in paths:
        for fact, (status, found, truth) in compare(path, runs[name(path)]).items():
            if fact not in DETAILS:
                sums[status] += 1
                sums["absent"] += status == "unknown" and is_absent(path, fact)
            table.setdefault(path.parent.name, {}).setdefault(fact, Counter())[status] += 1
            if status == "wrong":
                words.append(f"{name(path)}: {fact}: found {found!r}, true is {truth!r}")
    print("true/unknown/wrong".ljust(32), *(fact[:9].rjust(9) for fact in FACTS))
    for client, facts in table.items():
        cells = (f"{n['true']}/{n['unknown']}/{n['wrong']}" for n in (facts.get(fact, Counter()) for fact in FACTS))
        print(client.ljust(32), *(cell.rjust(9) for cell in cells))
    print(
        f"core facts: {sums['true']} true, {sums['unknown']} unknown ({sums['absent']} of them occur nowhere in the recording), {sums['wrong']} wrong"
    )
    print(*words, sep="\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), tuple(sys.argv[2:]))
