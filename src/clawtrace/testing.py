"""A scripted replacement for a hosted model: deterministic agents for examples and tests, without network or key.

One HTTP server plays one script over OpenAI Chat Completions (``…/chat/completions``), OpenAI Responses
(``…/responses``) and Anthropic Messages (``…/messages``), plain and streamed; any path prefix and any key will do.

In Python::

    from clawtrace.testing import scripted_model

    steps = [
        {"tool_calls": [{"name": "get_weather", "arguments": {"city": "Paris"}}], "usage": {"input": 812, "output": 19}},
        {"text": "It is sunny in Paris.", "usage": {"input": 850, "output": 9}},
    ]
    with scripted_model(steps) as model:
        run_my_agent(base_url=model.url + "/v1")
    assert [exchange.status for exchange in model.log] == [200, 200]

From a shell, as a server, or around one command that then finds ``OPENAI_BASE_URL``, ``ANTHROPIC_BASE_URL`` and
placeholder keys in its environment::

    python -m clawtrace.testing --script script.yaml --port 8123
    python -m clawtrace.testing --script script.yaml -- python agent.py

A script file holds ``steps:`` (and optionally ``default:``); the first step that is unused and whose ``when`` holds
answers a request. Every exchange is logged (``--log``): the truth that a trace can be compared with.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from clawtrace._scripted_model.script import (
    Script,
    ScriptedFailure,
    ScriptedStep,
    ScriptedToolCall,
    Usage,
    When,
    load_script,
)
from clawtrace._scripted_model.server import Exchange, ScriptedModel
from clawtrace.errors import ClawtraceError

__all__ = [
    "Exchange",
    "Script",
    "ScriptedFailure",
    "ScriptedModel",
    "ScriptedStep",
    "ScriptedToolCall",
    "Usage",
    "When",
    "load_script",
    "scripted_model",
]

Steps = Sequence[ScriptedStep | Mapping[str, Any]]


@contextmanager
def scripted_model(
    script: Script | Path | str | Steps, *, port: int = 0, log_path: Path | None = None
) -> Iterator[ScriptedModel]:
    """Run a scripted model while the block runs.

    Args:
        script: A `Script`, the path of a YAML file, or the steps themselves.
        port: 0 takes any free port.
        log_path: Where to write the log as JSON lines; `ScriptedModel.log` holds it in any case.

    Raises:
        ConfigError: the file is no script.
        pydantic.ValidationError: the steps are no steps.
    """
    if isinstance(script, Script):
        whole = script
    elif isinstance(script, (str, Path)):
        whole = load_script(Path(script))
    else:
        whole = Script.model_validate({"steps": list(script)})
    model = ScriptedModel(whole, port, log_path).start()
    try:
        yield model
    finally:
        model.stop()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m clawtrace.testing",
        description="Play a scripted model over HTTP, for good or around one command.",
        epilog="example: python -m clawtrace.testing --script script.yaml -- python agent.py",
    )
    parser.add_argument("--script", type=Path, required=True, help="YAML file with the steps")
    parser.add_argument("--port", type=int, default=0, help="port on the loopback interface (default: any free one)")
    parser.add_argument("--ready-file", type=Path, help="written with the server's URL once it answers")
    parser.add_argument("--log", type=Path, help="JSON lines of what was asked and answered")
    parser.add_argument("command", nargs="*", metavar="-- COMMAND", help="run this command, then stop")
    return parser


def _run(command: list[str], url: str) -> int:
    """Run `command` against the server; return its exit code, 128 + n when signal n ended it."""
    environment = {
        **os.environ,
        "OPENAI_BASE_URL": f"{url}/v1",
        "OPENAI_API_KEY": "scripted",
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": "scripted",
    }
    try:
        process = subprocess.Popen(command, env=environment)
    except OSError as error:
        sys.stderr.write(f"error: cannot run {command[0]!r}: {error.strerror}\n")
        return 127
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda received, _frame: process.send_signal(received))
    code = process.wait()
    return 128 - code if code < 0 else code


def _serve(url: str, ready_file: Path | None) -> int:
    """Announce the server and wait for a signal."""
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda _received, _frame: ended.set())
    sys.stdout.write(url + "\n")
    sys.stdout.flush()
    if ready_file is not None:
        draft = ready_file.with_name(ready_file.name + ".tmp")
        draft.write_text(url + "\n", encoding="utf-8")
        draft.replace(ready_file)
    ended.wait()
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line of this module; return its exit code."""
    options = _parser().parse_args(arguments)
    try:
        with scripted_model(options.script, port=options.port, log_path=options.log) as model:
            return _run(options.command, model.url) if options.command else _serve(model.url, options.ready_file)
    except ClawtraceError as error:
        sys.stderr.write(f"error: {error}\n")
        return int(error.exit_code)
    except OSError as error:
        sys.stderr.write(f"error: {error}\n")
        return 4


if __name__ == "__main__":
    sys.exit(main())
