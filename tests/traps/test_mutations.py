"""A mutation test of the assertions themselves: a fault in the trace is caught, or lies outside of the question.

One run that every assertion of mutations.yaml passes is recorded anew with each fault of faults.py, and all of it is
judged by the program at once. What an assertion does not catch must be declared in the table with its reason, and is
held against answers.py, which answers the same question over the same spans by itself.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from answers import ANSWERS, Told
from faults import FAULTS, good
from trap_runs import Bench

from clawtrace.assertions.registry import all_types

HERE = Path(__file__).parent
TABLE = yaml.safe_load((HERE / "mutations.yaml").read_text(encoding="utf-8"))
TYPES: dict[str, dict[str, Any]] = TABLE["types"]
HARMLESS = set(TABLE["everywhere"])


def outside(name: str) -> dict[str, str]:
    """The faults outside of the question of one type, each with its reason."""
    said = [(fault, why) for why, faults in TYPES[name]["outside"].items() for one in faults for fault in _faults(one)]
    assert len({fault for fault, _ in said}) == len(said), f"a fault is declared twice for {name}"
    return dict(said) | dict.fromkeys(HARMLESS, "nothing happened otherwise")


def _faults(word: str) -> list[str]:
    faults = TABLE["groups"].get(word, [word])
    assert set(faults) <= set(FAULTS), f"no such fault: {word}"
    return faults


@pytest.fixture(scope="module")
def statuses(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, str]]:
    """The status of every assertion for the good run and for each fault, as the program reports it."""
    bench = Bench(tmp_path_factory.mktemp("mutations"))
    bench.write("clawtrace.yaml", "schema_version: 1\ndialects: [dialects]\n")
    bench.write("dialects/traps.yaml", (HERE / "traps_dialect.yaml").read_bytes())
    bench.record("good", *good())
    for name, fault in FAULTS.items():
        bench.record(name, *fault(good()))
    judged = bench.judge(*({"type": name} | row["assertion"] for name, row in TYPES.items()))
    assert judged.exit_code == 1, judged.stderr
    return {
        run: {verdict["type"]: verdict["status"] for verdict in found["assertions"]}
        for run, found in judged.runs.items()
    }


def test_every_type_that_asks_the_trace_is_here():
    """A type whose answer spans can change has a row, and every question of the table has an answer of its own."""
    asking = {name for name, cls in all_types().items() if cls.needs_trace and cls.__module__.startswith("clawtrace.")}

    assert set(TYPES) == asking
    assert set(ANSWERS) == asking


@pytest.mark.parametrize("name", TYPES)
def test_the_good_run_passes(statuses, name):
    """Without a fault every assertion passes, and its question is answered with yes."""
    assert statuses["good"][name] == "pass"
    assert ANSWERS[name](Told(good()))


@pytest.mark.parametrize("name", TYPES)
def test_a_fault_is_caught_or_outside(statuses, name):
    """What is declared outside still passes; everything else is no pass any more."""
    passing = {fault for fault in FAULTS if statuses[fault][name] == "pass"}

    assert passing == set(outside(name))


@pytest.mark.parametrize("name", TYPES)
def test_what_is_outside_leaves_the_answer_as_it_was(name):
    """The reason in the table is true: of the changed spans, too, the answer is yes."""
    for fault, why in outside(name).items():
        assert ANSWERS[name](Told(FAULTS[fault](good()))), (fault, why)


@pytest.mark.parametrize("name", TYPES)
def test_a_no_is_a_fail_and_the_rest_is_undecided(statuses, name):
    """A caught fault that leaves the trace whole and the facts known fails; a torn or silent one is inconclusive."""
    torn = {"lost_agent", "lost_last_request", "never_ended", "lost_tool_call"}
    silent = {"unknown_tokens", "nothing_captured", "no_answer", "no_delegation"}
    if name != "no_secret_leak":
        silent.add("leaked_secret")  # what stood where it was redacted is unknown
    for fault in set(FAULTS) - set(outside(name)) - torn - silent:
        assert statuses[fault][name] == "fail", fault
        assert not ANSWERS[name](Told(FAULTS[fault](good()))), fault
    for fault in (torn | silent) - set(outside(name)):
        assert statuses[fault][name] in ("fail", "inconclusive"), fault


@pytest.mark.parametrize("fault", FAULTS)
def test_every_fault_matters_to_someone(fault):
    """A fault that no assertion catches would prove nothing."""
    caught = [name for name in TYPES if fault not in outside(name)]

    assert bool(caught) is (fault not in HARMLESS)
