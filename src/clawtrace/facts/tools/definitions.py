"""The definitions of the tools that models were offered (`tool_definitions`), and which of them their provider runs itself."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from clawtrace.facts.calls.run_spans import RunSpans
from clawtrace.facts.json_text import read_json

__all__ = ["FROM_A_PROVIDER", "listed", "provided"]

_NUMBERED = re.compile(r"\.([0-9]{1,9})\.")
_NAMES = (
    "(?:enterprise_)?web_search|web_fetch|file_search|code_interpreter|code_execution|image_generation|google_search"
    "|google_maps|url_context|x_search|browser_search|mcp"
)
"""Names of the tools that OpenAI, Anthropic, Google and xAI run themselves."""
_PROVIDED = re.compile(rf"(?:\w+\.)?({_NAMES})(?:_[a-z]+)*(?:_[0-9]+)*")
_LIKELY = re.compile(rf'{_NAMES}|"name": ?null')
FROM_A_PROVIDER = ("srvtoolu_", "mcptoolu_")
"""Prefix of the ids of Anthropic's calls of such tools."""


def listed(text: str) -> list[Any]:
    """Return the tool definitions offered to a model; none if their form is unknown."""
    found = read_json(text)
    if isinstance(found, dict):
        found = _numbered(found)
    items = found if isinstance(found, list) else ()
    return [read_json(one) if isinstance(one, str) else one for one in items]


def provided(run: RunSpans) -> dict[int, frozenset[str | None]]:
    """Return which tools a model call was offered that its provider runs, by the call's group; None stands for any name."""
    read: dict[str, frozenset[str | None]] = {}
    found: dict[int, frozenset[str | None]] = {}
    for index in run.kinds.get("llm", ()):
        group, text = run.group[index], run.spans[index].tool_definitions
        if group is None or text is None:
            continue
        if text not in read:
            names = (name for one in listed(text) for name in _provided(one)) if _LIKELY.search(text) else ()
            read[text] = frozenset(names)
        if read[text]:
            found[group] = read[text] | found.get(group, frozenset())
    return found


def _provided(definition: Any) -> Iterator[str | None]:
    if not isinstance(definition, dict):
        return
    name = definition.get("name")
    if definition.keys() == {"name"}:
        words = [name]
        if name is None:  # a tool that is not a function has no name
            yield None
    else:
        words = [
            definition.get("type"),
            definition.get("id"),
            *(key for key, value in definition.items() if value == {}),
        ]
    for kind in (_PROVIDED.fullmatch(word) for word in words if isinstance(word, str)):
        if kind is not None:
            # The tools of a server have names of their own.
            yield None if kind[1] == "mcp" else name if isinstance(name, str) else kind[1]


def _numbered(attributes: Mapping[str, Any]) -> Sequence[Any]:
    """Return the tools of attributes whose keys number them; none where one between is missing: some were dropped.

    Each is an attribute with the whole definition (``llm.tools.0.tool.json_schema``), or one for each of its fields
    (``llm.request.functions.0.name``).
    """
    fields: dict[int, dict[str, Any]] = {}
    for key, value in attributes.items():
        place = _NUMBERED.search(key)
        if place is not None:
            fields.setdefault(int(place[1]), {})[key[place.end() :]] = value
    if fields.keys() != set(range(len(fields))):
        return []
    return [fields[number].get("tool.json_schema", fields[number]) for number in range(len(fields))]
