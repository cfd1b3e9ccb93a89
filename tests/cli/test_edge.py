"""The edge of the program: what is loaded, how mistakes and faults are reported, which exit code they have."""

from __future__ import annotations

import os
import pkgutil
import signal
import subprocess
import sys
from pathlib import Path

import click
import pytest

import clawtrace.cli.commands
from clawtrace import __version__
from clawtrace.cli import main as edge
from clawtrace.cli.main import COMMANDS, cli
from clawtrace.errors import ClawtraceError, ConfigError, ConfigProblem, QueryError, StoreError, UsageError

HEAVY = {
    "pydantic", "duckdb", "grpc", "h11", "rich", "yaml", "google", "opentelemetry", "genai_prices", "nanoarrow",
    "regex", "numpy", "pyarrow", "asyncio", "http", "ssl", "unittest", "xml", "json",
    "clawtrace.model", "clawtrace.store", "clawtrace.facts", "clawtrace.verdicts", "clawtrace.assertions", "clawtrace.report",
    "clawtrace.dialects", "clawtrace.config", "clawtrace.campaign", "clawtrace.session.session", "clawtrace.receiver",
}  # fmt: skip


@pytest.mark.parametrize("flag", ["--help", "--version"])
def test_help_loads_nothing_heavy(flag) -> None:
    """`clawtrace --help` and `--version` load click and the table of commands, and none of the rooms behind them."""
    code = (
        # The command leaves without finalising the interpreter; here it must come back, to be asked what it loaded.
        "import os, sys\n"
        "os._exit = sys.exit\n"
        "from clawtrace.cli.main import main\n"
        f"sys.argv = ['clawtrace', {flag!r}]\n"
        "try:\n    main()\n"
        "except SystemExit as end:\n    assert not end.code\n"
        "print(*sorted(sys.modules), sep='\\n', file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = done.stderr.split()
    clicks_own = subprocess.run(
        [sys.executable, "-c", "import sys, click; print(*sys.modules)"], capture_output=True, text=True, check=True
    ).stdout.split()

    assert "click" in loaded
    heavy = [name for name in loaded if name in HEAVY or name.split(".")[0] in HEAVY]
    assert [name for name in heavy if name not in clicks_own] == []
    assert not [name for name in loaded if name.startswith("clawtrace.cli.") and name != "clawtrace.cli.main"]


def test_help_of_a_command_loads_no_engine() -> None:
    """The help of no command loads a store, a receiver or rich."""
    code = (
        "import sys\nfrom clawtrace.cli.main import COMMANDS, cli\n"
        "for name in COMMANDS:\n"
        "    try:\n        cli([name, '--help'], prog_name='clawtrace')\n"
        "    except SystemExit as end:\n        assert not end.code, name\n"
        "    bad = {'duckdb', 'grpc', 'rich', 'h11', 'clawtrace.session.session'} & set(sys.modules)\n"
        "    assert not bad, (name, bad)\n"
        "    assert len(COMMANDS) > 20\n"
    )
    subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)


