"""OpenClaw's dialect: hand-made spans for what the recordings of 2026.4 do not show; names are those of 2026.9's pages.

Ids and figures are made up.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from building import Lab, S, hex_id
from instrumented import ACTIVATIONS
from log_records import L, put_logs

from clawtrace.assertions.registry import parse_assertion
from clawtrace.dialects.load import load_dialects
from clawtrace.verdicts.evaluate import evaluate

DIALECTS = {dialect.name: dialect for dialect in load_dialects()}

OUTCOMES = "SELECT name, outcome FROM tool_calls ORDER BY call_no"


def oc(
    id: str, parent: str, name: str, at: int, to: int, trace: str = "1", error: str | None = None, **attrs: Any
) -> S:
    """A span of OpenClaw; keyword `x__y` is attribute openclaw.x.y, `genai__x` gen_ai.x."""
    words = {
        "openclaw." + key.replace("__", "."): value for key, value in attrs.items() if not key.startswith("genai__")
    }
    words |= {
        "gen_ai." + key[7:].replace("__", "."): value for key, value in attrs.items() if key.startswith("genai__")
    }
    return S(id, parent, at, to, f"openclaw.{name}", words, scope="openclaw", error=error, trace=trace.rjust(32, "0"))


def run(id: str, at: int = 0, to: int = 100, trace: str = "1", parent: str = "", **attrs: Any) -> S:
    return oc(id, parent, "run", at, to, trace, outcome="completed", **({"trigger": "user"} | attrs))


def call(id: str, parent: str, at: int, trace: str = "1", **attrs: Any) -> S:
    own = {"provider": "openai", "model": "gpt-4o", "genai__operation__name": "chat", "genai__request__model": "gpt-4o"}
    return oc(id, parent, "model.call", at, at + 5, trace, **(own | attrs))


def tool(id: str, parent: str, name: str, at: int, to: int, trace: str = "1", **attrs: Any) -> S:
    return oc(id, parent, "tool.execution", at, to, trace, toolName=name, genai__tool__name=name, **attrs)


def process(id: str, at: int, to: int, code: int, trace: str, parent: str = "") -> S:
    return oc(id, parent, "exec", at, to, trace, exec__exit_code=code, outcome="completed")


def agent_end(at: int, model: str = "gpt-4o") -> L:
    attrs = {"openclaw.event": "embedded_run_agent_end", "openclaw.isError": True, "openclaw.provider": "openai",
             "openclaw.model": model, "openclaw.rawErrorPreview": "400 no"}  # fmt: skip
    return L("", at, "", attrs, scope="openclaw", service="openclaw", body="embedded run agent end")


class TestProcesses:
    """`openclaw.exec` says how the command of an `exec` call ended, in a separate trace."""

    def test_its_exit_code_is_that_of_the_command(self, lab: Lab) -> None:
        asked = {"genai__tool__call__arguments": json.dumps({"command": "make test"})}
        lab.put(run("r"), tool("t", "r", "exec", 10, 20, **asked), process("p", 11, 19, 3, "2"))

        assert lab.rows("SELECT text, exit_code FROM commands WHERE NOT simple") == [("make test", 3)]

    def test_a_process_inside_of_a_call_decides_its_outcome(self, lab: Lab) -> None:
        lab.put(run("r"), tool("t", "r", "exec", 10, 20), process("p", 11, 19, 3, "2"))

        assert lab.rows(OUTCOMES) == [("exec", "error")]
        assert lab.totals("tool_calls", "errors") == (1, 1)

    def test_of_two_calls_at_once_each_has_its_own(self, lab: Lab) -> None:
        """The short process fits into both calls, the long one into the long call only."""
        lab.put(
            run("r"),
            tool("long", "r", "exec", 10, 60),
            tool("short", "r", "exec", 11, 30),
            process("p", 12, 29, 3, "2"),
            process("q", 13, 58, 0, "3"),
        )

        assert lab.rows(OUTCOMES) == [("exec", "ok"), ("exec", "error")]

    def test_a_process_of_no_call_is_infrastructure(self, lab: Lab) -> None:
        """One that outlived its call (it was sent to the background) says nothing of it, nor is it a call."""
        lab.put(run("r"), tool("t", "r", "exec", 10, 20), tool("u", "r", "read", 30, 60), process("p", 12, 50, 3, "2"))

        assert lab.rows(OUTCOMES) == [("exec", "ok"), ("read", "ok")]
        assert lab.totals("tool_calls", "errors") == (2, 0)

    def test_a_process_below_its_call_belongs_to_it(self, lab: Lab) -> None:
        """Also where another call was open at the same time."""
        lab.put(
            run("r"),
            tool("t", "r", "exec", 10, 40),
            tool("u", "r", "exec", 10, 30),
            process("p", 12, 29, 3, "1", parent="t"),
        )

        assert lab.rows("SELECT span_id = lpad(hex('t'), 16, '0'), outcome FROM tool_calls ORDER BY 2") == [
            (True, "error"),
            (False, "ok"),
        ]


class TestFailedModelCalls:
    """2026.4 says of every model call that it completed; a log event says that a run's last one got no answer."""

    def test_the_last_call_before_the_event_failed(self, lab: Lab) -> None:
        put_logs(lab.put(run("r"), call("a", "r", 10), call("b", "r", 30), call("c", "r", 60)), agent_end(40))

        assert lab.rows("SELECT start_ns, outcome, error FROM llm_calls ORDER BY call_no") == [
            (10_000_000, "ok", None),
            (30_000_000, "error", "400 no"),
            (60_000_000, "ok", None),
        ]
        assert lab.totals("llm_calls", "errors") == (2, 1)

    def test_another_models_call_did_not(self, lab: Lab) -> None:
        put_logs(lab.put(run("r"), call("a", "r", 10)), agent_end(40, model="gpt-4o-mini"))

        assert lab.totals("llm_calls", "errors") == (1, 0)

    @pytest.mark.parametrize(("began", "calls"), [({"model_call__time_to_first_byte_ms": 269}, None), ({}, 1)])
    def test_one_that_failed_after_its_first_byte_may_have_been_answered(
        self, lab: Lab, began: dict[str, Any], calls: int | None
    ) -> None:
        """As 2026.9.6 wrote it of an answer whose arguments were no JSON: the answer and its usage had come whole."""
        lab.put(run("r"), call("a", "r", 1), call("b", "r", 10, error="Error", errorCategory="Error", **began))

        assert lab.totals("llm_calls") == (calls,)


