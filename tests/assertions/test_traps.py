"""The traps of assertions.md §10 as the queries of single types meet them, by number, on both engines.

All 32 of them are set for the whole program in tests/traps.
"""

import random

import pytest
from assertion_facts import WITH_GAPS, evidence_of, join, outcomes_of, rows_of

from clawtrace.assertions.registry import parse_assertion
from clawtrace.verdicts.asking.ask import ask

NEGATIVE = [
    {"type": "tool_not_invoked", "tool": "rm"},
    {"type": "tool_not_permitted", "allowed_tools": ["read"]},
    {"type": "model_used", "not_expected": "opus"},
    {"type": "model_used", "only": ["gpt-4o"]},
    {"type": "no_span_errors"},
    {"type": "llm_call_count", "max": 3},
    {"type": "trace_token_budget", "max_total_tokens": 10},
    {"type": "trace_cost", "max_usd": 1},
    {"type": "trace_duration", "max_ms": 1000},
    {"type": "tool_call", "tool": "rm", "count": {"max": 0}},
    {"type": "tool_sequence", "mode": "strict", "expected": []},
    {"type": "tool_not_called", "tool": "rm"},
    {"type": "tool_call_count", "max": 3},
    {"type": "token_budget", "max_total_tokens": 10},
    {"type": "per_span_budget", "max_tokens": 10},
    {"type": "no_loops"},
    {"type": "not_ran", "pattern": "rm"},
    {"type": "run_count", "pattern": "rm", "max": 3},
]
# These need more than a model call to be answered at all: without it they are unknown.
DEMANDING = [
    {"type": "no_secret_leak"},
    {"type": "span_duration", "max_ms": 1000},
    {"type": "final_response", "not_contains": "sorry"},
    {"type": "agent_exit_code"},
]
KNOWN = {"request_model": "gpt-4o", "response_model": "gpt-4o", "input_tokens": 1, "output_tokens": 1, "cost_usd": 0.1}


def one(facts, assertion, described, run_id="r1"):
    """The outcome of one assertion for one run; None when there is no trace."""
    facts.load(rows_of(run_id, described))
    return next(iter(outcomes_of(ask(facts, parse_assertion(assertion), [run_id]))), None)


@pytest.mark.parametrize("assertion", NEGATIVE, ids=lambda written: written["type"])
def test_t2_a_negative_question_is_never_answered_by_an_empty_trace(facts, assertion):
    """T2: without a trace there is no answer; with a good one the answer is yes, and open as long as the run is."""
    runs = {
        "empty": {"trace": False},
        "good": {"llm": [KNOWN]},
        "open": {"llm": [KNOWN], "record": {"closed_by": None}},
    }
    facts.load(join(rows_of(run_id, described) for run_id, described in runs.items()))
    found = outcomes_of(ask(facts, parse_assertion(assertion), list(runs)))

    assert {outcome.run_id: outcome.holds for outcome in found} == {"good": True, "open": None}


@pytest.mark.parametrize("assertion", DEMANDING, ids=lambda written: written["type"])
def test_t2_what_was_never_recorded_is_unknown(facts, assertion):
    """T2: a trace that does not hold what is asked about answers nothing, and names what is missing."""
    untraced = one(facts, assertion, {"trace": False})
    found = one(facts, assertion, {"llm": [KNOWN]})

    assert untraced is None or untraced.holds is None
    assert found.holds is None
    assert found.missing


@pytest.mark.parametrize("assertion", NEGATIVE, ids=lambda written: written["type"])
def test_t2_a_negative_question_is_never_answered_by_what_cannot_be_recorded(facts, assertion):
    """T2: where every fact that the question needs cannot be known, the answer is unknown."""
    gaps = [{"relation": name, "reason": "tool-calls-not-recorded"} for name in WITH_GAPS]
    found = one(facts, assertion, {"gaps": gaps, "totals": {"last_end_ns": None}})

    assert found.holds is None
    assert found.missing


