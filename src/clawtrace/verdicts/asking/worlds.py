"""The worlds of runs: those that are described, and what their records say of the others, made when they are looked at."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from clawtrace.assertions.world import Gateway, HookPolicy, JudgeOpinion, JudgeTask, World
from clawtrace.model.run import RunRecord

__all__ = ["Knowledge", "Worlds"]


class Knowledge(NamedTuple):
    """Where a session knows of worlds from."""

    record: Callable[[str], RunRecord | None]
    """Finds what is known of a run apart from its spans."""
    facts: Callable[[str], Mapping[str, Any]]
    """Computes what `inspect` says of a run."""
    conversation: Callable[[str], str | None]
    """Reads what was said in a run."""
    clean: Callable[[str], str]
    """Puts a mark in the place of each secret."""
    gateway: Gateway
    """The project's agent gateway."""


class Worlds(Mapping[str, World]):
    """The world of each run, by run id. Of many runs few are looked at.

    Args:
        given: worlds that are known; the others are made from records.
        knowledge: where those come from.
        case_dir: folder of the file that holds the assertions, for runs that are not in `given`.
        hooks: what Python hooks may do in such runs; None: nothing.
        judge: asks a judge in such runs.
    """

    def __init__(
        self,
        run_ids: Sequence[str],
        given: Mapping[str, World],
        knowledge: Knowledge,
        case_dir: Path | None,
        hooks: HookPolicy | None,
        judge: Callable[[World, JudgeTask], tuple[JudgeOpinion, ...]] | None = None,
    ) -> None:
        self._run_ids = dict.fromkeys(run_ids)
        self._given = given
        self._knows = knowledge
        self._common = World(
            "", case_dir=case_dir, env=os.environ, gateway=knowledge.gateway, hooks=hooks or HookPolicy(), judge=judge
        )

    def __getitem__(self, run_id: str) -> World:
        if run_id not in self._run_ids:
            raise KeyError(run_id)
        world = self._given.get(run_id) or self._recorded(run_id)
        return world._replace(
            facts=partial(self._knows.facts, run_id),
            conversation=partial(self._knows.conversation, run_id),
            clean=self._knows.clean,
        )

    def __iter__(self) -> Iterator[str]:
        return iter(self._run_ids)

    def __len__(self) -> int:
        return len(self._run_ids)

    def _recorded(self, run_id: str) -> World:
        record = self._knows.record(run_id)
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
