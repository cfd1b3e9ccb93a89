"""Which run a span or log record belongs to (spec: span-model.md §2).

Rules, in order: 1 resource attribute, 2 span attribute, 3 header, 4 path (a trace that a run was started with goes before 1, 3 and 4,
which say whose process it is), 5 its trace is a run's, 6 a link to such a trace, 7 an announced session, 8 the attribute that `run_key`
names, 9 none: the trace is a run by itself. Exact equality only, never a time window. What arrives before its evidence is adopted later.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

from clawtrace.model.run import RunRule

__all__ = ["NO_RUN", "RUN_ID", "Attribution", "Claim", "ClaimReader", "Conflict", "RunNumbers"]

RUN_ID = "clawtrace.run_id"
"""Resource and span attribute that names the run (rules 1 and 2)."""

NO_RUN = 0
"""Run number of items that name no run and have no trace (a log record outside of traces)."""

_CACHE_LIMIT = _DELETED_LIMIT = 10_000
_CONFLICT_LIMIT = 1_000
_ORDER = {rule.value: place for place, rule in enumerate(RunRule)}

Clue = tuple[RunRule, str]
"""Evidence that may attribute a trace later: one of its sessions, or a trace that it links to."""
Decision = tuple[str, int]
"""Rule and run number."""


class Claim(NamedTuple):
    """The values of one span or log record that may name its run; empty if absent."""

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
    trace: str = ""
    """The trace of a rejected item, as far as it can be read."""

    def clues(self) -> list[Clue]:
        """Return the evidence that may attribute its trace later."""
        return [(RunRule.SESSION, one) for one in self.sessions] + [(RunRule.LINK, one) for one in self.links]


class ClaimReader:
    """Reads claims from attributes.

    Args:
        run_key: attribute that names the run in foreign data (rule 8).
        session_keys: attributes that hold a session or conversation id (rule 7).
    """

    def __init__(self, run_key: str | None = None, session_keys: Sequence[str] = ()) -> None:
        self._run_key = run_key
        self._session_keys = session_keys
        self.keys = frozenset({RUN_ID, *session_keys, *([run_key] if run_key else [])})
        """The attributes that this reads; callers may leave out others."""
        self.of_item = lru_cache(_CACHE_LIMIT)(self._of_item)

    def of_resource(self, attributes: Mapping[str, str]) -> Claim:
        """Return the claim of a resource, for everything below it."""
        return Claim(attributes.get(RUN_ID, ""), "", self._sessions(attributes), self._key(attributes))

    def _of_item(self, base: Claim, said: tuple[tuple[str, str], ...], links: tuple[str, ...] = ()) -> Claim:
        """Return the claim of a span or log record from its relevant attributes, added to that of its resource (`base`)."""
        attributes = dict(said)
        sessions = tuple(dict.fromkeys((*base.sessions, *self._sessions(attributes))))
        key = self._key(attributes) or base.key
        return Claim(base.resource, attributes.get(RUN_ID, ""), sessions, key, links)

    def _key(self, attributes: Mapping[str, str]) -> str:
        return attributes.get(self._run_key, "") if self._run_key else ""

    def _sessions(self, attributes: Mapping[str, str]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(attributes[key] for key in self._session_keys if attributes.get(key)))


class RunNumbers:
    """Runs by their ids and by their numbers, of which the latest are kept; guarded by the lock of `Attribution`."""

    def __init__(self, runs: Iterable[tuple[str, int]], most: int) -> None:
        self.by_id: dict[str, int] = dict(runs)
        self.by_number: dict[int, str] = {number: run_id for run_id, number in self.by_id.items()}
        self._most = most

    def __contains__(self, number: object) -> bool:
        return number in self.by_number

    def add(self, runs: Mapping[str, int]) -> set[int]:
        """Add runs; return the numbers of those that are evicted."""
        self.by_id.update(runs)
        self.by_number.update((number, run_id) for run_id, number in runs.items())
        dropped = list(islice(self.by_number, max(0, len(self.by_number) - self._most)))
        for number in dropped:
            self.by_id.pop(self.by_number.pop(number), None)
        return set(dropped)

    def remove(self, runs: Mapping[str, int]) -> None:
        """Remove runs."""
        for run_id, number in runs.items():
            self.by_id.pop(run_id, None)
            self.by_number.pop(number, None)


class Conflict(NamedTuple):
    """Two rules that disagree on the run of the same span; the stronger one decided."""

    rule: str
    run_id: str
    """The run that the stronger rule names, and that the span was given to."""
    other_rule: str
    other_run_id: str
    trace_id: str
    """An example."""


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
        self.deleted = RunNumbers(deleted, _DELETED_LIMIT)
        """Deleted runs whose items may still arrive, by name or trace; those items are not stored."""
        self._lock = threading.RLock()
        self._register = run_no
        self._limit = trace_limit
        self._runs = RunNumbers(runs, trace_limit)
        self._announced: dict[str, int] = {}
        self._sessions: dict[str, int] = dict(sessions)
        self._traces: dict[str, int] = {}
        self._loose: dict[str, int] = {}
        """Numbers of unattributed traces, each a run by itself until evidence comes."""
        self._clues: dict[str, set[Clue]] = {}
        self._waiting: dict[Clue, set[str]] = {}
        """The evidence that may attribute them, by trace, and the traces by evidence."""
        self._forgot = False
        self._adopted: list[tuple[str, int, str]] = []
        self._conflicts: dict[tuple[str, int, str, int], Conflict] = {}
        for trace_id, number, rule in traces:
            (self._loose if rule == RunRule.NONE else self._traces)[trace_id] = number

    # -- runs ------------------------------------------------------------------------------------------------------

    def number(self, run_id: str) -> int:
        """Return the number of the run `run_id`, registering it when it is new."""
        with self._lock:
            number = self._runs.by_id.get(run_id) or self.deleted.by_id.get(run_id)
            if number is None:
                number = self._register(run_id)
                self._runs.add({run_id: number})
            return number

    def run_id(self, number: int) -> str:
        """Return the id of a run that was numbered here; empty text for `NO_RUN`."""
        with self._lock:
            return self._runs.by_number.get(number, "")

    def names(self) -> dict[int, str]:
        """Return the id of each run in use by its number; unattributed traces are runs by themselves."""
        with self._lock:
            return {number: trace_id for trace_id, number in self._loose.items()} | self._runs.by_number

    def announce(self, run_id: str, trace_id: str | None = None, session_ids: Iterable[str] = ()) -> int:
        """Register the trace (injected ``traceparent``) and sessions of a run; return the run's number.

        Unattributed traces that fit are adopted at once (`take_adopted`).
        """
        with self._lock:
            # It was announced once more, and names a new run. What belongs to a deleted one by its trace stays late.
            self.deleted.by_id.pop(run_id, None)
            number = self.number(run_id)
            if trace_id:
                self._announced[trace_id] = number
                self._settle(trace_id, number, RunRule.TRACE)
            for session in session_ids:
                self._sessions[session] = number
                for loose in sorted(self._waiting.get((RunRule.SESSION, session), ())):
                    self._settle(loose, number, RunRule.SESSION)
            return number

    def adopt(self, run_id: str, trace_ids: Iterable[str]) -> None:
        """Attribute traces that have no run to this run; traces with a run keep it."""
        with self._lock:
            number = self.number(run_id)
            for trace_id in trace_ids:
                if self._run_of_trace(trace_id) is None:
                    self._settle(trace_id, number, RunRule.GIVEN)

    def forget(self, runs: Mapping[str, int]) -> None:
        """Treat items of these runs, by id, as late from now on, and release the sessions that the runs announced."""
        with self._lock:
            dropped = self.deleted.add(runs)
            numbers = set(runs.values())
            self._runs.remove(runs)
            for trace_id in [trace for trace, number in self._loose.items() if number in numbers]:
                self._traces[trace_id] = self._loose[trace_id]
                self._forget(trace_id)
            for trace_id in [trace for trace, number in self._announced.items() if number in numbers]:
                self._traces[trace_id] = self._announced.pop(trace_id)
            self._sessions = {one: number for one, number in self._sessions.items() if number not in numbers}
            if dropped:
                self._traces = {trace: number for trace, number in self._traces.items() if number not in dropped}

    def restore(self, runs: Mapping[str, int]) -> None:
        """Undo `forget` for runs that the store could not delete."""
        with self._lock:
            self.deleted.remove(runs)
            self._runs.add(runs)

    def take_adopted(self) -> list[tuple[str, int, str]]:
        """Return (trace id, run number, rule) of traces that were stored without a run and have one now."""
        with self._lock:
            adopted, self._adopted = self._adopted, []
            return adopted

    def give_back(self, adopted: list[tuple[str, int, str]]) -> None:
        """Put back adoptions whose commit failed; the next `take_adopted` returns them first."""
        with self._lock:
            self._adopted = adopted + self._adopted

    def conflicts(self, run_id: str | None = None) -> list[Conflict]:
        """Return the conflicts in which `run_id` is named, or all."""
        with self._lock:
            return [one for one in self._conflicts.values() if run_id in (None, one.run_id, one.other_run_id)]

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
            sent = self._named((RunRule.HEADER, header), (RunRule.PATH, path))
            items = list(zip(claims, trace_ids, strict=True))
            own = {item: self._own(*item, sent) for item in dict.fromkeys(items)}
            self._learn(own)
            decided = {item: self._final(*item, decision) for item, decision in own.items()}
            rows = [decided[item] for item in items]
        return [number for _, number in rows], [rule for rule, _ in rows]

    def _own(self, claim: Claim, trace_id: str, sent: list[Decision]) -> Decision | None:
        """Return the run that the item and its request name; record a conflict if they disagree."""
        found = self._named((RunRule.RESOURCE, claim.resource), (RunRule.SPAN, claim.span)) + sent
        if trace_id in self._announced:
            found.append((RunRule.TRACE.value, self._announced[trace_id]))
        found += [(RunRule.LINK.value, number) for target in claim.links if (number := self._run_linked(target))]
        found += [(RunRule.SESSION.value, self._sessions[one]) for one in claim.sessions if one in self._sessions]
        found += self._named((RunRule.RUN_KEY, claim.key))
        if trace_id in self._announced and not claim.span:
            # A process that another run started may be at work for this one: a server that both use.
            found.sort(key=lambda one: one[1] != self._announced[trace_id])
        for other in found[1:]:
            if other[1] != found[0][1]:
                self._disagree(found[0], other, trace_id)
        return found[0] if found else None

    def _named(self, *said: tuple[RunRule, str]) -> list[Decision]:
        return [(rule.value, self.number(run_id)) for rule, run_id in said if run_id]

    def _run_of_trace(self, trace_id: str) -> int | None:
        return self._announced.get(trace_id) or self._traces.get(trace_id)

    def _run_linked(self, trace_id: str) -> int | None:
        """Return the run of a trace that a link names: a trace that only links to a deleted run is a run by itself."""
        number = self._run_of_trace(trace_id)
        return None if number in self.deleted else number

    def _learn(self, own: Mapping[tuple[Claim, str], Decision | None]) -> None:
        """Remember the run of each trace of the request; the strongest evidence in it decides, not the order."""
        strongest: dict[str, Decision] = {}
        waiting: dict[str, list[str]] = {}
        for (claim, trace_id), decision in own.items():
            if trace_id and decision:
                strongest[trace_id] = min(strongest.get(trace_id, decision), decision, key=_rank)
            elif trace_id:
                for target in claim.links:
                    waiting.setdefault(target, []).append(trace_id)
        for trace_id, decision in strongest.items():
            if self._run_of_trace(trace_id) is None and decision[1] not in self.deleted:
                self._settle(trace_id, decision[1], RunRule.TRACE)
        known = [(target, number) for target in waiting if (number := self._run_linked(target))]
        while known:  # links among the traces of this very request, in any order
            target, number = known.pop()
            for trace_id in waiting.get(target, ()):
                if self._run_of_trace(trace_id) is None:
                    self._settle(trace_id, number, RunRule.LINK)
                    known.append((trace_id, number))

    def _final(self, claim: Claim, trace_id: str, own: Decision | None) -> Decision:
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
        """Remember a trace without a run and the evidence that may attribute it later."""
        if trace_id not in self._loose:
            if len(self._loose) >= self._limit:
                self._forget(next(iter(self._loose)))
                self._forgot = True
            self._loose[trace_id] = self._register(trace_id)
        for clue in claim.clues():
            self._clues.setdefault(trace_id, set()).add(clue)
            self._waiting.setdefault(clue, set()).add(trace_id)
        return self._loose[trace_id]

    def _settle(self, trace_id: str, number: int, rule: RunRule) -> None:
        """Attribute a trace to a run, and with it the traces that depended on it (iterative: chains of links may be long)."""
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
                alone = self._loose[trace]
                self.joined(alone, number)
                if alone != number and self._runs.by_id.get(trace) == alone:  # known as a run since a restart
                    self._runs.remove({trace: alone})
            if trace in self._loose or self._forgot:
                self._adopted.append((trace, number, because.value))
                self._forget(trace)
            waiting = sorted(self._waiting.pop((RunRule.LINK, trace), ()))
            todo += [(one, RunRule.LINK) for one in waiting if one in self._loose]

    def _forget(self, trace_id: str) -> None:
        """Drop an unattributed trace from every index."""
        self._loose.pop(trace_id, None)
        for clue in self._clues.pop(trace_id, ()):
            waiting = self._waiting.get(clue, set())
            waiting.discard(trace_id)
            if not waiting:
                self._waiting.pop(clue, None)

    def _disagree(self, first: Decision, other: Decision, trace_id: str) -> None:
        key = (*first, *other)
        if key not in self._conflicts and len(self._conflicts) < _CONFLICT_LIMIT:
            named = [(rule, self._runs.by_number.get(number, "")) for rule, number in (first, other)]
            self._conflicts[key] = Conflict(*named[0], *named[1], trace_id)


def _rank(decision: Decision) -> tuple[int, int]:
    return _ORDER[decision[0]], decision[1]
