"""Raw rows into facts, for whole batches of runs at once.

Facts of a run are computed when it is first asked about and again, whole, when anything of it arrived since:
the order of arrival can never matter. The steps are SQL files beside this module, in the order of `_compute`;
Python does the three things that SQL cannot do portably or well: the walk (tree and union-find), reading
messages, and prices.
"""

from __future__ import annotations

import gc
import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from clawtrace.dialects import Dialect
from clawtrace.dialects.compile import ROW_FACT_COLUMNS, Compiler, Seen
from clawtrace.dialects.messages import Part, parse_messages
from clawtrace.dialects.schema import COLUMN_TYPES
from clawtrace.engine.commands import load_commands
from clawtrace.engine.completeness import Completeness
from clawtrace.engine.twins import join_twins
from clawtrace.engine.walk import SpanRow, walk
from clawtrace.model.model_names import bare_model_name
from clawtrace.store.duckdb import DuckStore

if TYPE_CHECKING:
    from clawtrace.pricing import Price, Pricing

__all__ = ["Facts"]

_BATCH_SPANS = 200_000
"""Spans whose facts are computed together: bounds memory, large enough for set-based work."""

_DAY_NS = 86_400_000_000_000

_VERSION = "1"
"""Raised when the same raw rows give other facts for a reason outside of the dialect files."""

