"""Tool calls that a model asked for and a framework answered without running a tool (spec: span-model.md §4)."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from building import SDK, Lab, S, agent, answered, asks, chat, says, tool

from clawtrace.assertions.registry import parse_assertion
from clawtrace.dialects import load_dialects
from clawtrace.model.verdict import Status
from clawtrace.receiver.recordings.recording import Grouping
from clawtrace.session.session import Session
from clawtrace.verdicts.evaluate import evaluate

RECORDINGS = Path(__file__).parents[2] / "recordings"
CALLS = "SELECT name, outcome FROM tool_calls ORDER BY call_no"
COUNTS_CALLS = (
    {"type": "tool_was_called", "tool": "get_wether"},
    {"type": "tool_call", "tool": "get_wether"},
    {"type": "tool_sequence", "expected": ["get_wether", "get_weather"]},
    {"type": "tool_call_count", "tool": "get_wether", "min": 1},
    {"type": "no_loops", "max_repeats": 1},
)


DIALECTS = {dialect.name: dialect for dialect in load_dialects()}


def status(lab: Lab, **assertion: Any) -> Status:
    lab.facts.ensure(["r"])
    (result,) = evaluate(lab.store, [parse_assertion(assertion)], ["r"], DIALECTS)
    return result.verdicts[0].status


WORDS = {
    "pydantic-ai": "Unknown tool name: 'get_wether'. Available tools: 'get_weather'",
    "agent_framework": 'Error: Requested function "get_wether" not found.',
    "gen_ai": "Model tried to call unavailable tool 'get_wether'. Available tools: get_weather.",
    "strands.telemetry.tracer": "Unknown tool: get_wether",
    "gcp.vertex.agent": "Invoking `get_wether()` failed as no tool with that name is available.",
    "autogen-core": "Error: tool 'get_wether' not found in any workbench",
    "logfire.openai_agents": "Tool 'get_wether' not found.",
}
"""What frameworks answer to a call of a tool that an agent does not have, by the scope of their spans."""


def run(scope: str, at: int = 0, answer: str | None = None) -> list[S]:
    """A model asks for a tool that does not exist, gets that answer, and asks for the right one."""
    answer = WORDS.get(scope, "unknown tool") if answer is None else answer
    first = {"gen_ai.output.messages": asks(("c1", "get_wether", {}))}
    second = {
        "gen_ai.input.messages": answered("c1", answer),
        "gen_ai.output.messages": asks(("c2", "get_weather", {})),
    }
    third = {"gen_ai.input.messages": answered("c2", "sunny"), "gen_ai.output.messages": says("sunny")}
    spans = [
        agent("a"),
        chat("m", "a", at=at + 1, **first),
        chat("n", "a", at=at + 10, **second),
        tool("t", "a", at=at + 20, **{"gen_ai.tool.call.id": "c2"}),
        chat("o", "a", at=at + 30, **third),
    ]  # fmt: skip
    return [replace(span, scope=scope) for span in spans]


class TestWhereEveryExecutionHasASpan:
    @pytest.mark.parametrize("scope", WORDS)
    def test_it_is_no_call_of_anything(self, scope: str) -> None:
        lab = Lab().put(*run(scope))

        assert lab.rows(CALLS) == [("get_wether", "unexecuted"), ("get_weather", "ok")]
        assert lab.totals("tool_calls") == (1,)
        assert status(lab, type="tool_not_invoked", tool="get_wether") is Status.PASS
        assert status(lab, type="tool_not_called", tool="get_wether") is Status.PASS
        assert status(lab, type="tool_not_permitted", allowed_tools=["get_weather"]) is Status.PASS

    @pytest.mark.parametrize(
        ("scope", "answer"),
        [
            ("agent_framework", "Error: Argument parsing failed."),
            ("agent_framework", "Error: Argument parsing failed. Exception: city is missing"),
            ("strands.telemetry.tracer", "Error: tool_name=<get_wether> | invalid tool name pattern"),
            (
                "strands.telemetry.tracer",
                "Validation failed for input parameters: argument must be a mapping, not list",
            ),
        ],
    )
    def test_arguments_that_the_framework_refuses_are_no_call(self, scope: str, answer: str) -> None:
        lab = Lab().put(*run(scope, answer=answer))

        assert lab.rows(CALLS) == [("get_wether", "unexecuted"), ("get_weather", "ok")]
        assert lab.totals("tool_calls") == (1,)

    @pytest.mark.parametrize("assertion", COUNTS_CALLS[:4], ids=lambda assertion: assertion["type"])
    def test_nothing_that_counts_calls_counts_it(self, assertion: dict[str, Any]) -> None:
        assert status(Lab().put(*run("pydantic-ai")), **assertion) is Status.FAIL

    def test_it_is_no_repetition(self) -> None:
        """The right tool ran once, the wrong one never."""
        spans = [*run("pydantic-ai")]
        assert status(Lab().put(*spans), **COUNTS_CALLS[4]) is Status.PASS

    @pytest.mark.parametrize("answer", ["Rome: 21 degrees", "Unknown tool name: 'get_city'. Available tools: none"])
    @pytest.mark.parametrize("scope", WORDS)
    def test_what_ran_outside_of_the_framework_is_never_taken_for_unexecuted(self, scope: str, answer: str) -> None:
        """The program that called the agent may run a tool itself, as may a loop written by hand: neither writes a span."""
        lab = Lab().put(*run(scope, answer=answer))

        assert lab.rows(CALLS) == [("get_wether", None), ("get_weather", "ok")]
        assert status(lab, type="tool_not_invoked", tool="get_wether") is Status.INCONCLUSIVE
        assert status(lab, type="tool_was_called", tool="get_wether") is Status.INCONCLUSIVE

    def test_model_calls_that_a_models_sdk_recorded(self) -> None:
        """The framework around them writes the spans of executions."""
        lab = Lab().put(*(replace(span, scope=SDK) if span.id in "mno" else span for span in run("pydantic-ai")))

        assert lab.rows(CALLS) == [("get_wether", "unexecuted"), ("get_weather", "ok")]


def test_an_sdks_instrumentation_writes_no_spans_for_executions() -> None:
    """What a later message answers was executed, but where the answer may be a program's that has no such tool."""
    lab = Lab().put(*(span for span in run(SDK) if span.id in "mno"))

    assert lab.rows(CALLS) == [("get_wether", None), ("get_weather", "unknown")]
    assert status(lab, type="tool_was_called", tool="get_wether") is Status.INCONCLUSIVE
    assert status(lab, type="tool_was_called", tool="get_weather") is Status.PASS


