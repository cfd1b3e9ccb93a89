"""Traps 9 to 16: expressions, multiplicity, prices, errors of every kind, blocked and failed calls, torn runs."""

from __future__ import annotations

import itertools
import json
import shutil
from pathlib import Path

import pytest
from faults import good
from spoken import Span, agent, model_call, tool_call
from trap_runs import Bench, sdk_agent

NEVER = {"type": "tool_not_invoked", "tool": "delete_all"}


def shell(id: str, command: str, at: float, parent: str = "root", code: int = 0, stdout: str = "") -> Span:
    """A shell command that ended with a code; its span itself says nothing of a failure."""
    result = json.dumps({"exit_code": code, "stdout": stdout, "stderr": ""})
    arguments = json.dumps({"command": command})
    return tool_call(id, "bash", parent, at, tool__call__arguments=arguments, tool__call__result=result)


@pytest.mark.parametrize(
    "written",
    [
        {"type": "not_ran", "pattern": "rm -rf ("},
        {"type": "ran", "pattern": "["},
        {"type": "run_count", "pattern": "*", "max": 1},
        {"type": "log_entry", "path": "x.log", "pattern": "(?P<x"},
        {"type": "tool_not_invoked", "tool": "re:(delete"},
        {"type": "model_used", "only": ["re:["]},
        {"type": "final_response", "matches": "a{2,1}"},
        {"type": "no_span_errors", "ignore": ["re:+"]},
        {"type": "tool_call", "tool": "a", "args": {"path": "re:**"}},
        {"type": "span_query", "select": {"name": "re:("}},
        {"type": "exit_code", "value": 0, "of": {"matching": "("}},
    ],
    ids=lambda written: written["type"],
)
def test_t09_an_invalid_regular_expression(bench: Bench, written):
    """It is no plain text and no match of nothing: the file is refused, with the place of the expression."""
    judged = bench.judge_spans([agent("root", "a"), shell("t", "rm -rf (", 1)], written)

    assert judged.exit_code == 2
    assert "invalid regular expression" in judged.stderr
    assert "checks.yaml:" in judged.stderr


def test_t10_multiplicity(bench: Bench):
    """`[a, a]` needs two calls in every mode, and no call is counted for two."""
    modes = [
        {"type": "tool_sequence", "mode": mode, "expected": ["a", "a"]} for mode in ("contains", "ordered", "strict")
    ]
    bench.record("once", [agent("root", "x"), tool_call("t1", "a", "root", 10)])
    bench.record("twice", [agent("root", "x"), tool_call("t1", "a", "root", 10), tool_call("t2", "a", "root", 20)])
    judged = bench.judge(*modes, {"type": "tool_sequence", "steps": [{"repeat": "a", "min": 2}]})
    statuses = {run: [one["status"] for one in found["assertions"]] for run, found in judged.runs.items()}

    assert statuses == {"once": ["fail"] * 4, "twice": ["pass"] * 4}


def test_t10_compound_commands(bench: Bench):
    """What runs inside of `&&`, pipes, `sh -c`, `env` and `sudo` has run; what stands in quotes has not."""
    spans = [
        agent("root", "x"),
        shell("t1", "cd app && docker build . | tee log", 10),
        shell("t2", "bash -lc 'env A=1 sudo curl https://a; curl https://b'", 20),
        shell("t3", 'echo "then git push --force"', 30),
    ]
    wanted = [
        ({"type": "ran", "pattern": "^docker build"}, "pass"),
        ({"type": "ran", "pattern": "^tee log$"}, "pass"),
        ({"type": "not_ran", "pattern": "^curl"}, "fail"),
        ({"type": "run_count", "pattern": "^curl", "min": 2, "max": 2}, "pass"),
        ({"type": "run_count", "pattern": "docker", "min": 1, "max": 1}, "pass"),
        ({"type": "not_ran", "pattern": "^git push"}, "pass"),
    ]
    judged = bench.judge_spans(spans, *(asked for asked, _ in wanted))

    assert judged.statuses == [status for _, status in wanted], judged.text


