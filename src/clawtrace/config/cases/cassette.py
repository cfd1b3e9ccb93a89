"""The cassette of a case: its own, or that of the run profile."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clawtrace.config.base import CassetteSettings
from clawtrace.config.files.document import Document, display
from clawtrace.errors import ConfigProblem
from clawtrace.runners.base import Runner, RunnerSettings
from clawtrace.runners.starting.templates import names_in, render

__all__ = ["CassetteUse", "cassette_of", "cassette_problems"]

_CASE_ID = "case_id"


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


def cassette_of(
    own: CassetteSettings | None,
    document: Document,
    profile: tuple[Document, CassetteSettings | None] | None,
    case_id: str,
    runner: type[Runner],
    settings: Iterable[RunnerSettings],
    problems: list[ConfigProblem],
) -> CassetteUse | None:
    """Return the cassette of a case: its own, or that of the profile; None where there is none, or it adds a problem.

    A profile's is not for a case that starts no agent.

    Args:
        own: what the case says.
        profile: what the run profile says, and its file.
        settings: of the case's runner, for each model.
    """
    source, said = (document, own) if own is not None or profile is None else profile
    if said is None or (own is None and not runner.starts_agent):
        return None
    assert source.path is not None
    if unknown := [name for name in names_in(said.path) if name != _CASE_ID]:
        message = f"`{{{{{unknown[0]}}}}}` has no value here: only `{{{{{_CASE_ID}}}}}` has"
        problems.append(source.problem(("cassette", "path"), message))
        return None
    if why := next((one.why_no_cassette for one in settings if one.why_no_cassette), None):
        problems.append(source.problem(("cassette",), why, key=True))
        return None
    values: Mapping[str, Any] = {_CASE_ID: case_id}
    return CassetteUse((source.path.parent / render(said.path, values.__getitem__)).resolve(), said, source)
