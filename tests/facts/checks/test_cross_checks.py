"""Each cross-check has its smallest trace: what contradicts itself is in doubt for that reason, and without it is not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from building import Lab, S, agent, asks, chat, says, tool

from clawtrace.assertions.registry import parse_assertion
from clawtrace.dialects.load import load_dialects
from clawtrace.model.reasons import REASONS
from clawtrace.model.verdict import Status
from clawtrace.verdicts.evaluate import evaluate

VERIFIED = """
dialect: verified
title: An instrumentation whose recordings were verified
source: tests
about: GenAI spans.
extends: otel-genai
verified: [{scope: test, recordings: [tests]}]
detect: {priority: 90, any: [{present: gen_ai.operation.name}]}
"""

INPUT, OUTPUT = "gen_ai.input.messages", "gen_ai.output.messages"
GIVEN = "gen_ai.tool.call.arguments"
MODEL = "gen_ai.response.model"
INPUT_TOKENS, OUTPUT_TOKENS = "gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens"


class Smallest(NamedTuple):
    """The smallest trace of a check, and how it reads without its contradiction."""

    spans: tuple[S, ...]
    agrees: tuple[S, ...]


def usage(id: str, at: int, tokens: int) -> S:
    return chat(id, at=at, **{"gen_ai.response.id": "r", INPUT_TOKENS: tokens})


def again(id: str, at: int, **more: Any) -> S:
    """A model call that repeats a request and its answer."""
    return chat(id, at=at, **{"gen_ai.response.id": "r", INPUT: says("Hi?"), OUTPUT: says("Hi.")} | more)


def given_up(id: str, parent: str = "") -> S:
    span = replace(tool(id, parent, at=1, **{"error.type": "asyncio.CancelledError"}), to=20)
    span.error = "cancelled"
    return span


def stopped(id: str, parent: str) -> S:
    """An agent that an error ended."""
    span = agent(id, parent, at=11, to=19, agent="helper")
    span.error = "cancelled"
    return span


def unread(id: str, exception: str) -> S:
    span = S(id, "", 0, 5, "chat", {"gen_ai.operation.name": "chat"}, [("exception", {"exception.type": exception})])
    span.error = "'NoneType' object has no attribute 'usage'"
    return span


def broken(finish: list[str] | None) -> S:
    """A model call that failed, although it used tokens."""
    span = chat("m", **{"gen_ai.response.finish_reasons": finish})
    span.error = "no text"
    return span


def begun(id: str, at: int, **more: Any) -> S:
    """A model call of whose answer only the id is recorded."""
    return S(id, "", at, at + 5, "chat", {"gen_ai.operation.name": "chat", "gen_ai.response.id": id, **more})


def ended(id: str, at: int) -> S:
    """The same, with how the answer ended."""
    return begun(id, at, **{"gen_ai.response.finish_reasons": ["stop"]})


def asked_next(id: str, at: int) -> S:
    """A step of a workflow that ends with what a model is asked next."""
    said = '{"input": [{"role": "user"}], "current_agent_name": "clerk"}'
    attributes = {"traceloop.span.kind": "task", "traceloop.entity.output": said}
    return S(id, "", at, at + 5, "AgentWorkflow.task", attributes, scope="opentelemetry.instrumentation.llamaindex")


def served(id: str, at: int) -> S:
    """What an MCP server wrote of a call, in another trace."""
    attributes = {"mcp.method.name": "tools/call", "gen_ai.tool.name": "get_weather"}
    return S(id, "", at, at + 1, "tools/call get_weather", attributes, scope="mcp-python-sdk", trace="b" * 32)


def smolagents(parent: str) -> tuple[S, ...]:
    """An agent at work, and a step of another one below `parent`."""
    scope, kind = "openinference.instrumentation.smolagents", "openinference.span.kind"
    used = {kind: "LLM", "llm.token_count.prompt": 100, "llm.token_count.completion": 10}
    return (
        S("a", "", 0, 50, "assistant.run", {kind: "AGENT"}, scope=scope),
        S("m", "a", 1, 5, "OpenAIModel.generate", used, scope=scope),
        S("s", parent, 10, 20, "Step 1", {kind: "CHAIN"}, scope=scope),
        S("n", "s", 11, 15, "OpenAIModel.generate", used, scope=scope),
    )


CANCELLED = {"exception.type": "asyncio.exceptions.CancelledError"}
ASKED = asks(("call_t", "get_weather", {}))
WAITING = chat("m", "a", **{OUTPUT: ASKED, "gen_ai.response.finish_reasons": ["tool_calls"]})

TWICE = chat("m", "a", **{OUTPUT: asks(("call_t", "get_weather", {}), ("call_u", "get_time", {}))})
FAILED = replace(agent("a"), error="no such city")
BROKEN_TOOL = replace(tool("t", "a", at=10), error="no such city")

SPENT = {INPUT_TOKENS: 100, OUTPUT_TOKENS: 10}

SMALLEST = {
    "total-unlike-parts": Smallest(
        (chat("m", **{"gen_ai.usage.total_tokens": 111}),), (chat("m", **{"gen_ai.usage.total_tokens": 110}),)
    ),
    "same-response-other-usage": Smallest(
        (usage("m", 0, 100), usage("n", 20, 99)), (usage("m", 0, 100), usage("n", 20, 100))
    ),
    "details-beyond-whole": Smallest(
        (chat("m", **{"gen_ai.usage.reasoning_tokens": 11}),), (chat("m", **{"gen_ai.usage.reasoning_tokens": 10}),)
    ),
    "usage-below-answer": Smallest(
        (chat("m", **{OUTPUT: says("It is warmer than today. " * 10), OUTPUT_TOKENS: 2}),),
        (chat("m", **{OUTPUT: says("It is warmer than today. " * 10), OUTPUT_TOKENS: 60}),),
    ),
    "stated-inside-stated": Smallest(
        (agent("a", **SPENT), tool("t", "a", at=1), agent("b", "t", at=2, agent="writer", **SPENT)),
        (agent("a", **SPENT), tool("t", "a", at=1), agent("b", "t", at=2, agent="writer")),
    ),
    "stated-beyond-calls": Smallest(
        (agent("a", **SPENT), chat("m", "a", at=1, **{INPUT_TOKENS: 99})),
        (agent("a", **SPENT), chat("m", "a", at=1)),
    ),
    "given-up-call": Smallest(
        (given_up("t"), S("n", "t", 2, 5, "chat", {"gen_ai.operation.name": "chat"})),
        (given_up("t"), chat("n", "t", at=2)),
    ),
    "unread-answer": Smallest((unread("m", "AttributeError"),), (unread("m", "openai.BadRequestError"),)),
    "failed-with-usage": Smallest((broken(None),), (broken(["length"]),)),
    "broken-off-answer": Smallest((ended("m", 0), begun("n", 10)), (ended("m", 0), ended("n", 10))),
    "failed-without-call": Smallest(
        (agent("a"), chat("m", "a", at=1), tool("t", "a", at=10), replace(stopped("b", "t"), error="cut off")),
        (agent("a"), chat("m", "a", at=1), tool("t", "a", at=10), replace(stopped("b", "t"), error="cut off"), chat("n", "b", at=12)),
    ),
    "agent-without-calls": Smallest(
        (agent("r", agent="runner"), agent("a", "r"), chat("m", "a")),
        (agent("r", agent="runner"), agent("a", "r"), chat("m", "a"), chat("n", "r", at=20)),
    ),
    "agent-without-span": Smallest(
        (agent("a"), chat("m", "a"), tool("t", "a", at=10), chat("n", "t", at=11, **{"gen_ai.agent.name": "researcher"})),
        (agent("a"), chat("m", "a"), tool("t", "a", at=10), chat("n", "t", at=11)),
    ),
    "given-up-agent": Smallest(
        (agent("a"), chat("m", "a", at=1), given_up("t", "a"), stopped("b", "t")),
        (agent("a"), chat("m", "a", at=1), given_up("t", "a"), stopped("b", "t"), chat("n", "b", at=12)),
    ),
    "agent-inside-itself": Smallest(
        (agent("a"), chat("n", "a"), agent("b", "a", at=10), chat("m", "b", at=11)),
        (agent("a"), tool("t", "a", at=9), agent("b", "t", at=10), chat("m", "b", at=11)),
    ),
    "called-inside-itself": Smallest(
        (tool("t", **{GIVEN: '{"city": "Paris"}'}), tool("u", "t", at=1, **{GIVEN: '{"city": "Oslo"}', "gen_ai.tool.call.id": None})),
        (tool("t", **{GIVEN: '{"city": "Paris"}'}), tool("u", "t", at=1, **{GIVEN: '{ "city":"Paris" }', "gen_ai.tool.call.id": None})),
    ),
    "answered-before": Smallest(
        (again("m", 0), again("n", 10)),
        (again("m", 0), again("n", 10, **{"gen_ai.response.id": "s"})),
    ),
    "agent-after-another": Smallest(
        (agent("a", to=20), agent("b", at=30, agent="writer")),
        (agent("a", to=20), chat("m", "a"), agent("b", at=30, agent="writer")),
    ),
    "agent-not-received": Smallest(smolagents("gone"), smolagents("a")),
    "asked-nowhere": Smallest(
        (agent("a"), chat("m", "a", at=1, **{INPUT: ASKED, OUTPUT: says("21")}), tool("t", "a", at=0)),
        (agent("a"), chat("m", "a", at=1, **{INPUT: ASKED, OUTPUT: says("21")}), tool("u", "a", at=0, **{"gen_ai.tool.name": "other"})),
    ),
    "server-span-alone": Smallest(
        (agent("a"), tool("t", "a", at=10), tool("u", "a", at=20), served("v", 10), served("w", 15)),
        (agent("a"), tool("t", "a", at=10), tool("u", "a", at=20), served("v", 10), served("w", 20)),
    ),
    "failed-beside-request": Smallest(
        (FAILED, replace(TWICE), BROKEN_TOOL),
        (FAILED, replace(WAITING), BROKEN_TOOL),
    ),
    "last-answer-not-recorded": Smallest(
        (agent("a"), S("m", "a", 1, 5, "chat", {"gen_ai.operation.name": "chat"})),
        (agent("a"), S("m", "a", 1, 5, "chat", {"gen_ai.operation.name": "chat", "gen_ai.response.id": "r"})),
    ),
    "parent-not-received": Smallest((chat("m", "gone"),), (replace(chat("m", "far"), flags=0x300),)),
    "tool-asked-last": Smallest(
        (chat("m", **{OUTPUT: ASKED}), tool("t", at=20)),
        (chat("m", **{OUTPUT: ASKED}), tool("t", at=20), chat("n", at=30)),
    ),
    "ended-on-request": Smallest(
        (chat("m"), asked_next("s", 10)),
        (asked_next("s", 0), chat("m", at=10)),
    ),
    "thoughts-apart": Smallest(
        (chat("m", **{MODEL: "gemini-2.5-flash", INPUT_TOKENS: 9, OUTPUT_TOKENS: 5}),),
        (chat("m", **{MODEL: "gemini-2.5-flash", INPUT_TOKENS: 9, OUTPUT_TOKENS: 5, "gen_ai.usage.reasoning.output_tokens": 2}),),
    ),
    "nothing-answered": Smallest(
        (S("m", "", 0, 5, "step", {"span.type": "llm"}),),
        (S("m", "", 0, 5, "step", {"span.type": "llm", "llm.output": "Hi."}),),
    ),
    "ended-on-misfit": Smallest(
        (agent("a"), chat("m", "a", **{OUTPUT: ASKED, "gen_ai.tool.definitions": '[{"name": "other"}]'})),
        (agent("a"), chat("m", "a", **{OUTPUT: ASKED, "gen_ai.tool.definitions": '[{"name": "get_weather"}]'})),
    ),
}  # fmt: skip


def reasons(lab: Lab, *spans: S) -> set[str]:
    """Return the reasons of the doubts and gaps of a run."""
    return found(lab.put(*spans))


def found(lab: Lab, run: str = "r") -> set[str]:
    """Return the reasons of a run that is there."""
    of_run = "SELECT run_id, reason FROM doubts UNION ALL SELECT run_id, reason FROM gaps"
    return {reason for (reason,) in lab.rows(f"SELECT reason FROM ({of_run}) AS found WHERE run_id = :run", run)}


@pytest.fixture
def verified(tmp_path: Path) -> Lab:
    """A lab whose GenAI spans come from an instrumentation that was verified."""
    (tmp_path / "verified.yaml").write_text(VERIFIED, encoding="utf-8")
    return Lab(dialects=[tmp_path])


def checks_in_doubt(lab: Lab) -> list[str]:
    """Return which of the runs of `lab`, each called as a check, have its reason."""
    return [check for check in SMALLEST if check in found(lab, check)]


def test_what_contradicts_itself_is_in_doubt(lab: Lab) -> None:
    lab.put_each({check: smallest.spans for check, smallest in SMALLEST.items()})

    assert checks_in_doubt(lab) == list(SMALLEST)


def test_the_same_trace_without_the_contradiction_is_known(lab: Lab) -> None:
    lab.put_each({check: smallest.agrees for check, smallest in SMALLEST.items()})

    assert checks_in_doubt(lab) == []


def test_verified_rules_are_believed_unless_numbers_contradict(verified: Lab) -> None:
    verified.put_each({check: smallest.spans for check, smallest in SMALLEST.items()})

    assert checks_in_doubt(verified) == [check for check in SMALLEST if REASONS[check].always]


@pytest.mark.parametrize(
    "others",
    [
        {"gen_ai.response.id": "r", OUTPUT: says("Ho.")},
        {"gen_ai.response.id": "r", INPUT: says("Ho?")},
        {"gen_ai.response.id": "r", INPUT: None},
    ],
)
def test_what_differs_is_no_answer_of_a_cache(lab: Lab, others: dict[str, Any]) -> None:
    """A server may give all its answers one id."""
    assert "answered-before" not in reasons(lab, again("m", 0), again("n", 10, **others))


def test_an_answer_of_a_cache_has_no_id(lab: Lab) -> None:
    """LangChain's OpenLLMetry records none then."""
    assert "answered-before" in reasons(lab, again("m", 0), again("n", 10, **{"gen_ai.response.id": None}))
    assert lab.totals("llm_calls_low", "llm_calls_high") == (1, 2)


