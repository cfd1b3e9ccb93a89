"""The texts of the assertions on PostgreSQL and on Spark, unchanged: what their cases say is what is answered.

    CLAWTRACE_TEST_POSTGRES=postgresql://USER:PASSWORD@HOST/DATABASE pytest --full tests/assertions/test_other_engines.py

`docs/relations.md` says what this shows. Spark is asked one case of each answer of a type, as each takes it a second or more.
"""

from __future__ import annotations

from typing import Any

import pytest
from assertion_facts import join, rows_of
from test_cases import CASES, run_id, seen

from clawtrace.assertions import registry
from clawtrace.verdicts.asking.ask import ask

pytestmark = [pytest.mark.full, pytest.mark.timeout(900)]


def wrong(facts: Any, type_name: str, cases: list[dict[str, Any]]) -> list[Any]:
    """Return the cases that are answered otherwise than they say, with what was found; all are in the store together."""
    ids = [run_id(place) for place in range(2, len(cases) + 2)]
    facts.load(join(rows_of(one, case["run"]) for one, case in zip(ids, cases, strict=True)))
    found = []
    for one, case in zip(ids, cases, strict=True):
        said = seen(ask(facts, registry.parse_assertion({"type": type_name} | case["assert"]), ids), one, case)
        if said != {key: case[key] for key in case if key not in ("case", "run", "assert")}:
            found.append((case["case"], said))
    return found


def one_of_each_answer(cases: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the first case that passes, the first that fails, and the first that is unknown."""
    return list({case.get("holds"): case for case in reversed(cases)}.values())


@pytest.fixture(scope="module")
def postgres():
    from other_engines import PostgresFacts

    store = PostgresFacts()
    yield store
    store.close()


@pytest.fixture(scope="module")
def spark():
    from other_engines import SparkFacts

    store = SparkFacts()
    yield store
    store.close()


@pytest.mark.needs("postgresql")
@pytest.mark.parametrize("type_name", list(CASES))
def test_postgresql_answers_every_case(postgres, type_name) -> None:
    assert wrong(postgres, type_name, CASES[type_name]) == []


@pytest.mark.needs("spark")
@pytest.mark.parametrize("type_name", list(CASES))
def test_spark_answers_a_case_of_each_answer(spark, type_name) -> None:
    assert wrong(spark, type_name, one_of_each_answer(CASES[type_name])) == []
