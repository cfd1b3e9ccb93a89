"""Each threat of docs/threat-model.md is tried against a running service."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import grpc
import pytest
from exported import export
from served import Served

from clawtrace.config.projects.project_file import load_project
from clawtrace.config.projects.session_settings import SessionSettings, serve_settings
from clawtrace.errors import QueryError, ReceiverError, UsageError
from clawtrace.receiver.limits import ReceiverSettings
from clawtrace.session.session import Session
from clawtrace.sidecar.client import Client
from clawtrace.sidecar.serving import Service

EMPTY = {"content-type": "application/json"}


@contextmanager
def serving(folder: Path, **receiver: Any) -> Iterator[Served]:
    settings = SessionSettings(receiver=ReceiverSettings(**receiver))
    with Session.open(folder / "spans.duckdb", settings=settings) as session:
        service = Service(session, token="control")
        http_address = service.start().http
        yield Served(http_address, "control", Client.at(http_address, "control"), service, session)


def status(served: Served, path: str, body: str = "{}", method: str = "POST", **headers: str) -> int:
    connection = http.client.HTTPConnection(urlsplit(served.http).netloc, timeout=30)
    try:
        connection.request(method, path, body.encode(), EMPTY | {k.replace("_", "-"): v for k, v in headers.items()})
        return connection.getresponse().status
    finally:
        connection.close()


class TestWhoMaySend:
    @pytest.mark.parametrize("host", ["0.0.0.0", "::"])
    def test_others_can_reach_it_only_when_that_is_protected_or_meant(self, tmp_path: Path, host: str) -> None:
        with pytest.raises(ReceiverError, match="unprotected"), serving(tmp_path, host=host):
            pass
        for protection in ({"insecure": True}, {"producers": (("ci", "t"),)}):
            with serving(tmp_path, host=host, **protection):
                pass

    def test_each_producer_has_its_token_and_loses_it_alone(self, tmp_path: Path) -> None:
        with serving(tmp_path, producers=(("a", "token-a"), ("b", "token-b"))) as served:
            before = [
                status(served, "/v1/traces", authorization=f"Bearer {t}") for t in ("token-a", "token-b", "no", "")
            ]
            served.session.admit({"b": "token-b"})
            after = [status(served, "/v1/traces", authorization=f"Bearer {t}") for t in ("token-a", "token-b")]
            served.session.admit({})
            none = status(served, "/v1/traces", authorization="Bearer token-b")
            without = status(served, "/v1/traces")

        assert (before, after, none, without) == ([200, 200, 401, 401], [401, 200], 401, 401)

    def test_a_producer_asks_nothing(self, tmp_path: Path) -> None:
        """What may send spans may not read, judge or announce."""
        with serving(tmp_path, producers=(("a", "token-a"),)) as served:
            for path in ("/clawtrace/v1/runs", "/clawtrace/v1/query", "/clawtrace/v1/evaluate"):
                assert status(served, path, authorization="Bearer token-a") == 401


class TestPagesInABrowser:
    @pytest.mark.parametrize("path", ["/v1/traces", "/clawtrace/v1/runs", "/clawtrace/v1/health"])
    def test_a_name_that_was_led_here(self, served: Served, path: str) -> None:
        """DNS rebinding: the page's own name is in `Host`, and its requests are of one origin for the browser."""
        for headers in (
            {"host": "evil.example.com:4318"},
            {"host": "evil.example.com", "origin": "http://evil.example.com"},
        ):
            assert status(served, path, authorization="Bearer control", **headers) == 403

    @pytest.mark.parametrize("origin", ["http://evil.example.com", "null", "http://localhost:3000"])
    def test_a_page_of_another_origin(self, served: Served, origin: str) -> None:
        assert status(served, "/v1/traces", origin=origin) == 403
        assert status(served, "/clawtrace/v1/runs", authorization="Bearer control", origin=origin) == 403

    @pytest.mark.parametrize(
        "host", ["127.0.0.1:4318", "[::1]:4318", "localhost", "clawtrace:4318", "host.docker.internal"]
    )
    def test_programs_name_it_as_they_reach_it(self, served: Served, host: str) -> None:
        assert status(served, "/v1/traces", host=host) == 200
        assert status(served, "/v1/traces", host=host, origin=f"http://{host}") == 200

    def test_a_public_name_that_is_its_own(self, tmp_path: Path) -> None:
        with serving(tmp_path, allowed_hosts=("traces.example.com",)) as served:
            assert status(served, "/v1/traces", host="traces.example.com:4318") == 200


