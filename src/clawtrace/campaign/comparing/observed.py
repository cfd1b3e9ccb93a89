"""Assertions that hold of one or several good runs: what they have in common, as checks that the next runs are held against."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from typing import Any, NamedTuple

from clawtrace.campaign.results.stored import tokens_used

__all__ = ["Observation", "observations"]

_MOST_TOOLS = 20
"""Names that a sequence lists; a longer one would break with every change of the agent."""
_BUDGET_MARGIN = 1.5
_TIME_MARGIN = 5.0
"""Machines differ more than agents do."""
_LEAST_MS = 10_000
_CACHED_PRICE = 0.1
"""The least price of a cached input token, as a share of an uncached one."""
_PLAIN_TEXT = re.compile(r"[\w@#/+-][\w .,@#/+-]{1,78}[\w#+]")
"""Of an argument that may be asked for: no notation of a matcher, and short."""


class Observation(NamedTuple):
    """An assertion in the long notation, with what a reader should know of it."""

    fields: Mapping[str, Any]
    """`type` and its fields."""
    why: str
    """One sentence."""


def observations(runs: Sequence[Mapping[str, Any]], messages: Sequence[str | None] = ()) -> list[Observation]:
    """Return assertions that describe all of the runs; a fact that is unknown in one of them gives none.

    Args:
        runs: entries of ``runs`` of ``clawtrace.inspect/1``, at least one.
        messages: what the user said first in each of them; an argument that repeats a part of it is asked for.
    """
    return [
        *_tools(runs),
        *_arguments(runs, [*messages, *[None] * (len(runs) - len(messages))]),
        *_repetitions(runs),
        *_agents(runs),
        *_errors(runs),
        *_answer(runs),
        *_models(runs),
        *_budgets(runs),
    ]


def _tools(runs: Sequence[Mapping[str, Any]]) -> Iterator[Observation]:
    if any(run["tool_calls"] is None for run in runs):
        return
    calls = [run["tool_calls"] for run in runs]
    if not any(calls):
        yield Observation({"type": "tool_call_count", "max": 0}, "No tool was called.")
        return
    if any(call["name"] is None for of_run in calls for call in of_run):
        return
    groups = [_side_by_side(of_run) for of_run in calls]
    said = "Tools in this order; others may come between them. `mode: strict` allows no other call."
    if all(found == groups[0] for found in groups) and all(groups):
        yield _sequence(groups[0], said)
        return
    together = {name for found in groups for group in found if len(group) > 1 for name in group}
    orders = [[name for group in found for name in group if name not in together] for found in groups]
    common = reduce(_common, orders)[:_MOST_TOOLS]
    if len(common) > 1:
        yield Observation({"type": "tool_sequence", "expected": common}, said)
    everywhere = set.intersection(*({call["name"] for call in of_run} for of_run in calls))
    for name in dict.fromkeys(call["name"] for call in calls[0]):
        if name in everywhere and (len(common) < 2 or name not in common):
            yield Observation({"type": "tool_was_called", "tool": name}, "Every run called it.")


def _sequence(groups: Sequence[Sequence[str]], said: str) -> Observation:
    if sum(map(len, groups)) > _MOST_TOOLS:
        kept, number = [], 0
        for group in groups:
            number += len(group)
            if number > _MOST_TOOLS:
                break
            kept.append(group)
        groups = kept or [groups[0][:_MOST_TOOLS]]
        said = f"The first {sum(map(len, groups))} steps, in this order; other calls may come between them."
    if all(len(group) == 1 for group in groups):
        return Observation({"type": "tool_sequence", "expected": [group[0] for group in groups]}, said)
    steps = [group[0] if len(group) == 1 else {"any_order": list(group)} for group in groups]
    said = f"{said.partition(' `mode')[0]} Concurrent calls may be in any order."
    return Observation({"type": "tool_sequence", "steps": steps}, said)


def _side_by_side(calls: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    """Return the names of the calls, those together whose times overlap or are unknown: nothing says which came first.

    Calls of one tool in a row are one step: how many there are is up to the model.
    """
    groups: list[list[str]] = []
    last_end: float = -math.inf
    for call in calls:
        start, end = call["start_ns"], call["end_ns"]
        if groups and (start is None or start < last_end):
            groups[-1].append(call["name"])
        else:
            groups.append([call["name"]])
        last_end = max(last_end, math.inf if end is None else end)
    steps: list[list[str]] = []
    for group in (sorted(set(group)) for group in groups):
        if not steps or steps[-1] != group:
            steps.append(group)
    return steps


def _common(one: Sequence[str], two: Sequence[str]) -> list[str]:
    """Return the longest sequence that both contain in this order."""
    longest: list[list[list[str]]] = [[[] for _ in range(len(two) + 1)] for _ in range(len(one) + 1)]
    for i, name in enumerate(one):
        for j, other in enumerate(two):
            longest[i + 1][j + 1] = (
                [*longest[i][j], name] if name == other else max(longest[i][j + 1], longest[i + 1][j], key=len)
            )
    return longest[-1][-1]


def _arguments(runs: Sequence[Mapping[str, Any]], messages: Sequence[str | None]) -> Iterator[Observation]:
    """Ask for arguments that the task decides: every run has them, and the user's message states them or several runs agree."""
    if any(run["tool_calls"] is None for run in runs):
        return
    for name in dict.fromkeys(call["name"] for call in runs[0]["tool_calls"]):
        given = [[_texts(call["arguments"]) for call in run["tool_calls"] if call["name"] == name] for run in runs]
        best: dict[str, Any] = {}
        for candidate in given[0]:
            kept = {
                key: value
                for key, value in candidate.items()
                if all(any(call.get(key) == value for call in of_run) for of_run in given)
                and (len(runs) > 1 or (messages[0] is not None and _states(messages[0], value)))
            }
            best = kept if len(kept) > len(best) else best
        if best and name is not None:
            why = "All runs agree on these arguments." if len(runs) > 1 else "The message states these arguments."
            yield Observation({"type": "tool_call", "tool": name, "args": best}, why)


