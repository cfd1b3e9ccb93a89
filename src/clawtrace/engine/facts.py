"""Raw rows into facts, for whole batches of runs at once.

Facts of a run are computed when it is first asked about and again, whole, when anything of it arrived since:
the order of arrival can never matter. Row facts are SQL over all spans of a batch (the files beside this module);
run facts are computed in Python, run by run, and published as columns (ADR 006).
"""

from __future__ import annotations

import gc
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from importlib import resources
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clawtrace.dialects import Dialect
from clawtrace.dialects._parsed import read_yaml
from clawtrace.dialects.compile import ROW_FACT_COLUMNS, Compiler, Seen
from clawtrace.dialects.messages import Part, parse_messages
from clawtrace.dialects.rules import COLUMN_TYPES
from clawtrace.engine.cached_input import with_cached_input
from clawtrace.engine.completeness import Completeness
from clawtrace.engine.layers import with_layers
from clawtrace.engine.logs import complete_rows
from clawtrace.engine.run_facts import PLACED, RunFacts, columns, in_order
from clawtrace.engine.run_spans import RunSpans
from clawtrace.engine.span import SELECT_SPANS, Span
from clawtrace.model.model_names import bare_model_name
from clawtrace.store.duckdb import DuckStore

if TYPE_CHECKING:
    from clawtrace.dialects.rules import LayerRule, ShellRule
    from clawtrace.engine.llm_calls import LlmCall
    from clawtrace.pricing import Pricing

__all__ = ["Facts"]

_BATCH_SPANS = 50_000
"""Spans whose facts are computed together: bounds memory, large enough for set-based work."""

_DAY_NS = 86_400_000_000_000

_VERSION = "3"
"""Raised when the same raw rows give other facts for a reason outside of the dialect files."""

_STATE = """
SELECT n.run_no, n.run_id, coalesce(t.raw_rows, 0), coalesce(t.last_arrival_ns, 0), coalesce(r.written_ns, 0)
FROM wanted_runs AS w
JOIN run_numbers AS n ON n.run_id = w.run_id
LEFT JOIN (
    SELECT run_no, count(*) AS raw_rows, max(arrival_ns) AS last_arrival_ns
    FROM (SELECT run_no, arrival_ns FROM otel_traces UNION ALL SELECT run_no, arrival_ns FROM otel_logs)
    WHERE run_no IN (SELECT run_no FROM run_numbers JOIN wanted_runs USING (run_id))
    GROUP BY run_no
) AS t ON t.run_no = n.run_no
LEFT JOIN run_records AS r ON r.run_id = n.run_id
LEFT JOIN fact_state AS s ON s.run_id = n.run_id
WHERE s.run_id IS NULL
   OR s.raw_rows <> coalesce(t.raw_rows, 0)
   OR s.last_arrival_ns <> coalesce(t.last_arrival_ns, 0)
   OR s.record_ns <> coalesce(r.written_ns, 0)
   OR s.normaliser <> $normaliser
ORDER BY n.run_no
"""


def _sql(name: str) -> str:
    return (resources.files("clawtrace.engine") / "sql" / f"{name}.sql").read_text(encoding="utf-8")


