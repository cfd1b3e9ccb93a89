"""What suites, run profiles, agents and cases say for OpenClaw: no other configuration module names it.

Each class at the end is the base of a model of a file: it adds the key `openclaw`, and says in general words what the rest of
the program asks of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Annotated, Any, ClassVar

from pydantic import Field, field_validator

from clawtrace.config.base import CaseSelection, ConfigModel, Slug

__all__ = ["AgentAssignment", "AgentProgram", "ProfileAgent", "SuiteAgents", "TaskContext"]

_RUNNER = "openclaw"
"""The runner that reads what is said here."""
_FALLBACKS = "a run uses exactly one model; `fallbacks` are rejected"
_OF_THE_RUNNER = ("image", "timeout_seconds", "docker_cli")

Keys = tuple[str, ...]


class AgentAssignment(ConfigModel):
    """The cases that one agent is for."""

    agent_id: Slug
    """The agent's folder below `configs/agents`."""
    case_selection: CaseSelection
    """Which of the suite's cases: as above, and something must be included."""

    @field_validator("case_selection")
    @classmethod
    def _includes(cls, selection: CaseSelection) -> CaseSelection:
        if not selection.include_case_ids and not selection.include_tags:
            raise ValueError(
                "an assignment needs `include_case_ids` or `include_tags`; the agent of all other cases is "
                "`openclaw.agent_id` of the run profile"
            )
        return selection


class SuiteOpenClaw(ConfigModel):
    """Which agent is for which case."""

    agent_assignments: list[AgentAssignment] = Field(default_factory=list)
    """A case that none of them selects has the run profile's agent; one that two select is an error."""


class OpenClawRunProfile(ConfigModel):
    """The agent of cases that no assignment selects, and how the OpenClaw CLI is run."""

    agent_id: Slug
    """The agent's folder below `configs/agents`."""
    image: Annotated[str, Field(min_length=1)] | None
    """OCI image of the OpenClaw CLI; null runs the CLI of this machine."""
    timeout_seconds: int = Field(ge=1, le=86_400)
    """Time limit of a run of the runner `openclaw`, in seconds."""
    docker_cli: str = Field(default="docker", min_length=1)
    """The program that runs containers, for example `podman`."""


class OpenClawAgent(ConfigModel):
    """The agent's entry in `agents.list`."""

    id: str | None = Field(default=None, min_length=1)
    """The id that the CLI is given (`--agent`); by default the `agent_id`."""
    prompt: str | None = None
    """The system prompt that replaces the CLI's own (`systemPromptOverride`)."""


class OpenClawModelDefaults(ConfigModel):
    """What is said of the run's model."""

    aliases: dict[str, str] = Field(default_factory=dict)
    """`default`: the alias of the run's model."""
    fallbacks: list[str] = Field(default_factory=list)
    """Empty: a run uses exactly one model."""

    @field_validator("aliases")
    @classmethod
    def _one(cls, aliases: dict[str, str]) -> dict[str, str]:
        other = next((name for name in aliases if name != "default"), None)
        if other is not None:
            raise ValueError(f"a run uses one model, whose alias is `default`; found {other!r}")
        return aliases

    @field_validator("fallbacks")
    @classmethod
    def _none(cls, fallbacks: list[str]) -> list[str]:
        if fallbacks:
            raise ValueError(_FALLBACKS)
        return fallbacks


class OpenClawFragments(ConfigModel):
    """What goes into the generated `openclaw.json`."""

    identity: Any = None
    """Refused: the CLI would drop it; a persona belongs into `workspace/IDENTITY.md` and `SOUL.md`."""
    agents_defaults: dict[str, Any] = Field(default_factory=dict)
    """Merged into `agents.defaults`."""
    agent: OpenClawAgent = OpenClawAgent.model_construct()
    """The agent's entry in `agents.list`."""
    model_defaults: OpenClawModelDefaults = OpenClawModelDefaults.model_construct()
    """What is said of the run's model."""

    @field_validator("identity")
    @classmethod
    def _in_the_workspace(cls, identity: Any) -> Any:
        if identity is not None:
            raise ValueError(
                "the OpenClaw CLI does not take `identity` from its configuration; write the persona into "
                "`workspace/IDENTITY.md` and `workspace/SOUL.md`"
            )
        return identity

    @field_validator("agents_defaults")
    @classmethod
    def _one_model(cls, defaults: dict[str, Any]) -> dict[str, Any]:
        model = defaults.get("model")
        if isinstance(model, dict) and model.get("fallbacks"):
            raise ValueError(f"`model`: {_FALLBACKS}")
        return defaults


