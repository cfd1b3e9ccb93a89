"""The `clawtrace` program: finds the command, and is the one edge where errors become text and exit codes.

Nothing heavy is imported here: `clawtrace --help` needs click and this file. A command lives in
`clawtrace/cli/commands/<name>.py` as `command`; the table below carries its one sentence, so that the list of commands can be
shown without loading them.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import click
from click.exceptions import NoArgsIsHelpError, NoSuchOption

from clawtrace import __version__
from clawtrace.support.memory import collect_seldom

if TYPE_CHECKING:
    from types import FrameType

    from click.shell_completion import CompletionItem

__all__ = ["COMMANDS", "cli", "main"]

COMMANDS = {
    "init": "Write a first case that works, from a command or a recorded run.",
    "eval": "Judge agents: run a suite of cases, or judge recorded traces.",
    "run": "Run any command with telemetry, show its trace, and judge it.",
    "serve": "Receive from any process and judge its runs on request, until stopped.",
    "inspect": "Show what recorded or stored runs did: calls, tools, agents, tokens, cost.",
    "runs": "List, show, export and delete stored runs, and assign unattributed traces to a run.",
    "store": "Make clawtrace's own tables in a ClickHouse, or save a damaged store.",
    "suggest": "Write assertions that hold for good runs, and say which faults they catch.",
    "import-config": "Write a suite from the checks of promptfoo or agentevals.",
    "mutate": "Score assertions by the faults of a recorded run that they catch.",
    "report": "Write stored results in another format.",
    "view": "Open results as a page in the browser.",
    "diff": "Compare two runs: tools, calls, tokens, cost, time, tree.",
    "compare": "Compare two campaigns statistically, and list what got worse.",
    "history": "Show how each case went over the campaigns: when it broke, after which edit.",
    "baseline": "Keep a campaign as a baseline, and compare later ones with it.",
    "query": "Query recorded or stored runs in SQL, or rerun a verdict.",
    "judge": "Measure how far judges agree with people.",
    "assertions": "List the assertion types.",
    "explain": "Explain one assertion type: meaning, fields, example.",
    "dialects": "List the instrumentations that clawtrace reads, and what each can record.",
    "validate": "Check every configuration file; run nothing.",
    "doctor": "Test the receiver over each protocol, and look for what keeps spans away.",
    "conformance": "Check whether an agent's telemetry tells what it did, in standard scenarios.",
    "env": "Show the environment that makes an agent export to clawtrace.",
    "mcp": "Serve results to a coding agent over MCP (stdio).",
    "model-server": "Play a scripted or recorded model over HTTP, for tests without a provider.",
    "mcp-proxy": "Stand between an agent and its MCP server: record, replay, and make tools fail.",
    "completion": "Print the script with which bash, zsh or fish complete commands.",
    "schema": "Export the JSON Schemas of files and results.",
}

_INTERRUPTED = 130
_TERMINATED = 143
_signals: set[int] = set()
"""The signals that asked this process to end."""
_BROKEN_PIPE = 141
"""128 + the signal's number, as shells report it."""


class _ReaderGoneError(Exception):
    """The reader of standard output has gone."""


