"""Agents whose model calls and tools no span records, only the conversation that their result holds.

Haystack's agents through OpenInference, CrewAI's tasks through OpenLLMetry, and the messages of AutoGen's teams.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from building import SDK, Lab, S, agent, asks, chat, says, tool
from building import answered as reads
from instrumented import oi

TOOLS = "SELECT name, arguments, result, outcome, source FROM tool_calls ORDER BY call_no"
USAGE = ("llm_calls", "input_tokens", "output_tokens", "tool_calls")
ANSWER = "SELECT final_output FROM runs"
AGENTS = "SELECT name FROM agents ORDER BY activation_no"


def message(role: str, *content: str) -> str:
    """A message of Haystack as Python represents it."""
    return f"ChatMessage(_role=<ChatRole.{role.upper()}: {role!r}>, _content=[{', '.join(content)}], _name=None, _meta={{}})"


def text(words: str) -> str:
    return f"TextContent(text={words!r})"


def asked(id: str, tool: str, **arguments: Any) -> str:
    return f"ToolCall(tool_name={tool!r}, arguments={arguments!r}, id={id!r}, extra=None)"


def answered(call: str, result: str, error: bool = False) -> str:
    return f"ToolCallResult(result={result!r}, origin={call}, error={error})"


def run(*messages: str, steps: int, **counts: int) -> dict[str, Any]:
    usage = {"prompt_tokens": 100 * steps, "completion_tokens": 10 * steps}
    return {
        "messages": list(messages),
        "step_count": steps,
        "token_usage": usage,
        "tool_call_counts": counts,
        "exit_reason": "text",
    }


def haystack(id: str, parent: str, result: dict[str, Any] | None, at: int = 1, to: int = 90) -> S:
    said = {} if result is None else {"output__value": result}
    return oi("haystack", "CHAIN", id, parent, "Agent.run", at, to, None if result else "400", **said)


def pipeline(result: dict[str, Any] | None, component: str = "desk") -> S:
    given = {"data": {component: {"messages": [message("user", text("hi"))]}}}
    said = {} if result is None else {"output__value": {component: result}}
    return oi("haystack", "CHAIN", "p", "", "Pipeline.run", 0, 99, input__value=given, **said)


PAY = asked("c1", "pay", eur=5)
PAID = run(
    message("user", text("hi")), message("assistant", PAY), message("tool", answered(PAY, "paid")), message("assistant", text("Done.")),
    steps=2, pay=1, other=0,
)  # fmt: skip


class TestOneAgent:
    """What it did stands in its output."""

    def test_calls_with_one_id_may_have_run(self, lab: Lab) -> None:
        """Nothing says which result is whose."""
        both = PAY, asked("c1", "refund", eur=1)
        result = run(
            message("user", text("hi")), message("assistant", *both), message("tool", *(answered(one, "paid") for one in both)),
            message("assistant", text("Done.")), steps=2, pay=1, refund=1,
        )  # fmt: skip
        lab.put(pipeline(result), haystack("a", "p", result))

        assert [outcome for *_, outcome, _ in lab.rows(TOOLS)] == [None, None]
        assert lab.totals("tool_calls") == (None,)

    def test_its_calls_are_known(self, lab: Lab) -> None:
        """Model calls by their number and sum, tools by request and result, the answer, and the name of its component."""
        lab.put(pipeline(PAID), haystack("a", "p", PAID))

        assert lab.totals(*USAGE) == (2, 200, 20, 1)
        assert lab.rows(TOOLS) == [("pay", '{"eur":5}', "paid", "ok", "message")]
        assert (lab.rows(ANSWER), lab.rows(AGENTS)) == ([("Done.",)], [("desk",)])

    @pytest.mark.parametrize("kept", ["mn", "t", "mtn"])
    def test_a_call_that_spans_in_another_trace_record_too_is_one(self, lab: Lab, kept: str) -> None:
        """A callback's spans, or those of another thread, hang below nothing of the agent's."""
        elsewhere = [
            chat("m", at=5, **{"gen_ai.output.messages": asks(("c1", "pay", {"eur": 5}))}),
            tool("t", at=12, tool="pay", **{"gen_ai.tool.call.id": "c1"}),
            chat("n", at=20, **{"gen_ai.input.messages": reads("c1", "paid"), "gen_ai.output.messages": says("Done.")}),
        ]
        spans = [replace(span, scope=SDK, trace=f"{2:032x}") for span in elsewhere if span.id in kept]
        lab.put(pipeline(PAID), haystack("a", "p", PAID), *spans)

        assert lab.rows("SELECT name, call_id FROM tool_calls") == [("pay", "c1")]
        assert lab.totals("tool_calls") == (1,)

    def test_what_it_was_given_is_not_its_work(self, lab: Lab) -> None:
        """Messages before its own replies record other runs."""
        old = asked("c0", "refund")
        before = [message("user", text("hi")), message("assistant", old), message("tool", answered(old, "ok"))]
        result = {**PAID, "messages": [*before, *PAID["messages"]]}
        lab.put(pipeline(result), haystack("a", "p", result))

        assert [row[0] for row in lab.rows(TOOLS)] == ["pay"]

    def test_a_tool_that_failed_is_an_error_of_the_run(self, lab: Lab) -> None:
        """The result says so; the agent's span is its place."""
        result = {
            **PAID,
            "messages": [*PAID["messages"][:2], message("tool", answered(PAY, "no", error=True)), PAID["messages"][3]],
        }
        lab.put(pipeline(result), haystack("a", "p", result))

        assert lab.totals("errors", "unrecovered_errors") == (1, 1)
        assert lab.rows("SELECT name, kind, message FROM errors") == [("pay", "tool", "no")]

    def test_a_tool_that_there_is_not_was_not_called(self, lab: Lab) -> None:
        """The result says only that: what was asked for did not run."""
        words = "Tool 'pay' not found. Available tools: other"
        result = {
            **PAID,
            "messages": [*PAID["messages"][:2], message("tool", answered(PAY, words, error=True)), PAID["messages"][3]],
        }
        lab.put(pipeline(result), haystack("a", "p", result))

        assert lab.totals("tool_calls") == (0,)
        assert lab.rows(TOOLS) == []
        assert lab.rows("SELECT name, arguments, result, reason FROM tool_requests") == [
            ("pay", '{"eur":5}', words, "not-run")
        ]

    @pytest.mark.parametrize(
        "result",
        [
            {**PAID, "messages": PAID["messages"][2:]}, {**PAID, "tool_call_counts": {"pay": 2}},
            {**PAID, "messages": [*PAID["messages"][:3], "ChatMessage(_role=<ChatRo..."]},
        ],
        ids=["reply", "count", "cut"],
    )  # fmt: skip
    def test_where_some_of_it_is_missing_no_tool_is_known(self, lab: Lab, result: dict[str, Any]) -> None:
        """Too few replies, other counts, or text that was cut: tools are unknown, not none."""
        lab.put(pipeline(result), haystack("a", "p", result))

        assert lab.totals(*USAGE) == (2, 200, 20, None)

    def test_one_that_failed_says_nothing_but_its_name(self, lab: Lab) -> None:
        """It has no output."""
        lab.put(pipeline(None), haystack("a", "p", None))

        assert lab.totals(*USAGE) == (None, None, None, None)
        assert lab.rows(AGENTS) == [("desk",)]

    def test_a_name_is_believed_only_where_the_output_is_the_agents(self, lab: Lab) -> None:
        """Of a pipeline whose output is another component's, the agent's name is unknown."""
        lab.put(pipeline({**PAID, "step_count": 9}, "other"), haystack("a", "p", PAID))

        assert lab.rows(AGENTS) == [(None,)]

    def test_spans_of_its_calls_go_before_the_conversation(self, lab: Lab) -> None:
        """Where a tool's span records the call it is reported once, with what the conversation adds."""
        span = S(
            "t",
            "a",
            5,
            6,
            "t",
            {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "pay", "gen_ai.tool.call.id": "c1"},
        )
        lab.put(pipeline(PAID), haystack("a", "p", PAID), span)

        assert lab.rows(TOOLS) == [("pay", '{"eur":5}', "paid", "ok", "span")]


