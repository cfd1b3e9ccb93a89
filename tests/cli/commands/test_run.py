"""`clawtrace run -- CMD`: the command keeps its streams and arguments; trace and verdicts go to standard error."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import pty
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.conftest import PROGRAM, clean_environment

pytestmark = pytest.mark.full

AGENT = Path(__file__).parents[1] / "agent.py"


@pytest.fixture
def run(program, tmp_path):
    """Run the agent under `clawtrace run`."""
    (tmp_path / "checks.yaml").write_text(
        "assertions:\n  - {type: tool_was_called, tool: search}\n  - {type: tool_not_invoked, tool: rm}\n"
    )

    def call(*flags: str, words: str = "search"):
        pidfile = {"AGENT_PIDFILE": str(tmp_path / "agent.pid")}
        return program("run", *flags, "--", sys.executable, str(AGENT), *words.split(), env=pidfile)

    return call


def test_shows_the_trace_and_keeps_stdout(run) -> None:
    """Without assertions: stdout is the command's alone, the tree goes to stderr, the exit code is the command's."""
    done = run()

    assert done.returncode == 0, done.stderr
    assert done.stdout == "done\n"
    assert "└─ execute_tool search" in done.stderr
    assert "tool calls 1" in done.stderr
    assert run(words="search exit=7").returncode == 7


@pytest.mark.smoke
def test_judges(run, tmp_path) -> None:
    """With assertions the exit code is the verdict's: 1 although the agent exits 0, and 1 where it exits 7."""
    passed = run("--assertions", "checks.yaml", "--report", "json=r.json", "--report", "html=p.html", words="search")
    broken = run("--assertions", "checks.yaml", words="search exit=7")
    failed = run("--assertions", "checks.yaml", words="search rm")

    assert passed.returncode == 0, passed.stderr
    assert passed.stdout == "done\n"
    assert "exit 0: " in passed.stderr
    (case,) = json.loads((tmp_path / "r.json").read_text())["cases"]
    assert (case["runs"][0]["status"], case["runs"][0]["run_status"]) == ("pass", "success")
    assert f'data-run="{case["runs"][0]["run_id"]}"' in (tmp_path / "p.html").read_text()  # its spans are on the page
    assert broken.returncode == 1
    assert "The run ended as `failed`, expected `success`." in broken.stderr
    assert failed.returncode == 1
    assert "▶ └─ execute_tool rm" in failed.stderr


def test_passthrough_gives_the_commands_code(run) -> None:
    """--passthrough: the verdict is shown, the exit code is the command's."""
    done = run("--assertions", "checks.yaml", "--passthrough", words="search rm exit=7")

    assert done.returncode == 7
    assert "exit 1: something failed" in done.stderr


def test_an_sdk_that_drops_spans_is_heard(run) -> None:
    """A ban cannot pass then; what the command wrote is passed on, and one that could not be is an error."""
    done = run("--assertions", "checks.yaml", words="search drops " + "search " * 40)

    assert done.returncode == 3, done.stderr
    assert done.stdout == "done\n"
    assert "Queue full, dropping Span.\n" in done.stderr
    assert "incomplete: The agent's SDK dropped spans (it wrote `Queue full, dropping Span`)" in done.stderr


@pytest.mark.parametrize(
    ("around", "code", "says"),
    [
        ("{} >/dev/full", 4, "error: what the command wrote could not be passed on: No space left on device\n"),
        ("{} | head -c 1", 0, "x"),
        ("{} >both 2>&1; cat both", 0, "x\ny\nx\ny\n"),
    ],
)
def test_what_the_command_writes_is_passed_on(program, tmp_path, around, code, says) -> None:
    """In the order in which it was written where both streams are one file; a reader that goes ends the command."""
    writes = "echo x; echo y >&2; echo x; echo y >&2"
    command = f"{PROGRAM} run -q -- sh -c {shlex.quote(writes)}"
    done = subprocess.run(
        around.format(command), shell=True, cwd=tmp_path, env=clean_environment(), capture_output=True, text=True
    )

    assert done.returncode == code
    assert says in (done.stdout, done.stderr[-len(says) :])


def test_no_trace_is_not_green(run) -> None:
    """A command that exports nothing is skipped: exit 3, and it says once where to look."""
    done = run("--assertions", "checks.yaml", words="search silent")
    unjudged = run(words="search silent")
    broken = run(words="search silent exit=7")

    assert done.returncode == 3
    assert "SKIP  " in done.stderr
    assert "There is no trace of this run" in done.stderr
    for result in (done, unjudged):
        assert result.stderr.count("`clawtrace env` prints what is set)") == 1
        assert "tokens ?" not in result.stderr
    assert (unjudged.returncode, broken.returncode) == (0, 7)
    assert "The agent ended as `failed` (exit code 7): read its standard error first." in broken.stderr


