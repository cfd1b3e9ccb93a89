"""`agent` and `turn`: a question about a part of a run sees that part, whole, and nothing else (assertions.md §1, §2)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from building import TRACE, Lab, S, agent, asks, chat, hex_id, says, tool

from clawtrace.assertions.matching.matchers import Matcher
from clawtrace.assertions.registry import parse_assertion
from clawtrace.dialects.load import load_dialects
from clawtrace.errors import QueryError
from clawtrace.facts.normaliser import Normaliser
from clawtrace.facts.scopes.scopes import Scope
from clawtrace.model.run import ClosedBy, RunRecord
from clawtrace.model.verdict import RunResult, Status, Verdict
from clawtrace.receiver.recordings.recording import Grouping
from clawtrace.session.session import Session
from clawtrace.verdicts.evaluate import evaluate

DIALECTS = {dialect.name: dialect for dialect in load_dialects()}
RECORDINGS = Path(__file__).parents[1] / "recordings"
OTHER = f"{2:032x}"
THIRD = f"{3:032x}"


def judge(lab: Lab, *assertions: dict[str, Any], run: str = "r") -> RunResult:
    lab.facts.ensure([run])
    parsed = [parse_assertion(assertion) for assertion in assertions]
    (result,) = evaluate(lab.store, parsed, [run], DIALECTS, scoped=lab.facts.scoped)
    return result


def verdict(lab: Lab, assertion: dict[str, Any], **scope: Any) -> Verdict:
    return judge(lab, assertion | scope).verdicts[0]


def elsewhere(span: S, trace: str = OTHER) -> S:
    span.trace = trace
    return span


MINI = {"gen_ai.request.model": "gpt-4o-mini", "gen_ai.response.model": "gpt-4o-mini"}


def two_agents(lab: Lab) -> Lab:
    """`boss` calls the model twice (100 and 900 input tokens) and searches; its `helper` calls it once and sends, in vain."""
    return lab.put(
        agent("b", agent="boss", at=1, to=100),
        chat("m1", "b", at=2),
        tool("t1", "b", at=10, tool="search"),
        agent("h", "b", at=20, to=50, agent="helper"),
        chat("m2", "h", at=21, **MINI, **{"gen_ai.output.messages": says("21 degrees")}),
        S("t2", "h", 30, 40, "execute_tool send", tool("x", tool="send").attrs, error="no route"),
        chat("m3", "b", at=60, **{"gen_ai.usage.input_tokens": 900, "gen_ai.output.messages": says("done")}),
    )


WITHIN = [
    ({"type": "tool_was_called", "tool": "search"}, "pass", "fail"),
    ({"type": "tool_not_invoked", "tool": "send"}, "fail", "fail"),
    ({"type": "tool_not_called", "tool": "search"}, "fail", "pass"),
    ({"type": "tool_call_count", "count": 1}, "fail", "pass"),
    ({"type": "tool_call_count", "count": 2}, "pass", "fail"),
    ({"type": "tool_sequence", "expected": ["send"], "mode": "strict"}, "fail", "pass"),
    ({"type": "tool_call", "tool": "send", "status": "error"}, "pass", "pass"),
    ({"type": "llm_call_count", "max": 1}, "fail", "pass"),
    ({"type": "model_used", "only": ["gpt-4o-mini"]}, "fail", "pass"),
    ({"type": "trace_token_budget", "max_input_tokens": 100}, "fail", "pass"),
    ({"type": "trace_token_budget", "max_input_tokens": 1099}, "fail", "pass"),
    ({"type": "trace_cost", "max_usd": 0.0001}, "fail", "pass"),
    ({"type": "per_span_budget", "max_tokens": 500}, "fail", "pass"),
    ({"type": "trace_duration", "max_ms": 30}, "fail", "pass"),
    ({"type": "trace_duration", "max_ms": 29}, "fail", "fail"),
    ({"type": "span_duration", "span_type": "agent", "max_ms": 30}, "fail", "pass"),
    ({"type": "no_span_errors"}, "fail", "fail"),
    ({"type": "delegation_path", "expected": ["boss", "helper"]}, "pass", "fail"),
    ({"type": "delegation_path", "expected": ["helper"], "mode": "path"}, "fail", "pass"),
    ({"type": "final_response", "contains": "21"}, "fail", "pass"),
]


@pytest.mark.parametrize(
    ("assertion", "of_boss", "of_helper"), WITHIN, ids=lambda x: x["type"] if isinstance(x, dict) else x
)
@pytest.mark.full
def test_a_question_about_an_agent_sees_that_agent_and_whom_it_delegated_to(
    lab: Lab, assertion: dict[str, Any], of_boss: str, of_helper: str
) -> None:
    """What the helper did is under both of them; what the boss did is its own."""
    two_agents(lab)
    found = judge(lab, assertion, assertion | {"agent": "boss"}, assertion | {"agent": "helper"})

    assert [one.status.value for one in found.verdicts] == [of_boss, of_boss, of_helper]


def test_a_verdict_says_its_scope(lab: Lab) -> None:
    """In the sentence, in the SQL, in the evidence, and as data."""
    two_agents(lab)
    found = verdict(lab, {"type": "tool_not_invoked", "tool": "search"}, agent="glob:help*", turn=1)

    assert found.status is Status.PASS
    assert found.message == "Within agent `glob:help*`, turn 1: `search` was never attempted."
    assert found.sql.startswith("/* Asked within agent `glob:help*`, turn 1: the relations contain what belongs to it")
    assert found.scope == {"agent": "glob:help*", "turn": 1}
    assert [(one.span_id, one.why) for one in found.evidence] == [(hex_id("h"), "agent helper begins here")]


def test_evidence_comes_from_the_scope_alone(lab: Lab) -> None:
    lab.put(
        agent("b", agent="boss", to=100), tool("t1", "b", at=10, tool="send"),
        agent("h", "b", at=20, to=50, agent="helper"), tool("t2", "h", at=30, tool="send"),
    )  # fmt: skip
    found = verdict(lab, {"type": "tool_not_invoked", "tool": "send"}, agent="helper")

    assert found.status is Status.FAIL
    assert [one.span_id for one in found.evidence] == [hex_id("t2"), hex_id("h")]


def test_whole_runs_are_asked_as_ever_next_to_it(lab: Lab) -> None:
    """The relations are the whole run's again, in whatever order the questions come."""
    two_agents(lab)
    count = {"type": "llm_call_count", "min": 3, "max": 3}
    found = judge(lab, count, count | {"agent": "helper"}, count, count | {"turn": 1}, count | {"agent": "boss"})

    assert [one.status.value for one in found.verdicts] == ["pass", "fail", "pass", "pass", "pass"]
    assert lab.rows("SELECT count(*) FROM llm_calls") == [(3,)]


