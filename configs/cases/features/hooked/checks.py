"""Checks of the case `hooked`: each is called in a process of its own, with what is known of the run."""

from pathlib import Path


def total_is_right(run: dict) -> dict:
    """Say whether the file holds the total, and what it holds."""
    found = (Path(run["workspace"]) / "total.txt").read_text().strip()
    return {"passed": found == "42", "message": f"total.txt holds {found!r}.", "metadata": {"found": found}}


def few_calls(run: dict) -> bool:
    """Say whether the agent needed at most three tool calls."""
    return len(run["tool_calls"]) <= 3
