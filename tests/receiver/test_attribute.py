"""The nine rules, conflicts, adoption; and that the order of arrival decides nothing."""

from __future__ import annotations

import itertools
import random

import pytest
from memory_sink import MemorySink
from otlp_messages import RUN, logs, metrics, number, record, span, traces

from clawtrace.dialects.session_keys import SESSION_KEYS
from clawtrace.receiver.attribution.attribute import Attribution
from clawtrace.receiver.intake import Intake
from clawtrace.receiver.redaction.redact import RedactionSettings, Redactor
from clawtrace.receiver.request import Request


def trace_id(text: str) -> str:
    return number(text, 16).hex()


class Desk:
    """An intake that commits each request at once."""

    def __init__(self, *, run_key=None, **known) -> None:
        self.sink = MemorySink()
        self.attribution = Attribution(self.sink.run_no, **known)
        redactor = Redactor(RedactionSettings(enabled=False))
        self.intake = Intake(self.attribution, redactor, run_key=run_key, session_keys=SESSION_KEYS)

    def send(self, message, *, header="", path="", signal="traces"):
        request = Request(signal, "grpc", message.SerializeToString(), False, 1, header_run=header, path_run=path)
        self.intake.add(request)
        self.commit()

    def commit(self):
        taken = self.intake.take()
        self.sink.commit(taken.spans, taken.logs, [note.receipt for note in taken.notes], taken.adopted)
        self.intake.committed()

    def given(self):
        """(run id, rule) by span name."""
        return {row["name"]: (self.sink.id_of(row["run_no"]), row["run_rule"]) for row in self.sink.spans}

    def rejected(self):
        """How many items were rejected, by run id."""
        return {self.sink.id_of(one.run_no): one.rejected for one in self.sink.receipts if one.rejected}


class TestRules:
    """One test a rule, in the order of the specification."""

    def test_1_resource_attribute(self):
        """The resource attribute names the run."""
        desk = Desk()
        desk.send(traces(span("s"), resource={RUN: "r1"}))

        assert desk.given() == {"s": ("r1", "resource")}

    def test_2_span_attribute(self):
        """The span attribute names the run, span by span."""
        desk = Desk()
        desk.send(traces(span("s", attributes={RUN: "r1"}), span("t", trace="a2", attributes={RUN: "r2"})))

        assert desk.given() == {"s": ("r1", "span"), "t": ("r2", "span")}

    def test_3_header(self):
        """The request's header or metadata names the run."""
        desk = Desk()
        desk.send(traces(span("s")), header="r1")

        assert desk.given() == {"s": ("r1", "header")}

    def test_4_path(self):
        """The request's path names the run."""
        desk = Desk()
        desk.send(traces(span("s")), path="r1")

        assert desk.given() == {"s": ("r1", "path")}

    def test_5_announced_trace(self):
        """The trace id of an injected traceparent is the run's."""
        desk = Desk()
        desk.attribution.announce("r1", trace_id=trace_id("a1"))
        desk.send(traces(span("s"), span("t", trace="a2")))

        assert desk.given()["s"] == ("r1", "trace")
        assert (trace_id("a2"), "none") == desk.given()["t"]

    def test_5_another_span_of_the_trace(self):
        """A span without any mark belongs where another span of its trace does, in one request or over several."""
        desk = Desk()
        desk.send(traces(span("before"), span("marked", attributes={RUN: "r1"}), span("after")))
        desk.send(traces(span("later")))

        assert desk.given() == {
            "before": ("r1", "trace"),
            "marked": ("r1", "span"),
            "after": ("r1", "trace"),
            "later": ("r1", "trace"),
        }

    def test_6_link(self):
        """A span that links to a trace of the run brings its whole trace."""
        desk = Desk()
        desk.send(traces(span("s"), resource={RUN: "r1"}))
        desk.send(traces(span("linked", trace="b1", links=["a1"]), span("sibling", trace="b1")))

        assert desk.given()["linked"] == ("r1", "link")
        assert desk.given()["sibling"] == ("r1", "trace")

    @pytest.mark.parametrize(
        "key",
        [
            "gen_ai.conversation.id",
            "session.id",
            "conversation.id",
            "langfuse.session.id",
            "traceloop.association.properties.session_id",
        ],
    )
    @pytest.mark.parametrize("where", ["span", "resource"])
    def test_7_announced_session(self, key, where):
        """A session or conversation id that a run announced names the run; another one does not."""
        desk = Desk()
        desk.attribution.announce("r1", session_ids=["s1"])
        mine, other = {key: "s1"}, {key: "s2"}
        if where == "span":
            desk.send(traces(span("mine", attributes=mine), span("other", trace="a2", attributes=other)))
        else:
            desk.send(traces(span("mine"), resource=mine))
            desk.send(traces(span("other", trace="a2"), resource=other))

        assert desk.given()["mine"] == ("r1", "session")
        assert (trace_id("a2"), "none") == desk.given()["other"]

    @pytest.mark.parametrize("where", ["span", "resource"])
    def test_8_run_key(self, where):
        """The attribute that `run_key` names carries the run id in foreign data."""
        desk = Desk(run_key="my.run")
        own = {"my.run": "r1"} if where == "span" else {}
        desk.send(traces(span("s", attributes=own), resource={} if own else {"my.run": "r1"}))

        assert desk.given() == {"s": ("r1", "run_key")}

    def test_9_the_trace_stands_for_itself(self):
        """What no rule gives to a run is listed under its trace id."""
        desk = Desk()
        desk.send(traces(span("s"), span("t"), span("u", trace="a2")))

        assert {name: run.lstrip("0") for name, (run, rule) in desk.given().items() if rule == "none"} == {
            "s": "a1",
            "t": "a1",
            "u": "a2",
        }

    def test_equality_is_exact(self):
        """Case, prefixes and white space make another run, another session, another trace."""
        desk = Desk()
        desk.attribution.announce("r1", session_ids=["s1"])
        desk.send(traces(span("s", attributes={"session.id": "s1 "}), span("t", trace="a2", attributes={RUN: "R1"})))

        assert [(trace_id("a1"), "none"), ("R1", "span")] == [desk.given()["s"], desk.given()["t"]]


