"""`clawtrace init`: what it writes works at once, holds of what was seen, and takes nothing away."""

from __future__ import annotations

import os
import pty
import select
import shlex
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

pytestmark = pytest.mark.full

AGENT = Path(__file__).parents[1] / "agent.py"
Program = Callable[..., subprocess.CompletedProcess[str]]

IN_PROCESS = True


def command(words: str) -> str:
    """A command line that starts the test agent."""
    return f"{sys.executable} {AGENT} {words}"


def case_of(folder: Path, case: str = "first") -> dict:
    """A case file's data."""
    return yaml.safe_load((folder / "configs" / "cases" / case / "test.yaml").read_text())


def files_in(folder: Path) -> set[str]:
    """All files but those of results."""
    found = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    return {name for name in found if not name.startswith("outputs/")}


@pytest.mark.smoke
def test_a_command_becomes_a_case_that_passes_at_once(program: Program, tmp_path: Path):
    """Files are written with assertions that hold of the trial; the command that is printed next exits with 0."""
    done = program("init", "--yes", "--command", command("search write"), "--message", "Find {it} & write it down: #1")

    assert done.returncode == 0, done.stderr
    case = case_of(tmp_path)
    asked = {one["type"]: one for one in case["assertions"]}
    assert asked["tool_sequence"]["expected"] == ["search", "write"]
    assert {"no_span_errors", "trace_duration", "agent_exit_code"} <= asked.keys()
    assert case["input"]["messages"] == [{"role": "user", "content": "Find {it} & write it down: #1"}]
    for name in ("clawtrace.yaml", "configs/suites/first.yaml", "configs/cases/first/test.yaml"):
        first = (tmp_path / name).read_text().splitlines()[0]
        schema = first.removeprefix("# yaml-language-server: $schema=")
        assert (tmp_path / name).parent.joinpath(schema).is_file()
    following = done.stdout.strip().splitlines()[-1].removeprefix("Next: clawtrace ").split()
    assert following == ["eval", "--suite", "first"]
    again = program(*following)
    assert again.returncode == 0, again.stdout + again.stderr


def test_a_call_that_failed_in_the_trial_is_named(program: Program, tmp_path: Path):
    """No assertion asks of failures then, and the answer may hide it."""
    done = program("init", "--yes", "--command", command("search write fails=write"), "--message", "Find it")

    assert done.returncode == 0, done.stderr
    assert "Failed in this run: `write`." in done.stdout
    assert "no_span_errors" not in {one["type"] for one in case_of(tmp_path)["assertions"]}


def test_a_changed_agent_fails_the_case(program: Program, tmp_path: Path):
    """The assertions can fail: an agent that calls other tools than in the trial does not pass."""
    assert program("init", "--yes", "--command", command("search write")).returncode == 0
    file = tmp_path / "configs" / "cases" / "first" / "test.yaml"
    file.write_text(file.read_text().replace("agent.py search write", "agent.py write search"))

    assert program("eval", "--suite", "first").returncode == 1


def test_an_agent_without_spans_gets_the_reason(program: Program, tmp_path: Path):
    """Exit code 3, with the hints for a run without a trace; nothing is left, so that the command it prints can succeed."""
    done = program("init", "--yes", "--command", command("silent"), "--message", "it's you", "--case", "mine")

    assert done.returncode == 3
    assert "no span of it arrived" in done.stdout
    assert "Nothing arrived at all. Usual causes: no exporter is configured" in " ".join(done.stdout.split())
    assert [*tmp_path.iterdir()] == []
    again = shlex.split(done.stdout.splitlines()[-1])
    assert again[0] == "clawtrace"
    assert program(*again[1:]).returncode == 3
    assert program(*again[1:], "--no-trial").returncode == 0
    assert case_of(tmp_path, "mine")["input"]["messages"][0]["content"] == "it's you"


def test_a_command_that_breaks_shows_its_last_words(program: Program, tmp_path: Path):
    """A program that is missing is named, in the shell's words, and nothing is written."""
    done = program("init", "--yes", "--command", "no-such-program-anywhere")

    assert done.returncode == 4
    assert done.stdout == ""
    assert "the agent did not start" in done.stderr
    assert done.stderr.count("no-such-program-anywhere: not found") == 1
    assert [*tmp_path.iterdir()] == []


