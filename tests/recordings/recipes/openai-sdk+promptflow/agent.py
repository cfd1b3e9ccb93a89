"""A plain loop of OpenAI calls, traced by Prompt flow: its patched SDK, and its decorator on agents and tools."""

import lab
from promptflow.tracing import start_trace, trace

provider = lab.export()
start_trace()

from openai import OpenAI  # noqa: E402

client = OpenAI()
TOOLS = {one.__name__: trace(one) for one in lab.TOOLS}


def asking(messages: list, tools: list) -> dict:
    return lab.ask(client, messages, tools)


@trace
def researcher(query: str) -> str:
    """Ask the researcher."""
    with lab.logged("researcher", {"query": query}, kind="agent_as_tool"):
        return lab.loop(asking, lab.RESEARCHER_SYSTEM, query, TOOLS)


@trace
def assistant(question: str) -> str:
    return lab.loop(asking, lab.SYSTEM, question, {"researcher": researcher} if lab.SCENARIO == "delegation" else TOOLS)


try:
    lab.answer(assistant(lab.QUESTION))
finally:
    provider.force_flush()