class TestSql:
    @pytest.mark.full
    @pytest.mark.parametrize(
        "sql",
        [
            "SELECT * FROM read_csv('/etc/passwd')",
            "SELECT * FROM '/etc/passwd'",
            "SELECT * FROM glob('/*')",
            "COPY (SELECT 1) TO '/tmp/x'",
            "ATTACH '/tmp/x.duckdb'",
            "INSTALL httpfs",
            "PRAGMA enable_logging",
            "SELECT getenv('HOME')",
            "SELECT 1; DROP TABLE otel_traces",
            "SELECT * FROM enable_logging(storage='file', storage_path='/tmp/x')",
            "WITH x AS (SELECT 1) INSERT INTO otel_traces SELECT * FROM otel_traces",
        ],
    )
    def test_no_file_and_no_change(self, served: Served, sql: str) -> None:
        export(f"{served.http}/run/r", "search")
        held = Client.at(served.http, "control")
        with pytest.raises((QueryError, UsageError)):
            held.query(sql)
        with pytest.raises((QueryError, UsageError)):
            held.evaluate("assert:\n- tool_was_called: x\n", where=f"run_id IN ({sql})")
        written = json.dumps({"assert": [{"sql": {"select": sql, "rows": []}}]})
        try:
            code = held.evaluate(written)["exit_code"]
        except UsageError:
            code = 2

        assert code in (2, 4)
        assert served.client.inspect("r")["runs"][0]["spans"] == 2

    def test_what_takes_long_is_ended(self, served: Served, monkeypatch) -> None:
        monkeypatch.setattr("clawtrace.session.held_store.QUERY_SECONDS", 0.3)
        forever = "SELECT count(*) FROM range(10000000) a, range(10000000) b WHERE a.range = b.range + 1 OR a.range < 0"
        with pytest.raises(QueryError, match=r"longer than 0\.3 s"):
            served.client.query(forever)
        assert served.client.query("SELECT 1 AS n")["rows"] == [[1]]

    def test_what_gathers_much_is_refused(self, served: Served, monkeypatch) -> None:
        monkeypatch.setattr("clawtrace.store.questions.question_side.USER_MEMORY_BYTES", 32 << 20)
        with pytest.raises(QueryError, match="Out of Memory"):
            served.client.query("SELECT list(range) FROM range(50000000)")
        assert served.client.query("SELECT 1 AS n")["rows"] == [[1]]

    def test_many_rows_are_refused(self, served: Served) -> None:
        with pytest.raises(QueryError, match="more than 100000 rows"):
            served.client.query("SELECT * FROM range(200000)")

    def test_an_assertion_cannot_ask_for_more_time(self, served: Served) -> None:
        export(f"{served.http}/run/r", "search")
        slow = json.dumps({"assert": [{"sql": {"select": "SELECT 1 AS n", "rows": [], "time_limit_s": 600}}]})
        with pytest.raises(UsageError, match="time_limit_s"):
            served.client.evaluate(slow)


