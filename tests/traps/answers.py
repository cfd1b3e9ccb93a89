"""What plain spans say, read without any code of clawtrace: with it each module of `questions` answers its question."""

from __future__ import annotations

import json

from faults import Requests
from spoken import Span


class PlainRun:
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
        whole = [json.loads(arguments_of(span))["command"] for span in self.tools if name_of(span) == "bash"]
        return [part for text in whole for part in text.split(" && ")]

    def last_command(self) -> dict[str, object]:
        """Exit code, output and standard error of the last command; empty when there was none or nothing is known."""
        results = [result_of(span) for span in self.tools if name_of(span) == "bash"]
        return json.loads(results[-1]) if results and results[-1].startswith("{") else {}

    def last_words(self) -> str:
        """What the root agent answered last."""
        texts = [str(call.attributes.get("gen_ai.output.messages", "")) for call in self.calls]
        return "".join(part["content"] for one in json.loads(texts[-1] or "[]") for part in one["parts"])


def name_of(span: Span) -> str:
    return str(span.attributes["gen_ai.tool.name"])


def arguments_of(span: Span) -> str:
    return str(span.attributes.get("gen_ai.tool.call.arguments", "{}"))


def result_of(span: Span) -> str:
    return str(span.attributes.get("gen_ai.tool.call.result", ""))


def succeeded(span: Span) -> bool:
    return span.error is None and "test.blocked" not in span.attributes


def within(values: list[int | None] | list[float | None], limit: float) -> bool:
    return None not in values and sum(value or 0 for value in values) <= limit + 1e-9


def agent_of(span: Span) -> str:
    return str(span.attributes["gen_ai.agent.name"])


def outcome_of(span: Span) -> str:
    return "blocked" if "test.blocked" in span.attributes else "ok" if span.error is None else "error"
