"""Tool calls that no tool can have been run for as they were asked: a framework may have refused them, or mended them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from clawtrace.facts.calls.run_spans import RunSpans
from clawtrace.facts.tools.tool_requests import ToolRequest

__all__ = ["Offers", "is_broken"]


class Accepted(NamedTuple):
    """What a tool's definition says of its arguments."""

    needed: frozenset[str]
    """Names of those without which it is not called."""
    types: Mapping[str, frozenset[str]]
    """JSON Schema's types by name, where the definition states them."""


Needed = Accepted | None
"""None where a tool's definition leaves its parameters open."""


class Offers:
    """What the model calls of a run were offered, read where a call is in doubt."""

    def __init__(self, run: RunSpans) -> None:
        self._run = run
        self._of_text: dict[str, dict[str, Needed]] = {}
        self._of_group: dict[int, dict[str, Needed]] | None = None

    def lack(self, request: ToolRequest) -> bool:
        """Return whether a call asks for a tool that was not offered, or with arguments that it does not take."""
        return self.fit(request, request.name, request.arguments) is False

    def fit(self, request: ToolRequest | None, name: str | None, arguments: str | None) -> bool | None:
        """Return whether a call is of a tool that was offered, with arguments that it takes; None where nothing tells.

        Where the offer to the model that requested it is unknown, the tool of this name counts as it was offered elsewhere.
        """
        if request is not None and (request.served or request.asked_as != request.name):
            return None
        offered = None if request is None else self._groups().get(request.group)
        if arguments is None and request is not None and self._records_arguments:
            arguments = "{}"
        if offered and request is not None:
            return _fits(arguments, offered[request.name]) if request.name in offered else False
        elsewhere = [tools[name] for tools in self._groups().values() if name in tools] if name is not None else []
        fits = {_fits(arguments, needed) for needed in elsewhere}
        return fits.pop() if len(fits) == 1 else None

    @cached_property
    def _records_arguments(self) -> bool:
        """Whether answers record what they ask tools with, so that a call without arguments was asked for without."""
        run = self._run
        said = (run.said(index, "output") for index in run.kinds.get("llm", ()))
        return any(part.type == "tool_call" and part.text is not None for parts in said for part in parts)

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
    text = _unwrapped(arguments or "").lstrip()
    return text.startswith("{") and _object(text) is None


def _unwrapped(text: str) -> str:
    """Return what a text is that is written as a JSON string."""
    if text.lstrip().startswith('"'):
        try:
            return str(json.loads(text))
        except ValueError:
            return text
    return text


def _fits(arguments: str | None, accepted: Needed) -> bool | None:
    if accepted is None or arguments is None:
        return None if accepted is None or accepted.needed else True
    given = _object(_unwrapped(arguments))
    if given is None:
        return False if accepted.needed else None
    return accepted.needed <= given.keys() and all(
        value is None or not types or _type(value) in types
        for name, value in given.items()
        if (types := accepted.types.get(name)) is not None
    )


def _type(value: object) -> str:
    """Return what JSON Schema calls a value; each integer is a number."""
    names = {bool: "boolean", int: "number", float: "number", str: "string", list: "array", dict: "object"}
    return names.get(type(value), "null")


def _object(text: str | None) -> dict[str, Any] | None:
    try:
        value = json.loads(text or "")
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


_NUMBERED = re.compile(r"\.([0-9]{1,9})\.")


def _tools(text: str) -> dict[str, Needed]:
    """Return what each tool takes; nothing where one of the tools is in no form that is known."""
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
        found[inner["name"]] = None if open_ else _accepted(inner)
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


def _accepted(tool: Mapping[str, Any]) -> Accepted:
    stated = (tool.get(key) for key in ("parameters", "input_schema", "inputSchema", "parameters_json_schema"))
    schemas = (_object(one) if isinstance(one, str) else one for one in stated)
    schema = next((one for one in schemas if isinstance(one, dict)), {})
    properties = schema.get("properties")
    types = {name: _types(one) for name, one in properties.items()} if isinstance(properties, dict) else {}
    return Accepted(frozenset(_texts(schema.get("required"))), types)


def _types(schema: Any) -> frozenset[str]:
    """Return the types that a schema states; none where it may accept others."""
    stated = schema.get("type") if isinstance(schema, dict) else None
    names = [stated] if isinstance(stated, str) else _texts(stated)
    return frozenset("number" if name.lower() == "integer" else name.lower() for name in names)


def _texts(value: Any) -> list[str]:
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []
