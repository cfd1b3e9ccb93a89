"""Truths that are easily lost: calls without a name, handoffs that only a request records, exchanges on a wire, prompts, lost spans."""

from __future__ import annotations

from typing import Any

import pytest
from building import Lab, S, agent, answered, asks, chat, hex_id, tool
from instrumented import ACTIVATIONS, OWNERS, TOOLS
from log_records import L, put_logs

OTHER = f"{2:032x}"


def nameless(id: str, parent: str, at: int, **attrs: Any) -> S:
    return S(id, parent, at, at + 2, "execute_tool", {"gen_ai.operation.name": "execute_tool", **attrs})


def asking(id: str, at: int, *calls: tuple[str, str, dict[str, Any]], **attrs: Any) -> S:
    """A model call below the agent `a` that asks for tools."""
    return chat(id, "a", at=at, **{"gen_ai.output.messages": asks(*calls), **attrs})


def test_an_execution_without_a_name_may_be_any_call(lab: Lab) -> None:
    """Nothing says which of the requests it carried out, or whether it did."""
    lab.put(agent("a"), asking("m", 1, ("c1", "get_weather", {"city": "Paris"})), nameless("t", "a", 8))

    assert [(row[0], row[2]) for row in lab.rows(TOOLS)][-1] == (None, "ok")


class TestRequestedHandoffs:
    """A request for `transfer_to_x` after which x is at work is a delegation, and no tool call."""

    def test_the_named_agent_works_next(self, lab: Lab) -> None:
        lab.put(
            S("w", at=0, to=100, name="workflow"), agent("a", "w", to=20, agent="triage"),
            asking("m", 1, ("c1", "transfer_to_billing_agent", {})), agent("b", "w", at=30, to=60, agent="Billing Agent"),
            chat("n", "b", at=31, **{"gen_ai.input.messages": answered("c1", "{}")}),
        )  # fmt: skip

        assert lab.rows(ACTIVATIONS) == [("triage", None, "root"), ("Billing Agent", 1, "handoff")]
        assert lab.rows(TOOLS) == []
        assert lab.totals("tool_calls") == (0,)

    @pytest.mark.parametrize("name", ["refunds", None])
    def test_another_agent_that_works_next_was_not_meant(self, lab: Lab, name: str | None) -> None:
        lab.put(
            S("w", at=0, to=100, name="workflow"), agent("a", "w", to=20, agent="triage"),
            asking("m", 1, ("c1", "transfer_to_billing", {})), agent("b", "w", at=30, to=60, agent=name),
        )  # fmt: skip

        assert [row[2] for row in lab.rows(ACTIVATIONS)] == ["root", "root"]
        assert [(row[0], row[2]) for row in lab.rows(TOOLS)] == [("transfer_to_billing", None)]


def side(id: str, at: int, to: int, trace: str, request: int = 7, session: str | None = "s1", **attrs: Any) -> S:
    sent = {
        "mcp.method.name": "tools/call",
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "add",
        "jsonrpc.request.id": request,
    }
    if session is not None:
        sent["mcp.session.id"] = session
    return S(id, "", at, to, "tools/call add", sent | attrs, scope=f"mcp.{id}", trace=trace)  # fmt: skip


class TestRemoteAgents:
    """Both sides of a call of a remote agent record it: the caller's names the callee."""

    @pytest.mark.parametrize("flags", [0x100, 0x300], ids=["a request between", "a parent in another process"])
    def test_both_sides_are_one_activation(self, lab: Lab, flags: int) -> None:
        between = S("h", "b", 12, 58, "POST /", {"http.request.method": "POST"} if flags == 0x100 else {}, flags=flags)
        lab.put(
            agent("a"), agent("b", "a", at=10, to=60, agent="writer"), between,
            agent("c", "h", at=15, to=50, agent="writer"), chat("m", "c", at=20), chat("n", "a", at=70),
        )  # fmt: skip

        assert lab.rows(ACTIVATIONS) == [("assistant", None, "root"), ("writer", 1, "nesting")]
        assert lab.rows(OWNERS) == [(hex_id("m"), "writer"), (hex_id("n"), "assistant")]

    def test_an_agent_that_calls_itself_is_at_work_twice(self, lab: Lab) -> None:
        lab.put(agent("a"), tool("t", "a", at=5), agent("b", "t", at=6, to=60))

        assert lab.rows(ACTIVATIONS) == [("assistant", None, "root"), ("assistant", 1, "tool")]


