"""Traces of which there is no recording here: each was once counted wrong, or passed an assertion that nothing supported."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from building import Lab, S, agent, answered, asks, chat, says, tool

from clawtrace.assertions.registry import parse_assertion
from clawtrace.dialects.load import load_dialects
from clawtrace.dialects.messages import parse_messages
from clawtrace.model.verdict import Status
from clawtrace.verdicts.evaluate import evaluate

pytestmark = pytest.mark.full


DIALECTS = {dialect.name: dialect for dialect in load_dialects()}

TOOLS = "SELECT name, call_id, outcome, arguments, result FROM tool_calls ORDER BY call_no"
KINDS = "SELECT name, kind FROM spans ORDER BY start_ns, tree_enter"
RAISED = ("exception", {"exception.type": "ConnectError", "exception.message": "no route"})
ASKS_RM = asks(("c1", "rm", {"path": "/"}))


def status(lab: Lab, **assertion: Any) -> Status:
    lab.facts.ensure(["r"])
    (result,) = evaluate(lab.store, [parse_assertion(assertion)], ["r"], DIALECTS)
    return result.verdicts[0].status


def by_sdk(id: str, at: int, to: int, scope: str = "sdk", **attrs: Any) -> S:
    """A model call as an instrumentation of an SDK records it."""
    return replace(chat(id, at=at, **attrs), to=to, scope=scope)


class TestModelCalls:
    def test_a_root_that_looks_like_a_model_call_around_several_is_none(self) -> None:
        """Its usage is the sum of theirs; without response ids they were once taken for its attempts."""
        usage = {"gen_ai.request.model": "m", "gen_ai.usage.input_tokens": 300, "gen_ai.usage.output_tokens": 30}
        lab = Lab().put(S("r", to=90, name="run", attrs=usage), *(chat(f"m{n}", "r", at=n * 20) for n in range(3)))

        assert lab.totals("llm_calls", "input_tokens", "output_tokens") == (3, 300, 30)
        assert lab.rows("SELECT attempts FROM llm_calls") == [(1,), (1,), (1,)]

    def test_attempts_that_failed_go_with_answers(self) -> None:
        """Between two answers nothing tells of which call one was."""
        calls = [chat(f"m{n}", "r", at=1 + n * 20) for n in range(4)]
        calls[0], calls[2] = (
            replace(c, error="503", attrs={"gen_ai.operation.name": "chat"}) for c in (calls[0], calls[2])
        )
        lab = Lab().put(S("r", to=90, name="run", attrs={"gen_ai.operation.name": "chat"}, scope="outer"), *calls)

        assert lab.rows("SELECT outcome, sum(attempts) FROM llm_calls GROUP BY outcome") == [("ok", 4)]

    @pytest.mark.parametrize("operation", ["responses", "Chat", "stream_chat", "acme.answer"])
    def test_an_operation_in_other_words_is_a_model_call(self, operation: str) -> None:
        """It was once a step, and its tokens were in no sum."""
        lab = Lab().put(chat("a"), chat("b", at=9, **{"gen_ai.operation.name": operation, "gen_ai.response.id": "x"}))

        assert lab.totals("llm_calls", "input_tokens") == (2, 200)

    def test_an_embedding_without_operation_is_no_model_call(self) -> None:
        attrs = {"gen_ai.request.model": "text-embedding-3-small", "gen_ai.usage.input_tokens": 8}
        lab = Lab().put(S("e", name="embeddings text-embedding-3-small", attrs=attrs), chat("a", at=9))

        assert lab.totals("llm_calls", "input_tokens") == (1, 100)

    def test_openinference_kinds_in_small_letters(self) -> None:
        attrs = {"openinference.span.kind": "llm", "llm.token_count.prompt": 7, "llm.token_count.completion": 3}
        lab = Lab().put(S("a", attrs=attrs), S("t", at=5, name="get", attrs={"openinference.span.kind": "tool"}))

        assert lab.totals("llm_calls", "input_tokens") == (1, 7)
        assert lab.rows(TOOLS)[0][0] == "get"

    def test_side_by_side_without_ids_every_call_counts_once(self) -> None:
        """The callbacks of a framework are no parents of the SDK's spans, and a streamed answer has no id there."""
        spans = [
            replace(by_sdk(f"{scope}{n}", n * 50 + k, n * 50 + 40 - k, scope), trace=f"{k + 1:032x}")
            for n in range(3)
            for k, scope in enumerate(("framework", "sdk", "vendor"))
        ]
        lab = Lab().put(*spans)

        assert lab.totals("llm_calls", "input_tokens") == (3, 300)

    @pytest.mark.parametrize(
        "other",
        [
            by_sdk("b", 41, 60),
            by_sdk("b", 1, 30, **{"gen_ai.usage.input_tokens": 99}),
            by_sdk("b", 1, 30, **{"gen_ai.request.model": "x", "gen_ai.response.model": "y"}),
            by_sdk("b", 1, 30, scope="framework"),
        ],
        ids=["later", "other tokens", "other model", "one scope"],
    )
    def test_calls_that_are_not_alike_are_two(self, other: S) -> None:
        lab = Lab().put(by_sdk("a", 0, 40, "framework"), other)

        assert lab.totals("llm_calls") == (2,)

    def test_a_call_with_an_exception_and_no_status_failed(self) -> None:
        """Without usage it got no answer; with usage the exception came later, or was handled."""
        silent = dict.fromkeys(("gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens"))
        failed = chat("a", **silent, **{"gen_ai.response.finish_reasons": None, "gen_ai.response.model": None})
        lab = Lab().put(replace(failed, events=[RAISED]), replace(chat("b", at=9), events=[RAISED]))

        assert lab.totals("llm_calls", "input_tokens") == (1, 100)
        assert lab.rows("SELECT message FROM errors") == [("no route",)]


