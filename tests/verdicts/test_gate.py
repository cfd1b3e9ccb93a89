"""The exit code, as a table: what each verdict asks for under each flag (spec: assertions.md §2)."""

import itertools

import pytest

from clawtrace.errors import ExitCode
from clawtrace.model.verdict import Status
from clawtrace.verdicts.gating.gate import Gate

FLAGS = {
    "none": {},
    "strict": {"strict": True},
    "trace": {"allow_missing_trace": True},
    "data": {"allow_missing_data": True},
    "incomplete": {"gate_incomplete": "warn"},
    "all-lenient": {"allow_missing_trace": True, "allow_missing_data": True, "gate_incomplete": "warn"},
    "strict+all": {
        "strict": True,
        "allow_missing_trace": True,
        "allow_missing_data": True,
        "gate_incomplete": "warn",
    },
}
COLUMNS = ["none", "strict", "trace", "data", "incomplete", "all-lenient", "strict+all"]
# status, severity, missing_data: one exit code for each of COLUMNS
TABLE = {
    ("pass", "error", False): (0, 0, 0, 0, 0, 0, 0),
    ("fail", "error", False): (1, 1, 1, 1, 1, 1, 1),
    ("warn", "error", False): (0, 1, 0, 0, 0, 0, 1),
    ("warn", "error", True): (3, 1, 3, 0, 3, 0, 1),
    ("skip", "error", False): (3, 3, 0, 3, 3, 0, 3),
    ("inconclusive", "error", False): (3, 3, 3, 3, 0, 0, 3),
    ("error", "error", False): (4, 4, 4, 4, 4, 4, 4),
    ("pass", "warn", False): (0, 0, 0, 0, 0, 0, 0),
    ("fail", "warn", False): (0, 1, 0, 0, 0, 0, 1),
    ("warn", "warn", False): (0, 1, 0, 0, 0, 0, 1),
    ("warn", "warn", True): (0, 1, 0, 0, 0, 0, 1),
    ("skip", "warn", False): (0, 3, 0, 0, 0, 0, 3),
    ("inconclusive", "warn", False): (0, 3, 0, 0, 0, 0, 3),
    ("error", "warn", False): (4, 4, 4, 4, 4, 4, 4),
}


def test_the_table_holds_every_status_and_severity() -> None:
    """No status and severity was forgotten in the table below."""
    assert {key[:2] for key in TABLE} == {
        (status.value, severity) for status in Status for severity in ("error", "warn")
    }


@pytest.mark.parametrize(("key", "codes"), TABLE.items(), ids=["-".join(map(str, key)) for key in TABLE])
def test_one_verdict(key, codes, verdict, run) -> None:
    """A campaign of one verdict exits as the table says, for every combination of flags in it."""
    status, severity, missing_data = key
    result = run(verdict(status, severity=severity, missing_data=missing_data))

    found = {column: int(Gate(**FLAGS[column]).of_results([result])) for column in COLUMNS}

    assert found == dict(zip(COLUMNS, codes, strict=True))


@pytest.mark.parametrize("flags", FLAGS.values(), ids=FLAGS)
def test_the_most_severe_wins_wherever_it_stands(flags, verdict, run) -> None:
    """4 beats 1 beats 3 beats 0, within one run and across runs, whatever the order."""
    rank = {4: 0, 1: 1, 3: 2, 0: 3}
    kinds = [key for key in TABLE if key[1] == "error"]
    for first, second in itertools.product(kinds, kinds):
        pair = [verdict(status, missing_data=missing) for status, _, missing in (first, second)]
        alone = [int(Gate(**flags).of_results([run(one)])) for one in pair]
        worst = min(alone, key=rank.__getitem__)

        assert Gate(**flags).of_results([run(*pair)]) == worst
        assert Gate(**flags).of_results([run(pair[0]), run(pair[1])]) == worst


def test_no_run_at_all_is_undecided() -> None:
    """A campaign without runs exits 3, and no flag turns that into success."""
    for flags in FLAGS.values():
        assert Gate(**flags).of_results([]) is ExitCode.UNDECIDED


def test_an_empty_assertion_list_is_undecided(verdict, run) -> None:
    """A run of which nothing was asked exits 3, also with runs that passed, under every flag."""
    for flags in FLAGS.values():
        assert Gate(**flags).of_results([run()]) is ExitCode.UNDECIDED
        assert Gate(**flags).of_results([run(verdict("pass")), run()]) is ExitCode.UNDECIDED


def test_a_broken_run_is_broken(verdict, run) -> None:
    """A runner's error exits 4, with or without verdicts, and so does a run marked error without verdicts."""
    assert Gate().of_results([run(error="no such command")]) is ExitCode.BROKEN
    assert Gate().of_results([run(verdict("pass"), error="killed")]) is ExitCode.BROKEN
    assert Gate().of_results([run(verdict("fail"), error="killed")]) is ExitCode.BROKEN
    assert Gate().of_results([run(status=Status.ERROR)]) is ExitCode.BROKEN


def test_usage_is_never_an_outcome(verdict, run) -> None:
    """Exit code 2 says that nothing was judged, so no result leads to it."""
    codes = {
        Gate(**flags).of_results([run(verdict(status, severity=severity, missing_data=missing))])
        for (status, severity, missing), flags in itertools.product(TABLE, FLAGS.values())
    }

    assert ExitCode.USAGE not in codes
