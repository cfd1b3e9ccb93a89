"""The bundled suite, run as a user runs it: real agent processes, real exporters, the whole program."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from clawtrace.testing import load_script

pytestmark = pytest.mark.full

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent


@dataclass
class Evaluated:
    """What one call of `clawtrace eval` left behind."""

    code: int
    stdout: str
    stderr: str
    results: dict[str, Any]
    junit: Path

    def run(self, case: str) -> dict[str, Any]:
        """The only run of `case`."""
        (run,) = next(found for found in self.results["cases"] if found["case_id"] == case)["runs"]
        return run

    def verdict(self, case: str, type_: str) -> dict[str, Any]:
        """The first verdict of that type."""
        return next(found for found in self.run(case)["assertions"] if found["type"] == type_)

    def evidence(self, case: str, type_: str) -> list[str]:
        """The names of the spans that decided the first verdict of that type."""
        return [found["name"] for found in self.verdict(case, type_)["evidence"]]


def evaluate(tmp_path: Path, *arguments: str, fault: str = "") -> Evaluated:
    """Run `clawtrace eval` in the checkout, with its results in `tmp_path`."""
    results, junit = tmp_path / "results.json", tmp_path / "results.xml"
    environment = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
    environment |= {"PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}", "CLAWTRACE_DEMO_FAULT": fault}
    command = [str(BIN / "clawtrace"), "eval", *arguments, "--report", f"json={results}", "--report", f"junit={junit}"]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=180)
    assert results.is_file(), done.stderr
    return Evaluated(done.returncode, done.stdout, done.stderr, json.loads(results.read_text()), junit)


def quickstart(tmp_path: Path, fault: str = "") -> Evaluated:
    """Run the bundled suite."""
    return evaluate(tmp_path, "--suite", "quickstart", "--out", str(tmp_path / "out"), fault=fault)


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Evaluated:
    """The suite without a fault, run once for the tests that look at it."""
    return quickstart(tmp_path_factory.mktemp("healthy"))


@pytest.mark.smoke
def test_everything_passes(healthy: Evaluated):
    """Both agents pass every assertion, on complete traces, with exit code 0."""
    assert healthy.code == 0, healthy.stdout + healthy.stderr
    for case in ("refund", "research"):
        run = healthy.run(case)
        assert (run["status"], run["run_status"], run["trace"]["complete"]) == ("pass", "success", True)
        assert {verdict["status"] for verdict in run["assertions"]} == {"pass"}
    assert (healthy.results["totals"]["runs"], healthy.results["totals"]["passed"]) == (2, 2)


@pytest.mark.smoke
def test_the_traces_are_those_of_the_scripts(healthy: Evaluated):
    """Spans that were exported over gRPC and over HTTP all arrived: calls and tools are the script's, once each."""
    assert healthy.run("refund")["trace"]["spans"] == 1 + 3 + 2
    assert healthy.run("research")["trace"]["spans"] == 2 + 4 + 2
    assert healthy.verdict("refund", "llm_call_count")["actual"] == 3
    assert healthy.verdict("research", "llm_call_count")["actual"] == 4
    assert healthy.evidence("refund", "tool_sequence") == ["execute_tool lookup_order", "execute_tool refund_order"]
    assert healthy.evidence("research", "tool_sequence") == ["execute_tool ask_researcher", "execute_tool search_notes"]


@pytest.mark.smoke
def test_tokens_and_cost_are_those_of_the_scripts(healthy: Evaluated):
    """Sums of tokens are the scripts'; the cost is model_pricing's for one agent, the recorded one for the other."""
    for case in ("refund", "research"):
        script = load_script(ROOT / "configs" / "cases" / case / "script.yaml")
        totals = healthy.run(case)["totals"]
        assert totals["input_tokens"] == sum(step.usage.input for step in script.steps)
        assert totals["output_tokens"] == sum(step.usage.output for step in script.steps)
        assert totals["cache_read_tokens"] == sum(step.usage.cached for step in script.steps)
    refund = [(612, 0, 18), (655, 512, 24), (701, 512, 21)]
    expected = sum((given - cached) * 2.00 + cached * 0.50 + out * 8.00 for given, cached, out in refund) / 1e6
    assert healthy.run("refund")["totals"]["cost_low"] == pytest.approx(expected)
    assert healthy.run("refund")["totals"]["cost_high"] == pytest.approx(expected)
    assert healthy.run("research")["totals"]["priced_calls"] == 4


