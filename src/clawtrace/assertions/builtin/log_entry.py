"""`log_entry`: a log file holds a line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from clawtrace.assertions._at_path import AtPath
from clawtrace.assertions.matchers import RegexText, compile_regex
from clawtrace.assertions.probe import Finding

__all__ = ["LogEntry"]

_LONGEST = 1_000_000
"""Characters of one line that the pattern looks at."""


class LogEntry(AtPath):
    """The log file has a line that matches `pattern`; with `absent`, it has none.

    It is for what only a log tells, such as an approval. The pattern is a regular expression that is searched in each line;
    an invalid one is refused when the file is loaded. A file that does not exist fails either way: it is evidence of nothing.

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
        matches, lines = compile_regex(self.pattern), 0
        with file.open(encoding="utf-8", errors="replace") as stream:
            for lines, line in enumerate(stream, start=1):
                if matches(line.rstrip("\r\n")[:_LONGEST]):
                    told = f"line {lines} of `{self.path}` matches {self.pattern!r}: {line.strip()[:200]}"
                    return Finding(not self.absent, told, {"line": lines, "text": line.strip()[:2000]})
        told = f"none of {lines} lines of `{self.path}` matches {self.pattern!r}."
        return Finding(self.absent, told, {"lines": lines})

    def expectation(self) -> Any:
        """Return path and pattern."""
        return {"path": self.path, "no_line_matches" if self.absent else "a_line_matches": self.pattern}
