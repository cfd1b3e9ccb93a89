"""Each question of mutations.yaml answered over plain spans, by itself and without any code of clawtrace.

It is what the assertion means, written down a second time: true or false of what the spans say. A fault may be declared
outside of a question only where the answer stays true.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable

from faults import ANSWER, Requests
from spoken import Span


class Told:
    """What the spans of a run say, whatever the order in which they came and however often."""

    def __init__(self, requests: Requests) -> None:
        self.by_id = {span.id: span for spans in requests for span in spans}
        self.spans = sorted(self.by_id.values(), key=lambda span: span.at)
        self.tools = [span for span in self.spans if "gen_ai.tool.name" in span.attributes]
        self.agents = [span for span in self.spans if "gen_ai.agent.name" in span.attributes]
        self.calls = [span for span in self.spans if span.attributes["gen_ai.operation.name"] == "chat"]
        self.names = [str(span.attributes["gen_ai.tool.name"]) for span in self.tools]

    def agent_above(self, span: Span) -> str | None:
        """The name of the agent below which a span is, None when there is none."""
        above = self.by_id.get(span.parent)
        return None if above is None else str(above.attributes.get("gen_ai.agent.name"))

    def below(self, name: str) -> list[Span]:
        """The tool calls of one agent."""
        return [span for span in self.tools if self.agent_above(span) == name]

    def tokens(self) -> list[int | None]:
        """The tokens of each answered model call, None when unknown."""
        said = [(call.attributes.get("gen_ai.usage.input_tokens"), call.attributes.get("gen_ai.usage.output_tokens"))
                for call in self.calls if call.error is None]  # fmt: skip
        return [None if None in pair else sum(pair) for pair in said]

    def costs(self) -> list[float | None]:
        """The cost of each answered model call, None when unknown."""
        return [call.attributes.get("gen_ai.usage.cost") for call in self.calls if call.error is None]

    def commands(self) -> list[str]:
        """The simple commands that were run: those of this test are joined by ` && ` alone."""
        whole = [json.loads(_arguments(span))["command"] for span in self.tools if _name(span) == "bash"]
        return [part for text in whole for part in text.split(" && ")]

    def last_command(self) -> dict[str, object]:
        """Exit code, output and standard error of the last command; empty when there was none or nothing is known."""
        results = [_result(span) for span in self.tools if _name(span) == "bash"]
        return json.loads(results[-1]) if results and results[-1].startswith("{") else {}

    def last_words(self) -> str:
        """What the root agent answered last."""
        texts = [str(call.attributes.get("gen_ai.output.messages", "")) for call in self.calls]
        return "".join(part["content"] for one in json.loads(texts[-1] or "[]") for part in one["parts"])


def _name(span: Span) -> str:
    return str(span.attributes["gen_ai.tool.name"])


def _arguments(span: Span) -> str:
    return str(span.attributes.get("gen_ai.tool.call.arguments", "{}"))


def _result(span: Span) -> str:
    return str(span.attributes.get("gen_ai.tool.call.result", ""))


def _ok(span: Span) -> bool:
    return span.error is None and "test.blocked" not in span.attributes


def _within(values: list[int | None] | list[float | None], limit: float) -> bool:
    return None not in values and sum(value or 0 for value in values) <= limit + 1e-9


def _tool_call(told: Told) -> bool:
    fitting = [span for span in told.below("researcher") if _name(span) == "search" and _ok(span)]
    return [json.loads(_arguments(span)) for span in fitting if '"hits": 3' in _result(span)] == [{"query": "otel"}]


def _path(told: Told) -> bool:
    roots = [span.id for span in told.agents if not span.parent and _agent(span) == "orchestrator"]
    return any(span.parent in roots and _agent(span) == "researcher" for span in told.agents)


def _agent(span: Span) -> str:
    return str(span.attributes["gen_ai.agent.name"])


def _loops(told: Told) -> bool:
    called = [(_name(span), _arguments(span)) for span in told.tools]
    return any(one == following for one, following in itertools.pairwise(called))


def _outcome(span: Span) -> str:
    return "blocked" if "test.blocked" in span.attributes else "ok" if span.error is None else "error"


def _rows(told: Told) -> bool:
    tools = sorted((_name(span), _outcome(span)) for span in told.tools)
    agents = sorted((_agent(span), "nesting" if span.parent else "root") for span in told.agents)
    wanted = [("bash", "ok"), ("search", "ok"), ("write_file", "ok")]
    return tools == wanted and agents == [("orchestrator", "root"), ("researcher", "nesting")]


def _bare(model: object) -> str:
    return re.sub(r"-\d{4}-\d\d-\d\d$", "", str(model))


ANSWERS: dict[str, Callable[[Told], bool]] = {
    "tool_sequence": lambda told: told.names == ["search", "bash", "write_file"],
    "tool_call": _tool_call,
    "tool_was_called": lambda told: "search" in told.names,
    "tool_not_called": lambda told: "delete_all" not in told.names,
    "tool_not_invoked": lambda told: "delete_all" not in told.names,
    "tool_not_permitted": lambda told: set(told.names) <= {"search", "bash", "write_file"},
    "tool_call_count": lambda told: len(told.names) == 3,
    "delegation_path": _path,
    "delegation_occurred": lambda told: any(
        _agent(span) == "researcher" and told.agent_above(span) is not None for span in told.agents
    ),
    "model_used": lambda told: all(_bare(call.attributes["gen_ai.request.model"]) == "gpt-4o" for call in told.calls),
    "llm_call_count": lambda told: len(told.tokens()) == 4,
    "per_span_budget": lambda told: all(_within([used], 110) for used in told.tokens()),
    "trace_token_budget": lambda told: _within(told.tokens(), 440),
    "token_budget": lambda told: _within(told.tokens(), 440),
    "trace_cost": lambda told: _within(told.costs(), 0.04),
    "trace_duration": lambda told: max(span.to for span in told.spans) - told.spans[0].at <= 1000,
    "span_duration": lambda told: max(span.to - span.at for span in told.tools) <= 40,
    "no_span_errors": lambda told: all(map(_ok, told.spans)),
    "no_loops": lambda told: not _loops(told),
    "final_response": lambda told: told.last_words() == ANSWER,
    "final_response_present": lambda told: told.last_words() != "",
    "no_secret_leak": lambda told: not any("AKIA" in str(span.attributes) for span in told.spans),
    "ran": lambda told: "make test" in told.commands() and told.last_command().get("exit_code") == 0,
    "not_ran": lambda told: not any("rm -rf" in command for command in told.commands()),
    "run_count": lambda told: sum(command.startswith("make") for command in told.commands()) == 1,
    "exit_code": lambda told: told.last_command().get("exit_code") == 0,
    "output_contains": lambda told: "ok" in str(told.last_command().get("stdout")),
    "output_equals": lambda told: told.last_command().get("stdout") == "ok",
    "error_contains": lambda told: "slow disk" in str(told.last_command().get("stderr")),
    "span_query": lambda told: [(_name(span), span.error) for span in told.below("researcher")] == [("search", None)],
    "sql": _rows,
}
"""The answer to each question, by type."""
