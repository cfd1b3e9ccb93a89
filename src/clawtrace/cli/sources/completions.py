"""What a shell completes where an option or argument names something: suites, cases, assertion types.

Nothing is completed where the project's files cannot be read: a prompt shows no errors.
"""

from __future__ import annotations

from contextlib import suppress

import click

__all__ = ["complete_cases", "complete_suites", "complete_types"]


def complete_suites(context: click.Context, parameter: click.Parameter, begun: str) -> list[str]:
    """Complete the id of a suite."""
    from clawtrace.config.projects.project_file import load_project
    from clawtrace.errors import ClawtraceError

    del context, parameter
    with suppress(ClawtraceError, OSError):
        files = (load_project().configs / "suites").glob("*.y*ml")
        return sorted({path.stem for path in files if path.stem.startswith(begun)})
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
