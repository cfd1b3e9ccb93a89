"""Log records as rows and as facts of spans: joined where both record one thing, never counted in addition."""

from __future__ import annotations

import json
from typing import Any

import pytest
from building import TRACE, Lab, S, agent, chat
from log_records import L, put_logs

CLAUDE = "com.anthropic.claude_code.tracing"
CLAUDE_LOGS = "com.anthropic.claude_code.events"
USAGE = {"input_tokens": 10, "output_tokens": 5, "cache_read_tokens": 0, "cache_creation_tokens": 0}


def turn(id: str = "i") -> S:
    return S(id, "", 0, 100, "claude_code.interaction", {"span.type": "interaction", "session.id": "s"}, scope=CLAUDE)


def request(id: str, parent: str = "i", *, at: int = 1, **attrs: Any) -> S:
    own = {"span.type": "llm_request", "session.id": "s", "model": "m", "success": True, "attempt": 1, **USAGE}
    return S(id, parent, at, at + 5, "claude_code.llm_request", own | attrs, scope=CLAUDE, error=attrs.get("error"))


def tool(id: str, parent: str = "i", *, at: int = 10, **attrs: Any) -> S:
    own = {"span.type": "tool", "session.id": "s", "tool_name": "Bash", "tool_use_id": f"toolu_{id}"}
    return S(id, parent, at, at + 5, "claude_code.tool", own | attrs, scope=CLAUDE)


def part(id: str, parent: str, word: str, error: str | None = None, **attrs: Any) -> S:
    own = {"span.type": f"tool.{word}", "session.id": "s"}
    return S(id, parent, 11, 14, f"claude_code.tool.{word}", own | attrs, scope=CLAUDE, error=error)


def event(name: str, at: int = 6, span: str = "", **attrs: Any) -> L:
    attrs = {key.replace("__", "."): value for key, value in attrs.items()}
    return L(name, at, span, {"session.id": "s", **attrs}, scope=CLAUDE_LOGS, service="claude-code")


def api_request(at: int = 6, span: str = "i", **attrs: Any) -> L:
    return event("api_request", at, span, **({"model": "m-2025", "cost_usd": 0.5, "prompt__id": "p"} | USAGE | attrs))


