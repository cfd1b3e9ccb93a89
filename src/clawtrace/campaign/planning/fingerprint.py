"""Identity of runs and evaluations: what can change their outcome, as one digest (spec: config.md §5).

A stored run may be reused for a planned one only when nothing that can change what its agent does was edited. How runs are
scheduled (concurrency, repetitions) is not part of it. Values of variables go in as digests: a fingerprint is stored.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from datetime import date
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import clawtrace
from clawtrace import __version__
from clawtrace.campaign.planning.expand import PlannedRun, canonical_digest
from clawtrace.config.cases.cassette import CassetteUse
from clawtrace.config.files.problems import texts
from clawtrace.config.suites.agent_file import LoadedAgent
from clawtrace.judge.prompt import PROMPT_VERSION
from clawtrace.runners.base import Message
from clawtrace.runners.inputs.content import Tree, file_digest, tree
from clawtrace.runners.starting.templates import names_in, render_tree
from clawtrace.runners.workspace import STANDARD_FILES, placeholder

__all__ = ["SCHEMA", "agent_files", "judging_parts", "run_parts"]

SCHEMA = 1
"""Raised when the same edit would give another agent or another judgement than before."""

_OF_THE_DAY = frozenset({"today", "now", "run_started_at"})


def run_parts(planned: PlannedRun, env: Mapping[str, str], inputs: Mapping[str, Any]) -> dict[str, str]:
    """Return what an agent is given to do and depends on, as one digest a part, by the part's name in words.

    Args:
        env: the caller's environment: a variable that a template reads counts with its value.
        inputs: what the runner says can change its agent apart from the settings (`Runner.inputs`).
    """
    case, model = planned.case, planned.model
    given = {
        "the runner's settings": [case.config.runner.type, planned.settings.model_dump(mode="json")],
        "the messages": [_written_messages(case.conversation.messages), _written_messages(case.conversation.turns)],
        "the context": case.config.input.context.model_dump(mode="json", exclude_none=True),
    }
    if (user := case.config.input.user) is not None:
        given["the simulated user"] = [user.prompt_version, user.model_dump(mode="json")]
    named = {name for _, text in texts(given) for name in names_in(text)}
    parts = {
        "the way clawtrace runs agents": SCHEMA,
        "the case's id": case.config.case_id,
        "the model": None if model is None else model.model_dump(mode="json", exclude={"label"}),
        "the attachments": [[one.name, one.sha256, one.size] for one in case.conversation.attachments],
        "the agent": _agent(case.agent),
        "the day": date.today().isoformat() if named & _OF_THE_DAY else None,
        **({} if not case.faults else {"the faults": [one.model_dump(mode="json") for one in case.faults]}),
        **({} if case.cassette is None else {"the cassette": _cassette(case.cassette)}),
        **render_tree(given, partial(_stands_for, env)),
        **inputs,
    }
    return {name: canonical_digest(part)[:16] for name, part in parts.items()}


def _cassette(use: CassetteUse) -> list[Any]:
    """Return what of a cassette can change a run: how it is used, and its content."""
    return [use.settings.model_dump(mode="json", exclude={"path"}), file_digest(use.path)]


def _written_messages(messages: Sequence[Message]) -> list[list[str | None]]:
    return [[message.role, message.content, message.name] for message in messages]


def _agent(agent: LoadedAgent | None) -> dict[str, Any] | None:
    """Return what of an agent can change a run: its id, what is passed to its program, its files with their modes."""
    if agent is None:
        return None
    return {
        "agent_id": agent.config.agent_id,
        **agent.config.program_settings,
        "workspace": agent_files(agent.workspace).digest,
        "placeholders": [placeholder(name) for name in STANDARD_FILES],
    }


@lru_cache(maxsize=256)
def agent_files(workspace: Path) -> Tree:
    """Return the files of an agent's workspace; they are the same for all cases of a campaign, which clears the cache."""
    return tree(workspace, workspace.rglob("*"))


def _stands_for(env: Mapping[str, str], name: str) -> str:
    """Return the value of a template where it can change an agent; the run's own names stay as they are."""
    if not name.startswith("env."):
        return f"{{{{{name}}}}}"
    return "sha256:" + hashlib.sha256(env.get(name.removeprefix("env."), "").encode()).hexdigest()


@lru_cache
def _own_code() -> str:
    """Return a digest of clawtrace's own files: two checkouts of one version may judge differently."""
    root = Path(clawtrace.__file__).parent
    own = sorted(file for kind in ("py", "yaml") for file in root.rglob(f"*.{kind}"))
    return hashlib.sha256(b"\0".join(file.read_bytes() for file in own)).hexdigest()


def judging_parts(
    planned: PlannedRun,
    profile: Mapping[str, Any] | None,
    project: Mapping[str, Any],
    judging: Mapping[str, str],
    env: Mapping[str, str],
    doubts: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Return what judges the runs of a case, as one digest a part, by the part's name in words; what there is not is left out.

    Args:
        profile: the evaluation profile, as written.
        project: what the project says about closing, normalising, prices and redaction.
        judging: digests of the files next to the case that judge (golden files, word lists, hooks), by path.
        env: the caller's environment: a variable that an assertion's template reads counts with its value.
        doubts: why judges are not relied on, by judge.
    """
    case = planned.case
    given = {
        "the version of clawtrace": [SCHEMA, __version__, _own_code()],
        "the assertions": [
            {"version": assertion.version, **render_tree(entry.fields, partial(_stands_for, env))}
            for assertion, entry in zip(case.assertions.parsed, case.assertions.entries, strict=True)
        ],
        "the preconditions": [entry.fields for entry in case.preconditions.entries],
        "the expectations": case.config.expectations.model_dump(mode="json"),
        "the rubric": None if case.config.rubric is None else case.config.rubric.model_dump(mode="json"),
        "the day of `until`": (
            date.today().isoformat() if any(one.until is not None for one in case.assertions.parsed) else None
        ),
        "the evaluation profile": profile,
        "the judges": None if not (profile or {}).get("judges") else [PROMPT_VERSION, doubts],
        "the project's settings": project,
        "files that judge": judging,
    }
    return {name: canonical_digest(part)[:16] for name, part in given.items() if part}
