"""`gateway_healthy`: the agent gateway is up."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from clawtrace.assertions.probe import Finding, Probe
from clawtrace.assertions.probing.http import UnreachableError, request
from clawtrace.assertions.world import World

__all__ = ["GatewayHealthy"]


class GatewayHealthy(Probe):
    """The agent gateway answers 200 on its health endpoint.

    As a precondition it keeps a suite from running against a gateway that is down. The address is `gateway.url` of
    `clawtrace.yaml`, by default http://127.0.0.1:18789; `/health` is asked. A gateway that does not answer is not healthy.

    Example:
        - type: gateway_healthy
    """

    precondition = True
    outside = True

    timeout: Annotated[float, Field(strict=True, gt=0, le=600)] = 10.0
    """The longest wait for the answer, in seconds."""

    def probe(self, world: World) -> Finding:
        """Ask the health endpoint."""
        url, token = f"{world.gateway.url}/health", world.gateway.token
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        try:
            answer = request("GET", url, headers=headers, timeout_s=self.timeout)
        except UnreachableError as error:
            return Finding(False, f"{error}; is the gateway running, and `gateway: url` of clawtrace.yaml right?")
        return Finding(answer.status == 200, f"GET {url} answered {answer.status}.", {"status": answer.status})

    def expectation(self) -> Any:
        """Return the status that is right."""
        return {"status": 200}
