"""Reuse and resumption from the command line: what was edited runs again, and nothing else (spec: config.md §5)."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.conftest import clean_environment

from clawtrace.session.session import Session

pytestmark = pytest.mark.full

PROGRAM = Path(sys.executable).parent / "clawtrace"
AGENT = Path(__file__).parents[1] / "agent.py"

CASE = """\
schema_version: 1
case_id: {case_id}
title: {case_id}
runner:
  type: command
  command: ["{python}", "{{{{case_dir}}}}/../../../agents/main.py", search, "{words}"]
  pass_env: [AGENT_KEY]
  inputs: [../../../agents]
input: {{messages: [{{role: user, content: "{message}"}}]}}
assertions:
{assertions}
"""
SEARCHED = "  - {type: tool_was_called, tool: search}"

IN_PROCESS = True


class Project:
    """A project with one agent in its own folder, and the runs that it left."""

    def __init__(self, root: Path, program) -> None:
        self.root, self.clawtrace = root, program
        self.write("agents/main.py", f'import runpy\nrunpy.run_path({str(AGENT)!r}, run_name="__main__")\n')
        self.write("agents/prompt.txt", "be brief")
        self.write("clawtrace.yaml", "schema_version: 1\n")
        self.write("configs/suites/s.yaml", "schema_version: 1\nsuite_id: s\ntitle: S\n")
        self.case("a")
        self.case("b")

    def write(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def undeclared(self, *case_ids: str) -> None:
        """Take away what says where the agent's code is."""
        for case_id in case_ids:
            path = self.root / f"configs/cases/{case_id}/test.yaml"
            path.write_text(path.read_text().replace("  inputs: [../../../agents]\n", ""))

    def case(self, case_id: str, *, words="x", message="go", assertions=SEARCHED) -> None:
        text = CASE.format(case_id=case_id, python=sys.executable, words=words, message=message, assertions=assertions)
        self.write(f"configs/cases/{case_id}/test.yaml", text)

    def eval(self, *args: str, **env: str):
        """Run the suite; return the reports' runs as (case, repetition) → (reused, status)."""
        report = self.root / "report.out"
        ended = self.clawtrace("eval", "--suite", "s", "--report", f"json={report}", *args, env=env)
        assert ended.returncode in (0, 1, 3), ended.stderr
        self.ended = ended
        data = json.loads(report.read_text())
        return {
            (case["case_id"], run["repetition"]): (run["reused"], run["status"])
            for case in data["cases"]
            for run in case["runs"]
        }


@pytest.fixture
def project(tmp_path, program):
    found = Project(tmp_path, program)
    assert set(found.eval().values()) == {(False, "pass")}
    return found


def reused(runs):
    return {case for (case, _), (was, _) in runs.items() if was}


