"""What a path leaves out of recorded arguments, whatever they turn out to be; and what is no path."""

from __future__ import annotations

import copy

import pytest

from clawtrace.assertions.matching.arguments import match_arguments
from clawtrace.assertions.matching.json_path import parse_path, without

VALUE = {
    "city": "Paris",
    "days": [1, 2, 3],
    "it's": {"deep": 1},
    "legs": [{"id": 7, "to": "Rome"}, {"id": 8, "to": "Oslo", "via": [{"id": 9}]}],
}


def left(*paths: str, value=VALUE):
    return without(value, tuple(map(parse_path, paths)))


@pytest.mark.parametrize(
    ("path", "change"),
    [
        ("$.city", {"city": None}),
        ("$['city']", {"city": None}),
        ('$["city"]', {"city": None}),
        (r"$['it\'s']", {"it's": None}),
        ("$['it\\'s'].deep", {"it's": {}}),
        ("$.days[0]", {"days": [2, 3]}),
        ("$.days[2]", {"days": [1, 2]}),
        ("$.days[-1]", {"days": [1, 2]}),
        ("$.days[-3]", {"days": [2, 3]}),
        ("$.days[*]", {"days": []}),
        ("$.days.*", {"days": []}),
        ("$.legs[*].id", {"legs": [{"to": "Rome"}, {"to": "Oslo", "via": [{"id": 9}]}]}),
        ("$..id", {"legs": [{"to": "Rome"}, {"to": "Oslo", "via": [{}]}]}),
        ("$..via[0]", {"legs": [{"id": 7, "to": "Rome"}, {"id": 8, "to": "Oslo", "via": []}]}),
    ],
)
def test_what_a_path_selects_is_left_out(path, change):
    expected = {key: change.get(key, value) for key, value in VALUE.items() if change.get(key, value) is not None}

    assert left(path) == expected


@pytest.mark.parametrize(
    "path",
    ["$.days[3]", "$.days[-4]", "$.days.city", "$.city[0]", "$.city[*]", "$.city.x", "$.nothing", "$[0]", "$..nothing",
     "$.legs.id", "$['days'].nothing.more"],
)  # fmt: skip
def test_a_path_that_selects_nothing_changes_nothing(path):
    """An index past either end, a name in a list, an index in an object, and anything in a text."""
    assert left(path) == VALUE


def test_the_recorded_value_stays_as_it_is():
    value = copy.deepcopy(VALUE)
    left("$..id", "$.days[0]", value=value)

    assert value == VALUE
    assert left(value=value) is value


def test_each_path_sees_what_the_ones_before_it_left():
    assert left("$.days[0]", "$.days[0]")["days"] == [3]


def test_every_element_goes_however_many_there_are():
    assert left("$[*]", value=[1, [2], {"a": 3}]) == []
    assert left("$.*", value={"a": 1, "b": 2}) == {}


def test_a_value_that_is_nested_deeply_is_searched():
    value: dict = {"id": 1}
    for _ in range(300):
        value = {"next": [value], "id": 1}

    assert "'id'" not in repr(left("$..id", value=value))


def test_arguments_that_are_nested_deeply_are_compared():
    """An agent's arguments break no evaluation, however deep they are."""
    deep = "[" * 700 + "]" * 700

    assert match_arguments({"city": "Paris"}, f'{{"city": "Paris", "x": {deep}}}', ignore=["$.when"]) is True


@pytest.mark.parametrize("path", ["", "$", "city", "$city", "$.", "$.1st", "$[a]", "$.days[0:2]", "$[?(@.a)]", "$.a b"])
def test_what_is_outside_of_the_supported_part_is_refused(path):
    with pytest.raises(ValueError, match=r"path starts at|cannot be read at character"):
        parse_path(path)


def test_a_mistake_is_reported_with_its_place():
    with pytest.raises(ValueError, match="cannot be read at character 7"):
        parse_path("$.days[x]")