class TestWork:
    """What is the agent's work, and what is the gateway's."""

    def test_heartbeats_and_warnings_are_no_work(self, lab: Lab) -> None:
        lab.put(
            run("r"), call("a", "r", 10),
            run("h", 200, 300, "2", trigger="heartbeat"), call("b", "h", 210, "2"),
            tool("t", "h", "exec", 220, 230, "2", errorCategory="Error"), process("p", 221, 229, 1, "3"),
            oc("l", "", "liveness.warning", 50, 50, "4", error="event_loop_delay"),
            oc("u", "", "model.usage", 200, 300, "5", channel="heartbeat", genai__usage__input_tokens=9),
        )  # fmt: skip

        assert lab.totals("llm_calls", "tool_calls", "errors") == (1, 0, 0)

    def test_what_tools_did_in_a_heartbeat_is_known_next_to_the_counts(self, lab: Lab) -> None:
        """Its calls and commands stand in separate relations, numbered after those of the run."""
        asked = {"genai__tool__call__arguments": json.dumps({"command": "rm -rf / && ls"})}
        lab.put(
            run("r"), tool("t", "r", "read", 10, 20),
            run("h", 200, 300, "2", trigger="heartbeat"), tool("u", "h", "exec", 220, 230, "2", error="no", **asked),
        )  # fmt: skip

        assert lab.rows("SELECT call_no, name FROM tool_calls") == [(1, "read")]
        assert lab.rows("SELECT count(*) FROM commands") == [(0,)]
        assert lab.rows("SELECT call_no, name, outcome, error FROM background_tool_calls") == [
            (2, "exec", "error", "no")
        ]
        assert lab.rows("SELECT tool_call_no, text FROM background_commands ORDER BY command_no") == [
            (2, "rm -rf / && ls"), (2, "rm -rf /"), (2, "ls"),
        ]  # fmt: skip

    def test_what_must_never_happen_must_not_happen_in_a_heartbeat(self, lab: Lab) -> None:
        """A forbidden tool that ran there ran; what counts does not count it."""
        questions = [
            ({"type": "tool_not_invoked", "tool": "exec"}, "fail"),
            ({"type": "tool_not_called", "tool": "exec"}, "fail"),
            ({"type": "tool_not_permitted", "allowed_tools": ["read"]}, "fail"),
            ({"type": "tool_not_permitted", "allowed_tools": ["read", "exec"]}, "pass"),
            ({"type": "ran", "pattern": "^rm "}, "pass"),
            ({"type": "not_ran", "pattern": "^rm "}, "fail"),
            ({"type": "not_ran", "pattern": "^mv "}, "pass"),
            ({"type": "tool_was_called", "tool": "exec"}, "fail"),
            ({"type": "tool_call_count", "tool": "exec", "max": 0}, "pass"),
            ({"type": "run_count", "pattern": "^rm ", "max": 0}, "pass"),
            ({"type": "tool_not_invoked", "tool": "exec", "agent": "main"}, "fail"),
            ({"type": "tool_not_invoked", "tool": "exec", "agent": "other"}, "pass"),
            ({"type": "tool_not_invoked", "tool": "exec", "turn": 1}, "pass"),
        ]
        asked = {"genai__tool__call__arguments": json.dumps({"command": "cd / && rm -rf x"})}
        lab.put(
            run("r", agent="main"), tool("t", "r", "read", 10, 20),
            run("o", 30, 90, "3", agent="other"),
            call("c", "o", 40, "3"),
            run("h", 200, 300, "2", trigger="heartbeat"),
            tool("u", "h", "exec", 220, 230, "2", agent__id="main", **asked),
        )  # fmt: skip
        lab.facts.ensure(["r"])
        assertions = [
            parse_assertion(question | {"id": f"a{number}"}) for number, (question, _) in enumerate(questions)
        ]
        (result,) = evaluate(lab.store, assertions, ["r"], DIALECTS, scoped=lab.facts.scoped)

        for (question, status), verdict in zip(questions, result.verdicts, strict=True):
            assert verdict.status.value == status, question
            if status == "fail" and "max" not in question and question["type"] != "tool_was_called":
                assert [span.span_id for span in verdict.evidence][:1] == [hex_id("u")], question

    def test_a_secret_that_was_sent_in_a_heartbeat_has_leaked(self, lab: Lab) -> None:
        sent = {
            "genai__tool__call__arguments": '{"to": "[REDACTED:jwt:0123abcd]"}',
            "genai__tool__call__result": "sent",
        }
        lab.put(
            run("r"), call("c", "r", 10), run("h", 200, 300, "2", trigger="heartbeat"),
            tool("u", "h", "send", 220, 230, "2", **sent),
        )  # fmt: skip
        lab.facts.ensure(["r"])
        (result,) = evaluate(lab.store, [parse_assertion({"type": "no_secret_leak"})], ["r"], DIALECTS)

        assert result.verdicts[0].status.value == "fail"
        assert [span.span_id for span in result.verdicts[0].evidence] == [hex_id("u")]

    def test_a_blocked_call_is_blocked(self, lab: Lab) -> None:
        lab.put(run("r"), tool("t", "r", "exec", 10, 10, outcome="blocked", deniedReason="policy"))

        assert lab.rows(OUTCOMES) == [("exec", "blocked")]

    def test_usage_of_2026_9_is_the_calls_own(self, lab: Lab) -> None:
        """The turn's totals next to the calls are not added."""
        used = {
            "genai__usage__input_tokens": 100,
            "genai__usage__output_tokens": 10,
            "genai__usage__cache_read__input_tokens": 40,
        }
        lab.put(
            run("r"),
            call("a", "r", 10, **used),
            call("b", "r", 30, **used),
            oc("u", "r", "model.usage", 0, 100, **used),
        )

        assert lab.totals("llm_calls", "input_tokens", "output_tokens", "cache_read_tokens") == (2, 200, 20, 80)

    def test_a_turn_of_another_program_has_tokens_and_no_number_of_calls(self, lab: Lab) -> None:
        own = {"model_call__observation_unit": "turn", "genai__operation__name": "invoke_agent",
               "genai__usage__input_tokens": 100, "genai__usage__output_tokens": 10}  # fmt: skip
        lab.put(run("r"), call("a", "r", 10, **own))

        assert lab.totals("llm_calls", "input_tokens", "output_tokens") == (None, 100, 10)

    def test_such_a_turn_next_to_calls_of_the_run(self, lab: Lab) -> None:
        """The tokens of both count, the number of calls is not that of the others."""
        used = {"genai__usage__input_tokens": 100, "genai__usage__output_tokens": 10}
        own = {"model_call__observation_unit": "turn", "genai__operation__name": "invoke_agent"}
        lab.put(run("r"), call("a", "r", 10, **used), call("b", "r", 30, **own, **used))

        assert lab.totals("llm_calls", "input_tokens", "output_tokens", "output_tokens_low") == (None, 200, 20, 20)

    @pytest.mark.parametrize(
        ("turn", "cached", "reasoning"),
        [
            (
                {
                    "input_tokens": 100,
                    "output_tokens": 10,
                    "cache_read__input_tokens": 30,
                    "reasoning__output_tokens": 3,
                },
                70,
                8,
            ),
            ({"input_tokens": 100, "output_tokens": 10}, 40, 5),
            ({}, None, None),
        ],
        ids=["that states them", "that states others", "that states nothing"],
    )
    def test_cached_and_reasoning_tokens_next_to_such_a_turn(
        self, lab: Lab, turn: dict[str, int], cached: int | None, reasoning: int | None
    ) -> None:
        """Where the turn states any usage, what it does not mention is none; where it states none, no total is known."""
        calls = {
            "input_tokens": 100,
            "output_tokens": 10,
            "cache_read__input_tokens": 40,
            "reasoning__output_tokens": 5,
        }
        own = {"model_call__observation_unit": "turn", "genai__operation__name": "invoke_agent"}
        used = [{f"genai__usage__{name}": n for name, n in stated.items()} for stated in (calls, turn)]
        lab.put(run("r"), call("a", "r", 10, **used[0]), call("b", "r", 30, **own, **used[1]))

        assert lab.totals("llm_calls", "cache_read_tokens", "reasoning_tokens") == (None, cached, reasoning)

    def test_names_of_the_latest_conventions_are_the_same_call(self, lab: Lab) -> None:
        span = call("a", "r", 10, api="openai-completions")
        span.name = "chat gpt-4o"
        lab.put(run("r"), span)

        assert lab.totals("llm_calls") == (1,)

    def test_parents_that_are_never_exported_are_no_loss(self, lab: Lab) -> None:
        """Another span without its parent is one."""
        lab.put(run("r"), oc("h", "gone", "harness.run", 0, 100, "2"), process("p", 5, 6, 0, "3", parent="gone"))
        lab.put(run("s", parent="gone"), run="lost")

        assert (lab.reasons(), lab.reasons("lost")) == ([], ["missing_parent"])


