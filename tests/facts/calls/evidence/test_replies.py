"""Which model answered, as a step after the call states it."""

from __future__ import annotations

import pytest
from building import Lab, S
from instrumented import oi

from clawtrace.facts.calls.evidence.stream_answers import with_replies
from clawtrace.facts.spans.span import Span

MODEL = "gpt-4o-2024-08-06"


def call(start: int, last: int = 0, model: str = "gpt-4o", **facts: object) -> Span:
    return Span(start_ns=start, end_ns=last or start + 1, kind="llm", request_model=model)._replace(**facts)


def reply(start: int, model: str | None = MODEL) -> Span:
    return Span(start_ns=start, kind="chain", role="reply", response_model=model)


def answered(*spans: Span) -> list[str | None]:
    """The responding models of the calls, all of them below one span."""
    found = with_replies((Span(), *spans), (None, *(0 for _ in spans)))
    return [span.response_model for span in found if span.kind == "llm"]


@pytest.mark.parametrize(
    ("spans", "models"),
    [
        ([call(1), reply(3), call(4), reply(6, "gpt-4o")], [MODEL, "gpt-4o"]),
        ([call(1, failed=True), call(2), reply(4)], [None, MODEL]),
        ([call(1), call(2), reply(4)], [None, None]),  # whose of the two it is
        ([call(1, 9), reply(4)], [None]),  # not yet answered
        ([call(1, model="o3"), reply(4)], [None]),  # no version of what was asked for
        ([call(1, response_model="gpt-4o"), reply(4)], ["gpt-4o"]),
        ([call(1), reply(3, None), reply(4)], [None]),
    ],
)
def test_a_reply_is_that_of_the_one_call_before_it(spans: list[Span], models: list[str | None]) -> None:
    assert answered(*spans) == models


def parsed(*said: str) -> S:
    """The step in which LlamaIndex reads an answer that holds these texts."""
    raw = {"id": "chatcmpl-1", "choices": [{"message": {"content": text}} for text in said]}
    raw |= {"created": 1, "model": MODEL, "object": "chat.completion", "usage": {"prompt_tokens": 9}}
    event = {"ev": f"AgentOutput(response=None, current_agent_name='assistant', raw={raw!r}, tool_calls=[])"}
    return oi("llama_index", "CHAIN", "p", "w", "AgentWorkflow.parse_agent_output", 6, 7, input__value=event)


@pytest.mark.parametrize(
    ("said", "model"),
    [
        ("It is 21 degrees.", MODEL),
        (repr({"created": 1, "model": "gpt-4o-mini", "object": "chat.completion"}), None),
    ],
)
def test_what_the_model_writes_names_no_model(lab: Lab, said: str, model: str | None) -> None:
    step = oi("llama_index", "CHAIN", "s", "w", "AgentWorkflow.run_agent_step", 1, 5)
    asked = oi("llama_index", "LLM", "m", "s", "OpenAI.achat", 2, 4, llm__model_name="gpt-4o")
    lab.put(oi("llama_index", "CHAIN", "w", "", "AgentWorkflow.run", 0, 9), step, asked, parsed(said))

    assert lab.rows("SELECT request_model, response_model FROM llm_calls") == [("gpt-4o", model)]
