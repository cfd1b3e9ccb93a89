"""Frameworks and programs in JavaScript: hand-made spans for what recordings show in part only, true facts.

The facts are those of the dialect files' sources; ids and figures are made up.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from building import Lab, S, agent, answered, asks, chat, tool
from instrumented import ACTIVATIONS, TOOLS

pytestmark = pytest.mark.full


CALLS = "SELECT call_id, arguments, outcome FROM tool_calls ORDER BY call_id"
COMMANDS = "SELECT text, exit_code FROM commands WHERE simple"


def ai(scope: str, id: str, parent: str, name: str, at: int, to: int, error: str | None = None, **attrs: Any) -> S:
    """A span of the AI SDK before version 7; keyword `x__y` is attribute ai.x.y."""
    words = {f"ai.{key.replace('__', '.')}": value for key, value in attrs.items()}
    return S(id, parent, at, to, name, {"ai.operationId": name, **words}, scope=scope, error=error)


def nameless(id: str, at: int, order: str) -> S:
    """An execution that states its arguments and no call id."""
    return tool(id, "a", at=at, tool="lookup", **{"gen_ai.tool.call.id": None,
                "gen_ai.tool.call.arguments": json.dumps({"order": order})})  # fmt: skip


class TestExecutionsWithoutIds:
    """A function that throws may leave no span: the next execution of its name is not its."""

    def test_the_same_arguments_before_the_order(self, lab: Lab) -> None:
        lab.put(
            agent("a"),
            chat("m", "a", at=1, **{"gen_ai.output.messages": asks(("c1", "lookup", {"order": "A"}))}),
            chat("n", "a", at=20, **{
                "gen_ai.input.messages": answered("c1", "Error: no such order"),
                "gen_ai.output.messages": asks(("c2", "lookup", {"order": "B"})),
            }),
            nameless("t", 30, "B"),
        )  # fmt: skip

        assert lab.rows(CALLS) == [("c1", '{"order":"A"}', None), ("c2", '{"order": "B"}', "ok")]

    def test_calls_at_once_may_start_in_another_order(self, lab: Lab) -> None:
        both = asks(("c1", "lookup", {"order": "A"}), ("c2", "lookup", {"order": "B"}))
        lab.put(agent("a"), chat("m", "a", at=1, **{"gen_ai.output.messages": both}), nameless("t", 10, "B"), nameless("u", 11, "A"))  # fmt: skip

        assert lab.rows("SELECT call_id, arguments FROM tool_calls ORDER BY call_id") == [
            ("c1", '{"order": "A"}'), ("c2", '{"order": "B"}'),
        ]  # fmt: skip

    def test_arguments_that_a_framework_completed_go_by_order(self, lab: Lab) -> None:
        """What no execution repeats word for word is the first that is left."""
        both = asks(("c1", "lookup", {"order": "A"}), ("c2", "lookup", {}))
        lab.put(agent("a"), chat("m", "a", at=1, **{"gen_ai.output.messages": both}), nameless("t", 10, "default"), nameless("u", 11, "A"))  # fmt: skip

        assert lab.rows("SELECT call_id, arguments FROM tool_calls ORDER BY call_id") == [
            ("c1", '{"order": "A"}'), ("c2", '{"order": "default"}'),
        ]  # fmt: skip


class TestClocksOfJavaScript:
    """A span starts at a whole millisecond and ends a measured time later, so that it may end up to one too early."""

    def test_an_inner_call_may_end_after_the_outer(self, lab: Lab) -> None:
        sent = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "gpt-4o", "gen_ai.usage.input_tokens": 100,
                "gen_ai.usage.output_tokens": 10}  # fmt: skip
        lab.put(
            S("m", "", 1, 9, "chat", sent, scope="@traceloop/instrumentation-langchain"),
            S(
                "n",
                "",
                2,
                11,
                "chat",
                sent | {"gen_ai.response.id": "chatcmpl-1"},
                scope="@traceloop/instrumentation-openai",
            ),
        )

        assert lab.totals("llm_calls", "input_tokens") == (1, 100)


class TestRequestsMadeAgain:
    def test_each_try_of_the_ai_sdk_is_a_span(self, lab: Lab) -> None:
        """One that was made again is no error; the last one is."""
        model: dict[str, Any] = {"model__id": "gpt-4o", "model__provider": "openai.chat"}
        used: dict[str, Any] = {"usage__inputTokens": 100, "usage__outputTokens": 10}
        lab.put(
            ai("ai", "a", "", "ai.generateText", 0, 90, "quota", **model),
            ai("ai", "m", "a", "ai.generateText.doGenerate", 1, 5, "429", **model),
            ai("ai", "n", "a", "ai.generateText.doGenerate", 10, 15, **model, **used),
            ai("ai", "o", "a", "ai.generateText.doGenerate", 20, 25, "quota", **model),
        )

        assert lab.totals("llm_calls", "input_tokens", "errors") == (1, 100, 1)
        assert lab.rows("SELECT message FROM errors") == [("quota",)]


class TestOpencode:
    def step(self) -> list[S]:
        failed = json.dumps({"title": "ls", "metadata": {"output": "ls: no", "exit": 2}, "output": "ls: no"})
        model: dict[str, Any] = {"model__id": "gpt-4o", "telemetry__functionId": "session.llm"}
        used: dict[str, Any] = {"usage__inputTokens": 100, "usage__outputTokens": 10}
        return [
            S("r", "", 0, 99, "LLM.run", {"session.id": "s"}, scope="opencode"),
            S("f", "r", 1, 2, "FileSystem.readJson", {}, scope="opencode", error="NotFound: auth.json"),
            ai("opencode", "a", "r", "ai.streamText", 3, 90, **model, **used),
            ai("opencode", "m", "a", "ai.streamText.doStream", 4, 50, **model, **used),
            ai("opencode", "t", "a", "ai.toolCall", 51, 60, toolCall__name="bash", toolCall__id="c1",
               toolCall__args='{"command": "ls nothing"}', toolCall__result=failed),
        ]  # fmt: skip

    def test_the_programs_own_functions_are_no_work_of_an_agent(self, lab: Lab) -> None:
        """Their failures are its ordinary course; a step is no agent, and the name of its function no agent's name."""
        lab.put(*self.step())

        assert lab.totals("llm_calls", "input_tokens", "tool_calls", "errors", "agents") == (1, 100, 1, 1, None)
        assert lab.rows("SELECT name FROM errors") == [("bash",)]
        assert lab.rows(ACTIVATIONS) == []

    def test_a_commands_exit_code_stands_in_its_result(self, lab: Lab) -> None:
        lab.put(*self.step())

        assert lab.rows(TOOLS) == [("bash", '{"command": "ls nothing"}', "error")]
        assert lab.rows(COMMANDS) == [("ls nothing", 2)]

    def test_a_command_that_a_permission_denies_did_not_run(self, lab: Lab) -> None:
        *spans, call = self.step()
        del call.attrs["ai.toolCall.result"]
        call.error = "The user has specified a rule which prevents you from using this specific tool call."
        call.events = [("exception", {"exception.type": "PermissionDeniedError", "exception.message": call.error})]
        lab.put(*spans, call)

        assert lab.rows(TOOLS) == [("bash", '{"command": "ls nothing"}', "blocked")]
        assert lab.rows(COMMANDS) == []


