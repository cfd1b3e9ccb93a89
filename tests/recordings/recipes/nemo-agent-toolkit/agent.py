"""NVIDIA's NeMo Agent Toolkit: its agent that calls tools, over LangChain, with its own spans."""

import asyncio
import typing
from pathlib import Path

import lab
import yaml
from nat.builder.builder import Builder
from nat.builder.function_info import FunctionInfo
from nat.cli.register_workflow import register_function
from nat.data_models.function import FunctionBaseConfig
from nat.runtime.loader import load_workflow


def offer(tool) -> None:
    config = type(tool.__name__, (FunctionBaseConfig,), {"__module__": __name__}, name=tool.__name__)
    kinds = typing.get_type_hints(tool)

    @register_function(config_type=config)
    async def made(_config: config, _builder: Builder):
        scope: dict = {"tool": tool}
        (parameter,) = (name for name in kinds if name != "return")
        exec(
            f"async def call({parameter}: {kinds[parameter].__name__}) -> str:\n    return tool({parameter}={parameter})",
            scope,
        )
        yield FunctionInfo.from_fn(scope["call"], description=tool.__doc__)


for each in lab.TOOLS:
    offer(each)
functions = {tool.__name__: {"_type": tool.__name__} for tool in lab.TOOLS}
agent = {"_type": "tool_calling_agent", "llm_name": "llm", "handle_tool_errors": True, "max_iterations": 6}
if lab.SCENARIO == "delegation":
    functions["researcher"] = agent | {
        "tool_names": [tool.__name__ for tool in lab.TOOLS],
        "description": "Finds things out",
    }
tools = ["researcher"] if lab.SCENARIO == "delegation" else list(functions)
config = {
    "general": {
        "telemetry": {
            "tracing": {"otlp": {"_type": "otelcollector", "endpoint": f"{lab.ENDPOINT}/v1/traces", "project": "agent"}}
        }
    },
    "llms": {
        "llm": {
            "_type": "openai",
            "model_name": lab.MODEL,
            "api_key": "scripted",
            "base_url": lab.URL,
            "max_retries": 1,
        }
    },
    "functions": functions,
    "workflow": agent | {"tool_names": tools},
}


async def main() -> None:
    Path("config.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    async with load_workflow("config.yaml") as workflow, workflow.run(lab.QUESTION) as runner:
        lab.answer(await runner.result(to_type=str))


asyncio.run(main())