def test_without_the_raw_rows_a_scope_is_refused(lab: Lab) -> None:
    """It is never asked of the whole run instead."""
    two_agents(lab).facts.ensure(["r"])
    with pytest.raises(QueryError, match="`agent` or `turn` needs the raw rows"):
        evaluate(lab.store, [parse_assertion({"type": "no_span_errors", "agent": "boss"})], ["r"], DIALECTS)


NEVER = {"type": "tool_not_invoked", "tool": "rm"}


class TestNothingInScope:
    """A question that met no data never passes."""

    def test_no_agent_of_that_name(self, lab: Lab) -> None:
        found = verdict(two_agents(lab), NEVER, agent="help")

        assert (found.status, found.missing, found.final) == (Status.INCONCLUSIVE, "scope", False)
        assert (
            found.message
            == "There is no data for this scope: no agent `help` is recorded; the agents were `boss`, `helper`."
        )

    @pytest.mark.parametrize("status", ["skip", "fail", "pass"])
    def test_on_missing_decides(self, lab: Lab, status: str) -> None:
        found = verdict(two_agents(lab), NEVER, agent="help", on_missing=status)

        assert found.status.value == status
        assert found.message.endswith(f"`on_missing: {status}` decides.")

    def test_an_instrumentation_that_shows_no_agents(self, lab: Lab) -> None:
        lab.put(chat("m", at=1), tool("t", at=9))
        found = verdict(lab, NEVER, agent="boss")

        assert (found.status, found.missing) == (Status.INCONCLUSIVE, "scope")
        assert "whether agent `boss` worked is unknown: no agent is recorded." in found.message

    def test_an_agent_without_a_name_may_be_meant(self, lab: Lab) -> None:
        lab.put(agent("b", agent=None, to=100), tool("t", "b", at=1))
        found = verdict(lab, NEVER, agent="boss")

        assert (found.status, found.missing) == (Status.INCONCLUSIVE, "scope")

    def test_a_turn_that_never_was(self, lab: Lab) -> None:
        found = verdict(two_agents(lab), NEVER, turn=2)

        assert (found.status, found.missing) == (Status.INCONCLUSIVE, "scope")
        assert found.message == "There is no data for this scope: the run has one turn."

    def test_an_agent_that_was_at_work_in_another_turn(self, lab: Lab) -> None:
        at_night = agent("n", agent="night", at=200, to=220), chat("z", "n", at=205)
        two_agents(lab).put(*map(elsewhere, at_night), arrival=50)
        found = verdict(lab, NEVER, agent="night", turn=1)

        assert (found.status, found.missing) == (Status.INCONCLUSIVE, "scope")
        assert "agent `night` did not work in this turn" in found.message
        assert verdict(lab, NEVER, agent="night", turn="last").status is Status.PASS

    def test_no_trace_is_a_skip(self, lab: Lab) -> None:
        lab.store.put_record(RunRecord("r", "r", closed_by=ClosedBy.RECORDING))
        found = verdict(lab, NEVER, agent="boss")

        assert (found.status, found.missing) == (Status.SKIP, "trace")
        assert found.scope == {"agent": "boss"}


