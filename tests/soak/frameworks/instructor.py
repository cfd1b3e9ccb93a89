# /// script
# dependencies = [
#     "instructor==1.17.0",
#     "openinference-instrumentation-instructor==0.1.29",
#     "openinference-instrumentation-openai==0.1.66",
#     "opentelemetry-sdk==1.45.2",
#     "opentelemetry-exporter-otlp-proto-http==1.45.2",
# ]
# [tool.soak]
# instrumentations = ["openinference", "openinference,openai"]
# named-agents = false
# ///
"""Answers of a form that instructor checks; it asks again where one does not fit."""

from __future__ import annotations

from typing import Annotated, Any

import instructor
from agent_program import MODEL, Job, main, system
from openai import OpenAI
from pydantic import BaseModel, Field


class final_result(BaseModel):  # noqa: N801  # the name of the tool
    """The answer."""

    value: Annotated[str, Field(min_length=1)]


def run(job: Job) -> str | None:
    client = instructor.from_openai(OpenAI(base_url=job.url, api_key="none"))
    messages: list[Any] = [{"role": "system", "content": system("assistant")}]
    said = None
    for turn in job.turns:
        messages.append({"role": "user", "content": turn})
        said = client.create(response_model=final_result, model=MODEL, messages=messages, max_retries=2).value
        messages.append({"role": "assistant", "content": said})
    return said


def _openinference(provider: Any) -> None:
    from openinference.instrumentation.instructor import InstructorInstrumentor

    InstructorInstrumentor().instrument(tracer_provider=provider)


def _openai(provider: Any) -> None:
    from openinference.instrumentation.openai import OpenAIInstrumentor

    OpenAIInstrumentor().instrument(tracer_provider=provider)


if __name__ == "__main__":
    main(run, {"openinference": _openinference, "openai": _openai}, together=2)
