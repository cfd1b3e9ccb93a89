"""A model that plays the user: real agents in processes of their own, the user's model played by the scripted one (docs/simulated-users.md)."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from tests.free_port import free_port

from clawtrace.cli.main import cli
from clawtrace.providers import asking
from clawtrace.testing import scripted_model

AGENT = Path(__file__).parent / "talking_agent.py"
GOAL = "Get the money back for the broken teapot."
SECRET = "the-number-is-asked-for"
"""Stands in everything that judges a run."""


def first(text: str = "My teapot is broken!") -> dict[str, Any]:
    """Return the step with the first message."""
    return said({"message": text})


def step(decision: str, message: str = "", reason: str = "It went so.") -> dict[str, Any]:
    """Return the step in which the user goes on, or ends."""
    return said({"reason": reason, "decision": decision, "message": message})


def said(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the structured answer of a model that plays a user."""
    calls = [{"name": "final_result", "arguments": dict(arguments)}]
    return {"tool_calls": calls, "usage": {"input": 1000, "output": 50}, "when": {"model": "user-1"}}


NUMBER = step("say", "It is 4711.", "It wants the number.")
HAPPY = (first(), NUMBER, step("goal_reached", reason="The money is back."))


class Talk:
    """A project of one case with a simulated user; evaluates it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.words: list[str] = []
        self.user: dict[str, Any] = {}
        self.case: dict[str, Any] = {"assertions": [{"type": "conversation_end", "status": "goal_reached"}]}
        self.runner: dict[str, Any] = {}
        self.messages: list[dict[str, Any]] = []
        self.models: list[dict[str, Any]] = []
        self.flags: list[str] = []
        self.asked: list[dict[str, Any]] = []
        self.output = ""
        self.exit_code = -1
        self.results: dict[str, Any] = {}

    def write(self, name: str, data: Any) -> Path:
        """Write one file of the project."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(data if isinstance(data, str) else yaml.safe_dump(data, sort_keys=False), encoding="utf-8")
        return path

    def write_all(self, url: str) -> None:
        """Write the case and its suite; the user's model is at `url`."""
        user = {"goal": GOAL, "model": "user-1", "base_url": f"{url}/v1", "retries": 0, **self.user}
        command = [sys.executable, str(AGENT), *self.words]
        runner = self.runner or {"type": "command", "command": command, "grace_seconds": 1, "inputs": [str(AGENT)]}
        given = {"user": user, "messages": self.messages}
        case = {"schema_version": 1, "case_id": "teapot", "title": SECRET, "runner": runner, "input": given}
        self.write("configs/cases/teapot/test.yaml", {**case, **self.case})
        self.write("configs/suites/s.yaml", {"schema_version": 1, "suite_id": "s", "title": "S", "models": self.models})

    def evaluate(self, *steps: Mapping[str, Any], reuse: bool = False) -> dict[str, Any]:
        """Run the suite; return the first run of the report."""
        with scripted_model(list(steps)) as model:
            for one in self.models:
                one["base_url"] = f"{model.url}/v1"
            self.write_all(model.url)
            report = self.root / "report.json"
            command = ["eval", "--suite", "s", "--report", f"json={report}", "--reuse" if reuse else "--no-reuse"]
            ended = CliRunner().invoke(cli, [*command, *self.flags], prog_name="clawtrace", catch_exceptions=False)
            self.asked = [one.request for one in model.log]
        self.exit_code, self.output = ended.exit_code, ended.output
        assert report.exists(), ended.output
        self.results = json.loads(report.read_text())
        report.unlink()
        run: dict[str, Any] = self.results["cases"][0]["runs"][0]
        return run

    def text(self) -> str:
        """Return everything that the user's model was sent."""
        return json.dumps(self.asked, ensure_ascii=False)


@pytest.fixture
def talk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Talk:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(asking, "FIRST_PAUSE_SECONDS", 0.01)
    monkeypatch.delenv("CI", raising=False)
    return Talk(tmp_path)


def spoken(run: Mapping[str, Any]) -> list[tuple[str, str, str | None]]:
    """Return what was said in a run."""
    return [(turn["by"], turn["user"], turn["agent"]) for turn in run["conversation"]["turns"]]


