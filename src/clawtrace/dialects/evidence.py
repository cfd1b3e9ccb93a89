"""On what evidence a dialect's rules read the spans of an instrumentation: recordings of it, of another version, or none."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Literal

from clawtrace.dialects.schema import Verified

__all__ = ["EVIDENCE", "Evidence", "evidence"]

Evidence = Literal["verified", "other-version", "generic"]

EVIDENCE: dict[Evidence, str] = {
    "verified": "The rules were verified on recordings of this instrumentation in this version range.",
    "other-version": "The rules were verified on recordings of this instrumentation in other versions only.",
    "generic": "No recording of this instrumentation was verified: only the general rules of a convention read it.",
}
"""Every kind of evidence (`spans.rule`), with what it means."""

_NUMBERS = re.compile(r"\d+")


def evidence(verified: Iterable[Verified], scope: str, version: str) -> Evidence:
    """Return what the declarations of a dialect say of an instrumentation scope and version."""
    entries = [entry for entry in verified if fnmatchcase(scope, entry.scope)]
    if not entries:
        return "generic"
    return "verified" if any(_within(entry.versions, version) for entry in entries) else "other-version"


def _within(versions: Sequence[str], version: str) -> bool:
    """Return whether a version is in the range of those that were recorded: of one major version, from minor to minor."""
    if not version:
        return not versions or version in versions
    major, minor = _series(version)
    minors = [_series(recorded)[1] for recorded in versions if _series(recorded)[0] == major]
    return version in versions or (bool(minors) and min(minors) <= minor <= max(minors))


def _series(version: str) -> tuple[int, int]:
    """Return major and minor version."""
    numbers = [int(digits) for digits in _NUMBERS.findall(version)[:2]]
    return (*numbers, 0, 0)[0], (*numbers, 0, 0)[1]
