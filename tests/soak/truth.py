"""What truly happened in a run, from the model server's log and the program's own, compared with what clawtrace found."""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "facts"))

import conformance
from environments import Framework
from random_model import LAST_TOOLS, agent_of, field_of, fields_wanted, works_of

from clawtrace.testing import Exchange

HELPER = "researcher"
HELPER_TOOLS = ("ask_researcher", "researcher", "task")


@dataclass(frozen=True)
class RanCommand:
    """A command that the model asked a shell for."""

    mark: str
    """A word that occurs in no other command's text."""
    ran: bool | None
    """None: it may have been."""
    exit_code: int | None
    """None where nothing but the shell can say it."""


@dataclass(frozen=True)
class Truth:
    """One run as it was."""

    answered: list[Exchange]
    failed: list[Exchange]
    tools: list[dict[str, Any]]
    """Calls that were executed, in order: name, arguments, error, start, end."""
    refused: list[dict[str, Any]]
    """Calls that the model asked for and no tool was started for: attempts where the framework began to carry them out, or none."""
    agents: list[str]
    """In the order in which they asked the model."""
    output: str | None
    raised: str | None
    cut: int
    """How many answers ended at the limit of their length."""
    counts_itself: bool
    """The client counts tokens where it is sent no numbers, or zeros."""
    helper: str = HELPER
    """Name of the agent that the first one may ask."""
    unclear: tuple[dict[str, Any], ...] = ()
    """Failed calls of which it is a matter of taste whether they were executed, among neither `tools` nor `refused`."""
    commands: tuple[RanCommand, ...] = ()
    """What shells were asked for."""
    files: tuple[tuple[str, bool], ...] = ()
    """Paths in the workspace, and whether they are there."""
    ordered: bool = True
    """Whether `tools` is in the order of the executions."""
    ends_broken_streams: bool = False
    """What was received of a stream that breaks off is an answer to the client."""
    works: Mapping[str, str] = field(default_factory=dict)
    """How an agent came to work, in the words of `agent_program.system`; without them for the first one, if it is another."""
    first_agent: str = "assistant"
    again: bool = False
    """The work failed, and was done once more."""
    given_up: bool = False
    """The program cancelled the work."""
    unheard: Sequence[Exchange] = ()
    """Of `answered`, those of which the client was maybe told nothing: it was cancelled about then."""

    @property
    def delegations(self) -> set[tuple[str, str]]:
        """Which agent certainly delegated to which."""
        bosses = {boss for boss, _ in self._of("for", "within", "beside")}
        asked = {
            (boss, agent)
            for boss in self.agents[:1]
            for agent in self.agents[1:]
            if not self.works.get(agent) and agent not in bosses
        }
        return asked | self._of("for")

    @property
    def may_be_delegations(self) -> set[tuple[str, str]]:
        """Which agent may be said to have delegated to which: a program started the one within the work of the other."""
        return self._of("within", "beside")

    def _of(self, *words: str) -> set[tuple[str, str]]:
        pairs = ((agent, works.split()) for agent, works in self.works.items())
        return {(works[1], agent) for agent, works in pairs if works and works[0] in words}

    @property
    def side_by_side(self) -> bool:
        """Whether agents worked at the same time, so that no answer is the last one."""
        return any(works.startswith("beside") for works in self.works.values())

    @property
    def errors(self) -> Collection[int]:
        """How many failures there may be said to be.

        A refused call, a request without an answer, and an answer that was cut, without words, or whole and without usage, may be one or not;
        so may calls that were cancelled because the agent failed beside them.
        """
        tools = sum(tool["error"] is not None for tool in self.tools)
        least = 0 if self.given_up else max(tools, int(self.raised is not None))
        useless = self.cut + sum(
            not (one.text or one.tool_calls) or _misses_fields(one) or not (one.stream or one.usage)
            for one in self.answered
        )
        most = (
            tools
            + 2 * len(self.unheard)
            + len(self.refused)
            + len(self.unclear)
            + len(self.failed)
            + useless
            + int(self.raised is not None)
            + self.again
        )
        if self.raised is not None and self.answered:
            most += len(self.answered[-1].tool_calls)
        return range(least, most + 1)

    @property
    def may_have_begun(self) -> set[str]:
        """Agents whose work was given up, maybe before their first request, and those that ask no model but start others."""
        failed = any(tool["name"] in HELPER_TOOLS and tool["error"] for tool in self.tools)
        bosses = {boss for boss, _ in self.may_be_delegations}
        first = {self.first_agent} if self.given_up else set()
        return (({HELPER} if failed else set()) | bosses | first) - {*self.agents}

    @property
    def taken_for_answers(self) -> int:
        """How many streams broke off that the client may take for answers."""
        return sum(one.status == 0 and one.stream for one in self.failed) if self.ends_broken_streams else 0

    def total(self, kind: str) -> int | None:
        """Return a sum of tokens; None where an answer did not say how many, or the client may have counted others."""
        counts = [usage_of(one) for one in self.answered]
        if self.taken_for_answers or (self.counts_itself and any(one and not one["input"] for one in counts)):
            return None
        return None if None in counts else sum(one[kind] for one in counts if one)

    def may_be(self, kind: str) -> Any:
        """Return what holds the sums that may be recorded."""
        total = self.total(kind)
        if kind == "cache_write" and total is None and self.least(kind) == 0:
            return [None, 0]  # No answer reports a write, and the model's price list bills none.
        if total is None:
            return _Anything() if self.counts_itself or self.taken_for_answers or self.given_up else [None]
        return range(total - self._unheard(kind), total + self.begun(kind) + 1)

    def begun(self, kind: str) -> int:
        """Return the tokens of answers that broke off, which the first event of Anthropic's streams reports: one of output."""
        broken = (one.usage for one in self.failed if one.api == "anthropic" and one.stream and one.text is not None)
        return sum(1 if kind == "output" else usage[kind] for usage in broken if usage)

    def least(self, kind: str) -> int:
        """Return the tokens that answers did report."""
        return sum(one[kind] for one in map(usage_of, self.answered) if one) - self._unheard(kind)

    def _unheard(self, kind: str) -> int:
        return sum(one[kind] for one in map(usage_of, self.unheard) if one)


