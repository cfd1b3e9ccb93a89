# /// script
# dependencies = [
#     "smolagents[openai]==1.26.0",
#     "openinference-instrumentation-smolagents==0.1.43",
#     "opentelemetry-instrumentation-genai-smolagents==1.2b0",
#     "opentelemetry-instrumentation-genai-openai==1.3b0",
#     "opentelemetry-sdk==1.45.2",
#     "opentelemetry-exporter-otlp-proto-http==1.45.2",
# ]
# [tool.soak]
# instrumentations = ["openinference", "genai"]
# helpers = ["managed"]
# ///
"""Tool-calling agents of smolagents; one may manage another."""

from __future__ import annotations

from typing import Any

from agent_program import MAX_STEPS, MODEL, TOOLS, Job, logged, main, schema, system
from smolagents import OpenAIModel, Tool, ToolCallingAgent


def _tool(name: str) -> Tool:
    function = TOOLS[name]
    inputs = {key: {**kind, "description": key} for key, kind in schema(function)["properties"].items()}
    names = ", ".join(inputs)
    text = f"def forward(self, {names}):\n    return function({', '.join(f'{key}={key}' for key in inputs)})\n"
    space: dict[str, Any] = {"function": function}
    exec(text, space)  # the class is made from the signature of `forward`
    members = {
        "name": name, "description": function.__doc__, "inputs": inputs, "output_type": "string", "forward": space["forward"],
        "skip_forward_signature_validation": True,
    }  # fmt: skip
    return type(name, (Tool,), members)()


class _Managed(ToolCallingAgent):
    def __call__(self, task: str, **more: Any) -> Any:
        """Work for another agent, as a tool that is logged."""

        def researcher(task: str) -> Any:
            return ToolCallingAgent.__call__(self, task, **more)

        return logged(researcher)(task=task)


def run(job: Job) -> str | None:
    model = OpenAIModel(model_id=MODEL, api_base=job.url, api_key="none")
    tools = [_tool(name) for name in TOOLS]
    more: dict[str, Any] = {"max_steps": MAX_STEPS, "verbosity_level": -1, "stream_outputs": job.stream}
    managed = []
    if job.helper == "managed":
        said = {"name": "researcher", "description": "Researches.", "instructions": system("researcher")}
        managed = [_Managed(tools[:2], model, **said, **more)]
    agent = ToolCallingAgent(
        tools, model, name="assistant", instructions=system("assistant"), managed_agents=managed, **more
    )
    output = None
    for number, turn in enumerate(job.turns):
        output = agent.run(turn, reset=number == 0)
    return None if output is None else str(output)


def _openinference(provider: object) -> None:
    from openinference.instrumentation.smolagents import SmolagentsInstrumentor

    SmolagentsInstrumentor().instrument(tracer_provider=provider)


def _genai(provider: object) -> None:
    from opentelemetry.instrumentation.genai.openai import OpenAIInstrumentor
    from opentelemetry.instrumentation.genai.smolagents import SmolagentsInstrumentor

    OpenAIInstrumentor().instrument(tracer_provider=provider)
    SmolagentsInstrumentor().instrument(tracer_provider=provider)


if __name__ == "__main__":
    main(run, {"openinference": _openinference, "genai": _genai}, together=2)
