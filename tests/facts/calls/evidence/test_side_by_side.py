"""A framework's callbacks next to the SDK's own spans: which of them are one model call where response ids are missing."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from building import Lab, S, agent, chat, tool

USAGE = ("llm_calls", "input_tokens", "output_tokens")
NO_USAGE = {"gen_ai.usage.input_tokens": None, "gen_ai.usage.output_tokens": None}


def model_call(scope: str, number: int, at: int, to: int, tokens: int | None = 100, **attrs: Any) -> S:
    """Model call `number` as a scope records it, in a separate trace; without tokens it recorded nothing of the answer."""
    usage = NO_USAGE if tokens is None else {"gen_ai.usage.input_tokens": tokens}
    span = chat(f"{scope[0]}{number}", at=at, **usage, **attrs)
    return replace(span, to=to, scope=scope, trace=f"{1000 * ord(scope[0]) + number:032x}")


NO_END = {"gen_ai.response.finish_reasons": None}
"""Of a call that failed."""


def named(number: int) -> dict[str, str]:
    return {"gen_ai.response.id": f"chatcmpl-{number}"}


def test_streamed_answers_next_to_answers_that_have_an_id(lab: Lab) -> None:
    """The callbacks know the id of a whole answer and none of a streamed one: the streamed ones were counted twice."""
    lab.put(
        model_call("framework", 1, 0, 9, **named(1)), model_call("sdk", 1, 1, 8, **named(1)),
        model_call("framework", 2, 20, 29), model_call("sdk", 2, 21, 28, **named(2)),
    )  # fmt: skip

    assert lab.totals(*USAGE) == (2, 200, 20)


def test_models_that_the_other_scope_never_records(lab: Lab) -> None:
    """Only one of two SDKs is instrumented: the calls of the other have no twin."""
    other = {"gen_ai.request.model": "claude-haiku-4-5", "gen_ai.response.model": "claude-haiku-4-5"}
    lab.put(
        model_call("framework", 1, 0, 9),
        model_call("sdk", 1, 1, 8, **named(1)),
        model_call("framework", 2, 20, 29, **other),
    )

    assert lab.totals(*USAGE) == (2, 200, 20)


def test_streams_of_which_no_scope_recorded_the_tokens(lab: Lab) -> None:
    """As many calls on both sides, each in the time of another: one stream each, of unknown tokens."""
    lab.put(
        model_call("framework", 1, 0, 9, None), model_call("sdk", 1, 1, 8, None, **named(1)),
        model_call("framework", 2, 20, 29, None), model_call("sdk", 2, 21, 28, None),
    )  # fmt: skip

    assert lab.totals(*USAGE) == (2, None, None)


def test_streams_without_tokens_of_which_one_side_has_more(lab: Lab) -> None:
    """Nothing says which of the two is the framework's, or whether it is a third one."""
    lab.put(
        model_call("framework", 1, 0, 9, None),
        model_call("sdk", 1, 1, 8, None, **named(1)),
        model_call("sdk", 2, 2, 7, None, **named(2)),
    )

    assert lab.totals("llm_calls", "cost_high") == (None, None)
    assert sorted(lab.rows("SELECT certain FROM llm_calls")) == [(False,), (True,), (True,)]


def test_tokens_on_the_side_without_ids(lab: Lab) -> None:
    """The scope that knows the ids recorded nothing of the streams."""
    lab.put(
        model_call("framework", 1, 0, 9), model_call("sdk", 1, 1, 8, None, **named(1)),
        model_call("framework", 2, 20, 29, 70), model_call("sdk", 2, 21, 28, None, **named(2)),
    )  # fmt: skip

    assert lab.totals(*USAGE) == (2, 170, 20)


def test_an_id_in_one_of_three_scopes(lab: Lab) -> None:
    """All of them record each call."""
    scopes = ("framework", "sdk", "vendor")
    lab.put(*(
        model_call(scope, number, at + k, at + 9 - k, **(named(number) if scope == "vendor" else {}))
        for number, at in enumerate((0, 20, 40))
        for k, scope in enumerate(scopes)
    ))  # fmt: skip

    assert lab.totals(*USAGE) == (3, 300, 30)


def test_parallel_calls_of_which_the_longer_one_started_first(lab: Lab) -> None:
    """The short call's inner span came first, so the long one took it, and nothing was left that the short one holds."""
    lab.put(
        model_call("framework", 1, 0, 40), model_call("sdk", 1, 5, 39, **named(1)),
        model_call("framework", 2, 2, 12), model_call("sdk", 2, 3, 11, **named(2)),
    )  # fmt: skip

    assert lab.totals(*USAGE) == (2, 200, 20)


def test_an_attempt_that_only_the_sdk_records(lab: Lab) -> None:
    """The SDK tried again: its failed request has no twin, and its answer is the framework's call."""
    failed = replace(model_call("sdk", 1, 1, 3, None, **NO_END), error="429")
    lab.put(model_call("framework", 1, 0, 20, **named(1)), failed, model_call("sdk", 2, 5, 18))

    assert lab.totals(*USAGE) == (1, 100, 10)