def test_a_variable_that_the_agent_lacks_is_named_and_can_be_passed(program: Program, tmp_path: Path):
    """`clawtrace run` gives it the whole environment, `init` a part: what its error names is said, and --pass-env is enough."""
    agent = f"import os, runpy; os.environ['MY_TENANT']; runpy.run_path({str(AGENT)!r}, run_name='__main__')"
    args = ["init", "--yes", "--command", shlex.join([sys.executable, "-c", agent])]
    refused = program(*args, env={"MY_TENANT": "acme"})

    assert refused.returncode == 3
    assert "did not get `MY_TENANT` of your environment" in refused.stdout
    done = program(*args, "--pass-env", "MY_TENANT", env={"MY_TENANT": "acme"})
    assert done.returncode == 0, done.stdout
    assert case_of(tmp_path)["runner"]["pass_env"] == ["*_API_KEY", "*_BASE_URL", "MY_TENANT"]


def test_spans_that_name_no_run_come_from_an_agent_that_exports(program: Program, tmp_path: Path):
    """How to pass the run on is said, not how to export."""
    (tmp_path / "requirements.txt").write_text("langgraph\n")
    silent = program("init", "--yes", "--command", command("silent"))
    unset = "env -u OTEL_EXPORTER_OTLP_HEADERS -u OTEL_RESOURCE_ATTRIBUTES -u TRACEPARENT"
    endpoint = 'OTEL_EXPORTER_OTLP_ENDPOINT="${OTEL_EXPORTER_OTLP_ENDPOINT%/run/*}"'
    nameless = program("init", "--yes", "--command", f"{unset} {endpoint} {command('search')}")

    assert (silent.returncode, nameless.returncode) == (3, 3)
    assert "uses LangChain" in silent.stdout
    assert "arrived that name no run" in nameless.stdout
    assert "uses LangChain" not in nameless.stdout


def test_a_trial_that_gives_nothing_takes_nothing_away(program: Program, tmp_path: Path):
    """Results that were there before are all there is after a trial without spans, of the same suite too."""
    assert program("init", "--yes", "--command", command("search")).returncode == 0
    results = tmp_path / "outputs"
    before = set(results.rglob("*.json"))

    assert program("init", "--yes", "--case", "second", "--command", command("silent")).returncode == 3
    assert set(results.rglob("*.json")) == before
    assert not list(results.rglob("second"))
    assert program("eval", "--suite", "first").returncode == 0


def test_nothing_is_overwritten(program: Program, tmp_path: Path):
    """A case that is there is an error; a project and a suite that are there are kept and used."""
    assert program("init", "--yes", "--no-trial", "--command", "true").returncode == 0
    before = {name: (tmp_path / name).read_bytes() for name in files_in(tmp_path)}

    refused = program("init", "--yes", "--command", command("search"))
    second = program("init", "--yes", "--case", "second", "--command", command("search"))

    assert refused.returncode == 2
    assert "configs/cases/first/test.yaml already exists" in refused.stderr
    assert second.returncode == 0, second.stderr
    assert {name: (tmp_path / name).read_bytes() for name in before} == before
    assert files_in(tmp_path) - before.keys() == {"configs/cases/second/test.yaml"}


def test_nothing_is_left_where_it_cannot_succeed(program: Program, tmp_path: Path):
    """A suite that selects other cases: an error, and no file or folder is left of the attempt."""
    suites = tmp_path / "configs" / "suites"
    suites.mkdir(parents=True)
    (suites / "first.yaml").write_text(
        "schema_version: 1\nsuite_id: first\ntitle: x\ncase_selection: {include_tags: [a]}\n"
    )

    done = program("init", "--yes", "--command", command("search"))

    assert done.returncode == 2
    assert files_in(tmp_path) == {"configs/suites/first.yaml"}
    assert not (tmp_path / "configs" / "cases").exists()


@pytest.mark.parametrize("client", ["pydantic-ai", "openai-agents+openinference", "openclaw"])
def test_a_recorded_run_becomes_a_case_that_replays_it(program: Program, tmp_path: Path, recordings: Path, client: str):
    """The recording is replayed and every assertion that was written passes."""
    traces = recordings / client / "delegation"
    done = program("init", "--yes", "--traces", str(traces), "--one-run", "seen")

    assert done.returncode == 0, done.stderr
    case = case_of(tmp_path)
    assert case["runner"]["type"] == "replay"
    assert len(case["assertions"]) >= 4
    evaluated = program("eval", "--suite", "first")
    assert evaluated.returncode == 0, evaluated.stdout + evaluated.stderr


def test_one_of_several_recorded_runs_is_named(program: Program, tmp_path: Path, recordings: Path):
    """Several runs without --from-run are listed; with it, that run's own folder is replayed."""
    traces = ("--traces", str(recordings / "pydantic-ai"), "--run-per-dir")
    unsaid = program("init", "--yes", *traces)
    done = program("init", "--yes", *traces, "--from-run", "one_tool")

    assert unsaid.returncode == 2
    assert "choose one with --from-run" in unsaid.stderr
    assert done.returncode == 0, done.stderr
    assert [Path(path).name for path in case_of(tmp_path)["runner"]["traces"]] == ["one_tool"]
    assert program("eval", "--suite", "first").returncode == 0


