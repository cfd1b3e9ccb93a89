"""Formats for other tools: red exactly when the exit code is, each word of a trace only text, the same from stored results."""

from __future__ import annotations

import csv
import html
import io
import json
import re
from pathlib import Path
from typing import Any

import duckdb
import pytest
import yaml
from made_results import not_run
from sarif_pydantic import Sarif

from clawtrace.errors import ExitCode
from clawtrace.model.verdict import Evidence
from clawtrace.report._failures import not_passed
from clawtrace.report.base import AssertionLines, CampaignReport, CaseLabels, formats
from clawtrace.report.markdown import escaped, sentence
from clawtrace.report.results import Suite
from clawtrace.report.stored_report import report_of
from clawtrace.verdicts.gating.gate import Gate
from clawtrace.verdicts.gating.thresholds import ThresholdRules, suite_rates

HOSTILE = "<script>alert(1)</script> [x](http://evil.example) @team #12 | `a` ::error::x\n::set-output name=a::b =1+1 \x1b[31m"


def written(word: str, report: CampaignReport) -> str:
    return as_bytes(word, report).decode(errors="surrogateescape")


def as_bytes(word: str, report: CampaignReport) -> bytes:
    stream = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="\n")
    formats()[word]().write(report, stream)
    stream.flush()
    return stream.buffer.getvalue()  # type: ignore[attr-defined] # BytesIO


@pytest.fixture
def located(mixed: CampaignReport) -> CampaignReport:
    """A campaign whose assertions are known to stand in a file."""
    lines = {"weather": AssertionLines(Path("cases/weather/test.yaml"), {"order": 7})}
    return mixed._replace(assertion_lines=lines)


@pytest.fixture
def full(mixed: CampaignReport) -> CampaignReport:
    """A campaign with all that a report may have."""
    rules = ThresholdRules(0.9, {}, 0.05)
    return mixed._replace(
        gate=Gate(allow_missing_trace=True),
        left_out=[not_run("r9", "late", "gpt-4o", 1, "The budget was spent.", quarantined=True)],
        labels={"weather": CaseLabels("Weather", "Looks it up.", ["a"], {"k": 1}, "agent", {"rubric": "r"}, None)},
        assertion_lines={"weather": AssertionLines(Path("cases/weather/test.yaml"), {"order": 7})},
        suite=Suite(
            title="Smoke", metadata={}, models={"gpt-4o": "GPT"}, agents={}, run_profile="Once", evaluation_profile=None
        ),
        thresholds=suite_rates(mixed.results, ["gpt-4o"], rules, Gate()),
    )


@pytest.mark.parametrize("word", sorted(set(formats()) - {"html"}))
def test_stored_results_give_the_same_report(word: str, full: CampaignReport, tmp_path: Path) -> None:
    """What was written as JSON is, in each other format, what a report without that detour is."""
    file = tmp_path / "results.json"
    at_home = full._replace(folder=tmp_path)
    file.write_text(written("json", at_home), encoding="utf-8")
    again = report_of(json.loads(file.read_text("utf-8")), tmp_path)

    assert written(word, again) == written(word, at_home)


@pytest.mark.parametrize("change", ["", "none", "left out", "unasked", "threshold", "lenient"])
def test_something_is_red_exactly_when_the_exit_code_is(change: str, mixed: CampaignReport, run, verdict) -> None:
    """A tool that reads one of these formats agrees with the shell."""
    passed = run(verdict())
    rules = ThresholdRules(1.0)
    failed = run(verdict("fail", severity="warn"), run(verdict("fail")).verdicts[0])
    report = {
        "": lambda: mixed,
        "none": lambda: CampaignReport.gated("s", mixed.started_at, [], Gate())._replace(exit_code=ExitCode.UNDECIDED),
        "left out": lambda: CampaignReport.gated(
            "s", mixed.started_at, [passed], Gate(), left_out=[not_run("r", "c", None, 1, "No time.")]
        ),
        "unasked": lambda: CampaignReport.gated("s", mixed.started_at, [run()], Gate()),
        "threshold": lambda: CampaignReport.gated(
            "s", mixed.started_at, [failed], Gate(), thresholds=suite_rates([failed], [None], rules, Gate())
        ),
        "lenient": lambda: CampaignReport.gated("s", mixed.started_at, [run(verdict("warn"))], Gate()),
    }[change]()
    red = report.exit_code is not ExitCode.PASSED

    assert red is (change != "lenient")
    assert any(one.level is not ExitCode.PASSED for one in not_passed(report)) is red
    assert ("::error " in written("github", report)) is red
    assert ("not ok " in written("tap", report)) is red