class TestAgents:
    """`sessions_spawn` starts a session in a separate trace."""

    def spawn(self, **attrs: Any) -> S:
        return tool("t", "r", "sessions_spawn", 10, 12, **attrs)

    def test_without_names_it_is_known_that_and_not_to_whom(self, lab: Lab) -> None:
        lab.put(run("r"), self.spawn(), run("s", 50, 90, "2"))

        assert lab.rows(ACTIVATIONS) == [(None, None, "root"), (None, None, "root"), (None, 1, "spawn")]

    def test_the_next_session_of_the_named_agent_is_its(self, lab: Lab) -> None:
        """What the model calls say of their agent names the run."""
        lab.put(
            run("r"), call("a", "r", 5, agent__id="support"),
            self.spawn(genai__tool__call__arguments=json.dumps({"agentId": "researcher"})),
            run("o", 40, 45, "3"), call("b", "o", 41, "3", agent__id="support"),
            run("s", 50, 90, "2"), call("c", "s", 51, "2", agent__id="researcher"),
        )  # fmt: skip

        assert lab.rows(ACTIVATIONS) == [
            ("support", None, "root"),
            ("support", None, "root"),
            ("researcher", 1, "spawn"),
        ]

    def test_the_session_that_was_started_goes_before_the_asked_agent(self, lab: Lab) -> None:
        said = {"status": "accepted", "childSessionKey": "agent:writer:subagent:1"}
        lab.put(run("r"), self.spawn(genai__tool__call__result=json.dumps(said)))

        assert lab.rows(ACTIVATIONS) == [(None, None, "root"), ("writer", 1, "spawn")]

    def test_a_call_that_failed_starts_nothing(self, lab: Lab) -> None:
        lab.put(run("r"), oc("t", "r", "tool.execution", 10, 12, toolName="sessions_spawn", error="Error"))

        assert lab.rows(ACTIVATIONS) == [(None, None, "root")]


