"""Split shell text in a separate process: the parser's grammar can end the process on texts that do not parse.

One child serves the whole process, started with the first text that needs it; a text on which it ends is not split, and the
next one gets a new child. Requests and answers are lines of JSON.
"""

from __future__ import annotations

import json
import select
import subprocess
import sys
import threading
from contextlib import suppress
from functools import lru_cache

from clawtrace.facts.commands.shell_text import MAX_BYTES, CommandPart

__all__ = ["split"]

_PATIENCE_S = 20.0
"""How long one text may take."""
_SERVE = "from clawtrace.facts.commands.shell_text import serve; serve()"


@lru_cache(maxsize=4096)
def split(text: str) -> tuple[CommandPart, ...] | None:
    """Return the commands in `text`, in order; None when it cannot be split (`clawtrace.facts.commands.shell_text.split`)."""
    return None if len(text) > MAX_BYTES else _CHILD.ask(text)


class _Child:
    """The process that splits, and whose turn it is."""

    def __init__(self) -> None:
        self._turn = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def ask(self, text: str) -> tuple[CommandPart, ...] | None:
        """Return what the child says of a text; None when it ends or takes too long."""
        with self._turn:
            process = self._process or self._started()
            try:
                assert process.stdin is not None
                process.stdin.write(json.dumps(text).encode("ascii") + b"\n")
                process.stdin.flush()
                line = self._line(process)
            except OSError:
                line = b""
            if not line.endswith(b"\n"):
                self._give_up(process)
                return None
        parts = json.loads(line)
        return None if parts is None else tuple(CommandPart._make((*rest, tuple(ends))) for *rest, ends in parts)

    def _started(self) -> subprocess.Popen[bytes]:
        self._process = subprocess.Popen(
            [sys.executable, "-c", _SERVE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        return self._process

    @staticmethod
    def _line(process: subprocess.Popen[bytes]) -> bytes:
        assert process.stdout is not None
        ready, _, _ = select.select([process.stdout], [], [], _PATIENCE_S)
        return process.stdout.readline() if ready else b""

    def _give_up(self, process: subprocess.Popen[bytes]) -> None:
        process.kill()
        for stream in (process.stdin, process.stdout):
            with suppress(OSError):
                if stream is not None:
                    stream.close()
        process.wait()
        self._process = None


_CHILD = _Child()
