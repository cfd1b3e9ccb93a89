"""What is an attempt of a tool, what may be one, and what is none (spec: certain-and-possible.md §4)."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from building import SDK, Lab, S, agent, answered, asks, chat, hex_id, says, tool

from clawtrace.assertions.registry import parse_assertion
from clawtrace.dialects.load import load_dialects
from clawtrace.model.verdict import Status
from clawtrace.receiver.recordings.recording import Grouping
from clawtrace.session.session import Session
from clawtrace.verdicts.evaluate import evaluate

RECORDINGS = Path(__file__).parents[2] / "recordings"
CALLS = "SELECT name, outcome, certain FROM tool_calls WHERE run_id = :run ORDER BY call_no"
REQUESTS = "SELECT name, reason FROM tool_requests WHERE run_id = :run ORDER BY request_no"
DIALECTS = {dialect.name: dialect for dialect in load_dialects()}
INPUT, OUTPUT, OFFER = "gen_ai.input.messages", "gen_ai.output.messages", "gen_ai.tool.definitions"
WEATHER = {"name": "get_weather", "parameters": {"type": "object", "required": ["city"], "properties": {}}}
OFFERED = {OFFER: json.dumps([{"type": "function", **WEATHER}])}
WRITES_SPANS = (
    "pydantic-ai", "agent_framework", "gen_ai", "strands.telemetry.tracer", "gcp.vertex.agent", "logfire.openai_agents"
)  # fmt: skip
"""Scopes of frameworks that write a span for every execution."""


def status(lab: Lab, **assertion: Any) -> Status:
    lab.facts.ensure(["r"])
    (result,) = evaluate(lab.store, [parse_assertion(assertion)], ["r"], DIALECTS)
    return result.verdicts[0].status


def as_written_by(scope: str, *spans: S) -> Lab:
    return Lab().put(*(replace(span, scope=scope) for span in spans))


def run(scope: str, *, activations: tuple[str, str] = ("a", "a"), offer: dict[str, str] | None = None) -> Lab:
    """A model asks for `get_wether`, is told something, asks for the weather, which runs with a span, and answers."""
    first = {OUTPUT: asks(("c1", "get_wether", {})), **(offer or {})}
    second = {INPUT: answered("c1", "no such tool"), OUTPUT: asks(("c2", "get_weather", {})), **(offer or {})}
    third = {INPUT: answered("c2", "sunny"), OUTPUT: says("sunny")}
    one, two = activations
    around = [agent("a")] if one == two else [agent("a", at=0, to=8), agent("b", at=9)]
    return as_written_by(
        scope, *around, chat("m", one, at=1, **first), chat("n", two, at=10, **second),
        tool("t", two, at=20, **{"gen_ai.tool.call.id": "c2"}), chat("o", two, at=30, **third),
    )  # fmt: skip


class TestWhereEveryExecutionHasASpan:
    @pytest.mark.parametrize("scope", WRITES_SPANS)
    def test_what_was_answered_without_one_was_not_run(self, scope: str) -> None:
        lab = run(scope)

        assert (lab.rows(CALLS), lab.rows(REQUESTS)) == ([("get_weather", "ok", True)], [("get_wether", "not-run")])
        assert lab.totals("tool_calls") == (1,)
        assert status(lab, type="tool_not_invoked", tool="get_wether") is Status.PASS
        assert status(lab, type="tool_was_called", tool="get_wether") is Status.FAIL

    @pytest.mark.parametrize("scope", WRITES_SPANS)
    def test_the_program_that_called_the_agent_may_have_run_it(self, scope: str) -> None:
        """The result is told to another activation."""
        lab = run(scope, activations=("a", "b"))

        assert lab.rows(CALLS) == [("get_wether", None, False), ("get_weather", "ok", True)]
        assert status(lab, type="tool_not_invoked", tool="get_wether") is Status.INCONCLUSIVE
        assert status(lab, type="tool_was_called", tool="get_weather") is Status.PASS

    @pytest.mark.parametrize("scope", ["pydantic-ai", "gen_ai"])
    def test_a_loop_of_the_programs_own_may_have_run_it(self, scope: str) -> None:
        first, second = {OUTPUT: asks(("c1", "delete_all", {}))}, {INPUT: answered("c1", "42"), OUTPUT: says("ok")}
        lab = as_written_by(scope, chat("m", at=1, **first), chat("n", at=51, **second))

        assert lab.rows(CALLS) == [("delete_all", None, False)]

    def test_also_where_a_models_sdk_recorded_the_model_calls(self) -> None:
        first = {OUTPUT: asks(("c1", "pay", {}), ("c2", "get_weather", {}))}
        ran = tool("t", "a", at=20, **{"gen_ai.tool.call.id": "c2"})
        lab = Lab().put(
            replace(agent("a"), scope="pydantic-ai"), replace(chat("m", "a", at=1, **first), scope=SDK),
            replace(ran, scope="pydantic-ai"), replace(chat("n", "a", at=30, **{INPUT: answered("c1", "no")}), scope=SDK),
        )  # fmt: skip

        assert lab.rows(REQUESTS) == [("pay", "not-run")]

    @pytest.mark.parametrize("with_id", [True, False])
    def test_one_span_of_an_id_that_several_requests_have_may_stand_for_each_of_them(self, with_id: bool) -> None:
        """Where spans have no ids, each is one execution, and what has none was not run."""
        ran = tool("t", "a", at=20, **{"gen_ai.tool.call.id": "c1" if with_id else ""})
        asked = chat("m", "a", at=1, **{OUTPUT: asks(("c1", "get_weather", {}), ("c1", "get_weather", {}))})
        lab = as_written_by("pydantic-ai", agent("a"), asked, ran)

        assert lab.rows(REQUESTS) == ([] if with_id else [("get_weather", "not-run")])
        assert (status(lab, type="tool_not_invoked", tool="pay") is Status.PASS) is not with_id

    @pytest.mark.parametrize("ended", [True, False])
    def test_the_last_request_of_an_agent_that_ended_was_not_run(self, ended: bool) -> None:
        """And whether the agent failed on it is unknown."""
        around = agent("a") if ended else replace(agent("a"), to=0)
        lab = as_written_by("pydantic-ai", around, chat("m", "a", at=1, **{OUTPUT: asks(("c1", "pay", {}))}))

        assert lab.rows(CALLS) == ([] if ended else [("pay", None, False)])
        assert lab.rows(REQUESTS) == ([("pay", "not-run")] if ended else [])
        assert lab.totals("errors") == (None,)


class TestWhereNoExecutionHasASpan:
    def told(self, name: str = "get_weather", result: Any = "Error", scope: str = SDK, **more: Any) -> Lab:
        second = {INPUT: answered("c1", result), OUTPUT: says("no")}
        first = {OUTPUT: asks(("c1", name, {"town": 1})), **more}
        return as_written_by(scope, chat("m", at=1, **first), chat("n", at=10, **second))

    @pytest.mark.parametrize("offer", [OFFERED, {}])
    def test_a_result_is_that_of_an_attempt(self, offer: dict[str, str]) -> None:
        """Whatever it says, and whether the arguments fit or not: how it ended is another question."""
        lab = self.told(**offer)

        assert lab.rows(CALLS) == [("get_weather", None, True)]
        assert status(lab, type="tool_was_called", tool="get_weather") is Status.PASS
        assert lab.totals("tool_calls", "errors") == (1, None)

    def test_but_not_of_a_tool_that_was_not_offered(self) -> None:
        lab = self.told("get_wether", **OFFERED)

        assert (lab.rows(CALLS), lab.rows(REQUESTS)) == ([], [("get_wether", "not-offered")])

    def test_nor_is_it_certain_where_nothing_is_known_of_the_framework(self) -> None:
        lab = self.told(scope="somebody's own")

        assert lab.rows(CALLS) == [("get_weather", None, False)]
        assert status(lab, type="tool_not_invoked", tool="get_weather") is Status.INCONCLUSIVE
        assert status(lab, type="tool_not_invoked", tool="pay") is Status.PASS

    def test_or_where_others_write_spans_of_the_tool(self) -> None:
        """A program refuses some calls of a tool whose executions it writes spans of."""
        first = {OUTPUT: asks(("c1", "get_weather", {"n": 1}), ("c2", "get_weather", {"n": 2}))}
        ran = replace(tool("t", at=7, **{"gen_ai.tool.call.id": "c2"}), scope="mine")
        asking = (chat("m", at=1, **first), chat("n", at=10, **{INPUT: answered("c1", "no")}))
        lab = Lab().put(ran, *(replace(span, scope=SDK) for span in asking))

        assert lab.rows(CALLS) == [("get_weather", None, False), ("get_weather", "ok", True)]

    def test_a_result_in_other_words_leaves_it_open(self) -> None:
        """Programs summarise what was done, or tell it in a user's text: a later request of the model carries no result."""
        first, second = {OUTPUT: asks(("c1", "get_weather", {}))}, {INPUT: says("It is 21 degrees"), OUTPUT: says("so")}
        lab = as_written_by(SDK, chat("m", at=1, **first), chat("n", at=10, **second))

        assert lab.rows(CALLS) == [("get_weather", None, False)]
        assert lab.rows("SELECT relation, reason FROM doubts WHERE column_name IS NULL") == [
            ("tool_calls", "asked-not-seen")
        ]
        assert status(lab, type="tool_not_invoked", tool="get_weather") is Status.INCONCLUSIVE
        assert status(lab, type="tool_call_count", max=1) is Status.PASS
        assert lab.rows("SELECT relation, name, reason FROM gaps WHERE relation = 'errors'") == [
            ("errors", "get_weather", "asked-not-seen")
        ]

    def test_a_tool_that_the_request_makes_a_model_call_is_the_form_of_an_answer(self) -> None:
        forced = {"openinference.span.kind": "LLM", "llm.invocation_parameters": json.dumps(
            {"tool_choice": {"type": "function", "function": {"name": "get_weather"}}}
        )}  # fmt: skip
        lab = self.told(scope="openinference.instrumentation.openai", **forced)

        assert [certain for *_, certain in lab.rows(CALLS)] in ([], [False])