def test_a_call_that_may_be_none_is_no_lower_bound(lab: Lab) -> None:
    """That the model was called at least so often is said of calls that were made."""
    assert reasons(lab, *SMALLEST["given-up-call"].spans)
    once = parse_assertion({"type": "llm_call_count", "min": 1, "id": "once"})

    dialects = {dialect.name: dialect for dialect in load_dialects()}
    (result,) = evaluate(lab.store, [once], ["r"], dialects)

    assert [verdict.status for verdict in result.verdicts] == [Status.INCONCLUSIVE]


def test_the_usage_of_the_call_is_unknown_too(lab: Lab) -> None:
    """What asks for the tokens of single calls does not get a number that the trace contradicts."""
    lab.put(chat("m", **{"gen_ai.usage.total_tokens": 111}), chat("n", at=20))

    assert lab.rows("SELECT input_tokens, output_tokens FROM llm_calls ORDER BY call_no") == [(None, None), (100, 10)]
    doubts = "SELECT row_no, column_name, reason FROM doubts WHERE column_name LIKE '%put_tokens' OR column_name = 'cost_usd'"
    assert sorted(lab.rows(doubts), key=str) == [
        (1, "input_tokens", "total-unlike-parts"),
        (1, "output_tokens", "total-unlike-parts"),
        (None, "cost_usd", "total-unlike-parts"),
    ]


