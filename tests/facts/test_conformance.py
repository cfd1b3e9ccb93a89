"""Every recording against its truth: nothing is wrong, and what is unknown has a listed reason.

A fact that the recording lacks is None, and its reason stands in `unknown.yaml` in the folder of its client (by a glob of
scenarios) or, where it holds for several clients, in this folder (by a glob of ``client/scenario``). A fact that is there and
differs is wrong. A new recording is a new folder in tests/recordings; no list is edited.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import conformance
import pytest
import yaml

HERE = Path(__file__).parent
RECORDINGS = HERE.parent / "recordings"
SHARED = HERE.parents[1].parent / "shared"
CORPUS = SHARED / "corpus"
STRANGERS = SHARED / "strangers"

TO_MEND: set[str] = set()
"""Clients of the strangers' folder of which a fact is still wrong. One that no longer is must leave this set."""


def _unknown() -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = yaml.safe_load((HERE / "unknown.yaml").read_text(encoding="utf-8"))
    for path in sorted(RECORDINGS.glob("*/unknown.yaml")):
        own = yaml.safe_load(path.read_text(encoding="utf-8"))
        found |= {f"{path.parent.name}/{key}": entries for key, entries in own.items()}
    return found


UNKNOWN = _unknown()

_OF_CORPUS = conformance.recordings(CORPUS)
_CORPUS_NAMES = set(map(conformance.name, _OF_CORPUS))
CASES = [
    *_OF_CORPUS,
    *(path for path in conformance.recordings(RECORDINGS) if conformance.name(path) not in _CORPUS_NAMES),
]
OF_STRANGERS = conformance.recordings(STRANGERS)


@pytest.fixture(scope="module")
def inspected() -> dict[Path, dict[str, Any]]:
    """What `clawtrace inspect --json` says of each recording; the folders hold recordings of the same names."""
    found: dict[Path, dict[str, Any]] = {}
    for paths in (CASES, OF_STRANGERS):
        runs = conformance.inspect(paths)
        found |= {path: runs[conformance.name(path)] for path in paths}
    return found


@pytest.mark.parametrize("path", CASES, ids=conformance.name)
def test_recording_against_its_truth(path: Path, inspected: dict[Path, dict[str, Any]]) -> None:
    """Each fact is true, or unknown for a listed reason."""
    facts = conformance.compare(path, inspected[path])

    assert _of(facts, "wrong") == {}
    assert _unlisted(path, facts) == set()


@pytest.mark.parametrize(
    "path", [path for path in OF_STRANGERS if path.parent.name not in TO_MEND], ids=conformance.name
)
def test_recording_of_a_stranger(path: Path, inspected: dict[Path, dict[str, Any]]) -> None:
    """No fact is wrong; where recordings of the client are ours, too, what is unknown has a listed reason."""
    facts = conformance.compare(path, inspected[path])

    assert _of(facts, "wrong") == {}
    assert not (RECORDINGS / path.parent.name).is_dir() or _unlisted(path, facts) == set()


@pytest.mark.skipif(not OF_STRANGERS, reason="needs the recordings of strangers")
def test_what_is_to_mend_is_wrong(inspected: dict[Path, dict[str, Any]]) -> None:
    """A client that no longer has a wrong fact is held to it."""
    wrong = {path.parent.name for path in OF_STRANGERS if _of(conformance.compare(path, inspected[path]), "wrong")}

    assert wrong == TO_MEND


def _of(facts: dict[str, tuple[str, Any, Any]], status: str) -> dict[str, tuple[str, Any, Any]]:
    return {fact: found for fact, found in facts.items() if found[0] == status}


def _unlisted(path: Path, facts: dict[str, tuple[str, Any, Any]]) -> set[str]:
    """Return the unknown facts for which no reason is listed; where nothing happened none is needed."""
    listed = {fact for key, entries in UNKNOWN.items() if _is_for(key, path) for fact in entries}
    return {fact for fact, (_, _, truth) in _of(facts, "unknown").items() if truth not in (None, 0)} - listed


def _is_for(key: str, path: Path) -> bool:
    """Return whether an entry is for the recording: by a glob of its client, or of client and scenario."""
    return fnmatchcase(conformance.name(path) if "/" in key else path.parent.name, key)


@pytest.mark.parametrize("key", UNKNOWN)
def test_an_entry_of_unknown_facts_is_needed(key: str) -> None:
    """It names recordings that exist, facts, and a reason."""
    entries = UNKNOWN[key]

    assert set(entries) <= set(conformance.FACTS)
    assert all(len(reason) > 20 for reason in entries.values())
    if _OF_CORPUS and OF_STRANGERS:
        assert any(_is_for(key, path) for path in (*CASES, *OF_STRANGERS))
