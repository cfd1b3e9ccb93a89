"""`agent_exit_code`: how the agent's process ended."""

from __future__ import annotations

from clawtrace.assertions._runner_word import RunnerWord
from clawtrace.assertions.base import Outcome
from clawtrace.assertions.forms.bounds import Natural

__all__ = ["AgentExitCode"]


class AgentExitCode(RunnerWord):
    """The agent's process ended with the exit code `value`.

    An agent that crashed may have answered before. It is the code of the agent's own process, not of a command that the
    agent ran. A process that was killed by a signal has none, and neither has a recording: then it is unknown.

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

    def explain(self, outcome: Outcome) -> str:
        """Compare the exit code with the expected one."""
        code = outcome.row["value"]
        if code is None:
            return f"The agent's exit code is unknown, expected {self.value}: it was killed, or this is a recording."
        return f"The agent exited with code {code}, expected {self.value}."
