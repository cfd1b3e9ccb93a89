"""Several turns in one session: one invocation of the command a turn (spec: config.md §3)."""

from __future__ import annotations

import json
import os
import threading
import uuid
from dataclasses import replace

import pytest

from clawtrace.errors import RunnerError
from clawtrace.runners import command
from clawtrace.runners.base import Message
from clawtrace.runners.command import CommandRunner
from clawtrace.runners.starting.process import supervise
from clawtrace.runners.starting.templates import session_id
from clawtrace.runners.workspace import AgentFiles

SYSTEM = (Message("system", "Be brief."),)
TURNS = (Message("user", "first"), Message("user", "second"), Message("user", "third"))


@pytest.fixture
def run(bench):
    """Run a command over turns; further fields of the request by name."""

    def call(command, *, turns=TURNS, messages=SYSTEM, fields=None, **settings):
        request = bench.request(command=command, messages=messages, **settings)
        return CommandRunner().run(replace(request, turns=turns, **(fields or {})), bench.target, bench.stop)

    return call


def test_one_invocation_a_turn_in_one_workspace(run):
    """Each turn is given its own message, in the order of the case, and finds what the turns before it left."""
    outcome = run("cat >> said; echo >> said; echo {{turn}}:$CLAWTRACE_TURN:$CLAWTRACE_MESSAGE")

    assert (outcome.workspace / "said").read_text() == "first\nsecond\nthird\n"
    assert outcome.final_output == "3:3:third"
    assert outcome.stdout.read_text() == "1:1:first\n2:2:second\n3:3:third\n"
    assert outcome.run_status == "success"


def test_the_streams_of_each_turn_are_kept(run):
    """Standard input, output and error of each turn are separate files."""
    outcome = run("echo out $CLAWTRACE_TURN; echo err $CLAWTRACE_TURN >&2; cat >/dev/null")
    folder = outcome.stdout.parent / "turns" / "2"

    assert [(folder / name).read_text() for name in ("stdin", "stdout", "stderr")] == ["second", "out 2\n", "err 2\n"]
    assert outcome.stderr.read_text() == "err 1\nerr 2\nerr 3\n"


def test_the_session_is_one_and_only_this_runs(run):
    """`{{session_id}}` and the variable are the same UUID in every turn, and another one in another run."""
    first = run("echo {{session_id}} $CLAWTRACE_SESSION_ID").stdout.read_text().split()
    second = run("echo {{session_id}}").stdout.read_text().split()

    assert len(first) == 6
    assert len(set(first)) == 1
    assert uuid.UUID(first[0])
    assert first[0] == session_id("suite/-/case/1-0001")
    assert set(first).isdisjoint(second)


def test_messages_come_with_the_first_turn_only(run):
    """`input: json` gives the initial context once; the context mapping every time."""
    outcome = run("cat; echo", input="json", fields={"context": {"lang": "en"}})
    messages = [json.loads(line) for line in outcome.stdout.read_text().splitlines()]

    assert messages == [
        {
            "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "first"}],
            "context": {"lang": "en"},
        },
        {"messages": [{"role": "user", "content": "second"}], "context": {"lang": "en"}},
        {"messages": [{"role": "user", "content": "third"}], "context": {"lang": "en"}},
    ]


def test_a_turn_that_fails_ends_the_run(run):
    """Later turns are not started; exit code and answer are the failed turn's, and a note says what was left out."""
    outcome = run("echo turn $CLAWTRACE_TURN; touch ran{{turn}}; test $CLAWTRACE_TURN != 2")

    assert (outcome.run_status, outcome.exit_code, outcome.final_output) == ("failed", 1, "turn 2")
    assert outcome.changes["created"] == ["ran1", "ran2"]
    assert outcome.notes == ("turn 2 of 3 ended with exit code 1; 1 further turn was not run",)


def test_the_time_limit_is_the_runs(run):
    """Turns share one limit: three that would each stay within it are ended when it is used up."""
    outcome = run("sleep 0.6", timeout_seconds=1.0)

    assert (outcome.run_status, outcome.timed_out) == ("timed_out", True)
    assert outcome.notes == ("turn 2 of 3 reached its time limit; 1 further turn was not run",)
    assert outcome.ended_ns - outcome.started_ns < 1.9e9


def test_a_clock_that_is_set_meanwhile_takes_no_time(run, monkeypatch):
    """An hour that was not waited is no part of the run's time."""

    def an_hour_later(spec, stop):
        end = supervise(spec, stop)
        return replace(end, ended_ns=end.ended_ns + 3_600 * 10**9)

    monkeypatch.setattr(command, "supervise", an_hour_later)
    outcome = run("echo turn $CLAWTRACE_TURN", timeout_seconds=60)

    assert (outcome.run_status, outcome.final_output) == ("success", "turn 3")


def test_the_context_is_a_variable(bench):
    """`CLAWTRACE_CONTEXT` is the mapping as JSON; without a context there is no such variable."""
    command = 'echo "${CLAWTRACE_CONTEXT-none}"'
    given = CommandRunner().run(replace(bench.request(command=command), context={"a": ["ü"]}), bench.target, bench.stop)

    assert json.loads(given.final_output) == {"a": ["ü"]}
    assert bench.run(command=command).final_output == "none"


def test_a_context_that_no_variable_holds_is_an_error(bench):
    """What would be dropped silently stops the run; with `input: json` standard input carries it."""
    context = {"text": "x" * 130_000}
    with pytest.raises(RunnerError, match=r"`input\.context` is too long for an environment variable"):
        CommandRunner().run(replace(bench.request(command=["cat"]), context=context), bench.target, bench.stop)
    request = replace(bench.request(command=["cat"], input="json"), context=context)
    outcome = CommandRunner().run(request, bench.target, bench.stop)

    assert json.loads(outcome.final_output)["context"] == context


def test_the_agent_is_named(bench, tmp_path):
    """`CLAWTRACE_AGENT_ID` says whose workspace this is."""
    (tmp_path / "w").mkdir()
    request = replace(bench.request(command="echo $CLAWTRACE_AGENT_ID"), agent=AgentFiles("helper", tmp_path / "w"))

    assert CommandRunner().run(request, bench.target, bench.stop).final_output == "helper"


def test_stopping_ends_the_turn_and_starts_no_other(run, bench):
    """Ctrl-C in a turn ends its agent; the run is `invalid`, and later turns never start."""
    ready = bench.folder / "ready"
    os.mkfifo(ready)

    def stop_when_ready() -> None:
        ready.read_text()
        bench.stop.set()

    threading.Thread(target=stop_when_ready).start()
    outcome = run(f"touch ran{{{{turn}}}}; echo go > {ready}; sleep 60")

    assert (outcome.run_status, outcome.runner_error) == ("invalid", "interrupted")
    assert outcome.changes["created"] == ["ran1"]


def test_what_a_turn_leaves_running_is_ended_before_the_next(run):
    """A daemon of the first turn does not reach the second one; the run's notes name it."""
    outcome = run(
        "if test $CLAWTRACE_TURN = 1; then sleep 61 & echo $! > pid; else ! kill -0 $(cat pid); fi",
        turns=TURNS[:2],
        leftover_seconds=0.2,
    )

    assert (outcome.run_status, outcome.exit_code) == ("success", 0)
    assert [note for note in outcome.notes if "sleep 61" in note]
    assert "sleep 61" in outcome.cut_off