class LazyGroup(click.Group):
    """A group whose commands are imported when they are called, and the edge that maps errors."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands, the main job first."""
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return one command."""
        del ctx
        if cmd_name not in COMMANDS:
            return None
        from importlib import import_module

        command: click.Command = import_module(f"clawtrace.cli.commands.{cmd_name.replace('-', '_')}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, or say which one may have been meant."""
        name = args[0]
        if name not in COMMANDS and not name.startswith("-"):
            from clawtrace.support.did_you_mean import did_you_mean

            hint = did_you_mean(name, COMMANDS) or f"There are: {', '.join(COMMANDS)}."
            raise click.UsageError(f"There is no command {name!r}. {hint}", ctx)
        found = super().resolve_command(ctx, args)
        if found[1] is not None and not ctx.resilient_parsing:
            _refuse_repeated(found[1], name, found[2], ctx)
        return found

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete the name of a command from the table, without importing any."""
        from click.shell_completion import CompletionItem

        commands = [CompletionItem(name, help=text) for name, text in COMMANDS.items() if name.startswith(incomplete)]
        return [*commands, *click.Command.shell_complete(self, ctx, incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands from the table, without importing any."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; report a reader of stdout that has gone, before click makes it an exit code 1."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            raise _ReaderGoneError from error

    def main(self, *args: Any, standalone_mode: bool = True, **extra: Any) -> Any:
        """Run the program and exit with the code that the command returns, or that its error maps to."""
        run: Callable[..., Any] = partial(super().main, *args, **extra, standalone_mode=False)
        if not standalone_mode:
            return run()
        sys.exit(_at_the_edge(run))


_SELECTING = frozenset(("suite", "assertions", "store", "server", "one_run", "where", "verdict", "agent", "turn"))
"""Options that say what is judged."""


def _refuse_repeated(command: click.Command, name: str, args: list[str], parent: click.Context) -> None:
    """Refuse an option that says what is judged, takes one value and is given two: click would drop the first without a word.

    Of a setting the last one holds, so that a wrapper's default can be overridden.

    Raises:
        UsageError: such an option, of the command or of a command of it.
    """
    context = command.context_class(command, info_name=name, parent=parent, **command.context_settings)
    try:
        _, rest, order = command.make_parser(context).parse_args(list(args))
    except click.UsageError:
        return  # the command says it
    for option in order:
        takes_one = isinstance(option, click.Option) and not option.multiple
        if takes_one and option.name in _SELECTING and order.count(option) > 1:
            raise click.UsageError(f"{option.opts[0]} is given {order.count(option)} times; it takes one.", context)
    if isinstance(command, click.Group) and rest:
        inner = command.get_command(context, rest[0])
        if inner is not None:
            _refuse_repeated(inner, rest[0], rest[1:], context)


def _at_the_edge(run: Callable[[], Any]) -> int:
    """Run and return an exit code, in any case: one line on stderr for a mistake, no traceback."""
    try:
        _take_interrupts()
        code = run()
        sys.stdout.flush()
        return int(code or 0)
    except click.ClickException as error:
        _debug()
        _show_usage(error)
        return 2
    except (click.Abort, KeyboardInterrupt):
        _debug()
        click.echo("interrupted", err=True)
        return _INTERRUPTED
    except (BrokenPipeError, _ReaderGoneError):
        _forget_stdout()
        return _BROKEN_PIPE
    except Exception as error:
        _debug()
        if _is_of_a_signal(error):
            click.echo("interrupted", err=True)
            return 128 + max(_signals, default=_INTERRUPTED - 128)
        return print_error(error)


def _is_of_a_signal(error: Exception) -> bool:
    """Return whether an error is what DuckDB, or Pydantic where it builds a model, makes of the exception of a signal's handler.

    Or one that arose while that exception ended what was at work.
    """
    from clawtrace.errors import StoreError

    earlier: BaseException | None = error
    while earlier is not None:
        if isinstance(earlier, KeyboardInterrupt):
            return True
        earlier = earlier.__context__
    text = str(error).rstrip(" 0123456789\n")
    return text.endswith(("KeyboardInterrupt:", "SystemExit:")) or (
        isinstance(error, RuntimeError | StoreError) and text.endswith("Query interrupted")
    )


def _take_interrupts() -> None:
    """Make Ctrl-C an exception again, which `clawtrace.__main__` kept it from being while the program was loaded."""
    import signal

    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _show_usage(error: click.ClickException) -> None:
    """Print what is wrong with the command line, and how to get help."""
    if isinstance(error, NoArgsIsHelpError):
        error.show()
        return
    said = f"{error.message} {_meant(error)}".strip() if isinstance(error, NoSuchOption) else error.format_message()
    click.echo(f"error: {said}", err=True)
    context = getattr(error, "ctx", None)
    if context is not None:
        click.echo(f"`{context.command_path} --help` explains the command.", err=True)


_TO_FILE = ("--out", "--report FORMAT=FILE", "--to FORMAT")
_MEANT = {
    "--json": ("--report json=-", "--format json", "--to json"),
    "--format": ("--report FORMAT=FILE", "--to FORMAT", "--json"),
    "--output": _TO_FILE, "-o": _TO_FILE, "--file": ("--traces",), "--trace": ("--traces",), "--input": ("--traces",),
    "--parallel": ("--concurrency",), "--workers": ("--concurrency",), "--jobs": ("--concurrency",), "-j": ("--concurrency",),
    "--filter": ("--case",), "--repetitions": ("--repeat",), "--runs": ("--repeat",), "--port": ("--http-port",),
} | {f"--{name}": (f"--report {name}=FILE", f"--to {name}") for name in ("junit", "html", "sarif", "markdown", "github", "csv")}  # fmt: skip
"""Our flags for flags of other programs; only those that the command has are suggested."""


def _meant(error: NoSuchOption) -> str:
    """Ask whether an option of the command was meant; nothing where none resembles what was given."""
    from clawtrace.support.did_you_mean import did_you_mean

    params = error.ctx.command.params if error.ctx is not None else []
    known = [name for param in params if isinstance(param, click.Option) for name in param.opts]
    stdout = "FILE" if "--passthrough" in known else "-"  # a wrapped command's
    meant = [one.replace("=-", f"={stdout}") for one in _MEANT.get(error.option_name, ()) if one.split(" ")[0] in known]
    if meant:
        return f"Did you mean {' or '.join(f'`{one}`' for one in meant)}?"
    return did_you_mean(error.option_name, known, likeness=0.75)


_REMEDIES = {
    errno.EACCES: "Change its permissions, or choose another path.",
    errno.EPERM: "Change its permissions, or choose another path.",
    errno.EROFS: "Choose a path on a file system that can be written.",
    errno.ENOENT: "Check the path: it does not exist, or cannot be created there.",
    errno.ENOTDIR: "Check the path: a part of it is a file.",
    errno.EISDIR: "Give the path of a file.",
    errno.ENOSPC: "Free space on its disk.",
    errno.EMFILE: "Raise the limit of this process (`ulimit -n`).",
}
"""Advice for errors of the operating system, by number."""


def _of_the_system(error: OSError) -> str:
    """Return which path the operating system refused, why, and what to do."""
    remedy = _REMEDIES.get(error.errno or 0, "")
    if not error.filename:
        return f"{error.strerror or error}. {remedy}" if remedy else str(error)
    return f"{error.filename!r} cannot be used: {error.strerror or error}. {remedy}".rstrip()


def print_error(error: Exception) -> int:
    """Print an error on stderr, one line per problem, and return its exit code."""
    from clawtrace.errors import ClawtraceError, ConfigError, ExitCode

    code = ExitCode.BROKEN
    if isinstance(error, ConfigError):
        texts, code = [str(problem) for problem in error.problems], error.exit_code
    elif isinstance(error, ClawtraceError):
        texts, code = [str(error) or type(error).__name__], error.exit_code
    elif isinstance(error, FileNotFoundError) and not error.filename:
        texts = ["The working folder no longer exists; change to one that does."]
    elif isinstance(error, OSError):
        texts = [_of_the_system(error)]
    else:
        texts = [f"{type(error).__name__}: {error}", "This is a bug in clawtrace; CLAWTRACE_DEBUG=1 shows where."]
    with suppress(OSError):  # standard error may be on the same full disk
        for text in texts:
            click.echo(f"error: {text}", err=True)
    return int(code)


def _debug() -> None:
    """Show the traceback of the exception at hand when CLAWTRACE_DEBUG asks for it."""
    if os.environ.get("CLAWTRACE_DEBUG", "0") not in ("", "0"):
        import traceback

        traceback.print_exc()


def _forget_stdout() -> None:
    """Point stdout at nothing: its reader has gone, and Python would complain when it flushes at exit."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@click.group(
    cls=LazyGroup,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Example: clawtrace eval --traces recording.otlp.jsonl --assertions checks.yaml",
)
@click.version_option(__version__, prog_name="clawtrace")
@click.pass_context
def cli(context: click.Context) -> None:
    """Judge AI agents by their OpenTelemetry traces.

    Without a command: what is in this folder, and what to do next. `clawtrace COMMAND --help` explains a command. Results go to standard output, everything else to standard error.
    Exit codes: 0 passed, 1 something failed, 2 usage or configuration, 3 undecided, 4 an error.
    """
    if context.invoked_subcommand is None:
        from clawtrace.cli.projects.next_step import next_step

        click.echo(next_step())


