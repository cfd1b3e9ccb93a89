"""A plain loop of OpenAI calls: Phoenix's decorators for agents and tools, OpenInference for the model calls."""

import json

import lab
from openai import OpenAI
from openinference.instrumentation import OITracer, TraceConfig
from openinference.instrumentation.openai import OpenAIInstrumentor

provider = lab.export()
OpenAIInstrumentor().instrument(tracer_provider=provider)
tracer = OITracer(provider.get_tracer("agent"), config=TraceConfig())
client = OpenAI()
TOOLS = {tool.__name__: tracer.tool(tool) for tool in lab.TOOLS}


def loop(system: str, question: str, tools: dict) -> str:
    messages = [{"role": "system", "content": system}, {"role": "user", "content": question}]
    while True:
        said = client.chat.completions.create(
            model=lab.MODEL, messages=messages, tools=list(map(lab.schema, tools.values()))
        )
        message = said.choices[0].message
        messages.append(message.model_dump(exclude_none=True))
        if not message.tool_calls:
            return message.content
        for call in message.tool_calls:
            try:
                result = tools[call.function.name](**json.loads(call.function.arguments))
            except Exception as error:
                result = f"error: {error}"
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})


@tracer.agent
def researcher(query: str) -> str:
    """Ask the researcher."""
    with lab.logged("researcher", {"query": query}, kind="agent_as_tool"):
        return loop(lab.RESEARCHER_SYSTEM, query, TOOLS)


@tracer.agent
def assistant(question: str) -> str:
    return loop(
        lab.SYSTEM, question, {"researcher": tracer.tool(researcher)} if lab.SCENARIO == "delegation" else TOOLS
    )


lab.answer(assistant(lab.QUESTION))
provider.shutdown()
