"""LlamaIndex's function agent through OpenLIT."""

import asyncio

import lab
import openlit

openlit.init(application_name="agent", disable_metrics=True, disable_batch=True)

from llama_index.core.agent.workflow import FunctionAgent  # noqa: E402
from llama_index.llms.openai_like import OpenAILike  # noqa: E402

MODEL = OpenAILike(
    model=lab.MODEL, api_base=lab.URL, api_key="scripted", is_chat_model=True, is_function_calling_model=True
)


async def run(name: str, instructions: str, tools: list, question: str) -> str:
    agent = FunctionAgent(
        name=name,
        description=name,
        system_prompt=instructions,
        tools=tools,
        llm=MODEL,
        streaming=lab.SCENARIO == "streaming",
    )
    return str(await agent.run(question))


async def researcher(query: str) -> str:
    """Ask the researcher."""
    with lab.logged("researcher", {"query": query}, kind="agent_as_tool"):
        return await run("researcher", lab.RESEARCHER_SYSTEM, lab.TOOLS, query)


tools = [researcher] if lab.SCENARIO == "delegation" else lab.TOOLS
lab.answer(asyncio.run(run("assistant", lab.SYSTEM, tools, lab.QUESTION)))
