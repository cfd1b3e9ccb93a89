"""Files of a campaign: written whole or not at all, and by one process at a time (spec: config.md §5)."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from clawtrace.errors import StoreLockedError
from clawtrace.store.files.owner import command_of
from clawtrace.support.whole_file import whole_text_file

__all__ = ["campaign_lock", "fresh_folder", "write_json"]


def write_json(path: Path, data: Mapping[str, Any]) -> None:
    """Write `data`, whole or not at all, and make the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # A file name that is no UTF-8 holds surrogates; with a backslash before it each is JSON again, and reads the same.
    with whole_text_file(path, errors="backslashreplace") as stream:
        json.dump(data, stream, indent=1, ensure_ascii=False, default=str)
        stream.write("\n")


def fresh_folder(path: Path) -> Path:
    """Return `path` as an empty folder; what was there before is removed."""
    if path.exists():
        for folder, inner, _ in os.walk(path):
            for name in inner:  # an agent may have left folders without write permission
                if not Path(folder, name).is_symlink():
                    Path(folder, name).chmod(0o700)
        shutil.rmtree(path)
    path.mkdir(parents=True)
    return path


@contextlib.contextmanager
def campaign_lock(folder: Path) -> Iterator[None]:
    """Hold the campaign for this process; the system lets go of it when the process ends, however it ends.

    Raises:
        StoreLockedError: another process holds it; the message names it.
    """
    import fcntl

    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "campaign.lock"
    with path.open("a+", encoding="utf-8") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            stream.seek(0)
            raise StoreLockedError(
                f"the campaign in {str(folder)!r} is being run by {_holder(stream.read())}: wait until it has ended, or "
                "end it; then run the same command again to continue. To run at the same time, use another `--out` folder or run profile."
            ) from None
        stream.truncate(0)
        stream.write(f"{os.getpid()}\n")
        stream.flush()
        yield


def _holder(written: str) -> str:
    """Name who holds a lock, by what its file says; a process that is gone wrote it before the holder could."""
    pid = written.strip()
    command = command_of(int(pid)) if pid.isdecimal() else ""
    return f"process {pid} (`{command}`)" if command else f"process {pid}" if pid else "another process"
