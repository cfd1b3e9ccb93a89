"""What instrumentations that no recording shows whole say, and what is true of it: no number of theirs is taken for another.

Ids and figures are made up; the habits were seen with the versions that the dialects name.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from building import Lab, S, agent, chat
from instrumented import ACTIVATIONS, TOOLS, oi, tl

pytestmark = pytest.mark.full


USAGE = ("llm_calls", "input_tokens", "output_tokens")
CALLS = "SELECT name, call_id, arguments, result, outcome FROM tool_calls ORDER BY call_no"


def logfire(id: str, at: int, to: int, asked: str, **attrs: Any) -> S:
    """A model call's span of Logfire's OpenAI integration; keyword `x__y` is attribute x.y."""
    given = {key.replace("__", "."): value for key, value in attrs.items()}
    messages = json.dumps([{"role": "user", "parts": [{"type": "text", "content": asked}]}])
    base = {"gen_ai.request.model": "gpt-4o", "gen_ai.response.model": "gpt-4o", "gen_ai.input.messages": messages}
    name = (
        "streaming response from {request_data[model]!r}"
        if at == to
        else "Chat Completion with {request_data[model]!r}"
    )
    return S(id, "a", at, to, name, base | given, scope="logfire.openai")


class TestStreamedAnswers:
    """Logfire ends the request's span when the stream begins, and records the answer in another one next to it."""

    def test_request_and_answer_are_one_call(self, lab: Lab) -> None:
        """The pair counts once, lasts until the answer was there, and the requested model stands for no answering one."""
        used = {"gen_ai__usage__input_tokens": 100, "gen_ai__usage__output_tokens": 10}
        lab.put(S("a", "", 0, 99, "work"), logfire("m", 1, 3, "hi"), logfire("n", 20, 20, "hi", **used))

        assert lab.totals(*USAGE) == (1, 100, 10)
        assert lab.rows("SELECT request_model, response_model, attempts, start_ns, end_ns FROM llm_calls") == [
            ("gpt-4o", None, 1, 1_000_000, 20_000_000)
        ]

    def test_answers_of_streams_side_by_side_are_distinguished_by_their_requests(self, lab: Lab) -> None:
        """The answer that comes first is the second request's."""
        lab.put(
            S("a", "", 0, 99, "work"), logfire("m", 1, 3, "one"), logfire("n", 2, 4, "two"),
            logfire("o", 20, 20, "two", gen_ai__usage__input_tokens=7, gen_ai__usage__output_tokens=2),
            logfire("p", 30, 30, "one", gen_ai__usage__input_tokens=100, gen_ai__usage__output_tokens=10),
        )  # fmt: skip

        assert lab.rows("SELECT start_ns, end_ns, input_tokens FROM llm_calls ORDER BY call_no") == [
            (1_000_000, 30_000_000, 100),
            (2_000_000, 20_000_000, 7),
        ]

    def test_a_request_that_failed_has_no_answer(self, lab: Lab) -> None:
        """The answer is that of the attempt that was answered."""
        failed = logfire("m", 1, 3, "hi")
        failed.error = "429"
        used = {"gen_ai__usage__input_tokens": 100, "gen_ai__usage__output_tokens": 10}
        lab.put(S("a", "", 0, 99, "work"), failed, logfire("n", 4, 6, "hi"), logfire("o", 20, 20, "hi", **used))

        assert lab.rows("SELECT outcome, input_tokens FROM llm_calls ORDER BY call_no") == [
            ("error", None),
            ("ok", 100),
        ]


def silent(id: str, at: int, to: int, model: str = "claude-sonnet-4-5") -> S:
    """A model call of an instrumentation that recorded nothing of the streamed answer."""
    zeros = {"gen_ai.usage.input_tokens": 0, "gen_ai.usage.output_tokens": 0}
    attrs = {"gen_ai.operation.name": "chat", "gen_ai.request.model": model, **zeros}
    return S(
        id,
        "",
        at,
        to,
        "anthropic.chat",
        attrs,
        scope="opentelemetry.instrumentation.anthropic",
        trace=f"{ord(id):032x}",
    )


class TestSilentInstrumentations:
    """A second instrumentation that recorded nothing of a stream has no tokens to be known by."""

    def counted(self, id: str, at: int, to: int) -> S:
        tokens = {"llm__token_count__prompt": 100 + at, "llm__token_count__completion": 10}
        return oi("langchain", "LLM", id, "a", "ChatAnthropic", at, to, llm__model_name="claude-sonnet-4-5", **tokens)

    def test_in_the_time_of_one_call_each(self, lab: Lab) -> None:
        """Each of its calls lies in the time of one call of the other scope: they are the same."""
        lab.put(agent("a"), self.counted("m", 1, 9), silent("x", 2, 4), self.counted("n", 20, 29), silent("y", 21, 22))

        assert lab.totals(*USAGE) == (2, 222 - 1, 20)

    @pytest.mark.parametrize(
        "other", [silent("y", 40, 44), silent("y", 21, 22, "claude-haiku")], ids=["apart", "model"]
    )
    def test_otherwise_nothing_says_whether_the_others_are(self, lab: Lab, other: S) -> None:
        """At another time, or of another model, it is another call, and the silent one next to a call may be one, too."""
        lab.put(agent("a"), self.counted("m", 1, 9), silent("x", 2, 4), self.counted("n", 20, 29), other)

        assert lab.totals(*USAGE) == (None, None, None)
        assert lab.rows("SELECT certain FROM llm_calls ORDER BY call_no") == [(True,), (False,), (True,), (True,)]
        assert lab.rows("SELECT row_no FROM doubts WHERE reason = 'one-call-or-two'") == [(2,)]
        assert lab.totals("llm_calls_low", "llm_calls_high", "input_tokens_low") == (3, 4, 221)


