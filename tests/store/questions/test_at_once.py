"""Jobs done by several sides at the same time."""

import threading

import pytest

from clawtrace.store import api as module


def test_a_signal_leaves_no_side_at_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C while the others are waited for: what closes the store next must not find one in the middle of a query."""
    begun, released = threading.Event(), threading.Event()
    ended: list[str] = []

    class Struck(threading.Thread):
        joined = 0

        def join(self, timeout: float | None = None) -> None:
            self.joined += 1
            if self.joined == 1:
                raise KeyboardInterrupt
            released.set()
            super().join(timeout)

    def job(side: str) -> None:
        if side == "first":
            begun.wait(30)
        else:
            begun.set()
            released.wait(30)
            ended.append(side)

    monkeypatch.setattr(module, "Thread", Struck)
    try:
        with pytest.raises(KeyboardInterrupt):
            module.at_once(["first", "second"], [job, job])

        assert ended == ["second"]
    finally:
        released.set()
