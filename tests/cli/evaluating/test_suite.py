"""`clawtrace eval --suite`: real agent processes, exported spans, verdicts, reports, interruption."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

pytestmark = pytest.mark.full

PROGRAM = Path(sys.executable).parent / "clawtrace"
AGENT = Path(__file__).parents[1] / "agent.py"

IN_PROCESS = True


@pytest.fixture
def project(tmp_path: Path):
    """Write a project whose cases call the agent with the words given; each must call `search` and never `rm`."""

    def write(*, policy: str = "", **cases: str) -> Path:
        configs = tmp_path / "configs"
        for case_id, words in cases.items():
            folder = configs / "cases" / case_id
            folder.mkdir(parents=True, exist_ok=True)
            command = [sys.executable, str(AGENT), *words.split()]
            (folder / "test.yaml").write_text(
                f"schema_version: 1\ncase_id: {case_id}\ntitle: {case_id}\ntags: [{case_id}-tag]\n"
                f"runner: {{type: command, command: {json.dumps(command)}, pass_env: [AGENT_PIDFIL*]}}\n"
                "input: {messages: [{role: user, content: go}]}\n"
                "assertions:\n  - {type: tool_was_called, tool: search}\n  - {type: tool_not_invoked, tool: rm}\n"
            )
        for kind, name, rest in (
            ("suites", "s", f"case_selection: {{include_case_ids: [{', '.join(cases)}]}}\n"),
            ("run_profiles", "p", policy and f"execution_policy: {policy}\n"),
        ):
            (configs / kind).mkdir(exist_ok=True)
            word = "suite_id" if kind == "suites" else "run_profile_id"
            (configs / kind / f"{name}.yaml").write_text(f"schema_version: 1\n{word}: {name}\ntitle: {name}\n{rest}")
        (tmp_path / "clawtrace.yaml").write_text("schema_version: 1\n")
        return tmp_path

    return write


@pytest.fixture
def results(tmp_path: Path):
    """Return the JSON report in the campaign's folder."""

    def read() -> dict:
        (path,) = (tmp_path / "outputs").rglob("report.json")
        return json.loads(path.read_text())

    return read


@pytest.mark.smoke
def test_a_good_suite_passes_and_leaves_its_results(project, program, results, tmp_path) -> None:
    """The project's only suite needs no flag. Exit 0; its folder has the reports and a span store that can be inspected."""
    configs = project(first="search", second="search report") / "configs"
    done = program("eval")
    (configs / "suites/t.yaml").write_text("schema_version: 1\nsuite_id: t\ntitle: T\n")

    assert "error: Give --suite to run agents (s, t), or" in program("eval").stderr
    data = results()

    assert done.returncode == 0, done.stdout + done.stderr
    assert re.fullmatch(r"\[1/2\] pass first #1 in .*\n\[2/2\] pass second #1 in .*\n", done.stderr)
    assert data["suite_id"] == "s"
    assert data["totals"]["passed"] == 2
    assert [case["pass_rate"] for case in data["cases"]] == [1.0, 1.0]
    assert all(run["run_status"] == "success" for case in data["cases"] for run in case["runs"])
    (folder,) = {path.parent for path in (tmp_path / "outputs").rglob("report.json")}
    assert ET.parse(folder / "report.xml").getroot().get("tests") == "4"
    facts = json.loads(program("inspect", "--store", folder / "spans.duckdb", "--json").stdout)
    assert sorted(len(run["tool_calls"]) for run in facts["runs"]) == [1, 2]


def test_what_authors_say_is_in_the_results(project, program, results, tmp_path) -> None:
    """Titles, labels and metadata of the suite, and of what it names, are in the results."""
    configs = project(first="search") / "configs"
    secret = "sk-proj-" + "A1b2C3d4" * 6
    case = configs / "cases/first/test.yaml"
    case.write_text(case.read_text() + f"metadata: {{key: {secret}}}\n")
    suite = configs / "suites/s.yaml"
    suite.write_text(
        suite.read_text().replace("title: s", "title: Nightly")
        + f"metadata: {{owner: ann, key: {secret}}}\n"
        + "models: [{model_id: m, label: Big one}, {model_id: n}]\n"
        + "openclaw: {agent_assignments: [{agent_id: a, case_selection: {include_case_ids: [first]}}]}\n"
    )
    (configs / "run_profiles/p.yaml").write_text("schema_version: 1\nrun_profile_id: p\ntitle: Slowly\n")
    (configs / "evaluation_profiles").mkdir()
    (configs / "evaluation_profiles/e.yaml").write_text("schema_version: 1\nevaluation_profile_id: e\ntitle: Hard\n")
    (configs / "agents/a/workspace").mkdir(parents=True)
    (configs / "agents/a/agent.yaml").write_text("schema_version: 1\nagent_id: a\ntitle: Helper\n")
    done = program("eval", "--suite", "s", "--run-profile", "p", "--evaluation-profile", "e")

    assert done.returncode == 0, done.stdout + done.stderr
    data = results()
    assert secret not in json.dumps(data)
    assert data["cases"][0]["metadata"] == {"key": data["suite"]["metadata"].pop("key")}
    assert data["suite"] == {
        "title": "Nightly",
        "metadata": {"owner": "ann"},
        "models": {"m": "Big one"},
        "agents": {"a": "Helper"},
        "run_profile": "Slowly",
        "evaluation_profile": "Hard",
    }


