"""The relation `errors`: which span stands for a failure, under which name, and whether it was recovered."""

from __future__ import annotations

from dataclasses import replace

import pytest
from building import Lab, S, agent, chat, hex_id, tool

ERRORS = "SELECT span_id, name, kind, message, recovered FROM errors ORDER BY span_id"
NO_ID = {"gen_ai.tool.call.id": None}
UNANSWERED = {
    "gen_ai.response.model": None,
    "gen_ai.usage.input_tokens": None,
    "gen_ai.usage.output_tokens": None,
    "gen_ai.response.finish_reasons": None,
}


def failed(span: S, error: str) -> S:
    span.error = error
    return span


def test_attempts_at_one_call_that_never_got_an_answer_are_one_failure(lab: Lab) -> None:
    """Recorded by the innermost span, and of several by the first: it is where things went wrong."""
    wrapper = failed(chat("w", "a", at=1, **UNANSWERED), "gave up")
    wrapper.to = 40
    first = failed(chat("x", "w", at=2, **UNANSWERED), "429")
    second = failed(chat("y", "w", at=20, **UNANSWERED), "500")
    lab.put(agent("a"), wrapper, first, second)

    assert lab.rows(ERRORS) == [(hex_id("x"), "chat x", "llm", "429", False)]
    assert lab.totals("errors", "unrecovered_errors") == (1, 1)


def test_each_failed_attempt_at_an_answered_call_is_a_failure_of_its_own(lab: Lab) -> None:
    wrapper = chat("w", "a", at=1)
    wrapper.to = 40
    first = failed(chat("x", "w", at=2, **UNANSWERED), "429")
    second = failed(chat("y", "w", at=20, **UNANSWERED), "500")
    lab.put(agent("a"), wrapper, first, second)

    assert lab.rows("SELECT span_id, message, recovered FROM errors ORDER BY span_id") == [
        (hex_id("x"), "429", True),
        (hex_id("y"), "500", True),
    ]


@pytest.mark.parametrize(("at", "recovered"), [(5, False), (6, True), (30, True)])
def test_a_model_call_is_recovered_by_one_that_began_when_it_had_ended(lab: Lab, at: int, recovered: bool) -> None:
    """One next to it, of the same agent, is none: it could know nothing of the failure."""
    lab.put(agent("a"), failed(chat("m", "a", at=1, **UNANSWERED), "500"), chat("n", "a", at=at))

    assert lab.rows(ERRORS) == [(hex_id("m"), "chat m", "llm", "500", recovered)]


def test_a_tool_that_fails_with_the_model_of_its_agent_is_no_second_failure(lab: Lab) -> None:
    """The tool call counts as failed, and the cause is recorded once: by the model call."""
    called = failed(tool("t", "a", at=1), "the prompt could not be completed: 400")
    called.to = 40
    inner = failed(agent("b", "t", at=2, to=30, agent="helper"), "the prompt could not be completed: 400")
    lab.put(agent("a"), called, inner, failed(chat("m", "b", at=3, **UNANSWERED), "400"))

    assert [row[:3] for row in lab.rows(ERRORS)] == [(hex_id("m"), "chat m", "llm")]
    assert lab.rows("SELECT outcome FROM tool_calls") == [("error",)]


def test_a_model_call_is_not_recovered_by_another_agents(lab: Lab) -> None:
    lab.put(
        agent("a"),
        failed(chat("m", "a", at=1, **UNANSWERED), "500"),
        agent("b", "a", at=10, to=30, agent="helper"),
        chat("n", "b", at=12),
    )

    assert lab.rows("SELECT recovered FROM errors") == [(False,)]


@pytest.mark.parametrize(("at", "recovered"), [(2, False), (3, True)])
def test_a_tool_is_recovered_by_a_call_of_it_that_began_when_it_had_ended(lab: Lab, at: int, recovered: bool) -> None:
    sent = {"gen_ai.tool.call.result": "sunny"}
    lab.put(agent("a"), failed(tool("t", "a", at=1), "timeout"), tool("u", "a", at=at, **sent))

    assert lab.rows(ERRORS) == [(hex_id("t"), "get_weather", "tool", "timeout", recovered)]


