# /// script
# dependencies = [
#     "agno==3.1.10",
#     "openai==2.54.0",
#     "openinference-instrumentation-agno==1.0.15",
#     "opentelemetry-instrumentation-agno==0.62.4",
#     "opentelemetry-instrumentation-openai==0.62.4",
#     "opentelemetry-instrumentation-genai-agno==1.3b0",
#     "opentelemetry-instrumentation-genai-openai==1.3b0",
#     "openlit==1.45.0",
#     "opentelemetry-sdk==1.45.1",
#     "opentelemetry-exporter-otlp-proto-http==1.45.1",
# ]
# [tool.soak]
# instrumentations = ["openinference", "openllmetry", "genai", "openlit"]
# helpers = ["tool"]
# patterns = ["given-up", "steps", "side-by-side"]
# counts-itself = ["openlit"]
# ///
"""Agents of Agno, waited for or not."""

from __future__ import annotations

import os
import sys
from typing import Any

os.environ["AGNO_TELEMETRY"] = "false"

from agent_program import LOG, MODEL, TOOLS, Job, logged, main, system, within_time
from agno.agent import Agent
from agno.db.in_memory import InMemoryDb
from agno.models.openai import OpenAIChat
from agno.run.base import RunStatus
from agno.workflow import Parallel, Step, Workflow


def run(job: Job) -> str | None:
    return within_time(_run(job), job)


async def _run(job: Job) -> str | None:
    def agent(name: str, tools: list[Any], works: str = "", **more: Any) -> Agent:
        model = OpenAIChat(id=MODEL, base_url=job.url, api_key="none")
        return Agent(name=name, model=model, instructions=system(name, works), tools=tools, telemetry=False, **more)

    tools = list(TOOLS.values())
    if job.helper == "tool":
        researcher = agent("researcher", tools[:2])

        def ask_researcher(question: str) -> str:
            """Ask the researcher."""
            return _text(researcher.run(question)) or ""

        tools.append(logged(ask_researcher))
    # OpenInference cannot trace a workflow: it fails on the run's name of the user.
    if job.helper in ("steps", "side-by-side") and sys.argv[1] != "openinference":
        works = "within flow" if job.helper == "steps" else "beside flow"
        both = [Step(name=name, agent=agent(name, tools, works)) for name in ("assistant", "writer")]
        steps: Any = both if job.helper == "steps" else [Parallel(*both)]
        said = Workflow(name="flow", steps=steps, telemetry=False).run(job.turns[0])
        for one in said.step_executor_runs or ():
            _text(one)  # the workflow takes the message of a failure for an answer
        return _text(said)
    assistant = agent("assistant", tools, db=InMemoryDb(), add_history_to_context=True, session_id=job.run)
    output = None
    for turn in job.turns:
        if job.stream:
            *_, last = assistant.run(turn, stream=True, yield_run_output=True)
        else:
            last = assistant.run(turn) if job.count_stream else await assistant.arun(turn)
        output = _text(last)
    return output


def _text(said: Any) -> str | None:
    if getattr(said, "status", RunStatus.error) == RunStatus.error:
        raise RuntimeError(said.content)
    return said.content


def _openinference(provider: Any) -> None:
    from openinference.instrumentation.agno import AgnoInstrumentor

    AgnoInstrumentor().instrument(tracer_provider=provider)


def _openllmetry(provider: Any) -> None:
    from opentelemetry.instrumentation.agno import AgnoInstrumentor
    from opentelemetry.instrumentation.openai import OpenAIInstrumentor

    AgnoInstrumentor().instrument(tracer_provider=provider)
    OpenAIInstrumentor().instrument(tracer_provider=provider)


def _genai(provider: Any) -> None:
    from opentelemetry.instrumentation.genai.agno import AgnoInstrumentor
    from opentelemetry.instrumentation.genai.openai import OpenAIInstrumentor

    AgnoInstrumentor().instrument(tracer_provider=provider)
    OpenAIInstrumentor().instrument(tracer_provider=provider)


def _openlit(provider: Any) -> None:  # it takes the global one
    # It knows this variable as a yes or no, and records no content where it holds the conventions' word.
    os.environ["OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"] = "true"
    import openlit

    # Prices are fetched from a network else.
    openlit.init(disable_metrics=True, pricing_json=f"{LOG}.prices")


if __name__ == "__main__":
    main(
        run,
        {"openinference": _openinference, "openllmetry": _openllmetry, "genai": _genai, "openlit": _openlit},
        together=2,
    )
