"""What a program writes of work that other spans record is not certain to be work; what is, is counted once."""

from __future__ import annotations

from pathlib import Path

import pytest
from building import SDK, Lab, S, agent, answered, asks, chat, says, tool

from clawtrace.receiver.recordings.recording import Grouping
from clawtrace.session.session import Session

INPUT, OUTPUT = "gen_ai.input.messages", "gen_ai.output.messages"
BOUNDS = "SELECT {0}_low, {0}_high FROM run_totals"


def of_sdk(span: S) -> S:
    span.scope = SDK
    return span


def called(id: str, at: int, **attrs: str) -> S:
    return S(id, "a", at, at + 1, "tool.get", {"tool.name": "get"} | attrs, scope="bot")


ASKING = chat("c", "a", at=1, **{OUTPUT: asks(("1", "get", {"city": "Paris"}))})
ANSWERING = chat("d", "a", at=20, **{OUTPUT: says("Sunny.")})


class TestInItsOwnWords:
    def test_a_model_call_next_to_those_of_an_instrumentation(self, lab: Lab) -> None:
        own = {"llm.model": "gpt-4o", "llm.tokens.input": 100, "llm.tokens.output": 10}
        lab.put(agent("a"), of_sdk(chat("c", "a", at=1)), S("n", "a", 7, 8, "llm_request", own, scope="bot"))

        assert lab.rows(BOUNDS.format("llm_calls")) == [(1, 2)]

    def test_a_model_call_that_nothing_else_records(self, lab: Lab) -> None:
        own = {"llm.model": "gpt-4o", "llm.tokens.input": 100, "llm.tokens.output": 10}
        lab.put(S("a", name="agent.run", to=50, attrs={"agent.name": "bot"}), S("n", "a", 7, 8, "llm_request", own))

        assert lab.totals("llm_calls") == (1,)

    def test_a_tool_call_that_nobody_asked_for(self, lab: Lab) -> None:
        """The second span of the name may say how the first one ended."""
        lab.put(
            agent("a"),
            of_sdk(ASKING),
            called("t", 8, **{"tool.arguments": '{"city": "Paris"}'}),
            called("u", 10),
            of_sdk(ANSWERING),
        )

        assert lab.rows(BOUNDS.format("tool_calls")) == [(1, 2)]


def test_results_of_calls_that_nothing_records(lab: Lab) -> None:
    """An answer may have lost what it asked for: how many tools were called is not known."""
    lab.put(
        agent("a"),
        chat("c", "a", at=1),
        chat("d", "a", at=20, **{INPUT: answered("1", "Sunny"), OUTPUT: says("Sunny.")}),
    )

    assert lab.totals("tool_calls") == (None,)


@pytest.mark.parametrize("words", ["ParentCommand(Command(goto='b'))", "GraphInterrupt((Interrupt(value='?'),))"])
def test_a_graphs_jump_is_no_failure(lab: Lab, words: str) -> None:
    jump = agent("a")
    jump.error = words
    lab.put(jump, chat("c", "a", at=1))

    assert lab.totals("errors") == (0,)


class TestToolsInTheTimeOfAModelSpan:
    def test_one_that_began_in_the_same_millisecond_came_before(self, lab: Lab) -> None:
        """Some clocks have whole milliseconds of the start, and more of the end."""
        lab.put(agent("a"), tool("t", "a", at=10), chat("d", "a", at=10))

        assert lab.totals("llm_calls") == (1,)

    def test_one_inside_of_it(self, lab: Lab) -> None:
        loop = chat("d", "a", at=10)
        loop.to = 40
        lab.put(agent("a"), loop, tool("t", "d", at=20))

        assert lab.totals("llm_calls") == (None,)

    def test_one_next_to_the_request_inside_of_it(self, lab: Lab) -> None:
        """Each request of the loop has a span."""
        loop = chat("d", "a", at=10)
        loop.to = 40
        lab.put(agent("a"), loop, chat("e", "d", at=11), tool("t", "d", at=20))

        assert lab.totals("llm_calls") == (1,)


def test_a_log_record_is_no_note_for_its_lack_of_a_duration() -> None:
    """Codex records its model calls as log records, which are points in time."""
    logs = Path(__file__).parents[2] / "recordings" / "codex" / "delegation" / "logs.otlp.jsonl.gz"
    with Session.open() as session:
        session.load_recordings([logs], Grouping("one", "r"))
        (run,) = session.inspect(["r"])["runs"]

    assert run["totals"]["llm_calls"] == 5