class TestTokens:
    def test_counts_beyond_reason_break_nothing(self) -> None:
        """Two of them once overflowed, and no run of the batch got facts."""
        huge = {"gen_ai.usage.input_tokens": 2**63 - 1, "gen_ai.usage.cache_read.input_tokens": 2**63 - 1}
        lab = Lab().put(chat("a", **huge), chat("b", at=9, **huge))

        assert lab.totals("input_tokens", "input_tokens_low", "output_tokens") == (None, 0, 20)

    def test_a_sum_that_no_column_holds_is_unknown(self) -> None:
        """A thousand large counts are a lower bound that is cut, so that sums of it are numbers of 64 bits."""
        large = {"gen_ai.usage.input_tokens": 9 * 10**15, "gen_ai.usage.output_tokens": 9 * 10**15}
        lab = Lab().put(*(chat(f"m{n}", at=n, **large) for n in range(1100)))

        assert lab.totals("input_tokens", "input_tokens_low") == (None, 2**62 - 1)
        assert status(lab, type="trace_token_budget", max_total_tokens=10) is Status.FAIL

    def test_no_request_is_empty(self) -> None:
        """A stream whose usage the instrumentation did not get is unknown, not free."""
        lab = Lab().put(chat("a", **{"gen_ai.usage.input_tokens": 0, "gen_ai.usage.output_tokens": 0}))

        assert lab.totals("input_tokens", "output_tokens", "cost_high") == (None, None, None)
        assert status(lab, type="trace_token_budget", max_input_tokens=10) is Status.INCONCLUSIVE

    def test_a_roll_up_of_nothing_is_unknown(self) -> None:
        lab = Lab().put(agent("a", **{"gen_ai.usage.input_tokens": 0, "gen_ai.usage.output_tokens": 0}))

        assert lab.totals("input_tokens", "output_tokens") == (None, None)

    @pytest.mark.parametrize(
        ("scope", "dialect"),
        [
            ("openinference.instrumentation.claude_agent_sdk", "llm"),
            ("strands.telemetry.tracer", "gen_ai"),
            ("any", "gen_ai"),
        ],
        ids=["says that it leaves them out", "by the model", "more cached than input"],
    )
    def test_a_roll_up_includes_cached_tokens(self, scope: str, dialect: str) -> None:
        """The only usage of a run was once four tokens of 32 312, and every budget passed."""
        usage = {
            "llm": {
                "openinference.span.kind": "AGENT",
                "llm.token_count.prompt": 4,
                "llm.token_count.completion": 850,
                "llm.token_count.prompt_details.cache_read": 29447,
                "llm.token_count.prompt_details.cache_write": 2861,
                "output.value": "The tests pass.",
            },
            "gen_ai": {
                "gen_ai.operation.name": "invoke_agent",
                "gen_ai.request.model": "claude-sonnet-4-5",
                "gen_ai.usage.input_tokens": 4,
                "gen_ai.usage.output_tokens": 850,
                "gen_ai.usage.cache_read_input_tokens": 29447,
                "gen_ai.usage.cache_write_input_tokens": 2861,
            },
        }
        lab = Lab().put(S("a", at=1, to=9, name="query", attrs=usage[dialect], scope=scope))

        assert lab.totals("input_tokens_low", "output_tokens_low") == (32312, 850)
        # A sum of turns so far may leave out an answer without usage.
        exact = (None, None) if scope == "strands.telemetry.tracer" else (32312, 29447)
        assert lab.totals("input_tokens", "cache_read_tokens") == exact
        assert status(lab, type="trace_token_budget", max_input_tokens=1000) is Status.FAIL

    def test_usage_that_only_an_agent_records_next_to_others_calls(self) -> None:
        """One agent records its calls, the other only their sum: the calls alone are not the run's tokens."""
        usage = {"gen_ai.usage.input_tokens": 50000, "gen_ai.usage.output_tokens": 900}
        lab = Lab().put(agent("a", to=50, **usage), agent("b", at=60, agent="judge"), chat("m", "b", at=62))

        assert lab.totals("llm_calls", "input_tokens", "input_tokens_low", "cost_high") == (None, None, 100, None)
        assert status(lab, type="trace_token_budget", max_input_tokens=500) is Status.INCONCLUSIVE

    def test_usage_that_an_agent_repeats_changes_nothing(self) -> None:
        usage = {"gen_ai.usage.input_tokens": 200, "gen_ai.usage.output_tokens": 20}
        lab = Lab().put(agent("a", **usage), chat("m", "a", at=2), chat("n", "a", at=12))

        assert lab.totals("llm_calls", "input_tokens") == (2, 200)


