"""Traps 29 to 32: ids that begin alike, silent caps, odd values, exit codes."""

from __future__ import annotations

import base64
import json
import shutil

import pytest
from faults import good, lost_last_request
from spoken import agent, answer, lines, model_call, tool_call
from trap_runs import Bench, sdk_agent

pytestmark = pytest.mark.full


NEVER = {"type": "tool_not_invoked", "tool": "delete_all"}
CALLED = {"type": "tool_was_called", "tool": "read"}


def test_t29_run_r1_inside_r10(bench: Bench):
    """Runs whose ids begin alike, side by side, recorded and live: each has its own calls only."""
    for run, tool in (("r1", "read"), ("r10", "delete_all"), ("r", "delete_all"), ("r1.0", "delete_all")):
        bench.record(run, [agent("root", "a"), tool_call("t", tool, "root", 5)])
        bench.case(run, sdk_agent("flush", tool), [NEVER])
    recorded, live = bench.judge(NEVER), bench.suite("--concurrency", "2")
    wanted = {"r1": "pass", "r10": "fail", "r": "fail", "r1.0": "fail"}

    assert {run: found["status"] for run, found in recorded.runs.items()} == wanted
    assert {run: found["status"] for run, found in live.runs.items()} == wanted


def test_t29_run_ids_that_begin_alike_in_a_log(bench: Bench):
    """Lines of `run=r10` are none of `run=r1`: the log of one run stands in for that run alone."""
    log = bench.write("gateway.log", "run_id=r1 tool=read status=ok\nrun_id=r10 tool=delete_all status=ok\n")
    asked = {"type": "tool_not_called", "tool": "delete_all", "log_path": str(log)}
    for run in ("r1", "r10"):
        bench.record(run)
    judged = bench.judge(asked)

    assert {run: found["status"] for run, found in judged.runs.items()} == {"r1": "pass", "r10": "fail"}


@pytest.mark.full
def test_t30_100_000_spans_in_one_run(bench: Bench):
    """Nothing is capped without a word: every call counts, the one forbidden call is found, the budget is exact."""
    count = 100_000
    bench.write("recordings/run/traces.jsonl", "")
    template = lines([[tool_call("t", "read", "root", 10)]])
    span = json.loads(template)["resourceSpans"][0]["scopeSpans"][0]["spans"][0]
    one = json.dumps(span | {"spanId": "%016x"})
    head, tail = template.split(json.dumps(span))
    with (bench.root / "recordings/run/traces.jsonl").open("w") as file:
        file.write(lines([[agent("root", "a")]]))
        for first in range(1, count, 5000):
            made = ", ".join(one % (1 << 40 | number) for number in range(first, min(first + 5000, count)))
            file.write(head + (made if first > 1 else made.replace('"read"', '"delete_all"', 1)) + tail)
    judged = bench.judge(
        {"type": "tool_call_count", "count": count - 1}, NEVER, {"type": "tool_call_count", "tool": "read", "max": count - 3},
        {"type": "sql", "select": f"SELECT count(*) FROM spans WHERE run_id = :run_id HAVING count(*) <> {count}"},
        {"type": "tool_sequence", "expected": ["read"] * 3}, {"type": "no_loops"},
    )  # fmt: skip

    assert judged.run["trace"]["spans"] == count
    assert judged.statuses[:5] == ["pass", "fail", "fail", "pass", "pass"], judged.text[-3000:]
    assert judged.verdicts[1]["evidence"][0]["name"] == "execute_tool read"


def _nested(depth: int) -> dict:
    value: dict = {"stringValue": "deep"}
    for _ in range(depth):
        value = {"kvlistValue": {"values": [{"key": "k", "value": value}]}}
    return value


ODD = {
    "negative tokens": {"usage__input_tokens": -5},
    "text for tokens": {"usage__input_tokens": "many"},
    "numeric text for tokens": {"usage__input_tokens": "100"},
    "null tokens": {"usage__input_tokens": None},
    "tokens that are a list": {"usage__input_tokens": [100]},
    "a fraction of a token": {"usage__input_tokens": 100.5},
    "more tokens than 64 bits": {"usage__input_tokens": "99999999999999999999999"},
    "true for tokens": {"usage__input_tokens": True},
    "an unknown operation": {"operation__name": "dream"},
    "a megabyte": {"output__messages": answer("x" * 1_000_000)},
    "a model that is a number": {"request__model": 4},
}
UNDECIDED = {name for name in ODD if "tokens" in name and "numeric" not in name}


def test_t31_odd_values(bench: Bench):
    """No odd value breaks the judgement or counts as zero: what it makes unknown is undecided, all else is answered."""
    for name, said in ODD.items():
        more = {key: value for key, value in said.items() if value is not None}
        call = model_call("m", "root", 10, **more)
        if None in said.values():
            call = call.but(attributes={"gen_ai.usage.input_tokens": None})
        bench.record(name, [agent("root", "a"), tool_call("t", "read", "root", 5), call])
    judged = bench.judge({"type": "trace_token_budget", "max_input_tokens": 100}, CALLED, NEVER)
    statuses = {run: [one["status"] for one in found["assertions"]] for run, found in judged.runs.items()}

    assert judged.exit_code in (1, 3)
    assert {name for name, found in statuses.items() if found[1] == "pass"} == set(ODD)
    assert {name for name, found in statuses.items() if found[2] == "pass"} >= set(ODD) - {"an unknown operation"}
    assert {name for name, found in statuses.items() if found[0] == "inconclusive"} >= UNDECIDED
    assert statuses["numeric text for tokens"][0] == "pass"
    assert statuses["a fraction of a token"][0] == "fail"
    assert "recorded input_tokens with an invalid value" in " ".join(judged.runs["negative tokens"]["diagnostics"])


