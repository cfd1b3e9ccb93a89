"""A run's result as data for JSON, and back: for files that keep it, and for another process that asked for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from clawtrace.model.verdict import Evidence, RunResult, Status, Verdict

__all__ = ["result_data", "result_of", "verdict_data", "verdict_of"]


def result_data(result: RunResult) -> dict[str, Any]:
    """Return a result as data for JSON."""
    return result._asdict() | {
        "verdicts": [verdict_data(verdict) for verdict in result.verdicts],
        "totals": dict(result.totals),
        "judgement": dict(result.judgement),
        "conversation": dict(result.conversation),
    }


def result_of(data: Mapping[str, Any]) -> RunResult:
    """Return the result of what `result_data` returned.

    Raises:
        KeyError, TypeError, ValueError: it is something else.
    """
    tuples = {name: tuple(data[name]) for name in ("incomplete_because", "diagnostics", "retried", "facts_state")}
    status = None if data["status"] is None else Status(data["status"])
    verdicts = tuple(verdict_of(one) for one in data["verdicts"])
    return RunResult(**{**data, **tuples, "status": status, "verdicts": verdicts})


def verdict_data(verdict: Verdict) -> dict[str, Any]:
    """Return a verdict as data for JSON."""
    return verdict._asdict() | {
        "evidence": [one._asdict() for one in verdict.evidence],
        "params": dict(verdict.params),
        "decided_by": dict(verdict.decided_by),
        "definition": dict(verdict.definition),
        "scope": dict(verdict.scope),
    }


def verdict_of(data: Mapping[str, Any]) -> Verdict:
    """Return the verdict of what `verdict_data` returned."""
    evidence = tuple(Evidence(**one) for one in data["evidence"])
    return Verdict(
        **{**data, "status": Status(data["status"]), "evidence": evidence, "dimensions": tuple(data["dimensions"])}
    )
