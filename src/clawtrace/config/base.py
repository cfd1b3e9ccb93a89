"""What every configuration model shares."""

# No `from __future__ import annotations`: pydantic evaluates the class variables of a base anew for each subclass.
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BeforeValidator, ConfigDict
from pydantic_core import PydanticKnownError

from clawtrace.support.attribute_docs import Documented

__all__ = ["ConfigModel", "Metadata", "SchemaVersion", "Slug", "is_slug"]

_SLUG = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")
MAX_SLUG = 128


class ConfigModel(Documented):
    """Base of every model of a file: unknown keys are errors, nothing is converted silently."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    not_supported_yet: ClassVar[Mapping[str, str]] = {}
    """Keys of the documented format that this version refuses, with the sentence to show."""


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


def _whole(version: Any) -> Any:
    """Refuse `true` and `1.0`, which Python takes for equal to 1."""
    if type(version) is not int:
        raise PydanticKnownError("int_type")
    return version


SchemaVersion = Annotated[Literal[1], BeforeValidator(_whole)]

Metadata = dict[str, Any]
"""Arbitrary keys and values, shown in reports."""
