"""A closed run is complete when no reason against it is known; each reason of span-model.md §3, and what is none."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from building import Lab, S, agent, asks, chat, hex_id, tool

from clawtrace.model.raw import LogBatch, Receipt, SpanBatch
from clawtrace.model.run import ClosedBy, RunRecord


def test_a_whole_trace_is_complete(lab: Lab) -> None:
    lab.put(agent("a"), chat("m", "a", at=1))

    assert lab.rows("SELECT complete, incomplete_because, closed_by FROM runs") == [(True, "[]", "recording")]


class TestMissingParents:
    def test_a_local_parent_that_never_came(self, lab: Lab) -> None:
        lab.put(agent("a"), chat("m", "lost", at=1))
        (text,) = lab.rows("SELECT incomplete_because FROM runs")[0]
        (reason,) = json.loads(text)

        assert reason["code"] == "missing_parent"
        assert reason["span_ids"] == [hex_id("m")]
        assert 'trace: {parent_not_exported: ["chat m"]}' in reason["message"]

    def test_one_of_an_agent_that_was_killed_is_not_to_be_declared(self, lab: Lab) -> None:
        """It would have been exported: declared, a lost span would let assertions about absence pass."""
        record = RunRecord("r", "r", closed_by=ClosedBy.EXIT, ended_by_signal=9)
        lab.put(agent("a"), chat("m", "lost", at=1), record=record)
        reasons = json.loads(lab.rows("SELECT incomplete_because FROM runs")[0][0])

        assert [one["code"] for one in reasons] == ["missing_parent", "killed"]
        assert "parent_not_exported" not in reasons[0]["message"]

    def test_a_remote_parent_is_no_reason(self, lab: Lab) -> None:
        root = agent("a", "far")
        root.flags = 0x300
        lab.put(root, chat("m", "a", at=1))

        assert lab.reasons() == []

    def test_the_injected_parent_is_no_reason(self, lab: Lab) -> None:
        record = RunRecord("r", "r", parent_span_id=hex_id("ours"), closed_by=ClosedBy.EXIT)
        lab.put(agent("a", "ours"), record=record)

        assert lab.reasons() == []

    def test_a_project_exempts_by_name_and_every_run_says_so(self) -> None:
        lab = Lab(globs=["invoke_*"])
        lab.put(agent("a", "lost"))

        assert lab.reasons() == []
        assert "invoke_*" in lab.rows("SELECT diagnostics FROM fact_state")[0][0]

    def test_another_name_is_not_exempt(self) -> None:
        lab = Lab(globs=["invoke_*"])
        lab.put(agent("a"), tool("t", "lost", at=1))

        assert lab.reasons() == ["missing_parent"]

    def test_a_cycle_is_cut_and_no_reason(self, lab: Lab) -> None:
        """T16: two spans that name each other as parent, and one that names itself."""
        lab.put(agent("a"), S("x", "y", 1), S("y", "x", 2), S("z", "z", 3))

        assert lab.reasons() == []
        assert "2 spans named a descendant as parent" in lab.rows("SELECT diagnostics FROM fact_state")[0][0]
        assert lab.rows("SELECT count(*) FROM spans") == [(4,)]


def test_an_open_span(lab: Lab) -> None:
    lab.put(agent("a", to=0))

    assert lab.reasons() == ["open_span"]


def test_killed_and_timed_out(lab: Lab) -> None:
    lab.put(agent("a"), run="k", record=RunRecord("k", "k", closed_by=ClosedBy.EXIT, ended_by_signal=9))
    lab.put(
        agent("a"), run="t", record=RunRecord("t", "t", closed_by=ClosedBy.EXIT, ended_by_signal=15, timed_out=True)
    )

    assert lab.reasons("k") == ["killed"]
    assert lab.reasons("t") == ["timed_out"]


@pytest.mark.parametrize(
    ("code", "reasons"), [(137, ["killed"]), (192, ["killed"]), (128, []), (193, []), (3, []), (124, ["timed_out"])]
)
def test_an_exit_code_that_reports_a_signal(lab: Lab, code: int, reasons: list[str]) -> None:
    """A shell that waits for a killed program ends with 128 + the signal's number, and so do container engines."""
    lab.put(agent("a"), record=RunRecord("r", "r", closed_by=ClosedBy.EXIT, agent_exit_code=code))

    assert lab.reasons() == reasons


