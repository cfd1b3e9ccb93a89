"""What instrumentations are known to write, also where no recording shows it: hand-made spans, true facts.

The facts are those of the dialect files' sources; ids and figures are made up.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from building import Lab, S, agent, answered, asks, chat, says, tool

pytestmark = pytest.mark.full


ACTIVATIONS = "SELECT name, parent_activation_no, via FROM agents ORDER BY activation_no"
TOOLS = "SELECT name, outcome FROM tool_calls ORDER BY call_no"


def ai(id: str, parent: str, name: str, at: int, to: int, function: str = "assistant", **attrs: Any) -> S:
    """A span of the Vercel AI SDK before version 7; keywords `x_y` are attributes ai.x.y."""
    words = {f"ai.{key.replace('_', '.')}": value for key, value in attrs.items()}
    base = {"operation.name": f"{name} {function}", "ai.operationId": name, "ai.telemetry.functionId": function}
    return S(id, parent, at, to, name, base | words, scope="ai")


class TestVercelBefore7:
    def run(self, **usage: Any) -> list[S]:
        model = {"model_provider": "openai.chat", "model_id": "gpt-4o"}
        return [
            ai("a", "", "ai.generateText", 0, 90, **model, **usage, response_text="21 degrees"),
            ai("m", "a", "ai.generateText.doGenerate", 1, 60, **model, **usage, response_model="gpt-4o-2024-08-06",
               response_toolCalls='[{"toolCallId": "c1", "toolName": "researcher", "args": {"query": "x"}}]'),
            ai("t", "m", "ai.toolCall", 5, 50, toolCall_name="researcher", toolCall_id="c1",
               toolCall_args='{"query": "x"}', toolCall_result='"21 C"'),
            ai("b", "t", "ai.generateText", 6, 40, "researcher", **model, **usage),
            ai("n", "b", "ai.generateText.doGenerate", 7, 20, "researcher", **model, **usage),
        ]  # fmt: skip

    @pytest.mark.parametrize(
        "usage",
        [
            {"usage_promptTokens": 100, "usage_completionTokens": 10},
            {"usage_inputTokens": 100, "usage_outputTokens": 10, "usage_totalTokens": 110},
        ],
        ids=["3 and 4", "5 and 6"],
    )
    def test_the_outer_span_repeats_and_a_sub_agent_counts_by_itself(self, lab: Lab, usage: dict[str, Any]) -> None:
        """The sub-agent's call is nested in the call that asked for it, below the tool, and is a call of its own."""
        lab.put(*self.run(**usage))

        assert lab.totals("llm_calls", "input_tokens", "output_tokens", "tool_calls") == (2, 200, 20, 1)
        assert lab.rows(ACTIVATIONS) == [("assistant", None, "root"), ("researcher", 1, "tool")]
        assert lab.rows("SELECT name, arguments, result, provider FROM tool_calls, llm_calls LIMIT 1") == [
            ("researcher", '{"query": "x"}', "21 C", "openai")
        ]
        assert lab.rows("SELECT final_output FROM runs") == [("21 degrees",)]

    @pytest.mark.parametrize(
        ("provider", "details", "expected"),
        [
            ("anthropic.messages", {}, 5000),
            ("amazon-bedrock", {}, 5000),
            ("openai.chat", {}, 4000),
            ("anthropic.messages", {"usage_inputTokenDetails_noCacheTokens": 3000}, 4000),
        ],
    )
    def test_cached_tokens_before_and_after_6(
        self, lab: Lab, provider: str, details: dict[str, Any], expected: int
    ) -> None:
        usage = {"usage_inputTokens": 4000, "usage_outputTokens": 10, "usage_cachedInputTokens": 1000}
        lab.put(ai("m", "", "ai.streamText.doStream", 1, 9, model_provider=provider, **usage, **details))

        assert lab.totals("input_tokens", "cache_read_tokens") == (expected, 1000)

    def test_cached_tokens_of_version_4_stand_in_the_providers_metadata(self, lab: Lab) -> None:
        metadata = '{"anthropic": {"cacheReadInputTokens": 70, "cacheCreationInputTokens": 30}}'
        usage = {"usage_promptTokens": 200, "usage_completionTokens": 10, "response_providerMetadata": metadata}
        lab.put(ai("m", "", "ai.generateText.doGenerate", 1, 9, model_provider="anthropic.messages", **usage))

        assert lab.totals("input_tokens", "cache_read_tokens", "cache_write_tokens") == (300, 70, 30)

    def test_an_agent_without_a_function_id_has_no_name(self, lab: Lab) -> None:
        lab.put(S("a", "", 0, 9, "ai.generateText", {"ai.operationId": "ai.generateText"}, scope="ai"))

        assert lab.rows(ACTIVATIONS) == [(None, None, "root")]

    def test_an_object_is_generated_by_no_agent(self, lab: Lab) -> None:
        outer = ai("o", "", "ai.generateObject", 0, 9, usage_inputTokens=5)
        lab.put(outer, ai("m", "o", "ai.generateObject.doGenerate", 1, 8, usage_inputTokens=5, usage_outputTokens=1))

        assert lab.totals("llm_calls", "input_tokens", "agents") == (1, 5, None)

    def test_time_to_the_first_chunk_is_in_milliseconds(self, lab: Lab) -> None:
        lab.put(ai("m", "", "ai.streamText.doStream", 1, 9, response_msToFirstChunk=2.5, usage_outputTokens=1))

        assert lab.rows("SELECT first_token_ns - start_ns FROM llm_calls") == [(2_500_000,)]