class TestWhatIsReused:
    @pytest.mark.smoke
    def test_nothing_edited_runs_nothing(self, project):
        """The second time no agent is started, and the report says so."""
        assert project.eval() == {("a", 1): (True, "pass"), ("b", 1): (True, "pass")}
        assert "2 reused" in project.ended.stdout

    @pytest.mark.parametrize(
        "edit",
        [
            lambda project: project.write(
                "agents/main.py", project.root.joinpath("agents/main.py").read_text() + "#\n"
            ),
            lambda project: project.write("agents/prompt.txt", "be long"),
            lambda project: project.write("agents/new.py", ""),
            lambda project: (project.root / "agents/prompt.txt").chmod(0o755),
        ],
        ids=["the agent", "a file next to it", "a new file", "a mode"],
    )
    def test_an_edit_of_what_agents_depend_on_runs_all(self, project, edit):
        """Whatever in the project could change an agent counts."""
        edit(project)

        assert reused(project.eval()) == set()

    def test_an_edit_of_one_case_runs_that_case(self, project):
        """Its message, its runner's settings or a file in its folder; the other case is as it was."""
        project.case("a", message="please go")
        assert reused(project.eval()) == {"b"}
        project.case("b", words="y")
        assert reused(project.eval()) == {"a"}
        project.write("configs/cases/b/data.csv", "1,2\n")
        assert reused(project.eval()) == {"a"}
        assert reused(project.eval()) == {"a", "b"}

    def test_a_variable_that_agents_get_counts(self, project):
        """By its value, which is stored nowhere."""
        assert reused(project.eval(AGENT_KEY="s3cr3t-value")) == set()
        assert reused(project.eval(AGENT_KEY="s3cr3t-value")) == {"a", "b"}
        assert reused(project.eval(AGENT_KEY="another")) == set()
        kept = list((project.root / "outputs").rglob("*.json"))
        assert kept
        assert not any("s3cr3t-value" in path.read_text() for path in kept)

    def test_spans_in_which_a_secret_was_not_looked_for_are_not_asked_for_it(self, project):
        """A further pattern of `redaction` runs the agents again: the stored spans hold it without a mark."""
        project.case("a", words="CUST-12345678", assertions='  - {type: tool_was_called, tool: "re:.*:customer:.*"}')
        assert project.eval("--case", "a") == {("a", 1): (False, "fail")}
        project.write("clawtrace.yaml", "schema_version: 1\nredaction: {patterns: {customer: 'CUST-[0-9]{8}'}}\n")

        assert "edited since: `redaction`" in project.clawtrace("eval", "--suite", "s", "--dry-run").stdout
        assert project.eval("--case", "a") == {("a", 1): (False, "pass")}
        assert project.eval("--case", "a") == {("a", 1): (True, "pass")}

    def test_an_upgraded_package_counts(self, project, tmp_path_factory):
        """What is installed next to the program is part of the agent, though no file of the project says so."""
        home = tmp_path_factory.mktemp("venv")
        installed = home / "lib/python3.11/site-packages/framework-1.0.dist-info"
        installed.mkdir(parents=True)
        project.eval(VIRTUAL_ENV=str(home))
        assert reused(project.eval(VIRTUAL_ENV=str(home))) == {"a", "b"}
        installed.rename(installed.with_name("framework-1.1.dist-info"))
        assert reused(project.eval(VIRTUAL_ENV=str(home))) == set()

    def test_an_edited_assertion_judges_the_stored_run_anew(self, project):
        """T24: no verdict is kept across an edit of what decides it, and no agent is run for it."""
        project.case("a", assertions="  - {type: tool_not_invoked, tool: search}")

        assert project.eval() == {("a", 1): (True, "fail"), ("b", 1): (True, "pass")}
        project.case("a")
        assert project.eval() == {("a", 1): (True, "pass"), ("b", 1): (True, "pass")}

    def test_an_edited_golden_file_judges_anew_and_runs_nothing(self, project):
        """Files that only judge are no input of the agent."""
        golden = SEARCHED + "\n  - {type: artifact_matches_golden, path: x.md, golden: g.md}"
        project.write("configs/cases/a/g.md", "x")
        project.case("a", assertions=golden)
        assert project.eval()["a", 1] == (True, "fail")
        project.write("configs/cases/a/g.md", "y")
        assert reused(project.eval()) == {"a", "b"}

    def test_an_edit_behind_a_link_counts(self, project, tmp_path_factory):
        """T24: the agent, or what judges it, may lie outside of the project."""
        outside = tmp_path_factory.mktemp("outside")
        main = project.root / "agents/main.py"
        (outside / "main.py").write_text(main.read_text())
        main.unlink()
        main.symlink_to(outside / "main.py")
        (outside / "g.md").write_text("x")
        project.case("a", assertions=SEARCHED + "\n  - {type: artifact_matches_golden, path: x.md, golden: g.md}")
        (project.root / "configs/cases/a/g.md").symlink_to(outside / "g.md")
        project.eval()
        assert reused(project.eval()) == {"a", "b"}

        (outside / "main.py").write_text(main.read_text() + "#\n")
        assert reused(project.eval()) == set()
        (kept,) = (project.root / "outputs/campaigns/s").glob("default-*/evaluations/*/-/a/1.json")
        before = json.loads(kept.read_text())["fingerprint"]
        (outside / "g.md").write_text("y")
        assert reused(project.eval()) == {"a", "b"}
        assert json.loads(kept.read_text())["fingerprint"] != before

    @pytest.mark.parametrize("path", ["{state}/done.txt", "../../../done.txt", "link/done.txt"])
    def test_a_file_beyond_the_workspace_is_looked_at_anew(self, project, path, tmp_path_factory):
        """T24: however the path leads there, nothing that was kept says what such a file holds today."""
        state = tmp_path_factory.mktemp("state")
        workspace = next((project.root / "outputs").rglob("runs/-/a/1/workspace"))
        (workspace / "link").symlink_to(state)
        written = path.format(state=state)
        file = (workspace / written).resolve()
        file.write_text("done")
        project.case("a", assertions=f"{SEARCHED}\n  - {{type: file_contains, path: {written}, text: done}}")
        first = project.eval()["a", 1]
        file.write_text("open")

        assert first == (True, "pass")
        assert project.eval()["a", 1] == (True, "fail")

    def test_a_variable_in_an_assertion_judges_anew(self, project):
        """A judgement is of the texts that were asked for, and no agent is run for others."""
        asked = SEARCHED + '\n  - {type: tool_not_invoked, tool: "{{env.FORBIDDEN}}"}'
        project.case("a", assertions=asked)

        assert project.eval(FORBIDDEN="rm")["a", 1] == (True, "pass")
        assert project.eval(FORBIDDEN="search")["a", 1] == (True, "fail")

    def test_more_repetitions_run_the_missing_ones(self, project):
        """Raising 1 to 3 runs two of each; scheduling changes nothing."""
        runs = project.eval("--repeat", "3", "--concurrency", "3")

        assert {key for key, (was, _) in runs.items() if was} == {("a", 1), ("b", 1)}
        assert len(runs) == 6

    def test_no_reuse_runs_all(self, project):
        """The flag's promise."""
        assert reused(project.eval("--no-reuse")) == set()

    def test_a_run_whose_place_another_took_is_gone_from_the_store(self, project):
        """A query of a campaign's store answers with the runs that its folder keeps, and with each once."""
        project.eval("--no-reuse")
        (store,) = (project.root / "outputs/campaigns/s").glob("default-*/spans.duckdb")
        listed = json.loads(project.clawtrace("runs", "list", "--store", str(store), "--json").stdout)
        kept = [json.loads(file.read_text())["run_id"] for file in store.parent.glob("runs/*/*/*/run.json")]

        assert sorted(row["run_id"] for row in listed) == sorted(kept)

    def test_named_inputs_narrow_down_what_counts(self, project):
        """With `inputs`, only these files, the case's folder and the program count."""
        text = CASE.replace("inputs: [../../../agents]", "inputs: [../../../agents/*.py]")
        filled = text.format(case_id="a", python=sys.executable, words="x", message="go", assertions=SEARCHED)
        project.write("configs/cases/a/test.yaml", filled)
        project.eval()
        project.write("agents/prompt.txt", "other")
        assert reused(project.eval()) == {"a"}
        project.write("agents/extra.py", "")
        assert reused(project.eval()) == set()

    def test_runs_without_a_whole_trace_are_run_again(self, project):
        """An agent that exported nothing left nothing to judge."""
        project.case("a", words="silent")
        project.eval()

        assert reused(project.eval()) == {"b"}


