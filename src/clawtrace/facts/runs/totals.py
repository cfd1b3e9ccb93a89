"""Sums, counts and times of one run; None means that it cannot be known (spec: span-model.md §4)."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence, Set
from operator import attrgetter
from typing import Any

from clawtrace.facts.calls.llm_calls import LlmCall
from clawtrace.facts.calls.run_spans import RunSpans
from clawtrace.facts.runs.agents import Activation
from clawtrace.facts.runs.failures import Failure
from clawtrace.facts.spans.span import NO_TIME, Span
from clawtrace.facts.tools.tool_calls import ToolCalls

__all__ = ["exact_cost", "states_uncounted_usage", "totals"]

_LARGEST = 2**62 - 1
"""The largest sum that is kept: two of them still are a number of 64 bits."""


def totals(
    run: RunSpans,
    models: Sequence[LlmCall],
    tools: ToolCalls,
    agents: Sequence[Activation],
    failed: Sequence[Failure],
    records: Callable[[Span, str], bool | str],
) -> dict[str, Any]:
    """Return the run's row of the relation `run_totals`, without its id.

    Args:
        run: the spans.
        models: model calls, priced.
        tools: tool calls.
        agents: activations.
        failed: failures.
        records: whether the instrumentation that wrote a span records a fact (`Dialect.records`).
    """
    turns = [span for span, role in zip(run.spans, run.role, strict=True) if role == "turn"] if models else []
    used = [call for call in models if call.has_usage]
    silent = [call for call in used if call.input_tokens is None and call.output_tokens is None]
    # Calls that record no usage at all may be inside of spans that state it.
    states = not models or (bool(used) and len(silent) == len(used) and not turns)
    rollup = _rollup(run, used, tools.histories.contradicted) if states else {}
    knows_tools = not tools.unseen and _knows_tools(run, models, tools, agents, records)
    row: dict[str, Any] = {
        "llm_calls": sum(call.outcome == "ok" for call in models) if models else rollup.get("llm_calls"),
        "failed_llm_attempts": _failed_attempts(run, models, records),
        "tool_calls": sum(call.executed for call in tools.calls) if knows_tools else None,
    }
    for name in ("input_tokens", "output_tokens"):
        known = [value for value in map(attrgetter(name), used) if value is not None]
        whole = sum(known) if len(known) == len(used) else None
        row[name] = rollup.get(name) if states else whole
        row[f"{name}_known"] = len(known)
        row[f"{name}_low"] = sum(known) if known else rollup.get(f"{name}_low", 0)
    # Of a call without usage nothing is known.
    for name in ("cache_read_tokens", "cache_write_tokens", "reasoning_tokens"):
        known = [value for value in map(attrgetter(name), used) if value is not None]
        unheard = any(not (call.writes_no_cache and name == "cache_write_tokens") for call in silent)
        exact = known and not unheard and (len(known) == len(used) or _leaves_out_none(run, used, name, records))
        row[name] = sum(known) if exact else rollup.get(name)
        row[f"{name}_known"] = len(known)
    if turns:
        _add_turns(row, turns, any(call.writes_no_cache for call in used))
    costs = [call.cost_usd for call in used if call.cost_usd is not None]
    row |= {
        "usage_calls": len(used),
        "cost_low": sum(call.cost_low_usd for call in used if call.cost_low_usd is not None)
        if costs
        else rollup.get("cost_usd") or 0.0,
        "cost_high": (float(sum(costs)) if len(costs) == len(used) and not turns else None)
        if models
        else rollup.get("cost_usd"),
        "priced_calls": len(costs),
        **_times(run),
        **_errors(run, failed, models, tools, knows_tools, records),
        "agents": len(agents) if "agent" in run.kinds else None,
    }
    if models and (run.doubtful or states_uncounted_usage(run)):
        row |= dict.fromkeys(("llm_calls", "input_tokens", "output_tokens", "cost_high"))
        # What follows from the models of some calls says nothing about the others.
        if any(call.writes_no_cache for call in used):
            row["cache_write_tokens"] = None
    return {name: _storable(name, value) for name, value in row.items()}


def _leaves_out_none(
    run: RunSpans, used: Sequence[LlmCall], name: str, records: Callable[[Span, str], bool | str]
) -> bool:
    """Return whether the usage that calls do not record is zero.

    It is not where other calls record 0, nor where the instrumentation does not record it of every call.
    """
    fact = "reasoning_tokens" if name == "reasoning_tokens" else "cached_tokens"
    if name == "cache_write_tokens":
        used = [call for call in used if not call.writes_no_cache]
    known = [value for call in used if (value := getattr(call, name)) is not None]
    silent = [run.spans[call.index] for call in used if getattr(call, name) is None]
    return bool(known) and 0 not in known and all(records(span, fact) is True for span in silent)


def exact_cost(row: Mapping[str, Any]) -> float | None:
    """Return the cost of a row of `run_totals` in US dollars; None where it is a bound only, or nothing was priced."""
    low, high = row.get("cost_low"), row.get("cost_high")
    if high is None or not (row.get("priced_calls") or high) or (low is not None and low < high):
        return None
    return float(high)


def _storable(name: str, value: Any) -> Any:
    """Return a count as a column holds it: one that is larger is unknown, a lower bound is cut."""
    if not isinstance(value, int) or value <= _LARGEST:
        return value
    return _LARGEST if name.endswith("_low") else None


def states_uncounted_usage(run: RunSpans) -> bool:
    """Return whether a span states usage that no model call records: an agent around none, a step where none is near.

    Such calls were made and are not recorded, while others are.
    """
    stated = [
        index
        for kind in ("agent", "chain", "other")
        for index in run.kinds.get(kind, ())
        if run.role[index] is None and ((span := run.spans[index]).rollup_input_tokens or span.rollup_output_tokens)
    ]
    if not stated:
        return False
    calls = run.kinds.get("llm", ())
    owners, roots = {run.agent[index] for index in calls}, {run.root[index] for index in calls}
    enters = sorted(run.enter[index] for index in calls)

    def around(index: int) -> bool:
        place = bisect_right(enters, run.enter[index])
        return place < len(enters) and enters[place] < run.leave[index]

    return any(
        not (index in owners or around(index)) if run.spans[index].kind == "agent" else run.root[index] not in roots
        for index in stated
    )


def _add_turns(row: dict[str, Any], turns: Sequence[Span], writes_no_cache: bool) -> None:
    """Add what turns of other programs used: their tokens count, how many model calls they made is unknown.

    That models of the run write to no cache says nothing about those of the turns.
    """
    row["llm_calls"] = None
    # Of one that states no usage at all nothing is known, even if the others state theirs.
    silent = any(span.rollup_input_tokens is None and span.rollup_output_tokens is None for span in turns)
    for name in ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens"):
        stated = [getattr(span, f"rollup_{name}") for span in turns]
        known = [value for value in stated if value is not None]
        if name in ("input_tokens", "output_tokens"):
            row[f"{name}_low"] += sum(known)
            row[name] = row[name] + sum(known) if row[name] is not None and len(known) == len(stated) else None
        elif name == "cache_write_tokens" and writes_no_cache and len(known) < len(stated):
            row[name] = None
        elif known:
            row[name] = (row[name] or 0) + sum(known)
        elif silent:
            row[name] = None


def _failed_attempts(
    run: RunSpans, models: Sequence[LlmCall], records: Callable[[Span, str], bool | str]
) -> int | None:
    """Return how many requests got no answer; None where the spans of the model calls hide an SDK's own retries."""
    tellers: set[int | None] = set()
    recorded: dict[tuple[str, str], bool] = {}
    for index in run.kinds.get("llm", ()):
        span = run.spans[index]
        writer = (span.dialect, span.source)
        if writer not in recorded:
            recorded[writer] = records(span, "failed_attempts") is True
        if recorded[writer] or span.attempts is not None:
            tellers.add(run.group[index])
    if not models or not tellers.issuperset([call.group for call in models]):
        return None
    failed = [call for call in models if call.failed_attempts or call.outcome == "error"]
    return sum(max(call.failed_attempts, 1) if call.outcome == "error" else call.failed_attempts for call in failed)


