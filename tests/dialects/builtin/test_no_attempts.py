"""Tools that nobody wrote: the form of an answer, the end of a handoff; and what MCP says of a failure."""

from __future__ import annotations

import json

from building import Lab, S
from instrumented import oi

TOOLS = "SELECT name, outcome, certain FROM tool_calls"


def test_the_end_of_a_handoff_is_no_tool_call(lab: Lab) -> None:
    """Semantic Kernel runs a function of its own by which an agent says that it is done."""
    genai = {"gen_ai.operation.name": "execute_tool"}
    lab.put(
        S("a", "", 0, 90, "invoke_agent desk", {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "desk"}),
        S("t", "a", 1, 9, "execute_tool lab-get_weather", {**genai, "gen_ai.tool.name": "lab-get_weather"}),
        S("e", "a", 10, 19, "execute_tool Handoff-complete_task", {**genai, "gen_ai.tool.name": "Handoff-complete_task"}),
    )  # fmt: skip

    assert lab.rows(TOOLS) == [("lab-get_weather", "ok", True)]


def test_the_response_model_of_instructor_is_no_tool_call(lab: Lab) -> None:
    """The model is made to call a tool of that name, which nobody runs."""
    said = {"llm.output_messages.0.message.role": "assistant"}
    call = "llm.output_messages.0.message.tool_calls.0.tool_call"
    said |= {
        f"{call}.id": "c1",
        f"{call}.function.name": "Weather",
        f"{call}.function.arguments": json.dumps({"c": 21}),
    }
    lab.put(
        oi("instructor", "CHAIN", "i", "", "instructor.create", 0, 90, instructor__response_model="Weather"),
        oi("openai", "LLM", "m", "i", "ChatCompletion", 1, 80, llm__model_name="gpt-4o", **{k.replace(".", "__"): v for k, v in said.items()}),
    )  # fmt: skip

    assert lab.rows(TOOLS) == []


def test_a_request_of_mcp_tells_no_failure_of_the_tool(lab: Lab) -> None:
    """A JSON-RPC success can hold a failed tool, and the SDK for Python does not look into it."""
    mcp = {"mcp.method.name": "tools/call"}
    lab.put(S("t", "", 0, 9, "MCP send tools/call refund", mcp, scope="mcp-python-sdk"))

    assert lab.rows(TOOLS) == [("refund", None, True)]


def test_what_was_asked_in_unrecorded_words_was_not_run_where_executions_have_spans(lab: Lab) -> None:
    """OpenTelemetry's instrumentation of LangChain leaves calls with broken arguments out of an answer; LangGraph ends there."""
    said = json.dumps(
        [{"role": "assistant", "parts": [{"type": "text", "content": "Let me look."}], "finish_reason": "tool_calls"}]
    )
    asks = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "gpt-4o", "gen_ai.output.messages": said,
            "gen_ai.response.finish_reasons": ["tool_calls"]}  # fmt: skip
    work = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "desk"}
    scope = "opentelemetry.instrumentation.genai.langchain"
    lab.put(
        S("a", "", 0, 90, "invoke_agent desk", work, scope=scope), S("m", "a", 1, 80, "chat gpt-4o", asks, scope=scope)
    )

    assert lab.totals("tool_calls_low", "tool_calls_high") == (0, 0)
