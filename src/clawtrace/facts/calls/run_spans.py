"""The spans of one run with their tree: what every run fact is computed from."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from operator import itemgetter

from clawtrace.dialects.load import Dialect, Executions
from clawtrace.dialects.message_parts import Part
from clawtrace.dialects.schema import DialectFile
from clawtrace.facts.calls.agents.handoff_tools import handoff_tools
from clawtrace.facts.calls.agents.runners import without_inferred, without_runners
from clawtrace.facts.calls.agents.silent_agents import silent_agents
from clawtrace.facts.calls.evidence.called_tools import with_called_tools
from clawtrace.facts.calls.evidence.duplicate_instrumentations import join_duplicates
from clawtrace.facts.calls.evidence.match_by_usage import join_by_content
from clawtrace.facts.calls.evidence.stream_answers import join_answers, with_replies
from clawtrace.facts.calls.ledger import Ledger
from clawtrace.facts.calls.rules import HANDOFF_TOOL, NESTED_MODEL_SPAN, ONE_OR_TWO, RUNNER_OF_AGENTS, CallRule
from clawtrace.facts.calls.tree.walk import walk
from clawtrace.facts.spans.span import LOCAL_PARENT, NO_TIME, REMOTE_PARENT, Span

__all__ = ["RunSpans"]


@dataclass(slots=True, eq=False, repr=False)
class RunSpans:
    """One run. Lists have one entry a span, in the order of `spans`; spans are named by their index in it."""

    run_no: int
    spans: Sequence[Span]
    messages: Mapping[tuple[int, str], Sequence[Part]]
    """Parts of the messages of a span, by (`Span.sid`, ``input`` or ``output``)."""
    dialects: Mapping[str, Dialect]
    """By name, those that read the spans among them."""
    enter: list[int]
    leave: list[int]
    depth: list[int]
    root: list[int]
    agent: list[int | None]
    """The activation that a span works for: its nearest enclosing agent span."""
    tool: list[int | None]
    """Nearest enclosing tool span below that agent."""
    group: list[int | None]
    """A number that the llm (or tool) spans of one logical call share."""
    rule: list[CallRule | None]
    """Why a span is in a call with others, or in a separate one (`Ledger.rule`)."""
    cause: list[bool]
    """The span failed, and the failure did not merely travel up from below."""
    cut: list[bool]
    """The reference to its parent closed a cycle."""
    role: list[str | None]
    turn: list[int | None]
    """Number of the turn: of the trace, or of the prompt in it, in which a model or an agent worked, in order of start.

    None also where the number is not known: a tool call may have begun that trace, or one before it.
    """
    silent: Set[int] = frozenset()
    """Agent spans that record nothing, where others do."""
    doubtful: Mapping[int, int] = field(default_factory=dict)
    """Groups of model calls that may be another one again, as another scope recorded it: by their numbers those of the others."""
    kinds: Mapping[str, Sequence[int]] = field(init=False)
    """The spans of each kind that there is, in order."""
    emitting: list[int] = field(init=False)
    """The spans that represent something in addition to their kind (`Span.emits`), in order."""
    requests: dict[int, int] = field(init=False)
    """How many requests over HTTP there are of a model call, by its group: spans right inside of its own, all to one URL."""
    _orders: dict[tuple[str, ...], list[int]] = field(init=False, default_factory=dict)
    """The spans of some kinds in the order of the tree, once they were asked for."""

    def __post_init__(self) -> None:
        self.emitting = []
        kinds: dict[str, list[int]] = defaultdict(list)
        for index, span in enumerate(self.spans):
            kinds[span.kind].append(index)
            if span.emits is not None:
                self.emitting.append(index)
        self.kinds = dict(kinds)
        urls: dict[int, list[str | None]] = defaultdict(list)
        for index in self.emitting:
            if self.spans[index].emits == "request" and (call := self._requested_by(index)) is not None:
                urls[call].append(self.spans[index].exchange_id)
        self.requests = {}
        for number, sent in urls.items():
            if sent[0] is not None and sent.count(sent[0]) == len(sent):
                self.requests[number] = len(sent)

    def _requested_by(self, index: int) -> int | None:
        """Return the group of the model call that a request over HTTP belongs to; one inside of another belongs to none.

        An instrumentation of HTTP clients shows all requests; what writes the model call's span, too, may show some of them.
        """
        above, scope = self.spans[index], self.spans[index].scope
        while not self.cut[index] and above.parent_sid is not None:
            index = above.parent_sid - self.spans[0].sid
            above = self.spans[index]
            if above.kind != "infra" or above.emits == "request":
                return self.group[index] if above.kind == "llm" and above.scope != scope else None
        return None

    @classmethod
    def of(
        cls,
        spans: Sequence[Span],
        messages: Mapping[tuple[int, str], Sequence[Part]],
        layers: Mapping[int, CallRule] | None,
        dialects: Mapping[str, Dialect],
    ) -> RunSpans:
        """Return the run whose distinct `spans` these are, in order of `Span.sid`; for `layers` see `with_layers`."""
        first = spans[0].sid
        parents = [None if span.parent_sid is None else span.parent_sid - first for span in spans]
        spans = written = with_replies(spans, parents)
        if messages:
            spans = written = with_called_tools(spans, parents, messages, dialects)
        spans, runners = without_runners(without_inferred(written, parents), parents)
        ledger = Ledger(spans)
        walked = walk(spans, parents, ledger, layers)
        doubtful = join_by_content(spans, ledger, messages)
        if NESTED_MODEL_SPAN in ledger.rule:
            doubtful += _begun_later(written, parents, ledger, dialects)
        join_answers(spans, ledger)
        agent, role = join_duplicates(spans, walked, ledger)
        silent = silent_agents(spans, agent, role)
        role = _without_repeated_turns(spans, role)
        handed = handoff_tools(spans, agent, role, dialects)
        spans = _with_handoffs(_named(spans, agent), role, ledger, handed)
        for index in runners:
            ledger.rule[index] = RUNNER_OF_AGENTS
        perhaps = _split_again(ledger, doubtful)
        return cls(
            run_no=spans[0].run_no,
            spans=spans,
            messages=messages,
            dialects=dialects,
            group=ledger.group,
            rule=ledger.rule,
            role=role,
            turn=_turns(spans, walked.root, role, silent),
            doubtful=perhaps,
            silent=silent,
            **walked._replace(agent=agent)._asdict(),
        )

    def words(self, index: int) -> DialectFile:
        """Return what the dialect that read a span says, with what it inherits."""
        return self.dialects[self.spans[index].dialect].file

    def unproven(self, index: int) -> bool:
        """Return whether no recording shows that the rules by which a span was read hold for it (`Dialect.unproven`)."""
        span = self.spans[index]
        return self.dialects[span.dialect].unproven(span.scope, span.version)

    def keeps_to_conventions(self, index: int) -> bool:
        """Return whether a span says how its work ended: a recording verified its instrumentation, or it follows the conventions."""
        return self.spans[index].source == "log" or not self.unproven(index) or self.words(index).conventional

    def records(self, index: int, fact: str) -> bool | str:
        """Return whether the instrumentation that wrote a span records a fact (`Dialect.records`)."""
        span = self.spans[index]
        return self.dialects[span.dialect].records(fact, "logs" if span.source == "log" else "spans")

    def executions_of(self, index: int) -> Executions | None:
        """Return whether there is a span for each execution under the scope of a span (`Dialect.executions`)."""
        span = self.spans[index]
        return self.dialects[span.dialect].executions(span.scope)

    def said(self, index: int | None, direction: str) -> Sequence[Part]:
        """Return the parts of the messages of a span; without a span there are none."""
        return () if index is None else self.messages.get((self.spans[index].sid, direction), ())

    def encloses(self, above: int, below: int) -> bool:
        """Return whether one span is a proper ancestor of another."""
        return self.enter[above] < self.enter[below] and self.leave[below] < self.leave[above]

    def went_on_unseen(self, since_ns: int) -> bool:
        """Return whether something started after an instant inside of a span of its process that was not received."""
        return any(
            span.start_ns > since_ns
            and span.parent_span_id is not None
            and (span.flags or 0) & REMOTE_PARENT == LOCAL_PARENT
            for span in self.spans
        )

    def every(self, *kinds: str) -> list[int]:
        """Return the spans of these kinds, kind by kind."""
        return [index for kind in kinds for index in self.kinds.get(kind, ())]

    def within(self, index: int, *kinds: str) -> Sequence[int]:
        """Return the spans of these kinds inside of a span, in the order of the tree."""
        order = self._orders.get(kinds)
        if order is None:
            order = self._orders[kinds] = sorted(self.every(*kinds), key=self.enter.__getitem__)
        first = bisect_right(order, self.enter[index], key=self.enter.__getitem__)
        return order[first : bisect_left(order, self.leave[index], key=self.enter.__getitem__)]

    def topmost(self, indices: Iterable[int]) -> list[int]:
        """Return those of some spans that are inside of no other of them, in the order of the tree."""
        found: list[int] = []
        for index in sorted(indices, key=self.enter.__getitem__):
            if not found or self.enter[index] > self.leave[found[-1]]:
                found.append(index)
        return found

    def inside(self, indices: Iterable[int]) -> Callable[[int], bool]:
        """Return a test whether a span is a proper descendant of one of some spans."""
        tops = self.topmost(indices)
        enters = [self.enter[top] for top in tops]

        def is_inside(index: int) -> bool:
            place = bisect_left(enters, self.enter[index]) - 1
            return place >= 0 and self.encloses(tops[place], index)

        return is_inside

    def groups(self, kind: str, without: frozenset[str] = frozenset()) -> dict[int, list[int]]:
        """Return the spans of each logical call of a `kind`, in order, without those that play one of the roles."""
        found: dict[int, list[int]] = {}
        group, role = self.group, self.role
        for index in self.standing_for(kind):
            number = group[index]
            if number is not None and role[index] not in without:
                if number in found:
                    found[number].append(index)
                else:
                    found[number] = [index]
        return found

    def ends_of_steps(self) -> dict[int, int]:
        """Return when each activation ended whose span is the first step of its work only."""
        ends = {index: self.spans[index].last_ns for index, role in enumerate(self.role) if role == "step"}
        if ends:
            for above, span in zip(self.agent, self.spans, strict=True):
                if above in ends:
                    ends[above] = max(ends[above], span.last_ns)
        return ends

    def standing_for(self, kind: str) -> Sequence[int]:
        """Return the spans that are of a `kind` or represent one, in order."""
        of_kind = self.kinds.get(kind, ())
        others = [index for index in self.emitting if self.spans[index].emits == kind]
        return sorted({*of_kind, *others}) if others else of_kind


def _begun_later(
    spans: Sequence[Span], parents: Sequence[int | None], ledger: Ledger, dialects: Mapping[str, Dialect]
) -> Iterator[list[int]]:
    """Yield each model span that only general rules read and that began when the one around it had ended: its layer, or what followed."""
    for index, rule in enumerate(ledger.rule):
        span, dialect = spans[index], dialects[spans[index].dialect]
        unproven = not dialect.file.conventional and dialect.unproven(span.scope, span.version)
        if rule is NESTED_MODEL_SPAN and unproven:
            above = parents[index]
            while above is not None and spans[above].kind != "llm":
                above = parents[above]
            if above is not None and span.start_ns > spans[above].last_ns:
                yield [index]


def _split_again(ledger: Ledger, doubtful: Sequence[Sequence[int]]) -> dict[int, int]:
    """Make calls separate ones again that may be what they were joined with; return by their numbers those of the others."""
    found: dict[int, int] = {}
    for members in doubtful:
        other = ledger.group[members[0]]
        number = ledger.split(members, ONE_OR_TWO)
        if other is not None:
            found[number] = other
    return found


def _named(spans: Sequence[Span], agent: Sequence[int | None]) -> Sequence[Span]:
    """Return the spans, nameless agents with the one name that what they did says of them (`Span.owner_agent`)."""
    owners: dict[int, set[str]] = {}
    for span, above in zip(spans, agent, strict=True):
        if span.owner_agent is not None and above is not None and spans[above].agent_name is None:
            owners.setdefault(above, set()).add(span.owner_agent)
    names = {
        index: min(names_of)
        for index, names_of in owners.items()
        if len(names_of) == 1 and spans[index].kind == "agent"
    }
    if not names:
        return spans
    return [span._replace(agent_name=names[index]) if index in names else span for index, span in enumerate(spans)]


def _with_handoffs(
    spans: Sequence[Span], role: list[str | None], ledger: Ledger, handed: Mapping[int, str]
) -> Sequence[Span]:
    """Return the spans, tools that hand over with whom to; the first span of such a call gets the role of a handoff."""
    if not handed:
        return spans
    to = {ledger.group[index]: name for index, name in handed.items()}
    found = list(spans)
    seen: set[int | None] = set()
    for index, number in enumerate(ledger.group):
        if number not in to or spans[index].kind != "tool":
            continue
        ledger.rule[index] = HANDOFF_TOOL
        if number in seen:
            role[index], found[index] = "accounting", spans[index]._replace(kind="chain")
        else:
            role[index], found[index] = "handoff", spans[index]._replace(handoff_to=to[number])
            seen.add(number)
    return found


def _without_repeated_turns(spans: Sequence[Span], role: list[str | None]) -> list[str | None]:
    """Return the roles, `turn` only where nothing else records it: one of an agent with a separate activation repeats it."""
    turns = [index for index, part in enumerate(role) if part == "turn" and spans[index].agent_name is not None]
    if not turns:
        return role
    named = {span.agent_name for span, part in zip(spans, role, strict=True) if span.kind == "agent" and part is None}
    repeated = {index for index in turns if spans[index].agent_name in named}
    return ["accounting" if index in repeated else part for index, part in enumerate(role)]


def _turns(
    spans: Sequence[Span], root: Sequence[int], role: Sequence[str | None], silent: Set[int]
) -> list[int | None]:
    """Return the turn of each span: one trace is one, or one prompt where the spans of a conversation name theirs.

    A last span that records nothing is none, and so is the caller's side of one.

    A conversation whose calls are separate traces belongs to one agent: its turns are those of that agent's trace.

    Work that a tool call may have begun, which perhaps no span shows, is of the call's turn or of another one, so turns that began
    later have no known number.
    """
    asked: dict[str, list[tuple[int, str]]] = {}
    for span, top in zip(spans, root, strict=True):
        if span.prompt_id is not None:
            asked.setdefault(spans[top].trace_id, []).append((span.start_ns, span.prompt_id))
    traces = {top: (spans[top].trace_id, "") for top in set(root)}
    if not asked and len(traces) == 1:
        return [1 if any(span.kind in ("agent", "llm") for span in spans) else None] * len(spans)
    turns = [traces[top] for top in root]
    if asked:
        turns = [
            (trace, _prompt(asked[trace], span.start_ns) if trace in asked else "")
            for span, (trace, _) in zip(spans, turns, strict=True)
        ]
    called = _in_time_of_others(spans, root, {index for index in silent if role[index] == "wrapper"})
    starts: dict[tuple[str, str], int] = {}
    telling: set[tuple[str, str]] = set()
    for index, (span, turn) in enumerate(zip(spans, turns, strict=True)):  # in order of start
        works = span.kind in ("agent", "llm") and root[index] not in called
        if works and not (role[index] == "wrapper" and index in silent):
            starts.setdefault(turn, span.start_ns if turn[1] else spans[root[index]].start_ns)
            if index not in silent:
                telling.add(turn)
    order = sorted(starts, key=lambda turn: (starts[turn], turn))
    while len(order) > 1 and order[-1] not in telling:
        order.pop()
    known_ns = min(called.values(), default=NO_TIME)
    numbers = {turn: number for number, turn in enumerate(order, 1) if starts[turn] <= known_ns}
    return [None if top in called else numbers.get(turn) for top, turn in zip(root, turns, strict=True)]


def _in_time_of_others(spans: Sequence[Span], root: Sequence[int], callers: Set[int]) -> dict[int, int]:
    """Return the trees, by root, whose work lies within a tool call, an agent or a program of another trace, and when it began.

    The caller's side of an agent (`callers`) is no such work.
    """
    work: dict[int, tuple[int, int]] = {}
    for span, top in zip(spans, root, strict=True):  # in order of start
        if span.kind in ("agent", "llm"):
            began_ns, ended_ns = work.get(top, (span.start_ns, 0))
            work[top] = began_ns, max(ended_ns, span.last_ns)
    others = [(span.start_ns, span.last_ns, span.trace_id) for span in spans if span.kind == "tool"]
    others += [
        (spans[top].start_ns, spans[top].last_ns, spans[top].trace_id)
        for top in work
        if spans[top].kind in ("agent", "chain", "other") and top not in callers
    ]
    waiting = deque(sorted(others))
    latest: dict[str, int] = {}
    """The latest ends of those that have begun, of at most two traces."""
    found: dict[int, int] = {}
    for top, (began_ns, ended_ns) in work.items():
        while waiting and waiting[0][0] <= began_ns:
            _, last_ns, trace = waiting.popleft()
            ends = latest | {trace: max(last_ns, latest.get(trace, 0))}
            latest = dict(sorted(ends.items(), key=itemgetter(1))[-2:])
        if any(end_ns >= ended_ns for trace, end_ns in latest.items() if trace != spans[top].trace_id):
            found[top] = began_ns
    return found


def _prompt(asked: Sequence[tuple[int, str]], at_ns: int) -> str:
    """Return the prompt of the last span that names one, as of `at_ns`; before them that of the first."""
    return asked[max(bisect_right(asked, at_ns, key=itemgetter(0)) - 1, 0)][1]
