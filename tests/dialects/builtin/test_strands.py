"""Strands Agents. Hand-made spans, true facts; ids and figures are made up."""

from __future__ import annotations

import json
from typing import Any

import pytest
from building import Lab, S

pytestmark = pytest.mark.full


ACTIVATIONS = "SELECT name, parent_activation_no, via FROM agents ORDER BY activation_no"


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
        """Its attributes stand next to the GenAI ones, the events are gone: nothing counts twice, nothing is lost."""
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


@pytest.mark.parametrize(
    ("type", "message"),
    [("MaxTokensError", "Model reached maximum token limit."), ("ModelError", "unable to parse tool input JSON")],
)
def test_a_whole_answer_that_the_sdk_gives_up_on(lab: Lab, type: str, message: str) -> None:
    """Both are raised after the answer has ended (TypeScript): the model was called, and the agent answered nothing."""
    raised = [("exception", {"exception.type": type, "exception.message": message})]
    words = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "a", "gen_ai.event.start_time": "now"}
    lab.put(
        S("a", "", 0, 9, "invoke_agent a", words, raised, scope="lab", error=message),
        S("m", "a", 1, 8, "chat", words | {"gen_ai.operation.name": "chat"}, raised, scope="lab", error=message),
    )

    assert lab.totals("llm_calls", "failed_llm_attempts_low") == (1, 0)
    assert lab.rows("SELECT answered FROM runs") == [(False,)]
