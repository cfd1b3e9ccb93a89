"""What is acknowledged is committed, what is not committed is not forgotten as a duplicate, poison stays alone."""

from __future__ import annotations

import gc
import threading

import pytest
from memory_sink import MemorySink
from otlp_messages import RUN, as_json, export, logs, metrics, post, post_json, record, span, traces

from clawtrace.receiver.receiver import Receiver
from clawtrace.receiver.request import Request
from clawtrace.receiver.writer import Inbox


def raw(message) -> bytes:
    return message.SerializeToString()


def spans_of(*names: str, run: str = "r1"):
    return raw(traces(*(span(name, span_id=f"{place:x}") for place, name in enumerate(names, 1)), resource={RUN: run}))


class TestCommit:
    def test_the_answer_waits_for_the_commit(self, receiver, sink):
        """No acknowledgement goes out before the commit has returned."""
        sink.gate.clear()
        answered: list[int] = []
        thread = threading.Thread(
            target=lambda: answered.append(post(receiver.endpoints.http, "/v1/traces", spans_of("s"))[0])
        )
        thread.start()
        sink.entered.wait()
        seen = list(answered)
        sink.gate.set()
        thread.join()

        assert (seen, answered) == ([], [200])

    @pytest.mark.parametrize("protocol", ["http", "grpc"])
    def test_a_failed_commit_is_retried_and_stored_once(self, receiver, sink, protocol):
        """A commit that fails is UNAVAILABLE or 503; the very same request is stored when it comes again."""
        bodies = {
            "traces": spans_of("s"),
            "logs": raw(logs(record("e"), resource={RUN: "r1"})),
        }
        for signal, body in bodies.items():
            sink.failures = 1
            if protocol == "http":
                status, fields, answer = post(receiver.endpoints.http, f"/v1/{signal}", body)

                assert (status, fields["retry-after"]) == (503, "1")
                assert b"the disk is full" in answer
                assert post(receiver.endpoints.http, f"/v1/{signal}", body)[0] == 200
            else:
                code, details, _, trailers = export(receiver.endpoints.grpc, signal, body)

                assert (code.name, details) == ("UNAVAILABLE", "the store could not write: the disk is full")
                assert "google.rpc.retryinfo-bin" in trailers
                assert export(receiver.endpoints.grpc, signal, body)[0].name == "OK"

        assert sink.runs() == {"r1": ["s", "e"]}
        assert (
            receiver.counters("r1").accepted,
            receiver.counters("r1").refused,
            receiver.counters("r1").duplicates,
        ) == (2, 2, 0)
        assert sink.refused("r1") == 2

    def test_adoptions_survive_a_failed_commit(self, receiver, sink):
        """What a failed commit would have adopted is adopted by the next one."""
        base = receiver.endpoints.http
        post(base, "/v1/traces", raw(traces(span("loose"))))
        sink.failures = 1
        post(base, "/v1/traces", raw(traces(span("marked"), resource={RUN: "r1"})))
        post(base, "/v1/traces", raw(traces(span("marked"), resource={RUN: "r1"})))

        assert sink.runs() == {"r1": ["loose", "marked"]}

    def test_a_sink_that_breaks_does_not_end_the_receiver(self, receiver, sink, monkeypatch):
        """An error that is no StoreError is refused in the same way, and the thread lives on."""
        original = sink.commit

        def broken(*_):
            monkeypatch.setattr(sink, "commit", original)
            raise ZeroDivisionError("oops")

        monkeypatch.setattr(sink, "commit", broken)

        assert post(receiver.endpoints.http, "/v1/traces", spans_of("s"))[0] == 503
        assert post(receiver.endpoints.http, "/v1/traces", spans_of("s"))[0] == 200

    def test_poison_rejects_itself_only(self, receiver, sink):
        """In one group of requests the broken ones are refused and the good ones stored."""
        sink.gate.clear()
        statuses: dict[str, int] = {}

        def send(name: str, body: bytes) -> None:
            statuses[name] = post(receiver.endpoints.http, "/v1/traces", body)[0]

        bodies = {f"bad{n}": b"\xff\xff" for n in range(4)} | {f"good{n}": spans_of("s", run=f"r{n}") for n in range(4)}
        threads = [threading.Thread(target=send, args=item) for item in bodies.items()]
        for thread in threads:
            thread.start()
        sink.entered.wait()
        sink.gate.set()
        for thread in threads:
            thread.join()

        assert {name: 200 if name.startswith("good") else 400 for name in bodies} == statuses
        assert {f"r{n}": ["s"] for n in range(4)} == sink.runs()

    def test_stop_drains(self, sink):
        """Stopping commits and answers what was received."""
        receiver = Receiver(sink, environ={})
        receiver.start()
        sink.gate.clear()
        answered: list[int] = []
        base = receiver.endpoints.http
        thread = threading.Thread(target=lambda: answered.append(post(base, "/v1/traces", spans_of("s"))[0]))
        thread.start()
        sink.entered.wait()
        stopper = threading.Thread(target=receiver.stop)
        stopper.start()
        sink.gate.set()
        stopper.join()
        thread.join()

        assert answered == [200]
        assert sink.runs() == {"r1": ["s"]}

    def test_the_garbage_collector_is_left_as_it_was(self, receiver):
        """The collector is only kept away during a batch."""
        post(receiver.endpoints.http, "/v1/traces", spans_of("s"))
        receiver.flush()

        assert gc.isenabled()