def test_the_base_address_in_code_is_enough(run) -> None:
    """An exporter that is given OTEL_EXPORTER_OTLP_ENDPOINT in code posts to it as it is, without `/v1/traces`."""
    done = run("--assertions", "checks.yaml", words="search base")

    assert (done.returncode, "exit 0: all" in done.stderr) == (0, True), done.stderr


def test_the_time_limit_ends_the_command(run) -> None:
    """--timeout ends a command that does not end; that is no pass."""
    done = run("--assertions", "checks.yaml", "--timeout", "3", words="wait")

    assert done.returncode != 0
    assert "time limit" in done.stderr


def test_arguments_and_standard_input_are_the_commands(program) -> None:
    """Flags after the command belong to it, with or without --, and stdin reaches it."""
    code = "import sys; print(sys.argv[1:], sys.stdin.read())"
    for separator in (["--"], []):
        done = program("run", *separator, sys.executable, "-c", code, "-v", "--help", "--timeout", input="hello")

        assert done.stdout == "['-v', '--help', '--timeout'] hello\n"
        assert done.returncode == 0


def test_quiet_leaves_stderr_to_the_command(run) -> None:
    """-q without assertions prints nothing of its own."""
    done = run("-q")

    assert (done.stdout, done.stderr) == ("done\n", "")


def test_a_command_that_is_not_there(program) -> None:
    """Exit 4 with what is missing, without a traceback."""
    done = program("run", "--", "no-such-command")

    assert done.returncode == 4
    assert "`no-such-command`" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_command_that_a_shell_does_not_find(program, tmp_path) -> None:
    """Exit 4 as well where the run is judged; `--passthrough` gives the shell's own exit code."""
    checks = tmp_path / "checks.yaml"
    checks.write_text("assert: [{tool_not_invoked: pay}]\n")
    command = ("--assertions", str(checks), "--", "sh", "-c", "no-such-command")
    done = program("run", *command)

    assert done.returncode == 4
    assert "the agent did not start: a program of its command was not found (exit code 127)" in done.stderr
    assert program("run", "--passthrough", *command).returncode == 127


def test_mistakes_are_reported_before_the_command_runs(program, tmp_path) -> None:
    """An assertions file with a mistake exits 2 and the command never ran."""
    (tmp_path / "bad.yaml").write_text("assertions: [{type: nope}]\n")
    done = program("run", "--assertions", "bad.yaml", "--", "touch", "ran")

    assert done.returncode == 2
    assert "bad.yaml:1:" in done.stderr
    assert not (tmp_path / "ran").exists()


UNINSTRUMENTED = """\
from pydantic_ai import Agent
from pydantic_ai.models.test import TestModel

agent = Agent(TestModel(), name="greeter")


@agent.tool_plain
def greet(name: str) -> str:
    return f"Hello, {name}!"


print(agent.run_sync("Greet Ada").output)
"""
COMMAND = [sys.executable, "agent.py"]


def printed_lines(text: str) -> str:
    """The lines of code that were printed, without their indentation."""
    lines = text.splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith("    from "))
    block = itertools.takewhile(lambda line: line.startswith("    ") or not line, lines[first:])
    return "\n".join(line.removeprefix("    ") for line in block) + "\n"


def test_what_is_printed_for_a_framework_makes_its_spans_arrive(program, tmp_path) -> None:
    """An agent that exports nothing is shown a file and a line; with exactly these its calls arrive, and nothing more is shown."""
    script = tmp_path / "agent.py"
    script.write_text(UNINSTRUMENTED)
    silent = program("run", "--", *COMMAND)
    assert "agent.py uses Pydantic AI." in silent.stderr
    (tmp_path / "telemetry.py").write_text(printed_lines(silent.stderr))
    script.write_text(f"import telemetry\n{UNINSTRUMENTED}")
    connected = program("run", "--", *COMMAND)

    assert "tool calls 1" in connected.stderr
    assert "uses Pydantic AI" not in connected.stderr
    assert silent.returncode == connected.returncode == 0


def test_an_exporter_without_an_instrumentation_lacks_its_line_alone(program, tmp_path) -> None:
    """The common lines are not shown again; where the instrumentation is there, too, the framework is not the cause."""
    (tmp_path / "agent.py").write_text(
        f"from opentelemetry.sdk.trace import TracerProvider\nTracerProvider()\n{UNINSTRUMENTED}"
    )
    shown = program("run", "--", *COMMAND).stderr
    provider = "from opentelemetry.sdk.trace import TracerProvider\nTracerProvider()"
    (tmp_path / "agent.py").write_text(f"{provider}\n{UNINSTRUMENTED}\nAgent.instrument_all(False)\n")
    instrumented = program("run", "--", *COMMAND).stderr
    (tmp_path / "agent.py").write_text(f"{UNINSTRUMENTED}\nAgent.instrument_all(False)\n")
    without_exporter = program("run", "--", *COMMAND).stderr

    assert printed_lines(shown).split() == ["from", "pydantic_ai", "import", "Agent", "Agent.instrument_all()"]
    assert "Nothing arrived at all" in instrumented
    assert "uses Pydantic AI" not in instrumented
    assert "provider.add_span_processor(" in printed_lines(without_exporter)


