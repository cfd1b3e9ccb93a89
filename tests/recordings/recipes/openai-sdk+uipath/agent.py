"""A plain loop of OpenAI calls in functions that UiPath's SDK traces, over OpenInference's spans of the SDK."""

import lab
from openai import OpenAI
from openinference.instrumentation.openai import OpenAIInstrumentor
from uipath.core.tracing import traced

provider = lab.export()
OpenAIInstrumentor().instrument(tracer_provider=provider)
client = OpenAI(max_retries=0)
TOOLS = {tool.__name__: traced(name=tool.__name__, span_type="tool")(tool) for tool in lab.TOOLS}


def asking(messages: list, tools: list) -> dict:
    return lab.ask(client, messages, tools)


@traced(name="researcher", span_type="tool")
def researcher(query: str) -> str:
    """Ask the researcher."""
    with lab.logged("researcher", {"query": query}, kind="agent_as_tool"):
        return lab.loop(asking, lab.RESEARCHER_SYSTEM, query, TOOLS)


@traced(name="main")
def main(question: str) -> str:
    return lab.loop(asking, lab.SYSTEM, question, {"researcher": researcher} if lab.SCENARIO == "delegation" else TOOLS)


try:
    lab.answer(main(lab.QUESTION))
finally:
    provider.shutdown()