class TestToolCallsInMessages:
    def test_requests_of_which_no_later_input_was_captured(self) -> None:
        """The tool ran and nothing records it: that it was never attempted is unknown."""
        lab = Lab().put(
            agent("a"),
            chat("m", "a", at=1, **{"gen_ai.output.messages": ASKS_RM}),
            chat("n", "a", at=20, **{"gen_ai.output.messages": says("done")}),
        )

        assert lab.totals("tool_calls", "errors") == (None, None)
        assert status(lab, type="tool_not_invoked", tool="rm") is Status.INCONCLUSIVE

    def test_a_request_that_the_next_input_does_not_answer_may_be_an_attempt(self) -> None:
        """A program may carry it out and return the result in other words."""
        refused = json.dumps([{"role": "user", "parts": [{"type": "text", "content": "no"}]}])
        lab = Lab().put(
            chat("m", at=1, **{"gen_ai.output.messages": ASKS_RM}),
            chat("n", at=20, **{"gen_ai.input.messages": refused, "gen_ai.output.messages": says("ok")}),
        )

        assert lab.rows("SELECT name, outcome, certain FROM tool_calls") == [("rm", None, False)]
        assert lab.totals("tool_calls_low", "tool_calls_high") == (0, 1)
        assert status(lab, type="tool_not_invoked", tool="rm") is Status.INCONCLUSIVE

    @pytest.mark.parametrize("words", [None, ASKS_RM[:-9]], ids=["not captured", "cut off"])
    def test_a_finish_reason_that_asks_for_tools_and_nothing_that_says_which(self, words: str | None) -> None:
        attrs = {"gen_ai.response.finish_reasons": ["tool_calls"], "gen_ai.output.messages": words}
        lab = Lab().put(agent("a"), chat("m", "a", at=1, **attrs), chat("n", "a", at=20))

        assert status(lab, type="tool_not_invoked", tool="rm") is Status.INCONCLUSIVE

    def test_a_finish_reason_that_a_tool_followed_says_all(self) -> None:
        attrs = {"gen_ai.response.finish_reasons": ["tool_calls"]}
        lab = Lab().put(agent("a"), chat("m", "a", at=1, **attrs), tool("t", "a", at=9), chat("n", "a", at=20))

        assert status(lab, type="tool_not_invoked", tool="rm") is Status.PASS

    def test_results_without_ids_go_by_name_and_order(self) -> None:
        """Gemini's calls have no ids; the history repeats what was answered before."""

        def call(path: str) -> dict[str, Any]:
            return {"type": "tool_call", "name": "rm", "arguments": {"path": path}}

        def result(text: str) -> dict[str, Any]:
            return {"type": "tool_call_response", "name": "rm", "response": text}

        def messages(*parts: dict[str, Any]) -> str:
            return json.dumps([{"role": "model", "parts": parts}])

        lab = Lab().put_sdk(
            chat("m", at=1, **{"gen_ai.output.messages": messages(call("/a"), call("/b"))}),
            chat("n", at=20, **{
                "gen_ai.input.messages": messages(result("one"), result("two")),
                "gen_ai.output.messages": messages(call("/c")),
            }),
            chat("o", at=40, **{
                "gen_ai.input.messages": messages(result("one"), result("two")),
                "gen_ai.output.messages": says("no"),
            }),
        )  # fmt: skip

        assert lab.rows("SELECT outcome, result, certain FROM tool_calls ORDER BY call_no") == [
            (None, "one", True),
            (None, "two", True),
            (None, None, False),
        ]

    def test_what_the_provider_executes_itself_was_executed(self) -> None:
        """It was once read as text: a forbidden web search passed."""
        search = {"type": "server_tool_call", "id": "s1", "name": "web_search", "server_tool_call": {"query": "x"}}
        found = {"type": "server_tool_call_response", "id": "s1", "server_tool_call_response": {"hits": 1}}
        parts = [search, found, {"type": "text", "content": "done"}]
        lab = Lab().put(
            chat("m", **{"gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": parts}])}),
        )

        assert lab.rows(TOOLS) == [("web_search", "s1", None, '{"query":"x"}', '{"hits":1}')]
        assert lab.reasons() == []
        assert status(lab, type="tool_not_invoked", tool="web_search") is Status.FAIL

    @pytest.mark.parametrize(
        ("message", "expected"),
        [
            ({"function_call": {"name": "rm", "arguments": "{}"}}, ("tool_call", None, "rm", "{}")),
            ({"type": "web_search_call", "id": "w", "action": {"query": "x"}}, ("server_tool_call", "w", "web_search", '{"query":"x"}')),
            ({"type": "custom_tool_call", "call_id": "c", "name": "rm", "input": "x"}, ("tool_call", "c", "rm", "x")),
            ({"type": "local_shell_call", "call_id": "c", "action": {"command": ["ls"]}}, ("tool_call", "c", "local_shell", '{"command":["ls"]}')),
            ({"type": "local_shell_call_output", "call_id": "c", "output": "x"}, ("tool_call_response", "c", None, "x")),
            ({"role": "function", "name": "rm", "content": "gone"}, ("tool_call_response", None, "rm", "gone")),
            ({"content": [{"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}]}, ("server_tool_call", "s", "web_search", "{}")),
        ],
    )  # fmt: skip
    def test_forms_of_calls(self, message: dict[str, Any], expected: tuple[str | None, ...]) -> None:
        (part,) = parse_messages("genai_parts", json.dumps([message]), "output")

        assert (part.type, part.call_id, part.name, part.text) == expected


class TestToolSpans:
    def test_the_same_call_id_and_name_in_two_scopes_is_one_call(self) -> None:
        one = tool("t", "a", at=5, **{"gen_ai.tool.call.id": "c"})
        lab = Lab().put(agent("a"), one, replace(one, id="u", scope="vendor"))

        assert lab.totals("tool_calls") == (1,)

    def test_a_call_id_that_is_used_again_later_is_another_call(self) -> None:
        one = tool("t", "a", at=5, **{"gen_ai.tool.call.id": "c"})
        lab = Lab().put(agent("a"), one, replace(one, id="u", scope="vendor", at=50, to=52))

        assert lab.totals("tool_calls") == (2,)

    def test_an_mcp_server_does_not_know_the_prefix_of_its_tool(self) -> None:
        attrs = {"mcp.method.name": "tools/call", "gen_ai.tool.name": "get"}
        lab = Lab().put(
            agent("a"), tool("t", "a", at=5, tool="weather_get"), S("m", "t", 5, 6, "tools/call get", attrs, scope="mcp")
        )  # fmt: skip

        assert [call[0] for call in lab.rows(TOOLS)] == ["weather_get"]

    def test_a_tool_is_named_as_the_model_called_it(self) -> None:
        words = asks(("c1", "mcp__weather__get", {"city": "Rome"}))
        lab = Lab().put(
            agent("a"),
            chat("m", "a", at=1, **{"gen_ai.output.messages": words}),
            tool("t", "a", at=10, tool="get", **{"gen_ai.tool.call.id": None}),
            chat("n", "a", at=20, **{"gen_ai.input.messages": answered("c1", "21"), "gen_ai.output.messages": says("x")}),
        )  # fmt: skip

        assert lab.rows(TOOLS) == [("mcp__weather__get", "c1", "ok", '{"city":"Rome"}', "21")]

    def test_a_tool_that_ran_in_the_place_of_another_keeps_its_name(self) -> None:
        """What the model asked for never hides what was executed."""
        lab = Lab().put(
            agent("a"),
            chat("m", "a", at=1, **{"gen_ai.output.messages": asks(("c1", "refund_order", {"id": 1}))}),
            tool("t", "a", at=10, tool="close_account", **{"gen_ai.tool.call.id": "c1"}),
            chat("n", "a", at=20, **{"gen_ai.input.messages": answered("c1", "done"), "gen_ai.output.messages": says("x")}),
        )  # fmt: skip

        assert [call[:3] for call in lab.rows(TOOLS)] == [("close_account", "c1", "ok")]
        assert status(lab, type="tool_not_invoked", tool="close_account") is Status.FAIL

    def test_a_retry_of_unknown_outcome_may_have_recovered(self) -> None:
        again = asks(("c2", "get_weather", {}))
        lab = Lab().put_sdk(
            agent("a"),
            chat("m", "a", at=1, **{"gen_ai.output.messages": asks(("c1", "get_weather", {}))}),
            replace(tool("t", "a", at=10, **{"gen_ai.tool.call.id": "c1"}), error="x"),
            chat("n", "a", at=20, **{"gen_ai.input.messages": answered("c1", "e"), "gen_ai.output.messages": again}),
            chat("o", "a", at=40, **{"gen_ai.input.messages": answered("c2", "f"), "gen_ai.output.messages": says("x")}),
        )  # fmt: skip

        assert lab.rows("SELECT recovered FROM errors") == [(None,)]
        assert status(lab, type="no_span_errors", unrecovered=True) is Status.INCONCLUSIVE

    def test_whether_a_tool_with_an_exception_and_no_status_failed_is_unknown(self) -> None:
        """It may have been handled."""
        lab = Lab().put(agent("a"), chat("m", "a", at=1), replace(tool("t", "a", at=10), events=[RAISED]))

        assert lab.rows("SELECT name, outcome FROM tool_calls") == [("get_weather", None)]
        assert status(lab, type="no_span_errors") is Status.INCONCLUSIVE


class TestAgents:
    NAMES = "SELECT name, parent_activation_no, via FROM agents ORDER BY activation_no"

    def test_an_activation_that_two_instrumentations_write_is_one(self) -> None:
        """The one inside of the other was once a delegation of the agent to itself."""
        lab = Lab().put(
            agent("a", agent="writer"),
            S("s", "a", 1, 90, "step"),
            replace(agent("b", "s", at=2, to=80, agent="writer"), scope="vendor"),
            replace(agent("c", "b", at=3, to=70, agent="writer"), scope="third"),
            chat("m", "c", at=4),
            agent("d", "c", at=20, to=30, agent="critic"),
        )

        assert lab.rows(self.NAMES) == [("writer", None, "root"), ("critic", 1, "nesting")]
        assert lab.rows("SELECT agent_span_id FROM llm_calls") == lab.rows("SELECT span_id FROM agents LIMIT 1")
        assert status(lab, type="delegation_occurred", to_agent="writer") is Status.FAIL

    def test_an_agent_that_calls_itself_does(self) -> None:
        lab = Lab().put(
            agent("a", agent="writer"), tool("t", "a", at=2, tool="ask"), replace(agent("b", "t", at=3, agent="writer"), scope="x")
        )  # fmt: skip

        assert lab.rows(self.NAMES) == [("writer", None, "root"), ("writer", 1, "tool")]


class TestDroppedAttributes:
    @pytest.mark.parametrize(
        ("language", "attributes", "reasons"),
        [("java", 3, []), ("java", 128, ["dropped"]), ("python", 3, ["dropped"])],
    )
    def test_what_java_writes_again_is_not_dropped(self, language: str, attributes: int, reasons: list[str]) -> None:
        """OpenTelemetry's SDK for Java counts an attribute that is set twice as dropped; a full span did lose some."""
        full = {f"note.{n}": "x" for n in range(attributes)}
        lab = Lab().put(replace(chat("a", **full), dropped=1, language=language))

        assert lab.reasons() == reasons


class TestInfrastructure:
    @pytest.mark.parametrize(
        "attrs",
        [
            {"db.system": "postgresql", "traceloop.workflow.name": "w"},
            {"rpc.system": "grpc", "traceloop.association.properties.session_id": "s"},
            {"messaging.system": "kafka", "llm.usage.total_tokens": 3},
            {"asgi.event.type": "http.response.body"},
            {"network.peer.address": "10.0.0.1"},
            {"graphql.operation.type": "query"},
        ],
        ids=lambda attrs: next(iter(attrs)),
    )
    def test_what_an_sdk_writes_on_every_span_does_not_make_it_the_agents_work(self, attrs: dict[str, Any]) -> None:
        """OpenLLMetry puts its association properties on the spans of databases, too."""
        lab = Lab().put(agent("a", at=1, to=9), chat("m", "a", at=2), S("d", "a", 20, 90, "x", attrs, error="gone"))

        assert lab.totals("errors", "busy_ns") == (0, 8_000_000)

    def test_a_database_below_logfire(self) -> None:
        span = S("d", "a", 20, 90, "SELECT", {"db.system": "pg"}, error="gone", scope="logfire.sqlalchemy")
        lab = Lab().put(agent("a", to=9), span)

        assert lab.rows(KINDS)[1] == ("SELECT", "infra")

    def test_a_trace_of_infrastructure_alone_records_no_errors(self) -> None:
        lab = Lab().put(S("h", attrs={"http.request.method": "GET"}))

        assert status(lab, type="no_span_errors") is Status.INCONCLUSIVE