class TestJoin:
    def test_a_record_fills_what_its_span_does_not_tell_and_is_no_call_of_its_own(self, lab: Lab) -> None:
        put_logs(lab.put(turn(), request("a")), api_request())

        assert lab.rows("SELECT request_model, response_model, cost_usd, cost_source FROM llm_calls") == [
            ("m", "m-2025", 0.5, "recorded")
        ]
        assert lab.rows("SELECT count(*) FROM spans WHERE source = 'log'") == [(0,)]

    def test_records_that_are_alike_pair_in_order_of_time(self, lab: Lab) -> None:
        put_logs(
            lab.put(turn(), request("a", at=1), request("b", at=20)),
            api_request(25, cost_usd=0.2),
            api_request(6, cost_usd=0.1),
        )

        assert lab.rows("SELECT cost_usd FROM llm_calls ORDER BY call_no") == [(0.1,), (0.2,)]

    def test_a_record_whose_span_was_lost_is_a_call(self, lab: Lab) -> None:
        put_logs(lab.put(turn(), request("a")), api_request(6), api_request(30, input_tokens=77))

        assert lab.totals("llm_calls", "input_tokens") == (2, 87)
        assert lab.rows("SELECT count(*) FROM spans WHERE source = 'log' AND kind = 'llm'") == [(1,)]

    def test_spans_that_state_no_tokens_are_not_counted_in_addition_to_their_records(self, lab: Lab) -> None:
        bare = dict.fromkeys(USAGE, "")
        put_logs(lab.put(turn(), request("a", **bare), request("b", at=20, **bare)), api_request(6), api_request(25))

        assert lab.totals("llm_calls", "input_tokens") == (2, 20)

    def test_a_record_delivered_twice_counts_once(self, lab: Lab) -> None:
        put_logs(put_logs(lab, api_request(span="")), api_request(span=""), arrival=90)

        assert lab.totals("llm_calls", "input_tokens") == (1, 10)

    def test_records_that_arrive_after_the_facts_were_asked_for_change_them(self, lab: Lab) -> None:
        lab.put(turn(), request("a"))
        before = lab.rows("SELECT response_model FROM llm_calls")
        put_logs(lab, api_request())

        assert (before, lab.rows("SELECT response_model FROM llm_calls")) == ([(None,)], [("m-2025",)])

    def test_records_of_other_programs_tell_nothing(self, lab: Lab) -> None:
        put_logs(lab.put(turn(), request("a")), L("api_request", 6, "i", dict(USAGE), scope="other", service="other"))

        assert lab.totals("llm_calls", "cost_low") == (1, 0.0)

    def test_the_name_is_the_attribute_before_the_records_own(self, lab: Lab) -> None:
        record = api_request()
        record.event_name = "event src/telemetry.rs:703"
        put_logs(lab.put(turn(), request("a")), record)

        assert lab.rows("SELECT response_model FROM llm_calls") == [("m-2025",)]

    def test_the_name_may_stand_in_the_attribute_of_exporters_that_have_no_place_for_it(self, lab: Lab) -> None:
        """`otel.event.name` is where the conventions put a record's own name then."""
        record = api_request()
        record.attrs["otel.event.name"], record.name = record.name, ""
        record.event_name = "event src/telemetry.rs:703"
        put_logs(lab.put(turn(), request("a")), record)

        assert lab.rows("SELECT response_model FROM llm_calls") == [("m-2025",)]

    def test_the_order_of_arrival_does_not_matter(self) -> None:
        answers = []
        for first_logs in (False, True):
            lab = Lab()
            for step in (first_logs, not first_logs):
                if step:
                    put_logs(lab, api_request(), event("tool_result", 15, "i", tool_use_id="toolu_t", success="false"))
                else:
                    lab.put(turn(), request("a"), tool("t"), part("x", "t", "execution"))
            answers.append(
                lab.rows("SELECT * EXCLUDE (run_id) FROM tool_calls") + lab.rows("SELECT response_model FROM llm_calls")
            )
            lab.store.close()

        assert answers[0] == answers[1]


