"""`clawtrace explain TYPE`: one assertion type, from its class: meaning, fields, example, what it needs."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from clawtrace.cli.flags import complete_types
from clawtrace.cli.output.data import json_option, print_json, stdout_console
from clawtrace.report.console import ConsoleOutput

if TYPE_CHECKING:
    from clawtrace.assertions.reference import FieldReference, Reference

__all__ = ["command"]


@click.command(epilog="Example: clawtrace explain tool_sequence")
@click.argument("type_name", metavar="TYPE", shell_complete=complete_types)
@click.option("-v", "--verbose", is_flag=True, help="Also the SQL of the example.")
@json_option
def command(type_name: str, verbose: bool, as_json: bool) -> None:
    """Explain one assertion type: when it passes, why that matters, its fields, an example."""
    from clawtrace.assertions.reference import reference
    from clawtrace.assertions.registry import UnknownTypeError, get

    try:
        found = reference(get(type_name))
    except UnknownTypeError as error:
        raise click.UsageError(str(error)) from error
    if as_json:
        print_json(asdict(found))
        return
    _print(found, stdout_console(), verbose=verbose)


def _print(found: Reference, console: ConsoleOutput, *, verbose: bool) -> None:
    console.line((found.type, "bold"))
    console.paragraph(found.sentence, indent="  ")
    console.line()
    console.paragraph(found.why, indent="  ")
    console.line()
    if found.requires:
        console.paragraph(f"Needs {', '.join(found.requires)}.", indent="  ", style="dim")
    if found.warns_when_absent:
        console.paragraph("Only warns where nothing at all is recorded of it.", indent="  ")
    if found.main_field:
        console.paragraph(f"Main field: `{found.main_field}`.", indent="  ", style="dim")
    for title, common in (("Fields", False), ("Fields of every type", True)):
        fields = [field for field in found.fields if field.common is common]
        if fields:
            console.line()
            console.line((title, "bold"))
        for field in fields:
            _print_field(field, console)
    console.line()
    console.line(("Example", "bold"))
    for line in found.example.splitlines():
        console.line((f"  {line}", ""))
    if verbose and not found.sql:
        console.line()
        console.line(("It checks files, services or commands, not the trace: there is no SQL.", "dim"))
    elif verbose:
        console.line()
        console.line(("SQL of the example", "bold"))
        for line in found.sql.splitlines():
            console.line((f"  {line}", "dim"))


def _print_field(field: FieldReference, console: ConsoleOutput) -> None:
    default = "required" if field.required else "" if field.default in (None, "", [], {}) else _default(field.default)
    words = ", ".join(filter(None, (field.type, default)))
    console.paragraph(words, first=f"  {field.name}  ", indent="      ", style="dim", first_style="cyan")
    if field.meaning:
        console.paragraph(" ".join(field.meaning.split()), indent="      ")


def _default(value: Any) -> str:
    return f"default {value if isinstance(value, str) else json.dumps(value)}"
