"""Tools by which a model hands over to another agent, where they are executed: a handoff is a delegation and no tool call.

Whether a tool is one follows from its name (`handoff_tools` of dialects), and what follows: the agent that its name or one of its
arguments names goes to work after it, before the agent that called it asks a model again. An agent whose work ends with the tool's
span is used as a tool.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from clawtrace.dialects.load import Dialect
from clawtrace.facts.json_text import read_json
from clawtrace.facts.spans.span import CLOCK_NS, Span

__all__ = ["handoff_tools", "hands_over", "named_agents", "slug"]

_AGENT = re.compile("_?agent$")


def handoff_tools(
    spans: Sequence[Span], agent: Sequence[int | None], role: Sequence[str | None], dialects: Mapping[str, Dialect]
) -> dict[int, str]:
    """Return the tool spans that hand over, with the name of the agent that they hand over to.

    Args:
        spans: of one run, in order of start.
        agent: the activation that each span works for.
        role: the role of each span.
        dialects: by name.
    """
    asked = {
        index: names
        for index, span in enumerate(spans)
        if span.kind == "tool"
        and role[index] is None
        and span.tool_name is not None
        and span.emits is None
        and not (span.failed or span.tool_failed or span.tool_blocked)
        and (names := named_agents(dialects[span.dialect].file.handoff_tools, span.tool_name, span.tool_arguments))
    }
    if not asked:
        return {}
    at_work: dict[tuple[str, str | None], list[tuple[int, int]]] = defaultdict(list)
    asking: dict[int | None, list[int]] = defaultdict(list)
    """The times at which each agent called a model."""
    for index, span in enumerate(spans):
        if span.kind == "agent" and role[index] not in ("wrapper", "accounting"):
            for trace in (span.trace_id, ""):
                at_work[trace, slug(span.agent_name)].append((span.start_ns, index))
        elif span.kind == "llm":
            asking[agent[index]].append(span.start_ns)
    found: dict[int, str] = {}
    for tool, names in asked.items():
        span = spans[tool]
        # Programs that write no span around their agents begin a trace with each.
        meant = [
            of for name in names if (of := at_work.get((span.trace_id, name)) or at_work.get(("", name))) is not None
        ]
        to_ns, to = min((one for of in meant if (one := _first(of, span.start_ns)) is not None), default=(0, None))
        if to is None:
            continue
        within = to_ns < span.last_ns and spans[to].last_ns <= span.last_ns + CLOCK_NS
        name = spans[to].agent_name
        later = asking.get(agent[tool], ())
        place = bisect_left(later, span.last_ns)
        went_on = place < len(later) and later[place] < to_ns
        if name is not None and agent[tool] != to and not within and not went_on:
            found[tool] = name
    return found


def _first(entries: Sequence[tuple[int, int]], since_ns: int) -> tuple[int, int] | None:
    place = bisect_left(entries, (since_ns, -1))
    return entries[place] if place < len(entries) else None


def hands_over(forms: Iterable[str], tool: str | None) -> bool:
    """Return whether a tool of this name may be a handoff; for `forms` see `named_agents`."""
    return tool is not None and bool(_matches(tuple(forms), tool))


@lru_cache(1_000)
def _matches(forms: tuple[str, ...], tool: str) -> list[re.Match[str]]:
    return [match for form in forms if (match := re.fullmatch(form, tool)) is not None]


def named_agents(forms: Iterable[str], tool: str, arguments: str | None) -> set[str | None]:
    """Return the names of agents, as `slug` writes them, that a tool may hand over to; none for a tool that is no handoff.

    Args:
        forms: regular expressions of tools' names, whose first group is the agent's name.
        tool: the name of the tool.
        arguments: what it was called with, as JSON.
    """
    found = _matches(tuple(forms), tool)
    if not found:
        return set()
    names = {slug(name) for match in found for name in match.groups() if name}
    decoded = read_json(arguments)
    texts = decoded.values() if isinstance(decoded, dict) else ()
    return (names | {slug(text) for text in texts if isinstance(text, str)}) - {None, ""}


def slug(name: str | None) -> str | None:
    """Return a name as frameworks write it into the name of a tool, without the word `agent` at its end."""
    if name is None:
        return None
    words = re.sub("[^a-z0-9]+", "_", re.sub("([a-z0-9])([A-Z])", r"\1_\2", name).casefold()).strip("_")
    return _AGENT.sub("", words) or words