def test_rejected_and_refused_items(lab: Lab) -> None:
    lab.put(agent("a"))
    no = lab.store.run_no("r")
    receipts = [
        Receipt(no, 1, 1, "grpc", "traces", rejected=1, reason="span id of 3 bytes"),
        Receipt(no, 2, 1, "grpc", "traces", refused=4),
    ]
    lab.store.commit(SpanBatch(), LogBatch(), receipts, [])

    assert lab.reasons() == ["rejected", "refused"]


def test_dropped_attributes(lab: Lab) -> None:
    span = agent("a")
    span.dropped = 3
    lab.put(span)

    assert lab.reasons() == ["dropped"]


ANSWER = json.dumps([{"role": "assistant", "parts": [{"type": "text", "content": "It is warm. " * 100}]}])
LONG = "gen_ai.output.messages"


def test_values_that_the_sdk_cut(lab: Lab) -> None:
    """OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT leaves no mark."""
    values = {
        "JSON that breaks off": ANSWER[:300], "JSON": ANSWER, "shorter than others": ANSWER[:40], "text of a usual limit": "word " * 200,
        "text": "word " * 201, "an id": "a" * 1000, "whole JSON of a usual limit": json.dumps(["word " * 199 + "w"]),
    }  # fmt: skip
    other = replace(agent("a"), attrs={"prompt": "word " * 10})
    lab.put_each({name: (other, chat("m", "a", at=1, **{LONG: value})) for name, value in values.items()})

    cut = {"JSON that breaks off": ["dropped"], "text of a usual limit": ["dropped"]}
    assert {name: lab.reasons(name) for name in values} == {key: [] for key in values} | cut


CHUNK = "gen_ai.content.completion.chunk"


@pytest.mark.parametrize(
    ("events", "reasons"),
    [([(CHUNK, {})] * 2, []), ([(CHUNK, {"n": 1})] * 2, ["dropped"]), ([(CHUNK, {}), ("end", {})], ["dropped"]), ([("step", {})] * 2, ["dropped"]),
     ([], ["dropped"])],
    ids=["say nothing", "say something", "of two kinds", "of no stream", "none kept"],
)  # fmt: skip
def test_dropped_events(lab: Lab, events: list[tuple[str, dict[str, Any]]], reasons: list[str]) -> None:
    """An event for each chunk of a stream, without attributes: more of the kind are no loss."""
    lab.put(replace(chat("m"), events=events, dropped_events=1500))

    assert lab.reasons() == reasons


