"""Dialect files: loading, extending, errors, and that compiled SQL means what the rules say."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
import yaml

from clawtrace.dialects.columns import COLUMN_TYPES, RECORDABLE
from clawtrace.dialects.compile import Compiler
from clawtrace.dialects.expressions import Seen
from clawtrace.dialects.load import BUILTIN, head, load_dialects
from clawtrace.dialects.rules import ColumnRule, Condition
from clawtrace.dialects.schema import Recorded
from clawtrace.errors import ConfigError


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / f"{name}.yaml"
    path.write_text(text, encoding="utf-8")
    return path


MINE = """
dialect: mine
title: Mine
source: tests
about: A dialect of a project's own.
extends: otel-genai
detect: {priority: 90, any: [{scope: "mine.*"}]}
columns: {tool_name: [my.tool]}
records: {cost: yes}
"""


class TestLoading:
    def test_built_in_files_are_valid_and_ordered(self) -> None:
        dialects = load_dialects()
        priorities = [dialect.file.detect.priority for dialect in dialects]

        assert priorities == sorted(priorities, reverse=True)
        assert dialects[-1].name == "opentelemetry", "the last resort reads what no other dialect does"

    def test_each_built_in_says_what_it_can_record_and_where_its_facts_come_from(self) -> None:
        for dialect in load_dialects():
            assert set(dialect.file.records) == set(RECORDABLE)
            assert dialect.file.source
            assert dialect.file.about

    def test_what_is_known_without_the_whole_file_is_what_the_file_says(self) -> None:
        """Built-in files are checked when a span is theirs; detection and records are read before."""
        for dialect in load_dialects():
            assert dialect.detect == dialect.file.detect
            for fact in RECORDABLE:
                said = dialect.file.records[fact]
                spans, logs = (said.spans, said.logs) if isinstance(said, Recorded) else (said, said)
                assert (dialect.records(fact), dialect.records(fact, "logs")) == (spans, logs)

    def test_a_projects_own_folder(self, tmp_path: Path) -> None:
        write(tmp_path, "mine", MINE)
        mine = load_dialects([tmp_path])[0]

        assert mine.name == "mine"
        assert mine.file.columns["tool_name"][0].key == "my.tool"
        assert mine.file.columns["input_tokens"], "what it does not say comes from what it extends"
        assert (mine.records("cost"), mine.records("tool_calls")) == (True, True)

    def test_words_are_inherited_as_they_declare(self, tmp_path: Path) -> None:
        """Rules go before the inherited, mappings over them key by key, and what is said stands instead, be it no."""
        base = (
            MINE
            + "sdk: yes\nby_time: [handoff]\nanswer_forms: [nay]\ntool_failed: {always: true}\nverified: [{scope: s, versions: ['1'], recordings: [r]}]\n"
        )
        child = (
            MINE.replace("dialect: mine", "dialect: yours")
            .replace("otel-genai", "mine")
            .replace("tool_name", "tool_result")
        )
        write(tmp_path, "mine", base)
        write(tmp_path, "silent", child)
        write(tmp_path, "yours", child.replace("yours", "loud") + "sdk: no\nby_time: []\nanswer_forms: [never]\n")
        files = {dialect.name: dialect.file for dialect in load_dialects([tmp_path])}
        silent, loud = files["yours"], files["loud"]

        assert (silent.sdk, silent.by_time, silent.answer_forms[:1]) == (True, ["handoff"], ["nay"])
        assert (loud.sdk, loud.by_time, loud.answer_forms[:2]) == (False, [], ["never", "nay"])
        assert silent.tool_failed == Condition(always=True)
        assert {"tool_name", "tool_result", "input_tokens"} <= silent.columns.keys()
        assert (len(files["mine"].verified), silent.verified) == (1, [])

    def test_what_tells_dialects_apart_stands_at_the_head_of_a_built_in_file(self) -> None:
        """So that the rest of a file is read only when spans of that dialect were met."""
        for path in BUILTIN.glob("*.yaml"):
            whole, first = (yaml.safe_load(text) for text in (path.read_bytes(), head(path.read_bytes())))
            for key in ("dialect", "extends", "detect"):
                assert first.get(key) == whole.get(key), (path.name, key)
            programs = [one["scope"] for one in whole.get("verified", []) if one.get("version") == "service.version"]
            assert not programs or first["verified"] == whole["verified"], path.name

    def test_log_events_are_known_without_reading_every_file(self) -> None:
        """They are those of the whole file, whoever says them."""
        for dialect in load_dialects():
            assert list(dialect.events) == dialect.file.events, dialect.name
            assert list(dialect.event_name) == dialect.file.event_name, dialect.name

    def test_spans_and_logs_may_record_different_facts(self, tmp_path: Path) -> None:
        write(tmp_path, "mine", MINE.replace("{cost: yes}", "{cost: yes, errors: {spans: yes, logs: SETTING=1}}"))
        mine = load_dialects([tmp_path])[0]

        assert (mine.records("errors"), mine.records("errors", "logs")) == (True, "SETTING=1")
        assert (mine.records("cost", "logs"), mine.records("tool_calls", "logs")) == (True, True)

    @pytest.mark.parametrize(
        ("text", "says"),
        [
            ("dialect: [", "mine.yaml"),
            ("dialect: " + "[" * 100_000, "it is nested deeper than 200 levels"),
            (
                "a: &a [0, 0, 0, 0, 0, 0, 0, 0]\n"
                + "".join(f"{b}: &{b} [{', '.join([f'*{a}'] * 8)}]\n" for a, b in pairwise("abcdefghij")),
                "it expands to more than 5000000 values",
            ),
            (MINE.replace("otel-genai", "nothing"), "extends 'nothing'"),
            (MINE.replace("tool_name", "tool_nome"), "tool_nome"),
            (MINE.replace("{scope:", "{skope:"), "skope"),
            (MINE.replace('[{scope: "mine.*"}]', "[{key: a}]"), "exactly one of"),
            (MINE.replace('[{scope: "mine.*"}]', "[{present: parent.a}]"), "by the span alone"),
            (MINE.replace('[{scope: "mine.*"}]', "[{present: a, json: $.b}]"), "`json` goes with `key`"),
            (MINE.replace("[my.tool]", "[{span: name, plus: [b]}]"), "`plus` and `minus` go with `key`"),
            (MINE.replace("[my.tool]", "[{const: '1', minus: [b]}]"), "`plus` and `minus` go with `key`"),
            (MINE + "by_time: [spawn]\n", "by_time"),
            (MINE + "rollup: cumulative\n", "rollup"),
        ],
    )
    def test_mistakes_name_the_file(self, tmp_path: Path, text: str, says: str) -> None:
        path = write(tmp_path, "mine", text)
        with pytest.raises(ConfigError) as caught:
            load_dialects([tmp_path])

        assert says in str(caught.value)
        assert path.name in str(caught.value)

    def test_a_file_that_cannot_be_read_is_an_error(self, tmp_path: Path) -> None:
        """A link that leads nowhere is named, and no dialect is left out silently."""
        (tmp_path / "acme.yaml").symlink_to(tmp_path / "gone.yaml")
        with pytest.raises(ConfigError, match=r"acme\.yaml.*cannot be read: No such file"):
            load_dialects([tmp_path])

    def test_a_missing_folder_is_an_error(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigError, match="is not a folder"):
            load_dialects([tmp_path / "nowhere"])


class TestCompiling:
    def test_rules_about_absent_attributes_leave_no_sql(self) -> None:
        """What no span carries costs nothing: neither planning nor a look-up."""
        compiler = Compiler(seen=Seen(frozenset({"a"}), frozenset(), frozenset()))

        assert compiler.rule(ColumnRule(key="b")) is None
        assert compiler.rule(ColumnRule(prefix="b.")) is None
        assert compiler.condition(Condition(present="b")) == "FALSE"
        assert compiler.condition(Condition.model_validate({"not": {"present": "b"}})) == "TRUE"
        assert compiler.condition(Condition.model_validate({"all": [{"present": "a"}, {"present": "b"}]})) == "FALSE"
        assert compiler.column("input_tokens", [ColumnRule(key="b")]) == "NULL::BIGINT"

    def test_quotes_in_rules_are_text(self) -> None:
        sql = Compiler().condition(Condition.model_validate({"key": "k'); DROP TABLE runs; --", "in": ["it's"]}))

        assert "'k''); DROP TABLE runs; --'" in sql
        assert "'it''s'" in sql

    @pytest.mark.parametrize("dialect", load_dialects(), ids=lambda dialect: dialect.name)
    def test_every_column_is_compiled(self, dialect) -> None:
        sql = Compiler().row_facts(dialect, "source")

        assert all(f" AS {column}" in sql for column in COLUMN_TYPES)

    def test_a_rule_about_the_parent_brings_the_parent_in(self) -> None:
        """Only then: a dialect without such rules does not pay for it."""
        dialects = {dialect.name: dialect for dialect in load_dialects()}

        assert "parent_attributes" in Compiler().row_facts(dialects["openllmetry-langchain"], "source")
        assert "parent_attributes" not in Compiler().row_facts(dialects["otel-genai"], "source")

    def test_texts_of_two_places_are_compared(self) -> None:
        same = {"key": "a", "json": "$.name", "same_as": {"key": "b"}}
        seen = Seen(frozenset({"a", "b"}), frozenset(), frozenset())

        assert "coalesce(" in Compiler(seen=seen).condition(Condition.model_validate(same))
        other = Seen(frozenset({"a"}), frozenset(), frozenset())
        assert Compiler(seen=other).condition(Condition.model_validate(same)) == "FALSE", "nothing to compare with"
