"""Matchers: how a value in YAML names tools, agents and texts (spec: assertions.md §4).

A plain text names one thing whole and case-sensitively. ``glob:``, ``re:`` and ``literal:`` say otherwise. Regular
expressions are compiled when the file is loaded (an invalid one is an error there, with its position) and searched
anywhere in the value, at most `TIME_LIMIT_S` seconds a value. Letters are compared composed (NFC): a name that was sent
as letters and marks is the same name.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from functools import lru_cache
from typing import Annotated, Any, NamedTuple, TypeVar

from pydantic import AfterValidator
from pydantic_core import CoreSchema, core_schema

from clawtrace.assertions.refused import refused
from clawtrace.errors import ClawtraceError
from clawtrace.model.model_names import bare_model_name, is_version_of, model_matches, model_mentioned

__all__ = [
    "Limiting",
    "LimitingModel",
    "Matcher",
    "ModelMatcher",
    "RegexText",
    "checked_by",
    "compile_matcher",
    "compile_regex",
    "composed",
    "is_found_in_every",
    "one_form",
]

TIME_LIMIT_S = 1.0
"""The longest time of one regular expression on one value, in seconds."""

_MEANT = {"re": "re", "regex": "re", "regexp": "re", "glob": "glob", "literal": "literal"}
"""The intended matcher of a misspelt word before a colon."""

Predicate = Callable[[str], bool]
_M = TypeVar("_M", bound="Matcher")


class PatternTimeoutError(ClawtraceError):
    """A regular expression took too long on one value; the assertion ends as ``error``, never as pass or fail."""


@lru_cache(maxsize=4096)
def compile_regex(pattern: str) -> Predicate:
    """Compile a regular expression of Python's `re` into a time-limited search.

    Raises:
        ValueError: the pattern is empty or invalid; the text says what is wrong and at which character.
    """
    import regex

    if not pattern:
        raise ValueError("the regular expression is empty: it would match everything")
    try:
        re.compile(pattern)
        compiled = regex.compile(composed(pattern))
    except (re.error, regex.error) as error:
        position = f" at character {error.pos + 1}" if error.pos is not None else ""
        raise ValueError(f"invalid regular expression {pattern!r}: {error.msg}{position}") from None

    def search(value: str) -> bool:
        try:
            return compiled.search(composed(value), timeout=TIME_LIMIT_S) is not None
        except TimeoutError:
            raise PatternTimeoutError(
                f"the regular expression {pattern!r} took longer than {TIME_LIMIT_S:g} s on the value {value[:60]!r}: "
                "rewrite its nested repetitions"
            ) from None

    return search


def checked_by(check: Callable[[Any], object]) -> AfterValidator:
    """Return the validator of values of which `check` raises no ValueError; its text is what is refused."""

    def checked(value: Any) -> Any:
        try:
            check(value)
        except ValueError as error:
            raise refused(str(error)) from None
        return value

    return AfterValidator(checked)


RegexText = Annotated[str, checked_by(compile_regex)]
"""A regular expression as a separate field, checked when the file is loaded."""


_WILD = re.compile(r"(?:[\^$.*+?()|]|\[\\s\\S\])*")
"""A regular expression that names no character, and so may be found in every text."""


def is_found_in_every(pattern: str, *texts: str) -> bool:
    """Return whether a valid regular expression is found in all texts, as `.*` is; `texts` are some of them."""
    return _WILD.fullmatch(pattern) is not None and all(map(compile_regex(pattern), texts))


def _unclosed(pattern: str) -> int | None:
    """Return the 1-based place of a glob's first `[` that no `]` closes; a `]` right after `[` or `[!` closes none."""
    at = pattern.find("[")
    while at >= 0:
        first = at + 1 + pattern.startswith("!", at + 1)
        end = pattern.find("]", first + 1)
        if end < 0:
            return at + 1
        at = pattern.find("[", end)
    return None


def _compile_glob(pattern: str) -> Predicate:
    import fnmatch

    if not pattern:
        raise ValueError("the glob is empty: write what it should match, for example 'glob:memory.*'")
    at = _unclosed(pattern)
    if at is not None:
        raise ValueError(
            f"invalid glob {pattern!r}: `[` at character {at} is never closed; `[[]` is the character itself"
        )
    compiled = re.compile(fnmatch.translate(pattern))
    return lambda value: compiled.match(composed(value)) is not None


@lru_cache(maxsize=4096)
def compile_matcher(text: str) -> Predicate:
    """Compile a matcher's text.

    Raises:
        ValueError: the text is empty or its pattern is invalid; the message is for the author of the file.
    """
    kind, name = _parted(composed(text))
    if kind == "re":
        return compile_regex(name)
    if kind == "glob":
        return _compile_glob(name)
    if not name:
        raise ValueError("an empty text matches nothing")
    if not kind:
        _check_plain(text)
    return lambda value: composed(value) == name


def _parted(text: str) -> tuple[str, str]:
    """Return the kind of a matcher, empty for a plain name, and what follows it."""
    kind, separator, rest = text.partition(":")
    return (kind, rest) if separator and kind in ("re", "glob", "literal") else ("", text)


