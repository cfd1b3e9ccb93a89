"""Facts of a recording compared with its truth: `true`, `unknown` or `wrong`, fact by fact.

A fact is true where it is exactly what happened, and wrong where what happened is none of the worlds that the facts allow: a
count outside of its bounds, a certain row of what did not happen, something that happened and that no row or gap may be.

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

from clawtrace.config.projects.session_settings import SessionSettings
from clawtrace.conformance import facts
from clawtrace.conformance.facts import FACTS, multiset
from clawtrace.receiver.recordings.recording import Grouping
from clawtrace.session.session import Session

DETAILS = ("failed_llm_attempts", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens")
"""Facts that many instrumentations never record; the others are the core."""

LOST = frozenset(("nemo-agent-toolkit", "opencode", "codex/soak-lost-process"))
"""Clients, or recordings, that end without sending their last spans: their recordings must not be complete, and what is counted in them is at
most what happened."""


def recordings(root: Path, clients: tuple[str, ...] = ()) -> list[Path]:
    """Return the folders below `root` that hold a recording and its truth, of those `clients` (all when none is named)."""
    found = (path.parent for path in root.glob("*/*/truth.json") if not clients or path.parent.parent.name in clients)
    return sorted(path for path in found if any(path.glob("*.otlp.jsonl*")))


def name(path: Path) -> str:
    """Return ``client/scenario``."""
    return f"{path.parent.name}/{path.name}"


@contextmanager
def loaded(paths: Iterable[Path], *dialects: Path) -> Iterator[Session]:
    """Open a session whose runs are the recordings, each named ``client/scenario``; `dialects` are folders of a project's own."""
    with Session.open(settings=SessionSettings(dialects=dialects)) as session:
        for path in paths:
            session.load_recordings([path], Grouping("one", name(path)))
        yield session


def inspected(session: Session) -> dict[str, dict[str, Any]]:
    """Return what `clawtrace inspect --json` says of each run, by its id."""
    return {run["run_id"]: run for run in session.inspect()["runs"]}


def compare(path: Path, run: dict[str, Any]) -> dict[str, tuple[str, Any, Any]]:
    """Return for each fact whether it is true, unknown or wrong, what was found and what is true."""
    truth = json.loads((path / "truth.json").read_text(encoding="utf-8"))
    return facts.compare(run, truth, whole=LOST.isdisjoint((path.parent.name, name(path))))


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
        sums = [call[fact] for call in calls], [sum(call[fact] or 0 for call in calls)]
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
    totals, calls, tools = run["totals"], run["llm_calls"], run["tool_calls"]
    return {
        **{fact: totals[fact] for fact in FACTS if fact in totals and fact != "errors"},
        "models": None
        if calls is None or any(call["response_model"] is None for call in calls)
        else Counter(call["response_model"] for call in calls),
        "tool_calls": None
        if tools is None or any(call["outcome"] == "unknown" or call["name"] is None for call in tools)
        else multiset((call["name"], call["outcome"] in ("error", "blocked")) for call in tools),
        "arguments": None
        if tools is None or any(call["arguments"] is None or call["name"] is None for call in tools)
        else multiset((call["name"], call["arguments"]) for call in tools),
        "agents": None if run["agents"] is None else {agent["name"] for agent in run["agents"]},
        "delegations": None if run["delegations"] is None else {tuple(pair) for pair in run["delegations"]},
        "errors": None if run["errors"] is None else len(run["errors"]),
        "final_output": run["final_output"],
        "complete": run["complete"],
    }


def main(root: Path, clients: tuple[str, ...]) -> None:
    """Print the table client x fact, and below it each wrong fact with what was found and what is true."""
    paths = recordings(root, clients)
    with loaded(paths) as session:
        runs = inspected(session)
    table: dict[str, dict[str, Counter[str]]] = {}
    words = []
    sums: Counter[str] = Counter()
    for path in paths:
        for fact, (status, seen, truth) in compare(path, runs[name(path)]).items():
            if fact not in DETAILS:
                sums[status] += 1
                sums["absent"] += status == "unknown" and is_absent(path, fact)
            table.setdefault(path.parent.name, {}).setdefault(fact, Counter())[status] += 1
            if status == "wrong":
                words.append(f"{name(path)}: {fact}: found {seen!r}, true is {truth!r}")
    print("true/unknown/wrong".ljust(32), *(fact[:9].rjust(9) for fact in FACTS))
    for client, found in table.items():
        cells = (f"{n['true']}/{n['unknown']}/{n['wrong']}" for n in (found.get(fact, Counter()) for fact in FACTS))
        print(client.ljust(32), *(cell.rjust(9) for cell in cells))
    print(
        f"core facts: {sums['true']} true, {sums['unknown']} unknown ({sums['absent']} of them occur nowhere in the recording), {sums['wrong']} wrong"
    )
    print(*words, sep="\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), tuple(sys.argv[2:]))
