"""One scenario tried with an agent: what the model's server and the tools saw, compared with what the telemetry says."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any, Literal, NamedTuple

from clawtrace._scripted_model.http_server import addresses_at, placeholder_keys
from clawtrace._scripted_model.server import Exchange, ScriptedModel
from clawtrace._scripted_model.wire import answered_calls
from clawtrace.campaign.running.wrap import run_command
from clawtrace.config.projects.session_settings import SessionSettings
from clawtrace.conformance.facts import compare, rows
from clawtrace.conformance.scenarios import ANSWER, Improvisation, Scenario
from clawtrace.errors import UsageError
from clawtrace.report.json_text import Struct
from clawtrace.runners.base import StopSignal
from clawtrace.session.session import Session

__all__ = ["CONVENTIONS", "Conformance", "Convention", "Fact", "Trial", "try_scenario"]

_PAGES = "https://github.com/open-telemetry/semantic-conventions-genai/blob/main/docs/gen-ai/"
_ATTRIBUTES = """
SELECT regexp_replace(a.key, '\\.[0-9]+', '.N', 'g') AS name, string_agg(DISTINCT a.type, ' or ' ORDER BY a.type)
FROM attributes AS a WHERE a.scope = 'span' GROUP BY 1 ORDER BY 1
"""
_SHOWN = 3
"""How many spans are named for one fact."""


class Convention(NamedTuple):
    """Where a fact stands in spans that keep to OpenTelemetry's conventions for GenAI."""

    relation: str
    column: str
    """Of the relation; empty where rows are counted."""
    attribute: str
    says: str
    page: str

    @property
    def link(self) -> str:
        """The page that says so."""
        return _PAGES + self.page


_MODEL, _TOOL, _AGENT = "client-inference.md", "execute-tool.md", "gen-ai-agent-spans.md"
_USAGE = "Usage is reported on the span of the model call as the provider counted it."
CONVENTIONS = {
    "llm_calls": Convention("llm_calls", "", "gen_ai.operation.name", "Each call of a model is one span, which says that it is one.", _MODEL),
    "failed_llm_attempts": Convention("llm_calls", "", "error.type", "A call that failed has the status Error and says of what type the error is.", _MODEL),
    "models": Convention("llm_calls", "response_model", "gen_ai.response.model", "The model that answered is named as the answer names it.", _MODEL),
    "input_tokens": Convention("llm_calls", "input_tokens", "gen_ai.usage.input_tokens", _USAGE, _MODEL),
    "output_tokens": Convention("llm_calls", "output_tokens", "gen_ai.usage.output_tokens", _USAGE, _MODEL),
    "cache_read_tokens": Convention("llm_calls", "cache_read_tokens", "gen_ai.usage.cache_read.input_tokens", _USAGE, _MODEL),
    "reasoning_tokens": Convention("llm_calls", "reasoning_tokens", "gen_ai.usage.reasoning.output_tokens", _USAGE, _MODEL),
    "tool_calls": Convention("tool_calls", "name", "gen_ai.tool.name", "Each execution of a tool is one span, which names the tool.", _TOOL),
    "arguments": Convention("tool_calls", "arguments", "gen_ai.tool.call.arguments", "The span of an execution may hold the arguments that the tool was given.", _TOOL),
    "agents": Convention("agents", "name", "gen_ai.agent.name", "Each invocation of an agent is one span, which names the agent.", _AGENT),
    "delegations": Convention("agents", "name", "gen_ai.agent.name", "An agent that another one invokes has its span below that one's.", _AGENT),
    "errors": Convention("errors", "", "error.type", "An operation that failed has the status Error and says of what type the error is.", _TOOL),
    "final_output": Convention("runs", "final_output", "gen_ai.output.messages", "The answer stands in the messages of the last model call, or of the agent.", _MODEL),
    "complete": Convention("runs", "", "", "Every span that was started is exported before the program ends.", _MODEL),
}  # fmt: skip
"""Facts that are compared, in the order of the table."""


class Fact(Struct, kw_only=False):
    """What the telemetry says of one fact in one scenario."""

    status: Literal["true", "absent", "wrong"]
    """`true`: exactly what happened; `absent`: the spans leave it open; `wrong`: they say something else."""
    found: Any
    """What clawtrace read; bounds of a number that is open."""
    happened: Any
    """What the model's server, or the agent's own account, says."""
    because: list[str] = field(default_factory=list)
    """Why it is open."""
    spans: list[dict[str, Any]] = field(default_factory=list)
    """Some of the spans concerned: `span_id`, and what they say of it."""