@pytest.mark.parametrize("assertion", [*COUNTS_CALLS[:3], {"type": "tool_not_invoked", "tool": "get_wether"}])
def test_where_neither_is_known_verdicts_are_open(assertion: dict[str, Any]) -> None:
    lab = Lab().put(*run("somebody's own"))

    assert lab.rows(CALLS) == [("get_wether", None), ("get_weather", "ok")]
    assert lab.totals("tool_calls") == (None,)
    assert status(lab, **assertion) is Status.INCONCLUSIVE
    assert status(lab, type="tool_was_called", tool="get_weather") is Status.PASS


@pytest.mark.parametrize("client", ["pydantic-ai", "langchain+openinference"])
def test_recorded_frameworks(client: str) -> None:
    """The model asks for `get_weather`; the agent has `get_forecast` alone."""
    with Session.open() as session:
        session.load_recordings([RECORDINGS / client / "unknown_tool"], Grouping.one_run("r"))
        (seen,) = session.inspect()["runs"]

    assert [(call["name"], call["outcome"]) for call in seen["tool_calls"]] == [
        ("get_weather", "unexecuted"),
        ("get_forecast", "ok"),
    ]
    assert seen["totals"]["tool_calls"] == 1


@pytest.mark.parametrize("scope", ["pydantic-ai", "gen_ai"])
@pytest.mark.parametrize("activations", [("", ""), ("a", "b")], ids=["bare model calls", "an activation for each call"])
def test_a_loop_of_the_programs_own_may_have_run_it(scope: str, activations: tuple[str, str]) -> None:
    """The program calls its function and hands the result in: the instrumentation sees neither."""
    one, two = activations
    asked = chat("m", one, at=1, **{"gen_ai.output.messages": asks(("c1", "delete_all", {}))})
    refused = chat(
        "n", two, at=51, **{"gen_ai.input.messages": answered("c1", "42"), "gen_ai.output.messages": says("ok")}
    )
    around = [agent("a", at=0, to=40), agent("b", at=50)] if one else []
    lab = Lab().put(*(replace(span, scope=scope) for span in (*around, asked, refused)))

    assert lab.rows(CALLS) == [("delete_all", None)]
    assert status(lab, type="tool_not_invoked", tool="delete_all") is Status.INCONCLUSIVE


class TestAutoGenThroughOpenInference:
    """A refused call has a span, and each tool's span is OK, failed or not."""

    def seen(self, tmp_path: Path, *dropped: str) -> list[tuple[str, str | None]]:
        """Return the calls of the recording without what `dropped` names: AutoGen's own spans, or the results in messages."""
        (body,) = (RECORDINGS / "autogen+openinference/unknown_tool/traces.otlp.jsonl").read_text("utf-8").splitlines()
        request = json.loads(body)
        for resource in request["resourceSpans"]:
            kept = [spans for spans in resource["scopeSpans"] if spans["scope"]["name"] not in dropped]
            resource["scopeSpans"] = kept
            for span in (span for spans in kept for span in spans["spans"]):
                span["attributes"] = [
                    entry
                    for entry in span["attributes"]
                    if not ("messages" in dropped and entry["key"].startswith("llm.input_messages."))
                ]
        recording = tmp_path / "traces.otlp.jsonl"
        recording.write_text(json.dumps(request), encoding="utf-8")
        with Session.open() as session:
            session.load_recordings([recording], Grouping.one_run("r"))
            self.totals = session.query("SELECT errors FROM run_totals").rows
            return session.query("SELECT name, outcome FROM tool_calls ORDER BY start_ns, call_no").rows

    RAN = (("get_weather", "ok"), ("get_weather", "ok"))

    def test_its_own_spans_say_what_failed(self, tmp_path: Path) -> None:
        assert self.seen(tmp_path, "messages") == [("get_wether", "requested"), *self.RAN, ("lookup_order", "error")]

    def test_without_them_the_results_in_messages_do(self, tmp_path: Path) -> None:
        seen = self.seen(tmp_path, "autogen-core")

        assert seen == [("get_wether", "unexecuted"), *self.RAN, ("lookup_order", "error")]
        assert self.totals == [(1,)]

    def test_without_both_it_is_unknown(self, tmp_path: Path) -> None:
        seen = self.seen(tmp_path, "autogen-core", "messages")

        assert seen == [
            ("get_wether", "requested"),
            ("get_weather", "unknown"),
            ("get_weather", "unknown"),
            ("lookup_order", "unknown"),
        ]
        assert self.totals == [(None,)]
