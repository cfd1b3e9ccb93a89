"""`clawtrace.yaml`: what holds for a whole project (spec: config.md §1)."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import starmap
from typing import Annotated, Any

from pydantic import AfterValidator, Field, field_validator, model_validator

from clawtrace.config.base import ConfigModel, SchemaVersion, Slug
from clawtrace.errors import UsageError
from clawtrace.receiver.limits import endpoint_problem, header_problem, is_loopback

__all__ = ["OtlpSection", "ProjectConfig", "RedactionSection"]


def _checked(problem: Callable[[Any], str]) -> AfterValidator:
    """Return the validator of a value of which `problem` says what is wrong; empty where nothing is."""

    def check(value: Any) -> Any:
        if why := problem(value):
            raise ValueError(why)
        return value

    return AfterValidator(check)


def _first_problem(headers: dict[str, str]) -> str:
    return next(filter(None, starmap(header_problem, headers.items())), "")


class OtlpSection(ConfigModel):
    """An OTLP/HTTP endpoint."""

    endpoint: Annotated[str, _checked(endpoint_problem)] | None = None
    """Base URL, such as `http://localhost:4318`; null sends nothing."""
    headers: Annotated[dict[str, str], _checked(_first_problem)] = Field(default_factory=dict)
    """Headers of every request, such as the endpoint's key."""


class TeeSection(OtlpSection):
    """Where everything that is received is also forwarded, as it was received."""


class MetricsSection(OtlpSection):
    """Where the service's own metrics are sent; `GET /metrics` has them, too."""

    interval_seconds: float = Field(default=60.0, ge=1, le=3600, allow_inf_nan=False)
    """Time between two exports, in seconds."""


class LimitsSection(ConfigModel):
    """How much the receiver takes and holds."""

    max_request_bytes: int = Field(default=67_108_864, ge=1024)
    """Largest request after decompression; a larger one is refused for good."""
    queue_bytes: int = Field(default=268_435_456, ge=1024)
    """Most bytes that wait to be stored; beyond that, exporters are asked to try again."""
    body_timeout_seconds: float = Field(default=30.0, gt=0, allow_inf_nan=False)
    """How long an HTTP body may stall before its request is given up, in seconds."""
    span_window: int = Field(default=262_144, ge=1)
    """Span ids that are remembered, so that a span that is sent twice is dropped on sight."""
    trace_window: int = Field(default=250_000, ge=1)
    """Traces whose run is remembered, in addition to those that were announced."""

    @model_validator(mode="after")
    def _one_fits(self) -> LimitsSection:
        if self.queue_bytes < self.max_request_bytes:
            raise ValueError(
                f"`queue_bytes` ({self.queue_bytes}) must be at least `max_request_bytes` ({self.max_request_bytes})"
            )
        return self


def _no_header_value(token: str) -> str:
    sendable = re.fullmatch("[!-~]+", token)
    return "" if sendable else "must be printable ASCII without spaces: it is sent as a header"


def _not_loopback(host: str) -> str:
    only = "only loopback addresses are supported yet (127.0.0.1, ::1, localhost)"
    return "" if is_loopback(host) else f"{only}, found {host!r}"


Token = Annotated[str, _checked(_no_header_value)]


class ReceiverSection(ConfigModel):
    """Where the embedded receiver listens."""

    host: Annotated[str, _checked(_not_loopback)] = "127.0.0.1"
    """Loopback address to listen on."""
    grpc_port: int = Field(default=0, ge=0, le=65535)
    """Port of OTLP/gRPC; 0 takes a free one."""
    http_port: int = Field(default=0, ge=0, le=65535)
    """Port of OTLP/HTTP; 0 takes a free one."""
    auth_token: Token | None = None
    """What every export request must carry; agents that are started here get it. Without it any program of this
    machine may send."""
    limits: LimitsSection = LimitsSection.model_construct()
    """How much the receiver takes and holds."""
    tee: TeeSection = TeeSection.model_construct()
    """Where everything that is received is also forwarded."""


class TlsSection(ConfigModel):
    """Files of TLS, for both ports; paths are relative to `clawtrace.yaml`."""

    certificate: str
    """PEM file with the certificate chain."""
    key: str
    """PEM file with the private key."""
    client_ca: str | None = None
    """PEM file with the authorities of client certificates; with it a connection without one is refused (mutual TLS)."""


class KeepSection(ConfigModel):
    """How much `clawtrace serve` keeps: beyond it, the oldest runs that are over are deleted. Read again on SIGHUP."""

    hours: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """Since anything came of a run; null keeps all."""
    runs: int | None = Field(default=None, ge=1)
    """Most runs; null keeps all."""
    size_bytes: int | None = Field(default=None, ge=1 << 20)
    """Size of what the store holds, in bytes; null keeps all."""


class ServeSection(ConfigModel):
    """What holds for `clawtrace serve` alone."""

    producers: dict[Slug, Token] = Field(default_factory=dict)
    """Token of each producer, by a name; with any of them, every export request must carry one. Read again on SIGHUP."""
    tls: TlsSection | None = None
    """Files of TLS; null serves without."""
    allowed_hosts: list[str] = Field(default_factory=list)
    """Public DNS names by which requests without TLS may name the service."""
    keep: KeepSection = KeepSection.model_construct()
    """How much it keeps."""
    verdicts: OtlpSection = OtlpSection.model_construct()
    """Where each verdict is sent, as an event `gen_ai.evaluation.result` on the trace that was judged."""
    metrics: MetricsSection = MetricsSection.model_construct()
    """Where the service's own metrics are sent."""


