"""Requests to columns, redacted, from any encoding.

Requests of spans that hold nothing like a secret are decoded together, into one batch; any other is decoded alone. Either
way what is wrong with a request is reported for that request only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from clawtrace.receiver.attribution.attribute import ClaimReader
from clawtrace.receiver.decode.columns import redact
from clawtrace.receiver.decode.decode_json import JsonDecoder
from clawtrace.receiver.decode.sniff import JSON_KEYS, document_signals, protobuf_signal
from clawtrace.receiver.redaction.redact import Redactor
from clawtrace.receiver.request import BadPayloadError, Decoded, Request, Signal

if TYPE_CHECKING:
    from clawtrace.receiver.decode.decode_protobuf import ProtobufDecoder

__all__ = ["RequestDecoder"]


class RequestDecoder:
    """Decodes requests; used by one thread at a time, because it remembers attributes it has seen."""

    def __init__(self, redactor: Redactor, claims: ClaimReader) -> None:
        self._redactor = redactor
        self._claims = claims
        self._json = JsonDecoder(redactor, claims)

    @cached_property
    def _protobuf(self) -> ProtobufDecoder:
        from clawtrace.receiver.decode.decode_protobuf import ProtobufDecoder

        return ProtobufDecoder(self._redactor, self._claims)

    def decode(self, requests: Sequence[Request]) -> list[Decoded | Exception]:
        """Decode requests.

        Returns:
            Each request, or what is wrong with it, a `BadPayloadError` where it will never be accepted. The rows of those
            that share a batch are in it in the order given.
        """
        decoded: dict[int, Decoded | Exception] = {}
        alike: dict[bool, list[int]] = {}
        for place, request in enumerate(requests):
            try:
                suspect = self._redactor.suspects(request.body)
                if suspect or request.signal != "traces" or request.document is not None:
                    decoded[place] = self._alone(request, suspect)
                else:
                    alike.setdefault(request.json, []).append(place)
            except BadPayloadError as problem:
                decoded[place] = problem.with_traceback(None)  # it would hold this frame, and with it all requests
            except Exception as fault:
                decoded[place] = fault
        for places in alike.values():
            decoded.update(zip(places, self._together([requests[place] for place in places]), strict=True))
        return [decoded[place] for place in range(len(requests))]

    def _together(self, requests: Sequence[Request]) -> list[Decoded | Exception]:
        """Decode requests of spans that are in one encoding and not suspect."""
        found: Sequence[Decoded | BadPayloadError | None]
        try:
            found = self._spans(requests, suspect=False)
        except Exception:  # unusual JSON, or a fault of ours: each is tried alone, so that it costs no other
            found = [None] * len(requests)
        decoded: list[Decoded | Exception] = []
        for request, one in zip(requests, found, strict=True):
            try:
                decoded.append(self._alone(request, False) if one is None else self._settled(request, one, False))
            except BadPayloadError as problem:
                decoded.append(problem.with_traceback(None))
            except Exception as fault:
                decoded.append(fault)
        return decoded

    def _alone(self, request: Request, suspect: bool) -> Decoded:
        """Decode one request.

        Raises:
            BadPayloadError: it will never be accepted.
        """
        if request.document is not None:
            decoded = self._json.decode(request.signal, request.document, request.body, suspect=suspect)
        elif request.signal == "traces":
            decoded = self._settled(request, self._spans([request], suspect)[0], suspect)
        elif request.json:
            decoded = self._careful(request, suspect)
        else:
            decoded = _sure(request, self._protobuf.decode(request.signal, request.body, suspect=suspect))
        if suspect:
            redact(decoded.spans if request.signal == "traces" else decoded.logs, self._redactor.clean_all)
            rejected, decoded.rejected = decoded.rejected, Counter()
            for (claim, reason), items in rejected.items():
                decoded.rejected[claim, self._redactor.clean(reason)] += items
        return decoded

    def _spans(self, requests: Sequence[Request], suspect: bool) -> list[Decoded | BadPayloadError]:
        """Decode requests of spans that are in one encoding.

        Raises:
            BadPayloadError: one of several will never be accepted, which showed too late for the others.
        """
        read = self._json.regular_spans if requests[0].json else self._protobuf.spans
        try:
            return read([request.body for request in requests], suspect=suspect)
        except BadPayloadError as problem:
            if len(requests) > 1:
                raise
            return [problem]

    def _settled(self, request: Request, found: Decoded | BadPayloadError, suspect: bool) -> Decoded:
        """Return what is sure of a request of spans.

        Raises:
            BadPayloadError: it will never be accepted.
        """
        if not request.json:
            return _sure(request, found)
        return found if isinstance(found, Decoded) else self._careful(request, suspect)

    def _careful(self, request: Request, suspect: bool) -> Decoded:
        """Decode JSON that is not written in the usual way."""
        document = self._json.parse(request.body)
        found = document_signals(document)
        if document and not found:
            from clawtrace.receiver.decode.foreign_forms import foreign_form

            none = f"the JSON body contains none of {', '.join(sorted(JSON_KEYS))}"
            raise BadPayloadError(foreign_form(document) or none)
        if found and request.signal not in found:
            _check_signal(request.signal, found[0])
        if others := [signal for signal in document_signals(document, filled=True) if signal != request.signal]:
            signals = " and ".join([request.signal, *others])
            raise BadPayloadError(
                f"the body contains {signals}; a request has one signal, sent to the path of that signal"
            )
        return self._json.decode(request.signal, document, request.body, suspect=suspect)


def _sure(request: Request, found: Decoded | BadPayloadError) -> Decoded:
    """Return a request in protobuf, unless it makes no sense; then say so, and which signal the body is of."""
    if isinstance(found, BadPayloadError):
        doubtful = True
    elif request.signal == "metrics":
        doubtful = not found.points.total() and bool(request.body)
    else:
        nothing_good = not found.claims and bool(found.rejected)
        doubtful = nothing_good or (request.signal == "logs" and 0 in found.logs.time_ns)
    if doubtful:
        _check_signal(request.signal, protobuf_signal(request.body))
    if isinstance(found, BadPayloadError):
        raise found
    return found


def _check_signal(signal: Signal, found: Signal | None) -> None:
    if found and found != signal:
        raise BadPayloadError(f"the body contains {found}, not {signal}; send it to `/v1/{found}`")
