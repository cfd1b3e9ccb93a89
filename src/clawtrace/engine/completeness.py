"""Whether a closed run's trace is whole, and why not (spec: span-model.md §3).

A run is complete when no reason against it is known. Each reason has a code, a sentence and its spans; the
sentence for a missing parent prints the very line that would exempt it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from fnmatch import fnmatchcase
from typing import Any

from clawtrace.dialects import Dialect
from clawtrace.model.run import ClosedBy, IncompleteReason, RunRecord
from clawtrace.store.duckdb import DuckStore, read_record

__all__ = ["Completeness"]

_SHOWN = 5
"""Spans named in a reason; the count is always whole."""

_REMOTE = 0x300
"""OTLP span flags: bit 8 says that bit 9 is known, bit 9 that the parent is remote."""

_MISSING_PARENTS = """
SELECT s.run_id, s.span_id, s.name, s.dialect, s.parent_span_id, s.flags
FROM fact_spans AS s
LEFT JOIN fact_keys AS p ON p.run_no = s.run_no AND p.trace_id = s.trace_id AND p.span_id = s.parent_span_id
WHERE s.parent_span_id IS NOT NULL AND p.sid IS NULL AND NOT s.cut
ORDER BY s.sid
"""

_OPEN = "SELECT run_id, span_id, name FROM fact_spans WHERE NOT ended ORDER BY sid"

_DROPPED = "SELECT run_id, span_id, name FROM fact_spans WHERE dropped > 0 ORDER BY sid"

_SAMPLED = """
SELECT run_id, span_id, name FROM fact_spans
WHERE regexp_matches(trace_state, '(^|,)ot=([^,]*;)?th:0*[1-9a-fA-F]')
   OR regexp_matches(trace_state, '(^|,)ot=([^,]*;)?p:[1-9]')
ORDER BY sid
"""

# The last model call below each root (bare ones are one conversation), where it asked for tools.
_LAST_ASKED = """
CREATE OR REPLACE TEMP TABLE fact_last_asked AS
WITH last_calls AS (
    SELECT c.run_no AS run_no, c.run_id AS run_id, c.grp AS grp, c.span_id AS span_id, c.start_ns AS start_ns,
           c.outcome AS outcome, c.finish_reason AS finish_reason, s.name AS name, s.depth AS depth, s.root_sid AS root_sid, s.tree_enter AS tree_enter, s.tree_leave AS tree_leave,
           row_number() OVER (
               PARTITION BY c.run_no, CASE WHEN s.depth = 0 THEN -1 ELSE s.root_sid END ORDER BY c.start_ns DESC, c.sid DESC
           ) AS nth
    FROM fact_llm_calls AS c
    JOIN fact_spans AS s ON s.sid = c.sid
)
SELECT l.*
FROM last_calls AS l
LEFT JOIN (SELECT DISTINCT run_no, grp FROM fact_requests) AS r ON r.run_no = l.run_no AND r.grp = l.grp
LEFT JOIN fact_llm_voices AS v ON v.run_no = l.run_no AND v.grp = l.grp
WHERE l.nth = 1 AND l.outcome = 'ok'
  AND (r.grp IS NOT NULL
       OR (v.sid IS NULL AND lower(l.finish_reason) IN ('tool_calls', 'tool_call', 'tool_use', 'function_call')))
"""

# Then something must have come of it, or an agent around it have ended.
_UNANSWERED = """
SELECT c.run_id, c.span_id, c.name
FROM fact_last_asked AS c
WHERE NOT EXISTS (
      SELECT 1 FROM fact_executions AS e JOIN fact_spans AS x ON x.sid = e.sid
      WHERE e.run_no = c.run_no AND e.start_ns >= c.start_ns AND (c.depth = 0 OR x.root_sid = c.root_sid))
  AND NOT EXISTS (SELECT 1 FROM fact_spans AS h WHERE h.run_no = c.run_no AND h.role = 'handoff' AND h.start_ns >= c.start_ns)
  AND NOT EXISTS (
      SELECT 1 FROM fact_spans AS a
      WHERE a.run_no = c.run_no AND a.kind = 'agent' AND a.ended
        AND a.tree_enter < c.tree_enter AND c.tree_leave < a.tree_leave)
