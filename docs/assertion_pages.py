"""The pages of the assertion types: each from its class, with a failure that the code produces while it is written.

The failing run of a type is one of the cases that test it (``tests/assertions``): a tiny run, described in a line.
"""

from __future__ import annotations

import contextlib
import http.server
import json
import re
import sys
import tempfile
import threading
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import yaml

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clawtrace.assertions.base import Assertion
    from clawtrace.assertions.probe import Probe
    from clawtrace.assertions.reference import FieldReference, Reference
    from clawtrace.assertions.world import World

__all__ = ["assertion_pages", "table"]

ROOT = Path(__file__).parent.parent
FOLDER = "docs/reference/assertions"
CASES = ROOT / "tests" / "assertions"


class Failure(NamedTuple):
    """One way in which a type fails."""

    title: str
    of: str
    """The run or the world, described in YAML."""
    asked: dict[str, Any]
    """In the long notation."""
    message: str


def assertion_pages(note: str) -> Iterator[tuple[str, str]]:
    """Yield the index, and the page of each type; `note` says where they come from."""
    from clawtrace.assertions.reference import reference
    from clawtrace.assertions.registry import all_types

    types = {cls: reference(cls) for cls in all_types().values() if cls.__module__.startswith("clawtrace.")}
    yield f"{FOLDER}/README.md", index(list(types.values()), note)
    for cls, found in types.items():
        yield f"{FOLDER}/{found.type}.md", page(found, failure(cls), note)


def index(types: Sequence[Reference], note: str) -> str:
    """Return the page that lists the types, with the fields that each of them has."""
    common = [field for field in types[0].fields if field.common]
    return "\n".join(
        [
            f"# Assertions\n\n{note}\nOne page a type. Which one to use: [../../which-assertion.md]"
            "(../../which-assertion.md). Statuses, finality and exit codes: [../../assertions.md](../../assertions.md).\n",
            table(("type", "passes when"), [(f"[`{t.type}`]({t.type}.md)", t.sentence) for t in types]),
            f"## Fields of every type\n\n{fields(common)}",
        ]
    )


def page(found: Reference, failed: Failure, note: str) -> str:
    """Return the page of one type."""
    needs = ", ".join(f"`{fact}`" for fact in found.requires)
    about = [
        "" if found.sql else "It looks once, when the run has ended.",
        f"Needs {needs}." if needs else "",
        "Only warns where nothing at all is recorded of it." if found.warns_when_absent else "",
        f"Version {found.version} of its meaning.",
    ]
    own = [field for field in found.fields if not field.common]
    return "\n".join(
        [
            f"# `{found.type}`\n\n{note}\n{found.sentence}\n",
            f"## Why\n\n{found.why}\n",
            f"## Fields\n\n{fields(own)}\nAnd the [fields of every type](README.md#fields-of-every-type).\n",
            f"## Example\n\n{examples(found)}",
            f"## How it fails\n\n{failed_text(failed)}",
            f"## What it needs\n\n{' '.join(filter(None, about))}\n",
            f"## The query\n\n{query(found)}",
        ]
    )


def examples(found: Reference) -> str:
    """Return the example in the long notation, then in the other two."""
    (entry,) = yaml.safe_load(found.example)
    rest = {key: value for key, value in entry.items() if key != "type"}
    alone = len(rest) == 1 and next(iter(rest)) == found.main_field
    value = (rest[found.main_field] if alone else rest) if rest else None
    short = f"{found.type}: {flow(value)}" if rest else found.type
    if found.type == "python_hook":
        check = f"check_id: my-check\n    python_hook: {flow(rest)}"
    else:
        check = f"check_id: my-check\n    declarative: {flow({'kind': found.type} | rest)}"
    written = "\n".join(f"  {line}" for line in found.example.rstrip().splitlines())
    return (
        f"```yaml\nassertions:\n{written}\n```\n\nThe same in the short and in the check notation:\n\n"
        f"```yaml\nassert:\n  - {short}\ndeterministic_checks:\n  - {check}\n```\n"
    )


def flow(value: Any) -> str:
    """Return a value as YAML in one line."""
    text = yaml.safe_dump(value, default_flow_style=True, width=10_000, sort_keys=False, allow_unicode=True)
    return text.removesuffix("...\n").strip()


