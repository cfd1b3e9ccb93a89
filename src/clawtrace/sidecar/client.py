"""A client of the control service: what `--server` uses, and a program may.

::

    client = Client.at("http://127.0.0.1:4318", token)
    begun = client.begin_run(case_id="refund")
    subprocess.run(["python", "agent.py"], env={**os.environ, **begun["environment"]})
    client.end_run(begun["run_id"], exit_code=0)
    results = client.evaluate(Path("checks.yaml").read_text(), run_id=[begun["run_id"]])
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from clawtrace.errors import ClawtraceError, QueryError, ReceiverError, UsageError
from clawtrace.store.files.owner import Owner
from clawtrace.support.http_connection import request_json

__all__ = ["Client", "NoAnswerError", "server_named"]

_SECONDS = 660.0
"""Longest wait for an answer: ending a run waits for its spans."""


class NoAnswerError(ReceiverError):
    """The service could not be reached, or did not answer: it may when it is asked again."""


def server_named(named: str, token: str | None) -> Owner:
    """Return address and token of a service.

    Args:
        named: its address (``http://127.0.0.1:4318``), or the path of its ready file.
        token: of the control service; a ready file has it.

    Raises:
        UsageError: the file cannot be read, or a token is missing.
    """
    if not named.startswith(("http://", "https://")):
        try:
            ready = json.loads(Path(named).read_text(encoding="utf-8"))
            return Owner(str(ready["http"]), str(ready["token"]), int(ready["pid"]))
        except (OSError, ValueError, KeyError, TypeError) as error:
            why = (
                error.strerror if isinstance(error, OSError) else f"{'it has no ' * isinstance(error, KeyError)}{error}"
            )
            raise UsageError(
                f"{named!r} is neither the address of a service (http://127.0.0.1:4318) nor its ready file: {why}"
            ) from error
    if not token:
        raise UsageError(
            f"the service at {named!r} needs its token: set CLAWTRACE_SERVER_TOKEN, or name its ready file"
        )
    return Owner(named.rstrip("/"), token, 0)


class Client:
    """Asks one service; every call opens a connection.

    Raises:
        UsageError: (every method) the service refuses the request; the message says why.
        QueryError: (every method) SQL was refused.
        NoAnswerError: (every method) the service does not answer.
        ReceiverError: (every method) it answers that it failed.
    """

    def __init__(self, server: Owner) -> None:
        self._server = server

    @classmethod
    def at(cls, named: str, token: str | None = None) -> Client:
        """Return a client of the service with this address, or with this ready file."""
        return cls(server_named(named, token))

    def begin_run(self, **fields: Any) -> dict[str, Any]:
        """Announce a run: `clawtrace.sidecar.requests.BeginRun`; return its id, `traceparent` and `environment`."""
        return self._ask("POST", "/runs", fields)

    def end_run(self, run_id: str, **fields: Any) -> dict[str, Any]:
        """End a run: `clawtrace.sidecar.requests.EndRun`; return whether it is complete."""
        return self._ask("POST", f"/runs/{quote(run_id, safe='')}/end", fields)

    def wait_complete(self, run_id: str, timeout_seconds: float = 60.0) -> dict[str, Any]:
        """Wait until `end_run`, of any client, has closed a run; return whether it is complete."""
        return self._ask("POST", f"/runs/{quote(run_id, safe='')}/wait", {"timeout_seconds": timeout_seconds})

    def adopt(self, run_id: str, trace_ids: Sequence[str]) -> dict[str, Any]:
        """Give traces that named no run to a run; return whether it is complete."""
        return self._ask("POST", f"/runs/{quote(run_id, safe='')}/adopt", {"trace_ids": list(trace_ids)})

    def delete_run(self, run_id: str) -> None:
        """Delete a run that has ended; what comes of it later is rejected."""
        self._ask("DELETE", f"/runs/{quote(run_id, safe='')}")

    def list_runs(self) -> list[dict[str, Any]]:
        """Return every run."""
        return list(self._ask("GET", "/runs")["runs"])

    def inspect(self, run_id: str) -> dict[str, Any]:
        """Return the facts of a run as ``clawtrace.inspect/1``."""
        return self._ask("GET", f"/runs/{quote(run_id, safe='')}")

    def evaluate(self, assertions: str, **gating: Any) -> dict[str, Any]:
        """Judge runs by the text of an assertions file; return ``clawtrace.results/1``.

        Args:
            assertions: YAML or JSON.
            gating: `clawtrace.sidecar.requests.Gating`, and `format`.
        """
        query = {name: str(value).lower() if isinstance(value, bool) else value for name, value in gating.items()}
        return self._ask("POST", f"/evaluate?{urlencode(query, doseq=True)}", text=assertions)

    def endpoints(self) -> dict[str, Any]:
        """Return where agents export to: `grpc`, `http` and `token`."""
        return self._ask("GET", "/endpoints")

    def packed_run(self, run_id: str) -> bytes:
        """Return all that came of a run: the file of a DuckDB store of its own, compressed with gzip."""
        return self._answer("GET", f"/runs/{quote(run_id, safe='')}/data")

    def received_rows(self, run_ids: Sequence[str]) -> dict[str, int]:
        """Return how much came of runs so far, by run id; a run that is not there is left out."""
        return dict(self._ask("POST", "/received", {"run_ids": list(run_ids)})["received"])

    def put_verdicts(self, run_id: str, verdicts: Sequence[Mapping[str, Any]], received: int | None = None) -> None:
        """Have the service count and send on verdicts that were given here: `clawtrace.sidecar.requests.PutVerdicts`."""
        fields = {"verdicts": list(verdicts), "received": received}
        self._ask("POST", f"/runs/{quote(run_id, safe='')}/verdicts", fields)

    def query(self, sql: str) -> dict[str, Any]:
        """Answer one read-only SELECT over the relations of all runs: `columns` and `rows`."""
        return self._ask("POST", "/query", {"ask": "query", "sql": sql})

    def _ask(self, method: str, path: str, fields: Mapping[str, Any] | None = None, text: str = "") -> dict[str, Any]:
        answer = self._answer(method, path, text if fields is None else json.dumps(fields))
        try:
            return dict(json.loads(answer))
        except (ValueError, TypeError) as error:
            raise ReceiverError(f"what answers at {self._server.address} is no clawtrace service: {error}") from error

    def _answer(self, method: str, path: str, body: str = "") -> bytes:
        address, token = self._server.address, self._server.token
        try:
            status, data = request_json(address, token, _SECONDS, f"/clawtrace/v1{path}", body, method=method)
        except (OSError, HTTPException) as error:
            raise NoAnswerError(f"the service at {address} does not answer: {error}") from error
        if status < 300:
            return data
        raise _error(status, data)


def _error(status: int, answer: bytes) -> ClawtraceError:
    try:
        data = dict(json.loads(answer))
    except (ValueError, TypeError):
        data = {}
    message = str(data.get("message", f"the service answered {status}"))
    if data.get("error") == "QueryError":
        return QueryError(message)
    if data.get("error") == "RunExistsError":
        from clawtrace.sidecar.control import RunExistsError

        return RunExistsError(message)
    if status == 503:
        return NoAnswerError(message)
    if status >= 500:
        return ReceiverError(message)
    return UsageError(message)
