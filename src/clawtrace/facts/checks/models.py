"""Cross-checks of model calls: spans that may tell of none."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from clawtrace.facts.calls.llm_calls import LlmCall
from clawtrace.facts.calls.run_spans import RunSpans
from clawtrace.facts.checks.findings import Findings
from clawtrace.facts.checks.rules import AGENT_NOT_RECEIVED, GIVEN_UP_CALL, UNREAD_ANSWER

__all__ = ["check_models"]


def check_models(run: RunSpans, models: Sequence[LlmCall], findings: Findings) -> list[LlmCall]:
    """Find the model calls that may have been answered although they failed or lack their agent, and return them without those that may be none."""
    for call in models:
        if call.outcome == "error" and run.spans[call.index].answer_unread:
            findings.add(UNREAD_ANSWER, call.index)
        if call.agent is None and "agent" in run.kinds and _lacks_a_failed_parent(run, run.root[call.index]):
            findings.add(AGENT_NOT_RECEIVED, call.index)
    given_up = [index for index in run.kinds.get("tool", ()) if run.spans[index].tool_cancelled]
    inside = run.inside(given_up)
    found = []
    for call in models:
        silent = call.outcome == "ok" and call.voice is None and not run.spans[call.index].answered
        if given_up and silent and inside(call.index):
            findings.add(GIVEN_UP_CALL, call.index)
        else:
            found.append(call)
    return found


def _lacks_a_failed_parent(run: RunSpans, top: int) -> bool:
    """Return whether a span's parent was not received, and may be one that an error kept from being exported."""
    span = run.spans[top]
    rules = run.words(top).parent_not_exported
    return span.parent_span_id is not None and any(
        rule.error is not None and fnmatchcase(span.name, rule.span) for rule in rules
    )
