"""Faults strike the calls that a case names, and what did not strike is said."""

from __future__ import annotations

import json
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from tapes import chat, post, provider

from clawtrace._scripted_model.script import Script, ScriptedStep
from clawtrace._scripted_model.server import ScriptedModel
from clawtrace.cassettes.faults import Faults, before, of_run
from clawtrace.cassettes.mcp_calls import McpAnswer, McpCalls, McpRequest, with_mcp
from clawtrace.cassettes.playing import Playback
from clawtrace.config.cases.case import FaultConfig
from clawtrace.testing import scripted_model

if TYPE_CHECKING:  # a second to import, which only the worker that runs these tests spends
    import openai

CALL = McpRequest("shop", "tools/call", {"name": "search", "arguments": {}})


def faults(*entries: dict) -> Faults:
    return Faults([FaultConfig.model_validate(one) for one in entries])


@contextmanager
def asked_with(*entries: dict, retries: int = 0):
    """An OpenAI client of a run whose provider always answers, and the run's faults."""
    import openai

    found = faults(*entries)
    with provider("All is well here.") as address:
        run = Playback(None, {"OPENAI_BASE_URL": f"{address}/v1"}, found).start()
        try:
            with closing(openai.OpenAI(base_url=f"{run.url}/openai/v1", api_key="k", max_retries=retries)) as client:
                yield client, found
        finally:
            run.stop()


def ask(client: openai.OpenAI, **more):
    return client.chat.completions.create(model="m", messages=[{"role": "user", "content": "well?"}], **more)


def test_a_status_is_what_the_sdk_takes_it_for_and_strikes_its_call_alone():
    """The second of three calls is refused with the provider's words, and how long to wait."""
    import openai

    with asked_with({"model": {"on": 2, "status": 429, "retry_after": 1}}) as (client, found):
        ask(client)
        with pytest.raises(openai.RateLimitError) as caught:
            ask(client)
        ask(client)

    assert caught.value.response.headers["retry-after"] == "1"
    assert found.not_struck() == []


def test_a_connection_that_breaks_is_tried_again_by_the_sdk():
    """The SDK's own retry is a call of its own, which the fault leaves alone."""
    with asked_with({"model": {"on": 1, "cut_after": 0}}, retries=1) as (client, found):
        assert ask(client).choices[0].message.content == "All is well here."

    assert found.said() == "1 call struck by a fault"


def test_a_stream_is_cut_after_the_events_that_are_said():
    """What came before the cut has come; then the client sees that the rest is missing."""
    with asked_with({"model": {"cut_after": 2, "slow_ms": 1}}) as (client, _):
        events = iter(ask(client, stream=True))
        got = [next(events), next(events)]
        with pytest.raises(Exception, match=r"(?i)incomplete|closed|connection"):
            list(events)

    assert len(got) == 2


def test_a_call_that_a_fault_answers_came_to_the_server():
    """Else an agent whose model only ever fails would seem to ask another address."""
    with provider("fine") as address:
        run = Playback(None, {"OPENAI_BASE_URL": f"{address}/v1"}, faults({"model": {"on": 1, "body": "{}"}})).start()
        try:
            for _ in range(2):
                post(run.url, chat("well?"))
        finally:
            run.stop()

    assert run.asked == 2


def test_a_stream_that_is_shorter_than_the_cut_breaks_at_its_end():
    """A fault that struck and changed nothing would be a vacuous pass."""
    with (
        asked_with({"model": {"cut_after": 500}}) as (client, _),
        pytest.raises(Exception, match=r"(?i)incomplete|closed|connection"),
    ):
        list(ask(client, stream=True))


def test_a_body_stands_in_place_of_the_answer():
    """An answer that is no JSON, or empty, is the client's to deal with."""
    with (
        asked_with({"model": {"body": '{"id": "x", "cho'}}) as (client, _),
        pytest.raises(json.JSONDecodeError),
    ):
        ask(client).choices[0].message.content.strip()