def test_who_delegated_to_an_agent_inside_of_a_doubtful_one_is_unknown(lab: Lab) -> None:
    lab.put(*SMALLEST["agent-without-calls"].spans)

    assert lab.rows("SELECT name, parent_activation_no, via, certain FROM agents") == [
        ("runner", None, "root", False),
        ("assistant", None, None, True),
    ]


@pytest.mark.parametrize(("at", "name"), [(12, "get_weather"), (11, "rm")], ids=["a retry", "another tool"])
def test_what_no_other_call_can_be_is_an_attempt_that_nobody_asked_for(lab: Lab, at: int, name: str) -> None:
    lab.put(agent("a"), replace(WAITING), tool("t", "a", at=10), tool("u", "a", at=at, tool=name))

    assert lab.rows("SELECT name, certain FROM tool_calls ORDER BY call_no") == [("get_weather", True), (name, True)]


def test_who_made_a_call_that_names_an_agent_without_a_span_is_unknown(lab: Lab) -> None:
    """Its span is inside of another agent's."""
    lab.put(agent("a"), chat("m", "a", at=1), tool("t", "a", at=10, **{"gen_ai.agent.name": "ghost"}))

    assert lab.rows("SELECT agent_span_id, certain FROM tool_calls") == [(None, True)]
    assert lab.rows("SELECT relation, column_name FROM doubts WHERE reason = 'agent-without-span'") == [
        ("tool_calls", "agent_span_id")
    ]
    assert lab.rows("SELECT relation, name FROM gaps WHERE reason = 'agent-without-span'") == [("agents", "ghost")]


