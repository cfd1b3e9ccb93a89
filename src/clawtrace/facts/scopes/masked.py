"""A run of which only some spans count: what totals and the answer of a part of it are computed from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from clawtrace.facts.calls.run_spans import RunSpans
from clawtrace.facts.spans.span import Span

__all__ = ["masked"]


def masked(run: RunSpans, kept: Sequence[bool], certain: Sequence[bool]) -> RunSpans:
    """Return a run whose other spans did no work, and whose topmost kept spans are its roots.

    What spans state that are kept and not certain is left out: nobody knows whether it is of the part.
    """
    order = sorted(range(len(run.spans)), key=run.enter.__getitem__)
    root, top = list(run.root), -1
    for index in order:
        if kept[index]:
            if top < 0 or run.leave[index] > run.leave[top]:
                top = index
            root[index] = top
    spans = [
        _idle(span) if not keep else span if sure else _without_totals(span)
        for span, keep, sure in zip(run.spans, kept, certain, strict=True)
    ]
    for index in _running_from_elsewhere(run, kept):
        spans[index] = _without_totals(spans[index])
    return replace(
        run,
        spans=spans,
        root=root,
        agent=[agent if agent is not None and kept[agent] else None for agent in run.agent],
        role=[role if keep else None for role, keep in zip(run.role, kept, strict=True)],
    )


def _running_from_elsewhere(run: RunSpans, kept: Sequence[bool]) -> list[int]:
    """Return the kept spans whose running totals may include those of an earlier span that is not kept."""
    found, elsewhere = [], False
    for index, span in enumerate(run.spans):  # in order of start
        if span.rollup_input_tokens is not None and run.words(index).rollup == "running":
            if kept[index] and elsewhere:
                found.append(index)
            elsewhere = elsewhere or not kept[index]
    return found


def _idle(span: Span) -> Span:
    """Return a span as one that neither is nor describes work."""
    return _without_totals(span)._replace(kind="infra", source="otlp", role=None, emits=None, final_output=None)


def _without_totals(span: Span) -> Span:
    return span._replace(rollup_input_tokens=None, rollup_output_tokens=None, rollup_llm_calls=None)
