"""A mutation test of the assertions themselves: a fault in the trace is caught, or lies outside of the question.

One run that every assertion of `questions` passes is recorded anew with each fault of faults.py, and all of it is
judged by the program at once. What an assertion does not catch must be declared in its module with the reason, and is
held against the module's answer, which reads the same spans by itself.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest
from answers import PlainRun
from faults import FAULTS, GROUPS, HARMLESS, good
from trap_runs import Bench

from clawtrace.assertions.registry import all_types

HERE = Path(__file__).parent
TYPES = {
    path.stem: import_module(f"questions.{path.stem}")
    for path in sorted((HERE / "questions").glob("*.py"))
    if path.stem != "__init__"
}


def outside(name: str) -> dict[str, str]:
    """The faults outside of the question of one type, each with its reason."""
    said = [(fault, why) for why, faults in TYPES[name].OUTSIDE.items() for fault in _faults(faults)]
    assert len({fault for fault, _ in said}) == len(said), f"a fault is declared twice for {name}"
    return dict(said) | dict.fromkeys(HARMLESS, "nothing happened otherwise")


def _faults(words: str) -> list[str]:
    faults = [fault for word in words.split(", ") for fault in GROUPS.get(word, word).split(", ")]
    assert set(faults) <= set(FAULTS), f"no such fault: {words}"
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
    judged = bench.judge(*({"type": name} | row.ASSERTION for name, row in TYPES.items()))
    assert judged.exit_code == 1, judged.stderr
    return {
        run: {verdict["type"]: verdict["status"] for verdict in found["assertions"]}
        for run, found in judged.runs.items()
    }


def test_every_type_that_asks_the_trace_is_here():
    """A type whose answer spans can change has a module, and no other."""
    asking = {name for name, cls in all_types().items() if cls.needs_trace and cls.__module__.startswith("clawtrace.")}

    assert set(TYPES) == asking


@pytest.mark.parametrize("name", TYPES)
def test_the_good_run_passes(statuses, name):
    """Without a fault every assertion passes, and its question is answered with yes."""
    assert statuses["good"][name] == "pass"
    assert TYPES[name].answer(PlainRun(good()))


@pytest.mark.parametrize("name", TYPES)
def test_a_fault_is_caught_or_outside(statuses, name):
    """What is declared outside still passes; everything else is no pass any more."""
    passing = {fault for fault in FAULTS if statuses[fault][name] == "pass"}

    assert passing == set(outside(name))


@pytest.mark.parametrize("name", TYPES)
def test_what_is_outside_leaves_the_answer_as_it_was(name):
    """The reason is true: of the changed spans, too, the answer is yes."""
    for fault, why in outside(name).items():
        assert TYPES[name].answer(PlainRun(FAULTS[fault](good()))), (fault, why)


@pytest.mark.parametrize("name", TYPES)
def test_a_no_is_a_fail_and_the_rest_is_undecided(statuses, name):
    """A caught fault that leaves the trace whole and the facts known fails; a torn or silent one is inconclusive."""
    torn = {"lost_agent", "lost_last_request", "never_ended", "lost_tool_call"}
    silent = {"unknown_tokens", "nothing_captured", "no_answer", "no_delegation"}
    if name != "no_secret_leak":
        silent.add("leaked_secret")  # what stood where it was redacted is unknown
    for fault in set(FAULTS) - set(outside(name)) - torn - silent:
        assert statuses[fault][name] == "fail", fault
        assert not TYPES[name].answer(PlainRun(FAULTS[fault](good()))), fault
    for fault in (torn | silent) - set(outside(name)):
        assert statuses[fault][name] in ("fail", "inconclusive"), fault


@pytest.mark.parametrize("fault", FAULTS)
def test_every_fault_matters_to_someone(fault):
    """A fault that no assertion catches would prove nothing."""
    caught = [name for name in TYPES if fault not in outside(name)]

    assert bool(caught) is (fault not in HARMLESS)
