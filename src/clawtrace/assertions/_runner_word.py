"""Shared by the assertions on what the runner reports: one column of ``runs`` is compared, and no trace is needed."""

from typing import Any, ClassVar

from clawtrace.assertions.base import Assertion
from clawtrace.assertions.forms.value import Value

__all__ = ["RunnerWord"]


class RunnerWord(Assertion):
    """Base of the assertions about how a run ended; no span can change that."""

    needs_trace = False
    asks_of_the_end: ClassVar[bool] = True
    """Whether it asks how the agent itself ended, so that a run that failed is not checked for that in addition."""
    column: ClassVar[str]
    """The column of ``runs`` that is compared."""

    def question(self) -> Value:
        """Compare the column; where it is NULL the answer is open."""
        return Value(self.column, equals=self.expectation(), asked="every")

    def expectation(self) -> Any:
        """Return the value that is right, that of the type's main field."""
        return getattr(self, str(self.main_field))
