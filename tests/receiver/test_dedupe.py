"""Retries are recognised: what is kept, what is undone, and what is forgotten first."""

from __future__ import annotations

import pytest

from clawtrace.receiver.intake import Window, digest_of


def stage(window: Window, *spans: tuple[int, str, str]) -> set[int]:
    """Stage spans given as run, trace and what makes a span a repetition; return the rows that were seen before."""
    return window.stage([(run, trace) for run, trace, _ in spans], [span for *_, span in spans])


def was_sent(window: Window, body: bytes, context: str = "") -> bool:
    """Stage a request; return whether it was seen before."""
    return bool(window.stage([digest_of(body, context)], [""]))


class TestSpans:
    def test_a_span_is_its_run_trace_and_id(self):
        """The same ids in another run or trace are another span."""
        window = Window(100)

        assert stage(window, (1, "t", "a"), (2, "t", "a"), (1, "u", "a"), (1, "t", "b")) == set()
        window.keep()
        assert stage(window, (2, "t", "a"), (1, "t", "c"), (1, "t", "b"), (2, "u", "a"), (1, "u", "a")) == {0, 2, 4}

    def test_the_second_one_of_one_request_is_a_repetition(self):
        assert stage(Window(100), (1, "t", "a"), (1, "t", "b"), (1, "t", "a")) == {2}

    def test_what_was_not_committed_is_new_when_it_is_sent_again(self):
        """And what was committed before it, and stood in the same request, is not."""
        window = Window(100)
        stage(window, (1, "t", "a"))
        window.keep()
        stage(window, (1, "t", "a"), (1, "t", "b"), (2, "u", "a"))
        window.undo()

        assert stage(window, (1, "t", "a"), (1, "t", "b"), (2, "u", "a")) == {0}

    def test_undoing_takes_back_only_what_was_staged_since(self):
        window = Window(100)
        stage(window, (1, "t", "a"))
        window.keep()
        window.undo()

        assert stage(window, (1, "t", "a")) == {0}

    def test_undoing_twice_is_undoing_once(self):
        window = Window(2)
        stage(window, (1, "t", "a"), (1, "t", "b"))
        window.undo()
        stage(window, (1, "t", "a"))
        window.keep()
        window.undo()

        assert stage(window, (1, "t", "a")) == {0}

    @pytest.mark.parametrize(("limit", "remembered"), [(3, True), (2, False)])
    def test_the_limit_is_of_spans(self, limit, remembered):
        window = Window(limit)
        stage(window, (1, "t", "a"), (1, "t", "b"), (1, "u", "a"))
        window.keep()

        assert bool(stage(window, (1, "t", "a"))) is remembered

    def test_the_trace_that_was_quiet_longest_is_forgotten_first(self):
        """One that still sends is remembered, however old it is."""
        window = Window(3)
        for trace, span in (("old", "a"), ("quiet", "a"), ("old", "b")):
            stage(window, (1, trace, span))
            window.keep()
        stage(window, (1, "new", "a"))
        window.keep()

        assert stage(window, (1, "old", "a"), (1, "old", "b"), (1, "new", "a"), (1, "quiet", "a")) == {0, 1, 2}

    def test_nothing_is_forgotten_before_it_is_committed(self):
        """A request larger than the window is still whole when it must be undone."""
        window = Window(1)
        stage(window, (1, "t", "a"), (1, "u", "a"), (1, "v", "a"))

        assert stage(window, (1, "t", "a"), (1, "v", "a")) == {0, 1}

    def test_what_was_undone_takes_no_room(self):
        window = Window(2)
        for _ in range(5):
            stage(window, (1, "lost", "a"))
            window.undo()
        stage(window, (1, "t", "a"), (1, "u", "a"))
        window.keep()

        assert stage(window, (1, "t", "a"), (1, "u", "a")) == {0, 1}


class TestRequests:
    def test_a_request_is_its_bytes_and_what_else_decides_on_its_rows(self):
        window = Window(100)

        assert [was_sent(window, body, run) for body, run in ((b"x", "r"), (b"x", "q"), (b"y", "r"))] == [False] * 3
        assert [was_sent(window, body, run) for body, run in ((b"x", "r"), (b"x", "q"), (b"y", "q"))] == [
            True,
            True,
            False,
        ]

    def test_what_was_not_committed_is_new_when_it_is_sent_again(self):
        window = Window(100)
        was_sent(window, b"kept")
        window.keep()
        was_sent(window, b"lost")
        window.undo()

        assert (was_sent(window, b"kept"), was_sent(window, b"lost")) == (True, False)

    def test_the_oldest_make_room(self):
        window = Window(2)
        for body in (b"1", b"2", b"3"):
            was_sent(window, body)
        window.keep()

        assert [was_sent(window, body) for body in (b"2", b"3", b"1")] == [True, True, False]
