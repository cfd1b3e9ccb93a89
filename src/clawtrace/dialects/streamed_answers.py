"""Answers that were written down while they were streamed: each chunk a message, then perhaps the whole.

A message without a finish reason that another one follows is a piece of the answer. The last message is either its last
piece, or the whole of it: then it says what the pieces said.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from clawtrace.dialects.message_parts import Message, Piece

__all__ = ["put_together"]

_CALLS = frozenset(("tool_call", "server_tool_call"))
_WORDS = ("reasoning", "text")


def put_together(messages: Sequence[tuple[Message, bool]]) -> Iterator[Message]:
    """Yield the messages of one answer, where pieces of it are put together.

    Args:
        messages: the messages, and of each whether it has no finish reason although such a message should have one.
    """
    pieces: list[Message] = []
    for number, (message, unfinished) in enumerate(messages, 1):
        if unfinished and number < len(messages):
            pieces.append(message)
        elif pieces:
            yield _whole(pieces, message, finished=not unfinished)
            pieces = []
        else:
            yield message


def _whole(pieces: Sequence[Message], last: Message, *, finished: bool) -> Message:
    """Return what the pieces and the last message say, once; words that nothing finished are no answer."""
    parts = [part for _, of_piece in pieces for part in of_piece]
    found = []
    for kind in _WORDS:
        before, own = _words(parts, kind), _words(last[1], kind)
        repeated = own.strip() == before.strip()
        if text := own if repeated else before + own if finished else "":
            found.append(Piece(kind, None, None, text))
    role = last[0] or pieces[0][0]
    others = [part for part in (*parts, *last[1]) if part.type not in _CALLS and part.type not in _WORDS]
    return role, [*found, *others, *_calls([*parts, *last[1]])]


def _words(parts: Sequence[Piece], kind: str) -> str:
    return "".join(part.text or "" for part in parts if part.type == kind)


def _calls(parts: Sequence[Piece]) -> list[Piece]:
    """Return the calls, those of one id once: with the arguments that were recorded last."""
    found: list[Piece] = []
    places: dict[str, int] = {}
    for part in parts:
        if part.type not in _CALLS:
            continue
        place = None if part.call_id is None else places.get(part.call_id)
        if place is None:
            if part.call_id is not None:
                places[part.call_id] = len(found)
            found.append(part)
        elif part.text is not None:
            found[place] = part
    return found