def _texts(arguments: Any) -> dict[str, Any]:
    """Return the arguments that are short and plain."""
    if not isinstance(arguments, dict):
        return {}
    return {
        key: value
        for key, value in arguments.items()
        if (isinstance(value, str) and _PLAIN_TEXT.fullmatch(value) and value != "any")
        or (isinstance(value, int) and not isinstance(value, bool))
    }


def _states(message: str, value: Any) -> bool:
    return re.search(rf"(?<!\w){re.escape(str(value))}(?!\w)", message, re.IGNORECASE) is not None


def _repetitions(runs: Sequence[Mapping[str, Any]]) -> Iterator[Observation]:
    if any(run["tool_calls"] is None for run in runs) or not any(run["tool_calls"] for run in runs):
        return
    most = max(_most_in_a_row(run["tool_calls"]) for run in runs)
    yield Observation(
        {"type": "no_loops", "max_repeats": most},
        "No call is repeated at once with the same arguments. Raise it where a tool is polled or retried."
        if most == 1
        else f"No call is repeated more than {most} times in a row with the same arguments.",
    )
    if len(runs) > 1:
        counts = [Counter(call["name"] for call in run["tool_calls"]) for run in runs]
        for name in dict.fromkeys(call["name"] for call in runs[0]["tool_calls"]):
            if name is not None and all(of_run[name] == 1 for of_run in counts):
                yield Observation({"type": "tool_call_count", "tool": name, "max": 1}, "Every run called it once.")


def _most_in_a_row(calls: Sequence[Mapping[str, Any]]) -> int:
    most = row = 0
    before: Any = None
    for call in calls:
        asked = (call["name"], call["arguments"])
        row = row + 1 if asked == before else 1
        most, before = max(most, row), asked
    return max(most, 1)


