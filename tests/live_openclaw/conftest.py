"""A real OpenClaw, a scripted model, and what a run of both was judged to be."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from openclaw_install import CannotInstallError, OpenClaw, install

from clawtrace.campaign.wrap import run_command
from clawtrace.config.assertions_file import load_assertions_file
from clawtrace.config.project_file import load_project
from clawtrace.config.session_settings import session_settings
from clawtrace.model.verdict import RunResult
from clawtrace.session import Session
from clawtrace.testing import Exchange, scripted_model

AGENT = Path(__file__).with_name("openclaw_turns.py")
PREPARE_SECONDS = 300


@dataclass(frozen=True)
class Judged:
    """One run of OpenClaw: the verdicts, the facts, and what the model server said truly happened."""

    result: RunResult
    facts: dict[str, Any]
    asked: list[Exchange]
    exit_code: int
    workspace: Path


@pytest.fixture(scope="session")
def openclaw(tmp_path_factory: pytest.TempPathFactory) -> OpenClaw:
    """OpenClaw from npm; where the machine cannot have it, the tests are listed as not run, or fail where it is required."""

    def prepare(found: OpenClaw) -> None:
        folder = tmp_path_factory.mktemp("prepare")
        with scripted_model([{"text": "ready"}]) as model:
            settings = write_settings(folder, found, model.url, ())
            command = [sys.executable, str(AGENT), str(settings), "prepare=Say ready."]
            environment = {**os.environ, "OTEL_SDK_DISABLED": "true"}
            done = subprocess.run(
                command, env=environment, capture_output=True, text=True, timeout=PREPARE_SECONDS, check=False
            )
        if done.returncode or "ready" not in done.stdout:
            raise CannotInstallError(f"openclaw did not make its first turn: {done.stderr[-2000:]}")

    try:
        return install(prepare)
    except CannotInstallError as error:
        if "openclaw" in {name.strip() for name in os.environ.get("CLAWTRACE_REQUIRE", "").split(",")}:
            pytest.fail(f"CLAWTRACE_REQUIRE names 'openclaw', and this machine lacks it: {error}")
        pytest.skip(f"this machine lacks OpenClaw: {error}")


def write_settings(folder: Path, found: OpenClaw, model_url: str, deny: Sequence[str]) -> Path:
    """Write what `openclaw_turns.py` needs; return the file."""
    workspace = folder / "workspace"
    workspace.mkdir(parents=True, exist_ok=True)
    settings = {
        "node": str(found.node), "openclaw": str(found.program), "bin": str(found.bin), "stage": str(found.stage),
        "model_url": f"{model_url}/v1", "workspace": str(workspace), "home": str(folder / "home"), "deny": list(deny),
    }  # fmt: skip
    file = folder / "settings.json"
    file.write_text(json.dumps(settings), encoding="utf-8")
    return file


@pytest.fixture
def judge(openclaw: OpenClaw, tmp_path: Path) -> Callable[..., Judged]:
    """Run OpenClaw against a script, as `clawtrace run` does, and judge it."""

    def call(steps: list[dict[str, Any]], assertions: str, *turns: str, deny: Sequence[str] = ()) -> Judged:
        checks = tmp_path / "checks.yaml"
        checks.write_text(assertions, encoding="utf-8")
        project = load_project(tmp_path, os.environ)
        asked = load_assertions_file(str(checks), project, os.environ)
        with scripted_model(steps) as model, Session.open(receive=True, settings=session_settings(project)) as session:
            settings = write_settings(tmp_path, openclaw, model.url, deny)
            argv = [sys.executable, str(AGENT), str(settings), *turns]
            wrapped = run_command(argv, session, os.environ, assertions=asked.assertions, timeout_seconds=240)
            (facts,) = session.inspect([wrapped.record.run_id])["runs"]
            return Judged(wrapped.result, facts, list(model.log), wrapped.exit_code, tmp_path / "workspace")

    return call
