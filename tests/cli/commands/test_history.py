"""The history of campaigns: a story of ten, with a planted regression, a flaky case and an edited assertion."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from jsonschema_rs import validator_for

from clawtrace.cli.commands.schema import schemas

pytestmark = pytest.mark.full

AGENT = Path(__file__).parents[1] / "agent.py"
MAIN = f"""\
import runpy, sys
from pathlib import Path

here = Path(__file__).parent
obeys = "search first" in (here / "prompt.txt").read_text() or sys.argv[1] != "a"
is_lucky = "good" in (here.parent / "weather.txt").read_text() or sys.argv[1] != "c"
sys.argv = ["agent", "search" if obeys and is_lucky else "guess"]
runpy.run_path({str(AGENT)!r}, run_name="__main__")
"""
CASE = """\
schema_version: 1
case_id: {case_id}
title: {case_id}
runner:
  type: command
  command: ["{python}", "{{{{case_dir}}}}/../../../agents/main.py", {case_id}]
  inputs: [../../../agents]
input: {{messages: [{{role: user, content: "{message}"}}]}}
assertions:
  - {{type: tool_was_called, tool: {tool}}}
"""

IN_PROCESS = True


class Project:
    """Cases with one agent: `a` obeys its prompt, `b` always searches, `c` depends on the weather, which no input declares."""

    def __init__(self, root: Path, program: Callable[..., subprocess.CompletedProcess[str]]) -> None:
        self.root, self.clawtrace = root, program
        self.write("clawtrace.yaml", "schema_version: 1\n")
        self.write("configs/suites/s.yaml", "schema_version: 1\nsuite_id: s\ntitle: S\n")
        self.write("agents/main.py", MAIN)
        self.write("agents/prompt.txt", "always search first")
        self.write("weather.txt", "good")
        for case_id in "abc":
            self.case(case_id)

    def write(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def case(self, case_id: str, *, message: str = "go", tool: str = "search") -> None:
        text = CASE.format(case_id=case_id, python=sys.executable, message=message, tool=tool)
        self.write(f"configs/cases/{case_id}/test.yaml", text)

    def eval(self, *flags: str) -> subprocess.CompletedProcess[str]:
        return self.clawtrace("eval", "--suite", "s", *flags)

    def report(self) -> dict[str, Any]:
        """Return the cases of the newest results, by id."""
        (file,) = (self.root / "outputs/campaigns").glob("*/*/report.json")
        return {case["case_id"]: case for case in json.loads(file.read_text())["cases"]}

    def history(self, *words: str) -> dict[str, Any]:
        """Return the cases of the only suite's history, by id."""
        found = json.loads(self.clawtrace("history", *words, "--json").stdout)
        validator_for(schemas()["history.schema.json"]).validate(found)
        (suite,) = found["suites"]
        return {case["case_id"]: case for case in suite["cases"]}


@pytest.fixture
def project(tmp_path: Path, program: Callable[..., subprocess.CompletedProcess[str]]) -> Project:
    return Project(tmp_path, program)