def _check_plain(text: str) -> None:
    """Refuse a plain text that was meant as a pattern: as a name it matches nothing, so that a ban on it always passes.

    Raises:
        ValueError: it begins like a matcher, or holds the sign of a glob.
    """
    kind, separator, rest = text.partition(":")
    if separator and (meant := _MEANT.get(kind.casefold())):
        raise ValueError(
            f"{kind!r} is not a matcher: write '{meant}:{rest}', or 'literal:{text}' for a name that begins so"
        )
    if "*" in text:
        raise ValueError(
            f"{text!r} is compared literally: write 'glob:{text}' for a pattern, 'literal:{text}' for this name"
        )


def _check_spaces(text: str) -> None:
    """Refuse white space that is not seen: no name has it, so that a ban on it always passes.

    Raises:
        ValueError: the text begins or ends with it, or a pattern begins with it.
    """
    kind, rest = _parted(text)
    meant = f"{kind}:{rest.lstrip()}" if kind in ("glob", "re") else text.strip()
    if kind != "literal" and text != meant:
        raise ValueError(f"{text!r} begins or ends with white space: write {meant!r}; `literal:` or `re:[ ]` keeps it")


class Matcher(NamedTuple):
    """One name as written in YAML: whole and case-sensitive, or `glob:`, `re:`, `literal:`."""

    text: str

    def __call__(self, value: str) -> bool:
        """Return whether `value` is meant.

        Raises:
            PatternTimeoutError: the regular expression took too long.
        """
        return compile_matcher(self.text)(value)

    def __str__(self) -> str:
        return self.text

    @property
    def literal(self) -> str | None:
        """The one name that is meant; None for a pattern."""
        kind, name = _parted(self.text)
        return None if kind in ("re", "glob") else name

    @property
    def names(self) -> tuple[str, ...]:
        """The one name that is meant, as a tuple; empty for a pattern."""
        return () if self.literal is None else (self.literal,)

    def items(self, value: str) -> tuple[int, ...]:
        """Return ``(0,)`` when `value` is meant, else ``()``: the form that `Resolve` wants."""
        return (0,) if self(value) else ()

    @classmethod
    def check(cls, text: str) -> Matcher:
        """Read a matcher, refusing an invalid pattern, and white space at its ends, as a validation error."""
        try:
            compile_matcher(text)
            _check_spaces(text)
        except ValueError as error:
            raise refused(str(error)) from None
        return cls(composed(text))

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: Any, _handler: Any) -> CoreSchema:
        """Validate from text, serialise to text."""
        text = core_schema.str_schema(strict=True)
        return core_schema.no_info_after_validator_function(
            cls.check, text, serialization=core_schema.to_string_ser_schema(when_used="always")
        )


class ModelMatcher(Matcher):
    """A model as written in YAML: a version or a family (`clawtrace.model.model_names`), or `glob:`, `re:`, `literal:`.

    A pattern is tried on the name as recorded and on its bare name.
    """

    __slots__ = ()

    def named(self, recorded: str) -> bool:
        """Return whether `recorded` is the model that is meant: the rule of `expected` and `only`."""
        return self._pattern(recorded) if self._is_pattern else model_matches(self.text, recorded)

    def mentioned(self, recorded: str) -> bool:
        """Return whether `recorded` may be the model that is meant: the wide rule of `not_expected`."""
        return self._pattern(recorded) if self._is_pattern else model_mentioned(self.text, recorded)

    def is_version_of(self, recorded: str) -> bool:
        """Return whether a request for `recorded` may be answered by the model that is meant, a dated version of it."""
        return not self._is_pattern and is_version_of(self.text, recorded)

    @property
    def _is_pattern(self) -> bool:
        return _parted(self.text)[0] != ""

    def _pattern(self, recorded: str) -> bool:
        return self(recorded) or self(bare_model_name(recorded))


def _check_limiting(matcher: _M) -> _M:
    """Refuse an entry of a list of exceptions that excepts everything."""
    kind, rest = _parted(matcher.text)
    if (kind == "glob" and not rest.strip("*")) or (kind == "re" and is_found_in_every(rest, "a", "a" * 999)):
        raise refused(f"{matcher.text!r} means every name: nothing is checked")
    return matcher


Limiting = Annotated[Matcher, AfterValidator(_check_limiting)]
"""An entry of a list of names that are allowed, each of which leaves others to be checked."""

LimitingModel = Annotated[ModelMatcher, AfterValidator(_check_limiting)]
"""The same of a list of models."""


def one_form(text: str) -> str:
    """Return a text with the line ends of Unix and its letters composed: canonically equivalent texts are one (NFC)."""
    return composed(text.replace("\r\n", "\n") if "\r" in text else text)


def composed(text: str) -> str:
    """Return a text with its letters composed (NFC): an `ö` is one however it was sent."""
    return text if text.isascii() else unicodedata.normalize("NFC", text)
