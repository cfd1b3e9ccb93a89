"""Reports that cannot be written take nothing from those that can, nor from what is printed."""

from __future__ import annotations

import json

import pytest

pytestmark = pytest.mark.full


@pytest.fixture
def asked(recordings, tmp_path):
    """A recording, and what is asked of it."""
    (tmp_path / "checks.yaml").write_text("assertions: [{type: tool_was_called, tool: rm}]")
    return ("eval", "--traces", recordings / "pydantic-ai/one_tool/traces.otlp.jsonl", "--assertions", "checks.yaml")


@pytest.mark.smoke
def test_one_that_fails_hides_no_result(program, asked, tmp_path):
    """The verdict is printed, the other report is there, and the exit code says that something broke."""
    (tmp_path / "nowhere").symlink_to(tmp_path / "gone")
    ended = program(*asked, "--report", "junit=nowhere/results.xml", "--report", "json=results.json")

    assert ended.returncode == 4
    assert "The report 'nowhere/results.xml' cannot be written: File exists." in ended.stderr
    assert "FAIL" in ended.stdout
    assert "exit 4: an error" in ended.stdout
    assert json.loads((tmp_path / "results.json").read_text())["exit_code"] == 1


@pytest.mark.parametrize(
    ("reports", "said"),
    [
        (["json=a.out", "junit=./a.out"], "two reports cannot be one file: 'a.out'"),
        (["json=-", "junit=-"], "two reports cannot be one file: '-'"),
        (["json=checks.yaml/a.json"], "is not a writable folder"),
        (["json=."], "is a folder; name a file in it"),
    ],
)
def test_what_cannot_be_written_is_reported_before_anything_runs(program, asked, tmp_path, reports, said):
    """An agent may cost more than a look at the flags."""
    ended = program(*asked, *(word for report in reports for word in ("--report", report)))

    assert ended.returncode == 2
    assert said in ended.stderr
    assert ended.stdout == ""
    assert not (tmp_path / "a.out").exists()
