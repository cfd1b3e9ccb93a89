"""The counts and sums of runs as people read them: the number where it is known, next to the bounds that `run_totals` has."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from clawtrace.model.reasons import REASONS
from clawtrace.model.relations import COUNTED, RELATIONS

__all__ = ["TOTALS", "as_received", "bounded", "exact"]

TOTALS = {
    **{name: f"t.{name} AS {name}" for name in RELATIONS["run_totals"].column_names},
    **{name: f"CASE WHEN t.{name}_low = t.{name}_high THEN t.{name}_low END AS {name}" for name in COUNTED},
    "cost_usd": "CASE WHEN t.cost_low = t.cost_high THEN t.cost_low END AS cost_usd",
}
"""SQL over ``run_totals AS t`` by column: its own, and each count, sum and the cost where both bounds are one, else NULL."""

_TOKENS = frozenset(name for name in COUNTED if name.endswith("_tokens"))
_RESTS_ON: Mapping[str, tuple[str, Collection[str]]] = {
    "llm_calls": ("llm_calls", ("outcome",)),
    "failed_llm_attempts": ("llm_calls", ("outcome", "attempts")),
    "tool_calls": ("tool_calls", ()),
    **{name: ("llm_calls", ("outcome", name)) for name in _TOKENS},
    "cost": ("llm_calls", {"outcome", "cost_usd", *_TOKENS}),
    "errors": ("errors", ()),
    "unrecovered_errors": ("errors", ("recovered",)),
    "agents": ("agents", ()),
}
"""For each total, the relation and its columns from which it is computed."""


def bounded(name: str) -> tuple[str, str]:
    """Return the names of the bounds of a total."""
    name = "cost" if name == "cost_usd" else name
    return f"{name}_low", f"{name}_high"


def exact(row: Mapping[str, Any], name: str) -> Any:
    """Return a total of a row of `run_totals`; None where its bounds differ, or nothing bounds it."""
    low, high = (row.get(bound) for bound in bounded(name))
    return low if low == high else None


def as_received(
    row: Mapping[str, Any], name: str, doubts: Sequence[Mapping[str, Any]], gaps: Sequence[Mapping[str, Any]]
) -> Any:
    """Return a total of what was received, of a run of which more may come or got lost; None where it is not even known of that.

    Args:
        row: of `run_totals`.
        doubts: of the run.
        gaps: of the run.
    """
    relation, columns = _RESTS_ON[name.removesuffix("_usd")]
    if any(
        one["relation"] == relation and (one["column_name"] is None or one["column_name"] in columns) for one in doubts
    ):
        return exact(row, name)
    # Requests that an SDK makes again by itself are no calls.
    only_failed = relation == "llm_calls" and name != "failed_llm_attempts"
    here = [one for one in gaps if one["relation"] == relation and not (only_failed and one["outcome"] == "error")]
    whole = all(REASONS[one["reason"]].unfinished for one in here)
    return row[bounded(name)[0]] if here and whole else exact(row, name)
