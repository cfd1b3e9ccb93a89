"""The one thread that decodes and commits, and the queue before it: many requests, one transaction, then all answers.

The queue is bounded in bytes. An answer says "durable", so it goes out after the commit. A payload that cannot be read rejects itself; a
commit that fails turns all of its requests away, to be retried, and the thread lives on: it says once that the store cannot be written,
and once that it can again.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable

from clawtrace.errors import StoreError
from clawtrace.model.raw import RawSink, Receipt
from clawtrace.receiver.attribution.attribute import NO_RUN
from clawtrace.receiver.attribution.connections import Changes, Connections, Counters, Note
from clawtrace.receiver.decode.collector_losses import CollectorLosses
from clawtrace.receiver.intake import Intake, Taken
from clawtrace.receiver.limits import ReceiverSettings
from clawtrace.receiver.request import BadPayloadError, Request, RequestAnswer, RequestOutcome
from clawtrace.support.memory import collector_paused

__all__ = ["ByteBudget", "Inbox", "Writer"]

_GATHER_SECONDS = (0.005, 0.025)
"""How long the next group waits for more requests while none comes, and at most. A commit costs milliseconds however
few spans it has; senders that were just answered soon send again, and one that sends alone never waits."""


class ByteBudget:
    """Bytes that may be held at the same time, by bodies still arriving and requests not yet committed."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._used = 0
        self._lock = threading.Lock()

    @property
    def taken(self) -> int:
        """Reserved bytes."""
        return self._used

    def take(self, count: int) -> bool:
        """Reserve `count` bytes; False when they do not fit now."""
        with self._lock:
            if self._used + count > self._limit:
                return False
            self._used += count
            return True

    def give(self, count: int) -> None:
        """Free `count` reserved bytes."""
        with self._lock:
            self._used -= count


