"""What a run answered, as its spans tell it."""

from __future__ import annotations

from collections.abc import Sequence

from clawtrace.engine.llm_calls import LlmCall
from clawtrace.engine.run_spans import RunSpans

__all__ = ["final_output"]


def final_output(run: RunSpans, models: Sequence[LlmCall]) -> str | None:
    """Return the topmost agent's own word, else the text of the last model call; of the conversation that started last.

    None where nothing tells, and where two conversations side by side have no one answer.
    """
    starts: dict[int, int] = {}
    ends: dict[int, int] = {}
    for span, root in zip(run.spans, run.root, strict=True):  # in order of start
        if span.kind == "agent" or span.kind == "llm":
            end_ns = span.start_ns if span.end_ns is None else span.end_ns
            if root not in starts:
                starts[root] = span.start_ns
                ends[root] = end_ns
            elif end_ns > ends[root]:
                ends[root] = end_ns
    if not starts:
        return None
    last = max(starts, key=lambda root: (starts[root], root))
    if any(end_ns > starts[last] for root, end_ns in ends.items() if root != last):
        return None
    told = [
        (run.depth[index], index, span.final_output)
        for index, span in enumerate(run.spans)
        if span.kind == "agent"
        and span.final_output is not None
        and run.agent[index] is None
        and run.root[index] == last
    ]
    if told:
        return min(told)[2]
    calls = [call for call in models if run.root[call.index] == last]
    if not calls or calls[-1].outcome != "ok" or calls[-1].voice is None:
        return None
    texts = [part.text or "" for part in run.said(calls[-1].voice, "output") if part.type == "text"]
    return "\n".join(texts) if texts else None
