"""`tool_not_permitted`: the question, what lies outside of it, and its answer over plain spans."""

from answers import PlainRun

from questions.tool_not_called import OUTSIDE

__all__ = ["ASSERTION", "OUTSIDE", "answer"]

ASSERTION = {"allowed_tools": ["search", "bash", "write_file"]}


def answer(run: PlainRun) -> bool:
    return set(run.names) <= {"search", "bash", "write_file"}