def main() -> None:
    """Run the program that the command line asks for, and exit."""
    import signal

    collect_seldom()

    signal.signal(signal.SIGTERM, _terminate)
    _open_standard_streams()
    for stream in (sys.stdout, sys.stderr):
        # What a narrow encoding cannot write is shown as an escape; a report must not fail on a name.
        with suppress(AttributeError):
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        cli(prog_name="clawtrace")
    except SystemExit as end:
        _leave(end)


def _open_standard_streams() -> None:
    """Point the standard streams that the parent process has closed (``>&-``) at nothing.

    Python has None for them then, and the next file that is opened, a span store for example, would get their number and
    be written to by every write to standard output.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest number that is free
            os.set_inheritable(number, True)
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, "r" if name == "stdin" else "w", closefd=False))  # noqa: SIM115


def _leave(end: SystemExit) -> None:
    """End the process without taking the interpreter to pieces, which costs a short command a tenth of its time.

    Only where nothing is left to do: no other thread runs, nothing traces, and what was written has been flushed. A signal does not
    wait for threads: DuckDB crashes where the interpreter goes while one of them asks it.
    """
    import threading

    code = end.code if isinstance(end.code, int) else int(end.code is not None)
    watched = sys.gettrace() is not None or sys.getprofile() is not None or "coverage" in sys.modules
    working = threading.active_count() > 1 and code not in (_INTERRUPTED, _TERMINATED)
    if working or watched or isinstance(end.code, str):
        raise end
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError):
        raise end from None
    os._exit(code)


def _terminate(signum: int, frame: FrameType | None) -> None:
    """End through the normal way out, so that agents are ended and the store is closed."""
    del frame
    _signals.add(signum)
    raise SystemExit(_TERMINATED)