def test_a_conversation_to_its_goal(talk):
    """Each message is one turn of the agent; the report says who said what and why it ended, and the user's tokens are not the run's."""
    talk.case["assertions"] += [
        {"type": "tool_call_count", "tool": "refund", "count": 1, "turn": 2},
        {"type": "tool_not_called", "tool": "refund", "turn": 1},
        {"type": "llm_call_count", "count": 2},
    ]
    run = talk.evaluate(*HAPPY)

    assert (talk.exit_code, run["status"], run["run_status"]) == (0, "pass", "success"), talk.output
    assert spoken(run) == [
        ("model", "My teapot is broken!", "What is the number of the order?"),
        ("model", "It is 4711.", "Order 4711 is refunded."),
    ]
    assert (run["conversation"]["end"], run["conversation"]["why"]) == ("goal_reached", "The money is back.")
    assert (run["totals"]["input_tokens"], run["totals"]["output_tokens"]) == (200, 40)
    assert talk.results["users"] == {"answers": 3, "input_tokens": 3000, "output_tokens": 150, "cost_usd": None}
    assert talk.results["judging"] is None
    assert "conversation  teapot: `goal_reached` after 2 turns (3,150 tokens, ? for the user)" in talk.output
    assert "  user   It is 4711." in talk.output
    assert "  agent  Order 4711 is refunded." in talk.output


@pytest.mark.full
class TestWhatTheUserIsTold:
    def test_goal_persona_facts_and_what_was_said(self, talk):
        """The model is given these, with the parameters of the case, and all that was said so far."""
        talk.user |= {
            "persona": "Grumpy, writes in Swedish.",
            "facts": {"order": 4711, "bought": ["teapot", "två koppar"]},
            "done_when": "The agent names the refunded order.",
            "temperature": 0,
            "seed": 7,
            "request_options": {"top_p": 0.5},
        }
        talk.evaluate(*HAPPY)

        for part in (GOAL, "Grumpy, writes in Swedish.", "två koppar", "4711", "The agent names the refunded order."):
            assert part in json.dumps(talk.asked[0]["messages"], ensure_ascii=False)
        assert [(one["temperature"], one["seed"], one["top_p"]) for one in talk.asked] == [(0, 7, 0.5)] * 3
        last = talk.asked[2]["messages"][-1]["content"]
        assert json.loads(last.rpartition("\n\n")[0]) == [
            {"role": "user", "content": "My teapot is broken!"},
            {"role": "assistant", "content": "What is the number of the order?"},
            {"role": "user", "content": "It is 4711."},
            {"role": "assistant", "content": "Order 4711 is refunded."},
        ]

    def test_nothing_of_what_judges(self, talk):
        """Expectations, rubric, assertions, title, description, metadata and system messages are not in any request."""
        hidden = {"text": SECRET}
        talk.case = {
            "description": SECRET,
            "metadata": {"note": SECRET},
            "tags": [SECRET],
            "expectations": {"soft_expectations": [hidden]},
            "rubric": {"scoring_instructions": SECRET, "criteria": [{"name": SECRET}]},
            "assertions": [{"type": "output_contains", "value": SECRET, "id": SECRET, "description": SECRET}],
        }
        talk.messages = [{"role": "system", "content": SECRET}]
        run = talk.evaluate(*HAPPY)

        assert (talk.exit_code, run["status"], len(talk.asked)) == (1, "fail", 3), talk.output
        assert GOAL in talk.text()
        assert SECRET not in talk.text()