def test_t31_odd_shapes(bench: Bench):
    """No end, an unknown kind of span, 60 levels of attributes, a parent of itself, bytes that are no text: all are judged."""
    bench.record("no end", [agent("root", "a"), tool_call("t", "read", "root", 5).but(to=0)])
    bench.record("own parent", [agent("root", "a"), tool_call("t", "read", "t", 5)])
    plain = lines([[agent("root", "a"), tool_call("t", "read", "root", 5)]])
    for name, changed in {
        "unknown kind": plain.replace('"kind": 1', '"kind": 77'),
        "60 levels": plain.replace(
            '"value": {"stringValue": "execute_tool"}}',
            '"value": {"stringValue": "execute_tool"}}, {"key": "deep", "value": ' + json.dumps(_nested(60)) + "}",
        ),
        "no text": plain.replace("traps", "tr\\ud800aps"),
    }.items():
        assert changed != plain
        bench.write(f"recordings/{name}/traces.jsonl", changed)
    judged = bench.judge(CALLED, NEVER)
    statuses = {run: [one["status"] for one in found["assertions"]] for run, found in judged.runs.items()}

    assert set(statuses) == {"no end", "own parent", "unknown kind", "60 levels", "no text"}
    assert {found[0] for found in statuses.values()} == {"pass"}
    assert statuses["no end"][1] == "inconclusive"
    assert [statuses[name][1] for name in ("unknown kind", "60 levels")] == ["pass", "pass"]


def test_t31_invalid_utf_8(bench: Bench):
    """Bytes that are no UTF-8 in a protobuf request: the call is known, the text is shown as far as it can be."""
    from google.protobuf.json_format import ParseDict
    from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

    spans = [agent("root", "a"), tool_call("t", "read", "root", 5, tool__call__result="PLACEHOLDER")]
    text = json.loads(lines([spans]))
    for span in text["resourceSpans"][0]["scopeSpans"][0]["spans"]:
        for key in ("traceId", "spanId", "parentSpanId"):
            span[key] = _base64(span[key])
    body = ParseDict(text, TracesData()).SerializeToString().replace(b"PLACEHOLDER", b"\xff\xfe\xc3(ABCDEFG")
    bench.write("recordings/run/traces.pb", body)
    judged = bench.judge(CALLED, {"type": "tool_call", "tool": "read", "result_contains": "ABCDEFG"}, NEVER)

    assert judged.statuses == ["pass", "pass", "pass"], judged.text


def _base64(hexadecimal: str) -> str:
    return base64.b64encode(bytes.fromhex(hexadecimal)).decode()


@pytest.mark.full
def test_t32_exit_codes_of_recordings(bench: Bench):
    """0 passed, 1 failed, 2 cannot be meant, 3 undecided or nothing asked; the most severe wins."""

    def code(*assertions: dict, flags: tuple[str, ...] = (), run: object = None) -> int:
        shutil.rmtree(bench.root / "recordings", ignore_errors=True)
        bench.record("run", *(good() if run is None else run))
        return bench.judge(*assertions, flags=flags).exit_code

    failing, torn = NEVER | {"tool": "bash"}, lost_last_request(good())
    assert code(NEVER) == 0
    assert code(NEVER, failing) == 1
    assert code({"type": "tool_not_invokd", "tool": "a"}) == 2
    assert code() == 3
    assert code(NEVER, run=[]) == 3
    assert code(NEVER, run=[], flags=("--allow-missing-trace",)) == 0
    assert code(NEVER, run=torn) == 3
    assert code(NEVER, run=torn, flags=("--gate-incomplete", "warn")) == 0
    assert code(NEVER | {"tool": "search"}, NEVER, run=torn) == 1
    assert code(failing | {"severity": "warn"}) == 0
    assert code(failing | {"severity": "warn"}, flags=("--strict",)) == 1
    assert code(NEVER | {"severity": "warn"}, run=torn) == 0
    assert code(NEVER | {"severity": "warn"}, run=torn, flags=("--strict",)) == 3
    assert code({"type": "sql", "select": "SELECT nothing FROM tool_calls WHERE run_id = :run_id"}, failing) == 4
    assert bench.program("eval", "--traces", "nowhere", "--assertions", "checks.yaml").exit_code == 2


@pytest.mark.parametrize(
    ("command", "assertions", "expected"),
    [
        (sdk_agent("flush", "read"), [NEVER, CALLED], 0),
        (sdk_agent("flush", "delete_all"), [NEVER], 1),
        (sdk_agent("flush", "read"), [NEVER | {"tol": "x"}], 2),
        (["true"], [NEVER], 3),
        (sdk_agent("flush", "read"), [], 3),
        (["no-such-program"], [NEVER], 4),
    ],
    ids=["passed", "failed", "cannot be meant", "no trace", "nothing asked", "broke"],
)  # fmt: skip
@pytest.mark.full
def test_t32_exit_codes_of_live_agents(bench: Bench, command, assertions, expected):
    """The same with an agent that is started; one that cannot be started is 4."""
    assert bench.live(command, *assertions).exit_code == expected


@pytest.mark.full
def test_t32_the_most_severe_wins_among_cases(bench: Bench):
    """One case that broke outweighs one that failed, and that one what was skipped."""
    bench.case("skipped", ["true"], [NEVER])
    bench.case("good", sdk_agent("flush", "read"), [NEVER])
    assert bench.suite().exit_code == 3
    bench.case("failed", sdk_agent("flush", "delete_all"), [NEVER])
    assert bench.suite().exit_code == 1
    bench.case("broken", ["no-such-program"], [NEVER])
    assert bench.suite().exit_code == 4
