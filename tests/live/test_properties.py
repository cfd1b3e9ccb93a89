"""Properties of verdicts, through the real receiver and its sockets (spec: span-model.md §4, assertions.md §2).

A verdict depends on what was exported, never on how it arrived; and what is called final stays.
"""

from __future__ import annotations

import http.client
import itertools
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

import grpc
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from otlp_wire import as_json, protobuf

from clawtrace.assertions.registry import parse_assertion
from clawtrace.model.run import RunRecord
from clawtrace.model.verdict import RunResult, Status
from clawtrace.session.session import Session

pytestmark = pytest.mark.full

TOOLS = ("read", "write", "delete_all")
PROTOCOLS = ("grpc", "http/protobuf", "http/json")
ASSERTIONS = [
    parse_assertion({"id": f"a{number}", **asked})
    for number, asked in enumerate(
        [
            # growing: more spans can only add to what was found
            {"id": "read", "type": "tool_was_called", "tool": "read"},
            {"id": "two-reads", "type": "tool_call_count", "tool": "read", "min": 2},
            {"type": "delegation_occurred", "to_agent": "agent1"},
            {"type": "tool_sequence", "mode": "ordered", "expected": ["read", "write"]},
            # shrinking: more spans can only break it
            {"type": "tool_not_invoked", "tool": "delete_all"},
            {"id": "at-most-3", "type": "tool_call_count", "max": 3},
            {"id": "at-most-2-answers", "type": "llm_call_count", "max": 2},
            {"id": "tokens", "type": "trace_token_budget", "max_total_tokens": 60},
            {"type": "no_span_errors"},
            {"type": "no_loops"},
            {"type": "trace_cost", "max_usd": 0.0001},
            {"type": "trace_duration", "max_ms": 5},
            {"type": "per_span_budget", "max_tokens": 30},
            {"type": "span_duration", "span_type": "llm", "max_ms": 0.1},
            {"type": "model_used", "not_expected": "gpt-4o"},
            # exact: anything may turn it
            {"id": "strict", "type": "tool_sequence", "mode": "strict", "expected": ["read", "write"]},
            {"type": "tool_call_count", "tool": "write", "min": 1, "max": 1},
            {"type": "llm_call_count", "min": 1, "max": 1},
            {"type": "tool_call", "tool": "read", "count": {"max": 2}},
            {"type": "tool_sequence", "mode": "contains", "expected": ["read", "read"]},
            {"type": "tool_sequence", "mode": "ordered", "expected": ["read", "write", "read"]},
        ]
    )
]


@dataclass(frozen=True)
class Item:
    """One span of a random trace; its parent is one of the spans before it, or one that is never exported."""

    kind: str
    tool: str
    parent: int
    lost_parent: bool
    failed: bool
    open: bool
    tokens: int
    names_response: bool
    other_scope: bool = False
    """Whether a second instrumentation records it."""


ITEMS = st.lists(
    st.builds(
        Item,
        kind=st.sampled_from(["agent", "chat", "tool", "tool", "other"]),
        tool=st.sampled_from(TOOLS),
        parent=st.integers(0, 30),
        lost_parent=st.sampled_from([False] * 9 + [True]),
        failed=st.sampled_from([False] * 5 + [True]),
        open=st.sampled_from([False] * 14 + [True]),
        tokens=st.integers(0, 40),
        names_response=st.booleans(),
        other_scope=st.sampled_from([False, False, True]),
    ),
    min_size=1,
    max_size=14,
)
TRACES = st.lists(ITEMS, min_size=6, max_size=6)
numbers = itertools.count(1)


def batches(spans: list[dict], number: int) -> list[list[dict]]:
    """Split spans into at most `number` requests, each of at least one."""
    return [spans[part::number] for part in range(number) if spans[part::number]]


