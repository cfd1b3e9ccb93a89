"""Again: what did not pass, what was not decided, what came late, what broke, and within a budget (spec: config.md §7)."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.cli.conftest import PROGRAM, clean_environment
from tests.cli.evaluating.test_reuse import AGENT, SEARCHED, Project, reused

pytestmark = pytest.mark.full

QUARANTINED = """\
schema_version: 1
suite_id: s
title: S
quarantine_tags: [flaky]
"""
NOT_SEARCHED = "  - {type: tool_not_invoked, tool: search}"
FLAKY = """\
schema_version: 1
case_id: f
title: f
runner:
  type: command
  command: 'case "$CLAWTRACE_RUN_ID" in */2-*) word=search;; *) word=look;; esac; exec {python} {agent} "$word"'
  inputs: ["{agent}"]
input: {{messages: [{{role: user, content: go}}]}}
assertions: [{{type: tool_was_called, tool: search, min_pass_rate: {minimum}}}]
"""
SPENDING = Path(__file__).parents[1] / "spending_agent.py"

IN_PROCESS = True


@pytest.fixture
def project(tmp_path, program):
    """Two cases: `a` passes, `b` fails."""
    found = Project(tmp_path, program)
    found.case("b", assertions=NOT_SEARCHED)
    return found


class TestLastFailed:
    def test_only_what_did_not_pass(self, project):
        """It is reused like any other run, or run again with `--no-reuse`."""
        project.eval()

        assert project.eval("--last-failed") == {("b", 1): (True, "fail")}
        assert project.eval("--last-failed", "--no-reuse") == {("b", 1): (False, "fail")}
        project.case("b")
        assert project.eval("--last-failed") == {("b", 1): (True, "pass")}

    def test_what_was_edited_since_has_not_passed(self, project):
        """Nor has what never ran, or was not judged by these assertions."""
        project.eval()
        project.case("c")
        project.case("a", assertions="  - {type: tool_was_called, tool: search, description: x}")

        assert set(project.eval("--last-failed")) == {("a", 1), ("b", 1), ("c", 1)}

    def test_nothing_failed(self, project):
        """Nothing is run, nothing is written, and that is said."""
        project.case("b")
        project.eval()
        (project.root / "report.out").unlink()
        ended = project.clawtrace("eval", "--suite", "s", "--last-failed", "--report", "json=report.out")

        assert ended.returncode == 0
        assert "Everything passed last time" in ended.stderr
        assert not (project.root / "report.out").exists()


class TestLastFailedAndRates:
    """What a campaign came to as a whole is what counts, and a rate of a part would be another rate."""

    def flaky(self, project, minimum: float) -> None:
        """Of the case `a` every second run calls the tool."""
        for name in "ab":
            (project.root / f"configs/cases/{name}/test.yaml").unlink()
        text = FLAKY.format(minimum=minimum, python=sys.executable, agent=str(AGENT))
        project.write("configs/cases/f/test.yaml", text)

    def test_a_case_that_reached_its_rate_has_passed(self, project):
        """Its failed repetition alone is no reason to look again, and would not reach the rate by itself."""
        self.flaky(project, 0.5)
        runs = project.eval("--repeat", "2")
        assert runs == {("f", 1): (False, "fail"), ("f", 2): (False, "pass")}
        assert project.ended.returncode == 0
        ended = project.clawtrace("eval", "--suite", "s", "--repeat", "2", "--last-failed")

        assert ended.returncode == 0
        assert "Everything passed last time" in ended.stderr

    def test_of_a_case_that_did_not_all_repetitions_are_looked_at(self, project):
        """So that the rate is that of the case."""
        self.flaky(project, 0.9)
        project.eval("--repeat", "2")

        assert project.eval("--repeat", "2", "--last-failed") == {("f", 1): (True, "fail"), ("f", 2): (True, "pass")}

    def test_below_the_suites_threshold_nothing_passed(self, project):
        """Every case reached its rate and the suite did not: exit code 1, and again 1."""
        self.flaky(project, 0.5)
        project.write("configs/suites/s.yaml", "schema_version: 1\nsuite_id: s\ntitle: S\nthresholds: {default: 0.9}\n")
        project.eval("--repeat", "2")
        assert project.ended.returncode == 1

        assert len(project.eval("--repeat", "2", "--last-failed")) == 2
        assert project.ended.returncode == 1

    def test_what_strict_refuses_has_not_passed(self, project):
        """A warning passes by default, and fails under `--strict`, also the second time."""
        project.case("b", assertions="  - {type: tool_not_invoked, tool: search, severity: warn}")
        project.eval()
        assert project.ended.returncode == 0
        ended = project.clawtrace("eval", "--suite", "s", "--last-failed")
        assert ended.returncode == 0

        assert set(project.eval("--last-failed", "--strict")) == {("b", 1)}
        assert project.ended.returncode == 1


def test_rerun_inconclusive_runs_afresh_what_was_not_decided(project):
    """An agent whose trace says nothing of tokens cannot be judged by them; the others are reused."""
    project.case("b", assertions="  - {type: token_budget, max_total_tokens: 10}")
    assert project.eval()["b", 1] == (False, "inconclusive")
    assert project.eval()["b", 1] == (True, "inconclusive")

    assert project.eval("--reuse", "decided") == {("a", 1): (True, "pass"), ("b", 1): (False, "inconclusive")}


def test_all_stored_runs_are_judged_again(project):
    """No agent is run; what is kept of the judgement is not believed, but made anew."""
    project.eval()
    (kept,) = (project.root / "outputs/campaigns/s").glob("default-*/evaluations/*/-/a/1.json")
    data = json.loads(kept.read_text())
    data["result"]["status"] = "warn"
    kept.write_text(json.dumps(data))
    assert project.eval()["a", 1] == (True, "warn")

    assert project.eval("--reuse", "all")["a", 1] == (True, "pass")
    assert project.eval()["a", 1] == (True, "pass")


class TestBudget:
    def spending(self, project, *, model="gpt-4o") -> None:
        for name in "abc":
            project.case(name)
            file = project.root / f"configs/cases/{name}/test.yaml"
            text = file.read_text().replace("{{case_dir}}/../../../agents/main.py", str(SPENDING))
            file.write_text(text.replace('search, "x"', f'"{model}"'))

    def left_out(self, project):
        data = json.loads((project.root / "report.out").read_text())
        return {run["case_id"]: run["reason"] for run in data["not_run"]}

    def test_nothing_new_starts_when_the_tokens_are_used(self, project):
        """Each run uses 1 500; the third is not run, and the report says why."""
        self.spending(project)
        runs = project.eval("--max-tokens", "2000")

        assert set(runs) == {("a", 1), ("b", 1)}
        assert self.left_out(project) == {"c": "3000 tokens have been used, and `--max-tokens` is 2000"}
        assert project.ended.returncode in (1, 3)

    def test_reused_runs_take_nothing(self, project):
        """So a campaign goes on where its budget ended."""
        self.spending(project)
        project.eval("--max-tokens", "2000")
        runs = project.eval("--max-tokens", "2000")

        assert reused(runs) == {"a", "b"}
        assert self.left_out(project) == {}

    def test_the_cost(self, project):
        """Each run costs 0.0075 USD by the price of the model."""
        self.spending(project)
        project.eval("--max-cost", "0.01")

        assert self.left_out(project) == {"c": "0.0150 USD have been spent, and `--max-cost` is 0.01"}

    def test_an_unknown_cost_is_reported(self, project):
        """A limit that cannot see must not look as if it had held."""
        self.spending(project, model="no-such-model")
        runs = project.eval("--max-cost", "0.01")

        assert len(runs) == 3
        assert (
            "`--max-cost`: 0.0000 USD is a lower bound (the cost of 3 of 3 runs is not known)" in project.ended.stderr
        )


def test_dry_run_estimates_from_several_stored_runs(project):
    """The median of the repetitions of a case, and the least."""
    project.eval("--repeat", "3")
    (folder,) = (project.root / "outputs/campaigns/s").glob("default-*/runs/-/a")
    for number, seconds in (("1", 1000), ("2", 2000), ("3", 9000)):
        data = json.loads((folder / number / "run.json").read_text())
        (folder / number / "run.json").write_text(json.dumps(data | {"duration_ms": seconds, "tokens": 100}))
    ended = project.clawtrace("eval", "--suite", "s", "--dry-run", "--case", "a", "--repeat", "5")

    assert (
        "Based on 3 stored runs of the same cases, they typically take 4.0 s of agents' time, 200 tokens, and at least 2.0 s of agents' time"
        in ended.stdout
    )


class TestRetries:
    CASE = """\
