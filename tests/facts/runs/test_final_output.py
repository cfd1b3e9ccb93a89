"""What a run answered: the word of the topmost agent of the conversation that started last, or nothing where two compete."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from building import Lab, S, agent, asks, chat, says, tool

from clawtrace.model.run import RunRecord

OTHER = f"{2:032x}"
GIVEN = (
    "gen_ai.response.finish_reasons",
    "gen_ai.usage.input_tokens",
    "gen_ai.usage.output_tokens",
    "gen_ai.response.model",
)
"""What no failed request has."""
ANSWER = "SELECT final_output FROM runs WHERE run_id = :run"


def said(id: str, parent: str, at: int, text: str, trace: str = "") -> S:
    """A model call that answered with a text."""
    span = chat(id, parent, at=at, **{"gen_ai.output.messages": says(text)})
    span.trace = trace or span.trace
    return span


def elsewhere(span: S) -> S:
    span.trace = OTHER
    return span


def test_the_last_model_call_answers(lab: Lab) -> None:
    lab.put(agent("a"), said("m", "a", 1, "Let me see."), tool("t", "a", at=10), said("n", "a", 20, "It is sunny."))

    assert lab.rows(ANSWER) == [("It is sunny.",)]


def test_of_several_choices_the_program_took_one(lab: Lab) -> None:
    """They were joined, and `equals` failed for the one that was used."""
    choices = [{"role": "assistant", "parts": [{"type": "text", "content": text}]} for text in ("It is 3.", "It is 4.")]
    lab.put(chat("m", at=1, **{"gen_ai.output.messages": json.dumps(choices)}))

    assert lab.rows(ANSWER) == [(None,)]


def test_a_last_call_that_asks_for_a_tool_is_no_answer(lab: Lab) -> None:
    """Nor is one that got none: what was said before it was not the last word."""
    lab.put(
        agent("a"), said("m", "a", 1, "x"), chat("n", "a", at=20, **{"gen_ai.output.messages": asks(("c", "t", {}))})
    )
    failed = said("n", "a", 20, "partial")
    failed.error = "500"
    lab.put(agent("a"), said("m", "a", 1, "x"), failed, run="failed")

    assert lab.rows(ANSWER) == [(None,)]
    assert lab.rows(ANSWER, "failed") == [(None,)]


def test_the_answer_of_an_agent_in_a_tool_is_not_the_last_word(lab: Lab) -> None:
    """The model that called the tool answers after it, and that call was not received."""
    caller, inner = (
        (agent("a"), said("m", "a", 1, "x")),
        (tool("t", "a", at=10), agent("b", "t", at=10, agent="helper")),
    )
    lab.put(*caller, *inner, said("n", "b", 10, "It is sunny."))
    lab.put(*caller, *inner, said("n", "b", 10, "It is sunny."), said("o", "a", 20, "It rains."), run="answered")

    assert lab.rows(ANSWER) == [(None,)]
    assert lab.rows(ANSWER, "answered") == [("It rains.",)]


def test_an_agent_that_failed_gave_no_answer(lab: Lab) -> None:
    """Whatever its model said before, and whatever its own span repeats of that."""
    failed = agent("a", **{"gen_ai.output.messages": says("Let me see.")})
    failed.error = "out of turns"
    lab.put(failed, said("m", "a", 1, "Let me see."))

    assert lab.rows(ANSWER) == [(None,)]


def test_an_agent_whose_answer_ended_in_an_error_failed(lab: Lab) -> None:
    """`error` is the conventions' word for it; Agno's instrumentation marks no span."""
    message = json.loads(says("I will look."))[0]
    for reason in ("error", "stop"):
        lab.put(agent("a", **{"gen_ai.output.messages": json.dumps([message | {"finish_reason": reason}])}), run=reason)

    assert lab.rows(ANSWER, "error") == [(None,)]
    assert lab.rows(ANSWER, "stop") == [("I will look.",)]
    assert lab.totals("errors", run="error") == (1,)


def test_an_agents_words_may_join_those_of_an_answer_that_broke_off(lab: Lab) -> None:
    """The program is given both, or the last alone."""
    words = {"gen_ai.output.messages": says("I will It is sunny.")}
    broken = said("m", "a", 1, "I will ")
    broken.attrs |= {"gen_ai.response.finish_reasons": ["other"]}
    del broken.attrs["gen_ai.usage.input_tokens"], broken.attrs["gen_ai.usage.output_tokens"]
    lab.put(agent("a", **words), broken, said("n", "a", 20, "It is sunny."))

    assert lab.rows(ANSWER) == [(None,)]


def test_an_agents_joined_words_are_compared_with_its_own_calls(lab: Lab) -> None:
    """It says what it said before it asked another agent, because its last call said nothing."""
    spans = [
        agent("a", **{"gen_ai.output.messages": says("Let me look.")}),
        said("m", "a", 1, "Let me look."),
        tool("t", "a", at=10),
        agent("b", "t", at=11, to=12, agent="researcher"),
        said("n", "b", 11, "It is sunny."),
        said("o", "a", 20, ""),
    ]
    spans[2].to = 18
    lab.put(*spans)

    assert lab.rows(ANSWER) == [(None,)]


@pytest.mark.parametrize(("second", "answer"), [("", None), (None, None), ("Fine.", "Fine.")])
def test_an_answer_of_an_earlier_turn_is_not_that_of_a_silent_one(
    lab: Lab, second: str | None, answer: str | None
) -> None:
    """As the instrumentation of LangChain wrote it: the agent's last message with a text, whenever it was said."""
    word = {"gen_ai.output.messages": says("Fine.")}
    first, next_turn = agent("a", to=15, **word), agent("b", at=20, **word)
    last = elsewhere(chat("n", "b", at=21)) if second is None else said("n", "b", 21, second, OTHER)
    lab.put(first, said("m", "a", 1, "Fine."), elsewhere(next_turn), last)

    assert lab.rows(ANSWER) == [(answer,)]


