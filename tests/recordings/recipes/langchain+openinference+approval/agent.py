"""LangChain's agents: a tool that asks a person, and a person who changes what a tool is called with; two runs of one conversation.

The instrumentation is that of the client's name.
"""

import os

import lab

NAME = os.environ["INSTRUMENTATION"]
if NAME == "langsmith":
    os.environ |= {"LANGSMITH_OTEL_ENABLED": "true", "LANGSMITH_OTEL_ONLY": "true", "LANGSMITH_API_KEY": "none"}
    os.environ["LANGSMITH_TRACING"] = "true"
provider = None if NAME == "langfuse" else lab.export()
config: dict = {"configurable": {"thread_id": "conversation"}}
if NAME == "openinference":
    from openinference.instrumentation.langchain import LangChainInstrumentor

    LangChainInstrumentor().instrument(tracer_provider=provider)
elif NAME == "openllmetry":
    from opentelemetry.instrumentation.langchain import LangchainInstrumentor

    LangchainInstrumentor().instrument(tracer_provider=provider)
elif NAME == "genai":
    from opentelemetry.instrumentation.genai.langchain import LangChainInstrumentor

    LangChainInstrumentor().instrument(tracer_provider=provider)
elif NAME == "langfuse":
    from langfuse import Langfuse
    from langfuse.langchain import CallbackHandler

    langfuse = Langfuse(public_key="pk", secret_key="sk", host=lab.ENDPOINT)
    config["callbacks"] = [CallbackHandler()]

from langchain.agents import create_agent  # noqa: E402
from langchain.agents.middleware import HumanInTheLoopMiddleware  # noqa: E402
from langchain_core.tools import tool  # noqa: E402
from langchain_openai import ChatOpenAI  # noqa: E402
from langgraph.checkpoint.memory import InMemorySaver  # noqa: E402
from langgraph.types import Command, interrupt  # noqa: E402


@tool
def refund_order(order_id: str) -> str:
    """Refund an order."""
    approved = interrupt({"refund": order_id})
    with lab.logged("refund_order", {"order_id": order_id}):
        return f"refunded {order_id}" if approved == "yes" else "not refunded"


if lab.SCENARIO == "edited":
    tools, said = [tool(lab.get_weather)], {"name": "get_weather", "args": {"city": "Oslo"}}
    middleware = [HumanInTheLoopMiddleware(interrupt_on={"get_weather": True})]
    resume: object = {"decisions": [{"type": "edit", "edited_action": said}]}
else:
    tools, middleware, resume = [refund_order], [], "yes"
agent = create_agent(
    ChatOpenAI(model=lab.MODEL), tools, system_prompt=lab.SYSTEM, name="assistant", middleware=middleware,
    checkpointer=InMemorySaver(),
)  # fmt: skip
agent.invoke({"messages": [{"role": "user", "content": lab.QUESTION}]}, config)
lab.answer(agent.invoke(Command(resume=resume), config)["messages"][-1].text)
if NAME == "langfuse":
    langfuse.flush()
elif NAME == "langsmith":
    from langchain_core.tracers.langchain import wait_for_all_tracers

    wait_for_all_tracers()
    provider.force_flush()
