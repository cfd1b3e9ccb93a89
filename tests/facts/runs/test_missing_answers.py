"""A request that repeats an answer which no span recorded: model calls are missing (reason `missing_model_call`)."""

from __future__ import annotations

import json
from typing import Any

from building import Lab, S, agent, asks, chat, hex_id, says, tool

QUESTION = {"role": "user", "parts": [{"type": "text", "content": "Weather?"}]}


def history(*call_ids: str, first: dict[str, Any] = QUESTION) -> str:
    """Input messages: a question, then each call with its result."""
    messages = [first]
    for call_id in call_ids:
        asked = {"type": "tool_call", "id": call_id, "name": "get_weather", "arguments": {"city": "Paris"}}
        messages.append({"role": "assistant", "parts": [asked]})
        messages.append({"role": "tool", "parts": [{"type": "tool_call_response", "id": call_id, "response": "21"}]})
    return json.dumps(messages)


def model(id: str, at: int, given: str, answer: str | None) -> S:
    """A model call with what it was given and what it answered."""
    content = {"gen_ai.input.messages": given, "gen_ai.output.messages": answer}
    return chat(id, "a", at=at, **{key: value for key, value in content.items() if value is not None})


def asking(*call_ids: str) -> str:
    """An answer that asks for calls."""
    return asks(*((call_id, "get_weather", {"city": "Paris"}) for call_id in call_ids))


def spans(*calls: S, executed: str = "call_1") -> tuple[S, ...]:
    """Return an agent with its model calls and one execution."""
    return agent("a"), tool("t", "a", at=11, **{"gen_ai.tool.call.id": executed}), *calls


def put(lab: Lab, *calls: S, executed: str = "call_1") -> list[str]:
    """Store an agent with its model calls and one execution; return the reasons."""
    return lab.put(*spans(*calls, executed=executed)).reasons()


def test_a_tool_call_that_no_answer_asked_for(lab: Lab) -> None:
    """The second of three calls was lost, with the tool span that it led to."""
    last = model("m3", 50, history("call_1", "call_2"), says("It is 21 degrees."))

    assert put(lab, model("m1", 1, history(), asking("call_1")), last) == ["missing_model_call"]
    ((text,),) = lab.rows("SELECT incomplete_because FROM runs WHERE run_id = :run")
    assert json.loads(text)[0]["span_ids"] == [hex_id("m3")]


def test_what_shows_no_missing_call(lab: Lab) -> None:
    histories = [
        (history(), asking("call_1"), history("call_1"), "call_1"),  # each is known
        (history(), asking("call_1", "call_2"), history("call_1", "call_2"), "call_1"),  # both of one answer
        (history(), asking("call_1"), history("call_1", "call_2"), "call_2"),  # a span knows it
        (history("call_0"), asking("call_1"), history("call_0", "call_1"), "call_1"),  # it was there before
        (history(), asking("call_1"), history("call_1", "uuid_2"), "call_1"),  # the program's own
        (history(), asking("call_1"), history("call_2", "call_3"), "call_1"),  # ids are written anew
        (history(first={**QUESTION, "role": "assistant"}), asking("call_1"), history("call_1", "call_2"), "call_1"),
        (history(), None, history("call_1", "call_2"), "call_1"),  # answers are not recorded
    ]
    last = says("It is 21 degrees.")
    runs = {
        f"r{number}": spans(model("m1", 1, first, answer), model("m3", 50, given, last), executed=executed)
        for number, (first, answer, given, executed) in enumerate(histories)
    }
    lab.put_each(runs)

    assert {run: lab.reasons(run) for run in runs} == {run: [] for run in runs}
