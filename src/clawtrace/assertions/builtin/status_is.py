"""`status_is`: how the run ended."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Literal

from clawtrace.assertions._runner_word import RunnerWord
from clawtrace.assertions.base import Outcome
from clawtrace.assertions.forms.value import Value

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

    def question(self) -> Value:
        """Compare the status."""
        return replace(super().question(), columns={"code": "r.agent_exit_code", "because": "r.incomplete_because"})

    def explain(self, outcome: Outcome) -> str:
        """Compare the status with the expected one, and say what ended the agent."""
        found, code, because = (outcome.row[name] for name in ("value", "code", "because"))
        if found is None:
            return f"How the run ended is unknown, expected `{self.status}`: it is a recording."
        whys = [one["message"] for one in json.loads(because or "[]") if one["code"] in ("killed", "timed_out")]
        whys += [f"the agent exited with code {code}."] if found == "failed" and code else []
        why = f" {whys[0][0].upper()}{whys[0][1:]}" if whys else ""
        return f"The run ended as `{found}`, expected `{self.status}`.{why}"
