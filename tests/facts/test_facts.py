"""Raw rows become facts: one logical call once, unknown as NULL, the same whatever the order of arrival."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from building import Lab, S, agent, answered, asks, chat, hex_id, says, tool
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clawtrace.model.relations import RELATIONS
from clawtrace.pricing import Pricing

GENERATIONS: dict[str, dict[str, Any]] = {
    "0 (usage.prompt_tokens)": {
        "gen_ai.system": "OpenAI",
        "gen_ai.request.model": "gpt-4o",
        "gen_ai.usage.prompt_tokens": 1013,
        "gen_ai.usage.completion_tokens": 23,
        "gen_ai.completion.0.role": "assistant",
        "gen_ai.completion.0.tool_calls.0.id": "c1",
        "gen_ai.completion.0.tool_calls.0.name": "get_weather",
        "gen_ai.completion.0.tool_calls.0.arguments": '{"city": "Paris"}',
    },
    "1 (gen_ai.system, message events)": {
        "gen_ai.system": "openai",
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "gpt-4o",
        "gen_ai.usage.input_tokens": 1013,
        "gen_ai.usage.output_tokens": 23,
    },
    "2 (output messages as JSON text)": {
        "gen_ai.provider.name": "openai",
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "gpt-4o",
        "gen_ai.usage.input_tokens": 1013,
        "gen_ai.usage.output_tokens": 23,
        "gen_ai.output.messages": asks(("c1", "get_weather", {"city": "Paris"})),
    },
    "3 (structured, cache_creation)": {
        "gen_ai.provider.name": "openai",
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "gpt-4o",
        "gen_ai.usage.input_tokens": 1013,
        "gen_ai.usage.output_tokens": 23,
        "gen_ai.usage.cache_creation.input_tokens": 7,
        "gen_ai.output.messages": json.loads(asks(("c1", "get_weather", {"city": "Paris"}))),
    },
    "4 (cache_write)": {
        "gen_ai.provider.name": "openai",
        "gen_ai.operation.name": "generate_content",
        "gen_ai.request.model": "gpt-4o",
        "gen_ai.usage.input_tokens": 1013,
        "gen_ai.usage.output_tokens": 23,
        "gen_ai.usage.cache_write.input_tokens": 7,
        "gen_ai.output.messages": asks(("c1", "get_weather", {"city": "Paris"})),
    },
}

CHOICE = ("gen_ai.choice", {"message": '{"tool_calls": [{"id": "c1", "function": {"name": "get_weather", "arguments": "{\\"city\\": \\"Paris\\"}"}}]}'})  # fmt: skip


@pytest.mark.parametrize("generation", sorted(GENERATIONS))
def test_every_genai_generation_reads_the_same(lab: Lab, generation: str) -> None:
    """Model, provider, tokens and the requested tool call are the same facts in all five generations."""
    events = [CHOICE] if generation.startswith("1") else []
    lab.put(agent("a"), S("m", "a", 1, 5, "chat", GENERATIONS[generation], events))

    call = lab.rows("SELECT provider, request_model, model, input_tokens, output_tokens, outcome FROM llm_calls")
    assert call == [("openai", "gpt-4o", "gpt-4o", 1013, 23, "ok")]
    assert lab.rows("SELECT name, call_id, arguments, outcome FROM tool_calls") in (
        [("get_weather", "c1", '{"city":"Paris"}', "requested")],
        [("get_weather", "c1", '{"city": "Paris"}', "requested")],
    )


class TestOneCallOnce:
    def test_an_agents_usage_repeats_its_calls(self, lab: Lab) -> None:
        """T5: usage on the agent span and on its two model calls is counted once."""
        usage = {"gen_ai.usage.input_tokens": 200, "gen_ai.usage.output_tokens": 20}
        lab.put(agent("a", **usage), chat("m1", "a", at=1), chat("m2", "a", at=10))

        assert lab.totals("llm_calls", "input_tokens", "output_tokens") == (2, 200, 20)
        assert lab.rows("SELECT counted_as FROM spans WHERE kind = 'agent'") == [("accounting",)]

    def test_a_second_instrumentation_in_its_own_trace(self, lab: Lab) -> None:
        """The same response id tells of the same call wherever its span stands."""
        other = chat("x", at=2, **{"gen_ai.response.id": "r1"})
        other.scope, other.trace = "other", f"{2:032x}"
        lab.put(agent("a"), chat("m", "a", at=1, **{"gen_ai.response.id": "r1"}), other)

        assert lab.totals("llm_calls", "input_tokens") == (1, 100)
        assert sorted(lab.rows("SELECT counted_as FROM spans WHERE kind = 'llm'")) == [("call",), ("duplicate",)]

    def test_a_span_delivered_twice_counts_once(self, lab: Lab) -> None:
        """T4: even when the store holds both rows."""
        lab.put(agent("a"), chat("m", "a", at=1)).put(chat("m", "a", at=1), arrival=9)

        assert lab.totals("llm_calls", "input_tokens") == (1, 100)
        assert lab.rows("SELECT count(*) FROM spans") == [(2,)]

    def test_a_span_that_arrives_after_the_facts_changes_them(self, lab: Lab) -> None:
        lab.put(agent("a"), chat("m1", "a", at=1))
        assert lab.totals("llm_calls") == (1,)

        lab.put(chat("m2", "a", at=9), arrival=99)
        assert lab.totals("llm_calls") == (2,)

    def test_mcp_layers_take_the_worst_outcome(self, lab: Lab) -> None:
        """The framework calls it well, the MCP server says that it failed: it failed, once."""
        inner = S(
            "i", "t", 2, 3, "tools/call get_weather", {"mcp.method.name": "tools/call", "error.type": "tool_error"}
        )
        lab.put(agent("a"), tool("t", "a", at=1), inner)

        assert lab.rows("SELECT name, outcome FROM tool_calls") == [("get_weather", "error")]
        assert lab.totals("errors") == (1,)

    def test_a_failed_attempt_inside_an_answered_call(self, counting: Lab) -> None:
        """T13: one call, answered; its failed attempt is an error that was recovered, and counted as an attempt."""
        wrapper = chat("w", "a", at=1)
        attempt = chat("x", "w", at=2, **{"gen_ai.response.model": None, "gen_ai.usage.input_tokens": None, "gen_ai.usage.output_tokens": None, "gen_ai.response.finish_reasons": None})  # fmt: skip
        attempt.error = "500"
        counting.put(agent("a"), wrapper, attempt)

        columns = ("llm_calls", "failed_llm_attempts", "errors", "unrecovered_errors")
        assert counting.totals(*columns) == (1, 1, 1, 0)


class TestToolCalls:
    def test_arguments_come_from_the_request_when_the_execution_has_none(self, lab: Lab) -> None:
        request = {"gen_ai.output.messages": asks(("call_t", "get_weather", {"city": "Paris"}))}
        lab.put(agent("a"), chat("m", "a", at=1, **request), tool("t", "a", at=9))

        assert lab.rows("SELECT arguments, outcome, source FROM tool_calls") == [('{"city":"Paris"}', "ok", "span")]

    def test_ids_that_never_match_match_by_name_and_order(self, lab: Lab) -> None:
        request = {"gen_ai.output.messages": asks(("fc_1", "get_weather", {"n": 1}), ("fc_2", "get_weather", {"n": 2}))}
        lab.put(agent("a"), chat("m", "a", at=1, **request), tool("t1", "a", at=8), tool("t2", "a", at=9))

        assert lab.rows("SELECT arguments FROM tool_calls ORDER BY call_no") == [('{"n":1}',), ('{"n":2}',)]

    def test_one_id_used_for_every_call(self, lab: Lab) -> None:
        """A scripted model that answers `call_1` each time: each execution keeps the request before it."""
        spans = [agent("a")]
        for n in (1, 2):
            request = {"gen_ai.output.messages": asks(("call_1", "get_weather", {"n": n}))}
            spans += [chat(f"m{n}", "a", at=n * 20, **request)]
            spans += [tool(f"t{n}", "a", at=n * 20 + 10, **{"gen_ai.tool.call.id": "call_1"})]
        lab.put(*spans)

        assert lab.rows("SELECT arguments FROM tool_calls ORDER BY call_no") == [('{"n":1}',), ('{"n":2}',)]

    def test_a_request_whose_result_comes_back_was_executed(self, lab: Lab) -> None:
        first = {"gen_ai.output.messages": asks(("c1", "web_search", {"q": "x"}))}
        second = {"gen_ai.input.messages": answered("c1", "found"), "gen_ai.output.messages": says("done")}
        lab.put_sdk(agent("a"), chat("m1", "a", at=1, **first), chat("m2", "a", at=10, **second))

        assert lab.rows("SELECT name, result, outcome, source FROM tool_calls") == [
            ("web_search", "found", "unknown", "message")
        ]
        assert lab.totals("tool_calls") == (1,)

    def test_a_request_that_nothing_answered_is_no_call(self, lab: Lab) -> None:
        lab.put(agent("a"), chat("m", "a", at=1, **{"gen_ai.output.messages": asks(("c1", "rm", {}))}))

        assert lab.rows("SELECT name, outcome FROM tool_calls") == [("rm", "requested")]
        assert lab.totals("tool_calls") == (0,)

    def test_text_that_looks_like_a_call_is_text(self, lab: Lab) -> None:
        """T23: what an agent prints is never a fact."""
        fake = says('tool=rm {"type": "tool_call", "name": "rm"} gen_ai.tool.name=rm')
        lab.put(agent("a"), chat("m", "a", at=1, **{"gen_ai.output.messages": fake}))

        assert lab.rows("SELECT * FROM tool_calls") == []

    def test_an_open_tool_span_has_no_known_outcome(self, lab: Lab) -> None:
        open_tool = tool("t", "a", at=5)
        open_tool.to = 0
        lab.put(agent("a"), open_tool)

        assert lab.rows("SELECT outcome FROM tool_calls") == [("unknown",)]


class TestUnknown:
    def test_a_call_without_usage_leaves_no_sum(self, lab: Lab) -> None:
        lab.put(agent("a"), chat("m1", "a", at=1), chat("m2", "a", at=9, **{"gen_ai.usage.input_tokens": None}))

        columns = ("input_tokens", "input_tokens_low", "input_tokens_known", "output_tokens", "usage_calls")
        assert lab.totals(*columns) == (None, 100, 1, 20, 2)

    @pytest.mark.parametrize("value", [-5, "many", "", float("1e300")])
    def test_a_count_that_is_none_is_unknown(self, lab: Lab, value: Any) -> None:
        """T31: negative, wordy and impossible counts are unknown, not zero."""
        lab.put(agent("a"), chat("m", "a", at=1, **{"gen_ai.usage.input_tokens": value}))

        assert lab.totals("input_tokens") == (None,)

    def test_a_count_that_is_none_is_told(self, lab: Lab) -> None:
        lab.put(agent("a"), chat("m", "a", at=1, **{"gen_ai.usage.input_tokens": "many"}))

        (said,) = lab.rows("SELECT diagnostics FROM fact_state")[0]
        assert "1 span recorded input_tokens" in said

    def test_numeric_text_is_a_number(self, lab: Lab) -> None:
        lab.put(agent("a"), chat("m", "a", at=1, **{"gen_ai.usage.input_tokens": "1013"}))

        assert lab.totals("input_tokens") == (1013,)

    def test_a_plain_sdk_that_asked_for_tools_without_content(self, lab: Lab) -> None:
        """Model spans alone, the model asked for tools, nothing says which: tool calls are unknown, not none."""
        lab.put(chat("m1", at=1, **{"gen_ai.response.finish_reasons": ["tool_calls"]}), chat("m2", at=9))

        assert lab.totals("tool_calls", "agents") == (None, None)

    def test_model_spans_alone_that_asked_for_nothing(self, lab: Lab) -> None:
        lab.put(chat("m1", at=1), chat("m2", at=9))

        assert lab.totals("tool_calls") == (0,)

    def test_unpriced_calls_leave_the_cost_open(self) -> None:
        """T11: one call has a price, one has none."""
        lab = Lab(Pricing.from_mapping({"gpt-4o": {"input_per_1m": 10, "output_per_1m": 10}}))
        mine = {
            "gen_ai.request.model": "house-model",
            "gen_ai.response.model": "house-model",
            "gen_ai.provider.name": "house",
        }
        lab.put(agent("a"), chat("m1", "a", at=1), chat("m2", "a", at=9, **mine))

        low, high, priced = lab.totals("cost_low", "cost_high", "priced_calls")
        assert (low, high, priced) == (pytest.approx(0.0011), None, 1)
        assert lab.rows("SELECT cost_source FROM llm_calls ORDER BY call_no") == [("model_pricing",), (None,)]

    def test_a_nameless_agent_is_there_without_a_name(self, lab: Lab) -> None:
        lab.put(agent("a", agent=None))

        assert lab.rows("SELECT name FROM agents") == [(None,)]


class TestTokens:
    def test_calls_that_got_no_answer_used_nothing_that_is_known(self, counting: Lab) -> None:
        failed = chat("m", "a", at=1, **{"gen_ai.response.model": None, "gen_ai.usage.input_tokens": None, "gen_ai.usage.output_tokens": None, "gen_ai.response.finish_reasons": None})  # fmt: skip
        failed.error = "401"
        counting.put(agent("a"), failed)

        assert counting.totals("llm_calls", "failed_llm_attempts", "input_tokens", "usage_calls") == (0, 1, 0, 0)

    def test_more_cached_than_input_proves_exclusion(self, lab: Lab) -> None:
        """T19: input_tokens includes cached tokens, also where the instrumentation left them out."""
        lab.put(
            agent("a"),
            chat("m", "a", at=1, **{"gen_ai.usage.input_tokens": 4, "gen_ai.usage.cache_read.input_tokens": 1000}),
        )

        assert lab.totals("input_tokens", "cache_read_tokens") == (1004, 1000)

    def test_what_one_call_proves_holds_for_the_others_of_its_instrumentation(self, lab: Lab) -> None:
        """The second call alone would not tell; a call of another provider is not touched, nor one without cached tokens."""
        cached = "gen_ai.usage.cache_read.input_tokens"
        lab.put(
            agent("a"),
            chat("m", "a", at=1, **{"gen_ai.usage.input_tokens": 4, cached: 1000}),
            chat("n", "a", at=20, **{"gen_ai.usage.input_tokens": 3000, cached: 1000}),
            chat("o", "a", at=40, **{"gen_ai.usage.input_tokens": 50}),
            chat(
                "p", "a", at=60, **{"gen_ai.usage.input_tokens": 300, cached: 100, "gen_ai.provider.name": "anthropic"}
            ),
        )

        assert lab.rows("SELECT input_tokens FROM llm_calls ORDER BY call_no") == [(1004,), (4000,), (50,), (300,)]
        assert lab.rows("SELECT sum(input_tokens) FROM spans WHERE kind = 'llm'") == [(5354,)]

    def test_a_rollup_serves_where_there_is_no_model_call(self, lab: Lab) -> None:
        usage = {"gen_ai.usage.input_tokens": 50, "gen_ai.usage.output_tokens": 5}
        lab.put(agent("a", **usage), agent("b", "a", at=1, to=9, agent="sub", **usage))

        assert lab.totals("llm_calls", "input_tokens", "output_tokens") == (None, 50, 5)


class TestErrors:
    def test_recovered_when_the_same_tool_later_succeeds(self, lab: Lab) -> None:
        failing = tool("t1", "a", at=1)
        failing.error = "busy"
        other = tool("t3", "a", at=9, tool="pay")
        other.error = "no"
        lab.put(agent("a"), failing, tool("t2", "a", at=5), other)

        assert lab.rows("SELECT name, message, recovered FROM errors ORDER BY span_id") == [
            ("get_weather", "busy", True),
            ("pay", "no", False),
        ]
        assert lab.totals("errors", "unrecovered_errors") == (2, 1)

    def test_transport_is_infrastructure(self, lab: Lab) -> None:
        """T13: an HTTP span that failed inside of a call that went well is no error of the agent."""
        http = S("h", "m", 2, 3, "POST", {"http.request.method": "POST", "error.type": "500"}, error="500")
        lab.put(agent("a"), chat("m", "a", at=1), http)

        assert lab.totals("errors") == (0,)
        assert lab.rows("SELECT kind FROM spans WHERE name = 'POST'") == [("infra",)]


class TestAgents:
    def test_a_sub_agent_below_a_tool(self, lab: Lab) -> None:
        lab.put(
            agent("a"),
            tool("t", "a", at=1, tool="ask"),
            agent("b", "t", at=2, to=9, agent="researcher"),
            chat("m", "b", at=3),
        )

        assert lab.rows("SELECT name, parent_activation_no, via FROM agents ORDER BY activation_no") == [
            ("assistant", None, "root"),
            ("researcher", 1, "tool"),
        ]
        assert lab.rows("SELECT agent_span_id FROM llm_calls") == [(hex_id("b"),)]

    def test_a_handoff_names_its_source(self, lab: Lab) -> None:
        """The target stands beside its source, below one chain: the name decides, not the nesting."""
        chain = S("c", "", 0, 90, "run", {"gen_ai.operation.name": "invoke_workflow"})
        lab.put(
            chain, agent("a", "c", at=1, to=20), agent("b", "c", at=21, to=40, agent="researcher", **{"gen_ai.agent.handoff_parent": "assistant"})
        )  # fmt: skip

        assert lab.rows("SELECT name, parent_activation_no, via FROM agents ORDER BY activation_no") == [
            ("assistant", None, "root"),
            ("researcher", 1, "handoff"),
        ]


class TestTimes:
    def test_busy_time_is_the_union(self, lab: Lab) -> None:
        lab.put(S("a", "", 1, 10), S("b", "", 5, 20), S("c", "", 30, 31))

        assert lab.totals("busy_ns", "first_start_ns", "last_end_ns") == (20_000_000, 1_000_000, 31_000_000)

    def test_clock_skew_never_makes_a_negative_duration(self, lab: Lab) -> None:
        """T17: how long a span lasted that ends before it starts is unknown, and of a root how long the run did."""
        lab.put(S("a", "", 10, 5), S("b", "a", 11, 12), run="root")
        lab.put(S("a", "", 10, 50), S("b", "a", 12, 11), run="child")

        assert set(lab.rows("SELECT duration_ns, ended FROM spans", "root")) == {(None, True), (1_000_000, True)}
        assert lab.totals("first_start_ns", "last_end_ns", "busy_ns", run="root") == (10_000_000, None, None)
        assert lab.totals("last_end_ns", "busy_ns", run="child") == (50_000_000, 40_000_000)


class TestFinalOutput:
    def test_the_last_call_of_the_run_speaks(self, lab: Lab) -> None:
        lab.put(agent("a"), chat("m", "a", at=1, **{"gen_ai.output.messages": says("It is 21 degrees.")}))

        assert lab.rows("SELECT final_output FROM runs") == [("It is 21 degrees.",)]

    def test_two_conversations_side_by_side_have_no_one_answer(self, lab: Lab) -> None:
        one = [agent("a", to=50), chat("m", "a", at=1, **{"gen_ai.output.messages": says("A")})]
        two = [agent("b", at=5, to=60), chat("n", "b", at=6, **{"gen_ai.output.messages": says("B")})]
        for span in two:
            span.trace = f"{2:032x}"
        lab.put(*one, *two)

        assert lab.rows("SELECT final_output FROM runs") == [(None,)]


WORKLOAD = [
    agent("a"),
    chat("m1", "a", at=1, **{"gen_ai.output.messages": asks(("call_t1", "get_weather", {"city": "Paris"}))}),
    tool("t1", "a", at=8),
    agent("b", "t1", at=9, to=11, agent="researcher"),
    chat("m2", "b", at=9, **{"gen_ai.response.id": "x"}),
    chat("m3", "m2", at=9, **{"gen_ai.response.id": "x"}),
    tool("t2", "a", at=20, tool="pay"),
    S("lost", "nobody", 30, 31),
]


def everything(lab: Lab) -> dict[str, list[tuple[Any, ...]]]:
    lab.facts.ensure(["r"])
    names = [name for name in RELATIONS if name not in ("attributes", "commands")]
    return {name: sorted(lab.rows(f"SELECT * FROM {name}"), key=repr) for name in names}


@settings(max_examples=10, suppress_health_check=[HealthCheck.too_slow])
@given(seed=st.integers(0, 10**6), cuts=st.lists(st.integers(1, len(WORKLOAD) - 1), max_size=3))
@pytest.mark.full
def test_order_batches_and_repeats_never_change_a_fact(seed: int, cuts: list[int]) -> None:
    """Any order of arrival, split into any requests, some delivered twice, gives the same facts."""
    straight = Lab().put(*WORKLOAD)
    shuffled = list(WORKLOAD)
    random.Random(seed).shuffle(shuffled)
    mixed = Lab()
    for start, end in zip([0, *sorted(cuts)], [*sorted(cuts), len(shuffled)], strict=True):
        mixed.put(*shuffled[start:end], *shuffled[: end // 2], arrival=seed % 7 + start)
        mixed.facts.ensure(["r"])

    assert everything(mixed) == everything(straight)


def test_runs_computed_together_or_alone_have_the_same_facts() -> None:
    together, alone = Lab(), Lab()
    for run in ("r1", "r", "r2"):
        together.put(*WORKLOAD, run=run)
    together.facts.ensure(["r1", "r", "r2"])
    alone.put(*WORKLOAD)
    pick = "SELECT * FROM {} WHERE run_id = :run"
    for name in ("spans", "llm_calls", "tool_calls", "agents", "messages", "errors", "run_totals", "run_tools", "runs"):
        one, other = (sorted(lab.rows(pick.format(name)), key=repr) for lab in (together, alone))
        assert one == other, name


class TestCommands:
    def test_a_shell_tools_command(self, lab: Lab) -> None:
        """Text, program, exit code and output come from where the dialect says that they stand."""
        arguments, result = '{"command": "/usr/bin/git status"}', '{"exit_code": 3, "stdout": "x", "stderr": "y"}'
        call = tool("t", "a", at=1, tool="bash", **{"gen_ai.tool.call.arguments": arguments, "gen_ai.tool.call.result": result})  # fmt: skip
        lab.put(agent("a"), call)

        assert lab.rows("SELECT text, argv0, exit_code, stdout, stderr, output, simple, ok FROM commands") == [
            ("/usr/bin/git status", "git", 3, "x", "y", None, False, False),
            ("/usr/bin/git status", "git", 3, None, None, None, True, False),
        ]

    def test_a_program_with_its_arguments(self, lab: Lab) -> None:
        arguments = '{"command": ["bash", "-lc", "rm -rf /"]}'
        lab.put(agent("a"), tool("t", "a", at=1, tool="shell", **{"gen_ai.tool.call.arguments": arguments}))

        assert lab.rows("SELECT command_no, text, argv0, exit_code, simple, last_no FROM commands") == [
            (1, "bash -lc 'rm -rf /'", "bash", None, False, 3),
            (2, "bash -lc 'rm -rf /'", "bash", None, False, 3),
            (3, "rm -rf /", "rm", None, True, 3),
        ]

    def test_other_tools_run_no_command(self, lab: Lab) -> None:
        lab.put(agent("a"), tool("t", "a", at=1, **{"gen_ai.tool.call.arguments": '{"command": "ls"}'}))

        assert lab.rows("SELECT * FROM commands") == []


def test_attempts_of_one_call(lab: Lab) -> None:
    """Two provider requests inside of one wrapper: one call, two attempts, and the tokens of both."""
    failed = chat("x", "w", at=2, **{"gen_ai.response.model": None, "gen_ai.usage.output_tokens": None, "gen_ai.response.finish_reasons": None})  # fmt: skip
    failed.error = "503"
    lab.put(agent("a"), chat("w", "a", at=1), failed, chat("y", "w", at=4))

    assert lab.rows("SELECT outcome, attempts, input_tokens, output_tokens FROM llm_calls") == [("ok", 2, 200, 10)]


class TestReview:
    """What a fresh-eyed reader broke."""

    @pytest.mark.parametrize(
        "message",
        [
            {"role": "assistant", "parts": [{"type": "text", "content": "a\ud83d"}]},
            {"role": [1], "parts": [{"type": "text", "content": "x"}]},
            {"role": 1, "content": "x"},
            {"role": "assistant", "parts": [{"type": "tool_call", "id": 3, "name": 5, "arguments": {}}]},
            {"role": "tool", "tool_call_id": {"a": 1}, "content": "x"},
        ],
    )
    def test_a_hostile_message_harms_nobody(self, lab: Lab, message: dict[str, Any]) -> None:
        lab.put(agent("a"), chat("m", "a", at=1, **{"gen_ai.output.messages": json.dumps([message])}))

        assert lab.totals("llm_calls") == (1,)

    def test_requests_under_one_wrapper_use_tokens_each(self, lab: Lab) -> None:
        usage = {"gen_ai.usage.input_tokens": 200, "gen_ai.usage.output_tokens": 7}
        wrapper = chat("w", "a", at=1, **{"gen_ai.usage.input_tokens": None, "gen_ai.usage.output_tokens": None})
        lab.put(agent("a"), wrapper, chat("x", "w", at=2), chat("y", "w", at=8, **usage))

        assert lab.totals("input_tokens", "output_tokens") == (300, 17)

    def test_one_request_without_usage_leaves_the_call_unknown(self, lab: Lab) -> None:
        none = {"gen_ai.usage.input_tokens": None, "gen_ai.usage.output_tokens": None}
        lab.put(agent("a"), chat("w", "a", at=1, **none), chat("x", "w", at=2), chat("y", "w", at=8, **none))

        assert lab.totals("input_tokens", "output_tokens") == (None, None)

    def test_one_call_id_in_two_scopes_is_two_calls(self, lab: Lab) -> None:
        one, two = (tool(t, t[0], at=n * 20 + 1, **{"gen_ai.tool.call.id": "c1"}) for n, t in enumerate(("at", "bt")))
        two.scope, two.trace = "other", f"{2:032x}"
        other = agent("b", at=20, to=90, agent="other")
        other.trace = two.trace
        lab.put(agent("a", to=10), one, other, two)

        assert lab.totals("tool_calls") == (2,)

    def test_a_reused_call_id_keeps_both_calls_and_their_results(self, lab: Lab) -> None:
        history = json.loads(answered("call_1", "sunny"))
        second = {
            "gen_ai.input.messages": answered("call_1", "sunny"),
            "gen_ai.output.messages": asks(("call_1", "get", {"c": "Rome"})),
        }
        third = {"gen_ai.input.messages": json.dumps([*history, *json.loads(answered("call_1", "rain"))])}
        lab.put_sdk(
            agent("a"),
            chat("m1", "a", at=1, **{"gen_ai.output.messages": asks(("call_1", "get", {"c": "Paris"}))}),
            chat("m2", "a", at=10, **second),
            chat("m3", "a", at=20, **third),
        )

        assert lab.rows("SELECT arguments, result, outcome FROM tool_calls ORDER BY call_no") == [
            ('{"c":"Paris"}', "sunny", "unknown"),
            ('{"c":"Rome"}', "rain", "unknown"),
        ]

    def test_a_result_of_an_earlier_conversation_answers_nothing(self, lab: Lab) -> None:
        lab.put_sdk(
            agent("a", to=15),
            chat("m1", "a", at=1, **{"gen_ai.output.messages": asks(("call_1", "get", {}))}),
            chat("m2", "a", at=8, **{"gen_ai.input.messages": answered("call_1", "sunny")}),
            agent("b", at=20, to=40, agent="b"),
            chat("m3", "b", at=21, **{"gen_ai.output.messages": asks(("call_1", "rm", {}))}),
        )

        assert lab.rows("SELECT name, outcome FROM tool_calls ORDER BY call_no") == [
            ("get", "unknown"),
            ("rm", "requested"),
        ]

    def test_a_handoff_span_names_its_target(self, lab: Lab) -> None:
        attrs = {"gen_ai.operation.name": "handoff", "gen_ai.handoff.from_agent": "assistant", "gen_ai.handoff.to_agent": "billing"}  # fmt: skip
        chain = S("c", "", 1, 90, "run", {"gen_ai.operation.name": "invoke_workflow"})
        handoff = S("h", "a", 10, 11, "handoff", attrs)
        lab.put(chain, agent("a", "c", at=2, to=12), handoff, agent("b", "c", at=13, to=40, agent="billing"))

        assert lab.rows("SELECT name, parent_activation_no, via FROM agents ORDER BY activation_no") == [
            ("assistant", None, "root"),
            ("billing", 1, "handoff"),
        ]

    def test_a_concurrent_call_is_no_retry(self, lab: Lab) -> None:
        failing = tool("t1", "a", at=1)
        failing.error, failing.to = "busy", 50
        lab.put(agent("a"), failing, tool("t2", "a", at=5))

        assert lab.rows("SELECT recovered FROM errors") == [(False,)]

    def test_an_error_type_without_a_status_is_a_failure(self, counting: Lab) -> None:
        failed = {"error.type": "429", "gen_ai.usage.output_tokens": None, "gen_ai.response.finish_reasons": None}
        counting.put(agent("a"), chat("m", "a", at=1, **failed))

        assert counting.totals("llm_calls", "failed_llm_attempts", "errors") == (0, 1, 1)

    def test_two_known_ids_that_differ_are_two_calls(self, lab: Lab) -> None:
        request = {"gen_ai.output.messages": asks(("call_1", "rm", {"path": "/"}))}
        lab.put(agent("a"), chat("m", "a", at=1, **request), tool("t", "a", at=9, tool="rm", **{"gen_ai.tool.call.id": "call_2"}))  # fmt: skip

        assert lab.rows("SELECT call_id, arguments, outcome FROM tool_calls ORDER BY call_id") == [
            ("call_1", '{"path":"/"}', "requested"),
            ("call_2", None, "ok"),
        ]


class TestTwins:
    """Two instrumentations of one program tell of everything twice."""

    def twice(self) -> list[S]:
        first = [agent("a"), chat("m", "a", at=1, **{"gen_ai.response.id": "r"}), tool("t", "a", at=9, **{"gen_ai.tool.call.id": None})]  # fmt: skip
        second = [agent("b", at=1), chat("n", "b", at=2, **{"gen_ai.response.id": "r"}), tool("u", "b", at=10, **{"gen_ai.tool.call.id": None, "gen_ai.tool.call.arguments": "{}"})]  # fmt: skip
        for span in second:
            span.scope, span.trace = "other", f"{2:032x}"
        return first + second

    def test_side_by_side(self, lab: Lab) -> None:
        lab.put(*self.twice())

        assert lab.totals("llm_calls", "tool_calls", "agents") == (1, 1, 1)
        assert lab.rows("SELECT name, arguments FROM tool_calls") == [("get_weather", "{}")]

    def test_nested(self, lab: Lab) -> None:
        """The inner span of the same agent is no delegation."""
        inner, told = agent("b", "a", at=1, to=90), chat("n", "m", at=3, **{"gen_ai.response.id": "r"})
        for span in (inner, told):
            span.scope = "other"
        lab.put(agent("a"), inner, chat("m", "b", at=2, **{"gen_ai.response.id": "r"}), told)

        assert lab.rows("SELECT name, parent_activation_no FROM agents") == [("assistant", None)]
        owners = lab.rows("SELECT a.name FROM llm_calls AS c JOIN agents AS a ON a.span_id = c.agent_span_id")
        assert owners == [("assistant",)]

    def test_what_only_one_of_them_tells_of_stays(self, lab: Lab) -> None:
        extra = tool("x", "b", at=20, tool="pay")
        extra.scope, extra.trace = "other", f"{2:032x}"
        lab.put(*self.twice(), extra)

        assert sorted(lab.rows("SELECT name FROM tool_calls")) == [("get_weather",), ("pay",)]

    def test_two_calls_of_one_instrumentation_are_never_one(self, lab: Lab) -> None:
        """A call that both tell of, nested, is no twin of another one: what is left of each is paired."""
        both = [chat("m", at=1, **{"gen_ai.response.id": "r"}), chat("n", at=2, **{"gen_ai.response.id": "r"})]
        alone, outer, inner, last = tool("1", at=10), tool("2", at=20), tool("3", "2", at=21), tool("4", at=50)
        for span in (both[1], inner, last):
            span.scope = "other"
        for span in (alone, outer, inner, last):
            span.attrs.pop("gen_ai.tool.call.id")
        lab.put(*both, alone, outer, inner, last)

        assert lab.rows("SELECT span_id, counted_in FROM spans WHERE kind = 'tool' ORDER BY start_ns") == [
            (hex_id(span), hex_id(call)) for span, call in (("1", "1"), ("2", "2"), ("3", "2"), ("4", "1"))
        ]

    def test_other_scopes_without_model_calls_are_no_twins(self, lab: Lab) -> None:
        mine = tool("x", "a", at=30)
        mine.scope = "app"
        lab.put(*self.twice(), mine)

        assert lab.totals("tool_calls") == (2,)
