"""`clawtrace eval --suite --server`: a suite whose spans a running service receives."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import pytest
from click.testing import CliRunner, Result
from exported import export
from running import PROGRAM, Running, environment
from served import Served

from clawtrace.cli.main import cli
from clawtrace.config.projects.session_settings import SessionSettings
from clawtrace.errors import ReceiverError
from clawtrace.model.run import RunRecord, SentTurn
from clawtrace.receiver.limits import ReceiverSettings
from clawtrace.session.session import Session
from clawtrace.sidecar import joined
from clawtrace.sidecar.joined import JoinedSession, NamedService
from clawtrace.sidecar.serving import Service

AGENT = Path(__file__).parent / "joined_agent.py"
CHECKS = [{"tool_was_called": "search"}, {"tool_not_invoked": "delete_all"}]


def write_suite(folder: Path, cases: Mapping[str, list[str]], *more: dict[str, Any], **runner: Any) -> None:
    """Write a suite `all` with a case for each agent; what each is asked is `CHECKS` and `more`."""
    for name, words in cases.items():
        case = {
            "schema_version": 1, "case_id": name, "title": name, "tags": ["all"], "input": {"messages": []},
            "runner": {"type": "command", "command": [sys.executable, "-SE", str(AGENT), *words], **runner},
            "assert": [*CHECKS, *more],
        }  # fmt: skip
        path = folder / "configs" / "cases" / name / "test.yaml"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(case))
    (folder / "configs" / "suites").mkdir(parents=True)
    suite = {"schema_version": 1, "suite_id": "all", "title": "All", "case_selection": {"include_tags": ["all"]}}
    (folder / "configs" / "suites" / "all.yaml").write_text(json.dumps(suite))


def evaluate(folder: Path, *flags: str, **env: str | None) -> tuple[Result, dict[str, Any]]:
    """Run the suite in `folder`; return what came of it, and its results."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        report = folder / "r.json"
        report.unlink(missing_ok=True)
        args = ["eval", "--suite", "all", "--no-reuse", *flags, "--report", f"json={report}"]
        done = CliRunner(env={"CLAWTRACE_SERVER": None, **env}).invoke(cli, args, prog_name="clawtrace")
        return done, json.loads(report.read_text()) if report.exists() else {}
    finally:
        os.chdir(before)


def at(served: Served) -> dict[str, str]:
    """Return the environment that names a service."""
    return {"CLAWTRACE_SERVER": served.http, "CLAWTRACE_SERVER_TOKEN": served.token}


def answer(served: Served, path: str) -> str:
    """Return what a service answers."""
    request = urllib.request.Request(f"{served.http}/clawtrace/v1/{path}")
    request.add_header("authorization", f"Bearer {served.token}")
    with urllib.request.urlopen(request, timeout=10) as said:
        return said.read().decode()


def verdicts(results: Mapping[str, Any]) -> dict[str, Any]:
    """Return what does not differ from run to run, by case."""
    found = {}
    for case in results["cases"]:
        (run,) = case["runs"]
        said = [
            (
                one["id"],
                one["status"],
                re.sub(r"/1-[0-9a-f]{8}", "", one["message"]),
                one["final"],
                len(one["evidence"]),
            )
            for one in run["assertions"]
        ]
        trace = {name: run["trace"][name] for name in ("complete", "incomplete_because", "spans", "closed_by")}
        found[case["case_id"]] = (run["status"], run["run_status"], trace, said)
    return found


@pytest.fixture
def session(served: Served, tmp_path: Path) -> Iterator[JoinedSession]:
    """A session of the service's, and a run of it that an agent is about to be started for."""
    service = NamedService(served.http, served.token)
    with JoinedSession.joining(service, tmp_path / "own.duckdb", SessionSettings()) as session:
        session.listen()
        session.open_run(RECORD)
        yield session


RECORD = RunRecord(
    "r1", "case", trace_id=f"{7:032x}", parent_span_id=f"{7:016x}", turns=(SentTurn(f"{7:032x}", f"{7:016x}"),)
)
ENDED = RECORD._replace(
    started_ns=1_790_000_000_000_000_000,
    ended_ns=1_790_000_001_000_000_000,
    agent_exit_code=0,
    run_status="success",
    final_output="done",
)


