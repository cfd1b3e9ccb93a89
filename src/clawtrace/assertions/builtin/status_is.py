"""`status_is`: how the run ended."""

from __future__ import annotations

from typing import Literal

from clawtrace.assertions._runner_word import RunnerWord
from clawtrace.assertions.base import Outcome

__all__ = ["StatusIs"]


class StatusIs(RunnerWord):
    """The run ended as `status`.

    It distinguishes a wrong answer from no answer, and asserts intended time limits and refusals. It is the runner's
    word: `success` and `failed` by the agent's exit code, `timed_out` by our time limit, `provider_error` when the model's
    provider gave up. Clawtrace did not run a recording, so that its status is unknown.

    Example:
        - type: status_is
          status: success
    """

    column = "run_status"
    main_field = "status"
    requires = ("runs.run_status",)
    unscoped = "the status is that of the whole run."

    status: Literal["success", "failed", "timed_out", "provider_error", "invalid"]
    """The status that is right."""

    def explain(self, outcome: Outcome) -> str:
        """Compare the status with the expected one."""
        found = outcome.row["value"]
        if found is None:
            return f"How the run ended is unknown, expected `{self.status}`: it is a recording."
        code = outcome.row["exit_code"]
        why = f" The agent exited with code {code}." if found == "failed" and code else ""
        return f"The run ended as `{found}`, expected `{self.status}`.{why}"
