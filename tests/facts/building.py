"""Spans for tests, written as one would say them; and the facts that come of them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from clawtrace.dialects.load import load_dialects
from clawtrace.errors import StoreError
from clawtrace.facts.facts import Facts
from clawtrace.model.query import Query
from clawtrace.model.raw import LogBatch, MapColumn, SpanBatch
from clawtrace.model.relations import COUNTED
from clawtrace.model.run import ClosedBy, RunRecord
from clawtrace.pricing import Pricing
from clawtrace.store.duckdb import DuckStore

TRACE = f"{1:032x}"


def hex_id(name: str) -> str:
    """The span id of a span called `name` in a test."""
    return name.encode().hex().rjust(16, "0")[-16:]


@dataclass
class S:
    """One span; ids are words, times milliseconds."""

    id: str
    parent: str = ""
    at: int = 0
    to: int | None = None
    """None: 1 ms after `at`; 0: never ended."""
    name: str = "span"
    attrs: dict[str, Any] = field(default_factory=dict)
    events: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    error: str | None = None
    scope: str = "test"
    version: str = ""
    trace: str = TRACE
    flags: int = 0x100
    kind: str = "Internal"
    state: str = ""
    dropped: int = 0
    dropped_events: int = 0
    links: list[tuple[str, str]] = field(default_factory=list)
    """Traces and the ids of spans in them."""
    service: str = "test"
    language: str = "python"


SDK = "opentelemetry.instrumentation.openai_v2"
"""Scope of an instrumentation that writes no spans for executions: what a later message answers was executed."""


def chat(id: str, parent: str = "", *, at: int = 0, **attrs: Any) -> S:
    """An answered model call of the newest GenAI generation; keyword `x_y` is attribute gen_ai.x.y."""
    base = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "gpt-4o",
        "gen_ai.response.model": "gpt-4o-2024-08-06",
        "gen_ai.usage.input_tokens": 100,
        "gen_ai.usage.output_tokens": 10,
        "gen_ai.response.finish_reasons": ["stop"],
    }
    return S(id, parent, at, at + 5, f"chat {id}", {k: v for k, v in (base | attrs).items() if v is not None})


def tool(id: str, parent: str = "", *, at: int = 0, tool: str = "get_weather", **attrs: Any) -> S:
    base = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": tool, "gen_ai.tool.call.id": f"call_{id}"}
    return S(id, parent, at, at + 2, f"execute_tool {tool}", {k: v for k, v in (base | attrs).items() if v is not None})


def agent(id: str, parent: str = "", *, at: int = 0, to: int = 100, agent: str | None = "assistant", **attrs: Any) -> S:
    base = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": agent}
    return S(id, parent, at, to, "invoke_agent", {k: v for k, v in (base | attrs).items() if v is not None})


def asks(*calls: tuple[str, str, dict[str, Any]]) -> str:
    """Output messages that ask for (call id, tool, arguments)."""
    parts = [{"type": "tool_call", "id": i, "name": n, "arguments": a} for i, n, a in calls]
    return json.dumps([{"role": "assistant", "parts": parts}])


def says(text: str) -> str:
    return json.dumps([{"role": "assistant", "parts": [{"type": "text", "content": text}]}])


def answered(call_id: str, result: str) -> str:
    """Input messages that carry the result of a call."""
    return json.dumps([{"role": "tool", "parts": [{"type": "tool_call_response", "id": call_id, "response": result}]}])


def _put(column: MapColumn, attrs: dict[str, Any]) -> str:
    letters = ""
    for key, value in attrs.items():
        column.keys.append(key)
        if isinstance(value, str):
            column.values.append(value)
            letters += "s"
        else:
            column.values.append(json.dumps(value))
            letters += (
                "b"
                if isinstance(value, bool)
                else "i"
                if isinstance(value, int)
                else "d"
                if isinstance(value, float)
                else "a"
            )
    column.offsets.append(len(column.keys))
    return letters


def batch_of(spans: Sequence[S], run_no: int, arrival: int = 1) -> SpanBatch:
    """The raw rows of `spans`."""
    b = SpanBatch()
    for n, s in enumerate(spans):
        b.trace_id.append(s.trace)
        b.span_id.append(hex_id(s.id))
        b.parent_span_id.append(hex_id(s.parent) if s.parent else "")
        b.trace_state.append(s.state)
        b.name.append(s.name)
        b.kind.append(s.kind)
        b.service.append(s.service)
        b.resource_types.append(_put(b.resource, {"service.name": s.service, "telemetry.sdk.language": s.language}))
        _put(b.scope_attributes, {})
        b.scope.append(s.scope)
        b.scope_version.append(s.version)
        b.attribute_types.append(_put(b.attributes, s.attrs))
        b.start_ns.append(s.at * 1_000_000)
        b.end_ns.append((s.at + 1 if s.to is None else s.to) * 1_000_000)
        b.status_code.append("Error" if s.error is not None else "Unset")
        b.status_message.append(s.error or "")
        for name, attrs in s.events:
            b.event_times.values.append(0)  # type: ignore[arg-type]
            b.event_names.values.append(name)  # type: ignore[arg-type]
            _put(b.event_attributes.maps, attrs)
        for column in (b.event_times, b.event_names, b.event_attributes):
            column.offsets.append(len(b.event_names.values))
        for trace, id in s.links:
            b.link_trace_ids.values.append(trace)  # type: ignore[arg-type]
            b.link_span_ids.values.append(hex_id(id))  # type: ignore[arg-type]
            b.link_states.values.append("")  # type: ignore[arg-type]
            _put(b.link_attributes.maps, {})
        for links in (b.link_trace_ids, b.link_span_ids, b.link_states, b.link_attributes):
            links.offsets.append(len(b.link_span_ids.values))
        b.flags.append(s.flags)
        b.dropped_attributes.append(s.dropped)
        b.dropped_events.append(s.dropped_events)
        b.dropped_links.append(0)
        b.arrival_ns.append(arrival + n)
        b.request_no.append(1)
        b.protocol.append("file")
        b.run_no.append(run_no)
        b.run_rule.append("given")
    return b


_NAMED = re.compile(r"\b(FROM|JOIN) ([a-z_]+)\b(?: AS (\w+))?")

_FREE: list[DuckStore] = []
"""Empty stores: to make one takes a quarter of the time of a test."""
_LENT: list[DuckStore] = []


def _lend() -> DuckStore:
    """Return an empty store that no other laboratory of the test has."""
    _LENT.append(_FREE.pop() if _FREE else DuckStore())
    return _LENT[-1]


def take_back() -> None:
    """Empty the stores of the test that has ended; a store that cannot be emptied, or is not empty then, is not lent again."""
    while _LENT:
        store = _LENT.pop()
        with suppress(StoreError):
            store.take_retired()
            with store.transaction() as db:
                tables = [name for (name,) in db.execute(_TABLES).fetchall()]
                db.execute(";".join(f'DELETE FROM "{name}"' for name in tables))
            store.forget_numbers(store.run_ids())
            _FREE.append(store)


_TABLES = """
SELECT table_name FROM duckdb_tables()
WHERE NOT temporary AND estimated_size > 0 AND table_name NOT IN ('store_meta', 'journal_state')
"""
"""Those that have, or had, rows."""


@contextmanager
def shared_lab(dialects: Sequence[Path] = ()) -> Iterator[Lab]:
    """Yield a laboratory that is several tests'."""
    lab = Lab(dialects=dialects)
    _LENT.remove(lab.store)
    yield lab
    _LENT.append(lab.store)
    take_back()


