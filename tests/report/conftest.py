"""Fixtures of the tests of reports: a campaign with one run of each kind."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from made_results import TOTALS, make_campaign, make_run, make_verdict
from made_results import campaign as campaign
from made_results import run as run
from made_results import verdict as verdict

from clawtrace.model.verdict import Evidence, Status
from clawtrace.report.base import CampaignReport


@dataclass(frozen=True)
class Node:
    """A span of a tree: the documented shape of `clawtrace.verdicts.reading.tree_view.SpanNode`."""

    span_id: str
    depth: int
    name: str
    kind: str = "other"
    duration_ms: float | None = 100.0
    ended: bool = True
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None
    error: str | None = None
    counted_as: str | None = "none"
    tool_name: str | None = None


@pytest.fixture(scope="session")
def node() -> type[Node]:
    return Node


@pytest.fixture
def weather_tree() -> list[Node]:
    return [
        Node("a1", 0, "invoke_agent assistant", "agent", duration_ms=5120.4),
        Node("b1", 1, "chat gpt-4o", "llm", 1200.0, True, 500, 11, 0.001),
        Node("c1", 1, "execute_tool search", "tool", duration_ms=301.0),
        Node("d1", 2, "GET /search", "infra", duration_ms=250.0, error="503 Service Unavailable"),
        Node("e1", 1, "execute_tool get_weather", "tool", duration_ms=42.0),
        Node("f1", 1, "chat gpt-4o", "llm", None, False, 513, 12, 0.0011),
    ]


@pytest.fixture
def mixed(weather_tree: list[Node]) -> CampaignReport:
    """One run of each kind: passed, failed, without a trace, incomplete, broken, never asked."""
    failed = make_verdict(
        "fail",
        run_id="run-2",
        message="Expected get_weather before search, but the tools ran as search, get_weather.",
        description="The forecast is looked up before anything is searched.",
        expected=["get_weather", "search"],
        actual=["search", "get_weather"],
        evidence=(
            Evidence("t1", "c1", "execute_tool search", "ran first", 10),
            Evidence(None, None, "get_weather", "asked for in a message only"),
        ),
    )
    skipped = make_verdict(
        "skip",
        run_id="run-3",
        id="budget",
        type="trace_token_budget",
        final=False,
        message="There is no trace of this run: nothing arrived on port 4317 or 4318.",
        hint="Does the agent export to OTEL_EXPORTER_OTLP_ENDPOINT?",
        missing="trace",
        sql="",
        params={},
    )
    unsure = make_verdict(
        "inconclusive",
        run_id="run-4",
        id="tool_not_invoked",
        type="tool_not_invoked",
        final=False,
        message="No attempt of delete_file was seen, but spans of the run may be missing.",
    )
    warned = make_verdict(
        "fail", run_id="run-4", id="slow", type="trace_duration", severity="warn", message="Took 5.1 s."
    )
    return make_campaign(
        make_run(make_verdict(), model_id="gpt-4o"),
        make_run(failed, run_id="run-2", model_id="gpt-4o", repetition=2),
        make_run(
            skipped, run_id="run-3", case_id="empty", model_id="gpt-4o", has_trace=False, complete=None, closed_by=None,
            spans=0, traces=0, duration_ms=None, totals={},
        ),
        make_run(
            unsure, warned, run_id="run-4", case_id="a-case-with-a-rather-long-identifier", model_id="gpt-4o",
            complete=False, incomplete_because=("The parent of span b7ad was never received.",),
            totals={**TOTALS, "input_tokens": None, "input_tokens_high": None, "cost_usd": None, "cost_high": None, "cost_low": 0.0012},
            diagnostics=("2 spans were rejected: their span id was all zero.",),
        ),
        make_run(run_id="run-5", case_id="broken", model_id="gpt-4o", status=Status.ERROR, run_status="failed",
             error="The command `agent` was not found: install it or name its path.", has_trace=False, complete=None,
             spans=0, traces=0, duration_ms=None, totals={}),
        make_run(run_id="run-6", case_id="unasked", model_id="gpt-4o"),
        trees={"run-2": weather_tree},
        duration_ms=12_345.0,
    )  # fmt: skip