class TestWhatIsNotKnown:
    """Where it is not declared which code an agent loads, an edit of it could not be seen: no later campaign reuses its runs."""

    def test_an_edit_outside_of_the_project_is_never_green(self, project, tmp_path_factory):
        """The usual layout: `/agent` next to `/evals`. The summary says what would let runs be reused."""
        outside = tmp_path_factory.mktemp("agent")
        (outside / "main.py").write_text((project.root / "agents/main.py").read_text())
        place = project.root / "configs/cases/a/test.yaml"
        place.write_text(place.read_text().replace("{{case_dir}}/../../../agents", str(outside)))
        project.undeclared("a", "b")
        project.eval()
        assert "list all of it in the case's `runner`, as in `inputs: [../../../agents]`" in summary_of(
            project, "--dry-run"
        )
        (outside / "main.py").write_text("raise SystemExit(1)")

        assert project.eval("--case", "a")["a", 1][0] is False
        assert project.ended.returncode != 0
        assert "1 stored run not reused" not in summary_of(project)

    def test_the_ground_of_reuse_is_in_the_summary(self, project):
        """Which runs were reused and why, in one line; also of what was not."""
        assert project.eval() == {("a", 1): (True, "pass"), ("b", 1): (True, "pass")}
        assert (
            "2 reused, as nothing that their agents depend on has changed (settings, messages, the command's files"
            in summary_of(project)
        )
        project.undeclared("b")
        project.eval()
        assert reused(project.eval()) == {"a"}
        summary = summary_of(project)
        assert "1 stored run not reused: which code the agent loads is unknown: " in summary
        assert "list all of it in the case's `runner`, as in `inputs: [../../../agents]`" in summary

    def test_in_ci_only_when_it_is_asked_for(self, project):
        """A cache of yesterday's outputs makes no pipeline green by itself."""
        assert reused(project.eval(CI="true")) == set()
        assert reused(project.eval(CI="false")) == {"a", "b"}
        assert reused(project.eval("--reuse", CI="true")) == {"a", "b"}
        assert "in CI nothing is reused without `--reuse`" in project.clawtrace(
            "eval", "--suite", "s", "--dry-run", env={"CI": "1"}
        ).stdout  # fmt: skip

    def test_flags_that_look_back_take_the_last_execution(self, project):
        """`--reuse all` judges what is stored; `--last-failed` never says that all is well of agents it cannot know."""
        project.undeclared("a", "b")
        project.eval()
        assert reused(project.eval("--reuse", "all")) == {"a", "b"}
        ended = project.clawtrace("eval", "--suite", "s", "--last-failed")
        assert ended.returncode == 3
        assert "whether an agent has been edited since is unknown" in ended.stderr
        project.case("b", assertions="  - {type: tool_not_invoked, tool: search}")
        project.undeclared("b")
        assert project.eval() == {("a", 1): (False, "pass"), ("b", 1): (False, "fail")}
        assert project.eval("--last-failed") == {("b", 1): (False, "fail")}


