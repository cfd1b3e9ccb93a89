"""Traps 1 to 8: silence, absence, order, repetition, doubled usage, names that resemble, and questions that say nothing."""

from __future__ import annotations

import http.client
import itertools
import json
from urllib.parse import urlsplit

import pytest
from faults import good, lost_last_request
from spoken import agent, model_call, request, tool_call
from trap_runs import Bench, post_agent, sdk_agent

from clawtrace.assertions.registry import parse_assertion
from clawtrace.model.run import RunRecord
from clawtrace.session.session import Session

NEVER = {"type": "tool_not_invoked", "tool": "delete_all"}
CALLED = {"type": "tool_was_called", "tool": "read"}
NEGATIVE = [
    NEVER,
    {"type": "tool_not_called", "tool": "delete_all"},
    {"type": "tool_not_permitted", "allowed_tools": ["search", "bash", "write_file"]},
    {"type": "tool_call_count", "tool": "delete_all", "count": 0},
    {"type": "tool_call", "tool": "delete_all", "count": {"max": 0}},
    {"type": "tool_call_count", "max": 99},
    {"type": "model_used", "not_expected": "opus"},
    {"type": "model_used", "only": ["gpt-4o"]},
    {"type": "no_span_errors"},
    {"type": "no_loops"},
    {"type": "no_secret_leak"},
    {"type": "llm_call_count", "max": 99},
    {"type": "trace_token_budget", "max_total_tokens": 99_999},
    {"type": "token_budget", "max_total_tokens": 99_999},
    {"type": "per_span_budget", "max_tokens": 99_999},
    {"type": "trace_cost", "max_usd": 99},
    {"type": "trace_duration", "max_ms": 99_999},
    {"type": "span_duration", "max_ms": 99_999},
    {"type": "final_response", "not_contains": "sorry"},
    {"type": "not_ran", "pattern": "rm -rf"},
    {"type": "run_count", "pattern": "rm -rf", "max": 0},
    {"type": "span_query", "select": {"tool_name": "delete_all"}, "count": 0},
    {"type": "sql", "select": "SELECT name FROM errors WHERE run_id = :run_id"},
]


@pytest.mark.parametrize(
    ("how", "env"),
    [
        ("nothing_listens", {}),
        ("flush", {"OTEL_SDK_DISABLED": "true"}),
        ("flush", {"OTEL_TRACES_SAMPLER": "always_off"}),
    ],
    ids=["exports elsewhere", "SDK switched off", "nothing sampled"],
)
@pytest.mark.full
def test_t01_an_exporter_that_is_silently_dead(bench: Bench, how, env):
    """The agent ends well, no span arrives: everything is skipped, exit 3, and the hint says what to look at."""
    judged = bench.live(
        sdk_agent(how, "delete_all"), NEVER, CALLED, runner={"env": env | {"OTEL_EXPORTER_OTLP_TIMEOUT": "1"}}
    )

    assert judged.exit_code == 3
    assert judged.run["run_status"] == "success"
    assert judged.statuses == ["skip", "skip"]
    assert "Nothing arrived at all" in judged.verdicts[0]["hint"]


@pytest.mark.parametrize("trace", ["empty", "torn", "killed"])
@pytest.mark.full
def test_t02_a_negative_assertion_on_an_empty_or_partial_trace(bench: Bench, trace):
    """Nothing forbidden was seen, and it is unknown what was not seen: no negative question passes."""
    if trace == "killed":
        judged = bench.live(["sh", "-c", 'exec "$@"', "-", *sdk_agent("sigkill", "read")], *NEGATIVE)
    else:
        bench.record("run", *([] if trace == "empty" else lost_last_request(good())))
        judged = bench.judge(*NEGATIVE)

    assert judged.exit_code == 3 if trace != "killed" else judged.exit_code in (1, 3)
    assert set(judged.statuses) <= {"empty": {"skip"}, "torn": {"inconclusive"}}.get(trace, {"inconclusive", "fail"})
    assert judged.statuses[0] in ("skip", "inconclusive")


def test_t02_tools_that_no_span_can_tell_of(bench: Bench):
    """Model calls alone, one of which asked for tools: what was called is unknown, so that nothing was ruled out."""
    calls = [model_call("m1", response__finish_reasons=["tool_calls"]), model_call("m2", at=10)]
    judged = bench.judge_spans(
        calls, NEVER, {"type": "tool_not_permitted", "allowed_tools": ["read"]}, {"type": "no_loops"}
    )

    assert judged.statuses == ["inconclusive"] * 3
    assert judged.exit_code == 3


