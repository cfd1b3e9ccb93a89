# /// script
# dependencies = [
#     "langgraph-supervisor==0.0.31",
#     "langchain==1.4.7",
#     "langgraph==1.2.22",
#     "langchain-openai==1.7.3",
#     "openinference-instrumentation-langchain==0.1.80",
#     "opentelemetry-sdk==1.45.2",
#     "opentelemetry-exporter-otlp-proto-http==1.45.2",
# ]
# [tool.soak]
# instrumentations = ["openinference"]
# helpers = ["handoff"]
# pseudo-tools = ["transfer_to_researcher"]
# ///
"""A team of LangGraph's agents with a supervisor."""

from __future__ import annotations

from typing import Any

from agent_program import MAX_STEPS, MODEL, TOOLS, Job, main, system
from langchain.agents import create_agent
from langchain_core.tools import StructuredTool
from langchain_openai import ChatOpenAI
from langgraph_supervisor import create_supervisor


def run(job: Job) -> str | None:
    usage = job.count_stream if job.stream else None
    model = ChatOpenAI(model=MODEL, base_url=job.url, api_key="none", streaming=job.stream, stream_usage=usage)
    tools: Any = [StructuredTool.from_function(tool, handle_tool_error=True) for tool in TOOLS.values()]
    members = []
    if job.helper == "handoff":
        members = [create_agent(model, tools[:2], system_prompt=system("researcher"), name="researcher")]
    supervisor = create_supervisor(
        members, model=model, tools=tools, prompt=system("assistant"), supervisor_name="assistant"
    )
    team = supervisor.compile(name="team")
    messages: list[Any] = []
    for turn in job.turns:
        given: Any = {"messages": [*messages, ("user", turn)]}
        messages = team.invoke(given, {"recursion_limit": 4 * MAX_STEPS})["messages"]
    return messages[-1].text


def _openinference(provider: Any) -> None:
    from openinference.instrumentation.langchain import LangChainInstrumentor

    LangChainInstrumentor().instrument(tracer_provider=provider)


if __name__ == "__main__":
    main(run, {"openinference": _openinference}, together=3)
