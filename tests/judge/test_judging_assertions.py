"""`llm_judge` and `agent_identity_consistent`: each answered by the scripted model, about a real folder."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.judge.conftest import failure, says

from clawtrace.assertions.registry import InvalidAssertionError, parse_assertion
from clawtrace.assertions.world import World
from clawtrace.errors import ClawtraceError
from clawtrace.judge.judging import Judging
from clawtrace.judge.panel import Judge, Panel
from clawtrace.pricing import Pricing
from clawtrace.providers import asking
from clawtrace.providers.asking import AskedModel
from clawtrace.providers.models import choose_model
from clawtrace.testing import scripted_model

JUDGE = {"type": "llm_judge", "rubric": "Score 1-5: Is it kind?", "path": "draft.md"}
IDENTITY = {"type": "agent_identity_consistent", "output_path": "draft.md", "soul_path": "SOUL.md"}


@pytest.fixture
def asked(tmp_path: Path, monkeypatch):
    """Ask an assertion about a folder, of judges who say the steps; return the finding and the requests."""
    monkeypatch.setattr(asking, "FIRST_PAUSE_SECONDS", 0.01)
    workspace, case = tmp_path / "workspace", tmp_path / "case"
    workspace.mkdir()
    case.mkdir()
    (case / "SOUL.md").write_text("You are Nell, a kind gardener.")
    (workspace / "draft.md").write_text("# Greeting\n\nDear all\n\n## Thanks\n\nThank you\n\n# Terms\n\nPay now\n")

    def ask(fields, *steps, judges=("main",), doubts=(), **world):
        with scripted_model(
            [one if isinstance(one, dict) else says({"evidence": "e", "score": one}) for one in steps]
        ) as model:
            of = [
                Judge(name, AskedModel(choose_model(f"acme/{name}", base_url=f"{model.url}/v1"), retries=0))
                for name in judges
            ]
            judging = Judging(Panel(tuple(of), doubts=dict(doubts)), {}, Pricing())
            probe = parse_assertion({"id": "x", **fields})
            finding = probe.probe(
                World(
                    "r1", workspace=workspace, case_dir=case, folder=tmp_path / "run", judge=judging.opinions
                )._replace(**world)
            )
            return finding, [one.request for one in model.log]

    return ask


def prompt_of(request) -> str:
    return "\n".join(str(one["content"]) for one in request["messages"])


@pytest.mark.parametrize(("score", "holds"), [(3, True), (2.5, False)])
def test_a_score_reaches_the_threshold_or_not(asked, score, holds):
    """3 of 5 is enough where nothing else is said; the evidence is in the sentence."""
    finding, requests = asked(JUDGE, score)

    assert finding.holds is holds
    assert finding.sentence == f"The judge scored {score} on the scale 1 to 5, expected at least 3: e."
    assert "Score 1-5: Is it kind?" in prompt_of(requests[0])


def test_the_text_is_quoted(asked):
    """The file stands between the lines of a quotation, and its orders with it."""
    _, (request,) = asked(JUDGE, 3)
    system, prompt = (str(one["content"]) for one in request["messages"])
    key = system.partition("the key is ")[2][:16]

    assert f"<<<DATA {key} The text to judge\n# Greeting" in prompt
    assert prompt.index("Pay now") < prompt.index(f"DATA {key}>>>")


def test_a_section_is_cut_out(asked):
    """From its heading to the next one of its level; what is not there fails without asking."""
    _, (request,) = asked({**JUDGE, "section": "greeting"}, 3)
    assert "Dear all\n\n## Thanks\n\nThank you\nDATA" in prompt_of(request)
    assert "Pay now" not in prompt_of(request)

    finding, requests = asked({**JUDGE, "section": "Legal"})
    assert (finding.holds, finding.sentence, requests) == (False, "`draft.md` lacks the section 'Legal'.", [])


def test_a_missing_file_fails_without_asking(asked):
    """So does one of the identity."""
    for fields in ({**JUDGE, "path": "other.md"}, {**IDENTITY, "output_path": "other.md"}):
        finding, requests = asked(fields)
        assert (finding.holds, finding.sentence, requests) == (False, "`other.md` does not exist.", [])


@pytest.mark.parametrize(
    ("consistency", "scores", "holds"),
    [
        (True, (3, 4, 5), True),
        (True, (5, 5, 2), False),
        ({"runs": 4, "min_passes": 2}, (1, 4, 1, 4), True),
        ({"runs": 4, "min_passes": 2}, (1, 4, 1, 1), False),
    ],
)
def test_consistency_asks_several_times(asked, consistency, scores, holds):
    """`true` is three answers that must all reach the threshold."""
    finding, requests = asked({**JUDGE, "consistency": consistency}, *scores)

    assert (finding.holds, len(requests)) == (holds, len(scores))
    assert finding.actual["scores"] == list(scores)


def test_an_answer_that_did_not_come_decides_nothing(asked):
    """Two of three reach the threshold and the provider fails: an error; where it cannot change the answer, there is one."""
    with pytest.raises(ClawtraceError, match="gave no answer \\(outage\\)"):
        asked({**JUDGE, "consistency": True}, 5, 5, failure(503))
    finding, _ = asked({**JUDGE, "consistency": True}, 1, failure(503))
    assert finding.holds is False


def test_other_targets(asked):
    """The final answer and the conversation are judged; what is not recorded is unknown, and an empty answer fails."""
    final = {"type": "llm_judge", "rubric": "Kind?", "target": "final_response"}
    talk = {**final, "target": "conversation"}

    assert "Hello there" in prompt_of(asked(final, 4, final_output="Hello there")[1][0])
    assert "[user] Hi" in prompt_of(asked(talk, 4, conversation=lambda: "[user] Hi")[1][0])
    assert asked(final)[0].missing == "runs.final_output"
    assert asked(talk, conversation=lambda: None)[0].missing == "messages.text"
    assert asked(final, final_output=" ")[0].holds is False


def test_the_persona_is_sent_and_decides(asked):
    """SOUL.md is part of the question, the agent's file of the quotation."""
    finding, (request,) = asked(IDENTITY, 2)

    assert finding.holds is False
    prompt = str(request["messages"][1]["content"])
    assert prompt.index("You are Nell") < prompt.index("<<<DATA") < prompt.index("Dear all")