def test_a_tool_is_not_recovered_by_another_tool(lab: Lab) -> None:
    sent = {"gen_ai.tool.call.result": "sunny"}
    lab.put(agent("a"), failed(tool("t", "a", at=1), "timeout"), tool("u", "a", at=9, tool="search", **sent))

    assert lab.rows("SELECT recovered FROM errors") == [(False,)]


def test_a_tool_without_a_name_is_named_by_its_span(lab: Lab) -> None:
    """And nothing can be a second try of it."""
    nameless, other = (tool(id, "a", at=at, **{"gen_ai.tool.name": None}) for id, at in (("t", 1), ("u", 9)))
    nameless.name = other.name = "a step"
    lab.put(agent("a"), failed(nameless, "timeout"), other)

    assert lab.rows(ERRORS) == [(hex_id("t"), "a step", "tool", "timeout", False)]


def test_whether_other_work_was_done_after_all_nothing_says(lab: Lab) -> None:
    """A later answer of the model is no second try of a step: it is unknown."""
    lab.put(agent("a"), failed(S("s", "a", 1, 5, "load the index"), "no such file"), chat("m", "a", at=9))

    assert lab.rows(ERRORS) == [(hex_id("s"), "load the index", "other", "no such file", None)]
    assert lab.totals("errors", "unrecovered_errors_low", "unrecovered_errors_high") == (1, 0, 1)


def test_what_a_client_library_met_on_the_wire_is_no_failure_of_the_work(lab: Lab) -> None:
    """The call that it served failed or not; that is what counts."""
    request = failed(S("h", "t", 2, 3, "GET", {"http.request.method": "GET"}), "503")
    sent = {"gen_ai.tool.call.result": "sunny"}
    lab.put(agent("a"), tool("t", "a", at=1, **sent), request)

    assert lab.rows("SELECT kind FROM spans WHERE name = 'GET'") == [("infra",)]
    assert lab.rows(ERRORS) == []
    assert lab.totals("errors") == (0,)


def test_a_step_that_is_written_next_to_its_call_does_not_fail_again(lab: Lab) -> None:
    """Its words are the call's, with another stack behind them."""
    lab.put(
        agent("a"),
        failed(S("s", "a", 1, 50, "call_model"), "Error 400: bad request\nTraceback (most recent call last):\n  one"),
        failed(S("c", "a", 2, 49, "chain"), "Error 400: bad requestTraceback (most recent call last):\n  two"),
        failed(chat("m", "c", at=3, **UNANSWERED), "Error 400: bad requestTraceback (most recent call last):\n  two"),
    )

    assert lab.rows("SELECT span_id FROM errors") == [(hex_id("m"),)]
    assert lab.totals("errors") == (1,)


@pytest.mark.parametrize(
    "step",
    [S("s", "a", 5, 50, "step"), S("s", "a", 0, 7, "step"), chat("s", "a", at=1, **UNANSWERED)],
    ids=["started later", "ended before", "a separate call"],
)
def test_what_fails_with_the_same_words_may_fail_by_itself(lab: Lab, step: S) -> None:
    lab.put(agent("a"), failed(chat("m", "a", at=3, **UNANSWERED), "timeout"), failed(step, "timeout"))

    assert lab.totals("errors") == (2,)


@pytest.mark.parametrize(("more", "errors"), [((), 1), ((S("n", "s", 2, 3, trace="2" * 32),), 2)])
def test_steps_may_each_be_a_separate_trace(lab: Lab, more: tuple[S, ...], errors: int) -> None:
    """Where a trace holds more than the step, the step is not the one around a call of another trace."""
    lab.put(
        failed(S("s", "", 0, 50, "step", trace="2" * 32), "400"),
        *more,
        failed(replace(chat("m", at=3, **UNANSWERED), trace="3" * 32), "400"),
    )

    assert lab.totals("errors") == (errors,)


