"""Flags that reach a command as one value, and those that several commands have."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

__all__ = ["outputs_option", "together"]

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def together(name: str, make: Callable[..., Any], *options: Decorator) -> Decorator:
    """Return what adds options to a command, in the order of its help; the command gets what `make` makes of them as `name`.

    `make` is called with those of its parameters that the command has.
    """
    taken = inspect.signature(make).parameters

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapper(**values: Any) -> Any:
            made = make(**{key: values.pop(key) for key in taken if key in values})
            return function(**values, **{name: made})

        decorated: Callable[..., Any] = wrapper
        for option in reversed(options):
            decorated = option(decorated)
        return decorated

    return decorate


def _outputs(out: Path | None) -> Path:
    from clawtrace.config.projects.project_file import load_project

    return out or load_project().outputs


outputs_option = together(
    "outputs",
    _outputs,
    click.option(
        "--out",
        type=click.Path(file_okay=False, path_type=Path),
        help="Folder of results.  [default: the project's outputs/]",
    ),
)