class TestVercel7:
    def test_the_models_name_is_no_agents_name(self, lab: Lab) -> None:
        attrs = {"gen_ai.operation.name": "invoke_agent", "gen_ai.request.model": "gpt-4o"}
        lab.put(S("a", "", 0, 9, "invoke_agent gpt-4o", attrs, scope="gen_ai"))

        assert lab.rows(ACTIVATIONS) == [(None, None, "root")]


def adk(id: str, parent: str, name: str, at: int, to: int, **attrs: Any) -> S:
    return S(id, parent, at, to, name, {k.replace("__", "."): v for k, v in attrs.items()}, scope="gcp.vertex.agent")


def adk_tool(id: str, parent: str, at: int, name: str, args: dict[str, Any] | None = None) -> S:
    attrs: dict[str, Any] = {
        "gen_ai__operation__name": "execute_tool",
        "gen_ai__tool__name": name,
        "gen_ai__tool__call__id": id,
    }
    if args is not None:
        attrs |= {
            "gcp__vertex__agent__tool_call_args": json.dumps(args),
            "gcp__vertex__agent__tool_response": '{"result": "21 C"}',
        }
    return adk(id, parent, at=at, to=at + 2, name=f"execute_tool {name}", **attrs)


def adk_agent(id: str, parent: str, at: int, to: int, name: str) -> S:
    return adk(
        id, parent, f"invoke_agent {name}", at, to, gen_ai__operation__name="invoke_agent", gen_ai__agent__name=name
    )


class TestGoogleAdk:
    def test_version_1_tells_of_one_call_twice(self, lab: Lab) -> None:
        """`call_llm` has no operation name and repeats the usage of the span below it."""
        usage = {"gen_ai__usage__input_tokens": 100, "gen_ai__usage__output_tokens": 10}
        lab.put(
            adk("i", "", "invocation", 0, 99),
            adk("a", "i", "agent_run [assistant]", 1, 98),
            adk("c", "a", "call_llm", 2, 90, gen_ai__system="gcp.vertex.agent", gen_ai__request__model="gemini-2.5-flash", **usage),
            adk("g", "c", "generate_content gemini-2.5-flash", 3, 20, gen_ai__operation__name="generate_content", gen_ai__request__model="gemini-2.5-flash", **usage),
            adk_tool("t", "c", 30, "get_weather", {"city": "Paris"}),
        )  # fmt: skip

        assert lab.totals("llm_calls", "input_tokens", "output_tokens", "tool_calls") == (1, 100, 10, 1)
        assert lab.rows("SELECT name, arguments, result FROM tool_calls") == [
            ("get_weather", '{"city": "Paris"}', '{"result": "21 C"}')
        ]
        assert lab.rows(ACTIVATIONS) == [("assistant", None, "root")]

    def test_messages_and_thoughts_of_version_1(self, lab: Lab) -> None:
        """The raw response counts candidates and thoughts apart."""
        response = {
            "content": {"role": "model", "parts": [{"function_call": {"id": "f1", "name": "ask", "args": {"q": 1}}}]},
            "usage_metadata": {"prompt_token_count": 100, "candidates_token_count": 10, "thoughts_token_count": 5, "total_token_count": 115},
        }  # fmt: skip
        lab.put(
            adk("c", "", "call_llm", 2, 9, gen_ai__request__model="gemini-2.5-flash", gen_ai__usage__input_tokens=100,
                gen_ai__usage__output_tokens=10, gcp__vertex__agent__llm_response=json.dumps(response))
        )  # fmt: skip

        assert lab.totals("output_tokens", "reasoning_tokens") == (15, 5)
        assert lab.rows("SELECT name, outcome, arguments, call_id FROM tool_calls") == [
            ("ask", "requested", '{"q":1}', "f1")
        ]

    def test_a_transfer_goes_to_the_next_agent_beside(self, lab: Lab) -> None:
        """The transfer's arguments are not recorded by default; a later agent used as a tool is none of its targets."""
        lab.put(
            adk("w", "", "invoke_workflow assistant", 0, 99, gen_ai__operation__name="invoke_workflow"),
            adk_agent("a", "w", 1, 10, "assistant"),
            adk_tool("h", "a", 5, "transfer_to_agent"),
            adk_agent("b", "w", 11, 60, "billing"),
            adk_tool("t", "b", 20, "researcher"),
            adk_agent("r", "t", 21, 30, "researcher"),
        )

        assert lab.rows(ACTIVATIONS) == [
            ("assistant", None, "root"),
            ("billing", 1, "handoff"),
            ("researcher", 2, "tool"),
        ]
        assert lab.rows(TOOLS) == [("researcher", "ok")]

    def test_a_transfer_that_nothing_followed_went_to_somebody_unknown(self, lab: Lab) -> None:
        """It is a delegation all the same: to claim that there was none would be wrong."""
        lab.put(
            adk("w", "", "invoke_workflow assistant", 0, 99, gen_ai__operation__name="invoke_workflow"),
            adk_agent("a", "w", 1, 10, "assistant"),
            adk_tool("h", "a", 5, "transfer_to_agent"),
        )

        assert lab.rows(ACTIVATIONS) == [("assistant", None, "root"), (None, 1, "handoff")]

    def test_a_named_transfer_goes_where_it_says(self, lab: Lab) -> None:
        lab.put(
            adk("w", "", "invoke_workflow assistant", 0, 99, gen_ai__operation__name="invoke_workflow"),
            adk_agent("a", "w", 1, 10, "assistant"),
            adk_tool("h", "a", 5, "transfer_to_agent", {"agent_name": "billing"}),
            adk_agent("x", "w", 11, 12, "logger"),
            adk_agent("b", "w", 13, 60, "billing"),
        )

        assert lab.rows(ACTIVATIONS) == [
            ("assistant", None, "root"),
            ("logger", None, "root"),
            ("billing", 1, "handoff"),
        ]

    def test_a_transfer_of_version_1_nests(self, lab: Lab) -> None:
        lab.put(
            adk_agent("a", "", 1, 90, "assistant"),
            adk_tool("h", "a", 5, "transfer_to_agent"),
            adk_agent("b", "a", 11, 60, "billing"),
        )

        assert lab.rows("SELECT name, parent_activation_no FROM agents ORDER BY activation_no") == [
            ("assistant", None),
            ("billing", 1),
        ]

    def test_merged_tools_are_none(self, lab: Lab) -> None:
        lab.put(
            adk_agent("a", "", 0, 90, "assistant"),
            adk_tool("t", "a", 5, "get_weather"),
            adk_tool("x", "a", 9, "(merged tools)"),
        )

        assert lab.rows(TOOLS) == [("get_weather", "ok")]


