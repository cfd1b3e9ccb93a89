"""Which instrumentation scopes and versions the recordings verify, for the word `verified` of the dialect files.

In addition, for ``unread_attributes.yaml``: which attributes they carry that no rule reads.

    python tests/facts/verified.py           # what the recordings tell, as it stands in the dialect files
    python tests/facts/verified.py --write   # write it into the dialect files, and the attributes into theirs

A recording verifies the rules that read it when no fact of its client is wrong, in any of its scenarios.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import conformance
import yaml

from clawtrace.dialects.load import BUILTIN, Dialect, load_dialects
from clawtrace.dialects.unread import RECORDED, unread_attributes
from clawtrace.session.session import Session

HERE = Path(__file__).parent
SHARED = HERE.parents[1].parent / "shared"
FOLDERS = (HERE.parent / "recordings", SHARED / "corpus", SHARED / "strangers")
"""Those of this repository first; the others where they are there."""

OWN_SCOPES = frozenset((
    "__main__", "agent", "assistant-api", "crew", "lab.app", "weather-app", "weather-bot", "weather/tracing", "weather_service.agent",
))  # fmt: skip
"""Tracers of the recorded programs themselves: another program calls its tracer otherwise."""

LAST_RESORT = "opentelemetry"
"""The dialect that reads nothing of an agent."""

_ATTRIBUTES = """
SELECT s.dialect, list(DISTINCT key) FROM spans AS s
JOIN run_numbers AS n ON n.run_id = s.run_id
JOIN otel_traces AS t ON t.run_no = n.run_no AND t."TraceId" = s.trace_id AND t."SpanId" = s.span_id,
unnest(map_keys(t."SpanAttributes")) AS of(key)
GROUP BY ALL
"""

_READ = """
SELECT DISTINCT s.run_id, s.dialect, coalesce(s.scope, ''), coalesce(s.scope_version, '') FROM spans AS s WHERE s.scope IS DISTINCT FROM s.name
"""
"""A scope that is called as its span is (Netra's, of what is decorated) is the name of the recorded program's function."""


class Read(NamedTuple):
    """That a dialect read spans of an instrumentation, in recordings of one client."""

    dialect: str
    scope: str
    version: str
    client: str


def read(folder: Path) -> tuple[set[Read], set[tuple[str, str]]]:
    """Return what the recordings below a folder verify, and what they carry unread."""
    paths = conformance.recordings(folder)
    with conformance.loaded(paths) as session:
        return verified(session, paths), unread(session)


def unread(session: Session) -> set[tuple[str, str]]:
    """Return the attributes that the spans of a session carry and no rule reads, each with the name of its dialect."""
    dialects = {dialect.name: dialect for dialect in load_dialects()}
    rows = session.query(_ATTRIBUTES).rows
    return {(name, key) for name, keys in rows for key in unread_attributes(dialects[name], keys)}


def verified(session: Session, paths: Iterable[Path]) -> set[Read]:
    """Return what recordings verify, which are the runs of a session: those of clients of which nothing is wrong."""
    paths = list(paths)
    runs = conformance.inspected(session)
    wrong = {
        path.parent.name
        for path in paths
        if any(status == "wrong" for status, *_ in conformance.compare(path, runs[conformance.name(path)]).values())
    }
    rows = session.query(_READ).rows
    found = {Read(dialect, scope, version, run_id.split("/")[0]) for run_id, dialect, scope, version in rows}
    return {
        one for one in found if one.client not in wrong and one.scope not in OWN_SCOPES and one.dialect != LAST_RESORT
    }


def declarations(found: Iterable[Read]) -> dict[str, list[dict[str, Any]]]:
    """Return the word `verified` of each dialect, as the recordings tell it."""
    versions: dict[tuple[str, str], set[str]] = defaultdict(set)
    clients: dict[tuple[str, str], set[str]] = defaultdict(set)
    for one in found:
        versions[one.dialect, one.scope].add(one.version)
        clients[one.dialect, one.scope].add(one.client)
    by_dialect: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for dialect, scope in sorted(versions):
        by_dialect[dialect].append(
            {
                "scope": scope,
                "versions": sorted(versions[dialect, scope]) if versions[dialect, scope] != {""} else [],
                "recordings": sorted(clients[dialect, scope]),
            }
        )
    return dict(by_dialect)


def declared(dialect: Dialect) -> list[dict[str, Any]]:
    """Return what a dialect file declares, in the form of `declarations`."""
    return [one.model_dump(exclude={"version"}) for one in dialect.verified]


def written(dialect: Dialect, entries: Iterable[dict[str, Any]]) -> str:
    """Return the word as it stands in a dialect file; what names the version is kept."""
    kept = {one.scope: one.version for one in dialect.verified}
    lines = ["verified:"]
    for entry in entries:
        version = kept.get(entry["scope"], "scope")
        listed = ", ".join(f'"{one}"' for one in entry["versions"])
        lines += [f'  - scope: "{entry["scope"]}"', f"    versions: [{listed}]"]
        lines += [f"    version: {version}"] if version != "scope" else []
        lines.append(_folded(entry["recordings"]))
    return "\n".join(lines) + "\n"


def _folded(names: Iterable[str]) -> str:
    lines, line = [], "    recordings: ["
    for name in names:
        if len(line) + len(name) > 118:
            lines.append(line.rstrip())
            line = "      "
        line += f"{name}, "
    return "\n".join([*lines, line.rstrip(", ") + "]"])


def listed(found: Iterable[tuple[str, str]]) -> str:
    """Return the text of ``unread_attributes.yaml``."""
    by: dict[str, list[str]] = defaultdict(list)
    for dialect, key in sorted(found):
        by[dialect].append(key)
    return yaml.safe_dump(dict(by), width=120, default_flow_style=None)


def main(write: bool) -> None:
    """Print the declarations, or write them into the dialect files."""
    found = [read(folder) for folder in FOLDERS]
    by_dialect = declarations(one for some, _ in found for one in some)
    if write:
        RECORDED.write_text(listed({one for _, some in found for one in some}), encoding="utf-8")
    for dialect in load_dialects():
        text = written(dialect, by_dialect[dialect.name]) if dialect.name in by_dialect else ""
        if not write:
            print(f"# {dialect.name}\n{text}", end="")
            continue
        path = BUILTIN / f"{dialect.name}.yaml"
        said = re.sub(r"(?m)^verified:\n(?:[ ].*\n)+", "", path.read_text(encoding="utf-8"))
        path.write_text(re.sub(r"(?m)^detect:", f"{text}detect:", said, count=1), encoding="utf-8")


if __name__ == "__main__":
    main("--write" in sys.argv)
