"""Agents (`agent.yaml`): those that a suite and its run profile name, and which case has which (spec: config.md §1, §2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from pydantic import Field

from clawtrace.config.base import SchemaVersion, Slug
from clawtrace.config.files.document import Document, KeyPath, display, read_document, with_either_suffix
from clawtrace.config.files.problems import in_document, validated
from clawtrace.config.openclaw import AgentAssignment, AgentProgram
from clawtrace.config.suites.selection import is_selected, unknown_cases
from clawtrace.config.suites.suite import RunProfile, SuiteConfig
from clawtrace.errors import ConfigError, ConfigProblem
from clawtrace.runners.workspace import AgentFiles
from clawtrace.support.did_you_mean import did_you_mean

__all__ = ["AgentConfig", "Agents", "LoadedAgent", "load_agent", "load_agents"]


class AgentConfig(AgentProgram):
    """The file `configs/agents/<agent_id>/agent.yaml`, next to the folder `workspace/`."""

    schema_version: SchemaVersion
    """Version of this file's format."""
    agent_id: Slug
    """The same as the folder's name."""
    title: str
    """A label for people."""
    description: str = ""
    """What the agent is for."""
    tags: list[str] = Field(default_factory=list)
    """Words about the agent, shown in reports."""


@dataclass(frozen=True, slots=True)
class LoadedAgent:
    """An agent with its workspace template."""

    config: AgentConfig
    workspace: Path
    """Absolute folder that is copied into each run's workspace."""

    @property
    def files(self) -> AgentFiles:
        """What a runner is given of it."""
        return AgentFiles(self.config.agent_id, self.workspace, self.config.for_program())


@dataclass(frozen=True, slots=True)
class Agents:
    """Which agent is for which case."""

    assigned: tuple[tuple[AgentAssignment, LoadedAgent | None], ...]
    """In the order of the suite; None where the agent could not be loaded."""
    default: LoadedAgent | None
    """The run profile's; None when it names none."""
    suite: Document

    def of_case(self, case_id: str, tags: Sequence[str], problems: list[ConfigProblem]) -> LoadedAgent | None:
        """Return the agent of a case, None when it has none; a case of two agents is added to `problems`."""
        matching = [
            (index, assignment.agent_id, agent)
            for index, (assignment, agent) in enumerate(self.assigned)
            if is_selected(case_id, assignment.case_selection, partial(set, tags))
        ]
        for index, name, _ in matching[1:]:
            where: KeyPath = SuiteConfig.assignments_at
            first = self.suite.locate((*where, matching[0][0]))[0]
            message = f"`{name}` selects the case `{case_id}`, which `{matching[0][1]}` (line {first}) selects as well"
            problems.append(self.suite.problem((*where, index), message, "A case has one agent."))
        return matching[0][2] if matching else self.default

    def idle(self, cases: Mapping[str, Sequence[str]]) -> list[str]:
        """Return which assignments select none of the cases, given as ids with their tags, in sentences."""
        return [
            f"{self.suite.file}: the assignment of the agent `{assignment.agent_id}` selects no case of the suite"
            for assignment, _ in self.assigned
            if not any(
                is_selected(case_id, assignment.case_selection, partial(set, tags)) for case_id, tags in cases.items()
            )
        ]


def load_agents(
    suite: tuple[Document, SuiteConfig],
    profile: tuple[Document, RunProfile] | None,
    folder: Path,
    known_cases: Mapping[str, object],
    problems: list[ConfigProblem],
) -> Agents:
    """Load every agent that a suite and its run profile name, adding every problem to `problems`.

    Args:
        folder: ``configs/agents``.
        known_cases: all cases there are, by id.
    """
    document, config = suite
    loaded: dict[str, LoadedAgent | None] = {}

    def agent(name: str, source: Document, where: KeyPath) -> LoadedAgent | None:
        if name not in loaded:
            loaded[name] = load_agent(name, folder, source, where, problems)
        return loaded[name]

    assigned = []
    for index, assignment in enumerate(config.assignments):
        where: KeyPath = (*SuiteConfig.assignments_at, index)
        problems += unknown_cases(assignment.case_selection, document, (*where, "case_selection"), known_cases)
        assigned.append((assignment, agent(assignment.agent_id, document, (*where, "agent_id"))))
    default = None
    if profile is not None and profile[1].default_agent is not None:
        default = agent(profile[1].default_agent, profile[0], RunProfile.default_agent_at)
    return Agents(tuple(assigned), default, document)


def load_agent(
    name: str, folder: Path, source: Document, where: KeyPath, problems: list[ConfigProblem]
) -> LoadedAgent | None:
    """Return one agent, or None after adding every problem to `problems`."""
    home = folder / name
    file = with_either_suffix(home / "agent")
    if file is None:
        known = sorted(path.name for path in folder.glob("*") if with_either_suffix(path / "agent") is not None)
        hint = did_you_mean(name, known) or (f"Known are {', '.join(known)}." if known else "")
        message = f"there is no agent {name!r} in {display(folder)} ({name}/agent.yaml)"
        problems.append(source.problem(where, message, hint))
        return None
    try:
        document = read_document(file)
    except ConfigError as error:
        problems += error.problems
        return None
    config = validated(AgentConfig, document.data, in_document(document), problems)
    if config is not None and config.agent_id != name:
        message = f"must be the name of the agent's folder, {name!r}, found {config.agent_id!r}"
        problems.append(document.problem(("agent_id",), message))
    workspace = home / "workspace"
    if not workspace.is_dir():
        message = f"the folder {display(workspace)} does not exist; create it for the agent's files; it may be empty"
        problems.append(document.problem((), message))
        return None
    if config is None:
        return None
    return LoadedAgent(config, workspace.absolute())
