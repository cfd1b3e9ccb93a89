"""What a probe adds to pydantic-ai's loop: attempts at a request, and the last one without tools."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import (
    AgentRunError,
    ModelAPIError,
    ModelContextWindowExceededError,
    ModelQuotaExceededError,
    ModelRequestRejectedError,
    RetryModelRequest,
    UnexpectedModelBehavior,
    UserError,
)
from pydantic_ai.messages import ModelResponse, ToolCallPart
from pydantic_ai.models import ModelRequestContext
from pydantic_ai.tools import RunContext, ToolDefinition

from clawtrace.providers.failures import ProviderFailure, failure_of, pause_before

__all__ = ["ProbeLoop", "is_providers"]

_FINAL = (ModelQuotaExceededError, ModelRequestRejectedError)
"""Another attempt would fail in the same way."""


def is_providers(error: BaseException) -> bool:
    """Return whether a request failed for the provider's reason: an outage, a limit, a key, an answer that cannot be read.

    A conversation that is too long is the agent's own doing; so is an answer that the model was not allowed to give. What is
    no error of pydantic-ai's is one that a client stumbled over while it read an answer.
    """
    if isinstance(error, ModelAPIError):
        return not isinstance(error, ModelContextWindowExceededError)
    return type(error) is UnexpectedModelBehavior or not isinstance(error, AgentRunError | UserError)


@dataclass
class ProbeLoop(AbstractCapability[Any]):
    """Attempts at requests with growing waits, and a final answer after the last turn with tools."""

    retries: int
    wait_seconds: float
    max_turns: int
    provider_failure: BaseException | None = None
    """The error that a request failed with for good, where it was the provider's."""

    async def on_model_request_error(
        self, ctx: RunContext[Any], *, request_context: ModelRequestContext, error: Exception
    ) -> ModelResponse:
        """Wait and try again where that may help."""
        del ctx
        attempt = request_context.attempt
        if is_providers(error):
            if attempt <= self.retries and not isinstance(error, _FINAL):
                failure = failure_of(error) or ProviderFailure("malformed", str(error), passes=True)
                await asyncio.sleep(pause_before(attempt + 1, failure, self.wait_seconds))
                raise RetryModelRequest
            self.provider_failure = error
        raise error

    async def before_tool_execute(
        self, ctx: RunContext[Any], *, call: ToolCallPart, tool_def: ToolDefinition, args: dict[str, Any]
    ) -> dict[str, Any]:
        """Refuse a tool where the request demanded a final answer."""
        del tool_def
        if ctx.run_step > self.max_turns:
            raise UnexpectedModelBehavior(
                f"after {self.max_turns} turns with tools a final answer was demanded, and the model asked for "
                f"`{call.tool_name}` again"
            )
        return args
