"""The part of a run that belongs to an agent or a turn (`agent`, `turn` of an assertion; spec: assertions.md §1).

To an agent belongs what happened at or under an activation of that name: inside of its spans, and in the activations that
it delegated to, in whichever trace. Where the owner of something is unknown, its row is not certain in the scope, and spans and
messages that may be in it are a gap (spec: certain-and-possible.md §2).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple, Protocol, TypeVar

from clawtrace.facts.calls.run_spans import RunSpans
from clawtrace.facts.checks.findings import Findings
from clawtrace.facts.doubts import Doubt, Gap
from clawtrace.facts.runs.agents import Activation
from clawtrace.facts.runs.final_output import ended_without_answer, final_output
from clawtrace.facts.runs.run_facts import RunFacts
from clawtrace.facts.runs.totals import times
from clawtrace.facts.scopes.masked import masked
from clawtrace.facts.spans.span import Span

__all__ = ["NameMatcher", "Scope", "ScopePart", "part_of"]

OUT, PERHAPS, IN = 0, 1, 2
"""Whether something belongs to a scope."""

Fact = TypeVar("Fact")

_ANYWHERE = frozenset(("agent-not-received", "parent-not-received"))
"""Reasons of gaps that lie around the span that shows them."""


class NameMatcher(Protocol):
    """Which names are meant; hashable, equal where the texts are."""

    @property
    def text(self) -> str:
        """The matcher as it is written in YAML."""
        ...

    def __call__(self, name: str, /) -> bool:
        """Return whether `name` is meant."""
        ...

    def __hash__(self) -> int: ...


class Scope(NamedTuple):
    """What a question is narrowed down to."""

    agent: NameMatcher | None
    turn: int | Literal["last"] | None
    """Counted from 1."""

    def __str__(self) -> str:
        turn = None if self.turn is None else "the last turn" if self.turn == "last" else f"turn {self.turn}"
        return ", ".join(filter(None, (None if self.agent is None else f"agent `{self.agent.text}`", turn)))

    def flat(self) -> str:
        """Return the scope in one line, also where its pattern has line breaks."""
        return " ".join(str(self).split())

    def written(self) -> dict[str, str | int]:
        """Return the scope as it is written in YAML."""
        given = {"agent": None if self.agent is None else self.agent.text, "turn": self.turn}
        return {name: value for name, value in given.items() if value is not None}


class ScopePart(NamedTuple):
    """What of one run belongs to a scope."""

    facts: RunFacts | None
    """The facts of the part, those in doubt not certain; None where nothing belongs to it."""
    answer: str | None
    """What the part answered."""
    answered: bool | None
    """As `runs.answered`."""
    spans: list[int]
    """The spans that belong to it for certain."""
    marks: list[int]
    """The activations of the agent, by span."""
    empty: str = ""
    """Why nothing is in, as a sentence; empty when something is."""
    reason: str = ""
    """Where that is because something is not known: one of `REASONS`."""


def part_of(facts: RunFacts, scope: Scope) -> ScopePart:
    """Return what of a run, whose facts are summed up, belongs to `scope`.

    Raises:
        PatternTimeoutError: the agent's regular expression took too long on a name.
    """
    run, wanted = facts.spans, _Wanted(facts, scope)
    models = [wanted.call(call.agent, call.turn, call.index) for call in facts.models]
    tools = [wanted.call(call.agent, call.turn, call.index) for call in facts.tools.calls]
    # A span that describes a call belongs where the call belongs, also from another trace.
    calls: dict[int | None, int] = {call.group: state for call, state in zip(facts.models, models, strict=True)}
    calls |= {
        run.group[call.index]: state
        for call, state in zip(facts.tools.calls, tools, strict=True)
        if call.index is not None and run.group[call.index] is not None
    }
    spans = [
        wanted.span(index) if group is None else calls.get(group, wanted.span(index))
        for index, group in enumerate(run.group)
    ]
    marks = [activation.index for activation in facts.agents if activation.number in wanted.meant]
    if all(IN not in states for states in (spans, models, tools)):
        reason, sentence = wanted.why_empty(perhaps=any(PERHAPS in states for states in (spans, models, tools)))
        return ScopePart(None, None, None, [], marks, sentence, reason)
    agents = list(map(wanted.activation, facts.agents))
    if facts.unfinished is not None and ((scope.turn is not None and wanted.shifting) or not wanted.nested):
        # More spans may take out what is in.
        spans, models, tools, agents = (
            [min(state, PERHAPS) for state in states] for states in (spans, models, tools, agents)
        )
    found, answer, none = _narrowed(facts, wanted, spans, models, tools, agents)
    answered = True if answer is not None else False if none else None
    return ScopePart(found, answer, answered, [index for index, state in enumerate(spans) if state == IN], marks)


def _narrowed(
    whole: RunFacts,
    wanted: _Wanted,
    spans: Sequence[int],
    models: Sequence[int],
    tools: Sequence[int],
    agents: Sequence[int],
) -> tuple[RunFacts, str | None, bool]:
    """Return the facts of the part, its answer, and whether it certainly has none; the lists say what belongs to it.

    Totals and the answer follow by the rules for whole runs: spans of other parts count as infrastructure there.
    """
    run = whole.spans
    perhaps = [index for index, state in enumerate(spans) if state == PERHAPS and run.spans[index].kind != "infra"]
    certain = [state == IN for state in spans]
    sure = masked(run, certain, certain)
    most = masked(run, [state >= PERHAPS for state in spans], certain) if perhaps else sure
    found = RunFacts.__new__(RunFacts)
    found.__dict__ |= whole.__dict__
    found.shifted = {index: top for index, top in whole.shifted.items() if spans[index]}
    found.models = _kept(whole.models, models)
    requests = [one for one in whole.tools.requests if wanted.call(one.agent, one.turn, one.index) != OUT]
    found.tools = whole.tools._replace(calls=_kept(whole.tools.calls, tools), requests=requests)
    found.background = _kept(whole.background, [wanted.in_background(call.index) for call in whole.background])
    of_failures = [wanted.call(None, None, None) if one.index is None else spans[one.index] for one in whole.failures]
    found.failures = _kept(whole.failures, of_failures)
    states: dict[int | None, int] = {one.number: state for one, state in zip(whole.agents, agents, strict=True)}
    found.agents = [_below(one, states.get(one.parent, IN)) for one in _kept(whole.agents, agents)]
    own = whole.findings.gaps[: whole.own_gaps]
    found.findings = Findings(run, [gap for gap in own if wanted.may_hold(gap, spans)])
    if wanted.all_agents:
        # The same work is recorded in each turn: what the run does not leave open, none of them does.
        found.findings.within = {(gap.relation, gap.reason) for gap in whole.findings.gaps}
    if perhaps:
        of_most = times(most, found.shifted)
        extent = {"start_ns": of_most["first_start_ns"], "end_ns": of_most["last_end_ns"]}
        found.findings.gap("spans", "scope-unknown", perhaps[0], at_most=len(perhaps), **extent)
        found.findings.gap("messages", "scope-unknown", perhaps[0])
        around = (run.spans[index] for index in perhaps if run.group[index] is None)
        if any(span.rollup_input_tokens or span.rollup_output_tokens or span.rollup_llm_calls for span in around):
            found.findings.gap("llm_calls", "scope-unknown", perhaps[0])
    found.spans = most
    found.add_totals()
    answer = final_output(sure, [call for call in found.models if certain[call.index]])
    if perhaps:
        found.totals |= times(sure, found.shifted)  # the gap in `spans` says how long it may have taken
        if answer != final_output(most, found.models):
            found.answer_unknown = "scope-unknown"
    found.spans = run
    none = not answer and not perhaps and whole.unfinished is None and ended_without_answer(sure, found.models)
    return found, answer or None, none  # An empty text is none of the run either.


def _kept(facts: Sequence[Fact], states: Sequence[int]) -> list[Fact]:
    """Return the rows that are not out; those that may be are not certain."""
    return [
        _doubted(fact) if state == PERHAPS else fact for fact, state in zip(facts, states, strict=True) if state != OUT
    ]


def _doubted(row: Any) -> Any:
    return replace(row, doubts=[*row.doubts, Doubt(None, "scope-unknown", row.index)])


def _below(one: Activation, parent: int) -> Activation:
    """Return an activation whose parent, if it has one, has that state."""
    if parent == IN:
        return one
    if parent == OUT:
        return replace(one, parent=None, via="root")
    doubts = [Doubt(column, "scope-unknown", one.index) for column in ("parent_activation_no", "via")]
    return replace(one, parent=None, via=None, doubts=[*one.doubts, *doubts])


class _Wanted:
    """Decides what belongs to a scope in one run."""

    def __init__(self, facts: RunFacts, scope: Scope) -> None:
        self._facts, self._scope, self._run = facts, scope, facts.spans
        self.all_agents = scope.agent is None
        turns = {turn for turn in self._run.turn if turn is not None}
        self._turns = max(turns, default=0)
        self._turn = self._turns if scope.turn == "last" else scope.turn
        self._uncounted = any(
            turn is None and span.kind in ("agent", "llm") and index not in self._run.silent
            for index, (turn, span) in enumerate(zip(self._run.turn, self._run.spans, strict=True))
        )
        """Whether there may be more turns."""
        spans, unfinished = self._run.spans, facts.unfinished
        only = len({span.trace_id for span in spans}) == 1 and all(span.prompt_id is None for span in spans)
        self.shifting = not (only and unfinished is not None and unfinished.near)
        """Whether spans that are missing could be of an earlier turn, or divide one."""
        self.meant: set[int] = set()
        """Numbers of the activations of the agent."""
        self._states: dict[int, int] = {}
        """By number of an activation."""
        self.nested = True
        """Whether everything that is in is nested in an activation of the agent, by the tree of spans."""
        self._names = {activation.number: _name(activation, self._run) for activation in facts.agents}
        if scope.agent is not None:
            self._find_agent(scope.agent)
        self._owners = (
            {activation.index: self._states[activation.number] for activation in facts.agents if activation.seen}
            if scope.agent is not None
            else {}
        )
        self._trees_of_agents = self._trees_with_agents()
        self._by_span = [self._agent_of_span(index) for index in range(len(self._run.spans))]
        ownerless = {
            self._by_span[index]
            for index, span in enumerate(self._run.spans)
            if span.kind == "llm" and self._run.agent[index] is None
        }
        self._ownerless = ownerless.pop() if len(ownerless) == 1 else PERHAPS
        """The state of what is known from messages of no agent."""

    def _find_agent(self, agent: NameMatcher) -> None:
        activations = self._facts.agents
        self.meant = {number for number, name in self._names.items() if name is not None and agent(name)}
        below: Mapping[int | None, list[int]] = _by_parent(activations)
        inside = _under(self.meant, below)
        nameless = {number for number, name in self._names.items() if name is None}
        starts = {one.number: self._run.spans[one.index].start_ns for one in activations}
        unseen_ns = min(
            (starts[one.number] for one in activations if one.number in inside and not one.seen), default=None
        )
        # A handoff or a spawned session whose agent was not received may have started any activation without a parent.
        parentless = {one.number for one in activations if one.parent is None}
        later = set() if unseen_ns is None else {number for number in parentless if starts[number] >= unseen_ns}
        # One of which it is not known who called it may have been called by this one.
        called = {one.number for one in activations if one.parent is None and one.via != "root"}
        perhaps = _under(nameless | later | (called if self.meant else self._orphaned()), below)
        self._states = {
            one.number: IN if one.number in inside else PERHAPS if one.number in perhaps else OUT for one in activations
        }
        tops = {one.index for one in activations if one.number in self.meant and one.seen}
        is_below = self._run.inside(tops)
        self.nested = all(
            self._run.role[one.index] != "step" and (one.index in tops or is_below(one.index))
            for one in activations
            if one.number in inside
        )

    def _orphaned(self) -> set[int]:
        """Return the activations below a span that was not received."""
        orphans = self._facts.unfinished.orphans if self._facts.unfinished else frozenset()
        return {one.number for one in self._facts.agents if self._run.root[one.index] in orphans}

    def _trees_with_agents(self) -> set[int]:
        """Return the roots of the trees in which an agent is at work: what is next to it there is not its own."""
        roots = {self._run.root[activation.index] for activation in self._facts.agents}
        return roots - (self._facts.unfinished.orphans if self._facts.unfinished else frozenset())

    def _agent_of_span(self, index: int) -> int:
        agent = self._scope.agent
        if agent is None:
            return IN
        run = self._run
        span, owner = run.spans[index], run.agent[index]
        own = self._owners.get(index, OUT)
        if own != OUT or owner is not None:
            return max(own, OUT if owner is None else self._owners.get(owner, OUT))
        if index in self._owners or span.kind == "infra":
            return OUT
        said = _says(span)
        if said is not None and agent(said):
            return IN
        return OUT if run.root[index] in self._trees_of_agents else PERHAPS

    def _in_turn(self, turn: int | None) -> int:
        if self._turn is None:
            return IN
        if turn is None or (turn == self._turn and self._uncounted and self._scope.turn == "last"):
            return PERHAPS
        return IN if turn == self._turn else OUT

    def span(self, index: int) -> int:
        """Return the state of a span."""
        return min(self._by_span[index], self._in_turn(self._run.turn[index]))

    def call(self, agent: int | None, turn: int | None, index: int | None) -> int:
        """Return the state of a call: by its agent, else by its span, else by those of model calls without an agent."""
        if self._scope.agent is None:
            whose = IN
        elif agent is not None:
            whose = self._owners.get(agent, OUT)
        else:
            whose = self._ownerless if index is None else self._by_span[index]
        return min(whose, self._in_turn(turn))

    def in_background(self, index: int | None) -> int:
        """Return the state of a call in work that a timer started: it is of no turn, and of the agent that its span names."""
        if self._turn is not None:
            return OUT
        said = None if index is None else _says(self._run.spans[index])
        if self._scope.agent is None or said is None:
            return IN if self._scope.agent is None else PERHAPS
        return IN if self._scope.agent(said) else OUT

    def activation(self, activation: Activation) -> int:
        """Return the state of an activation."""
        whose = IN if self._scope.agent is None else self._states[activation.number]
        return min(whose, self._in_turn(self._run.turn[activation.index]))

    def may_hold(self, gap: Gap, spans: Sequence[int]) -> bool:
        """Return whether the rows of a gap may belong to the scope: their agent, turn and place do not say otherwise."""
        if gap.turn is not None and self._in_turn(gap.turn) == OUT:
            return False
        if self._scope.agent is not None and gap.agent is not None and not self._scope.agent(gap.agent):
            named = [number for number, name in self._names.items() if name in (gap.agent, None)]
            if named and all(self._states[number] == OUT for number in named):
                return False
        elsewhere = gap.span is not None and spans[gap.span] == OUT
        return not elsewhere or gap.relation == "agents" or gap.reason in _ANYWHERE

    def why_empty(self, *, perhaps: bool) -> tuple[str, str]:
        """Return the reason, and a sentence, for a run of which nothing is in the scope for sure, and `perhaps` something is."""
        if perhaps and self._uncounted and self._scope.turn is not None:
            return (
                "scope-unknown",
                "a tool call may have started work in a trace of its own: which turn it is of is not known.",
            )
        if self._scope.turn is not None and self._turn not in self._run.turn:
            if not self._turns:
                return "scope-unknown", "turns are unknown: no agent and no model call is recorded."
            return "", f"the run has {'one turn' if self._turns == 1 else f'{self._turns} turns'}."
        agent = self._scope.agent
        if self.meant and self._scope.turn is None:
            return "scope-unknown", f"agent `{agent}` was started, but none of its work is recorded."
        if agent is None or self.meant:
            return "", f"agent `{agent}` did not work in this turn." if agent else "the turn is empty."
        names = sorted({name for name in self._names.values() if name is not None})
        if not self._facts.agents:
            return "agents-not-recorded", f"whether agent `{agent}` worked is unknown: no agent is recorded."
        count = sum(name is None for name in self._names.values())
        if count:
            whose = "one agent has" if count == 1 else f"{count} agents have"
            return "name-not-recorded", f"whether agent `{agent}` worked is unknown: {whose} no recorded name."
        return "", f"no agent `{agent}` is recorded; the agents were {', '.join(f'`{name}`' for name in names)}."


def _name(activation: Activation, run: RunSpans) -> str | None:
    """Return the name of an activation as the relation `agents` has it."""
    return run.spans[activation.index].agent_name if activation.seen or activation.via == "spawn" else None


def _says(span: Span) -> str | None:
    """Return the agent that a span says it works for."""
    return span.owner_agent or (span.agent_name if span.kind != "agent" else None)


def _by_parent(activations: Iterable[Activation]) -> dict[int | None, list[int]]:
    below: dict[int | None, list[int]] = defaultdict(list)
    for activation in activations:
        below[activation.parent].append(activation.number)
    return below


def _under(numbers: Iterable[int], below: Mapping[int | None, list[int]]) -> set[int]:
    """Return the activations and all that they delegated to."""
    found: set[int] = set()
    waiting = list(numbers)
    while waiting:
        number = waiting.pop()
        if number not in found:
            found.add(number)
            waiting += below.get(number, ())
    return found