class TestAgentsInside:
    """Each agent's output records its own calls."""

    def test_sums_are_added(self, lab: Lab) -> None:
        """The outer agent's sum leaves the inner one's out; both record their tools."""
        lab.put(pipeline(PAID), haystack("a", "p", PAID), haystack("b", "a", PAID, 10, 20))

        assert lab.totals(*USAGE) == (4, 400, 40, 2)

    def test_where_one_failed_the_sums_are_unknown(self, lab: Lab) -> None:
        """What it used is nowhere."""
        lab.put(pipeline(PAID), haystack("a", "p", PAID), haystack("b", "a", None, 10, 20))

        assert lab.totals(*USAGE) == (None, None, None, None)


def crew(*tasks: str, requests: int = 2, result: str = "Done.") -> S:
    used = {"prompt_tokens": 100 * requests, "completion_tokens": 10 * requests, "successful_requests": requests}
    words = {
        "crewai.crew.tasks_output": f"[{', '.join(tasks)}]", "crewai.crew.usage_metrics": repr(used), "crewai.crew.result": result,
    }  # fmt: skip
    return S("w", "", 0, 99, "crewai.workflow", words, scope="opentelemetry.instrumentation.crewai.instrumentation")


def worker(id: str, parent: str = "w", role: str = "desk", at: int = 1, to: int = 90) -> S:
    words = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": role, "traceloop.span.kind": "agent"}
    return S(id, parent, at, to, f"{role}.agent", words, scope="opentelemetry.instrumentation.crewai.instrumentation")