class TestAnExecution:
    """It is an attempt, whatever came of it."""

    def test_in_a_trace_of_its_own_is_of_the_agent_whose_model_asked_for_it(self) -> None:
        asked, ran = {OUTPUT: asks(("c1", "dig", {}))}, tool("t", at=20, tool="dig", **{"gen_ai.tool.call.id": "c1"})
        lab = Lab().put(agent("a"), chat("m", "a", at=1, **asked), replace(ran, trace=f"{2:032x}"))

        assert lab.rows("SELECT agent_span_id, turn FROM tool_calls") == [(hex_id("a"), 1)]
        assert status(lab, type="tool_call", tool="dig", by_agent="assistant") is Status.PASS

    @pytest.mark.parametrize(
        ("failure", "more", "outcome"),
        [
            ({"exception.type": "ValueError"}, {}, "error"),
            ({"exception.type": "asyncio.exceptions.CancelledError"}, {}, None),
            ({"exception.type": "ValueError"}, {"pydantic_ai.tool.failure_stage": "validation"}, "error"),
        ],
        ids=["failed", "cancelled", "refused"],
    )
    def test_that_did_not_end_well(self, failure: dict[str, Any], more: dict[str, Any], outcome: str | None) -> None:
        asked = {OUTPUT: asks(("c1", "get_weather", {})), **OFFERED}
        ran = tool("t", "a", at=20, **{"gen_ai.tool.call.id": "c1", "gen_ai.tool.call.arguments": "{}", **more})
        failed = replace(ran, error="it failed", events=[("exception", failure)])
        lab = as_written_by("pydantic-ai", agent("a"), chat("m", "a", at=1, **asked), failed)

        assert lab.rows(CALLS) == [("get_weather", outcome, True)]
        assert lab.totals("tool_calls") == (1,)

    @pytest.mark.parametrize(("asked", "given"), [('{"city": "Oslo"}', '{"city": "Oslo"}'), ('{"city": "Os', None)])
    def test_what_it_was_given_for_a_broken_text_is_unknown(self, asked: str, given: str | None) -> None:
        """Frameworks mend it, or pass the whole text as one argument; where the span of the execution says it, it holds."""
        part = {"type": "tool_call", "id": "c1", "name": "get_weather", "arguments": asked}
        spans = [agent("a"), chat("m", "a", at=1, **{OUTPUT: json.dumps([{"role": "assistant", "parts": [part]}])})]
        stated = {"gen_ai.tool.call.id": "c1", "gen_ai.tool.call.arguments": '{"city": "Rome"}'}
        lab = Lab().put(*spans, tool("t", "a", at=20, **{"gen_ai.tool.call.id": "c1"}))
        lab.put(*spans, tool("t", "a", at=20, **stated), run="stated")

        arguments = "SELECT arguments FROM tool_calls WHERE run_id = :run"
        assert (lab.rows(arguments), lab.rows(arguments, "stated")) == ([(given,)], [('{"city": "Rome"}',)])

    @pytest.mark.parametrize(
        ("given", "arguments"), [('"Oslo"', None), ("7", None), ('{"city": "Oslo"}', '{"city": "Oslo"}')]
    )
    def test_what_it_got_for_a_text_is_the_frameworks_choice(self, given: str, arguments: str | None) -> None:
        """Smolagents passes it by position to a tool that takes its arguments by name."""
        asked = {OUTPUT: asks(("c1", "get_weather", json.loads(given))), **OFFERED}
        ran = tool("t", "a", at=20, **{"gen_ai.tool.call.id": "c1", "gen_ai.tool.call.arguments": given})
        lab = Lab().put(agent("a"), chat("m", "a", at=1, **asked), ran)

        assert lab.rows("SELECT outcome, arguments FROM tool_calls") == [("ok", arguments)]

    def test_a_result_like_a_failure_leaves_open_how_it_ended(self) -> None:
        """Where nothing is known of the framework; else its dialect says what a failure is."""
        said = {"gen_ai.tool.call.result": "Error: no such city"}
        known, unknown = as_written_by("strands.telemetry.tracer", tool("t", **said)), Lab().put(tool("t", **said))

        assert [lab.rows("SELECT outcome FROM tool_calls") for lab in (known, unknown)] == [[("ok",)], [(None,)]]