class TestDoubt:
    """What may belong to the agent, and nothing says so, is asked with and without."""

    def stray(self, lab: Lab, *spans: S) -> Lab:
        """The boss has one trace; what is in the other one works for no agent that is recorded."""
        return lab.put(
            agent("b", agent="boss", to=100), chat("m", "b", at=1), tool("t", "b", at=9), *map(elsewhere, spans)
        )

    def test_it_could_matter(self, lab: Lab) -> None:
        self.stray(lab, tool("x", at=50, tool="rm"))
        found = verdict(lab, {"type": "tool_not_invoked", "tool": "rm"}, agent="boss")

        assert (found.status, found.missing) == (Status.INCONCLUSIVE, "tool_calls")
        assert found.message.endswith("To which agent or turn a span or call belongs is not known.")
        assert [(one.span_id, one.why) for one in found.evidence] == [
            (hex_id("x"), "rm: ok (in doubt: To which agent or turn a span or call belongs is not known.)"),
            (hex_id("b"), "agent boss begins here"),
        ]

    def test_an_answer_that_may_be_of_a_lost_model_call(self, lab: Lab) -> None:
        """The parent of a request is lost: of whom the model call is that answered is not known for any agent around it."""
        lost = S("post", "lost", 1, 2, "POST", {"http.request.method": "POST"}, kind="Client")
        said = chat("m", "w", at=41, **{"gen_ai.output.messages": says("done")})
        lab.put(agent("p", agent="planner", to=53), lost, agent("w", "p", agent="writer", at=40, to=52), said)
        found = verdict(lab, {"type": "final_response", "contains": "done"}, agent="planner")

        assert found.status is Status.INCONCLUSIVE

    def test_which_agent_made_a_call(self, lab: Lab) -> None:
        self.stray(lab, tool("x", at=50, tool="rm"))
        found = verdict(lab, {"type": "tool_call", "tool": "rm", "by_agent": "boss"})

        assert found.status == Status.INCONCLUSIVE
        assert found.message.endswith("To which agent or turn a span or call belongs is not known.")

    def test_it_could_not_matter(self, lab: Lab) -> None:
        """Another tool, another question, or an answer that nothing can take back."""
        self.stray(lab, tool("x", at=50, tool="ls"))

        assert verdict(lab, {"type": "tool_not_invoked", "tool": "rm"}, agent="boss").status is Status.PASS
        assert verdict(lab, {"type": "tool_call_count", "tool": "rm", "count": 0}, agent="boss").status is Status.PASS
        assert verdict(lab, {"type": "llm_call_count", "max": 1}, agent="boss").status is Status.PASS
        assert verdict(lab, {"type": "tool_was_called", "tool": "get_weather"}, agent="boss").status is Status.PASS
        assert verdict(lab, {"type": "tool_not_invoked", "tool": "get_weather"}, agent="boss").status is Status.FAIL

    def test_an_exact_number_between_two_wrong_ones_is_open(self, lab: Lab) -> None:
        """1 and 3 are not 2, and yet one of the two stray calls may belong to it."""
        self.stray(lab, tool("x", at=50), tool("y", at=60))
        found = verdict(lab, {"type": "tool_call_count", "count": 2}, agent="boss")

        assert found.status is Status.INCONCLUSIVE
        assert verdict(lab, {"type": "tool_call_count", "min": 4}, agent="boss").status is Status.FAIL

    def test_what_is_next_to_an_agent_in_its_own_trace_is_not_its_own(self, lab: Lab) -> None:
        lab.put(
            S("root", to=200),
            agent("b", "root", agent="boss", to=100),
            chat("m", "b", at=1),
            tool("x", "root", at=150, tool="rm"),
        )

        assert verdict(lab, {"type": "tool_not_invoked", "tool": "rm"}, agent="boss").status is Status.PASS

    def test_an_agent_without_a_name_below_another_trace(self, lab: Lab) -> None:
        """It may be a second activation of the agent."""
        self.stray(lab, agent("n", agent=None, at=40, to=90))
        lab.put(elsewhere(tool("x", "n", at=50, tool="rm")), arrival=50)
        found = verdict(lab, {"type": "tool_not_invoked", "tool": "rm"}, agent="boss")

        assert found.status is Status.INCONCLUSIVE
        assert "To which agent or turn a span or call belongs is not known." in found.message

    def test_a_span_that_is_in_no_turn(self, lab: Lab) -> None:
        lab.put(agent("b", agent="boss"), chat("m", "b", at=1), elsewhere(tool("x", at=50, tool="rm")))
        found = verdict(lab, {"type": "tool_not_invoked", "tool": "rm"}, turn=1)

        assert (found.status, found.missing) == (Status.INCONCLUSIVE, "tool_calls")


