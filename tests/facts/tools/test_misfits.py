"""Tool calls for which no tool may have been run, though a span or a result stands for them (found by `make soak`)."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from building import SDK, Lab, S, agent, answered, asks, chat, says, tool

CALLS = "SELECT name, outcome FROM tool_calls ORDER BY call_no"
FAILED = {"exception.type": "ValueError", "exception.message": "no such city"}
TOOLS = json.dumps(
    [
        {
            "type": "function",
            "name": "get_weather",
            "parameters": {"type": "object", "required": ["city"], "properties": {}},
        }
    ]
)


def executed(scope: str, given: str, failure: dict[str, Any], **more: Any) -> list[S]:
    """A model asks for the weather, and the span of the execution failed."""
    asked = {"gen_ai.output.messages": asks(("c1", "get_weather", {})), "gen_ai.tool.definitions": TOOLS}
    sent = {"gen_ai.tool.call.id": "c1", "gen_ai.tool.call.arguments": given, **more}
    spans = [
        agent("a"),
        chat("m", "a", at=1, **asked),
        replace(tool("t", "a", at=20, **sent), error="it failed", events=[("exception", failure)]),
    ]
    return [replace(span, scope=scope) for span in spans]


@pytest.mark.parametrize(
    ("scope", "given", "failure", "more", "outcome"),
    [
        ("x", '{"city": "Oslo"}', FAILED, {}, "error"),
        ("x", "{}", FAILED, {}, None),
        ("x", '{"city": "Os', FAILED, {}, None),
        ("x", '"{\\"city\\": \\"Os"', FAILED, {}, None),
        ("x", '{"city": "Oslo"}', {"exception.type": "asyncio.exceptions.CancelledError"}, {}, None),
        ("x", '{"city": "Oslo"}', {"exception.type": "System.Threading.Tasks.TaskCanceledException"}, {}, None),
        ("pydantic-ai", "{}", FAILED, {"pydantic_ai.tool.failure_stage": "validation"}, "unexecuted"),
    ],
)
def test_a_failed_execution_may_be_none(
    scope: str, given: str, failure: dict[str, Any], more: dict[str, Any], outcome: str | None
) -> None:
    """Arguments that do not fit what the model was offered, and a call that was given up, leave it open."""
    lab = Lab().put(*executed(scope, given, failure, **more))

    assert lab.rows(CALLS) == [("get_weather", outcome)]


def test_a_failed_execution_of_a_broken_text_may_be_none(lab: Lab) -> None:
    """Whatever the framework made of the text: it may have called the tool with something that does not fit it."""
    parts = [{"type": "tool_call", "id": "c1", "name": "get_weather", "arguments": '{"city": "Os'}]
    output = json.dumps([{"role": "assistant", "parts": parts}])
    failed = replace(tool("t", "a", at=20, **{"gen_ai.tool.call.id": "c1"}), error="missing argument")
    lab.put(agent("a"), chat("m", "a", at=1, **{"gen_ai.output.messages": output}), failed)

    assert lab.rows(CALLS) == [("get_weather", None)]


@pytest.mark.parametrize(("asked", "given"), [('{"city": "Oslo"}', '{"city": "Oslo"}'), ('{"city": "Os', None)])
def test_what_a_tool_was_given_for_a_broken_text_is_unknown(asked: str, given: str | None) -> None:
    """Frameworks mend it, or pass the whole text as one argument; where the span of the execution says it, it holds."""
    output = json.dumps(
        [{"role": "assistant", "parts": [{"type": "tool_call", "id": "c1", "name": "get_weather", "arguments": asked}]}]
    )
    stated = {"gen_ai.tool.call.id": "c1", "gen_ai.tool.call.arguments": '{"city": "Rome"}'}
    spans = [agent("a"), chat("m", "a", at=1, **{"gen_ai.output.messages": output})]
    lab = Lab().put(*spans, tool("t", "a", at=20, **{"gen_ai.tool.call.id": "c1"}))
    lab.put(*spans, tool("t", "a", at=20, **stated), run="stated")

    assert lab.rows("SELECT outcome, arguments FROM tool_calls WHERE run_id = :run") == [("ok", given)]
    assert lab.rows("SELECT arguments FROM tool_calls WHERE run_id = :run", "stated") == [('{"city": "Rome"}',)]


def test_what_a_tool_needs_is_known_from_another_offer_of_it() -> None:
    """The model that asked for the call recorded nothing."""
    known = {"gen_ai.output.messages": says("Hello."), "gen_ai.tool.definitions": TOOLS}
    failing = replace(tool("t", "a", at=20, **{"gen_ai.tool.call.arguments": "{}"}), error="it failed")

    offered = Lab().put(agent("a"), chat("m", "a", at=1), failing, chat("n", "a", at=30, **known))
    not_offered = Lab().put(agent("a"), chat("m", "a", at=1), failing, chat("n", "a", at=30))

    assert offered.rows(CALLS) == [("get_weather", None)]
    assert not_offered.rows(CALLS) == [("get_weather", "error")]


@pytest.mark.parametrize(
    ("name", "arguments", "outcome"),
    [("get_weather", {"city": "Oslo"}, "unknown"), ("get_weather", {}, None), ("get_wether", {"city": "Oslo"}, None)],
)
def test_a_program_may_refuse_a_call(name: str, arguments: dict[str, Any], outcome: str | None) -> None:
    """Where no execution has a span an answer says that the tool was run, unless the call does not fit what was offered."""
    first = {"gen_ai.output.messages": asks(("c1", name, arguments)), "gen_ai.tool.definitions": TOOLS}
    second = {"gen_ai.input.messages": answered("c1", "Error"), "gen_ai.output.messages": says("no")}
    lab = Lab().put(*(replace(span, scope=SDK) for span in (chat("m", at=1, **first), chat("n", at=10, **second))))

    assert lab.rows(CALLS) == [(name, outcome)]


TYPED = json.dumps(
    {
        "type": "object",
        "required": ["city"],
        "properties": {"city": {"type": "string"}, "days": {"type": ["integer", "null"]}, "any": {}},
    }
)


@pytest.mark.parametrize(
    ("arguments", "outcome"),
    [
        ('{"city": "Oslo"}', "unknown"),
        ('{"city": "Oslo", "days": 2, "any": [1]}', "unknown"),
        ('{"city": "Oslo", "days": null}', "unknown"),
        ('{"city": {"name": "Oslo"}}', None),
        ('{"city": "Oslo", "days": "two"}', None),
        ('["Oslo"]', None),
        ("7", None),
        ('"Oslo"', None),
    ],
)
def test_a_program_may_refuse_arguments_of_another_type(arguments: str, outcome: str | None) -> None:
    """Values that are not of the type that the tool's definition states, and arguments that are no object."""
    definition = {"type": "function", "function": {"name": "get_weather", "parameters": json.loads(TYPED)}}
    offered = {"llm.tools.0.tool.json_schema": json.dumps(definition)}

    assert of_program(offered, "get_weather", arguments).rows(CALLS) == [("get_weather", outcome)]