NO_MODEL = {"gen_ai.request.model": None, "gen_ai.response.model": None}


@pytest.mark.parametrize("words", [{}, NO_MODEL], ids=["the same model", "a model that one side does not name"])
def test_a_failure_that_both_tell_of_is_one(lab: Lab, words: dict[str, None]) -> None:
    """A failed call has no id: it was two failures, and the tools of the run were counted twice with it."""
    failed = [
        replace(model_call("framework", 2, 30, 39, None, **words, **NO_END), error="bad request"),
        replace(model_call("sdk", 2, 31, 38, None, **NO_END), error="Error code: 400"),
    ]
    tools = [replace(tool(f"t{at}", at=at), scope=scope, to=25) for scope, at in (("framework", 20), ("sdk", 21))]
    lab.put(model_call("framework", 1, 0, 9, **named(1)), model_call("sdk", 1, 1, 8, **named(1)), *tools, *failed)

    assert lab.totals("llm_calls", "tool_calls", "errors") == (1, 1, 1)


def test_failures_at_other_times_are_several(lab: Lab) -> None:
    lab.put(
        model_call("framework", 1, 0, 9, **named(1)), model_call("sdk", 1, 1, 8, **named(1)),
        replace(model_call("framework", 2, 30, 39, None, **NO_END), error="bad request"),
        replace(model_call("sdk", 2, 41, 48, None, **NO_END), error="bad request"),
    )  # fmt: skip

    assert lab.totals("llm_calls", "errors") == (1, 2)


def test_a_failure_of_calls_whose_tokens_one_side_does_not_record(lab: Lab) -> None:
    """The answered call is known by its time alone; the failure of both sides is one all the same."""
    lab.put(
        model_call("framework", 1, 0, 9), model_call("sdk", 1, 1, 8, None),
        replace(model_call("framework", 2, 30, 39, None, **NO_END), error="bad request"),
        replace(model_call("sdk", 2, 31, 38, None, **NO_END), error="Error code: 400"),
    )  # fmt: skip

    assert lab.totals("llm_calls", "errors") == (1, 1)


def test_the_very_same_tokens_where_one_side_names_no_model(lab: Lab) -> None:
    lab.put(model_call("framework", 1, 0, 9, 123, **NO_MODEL), model_call("sdk", 1, 1, 8, 123, **named(1)))

    assert lab.totals(*USAGE) == (1, 123, 10)


class TestTools:
    """Both scopes record every model call, and each of a tool call that the other does not record."""

    MODELS = (model_call("framework", 1, 0, 9, **named(1)), model_call("sdk", 1, 1, 8, **named(1)))

    def of(self, scope: str, at: int, name: str = "get", error: str | None = None) -> S:
        span = tool(f"{scope[0]}{at}", at=at, tool=name, **{"gen_ai.tool.call.id": None})
        return replace(span, scope=scope, to=at + 5, error=error, trace=f"{1000 * ord(scope[0]):032x}")

    def test_what_each_of_them_lacks_does_not_make_the_others_two(self, lab: Lab) -> None:
        lab.put(
            *self.MODELS, self.of("framework", 20), self.of("framework", 40), self.of("sdk", 41),
            self.of("sdk", 60, "close"),
        )  # fmt: skip

        assert lab.rows("SELECT name, n_low FROM run_tools ORDER BY name") == [("close", 1), ("get", 2)]

    def test_the_one_that_ran_at_the_same_time_is_the_same(self, lab: Lab) -> None:
        """The SDK lacks the first call: the failure is that of the second."""
        lab.put(
            *self.MODELS, self.of("framework", 20), self.of("framework", 40, error="boom"),
            self.of("sdk", 41, error="boom"),
        )  # fmt: skip

        assert lab.rows("SELECT outcome FROM tool_calls ORDER BY call_no") == [("ok",), ("error",)]
        assert lab.totals("tool_calls", "errors") == (2, 1)


def asks(scope: str, number: int, at: int, to: int, *ids: str, tokens: int | None = 100) -> S:
    """A model call that asks for the tools of these ids, or says so."""
    parts = [{"type": "tool_call", "id": one, "name": "get", "arguments": {}} for one in ids]
    said = [{"role": "assistant", "parts": parts or [{"type": "text", "content": f"answer {number}"}]}]
    return model_call(scope, number, at, to, tokens, **{"gen_ai.output.messages": json.dumps(said)})


