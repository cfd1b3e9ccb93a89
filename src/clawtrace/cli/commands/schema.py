"""`clawtrace schema`: the JSON Schemas of every file that one writes and every result that one reads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from clawtrace.cli.flags import FOLDER
from clawtrace.errors import UsageError

__all__ = ["command", "schemas"]


def schemas() -> dict[str, dict[str, Any]]:
    """Return every JSON Schema by the name of its file, in alphabetical order; the assertion types of other distributions are in them."""
    from importlib.resources import files

    from clawtrace.assertions.registry import added_types

    found: dict[str, dict[str, Any]] = json.loads(files("clawtrace.cli.projects").joinpath("schemas.json").read_bytes())
    if added := added_types():
        from clawtrace.config.schemas import add_types

        for schema in found.values():
            if "assertion" in schema.get("$defs", {}):
                add_types(added, schema)
    return found


@click.command(epilog="Example: clawtrace schema --out schemas/")
@click.option(
    "--out",
    type=FOLDER,
    help="Write each schema into a file in this folder.  [default: one JSON object on standard output]",
)
def command(out: Path | None) -> None:
    """Export the JSON Schemas: of cases, suites, profiles, the project file, assertions files, and of results."""
    from clawtrace.cli.output.data import print_json

    found = schemas()
    if out is None:
        print_json(found)
        return
    try:
        out.mkdir(parents=True, exist_ok=True)
        for name, schema in found.items():
            (out / name).write_text(json.dumps(schema, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
            click.echo(str(out / name))
    except OSError as error:
        raise UsageError(f"The schemas cannot be written to {str(out)!r}: {error.strerror}.") from error
