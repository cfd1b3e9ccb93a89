"""The `replay` runner: no agent, recorded spans instead (spec: config.md §3)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import Field, StrictStr

from clawtrace.errors import RunnerError
from clawtrace.runners.base import (
    Inputs,
    InputsRequest,
    Runner,
    RunnerSettings,
    RunOutcome,
    RunRequest,
    StopSignal,
    TelemetryTarget,
)
from clawtrace.runners.content import tree_digest

__all__ = ["ReplayRunner", "ReplaySettings"]


class ReplaySettings(RunnerSettings):
    """Settings of `runner: {type: replay}`."""

    not_supported_yet: ClassVar[Mapping[str, str]] = {
        "run_id": "the spans of a stored run cannot be replayed yet; give the recorded files in `traces`",
    }

    traces: Annotated[list[StrictStr], Field(min_length=1)]
    """OTLP files or folders (JSON, JSON lines, protobuf, each maybe gzipped), relative to the case file; together they
    are one run."""


class ReplayRunner(Runner):
    """Hands recorded files to the session; the run is closed because its input is a recording."""

    type_name = "replay"
    Settings = ReplaySettings
    starts_agent = False

    def missing(self, settings: RunnerSettings, case_dir: Path, env: Mapping[str, str]) -> str | None:
        """Return which recording does not exist."""
        del env
        assert isinstance(settings, ReplaySettings)
        absent = [str(case_dir / trace) for trace in settings.traces if not (case_dir / trace).exists()]
        return f"the recording {absent[0]!r} does not exist" if absent else None

    def inputs(self, request: InputsRequest) -> Inputs:
        """Return the recordings by content."""
        assert isinstance(request.settings, ReplaySettings)
        digests = {}
        for trace in request.settings.traces:
            path = request.case_dir / trace
            files = [file for file in path.rglob("*") if not file.is_dir()] if path.is_dir() else [path]
            digests[trace] = tree_digest(path, files)
        return Inputs({"the recordings": digests})

    def run(self, request: RunRequest, target: TelemetryTarget | None, stop: StopSignal) -> RunOutcome:
        """Return the recordings of this run."""
        del target
        assert isinstance(request.settings, ReplaySettings)
        if stop.is_set:
            raise RunnerError("interrupted before the recording was read")
        request.before_agent(None)
        paths = tuple(request.case_dir / trace for trace in request.settings.traces)
        return RunOutcome(run_status="success", recordings=paths)