class TestClaudeCode:
    def test_retries_inside_of_one_request_are_failed_attempts(self, lab: Lab) -> None:
        lab.put(turn(), request("a", attempt=3))

        assert lab.totals("llm_calls", "failed_llm_attempts", "errors") == (1, 2, 0)
        assert lab.rows("SELECT attempts FROM llm_calls") == [(3,)]

    def test_a_request_that_failed_for_good(self, lab: Lab) -> None:
        gone = dict.fromkeys(USAGE)
        failed = request("a", attempt=2, success=False, error="overloaded", status_code="529", **gone)
        failed.attrs = {key: value for key, value in failed.attrs.items() if value is not None}
        put_logs(lab.put(turn(), failed), event("api_error", 6, "i", attempt=1, status_code="529"),
                 event("api_error", 7, "i", attempt=2, status_code="529"))  # fmt: skip

        assert lab.totals("llm_calls", "failed_llm_attempts", "errors") == (0, 2, 1)

    def test_how_often_a_malformed_request_was_made_is_open(self, lab: Lab) -> None:
        """The span of one that ended with 400 says `attempt` 1, though the client makes it again with fewer options."""
        failed = request("m", success=False, status_code=400, error="scripted failure")
        failed.attrs = {key: value for key, value in failed.attrs.items() if key not in USAGE}
        put_logs(
            lab.put(turn(), failed), *(event("api_error", 6 + n, "i", attempt=n, status_code="400") for n in (1, 2, 3))
        )

        assert lab.totals("llm_calls", "failed_llm_attempts", "errors") == (0, None, 1)
        assert lab.rows("SELECT reason FROM gaps WHERE outcome = 'error'") == [("attempts-not-recorded",)]

    @pytest.mark.parametrize("numbers", [[3], [1, 2, 3]])
    def test_without_spans_attempts_count_once_however_they_are_logged(self, lab: Lab, numbers: list[int]) -> None:
        put_logs(lab, *(event("api_error", n, attempt=n, status_code="529", error="overloaded") for n in numbers))

        assert lab.totals("llm_calls", "failed_llm_attempts") == (0, 3)
        assert lab.rows("SELECT name, message, recovered FROM errors") == [("api_error", "overloaded", False)]

    def test_the_log_calls_every_tool_of_an_mcp_server_mcp_tool(self, lab: Lab) -> None:
        """The call keeps the name of its span, and the result is no second call."""
        called = tool("t", tool_name="mcp__shop__refund")
        ended = event("tool_result", 15, "i", tool_name="mcp_tool", tool_use_id="toolu_t", success="false")
        put_logs(lab.put(turn(), request("a"), called, part("x", "t", "execution", "no", success=False)), ended)

        assert lab.rows("SELECT name, outcome FROM tool_calls") == [("mcp__shop__refund", "error")]

    def test_an_agent_that_does_not_exist_is_asked_for_and_never_at_work(self, lab: Lab) -> None:
        error = "Agent type 'nobody' not found. Available agents: claude"
        asked = tool("t", tool_name="Agent", subagent_type="nobody")
        ended = part("x", "t", "execution", error, success=False)
        ended.attrs["error"] = error
        lab.put(turn(), request("a"), asked, ended)

        assert lab.rows("SELECT name FROM agents") == [("claude-code",)]
        assert lab.rows("SELECT name, outcome FROM tool_calls") == [("Agent", "error")]

    def test_a_request_without_a_span_was_refused(self, lab: Lab) -> None:
        """What the model asked for is not recorded; other tools were not called for sure."""
        lab.put(turn(), request("a", stop_reason="tool_use"), request("b", at=20, stop_reason="end_turn"))

        assert lab.totals("llm_calls", "tool_calls", "errors") == (2, 0, None)

    def test_a_failure_is_recorded_by_the_execution(self, lab: Lab) -> None:
        lab.put(turn(), request("a"), tool("t"), part("x", "t", "execution", "Shell command failed", success=False))

        assert lab.rows("SELECT name, outcome, error FROM tool_calls") == [("Bash", "error", "Shell command failed")]
        assert lab.totals("tool_calls", "errors") == (1, 1)

    def test_a_denied_tool_has_no_execution(self, lab: Lab) -> None:
        lab.put(turn(), request("a"), tool("t"), part("b", "t", "blocked_on_user", decision="reject"))

        assert lab.rows("SELECT outcome FROM tool_calls") == [("blocked",)]
        assert lab.totals("errors") == (1,)

    def test_arguments_that_were_cut_are_unknown(self, lab: Lab) -> None:
        whole, cut = json.dumps({"command": "ls"}), json.dumps({"command": "echo aaa"})
        put_logs(
            lab.put(turn(), tool("t", at=10), tool("u", at=20)),
            event("tool_result", 15, "i", tool_use_id="toolu_t", tool_input=whole, tool_input_size_bytes=len(whole)),
            event("tool_result", 25, "i", tool_use_id="toolu_u", tool_input=cut, tool_input_size_bytes=5000),
        )

        assert lab.rows("SELECT arguments FROM tool_calls ORDER BY call_no") == [(whole,), (None,)]
        assert lab.rows("SELECT DISTINCT tool_call_no, text FROM commands ORDER BY 1") == [(1, "ls"), (2, None)]

    def test_without_logs_spans_tell_the_command_and_its_output(self, lab: Lab) -> None:
        """The arguments stand in log events only; the command of a shell on the tool's span, its output in an event of it."""
        ran = tool("t", full_command="cd app && make test")
        ran.events = [("tool.output", {"output": "1 passed"})]
        lab.put(turn(), ran, tool("u", at=20, full_command="make te", full_command_truncated=True), tool("v", at=30))

        assert lab.rows("SELECT tool_call_no, text, output FROM commands WHERE command_no = 1 ORDER BY tool_call_no") == [
            (1, "cd app && make test", "1 passed"), (2, None, None), (3, None, None),
        ]  # fmt: skip
        assert lab.rows("SELECT text FROM commands WHERE simple ORDER BY command_no") == [("cd app",), ("make test",)]
        assert lab.rows("SELECT arguments, result FROM tool_calls WHERE call_no = 1") == [(None, "1 passed")]

    def test_a_sub_agent_is_named_by_the_tool_that_started_it(self, lab: Lab) -> None:
        lab.put(
            turn(), tool("t", tool_name="Agent", subagent_type="reviewer"), part("x", "t", "execution"),
            request("a", "x", at=12, agent_id="a1"),
        )  # fmt: skip

        assert lab.rows("SELECT name, parent_activation_no, via FROM agents ORDER BY activation_no") == [
            ("claude-code", None, "root"), ("reviewer", 1, "tool"),
        ]  # fmt: skip
        assert lab.rows("SELECT a.name FROM llm_calls AS c JOIN agents AS a ON a.span_id = c.agent_span_id") == [
            ("reviewer",)
        ]

    def test_the_answer_is_the_response_that_follows_the_last_request(self, lab: Lab) -> None:
        put_logs(
            lab.put(turn(), request("a"), request("b", at=20)),
            api_request(6, event__sequence=1), event("assistant_response", 7, "i", prompt__id="p", event__sequence=2, response="I look."),
            api_request(25, event__sequence=4), event("assistant_response", 26, "i", prompt__id="p", event__sequence=5, response="Done."),
        )  # fmt: skip

        assert lab.rows("SELECT final_output FROM runs") == [("Done.",)]


