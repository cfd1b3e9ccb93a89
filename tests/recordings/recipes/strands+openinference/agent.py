"""Agents of Strands, whose own spans OpenInference's processor rewrites."""

import lab
from openinference.instrumentation.strands_agents import StrandsAgentsToOpenInferenceProcessor
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from strands import Agent, tool
from strands.models.openai import OpenAIModel
from strands.multiagent import Swarm

provider = TracerProvider()
provider.add_span_processor(StrandsAgentsToOpenInferenceProcessor())
provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter()))
trace.set_tracer_provider(provider)
TOOLS = [tool(one) for one in lab.TOOLS]


def agent(name: str, system: str, tools: list) -> Agent:
    model = OpenAIModel(client_args={"base_url": lab.URL, "api_key": "none"}, model_id=lab.MODEL)
    return Agent(name=name, description=name, system_prompt=system, tools=tools, model=model, callback_handler=None)


@tool
def researcher(query: str) -> str:
    """Ask the researcher."""
    with lab.logged("researcher", {"query": query}, kind="agent_as_tool"):
        return str(agent("researcher", lab.RESEARCHER_SYSTEM, TOOLS)(query)).strip()


try:
    if lab.SCENARIO == "handoff":
        both = [agent("assistant", lab.SYSTEM, []), agent("researcher", lab.RESEARCHER_SYSTEM, TOOLS)]
        said = Swarm(both, entry_point=both[0])(lab.QUESTION)
        lab.answer(str(said.results["researcher"].result).strip())
    else:
        one = agent("assistant", lab.SYSTEM, [researcher] if lab.SCENARIO == "delegation" else TOOLS)
        said = one(lab.QUESTION)
        if lab.SCENARIO == "two_turns":
            said = one("And in Oslo?")
        lab.answer(str(said).strip())
finally:
    provider.shutdown()