def usage_of(answer: Exchange) -> dict[str, int] | None:
    """Return the token counts that the client was sent."""
    asked = (
        answer.api != "chat" or not answer.stream or (answer.request.get("stream_options") or {}).get("include_usage")
    )
    return answer.usage if asked else None


def truth_of(
    exchanges: Sequence[Exchange], log: Sequence[dict[str, Any]], cut: int, framework: Framework, instrumentation: str
) -> Truth:
    """Return what happened in one run.

    Args:
        exchanges: of the run.
        log: lines that the program wrote about the run.
        cut: how many answers ended at the limit of their length.
        framework: what the program uses.
        instrumentation: what is switched on, comma-separated.
    """
    tools = [line for line in log if line["kind"] == "tool"]
    (end,) = [line for line in log if line["kind"] == "run"] or [
        {"output": None, "raised": "the program did not get here"}
    ]
    answered = [one for one in exchanges if one.status == 200]
    executed = Counter(tool["name"] for tool in tools)
    refused = []
    for call in (call for one in answered for call in (*one.tool_calls, *_written_calls(one))):
        if call["name"] in framework.pseudo or call["name"] in LAST_TOOLS:
            continue
        if framework.mends_names:
            call = call | {"name": re.sub(r"\W+", "_", call["name"]).strip("_")}
        given = [tool for tool in tools if tool["name"] == call["name"] and tool["arguments"] == call["arguments"]]
        if executed[call["name"]] and given:
            executed[call["name"]] -= 1
        else:
            refused.append(call)
    asking = dict.fromkeys(name for one in exchanges if (name := agent_of(one.request)) is not None)
    agents = [framework.main_agent if name == "assistant" else name for name in asking]
    works = {agent_of(one.request): works_of(one.request) for one in exchanges}
    failed = [one for one in exchanges if one.status != 200]
    last = {agent_of(one.request): one for one in exchanges}
    given_up = (end["raised"] or "").startswith("TimeoutError")
    unheard = [one for one in last.values() if given_up and one.status == 200]
    under_way = [tool for tool in tools if given_up and all(tool["start"] >= one.at for one in unheard)]
    tools = [tool for tool in tools if tool not in under_way]
    return Truth(
        answered, failed, sorted(tools, key=lambda tool: tool["start"]), refused, agents, end["output"], end["raised"], cut,
        not {*framework.counts_itself}.isdisjoint(instrumentation.split(",")), ends_broken_streams=framework.ends_broken_streams,
        works={name: how for name, how in works.items() if name and how}, ordered=not any("beside" in how for how in works.values()),
        again=any(line["kind"] == "again" for line in log), first_agent=framework.main_agent, given_up=given_up, unheard=unheard, unclear=tuple(tool | {"error": error} for tool in under_way for error in (None, "cancelled")),
    )  # fmt: skip


