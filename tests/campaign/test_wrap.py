"""`clawtrace run -- CMD`: the user's own command with its own environment, folder and streams (spec: cli.md)."""

from __future__ import annotations

import os
import sys

import pytest

from clawtrace.campaign.running.wrap import run_command
from clawtrace.config.loading.assertions_file import load_assertions_file
from clawtrace.config.projects.project_file import load_project
from clawtrace.errors import ConfigError, RunnerError
from clawtrace.model.verdict import Status


def wrap(project, *argv, **options):
    """Run a command whose output goes to files."""
    out = os.open(project.root / "out", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    try:
        streams = (os.open(os.devnull, os.O_RDONLY), out, out)
        return run_command(argv, project.session, project.env, streams=streams, **options)
    finally:
        os.close(streams[0])
        os.close(out)


def test_the_command_keeps_its_environment_and_folder(project):
    """Everything of the caller's is there, the telemetry variables in addition, in the folder where it was called."""
    project.env |= {"MY_OWN_SECRET": "kept", "OTEL_RESOURCE_ATTRIBUTES": "a=1"}
    script = "import os; print(os.environ['MY_OWN_SECRET'], os.environ['OTEL_RESOURCE_ATTRIBUTES'], os.getcwd())"
    wrapped = wrap(project, sys.executable, "-c", script)
    run_id = wrapped.record.run_id

    assert (project.root / "out").read_text() == f"kept a=1,clawtrace.run_id={run_id} {project.root}\n"
    assert (wrapped.exit_code, wrapped.result.status, wrapped.record.workspace) == (0, None, str(project.root))
    assert project.session.opened[run_id].trace_id == project.session.closed[run_id][0].trace_id


def test_assertions_judge_it(project):
    """With assertions the run has verdicts; without a status there was nothing to evaluate."""
    path = project.write("checks.yaml", "assertions: [{type: no_span_errors}]\n")
    asked = load_assertions_file(str(path), load_project(project.root, {}), {}).assertions
    wrapped = wrap(project, "sh", "-c", "exit 5", assertions=asked)

    assert (wrapped.exit_code, wrapped.result.status, wrapped.record.run_status) == (5, Status.FAIL, "failed")


@pytest.mark.parametrize(
    ("argv", "timeout", "code"),
    [(["sh", "-c", "kill -TERM $$"], None, 143), (["sleep", "60"], 0.3, 124), (["true"], None, 0)],
)
def test_exit_codes_are_a_shells(project, argv, timeout, code):
    """A signal is 128 + n, the time limit 124, as shells and `timeout` say it."""
    assert wrap(project, *argv, timeout_seconds=timeout).exit_code == code


def test_a_daemon_left_behind_is_waited_for_or_ended(project, monkeypatch):
    """What the command leaves behind belongs to its run: it is ended before the run is closed, and named."""
    monkeypatch.setattr("clawtrace.campaign.running.wrap.LEFTOVER_SECONDS", 0.2)
    wrapped = wrap(project, "sh", "-c", "setsid sleep 64 & exit 0")
    record, gone = project.session.closed[wrapped.record.run_id]

    assert gone
    assert wrapped.result.diagnostics == ("was still running 0.2 s after the command and was ended: `sleep 64`",)
    assert record.cut_off.startswith("1 process that outlived the command")


def test_a_missing_program_is_an_error(project):
    """A command that does not exist is reported with what to do; its run is closed."""
    with pytest.raises(RunnerError, match="`no-such-program` is not on PATH"):
        wrap(project, "no-such-program")
    assert len(project.session.closed) == len(project.session.opened)


def test_what_judging_needs_is_loaded_while_the_command_runs(project, monkeypatch):
    """The command ends only once it was; that it cannot be loaded is left to the question that needs it."""
    ready = project.root / "ready"
    os.mkfifo(ready)

    def prepare():
        ready.write_text("loaded")
        raise ConfigError("a dialect cannot be read")

    monkeypatch.setattr(project.session, "prepare", prepare)
    wrapped = wrap(project, "cat", str(ready), timeout_seconds=30)

    assert (project.root / "out").read_text() == "loaded"
    assert wrapped.exit_code == 0
