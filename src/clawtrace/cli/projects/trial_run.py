"""`clawtrace doctor -- CMD`: runs an agent once and explains why spans are missing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from clawtrace.campaign.running.wrap import WrappedRun, run_command
from clawtrace.cli.output.connecting import makes_no_model_call
from clawtrace.cli.projects.checkup import CheckupFinding
from clawtrace.config.projects.project_file import load_project
from clawtrace.config.projects.session_settings import session_settings
from clawtrace.model.reasons import REASONS
from clawtrace.session.session import Session
from clawtrace.support.figures import amount, total_of

__all__ = ["trial_run"]

_CHECK = "trial"


def trial_run(command: Sequence[str], env: Mapping[str, str]) -> tuple[WrappedRun, list[CheckupFinding]]:
    """Run a command once as `clawtrace run` does, with its standard output on standard error; return what was found.

    Raises:
        RunnerError: it cannot be started.
        ConfigError: the project file is invalid.
    """
    project = load_project()
    with Session.open(receive=True, settings=session_settings(project)) as session:
        wrapped = run_command(command, session, env, switches=project.config.telemetry_env, streams=(0, 2, 2))
        if wrapped.interrupted:
            raise KeyboardInterrupt
        run_id = wrapped.record.run_id
        (facts,) = session.inspect([run_id])["runs"]
        why = "" if facts["spans"] else session.why_no_trace(run_id)
    return wrapped, [*_findings(wrapped, facts, why)]


def _findings(wrapped: WrappedRun, facts: Mapping[str, Any], why: str) -> Iterator[CheckupFinding]:
    if why:
        yield CheckupFinding(_CHECK, "problem", "The command ran, and no span of it arrived.", why)
    else:
        total = facts["totals"]
        calls = (("llm_calls", "model call"), ("tool_calls", "tool call"))
        counted = [_counted(total, name, noun) for name, noun in calls]
        read_by = ", ".join(facts["dialects"]) or "no known instrumentation"
        silent = makes_no_model_call(wrapped.result)
        status: Literal["ok", "warning"] = "warning" if silent else "ok"
        said = f"{amount(facts['spans'], 'span')} arrived ({read_by}): {', '.join(counted)}."
        advice = (
            "None of them is of a model call: no instrumentation of the model's client is at work." if silent else ""
        )
        yield CheckupFinding(_CHECK, status, said, advice)
    for reason in facts["incomplete_because"]:
        yield CheckupFinding(_CHECK, "warning", f"The trace is incomplete: {reason}")
    open_yet = {one["because"] for one in (*facts["doubts"], *facts["gaps"]) if not REASONS[one["reason"]].unfinished}
    if open_yet and not makes_no_model_call(wrapped.result):
        yield CheckupFinding(
            _CHECK, "warning", f"The spans leave something open. {' '.join(sorted(open_yet))}",
            "Assertions that depend on it are inconclusive; `clawtrace run -- CMD` shows what it concerns.",
        )  # fmt: skip
    for note in wrapped.result.diagnostics:
        yield CheckupFinding(_CHECK, "warning", note)


def _counted(totals: Mapping[str, Any], name: str, noun: str) -> str:
    if totals[name] is not None:
        return amount(totals[name], noun)
    between = total_of(totals, name)
    return f"{noun}s unknown" if between == "?" else f"{between} {noun}s"