def _written_calls(answer: Exchange) -> list[dict[str, Any]]:
    """Return the call of a tool that an answer states in the fields that a prompt wants, or that a client may read out of its text."""
    tagged = re.findall(r"<tool_call>\s*(\{.*?\})\s*</tool_call>", answer.text or "")
    name, arguments = (field_of(answer.text, field) for field in ("next_tool_name", "next_tool_args"))
    stated = [] if name in (None, "finish") else [{"id": None, "name": name, "arguments": arguments}]
    return [{"id": None, **json.loads(call)} for call in tagged] + stated


def _misses_fields(answer: Exchange) -> bool:
    """Return whether an answer lacks a field that its prompt wants."""
    first = (answer.request.get("messages") or [{}])[0].get("content")
    wanted = fields_wanted(first) if isinstance(first, str) else []
    return any(field_of(answer.text, field) is None for field in wanted)


def compare(truth: Truth, run: dict[str, Any], named_agents: bool) -> dict[str, tuple[str, Any, Any]]:
    """Return for each fact whether it is true, unknown or wrong, what was found and what may be true."""
    found = conformance.found(run)
    result = {}
    for fact, may_be in _facts(truth, named_agents).items():
        value = found[fact]
        status = "true" if value in may_be else "unknown" if value is None else "wrong"
        if value is False or (status == "wrong" and not run["complete"] and _is_part(value, may_be)):
            status = "unknown"
        result[fact] = (status, value, may_be)
    return result


def _is_part(found: Any, may_be: Any) -> bool:
    """Return whether what a trace records that is known to be incomplete is at most what happened."""
    if isinstance(may_be, _Between):
        may_be = [may_be.most]
    if isinstance(found, int | set | Counter):
        return any(isinstance(most, int | set | Counter) and found <= most for most in may_be)
    return False


def _facts(truth: Truth, named_agents: bool) -> dict[str, Any]:
    tools, unheard = truth.tools, len(truth.unheard)
    agents = set(truth.agents) if named_agents else set()
    begun = truth.may_have_begun if named_agents else set()
    facts: dict[str, Any] = {
        "llm_calls": range(len(truth.answered) - unheard, len(truth.answered) + truth.taken_for_answers + 1),
        "failed_llm_attempts": range(len(truth.failed) - truth.taken_for_answers, len(truth.failed) + unheard + 1),
        "models": _Between(
            Counter(one.reply_model for one in truth.answered) - Counter(one.reply_model for one in truth.unheard),
            Counter({truth.failed[0].reply_model: truth.taken_for_answers} if truth.taken_for_answers else {})
            + Counter(one.reply_model for one in truth.unheard),
        ),
        "tool_calls": _Between(
            conformance.multiset((tool["name"], tool["error"] is not None) for tool in tools),
            conformance.multiset(
                (call["name"], call.get("error", "refused") is not None) for call in (*truth.unclear, *truth.refused)
            ),
        ),
        # What a text that is no JSON was repaired to is not known.
        "arguments": _Anything()
        if any(isinstance(call["arguments"], str) for call in (*truth.unclear, *truth.refused))
        else _Between(
            conformance.multiset((tool["name"], tool["arguments"]) for tool in tools),
            conformance.multiset((call["name"], call["arguments"]) for call in (*truth.unclear, *truth.refused)),
        ),
        "agents": _Between(agents, begun),
        "delegations": _Between(
            truth.delegations if named_agents else set(),
            truth.may_be_delegations | {(boss, agent) for agent in begun for boss in truth.agents[:1]},
        ),
        "errors": truth.errors,
        "final_output": _Anything()
        if truth.side_by_side or truth.given_up
        else [truth.output]
        if truth.output
        else [None, ""],
        "complete": [True],
    }
    kinds = {
        "input": "input",
        "output": "output",
        "cache_read": "cached",
        "cache_write": "cache_write",
        "reasoning": "reasoning",
    }
    return facts | {f"{fact}_tokens": truth.may_be(kind) for fact, kind in kinds.items()}