ORDER BY c.tree_enter
"""

_COUNTERS = """
SELECT r.run_id, sum(c.rejected), sum(c.refused), string_agg(DISTINCT nullif(c.reason, ''), '; ')
FROM receipts AS c
JOIN fact_runs AS r ON r.run_no = c.run_no
GROUP BY r.run_id
HAVING sum(c.rejected) + sum(c.refused) > 0
"""

# What the run answered, from its spans: the topmost agent's own word, else the text of the last model call.
# Two conversations side by side have no one answer.
_ANSWERS = """
WITH roots AS (
    SELECT run_id, run_no, root_sid, min(start_ns) AS start_ns, max(coalesce(end_ns, start_ns)) AS end_ns
    FROM fact_spans WHERE kind IN ('agent', 'llm') GROUP BY run_id, run_no, root_sid
),
last_root AS (
    SELECT r.*, row_number() OVER (PARTITION BY run_no ORDER BY start_ns DESC, root_sid DESC) AS nth FROM roots AS r
),
told AS (
    SELECT root_sid, arg_min(final_output, depth) AS text
    FROM fact_spans WHERE kind = 'agent' AND agent_sid IS NULL AND final_output IS NOT NULL GROUP BY root_sid
),
last_calls AS (
    SELECT c.run_no AS run_no, c.grp AS grp, c.outcome AS outcome, s.root_sid AS root_sid,
           row_number() OVER (PARTITION BY c.run_no, s.root_sid ORDER BY c.start_ns DESC, c.sid DESC) AS nth
    FROM fact_llm_calls AS c JOIN fact_spans AS s ON s.sid = c.sid
),
spoken AS (
    SELECT l.root_sid AS root_sid, string_agg(m.text, chr(10) ORDER BY m.message_no, m.part_no) AS text
    FROM last_calls AS l
    JOIN fact_llm_voices AS v ON v.run_no = l.run_no AND v.grp = l.grp
    JOIN fact_messages AS m ON m.sid = v.sid AND m.direction = 'output' AND m.type = 'text'
    WHERE l.nth = 1 AND l.outcome = 'ok'
    GROUP BY l.root_sid
)
SELECT l.run_id, coalesce(t.text, p.text)
FROM last_root AS l
LEFT JOIN told AS t ON t.root_sid = l.root_sid
LEFT JOIN spoken AS p ON p.root_sid = l.root_sid
WHERE l.nth = 1
  AND NOT EXISTS (SELECT 1 FROM roots AS o WHERE o.run_no = l.run_no AND o.root_sid <> l.root_sid AND o.end_ns > l.start_ns)
