"""`clawtrace` without a command: what is in this folder, and what to do next."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from clawtrace.cli.sources.stored_results import read_results, results_file
from clawtrace.config.files.named import case_files
from clawtrace.config.projects.project_file import Project, load_project
from clawtrace.errors import UsageError
from clawtrace.report.console import clean
from clawtrace.support.figures import amount, count, listed

__all__ = ["next_step"]

Step = tuple[str, str]
"""A command, and what it does."""

_RECORDINGS = ("*.jsonl", "*.json", "*.otlp.jsonl.gz", "*.otlp.json.gz")
_HEAD = 4096
_WORDS = {0: "passed", 1: "failed", 2: "was stopped by a mistake in its files", 3: "is undecided"}
_BAD = ("error", "fail", "inconclusive")
_NAMED = 5


def next_step() -> str:
    """Return what was found here, and the commands that come next.

    Raises:
        ConfigError: the project's file has mistakes.
    """
    project = load_project()
    found, steps = _of_project(project) if project.path is not None else _without_project()
    width = max(len(command) for command, _ in steps)
    lines = [f"  {command.ljust(width)}  {meaning}" for command, meaning in steps]
    return "\n".join([*found, "", "Next:", *lines, "", "`clawtrace --help` lists every command."])


def _without_project() -> tuple[list[str], list[Step]]:
    recordings = sorted(path for pattern in _RECORDINGS for path in Path().glob(pattern) if _is_recording(path))
    steps = [
        ("clawtrace init", "write a first case, from the command that starts your agent"),
        ("clawtrace run -- COMMAND", "run your agent once, and show what it did"),
    ]
    if not recordings:
        return ["There is no clawtrace project in this folder, nor above it."], steps
    file = shlex.quote(str(recordings[0]))
    steps = [
        (f"clawtrace inspect {file}", "show what the recorded agent did"),
        (f"clawtrace suggest {file}", "write assertions that hold for it"),
        *steps,
    ]
    return [f"There is no clawtrace project here, but {amount(len(recordings), 'recording')}."], steps


def _is_recording(path: Path) -> bool:
    """Return whether a file holds OTLP, by the beginning of one that is not compressed."""
    try:
        with path.open("rb") as stream:
            return path.suffix == ".gz" or b'"resourceSpans"' in stream.read(_HEAD)
    except OSError:
        return False


def _of_project(project: Project) -> tuple[list[str], list[Step]]:
    suites = project.suites
    cases = len(case_files(project.configs / "cases"))
    named = listed(suites, _NAMED)
    found = [f"Project {project.root}: {amount(len(suites), 'suite')} ({named}), {amount(cases, 'case')}."]
    if not suites:
        found = [f"Project {project.root}: no suite yet, {amount(cases, 'case')}."]
        return found, [("clawtrace init", "write a first suite and case, from the command that starts your agent")]
    try:
        file = results_file(None)
    except UsageError:
        steps = [
            ("clawtrace validate", "check every file; run nothing"),
            (f"clawtrace eval --suite {shlex.quote(suites[0])}", "run its cases, and judge them"),
        ]
        return [*found, "Nothing was run yet."], steps
    results = read_results(file)
    suite, code, totals = results["suite_id"] or suites[0], results["exit_code"], results["totals"]
    left_out = f", {count(len(results['not_run']))} not run" if results["not_run"] else ""
    found.append(
        f"The last campaign, `{clean(suite)}`, {_WORDS.get(code, 'broke')} (exit code {code}): "
        f"{count(totals['passed'])} of {amount(totals['runs'], 'run')} passed{left_out}."
    )
    again = f"clawtrace eval --suite {shlex.quote(suite)}"
    if code == 0:
        kept = f"clawtrace baseline set main {shlex.quote(suite)}"
        return found, [
            (again, "run it again after a change"),
            (kept, "hold later campaigns against it"),
            ("clawtrace view", "open its page"),
        ]
    found += [f"  {clean(line)}" for line in _why(results)]
    return found, [
        ("clawtrace view", "open its page: each failure, and the spans that decided"),
        (again, "run it again"),
    ]


def _why(results: Mapping[str, Any]) -> list[str]:
    """Return what made the campaign red: the gravest of what did not pass, and each threshold that was missed."""
    said = [
        (_BAD.index(status), f"{case['case_id']} · {name}: {message}")
        for case in results["cases"]
        for run in case["runs"]
        for status, name, message in (
            *([("error", "run", run["error"])] if run["error"] else ()),
            *((one["status"], one["id"], one["message"]) for one in run["assertions"] if one["severity"] == "error"),
        )
        if status in _BAD
    ]
    missed = [
        f"{'the suite' if one['model_id'] is None else one['model_id']}: the pass rate is not known to reach {one['threshold']:g}"
        for one in results["thresholds"]
        if not one["reached"]
    ]
    return [text for _, text in sorted(said, key=lambda one: one[0])[:1]] + missed
