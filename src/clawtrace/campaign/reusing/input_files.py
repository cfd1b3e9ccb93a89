"""The files an agent depended on, by the digest of all: so an edit is reported with its file (spec: config.md §5)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from clawtrace.campaign.results.layout import write_json

__all__ = ["EditedFiles", "remember_files"]

_FOLDER = "index/files"
_MOST_FILES = 5_000
"""Files of one digest that are remembered; with more, an edit is reported without names."""
_MOST_DIGESTS = 200
"""Digests whose files are remembered: the newest."""
_NAMED = 3
"""Edited files that a reason names."""


def remember_files(outputs: Path, known: Iterable[tuple[str, Mapping[str, str]]]) -> None:
    """Record which files digests were made of.

    Args:
        known: parts of fingerprints, with the digest of each of their files by path.
    """
    folder = outputs / _FOLDER
    for part, files in dict(known).items():
        place = folder / f"{part}.json"
        if len(files) <= _MOST_FILES and not place.exists():
            write_json(place, {"schema": "clawtrace.files/1", "files": _short(files)})
    old = sorted(folder.glob("*.json"), key=lambda path: path.stat().st_mtime_ns)[:-_MOST_DIGESTS]
    for place in old:
        with suppress(OSError):
            place.unlink()


class EditedFiles:
    """Finds which files were edited since a digest was made; each pair of digests is compared once."""

    def __init__(self, outputs: Path) -> None:
        self._folder = outputs / _FOLDER
        self._described: dict[tuple[str, str], str] = {}

    def between(self, before: str | None, now: str, files: Mapping[str, str] | None) -> str:
        """Return the first of the files that differ, in words; empty where that is unknown.

        Args:
            before: the part of the fingerprint as it was; None where there was none.
            now: the part as it is.
            files: the current digest of each of its files, by path; None for a part without files.
        """
        if before is None or files is None:
            return ""
        if (before, now) not in self._described:
            self._described[before, now] = self._compare(before, files)
        return self._described[before, now]

    def _compare(self, part: str, files: Mapping[str, str]) -> str:
        try:
            before = json.loads((self._folder / f"{part}.json").read_text(encoding="utf-8"))["files"]
            now = _short(files)
            edited = [name for name in sorted({*before, *now}) if before.get(name) != now.get(name)]
            shown = [_in_words(name, before, now) for name in edited[:_NAMED]]
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return ""
        return ", ".join(shown) + (f" and {len(edited) - _NAMED} more" if len(edited) > _NAMED else "")


def _short(files: Mapping[str, str]) -> dict[str, str]:
    return {
        name: hashlib.sha256(digest.encode("utf-8", "surrogateescape")).hexdigest()[:12]
        for name, digest in files.items()
    }


def _in_words(name: str, before: Mapping[str, str], now: Mapping[str, str]) -> str:
    return f"`{name}`" + (" is gone" if name not in now else " is new" if name not in before else "")
