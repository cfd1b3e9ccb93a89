"""A program whose developer traces functions with a decorator: arguments and what was returned, as JSON, and what the model used."""

import functools
import inspect
import json

import lab
from openai import OpenAI
from opentelemetry import trace

provider = lab.export()
tracer = trace.get_tracer(__name__)
client = OpenAI(max_retries=0)


def traced(component: str):
    """Trace a function."""

    def decorate(function):
        @functools.wraps(function)
        def call(*args, **kwargs):
            with tracer.start_as_current_span(function.__name__) as span:
                span.set_attribute("component", component)
                arguments = inspect.signature(function).bind(*args, **kwargs).arguments
                span.set_attribute("input", json.dumps(arguments, default=str))
                result = function(*args, **kwargs)
                span.set_attribute("output", result if isinstance(result, str) else json.dumps(result, default=str))
                return result

        return call

    return decorate


@traced("llm")
def chat(messages: list, tools: list) -> dict:
    response = client.chat.completions.create(model=lab.MODEL, messages=messages, tools=tools)
    trace.get_current_span().set_attributes(
        {
            "model": response.model,
            "prompt_tokens": response.usage.prompt_tokens,
            "completion_tokens": response.usage.completion_tokens,
            "total_tokens": response.usage.total_tokens,
        }
    )
    return response.choices[0].message.model_dump(exclude_none=True)


TOOLS = {one.__name__: traced("tool")(one) for one in lab.TOOLS}


@traced("tool")
def researcher(query: str) -> str:
    """Ask the researcher."""
    with lab.logged("researcher", {"query": query}, kind="agent_as_tool"):
        return run_agent("researcher", lab.RESEARCHER_SYSTEM, query)


@traced("agent")
def run_agent(name: str, system: str, question: str) -> str:
    trace.get_current_span().set_attribute("agent_name", name)
    delegating = name == "assistant" and lab.SCENARIO == "delegation"
    return lab.loop(chat, system, question, {"researcher": researcher} if delegating else TOOLS)


try:
    lab.answer(run_agent("assistant", lab.SYSTEM, lab.QUESTION))
finally:
    provider.shutdown()
