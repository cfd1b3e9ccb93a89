"""The interface of a runner: its input, its result, and its registration.

A runner starts an agent for one run, waits until nothing of it is left, and says how it ended. It knows
nothing of stores, sessions or verdicts (spec: config.md §3).
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Literal
from typing import Protocol as TypingProtocol

from pydantic import ConfigDict, Field, StrictStr

from clawtrace._discover import subclasses_in
from clawtrace.runners.workspace import AgentFiles, ArtifactFile
from clawtrace.support.attribute_docs import Documented

if TYPE_CHECKING:
    from clawtrace.model.run import RunRecord
    from clawtrace.receiver.limits import Endpoints

__all__ = [
    "ALREADY_RAN",
    "OUTLIVED",
    "AgentInputs",
    "InputsRequest",
    "Message",
    "ModelAddresses",
    "ModelRequested",
    "Protocol",
    "RunOutcome",
    "RunRequest",
    "RunStatus",
    "Runner",
    "RunnerSettings",
    "StopSignal",
    "TelemetryTarget",
    "WorkspaceSettings",
    "runner_types",
]

ALREADY_RAN = "its agent was already running, and may have changed since"
"""Why no stored run of an agent that already runs is reused."""
OUTLIVED = (
    "it was not closed by the end of its command: its agent may have been running before, and may have changed since"
)
"""Why no such stored run is reused."""

Protocol = Literal["grpc", "http/protobuf", "http/json"]
"""A value of ``OTEL_EXPORTER_OTLP_PROTOCOL``."""

RunStatus = Literal["success", "failed", "timed_out", "provider_error", "invalid"]
"""How the agent ended. ``invalid``: it could not be run or was interrupted, so it cannot be judged."""


class RunnerSettings(Documented):
    """Settings that every runner accepts; a runner type adds its own."""

    model_config = ConfigDict(strict=True)

    timeout_seconds: float = Field(default=600.0, gt=0, le=86400)
    """Time limit of the agent, in seconds; then its process group and all its descendants are ended."""

    @property
    def needs_user_message(self) -> bool:
        """Whether the last user message is used, so that a case without one is a mistake."""
        return False

    @property
    def needs_opening(self) -> bool:
        """Whether the first message of the user is used before the agent starts."""
        return False

    @property
    def takes_all_messages(self) -> bool:
        """Whether the agent is given the whole conversation, not only what the user said last."""
        return True

    @property
    def why_no_cassette(self) -> str:
        """Why recorded answers cannot take the place of the agent's providers; empty where they can."""
        return ""

    def absent(self, case_dir: Path, env: Mapping[str, str]) -> Iterator[tuple[tuple[str | int, ...], str]]:
        """Yield which files, folders and packages that are named do not exist: the position of the name, and a sentence."""
        del case_dir, env
        yield from ()

    def missing(self, env: Mapping[str, str], asked: ModelRequested | None = None) -> str | None:
        """Return what must be installed or set before a run can start; None when nothing is known to be.

        Args:
            env: the caller's environment.
            asked: the model and the tools of the run; None where a case is looked at without a suite.
        """
        del env, asked
        return None

    def depends_on(self, request: InputsRequest) -> AgentInputs:
        """Return what apart from these settings can change the agent; where that cannot be known, why."""
        del request
        return AgentInputs({}, "what the agent of this runner depends on is unknown")


class WorkspaceSettings(RunnerSettings):
    """Settings of every runner whose agent works in a fresh workspace."""

    pass_env: list[StrictStr] = Field(default_factory=list)
    """Names or globs of the caller's variables that the agent gets in addition to the allow-list, for example API keys."""
    scaffold: StrictStr | None = None
    """Folder that is copied into the fresh workspace, relative to the case file."""
    artifacts: list[StrictStr] | None = None
    """Globs, relative to the workspace, of the created and changed files that are kept as artifacts; by default all are."""

    def absent(self, case_dir: Path, env: Mapping[str, str]) -> Iterator[tuple[tuple[str | int, ...], str]]:
        """Yield a scaffold that is no folder."""
        del env
        if self.scaffold is not None and not (case_dir / self.scaffold).is_dir():
            yield ("scaffold",), f"the folder {self.scaffold!r} does not exist next to the case file"


@dataclass(frozen=True, slots=True)
class Message:
    """One message of the conversation that the agent is given."""

    role: Literal["system", "user", "assistant", "tool"]
    content: str
    name: str | None = None


@dataclass(frozen=True, slots=True)
class ModelRequested:
    """The suite's model of a run, and the tools that the case gives it."""

    model_id: str | None = None
    requested_model: str | None = None
    more: Mapping[str, Any] = field(default_factory=dict)
    """Keys of the suite's model entry that clawtrace does not know, passed through."""
    tools: tuple[str, ...] = ()
    """Names of the tools that the case gives the model, where the runner has tools."""


