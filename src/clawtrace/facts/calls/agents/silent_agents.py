"""Agent spans that record no work: the caller's side of an agent that works elsewhere, and what else left nothing behind."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence, Set

from clawtrace.facts.spans.span import Span

__all__ = ["silent_agents", "without_callers"]

_NO_WORK = frozenset(("agent", "chain", "infra", "other"))


def silent_agents(spans: Sequence[Span], agent: Sequence[int | None], role: Sequence[str | None]) -> Set[int]:
    """Return the agent spans with no work below them, no content, no usage and no failure, where others have any of these.

    Args:
        spans: of the run.
        agent: the activation that each span works for.
        role: the role of each span.
    """
    telling: set[int] = set()
    others = False
    for index, span in enumerate(spans):
        if span.kind in _NO_WORK and role[index] != "handoff" and not (span.kind == "agent" and _tells(span)):
            continue
        others = True
        at: int | None = index if span.kind == "agent" else agent[index]
        while at is not None and at not in telling:
            telling.add(at)
            at = agent[at]
    found = (index for index, span in enumerate(spans) if span.kind == "agent" and span.emits is None)
    return {index for index in found if index not in telling} if others else set()


def _tells(span: Span) -> bool:
    facts = (
        span.final_output, span.input_digest, span.output_digest, span.rollup_input_tokens, span.rollup_output_tokens,
        span.cost_usd, span.error,
    )  # fmt: skip
    return any(value is not None for value in facts)


def without_callers(
    spans: Sequence[Span], root: Sequence[int], role: list[str | None], silent: Set[int]
) -> list[str | None]:
    """Return the roles, `caller` as `wrapper` where an agent of its name works under another root in its time.

    An instrumentation may write its own agents as calls, too: one that records work, or that no other records, is one.
    """
    if "caller" not in role:
        return role
    at_work: dict[str, list[int]] = defaultdict(list)
    for index, span in enumerate(spans):
        if span.kind == "agent" and span.agent_name is not None and index not in silent:
            at_work[span.agent_name].append(index)

    def works_elsewhere(caller: int) -> bool:
        span = spans[caller]
        return any(
            root[one] != root[caller] and spans[one].start_ns <= span.last_ns and spans[one].last_ns >= span.start_ns
            for one in at_work.get(span.agent_name or "", ())
        )

    return [
        part if part != "caller" else "wrapper" if index in silent and works_elsewhere(index) else None
        for index, part in enumerate(role)
    ]
