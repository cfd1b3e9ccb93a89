"""Tool call arguments: whether recorded JSON text meets expected arguments, answered yes, no or unknown.

Expected values are literals, `re:`, `glob:`, `literal:`, comparisons of numbers (``">=3"``) or `any`; objects and
lists are compared whole, with the same words inside them; where the mode is `partial`, objects may hold more. ``3`` and ``3.0`` are equal, ``true`` and ``1`` are not.
"""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import AfterValidator

from clawtrace.assertions.matching.json_path import parse_path, without
from clawtrace.assertions.matching.matchers import checked_by, compile_matcher, composed
from clawtrace.assertions.refused import refused
from clawtrace.model.masks import is_mask

__all__ = ["OPERATORS", "ArgumentMode", "ArgumentPath", "Arguments", "match_arguments", "read_arguments"]

ArgumentMode = Literal["subset", "partial", "exact", "superset"]
"""`subset`: other arguments are allowed; `partial`: others are, in objects inside of them as well; `exact`: no others;
`superset`: no others, and given ones may be absent."""

_COMPARISON = re.compile(r"\s*(>=|<=|==|!=|>|<)\s*(-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)\s*")
OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
    "==": operator.eq,
    "!=": operator.ne,
}
_REDACTED = "[REDACTED:"
_ENCODINGS = 3
"""How often arguments may have been encoded as a JSON string around a JSON string."""


def _check_arguments(expected: dict[str, Any]) -> dict[str, Any]:
    """Check expected arguments when the file is loaded: JSON values, valid patterns."""
    for name, value in expected.items():
        _check(value, name)
    return expected


def _check(value: Any, where: str) -> None:
    if isinstance(value, dict):
        for name, inner in value.items():
            _check(inner, f"{where}.{name}")
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            _check(inner, f"{where}[{index}]")
    elif isinstance(value, str):
        try:
            if value.startswith(("re:", "glob:")):
                compile_matcher(value)
        except ValueError as error:
            raise refused(f"`{where}`: {error}") from None
    elif value is not None and not isinstance(value, bool | int | float):
        raise refused(f"`{where}` is a {type(value).__name__}, which JSON arguments cannot hold: put it in quotes")


Arguments = Annotated[dict[str, Any], AfterValidator(_check_arguments)]
"""Expected arguments by name, checked when the file is loaded."""

ArgumentPath = Annotated[str, checked_by(parse_path)]
"""JSONPath of a part of the arguments, checked when the file is loaded."""


def read_arguments(recorded: str) -> Any:
    """Read recorded arguments; JSON that was encoded twice is decoded twice, empty text and null are no arguments.

    Raises:
        ValueError: the text looks like JSON and is none (cut off by an attribute limit, or a language's repr).
    """
    value: Any = recorded
    for _ in range(_ENCODINGS):
        if not isinstance(value, str) or not value.strip():
            break
        try:
            value = json.loads(value)
        except RecursionError:
            raise ValueError("nested too deeply") from None
        except json.JSONDecodeError:
            if value.lstrip()[0] in '{["':
                raise
            break
    return {} if value is None or value == "" else value


def match_arguments(
    expected: Mapping[str, Any], recorded: str, mode: ArgumentMode = "subset", ignore: Sequence[str] = ()
) -> bool | None:
    """Return whether arguments recorded as JSON text meet `expected`; None when the record does not determine it.

    It does not when the text is JSON that was cut off or names no arguments, or when a secret was redacted where the
    difference lies.
    """
    paths = [parse_path(path) for path in ignore]
    try:
        wanted, actual = without(dict(expected), paths), without(read_arguments(recorded), paths)
    except (ValueError, RecursionError):
        return None
    if not isinstance(actual, dict):
        return None  # a bare value: some instrumentations record no name for a tool's only parameter
    others = mode not in ("exact", "superset")
    return _objects_equal(wanted, actual, mode == "partial", others=others, absent=mode == "superset")


def _all(answers: Iterable[bool | None]) -> bool | None:
    """Return the conjunction of three-valued answers."""
    found = set(answers)
    return False if False in found else None if None in found else True


def _objects_equal(
    wanted: Mapping[str, Any], actual: Mapping[str, Any], partly: bool, *, others: bool, absent: bool = False
) -> bool | None:
    """Compare objects; `others` allows values that were not given, `absent` that given ones are not there."""
    if (not absent and wanted.keys() - actual.keys()) or (not others and actual.keys() - wanted.keys()):
        return False
    return _all(_equal(value, actual[name], partly) for name, value in wanted.items() if name in actual)


def _equal(wanted: Any, actual: Any, partly: bool) -> bool | None:
    """Compare what is inside of arguments; `partly` allows objects more than was given."""
    if isinstance(wanted, dict):
        return isinstance(actual, dict) and _objects_equal(wanted, actual, partly, others=partly)
    if isinstance(wanted, list):
        if not isinstance(actual, list) or len(wanted) != len(actual):
            return False
        return _all(_equal(*pair, partly) for pair in zip(wanted, actual, strict=True))
    if _scalar_equal(wanted, actual):
        return True
    return (
        None if isinstance(actual, str) and (_REDACTED in actual or is_mask(actual)) and wanted is not None else False
    )


def _scalar_equal(wanted: Any, actual: Any) -> bool:
    if isinstance(wanted, str):
        if wanted == "any":
            return True
        comparison = _COMPARISON.fullmatch(wanted)
        if comparison:
            return _is_number(actual) and OPERATORS[comparison[1]](actual, _number(comparison[2]))
        if wanted.startswith(("re:", "glob:")):
            return isinstance(actual, str) and compile_matcher(wanted)(actual)
        return isinstance(actual, str) and composed(actual) == composed(wanted.removeprefix("literal:"))
    if _is_number(wanted):
        return _is_number(actual) and bool(wanted == actual)
    return type(wanted) is type(actual) and bool(wanted == actual)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _number(text: str) -> int | float:
    return int(text) if text.lstrip("-").isdigit() else float(text)
