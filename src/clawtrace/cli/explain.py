"""`clawtrace explain TYPE`: one assertion type, from its class: meaning, fields, example, what it needs."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from clawtrace.cli._data import json_option

if TYPE_CHECKING:
    from clawtrace.assertions.reference import FieldReference, Reference
    from clawtrace.report.console import Paper

__all__ = ["command"]

_GROWTH = {
    "growing": "A pass is final: no further span could change it.",
    "shrinking": "A fail is final: no further span could change it.",
    "exact": "Whether an answer is final depends on the fields; on an incomplete trace most answers are inconclusive.",
}


@click.command(
    short_help="Explain one assertion type: meaning, fields, example.",
    epilog="Example: clawtrace explain tool_sequence",
)
@click.argument("type_name", metavar="TYPE")
@click.option("-v", "--verbose", is_flag=True, help="Also the SQL of the example.")
@json_option
def command(type_name: str, verbose: bool, as_json: bool) -> None:
    """Explain one assertion type: when it passes, why that matters, its fields, an example."""
    from clawtrace.assertions.reference import reference
    from clawtrace.assertions.registry import UnknownTypeError, get
    from clawtrace.cli._data import print_json, stdout_paper

    try:
        found = reference(get(type_name))
    except UnknownTypeError as error:
        raise click.UsageError(str(error)) from error
    if as_json:
        print_json(asdict(found))
        return
    _print(found, stdout_paper(), verbose=verbose)


def _print(found: Reference, paper: Paper, *, verbose: bool) -> None:
    paper.line((found.type, "bold"))
    paper.paragraph(found.sentence, indent="  ")
    paper.line()
    paper.paragraph(found.why, indent="  ")
    paper.line()
    paper.paragraph(_GROWTH[found.growth], indent="  ", style="dim")
    if found.requires:
        paper.paragraph(f"Needs {', '.join(found.requires)}.", indent="  ", style="dim")
    if found.warns_when_missing:
        paper.paragraph("Only warns when these are unknown: " + ", ".join(found.warns_when_missing) + ".", indent="  ")
    if found.main_field:
        paper.paragraph(f"Main field: `{found.main_field}`.", indent="  ", style="dim")
    for title, common in (("Fields", False), ("Fields of every type", True)):
        fields = [field for field in found.fields if field.common is common]
        if fields:
            paper.line()
            paper.line((title, "bold"))
        for field in fields:
            _print_field(field, paper)
    paper.line()
    paper.line(("Example", "bold"))
    for line in found.example.splitlines():
        paper.line((f"  {line}", ""))
    if verbose and not found.sql:
        paper.line()
        paper.line(("It checks files, services or commands, not the trace: there is no SQL.", "dim"))
    elif verbose:
        paper.line()
        paper.line(("SQL of the example", "bold"))
        for line in found.sql.splitlines():
            paper.line((f"  {line}", "dim"))


def _print_field(field: FieldReference, paper: Paper) -> None:
    default = "required" if field.required else "" if field.default in (None, "", [], {}) else _default(field.default)
    words = ", ".join(filter(None, (field.type, default)))
    paper.paragraph(words, first=f"  {field.name}  ", indent="      ", style="dim", first_style="cyan")
    if field.meaning:
        paper.paragraph(" ".join(field.meaning.split()), indent="      ")


def _default(value: Any) -> str:
    return f"default {value if isinstance(value, str) else json.dumps(value)}"
