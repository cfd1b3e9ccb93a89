# /// script
# dependencies = [
#     "openai==3.54.0",
#     "traceloop-sdk==0.62.4",
#     "httpx==0.28.1",
#     "opentelemetry-exporter-otlp-proto-http==1.45.1",
# ]
# [tool.soak]
# instrumentations = ["traceloop"]
# helpers = ["tool"]
# [tool.soak.environments]
# laminar = ["openai==3.54.0", "lmnr==0.8.2", "opentelemetry-exporter-otlp-proto-http==1.45.1"]
# ///
"""The loop of `openai_sdk.py` with the decorators of an SDK on its functions: the request, the agents, the tools."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from agent_program import TOOLS, Job, NamesRun, logged, main, system
from openai import OpenAI

sys.path.append(str(Path(__file__).parent))  # after the packages
from openai_sdk import answer

Decorate = Callable[[str, str, Callable[..., Any]], Callable[..., Any]]
"""What an SDK makes of a function: its kind (`workflow`, `agent`, `tool`), its name, and the function."""
SDK: dict[str, Decorate] = {}


def run(job: Job) -> str | None:
    client, decorated = OpenAI(base_url=job.url, api_key="none"), SDK["decorate"]
    tools = {name: decorated("tool", name, tool) for name, tool in TOOLS.items()}
    messages: list[Any] = [{"role": "system", "content": system("assistant")}]

    def research(question: str) -> str:
        asked = [{"role": "system", "content": system("researcher")}]
        return str(answer(client, asked, question, dict(list(tools.items())[:2]), job))

    def ask_researcher(question: str) -> str:
        """Ask the researcher."""
        return str(decorated("agent", "researcher", research)(question))

    if job.helper == "tool":
        tools["ask_researcher"] = decorated("tool", "ask_researcher", logged(ask_researcher))
    assistant = decorated("agent", "assistant", lambda question: answer(client, messages, question, tools, job))
    handle = decorated("workflow", "answer", lambda question: assistant(question))
    return [handle(turn) for turn in job.turns][-1]


def _traceloop(_: Any) -> None:
    from opentelemetry.sdk.trace import SpanProcessor
    from traceloop.sdk import Traceloop
    from traceloop.sdk.decorators import agent, tool, workflow

    # The spans are exported by the provider that is there.
    Traceloop.init(app_name="soak", processor=SpanProcessor(), telemetry_enabled=False)
    of_kind = {"workflow": workflow, "agent": agent, "tool": tool}
    SDK["decorate"] = lambda kind, name, function: of_kind[kind](name=name)(function)


def _laminar(_: Any) -> None:
    import lmnr.opentelemetry_lib.tracing
    from lmnr import Laminar, observe

    address = urlsplit(os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"])
    Laminar.initialize(
        project_api_key="none", base_url=f"http://{address.hostname}", http_port=address.port, force_http=True
    )
    lmnr.opentelemetry_lib.tracing._tracer_provider.add_span_processor(NamesRun())

    def decorate(kind: str, name: str, function: Callable[..., Any]) -> Any:
        return observe(name=name, span_type="TOOL" if kind == "tool" else "DEFAULT")(function)

    SDK["decorate"] = decorate


if __name__ == "__main__":
    main(run, {"traceloop": _traceloop, "laminar": _laminar}, together=3)