class TestWithoutSpans:
    def test_a_run_of_logs_alone_has_calls_an_agent_and_is_complete(self, lab: Lab) -> None:
        put_logs(
            lab,
            api_request(6, ""),
            event("tool_result", 15, tool_name="Bash", tool_use_id="toolu_1", success="true", duration_ms=4, tool_input='{"command":"ls"}'),
            api_request(25, ""),
            event("subagent_completed", 30, agent_type="reviewer", duration_ms=3),
        )  # fmt: skip

        assert lab.rows("SELECT complete FROM runs") == [(True,)]
        assert lab.totals("llm_calls", "input_tokens", "cost_high", "agents") == (2, 20, 1.0, 2)
        assert lab.rows("SELECT span_id, name, start_ns, outcome, source FROM tool_calls") == [
            (None, "Bash", 11_000_000, "ok", "log")
        ]
        assert lab.rows("SELECT name, parent_activation_no FROM agents ORDER BY activation_no") == [
            ("claude-code", None), ("reviewer", 1),
        ]  # fmt: skip
        assert lab.rows("SELECT DISTINCT source FROM spans") == [("log",)]

    def test_calls_that_the_logs_may_leave_out_are_not_known_to_be_none(self, lab: Lab) -> None:
        """A call that the settings deny has no event: the number of tool calls is unknown, never zero."""
        put_logs(lab, api_request(6, ""))

        assert lab.totals("tool_calls", "errors") == (None, None)


