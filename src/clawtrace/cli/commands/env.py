"""`clawtrace env`: the telemetry environment of an agent, variable by variable, with what each changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from clawtrace.cli.output.data import json_option, print_json, stdout_console

if TYPE_CHECKING:
    from clawtrace.runners.base import Protocol

__all__ = ["command"]


@click.command(epilog="Example: clawtrace env --protocol grpc")
@click.option(
    "--protocol",
    type=click.Choice(["grpc", "http/protobuf", "http/json"]),
    default="http/protobuf",
    show_default=True,
    help="The OTLP protocol for the agent.",
)
@json_option
def command(protocol: Protocol, as_json: bool) -> None:
    """Show every variable that a run sets, what it changes in what the agent emits, and what is taken away.

    Ports, run id and traceparent are examples: each run gets its own. A project switches a variable or a whole group
    off, or on where it is off, with `telemetry_env:` in clawtrace.yaml.
    """
    from clawtrace.runners.base import TelemetryTarget
    from clawtrace.runners.starting.environment import table, telemetry_variables

    every = {variable.name: True for variable in table().variables}
    target = TelemetryTarget("http://127.0.0.1:4317", "http://127.0.0.1:4318", "0" * 31 + "1", "0" * 15 + "1", every)
    variables = list(telemetry_variables(target, protocol, "RUN_ID"))
    if as_json:
        rows: list[dict[str, Any]] = [
            {
                "name": v.name,
                "group": v.group,
                "value": value,
                "merge": v.merge,
                "on": not v.asked_for,
                "changes": v.changes,
            }
            for v, value in variables
        ]
        removed = [{"match": entry.match, "why": entry.why} for entry in table().removed]
        print_json({"groups": dict(table().groups), "variables": rows, "removed": removed})
        return
    console = stdout_console()
    for group, meaning in table().groups.items():
        console.line((group, "bold"))
        console.paragraph(meaning, indent="  ", style="dim")
        for variable, value in variables:
            if variable.group == group:
                remark = "  (merged with your own)" if variable.merge else "  (off)" if variable.asked_for else ""
                console.line((f"  {variable.name}", "cyan"), (f"={value}{remark}", ""))
                console.paragraph(variable.changes, indent="      ")
        console.line()
    console.line(("removed", "bold"))
    for entry in table().removed:
        console.line((f"  {entry.match}", "cyan"))
        console.paragraph(entry.why, indent="      ")