def failed_text(failed: Failure) -> str:
    """Return a failure: the run, what was asked of it, and the sentence of its verdict."""
    asked = yaml.safe_dump([failed.asked], sort_keys=False, allow_unicode=True, default_flow_style=None, width=100)
    return (
        f"For example, {failed.title}. Asked of\n\n```yaml\n{failed.of.rstrip()}\n```\n\nthe assertion\n\n"
        f"```yaml\n{asked.rstrip()}\n```\n\nfails with\n\n```text\n{failed.message}\n```\n"
    )


def query(found: Reference) -> str:
    """Return the SQL of the example."""
    if not found.sql:
        return "A probe: it checks the environment, not the trace, so there is no query.\n"
    return f"Of the example, over the [relations](../relations.md); one text for all selected runs.\n\n```sql\n{found.sql}\n```\n"


# Failures -------------------------------------------------------------------------------------


def failure(cls: type[Assertion]) -> Failure:
    """Return a failure of a type, as the code says it now.

    Raises:
        ValueError: none of the type's cases fails.
    """
    from clawtrace.assertions.probe import Probe

    if cls.type_name in ELSEWHERE:
        return ELSEWHERE[cls.type_name]()
    name = f"{cls.type_name}.yaml"
    folder = CASES / ("probe_cases" if issubclass(cls, Probe) else "cases")
    for case in yaml.safe_load((folder / name).read_text(encoding="utf-8")):
        if case.get("holds") is False:
            asked = {"type": cls.type_name} | case["assert"]
            given = case["world"] if issubclass(cls, Probe) else case["run"]
            message = of_world(asked, given) if issubclass(cls, Probe) else of_run(asked, given)
            return Failure(case["case"], described(given, issubclass(cls, Probe)), asked, message)
    raise ValueError(f"{folder / name} has no case that fails")


def described(given: Mapping[str, Any], is_world: bool) -> str:
    """Return a run or a world of the cases as YAML."""
    if not given:
        return "{}  # a run that left nothing" if is_world else "{}  # a run that did nothing"
    return yaml.safe_dump(dict(given), sort_keys=False, allow_unicode=True, default_flow_style=None, width=100)


def of_run(asked: Mapping[str, Any], given: Mapping[str, Any]) -> str:
    """Return what an assertion says of one described run, asked in a store."""
    sys.path.insert(0, str(CASES))
    try:
        from assertion_facts import DuckFacts, join, outcomes_of, rows_of  # type: ignore[import-not-found]
    finally:
        sys.path.remove(str(CASES))
    from clawtrace.assertions.registry import parse_assertion
    from clawtrace.verdicts.asking.ask import ask

    store = DuckFacts()
    try:
        store.load(join([rows_of("r1", given)]))
        answered = ask(store, parse_assertion(asked), ["r1"])
        (outcome,) = outcomes_of(answered)
        return answered.assertion.explain(outcome)
    finally:
        store.close()


def of_world(asked: Mapping[str, Any], given: Mapping[str, Any]) -> str:
    """Return what a probe says of a described world, with real files."""
    from clawtrace.assertions.world import World

    with tempfile.TemporaryDirectory() as root:
        for folder, key in (("workspace", "files"), ("case", "case_files")):
            place = Path(root, folder)
            place.mkdir()
            for name, text in given.get(key, {}).items():
                (place / name).parent.mkdir(parents=True, exist_ok=True)
                (place / name).write_text(text, encoding="utf-8")
        for name, target in given.get("links", {}).items():
            Path(root, "workspace", name).symlink_to(target)
        workspace = Path(root, "workspace") if given.get("workspace", True) else None
        known = {key: given[key] for key in ("started_at", "changes", "env") if key in given}
        world = World("r1", workspace=workspace, case_dir=Path(root, "case"), **({"started_at": 0.0} | known))
        return probed(asked, world).replace(f"{root}/", "")


def probed(asked: Mapping[str, Any], world: World) -> str:
    """Return the sentence of a probe's verdict."""
    from clawtrace.assertions.registry import parse_assertion

    probe: Probe = parse_assertion(asked)  # type: ignore[assignment]
    return probe.explain(probe.found("r1", probe.probe(world)))