@pytest.mark.parametrize(
    ("name", "attrs", "answer"), [("run", {}, None), ("GET /chat", {"http.route": "/chat"}, "Fine.")]
)
def test_work_that_failed_around_the_agent_gave_no_answer(
    lab: Lab, name: str, attrs: dict[str, str], answer: str | None
) -> None:
    """A runner may fail on what its agent answered; a server around it may fail on something else."""
    lab.put(S("r", "", 0, 200, name, attrs, error="no such agent"), agent("a", "r"), said("m", "a", 1, "Fine."))
    lab.put(S("r", "", 0, 200, name, attrs, error="no such agent"), said("m", "r", 1, "Fine."), run="no agent")

    assert lab.rows(ANSWER) == lab.rows(ANSWER, "no agent") == [(answer,)]


def test_an_agents_word_that_repeats_its_last_failure_is_no_answer(lab: Lab) -> None:
    """Whatever the agent's span says of itself; other words next to a failed call are its answer."""
    failed = said("m", "a", 1, "")
    del failed.attrs["gen_ai.response.finish_reasons"]
    failed.error = "Error code: 400 - no such order"
    lab.put(agent("a", **{"gen_ai.output.messages": says("no such order")}), failed)
    lab.put(agent("a", **{"gen_ai.output.messages": says("Try again later.")}), failed, run="kept")

    assert lab.rows(ANSWER) == [(None,)]
    assert lab.rows(ANSWER, "kept") == [("Try again later.",)]


@pytest.mark.parametrize(("ends", "asked_again", "answer"), [(60, 60, "the first"), (60, 59, None), (0, 60, None)])
def test_a_conversation_that_was_over_before_another_asked_again_did_not_answer_last(
    lab: Lab, ends: int, asked_again: int, answer: str | None
) -> None:
    """It is a helper's in a thread, or an earlier one; what was asked before it was over may have been answered by it."""
    lab.put(
        agent("a", to=90),
        elsewhere(agent("b", at=40, to=ends)),
        said("n", "b", 45, "the second", OTHER),
        said("m", "a", asked_again, "the first"),
    )

    assert lab.rows(ANSWER) == [(answer,)]


