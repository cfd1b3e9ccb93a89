"""Tool calls that no tool can have been run for as they were asked: a framework may have refused them, or mended them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from clawtrace.facts.calls.run_spans import RunSpans
from clawtrace.facts.tools.tool_requests import ToolRequest

__all__ = ["Offers", "is_broken"]

Needed = frozenset[str] | None
"""Names of the arguments that a tool needs; None where its definition leaves its parameters open."""


class Offers:
    """What the model calls of a run were offered, read where a call is in doubt."""

    def __init__(self, run: RunSpans) -> None:
        self._run = run
        self._of_text: dict[str, dict[str, Needed]] = {}
        self._of_group: dict[int, dict[str, Needed]] | None = None

    def lack(self, request: ToolRequest) -> bool:
        """Return whether a call asks for a tool that was not offered, or lacks an argument that it needs."""
        return self.fit(request, request.name, request.arguments) is False

    def fit(self, request: ToolRequest | None, name: str | None, arguments: str | None) -> bool | None:
        """Return whether a call is of a tool that was offered, with each argument that it needs; None where nothing tells.

        Where the offer to the model that requested it is unknown, the tool of this name counts as it was offered elsewhere.
        """
        if request is not None and (request.served or request.asked_as != request.name):
            return None
        offered = None if request is None else self._groups().get(request.group)
        if offered and request is not None:
            return _fits(arguments, offered[request.name]) if request.name in offered else False
        elsewhere = [tools[name] for tools in self._groups().values() if name in tools] if name is not None else []
        fits = {_fits(arguments, needed) for needed in elsewhere}
        return fits.pop() if len(fits) == 1 else None

    def _groups(self) -> dict[int, dict[str, Needed]]:
        if self._of_group is None:
            self._of_group = {}
            for index in self._run.kinds.get("llm", ()):
                number, text = self._run.group[index], self._run.spans[index].tool_definitions
                if number is not None and text is not None:
                    if text not in self._of_text:
                        self._of_text[text] = _tools(text)
                    self._of_group.setdefault(number, self._of_text[text])
        return self._of_group


def is_broken(arguments: str | None) -> bool:
    """Return whether arguments are a JSON object that was begun and is none, as such or written as a JSON string."""
    text = (arguments or "").lstrip()
    if text.startswith('"'):
        try:
            text = json.loads(text).lstrip()
        except ValueError:
            return False
    return text.startswith("{") and _object(text) is None


def _fits(arguments: str | None, needed: Needed) -> bool | None:
    given = _object(arguments)
    return None if needed is None else given is None or needed <= given.keys()


def _object(text: str | None) -> dict[str, Any] | None:
    try:
        value = json.loads(text or "")
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


_NUMBERED = re.compile(r"\.([0-9]{1,9})\.")


def _tools(text: str) -> dict[str, Needed]:
    """Return the names of the arguments that each tool needs; nothing where one of the tools is in no form that is known."""
    try:
        listed = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    if isinstance(listed, dict):
        listed = _numbered(listed)
    found: dict[str, Needed] = {}
    for listed_tool in listed if isinstance(listed, Sequence) and not isinstance(listed, str) else ():
        value = _object(listed_tool) if isinstance(listed_tool, str) else listed_tool
        inners = (value.get(key) for key in ("function", "data")) if isinstance(value, dict) else ()
        inner = next((one for one in inners if isinstance(one, dict)), value)
        if not isinstance(inner, dict) or not isinstance(inner.get("name"), str):
            return {}
        open_ = "parameters" in inner and inner["parameters"] is None
        found[inner["name"]] = None if open_ else _required(inner)
    return found


def _numbered(attributes: Mapping[str, Any]) -> list[Any]:
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


def _required(tool: Mapping[str, Any]) -> frozenset[str]:
    stated = (tool.get(key) for key in ("parameters", "input_schema", "inputSchema", "parameters_json_schema"))
    schemas = (_object(one) if isinstance(one, str) else one for one in stated)
    schema = next((one for one in schemas if isinstance(one, dict)), {})
    names = schema.get("required")
    return frozenset(name for name in names if isinstance(name, str)) if isinstance(names, list) else frozenset()