class TestGemini:
    @pytest.mark.parametrize(("provider", "tools"), [("gcp.gemini", None), ("openai", 0)])
    def test_stop_says_nothing_of_tools_in_gemini(self, lab: Lab, provider: str, tools: int | None) -> None:
        """Gemini answers STOP also where it asks for a tool: no tool calls is then no fact."""
        lab.put(chat("m", **{"gen_ai.provider.name": provider}))

        assert lab.totals("tool_calls") == (tools,)


class TestTotalsProve:
    @pytest.mark.parametrize(
        ("usage", "expected"),
        [
            ({"total_tokens": 1160, "cache_read.input_tokens": 50}, (1100, 60)),
            ({"total_tokens": 1210, "cache_read.input_tokens": 50}, (1150, 60)),
            ({"total_tokens": 1160, "reasoning.output_tokens": 20}, (1100, 60)),
            ({"total_tokens": 1180, "reasoning.output_tokens": 20}, (1100, 80)),
            ({"total_tokens": 9999, "reasoning.output_tokens": 20, "cache_read.input_tokens": 50}, (None, None)),
        ],
    )
    def test_what_the_input_and_output_hold(
        self, lab: Lab, usage: dict[str, int], expected: tuple[int | None, int | None]
    ) -> None:
        """A total that is the sum with cached (reasoning) tokens says that the others are without them.

        One that is no sum of them says that some number is wrong.
        """
        base = {"input_tokens": 1100, "output_tokens": 60} | usage
        lab.put(chat("m", **{f"gen_ai.usage.{key}": value for key, value in base.items()}))

        assert lab.totals("input_tokens", "output_tokens") == expected


def strand(id: str, parent: str, operation: str, at: int, to: int, events: Any = (), **attrs: Any) -> S:
    words = {f"gen_ai.{k.replace('__', '.')}": v for k, v in attrs.items()}
    base = {"gen_ai.operation.name": operation, "gen_ai.system": "strands-agents"}
    return S(id, parent, at, to, operation, base | words, list(events), scope="strands.telemetry.tracer")