class TestTls:
    def test_the_client_checks_the_service(self, tmp_path, certificates, monkeypatch) -> None:
        network = {"tls_certificate": certificates / "server.pem", "tls_key": certificates / "server.key"}
        with serving(tmp_path, **network) as served:
            with pytest.raises(ReceiverError, match="certificate verify failed"):
                served.client.list_runs()
            monkeypatch.setenv("SSL_CERT_FILE", str(certificates / "ca.pem"))

            assert served.http.startswith("https://")
            assert served.client.list_runs() == []

    def test_without_a_certificate_nothing_comes_in(self, tmp_path, certificates, monkeypatch) -> None:
        """Mutual TLS, over HTTP and gRPC."""
        monkeypatch.setenv("SSL_CERT_FILE", str(certificates / "ca.pem"))
        network = {
            "tls_certificate": certificates / "server.pem",
            "tls_key": certificates / "server.key",
            "tls_client_ca": certificates / "ca.pem",
        }
        ca, key, own = ((certificates / name).read_bytes() for name in ("ca.pem", "client.key", "client.pem"))
        with serving(tmp_path, **network) as served:
            with pytest.raises(ReceiverError, match="does not answer"):
                served.client.list_runs()
            answers = []
            for credentials in (grpc.ssl_channel_credentials(ca), grpc.ssl_channel_credentials(ca, key, own)):
                with grpc.secure_channel(urlsplit(served.http).netloc, credentials) as channel:
                    check = channel.unary_unary("/grpc.health.v1.Health/Check")
                    try:
                        answers.append(check(b"", timeout=10))
                    except grpc.RpcError as error:
                        answers.append(error.code())
            monkeypatch.setenv("CLAWTRACE_SERVER_CERTIFICATE", str(certificates / "client-both.pem"))

            assert answers == [grpc.StatusCode.UNAVAILABLE, b"\x08\x01"]
            assert served.client.list_runs() == []

    def test_a_connection_without_tls(self, tmp_path, certificates) -> None:
        network = {"tls_certificate": certificates / "server.pem", "tls_key": certificates / "server.key"}
        with serving(tmp_path, **network) as served, pytest.raises((OSError, http.client.HTTPException)):
            status(served, "/v1/traces")


@pytest.mark.full
def test_a_token_is_taken_away_while_it_runs(tmp_path: Path) -> None:
    """SIGHUP: clawtrace.yaml is read again; one that is wrong changes nothing."""
    project = tmp_path / "clawtrace.yaml"
    project.write_text("serve: {producers: {a: token-a, b: token-b}}\n")
    program = Path(sys.executable).parent / "clawtrace"
    ready = tmp_path / "ready.json"
    process = subprocess.Popen(
        [program, "serve", "--grpc-port", "0", "--http-port", "0", "--ready-file", ready],
        cwd=tmp_path, stderr=subprocess.PIPE, text=True, env={**os.environ, "CLAWTRACE_SERVER_TOKEN": "control"},
    )  # fmt: skip
    try:
        assert process.stderr is not None
        process.stderr.readline()
        http_address = json.loads(ready.read_text())["http"]
        served = Served(http_address, "control", Client.at(http_address, "control"), None, None)  # type: ignore[arg-type]
        sends: Callable[[str], int] = lambda token: status(served, "/v1/traces", authorization=f"Bearer {token}")  # noqa: E731
        begun = served.client.begin_run(run_id="r")["environment"]
        before = sends("token-a")
        written = []
        for text in ("serve: {producers: [", "serve: {producers: {b: token-b}}\n"):
            project.write_text(text)
            process.send_signal(signal.SIGHUP)
            written.append(process.stderr.readline())
            while "taken over" not in written[-1]:
                written.append(process.stderr.readline())
            if text.endswith("["):
                assert sends("token-a") == 200
                process.stderr.readline()

        assert (before, sends("token-a"), sends("token-b")) == (200, 401, 200)
        assert written[-1] == "clawtrace.yaml is taken over\n"
        assert "x-clawtrace-token" in begun["OTEL_EXPORTER_OTLP_HEADERS"]
    finally:
        process.terminate()
        process.communicate(timeout=30)


def test_the_project_says_how_the_ports_are_protected(tmp_path: Path) -> None:
    """Paths are relative to clawtrace.yaml."""
    tls = "tls: {certificate: c.pem, key: k.pem, client_ca: ca.pem}"
    (tmp_path / "clawtrace.yaml").write_text(
        f"serve: {{{tls}, allowed_hosts: [a.example.com], producers: {{ci: t}}}}\n"
    )
    found = serve_settings(
        load_project(tmp_path, {}), ReceiverSettings(), insecure=False, host="127.0.0.1", grpc_port=1, http_port=2
    )

    assert (found.grpc_port, found.http_port, found.producers) == (1, 2, (("ci", "t"),))
    assert (found.tls_certificate, found.tls_key) == (tmp_path / "c.pem", tmp_path / "k.pem")
    assert (found.tls_client_ca, found.allowed_hosts) == (tmp_path / "ca.pem", ("a.example.com",))
    assert found.token  # agents whose environment comes from here need one where producers do