def test_annotations_stand_at_the_line_of_the_assertion(located: CampaignReport) -> None:
    lines = written("github", located).splitlines()

    assert lines[0] == (
        "::error file=cases/weather/test.yaml,line=7,title=weather [gpt-4o] #2%3A order::"
        "fail: Expected get_weather before search, but the tools ran as search, get_weather."
    )
    assert [line.partition("title=")[2].partition("::")[0] for line in lines[1:]] == [
        "empty [gpt-4o]%3A budget",
        "a-case-with-a-rather-long-identifier [gpt-4o]%3A tool_not_invoked",
        "broken [gpt-4o]%3A error",
        "unasked [gpt-4o]%3A no assertions",
        "a-case-with-a-rather-long-identifier [gpt-4o]%3A slow",
    ]
    assert lines[-1].startswith("::notice ")


def test_a_text_of_a_trace_is_no_workflow_command(run, verdict) -> None:
    report = CampaignReport.gated("s", _started(), [run(verdict("fail", message=HOSTILE), case_id="a::b,c\nd")], Gate())

    (line,) = written("github", report).splitlines()
    assert line.startswith("::error title=a%3A%3Ab%2Cc%0Ad%3A order::fail: ")
    assert "%0A::set-output" in line


def test_sarif_is_valid_and_located(located: CampaignReport) -> None:
    text = written("sarif", located)
    found = Sarif.model_validate_json(text)

    assert found.version == "2.1.0"
    (one,) = json.loads(text)["runs"]
    first = one["results"][0]
    assert first["locations"][0]["physicalLocation"] == {
        "artifactLocation": {"uri": "cases/weather/test.yaml"},
        "region": {"startLine": 7},
    }
    assert {result["ruleId"] for result in one["results"]} == {rule["id"] for rule in one["tool"]["driver"]["rules"]}
    assert [(result["kind"], result["level"]) for result in one["results"]] == [
        ("fail", "error"),
        ("open", "none"),
        ("open", "none"),
        ("fail", "note"),
        ("fail", "error"),
        ("open", "none"),
    ]
    assert len({result["partialFingerprints"]["clawtrace/v1"] for result in one["results"]}) == 6


def test_tap_has_a_point_for_each_verdict_and_readable_diagnostics(located: CampaignReport) -> None:
    text = written("tap", located)
    points = re.findall(r"^(ok|not ok) (\d+) - (.*)$", text, re.MULTILINE)

    assert text.startswith("TAP version 14\n1..7\n")
    assert [int(number) for _, number, _ in points] == list(range(1, 8))
    assert points[-1][2] == "unasked [gpt-4o]: no assertions"
    assert ("ok", "5", "a-case-with-a-rather-long-identifier [gpt-4o]: slow # SKIP fail") in points
    blocks = [yaml.safe_load(block) for block in re.findall(r"^  ---\n(.*?)^  \.\.\.$", text, re.MULTILINE | re.DOTALL)]
    assert blocks[0]["at"] == {"file": "cases/weather/test.yaml", "line": 7}
    assert blocks[0]["actual"] == ["search", "get_weather"]


def test_csv_has_a_row_for_each_verdict(mixed: CampaignReport) -> None:
    rows = list(csv.DictReader(io.StringIO(written("csv", mixed))))

    assert [(row["case_id"], row["assertion_id"], row["status"]) for row in rows] == [
        ("weather", "order", "pass"),
        ("weather", "order", "fail"),
        ("empty", "budget", "skip"),
        ("a-case-with-a-rather-long-identifier", "tool_not_invoked", "inconclusive"),
        ("a-case-with-a-rather-long-identifier", "slow", "fail"),
        ("broken", "", "error"),
        ("unasked", "", ""),
    ]
    assert rows[0]["input_tokens"] == "1013"
    assert rows[3]["input_tokens"] == ""
    assert rows[1]["span_id"] == "c1"
    assert all(None not in row and None not in row.values() for row in rows)


def test_parquet_has_the_rows_of_csv_with_their_types(full: CampaignReport, tmp_path: Path) -> None:
    """What is unknown is NULL, and a column has its type also where all of it is unknown."""
    (tmp_path / "verdicts.parquet").write_bytes(as_bytes("parquet", full))
    with duckdb.connect() as engine:
        rows = engine.read_parquet(str(tmp_path / "verdicts.parquet"))
        types = dict(zip(rows.columns, map(str, rows.types), strict=True))
        found = [dict(zip(rows.columns, row, strict=True)) for row in rows.fetchall()]
    plain = [
        {name: "" if cell is None else {True: "true", False: "false"}.get(cell, str(cell)) if isinstance(cell, bool) else str(cell)
         for name, cell in row.items()}
        for row in found
    ]  # fmt: skip

    assert plain == list(csv.DictReader(io.StringIO(written("csv", full))))
    assert {name: kind for name, kind in types.items() if kind != "VARCHAR"} == {
        "repetition": "BIGINT", "complete": "BOOLEAN", "spans": "BIGINT", "llm_calls": "BIGINT", "tool_calls": "BIGINT",
        "input_tokens": "BIGINT", "output_tokens": "BIGINT", "cost_low": "DOUBLE", "cost_high": "DOUBLE", "duration_ms": "DOUBLE",
    }  # fmt: skip


