"""`clawtrace query --verdict`: the SQL and the function that a verdict shows are what decided it, wherever its runs are."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest
import yaml

from clawtrace.assertions.probe import Probe
from clawtrace.assertions.registry import get

pytestmark = pytest.mark.full

ROOT = Path(__file__).parents[3]
RECORDINGS = ROOT / "tests/recordings"
CASES = ROOT / "tests/assertions/cases"
AGENT = Path(__file__).parents[1] / "agent.py"

SCOPED = """
- {id: by an agent, type: tool_was_called, tool: "re:.*", agent: "re:.*"}
- {id: by no agent, type: no_loops, agent: nobody}
- {id: in a turn, type: llm_call_count, count: 2, turn: 1}
- {id: in the last turn, type: tool_sequence, steps: [search, {optional: b}], turn: last}
- {id: of one agent, type: trace_token_budget, max_total_tokens: 500, agent: "glob:*e*"}
- {id: a file, type: file_exists, path: a.txt}
"""


def assertions(number: int) -> list[dict]:
    """The assertion of the first cases of every type, and some about a part of a run."""
    asked = yaml.safe_load(SCOPED)
    for file in sorted(CASES.glob("*.yaml")):
        for place, case in enumerate(yaml.safe_load(file.read_text(encoding="utf-8"))[:number]):
            asked.append({"id": f"{file.stem}-{place}", "type": file.stem, **case["assert"]})
    return asked


@pytest.fixture
def judged(invoke, tmp_path):
    """Judge recordings; return the JSON results."""

    def judge(*where: str, number: int = 1) -> Path:
        (tmp_path / "checks.yaml").write_text(yaml.safe_dump({"assertions": assertions(number)}))
        results = tmp_path / "out/results.json"
        ended = invoke("eval", *where, "--assertions", "checks.yaml", "--report", f"json={results}", "-q")
        assert results.is_file(), ended.output
        return results

    return judge


def verdicts_of(results: Path) -> dict[str, dict]:
    cases = json.loads(results.read_text())["cases"]
    return {one["verdict_id"]: one for case in cases for run in case["runs"] for one in run["assertions"]}


def check_all(ended, results: Path) -> None:
    """Every verdict came again, but for those that looked at the world."""
    verdicts = json.loads(ended.stdout)["verdicts"]
    stored = verdicts_of(results)

    assert [one["differs"] for one in verdicts if one["differs"]] == []
    assert [one["verdict_id"] for one in verdicts] == list(stored)
    for one in verdicts:
        probe = issubclass(get(stored[one["verdict_id"]]["type"]), Probe)
        assert one["rerun"] == ("not rerun" if probe else "the same"), one
    assert ended.exit_code == 3  # for the probes


@pytest.mark.smoke
@pytest.mark.full
def test_every_verdict_of_recordings_comes_again(invoke, judged) -> None:
    """Of a recording of a delegation, an assertion of every type and some within an agent or a turn."""
    results = judged("--traces", str(RECORDINGS / "google-adk/delegation"), "--run-per-dir")
    check_all(invoke("query", "--verdict", results, "--json"), results)


@pytest.mark.full
def test_a_verdict_on_what_may_belong_to_an_agent_comes_again(invoke, judged) -> None:
    """Only calls that may belong to the agent have the tools' names: the shown SQL finds them, too."""
    results = judged("--traces", str(RECORDINGS / "agno+openllmetry/soak-streamed"), "--run-per-dir")
    check_all(invoke("query", "--verdict", results, "--json"), results)
    by_an_agent = verdicts_of(results)["soak-streamed/by an agent"]

    assert by_an_agent["status"] == "inconclusive"
    assert "get_weather" in by_an_agent["sql"]


def products():
    """The folders of recordings; those of the corpus where it is."""
    for folder, marks in ((RECORDINGS, []), (ROOT.parent / "shared/corpus", [pytest.mark.needs("corpus")])):
        for product in sorted(folder.iterdir()) if folder.is_dir() else ():
            if product.is_dir() and product.name != "logs":
                yield pytest.param(product, marks=marks, id=f"{folder.name}/{product.name}")


