"""Every key of every file changes something that can be seen, or is refused aloud (spec: config.md §1).

The keys come from the models, so that a new one without an entry here fails. Each entry edits its key in a project that
has all kinds of files and names what must then differ: settings, plan, what the agent was given, what is kept, identity.
"""

from __future__ import annotations

import copy
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, get_args

import pytest
import yaml
from pydantic import BaseModel
from tests.docs_module import docs_module

from clawtrace.campaign.planning.expand import expand
from clawtrace.campaign.running.execute import execute
from clawtrace.campaign.running.reuse import decide, evaluation_folder
from clawtrace.config.loading.assertions_file import load_assertions_file
from clawtrace.config.loading.suite_file import load_suite
from clawtrace.config.projects.project_file import environment_names, load_project
from clawtrace.config.projects.session_settings import session_settings
from clawtrace.errors import ConfigError
from clawtrace.runners.base import runner_types
from clawtrace.support.yaml_reading import read_yaml

ROOT = Path(__file__).parents[2]
AGENT = """\
import json, os, sys
environment = {name: value for name, value in os.environ.items() if name.startswith(("CLAWTRACE_", "OTEL_", "OWN_", "LANGSMITH"))}
files = sorted(os.path.join(folder, name) for folder, _, names in os.walk(os.environ["CLAWTRACE_WORKSPACE"]) for name in names)
print(json.dumps({"argv": sys.argv, "stdin": sys.stdin.read(), "env": environment, "cwd": os.getcwd(), "files": files}))
for name in ("made.md", "made.txt"):
    open(os.path.join(os.environ["CLAWTRACE_WORKSPACE"], name), "w").close()
"""


class Key(NamedTuple):
    """How a key is edited, and what of the project must then differ."""

    to: Any
    seen: tuple[str, ...]
    at: tuple[str | int, ...]
    """The key's path in its document; a name into a list goes to the first entry."""
    document: str


def read_keys() -> tuple[dict[str, Key], dict[str, str]]:
    """Return the keys that are edited here, and those that a test elsewhere is about, with its file."""
    here, elsewhere = {}, {}
    for name, entry in TABLE["keys"].items():
        if "elsewhere" in entry:
            elsewhere[name] = entry["elsewhere"]
            continue
        kind, *rest = name.split(".")
        written = entry["at"].split(".") if "at" in entry else ["runner", *rest[1:]] if kind == "runner" else rest
        at = tuple(int(step) if step.isdigit() else step for step in written)
        here[name] = Key(entry["to"], tuple(entry["seen"]), at, entry.get("in", kind))
    return here, elsewhere


TABLE = read_yaml(Path(__file__).with_name("every_key.yaml").read_text())
for file in sorted((Path(__file__).parent / "runner_keys").glob("*.yaml")):
    TABLE["keys"] |= {f"runner.{file.stem}.{key}": entry for key, entry in read_yaml(file.read_text()).items()}
DOCUMENTS = {kind: entry["data"] for kind, entry in TABLE["documents"].items()}
FILES = TABLE["files"] | {f"configs/cases/{case}/agent.py": AGENT for case in "cd"}
KEYS, ELSEWHERE = read_keys()


def model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for argument in get_args(annotation) if (found := model_in(argument))), None)


def keys_of(model: type[BaseModel], prefix: str) -> Iterator[str]:
    for name, field in model.model_fields.items():
        key, inner = f"{prefix}.{field.alias or name}", model_in(field.annotation)
        if inner is None or key == "case.runner":
            yield key
        else:
            yield from keys_of(inner, key)


FILE_KINDS = docs_module("json_schemas").FILE_KINDS
ALL = {key for kind, model in FILE_KINDS.items() for key in keys_of(model, kind)} | {
    key for name, cls in runner_types().items() for key in keys_of(cls.Settings, f"runner.{name}")
}


def edited(key: Key) -> dict[str, dict[str, Any]]:
    """Return the documents with one key set."""
    documents = copy.deepcopy(DOCUMENTS)
    place: Any = documents[key.document]
    for step in key.at[:-1]:
        if isinstance(place, list) and not isinstance(step, int):
            place = place[0]
        place = place[step] if isinstance(step, int) else place.setdefault(step, {})
    if isinstance(place, list):
        place = place[0]
    place[key.at[-1]] = key.to
    return documents