def _errors(
    run: RunSpans,
    failed: Sequence[Failure],
    models: Sequence[LlmCall],
    tools: ToolCalls,
    knows_tools: bool,
    records: Callable[[Span, str], bool | str],
) -> dict[str, int | None]:
    """Return how many failures there were.

    None where it is unknown how a tool call ended that is over, where one failed outside of any span, which has no row, or
    where no work is recorded.
    """
    unseen = any(
        (
            call.source == "message"
            and (call.outcome == "unknown" or (call.outcome == "error" and call.agent not in tools.histories.agents))
        )
        or (call.outcome == "unknown" and call.end_ns is not None)
        for call in tools.calls
    )
    # A request that failed, and that may have been made again where nothing was received.
    again = [run.spans[failure.index].last_ns for failure in failed if run.role[failure.index] == "attempt"]
    unseen = unseen or (bool(again) and run.went_on_unseen(min(again)))
    nothing = run.kinds.keys() == {"infra"}
    at_work = not run.kinds.keys().isdisjoint(("agent", "tool")) or any(call.outcome == "ok" for call in models)
    # Steps alone, of an instrumentation that does not record how what is done in them ends.
    steps = not (models or at_work) and not any(
        span.kind != "infra" and records(span, "errors") is True for span in run.spans
    )
    if nothing or unseen or steps or (not knows_tools and at_work):
        return {"errors": None, "unrecovered_errors": None}
    return {
        "errors": len(failed),
        "unrecovered_errors": sum(failure.recovered is not True for failure in failed),
    }