def test_t03_order_of_arrival_equal_timestamps_and_concurrent_calls(bench: Bench):
    """Any order of the same spans gives the same verdicts; concurrent calls meet either order, ordered ones only theirs."""
    spans = [
        agent("root", "a"), tool_call("t1", "first", "root", 10, 20), tool_call("t2", "left", "root", 30, 60),
        tool_call("t3", "right", "root", 30, 60), tool_call("t4", "last", "root", 70, 80),
    ]  # fmt: skip
    for number, order in enumerate(itertools.permutations(spans)):
        if number % 12 == 0:
            bench.record(f"order{number}", *([span] for span in order))
    judged = bench.judge(
        {"type": "tool_sequence", "mode": "strict", "expected": ["first", "left", "right", "last"]},
        {"type": "tool_sequence", "mode": "strict", "expected": ["first", "right", "left", "last"]},
        {"type": "tool_sequence", "expected": ["last", "first"]},
        {"type": "tool_sequence", "expected": ["left", "right"], "order": "start_time"},
    )

    assert len(judged.runs) == 10
    found = {tuple((one["status"], one["message"]) for one in run["assertions"]) for run in judged.runs.values()}
    assert [[status for status, _ in verdicts] for verdicts in found] == [["pass", "pass", "fail", "pass"]]


@pytest.mark.full
def test_t04_a_request_that_is_delivered_twice(bench: Bench):
    """An exporter that never saw the answer sends again, live: calls and tokens count once."""
    recording = bench.record("sent", *good())
    judged = bench.live(
        post_agent(recording, times=3),
        {"type": "tool_call_count", "count": 3}, {"type": "llm_call_count", "min": 4, "max": 4},
        {"type": "trace_token_budget", "max_total_tokens": 440}, {"type": "trace_cost", "max_usd": 0.04},
        {"type": "no_loops", "max_repeats": 1},
    )  # fmt: skip

    assert judged.statuses == ["pass"] * 5, judged.text
    assert judged.run["trace"]["spans"] == 9


def test_t04_a_span_that_arrives_after_the_verdict(tmp_path):
    """The run was closed and judged; what comes later is of the run, and the next question is answered from all of it."""
    first = [agent("root", "a"), tool_call("t1", "read", "root", 10)]
    late = [tool_call("t2", "delete_all", "root", 20)]
    never = [parse_assertion(NEVER)]
    with Session.open(tmp_path / "spans.duckdb", receive=True) as session:
        session.open_run(RunRecord("r", "case"))
        _export(session, request(first, {"clawtrace.run_id": "r"}))
        record = session.close_run(RunRecord("r", "case", run_status="success"), processes_gone=True)
        (before,) = session.evaluate(["r"], never)
        _export(session, request(late, {"clawtrace.run_id": "r"}))
        (after,) = session.evaluate(["r"], never)

    assert record.closed_by == "exit"
    assert [found.verdicts[0].status for found in (before, after)] == ["pass", "fail"]


def _export(session: Session, body: dict) -> None:
    connection = http.client.HTTPConnection(urlsplit(session.endpoints.http).netloc, timeout=30)
    connection.request("POST", "/v1/traces", json.dumps(body), {"content-type": "application/json"})
    assert connection.getresponse().status == 200
    connection.close()


def test_t05_usage_on_parent_and_child(bench: Bench):
    """An agent that repeats the usage of its calls, and a wrapper around the provider's own span, count once."""
    used = {"usage__input_tokens": 200, "usage__output_tokens": 20, "request__model": "gpt-4o"}
    bench.record("agent", [agent("root", "a", **used), model_call("m1", "root", 10), model_call("m2", "root", 20)])
    wrapper = model_call("outer", "root", 10, 30, response__id="resp-1")
    bench.record("wrapper", [agent("root", "a"), wrapper, model_call("inner", "outer", 12, 28, response__id="resp-1")])
    exact = [({"type": "trace_token_budget", "max_total_tokens": most}) for most in (220, 219, 110, 109)]
    judged = bench.judge(*exact, {"type": "llm_call_count", "min": 2, "max": 2}, {"type": "llm_call_count", "max": 1})
    statuses = {run: [one["status"] for one in found["assertions"]] for run, found in judged.runs.items()}

    assert statuses["agent"] == ["pass", "fail", "fail", "fail", "pass", "fail"]
    assert statuses["wrapper"] == ["pass", "pass", "pass", "fail", "fail", "pass"]


def test_t06_names_that_hold_another_name(bench: Bench):
    """`gpt-4o` is not `gpt-4o-mini`, `writer` is not `ghostwriter`, `read` is not `read_all`; price `o` prices no `…o`."""
    spans = [
        agent("root", "boss"), model_call("b", "root", 5, model="gpt-4o-mini"), agent("sub", "ghostwriter", "root", 10, 50),
        model_call("m", "sub", 20, model="gpt-4o-mini"), tool_call("t", "read_all", "sub", 30),
    ]  # fmt: skip
    wanted = [
        ({"type": "model_used", "expected": "gpt-4o"}, "fail"),
        ({"type": "model_used", "expected": "gpt-4"}, "fail"),
        ({"type": "model_used", "expected": "gpt-4o-mini"}, "pass"),
        ({"type": "model_used", "only": ["gpt-4o"]}, "fail"),
        ({"type": "model_used", "not_expected": "gpt-4"}, "pass"),
        ({"type": "model_used", "not_expected": "mini"}, "fail"),
        ({"type": "delegation_occurred", "to_agent": "writer"}, "fail"),
        ({"type": "delegation_path", "expected": ["boss", "writer"]}, "fail"),
        ({"type": "delegation_path", "expected": ["boss", "ghostwriter"]}, "pass"),
        ({"type": "tool_was_called", "tool": "read"}, "fail"),
        ({"type": "tool_not_invoked", "tool": "read"}, "pass"),
        ({"type": "tool_not_permitted", "allowed_tools": ["read"]}, "fail"),
        ({"type": "tool_not_invoked", "tool": "READ_ALL"}, "pass"),
    ]
    judged = bench.judge_spans(spans, *(asked for asked, _ in wanted))

    assert judged.statuses == [status for _, status in wanted]


