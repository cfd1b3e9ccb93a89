"""Braintrust's logs: the rows that its API, its queries and `braintrust sync` give, one for each span."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from clawtrace.receiver.recordings.imports.foreign_spans import (
    ForeignSpan,
    a_mapping,
    as_json,
    iso_time,
    number_time,
    of_span,
)

_SECONDS = 1_000_000_000
_METRICS = {
    "prompt_tokens": "gen_ai.usage.input_tokens",
    "completion_tokens": "gen_ai.usage.output_tokens",
    "prompt_cached_tokens": "gen_ai.usage.cache_read.input_tokens",
    "prompt_cache_creation_tokens": "gen_ai.usage.cache_creation.input_tokens",
    "completion_reasoning_tokens": "gen_ai.usage.reasoning.output_tokens",
}
"""What Braintrust's SDKs count, where input includes cached tokens, and the attributes."""
_JUDGED = frozenset(("score", "facet"))
"""Types of spans that Braintrust adds when it judges, which like those inside of them are no work of the agent."""


def spans(row: dict[str, Any]) -> Iterator[ForeignSpan]:
    """Yield the span that a row is; nothing where Braintrust added it."""
    about = a_mapping(row.get("span_attributes"))
    if about.get("type") in _JUDGED or about.get("purpose") == "scorer":
        return
    with of_span(row.get("span_id"), about.get("name")):
        yield _span(row, about)


def _span(row: dict[str, Any], about: dict[str, Any]) -> ForeignSpan:
    metadata, metrics = a_mapping(row.get("metadata")), a_mapping(row.get("metrics"))
    kind, name = about.get("type") or "task", about.get("name") or ""
    attributes: dict[str, Any] = {
        "braintrust.span.type": kind,
        "braintrust.metadata": as_json(metadata) if metadata else None,
        "gen_ai.request.model": metadata.get("model"),
        "gen_ai.provider.name": metadata.get("provider"),
        "gen_ai.tool.name": name if kind == "tool" else None,
    }
    if kind == "llm":  # other spans may repeat the sums of those inside
        attributes |= {attribute: metrics.get(name) for name, attribute in _METRICS.items()}
    for side in ("input", "output"):
        if row.get(side) is not None:
            attributes[f"braintrust.{side}"] = as_json(row[side])
    start, end = metrics.get("start"), metrics.get("end")
    error, parents = row.get("error"), row.get("span_parents") or [None]
    return ForeignSpan(
        row.get("root_span_id"), row.get("span_id"), parents[0], name,
        iso_time(row.get("created"), "created", needed=True) if start is None else number_time(start, "metrics.start", _SECONDS),
        0 if end is None else number_time(end, "metrics.end", _SECONDS), attributes, "ERROR" if error else "",
        as_json(error) if error else "", scope=("braintrust", ""),
    )  # fmt: skip