SCHEMA = json.dumps({"type": "object", "required": ["city"], "properties": {}})
OPENINFERENCE = {"llm.tools.0.tool.json_schema": json.dumps(json.loads(TOOLS)[0])}
OPENLLMETRY = {"llm.request.functions.0.name": "get_weather", "llm.request.functions.0.parameters": SCHEMA}


@pytest.mark.parametrize("offered", [OPENINFERENCE, OPENLLMETRY], ids=["one attribute a tool", "one attribute a field"])
@pytest.mark.parametrize(
    ("name", "arguments", "outcome"),
    [("get_weather", '{"city": "Oslo"}', "unknown"), ("get_weather", "{}", None), ("get_wether", "{}", None)],
)
def test_offers_are_read_from_attributes_that_number_them(
    offered: dict[str, str], name: str, arguments: str, outcome: str | None
) -> None:
    assert of_program(offered, name, arguments).rows(CALLS) == [(name, outcome)]


def test_offers_of_which_one_was_dropped_say_nothing() -> None:
    """An SDK drops attributes past its limit: that a tool is not among the rest says nothing."""
    rest = {key.replace(".0.", ".1."): value for key, value in OPENINFERENCE.items()}

    assert of_program(rest, "get_wether", "{}", "It rains").rows(CALLS) == [("get_wether", "unknown")]


def of_program(offered: dict[str, str], name: str, arguments: str, result: str = "Error") -> Lab:
    """A program asks a model twice; the second request carries the result of the call that the first answer asked for."""
    if "llm.request.functions.0.name" in offered:
        scope, attributes = "opentelemetry.instrumentation.openai.v1", {"llm.request.type": "chat"}
        first = {"gen_ai.output.messages": asks(("c1", name, json.loads(arguments)))}
        second = {"gen_ai.input.messages": answered("c1", result), "gen_ai.output.messages": says("no")}
    else:
        scope, attributes = "openinference.instrumentation.openai", {"openinference.span.kind": "LLM"}
        written, read = "llm.output_messages.0.message", "llm.input_messages.0.message"
        call = f"{written}.tool_calls.0.tool_call"
        first = {f"{call}.id": "c1", f"{call}.function.name": name, f"{call}.function.arguments": arguments}
        second = {f"{read}.role": "tool", f"{read}.tool_call_id": "c1", f"{read}.content": result}
    spans = (chat("m", at=1, **attributes, **offered, **first), chat("n", at=10, **attributes, **offered, **second))
    return Lab().put(*(replace(span, scope=scope) for span in spans))


REPLY = (
    "ChatMessage(_role=<ChatRole.ASSISTANT: 'assistant'>, _content=[ToolCall(tool_name='get_weather', "
    "arguments={'city': 'Oslo'}, id='c1', extra=None)], _name=None, _meta={'finish_reason': 'tool_calls'})"
)


