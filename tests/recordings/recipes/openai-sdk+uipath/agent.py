"""A plain loop of OpenAI calls under UiPath's SDK: functions with its decorator, which says what kind each is."""

import lab
from openai import OpenAI
from uipath.tracing import traced

provider = lab.export()
client = OpenAI(max_retries=0)
TOOLS = {one.__name__: traced(name=one.__name__, span_type="TOOL")(one) for one in lab.TOOLS}


@traced(name="llm", span_type="completion")
def asking(messages: list, tools: list) -> dict:
    return lab.ask(client, messages, tools)


@traced(name="researcher", span_type="TOOL")
def researcher(query: str) -> str:
    """Ask the researcher."""
    with lab.logged("researcher", {"query": query}, kind="agent_as_tool"):
        return research(query)


@traced(name="researcher", span_type="agent")
def research(query: str) -> str:
    return lab.loop(asking, lab.RESEARCHER_SYSTEM, query, TOOLS)


@traced(name="assistant", span_type="agent")
def assistant(question: str) -> str:
    return lab.loop(asking, lab.SYSTEM, question, {"researcher": researcher} if lab.SCENARIO == "delegation" else TOOLS)


try:
    lab.answer(assistant(lab.QUESTION))
finally:
    provider.shutdown()
