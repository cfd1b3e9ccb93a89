"""The final answer of a run as its spans record it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from clawtrace.dialects.message_parts import Part
from clawtrace.facts.calls.llm_calls import LlmCall
from clawtrace.facts.calls.run_spans import RunSpans
from clawtrace.facts.json_text import read_json
from clawtrace.facts.runs.clocks import on_another_clock, untimed
from clawtrace.facts.tools.tool_calls import final_answers

__all__ = ["ended_without_answer", "final_output"]

_ASKING = frozenset(("system", "developer", "user"))
"""Roles of messages that are never an agent's answer."""

_GOES_ON = re.compile(r"[\s.,;:!?)\]]")
"""The beginning of a text that continues the sentence before it."""


def final_output(run: RunSpans, models: Sequence[LlmCall]) -> str | None:
    """Return the topmost agent's own word, else the text of the last model call; of the conversation that started last.

    One that was over before another one, which began earlier, asked its model for the last time is a part of it, or answered before it did.

    None where nothing records it, where the topmost agent or the work around it failed, where two conversations side by side have no one answer, where that call is work of
    a tool or a check, and where work went on after it inside of a span that was not received: the model may have been called again.
    """
    starts: dict[int, int] = {}
    ends: dict[int, int] = {}
    asks: dict[int, int] = {}
    """The start of the last model call of each."""
    unended = set[int]()
    agents = run.kinds.get("agent", ())
    homes = _homes(run)
    telling = (index for index in agents if index not in run.silent)
    for index in sorted((*telling, *run.kinds.get("llm", ()))):  # in order of start
        span, root = run.spans[index], homes[run.root[index]]
        end_ns = span.start_ns if span.end_ns is None else span.end_ns
        if span.end_ns is None:
            unended.add(root)
        if root not in starts:
            starts[root] = span.start_ns
            ends[root] = end_ns
        elif end_ns > ends[root]:
            ends[root] = end_ns
        if span.kind == "llm":
            asks[root] = span.start_ns
    if not starts:
        return None
    within, asked_ns = set[int](), -1
    for root in starts:  # in order of start
        if ends[root] <= asked_ns and root not in unended:
            within.add(root)
        asked_ns = max(asked_ns, asks.get(root, 0))
    last = max(starts.keys() - within, key=lambda root: (starts[root], root))
    if any(end_ns > starts[last] for root, end_ns in ends.items() if root != last and root not in within):
        return None
    tellers = [index for index, role in enumerate(run.role) if role == "history"]
    speakers = sorted({*agents, *tellers}) if tellers else agents
    tops = [index for index in speakers if run.agent[index] is None and homes[run.root[index]] == last]
    if _ended_in_failure(
        run, tops[-1:] or [index for index in run.kinds.get("llm", ()) if homes[run.root[index]] == last]
    ):
        return None
    answering = [(run.depth[index], index) for index in tops if _own_word(run, index) is not None]
    # Of several one after the other the last one answered; whether one without an answer did is unknown.
    topmost = [index for depth, index in answering if depth == min(answering)[0]]
    if topmost and topmost[-1] == max(index for index in tops if run.depth[index] <= run.depth[topmost[-1]]):
        side_by_side = any(run.spans[index].last_ns > run.spans[topmost[-1]].start_ns for index in topmost[:-1])
        word = _own_word(run, topmost[-1])
        own = [call for call in models if call.agent == topmost[-1]] or models
        joined = _is_joined(run, models, own, word) and not run.words(topmost[-1]).answer_on_agent
        given_up = run.unproven(topmost[-1]) and any(
            doubt.reason in ("given-up-call", "nothing-answered") for one in own[-1:] for doubt in one.doubts
        )
        return None if side_by_side or joined or given_up or _is_error(run, models, word) else word
    if tellers and not models:
        return _message(run, [index for index in agents if homes[run.root[index]] == last], tellers)
    call = next((call for call in reversed(models) if homes[run.root[call.index]] == last), None)
    if untimed(run, on_another_clock(run), (one.index for one in models)):
        return None  # which one was the last is unknown
    if call is None or call.outcome != "ok" or call.voice is None or _failed_after(run, call):
        return None
    if _ended_in_failure(run, [call.index]):
        return None  # the step that asked for it may have failed on the answer
    if any(run.words(index).answer_on_agent for index in agents):
        return None
    if any(run.spans[index].emits == "session" and run.root[index] == run.root[call.index] for index in run.emitting):
        return None  # what a started agent says may stand among what this one says
    if run.went_on_unseen(run.spans[call.index].last_ns) or _answers_a_tool(run, models, call):
        return None
    if run.inside(run.every("guardrail", "evaluator"))(call.index):
        return None  # it answers a check
    answered_ns = run.spans[call.index].last_ns
    name = None if call.agent is None else run.spans[call.agent].agent_name
    others = [index for index in tops if run.spans[index].agent_name != name and not run.encloses(index, call.index)]
    if any(run.spans[index].start_ns < answered_ns < run.spans[index].last_ns for index in others):
        return None  # another agent worked on: it may have asked for a check of its answer
    said = run.said(call.voice, "output")
    if len({part.message_no for part in said if part.type == "text" and part.text}) > 1:
        return None  # several choices, of which the program took one
    given = _given(run, said)
    return given if given is not None or _asks(said) else _answer(run, call, _text(said))


