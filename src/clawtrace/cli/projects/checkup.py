"""Checks of `clawtrace doctor`: versions, the project, the receiver over each protocol, stores, the shell."""

from __future__ import annotations

import gzip
import http.client
import json
import os
import platform
import secrets
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

from clawtrace.config.files.document import SUFFIXES, display, read_document
from clawtrace.config.files.named import case_files
from clawtrace.errors import ClawtraceError
from clawtrace.report.json_text import Struct
from clawtrace.support.figures import amount
from clawtrace.support.otlp_json import pairs

if TYPE_CHECKING:
    from clawtrace.config.projects.project_file import Project
    from clawtrace.config.projects.session_settings import SessionSettings
    from clawtrace.session.session import Session

__all__ = ["Checkup", "CheckupFinding", "checkup"]

_SECONDS = 10.0
_LEAST_FREE = 1 << 30
_LIBRARIES = ("clawtrace-eval", "duckdb", "grpcio", "protobuf", "h11", "pydantic", "click")
_EXPORT = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
_HANDLED = ("OTEL_RESOURCE_ATTRIBUTES", "OTEL_SERVICE_NAME")
"""Variables of the user's own that agents keep: they are merged, or harmless."""


class CheckupFinding(Struct, kw_only=False):
    """One thing that was looked at."""

    check: str
    """A short name, the same every time."""
    status: Literal["ok", "warning", "problem"]
    """Whether something is to be done."""
    message: str
    """The finding, as a sentence."""
    advice: str = ""
    """Advice; empty if nothing is to be done."""


class Checkup(Struct):
    """`clawtrace.doctor/1`: what `clawtrace doctor --json` prints. Keys are added, never changed."""

    schema: Literal["clawtrace.doctor/1"]
    """Name and version of this format: keys may be added, never changed."""
    findings: list[CheckupFinding]
    """Everything that was looked at, in order."""


def checkup(start: Path, env: Mapping[str, str]) -> Iterator[CheckupFinding]:
    """Yield what is found, in the order in which it is looked at.

    Args:
        start: the folder in which the project is looked for.
    """
    yield _versions()
    project, found = _project(start, env)
    yield found
    if project is not None:
        yield from _receiver(project)
        yield from _stores(project)
        yield _outputs(project)
        yield from _cassettes(project)
        yield from _instrumentations(project)
    yield from _shell(env)
    yield from _agent(start)


def _versions() -> CheckupFinding:
    from importlib import metadata

    found = [f"Python {platform.python_version()}", *(f"{name} {metadata.version(name)}" for name in _LIBRARIES)]
    return CheckupFinding("versions", "ok", f"{', '.join(found)} on {platform.system()} {platform.machine()}.")


def _project(start: Path, env: Mapping[str, str]) -> tuple[Project | None, CheckupFinding]:
    from clawtrace.config.projects.project_file import load_project

    try:
        project = load_project(start, env)
    except ClawtraceError as error:
        return None, CheckupFinding(
            "project", "problem", str(error), "`clawtrace validate` shows the problems of all files."
        )
    if project.path is None:
        return project, CheckupFinding(
            "project",
            "ok",
            "There is no clawtrace.yaml here or in a folder above: defaults apply.",
            "`clawtrace init` writes one.",
        )
    return project, CheckupFinding("project", "ok", f"{display(project.path)} is valid.")


def _cassettes(project: Project) -> Iterator[CheckupFinding]:
    """Yield how old each cassette is that a case or a run profile names."""
    files = [file for found in case_files(project.configs / "cases").values() for file in found]
    files += sorted(file for file in (project.configs / "run_profiles").glob("*") if file.suffix in SUFFIXES)
    named: set[Path] = set()
    for file in files:
        with suppress(ClawtraceError):  # `clawtrace validate` says what is wrong with it
            said = read_document(file).data.get("cassette")
            path = said.get("path") if isinstance(said, dict) else None
            if isinstance(path, str):
                case_id = file.parent.name if file.stem == "test" else "*"
                named |= {one.resolve() for one in file.parent.glob(path.replace("{{case_id}}", case_id))}
    for path in sorted(named):
        yield _cassette(path)


def _cassette(path: Path) -> CheckupFinding:
    from clawtrace.cassettes.file import load

    try:
        head, exchanges = load(path)
        days = (datetime.now(UTC) - datetime.fromisoformat(head.recorded)).days
    except (ClawtraceError, ValueError) as error:
        return CheckupFinding("cassette", "problem", str(error), "Record it anew with `--cassette-mode record`.")
    age = "today" if days < 1 else f"{amount(days, 'day')} ago"
    models = ", ".join(sorted({one.request.model for one in exchanges if one.request.model})) or "no model"
    said = f"{display(path)} was recorded {age}: {amount(len(exchanges), 'exchange')} with {models}."
    return CheckupFinding("cassette", "ok", said)


# The receiver -----------------------------------------------------------------------------------


