"""Data on standard output: JSON, CSV, and lists for people."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Any

import click

from clawtrace.report.console import ConsoleOutput, TableColumn, console_for

__all__ = ["json_option", "print_json", "print_table", "stdout_console"]

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def print_json(value: Any) -> None:
    """Write `value` as indented JSON, valid in UTF-8 with any texts in it."""
    from clawtrace.report.json_text import json_text

    sys.stdout.write(json_text(value) + "\n")


def stdout_console() -> ConsoleOutput:
    """Return what to write on: a terminal's colours, or plain text for pipes, files and CI."""
    return console_for(sys.stdout)


def print_table(titles: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write a table of texts and numbers; NULL is an empty cell, truth values are `true` and `false`, numbers are right-aligned."""
    data = [list(row) for row in rows]
    numeric = [_is_numeric(row[i] for row in data) for i in range(len(titles))]
    columns = [TableColumn(title, "right" if right else "left") for title, right in zip(titles, numeric, strict=True)]
    stdout_console().table(columns, [[(_text(cell), "") for cell in row] for row in data])


def _text(cell: Any) -> str:
    if isinstance(cell, bool):
        return "true" if cell else "false"
    return "" if cell is None else str(cell)


def _is_numeric(cells: Iterable[Any]) -> bool:
    known = [cell for cell in cells if cell is not None]
    return bool(known) and all(isinstance(cell, (int, float)) and not isinstance(cell, bool) for cell in known)
