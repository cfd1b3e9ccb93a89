"""Frameworks in Python through OpenInference, OpenLLMetry and others: hand-made spans for what no recording shows.

The facts are those of the dialect files' sources; ids and figures are made up.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from building import Lab, S, agent, asks, chat, hex_id, tool
from instrumented import ACTIVATIONS, OWNERS, TOOLS, oi, tl

pytestmark = pytest.mark.full


class TestCrewAI:
    def kickoff(self, id: str, at: int, calls: int = 2) -> S:
        usage = {"prompt_tokens": 1000, "completion_tokens": 50, "cached_prompt_tokens": 600, "reasoning_tokens": 7,
                 "cache_creation_tokens": 0, "successful_requests": calls}  # fmt: skip
        said = {"raw": "21 degrees", "token_usage": usage}
        return oi("crewai", "CHAIN", id, "", f"Crew_{id}.kickoff", at, at + 50, output__value=said)

    def tool(self, id: str, parent: str, at: int, coworker: str, result: str = "done") -> S:
        said = {"task": "weather", "context": "none", "coworker": coworker}
        return oi("crewai", "TOOL", id, parent, "Delegate work to coworker.run", at, at + 20,
                  tool__name="Delegate work to coworker", input__value=said, output__value=result,
                  tool__description="Tool Name: delegate_work_to_coworker\nTool Arguments: {}")  # fmt: skip

    def agent(self, id: str, parent: str, at: int, role: str, **attrs: Any) -> S:
        return oi("crewai", "AGENT", id, parent, f"{role}._execute_core", at, at + 40, graph__node__id=role, **attrs)

    def test_totals_without_calls(self, lab: Lab) -> None:
        """The number of calls is stated, which they were is not; of several, one without usage may be left out of the sums."""
        tokens = ("input_tokens", "output_tokens", "cache_read_tokens", "reasoning_tokens")
        lab.put(self.kickoff("k", 0), self.agent("a", "k", 1, "assistant"))
        lab.put(self.kickoff("l", 0, calls=1), self.agent("b", "l", 1, "assistant"), run="one")

        assert lab.totals("llm_calls", *tokens, "failed_llm_attempts") == (2, None, None, None, None, None)
        assert lab.totals("input_tokens_low", "output_tokens_low") == (1000, 50)
        assert lab.totals("llm_calls", *tokens, "failed_llm_attempts", run="one") == (1, 1000, 50, 600, 7, None)
        assert lab.rows("SELECT * FROM llm_calls") == []

    def test_totals_that_may_hold_earlier_ones_are_not_added(self, lab: Lab) -> None:
        """A model's counter goes on from one kickoff to the next."""
        lab.put(self.kickoff("k", 0), self.kickoff("l", 100, calls=4))

        assert lab.totals("llm_calls_low", "llm_calls_high") == (4, 6)
        assert lab.totals("input_tokens_low", "input_tokens_high") == (1000, None)
        assert lab.totals("output_tokens_low", "output_tokens_high") == (50, None)

    def test_a_coworker_works_inside_of_the_tool_span(self, lab: Lab) -> None:
        """And a tool that he calls is his."""
        lab.put(
            self.kickoff("k", 0),
            self.agent("a", "k", 1, "assistant"),
            self.tool("d", "a", 2, "researcher"),
            oi(
                "crewai",
                "TOOL",
                "t",
                "d",
                "get_weather.run",
                3,
                5,
                tool__name="get_weather",
                input__value={"city": "Rome"},
            ),
        )

        assert lab.rows(ACTIVATIONS) == [("assistant", None, "root"), ("researcher", 1, "tool")]
        assert lab.rows("SELECT name, agent_span_id FROM tool_calls ORDER BY call_no") == [
            ("delegate_work_to_coworker", hex_id("a")), ("get_weather", hex_id("d")),
        ]  # fmt: skip

    def test_an_unknown_coworker_did_not_work(self, lab: Lab) -> None:
        refused = "\nError executing tool. coworker mentioned not found, it must be one of the following options:\n- x"
        lab.put(self.agent("a", "", 1, "assistant"), self.tool("d", "a", 2, "nobody", refused))

        assert lab.rows(ACTIVATIONS) == [("assistant", None, "root")]

    def test_one_agent_after_another_is_no_delegation(self, lab: Lab) -> None:
        """`graph.node.parent_id` is the crew's order."""
        lab.put(
            self.kickoff("k", 0),
            self.agent("a", "k", 1, "assistant"),
            self.agent("b", "k", 45, "researcher", graph__node__parent_id="assistant"),
        )

        assert lab.rows(ACTIVATIONS) == [("assistant", None, "root"), ("researcher", None, "root")]

    def test_openllmetrys_agent_totals_never_count(self, lab: Lab) -> None:
        """They are those of the agent's whole life, and repeat the model calls below."""
        life = {
            "gen_ai__usage__input_tokens": 900,
            "gen_ai__usage__output_tokens": 90,
            "traceloop__span__kind": "agent",
        }
        usage = {"gen_ai__usage__input_tokens": 100, "gen_ai__usage__output_tokens": 10}
        lab.put(
            tl("crewai", "w", "", "crewai.workflow", 0, 90, traceloop__span__kind="workflow"),
            tl("crewai", "a", "w", "assistant.agent", 1, 80, **life),
            tl("crewai", "m", "a", "gpt-4o.llm", 2, 9, **usage),
            tl("crewai", "n", "a", "gpt-4o.llm", 12, 19, **usage),
        )

        assert lab.totals("llm_calls", "input_tokens", "output_tokens", "tool_calls") == (2, 200, 20, None)
        assert lab.rows("SELECT DISTINCT request_model FROM llm_calls") == [("gpt-4o",)]
        assert lab.rows(ACTIVATIONS) == [("assistant", None, "root")]


