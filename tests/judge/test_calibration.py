"""`clawtrace judge calibrate`: judges against people, and what a profile's demands do to verdicts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.judge.conftest import answer, failure, says

from clawtrace.cli.main import cli
from clawtrace.testing import load_script, scripted_model

pytestmark = pytest.mark.full

ROOT = Path(__file__).parents[2]
PEOPLE = {"a": 9, "b": 8, "c": 3, "d": 2}
EXAMPLES = {
    "schema_version": 1,
    "title": "T",
    "task": "Write.",
    "examples": [
        {"example_id": name, "answer": f"work-{name}" + " and more" * place, "score": score}
        for place, (name, score) in enumerate(PEOPLE.items())
    ],
}


@pytest.fixture
def calibrate(project, monkeypatch):
    """Calibrate the judge of the profile, who gives each example these scores in turn; return exit code, JSON and requests."""
    project.profile |= {"aggregation": {"pass_threshold": 7}, "calibration": {"examples": "people.yaml"}}
    project.judge["base_url"] = None  # another address would be another judge
    project.write("configs/evaluation_profiles/people.yaml", EXAMPLES)
    monkeypatch.setenv("OPENROUTER_API_KEY", "k")
    write_all = project.write_all

    def write(url: str) -> None:
        monkeypatch.setenv("OPENROUTER_BASE_URL", f"{url}/v1")
        write_all(url)

    monkeypatch.setattr(project, "write_all", write)

    def run(scores: dict[str, list], *flags: str, demands: dict | None = None, **more):
        project.profile["calibration"] |= demands or {}
        steps = [
            {**(one if isinstance(one, dict) else says(answer(one, **more))), "when": {"user": f"work-{name}"}}
            for name, given in scores.items()
            for one in given
        ]
        with scripted_model(steps) as model:
            project.write_all(model.url)
            command = ["judge", "calibrate", "--evaluation-profile", "e", "--json", *flags]
            ended = CliRunner().invoke(cli, command, prog_name="clawtrace")
            asked = [one.request for one in model.log]
        found = json.loads(ended.stdout) if ended.exit_code in (0, 1) else {"error": ended.output}
        return ended.exit_code, found, asked

    return run


def prompt_of(request: dict) -> str:
    return "\n".join(str(one["content"]) for one in request["messages"])


def agreement(found: dict) -> dict:
    return found["judges"][0]["agreement"]


@pytest.mark.smoke
def test_what_is_measured(calibrate):
    """Agreement on pass and fail, of ranks and of scores; too kind by one; each asked once and once in the reverse order."""
    code, found, asked = calibrate({"a": [10, 9], "b": [9, 8], "c": [4, 3], "d": [3, 2]})

    assert code == 0
    assert agreement(found) == {
        "examples": 4, "kappa": 1, "spearman": 1, "mean_absolute_error": 1, "bias": 1, "spread": None,
        "position_bias": -1, "length_bias": None, "kappa_interval": [1, 1], "spearman_interval": [1, 1],
        "mean_absolute_error_interval": [1, 1],
    }  # fmt: skip
    assert len(asked) == 8
    prompts = [prompt_of(one) for one in asked if "work-a" in prompt_of(one)]
    assert [text.index("## What the agent was asked") < text.index("## The agent's final") for text in prompts] == [
        True,
        False,
    ]


def test_spread_and_length(calibrate, project):
    """Three answers a letter, their median counts; the longer the work, the kinder the judge."""
    project.profile["judge_runs"] = [{"judge_run_id": "main", "judge_id": "j", "repetitions": 3}]
    _, found, _ = calibrate({"a": [9, 9, 9, 9], "b": [8, 9, 10, 9], "c": [5, 5, 5, 5], "d": [5, 5, 8, 5]})
    measured = agreement(found)

    assert [one["judge"] for one in found["judges"][0]["scores"]] == [9, 9, 5, 5]
    assert (measured["spread"], measured["length_bias"]) == (1.25, 1)


def test_without_a_threshold_kappa_weighs_whole_points(calibrate, project):
    """One of four off by one point is nearly full agreement."""
    project.profile["aggregation"] = {"method": "mean"}
    _, found, _ = calibrate({"a": [9, 9], "b": [8, 8], "c": [3, 3], "d": [3, 3]})

    assert 0.97 < agreement(found)["kappa"] < 1


def test_a_limited_cost(calibrate, project):
    """Once it is spent no judge is asked, and nothing is measured; what was answered is kept for the next time."""
    project.write("clawtrace.yaml", {"model_pricing": {"acme/judge-1": {"input_per_1k": 1000, "output_per_1k": 0}}})
    scores = {"a": [9, 9], "b": [8, 8], "c": [3, 3], "d": [2, 2]}
    code, found, asked = calibrate(scores, "--max-cost", "0.001", "--concurrency", "1")

    assert (code, len(asked)) == (4, 1)
    assert "USD have been spent" in found["error"]
    assert "`--max-cost` is 0.001" in found["error"]
    code, _, rest = calibrate(scores)
    assert (code, len(rest)) == (0, 7)


def test_validate_says_what_a_judge_lacks(calibrate, project):
    """Not calibrated, then with too little agreement, then edited: a warning each; nothing once it agrees."""
    project.profile["calibration"] |= {"examples": "../calibration/people.yaml", "min_kappa": 0.6}
    (project.root / "configs/evaluation_profiles/people.yaml").unlink()
    project.write("configs/calibration/people.yaml", EXAMPLES)
    project.write_all("http://127.0.0.1:9")

    def warned(*more: str) -> str:
        ended = CliRunner().invoke(cli, ["validate", *more], prog_name="clawtrace")
        assert ended.exit_code == 0, ended.output
        return ended.stdout

    assert "The judge `j` was not calibrated" in warned()
    assert calibrate({"a": [3, 3], "b": [9, 9], "c": [8, 8], "d": [2, 2]})[0] == 1
    assert "kappa is 0, at least 0.6 is demanded. Its verdicts are inconclusive." in warned()
    assert "kappa is 0" in warned("configs/evaluation_profiles/e.yaml")
    assert "kappa is 0" in warned("--suite", "s", "--evaluation-profile", "e")
    assert calibrate({"a": [9, 9], "b": [8, 8], "c": [3, 3], "d": [2, 2]}, "--no-reuse")[0] == 0
    assert "kappa" not in warned()
    project.write("configs/calibration/people.yaml", {**EXAMPLES, "title": "Edited"})
    assert "edited since it was calibrated" in warned()


@pytest.mark.full
def test_a_judge_decides_once_it_agrees(calibrate, project):
    """Uncalibrated, with too little agreement, or with edited examples its verdict is inconclusive; else its score decides."""
    project.profile["calibration"]["min_kappa"] = 0.6

    def judged() -> tuple[int, str, str]:
        found = project.evaluate(says(answer(8)), reuse=True)
        return found.exit_code, found.verdict()["missing"], found.verdict()["message"]

    code, missing, message = judged()
    assert (code, missing) == (3, "judge.agreement")
    assert "run `clawtrace judge calibrate --evaluation-profile e`" in message

    assert calibrate({"a": [3, 3], "b": [9, 9], "c": [8, 8], "d": [2, 2]})[0] == 1
    code, missing, message = judged()
    assert (code, missing) == (3, "judge.agreement")
    assert "kappa is 0, at least 0.6 is demanded" in message

    assert calibrate({"a": [9, 9], "b": [8, 8], "c": [3, 3], "d": [2, 2]}, "--no-reuse")[0] == 0
    assert judged()[:2] == (0, "")

    project.write("configs/evaluation_profiles/people.yaml", {**EXAMPLES, "title": "Edited"})
    code, missing, message = judged()
    assert (code, missing) == (3, "judge.agreement")
    assert "edited since it was calibrated" in message


def test_what_a_judge_is_sent_of_an_example(calibrate, project):
    """What it is sent of a run: task, expectations, rubric, process and answer; not people's score."""
    scale = {"min": 1, "max": 5}
    criterion = {"name": "Tone", "what_good_looks_like": "Warm.", "what_bad_looks_like": "Stiff."}
    own = {"example_id": "own", "task": "Draw.", "answer": "work-own", "process": "It used a pencil.", "score": 4.25}
    project.profile["aggregation"]["pass_threshold"] = 3
    project.write("configs/evaluation_profiles/people.yaml", {
        **EXAMPLES,
        "expectations": {
            "hard_expectations": [{"text": "Has a line.", "weight": 3}], "soft_expectations": [{"text": "Is kind.", "weight": 2}],
        },
        "rubric": {
            "version": 1, "scale": scale, "anchors": {"5": "Flawless."}, "criteria": [criterion], "scoring_instructions": "Cap at 2.",
        },
        "examples": [{"example_id": "a", "answer": "work-a", "score": 2}, own],
    })  # fmt: skip
    code, _, asked = calibrate({"a": [2, 2], "own": [4, 4]}, hard=[True], soft=[3])
    (text, _) = [prompt_of(one) for one in asked if "work-own" in prompt_of(one)]

    assert code == 0
    for part in (
        "[user] Draw.", "1. Has a line. (weight 3)", "1. Is kind. (weight 2)", "Scale: 1 to 5.", "5: Flawless.", "good: Warm.",
        "bad: Stiff.", "Cap at 2.", "It used a pencil.", "work-own",
    ):  # fmt: skip
        assert part in text
    assert "4.25" not in text