class TestConversations:
    """Gemini CLI: every call is a separate trace, and the main agent has no span."""

    @staticmethod
    def call(id: str, at: int, **attrs: Any) -> S:
        own = {
            "gen_ai.operation.name": "llm_call", "gen_ai.agent.name": "gemini-cli", "gen_ai.conversation.id": "c",
            "gen_ai.request.model": "gemini", "gen_ai.prompt.name": "c", "gen_ai.usage.input_tokens": 10, "gen_ai.usage.output_tokens": 5,
        }  # fmt: skip
        return S(id, "", at, at + 5, "llm_call", own | attrs, scope="gemini-cli", trace=f"{at:032x}")

    @staticmethod
    def response(at: int, **attrs: Any) -> L:
        own = {
            "session.id": "c", "prompt_id": "c", "model": "gemini", "input_token_count": 10, "output_token_count": 5,
            "thoughts_token_count": 3, "cached_content_token_count": 4,
        }  # fmt: skip
        return L("gemini_cli.api_response", at, attrs=own | attrs, scope="gemini-cli")

    def test_thoughts_come_from_the_log_and_without_it_the_output_is_unknown(self, lab: Lab) -> None:
        lab.put(self.call("a", 1), self.call("b", 20))
        put_logs(lab, self.response(6))

        assert lab.rows("SELECT output_tokens, reasoning_tokens FROM llm_calls ORDER BY call_no") == [
            (8, 3),
            (None, None),
        ]
        assert lab.totals("output_tokens", "input_tokens") == (None, 20)

    def test_the_traces_of_a_conversation_are_one_agents_work(self, lab: Lab) -> None:
        lab.put(self.call("a", 1), self.call("b", 20))

        assert lab.rows("SELECT name, via FROM agents") == [("gemini-cli", "root")]
        assert lab.rows("SELECT DISTINCT depth FROM spans WHERE kind = 'llm'") == [(1,)]
        assert lab.rows("SELECT complete FROM runs") == [(True,)]

    def test_the_chunks_of_an_answer_are_one_text(self, lab: Lab) -> None:
        chunks = [{"role": "model", "parts": [{"text": text}]} for text in ("The sub-agent sa", "id hi.", "")]
        lab.put(self.call("a", 1, **{"gen_ai.output.messages": json.dumps(chunks)}))

        assert lab.rows("SELECT final_output FROM runs") == [("The sub-agent said hi.",)]

    def test_a_request_that_was_made_again_is_an_attempt_and_the_last_one_an_error(self, lab: Lab) -> None:
        again, last = self.call("a", 1), self.call("c", 40)
        again.error = last.error = "503"
        lab.put(again, self.call("b", 20), run="r").put(self.call("d", 1), last, run="q")

        assert lab.totals("llm_calls", "failed_llm_attempts", "errors") == (1, 1, 0)
        assert lab.totals("llm_calls", "failed_llm_attempts", "errors", run="q") == (1, 1, 1)

    def test_a_lost_parent_stays_lost(self, lab: Lab) -> None:
        orphan = self.call("a", 1)
        orphan.parent = "gone"
        lab.put(orphan)

        assert lab.reasons() == ["missing_parent"]