def ended_without_answer(run: RunSpans, models: Sequence[LlmCall]) -> bool:
    """Return whether there certainly is no final answer.

    The last model call of the topmost agent that started last failed or only asked for a tool, and after it nothing worked: that
    agent failed and was the last at work, or nothing was carried out and only models answer in its framework.
    """
    agents = [index for index in run.kinds.get("agent", ()) if run.agent[index] is None]
    if not agents or not models or untimed(run, on_another_clock(run), (call.index for call in models)):
        return False
    top = max(agents, key=lambda index: run.spans[index].start_ns)
    last = max(models, key=lambda call: run.spans[call.index].start_ns)
    working = [run.spans[index] for index in run.every("agent", "llm", "tool")]
    is_over = run.spans[top].failed and all(span.last_ns <= run.spans[top].last_ns for span in working)
    around = run.inside(run.every("tool", "guardrail"))
    if run.words(top).only_models_answer and last.agent == top and not around(last.index):
        asked_ns = run.spans[last.index].start_ns
        is_over |= all((span.last_ns if span.kind == "tool" else span.start_ns) <= asked_ns for span in working)
    said = run.said(last.voice, "output")
    # A framework may take a call whose id has a result already for carried out, and the text around it for the answer.
    earlier = {part.call_id for call in models if call is not last for part in run.said(call.voice, "output")} - {None}
    may_answer = bool(_text(said)) and any(part.call_id in earlier for part in said)
    unusable = last.outcome == "error" or run.spans[last.index].unusable
    # Of two instrumentations that record both, the call may be in the tree of the other one.
    its_own = last.agent == top or run.encloses(top, last.index)
    return is_over and its_own and (unusable or (_asks(said) and not may_answer))


def _answers_a_tool(run: RunSpans, models: Sequence[LlmCall], call: LlmCall) -> bool:
    """Return whether a call is inside a tool that another model called: its answer is the tool's, and the other model's is missing."""
    inside = run.inside(run.kinds.get("tool", ()))
    return inside(call.index) and any(
        not inside(other.index) and run.root[other.index] == run.root[call.index] for other in models
    )


def _failed_after(run: RunSpans, call: LlmCall) -> bool:
    """Return whether a span of an answered call failed when the answer came or later: the program could not use the answer."""
    answered_ns = run.spans[call.index].last_ns
    members = (run.spans[index] for index in run.kinds["llm"] if run.group[index] == call.group)
    return any(span.failed and span.last_ns >= answered_ns for span in members)


def _ended_in_failure(run: RunSpans, working: Sequence[int]) -> bool:
    """Return whether the last of some spans is a failed agent or inside failed work."""
    if not working:
        return False
    last, root = working[-1], run.root[working[-1]]
    around = [index for index, top in enumerate(run.root) if top == root and run.encloses(index, last)]
    if run.spans[last].kind == "agent":
        around.append(last)
    return any(run.spans[index].failed and run.spans[index].kind != "infra" for index in around)