def may_be_reason(reason: str, truth: Truth) -> bool:
    """Return whether a reason for which a fact is unknown does not contradict the truth.

    What an instrumentation records is not known here; what happened is.
    """
    if reason in ("outcome-not-recorded", "reads-like-a-failure"):
        return bool(truth.tools or truth.refused or truth.unclear)
    if reason == "usage-below-answer":
        return any(len((one.text or "").split()) > 1 or one.tool_calls for one in (*truth.answered, *truth.failed))
    return True


@dataclass(frozen=True)
class _Between:
    """Holds what contains all of `least` and nothing but that and `more`."""

    least: Any
    more: Any
    """A counter or a set, as `least` is."""

    @property
    def most(self) -> Any:
        """All that it may be."""
        return self.least + self.more if isinstance(self.least, Counter) else self.least | self.more

    def __contains__(self, value: Any) -> bool:
        return isinstance(value, type(self.least)) and self.least <= value <= self.most

    def __repr__(self) -> str:
        return repr(self.least) + (f" and some of {self.more!r}" if self.more else "")


class _Anything:
    """Holds every value."""

    def __contains__(self, value: object) -> bool:
        return True

    def __repr__(self) -> str:
        return "anything"


def as_recording(truth: Truth, client: str, notes: str, *, named_agents: bool = True) -> dict[str, Any]:
    """Return the truth in the form of the recordings' `truth.json`."""
    calls = []
    for one in truth.answered:
        usage = usage_of(one) or {}
        calls.append({
            "model": one.model, "response_model": one.reply_model, "provider": "openai", "api": one.api, "stream": one.stream,
            "input_tokens": usage.get("input"), "output_tokens": usage.get("output"), "cached_input_tokens": usage.get("cached"),
            "cache_write_tokens": usage.get("cache_write"), "reasoning_tokens": usage.get("reasoning"),
            "requested_tools": [call["name"] for call in (*one.tool_calls, *_written_calls(one))], "usage_sent": bool(usage),
        })  # fmt: skip
    unjudged = [] if named_agents else ["agents", "delegations"]
    counted_otherwise = [
        kind for kind in ("input", "output") if truth.begun(kind) or isinstance(truth.may_be(kind), _Anything)
    ]
    unjudged += [f"{kind}_tokens" for kind in counted_otherwise]
    unjudged += ["delegations"] if truth.may_be_delegations else []
    unjudged += ["final_output", "order"] if truth.side_by_side else []
    unjudged += (
        ["llm_calls", "models", "input_tokens", "output_tokens", "errors", "final_output"] if truth.given_up else []
    )
    return {
        "client": client,
        "tools": [
            {"name": t["name"], "arguments": t["arguments"], "error": t["error"] is not None} for t in truth.tools
        ],
        "llm_calls": calls,
        "failed_llm_attempts": [{"status": one.status} for one in truth.failed],
        "agents": truth.agents,
        "delegations": sorted(map(list, truth.delegations)),
        "errors": max(truth.errors) if len(truth.errors) == 1 else json.loads(json.dumps(list(truth.errors))),
        "final_output": truth.output,
        "raised": truth.raised,
        "refused": truth.refused,
        **({"unclear": list(truth.unclear)} if truth.unclear else {}),
        **({"unjudged": unjudged} if unjudged else {}),
        **({"may_have_begun": sorted(truth.may_have_begun)} if truth.may_have_begun else {}),
        "notes": notes,
    }