class TestWhoseAgentWasNotReceived:
    """The boss handed over, and neither name nor span of the other agent arrived: what started later without a parent may be that agent."""

    def handed_over(self, lab: Lab, night_at: int) -> Verdict:
        handoff = {"gen_ai.operation.name": "handoff", "gen_ai.handoff.from_agent": "boss"}
        lab.put(
            agent("b", agent="boss", at=1, to=30), tool("l", "b", at=2), S("h", "b", 20, 21, "handoff", handoff),
            elsewhere(agent("n", agent="night", at=night_at, to=90)), elsewhere(tool("x", "n", at=80, tool="rm")),
        )  # fmt: skip
        return verdict(lab, {"type": "tool_not_invoked", "tool": "rm"}, agent="boss")

    @pytest.mark.parametrize("night_at", [20, 40])
    def test_what_started_since_may_be_it(self, lab: Lab, night_at: int) -> None:
        assert self.handed_over(lab, night_at).status is Status.INCONCLUSIVE

    def test_what_started_before_is_not(self, lab: Lab) -> None:
        assert self.handed_over(lab, 10).status is Status.PASS

    def test_nor_is_it_where_another_agent_handed_over(self, lab: Lab) -> None:
        handoff = {"gen_ai.operation.name": "handoff", "gen_ai.handoff.from_agent": "clerk"}
        lab.put(
            agent("b", agent="boss", at=1, to=15), tool("l", "b", at=2), agent("k", agent="clerk", at=16, to=30), S("h", "k", 20, 21, "handoff", handoff),
            elsewhere(agent("n", agent="night", at=40, to=90)), elsewhere(tool("x", "n", at=80, tool="rm")),
        )  # fmt: skip

        assert verdict(lab, {"type": "tool_not_invoked", "tool": "rm"}, agent="boss").status is Status.PASS

    def test_what_another_agent_started_is_not(self, lab: Lab) -> None:
        lab.put(
            elsewhere(agent("m", agent="manager", at=5, to=100)),
            elsewhere(chat("c", "m", at=10, to=20)),
            elsewhere(agent("n", "m", agent="night", at=40, to=90)),
            elsewhere(tool("y", "n", at=81, tool="rm")),
            arrival=50,
        )
        handoff = {"gen_ai.operation.name": "handoff", "gen_ai.handoff.from_agent": "boss"}
        boss = agent("b", agent="boss", at=1, to=30), tool("l", "b", at=2)
        lab.put(*boss, S("h", "b", 20, 21, "handoff", handoff), arrival=90)

        assert verdict(lab, {"type": "tool_not_invoked", "tool": "rm"}, agent="boss").status is Status.PASS