class TestSmolagents:
    def tool(self, id: str, parent: str, name: str, args: list[Any], kwargs: dict[str, Any]) -> S:
        said = {"args": args, "sanitize_inputs_outputs": True, "kwargs": kwargs}
        span = "FinalAnswerTool" if name == "final_answer" else "SimpleTool"
        return oi("smolagents", "TOOL", id, parent, span, 10, 12, tool__name=name, input__value=said)

    def test_code_agents_call_tools_from_code(self, lab: Lab) -> None:
        """They were not asked for in a message, and positional arguments have no names: they are unknown."""
        lab.put(
            oi("smolagents", "AGENT", "a", "", "CodeAgent.run", 0, 90),
            oi("smolagents", "CHAIN", "s", "a", "Step 1", 1, 50),
            self.tool("t", "s", "get_weather", [], {"city": "Paris"}),
            self.tool("u", "s", "get_weather", ["Rome"], {}),
            self.tool("f", "s", "final_answer", ["21 degrees"], {}),
        )

        assert lab.rows(TOOLS) == [("get_weather", '{"city":"Paris"}', "ok"), ("get_weather", None, "ok")]
        assert lab.rows(ACTIVATIONS) == [(None, None, "root")], "the class is not a name"

    def test_a_managed_agent_is_a_tool_call_and_an_agent(self, lab: Lab) -> None:
        asks = {f"llm__output_messages__0__message__tool_calls__0__tool_call__{key}": value for key, value in (
            ("id", "c1"), ("function__name", "researcher"), ("function__arguments", '{"task": "weather"}'))}  # fmt: skip
        model = {"llm__model_name": "gpt-4o", "llm__token_count__prompt": 100, "llm__token_count__completion": 10}
        sums = {"llm__token_count__prompt": 100, "llm__token_count__completion": 10}
        lab.put(
            oi("smolagents", "AGENT", "a", "", "assistant.run", 0, 90, **sums),
            oi("smolagents", "CHAIN", "s", "a", "Step 1", 1, 80),
            oi("smolagents", "LLM", "m", "s", "OpenAIModel.generate", 2, 9, **model, **asks),
            oi(
                "smolagents",
                "AGENT",
                "b",
                "s",
                "researcher.run",
                10,
                60,
                "boom",
                **sums,
                input__value={"task": "You are…"},
            ),
            oi("smolagents", "CHAIN", "r", "b", "Step 1", 11, 50),
            oi("smolagents", "LLM", "n", "r", "OpenAIModel.generate", 12, 19, **model),
        )

        assert lab.rows("SELECT name, arguments, outcome, span_id FROM tool_calls") == [
            ("researcher", '{"task": "weather"}', "error", hex_id("b"))
        ]
        assert lab.rows(ACTIVATIONS) == [("assistant", None, "root"), ("researcher", 1, "tool")]
        assert lab.rows(OWNERS) == [(hex_id("m"), "assistant"), (hex_id("n"), "researcher")]
        assert lab.totals("llm_calls", "input_tokens", "tool_calls", "errors") == (2, 200, 1, 1)
        assert lab.rows("SELECT DISTINCT request_model, response_model FROM llm_calls") == [("gpt-4o", None)]

    @pytest.mark.parametrize(
        ("error", "codes"),
        [
            ("AgentGenerationError: Error while generating output", []),
            ("AgentExecutionError: no such order", ["missing_parent"]),
        ],
    )
    def test_the_agents_span_is_lost_with_the_agents_error_only(self, lab: Lab, error: str, codes: list[str]) -> None:
        """An error that ends the run leaves steps without a parent; any other orphan lost it on the way."""
        lab.put(
            oi("smolagents", "CHAIN", "s", "gone", "Step 1", 0, 9),
            oi("smolagents", "CHAIN", "t", "gone", "Step 2", 10, 19, error),
        )

        assert lab.reasons() == codes