def spans_of(items: Sequence[Item], seed: int) -> list[dict]:
    """Spans of a separate trace, named alike for the same items, so that runs can be compared."""
    trace = random.Random(seed).randbytes(16).hex()
    made = []
    for number, item in enumerate(items):
        is_root = number == 0 or item.parent % (number + 1) == number
        parent = "" if is_root else f"{item.parent % number + 1:016x}"
        attributes = {
            "agent": {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": f"agent{item.tokens % 3}"},
            "chat": {
                "gen_ai.operation.name": "chat",
                "gen_ai.request.model": "gpt-4o",
                "gen_ai.usage.input_tokens": str(item.tokens),
                "gen_ai.usage.output_tokens": "5",
                **({"gen_ai.response.id": f"response-{item.tokens % 4}"} if item.names_response else {}),
            },
            "tool": {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": item.tool},
            "other": {"step": "1"},
        }[item.kind]
        start = 1_700_000_000_000_000_000 + number * 1_000_000
        made.append(
            {
                "trace": trace,
                "id": f"{number + 1:016x}",
                "parent": f"{99:016x}" if item.lost_parent else parent,
                "name": f"{item.kind} {number}",
                "start": start,
                "end": 0 if item.open else start + 500_000,
                "attributes": attributes,
                "error": "failed" if item.failed else "",
                "scope": "other" if item.other_scope else "test",
            }
        )
    return made


class Bench:
    """A session that receives, and a connection of each protocol to it."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._http = http.client.HTTPConnection(urlsplit(session.endpoints.http).netloc, timeout=30)
        channel = grpc.insecure_channel(urlsplit(session.endpoints.grpc).netloc)
        self._call = channel.unary_unary("/opentelemetry.proto.collector.trace.v1.TraceService/Export")

    def open(self) -> str:
        run_id = f"run-{next(numbers)}"
        self.session.open_run(RunRecord(run_id, "case"))
        return run_id

    def close(self, run_id: str) -> None:
        self.session.close_run(RunRecord(run_id, "case"), processes_gone=True, end_run=True)

    def export(self, run_id: str, spans: list[dict], protocol: str) -> None:
        """Send spans, one request a scope."""
        for scope in sorted({span["scope"] for span in spans}):
            self._send(
                {"clawtrace.run_id": run_id}, [span for span in spans if span["scope"] == scope], scope, protocol
            )

    def _send(self, resource: dict[str, str], spans: list[dict], scope: str, protocol: str) -> None:
        if protocol == "grpc":
            self._call(protobuf(spans, resource, scope), timeout=30)
            return
        form = "json" if protocol == "http/json" else "x-protobuf"
        body = (as_json if form == "json" else protobuf)(spans, resource, scope)
        self._http.request("POST", "/v1/traces", body, {"content-type": f"application/{form}"})
        answer = self._http.getresponse()
        assert answer.status == 200, answer.read()
        answer.read()

    def judge(self, *run_ids: str) -> list[RunResult]:
        return self.session.evaluate(run_ids, ASSERTIONS)


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    with Session.open(receive=True) as session:
        yield Bench(session)


def outcome_of(result: RunResult) -> list[tuple[str, Status, bool, str]]:
    return [(verdict.id, verdict.status, verdict.final, verdict.message) for verdict in result.verdicts]


PROFILE = settings(
    max_examples=15,
    phases=(Phase.explicit, Phase.generate),  # shrinking six traces through sockets takes longer than reading them
    suppress_health_check=list(HealthCheck),
)


def test_arrival_never_changes_a_verdict(bench):
    """Order, batches, repetition, protocol and the number of runs that are judged together are all one."""

    @PROFILE
    @given(traces=TRACES, seed=st.integers(0, 10**6))
    def check(traces: list[list[Item]], seed: int) -> None:
        chance = random.Random(seed)
        straight, mixed = [bench.open() for _ in traces], [bench.open() for _ in traces]
        for number, items in enumerate(traces):
            spans = spans_of(items, seed + number)
            bench.export(straight[number], spans, "grpc")
            spans += chance.choices(spans, k=chance.randrange(7))
            chance.shuffle(spans)
            for batch in batches(spans, chance.randrange(1, 6)):
                bench.export(mixed[number], batch, chance.choice(PROTOCOLS))
        bench.judge(*chance.sample(mixed, 3))
        for run in (*straight, *mixed):
            bench.close(run)
        alone = [bench.judge(straight[0])[0], *bench.judge(*straight[1:])]
        chance.shuffle(order := list(range(len(mixed))))
        together = dict(zip(order, bench.judge(*(mixed[number] for number in order)), strict=True))

        for number, one in enumerate(alone):
            assert outcome_of(together[number]) == outcome_of(one)
            assert together[number].incomplete_because == one.incomplete_because

    check()


def follow(bench: Bench, arriving: Sequence[list[list[dict]]]) -> set[str]:
    """Export each run batch by batch, judging all runs after each: first open, in the end closed.

    Returns:
        The assertions that were final while a run was open.
    """
    runs = [bench.open() for _ in arriving]
    final: dict[tuple[str, str], tuple[Status, int]] = {}
    steps = max(map(len, arriving))
    for step in range(steps + 1):
        for run, parts in zip(runs, arriving, strict=True):
            if step < len(parts):
                bench.export(run, parts[step], PROTOCOLS[step % 3])
            elif step == steps:
                bench.close(run)
        for verdict in (verdict for result in bench.judge(*runs) for verdict in result.verdicts):
            key = (verdict.run_id, verdict.id)
            if step < steps and not verdict.final:
                assert verdict.status is Status.INCONCLUSIVE, verdict
            if key in final:
                known, since = final[key]
                # What is decided is never contradicted; a later span may leave it open (a second record of a call without an id).
                still = (known, Status.INCONCLUSIVE)
                assert verdict.status in still, f"{known} after step {since}, after step {step}: {verdict}"
            elif verdict.final:
                final[key] = (verdict.status, step)
    return {asked for (_, asked), (_, step) in final.items() if step < steps}


def test_a_verdict_on_an_open_run_is_final_or_inconclusive(bench):
    """While a run is open nothing is decided by what is missing; what is final then is never contradicted."""

    @PROFILE
    @given(traces=TRACES, seed=st.integers(0, 10**6))
    def check(traces: list[list[Item]], seed: int) -> None:
        chance = random.Random(seed)
        arriving = []
        for number, items in enumerate(traces):
            spans = spans_of(items, seed + number)
            chance.shuffle(spans)
            arriving.append(batches(spans, 3))
        follow(bench, arriving)

    check()


@pytest.mark.smoke
def test_a_span_that_joins_two_calls_into_one(bench):
    """Two tool spans of one name are one call once the span between them is known; so nothing was final before."""
    layers = [
        Item("tool", "read", 0, False, False, False, 0, False),
        Item("other", "read", 0, False, False, False, 0, False),
        *[Item("tool", "read", parent, False, False, False, 0, False) for parent in (1, 1, 1)],
    ]
    outer, between, *inner = spans_of(layers, 1)

    early = follow(bench, [[[outer, *inner], [between]]])

    assert "read" in early
    assert not early & {"at-most-3", "strict"}


@pytest.mark.smoke
def test_a_span_that_joins_two_model_calls_into_one(bench):
    """The same for model calls."""
    layers = [Item("chat", "read", 0, False, False, False, 40, False)]
    layers += [Item("other", "read", 0, False, False, False, 0, False)]
    layers += [Item("chat", "read", parent, False, False, False, 40, False) for parent in (1, 1, 1)]
    outer, between, *inner = spans_of(layers, 2)

    early = follow(bench, [[[outer, *inner], [between]]])

    assert not early & {"at-most-2-answers", "tokens"}


@pytest.mark.smoke
def test_too_many_calls_of_a_name_stay_too_many_when_another_scope_records_a_call(bench):
    """Two calls of `read` that stay apart break a strict list of one, no matter what else is called."""
    layers = [
        Item("chat", "read", 0, False, False, False, 40, False),
        Item("tool", "read", 1, False, False, False, 0, False, other_scope=True),
        Item("tool", "delete_all", 0, False, False, False, 0, False),
        Item("other", "read", 0, False, False, False, 0, False),
        Item("tool", "read", 0, False, False, False, 0, False, other_scope=True),
    ]
    model, first, other, step, second = spans_of(layers, 3)

    assert "strict" in follow(bench, [[[second, step], [model, first], [other]]])


@pytest.mark.smoke
def test_a_delegation_is_not_final_while_the_run_is_open(bench):
    """The outer agent may turn out to be a wrapper, once the inner one has called a tool."""
    layers = [
        Item("agent", "read", 0, False, False, False, 0, False, other_scope=True),
        Item("agent", "read", 0, False, False, False, 1, False),
        Item("tool", "write", 1, False, False, False, 0, False, other_scope=True),
        Item("chat", "write", 2, False, True, False, 24, True),
    ]
    outer, inner, tool, model = spans_of(layers, 4)

    assert not follow(bench, [[[inner, model], [outer], [tool]]]) & {"a2"}


@pytest.mark.smoke
def test_what_cannot_be_joined_is_final_while_the_run_is_open(bench):
    """Calls side by side below a root that is known are counted for good."""
    layers = [Item("agent", "read", 0, False, False, False, 0, False)]
    layers += [Item("tool", "read", 0, False, False, False, 0, False) for _ in range(4)]
    layers += [Item("chat", "read", 0, False, False, False, 40, False) for _ in range(3)]

    early = follow(bench, [[spans_of(layers, 3), []]])

    assert early >= {"at-most-3", "at-most-2-answers", "strict", "two-reads"}
    assert "tokens" not in early
