"""The expected end of a run, depending on whether its agent was started or already runs (spec: span-model.md §3)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from clawtrace.config.projects.session_settings import SessionSettings
from clawtrace.model.run import RunRecord
from clawtrace.receiver.attribution.connections import Tally
from clawtrace.receiver.close import Outlook

if TYPE_CHECKING:
    from clawtrace.facts.runs.completeness import ClosingSigns
    from clawtrace.receiver.receiver import Receiver

__all__ = ["FORWARDED", "FORWARDER_ENDED", "Expected"]

FORWARDED = (
    "spans of the run seem to have come through a Collector, a proxy or another service: how long it holds spans, or whether it drops "
    "some, is not known. Silence closed the run; `settle_ms` sets how long."
)

FORWARDER_ENDED = (
    "the Collector or proxy that passes spans on closed its connection before the run was closed: what it held may be lost. Let it run "
    "until the run is closed."
)

STARTED_MS, RUNNING_MS = 2_000, 12_000
"""How long nothing may arrive: of processes that we started, and of an agent whose exporter is not ours to set (a stock
BatchSpanProcessor sends every 5 s)."""


class Expected:
    """Looks at what arrived of one run; `outlook` is what `receiver.close` asks for.

    Args:
        record: how the run was sent, and how its command ended.
        receiver: which the run's spans are sent to.
        signs: reads the spans that the run has so far.
        gone: whether every process of the run has exited.
    """

    def __init__(
        self,
        record: RunRecord,
        settings: SessionSettings,
        receiver: Receiver,
        signs: Callable[[], ClosingSigns],
        *,
        gone: bool,
    ) -> None:
        self._record = record
        self._settings = settings
        self._receiver = receiver
        self._read = signs
        self._signs: tuple[tuple[int, int], ClosingSigns] | None = None
        self._gone = gone
        self._at_exit: int | None = None
        """The number of accepted items when the run was first checked."""
        self.forwarded = False
        """Whether spans came from others than the run's processes, and these may hold more, when the run was last looked at."""

    def outlook(self, tally: Tally) -> Outlook:
        """Return what the end of the run will be, as far as `tally` and the run's spans show."""
        if self._record.closed_by is not None:
            return self._silence(tally, "more of what came after the run was closed")
        look = self._of_its_processes(tally)
        held = look.exit_closes and self._from_others(tally)
        self.forwarded = held and tally.last_counted is not None
        if not held:
            return look
        return self._silence(tally, "spans that a Collector or a proxy may still hold")

    def _silence(self, tally: Tally, awaited: str) -> Outlook:
        settle_ms = self._settle(max(RUNNING_MS, self._read_signs(tally).settle_ms))
        return Outlook(exit_closes=False, settle_ms=settle_ms, awaited=awaited)

    def _from_others(self, tally: Tally) -> bool:
        """Return whether others than the run's processes export for it: its exit then says nothing of what they hold.

        A connection is not of the run's processes if it was opened before they were started, carries several runs, or is open
        after they have exited; and what arrives after that is not from them. Where others can know the receiver's address, what
        names no run in the header and path that the agent was given, and is not from an SDK's own exporter, is not taken for its own,
        either; and where nothing has come, all may be held.
        """
        arrived = tally.accepted + tally.duplicates
        if self._at_exit is None:
            self._at_exit = arrived
        receiver, run_id = self._receiver, self._record.run_id
        if receiver.is_forwarded(run_id) or (self._gone and (receiver.is_carried(run_id) or arrived > self._at_exit)):
            return True
        held = bool(tally.unnamed) or (not arrived and self._record.run_status == "success")
        return held and self._is_known()

    def _is_known(self) -> bool:
        """Return whether others than the command can know the receiver's address: it was fixed before, or they exported."""
        fixed = self._settings.receiver.grpc_port or self._settings.receiver.http_port
        return bool(fixed or self._receiver.counters().foreign)

    def _of_its_processes(self, tally: Tally) -> Outlook:
        if not self._may_run(tally):
            return Outlook(exit_closes=True, settle_ms=self._settle(STARTED_MS))
        signs = self._read_signs(tally)
        settle_ms = self._settle(max(RUNNING_MS, signs.settle_ms))
        if not signs.already_runs and signs.worked:  # the command's own agent
            return Outlook(exit_closes=True, settle_ms=settle_ms if tally.foreign else self._settle(STARTED_MS))
        return Outlook(exit_closes=False, settle_ms=settle_ms, whole=signs.whole, awaited=self._awaited(tally, signs))

    def _may_run(self, tally: Tally) -> bool:
        """Return whether the agent may have run before the command, which then only sent it messages."""
        record = self._record
        if record.agent == "started" or record.run_status == "invalid":
            return False
        if record.agent == "running":
            return True
        if not record.turns:
            return False
        if tally.foreign:
            return True
        # Only who knows the address can export here: it is in the command's environment, or it was fixed before.
        return record.run_status == "success" and self._is_known()

    def _settle(self, default_ms: int) -> int:
        said = (self._record.settle_ms, self._settings.settle_ms)
        return next((milliseconds for milliseconds in said if milliseconds is not None), default_ms)

    def _read_signs(self, tally: Tally) -> ClosingSigns:
        state = (tally.accepted, tally.duplicates)
        if self._signs is None or self._signs[0] != state:
            self._signs = (state, self._read())
        return self._signs[1]

    def _awaited(self, tally: Tally, signs: ClosingSigns) -> str:
        if not tally.accepted and self._receiver.counters().unattributed:
            return "what arrived names no run: pass on the `traceparent` of each request, or CLAWTRACE_RUN_ID"
        if not tally.accepted:
            return (
                "nothing has arrived for this run yet; the exporter of an agent that already runs decides when it sends"
            )
        if signs.lacking:
            return signs.lacking[0].split(";")[0]
        return "more spans of an agent that already ran"