def test_t3_the_order_in_which_spans_came_never_matters(facts):
    """T3: rows in any order, the same answer; equal timestamps are concurrent, whatever the clock's resolution."""
    tools = [
        {"name": "a", "call_no": 1, "start_ns": 5, "end_ns": 5},
        {"name": "b", "call_no": 2, "start_ns": 5, "end_ns": 5},
        {"name": "c", "call_no": 3, "start_ns": 5, "end_ns": 9},
        {"name": "d", "call_no": 4, "start_ns": 9, "end_ns": 9},
    ]
    wanted = {("a", "b"): True, ("b", "a"): True, ("c", "a"): True, ("c", "d"): True, ("d", "c"): False}
    for seed in range(4):
        random.Random(seed).shuffle(tools)
        for expected, holds in wanted.items():
            found = one(facts, {"type": "tool_sequence", "expected": list(expected)}, {"tools": tools})

            assert found.holds is holds, (expected, tools)


def test_t10_multiplicity_counts(facts):
    """T10: `[a, a]` needs two calls, in every mode."""
    for mode in ("contains", "ordered", "strict"):
        written = {"type": "tool_sequence", "mode": mode, "expected": ["a", "a"]}

        assert one(facts, written, {"tools": ["a"]}).holds is False
        assert one(facts, written, {"tools": ["a", "a"]}).holds is True


def test_t11_unpriced_calls_are_neither_free_nor_a_failure(facts):
    """T11: half of the calls unpriced is undecided, all of them only warns; neither passes."""
    written = {"type": "trace_cost", "max_usd": 1}
    half = one(facts, written, {"llm": [KNOWN, "in-house"]})
    none = one(facts, written, {"llm": ["in-house"]})

    assert (half.holds, half.absent) == (None, False)
    assert (none.holds, none.absent) == (None, True)


def test_t14_a_blocked_call_is_an_attempt_and_no_success(facts):
    """T14: each type says what a blocked call is to it."""
    run = {"tools": [{"name": "rm", "outcome": "blocked"}]}
    wanted = [
        ({"type": "tool_not_invoked", "tool": "rm"}, False),
        ({"type": "tool_not_invoked", "tool": "rm", "count_blocked": False}, True),
        ({"type": "tool_not_called", "tool": "rm"}, False),
        ({"type": "tool_not_called", "tool": "rm", "count_blocked": False}, True),
        ({"type": "tool_not_permitted", "allowed_tools": []}, False),
        ({"type": "tool_not_permitted", "allowed_tools": [], "count_blocked": False}, True),
        ({"type": "tool_call_count", "tool": "rm", "count": 1}, True),
        ({"type": "tool_was_called", "tool": "rm"}, True),
        ({"type": "tool_call", "tool": "rm", "status": "ok"}, False),
        ({"type": "tool_call", "tool": "rm", "status": "blocked"}, True),
        ({"type": "tool_sequence", "expected": ["rm"]}, True),
    ]
    for written, holds in wanted:
        assert one(facts, written, run).holds is holds, written


def test_t15_a_failed_call_is_not_called_done(facts):
    """T15: `status: ok` does not hold of a failed call, and `tool_was_called` says that it failed."""
    run = {"tools": [{"name": "send", "outcome": "error"}]}
    called = {"type": "tool_was_called", "tool": "send"}

    assert one(facts, {"type": "tool_call", "tool": "send", "status": "ok"}, run).holds is False
    assert "(1 failed)" in parse_assertion(called).explain(one(facts, called, run))


def test_t15_a_call_that_was_only_asked_for_is_not_done(facts):
    """T15: a request that nothing carried out satisfies nothing."""
    run = {"requests": ["send"]}
    for written in (
        {"type": "tool_was_called", "tool": "send"},
        {"type": "tool_call", "tool": "send"},
        {"type": "tool_sequence", "expected": ["send"]},
        {"type": "tool_sequence", "mode": "contains", "expected": ["send"]},
    ):
        assert one(facts, written, run).holds is False, written


def test_t2_a_call_without_a_name_may_be_the_one_that_is_asked_about(facts):
    """T2: it is neither found nor excluded."""
    for written in (
        {"type": "tool_not_invoked", "tool": "rm"},
        {"type": "tool_not_called", "tool": "rm"},
        {"type": "tool_not_permitted", "allowed_tools": ["read"]},
        {"type": "tool_was_called", "tool": "rm"},
        {"type": "tool_call_count", "tool": "rm", "count": 0},
        {"type": "tool_sequence", "mode": "contains", "expected": ["rm"]},
    ):
        found = one(facts, written, {"tools": [None]})
        assert (found.holds, found.missing.partition(".")[0]) == (None, "tool_calls"), written