class TestOpenAIAgentsThroughOpenLLMetry:
    def agent(self, id: str, name: str, at: int, to: int) -> S:
        return tl("openai_agents", id, "w", f"{name}.agent", at, to, traceloop__span__kind="agent",
                  gen_ai__agent__name=name, gen_ai__operation__name="invoke_agent")  # fmt: skip

    def tool(self, id: str, parent: str, name: str, at: int, to: int) -> S:
        return tl("openai_agents", id, parent, f"{name}.tool", at, to, traceloop__span__kind="tool",
                  gen_ai__tool__name=name, gen_ai__operation__name="execute_tool")  # fmt: skip

    def workflow(self) -> S:
        return tl("openai_agents", "w", "", "Agent Workflow", 0, 100, traceloop__span__kind="workflow")

    def test_agents_as_tools_of_agents_as_tools(self, lab: Lab) -> None:
        """All activations are siblings: the innermost tool span around the time of one called it."""
        lab.put(
            self.workflow(),
            self.agent("a", "assistant", 1, 99),
            self.tool("t", "a", "ask_researcher", 10, 90),
            self.agent("b", "researcher", 11, 89),
            self.tool("u", "b", "ask_clerk", 20, 60),
            self.agent("c", "clerk", 21, 59),
        )

        assert lab.rows(ACTIVATIONS) == [("assistant", None, "root"), ("researcher", 1, "tool"), ("clerk", 2, "tool")]

    def test_tools_of_two_agents_at_once_leave_the_caller_unknown(self, lab: Lab) -> None:
        lab.put(
            self.workflow(),
            self.agent("a", "assistant", 1, 99),
            self.agent("b", "helper", 2, 98),
            self.tool("t", "a", "ask_clerk", 10, 60),
            self.tool("u", "b", "ask_clerk", 20, 70),
            self.agent("c", "clerk", 25, 50),
        )

        assert lab.rows(ACTIVATIONS)[2] == ("clerk", None, "tool")

    def test_a_handoff_goes_to_the_next_activation(self, lab: Lab) -> None:
        lab.put(
            self.workflow(),
            self.agent("a", "assistant", 1, 20),
            tl("openai_agents", "h", "a", "assistant → unknown.handoff", 15, 16, traceloop__span__kind="handoff",
               gen_ai__operation__name="handoff", gen_ai__handoff__from_agent="assistant"),
            self.agent("b", "researcher", 21, 90),
            self.agent("c", "clerk", 91, 95),
        )  # fmt: skip

        assert lab.rows(ACTIVATIONS)[:2] == [("assistant", None, "root"), ("researcher", 1, "handoff")]
        assert lab.totals("tool_calls") == (0,)


