"""A plain loop of calls of Portkey's SDK, which OpenInference instruments, in spans of the program's own."""

import lab
from openinference.instrumentation.portkey import PortkeyInstrumentor
from opentelemetry import trace
from portkey_ai import Portkey

provider = lab.export()
PortkeyInstrumentor().instrument(tracer_provider=provider)
client = Portkey(base_url=lab.URL, api_key="scripted", provider="openai")
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