CHANNELS = {
    "resource": lambda run: {"resource": {RUN: run}},
    "span": lambda run: {"attributes": {RUN: run}},
    "header": lambda run: {"header": run},
    "path": lambda run: {"path": run},
    "trace": lambda _: {"announce": {"trace_id": trace_id("a1")}},
    "link": lambda _: {"links": ["e1"]},
    "session": lambda _: {"attributes": {"session.id": "s1"}, "announce": {"session_ids": ["s1"]}},
    "run_key": lambda run: {"attributes": {"my.run": run}},
}


OF_THE_PROCESS = ("resource", "header", "path")
"""They say which run started the process, or what it exports with."""
PAIRS = [
    (weaker, stronger) if stronger in OF_THE_PROCESS and weaker == "trace" else (stronger, weaker)
    for stronger, weaker in itertools.combinations(CHANNELS, 2)
]


class TestConflicts:
    @pytest.mark.parametrize(("stronger", "weaker"), PAIRS)
    def test_the_stronger_rule_wins_and_both_are_reported(self, stronger, weaker):
        """Of any two rules that disagree the one with the lower number decides, and the conflict names both.

        But a process that one run started may work for another, which its calls are in the trace of.
        """
        desk = Desk(run_key="my.run")
        fields: dict = {"resource": {}, "attributes": {}, "links": [], "header": "", "path": ""}
        for rule, run in ((stronger, "strong"), (weaker, "weak")):
            for key, value in CHANNELS[rule](run).items():
                if key == "announce":
                    desk.attribution.announce(run, **value)
                elif isinstance(value, dict):
                    fields[key] |= value
                else:
                    fields[key] = value
            if rule == "link":
                desk.send(traces(span("target", trace="e1"), resource={RUN: run}))
        made = span("s", attributes=fields["attributes"], links=fields["links"])
        desk.send(traces(made, resource=fields["resource"]), header=fields["header"], path=fields["path"])
        (conflict,) = desk.attribution.conflicts()

        assert ("strong", stronger) == desk.given()["s"]
        assert (stronger, "strong", weaker, "weak", trace_id("a1")) == (
            conflict.rule,
            conflict.run_id,
            conflict.other_rule,
            conflict.other_run_id,
            conflict.trace_id,
        )
        assert [conflict] == desk.attribution.conflicts("weak")
        assert desk.attribution.conflicts("another") == []

    def test_rules_that_agree_are_no_conflict(self):
        """All channels at once, as a runner gives them, are no conflict."""
        desk = Desk(run_key="my.run")
        desk.attribution.announce("r", trace_id=trace_id("a1"), session_ids=["s1"])
        desk.send(traces(span("target", trace="e1"), resource={RUN: "r"}))
        made = span("s", attributes={RUN: "r", "session.id": "s1", "my.run": "r"}, links=["e1"])
        desk.send(traces(made, resource={RUN: "r"}), header="r", path="r")

        assert desk.attribution.conflicts() == []
        assert desk.given()["s"] == ("r", "resource")

    def test_a_resource_against_the_run_of_the_trace(self):
        """A trace known from another run's span: the resource decides, the conflict is reported."""
        desk = Desk()
        desk.send(traces(span("s"), resource={RUN: "r1"}))
        desk.send(traces(span("t"), resource={RUN: "r2"}))

        assert desk.given() == {"s": ("r1", "resource"), "t": ("r2", "resource")}
        assert [(one.rule, one.run_id, one.other_rule, one.other_run_id) for one in desk.attribution.conflicts()] == [
            ("resource", "r2", "trace", "r1")
        ]

    def test_a_run_key_against_the_run_of_the_trace(self):
        """A trace known from another run's span goes before rule 8: it decides, and the conflict names it first."""
        desk = Desk(run_key="my.run")
        desk.send(traces(span("s"), resource={RUN: "r1"}))
        desk.send(traces(span("t", attributes={"my.run": "r2"})))

        assert desk.given() == {"s": ("r1", "resource"), "t": ("r1", "trace")}
        assert [(one.rule, one.run_id, one.other_rule, one.other_run_id) for one in desk.attribution.conflicts()] == [
            ("trace", "r1", "run_key", "r2")
        ]


