"""`clawtrace init`: a first case that works, from an answer or two or from a recorded run."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from clawtrace.cli.output.data import stdout_console
from clawtrace.cli.sources.source import TraceSource, source_options
from clawtrace.errors import ExitCode, RunnerError, UsageError
from clawtrace.report.console import ConsoleOutput
from clawtrace.support.files import keep_private

if TYPE_CHECKING:
    from clawtrace.campaign.comparing.observed import Observation
    from clawtrace.campaign.planning.expand import Plan
    from clawtrace.campaign.running.reuse import Decision
    from clawtrace.cli.projects.new_project import CaseDraft
    from clawtrace.cli.sources.recorded_run import Observed
    from clawtrace.config.projects.project_file import Project
    from clawtrace.model.verdict import RunResult

__all__ = ["command"]

_MESSAGE = "Hello! What can you do?"
_FIRST = "first"
"""Name of the case and the suite where none is given."""
_TIMEOUT = 300


class _Choices(NamedTuple):
    """The user's answers, from flags or prompts."""

    command: str | None
    message: str | None
    case: str
    suite: str
    timeout: int
    trial: bool
    pass_env: tuple[str, ...]


@click.command(
    epilog="Examples: clawtrace init; clawtrace init --command 'python agent.py' --message 'Refund A-1001'; "
    "clawtrace init --traces recording.otlp.jsonl",
)
@click.option(
    "--command",
    "agent",
    metavar="CMD",
    help="Shell command that starts the agent. It reads the message on standard input, or in place of {{message}}.",
)
@click.option("--message", metavar="TEXT", help="The message for the agent.")
@click.option("--case", "case_id", metavar="ID", help="Name of the case.  [default: first]")
@click.option("--suite", "suite_id", metavar="ID", help="Name of the suite.  [default: first]")
@click.option(
    "--timeout", type=click.IntRange(1), default=_TIMEOUT, show_default=True, help="Time limit of a run, in seconds."
)
@click.option(
    "--pass-env", metavar="NAME", multiple=True, help="A variable of your environment that the agent needs. Repeatable."
)
@click.option("--no-trial", is_flag=True, help="Do not run the command now; the case then gets a minimal assertion.")
@click.option("-y", "--yes", is_flag=True, help="Do not prompt; use defaults.")
@click.option("--from-run", metavar="RUN_ID", help="Derive the case from this run of --traces or --store.")
@source_options
def command(
    agent: str | None,
    message: str | None,
    case_id: str | None,
    suite_id: str | None,
    timeout: int,
    pass_env: tuple[str, ...],
    no_trial: bool,
    yes: bool,
    from_run: str | None,
    source: TraceSource,
) -> int:
    """Write clawtrace.yaml, a suite and a case, with assertions that pass on what the agent did.

    The command is run once, as `clawtrace eval` will run it; its trace gives the assertions: tools in order, no errors,
    models, budgets with a margin. The mutation score says which faults they would catch (`clawtrace mutate`). With
    --traces or --store they come from a recorded run; without --command the case then replays the recording. Nothing is
    overwritten. Exit code 3: no span of the command arrived, and nothing was written; what its framework needs is printed.
    """
    from clawtrace.config.projects.project_file import load_project

    keep_private()
    if agent is not None and not agent.strip():
        raise click.UsageError("--command is empty: give the command that starts the agent.")
    recorded = source.is_named or from_run is not None
    asks = not yes and sys.stdin.isatty()
    project = load_project()
    seen = _recorded(source, from_run, with_command=agent is not None) if recorded else None
    answers = _Choices(
        agent if agent is not None or seen else _asked("Command that starts the agent", asks, "--command"),
        message if message is not None or seen else _with_default("The message for the agent", _MESSAGE, asks),
        _case_name(project, asks, case_id),
        suite_id or _FIRST,
        timeout,
        not no_trial,
        pass_env,
    )
    return _write(project, answers, seen)