@pytest.mark.parametrize(("first_ends", "answer"), [(30, "the second"), (40, "the second"), (41, None), (90, None)])
def test_of_two_conversations_the_later_one_answers_if_the_first_was_over(
    lab: Lab, first_ends: int, answer: str | None
) -> None:
    """However short the last call of the first one was: its agent may still have been at work."""
    lab.put(
        agent("a", to=first_ends),
        said("m", "a", 5, "the first"),
        elsewhere(agent("b", at=40, to=60)),
        said("n", "b", 45, "the second", OTHER),
    )

    assert lab.rows(ANSWER) == [(answer,)]


def test_a_conversation_that_never_ended_counts_from_its_start(lab: Lab) -> None:
    lab.put(
        agent("a", to=0),
        said("m", "a", 5, "the first"),
        elsewhere(agent("b", at=40, to=60)),
        said("n", "b", 45, "the second", OTHER),
    )

    assert lab.rows(ANSWER) == [("the second",)]


def test_several_texts_of_one_answer_are_its_lines(lab: Lab) -> None:
    both = says("One.").replace("}]}]", '}, {"type": "text", "content": "Two."}]}]')
    lab.put(agent("a"), chat("m", "a", at=1, **{"gen_ai.output.messages": both}))

    assert lab.rows(ANSWER) == [("One.\nTwo.",)]


def test_texts_that_are_cut_in_the_middle_of_a_line_are_one_line(lab: Lab) -> None:
    """As where a provider cites its sources."""
    parts = "".join(
        f', {{"type": "text", "content": "{text}"}}' for text in ("born in 1916", ", and died ", "in 2001", ".")
    )
    whole = says("He was ").replace("}]}]", f"}}{parts}]}}]")
    lab.put(agent("a"), chat("m", "a", at=1, **{"gen_ai.output.messages": whole}))

    assert lab.rows(ANSWER) == [("He was born in 1916, and died in 2001.",)]


def test_work_without_agent_and_model_says_nothing(lab: Lab) -> None:
    lab.put(S("s"), tool("t", "s", at=1))

    assert lab.rows(ANSWER) == [(None,)]


def test_a_later_conversation_that_said_nothing_takes_no_answer_from_the_earlier_one(lab: Lab) -> None:
    """Its model was called, and what it said was not recorded."""
    second = (elsewhere(agent("b", at=40, to=60)), elsewhere(chat("n", "b", at=45)))
    lab.put(agent("a", to=30), said("m", "a", 5, "the first"), *second)

    assert lab.rows(ANSWER) == [(None,)]


def worker(id: str, parent: str, at: int, to: int, word: str | None) -> S:
    """An agent span of OpenInference, whose output is the agent's own word."""
    attrs = {"openinference.span.kind": "AGENT", "agent.name": id} | ({} if word is None else {"output.value": word})
    return S(id, parent, at, to, f"{id}.run", attrs, scope="openinference.instrumentation.instructor")


def test_the_topmost_agents_own_word_goes_before_the_models(lab: Lab) -> None:
    """And before that of the agents that it asked, however late they spoke."""
    lab.put(worker("top", "", 0, 90, "Top."), worker("sub", "top", 10, 80, "Sub."), said("m", "sub", 20, "Model."))

    assert lab.rows(ANSWER) == [("Top.",)]


def test_the_word_of_an_agent_that_was_asked_is_no_answer(lab: Lab) -> None:
    lab.put(worker("top", "", 0, 90, None), worker("sub", "top", 10, 40, "Sub."), said("m", "top", 50, "Model."))

    assert lab.rows(ANSWER) == [("Model.",)]


def test_the_word_of_an_earlier_conversation_is_no_answer(lab: Lab) -> None:
    lab.put(worker("top", "", 0, 30, "Top."), elsewhere(agent("b", at=40, to=60)), said("n", "b", 45, "Later.", OTHER))

    assert lab.rows(ANSWER) == [("Later.",)]


