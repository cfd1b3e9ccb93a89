"""What a check takes: a question in one of its three forms, and what may pass although it did not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from clawtrace.assertions.base import Assertion
from clawtrace.assertions.registry import parse_assertion
from clawtrace.errors import UsageError
from clawtrace.model.verdict import Status, Verdict
from clawtrace.verdicts.gating.gate import Gate

__all__ = ["Allowed", "Asked", "as_assertion", "as_gate", "is_warning"]

Allowed = Literal["missing_trace", "missing_data", "inconclusive"]
"""What a check may let pass: a skip, a warning for missing data, an inconclusive verdict."""

Asked = Assertion | Mapping[str, Any]
"""An assertion, or one in the long notation of case files."""


def as_assertion(asked: Any) -> Assertion:
    """Return what was asked as an assertion.

    Raises:
        InvalidAssertionError: it is invalid.
        UsageError: it is neither an assertion nor a mapping.
    """
    __tracebackhide__ = True
    if isinstance(asked, Assertion):
        return asked
    if isinstance(asked, Mapping):
        return parse_assertion(asked)
    called = f"; call it: `{asked.__name__}(…)`" if callable(asked) and hasattr(asked, "__name__") else ""
    called = "; a type's name is asked alone, or in a mapping" if isinstance(asked, str) else called
    raise UsageError(f"a check takes an assertion, a mapping or a type's name, found {asked!r}{called}")


def as_gate(allow: Iterable[Allowed]) -> Gate:
    """Return what decides whether a verdict fails the test: as strict as the command line, but for what is allowed.

    Raises:
        UsageError: `allow` holds another word.
    """
    allowed = {allow} if isinstance(allow, str) else set(allow)
    unknown = sorted(allowed - {"missing_trace", "missing_data", "inconclusive"})
    if unknown:
        raise UsageError(f"`allow` takes missing_trace, missing_data and inconclusive, found {', '.join(unknown)!r}")
    return Gate(
        allow_missing_trace="missing_trace" in allowed,
        allow_missing_data="missing_data" in allowed,
        gate_incomplete="warn" if "inconclusive" in allowed else "error",
    )


def is_warning(verdict: Verdict) -> bool:
    """Whether a verdict that the gate let through is worth a warning."""
    return verdict.status is Status.WARN or (verdict.status is not Status.PASS and verdict.severity == "warn")