@pytest.mark.smoke
def test_a_forbidden_tool_fails_one_case_only(project, program, results) -> None:
    """Exit 1; the other case still passes; the failure is shown in its tree."""
    project(good="search", bad="search rm")
    done = program("eval", "--suite", "s")

    assert done.returncode == 1
    assert [case["runs"][0]["status"] for case in results()["cases"]] == ["pass", "fail"]
    assert "▶ └─ execute_tool rm" in done.stdout
    assert "\x1b" not in done.stdout + done.stderr


def test_an_agent_that_exports_nothing_is_skipped_and_not_green(project, program, results) -> None:
    """Exit 3 and a hint; the agent's own success does not count."""
    project(silent="search silent")
    done = program("eval", "--suite", "s")
    (case,) = results()["cases"]

    assert done.returncode == 3
    assert (case["runs"][0]["status"], case["runs"][0]["run_status"]) == ("skip", "success")
    assert "hint: " in done.stdout


def test_an_agent_that_failed_has_its_last_words_in_the_report(project, program, results, tmp_path) -> None:
    """The agent itself says why there is no trace, without the secrets that it may have printed."""
    project(a="search")
    case = tmp_path / "configs/cases/a/test.yaml"
    secret = "sk-ant-api03-" + "A1b2C3d4E5f6G7h8I9j0" * 4 + "AA"
    case.write_text(case.read_text().replace(str(AGENT), f"/nowhere/{secret}/agent.py"))
    ended = program("eval", "--suite", "s")

    assert ended.returncode == 1
    why = ended.stdout.index("note (a): the agent ended as `failed`; the end of its standard error:")
    assert why < ended.stdout.index("There is no trace of this run"), "the cause is read before what follows from it"
    assert "can't open file" in ended.stdout
    assert secret not in ended.stdout
    assert secret not in json.dumps(results())


def test_flags_choose_what_runs(project, program, results) -> None:
    """--case, --tag and --repeat narrow and widen the plan; --concurrency and --run-profile are taken."""
    project(policy="{run_repetitions: 1}", first="search", second="search")
    args = ["eval", "--suite", "s", "--run-profile", "p", "--case", "first", "--tag", "first-tag"]
    done = program(*args, "--repeat", "2", "--concurrency", "2")
    data = results()

    assert done.returncode == 0, done.stdout + done.stderr
    assert [(case["case_id"], [run["repetition"] for run in case["runs"]]) for case in data["cases"]] == [
        ("first", [1, 2])
    ]


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--suite", "t"], "there is no suite 't'"),
        (["s"], "'s' is not a flag: use --suite for a suite"),
        (["--suite", "s", "--case", "firs"], "Did you mean `first`?"),
        (["--suite", "s", "--model", "gpt"], "selects no model 'gpt'"),
        (["--suite", "s", "--run-profile", "q"], "there is no run profile 'q'"),
        (["--suite", "s", "--repeat", "0"], "0 is not in the range x>=1"),
        (["--suite", "s", "--reuse", "--no-reuse"], "--reuse and --no-reuse contradict each other"),
    ],
)
def test_mistakes_start_nothing(args, said, project, program, tmp_path) -> None:
    """A flag that names nothing exits 2, says what there is, and no agent was started."""
    project(first="search")
    done = program("eval", *args)

    assert done.returncode == 2
    assert said.lower() in done.stderr.lower()
    assert not (tmp_path / "outputs").exists()


def test_a_mistake_in_a_case_names_file_line_and_column(project, program, tmp_path) -> None:
    """Exit 2 with the place; nothing was started."""
    project(first="search")
    case = tmp_path / "configs/cases/first/test.yaml"
    case.write_text(case.read_text().replace("tool_not_invoked, tool", "tool_not_invoked, tol"))
    done = program("eval", "--suite", "s")

    assert done.returncode == 2
    assert "error: configs/cases/first/test.yaml:9:" in done.stderr
    assert not (tmp_path / "outputs").exists()


def test_a_program_that_is_not_there_breaks_the_campaign(project, program, results, tmp_path) -> None:
    """Exit 4; the broken case says what to install, the other one is listed as not run."""
    project(good="search", broken="search")
    case = tmp_path / "configs/cases/broken/test.yaml"
    case.write_text(case.read_text().replace(json.dumps(sys.executable), '"no-such-agent"'))
    done = program("eval", "--suite", "s")
    data = results()

    assert done.returncode == 4
    assert "ERROR  broken" in done.stdout
    assert "no-such-agent" in done.stdout
    assert "NOT RUN  good" in done.stdout
    assert data["totals"]["errored"] == 1
    assert [left["case_id"] for left in data["not_run"]] == ["good"]