class ModelAddresses(TypingProtocol):
    """Where a run's models are asked: at a server of ours, in place of their providers."""

    def environment(self, env: Mapping[str, str]) -> dict[str, str]:
        """Return the agent's environment in which every provider is at that server."""
        ...

    def at(self, provider: str, base_url: str | None) -> str:
        """Return the base URL there of a provider that would be asked at `base_url`, or else where it usually is."""
        ...


@dataclass(frozen=True, slots=True)
class RunRequest:
    """One run, ready to be started."""

    run_id: str
    case_id: str
    messages: tuple[Message, ...]
    """The conversation so far, attachments included."""
    settings: RunnerSettings
    """Of the runner's own `Settings` type, merged and validated."""
    folder: Path
    """Absolute; the runner may write stdout, stderr and workspace/ into it. It exists and is empty."""
    case_dir: Path
    """Absolute; paths in the settings are relative to it."""
    started_at: float
    """Seconds since the epoch: the clock that every template of this run reads."""
    asked: ModelRequested = ModelRequested()
    """The model and the tools of the run."""
    turns: tuple[Message, ...] = ()
    """User messages that follow each other in one session, `messages` before the first; empty for a single turn."""
    reply: Callable[[str | None], Message | None] | None = None
    """A simulated user, in place of all `turns` but the first: given the agent's answer (None: there is none yet) it returns the
    next turn, None when the conversation is over. It raises RunnerError when it cannot go on."""
    context: Mapping[str, Any] = field(default_factory=dict)
    """Anything else that the agent is given: free keys."""
    expected_artifact: str | None = None
    """A file that the run should leave, relative to the workspace; not shown to the agent."""
    agent: AgentFiles | None = None
    """None where the suite gives the case no agent."""
    base_env: Mapping[str, str] = field(default_factory=dict)
    """The environment of the caller; a runner takes from it what is allowed."""
    before_agent: Callable[[Path | None], None] = lambda _: None
    """Called with the prepared workspace when the agent could start; raises PreconditionError when it must not."""
    models: ModelAddresses | None = None
    """None where the agent asks its providers themselves."""


@dataclass(frozen=True, slots=True)
class InputsRequest:
    """What a runner's settings are asked about: which other things can change what the agent does."""

    case_dir: Path
    """Absolute."""
    project_root: Path
    """Absolute folder of the project."""
    leave_out: frozenset[Path]
    """Absolute folders of the project that are no input of this agent: results, configuration, the cases' folders."""
    judging: tuple[Path, ...]
    """Absolute files of the case's folder that only judge: the case file, golden files, hooks."""
    env: Mapping[str, str]
    """The caller's environment."""


