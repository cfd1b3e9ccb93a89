"""`delegation_path` with router state files: they stand in where the trace shows no agent besides its root."""

import json

import pytest
from assertion_facts import join, outcomes_of, rows_of

from clawtrace.assertions.registry import parse_assertion
from clawtrace.assertions.world import World
from clawtrace.verdicts.asking.ask import ask

PATH = ["orchestrator", "copywriter", "brand-guardian"]
DECISIONS = [{"selected_agent": "copywriter"}, {"agent": "seo"}, {"to": "brand-guardian", "from": "copywriter"}]
ROOT = {"agents": ["orchestrator"]}
NONE = {"tools": ["a"]}


def judged(facts, run, world, **fields):
    facts.load(join([rows_of("r", run)]))
    assertion = parse_assertion({"type": "delegation_path", "expected": PATH, **fields})
    (outcome,) = outcomes_of(ask(facts, assertion, ["r"], {"r": world}))
    return outcome, assertion.explain(outcome), assertion.actual(outcome)


@pytest.fixture
def world(tmp_path):
    (tmp_path / "router.json").write_text(json.dumps(DECISIONS))
    return World("r", workspace=tmp_path, started_at=0.0)


def test_decisions_follow_the_recorded_root(facts, world):
    """A root without further agents, and decisions in the right order, are the path."""
    outcome, said, found = judged(facts, ROOT, world, state_path="router.json")

    assert outcome.holds is True
    assert said.endswith("worked in this order, among 3 decisions of `router.json` and 1 agent activation.")
    assert found == {"found": PATH, "activations": 1, "routing": "router.json", "decisions": 3}


def test_without_any_agent_the_decisions_alone_decide(facts, world):
    """Where the trace shows no agent, what the router did not decide is absent."""
    assert judged(facts, NONE, world, routing_path="router.json")[0].holds is False
    assert judged(facts, NONE, world, routing_path="router.json", expected=PATH[1:])[0].holds is True


def test_the_order_of_the_decisions_counts(facts, world):
    """The agents are compared as an ordered subsequence, whole names."""
    assert (
        judged(facts, ROOT, world, state_path="router.json", expected=["brand-guardian", "copywriter"])[0].holds
        is False
    )
    assert judged(facts, ROOT, world, state_path="router.json", expected=["copy"])[0].holds is False


def test_an_agent_without_a_name_may_be_the_one_that_no_decision_chose(facts, world):
    """What is unknown is the agents' names, as it is without a file."""
    outcome, _, _ = judged(facts, {"agents": [None]}, world, state_path="router.json", expected=["nobody"])

    assert (outcome.holds, outcome.missing) == (None, "agents.name")


def test_recorded_agents_are_not_overruled(facts, world):
    """As soon as the trace shows an agent besides the root, the file is not read."""
    outcome, said, _ = judged(facts, {"agents": ["orchestrator", "seo"]}, world, state_path="router.json")

    assert outcome.holds is False
    assert "router.json" not in said


def test_a_path_that_the_trace_shows_needs_no_file(facts):
    """Where the spans answer, a missing file does not matter."""
    outcome, _, _ = judged(facts, {"agents": PATH}, World("r"), state_path="router.json")

    assert outcome.holds is True


def test_the_first_file_that_holds_a_decision_is_used(facts, world):
    """Several files are tried in the order of the fields."""
    (world.workspace / "empty.yaml").write_text("[]")
    fields = {"routing_path": "gone.yaml", "routing_decisions": "empty.yaml", "state_path": "router.json"}

    assert judged(facts, ROOT, world, **fields)[0].holds is True


def test_without_any_agent_and_any_decision_it_warns(facts, world):
    """A file that is not there is no fallback: with no agent recorded the answer only warns, and says why."""
    outcome, said, _ = judged(facts, NONE, world, state_path="gone.yaml")

    assert (outcome.holds, outcome.missing) == (None, "agents")
    assert said == "Delegation cannot be seen: 0 agent activations recorded, and `gone.yaml` does not exist."


def test_with_a_recorded_root_and_no_decision_it_fails(facts, world):
    """When agents were recorded and the path is absent, the answer is no."""
    assert judged(facts, ROOT, world, state_path="gone.yaml")[0].holds is False


@pytest.mark.parametrize(("text", "said"), [("{", "is no YAML"), ("just text", "is not a router state")])
def test_a_file_that_cannot_be_read_leaves_the_answer_unknown(facts, world, text, said):
    """A broken state file is neither evidence for the path nor against it."""
    (world.workspace / "router.json").write_text(text)
    outcome, message, _ = judged(facts, ROOT, world, state_path="router.json")

    assert outcome.holds is None
    assert said in message


def test_a_run_without_a_workspace_leaves_the_answer_unknown(facts):
    """Of a recording the file cannot be looked at."""
    outcome, said, _ = judged(facts, ROOT, World("r"), state_path="router.json")

    assert (outcome.holds, outcome.missing) == (None, "runs.workspace")
    assert "no workspace here" in said


def test_t20_a_state_file_of_an_earlier_run_is_no_evidence(facts, world):
    """A file that the run did not touch does not stand in for its spans."""
    before = world._replace(changes={"created": (), "modified": (), "deleted": (), "unchanged": ("router.json",)})
    outcome, said, _ = judged(facts, NONE, before, state_path="router.json")

    assert (outcome.holds, outcome.missing) == (None, "agents")
    assert "`router.json` was not written by this run: it was there before the run and was not touched." in said


def test_t20_a_state_file_of_unknown_origin_leaves_the_answer_unknown(facts, world):
    """Without the run's start and its snapshots an old file looks like one of the run's."""
    outcome, said, _ = judged(facts, NONE, world._replace(started_at=None), state_path="router.json")

    assert (outcome.holds, outcome.missing) == (None, "runs.started_ns")
    assert "whether this run wrote `router.json` is unknown" in said