def summary_of(project, *flags: str) -> str:
    """What the evaluation printed, or prints with flags, as one line."""
    printed = project.clawtrace("eval", "--suite", "s", *flags).stdout if flags else project.ended.stdout
    return " ".join(printed.split())


class TestWhereItIsFound:
    def test_another_profile_takes_runs_over_with_their_spans(self, project):
        """A profile that changes nothing for the agents finds their runs through the index."""
        profile = "schema_version: 1\nrun_profile_id: fast\ntitle: F\nexecution_policy: {max_concurrency: 2}\n"
        project.write("configs/run_profiles/fast.yaml", profile)
        runs = project.eval("--run-profile", "fast")

        assert runs == {("a", 1): (True, "pass"), ("b", 1): (True, "pass")}
        (folder,) = (project.root / "outputs/campaigns/s").glob("fast-*")
        assert (folder / "runs/-/a/1/stdout").read_text() == "done\n"
        (project.root / "outputs/index").rename(project.root / "outputs/gone")
        assert reused(project.eval("--run-profile", "fast")) == {"a", "b"}

    def test_the_folder_of_results_can_be_moved(self, project):
        """Everything in it is relative."""
        (project.root / "outputs").rename(project.root / "elsewhere")
        runs = project.eval("--out", str(project.root / "elsewhere"))

        assert reused(runs) == {"a", "b"}

    @pytest.mark.parametrize("git", [True, False], ids=["git", "no git"])
    def test_results_in_another_folder_are_no_edit(self, project, git):
        """Not an agent's input, wherever somebody wanted them; a folder of the same name that is the agent's own is."""
        if git:
            subprocess.run(["git", "init", "--quiet"], cwd=project.root, check=True)
        project.write("agents/campaigns/summer/mail/manifest.json", "{}")
        project.eval("--out", "elsewhere/now")
        assert reused(project.eval()) == set()
        project.eval("--out", "elsewhere/now", "--no-reuse")
        assert reused(project.eval()) == {"a", "b"}

        project.write("agents/campaigns/summer/mail/manifest.json", "{1: 2}")
        assert reused(project.eval()) == set()

    def test_a_damaged_file_is_run_again_not_believed(self, project):
        """Half a file, a file of another version, or a store that is gone stand for nothing."""
        (folder,) = (project.root / "outputs/campaigns/s").glob("default-*")
        (folder / "runs/-/a/1/run.json").write_text('{"schema": "clawtrace.run/1", ')
        assert reused(project.eval()) == {"b"}
        shutil.rmtree(folder / "evaluations")
        assert reused(project.eval()) == {"a", "b"}
        (folder / "spans.duckdb").unlink()
        assert reused(project.eval()) == set()

    def test_what_is_damaged_is_called_so(self, project):
        """A run that cannot be read was run before: the plan says what is wrong with it."""
        (folder,) = (project.root / "outputs/campaigns/s").glob("default-*")
        for text, why in (
            ('{"schema": "clawtrace.run/1", ', "its `run.json` is damaged"),
            ('{"schema": "clawtrace.run/1", "run_id": "x"}', "its `run.json` is damaged"),
            ('{"schema": "clawtrace.run/2"}', "its `run.json` is of another version ('clawtrace.run/2', "),
        ):
            (folder / "runs/-/a/1/run.json").write_text(text)
            assert why in project.clawtrace("eval", "--suite", "s", "--dry-run").stdout
        (folder / "runs/-/a/1/run.json").unlink()
        assert "it was interrupted before it ended" in project.clawtrace("eval", "--suite", "s", "--dry-run").stdout

    def test_a_store_that_is_no_database_says_what_to_do(self, project):
        """It is not written over, the message names the way out, and the way out works."""
        (store,) = (project.root / "outputs/campaigns/s").glob("default-*/spans.duckdb")
        store.write_text("junk")
        ended = project.clawtrace("eval", "--suite", "s")

        assert ended.returncode == 2
        assert "or move it away; a campaign then runs its agents anew." in ended.stderr
        assert store.read_text() == "junk"
        store.unlink()
        assert reused(project.eval()) == set()