class TestStrands:
    def test_messages_and_tools_are_in_events(self, lab: Lab) -> None:
        asked = '[{"toolUse": {"toolUseId": "c1", "name": "get_weather", "input": {"city": "Paris"}}}]'
        history = '[{"toolResult": {"toolUseId": "c1", "status": "success", "content": [{"text": "21 C"}]}}]'
        usage = {"usage__input_tokens": 100, "usage__output_tokens": 10}
        lab.put(
            strand("a", "", "invoke_agent", 0, 99, agent__name="assistant", usage__input_tokens=200),
            strand("m", "a", "chat", 1, 9, [("gen_ai.choice", {"message": asked, "finish_reason": "tool_use"})], request__model="gpt-4o", **usage),
            strand("n", "a", "chat", 11, 19, [("gen_ai.tool.message", {"content": history}), ("gen_ai.choice", {"message": '[{"text": "21 degrees"}]', "finish_reason": "end_turn"})], request__model="gpt-4o", **usage),
        )  # fmt: skip

        assert lab.totals("llm_calls", "input_tokens", "tool_calls") == (2, 200, 1)
        assert lab.rows("SELECT name, arguments, result, outcome FROM tool_calls") == [
            ("get_weather", '{"city":"Paris"}', "21 C", "ok")
        ]
        assert lab.rows("SELECT final_output FROM runs") == [("21 degrees",)]

    def test_the_newest_conventions(self, lab: Lab) -> None:
        name = "gen_ai.client.inference.operation.details"
        sent = [{"role": "tool", "parts": [{"type": "tool_call", "name": "pay", "id": "c1", "arguments": {"eur": 5}}]}]
        got = [{"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": [{"text": "no"}]}]}]
        events = [
            (name, {"gen_ai.input.messages": json.dumps(sent)}),
            (name, {"gen_ai.output.messages": json.dumps(got)}),
        ]
        lab.put(
            strand("t", "", "execute_tool", 1, 3, events, tool__name="pay", tool__call__id="c1", tool__status="error")
        )

        assert lab.rows("SELECT arguments, result, outcome FROM tool_calls") == [('{"eur":5}', "no", "error")]

    @pytest.mark.parametrize(
        ("model", "expected"),
        [
            ("us.anthropic.claude-sonnet-4-5", 150),
            ("claude-opus-4", 150),
            ("anthropic/claude-opus-4", 100),
            ("gpt-4o", 100),
        ],
    )
    def test_bedrocks_input_is_without_cached_tokens(self, lab: Lab, model: str, expected: int) -> None:
        usage = {"usage__input_tokens": 100, "usage__output_tokens": 10, "usage__cache_read_input_tokens": 50}
        lab.put(strand("m", "", "chat", 1, 9, request__model=model, **usage))

        assert lab.totals("input_tokens", "cache_read_tokens") == (expected, 50)

    def test_rewritten_by_openinferences_processor(self, lab: Lab) -> None:
        """Its attributes stand beside the GenAI ones, the events are gone: nothing counts twice, nothing is lost."""
        said = "llm.output_messages.0.message.tool_calls.0.tool_call"
        model = strand("m", "", "chat", 1, 9, request__model="gpt-4o", usage__input_tokens=100, usage__output_tokens=10)
        model.attrs |= {
            "openinference.span.kind": "LLM", "llm.token_count.prompt": 150, f"{said}.id": "c1",
            f"{said}.function.name": "pay", f"{said}.function.arguments": '{"eur":5}',
        }  # fmt: skip
        done = strand("t", "", "execute_tool", 11, 12, tool__name="pay", tool__call__id="c1")
        done.attrs |= {"openinference.span.kind": "TOOL", "input.value": '{"eur": 5}', "output.value": "paid"}
        lab.put(model, done)

        assert lab.totals("llm_calls", "input_tokens") == (1, 100)
        assert lab.rows("SELECT name, arguments, result, outcome FROM tool_calls") == [
            ("pay", '{"eur": 5}', "paid", "ok")
        ]

    def test_a_swarm_hands_over(self, lab: Lab) -> None:
        to = ("gen_ai.tool.message", {"content": '{"agent_name": "billing", "message": "please"}', "id": "c1"})
        lab.put(
            strand("s", "", "invoke_swarm", 0, 99, agent__name="swarm"),
            strand("a", "s", "invoke_agent", 1, 30, agent__name="assistant"),
            strand("h", "a", "execute_tool", 5, 6, [to], tool__name="handoff_to_agent", tool__call__id="c1"),
            strand("b", "s", "invoke_agent", 31, 60, agent__name="billing"),
        )

        assert lab.rows(ACTIVATIONS) == [("assistant", None, "root"), ("billing", 1, "handoff")]
        assert lab.totals("tool_calls") == (0,)


def pydantic(id: str, parent: str, name: str, at: int, to: int, error: str | None = None, **attrs: Any) -> S:
    return S(
        id, parent, at, to, name, {k.replace("__", "."): v for k, v in attrs.items()}, error=error, scope="pydantic-ai"
    )


