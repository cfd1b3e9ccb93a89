"""Versions of instrumentations before those that were recorded: they wrote otherwise, and what is not known of them is open."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from building import Lab, S, agent, chat, tool
from instrumented import oi, tl

from clawtrace.dialects.load import load_dialects

NOW, BEFORE = "2.68.0", "1.0.6"
"""Of Pydantic AI: a version that was recorded, and one of another major version."""


def test_a_recording_without_a_version_proves_no_version() -> None:
    """Of Agno through OpenInference: recorded were 1.0.15, and spans without any version; 0.1 counted as after 0.0."""
    (dialect,) = (one for one in load_dialects() if one.name == "openinference-agno")

    assert dialect.unproven("openinference.instrumentation.agno", "0.1.28")
    assert not dialect.unproven("openinference.instrumentation.agno", "")


@pytest.mark.parametrize(
    ("version", "unproven"), [("2.68.0", False), ("2.99.1", False), ("2.10.0", True), ("1.0.6", True), ("3.0.0", True), ("", False)]
)  # fmt: skip
def test_versions_that_recordings_say_nothing_of(version: str, unproven: bool) -> None:
    (dialect,) = (one for one in load_dialects() if one.name == "pydantic-ai")

    assert dialect.unproven("pydantic-ai", version) is unproven
    assert dialect.unproven("another", version)


def beside_a_failure(version: str) -> list[S]:
    """Two tools side by side: one fails, and the other one ends after it, without a result."""
    step = S("s", "a", 10, 40, "running tools", {"logfire.msg": "running 2 tools"}, error="order 7 is locked")
    failed = S(
        "t",
        "s",
        11,
        14,
        "running tool",
        {"gen_ai.tool.name": "refund", "gen_ai.tool.call.id": "1"},
        error="order 7 is locked",
    )
    other = S("u", "s", 11, 30, "running tool", {"gen_ai.tool.name": "look", "gen_ai.tool.call.id": "2"})
    spans = agent("a"), chat("m", "a", at=1), step, failed, other
    return [replace(span, scope="pydantic-ai", version=version) for span in spans]


@pytest.mark.parametrize(("version", "outcome"), [(NOW, "ok"), (BEFORE, None)])
def test_a_call_may_be_cancelled_by_the_failure_of_another_one(lab: Lab, version: str, outcome: str | None) -> None:
    lab.put(*beside_a_failure(version))

    assert lab.rows("SELECT name, outcome FROM tool_calls ORDER BY name") == [("look", outcome), ("refund", "error")]


def test_a_call_that_ended_before_the_other_one_failed_was_not_cancelled(lab: Lab) -> None:
    *others, look = beside_a_failure(BEFORE)
    lab.put(*others, replace(look, to=13))

    assert lab.rows("SELECT outcome FROM tool_calls WHERE name = 'look'") == [("ok",)]


def test_openllmetry_counted_cached_tokens_of_anthropic(lab: Lab) -> None:
    call = tl(
        "anthropic", "m", "", "anthropic.chat", 0, 9, gen_ai__system="Anthropic", llm__request__type="completion",
        gen_ai__usage__prompt_tokens=2005, gen_ai__usage__completion_tokens=69, gen_ai__usage__cache_read_input_tokens=969,
    )  # fmt: skip
    lab.put(replace(call, version="0.47.1"))

    assert lab.rows("SELECT input_tokens, cache_read_tokens FROM llm_calls") == [(2005, 969)]


def test_crewai_wrote_the_use_of_a_tool_with_the_models_words(lab: Lab) -> None:
    said = "\nI encountered an error while trying to use the tool. This was the error: Arguments validation failed"
    use = {
        "tool__name": "look",
        "input__value": '{"tool_string": "Action: look", "calling": "tool_name=\'look\'"}',
        "output__value": said,
    }
    lab.put(replace(oi("crewai", "TOOL", "t", "", "ToolUsage._use", 0, 9, **use), version="0.1.14"))

    assert lab.rows("SELECT name, arguments, outcome FROM tool_calls") == [("look", None, "error")]


@pytest.mark.parametrize(("version", "errors"), [("0.62.4", 0), ("0.47.1", None)])
def test_steps_alone_do_not_say_that_nothing_failed(lab: Lab, version: str, errors: int | None) -> None:
    steps = (
        tl("llamaindex", id, "" if id == "w" else "w", f"{id}.task", at, 20, traceloop__span__kind=kind)
        for id, at, kind in (("w", 0, "workflow"), ("s", 1, "task"))
    )
    lab.put(*(replace(step, version=version) for step in steps))

    assert lab.totals("errors") == (errors,)


@pytest.mark.parametrize(("version", "output"), [("1.3b0", 15), ("0.3b0", None)])
def test_thoughts_may_be_counted_apart(lab: Lab, version: str, output: int | None) -> None:
    call = chat(
        "m",
        at=1,
        **{
            "gen_ai.request.model": "gemini-2.5-flash",
            "gen_ai.response.model": "gemini-2.5-flash",
            "gen_ai.usage.output_tokens": 15,
        },
    )
    lab.put(replace(call, scope="opentelemetry.instrumentation.google_genai", version=version))

    assert lab.rows("SELECT output_tokens FROM llm_calls") == [(output,)]


def test_an_instrumentation_without_models_and_usage_may_record_the_same_calls(lab: Lab) -> None:
    """OpenAI's agents through two instrumentations, each in a trace: the tools are the same."""
    silent = {
        "gen_ai.request.model": None,
        "gen_ai.response.model": None,
        "gen_ai.usage.input_tokens": None,
        "gen_ai.usage.output_tokens": None,
    }
    for scope, said in (("one", {}), ("two", silent)):
        spans = agent(f"{scope}a"), chat(f"{scope}m", f"{scope}a", at=1, **said), tool(f"{scope}t", f"{scope}a", at=20)
        lab.put(*(replace(span, scope=scope, trace=f"{len(said) + 1:032x}") for span in spans))

    assert lab.totals("llm_calls", "tool_calls") == (None, 1)
    assert lab.rows("SELECT llm_calls_low, llm_calls_high FROM run_totals") == [(1, 2)]


