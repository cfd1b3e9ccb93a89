"""A tool call that waited for a person, in an instrumentation that records nothing of what was resumed in the same process."""

from __future__ import annotations

import pytest
from building import Lab, S, agent, tool

SCOPE = "openinference.instrumentation.openai_agents"
ASKING = {
    "llm.output_messages.0.message.role": "assistant",
    "llm.output_messages.0.message.tool_calls.0.tool_call.id": "c1",
    "llm.output_messages.0.message.tool_calls.0.tool_call.function.name": "refund",
    "llm.output_messages.0.message.tool_calls.0.tool_call.function.arguments": "{}",
}
ANSWERING = {"llm.output_messages.0.message.role": "assistant", "llm.output_messages.0.message.content": "Done."}
USAGE = {"llm.model_name": "gpt-4o", "llm.token_count.prompt": 10, "llm.token_count.completion": 5}


def span(id: str, parent: str, at: int, kind: str, name: str, turn: int, **attrs: object) -> S:
    return S(
        id, parent, at, at + 9, name, {"openinference.span.kind": kind, **attrs}, scope=SCOPE, trace=str(turn) * 32
    )


@pytest.mark.parametrize(("carried_out", "reasons"), [(False, ["missing_model_call"]), (True, [])])
def test_a_later_turn_hides_nothing_of_a_call_that_waited(lab: Lab, carried_out: bool, reasons: list[str]) -> None:
    """What was resumed is in no span, until a later span carries the call out."""
    lab.put(
        span("a", "", 0, "AGENT", "main", 1),
        span("m", "a", 1, "LLM", "response", 1, **USAGE, **ASKING),
        span("t", "a", 20, "TOOL", "refund", 1, **{"tool.name": "refund", "input.value": "{}"}),
        span("b", "", 100, "AGENT", "main", 2),
        *([span("u", "b", 101, "TOOL", "refund", 2, **{"tool.name": "refund", "input.value": "{}", "output.value": "ok"})] if carried_out else []),
        span("n", "b", 120, "LLM", "response", 2, **USAGE, **ANSWERING),
    )  # fmt: skip

    assert lab.reasons() == reasons
    assert (("tool_calls",) in lab.rows("SELECT relation FROM gaps")) is not carried_out


@pytest.mark.parametrize(
    ("scope", "more"),
    [
        ("opentelemetry.instrumentation.genai.openai_agents", {}),
        ("opentelemetry.instrumentation.openai_agents", {"traceloop.span.kind": "tool"}),
        ("opentelemetry.instrumentation.openai_agents", {}),
    ],
)
def test_a_call_that_waited_and_the_one_that_was_carried_out(lab: Lab, scope: str, more: dict[str, str]) -> None:
    """The span of a call that waits for approval ends without a result: it is one call when it is carried out, or none."""
    given = {"gen_ai.tool.call.arguments": "{}", "gen_ai.tool.call.id": None, **more}
    spans = [
        agent("a", to=9), tool("t", "a", at=1, **given),
        agent("b", at=20, to=40), tool("u", "b", at=21, **given, **{"gen_ai.tool.call.result": "ok"}),
    ]  # fmt: skip
    for span in spans:
        span.scope, span.trace = scope, ("1" if span.at < 20 else "2") * 32
    lab.put(*spans)

    assert lab.rows("SELECT certain, outcome FROM tool_calls ORDER BY start_ns") == [(False, None), (True, "ok")]


@pytest.mark.parametrize(
    ("scope", "name", "attrs"),
    [
        ("mlflow.tracing.provider", "refund", {"mlflow.spanType": '"TOOL"', "mlflow.spanInputs": "{}", "mlflow.spanOutputs": "null"}),
        ("logfire.openai_agents", "Function: {name}", {"name": "refund", "input": "{}", "output": "null"}),
    ],
)  # fmt: skip
def test_a_call_without_output_may_wait_or_was_cancelled(
    lab: Lab, scope: str, name: str, attrs: dict[str, str]
) -> None:
    """`status: ok` passed for a call that nobody had approved yet."""
    lab.put(S("t", "", 1, 5, name, attrs, scope=scope))

    assert lab.rows("SELECT name, certain, outcome FROM tool_calls") == [("refund", False, None)]


@pytest.mark.parametrize(("status", "outcome"), [("200 OK", None), ("500 Internal Server Error", "error")])
def test_a_stream_that_failed_after_the_server_answered_may_be_an_answer(
    lab: Lab, status: str, outcome: str | None
) -> None:
    """MLflow's span of OpenAI's SDK has the response's representation; the agent gave up on an answer that was cut."""
    words = f"\"<AsyncAPIResponse [{status}] type=<class 'openai.types.responses.response.Response'>>\""
    said = {"mlflow.spanType": '"CHAT_MODEL"', "mlflow.llm.model": '"gpt-4o"', "mlflow.spanOutputs": words}
    lab.put(S("m", "", 1, 9, "AsyncResponses", said, scope="mlflow.tracing.provider", error="Error streaming response"))

    assert lab.rows("SELECT outcome FROM llm_calls") == [(outcome,)]