@pytest.mark.parametrize(
    ("version", "found"),
    [("1.2.9", "verified"), ("1.3", "verified"), ("1.5.0", "other-version"), ("", "other-version")],
)
def test_the_evidence_of_a_span_is_known(tmp_path: Path, version: str, found: str) -> None:
    """Versions between two that were recorded count as verified."""
    declared = VERIFIED.replace("scope: test,", "scope: test, versions: ['1.2.1', '1.4.0'],")
    (tmp_path / "verified.yaml").write_text(declared, encoding="utf-8")
    lab = Lab(dialects=[tmp_path])
    lab.put(replace(chat("m"), version=version), replace(chat("n", at=20), scope="another"))

    assert lab.rows("SELECT rule, scope_version FROM spans ORDER BY start_ns") == [
        (found, version or None),
        ("generic", None),
    ]


def test_kind_and_status_of_a_span_are_those_that_opentelemetry_has(lab: Lab) -> None:
    """Unlike `kind`, which is what clawtrace makes of the span."""
    lab.put(replace(chat("m"), kind="Client", error="boom"), replace(chat("n", at=20), kind="Internal"))

    assert lab.rows("SELECT span_kind, status FROM spans ORDER BY start_ns") == [
        ("client", "error"),
        ("internal", "unset"),
    ]


