"""The rules by which spans are one logical call, or not one (spec: span-model.md §4).

A rule is declared here once; the pass that applies it names it in the ledger. `spans.counted_by` holds its id, and
``docs/reference/call-rules.md`` is made of these texts.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["CALL_RULES", "CallRule"]


class CallRule(NamedTuple):
    """Why a span is part of a call together with others, or why it is not."""

    id: str
    """Stable: reports and questions compare it."""
    meaning: str
    """One sentence."""
    source: str
    """Where the rule comes from."""


_SPEC = "span-model.md §4"

CALL_RULES: dict[str, CallRule] = {}
"""Every rule, by id, in the order in which they are applied."""


def _rule(id: str, meaning: str, source: str = _SPEC) -> CallRule:
    CALL_RULES[id] = CallRule(id, meaning, source)
    return CALL_RULES[id]


SAME_EXCHANGE = _rule(
    "same-exchange",
    "Two tool spans carry the same id of a request over the network, and one ran within the time of the other: they are the two "
    "sides of that request.",
    "semconv: JSON-RPC `jsonrpc.request.id`, MCP `mcp.session.id`",
)
LAYER_OF_TOOL = _rule(
    "layer-of-tool",
    "The dialect declares that a span of this name is a layer of a tool call (a shell that the tool started, for example), and it "
    "ran within the time of one.",
    "the key `layers` of dialects",
)
DISPATCHED_TOOL = _rule(
    "dispatched-tool",
    "The dialect declares that models call other tools by this tool, and the span of another tool lies in its time, below it or "
    "below its parent: they are one call, of the other tool.",
    "the key `dispatchers` of dialects",
)
NESTED_MODEL_SPAN = _rule(
    "nested-model-span",
    "A model span inside another one, with no agent or tool span between them, is the same call, unless their response ids "
    "differ, or it is of the same scope and process and started after the other had ended.",
)
SAME_RESPONSE_ID = _rule(
    "same-response-id",
    "Model spans of two instrumentations carry the same response id, `gen_ai.response.id`.",
    "semconv: `gen_ai.response.id`",
)
NESTED_TOOL_SPAN = _rule(
    "nested-tool-span",
    "A tool span inside another one of the same agent that has the same tool name or call id is the same call, unless one instrumentation "
    "gives them two ids.",
)
NAMELESS_TOOL_SPAN = _rule(
    "nameless-tool-span",
    "A tool span with neither a name nor a call id inside a tool span of the same agent is a layer of that call: a client's "
    "request to the server that runs the tool, for example.",
)
SAME_TOOL_CALL_ID = _rule(
    "same-tool-call-id",
    "Tool spans of two instrumentations carry the same call id and tool name, and ran at the same time.",
    "semconv: `gen_ai.tool.call.id`",
)
SEVERAL_ANSWERS = _rule(
    "several-answers",
    "Not one call: several model spans of one instrumentation at one level were answered, or a tool ran between them, so each of "
    "them is a call, and the span around them is not a further one.",
)
SAME_REQUESTED_TOOL_CALLS = _rule(
    "same-requested-tool-calls",
    "Model spans of two instrumentations ran at the same time and requested the same tool calls, by id.",
)
SAME_ANSWER_AND_USAGE = _rule(
    "same-answer-and-usage",
    "Model spans of two instrumentations ran at the same time and recorded the same answer and the same tokens.",
)
SAME_USAGE = _rule(
    "same-usage",
    "Model spans of two instrumentations ran at the same time and recorded the same tokens.",
)
SAME_ANSWER = _rule(
    "same-answer",
    "Model spans of two instrumentations ran at the same time and recorded the same answer, and no different tokens.",
)
FAILED_TOGETHER = _rule(
    "failed-together",
    "Model spans of two instrumentations failed at the same time, and both instrumentations recorded other calls of this run.",
)
SAME_TIME = _rule(
    "same-time",
    "Model spans of two instrumentations ran at the same time, and one of the two recorded no usage to compare.",
)
ONE_OR_TWO = _rule(
    "one-call-or-two",
    "Model spans of two instrumentations ran at the same time, and what both recorded does not tell whether they are one call or two: "
    "one of the two is not certain.",
)
STREAM_ANSWER = _rule(
    "stream-answer",
    "The instrumentation writes the answer of a stream as a separate span, after the span of the request, which it repeats.",
    "the role `answer` of dialects",
)
DUPLICATE_INSTRUMENTATION = _rule(
    "duplicate-instrumentation",
    "Two instrumentations recorded the same model calls, so tool spans of one name that ran at the same time, one of each, are "
    "one call.",
)
HANDOFF_TOOL = _rule(
    "handoff-tool",
    "Not a tool call: the tool's name is that of a handoff, and the agent that its name or an argument names started after it, "
    "before its caller called a model again.",
    "the key `handoff_tools` of dialects",
)
RUNNER_OF_AGENTS = _rule(
    "runner-of-agents",
    "Not an agent: a span that runs agents. It is named after its code, has no name, is the run of a graph, or has the name "
    "of each agent right inside it, and each model and tool call in it belongs to an agent inside it.",
)
