"""Whether a closed run's trace is whole, and why not (spec: span-model.md §3).

A run is complete when no reason against it is known. Each reason has a code, a sentence and its spans; the
sentence for a missing parent prints the very line that would exempt it.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from clawtrace.dialects.load import Dialect
from clawtrace.facts.calls.run_spans import RunSpans
from clawtrace.facts.checks.models import unmade_request
from clawtrace.facts.runs.final_output import ended_without_answer, final_output
from clawtrace.facts.runs.gaps import Unfinished
from clawtrace.facts.runs.missing_answers import missing_answers, unanswered
from clawtrace.facts.runs.run_facts import RunFacts
from clawtrace.facts.runs.sent_turns import SentTurns, already_runs
from clawtrace.facts.spans.span import REMOTE_PARENT, Span
from clawtrace.model.run import CARRIED, ClosedBy, IncompleteReason, RunRecord, read_record
from clawtrace.store.api import FactSide
from clawtrace.support.figures import amount, listed

__all__ = ["ClosingSigns", "Completeness", "State"]

_SHOWN = 5
"""Spans named in a reason; the count is always whole."""

_SAMPLED = re.compile(r"(?:^|,)[ \t]*ot=(?:[^,]*;)?(?:th:0*[1-9a-f]|p:[1-9])")
"""A W3C tracestate that says that others were not sampled: a threshold above 0 (lower-case hex), or a p-value (OpenTelemetry,
"TraceState: Probability Sampling")."""

_COUNTERS = """
SELECT r.run_id, sum(c.rejected), sum(c.refused), string_agg(DISTINCT nullif(c.reason, ''), '; ')
FROM receipts AS c
JOIN fact_runs AS r ON r.run_no = c.run_no
GROUP BY r.run_id
HAVING sum(c.rejected) + sum(c.refused) > 0
"""

_LATE = """
SELECT r.run_id, sum(c.accepted)::BIGINT
FROM receipts AS c
JOIN fact_runs AS r ON r.run_no = c.run_no
JOIN (SELECT run_id, (record ->> '$.closed_at')::BIGINT AS closed_at FROM run_records) AS k ON k.run_id = r.run_id
WHERE c.request_no > k.closed_at AND c.accepted > 0 AND c.signal <> 'metrics' AND c.protocol <> 'file'
GROUP BY r.run_id
"""
"""Items received after a run was closed, without those read from the agent's own log files."""

_RECORDS = """
SELECT r.run_id, c.record
FROM fact_runs AS r
LEFT JOIN run_records AS c ON c.run_id = r.run_id
ORDER BY r.run_no
"""

_KILLED_BELOW = range(128 + 1, 128 + 64 + 1)
"""Exit codes of a shell (POSIX, "Exit Status for Commands") or a container engine whose command was killed by a signal."""
_TIMED_OUT_BELOW = 124
"""Exit code of the command `timeout` after it has ended its command."""

_NEAR = frozenset(("missing_parent", "open_span", "dropped"))
"""Reasons that concern only traces of which some spans were received."""

_CONFLICTS = "SELECT r.run_id, c.message FROM run_conflicts AS c JOIN fact_runs AS r ON r.run_no = c.run_no"

_EXPORTERS = f"""
SELECT count(DISTINCT t."ResourceAttributes") FROM otel_traces AS t JOIN fact_runs AS r ON r.run_no = t.run_no
WHERE t.run_rule NOT IN ({", ".join(map(repr, sorted(CARRIED)))})
"""
"""The number of processes of an already running agent that exported spans of the run, counted by their resources."""


class ClosingSigns(NamedTuple):
    """What a run's spans tell about whether more spans will arrive."""

    already_runs: bool = False
    """They came from an agent that was running before the run's command started."""
    worked: bool = False
    """They show an agent's work: activations, model calls or tool calls."""
    whole: bool = False
    """The agent already ran, every turn's entry span is here, and nothing is known to be missing. Of an agent that is several
    processes this is never said: each has its own exporter, and what one sent says nothing about the others."""
    settle_ms: int = 0
    """The silence, in milliseconds, that the instrumentation needs before a run is closed; 0 if it needs none."""
    lacking: tuple[str, ...] = ()
    """What is known to be missing, one sentence each."""


