"""LangSmith's runs, as `client.list_runs`, the API and the bulk export give them: the attributes that its SDK exports over OTLP.

https://docs.langchain.com/langsmith/run-data-format; langsmith 0.15 `_internal/otel/_otel_exporter.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from clawtrace.receiver.recordings.imports.foreign_spans import ForeignSpan, a_mapping, as_json, iso_time, of_span

_OPERATIONS = {
    "llm": "chat",
    "tool": "execute_tool",
    "retriever": "embeddings",
    "embedding": "embeddings",
    "prompt": "chat",
}
_USAGE = (
    ("prompt_tokens", "input_tokens", "gen_ai.usage.input_tokens"),
    ("completion_tokens", "output_tokens", "gen_ai.usage.output_tokens"),
    ("total_tokens", "total_tokens", "gen_ai.usage.total_tokens"),
)
"""What a run states, what its answer states, and the attribute."""


def spans(row: dict[str, Any]) -> Iterator[ForeignSpan]:
    """Yield the span that a run is."""
    with of_span(row.get("id"), row.get("name"), "run"):
        yield _span(row)


def _span(row: dict[str, Any]) -> ForeignSpan:
    extra = a_mapping(row.get("extra"))
    metadata, parameters = a_mapping(extra.get("metadata")), a_mapping(extra.get("invocation_params"))
    outputs, kind, name = a_mapping(row.get("outputs")), row["run_type"], row.get("name") or ""
    usage = a_mapping(outputs.get("usage_metadata")) or a_mapping(metadata.get("usage_metadata"))
    attributes: dict[str, Any] = {f"langsmith.metadata.{key}": _plain(value) for key, value in metadata.items()}
    attributes |= {
        "langsmith.span.kind": kind,
        "langsmith.trace.name": name,
        "gen_ai.operation.name": _OPERATIONS.get(kind, kind),
        "gen_ai.system": metadata.get("ls_provider"),
        "gen_ai.request.model": metadata.get("ls_model_name")
        or parameters.get("model")
        or parameters.get("model_name"),
        "gen_ai.tool.definitions": as_json(parameters["tools"]) if parameters.get("tools") else None,
        "gen_ai.prompt": as_json(row["inputs"]) if row.get("inputs") is not None else None,
        "gen_ai.completion": as_json(row["outputs"]) if row.get("outputs") is not None else None,
    }
    if kind == "llm":
        for stated, answered, attribute in _USAGE:
            attributes[attribute] = row.get(stated) or usage.get(answered)
        for side in ("input", "output"):
            details = usage.get(f"{side}_token_details")
            attributes[f"gen_ai.usage.{side}_token_details"] = as_json(details) if details else None
    if kind == "tool":
        attributes["gen_ai.tool.name"] = name
        attributes["gen_ai.tool.call.id"] = extra.get("tool_call_id") or metadata.get("tool_call_id")
    start, end = iso_time(row.get("start_time"), "start_time", needed=True), iso_time(row.get("end_time"), "end_time")
    error, parent = row.get("error"), row.get("parent_run_id")
    return ForeignSpan(
        row.get("trace_id") or row.get("id"), row.get("id"), parent, name, start, end,
        attributes, "ERROR" if error else "OK" if end else "", error or "",
        events=[(end, "exception", {"exception.message": error})] if error else [], scope=("langsmith", ""),
    )  # fmt: skip


def _plain(value: Any) -> Any:
    return as_json(value) if isinstance(value, dict | list) else value
