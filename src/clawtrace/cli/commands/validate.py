"""`clawtrace validate`: every problem of every configuration file, before anything runs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from clawtrace.cli.flags import complete_suites
from clawtrace.cli.output.data import json_option, print_json, stdout_console
from clawtrace.errors import ConfigError, ConfigProblem
from clawtrace.support.figures import amount

if TYPE_CHECKING:
    from clawtrace.config.loading.whole_project import Checked

__all__ = ["command"]

_SCHEMA = "clawtrace.validate/1"


@click.command(
    epilog="Examples: clawtrace validate; clawtrace validate --suite smoke --run-profile nightly; "
    "clawtrace validate checks.yaml",
)
@click.argument("paths", nargs=-1, metavar="[PATH]...", type=click.Path(exists=True, path_type=Path))
@click.option(
    "--suite",
    metavar="ID|PATH",
    shell_complete=complete_suites,
    help="Only this suite and what it selects, as `clawtrace eval` loads it.",
)
@click.option("--run-profile", metavar="ID|PATH", help="With --suite: the run profile.")
@click.option("--evaluation-profile", metavar="ID|PATH", help="The evaluation profile, which sets what hooks may do.")
@json_option
def command(
    paths: tuple[Path, ...],
    suite: str | None,
    run_profile: str | None,
    evaluation_profile: str | None,
    as_json: bool,
) -> int:
    """Check configuration files and report all problems with file, line and column.

    Without PATH the whole project is checked: clawtrace.yaml, suites, profiles, agents, every case (also those that no
    suite selects) and configs/assertions. PATH is a project's folder, or one file of any kind. Nothing is run.

    Exit codes: 0 nothing that `clawtrace eval` would refuse (warnings may be there); 2 at least one problem.
    """
    if suite is None and run_profile is not None:
        raise click.UsageError("--run-profile belongs to --suite.")
    if suite is not None and paths:
        raise click.UsageError("--suite and PATH contradict each other.")
    if suite is not None:
        checked = [_suite(suite, run_profile, evaluation_profile)]
    else:
        checked = [_path(path, evaluation_profile) for path in paths or (Path(),)]
    files = list(dict.fromkeys(file for one in checked for file in one.files))
    problems = list(dict.fromkeys(found for one in checked for found in one.problems))
    warnings = list(dict.fromkeys(found for one in checked for found in one.warnings))
    if as_json:
        found = {"problems": problems, "warnings": warnings}
        lists = {name: [one._asdict() for one in several] for name, several in found.items()}
        print_json({"schema": _SCHEMA, "files": files, **lists})
    else:
        _print(files, problems, warnings)
    return 2 if problems else 0


def _suite(suite: str, run_profile: str | None, evaluation_profile: str | None) -> Checked:
    from clawtrace.config.files.document import display
    from clawtrace.config.loading.judges import doubts_about
    from clawtrace.config.loading.suite_file import load_suite
    from clawtrace.config.loading.whole_project import Checked
    from clawtrace.config.projects.project_file import load_project

    try:
        project = load_project()
        loaded = load_suite(suite, project, os.environ, run_profile=run_profile, evaluation_profile=evaluation_profile)
    except ConfigError as error:
        return Checked(tuple(dict.fromkeys(one.file for one in error.problems)), tuple(error.problems), ())
    files = [display(path) for path in (loaded.path, *(case.path for case in loaded.cases))]
    warnings = (*loaded.warnings, *doubts_about(loaded.evaluation_profile))
    return Checked(tuple(files), (), tuple(ConfigProblem("", 0, 0, text) for text in warnings))


def _path(path: Path, evaluation_profile: str | None) -> Checked:
    """Check a project's folder, its project file, or one file."""
    from clawtrace.config.files.document import display
    from clawtrace.config.loading.whole_project import ProjectCheck
    from clawtrace.config.project import ProjectConfig
    from clawtrace.config.projects.project_file import Project, load_project

    if not path.is_dir() and not path.is_file():
        raise click.UsageError(f"{display(path)!r} is neither a file nor a folder.")
    is_project = path.is_dir() or path.stem == "clawtrace"
    start = path if path.is_dir() else path.absolute().parent
    broken: tuple[Any, ...] = ()
    try:
        project = load_project(start, os.environ)
    except ConfigError as error:
        # What does not hold of the project file says nothing of the others.
        broken = tuple(error.problems)
        project = Project(ProjectConfig(), _root(start), None, None)
    check = ProjectCheck(project, os.environ)
    checked = check.whole() if is_project else check.one(path, evaluation_profile)
    files = (*dict.fromkeys(problem.file for problem in broken), *checked.files)
    if is_project and not files:
        raise click.UsageError(f"There is nothing to check in {display(path)!r}: no clawtrace.yaml and no configs.")
    return checked._replace(files=files, problems=(*broken, *checked.problems))


def _root(start: Path) -> Path:
    from clawtrace.config.files.document import find_project_file

    file = find_project_file(start)
    return file.parent if file is not None else start.resolve()


def _print(files: list[str], problems: list[ConfigProblem], warnings: list[ConfigProblem]) -> None:
    console = stdout_console()
    for word, style, found in (("error", "red", problems), ("warning", "yellow", warnings)):
        for one in found:
            console.line((f"{word}: ", style), (str(one) if one.file else one.message, ""))
    counted = f"{amount(len(files), 'file')}: {amount(len(problems), 'problem')}, {amount(len(warnings), 'warning')}"
    console.line((counted, "bold"))