class TestOpenLLMetry:
    def test_decorated_functions(self, lab: Lab) -> None:
        """Workflows and tasks are steps; a tool's keyword arguments are its arguments, positional ones have no names."""
        lab.put(
            tl("x", "w", "", "chat.workflow", 0, 90, traceloop__span__kind="workflow", traceloop__entity__name="chat"),
            tl("x", "k", "w", "plan.task", 1, 80, traceloop__span__kind="task", traceloop__entity__name="plan"),
            tl("x", "a", "k", "assistant.agent", 2, 70, traceloop__span__kind="agent", traceloop__entity__name="assistant"),
            tl("x", "t", "a", "get_weather.tool", 3, 5, traceloop__span__kind="tool", traceloop__entity__name="get_weather",
               traceloop__entity__input={"args": [], "kwargs": {"city": "Paris"}}, traceloop__entity__output="21 C"),
            tl("x", "u", "a", "get_weather.tool", 6, 8, traceloop__span__kind="tool", traceloop__entity__name="get_weather",
               traceloop__entity__input={"args": ["Rome"], "kwargs": {}}, traceloop__entity__output="19 C"),
        )  # fmt: skip

        assert lab.rows(ACTIVATIONS) == [("assistant", None, "root")]
        assert lab.rows(TOOLS) == [("get_weather", '{"city":"Paris"}', "ok"), ("get_weather", None, "ok")]

    def test_names_before_053(self, lab: Lab) -> None:
        """Capitalised systems, indexed messages, prompt and completion tokens; Anthropic's input with the cached."""
        lab.put(
            tl("anthropic", "m", "", "anthropic.chat", 0, 9, llm__request__type="chat", gen_ai__system="Anthropic",
               gen_ai__request__model="claude-sonnet-4", gen_ai__response__model="claude-sonnet-4-20250514",
               gen_ai__usage__prompt_tokens=100, gen_ai__usage__completion_tokens=10, llm__is_streaming=False,
               gen_ai__usage__cache_read_input_tokens=50, gen_ai__completion__0__role="assistant",
               gen_ai__completion__0__tool_calls__0__id="c1", gen_ai__completion__0__tool_calls__0__name="get_weather",
               gen_ai__completion__0__tool_calls__0__arguments='{"city": "Paris"}'),
            tl("cohere", "r", "", "cohere.rerank", 10, 12, llm__request__type="rerank"),
        )  # fmt: skip

        assert lab.rows("SELECT provider, input_tokens, output_tokens, cache_read_tokens FROM llm_calls") == [
            ("anthropic", 100, 10, 50)
        ]
        assert lab.rows(TOOLS) == [("get_weather", '{"city": "Paris"}', None)]
        assert lab.rows("SELECT certain FROM tool_calls") == [(False,)]
        assert lab.rows("SELECT kind FROM spans WHERE name = 'cohere.rerank'") == [("retrieval",)]

    @pytest.mark.parametrize(
        "sent", [{}, {"gen_ai__is_streaming": True}], ids=["as messages.stream() is recorded", "a stream"]
    )
    def test_output_tokens_of_what_may_be_a_stream_are_unknown(self, lab: Lab, sent: dict[str, bool]) -> None:
        """Of a stream the tokens of its first event are counted twice."""
        lab.put(tl("anthropic", "m", "", "anthropic.chat", 0, 9, gen_ai__operation__name="chat", gen_ai__request__model="claude-sonnet-4",
                   gen_ai__usage__input_tokens=100, gen_ai__usage__output_tokens=11, **sent))  # fmt: skip

        assert lab.totals("llm_calls", "input_tokens", "output_tokens") == (1, 100, None)

    def test_the_sdks_own_count_wins_next_to_it(self, lab: Lab) -> None:
        """OpenLLMetry's output count of a streamed Anthropic answer is one too many."""
        sent = {"gen_ai.operation.name": "chat", "gen_ai.response.id": "msg_1", "gen_ai.usage.input_tokens": 100}
        lab.put(
            agent("a"),
            S("m", "a", 1, 9, "anthropic.chat", {**sent, "gen_ai.usage.output_tokens": 11, "llm.request.type": "chat"},
              scope="opentelemetry.instrumentation.anthropic"),
            S("n", "a", 1, 8, "anthropic.messages.create", {**sent, "gen_ai.usage.output_tokens": 10},
              scope="com.anthropic.sdk.python"),
        )  # fmt: skip

        assert lab.totals("llm_calls", "output_tokens") == (1, 10)

    def test_mcp_layers_are_one_call(self, lab: Lab) -> None:
        """The framework's span, the client's and the server's record one call; its methods are infrastructure."""
        lab.put(
            agent("a"),
            tool("t", "a", at=1),
            tl("mcp", "c", "t", "get_weather.tool", 1, 3, traceloop__span__kind="tool", traceloop__entity__name="get_weather",
               traceloop__entity__input={"tool_name": "get_weather", "arguments": {"city": "Paris"}}),
            tl("mcp", "s", "c", "mcp.server", 1, 3, traceloop__span__kind="server"),
            tl("mcp", "u", "s", "get_weather.tool", 1, 2, "boom", traceloop__span__kind="tool", error__type="tool_error"),
            tl("mcp", "l", "a", "tools/list.mcp", 0, 1),
        )  # fmt: skip

        assert lab.rows(TOOLS) == [("get_weather", '{"city":"Paris"}', "error")]
        assert lab.totals("tool_calls", "errors") == (1, 1)


