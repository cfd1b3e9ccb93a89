"""Faults of a case: which calls of tools and models are made to fail, and how."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from clawtrace.assertions.matching.matchers import Matcher
from clawtrace.config.base import ConfigModel, Slug

__all__ = ["FaultConfig", "FaultsConfig", "ModelFault"]

Position = Annotated[int, Field(ge=1)]


class _Timed(ConfigModel):
    on: Position | Annotated[list[Position], Field(min_length=1)] | None = None
    """Which of the run's calls it strikes: a number counted from 1, or a list of them. By default every one."""
    rate: float | None = Field(default=None, gt=0, le=1)
    """In place of `on`: the share of calls that it strikes by chance; the same calls in each run."""
    seed: int = 0
    """Of that chance."""
    delay_ms: float = Field(default=0, ge=0)
    """Time before the answer, milliseconds."""

    @property
    def calls(self) -> frozenset[int]:
        """The numbers of `on`; empty where it is not given."""
        return frozenset([self.on] if isinstance(self.on, int) else self.on or ())

    @model_validator(mode="after")
    def _one_way_to_choose(self) -> Self:
        if self.on is not None and self.rate is not None:
            raise ValueError("a fault strikes `on` numbered calls or at a `rate`, not both")
        if "seed" in self.model_fields_set and self.rate is None:
            raise ValueError("`seed` belongs to a `rate`")
        return self


class ModelFault(_Timed):
    """What goes wrong with a call of a model."""

    status: int | None = Field(default=None, ge=400, le=599)
    """HTTP status of an error in place of the answer, in the words of the provider's protocol."""
    retry_after: float | None = Field(default=None, ge=0)
    """With `status`: after how many seconds the provider allows another try."""
    body: str | None = None
    """A body in place of the answer, sent as it is with HTTP 200: no JSON at all, or nothing."""
    slow_ms: float = Field(default=0, ge=0)
    """Time before each event of a stream, milliseconds; before an answer in one piece, once."""
    cut_after: int | None = Field(default=None, ge=0)
    """Number of events of a stream after which the connection breaks; an answer in one piece is not sent at all."""

    @model_validator(mode="after")
    def _one_fault(self) -> Self:
        instead = [name for name in ("status", "body", "cut_after") if getattr(self, name) is not None]
        if len(instead) > 1:
            raise ValueError(f"`{instead[0]}` and `{instead[1]}` are two faults; write an entry for each")
        if not (instead or self.delay_ms or self.slow_ms):
            raise ValueError("says nothing that goes wrong: `status`, `body`, `cut_after`, `slow_ms` or `delay_ms`")
        if self.retry_after is not None and self.status is None:
            raise ValueError("`retry_after` belongs to a `status`")
        if self.slow_ms and (self.status is not None or self.body is not None):
            raise ValueError("`slow_ms` belongs to a real answer; use `delay_ms`")
        return self


class FaultConfig(_Timed):
    """One fault: of a tool that is called through `clawtrace mcp-proxy`, or of a model."""

    tool: Matcher | None = None
    """Name of the tool; `glob:` and `re:` match several, whose calls are counted together."""
    error: str | None = None
    """The tool fails with this message; its server is not asked."""
    result: str | None = None
    """What the tool returns in place of its result, such as JSON that is cut short; an empty text is an empty result. Its
    server is not asked."""
    model: ModelFault | None = None
    """In place of `tool`: what goes wrong with calls of a model."""

    @property
    def timing(self) -> _Timed:
        """Which calls it strikes."""
        return self.model or self

    @model_validator(mode="after")
    def _of_one_thing(self) -> Self:
        if (self.tool is None) == (self.model is None):
            raise ValueError("a fault has either `tool` or `model`")
        if self.model is not None:
            if beside := sorted(self.model_fields_set - {"model"}):
                raise ValueError(f"`{beside[0]}` stands beside `model`, and belongs into it or to a `tool`")
            return self
        if self.error is not None and self.result is not None:
            raise ValueError("`error` and `result` are two faults; write an entry for each")
        if self.error is None and self.result is None and not self.delay_ms:
            raise ValueError("says nothing that goes wrong: `error`, `result` or `delay_ms`")
        return self


FaultsConfig = list[FaultConfig] | Annotated[dict[Slug, list[FaultConfig]], Field(min_length=1)]
"""Faults of the case's run; or by name, each of which makes a run of its own beside the one without faults."""