@pytest.mark.parametrize(
    ("check", "assertion"),
    [
        ("total-unlike-parts", {"type": "trace_token_budget", "max_input_tokens": 1000}),
        ("agent-without-calls", {"type": "delegation_occurred", "to_agent": "assistant"}),
    ],
)
def test_a_verdict_names_the_check_and_what_would_settle_it(lab: Lab, check: str, assertion: dict[str, Any]) -> None:
    """The hint of an answer that the contradiction leaves open."""
    assert check in reasons(lab, *SMALLEST[check].spans)
    dialects = {dialect.name: dialect for dialect in load_dialects()}

    (found,) = evaluate(lab.store, [parse_assertion(assertion)], ["r"], dialects)

    assert found.verdicts[0].status is Status.INCONCLUSIVE
    assert REASONS[check].settled_by in found.verdicts[0].hint


def test_a_stream_that_one_span_says_broke_off_may_be_none(lab: Lab) -> None:
    """Of two spans of one call, one is OK and has the id of the answer, and the other one failed."""
    inner = replace(
        begun("n", 1, **{"gen_ai.response.id": "m"}), parent="m", to=4, error="Connection error.", scope="sdk"
    )
    lab.put(replace(begun("m", 0), to=5), inner)

    assert lab.totals("llm_calls") == (None,)
    assert "broken-off-answer" in reasons(lab)


@pytest.mark.parametrize(("error", "expected"), [("connection error", {"broken-off-answer"}), (None, set())])
def test_an_agent_that_fails_with_an_answer_without_an_end(lab: Lab, error: str | None, expected: set[str]) -> None:
    """OpenInference marks the model's span of Pydantic AI as one that succeeded."""
    call = replace(begun("m", 1), parent="a")

    assert reasons(lab, replace(agent("a"), error=error), call) & {"broken-off-answer"} == expected


