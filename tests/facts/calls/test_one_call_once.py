"""One logical call counts once: repeated spans, attempts inside of one call, two instrumentations of one program."""

from __future__ import annotations

import pytest
from building import Lab, S, agent, chat, hex_id, tool


class TestOneCallOnce:
    def test_an_agents_usage_repeats_its_calls(self, lab: Lab) -> None:
        """T5: usage on the agent span and on its two model calls is counted once."""
        usage = {"gen_ai.usage.input_tokens": 200, "gen_ai.usage.output_tokens": 20}
        lab.put(agent("a", **usage), chat("m1", "a", at=1), chat("m2", "a", at=10))

        assert lab.totals("llm_calls", "input_tokens", "output_tokens") == (2, 200, 20)
        assert lab.rows("SELECT counted_as FROM spans WHERE kind = 'agent'") == [("accounting",)]

    def test_a_second_instrumentation_in_its_own_trace(self, lab: Lab) -> None:
        """The same response id records the same call wherever its span stands."""
        other = chat("x", at=2, **{"gen_ai.response.id": "r1"})
        other.scope, other.trace = "other", f"{2:032x}"
        lab.put(agent("a"), chat("m", "a", at=1, **{"gen_ai.response.id": "r1"}), other)

        assert lab.totals("llm_calls", "input_tokens") == (1, 100)
        assert sorted(lab.rows("SELECT counted_as FROM spans WHERE kind = 'llm'")) == [("call",), ("duplicate",)]

    def test_a_call_below_one_that_had_ended(self, lab: Lab) -> None:
        """One instrumentation of one process writes both: the second followed from the first, whose context it still has."""
        lab.put(agent("a"), chat("m", "a", at=1), chat("n", "m", at=20))

        assert lab.totals("llm_calls", "input_tokens") == (2, 200)

    @pytest.mark.parametrize(
        ("scope", "flags"), [("other", 0x100), ("test", 0x300)], ids=["another scope", "another process"]
    )
    def test_a_layer_that_seems_to_begin_later_is_one_call(self, lab: Lab, scope: str, flags: int) -> None:
        """A stream may be asked for when it is first read, and the clock of a server may be ahead."""
        inner = chat("n", "m", at=20)
        inner.scope, inner.flags = scope, flags
        lab.put(agent("a"), chat("m", "a", at=1), inner)

        assert lab.totals("llm_calls", "input_tokens") == (1, 100)

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

    def test_a_server_in_its_own_trace_that_starts_at_once(self, lab: Lab) -> None:
        """Clocks are coarse: what starts at the same nanosecond and ends inside is the same call."""
        inner = S("i", "", 1, 2, "tools/call get_weather", {"mcp.method.name": "tools/call"}, trace=f"{2:032x}")
        lab.put(agent("a"), tool("t", "a", at=1), inner)

        assert lab.rows("SELECT name FROM tool_calls") == [("get_weather",)]

    def test_layers_keep_the_turn(self, lab: Lab) -> None:
        inner = S("i", "t", 2, 3, "tools/call get_weather", {"mcp.method.name": "tools/call"})
        lab.put(agent("a"), chat("m", "a", at=1), tool("t", "a", at=3), inner)

        assert lab.rows("SELECT turn FROM tool_calls") == [(1,)]

    def test_a_failed_attempt_inside_an_answered_call(self, counting: Lab) -> None:
        """T13: one call, answered; its failed attempt is an error that was recovered, and counted as an attempt."""
        wrapper = chat("w", "a", at=1)
        attempt = chat("x", "w", at=2, **{"gen_ai.response.model": None, "gen_ai.usage.input_tokens": None, "gen_ai.usage.output_tokens": None, "gen_ai.response.finish_reasons": None})  # fmt: skip
        attempt.error = "500"
        counting.put(agent("a"), wrapper, attempt)

        columns = ("llm_calls", "failed_llm_attempts", "errors", "unrecovered_errors")
        assert counting.totals(*columns) == (1, 1, 1, 0)


