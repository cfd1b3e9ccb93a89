"""The worlds of runs that nobody described: what their records say, for the probes that are asked of them."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from clawtrace.assertions.world import Gateway, HookPolicy, World
from clawtrace.model.run import RunRecord

__all__ = ["worlds_of"]


def worlds_of(
    run_ids: Sequence[str],
    given: Mapping[str, World],
    *,
    record: Callable[[str], RunRecord | None],
    facts: Callable[[str], Mapping[str, Any]],
    gateway: Gateway,
    case_dir: Path | None,
    hooks: HookPolicy | None,
) -> dict[str, World]:
    """Return the world of each run, by run id.

    Args:
        run_ids: of which runs.
        given: worlds that are known; the others are made from records.
        record: finds what is known of a run apart from its spans.
        facts: computes what `inspect` says of a run.
        gateway: the project's agent gateway.
        case_dir: folder of the file that holds the assertions, for runs that are not in `given`.
        hooks: what Python hooks may do in such runs; None: nothing.
    """
    common = World("", case_dir=case_dir, env=os.environ, gateway=gateway, hooks=hooks or HookPolicy())
    found = {run_id: given.get(run_id) or _recorded(run_id, record(run_id), common) for run_id in run_ids}
    return {run_id: world._replace(facts=partial(facts, run_id)) for run_id, world in found.items()}


def _recorded(run_id: str, record: RunRecord | None, common: World) -> World:
    if record is None:
        return common._replace(run_id=run_id)
    workspace = Path(record.workspace) if record.workspace else None
    return common._replace(
        run_id=run_id,
        workspace=workspace if workspace is not None and workspace.is_dir() else None,
        started_at=None if record.started_ns is None else record.started_ns / 1e9,
        run_status=record.run_status,
        agent_exit_code=record.agent_exit_code,
        final_output=record.final_output,
    )
