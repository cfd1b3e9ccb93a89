"""What a request means: what differs from run to run is no difference, and everything else is."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any

import pytest

from clawtrace.cassettes.matching import Rules, difference, nearest

AT = datetime(2026, 11, 28, 10, tzinfo=UTC).timestamp()
LATER = datetime(2027, 3, 1, 23, tzinfo=UTC).timestamp()


def chat(text: str, **more: Any) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": "user", "content": text}], **more}


def meaning(body: Any, at: float = AT, rules: Rules = Rules(), path: str = "/chat/completions"):  # noqa: B008
    return rules.meaning("chat", "m", path, body, at)


@pytest.mark.parametrize(
    ("recorded", "asked"),
    [
        ("It is 2026-11-28.", "It is 2027-03-01."),
        ("It is 2026-11-28T09:58:11.123Z, UTC", "It is 2027-03-01T23:01:00+00:00, UTC"),
        ("Today: Saturday, November 28, 2026", "Today: Monday, March 1, 2027"),
        ("on 28 Nov 2026 at 10:00", "on 1 March 2027 at 11:30 PM"),
        ("at 1795860000", "at 1803942000.5"),
        ("run 0b5fd3a2-7a05-4a6c-a6f5-5f1f3b1f3f2e", "run 7d444840-9dc0-11d1-b245-5ffdce74fad2"),
        ("in /tmp/ab12x_/notes.md", "in /private/var/folders/x1/y2/T/q9/notes.md"),
        (
            "in /home/me/p/outputs/campaigns/s/default-1/runs/m1/c-2/1/workspace/a.py",
            "in /builds/p/outputs/campaigns/s/once-2/runs/-/c-2/3/workspace/a.py",
        ),
        ("smoke/-/case/1-0a1b2c3d", "smoke/gpt/case/2-ffffffff-attempt2"),
        ("key [REDACTED:env:0a1b2c3d]", "key [REDACTED:env:ffffffff]"),
    ],
)
def test_what_differs_from_run_to_run_means_nothing(recorded: str, asked: str) -> None:
    assert meaning(chat(recorded)).digest == meaning(chat(asked), LATER).digest


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (chat("Refund order 7."), chat("Refund order 8.")),
        (chat("bought on 2026-03-01"), chat("bought on 2026-03-02")),  # no time of the day on which it is asked
        (chat("/tmp/a/x.md"), chat("/tmp/a/y.md")),
        (chat("x", temperature=0), chat("x", temperature=1)),
        (chat("x", tools=[{"name": "a"}]), chat("x", tools=[{"name": "b"}])),
        (chat("x"), chat("x", stream=True)),
        (chat("x", tools=[{"input": {"id": "1"}}]), chat("x", tools=[{"input": {"id": "2"}}])),
        (chat("[REDACTED:env:0a1b2c3d]"), chat("[REDACTED:jwt:0a1b2c3d]")),
    ],
)
def test_what_a_model_may_answer_differently_to_is_a_difference(one: Any, other: Any) -> None:
    assert meaning(one).digest != meaning(other).digest


def test_ids_of_calls_count_by_which_belong_together() -> None:
    def calls(first: str, second: str, result: str) -> dict[str, Any]:
        asked = [{"id": first}, {"id": second}]
        return {"messages": [{"tool_calls": asked}, {"role": "tool", "tool_call_id": result}]}

    assert meaning(calls("call_a", "call_b", "call_a")).digest == meaning(calls("x1", "y2", "x1")).digest
    assert meaning(calls("call_a", "call_b", "call_a")).digest != meaning(calls("x1", "y2", "y2")).digest


def test_a_user_says_what_else_means_nothing() -> None:
    rules = Rules(normalise=((r"ticket-\d+", "<ticket>"),), ignore=("$.messages[*].name", "$.seed"))
    one = {"messages": [{"content": "see ticket-1", "name": "ann"}], "seed": 1}
    other = {"messages": [{"content": "see ticket-22", "name": "bob"}], "seed": 2}

    assert meaning(one, rules=rules).digest == meaning(other, rules=rules).digest
    assert meaning(one).digest != meaning(other).digest


def test_who_asks_and_how_it_is_accounted_means_nothing() -> None:
    assert meaning(chat("x", user="u1", metadata={"a": "1"})).digest == meaning(chat("x", user="u2")).digest


def test_gemini_streams_by_its_path() -> None:
    plain, stream = ("/v1beta/models/g:generateContent", "/v1beta/models/g:streamGenerateContent?alt=sse")
    assert meaning(chat("x"), path=plain).digest != meaning(chat("x"), path=stream).digest


def test_the_nearest_request_is_shown_with_what_differs() -> None:
    known = [meaning(chat("Write a poem.")), meaning(chat("Refund\norder 7\nplease.")), meaning(chat("Hello"))]
    asked = meaning(chat("Refund\norder 8\nplease."))
    place = nearest(asked, known)
    shown = difference(known[1], asked, "abc").splitlines()

    assert place == 1
    assert [line[0] + line[1:].strip() for line in shown if line[0] in "+-"][2:] == ["-order 7", "+order 8"]


def test_long_texts_without_an_end_are_read_at_once() -> None:
    """An image in a message is one long text of letters and slashes, which no rule may read again from each of its places."""
    began = time.perf_counter()
    for unit in ("abcdefg/", "ab-cd.ef+/x", "-a", "2026-", "deadbeef-", "/tmp/"):
        meaning(chat(unit * 100_000))
    assert time.perf_counter() - began < 20


def test_there_is_no_nearest_of_nothing() -> None:
    assert nearest(meaning(chat("x")), []) is None
