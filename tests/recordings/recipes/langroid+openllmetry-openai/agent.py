"""Langroid's tasks, of which OpenLLMetry's instrumentation of OpenAI's SDK sees the requests."""

import os
from importlib.util import find_spec
from pathlib import Path

import lab

# Encodings are in LiteLLM's package; else they are fetched from a network.
TOKENIZERS = Path(find_spec("litellm").origin).parent / "litellm_core_utils" / "tokenizers"
os.environ["TIKTOKEN_CACHE_DIR"] = str(TOKENIZERS)
provider = lab.export()
from opentelemetry.instrumentation.openai import OpenAIInstrumentor  # noqa: E402

OpenAIInstrumentor().instrument()
import langroid as lr  # noqa: E402
from langroid.agent.tool_message import ToolMessage  # noqa: E402
from langroid.language_models import OpenAIGPTConfig  # noqa: E402


def as_message(function) -> type[ToolMessage]:
    """Return a tool of Langroid, which is a class of messages that the agent handles."""
    kinds = {"str": str, "float": float}
    fields = {name: kinds.get(kind, kind) for name, kind in function.__annotations__.items() if name != "return"}

    def handle(self) -> str:
        return function(**{name: getattr(self, name) for name in fields})

    body = {
        "__annotations__": {"request": str, "purpose": str, **fields},
        "__module__": __name__,
        "request": function.__name__,
        "purpose": (function.__doc__ or "").split("\n")[0],
        "handle": handle,
    }
    return type(function.__name__.title().replace("_", ""), (ToolMessage,), body)


def researcher(query: str) -> str:
    """Ask the researcher."""
    with lab.logged("researcher", {"query": query}, kind="agent_as_tool"):
        return run("researcher", lab.RESEARCHER_SYSTEM, lab.TOOLS, query)


def run(name: str, system: str, tools: list, question: str) -> str:
    llm = OpenAIGPTConfig(
        chat_model=lab.MODEL,
        api_base=lab.URL,
        api_key="scripted",
        stream=lab.SCENARIO == "streaming",
        chat_context_length=32_000,
    )
    settings = {"use_functions_api": True, "use_tools_api": True, "use_tools": False, "handle_llm_no_tool": "done"}
    agent = lr.ChatAgent(lr.ChatAgentConfig(name=name, system_message=system, llm=llm, **settings))
    agent.enable_message([as_message(one) for one in tools])
    return lr.Task(agent, interactive=False).run(question, turns=9).content


try:
    lab.answer(run("assistant", lab.SYSTEM, [researcher] if lab.SCENARIO == "delegation" else lab.TOOLS, lab.QUESTION))
finally:
    provider.shutdown()