class TestGenAiEvents:
    def test_an_event_of_the_whole_call_fills_its_span(self, lab: Lab) -> None:
        sent = {
            "gen_ai.operation.name": "chat",
            "gen_ai.output.messages": '[{"role":"assistant","parts":[{"type":"text","content":"Hi"}]}]',
        }
        put_logs(
            lab.put(agent("g"), chat("a", "g", at=1)), L("gen_ai.client.inference.operation.details", 6, "a", sent)
        )

        assert lab.totals("llm_calls") == (1,)
        assert lab.rows("SELECT final_output FROM runs") == [("Hi",)]

    def test_one_record_a_message(self, lab: Lab) -> None:
        asked = {
            "id": "call_1",
            "type": "function",
            "function": {"name": "get_weather", "arguments": '{"city":"Oslo"}'},
        }
        put_logs(
            lab.put(agent("g"), chat("a", "g", at=1, **{"gen_ai.response.finish_reasons": ["tool_calls"]})),
            L("gen_ai.user.message", 2, "a", {"gen_ai.system": "openai"}, body='{"content":"weather?"}'),
            L("gen_ai.choice", 6, "a", {"gen_ai.system": "openai"},
              body=json.dumps({"index": 0, "finish_reason": "tool_calls", "message": {"role": "assistant", "tool_calls": [asked]}})),
        )  # fmt: skip

        assert lab.rows("SELECT direction, role, type, name, text FROM messages ORDER BY direction") == [
            ("input", "user", "text", None, "weather?"), ("output", "assistant", "tool_call", "get_weather", '{"city":"Oslo"}'),
        ]  # fmt: skip
        assert lab.rows("SELECT name, call_id, outcome FROM tool_calls") == [("get_weather", "call_1", None)]

    def test_without_any_span_of_a_call_the_event_is_the_call(self, lab: Lab) -> None:
        sent = {
            "gen_ai.operation.name": "chat",
            "gen_ai.request.model": "m",
            "gen_ai.usage.input_tokens": 7,
            "gen_ai.usage.output_tokens": 2,
        }
        put_logs(lab, L("gen_ai.client.inference.operation.details", 6, attrs=sent))

        assert lab.totals("llm_calls", "input_tokens") == (1, 7)

    @pytest.mark.parametrize(("calls", "answer"), [("a", "Hi"), ("ab", None)])
    @pytest.mark.parametrize("form", ["details", "choice"])
    def test_an_event_that_names_only_its_trace_is_of_the_one_call_there(
        self, lab: Lab, calls: str, answer: str | None, form: str
    ) -> None:
        """Of several calls it may be any one's; the one call of another trace it is not."""
        message = {"role": "assistant", "parts": [{"type": "text", "content": "Hi"}]}
        record = L("gen_ai.client.inference.operation.details", 6, attrs={
            "gen_ai.operation.name": "chat", "gen_ai.output.messages": json.dumps([message])
        }, trace=TRACE)  # fmt: skip
        if form == "choice":
            record = L("gen_ai.choice", 6, body=json.dumps({"index": 0, "message": {"content": "Hi"}}), trace=TRACE)
        lab.put(agent("g"), *(chat(id, "g", at=1) for id in calls))
        put_logs(lab, record)
        other = chat("z", at=200)
        other.trace = f"{7:032x}"
        lab.put(other, run="elsewhere")
        put_logs(lab, record, run="elsewhere")

        assert lab.rows("SELECT DISTINCT text FROM messages WHERE run_id = 'r'") == ([(answer,)] if answer else [])
        assert lab.totals("llm_calls") == (len(calls),)
        assert lab.rows("SELECT text FROM messages WHERE run_id = :run", "elsewhere") == []


class TestBatches:
    def test_runs_of_one_batch_keep_their_records_apart(self, lab: Lab) -> None:
        for run in ("r", "q"):
            lab.put(turn(), request("a"), run=run)
        put_logs(lab, api_request(model="mine"))
        put_logs(lab, api_request(model="other"), api_request(30, input_tokens=77), run="q")
        lab.facts.ensure(["r", "q"])

        assert lab.rows("SELECT run_id, response_model FROM llm_calls ORDER BY run_id, call_no") == [
            ("q", "other"), ("q", "m-2025"), ("r", "mine"),
        ]  # fmt: skip

    def test_spans_of_other_instrumentations_keep_their_numbers_next_to_new_rows(self, lab: Lab) -> None:
        lab.put(agent("g", agent="planner"), chat("c", "g", at=1), run="plain")
        put_logs(lab, api_request(6, ""), event("tool_result", 15, tool_name="Bash", tool_use_id="t", success="true"))
        lab.facts.ensure(["plain", "r"])

        assert lab.totals("llm_calls", "agents", run="plain") == (1, 1)
        assert lab.rows("SELECT name FROM agents ORDER BY run_id") == [("planner",), ("claude-code",)]