WITHOUT_MODEL = """
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor


def ask():
    import openai


provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter()))
tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search"}
provider.get_tracer("a").start_span("execute_tool search", attributes=tool).end()
provider.shutdown()
"""


def test_spans_without_a_model_call_name_the_line_that_is_lacking(program, tmp_path) -> None:
    """Also where other spans come: `run`, `doctor -- CMD` and `eval` say what records the calls of the model's client."""
    (tmp_path / "agent.py").write_text(WITHOUT_MODEL)
    case = tmp_path / "configs" / "cases" / "c" / "test.yaml"
    case.parent.mkdir(parents=True)
    case.write_text(
        "{schema_version: 1, case_id: c, title: C, tags: [t], input: {messages: [{role: user, content: hi}]}, "
        f"runner: {{type: command, command: [{sys.executable}, '{tmp_path}/agent.py']}}, assert: [{{llm_call_count: {{min: 1}}}}]}}"
    )
    (tmp_path / "configs" / "suites").mkdir()
    (tmp_path / "configs" / "suites" / "s.yaml").write_text(
        "{schema_version: 1, suite_id: s, title: S, case_selection: {include_tags: [t]}}"
    )
    ran = program("run", "--", *COMMAND)
    checked = program("doctor", "--", *COMMAND)
    judged = program("eval", "--suite", "s")

    assert (ran.returncode, checked.returncode, judged.returncode) == (0, 0, 3), judged.stdout + judged.stderr
    assert "trial: 1 span arrived (otel-genai): model calls unknown, 1 tool call." in checked.stdout
    for said in (ran.stderr, checked.stdout, judged.stderr):
        assert "agent.py uses OpenAI SDK." in " ".join(said.split())
        assert "    OpenAIInstrumentor().instrument()\n" in said


def test_spans_of_words_that_nobody_knows_name_those_that_are_known(program, tmp_path) -> None:
    """`run` and `init` say it: otherwise nothing but a `?` does."""
    own = (
        WITHOUT_MODEL.replace("gen_ai.tool.", "my.work.")
        .replace("gen_ai.", "my.")
        .replace("execute_tool search", "search")
        .replace("import openai", "pass")
    )
    (tmp_path / "agent.py").write_text(own)
    ran = program("run", "--", *COMMAND)
    begun = program("init", "--yes", "--command", shlex.join(COMMAND), "--message", "hi")

    for said in (ran.stderr, begun.stdout):
        assert "`gen_ai.operation.name` says which one is: `chat`, `execute_tool` or `invoke_agent`" in " ".join(
            said.split()
        )


def test_an_exporter_that_is_set_up_elsewhere_is_not_printed_again(program, tmp_path, tmp_path_factory) -> None:
    """As by `opentelemetry-instrument`: spans arrive, and no source of the agent says why."""
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "sitecustomize.py").write_text(WITHOUT_MODEL.replace("import openai", "pass"))
    (tmp_path / "agent.py").write_text("def ask():\n    import openai\n")

    shown = program("run", "--", "env", f"PYTHONPATH={elsewhere}", *COMMAND).stderr

    assert "Its spans arrive, but none records a model call." in " ".join(shown.split())
    assert "    OpenAIInstrumentor().instrument()\n" in shown
    assert "TracerProvider" not in printed_lines(shown)


@pytest.mark.parametrize(
    ("judging", "says", "sent", "ends"),
    [
        (("--assertions", "checks.yaml", "--report", "json=r.json"), b"the verdicts are those", signal.SIGINT, 130),
        ((), b"the trace is what", signal.SIGTERM, 143),
    ],
)
def test_a_signal_on_a_terminal_ends_the_agent_and_keeps_what_came(tmp_path, judging, says, sent, ends) -> None:
    """Its exit code although verdicts were given: of what came until then; the only traceback is the agent's own, if any."""
    (tmp_path / "checks.yaml").write_text("assert: [{tool_not_invoked: pay}]\n")
    agent = "import signal; signal.signal(2, signal.SIG_DFL); print('READY', flush=True); signal.pause()"
    words = ["run", *judging, "--", sys.executable, "-c", agent]
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(tmp_path)
        os.execve(PROGRAM, [str(PROGRAM), *words], clean_environment(TERM="xterm"))
    said = b""
    with contextlib.suppress(OSError):  # Linux reports so that the other side is closed
        while piece := os.read(terminal, 65536):
            if b"READY" not in said and b"READY" in said + piece:
                if sent == signal.SIGINT:
                    os.write(terminal, b"\x03")
                else:
                    os.kill(pid, sent)
            said += piece
    os.close(terminal)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

    assert code == ends, said.decode()
    assert b"Traceback" not in said
    assert f"interrupted, exit code {ends}: ".encode() + says in said
    assert not judging or json.loads((tmp_path / "r.json").read_text())["totals"]["runs"] == 1
