"""Every recording against its truth: nothing is wrong, and what is unknown has a listed reason.

A fact that the recording lacks is None, and its reason stands in `unknown.yaml` in the folder of its client (by a glob of
scenarios) or, where it holds for several clients, in this folder (by a glob of ``client/scenario``). A fact that is there and
differs is wrong. A new recording is a new folder in tests/recordings; no list is edited.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from fnmatch import fnmatchcase
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import conformance
import pytest
import verified
from pydantic import TypeAdapter
from tests.docs_module import docs_module

from clawtrace.dialects.load import load_dialects
from clawtrace.dialects.unread import unknown_attributes
from clawtrace.model.reasons import REASONS
from clawtrace.model.relations import COUNTED as TOTALS
from clawtrace.session.session import Session
from clawtrace.support.yaml_reading import read_yaml

HERE = Path(__file__).parent
RECORDINGS = HERE.parent / "recordings"
SHARED = HERE.parents[1].parent / "shared"
CORPUS = SHARED / "corpus"
STRANGERS = SHARED / "strangers"

TO_MEND: set[str] = set()
"""Clients of the strangers' folder of which a fact is still wrong. One that no longer is must leave this set."""

DIALECTS = {dialect.name: dialect for dialect in load_dialects()}
SAYING = sorted(name for name, one in DIALECTS.items() if any(rule.is_ == "spans" for rule in one.file.executions))
"""The dialects that say that every execution has a span."""
INHERITED = {"google-adk-go", "openai-sdk", "opencode", "smolagents-genai", "splunk-genai"}
"""They inherit what holds for another scope: opencode is built on the AI SDK, ADK for Go's tools are read as Python's, and others extend what
reads OpenTelemetry's instrumentations, of which LangChain's writes them."""

COUNTED = ("llm_calls", "input_tokens", "output_tokens")
SDK = "opentelemetry.instrumentation.openai.v1"
ANTHROPIC = "com.anthropic.sdk.python"
SAID = re.compile(r"message|argument|result|entity\.(in|out)put|^gen_ai\.(prompt|completion)")
PAIRINGS: dict[str, tuple[str, ...]] = {
    "LangChain's callbacks over the SDK": ("openinference.instrumentation.langchain", SDK),
    "LangSmith over the SDK": ("langsmith", SDK),
    "two of LangChain's callbacks": ("openinference.instrumentation.langchain", "langsmith"),
    "ADK over the SDK": ("gcp.vertex.agent", SDK),
    "Agent Framework over the SDK": ("agent_framework", SDK),
    "Strands over the SDK": ("strands.telemetry.tracer", SDK),
    "Pydantic AI over the SDK": ("pydantic-ai", SDK),
    "smolagents over the SDK": ("openinference.instrumentation.smolagents", SDK),
    "AutoGen over the SDK": ("autogen-core", SDK),
    "Agno over the SDK": ("opentelemetry.instrumentation.agno", SDK),
    "OpenAI Agents over the SDK, both of OpenLLMetry": ("opentelemetry.instrumentation.openai_agents", SDK),
    "OpenAI Agents over the SDK, of OpenInference and OpenLLMetry": ("openinference.instrumentation.openai_agents", SDK),
    "OpenAI Agents over the SDK, of OpenLLMetry and OpenInference": (
        "opentelemetry.instrumentation.openai_agents", "openinference.instrumentation.openai",
    ),
    "OpenAI Agents twice": ("openinference.instrumentation.openai_agents", "opentelemetry.instrumentation.openai_agents"),
    "OpenAI Agents twice over the SDK": (
        "openinference.instrumentation.openai_agents", "opentelemetry.instrumentation.openai_agents",
        "opentelemetry.instrumentation.genai.openai",
    ),
    "the SDK twice": ("opentelemetry.util.genai.handler", "openinference.instrumentation.openai"),
    "Anthropic's SDK below Pydantic AI": ("pydantic-ai", ANTHROPIC),
    "Anthropic's SDK below OpenInference": ("openinference.instrumentation.anthropic", ANTHROPIC),
    "Anthropic's SDK and OpenLLMetry, below LangChain": (
        "openinference.instrumentation.langchain", "opentelemetry.instrumentation.anthropic", ANTHROPIC,
    ),
    "DSPy over LiteLLM": ("openinference.instrumentation.dspy", "openinference.instrumentation.litellm"),
    "a tool call over MCP's client and server": (
        "openinference.instrumentation.openai_agents", "mcp-python-sdk", "fastmcp",
    ),
}  # fmt: skip
"""Scopes of one run whose spans record the same calls: what dialects.md §11 and §16 name, as far as it can be recorded."""