schema_version: 1
case_id: a
title: a
runner:
  type: command
  command: {command}
  setup: ['test -e "$MARK/x" || {{ touch "$MARK/x"; exit 1; }}']
  pass_env: [MARK]
  inputs: []
input: {{messages: [{{role: user, content: go}}]}}
assertions: [{{type: agent_exit_code, value: 0}}]
"""

    def retrying(self, project, tmp_path_factory, command="'true'"):
        (project.root / "configs/cases/b/test.yaml").unlink()
        project.write("configs/cases/a/test.yaml", self.CASE.format(command=command))
        policy = "execution_policy: {infrastructure_retries: 1}\n"
        project.write("configs/run_profiles/p.yaml", "schema_version: 1\nrun_profile_id: p\ntitle: P\n" + policy)
        mark = tmp_path_factory.mktemp("apart")
        self.mark = str(mark)
        report = project.root / "report.out"
        args = ("eval", "--suite", "s", "--run-profile", "p", "--report", f"json={report}")
        ended = project.clawtrace(*args, env={"MARK": str(mark)})
        (case,) = json.loads(report.read_text())["cases"]
        return ended, case["runs"][0]

    def test_a_runner_that_could_not_start_is_tried_again(self, project, tmp_path_factory):
        """The report says why; the second attempt is a separate run."""
        ended, run = self.retrying(project, tmp_path_factory)

        assert len(run["retried"]) == 1
        assert run["retried"][0].startswith("attempt 1 failed: setup command 1")
        assert run["run_id"].endswith("-attempt2")
        assert "RETRIED  a: attempt 1 failed: setup command 1" in ended.stdout

    def test_an_agents_own_failure_is_not(self, project, tmp_path_factory):
        """Retrying until it passes would measure nothing."""
        _, run = self.retrying(project, tmp_path_factory, command="'exit 1'")

        assert run["run_status"] == "failed"
        assert len(run["retried"]) == 1

    def test_without_retries_it_broke(self, project):
        """By default nothing is tried twice."""
        project.write(
            "configs/cases/a/test.yaml",
            self.CASE.format(command="'true'").replace("pass_env: [MARK]", "env: {MARK: /nonexistent/x}"),
        )
        ended = project.clawtrace("eval", "--suite", "s", "--case", "a")

        assert ended.returncode == 4
        assert "RETRIED" not in ended.stdout

    def test_a_judgement_anew_still_says_why(self, project, tmp_path_factory):
        """The run is the second attempt, whichever command judges it, and by whatever questions."""
        self.retrying(project, tmp_path_factory, command=f"[{sys.executable}, {AGENT}, search]")
        file = project.root / "configs/cases/a/test.yaml"
        file.write_text(file.read_text().replace("agent_exit_code, value: 0", "agent_exit_code, value: 3"))
        ended = project.clawtrace(
            "eval", "--suite", "s", "--run-profile", "p", "--report", "json=r.json", "--reuse", "all",
            env={"MARK": self.mark},
        )  # fmt: skip

        assert ended.returncode == 1, ended.stdout
        (run,) = json.loads((project.root / "r.json").read_text())["cases"][0]["runs"]
        assert (run["reused"], run["status"]) == (True, "fail")
        assert run["retried"][0].startswith("attempt 1 failed: setup command 1")


PROVIDER_AGENT = """\
import os, sys
from pathlib import Path
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Status, StatusCode
provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
tracer = provider.get_tracer("test-agent")
tries = Path(os.environ["MARK"]) / "tries"
tries.write_text(tries.read_text() + "x" if tries.exists() else "x")
worked = len(tries.read_text()) > 1
with tracer.start_as_current_span("chat gpt-4o") as call:
    call.set_attributes({"gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai"})
    call.set_attributes({"gen_ai.request.model": "gpt-4o"})
    if not worked:
        call.set_attribute("error.type", sys.argv[1])
        call.set_status(Status(StatusCode.ERROR, "no answer"))