def test_t06_a_file_is_not_the_file_whose_name_ends_alike(bench: Bench):
    """`report.md` is not `myreport.md`, in the workspace of a live agent."""
    judged = bench.live(
        "echo x > myreport.md",
        {"type": "openclaw_workspace_file_present", "relative_path": "report.md"},
        {"type": "artifact_exists", "path": "report.md"},
        {"type": "openclaw_workspace_file_present", "relative_path": "myreport.md"},
    )

    assert judged.statuses == ["fail", "fail", "pass"]


def test_t06_a_price_for_o_prices_no_other_model(bench: Bench):
    """A price's key is a whole name: `o` leaves `in-house-o` without a price, and the cost is no pass."""
    judged = bench.judge_spans(
        [agent("root", "a"), model_call("m", "root", model="in-house-o")],
        {"type": "trace_cost", "max_usd": 1},
        model_pricing={"o": {"input_per_1k": 0.1, "output_per_1k": 0.1}},
    )

    assert (judged.statuses, judged.exit_code) == (["warn"], 3)


UNASKABLE = {
    "t07 both": ("{type: model_used, expected: gpt-4o, not_expected: opus}", "takes `expected` or `not_expected`, not both: write two assertions"),
    "t08 mode": ("{type: tool_sequence, mode: stric, expected: [a]}", "'stric' is not valid; valid: ordered, strict, contains. Did you mean `strict`?"),
    "t08 span type": ("{type: per_span_budget, max_tokens: 1, span_type: llms}", "'llms' is not valid; valid: llm, tool, agent"),
    "t08 no bound": ("{type: llm_call_count}", "needs at least one of `count`, `min` or `max`"),
    "t08 no budget": ("{type: trace_token_budget}", "needs at least one of `max_input_tokens`"),
    "t08 inverted": ("{type: tool_call_count, min: 3, max: 1}", "`min` (3) is greater than `max` (1)"),
}  # fmt: skip


def test_t07_t08_a_question_that_cannot_be_meant_starts_nothing(bench: Bench):
    """Each is refused with its place before the agent of its case, or of any other case, is started."""
    bench.case("good", f"touch '{bench.root}/started'", [])
    bench.case("bad", f"touch '{bench.root}/started'", [])
    path = bench.root / "configs/cases/bad/test.yaml"
    listed = "".join(f"\n- {written}" for written, _ in UNASKABLE.values())
    path.write_text(path.read_text().replace("assertions: []", f"assertions:{listed}"))
    first = path.read_text().splitlines().index("assertions:") + 2
    judged = bench.suite()

    assert judged.exit_code == 2
    for line, (_, said) in enumerate(UNASKABLE.values(), first):
        (refused,) = [one for one in judged.stderr.splitlines() if f"{path.relative_to(bench.root)}:{line}:" in one]
        assert said in refused
    assert not (bench.root / "started").exists()
    assert not (bench.root / "outputs").exists()


def test_t07_expected_and_not_expected_are_refused_and_apart_they_are_two_questions(bench: Bench):
    """Together they were once read as the first alone; as two assertions both are asked."""
    spans = [agent("root", "a"), model_call("m1", "root", 1), model_call("m2", "root", 9, model="claude-opus-4-6")]
    one = {"type": "model_used", "expected": "gpt-4o", "not_expected": "opus"}
    assert bench.judge_spans(spans, one).exit_code == 2
    judged = bench.judge_spans(spans, {k: v for k, v in one.items() if k != "not_expected"}, one | {"expected": None})

    assert judged.exit_code == 1
    assert judged.statuses == ["pass", "fail"]


@pytest.mark.parametrize(
    "written",
    [
        {"type": "tool_sequence", "mode": "Strict", "expected": ["a"]},
        {"type": "per_span_budget", "max_tokens": 1, "span_type": "LLM"},
        {"type": "tool_call", "tool": "a", "count": {"min": 2, "max": 1}},
        {"type": "tool_call_count", "tool": "a"},
        {"type": "token_budget"},
        {"type": "trace_duration"},
        {"type": "run_count", "pattern": "a"},
        {"type": "span_query", "select": {}, "count": {"min": 2, "max": 1}},
    ],
    ids=lambda written: written["type"],
)
def test_t08_a_mode_span_type_or_bound_that_is_wrong_is_never_a_default(bench: Bench, written):
    """The recording would satisfy the question with any default; it is refused all the same."""
    judged = bench.judge_spans([agent("root", "a"), tool_call("t", "a", "root"), model_call("m", "root")], written)

    assert judged.exit_code == 2
    assert "checks.yaml:" in judged.stderr
    assert judged.stdout == ""
