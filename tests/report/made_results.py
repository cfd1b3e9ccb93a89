"""Hand-made results: what reports and the gate are tested with."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from clawtrace.model.verdict import RunResult, Status, Verdict, run_status_of
from clawtrace.report.base import CampaignReport
from clawtrace.report.results import NotRun
from clawtrace.verdicts.gating.gate import Gate

TOTALS = {
    "llm_calls": 2,
    "tool_calls": 2,
    "input_tokens": 1013,
    "output_tokens": 23,
    "input_tokens_low": 1013,
    "input_tokens_high": 1013,
    "output_tokens_low": 23,
    "output_tokens_high": 23,
    "cost_usd": 0.0021,
    "cost_low": 0.0021,
    "cost_high": 0.0021,
    "priced_calls": 2,
}


def make_verdict(status: str = "pass", **fields: Any) -> Verdict:
    defaults: dict[str, Any] = {
        "run_id": "run-1",
        "id": "order",
        "type": "tool_sequence",
        "status": Status(status),
        "final": True,
        "message": "The tools ran in the asked order: get_weather, search.",
        "sql": "SELECT run_id, true AS holds FROM tool_calls",
        "params": {"mode": "in_order"},
        "duration_ms": 1.25,
    }
    return Verdict(**{**defaults, **fields})


def make_run(*verdicts: Verdict, **fields: Any) -> RunResult:
    defaults: dict[str, Any] = {
        "run_id": "run-1",
        "case_id": "weather",
        "model_id": None,
        "repetition": 1,
        "status": run_status_of(verdicts),
        "verdicts": tuple(verdicts),
        "complete": True,
        "closed_by": "exit",
        "spans": 6,
        "traces": 1,
        "duration_ms": 5120.4,
        "totals": TOTALS,
    }
    return RunResult(**{**defaults, **fields})


def make_campaign(*runs: RunResult, gate: Gate | None = None, **fields: Any) -> CampaignReport:
    gate = gate or Gate()
    started = datetime(2026, 11, 20, 10, 0, tzinfo=UTC)
    return CampaignReport.gated("smoke", started, list(runs), gate, **fields)


@pytest.fixture(scope="session")
def verdict() -> Callable[..., Verdict]:
    return make_verdict


@pytest.fixture(scope="session")
def run() -> Callable[..., RunResult]:
    return make_run


@pytest.fixture(scope="session")
def campaign() -> Callable[..., CampaignReport]:
    return make_campaign


def not_run(
    run_id: str, case_id: str, model_id: str | None, repetition: int, reason: str, *, quarantined: bool = False
) -> NotRun:
    """Return a planned run without a result."""
    return NotRun(
        run_id=run_id,
        case_id=case_id,
        model_id=model_id,
        repetition=repetition,
        reason=reason,
        quarantined=quarantined,
    )