class TestUnfinishedRun:
    """On a run that is not whole only what stays in the scope for sure is final."""

    def lossy(self, lab: Lab) -> Lab:
        return lab.put(
            agent("b", agent="boss", to=100), tool("t", "b", at=10, tool="rm"), S("lost", "never", 5),
            elsewhere(agent("n", agent="night", at=200, to=220)), elsewhere(tool("u", "n", at=201, tool="rm")),
        )  # fmt: skip

    def test_what_hangs_below_the_agent_stays_there(self, lab: Lab) -> None:
        found = verdict(self.lossy(lab), {"type": "tool_not_invoked", "tool": "rm"}, agent="boss")

        assert (found.status, found.final) == (Status.FAIL, True)

    def test_the_number_of_a_turn_may_change(self, lab: Lab) -> None:
        """An earlier turn may be among what was lost."""
        found = verdict(self.lossy(lab), {"type": "tool_not_invoked", "tool": "rm"}, turn=2)

        assert (found.status, found.final) == (Status.INCONCLUSIVE, False)
        assert "More spans could change this" in found.message

    def test_never_is_open(self, lab: Lab) -> None:
        assert (
            verdict(self.lossy(lab), {"type": "tool_not_invoked", "tool": "ls"}, agent="boss").status
            is Status.INCONCLUSIVE
        )


def test_turns_are_distinguished(lab: Lab) -> None:
    """Three traces are three turns; `last` is the third."""
    for number, trace in enumerate((TRACE, OTHER, THIRD)):
        spans = (
            agent(f"a{number}", at=100 * number, to=100 * number + 50),
            tool(f"t{number}", f"a{number}", at=100 * number + 1, tool=f"step{number}"),
        )
        lab.put(*(elsewhere(span, trace) for span in spans), arrival=10 * number + 1)
    strict = [{"type": "tool_sequence", "expected": [f"step{n}"], "mode": "strict"} for n in range(3)]

    assert [
        one.status.value for one in judge(lab, *(one | {"turn": n + 1} for n, one in enumerate(strict))).verdicts
    ] == ["pass"] * 3
    assert verdict(lab, strict[2], turn="last").status is Status.PASS
    assert verdict(lab, strict[0], turn="last").status is Status.FAIL


