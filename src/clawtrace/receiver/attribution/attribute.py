"""Which run a span or log record belongs to (spec: span-model.md §2).

Rules, in order: 1 resource attribute, 2 span attribute, 3 header, 4 path, 5 its trace is a run's, 6 a link to such a
trace, 7 an announced session, 8 the attribute that `run_key` names, 9 none: the trace is a run by itself. Exact
equality only, never a time window. What arrives before the evidence does is adopted when the evidence comes.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from clawtrace.model.raw import Receipt
from clawtrace.model.run import RunRule

__all__ = ["NO_RUN", "RUN_ID", "Attribution", "Claim", "ClaimReader", "Conflict", "DeletedRuns", "Note"]

RUN_ID = "clawtrace.run_id"
"""Resource and span attribute that names the run (rules 1 and 2)."""

_CACHE_LIMIT = 10_000


class Claim(NamedTuple):
    """What one span or log record says about its run; empty text says nothing."""

    resource: str = ""
    """Rule 1."""
    span: str = ""
    """Rule 2."""
    sessions: tuple[str, ...] = ()
    """Rule 7."""
    key: str = ""
    """Rule 8: the value of the attribute that `run_key` names."""
    links: tuple[str, ...] = ()
    """Rule 6: trace ids that the span links to."""


class ClaimReader:
    """Reads claims from attributes; equal claims are one object.

    Args:
        run_key: attribute that names the run in foreign data (rule 8).
        session_keys: attributes that hold a session or conversation id (rule 7).
    """

    def __init__(self, run_key: str | None = None, session_keys: Sequence[str] = ()) -> None:
        self._run_key = run_key
        self._session_keys = session_keys
        self.keys = frozenset({RUN_ID, *session_keys, *([run_key] if run_key else [])})
        """Attributes that matter here; others need not be shown."""
        self._known: dict[Claim, Claim] = {}
        self.of_item = lru_cache(_CACHE_LIMIT)(self._of_item)

    def of_resource(self, attributes: Mapping[str, str]) -> Claim:
        """Return what a resource says for everything below it."""
        return self._one(Claim(attributes.get(RUN_ID, ""), "", self._sessions(attributes), self._key(attributes)))

    def _of_item(self, base: Claim, said: tuple[tuple[str, str], ...], links: tuple[str, ...] = ()) -> Claim:
        """Return what a span or log record says by those of its attributes that matter, in addition to its resource (`base`)."""
        attributes = dict(said)
        sessions = tuple(dict.fromkeys((*base.sessions, *self._sessions(attributes))))
        key = self._key(attributes) or base.key
        return self._one(Claim(base.resource, attributes.get(RUN_ID, ""), sessions, key, links))

    def _key(self, attributes: Mapping[str, str]) -> str:
        return attributes.get(self._run_key, "") if self._run_key else ""

    def _sessions(self, attributes: Mapping[str, str]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(attributes[key] for key in self._session_keys if attributes.get(key)))

    def _one(self, claim: Claim) -> Claim:
        if len(self._known) > _CACHE_LIMIT:
            self._known.clear()
        return self._known.setdefault(claim, claim)


_LIMIT = 10_000


class DeletedRuns:
    """Numbers and ids; guarded by the lock of `Attribution`."""

    def __init__(self, runs: Iterable[tuple[str, int]] = ()) -> None:
        self._numbers: dict[str, int] = dict(runs)
        self._ids: dict[int, str] = {number: run_id for run_id, number in self._numbers.items()}

    def __contains__(self, number: object) -> bool:
        return number in self._ids

    def __bool__(self) -> bool:
        return bool(self._ids)

    def number(self, run_id: str) -> int | None:
        """Return the number that a deleted run had; None where no such run was deleted."""
        return self._numbers.get(run_id)

    def run_id(self, number: int) -> str:
        """Return the id of a deleted run."""
        return self._ids[number]

    def add(self, runs: Mapping[str, int]) -> set[int]:
        """Add runs; return the numbers of those that are forgotten for them."""
        self._numbers.update(runs)
        self._ids.update((number, run_id) for run_id, number in runs.items())
        dropped = list(self._ids)[: max(0, len(self._ids) - _LIMIT)]
        for number in dropped:
            self._numbers.pop(self._ids.pop(number), None)
        return set(dropped)

    def remove(self, runs: Mapping[str, int]) -> None:
        """Take runs back that are there after all."""
        for run_id, number in runs.items():
            self._numbers.pop(run_id, None)
            self._ids.pop(number, None)

    def revive(self, run_id: str) -> None:
        """Let the id name a new run: it was announced once more. What belongs to the old one by its trace stays late."""
        self._numbers.pop(run_id, None)


NO_RUN = 0
"""Run number of what names no run and has no trace that could be a run (a log record outside of traces)."""


class Note(NamedTuple):
    """A receipt, which says what a request did for one run, and what else is counted."""

    receipt: Receipt
    port: int
    """Which of our ports it came through."""
    unattributed: bool = False
    """Whether its items belong to no run but their own trace."""
    foreign: bool = False
    """Whether an item of it came without the run's own environment (`clawtrace.model.run.CARRIED`)."""
    unnamed: bool = False
    """Whether the request named no run in its header or path, and no SDK's own exporter sent it."""