@pytest.mark.parametrize(("policy", "flags"), [("{fail_fast: true}", []), ("{max_concurrency: 1}", ["-x"])])
def test_fail_fast_lists_what_was_not_run(project, program, results, policy, flags) -> None:
    """After the first failure nothing new starts, and the report says so."""
    project(policy=policy, bad="search rm", later="search")
    done = program("eval", "--suite", "s", "--run-profile", "p", *flags)

    assert done.returncode == 1
    assert [left["case_id"] for left in results()["not_run"]] == ["later"]
    assert "NOT RUN  later" in done.stdout


class TestEnding:
    @pytest.fixture
    def waiting(self, project, tmp_path):
        """Start a suite whose agent waits to be ended; return the program and the agent's process id."""
        folder = project(waiting="search wait")
        pidfile = tmp_path / "agent.pid"
        environment = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
        running = subprocess.Popen(
            [PROGRAM, "eval", "--suite", "s", "--report", "json=r.json"],
            cwd=folder,
            env=environment | {"AGENT_PIDFILE": str(pidfile)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        _until(lambda: pidfile.exists() and pidfile.read_text() != "")
        yield running, int(pidfile.read_text())
        if running.poll() is None:
            running.kill()
        running.communicate()

    @pytest.mark.smoke
    @pytest.mark.parametrize(("signals", "code"), [([signal.SIGINT], 130), ([signal.SIGTERM] * 2, 143)])
    def test_a_signal_ends_the_agent_and_reports_what_is_there(self, waiting, tmp_path, signals, code) -> None:
        """The agent is ended, reports are written, the run is listed as not run; `timeout` sends its signal twice."""
        running, agent = waiting
        for number in signals:
            running.send_signal(number)
        out, err = running.communicate(timeout=60)

        assert running.returncode == code, out + err
        assert "interrupted: ending 1 agent" in err
        assert "NOT RUN  waiting" in out
        assert out.splitlines()[-1] == f"exit {code}: interrupted; `--reuse all` runs only the rest"
        assert "exit 3" not in out
        assert json.loads((tmp_path / "r.json").read_text())["exit_code"] == 3
        assert "Traceback" not in err
        _until(lambda: not _alive(agent))


def test_a_terminal_gets_live_progress(project) -> None:
    """On a terminal the runs are shown while they are at work, and colour is used."""
    folder = project(first="search", bad="search rm")
    unwanted = ("OTEL_", "CI", "NO_COLOR")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(unwanted)}
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(folder)
        os.execve(PROGRAM, ["clawtrace", "eval", "--suite", "s"], environment | {"TERM": "xterm-256color"})
    seen = _drain(terminal)
    _, status = os.waitpid(pid, 0)

    assert os.waitstatus_to_exitcode(status) == 1
    assert "first #1" in seen
    assert "spans and verdicts" in seen
    assert "2/2" in seen
    assert "\x1b[31mfail" in seen


def _drain(terminal: int) -> str:
    seen = b""
    while select.select([terminal], [], [], 120)[0]:
        try:
            data = os.read(terminal, 65536)
        except OSError:
            break
        if not data:
            break
        seen += data
    os.close(terminal)
    return seen.decode()


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def _until(holds) -> None:
    """Wait for something that another process does and that cannot be awaited."""
    limit = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < limit
        time.sleep(0.02)


def test_watching_on_a_terminal(project):
    """Each evaluation has the screen for itself; an edit of a case evaluates it alone, and keys choose the next: all, what failed, the end."""
    folder = project(a="search", b="rm")
    environment = {name: value for name, value in os.environ.items() if name not in ("CI", "NO_COLOR")}
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(folder)
        os.execve(PROGRAM, ["clawtrace", "eval", "--suite", "s", "--watch"], environment | {"TERM": "xterm-256color"})

    def screen() -> str:
        seen = ""
        while "q: stop" not in seen:
            assert select.select([terminal], [], [], 120)[0], seen
            seen += os.read(terminal, 65536).decode()
        return re.sub(r"\x1b\[[\d;]*m", "", seen)

    assert "2 runs" in screen()
    case = folder / "configs/cases/b/test.yaml"
    case.write_text(case.read_text().replace("title: b", "title: bb"))
    edited = screen()
    assert "\x1b[2J" in edited
    assert "Changed: configs/cases/b/test.yaml; of it only (a: all cases): b" in edited
    assert "1 run: 1 failed" in edited
    os.write(terminal, b"a")
    assert "2 runs: 1 passed, 1 failed" in screen()
    os.write(terminal, b"xf")
    assert "1 run: 1 failed" in screen()
    os.write(terminal, b"\n")
    assert "2 runs" in screen()
    os.write(terminal, b"q")
    _drain(terminal)
    _, status = os.waitpid(pid, 0)

    assert os.waitstatus_to_exitcode(status) == 1
