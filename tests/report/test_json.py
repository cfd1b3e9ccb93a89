"""`clawtrace.results/1`: the keys of cli.md, true totals, valid JSON whatever the verdicts hold."""

import io
import json
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from made_results import not_run
from pydantic import TypeAdapter

from clawtrace import __version__
from clawtrace.cli.commands.schema import schemas
from clawtrace.model.verdict import Evidence, Status
from clawtrace.report.base import CampaignReport
from clawtrace.report.json_report import JsonReport
from clawtrace.report.json_text import json_pieces, json_text
from clawtrace.report.results import Results
from clawtrace.verdicts.gating.gate import Gate
from clawtrace.verdicts.gating.thresholds import ThresholdRules, suite_rates

SPEC_KEYS = {
    "": {"schema", "clawtrace", "suite_id", "started_at", "exit_code", "totals", "cases"},
    "totals": {"runs", "passed", "failed", "warned", "skipped", "inconclusive", "errored"},
    "case": {"case_id", "model_id", "pass_rate", "interval", "stability", "runs"},
    "run": {"run_id", "repetition", "status", "reused", "run_status", "trace", "final_score", "assertions"},
    "trace": {"complete", "spans", "traces"},
    "assertion": {
        "id", "type", "status", "severity", "message", "expected", "actual", "evidence", "sql", "duration_ms",
    },
    "evidence": {"trace_id", "span_id", "name", "why"},
}  # fmt: skip


def written(report: CampaignReport) -> dict:
    stream = io.StringIO()
    JsonReport().write(report, stream)
    stream.getvalue().encode("utf-8")
    return json.loads(stream.getvalue(), parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))


def test_has_every_key_of_the_contract(mixed) -> None:
    """Each object carries at least the keys that cli.md shows."""
    data = written(mixed)
    run = data["cases"][0]["runs"][1]

    assert data["schema"] == "clawtrace.results/1"
    assert data["clawtrace"] == __version__
    assert set(data) >= SPEC_KEYS[""]
    assert set(data["totals"]) == SPEC_KEYS["totals"]
    assert set(data["cases"][0]) >= SPEC_KEYS["case"]
    assert set(run) >= SPEC_KEYS["run"]
    assert set(run["trace"]) >= SPEC_KEYS["trace"]
    assert set(run["assertions"][0]) >= SPEC_KEYS["assertion"]
    assert set(run["assertions"][0]["evidence"][0]) >= SPEC_KEYS["evidence"]


def test_totals_count_each_run_once(mixed) -> None:
    """Totals agree with the runs' statuses; a run of which nothing was asked is in `runs` alone."""
    data = written(mixed)

    assert data["totals"] == {
        "runs": 6, "passed": 1, "failed": 1, "warned": 0, "skipped": 1, "inconclusive": 1, "errored": 1,
    }  # fmt: skip
    assert data["exit_code"] == 4
    assert [run["status"] for case in data["cases"] for run in case["runs"]] == [
        "pass", "fail", "skip", "inconclusive", "error", None,
    ]  # fmt: skip


def test_pass_rate_is_passes_among_runs_that_ran_and_were_judged(verdict, run, campaign) -> None:
    """Broken and unasked runs are in no rate; undecided ones are in the denominator; no run at all has no rate."""
    data = written(
        campaign(
            run(verdict("pass")),
            run(verdict("pass"), repetition=2),
            run(verdict("inconclusive"), repetition=3),
            run(repetition=4, status=Status.ERROR, error="broke"),
            run(case_id="unasked"),
        )
    )

    assert [case["pass_rate"] for case in data["cases"]] == [pytest.approx(2 / 3), None]
    assert data["cases"][0]["interval"] == [pytest.approx(0.2077, abs=1e-4), 1.0]
    assert [(case["passed"], case["failed"], case["undecided"]) for case in data["cases"]] == [(2, 0, 1), (0, 0, 0)]
    assert [run["outcome"] for run in data["cases"][0]["runs"]] == ["passed", "passed", "undecided", None]
    assert data["cases"][1]["interval"] is None
    assert [case["stability"] for case in data["cases"]] == [None, None]
    assert [case["pass_at_k"] for case in data["cases"]] == [pytest.approx({"1": 2 / 3, "2": 1, "3": 1}), {}]


