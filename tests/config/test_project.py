"""`clawtrace.yaml` and the environment variables before it (spec: config.md §1)."""

from __future__ import annotations

import pytest

from clawtrace.config.projects.project_file import environment_names
from clawtrace.errors import ConfigError, UsageError

FULL = """\
receiver:
  host: 127.0.0.1
  grpc_port: 14317
  http_port: 14318
  tee: {endpoint: "https://otlp.example.com/base", headers: {x-api-key: "1"}}
  limits: {max_request_bytes: 1048576, queue_bytes: 2097152, body_timeout_seconds: 5}
store: {url: data/spans.duckdb}
model_pricing:
  mine: {input_per_1m: 1, output_per_1m: 2}
settle_ms: 100
trace_timeout_ms: 900
trace: {parent_not_exported: ["infra.*"]}
telemetry_env: {langsmith: off, OTEL_METRICS_EXPORTER: otlp}
redaction: {environment: false, kinds_off: [jwt], patterns: {employee: "E[0-9]{5}"}}
run_key: session.id
outputs: results
"""


def problems(files, env=None) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        files.project(env)
    return [str(problem) for problem in caught.value.problems]


def test_without_a_file_everything_has_its_default(files):
    """A project file is optional."""
    project = files.project()

    assert (project.path, project.root, project.pricing, project.store) == (None, files.root, None, None)
    assert (project.config.settle_ms, project.config.trace_timeout_ms) == (None, 60_000)
    assert project.outputs == files.root / "outputs"


@pytest.mark.parametrize(
    ("url", "store", "clickhouse"),
    [
        ("spans.duckdb", "spans.duckdb", None),
        ("duckdb://spans.duckdb", "spans.duckdb", None),
        ("clickhouse://reader@h/otel", None, "clickhouse://reader@h/otel"),
    ],
)
def test_the_store_is_a_file_or_a_clickhouse(files, url, store, clickhouse):
    """The one setting says which of the two it is."""
    files.write("clawtrace.yaml", f"store: {{url: '{url}'}}\n")
    project = files.project()

    assert (project.store, project.clickhouse) == (store and files.root / store, clickhouse)


def test_the_url_of_a_clickhouse_is_read_with_the_file(files):
    """What is wrong with it has a place."""
    files.write("clawtrace.yaml", "store:\n  url: clickhouse://h/db?tracess=x\n")

    (problem,) = problems(files)
    assert problem.startswith("clawtrace.yaml:2:8: `store.url` the URL of the store has an unknown option 'tracess'")


def test_every_key(files):
    """Each key of the file arrives, paths are relative to the file."""
    files.write("clawtrace.yaml", FULL)
    project = files.project()
    config = project.config

    assert (config.receiver.grpc_port, config.receiver.http_port) == (14317, 14318)
    assert config.receiver.tee.endpoint == "https://otlp.example.com/base"
    assert config.receiver.tee.headers == {"x-api-key": "1"}
    assert config.receiver.limits.queue_bytes == 2_097_152
    assert project.store == files.root / "data/spans.duckdb"
    assert project.pricing.price_call(None, "mine", 1_000_000, 0).usd == 1.0
    assert (config.settle_ms, config.trace_timeout_ms, config.run_key) == (100, 900, "session.id")
    assert config.trace.parent_not_exported == ["infra.*"]
    assert config.telemetry_env == {"langsmith": False, "OTEL_METRICS_EXPORTER": "otlp"}
    assert (config.redaction.environment, config.redaction.kinds_off) == (False, ["jwt"])
    assert project.outputs == files.root / "results"


@pytest.mark.parametrize(
    ("tee", "sentence"),
    [
        (
            "{endpoint: localhost:4318}",
            "must be the http or https address of an OTLP/HTTP endpoint, found 'localhost:4318'",
        ),
        ("{endpoint: 'http://h:4318/v1/traces'}", "give the address without `/v1/traces`"),
        ("{endpoint: 'http://me:secret@h'}", "give the endpoint's key as a header"),
        ("{endpoint: 'http://h/?a=b'}", "the endpoint's address must not contain `?` or `#`"),
        ("{headers: {'a b': x}}", "'a b' is not the name of a header"),
        ('{headers: {a: "x\\ny"}}', "the value of the header `a` contains characters that HTTP does not allow"),
    ],
)
def test_a_tee_that_cannot_be_meant(files, tee, sentence):
    """An address without a scheme or with a signal's path, and headers that HTTP cannot carry, are reported at once."""
    files.write("clawtrace.yaml", f"receiver: {{tee: {tee}}}\n")

    (problem,) = problems(files)
    assert sentence in problem


def test_a_queue_holds_a_request(files):
    """Limits that contradict each other are reported before anything listens."""
    files.write("clawtrace.yaml", "receiver: {limits: {queue_bytes: 2048}}\n")

    assert problems(files) == [
        "clawtrace.yaml:1:20: `receiver.limits` `queue_bytes` (2048) must be at least `max_request_bytes` (67108864)"
    ]