@pytest.mark.full
@pytest.mark.parametrize("product", list(products())[::24])
def test_every_verdict_of_many_recordings_comes_again(invoke, judged, product) -> None:
    """Of the recordings of every twenty-fourth client, as of the one above."""
    results = judged("--traces", str(product), "--run-per-dir")
    check_all(invoke("query", "--verdict", results, "--json"), results)


def test_a_verdict_names_what_decided_and_its_sql_can_be_pasted(invoke, judged) -> None:
    """A row, the rows that the function was given, its name; the SQL alone, within agent and turn, finds these rows."""
    where = ("--traces", str(RECORDINGS / "google-adk/delegation"), "--run-per-dir")
    results = judged(*where)
    shown = invoke("query", "--verdict", f"{results}#delegation/in the last turn").stdout
    (rerun,) = json.loads(invoke("query", "--verdict", f"{results}#in the last turn", "--json").stdout)["verdicts"]
    pasted = invoke("query", rerun["sql"], *where, "--turn", "last", "--json")

    assert "decided by clawtrace.assertions.forms.order.Order.decide" in shown
    assert "holds false" in shown
    assert rerun["rows"]
    assert json.loads(pasted.stdout) == rerun["rows"]
    one_agent = verdicts_of(results)["delegation/of one agent"]
    pasted = invoke("query", one_agent["sql"], *where, "--agent", "glob:*e*", "--json")
    again = json.loads(invoke("query", "--verdict", f"{results}#of one agent", "--json").stdout)
    assert json.loads(pasted.stdout) == again["verdicts"][0]["row"]
    assert json.loads(invoke("query", one_agent["sql"], *where, "--json").stdout) != again["verdicts"][0]["row"]


@pytest.mark.full
def test_what_differs_is_said(invoke, judged) -> None:
    """Another status, or SQL that answers otherwise, is exit code 1; where every verdict asked for comes again it is 0."""
    results = judged("--traces", str(RECORDINGS / "pydantic-ai/one_tool"), "--run-per-dir")
    assert invoke("query", "--verdict", f"{results}#no_loops-0").exit_code == 0

    data = json.loads(results.read_text())
    stored = {one["id"]: one for one in data["cases"][0]["runs"][0]["assertions"]}
    stored["no_loops-0"]["status"] = "fail"
    sql = stored["tool_was_called-0"]["sql"]
    stored["tool_was_called-0"]["sql"] = sql.replace("AS holds", "IS NOT NULL AS holds")
    results.write_text(json.dumps(data))
    ended = invoke("query", "--verdict", results)

    assert ended.exit_code == 1
    assert 'differs  one_tool/no_loops-0  fail\n  status was "fail", and is "pass"' in ended.stdout
    assert "differs  one_tool/tool_was_called-0" in ended.stdout
    assert ended.stdout.count("differs") == 2


def test_results_and_store_may_move_together(invoke, tmp_path) -> None:
    """Where the runs are is written relative to the results; the runs of a store need no recording."""
    from clawtrace.receiver.recordings.recording import Grouping
    from clawtrace.session.session import Session

    (tmp_path / "one").mkdir()
    with Session.open(tmp_path / "one/spans.duckdb") as session:
        session.load_recordings([RECORDINGS / "pydantic-ai/one_tool"], Grouping("one", "a/b#c"))
    (tmp_path / "checks.yaml").write_text("assertions: [{type: tool_was_called, tool: rm}]")
    evaluated = invoke(
        "eval", "--store", "one/spans.duckdb", "--assertions", "checks.yaml", "--report", "json=one/r.json"
    )
    command = next(line for line in evaluated.stdout.splitlines() if line.startswith("What decided: "))
    shutil.move(tmp_path / "one", tmp_path / "two")

    assert command == "What decided: clawtrace query --verdict 'one/r.json#a/b#c/tool_was_called'"
    assert invoke("query", "--verdict", "two/r.json#a/b#c/tool_was_called").exit_code == 0
    (tmp_path / "two/spans.duckdb").rename(tmp_path / "elsewhere.duckdb")
    assert "give its new path with --store" in invoke("query", "--verdict", "two/r.json").stderr
    assert invoke("query", "--verdict", "two/r.json", "--store", "elsewhere.duckdb").exit_code == 0