@pytest.mark.parametrize(
    ("verdicts", "outcome", "answer"),
    [
        ([{"status": "pass"}], "passed", "passed"),
        ([{"status": "fail"}], "failed", "failed"),
        ([{"status": "fail", "severity": "warn"}], "passed", "failed"),
        ([{"status": "warn", "missing_data": True}], "undecided", "undecided"),
        ([{"status": "warn", "missing_data": True, "severity": "warn"}], "passed", "undecided"),
        ([{"status": "skip"}], "undecided", "undecided"),
        ([{"status": "inconclusive"}], "undecided", "undecided"),
        ([{"status": "error"}], "undecided", "undecided"),
    ],
)
def test_what_counts_as_a_pass(verdicts, outcome, answer, verdict, run, campaign) -> None:
    """What keeps a run from exit code 0 keeps it from being a pass; an assertion's own rate knows no severity."""
    runs = [run(*(verdict(**fields) for fields in verdicts), repetition=number) for number in (1, 2)]
    (case,) = written(campaign(*runs))["cases"]

    assert [entry["outcome"] for entry in case["runs"]] == [outcome] * 2
    (assertion,) = case["assertions"]
    assert {word: assertion[word] for word in ("passed", "failed", "undecided")} == {
        "passed": 0, "failed": 0, "undecided": 0, answer: 2,
    }  # fmt: skip


def test_one_run_has_no_rates_of_assertions(verdict, run, campaign) -> None:
    """Over a single run there is nothing to say of an assertion that the run does not say itself."""
    (case,) = written(campaign(run(verdict())))["cases"]

    assert case["assertions"] == []
    assert case["stability"] is None
    assert case["interval"] == [pytest.approx(0.2065, abs=1e-4), 1.0]


def test_thresholds_are_written(verdict, run, campaign) -> None:
    """Each threshold has its rate, what was asked, and whether it was reached."""
    runs = [run(verdict(), model_id="big"), run(verdict("fail"), model_id="big", repetition=2)]
    rules = ThresholdRules(0.6, {}, 0.05, informational=True)
    rates = suite_rates(runs, ["big"], rules, Gate())
    (found,) = written(campaign(*runs, thresholds=rates))["thresholds"]

    assert found.pop("interval") == pytest.approx([0.0945, 0.9055], abs=1e-4)
    assert found == {
        "model_id": "big", "passed": 1, "failed": 1, "undecided": 0, "pass_rate": 0.5, "threshold": 0.6,
        "tolerance": 0.05, "gate_on": "rate", "reached": False, "behavior": "informational",
    }  # fmt: skip


def test_cases_are_grouped_by_case_and_model(verdict, run, campaign) -> None:
    """Repetitions of one case and model are one entry, another model is another entry, in order of appearance."""
    runs = [run(verdict(), case_id=c, model_id=m, repetition=r) for r in (1, 2) for c, m in (("a", "x"), ("a", "y"))]
    data = written(campaign(*runs))

    assert [(case["case_id"], case["model_id"], len(case["runs"])) for case in data["cases"]] == [
        ("a", "x", 2),
        ("a", "y", 2),
    ]


def test_unknown_stays_null(verdict, run, campaign) -> None:
    """Unknown facts are null, never 0 or an empty text."""
    result = run(verdict("skip", actual=None), complete=None, duration_ms=None, closed_by=None, run_status=None)
    entry = written(campaign(result))["cases"][0]["runs"][0]

    assert entry["trace"]["complete"] is None
    assert entry["trace"]["duration_ms"] is None
    assert entry["run_status"] is None
    assert entry["assertions"][0]["actual"] is None


def test_any_value_becomes_valid_json(verdict, run, campaign) -> None:
    """Numbers that are not finite, lone surrogates, control characters, sets and objects do not break the file."""
    actual = {
        "cost": math.inf,
        "low": -math.inf,
        "rate": math.nan,
        "text": "\ud800\x00é",
        3: {1},
        "at": datetime(2026, 1, 1),
    }
    evidence = (Evidence("t", "s", "name \udfff", "why \x1b[31m"),)
    data = written(campaign(run(verdict("fail", actual=actual, evidence=evidence))))
    entry = data["cases"][0]["runs"][0]["assertions"][0]

    assert entry["actual"] == {
        "cost": "Infinity", "low": "-Infinity", "rate": "NaN", "text": "\ud800\x00é", "3": [1], "at": "2026-01-01 00:00:00",
    }  # fmt: skip
    assert entry["evidence"][0]["name"] == "name \udfff"