class OpenClawContext(ConfigModel):
    """What clawtrace knows about an OpenClaw agent's task, and the agent does not."""

    expected_artifact: str | None = Field(default=None, min_length=1)
    """The file that the run should leave, relative to the workspace; always kept as an artifact, and missed aloud."""

    @field_validator("expected_artifact")
    @classmethod
    def _inside(cls, path: str | None) -> str | None:
        if path is not None and (path.startswith("/") or ".." in path.split("/")):
            raise ValueError(f"must be a path inside the workspace, found {path!r}")
        return path


class SuiteAgents(ConfigModel):
    """Which of several agents is for which case."""

    assignments_at: ClassVar[Keys] = ("openclaw", "agent_assignments")
    """Position of `assignments` in the file."""

    openclaw: SuiteOpenClaw | None = None
    """Which agent is for which case."""

    @property
    def assignments(self) -> list[AgentAssignment]:
        """The agents with their cases, in the order of the file."""
        return self.openclaw.agent_assignments if self.openclaw is not None else []


class ProfileAgent(ConfigModel):
    """The agent of cases that no assignment selects."""

    default_agent_at: ClassVar[Keys] = ("openclaw", "agent_id")
    """Position of `default_agent` in the file."""

    openclaw: OpenClawRunProfile | None = None
    """The agent of cases that no assignment selects, and how the OpenClaw CLI is run."""

    @property
    def default_agent(self) -> str | None:
        """Its `agent_id`."""
        return self.openclaw.agent_id if self.openclaw is not None else None

    @property
    def program_settings(self) -> Mapping[str, Any]:
        """What a fingerprint holds of it."""
        return {"openclaw": None if self.openclaw is None else self.openclaw.model_dump(mode="json")}

    def runner_settings(self, runner_type: str) -> Mapping[str, Any]:
        """Return what it says of the settings of a runner; they go over the profile's own, and the case's go over them."""
        if self.openclaw is None or runner_type != _RUNNER:
            return {}
        return {name: getattr(self.openclaw, name) for name in _OF_THE_RUNNER if name in self.openclaw.model_fields_set}

    def idle_keys(self, runner_types: Set[str]) -> Mapping[Keys, str]:
        """Return the keys of the file that no case of a suite reads whose cases have these runners, with why."""
        if self.openclaw is None or _RUNNER in runner_types:
            return {}
        said = [name for name in ("image", "docker_cli") if name in self.openclaw.model_fields_set]
        why = f"has no effect: no case of the suite has the runner `{_RUNNER}`"
        return {("openclaw", name): why for name in said if getattr(self.openclaw, name) is not None}


class AgentProgram(ConfigModel):
    """What is passed to the program of an agent."""

    openclaw: OpenClawFragments = OpenClawFragments.model_construct()
    """What goes into the generated `openclaw.json`."""

    @property
    def program_settings(self) -> Mapping[str, Any]:
        """What a fingerprint holds of it."""
        return {"openclaw": self.openclaw.model_dump(mode="json")}

    def for_program(self) -> Mapping[str, Any]:
        """Return the program's instructions."""
        return self.openclaw.model_dump(mode="json", exclude={"identity"})


class TaskContext(ConfigModel):
    """What clawtrace, and not the agent, knows about the task."""

    openclaw: OpenClawContext | None = None
    """About the task of an OpenClaw agent."""

    @property
    def expected_artifact(self) -> str | None:
        """The file that the run should leave, relative to the workspace."""
        return self.openclaw.expected_artifact if self.openclaw is not None else None
