"""A project of small cases, and a session that stores nothing: what the campaign itself does."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from clawtrace.campaign.planning.expand import Plan, expand
from clawtrace.campaign.running.execute import CampaignResult, execute
from clawtrace.config.loading.suite_file import LoadedSuite, load_suite
from clawtrace.config.projects.project_file import load_project
from clawtrace.model.run import ClosedBy, RunRecord
from clawtrace.model.verdict import RunResult, Status, Verdict, run_status_of


@dataclass
class RecordingSession:
    """Keeps what it is given; a run passes when its agent ended with 0, each assertion giving one verdict."""

    endpoints: SimpleNamespace = field(
        default_factory=lambda: SimpleNamespace(grpc="http://127.0.0.1:1", http="http://127.0.0.1:2", token=None)
    )
    opened: dict[str, RunRecord] = field(default_factory=dict)
    closed: dict[str, tuple[RunRecord, bool]] = field(default_factory=dict)
    loaded: dict[str, list[Path]] = field(default_factory=dict)
    asked: dict[str, list] = field(default_factory=dict)
    worlds: dict = field(default_factory=dict)

    def prepare(self):
        """Nothing is loaded."""

    def stop_receiving(self):
        """Nothing is received."""

    def has_grown(self, run_id):
        """Nothing comes."""
        del run_id
        return False

    def clean(self, text):
        """Nothing is secret here."""
        return text

    def put_judgements(self, run_id, asked_by, rows):
        """No judge is asked here."""
        raise AssertionError((run_id, asked_by, rows))

    def details(self, run_ids):
        """Each run has called the tool `search`."""
        data = {"tool_calls": [{"name": "search", "certain": True, "outcome": "ok"}]}
        return [SimpleNamespace(run_id=run_id, data=lambda: data) for run_id in run_ids]

    def provider_failure(self, run_id):
        """No provider failed."""
        del run_id

    def open_run(self, record):
        """Keep the announcement."""
        assert record.run_id not in self.opened
        self.opened[record.run_id] = record

    def close_run(self, record, *, processes_gone, ended=None, waiting=None):
        """Keep the end."""
        del ended, waiting
        assert record.run_id in self.opened
        self.closed[record.run_id] = (record, processes_gone)
        return record._replace(closed_by=ClosedBy.EXIT)

    def close_again(self, run_id, waiting=None):
        """Nothing came late."""
        del run_id, waiting
        return False

    def load_recordings(self, paths, grouping):
        """Keep the paths."""
        self.loaded[grouping.run_id] = list(paths)

    def evaluate(self, run_ids, assertions, *, worlds=None, case_dir=None, looked=lambda: None):
        """Judge by the exit code."""
        del case_dir
        looked()
        self.worlds |= worlds or {}
        return [self._result(run_id, assertions) for run_id in run_ids]

    def _result(self, run_id, assertions):
        self.asked[run_id] = list(assertions)
        record = self.closed[run_id][0] if run_id in self.closed else self.opened[run_id]
        status = Status.PASS if record.agent_exit_code in (0, None) else Status.FAIL
        verdicts = tuple(
            Verdict(run_id, a.id, a.type_name, status, True, "", min_pass_rate=a.min_pass_rate) for a in assertions
        )
        return RunResult(run_id, run_id, None, 1, run_status_of(verdicts), verdicts, record.run_status)


class Heard:
    """A listener that keeps what it heard: the name of the call, and what was given to it."""

    def __init__(self) -> None:
        self.events: list[tuple[Any, ...]] = []

    def __getattr__(self, name: str) -> Any:
        return lambda *said: self.events.append((name, *said))


class Project:
    """Writes cases and runs them."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.env = dict(os.environ)
        self.session = RecordingSession()
        self.heard = Heard()

    def write(self, name: str, text: str) -> Path:
        """Write one file."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def case(self, case_id: str, command: str, more: str = "", tags: str = "") -> None:
        """Write a case that runs a shell text."""
        self.write(
            f"configs/cases/{case_id}/test.yaml",
            f"schema_version: 1\ncase_id: {case_id}\ntitle: The case {case_id}\ntags: [{tags}]\n"
            f"runner:\n  type: command\n  command: |\n    {command}\n  grace_seconds: 1\n"
            f"input: {{messages: [{{role: user, content: hello}}]}}\nassertions: [{{type: no_span_errors}}]\n{more}",
        )

    def suite(self, models: str = "[]", policy: str = "{}", selection: str = "{}") -> LoadedSuite:
        """Write and load the suite with its profile."""
        self.write(
            "configs/suites/s.yaml",
            f"schema_version: 1\nsuite_id: s\ntitle: S\nmodels: {models}\ncase_selection: {selection}\n",
        )
        self.write(
            "configs/run_profiles/p.yaml",
            f"schema_version: 1\nrun_profile_id: p\ntitle: P\nexecution_policy: {policy}\n",
        )
        return load_suite("s", load_project(self.root, {}), self.env, run_profile="p")

    def plan(self, policy: str = "{}", listed: str = "[]", **narrowing) -> Plan:
        """Return the plan of the suite."""
        return expand(self.suite(listed, policy), **narrowing)

    def run(self, policy: str = "{}", **narrowing) -> CampaignResult:
        """Run the suite."""
        return execute(self.plan(policy, **narrowing), self.session, self.env, self.heard)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.chdir(tmp_path)
    return Project(tmp_path)
