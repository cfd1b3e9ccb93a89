"""What a reason against completeness counts and names, and what only looks like one (spec: span-model.md §3)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from building import Lab, S, agent, answered, asks, chat, hex_id, says, tool

from clawtrace.model.raw import LogBatch, Receipt, SpanBatch
from clawtrace.model.run import ClosedBy, RunRecord
from clawtrace.pricing import Pricing

ASKING = {"gen_ai.output.messages": asks(("call_9", "danger", {}))}


def reasons(lab: Lab) -> dict[str, dict[str, Any]]:
    """The reasons by their codes."""
    (text,) = lab.rows("SELECT incomplete_because FROM runs WHERE run_id = :run")[0]
    return {reason["code"]: reason for reason in json.loads(text)}


def test_every_orphan_is_counted_and_the_first_five_are_named(lab: Lab) -> None:
    """The line for the project's file names all of them, each name once."""
    names = ["one", "two", "three", "four", "five", "six", "six"]
    lab.put(agent("a"), *(S(f"s{n}", f"lost{n}", n + 1, name=name) for n, name in enumerate(names)))
    reason = reasons(lab)["missing_parent"]

    assert reason["message"] == (
        "the parent of 7 spans was never received: `one`, `two`, `three`, `four`, `five` and 1 more. If it is never "
        'exported, declare it in clawtrace.yaml: trace: {parent_not_exported: ["five", "four", "one", "six", "three", "two"]}'
    )
    assert reason["span_ids"] == [hex_id(f"s{n}") for n in range(5)]


def test_five_names_are_all_named(lab: Lab) -> None:
    lab.put(agent("a"), *(S(f"s{n}", "a", n + 1, 0, name=f"n{n}") for n in range(5)))

    assert reasons(lab)["open_span"]["message"] == "5 spans never ended: `n0`, `n1`, `n2`, `n3`, `n4`."


@pytest.mark.parametrize(("flags", "reasons"), [(0x300, []), (0x200, ["missing_parent"]), (0x100, ["missing_parent"])])
def test_a_parent_is_remote_only_where_the_flags_know_it(lab: Lab, flags: int, reasons: list[str]) -> None:
    """Bit 9 says nothing without bit 8, which says that it is known."""
    lab.put(S("x", "lost", 1, flags=flags))

    assert lab.reasons() == reasons


def test_a_trace_state_records_sampling_in_the_words_of_opentelemetry(lab: Lab) -> None:
    """A threshold or a p-value that left others out, wherever its member stands; no other vendor's words."""
    sampled = [
        "ot=th:8", "ot=th:00f", "ot=p:2;r:5", "ot=rv:abcdef01234567;th:c", "vendor=x, ot=th:8", "vendor=x ,\tot=th:8",
    ]  # fmt: skip
    others = [
        "ot=p:0", "ot=th:000", "ot=rv:abcdef01234567,other=th:8", "ot=rv:abcdef01234567,other=x;th:8", "robot=th:8", "ot=path:8",
        "ot=rv:abcdef01234567;xth:8", "ot=xp:2", "vendor=p:2",
    ]  # fmt: skip
    lab.put_each({state: (agent("a"), S("s", "a", 1, state=state)) for state in sampled + others})

    assert {state: lab.reasons(state) for state in sampled} == {key: ["sampled"] for key in sampled}
    assert {state: lab.reasons(state) for state in others} == {state: [] for state in others}


def test_what_the_receiver_turned_away_is_added_up_with_its_causes(lab: Lab) -> None:
    """Per kind; a request of which all was taken is no reason."""
    lab.put(agent("a"))
    no = lab.store.run_no("r")
    receipts = [
        Receipt(no, 1, 1, "grpc", "traces", rejected=1, reason="span id of 3 bytes"),
        Receipt(no, 2, 1, "http", "traces", rejected=2, reason="span id of 3 bytes"),
        Receipt(no, 3, 1, "http", "traces", accepted=7),
    ]
    lab.store.commit(SpanBatch(), LogBatch(), receipts, [])

    assert {code: reason["message"] for code, reason in reasons(lab).items()} == {
        "rejected": "3 of its items were rejected: span id of 3 bytes."
    }


def test_a_request_whose_agent_never_ended_is_unanswered(lab: Lab) -> None:
    """Only the end of an agent around it says that nothing was lost after it."""
    lab.put(agent("a", to=0), chat("m", "a", at=1, **ASKING))

    assert lab.reasons() == ["open_span", "unanswered_tool_call"]