class TestGroups:
    def test_senders_that_were_answered_together_are_committed_together(self):
        """After a group of eight the next one waits for eight, and takes no more than the time it may wait."""
        inbox = Inbox()
        requests = [Request("traces", "grpc", b"x", False, 1) for _ in range(9)]
        for request in requests[:8]:
            inbox.put(request)
        first = inbox.drain(100)
        inbox.expect(8)
        late = threading.Thread(target=lambda: [inbox.put(request) for request in requests[1:]])
        inbox.put(requests[0])
        late.start()
        second = inbox.drain(100)
        late.join()
        rest = inbox.drain(100, 0) or ([], [])

        assert first is not None
        assert second is not None
        assert len(first[0]) == 8
        assert len(second[0]) + len(rest[0]) == 9

    def test_two_halves_become_one_group(self, monkeypatch):
        """Requests that came while others were committed wait for those senders, instead of taking turns with them."""
        monkeypatch.setattr("clawtrace.receiver.writer._GATHER_SECONDS", (60, 60))
        inbox = Inbox()
        requests = [Request("traces", "grpc", b"x", False, 1) for _ in range(4)]
        for request in requests[:2]:
            inbox.put(request)
        inbox.drain(100)
        for request in requests[2:]:
            inbox.put(request)
        inbox.expect(2)
        late = threading.Timer(0.05, lambda: [inbox.put(request) for request in requests[:2]])
        late.start()
        taken = inbox.drain(100)
        late.join()

        assert taken is not None
        assert len(taken[0]) == 4

    def test_one_sender_never_waits(self, monkeypatch):
        """A request that comes alone after one that came alone is taken at once, and a flush is never kept waiting."""
        monkeypatch.setattr("clawtrace.receiver.writer._GATHER_SECONDS", (60, 60))
        inbox = Inbox()
        for _ in range(3):
            inbox.put(Request("traces", "grpc", b"x", False, 1))

            assert len((inbox.drain(100) or ([], []))[0]) == 1
            inbox.expect(1)
        for _ in range(5):
            inbox.put(Request("traces", "grpc", b"x", False, 1))
        inbox.drain(100)
        inbox.expect(5)
        inbox.put(Request("traces", "grpc", b"x", False, 1))
        inbox.put(threading.Event())
        taken = inbox.drain(100)

        assert taken is not None
        assert (len(taken[0]), len(taken[1])) == (1, 1)


