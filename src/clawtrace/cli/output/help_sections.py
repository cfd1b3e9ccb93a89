"""Help of a command with many options: the options under headings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import click

__all__ = ["SectionedCommand"]


class SectionedCommand(click.Command):
    """A command whose `--help` lists its options by section; those of no section come last, under "Other options"."""

    sections: ClassVar[Mapping[str, Sequence[str]]] = {}
    """Names of parameters by heading, both in the order in which they are shown."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write each section that has an option."""
        left = {param.name: param for param in self.get_params(ctx) if isinstance(param, click.Option)}
        for heading, names in self.sections.items():
            _write(ctx, formatter, heading, [left.pop(name) for name in names])
        _write(ctx, formatter, "Other options", list(left.values()))


def _write(ctx: click.Context, formatter: click.HelpFormatter, heading: str, options: Sequence[click.Option]) -> None:
    records = [record for option in options if (record := option.get_help_record(ctx)) is not None]
    if records:
        with formatter.section(heading):
            formatter.write_dl(records)