def _receiver(project: Project) -> Iterator[CheckupFinding]:
    """Start the project's receiver with a store in memory, and send it a span over each protocol."""
    from clawtrace.config.projects.session_settings import session_settings
    from clawtrace.session.session import Session

    settings: SessionSettings = session_settings(project)
    receiver = replace(settings.receiver, tee=None)  # our spans are not forwarded
    try:
        session = Session.open(receive=True, settings=settings._replace(receiver=receiver))
    except ClawtraceError as error:
        yield CheckupFinding(
            "receiver", "problem", str(error), "The ports are `receiver: {grpc_port, http_port}` in clawtrace.yaml."
        )
        return
    with session:
        points = session.endpoints
        chosen = "free ports, new ones each time" if receiver.grpc_port == receiver.http_port == 0 else "the project's"
        said = f"It listens on {points.grpc} (announced for gRPC) and {points.http} (for HTTP), {chosen}."
        yield CheckupFinding("receiver", "ok", said)
        for name, (send, port) in _SENDERS.items():
            yield _sent(name, partial(send, session), getattr(points, port), session)


def _sent(name: str, send: Callable[[str, str], None], base: str, session: Session) -> CheckupFinding:
    """Send one span, close its run, and look whether it is there, in its run."""
    from clawtrace.model.run import RunRecord

    run_id = f"doctor-{secrets.token_hex(4)}"
    record = RunRecord(run_id, "doctor")
    session.open_run(record)
    began = time.perf_counter()
    try:
        send(run_id, base)
    except Exception as error:  # any error that a client, a proxy or the system raises is the finding
        advice = "A firewall or security software may block connections on this machine."
        return CheckupFinding(name, "problem", f"A span could not be sent: {type(error).__name__}: {error}", advice)
    spent = (time.perf_counter() - began) * 1000
    session.close_run(record, processes_gone=True, end_run=True)
    (facts,) = session.inspect([run_id])["runs"]
    if facts["spans"] != 1 or facts["tool_calls"] is None or len(facts["tool_calls"]) != 1:
        return CheckupFinding(
            name, "problem", f"A span was accepted, and {facts['spans']} are in its run as it was sent."
        )
    return CheckupFinding(name, "ok", f"A span was accepted after {spent:.0f} ms, and is in its run.")


def _message(run_id: str) -> dict[str, Any]:
    """Return an export request of one tool call, as OTLP/JSON."""
    now = time.time_ns()
    attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "doctor"}
    span = {
        "traceId": secrets.token_hex(16),
        "spanId": secrets.token_hex(8),
        "name": "execute_tool doctor",
        "kind": 1,
        "startTimeUnixNano": str(now - 1_000_000),
        "endTimeUnixNano": str(now),
        "attributes": pairs(attributes),
    }
    resource = {"attributes": pairs({"service.name": "clawtrace-doctor", "clawtrace.run_id": run_id})}
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [{"scope": {"name": "doctor"}, "spans": [span]}]}]}


def _protobuf(run_id: str) -> bytes:
    from clawtrace.session.exporting import request_of

    body: bytes = request_of(json.dumps(_message(run_id))).SerializeToString()
    return body


def _over_grpc(session: Session, run_id: str, base: str) -> None:
    import grpc

    # A proxy of the shell's is a matter for its own check.
    address = urlsplit(base).netloc
    with grpc.insecure_channel(address, options=[("grpc.enable_http_proxy", 0)]) as channel:
        channel.unary_unary(_EXPORT)(_protobuf(run_id), timeout=_SECONDS, metadata=tuple(_token(session).items()))


def _token(session: Session) -> dict[str, str]:
    token = session.endpoints.token
    return {"x-clawtrace-token": token} if token else {}


def _over_http(session: Session, run_id: str, base: str, *, as_json: bool = False, zipped: bool = False) -> None:
    address = urlsplit(base)
    assert address.hostname is not None
    body = json.dumps(_message(run_id)).encode() if as_json else _protobuf(run_id)
    headers = {"content-type": "application/json" if as_json else "application/x-protobuf"} | _token(session)
    if zipped:
        body, headers["content-encoding"] = gzip.compress(body), "gzip"
    with closing(http.client.HTTPConnection(address.hostname, address.port, timeout=_SECONDS)) as connection:
        connection.request("POST", "/v1/traces", body, headers)
        answer = connection.getresponse()
        if answer.status != 200:
            raise OSError(f"the receiver answered {answer.status}: {answer.read(200).decode('utf-8', 'replace')}")


_SENDERS: Mapping[str, tuple[Callable[[Session, str, str], None], Literal["grpc", "http"]]] = {
    "OTLP/gRPC": (_over_grpc, "grpc"),
    "OTLP/gRPC to the HTTP port": (_over_grpc, "http"),
    "OTLP/HTTP protobuf": (_over_http, "http"),
    "OTLP/HTTP protobuf to the gRPC port": (_over_http, "grpc"),
    "OTLP/HTTP protobuf, gzip": (partial(_over_http, zipped=True), "http"),
    "OTLP/HTTP JSON": (partial(_over_http, as_json=True), "http"),
}
"""For each check, the function that sends a span, and the port that it uses."""


# Files ------------------------------------------------------------------------------------------


