"""When a model call that asked for a tool was followed by any work (`clawtrace.facts.tools.results`)."""

from __future__ import annotations

import pytest

from clawtrace.facts.tools.results import _nothing_followed


@pytest.mark.parametrize(
    ("work", "calls", "start", "nothing"),
    [
        ([], [10], 10, True),
        ([15], [10], 10, False),
        ([5], [10], 10, True),
        ([10], [10, 20], 10, False),
        ([20], [10, 20], 10, False),
        ([21], [10, 20], 10, True),
        ([5, 25], [10, 20], 10, True),
        ([5, 25], [10, 20], 20, False),
    ],
)
def test_work_until_the_next_call(work: list[int], calls: list[int], start: int, nothing: bool) -> None:
    """Work counts from the start of the call to the start of the agent's next one, both included."""
    assert _nothing_followed(work, calls, start) is nothing
