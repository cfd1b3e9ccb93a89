"""Probes of the world, each asked of a real folder (spec: assertions.md §6, §7)."""

from __future__ import annotations

import http.server
import threading
import time
import tracemalloc
from pathlib import Path

import pytest

from clawtrace.assertions.probe import Probe
from clawtrace.assertions.probing.http import MAX_BODY
from clawtrace.assertions.registry import InvalidAssertionError, all_types, parse_assertion
from clawtrace.assertions.world import Gateway, World
from clawtrace.errors import ClawtraceError
from clawtrace.support.yaml_reading import read_yaml

ROOT = Path(__file__).parents[2]

CASES = {
    path.stem: read_yaml(path.read_text(encoding="utf-8"))
    for path in sorted((Path(__file__).parent / "probe_cases").glob("*.yaml"))
}
"""By probe: its cases; or `elsewhere`, the file of tests of one that needs more than a folder."""


def test_every_probe_has_cases_of_each_answer():
    """No probe is without a case that holds and one that does not; what needs a workspace also says when it has none."""
    assert set(CASES) == {name for name, cls in all_types().items() if issubclass(cls, Probe)}
    for name, cases in CASES.items():
        if "elsewhere" in cases:
            assert f'"type": "{name}"' in (ROOT / cases["elsewhere"]).read_text(encoding="utf-8"), name
        else:
            assert {case.get("holds") for case in cases} >= {True, False}, name


@pytest.mark.parametrize(
    ("name", "case"),
    [
        pytest.param(name, case, id=f"{name}: {case['case']}")
        for name, cases in CASES.items()
        if "elsewhere" not in cases
        for case in cases
    ],
)
def test_each_case_is_answered_as_written(name, case, tmp_path):
    """What a probe finds, says and does not know is what the case says."""
    probe = parse_assertion({"type": name} | case["assert"])
    world = build(case["world"], tmp_path)
    if "error" in case:
        with pytest.raises(ClawtraceError, match=case["error"]):
            probe.probe(world)
        return
    outcome = probe.found("r1", probe.probe(world))

    assert outcome.holds is case["holds"], outcome
    assert case.get("says", "") in probe.explain(outcome)
    assert outcome.missing == case.get("missing", outcome.missing)
    assert probe.actual(outcome) == case.get("actual", probe.actual(outcome))
    assert probe.expectation() is not None


def build(given, root):
    """Return the world that a case describes, its files written."""
    for folder, key in (("workspace", "files"), ("case", "case_files")):
        (root / folder).mkdir()
        for path, text in given.get(key, {}).items():
            (root / folder / path).parent.mkdir(parents=True, exist_ok=True)
            (root / folder / path).write_text(text, encoding="utf-8")
    for path, hexadecimal in given.get("bytes", {}).items():
        (root / "workspace" / path).write_bytes(bytes.fromhex(hexadecimal))
    for path, levels in given.get("deep", {}).items():
        (root / "workspace" / path).write_text("[" * levels + "]" * levels)
    for path, target in given.get("links", {}).items():
        (root / "workspace" / path).symlink_to(target)
    return World(
        "r1",
        workspace=root / "workspace" if given.get("workspace", True) else None,
        case_dir=root / "case",
        started_at=given.get("started_at", 0.0),
        changes=given.get("changes", {}),
        env=given.get("env", {}),
    )


def test_a_workspace_that_the_agent_removed_is_named_so(tmp_path):
    """A command of a check has nowhere to run then."""
    finding = parse_assertion({"type": "verify", "run": "true"}).probe(World("r1", workspace=tmp_path / "gone"))

    assert (finding.holds, finding.sentence) == (False, "the run's workspace does not exist.")


class TestWaiting:
    def test_a_file_that_comes_late_is_waited_for(self, tmp_path):
        """The check ends when the file is there, long before its time limit."""
        probe = parse_assertion({"type": "artifact_contains", "path": "a/late.md", "sections": ["x"], "timeout": 60})
        world = World("r1", workspace=tmp_path, started_at=0.0)

        def write():
            (tmp_path / "a").mkdir()
            (tmp_path / "a/late.md").write_text("# y\n")
            (tmp_path / "a/late.md").write_text("# x\n")

        timer = threading.Timer(0.3, write)
        timer.start()
        began = time.monotonic()
        assert probe.probe(world).holds
        assert time.monotonic() - began < 30

    def test_a_file_that_never_comes_fails_after_the_limit(self, tmp_path):
        """The sentence says how long the check waited."""
        probe = parse_assertion({"type": "artifact_exists", "path": "late.md", "timeout": 0.3})

        finding = probe.probe(World("r1", workspace=tmp_path, started_at=0.0))
        assert finding.holds is False
        assert finding.sentence == "`late.md` does not exist (waited 0.3 s)."