class TestLoopDetector:
    """What the loop detector refuses is recorded by a separate span alone."""

    def test_a_call_that_was_blocked(self, lab: Lab) -> None:
        stopped = oc(
            "l",
            "",
            "tool.loop",
            20,
            20,
            "2",
            error="global_circuit_breaker:block",
            toolName="read",
            loop__action="block",
        )
        lab.put(run("r"), tool("t", "r", "read", 10, 12), stopped)

        assert lab.rows(OUTCOMES) == [("read", "ok"), ("read", "blocked")]

    def test_a_warning_is_no_call(self, lab: Lab) -> None:
        lab.put(
            run("r"),
            tool("t", "r", "read", 10, 12),
            oc("l", "", "tool.loop", 20, 20, "2", toolName="read", loop__action="warn"),
        )

        assert lab.rows(OUTCOMES) == [("read", "ok")]


ARGUED = "SELECT name, arguments, result, outcome FROM tool_calls ORDER BY call_no"


def dispatch(id: str, at: int, to: int, called: str | None = None, args: Any = None, **attrs: Any) -> S:
    """The span of `tool_call`; with `called` its arguments are captured."""
    asked = {} if called is None else {"genai__tool__call__arguments": json.dumps({"id": called, "args": args or {}})}
    return tool(id, "r", "tool_call", at, to, **asked, **attrs)


