"""A program whose developer runs sub-agents in threads, and writes spans with attributes of the program's own names.

The context is carried into the threads; each request is an httpx call, which the program's own span surrounds.
"""

import contextvars
import json
from concurrent.futures import ThreadPoolExecutor

import httpx
import lab
from opentelemetry import trace
from opentelemetry.trace import SpanKind, StatusCode

provider = lab.export()
tracer = trace.get_tracer("crew")
http = httpx.Client(base_url=lab.URL, timeout=30, headers={"Authorization": "Bearer scripted"})
pool = ThreadPoolExecutor(max_workers=4)


def in_thread(function, *args):
    return pool.submit(contextvars.copy_context().run, function, *args)


def completion(worker: str, messages: list, tools: list) -> dict:
    with tracer.start_as_current_span(f"{worker}: think", kind=SpanKind.CLIENT) as span:
        span.set_attribute("crew.step", "llm")
        span.set_attribute("crew.model.requested", lab.MODEL)
        response = http.post("/chat/completions", json={"model": lab.MODEL, "messages": messages, "tools": tools})
        span.set_attribute("http.response.status_code", response.status_code)
        if response.is_error:
            span.set_status(StatusCode.ERROR, response.text)
            raise RuntimeError(f"model: HTTP {response.status_code}")
        body = response.json()
        span.set_attribute("crew.model.used", body["model"])
        span.set_attribute("crew.usage", json.dumps(body["usage"]))
        span.set_attribute("crew.finish", body["choices"][0]["finish_reason"])
        message = {key: value for key, value in body["choices"][0]["message"].items() if value is not None}
        span.set_attribute("crew.reply", json.dumps(message))
        return message


def tool_job(worker: str, tools: dict, call: dict) -> dict:
    name, arguments = call["function"]["name"], call["function"]["arguments"]
    with tracer.start_as_current_span(f"{worker}: {name}") as span:
        span.set_attribute("crew.step", "tool")
        span.set_attribute("crew.tool", name)
        span.set_attribute("crew.tool.args", arguments)
        span.set_attribute("crew.tool.call", call["id"])
        try:
            said = tools[name](**json.loads(arguments))
            span.set_attribute("crew.tool.ok", True)
        except Exception as error:
            said = f"{type(error).__name__}: {error}"
            span.set_attribute("crew.tool.ok", False)
            span.record_exception(error)
        span.set_attribute("crew.tool.returned", said)
        return {"role": "tool", "tool_call_id": call["id"], "content": said}


def work(worker: str, system: str, job: str, tools: dict) -> str:
    with tracer.start_as_current_span(f"{worker}: work") as span:
        span.set_attribute("crew.step", "worker")
        span.set_attribute("crew.worker", worker)
        span.set_attribute("crew.job", job)
        messages = [{"role": "system", "content": system}, {"role": "user", "content": job}]
        while True:
            message = completion(worker, messages, list(map(lab.schema, tools.values())))
            messages.append(message)
            if not message.get("tool_calls"):
                span.set_attribute("crew.outcome", message["content"])
                return message["content"]
            jobs = [in_thread(tool_job, worker, tools, call) for call in message["tool_calls"]]
            messages.extend(one.result() for one in jobs)


TOOLS = {one.__name__: one for one in lab.TOOLS}


def researcher(query: str) -> str:
    """Ask the researcher."""
    with lab.logged("researcher", {"query": query}, kind="agent_as_tool"):
        return in_thread(work, "researcher", lab.RESEARCHER_SYSTEM, query, TOOLS).result()


try:
    lab.answer(
        work(
            "assistant", lab.SYSTEM, lab.QUESTION, {"researcher": researcher} if lab.SCENARIO == "delegation" else TOOLS
        )
    )
finally:
    pool.shutdown()
    provider.shutdown()