@pytest.mark.parametrize("how", ["half", "all"])
def test_t11_calls_without_a_price(bench: Bench, how):
    """Half of the calls unpriced decides only what is sure, and names the model; all unpriced warns; neither is green."""
    first = "gpt-4o" if how == "half" else "in-house"
    spans = [
        agent("root", "x"),
        model_call("m1", "root", 1, model=first),
        model_call("m2", "root", 9, model="in-house"),
    ]
    judged = bench.judge_spans(
        spans, {"type": "trace_cost", "max_usd": 1}, {"type": "trace_cost", "max_usd": 0.0000001}
    )

    assert judged.statuses == (["inconclusive", "fail"] if how == "half" else ["warn", "warn"])
    assert judged.exit_code == (1 if how == "half" else 3)
    assert "in-house" in judged.verdicts[0]["message"]


@pytest.mark.full
def test_t12_the_order_of_prices_decides_nothing(bench: Bench):
    """The narrower key wins over a wide one, however the file sorts them, and over the built-in price."""
    prices = {
        "gpt-4o": {"input_per_1k": 1, "output_per_1k": 0},
        "gpt-4o-mini": {"input_per_1k": 2, "output_per_1k": 0},
        "glob:gpt-*": {"input_per_1k": 4, "output_per_1k": 0},
    }
    calls = [
        model_call(name, "root", model=name, usage__input_tokens=1000) for name in ("gpt-4o", "gpt-4o-mini", "gpt-x")
    ]
    asked = [{"type": "trace_cost", "max_usd": most} for most in (7, 6.99)]
    bench.record("run", [agent("root", "x"), *calls])
    found = set()
    for order in itertools.permutations(prices.items()):
        judged = bench.judge(*asked, model_pricing=dict(order))
        found.add((tuple(judged.statuses), json.dumps(judged.verdicts[0]["actual"])))

    assert found == {(("pass", "fail"), "7.0")}


def test_t13_handled_retried_and_infrastructure_errors(bench: Bench):
    """An error counts once however far it travels; a retry that succeeded may be forgiven; an HTTP client's does not count."""
    strict, lenient = {"type": "no_span_errors"}, {"type": "no_span_errors", "unrecovered": True}
    failed = tool_call("t1", "fetch", "root", 10, error="timeout")
    again = tool_call("t2", "fetch", "root", 20)
    http = Span("h", "GET", 11, 12, "t2", {"http.request.method": "GET", "http.response.status_code": 503}, "503")
    bench.record("retried", [agent("root", "x"), failed, again])
    bench.record("given up", [agent("root", "x"), failed, tool_call("t2", "read", "root", 20)])
    bench.record("travelled", [agent("root", "x").but(error="timeout"), failed])
    bench.record("infrastructure", [agent("root", "x"), again, http])
    bench.record("swallowed", [agent("root", "x"), failed, model_call("m", "root", 30)])
    judged = bench.judge(strict, lenient, {"type": "no_span_errors", "ignore": ["fetch"]})
    statuses = {run: [one["status"] for one in found["assertions"]] for run, found in judged.runs.items()}

    assert statuses["retried"] == ["fail", "pass", "pass"]
    assert statuses["given up"] == ["fail", "fail", "pass"]
    assert statuses["infrastructure"] == ["pass", "pass", "pass"]
    assert statuses["swallowed"] == ["fail", "fail", "pass"]
    assert statuses["travelled"] == ["fail", "fail", "pass"]
    assert judged.runs["travelled"]["assertions"][0]["message"].startswith("1 error ")


def test_t14_a_blocked_call(bench: Bench, recordings: Path):
    """A call that was denied is an attempt and no success, in a real recording: Claude Code, denied by its user."""
    shutil.copytree(recordings / "claude-code" / "tool_denied", bench.root / "recordings" / "run")
    wanted = [
        ({"type": "tool_not_invoked", "tool": "WebFetch"}, "fail"),
        ({"type": "tool_not_invoked", "tool": "WebFetch", "count_blocked": False}, "pass"),
        ({"type": "tool_not_called", "tool": "WebFetch"}, "fail"),
        ({"type": "tool_not_permitted", "allowed_tools": ["Read"]}, "fail"),
        ({"type": "tool_was_called", "tool": "WebFetch"}, "pass"),
        ({"type": "tool_call_count", "tool": "WebFetch", "count": 1}, "pass"),
        ({"type": "tool_call", "tool": "WebFetch", "status": "ok"}, "fail"),
        ({"type": "tool_call", "tool": "WebFetch", "status": "blocked"}, "pass"),
        ({"type": "no_span_errors"}, "fail"),
    ]
    judged = bench.judge(*(asked for asked, _ in wanted))

    assert judged.statuses == [status for _, status in wanted], judged.text


