"""Facts of a run compared with what truly happened: true, unknown or wrong, fact by fact.

A fact is true where it is exactly what happened, and wrong where what happened is none of the worlds that the facts allow: a
count outside of its bounds, a certain row of what did not happen, something that happened and that no row or gap may be.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from clawtrace.model.reasons import REASONS

__all__ = ["FACTS", "compare", "multiset", "rows"]

FACTS = (
    "llm_calls", "failed_llm_attempts", "models", "input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens",
    "reasoning_tokens", "tool_calls", "arguments", "agents", "delegations", "errors", "final_output", "complete",
)  # fmt: skip


def compare(
    run: Mapping[str, Any], happened: Mapping[str, Any], *, whole: bool = True
) -> dict[str, tuple[str, Any, Any]]:
    """Return for each fact whether it is true, unknown or wrong, what was found and what is true.

    Args:
        run: what `clawtrace inspect --json` says of it.
        happened: model calls, failed attempts, tools, agents, delegations, errors and the answer, as the model's server and the
            tools tell them; `unjudged` names facts of which nothing is told.
        whole: whether the trace is complete.
    """
    truth = _truth(happened, whole)
    result = {}
    for fact in FACTS:
        if fact not in truth["unjudged"]:
            status, seen = _status(fact, run, truth)
            result[fact] = (status, seen, truth[fact])
    return result


def _status(fact: str, run: Mapping[str, Any], truth: Mapping[str, Any]) -> tuple[str, Any]:
    """Return what a fact is and what was found."""
    if fact == "complete":
        return ("true" if run["complete"] == truth["complete"] else "wrong"), run["complete"]
    if fact == "final_output":
        answer, doubted = run["final_output"], any(one["relation"] == "runs" for one in run["doubts"])
        if answer == truth[fact]:
            return "true", answer
        return ("unknown" if answer is None or doubted else "wrong"), answer
    if fact not in _ROWS:
        # An attempt that was refused ended in an error.
        return _number(run, fact, truth[fact], len(truth["asked"]) if fact == "errors" else 0)
    status, seen = _ROWS[fact](run, truth)
    if fact == "tool_calls" and _number(run, fact, len(truth["tools"]), len(truth["asked"]))[0] == "wrong":
        return "wrong", seen
    return status, seen


def _number(run: Mapping[str, Any], fact: str, true: int | list[int], may: int = 0) -> tuple[str, Any]:
    least, most = (min(true), max(true)) if isinstance(true, list) else (true, true)
    low, high, exact = run["totals"][f"{fact}_low"], run["totals"][f"{fact}_high"], run["totals"][fact]
    if low is None or low > most + may or (high is not None and high < least):
        return "wrong", (low, high)
    return ("true" if exact is not None and least <= exact <= most + may else "unknown"), (low, high)


def rows(run: Mapping[str, Any], relation: str) -> list[dict[str, Any]]:
    """Return the rows of a relation, certain or not."""
    return (run["seen"][relation] if run[relation] is None else run[relation]) or []


def _gaps(run: Mapping[str, Any], relation: str) -> list[dict[str, Any]]:
    return [gap for gap in run["gaps"] if gap["relation"] == relation]


def _recorded(gaps: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the gaps in what was received."""
    return [gap for gap in gaps if not REASONS[gap["reason"]].unfinished]


def _worlds(
    seen: Sequence[tuple[tuple[Any, ...], bool]],
    gaps: Sequence[dict[str, Any]],
    must: Sequence[tuple[Any, ...]],
    may: Sequence[tuple[Any, ...]] = (),
) -> tuple[str, Any]:
    """Compare rows (each with whether it is certain) with what happened, and what may be a row of it; None is any value."""
    sure = [row for row, certain in seen if certain]
    found: list[tuple[Any, ...]] = [row for row, _ in seen]
    for gap in gaps:
        any_row = (gap["name"],) + (None,) * (len(must[0]) - 1 if must else 0)
        found += [any_row] * (len(must) if gap["at_most"] is None else gap["at_most"])
    if not _match(sure, [*must, *may]) or not _match(must, found):
        return "wrong", seen
    exact = not _recorded(gaps) and len(sure) == len(seen) and not any(None in row for row in sure)
    return ("true" if exact else "unknown"), seen