class TestAdoption:
    def test_by_a_later_span_of_the_trace(self):
        """Stored spans of a trace follow when a later span of it names the run."""
        desk = Desk()
        desk.send(traces(span("first")))
        desk.send(traces(span("second"), resource={RUN: "r1"}))

        assert desk.given() == {"first": ("r1", "trace"), "second": ("r1", "resource")}
        assert [(trace_id("a1"), desk.sink.run_no("r1"), "trace")] == desk.sink.adopted

    def test_by_a_later_announcement(self):
        """Announcing a trace or a session adopts what came before it."""
        desk = Desk()
        desk.send(traces(span("s"), span("t", trace="a2", attributes={"session.id": "s1"})))
        desk.attribution.announce("r1", trace_id=trace_id("a1"), session_ids=["s1"])
        desk.commit()

        assert desk.given() == {"s": ("r1", "trace"), "t": ("r1", "session")}

    def test_along_links(self):
        """A chain of traces that link to each other follows as soon as its end has a run, however long it is."""
        desk = Desk()
        names = [f"{place:x}" for place in range(1, 3_001)]
        for place, name in enumerate(names[1:], 1):
            desk.send(traces(span(f"s{name}", trace=name, links=[names[place - 1]])))
        desk.send(traces(span("s1", trace="1"), resource={RUN: "r1"}))

        assert {"r1"} == {run for run, _ in desk.given().values()}
        assert {"link", "resource"} == {rule for _, rule in desk.given().values()}

    @pytest.mark.parametrize("announced_first", [True, False])
    def test_a_link_to_an_announced_trace_of_which_no_span_came(self, announced_first):
        """A queue's consumer begins a separate trace, with a link to the context that the runner injected."""
        desk = Desk()
        if announced_first:
            desk.attribution.announce("r1", trace_id=trace_id("a1"))
        desk.send(traces(span("s", trace="a2", links=["a1"])))
        if not announced_first:
            desk.attribution.announce("r1", trace_id=trace_id("a1"))
        desk.send(traces(span("t", trace="a2")))

        assert desk.given() == {"s": ("r1", "link"), "t": ("r1", "trace")}

    def test_links_within_one_request_in_any_order(self):
        """Within one request the order of spans decides nothing."""
        made = [
            span("a", trace="1", attributes={RUN: "r1"}),
            span("b", trace="2", links=["1"]),
            span("c", trace="3", links=["2"]),
            span("d", trace="3"),
        ]
        for order in itertools.permutations(made):
            desk = Desk()
            desk.send(traces(*order))

            assert desk.sink.rules() == {"a": "span", "b": "link", "c": "link", "d": "trace"}
            assert {"r1"} == {run for run, _ in desk.given().values()}

    @pytest.mark.parametrize("runs", [("r1", "r2"), ("r2", "r1")])
    @pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
    def test_the_strongest_evidence_of_a_request_is_the_run_of_its_trace(self, runs, order):
        """Whichever span stands first: rule 6 goes before rule 8, and of one rule the run that was known first."""
        for rules in (("link", "run_key"), ("run_key", "run_key")):
            desk = Desk(run_key="my.run")
            desk.send(
                traces(span("1", trace="e1", attributes={RUN: "r1"}), span("2", trace="e2", attributes={RUN: "r2"}))
            )
            made = [span("nothing")]
            for rule, run in zip(rules, runs, strict=True):
                target = {"link": {"links": [f"e{run[1]}"]}, "run_key": {"attributes": {"my.run": run}}}[rule]
                made.append(span(f"{rule} {run}", **target))
            desk.send(traces(*(made[place] for place in order)))
            strongest = runs[0] if rules[0] == "link" else "r1"

            assert desk.given()["nothing"] == (strongest, "trace")
            assert {strongest} == {run for name, (run, _) in desk.given().items() if name not in "12"}

    def test_log_records_and_spans_alike(self):
        """A log record attributes the spans of its trace, and the other way round."""
        desk = Desk()
        desk.send(traces(span("s"), span("t", trace="a2", attributes={RUN: "r2"})))
        desk.send(logs(record("e", trace="a1"), record("f", trace="a2")), signal="logs")
        desk.send(logs(record("g", trace="a1"), resource={RUN: "r1"}), signal="logs")
        found = {row["event_name"]: (desk.sink.id_of(row["run_no"]), row["run_rule"]) for row in desk.sink.logs}

        assert desk.given()["s"] == ("r1", "trace")
        assert found == {"e": ("r1", "trace"), "f": ("r2", "trace"), "g": ("r1", "resource")}

    def test_what_was_given_stays(self):
        """Only unattributed traces are adopted."""
        desk = Desk()
        desk.send(traces(span("s"), resource={RUN: "r1"}))
        desk.attribution.announce("r2", trace_id=trace_id("a1"))
        desk.commit()

        assert desk.sink.adopted == []
        assert desk.given() == {"s": ("r1", "resource")}

    def test_a_link_takes_no_trace_from_its_run(self):
        """A span of a run's trace that links to a trace whose run is named in the same request leaves it where it was."""
        desk = Desk()
        desk.send(traces(span("s"), resource={RUN: "r1"}))
        desk.send(traces(span("t", links=["a2"]), span("target", trace="a2", attributes={RUN: "r2"})))
        desk.send(traces(span("u")))

        assert desk.given() == {
            "s": ("r1", "resource"),
            "t": ("r1", "trace"),
            "target": ("r2", "span"),
            "u": ("r1", "trace"),
        }
        assert desk.sink.adopted == []

    def test_after_a_restart(self):
        """A new receiver on the same store knows its traces, attributed or not."""
        desk = Desk(
            runs=[("r1", 1)],
            traces=[(trace_id("a1"), 1, "resource"), (trace_id("a2"), 7, "none")],
            sessions=[("s1", 1)],
        )
        desk.sink.run_no("r1")
        desk.send(traces(span("s"), span("t", trace="a3", attributes={"session.id": "s1"})))
        desk.send(traces(span("u", trace="a2"), resource={RUN: "r1"}))

        assert desk.given() == {"s": ("r1", "trace"), "t": ("r1", "session"), "u": ("r1", "resource")}
        assert [(trace_id("a2"), 1, "trace")] == desk.sink.adopted

    def test_forgotten_traces_are_adopted_all_the_same(self):
        """When more unattributed traces came than are remembered, evidence still reaches the forgotten ones."""
        desk = Desk(trace_limit=2)
        desk.send(traces(*(span(f"s{place}", trace=f"{place:x}") for place in range(1, 9))))
        desk.send(traces(span("late", trace="1"), resource={RUN: "r1"}))

        assert desk.given()["s1"] == ("r1", "trace")

    def test_the_order_of_requests_decides_nothing(self):
        """Every order of arrival ends with every span in the same run."""
        messages = [
            traces(span("a", trace="1")),
            traces(span("b", trace="1"), resource={RUN: "r1"}),
            traces(span("c", trace="2", links=["1"])),
            traces(span("d", trace="3", attributes={"session.id": "s1"}), span("e", trace="3")),
            traces(span("f", trace="4")),
        ]
        expected = {"a": "r1", "b": "r1", "c": "r1", "d": "r2", "e": "r2", "f": trace_id("4")}
        for order in itertools.permutations(range(len(messages) + 1)):
            desk = Desk()
            for place in order:
                if place == len(messages):
                    desk.attribution.announce("r2", session_ids=["s1"])
                    desk.commit()
                else:
                    desk.send(messages[place])

            assert expected == {name: run for name, (run, _) in desk.given().items()}, order


