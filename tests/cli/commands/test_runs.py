"""`clawtrace runs`: what a store holds, and adopting traces that named no run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from clawtrace.model.raw import LogBatch, MapColumn, NestedMap, SpanBatch, StrList
from clawtrace.model.run import RunRecord
from clawtrace.store.duckdb import DuckStore


def batch(run_no: int, run_rule: str, trace_id: str, *names: str) -> SpanBatch:
    """Spans of one trace, without attributes."""
    made = SpanBatch()
    for number, name in enumerate(names, start=1):
        texts = {
            "trace_id": trace_id,
            "span_id": f"{number:016x}",
            "name": name,
            "kind": "Internal",
            "run_rule": run_rule,
        }
        numbers = {"start_ns": number, "end_ns": number + 1, "run_no": run_no, "arrival_ns": number}
        for field, column in vars(made).items():
            if isinstance(column, MapColumn | StrList | NestedMap):
                column.offsets.append(0)
            elif field in numbers or field in ("flags", "request_no") or field.startswith("dropped"):
                column.append(numbers.get(field, 0))
            else:
                column.append(texts.get(field, ""))
    return made


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store of one announced run and two traces that named none."""
    path = tmp_path / "spans.duckdb"
    held = DuckStore(path)
    held.put_record(RunRecord("mine", "case"))
    for run_id, rule, trace_id in (
        ("mine", "resource", "a" * 32),
        ("b" * 32, "none", "b" * 32),
        ("c" * 32, "none", "c" * 32),
    ):
        held.commit(batch(held.run_no(run_id), rule, trace_id, "one", "two"), LogBatch(), [], [])
    held.close()
    return path


def listed(invoke, store: Path, *options: str) -> dict[str, tuple[int, bool]]:
    rows = json.loads(invoke("runs", "list", "--store", store, "--json", *options).stdout)
    return {row["run_id"]: (row["spans"], row["unattributed"]) for row in rows}


def test_list(invoke, store) -> None:
    """Runs and traces that named none are listed, the latter marked as such."""
    assert listed(invoke, store) == {"mine": (2, False), "b" * 32: (2, True), "c" * 32: (2, True)}
    assert listed(invoke, store, "--unattributed").keys() == {"b" * 32, "c" * 32}
    table = invoke("runs", "list", "--store", store)
    assert (table.exit_code, "mine" in table.stdout, table.stderr) == (0, True, "3 runs\n")
    title, *rows = [line.split()[-1] for line in table.stdout.splitlines()]
    assert (title, sorted(rows)) == ("unattributed", ["false", "true", "true"])
    for trace in ("b" * 32, "c" * 32):
        assert invoke("runs", "delete", trace, "--store", store).exit_code == 0
    named = invoke("runs", "list", "--store", store)
    assert "unattributed" not in named.stdout  # a column that says the same of every run says nothing


def test_adopt(invoke, store) -> None:
    """An adopted trace is the run's, under the rule `given`, and stands for itself no more."""
    result = invoke("runs", "adopt", "mine", "b" * 32, "--store", store)

    assert (result.exit_code, result.stderr) == (0, "mine has adopted 1 trace.\n")
    assert listed(invoke, store) == {"mine": (4, False), "c" * 32: (2, True)}
    rules = json.loads(
        invoke("query", "SELECT trace_id, run_rule FROM spans WHERE run_id = 'mine'", "--store", store, "--json").stdout
    )
    assert {(row["trace_id"], row["run_rule"]) for row in rules} == {("a" * 32, "resource"), ("b" * 32, "given")}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("mime", "b" * 32), "There is no run 'mime'. Did you mean `mine`?"),
        (("mine", "d" * 32), "There is no unattributed trace"),
        (("mine", "a" * 32), "There is no unattributed trace"),
    ],
    ids=["unknown run", "unknown trace", "a trace that named its run"],
)
def test_what_cannot_be_adopted(invoke, store, arguments, words) -> None:
    """A name that the store does not hold, or a trace that said whose it is, is a mistake; nothing changes."""
    before = listed(invoke, store)
    result = invoke("runs", "adopt", *arguments, "--store", store)

    assert result.exit_code == 2
    assert words in result.stderr
    assert listed(invoke, store) == before


def test_export_and_read_again(invoke, store, tmp_path) -> None:
    """Each form is read again as the same run; Parquet has one file for each signal that there is."""
    for number, options in enumerate((["--format", "protobuf"], ["--format", "parquet"], [])):
        out = tmp_path / str(number)
        assert invoke("runs", "export", "mine", "--store", store, "--out", out, *options).exit_code == 0
        read = invoke("inspect", "--traces", out, "--one-run", "mine", "--json")
        assert json.loads(read.stdout)["runs"][0]["spans"] == 2
    assert [path.name for path in (tmp_path / "1").iterdir()] == ["traces.parquet"]

    without = invoke("runs", "export", "mine", "--store", store, "--format", "parquet")
    assert (without.exit_code, "--out FOLDER" in without.stderr) == (2, True)