def test_the_parts_of_one_call_are_no_conversation_of_their_own(lab: Lab) -> None:
    """A plain loop under two instrumentations: the first call's tool was called, since the second call followed."""
    asks = {"llm__output_messages__0__message__role": "assistant", "llm__finish_reason": "tool_use",
            "llm__output_messages__0__message__tool_calls__0__tool_call__function__name": "pay"}  # fmt: skip
    inner = [
        chat(id, parent, at=at + 1, **{"gen_ai.response.id": id}) for id, parent, at in (("p", "m", 0), ("q", "n", 20))
    ]
    for span in inner:
        span.scope = "com.anthropic.sdk.python"
    outer = [oi("anthropic", "LLM", "m", "", "messages.create", 0, 9, **asks),
             oi("anthropic", "LLM", "n", "", "messages.create", 20, 29, llm__finish_reason="end_turn")]  # fmt: skip
    outer[1].trace = inner[1].trace = f"{2:032x}"
    lab.put(*outer, *inner)

    assert lab.totals("llm_calls") == (2,)
    assert lab.reasons() == []


def test_litellms_callback_drops_the_ids_of_tool_calls(lab: Lab) -> None:
    """What a model asked for stands under separate indices, the next request repeats it with its id and result."""
    usage = {"gen_ai.request.model": "gpt-4o", "gen_ai.response.model": "gpt-4o", "llm.is_streaming": "True",
             "gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": 9, "gen_ai.usage.output_tokens": 1}  # fmt: skip
    asked = [{"id": "c1", "type": "function", "function": {"name": "pay", "arguments": '{"eur": 5}'}}]
    later = [
        {"role": "assistant", "parts": [], "tool_calls": asked},
        {"role": "tool", "parts": [{"type": "text", "content": "paid"}], "tool_call_id": "c1"},
    ]
    lab.put(
        S("m", "", 0, 9, "litellm_request", usage | {
            "gen_ai.output.messages": '[{"role": "assistant", "parts": [], "finish_reason": "stop"}]',
            "gen_ai.response.finish_reasons": '["stop"]', "gen_ai.completion.0.function_call.name": "pay",
            "gen_ai.completion.0.function_call.arguments": '{"eur": 5}'}, scope="litellm"),
        S("n", "", 20, 29, "litellm_request", usage | {"gen_ai.input.messages": json.dumps(later)}, scope="litellm"),
    )  # fmt: skip

    assert lab.rows(CALLS) == [("pay", None, '{"eur": 5}', "paid", None)]
    assert lab.rows("SELECT DISTINCT response_model FROM llm_calls") == [(None,)]


def test_langfuses_buckets_are_added(lab: Lab) -> None:
    """Input and output are what is left when every detail is taken out: cached, audio, both tiers of Anthropic's cache."""
    usage = {"input": 1, "input_cache_read": 10, "input_audio": 100, "input_cache_creation": 0, "output": 2,
             "input_ephemeral_5m_input_tokens": 1000, "input_ephemeral_1h_input_tokens": 10000, "output_audio": 20,
             "output_reasoning": 200}  # fmt: skip
    attrs = {"langfuse.observation.type": "generation", "langfuse.observation.usage_details": json.dumps(usage)}
    lab.put(S("m", "", 0, 9, "ChatAnthropic", attrs, scope="langfuse-sdk"))

    columns = ("input_tokens", "cache_read_tokens", "cache_write_tokens", "output_tokens", "reasoning_tokens")
    assert lab.totals(*columns) == (11111, 10, 11000, 222, 200)


def test_langfuse_passes_a_providers_usage_on_as_it_came(lab: Lab) -> None:
    """OpenAI's prompt tokens have the cached ones in them."""
    usage = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110,
             "prompt_tokens_details": {"cached_tokens": 40}, "completion_tokens_details": {"reasoning_tokens": 4}}  # fmt: skip
    attrs = {"langfuse.observation.type": "generation", "langfuse.observation.usage_details": json.dumps(usage)}
    lab.put(S("m", "", 0, 9, "OpenAI-generation", attrs, scope="langfuse-sdk"))

    columns = ("input_tokens", "cache_read_tokens", "output_tokens", "reasoning_tokens")
    assert lab.totals(*columns) == (100, 40, 10, 4)


