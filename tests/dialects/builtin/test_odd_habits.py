"""Habits of instrumentations that no recording shows, as dialects.md describes them: what clawtrace says of each is true.

Ids and figures are made up.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from building import Lab, S, agent, chat, tool
from instrumented import ACTIVATIONS, TOOLS, oi

pytestmark = pytest.mark.full


USAGE = ("llm_calls", "input_tokens", "output_tokens")


def test_anthropics_platform_records_the_sdks_call_again(lab: Lab) -> None:
    """The SDK's span and, below it, the API's own: one request."""
    sent = {
        "gen_ai.provider.name": "anthropic",
        "gen_ai.request.model": "claude-sonnet-4",
        "gen_ai.response.model": "claude-sonnet-4",
        "gen_ai.response.id": "msg_1",
    }
    sdk, platform = chat("m", "a", at=1, **sent), chat("p", "m", at=2, **sent)
    sdk.scope, platform.scope = "com.anthropic.sdk.python", "com.anthropic.claude-platform"
    platform.to = 5
    lab.put(agent("a"), sdk, platform)  # fmt: skip

    assert lab.totals(*USAGE) == (1, 100, 10)


def test_a_list_of_one_name_names_the_tool(lab: Lab) -> None:
    """`tool_not_invoked: rm` passed for a program that wrote `["rm"]`."""
    lab.put(
        agent("a"),
        S("t", "a", 1, 5, "execute_tool rm", {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": ["rm"]}),
    )

    assert lab.rows("SELECT name FROM tool_calls WHERE run_id = :run") == [("rm",)]


@pytest.mark.parametrize("key", ["gen_ai.output", "gen_ai.response.text", "app.response.content", "llm_response_text"])
def test_a_program_writes_the_answer_as_one_text(lab: Lab, key: str) -> None:
    """The conventions know messages alone, and so did the general rules."""
    lab.put(agent("a"), chat("m", "a", at=1, **{"gen_ai.request.model": "gpt-4o", key: "It is sunny."}))

    assert lab.rows("SELECT final_output FROM runs WHERE run_id = :run") == [("It is sunny.",)]


@pytest.mark.parametrize(("finish", "outcome"), [(None, None), (["stop"], "ok")])
def test_a_stream_breaks_off_below_a_framework(lab: Lab, finish: list[str] | None, outcome: str | None) -> None:
    """The framework's span is ok, with the tokens of the stream's beginning; the SDK's inside of it failed."""
    said = [{"role": "assistant", "parts": [{"type": "text", "content": "It is"}]}]
    ends = {"gen_ai.response.finish_reasons": finish}
    framework = chat("m", "a", at=1, **ends, **{"gen_ai.output.messages": json.dumps(said)})
    sdk = chat("s", "m", at=2, **ends, **{"gen_ai.usage.output_tokens": None})
    sdk.to, sdk.scope, sdk.error = 5, "sdk", "connection_error"
    lab.put(agent("a"), framework, sdk)

    assert lab.rows("SELECT outcome FROM llm_calls") == [(outcome,)]


def test_a_value_error_is_no_failed_request(lab: Lab) -> None:
    """DSPy refused a text that is no Unicode before it asked the model, and the model span failed."""
    failed = {"exception.type": "ValueError", "exception.message": "messages contains text that is not valid Unicode"}
    attrs = {"openinference.span.kind": "LLM", "llm.model_name": "gpt-4o"}
    lab.put(
        S(
            "m",
            "",
            0,
            5,
            "LM.__call__",
            attrs,
            [("exception", failed)],
            error="ValueError: no Unicode",
            scope="openinference.instrumentation.dspy",
        )
    )

    assert lab.rows("SELECT outcome FROM llm_calls") == [(None,)]


def test_bedrocks_exporter_writes_the_usage_of_openinference_again(lab: Lab) -> None:
    """The same tokens under two keys of one span are one usage."""
    attrs = {
        "openinference.span.kind": "LLM", "llm.model_name": "claude-sonnet-4", "llm.provider": "aws",
        "llm.token_count.prompt": 100, "llm.token_count.completion": 10, "llm.token_count.total": 110,
        "gen_ai.usage.input_tokens": 100, "gen_ai.usage.output_tokens": 10, "gen_ai.request.model": "claude-sonnet-4",
        "aws.genai.span_kind": "LLM", "aws.genai.token_count_total": 110,
    }  # fmt: skip
    lab.put(
        oi("bedrock", "AGENT", "a", "", "agent", 0, 50),
        S("m", "a", 1, 5, "invoke", attrs, scope="openinference.instrumentation.bedrock"),
    )

    assert lab.totals(*USAGE) == (1, 100, 10)


def adk(id: str, parent: str, at: int, name: str, **attrs: Any) -> S:
    sent = {"gen_ai.system": "gcp.vertex.agent"} | {
        f"gen_ai.{key.replace('__', '.')}": value for key, value in attrs.items()
    }
    return S(id, parent, at, at + 5, name, sent, scope="gcp.vertex.agent")


