"""A program whose developer writes spans with OpenTelemetry's API: a class of an agent, one span around each thing that it does."""

import json

import lab
from openai import OpenAI
from opentelemetry import trace
from opentelemetry.trace import Status, StatusCode

provider = lab.export()
tracer = trace.get_tracer("weather_service.agent")
client = OpenAI(max_retries=0)


class Agent:
    """Asks a model, runs its tools, until there is an answer."""

    def __init__(self, name: str, system: str, tools: dict) -> None:
        self.name = name
        self.system = system
        self.tools = tools

    def run(self, question: str) -> str:
        with tracer.start_as_current_span("agent.run") as span:
            span.set_attribute("agent.name", self.name)
            span.set_attribute("agent.question", question)
            messages = [{"role": "system", "content": self.system}, {"role": "user", "content": question}]
            iteration = 0
            while True:
                iteration += 1
                message = self.call_llm(messages)
                messages.append(message)
                if not message.get("tool_calls"):
                    break
                for call in message["tool_calls"]:
                    messages.append({"role": "tool", "tool_call_id": call["id"], "content": self.call_tool(call)})
            span.set_attribute("agent.iterations", iteration)
            span.set_attribute("agent.answer", message["content"])
            return message["content"]

    def call_llm(self, messages: list) -> dict:
        with tracer.start_as_current_span("llm.call") as span:
            span.set_attribute("llm.model", lab.MODEL)
            span.set_attribute("llm.messages", json.dumps(messages))
            response = client.chat.completions.create(
                model=lab.MODEL, messages=messages, tools=list(map(lab.schema, self.tools.values()))
            )
            message = response.choices[0].message
            span.set_attribute("llm.response.model", response.model)
            span.set_attribute("llm.finish_reason", response.choices[0].finish_reason)
            span.set_attribute("llm.tokens.input", response.usage.prompt_tokens)
            span.set_attribute("llm.tokens.output", response.usage.completion_tokens)
            if message.content:
                span.set_attribute("llm.response.content", message.content)
            if message.tool_calls:
                span.set_attribute("llm.tool_calls", json.dumps([one.model_dump() for one in message.tool_calls]))
            return message.model_dump(exclude_none=True)

    def call_tool(self, call: dict) -> str:
        name = call["function"]["name"]
        with tracer.start_as_current_span(f"tool.{name}") as span:
            span.set_attribute("tool.name", name)
            span.set_attribute("tool.call_id", call["id"])
            span.set_attribute("tool.arguments", call["function"]["arguments"])
            try:
                result = self.tools[name](**json.loads(call["function"]["arguments"]))
            except Exception as error:
                span.record_exception(error)
                span.set_status(Status(StatusCode.ERROR, str(error)))
                return f"error: {error}"
            span.set_attribute("tool.result", result)
            return result


TOOLS = {one.__name__: one for one in lab.TOOLS}


def researcher(query: str) -> str:
    """Ask the researcher."""
    with lab.logged("researcher", {"query": query}, kind="agent_as_tool"):
        return Agent("researcher", lab.RESEARCHER_SYSTEM, TOOLS).run(query)


try:
    agent = Agent("assistant", lab.SYSTEM, {"researcher": researcher} if lab.SCENARIO == "delegation" else TOOLS)
    lab.answer(agent.run(lab.QUESTION))
finally:
    provider.shutdown()
