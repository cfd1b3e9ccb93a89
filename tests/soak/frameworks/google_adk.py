# /// script
# dependencies = [
#     "google-adk==2.13.0",
#     "litellm==1.82.6",
#     "openinference-instrumentation-google-adk==1.0.5",
#     "opentelemetry-sdk==1.44.0",
#     "opentelemetry-exporter-otlp-proto-http==1.44.0",
# ]
# [tool.soak]
# instrumentations = ["native", "openinference"]
# helpers = ["handoff", "tool"]
# patterns = ["given-up", "read-in-part", "agent-tool", "pipeline", "parallel", "loop"]
# pseudo-tools = ["transfer_to_agent"]
# counts-itself = ["native", "openinference"]
# ends-broken-streams = true
# ///
"""Agents of Google's Agent Development Kit, which writes its spans itself; the model is reached through LiteLLM."""

from __future__ import annotations

import os
from functools import partial
from typing import Any

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

import litellm  # noqa: F401 - ADK imports it in the first request, which two runs at once make
from agent_program import MODEL, TOOLS, Job, logged, main, noted, read_in_part, system, within_time
from google.adk.agents import BaseAgent, LlmAgent, LoopAgent, ParallelAgent, SequentialAgent
from google.adk.agents.run_config import RunConfig, StreamingMode
from google.adk.models.lite_llm import LiteLlm
from google.adk.runners import InMemoryRunner
from google.adk.tools.agent_tool import AgentTool
from google.genai import types


def run(job: Job) -> str | None:
    return within_time(_run(job), job)


async def _run(job: Job) -> str | None:
    model = LiteLlm(f"openai/{MODEL}", api_base=job.url, api_key="none")
    tools: list[Any] = list(TOOLS.values())
    researcher = LlmAgent(
        name="researcher", model=model, instruction=system("researcher"), tools=tools[:2], description="Researches."
    )

    async def ask_researcher(question: str) -> str:
        """Ask the researcher."""
        return await _turn(InMemoryRunner(researcher, app_name="research"), None, question, stream=False) or ""

    if job.helper == "tool":
        tools.append(logged(ask_researcher))
    if job.helper == "agent-tool":
        tools.append(_LoggedAgent(agent=researcher))
    helpers = [researcher] if job.helper == "handoff" else []
    works = {"parallel": "beside pipeline", "pipeline": "within pipeline", "loop": "within pipeline"}.get(
        job.helper or "", ""
    )
    agent: BaseAgent = LlmAgent(
        name="assistant", model=model, instruction=system("assistant", works), tools=tools, sub_agents=helpers
    )
    if works:
        writer = LlmAgent(name="writer", model=model, instruction=system("writer", works), tools=tools)
        agent = _PIPELINES[job.helper or ""](name="pipeline", sub_agents=[agent, writer])
    runner, output = InMemoryRunner(agent, app_name="soak"), None
    session = await runner.session_service.create_session(app_name="soak", user_id="user")
    for turn in job.turns:
        output = await _turn(runner, session, turn, stream=job.stream, job=job)
    return output


class _LoggedAgent(AgentTool):
    async def run_async(self, *, args: dict[str, Any], tool_context: Any) -> Any:
        if not isinstance(args.get("request"), str):
            return await super().run_async(args=args, tool_context=tool_context)
        with noted("researcher", args):
            return await super().run_async(args=args, tool_context=tool_context)


_PIPELINES: dict[str, Any] = {
    "pipeline": SequentialAgent,
    "parallel": ParallelAgent,
    "loop": partial(LoopAgent, max_iterations=2),
}


async def _turn(runner: InMemoryRunner, session: Any, turn: str, *, stream: bool, job: Job | None = None) -> str | None:
    session = session or await runner.session_service.create_session(app_name=runner.app_name, user_id="user")
    said = types.Content(role="user", parts=[types.Part(text=turn)])
    config, output = RunConfig(streaming_mode=StreamingMode.SSE if stream else StreamingMode.NONE), None
    events = runner.run_async(user_id="user", session_id=session.id, new_message=said, run_config=config)
    if job is not None and job.helper == "read-in-part":
        await read_in_part(events, job)
    async for event in events:
        if event.is_final_response() and event.content and event.content.parts:
            output = "".join(part.text or "" for part in event.content.parts if not part.thought)
    return output


def _openinference(provider: object) -> None:
    from openinference.instrumentation.google_adk import GoogleADKInstrumentor

    GoogleADKInstrumentor().instrument(tracer_provider=provider)


if __name__ == "__main__":
    main(run, {"native": lambda _: None, "openinference": _openinference}, together=2)