class State(NamedTuple):
    """What is known about the end of a run."""

    reasons: list[IncompleteReason]
    """Why it is not complete."""
    unfinished: Unfinished | None
    """What may still arrive or was lost; None for a complete run."""


class Completeness:
    """Makes the rows of the relation `runs`: how each run of a batch was closed, and the reasons against its completeness.

    Args:
        store: holds ``fact_runs``, the runs of the batch.
        dialects: by name.
        project_globs: names of spans whose parent is never exported, as the project says.
    """

    def __init__(self, store: FactSide, dialects: Mapping[str, Dialect], project_globs: Sequence[str]) -> None:
        self._store = store
        self._records = {
            run_id: read_record(text) if text else RunRecord(run_id, run_id) for run_id, text in store.script(_RECORDS)
        }
        self._counters: dict[str, list[IncompleteReason]] = {}
        for run_id, rejected, refused, why in store.script(_COUNTERS):
            for code, count in (("rejected", rejected), ("refused", refused)):
                if count:
                    reason = IncompleteReason(code, f"{count} of its items were {code}: {why}.")
                    self._counters.setdefault(run_id, []).append(reason)
        self._late: dict[str, int] = dict(store.script(_LATE))
        self._conflicts: dict[str, list[str]] = {}
        for run_id, message in store.script(_CONFLICTS):
            self._conflicts.setdefault(run_id, []).append(message)
        self._dialects = dialects
        self._project_globs = project_globs

    def state(self, run_id: str, facts: RunFacts | None) -> State:
        """Return why a run is not complete; `facts` is None where no span was received."""
        record = self._records[run_id]
        missing = [] if facts is None else self._orphans(facts.spans, record)
        reasons = [] if facts is None else self._from_spans(facts, record, missing)
        reasons += self._counters.get(run_id, [])
        reasons += _from_record(record)
        if items := self._late.get(run_id):
            reasons.append(_late(items))
        is_open = record.closed_by is None
        first = "run_open" if is_open else reasons[0].code if reasons else None
        near = bool(reasons) and not is_open and all(reason.code in _NEAR for reason in reasons)
        return State(reasons, None if first is None else Unfinished(first, is_open, frozenset(missing), near))

    def row(self, run_id: str, facts: RunFacts | None, state: State) -> dict[str, Any]:
        """Return the run's row of the relation `runs`; the totals of `facts` must be set."""
        record, reasons = self._records[run_id], state.reasons
        closed = record.closed_by is not None
        # Without any span, and without a reason, there is no trace that could be called whole or not.
        whole = None if facts is None and not reasons else not reasons
        answer = (None if facts is None else final_output(facts.spans, facts.models)) or record.final_output
        none = facts is not None and state.unfinished is None and ended_without_answer(facts.spans, facts.models)
        times = {} if facts is None else facts.totals
        return {
            "run_id": run_id,
            "case_id": record.case_id,
            "model_id": record.model_id,
            "repetition": record.repetition,
            "closed_by": record.closed_by.value if record.closed_by else None,
            "complete": whole if closed else None,
            "incomplete_because": json.dumps([reason._asdict() for reason in reasons]) if closed else None,
            "started_ns": times.get("first_start_ns") if record.started_ns is None else record.started_ns,
            "ended_ns": times.get("last_end_ns") if record.ended_ns is None else record.ended_ns,
            "agent_exit_code": record.agent_exit_code,
            "run_status": record.run_status,
            "final_output": answer,
            "conversation_end": record.conversation_end,
            "answered": True if answer is not None else False if none else None,
            "workspace": record.workspace,
            "cassette": record.cassette,
        }

    def signs(self, facts: RunFacts | None, record: RunRecord) -> ClosingSigns:
        """Return what the spans of a run that is still open tell about its end; `record` holds what was sent to the agent."""
        if facts is None:
            return ClosingSigns()
        run = facts.spans
        delays = [self._dialects[name].file.settle_ms or 0 for name in {span.dialect for span in run.spans}]
        runs = already_runs(run, record)
        reasons = self._from_spans(facts, record, self._orphans(run, record)) + self._counters.get(facts.run_id, [])
        return ClosingSigns(
            already_runs=runs,
            worked=any(span.kind in ("agent", "llm", "tool") for span in run.spans),
            whole=runs and not reasons and self._exporters() == 1 and SentTurns(run, record).are_here(),
            settle_ms=max(delays),
            lacking=tuple(reason.message for reason in reasons),
        )

    def _exporters(self) -> int:
        ((count,),) = self._store.script(_EXPORTERS)
        return int(count)

    def diagnostics(self, run_id: str, facts: RunFacts | None) -> list[str]:
        """Return further notes about a run, one sentence each."""
        said: list[str] = []
        if facts is not None:
            run = facts.spans
            if cut := sum(run.cut):
                said.append(f"{amount(cut, 'span')} named a descendant as parent; the reference was ignored.")
            if run.doubtful:
                said.append(
                    "two instrumentations recorded model calls that may be one call or two: the second one is not certain. "
                    "Switch one of the two off."
                )
            unread = Counter([span.unread for span in run.spans if span.unread is not None])
            for names, count in sorted(unread.items()):
                said.append(f"{amount(count, 'span')} recorded {names} with an invalid value, which counts as unknown.")
            said += _contradicted(facts)
            if facts.unsplit_commands:
                said.append(
                    f"{facts.unsplit_commands} of the commands could not be split into simple ones: they are too long or "
                    "not POSIX shell text."
                )
        said += self._conflicts.get(run_id, [])
        said += self._records[run_id].notes
        if self._project_globs and facts is not None:
            said.append(f"missing parents are allowed by this project for: {', '.join(self._project_globs)}.")
        return said

    def _from_spans(self, facts: RunFacts, record: RunRecord, orphans: Sequence[int]) -> list[IncompleteReason]:
        run = facts.spans
        spans = run.spans
        asked = unanswered(run, facts.models, facts.tools)
        found = [
            _missing_parents([spans[index] for index in orphans], record),
            _lost(facts.lost, record),
            _reused(facts.reused_ids),
            _reason("open_span", "{n} never ended: {names}.", [span for span in spans if span.end_ns is None]),
            _reason(
                "dropped",
                "{n} lost attributes, ends of values, events or links before export (SDK limits): {names}.",
                [span for span in spans if span.dropped or (span.shortened and not span.cut_in_tool)],
            ),
            _reason(
                "sampled",
                "{n} were sampled, so other spans of the run were not exported ({names}).",
                [span for span in spans if span.trace_state and _SAMPLED.search(span.trace_state)],
            ),
            _reason(
                "unanswered_tool_call",
                "the last model call requested a tool, and nothing after it was received ({names}).",
                [spans[call.index] for call in asked],
            ),
            _reason(
                "missing_model_call",
                "a request repeats a tool call that no recorded answer asked for: model calls are missing ({names}).",
                [spans[index] for index in missing_answers(run, facts.models)],
            ),
            _reason(
                "missing_model_call",
                "a model is asked after the last step, and nothing that started later was received ({names}).",
                [] if (last := unmade_request(run)) is None else [spans[last]],
            ),
        ]
        turns = SentTurns(run, record).reasons() if already_runs(run, record) else []
        return [*turns, *(reason for reason in found if reason is not None)]

    def _orphans(self, run: RunSpans, record: RunRecord) -> list[int]:
        """Return the spans whose parent was not received, although it should have been: it is not remote and not exempt."""
        orphans: dict[str, list[int]] = {}
        for index, span in enumerate(run.spans):
            if span.parent_span_id is not None and not run.cut[index] and not span.outermost:
                remote = (span.flags or 0) & REMOTE_PARENT == REMOTE_PARENT
                if not remote and span.parent_span_id not in record.injected:
                    orphans.setdefault(span.parent_span_id, []).append(index)
        missing = []
        for siblings in orphans.values():
            spans = [run.spans[index] for index in siblings]
            missing += [index for index in siblings if not self._never_exported(run.spans[index], spans)]
        return missing

    def _never_exported(self, span: Span, siblings: Sequence[Span]) -> bool:
        """Return whether a dialect or the project exempts the parent of a span and its `siblings` from being exported."""
        if any(fnmatchcase(span.name, glob) for glob in self._project_globs):
            return True
        return any(
            fnmatchcase(span.name, rule.span)
            and (rule.error is None or any(fnmatchcase(one.error or "", rule.error) for one in siblings))
            and (rule.sibling is None or any(fnmatchcase(one.name, rule.sibling) for one in siblings))
            for rule in self._dialects[span.dialect].file.parent_not_exported
        )