ONE_A_TOOL = {"llm.tools.0.tool.json_schema": json.dumps(WEATHER)}
ONE_A_FIELD = {
    "llm.request.functions.0.name": "get_weather",
    "llm.request.functions.0.parameters": json.dumps(WEATHER["parameters"]),
}


class TestOffers:
    """They are read from one text, and from attributes that number them."""

    @pytest.mark.parametrize("name", ["get_weather", "get_wether"])
    @pytest.mark.parametrize("offered", [ONE_A_TOOL, ONE_A_FIELD], ids=["one a tool", "one a field"])
    def test_numbered(self, offered: dict[str, str], name: str) -> None:
        seen = self.of_program(offered, name)

        assert (len(seen.rows(CALLS)), len(seen.rows(REQUESTS))) == ((1, 0) if name == "get_weather" else (0, 1))

    def test_of_which_one_was_dropped(self) -> None:
        """An SDK drops attributes past its limit: that a tool is not among the rest says nothing."""
        rest = {key.replace(".0.", ".1."): value for key, value in ONE_A_TOOL.items()}

        assert self.of_program(rest, "get_wether").rows(CALLS) == [("get_wether", None, True)]

    def of_program(self, offered: dict[str, str], name: str) -> Lab:
        """A program asks a model twice; the second request carries the result of the call that the first answer asked for."""
        if "llm.request.functions.0.name" in offered:
            scope, kind = "opentelemetry.instrumentation.openai.v1", {"llm.request.type": "chat"}
            first, second = {OUTPUT: asks(("c1", name, {}))}, {INPUT: answered("c1", "so"), OUTPUT: says("no")}
        else:
            scope, kind = "openinference.instrumentation.openai", {"openinference.span.kind": "LLM"}
            written, read = "llm.output_messages.0.message", "llm.input_messages.0.message"
            call = f"{written}.tool_calls.0.tool_call"
            first = {f"{call}.id": "c1", f"{call}.function.name": name, f"{call}.function.arguments": "{}"}
            second = {f"{read}.role": "tool", f"{read}.tool_call_id": "c1", f"{read}.content": "so"}
        return as_written_by(
            scope, chat("m", at=1, **kind, **offered, **first), chat("n", at=10, **kind, **offered, **second)
        )


