"""Files of a run: where a path of a check leads, whether the run touched the file, and waiting for it.

Paths are relative to the run's workspace, in every notation; ``{{case_dir}}/…`` and other absolute paths are taken as they
are (spec: assertions.md §7).
"""

from __future__ import annotations

import codecs
import os
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field

from clawtrace.assertions.probe import Finding
from clawtrace.assertions.refused import refused
from clawtrace.assertions.world import World
from clawtrace.errors import ClawtraceError

__all__ = [
    "MAX_BYTES",
    "PathText",
    "Text",
    "Timestamp",
    "encoding_of",
    "hidden",
    "is_unread",
    "leads_out",
    "located",
    "read_text",
    "stale_reason",
    "unread",
    "wait_until",
]

MAX_BYTES = 64 * 1024 * 1024
"""The largest file that is read whole."""

_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)

_NO_TEXT = "\0"
_NO_CHARACTER = "\ufffd"

Text = Annotated[str, Field(strict=True, min_length=1)]
"""Text that is not empty."""


def _check_path(text: str) -> str:
    if "\0" in text or not text.strip():
        raise refused(f"must be the path of a file, found {text!r}")
    return text


PathText = Annotated[str, Field(strict=True), AfterValidator(_check_path)]
"""A path, relative to the run's workspace."""


def _check_timestamp(text: str) -> str:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        raise refused(f"must be an ISO 8601 time such as 2026-11-20T10:00:00Z, found {text!r}") from None
    return text


Timestamp = Annotated[str, Field(strict=True), AfterValidator(_check_timestamp)]
"""An ISO 8601 time; without an offset it is local time."""


def located(path: str, world: World) -> Path | None:
    """Return the file that `path` names in the world of a run; None where the run has no workspace here."""
    file = Path(path)
    if file.is_absolute():
        return file
    return None if world.workspace is None else world.workspace / file


def leads_out(path: str, world: World) -> bool:
    """Return whether a path leads out of the run's workspace, to what can change while the run stays as it is."""
    file = located(path, world)
    if file is None or world.workspace is None:
        return file is not None
    return not file.resolve().is_relative_to(world.workspace.resolve())


def read_text(file: Path) -> str:
    """Return a file's text; bytes that are no text become replacement characters.

    Raises:
        ClawtraceError: it is larger than `MAX_BYTES`.
    """
    size = file.stat().st_size
    if size > MAX_BYTES:
        raise ClawtraceError(f"the file {str(file)!r} has {size} bytes, more than the {MAX_BYTES} that a check reads")
    return file.read_text(encoding=encoding_of(file), errors="replace")


def encoding_of(file: Path) -> str:
    """Return the encoding that a file's first bytes name: UTF-16 and UTF-32 by their mark, else UTF-8."""
    with file.open("rb") as stream:
        head = stream.read(4)
    return next((name for mark, name in _MARKS if head.startswith(mark)), "utf-8-sig")


def is_unread(text: str) -> bool:
    """Return whether bytes in a text are not valid characters: what they say is unknown."""
    return _NO_TEXT in text or _NO_CHARACTER in text


def hidden(part: str, text: str) -> bool:
    """Return whether `part`, which is not in `text`, may be in bytes that were not read as they were meant.

    Zero bytes are of an encoding that nothing names (UTF-16 without its mark) or of no text; other bytes that are no UTF-8
    are of an encoding in which ASCII is written as everywhere.
    """
    return _NO_TEXT in text or (_NO_CHARACTER in text and not part.isascii())


def unread(path: str, what: str, actual: object) -> Finding:
    """Return the finding where `what` may be in bytes that were not read as they were meant."""
    sentence = f"`{path}` contains bytes that are not text, which could hide {what}."
    return Finding(None, sentence, actual, "the text of the file")


def stale_reason(file: Path, world: World, updated_after: str | None) -> str | None:
    """Return why a file is not the run's own work: it was there before and was not touched, or is too old.

    Empty where it is; None where that cannot be known. `updated_after` replaces the rule about the run.
    """
    changed = file.stat().st_mtime
    if updated_after is not None:
        limit = datetime.fromisoformat(updated_after).timestamp()
        return "" if changed > limit else f"it was last changed at {_shown(changed)}, not after {updated_after}"
    untouched = "it was there before the run and was not touched"
    places = [place for place in _inside(file, world) if place is not None]
    if world.changes is not None and len(places) == 2:
        for kind, why in (("created", ""), ("modified", ""), ("unchanged", untouched)):
            if not set(places).isdisjoint(world.changes.get(kind, ())):
                return why
    # A link out of the workspace leads to what no snapshot saw.
    if world.started_at is None:
        return None
    return "" if changed >= world.started_at else untouched


def _inside(file: Path, world: World) -> tuple[str | None, str | None]:
    """Return the path of `file` in the workspace as it is written, and behind all links; None where it is outside."""
    if world.workspace is None:
        return None, None
    pairs = ((_normal(file), _normal(world.workspace)), (file.resolve(), world.workspace.resolve()))
    written, real = (one.relative_to(root).as_posix() if one.is_relative_to(root) else None for one, root in pairs)
    return written, real


def _normal(file: Path) -> Path:
    return Path(os.path.normpath(file.absolute()))


def _shown(seconds: float) -> str:
    return datetime.fromtimestamp(seconds).astimezone().isoformat(timespec="seconds")


def wait_until(look: Callable[[], Finding], file: Path, seconds: float) -> Finding:
    """Return what `look` finds, again after each change near `file` until it holds or `seconds` have passed."""
    finding = look()
    if finding.holds or seconds <= 0:
        return finding
    from watchfiles import watch

    deadline = time.monotonic() + seconds
    while not finding.holds and (left := deadline - time.monotonic()) > 0:
        folder = next(parent for parent in file.absolute().parents if parent.is_dir())
        # What happens between the last look and the watch's start is seen by the look after its time-out.
        brief = max(1, min(int(left * 1000), 250))
        changes = watch(
            folder, recursive=folder != file.parent, rust_timeout=brief, yield_on_timeout=True, debounce=50, step=10,
            raise_interrupt=True, ignore_permission_denied=True, watch_filter=None,
        )  # fmt: skip
        next(iter(changes), None)
        finding = look()
    return finding
