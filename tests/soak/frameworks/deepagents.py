# /// script
# dependencies = [
#     "deepagents==0.7.32",
#     "langchain==1.4.7",
#     "langgraph==1.2.22",
#     "langchain-openai==1.7.3",
#     "langsmith==0.15.0",
#     "opentelemetry-sdk==1.45.2",
#     "opentelemetry-exporter-otlp-proto-http==1.45.2",
# ]
# [tool.soak]
# instrumentations = ["langsmith"]
# helpers = ["tool"]
# ///
"""A deep agent of LangChain with a sub-agent. Of the tools for files it has the one that it cannot be without."""

from __future__ import annotations

import os
from functools import wraps
from typing import Any

os.environ |= {"LANGSMITH_TRACING": "true", "LANGSMITH_OTEL_ENABLED": "true", "LANGSMITH_OTEL_ONLY": "true"}

from agent_program import MAX_STEPS, MODEL, TOOLS, Job, logged, main, system
from deepagents import create_deep_agent
from deepagents.middleware.filesystem import FilesystemMiddleware
from langchain_core.tools import StructuredTool
from langchain_core.tracers.langchain import wait_for_all_tracers
from langchain_openai import ChatOpenAI
from opentelemetry import trace


def run(job: Job) -> str | None:
    # LangSmith writes its spans later, in a separate thread: they hang below the span that was open when a run began.
    try:
        with trace.get_tracer("soak").start_as_current_span("job"):
            return _run(job)
    finally:
        wait_for_all_tracers()


def _run(job: Job) -> str | None:
    usage = job.count_stream if job.stream else None
    model = ChatOpenAI(model=MODEL, base_url=job.url, api_key="none", streaming=job.stream, stream_usage=usage)
    tools: Any = [StructuredTool.from_function(tool, handle_tool_error=True) for tool in TOOLS.values()]
    researcher: Any = {
        "name": "researcher", "description": "Finds things out.", "system_prompt": system("researcher"), "tools": tools[:2],
        "middleware": [_files()],
    }  # fmt: skip
    agent = create_deep_agent(
        model, tools, system_prompt=system("assistant"), name="assistant", middleware=[_files()],
        subagents=[researcher] if job.helper == "tool" else [],
    )  # fmt: skip
    _log_tasks(agent)
    messages: list[Any] = []
    for turn in job.turns:
        given: Any = {"messages": [*messages, ("user", turn)]}
        messages = agent.invoke(given, {"recursion_limit": 8 * MAX_STEPS})["messages"]
    return messages[-1].text


def _log_tasks(agent: Any) -> None:
    """Log the calls of the tool by which a deep agent asks another one."""
    tool = agent.nodes["tools"].bound.tools_by_name["task"]
    ask = tool.func

    @wraps(ask)
    def call(description: str, subagent_type: str, runtime: Any) -> Any:
        def task(description: str, subagent_type: str) -> Any:
            return ask(description, subagent_type, runtime)

        return logged(task)(description, subagent_type)

    tool.func = call


class _FailedError(Exception):
    """A tool says that it failed, with its message."""


def _files() -> FilesystemMiddleware:
    """Return what brings along the tools for files, with the calls logged."""
    files: Any = FilesystemMiddleware(tools=["read_file"])
    (tool,) = files.tools
    read = tool.func

    @wraps(read)
    def call(runtime: Any, **given: Any) -> Any:
        def read_file(file_path: str, offset: int = 0, limit: int = 100) -> Any:
            said = read(file_path, runtime, offset, limit)
            if said.status == "error":
                raise _FailedError(said)
            return said

        # What the model asked for, without LangChain's defaults; of an id that was used again, last.
        calls = [call for message in runtime.state["messages"] for call in getattr(message, "tool_calls", ())]
        *_, asked = (
            call["args"]
            for call in calls
            if call["id"] == runtime.tool_call_id
            and all(given.get(key) == value for key, value in call["args"].items())
        )
        try:
            return logged(read_file)(**{name: value for name, value in given.items() if name in asked})
        except _FailedError as failed:
            return failed.args[0]

    tool.func = call
    return files


if __name__ == "__main__":
    main(run, {"langsmith": lambda _: None}, together=3)
