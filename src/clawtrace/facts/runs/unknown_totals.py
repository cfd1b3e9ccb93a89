"""Why a total of a run is unknown: the relation `unknown_facts`, one reason for each total that is NULL.

The reasons follow the conditions under which `totals` leaves a value out; which instrumentation could have recorded it is
what its dialect says (`records`; spec: span-model.md §5).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from clawtrace.facts.calls.llm_calls import LlmCall
from clawtrace.facts.calls.run_spans import RunSpans
from clawtrace.facts.checks.findings import Findings
from clawtrace.facts.checks.rules import CROSS_CHECKS
from clawtrace.facts.spans.span import Span
from clawtrace.facts.tools.tool_call import ToolCallRow

__all__ = ["UNKNOWN_REASONS", "Unknown", "unknown_totals"]

UNKNOWN_REASONS: dict[str, str] = {
    "not-recorded": "The instrumentation that wrote the spans does not record this fact.",
    "needs-setting": "The instrumentation records it only with a setting that was off.",
    "missing": "The instrumentation can record it, but these spans do not have it.",
    "no-call": "No model call of the run was recorded, and no span states a usable total.",
    "one-call-or-two": "Two instrumentations recorded model calls that may be one call or two.",
    "usage-without-call": "A span states usage of model calls that were not recorded.",
    "whole-turn": "A span represents a whole turn; the model calls in it were not recorded individually.",
    "no-price": "No price is known for the model of a call.",
    "outcome-unknown": "How a finished tool call ended is not recorded.",
    "no-time": "The clocks of the spans contradict each other, or a log has points in time only.",
    "too-large": "The sum is larger than a column can hold.",
    **{check.id: check.meaning for check in CROSS_CHECKS.values()},
}
"""Every reason code, with what it means; last the cross-checks."""

_USAGE = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens")
_RECORDED_AS = {
    "input_tokens": "tokens", "output_tokens": "tokens", "cache_read_tokens": "cached_tokens",
    "cache_write_tokens": "cached_tokens", "reasoning_tokens": "reasoning_tokens", "failed_llm_attempts": "failed_attempts",
    "tool_calls": "tool_calls", "errors": "errors", "unrecovered_errors": "errors", "agents": "agents",
}  # fmt: skip
"""Totals, and what dialects call the fact (`RECORDABLE`)."""
_FROM_CONVERSATIONS = ("tool_calls", "errors", "unrecovered_errors")
"""Totals that a conversation tells where no span records them."""


class Unknown(NamedTuple):
    """Why one total is unknown."""

    total: str
    reason: str
    """One of `UNKNOWN_REASONS`."""
    lacking: int | None = None
    """How many calls lack the fact."""
    of: int | None = None
    """Of how many."""
    at: int | None = None
    """The first span that lacks it."""


class _TotalsInput(NamedTuple):
    """What reasons are read from."""

    spans: RunSpans
    models: Sequence[LlmCall]
    tools: Sequence[ToolCallRow]
    records: Callable[[Span, str], bool | str]
    uncounted_usage: bool
    findings: Findings

    def lacking(self, total: str, indices: Sequence[int], of: int) -> Unknown:
        """Return the reason for a fact that some of so many calls lack, by what the dialect of the first says."""
        finding = next((found for at in indices if (found := self.findings.calls.get((at, total)))), None)
        if finding is not None:
            return Unknown(total, finding.check.id, len(indices), of, finding.span)
        recorded = self.records(self.spans.spans[indices[0]], _RECORDED_AS[total])
        if total in _FROM_CONVERSATIONS and any(rule.is_ == "history" for rule in self.spans.words(indices[0]).roles):
            recorded = recorded or True
        reason = "missing" if recorded is True else "needs-setting" if isinstance(recorded, str) else "not-recorded"
        return Unknown(total, reason, len(indices), of, indices[0])

    def not_recorded(self, total: str, kinds: Sequence[str]) -> Unknown:
        """Return the reason for a fact that no span records: what the dialects of such spans, else of all, can record."""
        of_kind = [index for kind in kinds for index in self.spans.kinds.get(kind, ())]
        found = of_kind or [index for index, span in enumerate(self.spans.spans) if span.kind != "infra"] or [0]
        return self.lacking(total, found, len(found))._replace(lacking=None, of=None)


def unknown_totals(
    spans: RunSpans,
    models: Sequence[LlmCall],
    tools: Sequence[ToolCallRow],
    row: Mapping[str, Any],
    records: Callable[[Span, str], bool | str],
    uncounted_usage: bool,
    findings: Findings,
) -> list[Unknown]:
    """Return a reason for each unknown total.

    Args:
        spans: of the run.
        models: its model calls, priced.
        tools: its tool calls.
        row: the totals.
        records: whether the instrumentation that wrote a span records a fact (`Dialect.records`).
        uncounted_usage: whether a span states usage of calls that were not recorded.
        findings: contradictions within the trace.
    """
    run = _TotalsInput(spans, models, tools, records, uncounted_usage, findings)
    return [_reason(run, name) for name, value in row.items() if value is None]


def _reason(run: _TotalsInput, total: str) -> Unknown:
    finding = run.findings.totals.get(total)
    if finding is not None:
        return Unknown(total, finding.check.id, at=finding.span)
    if total in ("first_start_ns", "last_end_ns", "busy_ns"):
        return Unknown(total, "no-time")
    if total == "agents":
        return run.not_recorded(total, ("llm", "tool"))
    if total == "tool_calls":
        return run.not_recorded(total, ("agent", "llm"))
    if total in ("errors", "unrecovered_errors"):
        return _errors(run, total)
    if total == "failed_llm_attempts":
        return _no_call(run, total) or run.not_recorded(total, ("llm",))
    return _no_call(run, total) or _of_usage(run, total)


def _no_call(run: _TotalsInput, total: str) -> Unknown | None:
    return None if run.models else Unknown(total, "no-call")


def _of_usage(run: _TotalsInput, total: str) -> Unknown:
    """Return why a sum over model calls, or their number, is unknown."""
    used = [call for call in run.models if call.has_usage]
    if total in _USAGE:
        without = [call.index for call in used if getattr(call, total) is None]
        if without:
            return run.lacking(total, without, len(used))
    if total == "cost_high":
        unpriced = [call for call in used if call.cost_usd is None]
        silent = [call.index for call in unpriced if call.input_tokens is None or call.output_tokens is None]
        if silent:
            return run.lacking("input_tokens", silent, len(used))._replace(total=total)
        if unpriced:
            return Unknown(total, "no-price", len(unpriced), len(used), unpriced[0].index)
    turn = next((index for index, role in enumerate(run.spans.role) if role == "turn"), None)
    if run.spans.doubtful:
        return Unknown(total, "one-call-or-two")
    if run.uncounted_usage:
        return Unknown(total, "usage-without-call")
    if turn is not None:
        return Unknown(total, "whole-turn", at=turn)
    return run.not_recorded(total, ("llm",)) if not used and total in _USAGE else Unknown(total, "too-large")


def _errors(run: _TotalsInput, total: str) -> Unknown:
    over = [call for call in run.tools if call.executed]
    unknown = [call for call in over if call.outcome == "unknown"]
    if unknown:
        return Unknown(total, "outcome-unknown", len(unknown), len(over), unknown[0].index)
    return run.not_recorded(total, ("agent", "tool", "llm"))
