"""The cassette of a case: its own, or that of the run profile."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from clawtrace.config.base import CassetteSettings
from clawtrace.config.files.document import Document, display
from clawtrace.errors import ConfigProblem

__all__ = ["CassetteUse", "cassette_problems"]


@dataclass(frozen=True, slots=True)
class CassetteUse:
    """A cassette that a case names."""

    path: Path
    """Absolute."""
    settings: CassetteSettings
    document: Document
    """The file that names it."""

    def missing(self) -> ConfigProblem | None:
        """Return that there is nothing to replay; None where there is, or need not be."""
        if self.settings.mode != "replay" or self.path.is_file():
            return None
        return self.document.problem(
            ("cassette", "path"),
            f"there is no cassette {display(self.path)}",
            "Record it with `clawtrace eval --cassette-mode record`.",
        )


def cassette_problems(uses: Iterable[CassetteUse | None]) -> Iterator[ConfigProblem]:
    """Yield the cassettes that are missing, and those that two cases want to use in different ways."""
    first: dict[Path, CassetteUse] = {}
    for use in filter(None, uses):
        if missing := use.missing():
            yield missing
        other = first.setdefault(use.path, use)
        if other.settings.model_copy(update={"path": use.settings.path}) != use.settings:
            message = f"{other.document.file} uses the same cassette with other settings"
            yield use.document.problem(("cassette",), message, "Give both the same, or a file each.", key=True)