class Trial(Struct, kw_only=False):
    """What one scenario showed."""

    scenario: str
    """Its name."""
    exit_code: int
    """Of the agent; 128 + n where signal n ended it, 124 at the time limit."""
    happened: bool
    """Whether the agent did what the scenario needs; else nothing is compared."""
    note: str
    """Why it did not, or what is odd; empty where there is nothing to say."""
    dialects: list[str]
    """The dialects that read the spans."""
    facts: dict[str, Fact]
    """Facts by name: those that the scenario decides."""
    attributes: dict[str, str] = field(default_factory=dict)
    """The types of the spans' attributes, by their keys; `N` stands for a number in a key."""


class Conformance(Struct):
    """`clawtrace.conformance/1`: what `clawtrace conformance --json` prints."""

    schema: Literal["clawtrace.conformance/1"]
    """Name and version of this format: keys may be added, never changed."""
    clawtrace: str
    """Version of clawtrace."""
    trials: list[Trial]
    """One for each scenario, in order."""

    def count(self, status: str) -> int:
        """Return how many facts have a status."""
        return sum(fact.status == status for trial in self.trials for fact in trial.facts.values())


def try_scenario(
    scenario: Scenario, command: Sequence[str], env: Mapping[str, str], settings: SessionSettings,
    switches: Mapping[str, bool | str], timeout_s: float,
) -> Trial:  # fmt: skip
    """Run the agent once; its output goes to standard error.

    Raises:
        RunnerError: it cannot be started.
        UsageError: what it wrote to ``CLAWTRACE_TRUTH`` cannot be read.
    """
    stop = StopSignal()
    play = Improvisation(scenario=scenario, stop=stop.set)
    with (
        tempfile.TemporaryDirectory(prefix="clawtrace-") as folder,
        Session.open(receive=True, settings=settings) as session,
    ):
        told = Path(folder, "truth.jsonl")
        model = _Improvised(play).start()
        try:
            given = {"CLAWTRACE_SCENARIO": scenario.name, "CLAWTRACE_TRUTH": str(told)}
            wrapped = run_command(
                command, session, {**env, **addresses_at(model.url), **placeholder_keys("scripted", {}), **given},
                switches=switches, timeout_seconds=timeout_s, streams=(0, 2, 2), stop=stop,
            )  # fmt: skip
        finally:
            play.over.set()
            model.stop()
        if wrapped.interrupted:
            raise KeyboardInterrupt
        (run,) = session.inspect([wrapped.record.run_id])["runs"]
        why = "" if run["spans"] else session.why_no_trace(wrapped.record.run_id)
        attributes = {str(key): str(types) for key, types in session.query(_ATTRIBUTES).rows}
        seen = [*_told(told)] if told.exists() else None
    note = _note(play, wrapped.exit_code, model.log, why)
    if not model.log or not scenario.shows(play):
        return Trial(scenario.name, wrapped.exit_code, False, note, [], {})
    happened = _happened(model.log, play, seen, failed=wrapped.exit_code != 0)
    facts = {
        fact: _fact(fact, found if run["spans"] else ("unknown", None, found[2]), run)
        for fact, found in compare(run, happened).items()
        if fact in CONVENTIONS and not (scenario.killed and (not run["spans"] or found[0] == "unknown"))
    }
    return Trial(scenario.name, wrapped.exit_code, True, note, run["dialects"], facts, attributes)


class _Improvised(ScriptedModel):
    """A scripted model whose answers are improvised."""

    def __init__(self, improvisation: Improvisation) -> None:
        super().__init__(improvisation.script)
        self._improvisation = improvisation

    def play(self) -> Improvisation:
        return self._improvisation


# What happened -------------------------------------------------------------------------------


def _happened(
    log: Sequence[Exchange], play: Improvisation, told: Sequence[Mapping[str, Any]] | None, *, failed: bool
) -> dict[str, Any]:
    """Return what the model's server saw, and what the agent's own tools told, in the form of `compare`."""
    answered = [one for one in log if one.status == 200]
    tools = [one for one in told if "tool" in one] if told is not None else None
    ran = [
        {"name": one["tool"], "arguments": one.get("arguments") or {}, "error": one.get("error")} for one in tools or ()
    ]
    if tools is None:
        ran = [{"name": name, "arguments": arguments, "error": None} for name, arguments in _executed(answered, play)]
    agents = [one for one in told or () if "agent" in one]
    text = next((one["answer"] for one in told or () if "answer" in one), None)
    details = play.scenario.name == "cached_and_reasoning"
    fails = play.scenario.name == "model_error"
    judged = {
        "tool_calls": bool(ran), "arguments": bool(ran), "agents": bool(agents), "delegations": bool(agents), "errors": tools is not None and not fails,
        "final_output": not failed and (text is not None or any(one.text == ANSWER for one in answered[-1:])),
        "cache_read_tokens": details, "reasoning_tokens": details, "failed_llm_attempts": fails, "complete": not play.scenario.killed,
    }  # fmt: skip
    return {
        "llm_calls": [_call(one) for one in answered],
        "failed_llm_attempts": [{"model": one.model, "status": one.status} for one in log if one.status != 200],
        "tools": ran,
        "agents": [one["agent"] for one in agents],
        "delegations": [[one["parent"], one["agent"]] for one in agents if one.get("parent")],
        "errors": sum(bool(one["error"]) for one in ran),
        "final_output": text if text is not None else answered[-1].text if answered else None,
        "unjudged": [fact for fact, is_judged in judged.items() if not is_judged],
    }