def test_what_the_run_does_not_leave_open_no_turn_does(lab: Lab) -> None:
    """One turn shows that tool calls are recorded; another without any had none."""
    nothing = {"gen_ai.response.finish_reasons": None, "gen_ai.output.messages": None}
    lab.put(agent("a1", to=50), chat("m1", "a1", at=1, **nothing), tool("t1", "a1", at=9, tool="step"))
    second = agent("a2", at=100, to=150), chat("m2", "a2", at=101, **nothing)
    lab.put(*(elsewhere(span) for span in second), arrival=10)

    none = {"type": "tool_call_count", "max": 0}
    assert verdict(lab, {"type": "tool_call_count", "count": 1}).status is Status.PASS
    assert verdict(lab, none, turn=2).status is Status.PASS
    assert verdict(lab, none, turn=1).status is Status.FAIL


def test_the_answer_of_an_agent_that_was_at_work_twice_is_its_last_one(lab: Lab) -> None:
    for number, answer in enumerate(("first", "second")):
        lab.put(agent("b", agent="boss", to=100)) if not number else None
        lab.put(
            agent(f"h{number}", "b", at=10 + 20 * number, to=20 + 20 * number, agent="helper"),
            chat(f"m{number}", f"h{number}", at=11 + 20 * number, **{"gen_ai.output.messages": says(answer)}),
            arrival=10 + 10 * number,
        )

    assert verdict(lab, {"type": "final_response", "equals": "second"}, agent="helper").status is Status.PASS


def test_a_call_known_from_messages_alone_belongs_to_the_agent_that_asked(lab: Lab) -> None:
    lab.put(
        agent("b", agent="boss", to=100), agent("h", "b", at=20, to=50, agent="helper"),
        chat("m", "h", at=21, **{"gen_ai.output.messages": asks(("c1", "search", {}))}),
    )  # fmt: skip
    within = lab.facts.scoped([Scope(Matcher("helper"), None)], ["r"])[Scope(Matcher("helper"), None)]

    with within.holding():
        assert lab.store.script("SELECT name, span_id, certain FROM tool_calls") == [("search", None, False)]


def test_facts_and_scopes_are_read_from_the_raw_rows_once(monkeypatch: pytest.MonkeyPatch, lab: Lab) -> None:
    """Where a run's facts are out of date they are computed once, for the whole run and for its parts; else for the parts."""
    read: list[dict[int, str]] = []
    rows = Normaliser.rows

    def counted(self: Normaliser, side: Any, run_ids: dict[int, str]) -> Any:
        read.append(run_ids)
        return rows(self, side, run_ids)

    monkeypatch.setattr(Normaliser, "rows", counted)
    two_agents(lab).put(agent("o", agent="other"), run="q")
    helper = Scope(Matcher("helper"), None)

    lab.facts.ensure(["r", "q"], scopes=[helper])
    found = lab.facts.scoped([helper], ["r"])[helper]
    assert [list(run_ids.values()) for run_ids in read] == [["r", "q"]]
    again = lab.facts.scoped([helper], ["r"])[helper]
    assert [list(run_ids.values()) for run_ids in read[1:]] == [["r"]]
    assert found.runs == again.runs
    assert list(found.runs) == ["r"]

    two_agents(lab)
    lab.facts.ensure(["r", "q"], scopes=[helper])
    assert list(lab.facts.scoped([helper], ["r", "q"])[helper].runs) == ["r", "q"]
    assert [list(run_ids.values()) for run_ids in read[2:]] == [["r"], ["q"]]


