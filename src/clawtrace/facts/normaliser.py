"""How raw rows become facts: row facts are SQL over all spans of a batch, run facts Python, run by run (ADR 006)."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property, lru_cache
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from clawtrace.dialects.columns import COLUMN_TYPES
from clawtrace.dialects.compile import ROW_FACT_COLUMNS, Compiler
from clawtrace.dialects.expressions import Seen
from clawtrace.dialects.load import Dialect
from clawtrace.dialects.message_parts import Part
from clawtrace.dialects.rules import SPAN_TESTS, fits
from clawtrace.facts.calls.evidence.dispatchers import with_dispatchers
from clawtrace.facts.calls.evidence.layers import with_layers
from clawtrace.facts.calls.run_spans import RunSpans
from clawtrace.facts.runs.run_facts import RunFacts
from clawtrace.facts.spans.span import Span, with_cached_input
from clawtrace.facts.spans.span_rows import SharedParts, read_spans, take_payloads
from clawtrace.model.masks import MASK
from clawtrace.model.model_names import bare_model_name
from clawtrace.store.api import FactSide
from clawtrace.support.yaml_reading import read_yaml

if TYPE_CHECKING:
    from clawtrace.dialects.rules import ShellRule
    from clawtrace.facts.calls.llm_calls import LlmCall
    from clawtrace.facts.logs.records import Completed
    from clawtrace.pricing import Pricing

__all__ = ["Normaliser", "Rows", "read_sql"]

_DAY_NS = 86_400_000_000_000

_KNOWN_TOOLS = 1_000
"""Tools of which it is kept whether they are shells: more than a batch has."""

_TWICE = """
SELECT 1 FROM otel_traces WHERE run_no IN (SELECT run_no FROM fact_runs)
GROUP BY run_no, "TraceId", "SpanId" HAVING count(*) > 1 LIMIT 1
"""
"""Whether any span of the batch arrived twice: to find that out takes a seventh of the time of ruling it out."""

_REUSED = """
SELECT run_no, list(DISTINCT "SpanId" ORDER BY "SpanId") FROM (
    SELECT run_no, "SpanId" FROM otel_traces WHERE run_no IN (SELECT run_no FROM fact_runs)
    GROUP BY run_no, "TraceId", "SpanId" HAVING count(DISTINCT start_ns) > 1
) GROUP BY run_no
"""
"""By run, the ids that spans of different starts have: `_ONCE` keeps one of each."""

_ONCE = """
QUALIFY row_number() OVER (
    PARTITION BY run_no, trace_id, span_id ORDER BY CASE WHEN end_ns IS NULL THEN 1 ELSE 0 END, start_ns, size DESC, end_ns DESC, arrival_ns, row_id
) = 1
"""

_ANY_LOGS = "SELECT 1 FROM otel_logs WHERE run_no IN (SELECT run_no FROM fact_runs) LIMIT 1"

_SCOPES = "SELECT dialect, scope, count(*) FROM fact_keys GROUP BY dialect, scope ORDER BY dialect"

_VERSION = "21"
"""Raised when the same raw rows give other facts for a reason outside of the dialect files."""


_Shape = tuple[Sequence[str], Sequence[str], Sequence[str], str, str]
"""What a span carries: the keys of its attributes, of its events the names, the keys of its resource, its scope and its service."""


@cache
def read_sql(name: str) -> str:
    """Return a file of this room's SQL."""
    return (Path(__file__).parent / "sql" / f"{name}.sql").read_text(encoding="utf-8")


class Rows(NamedTuple):
    """The row facts of a batch, which the temporary ``fact_*`` relations of a side hold."""

    side: FactSide
    run_ids: Mapping[int, str]
    """By run number."""
    completed: Completed | None
    """None where there are neither log records nor a dialect that names main agents."""
    spans: int
    """How many there are, those that were made of log records left out."""
    reused_ids: Mapping[int, Sequence[str]]
    """By run number, the ids that several spans have; the facts are those of the first of each."""