@pytest.mark.parametrize("first", "=+-@")
def test_no_cell_is_a_formula(first: str, run, verdict) -> None:
    report = CampaignReport.gated("s", _started(), [run(verdict("fail", message=f"{first}1+1"))], Gate())

    (row,) = csv.DictReader(io.StringIO(written("csv", report)))
    assert row["message"] == f"'{first}1+1"


def test_markdown_adds_up_repetitions(run, verdict) -> None:
    """Spans, tokens and cost are those of all repetitions; what one of them leaves open is no number."""
    runs = [run(verdict(), repetition=number) for number in (1, 2)]
    broken = [*runs, run(verdict(), repetition=3, totals={}, spans=0)]
    rows = [written("markdown", CampaignReport.gated(None, _started(), some, Gate())) for some in (runs, broken)]

    assert "| 2/2 | 12 | 2,072 | $0.0042 | ⌀ 5.1 s |" in rows[0]
    assert "| 3/3 | 12 | ? | ? | ⌀ 5.1 s |" in rows[1]


def test_markdown_folds_equal_failures(run, verdict) -> None:
    runs = [run(verdict("fail", run_id=f"r{n}"), run_id=f"r{n}", case_id=f"case_{n}") for n in range(40)]
    text = written("markdown", CampaignReport.gated("smoke", _started(), runs, Gate()))

    assert text.startswith("### ❌ smoke: 0 of 40 runs passed\n")
    assert text.count("<details>") == 1
    assert "❌ 40 runs: <code>order</code> fail" in text
    assert "and 30 more" in text


def test_the_gravest_failures_come_first_and_figures_do_not_part_them(run, verdict) -> None:
    runs = [
        run(verdict("inconclusive", id="open", message="Nothing is known."), case_id="a"),
        *(run(verdict("fail", id="slow", message=f"Took {n} s."), case_id="b", repetition=n) for n in (1, 2)),
    ]
    text = written("markdown", CampaignReport.gated("smoke", _started(), runs, Gate()))

    assert re.findall(r"<summary>(.*)</summary>", text) == [
        "❌ 2 runs: <code>slow</code> fail: for example: Took 1 s&#46;",
        "⚠️ a: <code>open</code> inconclusive: Nothing is known&#46;",
    ]


def test_a_comment_stays_within_its_length(run, verdict) -> None:
    """It says that it left entries out, and breaks none of them in two."""
    failed = [verdict("fail", id=f"a{number}", message=f"{number} " + "*" * 2_000) for number in range(30)]
    report = CampaignReport.gated("smoke", _started(), [run(*failed)], Gate())
    text = written("comment", report._replace(page_url="https://pages.example/report (1).html"))

    assert text.startswith("### ❌ [smoke: 0 of 1 run passed](https://pages.example/report%20%281%29.html)\n")
    assert 50_000 < len(text) < 65_000
    assert 15 < text.count("<details>") == text.count("</details>") < 30
    assert "- [Run](https://pages.example/report%20%281%29.html#/run/" in text
    assert text.endswith("\nThere is no room for more: see the page and the other reports.\n")


def test_markdown_shows_texts_of_traces_as_text(run, verdict) -> None:
    evidence = (Evidence("t", "s", HOSTILE, HOSTILE),)
    hostile = verdict("fail", message=HOSTILE, expected=HOSTILE, hint=HOSTILE, evidence=evidence)
    report = CampaignReport.gated(HOSTILE, _started(), [run(hostile, case_id=HOSTILE)], Gate())
    text = written("markdown", report) + written("comment", report)

    tags = {tag.split()[0] for tag in re.findall(r"<(/?[a-z!][^>]*)>", text)}
    assert tags == {"details", "/details", "summary", "/summary", "code", "/code", "!--"}
    bare = re.sub(r"<!-- -->|&#\d+;", "", text)
    assert not re.search(r"\]\(|@team|#12|://|\x1b", bare)
    assert len({row.count(" | ") for row in text.splitlines() if row.startswith("| ")}) == 1


def test_what_is_escaped_reads_as_it_was() -> None:
    assert html.unescape(escaped(HOSTILE).replace("<!-- -->", "")) == " ".join(HOSTILE.split()).replace("\x1b", "\\x1b")
    assert sentence("The `tool` was *not* called.") == "The <code>tool</code> was &#42;not&#42; called&#46;"


def _started() -> Any:
    from datetime import UTC, datetime

    return datetime(2026, 11, 20, tzinfo=UTC)