def test_a_running_total_is_not_what_its_turn_used(lab: Lab) -> None:
    """That of the second crew may include what the first used, which is known."""
    for turn, (trace, tokens) in enumerate(((TRACE, 50), (OTHER, 80))):
        usage = {
            "crewai.crew.usage_metrics": repr(
                {"prompt_tokens": tokens, "completion_tokens": 5, "successful_requests": 1}
            )
        }
        at = 100 * turn
        scope = "opentelemetry.instrumentation.crewai.instrumentation"
        crew = S(f"c{turn}", name="crewai.workflow", at=at, to=at + 50, attrs=usage, scope=scope)
        lab.put(elsewhere(crew, trace), elsewhere(agent(f"a{turn}", f"c{turn}", at=at + 1, to=at + 40), trace))
    budgets = [
        ({"type": "trace_token_budget", "max_input_tokens": most}, turn) for most, turn in ((50, 1), (49, 1), (79, 2))
    ]

    assert [verdict(lab, budget, turn=turn).status for budget, turn in budgets] == [
        Status.PASS,
        Status.FAIL,
        Status.INCONCLUSIVE,
    ]


RECORDED = sorted(path.parent.relative_to(RECORDINGS) for path in RECORDINGS.glob("*/*/truth.json"))[::4]
COMPARED = (
    "llm_calls",
    "tool_calls",
    "tool_requests",
    "commands",
    "agents",
    "errors",
    "run_totals",
    "run_tools",
    "messages",
    "runs",
)
SUMS = ("llm_calls", "tool_calls", "input_tokens", "output_tokens", "errors")

OF_AGENT = """
WITH RECURSIVE mine(no, span_id) AS (
  SELECT a.activation_no, a.span_id FROM agents AS a WHERE a.run_id = $run AND a.name = $name
  UNION
  SELECT a.activation_no, a.span_id FROM agents AS a JOIN mine AS m ON a.run_id = $run AND a.parent_activation_no = m.no)
SELECT (SELECT count(*) FROM llm_calls WHERE run_id = $run AND agent_span_id IN (SELECT m.span_id FROM mine AS m)),
       (SELECT count(*) FROM tool_calls WHERE run_id = $run AND agent_span_id IN (SELECT m.span_id FROM mine AS m))
"""
TOGETHER = 16


@pytest.fixture(scope="module", params=range(0, len(RECORDED), TOGETHER))
def recorded(request: pytest.FixtureRequest) -> Iterator[Session]:
    """A session with some recordings, each a run of its path, their facts current."""
    with Session.open() as session:
        for path in RECORDED[request.param : request.param + TOGETHER]:
            session.load_recordings([RECORDINGS / path], Grouping("one", str(path)))
        session.inspect(session.run_ids())
        yield session


def scoped(session: Session, *scopes: Scope) -> Any:
    run_ids = session.run_ids()
    return session._current(run_ids).facts.scoped(scopes, run_ids).items()


def asked(session: Session, sql: str, run: str, **more: str) -> list[tuple[Any, ...]]:
    """Return the rows of one run; `sql` ends with a condition."""
    return session._store.script(f"{sql} AND run_id = $run" if "$run" not in sql else sql, {"run": run, **more})


def rows(session: Session, relation: str, run: str) -> list[tuple[Any, ...]]:
    return sorted(asked(session, f"SELECT * FROM {relation} WHERE TRUE", run), key=repr)


