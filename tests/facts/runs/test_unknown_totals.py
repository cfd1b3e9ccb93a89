"""Every total that is unknown has a reason, and no other one (the relation `unknown_facts`)."""

from __future__ import annotations

import json
from typing import Any

from building import Lab, S, agent, chat, hex_id, tool

NO_TOKENS = {"gen_ai.usage.input_tokens": None, "gen_ai.usage.output_tokens": None}


def reasons(lab: Lab) -> dict[str, tuple[Any, ...]]:
    """By total: reason, how many calls lack it, of how many."""
    rows = lab.rows("SELECT fact, reason, lacking, of_calls FROM unknown_facts")
    return {fact.removeprefix("run_totals."): tuple(rest) for fact, *rest in rows}


def test_calls_without_usage_are_counted(lab: Lab) -> None:
    """Of two calls one has no tokens: the instrumentation can record them."""
    lab.put(agent("a"), chat("m", "a"), chat("n", "a", at=10, **NO_TOKENS))

    assert reasons(lab)["input_tokens"] == ("missing", 1, 2)
    assert reasons(lab)["cost_high"] == ("missing", 1, 2)
    assert lab.rows("SELECT span_id FROM unknown_facts WHERE fact = 'run_totals.input_tokens'") == [
        ("6e".rjust(16, "0"),)
    ]


def test_details_that_some_calls_tell_to_be_none(lab: Lab) -> None:
    """Who writes that nothing was cached does not leave it out where nothing was; who never writes 0 does."""
    cached = "gen_ai.usage.cache_read.input_tokens"
    lab.put(agent("a"), chat("m", "a", **{cached: 0}), chat("n", "a", at=10))
    assert reasons(lab)["cache_read_tokens"] == ("missing", 1, 2)

    partial = Lab().put(agent("a"), chat("m", "a", **{cached: 7}), chat("n", "a", at=10))
    assert partial.rows("SELECT cache_read_tokens FROM run_totals") == [(7,)]


def test_details_that_are_recorded_of_some_calls_only(lab: Lab) -> None:
    """Smolagents keeps the SDK's answer, and in it the details of usage, of calls that are not streamed."""
    details = "usage=CompletionUsage(prompt_tokens=100, prompt_tokens_details=PromptTokensDetails(cached_tokens=7))"
    usage = {"openinference.span.kind": "LLM", "llm.token_count.prompt": 100, "llm.token_count.completion": 10}
    whole = {**usage, "output.value": json.dumps({"raw": f"ChatCompletion(id='c', choices=[], {details})"})}
    scope = "openinference.instrumentation.smolagents"
    lab.put(
        S("m", attrs=whole, scope=scope), S("n", at=10, attrs={**usage, "output.value": '{"raw": null}'}, scope=scope)
    )

    assert reasons(lab)["cache_read_tokens"] == ("needs-setting", 1, 2)


def test_calls_that_a_conversation_records_are_missing_where_there_is_none(lab: Lab) -> None:
    """A crew's span has no span of a tool below, but its agents' conversations, unless it fails."""
    scope = "opentelemetry.instrumentation.crewai.instrumentation"
    lab.put(
        S("c", name="crewai.workflow", scope=scope),
        S("a", "c", at=1, to=9, name="assistant.agent", scope=scope),
    )

    assert [reasons(lab)[fact][0] for fact in ("tool_calls", "errors")] == ["missing", "missing"]


def test_a_model_without_a_price(lab: Lab) -> None:
    unheard = {"gen_ai.request.model": "unheard-of", "gen_ai.response.model": "unheard-of"}
    lab.put(agent("a"), chat("m", "a", **unheard))

    assert reasons(lab)["cost_high"] == ("no-price", 1, 1)
    assert "input_tokens" not in reasons(lab)


def test_no_model_call(lab: Lab) -> None:
    lab.put(agent("a"), tool("t", "a", at=1))

    assert {reasons(lab)[name] for name in ("llm_calls", "input_tokens", "cost_high")} == {("no-call", None, None)}


def test_calls_that_may_be_one_or_two(lab: Lab) -> None:
    """The same tokens at the same time, of scopes that share no other call and leave one more."""
    one = [chat("m", at=0), chat("n", at=20)]
    two = [chat("o", at=0), chat("p", at=40)]
    for span in one:
        span.scope = "one"
    for span in two:
        span.scope = "two"
    lab.put(*one, *two)

    assert reasons(lab)["llm_calls"] == ("one-call-or-two", None, None)


def test_a_root_that_ended_before_it_started(lab: Lab) -> None:
    lab.put(S("a", "", 50, 10, "work"), chat("m", "a", at=51))

    assert reasons(lab)["last_end_ns"] == ("no-time", None, None)


def test_where_no_span_could_have_recorded_it_the_first_that_is_no_infrastructure_is_named(lab: Lab) -> None:
    """The tools of a run of which only requests on the wire and a job are known."""
    wire = {"http.request.method": "GET", "url.full": "http://x/"}
    lab.put(S("h", "", 0, 1, "GET", wire), S("j", "", 5, 9, "job"), S("k", "", 10, 19, "job"))
    rows = lab.rows("SELECT reason, span_id, lacking, of_calls FROM unknown_facts WHERE fact = 'run_totals.tool_calls'")

    assert lab.rows("SELECT kind FROM spans ORDER BY start_ns") == [("infra",), ("other",), ("other",)]
    assert rows == [("not-recorded", hex_id("j"), None, None)]


def test_a_run_of_infrastructure_alone(lab: Lab) -> None:
    lab.put(S("h", "", 0, 1, "GET", {"http.request.method": "GET", "url.full": "http://x/"}))
    rows = lab.rows("SELECT reason, span_id FROM unknown_facts WHERE fact = 'run_totals.tool_calls'")

    assert rows == [("not-recorded", hex_id("h"))]


def test_cached_tokens_of_a_call_without_usage(lab: Lab) -> None:
    """A call that records its usage and no cached tokens had none; of one without any usage nothing is known."""
    cached = {"gen_ai.usage.cache_read.input_tokens": 7}
    lab.put(agent("a"), chat("m", "a", **cached), chat("n", "a", at=10))
    assert lab.totals("cache_read_tokens") == (7,)

    other = Lab().put(agent("a"), chat("m", "a", **cached), chat("n", "a", at=10, **NO_TOKENS))
    assert other.totals("cache_read_tokens") == (None,)
    assert reasons(other)["cache_read_tokens"] == ("missing", 1, 2)
