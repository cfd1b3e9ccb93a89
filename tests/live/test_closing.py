"""Closing, live: how agents end, and what may be said of their runs then (spec: span-model.md §3).

Each test states the verdict, what closed the run, why it is not complete, and how long the close waited after the last
process had ended. `settle_ms` is 2 s here, as by default: what closes in less than a second did not wait for it.
"""

from __future__ import annotations

import json
import sys

import pytest
from live_suite import NOT_DELETED, Suite, only, plain_span

from clawtrace.model.verdict import Status

pytestmark = pytest.mark.full

linux_only = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="orphans can be adopted on Linux only")
AT_ONCE = 1.0
"""Seconds; half of `settle_ms`."""
PROTOCOLS = pytest.mark.parametrize("protocol", ["grpc", "http/protobuf"])


def agent_span(number: int = 1, **more: str) -> dict:
    return plain_span(
        number, "invoke_agent a", **{"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "a"}, **more
    )


def tool_span(number: int, tool: str, parent: int = 1) -> dict:
    attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": tool}
    return plain_span(number, f"execute_tool {tool}", parent, **attributes)


def closed_at_once(suite: Suite, found) -> bool:
    """Whether the exit of the processes closed the run, without waiting for anything to settle."""
    return found.closed_by == "exit" and suite.waited["one"] < AT_ONCE


class TestWholeTraces:
    """Nothing was lost: the answer is yes or no."""

    @PROTOCOLS
    @pytest.mark.smoke
    def test_flush_at_exit(self, suite, protocol):
        """An agent that shuts its exporter down is judged at once, with everything."""
        found = suite.judge("$AGENT flush read write", only("read", "write"), f"  telemetry: {protocol}\n")

        assert (found.status, found.complete, found.incomplete_because) == (Status.PASS, True, ())
        assert closed_at_once(suite, found)

    @PROTOCOLS
    @pytest.mark.smoke
    def test_children_before_parents(self, suite, protocol):
        """A simple processor exports each child before its parent; nothing is judged in between."""
        found = suite.judge("$AGENT children_first read write", only("read", "write"), f"  telemetry: {protocol}\n")

        assert (found.status, found.complete, found.spans) == (Status.PASS, True, 3)
        assert closed_at_once(suite, found)

    def test_two_root_traces_300_ms_apart_the_second_with_a_forbidden_tool(self, suite):
        """A pause between two traces is no end of the run."""
        found = suite.judge("$AGENT two_roots read delete_all")

        assert (found.status, found.complete, found.traces) == (Status.FAIL, True, 2)
        assert closed_at_once(suite, found)

    def test_a_forbidden_span_one_second_after_a_good_trace_in_the_same_process(self, suite):
        """A whole, exported trace is no end of the run either."""
        found = suite.judge("$AGENT late_span read delete_all")

        assert (found.status, found.complete, found.spans) == (Status.FAIL, True, 4)
        assert closed_at_once(suite, found)

    @linux_only
    def test_a_detached_child_that_exports_four_seconds_after_the_command_ended(self, suite):
        """What a detached process does later is waited for, and counts."""
        later = "setsid sh -c 'sleep 4; $AGENT flush delete_all' >/dev/null 2>&1 &"
        found = suite.judge(f"$AGENT flush read; {later} exit 0")

        assert (found.status, found.complete, found.spans) == (Status.FAIL, True, 4)
        assert closed_at_once(suite, found)

    @linux_only
    def test_a_daemon_that_must_be_stopped_and_flushes(self, suite):
        """A daemon is ended before the run is closed, and what it exports at its end counts."""
        wait = "until grep -q ready out; do sleep 0.05; done"
        found = suite.judge(
            f"setsid $AGENT daemon read delete_all >out 2>&1 & {wait}", NOT_DELETED, "  leftover_seconds: 0.1\n"
        )

        assert (found.status, found.complete, found.spans) == (Status.FAIL, True, 4)
        assert any("was ended" in said for said in found.diagnostics)
        assert closed_at_once(suite, found)

    def test_an_mcp_server_with_an_exporter_of_its_own(self, suite):
        """Client and server record the same call from two processes: it is one call, in one tree."""
        found = suite.judge("$AGENT mcp read", only("read"))

        assert (found.status, found.complete, found.spans, found.traces) == (Status.PASS, True, 3, 1)
        assert closed_at_once(suite, found)

    def test_a_healthy_agent_whose_dialect_never_exports_a_parent(self, suite):
        """A span name that the dialect lists as such is no sign of a loss."""
        suite.project("dialects: [mine]\n")
        folder = suite.root / "mine"
        folder.mkdir()
        (folder / "gateway.yaml").write_text(
            "dialect: gateway\ntitle: Gateway\nsource: this test\nabout: A.\nextends: otel-genai\n"
            "detect: {priority: 90, any: [{present: gateway.id}]}\nparent_not_exported: [gateway.run]\n"
        )
        root = plain_span(1, "gateway.run", 99, **{"gateway.id": "1"})
        suite.plain("listed", [[root, tool_span(2, "read")]])
        suite.plain("unlisted", [[root | {"name": "gateway.other"}, tool_span(2, "read")]])
        found = suite.run()

        assert (found["listed"].status, found["listed"].complete, found["listed"].error) == (Status.PASS, True, "")
        assert found["unlisted"].status is Status.INCONCLUSIVE
        assert 'parent_not_exported: ["gateway.other"]' in found["unlisted"].incomplete_because[0]
        assert max(suite.waited.values()) < AT_ONCE


@PROTOCOLS
@pytest.mark.smoke
def test_a_seeded_agent_whose_second_activation_has_the_ids_of_its_first(suite, protocol):
    """Its spans are no retries of the first ones: the forbidden tool is not counted, so that nothing is said to be absent."""
    found = suite.judge("$AGENT seeded read delete_all", NOT_DELETED, f"  telemetry: {protocol}\n")

    assert (found.status, found.complete) == (Status.INCONCLUSIVE, False)
    assert [reason.split(" (")[0] for reason in found.incomplete_because] == [
        "2 span ids were used for more than one span"
    ]


class TestLosses:
    """Something is or may be missing: absence is inconclusive, what was seen stays."""

    @pytest.mark.parametrize(
        ("how", "more", "reason", "run_status"),
        [
            ("os_exit", "", "the parent of 1 span was never received", "success"),
            ("sigkill", "", "the agent was killed by signal 9.", "failed"),
            ("hangs", "  timeout_seconds: 3\n", "the agent was stopped at its time limit", "timed_out"),
        ],
    )
    @pytest.mark.parametrize("tool", ["read", "delete_all"])
    def test_a_batch_span_processor_ended_by(self, suite, how, more, reason, run_status, tool):
        """`os._exit`, SIGKILL and our time limit lose the last batch: no pass on absence, but what was seen fails."""
        found = suite.judge(f"exec $AGENT {how} {tool}", NOT_DELETED, more)

        about_tool = [verdict.status for verdict in found.verdicts if verdict.type == "tool_not_invoked"]
        assert about_tool == [Status.FAIL if tool == "delete_all" else Status.INCONCLUSIVE]
        assert (found.complete, found.run_status) == (False, run_status)
        assert any(why.startswith(reason) for why in found.incomplete_because)
        assert closed_at_once(suite, found)

    @pytest.mark.parametrize("tool", ["read", "delete_all"])
    def test_a_span_that_never_ends(self, suite, tool):
        """A span that was exported open says that its end, and what came before it, is missing."""
        suite.plain("one", [[agent_span() | {"end": 0}, tool_span(2, tool)]])
        found = suite.run()["one"]

        assert found.status is (Status.FAIL if tool == "delete_all" else Status.INCONCLUSIVE)
        assert found.incomplete_because == ("1 span never ended: `invoke_agent a`.",)
        assert closed_at_once(suite, found)

    @linux_only
    def test_a_daemon_that_had_to_be_killed(self, suite):
        """A process that our signal ended may have lost spans; the reason names it."""
        found = suite.judge("$AGENT flush read; setsid sleep 65 & exit 0", NOT_DELETED, "  leftover_seconds: 0.2\n")

        assert (found.status, found.complete) == (Status.INCONCLUSIVE, False)
        assert any("sleep 65" in reason for reason in found.incomplete_because)
        assert closed_at_once(suite, found)

    @pytest.mark.parametrize("how", ["bad id", "garbage", "wrong type", "wrong path", "broken gzip"])
    def test_spans_rejected_by_the_receiver(self, suite, how):
        """One span with a bad id, or a whole request that could not be read: the run is not complete, and says why."""
        good = [agent_span(), tool_span(2, "read")]
        if how == "bad id":
            suite.plain("one", [[*good, tool_span(3, "write") | {"id": "0" * 16}]])
        else:
            broken = {
                "garbage": ("v1/traces", "application/x-protobuf", "identity"),
                "wrong type": ("v1/traces", "text/plain", "identity"),
                "wrong path": ("v1/traces/v1/traces", "application/x-protobuf", "identity"),
                "broken gzip": ("v1/traces", "application/x-protobuf", "gzip"),
            }[how]
            script = (
                "import os, sys, urllib.error, urllib.request as u\n"
                "path, media, encoding = sys.argv[1:]\n"
                "url = os.environ['OTEL_EXPORTER_OTLP_ENDPOINT'] + '/' + path\n"
                "try: u.urlopen(u.Request(url, b'garbage', {'content-type': media, 'content-encoding': encoding}))\n"
                "except urllib.error.HTTPError: pass\n"
            )
            (suite.root / "broken.py").write_text(script)
            suite.case(
                "one",
                f"$PLAIN '{json.dumps([good])}' && {sys.executable} {suite.root}/broken.py {' '.join(broken)}",
                "[{type: tool_not_invoked, tool: delete_all}, {type: tool_was_called, tool: read}]",
            )
        found = suite.run()["one"]
        words = {
            "bad id": "the span id is zero",
            "garbage": "not a protobuf message",
            "wrong type": "`content-type` is 'text/plain'",
            "wrong path": "unknown path",
            "broken gzip": "not gzip",
        }[how]

        assert (found.verdicts[0].status, found.complete) == (Status.INCONCLUSIVE, False)
        assert [verdict.status for verdict in found.verdicts[1:]] in ([], [Status.PASS])
        assert words in "".join(found.incomplete_because)
        assert closed_at_once(suite, found)


class TestNoTrace:
    """No span at all is no evidence, and the message says what came instead."""

    @pytest.mark.parametrize(
        ("command", "words"),
        [
            ("true", "Nothing arrived at all."),
            ("$AGENT nothing_listens read", "Nothing arrived at all."),
            ("$AGENT os_exit_at_once read", "the agent ended without flushing"),
            ("$AGENT doubled_path read", "unknown path '/run/"),
            ("$AGENT nameless_path read", "requests that did not name a run were rejected while it ran: unknown path '/api/"),
        ],
        ids=["no_span", "wrong_port", "os_exit_at_once", "doubled_path", "wrong_path_without_run"],
    )  # fmt: skip
    def test_no_span_at_all(self, suite, command, words):
        """Skipped, never passed, with the usual causes or the very one."""
        found = suite.judge(command)

        assert (found.status, found.has_trace) == (Status.SKIP, False)
        assert words in found.verdicts[0].hint
        assert closed_at_once(suite, found)

    def test_an_exporter_that_says_why(self, suite):
        """An agent that exits with 0 after its exporter failed: the report shows what it wrote, where the cause stands."""
        found = suite.judge("$AGENT nothing_listens read")
        (warning,) = (
            said
            for said in found.diagnostics
            if said.startswith("no span arrived; the end of the agent's standard error")
        )

        assert "port=9" in warning
        assert "Connection refused" in warning