class TestMcp:
    def layer(self, id: str, at: int, to: int, error: str | None = None, **attrs: Any) -> S:
        """A client's or server's span that lost its context: it starts a separate trace."""
        words = {"mcp.method.name": "tools/call", "gen_ai.tool.name": "get_weather", **attrs}
        return S(
            id, "", at, to, "tools/call get_weather", words, error=error, trace=f"{at:032x}", scope="mcp-python-sdk"
        )

    def test_a_layer_in_a_trace_of_its_own_is_the_frameworks_call(self, lab: Lab) -> None:
        """Client and server of two calls at once; the call belongs to the agent, and fails with its layer."""
        first, second = tool("t", "a", at=10), tool("u", "a", at=12)
        first.to, second.to = 40, 50
        lab.put(agent("a"), first, second, self.layer("c", 13, 39), self.layer("d", 15, 49, "boom"))

        assert lab.rows("SELECT span_id, outcome FROM tool_calls ORDER BY call_no") == [
            (hex_id("t"), "ok"), (hex_id("u"), "error"),
        ]  # fmt: skip
        assert lab.totals("tool_calls", "errors") == (2, 1)

    def test_without_a_framework_it_is_the_call(self, lab: Lab) -> None:
        """Two at once are two, also where one lasts as long as both; another tool's time says nothing."""
        other = tool("t", "a", at=1, tool="ask")
        other.to = 90
        lab.put(agent("a"), other, self.layer("c", 13, 60), self.layer("d", 15, 49))

        assert lab.totals("tool_calls") == (3,)

    def test_a_success_that_says_is_error_is_a_failure(self, lab: Lab) -> None:
        """A JSON-RPC answer can hold a tool's failure."""
        said = {"content": [{"type": "text", "text": "no such city"}], "isError": True}
        lab.put(S("c", "", 0, 5, "tools/call get_weather", {
            "mcp.method.name": "tools/call", "gen_ai.tool.name": "get_weather",
            "gen_ai.tool.call.result": json.dumps(said)}))  # fmt: skip

        assert lab.rows(TOOLS) == [("get_weather", None, "error")]