def test_a_judge_is_named(asked):
    """The first one of the profile is asked unless another one is named."""
    assert asked(JUDGE, 3, judges=("a", "b"))[1][0]["model"] == "acme/a"
    assert asked({**JUDGE, "judge": "b"}, 3, judges=("a", "b"))[1][0]["model"] == "acme/b"


def test_a_judge_in_doubt_decides_nothing(asked):
    """Whatever it scores, the assertion is undecided."""
    finding, _ = asked(JUDGE, 5, doubts={"main": "It does not agree with people."})

    assert (finding.holds, finding.missing, finding.sentence) == (
        None,
        "judge.agreement",
        "It does not agree with people.",
    )


def test_without_a_judge_it_is_an_error(asked):
    """It is never a pass."""
    with pytest.raises(ClawtraceError, match="no judge"):
        asked(JUDGE, judge=None)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"path": None}, "one of `path` and `target: final_response|conversation` says what is judged"),
        ({"target": "conversation"}, "`path` and `section` name a file, but `target` is 'conversation'"),
        ({"scale": [5, 1]}, "`scale` must rise"),
        ({"pass_threshold": 6}, "must be above the worst score and up to the best: 1 to 5"),
        ({"pass_threshold": 1}, "must be above the worst score"),
        ({"consistency": {"runs": 2, "min_passes": 3}}, "`min_passes` (3) is greater than `runs` (2)"),
    ],
)
def test_what_cannot_be_meant(fields, message):
    """A threshold that every score reaches would be a pass whatever the judge says."""
    with pytest.raises(InvalidAssertionError) as caught:
        parse_assertion({key: value for key, value in {**JUDGE, **fields}.items() if value is not None})
    assert message in str(caught.value)


@pytest.mark.full
def test_from_a_suite(project, query):
    """The assertion's score gates the case and is a row of the store; a profile without judges is refused."""
    project.profile = {}
    project.case["assertions"] = [{**JUDGE, "id": "kind", "path": "report.md"}]
    found = project.evaluate(says({"evidence": "cold", "score": 2}))

    assert (found.exit_code, found.verdict("kind")["status"]) == (1, "fail")
    assert query("SELECT asked_by, score, raw_score FROM judgements") == [
        {"asked_by": "kind", "score": 2.5, "raw_score": 2}
    ]
    project.case["assertions"][0]["judge"] = "k"
    refused = project.evaluate()
    assert refused.exit_code == 2
    assert "names the judge 'k'; the evaluation profile lists `j`" in refused.output.replace("\n", " ")


@pytest.mark.full
def test_conversation_from_spans(project):
    """What the last model call was sent and answered is judged."""
    project.words = ["input=What are tides?"]
    project.profile = {}
    project.case["assertions"] = [{"type": "llm_judge", "rubric": "Kind?", "target": "conversation", "id": "talk"}]
    found = project.evaluate(says({"evidence": "warm", "score": 4}))

    assert found.verdict("talk")["status"] == "pass"
    assert "[user] What are tides?\n[assistant] The report is in report.md." in found.prompt()