def _asked(question: str, asks: bool, flag: str) -> str:
    if not asks:
        raise click.UsageError(
            f"{flag} is missing, and there is no terminal to ask on. Or give a recorded run with --traces."
        )
    answer: str = click.prompt(question, err=True)
    return answer


def _with_default(question: str, default: str, asks: bool) -> str:
    return str(click.prompt(question, default=default, err=True)) if asks else default


def _case_name(project: Project, asks: bool, given: str | None) -> str:
    """Return the name of the new case; on a terminal, an invalid one is asked for again."""

    def checked(name: str) -> str:
        problem = _name_problem("", name) or _there_already(project, name)
        if problem:
            raise click.BadParameter(problem)
        return name

    if given is not None or not asks:
        return given if given is not None else _FIRST
    free = None if _there_already(project, _FIRST) else _FIRST
    return str(click.prompt("Name of the case", default=free, value_proc=checked, err=True))


def _name_problem(flag: str, name: str) -> str:
    from clawtrace.config.base import is_slug

    return "" if is_slug(name) else f"{flag}an id has letters, digits, `_`, `-` and `.` only, found {name!r}."


def _there_already(project: Project, case_id: str) -> str:
    from clawtrace.config.files.document import display
    from clawtrace.config.files.named import case_files

    there = case_files(project.configs / "cases").get(case_id)
    return f"{display(there[0])} already exists, and nothing is overwritten." if there else ""


class _Recorded(NamedTuple):
    """A recorded run, and what can be asserted of it."""

    run_id: str
    holds: Observed
    traces: Sequence[Path]
    """The files that hold this run and no other; empty where there are none, or a command takes their place."""


def _recorded(source: TraceSource, run_id: str | None, *, with_command: bool) -> _Recorded:
    from clawtrace.cli.sources.recorded_run import files_of, observed, the_run

    with source.opened() as (asked, known):
        chosen = the_run(known, run_id, asked)
        files = () if with_command else files_of(source, chosen, known)
        seen = observed(asked, asked.inspect([chosen])["runs"])
    return _Recorded(chosen, seen, files)


def _write(project: Project, answers: _Choices, seen: _Recorded | None) -> int:
    """Write the files, run the command where requested, and say what to do next."""
    from clawtrace.cli.projects.new_project import NewPaths, case_text, replace_file
    from clawtrace.config.files.document import display

    draft, case_file = _draft(project, answers, seen)
    texts = _texts(project, draft, case_file, seen.holds.found if seen else None)
    files = NewPaths(texts)
    files.write(texts)
    try:
        suite = _loaded(project, draft)
        trial = None if seen or not answers.trial else _trial(suite, draft)
    except BaseException:
        files.undo()
        raise
    if trial is not None and not trial.result.has_trace:
        files.undo()
        return _say_nothing_came(trial, answers)
    if trial is not None and trial.holds and trial.holds.found:
        replace_file(case_file, case_text(draft, trial.holds.found))
    for path in texts:
        if path.parent.name != "schemas":
            click.echo(display(path))
    return _say(draft, seen, trial)


def _draft(project: Project, answers: _Choices, seen: _Recorded | None) -> tuple[CaseDraft, Path]:
    from clawtrace.cli.projects.new_project import CaseDraft

    for flag, name in (("--case: ", answers.case), ("--suite: ", answers.suite)):
        if problem := _name_problem(flag, name):
            raise click.UsageError(problem)
    folder = project.configs / "cases" / answers.case
    if there := _there_already(project, answers.case):
        raise click.UsageError(f"{there} Give --case another name.")
    case_file = folder / "test.yaml"
    said = answers.message if answers.message is not None else seen.holds.messages[0] if seen else None
    title = f"As recorded in {seen.run_id}" if seen else "The agent answers, and nothing fails"
    draft = CaseDraft(
        case_id=answers.case,
        suite_id=answers.suite,
        title=title,
        turns=() if said is None else (said,),
        command=answers.command,
        cwd="{{case_dir}}/" + os.path.relpath(Path.cwd(), folder),
        traces=[os.path.relpath(path, folder) for path in seen.traces] if seen else [],
        timeout_seconds=answers.timeout,
        pass_env=answers.pass_env,
    )
    return draft, case_file