@pytest.mark.full
class TestEnds:
    def test_gave_up(self, talk):
        """The user takes the goal for out of reach: the assertion about the end fails, another one passes."""
        talk.case["assertions"].append({"type": "conversation_end", "status": "gave_up", "id": "right"})
        run = talk.evaluate(first(), step("gave_up", reason="It only asks."))

        assert {one["id"]: one["status"] for one in run["assertions"]} == {"conversation_end": "fail", "right": "pass"}
        assert "The conversation with the simulated user ended as `gave_up`, expected `goal_reached`." in talk.output
        assert "It only asks." in talk.output

    def test_max_turns(self, talk):
        """After the last answer the user may find the goal reached; a further message ends as `max_turns`, and is not sent."""
        talk.user["max_turns"] = 2
        talk.case = {"assert": [{"conversation_end": "max_turns"}]}
        run = talk.evaluate(first(), NUMBER, step("say", "Thank you!"))

        assert (talk.exit_code, run["conversation"]["end"]) == (0, "max_turns"), talk.output
        assert len(spoken(run)) == 2
        assert "Thank you!" not in json.dumps(run)
        talk.case = {"assert": [{"conversation_end": "goal_reached"}]}
        assert talk.evaluate(first(), NUMBER, step("goal_reached"))["status"] == "pass"

    def test_a_turn_that_fails(self, talk):
        """The user is not asked again, and the run is the agent's failure, also where the case asks for that end."""
        talk.words = ["fail=1"]
        talk.case = {"assert": [{"conversation_end": "agent_failed"}]}
        run = talk.evaluate(first())

        assert (talk.exit_code, run["run_status"], run["conversation"]["end"]) == (1, "failed", "agent_failed")
        assert {one["id"]: one["status"] for one in run["assertions"]} == {
            "conversation_end": "pass",
            "agent_ended_well": "fail",
        }
        assert spoken(run) == [("model", "My teapot is broken!", None)]

    def test_without_a_user_nothing_is_known(self, talk):
        """The assertion is inconclusive in a case of fixed turns."""
        talk.case["input"] = {"turns": [{"role": "user", "content": "4711"}]}
        run = talk.evaluate()

        assert (talk.exit_code, run["assertions"][0]["status"], run["conversation"]) == (3, "inconclusive", {})


@pytest.mark.full
class TestNeverAPass:
    """What keeps the conversation from going on is an error, whatever the assertions say."""

    @pytest.fixture(autouse=True)
    def easy(self, talk):
        """Every assertion would pass."""
        talk.case = {"assertions": [{"type": "tool_not_called", "tool": "close_account"}]}

    def test_the_provider_fails(self, talk):
        """The run is an error with the provider's words; what was said before is in the report, and what it took is counted."""
        run = talk.evaluate(first(), {"error": {"status": 500, "message": "overloaded"}})

        assert (talk.exit_code, run["status"], run["assertions"]) == (4, "error", [])
        assert "the model of the simulated user gave no answer after turn 1" in run["error"]
        assert "overloaded" in run["error"]
        assert spoken(run) == [("model", "My teapot is broken!", "What is the number of the order?")]
        assert run["conversation"]["end"] is None
        assert talk.results["users"]["input_tokens"] == 1000
        assert "broken off after 1 turn" in talk.output

    def test_at_the_beginning(self, talk):
        """The agent is not started."""
        run = talk.evaluate({"error": {"status": 500}})

        assert (talk.exit_code, run["status"]) == (4, "error")
        assert "gave no answer at the beginning" in run["error"]
        assert not list(talk.root.rglob("runs/*/*/*/turns"))

    def test_an_answer_that_is_not_valid(self, talk):
        """A decision without a message is refused, with the validator's words, and the run is an error where that does not help."""
        run = talk.evaluate(first(), *[step("say")] * 3)

        assert (talk.exit_code, run["status"]) == (4, "error")
        assert "malformed" in run["error"]
        assert "`say` needs a `message`" in talk.text()

    def test_a_failure_that_passes(self, talk):
        """What is tried again is asked for as often as the case says, and the conversation goes on."""
        talk.user["retries"] = 1
        run = talk.evaluate(first(), {"error": {"status": 503}}, NUMBER, step("goal_reached"))

        assert (talk.exit_code, len(spoken(run))) == (0, 2), talk.output

    def test_an_agent_that_prints_nothing(self, talk):
        """There is no answer that the user could be given."""
        talk.words = ["mute=1"]
        run = talk.evaluate(first())

        assert (talk.exit_code, run["status"]) == (4, "error")
        assert "the simulated user got no answer to turn 1: the agent's command must print the answer" in run["error"]

    def test_a_key_that_is_missing(self, talk, monkeypatch):
        """It is said before anything starts."""
        monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
        talk.user |= {"provider": "anthropic", "model": "claude-sonnet-5"}
        run = talk.evaluate()

        assert talk.exit_code == 4
        assert "the model of the simulated user cannot be asked" in run["error"]
        assert "ANTHROPIC_API_KEY" in run["error"]

    def test_a_precondition_that_does_not_hold(self, talk):
        """The user's model is not asked at all."""
        talk.case["preconditions"] = [{"type": "env_present", "vars": ["NO_SUCH_VARIABLE"]}]
        run = talk.evaluate()

        assert (talk.exit_code, talk.asked, run["conversation"]) == (4, [], {})


