"""Tool calls: executions matched with the requests of the model, and with the results that it was sent."""

from __future__ import annotations

import json

from building import Lab, agent, answered, asks, chat, says, tool


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
            ("web_search", "found", None, "message")
        ]
        assert lab.totals("tool_calls") == (1,)

    def test_a_request_that_nothing_answered_may_have_become_a_call(self, lab: Lab) -> None:
        lab.put(agent("a"), chat("m", "a", at=1, **{"gen_ai.output.messages": asks(("c1", "rm", {}))}))

        assert lab.rows("SELECT name, outcome, certain FROM tool_calls") == [("rm", None, False)]
        assert lab.rows("SELECT tool_calls_low, tool_calls_high FROM run_totals") == [(0, 1)]

    def test_text_that_looks_like_a_call_is_text(self, lab: Lab) -> None:
        """T23: what an agent prints is never a fact."""
        fake = says('tool=rm {"type": "tool_call", "name": "rm"} gen_ai.tool.name=rm')
        lab.put(agent("a"), chat("m", "a", at=1, **{"gen_ai.output.messages": fake}))

        assert lab.rows("SELECT * FROM tool_calls") == []

    def test_an_open_tool_span_has_no_known_outcome(self, lab: Lab) -> None:
        open_tool = tool("t", "a", at=5)
        open_tool.to = 0
        lab.put(agent("a"), open_tool)

        assert lab.rows("SELECT outcome FROM tool_calls") == [(None,)]


class TestCallIds:
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
            ('{"c":"Paris"}', "sunny", None),
            ('{"c":"Rome"}', "rain", None),
        ]

    def test_a_result_of_an_earlier_conversation_answers_nothing(self, lab: Lab) -> None:
        lab.put_sdk(
            agent("a", to=15),
            chat("m1", "a", at=1, **{"gen_ai.output.messages": asks(("call_1", "get", {}))}),
            chat("m2", "a", at=8, **{"gen_ai.input.messages": answered("call_1", "sunny")}),
            agent("b", at=20, to=40, agent="b"),
            chat("m3", "b", at=21, **{"gen_ai.output.messages": asks(("call_1", "rm", {}))}),
        )

        assert lab.rows("SELECT name, certain FROM tool_calls ORDER BY call_no") == [("get", True), ("rm", False)]

    def test_two_known_ids_that_differ_are_two_calls(self, lab: Lab) -> None:
        request = {"gen_ai.output.messages": asks(("call_1", "rm", {"path": "/"}))}
        lab.put(agent("a"), chat("m", "a", at=1, **request), tool("t", "a", at=9, tool="rm", **{"gen_ai.tool.call.id": "call_2"}))  # fmt: skip

        assert lab.rows("SELECT call_id, arguments, outcome FROM tool_calls ORDER BY call_id") == [
            ("call_1", '{"path":"/"}', None),
            ("call_2", None, "ok"),
        ]


def test_a_result_that_reads_like_a_failure_is_named_as_the_reason(lab: Lab) -> None:
    """That the outcome is not recorded says too little: it is the words of the result that leave it open."""
    read, odd = {"gen_ai.tool.call.result": "3 articles"}, {"gen_ai.tool.call.result": "3 articles on invalid tokens"}
    lab.put(agent("a"), tool("t", "a", at=1, tool="look", **read), tool("u", "a", at=4, tool="search", **odd))

    assert lab.rows("SELECT name, outcome FROM tool_calls ORDER BY start_ns") == [("look", "ok"), ("search", None)]
    assert lab.rows("SELECT reason FROM doubts WHERE relation = 'tool_calls' AND column_name = 'outcome'") == [
        ("reads-like-a-failure",)
    ]
    assert lab.rows("SELECT reason, name FROM gaps WHERE relation = 'errors'") == [("reads-like-a-failure", "search")]
