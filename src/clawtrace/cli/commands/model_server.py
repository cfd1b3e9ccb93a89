"""`clawtrace model-server SCRIPT.yaml`: a scripted model over HTTP, for good or around one command."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from clawtrace.errors import UsageError
from clawtrace.support.whole_file import whole_text_file

if TYPE_CHECKING:
    from clawtrace._scripted_model.server import ScriptedModel

__all__ = ["command"]


@click.command(
    short_help="Play a scripted model over HTTP, for tests without a provider.",
    epilog="Example: clawtrace model-server script.yaml --log asked.jsonl -- python agent.py",
)
@click.argument("script", type=click.Path(path_type=Path))
@click.argument("cmd", metavar="[-- CMD...]", nargs=-1, type=click.UNPROCESSED)
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, metavar="N", help="Port on 127.0.0.1.  [default: any free one]"
)
@click.option(
    "--log", type=click.Path(path_type=Path), metavar="FILE", help="Write what was asked and answered: JSON lines."
)
@click.option(
    "--ready-file", type=click.Path(path_type=Path), metavar="FILE", help="Write the server's URL here once it answers."
)
def command(script: Path, cmd: tuple[str, ...], port: int, log: Path | None, ready_file: Path | None) -> int:
    """Play the steps of SCRIPT.yaml over the APIs of OpenAI (chat, responses), OpenRouter, Anthropic and Gemini.

    The URL is printed, and the server runs until SIGINT or SIGTERM. With a command, it runs as long as the command, which
    finds the server's address and placeholder keys in its environment; the exit code is the command's own.
    """
    from clawtrace._scripted_model.script import load_script
    from clawtrace._scripted_model.server import ScriptedModel

    model = ScriptedModel(load_script(script), port, log)
    try:
        model.start()
    except OSError as error:
        if error.filename:
            raise
        raise UsageError(
            f"Port {port} of 127.0.0.1 cannot be used: {error.strerror}. Choose another --port."
        ) from error
    try:
        if ready_file is not None:
            with whole_text_file(ready_file, sync=False) as stream:
                stream.write(model.url + "\n")
        return _run(cmd, model.url) if cmd else _serve(model)
    finally:
        model.stop()


def _serve(model: ScriptedModel) -> int:
    """Print the server's URL and wait for a signal."""
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda _number, _frame: ended.set())
    click.echo(model.url)
    ended.wait()
    return 0


def _run(cmd: Sequence[str], url: str) -> int:
    """Run `cmd` against the server; return its exit code, 128 + n when signal n ended it."""
    environment = {
        **{name: value for name, value in os.environ.items() if name != "GOOGLE_API_KEY"},
        "OPENAI_BASE_URL": f"{url}/v1",
        "OPENAI_API_KEY": "scripted",
        "OPENROUTER_BASE_URL": f"{url}/v1",
        "OPENROUTER_API_KEY": "scripted",
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": "scripted",
        "GOOGLE_GEMINI_BASE_URL": url,
        "GEMINI_API_KEY": "scripted",
    }
    try:
        process = subprocess.Popen(cmd, env=environment)
    except OSError as error:
        click.echo(f"error: cannot run {cmd[0]!r}: {error.strerror}", err=True)
        return 127
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda received, _frame: process.send_signal(received))
    code = process.wait()
    return 128 - code if code < 0 else code