class TestPydanticAi:
    def test_format_1(self, lab: Lab) -> None:
        """One JSON attribute holds the events; tools run below `running 2 tools`."""
        call = {"id": "c1", "type": "function", "function": {"name": "get_weather", "arguments": {"city": "Paris"}}}
        events = [
            {"event.name": "gen_ai.user.message", "content": "hi", "role": "user"},
            {"event.name": "gen_ai.choice", "index": 0, "message": {"role": "assistant", "tool_calls": [call]}},
        ]
        lab.put(
            pydantic("a", "", "agent run", 0, 99, agent_name="assistant", gen_ai__usage__input_tokens=100),
            pydantic("m", "a", "chat gpt-4o", 1, 9, gen_ai__operation__name="chat", gen_ai__request__model="gpt-4o",
                     gen_ai__usage__input_tokens=100, gen_ai__usage__output_tokens=10, events=json.dumps(events)),
            pydantic("r", "a", "running 2 tools", 10, 30, tools=["get_weather", "pay"]),
            pydantic("t", "r", "running tool", 11, 12, gen_ai__tool__name="get_weather", gen_ai__tool__call__id="c1", tool_response="21 C"),
            pydantic("u", "r", "running tool", 13, 14, gen_ai__tool__name="pay", tool_arguments="{}"),
        )  # fmt: skip

        assert lab.totals("llm_calls", "input_tokens", "tool_calls", "agents") == (1, 100, 2, 1)
        assert lab.rows("SELECT name, arguments, result FROM tool_calls ORDER BY call_no") == [
            ("get_weather", '{"city":"Paris"}', "21 C"),
            ("pay", "{}", None),
        ]

    def test_a_pending_span_is_no_span_of_its_own(self, lab: Lab) -> None:
        call = chat("m", "a", at=1)
        pending = chat("p", "m", at=1, **{"logfire.span_type": "pending_span", "logfire.pending_parent_id": "0" * 16})
        call.scope = pending.scope = "pydantic-ai"
        lab.put(agent("a"), call, pending)

        assert lab.totals("llm_calls", "input_tokens") == (1, 100)
        assert lab.rows("SELECT kind FROM spans WHERE kind NOT IN ('agent', 'llm')") == [("infra",)]

    def test_a_call_that_was_put_off_did_not_run(self, lab: Lab) -> None:
        """Up to format 4 it ended as an error; the call stays asked for."""
        attrs = {"gen_ai__operation__name": "execute_tool", "gen_ai__tool__name": "pay", "gen_ai__tool__call__id": "c1"}
        model = chat("m", "a", at=1, **{"gen_ai.output.messages": asks(("c1", "pay", {}))})
        lab.put(
            agent("a"), model,
            pydantic("t", "a", "execute_tool pay", 9, 10, "ApprovalRequired", pydantic_ai__tool__deferral__name="ApprovalRequired", **attrs),
        )  # fmt: skip

        assert lab.rows(TOOLS) == [("pay", "requested")]
        assert lab.totals("tool_calls", "errors") == (0, 0)

    def test_output_functions_and_final_answers_are_no_tool_calls(self, lab: Lab) -> None:
        parameters = json.dumps({"output_tools": [{"name": "final_result"}]})
        attrs = {"gen_ai__operation__name": "execute_tool", "gen_ai__tool__name": "report"}
        lab.put(
            agent("a"),
            chat("m", "a", at=1, model_request_parameters=parameters, **{"gen_ai.output.messages": asks(("c1", "final_result", {}))}),
            pydantic("t", "a", "execute_tool report", 9, 10, logfire__msg="running output function: report", **attrs),
        )  # fmt: skip

        assert lab.totals("tool_calls") == (0,)


class TestAgentFramework:
    def test_an_mcp_tool_is_one_call_and_the_agents_usage_none(self, lab: Lab) -> None:
        scope = "agent_framework"
        spans = [
            S("w", "", 0, 99, "workflow.run", {"workflow.id": "w"}),
            agent("a", "w", at=1, to=90, **{"gen_ai.usage.input_tokens": 100, "gen_ai.provider.name": "microsoft.agent_framework"}),
            chat("m", "a", at=2),
            tool("t", "a", at=10),
            S("x", "t", 10, 12, "tools/call get_weather", {"mcp.method.name": "tools/call", "gen_ai.tool.name": "get_weather"}),
        ]  # fmt: skip
        for span in spans:
            span.scope = scope
        lab.put(*spans)

        assert lab.totals("llm_calls", "input_tokens", "tool_calls", "agents") == (1, 100, 1, 1)


