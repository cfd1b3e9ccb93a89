"""What the control service takes, as models: their JSON Schemas are the OpenAPI description (`openapi`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from clawtrace.errors import UsageError
from clawtrace.runners.base import Protocol, RunStatus

if TYPE_CHECKING:
    from clawtrace.verdicts.gating.gate import Gate

__all__ = ["AdoptTraces", "BeginRun", "EndRun", "Gating", "RunId", "WaitComplete", "problems", "read"]

M = TypeVar("M", bound=BaseModel)

RunId = Annotated[str, StringConstraints(min_length=1, max_length=200)]


class _Request(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


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


class WaitComplete(_Request):
    """Wait until a run is closed."""

    timeout_seconds: float = Field(default=60.0, gt=0, le=600)
    """Longest wait, in seconds."""


class AdoptTraces(_Request):
    """Give traces that named no run to a run."""

    trace_ids: tuple[str, ...] = Field(min_length=1)
    """Unattributed traces; all of them are adopted, or none."""


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
        from clawtrace.verdicts.gating.gate import Gate

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
        found.append(f"`{place}`: {entry['msg']}" if place else entry["msg"])
    return "; ".join(found)