@contextmanager
def _no_collector() -> Iterator[None]:
    """Keep the garbage collector away from millions of small, short-lived tuples (it costs up to 40 %)."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


class Facts:
    """Keeps the facts of a store's runs current.

    Args:
        store: where raw rows are and facts go.
        dialects: highest priority first.
        pricing: prices of the project; None leaves the genai-prices tables.
        parent_not_exported: the project's own globs of span names whose parent is never exported.
    """

    def __init__(
        self,
        store: DuckStore,
        dialects: Sequence[Dialect],
        pricing: Pricing | None,
        parent_not_exported: Sequence[str] = (),
    ) -> None:
        self._store = store
        self._dialects = {dialect.name: dialect for dialect in dialects}
        self._pricing = pricing
        self._parent_not_exported = tuple(parent_not_exported)
        self._prepared = False

    @cached_property
    def normaliser(self) -> str:
        """What the facts depend on besides the raw rows: code version, dialects, prices, the project's exemptions."""
        digest = hashlib.sha256(_VERSION.encode())
        for name in sorted(self._dialects):
            digest.update(self._dialects[name].digest.encode())
        digest.update(repr(self._pricing).encode())
        digest.update(repr(self._parent_not_exported).encode())
        return digest.hexdigest()[:16]

    def ensure(self, run_ids: Sequence[str]) -> None:
        """Compute the facts of those `run_ids` whose raw rows or record changed since they were computed."""
        with self._store.lock, _no_collector():
            self._prepare()
            self._forget(self._store.take_retired())
            self._store.load("wanted_runs", {"run_id": ("text", list(run_ids))})
            stale = self._store.script(_STATE, {"normaliser": self.normaliser})
            batch: list[tuple[Any, ...]] = []
            size = 0
            for row in stale:
                if batch and size + row[2] > _BATCH_SPANS:
                    self._compute(batch)
                    batch, size = [], 0
                batch.append(row)
                size += row[2]
            if batch:
                self._compute(batch)

    def _prepare(self) -> None:
        if self._prepared:
            return
        names = read_yaml((Path(__file__).parents[1] / "dialects" / "provider_names.yaml").read_bytes())
        self._store.load("provider_names", {"alias": ("text", list(names)), "name": ("text", list(names.values()))})
        self._prepared = True

    def _forget(self, run_ids: Sequence[str]) -> None:
        """Take back the facts of runs that are no more."""
        if run_ids:
            self._store.load("fact_runs", {"run_id": ("text", list(run_ids))})
            self._store.script(f"BEGIN;\n{_sql('unpublish')}\nCOMMIT")

    def _compute(self, batch: Sequence[tuple[Any, ...]]) -> None:
        store = self._store
        run_ids = {row[0]: row[1] for row in batch}
        store.load("fact_runs", {"run_no": ("bigint", list(run_ids)), "run_id": ("text", list(run_ids.values()))})
        seen = self._seen()
        store.script(_sql("keys").format(detection=Compiler(seen=seen).detection(self._dialects.values())))
        parents = complete_rows(store, self._dialects, self._row_facts(seen), _sql)
        facts = [RunFacts(run_ids[run.run_no], run) for run in self._runs(parents)]
        self._price([call for run in facts for call in run.models])
        for run in facts:
            run.sum_up(self._records)
        store.script("BEGIN")
        try:
            if store.script("SELECT 1 FROM fact_state WHERE run_id IN (SELECT run_id FROM fact_runs) LIMIT 1"):
                store.script(_sql("unpublish"))
            self._publish(facts)
            self._publish_runs(batch, {run.run_id: run for run in facts})
            store.script("COMMIT")
        except BaseException:
            store.script("ROLLBACK")
            raise

    def _seen(self) -> Seen:
        keys: set[str] = set()
        events: set[str] = set()
        resource_keys: set[str] = set()
        scopes: set[str] = set()
        services: set[str] = set()
        for of_span, of_events, of_resource, scope, service in self._store.script(_sql("seen")):
            keys.update(of_span)
            events.update(of_events)
            resource_keys.update(of_resource)
            scopes.add(scope)
            services.add(service)
        return Seen(*map(frozenset, (keys, events, resource_keys, scopes, services)))

    def _row_facts(self, seen: Seen) -> list[str]:
        """Make ``fact_rows``; return the dialects of the batch."""
        at_hand = [name for (name,) in self._store.script("SELECT DISTINCT dialect FROM fact_keys ORDER BY dialect")]
        parts = [Compiler(seen=seen).row_facts(self._dialects[name], "fact_raw") for name in at_hand]
        body = "\nUNION ALL\n".join(parts) or _no_row_facts()
        self._store.script(_sql("row_facts").replace("{body}", body))
        return at_hand

    def _runs(self, parents: Mapping[int, int]) -> Iterator[RunSpans]:
        """Return the runs of the batch that have spans, with their messages: every distinct payload is read once.

        Args:
            parents: of spans whose parent is known from elsewhere (engine/logs.py), by `sid`.
        """
        read: dict[tuple[str, str, str], Sequence[Part]] = {}
        spans = map(Span._make, self._store.script(SELECT_SPANS))
        for _, of_run in groupby(spans, key=lambda span: span.run_no):
            run: Sequence[Span] = list(of_run)
            if parents:
                run = [span._replace(parent_sid=parents.get(span.sid, span.parent_sid)) for span in run]
            run = with_cached_input(with_layers(run, self._layers))
            messages: dict[tuple[int, str], Sequence[Part]] = {}
            for span in run:
                for direction, form, payload in (
                    ("input", span.input_format, span.input_payload),
                    ("output", span.output_format, span.output_payload),
                ):
                    if form is not None and payload is not None:
                        key = (form, payload, direction)
                        if key not in read:
                            read[key] = parse_messages(form, payload, direction)
                        messages[span.sid, direction] = read[key]
            yield RunSpans.of(run, messages)

    def _price(self, calls: Sequence[LlmCall]) -> None:
        """Set the model name, the cost and its source of each call; equal calls of one day are priced once."""
        bare: dict[str, str] = {}
        asked: dict[tuple[Any, ...], list[LlmCall]] = {}
        for call in calls:
            model = call.named_model
            if model is not None:
                if model not in bare:
                    bare[model] = bare_model_name(model)
                call.model = bare[model]
            if call.recorded_cost_usd is not None:
                call.cost_usd, call.cost_source = call.recorded_cost_usd, "recorded"
            elif model is not None and call.has_usage:
                key = (
                    call.provider, model, call.input_tokens, call.output_tokens, call.cache_read_tokens,
                    call.cache_write_tokens, call.reasoning_tokens, call.start_ns // _DAY_NS * _DAY_NS,
                )  # fmt: skip
                asked.setdefault(key, []).append(call)
        if not asked:
            return
        from clawtrace.pricing import ModelCall, Pricing

        pricing = self._pricing or Pricing()
        for price, of_price in zip(pricing.price_calls(map(ModelCall._make, asked)), asked.values(), strict=True):
            for call in of_price:
                call.cost_usd, call.cost_source = price.usd, price.source

    def _layers(self, dialect: str) -> Sequence[LayerRule]:
        return self._dialects[dialect].file.layers

    def _shells(self, dialect: str) -> Sequence[ShellRule]:
        return self._dialects[dialect].file.shell

    def _records(self, span: Span, fact: str) -> bool | str:
        dialect = self._dialects[span.dialect]
        return dialect.records(fact) if span.source == "otlp" or fact not in dialect.file.unlogged else False

    def _publish(self, facts: Sequence[RunFacts]) -> None:
        """Write the rows of every relation but `runs`, in the transaction that took back older ones."""
        store = self._store
        placed = list(zip(*(row for run in facts for row in run.placed()), strict=True)) or [()] * len(PLACED)
        store.load("fact_placed", {name: (kind, of) for (name, kind), of in zip(PLACED.items(), placed, strict=True)})
        store.script(_sql("publish"))
        rows = {
            "llm_calls": [row for run in facts for row in run.llm_call_rows()],
            "tool_calls": [row for run in facts for row in run.tool_call_rows()],
            "commands": [row for run in facts for row in run.command_rows(self._shells)],
            "agents": [row for run in facts for row in run.agent_rows()],
            "messages": [row for run in facts for row in run.message_rows()],
            "errors": [row for run in facts for row in run.error_rows()],
            "run_totals": [in_order("run_totals", {"run_id": run.run_id, **run.totals}) for run in facts],
            "run_tools": [row for run in facts for row in run.tool_rows()],
        }
        for relation, of_relation in rows.items():
            store.insert(relation, columns(relation, of_relation))

    def _publish_runs(self, batch: Sequence[tuple[Any, ...]], facts: Mapping[str, RunFacts]) -> None:
        """Write the relation `runs`, and for which state of the runs the facts are."""
        store = self._store
        completeness = Completeness(store, self._dialects, self._parent_not_exported)
        rows = []
        diagnostics = []
        for _, run_id, *_ in batch:
            run = facts.get(run_id)
            rows.append(in_order("runs", completeness.row(run_id, run)))
            diagnostics.append(json.dumps(completeness.diagnostics(run_id, run)))
        store.insert("runs", columns("runs", rows))
        store.insert(
            "fact_state",
            {
                "run_id": ("text", [row[1] for row in batch]),
                "raw_rows": ("bigint", [row[2] for row in batch]),
                "last_arrival_ns": ("bigint", [row[3] for row in batch]),
                "record_ns": ("bigint", [row[4] for row in batch]),
                "normaliser": ("text", [self.normaliser] * len(batch)),
                "diagnostics": ("text", diagnostics),
            },
        )


def _no_row_facts() -> str:
    """Return a SELECT without rows that has the columns of row facts: a batch of runs without any span."""
    types = {"integer": "BIGINT", "decimal": "DOUBLE"}
    flags = {
        "failed", "tool_failed", "tool_blocked", "tool_unknown", "excludes_cache", "excludes_reasoning", "sdk", "order_in_run",
        "agents_side_by_side", "rollup_cumulative",
    }  # fmt: skip
    columns = ", ".join(
        f"NULL::{'BOOLEAN' if name in flags else types.get(COLUMN_TYPES.get(name, 'text'), 'VARCHAR')} AS {name}"
        for name in ROW_FACT_COLUMNS
    )
    return f"SELECT NULL::BIGINT AS sid, {columns} WHERE FALSE"
