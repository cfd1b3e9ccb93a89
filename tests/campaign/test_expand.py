"""A plan is suite × models × cases × repetitions, each run with a distinct id (spec: config.md §2, §5)."""

from __future__ import annotations

import re

import pytest

from clawtrace.campaign.planning.expand import expand
from clawtrace.config.loading.suite_file import load_suite
from clawtrace.config.projects.project_file import load_project
from clawtrace.errors import UsageError

MODELS = "[{model_id: big}, {model_id: small}]"


@pytest.fixture(autouse=True)
def _cases(project):
    project.case("a", "exit 0", tags="smoke")
    project.case("b", "exit 0", tags="smoke, slow")


def places(plan) -> list[str]:
    return [run.folder.removeprefix("runs/") for run in plan.runs]


def test_everything_is_multiplied_in_order(project):
    """Models outermost, then cases as selected, then repetitions."""
    plan = project.plan("{run_repetitions: 2, max_concurrency: 3}", MODELS)

    assert places(plan) == [
        "big/a/1",
        "big/a/2",
        "big/b/1",
        "big/b/2",
        "small/a/1",
        "small/a/2",
        "small/b/1",
        "small/b/2",
    ]
    assert plan.max_concurrency == 3
    assert all(re.fullmatch(r"s/(big|small)/[ab]/[12]-[0-9a-f]{8}", run.run_id) for run in plan.runs)
    assert len({run.run_id for run in plan.runs}) == 8


def test_no_models_is_one_null_model(project):
    """Without models a case runs once, and its model is null."""
    plan = project.plan()

    assert places(plan) == ["-/a/1", "-/b/1"]
    assert [run.model_id for run in plan.runs] == [None, None]


def test_flags_narrow_the_plan(project):
    """`--case`, `--tag`, `--model`, `--repeat` and `--concurrency` go before the files."""
    plan = project.plan("{run_repetitions: 5}", MODELS, cases=["b"], models=["small"], repetitions=1, concurrency=7)

    assert places(plan) == ["small/b/1"]
    assert plan.max_concurrency == 7
    assert places(project.plan(tags=["slow"])) == ["-/b/1"]


@pytest.mark.parametrize(
    ("narrowing", "expected"),
    [
        ({"cases": ["[b-z]"]}, ["-/b/1"]),
        ({"cases": ["*", "b"]}, ["-/a/1", "-/b/1"]),
        ({"tags": ["sl?w"]}, ["-/b/1"]),
        ({"models": ["sm*"]}, ["small/a/1", "small/b/1"]),
    ],
)
def test_flags_take_globs(project, narrowing, expected):
    """A pattern stands for every id that it matches."""
    plan = project.plan("{}", MODELS, **narrowing) if "models" in narrowing else project.plan(**narrowing)

    assert places(plan) == expected


@pytest.mark.parametrize(
    ("narrowing", "message"),
    [
        ({"cases": ["c"]}, r"the suite `s` selects no case 'c'; it has: a, b\."),
        ({"cases": ["c*"]}, r"selects no case 'c\*'; it has: a, b\."),
        ({"tags": ["smok"]}, r"selects no tag 'smok'; it has: slow, smoke\. Did you mean `smoke`\?"),
        ({"models": ["big"]}, r"selects no model 'big'; it lists no models: leave `--model` out"),
        ({"cases": ["a"], "tags": ["slow"]}, "no case of the suite `s` matches both"),
        ({"repetitions": 0}, "at least 1"),
    ],
)
def test_flags_that_select_nothing_are_errors(project, narrowing, message):
    """A word that the suite does not have is a usage error, never an empty success."""
    with pytest.raises(UsageError, match=message):
        project.plan(**narrowing)


def test_the_folder_follows_what_changes_the_agents(project):
    """Scheduling keeps the campaign's folder, runner settings change it."""
    first = project.plan().folder
    again = project.plan("{max_concurrency: 4, run_repetitions: 3}").folder
    profile = project.root / "configs/run_profiles/p.yaml"

    assert first == again
    assert re.fullmatch(r"p-[0-9a-f]{12}", first.name)
    assert first.parent == project.root / "outputs/campaigns/s"
    profile.write_text(profile.read_text() + "runner_defaults: {timeout_seconds: 9}\n")
    suite = load_suite("s", load_project(project.root, {}), {}, run_profile="p")
    assert expand(suite).folder != first
