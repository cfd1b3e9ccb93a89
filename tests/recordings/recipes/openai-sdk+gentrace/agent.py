"""A plain loop of OpenAI calls in functions that Gentrace traces, over OpenInference's spans of the SDK."""

import lab
from gentrace import init, interaction, traced
from openai import OpenAI
from openinference.instrumentation.openai import OpenAIInstrumentor

provider = lab.export()
init(api_key="scripted", base_url=lab.ENDPOINT, otel_setup=False)
OpenAIInstrumentor().instrument(tracer_provider=provider)
client = OpenAI(max_retries=0)
TOOLS = {tool.__name__: traced(name=tool.__name__)(tool) for tool in lab.TOOLS}


def asking(messages: list, tools: list) -> dict:
    return lab.ask(client, messages, tools)


@traced(name="researcher")
def researcher(query: str) -> str:
    """Ask the researcher."""
    with lab.logged("researcher", {"query": query}, kind="agent_as_tool"):
        return lab.loop(asking, lab.RESEARCHER_SYSTEM, query, TOOLS)


@interaction(name="assistant", suppress_warnings=True)
def assistant(question: str) -> str:
    return lab.loop(asking, lab.SYSTEM, question, {"researcher": researcher} if lab.SCENARIO == "delegation" else TOOLS)


try:
    lab.answer(assistant(lab.QUESTION))
finally:
    provider.shutdown()