def test_an_agents_output_messages_are_its_answer(lab: Lab) -> None:
    """Not what its last model call said: an agent may rework it. Of several messages the last one is the answer."""
    messages = json.dumps([*json.loads(says("Let me see.")), *json.loads(says("IT IS SUNNY."))])
    lab.put(agent("a", **{"gen_ai.output.messages": messages}), said("m", "a", 1, "It is sunny."))
    asking = agent("a", **{"gen_ai.output.messages": asks(("c", "t", {}))})
    lab.put(asking, said("m", "a", 1, "It is sunny."), run="asking")

    assert lab.rows(ANSWER) == [("IT IS SUNNY.",)]
    assert lab.rows(ANSWER, "asking") == [("It is sunny.",)]


@pytest.mark.parametrize("role", ["system", "user", "developer"])
def test_a_prompt_in_the_place_of_an_agents_answer_is_none(lab: Lab, role: str) -> None:
    """Some frameworks write the messages from before the work as an agent's output."""
    prompt = json.dumps([{"role": role, "parts": [{"type": "text", "content": "Be brief."}]}])
    lab.put(agent("a", **{"gen_ai.output.messages": prompt}), said("m", "a", 1, "It is sunny."))

    assert lab.rows(ANSWER) == [("It is sunny.",)]


def test_of_agents_one_after_the_other_the_last_one_answered(lab: Lab) -> None:
    """Of agents side by side none did, and of one that says nothing its last model call says."""

    def answered(id: str, at: int, to: int, text: str | None) -> S:
        return agent(id, "w", at=at, to=to, **{"gen_ai.output.messages": None if text is None else says(text)})

    flow = S("w", at=0, to=100, name="workflow")
    lab.put(flow, answered("a", 1, 40, "one"), answered("b", 40, 90, "two"))
    lab.put(flow, answered("a", 1, 60, "one"), answered("b", 40, 90, "two"), run="at once")
    lab.put(flow, answered("a", 1, 40, "one"), answered("b", 40, 90, None), said("m", "b", 50, "three"), run="silent")

    assert [lab.rows(ANSWER, run) for run in ("r", "at once", "silent")] == [[("two",)], [(None,)], [("three",)]]


def test_empty_parts_of_an_answer_add_nothing(lab: Lab) -> None:
    parts = [{"type": "text", "content": text} for text in ("It is sunny.", "")]
    lab.put(
        agent("a"),
        chat("m", "a", at=1, **{"gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": parts}])}),
    )

    assert lab.rows(ANSWER) == [("It is sunny.",)]


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("[[ ## answer ## ]]\nIt is\nsunny.\n\n[[ ## completed ## ]]", "It is\nsunny."),
        ("[[ ## reasoning ## ]]\nBy tools.\n\n[[ ## verdict ## ]]\nyes\n\n[[ ## completed ## ]]\n", "yes"),
        ("[[ ## city ## ]]\nParis\n\n[[ ## celsius ## ]]\n21\n\n[[ ## completed ## ]]", None),
        ("[[ ## answer ## ]]\nIt was cut", None),
        ("It says [[ ## answer ## ]] here.", "It says [[ ## answer ## ]] here."),
    ],
)
def test_an_answer_in_the_form_of_a_framework_is_the_field_in_it(lab: Lab, text: str, answer: str | None) -> None:
    """Whichever instrumentation wrote it. Of several fields nothing says which one answers."""
    lab.put(said("m", "", 1, text))

    assert lab.rows(ANSWER) == [(answer,)]


class TestFinalOutput:
    def test_the_last_call_of_the_run_speaks(self, lab: Lab) -> None:
        lab.put(agent("a"), chat("m", "a", at=1, **{"gen_ai.output.messages": says("It is 21 degrees.")}))

        assert lab.rows("SELECT final_output FROM runs") == [("It is 21 degrees.",)]

    def test_two_conversations_side_by_side_have_no_one_answer(self, lab: Lab) -> None:
        one = [agent("a", to=50), chat("m", "a", at=1, **{"gen_ai.output.messages": says("A")})]
        two = [agent("b", at=5, to=60), chat("n", "b", at=6, **{"gen_ai.output.messages": says("B")})]
        for span in two:
            span.trace = f"{2:032x}"
        lab.put(*one, *two)

        assert lab.rows("SELECT final_output FROM runs") == [(None,)]


