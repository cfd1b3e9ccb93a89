"""Frameworks whose spans record less, or more often, than what happened: results that name nothing, usage recorded twice.

Ids and figures are made up; the habits were seen with the versions that the dialects name.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from building import Lab, S, agent, chat
from instrumented import ACTIVATIONS, TOOLS, oi, tl

pytestmark = pytest.mark.full


EXECUTED = "SELECT name, outcome FROM tool_calls ORDER BY call_no"


class TestResultsThatNameNothing:
    """OpenInference's spans of Haystack keep the roles of a request's messages, and neither ids nor names of results."""

    @staticmethod
    def asks(id: str, parent: str, at: int, before: int, *tools: str) -> S:
        """A model call that was sent this many results `before`, and asks for tools."""
        sent = {f"llm__input_messages__{number}__message__role": "tool" for number in range(before)}
        said = {
            f"llm__output_messages__0__message__tool_calls__{number}__tool_call__function__name": name
            for number, name in enumerate(tools)
        }
        return oi("haystack", "LLM", id, parent, "OpenAIChatGenerator.run", at, at + 5, **sent,
                  llm__output_messages__0__message__role="assistant", llm__output_messages__0__message__content="well", **said)  # fmt: skip

    def test_as_many_as_were_asked_for_are_theirs(self, lab: Lab) -> None:
        """Both calls were answered: attempts; what with, and so how they ended, no message says."""
        lab.put(oi("haystack", "CHAIN", "p", "", "Pipeline.run", 0, 99), self.asks("m", "p", 1, 0, "look", "pay"),
                self.asks("n", "p", 20, 2))  # fmt: skip

        assert lab.rows(EXECUTED) == [("look", None), ("pay", None)]
        assert lab.totals("tool_calls", "errors_low", "errors_high") == (2, 0, 2)

    def test_of_fewer_nothing_says_which_ran(self, lab: Lab) -> None:
        """One of two tools answered."""
        lab.put(oi("haystack", "CHAIN", "p", "", "Pipeline.run", 0, 99), self.asks("m", "p", 1, 0, "look", "pay"),
                self.asks("n", "p", 20, 1))  # fmt: skip

        assert lab.totals("tool_calls", "errors") == (None, None)

    def test_a_request_without_any_result_is_a_possible_attempt(self, lab: Lab) -> None:
        """The model is called again, and no tool has answered: the program may have told the result in other words."""
        lab.put(oi("haystack", "CHAIN", "p", "", "Pipeline.run", 0, 99), self.asks("m", "p", 1, 0, "look"),
                oi("haystack", "LLM", "n", "p", "OpenAIChatGenerator.run", 20, 25, llm__input_messages__0__message__role="user",
                   llm__input_messages__0__message__content="go on", llm__output_messages__0__message__role="assistant",
                   llm__output_messages__0__message__content="no"))  # fmt: skip

        assert lab.rows("SELECT name, outcome, certain FROM tool_calls") == [("look", None, False)]
        assert lab.rows("SELECT relation, row_no, reason FROM doubts WHERE reason = 'asked-not-seen'") == [
            ("tool_calls", 1, "asked-not-seen")
        ]
        assert lab.totals("tool_calls_low", "tool_calls_high") == (0, 1)


@pytest.mark.parametrize(
    "http", [(), (S("h", "p", 1, 5, "POST", {"http.request.method": "POST"}),)], ids=["alone", "http"]
)
def test_steps_alone_do_not_tell_that_nothing_failed(lab: Lab, http: tuple[S, ...]) -> None:
    """OpenInference sees no model call and no tool of Haystack 3's agents, whether or not requests are traced."""
    lab.put(oi("haystack", "CHAIN", "p", "", "Agent.run", 0, 99), *http)

    assert lab.totals("llm_calls", "tool_calls", "errors") == (None, None, None)


def haystack(id: str, parent: str, name: str, at: int, to: int, error: str | None = None, **attrs: Any) -> S:
    """A span of Haystack's own; keyword `x__y` is attribute haystack.x.y."""
    words = {f"haystack.{key.replace('__', '.')}": value for key, value in attrs.items()}
    return S(id, parent, at, to, f"haystack.{name}", words, scope="haystack", error=error)


