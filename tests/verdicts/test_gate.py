"""The exit code, as a table: what each verdict asks for under each flag (spec: assertions.md §2)."""

import itertools

import pytest

from clawtrace.errors import ExitCode
from clawtrace.model.verdict import Status
from clawtrace.verdicts.gating.gate import Gate, exit_code_of

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

    found = {column: int(exit_code_of([result], **FLAGS[column])) for column in COLUMNS}

    assert found == dict(zip(COLUMNS, codes, strict=True))


@pytest.mark.parametrize("flags", FLAGS.values(), ids=FLAGS)
def test_the_most_severe_wins_wherever_it_stands(flags, verdict, run) -> None:
    """4 beats 1 beats 3 beats 0, within one run and across runs, whatever the order."""
    rank = {4: 0, 1: 1, 3: 2, 0: 3}
    kinds = [key for key in TABLE if key[1] == "error"]
    for first, second in itertools.product(kinds, kinds):
        pair = [verdict(status, missing_data=missing) for status, _, missing in (first, second)]
        alone = [int(exit_code_of([run(one)], **flags)) for one in pair]
        worst = min(alone, key=rank.__getitem__)

        assert exit_code_of([run(*pair)], **flags) == worst
        assert exit_code_of([run(pair[0]), run(pair[1])], **flags) == worst


def test_no_run_at_all_is_undecided() -> None:
    """A campaign without runs exits 3, and no flag turns that into success."""
    for flags in FLAGS.values():
        assert exit_code_of([], **flags) is ExitCode.UNDECIDED


def test_an_empty_assertion_list_is_undecided(verdict, run) -> None:
    """A run of which nothing was asked exits 3, also with runs that passed, under every flag."""
    for flags in FLAGS.values():
        assert exit_code_of([run()], **flags) is ExitCode.UNDECIDED
        assert exit_code_of([run(verdict("pass")), run()], **flags) is ExitCode.UNDECIDED


def test_a_broken_run_is_broken(verdict, run) -> None:
    """A runner's error exits 4, with or without verdicts, and so does a run marked error without verdicts."""
    assert exit_code_of([run(error="no such command")]) is ExitCode.BROKEN
    assert exit_code_of([run(verdict("pass"), error="killed")]) is ExitCode.BROKEN
    assert exit_code_of([run(verdict("fail"), error="killed")]) is ExitCode.BROKEN
    assert exit_code_of([run(status=Status.ERROR)]) is ExitCode.BROKEN


def test_usage_is_never_an_outcome(verdict, run) -> None:
    """Exit code 2 says that nothing was judged, so no result leads to it."""
    codes = {
        exit_code_of([run(verdict(status, severity=severity, missing_data=missing))], **flags)
        for (status, severity, missing), flags in itertools.product(TABLE, FLAGS.values())
    }

    assert ExitCode.USAGE not in codes


def test_keywords_and_gate_agree(verdict, run) -> None:
    """`exit_code_of` with keywords is `Gate` with the same words."""
    for (status, severity, missing), flags in itertools.product(TABLE, FLAGS.values()):
        results = [run(verdict(status, severity=severity, missing_data=missing))]

        assert exit_code_of(results, **flags) is Gate(**flags).of_results(results)
