"""The Vercel AI SDK, before version 7 and since. Hand-made spans, true facts; ids and figures are made up."""

from __future__ import annotations

from typing import Any

import pytest
from building import Lab, S

pytestmark = pytest.mark.full

ACTIVATIONS = "SELECT name, parent_activation_no, via FROM agents ORDER BY activation_no"


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
        """The sub-agent's call is nested in the call that asked for it, below the tool, and is a separate call."""
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


def test_a_stream_that_ended_without_a_signal_is_no_answer(lab: Lab) -> None:
    """Version 7 calls it `interrupted`; what was received of it is the program's answer."""
    words = '[{"role": "assistant", "parts": [{"type": "text", "content": "I will"}], "finish_reason": "interrupted"}]'
    base = {"gen_ai.response.finish_reasons": ["interrupted"], "gen_ai.output.messages": words}
    calling = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "assistant"} | base
    asking = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "gpt-4o", "gen_ai.response.id": "r"} | base
    lab.put(
        S("a", "", 0, 90, "invoke_agent gpt-4o", calling, scope="gen_ai"),
        S("m", "a", 1, 60, "chat gpt-4o", asking, scope="gen_ai"),
    )

    assert lab.totals("llm_calls", "errors") == (0, 1)
    assert lab.rows("SELECT message FROM errors") == [("interrupted",)]
    assert lab.rows("SELECT final_output FROM runs") == [("I will",)]


@pytest.mark.parametrize(("ran", "calls"), [(1, [(None, False), (None, True)]), (2, [("ok", True)] * 2)])
def test_of_calls_with_one_id_a_span_may_be_another_ones(
    lab: Lab, ran: int, calls: list[tuple[str | None, bool]]
) -> None:
    """The SDK keeps one span for an id: which request it carried out and how that ended is unknown, and whether the other one was."""
    call = '{"toolCallId": "c1", "toolName": "search", "args": {"query": "x"}}'
    said = {"toolCall_name": "search", "toolCall_id": "c1", "toolCall_result": '"ok"'}
    lab.put(
        ai("a", "", "ai.generateText", 0, 90),
        ai("m", "a", "ai.generateText.doGenerate", 1, 10, response_toolCalls=f"[{call}, {call}]"),
        *(ai(f"t{at}", "a", "ai.toolCall", at, at + 5, **said) for at in (20, 30)[:ran]),
    )

    assert lab.rows("SELECT outcome, certain FROM tool_calls ORDER BY call_no") == calls
    assert lab.totals("tool_calls_low", "tool_calls_high") == (ran, 2)