class Lab:
    """A store in memory, empty at first, and the facts of the runs put into it; both are a test's until it ends."""

    def __init__(
        self, pricing: Pricing | None = None, globs: Sequence[str] = (), dialects: Sequence[Path] = ()
    ) -> None:
        self.store = _lend()
        self.facts = Facts(self.store, load_dialects(dialects), pricing or Pricing(), globs)

    def put_sdk(self, *spans: S) -> Lab:
        """Put spans as the instrumentation of a model's SDK writes them."""
        return self.put(*(replace(span, scope=SDK) if span.scope == "test" else span for span in spans))

    def put(self, *spans: S, run: str = "r", record: RunRecord | None = None, arrival: int = 1) -> Lab:
        record = record or RunRecord(run, run, closed_by=ClosedBy.RECORDING)
        self.store.put_record(record)
        self.store.commit(batch_of(spans, self.store.run_no(run), arrival), LogBatch(), [], [])
        return self

    def put_each(self, cases: Mapping[str, Sequence[S]]) -> Lab:
        """Put each case as the run of its name; their facts are computed together, which takes hardly longer than one."""
        for run, spans in cases.items():
            self.put(*spans, run=run)
        self.facts.ensure(list(cases))
        return self

    def rows(self, sql: str, run: str = "r") -> list[tuple[Any, ...]]:
        """Answer `sql`, in which :run is the run, from current facts; where it names none, of one of several its rows alone."""
        self.facts.ensure([run])
        if run != "r" and ":run" not in sql:
            sql = _NAMED.sub(
                lambda named: f"{named[1]} (SELECT * FROM {named[2]} WHERE run_id = :run) AS {named[3] or named[2]}",
                sql,
            )
        return self.store.ask(Query(sql, {"run": run} if ":run" in sql else {})).rows

    def totals(self, *columns: str, run: str = "r") -> tuple[Any, ...]:
        """Return columns of `run_totals`; of a count or sum its value, None where that is not known exactly."""
        asked = (
            f"CASE WHEN {column}_low = {column}_high THEN {column}_low END" if column in COUNTED else column
            for column in columns
        )
        return self.rows(f"SELECT {', '.join(asked)} FROM run_totals WHERE run_id = :run", run)[0]

    def reasons(self, run: str = "r") -> list[str]:
        """The codes of the reasons against completeness."""
        (text,) = self.rows("SELECT incomplete_because FROM runs WHERE run_id = :run", run)[0]
        return [reason["code"] for reason in json.loads(text)]