def test_the_junit_report_counts_the_same(healthy: Evaluated):
    """The JUnit report holds one test for each verdict, and no failure."""
    root = ET.parse(healthy.junit).getroot()
    verdicts = sum(len(healthy.run(case)["assertions"]) for case in ("refund", "research"))

    assert len(list(root.iter("testcase"))) == verdicts
    assert list(root.iter("failure")) == []


def test_a_service_receives_and_the_verdicts_are_the_same(healthy: Evaluated, tmp_path: Path):
    """`--server`: a running `clawtrace serve` takes the place of the command's own receiver."""
    ready, ports = tmp_path / "ready.json", ("--grpc-port", "0", "--http-port", "0")
    command = [
        str(BIN / "clawtrace"),
        "serve",
        *ports,
        "--ready-file",
        str(ready),
        "--store",
        str(tmp_path / "s.duckdb"),
    ]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as service:
        assert service.stderr is not None
        service.stderr.readline()
        out = str(tmp_path / "out")
        joined = evaluate(tmp_path, "--suite", "quickstart", "--server", str(ready), "--no-reuse", "--out", out)
        service.terminate()

    assert joined.code == healthy.code, joined.stderr
    for case in ("refund", "research"):
        ours, theirs = joined.run(case), healthy.run(case)
        assert [(one["id"], one["status"], one["final"]) for one in ours["assertions"]] == [
            (one["id"], one["status"], one["final"]) for one in theirs["assertions"]
        ]
        assert (ours["status"], ours["trace"]["spans"]) == (theirs["status"], theirs["trace"]["spans"])


def test_a_wrong_tool_fails_the_run_although_the_answer_sounds_right(tmp_path: Path):
    """FAULT=wrong_tool: exit 1; the verdict names the forbidden tool's span, and the other agent still passes."""
    evaluated = quickstart(tmp_path, fault="wrong_tool")
    verdict = evaluated.verdict("refund", "tool_not_invoked")

    assert evaluated.code == 1
    assert (verdict["status"], evaluated.run("research")["status"]) == ("fail", "pass")
    assert "close_account" in verdict["evidence"][0]["name"]
    assert evaluated.verdict("refund", "tool_sequence")["status"] == "fail"
    assert "close_account" in evaluated.stdout


def test_a_missing_delegation_fails_the_run(tmp_path: Path):
    """FAULT=no_delegation: exit 1, because the editor never asked the researcher."""
    evaluated = quickstart(tmp_path, fault="no_delegation")

    assert evaluated.code == 1
    assert evaluated.verdict("research", "delegation_path")["status"] == "fail"
    assert evaluated.run("refund")["status"] == "pass"


def test_lost_spans_are_inconclusive_and_never_green(tmp_path: Path):
    """FAULT=lost_spans: exit 3; nothing that the lost spans could decide is called passed."""
    evaluated = quickstart(tmp_path, fault="lost_spans")
    run = evaluated.run("refund")

    assert evaluated.code == 3
    assert (run["status"], run["trace"]["complete"]) == ("inconclusive", False)
    assert evaluated.verdict("refund", "tool_not_invoked")["status"] == "inconclusive"
    assert evaluated.verdict("refund", "tool_sequence")["status"] == "inconclusive"
    assert evaluated.run("research")["status"] == "pass"


@pytest.mark.parametrize("client", ["pydantic-ai", "openai-agents+openinference"])
def test_the_example_assertions_hold_of_recorded_delegations(tmp_path: Path, recordings: Path, client: str):
    """configs/assertions/delegation.yaml passes on recordings of two frameworks and two instrumentations."""
    path = recordings / client / "delegation"
    evaluated = evaluate(
        tmp_path, "--traces", str(path), "--run-per-dir", "--assertions", "configs/assertions/delegation.yaml"
    )

    assert evaluated.code == 0, evaluated.stdout + evaluated.stderr
    assert evaluated.results["totals"]["passed"] == 1


def test_the_example_assertions_fail_a_run_without_a_delegation(tmp_path: Path, recordings: Path):
    """The same file fails on a recording in which no agent delegated: exit 1."""
    path = recordings / "pydantic-ai" / "one_tool"
    evaluated = evaluate(
        tmp_path, "--traces", str(path), "--run-per-dir", "--assertions", "configs/assertions/delegation.yaml"
    )

    assert evaluated.code == 1
    (case,) = evaluated.results["cases"]
    statuses = {verdict["type"]: verdict["status"] for verdict in case["runs"][0]["assertions"]}
    assert (statuses["delegation_path"], statuses["tool_call"]) == ("fail", "pass")
