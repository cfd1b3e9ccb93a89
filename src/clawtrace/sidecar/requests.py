"""What the control service takes, as models: their JSON Schemas are the OpenAPI description (`openapi`)."""

from __future__ import annotations

from typing import Annotated, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, ValidationError

from clawtrace.errors import UsageError
from clawtrace.model.run import SentTurn
from clawtrace.model.verdict import Evidence, Status, Verdict
from clawtrace.runners.base import Protocol, RunStatus
from clawtrace.verdicts.gating.gate import Gate

__all__ = [
    "AdoptTraces",
    "BeginRun",
    "EndRun",
    "Gating",
    "PutVerdicts",
    "ReceivedRows",
    "WaitComplete",
    "problems",
    "read",
]

M = TypeVar("M", bound=BaseModel)

RunId = Annotated[str, StringConstraints(min_length=1, max_length=200)]


def _from_text(value: object) -> object:
    """Return an integer that is written as protobuf's JSON has those of 64 bits."""
    return int(value) if isinstance(value, str) and value.isdecimal() and len(value) < 20 else value


Nanoseconds = Annotated[int, BeforeValidator(_from_text), Field(ge=0)]


class _Request(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class Turn(_Request):
    """One turn that the agent is given, and the context that it is given with."""

    trace_id: str = Field(pattern="^[0-9a-f]{32}$")
    """Of its `traceparent`, in hexadecimal digits."""
    parent_span_id: str = Field(pattern="^[0-9a-f]{16}$")
    """The span of the `traceparent`, which is never exported."""
    started_ns: Nanoseconds | None = None
    """When the turn was started, Unix time; unknown before that."""

    def sent(self) -> SentTurn:
        """Return it as the record of a run has it."""
        return SentTurn(self.trace_id, self.parent_span_id, self.started_ns)


class BeginRun(_Request):
    """Announce a run before its agent starts."""

    run_id: RunId | None = None
    """Its id; by default the service makes one."""
    case_id: RunId | None = None
    """The case it is a run of; by default the run's id."""
    model_id: str | None = None
    """The model that is evaluated."""
    repetition: int = Field(default=1, ge=1)
    """Number of this repetition of the case."""
    session_ids: tuple[str, ...] = ()
    """Session or conversation ids that the run will use, for agents whose spans name nothing else."""
    protocol: Protocol = "http/protobuf"
    """The OTLP protocol of the environment in the answer."""
    turns: tuple[Turn, ...] = ()
    """The turns that the agent will be given; by default one, which the service makes."""


class EndRun(_Request):
    """Say that the agent's work on a run is over, and wait until its spans are here."""

    exit_code: int | None = None
    """Exit code of the agent's process, which has ended. Without it the agent is one that already ran and goes on
    running: then the entry span of the turn closes the run, or silence."""
    status: RunStatus | None = None
    """How the agent ended; by default what the exit code says (0: `success`, else `failed`), and unknown without one."""
    final_output: str | None = None
    """The final answer, for agents whose spans have none."""
    settle_ms: int | None = Field(default=None, ge=0)
    """Silence that closes the run where nothing else does, in milliseconds; by default 2 000 after an exit code, else 12 000."""
    agent: Literal["started", "running", "unknown"] | None = None
    """Whether the command was the agent itself (`started`) or sent its messages to one that already ran (`running`); `unknown`
    leaves it to the spans. By default what the exit code says: `started` with one, else `running`."""
    processes_gone: bool = True
    """Whether every process that was started for the run has exited."""
    turns: tuple[Turn, ...] = ()
    """The turns that the agent was given; by default those that were announced."""
    started_ns: Nanoseconds | None = None
    """When the agent's command was started, Unix time; by default when the run was announced."""
    ended_ns: Nanoseconds | None = None
    """When it ended, Unix time; by default now, and of a run that was not announced, when its last span ended."""
    ended_by_signal: int | None = None
    """Number of the signal that ended it."""
    timed_out: bool = False
    """Whether a time limit ended it; so does the status `timed_out`."""
    cut_off: str | None = None
    """Which of its processes were ended while they might still have exported, in one sentence."""
    runner_error: str | None = None
    """What went wrong before the agent could be judged."""


class WaitComplete(_Request):
    """Wait until a run is closed."""

    timeout_seconds: float = Field(default=60.0, gt=0, le=600)
    """Longest wait, in seconds."""


class AdoptTraces(_Request):
    """Give traces that named no run to a run."""

    trace_ids: tuple[str, ...] = Field(min_length=1)
    """Unattributed traces; all of them are adopted, or none."""


class ReceivedRows(_Request):
    """Ask how much came of runs, to see whether more did since."""

    run_ids: tuple[RunId, ...] = Field(max_length=1000)


class GivenEvidence(_Request):
    """A span that decided."""

    trace_id: str | None = None
    span_id: str | None = None
    name: str
    why: str
    start_ns: Nanoseconds | None = None


class GivenVerdict(_Request):
    """A verdict that a client gave, as ``clawtrace.results/1`` has it."""

    id: str
    """Id of the assertion."""
    type: str
    """Its type."""
    status: Literal["pass", "fail", "warn", "skip", "inconclusive", "error"]
    severity: Literal["error", "warn"] = "error"
    final: bool = True
    """Whether no further span could change the answer."""
    message: str
    hint: str = ""
    evidence: tuple[GivenEvidence, ...] = ()

    def verdict(self, run_id: str) -> Verdict:
        """Return it as a verdict on a run."""
        evidence = tuple(Evidence(**one.model_dump()) for one in self.evidence)
        given = self.model_dump(exclude={"status", "evidence"})
        return Verdict(run_id, status=Status(self.status), evidence=evidence, **given)


class PutVerdicts(_Request):
    """Hand over all verdicts that were given elsewhere on a run of this service: they are counted and sent on as its own."""

    verdicts: tuple[GivenVerdict, ...]
    received: int | None = Field(default=None, ge=0)
    """How much of the run they judge, as counted by `POST /clawtrace/v1/received`; verdicts on less than has arrived are stale."""


class Gating(_Request):
    """Which runs are judged, and what passes: the flags of `clawtrace eval` of these names."""

    run_id: tuple[str, ...] = ()
    """Only these runs."""
    where: str | None = None
    """Only runs that match this SQL condition over the relation `runs`."""
    strict: bool = False
    allow_missing_trace: bool = False
    allow_missing_data: bool = False
    gate_incomplete: Literal["error", "warn"] = "error"
    gate_on: Literal["rate", "lower-bound"] = "rate"

    def gate(self) -> Gate:
        """Return what passes."""
        return Gate(self.strict, self.allow_missing_trace, self.allow_missing_data, self.gate_incomplete, self.gate_on)


def read(model: type[M], body: bytes | str) -> M:
    """Read JSON as a model.

    Raises:
        UsageError: it is none.
    """
    try:
        return model.model_validate_json(body)
    except ValidationError as error:
        raise UsageError(problems(error)) from error


def problems(error: ValidationError) -> str:
    """Return what is wrong, in one line."""
    found = []
    for entry in error.errors(include_url=False, include_input=False):
        place = ".".join(map(str, entry["loc"]))
        unknown = entry["type"] == "extra_forbidden"
        said = "is not a known key; `/clawtrace/v1/openapi.json` lists all" if unknown else entry["msg"]
        found.append(f"`{place}`: {said}" if place else said)
    return "; ".join(found)