@pytest.fixture
def server():
    """A gateway that is healthy for requests with its token, and echoes the method elsewhere."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            healthy = self.path == "/health" and self.headers.get("Authorization") == "Bearer t0ken"
            self.send_response(200 if healthy else 302 if self.path == "/moved" else 404)
            self.send_header("Location", "/health")
            self.send_header(
                "Content-Type", "text/plain; charset=iso-8859-1" if self.path == "/latin" else "text/plain"
            )
            self.end_headers()
            body = {"/latin": "Grüße".encode("latin-1"), "/long": b"x" * MAX_BODY + b"end"}.get(self.path)
            self.wfile.write(body or f"{self.command} {self.headers.get('X-Test', '')}".encode())

        do_POST = do_GET  # noqa: N815 (the name that the server calls)

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as found:
        threading.Thread(target=found.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{found.server_address[1]}"
        found.shutdown()


class TestGateway:
    def test_healthy_with_its_token(self, server):
        """200 on /health with the project's token is healthy, anything else is not."""
        probe = parse_assertion({"type": "gateway_healthy"})

        assert probe.probe(World("r1", gateway=Gateway(server, "t0ken"))).holds is True
        assert probe.probe(World("r1", gateway=Gateway(server, None))).holds is False

    def test_a_gateway_that_is_down_is_not_healthy(self):
        """The sentence says where it was looked for."""
        finding = parse_assertion({"type": "gateway_healthy"}).probe(World("r1", gateway=Gateway("http://127.0.0.1:1")))

        assert finding.holds is False
        assert "no answer from http://127.0.0.1:1/health" in finding.sentence

    @pytest.mark.parametrize(
        ("fields", "holds"),
        [
            ({"expected_status": 404}, True),
            ({"expected_status": 200}, False),
            ({"expected_status": 302, "path": "/moved"}, True),
            (
                {
                    "expected_status": 404,
                    "expected_body": "POST hello",
                    "method": "POST",
                    "headers": {"X-Test": "hello"},
                },
                True,
            ),
            ({"expected_status": 404, "expected_body": "PUT"}, False),
            ({"expected_status": 404, "expected_body": "Grüße", "path": "/latin"}, True),
            ({"expected_status": 404, "expected_body": "end", "path": "/long"}, None),
        ],
    )
    def test_an_endpoint_is_asked(self, server, fields, holds):
        """Status, body, method and headers; redirects are not followed."""
        path = fields.pop("path", "/x")
        probe = parse_assertion({"type": "gateway_response", "endpoint": server + path} | fields)

        assert probe.probe(World("r1")).holds is holds

    def test_an_endpoint_that_refuses_is_an_error(self):
        """Nothing was judged: neither pass nor fail."""
        probe = parse_assertion({"type": "gateway_response", "endpoint": "http://127.0.0.1:1/", "expected_status": 200})

        with pytest.raises(ClawtraceError, match=r"no answer from http://127\.0\.0\.1:1/"):
            probe.probe(World("r1"))


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"type": "artifact_contains", "path": "x"}, "needs at least one of `sections` or `fields`"),
        ({"type": "artifact_absent_words", "path": "x"}, "needs at least one of `words` or `source`"),
        ({"type": "artifact_absent_words", "path": "x", "source": "y"}, "`key` is missing"),
        ({"type": "artifact_exists", "path": "x", "updated_after": "soon"}, "must be an ISO 8601 time"),
        ({"type": "artifact_exists", "path": ""}, "must be the path of a file"),
        ({"type": "state_file"}, "exactly one of `path` and `state_path`; neither"),
        ({"type": "state_file", "path": "a", "state_path": "b"}, "both are given"),
        ({"type": "openclaw_workspace_file_present", "relative_path": "../x"}, "inside of the workspace"),
        (
            {"type": "openclaw_workspace_file_present", "relative_path": "x", "contains": "a", "contains_any": ["b"]},
            "exclude each other",
        ),
        ({"type": "log_entry", "path": "x", "pattern": "("}, "invalid regular expression"),
        ({"type": "gateway_response", "endpoint": "localhost", "expected_status": 200}, "must be a full URL"),
        ({"type": "env_present", "vars": []}, "needs at least 1 entry"),
        ({"type": "file_absent", "path": "tmp/*.bak"}, "is taken literally"),
        ({"type": "file_absent", "path": "~/.cache/x"}, "is taken literally"),
        (
            {
                "type": "gateway_response",
                "endpoint": "http://x",
                "expected_status": 200,
                "method": "HEAD",
                "expected_body": "a",
            },
            "a response to HEAD has no body",
        ),
    ],
)
def test_what_cannot_be_meant_is_refused_when_loaded(fields, says):
    """Nothing is found out halfway through a paid run."""
    with pytest.raises(InvalidAssertionError, match=says):
        parse_assertion(fields)


class TestLongLines:
    def test_a_line_is_never_held_whole(self, tmp_path):
        """A log of one line of 64 MB costs a check a small part of that."""
        (tmp_path / "run.log").write_bytes(b"x" * 64_000_000 + b"\nend\n")
        probe = parse_assertion({"type": "log_entry", "path": "run.log", "pattern": "^end$"})

        tracemalloc.start()
        try:
            finding = probe.probe(World("r1", workspace=tmp_path))
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert (finding.holds, finding.actual["line"]) == (True, 2)
        assert peak < 16_000_000

    def test_what_is_behind_the_end_of_the_look_leaves_absence_open(self, tmp_path):
        """The pattern is looked for in the first million characters: nothing follows for the rest of that line."""
        (tmp_path / "run.log").write_text("x" * 1_000_000 + "approved\nnext\n")
        (tmp_path / "whole.log").write_text("x" * 1_000_000 + "\nnext\n")
        longer, whole = (
            parse_assertion({"type": "log_entry", "path": path, "pattern": "approved", "absent": True}).probe(
                World("r1", workspace=tmp_path)
            )
            for path in ("run.log", "whole.log")
        )

        assert longer.holds is None
        assert "line 1 is longer than the 1000000 characters that are searched" in longer.sentence
        assert whole.holds is True


def test_a_verdict_shows_what_was_asked_of_a_command():
    """Only what the assertion says: the command, and what its output must be."""
    asked = {"run": "cat report.md", "output_contains": "done"}

    assert parse_assertion({"type": "verify"} | asked).expectation() == asked