def _match(each: Sequence[tuple[Any, ...]], among: Sequence[tuple[Any, ...]]) -> bool:
    """Return whether each of some has another partner that is like it."""
    taken: dict[int, int] = {}

    def place(one: int, tried: set[int]) -> bool:
        for other, candidate in enumerate(among):
            alike = all(None in (a, b) or a == b for a, b in zip(each[one], candidate, strict=False))
            if alike and other not in tried:
                tried.add(other)
                if other not in taken or place(taken[other], tried):
                    taken[other] = one
                    return True
        return False

    return all(place(one, set()) for one in range(len(each)))


def _models(run: Mapping[str, Any], truth: Mapping[str, Any]) -> tuple[str, Any]:
    calls = [call for call in rows(run, "llm_calls") if call["outcome"] != "error"]
    gaps = [gap for gap in _gaps(run, "llm_calls") if gap["outcome"] != "error"]
    seen = [((call["response_model"],), call["certain"] and call["outcome"] == "ok") for call in calls]
    return _worlds(seen, gaps, [(model,) for model in truth["models"].elements()])


def _tool_calls(run: Mapping[str, Any], truth: Mapping[str, Any]) -> tuple[str, Any]:
    outcomes = {"ok": False, "error": True, "blocked": True}
    seen = [((call["name"], outcomes.get(call["outcome"])), call["certain"]) for call in rows(run, "tool_calls")]
    must = [(tool["name"], tool["error"]) for tool in truth["tools"]]
    return _worlds(seen, _gaps(run, "tool_calls"), must, [(name, None) for name in truth["asked"]])


def _arguments(run: Mapping[str, Any], truth: Mapping[str, Any]) -> tuple[str, Any]:
    seen = [
        ((call["name"], None if call["arguments"] is None else _as_json(call["arguments"])), call["certain"])
        for call in rows(run, "tool_calls")
    ]
    must = [(tool["name"], _as_json(tool["arguments"])) for tool in truth["tools"]]
    return _worlds(seen, _gaps(run, "tool_calls"), must, [(name, None) for name in truth["asked"]])


def _agents(run: Mapping[str, Any], truth: Mapping[str, Any]) -> tuple[str, Any]:
    agents, gaps = rows(run, "agents"), _gaps(run, "agents")
    sure = {agent["name"] for agent in agents if agent["certain"]} - {None}
    open_ = bool(gaps) or any(agent["name"] is None for agent in agents)
    if not sure <= truth["agents"] or not (open_ or truth["agents"] <= {agent["name"] for agent in agents}):
        return "wrong", sure
    open_ = bool(_recorded(gaps)) or any(agent["name"] is None for agent in agents)
    return ("unknown" if open_ or sure != truth["agents"] else "true"), sure


def _delegations(run: Mapping[str, Any], truth: Mapping[str, Any]) -> tuple[str, Any]:
    agents, gaps, true = rows(run, "agents"), _gaps(run, "agents"), truth["delegations"]
    called = [agent for agent in agents if agent["via"] != "root"]
    sure = {
        (agent["parent"], agent["name"])
        for agent in called
        if agent["certain"] and None not in (agent["via"], agent["parent"], agent["name"])
    }
    perhaps = [(agent["parent"], agent["name"]) for agent in called]
    if not sure <= true or not (gaps or all(_match([pair], perhaps) for pair in true)):
        return "wrong", sure
    return ("true" if sure == true and sure == set(perhaps) and not _recorded(gaps) else "unknown"), sure


_ROWS = {
    "models": _models, "tool_calls": _tool_calls, "arguments": _arguments, "agents": _agents, "delegations": _delegations,
}  # fmt: skip


def _truth(truth: Mapping[str, Any], whole: bool) -> dict[str, Any]:
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
        "tool_calls": Counter((call["name"], call["error"]) for call in truth["tools"]),
        "arguments": multiset((call["name"], call["arguments"]) for call in truth["tools"]),
        "agents": set(truth["agents"]),
        "delegations": {tuple(pair) for pair in truth["delegations"]},
        "errors": truth["errors"],
        "final_output": truth["final_output"],
        "complete": whole,
        "tools": truth["tools"],
        "asked": list(_unmade(truth).elements()),
        "unjudged": {"tool_calls" if fact == "tools" else fact for fact in truth.get("unjudged", ())},
    }


def _unmade(truth: Mapping[str, Any]) -> Counter[str]:
    """Return what models asked for and no tool was run for: an attempt, or none."""
    asked = Counter(name for call in truth["llm_calls"] for name in call.get("requested_tools", ()))
    return asked - Counter(tool["name"] for tool in truth["tools"])


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
