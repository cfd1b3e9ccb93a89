"""`inspect --explain`: each column of each span names the rule that filled it, and the file in which the rule stands."""

from __future__ import annotations

from typing import Any

import pytest
from building import Lab, S, agent, chat, hex_id, tool

from clawtrace.dialects.columns import COLUMN_TYPES
from clawtrace.dialects.compile import Compiler
from clawtrace.dialects.explain import Explainer
from clawtrace.dialects.expressions import Seen
from clawtrace.dialects.load import load_dialects
from clawtrace.facts.explain_spans import explain_spans

DIALECTS = {dialect.name: dialect for dialect in load_dialects()}


def explained(lab: Lab) -> dict[str, dict[str, Any]]:
    """The columns of each span by name, with what filled them."""
    lab.facts.ensure(["r"])
    spans = explain_spans(lab.store, DIALECTS, "r")
    return {span["span_id"]: span | {c["column"]: c for c in span["columns"]} for span in spans}


def test_own_and_inherited_rules(lab: Lab) -> None:
    model = chat("m", "a", at=1)
    done = tool("t", "a", at=9)
    done.events = [("gen_ai.tool.message", {"content": '{"city": "Paris"}'})]
    for span in (model, done):
        span.scope = "strands.telemetry.tracer"
    lab.put(agent("a"), model, done)
    spans = explained(lab)

    assert [span["dialect"] for span in spans.values()] == ["otel-genai", "strands", "strands"]
    assert spans[hex_id("m")]["input_tokens"] == {
        "column": "input_tokens", "value": 100, "rule": "gen_ai.usage.input_tokens", "dialect": "otel-genai",
    }  # fmt: skip
    assert spans[hex_id("t")]["tool_arguments"] == {
        "column": "tool_arguments",
        "value": '{"city": "Paris"}',
        "rule": "event gen_ai.tool.message: content where gen_ai.operation.name = execute_tool",
        "dialect": "strands",
    }
    assert spans[hex_id("t")]["kind"]["dialect"] == "otel-genai"
    assert spans[hex_id("t")]["counted_as"] == "call"


def test_what_was_corrected_says_so(lab: Lab) -> None:
    """Input tokens were recorded without the cached ones: the rule's value, what counts, and why."""
    usage = {"gen_ai.usage.input_tokens": 100, "gen_ai.usage.cache_read.input_tokens": 50}
    model = chat("m", **usage, **{"gen_ai.request.model": "us.anthropic.claude-sonnet-4-5"})
    model.scope = "strands.telemetry.tracer"
    lab.put(model)
    span = explained(lab)[hex_id("m")]

    assert (span["input_tokens"]["value"], span["input_tokens"]["counted"]) == (100, 150)
    assert span["excludes_cache"]["dialect"] == "strands"
    assert "counted" not in span["output_tokens"]


def test_the_second_of_two_rules(lab: Lab) -> None:
    lab.put(S("m", "", 1, 9, "chat", {"gen_ai.operation.name": "chat", "gen_ai.usage.prompt_tokens": 7}))

    assert explained(lab)[hex_id("m")]["input_tokens"]["rule"] == "gen_ai.usage.prompt_tokens"


def test_messages_and_failures(lab: Lab) -> None:
    failed = chat("m", **{"gen_ai.output.messages": "[]"})
    failed.error = "429 Too Many Requests"
    lab.put(failed)
    span = explained(lab)[hex_id("m")]

    assert span["failed"]["rule"].startswith("(status Error or ")
    assert (span["error_message"]["value"], span["error_message"]["rule"]) == (
        "429 Too Many Requests",
        "span status message",
    )
    assert span["output_messages"]["rule"] == "gen_ai.output.messages (genai_parts)"


def test_a_span_that_was_delivered_twice_is_explained_once(lab: Lab) -> None:
    lab.put(chat("m"))
    lab.put(chat("m"), arrival=9)
    lab.facts.ensure(["r"])

    assert len(explain_spans(lab.store, DIALECTS, "r")) == 1


@pytest.mark.parametrize("name", sorted(DIALECTS))
@pytest.mark.full
def test_what_is_explained_is_what_the_facts_are(lab: Lab, name: str) -> None:
    """Whatever dialect reads a span: every column that the facts fill is explained, with the same value, and no other."""
    spans = [
        chat("m", **{"gen_ai.output.messages": "[]", "openinference.span.kind": "LLM", "ai.usage.inputTokens": 5}),
        tool("t", at=9, **{"openinference.span.kind": "TOOL", "ai.operationId": "ai.toolCall", "input.value": "{}"}),
        agent("a", at=11, to=20),
    ]
    lab.put(*spans)
    lab.store.script(
        "CREATE OR REPLACE TEMP TABLE mine AS SELECT row_number() OVER () AS sid, $name AS dialect, * FROM otel_traces",
        {"name": name},
    )
    seen = Seen(frozenset(key for span in spans for key in span.attrs), frozenset(), frozenset())
    columns = ("kind", *COLUMN_TYPES)
    facts = lab.store.script(
        f'SELECT "SpanId", {", ".join(f"f.{column}" for column in columns)}'
        f" FROM ({Compiler(seen=seen).row_facts(DIALECTS[name], 'mine')}) AS f JOIN mine ON mine.sid = f.sid"
    )
    explainer = Explainer(DIALECTS[name], DIALECTS, seen)
    filled_by_span = {row[1]: explainer.filled(row) for row in lab.store.script(explainer.sql("mine"))}

    assert len(facts) == len(filled_by_span) == 3
    for span_id, *values in facts:
        filled = {entry.column: entry.value for entry in filled_by_span[span_id] if entry.column in columns}
        expected = {column: value for column, value in zip(columns, values, strict=True) if value is not None}
        expected["kind"] = filled.setdefault("kind", "other")  # no rule need say `other`

        assert filled == expected
        assert expected["kind"] == values[0]
        assert all(entry.rule and entry.dialect in DIALECTS for entry in filled_by_span[span_id])