def test_a_stored_run_needs_a_command(program: Program, tmp_path: Path):
    """Of a stored run the assertions are taken, and the agent that will be held against them is asked for."""
    assert program("init", "--yes", "--command", command("search write")).returncode == 0
    (store,) = tmp_path.glob("outputs/campaigns/first/*/spans.duckdb")
    runs = program("query", "SELECT run_id FROM runs", "--store", str(store), "--json")
    run_id = yaml.safe_load(runs.stdout)[0]["run_id"]
    source = ("--store", str(store), "--from-run", run_id, "--case", "again")

    without = program("init", "--yes", *source)
    done = program("init", "--yes", *source, "--command", command("search write"))

    assert without.returncode == 2
    assert "command with --command" in without.stderr
    assert done.returncode == 0, done.stderr
    asked = {one["type"]: one for one in case_of(tmp_path, "again")["assertions"]}
    assert asked["tool_sequence"]["expected"] == ["search", "write"]
    assert program("eval", "--suite", "first").returncode == 0


def test_without_a_terminal_nothing_is_asked(program: Program, tmp_path: Path):
    """No terminal and no --command: an error that names the flag, and no file."""
    done = program("init")

    assert done.returncode == 2
    assert "--command is missing" in done.stderr
    assert "--command is empty" in program("init", "--yes", "--command", " ").stderr
    assert files_in(tmp_path) == set()


def answered(folder: Path, *answers: tuple[str, str]) -> str:
    """Run `clawtrace init` on a terminal, write each answer once its words have been seen, and return all that was shown."""
    main, terminal = pty.openpty()
    process = subprocess.Popen(
        [Path(sys.executable).parent / "clawtrace", "init"],
        cwd=folder,
        env={
            name: value for name, value in os.environ.items() if not name.startswith(("OTEL_", "CLAWTRACE_", "COLUMNS"))
        },
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
    )
    os.close(terminal)
    seen, left = "", list(answers)
    deadline = time.monotonic() + 60
    while process.poll() is None or select.select([main], [], [], 0)[0]:
        assert time.monotonic() < deadline, seen
        if select.select([main], [], [], 0.1)[0]:
            try:
                seen += os.read(main, 4096).decode()
            except OSError:
                break
        if left and left[0][0] in seen:
            os.write(main, left.pop(0)[1].encode() + b"\n")
    os.close(main)

    assert process.wait() == 0, seen
    return seen


def test_on_a_terminal_it_asks_with_defaults(tmp_path: Path):
    """Three questions; an empty answer takes the default."""
    shown = answered(
        tmp_path,
        ("Command that starts", command("search")),
        ("The message for the agent", ""),
        ("Name of the case", "asked"),
    )

    assert "Name of the case [first]: " in shown
    case = case_of(tmp_path, "asked")
    assert case["input"]["messages"][0]["content"] == "Hello! What can you do?"
    assert case["assertions"][0] == {"type": "tool_sequence", "expected": ["search"]}


def test_a_name_that_cannot_be_is_asked_for_again(program: Program, tmp_path: Path):
    """A second case: no name that is taken is proposed, and one that is taken, or is no id, does not end everything."""
    assert program("init", "--yes", "--no-trial", "--command", "true").returncode == 0

    shown = answered(
        tmp_path,
        ("Command that starts", command("search")),
        ("The message for the agent", "Hi"),
        ("Name of the case", "first"),
        ("already exists", "../x"),
        ("an id has letters", "other"),
    )

    assert "[first]" not in shown
    assert case_of(tmp_path, "other")["input"]["messages"][0]["content"] == "Hi"


def test_an_agent_that_exports_nothing_is_shown_its_frameworks_lines(program: Program, tmp_path: Path):
    """`init` names the framework of the dependencies and what it needs, whether the command is run or not."""
    (tmp_path / "requirements.txt").write_text("crewai>=1\n")
    tried = program("init", "--yes", "--command", "true")
    untried = program("init", "--yes", "--no-trial", "--command", "true")

    for done, code in ((tried, 3), (untried, 0)):
        assert done.returncode == code
        assert "requirements.txt uses CrewAI." in done.stdout
        assert "    CrewAIInstrumentor().instrument()\n" in done.stdout
        assert "openinference-instrumentation-crewai\n" in done.stdout
