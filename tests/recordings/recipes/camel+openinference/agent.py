"""CAMEL's ChatAgent; its requests are recorded by OpenInference's instrumentation of the OpenAI SDK."""

import lab
from camel.agents import ChatAgent
from camel.models import ModelFactory
from camel.toolkits import FunctionTool
from camel.types import ModelPlatformType
from camel.utils import BaseTokenCounter
from openinference.instrumentation.openai import OpenAIInstrumentor


class Counter(BaseTokenCounter):
    """The tokenizer would be fetched from a network."""

    def count_tokens_from_messages(self, messages: list) -> int:
        return 10 * len(messages)

    def encode(self, text: str) -> list[int]:
        return [0] * len(text)

    def decode(self, token_ids: list[int]) -> str:
        return str(token_ids)


provider = lab.export()
OpenAIInstrumentor().instrument(tracer_provider=provider)


def agent(system: str, tools: list) -> ChatAgent:
    streaming = {"stream": True, "stream_options": {"include_usage": True}} if lab.SCENARIO == "streaming" else {}
    model = ModelFactory.create(
        ModelPlatformType.OPENAI_COMPATIBLE_MODEL,
        lab.MODEL,
        url=lab.URL,
        api_key="scripted",
        model_config_dict=streaming,
        token_counter=Counter(),
    )
    return ChatAgent(system, model=model, tools=[FunctionTool(tool) for tool in tools])


def researcher(query: str) -> str:
    """Ask the researcher.

    Args:
        query: what to find out
    """
    with lab.logged("researcher", {"query": query}, kind="agent_as_tool"):
        return agent(lab.RESEARCHER_SYSTEM, lab.TOOLS).step(query).msgs[0].content


assistant = agent(lab.SYSTEM, [researcher] if lab.SCENARIO == "delegation" else lab.TOOLS)
response = assistant.step(lab.QUESTION)
if lab.SCENARIO == "streaming":
    response = [part for part in response if part.msgs and part.msgs[0].content][-1]
if lab.SCENARIO == "two_turns":
    response = assistant.step("And in Oslo?")
lab.answer(response.msgs[0].content)
provider.shutdown()
