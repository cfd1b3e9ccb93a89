"""agentUniverse's agents, models and tools, with its own instrumentations: a loop that an agent's class writes."""

import json
from pathlib import Path

import lab
from agentuniverse.agent.action.tool.tool import Tool
from agentuniverse.agent.agent import Agent
from agentuniverse.agent.agent_model import AgentModel
from agentuniverse.agent.input_object import InputObject
from agentuniverse.base.config.application_configer.app_configer import AppConfiger
from agentuniverse.base.config.application_configer.application_config_manager import ApplicationConfigManager
from agentuniverse.base.config.configer import Configer
from agentuniverse.base.tracing.otel.telemetry_manager import TelemetryManager
from agentuniverse.llm.default.default_openai_llm import DefaultOpenAILLM

CONFIG = Path("config.toml")
CONFIG.write_text('[BASE_INFO]\nappname = "weather"\n[CONVERSATION_MEMORY]\nactivate = false\n', encoding="utf-8")
ApplicationConfigManager().app_configer = AppConfiger().load_by_configer(Configer(path=str(CONFIG)).load())
INSTRUMENTATION = "agentuniverse.base.tracing.otel.instrumentation"
telemetry = TelemetryManager()
telemetry.init_from_config(
    {
        "service_name": "weather",
        "processors": [
            {
                "class": "opentelemetry.sdk.trace.export.SimpleSpanProcessor",
                "exporter": {"class": "opentelemetry.exporter.otlp.proto.http.trace_exporter.OTLPSpanExporter"},
            }
        ],
        "instrumentations": [
            f"{INSTRUMENTATION}.agent.agent_instrumentor.AgentInstrumentor",
            f"{INSTRUMENTATION}.llm.llm_instrumentor.LLMInstrumentor",
            f"{INSTRUMENTATION}.tool.tool_instrumentor.ToolInstrumentor",
        ],
    }
)


class Function(Tool):
    body: object = None

    def execute(self, **arguments: object) -> str:
        return self.body(**arguments)


def function(body) -> Function:
    return Function(name=body.__name__, description=body.__doc__, input_keys=[], body=body)


class Loop(Agent):
    system: str = ""
    tools: tuple = ()

    def input_keys(self) -> list[str]:
        return ["input"]

    def output_keys(self) -> list[str]:
        return ["output"]

    def parse_input(self, input_object: InputObject, agent_input: dict) -> dict:
        return {**agent_input, "input": input_object.get_data("input")}

    def parse_result(self, agent_result: dict) -> dict:
        return agent_result

    def execute(self, input_object: InputObject, agent_input: dict, **_: object) -> dict:
        by_name = {tool.name: tool for tool in self.tools}
        offered = [lab.schema(tool.body) for tool in self.tools]
        messages = [
            {"role": "system", "content": self.system},
            {"role": "user", "content": input_object.get_data("input")},
        ]
        while True:
            said = MODEL.call(messages=messages, tools=offered, streaming=False)
            message = {key: value for key, value in said.raw["choices"][0]["message"].items() if value is not None}
            messages.append(message)
            if not message.get("tool_calls"):
                return {**agent_input, "output": message["content"]}
            for call in message["tool_calls"]:
                try:
                    result = by_name[call["function"]["name"]].run(**json.loads(call["function"]["arguments"]))
                except Exception as error:
                    result = f"error: {error}"
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})


MODEL = DefaultOpenAILLM(
    name="weather_llm", model_name=lab.MODEL, openai_api_key="scripted", openai_api_base=lab.URL, max_retries=0
)


def agent(name: str, system: str, tools: list) -> Loop:
    made = Loop()
    made.agent_model = AgentModel(info={"name": name}, profile={})
    made.system, made.tools = system, tuple(tools)
    return made


def researcher(query: str) -> str:
    """Ask the researcher."""
    with lab.logged("researcher", {"query": query}, kind="agent_as_tool"):
        return (
            agent("researcher", lab.RESEARCHER_SYSTEM, list(map(function, lab.TOOLS)))
            .run(input=query)
            .get_data("output")
        )


try:
    root = agent(
        "assistant", lab.SYSTEM, list(map(function, [researcher] if lab.SCENARIO == "delegation" else lab.TOOLS))
    )
    lab.answer(root.run(input=lab.QUESTION).get_data("output"))
finally:
    telemetry.force_flush()
