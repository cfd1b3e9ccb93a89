"""A campaign that is ended at any instant resumes to the report of one that was not disturbed (spec: config.md §5)."""

from __future__ import annotations

import difflib
import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.cli.conftest import PROGRAM, clean_environment

pytestmark = pytest.mark.full

AGENT = Path(__file__).parents[1] / "agent.py"
CASES = {"a": "search", "b": "search read", "c": "search exit=1"}
OF_ONE_CAMPAIGN = {
    "run_id", "started_at", "ended_at", "duration_ms", "trace_id", "span_id", "parent_span_id", "reused", "sql", "spans_table",
}  # fmt: skip
"""Keys of a report that differ between two campaigns whatever happens to them."""


def written(root: Path) -> Path:
    """Write three cases of two repetitions, side by side; one of them fails."""
    for case_id, words in CASES.items():
        file = root / f"configs/cases/{case_id}/test.yaml"
        file.parent.mkdir(parents=True)
        file.write_text(
            f"schema_version: 1\ncase_id: {case_id}\ntitle: {case_id}\n"
            f"runner: {{type: command, command: '{sys.executable} {AGENT} {words}'}}\n"
            "input: {messages: [{role: user, content: go}]}\n"
            "assertions: [{type: tool_was_called, tool: search}, {type: agent_exit_code, value: 0}]\n"
        )
    for name, text in {
        "suites/s.yaml": "suite_id: s\ntitle: S\n",
        "run_profiles/p.yaml": "run_profile_id: p\ntitle: P\n"
        "execution_policy: {max_concurrency: 2, run_repetitions: 2}\n",
    }.items():
        file = root / "configs" / name
        file.parent.mkdir(parents=True)
        file.write_text("schema_version: 1\n" + text)
    (root / "clawtrace.yaml").write_text("schema_version: 1\n")
    return root


def started(root: Path) -> subprocess.Popen[bytes]:
    """Start the campaign."""
    return subprocess.Popen(
        [str(PROGRAM), "eval", "--suite", "s", "--run-profile", "p"],
        cwd=root,
        env=clean_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )


def differences(expected, root: Path) -> list[str]:
    """Return the lines in which the campaign's report differs from an expected one."""
    return list(difflib.unified_diff(expected, reported(root), lineterm=""))


def reported(root: Path) -> list[str]:
    """Return the lines of the campaign's report without what belongs to one campaign only."""
    (file,) = (root / "outputs/campaigns/s").glob("p-*/report.json")
    report = json.loads(file.read_text())
    text = json.dumps(without(report), indent=1)
    for number, run in enumerate(run for case in report["cases"] for run in case["runs"]):
        text = text.replace(run["run_id"], f"run {number}")
    return text.splitlines()


def without(data):
    """Return JSON without the keys that differ between any two campaigns."""
    if isinstance(data, dict):
        kept = {key: value for key, value in data.items() if key not in OF_ONE_CAMPAIGN and not key.endswith("_ns")}
        return {key: without(value) for key, value in kept.items()}
    return [without(item) for item in data] if isinstance(data, list) else data


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """Return the report of a campaign that was left alone, and how many seconds it took."""
    root = written(tmp_path_factory.mktemp("undisturbed"))
    began = time.monotonic()
    process = started(root)
    output, _ = process.communicate(timeout=120)
    assert process.returncode == 1, output.decode()
    return reported(root), time.monotonic() - began


def resumes(tmp_path: Path, undisturbed, how: signal.Signals, seed: int) -> None:
    """End a campaign once or twice at instants of a seed, resume it, and compare the reports."""
    expected, took = undisturbed
    chance = random.Random(seed)
    root = written(tmp_path / f"{how.name}-{seed}")
    for _ in range(chance.choice([1, 1, 2])):
        process = started(root)
        try:
            process.communicate(timeout=chance.uniform(0, took * 1.1))
        except subprocess.TimeoutExpired:
            process.send_signal(how)
            output, _ = process.communicate(timeout=60)
            if how is signal.SIGINT and b"Traceback" in output:
                # Before the first line of clawtrace runs, Python shows what it was doing.
                assert b"clawtrace/cli" not in output, (seed, output.decode())
                assert b"click" not in output, (seed, output.decode())
    process = started(root)
    output, _ = process.communicate(timeout=120)

    assert process.returncode == 1, (seed, output.decode())
    assert differences(expected, root) == [], seed


class TestAtAnyInstant:
    """Each finished run is judged as if nothing had happened, and each other one is run."""

    @pytest.mark.parametrize("how", [signal.SIGKILL, pytest.param(signal.SIGINT, marks=pytest.mark.smoke)])
    def test_once(self, tmp_path, undisturbed, how):
        """In the middle: a run has ended, and agents are at work."""
        expected, _ = undisturbed
        root = written(tmp_path / "middle")
        process = started(root)
        while not any((root / "outputs").glob("campaigns/s/p-*/runs/*/*/*/run.json")):
            with pytest.raises(subprocess.TimeoutExpired):
                process.communicate(timeout=0.02)
        process.send_signal(how)
        process.communicate(timeout=60)
        assert process.returncode == (-signal.SIGKILL if how is signal.SIGKILL else 130)
        process = started(root)
        output, _ = process.communicate(timeout=120)

        assert process.returncode == 1, output.decode()
        assert differences(expected, root) == []

    @pytest.mark.full
    @pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
    @pytest.mark.parametrize("seed", range(15))
    def test_at_random_instants(self, tmp_path, undisturbed, how, seed):
        """From the start of the program to its end."""
        resumes(tmp_path, undisturbed, how, seed)


def test_ctrl_c_while_the_program_is_loaded_ends_it_without_a_traceback(tmp_path):
    """The signal comes in the middle of the first import."""
    (tmp_path / "click.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n", encoding="utf-8")
    ended = subprocess.run(
        [str(PROGRAM), "assertions"], env=clean_environment() | {"PYTHONPATH": str(tmp_path)}, capture_output=True
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (-signal.SIGINT, b"", b"")