def task(*messages: dict[str, Any], failures: str | None = "[]") -> str:
    failed = "" if failures is None else f", tool_failures={failures}"
    return f"TaskOutput(raw='Done.', agent='desk', output_format=<OutputFormat.RAW: 'raw'>, messages={list(messages)!r}{failed})"


CALL = {"id": "c1", "type": "function", "function": {"name": "pay", "arguments": '{"eur": 5}'}}
ASKS = {"role": "assistant", "content": "", "tool_calls": [CALL]}
ANSWERED = {"role": "tool", "content": "paid", "tool_call_id": "c1", "name": "pay"}
SAYS = {"role": "assistant", "content": "Done."}


def failure(reason: str) -> str:
    words = f"ToolFailure(message='no', reason=<ToolFailureReason.X: {reason!r}>)"
    return f"[ToolFailureRecord(tool_name='pay', failure={words}, tool_args={{'eur': 5}})]"


class TestCrews:
    """The crew's span holds what its tasks returned."""

    @pytest.mark.parametrize(
        ("failures", "outcome", "errors"),
        [
            ("[]", "ok", 0),
            (failure("exception"), "error", 1),
            (failure("invalid_input"), "error", 1),
            (None, None, None),
        ],
    )
    def test_a_crew_of_one(self, lab: Lab, failures: str, outcome: str, errors: int | None) -> None:
        """Calls, tools and the answer are known; which tools failed stands next to the messages, in versions that have it.

        A reply without usage may be missing in the sum of tokens.
        """
        lab.put(crew(task(ASKS, ANSWERED, SAYS, failures=failures)), worker("a"))

        assert lab.totals("llm_calls", "input_tokens", "errors") == (2, None, errors)
        assert lab.rows("SELECT input_tokens_low, output_tokens_low FROM run_totals") == [(200, 20)]
        assert [(row[0], row[1], row[3]) for row in lab.rows(TOOLS)] == [("pay", '{"eur": 5}', outcome)]
        assert lab.rows(ANSWER) == [("Done.",)]

    def test_a_tool_that_there_is_not_was_not_called(self, lab: Lab) -> None:
        lab.put(crew(task(ASKS, ANSWERED, SAYS, failures=failure("unknown_tool"))), worker("a"))

        assert (lab.totals("tool_calls"), lab.rows(TOOLS)) == ((0,), [])
        assert lab.rows("SELECT name, reason FROM tool_requests") == [("pay", "not-run")]

    @pytest.mark.parametrize(("recorded", "outcome"), [(True, "error"), (False, None)])
    def test_arguments_that_are_no_json(self, lab: Lab, recorded: bool, outcome: str | None) -> None:
        """They are recorded with the failure as they are; versions may leave the failure out."""
        asks = {**ASKS, "tool_calls": [{**CALL, "function": {"name": "pay", "arguments": '{"eur": '}}]}
        failures = failure("invalid_input").replace("{'eur': 5}", repr('{"eur": ')) if recorded else "[]"
        lab.put(crew(task(asks, ANSWERED, SAYS, failures=failures)), worker("a"))

        assert lab.rows("SELECT name, outcome FROM tool_calls") == [("pay", outcome)]

    def test_an_id_that_a_later_answer_uses_again(self, lab: Lab) -> None:
        """Both are of one conversation; only a later task repeats what an earlier one recorded."""
        lab.put(crew(task(ASKS, ANSWERED, ASKS, ANSWERED, SAYS), requests=3), worker("a"))

        assert lab.totals("llm_calls", "tool_calls") == (3, 2)

    def test_what_a_coworker_did_is_nowhere(self, lab: Lab) -> None:
        """Its requests are in the sum, its tools in no message."""
        lab.put(crew(task(ASKS, ANSWERED, SAYS), requests=4), worker("a"), worker("b", "a", "researcher", 10, 20))

        assert lab.totals(*USAGE) == (4, None, None, None)

    @pytest.mark.parametrize(("requests", "tools"), [(1, 1), (4, None)])
    def test_sums_that_the_messages_contradict(self, lab: Lab, requests: int, tools: int | None) -> None:
        """A reply without usage is not in the sum, and what an earlier crew used, or two agents of one model, is in it.

        Of the first the messages show all calls.
        """
        lab.put(crew(task(ASKS, ANSWERED, SAYS), requests=requests), worker("a"))

        assert lab.totals(*USAGE) == (None, None, None, tools)

    @pytest.mark.parametrize(("requests", "known"), [(3, 3), (5, 5), (2, None), (6, None)])
    def test_a_sum_that_two_agents_of_one_model_may_have_doubled(
        self, lab: Lab, requests: int, known: int | None
    ) -> None:
        """CrewAI adds up what each agent's model object used: of one object it is in the sum twice. Here three calls are certain."""
        lab.put(
            crew(task(ASKS, ANSWERED, SAYS), requests=requests), worker("a"), worker("b", "a", "researcher", 10, 20)
        )

        assert lab.totals("llm_calls") == (known,)

    @pytest.mark.parametrize(("requests", "known"), [(3, 3), (6, None)])
    def test_agents_one_after_the_other(self, lab: Lab, requests: int, known: int | None) -> None:
        """All their answers are in the messages, so a doubled sum shows; whose the tools were does not."""
        tasks = task(ASKS, ANSWERED, SAYS), task(SAYS)
        lab.put(crew(*tasks, requests=requests), worker("a", to=40), worker("b", role="clerk", at=50))

        assert lab.totals("llm_calls", "tool_calls") == (known, None)

    def test_the_answer_of_an_agent_without_tools(self, lab: Lab) -> None:
        """It stands next to the messages, and is an answer of its model like others."""
        lab.put(crew(task({"role": "user", "content": "do it"}), requests=1), worker("a"))

        assert lab.totals(*USAGE) == (1, 100, 10, 0)

    def test_tools_that_are_called_in_prose(self, lab: Lab) -> None:
        """An agent whose model knows no tool calls writes them into its text: nothing says which they are."""
        lab.put(crew(task({"role": "assistant", "content": "Action: pay\nAction Input: {}"}, SAYS)), worker("a"))

        assert lab.totals("llm_calls", "tool_calls") == (None, None)