def test_crewai_of_today_writes_no_tools(lab: Lab) -> None:
    """Its scope has a module's name behind it; that no tool was called it cannot say, nor how many calls were made."""
    totals = {"gen_ai__operation__name": "invoke_agent", "gen_ai__provider__name": "crewai"}
    lab.put(
        tl("crewai.instrumentation", "w", "", "crewai.workflow", 0, 99, **totals),
        tl("crewai.instrumentation", "a", "w", "clerk.agent", 1, 98, traceloop__span__kind="agent",
           gen_ai__request__model="gpt-4o", **totals),
    )  # fmt: skip

    assert lab.totals("llm_calls", "tool_calls", "errors") == (None, None, None)
    assert lab.rows(ACTIVATIONS) == [("clerk", None, "root")]


def test_dspys_tools_are_called_by_their_name(lab: Lab) -> None:
    """`.__call__` is no part of it, arguments stand under `kwargs`, and `finish` is no tool."""
    lab.put(
        oi("dspy", "CHAIN", "r", "", "ReAct.forward", 0, 99),
        oi("dspy", "TOOL", "t", "r", "pay.__call__", 10, 12, input__value='{"kwargs": {"eur": 5}}', output__value='"ok"'),
        oi("dspy", "TOOL", "f", "r", "finish.__call__", 20, 21, input__value='{"kwargs": {}}'),
    )  # fmt: skip

    assert lab.rows(TOOLS) == [("pay", '{"eur":5}', "ok")]


def test_llama_indexs_helpers_are_no_model_calls(lab: Lab) -> None:
    """What prepares a request makes none."""
    model = {"llm__model_name": "gpt-4o"}
    lab.put(
        oi("llama_index", "LLM", "p", "", "OpenAI._prepare_chat_with_tools", 0, 1, **model),
        oi("llama_index", "LLM", "m", "", "OpenAI.achat", 2, 9, llm__token_count__prompt=100, llm__token_count__completion=10, **model),
        oi("llama_index", "LLM", "g", "", "OpenAI.get_tool_calls_from_response", 9, 10, **model),
    )  # fmt: skip

    assert lab.totals(*USAGE) == (1, 100, 10)


@pytest.mark.parametrize(("provider", "output"), [("openai", None), ("gcp.gemini", 201)])
def test_adk_counts_thoughts_apart_from_the_candidates(lab: Lab, provider: str, output: int | None) -> None:
    """Of another model than Gemini they are counted twice: what was put out is unknown."""
    attrs = {
        "gen_ai.provider.name": provider,
        "gen_ai.usage.output_tokens": 201,
        "gen_ai.usage.reasoning.output_tokens": 64,
    }
    span = chat("m", **attrs)
    span.scope = "gcp.vertex.agent"
    lab.put(span)

    assert lab.totals("input_tokens", "output_tokens") == (100, output)


def test_an_answer_that_broke_off_failed(lab: Lab) -> None:
    """The conventions' finish reason `error` says so where the span's status does not."""
    lab.put(chat("m", **{"gen_ai.response.finish_reasons": ["error"], "gen_ai.usage.input_tokens": None,
                         "gen_ai.usage.output_tokens": None}))  # fmt: skip

    assert lab.totals("llm_calls", "errors") == (0, 1)


def test_a_model_name_of_openinference_alone_records_no_answer(lab: Lab) -> None:
    """Where nothing says which model was asked for, the one name may be the request's."""
    lab.put(oi("agno", "LLM", "m", "", "OpenAIChat.invoke", 0, 5, llm__model_name="gpt-4o", llm__token_count__prompt=9))

    assert lab.rows("SELECT request_model, response_model FROM llm_calls") == [("gpt-4o", None)]


def test_a_model_name_of_openinference_without_any_answer_is_the_requested_one(lab: Lab) -> None:
    """Its instrumentation of OpenAI's SDK overwrites it when the answer is read, and this one never was."""
    lab.put(oi("openai", "LLM", "m", "", "Response", 0, 5, llm__model_name="gpt-4o", output__value="<coroutine object>",
               llm__invocation_parameters={"model": "gpt-4o"}))  # fmt: skip

    assert lab.rows("SELECT request_model, response_model FROM llm_calls") == [("gpt-4o", None)]


@pytest.mark.parametrize("word", ["ParentCommand", "ValueError"])
def test_a_graphs_jump_is_no_failure(lab: Lab, word: str) -> None:
    """LangSmith and MLflow name what travelled as an exception in its event only."""
    said = {"exception.type": "Exception", "exception.message": f"{word}(Command(graph='__parent__'))"}
    jump = {"exception.type": f"langgraph.errors.{word}", "exception.message": "Command(graph='__parent__')"}
    lab.put(
        chat("m", at=40),
        S("s", "", 0, 9, "tools", {"langsmith.span.kind": "chain"}, events=[("exception", said)], error="", scope="langsmith"),
        S("f", "", 20, 29, "tools", {"mlflow.spanType": '"CHAIN"'}, events=[("exception", jump)], error="Command(graph='x')"),
    )  # fmt: skip

    assert lab.totals("errors") == (0 if word == "ParentCommand" else 2,)