def test_what_an_agent_says_may_be_the_failure_of_its_last_call(lab: Lab) -> None:
    """Agno's answer is then the error's text, and the model span records nothing of an answer."""
    model = oi("agno", "LLM", "m", "a", "OpenAIChat.invoke", 1, 5, llm__model_name="gpt-4o")
    run = oi("agno", "AGENT", "a", "", "assistant.run", 0, 9, output__value="rate_limit_exceeded for now")
    lab.put(*(replace(span, version="0.1.28") for span in (run, model)))

    assert lab.rows("SELECT final_output FROM runs") == [(None,)]


def test_agno_named_its_agents_as_nodes(lab: Lab) -> None:
    """Through OpenInference 0.1.14: the id of a node is that of the span."""
    node = {"graph__node__id": "15317804759a7b7f", "graph__node__name": "assistant"}
    lab.put(replace(oi("agno", "AGENT", "a", "", "assistant.run", 0, 9, **node), version="0.1.14"))

    assert lab.rows("SELECT name FROM agents") == [("assistant",)]


def test_openlit_estimated_the_tokens_of_streams(lab: Lab) -> None:
    call = chat("m", at=1, **{"gen_ai.request.is_stream": True})
    call.attrs["telemetry.sdk.name"] = "openlit"
    lab.put(replace(call, scope="openlit.otel.tracing"))

    assert lab.rows("SELECT input_tokens, output_tokens FROM llm_calls") == [(None, None)]


def test_an_agent_below_one_that_had_ended_may_work_for_nobody(lab: Lab) -> None:
    lab.put(agent("a", to=50), agent("b", "a", at=60, to=90, agent="helper"))

    assert lab.rows("SELECT name, parent_activation_no, via FROM agents WHERE name = 'helper'") == [
        ("helper", None, None)
    ]
    assert ("agent-below-ended",) in lab.rows("SELECT reason FROM doubts WHERE relation = 'agents'")


def test_litellm_wrote_each_call_on_the_span_around_it(lab: Lab) -> None:
    """The program's own span has the attributes of the last call only."""

    def request(id: str, parent: str, at: int, to: int, tokens: int, scope: str) -> S:
        said = {"gen_ai.operation.name": "chat", "llm.request.type": "completion", "gen_ai.request.model": "gpt-4o",
                "gen_ai.usage.input_tokens": tokens, "gen_ai.usage.output_tokens": 5, "gen_ai.response.id": f"r{tokens}"}  # fmt: skip
        return S(id, parent, at, to, "raw_gen_ai_request" if parent else "handle", said, scope=scope)

    lab.put(
        request("p", "", 0, 90, 200, "shop"),
        request("m", "p", 1, 20, 100, "litellm"),
        request("n", "p", 30, 50, 200, "litellm"),
    )

    assert lab.totals("llm_calls", "input_tokens") == (2, 300)


@pytest.mark.parametrize(("tools", "calls"), [("[<function look at 0x7e>]", None), ("None", 0)])
def test_a_failed_request_of_google_may_follow_answered_ones(lab: Lab, tools: str, calls: int | None) -> None:
    """Where the SDK calls Python functions itself, one span covers all requests."""
    said = json.dumps({"config": f"http_options=None tools={tools} automatic_function_calling=None"})
    call = oi(
        "google_genai",
        "LLM",
        "m",
        "",
        "GenerateContent",
        0,
        9,
        error="503 overloaded",
        llm__model_name="g",
        input__value=said,
    )
    lab.put(replace(call, version="0.1.10"))

    assert lab.totals("llm_calls") == (calls,)
