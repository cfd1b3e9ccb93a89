"""Haystack's Agent in a pipeline, with the component of langfuse-haystack."""

import lab
from haystack import Pipeline
from haystack.components.agents import Agent
from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.dataclasses import ChatMessage
from haystack.tools import create_tool_from_function
from haystack.utils import Secret
from haystack_integrations.components.connectors.langfuse import LangfuseConnector
from langfuse import Langfuse

provider = lab.export()
Langfuse(public_key="pk", secret_key="sk", base_url=lab.URL.removesuffix("/v1"), tracer_provider=provider)
Langfuse._get_project_id = lambda _: "project"  # else it is asked for, to make an address of the trace
TOOLS = [create_tool_from_function(tool) for tool in lab.TOOLS]


def agent(system: str, tools: list) -> Agent:
    model = OpenAIChatGenerator(
        model=lab.MODEL,
        api_key=Secret.from_token("scripted"),
        api_base_url=lab.URL,
        streaming_callback=(lambda _: None) if lab.SCENARIO == "streaming" else None,
        generation_kwargs={"stream_options": {"include_usage": True}} if lab.SCENARIO == "streaming" else None,
    )
    return Agent(chat_generator=model, tools=tools, system_prompt=system)


def researcher(query: str) -> str:
    """Ask the researcher."""
    with lab.logged("researcher", {"query": query}, kind="agent_as_tool"):
        return agent(lab.RESEARCHER_SYSTEM, TOOLS).run(messages=[ChatMessage.from_user(query)])["messages"][-1].text


first = agent(lab.SYSTEM, [create_tool_from_function(researcher)] if lab.SCENARIO == "delegation" else TOOLS)
pipeline = Pipeline()
pipeline.add_component("assistant", first)
pipeline.add_component("tracer", LangfuseConnector("main"))
try:
    result = pipeline.run({"assistant": {"messages": [ChatMessage.from_user(lab.QUESTION)]}})
    lab.answer(result["assistant"]["messages"][-1].text)
finally:
    provider.shutdown()