def _missing_parents(missing: Sequence[Span], record: RunRecord) -> IncompleteReason | None:
    reason = _reason("missing_parent", "the parent of {n} was never received: {names}.", missing)
    if reason is None or _from_record(record):  # an agent that was ended does not show what it never exports
        return reason
    line = ", ".join(json.dumps(name) for name in sorted({span.name for span in missing}))
    advice = f" If it is never exported, declare it in clawtrace.yaml: trace: {{parent_not_exported: [{line}]}}"
    return reason._replace(message=reason.message + advice)


def _lost(spans: Mapping[str, str], record: RunRecord) -> IncompleteReason | None:
    """Return a reason if log events name spans that were not received; the span of the process that started the agent is no loss."""
    ids = sorted(spans.keys() - record.injected)
    if not ids:
        return None
    names = _listed(sorted({spans[span_id] for span_id in ids}))
    text = f"{amount(len(ids), 'span')} that log events name ({names}) {'was' if len(ids) == 1 else 'were'} never received."
    return IncompleteReason("lost_span", text, tuple(ids[:_SHOWN]))


def _reused(ids: Sequence[str]) -> IncompleteReason | None:
    """Return a reason if spans were dropped because their ids belong to other spans of the run."""
    if not ids:
        return None
    text = (
        f"{len(ids)} span {'id was' if len(ids) == 1 else 'ids were'} used for more than one span ({_listed(ids)}), and only "
        "the first is counted: the agent seeds the random generator that makes the ids (in Python, use `random.Random(seed)` "
        "instead of `random.seed(seed)`)."
    )
    return IncompleteReason("reused_id", text, tuple(ids[:_SHOWN]))


