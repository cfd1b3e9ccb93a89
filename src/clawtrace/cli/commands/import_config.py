"""`clawtrace import-config`: another tool's checks as a suite and cases."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from clawtrace.cli.flags import FOLDER
from clawtrace.errors import ConfigError, UsageError

if TYPE_CHECKING:
    from clawtrace.config.imports.foreign import Import

__all__ = ["command", "import_config"]

_TIMEOUT = 300


@click.command(
    epilog="Example: clawtrace import-config promptfooconfig.yaml --command 'python agent.py'",
)
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--command",
    "agent",
    metavar="CMD",
    help="Shell command that starts the agent. It reads the message on standard input, or in place of {{message}}.",
)
@click.option(
    "--traces",
    multiple=True,
    type=click.Path(exists=True, path_type=Path),
    help="A recording that the cases replay in place of the agent. Repeatable.",
)
@click.option("--suite", metavar="ID", default="imported", show_default=True, help="Name of the suite.")
@click.option("-o", "--out", type=FOLDER, help="Folder of cases and suites.  [default: the project's configs]")
def command(file: Path, agent: str | None, traces: tuple[Path, ...], suite: str, out: Path | None) -> int:
    """Write a suite and cases with the checks of FILE that mean the same here.

    FILE is a configuration of promptfoo, or an eval set or configuration of agentevals. What has no equal here is listed with
    its line, and left out. Nothing is overwritten.
    """
    from clawtrace.cli.projects.new_project import NewPaths, suite_text
    from clawtrace.config.base import is_slug
    from clawtrace.config.files.document import display
    from clawtrace.config.projects.project_file import load_project
    from clawtrace.support.figures import amount

    if (agent is None) == (not traces):
        raise click.UsageError("Give --command, which starts the agent, or --traces, recordings of it.")
    if not is_slug(suite):
        raise click.UsageError(f"--suite: an id has letters, digits, `_`, `-` and `.` only, found {suite!r}.")
    found = import_config(file)
    if not found.cases:
        raise ConfigError(found.left_out or found.document.problem((), "has no test"))
    folder = out or load_project().configs
    texts = {folder / "suites" / f"{suite}.yaml": suite_text(suite)}
    texts |= _cases(found, folder, suite, agent, traces)
    there = [display(path) for path in texts if path.exists()]
    if there:
        raise UsageError(
            f"{there[0]} already exists, and nothing is overwritten: give --out another folder, or --suite another name"
        )
    NewPaths(texts).write(texts)
    for problem in found.left_out:
        click.echo(f"left out: {problem}", err=True)
    checks = sum(len(case.assertions) for case in found.cases)
    out_of = f"; {len(found.left_out)} left out" if found.left_out else ""
    click.echo(
        f"wrote {amount(len(found.cases), 'case')} with {amount(checks, 'assertion')} to {display(folder)}{out_of}"
    )
    return 0


def import_config(path: Path) -> Import:
    """Read a configuration of promptfoo, or an eval set or a configuration of agentevals, as its keys say.

    Raises:
        ConfigError: it cannot be read, or is none of these; every problem in it.
    """
    from clawtrace.config.files.document import read_document
    from clawtrace.config.imports.eval_set import read_eval_set
    from clawtrace.config.imports.foreign import Import
    from clawtrace.config.imports.promptfoo import read_promptfoo

    document = read_document(path)
    found = Import(document)
    keys = document.data.keys()
    if keys & {"eval_cases", "evalCases", "evaluators"}:
        read_eval_set(found)
    elif keys & {"prompts", "providers", "targets", "tests", "defaultTest"}:
        read_promptfoo(found)
    else:
        message = "is neither a configuration of promptfoo (`tests`) nor of agentevals (`eval_cases`, or `evaluators` and `eval_set`)"
        raise ConfigError(document.problem((), message))
    return found


def _cases(found: Import, folder: Path, suite: str, agent: str | None, traces: tuple[Path, ...]) -> dict[Path, str]:
    """Return the cases' files with their texts."""
    from clawtrace.campaign.comparing.observed import Observation
    from clawtrace.cli.projects.new_project import CaseDraft, case_text
    from clawtrace.runners.starting.templates import escaped

    texts = {}
    for case in found.cases:
        path = folder / "cases" / case.name / "test.yaml"
        draft = CaseDraft(
            case_id=case.name,
            suite_id=suite,
            title=case.title,
            turns=[escaped(text) for text in case.turns],
            command=agent,
            cwd="{{case_dir}}/" + os.path.relpath(Path.cwd(), path.parent),
            traces=[os.path.relpath(trace, path.parent) for trace in traces],
            timeout_seconds=_TIMEOUT,
        )
        texts[path] = case_text(draft, [Observation(*one) for one in case.assertions])
    return texts
