# /// script
# dependencies = [
#     "openai-agents==0.24.0",
#     "openinference-instrumentation-openai-agents==2.6.0",
#     "opentelemetry-instrumentation-openai-agents==0.62.4",
#     "opentelemetry-instrumentation-genai-openai-agents==1.3b0",
#     "opentelemetry-instrumentation-genai-openai==1.3b0",
#     "opentelemetry-sdk==1.45.2",
#     "opentelemetry-exporter-otlp-proto-http==1.45.2",
# ]
# [tool.soak]
# instrumentations = ["openinference", "openllmetry", "genai", "openinference,openllmetry"]
# helpers = ["handoff", "tool"]
# patterns = ["given-up", "read-in-part", "as-tool", "chain", "parallel", "check", "stop", "answer", "session"]
# pseudo-tools = ["transfer_to_researcher"]
# [tool.soak.environments]
# mlflow = [
#     "openai-agents==0.24.0", "openai==3.54.0", "mlflow-skinny==3.17.2", "mlflow-tracing==3.17.2", "pandas==3.1.1",
#     "opentelemetry-exporter-otlp-proto-http==1.45.2",
# ]
# logfire = ["openai-agents==0.24.0", "openai==3.54.0", "logfire==5.2.0", "opentelemetry-exporter-otlp-proto-http==1.45.2"]
# ///
"""Agents of the OpenAI Agents SDK, over Responses and over Chat Completions."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any

from agent_program import MODEL, TOOLS, Job, NamesRun, autolog, logged, main, noted, read_in_part, system, within_time
from agents import (
    Agent,
    GuardrailFunctionOutput,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    OutputGuardrail,
    Runner,
    SQLiteSession,
    StopAtTools,
    function_tool,
    trace,
)
from openai import AsyncOpenAI
from pydantic import BaseModel


class Answer(BaseModel):
    """An answer that has a form."""

    answer: int


def run(job: Job) -> str | None:
    return within_time(_run(job), job)


async def _run(job: Job) -> str | None:
    client = AsyncOpenAI(base_url=job.url, api_key="none")
    kind = OpenAIResponsesModel if job.count_stream else OpenAIChatCompletionsModel
    model = kind(model=MODEL, openai_client=client)
    tools = [function_tool(tool) for tool in TOOLS.values()]
    researcher = Agent(name="researcher", instructions=system("researcher"), tools=tools[:2], model=model)
    handoffs = [researcher] if job.helper == "handoff" else []

    async def ask_researcher(question: str) -> str:
        """Ask the researcher."""
        return str((await Runner.run(researcher, question)).final_output)

    if job.helper == "tool":
        tools.append(function_tool(logged(ask_researcher)))
    if job.helper == "as-tool":
        tools.append(_as_tool(researcher))
    more: dict[str, Any] = {}
    if job.helper == "check":
        checker = Agent(name="checker", instructions=system("checker", "within assistant"), model=model)

        async def check(_: object, __: object, output: object) -> GuardrailFunctionOutput:
            return GuardrailFunctionOutput(
                (await Runner.run(checker, str(output))).final_output, tripwire_triggered=False
            )

        more["output_guardrails"] = [OutputGuardrail(check)]
    elif job.helper == "stop":
        more["tool_use_behavior"] = StopAtTools(stop_at_tool_names=["get_weather", "add_numbers"])
    elif job.helper == "answer":
        more["output_type"] = Answer
    agent = Agent(
        name="assistant", instructions=system("assistant"), tools=tools, handoffs=handoffs, model=model, **more
    )
    if job.helper in ("chain", "parallel"):
        return await _two(job, agent, tools, model)
    items, output = [], None
    session = SQLiteSession(job.run) if job.helper == "session" else None
    for turn in job.turns:
        asked = turn if session else [*items, {"role": "user", "content": turn}]
        if job.helper == "read-in-part":
            said = Runner.run_streamed(agent, asked, session=session)
            try:
                await read_in_part(said.stream_events(), job)
            finally:
                said.cancel()
        if job.stream:
            said = Runner.run_streamed(agent, asked, session=session)
            async for _ in said.stream_events():
                pass
        else:
            said = await Runner.run(agent, asked, session=session)
        items, agent, output = said.to_input_list(), said.last_agent, said.final_output
    return output.model_dump_json() if isinstance(output, Answer) else str(output)


def _as_tool(agent: Agent) -> Any:
    """Return the tool that the SDK makes of an agent; where that fails, the run does, too."""
    made = agent.as_tool("ask_researcher", "Ask the researcher.", failure_error_function=None)
    invoke = made.on_invoke_tool

    async def call(context: Any, given: str) -> Any:
        try:
            arguments = json.loads(given)
            assert isinstance(arguments["input"], str)
        except (ValueError, TypeError, LookupError, AssertionError):
            return await invoke(context, given)
        with noted("ask_researcher", arguments):
            return await invoke(context, given)

    return replace(made, on_invoke_tool=call)


async def _two(job: Job, agent: Agent, tools: list[Any], model: Any) -> str:
    """Return what the last of two agents answers, which the program runs one after the other or at once."""
    at_once = job.helper == "parallel"
    writer = Agent(
        name="writer",
        instructions=system("writer", "beside assistant" if at_once else "alone"),
        tools=tools,
        model=model,
    )
    with trace("two agents"):
        if at_once:
            first, last = await asyncio.gather(Runner.run(agent, job.turns[0]), Runner.run(writer, job.turns[0]))
        else:
            first = await Runner.run(agent, job.turns[0])
            last = await Runner.run(writer, str(first.final_output))
    return str(last.final_output)


def _openinference(provider: object) -> None:
    from openinference.instrumentation.openai_agents import OpenAIAgentsInstrumentor

    OpenAIAgentsInstrumentor().instrument(tracer_provider=provider)


def _openllmetry(provider: object) -> None:
    from opentelemetry.instrumentation.openai_agents import OpenAIAgentsInstrumentor

    OpenAIAgentsInstrumentor().instrument(tracer_provider=provider)


def _genai(provider: object) -> None:
    from opentelemetry.instrumentation.genai.openai import OpenAIInstrumentor
    from opentelemetry.instrumentation.genai.openai_agents import OpenAIAgentsInstrumentor

    OpenAIInstrumentor().instrument(tracer_provider=provider)
    OpenAIAgentsInstrumentor().instrument(tracer_provider=provider)


def _mlflow(_: object) -> None:
    autolog("openai")


def _logfire(_: object) -> None:
    import logfire

    # It exports to the endpoint of the environment.
    logfire.configure(send_to_logfire=False, console=False, additional_span_processors=[NamesRun()], metrics=False)
    logfire.instrument_openai_agents()


INSTRUMENT = {
    "openinference": _openinference, "openllmetry": _openllmetry, "genai": _genai, "mlflow": _mlflow, "logfire": _logfire,
}  # fmt: skip

if __name__ == "__main__":
    main(run, INSTRUMENT, together=3)
