"""magentic's prompt chain through Logfire, which both it and the OpenAI SDK are instrumented with."""

import lab
import logfire

logfire.configure(
    send_to_logfire=False,
    console=False,
    service_name="agent",
)
logfire.instrument_openai()

from magentic import OpenaiChatModel, prompt_chain  # noqa: E402

MODEL = OpenaiChatModel(lab.MODEL, base_url=lab.URL, api_key="scripted")


@prompt_chain(lab.RESEARCHER_SYSTEM + " {query}", functions=lab.TOOLS, model=MODEL)
def research(query: str) -> str: ...


def researcher(query: str) -> str:
    """Ask the researcher."""
    with lab.logged("researcher", {"query": query}, kind="agent_as_tool"):
        return research(query)


@prompt_chain(
    lab.SYSTEM + " {question}", functions=[researcher] if lab.SCENARIO == "delegation" else lab.TOOLS, model=MODEL
)
def assistant(question: str) -> str: ...


lab.answer(assistant(lab.QUESTION))