class TestSession:
    def test_a_run_is_here_as_the_service_has_it(self, served: Served, session: JoinedSession) -> None:
        """Spans, counts and how it was closed: the facts are the same in both stores."""
        export(f"{session.endpoints.http}/run/r1", "search")
        closed = session.close_run(ENDED, processes_gone=True)

        assert session.inspect(["r1"]) == served.session.inspect(["r1"])
        there = served.session.record("r1")
        assert there is not None
        assert closed == there
        assert session.received_rows(["r1"]) == served.session.received_rows(["r1"])

    def test_what_comes_after_the_close_makes_it_incomplete_here_too(self, session: JoinedSession) -> None:
        export(f"{session.endpoints.http}/run/r1", "search")
        session.close_run(ENDED, processes_gone=True)
        before = session.inspect(["r1"])["runs"][0]
        state = session.facts_states(["r1"])
        export(f"{session.endpoints.http}/run/r1", "delete_all")
        grown = session.facts_states(["r1"])
        (after,) = session.inspect(["r1"])["runs"]

        assert (before["complete"], before["spans"], after["complete"], after["spans"]) == (True, 2, False, 4)
        assert state != grown

    def test_secrets_that_only_this_machine_knows_are_taken_out(
        self, session: JoinedSession, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The service does not know the environment of the suite."""
        monkeypatch.setenv("MY_API_KEY", "search-8472-4711")
        export(f"{session.endpoints.http}/run/r1", "search-8472-4711", "other")
        session.close_run(ENDED, processes_gone=True)
        tools = session.query("SELECT name FROM tool_calls ORDER BY name").column("name")

        assert tools[1] == "other"
        assert tools[0].startswith("[REDACTED")

    def test_a_run_without_an_agent_is_none_of_the_service(self, served: Served, session: JoinedSession) -> None:
        session.open_run(RunRecord("replayed", "case"))

        assert served.session.run_ids() == ["r1"]

    def test_a_service_that_does_not_come_back(
        self, served: Served, session: JoinedSession, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(joined, "PATIENCE_SECONDS", 0.0)
        served.service.drain()

        with pytest.raises(ReceiverError, match="does not answer"):
            session.close_run(ENDED, processes_gone=True)


@pytest.mark.full
def test_a_suite_is_judged_as_with_a_receiver_of_its_own(served: Served, tmp_path: Path) -> None:
    """Passed, failed, an exit code, a file in the workspace: verdicts, exit code and trace are the same, and the service has both."""
    cases = {
        "good": ["search", "file=out.txt"], "bad": ["search", "delete_all", "file=out.txt"], "broken": ["search", "exit=3"],
    }  # fmt: skip
    write_suite(tmp_path, cases, {"artifact_exists": "out.txt"})
    own, expected = evaluate(tmp_path)
    there, found = evaluate(tmp_path, **at(served))
    kept = [(run["case_id"], run["run_status"]) for run in served.client.list_runs()]
    events = [
        one for one in map(json.loads, answer(served, "events?follow=false").splitlines()) if one["event"] == "verdict"
    ]
    given = [one for case in found["cases"] for run in case["runs"] for one in run["assertions"]]

    assert (own.exit_code, there.exit_code) == (1, 1), there.output
    assert verdicts(found) == verdicts(expected)
    assert sorted(kept) == [("bad", "success"), ("broken", "failed"), ("good", "success")]
    said = [sorted((one["id"], one["status"], one["message"]) for one in of) for of in (events, given)]
    assert said[0] == said[1]
    paths = [f"runs/{quote(run['run_id'], safe='')}/page" for case in found["cases"] for run in case["runs"]]
    pages = [json.loads(answer(served, path))["results"]["cases"][0]["runs"][0] for path in paths]
    shown = [one for page in pages for one in page["assertions"]]
    assert [(one["id"], one["status"], one["evidence"], one["stale"]) for one in shown] == [
        (one["id"], one["status"], one["evidence"], False) for one in given
    ]


def test_who_is_wrong_about_the_service_starts_nothing(served: Served, tmp_path: Path) -> None:
    """No token, a wrong one, no service: exit code and one line, before any agent runs."""
    write_suite(tmp_path, {"good": ["search"]})
    without, _ = evaluate(tmp_path, "--server", served.http, CLAWTRACE_SERVER_TOKEN=None)
    wrong, _ = evaluate(tmp_path, "--server", served.http, CLAWTRACE_SERVER_TOKEN="no")
    unreachable, _ = evaluate(tmp_path, "--server", "http://127.0.0.1:1", CLAWTRACE_SERVER_TOKEN="no")

    assert (without.exit_code, "needs its token" in without.output) == (2, True)
    assert (wrong.exit_code, "token" in wrong.output) == (2, True)
    assert (unreachable.exit_code, "does not answer" in unreachable.output) == (4, True)
    assert not served.session.run_ids()


@pytest.mark.full
def test_agents_of_a_service_with_tls_and_producers(
    tmp_path: Path, certificates: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This command and its agents trust the same authority; the agents carry the token that exports need."""
    monkeypatch.setenv("SSL_CERT_FILE", str(certificates / "ca.pem"))
    write_suite(tmp_path, {"good": ["search"]})
    receiver = ReceiverSettings(
        token="exporters",
        tls_certificate=certificates / "server.pem",
        tls_key=certificates / "server.key",
        producers=(("ci", "other"),),
    )
    settings = SessionSettings(receiver=receiver)
    with Session.open(tmp_path / "spans.duckdb", settings=settings) as session:
        service = Service(session, token="control")
        address = service.start().http
        done, _ = evaluate(tmp_path, CLAWTRACE_SERVER=address, CLAWTRACE_SERVER_TOKEN="control")
        service.drain()

    assert (address[:5], done.exit_code) == ("https", 0), done.output


@pytest.mark.full
class TestProcesses:
    def test_two_suites_at_once_in_two_folders(self, tmp_path: Path) -> None:
        """Each judges its own runs, and the service has those of both."""
        running = Running(tmp_path)
        try:
            started = []
            for name, tool in (("first", "search"), ("second", "delete_all")):
                write_suite(tmp_path / name, {name: [tool, "search"]})
                command = [str(PROGRAM), "eval", "--suite", "all", "--server", str(running.ready)]
                started.append(
                    subprocess.Popen(command, cwd=tmp_path / name, env=environment(), stdout=subprocess.PIPE)
                )
            codes = [(one.communicate(timeout=60), one.returncode)[1] for one in started]
            runs = sorted((run["case_id"], run["complete"]) for run in running.client.list_runs())
        finally:
            running.end()

        assert codes == [0, 1]
        assert runs == [("first", True), ("second", True)]

    def test_a_service_that_is_killed_and_started_again(self, tmp_path: Path) -> None:
        """The agent is at work meanwhile: its run is closed and judged by the new one, which has another token."""
        running = Running(tmp_path)
        pipe = tmp_path / "again"
        os.mkfifo(pipe)
        port = str(urlsplit(running.http).port)
        write_suite(tmp_path, {"good": [f"kill={running.process.pid}", f"wait={pipe}", "search"]})
        suite = subprocess.Popen(
            [str(PROGRAM), "eval", "--suite", "all", "--server", str(running.ready)],
            cwd=tmp_path, env=environment(), stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        running.process.communicate(timeout=60)
        again = Running(tmp_path, "--http-port", port)
        try:
            pipe.write_text("")
            said, _ = suite.communicate(timeout=60)
        finally:
            again.end()

        assert suite.returncode == 0, said
        assert again.said["token"] != running.said["token"]

    def test_a_service_that_is_gone(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Exit code 4, as where the receiver of the command itself fails; no traceback, and nothing more is started."""
        monkeypatch.setattr(joined, "PATIENCE_SECONDS", 0.0)
        running = Running(tmp_path)
        write_suite(tmp_path, {"first": [f"kill={running.process.pid}", "search"], "second": ["search"]})
        done, results = evaluate(tmp_path, "--server", str(running.ready), "-n", "1")
        running.process.communicate()

        assert done.exit_code == 4, done.output
        assert "Traceback" not in done.output
        (run,) = results["cases"][0]["runs"]
        assert "does not answer" in run["error"]
        assert [one["case_id"] for one in results["not_run"]] == ["second"]
