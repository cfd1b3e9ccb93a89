"""Write the pages of docs/reference, the JSON Schemas, `expect.pyi` and the price table: ``python docs/generate.py`` (``make docs``).

A test compares what this would write with what is there, so the pages cannot drift.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).parent))

from assertion_pages import assertion_pages, table
from conformance_table import conformance_table
from expect_stub import expect_stub
from price_table import price_table
from python_api import python_api

if TYPE_CHECKING:
    import click
    from pydantic.fields import FieldInfo

    from clawtrace.dialects.load import Dialect
    from clawtrace.dialects.schema import DialectFile, EventRule, JoinPair

ROOT = Path(__file__).parent.parent
REFERENCE = "docs/reference"
SCHEMAS = "configs/schemas"
NOTE = "<!-- Written by docs/generate.py; change the code and run `make docs`. -->\n"


def relations() -> str:
    """Return the page of the relations."""
    from clawtrace.model.relations import RELATIONS

    parts = [
        f"# Relations\n\n{NOTE}\nWhat assertions and `clawtrace query` may ask. Unknown is NULL, never 0 or an empty "
        "text; a row may not exist where `certain` is FALSE, and more may exist where `gaps` has a row ([reasons](reasons.md)). Times are nanoseconds since the Unix epoch. How they come about: [../relations.md](../relations.md).\n"
    ]
    for relation in RELATIONS.values():
        rows = [(f"`{column.name}`", column.type, column.meaning) for column in relation.columns]
        parts.append(f"## `{relation.name}`\n\n{relation.meaning}\n\n{table(('column', 'type', 'meaning'), rows)}")
    return "\n".join(parts)


def call_rules() -> str:
    """Return the page of the rules by which spans are one call."""
    from clawtrace.facts.calls.rules import CALL_RULES

    rows = [(f"`{rule.id}`", rule.meaning, rule.source) for rule in CALL_RULES.values()]
    return (
        f"# Rules of one call\n\n{NOTE}\nAn instrumentation may write several spans for one model or tool call, and two "
        "instrumentations may record the same call. These rules decide which spans are one call; `clawtrace inspect --explain` "
        "and the column `spans.counted_by` name the rule. They are applied in this order. How calls are counted: "
        f"[../relations.md](../relations.md).\n\n{table(('rule', 'meaning', 'source'), rows)}"
    )


def reasons() -> str:
    """Return the page of the reasons why something is not known."""
    from clawtrace.dialects.load import EVIDENCE
    from clawtrace.model.reasons import REASONS

    evidence = table(("`spans.rule`", "meaning"), [(f"`{word}`", meaning) for word, meaning in EVIDENCE.items()])
    rows = [(f"`{one.id}`", one.sentence, one.source, one.settled_by) for one in REASONS.values()]
    general = ", ".join(f"`{one.id}`" for one in REASONS.values() if not one.always)
    return (
        f"# Reasons\n\n{NOTE}\nWhy something is not known. A value is NULL, or its `_low` and `_high` differ; a row may not "
        "exist where `certain` is FALSE; rows may exist that nothing records. The relations "
        "[`doubts`](relations.md#doubts) and [`gaps`](relations.md#gaps) have a row for each, with one of these reasons; "
        "`clawtrace inspect` and the verdicts that it leaves open say its sentence.\n\n## Evidence\n\nEach span is read by the "
        f"rules of a dialect; the column `spans.rule` says on what evidence they were written.\n\n{evidence}\nThese reasons hold only "
        f"where the rules were not verified: {general}.\n\n## All\n\n"
        f"{table(('reason', 'meaning', 'source', 'what settles it'), rows)}"
    )


def commands() -> str:
    """Return the page of the commands: their help, as the terminal shows it."""
    from clawtrace.cli.main import cli

    parts = [f"# Commands\n\n{NOTE}\nExit codes: [../assertions.md](../assertions.md#exit-codes).\n"]
    with cli.make_context("clawtrace", [], resilient_parsing=True, terminal_width=100) as context:
        parts.append(f"```text\n{cli.get_help(context).rstrip()}\n```\n")
        for name in cli.list_commands(context):
            command = cli.get_command(context, name)
            assert command is not None
            with command.make_context(name, [], parent=context, resilient_parsing=True, terminal_width=100) as inner:
                parts.append(f"## `clawtrace {name}`\n\n```text\n{command.get_help(inner).rstrip()}\n```\n")
                parts += subcommands(name, command, inner)
    return "\n".join(parts)


def subcommands(name: str, command: click.Command, context: click.Context) -> Iterator[str]:
    """Yield the help of each command of a group."""
    import click

    for word, inner in command.commands.items() if isinstance(command, click.Group) else ():
        with inner.make_context(word, [], parent=context, resilient_parsing=True, terminal_width=100) as own:
            yield f"### `clawtrace {name} {word}`\n\n```text\n{inner.get_help(own).rstrip()}\n```\n"


def recorded(dialect: Dialect, fact: str) -> str:
    """Return yes, no, or the setting that makes an instrumentation record a fact; also by log events where these differ."""
    spans, logs = (
        records if isinstance(records, str) else "yes" if records else "no"
        for records in (dialect.records(fact, "spans"), dialect.records(fact, "logs"))
    )
    return spans if spans == logs else f"{spans}; by log events alone: {logs}"


def dialects() -> Iterator[tuple[str, str]]:
    """Yield the page of the dialects, and one page for each."""
    from clawtrace.dialects.load import load_dialects

    found = {dialect.name: dialect for dialect in load_dialects()}
    rows = []
    for dialect in found.values():
        versions = verified_versions(dialect.file)
        rows.append((f"[`{dialect.name}`]({dialect.name}.md)", dialect.file.title, versions or "no recording"))
        yield f"{REFERENCE}/dialects/{dialect.name}.md", dialect_page(dialect, found)
    yield (
        f"{REFERENCE}/dialects/README.md",
        f"# Dialects\n\n{NOTE}\nThe instrumentations that clawtrace reads, the most particular first. Each page says what the "
        "instrumentation can record and which attribute fills each column; `clawtrace inspect --explain` says it of a run. "
        "What an instrumentation cannot record is unknown, and verdicts say so. The last column names the versions in whose "
        "recordings the rules were verified; what holds for other spans is on the page of "
        f"[reasons](../reasons.md).\n\n{table(('dialect', 'instrumentation', 'versions verified'), rows)}",
    )


def verified_versions(file: DialectFile) -> str:
    """Return the versions in whose recordings a dialect was verified, or where spans tell of none the word for that."""
    versions = dict.fromkeys(version for one in file.verified for version in one.versions if version)
    return ", ".join(versions) or ("recordings without a version" if file.verified else "")


def verified(file: DialectFile) -> str:
    """Return which instrumentations the rules of a dialect were verified on."""
    if not file.verified:
        return "No recording yet: its spans are read, and doubted where they contradict themselves.\n"
    rows = [
        (
            f"`{one.scope}`",
            ", ".join(version or "none" for version in one.versions) or "none",
            ", ".join(one.recordings),
        )
        for one in file.verified
    ]
    return table(("instrumentation scope", "versions", "recordings"), rows)


def dialect_page(dialect: Dialect, found: Mapping[str, Dialect]) -> str:
    """Return the page of one dialect: what it records, and the rules that are its own."""
    from clawtrace.dialects.columns import RECORDABLE
    from clawtrace.dialects.explain import condition_words, rule_words

    file = dialect.file
    base = found[file.extends].file if file.extends else None
    own_kinds = file.kind[: len(file.kind) - len(base.kind)] if base else file.kind
    kinds = [(rule.is_, f"`{condition_words(rule.when)}`" if rule.when else "else") for rule in own_kinds]
    columns = [
        (f"`{name}`", ", then ".join(f"`{rule_words(rule)}`" for rule in rules) or "never")
        for name, rules in file.columns.items()
        if base is None or base.columns.get(name) != rules
    ]
    parts = [
        f"# `{dialect.name}`: {file.title}\n\n{NOTE}\n{file.about.strip()}\n",
        f"Source: {file.source}.\n",
        f"## Verified\n\n{verified(file)}",
        "## Recognised by\n\n" + "".join(f"- `{condition_words(test)}`\n" for test in file.detect.any),
        "## What it can record\n\nA word other than yes and no is the setting that makes it record that fact.\n\n"
        + table(("fact", "recorded"), [(fact.replace("_", " "), recorded(dialect, fact)) for fact in RECORDABLE]),
    ]
    if base is not None:
        parts.append(f"What is not said here is as in [`{file.extends}`]({file.extends}.md).\n")
    if kinds:
        parts.append(f"## Kinds of spans\n\nThe first that holds.\n\n{table(('kind', 'when'), kinds)}")
    if columns:
        parts.append(f"## Columns\n\nThe first place that holds a value.\n\n{table(('column', 'from'), columns)}")
    if file.events and (base is None or base.events != file.events):
        rows = [event_row(rule) for rule in file.events]
        parts.append(
            f"## Log events\n\nWhat a record of each name tells.\n\n{table(('event', 'row', 'its span', 'columns'), rows)}"
        )
    return "\n".join(parts)


def event_row(rule: EventRule) -> tuple[str, str, str, str]:
    """Return what a log event tells: its names, the kind of row, how it finds its span, and the columns that it fills."""
    from clawtrace.dialects.explain import condition_words, rule_words

    names = ", ".join(f"`{name}`" for name in rule.log)
    when = f" where `{condition_words(rule.when)}`" if rule.when else ""
    steps = [
        "`" + " and ".join(part if isinstance(part, str) else pair_words(part) for part in step) + "`"
        for step in rule.join
    ]
    columns = [
        f"`{name}` from " + ", then ".join(f"`{rule_words(of)}`" for of in rules)
        for name, rules in rule.columns.items()
    ]
    return names + when, f"{rule.is_}, {rule.stands}", ", else ".join(steps) or "none", "; ".join(columns)


def pair_words(pair: JoinPair) -> str:
    """Return a pair of attributes that are equal in words."""
    ahead = f" - {pair.ahead}" if pair.ahead else ""
    return f"{pair.log}{ahead} = {pair.span or pair.log}"


def dialect_words() -> str:
    """Return the page of the words that a dialect file is written in."""
    import inspect

    from clawtrace.dialects import columns, rules, schema
    from clawtrace.support.attribute_docs import attribute_docs

    parts = [
        f"# The words of a dialect file\n\n{NOTE}\nHow they work together, with an example: "
        "[../dialects.md](../dialects.md). `parent.` before an attribute key means the parent span's attribute.\n",
        "## Columns\n\n" + ", ".join(f"`{name}`" for name in columns.COLUMN_TYPES) + ".\n",
        "## Facts of `records`\n\n" + ", ".join(f"`{name}`" for name in columns.RECORDABLE) + ".\n",
    ]
    models = [
        schema.DialectFile, rules.SpanTests, schema.Detect, rules.Condition, rules.ColumnRule, rules.KindRule, rules.RoleRule,
        rules.EmitRule, rules.LayerRule, rules.Errors, rules.MessageRule, rules.OrphanRule, rules.ShellRule,
        schema.Verified, schema.DispatcherRule, schema.ExecutionsRule, schema.Recorded, schema.EventRule, schema.JoinPair,
    ]  # fmt: skip
    for model in models:
        docs = attribute_docs(model)
        more = {schema.DialectFile: "inherited", rules.SpanTests: "with a log record"}.get(model)
        rows = [
            (f"`{name.rstrip('_')}`", *([policy(field)] if more else []), docs.get(name, ""))
            for name, field in model.model_fields.items()
            if model is rules.SpanTests or name not in rules.SPAN_TESTS
        ]
        words = table(("word", *([more] if more else []), "meaning"), rows)
        parts.append(f"## {model.__name__}\n\n{inspect.getdoc(model)}\n\n{words}")
    return "\n".join(parts)


def policy(field: FieldInfo) -> str:
    """Return how a word is merged with that of an extended dialect, or the test of a span with that of its records."""
    from enum import Enum

    from clawtrace.dialects.schema import Merge

    return str(next((word for word in field.metadata if isinstance(word, Enum)), Merge.INSTEAD).value)


def schemas() -> Iterator[tuple[str, str]]:
    """Yield the JSON Schemas, as `clawtrace schema --out` writes them, and all in one file of the package, which it reads."""
    from json_schemas import json_schemas

    found = json_schemas()
    for name, schema in found.items():
        yield f"{SCHEMAS}/{name}", json.dumps(schema, indent=2, ensure_ascii=False) + "\n"
    yield "src/clawtrace/cli/projects/schemas.json", packed(found)


def control_service() -> Iterator[tuple[str, str]]:
    """Yield the OpenAPI description of the control service, and the file of the package that the service sends."""
    from openapi_description import openapi

    from clawtrace import __version__

    described = openapi(__version__)
    yield f"{REFERENCE}/openapi.json", json.dumps(described, indent=2, ensure_ascii=False) + "\n"
    yield "src/clawtrace/sidecar/openapi.json", packed(described)


def packed(data: Mapping[str, object]) -> str:
    """Return data as JSON in one line for each of its keys."""
    lines = (
        f"{json.dumps(key)}:{json.dumps(of, ensure_ascii=False, separators=(',', ':'))}" for key, of in data.items()
    )
    return "{" + ",\n".join(lines) + "}\n"


def pages() -> Iterator[tuple[str, str]]:
    """Yield every generated file: its path below the checkout, and its text."""
    yield from assertion_pages(NOTE)
    yield f"{REFERENCE}/commands.md", commands()
    yield from dialects()
    yield f"{REFERENCE}/dialect-words.md", dialect_words()
    yield f"{REFERENCE}/relations.md", relations()
    yield f"{REFERENCE}/call-rules.md", call_rules()
    yield f"{REFERENCE}/python.md", python_api(NOTE)
    yield "src/clawtrace/expect.pyi", expect_stub()
    yield "src/clawtrace/pricing/prices.jsonl", price_table()
    yield f"{REFERENCE}/reasons.md", reasons()
    yield f"{REFERENCE}/conformance.md", conformance_table(NOTE)
    yield from control_service()
    yield from schemas()


def main() -> None:
    """Write every generated file, and remove those that nothing generates any more."""
    written = dict(pages())
    for folder in (REFERENCE, SCHEMAS):
        for path in (ROOT / folder).rglob("*"):
            if path.is_file() and path.relative_to(ROOT).as_posix() not in written:
                path.unlink()
    for name, text in written.items():
        path = ROOT / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    sys.stdout.write(f"{len(written)} files written\n")


if __name__ == "__main__":
    main()