def test_attempts_of_one_call(lab: Lab) -> None:
    """Two provider requests inside of one wrapper: one call, two attempts; whether the wrapper's tokens are those of both is unknown."""
    failed = chat("x", "w", at=2, **{"gen_ai.response.model": None, "gen_ai.usage.output_tokens": None, "gen_ai.response.finish_reasons": None})  # fmt: skip
    failed.error = "503"
    lab.put(agent("a"), chat("w", "a", at=1), failed, chat("y", "w", at=4))

    assert lab.rows("SELECT outcome, attempts, input_tokens, output_tokens FROM llm_calls") == [("ok", 2, None, None)]


def test_requests_under_one_wrapper_use_tokens_each(lab: Lab) -> None:
    usage = {"gen_ai.usage.input_tokens": 200, "gen_ai.usage.output_tokens": 7}
    wrapper = chat("w", "a", at=1, **{"gen_ai.usage.input_tokens": None, "gen_ai.usage.output_tokens": None})
    lab.put(agent("a"), wrapper, chat("x", "w", at=2), chat("y", "w", at=8, **usage))

    assert lab.totals("input_tokens", "output_tokens") == (300, 17)


def test_one_request_without_usage_leaves_the_call_unknown(lab: Lab) -> None:
    none = {"gen_ai.usage.input_tokens": None, "gen_ai.usage.output_tokens": None}
    lab.put(agent("a"), chat("w", "a", at=1, **none), chat("x", "w", at=2), chat("y", "w", at=8, **none))

    assert lab.totals("input_tokens", "output_tokens") == (None, None)


class TestTwoInstrumentations:
    """Two instrumentations of one program record everything twice."""

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
        inner, repeated = agent("b", "a", at=1, to=90), chat("n", "m", at=3, **{"gen_ai.response.id": "r"})
        for span in (inner, repeated):
            span.scope = "other"
        lab.put(agent("a"), inner, chat("m", "b", at=2, **{"gen_ai.response.id": "r"}), repeated)

        assert lab.rows("SELECT name, parent_activation_no FROM agents") == [("assistant", None)]
        owners = lab.rows("SELECT a.name FROM llm_calls AS c JOIN agents AS a ON a.span_id = c.agent_span_id")
        assert owners == [("assistant",)]

    def test_what_only_one_of_them_records_stays(self, lab: Lab) -> None:
        extra = tool("x", "b", at=20, tool="pay")
        extra.scope, extra.trace = "other", f"{2:032x}"
        lab.put(*self.twice(), extra)

        assert sorted(lab.rows("SELECT name FROM tool_calls")) == [("get_weather",), ("pay",)]

    def test_two_calls_of_one_instrumentation_are_never_one(self, lab: Lab) -> None:
        """A call that both record, nested, is no duplicate of another one: what is left of each is paired."""
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

    def test_other_scopes_without_model_calls_are_no_second_instrumentation(self, lab: Lab) -> None:
        mine = tool("x", "a", at=30)
        mine.scope = "app"
        lab.put(*self.twice(), mine)

        assert lab.totals("tool_calls") == (2,)


@pytest.mark.parametrize("kind", [{}, {"span.type": "llm"}])
@pytest.mark.parametrize(("begun", "calls"), [(9, (1, 1)), (11, (1, 2))])
def test_what_began_later_in_words_of_its_own_may_be_another_call(
    lab: Lab, begun: int, calls: tuple[int, int], kind: dict[str, str]
) -> None:
    """General rules alone read these spans: a layer that begins late, or the model call of a service that the first one's answer asked for."""
    said = {"llm.model": "gpt-4o", "prompt_tokens": 100, "completion_tokens": 10, **kind}
    outer = S("o", "", 1, 10, "llm.call", said)
    lab.put(outer, S("i", "o", begun, 20, "llm.call", said, scope="another"))

    assert lab.rows("SELECT llm_calls_low, llm_calls_high FROM run_totals") == [calls]
