"""`clawtrace eval` and `inspect` of recordings, as the whole program: files in, verdicts, reports and exit codes out."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
import xml.etree.ElementTree as ET
from pathlib import Path

import duckdb
import pytest
from tests.cli.conftest import PROGRAM, clean_environment

from clawtrace.report.base import formats
from clawtrace.session.session import Session

PASSING = """
assertions:
  - {type: tool_sequence, expected: [get_weather], mode: strict}
  - {type: tool_not_invoked, tool: rm}
  - {type: llm_call_count, min: 2, max: 2}
"""
FAILING = """
assertions:
  - {type: tool_was_called, tool: get_weather}
  - {type: tool_not_invoked, tool: get_weather, description: Weather is not asked for here.}
"""

THREE = ("delegation", "one_tool", "tool_error_retry")
"""Recordings of pydantic-ai."""


@pytest.fixture
def one_tool(recordings: Path) -> Path:
    """A recording of one tool call and two model calls."""
    return recordings / "pydantic-ai" / "one_tool" / "traces.otlp.jsonl"


@pytest.fixture
def checks(tmp_path: Path):
    """Write an assertions file."""

    def write(text: str) -> Path:
        path = tmp_path / "checks.yaml"
        path.write_text(text, encoding="utf-8")
        return path

    return write


def results_of(path: Path) -> dict:
    return json.loads(path.read_text(encoding="utf-8"))


def test_what_holds_passes(invoke, one_tool, checks, tmp_path) -> None:
    """Assertions that are true of the recording exit 0; case_id is the run id, model_id is null."""
    result = invoke("eval", "--traces", one_tool, "--assertions", checks(PASSING), "--report", "json=out/r.json")
    data = results_of(tmp_path / "out/r.json")

    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[-1].startswith("exit 0:")
    (case,) = data["cases"]
    (run,) = case["runs"]
    assert case["case_id"] == run["run_id"]
    assert case["model_id"] is None
    assert run["run_status"] is None
    assert run["trace"]["spans"] == 4
    assert run["trace"]["complete"] is True
    assert run["totals"]["input_tokens"] == 1013 + 1129
    assert [verdict["status"] for verdict in run["assertions"]] == ["pass"] * 3
    assert all(verdict["sql"] for verdict in run["assertions"])


def test_what_does_not_hold_fails_with_the_span_in_its_tree(invoke, one_tool, checks, tmp_path) -> None:
    """A false assertion exits 1; terminal, JSON and JUnit point at the same span."""
    result = invoke(
        "eval", "--traces", one_tool, "--one-run", "r1", "--assertions", checks(FAILING),
        "--report", "json=r.json", "--report", "junit=r.xml",
    )  # fmt: skip
    verdict = results_of(tmp_path / "r.json")["cases"][0]["runs"][0]["assertions"][1]
    root = ET.parse(tmp_path / "r.xml").getroot()

    assert result.exit_code == 1
    assert verdict["status"] == "fail"
    assert verdict["evidence"][0]["name"] == "execute_tool get_weather"
    assert "FAIL  r1 · tool_not_invoked\n  Weather is not asked for here.\n" in result.stdout
    assert "▶ ├─ execute_tool get_weather" in result.stdout
    assert "tool_was_called" not in result.stdout
    assert (root.get("tests"), root.get("failures"), root.get("errors")) == ("2", "1", "0")
    assert verdict["evidence"][0]["span_id"] in root.find(".//failure").text


def test_severity_and_strict(invoke, one_tool, checks) -> None:
    """A failure of severity warn exits 0, and 1 with --strict."""
    path = checks("assertions:\n  - {type: tool_not_invoked, tool: get_weather, severity: warn}\n")

    assert invoke("eval", "--traces", one_tool, "--assertions", path).exit_code == 0
    assert invoke("eval", "--traces", one_tool, "--assertions", path, "--strict").exit_code == 1


def test_no_trace_is_skipped_and_not_green(invoke, checks, tmp_path) -> None:
    """--one-run of an empty folder is exactly one run without a trace: exit 3, or 0 with --allow-missing-trace."""
    (tmp_path / "empty").mkdir()
    args = ["eval", "--traces", "empty", "--one-run", "nothing", "--assertions", checks(PASSING)]
    result = invoke(*args, "--report", "json=r.json")
    data = results_of(tmp_path / "r.json")

    assert result.exit_code == 3
    assert data["totals"]["runs"] == data["totals"]["skipped"] == 1
    assert data["cases"][0]["runs"][0]["run_id"] == "nothing"
    assert invoke(*args, "--allow-missing-trace").exit_code == 0
    assert invoke(*args, "--allow-missing-trace", "--strict").exit_code == 3


def test_no_run_at_all_is_not_green(invoke, checks, tmp_path) -> None:
    """A folder without recordings holds no run: nothing was evaluated, exit 3."""
    (tmp_path / "empty").mkdir()
    result = invoke("eval", "--traces", "empty", "--assertions", checks(PASSING))

    assert result.exit_code == 3
    assert "nothing was evaluated: there was no run" in result.stdout


def test_an_empty_list_of_assertions_is_not_green(invoke, one_tool, checks) -> None:
    """An empty assertion list is valid and exits 3."""
    result = invoke("eval", "--traces", one_tool, "--assertions", checks("assertions: []\n"))

    assert result.exit_code == 3
    assert "exit 3: nothing was evaluated" in result.stdout


def test_a_lost_parent_is_inconclusive(invoke, one_tool, checks, tmp_path) -> None:
    """Without its root span the run is incomplete: what lost spans could change is inconclusive, exit 3."""
    spans = json.loads(one_tool.read_text().splitlines()[0])
    kept = [span for span in _spans(one_tool) if span.get("parentSpanId")]
    spans["resourceSpans"][0]["scopeSpans"][0]["spans"] = kept
    (tmp_path / "torn.jsonl").write_text(json.dumps(spans) + "\n")
    args = ["eval", "--traces", "torn.jsonl", "--one-run", "--assertions", checks(PASSING)]
    result = invoke(*args)

    assert result.exit_code == 3
    assert "INCONCLUSIVE  torn.jsonl · more spans could change each\n" in result.stdout
    assert "• tool_not_invoked: " in result.stdout
    assert (result.stdout.count("INCONCLUSIVE"), result.stdout.count("  • ") > 1) == (1, True)
    assert result.stdout.count("was never received") == 1  # all of them could change for one reason: reported once
    assert result.stdout.count("the parent of 3 spans was never received") == 1
    assert result.stdout.index("INCOMPLETE") < result.stdout.index("INCONCLUSIVE")
    assert invoke(*args, "--gate-incomplete", "warn").exit_code == 0


def _spans(path: Path) -> list[dict]:
    return [
        span
        for line in path.read_text().splitlines()
        for resource in json.loads(line)["resourceSpans"]
        for scope in resource["scopeSpans"]
        for span in scope["spans"]
    ]


def test_a_warning_for_missing_data(invoke, recordings, checks, tmp_path) -> None:
    """trace_cost without any cost and any price warns, exits 3, and 0 with --allow-missing-data."""
    recording = recordings / "openai-agents+openinference" / "tool_error" / "traces.otlp.jsonl"
    (tmp_path / "unpriced.jsonl").write_text(recording.read_text().replace("gpt-4o", "my-own-model"))
    args = [
        "eval",
        "--traces",
        "unpriced.jsonl",
        "--assertions",
        checks("assertions: [{type: trace_cost, max_usd: 1}]"),
    ]
    result = invoke(*args)

    assert result.exit_code == 3
    assert "WARN  " in result.stdout
    assert invoke(*args, "--allow-missing-data").exit_code == 0
    assert invoke(*args, "--strict").exit_code == 1


def test_prices_of_the_assertions_file_count(invoke, recordings, checks, tmp_path) -> None:
    """`model_pricing` in the file decides a cost that is otherwise unknown."""
    recording = recordings / "openai-agents+openinference" / "tool_error" / "traces.otlp.jsonl"
    (tmp_path / "priced.jsonl").write_text(recording.read_text().replace("gpt-4o", "my-own-model"))
    pricing = "model_pricing:\n  glob:my-own-model*: {input_per_1k: 1, output_per_1k: 0}\n"
    path = checks(pricing + "assertions:\n  - {type: trace_cost, max_usd: 2.1}\n")
    result = invoke("eval", "--traces", "priced.jsonl", "--assertions", path)

    assert result.exit_code == 1
    assert "$2.14" in result.stdout


class TestGrouping:
    @pytest.mark.parametrize(
        ("flags", "ids"),
        [
            (["--run-per-dir"], ["pydantic-ai/delegation", "pydantic-ai/one_tool"]),
            (
                ["--run-per-file"],
                ["pydantic-ai/delegation/traces.otlp.jsonl", "pydantic-ai/one_tool/traces.otlp.jsonl"],
            ),
            (["--one-run", "all"], ["all"]),
            (["--one-run"], ["given"]),
        ],
    )
    def test_run_ids(self, flags, ids, invoke, recordings, checks, tmp_path) -> None:
        """The run ids are paths relative to the given folder, or the one that was given."""
        for name in ("delegation", "one_tool"):
            shutil.copytree(recordings / "pydantic-ai" / name, tmp_path / "given" / "pydantic-ai" / name)
        invoke("eval", "--traces", "given", *flags, "--assertions", checks(PASSING), "--report", "json=r.json")

        assert [case["case_id"] for case in results_of(tmp_path / "r.json")["cases"]] == ids

    def test_several_paths(self, invoke, recordings, checks, tmp_path) -> None:
        """--traces may be repeated; each file is a separate run."""
        paths = [recordings / "pydantic-ai" / name / "traces.otlp.jsonl" for name in ("delegation", "one_tool")]
        args = [arg for path in paths for arg in ("--traces", path)]
        invoke("eval", *args, "--run-per-dir", "--assertions", checks(PASSING), "--report", "json=r.json")

        assert results_of(tmp_path / "r.json")["totals"]["runs"] == 2


def test_standard_input(invoke, one_tool, checks) -> None:
    """`--traces -` reads standard input, plain or gzipped."""
    plain = one_tool.read_bytes()
    for data in (plain, gzip.compress(plain)):
        result = invoke("eval", "--traces", "-", "--assertions", checks(PASSING), input=data)

        assert result.exit_code == 0, result.output


def test_a_report_on_stdout_is_nothing_but_the_report(invoke, one_tool, checks) -> None:
    """`--report json=-` leaves stdout to the JSON; what people read goes to stderr."""
    result = invoke("eval", "--traces", one_tool, "--assertions", checks(PASSING), "--report", "json=-")

    assert json.loads(result.stdout)["exit_code"] == 0
    assert "exit 0:" in result.stderr


def test_out_holds_every_format(invoke, one_tool, checks, tmp_path) -> None:
    """--out writes the reports of a folder of results into the folder."""
    invoke("eval", "--traces", one_tool, "--assertions", checks(FAILING), "--out", "results")

    assert results_of(tmp_path / "results/report.json")["exit_code"] == 1
    assert ET.parse(tmp_path / "results/report.xml").getroot().get("failures") == "1"
    assert {path.name for path in (tmp_path / "results").iterdir()} == {
        cls.file_name for cls in formats().values() if cls.file_name
    }


def test_quiet_and_verbose(invoke, one_tool, checks) -> None:
    """-q prints the summary only; -v also what passed, with its SQL."""
    args = ["eval", "--traces", one_tool, "--assertions", checks(PASSING)]

    assert len(invoke(*args, "-q").stdout.splitlines()) == 2
    verbose = invoke(*args, "-v").stdout
    assert verbose.count("PASS  ") == 3
    assert "SELECT" in verbose


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "assertions:\n  - {type: tool_seqence, expected: [a]}\n",
            ["checks.yaml:2:12", "Did you mean `tool_sequence`?"],
        ),
        ("assertions:\n  - type: llm_call_count\n    min: 3\n    max: 1\n", ["checks.yaml:"]),
        ("assertions: [\n", ["checks.yaml:"]),
        ("assertion: []\n", ["checks.yaml:1:1", "`assertion`"]),
    ],
)
def test_a_mistake_in_the_assertions_names_its_place(text, said, invoke, one_tool, checks) -> None:
    """Exit 2 before anything is judged, with file, line, column, and what would be valid."""
    result = invoke("eval", "--traces", one_tool, "--assertions", checks(text))

    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert all(line.startswith("error: ") for line in result.stderr.splitlines())
    for words in said:
        assert words.lower() in result.stderr.lower()


def test_a_named_file_that_is_no_otlp_is_a_mistake(invoke, checks, tmp_path) -> None:
    """A file that was named must be OTLP: exit 2; one in a folder is passed over and said so."""
    (tmp_path / "notes.md").write_text("# nothing\n")
    path = checks(PASSING)
    named = invoke("eval", "--traces", "notes.md", "--assertions", path)
    folder = invoke("eval", "--traces", ".", "--assertions", path)

    assert named.exit_code == 2
    assert "`notes.md` is not OTLP" in named.stderr
    assert folder.exit_code == 3
    assert "note: skipped 2 files that are not OTLP" in folder.stderr


def test_a_store_given_as_a_recording(invoke, tmp_path) -> None:
    with Session.open(tmp_path / "spans.duckdb"):
        pass
    refused = invoke("inspect", "spans.duckdb")

    assert refused.exit_code == 2
    assert "`spans.duckdb` cannot be read: it is a store; give it with --store" in refused.stderr


class TestInspect:
    def test_facts_are_the_truth(self, invoke, recordings) -> None:
        """`inspect --json` of a recording says what really happened: calls, tokens, tools, errors."""
        name = "pydantic-ai/tool_error_retry"  # all recordings: tests/facts/test_conformance.py
        truth = json.loads((recordings / name / "truth.json").read_text())
        client, run_id = name.split("/")
        command = ["inspect", "--traces", recordings / client, "--run-per-dir", "--run-id", run_id, "--json"]
        data = json.loads(invoke(*command).stdout)
        (run,) = data["runs"]

        assert data["schema"] == "clawtrace.inspect/1"
        assert run["run_id"] == run_id
        tools = [(call["name"], call["outcome"]) for call in run["tool_calls"]]
        assert tools == [(tool["name"], "error" if tool["error"] else "ok") for tool in truth["tools"]]
        assert [call["input_tokens"] for call in run["llm_calls"]] == [c["input_tokens"] for c in truth["llm_calls"]]
        assert run["totals"]["output_tokens"] == sum(call["output_tokens"] for call in truth["llm_calls"])

    def test_text(self, invoke, recordings) -> None:
        """Without --json each run is shown with its tree, totals, delegations and how spans became calls."""
        text = invoke("inspect", "--traces", recordings / "pydantic-ai/delegation", "--run-per-dir").stdout

        assert text.splitlines()[0].startswith("delegation  8 spans in 1 trace, ")
        assert "│  └─ invoke_agent researcher" in text
        assert "llm calls 4 · tool calls 2 · tokens 5,280 in, 184 out · cost $0.0150" in text
        assert "delegations assistant → researcher" in text
        assert "counted: 4 spans with usage -> 4 model calls" in text

    def test_what_cannot_be_known_is_a_question_mark(self, invoke, recordings) -> None:
        """A client without tool spans has unknown tool calls, not 0; null in JSON."""
        path = recordings / "openai-sdk+official/one_tool"
        (run,) = json.loads(invoke("inspect", "--traces", path, "--run-per-dir", "--json").stdout)["runs"]

        assert "tool calls ?" in invoke("inspect", "--traces", path, "--run-per-dir").stdout
        assert run["totals"]["tool_calls"] is None
        assert run["tool_calls"] is None

    def test_an_unknown_run_is_a_mistake(self, invoke, recordings) -> None:
        """--run-id that does not exist exits 2 and suggests the nearest."""
        result = invoke("inspect", "--traces", recordings / "pydantic-ai", "--run-per-dir", "--run-id", "one_tol")

        assert result.exit_code == 2
        assert "Did you mean `one_tool`?" in result.stderr

    def test_recordings_can_be_named_without_a_flag(self, invoke, recordings) -> None:
        """`clawtrace inspect FOLDER` is `--traces FOLDER`; both together are all of them, and a store is another source."""
        one, other = recordings / "pydantic-ai/one_tool", recordings / "openai-sdk+official/one_tool"
        named = invoke("inspect", one, "--run-per-dir", "--json").stdout

        assert named == invoke("inspect", "--traces", one, "--run-per-dir", "--json").stdout
        assert len(json.loads(invoke("inspect", one, "--traces", other, "--run-per-dir", "--json").stdout)["runs"]) == 2
        assert invoke("inspect", one, "--store", one / "truth.json").exit_code == 2

    def test_nothing_to_read(self, invoke) -> None:
        """Neither --traces nor a store is a mistake that says what to give."""
        result = invoke("inspect")

        assert result.exit_code == 2
        assert "give --traces or --store" in result.stderr

    def test_the_newest_store_of_this_folder(self, invoke, recordings: Path, tmp_path: Path) -> None:
        """Where nothing is named, what a campaign or `serve` left last is read; a command that deletes wants a name."""
        from clawtrace.receiver.recordings.recording import Grouping

        for age, (folder, scenario) in enumerate([("serve", "one_tool"), ("campaigns/smoke/default-1", "delegation")]):
            path = tmp_path / "outputs" / folder / "spans.duckdb"
            path.parent.mkdir(parents=True)
            with Session.open(path) as session:
                session.load_recordings([recordings / "pydantic-ai" / scenario], Grouping("dir"))
            os.utime(path, (1000 + age, 1000 + age))
        result = invoke("inspect", "--json")

        assert result.exit_code == 0
        assert [run["run_id"] for run in json.loads(result.stdout)["runs"]] == ["delegation"]
        assert "--store outputs/campaigns/smoke/default-1/spans.duckdb" in result.stderr
        assert invoke("inspect", "--store", "outputs/serve/spans.duckdb").stderr == ""
        assert invoke("runs", "delete", "delegation").exit_code == 2


class TestStore:
    @pytest.fixture
    def store(self, tmp_path: Path, recordings: Path) -> Path:
        """A store on disk with two recorded runs."""
        from clawtrace.receiver.recordings.recording import Grouping

        path = tmp_path / "spans.duckdb"
        with Session.open(path) as session:
            folders = [recordings / "pydantic-ai" / name for name in THREE]
            session.load_recordings(folders, Grouping("dir"))
        return path

    def test_inspect_and_query_read_it(self, store, invoke) -> None:
        """--store shows the runs that the file holds."""
        runs = json.loads(invoke("inspect", "--store", store, "--json").stdout)["runs"]
        rows = invoke("query", "SELECT run_id FROM runs ORDER BY run_id", "--store", store, "--format", "csv").stdout

        assert {"delegation", "one_tool", "tool_error_retry"} <= {run["run_id"] for run in runs}
        assert rows.split() == ["run_id", *sorted(run["run_id"] for run in runs)]

    @pytest.mark.usefixtures("store")
    def test_the_projects_store_is_the_default(self, invoke, tmp_path) -> None:
        """Without --store the one of clawtrace.yaml is read."""
        (tmp_path / "clawtrace.yaml").write_text("store: {url: spans.duckdb}\n")

        assert invoke("inspect", "--json").stdout == invoke("inspect", "--store", "spans.duckdb", "--json").stdout != ""

    def test_a_project_store_that_is_not_there_is_a_mistake(self, invoke, tmp_path) -> None:
        """A store that does not exist is not created: exit 2."""
        (tmp_path / "clawtrace.yaml").write_text("store: {url: none.duckdb}\n")
        result = invoke("inspect")

        assert result.exit_code == 2
        assert "does not exist yet" in result.stderr
        assert not (tmp_path / "none.duckdb").exists()

    def test_a_file_that_is_no_store_is_refused(self, invoke, tmp_path) -> None:
        """Any other file is an error without a traceback, and is left as it was."""
        (tmp_path / "x.duckdb").write_text("not a database")
        result = invoke("inspect", "--store", "x.duckdb")

        assert result.exit_code == 2
        assert result.stderr.startswith("error: ")
        assert (tmp_path / "x.duckdb").read_text() == "not a database"


class TestQuery:
    @pytest.fixture
    def ask(self, invoke, recordings: Path):
        """Ask the recordings of pydantic-ai."""

        def call(sql: str, *args: str):
            folders = [of for name in THREE for of in ("--traces", recordings / "pydantic-ai" / name)]
            return invoke("query", sql, *folders, "--run-per-dir", *args)

        return call

    SQL = "SELECT run_id, name, error, n > 0 AS some, n FROM (SELECT run_id, name, max(error) AS error, count(*) AS n FROM tool_calls WHERE run_id IN ('delegation', 'one_tool', 'tool_error_retry') GROUP BY 1, 2) ORDER BY 1, 2"

    def test_table(self, ask) -> None:
        """The default is an aligned table; NULL is empty, numbers stand to the right; the count goes to stderr."""
        chosen = "run_id IN ('delegation', 'one_tool', 'tool_error_retry')"
        result = ask(f"SELECT name, count(*) AS n FROM tool_calls WHERE {chosen} GROUP BY 1 ORDER BY 1")

        assert result.stdout.splitlines() == [
            "name          n",
            "get_weather   2",
            "refund_order  1",
            "researcher    1",
        ]
        assert result.stderr.endswith("3 rows\n")

    def test_csv(self, ask) -> None:
        """CSV has a header; NULL is an empty field, truth values are words."""
        assert ask(self.SQL, "--format", "csv").stdout.splitlines() == [
            "run_id,name,error,some,n",
            "delegation,get_weather,,true,1",
            "delegation,researcher,,true,1",
            "one_tool,get_weather,,true,1",
            "tool_error_retry,refund_order,refund service unavailable,true,1",
        ]

    def test_json(self, ask) -> None:
        """JSON is a list of objects with NULL as null."""
        rows = json.loads(ask(self.SQL, "--json").stdout)

        assert rows == json.loads(ask(self.SQL, "--format", "json").stdout)
        assert rows[0] == {"run_id": "delegation", "name": "get_weather", "error": None, "some": True, "n": 1}

    def test_parquet(self, ask, tmp_path) -> None:
        """Parquet has each column with its type; NULL is NULL."""
        (tmp_path / "rows.parquet").write_bytes(ask(self.SQL, "--format", "parquet").stdout_bytes)
        with duckdb.connect() as engine:
            rows = engine.read_parquet(str(tmp_path / "rows.parquet"))
            types, found = list(map(str, rows.types)), rows.fetchall()

        assert types == ["VARCHAR", "VARCHAR", "VARCHAR", "BOOLEAN", "BIGINT"]
        assert found[0] == ("delegation", "get_weather", None, True, 1)

    def test_wrong_sql_is_shown_with_the_engines_words_and_the_relations(self, ask) -> None:
        """Exit 2, what the engine said, the relations, and the columns of those that the question or the answer names."""
        result = ask("SELECT nam FROM tool_calls")
        misspelt = ask("SELECT name FROM tool_cals")

        for one in (result, misspelt):
            assert one.exit_code == 2
            assert "  The relations are runs, spans, llm_calls, tool_calls, " in one.stderr
            assert "  tool_calls(run_id, call_no, span_id," in one.stderr
            assert "llm_calls(" not in one.stderr
        assert '"nam" not found' in result.stderr

    @pytest.mark.parametrize(
        "sql",
        [
            "SELECT * FROM read_text('/etc/passwd')",
            "COPY (SELECT 1) TO 'stolen.csv'",
        ],  # the others: tests/assertions/test_sql_safety.py
    )
    def test_only_reading_is_possible(self, sql, ask, tmp_path) -> None:
        """Writing, attaching, settings and files are refused with exit 2."""
        result = ask(sql)

        assert result.exit_code == 2
        assert result.stdout == ""
        assert list(tmp_path.iterdir()) == []


class TestAssertionsThroughAPipe:
    """A file need not lie anywhere."""

    def test_standard_input(self, program, one_tool) -> None:
        """`-` reads it; a mistake in it is reported as of any other file."""
        asked = ("eval", "--traces", one_tool, "--assertions", "-")

        assert program(*asked, input=PASSING).returncode == 0
        assert program(*asked, input=FAILING).returncode == 1
        wrong = program(*asked, input="assertions: [{type: tool_sequense}]")
        assert wrong.returncode == 2
        assert "error: standard input:1:21: `assertions.0.type`" in wrong.stderr

    def test_a_shells_process_substitution(self, one_tool, tmp_path) -> None:
        """`<(…)` names a pipe that can be read once; paths in it are relative to the working folder."""
        (tmp_path / "hooks.py").write_text("def f(): return True\n")
        text = "assertions: [{type: python_hook, path: hooks.py, callable_name: f}]"
        for content, code, said in ((PASSING, 0, ""), (text, 2, "hooks are off")):
            (tmp_path / "content").write_text(content)
            command = f"{PROGRAM} eval --traces {one_tool} --assertions <(cat content)"
            ended = subprocess.run(
                ["bash", "-c", command],
                cwd=tmp_path,
                env=clean_environment(),
                capture_output=True,
                text=True,
                timeout=60,
            )

            assert ended.returncode == code, ended.stderr
            assert said in ended.stderr

    def test_what_cannot_be_meant(self, program, one_tool, tmp_path) -> None:
        """One standard input for two things, or for the command; a folder."""
        both = program("eval", "--traces", "-", "--assertions", "-", input=PASSING)
        wrapped = program("run", "--assertions", "-", "--", "true", input=PASSING)
        folder = program("eval", "--traces", one_tool, "--assertions", tmp_path)

        assert [ended.returncode for ended in (both, wrapped, folder)] == [2, 2, 2]
        assert "both read standard input" in both.stderr
        assert "Standard input belongs to the command" in wrapped.stderr
        assert "is a folder; `--assertions` names a file in it" in folder.stderr
