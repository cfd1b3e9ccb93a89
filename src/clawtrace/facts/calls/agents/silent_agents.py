"""Agent spans that record no work, such as the caller's side of a remote agent."""

from __future__ import annotations

from collections.abc import Sequence, Set

from clawtrace.facts.spans.span import Span

__all__ = ["silent_agents"]

_NO_WORK = frozenset(("agent", "chain", "infra", "other"))


def silent_agents(spans: Sequence[Span], agent: Sequence[int | None], role: Sequence[str | None]) -> Set[int]:
    """Return the agent spans without work, content, usage and failure, if other agent spans have any of these.

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