def kickoff(*tasks: list[dict[str, Any]] | None, requests: int) -> S:
    """A crew's span of OpenInference; None: a version of CrewAI whose tasks hold no messages."""
    used = {"prompt_tokens": 100 * requests, "completion_tokens": 10 * requests, "successful_requests": requests}
    outputs = [{"raw": "Done."} | ({} if said is None else {"messages": said, "tool_failures": []}) for said in tasks]
    output = {"raw": "Done.", "tasks_output": outputs, "token_usage": used}
    return oi("crewai", "CHAIN", "k", "", "Crew.kickoff", 0, 99, output__value=output)


def member(id: str, at: int, to: int, role: str = "desk") -> S:
    return oi("crewai", "AGENT", id, "k", f"{role}._execute_core", at, to, agent__name=role)


def used(id: str, parent: str, name: str, at: int, to: int, **given: str) -> S:
    return oi("crewai", "TOOL", id, parent, f"{name}.run", at, to, tool__name=name, input__value=given)


class TestCrewsWhoseToolsHaveSpans:
    """The crew states a sum; its messages say how many answers the sum is of."""

    OWN = (ASKS, ANSWERED, SAYS)

    @pytest.mark.parametrize(("requests", "known"), [(2, 2), (1, None), (4, None)])
    def test_a_reply_without_usage_and_what_was_used_before(self, lab: Lab, requests: int, known: int | None) -> None:
        lab.put(kickoff([*self.OWN], requests=requests), member("a", 1, 90), used("t", "a", "pay", 10, 20))

        assert lab.totals("llm_calls", "tool_calls") == (known, 1)

    @pytest.mark.parametrize(("requests", "known"), [(3, 3), (6, None)])
    def test_two_agents_of_one_model(self, lab: Lab, requests: int, known: int | None) -> None:
        agents = member("a", 1, 40), member("b", 50, 60, "clerk")
        lab.put(kickoff([*self.OWN], [SAYS], requests=requests), *agents, used("t", "a", "pay", 10, 20))

        assert lab.totals("llm_calls") == (known,)

    def test_what_a_coworker_was_answered(self, lab: Lab) -> None:
        """It is in no message: once more than tools ran, which two tools may have been asked for at once."""
        known = {(1, 4): 4, (1, 3): None, (1, 5): None, (1, 8): None, (0, 3): 3, (2, 4): None, (2, 5): None}
        lab.put_each({f"{tools} tools, {requests} requests": (
            kickoff([*self.OWN], requests=requests),
            member("a", 1, 90),
            used("d", "a", "Delegate work to coworker", 10, 50, coworker="clerk"),
            *(used(f"t{n}", "d", "pay", 20 + n, 21 + n) for n in range(tools)),
        ) for tools, requests in known})  # fmt: skip

        for (tools, requests), calls in known.items():
            assert lab.totals("llm_calls", run=f"{tools} tools, {requests} requests") == (calls,), (tools, requests)

    def test_without_messages_nothing_says_so(self, lab: Lab) -> None:
        lab.put(kickoff(None, requests=2), member("a", 1, 90), used("t", "a", "pay", 10, 20))

        assert lab.totals("llm_calls", "input_tokens") == (None, None)


