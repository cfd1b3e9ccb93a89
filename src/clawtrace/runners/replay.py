"""The `replay` runner: no agent, recorded spans instead (spec: config.md §3)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated

from pydantic import Field, StrictStr, model_validator

from clawtrace.errors import RunnerError
from clawtrace.runners.base import (
    AgentInputs,
    InputsRequest,
    Runner,
    RunnerSettings,
    RunOutcome,
    RunRequest,
    StopSignal,
    TelemetryTarget,
)
from clawtrace.runners.inputs.content import tree

__all__ = ["ReplayRunner", "ReplaySettings"]


class ReplaySettings(RunnerSettings):
    """Settings of `runner: {type: replay}`."""

    traces: Annotated[list[StrictStr], Field(min_length=1)] | None = None
    """OTLP files or folders (JSON, JSON lines, protobuf, each maybe gzipped), relative to the case file; together they
    are one run."""
    store: StrictStr | None = None
    """A span store (DuckDB file), relative to the case file, that holds the run `run_id`."""
    run_id: StrictStr | None = None
    """The stored run whose spans are replayed, instead of `traces`."""

    @model_validator(mode="after")
    def _one_source(self) -> ReplaySettings:
        if (self.traces is None) == (self.run_id is None):
            raise ValueError("a replay needs either `traces` or `store` with `run_id`")
        if (self.store is None) != (self.run_id is None):
            raise ValueError("`store` and `run_id` belong together: a store, and a run in it")
        return self

    @property
    def why_no_cassette(self) -> str:
        """That no agent is started."""
        return "a `replay` runner starts no agent, which could ask a model"

    def absent(self, case_dir: Path, env: Mapping[str, str]) -> Iterator[tuple[tuple[str | int, ...], str]]:
        """Yield each recording that does not exist, and the store."""
        del env
        for index, name in enumerate(self.traces or ()):
            if not (case_dir / name).exists():
                yield ("traces", index), f"the recording {name!r} does not exist next to the case file"
        if self.store is not None and not (case_dir / self.store).is_file():
            yield ("store",), f"the store {self.store!r} does not exist next to the case file"

    def files(self) -> list[str]:
        """Return the files and folders that hold the spans: of a store also those that its last rows may be in."""
        return self.traces or [f"{self.store}{more}" for more in ("", ".wal", ".journal")]

    def depends_on(self, request: InputsRequest) -> AgentInputs:
        """Return the recordings, or the store, by content."""
        files: dict[str, str] = {}
        for name in self.files():
            path = request.case_dir / name
            below = [file for file in path.rglob("*") if not file.is_dir()] if path.is_dir() else [path]
            files |= tree(request.case_dir, below).files
        return AgentInputs({"the recordings": files}, files={"the recordings": files})


class ReplayRunner(Runner):
    """Hands recorded files, or a stored run, to the session; the run is closed because its input is a recording."""

    type_name = "replay"
    Settings = ReplaySettings
    starts_agent = False
    without_templates = frozenset({"traces", "store", "run_id"})

    def run(self, request: RunRequest, target: TelemetryTarget | None, stop: StopSignal) -> RunOutcome:
        """Return the recordings of this run."""
        del target
        settings = request.settings
        assert isinstance(settings, ReplaySettings)
        if stop.is_set:
            raise RunnerError("interrupted before the recording was read")
        request.before_agent(None)
        stored = None
        if settings.store is not None and settings.run_id is not None:
            stored = request.case_dir / settings.store, settings.run_id
        recordings = tuple(request.case_dir / trace for trace in settings.traces or ())
        return RunOutcome(run_status=None, recordings=recordings, stored=stored)
