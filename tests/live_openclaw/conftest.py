"""A real OpenClaw, a scripted model, and what a run of both was judged to be."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import repeat
from pathlib import Path
from typing import Any

import pytest

from not_run import not_run

sys.path.insert(0, str(Path(__file__).parent))

from openclaw_install import AGENT, CannotInstallError, OpenClaw, install, write_settings

from clawtrace.campaign.running.wrap import run_command
from clawtrace.config.loading.assertions_file import load_assertions_file
from clawtrace.config.projects.project_file import load_project
from clawtrace.config.projects.session_settings import session_settings
from clawtrace.model.verdict import RunResult
from clawtrace.session.session import Session
from clawtrace.testing import Exchange, scripted_model

EXIT_CODES = "SELECT text, exit_code FROM commands WHERE run_id = '{}' AND NOT simple ORDER BY tool_call_no"


@dataclass(frozen=True)
class Play:
    """One run to be made: what the model says, what is asserted, the turns, and settings of `openclaw_turns.py`."""

    steps: list[dict[str, Any]]
    assertions: str
    turns: tuple[str, ...]
    settings: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Judged:
    """One run of OpenClaw: the verdicts, the facts, and what the model server said truly happened."""

    result: RunResult
    facts: dict[str, Any]
    inspected: dict[str, Any]
    """The facts once the transcripts of its sessions have been read besides."""
    ended: list[tuple[str | None, int | None]]
    """Text and exit code of each command."""
    asked: list[Exchange]
    exit_code: int
    folder: Path
    """Holds OpenClaw's home (`home`) and its workspace."""


@pytest.fixture(scope="session")
def openclaw() -> OpenClaw:
    """OpenClaw from npm; where the machine cannot have it, the tests are listed as not run, or fail where it is required."""
    try:
        return install()
    except CannotInstallError as error:
        not_run("openclaw", f"this machine lacks OpenClaw: {error}")


@pytest.fixture
def judge(openclaw: OpenClaw, tmp_path: Path) -> Callable[..., list[Judged]]:
    """Run gateways side by side on one receiver, each against a separate script, as `clawtrace run` does; judge each."""

    def one(session: Session, folder: Path, play: Play) -> Judged:
        folder.mkdir()
        checks = folder / "checks.yaml"
        checks.write_text(play.assertions, encoding="utf-8")
        asked = load_assertions_file(str(checks), load_project(folder, os.environ), os.environ)
        with scripted_model(play.steps) as model:
            settings = write_settings(folder, openclaw, model.url, **play.settings)
            argv = [sys.executable, str(AGENT), str(settings), *play.turns]
            wrapped = run_command(argv, session, os.environ, assertions=asked.assertions, timeout_seconds=1500)
            (facts,) = session.inspect([wrapped.record.run_id])["runs"]
            ended = session.query(EXIT_CODES.format(wrapped.record.run_id)).rows
            talks = [
                folder / f"home/state/agents/support/sessions/{turn.partition('=')[0]}.jsonl" for turn in play.turns
            ]
            session.load_logs(talks, lambda _: wrapped.record.run_id)
            (inspected,) = session.inspect([wrapped.record.run_id])["runs"]
            return Judged(wrapped.result, facts, inspected, ended, list(model.log), wrapped.exit_code, folder)

    def call(*plays: Play) -> list[Judged]:
        project = load_project(tmp_path, os.environ)
        folders = [tmp_path / str(number) for number in range(len(plays))]
        with (
            Session.open(receive=True, settings=session_settings(project)) as session,
            ThreadPoolExecutor(len(plays)) as together,
        ):
            return list(together.map(one, repeat(session), folders, plays))

    return call
