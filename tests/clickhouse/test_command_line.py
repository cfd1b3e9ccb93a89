"""`--store clickhouse://…` as a user types it: verdicts, what is kept on the server, and what each mistake says."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

RECORDINGS = Path(__file__).parents[1] / "recordings"
pytestmark = pytest.mark.needs("clickhouse")

PAGE = (Path(__file__).parents[2] / "docs" / "clickhouse.md").read_text(encoding="utf-8")
SHOWN = re.findall(r"(?:^```sql\n|`)(SELECT [^`]* clawtrace\.[^`]*)`", PAGE, re.MULTILINE)
"""The queries for dashboards on the page."""
CHECKS = """
assertions:
- {type: llm_call_count, min: 1}
- {type: tool_not_called, tool: no_such_tool}
- {type: error_contains, value: boom}
"""


@pytest.fixture
def checks(tmp_path):
    path = tmp_path / "checks.yaml"
    path.write_text(CHECKS)
    return path


@pytest.fixture
def filled(server, database):
    server.write([RECORDINGS / "pydantic-ai"], database)
    return server.url(database)


def test_eval_judges_and_keeps_what_it_found(server, database, filled, checks, tmp_path, invoke):
    """The verdicts are those of the recording, and a dashboard reads them with the facts, each run once."""
    assert invoke("store", "init", "--store", filled).exit_code == 0
    for _ in range(2):
        judged = invoke("eval", "--store", filled, "--assertions", checks, "--report", "json=there.json", "--quiet")
    recorded = invoke(
        "eval", "--traces", RECORDINGS / "pydantic-ai", "--assertions", checks, "--report", "json=here.json", "--quiet"
    )
    there, here = (
        {
            (run["run_id"], verdict["id"]): verdict["status"]
            for case in json.loads((tmp_path / name).read_text())["cases"]
            for run in case["runs"]
            for verdict in run["assertions"]
        }
        for name in ("there.json", "here.json")
    )
    kept = server.rows("SELECT run_id, assertion_id, status, count() FROM clawtrace.verdicts GROUP BY ALL")
    facts = server.rows("SELECT run_id, count() FROM clawtrace.run_totals GROUP BY run_id")

    dashboard = [server.rows(sql.replace("$__timeFilter(v.at)", "1")) for sql in SHOWN]

    assert all(dashboard)
    assert judged.exit_code == recorded.exit_code
    assert there == here
    assert "note" not in judged.stderr
    assert {(run, one): (status, number) for run, one, status, number in kept} == {
        key: (status, 2) for key, status in here.items()
    }
    assert facts
    assert all(number == 1 for _, number in facts)


def test_without_tables_of_its_own_it_judges_and_says_what_is_not_kept(filled, checks, invoke):
    """Questions need no table: those of a session end with it."""
    judged = invoke("eval", "--store", filled, "--assertions", checks)

    assert "clawtrace store init" in judged.stderr
    assert judged.exit_code in (0, 1)


def test_a_user_who_may_only_read_judges_all_the_same(server, database, filled, checks, monkeypatch, invoke):
    """Temporary tables are enough, and the password comes from the environment."""
    assert invoke("store", "init", "--store", filled).exit_code == 0
    monkeypatch.setenv("CLAWTRACE_CLICKHOUSE_PASSWORD", "secret")
    url = server.url(database, user="reader")
    judged = invoke("eval", "--store", url, "--assertions", checks)
    refused = invoke("store", "init", "--store", url)

    assert "the user 'reader' may not write into 'clawtrace'" in judged.stderr
    assert judged.exit_code in (0, 1)
    assert server.rows("SELECT count() FROM clawtrace.verdicts") == [(0,)]
    assert (refused.exit_code, "Not enough privileges" in refused.stderr) == (4, True)


def test_inspect_runs_and_query_read_the_same_runs(filled, invoke):
    """Each command that reads a store reads this one; SQL runs on the server, in its own dialect."""
    listed = json.loads(invoke("runs", "list", "--store", filled, "--json").stdout)
    one = listed[0]["run_id"]
    shown = json.loads(invoke("inspect", "--store", filled, "--run-id", one, "--json").stdout)
    counted = invoke("query", "SELECT countIf(kind = 'llm') AS n FROM spans", "--store", filled, "--json")
    exported = invoke("runs", "export", one, "--store", filled)

    assert [run["run_id"] for run in shown["runs"]] == [one]
    assert json.loads(counted.stdout)[0]["n"] > 0
    assert '"resourceSpans"' in exported.stdout


@pytest.mark.parametrize("sql", ["DROP TABLE otel_traces", "INSERT INTO otel_traces (TraceId) VALUES ('x')"])
def test_a_users_sql_changes_nothing(server, database, filled, sql, invoke):
    """The server runs it read-only."""
    before = server.rows("SELECT count() FROM otel_traces", database)
    done = invoke("query", sql, "--store", filled)

    assert done.exit_code == 2
    assert server.rows("SELECT count() FROM otel_traces", database) == before


def test_a_verdict_is_rerun_there(filled, checks, invoke):
    """`query --verdict` asks the very SQL again, on the store that is named."""
    invoke("eval", "--store", filled, "--assertions", checks, "--report", "json=results.json", "--quiet")
    again = invoke("query", "--verdict", "results.json", "--store", filled)

    assert again.exit_code == 0, again.output


def test_the_ddl_is_printed_without_a_server(invoke):
    """For users whose administrator makes tables."""
    printed = invoke("store", "init", "--store", "clickhouse://nowhere:1/otel?own=evals", "--print")

    assert printed.exit_code == 0
    assert "CREATE TABLE IF NOT EXISTS evals.verdicts" in printed.stdout


def test_without_its_client_it_says_how_to_install_it(monkeypatch, invoke):
    """The client is an extra."""
    monkeypatch.setitem(sys.modules, "clickhouse_connect", None)
    done = invoke("inspect", "--store", "clickhouse://127.0.0.1:1/otel")

    assert (done.exit_code, "uv tool install --force '.[clickhouse]'" in done.stderr) == (2, True)


def test_the_project_file_names_the_clickhouse(server, filled, checks, tmp_path, invoke):
    """`store.url` stands for `--store` in every command that reads one, and a flag goes before it."""
    (tmp_path / "clawtrace.yaml").write_text(f"store: {{url: '{filled}'}}\n")
    made = invoke("store", "init")
    listed = json.loads(invoke("runs", "list", "--json").stdout)
    one = listed[0]["run_id"]
    judged = invoke("eval", "--assertions", checks, "--report", "json=results.json", "--quiet")
    chosen = invoke("eval", "--assertions", checks, "--run-id", one, "--report", "json=one.json", "--quiet")
    none = invoke("eval", "--assertions", checks, "--until", "2001-01-01", "--quiet")
    elsewhere = invoke("inspect", "--store", "clickhouse://127.0.0.1:1/otel")

    assert made.exit_code == 0
    assert len(listed) > 1
    assert [
        run["run_id"] for case in json.loads((tmp_path / "one.json").read_text())["cases"] for run in case["runs"]
    ] == [one]
    assert judged.exit_code in (0, 1)
    assert chosen.exit_code in (0, 1)
    assert none.exit_code not in (0, 1), none.output
    assert server.rows("SELECT uniqExact(evaluation) FROM clawtrace.verdicts") == [(2,)]
    assert json.loads(invoke("inspect", "--run-id", one, "--json").stdout)["runs"][0]["run_id"] == one
    assert json.loads(invoke("query", "SELECT count() AS n FROM runs", "--json").stdout)[0]["n"] == len(listed)
    assert invoke("query", "--verdict", "results.json").exit_code == 0
    assert invoke("diff", one, listed[1]["run_id"]).exit_code in (0, 1)
    assert (elsewhere.exit_code, "127.0.0.1:1" in elsewhere.stderr) == (4, True)
    assert "are adopted and deleted in a DuckDB file" in invoke("runs", "delete", one).stderr


def test_a_flag_that_chooses_needs_a_clickhouse(tmp_path, invoke):
    """It is not ignored elsewhere."""
    assert "--since chooses among the traces of a ClickHouse" in invoke("inspect", "--since", "2h").stderr


@pytest.mark.parametrize(
    ("change", "code", "words"),
    [
        (lambda _: "clickhouse://127.0.0.1:1/otel", 4, "does not answer as a ClickHouse server"),
        (lambda url: url.replace("127.0.0.1", "nobody:wrong@127.0.0.1"), 4, "the name or the password is wrong"),
        (lambda url: url.rpartition("/")[0] + "/nowhere", 4, "has no database 'nowhere'"),
        (lambda url: url + "?traces=spans_of_ours", 4, "has no table 'spans_of_ours'"),
        (lambda url: url + "?logs=logs_of_ours", 4, "has no table 'logs_of_ours'"),
        (lambda url: url + "?tracess=x", 2, "unknown option 'tracess'"),
        (lambda _: "clickhouse:///otel", 2, "names no host"),
        (lambda _: "postgres://host/otel", 2, "a store is a DuckDB file or clickhouse://"),
    ],
)
def test_each_mistake_says_what_is_wrong(filled, change, code, words, invoke):
    """Nothing is judged, and no password is shown."""
    done = invoke("inspect", "--store", change(filled))

    assert (done.exit_code, words in done.stderr) == (code, True), done.stderr
    assert ":wrong" not in done.stderr


def test_tables_with_json_columns_are_refused(server, database, invoke):
    """The exporter's `json: true` makes other columns: a clear error instead of empty attributes."""
    server.run(
        "CREATE TABLE j (Timestamp DateTime64(9), TraceId String, SpanAttributes JSON, `Links.TraceId` Array(String), "
        "Duration UInt64) ENGINE = MergeTree ORDER BY Timestamp",
        database=database,
    )
    done = invoke("inspect", "--store", server.url(database, options="traces=j"))

    assert (done.exit_code, "only tables with Map columns" in done.stderr) == (4, True), done.stderr
