"""Events of a running campaign, for live progress."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from clawtrace.campaign.planning.expand import Plan, PlannedRun
from clawtrace.model.verdict import RunResult

__all__ = [
    "CampaignEvent",
    "Interrupted",
    "Listener",
    "PlanReady",
    "RunFinished",
    "RunJudging",
    "RunNotRun",
    "RunStarted",
    "RunWaiting",
]


@dataclass(frozen=True, slots=True)
class PlanReady:
    """Nothing has started yet."""

    plan: Plan


@dataclass(frozen=True, slots=True)
class RunStarted:
    """An agent is being started."""

    run: PlannedRun


@dataclass(frozen=True, slots=True)
class RunJudging:
    """The agent has ended; its last spans are awaited, then its assertions are asked."""

    run: PlannedRun


@dataclass(frozen=True, slots=True)
class RunWaiting:
    """The agent's last spans do not come at once."""

    run: PlannedRun
    awaited: str
    """What is waited for."""
    seconds: float
    """How long nothing may arrive until the wait ends."""


@dataclass(frozen=True, slots=True)
class RunFinished:
    """A run has its verdicts, or its error."""

    run: PlannedRun
    result: RunResult


@dataclass(frozen=True, slots=True)
class RunNotRun:
    """A run was left out, or was ended before it could be judged."""

    run: PlannedRun
    reason: str


@dataclass(frozen=True, slots=True)
class Interrupted:
    """The user asked for the end; agents at work are being ended."""

    running: int


CampaignEvent = PlanReady | RunStarted | RunJudging | RunWaiting | RunFinished | RunNotRun | Interrupted

Listener = Callable[[CampaignEvent], None]
"""Called from the thread in which the event happened, one event at a time."""