class TestOthers:
    def test_semantic_kernel(self, lab: Lab) -> None:
        attrs = {"gen_ai.operation.name": "chat.completions", "gen_ai.request.model": "gpt-4o", "gen_ai.response.prompt_tokens": 7, "gen_ai.response.completion_tokens": 2}  # fmt: skip
        said = ("gen_ai.content.completion", {"gen_ai.event.content": '[{"role": "assistant", "content": "hi"}]'})
        lab.put(
            S("m", "", 1, 9, "chat.completions gpt-4o", attrs, [said], scope="Microsoft.SemanticKernel.Diagnostics")
        )

        assert lab.totals("llm_calls", "input_tokens", "output_tokens") == (1, 7, 2)
        assert lab.rows("SELECT final_output FROM runs") == [("hi",)]

    def test_mlflow(self, lab: Lab) -> None:
        usage = '{"input_tokens": 100, "output_tokens": 10, "total_tokens": 110}'
        lab.put(
            S("a", "", 0, 99, "assistant", {"mlflow.spanType": '"AGENT"', "mlflow.chat.tokenUsage": usage}),
            S("m", "a", 1, 9, "Completions", {"mlflow.spanType": '"CHAT_MODEL"', "mlflow.chat.tokenUsage": usage, "mlflow.llm.model": '"gpt-4o"', "mlflow.llm.cost": '{"total_cost": 0.5}'}),
            S("t", "a", 10, 12, "get_weather", {"mlflow.spanType": "TOOL", "mlflow.spanInputs": '{"city": "Paris"}', "mlflow.spanOutputs": '"21 C"'}),
        )  # fmt: skip

        assert lab.totals("llm_calls", "input_tokens", "tool_calls", "cost_high") == (1, 100, 1, 0.5)
        assert lab.rows("SELECT name, arguments, result FROM tool_calls") == [
            ("get_weather", '{"city": "Paris"}', "21 C")
        ]
        assert lab.rows(ACTIVATIONS) == [("assistant", None, "root")]

    def test_genkit(self, lab: Lab) -> None:
        said = {"message": {"role": "model", "content": [{"toolRequest": {"name": "pay", "ref": "r1", "input": {"eur": 5}}}]},
                "usage": {"inputTokens": 100, "outputTokens": 10, "thoughtsTokens": 5, "totalTokens": 115}}  # fmt: skip
        lab.put(
            S("f", "", 0, 99, "flow", {"genkit:type": "flow", "genkit:name": "flow"}),
            S("m", "f", 1, 9, "googleai/gemini-2.5-flash", {"genkit:type": "action", "genkit:metadata:subtype": "model", "genkit:name": "googleai/gemini-2.5-flash", "genkit:output": json.dumps(said)}),
            S("t", "f", 10, 12, "pay", {"genkit:type": "action", "genkit:metadata:subtype": "tool", "genkit:name": "pay", "genkit:input": '{"eur": 5}', "genkit:state": "error"}),
        )  # fmt: skip

        assert lab.totals("llm_calls", "input_tokens", "output_tokens", "tool_calls") == (1, 100, 15, 1)
        assert lab.rows("SELECT name, outcome, call_id FROM tool_calls") == [("pay", "error", "r1")]

    def test_langfuse(self, lab: Lab) -> None:
        """The buckets are disjoint, and a failure stands only in the level."""
        usage = '{"input": 60, "input_cached_tokens": 40, "output": 8, "output_reasoning_tokens": 2, "total": 110}'
        kind = "langfuse.observation.type"
        lab.put(
            S("a", "", 0, 99, "assistant", {kind: "agent"}),
            S("m", "a", 1, 9, "call", {kind: "generation", "langfuse.observation.usage_details": usage, "langfuse.observation.model.name": "gpt-4o"}),
            S("t", "a", 10, 12, "pay", {kind: "tool", "langfuse.observation.level": "ERROR", "langfuse.observation.status_message": "no money"}),
        )  # fmt: skip

        assert lab.totals("input_tokens", "cache_read_tokens", "output_tokens", "reasoning_tokens") == (100, 40, 10, 2)
        assert lab.rows("SELECT name, outcome, error FROM tool_calls") == [("pay", "error", "no money")]

    def test_logfires_openai_agents(self, lab: Lab) -> None:
        """Names are templates; usage on tasks and turns repeats that of the calls."""
        scope = "logfire.openai_agents"
        spans = [
            S("r", "", 0, 99, "OpenAI Agents trace: {name}", {"name": "Agent workflow"}),
            S("a", "r", 1, 20, "Agent run: {name!r}", {"name": "assistant"}),
            S("m", "a", 2, 9, "Responses API with {gen_ai.request.model!r}", {"gen_ai.request.model": "gpt-4o", "gen_ai.usage.input_tokens": 100, "gen_ai.usage.output_tokens": 10}),
            S("t", "a", 10, 14, "Function: {name}", {"name": "get_weather", "input": '{"city": "Paris"}', "output": "21 C"}),
            S("x", "t", 11, 13, "MCP request: tools/call get_weather", {}),
            S("h", "a", 15, 16, "Handoff: {from_agent} \u2192 {to_agent}", {"from_agent": "assistant", "to_agent": "billing"}),
            S("b", "r", 21, 40, "Agent run: {name!r}", {"name": "billing"}),
        ]  # fmt: skip
        for span in spans:
            span.scope = scope
        lab.put(*spans)

        assert lab.totals("llm_calls", "input_tokens", "tool_calls") == (1, 100, 1)
        assert lab.rows(ACTIVATIONS) == [("assistant", None, "root"), ("billing", 1, "handoff")]
        assert lab.rows("SELECT name, arguments, result FROM tool_calls") == [
            ("get_weather", '{"city": "Paris"}', "21 C")
        ]

    def test_livekit(self, lab: Lab) -> None:
        usage = {"gen_ai.request.model": "gpt-4.1", "gen_ai.usage.input_tokens": 100, "gen_ai.usage.output_tokens": 10}
        scope = "livekit-agents"
        lab.put(
            S("n", "", 0, 20, "llm_node", {"gen_ai.request.model": "gpt-4.1"}, scope=scope),
            S("m", "n", 1, 9, "llm_request", usage, scope=scope),
            S("t", "", 30, 33, "function_tool", {"lk.function_tool.name": "pay", "lk.function_tool.id": "c1", "lk.function_tool.arguments": "{}", "lk.function_tool.is_error": True}, scope=scope),
        )  # fmt: skip

        assert lab.totals("llm_calls", "input_tokens", "tool_calls") == (1, 100, 1)
        assert lab.rows("SELECT name, outcome FROM tool_calls") == [("pay", "error")]

    def test_flue(self, lab: Lab) -> None:
        task = S("a", "", 0, 90, "task", {"flue.task.agent": "assistant"}, scope="@flue/opentelemetry")
        lab.put(task, S("t", "a", 1, 2, "tool", {"flue.tool.name": "pay"}, scope="@flue/opentelemetry"))

        assert lab.rows(TOOLS) == [("pay", "ok")]
        assert lab.rows(ACTIVATIONS) == [("assistant", None, "root")]


