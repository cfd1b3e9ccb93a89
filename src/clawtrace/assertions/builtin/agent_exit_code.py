"""`agent_exit_code`: how the agent's process ended."""

from __future__ import annotations

from dataclasses import replace

from clawtrace.assertions._runner_word import RunnerWord
from clawtrace.assertions.base import Outcome
from clawtrace.assertions.forms.bounds import Natural
from clawtrace.assertions.forms.value import Value

__all__ = ["AgentExitCode"]

_FIRST_OF_SIGNALS = 128
"""Exit codes of a shell from here on may stand for a signal."""


class AgentExitCode(RunnerWord):
    """The agent's process ended with the exit code `value`.

    An agent that crashed may have answered before. It is the code of the agent's own process, not of a command that the
    agent ran. A process that was killed by a signal has none, or the one that a shell makes of it (137); that of a recording
    is unknown.

    Example:
        - type: agent_exit_code
          value: 0
    """

    column = "agent_exit_code"
    main_field = "value"
    requires = ("runs.agent_exit_code",)
    unscoped = "the exit code is that of the whole process."

    value: Natural = 0
    """The exit code that is right."""

    def question(self) -> Value:
        """Compare the exit code; an agent that was stopped has none that a program chooses."""
        stopped = "r.agent_exit_code IS NULL AND r.run_status IN ('failed', 'timed_out')"
        return replace(
            super().question(),
            first=f"CASE WHEN {stopped} THEN FALSE END" if self.value < _FIRST_OF_SIGNALS else "",
            columns={"run_status": "r.run_status"},
        )

    def explain(self, outcome: Outcome) -> str:
        """Compare the exit code with the expected one."""
        code = outcome.row["value"]
        if outcome.holds is False and code is None:
            return f"The agent has no exit code, expected {self.value}: the run ended as `{outcome.row['run_status']}`."
        if code is None:
            return f"The agent's exit code is unknown, expected {self.value}: it was killed, or this is a recording."
        return f"The agent exited with code {code}, expected {self.value}."