@pytest.mark.parametrize(
    "demand",
    [{"min_kappa": 0.5}, {"min_spearman": 0.9}, {"max_mean_absolute_error": 0.5}],
    ids=lambda one: next(iter(one)),
)
def test_each_demand_is_measured_by_itself(calibrate, demand):
    """A judge that mixes up good and bad meets none of them."""
    code, found, _ = calibrate({"a": [3, 3], "b": [9, 9], "c": [8, 8], "d": [2, 2]}, demands=demand)

    assert code == 1
    assert len(found["judges"][0]["unmet"]) == 1


def test_an_outage_is_no_calibration(calibrate, project):
    """Nothing is kept as measured, and the command says which example has no answer."""
    project.judge["retries"] = 0
    code, found, _ = calibrate({"a": [9, 9], "b": [failure(503)], "c": [3, 3], "d": [2, 2]})

    assert code == 4
    assert "the example `b`: The judge gave no answer (outage)" in found["error"]
    assert not (project.root / "configs/evaluation_profiles/e.calibration.json").exists()


def test_what_is_known_is_not_asked_again(calibrate):
    """A second calibration asks nothing; with --no-reuse everything."""
    scores = {"a": [9, 9], "b": [8, 8], "c": [3, 3], "d": [2, 2]}
    asked = [len(calibrate(scores, *flags)[2]) for flags in ((), (), ("--no-reuse",))]

    assert asked == [8, 0, 8]


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        ({"examples": []}, "examples"),
        ({"rubric": {"scale": {"min": 1, "max": 5}}}, "outside of the scale, 1 to 5"),
        ({"task": None}, "has no `task`"),
    ],
)
def test_examples_that_are_wrong(calibrate, project, edit, said):
    """They are refused with their place before anybody is asked."""
    project.write("configs/evaluation_profiles/people.yaml", {**EXAMPLES, **edit})
    code, found, asked = calibrate({})

    assert (code, asked) == (2, [])
    assert said in found["error"]


def test_the_bundled_set_measures_what_the_docs_say(tmp_path, monkeypatch):
    """The table in docs/judging.md and the record of the profile `judged` are what the scripted judge's answers amount to."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "configs").mkdir()
    for name in ("calibration/letters.yaml", "evaluation_profiles/judged.yaml"):
        copy = tmp_path / "configs" / name
        copy.parent.mkdir()
        copy.write_text((ROOT / "configs" / name).read_text())
    with scripted_model(load_script(ROOT / "configs/calibration/judge.yaml")) as model:
        env = {"OPENAI_BASE_URL": f"{model.url}/v1", "OPENAI_API_KEY": "k"}
        command = ["judge", "calibrate", "--evaluation-profile", "judged"]
        ended = CliRunner().invoke(cli, command, prog_name="clawtrace", env=env)

    assert ended.exit_code == 0, ended.output
    record = "configs/evaluation_profiles/judged.calibration.json"
    assert json.loads((tmp_path / record).read_text()) == json.loads((ROOT / record).read_text())
    table = ended.stdout.partition("\n\n")[0]
    assert table in (ROOT / "docs/judging.md").read_text()
