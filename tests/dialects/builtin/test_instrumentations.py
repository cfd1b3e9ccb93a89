"""What instrumentations are known to write, also where no recording shows it: hand-made spans, true facts.

The facts are those of the dialect files' sources; ids and figures are made up.
"""

from __future__ import annotations

import json

import pytest
from building import Lab, S, agent, answered, asks, chat, says, tool

pytestmark = pytest.mark.full


ACTIVATIONS = "SELECT name, parent_activation_no, via FROM agents ORDER BY activation_no"
TOOLS = "SELECT name, outcome FROM tool_calls ORDER BY call_no"


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

    def test_a_workflow_of_openais_agents_in_mlflow_is_no_agent(self, lab: Lab) -> None:
        """A streamed run's outermost span is called after the workflow, and is given an empty input."""
        lab.put(
            S("w", "", 0, 99, "Agent workflow", {"mlflow.spanType": '"AGENT"', "mlflow.spanInputs": '""'}),
            S("a", "w", 1, 98, "assistant", {"mlflow.spanType": '"AGENT"', "mlflow.spanInputs": "null"}),
            S("m", "a", 2, 9, "Generation", {"mlflow.spanType": '"CHAT_MODEL"', "mlflow.llm.model": '"gpt-4o"'}),
        )

        assert lab.rows(ACTIVATIONS) == [("assistant", None, "root")]

    def test_langsmith_writes_a_failure_as_an_event(self, lab: Lab) -> None:
        """Its status is OK. The model answered, and its answer was not read."""
        said = {"langsmith.span.kind": "llm", "gen_ai.operation.name": "chat", "gen_ai.request.model": "gpt-4o"}
        failed = {"exception.type": "ValidationError", "exception.message": "2 validation errors for AIMessage"}
        lab.put(S("m", "", 0, 9, "ChatOpenAI", said, [("exception", failed)], scope="langsmith"))

        assert lab.rows("SELECT outcome FROM llm_calls") == [(None,)]

    def test_langfuse_writes_a_failure_as_a_message(self, lab: Lab) -> None:
        said = {"langfuse.observation.type": "generation", "langfuse.observation.level": "ERROR"}
        message = {"langfuse.observation.status_message": "1 validation error for AIMessage"}
        lab.put(S("m", "", 0, 9, "ChatOpenAI", said | message, scope="langfuse-sdk"))

        assert lab.rows("SELECT outcome FROM llm_calls") == [(None,)]

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

    def test_logfire_counts_nothing_of_an_answer_without_usage(self, lab: Lab) -> None:
        """The SDK's own object says 0 of each kind."""
        for run, count in (("counted", 100), ("uncounted", 0)):
            usage = {
                "input_tokens": count,
                "input_tokens_details": {"cached_tokens": 0},
                "output_tokens_details": {"reasoning_tokens": 0},
            }
            said = {"gen_ai.request.model": "gpt-4o", "gen_ai.usage.input_tokens": count, "usage": json.dumps(usage)}
            span = S("m", "", 0, 9, "Responses API with {gen_ai.request.model!r}", said, scope="logfire.openai_agents")
            lab.put(span, run=run)

        assert lab.totals("cache_read_tokens", "reasoning_tokens", run="counted") == (0, 0)
        assert lab.totals("cache_read_tokens", "reasoning_tokens", run="uncounted") == (None, None)

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
        """Streaming through OpenLLMetry counts one output token too many; the SDK's own span stands next to it."""
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

    assert lab.rows("SELECT name, reason FROM tool_requests") == [("go", "handed-over")]
    assert lab.totals("tool_calls") == (1,)
    assert lab.rows(TOOLS) == [("search", None)]


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

        assert lab.rows(TOOLS) == [("get_weather", None)] * 3
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


class TestBedrock:
    @pytest.mark.parametrize("scope", ["botocore.bedrock-runtime", "bedrock"])
    @pytest.mark.parametrize(("cached", "expected"), [(None, 100), (40, 140)])
    def test_converse_counts_cached_tokens_apart(self, lab: Lab, scope: str, cached: int | None, expected: int) -> None:
        usage = {} if cached is None else {"gen_ai.usage.cache_read.input_tokens": cached}
        model = chat("m", **{"gen_ai.response.model": None, "rpc.method": "Converse"}, **usage)
        model.scope = f"opentelemetry.instrumentation.{scope}"
        lab.put(model)

        assert lab.totals("input_tokens") == (expected,)