class TestOtherSignals:
    def test_log_records(self):
        """Log records follow the same rules; one without trace and run belongs to none and is kept."""
        desk = Desk()
        desk.attribution.announce("r3", trace_id=trace_id("a3"))
        desk.send(logs(record("e"), resource={RUN: "r1"}), signal="logs")
        desk.send(logs(record("f"), record("h", attributes={RUN: "r4"}), record("i", trace="a3")), signal="logs")
        desk.send(logs(record("g")), header="r2", signal="logs")
        found = {row["event_name"]: (desk.sink.id_of(row["run_no"]), row["run_rule"]) for row in desk.sink.logs}

        assert found == {
            "e": ("r1", "resource"),
            "f": ("", "none"),
            "g": ("r2", "header"),
            "h": ("r4", "span"),
            "i": ("r3", "trace"),
        }

    def test_log_records_without_a_trace_follow_the_rules_after_the_trace(self):
        """A session or the run key names the run of a record that has no trace: nothing disagrees with it."""
        desk = Desk(run_key="my.run")
        desk.attribution.announce("r1", session_ids=["s1"])
        desk.send(
            logs(record("e", attributes={"session.id": "s1"}), record("f", attributes={"my.run": "r2"})), signal="logs"
        )
        found = {row["event_name"]: (desk.sink.id_of(row["run_no"]), row["run_rule"]) for row in desk.sink.logs}

        assert found == {"e": ("r1", "session"), "f": ("r2", "run_key")}
        assert desk.attribution.conflicts() == []

    def test_metrics_and_rejected_items_are_counted_for_their_run(self):
        """Data points, and items with bad ids, are counted for the run that their resource or request names."""
        desk = Desk()
        desk.send(metrics(points=4, resource={RUN: "r1"}), signal="metrics")
        bad = span("bad")
        bad.span_id = b""
        desk.send(traces(bad, span("good")), path="r2")
        found = {(desk.sink.id_of(one.run_no), one.signal): one for one in desk.sink.receipts}

        assert found["r1", "metrics"].accepted == 4
        assert (
            found["r2", "traces"].accepted,
            found["r2", "traces"].rejected,
            found["r2", "traces"].reason,
        ) == (1, 1, "the span id is missing")

    def test_rejected_items_are_counted_for_the_run_of_their_trace(self):
        """Where nothing else names the run, the trace does."""
        desk = Desk()
        bad, mute, good = span("bad", trace="a2"), span("mute"), span("good", trace="a3")
        bad.span_id, mute.trace_id = b"", b""
        desk.send(traces(span("a", trace="a2"), bad, good))

        assert desk.rejected() == {f"{0xA2:032x}": 1}
        desk.send(traces(span("b", trace="a3"), span("c", trace="a4"), mute))

        # Of one without a trace any run of its request may be the one.
        assert desk.rejected() == {f"{0xA2:032x}": 1, f"{0xA3:032x}": 1, f"{0xA4:032x}": 1}


def test_many_runs_side_by_side():
    """64 runs, each over another channel, shuffled into requests: no span in a wrong run."""
    desk = Desk(run_key="my.run")
    requests = []
    for place in range(64):
        run, own, rule = f"run-{place}", f"{place + 1:x}", list(CHANNELS)[place % 4]
        fields = CHANNELS[rule](run)
        for part in range(5):
            made = span(f"{run}/{part}", trace=own, span_id=f"{part + 1:x}", attributes=fields.get("attributes", {}))
            message = traces(made, resource=fields.get("resource", {}))
            requests.append((message, fields.get("header", ""), fields.get("path", "")))
    random.Random(7).shuffle(requests)
    for message, header, path in requests:
        desk.send(message, header=header, path=path)

    assert {name: name.partition("/")[0] for name in desk.given()} == {n: run for n, (run, _) in desk.given().items()}
    assert len(desk.given()) == 320
    assert desk.attribution.conflicts() == []