def _call(exchange: Exchange) -> dict[str, Any]:
    usage = exchange.usage or {}
    return {
        "model": exchange.model,
        "response_model": exchange.reply_model,
        "input_tokens": usage.get("input"),
        "output_tokens": usage.get("output"),
        "cached_input_tokens": usage.get("cached"),
        "cache_write_tokens": usage.get("cache_write"),
        "reasoning_tokens": usage.get("reasoning"),
        "requested_tools": [call["name"] for call in exchange.tool_calls],
    }


def _executed(answered: Sequence[Exchange], play: Improvisation) -> Iterator[tuple[str, Any]]:
    """Yield the calls that were asked for and that a later request answers, but for those that cannot be run."""
    results = Counter[str]()
    for exchange in answered[-1:]:  # the last request holds the whole conversation
        results.update(answered_calls(exchange.request))
    in_vain = Counter(play.in_vain)
    for exchange in answered:
        for call in exchange.tool_calls:
            name, known = call["name"], call["id"] if results[call["id"]] else call["name"]
            if in_vain[name]:
                in_vain[name] -= 1
            elif results[known]:
                results[known] -= 1
                yield name, call["arguments"]


def _told(path: Path) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), start=1):
        try:
            one = json.loads(line)
        except ValueError:
            one = None
        named = {"tool", "agent", "parent", "answer"} & one.keys() if isinstance(one, dict) else set()
        if not named - {"parent"} or not all(isinstance(one[key], str) for key in named):
            raise UsageError(
                f"{path.name}:{number}: each line of CLAWTRACE_TRUTH is a JSON object with `tool`, `agent` or `answer`; found {line[:80]!r}"
            )
        yield one


def _note(play: Improvisation, code: int, log: Sequence[Exchange], why: str) -> str:
    if not log:
        ended = f"The agent ended with exit code {code} and" if code else "The agent"
        return f"{ended} asked no model. It has to read its provider's address from the environment (OPENAI_BASE_URL and the like)."
    if play.streamed is False and play.scenario.name == "streaming":
        return "The agent does not stream; one that reads CLAWTRACE_SCENARIO can do so in this scenario."
    if not play.scenario.shows(play):
        offered = ", ".join(sorted(play.offered)) or "none"
        return f"The tools that the agent offers do not allow it: {offered}."
    if why:
        return "Nothing was exported before it was stopped." if play.scenario.killed else f"No span arrived. {why}"
    unexpected = code != 0 and play.scenario.name not in ("model_error", "killed", "broken_arguments", "unknown_tool")
    return f"The agent ended with exit code {code}." if unexpected else ""


# What is said of it --------------------------------------------------------------------------


def _fact(fact: str, found: tuple[str, Any, Any], run: Mapping[str, Any]) -> Fact:
    status, seen, true = found
    # requests that an SDK makes again are in no span
    if fact == "failed_llm_attempts" and status == "unknown" and seen[0] == true:
        return Fact("true", true, true)
    if status == "true":
        return Fact("true", _plain(seen), _plain(true))
    one = CONVENTIONS[fact]
    doubts = [
        row for row in run["doubts"] if row["relation"] == one.relation and row["column_name"] == (one.column or None)
    ]
    gaps = [row for row in run["gaps"] if row["relation"] == one.relation]
    because = [row["because"] for row in doubts or gaps]
    if fact == "complete":
        because = list(run["incomplete_because"])
    is_wrong = status == "wrong" and fact != "complete"
    concerned = rows(dict(run), one.relation) if one.relation in ("llm_calls", "tool_calls", "agents", "errors") else []
    spans = [
        {
            "span_id": row["span_id"],
            one.attribute: row.get(one.column) if one.column else row.get("outcome", row.get("error")),
        }
        for row in concerned
        if is_wrong or (one.column and row.get(one.column) is None)
    ]
    return Fact(
        "wrong" if is_wrong else "absent", _plain(seen), _plain(true), list(dict.fromkeys(because)), spans[:_SHOWN]
    )


def _plain(value: Any) -> Any:
    """Return a value as JSON has it."""
    if isinstance(value, Counter):
        return sorted(str(one) for one in value.elements())
    if isinstance(value, set | frozenset):
        return sorted(map(_plain, value), key=str)
    return [_plain(one) for one in value] if isinstance(value, list | tuple) else value