class TestExchanges:
    """An MCP client and server that no framework's span surrounds, each in a separate trace."""

    @pytest.mark.parametrize("session", ["s1", None])
    def test_the_same_request_is_one_call(self, lab: Lab, session: str | None) -> None:
        client = side("c", 10, 20, f"{1:032x}", session=session)
        server = side("s", 11, 19, OTHER, session=session, **{"error.type": "tool_error"})
        lab.put(client, server)

        assert lab.rows("SELECT name, outcome FROM tool_calls") == [("add", "error")]

    @pytest.mark.parametrize(
        "server",
        [
            side("s", 11, 19, OTHER, request=8),
            side("s", 11, 19, OTHER, session="s2"),
            side("s", 15, 25, OTHER),
            side("s", 10, 20, OTHER),
        ],
        ids=["another request", "another session", "not inside", "neither inside of the other"],
    )
    def test_what_is_not_surely_the_same_is_two(self, lab: Lab, server: S) -> None:
        lab.put(side("c", 10, 20, f"{1:032x}"), server)

        assert len(lab.rows(TOOLS)) == 2

    def test_a_call_back_with_the_same_id_is_another_call(self, lab: Lab) -> None:
        """The server asks its client while it works, and counts its requests from the same number."""
        lab.put(side("c", 10, 40, f"{1:032x}"), side("s", 15, 35, OTHER), side("u", 20, 30, f"{1:032x}"))

        assert len(lab.rows(TOOLS)) == 2

    def test_a_near_side_around_two_far_sides_is_neithers(self, lab: Lab) -> None:
        lab.put(side("c", 10, 40, f"{1:032x}"), side("s", 15, 20, OTHER), side("u", 25, 30, f"{3:032x}"))

        assert len(lab.rows(TOOLS)) == 3

    def test_a_far_side_inside_of_two_near_sides_is_neithers(self, lab: Lab) -> None:
        """Two clients that count their requests from the same number, and nothing says whose request the server answers."""
        lab.put(side("c", 10, 30, f"{1:032x}"), side("s", 15, 20, OTHER), side("u", 12, 40, f"{3:032x}"))

        assert len(lab.rows(TOOLS)) == 3

    @pytest.mark.parametrize("offered", ["math.add", "mcp__math__add", "math_add", "mcp__server__math-add"])
    def test_a_name_as_models_are_offered_it_is_the_servers(self, lab: Lab, offered: str) -> None:
        """Names of functions hold no dots: `math.add` below `math_add` was once a second call."""
        outer = tool("t", "a", at=5, tool=offered)
        outer.to = 40
        name = "add" if offered.endswith("__add") else "math.add"
        inner = side("c", 10, 20, f"{1:032x}", **{"gen_ai.tool.name": name})
        inner.parent = "t"
        lab.put(agent("a"), outer, inner)

        assert lab.rows("SELECT name, outcome FROM tool_calls") == [(offered, "ok")]

    def test_another_tool_below_a_tool_is_a_call_of_its_own(self, lab: Lab) -> None:
        outer = tool("t", "a", at=5, tool="report")
        outer.to = 40
        inner = side("c", 10, 20, f"{1:032x}")
        inner.parent = "t"
        lab.put(agent("a"), outer, inner)

        assert lab.totals("tool_calls") == (2,)

    def test_below_a_frameworks_call_both_are_layers_of_it(self, lab: Lab) -> None:
        outer = tool("t", "a", at=5, tool="add")
        outer.to = 40
        lab.put(
            agent("a"), outer, side("c", 10, 20, f"{3:032x}"), side("s", 11, 19, OTHER, **{"error.type": "tool_error"})
        )

        assert lab.rows("SELECT name, outcome FROM tool_calls") == [("add", "error")]


def gemini(id: str, at: int, operation: str, trace: int, prompt: str | None = None, **attrs: Any) -> S:
    sent = {"gen_ai.operation.name": operation, "gen_ai.conversation.id": "s1", **attrs}
    if prompt is not None:
        sent["gen_ai.prompt.name"] = prompt
    return S(id, "", at, at + 5, operation, sent, scope="gemini-cli", trace=f"{trace:032x}")


class TestPrompts:
    """Gemini CLI's model calls and batches of tools are separate traces: a user's prompt is the turn."""

    TURNS = "SELECT name, turn FROM spans WHERE source = 'otlp' ORDER BY start_ns"

    def test_one_prompt_is_one_turn(self, lab: Lab) -> None:
        lab.put(
            gemini("m", 10, "llm_call", 1, "s1"), gemini("t", 20, "tool_call", 2), gemini("n", 30, "llm_call", 3, "s1")
        )

        assert lab.rows(self.TURNS) == [("llm_call", 1), ("tool_call", 1), ("llm_call", 1)]

    def test_each_prompt_of_a_conversation_is_one(self, lab: Lab) -> None:
        """A sub-agent's prompt ids are its own; it works for the prompt of its caller."""
        lab.put(
            gemini("m", 10, "llm_call", 1, "s1########0"), gemini("n", 20, "llm_call", 2, "codebase-x#0"),
            gemini("t", 30, "tool_call", 3), gemini("o", 40, "llm_call", 4, "s1########1"), gemini("u", 50, "tool_call", 5),
        )  # fmt: skip

        assert [turn for _, turn in lab.rows(self.TURNS)] == [1, 1, 1, 2, 2]


