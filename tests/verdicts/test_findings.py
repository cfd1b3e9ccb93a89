"""Small recordings that were once answered wrongly, each with what truly happened and assertions about it."""

from pathlib import Path

import pytest

from clawtrace.assertions.registry import parse_assertion
from clawtrace.model.verdict import Status
from clawtrace.receiver.recordings.recording import Grouping
from clawtrace.session.session import Session
from clawtrace.support.yaml_reading import read_yaml

FINDINGS = sorted((Path(__file__).parent / "findings").iterdir())
FALSE = ("_false", "_less")
"""Endings of the ids of assertions that are not true."""


def is_false(name):
    return name.startswith(("did_", "nless_")) or any(ending in name for ending in FALSE)


@pytest.mark.parametrize("folder", FINDINGS, ids=lambda folder: folder.name)
def test_no_verdict_on_a_finding_contradicts_what_happened(folder):
    """What is not true never passes, what is true never fails; the spans may leave either open."""
    asked = read_yaml((folder / "assertions.yaml").read_text(encoding="utf-8"))["assertions"]
    parsed = [parse_assertion(dict(one)) for one in asked]
    with Session.open() as session:
        session.load_recordings([folder], Grouping("one", "r"))
        (result,) = session.evaluate(["r"], parsed)
    contrary = [
        (one.id, one.message)
        for one in result.verdicts
        if one.status is (Status.PASS if is_false(one.id) else Status.FAIL)
    ]

    assert contrary == []