def test_a_model_server_of_the_agent_asks_the_run():
    """A scripted model that a case starts around its agent counts in the run, and fails as the run says."""
    found = faults({"model": {"on": 1, "status": 503}})
    run = with_mcp(Playback(None, {}, found)).start()
    model = ScriptedModel(Script(steps=(ScriptedStep(text="yes", repeat=True),)))
    model.around = partial(before, of_model=of_run(run.url))
    model.start()
    try:
        statuses = [post(model.url, chat("well?"), "/v1/chat/completions")[0] for _ in range(2)]
    finally:
        model.stop()
        run.stop()

    assert statuses == [503, 200]
    assert run.asked == 2
    assert found.not_struck() == []


def test_a_tool_fails_on_its_calls_and_no_server_is_asked():
    """An error, an empty result and a delay, each on its call; all else is the server's."""
    playback = Playback(None, {}, faults(
        {"tool": "search", "on": 1, "error": "timeout"},
        {"tool": "glob:se*", "on": [2, 4], "result": ""},
        {"tool": "search", "on": 3, "delay_ms": 40},
    ))  # fmt: skip
    calls = McpCalls(playback)
    first, second, third, fourth, fifth = (calls.answer(CALL) for _ in range(5))

    assert first == McpAnswer(result={"content": [{"type": "text", "text": "timeout"}], "isError": True})
    assert second == fourth == McpAnswer(result={"content": [], "isError": False})
    assert third == McpAnswer(delay_s=0.04)
    assert fifth is None
    assert playback.faults.not_struck() == []


def test_a_tool_with_another_result_promises_no_form_of_it():
    """A client that holds results against the tool's schema would refuse what the fault returns before the agent sees it."""
    calls = McpCalls(Playback(None, {}, faults({"tool": "search", "result": "{"})))
    tools = [{"name": name, "outputSchema": {"type": "object"}} for name in ("search", "order")]
    shown = calls.answered(McpRequest("shop", "tools/list", {}), McpAnswer(result={"tools": tools}))

    assert shown.result == {"tools": [{"name": "search"}, tools[1]]}


def test_chance_strikes_the_same_calls_in_each_run():
    """A rate is a share of the calls, by the seed; what strikes by chance need not strike, if it could."""

    def struck(seed: int) -> list[bool]:
        found = faults({"tool": "search", "error": "no", "rate": 0.3, "seed": seed})
        return [found.of_tool("search") is not None for _ in range(200)]

    assert struck(7) == struck(7) != struck(8)
    assert 40 < sum(struck(7)) < 80
    seldom = faults({"tool": "search", "error": "no", "rate": 0.0001})
    assert "it was never called" in seldom.not_struck()[0]
    assert seldom.of_tool("search") is None
    assert seldom.not_struck() == []


def test_what_did_not_strike_is_said_with_how_often_it_was_called():
    """A fault that had to strike and did not: which, and what was called instead."""
    found = faults(
        {"tool": "search", "on": 3, "error": "no"},
        {"tool": "order", "error": "no"},
        {"model": {"on": [1, 2], "status": 500}},
    )
    found.of_tool("search")
    found.of_model()

    assert found.not_struck() == [
        "the fault of the tool `search` on call 3 did not strike: it was called 1 time through `clawtrace mcp-proxy`",
        "the fault of the tool `order` did not strike: it was never called through `clawtrace mcp-proxy`",
        "the fault of the model on call 1, 2 did not strike: it was called 1 time",
    ]


def test_a_call_that_a_fault_delays_is_not_asked_after_the_run(monkeypatch):
    """The agent was ended while it waited: its provider is not asked for what nobody reads."""
    import openai

    slow, came = faults({"model": {"delay_ms": 60_000}}), threading.Event()
    of_model = slow.of_model
    monkeypatch.setattr(slow, "of_model", lambda: (of_model(), came.set())[0])
    with scripted_model([{"text": "Late."}]) as model, ThreadPoolExecutor() as threads:
        run = Playback(None, {"OPENAI_BASE_URL": f"{model.url}/v1"}, slow).start()
        with closing(openai.OpenAI(base_url=f"{run.url}/openai/v1", api_key="k", max_retries=0)) as client:
            asked = threads.submit(ask, client)
            assert came.wait(20)
            run.stop()
            with pytest.raises(openai.APIConnectionError):
                asked.result(20)

    assert model.log == []
