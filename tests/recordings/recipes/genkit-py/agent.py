"""Genkit for Python with the plugin for OpenAI: tools, and an agent within a tool as a flow, in the SDK's own spans."""

import inspect

import lab
from pydantic import BaseModel, create_model

provider = lab.export()

from genkit import Genkit  # noqa: E402
from genkit_openai import OpenAI  # noqa: E402

ai = Genkit(plugins=[OpenAI()], model=f"openai/{lab.MODEL}")


def tool(body):
    """Register a tool: its input is one object."""
    (name,) = inspect.signature(body).parameters
    kind = {"str": str, "float": float}[body.__annotations__[name]]
    arguments = create_model(body.__name__, **{name: (kind, ...)})

    async def run(given) -> str:
        return body(**given.model_dump())

    run.__annotations__["given"] = arguments
    ai.tool(name=body.__name__, description=(body.__doc__ or "").split("\n")[0])(run)
    return body.__name__


TOOLS = [tool(one) for one in lab.TOOLS]


class Query(BaseModel):
    query: str


@ai.tool()
async def researcher(asked: Query) -> str:
    """Ask the researcher."""
    with lab.logged("researcher", asked.model_dump(), kind="agent_as_tool"):
        return (await ai.generate(system=lab.RESEARCHER_SYSTEM, prompt=asked.query, tools=TOOLS)).text


@ai.flow()
async def assistant(question: str) -> str:
    tools = ["researcher"] if lab.SCENARIO == "delegation" else TOOLS
    if lab.SCENARIO == "streaming":
        streamed = ai.generate_stream(system=lab.SYSTEM, prompt=question, tools=tools)
        async for _ in streamed.stream:
            pass
        return (await streamed.response).text
    first = await ai.generate(system=lab.SYSTEM, prompt=question, tools=tools)
    if lab.SCENARIO == "two_turns":
        first = await ai.generate(messages=first.messages, prompt="And in Oslo?", tools=tools)
    if first.finish_reason == "failed":
        raise RuntimeError(first.finish_message)
    return first.text


async def main() -> None:
    lab.answer(await assistant(lab.QUESTION))


try:
    ai.run_main(main())
finally:
    provider.shutdown()