class Inbox:
    """Requests whose bytes are reserved, in order of arrival; an event among them marks a flush."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._waiting: deque[Request | threading.Event] = deque()
        self._closed = False
        self._wanted = 1
        """The number of requests that the next group waits for."""

    def put(self, item: Request | threading.Event) -> bool:
        """Queue a request, or an event that is set when all before it is committed; False after `close`."""
        with self._condition:
            if self._closed:
                return False
            self._waiting.append(item)
            if not isinstance(item, Request):
                self._wanted = 1
            if len(self._waiting) == 1 or len(self._waiting) >= self._wanted:
                self._condition.notify()
            return True

    def expect(self, senders: int) -> None:
        """Record that this many senders are about to be answered: they may send again soon."""
        with self._condition:
            if all(isinstance(item, Request) for item in self._waiting):
                self._wanted = max(len(self._waiting) + senders, 1)

    def close(self) -> None:
        """Accept no more requests; queued ones are still handed out."""
        with self._condition:
            self._closed = True
            self._condition.notify()

    def drain(self, limit: int, seconds: float | None = None) -> tuple[list[Request], list[threading.Event]] | None:
        """Wait for work and return what is there, up to `limit` bytes of requests; None when closed and empty.

        With `seconds`, nothing is returned when nothing came for so long.
        """
        requests: list[Request] = []
        events: list[threading.Event] = []
        size = 0
        with self._condition:
            self._condition.wait_for(lambda: self._waiting or self._closed, seconds)
            if not self._waiting and self._closed:
                return None
            self._gather()
            while self._waiting and size < limit:
                item = self._waiting.popleft()
                if isinstance(item, Request):
                    requests.append(item)
                    size += len(item.body)
                else:
                    events.append(item)
            self._wanted = 1
        return requests, events

    def _gather(self) -> None:
        """Wait, as long as more come, until each sender that was waiting or answered before has sent again."""
        pause, longest = _GATHER_SECONDS
        end = time.monotonic() + longest
        count = 0
        while count < len(self._waiting) < self._wanted and not self._closed and time.monotonic() < end:
            count = len(self._waiting)
            self._condition.wait_for(lambda: len(self._waiting) >= self._wanted or self._closed, pause)


_LOG = logging.getLogger("clawtrace.receiver")

_FOR_GOOD = (RequestOutcome.ACCEPTED, RequestOutcome.BROKEN)
"""OTLP that its sender will not send again."""
_IDLE_SECONDS = 2.0


class Writer:
    """Takes requests from any thread and answers them from its own.

    `lost`, `forward`, `idle`, `mend` and `troubled` are set before `start`, by the code that assembles the receiver.
    """

    def __init__(
        self,
        sink: RawSink,
        intake: Intake,
        counters: Counters,
        connections: Connections,
        changes: Changes,
        settings: ReceiverSettings,
    ) -> None:
        self.budget = ByteBudget(settings.queue_bytes)
        self._sink = sink
        self._intake = intake
        self._counters = counters
        self._connections = connections
        self._changes = changes
        self._group_bytes = settings.group_bytes
        self._inbox = Inbox()
        self.lost: Callable[[Request, str], None] = lambda _, reason: counters.turned_away(reason)
        """Called with a request that will never be accepted, and why; what it records is in the next commit."""
        self.lost_before: Callable[[int, str], None] = lambda *_: None
        """Called with how many spans or log records a Collector says it has lost, and where."""
        self._losses = CollectorLosses()
        self.forward: Callable[[Request], None] = lambda _: None
        """Called with a request that was answered for good; must return at once."""
        self.idle: Callable[[], None] = lambda: None
        """Called when nothing came for a while after something did."""
        self.mend: Callable[[], None] = lambda: None
        """Called now and then after the sink failed, until it raises no `StoreError`."""
        self.troubled: Callable[[bool], None] = lambda _: None
        """Called when the sink cannot be written, and when it can again."""
        self._trouble = False
        self._suspected = False
        """Whether another thread met an error of the store."""
        self._mend_at = 0.0
        """Not before, on the monotonic clock."""
        self._pending: list[Note] = []
        """Refusals to be written with the next commit; guarded by the lock."""
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._work, name="clawtrace-writer", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Commit and answer everything that is queued, then end the thread."""
        self._inbox.close()
        self._thread.join()

    def submit(self, request: Request) -> bool:
        """Queue a request whose bytes are reserved in `budget`; False (and the bytes freed) when the writer stops."""
        if self._inbox.put(request):
            return True
        self.budget.give(len(request.body))
        return False

    def flush(self, seconds: float | None = None) -> bool:
        """Wait until everything that was submitted before is committed and answered; False when time ran out."""
        done = threading.Event()
        return done.wait(seconds) if self._inbox.put(done) else True

    def suspect(self) -> None:
        """Repair the sink if needed; called after a query failed on it."""
        self._suspected = True
        self._inbox.put(threading.Event())

    def refused(self, receipt: Receipt, port: int) -> None:
        """Record that something was turned away; it is written with the next commit."""
        note = Note(receipt, port)
        with self._lock:
            self._pending.append(note)
        self._counters.add(note)

    # --------------------------------------------------------------------------------------------------------------

    def _work(self) -> None:
        resting = True
        while (work := self._inbox.drain(self._group_bytes, None if resting else _IDLE_SECONDS)) is not None:
            requests, events = work
            idle = not (requests or events)
            if self._trouble or self._suspected:
                self._mend()
            elif idle:
                self._rest()
            resting = idle and not (self._trouble or self._suspected)
            if idle:
                continue
            size = sum(len(request.body) for request in requests)
            with collector_paused():
                self._process(requests)
            del requests, work
            for event in events:
                event.set()
            if size:
                self._changes.tell()
        self._process([])

    def _rest(self) -> None:
        try:
            self.idle()
        except StoreError as error:
            self._failed(error)
        except Exception:
            _LOG.exception("work between requests failed")

    def _mend(self) -> None:
        if time.monotonic() < self._mend_at:
            return
        self._suspected = False
        self._mend_at = time.monotonic() + _IDLE_SECONDS
        try:
            self.mend()
        except StoreError as error:
            self._failed(error)
            return
        except Exception:
            _LOG.exception("the store could not be opened again")
            return
        if self._trouble:
            self._trouble = False
            self.troubled(False)
            _LOG.warning("the store can be written again")

    def _failed(self, error: StoreError) -> None:
        if not self._trouble:
            self._trouble = True
            self.troubled(True)
            why = str(error).rstrip(".")
            _LOG.error("%s. Until then exporters are asked to send again, and questions are refused.", why)

    def _process(self, requests: list[Request]) -> None:
        answers = [(request, self._enter(request)) for request in requests]
        taken = self._intake.take()
        with self._lock:
            refusals, self._pending = self._pending, []
        refusals += [Note(receipt, 0, unattributed=True) for receipt in self._counters.take_strays()]
        failure = self._commit(taken, refusals)
        if failure:
            with self._lock:
                self._pending = refusals + self._pending
            self._turn_away(taken, failure)
        else:
            for note in taken.notes:
                self._counters.add(note)
        self._inbox.expect(len(requests))
        # A sender that is answered may send again at once, and finds the room that the request took.
        self.budget.give(sum(len(request.body) for request in requests))
        for request, answer in answers:
            if answer.outcome is RequestOutcome.ACCEPTED and request.connection is not None:
                self._connections.carried(
                    request.connection,
                    request.runs,
                    passed_on=request.passed_on and bool(request.runs),
                    by_collector=request.sender == "collector",
                )
                for items, reason in self._losses.in_request(request):
                    self.lost_before(items, reason)
            given = (
                RequestAnswer(RequestOutcome.REFUSED, 0, failure)
                if failure and answer.outcome is RequestOutcome.ACCEPTED
                else answer
            )
            _tell(request.answer, given)
            if given.outcome in _FOR_GOOD and request.port:
                self.forward(request)

    def _enter(self, request: Request) -> RequestAnswer:
        """Add a request to what is committed next, and return its answer; nothing is committed of one that fails."""
        try:
            return self._intake.add(request)
        except BadPayloadError as problem:
            self.lost(request, str(problem))
            return RequestAnswer(RequestOutcome.BAD, message=str(problem))
        except StoreError as problem:
            return RequestAnswer(RequestOutcome.REFUSED, message=str(problem))
        except Exception:
            _LOG.exception("a %s request of %d bytes could not be processed", request.signal, len(request.body))
            self.lost(request, "clawtrace failed on it")
            return RequestAnswer(RequestOutcome.BROKEN, message="clawtrace failed on this request; see its log")

    def _commit(self, taken: Taken, refusals: list[Note]) -> str:
        """Commit and return why it failed; empty when it did not."""
        if not (taken or refusals):
            return ""
        receipts = [note.receipt for note in (*taken.notes, *refusals)]
        try:
            self._sink.commit(taken.spans, taken.logs, receipts, taken.adopted)
        except Exception as error:  # after any error of a store the process lives and the exporters retry
            if isinstance(error, StoreError):
                self._failed(error)
            else:
                _LOG.exception("a commit failed")
            self._intake.failed(taken)
            return f"the store could not write: {error}"
        self._intake.committed()
        return ""

    def _turn_away(self, taken: Taken, failure: str) -> None:
        """Turn the receipts of a failed commit into refusals."""
        for note in taken.notes:
            receipt = note.receipt
            items = receipt.accepted + receipt.duplicates
            if items and receipt.run_no != NO_RUN:
                refusal = receipt._replace(accepted=0, duplicates=0, rejected=0, refused=items, reason=failure)
                self.refused(refusal, note.port)


def _tell(answer: Callable[[RequestAnswer], None], given: RequestAnswer) -> None:
    """Hand an answer over; a server that is already gone is no reason to stop."""
    try:
        answer(given)
    except Exception:
        _LOG.exception("an answer could not be delivered")
