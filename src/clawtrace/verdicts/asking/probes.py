"""Ask probes: each once for each run, side by side with nothing, before the store is asked anything."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from time import perf_counter
from typing import Any

from clawtrace.assertions.base import Assertion, Outcome
from clawtrace.assertions.probe import Probe
from clawtrace.assertions.world import World
from clawtrace.errors import ClawtraceError
from clawtrace.model.progress import Progress, unseen

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
    """Return whether any of `assertions` is a probe or reads something of the world outside of the trace."""
    return any(isinstance(one, Probe) or one.reads_world() for one in assertions)


def ask_probes(
    assertions: Sequence[Assertion],
    worlds: Mapping[str, World],
    clean: Callable[[str], str],
    progress: Progress = unseen,
) -> dict[int, Probed]:
    """Ask every probe among `assertions` of every run; the answer is by place in `assertions`.

    Args:
        assertions: what is asked; those that are no probes are passed over.
        clean: takes known secrets out of a text: what a probe reports goes into reports (spec: config.md §4).
        progress: called before each probe.
    """
    probes = [(place, one) for place, one in enumerate(assertions) if isinstance(one, Probe)]
    found = {}
    for done, (place, probe) in enumerate(probes):
        progress(f"asking {probe.type_name}", done, len(probes))
        found[place] = _asked(probe, worlds, clean)
    return found


def _asked(probe: Probe, worlds: Mapping[str, World], clean: Callable[[str], str]) -> Probed:
    began = perf_counter()
    outcomes, broken = {}, {}
    for run_id, world in worlds.items():
        try:
            finding = probe.probe(world)
        except (ClawtraceError, OSError) as error:
            broken[run_id] = _reportable(str(error), clean)
        except (
            Exception
        ) as error:  # a third party's probe may raise anything: one verdict is an error, the others stand
            broken[run_id] = _reportable(f"{type(error).__name__}: {error}", clean)
        else:
            shown_text = clean if world.hooks.redact_secrets else str
            shown = finding._replace(
                sentence=_reportable(finding.sentence, shown_text), actual=_reportable(finding.actual, shown_text)
            )
            outcomes[run_id] = probe.found(run_id, shown)
    return Probed(outcomes, broken, (perf_counter() - began) * 1000)


def _reportable(value: Any, clean: Callable[[str], str]) -> Any:
    """Return a JSON value with every text cleaned, without what reports cannot hold: halves of characters, NaN."""
    if isinstance(value, str):
        # Names of files and answers of hooks may hold surrogates.
        return clean(value.encode("utf-8", "replace").decode())
    if isinstance(value, float) and not isfinite(value):
        return str(value)
    if isinstance(value, Mapping):
        return {_reportable(str(key), clean): _reportable(item, clean) for key, item in value.items()}
    return [_reportable(item, clean) for item in value] if isinstance(value, list | tuple) else value