def _agents(runs: Sequence[Mapping[str, Any]]) -> Iterator[Observation]:
    pairs = [[tuple(pair) for pair in run["delegations"] or () if None not in pair] for run in runs]
    named = [pair for pair in pairs[0] if all(pair in of_run for of_run in pairs)]
    if named:
        yield Observation({"type": "delegation_path", "expected": list(named[0])}, "Delegations, in this order.")
    for name in dict.fromkeys(to for _, to in named[1:] if to not in named[0]):
        yield Observation({"type": "delegation_occurred", "to_agent": name}, "Work was delegated to it.")


def _errors(runs: Sequence[Mapping[str, Any]]) -> Iterator[Observation]:
    if any(run["errors"] is None for run in runs):
        return
    errors = [error for run in runs for error in run["errors"]]
    if not errors:
        yield Observation(
            {"type": "no_span_errors"}, "No call failed, not even one whose failure the agent did not mention."
        )
    elif all(error["recovered"] for error in errors):
        yield Observation({"type": "no_span_errors", "unrecovered": True}, "A call failed, and succeeded when retried.")


def _answer(runs: Sequence[Mapping[str, Any]]) -> Iterator[Observation]:
    if all(run["final_output"] for run in runs):
        yield Observation({"type": "final_response_present"}, "The run succeeded with an answer.")


def _models(runs: Sequence[Mapping[str, Any]]) -> Iterator[Observation]:
    if not all(run["llm_calls"] for run in runs):
        return
    calls = max(len(run["llm_calls"]) for run in runs)
    count = _above(calls, _BUDGET_MARGIN)
    yield Observation(
        {"type": "llm_call_count", "min": 1, "max": count}, f"{calls} model call{'s' * (calls != 1)}, with a margin."
    )
    models = list(
        dict.fromkeys(call["request_model"] or call["response_model"] for run in runs for call in run["llm_calls"])
    )
    if None not in models:
        yield Observation({"type": "model_used", "only": models}, "Only these models answered.")


def _budgets(runs: Sequence[Mapping[str, Any]]) -> Iterator[Observation]:
    totals = [run["totals"] for run in runs]
    used = [tokens for of_run in totals if (tokens := tokens_used(of_run)) is not None]
    if len(used) == len(totals) and (tokens := max(used, default=0)):
        most = _above(tokens, _BUDGET_MARGIN)
        yield Observation(
            {"type": "trace_token_budget", "max_total_tokens": most}, f"It used {tokens} tokens; plus half."
        )
    if all(of_run["cost_usd"] for of_run in totals):
        cost = max(of_run["cost_usd"] * _uncached(of_run) for of_run in totals)
        said = "Its cost, plus half."
        if any(_uncached(of_run) > 1 for of_run in totals):
            said = "Its cost as if nothing had been read from a cache, plus half."
        yield Observation({"type": "trace_cost", "max_usd": _above(cost, _BUDGET_MARGIN)}, said)
    if all(run["duration_ms"] is not None for run in runs):
        slowest = max(run["duration_ms"] for run in runs)
        most_ms = int(max(_LEAST_MS, _above(slowest, _TIME_MARGIN) if slowest > 0 else 0))
        yield Observation({"type": "trace_duration", "max_ms": most_ms}, "Generous, because machines differ.")


def _uncached(totals: Mapping[str, Any]) -> float:
    """Return how much more a run would have cost, at most, if nothing had been read from a cache: the next may be the first."""
    cached, given = totals["cache_read_tokens"] or 0, totals["input_tokens"] or 0
    return 1 / (1 - (1 - _CACHED_PRICE) * min(cached / given, 1)) if cached and given else 1.0


def _above(value: float, margin: float) -> float:
    """Return `value` with a margin, rounded up to two digits; a whole number stays one."""
    scaled = value * margin
    step = 10.0 ** (math.floor(math.log10(scaled)) - 1)
    found = math.ceil(scaled / step) * step
    return math.ceil(found) if isinstance(value, int) else float(f"{found:.6g}")
