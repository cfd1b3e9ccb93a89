"""Plain functions under Traceloop's decorators, and requests with httpx, which the program reports by `track_llm_call`."""

import json

import httpx
import lab
from traceloop.sdk import Traceloop
from traceloop.sdk.decorators import agent, task, tool, workflow
from traceloop.sdk.tracing.manual import LLMMessage, LLMUsage, track_llm_call

Traceloop.init(app_name="weather", disable_batch=True, api_endpoint=lab.ENDPOINT, instruments=set())
client = httpx.Client(base_url=lab.URL, headers={"Authorization": "Bearer scripted"})


@task(name="ask_model")
def asking(messages: list, tools: list) -> dict:
    with track_llm_call(vendor="openai", type="chat") as span:
        span.report_request(
            model=lab.MODEL,
            messages=[LLMMessage(role=one["role"], content=one.get("content") or "") for one in messages],
        )
        body = {"model": lab.MODEL, "messages": messages, **({"tools": tools} if tools else {})}
        reply = client.post("/chat/completions", json=body).raise_for_status().json()
        message = reply["choices"][0]["message"]
        span.report_response(reply["model"], [message.get("content") or json.dumps(message.get("tool_calls"))])
        usage = reply["usage"]
        span.report_usage(
            LLMUsage(
                prompt_tokens=usage["prompt_tokens"],
                completion_tokens=usage["completion_tokens"],
                total_tokens=usage["total_tokens"],
            )
        )
        return {key: value for key, value in message.items() if value is not None}


TOOLS = {one.__name__: tool(name=one.__name__)(one) for one in lab.TOOLS}


@agent(name="researcher")
def research(query: str) -> str:
    return lab.loop(asking, lab.RESEARCHER_SYSTEM, query, TOOLS)


@tool(name="researcher")
def researcher(query: str) -> str:
    """Ask the researcher."""
    with lab.logged("researcher", {"query": query}, kind="agent_as_tool"):
        return research(query)


@agent(name="assistant")
def assistant(question: str) -> str:
    return lab.loop(asking, lab.SYSTEM, question, {"researcher": researcher} if lab.SCENARIO == "delegation" else TOOLS)


@workflow(name="answer_question")
def main() -> str:
    return assistant(lab.QUESTION)


lab.answer(main())