@pytest.mark.parametrize(
    ("client", "reason"), [("pydantic-ai", "not-offered"), ("langchain+openinference", "not-offered")]
)
def test_recorded_frameworks(client: str, reason: str) -> None:
    """The model asks for `get_weather`; the agent has `get_forecast` alone."""
    with Session.open() as session:
        session.load_recordings([RECORDINGS / client / "unknown_tool"], Grouping("one", "r"))
        calls = session.query("SELECT name, outcome FROM tool_calls").rows
        requests = session.query("SELECT name, reason FROM tool_requests").rows

    assert (calls, requests) == ([("get_forecast", "ok")], [("get_weather", reason)])


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
            session.load_recordings([recording], Grouping("one", "r"))
            return session.query("SELECT name, outcome FROM tool_calls ORDER BY start_ns, call_no").rows

    RAN = (("get_weather", "ok"), ("get_weather", "ok"))

    def test_its_own_spans_say_what_failed(self, tmp_path: Path) -> None:
        assert self.seen(tmp_path, "messages")[-3:] == [*self.RAN, ("lookup_order", "error")]

    def test_without_them_the_results_in_messages_do(self, tmp_path: Path) -> None:
        assert self.seen(tmp_path, "autogen-core")[-3:] == [*self.RAN, ("lookup_order", "error")]

    def test_without_both_it_is_unknown(self, tmp_path: Path) -> None:
        seen = self.seen(tmp_path, "autogen-core", "messages")

        assert seen[-3:] == [("get_weather", None), ("get_weather", None), ("lookup_order", None)]


