"""WayFlow's agent, whose Open Agent Spec events OpenInference records."""

import typing

import lab
from openinference.instrumentation.agentspec import AgentSpecInstrumentor
from wayflowcore.agent import Agent
from wayflowcore.agentspec.tracing import AgentSpecEventListener
from wayflowcore.events.eventlistener import register_event_listeners
from wayflowcore.models.openaicompatiblemodel import OpenAICompatibleModel
from wayflowcore.tools import tool

provider = lab.export()
model = OpenAICompatibleModel(model_id=lab.MODEL, base_url=lab.URL.removesuffix("/v1"), api_key="scripted")
for each in lab.TOOLS:  # it reads no annotations that are text
    each.__wrapped__.__annotations__ = each.__annotations__ = typing.get_type_hints(each)
tools = [tool(each, description_mode="only_docstring") for each in lab.TOOLS]
if lab.SCENARIO == "delegation":
    helper = Agent(
        llm=model,
        name="researcher",
        description="Finds things out",
        custom_instruction=lab.RESEARCHER_SYSTEM,
        tools=tools,
    )
    agent = Agent(llm=model, name="assistant", custom_instruction=lab.SYSTEM, agents=[helper])
else:
    agent = Agent(llm=model, name="assistant", custom_instruction=lab.SYSTEM, tools=tools)
try:
    recorded = AgentSpecInstrumentor().instrument_context(tracer_provider=provider, mask_sensitive_information=False)
    with recorded, register_event_listeners([AgentSpecEventListener()]):
        talk = agent.start_conversation()
        talk.append_user_message(lab.QUESTION)
        talk.execute()
        lab.answer(talk.get_last_message().content)
finally:
    provider.shutdown()
