"""`clawtrace model-server SCRIPT.yaml`, or with `--cassette`: a model over HTTP, for good or around one command."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from clawtrace.cli.flags import FILE, PORT
from clawtrace.config.files.document import SUFFIXES
from clawtrace.errors import ExitCode, UsageError
from clawtrace.support.files import whole_text_file

if TYPE_CHECKING:
    from clawtrace.config.base import CassetteMode

__all__ = ["command"]


class _Serving(NamedTuple):
    """A server that runs."""

    url: str
    environment: Callable[[Mapping[str, str]], dict[str, str]]
    """The environment of the command that it runs for, from the caller's."""
    said: Callable[[], tuple[str, bool]]
    """The final message, and whether a request could not be answered."""


@click.command(epilog="Example: clawtrace model-server --cassette refund.yaml --mode record -- python agent.py")
@click.argument("words", metavar="[SCRIPT] [-- CMD...]", nargs=-1, type=click.UNPROCESSED)
@click.option(
    "--cassette",
    type=FILE,
    metavar="FILE",
    help="Replay recorded answers, or record them, in place of SCRIPT.",
)
@click.option(
    "--mode",
    type=click.Choice(["record", "replay", "auto"]),
    help="`record` asks the provider and writes FILE anew, `replay` asks no provider, `auto` records what is missing.  "
    "[default: replay]",
)
@click.option("--port", type=PORT, default=0, metavar="N", help="Port on 127.0.0.1.  [default: any free one]")
@click.option("--log", type=FILE, metavar="FILE", help="Write what was asked and answered: JSON lines.")
@click.option("--ready-file", type=FILE, metavar="FILE", help="Write the server's URL here once it answers.")
def command(
    words: tuple[str, ...],
    cassette: Path | None,
    mode: CassetteMode | None,
    port: int,
    log: Path | None,
    ready_file: Path | None,
) -> int:
    """Play the steps of SCRIPT.yaml, or the recorded answers of a cassette, over the APIs of OpenAI (chat, responses), OpenRouter, Anthropic and Gemini.

    The URL is printed, and the server runs until SIGINT or SIGTERM. With a command, it runs as long as the command, which
    finds the server's address in its environment, and placeholder keys where no provider is asked; the exit code is the
    command's own, or 4 where it asked what was not recorded.
    """
    if cassette is None:
        if mode is not None:
            raise UsageError("`--mode` is of a cassette: give `--cassette FILE`")
        if not words:
            raise UsageError("give the SCRIPT.yaml to play, or `--cassette FILE`")
        serving = _script(Path(words[0]), port, log)
    else:
        if words and Path(words[0]).suffix in SUFFIXES:
            raise UsageError(f"give either the script {words[0]!r} or `--cassette`, not both")
        if log is not None:
            raise UsageError("`--log` is of a script: a cassette itself holds what was asked and answered")
        serving = _cassette(cassette, mode or "replay", port)
    cmd = words if cassette is not None else words[1:]
    with serving as server:
        if ready_file is not None:
            with whole_text_file(ready_file, sync=False) as stream:
                stream.write(server.url + "\n")
        code = _run(cmd, server.environment(os.environ)) if cmd else _serve(server.url)
    said, is_broken = server.said()
    if said:
        click.echo(said, err=True)
    return ExitCode.BROKEN if is_broken else code


@contextmanager
def _script(script: Path, port: int, log: Path | None) -> Iterator[_Serving]:
    from clawtrace._scripted_model.http_server import PROVIDERS, addresses_at, placeholder_keys
    from clawtrace._scripted_model.script import load_script
    from clawtrace._scripted_model.server import ScriptedModel
    from clawtrace.cassettes.faults import before, of_run
    from clawtrace.cassettes.playing import RUN_SERVER

    model = ScriptedModel(load_script(script), port, log)
    if run := os.environ.get(RUN_SERVER):  # of `clawtrace eval`: its faults strike here
        model.around = partial(before, of_model=of_run(run))
    keys = {name for one in PROVIDERS.values() for name in one.keys}

    def environment(env: Mapping[str, str]) -> dict[str, str]:
        without = {name: value for name, value in env.items() if name not in keys}
        return {**without, **addresses_at(model.url), **placeholder_keys("scripted", {})}

    try:
        with _port_is_free(port):
            model.start()
        yield _Serving(model.url, environment, lambda: ("", False))
    finally:
        model.stop()


@contextmanager
def _cassette(path: Path, mode: CassetteMode, port: int) -> Iterator[_Serving]:
    from clawtrace.cassettes.cassette import Cassette
    from clawtrace.cassettes.mcp_calls import with_mcp
    from clawtrace.cassettes.playing import RUN_MISSES, Playback
    from clawtrace.config.projects.project_file import load_project
    from clawtrace.config.projects.session_settings import session_settings

    redaction = session_settings(load_project()).redaction
    with closing(Cassette(path, mode, redaction=redaction)) as cassette:
        playback = with_mcp(Playback(cassette, os.environ, run_misses=os.environ.get(RUN_MISSES, "")))
        try:
            with _port_is_free(port):
                playback.start(port)
            yield _Serving(
                playback.url,
                playback.environment,
                lambda: ("\n".join((playback.said(), *playback.misses[:1])), bool(playback.misses)),
            )
        finally:
            playback.stop()


@contextmanager
def _port_is_free(port: int) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.filename:
            raise
        raise UsageError(
            f"Port {port} of 127.0.0.1 cannot be used: {error.strerror}. Choose another --port."
        ) from error


def _serve(url: str) -> int:
    """Print the server's URL and wait for a signal."""
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda _number, _frame: ended.set())
    click.echo(url)
    ended.wait()
    return 0


def _run(cmd: Sequence[str], environment: Mapping[str, str]) -> int:
    """Run `cmd`; return its exit code, 128 + n when signal n ended it."""
    try:
        process = subprocess.Popen(cmd, env=environment)
    except OSError as error:
        click.echo(f"error: cannot run {cmd[0]!r}: {error.strerror}", err=True)
        return 127
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda received, _frame: process.send_signal(received))
    code = process.wait()
    return 128 - code if code < 0 else code
