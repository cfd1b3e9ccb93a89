"""The dialect that docs/dialects.md shows: it loads, and reads spans as the page says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from clawtrace.dialects.compile import Compiler
from clawtrace.dialects.load import Dialect, load_dialects

PAGE = Path(__file__).parents[2] / "docs" / "dialects.md"


@pytest.fixture
def acme(tmp_path: Path) -> Dialect:
    """The page's example as a project's own file."""
    (example,) = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    (tmp_path / "acme.yaml").write_text(example, encoding="utf-8")
    return load_dialects([tmp_path])[0]


def test_it_is_asked_first_and_extends_what_it_says(acme: Dialect) -> None:
    assert (acme.name, acme.file.extends) == ("acme-bot", "otel-genai")
    assert max(dialect.detect.priority for dialect in load_dialects()) <= 60
    assert acme.records("arguments") == "ACME_RECORD_INPUT=1"
    assert acme.records("tokens") is True


def test_it_reads_spans_as_it_says(acme: Dialect) -> None:
    """Own rules go before inherited ones, milliseconds become seconds, and what it does not say is inherited."""
    import duckdb

    spans = [
        ("bot helper", {"gen_ai.usage.input_tokens": "7"}),
        ("execute_tool x", {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "final_answer"}),
        ("execute_tool y", {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "pay", "acme.tool.input": "{}",
                            "gen_ai.tool.call.arguments": "[]", "acme.tool.ok": "false", "acme.first_token_ms": "250"}),
    ]  # fmt: skip
    rows = ", ".join(
        f"({n}, 'acme-bot', '{name}', MAP {{{', '.join(f'{k!r}: {v!r}' for k, v in attrs.items())}}}::MAP(VARCHAR, VARCHAR))"
        for n, (name, attrs) in enumerate(spans)
    )
    empty = (
        "'' AS \"SpanKind\", 'acme.telemetry' AS \"ScopeName\", '' AS \"ServiceName\", 'Unset' AS \"StatusCode\","
        ' \'\' AS "StatusMessage", []::VARCHAR[] AS "Events.Name", []::MAP(VARCHAR, VARCHAR)[] AS "Events.Attributes",'
        ' MAP {}::MAP(VARCHAR, VARCHAR) AS "ResourceAttributes"'
    )
    with duckdb.connect() as db:
        db.execute(
            f'CREATE TABLE spans AS SELECT *, {empty} FROM (VALUES {rows}) AS s(sid, dialect, "SpanName", "SpanAttributes")'
        )
        facts = Compiler().row_facts(acme, "spans")
        found = db.execute(
            "SELECT kind, agent_name, input_tokens, tool_arguments, time_to_first_token_s, tool_failed"
            f" FROM ({facts}) ORDER BY sid"
        ).fetchall()

    assert found == [
        ("agent", "helper", 7, None, None, False),
        ("chain", None, None, None, None, False),
        ("tool", None, None, "{}", 0.25, True),
    ]


def test_a_finish_reason_is_known_however_it_is_spelled(tmp_path: Path) -> None:
    """As an SDK writes it: the reasons of spans are looked up in lower case and with `_`."""
    (tmp_path / "acme.yaml").write_text(
        "dialect: acme-bot\ntitle: Acme\nabout: Acme.\nsource: its pages\nextends: otel-genai\ndetect: {priority: 60, any: [{scope: acme}]}\n"
        "finish_reasons: {Needs-Tools: yes}\n",
        encoding="utf-8",
    )

    assert load_dialects([tmp_path])[0].file.finish_reasons["needs_tools"] is True
