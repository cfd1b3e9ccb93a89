"""`tool_not_permitted`: the question, what lies outside of it, and its answer over plain spans."""

from answers import Told

from questions.tool_not_called import OUTSIDE

__all__ = ["ASSERTION", "OUTSIDE", "answer"]

ASSERTION = {"allowed_tools": ["search", "bash", "write_file"]}


def answer(told: Told) -> bool:
    return set(told.names) <= {"search", "bash", "write_file"}