@pytest.mark.parametrize(
    ("reason", "usage", "expected"),
    [
        ("", None, {"broken-off-answer"}),
        ("other", None, {"broken-off-answer"}),
        ("unknown", None, {"broken-off-answer"}),
        ("other", 10, set()),
        ("stop", None, set()),
    ],
)
def test_a_finish_reason_that_says_nothing_is_no_end(
    lab: Lab, reason: str, usage: int | None, expected: set[str]
) -> None:
    """Vercel's SDK says `other` of a stream that broke off; a stream that ended has usage, where it is counted."""
    more = {
        "gen_ai.response.finish_reasons": [reason],
        "gen_ai.usage.input_tokens": usage,
        "gen_ai.usage.output_tokens": None,
    }

    assert reasons(lab, chat("m", **more)) & {"broken-off-answer"} == expected


def test_openllmetry_writes_an_empty_finish_reason_into_the_message(lab: Lab) -> None:
    message = '[{"role": "assistant", "parts": [{"type": "text", "content": "I will"}], "finish_reason": ""}]'
    call = begun("m", 1, **{OUTPUT: message, "gen_ai.request.model": "gpt-4o", "gen_ai.is_streaming": True})

    assert "broken-off-answer" in reasons(lab, replace(call, scope="opentelemetry.instrumentation.openai.v1"))


@pytest.mark.parametrize(("tokens", "expected"), [(200, set()), (201, {"stated-beyond-calls"})])
def test_what_an_agent_states_may_run_on_from_its_last_activation(lab: Lab, tokens: int, expected: set[str]) -> None:
    """Strands sums up all turns of a conversation."""
    second = {**SPENT, INPUT_TOKENS: tokens, "gen_ai.usage.output_tokens": 20}
    spans = agent("a", to=20, **SPENT), chat("m", "a", at=1), agent("b", at=30, **second), chat("n", "b", at=31)

    assert reasons(lab, *spans) & {"stated-beyond-calls"} == expected


def test_an_answer_of_which_nothing_is_recorded_may_be_none_where_its_step_failed(lab: Lab) -> None:
    """The agent's failure is that of the step, which is inside of it and around the model call; or no span is the agent's."""
    step = S("s", "a", 1, 90, "turn", error="no final response")
    lab.put(replace(agent("a"), error="no final response"), step, bare("m", "s"))

    lab.put(S("s", "", 1, 90, "turn", error="no final response"), bare("m", "s"), run="alone")

    for run in ("r", "alone"):
        assert lab.totals("llm_calls", run=run) == (None,)
        assert "given-up-call" in found(lab, run)


def bare(id: str, parent: str, **more: Any) -> S:
    """A model span that says nothing of an answer."""
    return S(id, parent, 2, 5, "chat", {"gen_ai.operation.name": "chat", "gen_ai.request.model": "gpt-4o"}, **more)


def test_a_model_call_that_was_given_up_counts_for_no_bound(lab: Lab) -> None:
    """Its outcome is unknown, where it does not say itself that it failed."""
    calls = [
        ((given_up("t"), bare("n", "t")), None),
        ((given_up("t"), bare("n", "t", error="cancelled", events=[("exception", CANCELLED)])), None),
        ((given_up("t"), bare("n", "t", error="status code 429")), "error"),
        ((given_up("t"), chat("n", "t", at=2)), "ok"),
        ((replace(agent("a"), error="status code 400"), bare("n", "a")), None),
        ((replace(agent("a"), error="no such city"), bare("n", "a"), replace(tool("t", "a", at=9), error="x")), "ok"),
        ((agent("a"), bare("n", "a")), "ok"),
    ]
    lab.put_each({f"r{number}": spans for number, (spans, _) in enumerate(calls)})

    for number, (spans, outcome) in enumerate(calls):
        assert lab.rows("SELECT outcome FROM llm_calls", f"r{number}") == [(outcome,)], spans
        assert lab.totals("llm_calls", run=f"r{number}") == ({None: None, "error": 0, "ok": 1}[outcome],), spans


@pytest.mark.parametrize("exception", ["RuntimeError", "builtins.KeyError", "json.decoder.JSONDecodeError"])
def test_an_error_of_the_program_may_have_followed_an_answer(lab: Lab, exception: str) -> None:
    """`RuntimeError: Event loop is closed` is raised where a second loop uses a client of the first one, also after the answer."""
    assert "unread-answer" in reasons(lab, unread("m", exception))


