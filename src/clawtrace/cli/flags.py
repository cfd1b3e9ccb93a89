"""Flags that reach a command as one value, those that several commands have, and what a shell completes.

It completes suites, cases and assertion types. Nothing is completed where the project's files cannot be read: a prompt shows no errors.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

__all__ = [
    "FILE", "FOLDER", "PORT", "complete_cases", "complete_suites", "complete_types", "outputs_option", "together",
]  # fmt: skip

FILE = click.Path(dir_okay=False, path_type=Path)
FOLDER = click.Path(file_okay=False, path_type=Path)
PORT = click.IntRange(0, 65535)

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
        type=FOLDER,
        help="Folder of results.  [default: the project's outputs/]",
    ),
)


def complete_suites(context: click.Context, parameter: click.Parameter, begun: str) -> list[str]:
    """Complete the id of a suite."""
    from clawtrace.config.projects.project_file import load_project
    from clawtrace.errors import ClawtraceError

    del context, parameter
    with suppress(ClawtraceError, OSError):
        return [suite for suite in load_project().suites if suite.startswith(begun)]
    return []


def complete_cases(context: click.Context, parameter: click.Parameter, begun: str) -> list[str]:
    """Complete the id of a case."""
    from clawtrace.config.files.named import case_files
    from clawtrace.config.projects.project_file import load_project
    from clawtrace.errors import ClawtraceError

    del context, parameter
    with suppress(ClawtraceError, OSError):
        return sorted(name for name in case_files(load_project().configs / "cases") if name.startswith(begun))
    return []


def complete_types(context: click.Context, parameter: click.Parameter, begun: str) -> list[str]:
    """Complete the name of an assertion type."""
    from clawtrace.assertions.registry import all_types

    del context, parameter
    return sorted(name for name in all_types() if name.startswith(begun))
