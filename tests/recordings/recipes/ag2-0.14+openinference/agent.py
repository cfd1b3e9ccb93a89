"""Conversable agents of AG2 0.14, which OpenInference instruments."""

import lab
from autogen import ConversableAgent, LLMConfig
from openinference.instrumentation.ag2 import AG2Instrumentor

provider = lab.export()
AG2Instrumentor().instrument(tracer_provider=provider)
CONFIG = LLMConfig({"api_type": "openai", "model": lab.MODEL, "api_key": "none", "base_url": lab.URL, "max_retries": 0})


def ask(name: str, system: str, tools: list, question: str) -> str:
    one = ConversableAgent(name, system_message=system, llm_config=CONFIG, human_input_mode="NEVER")
    user = ConversableAgent(
        f"{name}_user", llm_config=False, human_input_mode="NEVER", is_termination_msg=lambda m: not m.get("tool_calls")
    )
    for tool in tools:
        one.register_for_llm(description=(tool.__doc__ or "").split("\n")[0])(tool)
        user.register_for_execution()(tool)
    return user.initiate_chat(one, message=question, max_turns=6, silent=True).chat_history[-1]["content"]


def researcher(query: str) -> str:
    """Ask the researcher."""
    with lab.logged("researcher", {"query": query}, kind="agent_as_tool"):
        return ask("researcher", lab.RESEARCHER_SYSTEM, lab.TOOLS, query)


try:
    lab.answer(ask("assistant", lab.SYSTEM, [researcher] if lab.SCENARIO == "delegation" else lab.TOOLS, lab.QUESTION))
finally:
    provider.shutdown()
