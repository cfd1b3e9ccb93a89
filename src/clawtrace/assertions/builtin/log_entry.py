"""`log_entry`: a log file holds a line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

from clawtrace.assertions.matching.matchers import RegexText, compile_regex, one_form
from clawtrace.assertions.probe import Finding
from clawtrace.assertions.probing.artifact import AtPath
from clawtrace.assertions.probing.files import encoding_of, is_unread

__all__ = ["LogEntry"]

_LONGEST = 1_000_000
"""Characters of one line that the pattern looks at."""


class LogEntry(AtPath):
    """The log file has a line that matches `pattern`; with `absent`, it has none.

    It is for what only a log records, such as an approval. The pattern is a regular expression that is searched in each line;
    an invalid one is refused when the file is loaded. A file that does not exist fails either way: it is evidence of nothing.
    Where no line matches and one could not be read whole (it is no text, or longer than a million characters), the answer is
    unknown.

    Example:
        - type: log_entry
          path: memory/logs/run.log
          pattern: "approved"
    """

    main_field = "pattern"

    pattern: RegexText
    """Regular expression."""
    absent: bool = False
    """True: no line may match."""

    def look(self, file: Path) -> Finding:
        """Read the file line by line."""
        if not file.is_file():
            return Finding(False, f"`{self.path}` does not exist.", {"exists": False})
        matches, lines, unread = compile_regex(self.pattern), 0, ""
        with file.open(encoding=encoding_of(file), errors="replace") as stream:
            for lines, (line, whole) in enumerate(_lines(stream), start=1):
                if matches(one_form(line)):
                    sentence = f"line {lines} of `{self.path}` matches {self.pattern!r}: {line.strip()[:200]}"
                    return Finding(not self.absent, sentence, {"line": lines, "text": line.strip()[:2000]})
                if not unread and not whole:
                    unread = f"line {lines} is longer than the {_LONGEST} characters that are searched"
                elif not unread and is_unread(line):
                    unread = f"line {lines} contains bytes that are not text"
        sentence = f"none of {lines} lines of `{self.path}` matches {self.pattern!r}"
        if unread:
            return Finding(None, f"{sentence}, but {unread}.", {"lines": lines}, "the text of the file")
        return Finding(self.absent, f"{sentence}.", {"lines": lines})

    def expectation(self) -> Any:
        """Return path and pattern."""
        return {"path": self.path, "no_line_matches" if self.absent else "a_line_matches": self.pattern}


def _lines(stream: TextIO) -> Iterator[tuple[str, bool]]:
    """Yield each line without its end, at most its first `_LONGEST` characters, and whether that is all of it."""
    while piece := stream.readline(_LONGEST + 1):
        line = piece.removesuffix("\n")
        yield line[:_LONGEST], len(line) <= _LONGEST
        while not piece.endswith("\n") and (piece := stream.readline(_LONGEST)):
            pass
