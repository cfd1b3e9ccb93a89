"""Ask probes: each once for each run, side by side with nothing, before the store is asked anything; and what is known of a run apart from its spans."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from math import isfinite
from pathlib import Path
from time import perf_counter
from typing import Any

from clawtrace.assertions.base import Assertion, Outcome
from clawtrace.assertions.probe import Probe
from clawtrace.assertions.world import World
from clawtrace.errors import ClawtraceError
from clawtrace.model.progress import Progress, unseen
from clawtrace.model.run import RunRecord

__all__ = ["Probed", "Worlds", "ask_probes"]


@dataclass(frozen=True, slots=True)
class Probed:
    """The results of one probe for each run."""

    outcomes: Mapping[str, Outcome]
    """By run id."""
    broken: Mapping[str, str]
    """Why it could not be asked, by run id."""
    spent_ms: float


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
        except Exception as error:
            # a third party's probe may raise anything: one verdict is an error, the others stand
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


@dataclass(eq=False, repr=False)
class Worlds(Mapping[str, World]):
    """The world of each run, by run id. Of many runs few are looked at.

    Args:
        given: worlds that are known; the others are made from records.
        common: what holds for each of the others.
        record: finds what is known of a run apart from its spans.
        facts: computes what `inspect` says of a run.
        conversation: reads what was said in a run.
    """

    _run_ids: Sequence[str]
    _given: Mapping[str, World]
    _common: World
    _record: Callable[[str], RunRecord | None]
    _facts: Callable[[str], Mapping[str, Any]]
    _conversation: Callable[[str], str | None]

    @cached_property
    def _places(self) -> dict[str, None]:
        return dict.fromkeys(self._run_ids)

    def __getitem__(self, run_id: str) -> World:
        if run_id not in self._places:
            raise KeyError(run_id)
        world = self._given.get(run_id) or self._recorded(run_id)
        return world._replace(
            facts=partial(self._facts, run_id),
            conversation=partial(self._conversation, run_id),
            clean=self._common.clean,
        )

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def _recorded(self, run_id: str) -> World:
        record = self._record(run_id)
        if record is None:
            return self._common._replace(run_id=run_id)
        workspace = Path(record.workspace) if record.workspace else None
        return self._common._replace(
            run_id=run_id,
            workspace=workspace if workspace is not None and workspace.is_dir() else None,
            started_at=None if record.started_ns is None else record.started_ns / 1e9,
            run_status=record.run_status,
            agent_exit_code=record.agent_exit_code,
            final_output=record.final_output,
        )
