"""Instrumentations that stored runs show to be newer than what is known of them: other versions, unknown attributes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from clawtrace.cli.sources.source import open_or_ask
from clawtrace.config.projects.project_file import Project
from clawtrace.config.projects.session_settings import session_settings
from clawtrace.dialects.load import load_dialects
from clawtrace.dialects.unread import unknown_attributes

__all__ = ["drifts", "last_store"]

_SQL = """
SELECT s.dialect, s.scope, coalesce(s.scope_version, ''), s.rule, list(DISTINCT of.key)
FROM spans AS s
JOIN run_numbers AS n ON n.run_id = s.run_id
JOIN otel_traces AS t ON t.run_no = n.run_no AND t."TraceId" = s.trace_id AND t."SpanId" = s.span_id,
unnest(map_keys(t."SpanAttributes")) AS of(key)
GROUP BY ALL ORDER BY ALL
"""


def last_store(project: Project) -> Path | None:
    """Return the project's store, else that of the last campaign; None where neither is there."""
    if project.store is not None and project.store.is_file():
        return project.store
    stores = project.outputs.glob("campaigns/*/*/spans.duckdb")
    return max(
        (store for store in stores if store.stat().st_size), key=lambda store: store.stat().st_mtime, default=None
    )


def drifts(store: Path, project: Project) -> Iterator[str]:
    """Yield what is new of each instrumentation of a store; one that another process holds is asked through that process.

    Raises:
        StoreError: it cannot be read.
    """
    with closing(open_or_ask(store, session_settings(project))) as asked:
        rows = asked.query(_SQL).rows
    dialects = {dialect.name: dialect for dialect in load_dialects(project.dialect_folders)}
    for name, scope, version, rule, keys in rows:
        dialect = dialects.get(name)
        unknown = [] if dialect is None else unknown_attributes(dialect, keys)
        said = ["was recorded in other versions only"] if rule == "other-version" else []
        if unknown:
            said.append(f"writes attributes that the dialect `{name}` does not know: {', '.join(unknown)}")
        if said:
            yield f"{f'`{scope}` {version}'.rstrip()} {' and '.join(said)}"
