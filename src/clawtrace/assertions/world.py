"""The world of one run, as probes look at it: its files, its environment, how its agent ended."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

__all__ = ["Gateway", "HookPolicy", "JudgeOpinion", "JudgeTask", "World"]


class Gateway(NamedTuple):
    """The agent gateway that a run talks to (`gateway:` of clawtrace.yaml)."""

    url: str = "http://127.0.0.1:18789"
    token: str | None = None


class HookPolicy(NamedTuple):
    """The permissions of Python hooks in an evaluation profile (`security_policy`)."""

    allowed: bool = False
    network: str = "deny"
    """``deny`` or ``allow``."""
    redact_secrets: bool = True
    """Whether known secrets are taken out of what probes report."""
    env: tuple[str, ...] = ("PATH",)
    """Names or globs of the caller's variables that a hook gets."""


class JudgeTask(NamedTuple):
    """The question of an assertion to a judge."""

    asked_by: str
    """The assertion's id."""
    judge: str | None
    """Id of the judge; None: the profile's first."""
    question: str
    """The question, and the meaning of scores."""
    text: str
    """The judged text."""
    scale: tuple[float, float]
    """Worst and best score."""
    times: int
    """The number of questions to the judge."""


class JudgeOpinion(NamedTuple):
    """One answer of a judge."""

    score: float | None
    """On the task's scale; None when there is no answer."""
    evidence: str = ""
    failure: str = ""
    """Why there is none, in one word."""
    message: str = ""
    """Why there is none, in one sentence."""
    doubt: str = ""
    """Why the judge's agreement with people does not suffice; empty where nothing is demanded, or it does."""


class World(NamedTuple):
    """The facts of a run other than spans; None if unknown, as for a recording."""

    run_id: str
    workspace: Path | None = None
    """Absolute folder in which the agent worked; paths of checks are relative to it."""
    case_dir: Path | None = None
    """Absolute folder of the case file (or of the file given as `--assertions`)."""
    started_at: float | None = None
    """Start of the run in seconds since the epoch: the clock of its templates."""
    changes: Mapping[str, Sequence[str]] | None = None
    """Paths in the workspace that the run ``created``, ``modified``, ``deleted`` or left ``unchanged``."""
    env: Mapping[str, str] = MappingProxyType({})
    """The environment of the clawtrace process."""
    gateway: Gateway = Gateway()
    hooks: HookPolicy = HookPolicy()
    run_status: str | None = None
    """success, failed, timed_out, provider_error, invalid; None for a recording."""
    agent_exit_code: int | None = None
    final_output: str | None = None
    """The runner's view of the final answer."""
    stdout: Path | None = None
    stderr: Path | None = None
    folder: Path | None = None
    """Absolute folder of the run's results."""
    clean: Callable[[str], str] = str
    """Puts a mark in the place of each secret that redaction knows."""
    facts: Callable[[], Mapping[str, Any]] | None = None
    """The output of `clawtrace inspect --json` for the run, computed on first use; None before the agent starts."""
    conversation: Callable[[], str | None] | None = None
    """Everything that was said, as text, from the spans; None within: not recorded."""
    judge: Callable[[World, JudgeTask], tuple[JudgeOpinion, ...]] | None = None
    """Asks a judge of the evaluation profile; None where it has none."""