def of_hook() -> Failure:
    """Return how a hook of the user's own fails."""
    from clawtrace.assertions.world import HookPolicy, World

    code = "def check_output(run):\n    return {'passed': False, 'message': 'The total is 41, not 42.'}\n"
    asked = {"type": "python_hook", "path": "checks.py", "callable_name": "check_output"}
    with tempfile.TemporaryDirectory() as root:
        Path(root, "checks.py").write_text(code, encoding="utf-8")
        world = World("r1", workspace=Path(root), case_dir=Path(root), hooks=HookPolicy(True, "allow"))
        message = probed(asked, world)
    return Failure("the function says no", yaml.safe_dump({"checks.py": code}, default_style="|"), asked, message)


def of_gateway() -> Failure:
    """Return how a gateway that is not well fails."""
    from clawtrace.assertions.world import Gateway, World

    asked = {"type": "gateway_healthy"}
    with answering(503) as here:
        message = probed(asked, World("r1", gateway=Gateway(f"http://{here}")))
    of = f"gateway: {{url: http://{SHOWN}}}  # which answers 503"
    return Failure("the gateway answers and is not well", of, asked, message.replace(here, SHOWN))


def of_endpoint() -> Failure:
    """Return how an endpoint that answers otherwise fails."""
    from clawtrace.assertions.world import World

    with answering(404) as here:
        asked = {"type": "gateway_response", "endpoint": f"http://{here}/health", "expected_status": 200}
        message = probed(asked, World("r1"))
    shown = json.loads(json.dumps(asked).replace(here, SHOWN))
    of = f"endpoint: http://{SHOWN}/health  # which answers 404"
    return Failure("the endpoint answers with another status", of, shown, message.replace(here, SHOWN))


def of_judge(asked: dict[str, Any], score: float, evidence: str) -> Failure:
    """Return how a judge's low score fails an assertion about a letter."""
    from clawtrace.assertions.world import JudgeOpinion, World

    letter, soul = "Pay at once, or else.\n", "You are Nell: warm, plain and brief.\n"
    with tempfile.TemporaryDirectory() as root:
        for name, text in (("letter.md", letter), ("SOUL.md", soul)):
            Path(root, name).write_text(text, encoding="utf-8")
        opinion = JudgeOpinion(score, evidence)
        message = probed(
            asked, World("r1", workspace=Path(root), case_dir=Path(root), judge=lambda _world, _task: (opinion,))
        )
    of = {"files": {"letter.md": letter}, **({"case_files": {"SOUL.md": soul}} if "soul_path" in asked else {})}
    return Failure("the judge's score is too low", yaml.safe_dump(of), asked, message)


def of_llm_judge() -> Failure:
    """Return how a text that is not kind fails."""
    return of_judge(
        {"type": "llm_judge", "path": "letter.md", "rubric": "Score 1-5: Is it kind?"}, 1, "'or else' is a threat"
    )


def of_identity() -> Failure:
    """Return how a text in another voice fails."""
    asked = {"type": "agent_identity_consistent", "output_path": "letter.md", "soul_path": "SOUL.md"}
    return of_judge(asked, 2, "a threat is not warm")


SHOWN = "127.0.0.1:18789"
"""Stands in the pages for the address that a server was given."""


@contextlib.contextmanager
def answering(status: int) -> Iterator[str]:
    """Yield host and port of a server that answers one request, with `status`."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        yield f"127.0.0.1:{server.server_address[1]}"
        thread.join()


ELSEWHERE = {
    "python_hook": of_hook,
    "gateway_healthy": of_gateway,
    "gateway_response": of_endpoint,
    "llm_judge": of_llm_judge,
    "agent_identity_consistent": of_identity,
}
"""Types whose failures need more than a folder or rows."""


# Markdown -------------------------------------------------------------------------------------


def fields(found: Iterable[FieldReference]) -> str:
    """Return a table of fields."""
    rows = [(f"`{f.name}`", f.type, "required" if f.required else shown(f.default), f.meaning) for f in found]
    return table(("field", "value", "default", "meaning"), rows) if rows else "None of its own.\n"


def shown(default: Any) -> str:
    """Return a default as YAML would have it; nothing for none."""
    if isinstance(default, dict):
        default = {key: value for key, value in default.items() if value is not None}
    return "" if default in (None, "", [], {}) else f"`{json.dumps(default)}`".replace('"', "")


def table(titles: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    """Return a Markdown table; bars and line ends inside cells are made harmless."""
    lines = ["| " + " | ".join(titles) + " |", "|" + "---|" * len(titles)]
    for row in rows:
        cells = (re.sub(r"\s+", " ", cell).replace("|", "\\|").strip() for cell in row)
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"
