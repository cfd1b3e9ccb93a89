"""Which tools models were offered: a name that is not among them is no tool (spec: certain-and-possible.md §4)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from clawtrace.facts.calls.run_spans import RunSpans
from clawtrace.facts.json_text import read_json
from clawtrace.facts.tools.tool_requests import ToolRequest

__all__ = ["Offers"]

_NUMBERED = re.compile(r"\.([0-9]{1,9})\.")


class Offers:
    """The names of the tools that the model calls of a run were offered, read where a request is in doubt."""

    def __init__(self, run: RunSpans) -> None:
        self._run = run
        self._of_group: dict[int, frozenset[str]] | None = None

    def lack(self, request: ToolRequest) -> bool:
        """Return whether the offer to the model is recorded, and the tool that it asked for is not in it."""
        if request.served or request.asked_as != request.name:
            return False
        offered = self._groups().get(request.group)
        return bool(offered) and request.name not in (offered or ())

    def hold(self, request: ToolRequest) -> bool:
        """Return whether the tool that a model asked for is in the recorded offer to it."""
        return request.name in self._groups().get(request.group, ())

    def _groups(self) -> Mapping[int, frozenset[str]]:
        if self._of_group is None:
            read: dict[str, frozenset[str]] = {}
            self._of_group = {}
            for index in self._run.kinds.get("llm", ()):
                number, text = self._run.group[index], self._run.spans[index].tool_definitions
                if number is not None and text is not None:
                    if text not in read:
                        read[text] = _names(text)
                    self._of_group.setdefault(number, read[text])
        return self._of_group


def _names(text: str) -> frozenset[str]:
    """Return the names of the tools of an offer; none where one of them is in no form that is known."""
    listed = read_json(text)
    if isinstance(listed, dict):
        listed = _numbered(listed)
    found: set[str] = set()
    for one in listed if isinstance(listed, list) else ():
        value = read_json(one) if isinstance(one, str) else one
        inners = (value.get(key) for key in ("function", "data")) if isinstance(value, dict) else ()
        inner = next((one for one in inners if isinstance(one, dict)), value)
        if not isinstance(inner, dict) or not isinstance(inner.get("name"), str):
            return frozenset()
        found.add(inner["name"])
    return frozenset(found)


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
