# /// script
# dependencies = [
#     "crewai==1.15.30",
#     "openinference-instrumentation-crewai==1.1.21",
#     "opentelemetry-instrumentation-crewai==0.62.4",
#     "opentelemetry-sdk==1.45.2",
#     "opentelemetry-exporter-otlp-proto-http==1.45.2",
# ]
# [tool.soak]
# instrumentations = ["openinference", "openllmetry"]
# patterns = ["tasks", "guardrail"]
# mends-names = true
# ///
"""A crew of CrewAI with one agent and one task for each turn."""

from __future__ import annotations

import os
from typing import Any

os.environ |= {"CREWAI_DISABLE_TELEMETRY": "true", "CREWAI_TRACING_ENABLED": "false", "CREWAI_TESTING": "true"}

from agent_program import MAX_STEPS, MODEL, TOOLS, Job, main, system
from crewai import LLM, Agent, Crew, Task, TaskOutput
from crewai.tools import tool


def run(job: Job) -> str | None:
    tools = [tool(name)(function) for name, function in TOOLS.items()]
    said = None
    for turn in job.turns:
        agent = Agent(
            role="assistant",
            goal="Answer.",
            backstory=system("assistant"),
            tools=tools,
            llm=LLM(model=f"openai/{MODEL}", base_url=job.url, api_key="none", stream=job.stream),
            max_iter=MAX_STEPS,
            max_retry_limit=0,
        )
        more: Any = {"guardrail": _check, "guardrail_max_retries": 1} if job.helper == "guardrail" else {}
        tasks = [Task(description=turn, expected_output="An answer.", agent=agent, **more)]
        if job.helper == "tasks":
            writer = agent.copy()
            writer.role, writer.backstory = "writer", system("writer", "alone")
            tasks.append(Task(description="Write.", expected_output="An answer.", agent=writer))
        said = str(Crew(agents=[task.agent for task in tasks], tasks=tasks).kickoff())
    return said


def _check(output: TaskOutput) -> tuple[bool, Any]:
    """Refuse some answers."""
    return (False, "Say it in other words.") if output.raw.startswith("It is") else (True, output.raw)


def _openinference(provider: Any) -> None:
    from openinference.instrumentation.crewai import CrewAIInstrumentor

    CrewAIInstrumentor().instrument(tracer_provider=provider, skip_dep_check=True)


def _openllmetry(provider: Any) -> None:
    from opentelemetry.instrumentation.crewai import CrewAIInstrumentor

    CrewAIInstrumentor().instrument(tracer_provider=provider, skip_dep_check=True)


if __name__ == "__main__":
    main(run, {"openinference": _openinference, "openllmetry": _openllmetry})
