"""`clawtrace dialects`: the instrumentations that clawtrace reads, from their dialect files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from clawtrace.cli.output.data import json_option, print_json, stdout_console
from clawtrace.report.console import ConsoleOutput

if TYPE_CHECKING:
    from clawtrace.dialects.load import Dialect

__all__ = ["command"]


@click.command(epilog="Example: clawtrace dialects --json")
@json_option
def command(as_json: bool) -> None:
    """List the dialects, the project's own among them, what each can record, and where the facts come from.

    `yes` and `no` are facts about the instrumentation; any other word is the setting that makes it record that fact.
    `verified` names the instrumentation scopes, versions and recordings on which its rules were verified.
    """
    from clawtrace.config.projects.project_file import load_project
    from clawtrace.dialects.load import load_dialects

    dialects = load_dialects(load_project().dialect_folders)
    if as_json:
        print_json([_facts(dialect) for dialect in dialects])
        return
    console = stdout_console()
    for dialect in dialects:
        _print(dialect, console)


def _facts(dialect: Dialect) -> dict[str, object]:
    from clawtrace.dialects.columns import RECORDABLE
    from clawtrace.dialects.explain import condition_words

    return {
        "dialect": dialect.name,
        "title": dialect.file.title,
        "extends": dialect.file.extends,
        "about": dialect.file.about,
        "source": dialect.file.source,
        "verified": [one.model_dump(exclude={"version"}) for one in dialect.verified],
        "recognised_by": [condition_words(test) for test in dialect.file.detect.any],
        "records": {fact: dialect.records(fact) for fact in RECORDABLE},
    }


def _print(dialect: Dialect, console: ConsoleOutput) -> None:
    from clawtrace.dialects.columns import RECORDABLE

    console.line((dialect.name, "bold"), (f"  {dialect.file.title}", ""))
    console.paragraph(dialect.file.about.strip(), indent="  ")
    for fact in RECORDABLE:
        records = dialect.records(fact)
        word = records if isinstance(records, str) else "yes" if records else "no"
        console.line((f"  {fact:<16}", "cyan"), (f" {word}", ""))
    for one in dialect.verified:
        versions = f" {', '.join(filter(None, one.versions))}" if any(one.versions) else ""
        recordings = ", ".join(one.recordings)
        console.paragraph(f"verified: {one.scope}{versions}, on recordings {recordings}", indent="  ", style="dim")
    if not dialect.verified:
        console.paragraph("verified: no recording yet", indent="  ", style="dim")
    console.paragraph(f"source: {dialect.file.source}", indent="  ", style="dim")
    console.line()