class Observed:
    """What can be seen of the project in a folder."""

    def __init__(self, root: Path, session: Any) -> None:
        self.root = root
        self.session = session
        self.env = {"PATH": os.environ["PATH"], "OWN_KEY": "1"}
        self.project = load_project(root, {})
        self.suite = load_suite("s", self.project, self.env, run_profile="p", evaluation_profile="e")
        self.plan = expand(self.suite)
        self._ran: Any = None

    def run(self) -> Any:
        if self._ran is None:
            self._ran = execute(self.plan, self.session, self.env)
        return self._ran

    def see(self, what: str) -> Any:
        """Return one thing as JSON, without what differs from run to run and from folder to folder."""
        text = json.dumps(getattr(self, f"see_{what}")(), default=repr).replace(str(self.root), "/root")
        return json.loads(_CHANCE.sub("…", text))

    def see_session(self) -> Any:
        return repr(session_settings(self.project))

    def see_project(self) -> Any:
        return [str(self.project.store), str(self.project.outputs)]

    def see_warnings(self) -> Any:
        return self.suite.warnings

    def see_agents(self) -> Any:
        return [case.agent.config.agent_id if case.agent else None for case in self.suite.cases]

    def see_plan(self) -> Any:
        plan = self.plan
        runs = [[run.run_id, run.folder, run.settings.model_dump()] for run in plan.runs]
        how = [plan.max_concurrency, plan.fail_fast, plan.suite.run_profile.execution_policy.stop_on_runner_error]
        return [runs, str(plan.folder), how]

    def see_run(self) -> Any:
        return [one.fingerprint and one.fingerprint.digest for one in self._decided()]

    def see_judgement(self) -> Any:
        return [[one.evaluation for one in self._decided()], str(evaluation_folder(self.plan))]

    def _decided(self) -> list[Any]:
        found = list(decide(self.plan, self.env, reuse=False).values())
        assert all(one.fingerprint for one in found), [one.why for one in found]
        return found

    def see_manifest(self) -> Any:
        self.run()
        return json.loads((self.plan.folder / "manifest.json").read_text()) | {"started_at": 0}

    def see_given(self) -> Any:
        self.run()
        return [stream.read_text() for stream in sorted(self.plan.folder.rglob("stdout"))]

    def see_kept(self) -> Any:
        self.run()
        kept = [json.loads(file.read_text()) for file in sorted(self.plan.folder.rglob("run.json"))]
        return [[data["case_id"], data["artifacts"], data["notes"]] for data in kept]

    def see_results(self) -> Any:
        return [[result.case_id, result.error] for result in self.run().results]

    def see_asked(self) -> Any:
        self.run()
        return [[one.id for one in asked] for asked in self.session.asked.values()]

    def see_world(self) -> Any:
        self.run()
        return [[world.gateway, world.hooks] for world in self.session.worlds.values()]

    def see_loaded(self) -> Any:
        self.run()
        return [list(map(str, paths)) for paths in self.session.loaded.values()]

    def see_file(self) -> Any:
        loaded = load_assertions_file(str(self.root / "checks.yaml"), self.project, {})
        return [[one.id for one in loaded.assertions.parsed], repr(loaded.project.pricing)]


_UUID = r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_CHANCE = re.compile(rf"{_UUID}|\b[0-9a-f]{{16}}\b|\b[0-9a-f]{{32}}\b|(?<=/\d-)[0-9a-f]{{8}}")
"""Ids of sessions, spans, traces and runs."""


@pytest.fixture
def observe(tmp_path, monkeypatch, project):
    """Write the documents into a project, and return what can be seen of it."""
    monkeypatch.chdir(tmp_path)

    def write(documents: dict[str, dict[str, Any]]) -> Observed:
        for name, text in FILES.items():
            project.write(name, text)
        for kind, data in documents.items():
            project.write(TABLE["documents"][kind]["file"], yaml.safe_dump(data, sort_keys=False))
        return Observed(tmp_path, type(project.session)())

    return write


_BEFORE: dict[str, Any] = {}
"""What was seen of the project without any edit; it is the same for all tests."""


def before(observe: Any, what: str) -> Any:
    if what not in _BEFORE:
        _BEFORE[what] = observe(DOCUMENTS).see(what)
    return _BEFORE[what]


def test_every_key_has_an_entry():
    """A key without an entry has no behaviour that anything would miss; an entry without a key is left over."""
    named = KEYS.keys() | ELSEWHERE.keys()

    assert sorted(ALL - named) == []
    assert sorted(named - ALL) == []


@pytest.mark.full
@pytest.mark.parametrize("name", KEYS)
def test_the_key_changes_what_it_says(observe, name):
    """With the key edited, each thing that is named differs from what it is without the edit; or the edit is refused."""
    key = KEYS[name]
    if key.seen == ("refused",):
        with pytest.raises(ConfigError):
            observe(edited(key)).see("file")
        return
    expected = {what: before(observe, what) for what in key.seen}
    after = observe(edited(key))

    assert [what for what in key.seen if after.see(what) == expected[what]] == []


def test_what_is_watched_stands_still(observe):
    """Without an edit everything that is watched is the same twice: a difference is the edit's."""
    watched = sorted({what for key in KEYS.values() for what in key.seen} - {"refused"})
    again = observe(DOCUMENTS)

    assert [what for what in watched if again.see(what) != before(observe, what)] == []


@pytest.mark.parametrize("name", ELSEWHERE)
def test_the_other_test_is_about_the_key(name):
    """The file that an entry points to exists and gives the key a value."""
    word = name.rsplit(".", 1)[1]
    text = (ROOT / ELSEWHERE[name]).read_text()

    assert re.search(rf"\b{word}\b[\"']?\s*[:=]", text), f"{ELSEWHERE[name]} does not set `{word}`"


@pytest.mark.parametrize("name", [name for name in KEYS if name.startswith("project.")])
def test_every_project_key_has_a_variable(observe, name):
    """`CLAWTRACE_<SECTION>_<FIELD>` sets a key of clawtrace.yaml as the file does; of a list the whole list."""
    key = KEYS[name]
    path = key.at if key.at[0] != "log_adapters" else ("log_adapters",)
    (variable,) = [variable for variable, where in environment_names().items() if where == path]
    documents = edited(key)
    value = documents["project"]
    for step in path:
        value = value[step]
    plain = observe(DOCUMENTS)
    if key.seen == ("refused",):
        with pytest.raises(ConfigError, match=variable):
            load_project(plain.root, {variable: json.dumps(value)})
        return
    by_variable = load_project(plain.root, {variable: json.dumps(value)}).config

    assert by_variable == observe(documents).project.config
    assert by_variable != plain.project.config