def _knows_tools(
    run: RunSpans,
    models: Sequence[LlmCall],
    tools: ToolCalls,
    agents: Sequence[Activation],
    records: Callable[[Span, str], bool | str],
) -> bool:
    """Return whether the instrumentation at work records tool calls, or the model calls show all of them.

    One that could record them with another setting, or that sees some of them only, shows no absence; and what
    an agent called is unknown where only the usage of its work is recorded. Conversations show it, if each agent has one.
    """
    if any(run.role[index] == "turn" for kind in ("agent", "llm") for index in run.kinds.get(kind, ())):
        return False
    if tools.histories.agents and not models:
        return tools.histories.agents.issuperset(activation.index for activation in agents)
    answered = [call for call in models if call.outcome == "ok"]
    recorded = all(_tells(run, call) or not _may_ask(run, call) for call in answered)
    working = [
        n for kind in ("tool", "agent") for n in run.kinds.get(kind, ()) if records(run.spans[n], "tool_calls") is True
    ]
    # That an agent's framework writes spans of tools is not known where only general rules read the agent's own; what a product's
    # log records, its dialect reads.
    sums = not models and any(run.spans[n].rollup_input_tokens or run.spans[n].rollup_output_tokens for n in working)
    if (recorded and not sums and working) or any(
        run.spans[n].kind == "tool" or run.spans[n].source == "log" or run.evidence(n) != "generic" for n in working
    ):
        return True
    # Of an agent whose framework records no tool call, requests that nothing answers may have been answered in prose.
    in_part = any(
        (span.source == "log" or span.kind == "agent") and records(span, "tool_calls") is False for span in run.spans
    )
    if not answered or in_part:
        return False
    return recorded


def _tells(run: RunSpans, call: LlmCall) -> bool:
    """Return whether a call's messages show which tools it requested: by name, and some where its finish reason says so."""
    if call.voice is None:
        return False
    asked = [part.name for part in run.said(call.voice, "output") if part.type == "tool_call"]
    return None not in asked and (bool(asked) or call.asks is not True)


def _may_ask(run: RunSpans, call: LlmCall) -> bool:
    if call.voice is not None:
        return any(part.type == "tool_call" for part in run.said(call.voice, "output")) or not _tells(run, call)
    return call.asks is not False


