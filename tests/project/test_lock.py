"""The lock files: versions and hashes for everything, and no registry's address."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
LOCKS = ("requirements.lock", "requirements-dev.lock")
PIN = re.compile(r"^([a-z0-9.-]+)==([^ ;\\]+)( ; [^\\]+)? \\$")
HASH = re.compile(r"^    --hash=sha256:[0-9a-f]{64}( \\)?$")


def pins(lock: str) -> dict[str, set[str]]:
    """Package name → versions (more than one where they differ by Python version)."""
    found: dict[str, set[str]] = {}
    for line in (ROOT / lock).read_text().splitlines():
        if match := PIN.match(line):
            found.setdefault(match[1], set()).add(match[2])
    return found


@pytest.mark.parametrize("lock", LOCKS)
def test_every_line_is_a_pin_or_a_hash(lock):
    """Each package has one exact version and at least one hash; there is no option, URL or path in the file."""
    lines = (ROOT / lock).read_text().splitlines()

    assert [line for line in lines if not PIN.match(line) and not HASH.match(line)] == []
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        assert not PIN.match(line) or HASH.match(following), f"{line} has no hash"


def test_the_locks_agree():
    """What both files pin has the same version in both, so that one environment can hold both."""
    runtime, dev = (pins(lock) for lock in LOCKS)

    assert {name: dev[name] for name in dev.keys() & runtime.keys() if dev[name] != runtime[name]} == {}


def test_the_locks_hold_what_the_project_asks_for():
    """Every dependency of pyproject.toml is locked at a version that it allows: raising a bound needs `make lock`."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    runtime, dev = (pins(lock) for lock in LOCKS)
    asked = {
        **dict.fromkeys(project["build-system"]["requires"], runtime),
        **dict.fromkeys(project["project"]["dependencies"], runtime),
        **dict.fromkeys(project["project"]["optional-dependencies"]["agents"], runtime),
        **dict.fromkeys(project["dependency-groups"]["dev"], dev),
    }

    for text, lock in asked.items():
        requirement = Requirement(text)
        versions = lock.get(requirement.name.lower().replace("_", "-"), set())
        assert versions, f"{text} is not locked"
        assert [version for version in versions if version not in requirement.specifier] == [], text