def test_every_module_is_in_the_table() -> None:
    """Each module of the room is a command of the list."""
    modules = {info.name.replace("_", "-") for info in pkgutil.iter_modules(clawtrace.cli.commands.__path__)}
    assert modules == set(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_an_example(name, invoke) -> None:
    """`--help` of every command shows an example call, and every option has a sentence."""
    result = invoke(name, "--help")
    command = cli.get_command(click.Context(cli), name)

    assert result.exit_code == 0
    assert f"clawtrace {name}" in result.stdout.split("Example")[1]
    options = [param for param in command.params if isinstance(param, click.Option)]
    context = click.Context(command)
    assert [option.name for option in options if not option.get_help_record(context)[1]] == []


def test_version(invoke) -> None:
    """`--version` prints the package's version."""
    assert invoke("--version").stdout == f"clawtrace, version {__version__}\n"


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["evall"], "error: There is no command 'evall'. Did you mean `eval`?"),
        (["frobnicate"], "There are: init, eval, run,"),
        (["--nope"], "error: No such option '--nope'"),
        (["eval", "--json"], "error: No such option '--json'. Did you mean `--report json=-`?\n"),
        (["run", "--json", "--", "x"], "error: No such option '--json'. Did you mean `--report json=FILE`?\n"),
        (["eval", "-o", "x"], "error: No such option '-o'. Did you mean `--out` or `--report FORMAT=FILE`?\n"),
        (["report", "--junit"], "error: No such option '--junit'. Did you mean `--to junit`?\n"),
        (["eval", "--timeout", "5"], "error: No such option '--timeout'.\n"),
        (["runs", "list", "--jsn"], "error: No such option '--jsn'. Did you mean `--json`?\n"),
        (["env", "--protocol", "carrier-pigeon"], "error: Invalid value for '--protocol'"),
        (["explain"], "error: Missing argument 'TYPE'"),
        (["query"], "error: Give one SELECT, or --verdict"),
        (["eval"], "error: Give --suite to run agents (here is none; `clawtrace init` writes one), or --traces"),
        (["eval", "--suite", "a", "--assertions", "b"], "error: --suite runs agents"),
        (["eval", "--traces", "."], "error: --assertions is missing"),
        (["eval", "--traces", "-", "--assertions", "x", "--case", "a", "--repeat", "2"], "--case, --repeat needs --suite"),
        (["eval", "--traces", "missing.json", "--assertions", "x"], "'missing.json' does not exist"),
        (["eval", "--traces", ".", "--run-per-file", "--run-per-dir"], "--run-per-file and --run-per-dir contradict"),
        (["eval", "--one-run", "--suite", "a"], "--one-run groups recordings into runs, and needs --traces"),
        (["eval", "--report", "pdf=x", "--suite", "a"], "there is no report format 'pdf'; there are: "),
        (["eval", "--report", "json", "--suite", "a"], "'json' is not FORMAT=PATH, for example json=results.json."),
        (["eval", "--report", "json=.", "--suite", "a"], "'.' is a folder; name a file in it."),
        (["inspect", "--traces", ".", "--store", "x.duckdb"], "'x.duckdb' does not exist"),
        (["query", "SELECT 1", "--json", "--format", "csv"], "--json and --format csv contradict each other"),
        (["eval", "--suite", "a", "--suite", "b"], "error: --suite is given 2 times; it takes one.\n`clawtrace eval --help`"),
        (["runs", "list", "--store", "a", "--store=b"], "error: --store is given 2 times; it takes one.\n`clawtrace runs list"),
        (["run"], "error: Missing argument '-- CMD...'"),
        (["run", "--report", "json=-", "--", "true"], "Standard output belongs to the command"),
        (["run", "--report", "json=x", "--", "true"], "--report needs --assertions"),
    ],
)  # fmt: skip
def test_mistakes_in_usage(args, said, invoke) -> None:
    """A mistake on the command line exits 2 before anything is done, and says on stderr what is wrong."""
    result = invoke(*args)

    assert result.exit_code == 2
    assert result.stdout == ""
    assert said in result.stderr
    assert "Traceback" not in result.stderr


class Fault:
    """A command that raises."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def __call__(self) -> click.Command:
        @click.command()
        def command() -> None:
            raise self.error

        return command


@pytest.fixture
def fails_with(monkeypatch, invoke):
    """Make `clawtrace env` raise an error, and run it."""

    def call(error: BaseException, **options):
        monkeypatch.setattr(edge.LazyGroup, "get_command", lambda *_: Fault(error)())
        return invoke("env", **options)

    return call


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (ClawtraceError("it broke."), 4, "error: it broke.\n"),
        (UsageError("no such run."), 2, "error: no such run.\n"),
        (StoreError("disk full."), 4, "error: disk full.\n"),
        (QueryError("Parser Error: x\n  near y"), 2, "error: Parser Error: x\n  near y\n"),
        (
            ConfigError([ConfigProblem("a.yaml", 3, 5, "bad."), ConfigProblem("b.yaml", 0, 0, "worse.")]),
            2,
            "error: a.yaml:3:5: bad.\nerror: b.yaml: worse.\n",
        ),
        (
            PermissionError(13, "Permission denied", "x.json"),
            4,
            "error: 'x.json' cannot be used: Permission denied. Change its permissions, or choose another path.\n",
        ),
        (
            ZeroDivisionError("division by zero"),
            4,
            "error: ZeroDivisionError: division by zero\n"
            "error: This is a bug in clawtrace; CLAWTRACE_DEBUG=1 shows where.\n",
        ),
        (KeyboardInterrupt(), 130, "\ninterrupted\n"),
        (click.FileError("x.yaml", "gone"), 2, "error: Could not open file 'x.yaml': gone\n"),
    ],
)
def test_errors_become_text_and_exit_code(error, code, said, fails_with, monkeypatch) -> None:
    """Each kind of error has its exit code; stderr has its text and no traceback; stdout stays empty."""
    monkeypatch.delenv("CLAWTRACE_DEBUG", raising=False)
    result = fails_with(error)

    assert result.exit_code == code
    assert result.stderr == said
    assert result.stdout == ""


@pytest.mark.parametrize("value", ["1", "0"])
def test_debug_shows_the_traceback(value, fails_with) -> None:
    """CLAWTRACE_DEBUG=1 shows where an error arose, before its text; 0 does not."""
    result = fails_with(ClawtraceError("it broke."), env={"CLAWTRACE_DEBUG": value})

    assert ("Traceback" in result.stderr) is (value == "1")
    assert result.stderr.endswith("error: it broke.\n")


def test_a_reader_that_leaves_is_no_fault() -> None:
    """`clawtrace env | head -1`: no noise on stderr, and an exit code that is no verdict."""
    program = Path(sys.executable).parent / "clawtrace"
    read, write = os.pipe()
    os.close(read)
    try:
        done = subprocess.run([program, "env"], stdout=write, stderr=subprocess.PIPE, text=True, timeout=60)
    finally:
        os.close(write)

    assert done.stderr == ""
    assert done.returncode == 141


@pytest.mark.parametrize("closed", [(0,), (1,), (2,), (0, 1, 2)])
@pytest.mark.full
def test_standard_streams_that_are_closed(closed, tmp_path) -> None:
    """`clawtrace … >&-`: the command does its work and has its own exit code; no file it opens takes the stream's place."""
    program = Path(sys.executable).parent / "clawtrace"
    closing = " ".join(f"{number}>&-" for number in closed)
    for words, code in ((["schema", "--out", "schemas"], 0), (["eval", "--suite", "nope"], 2), (["init"], 2)):
        done = subprocess.run(
            ["/bin/sh", "-c", f'exec "$@" {closing}', "sh", str(program), *words],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            cwd=tmp_path,
            timeout=60,
        )

        assert done.returncode == code, done.stderr
        assert "Traceback" not in done.stderr
        assert "bug in clawtrace" not in done.stderr
    assert not any(file.read_text().startswith("error") for file in (tmp_path / "schemas").iterdir())