def test_t24_what_lies_outside_of_a_run_is_asked_again(project):
    """T24: a run that is reused is not judged by what a check outside of its files found then."""
    project.case("a", assertions="  - {type: env_present, vars: [SERVICE_KEY]}")
    down = project.eval("--case", "a")
    still = project.eval("--case", "a")
    up = project.eval("--case", "a", SERVICE_KEY="x")

    assert [list(one.values()) for one in (down, still, up)] == [[(True, "fail")], [(True, "fail")], [(True, "pass")]]


def test_dry_run_starts_nothing_and_says_why(project):
    """Each run with what becomes of it, the numbers, and what earlier runs took."""
    project.case("a", message="please go")
    before = sorted(path.stat().st_mtime_ns for path in (project.root / "outputs").rglob("*"))
    ended = project.clawtrace("eval", "--suite", "s", "--dry-run", "--repeat", "2")

    assert ended.returncode == 0
    lines = [line.split() for line in ended.stdout.splitlines()]
    assert lines[1][:3] == ["a", "1", "run"]
    assert "edited since: the messages" in ended.stdout
    assert lines[3][:3] == ["b", "1", "reuse"]
    assert "4 runs: 3 to run, 1 reused." in ended.stdout
    assert "Based on 2 stored runs of the same cases, they typically take" in ended.stdout
    assert sorted(path.stat().st_mtime_ns for path in (project.root / "outputs").rglob("*")) == before


def test_dry_run_names_the_files_that_were_edited(project):
    """Of an edit among hundreds of files the first few are named: changed, new, or gone."""
    project.write("agents/prompt.txt", "be long")
    project.write("agents/new.py", "")
    project.write("configs/cases/a/data.csv", "1")
    (project.root / "agents/main.py").rename(project.root / "agents/other.py")
    plan = project.clawtrace("eval", "--suite", "s", "--dry-run").stdout

    assert "the case's folder (`data.csv` is new)" in plan
    assert (
        "the files of `inputs` (`../../../agents/main.py` is gone, `../../../agents/new.py` is new, "
        "`../../../agents/other.py` is new and 1 more)" in plan
    )
    assert "a file that the command names (`{{case_dir}}/../../../agents/main.py` is gone)" in plan


