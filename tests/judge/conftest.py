"""A project whose runs are judged: a real agent with real spans, and judges played by the scripted model."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from clawtrace.cli.main import cli
from clawtrace.judge.panel import DIMENSIONS
from clawtrace.providers import asking
from clawtrace.testing import scripted_model

AGENT = Path(__file__).parent / "judged_agent.py"
KEY = "key-of-the-judge"


def answer(
    score: float = 8, *, hard: Sequence[bool] = (), soft: Sequence[float] = (), **dimensions: float | None
) -> dict:
    """Return what a judge says about a run; `score` also where nothing else is given."""
    return {
        "summary": "A fair piece of work.",
        **({"hard_expectations": [{"evidence": "e", "met": met, "score": score} for met in hard]} if hard else {}),
        **({"soft_expectations": [{"evidence": "e", "score": one} for one in soft]} if soft else {}),
        "dimensions": {name: {"evidence": "e", "score": dimensions.get(name, score)} for name in DIMENSIONS},
        "overall": {"evidence": "the report is there", "score": score},
    }


def says(given: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """Return the step in which the scripted judge gives an answer."""
    return {"tool_calls": [{"name": "final_result", "arguments": dict(given)}], **more}


def failure(status: int, kind: str = "server_error", **more: Any) -> dict[str, Any]:
    """Return the step in which the provider fails."""
    return {"error": {"status": status, "type": kind, **more}}


@dataclass
class Judged:
    """What an evaluation came to."""

    exit_code: int
    output: str
    run: dict[str, Any]
    """The first run of the JSON report."""
    asked: list[dict[str, Any]]
    """The requests that the judges got."""
    results: dict[str, Any] = field(default_factory=dict)

    def verdict(self, named: str = "judge") -> dict[str, Any]:
        """Return one verdict of the run."""
        return next(one for one in self.run["assertions"] if one["id"] == named)

    def prompt(self, number: int = 0) -> str:
        """Return what a judge was sent, as the provider got it."""
        return "\n".join(str(one["content"]) for one in self.asked[number]["messages"])


class JudgedProject:
    """Writes a case, a suite and an evaluation profile; evaluates them."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.words: list[str] = []
        """What the agent does."""
        self.case: dict[str, Any] = {"assertions": [{"type": "no_span_errors"}]}
        self.profile: dict[str, Any] = {"judge_runs": [{"judge_run_id": "main", "judge_id": "j"}]}
        self.judge: dict[str, Any] = {}
        self.models: list[dict[str, Any]] = []
        self.flags: list[str] = []

    def write(self, name: str, data: Any) -> Path:
        """Write one file of the project."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(data if isinstance(data, str) else yaml.safe_dump(data, sort_keys=False), encoding="utf-8")
        return path

    def write_all(self, url: str) -> None:
        """Write every file; the judge asks the server at `url`."""
        head = {"schema_version": 1, "title": "T"}
        message = {"role": "user", "content": "Write the report on tides."}
        self.write(
            "configs/cases/c/test.yaml",
            {
                **head,
                "case_id": "c",
                "runner": {
                    "type": "command",
                    "command": [sys.executable, str(AGENT), *self.words],
                    "grace_seconds": 1,
                    "inputs": [str(AGENT)],
                },
                "input": {"messages": [message]},
                **self.case,
            },
        )
        self.write("configs/suites/s.yaml", {**head, "suite_id": "s", "models": self.models})
        judge = {"judge_id": "j", "type": "llm_probe", "model": "acme/judge-1", "base_url": f"{url}/v1", **self.judge}
        self.write(
            "configs/evaluation_profiles/e.yaml",
            {**head, "evaluation_profile_id": "e", "judges": [judge], **self.profile},
        )

    def evaluate(self, *steps: Mapping[str, Any], reuse: bool = False) -> Judged:
        """Run the suite, with judges who say `steps`."""
        with scripted_model(list(steps)) as model:
            self.write_all(model.url)
            report = self.root / "report.json"
            command = ["eval", "--suite", "s", "--evaluation-profile", "e", "--report", f"json={report}"]
            command += ["--reuse"] if reuse else ["--no-reuse"]
            ended = CliRunner().invoke(cli, [*command, *self.flags], prog_name="clawtrace", catch_exceptions=False)
            asked = [one.request for one in model.log]
        if not report.exists():
            return Judged(ended.exit_code, ended.output, {}, asked)
        results = json.loads(report.read_text())
        report.unlink()
        (case,) = results["cases"]
        return Judged(ended.exit_code, ended.output, case["runs"][0], asked, results)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[JudgedProject]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(asking, "FIRST_PAUSE_SECONDS", 0.01)
    monkeypatch.delenv("CI", raising=False)
    return JudgedProject(tmp_path)


@pytest.fixture
def query(tmp_path: Path) -> Callable[[str], list[dict[str, Any]]]:
    """Ask the campaign's store through the command line."""

    def ask(sql: str) -> list[dict[str, Any]]:
        (store,) = tmp_path.glob("outputs/campaigns/*/*/spans.duckdb")
        ended = CliRunner().invoke(
            cli, ["query", "--store", str(store), "--format", "json", sql], prog_name="clawtrace"
        )
        assert ended.exit_code == 0, ended.output
        return json.loads(ended.stdout)

    return ask