def test_verdicts_of_a_campaign_come_again(invoke, tmp_path) -> None:
    """The results that a suite keeps name its store; a case's id is enough where it has one verdict."""
    command = json.dumps([sys.executable, str(AGENT), "search"])
    head = "schema_version: 1\n{0}_id: s\ntitle: S\n"
    for name, text in {
        "suites/s.yaml": head.format("suite") + "case_selection: {include_case_ids: [s]}\n",
        "cases/s/test.yaml": head.format("case") + f"runner: {{type: command, command: {command}}}\ninput: {{}}\n"
        "assertions: [{type: no_loops}, {type: tool_not_invoked, tool: search}, {type: agent_exit_code, value: 0}]\n",
    }.items():
        (tmp_path / "configs" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "configs" / name).write_text(text)
    ended = invoke("eval", "--suite", "s")
    (results,) = tmp_path.rglob("report.json")
    again = invoke("query", "--verdict", f"{results.relative_to(tmp_path)}#s/tool_not_invoked")

    assert ended.exit_code == 1, ended.output
    assert "clawtrace query --verdict 'outputs/" in ended.stdout
    assert again.exit_code == 0, again.output
    assert "`search` was attempted 1 time (1 ok); it must not be." in again.stdout
    assert invoke("query", "--verdict", f"{results.relative_to(tmp_path)}#no_loops").exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--verdict", "none.json#x"), "cannot be read"),
        (("--verdict", "checks.yaml"), "is not `clawtrace.results/1`"),
        (("--verdict", "out/results.json#no_lops-0"), "no verdict, run, case or assertion 'no_lops-0'"),
        (("--verdict", "out/results.json", "--agent", "a"), "--verdict has its own agent and turn"),
        (("--verdict", "out/results.json", "SELECT 1"), "Give one SELECT, or --verdict"),
        (("SELECT 1", "--traces", "checks.yaml", "--turn", "first"), "--turn"),
        (("SELECT 1", "--traces", "checks.yaml", "--agent", "re:("), "--agent"),
        ((), "Give one SELECT, or --verdict"),
    ],
)
def test_mistakes_are_reported(invoke, judged, tmp_path, arguments, said) -> None:
    """Each says what is wrong, with exit code 2."""
    if "out/results.json" in " ".join(arguments):
        judged("--traces", str(RECORDINGS / "pydantic-ai/one_tool"), "--run-per-dir", number=0)
    (tmp_path / "checks.yaml").write_text("assertions: []")
    ended = invoke("query", *arguments)

    assert ended.exit_code == 2, ended.output
    assert said in " ".join(ended.stderr.split())


def test_a_verdict_that_a_log_answered_comes_again(invoke, tmp_path) -> None:
    """The results name the run that holds the log's spans; of recordings the log is read again."""
    log = ROOT / "tests/logs/samples/gateway-plain.log"
    asked = [{"type": "tool_was_called", "tool": "memory.search"}, {"type": "tool_not_called", "tool": "write_file"}]
    (tmp_path / "empty.jsonl").write_text("")
    (tmp_path / "checks.yaml").write_text(
        yaml.safe_dump({"assertions": [{**one, "log_path": str(log)} for one in asked]})
    )
    invoke(
        "eval", "--traces", "empty.jsonl", "--one-run", "r1", "--assertions", "checks.yaml", "--report", "json=r.json"
    )
    stored = verdicts_of(tmp_path / "r.json")
    ended = invoke("query", "--verdict", "r.json", "--json")

    assert [one["status"] for one in stored.values()] == ["pass", "fail"]
    assert all(one["asked_run"] for one in stored.values())
    assert [one["rerun"] for one in json.loads(ended.stdout)["verdicts"]] == ["the same"] * 2, ended.output