def _own_word(run: RunSpans, index: int) -> str | None:
    """Return the answer that an agent's span records: a separate field, or else the last of its messages.

    Its messages are `gen_ai.output.messages`, or the conversation that its span holds.
    """
    span, is_history = run.spans[index], run.role[index] == "history"
    if span.final_output is not None or not (is_history or span.output_format in ("genai_parts", "genai_reprs")):
        return span.final_output
    parts = run.said(index, "output")
    last = [part for part in parts if part.message_no == parts[-1].message_no]
    foreign = any(part.role != "assistant" if is_history else (part.role or "").lower() in _ASKING for part in last)
    return None if _asks(last) or foreign else _text(last)


def _is_joined(run: RunSpans, models: Sequence[LlmCall], own: Sequence[LlmCall], word: str | None) -> bool:
    """Return whether the answer on an agent's span is made of several answers: programs get all of them, or only the last.

    Of several of which the last has no text, it is the text of those before, of earlier turns as well.
    """
    texts = [None if call.voice is None else _text(run.said(call.voice, "output")) for call in own]
    if not word or not texts or texts[-1] == word:
        return False
    if not texts[-1]:
        turns = (call for call in models if call.agent is None or run.agent[call.agent] is None)
        texts = [*(_text(run.said(call.voice, "output")) for call in turns if call.voice is not None), None]
    return any(text and word.startswith(text) and (word != text or not texts[-1]) for text in texts[:-1])


def _asks(parts: Sequence[Part]) -> bool:
    """Return whether a message requests a tool: its text is then no answer."""
    return any(part.type == "tool_call" for part in parts)


def _answer(run: RunSpans, call: LlmCall, text: str | None) -> str | None:
    """Return the answer within a text whose form a framework demands of the model (`DialectFile.answer_forms`)."""
    if text is None:
        return None
    tellers = {run.spans[index].dialect for index in run.kinds["llm"] if run.group[index] == call.group}
    forms = dict.fromkeys(form for name in sorted(tellers) for form in run.dialects[name].file.answer_forms)
    found = next((match for form in forms if (match := re.match(form, text))), None)
    if found is None:
        return text
    return found.group(1) if found.re.groups else None


def _is_error(run: RunSpans, models: Sequence[LlmCall], word: str | None) -> bool:
    """Return whether the text on an agent's span is not an answer but the failure of its last model call."""
    failure = run.spans[models[-1].index].error if models and models[-1].outcome != "ok" else None
    return bool(word) and word is not None and failure is not None and word in failure


def _given(run: RunSpans, said: Sequence[Part]) -> str | None:
    """Return the text passed to a tool that gives the final answer: its one argument."""
    calls = [part.text for part in said if part.type == "tool_call" and part.name in final_answers(run.spans)]
    if len(calls) != 1:
        return None
    given = read_json(calls[0])
    values = list(given.values()) if isinstance(given, dict) else []
    return values[0] if len(values) == 1 and isinstance(values[0], str) else None


def _text(parts: Sequence[Part]) -> str | None:
    """Return the text of an answer, each part on a line unless it continues a sentence; None if no part is text."""
    texts = [part.text or "" for part in parts if part.type == "text"]
    said: list[str] = []
    for text in filter(None, texts):
        # An answer that cites its sources is cut into parts in the middle of its lines.
        said += ["\n", text] if said and not (said[-1][-1].isspace() or _GOES_ON.match(text)) else [text]
    return "".join(said) if texts else None


def _message(run: RunSpans, agents: Sequence[int], tellers: Sequence[int]) -> str | None:
    """Return the last message of the agent that worked last, as recorded by a span elsewhere."""
    if not agents:
        return None
    last = run.spans[max(agents)]
    words = (run.spans[index] for index in tellers)
    said = [
        word.final_output for word in words if word.owner_agent == last.agent_name and word.start_ns >= last.start_ns
    ]
    return said[-1] if said else None


def _homes(run: RunSpans) -> dict[int, int]:
    """Return the root of the conversation of each root: another one if that tree records one of its model calls, too."""
    found: dict[int | None, int] = {}
    models = run.kinds.get("llm", ())
    for index in sorted(models, key=lambda n: (run.spans[run.root[n]].kind == "llm", run.root[n])):
        found.setdefault(run.group[index], run.root[index])
    again: dict[int, int] = {}
    for index in models:
        home = found[run.group[index]]
        if home != run.root[index]:
            again.setdefault(run.root[index], again.get(home, home))
    return {root: again.get(root, root) for root in set(run.root)}