def _texts(project: Project, draft: CaseDraft, case_file: Path, found: Sequence[Observation] | None) -> dict[Path, str]:
    """Return the files that are missing, with their texts."""
    import json

    from clawtrace.cli.commands.schema import schemas
    from clawtrace.cli.projects.new_project import PROJECT, case_text, suite_text
    from clawtrace.config.files.document import with_either_suffix

    texts = {}
    if project.path is None:
        texts[project.root / "clawtrace.yaml"] = PROJECT
    known = schemas()
    for name in ("project.schema.json", "suite.schema.json", "case.schema.json"):
        path = project.configs / "schemas" / name
        if not path.exists():
            texts[path] = json.dumps(known[name], indent=1, ensure_ascii=False) + "\n"
    if with_either_suffix(project.configs / "suites" / draft.suite_id) is None:
        texts[project.configs / "suites" / f"{draft.suite_id}.yaml"] = suite_text(draft.suite_id)
    texts[case_file] = case_text(draft, found)
    return texts


def _loaded(project: Project, draft: CaseDraft) -> Any:
    """Load the suite with the case in it: what was written is valid.

    Raises:
        UsageError: a suite that was there before does not select the case.
    """
    from clawtrace.config.loading.suite_file import load_suite

    suite = load_suite(draft.suite_id, project, os.environ)
    if draft.case_id not in [case.config.case_id for case in suite.cases]:
        raise UsageError(
            f"the suite `{draft.suite_id}` already exists and does not select cases with the tag `{draft.suite_id}`; "
            "give --suite another name"
        )
    return suite


class _Trial(NamedTuple):
    """The result of running the case once."""

    result: RunResult
    last_words: str
    holds: Observed | None = None
    """The assertions that hold for it; None if there are no spans."""
    unread: bool = False
    """Whether there are spans, of which no dialect reads any."""


def _trial(suite: Any, draft: CaseDraft) -> _Trial:
    """Run the case once, as `clawtrace eval` does; no result is kept of a run without spans, or that broke.

    Raises:
        RunnerError: its agent could not be run at all.
    """
    from clawtrace.campaign.planning.expand import expand
    from clawtrace.campaign.running.reuse import decide
    from clawtrace.cli.projects.new_project import NewPaths

    models = [suite.config.models[0].model_id] if suite.config.models else []
    plan = expand(suite, cases=[draft.case_id], models=models, repetitions=1)
    decisions = decide(plan, os.environ, reuse=False)
    prints = [one.fingerprint.digest for one in decisions.values()]
    index = plan.outputs / "index"
    results = NewPaths([plan.folder, index / "files", *(index / one[:2] / one for one in prints)])
    with ExitStack() as unless_kept:
        unless_kept.callback(results.undo)
        trial = _run(plan, decisions)
        if trial.result.has_trace:
            unless_kept.pop_all()
    return trial


def _run(plan: Plan, decisions: Mapping[str, Decision]) -> _Trial:
    from clawtrace.campaign.comparing.observed import Observation
    from clawtrace.campaign.running.execute import execute
    from clawtrace.campaign.running.opening import open_campaign
    from clawtrace.cli.output.campaign_progress import progress
    from clawtrace.cli.projects.new_project import last_words
    from clawtrace.cli.sources.recorded_run import observed

    with open_campaign(plan) as session:
        with progress(quiet=not sys.stderr.isatty()) as listener:
            done = execute(plan, session, os.environ, listener, decisions=decisions)
        if done.interrupted or not done.results:
            raise KeyboardInterrupt if done.interrupted else RunnerError(done.not_run[0].reason)
        (result,) = done.results
        if result.error:
            raise RunnerError(f"the command could not be run, and nothing was written: {result.error}")
        ending = last_words(plan.folder / plan.runs[0].folder)
        if not result.has_trace:
            return _Trial(result, ending)
        exited = Observation({"type": "agent_exit_code", "value": 0}, "The agent's process succeeded.")
        runs = session.inspect([result.run_id])["runs"]
        return _Trial(result, ending, observed(session, runs, exited), unread=not runs[0]["dialects"])


