"""The exception tree and the exit codes.

::

    ClawtraceError                 every error that clawtrace reports itself; exit code 4 unless stated otherwise
    ├── UsageError                 an invalid flag or argument; exit code 2
    ├── ConfigError                one or more problems in configuration files; exit code 2
    ├── InputError                 a recording that cannot be read; exit code 2
    ├── StoreError                 the span store cannot do what was asked
    │   ├── StoreLockedError       another process holds the file
    │   ├── StoreDamagedError      the file, or one next to it, is not whole; exit code 2
    │   └── StoreSchemaError       the file was written by another schema version, or is no store; exit code 2
    ├── QueryError                 SQL that the store refused (a user's own query: exit code 2)
    ├── ReceiverError              the receiver cannot start or has failed
    ├── ProviderError              a model cannot be asked: a package or a key is missing
    └── RunnerError                an agent could not be started or supervised
        ├── PreconditionError      a precondition does not hold; the agent was not started
        ├── CassetteMissError      the agent asked a model or a tool what was not recorded
        └── FaultNotStruckError    what a case makes to fail was not called

Errors are mapped to text and exit code once, at the edge (`cli`). A message says what,
where, and what to do; identifiers are in backticks, values are shown with ``repr``.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

__all__ = [
    "CassetteMissError",
    "ClawtraceError",
    "ConfigError",
    "ConfigProblem",
    "ExitCode",
    "FaultNotStruckError",
    "InputError",
    "PreconditionError",
    "ProviderError",
    "QueryError",
    "ReceiverError",
    "RunnerError",
    "StoreDamagedError",
    "StoreError",
    "StoreLockedError",
    "StoreSchemaError",
    "UsageError",
]


class ExitCode(IntEnum):
    """Exit codes of `clawtrace eval` and `clawtrace run` (spec: assertions.md §2)."""

    PASSED = 0
    """All assertions passed."""
    FAILED = 1
    """At least one assertion failed."""
    USAGE = 2
    """A flag, a configuration file or an input file is wrong; nothing was judged."""
    UNDECIDED = 3
    """Nothing failed, but something was skipped, inconclusive, or nothing was evaluated at all."""
    BROKEN = 4
    """A runner, precondition, judge, hook or store broke."""


class ClawtraceError(Exception):
    """Base of every error that clawtrace reports itself."""

    exit_code: ExitCode = ExitCode.BROKEN


class UsageError(ClawtraceError):
    """An invalid flag or argument."""

    exit_code = ExitCode.USAGE


class ConfigProblem(NamedTuple):
    """One problem in a configuration file: where it is, what it is, what would be valid."""

    file: str
    line: int
    """1-based; 0 when the problem belongs to the file as a whole."""
    column: int
    """1-based; 0 when the problem belongs to the file as a whole."""
    message: str
    """What was found and what would be valid, in one sentence."""
    key: str = ""
    """Dotted path of the key, for example ``assertions.2.mode``."""
    hint: str = ""
    """A nearby valid word ("Did you mean …?") or the next step; empty when none is known."""

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}:{self.column}" if self.line else self.file
        key = f" `{self.key}`" if self.key else ""
        hint = f" {self.hint}" if self.hint else ""
        return f"{place}:{key} {self.message}{hint}" if key else f"{place}: {self.message}{hint}"


class ConfigError(ClawtraceError):
    """Problems in configuration files, all of them at once."""

    exit_code = ExitCode.USAGE

    def __init__(self, problems: list[ConfigProblem] | ConfigProblem) -> None:
        self.problems = [problems] if isinstance(problems, ConfigProblem) else list(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))


class InputError(ClawtraceError):
    """A recording that was named and cannot be read as OTLP."""

    exit_code = ExitCode.USAGE


class StoreError(ClawtraceError):
    """The span store cannot do what was asked."""


class StoreLockedError(StoreError):
    """Another process holds the store's file; the message names it where it is known."""


class StoreDamagedError(StoreError):
    """The store's file, its log or its journal is not whole; the message says what to do."""

    exit_code = ExitCode.USAGE


class StoreSchemaError(StoreError):
    """The store's file was written by another schema version, or is no store; the message says what to do."""

    exit_code = ExitCode.USAGE


class QueryError(ClawtraceError):
    """SQL that the store refused. ``exit_code`` is USAGE because the text is a user's own."""

    exit_code = ExitCode.USAGE


class ReceiverError(ClawtraceError):
    """The embedded OTLP receiver cannot start or has failed."""


class ProviderError(ClawtraceError):
    """A model cannot be asked as it is configured: a package or a key is missing, or there is no such provider."""


class RunnerError(ClawtraceError):
    """An agent could not be started, supervised or stopped."""


class CassetteMissError(RunnerError):
    """The agent asked a model or a tool what its cassette does not hold."""


class FaultNotStruckError(RunnerError):
    """The agent did not call what its case makes to fail, so that the run says nothing about it."""


class PreconditionError(RunnerError):
    """A precondition of an agent does not hold: nothing was started."""
