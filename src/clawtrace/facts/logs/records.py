"""Log records as rows and as facts of spans, and the agents of conversations.

An agent's truth is often in its log events. A dialect's `events:` say what they mean; a record that belongs to a span
fills the span's facts and is no separate row, so nothing is counted twice (spec: span-model.md §5). Runs that have
neither such records nor a dialect with `main_agent` are not looked at here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from clawtrace.dialects.columns import COLUMN_TYPES
from clawtrace.dialects.compile import Compiler
from clawtrace.dialects.expressions import Seen
from clawtrace.dialects.load import Dialect
from clawtrace.dialects.rules import SPAN_TESTS, KindRule, RecordEffect
from clawtrace.dialects.schema import Detect, DialectFile, EventRule, JoinPair
from clawtrace.facts.columns import columns
from clawtrace.facts.logs.rows import EventRecord, JoinedRow, RunRows
from clawtrace.store.api import FactSide

__all__ = ["Completed", "complete_rows"]

_ALWAYS = ("session_id", "agent_id", "agent_name", "owner_agent", "request_model", "response_model", "attempts")
"""Columns that are asked of every row."""

_ANY = ("failed", *(name for name, effect in SPAN_TESTS.items() if effect is RecordEffect.ANY))
_ALL = tuple(name for name, effect in SPAN_TESTS.items() if effect is RecordEffect.ALL)

_NEW_ROWS = {"sid": "bigint", "record": "bigint", "rule": "bigint", "received": "boolean", "start_ns": "bigint"}
_NEW_AGENTS = {
    "sid": "bigint", "run_no": "bigint", "trace_id": "text", "dialect": "text", "session_id": "text", "agent_name": "text",
    "start_ns": "bigint", "end_ns": "bigint",
}  # fmt: skip
_JOINED = {
    "sid": "bigint", "record": "bigint", "rule": "bigint", "before": "boolean", "gather": "boolean", "nth": "bigint",
}  # fmt: skip
_FOUND = {"sid": "bigint", "agent_name": "text", "request_model": "text", "attempts": "bigint"}

_PAYLOADS = ("input_format", "input_payload", "output_format", "output_payload")


class Completed(NamedTuple):
    """What completing the rows of a batch found."""

    parents: dict[int, int]
    """Parents that no span names, by `sid`."""
    lost: dict[int, dict[str, str]]
    """Spans that log events name and that were not received, by run: their ids with the name of an event."""


class _Readable(NamedTuple):
    """The rules for one event, in the form of a dialect."""

    name: str
    file: DialectFile

    @classmethod
    def of(cls, dialect: Dialect, rule: EventRule) -> _Readable:
        words = rule.model_dump(
            include={"roles", "columns", "errors", "messages", *SPAN_TESTS}, by_alias=True, exclude_unset=True
        )
        file = dialect.file
        return cls(
            dialect.name,
            DialectFile(
                dialect=file.dialect, title=file.title, source=file.source, about=file.about,
                detect=Detect(priority=0, any=[]), kind=[KindRule.model_validate({"is": rule.is_})], **words,
            ),
        )  # fmt: skip


def complete_rows(
    store: FactSide,
    dialects: Mapping[str, Dialect],
    at_hand: Sequence[str],
    sql: Callable[[str], str],
    *,
    any_logs: bool,
) -> Completed:
    """Complete ``fact_keys`` and ``fact_rows`` of the batch.

    Args:
        store: holds the batch.
        dialects: by name, highest priority first.
        at_hand: the dialects of the batch's spans.
        sql: reads a file of this room's SQL.
        any_logs: whether the batch has log records.
    """
    names_main_agents = any(dialects[name].file.main_agent for name in at_hand)
    rules = _load_records(store, dialects, sql) if any_logs else []
    if not rules and not names_main_agents:
        return Completed({}, {})
    return _Batch(store, dialects, rules, sql).complete()


def _load_records(
    store: FactSide, dialects: Mapping[str, Dialect], sql: Callable[[str], str]
) -> list[tuple[str, EventRule]]:
    """Make ``fact_log_raw`` and ``fact_log_rows``; return the event rules at work, by the number that the rows name."""
    telling = [dialect for dialect in dialects.values() if dialect.events]
    names = sorted({name for dialect in telling for rule in dialect.events for name in rule.log})
    if not names:
        return []
    listed = ", ".join(map(_quoted, names))
    keys = dict.fromkeys(key for dialect in telling for key in dialect.event_name)
    event_names = "".join(f", nullif(\"LogAttributes\"[{_quoted(key)}], '')" for key in keys)
    detection, version = Compiler().log_detection(telling), Compiler().version(telling)
    store.script(sql("logs").format(names=listed, event_names=event_names, detection=detection, version=version))
    seen: dict[str, dict[str, set[str]]] = {}
    for dialect, place, key in store.script(sql("logs_seen")):
        seen.setdefault(dialect, {"name": set(), "span": set(), "resource": set()})[place].add(key)
    rules: list[tuple[str, EventRule]] = []
    parts = []
    for name, found in sorted(seen.items()):
        compiler = Compiler(seen=Seen(frozenset(found["span"]), frozenset(), frozenset(found["resource"])))
        for rule in dialects[name].events:
            if not found["name"] & set(rule.log):
                continue
            where = ", ".join(map(_quoted, rule.log))
            when = compiler.condition(rule.when) if rule.when is not None else "TRUE"
            source = f'(SELECT * FROM fact_log_raw WHERE "SpanName" IN ({where}) AND {when})'
            parts.append(
                f"SELECT *, {len(rules)} AS rule FROM ({compiler.row_facts(_Readable.of(dialects[name], rule), source)})"
            )
            rules.append((name, rule))
    if parts:
        body = "\nUNION ALL\n".join(parts)
        store.script(sql("row_facts").replace("fact_rows", "fact_log_rows").replace("{body}", body))
    return rules


class _Batch:
    """The rows of a batch, completed run by run."""

    def __init__(
        self,
        store: FactSide,
        dialects: Mapping[str, Dialect],
        rules: Sequence[tuple[str, EventRule]],
        sql: Callable[[str], str],
    ) -> None:
        self._store = store
        self._dialects = dialects
        self._rules = rules
        self._sql = sql
        parts = [part for _, rule in rules for step in rule.join for part in step]
        pairs = [part for part in parts if isinstance(part, JoinPair)]
        self._columns = [name for name in COLUMN_TYPES if name in _ALWAYS or name in parts]
        lasting = {rule.duration_ms for _, rule in rules if rule.duration_ms is not None}
        self._keys = sorted({key for pair in pairs for key in (pair.log, pair.span or pair.log)} | lasting)

    def complete(self) -> Completed:
        """Complete the rows."""
        from clawtrace.facts.logs.conversations import adopt, name_agents
        from clawtrace.facts.logs.join import join_records, separate_attempts

        records = self._records()
        lost: dict[int, dict[str, str]] = {}
        parents: dict[int, int] = {}
        joined: list[tuple[int, EventRecord, bool]] = []
        made: list[JoinedRow] = []
        agents: list[tuple[int, JoinedRow]] = []
        changed: list[JoinedRow] = []
        for run_no, run in self._runs(records):
            of_run: list[JoinedRow] = []
            if unknown := self._lost(run_no, run, records):
                lost[run_no] = unknown
            for number, (_, rule) in enumerate(self._rules):
                if found := records.get((run_no, number)):
                    of_run += join_records(run, rule, found, -1 - len(made) - len(agents) - len(of_run))
            made += of_run
            changed += separate_attempts(of_run)
            here, moved = adopt(run, self._dialects, -1 - len(made) - len(agents))
            run.settle()
            agents += [(run_no, row) for row in here]
            changed += name_agents(run, self._dialects)
            parents.update((row.sid, row.parent.sid) for row in moved if row.parent is not None)
            for row in run.rows:
                joined += [(row.sid, record, True) for record in row.before]
                joined += [(row.sid, record, False) for record in row.fills]
        self._insert(made, agents)
        self._fill(joined)
        self._change(changed)
        if not made and not agents:
            return Completed(parents, lost)
        numbers = dict(self._store.script(self._sql("renumber") + "SELECT old, sid FROM fact_numbers"))
        return Completed({numbers[below]: numbers[above] for below, above in parents.items()}, lost)

    def _lost(
        self, run_no: int, run: RunRows, records: Mapping[tuple[int, int], Sequence[EventRecord]]
    ) -> dict[str, str]:
        """Return the ids of spans that events of a run name and that were not received, with the name of an event."""
        found: dict[str, str] = {}
        exported = {row.dialect for row in run.rows}
        for number, (dialect, rule) in enumerate(self._rules):
            if self._dialects[dialect].file.spans_apart and dialect not in exported:
                continue
            for record in records.get((run_no, number), ()):
                if record.named is not None and run.received(record.named) is None:
                    found.setdefault(record.named[1], rule.log[0])
        return found

    def _records(self) -> dict[tuple[int, int], list[EventRecord]]:
        """Return the records by run and rule."""
        if not self._rules:
            return {}
        facts = ", ".join(f"f.{name}" for name in self._columns)
        found: dict[tuple[int, int], list[EventRecord]] = {}
        rows = self._store.script(
            'SELECT l.sid, f.rule, l.run_no, l.dialect, f.kind, f.failed, l."TraceId", l."SpanId", l.at_ns,'
            f" {self._attributes('l')}, {facts} FROM fact_log_rows AS f JOIN fact_log_raw AS l ON l.sid = f.sid ORDER BY l.sid"
        )
        for sid, rule, run_no, dialect, kind, failed, trace_id, span_id, at_ns, attributes, *values in rows:
            named = (trace_id, span_id) if span_id else None
            record = EventRecord(
                sid, rule, run_no, dialect, kind, failed, named, trace_id, at_ns, dict(zip(self._columns, values, strict=True)),
                dict(zip(self._keys, attributes, strict=True)),
            )  # fmt: skip
            found.setdefault((run_no, rule), []).append(record)
        return found

    def _runs(self, records: Mapping[tuple[int, int], Sequence[EventRecord]]) -> Iterator[tuple[int, RunRows]]:
        """Return the runs that have records, or spans of a dialect that says more than its spans; with their spans."""
        with_records = {run_no for run_no, _ in records}
        facts = ", ".join(f"f.{name}" for name in self._columns)
        spans = self._store.script(
            "SELECT k.run_no, k.sid, k.dialect, f.kind, f.failed, k.trace_id, k.span_id, k.parent_span_id, k.start_ns, k.end_ns,"
            f" {self._attributes('t')}, {facts} FROM fact_keys AS k JOIN fact_rows AS f ON f.sid = k.sid"
            " JOIN otel_traces AS t ON t.rowid = k.row_id WHERE t.run_no IN (SELECT run_no FROM fact_runs) ORDER BY k.sid"
        )
        rows: dict[int, list[JoinedRow]] = {run_no: [] for run_no in sorted(with_records)}
        for run_no, of_run in groupby(spans, key=lambda span: span[0]):
            rows[run_no] = [self._row(*span) for _, *span in of_run]
        for run_no, of_run_rows in sorted(rows.items()):
            files = (self._dialects[row.dialect].file for row in of_run_rows)
            if run_no in with_records or any(words.main_agent for words in files):
                yield run_no, RunRows(of_run_rows)

    def _row(
        self,
        sid: int,
        dialect: str,
        kind: str,
        failed: bool,
        trace_id: str,
        span_id: str,
        parent_span_id: str | None,
        start_ns: int,
        end_ns: int | None,
        attributes: Sequence[str | None],
        *values: Any,
    ) -> JoinedRow:
        return JoinedRow(
            sid, dialect, kind, failed, (trace_id, span_id), None if parent_span_id is None else (trace_id, parent_span_id),
            start_ns, end_ns, dict(zip(self._columns, values, strict=True)), dict(zip(self._keys, attributes, strict=True)),
        )  # fmt: skip

    def _attributes(self, table: str) -> str:
        """Return SQL for the list of the attributes that joins read."""
        texts = ", ".join(f"nullif({table}.\"SpanAttributes\"[{_quoted(key)}], '')" for key in self._keys)
        return f"[{texts}]::VARCHAR[]"

    def _insert(self, made: Sequence[JoinedRow], agents: Sequence[tuple[int, JoinedRow]]) -> None:
        """Add the rows that are new."""
        if made:
            rows = [
                (
                    row.sid,
                    row.record.sid,
                    row.record.rule,
                    bool(row.parent and row.above == row.parent.key),
                    row.start_ns,
                )
                for row in made
                if row.record is not None
            ]
            self._store.load("fact_log_new", columns(_NEW_ROWS, rows))
            self._store.script(self._sql("log_rows"))
        if agents:
            of_agents = [
                (row.sid, run_no, row.key[0], row.dialect, row.columns["session_id"], row.columns["agent_name"], row.start_ns, row.end_ns)
                for run_no, row in agents
            ]  # fmt: skip
            self._store.load("fact_new_agents", columns(_NEW_AGENTS, of_agents))
            tests = ", ".join(f"false AS {name}" for name in ("failed", *SPAN_TESTS))
            self._store.script(self._sql("conversation_agents").format(tests=tests))

    def _fill(self, joined: Sequence[tuple[int, EventRecord, bool]]) -> None:
        """Let rows take the values of the records that were joined to them."""
        if not joined:
            return
        rows = [
            (sid, record.sid, record.rule, before, self._rules[record.rule][1].gather, nth)
            for nth, (sid, record, before) in enumerate(joined)
        ]
        self._store.load("fact_log_joined", columns(_JOINED, rows))
        at_work = {record.rule for _, record, _ in joined}
        rules = [rule for number, (_, rule) in enumerate(self._rules) if number in at_work]
        names = {name for rule in rules for name in rule.columns} - {"total_tokens"}
        names |= {"error_message", "error_type"} if any(rule.errors for rule in rules) else set()
        names |= set(_PAYLOADS) if any(rule.messages for rule in rules) else set()
        first = [
            f"{_first_recorded(name, before)} AS {side}_{name}"
            for name in sorted(names)
            for side, before in (("b", True), ("f", False))
        ]
        taken = [f"{name} = coalesce(x.b_{name}, fact_rows.{name}, x.f_{name})" for name in sorted(names)]
        tested = [f"bool_or(f.{name}) AS {name}" for name in _ANY] + [f"bool_and(f.{name}) AS {name}" for name in _ALL]
        tests = [f"{name} = fact_rows.{name} OR x.{name}" for name in _ANY]
        tests += [f"{name} = fact_rows.{name} AND x.{name}" for name in _ALL]
        self._store.script(
            f"CREATE OR REPLACE TEMP TABLE fact_filled AS SELECT j.sid AS sid, {', '.join([*first, *tested])}"
            " FROM fact_log_joined AS j JOIN fact_log_rows AS f ON f.sid = j.record AND f.rule = j.rule GROUP BY j.sid;"
            f"UPDATE fact_rows SET {', '.join([*taken, *tests])} FROM fact_filled AS x WHERE fact_rows.sid = x.sid;"
            "UPDATE fact_rows SET error = CASE WHEN failed OR (kind = 'tool' AND tool_failed)"
            " THEN coalesce(error_message, error_type, 'error') END WHERE sid IN (SELECT sid FROM fact_filled)"
        )

    def _change(self, changed: Sequence[JoinedRow]) -> None:
        """Write the names, models and attempts that were found."""
        if not changed:
            return
        rows = [(row.sid, *(row.columns.get(name) for name in _FOUND if name != "sid")) for row in changed]
        self._store.load("fact_found", columns(_FOUND, rows))
        self._store.script(
            "UPDATE fact_rows SET agent_name = coalesce(fact_rows.agent_name, x.agent_name),"
            " request_model = coalesce(fact_rows.request_model, x.request_model),"
            " attempts = coalesce(x.attempts, fact_rows.attempts) FROM fact_found AS x WHERE fact_rows.sid = x.sid"
        )


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _first_recorded(name: str, before: bool) -> str:
    """Return SQL for the first record's value of a column; messages that are a record each are put together."""
    side = "j.before" if before else "NOT j.before"
    if name not in _PAYLOADS:
        return f"arg_min(f.{name}, j.nth) FILTER ({side} AND f.{name} IS NOT NULL)"
    one = f"arg_min(f.{name}, j.nth) FILTER ({side} AND NOT j.gather AND f.{name} IS NOT NULL)"
    if name.endswith("_format"):
        return f"coalesce({one}, max(f.{name}) FILTER ({side} AND j.gather))"
    return f"coalesce({one}, '[' || string_agg(f.{name}, ',' ORDER BY j.nth) FILTER ({side} AND j.gather) || ']')"
