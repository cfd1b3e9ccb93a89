"""Requests in, one batch for one commit out: decode, redact, decide the run, drop what was there before."""

from __future__ import annotations

import itertools
import time
from collections import Counter
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from clawtrace.model.batches import joined
from clawtrace.model.raw import LogBatch, Receipt, SpanBatch
from clawtrace.model.run import RunRule
from clawtrace.receiver.attribute import NO_RUN, Attribution
from clawtrace.receiver.claims import Claim, ClaimReader
from clawtrace.receiver.columns import redact, without
from clawtrace.receiver.decode_json import JsonDecoder
from clawtrace.receiver.dedupe import RequestWindow, SpanWindow
from clawtrace.receiver.payload import BadPayloadError, Decoded, Signal
from clawtrace.receiver.redact import Redactor
from clawtrace.receiver.request import Answer, Outcome, Request
from clawtrace.receiver.sniff import JSON_KEYS, document_signal, protobuf_signal

if TYPE_CHECKING:
    from clawtrace.receiver.decode_protobuf import ProtobufDecoder

__all__ = ["Intake", "Note", "Taken"]

_REASONS_TOLD = 5


class Note(NamedTuple):
    """A receipt, and what the counters need beside it."""

    receipt: Receipt
    port: int
    unattributed: bool
    """Whether its items belong to no run but their own trace."""


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
        self, attribution: Attribution, redactor: Redactor, *, run_key: str | None = None, span_window: int = 262_144
    ) -> None:
        self._claims = ClaimReader(run_key)
        self._attribution = attribution
        self._redactor = redactor
        self._json = JsonDecoder(redactor, self._claims)
        self._span_window = SpanWindow(span_window)
        self._request_window = RequestWindow()
        # Numbers keep growing over restarts without asking the store: microseconds pass faster than requests come.
        self._request_numbers = itertools.count(time.time_ns() // 1_000)
        self._spans: list[SpanBatch] = []
        self._logs: list[LogBatch] = []
        self._notes: list[Note] = []

    def __len__(self) -> int:
        return sum(map(len, self._spans)) + sum(map(len, self._logs))

    def add(self, request: Request, *, given_run: int | None = None, document: Any = None) -> Answer:
        """Add one request to the batch.

        Args:
            request: what came in; its `runs` are filled in.
            given_run: the run of everything in it, when a user said so.
            document: the parsed body, where the caller has it.

        Returns:
            What the sender is told, once the batch is committed.

        Raises:
            BadPayloadError: it will never be accepted; the batch is as before.
            StoreError: a new run could not be registered; the batch is as before.
        """
        if given_run is None and request.given_run:
            given_run = self._attribution.number(request.given_run)
        decoded = self._decode(request, document)
        batch = decoded.spans if request.signal == "traces" else decoded.logs
        counts = _Counts()
        if given_run is None:
            batch.run_no, batch.run_rule = self._attribution.decide(
                decoded.claims, batch.trace_id, request.header_run, request.path_run
            )
        else:
            batch.run_no, batch.run_rule = [given_run] * len(batch), [RunRule.GIVEN.value] * len(batch)
        for claim, points in decoded.points.items():
            counts.accepted[self._run_of(claim, request, given_run)] += points
        for (claim, reason), items in decoded.rejected.items():
            counts.rejected[self._run_of(claim, request, given_run), reason] += items
        number = next(self._request_numbers)
        batch.arrival_ns, batch.request_no = [request.arrival_ns] * len(batch), [number] * len(batch)
        batch.protocol = [request.protocol] * len(batch)
        self._gather(request, batch, counts)
        self._notes += counts.notes(request, number)
        if request.signal != "metrics":
            request.runs = tuple(run for run in {**counts.accepted, **counts.duplicates} if run != NO_RUN)
            request.outside = counts.accepted[NO_RUN]
        return Answer(Outcome.ACCEPTED, sum(decoded.rejected.values()), _told(decoded.rejected))

    def take(self) -> Taken:
        """Return what is to be committed, and start the next batch."""
        taken = Taken(
            joined(self._spans or [SpanBatch()]),
            joined(self._logs or [LogBatch()]),
            self._notes,
            self._attribution.take_adopted(),
        )
        self._spans, self._logs, self._notes = [], [], []
        return taken

    def committed(self) -> None:
        """What was taken is durable."""
        self._span_window.keep()
        self._request_window.keep()

    def failed(self, taken: Taken) -> None:
        """What was taken could not be committed; its retry counts as new."""
        self._span_window.undo()
        self._request_window.undo()
        self._attribution.give_back(taken.adopted)

    def note(self, note: Note) -> None:
        """Have a receipt written with the next commit."""
        self._notes.append(note)

    # --------------------------------------------------------------------------------------------------------------

    def _run_of(self, claim: Claim, request: Request, given_run: int | None) -> int:
        if given_run is not None:
            return given_run
        return self._attribution.run_of(claim, request.header_run, request.path_run)

    def _decode(self, request: Request, document: Any) -> Decoded:
        suspect = self._redactor.suspects(request.body)
        if not request.json:
            decoded = self._decode_protobuf(request, suspect)
        elif document is None:
            decoded = self._decode_text(request, suspect)
        else:
            decoded = self._json.decode(request.signal, document, request.body, suspect=suspect)
        if suspect:
            redact(decoded.spans, self._redactor.clean_all)
            redact(decoded.logs, self._redactor.clean_all)
            told = decoded.rejected
            decoded.rejected = Counter()
            for (claim, reason), items in told.items():
                decoded.rejected[claim, self._redactor.clean(reason)] += items
        return decoded

    def _decode_text(self, request: Request, suspect: bool) -> Decoded:
        if request.signal == "traces":
            regular = self._json.regular_spans(request.body, suspect=suspect)
            if regular is not None:
                return regular
        document = self._json.parse(request.body)
        _check_document(request.signal, document)
        return self._json.decode(request.signal, document, request.body, suspect=suspect)

    @cached_property
    def _protobuf(self) -> ProtobufDecoder:
        from clawtrace.receiver.decode_protobuf import ProtobufDecoder

        return ProtobufDecoder(self._redactor, self._claims)

    def _decode_protobuf(self, request: Request, suspect: bool) -> Decoded:
        """Decode, and where the result makes no sense say which signal the body is of."""
        try:
            decoded = self._protobuf.decode(request.signal, request.body, suspect=suspect)
            nothing_good = not decoded.claims and bool(decoded.rejected)
            if request.signal == "metrics":
                doubtful = not decoded.points.total() and bool(request.body)
            else:
                doubtful = nothing_good or (request.signal == "logs" and 0 in decoded.logs.time_ns)
        except BadPayloadError:
            _check_signal(request.signal, protobuf_signal(request.body))
            raise
        if doubtful:
            _check_signal(request.signal, protobuf_signal(request.body))
        return decoded

    def _gather(self, request: Request, batch: SpanBatch | LogBatch, counts: _Counts) -> None:
        """Append the rows that are new; nothing here can fail half-way."""
        runs = batch.run_no
        if isinstance(batch, SpanBatch):
            repeated = self._span_window.stage(runs, batch.trace_id, _versions(batch))
            self._spans.append(without(batch, repeated) if repeated else batch)
        else:
            repeated = set(range(len(runs))) if self._is_retry(request, batch) else set()
            if not repeated:
                self._logs.append(batch)
        counts.accepted.update(runs)
        if repeated:
            counts.duplicates.update(runs[row] for row in repeated)
            counts.accepted -= counts.duplicates
        if RunRule.NONE.value in batch.run_rule:
            counts.unattributed = {run for run, rule in zip(runs, batch.run_rule, strict=True) if rule == RunRule.NONE}

    def _is_retry(self, request: Request, batch: LogBatch) -> bool:
        """Say whether this very request came before; records without a time cannot be told apart, so they are kept."""
        if not len(batch) or 0 in batch.time_ns:
            return False
        context = f"{request.header_run}\0{request.path_run}\0{batch.run_rule[0]}\0{batch.run_no[0]}"
        return self._request_window.stage(request.body, context)


class _Counts:
    """What one request did, by run."""

    def __init__(self) -> None:
        self.accepted: Counter[int] = Counter()
        self.duplicates: Counter[int] = Counter()
        self.rejected: Counter[tuple[int, str]] = Counter()
        self.unattributed: set[int] = set()

    def notes(self, request: Request, number: int) -> list[Note]:
        """Return a note for each run that the request did anything for."""
        reasons: dict[int, Counter[str]] = {}
        for (run, reason), items in self.rejected.items():
            reasons.setdefault(run, Counter())[reason] += items
        notes = []
        for run in {**self.accepted, **self.duplicates, **reasons}:
            of_run = reasons.get(run, Counter())
            receipt = Receipt(
                run,
                number,
                request.arrival_ns,
                request.protocol,
                request.signal,
                accepted=self.accepted[run],
                duplicates=self.duplicates[run],
                rejected=of_run.total(),
                reason="; ".join(of_run),
            )
            notes.append(Note(receipt, request.port, run in self.unattributed))
        return notes


def _versions(batch: SpanBatch) -> list[str]:
    """Return what makes each span a repetition: a span that was sent open is no repetition of its ended form."""
    if 0 not in batch.end_ns:
        return batch.span_id
    return [span_id if end else f"{span_id} open" for span_id, end in zip(batch.span_id, batch.end_ns, strict=True)]


def _check_document(signal: Signal, document: Any) -> None:
    found = document_signal(document)
    if document and not found:
        raise BadPayloadError(f"the JSON body holds none of {', '.join(sorted(JSON_KEYS))}")
    _check_signal(signal, found)


def _check_signal(signal: Signal, found: Signal | None) -> None:
    if found and found != signal:
        raise BadPayloadError(f"the body holds {found}, not {signal}; send it to `/v1/{found}`")


def _told(rejected: Counter[tuple[Claim, str]]) -> str:
    """Say why items were rejected, the most frequent reasons first."""
    if not rejected:
        return ""
    reasons: Counter[str] = Counter()
    for (_, reason), items in rejected.items():
        reasons[reason] += items
    told = [f"{items} rejected: {reason}" for reason, items in reasons.most_common(_REASONS_TOLD)]
    if len(reasons) > _REASONS_TOLD:
        told.append(f"and {len(reasons) - _REASONS_TOLD} more reasons")
    return "; ".join(told)
