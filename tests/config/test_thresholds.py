"""`thresholds:` of a suite (spec: config.md §6)."""

from __future__ import annotations

import pytest

SUITE = "configs/suites/main.yaml"


def test_defaults(files):
    """Without the key there are none; an empty one asks for nothing and is exact about incomplete runs."""
    files.case("a")
    files.suite()
    assert files.load().config.thresholds is None
    files.suite("thresholds: {}\n")
    found = files.load().config.thresholds

    assert (found.default, found.models, found.tolerance, found.behavior, found.incomplete) == (
        None, {}, 0.0, "error", "error",
    )  # fmt: skip


def test_every_field(files):
    """All fields are read; a whole number is a rate as well."""
    files.case("a")
    files.suite(
        "models: [{model_id: big}]\nthresholds:\n  default: 1\n  models: {big: 0.5}\n  tolerance: 0.05\n"
        "  behavior: informational\n  incomplete: warn\n"
    )
    found = files.load().config.thresholds

    assert (found.default, found.models, found.tolerance, found.behavior, found.incomplete) == (
        1.0, {"big": 0.5}, 0.05, "informational", "warn",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("thresholds", "problem"),
    [
        ("{defalt: 1}", "4:14: `thresholds.defalt` is not a known key; known are `default`, "),
        ("{default: 90}", "4:23: `thresholds.default` must be less than or equal to 1, found 90"),
        ("{default: high}", "4:23: `thresholds.default` must be a number, found 'high'"),
        ("{models: {big: 2}}", "4:22: `thresholds.models` the pass rate of `big` must be between 0 and 1, found 2"),
        ("{models: {bigg: 0.5}}", "4:23: `thresholds.models.bigg` names a model that the suite does not list; it lists `big`."),
        ("{tolerance: -0.1}", "4:25: `thresholds.tolerance` must be greater than or equal to 0, found -0.1"),
        ("{behavior: eror}", "4:24: `thresholds.behavior` found 'eror', valid is 'error' or 'informational'. Did you mean"),
        ("{incomplete: warning}", "4:26: `thresholds.incomplete` found 'warning', valid is 'error' or 'warn'. Did you mean"),
    ],
)  # fmt: skip
def test_mistakes_are_at_their_place(files, thresholds, problem):
    """Each mistake is one problem at its line and column, with what would be valid."""
    files.case("a")
    files.suite(f"thresholds: {thresholds}\nmodels: [{{model_id: big}}]\n")

    (found,) = files.problems()
    assert found.startswith(f"{SUITE}:{problem}"), found


def test_a_near_model_is_suggested(files):
    """A threshold of a model that is not listed is at its key, with the nearest model."""
    files.case("a")
    files.suite("models: [{model_id: big}]\nthresholds: {models: {bigg: 0.5}}\n")

    assert files.problems() == [
        f"{SUITE}:5:23: `thresholds.models.bigg` names a model that the suite does not list; it lists `big`. "
        "Did you mean `big`?"
    ]