def test_t23_text_that_looks_like_a_call_is_none(facts):
    """T23: a tool's name in arguments, results or errors of another tool is no call."""
    run = {"tools": [{"name": "echo", "arguments": '{"text": "tool=rm"}', "result": "tool=rm", "error": "rm"}]}

    assert one(facts, {"type": "tool_not_invoked", "tool": "rm"}, run).holds is True
    assert one(facts, {"type": "tool_not_called", "tool": "rm"}, run).holds is True
    assert one(facts, {"type": "tool_call_count", "tool": "rm", "count": 0}, run).holds is True
    assert one(facts, {"type": "tool_was_called", "tool": "rm"}, run).holds is False


def test_t28_a_text_that_was_redacted_is_not_known_to_be_absent(facts):
    """T28: a secret that redaction took out of the answer does not make "contains no secret" pass."""
    run = {"record": {"final_output": "your key: [REDACTED:openai:0123abcd]"}}

    assert one(facts, {"type": "final_response", "not_contains": "sk-live-1"}, run).holds is None
    assert one(facts, {"type": "final_response", "equals": "your key: none"}, run).holds is None


def test_t30_everything_over_a_budget_is_reported_however_much_it_is(facts):
    """T30: the sentence and `actual` count every violating span; evidence shows the first of them."""
    written = {"type": "per_span_budget", "max_tokens": 1}
    assertion = parse_assertion(written)
    outcome = one(facts, written, {"llm": [KNOWN] * 25})

    assert assertion.actual(outcome)["over"] == 25
    assert "25 spans used more than 1 tokens" in assertion.explain(outcome)


def test_t29_a_run_is_not_the_run_whose_id_it_begins_with(facts):
    """T29: `r1` is answered from `r1` alone, with `r10` next to it in the store and among the selected runs."""
    facts.load(join([rows_of("r1", {"tools": ["read"]}), rows_of("r10", {"tools": ["rm"]})]))
    written = {"type": "tool_not_permitted", "allowed_tools": ["read"], "run_id": "r1"}
    found = {outcome.run_id: outcome for outcome in outcomes_of(ask(facts, parse_assertion(written), ["r1", "r10"]))}

    assert found["r1"].holds is True
    assert (found["r10"].holds, found["r10"].missing) == (None, "runs.run_id")


def test_an_answer_does_not_depend_on_the_runs_asked_about_together(facts):
    """One run alone, and among others that would pass or fail it, is answered alike."""
    runs = {"r1": {"tools": ["a", "b"]}, "r2": {"tools": ["b", "a"]}, "r3": {"tools": ["a"]}}
    facts.load(join(rows_of(run_id, run) for run_id, run in runs.items()))
    assertion = parse_assertion({"type": "tool_sequence", "expected": ["glob:a*", "glob:b*"]})
    together = {outcome.run_id: outcome.holds for outcome in outcomes_of(ask(facts, assertion, list(runs)))}

    assert together == {"r1": True, "r2": False, "r3": False}
    for run_id, holds in together.items():
        (alone,) = outcomes_of(ask(facts, assertion, [run_id]))
        assert alone.holds is holds


def test_evidence_names_the_span_and_is_cut_to_a_readable_length(facts):
    """A piece of evidence carries trace, span, name and start, and long text is cut."""
    run = {
        "tools": [{"name": "rm", "span_id": "p1", "outcome": "error", "error": "x" * 5000}] + ["rm"] * 20,
        "spans": [{"trace_id": "t" * 32, "name": "execute_tool rm", "start_ns": 77, "kind": "tool"}],
    }
    facts.load(rows_of("r1", run))
    evidence = evidence_of(ask(facts, parse_assertion({"type": "tool_not_invoked", "tool": "rm"}), ["r1"]), ["r1"])[
        "r1"
    ]

    assert (evidence[0].trace_id, evidence[0].span_id, evidence[0].name, evidence[0].start_ns) == (
        "t" * 32, "p1", "execute_tool rm", 77,
    )  # fmt: skip
    assert len(evidence[0].why) == 300
    assert len(evidence) == 10
