"""The sessions that a gateway stores: in files up to 2026.4, later in SQLite databases."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from clawtrace.support.parquet_table import memory_database

__all__ = ["keep_transcripts", "sub_agents_ended"]


def sub_agents_ended(state: Path) -> bool:
    """Return whether every sub-agent has ended, and its requester has its answer."""
    try:
        return all(one.get("cleanupCompletedAt") for one in (*_in_file(state / "subagents"), *_in_database(state)))
    except (OSError, ValueError, KeyError, TypeError):
        return False  # it is being written


def _in_file(folder: Path) -> list[Mapping[str, Any]]:
    if not folder.exists():
        return []
    runs = json.loads((folder / "runs.json").read_text(encoding="utf-8"))["runs"]
    return list(runs.values()) if isinstance(runs, Mapping) else list(runs)


def _in_database(state: Path) -> list[Mapping[str, Any]]:
    rows = _rows(state / "state" / "openclaw.sqlite", "SELECT payload_json FROM subagent_runs")
    return [json.loads(payload) for (payload,) in rows]


def keep_transcripts(state: Path, folder: Path) -> tuple[list[Path], list[str]]:
    """Keep the transcripts of all sessions as `agents/AGENT/sessions/SESSION.jsonl`.

    Args:
        state: the folder of the gateway's state; its files are moved.

    Returns:
        the transcripts, and why one is not kept.
    """
    kept: list[Path] = []
    lost: list[str] = []
    for file in sorted(state.glob("agents/*/sessions/*.jsonl")):
        if file.is_symlink() or ".trajectory." in file.name or ".checkpoint." in file.name:
            continue
        place = folder / file.relative_to(state)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(file, place)
        kept.append(place)
    for database in sorted(state.glob("agents/*/agent/openclaw-agent.sqlite")):
        sessions = folder / database.parent.parent.relative_to(state) / "sessions"
        try:
            for session, lines in _sessions(database):
                sessions.mkdir(parents=True, exist_ok=True)
                place = sessions / f"{session}.jsonl"
                place.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
                kept.append(place)
        except OSError as error:
            lost.append(f"the transcripts of the agent {database.parents[1].name!r} could not be read: {error}")
    return kept, lost


def _sessions(database: Path) -> Iterator[tuple[str, list[str]]]:
    rows = _rows(
        database, "SELECT session_id, coalesce(event_json, event_zstd) FROM transcript_events ORDER BY session_id, seq"
    )
    long = iter(_decompressed([line for _, line in rows if isinstance(line, bytes)]))
    lines = [(session, next(long) if isinstance(line, bytes) else line) for session, line in rows]
    for session, of_session in groupby(lines, key=lambda line: line[0]):
        yield Path(session).name, [line for _, line in of_session]


def _decompressed(lines: list[bytes]) -> list[str]:
    """Return lines that are compressed with zstd, which Python reads from 3.14 on, and DuckDB always.

    Raises:
        OSError: they cannot be read.
    """
    if not lines:
        return []
    import duckdb

    with TemporaryDirectory() as folder, memory_database() as engine:
        for number, line in enumerate(lines):
            Path(folder, f"{number:09}").write_bytes(line)
        whole = (
            "SELECT line FROM read_csv(?, compression='zstd', auto_detect=false, header=false, delim=chr(1), quote='', escape='', "
            "columns={'line': 'VARCHAR'}, max_line_size=16777216, filename='file') ORDER BY file"
        )
        try:
            found = engine.execute(whole, [f"{folder}/*"]).fetchall()
        except duckdb.Error as error:
            raise OSError(str(error)) from error
    if len(found) != len(lines):
        raise OSError(f"{len(lines)} compressed lines are {len(found)} lines")
    return [line for (line,) in found]


def _rows(database: Path, question: str) -> list[tuple[Any, ...]]:
    """Return the rows; none where there is no such database or table.

    Raises:
        OSError: it cannot be read now.
    """
    if not database.exists():
        return []
    try:
        with closing(sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True)) as opened:
            return opened.execute(question).fetchall()
    except sqlite3.Error as error:
        if "no such table" in str(error):
            return []
        raise OSError(str(error)) from error