class Normaliser:
    """Computes the facts of batches of runs; several threads may use it at once, each with its own question side.

    Args:
        dialects: highest priority first.
        pricing: prices of the project; None leaves the genai-prices tables.
        parent_not_exported: the project's own globs of span names whose parent is never exported.
    """

    def __init__(
        self, dialects: Sequence[Dialect], pricing: Pricing | None, parent_not_exported: Sequence[str]
    ) -> None:
        self.dialects = {dialect.name: dialect for dialect in dialects}
        """By name, highest priority first."""
        self.parent_not_exported = tuple(parent_not_exported)
        self.shells = lru_cache(_KNOWN_TOOLS)(self._rules_of_shell)
        """Returns the rules for a tool that is a shell, by the names of the dialect and the tool; none for others."""
        self._pricing = pricing
        self._providers = read_yaml((Path(__file__).parents[1] / "dialects" / "provider_names.yaml").read_bytes())

    @cached_property
    def digest(self) -> str:
        """What the facts depend on, in addition to the raw rows: code version, dialects, prices, the project's exemptions."""
        digest = hashlib.sha256(_VERSION.encode())
        for name in sorted(self.dialects):
            digest.update(self.dialects[name].digest.encode())
        digest.update(repr(self._pricing).encode())
        digest.update(repr(self.parent_not_exported).encode())
        return digest.hexdigest()[:16]

    def rows(self, side: FactSide, run_ids: Mapping[int, str]) -> Rows:
        """Make the row facts of the runs: DuckDB's part, for which other threads need not wait.

        Args:
            side: holds the raw rows, and from here on the batch in temporary ``fact_*`` relations.
            run_ids: by run number.
        """
        names = self._providers
        side.load("provider_names", {"alias": ("text", list(names)), "name": ("text", list(names.values()))})
        side.load("fact_runs", {"run_no": ("bigint", list(run_ids)), "run_id": ("text", list(run_ids.values()))})
        shapes = side.script(read_sql("seen"))
        detection = Compiler(seen=_seen(shapes)).detection(self.dialects.values())
        version = Compiler().version(self.dialects.values())
        twice = bool(side.script(_TWICE))
        once, reused = (_ONCE, dict(side.script(_REUSED))) if twice else ("", {})
        side.script(
            read_sql("keys").format(
                detection=detection,
                version=version,
                once=once,
                mask=MASK.replace("'", "''"),
                prefix=self.dialects["opentelemetry"].file.name_prefix.replace("'", "''"),
            )
        )
        scopes: dict[str, set[str]] = defaultdict(set)
        spans = 0
        for dialect, scope, count in side.script(_SCOPES):
            scopes[dialect].add(scope)
            spans += count
        self._row_facts(side, shapes, scopes)
        return Rows(side, run_ids, self._completed(side, scopes), spans, reused)

    def _completed(self, side: FactSide, scopes: Collection[str]) -> Completed | None:
        """Complete the rows of a batch with spans of these dialects by log records, and by what names their main agents."""
        any_logs = bool(side.script(_ANY_LOGS))
        if not any_logs and not any(self.dialects[name].file.main_agent for name in scopes):
            return None
        from clawtrace.facts.logs.records import complete_rows

        return complete_rows(side, self.dialects, list(scopes), read_sql, any_logs=any_logs)

    def facts(self, rows: Rows) -> list[RunFacts]:
        """Return the facts of those runs of the batch that have spans, not summed up: Python's part."""
        lost = rows.completed.lost if rows.completed else {}
        facts = [
            RunFacts(rows.run_ids[run.run_no], run, lost.get(run.run_no), rows.reused_ids.get(run.run_no, ()))
            for run in self._runs(rows)
        ]
        self._price([call for run in facts for call in run.models])
        return facts

    def _row_facts(self, side: FactSide, shapes: Sequence[_Shape], scopes: Mapping[str, Collection[str]]) -> None:
        """Make ``fact_rows`` of a batch that has spans of these scopes, by dialect."""
        parts = [
            Compiler(seen=_seen(shape for shape in shapes if shape[3] in scopes[name])).row_facts(
                self.dialects[name], "fact_raw"
            )
            for name in scopes
        ]
        text = read_sql("row_facts")
        for body in parts or [_no_row_facts()]:  # one by one: a union of many is planned for half as long again
            side.script(text.replace("{body}", body))
            text = text.replace("CREATE OR REPLACE TEMP TABLE fact_rows AS", "INSERT INTO fact_rows")

    def _runs(self, rows: Rows) -> Iterator[RunSpans]:
        """Return the runs of the batch that have spans, with their messages: every distinct payload is read once."""
        read: dict[tuple[str, str, bytes], Sequence[Part]] = {}
        shared = SharedParts()
        parents = rows.completed.parents if rows.completed else {}
        spans = read_spans(rows.side, rows.spans)
        payloads = take_payloads(rows.side)
        payload = next(payloads, None)
        for _, of_run in groupby(spans, key=attrgetter("run_no")):
            run: Sequence[Span] = list(of_run)
            if parents:
                run = [span._replace(parent_sid=parents.get(span.sid, span.parent_sid)) for span in run]
            layered, layers = with_layers(run, self.dialects)
            called, dispatchers = with_dispatchers(layered, self.dialects)
            run = with_cached_input(called)
            messages: dict[tuple[int, str], Sequence[Part]] = {}
            while payload is not None and payload.sid <= run[-1].sid:
                key = (payload.form, payload.direction, _digest(payload.text))
                if key not in read:
                    from clawtrace.dialects.messages import parse_messages

                    read[key] = shared.of(parse_messages(payload.form, payload.text, payload.direction))
                messages[payload.sid, payload.direction] = read[key]
                payload = next(payloads, None)
            yield RunSpans.of(run, messages, {**layers, **dispatchers}, self.dialects)

    def _price(self, calls: Sequence[LlmCall]) -> None:
        """Set what follows from each call's model: its name, the cost and its source, and that it writes to no cache.

        Equal calls of one day are priced once.
        """
        if not calls:
            return
        from clawtrace.pricing import ModelCall, Pricing

        pricing = self._pricing or Pricing()
        writes_no_cache, bare = cache(pricing.writes_no_cache), cache(bare_model_name)
        asked: dict[tuple[Any, ...], list[LlmCall]] = {}
        for call in calls:
            model = call.named_model
            if model is not None:
                call.model = bare(model)
            if call.recorded_cost_usd == 0 and call.input_tokens is call.output_tokens is None:
                call.recorded_cost_usd = None  # computed from no usage
            if call.recorded_cost_usd is not None:
                call.cost_low_usd = call.cost_usd = call.recorded_cost_usd
                call.cost_source = "recorded"
            if model is not None and call.has_usage:
                if call.cache_write_tokens is None and writes_no_cache(call.provider, model):
                    call.writes_no_cache, call.cache_write_tokens = True, 0
                key = (
                    call.provider, model, call.input_tokens, call.output_tokens, call.cache_read_tokens,
                    call.cache_write_tokens, call.reasoning_tokens, call.start_ns // _DAY_NS * _DAY_NS,
                )  # fmt: skip
                asked.setdefault(key, []).append(call)
        for key, of_price in asked.items():
            price = pricing.price_call(*key)
            low, high = (None, None) if price.usd is None else pricing.bounds(ModelCall._make(key), price.usd)
            for call in of_price:
                if call.priced_apart and price.source != "model_pricing":
                    continue
                call.estimated_cost_usd = price.usd
                if call.recorded_cost_usd is None:
                    call.cost_usd, call.cost_source, call.cost_low_usd = high, price.source, low

    def _rules_of_shell(self, dialect: str, tool: str) -> Sequence[ShellRule]:
        rules = self.dialects[dialect].file.shell
        return [rule for rule in rules if any(fits(tool, glob) for glob in rule.tools)]


def _seen(shapes: Iterable[_Shape]) -> Seen:
    """Return what spans of these shapes carry."""
    keys: set[str] = set()
    events: set[str] = set()
    resource_keys: set[str] = set()
    scopes: set[str] = set()
    services: set[str] = set()
    for of_span, of_events, of_resource, scope, service in shapes:
        keys.update(of_span)
        events.update(of_events)
        resource_keys.update(of_resource)
        scopes.add(scope)
        services.add(service)
    return Seen(*map(frozenset, (keys, events, resource_keys, scopes, services)))


def _digest(payload: str) -> bytes:
    return hashlib.blake2b(payload.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _no_row_facts() -> str:
    """Return a SELECT without rows that has the columns of row facts: a batch of runs without any span."""
    types = {"integer": "BIGINT", "decimal": "DOUBLE"}
    tests = {"failed", *SPAN_TESTS}
    columns = ", ".join(
        f"NULL::{'BOOLEAN' if name in tests else types.get(COLUMN_TYPES.get(name, 'text'), 'VARCHAR')} AS {name}"
        for name in ROW_FACT_COLUMNS
    )
    return f"SELECT NULL::BIGINT AS sid, {columns} WHERE FALSE"
