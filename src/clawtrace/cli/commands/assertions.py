"""`clawtrace assertions`: the assertion types, from their classes."""

from __future__ import annotations

import click

from clawtrace.cli.output.data import json_option, print_json, stdout_console

__all__ = ["command"]


@click.command(epilog="Example: clawtrace assertions --json")
@json_option
def command(as_json: bool) -> None:
    """List every assertion type with the sentence that is true when it passes.

    `clawtrace explain TYPE` shows one in full.
    """
    from clawtrace.assertions.base import summary
    from clawtrace.assertions.registry import all_types

    types = all_types()
    if as_json:
        print_json(
            [
                {
                    "type": name,
                    "summary": summary(cls),
                    "main_field": cls.main_field,
                    "requires": list(cls.requires),
                    "version": cls.version,
                }
                for name, cls in types.items()
            ]
        )
        return
    console = stdout_console()
    width = max(map(len, types))
    for name, cls in types.items():
        if console.width is None:
            console.line((f"{name:<{width}}", "cyan"), (f"  {summary(cls)}", ""))
        else:
            console.line((name, "cyan"))
            console.paragraph(summary(cls), indent="    ")
