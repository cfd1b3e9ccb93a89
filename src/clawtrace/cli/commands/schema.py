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
    """Return every JSON Schema by the name of its file, in alphabetical order."""
    from pydantic import TypeAdapter

    from clawtrace._scripted_model.script import Script
    from clawtrace.campaign.comparing.comparison import Comparison
    from clawtrace.campaign.comparing.history import History
    from clawtrace.campaign.mutating.mutations import Mutations
    from clawtrace.cassettes.file import CassetteHead, RecordedExchange
    from clawtrace.cli.projects.checkup import Checkup
    from clawtrace.config.schemas import file_schema
    from clawtrace.config.schemas import schemas as of_files
    from clawtrace.conformance.trial import Conformance
    from clawtrace.report.difference import Difference
    from clawtrace.report.inspection import Inspection
    from clawtrace.report.json_text import Struct
    from clawtrace.report.page import details_schema
    from clawtrace.report.results import Results

    written: dict[str, type[Struct]] = {
        "results": Results,
        "compare": Comparison,
        "conformance": Conformance,
        "diff": Difference,
        "doctor": Checkup,
        "history": History,
        "inspect": Inspection,
        "mutations": Mutations,
    }
    found = {**of_files(), **{name: struct.json_schema() for name, struct in written.items()}}
    found["run_details"] = details_schema()
    # each document of a cassette is one of the two
    of_cassette = TypeAdapter(CassetteHead | RecordedExchange).json_schema()
    found["cassette"] = {"$schema": found["case"]["$schema"], "title": "clawtrace cassette", **of_cassette}
    found["model_script"] = file_schema("model_script", Script, {})
    return {f"{kind.replace('_', '-')}.schema.json": found[kind] for kind in sorted(found)}


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
