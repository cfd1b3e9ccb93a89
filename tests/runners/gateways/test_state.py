"""What is read of a gateway's state: files up to 2026.4, databases later."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from clawtrace.runners.gateways.keeper import answer_text
from clawtrace.runners.gateways.state import keep_transcripts, sub_agents_ended


def database(path: Path, *statements: tuple[str, list[tuple[object, ...]]]) -> None:
    path.parent.mkdir(parents=True)
    with closing(sqlite3.connect(path)) as opened:
        for statement, rows in statements:
            opened.executemany(statement, rows) if rows else opened.execute(statement)
        opened.commit()


@pytest.mark.parametrize(
    ("runs", "ended"), [([], True), ([{"cleanupCompletedAt": 1}], True), ([{"cleanupCompletedAt": 1}, {}], False)]
)
def test_sub_agents(tmp_path, runs, ended):
    """All have ended once each has been cleaned up, wherever they are listed."""
    rows = [(json.dumps(run),) for run in runs]
    table = ("CREATE TABLE subagent_runs (payload_json TEXT)", [])
    database(
        tmp_path / "new/state/openclaw.sqlite",
        table,
        *([("INSERT INTO subagent_runs VALUES (?)", rows)] if rows else []),
    )
    (tmp_path / "old/subagents").mkdir(parents=True)
    (tmp_path / "old/subagents/runs.json").write_text(json.dumps({"runs": dict(enumerate(runs))}))

    assert sub_agents_ended(tmp_path / "new") is ended
    assert sub_agents_ended(tmp_path / "old") is ended


def test_sub_agents_of_a_file_that_is_being_written(tmp_path):
    """They have not ended; without any file or database there are none."""
    (tmp_path / "subagents").mkdir()
    assert not sub_agents_ended(tmp_path)
    assert sub_agents_ended(tmp_path / "none")


def test_transcripts_of_a_database(tmp_path):
    """Each session is a file of its lines in their order, compressed ones too."""
    lines = [
        ("b", 1, "{}", None),
        ("a", 2, None, compressed('{"n":2}')),
        ("a", 1, '{"n":1}', None),
        ("a", 3, None, compressed('{"n":3}')),
    ]
    table = ("CREATE TABLE transcript_events (session_id TEXT, seq INTEGER, event_json TEXT, event_zstd BLOB)", [])
    insert = ("INSERT INTO transcript_events VALUES (?, ?, ?, ?)", lines)
    database(tmp_path / "state/agents/main/agent/openclaw-agent.sqlite", table, insert)
    kept, lost = keep_transcripts(tmp_path / "state", tmp_path / "kept")

    assert [str(file.relative_to(tmp_path / "kept")) for file in kept] == [
        "agents/main/sessions/a.jsonl", "agents/main/sessions/b.jsonl",
    ]  # fmt: skip
    assert kept[0].read_text() == '{"n":1}\n{"n":2}\n{"n":3}\n'
    assert lost == []


def test_a_database_that_cannot_be_read(tmp_path):
    """The loss is said."""
    file = tmp_path / "state/agents/main/agent/openclaw-agent.sqlite"
    file.parent.mkdir(parents=True)
    file.write_bytes(b"no database " * 100)

    assert keep_transcripts(tmp_path / "state", tmp_path / "kept") == (
        [],
        ["the transcripts of the agent 'main' could not be read: file is not a database"],
    )


def compressed(text: str) -> bytes:
    """Return a frame of zstd with one block that is stored as it is."""
    data = text.encode()
    block = (len(data) << 3 | 1).to_bytes(3, "little")
    return bytes.fromhex("28b52ffd20") + bytes([len(data)]) + block + data


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        ('{"ok": false, "error": {"message": "m"}}', ""),
        ('{"result": {"payloads": [{"text": "a"}, {}]}}', "a\n"),
        ("[]", "[]"),
    ],
)
def test_answers(said, answer):
    """What the command line says of a failure is no answer."""
    assert answer_text(said) == answer
