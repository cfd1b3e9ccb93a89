"""Ask probes: each once for each run, side by side with nothing, before the store is asked anything."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter

from clawtrace.assertions.base import Assertion, Outcome
from clawtrace.assertions.probe import Probe
from clawtrace.assertions.world import World
from clawtrace.errors import ClawtraceError

__all__ = ["Probed", "ask_probes", "look_at_the_world"]


@dataclass(frozen=True, slots=True)
class Probed:
    """What one probe found of each run."""

    outcomes: Mapping[str, Outcome]
    """By run id."""
    broken: Mapping[str, str]
    """Why it could not be asked, by run id."""
    spent_ms: float


def look_at_the_world(assertions: Sequence[Assertion]) -> bool:
    """Return whether any of `assertions` is a probe or reads something of the world beside the trace."""
    return any(isinstance(one, Probe) or type(one).beside is not Assertion.beside for one in assertions)


def ask_probes(assertions: Sequence[Assertion], worlds: Mapping[str, World]) -> dict[int, Probed]:
    """Ask every probe among `assertions` of every run; the answer is by place in `assertions`.

    Args:
        assertions: what is asked; those that are no probes are passed over.
        worlds: the world of each run, by run id.
    """
    return {
        place: _asked(assertion, worlds) for place, assertion in enumerate(assertions) if isinstance(assertion, Probe)
    }


def _asked(probe: Probe, worlds: Mapping[str, World]) -> Probed:
    began = perf_counter()
    outcomes, broken = {}, {}
    for run_id, world in worlds.items():
        try:
            outcomes[run_id] = probe.found(run_id, probe.probe(world))
        except (ClawtraceError, OSError) as error:
            broken[run_id] = str(error)
    return Probed(outcomes, broken, (perf_counter() - began) * 1000)
