"""`tool_not_invoked`: the question, what lies outside of it, and its answer over plain spans."""

from questions.tool_not_called import ASSERTION, OUTSIDE, answer

__all__ = ["ASSERTION", "OUTSIDE", "answer"]