class TestCopilot:
    def run(self, exit_code: int) -> list[S]:
        spans = [
            agent("a", agent=None),
            chat("m", "a", at=1, **{"gen_ai.response.model": "gpt-4o"}),
            tool("t", "a", at=10, tool="bash", **{"gen_ai.tool.call.arguments": '{"command": "make"}', "process.exit.code": exit_code}),
        ]  # fmt: skip
        for span in spans:
            span.scope = "github.copilot"
        return spans

    @pytest.mark.parametrize(("code", "outcome"), [(0, "ok"), (2, "error")])
    def test_the_exit_code_says_whether_a_command_failed(self, lab: Lab, code: int, outcome: str) -> None:
        """The span's status does not."""
        lab.put(*self.run(code))

        assert lab.rows(TOOLS) == [("bash", '{"command": "make"}', outcome)]
        assert lab.rows(COMMANDS) == [("make", code)]

    def test_the_requested_model_stands_for_no_responding_one(self, lab: Lab) -> None:
        lab.put(*self.run(0))

        assert lab.rows("SELECT request_model, response_model FROM llm_calls") == [("gpt-4o", None)]

    def test_the_clis_own_agent_has_a_name(self, lab: Lab) -> None:
        lab.put(*self.run(0))

        assert lab.rows(ACTIVATIONS) == [("copilot", None, "root")]


