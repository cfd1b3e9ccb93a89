"""Whole campaigns: runs side by side, a fault, a recording, a wrapped command."""

from __future__ import annotations

import sys

import pytest
from live_suite import HERE, only, plain_span
from otlp_wire import as_json

from clawtrace.campaign.running.wrap import run_command
from clawtrace.config.projects.project_file import load_project
from clawtrace.config.projects.session_settings import session_settings
from clawtrace.model.verdict import Status
from clawtrace.session.session import Session

pytestmark = pytest.mark.full


@pytest.mark.smoke
def test_runs_side_by_side_keep_their_own_spans(suite):
    """Eight agents at once, over gRPC and both kinds of HTTP: each run has exactly its own calls."""
    protocols = ["grpc", "http/protobuf"] * 4
    for number, protocol in enumerate(protocols):
        more = f"  telemetry: {protocol}\n"
        suite.case(f"c{number}", f"$AGENT flush shared own-{number}", only("shared", f"own-{number}"), more)
    results = suite.run(concurrency=4)

    assert {case: found.status for case, found in results.items()} == dict.fromkeys(results, Status.PASS)
    assert {found.closed_by for found in results.values()} == {"exit"}
    assert {found.spans for found in results.values()} == {3}
    assert all(found.complete for found in results.values())


def test_a_fault_of_the_agent_fails(suite):
    """A forbidden tool fails the run, whatever exit code the agent gives."""
    suite.case("bad", "$AGENT flush read delete_all", "[{type: tool_not_invoked, tool: delete_all}]")
    found = suite.run()["bad"]

    assert (found.status, found.run_status) == (Status.FAIL, "success")


def test_a_recording_is_replayed(suite):
    """The `replay` runner judges recorded spans as the run of its case."""
    spans = [
        plain_span(1, "invoke_agent a", **{"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "a"}),
        plain_span(2, "execute_tool read", 1, **{"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "read"}),
    ]
    folder = suite.root / "configs/cases/replayed"
    folder.mkdir(parents=True)
    (folder / "traces.json").write_text(as_json(spans, {}, "x").decode())
    (folder / "test.yaml").write_text(
        "schema_version: 1\ncase_id: replayed\ntitle: T\nrunner: {type: replay, traces: [traces.json]}\ninput: {}\n"
        f"assertions: {only('read')}\n"
    )
    found = suite.run()["replayed"]

    assert (found.status, found.closed_by, found.spans) == (Status.PASS, "recording", 2)
    assert (found.case_id, found.repetition) == ("replayed", 1)


def test_a_wrapped_command_is_judged(suite):
    """`clawtrace run`'s function: the command's own streams, its spans, its verdict."""
    from clawtrace.config.loading.assertions_file import load_assertions_file

    checks = suite.root / "checks.yaml"
    checks.write_text(f"assertions: {only('read')}\n")
    project = load_project(suite.root, {})
    asked = load_assertions_file(str(checks), project, {}).assertions
    argv = [sys.executable, str(HERE / "sdk_agent.py"), "flush", "read"]
    with Session.open(receive=True, settings=session_settings(project)) as session:
        wrapped = run_command(argv, session, suite.env, assertions=asked)

    assert (wrapped.result.status, wrapped.exit_code, wrapped.result.closed_by) == (Status.PASS, 0, "exit")