RUNTIME = "autogen SingleThreadedAgentRuntime"


def event(id: str, at: int, source: str, kind: str, content: Any, used: int | None = 1, manager: str = "Swarm") -> S:
    """A message that a team's manager is sent."""
    usage = None if used is None else {"prompt_tokens": 100 * used, "completion_tokens": 10 * used}
    said = {"message": {"source": source, "models_usage": usage, "content": content, "type": kind}}
    words = {
        "recipient_agent_class": f"{manager}GroupChatManager",
        "message": json.dumps(said),
        "messaging.operation": "process",
    }
    return S(id, "", at, at + 1, "autogen process x", words, scope=RUNTIME, trace=f"{at:032x}")


def at_work(id: str, name: str, at: int, to: int, parent: str = "") -> S:
    words = {"gen_ai.operation.name": "invoke_agent", "gen_ai.system": "autogen", "gen_ai.agent.name": name}
    return S(id, parent, at, to, f"invoke_agent {name}", words, scope="autogen-core")


def execution(parent: str, at: int) -> S:
    words = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "pay", "gen_ai.tool.call.id": "c1"}
    return S("t", parent, at, at + 1, "execute_tool pay", words, scope="autogen-core")


def conversation(**more: Any) -> list[S]:
    return [
        event("m", 11, "desk", "ToolCallRequestEvent", [{"id": "c1", "name": "pay", "arguments": '{"eur": 5}'}], **more),
        event("n", 21, "desk", "ToolCallExecutionEvent", [{"content": "paid", "name": "pay", "call_id": "c1", "is_error": False}], None, **more),
        event("o", 31, "desk", "TextMessage", "Done.", 2, **more),
    ]  # fmt: skip