@pytest.mark.parametrize(
    ("failing", "status"),
    [(["a", "n"], False), (["n"], None), (["a"], None), ([], True)],
    ids=["agent and its last call", "call alone", "agent alone", "nothing"],
)
def test_an_agent_that_failed_with_its_last_call_gave_no_answer(
    lab: Lab, failing: list[str], status: bool | None
) -> None:
    """The run is known to have none; where only one of both failed the program may have answered."""
    last = chat("n", "a", at=20, **dict.fromkeys(GIVEN)) if "n" in failing else said("n", "a", 20, "y")
    spans = [agent("a"), said("m", "a", 1, "x"), last]
    for span in spans:
        span.error = "500" if span.id in failing else span.error
    lab.put(*spans)

    assert lab.rows("SELECT answered FROM runs WHERE run_id = :run") == [(status,)]


@pytest.mark.parametrize(("failing", "answer"), [("b", None), ("c", None), ("", "Fine.")])
def test_an_answer_that_its_step_may_have_failed_on_is_none(lab: Lab, failing: str, answer: str | None) -> None:
    """The agent around may catch the failure of one that it asked, or of a step that checks the answer, and end well."""
    spans = [agent("a"), agent("b", "a", agent="writer"), S("c", "b", 1, 30, "check"), said("m", "c", 2, "Fine.")]
    for span in spans:
        span.error = "the answer is refused" if span.id == failing else span.error
    lab.put(*spans)

    assert lab.rows(ANSWER) == [(answer,)]


@pytest.mark.parametrize(("to", "answer"), [(60, None), (9, "Fine.")])
def test_the_last_call_of_an_agent_that_another_one_outlasts_may_be_a_check(
    lab: Lab, to: int, answer: str | None
) -> None:
    """Nothing is recorded of what the checking agent was for."""
    first = agent("a", "w", to=to)
    lab.put(
        S("w", "", 0, 90, "workflow"),
        first,
        said("m", "a", 1, "Hi."),
        agent("b", "w", at=10, to=40, agent="checker"),
        said("n", "b", 20, "Fine."),
    )

    assert lab.rows(ANSWER) == [(answer,)]


@pytest.mark.parametrize("lost", [False, True], ids=["open", "incomplete"])
def test_a_run_of_which_more_may_come_may_be_answered_yet(lab: Lab, lost: bool) -> None:
    """A program may try again: the spans that it will send, or that were lost, may hold the answer."""
    failed, call = agent("a", "gone" if lost else ""), chat("n", "a", at=20, **dict.fromkeys(GIVEN))
    failed.error = call.error = "500"
    lab.put(failed, call, record=None if lost else RunRecord("r", "r"))

    assert lab.rows("SELECT answered FROM runs WHERE run_id = :run") == [(None,)]


def test_work_after_a_failed_agent_may_have_answered(lab: Lab) -> None:
    failed, call = agent("a", to=30), chat("n", "a", at=20, **dict.fromkeys(GIVEN))
    failed.error = call.error = "500"
    lab.put(failed, call, chat("o", at=40, **{"gen_ai.output.messages": None}))

    assert lab.rows("SELECT answered FROM runs WHERE run_id = :run") == [(None,)]


FRAMEWORK = "opentelemetry.instrumentation.genai.openai_agents"
"""Scope of a framework that raises where a model does not answer."""
ANSWERED = "SELECT answered FROM runs WHERE run_id = :run"


@pytest.mark.parametrize("asked", [False, True], ids=["failed", "asked in vain"])
@pytest.mark.parametrize(("scope", "status"), [(FRAMEWORK, False), ("somebody's own", None)])
def test_where_only_models_answer_an_agent_without_a_failure_gave_no_answer(
    lab: Lab, scope: str, status: bool | None, asked: bool
) -> None:
    """Some frameworks end the agent's span as if nothing had happened; others answer in the place of the model."""
    last = chat("n", "a", at=20, **{"gen_ai.output.messages": asks(("c", "t", {}))} if asked else dict.fromkeys(GIVEN))
    last.error = None if asked else "500"
    lab.put(replace(agent("a"), scope=scope), said("m", "a", 1, "x"), last)

    assert lab.rows(ANSWERED) == [(status,)]


