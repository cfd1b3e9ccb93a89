"""Assertions that hold of one run: what it did, as checks that the next runs are held against."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from clawtrace.model.relations import NOT_EXECUTED

__all__ = ["Observation", "observations"]

_MOST_TOOLS = 20
"""Names that a sequence lists; a longer one would break with every change of the agent."""
_BUDGET_MARGIN = 1.5
_TIME_MARGIN = 5.0
"""Machines differ more than agents do."""
_LEAST_MS = 10_000


class Observation(NamedTuple):
    """An assertion in the long notation, with what a reader should know of it."""

    fields: Mapping[str, Any]
    """`type` and its fields."""
    why: str
    """One sentence."""


def observations(run: Mapping[str, Any]) -> list[Observation]:
    """Return assertions that describe a run; a fact that is unknown gives none.

    Args:
        run: one entry of ``runs`` of ``clawtrace.inspect/1``.
    """
    return [*_tools(run), *_agents(run), *_errors(run), *_answer(run), *_models(run), *_budgets(run)]


def _tools(run: Mapping[str, Any]) -> Iterator[Observation]:
    if run["tool_calls"] is None:
        return
    calls = [call for call in run["tool_calls"] if call["outcome"] not in NOT_EXECUTED]
    names = [call["name"] for call in calls]
    if not names:
        yield Observation({"type": "tool_call_count", "max": 0}, "No tool was called.")
        return
    if None in names:
        return
    said = "Tools in this order; others may come between them. `mode: strict` allows no other call."
    if len(names) > _MOST_TOOLS:
        said = f"The first {_MOST_TOOLS} of {len(names)} tool calls, in this order; others may come between them."
    together = _side_by_side(calls[:_MOST_TOOLS])
    if all(len(group) == 1 for group in together):
        yield Observation({"type": "tool_sequence", "expected": names[:_MOST_TOOLS]}, said)
        return
    steps = [group[0] if len(group) == 1 else {"any_order": group} for group in together]
    said = f"{said.partition(' `mode')[0]} Concurrent calls may be in any order."
    yield Observation({"type": "tool_sequence", "steps": steps}, said)


def _side_by_side(calls: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    """Return the names of the calls, those together whose times overlap or are unknown: nothing says which came first."""
    groups: list[list[str]] = []
    last_end: float = -math.inf
    for call in calls:
        start, end = call["start_ns"], call["end_ns"]
        if groups and (start is None or start < last_end):
            groups[-1].append(call["name"])
        else:
            groups.append([call["name"]])
        last_end = max(last_end, math.inf if end is None else end)
    return groups


def _agents(run: Mapping[str, Any]) -> Iterator[Observation]:
    named = [pair for pair in run["delegations"] or () if None not in pair]
    if named:
        yield Observation({"type": "delegation_path", "expected": list(named[0])}, "Delegations, in this order.")


def _errors(run: Mapping[str, Any]) -> Iterator[Observation]:
    if run["errors"] is None:
        return
    if not run["errors"]:
        yield Observation(
            {"type": "no_span_errors"}, "No call failed, not even one whose failure the agent did not mention."
        )
    elif all(error["recovered"] for error in run["errors"]):
        yield Observation({"type": "no_span_errors", "unrecovered": True}, "A call failed, and succeeded when retried.")


def _answer(run: Mapping[str, Any]) -> Iterator[Observation]:
    if run["final_output"]:
        yield Observation({"type": "final_response_present"}, "The run succeeded with an answer.")


def _models(run: Mapping[str, Any]) -> Iterator[Observation]:
    calls = run["llm_calls"]
    if not calls:
        return
    count = _above(len(calls), _BUDGET_MARGIN)
    yield Observation({"type": "llm_call_count", "min": 1, "max": count}, f"{len(calls)} model calls, with a margin.")
    models = list(dict.fromkeys(call["request_model"] or call["response_model"] for call in calls))
    if None not in models:
        yield Observation({"type": "model_used", "only": models}, "Only these models answered.")


def _budgets(run: Mapping[str, Any]) -> Iterator[Observation]:
    totals = run["totals"]
    given, out = totals["input_tokens"], totals["output_tokens"]
    if given is not None and out is not None and given + out > 0:
        most = _above(given + out, _BUDGET_MARGIN)
        yield Observation(
            {"type": "trace_token_budget", "max_total_tokens": most},
            f"It used {given + out} tokens; plus half.",
        )
    if totals["cost_usd"]:
        most_usd = _above(totals["cost_usd"], _BUDGET_MARGIN)
        yield Observation({"type": "trace_cost", "max_usd": most_usd}, "Its cost, plus half.")
    if run["duration_ms"] is not None:
        most_ms = int(max(_LEAST_MS, _above(run["duration_ms"], _TIME_MARGIN)))
        yield Observation({"type": "trace_duration", "max_ms": most_ms}, "Generous, because machines differ.")


def _above(value: float, margin: float) -> float:
    """Return `value` with a margin, rounded up to two digits; a whole number stays one."""
    scaled = value * margin
    step = 10.0 ** (math.floor(math.log10(scaled)) - 1)
    found = math.ceil(scaled / step) * step
    return math.ceil(found) if isinstance(value, int) else float(f"{found:.6g}")