class TestHaystack:
    """Haystack's own spans."""

    def test_its_own_failure_at_start_is_none_of_the_agents(self, lab: Lab) -> None:
        """Tracing is switched on twice, the first time while `haystack` is imported halfway."""
        lab.put(haystack("e", "", "tracing.auto_enable", 0, 1, error="ImportError: partially initialized module"),
                chat("w", at=2))  # fmt: skip

        assert lab.totals("errors") == (0,)

    def test_tools_of_version_2_are_unknown_without_content(self, lab: Lab) -> None:
        """An agent without tool spans has not called none."""
        lab.put(haystack("a", "", "agent.run", 0, 9, agent__max_steps=9),
                haystack("m", "a", "component.run", 1, 3, component__type="OpenAIChatGenerator"))  # fmt: skip

        assert lab.totals("llm_calls", "tool_calls", "errors") == (1, None, None)

    def test_tools_of_version_3_have_spans(self, lab: Lab) -> None:
        """That one failed is an attribute; no content is needed."""
        lab.put(haystack("c", "", "component.run", 0, 10, component__type="Agent", component__name="clerk"),
                haystack("a", "c", "agent.run", 0, 9, agent__state_schema='{"tool_call_counts": {}}'),
                haystack("m", "a", "agent.step.llm", 1, 3),
                haystack("t", "a", "agent.step.tool", 4, 5, tool__name="pay", tool__error=True))  # fmt: skip

        assert lab.rows(TOOLS) == [("pay", None, "error")]
        assert lab.totals("llm_calls", "tool_calls", "errors") == (1, 1, 1)
        assert lab.rows(ACTIVATIONS) == [("clerk", None, "root")]

    def test_anthropics_usage_has_the_cached_tokens_apart_from_the_others(self, lab: Lab) -> None:
        """Only the totals have OpenAI's names."""
        usage = {
            "prompt_tokens": 10,
            "completion_tokens": 2,
            "cache_read_input_tokens": 100,
            "cache_creation_input_tokens": 0,
        }
        replies = {"replies": [{"role": "assistant", "meta": {"usage": usage}, "content": [{"text": "hi"}]}]}
        lab.put(haystack("m", "", "component.run", 1, 3, component__type="AnthropicChatGenerator",
                         component__output=json.dumps(replies)))  # fmt: skip

        assert lab.totals("input_tokens", "cache_read_tokens") == (110, 100)

    def test_components_that_ask_a_model_themselves(self, lab: Lab) -> None:
        """How many calls an evaluator makes no span says."""
        lab.put(haystack("m", "", "component.run", 1, 3, component__type="OpenAIChatGenerator"),
                haystack("e", "", "component.run", 4, 9, component__type="FaithfulnessEvaluator"))  # fmt: skip

        assert lab.totals("llm_calls") == (None,)


class TestAg2:
    """AG2's middleware writes the usage of everything a second time."""

    @staticmethod
    def used(id: str, parent: str, kind: str, at: int, tokens: int, **attrs: Any) -> S:
        words = {"ag2.span.type": "usage", "ag2.usage.kind": kind, "gen_ai.response.model": "gpt-4o",
                 "gen_ai.usage.input_tokens": tokens, "gen_ai.usage.output_tokens": 1}  # fmt: skip
        return S(id, parent, at, at, f"record_usage {kind}", words | attrs, scope="opentelemetry.instrumentation.ag2")

    @staticmethod
    def its(span: S) -> S:
        span.scope = "opentelemetry.instrumentation.ag2"
        return span

    def test_usage_is_no_call(self, lab: Lab) -> None:
        """The span next to a model call repeats it."""
        lab.put(
            self.its(agent("a", agent="clerk")),
            self.its(chat("m", "a", at=1)),
            self.used("u", "a", "model_call", 6, 100),
        )

        assert lab.totals("llm_calls", "input_tokens") == (1, 100)

    @pytest.mark.parametrize("whose", ["clerk", "helper"])
    def test_an_agents_usage(self, lab: Lab, whose: str) -> None:
        """It repeats an agent that records its work itself, and is all that is recorded of another."""
        lab.put(self.its(agent("a", agent="desk")), self.its(chat("m", "a", at=1)), self.its(agent("b", "a", at=10, agent="clerk")),
                self.its(chat("n", "b", at=11)), self.used("u", "a", "subtask", 30, 100, **{"ag2.usage.label": whose}))  # fmt: skip

        has_usage = whose == "clerk"
        assert lab.totals("llm_calls", "input_tokens", "tool_calls") == (
            (2, 200, 0) if has_usage else (None, None, None)
        )
        assert [name for name, *_ in lab.rows(ACTIVATIONS)] == ["desk", "clerk", *([] if has_usage else ["helper"])]

    def test_one_name_for_the_model_is_the_answers(self, lab: Lab) -> None:
        """Where the middleware did not get the name of its model, it calls the requested one after the answer."""
        lab.put(self.its(chat("m", **{"gen_ai.request.model": "gpt-4o-2024-08-06"})))

        assert lab.rows("SELECT request_model, response_model FROM llm_calls") == [(None, "gpt-4o-2024-08-06")]


