"""A plain loop of OpenAI calls under Confident AI's tracer: its instrumentation of the SDK, and its decorator of agents and tools."""

import confident_trace
import lab

provider = lab.export()
confident_trace.init(tracer_provider=provider, api_key="none", endpoint=lab.ENDPOINT, instrumentations=("openai",))

from openai import OpenAI  # noqa: E402

client = OpenAI(max_retries=0)
TOOLS = {tool.__name__: confident_trace.span(tool, name=tool.__name__, type="tool") for tool in lab.TOOLS}


def asking(messages: list, tools: list) -> dict:
    return lab.ask(client, messages, tools)


def research(query: str) -> str:
    return lab.loop(asking, lab.RESEARCHER_SYSTEM, query, TOOLS)


research = confident_trace.span(research, name="researcher", type="agent")


def researcher(query: str) -> str:
    """Ask the researcher."""
    with lab.logged("researcher", {"query": query}, kind="agent_as_tool"):
        return research(query)


HELPERS = {"researcher": confident_trace.span(researcher, name="researcher", type="tool")}


def assistant(question: str) -> str:
    return lab.loop(asking, lab.SYSTEM, question, HELPERS if lab.SCENARIO == "delegation" else TOOLS)


try:
    lab.answer(confident_trace.span(assistant, name="assistant", type="agent")(lab.QUESTION))
finally:
    confident_trace.flush()
    provider.shutdown()