def _unknown() -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = read_yaml((HERE / "unknown.yaml").read_text(encoding="utf-8"))
    for path in sorted(RECORDINGS.glob("*/unknown.yaml")):
        own = read_yaml(path.read_text(encoding="utf-8"))
        found |= {f"{path.parent.name}/{key}": entries for key, entries in own.items()}
    return found


UNKNOWN = _unknown()

_OF_CORPUS = conformance.recordings(CORPUS)
_CORPUS_NAMES = set(map(conformance.name, _OF_CORPUS))
CASES = [
    *_OF_CORPUS,
    *(path for path in conformance.recordings(RECORDINGS) if conformance.name(path) not in _CORPUS_NAMES),
]
OF_STRANGERS = conformance.recordings(STRANGERS)


class Recorded(NamedTuple):
    """Recordings as the runs of one session, named ``client/scenario``."""

    paths: list[Path]
    session: Session
    runs: dict[str, dict[str, Any]]
    """What `clawtrace inspect --json` says of each."""


@pytest.fixture(scope="module")
def recorded() -> Iterator[tuple[Recorded, Recorded]]:
    """The recordings of the corpus and of this repository, and those of strangers: both have some of the same names."""
    with conformance.loaded(CASES) as ours, conformance.loaded(OF_STRANGERS) as strangers:
        yield (
            Recorded(CASES, ours, conformance.inspected(ours)),
            Recorded(OF_STRANGERS, strangers, conformance.inspected(strangers)),
        )


@pytest.fixture(scope="module")
def inspected(recorded: tuple[Recorded, Recorded]) -> dict[Path, dict[str, Any]]:
    """What `clawtrace inspect --json` says of each recording."""
    return {path: some.runs[conformance.name(path)] for some in recorded for path in some.paths}


@pytest.mark.parametrize("path", CASES, ids=conformance.name)
def test_recording_against_its_truth(path: Path, inspected: dict[Path, dict[str, Any]]) -> None:
    """Each fact is true, or unknown for a listed reason."""
    facts = conformance.compare(path, inspected[path])

    assert _of(facts, "wrong") == {}
    assert _unlisted(path, facts) == set()


@pytest.mark.parametrize(
    "path", [path for path in OF_STRANGERS if path.parent.name not in TO_MEND], ids=conformance.name
)
def test_recording_of_a_stranger(path: Path, inspected: dict[Path, dict[str, Any]]) -> None:
    """No fact is wrong; where recordings of the client are ours, too, what is unknown has a listed reason."""
    facts = conformance.compare(path, inspected[path])

    assert _of(facts, "wrong") == {}
    assert not (RECORDINGS / path.parent.name).is_dir() or _unlisted(path, facts) == set()


def test_inspect_is_as_its_schema_says(inspected: dict[Path, dict[str, Any]]) -> None:
    """`clawtrace.inspect/1` of every recording has the keys of its struct and no other, and values of their types."""
    said = json.dumps({"schema": "clawtrace.inspect/1", "runs": list(inspected.values())})
    contract = TypeAdapter(docs_module("inspection_format").Inspection)

    assert contract.dump_python(contract.validate_json(said, strict=True), mode="json") == json.loads(said)


@pytest.mark.skipif(not OF_STRANGERS, reason="needs the recordings of strangers")
def test_nine_of_ten_core_facts_that_strangers_tell_are_true(inspected: dict[Path, dict[str, Any]]) -> None:
    """A fact of which a value occurs nowhere in the recording is not recorded; any other one counts, whether it is recorded or not."""
    facts = [
        (path, fact, status)
        for path in OF_STRANGERS
        for fact, (status, _, _) in conformance.compare(path, inspected[path]).items()
        if fact not in conformance.DETAILS
    ]
    true = sum(status == "true" for *_, status in facts)
    recorded = true + sum(status != "true" and not conformance.is_absent(path, fact) for path, fact, status in facts)

    assert true >= 0.9 * recorded


@pytest.mark.skipif(not OF_STRANGERS, reason="needs the recordings of strangers")
def test_what_is_to_mend_is_wrong(inspected: dict[Path, dict[str, Any]]) -> None:
    """A client that no longer has a wrong fact is held to it."""
    wrong = {path.parent.name for path in OF_STRANGERS if _of(conformance.compare(path, inspected[path]), "wrong")}

    assert wrong == TO_MEND


