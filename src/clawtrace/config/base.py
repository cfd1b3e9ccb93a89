"""What every configuration model shares."""

# No `from __future__ import annotations`: pydantic evaluates the class variables of a base anew for each subclass.
import re
from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field
from pydantic_core import PydanticKnownError

from clawtrace.assertions.matching.json_path import parse_path
from clawtrace.support.attribute_docs import Documented

__all__ = [
    "CaseSelection",
    "CassetteMode",
    "CassetteSettings",
    "ConfigModel",
    "Metadata",
    "RegularExpression",
    "SchemaVersion",
    "Slug",
    "distinct",
    "is_slug",
]

_SLUG = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")
MAX_SLUG = 128


class ConfigModel(Documented):
    """Base of every model of a file: unknown keys are errors, nothing is converted silently."""

    model_config = ConfigDict(strict=True)

    keys_of_others: ClassVar[Mapping[str, str]] = {}
    """Keys that belong to another file or place, with the sentence that says so."""


def is_slug(text: str) -> bool:
    """Whether `text` can be an id: a folder name everywhere, and readable in a run id."""
    return bool(text) and len(text) <= MAX_SLUG and set(text) <= _SLUG and text[0] not in ".-"


def _slug(text: str) -> str:
    if not is_slug(text):
        raise ValueError(
            f"an id has letters, digits, `_`, `-` and `.` only and does not start with `-` or `.`, found {text!r}"
        )
    return text


Slug = Annotated[str, AfterValidator(_slug)]
"""An id: letters, digits, ``_``, ``-``, ``.``, at most 128 of them."""


def distinct(what: str, name: Callable[[Any], str] | None = None) -> AfterValidator:
    """Return the validator of a list in which no name is used twice.

    Args:
        what: what a message calls the name.
        name: returns the name of an entry; by default it is the attribute `what`.
    """
    name = name or attrgetter(what)

    def check(entries: list[Any]) -> list[Any]:
        names = list(map(name, entries))
        twice = next((one for one in names if names.count(one) > 1), None)
        if twice is not None:
            raise ValueError(f"the {what} {twice!r} is used twice")
        return entries

    return AfterValidator(check)


def _whole(version: Any) -> Any:
    """Refuse `true` and `1.0`, which Python takes for equal to 1."""
    if type(version) is not int:
        raise PydanticKnownError("int_type")
    return version


SchemaVersion = Annotated[Literal[1], BeforeValidator(_whole)]

Metadata = dict[str, Any]
"""Arbitrary keys and values, shown in reports."""


class CaseSelection(ConfigModel):
    """Which cases belong to the suite."""

    include_case_ids: list[Slug] = Field(default_factory=list)
    """Always in, in this order; exclusions do not remove them."""
    exclude_case_ids: list[Slug] = Field(default_factory=list)
    """Out, unless listed above."""
    include_tags: list[str] = Field(default_factory=list)
    """Cases with at least one of these tags are in; without any inclusion, all cases are."""
    exclude_tags: list[str] = Field(default_factory=list)
    """Cases with one of these tags are out, unless their id is included."""


def _regular_expression(pattern: str) -> str:
    try:
        re.compile(pattern)
    except re.error as error:
        raise ValueError(f"{pattern!r} is not a regular expression: {error}") from None
    return pattern


RegularExpression = Annotated[str, AfterValidator(_regular_expression)]


def _json_path(path: str) -> str:
    parse_path(path)
    return path


class NormaliseRule(ConfigModel):
    """A part of requests that differs from run to run and means nothing."""

    pattern: RegularExpression
    """Regular expression of what is replaced, in every text of a request."""
    as_: str = Field(default="<any>", alias="as")
    """What takes its place; `\\1` is the first group of the pattern."""


CassetteMode = Literal["record", "replay", "auto"]


class CassetteSettings(ConfigModel):
    """A file of recorded exchanges with models, which takes the place of their providers (tests-without-a-key.md)."""

    path: str = Field(min_length=1)
    """The cassette, relative to this file; `{{case_id}}` is the case's."""
    mode: CassetteMode = "replay"
    """`replay` asks no provider, and a request that was not recorded is an error; `record` asks the providers and writes the
    file anew; `auto` replays what is there and records what is missing. `eval --cassette-mode` goes before."""
    normalise: list[NormaliseRule] = Field(default_factory=list)
    """More of what is replaced in requests before they are compared; ids, temporary paths and the day's time are already."""
    ignore: list[Annotated[str, AfterValidator(_json_path)]] = Field(default_factory=list)
    """JSON paths of what is left out of requests before they are compared, as `$.messages[*].name`."""