class TestAnthropicSdk:
    def test_the_sdks_own_figures_count(self, lab: Lab) -> None:
        """Streaming through OpenLLMetry counts one output token too many; the SDK's own span stands beside it."""
        other = chat("m", "a", at=1, **{"gen_ai.response.id": "msg_1", "gen_ai.usage.output_tokens": 11})
        own = chat("s", "a", at=2, **{"gen_ai.response.id": "msg_1", "gen_ai.usage.output_tokens": 10})
        own.scope = "com.anthropic.sdk.python"
        lab.put(agent("a"), other, own)

        assert lab.totals("llm_calls", "output_tokens") == (1, 10)


def test_a_handoff_answers_the_request_that_it_is(lab: Lab) -> None:
    """Of two requests of one answer the other one is still open, and was answered later."""
    attrs = {"gen_ai.operation.name": "handoff", "gen_ai.tool.name": "go", "gen_ai.handoff.to_agent": "billing"}
    lab.put_sdk(
        agent("a"),
        chat("m", "a", at=1, **{"gen_ai.output.messages": asks(("c1", "search", {}), ("c2", "go", {}))}),
        S("h", "a", 10, 11, "handoff", attrs),
        chat("n", "a", at=20, **{"gen_ai.input.messages": answered("c1", "found"), "gen_ai.output.messages": says("done")}),
    )  # fmt: skip

    assert lab.rows(TOOLS) == [("search", "unknown")]


def heard(*results: tuple[str, str]) -> str:
    """Input messages that hold nothing but the results of calls: id and text."""
    parts = [{"type": "tool_call_response", "id": id, "response": text} for id, text in results]
    return json.dumps([{"role": "tool", "parts": [part]} for part in parts])


class TestResultsWithOtherIds:
    """OpenLLMetry writes the id of the Responses API's item with the request, and the call's with the result."""

    def asked(self, *ids: str) -> S:
        said = asks(*((id, "get_weather", {"city": id}) for id in ids))
        return chat("m", at=1, **{"gen_ai.output.messages": said, "gen_ai.input.messages": says("hi")})

    def test_as_many_results_as_requests_are_theirs(self, lab: Lab) -> None:
        """Also where the next request holds nothing but the news (`previous_response_id`)."""
        last = chat(
            "o", at=21, **{"gen_ai.input.messages": heard(("call_3", "22 C")), "gen_ai.output.messages": says("done")}
        )
        again = chat("n", at=11, **{"gen_ai.input.messages": heard(("call_1", "21 C"), ("call_2", "20 C"))})
        again.attrs["gen_ai.output.messages"] = asks(("fc_3", "get_weather", {"city": "Oslo"}))
        lab.put_sdk(self.asked("fc_1", "fc_2"), again, last)

        assert lab.rows(TOOLS) == [("get_weather", "unknown")] * 3
        assert lab.totals("tool_calls", "errors") == (3, None)

    def test_fewer_results_do_not_say_whose_they_are(self, lab: Lab) -> None:
        lab.put(self.asked("fc_1", "fc_2"), chat("n", at=11, **{"gen_ai.input.messages": heard(("call_1", "21 C"))}))

        assert lab.totals("tool_calls") == (None,)

    def test_a_failed_request_of_which_no_messages_are_known_may_have_carried_them(self, lab: Lab) -> None:
        failed = S(
            "n", "", 11, 12, "chat", {"gen_ai.operation.name": "chat", "gen_ai.request.model": "gpt-4o"}, error="400"
        )
        lab.put(self.asked("fc_1"), failed)

        assert lab.totals("tool_calls") == (None,)