class TestCodex:
    @staticmethod
    def event(name: str, at: int, span: str = "", **attrs: Any) -> L:
        own = {key.replace("__", "."): value for key, value in attrs.items()}
        return L(
            f"codex.{name}", at, span, {"conversation.id": "main", "model": "gpt-5", **own}, scope="codex_otel.log_only"
        )

    def test_only_completed_responses_with_usage_are_calls(self, lab: Lab) -> None:
        done = {"event__kind": "response.completed"}
        put_logs(
            lab,
            self.event("sse_event", 4, event__kind="response.output_text.delta"),
            self.event("sse_event", 5, **done),
            self.event("sse_event", 6, **done, input_token_count="10", output_token_count="5", cached_token_count="2"),
        )

        assert lab.totals("llm_calls", "input_tokens", "failed_llm_attempts") == (1, 10, 0)

    def test_a_request_without_an_answer_is_a_failed_attempt(self, lab: Lab) -> None:
        put_logs(
            lab,
            self.event(
                "api_request", 2, http__response__status_code="500", error__message="no", duration_ms="1", attempt="0"
            ),
            self.event("api_request", 4, http__response__status_code="200", duration_ms="1", attempt="1"),
            self.event("sse_event", 6, input_token_count="10", output_token_count="5"),
        )

        assert lab.totals("llm_calls", "failed_llm_attempts", "errors") == (1, 1, 0)

    @pytest.mark.parametrize(
        ("tool", "success", "outcome", "errors"),
        [
            ("exec_command", "true", None, None),
            ("exec_command", "false", "error", 1),
            ("view_image", "true", "ok", 0),
        ],
    )
    def test_a_commands_success_says_nothing(
        self, lab: Lab, tool: str, success: str, outcome: str, errors: int | None
    ) -> None:
        """The exit code stands in the words of the result only, next to ``success=true``."""
        put_logs(
            lab,
            self.event("sse_event", 2, input_token_count="10", output_token_count="5"),
            self.event(
                "tool_result",
                6,
                tool_name=tool,
                call_id="call_1",
                success=success,
                arguments="{}",
                output="exited with code 3",
            ),
        )

        assert lab.rows("SELECT outcome FROM tool_calls") == [(outcome,)]
        assert lab.totals("errors") == (errors,)

    def test_a_denied_tool_was_not_run(self, lab: Lab) -> None:
        call = {"tool_name": "exec_command", "call_id": "call_1"}
        put_logs(
            lab,
            self.event("tool_decision", 6, **call, decision="denied"),
            self.event("tool_result", 7, **call, success="false"),
        )

        assert lab.rows("SELECT name, outcome FROM tool_calls") == [("exec_command", "blocked")]

    def test_a_command_that_the_policy_rejects_did_not_run(self, lab: Lab) -> None:
        output = (
            'exec_command failed: CreateProcess { message: "Rejected(\\"`/bin/bash -lc \'rm -f x\'` rejected: no\\")" }'
        )
        put_logs(
            lab,
            self.event(
                "tool_result", 5, call_id="c", tool_name="exec_command", arguments='{"cmd": "rm -f x"}', success="false",
                output=output,
            ),
        )  # fmt: skip

        assert lab.rows("SELECT name, outcome FROM tool_calls") == [("exec_command", "blocked")]
        assert lab.rows("SELECT text FROM commands") == []

    def test_a_call_whose_span_names_no_model_used_the_one_of_its_turn(self, lab: Lab) -> None:
        """Without log events: the model stands on the span of the agent's turn only."""
        own = {"scope": "codex", "service": "codex"}
        lab.put(
            S("t", at=0, to=9, name="session_task.turn", attrs={"model": "gpt-5", "conversation.id": "main"}, **own),
            S("x", "t", 1, 8, name="try_run_turn", **own),
            S("m", "x", 2, 5, name="handle_responses", attrs={"gen_ai.usage.input_tokens": 10}, **own),
        )

        assert lab.rows("SELECT model, input_tokens FROM llm_calls") == [("gpt-5", 10)]

    def test_what_a_tool_event_knows_of_its_outcome_goes_before_what_its_span_does_not(self, lab: Lab) -> None:
        """The span never says whether the call failed; the event does, but for commands."""
        own = {"scope": "codex", "service": "codex"}
        for number, tool in enumerate(("view_image", "exec_command"), 1):
            attrs = {"call_id": f"call_{number}", "codex.tool.phase": "dispatch", "tool_name": tool}
            lab.put(S(tool[:1], at=number, to=number + 1, name="dispatch_tool_call", attrs=attrs, **own))
        put_logs(
            lab,
            self.event("tool_result", 5, call_id="call_1", tool_name="view_image", success="true"),
            self.event("tool_result", 6, call_id="call_2", tool_name="exec_command", success="true"),
        )

        assert lab.rows("SELECT name, outcome FROM tool_calls ORDER BY call_no") == [
            ("view_image", "ok"), ("exec_command", None),
        ]  # fmt: skip

    def test_a_spawned_conversation_is_the_work_of_the_agent_that_its_tool_call_names(self, lab: Lab) -> None:
        usage = {"input_token_count": "10", "output_token_count": "5"}
        put_logs(
            lab,
            self.event("sse_event", 2, **usage),
            self.event(
                "tool_result",
                6,
                tool_name="spawn_agent",
                call_id="call_1",
                success="true",
                output='{"agent_id":"sub","nickname":"Ada"}',
            ),
            self.event("sse_event", 8, **usage, conversation__id="sub"),
            self.event("sse_event", 9, **usage, conversation__id="sub"),
        )

        assert lab.rows("SELECT name, parent_activation_no, via FROM agents ORDER BY activation_no") == [
            ("codex", None, "root"), ("Ada", 1, "tool"),
        ]  # fmt: skip


