"""What all calls over grpcio's server have in common: their messages are bytes, and an error of ours refuses a call."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from clawtrace.receiver.transport.answers import Code

if TYPE_CHECKING:
    import grpc

__all__ = ["NoMessageError", "RefusedError", "Work", "answering", "each_message", "only_message", "when_gone"]

_LOG = logging.getLogger("clawtrace.receiver")

_SEVERAL = "a call contained more than one message; none was accepted"
_NONE = "a call needs exactly one message"

Work = Callable[[Iterator[bytes], "grpc.ServicerContext"], Iterator[bytes]]
"""Answers a call, whose messages it is given: yields each message of the answer; a `RefusedError` refuses the call."""


class RefusedError(Exception):
    """A call that is refused, with the number of a status, why, and trailing metadata."""

    def __init__(self, code: int, message: str, trailers: Sequence[tuple[str, bytes]] = ()) -> None:
        super().__init__(message)
        self.code = code
        self.trailers = tuple(trailers)


class NoMessageError(RefusedError):
    """A call that did not bring the one message that it needs.

    `several` is False where the message never came, or was too large, which gRPC itself has reported to the caller.
    """

    def __init__(self, *, several: bool) -> None:
        super().__init__(Code.UNIMPLEMENTED, _SEVERAL if several else _NONE)
        self.several = several


def each_message(messages: Iterator[bytes]) -> Iterator[bytes]:
    """Yield each message of a call as it comes, until the caller sends no more or has gone."""
    import grpc

    try:
        yield from messages
    except grpc.RpcError:  # the caller has gone
        return


def only_message(messages: Iterator[bytes]) -> bytes:
    """Return the only message of a call.

    Raises:
        NoMessageError: it brought none, or another one after it.
    """
    found = list(zip(each_message(messages), range(2), strict=False))
    if len(found) != 1:
        raise NoMessageError(several=len(found) > 1)
    return found[0][0]


def when_gone(context: grpc.ServicerContext, then: Callable[[], None]) -> None:
    """Have `then` called at the end of a call, on either side; at once where it has ended."""
    if not context.add_callback(then):
        then()


def answering(work: Work) -> Work:
    """Return what grpcio calls for work."""

    def answered(messages: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
        import grpc

        try:
            yield from work(messages, context)
            return
        except RefusedError as no:
            refusal = no
        except Exception as error:
            from google.protobuf.message import DecodeError

            if isinstance(error, DecodeError):
                refusal = RefusedError(Code.INVALID_ARGUMENT, str(error))
            else:
                _LOG.exception("a gRPC call could not be answered")
                refusal = RefusedError(Code.INTERNAL, "clawtrace failed on this call; see its log")
        codes: dict[int, grpc.StatusCode] = {code.value[0]: code for code in grpc.StatusCode}
        context.set_trailing_metadata(refusal.trailers)
        context.abort(codes[refusal.code], str(refusal))

    return answered