def test_a_campaign_that_was_killed_resumes_with_what_was_finished(tmp_path, program, tmp_path_factory):
    """SIGKILL in the second of three runs: the first is reused, its spans are there, and nothing of the killed one is.

    It is not declared where the agent's code is, so the runs serve this execution only.
    """
    project = Project(tmp_path, program)
    project.write("configs/suites/s.yaml", "schema_version: 1\nsuite_id: s\ntitle: S\n")
    project.case("b", words="wait")
    project.case("c")
    pid = tmp_path_factory.mktemp("apart") / "pid"
    project.write(
        "configs/cases/b/test.yaml",
        (tmp_path / "configs/cases/b/test.yaml").read_text().replace("AGENT_KEY", "AGENT_*"),
    )
    project.undeclared("a", "b", "c")
    process = subprocess.Popen(
        [str(PROGRAM), "eval", "--suite", "s"], cwd=tmp_path, env=clean_environment(AGENT_PIDFILE=str(pid)),
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
    )  # fmt: skip
    from watchfiles import watch

    finished = "outputs/campaigns/s/*/evaluations/*/*/a/1.json"
    for _ in watch(pid.parent, rust_timeout=200, yield_on_timeout=True):
        if pid.exists() and pid.read_text() and list(tmp_path.glob(finished)):
            break
    process.kill()
    process.wait()
    project.case("b")
    project.undeclared("b")
    runs = project.eval()

    assert runs == {("a", 1): (True, "pass"), ("b", 1): (False, "pass"), ("c", 1): (False, "pass")}
    (store,) = (tmp_path / "outputs/campaigns/s").glob("default-*/spans.duckdb")
    listed = json.loads(program("runs", "list", "--store", str(store), "--json").stdout)
    assert sorted(run["case_id"] for run in listed) == ["a", "b", "c"]
    assert "1 reused from the same execution of the campaign" in project.ended.stdout
    assert reused(project.eval()) == set()


class TestOfAnotherCampaign:
    """A run of another campaign stands for one only while its spans can be had; else the agent is run."""

    @pytest.fixture
    def other(self, project):
        """The store of the campaign `s`; a second suite has its case `a`."""
        text = "schema_version: 1\nsuite_id: t\ntitle: T\ncase_selection: {include_case_ids: [a]}\n"
        project.write("configs/suites/t.yaml", text)
        (store,) = (project.root / "outputs/campaigns/s").glob("default-*/spans.duckdb")
        return store

    def evaluated(self, project):
        ended = project.clawtrace("eval", "--suite", "t")
        (file,) = (project.root / "outputs/campaigns/t").glob("default-*/report.json")
        (case,) = json.loads(file.read_text())["cases"]
        (manifest,) = (project.root / "outputs/campaigns/t").glob("default-*/manifest.json")
        (listed,) = json.loads(manifest.read_text())["runs"]
        assert listed["run_id"] == case["runs"][0]["run_id"]
        return ended.returncode, case["runs"][0]["reused"], case["runs"][0]["status"]

    @pytest.mark.usefixtures("other")
    def test_it_stands_in_both(self, project):
        """Its spans are copied, and the manifest names it."""
        assert self.evaluated(project) == (0, True, "pass")

    def test_while_another_process_holds_its_store(self, project, other):
        """Two campaigns of one project can be run at the same time."""
        with Session.open(other):
            assert self.evaluated(project) == (0, False, "pass")

    @pytest.mark.parametrize("harm", [b"no database", None], ids=["damaged", "without the run"])
    def test_when_its_store_has_lost_it(self, project, other, harm):
        """The folder keeps a run whose spans are gone."""
        other.unlink()
        if harm is None:
            Session.open(other).close()
        else:
            other.write_bytes(harm)
        assert self.evaluated(project) == (0, False, "pass")


def test_dry_run_says_what_would_keep_runs_from_starting(project):
    """A program that is not there, for which nothing is started, and `fail_fast`."""
    profile = "schema_version: 1\nrun_profile_id: p\ntitle: P\nexecution_policy: {fail_fast: true}\n"
    project.write("configs/run_profiles/p.yaml", profile)
    place = project.root / "configs/cases/b/test.yaml"
    place.write_text(place.read_text().replace(sys.executable, "no-such-program"))

    plan = " ".join(project.clawtrace("eval", "--suite", "s", "--run-profile", "p", "--dry-run").stdout.split())

    assert (
        "`fail_fast` is set: after the first failed case, including a stored one, the remaining runs are skipped."
        in plan
    )
    assert "Nothing would be started, because of the case `b`: the program `no-such-program` is not on PATH" in plan