@dataclass(frozen=True, slots=True)
class AgentInputs:
    """Everything apart from its settings that can change what an agent does, as digests."""

    digests: Mapping[str, Any]
    """JSON values by name; they hold no secret in plain text."""
    unknown: str = ""
    """Why they are not all known, so that a stored run only serves to resume its own campaign; one clause, empty when they
    are."""
    files: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Of those digests made of files, the digest of each file by its path: they show which was edited."""


@dataclass(frozen=True, slots=True)
class TelemetryTarget:
    """The endpoint of the agent's spans, and their parent context."""

    grpc: str
    """Base URL of the gRPC endpoint, for example ``http://127.0.0.1:4317``."""
    http: str
    """Base URL of the HTTP endpoint."""
    trace_id: str
    """32 hex digits: the injected ``traceparent``'s."""
    parent_span_id: str
    """16 hex digits: a span that is never exported."""
    switches: Mapping[str, bool | str] = field(default_factory=dict)
    """`telemetry_env` of the project: groups or variables switched off, or given another value."""
    token: str | None = None
    """The token that export requests must carry; None if none is required."""
    later_turns: tuple[tuple[str, str], ...] = ()
    """Trace id and parent span id of the turns after the first: each is sent with its own ``traceparent``."""
    resource: Mapping[str, str] = field(default_factory=dict)
    """Resource attributes of the agent's spans, in addition to the run's id."""

    @classmethod
    def of_run(
        cls,
        record: RunRecord,
        endpoints: Endpoints,
        switches: Mapping[str, bool | str],
        resource: Mapping[str, str] = MappingProxyType({}),
    ) -> TelemetryTarget:
        """Return the target of an announced run, whose spans are received at the endpoints."""
        first, *later = record.turns
        more = tuple((turn.trace_id, turn.parent_span_id) for turn in later)
        where = endpoints.grpc, endpoints.http, first.trace_id, first.parent_span_id
        return cls(*where, switches, endpoints.token, more, resource)

    @property
    def traceparent(self) -> str:
        """The W3C context that the agent continues."""
        return f"00-{self.trace_id}-{self.parent_span_id}-01"

    def of_turn(self, number: int) -> TelemetryTarget:
        """Return the target of a turn, counted from 1; a turn without its own context has the first one's."""
        if not 0 <= number - 2 < len(self.later_turns):
            return self
        trace_id, parent_span_id = self.later_turns[number - 2]
        return replace(self, trace_id=trace_id, parent_span_id=parent_span_id)


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """The end of a run as its runner saw it."""

    run_status: RunStatus | None
    """None where no agent was run here, so that this is unknown."""
    started_ns: int | None = None
    ended_ns: int | None = None
    """The end of the agent's own process, not of its last descendant."""
    ended: float | None = None
    """The same in seconds of the machine's monotonic clock, by which the wait for its last spans is measured."""
    exit_code: int | None = None
    ended_by_signal: int | None = None
    timed_out: bool = False
    processes_gone: bool = True
    """Whether everything that the runner started is known to have ended (spec: span-model.md §3 (a))."""
    cut_off: str | None = None
    """Which processes a signal of ours ended while they might still have exported, or worked and exported nothing; a reason against
    completeness."""
    stdout: Path | None = None
    stderr: Path | None = None
    workspace: Path | None = None
    final_output: str | None = None
    """The runner's view of the final answer; None when it has none."""
    runner_error: str | None = None
    """Why the agent cannot be judged, and what to do about it; None if it can."""
    notes: tuple[str, ...] = ()
    """Other notes on the run: processes that outlived the command, and how they ended."""
    changes: Mapping[str, list[str]] = field(default_factory=dict)
    """Files of the workspace: ``created``, ``modified``, ``deleted``, ``unchanged``."""
    digests: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """SHA-256 of each regular file of the workspace, by path, ``before`` and ``after`` the agent ran."""
    recordings: tuple[Path, ...] = ()
    """OTLP files that are the run's spans, when no agent was started."""
    stored: tuple[Path, str] | None = None
    """Store and id of the run whose spans are this run's, when no agent was started."""
    artifacts: tuple[ArtifactFile, ...] = ()
    """Files that the run created or changed, and what is kept of them."""
    turns_started_ns: tuple[int, ...] = ()
    """The start of each sent turn's command."""
    agent: Literal["started", "running"] | None = None
    """Whether the command starts its agent or sends messages to one that already runs; None where not stated."""
    settle_ms: int | None = None
    """Silence that closes the run, in milliseconds; None leaves it to the project."""
    logs: tuple[Path, ...] = ()
    """The agent's own logs and transcripts: they record what the spans do not, and are used where there are none."""


class StopSignal:
    """Signals working runners to end their agents: set once, from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._set = False
        self._callbacks: dict[int, Callable[[], None]] = {}

    @property
    def is_set(self) -> bool:
        """Whether stopping was requested."""
        return self._set

    def set(self) -> None:
        """Ask for the end; every subscriber is called once."""
        with self._lock:
            self._set = True
            callbacks = list(self._callbacks.values())
            self._callbacks.clear()
        for callback in callbacks:
            callback()

    def subscribe(self, callback: Callable[[], None]) -> Callable[[], object]:
        """Call `callback` on `set`, at once when it was set before; return what ends the subscription."""
        with self._lock:
            if not self._set:
                self._callbacks[id(callback)] = callback
                return lambda: self._callbacks.pop(id(callback), None)
        callback()
        return lambda: None


class Runner(ABC):
    """Base of every runner type. An instance serves one run."""

    abstract: ClassVar[bool] = True
    """Set in a class body to keep that class out of the registry."""
    type_name: ClassVar[str]
    """The word after ``runner: {type: …}``."""
    Settings: ClassVar[type[RunnerSettings]] = RunnerSettings
    starts_agent: ClassVar[bool] = True
    """False for a runner that only reads recordings."""

    template_names: ClassVar[frozenset[str]] = frozenset()
    """Template names that only this runner's settings know."""
    without_templates: ClassVar[frozenset[str]] = frozenset()
    """Settings that are read before there is a run, so that no template has a value in them."""

    @abstractmethod
    def run(self, request: RunRequest, target: TelemetryTarget | None, stop: StopSignal) -> RunOutcome:
        """Run the agent to its end and to the end of everything it started.

        Args:
            request: what to run.
            target: where its spans go; None when `starts_agent` is False.
            stop: set from outside to end the agent early (Ctrl-C, a campaign that stops).

        Raises:
            RunnerError: the agent could not be started or supervised; the message says what to do.
        """


@cache
def runner_types() -> Mapping[str, type[Runner]]:
    """Return every runner type by its word in YAML."""
    return {cls.type_name: cls for cls in subclasses_in("clawtrace.runners", Runner)}  # type: ignore[type-abstract]
