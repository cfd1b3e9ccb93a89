"""A run request and a telemetry target for tests that start real processes."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from clawtrace.runners.base import Message, ModelRequested, RunRequest, StopSignal, TelemetryTarget
from clawtrace.runners.command import CommandRunner, CommandSettings


@pytest.fixture
def target() -> TelemetryTarget:
    return TelemetryTarget("http://127.0.0.1:4317", "http://127.0.0.1:4318", "ab" * 16, "cd" * 8)


class Bench:
    """Runs commands in separate folders."""

    def __init__(self, folder: Path, target: TelemetryTarget) -> None:
        self.folder = folder
        self.target = target
        self.case_dir = folder / "case"
        self.case_dir.mkdir()
        self.stop = StopSignal()
        self.runs = 0

    def request(self, *, messages=None, base_env=None, model_id=None, **settings) -> RunRequest:
        """Return one run of a command."""
        self.runs += 1
        folder = self.folder / f"run{self.runs}"
        folder.mkdir()
        return RunRequest(
            run_id=f"suite/-/case/{self.runs}-0001",
            case_id="case",
            asked=ModelRequested(model_id),
            messages=messages if messages is not None else (Message("user", "hello"),),
            settings=CommandSettings.model_validate({"grace_seconds": 0.5, "leftover_seconds": 5.0, **settings}),
            folder=folder,
            case_dir=self.case_dir,
            started_at=time.time(),
            base_env=dict(os.environ) | (base_env or {}),
        )

    def run(self, **settings):
        """Run a command to its end."""
        return CommandRunner().run(self.request(**settings), self.target, self.stop)


@pytest.fixture
def bench(tmp_path: Path, target: TelemetryTarget) -> Bench:
    return Bench(tmp_path, target)
