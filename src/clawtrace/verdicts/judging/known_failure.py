"""Known failures: what becomes of an assertion that is expected to fail (`expect: fail`; spec: assertions.md §1)."""

from __future__ import annotations

from datetime import date
from typing import NamedTuple

from clawtrace.assertions.base import Assertion
from clawtrace.model.verdict import Status

__all__ = ["KnownFailure"]


class KnownFailure(NamedTuple):
    """A failure that is known, and until when."""

    reason: str
    until: date
    """The last day."""
    lasts: bool
    """False: the day has passed, and the assertion is an ordinary one."""

    @classmethod
    def of(cls, assertion: Assertion, today: date) -> KnownFailure | None:
        """Return the known failure that an assertion states; None where it states none."""
        if not assertion.expects_failure or assertion.reason is None or assertion.until is None:
            return None
        return cls(assertion.reason, assertion.until, today <= assertion.until)

    def status(self, found: Status) -> Status:
        """Return the status of a pass or a fail: a failure warns while it is known, and a pass fails."""
        if not self.lasts:
            return found
        return Status.WARN if found is Status.FAIL else Status.FAIL

    def sentence(self, found: Status) -> str:
        """Say what that means of a pass or a fail."""
        if not self.lasts:
            return f"This was a known failure until {self.until} ({self.reason}); that day has passed."
        if found is Status.FAIL:
            return f"This failure is known until {self.until}: {self.reason}"
        return (
            f"This was expected to fail until {self.until} ({self.reason}), and it passed: remove `expect: fail`, "
            "`reason` and `until`."
        )
