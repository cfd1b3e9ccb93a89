"""A state machine of Burr that asks OpenAI: Burr's bridge to OpenTelemetry, and OpenInference for the SDK."""

import json

import lab

provider = lab.export()

from burr.core import ApplicationBuilder, State, action, default, expr  # noqa: E402
from burr.integrations.opentelemetry import OpenTelemetryBridge  # noqa: E402
from burr.visibility import trace  # noqa: E402
from openai import OpenAI  # noqa: E402
from openinference.instrumentation.openai import OpenAIInstrumentor  # noqa: E402

OpenAIInstrumentor().instrument()
client = OpenAI()
TOOLS = {one.__name__: trace()(one) for one in lab.TOOLS}


@action(reads=["messages", "tools"], writes=["messages", "calls", "answer"])
def ask_model(state: State) -> State:
    tools = list(map(lab.schema, [TOOLS.get(n, researcher) for n in state["tools"]]))
    message = lab.ask(client, state["messages"], tools)
    calls = message.get("tool_calls") or []
    return state.append(messages=message).update(calls=calls, answer=None if calls else message["content"])


@action(reads=["messages", "calls"], writes=["messages"])
def call_tools(state: State) -> State:
    for call in state["calls"]:
        try:
            name = call["function"]["name"]
            result = {**TOOLS, "researcher": researcher}[name](**json.loads(call["function"]["arguments"]))
        except Exception as error:
            result = f"error: {error}"
        state = state.append(messages={"role": "tool", "tool_call_id": call["id"], "content": result})
    return state


@action(reads=["answer"], writes=[])
def answer(state: State) -> State:
    return state


def run(name: str, system: str, question: str, tools: list) -> str:
    app = (
        ApplicationBuilder()
        .with_actions(ask_model, call_tools, answer)
        .with_transitions(
            ("ask_model", "call_tools", expr("len(calls) > 0")),
            ("ask_model", "answer", default),
            ("call_tools", "ask_model"),
        )
        .with_state(
            messages=[{"role": "system", "content": system}, {"role": "user", "content": question}], tools=tools
        )
        .with_entrypoint("ask_model")
        .with_hooks(OpenTelemetryBridge(tracer_name=name))
        .with_identifiers(app_id=name)
        .build()
    )
    return app.run(halt_after=["answer"])[2]["answer"]


def researcher(query: str) -> str:
    """Ask the researcher."""
    with lab.logged("researcher", {"query": query}, kind="agent_as_tool"):
        return run("researcher", lab.RESEARCHER_SYSTEM, query, list(TOOLS))


try:
    lab.answer(
        run("assistant", lab.SYSTEM, lab.QUESTION, ["researcher"] if lab.SCENARIO == "delegation" else list(TOOLS))
    )
finally:
    provider.force_flush()
