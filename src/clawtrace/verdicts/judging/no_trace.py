"""Why a run may have no trace: what arrived for it, what was turned away, and how its agent ended."""

from __future__ import annotations

from collections.abc import Sequence

from clawtrace.facts.runs.arrivals import Arrivals, arrivals
from clawtrace.model.query import Query
from clawtrace.model.run import ClosedBy
from clawtrace.store.api import QueryableStore

__all__ = ["no_trace_hints"]

_ENDS = """
SELECT s.run_id AS run_id, r.run_status AS run_status, r.agent_exit_code AS exit_code, r.closed_by AS closed_by
FROM selected_runs AS s JOIN runs AS r ON r.run_id = s.run_id
WHERE r.run_status IS NOT NULL
"""

_LATER = (
    "If the agent already ran, its exporter sends later than the wait: `settle_ms` of the runner sets how long to wait "
    "without new spans, and `agent: started` means that there is nothing to wait for. "
)


def no_trace_hints(store: QueryableStore, run_ids: Sequence[str]) -> dict[str, str]:
    """Return why there may be no trace of each run, from the receiver's counters; ``selected_runs`` is changed."""
    came = arrivals(store, run_ids)
    if not came:
        return {}
    ends = {run_id: _end(*ended) for run_id, *ended in store.ask(Query(_ENDS)).rows}
    return {run_id: _no_trace_hint(came[run_id], ends.get(run_id, "")) for run_id in run_ids}


def _no_trace_hint(came: Arrivals, ended: str) -> str:
    """Say what came for the run, and what came for none; where nothing came, how its agent ended if not well."""
    if came.rejected or came.refused:
        counts = ((came.rejected, "rejected"), (came.refused, "refused"))
        items = " and ".join(f"{count} item{'s' if count != 1 else ''} {word}" for count, word in counts if count)
        return f"Nothing of this run was accepted, {items}: {'; '.join(came.why)}."
    if came.accepted:
        return (
            f"{came.accepted} items arrived for this run, and none is a span: its exporter sends only logs or metrics."
        )
    if came.nameless_spans:
        spans, traces = came.nameless_spans, came.nameless_traces
        counted = f"{spans} span{'s' if spans != 1 else ''} in {traces} trace{'s' if traces != 1 else ''}"
        return (
            f"{counted} arrived that name no run of this evaluation: pass CLAWTRACE_RUN_ID on as the resource "
            "attribute clawtrace.run_id (OTEL_RESOURCE_ATTRIBUTES), or as the header x-clawtrace-run-id. An agent that "
            "already runs must continue the `traceparent` of each request (TRACEPARENT), or name the session "
            "(CLAWTRACE_SESSION_ID) as `session.id` or `gen_ai.conversation.id`."
        )
    if came.strays:
        listed = "; ".join(f"{reason} ({count} times)" if count > 1 else reason for reason, count in came.strays)
        return (
            f"Nothing arrived for this run, but requests that did not name a run were rejected while it ran: {listed}."
        )
    return (
        f"Nothing arrived at all. {ended}Usual causes{' otherwise' if ended else ''}: no exporter is configured or it "
        "points elsewhere (`clawtrace env` prints what is set, and what `telemetry_env` can switch on), the SDK is "
        "disabled (OTEL_SDK_DISABLED), or the agent ended without flushing its exporter."
    )


def _end(status: str, exit_code: int | None, closed_by: str | None) -> str:
    """Say how an agent ended that did not end well, or what was waited for in vain."""
    if status == "success":
        return _LATER if closed_by == ClosedBy.SETTLED else ""
    if status == "timed_out":
        return "The agent was stopped at its time limit. "
    code = "" if exit_code is None else f" (exit code {exit_code})"
    return f"The agent ended as `{status}`{code}: read its standard error first. "