def test_the_end_of_an_agent_next_to_a_request_says_nothing_of_it(lab: Lab) -> None:
    lab.put(S("main", "", 0, 60), agent("a", "main", at=1, to=9), chat("m", "main", at=20, **ASKING))

    assert lab.reasons() == ["unanswered_tool_call"]


@pytest.mark.parametrize(("at", "reasons"), [(2, ["unanswered_tool_call"]), (5, []), (9, [])])
def test_an_execution_answers_what_was_asked_before_it(lab: Lab, at: int, reasons: list[str]) -> None:
    """One that began at the very start of the call may be its answer: clocks are coarse."""
    lab.put(S("main", "", 0, 0), tool("t", "main", at=at), chat("m", "main", at=5, **ASKING))

    assert lab.reasons() == ["open_span", *reasons]


def test_the_end_of_the_program_answers_what_was_asked_in_it(lab: Lab) -> None:
    """A root around several calls is a whole program; one around a single call may be a step of one."""
    lab.put(S("main", "", 0, 60), tool("t", "main", at=2), chat("m", "main", at=5, **ASKING))

    assert lab.reasons() == []


@pytest.mark.parametrize(("came_back", "reasons"), [(False, ["unanswered_tool_call"]), (True, [])])
def test_each_conversation_of_bare_model_calls_has_its_end(lab: Lab, came_back: bool, reasons: list[str]) -> None:
    """While a tool of the first conversation was at work, a second one began, and ended."""
    before, done = {"gen_ai.input.messages": answered("call_2", "21")}, {"gen_ai.output.messages": says("Done.")}
    lab.put(
        chat("m", at=1, **{"gen_ai.output.messages": asks(("call_1", "ask_researcher", {}))}),
        chat("r", at=10, **{"gen_ai.output.messages": asks(("call_2", "get_weather", {}))}),
        chat("s", at=20, **before, **done),
        *([chat("n", at=30, **{"gen_ai.input.messages": answered("call_1", "21")}, **done)] if came_back else []),
    )

    assert lab.reasons() == reasons


def test_a_model_call_that_failed_asked_for_nothing(lab: Lab) -> None:
    failed = chat("m", at=1, **{"gen_ai.response.finish_reasons": ["tool_calls"]})
    failed.error = "500"
    lab.put(failed)

    assert lab.reasons() == []


def test_each_conversation_has_a_last_model_call(lab: Lab) -> None:
    """That of one was answered, those of two others were not; they are named in the order of their conversations."""
    second, third = f"{2:032x}", f"{3:032x}"
    lab.put(
        S("r1", "", 0, 60),
        chat("m1", "r1", at=1, **ASKING),
        tool("t", "r1", at=9),
        S("r3", "", 1, 60, trace=third),
        S("r2", "", 2, 60, trace=second),
        *(_in(second, chat("m2", "r2", at=30, **ASKING))),
        *(_in(third, chat("m3", "r3", at=20, **ASKING))),
    )

    assert reasons(lab)["unanswered_tool_call"]["span_ids"] == [hex_id("m3"), hex_id("m2")]


def _in(trace: str, *spans: S) -> tuple[S, ...]:
    for span in spans:
        span.trace = trace
    return spans


@pytest.mark.parametrize(
    ("name", "errors", "reasons"),
    [
        ("Step 1", ["AgentGenerationError: no model", None], []),
        ("Step 1", [None, "AgentGenerationError: no model"], []),
        ("Step 1", ["ValueError", None], ["missing_parent"]),
        ("Step 1", [None, None], ["missing_parent"]),
        ("Plan 1", ["AgentGenerationError: no model", None], ["missing_parent"]),
    ],
)
def test_a_dialect_exempts_orphans_only_where_one_of_them_failed_as_it_says(
    lab: Lab, name: str, errors: list[str | None], reasons: list[str]
) -> None:
    """Smolagents does not export the span of a run whose model failed; of any other run a missing parent is lost."""
    steps = [
        S(f"s{n}", "lost", n, n + 1, name, {"openinference.span.kind": "CHAIN"}, error=error)
        for n, error in enumerate(errors)
    ]
    for step in steps:
        step.scope = "openinference.instrumentation.smolagents"
    lab.put(*steps)

    assert lab.rows("SELECT DISTINCT dialect FROM spans") == [("openinference-smolagents",)]
    assert lab.reasons() == reasons