def test_ten_campaigns_with_a_planted_regression(project: Project) -> None:
    """The history says when it broke and which file was edited then; luck is flaky, an edited assertion is not."""
    fresh = ["--no-reuse"]
    steps: list[tuple[Callable[[], None], list[str], int]] = [
        (lambda: None, fresh, 0),
        (lambda: None, [], 0),
        (lambda: project.write("agents/main.py", MAIN + "# quicker\n"), fresh, 0),
        (lambda: project.write("weather.txt", "bad"), fresh, 1),
        (lambda: project.write("weather.txt", "good"), fresh, 0),
        (lambda: project.case("b", tool="unknown"), fresh, 1),
        (lambda: project.case("b"), [], 0),
        (lambda: project.write("agents/prompt.txt", "be brief"), fresh, 1),
        (lambda: project.write("agents/main.py", MAIN + "# quicker still\n"), fresh, 1),
        (lambda: project.case("b", message="please go"), [], 1),
    ]
    for number, (edit, flags, code) in enumerate(steps, 1):
        edit()
        last = project.eval(*flags)
        assert last.returncode == code, (number, last.stdout, last.stderr)

    found = project.history()
    starts = [one["started_at"] for one in found["a"]["campaigns"]]
    assert {case: "".join(str(one["exit_code"]) for one in of["campaigns"]) for case, of in found.items()} == {
        "a": "0000000111",
        "b": "0000010000",
        "c": "0001000000",
    }
    assert len(starts) == len(set(starts)) == 10

    broke, green = found["a"]["broke"], found["a"]["last_green"]
    assert (broke["started_at"], green["started_at"]) == (starts[7], starts[6])
    assert green["edited"] == broke["edited"] == ["the files of `inputs` (`../../../agents/prompt.txt`)"]
    assert (found["b"]["broke"], found["b"]["flaky"]) == (None, None)
    assert found["b"]["campaigns"][5]["edited"] == ["the assertions"]
    assert found["c"]["campaigns"][3]["edited"] == []
    assert found["c"]["flaky"] | {"at_least": 0} == {"otherwise": 1, "runs": 4, "at_least": 0}
    assert [one["reused"] for one in found["c"]["campaigns"]] == [0, 1, 0, 0, 0, 0, 1, 0, 0, 1]

    since = "the files of `inputs` (`../../../agents/main.py`, `../../../agents/prompt.txt`)"
    assert f"LAST GREEN  a: {starts[6][:16].replace('T', ' ')} UTC, s/default-" in last.stdout
    assert f"Edited since: {since}." in last.stdout
    assert project.report()["a"]["last_green"]["edited"] == [since]
    assert project.report()["b"]["last_green"] is None
    assert f"Edited since: {since}." in project.clawtrace("report").stdout

    shown = project.clawtrace("history").stdout
    assert "a     ✓✓✓✓✓✓✓✗✗✗ " in shown
    assert f"✗ a: not green for 3 campaigns; failed first {starts[7][:16].replace('T', ' ')} UTC. Last green: " in shown
    assert "Edited since: the files of `inputs` (`../../../agents/prompt.txt`)." in shown
    assert "flaky 1. c: 1 of 4 runs with the same inputs came out otherwise." in shown
    assert "flaky 2" not in shown
    of_b = project.clawtrace("history", "s", "-k", "b").stdout
    assert len([line for line in of_b.splitlines() if line.endswith("the assertions")]) == 1


def test_a_history_that_cannot_be_kept_changes_no_verdict(project: Project) -> None:
    """Neither a line that a crash cut nor a file that cannot be written; the latter is said."""
    assert "There is no history in" in project.clawtrace("history").stderr
    project.eval("-k", "b")
    (file,) = (project.root / "outputs").glob("campaigns/*/*/history.jsonl")
    file.write_text(file.read_text() + '{"schema":"clawtrace.history-line/1","cas')
    assert project.eval("-k", "b").returncode == 0
    assert len(project.history()["b"]["campaigns"]) == 2
    assert "The history has no case 'bb'. " in project.clawtrace("history", "-k", "bb").stderr

    file.unlink()
    file.mkdir()
    done = project.eval("-k", "b")
    assert done.returncode == 0
    assert "warning: the campaign is not in its history" in done.stderr


def test_an_edited_file_is_named_once(project: Project) -> None:
    """The working folder and the project hold the same file, whose paths are written from two folders."""
    project.case("a")
    case = project.root / "configs/cases/a/test.yaml"
    case.write_text(case.read_text().replace("inputs: [../../../agents]", 'cwd: "{{case_dir}}/../../.."'))
    assert project.eval("-k", "a").returncode == 0
    project.write("agents/prompt.txt", "be brief")
    broken = project.eval("-k", "a")

    assert broken.returncode == 1
    assert "Edited since: files of the project (`agents/prompt.txt`)." in broken.stdout