@pytest.mark.full
class TestSettings:
    def test_an_opening_is_the_first_message(self, talk):
        """The model is asked for the second one, and templates of the case have values."""
        talk.user |= {"opening": "Hello from {{case_id}}.", "goal": "Go on, {{case_id}}."}
        run = talk.evaluate(NUMBER, step("goal_reached"))

        assert [(by, text) for by, text, _ in spoken(run)] == [
            ("opening", "Hello from teapot."),
            ("model", "It is 4711."),
        ]
        assert "Go on, teapot." in talk.text()

    def test_personas_and_goals_from_a_dataset(self, talk):
        """Each row is a case: its persona and facts reach the model, and its end decides."""
        talk.write(
            "configs/cases/teapot/people.jsonl",
            '{"id": "ann", "persona": "Ann, polite", "facts": {"order": "4711"}, "end": "goal_reached"}\n'
            '{"id": "bob", "persona": "Bob, in a hurry", "facts": {"order": "none {{odd}}"}, "end": "gave_up"}\n',
        )
        talk.user |= {"persona": "{{row.persona}}", "facts": "{{row.facts}}", "opening": "I am {{row.id}}."}
        talk.case = {"dataset": "people.jsonl", "assert": [{"conversation_end": "{{row.end}}"}]}
        talk.flags = ["--repeat", "2"]
        of_ann = {**NUMBER, "when": {"system": "Ann, polite", "user": "I am ann(?!.*4711)"}, "repeat": True}
        done = {**step("goal_reached"), "when": {"system": "Ann, polite", "user": "4711"}, "repeat": True}
        of_bob = {**step("gave_up"), "when": {"system": "Bob, in a hurry.*none {{odd}}"}, "repeat": True}
        talk.evaluate(of_ann, done, of_bob)

        assert talk.exit_code == 0, talk.output
        ends = {one["case_id"]: [run["conversation"]["end"] for run in one["runs"]] for one in talk.results["cases"]}
        assert ends == {"teapot-ann": ["goal_reached"] * 2, "teapot-bob": ["gave_up"] * 2}
        assert "2 of 2 rows passed" in talk.output

    def test_reuse(self, talk):
        """A run is reused with its conversation while nothing of the user was edited; an edit of any of it runs the agent again."""
        with scripted_model(list(HAPPY) * 2) as model:
            talk.user |= {"base_url": f"{model.url}/v1", "persona": "calm"}
            for persona, reused in (("calm", False), ("calm", True), ("loud", False)):
                talk.user["persona"] = persona
                run = talk.evaluate(reuse=True)
                assert (talk.exit_code, run["reused"], run["conversation"]["end"]) == (0, reused, "goal_reached")
            assert len(model.log) == 6

    def test_what_it_took(self, talk):
        """The project's price counts; what a provider does not report is unknown, and not zero."""
        talk.write("clawtrace.yaml", {"model_pricing": {"user-1": {"input_per_1m": 1, "output_per_1m": 2}}})
        talk.evaluate(*HAPPY)
        assert talk.results["users"]["cost_usd"] == pytest.approx(0.0033)
        talk.evaluate(first(), {**NUMBER, "usage": None}, step("goal_reached"))

        assert talk.results["users"] == {"answers": 3, "input_tokens": None, "output_tokens": None, "cost_usd": None}
        assert "(? tokens, ? for the user)" in talk.output

    def test_what_was_said_before(self, talk):
        """Earlier messages of user and assistant are part of the conversation, for the agent as well; its first message goes on."""
        before = [{"role": "user", "content": "Hello."}, {"role": "assistant", "content": "How can I help?"}]
        talk.messages = before
        run = talk.evaluate(*HAPPY)

        assert talk.exit_code == 0, talk.output
        assert json.loads(talk.asked[0]["messages"][-1]["content"].rpartition("\n\n")[0]) == before
        assert spoken(run)[0][1] == "My teapot is broken!"

    def test_the_budget(self, talk):
        """Tokens of the user count for `--max-tokens`, and what was spent says so."""
        talk.flags = ["--repeat", "2", "--max-tokens", "3200"]
        talk.evaluate(*HAPPY)

        assert "3390 tokens have been used, 3150 of them by judges and simulated users" in " ".join(talk.output.split())