"""


class Completeness:
    """Writes the relation `runs`: how each run of the batch was closed, and the reasons against its completeness."""

    def __init__(self, store: DuckStore, dialects: Mapping[str, Dialect], project_globs: Sequence[str]) -> None:
        self._store = store
        self._dialects = dialects
        self.project_globs = tuple(project_globs)

    def publish(self, cut: Sequence[int]) -> dict[str, list[str]]:
        """Replace the rows of `runs` for the batch; return what else there is to say, by run id."""
        store = self._store
        rows = store.script(
            "SELECT r.run_id, c.record, t.first_start_ns, t.last_end_ns FROM fact_runs AS r"
            " LEFT JOIN run_records AS c ON c.run_id = r.run_id LEFT JOIN run_totals AS t ON t.run_id = r.run_id"
            " ORDER BY r.run_no"
        )
        records = {row[0]: read_record(row[1]) if row[1] else RunRecord(row[0], row[0]) for row in rows}
        times = {row[0]: (row[2], row[3]) for row in rows}
        reasons = self._reasons(records)
        answers = dict(store.script(_ANSWERS))
        self._write(records, times, reasons, answers)
        return self._diagnostics(cut)

    def _reasons(self, records: Mapping[str, RunRecord]) -> dict[str, list[IncompleteReason]]:
        found: dict[str, list[IncompleteReason]] = {run_id: [] for run_id in records}
        self._missing_parents(records, found)
        self._from_spans(_OPEN, "open_span", "{n} never ended: {names}.", found)
        self._from_spans(
            _DROPPED, "dropped", "{n} lost attributes, events or links before export (SDK limits): {names}.", found
        )
        self._from_spans(_SAMPLED, "sampled", "{n} were sampled: others of the run were not exported ({names}).", found)
        self._store.script(_LAST_ASKED)
        if self._store.script("SELECT 1 FROM fact_last_asked LIMIT 1"):
            sentence = "the last model call asked for a tool, and nothing that followed it was received ({names})."
            self._from_spans(_UNANSWERED, "unanswered_tool_call", sentence, found)
        for run_id, rejected, refused, why in self._store.script(_COUNTERS):
            for code, count in (("rejected", rejected), ("refused", refused)):
                if count:
                    found[run_id].append(IncompleteReason(code, f"the receiver {code} {count} of its items ({why})."))
        for run_id, record in records.items():
            found[run_id].extend(_from_record(record))
        return found

    def _missing_parents(self, records: Mapping[str, RunRecord], found: dict[str, list[IncompleteReason]]) -> None:
        missing: dict[str, list[tuple[str, str, str]]] = {}
        for run_id, span_id, name, dialect, parent, flags in self._store.script(_MISSING_PARENTS):
            injected = parent == records[run_id].parent_span_id
            remote = (flags or 0) & _REMOTE == _REMOTE
            globs = (*self._dialects[dialect].file.parent_not_exported, *self.project_globs)
            if not injected and not remote and not any(fnmatchcase(name, glob) for glob in globs):
                missing.setdefault(run_id, []).append((span_id, name, parent))
        for run_id, spans in missing.items():
            names = sorted({name for _, name, _ in spans})
            line = ", ".join(json.dumps(name) for name in names)
            found[run_id].append(
                IncompleteReason(
                    "missing_parent",
                    f"the parent of {_spans(len(spans))} was never received: {_listed([name for _, name, _ in spans])}. "
                    f"If it is never exported, say so in clawtrace.yaml: trace: {{parent_not_exported: [{line}]}}",
                    tuple(span_id for span_id, _, _ in spans[:_SHOWN]),
                )
            )

    def _from_spans(self, sql: str, code: str, sentence: str, found: dict[str, list[IncompleteReason]]) -> None:
        spans: dict[str, list[tuple[str, str]]] = {}
        for run_id, span_id, name in self._store.script(sql):
            spans.setdefault(run_id, []).append((span_id, name))
        for run_id, rows in spans.items():
            text = sentence.format(n=_spans(len(rows)), names=_listed([name for _, name in rows]))
            found[run_id].append(IncompleteReason(code, text, tuple(span_id for span_id, _ in rows[:_SHOWN])))

    def _write(
        self,
        records: Mapping[str, RunRecord],
        times: Mapping[str, tuple[int | None, int | None]],
        reasons: Mapping[str, list[IncompleteReason]],
        answers: Mapping[str, str | None],
    ) -> None:
        runs: list[dict[str, Any]] = []
        for run_id, record in records.items():
            first, last = times[run_id]
            closed = record.closed_by is not None
            # Without any span, and without a reason, there is no trace that could be called whole or not.
            whole = None if first is None and not reasons[run_id] else not reasons[run_id]
            runs.append(
                {
                    "run_id": run_id,
                    "case_id": record.case_id,
                    "model_id": record.model_id,
                    "repetition": record.repetition,
                    "closed_by": record.closed_by.value if record.closed_by else None,
                    "complete": whole if closed else None,
                    "incomplete_because": json.dumps([asdict(reason) for reason in reasons[run_id]])
                    if closed
                    else None,
                    "started_ns": record.started_ns if record.started_ns is not None else first,
                    "ended_ns": record.ended_ns if record.ended_ns is not None else last,
                    "agent_exit_code": record.agent_exit_code,
                    "run_status": record.run_status,
                    "final_output": answers.get(run_id) or record.final_output,
                    "workspace": record.workspace,
                }
            )
        kinds = {"repetition": "bigint", "started_ns": "bigint", "ended_ns": "bigint", "agent_exit_code": "bigint", "complete": "boolean"}  # fmt: skip
        columns = {name: (kinds.get(name, "text"), [run[name] for run in runs]) for name in runs[0]}
        self._store.load("fact_new_runs", columns)
        self._store.script(
            "DELETE FROM runs WHERE run_id IN (SELECT run_id FROM fact_runs);"
            "INSERT INTO runs BY NAME SELECT * FROM fact_new_runs"
        )

    def _diagnostics(self, cut: Sequence[int]) -> dict[str, list[str]]:
        said: dict[str, list[str]] = {}
        if cut:
            rows = self._store.script("SELECT run_id, count(*) FROM fact_spans WHERE cut GROUP BY run_id")
            for run_id, count in rows:
                said.setdefault(run_id, []).append(
                    f"{_spans(count)} named a parent below itself; the reference was cut."
                )
        unread = self._store.script(
            "SELECT k.run_id, f.unread, count(*) FROM fact_rows AS f JOIN fact_keys AS k ON k.sid = f.sid"
            " WHERE f.unread IS NOT NULL GROUP BY k.run_id, f.unread ORDER BY k.run_id, f.unread"
        )
        for run_id, names, count in unread:
            said.setdefault(run_id, []).append(
                f"{_spans(count)} recorded {names} as what is no such number; it counts as unknown."
            )
        conflicts = self._store.script(
            "SELECT r.run_id, c.message FROM run_conflicts AS c JOIN fact_runs AS r ON r.run_no = c.run_no"
        )
        for run_id, message in conflicts:
            said.setdefault(run_id, []).append(message)
        if self.project_globs:
            line = ", ".join(self.project_globs)
            for (run_id,) in self._store.script("SELECT DISTINCT run_id FROM fact_spans"):
                said.setdefault(run_id, []).append(f"missing parents are exempted by this project for: {line}.")
        return said


def _from_record(record: RunRecord) -> list[IncompleteReason]:
    reasons = []
    if record.timed_out:
        reasons.append(IncompleteReason("timed_out", "the agent was ended by the time limit."))
    elif record.ended_by_signal is not None:
        reasons.append(IncompleteReason("killed", f"the agent was killed by signal {record.ended_by_signal}."))
    if record.cut_off is not None:
        reasons.append(IncompleteReason("cut_off", record.cut_off))
    if record.lacking is not None:
        reasons.append(IncompleteReason("lacking", record.lacking))
    if record.closed_by is ClosedBy.TIMEOUT:
        reasons.append(IncompleteReason("trace_timeout", "spans were still arriving when trace_timeout_ms had passed."))
    return reasons


def _spans(count: int) -> str:
    return f"{count} span" if count == 1 else f"{count} spans"


def _listed(names: Sequence[str]) -> str:
    distinct = list(dict.fromkeys(names))
    shown = ", ".join(f"`{name}`" for name in distinct[:_SHOWN])
    return f"{shown} and {len(distinct) - _SHOWN} more" if len(distinct) > _SHOWN else shown
