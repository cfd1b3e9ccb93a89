"""Sums and counts of one run by one rule: the least over certain rows, the most over all rows and gaps (spec: certain-and-possible.md §2)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from clawtrace.facts.calls.llm_calls import LlmCall
from clawtrace.facts.calls.run_spans import RunSpans
from clawtrace.facts.doubts import Doubted, Gap, certain
from clawtrace.facts.runs.stated import TOKENS, Stated
from clawtrace.facts.spans.span import NO_TIME

if TYPE_CHECKING:
    from clawtrace.facts.runs.gaps import Found

__all__ = ["times", "totals"]

_LARGEST = 2**62 - 1
"""The largest sum that is stored: two of them still fit in 64 bits."""

_STATED = frozenset(("llm-calls-not-recorded", "whole-turn"))
"""Reasons of gaps in `llm_calls` for which surrounding spans may state the usage."""


def totals(facts: Found, stated: Stated) -> dict[str, Any]:
    """Return the run's row of the relation `run_totals` without its id and times; `stated` holds the totals that spans state."""
    run, models, tools, agents, failed = facts.spans, facts.models, facts.tools.calls, facts.agents, facts.failures
    gaps = facts.findings.gaps
    of = {
        name: [gap for gap in gaps if gap.relation == name] for name in ("llm_calls", "tool_calls", "errors", "agents")
    }
    sure = [call for call in models if certain(call.doubts)]
    answered = [gap for gap in of["llm_calls"] if gap.outcome != "error"]
    row: dict[str, Any] = {}
    lost = [one for one in failed if one.recovered is not True]
    counted: dict[str, tuple[int, int, Sequence[Gap]]] = {
        "llm_calls": (
            sum(one.outcome == "ok" for one in sure),
            sum(one.outcome != "error" for one in models),
            answered,
        ),
        "failed_llm_attempts": (sum(map(_failed_at_least, sure)), sum(map(_failed_at_most, models)), of["llm_calls"]),
        "tool_calls": (_certain(tools), len(tools), of["tool_calls"]),
        "errors": (_certain(failed), len(failed), of["errors"]),
        "unrecovered_errors": (_certain(one for one in lost if one.recovered is False), len(lost), of["errors"]),
        "agents": (_certain(agents), len(agents), of["agents"]),
    }
    for name, (least, most, hidden) in counted.items():
        row[f"{name}_low"], row[f"{name}_high"] = least, _most(most, hidden)
    if not models:
        row["llm_calls_low"] = int(stated.low.get("llm_calls", 0))
    used = [call for call in models if call.has_usage]
    unstated = [gap for gap in answered if gap.reason not in _STATED]
    for name in TOKENS:
        low, high = _tokens(run, used, name)
        turns, whole = stated.turns.get(name, (0, False))
        if name in stated.low:
            low = max(low, int(stated.low[name]))
        if name in stated.high:
            high = int(stated.high[name])
        elif high is not None and any(
            gap.reason in _STATED and not (whole and gap.reason == "whole-turn") for gap in answered
        ):
            high = None
        row[f"{name}_low"] = low + turns
        row[f"{name}_high"] = None if high is None or unstated else high + turns
    costs = [call.cost_usd for call in used if call.cost_usd is not None]
    least_costs = [call.cost_low_usd for call in used if call.cost_low_usd is not None and certain(call.doubts)]
    row |= {
        "cost_low": float(max(sum(least_costs), stated.low.get("cost", 0.0))),
        "cost_high": float(sum(costs)) if len(costs) == len(used) and not answered else None,
        "input_tokens_known": sum(call.input_tokens is not None for call in used),
        "output_tokens_known": sum(call.output_tokens is not None for call in used),
        "usage_calls": len(used),
        "priced_calls": len(costs),
    }
    if "cost" in stated.high and not unstated:
        row["cost_high"] = stated.high["cost"]
    return {name: _storable(name, value) for name, value in row.items()}


def _failed_at_least(call: LlmCall) -> int:
    """Return the number of failed requests of a call: those recorded by several instrumentations may be the same."""
    failed = max(call.failed_attempts, call.outcome == "error") - (call.outcome is None)
    return max(min(failed, call.attempts), 0)


def _failed_at_most(call: LlmCall) -> int:
    if call.outcome == "ok":
        return call.failed_attempts
    return max(call.failed_attempts, 1 if call.outcome == "error" else call.attempts)


def _certain(rows: Iterable[Doubted]) -> int:
    return sum(certain(row.doubts) for row in rows)


def _most(rows: int, gaps: Sequence[Gap]) -> int | None:
    """Return the largest possible number of rows; None if nothing bounds it."""
    more = [gap.at_most for gap in gaps]
    return None if None in more else rows + sum(count or 0 for count in more)


def _tokens(run: RunSpans, used: Sequence[LlmCall], name: str) -> tuple[int, int | None]:
    """Return the least and the most tokens of the model calls; None if a call may have used any number."""
    known = [(call, value) for call in used if (value := getattr(call, name)) is not None]
    low = sum(value for call, value in known if certain(call.doubts))
    is_detail = name not in ("input_tokens", "output_tokens")
    whole = len(known) == len(used) or (is_detail and _leaves_out_none(run, used, name))
    return low, sum(value for _, value in known) if whole else None


def _leaves_out_none(run: RunSpans, used: Sequence[LlmCall], name: str) -> bool:
    """Return whether the details of usage that calls do not record are zero.

    They are not where other calls record 0, nor where the instrumentation does not record them of every call; and of a call
    without usage nothing is known.
    """
    fact = "reasoning_tokens" if name == "reasoning_tokens" else "cached_tokens"
    if name == "cache_write_tokens":
        used = [call for call in used if not call.writes_no_cache]
    known = [value for call in used if (value := getattr(call, name)) is not None]
    silent = [call for call in used if getattr(call, name) is None]
    return (
        bool(known)
        and 0 not in known
        and not any(call.input_tokens is call.output_tokens is None for call in silent)
        and all(run.records(call.index, fact) is True for call in silent)
    )


def _storable(name: str, value: Any) -> Any:
    """Return a count as a column stores it: above the limit an upper bound is None, and a lower bound is the limit."""
    if not isinstance(value, int) or value <= _LARGEST:
        return value
    return _LARGEST if name.endswith("_low") else None


def times(run: RunSpans, shifted: Collection[int]) -> dict[str, int | None]:
    """Return when the work of a run began and ended, and how long it was busy; `shifted` are spans of another clock."""
    began: int | None = None
    busy, reached, unknown, instants = 0, 0, bool(shifted), False
    for span, depth in zip(run.spans, run.depth, strict=True):  # in order of start
        if span.kind == "infra":
            continue
        start_ns, last_ns = span.start_ns, span.end_ns
        if last_ns is None or last_ns < start_ns:
            # A child that ended before it started lies within its parent; nothing else shows what a root lasted.
            unknown = unknown or (last_ns is not None and not depth)
            last_ns = start_ns
        if not 0 < start_ns < NO_TIME:
            continue  # nothing is measured from what no clock shows
        if began is None:
            began = start_ns
        if last_ns > reached:
            # One line of a log is an instant of work that took some time, unless other work lies around it.
            instants = instants or (last_ns == start_ns and span.source == "log")
            busy += last_ns - (start_ns if start_ns > reached else reached)
            reached = last_ns
    return {
        "first_start_ns": began,
        "last_end_ns": None if began is None or unknown or (instants and reached == began) else reached,
        "busy_ns": None if began is None or unknown or instants else busy,
    }
