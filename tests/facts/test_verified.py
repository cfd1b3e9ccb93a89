"""What dialect files declare as verified is what the recordings carry (`python tests/facts/verified.py --write`)."""

from __future__ import annotations

import pytest
import verified

from clawtrace.dialects import load_dialects


@pytest.fixture(scope="module")
def found() -> set[verified.Read]:
    return verified.reads(verified.FOLDERS[0])


@pytest.fixture(scope="module")
def declared() -> set[verified.Read]:
    """Every scope, version and recording that a dialect file declares; a scope without a version has an empty one."""
    return {
        verified.Read(dialect.name, entry.scope, version, client)
        for dialect in load_dialects()
        for entry in dialect.verified
        for version in entry.versions or [""]
        for client in entry.recordings
    }


def test_what_the_recordings_carry_is_declared(found: set[verified.Read], declared: set[verified.Read]) -> None:
    """A new recording needs a line in the dialect file that reads it; the script writes it."""
    assert len(found) > 60
    assert found <= declared


def test_what_is_declared_is_in_the_recordings(found: set[verified.Read], declared: set[verified.Read]) -> None:
    """A declaration is true: its recordings have spans of that scope, and its versions are theirs."""
    clients = tuple({one.client for one in declared - found})
    shared = [folder for folder in verified.FOLDERS[1:] if folder.is_dir()]
    if not shared:
        pytest.skip("the recordings that are shared between the projects are not here")
    told = found | {one for folder in shared for one in verified.reads(folder, clients)}

    assert {(one.dialect, one.scope, one.client) for one in declared} <= {
        (one.dialect, one.scope, one.client) for one in told
    }
    assert {one[:3] for one in declared} <= {one[:3] for one in told}