def test_beeais_events_are_no_tools(lab: Lab) -> None:
    """What a failed tool says is a span of its kind; arguments stand next to the run's options."""
    lab.put(
        oi("beeai", "TOOL", "t", "", "pay", 0, 9, error="Tool Error", tool__name="pay", metadata__class_name="Pay",
           input__value='{"input": {"eur": 5}, "options": null}'),
        oi("beeai", "TOOL", "e", "t", "error", 1, 1, error="no money", metadata__path="tool.custom.pay.error"),
    )  # fmt: skip

    assert lab.rows(TOOLS) == [("pay", '{"eur":5}', "error")]
    assert lab.rows("SELECT name FROM errors") == [("pay",)]


def test_openlits_words_are_not_the_models(lab: Lab) -> None:
    """They stand where the model asked for tools; and it says 0 of a price that it does not know."""
    words = {"telemetry.sdk.name": "openlit", "gen_ai.endpoint": "openai.chat.completions",
             "gen_ai.operation.name": "chat", "gen_ai.request.model": "gpt-4o", "gen_ai.usage.input_tokens": 9,
             "gen_ai.usage.output_tokens": 1, "gen_ai.usage.cost": 0}  # fmt: skip
    said = ("gen_ai.content.completion", {"gen_ai.completion": "Function called with tools"})
    lab.put(S("m", "", 0, 9, "openai.chat.completions", words, events=[said], scope="openlit.otel.tracing"))

    assert lab.totals("llm_calls", "tool_calls", "errors") == (1, None, None)
    assert lab.rows("SELECT final_output FROM runs") == [(None,)]
    assert lab.rows("SELECT cost_usd FROM spans") == [(None,)]


