"""What may come, got lost or is not recorded is a gap, and rows that it may change are not certain."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from building import Lab, S, agent, asks, chat, says, tool

from clawtrace.facts.runs.gaps import UNFINISHED
from clawtrace.model.run import RunRecord

OPEN = RunRecord("r", "r")


def test_an_open_run_may_have_more_of_everything(lab: Lab) -> None:
    lab.put(agent("a"), chat("m", "a", at=1), tool("t", "a", at=10), record=OPEN)

    gaps = lab.rows("SELECT relation, at_most FROM gaps WHERE reason = 'run_open'")
    assert gaps == [(relation, None) for relation in UNFINISHED]
    assert lab.rows("SELECT llm_calls_low, llm_calls_high, tool_calls_low, tool_calls_high FROM run_totals") == [
        (1, None, 1, None)
    ]
    assert lab.rows("SELECT reason FROM doubts WHERE relation = 'runs'") == [("run_open",)]


def test_calls_of_an_open_run_that_a_later_span_may_join_are_not_certain(lab: Lab) -> None:
    """Below a parent that may come, two calls of one tool may be one; a call that has begun is an attempt."""
    lab.put(
        agent("a"), chat("m", "a", at=1), replace(tool("t", "a", at=10), to=0),
        tool("u", "gone", at=20, tool="read"), tool("v", "gone", at=30, tool="read"), record=OPEN,
    )  # fmt: skip

    assert lab.rows("SELECT certain FROM llm_calls") == [(True,)]
    assert lab.rows("SELECT name, certain FROM tool_calls ORDER BY call_no") == [
        ("get_weather", True), ("read", True), ("read", False),
    ]  # fmt: skip


def test_who_called_an_agent_below_a_lost_span_is_unknown(lab: Lab) -> None:
    """And so it is of the others: what was lost may have handed over to them."""
    lab.put(
        agent("a", agent="one"), chat("m", "a"), agent("b", "gone", at=200, to=300, agent="two"), chat("n", "b", at=201)
    )

    assert lab.rows("SELECT name, parent_activation_no, via FROM agents ORDER BY activation_no") == [
        ("one", None, None),
        ("two", None, None),
    ]
    assert ("via", "missing_parent") in lab.rows("SELECT column_name, reason FROM doubts WHERE relation = 'agents'")


def test_one_failure_below_lost_spans_is_certain(lab: Lab) -> None:
    """Several may be attempts at one call; and where something else failed, what failed below may be its cause."""

    def lost(id: str, at: int) -> S:
        unanswered = dict.fromkeys(
            f"gen_ai.{one}"
            for one in ("response.model", "response.finish_reasons", "usage.input_tokens", "usage.output_tokens")
        )
        return replace(chat(id, "gone", at=at, **unanswered), error="429")

    certain = "SELECT name, certain FROM errors WHERE run_id = :run ORDER BY error_no"
    lab.put(agent("a"), chat("m", "a"), lost("x", 20), lost("y", 30))
    lab.put(agent("a"), chat("m", "a"), lost("x", 20), replace(agent("b", at=40), error="gave up"), run="other")

    assert lab.rows(certain) == [("chat x", True), ("chat y", False)]
    assert lab.rows(certain, "other") == [("chat x", False), ("invoke_agent", True)]
    assert lab.rows("SELECT DISTINCT certain FROM llm_calls WHERE outcome = 'error'") == [(False,)]


def test_retries_in_an_sdk_are_one_gap(lab: Lab) -> None:
    lab.put(agent("a"), chat("m", "a"), chat("n", "a", at=20))

    assert lab.rows("SELECT outcome, at_most FROM gaps WHERE relation = 'llm_calls'") == [("error", None)]
    assert lab.totals("llm_calls", "failed_llm_attempts_low", "failed_llm_attempts_high") == (2, 0, None)


def _post(id: str, parent: str, at: int, url: str = "https://api.example/v1/chat/completions") -> S:
    said = {"http.request.method": "POST", "url.full": url}
    return S(id, parent, at, name="POST", kind="Client", attrs=said, scope="opentelemetry.instrumentation.httpx")


def test_requests_over_http_show_what_an_sdk_makes_again(lab: Lab) -> None:
    """Those right inside of a call's span; another instrumentation of HTTP may record one again inside of it."""
    lab.put(
        agent("a"), chat("m", "a", at=1), _post("p", "m", 1), _post("q", "m", 2), _post("r", "q", 2),
        chat("n", "a", at=20), _post("s", "n", 20),
    )  # fmt: skip

    assert lab.rows("SELECT reason FROM gaps WHERE relation = 'llm_calls'") == []
    assert lab.totals("llm_calls", "failed_llm_attempts_low", "failed_llm_attempts_high") == (2, 1, 1)