_STATE = """
SELECT n.run_no, n.run_id, coalesce(t.raw_rows, 0), coalesce(t.last_arrival_ns, 0), coalesce(r.written_ns, 0)
FROM wanted_runs AS w
JOIN run_numbers AS n ON n.run_id = w.run_id
LEFT JOIN (
    SELECT run_no, count(*) AS raw_rows, max(arrival_ns) AS last_arrival_ns
    FROM otel_traces
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
        self._completeness = Completeness(store, self._dialects, parent_not_exported)
        self._prepared = False

    @cached_property
    def normaliser(self) -> str:
        """What the facts depend on besides the raw rows: code version, dialects, prices, the project's exemptions."""
        digest = hashlib.sha256(_VERSION.encode())
        for name in sorted(self._dialects):
            digest.update(self._dialects[name].digest.encode())
        digest.update(repr(self._pricing).encode())
        digest.update(repr(self._completeness.project_globs).encode())
        return digest.hexdigest()[:16]

    def ensure(self, run_ids: Sequence[str]) -> None:
        """Compute the facts of those `run_ids` whose raw rows or record changed since they were computed."""
        with self._store.lock, _no_collector():
            self._prepare()
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
        names = yaml.safe_load((Path(__file__).parents[1] / "dialects" / "provider_names.yaml").read_text("utf-8"))
        self._store.load("provider_names", {"alias": ("text", list(names)), "name": ("text", list(names.values()))})
        records = [(name, dialect.records("tool_calls") is not False) for name, dialect in self._dialects.items()]
        self._store.load(
            "dialect_records",
            {"dialect": ("text", [row[0] for row in records]), "tool_calls": ("boolean", [row[1] for row in records])},
        )
        self._prepared = True

    def _compute(self, batch: Sequence[tuple[Any, ...]]) -> None:
        store = self._store
        store.load(
            "fact_runs", {"run_no": ("bigint", [r[0] for r in batch]), "run_id": ("text", [r[1] for r in batch])}
        )
        store.script(_sql("keys").format(detection=Compiler().detection(self._dialects.values())))
        self._row_facts()
        cut = self._walk()
        store.script(_sql("spans"))
        join_twins(store)
        store.script(_sql("llm_calls"))
        if store.script("SELECT 1 FROM fact_llm_calls WHERE attempts > 1 LIMIT 1"):
            store.script(_sql("llm_attempts"))
        self._messages()
        store.script(_sql("tool_calls"))
        load_commands(store, self._dialects)
        store.script(_sql("agents"))
        self._prices()
        store.script(_sql("errors"))
        store.script(_sql("ledger"))
        alone = store.script("SELECT 1 FROM fact_runs WHERE run_no NOT IN (SELECT run_no FROM fact_llm_calls) LIMIT 1")
        store.script(_sql("rollups" if alone else "no_rollups"))
        store.script(_sql("totals"))
        store.script("BEGIN")
        try:
            if store.script("SELECT 1 FROM fact_state WHERE run_id IN (SELECT run_id FROM fact_runs) LIMIT 1"):
                store.script(_sql("unpublish"))
            store.script(_sql("publish"))
            diagnostics = self._completeness.publish(cut)
            self._note_state(batch, diagnostics)
            store.script("COMMIT")
        except BaseException:
            store.script("ROLLBACK")
            raise

    def _row_facts(self) -> None:
        seen: dict[str, dict[str, set[str]]] = {}
        for dialect, place, key in self._store.script(_sql("seen")):
            seen.setdefault(dialect, {"span": set(), "event": set(), "resource": set(), "any": set()})[place].add(key)
        parts = []
        for name, found in sorted(seen.items()):
            what = Seen(frozenset(found["span"]), frozenset(found["event"]), frozenset(found["resource"]))
            parts.append(Compiler(seen=what).row_facts(self._dialects[name], "fact_raw"))
        body = "\nUNION ALL\n".join(parts) or _no_row_facts()
        self._store.script(f"CREATE OR REPLACE TEMP TABLE fact_rows AS\n{body}")

    def _walk(self) -> list[int]:
        """Load ``fact_walk``; return the sids whose parent reference closed a cycle."""
        rows: list[SpanRow] = self._store.script(_sql("walk_input"))
        walked = walk(rows)
        self._store.load(
            "fact_walk",
            {
                "sid": ("bigint", list(range(len(rows)))),
                "tree_enter": ("bigint", walked.enter),
                "tree_leave": ("bigint", walked.leave),
                "depth": ("bigint", walked.depth),
                "root": ("bigint", walked.root),
                "agent": ("bigint", walked.agent),
                "tool": ("bigint", walked.tool),
                "grp": ("bigint", walked.group),
                "cause": ("boolean", walked.cause),
                "cut": ("boolean", walked.cut),
            },
        )
        return [sid for sid, is_cut in enumerate(walked.cut) if is_cut]

    def _messages(self) -> None:
        """Load ``fact_messages``: every distinct payload is read once."""
        payloads = self._store.script(
            "SELECT f.sid, k.run_no, d.direction, CASE d.direction WHEN 'input' THEN f.input_format ELSE f.output_format END,"
            " CASE d.direction WHEN 'input' THEN f.input_payload ELSE f.output_payload END AS payload"
            " FROM fact_rows AS f JOIN fact_keys AS k ON k.sid = f.sid"
            " CROSS JOIN (SELECT unnest(['input', 'output']) AS direction) AS d"
            " WHERE f.kind IN ('llm', 'agent') AND payload IS NOT NULL ORDER BY f.sid, d.direction"
        )
        read: dict[tuple[str, str, str], list[Part]] = {}
        heads: list[tuple[int, int, str]] = []
        parts: list[Part] = []
        for sid, run_no, direction, form, payload in payloads:
            key = (form, payload, direction)
            found = read.get(key)
            if found is None:
                found = read[key] = parse_messages(form, payload, direction)
            parts.extend(found)
            heads.extend([(sid, run_no, direction)] * len(found))
        self._store.load(
            "fact_messages",
            {
                "sid": ("bigint", [head[0] for head in heads]),
                "run_no": ("bigint", [head[1] for head in heads]),
                "direction": ("text", [head[2] for head in heads]),
                "message_no": ("bigint", [part.message_no for part in parts]),
                "part_no": ("bigint", [part.part_no for part in parts]),
                "role": ("text", [part.role for part in parts]),
                "type": ("text", [part.type for part in parts]),
                "call_id": ("text", [part.call_id for part in parts]),
                "name": ("text", [part.name for part in parts]),
                "text": ("text", [part.text for part in parts]),
            },
        )

    def _prices(self) -> None:
        """Make ``fact_priced``: model calls with their bare model name, cost and its source; each distinct call priced once."""
        store = self._store
        models = store.script(
            "SELECT DISTINCT coalesce(response_model, request_model) AS m FROM fact_llm_calls WHERE m IS NOT NULL"
        )
        store.load(
            "bare_names",
            {"recorded": ("text", [m[0] for m in models]), "bare": ("text", [bare_model_name(m[0]) for m in models])},
        )
        calls = store.script(
            "SELECT DISTINCT provider, coalesce(response_model, request_model) AS model, input_tokens, output_tokens,"
            f" cache_read_tokens, cache_write_tokens, reasoning_tokens, start_ns // {_DAY_NS} AS day"
            " FROM fact_llm_calls WHERE recorded_cost_usd IS NULL AND model IS NOT NULL"
            " AND (outcome = 'ok' OR input_tokens IS NOT NULL OR output_tokens IS NOT NULL)"
        )
        prices = self._price(calls)
        names = ("provider", "model", "input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens", "day")  # fmt: skip
        store.load(
            "call_prices",
            {
                **{name: ("text" if n < 2 else "bigint", [call[n] for call in calls]) for n, name in enumerate(names)},
                "usd": ("double", [price.usd for price in prices]),
                "source": ("text", [price.source for price in prices]),
            },
        )
        same = " AND ".join(f"p.{name} IS NOT DISTINCT FROM c.{name}" for name in names[2:7])
        store.script(
            "CREATE OR REPLACE TEMP TABLE fact_priced AS SELECT c.*, b.bare AS model,"
            " coalesce(c.recorded_cost_usd, p.usd) AS cost_usd,"
            " CASE WHEN c.recorded_cost_usd IS NOT NULL THEN 'recorded' WHEN p.usd IS NOT NULL THEN p.source END AS cost_source"
            " FROM fact_llm_calls AS c LEFT JOIN bare_names AS b ON b.recorded = coalesce(c.response_model, c.request_model)"
            " LEFT JOIN call_prices AS p ON c.recorded_cost_usd IS NULL AND p.provider IS NOT DISTINCT FROM c.provider"
            f" AND p.model = coalesce(c.response_model, c.request_model) AND {same}"
            f" AND p.day = c.start_ns // {_DAY_NS}"
        )

    def _price(self, calls: Sequence[tuple[Any, ...]]) -> list[Price]:
        """Price distinct calls; they change by the day at most, so equal calls of one day are priced once."""
        if not calls:
            return []
        from clawtrace.pricing import ModelCall, Pricing

        pricing = self._pricing or Pricing()
        return pricing.price_calls(ModelCall._make((*call[:7], call[7] * _DAY_NS)) for call in calls)

    def _note_state(self, batch: Sequence[tuple[Any, ...]], diagnostics: dict[str, list[str]]) -> None:
        self._store.script("DELETE FROM fact_state WHERE run_id IN (SELECT run_id FROM fact_runs)")
        self._store.load(
            "fact_new_state",
            {
                "run_id": ("text", [row[1] for row in batch]),
                "raw_rows": ("bigint", [row[2] for row in batch]),
                "last_arrival_ns": ("bigint", [row[3] for row in batch]),
                "record_ns": ("bigint", [row[4] for row in batch]),
                "normaliser": ("text", [self.normaliser] * len(batch)),
                "diagnostics": ("text", [json.dumps(diagnostics.get(row[1], [])) for row in batch]),
            },
        )
        self._store.script("INSERT INTO fact_state BY NAME SELECT * FROM fact_new_state")


def _no_row_facts() -> str:
    """Return a SELECT without rows that has the columns of row facts: a batch of runs without any span."""
    types = {"integer": "BIGINT", "decimal": "DOUBLE"}
    flags = {"failed", "tool_failed", "tool_blocked", "excludes_cache", "excludes_reasoning", "sdk"}
    columns = ", ".join(
        f"NULL::{'BOOLEAN' if name in flags else types.get(COLUMN_TYPES.get(name, 'text'), 'VARCHAR')} AS {name}"
        for name in ROW_FACT_COLUMNS
    )
    return f"SELECT NULL::BIGINT AS sid, {columns} WHERE FALSE"