def test_started_at_is_utc(verdict, run) -> None:
    """The start is written in UTC with a Z, whatever zone it was taken in."""
    started = datetime(2026, 11, 20, 12, 0, tzinfo=timezone(timedelta(hours=2)))
    data = written(CampaignReport(None, started, [run(verdict())], 0))

    assert data["started_at"] == "2026-11-20T10:00:00.000Z"
    assert data["suite_id"] is None


def test_validates_against_the_exported_schema(mixed) -> None:
    """What is written has the schema's required keys and no key that the schema does not know, at every level."""
    schema = schemas()["results.schema.json"]
    data = written(mixed)

    TypeAdapter(Results).validate_json(json.dumps(data), strict=True)
    assert schema["$schema"].endswith("2020-12/schema")
    _check(data, schema, schema["$defs"])


def _check(value: object, schema: dict, defs: dict) -> None:
    """Check `value` against the part of JSON Schema that the exported schema uses."""
    if "$ref" in schema:
        schema = defs[schema["$ref"].rsplit("/", 1)[1]]
    if "anyOf" in schema:
        schema = next(option for option in schema["anyOf"] if option.get("type") == _type(value, option))
    if "const" in schema:
        assert value == schema["const"]
    if "enum" in schema:
        assert value in schema["enum"]
    if "type" in schema:
        assert _type(value, schema) == schema["type"]
    if isinstance(value, dict) and "properties" in schema:
        assert set(schema["required"]) <= set(value) <= set(schema["properties"])
        for key, item in value.items():
            _check(item, schema["properties"][key], defs)
    if isinstance(value, list) and "items" in schema:
        for item in value:
            _check(item, schema["items"], defs)


def _type(value: object, schema: dict) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "number" if schema.get("type") == "number" else "integer"
    return {dict: "object", list: "array", str: "string", float: "number", type(None): "null"}[type(value)]


def test_schema_describes_every_key() -> None:
    """Each property of each struct has a sentence, so editors can show what a key means."""
    schema = schemas()["results.schema.json"]

    structs = {"Results": schema, **schema["$defs"]}
    nameless = [
        f"{name}.{key}"
        for name, struct in structs.items()
        for key, prop in struct["properties"].items()
        if "description" not in prop
    ]
    assert nameless == []
    assert "Wilson" in schema["$defs"]["Case"]["properties"]["interval"]["description"]


def test_runs_that_were_left_out_are_listed_and_keep_the_campaign_from_passing(verdict, run, campaign) -> None:
    """A campaign that stopped early says which runs are missing, and does not exit 0."""
    data = written(campaign(run(verdict()), left_out=[not_run("r2", "late", None, 1, "interrupted")]))

    assert data["exit_code"] == 3
    assert data["not_run"] == [
        {
            "run_id": "r2",
            "case_id": "late",
            "model_id": None,
            "repetition": 1,
            "reason": "interrupted",
            "quarantined": False,
        }
    ]


def test_what_was_left_out_of_quarantine_keeps_nothing_from_passing(verdict, run, campaign) -> None:
    """A case that is known to be flaky decides nothing, whether it was run or not."""
    data = written(campaign(run(verdict()), left_out=[not_run("r2", "late", None, 1, "interrupted", quarantined=True)]))

    assert data["exit_code"] == 0
    assert data["not_run"][0]["quarantined"] is True


def test_a_large_report_is_written_case_by_case() -> None:
    """The next case is made when the one before is written, so that memory holds one of them."""

    @dataclass
    class Some:
        name: str
        cases: Iterable[dict[str, Any]]
        none: list[int]
        more: dict[str, list[int]]

    made: list[int] = []

    def cases() -> Iterator[dict[str, Any]]:
        for number in range(3):
            made.append(number)
            yield {"number": number, "text": "a\nb", "empty": [], "values": [1, 2]}

    pieces = json_pieces(Some("x", cases(), [], {"a": [1]}))
    text, seen = "", []
    for piece in pieces:
        text += piece
        seen += [len(made)] * ('"number"' in piece)

    assert seen == [1, 2, 3]
    assert text == json_text(Some("x", list(cases()), [], {"a": [1]}))
