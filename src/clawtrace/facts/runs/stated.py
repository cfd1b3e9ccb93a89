"""Usage totals stated by spans, for runs whose model calls do not record usage (spec: span-model.md §4)."""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import Any, NamedTuple

from clawtrace.facts.calls.llm_calls import LlmCall
from clawtrace.facts.calls.run_spans import RunSpans
from clawtrace.facts.checks.findings import Findings
from clawtrace.facts.spans.span import Span

__all__ = ["TOKENS", "Stated", "stated", "states_uncounted_usage"]

TOKENS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens")


class Stated(NamedTuple):
    """Stated totals, by the name of the sum, which may be ``llm_calls`` or ``cost``."""

    low: dict[str, float]
    """The least that all model calls used together."""
    high: dict[str, float]
    """The most, for sums that are stated completely."""
    turns: dict[str, tuple[int, bool]]
    """What whole turns used besides the model calls, and whether each of them states it."""
    inner: int | None = None
    """A span that states totals inside another one that does, if it is not known whether the outer totals include them."""


def stated(run: RunSpans, models: Sequence[LlmCall], contradicted: Set[int], findings: Findings) -> Stated:
    """Return the totals stated in a run; `contradicted` are spans whose own conversation contradicts their totals."""
    turns = [span for span, role in zip(run.spans, run.role, strict=True) if role == "turn"] if models else []
    used = [call for call in models if call.has_usage]
    silent = all(call.input_tokens is None and call.output_tokens is None for call in used)
    # Calls that record no usage at all may be inside of spans that state it.
    if not models or (used and silent and not turns):
        return _rollup(run, used, contradicted, findings)
    return Stated({}, {}, _turns(turns))


def _turns(turns: Sequence[Span]) -> dict[str, tuple[int, bool]]:
    """Return the usage of turns of other programs."""
    found = {}
    for name in TOKENS if turns else ():
        values = [getattr(span, f"rollup_{name}") for span in turns]
        known = [value for value in values if value is not None]
        # A turn that states its usage states the parts of it that are not zero.
        said = [span.rollup_input_tokens is not None or span.rollup_output_tokens is not None for span in turns]
        whole = len(known) == len(turns) if name in ("input_tokens", "output_tokens") else all(said)
        found[name] = sum(known), whole
    return found


def states_uncounted_usage(run: RunSpans) -> bool:
    """Return whether a span states usage that no model call records: an agent without calls, a step without a call near it.

    Such calls were made and are not recorded, while others are.
    """
    stated = [
        index
        for index in run.every("agent", "chain", "other")
        if run.role[index] is None and run.spans[index].states_usage
    ]
    if not stated:
        return False
    calls = run.kinds.get("llm", ())
    owners, roots = {run.agent[index] for index in calls}, {run.root[index] for index in calls}
    return any(
        not (index in owners or run.within(index, "llm"))
        if run.spans[index].kind == "agent"
        else run.root[index] not in roots
        for index in stated
    )


def _rollup(run: RunSpans, used: Sequence[LlmCall], contradicted: Set[int], findings: Findings) -> Stated:
    """Return the totals of the topmost roll-up spans, for a run whose model calls record no usage.

    Only the least where one of them states what its agent's conversation contradicts, where some of the work is in none, or
    where an answer without usage may be left out.
    """
    stated = [index for index in run.every("agent", "chain") if run.spans[index].rollup_input_tokens is not None]
    whole = [index for index in stated if run.words(index).rollup != "own"]
    is_inside = run.inside(whole)
    own = [index for index in stated if run.words(index).rollup == "own" and not is_inside(index)]
    found = [*run.topmost(whole), *own]
    top = [run.spans[index] for index in found]
    low = _at_least(
        run, [index for index in found if index not in contradicted], "llm_calls", "input_tokens", "output_tokens"
    )
    whole_work = _all_state(run, top) if own else _all_inside(run, found)
    if used and (any(span.failed for span in top) or not all(map(run.inside(found), (call.index for call in used)))):
        whole_work = False
    # Some programs add up what each answer says, and one of several without usage adds nothing.
    running = any(
        run.words(index).rollup == "running" and (len(top) > 1 or run.spans[index].rollup_llm_calls != 1)
        for index in found
    )
    # What was used in an attempt before it failed may be missing in the sum of the agent that made it again.
    if not whole_work or "attempt" in run.role or not contradicted.isdisjoint(found):
        return Stated(low, {}, {})
    calls = _whole([span.rollup_llm_calls for span in top])
    counted = {} if calls is None else {"llm_calls": calls}
    if running:
        return Stated(low, counted, {})
    cost = _whole([span.cost_usd for span in top])
    sums: dict[str, float] = counted if cost is None else counted | {"cost": cost}
    # No request is empty: zero means that the instrumentation did not get the usage, unless there were no calls.
    if not any(span.rollup_input_tokens == 0 and span.rollup_llm_calls != 0 for span in top):
        for name in TOKENS:
            value = _whole([getattr(span, f"rollup_{name}") for span in top], at_least_one=True)
            if value or (value is not None and name not in ("input_tokens", "output_tokens")):
                sums[name] = value
    inside = run.inside([index for index in found if findings.holds("stated-inside-stated", index)])
    inner = [n for n in stated if run.words(n).rollup == "all" and run.spans[n].states_usage and inside(n)]
    high = {
        name: value + sum(getattr(run.spans[index], f"rollup_{name}", None) or 0 for index in inner)
        for name, value in sums.items()
        if not inner or name != "cost"
    }
    return Stated(low | sums, high, {}, inner[0] if inner else None)


def _at_least(run: RunSpans, stated: Sequence[int], *names: str) -> dict[str, float]:
    """Return the total of some spans: their sum, or the largest of running totals, which may include the others."""
    low: dict[str, float] = {}
    for name in names:
        values = [(index, getattr(run.spans[index], f"rollup_{name}") or 0) for index in stated]
        running = [value for index, value in values if run.words(index).rollup == "running"]
        low[name] = sum(value for _, value in values) - sum(running) + max(running, default=0)
    return low


def _all_state(run: RunSpans, stated: Sequence[Span]) -> bool:
    """Return whether each agent states its own totals or is named by a span that does."""
    sids, names = {span.sid for span in stated}, {span.owner_agent for span in stated} - {None}
    agents = (index for index in run.kinds.get("agent", ()) if run.role[index] not in ("wrapper", "accounting"))
    return all(run.spans[index].sid in sids or run.spans[index].agent_name in names for index in agents)


def _all_inside(run: RunSpans, found: Sequence[int]) -> bool:
    """Return whether each agent states totals or is inside a span that does: else totals are missing.

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