def haystack(*results: str) -> Lab:
    """An agent of Haystack, which failed; its model is asked again for each result, of which Haystack says that it is a failure."""
    attributes = {"openinference.span.kind": "LLM", "llm.model_name": "gpt-4o"}
    failed = replace(agent("a"), name="Agent.run", attrs={"openinference.span.kind": "CHAIN"}, error="it failed")
    spans = [failed, chat("m", "a", at=1, **attributes, **{"output.value": json.dumps({"replies": [REPLY]})})]
    for at, text in enumerate(results, 1):
        message = (
            f"ChatMessage(_role=<ChatRole.TOOL: 'tool'>, _content=[ToolCallResult(result={text!r}, "
            "origin=ToolCall(tool_name='get_weather', arguments={'city': 'Oslo'}, id='c1', extra=None), error=True)], "
            "_name=None, _meta={})"
        )
        sent = {"input.value": json.dumps({"messages": [REPLY, message]})}
        spans.append(chat(f"m{at}", "a", at=at * 10, **attributes, **sent))
    return Lab().put(*(replace(span, scope="openinference.instrumentation.haystack") for span in spans))


@pytest.mark.parametrize(
    ("result", "outcome"),
    [
        ("Failed to invoke Tool `get_weather`. Error: no such city", "error"),
        ("Failed to invoke Tool `get_weather`. Error: missing a required argument: 'day'", None),
        ("Tool 'get_weather' not found. Available tools: none", "unexecuted"),
    ],
)
def test_a_failure_is_the_tools_where_the_frameworks_refusals_are_known(result: str, outcome: str | None) -> None:
    """Haystack says of a result that it is a failure, and in its own words where it ran no tool."""
    assert haystack(result).rows(CALLS) == [("get_weather", outcome)]


def test_what_an_agent_ran_before_it_failed_is_unknown_where_executions_have_no_spans() -> None:
    lab = haystack()

    assert lab.rows(CALLS) == [("get_weather", "requested")]
    assert lab.totals("tool_calls") == (None,)


@pytest.mark.parametrize(("others", "outcome"), [('{"city": "Oslo"}', None), (None, "error")])
def test_a_failed_call_that_was_asked_for_without_arguments_may_be_none(
    others: str | None, outcome: str | None
) -> None:
    """Where another request has its arguments, none were sent with this one; where none has, they are not recorded."""
    calls = [("c1", "get_weather", None), ("c2", "get_weather", others)]
    asked = json.dumps(
        [{"parts": [{"type": "tool_call", "id": one, "name": name, "arguments": given} for one, name, given in calls]}]
    )
    offered = {"gen_ai.output.messages": asked, "gen_ai.tool.definitions": TOOLS}
    failed = replace(tool("t", "a", at=20, **{"gen_ai.tool.call.id": "c1"}), error="it failed")
    lab = Lab().put(agent("a"), chat("m", "a", at=1, **offered), failed)

    assert lab.rows("SELECT outcome FROM tool_calls WHERE call_id = 'c1'") == [(outcome,)]


@pytest.mark.parametrize(("ids", "errors"), [(("c1", "c1"), None), (("c1", "c2"), 0)])
def test_whether_two_calls_with_one_id_ended_the_run_is_unknown(ids: tuple[str, str], errors: int | None) -> None:
    """Some frameworks fail on such an answer, in no span."""
    asked = asks(*((one, "get_weather", {"city": city}) for one, city in zip(ids, ("Oslo", "Rome"), strict=True)))
    offered = {"gen_ai.output.messages": asked, "gen_ai.tool.definitions": TOOLS}
    lab = Lab().put(agent("a"), chat("m", "a", at=1, **offered))

    assert lab.totals("errors") == (errors,)


@pytest.mark.parametrize(
    ("given", "arguments"), [('"Oslo"', None), ("7", None), ('{"city": "Oslo"}', '{"city": "Oslo"}')]
)
def test_what_a_tool_got_that_ran_for_a_text_is_the_frameworks_choice(given: str, arguments: str | None) -> None:
    """Smolagents passes it by position to a tool that takes its arguments by name."""
    asked = asks(("c1", "get_weather", json.loads(given)))
    offered = {"gen_ai.output.messages": asked, "gen_ai.tool.definitions": TOOLS}
    ran = tool("t", "a", at=20, **{"gen_ai.tool.call.id": "c1", "gen_ai.tool.call.arguments": given})
    lab = Lab().put(agent("a"), chat("m", "a", at=1, **offered), ran)

    assert lab.rows("SELECT outcome, arguments FROM tool_calls") == [("ok", arguments)]


@pytest.mark.parametrize(("call_id", "outcome"), [(None, None), ("c1", "error")])
def test_a_failure_of_lacking_arguments_is_of_another_call_than_one_that_has_them(
    call_id: str | None, outcome: str | None
) -> None:
    """Where an execution records neither id nor arguments, only its name says which request it carried out."""
    asked = {
        "gen_ai.output.messages": asks(("c1", "get_weather", {"city": "Oslo"})),
        "gen_ai.tool.definitions": TOOLS,
    }
    failed = replace(
        tool("t", "a", at=20, **{"gen_ai.tool.call.id": call_id}),
        error="TypeError: forward() missing 1 required positional argument: 'city'",
    )

    assert Lab().put(agent("a"), chat("m", "a", at=1, **asked), failed).rows(CALLS) == [("get_weather", outcome)]