@pytest.mark.parametrize(
    "other",
    [
        _post("q", "m", 2, "https://login.example/token"),
        replace(_post("q", "m", 2), kind="Server"),
        _post("q", "a", 2),
        _post("q", "t", 30),
    ],
    ids=["another URL", "the other side", "not in a call", "of a tool"],
)
def test_other_requests_over_http_tell_nothing_of_a_model_call(lab: Lab, other: S) -> None:
    lab.put(agent("a"), chat("m", "a", at=1), _post("p", "m", 1), chat("n", "a", at=20), tool("t", "a", at=30), other)

    assert lab.rows("SELECT reason FROM gaps WHERE relation = 'llm_calls'") == [("attempts-not-recorded",)]
    assert lab.totals("failed_llm_attempts_low", "failed_llm_attempts_high") == (0, None)


@pytest.mark.parametrize(("resent", "failed"), [({}, 0), ({"http.request.resend_count": 2}, 2)])
def test_the_anthropic_sdk_counts_what_it_sends_again(lab: Lab, resent: dict[str, int], failed: int) -> None:
    lab.put(agent("a"), replace(chat("m", "a", **resent), scope="com.anthropic.sdk.python", kind="Client"))

    assert lab.rows("SELECT reason FROM gaps WHERE relation = 'llm_calls'") == []
    assert lab.totals("llm_calls", "failed_llm_attempts_low", "failed_llm_attempts_high") == (1, failed, failed)


@pytest.mark.parametrize(("offered", "most"), [("get_weather", 1), (None, None)])
def test_what_models_ask_for_bounds_an_agent_that_records_no_tools(
    lab: Lab, offered: str | None, most: int | None
) -> None:
    """Asked with an offer of tools, a model asks for them by name; without one it may ask in prose, as in code that it writes."""
    genai = "opentelemetry.instrumentation.genai"
    said = {"gen_ai.output.messages": asks(("c1", "get_weather", {}))}
    offer = {} if offered is None else {"gen_ai.tool.definitions": json.dumps([{"type": "function", "name": offered}])}
    work = replace(agent("a", to=90), scope=f"{genai}.smolagents")
    asked = replace(chat("m", "a", at=1, **said, **offer), scope=f"{genai}.openai")
    answered = replace(chat("n", "a", at=20, **{"gen_ai.output.messages": says("Done.")}), scope=f"{genai}.openai")
    lab.put(work, asked, answered)

    assert lab.totals("tool_calls_low", "tool_calls_high") == (0, most)


class TestLostAttributes:
    """What a span says that lost attributes, or the ends of values, may have been otherwise."""

    def test_calls_that_may_be_one(self, lab: Lab) -> None:
        """The tool's second span lost its id; model calls of one scope stay apart, and who answered is open."""
        lab.put(
            agent("a"), chat("m", "a", at=1), replace(chat("n", "a", at=40), dropped=3), tool("t", "a", at=20),
            replace(tool("u", "a", at=21), scope="other", dropped=1),
        )  # fmt: skip

        assert lab.rows("SELECT certain, response_model IS NULL FROM llm_calls ORDER BY call_no") == [
            (True, False), (True, True),
        ]  # fmt: skip
        assert lab.rows("SELECT certain FROM tool_calls ORDER BY call_no") == [(True,), (False,)]
        assert lab.totals("llm_calls_low", "tool_calls_low", "agents_low") == (2, 1, 1)

    def test_agents_whose_steps_lost_what_they_are(self, lab: Lab) -> None:
        """The step may be the agent, and what is around it none."""
        lab.put(agent("a"), replace(agent("b", "a", agent="team"), dropped=2), chat("m", "b", at=1))

        assert lab.rows("SELECT certain FROM agents") == [(False,), (False,)]
        assert lab.rows("SELECT via, parent_activation_no FROM agents") == [(None, None), (None, None)]

    @pytest.mark.parametrize("result", ['{"result": "' + "word " * 60, '{"result": "word"}'], ids=["cut", "whole"])
    def test_ends_of_results(self, lab: Lab, result: str) -> None:
        """That a tool failed may have stood where its result was cut; of other calls that takes nothing away."""
        lab.put(agent("a"), chat("m", "a", at=1), tool("t", "a", at=20, **{"gen_ai.tool.call.result": result}))

        cut = not result.endswith("}")
        assert lab.rows("SELECT certain, outcome FROM tool_calls") == [(True, None if cut else "ok")]
        assert lab.rows("SELECT certain FROM agents") == [(True,)]
        assert lab.totals("llm_calls_high", "tool_calls_high", "errors_high") == (1, 1, int(cut))
