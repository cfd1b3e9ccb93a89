"""A short `make soak`: a few frameworks, each with all its instrumentations, against the model that behaves at random."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from not_run import not_run

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "live_agents"))

import agents_install
from cli_soak import CLIENTS
from cli_soak import soak as soak_programs
from environments import CannotInstallError, frameworks, program_of

from soak import soak, table

pytestmark = pytest.mark.full

SEED, RUNS = "11", 4


@pytest.mark.parametrize("name", ["openai-sdk", "openai-agents", "pydantic-ai", "vercel-ai"])
def test_nothing_is_wrong(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """No fact is wrong, no verdict contradicts what happened, and what is unknown is unknown for a reason that holds."""
    framework = frameworks()[name]
    try:
        program_of(framework)
    except CannotInstallError as error:
        not_run("frameworks", f"the soak of {name}: {error}")
    found = soak([framework], SEED, range(RUNS), out=None)

    with capsys.disabled():
        print("", *table(found), sep="\n")
    assert {client: tally.runs for client, tally in found.items()} == dict.fromkeys(found, RUNS)
    assert len(found) == len(framework.instrumentations)
    assert [finding for tally in found.values() for finding in tally.wrong] == []


@pytest.mark.needs("node")
@pytest.mark.parametrize("name", ["claude-code", "codex"])
def test_nothing_is_wrong_of_a_coding_agent(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The same of a program that calls its own tools: commands, files, sub-agents."""
    client = CLIENTS[name]
    try:
        agents_install.install(client.package)
    except agents_install.CannotInstallError as error:
        not_run("agents", str(error))
    found = soak_programs([client], SEED, range(3), out=None)

    with capsys.disabled():
        print("", *table(found), sep="\n")
    assert found[name].runs == 3
    assert found[name].wrong == []