def _say(draft: CaseDraft, seen: _Recorded | None, trial: _Trial | None) -> int:
    """Print the outcome; return the exit code."""
    from clawtrace.cli.output.connecting import OF_NO_INSTRUMENTATION, say_how_to_connect
    from clawtrace.cli.sources.recorded_run import print_score
    from clawtrace.support.figures import amount

    console = stdout_console()
    console.line()
    holds = seen.holds if seen else trial.holds if trial else None
    if seen is not None:
        console.paragraph(f"Wrote {_passing(seen.holds.found)} on the run `{seen.run_id}`.")
    elif trial is None:
        console.paragraph("The command was not run; the case has a minimal assertion.")
        say_how_to_connect(draft.command or "", console)
    else:
        ended = _say_end(trial, console)
        result = trial.result
        console.paragraph(
            f"The agent ran once {ended} ({amount(result.spans, 'span')}). Wrote {_passing(holds.found if holds else ())} on this run."
        )
        if not result.complete:
            console.paragraph("Its trace is not complete: " + " ".join(result.incomplete_because), style="yellow")
        if trial.unread:
            console.paragraph(OF_NO_INSTRUMENTATION, style="yellow")
    if holds and holds.failed:
        named = ", ".join(f"`{name}`" for name in holds.failed)
        console.paragraph(
            f"Failed in this run: {named}. If it should not, add `- type: no_span_errors`.", style="yellow"
        )
    if holds and holds.score:
        print_score(holds.score, console)
    console.line(("Next: ", ""), (f"clawtrace eval --suite {draft.suite_id}", "bold"))
    return 0


def _passing(found: Sequence[Observation]) -> str:
    return "1 assertion, which passes" if len(found) == 1 else f"{len(found)} assertions, which pass"


def _say_nothing_came(trial: _Trial, answers: _Choices) -> int:
    """Print why there may be no trace, and how to try again; return the exit code."""
    from clawtrace.cli.output.connecting import say_how_to_connect

    console = stdout_console()
    ended = _say_end(trial, console)
    console.paragraph(
        f"The command ran {ended}, but no span of it arrived: there is nothing to judge, and nothing was written.",
        style="yellow",
    )
    hints = [verdict.hint for verdict in trial.result.verdicts if verdict.hint]
    last_line = trial.last_words.splitlines()[-1:]
    notes = [note for note in trial.result.diagnostics if not any(words.strip() in note for words in last_line)]
    for hint in dict.fromkeys([*hints, *notes]):
        console.paragraph(hint, first="  hint: ", indent="        ", style="cyan")
    say_how_to_connect(answers.command or "", console, why=" ".join(hints))
    again = ["clawtrace", "init", "--yes", "--command", answers.command or "", "--message", answers.message or ""]
    for flag, value, default in (
        ("--case", answers.case, _FIRST),
        ("--suite", answers.suite, _FIRST),
        ("--timeout", str(answers.timeout), str(_TIMEOUT)),
    ):
        again += [flag, value] if value != default else []
    again += [word for name in answers.pass_env for word in ("--pass-env", name)]
    console.line(("Then try again (--no-trial writes the case without a run):", ""))
    console.line((f"  {shlex.join(again)}", "bold"))
    return int(ExitCode.UNDECIDED)


def _say_end(trial: _Trial, console: ConsoleOutput) -> str:
    """Show what an agent that did not end well wrote at its end; return how it ended."""
    if trial.result.run_status == "success":
        return "and succeeded"
    if trial.last_words:
        console.line(("The end of its standard error:", "dim"))
        for line in trial.last_words.splitlines():
            console.line((f"  {line}", "dim"))
    return f"and ended as `{trial.result.run_status}`"
