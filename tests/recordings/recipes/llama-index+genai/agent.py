"""LlamaIndex under the instrumentations of OpenTelemetry: its own and that of the OpenAI SDK below it."""

import asyncio

import lab
from llama_index.core.agent.workflow import AgentWorkflow, FunctionAgent
from llama_index.llms.openai import OpenAI
from opentelemetry.instrumentation.genai.llama_index import LlamaIndexInstrumentor
from opentelemetry.instrumentation.genai.openai import OpenAIInstrumentor

provider = lab.export()
LlamaIndexInstrumentor().instrument(tracer_provider=provider)
OpenAIInstrumentor().instrument(tracer_provider=provider)


def agent(name: str, system: str, tools: list, **more: object) -> FunctionAgent:
    model = OpenAI(model=lab.MODEL, api_base=lab.URL, api_key="scripted")
    streaming = lab.SCENARIO == "streaming"
    return FunctionAgent(
        name=name, description=system, system_prompt=system, tools=tools, llm=model, streaming=streaming, **more
    )


async def main() -> None:
    async def researcher(query: str) -> str:
        """Ask the researcher."""
        with lab.logged("researcher", {"query": query}, kind="agent_as_tool"):
            return str(await agent("researcher", lab.RESEARCHER_SYSTEM, lab.TOOLS).run(query))

    first = agent("assistant", lab.SYSTEM, [researcher] if lab.SCENARIO == "delegation" else lab.TOOLS)
    workflow = AgentWorkflow(agents=[first], root_agent="assistant")
    lab.answer(str(await workflow.run(lab.QUESTION)))


try:
    asyncio.run(main())
finally:
    provider.shutdown()