def _rollup(run: RunSpans, used: Sequence[LlmCall], contradicted: Set[int]) -> dict[str, Any]:
    """Return the totals that the topmost roll-up spans state, for a run whose model calls record none, and their lower bounds.

    Only the bounds where one of them states what its agent's conversation contradicts, or where some of the work is in none.
    """
    stated = [
        index
        for kind in ("agent", "chain")
        for index in run.kinds.get(kind, ())
        if run.spans[index].rollup_input_tokens is not None
    ]
    whole = [index for index in stated if run.words(index).rollup != "own"]
    is_inside = run.inside(whole)
    own = [index for index in stated if run.words(index).rollup == "own" and not is_inside(index)]
    found = [*run.topmost(whole), *own]
    top = [run.spans[index] for index in found]
    low = _stated_at_least(run, [index for index in found if index not in contradicted])
    whole_work = _all_state(run, top) if own else _all_inside(run, found)
    if used and (any(span.failed for span in top) or not all(map(run.inside(found), (call.index for call in used)))):
        whole_work = False
    several_running = len(top) > 1 and any(run.words(index).rollup == "running" for index in found)
    # What was used in an attempt before it failed may be missing in the sum of the agent that made it again.
    if not whole_work or several_running or "attempt" in run.role or not contradicted.isdisjoint(found):
        return low
    # No request is empty: zero means that the instrumentation did not get the usage, unless there were no calls.
    silent = any(span.rollup_input_tokens == 0 and span.rollup_llm_calls != 0 for span in top)
    return {
        **low,
        "input_tokens": None
        if silent
        else _whole([span.rollup_input_tokens for span in top], at_least_one=True) or None,
        "output_tokens": None
        if silent
        else _whole([span.rollup_output_tokens for span in top], at_least_one=True) or None,
        **{
            name: None if silent else _whole([getattr(span, f"rollup_{name}") for span in top], at_least_one=True)
            for name in ("cache_read_tokens", "cache_write_tokens", "reasoning_tokens")
        },
        "llm_calls": _whole([span.rollup_llm_calls for span in top]),
        "cost_usd": _whole([span.cost_usd for span in top]),
    }


def _stated_at_least(run: RunSpans, stated: Sequence[int]) -> dict[str, int]:
    """Return the tokens that spans state together: their sum, of running totals the largest, which may include the others."""
    low = {}
    for name in ("input_tokens", "output_tokens"):
        values = [(index, getattr(run.spans[index], f"rollup_{name}") or 0) for index in stated]
        running = [value for index, value in values if run.words(index).rollup == "running"]
        low[f"{name}_low"] = sum(value for _, value in values) - sum(running) + max(running, default=0)
    return low


def _all_state(run: RunSpans, stated: Sequence[Span]) -> bool:
    """Return whether each agent is among those that state their own totals, or that a span of such totals names."""
    sids, names = {span.sid for span in stated}, {span.owner_agent for span in stated} - {None}
    agents = (index for index in run.kinds.get("agent", ()) if run.role[index] not in ("wrapper", "accounting"))
    return all(run.spans[index].sid in sids or run.spans[index].agent_name in names for index in agents)


def _all_inside(run: RunSpans, found: Sequence[int]) -> bool:
    """Return whether each agent states totals or is inside of a span that does: another one's are missing.

    One around such a span, in which no tool works apart from it, is its frame. Records without an agent are of all of them.
    """
    agents = [index for index in run.kinds.get("agent", ()) if run.role[index] not in ("wrapper", "accounting")]
    stating = {index for index in found if index in agents or any(run.encloses(index, agent) for agent in agents)}
    if not stating:
        return True
    inside = run.inside(stating)
    apart = [index for index in run.kinds.get("tool", ()) if index not in stating and not inside(index)]

    def is_frame(index: int) -> bool:
        return any(run.encloses(index, one) for one in stating) and not any(run.encloses(index, one) for one in apart)

    return all(index in stating or inside(index) or is_frame(index) for index in agents)


def _whole(values: Sequence[Any], at_least_one: bool = False) -> Any:
    known = [value for value in values if value is not None]
    return sum(known) if known and (at_least_one or len(known) == len(values)) else None


def _times(run: RunSpans) -> dict[str, int | None]:
    began: int | None = None
    busy, reached, unknown, instants = 0, 0, False, False
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