provider.shutdown()
sys.exit(0 if worked else 1)
"""


class TestProviderFailures:
    def eval(self, project, tmp_path_factory, error: str, retries: int = 0, agent: str = PROVIDER_AGENT, *flags: str):
        """One run of an agent whose model call fails the first time it is run, and then never again."""
        folder = tmp_path_factory.mktemp("apart")
        for name in "ab":
            (project.root / f"configs/cases/{name}/test.yaml").unlink(missing_ok=True)
        project.write("agents/provider.py", agent)
        case = TestRetries.CASE.replace('  setup: [\'test -e "$MARK/x" || {{ touch "$MARK/x"; exit 1; }}\']\n', "")
        command = f"[{sys.executable}, {project.root}/agents/provider.py, {error}]"
        project.write("configs/cases/a/test.yaml", case.format(command=command))
        policy = f"execution_policy: {{infrastructure_retries: {retries}}}\n"
        project.write("configs/run_profiles/p.yaml", "schema_version: 1\nrun_profile_id: p\ntitle: P\n" + policy)
        self.mark = str(folder)
        return project.eval("--run-profile", "p", *flags, MARK=self.mark)

    def run_of(self, project):
        (case,) = json.loads((project.root / "report.out").read_text())["cases"]
        return case["runs"][0]

    @pytest.mark.parametrize("error", ["429", "openai.RateLimitError"])
    def test_a_provider_that_gave_up_is_tried_again(self, project, tmp_path_factory, error):
        """The last model call says it; the second attempt gets its answer."""
        self.eval(project, tmp_path_factory, error, retries=1)

        run = self.run_of(project)
        assert (run["run_status"], run["status"]) == ("success", "pass")
        assert run["retried"] == ["attempt 1 failed: the agent's provider failed"]
        (store,) = (project.root / "outputs/campaigns/s").glob("p-*/spans.duckdb")
        listed = json.loads(project.clawtrace("runs", "list", "--store", str(store), "--json").stdout)
        assert [one["run_id"] for one in listed] == [run["run_id"]]

    def test_every_attempt_spends(self, project, tmp_path_factory):
        """What a provider took before it gave up was paid as well; where that was too much, nothing is tried again."""
        used = 'call.set_attributes({"gen_ai.usage.input_tokens": 1000, "gen_ai.usage.output_tokens": 500})'
        agent = PROVIDER_AGENT.replace("    if not worked:", f"    {used}\n    if not worked:")
        flags = ("--repeat", "2", "--max-tokens")
        for limit, tried_again, used_up in (("2000", ["success", 1], "3000"), ("1000", ["provider_error", 0], "1500")):
            self.eval(project, tmp_path_factory, "429", 1, agent, *flags, limit)
            run = self.run_of(project)
            data = json.loads((project.root / "report.out").read_text())

            assert [run["run_status"], len(run["retried"])] == tried_again
            assert [one["reason"] for one in data["not_run"]] == [
                f"{used_up} tokens have been used, and `--max-tokens` is {limit}"
            ]

    def test_its_run_never_stands_for_another(self, project, tmp_path_factory):
        """T24: an outage is not cached; the next evaluation runs the agent."""
        assert self.eval(project, tmp_path_factory, "503") == {("a", 1): (False, "fail")}
        assert self.run_of(project)["run_status"] == "provider_error"
        assert "the provider's error `503`" in project.ended.stdout

        assert project.eval("--run-profile", "p", MARK=self.mark) == {("a", 1): (False, "pass")}

    def test_a_wrong_request_is_the_agents_own_failure(self, project, tmp_path_factory):
        """400 is what the agent sent: never tried again, and kept."""
        self.eval(project, tmp_path_factory, "400", retries=1)
        assert self.run_of(project)["run_status"] == "failed"

        assert project.eval("--run-profile", "p", MARK=self.mark) == {("a", 1): (True, "fail")}


class TestQuarantine:
    def test_a_flaky_case_is_reported_and_decides_nothing(self, project):
        """Its failure is shown in every report, as quarantined, and the exit code is that of the others."""
        file = project.root / "configs/cases/b/test.yaml"
        file.write_text(file.read_text().replace("title: b", "title: b\ntags: [flaky]"))
        project.write("configs/suites/s.yaml", QUARANTINED)
        runs = project.eval()

        assert runs["b", 1] == (False, "fail")
        assert project.ended.returncode == 0
        assert "fail (quarantined)" in project.ended.stdout
        assert "1 in quarantine, which do not count" in project.ended.stdout
        data = json.loads((project.root / "report.out").read_text())
        assert {case["case_id"]: case["runs"][0]["quarantined"] for case in data["cases"]} == {"a": False, "b": True}
        (junit,) = (project.root / "outputs/campaigns/s").glob("default-*/report.xml")
        assert '<skipped type="quarantined" message="quarantined, fail: ' in junit.read_text()
        assert "<failure" not in junit.read_text()

    def test_what_was_not_run_of_it_decides_nothing(self, project):
        """A budget that ends before a case in quarantine has left out nothing that counts."""
        project.case("b", assertions=SEARCHED)
        TestBudget().spending(project)
        file = project.root / "configs/cases/c/test.yaml"
        file.write_text(
            file.read_text()
            .replace("title: c", "title: c\ntags: [flaky]")
            .replace("tool_was_called, tool: search", "llm_call_count, min: 1")
        )
        for name in "ab":
            other = project.root / f"configs/cases/{name}/test.yaml"
            other.write_text(other.read_text().replace("tool_was_called, tool: search", "llm_call_count, min: 1"))
        project.write("configs/suites/s.yaml", QUARANTINED)
        runs = project.eval("--max-tokens", "2000")

        assert set(runs) == {("a", 1), ("b", 1)}
        (left,) = json.loads((project.root / "report.out").read_text())["not_run"]
        assert (left["case_id"], left["quarantined"]) == ("c", True)
        assert project.ended.returncode == 0, project.ended.stdout
        (junit,) = (project.root / "outputs/campaigns/s").glob("default-*/report.xml")
        assert 'message="quarantined, not run: 3000 tokens' in junit.read_text()
        assert "<error" not in junit.read_text()

    @pytest.mark.parametrize(
        "harm",
        [("  type: command", "  type: command\n  setup: [exit 1]"), (sys.executable, "no-such-program")],
        ids=["setup", "program"],
    )
    def test_what_cannot_be_run_of_it_stops_nothing(self, project, harm):
        """Its error is reported, and the other case is run and decides."""
        project.write("configs/suites/s.yaml", QUARANTINED)
        project.case("b")
        case = project.root / "configs/cases/a/test.yaml"
        case.write_text(case.read_text().replace("title: a", "title: a\ntags: [flaky]").replace(*harm))

        assert project.eval("--no-reuse") == {("a", 1): (False, "error"), ("b", 1): (False, "pass")}
        assert project.ended.returncode == 0

    def test_nothing_but_quarantine_has_not_passed(self, project):
        """Of nothing that counts, nothing is known."""
        project.write("configs/suites/s.yaml", QUARANTINED)
        for name in "ab":
            file = project.root / f"configs/cases/{name}/test.yaml"
            file.write_text(file.read_text().replace(f"title: {name}", f"title: {name}\ntags: [flaky]"))
        project.eval()

        assert project.ended.returncode == 3


@contextmanager
def watching(project, stdout=subprocess.PIPE):
    """Yield a process that watches the project, and a function that reads one of its streams up to a line."""
    process = subprocess.Popen(
        [str(PROGRAM), "eval", "--suite", "s", "--watch"], cwd=project.root, env=clean_environment(),
        stdout=stdout, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    timer = threading.Timer(150, process.kill)
    timer.start()

    def until(stream, words):
        seen = ""
        for line in stream:
            seen += line
            if words in line:
                return seen
        raise AssertionError(f"ended without {words!r}: {seen}")

    yield process, until
    timer.cancel()
    process.kill()
    process.communicate()


def test_watch_runs_what_an_edit_touches_until_it_is_ended(project):
    """The first time all, then the edited case, then nothing more after Ctrl-C."""
    with watching(project) as (process, until):
        assert "2 runs: 1 passed, 1 failed" in until(process.stdout, "exit 1")
        until(process.stderr, "Watching for changes")
        project.case("b", assertions=SEARCHED)
        assert "Changed: configs/cases/b/test.yaml" in until(process.stderr, "Changed")
        assert "2 runs: 2 passed; 2 reused" in until(process.stdout, "exit 0")
        project.write("configs/cases/b/test.yaml", "case_id: [")
        until(process.stderr, "is not valid YAML")
        project.case("b", message="please")
        assert "2 runs: 2 passed; 1 reused" in until(process.stdout, "exit 0")
        until(process.stderr, "Changed")
        until(process.stderr, "Watching for changes")
        process.send_signal(signal.SIGINT)

        assert process.wait(timeout=30) == 0


def test_what_is_printed_into_the_project_is_no_edit(project):
    """A log of the command itself may lie there."""
    with (project.root / "watch.log").open("w") as log, watching(project, log) as (process, until):
        until(process.stderr, "Watching for changes")
        project.write("notes.txt", "an edit")
        assert "Changed: notes.txt" in until(process.stderr, "Changed")
        until(process.stderr, "Watching for changes")
        project.write("notes.txt", "another")
        assert "Changed: notes.txt" in until(process.stderr, "Changed")


def test_an_agent_that_writes_into_the_project_does_not_start_itself_for_ever(project):
    """What changes during an evaluation may be an edit; where it does so in three in a row, only another change counts."""
    project.undeclared("a", "b")
    agent = (project.root / "agents/main.py").read_text()
    project.write("agents/main.py", f"open({str(project.root / 'log.txt')!r}, 'w').close()\n{agent}")
    by_itself = "Changed during each evaluation, as if by the agent: log.txt"
    with watching(project) as (process, until):
        assert until(process.stderr, by_itself).count("Changed: log.txt") == 2
        until(process.stderr, "Watching for changes")
        project.write("notes.txt", "an edit")

        assert "Changed: notes.txt" in until(process.stderr, "Changed")
        assert until(process.stderr, "Watching for changes").count("log.txt") == 1


class TestStoredRuns:
    def test_an_exported_run_is_the_same_when_it_is_read_again(self, project, tmp_path_factory):
        """Span by span and fact by fact, but for what only its campaign knew."""
        project.eval()
        (store,) = (project.root / "outputs/campaigns/s").glob("default-*/spans.duckdb")
        (run, *_) = json.loads(project.clawtrace("runs", "list", "--store", str(store), "--json").stdout)
        out = tmp_path_factory.mktemp("apart") / "run.otlp.jsonl"
        ended = project.clawtrace("runs", "export", run["run_id"], "--store", str(store), "--out", str(out))
        assert ended.returncode == 0, ended.stderr
        shown = json.loads(project.clawtrace("runs", "show", run["run_id"], "--store", str(store), "--json").stdout)
        again = json.loads(project.clawtrace("inspect", str(out), "--one-run", run["run_id"], "--json").stdout)

        keys = ("run_id", "traces", "spans", "dialects", "tool_calls", "agents", "errors", "totals")
        assert {key: again["runs"][0][key] for key in keys} == {key: shown["runs"][0][key] for key in keys}
        assert len(again["runs"][0]["tool_calls"]) == 2

    def test_a_deleted_run_is_run_again(self, project):
        """Nothing of it is left that could stand for a run."""
        project.eval()
        (store,) = (project.root / "outputs/campaigns/s").glob("default-*/spans.duckdb")
        runs = json.loads(project.clawtrace("runs", "list", "--store", str(store), "--json").stdout)
        (gone,) = [run["run_id"] for run in runs if run["case_id"] == "a"]
        ended = project.clawtrace("runs", "delete", gone, "--store", str(store))
        assert ended.returncode == 0, ended.stderr

        assert gone not in project.clawtrace("runs", "list", "--store", str(store)).stdout
        assert reused(project.eval()) == {"b"}

    def test_a_run_that_is_not_there(self, project):
        """The nearest one is named, and nothing happens."""
        project.eval()
        (store,) = (project.root / "outputs/campaigns/s").glob("default-*/spans.duckdb")
        for what in ("show", "export", "delete"):
            ended = project.clawtrace("runs", what, "nothing", "--store", str(store))

            assert ended.returncode == 2
            assert "There is no run 'nothing'" in ended.stderr
