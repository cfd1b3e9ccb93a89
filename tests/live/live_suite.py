"""A project of cases around real agents; and how long each run took to be closed once its processes had ended."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from clawtrace.campaign.planning.expand import expand
from clawtrace.campaign.running.execute import execute
from clawtrace.campaign.running.opening import open_campaign
from clawtrace.campaign.running.reuse import decide
from clawtrace.config.loading.suite_file import load_suite
from clawtrace.config.projects.project_file import load_project

HERE = Path(__file__).parent
NOT_DELETED = "[{type: tool_not_invoked, tool: delete_all}]"
TRACE = "ab" * 16


def only(*tools: str) -> str:
    """The assertion that exactly these tools were called, in this order."""
    return json.dumps([{"type": "tool_sequence", "mode": "strict", "expected": list(tools)}])


def plain_span(number: int, name: str, parent: int = 0, **attributes: str) -> dict:
    """A span for `plain_agent.py`, the first of all when `number` is 1."""
    return {
        "trace": TRACE,
        "id": f"{number:016x}",
        "parent": f"{parent:016x}" if parent else "",
        "name": name,
        "start": 1_700_000_000_000_000_000 + number,
        "end": 1_700_000_000_000_001_000 + number,
        "attributes": attributes,
    }


class TimedSession:
    """A session that notes how long each close waited, in seconds."""

    def __init__(self, session) -> None:
        self._session = session
        self.waited: dict[str, float] = {}

    def __getattr__(self, name: str):
        return getattr(self._session, name)

    def close_run(self, record, **how):
        began = time.monotonic()
        try:
            return self._session.close_run(record, **how)
        finally:
            self.waited[record.case_id] = time.monotonic() - began


class Suite:
    """Writes cases and runs them for real."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.waited: dict[str, float] = {}
        self.env = {
            "PATH": "/usr/bin:/bin",
            "AGENT": f"{sys.executable} {HERE}/sdk_agent.py",
            "PLAIN": f"{sys.executable} {HERE}/plain_agent.py",
        }

    def project(self, text: str) -> None:
        """Write clawtrace.yaml."""
        (self.root / "clawtrace.yaml").write_text(text)

    def case(self, case_id: str, command: str, assertions: str = NOT_DELETED, more: str = "", env: str = "") -> None:
        """Write a case whose command is a shell text; $AGENT and $PLAIN are the agents."""
        folder = self.root / "configs/cases" / case_id
        folder.mkdir(parents=True)
        agents = "AGENT: '{{env.AGENT}}', PLAIN: '{{env.PLAIN}}', OTEL_EXPORTER_OTLP_TIMEOUT: '2'"
        (folder / "test.yaml").write_text(
            f"schema_version: 1\ncase_id: {case_id}\ntitle: T\nrunner:\n  type: command\n  command: {json.dumps(command)}\n"
            f"  env: {{{agents}{env}}}\n{more}input: {{}}\nassertions: {assertions}\n"
        )

    def plain(self, case_id: str, requests: list[list[dict]], assertions: str = NOT_DELETED) -> None:
        """Write a case whose agent exports exactly `requests`."""
        self.case(case_id, f"$PLAIN '{json.dumps(requests)}'", assertions)

    def run(self, concurrency: int = 1, listener=None, *, reuse: bool = False):
        """Run every case and return the results by case id; `waited` says how long each close took."""
        suite = self.root / "configs/suites/s.yaml"
        suite.parent.mkdir(exist_ok=True)
        suite.write_text("schema_version: 1\nsuite_id: s\ntitle: S\n")
        plan = expand(load_suite("s", load_project(self.root, {}), self.env), concurrency=concurrency)
        decisions = decide(plan, self.env, reuse=reuse)
        with open_campaign(plan) as session:
            timed = TimedSession(session)
            result = execute(plan, timed, self.env, listener, decisions=decisions)
        assert result.not_run == ()
        self.waited = timed.waited
        return {found.case_id: found for found in result.results}

    def judge(self, command: str, assertions: str = NOT_DELETED, more: str = "", env: str = ""):
        """Run one case and return its result."""
        self.case("one", command, assertions, more, env)
        return self.run()["one"]
