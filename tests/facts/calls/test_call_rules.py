"""Each rule of the ledger has its smallest trace: the rule alone makes several spans one call, or keeps them apart."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import pytest
from building import Lab, S, agent, asks, chat, says, shared_lab, tool

from clawtrace.facts.calls.rules import CALL_RULES
from clawtrace.model.relations import RELATIONS

OTHER = f"{2:032x}"


def by(scope: str, span: S, **changed: object) -> S:
    """The span as another instrumentation writes it."""
    return replace(span, scope=scope, **changed)  # type: ignore[arg-type]


def said(
    answer: str | None = None, tokens: tuple[int | None, int | None] = (None, None), **attrs: object
) -> dict[str, object]:
    """What a model span says of its answer and usage; no response id."""
    used = {"gen_ai.usage.input_tokens": tokens[0], "gen_ai.usage.output_tokens": tokens[1]}
    return {**used, **({} if answer is None else {"gen_ai.output.messages": says(answer)}), **attrs}


def failed(span: S) -> S:
    span.error = "429"
    for key in ("gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens", "gen_ai.response.finish_reasons"):
        span.attrs.pop(key, None)
    return span


def request(id: str, at: int, to: int, trace: str = OTHER) -> S:
    """One side of a tool call over MCP."""
    attrs = {
        "mcp.method.name": "tools/call", "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "add",
        "jsonrpc.request.id": 7, "mcp.session.id": "s1",
    }  # fmt: skip
    return S(id, "", at, to, "tools/call add", attrs, scope=f"mcp.{id}", trace=trace)


def logfire(id: str, at: int, to: int, **attrs: object) -> S:
    """A model span of Logfire."""
    template = (
        "streaming response from {request_data[model]!r}" if attrs else "Chat Completion with {request_data[model]!r}"
    )
    request_data = '{"messages": [{"role": "user", "content": "hi"}], "model": "gpt-4o", "stream": true}'
    sent = {"request_data": request_data, "logfire.msg_template": template, "gen_ai.request.model": "gpt-4o", **attrs}
    return S(id, "a", at, to, template, sent, scope="logfire.openai")


class Smallest(NamedTuple):
    """The smallest trace of a rule."""

    spans: tuple[S, ...]
    calls: int
    """Model calls, or tool calls where there is no model span."""
    also: frozenset[str] = frozenset()
    """Other rules without which this one cannot be met."""


ID = "gen_ai.response.id"
NO_CALL_ID = {"gen_ai.tool.call.id": None}

SMALLEST = {
    "same-exchange": Smallest((request("c", 10, 20, f"{1:032x}"), request("s", 11, 19)), 1),
    "layer-of-tool": Smallest(
        (agent("a"), replace(tool("t", "a", at=5, tool="add"), to=40), request("c", 10, 20)), 1
    ),
    "dispatched-tool": Smallest(
        (agent("a"), *(
            S(id, "a", at, to, "openclaw.tool.execution", {"gen_ai.tool.name": name}, scope="openclaw")
            for id, at, to, name in (("t", 10, 20, "tool_call"), ("u", 11, 19, "add"))
        )), 1
    ),
    "nested-model-span": Smallest((chat("m"), by("sdk", chat("n", "m"))), 1),
    "same-response-id": Smallest((chat("m", **{ID: "r"}), by("sdk", chat("n", **{ID: "r"}))), 1),
    "nested-tool-span": Smallest((agent("a"), tool("t", "a", **NO_CALL_ID), tool("u", "t", **NO_CALL_ID)), 1),
    "nameless-tool-span": Smallest(
        (agent("a"), tool("t", "a"), S("n", "t", 1, 2, "request", {"mcp.method.name": "tools/call"})), 1
    ),
    "same-tool-call-id": Smallest(
        (agent("a"), tool("t", "a"), by("sdk", tool("u", "a", **{"gen_ai.tool.call.id": "call_t"}))), 1
    ),
    "several-answers": Smallest(
        (replace(chat("m"), to=50), chat("n", "m", at=1), chat("o", "m", at=20)), 2,
        frozenset({"nested-model-span"}),
    ),
    "same-requested-tool-calls": Smallest(
        tuple(by(scope, chat(id, **said(**{"gen_ai.output.messages": asks(("c1", "search", {}))}))) for id, scope in (("m", "one"), ("n", "two"))),
        1,
    ),
    "same-answer-and-usage": Smallest(
        tuple(by(scope, chat(id, **said("hi", (7, 3)))) for id, scope in (("m", "one"), ("n", "two"))), 1
    ),
    "same-usage": Smallest(
        tuple(by(scope, chat(id, **said(None, (7, 3)))) for id, scope in (("m", "one"), ("n", "two"))), 1
    ),
    "same-answer": Smallest(
        (by("one", chat("m", **said("hi", (7, 3)))), by("two", chat("n", **said("hi")))), 1
    ),
    "failed-together": Smallest(
        (
            by("one", chat("m", **said("hi", (7, 3)))), by("two", chat("n", **said("hi", (7, 3)))),
            by("one", failed(chat("o", at=20))), by("two", failed(chat("p", at=20))),
        ), 2, frozenset({"same-answer-and-usage"}),
    ),
    "same-time": Smallest((by("one", chat("m", **said(None, (7, 3)))), by("two", chat("n", **said()))), 1),
    "one-call-or-two": Smallest(
        (by("one", chat("m", **said("yes", (7, 3)))), by("two", chat("n", **said("no", (7, 3))))), 2
    ),
    "stream-answer": Smallest(
        (agent("a"), logfire("m", 1, 3), logfire("n", 20, 20, **{"gen_ai.usage.input_tokens": 9, "gen_ai.usage.output_tokens": 1})), 1
    ),
    "duplicate-instrumentation": Smallest(
        (
            agent("a"), chat("m", "a", **{ID: "r"}), by("sdk", chat("n", "a", **{ID: "r"})),
            tool("t", "a", at=10, **NO_CALL_ID), by("sdk", tool("u", "a", at=10, **NO_CALL_ID)),
        ), 1, frozenset({"same-response-id"}),
    ),
    "handoff-tool": Smallest(
        (agent("a", to=10), tool("t", "a", at=2, tool="transfer_to_helper"), agent("b", at=20, agent="helper")), 0
    ),
    "runner-of-agents": Smallest((agent("r", agent=None), agent("a", "r"), chat("m", "a")), 1),
}  # fmt: skip


def test_every_rule_has_its_smallest_trace() -> None:
    """A rule that is added without one fails here."""
    assert list(SMALLEST) == list(CALL_RULES)
    assert "counted_by" in {column.name for column in RELATIONS["spans"].columns}


@pytest.fixture(scope="module")
def smallest_traces() -> Iterator[Lab]:
    """A laboratory with the smallest trace of each rule as the run of its name."""
    with shared_lab() as shared:
        yield shared.put_each({rule: smallest.spans for rule, smallest in SMALLEST.items()})


@pytest.mark.parametrize("rule", SMALLEST)
def test_the_rule_decides_its_smallest_trace(smallest_traces: Lab, rule: str) -> None:
    """`spans.counted_by` names it, and the number of calls is what it says."""
    smallest = SMALLEST[rule]
    spans = "SELECT DISTINCT counted_by FROM spans WHERE run_id = :run AND counted_by IS NOT NULL"
    models, tools = (
        len(smallest_traces.rows(f"SELECT span_id FROM {name} WHERE run_id = :run", rule))
        for name in ("llm_calls", "tool_calls")
    )

    assert {one for (one,) in smallest_traces.rows(spans, rule)} == {rule, *smallest.also}
    assert (tools if rule == "duplicate-instrumentation" else models or tools) == smallest.calls


def test_a_span_that_is_counted_alone_needs_no_rule(lab: Lab) -> None:
    """The first span of each smallest trace that is a call is one without the others."""
    calls = {
        rule: next(span for span in smallest.spans if not span.name.startswith("invoke_agent"))
        for rule, smallest in SMALLEST.items()
    }
    lab.put_each({rule: (replace(call, parent=""),) for rule, call in calls.items()})

    assert lab.rows("SELECT run_id, counted_by FROM spans ORDER BY run_id") == [(rule, None) for rule in sorted(calls)]


def test_what_asks_no_model_is_no_model_call() -> None:
    """OpenInference's OpenAI SDK calls each request an LLM, also a moderation, an upload and a batch."""
    scope, kind = "openinference.instrumentation.openai", {"openinference.span.kind": "LLM", "input.value": "{}"}
    others = (
        "ModerationCreateResponse", "FileObject", "Batch", "AsyncCursorPage", "InputTokenCountResponse", "ImagesResponse",
        "Transcription", "HttpxBinaryResponseContent",
    )  # fmt: skip
    spans = [S(f"s{at}", "", at, at + 1, name, kind, scope=scope) for at, name in enumerate(others, start=3)]
    asked = S("m", "", 1, 2, "ChatCompletion", {**kind, "llm.model_name": "gpt-4o"}, scope=scope)

    assert len(Lab().put(asked, *spans).rows("SELECT span_id FROM llm_calls")) == 1


@pytest.mark.parametrize("url", ["/moderations", "/v1/messages/count_tokens?beta=true", "/audio/transcriptions"])
def test_logfire_s_other_requests_are_no_model_calls(lab: Lab, url: str) -> None:
    """Logfire names all requests alike that it does not know, and gives them the model of their answers."""
    said = {"url": url, "gen_ai.provider.name": "openai", "gen_ai.response.model": "omni", "gen_ai.response.id": "modr"}
    lab.put(S("s", name="OpenAI API call to {url!r}", attrs=said, scope="logfire.openai"))

    assert lab.rows("SELECT span_id FROM llm_calls") == []
