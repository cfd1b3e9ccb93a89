"""`clawtrace doctor`: does receiving work on this machine, what arrives of an agent, and if not, why?"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from clawtrace.cli.output.data import json_option, print_json, stdout_console

if TYPE_CHECKING:
    from clawtrace.cli.projects.checkup import CheckupFinding
    from clawtrace.model.verdict import RunResult

__all__ = ["command"]

_MARKS = {"ok": ("ok       ", "green"), "warning": ("warning  ", "yellow"), "problem": ("problem  ", "red")}


@click.command(
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    epilog="Examples: clawtrace doctor; clawtrace doctor -- python agent.py",
)
@click.argument("cmd", nargs=-1, type=click.UNPROCESSED, metavar="[-- CMD [ARGS]…]")
@json_option
def command(cmd: tuple[str, ...], as_json: bool) -> int:
    """Start the receiver, send it spans over each protocol, and check what may prevent it.

    Reported are versions, the project file, ports, each protocol, who holds stores, room for results, how old cassettes are, instrumentations of the
    last runs whose version or attributes are unknown, and variables of the shell that change what agents export. In the source
    and `.env` files of this folder it looks for exporters with an address in code, samplers, content that is switched off and
    a disabled SDK, in the dependencies for the agent's framework. Nothing is written but facts of stored spans that were
    not computed yet.

    Files cannot tell what an address in a variable, a proxy, a Collector in between or a sampler does. With CMD the agent is run
    once, as `clawtrace run` does, and what of it arrives is reported: spans, calls, and what is missing. Its output goes to
    standard error.

    Exit codes: 0 no problem (warnings may be there); 4 at least one.
    """
    from dataclasses import asdict

    from clawtrace.cli.output.connecting import makes_no_model_call, say_how_to_connect
    from clawtrace.cli.projects.checkup import Checkup, checkup
    from clawtrace.cli.projects.trial_run import trial_run

    console, found = stdout_console(), []
    silent: RunResult | None = None

    def findings() -> Iterator[CheckupFinding]:
        nonlocal silent
        yield from checkup(Path.cwd(), os.environ)
        if cmd:
            wrapped, of_the_run = trial_run(cmd, os.environ)
            yield from of_the_run
            silent = wrapped.result if makes_no_model_call(wrapped.result) else None

    for finding in findings():
        found.append(finding)
        if not as_json:
            mark, style = _MARKS[finding.status]
            line, indent = f"{finding.check}: {finding.message}", " " * len(mark)
            console.paragraph(line, first=mark, indent=indent, first_style=style)
            if finding.advice:
                console.paragraph(finding.advice, indent=indent, style="dim")
    if as_json:
        print_json(asdict(Checkup(schema="clawtrace.doctor/1", findings=found)))
    elif silent is not None:
        say_how_to_connect(cmd, console, exports=silent.has_trace)
    return 4 if any(finding.status == "problem" for finding in found) else 0