@pytest.mark.full
def test_the_scope_that_holds_everything_says_what_the_whole_run_says(recorded: Session) -> None:
    """The rows of every relation are the same, totals among them: there is one way to compute them."""
    whole = {(run, relation): rows(recorded, relation, run) for run in recorded.run_ids() for relation in COMPARED}
    holding = dict[Scope, list[str]]()
    for run in recorded.run_ids():
        if asked(recorded, "SELECT count(DISTINCT turn) FROM spans WHERE turn IS NOT NULL", run)[0][0] != 1:
            continue
        holding.setdefault(Scope(None, 1), []).append(run)
        roots = asked(recorded, "SELECT name FROM agents WHERE parent_activation_no IS NULL", run)
        # Spans around the agent are no agent's.
        outside = asked(recorded, "SELECT count(*) FROM spans WHERE kind NOT IN ('infra', 'agent') AND depth = 0", run)
        if len(roots) == 1 and roots[0][0] is not None and not outside[0][0]:
            holding.setdefault(Scope(Matcher(roots[0][0]), None), []).append(run)
    for scope, facts in scoped(recorded, *holding):
        with facts.holding():
            for run in holding[scope]:
                doubted = "SELECT reason FROM doubts WHERE run_id = $run UNION ALL SELECT reason FROM gaps WHERE run_id = $run"
                if ("scope-unknown",) not in asked(recorded, doubted, run):
                    for relation in COMPARED:
                        assert rows(recorded, relation, run) == whole[run, relation], (run, relation, str(scope))


@pytest.mark.full
def test_the_calls_of_an_agent_are_those_that_the_relations_give_to_it(recorded: Session) -> None:
    """An activation of the name or one that it delegated to made them: the same said in SQL, over the published facts.

    Calls in traces of their own are of no activation, and belong to the agent that they name; what an agent did whose caller is not
    known may belong to each.
    """
    wanted = dict[str, dict[str, Any]]()
    alone = set[str]()
    for run in recorded.run_ids():
        for (name,) in asked(recorded, "SELECT DISTINCT name FROM agents WHERE name IS NOT NULL", run):
            wanted.setdefault(name, {})[run] = asked(recorded, OF_AGENT, run, name=name)
        if asked(recorded, "SELECT span_id FROM spans WHERE kind IN ('llm', 'tool') AND depth = 0", run) or asked(
            recorded, "SELECT reason FROM doubts WHERE column_name = 'parent_activation_no'", run
        ):
            alone.add(run)
    for scope, facts in scoped(recorded, *(Scope(Matcher(f"literal:{name}"), None) for name in wanted)):
        with facts.holding():
            for run, calls in wanted[scope.agent.literal].items():
                counts = (f"(SELECT count(*) FROM {name} WHERE run_id = $run)" for name in ("llm_calls", "tool_calls"))
                found = asked(recorded, f"SELECT {', '.join(counts)}", run)
                assert found == calls or (run in alone and found > calls), (run, str(scope))


@pytest.mark.full
def test_turns_add_up_to_the_run(recorded: Session) -> None:
    """Every call, token and error of a recording is in exactly one turn, or in doubt."""
    columns = ", ".join(f"{name}_{side}" for side in ("low", "high") for name in SUMS)
    select = f"SELECT {columns} FROM run_totals WHERE TRUE"
    turns = {
        run: asked(recorded, "SELECT max(turn) FROM spans WHERE TRUE", run)[0][0] or 0 for run in recorded.run_ids()
    }
    whole = {run: asked(recorded, select, run)[0] for run in turns}
    found: dict[str, list[tuple[Any, ...]]] = {run: [] for run, number in turns.items() if number}
    for scope, facts in scoped(recorded, *(Scope(None, turn) for turn in range(1, max(turns.values()) + 1))):
        with facts.holding():
            for run in found:
                if scope.turn <= turns[run]:
                    found[run] += asked(recorded, select, run)

    for run, of_turns in found.items():
        both = summed(of_turns)
        low, high = both[: len(SUMS)], both[len(SUMS) :]
        for name, least, most, of_low, of_high in zip(
            SUMS, low, high, whole[run][: len(SUMS)], whole[run][len(SUMS) :], strict=True
        ):
            assert least <= of_low, (run, name)
            assert most is None or (of_high is not None and most >= of_high), (run, name)


def summed(rows: list[tuple[Any, ...]]) -> list[Any]:
    return [None if None in column else sum(column) for column in zip(*rows, strict=True)]