@pytest.mark.parametrize(
    ("scope", "ended", "verdict"),
    [("pydantic-ai", True, Status.PASS), ("pydantic-ai", False, Status.INCONCLUSIVE), ("somebody's own", True, Status.INCONCLUSIVE)],
)  # fmt: skip
def test_what_was_asked_for_in_silence_was_not_run_where_every_execution_has_a_span(
    scope: str, ended: bool, verdict: Status
) -> None:
    """The agent has ended; whether it ended in a failure stays open."""
    asking = chat("m", "a" if ended else "", at=1, **{"gen_ai.response.finish_reasons": ["tool_calls"]})
    lab = as_written_by(scope, agent("a"), asking)

    assert status(lab, type="tool_not_invoked", tool="pay") is verdict
    assert status(lab, type="no_span_errors") is Status.INCONCLUSIVE


def test_where_every_request_to_a_model_failed_no_tool_was_asked_for() -> None:
    given = ("response.finish_reasons", "usage.input_tokens", "usage.output_tokens", "response.model")
    failed = chat("m", at=1, **{f"gen_ai.{key}": None for key in given})
    failed.error = "500"

    assert status(as_written_by(SDK, failed), type="tool_not_invoked", tool="pay") is Status.PASS


def test_requests_of_one_answer_under_one_id_keep_their_names_where_messages_alone_tell_of_them() -> None:
    first, second = (
        {OUTPUT: asks(("c1", "get_weather", {}), ("c1", "get_weather", {}))},
        {INPUT: answered("c1", "done")},
    )
    lab = as_written_by(SDK, chat("m", at=1, **first), chat("n", at=51, **second))

    assert [name for name, *_ in lab.rows(CALLS)] == ["get_weather", "get_weather"]
    assert status(lab, type="tool_not_invoked", tool="delete_all") is Status.PASS


def test_how_an_execution_ended_whose_id_other_requests_have_is_open() -> None:
    """An SDK that keeps one span for an id writes into it how another call ended."""
    first = {OUTPUT: asks(("c1", "get_weather", {}), ("c1", "get_weather", {}))}
    ran = replace(tool("t", at=7, **{"gen_ai.tool.call.id": "c1"}), error="cannot be refunded")
    lab = Lab().put(chat("m", at=1, **first), ran)

    assert ("get_weather", None, True) in lab.rows(CALLS)
    assert status(lab, type="tool_call", tool="get_weather", status="error") is Status.INCONCLUSIVE
    assert status(lab, type="tool_was_called", tool="get_weather") is Status.PASS


def test_what_a_tool_got_for_a_broken_text_is_the_program_s_choice() -> None:
    """A result tells that the call was carried out, not what of the arguments the program made."""
    broken = [
        {"role": "assistant", "parts": [{"type": "tool_call", "id": "c1", "name": "add", "arguments": '{"a": 1'}]}
    ]
    first, second = {OUTPUT: json.dumps(broken)}, {INPUT: answered("c1", "2"), OUTPUT: says("so")}
    lab = as_written_by(SDK, chat("m", at=1, **first), chat("n", at=10, **second))

    assert lab.rows("SELECT name, arguments, certain FROM tool_calls WHERE run_id = :run") == [("add", None, True)]
