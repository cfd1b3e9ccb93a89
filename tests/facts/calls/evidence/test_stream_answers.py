"""Which request a streamed answer belongs to."""

from __future__ import annotations

from clawtrace.facts.calls.evidence.stream_answers import join_answers
from clawtrace.facts.calls.ledger import Ledger
from clawtrace.facts.spans.span import Span


def request(start: int, messages: int | None) -> Span:
    return Span(sid=start, start_ns=start, end_ns=start + 1, kind="llm", scope="s", input_digest=messages)


def answer(start: int, messages: int | None) -> Span:
    return request(start, messages)._replace(role="answer", output_tokens=1)


def joined(*spans: Span) -> list[int | None]:
    """The call of each span, where each begins as its own."""
    ledger = Ledger(spans)
    for index in range(len(spans)):
        ledger.open(index)
    join_answers(spans, ledger)
    return ledger.group


def test_requests_that_ask_the_same_are_answered_in_their_order() -> None:
    """Another request began after them: it is not the answered one, though it is the last."""
    spans = (request(1, 7), request(2, 7), request(3, 8), answer(4, 7), answer(5, 7), answer(6, 8))

    assert joined(*spans) == [0, 1, 2, 0, 1, 2]


def test_an_answer_without_messages_is_that_of_the_last_request_that_has_none() -> None:
    assert joined(request(1, 7), request(2, 8), answer(3, None), answer(4, None)) == [0, 1, 1, 0]


def test_an_answer_without_an_open_request_is_a_call() -> None:
    assert joined(request(1, 7), answer(2, 7), answer(3, 7)) == [0, 0, 2]