def _stores(project: Project) -> Iterator[CheckupFinding]:
    """Yield who holds the project's stores, and the owner files of processes that are gone."""
    from clawtrace.store.files.owner import command_of, owner_file, read_owner

    stores = sorted(project.outputs.glob("campaigns/*/*/spans.duckdb"))
    for store in [*stores, *([project.store] if project.store is not None else [])]:
        if not owner_file(store).exists():
            continue
        owner = read_owner(store)
        if owner is None:
            yield CheckupFinding(
                "stores",
                "warning",
                f"{display(owner_file(store))} is left over from a process that was killed.",
                "It does no harm: the next command that opens the store replaces it. No span is lost.",
            )
        else:
            who = (
                f"process {owner.pid} (`{command_of(owner.pid)}`)" if command_of(owner.pid) else f"process {owner.pid}"
            )
            yield CheckupFinding(
                "stores", "ok", f"{display(store)} is open in {who}; `query` and `inspect` ask that process."
            )


def _outputs(project: Project) -> CheckupFinding:
    folder = project.outputs
    while not folder.exists():
        folder = folder.parent
    if not os.access(folder, os.W_OK):
        advice = "Make it writable, or set `outputs` in clawtrace.yaml, or give --out."
        return CheckupFinding(
            "outputs", "problem", f"Results cannot be written: {display(folder)} is not writable.", advice
        )
    free = shutil.disk_usage(folder).free
    said = f"{display(project.outputs)} has {free / (1 << 30):.1f} GiB free."
    if free < _LEAST_FREE:
        return CheckupFinding("outputs", "warning", said, "Free some space: a full disk loses runs.")
    return CheckupFinding("outputs", "ok", said)


def _instrumentations(project: Project) -> Iterator[CheckupFinding]:
    """Yield which instrumentations of the last runs are of unknown versions, or write attributes that are unknown."""
    from clawtrace.cli.projects.agent_checkup import drifts, last_store

    store = last_store(project)
    if store is None:
        return
    advice = "Facts may be missed: `clawtrace inspect --explain` shows what was read. A newer clawtrace may know more."
    try:
        found = list(drifts(store, project))
    except ClawtraceError as error:
        yield CheckupFinding("instrumentations", "warning", f"{display(store)} cannot be read: {error}")
        return
    for said in found:
        yield CheckupFinding("instrumentations", "warning", f"{said} (in {display(store)}).", advice)
    if not found:
        said = f"The versions and attributes of those in {display(store)} are known, as far as there are recordings of them."
        yield CheckupFinding("instrumentations", "ok", said)


# The shell --------------------------------------------------------------------------------------


def _shell(env: Mapping[str, str]) -> Iterator[CheckupFinding]:
    """Yield variables that change what agents export, or where to."""
    from clawtrace.runners.starting.environment import is_removed, table

    ours = {variable.name for variable in table().variables}
    found = sorted(name for name in env if name.startswith(("OTEL_", "TRACEPARENT")) and name not in _HANDLED)
    for name in found:
        if is_removed(name) or name in ours:
            what = "is removed for agents" if is_removed(name) and name not in ours else "is replaced for agents"
            yield CheckupFinding("shell", "ok", f"{name} is set in this shell; it {what}.")
        else:
            yield CheckupFinding(
                "shell",
                "warning",
                f"{name} is set in this shell: `clawtrace run` hands it to the command, `clawtrace eval` does not.",
                "Unset it, or name it in `pass_env` of the case, so that both do the same.",
            )
    proxies = [name for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY") if env.get(name) or env.get(name.lower())]
    if proxies:
        yield CheckupFinding(
            "shell",
            "ok",
            f"{', '.join(proxies)} is set; agents get NO_PROXY for the loopback addresses, so that spans come here "
            "directly.",
        )
    if not found and not proxies:
        yield CheckupFinding("shell", "ok", "No variable of this shell changes what agents export.")


# The agent --------------------------------------------------------------------------------------


def _agent(folder: Path) -> Iterator[CheckupFinding]:
    """Yield what the agent uses and needs, what in its files keeps spans away, and who listens where exporters send by default."""
    from clawtrace.cli.output.connecting import names_of
    from clawtrace.cli.projects.agent_checkup import agent_findings, listening
    from clawtrace.runners.starting.used_frameworks import call_that_connects, used_frameworks

    if (used := used_frameworks((), folder)) is not None:
        needs = ", ".join(
            f"`{call}` ({' '.join(one.install) or one.name})" for one in used.found if (call := call_that_connects(one))
        )
        advice = f"Its spans come here with {needs}: `clawtrace run -- CMD` prints the lines." if needs else ""
        yield CheckupFinding("agent", "ok", f"{display(used.place)} names {names_of(used)}.", advice)
    for said, advice in agent_findings(folder):
        yield CheckupFinding("agent", "warning", said, advice)
    for port in listening():
        yield CheckupFinding(
            "agent",
            "ok",
            f"Port {port} is in use, maybe by a Collector: an exporter that does not read the environment sends there.",
            "A Collector can pass spans on to `clawtrace serve`; with a `tee` both get them.",
        )