class TestOpenAIAgentsContrib:
    def span(self, id: str, parent: str, name: str, at: int, to: int, error: str | None = None, **attrs: Any) -> S:
        words = {f"gen_ai.{key.replace('__', '.')}": value for key, value in attrs.items()}
        return S(id, parent, at, to, name, words, scope="opentelemetry.instrumentation.openai_agents", error=error)

    def test_turns_handoffs_and_what_was_closed_unfinished(self, lab: Lab) -> None:
        lab.put(
            self.span("k", "", "unknown", 0, 99, operation__name="unknown"),
            self.span("a", "k", "invoke_agent assistant", 1, 20, operation__name="invoke_agent", agent__name="assistant",
                      usage__input_tokens=100, usage__output_tokens=10),
            self.span("m", "a", "chat gpt-4o", 2, 9, operation__name="chat", request__model="gpt-4o",
                      usage__input_tokens=100, usage__output_tokens=10),
            self.span("h", "a", "agent_handoff OpenAI Agent", 10, 11, "odd", operation__name="agent_handoff",
                      handoff__from_agent="assistant", handoff__to_agent="researcher"),
            self.span("b", "k", "invoke_agent researcher", 21, 90, "Trace ended before span completion",
                      operation__name="invoke_agent", agent__name="researcher"),
        )  # fmt: skip

        assert lab.totals("llm_calls", "input_tokens", "errors") == (1, 100, 0)
        assert lab.rows(ACTIVATIONS) == [("assistant", None, "root"), ("researcher", 1, "handoff")]