class TestTheSameCallbacks:
    """Two instrumentations of one framework: neither knows response ids, and no interval holds the other."""

    @pytest.mark.parametrize("late", [1, 6, 19])
    def test_joined_however_late_the_second_one_is_recorded(self, lab: Lab, late: int) -> None:
        lab.put(
            asks("one", 1, 0, 20, "call_1", "call_2"), asks("two", 1, late, 20 + late, "call_1", "call_2"),
            asks("one", 2, 60, 80), asks("two", 2, 60 - late, 80 - late),
        )  # fmt: skip

        assert lab.totals(*(f"{name}_low" for name in USAGE)) == (2, 200, 20)

    def test_what_was_asked_for_says_which_call_is_which(self, lab: Lab) -> None:
        """The usage of one side is unknown, and the calls ran at the same time."""
        lab.put(
            asks("one", 1, 0, 20, "call_1"), asks("one", 2, 1, 20, "call_2", tokens=70),
            asks("two", 1, 2, 21, "call_2", tokens=None), asks("two", 2, 3, 21, "call_1", tokens=None),
            asks("one", 3, 40, 50, "call_3"), asks("one", 4, 41, 52, "call_4"),
        )  # fmt: skip

        assert lab.totals(*(f"{name}_low" for name in USAGE)) == (4, 370, 40)

    def test_one_call_that_differs_leaves_the_sums_open_and_the_others_joined(self, lab: Lab) -> None:
        """The second call's usage differs: the run was doubled for it, tools and all."""
        one_tool = [
            replace(tool(f"{scope}{at}", at=at, tool="get", **{"gen_ai.tool.call.id": None}), scope=scope, to=at + 5)
            for scope, at in (("one", 30), ("two", 31))
        ]
        hidden = [model_call("one", 2, 60, 80, 100), model_call("two", 2, 59, 81, 140)]
        lab.put(asks("one", 1, 0, 20, "call_1"), asks("two", 1, 1, 21, "call_1"), *one_tool, *hidden)

        assert lab.totals(*USAGE) == (None, None, None)
        assert lab.rows("SELECT certain FROM llm_calls ORDER BY call_no") == [(True,), (True,), (False,)]
        assert lab.rows("SELECT count(*) FROM tool_calls") == [(1,)]

    def test_calls_that_asked_for_other_tools_are_two(self, lab: Lab) -> None:
        """Of two programs in one run, each with its own instrumentation."""
        lab.put(asks("one", 1, 0, 20, "call_1"), asks("two", 1, 1, 21, "call_2"))

        assert lab.totals(*(f"{name}_low" for name in USAGE)) == (2, 200, 20)

    def test_tools_of_scopes_that_share_some_calls_only(self, lab: Lab) -> None:
        """Each also records a model call that the other does not; parallel tools go by their arguments."""
        tools = [
            replace(tool(f"{scope}{at}", at=at, tool="get",
                         **{"gen_ai.tool.call.id": None, "gen_ai.tool.call.arguments": json.dumps({"n": n})}), scope=scope, to=45)
            for scope, at, n in (("one", 30, 1), ("one", 31, 2), ("two", 32, 2), ("two", 33, 1), ("two", 34, 3))
        ]  # fmt: skip
        lab.put(
            asks("one", 1, 0, 20, "c1"), asks("two", 1, 1, 21, "c1"), *tools,
            asks("one", 2, 60, 80), asks("two", 3, 90, 95),
        )  # fmt: skip

        assert lab.totals("llm_calls") == (3,)
        assert lab.rows("SELECT arguments FROM tool_calls WHERE span_id IS NOT NULL ORDER BY 1") == [
            ('{"n": 1}',), ('{"n": 2}',), ('{"n": 3}',)
        ]  # fmt: skip


OTHERWISE = (
    {"gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": [{"type": "text", "content": "Oslo"}]}])},
    {"gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": [{"type": "tool_call", "id": "c1", "name": "f"}]}])},
)  # fmt: skip


@pytest.mark.parametrize("tokens", [100, None], ids=["the same tokens", "tokens on one side"])
@pytest.mark.parametrize("answer", OTHERWISE, ids=["another answer", "a tool asked for"])
def test_calls_that_were_answered_otherwise_may_be_two(lab: Lab, tokens: int | None, answer: dict[str, str]) -> None:
    """Two parallel calls of one model, each recorded by another instrumentation: nothing is said for sure."""
    paris = {"gen_ai.output.messages": OTHERWISE[0]["gen_ai.output.messages"].replace("Oslo", "Paris")}
    lab.put(model_call("framework", 1, 0, 9, tokens, **paris), model_call("sdk", 1, 1, 8, **answer))

    assert lab.totals(*USAGE) == (None, None, None)


def test_an_agent_next_to_its_caller_hangs_where_its_twin_does(lab: Lab) -> None:
    """One instrumentation nests the agent below the tool that called it, the other writes all agents side by side."""

    def both(span: S, flat_parent: str = "") -> tuple[S, S]:
        flat = replace(span, id=f"f{span.id}", parent=flat_parent, scope="flat", trace=f"{2:032x}")
        return replace(span, scope="nested", trace=f"{1:032x}"), flat

    caller, helper = agent("a", to=90), agent("h", "t", at=20, to=60, agent="researcher")
    asking, answer = chat("m", "a", at=1, **named(1)), chat("n", "h", at=25, **named(2))
    called = replace(tool("t", "a", at=10, tool="ask_researcher"), to=70)
    lab.put(*both(caller), *both(asking, "fa"), *both(called, "fa"), *both(helper), *both(answer, "fh"))

    assert lab.rows("SELECT name, parent_activation_no, via FROM agents ORDER BY activation_no") == [
        ("assistant", None, "root"),
        ("researcher", 1, "tool"),
    ]
