"""A loop of Mirascope calls under its own `ops` tracing; the tools and the agent's loop are traced functions."""

import lab
from mirascope import llm, ops

provider = lab.export()
ops.configure(tracer_provider=provider)
ops.instrument_llm()
TOOLS = [llm.tool(ops.trace(tool)) for tool in lab.TOOLS]


@llm.tool
@ops.trace
def researcher(query: str) -> str:
    """Ask the researcher."""
    with lab.logged("researcher", {"query": query}, kind="agent_as_tool"):
        return loop(query, TOOLS)


def loop(question: str, tools: list) -> str:
    model = llm.Model("openai:completions/gpt-4o" if lab.SCENARIO == "bad_model_id" else "openai/gpt-4o")
    if lab.SCENARIO == "streaming":
        response = model.stream(question, tools=tools)
        response.finish()
        while response.tool_calls:
            response = response.resume(response.execute_tools())
            response.finish()
        return response.text()
    response = model.call(question, tools=tools)
    while response.tool_calls:
        response = response.resume(response.execute_tools())
    return response.text()


@ops.trace
def assistant(question: str) -> str:
    return loop(question, [researcher] if lab.SCENARIO == "delegation" else TOOLS)


lab.answer(assistant(lab.QUESTION))
provider.shutdown()
