"""Checks of `clawtrace doctor` for agents: code that prevents complete spans, and instrumentations newer than those recorded."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from clawtrace.cli.sources.source import open_or_ask
from clawtrace.config.projects.project_file import Project
from clawtrace.config.projects.session_settings import session_settings
from clawtrace.dialects.load import load_dialects
from clawtrace.dialects.unread import unknown_attributes

__all__ = ["agent_findings", "drifts", "last_store", "listening"]

_ENDINGS = frozenset({".py", ".js", ".mjs", ".cjs", ".ts", ".mts", ".tsx"})
_LEFT_OUT = frozenset({"node_modules", "outputs", "venv", "dist", "build", "site-packages", "tests", "test"})
_MOST_FILES = 500
_LARGEST = 1 << 20
_USUAL_PORTS = (4317, 4318)

_IN_CODE = (
    (
        re.compile(r"""\bOTLP\w*Exporter\s*\([^)]*?\b(?:endpoint|url)\s*[=:]\s*["'`]([^"'`]+)""", re.DOTALL),
        "an exporter has the address {0!r} in code: it sends there, wherever clawtrace receives.",
        "Construct it without an address: it then reads OTEL_EXPORTER_OTLP_ENDPOINT.",
    ),
    (
        re.compile(r"\b(TraceIdRatioBased\w*|ALWAYS_OFF|AlwaysOffSampler|ParentBasedTraceIdRatio)\b\s*[(,)]"),
        "the sampler `{0}` can drop spans.",
        "Set no sampler in code: clawtrace switches sampling off by OTEL_TRACES_SAMPLER.",
    ),
    (
        re.compile(
            r"\b(include_content\s*=\s*False|hide_(?:inputs|outputs)\s*[=:]\s*[Tt]rue|record(?:In|Out)puts:\s*false)"
        ),
        "`{0}` keeps messages, arguments or results out of the spans.",
        "Assertions about them will be inconclusive. Leave it out in tests.",
    ),
)
_IN_ENV = (
    (re.compile(r"^\s*(?:export\s+)?OTEL_SDK_DISABLED\s*=\s*[\"']?(true)", re.IGNORECASE | re.MULTILINE),
     "OTEL_SDK_DISABLED switches the SDK off where the agent loads this file.",
     "Remove it: clawtrace takes it out of the environment, but not out of a file."),
)  # fmt: skip


def agent_findings(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield what keeps spans away, of the source files and `.env` files of a folder, each with advice."""
    from clawtrace.config.files.document import display

    for path in _files(folder):
        try:
            text = path.read_text(encoding="utf-8", errors="replace") if path.stat().st_size <= _LARGEST else ""
        except OSError:
            continue
        for pattern, message, advice in _IN_ENV if path.name.startswith(".env") else _IN_CODE:
            if found := pattern.search(text):
                line = text.count("\n", 0, found.start(1)) + 1
                yield f"{display(path)}:{line}: {message.format(found[1])}", advice


def listening() -> list[int]:
    """Return the ports, of those that exporters use by default, on which a Collector or another receiver listens."""
    return [port for port in _USUAL_PORTS if _answers(port)]


def _answers(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=0.5):
            return True
    except OSError:
        return False


def _files(folder: Path) -> Iterator[Path]:
    number = 0
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in _LEFT_OUT and not name.startswith("."))
        for name in sorted(names):
            if name.startswith(".env") or Path(name).suffix in _ENDINGS:
                number += 1
                if number > _MOST_FILES:
                    return
                yield Path(place, name)


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
