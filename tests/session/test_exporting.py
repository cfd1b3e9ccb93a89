"""Every recording, exported in each form and read again, gets the same verdicts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from clawtrace.config.loading.assertions_file import load_assertions_text
from clawtrace.errors import InputError
from clawtrace.receiver.recordings.recording import Grouping
from clawtrace.session.exporting import write_parquet_of, write_protobuf
from clawtrace.session.session import Session

ASSERTIONS = """
assert:
- tool_not_invoked: delete_all
- tool_was_called: search
- llm_call_count: {min: 1, max: 2}
- tool_call_count: {max: 1}
- token_budget: {max_total_tokens: 500}
- trace_cost: {max_usd: 0.01}
- trace_duration: {max_ms: 1000}
- no_span_errors
- no_loops
- delegation_occurred: researcher
- model_used: "glob:gpt-*"
- output_contains: a
- error_contains: error
- sql: "SELECT type FROM messages WHERE run_id = :run_id AND text IS NULL"
"""

FORMS = ("json", "protobuf", "parquet")


def judged(session: Session, run_ids: list[str]) -> dict[str, Any]:
    """Return what is said of each run: whether it is complete, its verdicts, and its facts."""
    results = session.evaluate(run_ids, load_assertions_text(ASSERTIONS, "assertions").parsed)
    facts = {run.pop("run_id"): run for run in session.inspect(run_ids)["runs"]}
    return {
        one.run_id: (
            one.complete,
            [(verdict.type, verdict.status, verdict.message, verdict.actual) for verdict in one.verdicts],
            facts[one.run_id],
        )
        for one in results
    }


def write(form: str, run_id: str, lines: list[str], folder: Path) -> None:
    folder.mkdir(parents=True)
    if form == "parquet":
        write_parquet_of(run_id, lines, folder)
    elif form == "protobuf":
        with (folder / "run.pb").open("wb") as out:
            write_protobuf(lines, out)
    else:
        (folder / "run.otlp.jsonl").write_text("".join(f"{line}\n" for line in lines))


RECORDINGS = Path(__file__).parents[1] / "recordings"
CLIENTS = sorted({path.parents[1].name for path in RECORDINGS.glob("*/*/*.otlp.jsonl*")})
TOGETHER = 12
"""Clients whose recordings are judged in one store, which takes hardly longer than those of one."""


@pytest.mark.full
@pytest.mark.parametrize("first", range(0, len(CLIENTS), 2 * TOGETHER))
def test_a_recording_gets_the_same_verdicts(first: int, tmp_path: Path) -> None:
    """Verdicts, completeness and all facts are equal, run by run, in each form; of every second client."""
    found = [
        path
        for client in CLIENTS[first : first + 2 * TOGETHER : 2]
        for path in (RECORDINGS / client).glob("*/*.otlp.jsonl*")
    ]
    names = sorted({f"{path.parents[1].name}/{path.parent.name}" for path in found})
    with Session.open() as session:
        for name in names:
            session.load_recordings([RECORDINGS / name], Grouping("one", f"as recorded/{name}"))
        for name in names:
            lines = list(session.exported(f"as recorded/{name}"))
            for form in FORMS:
                write(form, name, lines, tmp_path / form / name)
        session.load_recordings([tmp_path], Grouping("dir"))
        said = judged(session, [f"{form}/{name}" for form in ("as recorded", *FORMS) for name in names])
    for name in names:
        for form in FORMS:
            assert said[f"{form}/{name}"] == said[f"as recorded/{name}"], (form, name)


def test_parquet_of_others_is_refused(tmp_path: Path) -> None:
    """The message names the file."""
    import duckdb

    with duckdb.connect() as engine:
        engine.execute(f"COPY (SELECT 1 AS n) TO '{tmp_path}/other.parquet'")
    with (
        Session.open() as session,
        pytest.raises(InputError, match=r"other\.parquet` is not OTLP: it is a Parquet file of neither"),
    ):
        session.load_recordings([tmp_path / "other.parquet"], Grouping())