@pytest.mark.parametrize(
    ("failed_to", "more", "given_up"),
    [(4, {}, True), (1, {}, False), (9, {}, False), (4, {"gen_ai.usage.input_tokens": 7}, False)],
)
def test_a_call_that_was_under_way_when_an_agent_beside_it_failed_may_have_been_cancelled(
    lab: Lab, failed_to: int, more: dict[str, int], given_up: bool
) -> None:
    """Of agents side by side the first failure cancels the others: their requests end quietly, without an answer."""
    beside = replace(agent("b", "r", agent="b"), to=failed_to, error="no such city")
    call = bare("m", "a")
    call.attrs |= more
    work = agent("r", agent="r"), beside, chat("n", "b", at=0), agent("a", "r", agent="a"), call, tool("t", "a", at=20)
    lab.put(*work)

    assert ("given-up-call" in found(lab, "r")) == given_up


@pytest.mark.parametrize("last", ["tool", "model", "cancelled tool"])
def test_an_agent_that_was_cancelled_after_a_tool_call_may_have_asked_its_model(lab: Lab, last: str) -> None:
    """The span of that request may never have been exported; no other request was under way."""
    cancelled = replace(agent("a"), error="cancelled")
    cancelled.events = [("exception", CANCELLED)]
    call = tool("t", "a", at=10)
    if last == "cancelled tool":
        call = replace(call, error="cancelled", events=[("exception", CANCELLED)])
    lab.put(cancelled, chat("m", "a", at=1), call, *([chat("n", "a", at=30)] if last == "model" else []))

    gaps = lab.rows("SELECT relation, agent FROM gaps WHERE reason = 'failed-without-call'")
    assert gaps == ([("llm_calls", "assistant")] if last == "tool" else [])


def test_a_last_call_without_an_answer_counts_only_where_its_program_records_no_answers(lab: Lab) -> None:
    """A request that was cancelled ends quietly, also where the program goes on with other work."""
    earlier = S("e", "a", 0, 1, "chat", {"gen_ai.operation.name": "chat"}, error="cancelled")
    around = {
        f"{error}": (replace(agent("a", to=40), error=error), earlier, bare("m", "a")) for error in (None, "cancelled")
    }
    others = {"answered": chat("n", "b", at=60), "bare": replace(bare("n", "b"), at=60, to=65)}
    runs = {
        f"{error}, {name}": (*spans, agent("b", at=50), other)
        for error, spans in around.items()
        for name, other in others.items()
    }
    for _ in ("once", "twice"):  # the second time every span is repeated
        lab.put_each(runs)

        assert {run for run in runs if "given-up-call" in found(lab, run)} == {"None, answered", "cancelled, answered"}


def test_a_tool_may_have_been_called_again_from_inside() -> None:
    """Without arguments and ids, a model that answered in between is what tells it from a second span of one call."""
    inner = (chat("m", "t", at=11), tool("u", "t", at=30, **{"gen_ai.tool.call.id": None}))
    gaps = "SELECT name, at_most FROM gaps WHERE reason = 'called-inside-itself'"

    assert Lab().put(agent("a"), replace(tool("t", "a", at=10), to=60), *inner).rows(gaps) == [("get_weather", 1)]
    assert Lab().put(agent("a"), replace(tool("t", "a", at=10), to=60), inner[1]).rows(gaps) == []


def test_several_spans_without_a_name_may_be_several_failures() -> None:
    """They may be calls that the tool around them made, of which more than the one that is counted may have failed."""
    nameless = [
        S(id, "t", at, at + 5, "execute_tool", {"gen_ai.operation.name": "execute_tool"}, error="boom")
        for id, at in (("u", 20), ("v", 30))
    ]
    lab = Lab().put(agent("a"), replace(tool("t", "a", at=10), to=60), *nameless)

    assert lab.rows("SELECT relation, at_most FROM gaps WHERE reason = 'several-in-one' ORDER BY 1") == [
        ("errors", 2),
        ("tool_calls", 2),
    ]
