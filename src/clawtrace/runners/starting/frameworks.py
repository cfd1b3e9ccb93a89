"""What an agent of each framework needs so that its spans come here, as a table of data: `frameworks.yaml`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from clawtrace.support.yaml_reading import read_yaml

__all__ = ["Framework", "Language", "LanguageSetup", "call_that_connects", "frameworks", "language_setup", "recipe"]

_TABLE = Path(__file__).with_name("frameworks.yaml")

Language = Literal["python", "javascript"]


@dataclass(frozen=True, slots=True)
class LanguageSetup:
    """What every agent of a language needs: a tracer provider with an exporter."""

    file: str
    """The file that holds the lines."""
    use: str
    """How the agent comes to load it."""
    install: tuple[str, ...]
    lines: str


@dataclass(frozen=True, slots=True)
class Framework:
    """One framework, or client of a model."""

    name: str
    language: Language
    packages: tuple[str, ...]
    modules: tuple[str, ...] = ()
    kind: Literal["framework", "sdk"] = "framework"
    install: tuple[str, ...] = ()
    setup: bool = True
    """Whether the common lines of the language are needed, too."""
    lines: str = ""
    note: str = ""


@cache
def frameworks() -> tuple[Framework, ...]:
    """Read the table."""
    return tuple(Framework(**_with_tuples(entry)) for entry in _data()["frameworks"])


@cache
def language_setup(language: Language) -> LanguageSetup:
    """Return what every agent of a language needs."""
    return LanguageSetup(**_with_tuples(_data()["setups"][language]))


@cache
def _data() -> dict[str, Any]:
    data: dict[str, Any] = read_yaml(_TABLE.read_bytes())
    return data


def _with_tuples(entry: dict[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in entry.items()}


def recipe(found: Sequence[Framework], *, common: bool = True) -> tuple[list[str], str]:
    """Return what to install for frameworks of one language, and the lines that connect them.

    Args:
        common: whether the common lines of the language are missing, too.
    """
    setup = language_setup(found[0].language)
    common = common and any(one.setup for one in found)
    install = [*(setup.install if common else ()), *(name for one in found for name in one.install)]
    lines = "\n".join([*([setup.lines] if common else []), *(one.lines for one in found if one.lines)])
    statements = [line for line in lines.splitlines() if line]
    imports = [line for line in statements if line.startswith(("import ", "from "))]
    return list(dict.fromkeys(install)), "\n".join([*imports, "", *(one for one in statements if one not in imports)])


def call_that_connects(one: Framework) -> str:
    """Return the name of what the lines of a framework call in the end; empty where it needs none."""
    found = re.findall(r"(\w+)\(", (one.lines.splitlines() or [""])[-1])
    return found[0] if found else ""
