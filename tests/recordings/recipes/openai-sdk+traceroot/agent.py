"""A plain loop of OpenAI calls through TraceRoot's decorators."""

import lab
import traceroot
from traceroot import Integration, observe

traceroot.initialize(api_key="none", host_url=lab.ENDPOINT, integrations=[Integration.OPENAI])

from openai import OpenAI  # noqa: E402

client = OpenAI(max_retries=0)
TOOLS = {tool.__name__: observe(type="tool")(tool) for tool in lab.TOOLS}


def asking(messages: list, tools: list) -> dict:
    return lab.ask(client, messages, tools)


@observe(name="researcher", type="agent")
def researcher(query: str) -> str:
    """Ask the researcher."""
    with lab.logged("researcher", {"query": query}, kind="agent_as_tool"):
        return lab.loop(asking, lab.RESEARCHER_SYSTEM, query, TOOLS)


@observe(name="assistant", type="agent")
def assistant(question: str) -> str:
    return lab.loop(asking, lab.SYSTEM, question, {"researcher": researcher} if lab.SCENARIO == "delegation" else TOOLS)


try:
    for text in [lab.QUESTION, "And in Oslo?"] if lab.SCENARIO == "two_turns" else [lab.QUESTION]:
        lab.answer(assistant(text))
finally:
    traceroot.flush()
    traceroot.shutdown()