class TestLostSpans:
    """A log event that names a span which never came says that a span was lost."""

    EVENT = "gen_ai.client.inference.operation.details"

    def event(self, span: str, scope: str = "test") -> L:
        return L(self.EVENT, 8, span, {"gen_ai.operation.name": "chat", "gen_ai.request.model": "gpt-4o"}, scope=scope)

    def test_of_an_instrumentation_of_genai_terms(self, lab: Lab) -> None:
        lab.put(agent("a"), chat("m", "a", at=1))
        put_logs(lab, self.event("gone"))

        assert lab.reasons() == ["lost_span"]

    def test_a_span_that_came_is_not_lost(self, lab: Lab) -> None:
        lab.put(agent("a"), chat("m", "a", at=1))
        put_logs(lab, self.event("m"))

        assert lab.reasons() == []

    def test_a_client_whose_spans_were_not_switched_on_lost_none(self, lab: Lab) -> None:
        attrs = {"model": "claude-sonnet-4", "input_tokens": 10, "output_tokens": 2}
        put_logs(
            lab, L("api_request", 8, "gone", attrs, scope="com.anthropic.claude_code.events", service="claude-code")
        )

        assert lab.totals("llm_calls") == (1,)
        assert lab.reasons() == []


class TestCallsOfOneTool:
    """Spans of one tool, one inside the other, and results that stand near a request."""

    def test_a_tool_that_is_called_again_while_it_runs_is_two_calls(self, lab: Lab) -> None:
        """Two ids that one instrumentation writes: what the inner call did is not lost in the outer one."""
        outer = tool("t", at=10, tool="bash", **{"gen_ai.tool.call.arguments": '{"command":"python sub.py"}'})
        inner = tool("u", "t", at=25, tool="bash", **{"gen_ai.tool.call.arguments": '{"command":"rm -rf x"}'})
        outer.to = 50
        lab.put(
            chat("m", at=1, **{"gen_ai.output.messages": asks(("call_t", "bash", {"command": "python sub.py"}))}),
            outer,
            chat("n", "t", at=15, **{"gen_ai.output.messages": asks(("call_u", "bash", {"command": "rm -rf x"}))}),
            inner,
        )

        calls = lab.rows("SELECT call_id, outcome, source FROM tool_calls ORDER BY call_no")
        assert calls == [("call_t", "ok", "span"), ("call_u", "ok", "span")]
        assert ("rm -rf x",) in lab.rows("SELECT text FROM commands")

    @pytest.mark.parametrize("other", [{"gen_ai.tool.call.id": None}, {"gen_ai.tool.call.id": "call_t"}])
    def test_a_layer_without_an_id_of_its_own_is_the_same_call(self, lab: Lab, other: dict[str, Any]) -> None:
        lab.put(tool("t", at=10), tool("u", "t", at=25, **other))

        assert lab.totals("tool_calls") == (1,)

    def test_a_layer_that_another_instrumentation_gives_an_id_is_the_same_call(self, lab: Lab) -> None:
        inner = tool("u", "t", at=25)
        inner.scope = "other"
        lab.put(tool("t", at=10), inner)

        assert lab.totals("tool_calls") == (1,)

    def test_a_result_with_another_id_of_the_same_kind_is_another_calls(self, lab: Lab) -> None:
        """The model call that asked for `call_2` was lost: that its result is there does not say that `call_1` ran."""
        heard = {"gen_ai.input.messages": answered("call_2", "sent")}
        lab.put(agent("a"), asking("m", 1, ("call_1", "delete_all", {})), chat("n", "a", at=20, **heard))

        assert lab.rows("SELECT name, outcome, certain FROM tool_calls") == [("delete_all", None, False)]


class TestRequestsAroundATool:
    """A span that says that it is a model call, around requests of which neither usage nor an answer is recorded."""

    @staticmethod
    def request(id: str, at: int, to: int) -> S:
        return S(id, "m", at, to, "generate", {"gen_ai.operation.name": "chat", "gen_ai.request.model": "gpt-4o"})

    def around(self, *inside: S) -> tuple[S, ...]:
        around = chat("m", "a", at=1)
        around.to = 90
        return (agent("a"), around, *inside)

    def test_a_tool_between_two_was_asked_for_by_the_first(self, lab: Lab) -> None:
        lab.put(*self.around(self.request("n", 2, 10), tool("t", "m", at=20), self.request("o", 30, 40)))

        assert lab.rows("SELECT count(*) FROM llm_calls") == [(2,)]

    def test_the_first_may_end_after_the_tool(self, lab: Lab) -> None:
        """It is a generator's, which goes on when its answer was used."""
        lab.put(*self.around(self.request("n", 2, 25), tool("t", "m", at=20), self.request("o", 30, 40)))

        assert lab.rows("SELECT count(*) FROM llm_calls") == [(2,)]

    def test_without_a_tool_between_them_they_may_be_attempts(self, lab: Lab) -> None:
        lab.put(*self.around(self.request("n", 2, 10), self.request("o", 30, 40), tool("t", "m", at=50)))

        assert lab.rows("SELECT count(*) FROM llm_calls") == [(1,)]
