"""`gateway_response`: an endpoint answers as asked."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator

from clawtrace.assertions.matching.matchers import one_form
from clawtrace.assertions.probe import Finding, Probe
from clawtrace.assertions.probing.files import Text
from clawtrace.assertions.probing.http import MAX_BODY, request
from clawtrace.assertions.refused import refused
from clawtrace.assertions.world import World

__all__ = ["GatewayResponse"]


def _check_url(text: str) -> str:
    if not text.startswith(("http://", "https://")):
        raise refused(f"must be a full URL (`http://…` or `https://…`), found {text!r}")
    return text


class GatewayResponse(Probe):
    """The endpoint answers a request with `expected_status`.

    A service that the agent deployed, or the gateway that it works for, must still answer after the run. Redirects are not
    followed, so that 302 can be expected. An endpoint that refuses the connection or does not answer in time is an
    error, not a failure: nothing was judged.

    Example:
        - type: gateway_response
          endpoint: http://127.0.0.1:18789/health
          expected_status: 200
    """

    outside = True

    endpoint: Annotated[str, Field(strict=True), AfterValidator(_check_url)]
    """Full URL."""
    expected_status: Annotated[int, Field(strict=True, ge=100, le=599)]
    """HTTP status code that is right."""
    method: Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"] = "GET"
    """HTTP method."""
    headers: dict[str, str] = Field(default_factory=dict)
    """Headers of the request."""
    expected_body: Text | None = None
    """Text that the body must contain."""
    timeout: Annotated[float, Field(strict=True, gt=0, le=600)] = 10.0
    """The longest wait for the answer, in seconds."""

    @model_validator(mode="after")
    def _check(self) -> GatewayResponse:
        if self.method == "HEAD" and self.expected_body is not None:
            raise refused("a response to HEAD has no body: `expected_body` would never match", "expected_body")
        return self

    def probe(self, world: World) -> Finding:
        """Send the request."""
        del world
        answer = request(self.method, self.endpoint, headers=self.headers, timeout_s=self.timeout)
        actual = {"status": answer.status, "body": answer.body[:300]}
        answered = f"{self.method} {self.endpoint} answered {answer.status}, expected {self.expected_status}"
        if answer.status != self.expected_status:
            return Finding(False, f"{answered}.", actual)
        if self.expected_body is not None and one_form(self.expected_body) not in one_form(answer.body):
            if answer.cut:
                sentence = (
                    f"{answered}, and the first {MAX_BODY} bytes of its body do not contain {self.expected_body!r}."
                )
                return Finding(None, sentence, actual, "the rest of the body")
            return Finding(False, f"{answered}, but its body does not contain {self.expected_body!r}.", actual)
        return Finding(True, f"{answered}.", actual)

    def expectation(self) -> Any:
        """Return status and body."""
        return {"status": self.expected_status} | ({"body": self.expected_body} if self.expected_body else {})