def _reason(code: str, sentence: str, spans: Sequence[Span]) -> IncompleteReason | None:
    if not spans:
        return None
    text = sentence.format(n=amount(len(spans), "span"), names=_listed([span.name for span in spans]))
    return IncompleteReason(code, text, tuple(span.span_id for span in spans[:_SHOWN]))


def _from_record(record: RunRecord) -> list[IncompleteReason]:
    reasons = []
    if record.timed_out:
        reasons.append(IncompleteReason("timed_out", "the agent was stopped at its time limit (`timeout_seconds`)."))
    elif record.ended_by_signal is not None:
        reasons.append(IncompleteReason("killed", f"the agent was killed by signal {record.ended_by_signal}."))
    elif (code := record.agent_exit_code or 0) in _KILLED_BELOW:
        sentence = f"the agent ended with exit code {code}: its child process was killed by signal {code - 128}."
        reasons.append(IncompleteReason("killed", sentence))
    elif code == _TIMED_OUT_BELOW:
        sentence = "the agent ended with exit code 124, by which `timeout` says that it ended its child process."
        reasons.append(IncompleteReason("timed_out", sentence))
    if record.cut_off is not None:
        reasons.append(IncompleteReason("cut_off", record.cut_off))
    if record.lacking is not None:
        reasons.append(IncompleteReason("lacking", record.lacking))
    if record.closed_by is ClosedBy.TIMEOUT:
        reasons.append(IncompleteReason("trace_timeout", "spans were still arriving when trace_timeout_ms had passed."))
    return reasons


def _late(items: int) -> IncompleteReason:
    """Return a reason if spans or log records arrived after the run was closed: more may follow."""
    came = f"{items} spans or log records" if items > 1 else "a span or log record"
    return IncompleteReason(
        "late",
        f"{came} arrived after the run was closed, so more may come. Set `settle_ms` longer than what exports them holds spans, "
        "and run it again.",
    )


def _listed(names: Sequence[str]) -> str:
    return listed([f"`{name}`" for name in dict.fromkeys(names)], _SHOWN)


def _contradicted(facts: RunFacts) -> Iterator[str]:
    """Yield notes on recorded costs that differ from the price of their tokens: a cost, or the price list, is wrong."""
    off = [call for call in facts.models if call.contradicts_its_price]
    if off:
        recorded = sum(call.recorded_cost_usd or 0.0 for call in off)
        estimated = sum(call.estimated_cost_usd or 0.0 for call in off)
        yield (
            f"{len(off)} model call{'s' * (len(off) > 1)} recorded a cost of {recorded:.6g} USD, while its tokens cost {estimated:.6g} "
            "USD by the price list: one of the two is wrong. The recorded cost is used; `model_pricing` states prices."
        )
