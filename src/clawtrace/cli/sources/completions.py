"""What a shell completes where an option or argument names something: suites, cases, tags, assertion types."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from clawtrace.config.projects.project_file import Project

__all__ = ["complete_cases", "complete_suites", "complete_types"]

Completion = Callable[[click.Context, click.Parameter, str], list[str]]


def _of_project(names: Callable[[Project], Iterable[str]]) -> Completion:
    """Return what completes a name of the project; nothing where its files cannot be read: a prompt shows no errors."""

    def complete(context: click.Context, parameter: click.Parameter, begun: str) -> list[str]:
        from clawtrace.config.projects.project_file import load_project
        from clawtrace.errors import ClawtraceError

        del context, parameter
        with suppress(ClawtraceError, OSError):
            return sorted(name for name in names(load_project()) if name.startswith(begun))
        return []

    return complete


def _cases(project: Project) -> Iterable[str]:
    from clawtrace.config.files.document import case_files

    return case_files(project.configs / "cases")


complete_suites = _of_project(lambda project: {path.stem for path in (project.configs / "suites").glob("*.y*ml")})
complete_cases = _of_project(_cases)


def complete_types(context: click.Context, parameter: click.Parameter, begun: str) -> list[str]:
    """Complete the name of an assertion type."""
    from clawtrace.assertions.registry import all_types

    del context, parameter
    return sorted(name for name in all_types() if name.startswith(begun))
