"""Each macro of each engine meets the same table of inputs and answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pytest

from clawtrace.dialects.expressions import macros
from clawtrace.support.yaml_reading import read_yaml

CASES = read_yaml((Path(__file__).parent / "macro_cases.yaml").read_text(encoding="utf-8"))


def literal(value: Any) -> str:
    return "NULL::VARCHAR" if value is None else "'" + str(value).replace("'", "''") + "'"


def columns(case: dict[str, Any]) -> str:
    attributes = case.get("attributes", {})
    values = attributes or {}
    pairs = (
        "MAP {" + ", ".join(f"{literal(k)}: {literal(v)}" for k, v in values.items()) + "}"
        if attributes is not None
        else "NULL"
    )
    events = case.get("events", [])
    names = "[" + ", ".join(literal(name) for name, _ in events) + "]::VARCHAR[]"
    maps = "[" + ", ".join(
        "MAP {" + ", ".join(f"{literal(k)}: {literal(v)}" for k, v in a.items()) + "}" for _, a in events
    )
    return f'{pairs}::MAP(VARCHAR, VARCHAR) AS m, {literal(case.get("value"))} AS v, {names} AS "Events.Name", {maps}]::MAP(VARCHAR, VARCHAR)[] AS "Events.Attributes"'


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['macro']}: {case['why']}")
def test_macro_answers(case: dict[str, Any]) -> None:
    parts = {name: literal(value) for name, value in case.get("with", {}).items() if name != "values"}
    if "values" in case.get("with", {}):
        parts["values"] = ", ".join(map(literal, case["with"]["values"]))
    sql = macros("duckdb")[case["macro"]].format(map="m", value="v", **parts)
    with duckdb.connect() as db:
        row = db.execute(f"SELECT {sql} FROM (SELECT {columns(case)})").fetchone()

    assert row is not None
    assert row[0] == case["answer"]


def test_every_macro_has_cases() -> None:
    assert {case["macro"] for case in CASES} == set(macros("duckdb"))
