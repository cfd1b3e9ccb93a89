"""`clawtrace report` and `clawtrace view`: stored results in other formats, without a new run."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

SPANS = '<script type="text/plain" data-run='
"""What begins the spans of a run in the page."""
CHECKS = """
assertions:
  - type: tool_was_called
    tool: get_weather
  - type: tool_not_invoked
    tool: get_weather
"""


@pytest.fixture
def results(invoke: Callable[..., Result], recordings: Path) -> Path:
    """Results of one recording, as JSON."""
    Path("checks.yaml").write_text(CHECKS, encoding="utf-8")
    recording = recordings / "pydantic-ai" / "one_tool"
    outcome = invoke("eval", "--traces", recording, "--assertions", "checks.yaml", "--report", "json=out/results.json")
    assert outcome.exit_code == 1, outcome.output
    return Path("out/results.json")


def test_annotations_name_the_lines_of_the_assertions(invoke: Callable[..., Result], results: Path) -> None:
    """The file is named from where the command runs, not from where the results are."""
    outcome = invoke("report", results, "--to", "github")

    assert outcome.exit_code == 0, outcome.output
    assert outcome.stdout.startswith("::error file=checks.yaml,line=5,title=")


def test_it_prints_what_eval_printed(invoke: Callable[..., Result], results: Path) -> None:
    outcome = invoke("report", results)

    assert outcome.exit_code == 0, outcome.output
    assert "`get_weather` was attempted 1 time (1 ok); it must not be." in outcome.stdout
    assert "exit 1: something failed" in outcome.stdout


def test_several_formats_at_once_and_the_page_with_its_spans(invoke: Callable[..., Result], results: Path) -> None:
    outcome = invoke("report", results, "--to", "html=page.html", "--to", "csv=verdicts.csv", "--to", "json=again.json")

    assert outcome.exit_code == 0, outcome.output
    assert SPANS in Path("page.html").read_text("utf-8")
    assert len(Path("verdicts.csv").read_text("utf-8").splitlines()) == 3
    again, first = (json.loads(path.read_text("utf-8")) for path in (Path("again.json"), results))
    assert [run["assertions"][0]["file"] for case in again["cases"] for run in case["runs"]] == ["checks.yaml"]
    assert again["totals"] == first["totals"]


def test_a_page_without_its_recording_has_no_spans_and_says_so(invoke: Callable[..., Result], results: Path) -> None:
    stored = json.loads(results.read_text("utf-8"))
    stored["source"]["traces"] = ["gone"]
    results.write_text(json.dumps(stored), encoding="utf-8")
    outcome = invoke("view", results, "--no-open")

    assert outcome.exit_code == 0, outcome.output
    assert "note: the page has no spans: the recording" in outcome.stderr
    assert SPANS not in Path(outcome.stdout.strip()).read_text("utf-8")


def test_the_page_next_to_the_results_is_opened(
    invoke: Callable[..., Result], results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", lambda address: not opened.append(address))
    results.rename("out/report.json")
    Path("out/report.html").write_text("<p>", encoding="utf-8")
    outcome = invoke("view", "out")

    assert outcome.exit_code == 0, outcome.output
    assert opened == [(Path.cwd() / "out" / "report.html").resolve().as_uri()]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("report",), "There are no results in"),
        (("report", "nowhere"), "There is no campaign 'nowhere'."),
        (("report", "checks.yaml"), "is not `clawtrace.results/1`"),
        (("report", "old.json"), "was written by an older version of clawtrace"),
        (("report", "old.json", "--to", "pdf"), "there is no report format 'pdf'; there are: comment, csv, github"),
        (("report", "old.json", "--compare", "main"), "--compare is shown by `--to html=FILE` and `--to comment=FILE`"),
        (("report", "old.json", "--page-url", "x", "--to", "html"), "--page-url is shown by `--to comment=FILE`"),
    ],
)
def test_mistakes(invoke: Callable[..., Result], arguments: tuple[str, ...], said: str) -> None:
    Path("checks.yaml").write_text(CHECKS, encoding="utf-8")
    Path("old.json").write_text('{"schema": "clawtrace.results/1"}', encoding="utf-8")
    outcome = invoke(*arguments)

    assert outcome.exit_code == 2
    assert said in outcome.output


def test_the_campaigns_are_listed(invoke: Callable[..., Result], results: Path) -> None:
    """The newest first; one of an older version says so, and hides no other."""
    folder = Path("outputs/campaigns/smoke")
    for name, text, age in (("old", "{}", 1), ("new", results.read_text(), 2)):
        (folder / name).mkdir(parents=True)
        (folder / name / "report.json").write_text(text)
        os.utime(folder / name / "report.json", (age, age))
    outcome = invoke("report", "--list")
    rows = [line.split(maxsplit=1) for line in outcome.stdout.splitlines()]

    assert outcome.exit_code == 0, outcome.output
    assert [row[0] for row in rows] == ["campaign", "smoke/new", "smoke/old"]
    assert rows[1][1].endswith("something failed")
    assert "is not `clawtrace.results/1`" in rows[2][1]
    assert invoke("report", "smoke/new", "--list").exit_code == 2