class TestDuplicates:
    def test_a_span_twice_is_stored_once(self, receiver, sink):
        """Over both protocols, in one request or in two, the same ids are one span."""
        for body in (spans_of("a"), spans_of("a", "b")):
            post(receiver.endpoints.http, "/v1/traces", body)
            export(receiver.endpoints.grpc, "traces", body)
        twice = traces(span("c", trace="2"), span("c", trace="2"), resource={RUN: "r1"})
        post_json(receiver.endpoints.http, "/v1/traces", as_json(twice))

        assert sink.runs() == {"r1": ["a", "b", "c"]}
        assert (receiver.counters("r1").accepted, receiver.counters("r1").duplicates) == (3, 5)

    def test_a_span_that_was_sent_open_may_come_again_ended(self, receiver, sink):
        """The ended form is no repetition of the open one, whichever comes first; each form is stored once."""
        for ends in ((0, 2_000), (2_000, 0)):
            run = f"r{ends[0]}"
            for end in (*ends, *ends):
                body = raw(traces(span("s", end_time_unix_nano=end), resource={RUN: run}))
                post(receiver.endpoints.http, "/v1/traces", body)

            assert sink.runs()[run] == ["s", "s"]
        assert sorted(row["end_ns"] for row in sink.spans) == [0, 0, 2_000, 2_000]

    def test_a_span_that_was_sent_shortened_may_come_again_whole(self, receiver, sink):
        """Each form is stored once, whichever comes first."""
        whole = span("s", attributes={"step": "one"})
        for _ in range(2):
            for one in (span("s"), whole):
                post(receiver.endpoints.http, "/v1/traces", raw(traces(one, resource={RUN: "r1"})))

        assert sink.runs() == {"r1": ["s", "s"]}

    def test_the_same_ids_in_two_runs_are_two_spans(self, receiver, sink):
        """Two recordings of one trace, each in its run, are both kept."""
        post(receiver.endpoints.http, "/v1/traces", spans_of("a", run="r1"))
        post(receiver.endpoints.http, "/v1/traces", spans_of("a", run="r2"))

        assert sink.runs() == {"r1": ["a"], "r2": ["a"]}

    def test_a_retried_logs_request_is_stored_once(self, receiver, sink):
        """Log records have no id; a request that repeats byte for byte, times included, is a retry."""
        body = raw(logs(record("e"), record("e"), resource={RUN: "r1"}))
        post(receiver.endpoints.http, "/v1/logs", body)
        post(receiver.endpoints.http, "/v1/logs", body)
        export(receiver.endpoints.grpc, "logs", body)
        post(receiver.endpoints.http, "/v1/logs", raw(logs(record("e", 2_000), resource={RUN: "r1"})))

        assert sink.runs() == {"r1": ["e", "e", "e"]}
        assert receiver.counters("r1").duplicates == 4

    def test_log_records_without_a_time_are_all_kept(self, receiver, sink):
        """Without a time a repetition cannot be distinguished from a second record."""
        body = raw(logs(record("e", 0), resource={RUN: "r1"}))
        post(receiver.endpoints.http, "/v1/logs", body)
        post(receiver.endpoints.http, "/v1/logs", body)

        assert sink.runs() == {"r1": ["e", "e"]}


class TestCounters:
    def test_by_run_protocol_signal_and_port(self, receiver):
        """Counts are kept per run and in total, by protocol, signal and port, with reasons."""
        bad = span("bad")
        bad.span_id = b""
        post(receiver.endpoints.http, "/v1/traces", raw(traces(bad, span("s"), resource={RUN: "r1"})))
        export(receiver.endpoints.grpc, "metrics", raw(metrics(2, resource={RUN: "r1"})))
        post(receiver.endpoints.http, "/v1/traces", raw(traces(span("loose", trace="2"))))
        one, total = receiver.counters("r1"), receiver.counters()
        http, grpc = (int(base.rpartition(":")[2]) for base in (receiver.endpoints.http, receiver.endpoints.grpc))

        assert {("http/protobuf", "traces", http): 1, ("grpc", "metrics", grpc): 2} == one.channels
        assert (one.accepted, one.rejected, one.reasons) == (3, 1, {"the span id is missing": 1})
        assert (total.accepted, total.unattributed) == (4, 1)
        assert receiver.counters("r1").last_arrival_ns
        assert receiver.counters("another").last_arrival_ns is None

    def test_metrics_are_no_arrival(self, receiver):
        """A periodic metrics export does not keep a run open."""
        export(receiver.endpoints.grpc, "metrics", raw(metrics(2, resource={RUN: "r1"})))

        assert receiver.counters("r1").last_arrival_ns is None

    def test_reasons_are_bounded(self, receiver):
        """Reasons hold words of the sender; a hostile one cannot fill the memory with them."""
        for place in range(300):
            document = as_json(traces(span("s")))
            document["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["traceId"] = f"no id {place}"
            post_json(receiver.endpoints.http, "/v1/traces", document, x_clawtrace_run_id="r1")

        assert len(receiver.counters("r1").reasons) == 201
        assert receiver.counters("r1").reasons.total() == 300


def test_open_run_numbers_are_the_sinks(receiver, sink: MemorySink):
    """Announcing a run gives the number that its spans will have."""
    number = receiver.open_run("r1", trace_id="0" * 31 + "5")
    post(receiver.endpoints.http, "/v1/traces", raw(traces(span("s", trace="5"))))

    assert [number] == [row["run_no"] for row in sink.spans]


def test_conflicts_are_reported(receiver):
    """A header against a resource attribute is a conflict of both runs."""
    post(receiver.endpoints.http, "/v1/traces", spans_of("s", run="r1"), x_clawtrace_run_id="r2")
    (conflict,) = receiver.conflicts("r2")

    assert (
        conflict.rule,
        conflict.run_id,
        conflict.other_rule,
        conflict.other_run_id,
    ) == ("resource", "r1", "header", "r2")
