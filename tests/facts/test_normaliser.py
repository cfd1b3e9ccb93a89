"""What stored facts depend on: where it has changed they are computed again."""

from __future__ import annotations

from pathlib import Path

from building import Lab, agent, chat, take_back

from clawtrace.dialects.load import BUILTIN, load_dialects
from clawtrace.facts.normaliser import Normaliser


def test_a_changed_dialect_is_another_digest(tmp_path: Path) -> None:
    """A project's own file that replaces a built-in dialect changes one rule; a copy of the built-in one changes none."""
    before = Normaliser(load_dialects(), None, ()).digest
    text = BUILTIN / "logfire.yaml"
    copy = tmp_path / text.name
    copy.write_bytes(text.read_bytes())
    unchanged = Normaliser(load_dialects([tmp_path]), None, ()).digest
    copy.write_text(f"{text.read_text('utf-8')}\nsdk: true\n", encoding="utf-8")
    changed = Normaliser(load_dialects([tmp_path]), None, ()).digest

    assert unchanged == before
    assert changed != before


def test_the_projects_exemptions_are_part_of_the_digest() -> None:
    dialects = load_dialects()

    assert Normaliser(dialects, None, ["job"]).digest != Normaliser(dialects, None, ()).digest


def test_a_store_that_tests_share_is_empty_for_each(lab: Lab) -> None:
    lab.put(agent("a"), chat("m", "a", at=1))
    before = lab.totals("llm_calls")
    take_back()
    again = Lab()
    left = [
        name
        for (name,) in again.store.script("SELECT table_name FROM duckdb_tables() WHERE NOT temporary")
        if again.store.script(f'SELECT 1 FROM "{name}" LIMIT 1')
    ]
    again.put(agent("b"))

    assert again.store is lab.store
    assert (before, again.rows("SELECT count(*) FROM llm_calls")) == ((1,), [(0,)])
    assert sorted(left) == ["journal_state", "store_meta"]
