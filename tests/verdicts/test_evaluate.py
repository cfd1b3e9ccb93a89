"""From outcome to verdict: what is final, what is unknown, and what the message says of it (assertions.md §2, §9)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from building import Lab, S, agent, asks, chat, hex_id, tool

from clawtrace.assertions.base import Assertion
from clawtrace.assertions.forms.form import Form, Outcome
from clawtrace.assertions.registry import parse_assertion
from clawtrace.dialects.load import load_dialects
from clawtrace.model.query import Query, Resolve
from clawtrace.model.run import ClosedBy, RunRecord
from clawtrace.model.verdict import RunResult, Status, Verdict
from clawtrace.verdicts.evaluate import evaluate

DIALECTS = {dialect.name: dialect for dialect in load_dialects()}


def judge(lab: Lab, *assertions: Any, run: str = "r") -> RunResult:
    lab.facts.ensure([run])
    parsed = [a if isinstance(a, Assertion) else parse_assertion(a) for a in assertions]
    (result,) = evaluate(lab.store, parsed, [run], DIALECTS)
    return result


def verdict(lab: Lab, assertion: Any) -> Verdict:
    return judge(lab, assertion).verdicts[0]


WAS_CALLED = {"type": "tool_was_called", "tool": "get_weather"}
NOT_INVOKED = {"type": "tool_not_invoked", "tool": "rm"}
BUDGET = {"type": "trace_token_budget", "max_input_tokens": 150}


def whole(lab: Lab) -> Lab:
    return lab.put(agent("a"), chat("m", "a", at=1), tool("t", "a", at=9))


def lossy(lab: Lab) -> Lab:
    """A run that lost the parent of a span."""
    return lab.put(agent("a"), chat("m", "a", at=1), tool("t", "lost", at=9))


class TestCompleteRun:
    def test_pass_and_fail(self, lab: Lab) -> None:
        whole(lab)

        assert [v.status for v in judge(lab, WAS_CALLED, NOT_INVOKED, BUDGET).verdicts] == [Status.PASS] * 3
        assert verdict(lab, {"type": "tool_was_called", "tool": "rm"}).status is Status.FAIL

    def test_a_verdict_shows_what_decided_it(self, lab: Lab) -> None:
        """§9: the sentence, expected, actual, spans, and the SQL with its parameters."""
        whole(lab)
        found = verdict(lab, {"type": "tool_not_invoked", "tool": "get_weather", "id": "no-weather"})

        assert (found.status, found.id, found.final) == (Status.FAIL, "no-weather", True)
        assert "get_weather" in found.message
        assert [(e.span_id, e.name) for e in found.evidence] == [(hex_id("t"), "execute_tool get_weather")]
        assert "selected_runs" in found.sql
        assert found.params


class TestIncompleteRun:
    """T2: a negative assertion on a partial trace never passes."""

    @pytest.mark.parametrize("assertion", [NOT_INVOKED, BUDGET, {"type": "no_span_errors"}], ids=lambda a: a["type"])
    def test_what_more_spans_could_break_is_inconclusive(self, lab: Lab, assertion: dict[str, Any]) -> None:
        found = verdict(lossy(lab), assertion)

        assert found.status is Status.INCONCLUSIVE
        assert not found.final
        assert re.search("(never|not) received", found.message + found.hint)
        assert "gen_ai." not in found.hint  # no attribute would settle it

    def test_what_was_seen_stays_true(self, lab: Lab) -> None:
        """A growing question that holds, and a shrinking one that is broken, are final."""
        lossy(lab)

        assert verdict(lab, WAS_CALLED).status is Status.PASS
        assert verdict(lab, {"type": "tool_not_invoked", "tool": "get_weather"}).status is Status.FAIL
        assert verdict(lab, {"type": "trace_token_budget", "max_input_tokens": 50}).status is Status.FAIL

    def test_what_ended_the_agent_is_in_the_sentence(self, lab: Lab) -> None:
        """A signal leaves no exit code: the sentence names it."""
        ended = RunRecord("r", "r", run_status="failed", ended_by_signal=9, closed_by=ClosedBy.EXIT)
        found = verdict(lab.put(agent("a"), record=ended), {"type": "status_is", "status": "success"})

        assert found.message == "The run ended as `failed`, expected `success`. The agent was killed by signal 9."

    def test_an_open_run_is_not_judged_by_what_is_missing(self, lab: Lab) -> None:
        lab.put(agent("a"), chat("m", "a", at=1), record=RunRecord("r", "r"))
        found = verdict(lab, NOT_INVOKED)

        assert found.status is Status.INCONCLUSIVE
        assert "not closed yet" in found.message
        assert found.hint.startswith("End the run: ")


class TestNoTrace:
    def test_skip_with_the_usual_causes(self, lab: Lab) -> None:
        """T1: an exporter that is silently dead is no pass."""
        lab.put(record=RunRecord("r", "r", closed_by=ClosedBy.EXIT))
        result = judge(lab, NOT_INVOKED, WAS_CALLED)

        assert [v.status for v in result.verdicts] == [Status.SKIP, Status.SKIP]
        assert result.status is Status.SKIP
        assert not result.has_trace
        assert "Nothing arrived at all" in result.verdicts[0].hint

    @pytest.mark.parametrize("status", ["fail", "inconclusive", "pass", "skip"])
    def test_on_missing_decides(self, lab: Lab, status: str) -> None:
        lab.put(record=RunRecord("r", "r", closed_by=ClosedBy.EXIT))

        assert verdict(lab, {**NOT_INVOKED, "on_missing": status}).status == status

    def test_a_status_that_on_missing_gives_needs_no_leave(self, lab: Lab) -> None:
        """`allow_missing_data` is for what the assertion itself cannot know."""
        lab.put(record=RunRecord("r", "r", closed_by=ClosedBy.EXIT))

        assert not verdict(lab, {**NOT_INVOKED, "on_missing": "pass"}).missing_data


class TestUnknownFacts:
    def test_the_setting_that_would_record_it(self, lab: Lab) -> None:
        whole(lab)
        found = verdict(lab, {"type": "tool_call", "tool": "get_weather", "args": {"city": "Paris"}})

        assert found.status is Status.INCONCLUSIVE
        assert "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT" in found.hint

    def test_tool_calls_that_cannot_be_known(self, lab: Lab) -> None:
        """Model spans alone that asked for tools: `tool_not_invoked` must not pass."""
        lab.put(chat("m1", at=1, **{"gen_ai.response.finish_reasons": ["tool_calls"]}), chat("m2", at=9))

        assert verdict(lab, NOT_INVOKED).status is Status.INCONCLUSIVE

    def test_cost_without_any_price_warns_for_missing_data(self, lab: Lab) -> None:
        mine = {"gen_ai.request.model": "house", "gen_ai.response.model": "house", "gen_ai.provider.name": "house"}
        lab.put(agent("a"), chat("m", "a", at=1, **mine))
        found = verdict(lab, {"type": "trace_cost", "max_usd": 1})

        assert (found.status, found.missing_data) == (Status.WARN, True)
        assert "model_pricing" in found.hint

    def test_small_costs_are_decimals(self, lab: Lab) -> None:
        lab.put(chat("m", **{"gen_ai.usage.input_tokens": 10, "gen_ai.usage.output_tokens": 0}))
        found = verdict(lab, {"type": "trace_cost", "max_usd": 0.000001})

        assert found.status is Status.FAIL
        assert found.message.endswith(" USD, over 0.000001 USD.")
        assert "e-" not in found.message

    def test_a_price_is_asked_for_only_where_one_is_missing(self, lab: Lab) -> None:
        """Calls without tokens, and no call at all, warn as well: no price would help."""
        lab.put(chat("m", **{"gen_ai.usage.input_tokens": None, "gen_ai.usage.output_tokens": None}))
        without_price = verdict(lab, {"type": "trace_cost", "max_usd": 1})
        lab.put(agent("a"), run="silent")
        (silent,) = judge(lab, {"type": "trace_cost", "max_usd": 1}, run="silent").verdicts

        for found in (without_price, silent):
            assert (found.status, found.missing_data) == (Status.WARN, True)
            assert "price" not in found.hint

    def test_delegation_that_cannot_be_seen_warns(self, lab: Lab) -> None:
        lab.put(chat("m", at=1))

        assert verdict(lab, {"type": "delegation_path", "expected": ["a", "b"]}).status is Status.WARN

    def test_requested_calls_may_be_attempts(self, lab: Lab) -> None:
        """Of a request nothing tells whether it was carried out, unless there is a span for every execution."""
        lab.put(agent("a"), chat("m", "a", at=1, **{"gen_ai.output.messages": asks(("c", "rm", {}))}))

        assert verdict(lab, NOT_INVOKED).status is Status.INCONCLUSIVE


class TestSeverity:
    def test_a_warning_weighs_as_warn(self, lab: Lab) -> None:
        whole(lab)
        result = judge(lab, {"type": "tool_was_called", "tool": "rm", "severity": "warn"}, WAS_CALLED)

        assert result.verdicts[0].status is Status.FAIL
        assert result.status is Status.WARN

    def test_nothing_asked_is_no_status(self, lab: Lab) -> None:
        assert judge(whole(lab)).status is None


@dataclass(frozen=True)
class _BrokenForm(Form):
    sql: str
    fact = "runs"

    def resolve(self) -> Sequence[Resolve]:
        return ()

    def query(self) -> Query:
        return Query(self.sql)

    def sentence(self, outcome: Outcome) -> str:
        return f"{outcome.holds}"


class _Broken(Assertion):
    """A question whose SQL is wrong in one way or another."""

    sql: str

    def question(self) -> Form:
        return _BrokenForm(self.sql)

    def expectation(self) -> Any:
        return None


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT nothing FROM nowhere",
        "SELECT s.run_id AS run_id, TRUE AS holds FROM selected_runs AS s WHERE FALSE",
    ],
    ids=["refused", "forgets the run"],
)
def test_a_broken_assertion_is_an_error_never_a_pass(lab: Lab, sql: str) -> None:
    found = verdict(whole(lab), _Broken(sql=sql))

    assert found.status is Status.ERROR
    assert "could not be evaluated" in found.message


def test_a_run_id_inside_another_is_another_run(lab: Lab) -> None:
    """T29: r1 and r10."""
    lab.put(agent("a"), tool("t", "a", at=1, tool="rm"), run="r10")
    lab.put(agent("a"), tool("t", "a", at=1), run="r1")

    assert judge(lab, NOT_INVOKED, run="r1").status is Status.PASS
    assert judge(lab, NOT_INVOKED, run="r10").status is Status.FAIL


def test_a_whole_trace_without_agent_or_model_spans_is_judged(lab: Lab) -> None:
    lab.put(S("a", attrs={"http.request.method": "GET"}), S("b", "a", 1))

    assert verdict(lab, {"type": "trace_duration", "max_ms": 5}).status is Status.PASS
