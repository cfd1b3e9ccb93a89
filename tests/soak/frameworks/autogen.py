# /// script
# dependencies = [
#     "autogen-agentchat==0.7.5",
#     "autogen-ext[openai]==0.7.5",
#     "openai==3.54.0",
#     "openinference-instrumentation-autogen-agentchat==0.1.22",
#     "opentelemetry-instrumentation-openai==0.62.4",
#     "opentelemetry-sdk==1.45.2",
#     "opentelemetry-exporter-otlp-proto-http==1.45.2",
# ]
# [tool.soak]
# instrumentations = ["native", "openinference", "openllmetry"]
# helpers = ["tool", "handoff"]
# patterns = ["given-up", "read-in-part", "round-robin", "parallel"]
# pseudo-tools = ["transfer_to_researcher"]
# ///
"""Agents of AutoGen's AgentChat, alone and in a swarm; AutoGen's own spans are always written."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import wraps
from typing import Any

from agent_program import MAX_STEPS, MODEL, TOOLS, Job, logged, main, read_in_part, system, within_time
from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.base import TaskResult
from autogen_agentchat.conditions import MaxMessageTermination, TextMessageTermination
from autogen_agentchat.teams import RoundRobinGroupChat, Swarm
from autogen_core.tools import FunctionTool
from autogen_ext.models.openai import OpenAIChatCompletionClient


def run(job: Job) -> str | None:
    return within_time(_run(job), job)


async def _run(job: Job) -> str | None:
    counted: Any = {"stream_options": {"include_usage": True}} if job.stream and job.count_stream else {}
    client = OpenAIChatCompletionClient(
        model=MODEL, base_url=job.url, api_key="none", include_name_in_message=False, **counted
    )

    def agent(name: str, tools: list[Any], works: str = "", **more: Any) -> AssistantAgent:
        return AssistantAgent(
            name, client, tools=tools, system_message=system(name, works), max_tool_iterations=MAX_STEPS,
            model_client_stream=job.stream, **more,
        )  # fmt: skip

    tools = [FunctionTool(_waited_for(tool), description=tool.__doc__ or "") for tool in TOOLS.values()]

    async def ask_researcher(question: str) -> str:
        """Ask the researcher."""
        return _text(await agent("researcher", tools[:2]).run(task=question)) or ""

    asked: Any = None
    if job.helper == "handoff":
        first = agent("assistant", tools, handoffs=["researcher"])
        ends = TextMessageTermination("assistant") | TextMessageTermination("researcher") | MaxMessageTermination(99)
        asked = Swarm([first, agent("researcher", tools[:2])], termination_condition=ends)
    elif job.helper == "round-robin":
        both = [agent("assistant", tools, "alone"), agent("writer", tools, "alone")]
        asked = RoundRobinGroupChat(both, max_turns=2)
    elif job.helper == "parallel":
        both = [agent("assistant", tools), agent("writer", tools, "beside assistant")]
        return _text((await asyncio.gather(*(one.run(task=job.turns[0]) for one in both)))[-1])
    else:
        more = [FunctionTool(logged(ask_researcher), description="Ask the researcher.")] if job.helper == "tool" else []
        asked = agent("assistant", [*tools, *more])
    output = None
    for turn in job.turns:
        if job.helper == "read-in-part":
            await read_in_part(asked.run_stream(task=turn), job)
        output = _text(await asked.run(task=turn))
    await client.close()
    return output


def _waited_for(tool: Callable[..., Any]) -> Callable[..., Any]:
    """Return the tool as one that is awaited: others are run in threads that know nothing of the run."""

    @wraps(tool)
    async def call(*values: Any, **named: Any) -> Any:
        return tool(*values, **named)

    return call


def _text(result: TaskResult) -> str | None:
    content = getattr(result.messages[-1], "content", None)
    return content if isinstance(content, str) else None


def _openinference(provider: Any) -> None:
    from openinference.instrumentation.autogen_agentchat import AutogenAgentChatInstrumentor

    AutogenAgentChatInstrumentor().instrument(tracer_provider=provider)


def _openllmetry(provider: Any) -> None:
    from opentelemetry.instrumentation.openai import OpenAIInstrumentor

    OpenAIInstrumentor().instrument(tracer_provider=provider)


if __name__ == "__main__":
    main(
        run,
        {"native": lambda _: None, "openinference": _openinference, "openllmetry": _openllmetry},
        together=3,
    )
