"""What a campaign keeps of each run, and which kept run may stand for a planned one (spec: config.md §5).

A run's folder holds ``run.json``, written last: without it the run never ended. It is found again by its fingerprint and
repetition, in its own place of the campaign or through the index under the folder of results, which holds relative paths
only, so that folders can be moved.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clawtrace.campaign.layout import write_json

__all__ = ["RUN_SCHEMA", "StoredRun", "StoredRuns", "kept_runs", "read_run"]

RUN_SCHEMA = "clawtrace.run/1"
"""Version of ``run.json``; keys may be added. A file of another version is not reused."""

_WELL_ENDED = ("success", "failed")
"""Statuses of runs that are worth keeping: the agent's own end. Time-outs and broken providers are run again."""


@dataclass(frozen=True, slots=True)
class StoredRun:
    """A run that ended, with what is kept of it."""

    folder: Path
    """Absolute."""
    campaign: Path
    """Absolute folder of the campaign that it belongs to."""
    data: Mapping[str, Any]
    """The content of ``run.json``."""

    @property
    def run_id(self) -> str:
        """Id of the run, also in the campaign's span store."""
        return str(self.data["run_id"])

    @property
    def store(self) -> Path:
        """The span store that holds its spans."""
        return self.campaign / "spans.duckdb"

    def why_not(self, fingerprint: str, parts: Mapping[str, str]) -> str:
        """Return why this run cannot stand for one with that fingerprint of these parts; empty when it can."""
        if self.data.get("fingerprint") is None:
            return "it was stored without a fingerprint"
        if self.data["fingerprint"] != fingerprint:
            before = self.data.get("fingerprint_parts") or {}
            names = [name for name in {**before, **parts} if before.get(name) != parts.get(name)]
            return f"edited since: {', '.join(names)}"
        status = self.data.get("run_status")
        if status not in _WELL_ENDED:
            return f"the stored run ended as `{status}`"
        if self.data.get("complete") is not True:
            return "its trace is not complete"
        if not self.store.is_file():
            return "its span store is gone"
        return ""


def read_run(folder: Path, campaign: Path) -> StoredRun | None:
    """Return the run in a folder; None where none ended there, or its file cannot be read."""
    try:
        data = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    if not isinstance(data, dict) or data.get("schema") != RUN_SCHEMA or not isinstance(data.get("run_id"), str):
        return None
    return StoredRun(folder.absolute(), campaign.absolute(), data)


def kept_runs(campaign: Path) -> Iterator[StoredRun]:
    """Yield every run that a campaign's folder keeps."""
    for file in (campaign / "runs").glob("*/*/*/run.json"):
        run = read_run(file.parent, campaign)
        if run is not None:
            yield run


class StoredRuns:
    """The runs below one folder of results, found by fingerprint and repetition."""

    def __init__(self, outputs: Path) -> None:
        self._outputs = outputs.absolute()

    def find(self, fingerprint: str, repetition: int) -> StoredRun | None:
        """Return the run that the index names; None where there is none, or what it names is gone or another run."""
        try:
            data = json.loads(self._entry(fingerprint, repetition).read_text(encoding="utf-8"))
            campaign, folder = self._outputs / data["campaign"], self._outputs / data["folder"]
        except (OSError, ValueError, KeyError, TypeError):
            return None
        found = read_run(folder, campaign)
        return found if found is not None and found.run_id == data.get("run_id") else None

    def put(self, run: StoredRun, repetition: int) -> None:
        """Remember where a run is kept; one outside of the folder of results is not remembered."""
        fingerprint = run.data.get("fingerprint")
        if not fingerprint or not run.folder.is_relative_to(self._outputs):
            return
        write_json(
            self._entry(str(fingerprint), repetition),
            {
                "schema": "clawtrace.index/1",
                "run_id": run.run_id,
                "campaign": run.campaign.relative_to(self._outputs).as_posix(),
                "folder": run.folder.relative_to(self._outputs).as_posix(),
            },
        )

    def _entry(self, fingerprint: str, repetition: int) -> Path:
        return self._outputs / "index" / fingerprint[:2] / fingerprint / f"{repetition}.json"