@pytest.mark.parametrize(("scope", "errors"), [("shop.application", 1), ("till.application", 2)])
def test_steps_in_traces_of_their_own_may_have_another_scope_of_one_library(lab: Lab, scope: str, errors: int) -> None:
    lab.put(
        failed(S("s", "", 0, 50, "step", trace="2" * 32, scope=scope), "400"),
        failed(replace(chat("m", at=3, **UNANSWERED), trace="3" * 32, scope="shop.backend"), "400"),
    )

    assert lab.totals("errors") == (errors,)


def test_an_answer_that_the_program_could_not_use_was_given(lab: Lab) -> None:
    """The span failed and says why the answer ended: the model answered, and the failure stands."""
    lab.put(
        agent("a"), failed(chat("m", "a", at=1, **UNANSWERED | {"gen_ai.response.finish_reasons": ["length"]}), "cut")
    )

    assert lab.totals("llm_calls", "input_tokens") == (1, None)
    assert lab.rows("SELECT outcome FROM llm_calls") == [("ok",)]
    assert lab.rows(ERRORS) == [(hex_id("m"), "chat m", "llm", "cut", False)]


def test_the_failure_of_an_agent_that_two_instrumentations_record_is_one(lab: Lab) -> None:
    """In the one the failed call is inside of the agent's span, in the other next to it."""
    no_end = {"gen_ai.response.finish_reasons": None}
    for scope, parent in (("one", "a"), ("two", "r")):
        spans = [
            S("r", "", 0, 90, "runner"), failed(agent("a", "r", at=1, to=80), "the run failed"),
            chat("m", "a", at=2), failed(chat("n", parent, at=20, **UNANSWERED | no_end), "no connection"),
        ]  # fmt: skip
        trace = f"{ord(scope[0]):032x}"
        lab.put(
            *(
                replace(
                    span, scope=scope, trace=trace, id=scope[0] + span.id, parent=span.parent and scope[0] + span.parent
                )
                for span in spans
            )
        )

    assert lab.totals("llm_calls", "agents", "errors") == (1, 1, 1)


@pytest.mark.parametrize("inner", [(), (failed(tool("t", "b", at=10), "the run failed"),)])
def test_the_failure_of_an_agent_within_its_own_span_of_another_layer_is_one(lab: Lab, inner: tuple[S, ...]) -> None:
    """A run that failed before its first request has no other failure than this."""
    outer = failed(replace(agent("a", to=90), scope="other"), "the run failed")
    lab.put(outer, failed(agent("b", "a", at=1, to=80), "the run failed"), *inner)

    assert lab.totals("agents", "errors") == (1, 1)


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


def test_a_concurrent_call_is_no_retry(lab: Lab) -> None:
    failing = tool("t1", "a", at=1)
    failing.error, failing.to = "busy", 50
    lab.put(agent("a"), failing, tool("t2", "a", at=5))

    assert lab.rows("SELECT recovered FROM errors") == [(False,)]


def test_an_error_type_without_a_status_is_a_failure(counting: Lab) -> None:
    failed = {"error.type": "429", "gen_ai.usage.output_tokens": None, "gen_ai.response.finish_reasons": None}
    counting.put(agent("a"), chat("m", "a", at=1, **failed))

    assert counting.totals("llm_calls", "failed_llm_attempts", "errors") == (0, 1, 1)


def test_a_call_without_a_name_may_have_recovered_any_tool(lab: Lab) -> None:
    nameless = S("u", "a", 20, 22, "execute_tool", {"gen_ai.operation.name": "execute_tool"})
    lab.put(agent("a"), failed(tool("t", "a", at=10), "boom"), nameless)

    assert lab.rows("SELECT recovered FROM errors") == [(None,)]


def test_a_cancelled_call_is_one_error(lab: Lab) -> None:
    lab.put(agent("a"), chat("m", "a", at=1), failed(tool("t", "a", at=10), "CancelledError"))

    assert lab.totals("errors_low", "errors_high") == (1, 1)
