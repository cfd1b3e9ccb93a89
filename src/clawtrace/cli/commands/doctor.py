"""`clawtrace doctor`: does receiving work on this machine, and if not, why?"""

from __future__ import annotations

import os
from pathlib import Path

import click

from clawtrace.cli.output.data import json_option

__all__ = ["command"]

_SCHEMA = "clawtrace.doctor/1"
_MARKS = {"ok": ("ok       ", "green"), "warning": ("warning  ", "yellow"), "problem": ("problem  ", "red")}


@click.command(
    short_help="Test the receiver over each protocol, and look for conflicts.", epilog="Example: clawtrace doctor"
)
@json_option
def command(as_json: bool) -> int:
    """Start the receiver, send it spans over each protocol, and check what may prevent it.

    Reported are versions, the project file, ports, each protocol, who holds stores, room for results, instrumentations of the
    last runs whose version or attributes are unknown, and variables of the shell that change what agents export. In the source
    and `.env` files of this folder it looks for exporters with an address in code, samplers, content that is switched off and
    a disabled SDK, in the dependencies for the agent's framework. Nothing is written but facts of stored spans that were
    not computed yet.

    Exit codes: 0 no problem (warnings may be there); 4 at least one.
    """
    from clawtrace.cli.output.data import print_json, stdout_console
    from clawtrace.cli.projects.checkup import checkup

    console, found = stdout_console(), []
    for finding in checkup(Path.cwd(), os.environ):
        found.append(finding)
        if not as_json:
            mark, style = _MARKS[finding.status]
            line, indent = f"{finding.check}: {finding.message}", " " * len(mark)
            console.paragraph(line, first=mark, indent=indent, first_style=style)
            if finding.advice:
                console.paragraph(finding.advice, indent=indent, style="dim")
    if as_json:
        print_json({"schema": _SCHEMA, "findings": [finding._asdict() for finding in found]})
    return 4 if any(finding.status == "problem" for finding in found) else 0
