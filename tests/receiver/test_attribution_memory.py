"""What the attribution keeps in mind: bounded, forgotten where it is settled, given back where a commit failed."""

from __future__ import annotations

from memory_sink import MemorySink

from clawtrace.model.run import RunRule
from clawtrace.receiver.attribution.attribute import Attribution, Claim


def made(**known) -> Attribution:
    return Attribution(MemorySink().run_no, **known)


def decided(attribution: Attribution, claim: Claim, trace_id: str) -> tuple[str, str]:
    """The run and the rule of one span."""
    (number,), (rule,) = attribution.decide([claim], [trace_id])
    return attribution.run_id(number), rule


def test_the_announced_trace_goes_before_the_announced_session_of_the_same_run():
    """The first rule in the order of the specification is reported, also where several agree."""
    attribution = made()
    attribution.announce("r", trace_id="t", session_ids=["s"])

    assert decided(attribution, Claim(sessions=("s",)), "t") == ("r", "trace")
    assert decided(attribution, Claim(sessions=("s",)), "other") == ("r", "session")


def test_a_trace_that_found_its_run_no_longer_waits_for_its_session():
    """Another run that announces that session later gets traces to come, and not this one."""
    attribution = made()
    decided(attribution, Claim(sessions=("s",)), "t")
    decided(attribution, Claim(resource="r1"), "t")
    attribution.take_adopted()
    attribution.announce("r2", session_ids=["s"])

    assert attribution.take_adopted() == []
    assert decided(attribution, Claim(), "t") == ("r1", "trace")
    assert decided(attribution, Claim(sessions=("s",)), "later") == ("r2", "session")


def test_a_trace_that_found_its_run_no_longer_waits_for_a_linked_one():
    attribution = made()
    decided(attribution, Claim(links=("target",)), "t")
    decided(attribution, Claim(resource="r1"), "t")
    attribution.take_adopted()
    decided(attribution, Claim(resource="r2"), "target")

    assert attribution.take_adopted() == []
    assert decided(attribution, Claim(), "t") == ("r1", "trace")


def test_the_others_of_a_session_wait_on_when_one_trace_found_its_run():
    """Traces that mention one session wait for it each by itself, and so do those that link to one trace."""
    for claim, evidence in (
        (Claim(sessions=("s",)), lambda attribution: attribution.announce("r2", session_ids=["s"])),
        (Claim(links=("target",)), lambda attribution: decided(attribution, Claim(resource="r2"), "target")),
    ):
        attribution = made()
        for trace in ("t1", "t2", "t3"):
            decided(attribution, claim, trace)
        decided(attribution, Claim(resource="r1"), "t2")
        attribution.take_adopted()
        evidence(attribution)

        assert sorted(trace for trace, _, _ in attribution.take_adopted()) == ["t1", "t3"]
        assert decided(attribution, Claim(), "t1")[0] == decided(attribution, Claim(), "t3")[0] == "r2"
        assert decided(attribution, Claim(), "t2") == ("r1", "trace")


def test_adoptions_of_a_failed_commit_come_first_again():
    attribution = made()
    for trace in ("t1", "t2"):
        decided(attribution, Claim(), trace)
    number = attribution.announce("r", trace_id="t1")
    lost = attribution.take_adopted()
    attribution.announce("r", trace_id="t2")
    attribution.give_back(lost)

    assert lost == [("t1", number, RunRule.TRACE)]
    assert attribution.take_adopted() == [("t1", number, "trace"), ("t2", number, "trace")]
    assert attribution.take_adopted() == []


def test_however_many_runs_are_named_few_are_remembered():
    """A forgotten one has the number that the store gave it, when it is named again."""
    attribution = made(trace_limit=10)
    numbers = {name: attribution.number(name) for name in map(str, range(100))}

    assert len(attribution.names()) <= 10
    assert attribution.number("0") == numbers["0"]
    assert attribution.number("99") == numbers["99"]


def test_however_many_traces_have_a_run_few_are_remembered_but_the_announced():
    attribution = made(trace_limit=10)
    attribution.announce("r", trace_id="announced")
    for place in range(100):
        decided(attribution, Claim(resource="r"), f"t{place}")

    assert decided(attribution, Claim(), "announced") == ("r", "trace")
    assert decided(attribution, Claim(), "t99") == ("r", "trace")
    assert decided(attribution, Claim(), "t0") == ("", "none")


def test_the_same_disagreement_is_reported_once():
    attribution = made()
    for trace in ("t1", "t2"):
        decided(attribution, Claim(resource="r1", span="r2"), trace)
    decided(attribution, Claim(resource="r1", span="r3"), "t3")

    assert [(one.run_id, one.other_run_id, one.trace_id) for one in attribution.conflicts()] == [
        ("r1", "r2", "t1"),
        ("r1", "r3", "t3"),
    ]


def test_one_who_listens_hears_which_trace_became_a_part_of_which_run():
    heard = []
    attribution = made()
    attribution.joined = lambda alone, number: heard.append((alone, number))
    (alone,), _ = attribution.decide([Claim()], ["t"])
    number = attribution.announce("r", trace_id="t")

    assert heard == [(alone, number)]
    assert alone not in attribution.names()


def test_however_many_disagree_few_conflicts_are_remembered():
    """A client that names another run in every span fills no memory."""
    attribution = made(trace_limit=10_000)
    for place in range(1_500):
        decided(attribution, Claim(resource="r", span=f"r{place}"), "t")

    assert len(attribution.conflicts()) == 1_000


def test_a_trace_that_stood_for_itself_before_a_restart_is_no_run_any_more_when_it_is_adopted():
    """Its name is free again, unless it is the run's own name."""
    attribution = made(runs=[("t", 7)], traces=[("t", 7, "none")])
    attribution.announce("r", trace_id="t")

    assert 7 not in attribution.names()
    assert attribution.number("t") != 7

    attribution = made(runs=[("t", 7)], traces=[("t", 7, "none")])
    attribution.announce("t", trace_id="t")

    assert attribution.names() == {7: "t"}


def test_a_run_without_a_trace_takes_nothing_that_has_none():
    """An announcement of no trace is none of the items that stand outside of traces."""
    attribution = made()
    for none in ("", None):
        attribution.announce("r", trace_id=none)

    assert decided(attribution, Claim(), "") == ("", "none")
