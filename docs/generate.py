"""Write the pages of docs/reference and the JSON Schemas from the code: ``python docs/generate.py`` (``make docs``).

A test compares what this would write with what is there, so the pages cannot drift.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from clawtrace.assertions.reference import FieldReference

ROOT = Path(__file__).parent.parent
REFERENCE = "docs/reference"
SCHEMAS = "configs/schemas"
NOTE = "<!-- Written by docs/generate.py; change the code and run `make docs`. -->\n"


def table(titles: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    """Return a Markdown table; bars and line ends inside cells are made harmless."""
    lines = ["| " + " | ".join(titles) + " |", "|" + "---|" * len(titles)]
    for row in rows:
        cells = (" ".join(cell.split()).replace("|", "\\|") for cell in row)
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def relations() -> str:
    """Return the page of the relations."""
    from clawtrace.model.relations import RELATIONS

    parts = [
        f"# Relations\n\n{NOTE}\nWhat assertions and `clawtrace query` may ask. Unknown is NULL, never 0 or an empty "
        "text. Times are nanoseconds since the Unix epoch. How they come about: [../relations.md](../relations.md).\n"
    ]
    for relation in RELATIONS.values():
        rows = [(f"`{column.name}`", column.type, column.meaning) for column in relation.columns]
        parts.append(f"## `{relation.name}`\n\n{relation.meaning}\n\n{table(('column', 'type', 'meaning'), rows)}")
    return "\n".join(parts)


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
    return "\n".join(parts)


def dialects() -> str:
    """Return the page of the dialects."""
    from clawtrace.dialects import load_dialects
    from clawtrace.dialects.schema import RECORDABLE

    parts = [
        f"# Dialects\n\n{NOTE}\nThe instrumentations that clawtrace reads, the most particular first, and what each can "
        "record. A word other than yes and no is the setting that makes it record that fact. What an instrumentation "
        "cannot record is unknown, and verdicts say so.\n"
    ]
    for dialect in load_dialects():
        rows = []
        for fact in RECORDABLE:
            records = dialect.records(fact)
            rows.append((fact, records if isinstance(records, str) else "yes" if records else "no"))
        versions = ", ".join(map(str, dialect.file.versions))
        seen = f"\n\nSeen: {versions}." if versions else ""
        parts.append(
            f"## `{dialect.name}`: {dialect.file.title}\n\n{dialect.file.about.strip()}{seen}\n\n"
            f"{table(('fact', 'recorded'), rows)}\nSource: {dialect.file.source}\n"
        )
    return "\n".join(parts)


GROWTH = {
    "growing": "A pass is final.",
    "shrinking": "A fail is final.",
    "exact": "What is final depends on what is asked.",
}


def fields(found: Iterable[FieldReference]) -> str:
    """Return the table of an assertion type's fields."""
    rows = [(f"`{f.name}`", f.type, "required" if f.required else shown(f.default), f.meaning) for f in found]
    return table(("field", "value", "default", "meaning"), rows) if rows else "No fields of its own.\n"


def shown(default: Any) -> str:
    """Return a default as YAML would have it; nothing for none."""
    if isinstance(default, dict):
        default = {key: value for key, value in default.items() if value is not None}
    return "" if default in (None, "", [], {}) else f"`{json.dumps(default)}`".replace('"', "")


def assertions() -> str:
    """Return the page of the assertion types."""
    from clawtrace.assertions.reference import reference
    from clawtrace.assertions.registry import all_types

    types = [reference(cls) for cls in all_types().values()]
    parts = [
        f"# Assertions\n\n{NOTE}\nStatuses, finality and exit codes: [../assertions.md](../assertions.md).\n",
        table(("type", "passes when"), [(f"[`{t.type}`](#{t.type})", t.sentence) for t in types]),
        f"## Fields of every type\n\n{fields(field for field in types[0].fields if field.common)}",
    ]
    for found in types:
        needs = ", ".join(f"`{fact}`" for fact in found.requires)
        warns = ", ".join(f"`{fact}`" for fact in found.warns_when_missing)
        about = [
            GROWTH[found.growth],
            f"Needs {needs}." if needs else "",
            f"Only warns when unknown: {warns}." if warns else "",
            f"Version {found.version}.",
        ]
        parts.append(
            f"## `{found.type}`\n\n{found.sentence}\n\n{found.why}\n\n```yaml\n{found.example.rstrip()}\n```\n\n"
            f"{fields(field for field in found.fields if not field.common)}\n{' '.join(filter(None, about))}\n\n"
            f"<details><summary>The query of the example</summary>\n\n```sql\n{found.sql}\n```\n\n</details>\n"
        )
    return "\n".join(parts)


def schemas() -> Iterator[tuple[str, str]]:
    """Yield the JSON Schemas, as `clawtrace schema --out` writes them."""
    from clawtrace.cli.schema import schemas

    for name, schema in schemas().items():
        yield f"{SCHEMAS}/{name}", json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def pages() -> Iterator[tuple[str, str]]:
    """Yield every generated file: its path below the checkout, and its text."""
    yield f"{REFERENCE}/assertions.md", assertions()
    yield f"{REFERENCE}/commands.md", commands()
    yield f"{REFERENCE}/dialects.md", dialects()
    yield f"{REFERENCE}/relations.md", relations()
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
