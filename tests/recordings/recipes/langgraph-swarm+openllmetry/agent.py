"""LangGraph swarm through OpenLLMetry."""

import lab
from langchain.agents import create_agent
from langchain_core.tools import StructuredTool
from langchain_openai import ChatOpenAI
from langgraph_swarm import create_handoff_tool, create_swarm
from opentelemetry.instrumentation.langchain import LangchainInstrumentor

provider = lab.export()
LangchainInstrumentor().instrument(tracer_provider=provider)


def tools():
    return [StructuredTool.from_function(tool, handle_tool_error=True) for tool in lab.TOOLS]


MODEL = ChatOpenAI(model=lab.MODEL, streaming=lab.SCENARIO == "streaming", max_retries=2)
second = create_agent(MODEL, tools(), system_prompt=lab.RESEARCHER_SYSTEM, name="researcher")
mine = [create_handoff_tool(agent_name="researcher")] if lab.SCENARIO == "handoff" else tools()
first = create_agent(MODEL, mine, system_prompt=lab.SYSTEM, name="assistant")
swarm = create_swarm([first, second], default_active_agent="assistant").compile(name="team")
result = swarm.invoke({"messages": [("user", lab.QUESTION)]})
lab.answer(result["messages"][-1].content)
provider.shutdown()