def test_what_rules_disagreed_about_is_said_of_its_run_alone(lab: Lab) -> None:
    lab.put(agent("a"))
    lab.put(agent("b"), run="other")
    lab.store.put_conflicts(lab.store.run_no("r"), ["the header names another run", "so does the path"])

    lab.facts.ensure(["r", "other"])
    of_run = lab.rows("SELECT run_id, diagnostics FROM fact_state ORDER BY run_id")

    assert [(run_id, json.loads(said)) for run_id, said in of_run] == [
        ("other", []),
        ("r", ["the header names another run", "so does the path"]),
    ]


def test_what_only_the_runner_knows_counts(lab: Lab) -> None:
    """Its own sentences are reported as they are; our time limit goes before the signal by which it ended the agent."""
    record = RunRecord(
        "r", "r", closed_by=ClosedBy.EXIT, cut_off="2 processes were ended.", lacking="a line could not be read."
    )
    lab.put(agent("a"), record=record)

    assert {code: reason["message"] for code, reason in reasons(lab).items()} == {
        "cut_off": "2 processes were ended.",
        "lacking": "a line could not be read.",
    }


class TestRun:
    """The row of the relation `runs`: the runner's word goes before the spans' about times, after it about the answer."""

    COLUMNS = "SELECT started_ns, ended_ns, final_output FROM runs"

    def test_from_the_runner(self, lab: Lab) -> None:
        record = RunRecord("r", "r", closed_by=ClosedBy.EXIT, started_ns=0, ended_ns=0, final_output="printed")
        lab.put(agent("a", at=1), chat("m", "a", at=2), record=record)

        assert lab.rows(self.COLUMNS) == [(0, 0, "printed")]

    def test_from_the_spans(self, lab: Lab) -> None:
        record = RunRecord("r", "r", closed_by=ClosedBy.EXIT, final_output="printed")
        lab.put(agent("a", at=1), chat("m", "a", at=2, **{"gen_ai.output.messages": says("Done.")}), record=record)

        assert lab.rows(self.COLUMNS) == [(1_000_000, 100_000_000, "Done.")]

    def test_of_a_run_without_spans_nothing_is_whole(self, lab: Lab) -> None:
        lab.store.put_record(RunRecord("r", "r", closed_by=ClosedBy.EXIT, final_output="printed"))

        assert lab.rows("SELECT complete, incomplete_because, final_output FROM runs") == [(None, "[]", "printed")]

    def test_of_a_killed_run_without_spans_it_is_known_that_it_is_not(self, lab: Lab) -> None:
        lab.store.put_record(RunRecord("r", "r", closed_by=ClosedBy.EXIT, ended_by_signal=9))

        assert lab.rows("SELECT complete FROM runs") == [(False,)]
        assert lab.reasons() == ["killed"]


def test_a_recorded_cost_that_contradicts_the_price_list_is_remarked() -> None:
    """By more than half of what the tokens cost; less than it is no contradiction where cached tokens are unknown."""
    costs = [
        (0.009, 0, True),
        (0.0055, 0, False),
        (0.004, 0, False),
        (0.0024, 0, True),
        (0.0024, None, False),
        (0.009, None, True),
    ]
    lab = Lab(Pricing.from_mapping({"m": {"input_per_1m": 4.0, "output_per_1m": 10.0}}))
    call = {
        "openinference.span.kind": "LLM", "llm.model_name": "m", "llm.token_count.prompt": 1000, "llm.token_count.completion": 100,
    }  # fmt: skip
    for cost, cached, _ in costs:
        more = {} if cached is None else {"llm.token_count.prompt_details.cache_read": cached}
        lab.put(S("c", "", 1, attrs=call | more | {"llm.cost.total": cost}), run=f"{cost} {cached}")
    lab.facts.ensure([f"{cost} {cached}" for cost, cached, _ in costs])

    for cost, cached, is_noted in costs:
        (said,) = lab.rows("SELECT diagnostics FROM fact_state WHERE run_id = :run", f"{cost} {cached}")[0]
        assert lab.totals("cost_high", run=f"{cost} {cached}") == (cost,)
        assert (f"recorded a cost of {cost} USD, while its tokens cost 0.005 USD" in said) is is_noted, (cost, cached)