def test_a_working_folder_that_is_gone(fails_with) -> None:
    """What the system says of it names nothing."""
    result = fails_with(FileNotFoundError(2, "No such file or directory"))

    assert (result.exit_code, result.stderr) == (
        4,
        "error: The working folder no longer exists; change to one that does.\n",
    )


STRUCK = """
import os, duckdb
from clawtrace.cli import main as edge
from clawtrace.store.questions.question_side import QuestionSide

SQL = '''SELECT sum(a.range * b.range % 7) FROM range(1000) a, range(1000000) b, range(1000000)
         WHERE struck(a.range)'''

def struck(row):
    if row == 0:
        os.kill(os.getpid(), NUMBER)
    return True

def query():
    database = duckdb.connect(config={"threads": 2})  # so that the other one works and the caller's only waits for it
    database.create_function("struck", struck, ["BIGINT"], bool)
    QuestionSide(database, "here", lambda: None).ask_user(SQL)

edge.LazyGroup.get_command = lambda *_: edge.click.Command("env", callback=query)
edge.main()
"""


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_a_users_query(number, code) -> None:
    """A signal ends a query that would take hours at once; no fault is reported, and the exit code is the signal's."""
    source = STRUCK.replace("NUMBER", str(int(number)))
    done = subprocess.run([sys.executable, "-c", source, "env"], capture_output=True, text=True, timeout=60)

    assert done.returncode == code, done.stderr
    assert "bug in clawtrace" not in done.stderr


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("Query interrupted"),
        StoreError("the store 'x' rejected a statement: Query interrupted"),
        ValueError("reading the schema of 'wanted_runs' failed: KeyboardInterrupt: "),
    ],
)
def test_what_duckdb_makes_of_a_signal_is_no_fault(fails_with, error) -> None:
    """A signal in the middle of one of the engine's own statements, which DuckDB reports as a separate error."""
    result = fails_with(error)

    assert (result.exit_code, result.stderr) == (130, "interrupted\n")


def test_what_cannot_be_closed_after_a_signal_is_no_fault(fails_with) -> None:
    """An error on the way out hides that somebody pressed Ctrl-C, which is the cause and the exit code."""
    late = ClawtraceError("cannot close the store")
    late.__context__ = KeyboardInterrupt()
    result = fails_with(late)

    assert (result.exit_code, result.stderr) == (130, "interrupted\n")


@pytest.mark.parametrize("struck", [KeyboardInterrupt, SystemExit(143)])
def test_what_pydantic_makes_of_a_signal_is_no_fault(fails_with, struck) -> None:
    """A signal while a model is built, as at the start of most commands."""
    from pydantic_core import SchemaError, SchemaValidator

    class Struck:
        """A value at which the handler runs."""

        def __repr__(self) -> str:
            raise struck

    with pytest.raises(SchemaError) as caught:
        SchemaValidator({"type": "literal", "expected": [Struck()]})
    result = fails_with(caught.value)

    assert (result.exit_code, result.stderr) == (130, "interrupted\n")


def test_a_narrow_encoding_is_no_fault(program) -> None:
    """On an ASCII-only stdout everything can be printed; what it cannot carry is written as an escape."""
    done = program("dialects", env={"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"})

    assert done.returncode == 0
    assert done.stdout.isascii()