class TestReusedIds:
    def test_another_span_with_the_same_id(self, lab: Lab) -> None:
        """A program that seeds its random generator makes one id twice; the first span counts."""
        lab.put(agent("a"), tool("t", "a", at=1, tool="read"), tool("t", "a", at=5, tool="delete_all"))

        assert lab.reasons() == ["reused_id"]
        assert lab.rows("SELECT name FROM tool_calls") == [("read",)]

    def test_the_same_span_again_is_a_repetition(self, lab: Lab) -> None:
        lab.put(agent("a"), tool("t", "a", at=1), tool("t", "a", at=1))

        assert lab.reasons() == []

    @pytest.mark.parametrize("places", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
    def test_the_fullest_form_of_a_span_counts(self, lab: Lab, places: tuple[int, ...]) -> None:
        """A Collector that takes attributes out may send what its agent sends as well, and an agent what a span knew half-way."""
        whole = tool("t", "a", at=1, tool="delete_all")
        forms = [whole, replace(whole, name="step", attrs={}), replace(whole, name="step", attrs={}, to=2)]
        lab.put(agent("a"))
        for arrival, place in enumerate(places, 2):
            lab.put(forms[place], arrival=arrival)

        assert lab.rows("SELECT name FROM tool_calls") == [("delete_all",)]
        assert lab.reasons() == []


class TestSampling:
    def test_a_threshold_says_that_others_are_missing(self, lab: Lab) -> None:
        span = agent("a")
        span.state = "vendor=x,ot=th:8;rv:abcdef01234567"
        lab.put(span)

        assert lab.reasons() == ["sampled"]

    def test_a_threshold_of_zero_keeps_everything(self, lab: Lab) -> None:
        span = agent("a")
        span.state = "ot=th:0"
        lab.put(span)

        assert lab.reasons() == []


class TestUnansweredToolCall:
    def test_a_last_request_that_nothing_followed(self, lab: Lab) -> None:
        lab.put(chat("m", at=1, **{"gen_ai.output.messages": asks(("c", "rm", {}))}))

        assert lab.reasons() == ["unanswered_tool_call"]

    def test_known_by_the_finish_reason_alone(self, lab: Lab) -> None:
        lab.put(chat("m", at=1, **{"gen_ai.response.finish_reasons": ["tool_calls"]}))

        assert lab.reasons() == ["unanswered_tool_call"]

    def test_the_end_of_an_enclosing_agent_says_that_nothing_was_lost(self, lab: Lab) -> None:
        lab.put(agent("a"), chat("m", "a", at=1, **{"gen_ai.output.messages": asks(("c", "rm", {}))}))

        assert lab.reasons() == []

    @pytest.mark.parametrize(("error", "reasons"), [("no such tool", []), (None, ["unanswered_tool_call"])])
    def test_so_does_the_failure_of_a_step_around_it(self, lab: Lab, error: str | None, reasons: list[str]) -> None:
        """Also of one whose parent is never exported."""
        step = S("s", "gone", 0, 20, "step 1", error=error)
        lab.put(step, chat("m", "s", at=1, **{"gen_ai.output.messages": asks(("c", "rm", {}))}))

        assert lab.reasons() == ["missing_parent", *reasons]

    def test_an_execution_says_so_too(self, lab: Lab) -> None:
        lab.put(chat("m", at=1, **{"gen_ai.output.messages": asks(("call_t", "rm", {}))}), tool("t", at=9, tool="rm"))

        assert lab.reasons() == []


def test_closed_by_the_trace_timeout(lab: Lab) -> None:
    lab.put(agent("a"), record=RunRecord("r", "r", closed_by=ClosedBy.TIMEOUT))

    assert lab.reasons() == ["trace_timeout"]


def test_an_open_run_is_neither(lab: Lab) -> None:
    lab.put(agent("a"), record=RunRecord("r", "r"))

    assert lab.rows("SELECT complete, incomplete_because FROM runs") == [(None, None)]


def test_a_later_model_call_says_that_the_tool_was_answered(lab: Lab) -> None:
    """Even one that failed: its request could only be written with the tool's result."""
    failed = chat("n", at=9)
    failed.error = "400"
    lab.put(chat("m", at=1, **{"gen_ai.response.finish_reasons": ["tool_calls"]}), failed)

    assert lab.reasons() == []


def test_an_execution_of_another_conversation_answers_nothing(lab: Lab) -> None:
    root = S("main", "", 1, 50)
    last = chat("m", "main", at=2, **{"gen_ai.output.messages": asks(("call_9", "danger", {}))})
    elsewhere = tool("t", at=30, tool="a")
    elsewhere.trace = f"{2:032x}"
    lab.put(root, last, elsewhere)

    assert lab.reasons() == ["unanswered_tool_call"]