_ORDER = {rule.value: place for place, rule in enumerate(RunRule)}
_CONFLICT_LIMIT = 1_000

Decision = tuple[str, int]
"""Rule and run number."""

_Item = tuple[int, str]
"""Identity of a claim (equal claims of a request are one object) and a trace id: what decides alike."""
_Said = tuple[Claim, Decision | None]


class Conflict(NamedTuple):
    """Two rules that disagree on the run of the same span; the stronger one decided."""

    rule: str
    run_id: str
    """The run that the stronger rule names, and that the span was given to."""
    other_rule: str
    other_run_id: str
    trace_id: str
    """An example."""


class _Loose:
    """An unattributed trace: a run by itself until evidence comes."""

    def __init__(self, run_no: int) -> None:
        self.run_no = run_no
        self.sessions: set[str] = set()
        self.links: set[str] = set()


class Attribution:
    """Decides runs and remembers what later spans may need; safe to use from several threads."""

    def __init__(
        self,
        run_no: Callable[[str], int],
        *,
        runs: Iterable[tuple[str, int]] = (),
        traces: Iterable[tuple[str, int, str]] = (),
        sessions: Iterable[tuple[str, int]] = (),
        deleted: Iterable[tuple[str, int]] = (),
        trace_limit: int = 250_000,
    ) -> None:
        """Start from what a store knows already.

        Args:
            run_no: returns the number of a run id, registering it when new (`RawSink.run_no`).
            runs: (run id, number) of known runs.
            traces: (trace id, run number, rule) of stored traces; the rule ``none`` marks unattributed ones.
            sessions: (session id, run number) that runs announced.
            deleted: (run id, number) of runs that were deleted; `traces` may name theirs.
            trace_limit: traces remembered, attributed and unattributed each; announced ones are always.
        """
        self.joined: Callable[[int, int], None] = lambda _alone, _run_no: None
        """Called when a trace that stood for itself under the first number turns out to be of the run of the second, with the
        lock held: it must not call back."""
        self.deleted = DeletedRuns(deleted)
        """Runs that items may still name, or belong to by their trace: they are not stored any more."""
        self._lock = threading.RLock()
        self._register = run_no
        self._limit = trace_limit
        self._run_nos: dict[str, int] = dict(runs)
        self._run_ids: dict[int, str] = {number: run_id for run_id, number in self._run_nos.items()}
        self._announced: dict[str, int] = {}
        self._sessions: dict[str, int] = dict(sessions)
        self._traces: dict[str, int] = {}
        self._loose: dict[str, _Loose] = {}
        self._forgot = False
        self._by_session: dict[str, set[str]] = {}
        self._by_link: dict[str, set[str]] = {}
        self._adopted: list[tuple[str, int, str]] = []
        self._conflicts: dict[tuple[str, int, str, int], Conflict] = {}
        for trace_id, number, rule in traces:
            if rule == RunRule.NONE:
                self._loose[trace_id] = _Loose(number)
            else:
                self._traces[trace_id] = number

    # -- runs ------------------------------------------------------------------------------------------------------

    def number(self, run_id: str) -> int:
        """Return the number of the run `run_id`, registering it when it is new."""
        with self._lock:
            number = self._run_nos.get(run_id) or self.deleted.number(run_id)
            if number is None:
                number = self._register(run_id)
                if len(self._run_nos) >= self._limit:
                    self._run_ids.pop(self._run_nos.pop(next(iter(self._run_nos))), None)
                self._run_nos[run_id] = number
                self._run_ids[number] = run_id
            return number

    def run_id(self, number: int) -> str:
        """Return the id of a run that was numbered here; empty text for `NO_RUN`."""
        with self._lock:
            return self._run_ids.get(number, "")

    def names(self) -> dict[int, str]:
        """Return the id of each run in use by its number; unattributed traces are runs by themselves."""
        with self._lock:
            return {loose.run_no: trace_id for trace_id, loose in self._loose.items()} | self._run_ids

    def announce(self, run_id: str, trace_id: str | None = None, session_ids: Iterable[str] = ()) -> int:
        """Say that a trace (injected ``traceparent``) and sessions are those of a run; return the run's number.

        Unattributed traces that fit are adopted at once (`take_adopted`).
        """
        with self._lock:
            self.deleted.revive(run_id)
            number = self.number(run_id)
            if trace_id:
                self._announced[trace_id] = number
                self._settle(trace_id, number, RunRule.TRACE)
            for session in session_ids:
                self._sessions[session] = number
                for loose in sorted(self._by_session.get(session, ())):
                    self._settle(loose, number, RunRule.SESSION)
            return number

    def adopt(self, run_id: str, trace_ids: Iterable[str]) -> None:
        """Give unattributed traces to a run; those that are of a run by now stay with it."""
        with self._lock:
            number = self.number(run_id)
            for trace_id in trace_ids:
                if self._run_of_trace(trace_id) is None:
                    self._settle(trace_id, number, RunRule.GIVEN)

    def forget(self, runs: Mapping[str, int]) -> None:
        """Have what comes of these runs, by id, recognised as late; sessions that they announced are free again."""
        with self._lock:
            dropped = self.deleted.add(runs)
            numbers = set(runs.values())
            for run_id, number in runs.items():
                self._run_nos.pop(run_id, None)
                self._run_ids.pop(number, None)
            for trace_id in [trace for trace, loose in self._loose.items() if loose.run_no in numbers]:
                self._traces[trace_id] = self._loose[trace_id].run_no
                self._forget(trace_id)
            for trace_id in [trace for trace, number in self._announced.items() if number in numbers]:
                self._traces[trace_id] = self._announced.pop(trace_id)
            self._sessions = {one: number for one, number in self._sessions.items() if number not in numbers}
            if dropped:
                self._traces = {trace: number for trace, number in self._traces.items() if number not in dropped}

    def restore(self, runs: Mapping[str, int]) -> None:
        """Take back that runs were deleted: the store could not do it."""
        with self._lock:
            self.deleted.remove(runs)
            self._run_nos.update(runs)
            self._run_ids.update((number, run_id) for run_id, number in runs.items())

    def take_adopted(self) -> list[tuple[str, int, str]]:
        """Return (trace id, run number, rule) of traces that were stored unattributed and are not any more."""
        with self._lock:
            adopted, self._adopted = self._adopted, []
            return adopted

    def give_back(self, adopted: list[tuple[str, int, str]]) -> None:
        """Take back adoptions whose commit failed; the next `take_adopted` returns them first."""
        with self._lock:
            self._adopted = adopted + self._adopted

    def conflicts(self, run_id: str | None = None) -> list[Conflict]:
        """Return the conflicts in which `run_id` is named, or all."""
        with self._lock:
            every = list(self._conflicts.values())
        return [one for one in every if run_id is None or run_id in (one.run_id, one.other_run_id)]

    # -- decisions -------------------------------------------------------------------------------------------------

    def decide(
        self, claims: Sequence[Claim], trace_ids: Sequence[str], header: str = "", path: str = ""
    ) -> tuple[list[int], list[str]]:
        """Decide the run of each item of one request.

        Args:
            claims: what each item says.
            trace_ids: its trace, empty when it has none.
            header: run id of the request's header (rule 3), empty when absent.
            path: run id of the request's path (rule 4), empty when absent.

        Returns:
            Run numbers and rules.
        """
        with self._lock:
            sent = (
                [
                    (rule.value, self.number(run_id))
                    for rule, run_id in ((RunRule.HEADER, header), (RunRule.PATH, path))
                    if run_id
                ]
                if header or path
                else []
            )
            items = list(zip(map(id, claims), trace_ids, strict=True))
            distinct = dict(zip(items, claims, strict=True))
            own: dict[_Item, _Said] = {
                item: (claim, self._own(claim, item[1], sent)) for item, claim in distinct.items()
            }
            self._learn(own)
            decided = {item: self._final(item[1], *said) for item, said in own.items()}
            rows = [decided[item] for item in items]
        return [number for _, number in rows], [rule for rule, _ in rows]

    def run_of(self, claim: Claim, header: str = "", path: str = "") -> int:
        """Return the run that a claim without a trace names (metrics, rejected items), `NO_RUN` when none."""
        return self.decide([claim], [""], header, path)[0][0]

    def _own(self, claim: Claim, trace_id: str, sent: list[Decision]) -> Decision | None:
        """Return what the item itself and its request say; disagreement is noted."""
        found: list[Decision] = []
        if claim.resource:
            found.append((RunRule.RESOURCE.value, self.number(claim.resource)))
        if claim.span:
            found.append((RunRule.SPAN.value, self.number(claim.span)))
        found += sent
        if trace_id in self._announced:
            found.append((RunRule.TRACE.value, self._announced[trace_id]))
        found += [(RunRule.LINK.value, number) for target in claim.links if (number := self._run_linked(target))]
        found += [(RunRule.SESSION.value, self._sessions[one]) for one in claim.sessions if one in self._sessions]
        if claim.key:
            found.append((RunRule.RUN_KEY.value, self.number(claim.key)))
        for other in found[1:]:
            if other[1] != found[0][1]:
                self._disagree(found[0], other, trace_id)
        return found[0] if found else None

    def _run_of_trace(self, trace_id: str) -> int | None:
        return self._announced.get(trace_id) or self._traces.get(trace_id)

    def _run_linked(self, trace_id: str) -> int | None:
        """Return the run of a trace that a link names: a trace that only links to a deleted run is a run by itself."""
        number = self._run_of_trace(trace_id)
        return None if number in self.deleted else number

    def _learn(self, own: dict[_Item, _Said]) -> None:
        """Remember the run of each trace of the request; the strongest evidence in it decides, not the order."""
        strongest: dict[str, Decision] = {}
        waiting: dict[str, list[str]] = {}
        for (_, trace_id), (claim, decision) in own.items():
            if trace_id and decision:
                known = strongest.get(trace_id)
                if known is None or _rank(decision) < _rank(known):
                    strongest[trace_id] = decision
            elif trace_id:
                for target in claim.links:
                    waiting.setdefault(target, []).append(trace_id)
        for trace_id, decision in strongest.items():
            if self._run_of_trace(trace_id) is None and decision[1] not in self.deleted:
                self._settle(trace_id, decision[1], RunRule.TRACE)
        known_targets = [target for target in waiting if self._run_linked(target) is not None]
        while known_targets:  # links among the traces of this very request, in any order
            target = known_targets.pop()
            number = self._run_of_trace(target)
            for trace_id in waiting.get(target, ()):
                if number is not None and self._run_of_trace(trace_id) is None:
                    self._settle(trace_id, number, RunRule.LINK)
                    known_targets.append(trace_id)

    def _final(self, trace_id: str, claim: Claim, own: Decision | None) -> Decision:
        """Weigh what an item says itself against the run of its trace; where they agree, report the item's own rule."""
        known = self._run_of_trace(trace_id) if trace_id else None
        if own is None:
            if known is not None:
                linked = any(self._run_of_trace(target) == known for target in claim.links)
                return (RunRule.LINK if linked else RunRule.TRACE).value, known
            return RunRule.NONE.value, self._stand_alone(trace_id, claim) if trace_id else NO_RUN
        if known is None or known == own[1]:
            return own
        trace = (RunRule.TRACE.value, known)
        if _ORDER[own[0]] < _ORDER[RunRule.TRACE]:
            self._disagree(own, trace, trace_id)
            return own
        self._disagree(trace, own, trace_id)
        return trace

    def _stand_alone(self, trace_id: str, claim: Claim) -> int:
        """Keep an unattributed trace in mind, with what may attribute it later."""
        loose = self._loose.get(trace_id)
        if loose is None:
            if len(self._loose) >= self._limit:
                self._forget(next(iter(self._loose)))
                self._forgot = True
            loose = self._loose[trace_id] = _Loose(self._register(trace_id))
        for session in claim.sessions:
            loose.sessions.add(session)
            self._by_session.setdefault(session, set()).add(trace_id)
        for target in claim.links:
            loose.links.add(target)
            self._by_link.setdefault(target, set()).add(trace_id)
        return loose.run_no

    def _settle(self, trace_id: str, number: int, rule: RunRule) -> None:
        """Give a trace to a run, and with it what was waiting for that (iterative: chains of links may be long)."""
        todo = [(trace_id, rule)]
        while todo:
            trace, because = todo.pop()
            if trace not in self._announced:
                if trace in self._traces and trace != trace_id:
                    continue
                if len(self._traces) >= self._limit:
                    self._traces.pop(next(iter(self._traces)))
                self._traces[trace] = number
            if trace in self._loose:
                alone = self._loose[trace].run_no
                self.joined(alone, number)
                if alone != number and self._run_nos.get(trace) == alone:  # known as a run since a restart
                    del self._run_nos[trace], self._run_ids[alone]
            if trace in self._loose or self._forgot:
                self._adopted.append((trace, number, because.value))
                self._forget(trace)
            todo += [
                (waiting, RunRule.LINK) for waiting in sorted(self._by_link.pop(trace, ())) if waiting in self._loose
            ]

    def _forget(self, trace_id: str) -> None:
        """Drop an unattributed trace from every index."""
        loose = self._loose.pop(trace_id, None)
        if loose is None:
            return
        for index, keys in ((self._by_session, loose.sessions), (self._by_link, loose.links)):
            for key in keys:
                waiting = index.get(key)
                if waiting is not None:
                    waiting.discard(trace_id)
                    if not waiting:
                        del index[key]

    def _disagree(self, first: Decision, other: Decision, trace_id: str) -> None:
        key = (*first, *other)
        if key not in self._conflicts and len(self._conflicts) < _CONFLICT_LIMIT:
            self._conflicts[key] = Conflict(
                first[0], self._run_ids.get(first[1], ""), other[0], self._run_ids.get(other[1], ""), trace_id
            )


def _rank(decision: Decision) -> tuple[int, int]:
    return _ORDER[decision[0]], decision[1]
