"""A folder in which recordings and live agents are judged by the whole program, as a user would."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from spoken import Span, lines
from tests.cli.conftest import run_in_process

"""Variables of the caller that change what is printed, or where an exporter sends."""
SDK_AGENT = Path(__file__).parent.parent / "live" / "sdk_agent.py"


@dataclass(frozen=True)
class Judged:
    """What the program said of some runs."""

    exit_code: int
    stdout: str
    stderr: str
    report: dict[str, Any]
    """The JSON report; empty when there is none."""

    @property
    def text(self) -> str:
        """Everything that was printed."""
        return self.stdout + self.stderr

    @property
    def runs(self) -> dict[str, dict[str, Any]]:
        """Each run of the report by the id of its case, which is that of a recording's run."""
        return {case["case_id"]: run for case in self.report["cases"] for run in case["runs"]}

    @property
    def run(self) -> dict[str, Any]:
        """The only run."""
        (run,) = self.runs.values()
        return run

    @property
    def verdicts(self) -> list[dict[str, Any]]:
        """The verdicts of the only run, in the order of the file."""
        return list(self.run["assertions"])

    @property
    def statuses(self) -> list[str]:
        """Their statuses."""
        return [verdict["status"] for verdict in self.verdicts]


class Bench:
    """Writes recordings, assertions and cases into one folder and has the program judge them."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def write(self, name: str, text: str | bytes) -> Path:
        """Write one file."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path

    def program(self, *args: str | Path, **env: str) -> Judged:
        """Run the program in this process, which starts at once."""
        done = run_in_process(self.root, *args, env=env)
        return self._judged(done.returncode, done.stdout, done.stderr)

    def _judged(self, exit_code: int, stdout: str, stderr: str) -> Judged:
        """Read the JSON report where one was written."""
        report = self.root / "report.json"
        data = json.loads(report.read_text()) if report.exists() else {}
        report.unlink(missing_ok=True)
        return Judged(exit_code, stdout, stderr, data)

    def record(self, name: str, *requests: Sequence[Span], resource: dict[str, str] | None = None) -> Path:
        """Write a recording of `requests`, in this order."""
        return self.write(f"recordings/{name}/traces.jsonl", lines(requests, resource))

    def assertions(self, assertions: Sequence[dict[str, Any]], **more: Any) -> Path:
        """Write a file of assertions."""
        return self.write("checks.yaml", yaml.safe_dump({"assertions": list(assertions), **more}, sort_keys=False))

    def judge(self, *assertions: dict[str, Any], flags: Sequence[str] = (), **more: Any) -> Judged:
        """Judge every recording in the folder, each a separate run."""
        checks = self.assertions(assertions, **more)
        grouping = ("--traces", "recordings", "--run-per-dir", "--assertions", checks)
        return self.program("eval", *grouping, "--report", "json=report.json", *flags)

    def judge_spans(self, spans: Sequence[Span], *assertions: dict[str, Any], **more: Any) -> Judged:
        """Judge one recording of one request."""
        self.record("run", spans)
        return self.judge(*assertions, **more)

    def case(self, case_id: str, command: str | list[str], assertions: Sequence[dict[str, Any]], **more: Any) -> None:
        """Write a case with a live agent; `runner` adds settings of the runner."""
        runner = {"type": "command", "command": command} | more.pop("runner", {})
        case = {"schema_version": 1, "case_id": case_id, "title": case_id, "runner": runner}
        case |= {"input": {"messages": [{"role": "user", "content": "go"}]}, "assertions": list(assertions)} | more
        self.write(f"configs/cases/{case_id}/test.yaml", yaml.safe_dump(case, sort_keys=False))

    def suite(self, *flags: str | Path, env: dict[str, str] | None = None, **more: Any) -> Judged:
        """Run every case that was written."""
        suite = {"schema_version": 1, "suite_id": "s", "title": "S"} | more
        self.write("configs/suites/s.yaml", yaml.safe_dump(suite))
        return self.program("eval", "--suite", "s", "--report", "json=report.json", *flags, **(env or {}))

    def live(self, command: str | list[str], *assertions: dict[str, Any], **more: Any) -> Judged:
        """Run one case with a live agent."""
        self.case("one", command, assertions, **more)
        return self.suite()


def sdk_agent(how: str, *tools: str) -> list[str]:
    """The command of an agent with OpenTelemetry's own SDK and exporter, which calls `tools`."""
    return [sys.executable, str(SDK_AGENT), how, *tools]


def post_agent(recording: Path, times: int = 1, says: str = "done") -> list[str]:
    """The command of an agent that exports a recording, each request `times` times, and prints `says`."""
    return [sys.executable, str(Path(__file__).with_name("post_agent.py")), str(recording), str(times), says]