def test_an_adk_tool_call_without_an_id_is_no_other_call(lab: Lab) -> None:
    """`<not specified>` stands where an id belongs: two calls of one tool with it are two calls."""

    def weather(id: str, at: int, city: str) -> S:
        span = adk(
            id,
            "a",
            at,
            "execute_tool get_weather",
            operation__name="execute_tool",
            tool__name="get_weather",
            tool__call__id="<not specified>",
        )
        span.attrs["gcp.vertex.agent.tool_call_args"] = json.dumps({"city": city})
        return span

    root = adk("a", "", 0, "invoke_agent weather", operation__name="invoke_agent", agent__name="weather")
    root.to = 100
    lab.put(root, weather("t", 10, "Paris"), weather("u", 20, "Rome"))  # fmt: skip

    assert [row[1] for row in lab.rows(TOOLS)] == ['{"city": "Paris"}', '{"city": "Rome"}']
    assert lab.rows("SELECT DISTINCT call_id FROM tool_calls") == [(None,)]


def test_logfire_records_an_mcp_call_three_times(lab: Lab) -> None:
    """The function, the client's request and the server's handling of it, one inside of the other, are one call."""

    def logfire(id: str, parent: str, at: int, to: int, called: str, scope: str, **attrs: Any) -> S:
        return S(id, parent, at, to, called, {"logfire.span_type": "span", **attrs}, scope=scope)

    lab.put(
        logfire("a", "", 0, 100, "Agent run: {name!r}", "logfire.openai_agents", name="helper"),
        logfire("f", "a", 10, 40, "Function: {name}", "logfire.openai_agents", name="add", input='{"a":1}', output="2"),
        logfire("c", "f", 11, 39, "MCP request: tools/call add", "logfire.mcp", **{"rpc.method": "tools/call"}),
        logfire("s", "c", 12, 38, "MCP server handle request: tools/call", "logfire.mcp", **{"rpc.method": "tools/call"}),
    )  # fmt: skip

    assert lab.rows(TOOLS) == [("add", '{"a":1}', "ok")]


@pytest.mark.parametrize(("mode", "via"), [("pass_control", "handoff"), ("return_to_caller", "tool")])
def test_a_transfer_of_the_newest_conventions(lab: Lab, mode: str, via: str) -> None:
    """`gen_ai.transfer.*` on a tool span names whom it works for or hands over to."""
    attrs = {
        "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "ask_billing", "gen_ai.agent.name": "triage",
        "gen_ai.transfer.target.name": "billing", "gen_ai.transfer.mode": mode,
    }  # fmt: skip
    transfer = S("t", "a", 10, 12 if mode == "pass_control" else 60, "execute_tool ask_billing billing", attrs)
    second = agent("b", "w" if mode == "pass_control" else "t", at=20, to=50, agent="billing")
    lab.put(S("w", at=0, to=100, name="workflow"), agent("a", "w", to=90, agent="triage"), transfer, second)

    assert lab.rows(ACTIVATIONS) == [("triage", None, "root"), ("billing", 1, via)]


def test_arguments_that_pydantic_ai_refused_are_a_failed_attempt(lab: Lab) -> None:
    """A call whose arguments did not validate never ran its function; its span says that the framework tried."""
    attrs = {
        "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "add", "gen_ai.tool.call.id": "c1",
        "pydantic_ai.tool.failure_stage": "validation", "logfire.msg": "invalid tool call: add",
    }  # fmt: skip
    failed = S("t", "a", 10, 11, "execute_tool add", attrs, scope="pydantic-ai", error="1 validation error")
    lab.put(agent("a"), failed)

    assert [(row[0], row[2]) for row in lab.rows(TOOLS)] == [("add", "error")]
    assert lab.totals("tool_calls", "errors") == (1, 1)


@pytest.mark.parametrize(
    ("result", "outcome"),
    [
        ("ToolResponse(content=[Text(text='refund failed')], state=<State.ERROR: 'error'>, id='call_1')", None),
        ("ToolResult(text='no such order', is_error=True)", None),
        ("ToolResponse(content=[Text(text='21 degrees')], state=<State.SUCCESS: 'success'>, id='call_1')", "ok"),
        ("Order(id='A-1', error_count=0)", "ok"),
        ("It is_error=True, they say (status='error')", None),
    ],
)
def test_an_object_that_says_that_it_failed_leaves_the_outcome_open(lab: Lab, result: str, outcome: str | None) -> None:
    """Python's representation of a framework's result, in a span that is not marked: nothing says what the field means."""
    lab.put(agent("a"), tool("t", "a", at=10, **{"gen_ai.tool.call.result": result}))

    assert lab.rows("SELECT outcome FROM tool_calls WHERE run_id = :run") == [(outcome,)]


def test_openinferences_messages_leave_out_what_openai_ran_itself(lab: Lab) -> None:
    """`tool_not_invoked: refund` passed where OpenAI had called the tool of an MCP server."""
    served = {
        "id": "mcp_1",
        "type": "mcp_call",
        "name": "refund",
        "server_label": "shop",
        "arguments": "{}",
        "output": "ok",
    }
    asked = {"id": "fc_1", "type": "function_call", "call_id": "c1", "name": "add", "arguments": "{}"}
    written = "llm.output_messages.1.message.tool_calls.0.tool_call"
    attrs = {
        "openinference.span.kind": "LLM", "llm.model_name": "gpt-4o", "llm.system": "openai",
        "output.value": json.dumps({"id": "resp_1", "object": "response", "output": [served, asked]}),
        "llm.output_messages.1.message.role": "assistant", f"{written}.id": "c1", f"{written}.function.name": "add",
    }  # fmt: skip
    lab.put(S("m", "", 1, 5, "Response", attrs, scope="openinference.instrumentation.openai"))

    assert lab.rows("SELECT name, certain FROM tool_calls WHERE run_id = :run ORDER BY name") == [
        ("add", False), ("refund", True),
    ]  # fmt: skip
