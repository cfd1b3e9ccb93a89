"""Cross-checks of model calls: spans that may tell of none."""

from __future__ import annotations

from collections.abc import Sequence

from clawtrace.facts.calls.llm_calls import LlmCall
from clawtrace.facts.calls.run_spans import RunSpans
from clawtrace.facts.checks.findings import Findings
from clawtrace.facts.checks.rules import GIVEN_UP_CALL, UNREAD_ANSWER

__all__ = ["check_models"]


def check_models(run: RunSpans, models: Sequence[LlmCall], findings: Findings) -> None:
    """Find the model calls that may have been answered although they failed, or not answered although they did not."""
    for call in models:
        if call.outcome == "error" and run.spans[call.index].answer_unread:
            findings.add(UNREAD_ANSWER, call.index)
    given_up = [index for index in run.kinds.get("tool", ()) if run.spans[index].tool_cancelled]
    if not given_up:
        return
    inside = run.inside(given_up)
    for call in models:
        if call.outcome == "ok" and call.voice is None and not run.spans[call.index].answered and inside(call.index):
            findings.add(GIVEN_UP_CALL, call.index)