def test_a_text_result_of_a_decorated_function_is_no_json(lab: Lab) -> None:
    """OpenLLMetry writes what a function returned as JSON, also a text."""
    words = {"traceloop.span.kind": "tool", "traceloop.entity.name": "get_weather", "traceloop.entity.output": '"21 degrees"'}  # fmt: skip
    lab.put(S("t", "", 0, 5, "get_weather.tool", words, scope="@traceloop/node-server-sdk"))

    assert lab.rows("SELECT name, result FROM tool_calls") == [("get_weather", "21 degrees")]


class TestLangGraphsTools:
    """Each runnable is a trace of its own; only the step around a tool names the tool, and the call, if it failed."""

    def step(self, id: str, name: str, at: int, to: int, status: str) -> S:
        answer = {"kwargs": {"content": f"{status} of {id}", "status": status}}
        words = {
            "traceloop.span.kind": "workflow", "traceloop.workflow.name": "RunnableSequence",
            "traceloop.entity.input": json.dumps({"lg_tool_call": {"name": name, "id": f"call_{id}", "args": {"of": id}}}),
            "traceloop.entity.output": json.dumps({"messages": [answer]}),
        }  # fmt: skip
        return S(id, "", at, to, "workflow RunnableSequence", words, scope=self.scope, trace=f"{id:0>32}")

    def ran(self, id: str, at: int, to: int, name: str | None) -> S:
        said = {"kwargs": {"name": name, "tool_call_id": f"call_{id}", "status": "success", "content": "found"}}
        words = {"gen_ai.operation.name": "execute_tool", "traceloop.entity.name": "DynamicStructuredTool"}
        words |= {"traceloop.entity.output": json.dumps(said)} if name else {}
        error = None if name else "no such order"
        return S(f"e{id}", "", at, to, "execute_tool DynamicStructuredTool", words, scope=self.scope, error=error, trace=f"{id:e>32}")  # fmt: skip

    scope = "@traceloop/instrumentation-langchain"

    def test_tools_that_fail_beside_each_other(self, lab: Lab) -> None:
        """One of them was none of the program's: nothing ran in its step."""
        lab.put(
            self.step("1", "refund", 1, 30, "error"), self.step("2", "search", 2, 40, "success"),
            self.step("3", "refund", 3, 35, "error"), self.step("4", "delete", 4, 28, "error"),
            self.ran("1", 5, 20, None), self.ran("2", 6, 21, "search"), self.ran("3", 7, 22, None),
        )  # fmt: skip

        assert lab.rows("SELECT name, call_id, arguments, outcome FROM tool_calls ORDER BY call_id") == [
            ("refund", "call_1", '{"of":"1"}', "error"), ("search", "call_2", '{"of":"2"}', "ok"),
            ("refund", "call_3", '{"of":"3"}', "error"), ("delete", "call_4", '{"of":"4"}', "error"),
        ]  # fmt: skip
        assert lab.totals("errors") == (3,)