def test_autogen(lab: Lab) -> None:
    """The runtime's messages are infrastructure, creating an agent is no activation, `autogen` is no provider."""
    base = {"gen_ai.system": "autogen"}
    lab.put(
        S("c", "", 0, 1, "create_agent assistant", {**base, "gen_ai.operation.name": "create_agent", "gen_ai.agent.name": "assistant"}, scope="autogen-core"),
        S("p", "", 2, 90, "autogen process assistant", {"messaging.operation": "process"}, scope="autogen-core"),
        S("a", "p", 3, 80, "invoke_agent assistant", {**base, "gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "assistant"}, scope="autogen-core"),
        S("t", "a", 4, 9, "execute_tool get_weather", {**base, "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "get_weather"}, scope="autogen-core"),
    )  # fmt: skip

    assert lab.rows(ACTIVATIONS) == [("assistant", None, "root")]
    assert lab.totals("tool_calls", "llm_calls", "input_tokens", "failed_llm_attempts") == (1, None, None, None)
    assert lab.rows("SELECT kind FROM spans WHERE name = 'autogen process assistant'") == [("infra",)]


def test_llama_index(lab: Lab) -> None:
    """A class is no tool's name, arguments stand under `kwargs`, the configured model is not the one that answered."""
    lab.put(
        oi("llama_index", "LLM", "m", "", "OpenAI.achat", 0, 5, llm__model_name="gpt-4o", llm__token_count__prompt=100,
           llm__token_count__completion=10),
        oi("llama_index", "TOOL", "t", "", "FunctionTool.acall", 6, 9, tool__name="get_weather",
           input__value={"args": [], "kwargs": {"city": "Paris"}}),
        oi("llama_index", "TOOL", "u", "t", "FunctionTool.call", 7, 8, tool__name="get_weather",
           input__value={"kwargs": {"city": "Paris"}}),
    )  # fmt: skip

    assert lab.rows("SELECT request_model, response_model FROM llm_calls") == [("gpt-4o", None)]
    assert lab.rows(TOOLS) == [("get_weather", '{"city":"Paris"}', "ok")]


def test_haystack(lab: Lab) -> None:
    """A generator is a model call; its usage stands in its output."""
    reply = {
        "replies": [{"meta": {"model": "gpt-4o-2024-08-06", "usage": {"prompt_tokens": 100, "completion_tokens": 10}}}]
    }

    def component(id: str, kind: str, at: int, **attrs: str) -> S:
        words = {f"haystack.component.{key}": value for key, value in attrs.items()}
        return S(
            id,
            "p",
            at,
            at + 5,
            "haystack.component.run",
            {"haystack.component.type": kind, "haystack.component.name": kind, **words},
            scope="haystack",
        )

    lab.put(
        S("p", "", 0, 50, "haystack.pipeline.run"),
        component("m", "OpenAIChatGenerator", 1, output=json.dumps(reply)),
        component("n", "OpenAIChatGenerator", 11),
        component("b", "PromptBuilder", 21),
    )  # fmt: skip

    assert lab.totals("llm_calls", "input_tokens", "input_tokens_low", "tool_calls") == (2, None, 100, None)
    assert lab.rows("SELECT kind FROM spans ORDER BY start_ns") == [("chain",), ("llm",), ("llm",), ("chain",)]


class TestPlainSdk:
    """The official instrumentation of the OpenAI SDK: model calls only, what the SDK retries inside of one span."""

    def call(self, id: str, at: int, reason: str, **attrs: Any) -> S:
        span = chat(id, "", at=at, **{"gen_ai.response.finish_reasons": [reason], **attrs})
        span.scope = "opentelemetry.util.genai.handler"
        return span

    def test_tools_outside_of_any_span(self, lab: Lab) -> None:
        """A tool was asked for, and nothing says what became of it: neither calls nor errors are known."""
        lab.put(self.call("m", 0, "tool_calls"), self.call("n", 10, "stop"))

        assert lab.totals("llm_calls", "tool_calls", "errors", "unrecovered_errors", "failed_llm_attempts", "agents") == (
            2, None, None, None, None, None,
        )  # fmt: skip

    def test_no_tool_was_asked_for(self, lab: Lab) -> None:
        lab.put(self.call("m", 0, "stop"))

        assert lab.totals("tool_calls", "errors") == (0, 0)

    def test_a_tool_known_from_messages_may_have_failed(self, lab: Lab) -> None:
        """Captured messages tell that it was called, not whether its result was an error."""
        asks = [{"role": "assistant", "parts": [{"type": "tool_call", "id": "c1", "name": "refund", "arguments": {}}]}]
        messages = [{"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": "unavailable"}]}]
        done = [{"role": "assistant", "parts": [{"type": "text", "content": "done"}]}]
        lab.put(
            self.call("m", 0, "tool_calls", **{"gen_ai.output.messages": json.dumps(asks)}),
            self.call("n", 10, "stop", **{"gen_ai.input.messages": json.dumps(messages), "gen_ai.output.messages": json.dumps(done)}),
        )  # fmt: skip

        assert lab.totals("tool_calls", "errors") == (1, None)

    def test_spans_around_the_tools_make_it_known(self, lab: Lab) -> None:
        lab.put(self.call("m", 0, "tool_calls"), tool("t", at=6), self.call("n", 10, "stop"))

        assert lab.totals("tool_calls", "errors") == (1, 0)


def test_a_run_without_any_model_call_keeps_its_errors(lab: Lab) -> None:
    """Spans that are no agent's work at all still record failures."""
    lab.put(S("a", "", 0, 5, "job", error="boom"))

    assert lab.totals("errors") == (1,)


@pytest.mark.parametrize(
    ("library", "asked", "error", "expected"),
    [
        ("openai", "gpt-4o", None, ("gpt-4o", "gpt-4o")),
        ("openai", "gpt-4o", "400", ("gpt-4o", None)),
        ("agno", "gpt-4o", None, ("gpt-4o", None)),
        ("agno", "gpt-4", None, ("gpt-4", "gpt-4o")),
    ],
    ids=["known to be the answer's", "no answer", "may be the request's", "another than asked for"],
)
def test_the_model_name_of_openinference(
    lab: Lab, library: str, asked: str, error: str | None, expected: tuple[str, str | None]
) -> None:
    """`llm.model_name` is the responding model where that is known, else the requested one."""
    lab.put(oi(library, "LLM", "m", "", "ChatCompletion", 0, 5, error, llm__model_name="gpt-4o",
               llm__invocation_parameters={"model": asked}, llm__token_count__prompt=100))  # fmt: skip

    assert lab.rows("SELECT request_model, response_model FROM llm_calls") == [expected]


def test_mcp_agent_fails_on_an_answer_before_its_tools_are_called(lab: Lab) -> None:
    """It writes a span for each execution, whose failures it gathers: without one no tool was at work."""
    asked = chat("m", "a", at=1, **{"gen_ai.output.messages": asks(("c1", "get_weather", {}))})
    asked.scope = "opentelemetry.instrumentation.openai.v1"
    lab.put(
        S("a", "", 0, 9, "OpenAIAugmentedLLM.helper.generate", scope="lab", error="AttributeError: no usage"), asked
    )

    assert lab.totals("llm_calls", "tool_calls_high", "agents_high") == (1, 0, 1)