class TestTeams:
    """What the agents of a team write is sent to its manager, with what it took."""

    def test_messages_tell_of_model_calls(self, lab: Lab) -> None:
        """One with usage is a model call's; the tools' arguments and results stand there; the last one is the answer."""
        lab.put(at_work("a", "desk", 10, 40), execution("a", 15), *conversation())

        assert lab.totals(*USAGE) == (2, 300, 30, 1)
        assert lab.rows(TOOLS) == [("pay", '{"eur": 5}', "paid", "ok", "span")]
        assert lab.rows(ANSWER) == [("Done.",)]

    def test_a_manager_that_asks_a_model_itself(self, lab: Lab) -> None:
        """What selecting a speaker took is in no message: the sums are unknown."""
        lab.put(at_work("a", "desk", 10, 40), execution("a", 15), *conversation(manager="Selector"))

        assert lab.totals("llm_calls", "input_tokens") == (None, None)

    def test_an_agent_inside_of_another_writes_to_no_agent(self, lab: Lab) -> None:
        """What one used that was called as a tool is in no message."""
        lab.put(at_work("a", "desk", 10, 40), execution("a", 15), at_work("b", "helper", 15, 16, "t"), *conversation())

        assert lab.totals("llm_calls", "input_tokens") == (None, None)

    def test_a_stream_that_was_not_asked_for_its_usage(self, lab: Lab) -> None:
        """Zero tokens are none recorded: the calls are known, what they used is not."""
        lab.put(
            at_work("a", "desk", 10, 40),
            event("m", 11, "desk", "TextMessage", "Hm.", 0),
            event("o", 31, "desk", "TextMessage", "Done."),
        )

        assert lab.totals("llm_calls", "input_tokens", "output_tokens") == (2, None, None)


class TestSmolagents:
    """OpenTelemetry's instrumentations record its model calls; in the next one's words it says what it ran."""

    @staticmethod
    def told(lab: Lab, said: str, observed: str) -> None:
        genai = "opentelemetry.instrumentation.genai"
        history = [{"role": "MessageRole.ASSISTANT", "parts": [{"type": "text", "content": said}]},
                   {"role": "MessageRole.USER", "parts": [{"type": "text", "content": observed}]}]  # fmt: skip
        first = {"gen_ai.output.messages": asks(("c1", "pay", {"eur": 5}), ("c2", "look", {}))}
        later = {"gen_ai.input.messages": json.dumps(history), "gen_ai.output.messages": says("Done.")}
        lab.put(replace(agent("a", to=90), scope=f"{genai}.smolagents"), replace(chat("m", "a", at=1, **first), scope=f"{genai}.openai"),
                replace(chat("n", "a", at=20, **later), scope=f"{genai}.openai"))  # fmt: skip

    def test_what_it_says_it_called_was_attempted(self, lab: Lab) -> None:
        calls = [{"id": "c1", "type": "function", "function": {"name": "pay", "arguments": {"eur": 5}}}]
        self.told(lab, f"Let me look.\nCalling tools:\n{calls!r}", "Observation:\npaid")

        assert lab.rows("SELECT name, certain, result FROM tool_calls ORDER BY name") == [
            ("look", False, None),
            ("pay", True, "paid"),
        ]

    def test_what_failed_it_does_not_say(self, lab: Lab) -> None:
        self.told(lab, "Let me look.", "Error:\nError executing tool 'pay'")

        assert lab.rows("SELECT name, certain FROM tool_calls ORDER BY name") == [("look", False), ("pay", False)]