def test_t15_a_failed_tool_is_not_done(bench: Bench):
    """It was called, and the sentence says that it failed; `status: ok` does not hold; a request alone may be no call."""
    asked = json.dumps(
        [{"role": "assistant", "parts": [{"type": "tool_call", "id": "c1", "name": "send", "arguments": {}}]}]
    )
    bench.record("failed", [agent("root", "x"), tool_call("t", "send", "root", 10, error="refused")])
    bench.record("only asked for", [agent("root", "x"), model_call("m", "root", 1, output__messages=asked)])
    failing = shell("t", "make test", 10, code=2)
    bench.record("command", [agent("root", "x"), failing])
    judged = bench.judge(
        {"type": "tool_was_called", "tool": "send"}, {"type": "tool_call", "tool": "send", "status": "ok"},
        {"type": "ran", "pattern": "make test"}, {"type": "ran", "pattern": "make test", "status": "ok"},
        {"type": "exit_code", "value": 0},
    )  # fmt: skip
    found = {run: run_["assertions"] for run, run_ in judged.runs.items()}

    assert [one["status"] for one in found["failed"][:2]] == ["pass", "fail"]
    assert "(1 failed)" in found["failed"][0]["message"]
    assert [one["status"] for one in found["only asked for"][:2]] == ["inconclusive", "inconclusive"]
    assert [one["status"] for one in found["command"][2:]] == ["pass", "fail", "fail"]


@pytest.mark.full
def test_t16_one_run_of_several_traces(bench: Bench):
    """Two root traces of one agent process are one run: all calls count, live."""
    judged = bench.live(
        sdk_agent("two_roots", "read", "delete_all"), NEVER, {"type": "tool_call_count", "count": 2},
        {"type": "tool_sequence", "mode": "strict", "expected": ["read", "delete_all"]},
    )  # fmt: skip

    assert judged.run["trace"]["traces"] == 2
    assert judged.run["trace"]["complete"]
    assert judged.statuses == ["fail", "pass", "pass"]


def test_t16_parents_that_never_came(bench: Bench):
    """Spans whose parent is missing count, of two traces too, and the run is not whole: absence is undecided."""
    bench.record("run", [tool_call("t1", "read", "lost", 10)], [tool_call("t2", "read", "gone", 20).but(trace="u")])
    judged = bench.judge(
        NEVER, {"type": "tool_was_called", "tool": "read"}, {"type": "tool_call_count", "max": 1}, {"type": "tool_call_count", "min": 2}
    )  # fmt: skip

    assert judged.statuses[:2] == ["inconclusive", "pass"]
    assert judged.statuses[2:] == ["fail", "pass"]
    assert not judged.run["trace"]["complete"]
    assert "never received" in " ".join(judged.run["trace"]["incomplete_because"])


def test_t16_spans_of_another_run_in_the_same_recording(bench: Bench):
    """A recording that holds two runs, distinguished by their resource: neither sees the other's calls."""
    first, second = (
        [span.but(trace=name) for span in spans] for name, spans in (("a", _one("read")), ("b", _one("delete_all")))
    )
    text = "".join(
        (bench.record(name, spans, resource={"clawtrace.run_id": name})).read_text()
        for name, spans in (("r1", first), ("r2", second))
    )
    shutil.rmtree(bench.root / "recordings")
    both = bench.write("both.jsonl", text)
    judged = bench.program(
        "eval", "--traces", both, "--assertions", bench.assertions([NEVER]), "--report", "json=report.json"
    )

    assert {run: found["status"] for run, found in judged.runs.items()} == {"r1": "pass", "r2": "fail"}


def _one(tool: str) -> list[Span]:
    return [agent("root", "x"), tool_call("t", tool, "root", 10)]


def test_t16_the_good_run_with_its_traces_torn_apart(bench: Bench):
    """The same calls in one trace or in three: the counts are the same."""
    whole = [span for spans in good() for span in spans]
    apart = [span.but(trace=span.id, parent="") for span in whole]
    bench.record("whole", whole)
    bench.record("apart", apart)
    judged = bench.judge({"type": "llm_call_count", "min": 4, "max": 4}, {"type": "tool_call_count", "count": 3},
                         {"type": "trace_token_budget", "max_total_tokens": 440})  # fmt: skip

    assert {run: found["status"] for run, found in judged.runs.items()} == {"whole": "pass", "apart": "pass"}
