"""Turn requests into the batch of one commit: decode, redact, attribute to runs, drop repetitions (in a window of recent ids)."""

from __future__ import annotations

import hashlib
import itertools
import time
from collections import Counter, defaultdict
from collections.abc import Collection, Hashable, Iterable, Sequence
from typing import Any, NamedTuple

from clawtrace.model.raw import LogBatch, Receipt, SpanBatch, joined
from clawtrace.model.run import CARRIED, RunRule
from clawtrace.receiver.attribution.attribute import NO_RUN, Attribution, Claim, ClaimReader
from clawtrace.receiver.attribution.connections import Note
from clawtrace.receiver.decode.decode import RequestDecoder
from clawtrace.receiver.decode.items import Decoded, SpanItem
from clawtrace.receiver.redaction.redact import Redactor
from clawtrace.receiver.request import Request, RequestAnswer, RequestOutcome

__all__ = ["Intake", "Taken", "Window", "digest_of"]


class Window:
    """The most recent ids, grouped by run and trace or by request. The store removes all other duplicates when it computes facts."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._size = 0
        self._seen: dict[Hashable, set[str]] = {}
        self._staged: list[tuple[Hashable, str]] = []

    def stage(self, groups: Iterable[Hashable], names: Iterable[str]) -> set[int]:
        """Stage the ids of a request, and return the rows that were seen before.

        Args:
            groups: by row; the oldest group is forgotten first.
            names: by row, what makes it a repetition of another one of its group.
        """
        repeated: set[int] = set()
        group: Hashable = None
        seen: set[str] = set()
        for row, (own, name) in enumerate(zip(groups, names, strict=True)):
            if own != group:
                group = own
                seen = self._seen[group] = self._seen.pop(group, set())
            if name in seen:
                repeated.add(row)
            else:
                seen.add(name)
                self._size += 1
                self._staged.append((group, name))
        return repeated

    def keep(self) -> None:
        """Keep the staged ids after a commit; the oldest groups are evicted."""
        self._staged.clear()
        while self._size > self._limit:
            self._size -= len(self._seen.pop(next(iter(self._seen))))

    def undo(self) -> None:
        """Discard the staged ids after a failed commit."""
        for group, name in self._staged:
            seen = self._seen.get(group, set())
            if name in seen:
                seen.remove(name)
                self._size -= 1
        self._staged.clear()


_REQUESTS = 8_192
"""Requests that are kept by digest, for items without ids (log records): a retry repeats its request byte for byte, times included."""
_REASONS_SHOWN = 5


class Taken(NamedTuple):
    """Everything that one commit writes."""

    spans: SpanBatch
    logs: LogBatch
    notes: list[Note]
    adopted: list[tuple[str, int, str]]

    def __bool__(self) -> bool:
        return bool(self.notes or self.adopted)


class Intake:
    """Gathers what the next commit writes; used by one thread."""

    def __init__(
        self,
        attribution: Attribution,
        redactor: Redactor,
        *,
        run_key: str | None = None,
        session_keys: Sequence[str] = (),
        span_window: int = 262_144,
        first: int | None = None,
    ) -> None:
        self._attribution = attribution
        self._decoder = RequestDecoder(redactor, ClaimReader(run_key, session_keys))
        self._span_window = Window(span_window)
        self._request_window = Window(_REQUESTS)
        self._request_numbers = itertools.count(time.time_ns() // 1_000 if first is None else first)
        self._parts: list[SpanBatch | LogBatch] = []
        """Batches of the next commit."""
        self._rows = 0
        self._notes: list[Note] = []

    def __len__(self) -> int:
        return self._rows

    def add(self, request: Request) -> RequestAnswer:
        """Add one request to the batch; its `runs` are filled in.

        Returns:
            The answer to the sender, once the batch is committed.

        Raises:
            BadPayloadError: it will never be accepted; the batch is as before.
            StoreError: a new run could not be registered; the batch is as before.
        """
        return self._enter(request, self._decoder.decode(request))

    def take(self) -> Taken:
        """Return the batch to commit, and start the next one."""
        taken = Taken(
            joined([one for one in self._parts if isinstance(one, SpanBatch)] or [SpanBatch()]),
            joined([one for one in self._parts if isinstance(one, LogBatch)] or [LogBatch()]),
            self._notes,
            self._attribution.take_adopted(),
        )
        self._parts, self._notes, self._rows = [], [], 0
        return taken

    def committed(self) -> None:
        """Mark the last batch as durable."""
        self._span_window.keep()
        self._request_window.keep()

    def failed(self, taken: Taken) -> None:
        """Undo the last batch, whose commit failed; a retry counts as new."""
        self._span_window.undo()
        self._request_window.undo()
        self._attribution.give_back(taken.adopted)

    # --------------------------------------------------------------------------------------------------------------

    def _enter(self, request: Request, decoded: Decoded) -> RequestAnswer:
        """Attribute the rows of a request to their runs, and drop repetitions."""
        sent: list[Any] = [item for section in decoded.sections for item in section.items]
        count, traces = len(sent), [item.trace_id for item in sent]
        given = self._attribution.number(request.given_run) if request.given_run else None
        if given is None:
            runs, rules = self._attribution.decide(decoded.claims, traces, request.header_run, request.path_run)
        else:
            runs, rules = [given] * count, [RunRule.GIVEN.value] * count
        points = [(self._run_of(claim, request, given), points) for claim, points in decoded.points.items()]
        rejected = [
            (self._run_of(claim, request, given), reason, items) for (claim, reason), items in decoded.rejected.items()
        ]
        late = self._of_deleted(runs)
        # From here on nothing can fail.
        number = next(self._request_numbers)
        repeated = self._repeated(request, sent, runs, rules)
        dropped = {*repeated, *late}
        batch = self._decoder.columns(request.signal, decoded, dropped)
        _fill(batch, request, number, [(runs[row], rules[row]) for row in range(count) if row not in dropped])
        self._parts.append(batch)
        self._rows += len(batch)
        counts = _Counts(runs, rules, {*repeated} - late.keys(), dropped)
        for row, reason in late.items():
            counts.rejected[runs[row]][reason] += 1
            decoded.rejected[decoded.claims[row], reason] += 1
        for run, number_of in points:
            counts.accepted[run] += number_of
        for run, reason, items in rejected:
            # Which run lost what names none is unknown: any of its request.
            for one in {*runs} or {run} if run == NO_RUN else {run}:
                counts.rejected[one][reason] += items
        self._notes += counts.notes(request, number)
        if request.signal != "metrics":
            request.runs = tuple(run for run in {**counts.accepted, **counts.duplicates} if run != NO_RUN)
            request.outside = counts.accepted[NO_RUN]
        return RequestAnswer(RequestOutcome.ACCEPTED, sum(decoded.rejected.values()), _rejections(decoded.rejected))

    def _of_deleted(self, runs: list[int]) -> dict[int, str]:
        """Return the rows whose run was deleted, each with the reason, and detach them from the run."""
        deleted = self._attribution.deleted
        late = {row: deleted.by_number[run] for row, run in enumerate(runs) if run in deleted}
        for row in late:
            runs[row] = NO_RUN
        return {row: f"its run {run_id!r} was deleted from the store" for row, run_id in late.items()}

    def _run_of(self, claim: Claim, request: Request, given: int | None) -> int:
        """Return the run of metrics, which name no trace, or of rejected items."""
        if given is None:
            ((given,), _) = self._attribution.decide([claim], [claim.trace], request.header_run, request.path_run)
        return NO_RUN if given in self._attribution.deleted else given

    def _repeated(self, request: Request, items: Sequence[Any], runs: list[int], rules: list[str]) -> Collection[int]:
        """Return the rows of a request that are repetitions; log records without a time look alike, so they are kept."""
        if request.signal == "traces":
            groups = zip(runs, [item.trace_id for item in items], strict=True)
            return self._span_window.stage(groups, map(_version, items))
        if not items or not all(item.time_ns for item in items):
            return ()
        context = f"{request.header_run}\0{request.path_run}\0{rules[0]}\0{runs[0]}"
        return range(len(items)) if self._request_window.stage([digest_of(request.body, context)], [""]) else ()


def digest_of(body: bytes, context: str) -> bytes:
    """Return a digest that identifies a request; `context` holds what decides on its rows in addition to its bytes."""
    return hashlib.blake2b(body, digest_size=16, key=hashlib.sha256(context.encode()).digest()).digest()


def _fill(batch: SpanBatch | LogBatch, request: Request, number: int, decided: list[tuple[int, str]]) -> None:
    """Fill in the receiver's own columns of a request's rows."""
    count = len(decided)
    batch.run_no, batch.run_rule = [run for run, _ in decided], [rule for _, rule in decided]
    batch.arrival_ns = [request.arrival_ns] * count
    batch.request_no = [number] * count
    batch.protocol = [request.protocol] * count


class _Counts:
    """The effects of one request, by run."""

    def __init__(self, runs: list[int], rules: list[str], repeated: Collection[int], dropped: Collection[int]) -> None:
        """Count rows.

        Args:
            repeated: those that came before.
            dropped: those that are not accepted.
        """
        self.accepted = Counter([run for row, run in enumerate(runs) if row not in dropped])
        self.duplicates = Counter([runs[row] for row in repeated])
        self.rejected: dict[int, Counter[str]] = defaultdict(Counter)
        """By run and reason."""
        self._unattributed = {run for run, rule in zip(runs, rules, strict=True) if rule == RunRule.NONE}
        self._foreign = {run for run, rule in zip(runs, rules, strict=True) if rule not in CARRIED}

    def notes(self, request: Request, number: int) -> list[Note]:
        """Return a note for each run that the request affected."""
        notes = []
        for run in {**self.accepted, **self.duplicates, **self.rejected}:
            reasons = self.rejected.get(run, Counter())
            receipt = Receipt(
                run,
                number,
                request.arrival_ns,
                request.protocol,
                request.signal,
                accepted=self.accepted[run],
                duplicates=self.duplicates[run],
                rejected=reasons.total(),
                reason="; ".join(reasons),
            )
            notes.append(
                Note(receipt, request.port, run in self._unattributed, run in self._foreign, request.passed_on)
            )
        return notes


def _version(span: SpanItem) -> str:
    """Return what makes a span a repetition.

    A span that was sent open, or with fewer attributes, is no repetition of its whole form; a span of another start is
    another span, whose program made one id twice.
    """
    return f"{span.span_id}{span.start_ns} {span.end_ns - span.start_ns} {len(span.attributes[0])}"


def _rejections(rejected: Counter[tuple[Claim, str]]) -> str:
    """Return the reasons why items were rejected, the most frequent first."""
    if not rejected:
        return ""
    reasons: Counter[str] = Counter()
    for (_, reason), items in rejected.items():
        reasons[reason] += items
    parts = [f"{items} rejected: {reason}" for reason, items in reasons.most_common(_REASONS_SHOWN)]
    if len(reasons) > _REASONS_SHOWN:
        parts.append(f"and {len(reasons) - _REASONS_SHOWN} more reasons")
    return "; ".join(parts)