def gemini(scope: str, id: str, at: int, parent: str = "", **attrs: Any) -> S:
    words = {key.replace("__", "."): value for key, value in attrs.items()}
    return S(id, parent, at, at + 5, "generate_content gemini-2.5-flash", words, scope=scope)


class TestGoogleGenAi:
    def openllmetry(self, tools: str | None = None, **attrs: Any) -> S:
        base: dict[str, Any] = {
            "gen_ai__operation__name": "generate_content", "gen_ai__request__model": "gemini-2.5-flash",
            "gen_ai__response__model": "gemini-2.5-flash", "gen_ai__input__messages": says("hi"),
            "gen_ai__output__messages": says("d of the answer"), "gen_ai__usage__input_tokens": 100,
            "gen_ai__usage__output_tokens": 20, "gen_ai__usage__total_tokens": 130,
        }  # fmt: skip
        base |= {"gen_ai__tool__definitions": tools} if tools else {}
        return gemini("opentelemetry.instrumentation.google_generativeai", "m", 1, **base, **attrs)

    @pytest.mark.parametrize(
        ("tools", "calls", "output"),
        [
            (None, 1, 30),
            ('[{"function_declarations": [{"description": "x", "name": "pay"}]}]', 1, 30),
            ('[{"google_search": {}}]', 1, None),
            ('[{"name": "pay"}]', None, None),
        ],
        ids=["no tools", "declared", "Google's own", "called by the SDK"],
    )
    def test_thoughts_are_in_the_total_only(
        self, lab: Lab, tools: str | None, calls: int | None, output: int | None
    ) -> None:
        lab.put(self.openllmetry(tools))

        assert lab.totals("llm_calls", "output_tokens") == (calls, output)
        assert lab.rows("SELECT response_model, output_tokens FROM llm_calls") == [
            (None, None if tools and "google" in tools else 30)
        ]
        assert lab.rows("SELECT final_output FROM runs") == [(None,)]

    def test_a_function_below_a_model_call_is_another_request(self, lab: Lab) -> None:
        scope = "opentelemetry.instrumentation.google_genai"
        usage = {
            "gen_ai__usage__input_tokens": 100,
            "gen_ai__usage__output_tokens": 10,
            "gen_ai__usage__cache_read__input_tokens": 5,
        }
        model = gemini(
            scope,
            "m",
            1,
            gen_ai__operation__name="generate_content",
            gen_ai__request__model="gemini-2.5-flash",
            gen_ai__output__messages=says("paid"),
            **usage,
        )
        lab.put(model, gemini(scope, "t", 2, "m", gen_ai__operation__name="execute_tool", gen_ai__tool__name="pay"))

        assert lab.totals("llm_calls", "input_tokens", "cache_read_tokens", "tool_calls") == (None, None, None, 1)

    def test_a_text_behind_a_function_call_is_another_answer(self, lab: Lab) -> None:
        said = '{"candidates": [{"content": {"parts": [{"function_call": {"args": {}, "name": "pay"}}, {"text": "paid"}]}}]}'
        attrs = {
            "openinference__span__kind": "LLM",
            "llm__token_count__prompt": 100,
            "llm__token_count__completion": 10,
            "output__value": said,
        }
        span = gemini("openinference.instrumentation.google_genai", "m", 1, **attrs)
        span.name = "GenerateContentStream"
        lab.put(span)

        assert lab.totals("llm_calls", "input_tokens", "output_tokens", "tool_calls") == (None, None, None, None)


class TestBedrock:
    @pytest.mark.parametrize("scope", ["botocore.bedrock-runtime", "bedrock"])
    @pytest.mark.parametrize(("cached", "expected"), [(None, 100), (40, 140)])
    def test_converse_counts_cached_tokens_apart(self, lab: Lab, scope: str, cached: int | None, expected: int) -> None:
        usage = {} if cached is None else {"gen_ai.usage.cache_read.input_tokens": cached}
        model = chat("m", **{"gen_ai.response.model": None, "rpc.method": "Converse"}, **usage)
        model.scope = f"opentelemetry.instrumentation.{scope}"
        lab.put(model)

        assert lab.totals("input_tokens") == (expected,)
