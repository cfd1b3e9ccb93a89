"""The page of the Python API: every public name with its signature and docstring."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from enum import Enum
from typing import Any

from clawtrace.support.attribute_docs import attribute_docs

__all__ = ["python_api"]

MODULES = ("clawtrace", "clawtrace.expect", "clawtrace.testing", "clawtrace.pytest_plugin", "clawtrace.errors")

INTRO = """\
What a test or a program imports from clawtrace. A name that is not on this page is internal and may change. How to use them in
tests: [../pytest.md](../pytest.md) and [../testing.md](../testing.md).
"""

ABOUT = {
    "clawtrace.expect": "One function for each assertion type: its parameters are the fields of the type. The functions are typed "
    "(`expect.pyi`), so mypy, pyright and editors report a wrong name or value. Types of other distributions work at run time "
    "but are not in `expect.pyi`: write `trace.check(\"my_type\", field=…)`, or a mapping. The types and their fields: "
    "[assertions](assertions/README.md).",
    "clawtrace.pytest_plugin": "The plugin is active wherever clawtrace is installed.",
}  # fmt: skip


def python_api(note: str) -> str:
    """Return the page; `note` says where it comes from."""
    parts = [f"# Python API\n\n{note}\n{INTRO}"]
    for name in MODULES:
        module = importlib.import_module(name)
        about = ABOUT.get(name, first_paragraph(module))
        parts += [f"## `{name}`\n\n{about}\n", *entries(module)]
    return "\n".join(parts)


def entries(module: Any) -> Iterator[str]:
    """Yield the public names of a module."""
    if module.__name__ == "clawtrace.expect":
        yield expect_functions()
        names = ["spans", "Spans"]
    else:
        names = [name for name in exported(module) if not name.startswith(("__", "pytest_"))]
    for name in names:
        yield entry(name, getattr(module, name))


def exported(module: Any) -> list[str]:
    """Return the names that a module declares public: `__all__`, or the classes that it defines."""
    if hasattr(module, "__all__"):
        return list(module.__all__)
    return [
        name for name, value in vars(module).items() if isinstance(value, type) and value.__module__ == module.__name__
    ]


def expect_functions() -> str:
    """Return the functions of `clawtrace.expect`, each with its page."""
    from clawtrace.assertions.registry import all_types

    names = [name for name, cls in all_types().items() if cls.__module__.startswith("clawtrace.")]
    return ", ".join(f"[`{name}`](assertions/{name}.md)" for name in names) + ".\n"


def entry(name: str, value: Any) -> str:
    """Return one name: its signature, what it means, and for a class its members."""
    if not isinstance(value, type):
        function = getattr(value, "__wrapped__", None) or value  # a fixture is an object around its function
        if hasattr(value, "_get_wrapped_function"):
            return f"### `{name}`\n\nA fixture. {docstring(function)}\n"
        return f"### `{name}`\n\n```python\n{signature(name, function)}\n```\n\n{docstring(function)}\n"
    parts = [f"### `{name}`\n\n{docstring(value)}\n"]
    if rows := list(members(value)):
        parts.append("| member | meaning |\n|---|---|\n" + "".join(f"| {left} | {right} |\n" for left, right in rows))
    for method, function in methods(value):
        parts.append(
            f"#### `{name}.{method}`\n\n```python\n{signature(method, function)}\n```\n\n{docstring(function)}\n"
        )
    return "\n".join(parts)


def members(cls: type) -> Iterator[tuple[str, str]]:
    """Yield the fields, constants and properties of a class, each with its meaning."""
    if issubclass(cls, Enum):
        docs = attribute_docs(cls)
        yield from ((f"`{one.name}` = `{one.value!r}`", cell(docs.get(one.name, ""))) for one in cls)
        return
    docs = attribute_docs(cls)
    fields = getattr(cls, "_fields", None) or getattr(cls, "model_fields", None) or docs
    for name in fields:
        if not name.startswith("_"):
            yield f"`{name}`", cell(docs.get(name, ""))
    for name, value in vars(cls).items():
        if isinstance(value, property) and not name.startswith("_"):
            yield f"`{name}`", cell(docstring(value))


def methods(cls: type) -> Iterator[tuple[str, Any]]:
    """Yield the public methods that a class defines."""
    for name, value in vars(cls).items():
        if inspect.isfunction(value) and not name.startswith("_") and value.__doc__:
            yield name, value


def signature(name: str, function: Any) -> str:
    """Return how it is called; one parameter a line where it is long."""
    found = inspect.signature(function)
    parts = []
    kinds = [one.kind for one in found.parameters.values()]
    for before, one in zip([None, *kinds], found.parameters.values(), strict=False):
        if before is one.POSITIONAL_ONLY and one.kind is not one.POSITIONAL_ONLY:
            parts.append("/")
        if one.kind is one.KEYWORD_ONLY and before not in (one.KEYWORD_ONLY, one.VAR_POSITIONAL):
            parts.append("*")
        if one.name not in ("self", "cls"):
            parts.append(parameter(one))
    returned = f" -> {found.return_annotation}"
    text = f"{name}({', '.join(parts)}){returned}"
    lines = "".join(f"    {part},\n" for part in parts)
    return text if len(text) <= 100 else f"{name}(\n{lines}){returned}"


def parameter(one: inspect.Parameter) -> str:
    """Return one parameter as Python writes it."""
    stars = {one.VAR_POSITIONAL: "*", one.VAR_KEYWORD: "**"}.get(one.kind, "")
    default = "" if one.default is one.empty else f" = {one.default!r}"
    return f"{stars}{one.name}: {one.annotation}{default}"


def first_paragraph(module: Any) -> str:
    """Return what a module is for."""
    return docstring(module).split("\n\n")[0]


def docstring(of: Any) -> str:
    """Return a docstring as Markdown: sections as lists, literal blocks as code."""
    text = re.sub(r"``([^`]+)``", r"`\1`", inspect.cleandoc(of.__doc__ or ""))
    text = re.sub(r"(?m)^(.*):\s*::$|^::$", lambda found: f"{found.group(1) or 'For example'}:", text)
    text, *sections = re.split(r"(?m)^(?=(?:Args|Returns|Yields|Raises):$)", text)
    return "\n\n".join([text.strip(), *map(section, sections)])


def section(text: str) -> str:
    """Return the arguments, results or errors as a list."""
    title, _, body = text.strip().partition(":\n")
    items = re.sub(r"\n\s{4,}", " ", inspect.cleandoc("\n" + body)).splitlines()
    if title in ("Args", "Raises"):
        items = [re.sub(r"^([\w.]+):", r"`\1`:", item) for item in items]
    return f"{'Parameters' if title == 'Args' else title}:\n\n" + "\n".join(f"- {item}" for item in items)


def cell(text: str) -> str:
    """Return a text as it stands in a table."""
    return " ".join(text.replace("``", "`").split()).replace("|", "\\|")