@pytest.mark.full
def test_the_judge_reads_the_conversation(talk):
    """The judge of the profile and `llm_judge` are given what was said, and how it ended."""
    verdict = {"name": "final_result", "arguments": {"evidence": "e", "score": 5}}
    with scripted_model([{"tool_calls": [verdict], "repeat": True}]) as judge:
        profile = {"schema_version": 1, "evaluation_profile_id": "e", "title": "E"}
        judges = [{"judge_id": "j", "type": "llm_probe", "model": "j", "base_url": f"{judge.url}/v1", "retries": 0}]
        runs = [{"judge_run_id": "once", "judge_id": "j"}]
        talk.write("configs/evaluation_profiles/e.yaml", {**profile, "judges": judges, "judge_runs": runs})
        talk.case["assertions"].append(
            {"type": "llm_judge", "target": "conversation", "rubric": "Kind?", "pass_threshold": 4}
        )
        talk.flags = ["--evaluation-profile", "e"]
        talk.evaluate(*HAPPY)
        asked = [json.dumps(one.request["messages"]) for one in judge.log]

    of_assertion, of_run = asked[0], asked[1]
    assert "[end] The simulated user's conversation ended as `goal_reached`" in of_assertion
    for part in (
        "[user] It is 4711.",
        "[agent] Order 4711 is refunded.",
        "ended as `goal_reached`: The money is back.",
    ):
        assert part in of_run


@pytest.mark.full
def test_a_probed_model(talk):
    """`llm_probe`: one server plays the agent's model and the user's; the agent's conversation goes on from turn to turn."""
    talk.runner, talk.models = {"type": "llm_probe"}, [{"model_id": "agent-1"}]
    agent = [
        {"when": {"model": "agent-1"}, "text": "Which order?"},
        {"when": {"model": "agent-1"}, "text": "Refunded."},
    ]
    run = talk.evaluate(*HAPPY, *agent)
    asked = [one["messages"] for one in talk.asked if one["model"] == "agent-1"]

    assert talk.exit_code == 0, talk.output
    assert [text for _, _, text in spoken(run)] == ["Which order?", "Refunded."]
    assert [one["content"] for one in asked[1]] == ["My teapot is broken!", "Which order?", "It is 4711."]
    assert run["totals"]["llm_calls"] == 2


@pytest.mark.full
def test_an_agent_that_already_runs(talk):
    """Each message is one request to a server; its spans are attributed by the turn's trace context."""
    port = free_port()
    talk.write("clawtrace.yaml", {"receiver": {"http_port": port}})
    command = [sys.executable, str(AGENT), "server", f"http://127.0.0.1:{port}"]
    client = (
        "import os, sys, urllib.request as r; print(r.urlopen(r.Request(sys.argv[1], sys.argv[2].encode(), "
        "{'traceparent': os.environ['TRACEPARENT']})).read().decode())"
    )
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            url = f"http://127.0.0.1:{int(server.stdout.readline())}"
            talk.runner = {
                "type": "command",
                "agent": "running",
                "command": [sys.executable, "-c", client, url, "{{message}}"],
            }
            talk.case["assertions"].append({"type": "tool_call_count", "tool": "refund", "count": 1, "turn": 2})
            run = talk.evaluate(*HAPPY)
        finally:
            server.kill()

    assert (talk.exit_code, run["trace"]["closed_by"], len(spoken(run))) == (0, "evidence", 2), talk.output
    assert run["totals"]["llm_calls"] == 2


@pytest.mark.full
def test_a_cassette_plays_the_user_as_well(talk):
    """Recorded once, the conversation is replayed with no provider; another goal was not recorded."""
    talk.runner, talk.models = {"type": "llm_probe"}, [{"model_id": "agent-1"}]
    talk.case["cassette"] = {"path": "talk.yaml", "mode": "replay"}
    talk.flags = ["--cassette-mode", "record"]
    agent = [{"when": {"model": "agent-1"}, "text": text} for text in ("Which order?", "Refunded.")]
    recorded = talk.evaluate(*HAPPY, *agent)
    talk.flags = []
    replayed = talk.evaluate()

    assert (recorded["conversation"]["end"], talk.exit_code, talk.asked) == ("goal_reached", 0, [])
    assert spoken(replayed) == spoken(recorded)
    assert replayed["conversation"]["end"] == "goal_reached"

    talk.user["goal"] = "Get a new teapot."
    missed = talk.evaluate()

    assert (talk.exit_code, missed["status"], talk.asked) == (4, "error", [])
    assert "was not recorded in configs/cases/teapot/talk.yaml" in missed["error"]
    assert "Your goal: Get a new teapot." in missed["error"]