def test_the_tees_key_comes_from_the_environment(files):
    """A key need not be in the file."""
    config = files.project({"CLAWTRACE_RECEIVER_TEE_HEADERS": "{authorization: Bearer s3cret}"}).config

    assert config.receiver.tee.headers == {"authorization": "Bearer s3cret"}


def test_problems_have_their_places(files):
    """Everything wrong with the file is reported at once; what is not supported yet says so."""
    files.write(
        "clawtrace.yaml",
        """\
        receiver: {host: 0.0.0.0, auth_token: "x y", grpc_port: 99999}
        store: {url: "postgres://h/db"}
        trace_timeout: 3
        gateway: {url: "localhost:18789"}
        redaction: {patterns: {x: "("}}
        """,
    )

    assert problems(files) == [
        "clawtrace.yaml:1:18: `receiver.host` only loopback addresses are supported yet (127.0.0.1, ::1, localhost), found "
        "'0.0.0.0'",
        "clawtrace.yaml:1:39: `receiver.auth_token` must be printable ASCII without spaces: it is sent as a header",
        "clawtrace.yaml:1:57: `receiver.grpc_port` must be less than or equal to 65535, found 99999",
        "clawtrace.yaml:2:14: `store.url` is a path, duckdb:///PATH or clickhouse://USER@HOST:8123/DATABASE, found "
        "'postgres://h/db'",
        "clawtrace.yaml:3:1: `trace_timeout` is not a known key; known are `schema_version`, `receiver`, `serve`, `store`, "
        "`model_pricing`, `settle_ms`, `trace_timeout_ms`, `trace`, `telemetry_env`, `gateway`, `redaction`, `run_key`, "
        "`dialects`, `log_adapters`, `outputs`. Did you mean `trace_timeout_ms`?",
        "clawtrace.yaml:4:16: `gateway.url` must be the address of an HTTP server (`http://…`), found 'localhost:18789'",
        "clawtrace.yaml:5:23: `redaction.patterns` the pattern `x` is not a valid regular expression: missing ) at position 1",
    ]


def test_a_switch_that_switches_nothing_is_an_error(files):
    """A misspelt group or variable under `telemetry_env` would leave it on unnoticed."""
    files.write("clawtrace.yaml", "telemetry_env:\n  langsmit: off\n")

    assert problems(files) == [
        "clawtrace.yaml:2:3: `telemetry_env.langsmit` is neither a telemetry variable nor a group of them; `clawtrace env` "
        "lists both. Did you mean `langsmith`?"
    ]


def test_folders_of_dialects_exist(files):
    """A folder that is not there is named with its place; one that is there is resolved."""
    files.write("clawtrace.yaml", "dialects: [mine, absent]\n")
    (files.root / "mine").mkdir()

    assert problems(files) == ["clawtrace.yaml:1:18: `dialects.1` the folder 'absent' does not exist"]
    files.write("clawtrace.yaml", "dialects: [mine]\n")
    assert files.project().dialect_folders == (files.root / "mine",)


def test_variables_go_before_the_file(files):
    """`CLAWTRACE_<SECTION>_<FIELD>` overrides a field, also where two names look alike."""
    files.write("clawtrace.yaml", FULL)
    env = {
        "CLAWTRACE_RECEIVER_GRPC_PORT": "0",
        "CLAWTRACE_TRACE_TIMEOUT_MS": "77",
        "CLAWTRACE_TRACE_PARENT_NOT_EXPORTED": "[a, b]",
        "CLAWTRACE_OUTPUTS": "elsewhere",
        "CLAWTRACE_RUN_ID": "not ours",
    }
    config = files.project(env).config

    assert (config.receiver.grpc_port, config.receiver.http_port) == (0, 14318)
    assert (config.trace_timeout_ms, config.trace.parent_not_exported) == (77, ["a", "b"])
    assert config.outputs == "elsewhere"


def test_a_variables_problem_names_the_variable(files):
    """A bad value or a misspelt name is reported as the variable's, not as the file's."""
    assert problems(files, {"CLAWTRACE_RECEIVER_HTTP_PORT": "many", "CLAWTRACE_RECEIVER_GRPC": "1"}) == [
        "environment variable CLAWTRACE_RECEIVER_GRPC: does not match any setting of clawtrace.yaml. Did you mean "
        "`CLAWTRACE_RECEIVER_GRPC_PORT`?",
        "environment variable CLAWTRACE_RECEIVER_HTTP_PORT:1:1: must be a whole number, found 'many'",
    ]


def test_every_field_has_a_variable():
    """No field of the file is without its variable, and no two share one."""
    names = environment_names()

    assert names["CLAWTRACE_STORE_URL"] == ("store", "url")
    assert len(set(names.values())) == len(names)


def test_both_suffixes_are_an_error(files):
    """Two project files cannot both hold."""
    files.write("clawtrace.yaml", "{}\n")
    files.write("clawtrace.yml", "{}\n")

    with pytest.raises(UsageError, match=r"both clawtrace\.yaml and clawtrace\.yml exist; remove one of them"):
        files.project()
