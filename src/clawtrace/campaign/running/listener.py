"""The callbacks of a running campaign, for live progress."""

from __future__ import annotations

from clawtrace.campaign.planning.expand import Plan, PlannedRun
from clawtrace.model.verdict import RunResult

__all__ = ["Listener"]


class Listener:
    """Hears how a campaign goes on: called from the thread in which it happens, one call at a time. This one passes over all of it."""

    def planned(self, plan: Plan) -> None:
        """Nothing has started yet."""

    def started(self, run: PlannedRun) -> None:
        """An agent is being started."""

    def judging(self, run: PlannedRun) -> None:
        """The agent has ended; its last spans are awaited, then its assertions are asked."""

    def waiting(self, run: PlannedRun, awaited: str, seconds: float) -> None:
        """The agent's last spans do not come at once.

        Args:
            run: whose.
            awaited: what is waited for.
            seconds: how long nothing may arrive until the wait ends.
        """

    def finished(self, run: PlannedRun, result: RunResult) -> None:
        """A run has its verdicts, or its error."""

    def left_out(self, run: PlannedRun, reason: str) -> None:
        """A run was not started, or was ended before it could be judged."""

    def interrupted(self, running: int) -> None:
        """The user asked for the end; so many agents at work are being ended."""