class TestDispatcher:
    """2026.9 offers most tools by name only: the model calls them through `tool_call`, whose span is a sibling of theirs."""

    def test_both_spans_are_one_call_of_the_called_tool(self, lab: Lab) -> None:
        lab.put(run("r"), dispatch("d", 10, 20), tool("t", "r", "agents_list", 12, 18))

        assert lab.rows(OUTCOMES) == [("agents_list", "ok")]
        assert lab.totals("tool_calls", "errors") == (1, 0)
        assert lab.rows("SELECT tool_name, counted_as, counted_by FROM spans WHERE kind = 'tool' ORDER BY 1") == [
            ("agents_list", "call", None),
            ("tool_call", "duplicate", "dispatched-tool"),
        ]

    def test_it_fails_once(self, lab: Lab) -> None:
        failed = {"error": "tool_result_error"}
        lab.put(run("r"), dispatch("d", 10, 20, **failed), tool("t", "r", "cron", 12, 18, **failed))

        assert lab.rows(OUTCOMES) == [("cron", "error")]
        assert lab.totals("tool_calls", "errors") == (1, 1)

    def test_calls_at_once_and_a_tool_that_was_called_directly(self, lab: Lab) -> None:
        """As 2026.9.6 ran them: the direct call lies in the time of a dispatcher, too."""
        lab.put(
            run("r"), dispatch("d", 10, 20), tool("w", "r", "write", 10, 30), dispatch("e", 10, 90),
            tool("t", "r", "agents_list", 11, 15), tool("u", "r", "session_status", 12, 88),
        )  # fmt: skip

        assert lab.rows("SELECT name, end_ns / 1000000 FROM tool_calls ORDER BY name") == [
            ("agents_list", 20),
            ("session_status", 90),
            ("write", 30),
        ]

    def test_one_after_the_other_each_has_its_own(self, lab: Lab) -> None:
        """Also where the time of the outer call holds both."""
        lab.put(
            run("r"), dispatch("d", 10, 50), dispatch("e", 20, 60),
            tool("t", "r", "cron", 11, 15), tool("u", "r", "agents_list", 21, 25),
        )  # fmt: skip

        assert lab.rows(OUTCOMES) == [("cron", "ok"), ("agents_list", "ok")]

    @pytest.mark.parametrize(
        ("called", "name"), [(None, "tool_call"), ("nope", "nope"), ("openclaw:core:nope", "nope")]
    )
    def test_a_dispatch_that_failed_is_a_failed_call(self, lab: Lab, called: str | None, name: str) -> None:
        """No tool has that name: what ran at the same time and did not fail is another call."""
        lab.put(run("r"), dispatch("d", 10, 20, called, error="Error"), tool("t", "r", "write", 11, 15))

        assert lab.rows("SELECT name, outcome FROM tool_calls ORDER BY start_ns") == [(name, "error"), ("write", "ok")]
        assert lab.totals("tool_calls", "errors") == (2, 1)

    def test_what_it_names_is_its_call_whatever_else_ran(self, lab: Lab) -> None:
        """A result that does not fit the tool's schema fails in the dispatcher only."""
        lab.put(
            run("r"), dispatch("d", 10, 20, "cron", {"action": "list"}, error="Error"),
            tool("t", "r", "cron", 12, 14), tool("w", "r", "write", 15, 19, error="Error"),
        )  # fmt: skip

        assert lab.rows(ARGUED) == [
            ("cron", '{"action":"list"}', None, "error"),
            ("write", None, None, "error"),
        ]

    def test_arguments_and_result_are_those_of_the_called_tool(self, lab: Lab) -> None:
        own = {"genai__tool__call__arguments": '{"id":"job"}', "genai__tool__call__result": "two agents"}
        lab.put(
            run("r"), dispatch("d", 10, 20, "cron", {"id": "job"}, genai__tool__call__result='{"tool":{}}'),
            tool("t", "r", "cron", 12, 18, **own),
        )  # fmt: skip

        assert lab.rows(ARGUED) == [("cron", '{"id":"job"}', "two agents", "ok")]

    def test_ids_of_both_are_one_calls(self, lab: Lab) -> None:
        """Of the two the call has the id that the model gave it."""
        lab.put(
            run("r"), dispatch("d", 10, 20, genai__tool__call__id="call_1"),
            tool("t", "r", "cron", 12, 18, genai__tool__call__id="tool_search_code:call_1:cron:1"),
        )  # fmt: skip

        assert lab.rows("SELECT name, call_id FROM tool_calls") == [("cron", "call_1")]

    def test_a_call_that_a_policy_refuses_is_blocked(self, lab: Lab) -> None:
        """As 2026.9.6 wrote it: the dispatcher failed, and the refused tool's span has no duration."""
        lab.put(
            run("r"), dispatch("d", 10, 20, error="Error"), tool("w", "r", "write", 11, 19),
            tool("t", "r", "cron", 13, 13, outcome="blocked", deniedReason="plugin-before-tool-call"),
        )  # fmt: skip

        assert lab.rows("SELECT name, outcome FROM tool_calls ORDER BY name") == [("cron", "blocked"), ("write", "ok")]
        assert lab.totals("tool_calls", "errors") == (2, 1)

    @pytest.mark.parametrize(("category", "commands"), [("tool_preparation", []), ("Error", [("rm -r /x",)])])
    def test_a_command_whose_parameters_were_refused_did_not_run(
        self, lab: Lab, category: str, commands: list[tuple[str]]
    ) -> None:
        """It is an attempt, and ran nothing; a shell's own failure is another thing."""
        asked = {"genai__tool__call__arguments": '{"command":"rm -r /x","timeout":1}', "errorCategory": category}
        lab.put(run("r"), tool("t", "r", "exec", 12, 12, error=category, **asked))

        assert lab.rows(OUTCOMES) == [("exec", "error")]
        assert lab.rows("SELECT DISTINCT text FROM commands") == commands

    def test_a_blocked_result_is_one_blocked_call(self, lab: Lab) -> None:
        """Both spans are written when they end, without a duration."""
        stopped = {"outcome": "blocked"}
        lab.put(
            run("r"), tool("t", "r", "cron", 12, 12, deniedReason="plugin-before-tool-call", **stopped),
            dispatch("d", 14, 14, deniedReason="tool_result_blocked", **stopped),
        )  # fmt: skip

        assert lab.rows(OUTCOMES) == [("cron", "blocked")]

    def test_a_dispatch_that_was_refused_itself_is_a_blocked_call(self, lab: Lab) -> None:
        lab.put(
            run("r"), tool("t", "r", "write", 12, 12),
            dispatch("d", 12, 12, outcome="blocked", deniedReason="plugin-before-tool-call"),
        )  # fmt: skip

        assert lab.rows("SELECT name, outcome FROM tool_calls ORDER BY name") == [
            ("tool_call", "blocked"),
            ("write", "ok"),
        ]

    def test_a_shell_that_was_called_through_it(self, lab: Lab) -> None:
        lab.put(run("r"), dispatch("d", 10, 40), tool("t", "r", "exec", 12, 35), process("p", 13, 34, 3, "2"))

        assert lab.rows(OUTCOMES) == [("exec", "error")]
        assert lab.totals("tool_calls", "errors") == (1, 1)

    def test_a_session_that_was_spawned_through_it(self, lab: Lab) -> None:
        asked = {"genai__tool__call__arguments": json.dumps({"agentId": "researcher"})}
        lab.put(
            run("r"), dispatch("d", 10, 20, "sessions_spawn", {"agentId": "researcher"}),
            tool("t", "r", "sessions_spawn", 12, 18, **asked), run("s", 50, 90, "2"),
            call("c", "s", 51, "2", agent__id="researcher"),
        )  # fmt: skip

        assert lab.rows(ACTIVATIONS) == [(None, None, "root"), ("researcher", 1, "spawn")]

    def test_what_the_model_asked_for_is_the_same_call(self, lab: Lab) -> None:
        """Messages are captured: the request names `tool_call`, which was offered, and neither is a further call."""
        asked = [
            {
                "type": "tool_call",
                "id": "c1",
                "name": "tool_call",
                "arguments": {"id": "cron", "args": {"action": "list"}},
            }
        ]
        answered = [{"type": "tool_call_response", "id": "c1", "name": "tool_call", "result": "no such job"}]
        out = json.dumps([{"role": "assistant", "parts": asked}])
        offered = json.dumps([{"type": "function", "name": "tool_call", "parameters": {"required": ["id"]}}])
        lab.put(
            run("r"), call("a", "r", 1, genai__output__messages=out, genai__tool__definitions=offered),
            dispatch("d", 10, 20), tool("t", "r", "cron", 12, 18),
            call("b", "r", 30, genai__input__messages=json.dumps([{"role": "assistant", "parts": asked}, {"role": "tool", "parts": answered}])),
        )  # fmt: skip

        assert lab.rows("SELECT name, call_id, arguments, result, outcome FROM tool_calls") == [
            ("cron", "c1", '{"action":"list"}', "no such job", "ok")
        ]

    def test_in_a_heartbeat(self, lab: Lab) -> None:
        lab.put(
            run("r"), run("h", 200, 300, "2", trigger="heartbeat"), tool("d", "h", "tool_call", 210, 220, "2"),
            tool("t", "h", "cron", 212, 218, "2"),
            tool("u", "h", "pdf", 230, 230, "2", outcome="blocked", deniedReason="policy"),
            tool("e", "h", "tool_call", 232, 232, "2", outcome="blocked", deniedReason="tool_result_blocked"),
        )  # fmt: skip

        assert lab.rows("SELECT name, outcome FROM background_tool_calls") == [("cron", "ok"), ("pdf", "blocked")]

    def test_many_at_once(self, lab: Lab) -> None:
        """Each finds its own."""
        calls = [dispatch(f"{n:04x}", 10 + n, 2000 - n) for n in range(300)]
        lab.put(run("r", to=3000), *calls, *(tool(f"a{n:03x}", "r", "cron", 10 + n, 2000 - n) for n in range(300)))

        assert lab.rows("SELECT name, count(*) FROM tool_calls GROUP BY 1") == [("cron", 300)]
