"""The columns that a dialect can fill from one span, and the facts that its instrumentation may record (spec: span-model.md §5)."""

from __future__ import annotations

from typing import Literal

__all__ = ["COLUMN_TYPES", "RECORDABLE"]

COLUMN_TYPES: dict[str, Literal["text", "integer", "decimal", "list"]] = {
    "operation": "text",
    "provider": "text",
    "request_model": "text",
    "response_model": "text",
    "response_id": "text",
    "input_tokens": "integer",
    "output_tokens": "integer",
    "total_tokens": "integer",
    "cache_read_tokens": "integer",
    "cache_write_tokens": "integer",
    "reasoning_tokens": "integer",
    "cost_usd": "decimal",
    "attempts": "integer",
    "finish_reason": "text",
    "time_to_first_token_s": "decimal",
    "tool_name": "text",
    "tool_call_id": "text",
    "tool_arguments": "text",
    "tool_result": "text",
    "tool_command": "text",
    "exit_code": "integer",
    "exchange_id": "text",
    "exchange_session": "text",
    "agent_name": "text",
    "agent_id": "text",
    "parent_agent": "text",
    "owner_agent": "text",
    "handoff_from": "text",
    "handoff_to": "text",
    "session_id": "text",
    "prompt_id": "text",
    "final_output": "text",
    "pseudo_tools": "list",
    "forced_tool": "text",
    "tool_definitions": "text",
    "rollup_input_tokens": "integer",
    "rollup_output_tokens": "integer",
    "rollup_cache_read_tokens": "integer",
    "rollup_cache_write_tokens": "integer",
    "rollup_reasoning_tokens": "integer",
    "rollup_llm_calls": "integer",
}
"""The columns a dialect can fill from one span, with the type that their text is read as.

`owner_agent` is the name of the agent at whose work the span was done, where the span says it of itself; `parent_agent`
the name of the agent that called this one. `tool_command` is the shell command of a tool call, where it stands apart from
the arguments. `forced_tool` is the name of the tool that a request makes the model call, mostly to give its answer a form.
`tool_definitions` are the tools that a model was offered, with the schemas of their arguments: a JSON list, or an object of
attributes whose keys count the tools (``llm.tools.0.tool.json_schema``).
`prompt_id` is what the spans of one user's prompt share, where a trace is not a turn. `exchange_id`, within `exchange_session`,
identifies one tool call on both sides of a connection; of a request over HTTP it is the URL. `attempts` is the number of requests that one span describes.
`rollup_*` are totals of model calls that have no spans.
"""

RECORDABLE = (
    "llm_calls", "failed_attempts", "tokens", "cached_tokens", "reasoning_tokens", "tool_calls", "server_tool_calls",
    "arguments", "results", "agents", "errors", "cost",
)  # fmt: skip
"""What an instrumentation may be able to record.

`failed_attempts`: every request that got no answer, also those that an SDK retried inside of one call.
`server_tool_calls`: the calls of tools that the model's provider runs itself, such as a web search.
"""