def _of(facts: dict[str, tuple[str, Any, Any]], status: str) -> dict[str, tuple[str, Any, Any]]:
    return {fact: found for fact, found in facts.items() if found[0] == status}


def _unlisted(path: Path, facts: dict[str, tuple[str, Any, Any]]) -> set[str]:
    """Return the unknown facts for which no reason is listed; where nothing happened none is needed."""
    listed = {fact for key, entries in UNKNOWN.items() if _is_for(key, path) for fact in entries}
    return {fact for fact, (_, _, truth) in _of(facts, "unknown").items() if truth not in (None, 0)} - listed


def _is_for(key: str, path: Path) -> bool:
    """Return whether an entry is for the recording: by a glob of its client, or of client and scenario."""
    return fnmatchcase(conformance.name(path) if "/" in key else path.parent.name, key)


@pytest.mark.parametrize("key", UNKNOWN)
def test_an_entry_of_unknown_facts_is_needed(key: str) -> None:
    """It names recordings that exist, facts, and a reason."""
    entries = UNKNOWN[key]

    assert set(entries) <= set(conformance.FACTS)
    assert all(len(reason) > 20 for reason in entries.values())
    if _OF_CORPUS and OF_STRANGERS:
        assert any(_is_for(key, path) for path in (*CASES, *OF_STRANGERS))


@pytest.fixture(scope="module")
def found(recorded: tuple[Recorded, Recorded]) -> set[verified.Read]:
    return {one for some in recorded for one in verified.verified(some.session, some.paths)}


@pytest.fixture(scope="module")
def declared() -> set[verified.Read]:
    """Every scope, version and recording that a dialect file declares; a scope without a version has an empty one."""
    return {
        verified.Read(dialect.name, entry.scope, version, client)
        for dialect in load_dialects()
        for entry in dialect.verified
        for version in entry.versions or [""]
        for client in entry.recordings
    }


@pytest.fixture(scope="module")
def shown(recorded: tuple[Recorded, Recorded]) -> dict[str, list[tuple[dict[str, Any], Counter[str]]]]:
    """By dialect the truth of each recording in which it wrote spans of tools, and how many of each name."""
    found: dict[str, list[tuple[dict[str, Any], Counter[str]]]] = {name: [] for name in SAYING}
    paths = {conformance.name(path): path for path in recorded[0].paths}
    rows = recorded[0].session.query(
        "SELECT run_id, dialect, tool_name, count(*) FROM spans WHERE kind = 'tool' GROUP BY ALL ORDER BY ALL"
    )
    for (run, dialect), of in groupby(rows.rows, key=itemgetter(0, 1)):
        if dialect in found:
            truth = json.loads((paths[run] / "truth.json").read_text(encoding="utf-8"))
            found[dialect].append((truth, Counter({tool: n for _, _, tool, n in of})))
    return found


@pytest.fixture(scope="module")
def scopes(recorded: tuple[Recorded, Recorded]) -> dict[Path, set[str]]:
    """The scopes of each recording."""
    found: dict[Path, set[str]] = {}
    for some in recorded:
        paths = {conformance.name(path): path for path in some.paths}
        for run, scope in some.session.query("SELECT DISTINCT run_id, scope FROM spans").rows:
            found.setdefault(paths[run], set()).add(scope)
    return found


@pytest.mark.parametrize("pairing", PAIRINGS)
def test_a_pairing_of_instrumentations_counts_nothing_twice(
    pairing: str, scopes: dict[Path, set[str]], inspected: dict[Path, dict[str, Any]]
) -> None:
    """A recording in which all of them write spans has the true number of model calls and tokens, and nothing wrong."""
    paths = [path for path, written in scopes.items() if written.issuperset(PAIRINGS[pairing])]
    facts = [conformance.compare(path, inspected[path]) for path in paths]

    assert [_of(of_one, "wrong") for of_one in facts] == [{}] * len(facts)
    assert any(all(of_one[fact][0] == "true" for fact in COUNTED) for of_one in facts)


