"""Qwen-Agent with OpenTelemetry's own instrumentation of the OpenAI SDK below it."""

import json

import lab
from opentelemetry.instrumentation.genai.openai import OpenAIInstrumentor
from qwen_agent.agents import Assistant
from qwen_agent.tools.base import BaseTool

OpenAIInstrumentor().instrument(tracer_provider=lab.export())


def as_tool(function) -> BaseTool:
    class Tool(BaseTool):
        name = function.__name__
        description = lab.schema(function)["function"]["description"]
        parameters = lab.schema(function)["function"]["parameters"]

        def call(self, params, **_more) -> str:
            return function(**(json.loads(params) if isinstance(params, str) else params))

    return Tool()


def ask(name: str, system: str, tools: list) -> str:
    model = {
        "model": lab.MODEL,
        "model_type": "oai",
        "model_server": lab.URL,
        "api_key": "scripted",
        "generate_cfg": {"use_raw_api": True},
    }
    agent = Assistant(llm=model, system_message=system, name=name, function_list=list(map(as_tool, tools)))
    said = []
    for said in agent.run([{"role": "user", "content": lab.QUESTION}]):  # noqa: B007
        pass
    return said[-1]["content"]


def researcher(query: str) -> str:
    """Ask the researcher."""
    with lab.logged("researcher", {"query": query}, kind="agent_as_tool"):
        return ask("researcher", lab.RESEARCHER_SYSTEM, lab.TOOLS)


lab.answer(ask("assistant", lab.SYSTEM, [researcher] if lab.SCENARIO == "delegation" else lab.TOOLS))