class StoreSection(ConfigModel):
    """Where commands that judge or read what was stored look for spans when no flag says so."""

    url: str | None = None
    """Path of a DuckDB file, relative to `clawtrace.yaml`, or `clickhouse://USER@HOST:8123/DATABASE`."""

    @field_validator("url")
    @classmethod
    def _known(cls, url: str | None) -> str | None:
        if url is None or "://" not in url or url.startswith("duckdb://"):
            return url
        from clawtrace.store.clickhouse.address import SCHEME, ClickHouseAddress

        if not url.startswith(SCHEME):
            raise ValueError(f"is a path, duckdb:///PATH or clickhouse://USER@HOST:8123/DATABASE, found {url!r}")
        try:
            ClickHouseAddress.parse(url, {})
        except UsageError as error:
            raise ValueError(str(error)) from error
        return url


class TraceSection(ConfigModel):
    """What is known of this project's traces."""

    parent_not_exported: list[str] = Field(default_factory=list)
    """Globs over names of spans whose parent is never exported by design; every verdict then says so."""


class RedactionSection(ConfigModel):
    """How secrets are taken out of what is received."""

    enabled: bool = True
    """False stores what was sent as it was sent."""
    environment: bool = True
    """Whether the values of secret-looking variables of clawtrace's own environment are secrets."""
    kinds_off: list[str] = Field(default_factory=list)
    """Built-in kinds of secrets that are not redacted."""
    patterns: dict[str, str] = Field(default_factory=dict)
    """Further secrets: a kind (shown in the mark) to a regular expression."""

    @field_validator("kinds_off")
    @classmethod
    def _kinds(cls, kinds: list[str]) -> list[str]:
        from clawtrace.receiver.redaction.secret_kinds import SECRET_KINDS

        known = {kind.name for kind in SECRET_KINDS}
        for kind in kinds:
            if kind not in known:
                raise ValueError(f"{kind!r} is not a built-in kind of secret; known are {', '.join(sorted(known))}")
        return kinds

    @field_validator("patterns")
    @classmethod
    def _compiles(cls, patterns: dict[str, str]) -> dict[str, str]:
        for kind, pattern in patterns.items():
            if why := _why_no_expression(pattern):
                raise ValueError(f"the pattern `{kind}` {why}")
        return patterns


class GatewaySection(ConfigModel):
    """The agent gateway that `gateway_healthy` asks."""

    url: str = "http://127.0.0.1:18789"
    """Base URL; the health page is `/health` below it."""
    token: str | None = None
    """Bearer token of its requests."""

    @field_validator("url")
    @classmethod
    def _address(cls, url: str) -> str:
        if not url.startswith(("http://", "https://")):
            raise ValueError(f"must be the address of an HTTP server (`http://…`), found {url!r}")
        return url.rstrip("/")


def _pattern_problem(pattern: str) -> str:
    from clawtrace.logs.configured import pattern_problem

    return pattern_problem(pattern)


def _why_no_expression(pattern: str) -> str:
    import regex

    try:
        regex.compile(pattern)
    except regex.error as error:
        return f"is not a valid regular expression: {error}"
    return ""


def _expression_problem(pattern: str) -> str:
    why = _why_no_expression(pattern)
    return why and f"{pattern!r} {why}"


class LogAdapterSection(ConfigModel):
    """A log format of the project: regular expressions whose named groups say what a line records."""

    name: Slug
    """What messages call it."""
    patterns: list[Annotated[str, _checked(_pattern_problem)]] = Field(min_length=1)
    """Regular expressions; the first one that finds something in a line reads it. Their named groups say what is what."""
    recognise: Annotated[str, _checked(_expression_problem)] | None = None
    """Finds something in one of the first lines of such a log; by default one of `patterns` does."""


class ProjectConfig(ConfigModel):
    """The file `clawtrace.yaml`."""

    schema_version: SchemaVersion = 1
    """Version of this file's format."""
    receiver: ReceiverSection = ReceiverSection.model_construct()
    """Where the embedded receiver listens."""
    serve: ServeSection = ServeSection.model_construct()
    """What holds for `clawtrace serve` alone."""
    store: StoreSection = StoreSection.model_construct()
    """Where stored spans are looked for."""
    model_pricing: dict[str, Any] | None = None
    """Prices of models: a bare model name, `provider/name` or `glob:…` to `input_per_1m`, `output_per_1m`, …."""
    settle_ms: int | None = Field(default=None, ge=0, le=600_000)
    """Silence that closes a run whose end no exit shows, in milliseconds: by default 2000, and 12000 or more (as the
    instrumentation asks) for an agent that already runs."""
    trace_timeout_ms: int = Field(default=60_000, ge=1, le=86_400_000)
    """The longest wait for a run's spans after its command ended, in milliseconds."""
    trace: TraceSection = TraceSection.model_construct()
    """What is known of this project's traces."""
    telemetry_env: dict[str, bool | str] = Field(default_factory=dict)
    """Telemetry variables, or groups of them, switched `off` or `on`, or given another value; `clawtrace env` lists them."""
    gateway: GatewaySection = GatewaySection.model_construct()
    """The agent gateway that `gateway_healthy` asks."""
    redaction: RedactionSection = RedactionSection.model_construct()
    """How secrets are taken out of what is received."""
    run_key: str | None = Field(default=None, min_length=1)
    """The attribute that carries the run id in data which clawtrace did not start."""
    dialects: list[str] = Field(default_factory=list)
    """Folders with dialect files of the project's own, relative to this file."""
    log_adapters: list[LogAdapterSection] = Field(default_factory=list)
    """Forms of logs of the project's own, tried before the built-in ones."""
    outputs: str = Field(default="outputs", min_length=1)
    """Folder of campaign results, relative to this file."""