@pytest.mark.parametrize(
    "client", ["agentscope", "agentscope-java", "agno+openllmetry", "llama-index+openllmetry", "rig"]
)
def test_a_tool_that_only_its_result_shows_as_failed_is_not_ok_without_it(client: str, tmp_path: Path) -> None:
    """As where a Collector removes what was said."""
    source, path = RECORDINGS / client / "tool_error", tmp_path / client / "tool_error"
    path.mkdir(parents=True)
    (path / "truth.json").write_bytes((source / "truth.json").read_bytes())
    with (path / "traces.otlp.jsonl").open("w", encoding="utf-8") as file:
        for line in (source / "traces.otlp.jsonl").open(encoding="utf-8"):
            request = json.loads(line)
            for span in (s for r in request["resourceSpans"] for scope in r["scopeSpans"] for s in scope["spans"]):
                span["attributes"] = [a for a in span.get("attributes", ()) if not SAID.search(a["key"])]
            file.write(json.dumps(request) + "\n")
    with conformance.loaded([path]) as session:
        found = conformance.compare(path, conformance.inspected(session)[conformance.name(path)])

    assert {fact: found[fact][0] for fact in ("tool_calls", "errors")} == {"tool_calls": "unknown", "errors": "unknown"}


class TestReasons:
    """What is not known has a reason (the relations `doubts` and `gaps`)."""

    def test_a_sum_that_is_not_exact_has_one(self, recorded: tuple[Recorded, Recorded]) -> None:
        session = recorded[0].session
        open_ = " OR ".join(f"{name}_low IS DISTINCT FROM {name}_high" for name in (*TOTALS, "cost"))
        unknown = {run for (run,) in session.query(f"SELECT run_id FROM run_totals WHERE {open_}").rows}
        rows = session.query("SELECT run_id, reason FROM doubts UNION ALL SELECT run_id, reason FROM gaps").rows

        assert len(unknown) > 100
        assert unknown <= {run for run, _ in rows}
        assert {reason for _, reason in rows} <= set(REASONS)

    def test_a_row_that_is_not_certain_has_one(self, recorded: tuple[Recorded, Recorded]) -> None:
        """And what says that a row is not certain names one."""
        numbers = {"llm_calls": "call_no", "tool_calls": "call_no", "agents": "activation_no", "errors": "error_no"}
        uncertain = " UNION ALL ".join(
            f"SELECT run_id, '{name}' AS relation, {number} AS row_no FROM {name} WHERE NOT certain"
            for name, number in numbers.items()
        )
        session = recorded[0].session
        rows = session.query(uncertain).rows
        doubted = session.query(
            "SELECT DISTINCT run_id, relation, row_no FROM doubts WHERE column_name IS NULL AND relation <> 'commands'"
        ).rows

        assert sorted(rows) == sorted(doubted)


class TestVerified:
    """What dialect files declare as verified is what the recordings carry (`python tests/facts/verified.py --write`)."""

    def test_what_the_recordings_carry_is_declared(
        self, found: set[verified.Read], declared: set[verified.Read]
    ) -> None:
        """A new recording needs a line in the dialect file that reads it; the script writes it."""
        assert len(found) > 60
        assert found <= declared

    @pytest.mark.skipif(
        not (_OF_CORPUS and OF_STRANGERS), reason="needs the recordings that are shared between projects"
    )
    def test_what_is_declared_is_in_the_recordings(
        self, found: set[verified.Read], declared: set[verified.Read]
    ) -> None:
        """A declaration is true: its recordings have spans of that scope, and its versions are theirs."""
        assert {(one.dialect, one.scope, one.client) for one in declared} <= {
            (one.dialect, one.scope, one.client) for one in found
        }
        assert {one[:3] for one in declared} <= {one[:3] for one in found}

    def test_attributes_that_recordings_carry_are_known(self, recorded: tuple[Recorded, Recorded]) -> None:
        """Each of a namespace that a dialect reads is read by a rule, or listed."""
        carried = {one for some in recorded for one in verified.unread(some.session)}

        assert len(carried) > 300
        assert {(name, key) for name, key in carried if unknown_attributes(DIALECTS[name], [key])} == set()


class TestExecutions:
    """A dialect that says that every execution has a span (`executions: spans`) has recordings that show it."""

    @pytest.mark.parametrize("dialect", [name for name in SAYING if name not in INHERITED])
    def test_recordings_show_a_span_of_every_execution(self, dialect: str, shown: dict[str, list[Any]]) -> None:
        """Of tools side by side and of one that failed, written by that very dialect."""
        proofs = [truth for truth, spans in shown[dialect] if Counter(call["name"] for call in truth["tools"]) <= spans]

        assert any(call["error"] for truth in proofs for call in truth["tools"])
        assert any(len(call["requested_tools"]) > 1 for truth in proofs for call in truth["llm_calls"])
