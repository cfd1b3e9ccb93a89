"""The parsed dialects beside the YAML files: believed where they are of the same bytes, else the file is read."""

from __future__ import annotations

import pytest

from clawtrace.dialects import _parsed, load, load_dialects
from clawtrace.dialects._parsed import remembered, rendered
from clawtrace.dialects.load import BUILTIN
from clawtrace.dialects.rules import RECORDABLE


def test_a_file_that_was_changed_is_read_again(tmp_path, monkeypatch) -> None:
    """What is remembered of other bytes is not believed."""
    text = (BUILTIN / "opentelemetry.yaml").read_text(encoding="utf-8")
    (tmp_path / "opentelemetry.yaml").write_text(text, encoding="utf-8")
    (tmp_path / "parsed.json").write_text(rendered([tmp_path / "opentelemetry.yaml"]), encoding="utf-8")
    monkeypatch.setattr(_parsed, "_FILE", tmp_path / "parsed.json")
    monkeypatch.setattr(load, "BUILTIN", tmp_path)
    title = load._load.__wrapped__((), ())[0].file.title

    (tmp_path / "opentelemetry.yaml").write_text(text.replace(f"title: {title}", "title: Another"), encoding="utf-8")

    assert load._load.__wrapped__((), ())[0].file.title == "Another"


def test_without_parsed_dialects_all_is_the_same(tmp_path, monkeypatch) -> None:
    """Names, digests, words and records do not depend on which of the two was read."""
    remembering = load._load.__wrapped__((), ())
    monkeypatch.setattr(_parsed, "_FILE", tmp_path / "none.json")
    reading = load._load.__wrapped__((), ())

    assert remembered() == {}
    assert [(one.name, one.path, one.digest) for one in remembering] == [(o.name, o.path, o.digest) for o in reading]
    assert [one.file for one in remembering] == [one.file for one in reading]


def test_what_is_known_without_the_whole_file_is_what_the_file_says() -> None:
    for dialect in load_dialects():
        assert dialect.detect == dialect.file.detect
        assert {fact: dialect.records(fact) for fact in RECORDABLE} == {
            fact: dialect.file.records.get(fact, False) for fact in RECORDABLE
        }


def test_what_json_cannot_hold_is_refused(tmp_path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text("versions: [2024-01-01]\n", encoding="utf-8")
    with pytest.raises((TypeError, ValueError)):
        rendered([path])
