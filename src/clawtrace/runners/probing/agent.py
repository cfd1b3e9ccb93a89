"""The process of a probe: ``python -P -m clawtrace.runners.probing.agent ORDER.json``, the messages on standard input.

One process is one turn. Its spans are pydantic-ai's own, sent by the standard exporter to where the ``OTEL_*`` variables say,
as any agent's. The final answer is standard output; the exit code says whose failure it was, if any.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import wraps
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter
from pydantic_ai import Agent, Tool
from pydantic_ai.capabilities import AbstractCapability, Instrumentation
from pydantic_ai.exceptions import (
    AgentRunError,
    ModelAPIError,
    ModelContextWindowExceededError,
    ModelQuotaExceededError,
    ModelRequestRejectedError,
    RetryModelRequest,
    ToolFailed,
    UnexpectedModelBehavior,
    UserError,
)
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestContext
from pydantic_ai.models.instrumented import InstrumentationSettings
from pydantic_ai.tools import RunContext, ToolDefinition
from pydantic_ai.usage import UsageLimits

from clawtrace.providers.asking import ProviderFailure, failure_of, pause_before
from clawtrace.providers.models import open_model, request_settings
from clawtrace.runners.probing.order import PROVIDER_FAILED, ProbeOrder
from clawtrace.runners.probing.tools import ProbeTools, ToolError

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

__all__ = ["is_providers", "main"]

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


def as_history(messages: Iterable[Mapping[str, str]]) -> list[ModelMessage]:
    """Return the messages of a case; those between two answers of the model are one request.

    A message of a tool has no call in a case: one is put before it, with the tool's `name`.
    """
    history: list[ModelMessage] = []
    for number, message in enumerate(messages):
        role, text = message["role"], message["content"]
        if role == "assistant":
            history.append(ModelResponse(parts=[TextPart(text)]))
            continue
        part: ModelRequestPart = UserPromptPart(text)
        if role == "system":
            part = SystemPromptPart(text)
        elif role == "tool":
            name, call_id = message.get("name") or "tool", f"given_{number}"
            history.append(ModelResponse(parts=[ToolCallPart(name, {}, call_id)]))
            part = ToolReturnPart(name, text, call_id)
        last = history[-1] if history else None
        if isinstance(last, ModelRequest):
            history[-1] = ModelRequest(parts=[*last.parts, part])
        else:
            history.append(ModelRequest(parts=[part]))
    return history


def main() -> int:
    """Run one turn; return the exit code."""
    order = TypeAdapter(ProbeOrder).validate_json(Path(sys.argv[1]).read_bytes())
    given = json.load(sys.stdin)
    messages = given if isinstance(given, list) else given["messages"]
    tracers = _tracers()
    try:
        return _turn(order, messages, tracers)
    finally:
        tracers.shutdown()


def _tracers() -> TracerProvider:
    """Return what exports the spans, by the standard variables."""
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    protocol = "grpc" if os.environ.get("OTEL_EXPORTER_OTLP_PROTOCOL") == "grpc" else "http"
    exporter = import_module(f"opentelemetry.exporter.otlp.proto.{protocol}.trace_exporter").OTLPSpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(exporter))
    return provider


def _turn(order: ProbeOrder, messages: list[dict[str, str]], tracers: TracerProvider) -> int:
    from opentelemetry import context
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    loop = ProbeLoop(order.retries, order.retry_wait_seconds, order.max_turns)
    kept = Path(order.history)  # the conversation of the turns before
    history = ModelMessagesTypeAdapter.validate_json(kept.read_bytes()) if kept.exists() else []
    history += as_history(messages)
    carrier = {name: os.environ[name.upper()] for name in ("traceparent", "tracestate") if name.upper() in os.environ}
    context.attach(TraceContextTextMapPropagator().extract(carrier))
    try:
        answer, history = asyncio.run(_ask(_agent(order, loop, tracers), history))
    except Exception as error:
        failed = loop.provider_failure is not None
        if not failed and not isinstance(error, AgentRunError):
            raise
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        return PROVIDER_FAILED if failed else 1
    kept.write_bytes(ModelMessagesTypeAdapter.dump_json(history))
    sys.stdout.write(answer + "\n")
    return 0


def _agent(order: ProbeOrder, loop: ProbeLoop, tracers: TracerProvider) -> Agent[object, str]:
    model = open_model(order.model)
    settings = request_settings(model, order.model, order.options)
    settings["request_timeout"] = order.timeout_seconds
    settings["max_retries"] = 0  # attempts are the loop's, each with a span of its own

    def of_step(ctx: RunContext[object]) -> Any:
        last = bool(order.tools) and ctx.run_step > order.max_turns
        return {**settings, "tool_choice": "none"} if last else settings

    return Agent(
        model,
        name="llm_probe",
        tools=[Tool(tool, takes_ctx=False) for tool in _tools(order)],
        model_settings=of_step,
        retries={"tools": order.max_turns, "output": 1},
        capabilities=[Instrumentation(settings=InstrumentationSettings(tracer_provider=tracers)), loop],
    )


def _tools(order: ProbeOrder) -> list[Any]:
    """Return the tools; the model sees what goes wrong in one."""

    def reporting(tool: Any) -> Any:
        @wraps(tool)
        def call(**arguments: str) -> str:
            try:
                return str(tool(**arguments))
            except ToolError as error:
                raise ToolFailed(str(error)) from error

        return call

    return [reporting(tool) for tool in ProbeTools(order).chosen()]


async def _ask(agent: Agent[object, str], history: list[ModelMessage]) -> tuple[str, list[ModelMessage]]:
    async with agent:
        result = await agent.run(message_history=history, usage_limits=UsageLimits(request_limit=None))
    return result.output, result.all_messages()


if __name__ == "__main__":
    sys.exit(main())