def test_text_around_a_call_under_an_id_that_has_a_result_may_be_the_answer(lab: Lab) -> None:
    """A framework takes that call for carried out."""
    said = json.loads(asks(("call_0", "get_weather", {})))
    first = chat("m", "a", at=1, **{"gen_ai.output.messages": json.dumps(said)})
    said[0]["parts"].append({"type": "text", "content": "Let me look."})
    last = chat("n", "a", at=20, **{"gen_ai.output.messages": json.dumps(said)})
    lab.put(replace(agent("a"), scope=FRAMEWORK), first, tool("t", "a", at=10), last)

    assert lab.rows(ANSWERED) == [(None,)]


def test_a_tool_that_the_last_model_call_asked_for_may_have_answered(lab: Lab) -> None:
    """A framework may end with its result."""
    asking = chat("n", "a", at=20, **{"gen_ai.output.messages": asks(("call_t", "get_weather", {}))})
    lab.put(replace(agent("a"), scope=FRAMEWORK), asking, tool("t", "a", at=30))

    assert lab.rows(ANSWERED) == [(None,)]


def test_a_model_call_inside_of_a_tool_says_nothing_of_the_agents_answer(lab: Lab) -> None:
    """The tool's result may be the answer, whatever its own model asked for."""
    asking = chat("m", "a", at=1, **{"gen_ai.output.messages": asks(("call_t", "get_weather", {}))})
    inside = chat("n", "t", at=30, **{"gen_ai.output.messages": asks(("c", "extract", {}))})
    lab.put(replace(agent("a"), scope=FRAMEWORK), asking, replace(tool("t", "a", at=20), to=60), inside)

    assert lab.rows(ANSWERED) == [(None,)]


@pytest.mark.parametrize(
    ("scope", "answer"),
    [("opentelemetry.instrumentation.genai.agno", "Let me see.It rains."), ("somebody's own", None)],
)
def test_texts_of_several_answers_are_one_where_the_agent_s_span_has_what_the_program_gets(
    lab: Lab, scope: str, answer: str | None
) -> None:
    word = {"gen_ai.output.messages": says("Let me see.It rains.")}
    lab.put(replace(agent("a", **word), scope=scope), said("m", "a", 1, "Let me see."), said("n", "a", 20, "It rains."))

    assert lab.rows(ANSWER) == [(answer,)]


def test_a_mask_in_place_of_an_answer_is_no_answer(lab: Lab) -> None:
    """As where the attribute had not been recorded: `OPENINFERENCE_HIDE_OUTPUTS`, a Collector's processors."""
    for mask in ("__REDACTED__", "****"):
        hidden = agent("a", **{"openinference.span.kind": "AGENT", "output.value": mask})
        lab.put(hidden, run=mask)
        assert lab.rows(ANSWER, mask) == [(None,)]
    lab.put(agent("a", **{"openinference.span.kind": "AGENT", "output.value": "It is ****."}))

    assert lab.rows(ANSWER) == [("It is ****.",)]


def test_of_two_instrumentations_each_tells_of_the_agent_that_failed(lab: Lab) -> None:
    """The last call is known from the one, and the agent from the other."""
    asked = {"gen_ai.output.messages": asks(("c", "t", {})), "gen_ai.response.id": "r1"}
    outer, inner = agent("a", "w", at=1, to=90), agent("b", "w", at=2, to=91)
    call, again = chat("m", "a", at=20, **asked), chat("n", "b", at=20, **asked)
    outer.error = inner.error = "no such order"
    inner.scope = again.scope = "other"
    lab.put(S("w", at=0, to=99, name="workflow"), outer, call, inner, again)

    assert lab.rows("SELECT count(*) FROM llm_calls") == [(1,)]
    assert lab.rows("SELECT answered FROM runs") == [(False,)]