class TestOthers:
    def test_the_log_of_a_program_that_records_its_tools_shows_that_none_was_called(self, lab: Lab) -> None:
        attrs = {"model": "m", "response_id": "r", "input_token_count": 10, "output_token_count": 5}
        put_logs(lab, L("qwen-code.api_response", 5, attrs=attrs, service="qwen-code"))

        assert lab.totals("llm_calls", "tool_calls") == (1, 0)

    def test_cline_records_its_work_in_events_only(self, lab: Lab) -> None:
        own = {"task_id": "t", "model": "m", "provider": "anthropic"}
        put_logs(
            lab,
            L(
                "task.tokens",
                5,
                attrs={**own, "tokens_in": 10, "tokens_out": 5, "cached_tokens": 4, "cost": 0.5},
                service="cline",
            ),
            L(
                "task.tool_used",
                9,
                attrs={**own, "tool_name": "write_to_file", "success": False, "duration_ms": 2},
                service="cline",
            ),
        )

        assert lab.totals("llm_calls", "input_tokens", "output_tokens", "cache_read_tokens", "cost_high") == (
            1,
            None,
            5,
            4,
            0.5,
        )
        assert lab.rows("SELECT name, outcome FROM tool_calls") == [("write_to_file", "error")]
        assert lab.totals("agents") == (None,)

    def test_copilots_second_agent_span_is_no_activation(self, lab: Lab) -> None:
        lab.put(
            agent("a", agent="copilotcli", **{"copilot_chat.turn_count": 1}),
            agent("b", "a", at=1, agent=None, **{"copilot_chat.turn_count": 1}),
            chat("c", "b", at=2, **{"copilot_chat.session_id": "s"}),
        )

        assert lab.rows("SELECT name, parent_activation_no FROM agents") == [("copilotcli", None)]
        assert lab.rows("SELECT a.name FROM llm_calls AS c JOIN agents AS a ON a.span_id = c.agent_span_id") == [
            ("copilotcli",)
        ]