class TestAgnoThroughOpenLit:
    """Without content: what a model asked for stands on its span, calls joined by commas; each execution has a span."""

    @staticmethod
    def spans(**asked: str) -> list[S]:
        common = {"telemetry.sdk.name": "openlit"}
        work = {**common, "gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "assistant"}
        words = {**common, "gen_ai.operation.name": "chat", "gen_ai.request.model": "gpt-4o", "gen_ai.usage.input_tokens": 9,
                 "gen_ai.usage.output_tokens": 1, "gen_ai.response.finish_reasons": ["tool_calls"],
                 **{f"gen_ai.tool.{key.replace('__', '.')}": value for key, value in asked.items()}}  # fmt: skip
        ran = {
            **common,
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "pay",
            "gen_ai.tool.call.id": "c1",
        }
        return [S("a", "", 0, 90, "invoke_agent assistant", work, scope="openlit.instrumentation.agno"),
                S("m", "a", 1, 9, "chat gpt-4o", words, scope="openlit.instrumentation.openai"),
                S("t", "a", 10, 20, "execute_tool pay", ran, scope="openlit.instrumentation.agno")]  # fmt: skip

    def test_an_execution_has_the_arguments_of_its_request(self, lab: Lab) -> None:
        lab.put(*self.spans(name="pay, look", call__id="c1, c2", args='{"eur": 5}, {"at": "x, y"}'))

        assert lab.rows(TOOLS) == [("pay", '{"eur": 5}', "ok")]
        assert lab.rows("SELECT name, arguments FROM tool_requests") == [("look", '{"at": "x, y"}')]
        assert lab.totals("tool_calls_low", "tool_calls_high") == (1, 1)

    def test_a_streamed_run_joins_the_texts_of_its_answers(self, lab: Lab) -> None:
        """The agent's span has none: that of the last model call is a part of the answer, at most."""
        said = json.dumps(
            [{"role": "assistant", "parts": [{"type": "text", "content": "21 degrees"}], "finish_reason": "stop"}]
        )
        work, model, tool = self.spans()
        later = S("n", "", 30, 40, model.name, {**model.attrs, "gen_ai.output.messages": said}, scope=model.scope)
        lab.put(work, model, tool, later)

        assert lab.rows("SELECT final_output FROM runs") == [(None,)]


def test_what_openlit_stumbles_over_is_no_failure_of_the_call(lab: Lab) -> None:
    """Offline it cannot count a stream's tokens, and marks the answered call. A call that fails has a status message."""

    def call(id: str, at: int, error: str, stack: str) -> S:
        raised = ("exception", {"exception.type": "E", "exception.message": "no way", "exception.stacktrace": stack})
        name, scope = "openai.chat.completions", "openlit.otel.tracing"
        return S(id, "", at, at + 5, name, {}, [raised], error, scope)

    python = "Traceback (most recent call last):\n  File …"
    lab.put(call("own", 0, "", python))
    lab.put(call("theirs", 0, "ConnectError: refused", python), run="failed")
    lab.put(call("js", 0, "", "Error: refused\n    at fetch (node:internal)"), run="javascript")

    failed = "SELECT message FROM errors WHERE run_id = :run"
    assert lab.totals("llm_calls", "input_tokens") == (1, None)
    assert lab.rows(failed) == []
    for run in ("failed", "javascript"):
        assert lab.totals("llm_calls", run=run) == (0,)
        assert len(lab.rows(failed, run)) == 1


def test_arguments_that_openllmetry_lost_in_a_stream_of_bedrocks_are_unknown(lab: Lab) -> None:
    """`{}` of `InvokeModel` may be anything; `Converse`, whose answers have no id, is read rightly."""
    parts = [
        {"type": "tool_call", "id": f"c{n}", "name": "pay", "arguments": recorded}
        for n, recorded in enumerate(({}, {"eur": 5}))
    ]
    asked = json.dumps([{"role": "assistant", "parts": parts}])
    for run, response_id in (("invoke", "msg_1"), ("converse", None)):
        recorded = chat("m", **{"gen_ai.output.messages": asked, "gen_ai.response.id": response_id})
        recorded.scope = "opentelemetry.instrumentation.bedrock"
        lab.put(recorded, run=run)

    arguments = "SELECT arguments FROM tool_calls WHERE run_id = :run ORDER BY call_no"
    assert lab.rows(arguments, "invoke") == [(None,), ('{"eur":5}',)]
    assert lab.rows(arguments, "converse") == [("{}",), ('{"eur":5}',)]


def test_llama_indexs_tasks_are_model_and_tool_calls(lab: Lab) -> None:
    """OpenLLMetry calls every method a task."""
    task = {"traceloop__span__kind": "task"}
    lab.put(
        tl("llamaindex", "w", "", "FunctionAgent.workflow", 0, 99, traceloop__span__kind="workflow"),
        tl("llamaindex", "o", "w", "OpenAI.task", 1, 9, **task),
        tl("llamaindex", "m", "o", "OpenAI.task", 1, 9, gen_ai__operation__name="chat", gen_ai__request__model="None", **task),
        tl("llamaindex", "t", "w", "FunctionTool.task", 10, 12, **task,
           traceloop__entity__output={"tool_name": "pay", "raw_input": {"kwargs": {"eur": 5}}, "is_error": True}),
    )  # fmt: skip

    assert lab.rows("SELECT request_model FROM llm_calls") == [(None,)]
    assert lab.rows(TOOLS) == [("pay", '{"eur":5}', "error")]
