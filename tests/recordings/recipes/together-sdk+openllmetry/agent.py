"""A plain loop of calls of Together's SDK, which OpenLLMetry instruments, in spans of the program's own."""

import lab
from opentelemetry import trace
from opentelemetry.instrumentation.together import TogetherAiInstrumentor
from together import Together

provider = lab.export()
TogetherAiInstrumentor().instrument(tracer_provider=provider)
client = Together(base_url=lab.URL, api_key="scripted", max_retries=0)
tracer = trace.get_tracer("agent")


def asking(messages: list, tools: list) -> dict:
    asked = {"model": lab.MODEL, "messages": messages, "tools": tools}
    return client.chat.completions.create(**asked).choices[0].message.model_dump(exclude_none=True)


def researcher(query: str) -> str:
    """Ask the researcher."""
    with lab.logged("researcher", {"query": query}, kind="agent_as_tool"), tracer.start_as_current_span("researcher"):
        return lab.loop(asking, lab.RESEARCHER_SYSTEM, query, {tool.__name__: tool for tool in lab.TOOLS})


try:
    with tracer.start_as_current_span("assistant"):
        tools = [researcher] if lab.SCENARIO == "delegation" else lab.TOOLS
        lab.answer(lab.loop(asking, lab.SYSTEM, lab.QUESTION, {tool.__name__: tool for tool in tools}))
finally:
    provider.shutdown()
