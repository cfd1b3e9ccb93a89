"""Load `clawtrace.yaml` and the environment variables that go before it (spec: config.md §1)."""

from __future__ import annotations

import copy
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import yaml
from pydantic import BaseModel

from clawtrace.config.files.document import (
    Document,
    KeyPath,
    find_project_file,
    parse_document,
    problem_at,
    read_document,
)
from clawtrace.config.files.problems import in_reading_order, validated
from clawtrace.config.project import ProjectConfig
from clawtrace.errors import ConfigError, ConfigProblem
from clawtrace.support.did_you_mean import did_you_mean

if TYPE_CHECKING:
    from clawtrace.pricing import Pricing

__all__ = ["Project", "dialect_problems", "environment_names", "load_project", "pricing_of"]

_PREFIX = "CLAWTRACE_"


class Project(NamedTuple):
    """A project's settings, with its paths resolved."""

    config: ProjectConfig
    root: Path
    """Folder of `clawtrace.yaml`, or the working folder."""
    path: Path | None
    """The file; None when there is none."""
    pricing: Pricing | None
    """`model_pricing`; None when the project states no prices."""

    @property
    def configs(self) -> Path:
        """Folder of cases, suites and profiles."""
        return self.root / "configs"

    @property
    def suites(self) -> list[str]:
        """Ids of the suites, in order."""
        return sorted({path.stem for path in (self.configs / "suites").glob("*.y*ml")})

    @property
    def outputs(self) -> Path:
        """Folder of campaign results."""
        return self.root / self.config.outputs

    @property
    def store(self) -> Path | None:
        """The DuckDB file of `store.url`; None when it names none."""
        url = self.config.store.url
        return None if url is None or self.clickhouse else self.root / url.removeprefix("duckdb://")

    @property
    def clickhouse(self) -> str | None:
        """The URL of a ClickHouse in `store.url`; None when it names none."""
        url = self.config.store.url
        return url if url is not None and url.startswith("clickhouse://") else None

    @property
    def dialect_folders(self) -> tuple[Path, ...]:
        """Folders with dialect files of the project's own."""
        return tuple(self.root / folder for folder in self.config.dialects)


def load_project(start: Path | None = None, env: Mapping[str, str] = os.environ) -> Project:
    """Load the project that `start` is in.

    Args:
        start: the folder from which `clawtrace.yaml` is looked for, upwards; by default the working folder.
        env: variables ``CLAWTRACE_<SECTION>_<FIELD>`` go before the file.

    Raises:
        ConfigError: every problem of the file and of the variables.
        UsageError: both clawtrace.yaml and clawtrace.yml exist.
    """
    start = start or Path.cwd()
    path = find_project_file(start)
    document = parse_document("{}", "clawtrace.yaml") if path is None else read_document(path)
    problems: list[ConfigProblem] = []
    data, sources = _with_environment(document.data, env, problems)

    def place(key: KeyPath) -> tuple[Document, KeyPath]:
        source = next((found for prefix, found in sources.items() if key[: len(prefix)] == prefix), None)
        return (document, key) if source is None else (source, ())

    # Defaults need no check: a project without settings builds no validator.
    config = validated(ProjectConfig, data, place, problems) if data else ProjectConfig.model_construct()
    pricing = None
    if config is not None:
        pricing = pricing_of(config.model_pricing, document, problems)
        problems += _switch_problems(config, document)
        root = path.resolve().parent if path is not None else start.resolve()
        problems += _folder_problems(config, document, root)
    if problems or config is None:
        raise ConfigError(in_reading_order(problems))
    return Project(config, root, path, pricing)


def dialect_problems(folders: Sequence[Path]) -> list[ConfigProblem]:
    """Return what is wrong with the dialect files in folders of a project's own."""
    if not folders:
        return []
    from clawtrace.dialects.load import load_dialects

    try:
        load_dialects(folders)
    except ConfigError as error:
        return error.problems
    return []


def environment_names() -> dict[str, KeyPath]:
    """Return each variable that overrides a field, with the field's path."""
    names: dict[str, KeyPath] = {}

    def walk(model: type[BaseModel], path: tuple[str, ...]) -> None:
        for name, field in model.model_fields.items():
            inner = field.annotation
            if isinstance(inner, type) and issubclass(inner, BaseModel):
                walk(inner, (*path, name))
            else:
                names[_PREFIX + "_".join((*path, name)).upper()] = (*path, name)

    walk(ProjectConfig, ())
    return names


def pricing_of(mapping: dict[str, Any] | None, document: Document, problems: list[ConfigProblem]) -> Pricing | None:
    """Return the prices of a `model_pricing` mapping, adding what is wrong with it to `problems`."""
    if mapping is None:
        return None
    from clawtrace.pricing import Pricing

    def locate(path: tuple[str | int, ...]) -> tuple[str, int, int]:
        return (document.file, *document.locate(("model_pricing", *path), key=True))

    try:
        return Pricing.from_mapping(mapping, locate)
    except ConfigError as error:
        problems += error.problems
        return None


def _with_environment(
    data: dict[str, Any], env: Mapping[str, str], problems: list[ConfigProblem]
) -> tuple[dict[str, Any], dict[KeyPath, Document]]:
    """Return the data with the variables' values in place, and where each of those came from."""
    known = environment_names()
    sections = {_PREFIX + str(path[0]).upper() + "_" for path in known.values() if len(path) > 1}
    result, sources = copy.deepcopy(data), {}
    for name in sorted(env):
        path = known.get(name)
        file = f"environment variable {name}"
        if path is None:
            if any(name.startswith(section) for section in sections):
                hint = did_you_mean(name, known)
                problems.append(problem_at(file, 0, 0, "does not match any setting of clawtrace.yaml", hint))
            continue
        try:
            source = parse_document(env[name] or '""', file, mapping=False)
        except (ConfigError, yaml.YAMLError):
            problems.append(ConfigProblem(file, 0, 0, f"is not a YAML value, found {env[name]!r}"))
            continue
        target = result
        for step in path[:-1]:
            inner = target.setdefault(str(step), {})
            if not isinstance(inner, dict):
                inner = target[str(step)] = {}
            target = inner
        target[str(path[-1])] = source.data
        sources[path] = source
    return result, sources


def _switch_problems(config: ProjectConfig, document: Document) -> list[ConfigProblem]:
    if not config.telemetry_env:
        return []
    from clawtrace.runners.starting.environment import switch_names

    known = switch_names()
    return [
        document.problem(
            ("telemetry_env", name),
            "is neither a telemetry variable nor a group of them; `clawtrace env` lists both",
            did_you_mean(name, known),
            key=True,
        )
        for name in config.telemetry_env
        if name not in known
    ]


def _folder_problems(config: ProjectConfig, document: Document, root: Path) -> list[ConfigProblem]:
    return [
        document.problem(("dialects", index), f"the folder {folder!r} does not exist")
        for index, folder in enumerate(config.dialects)
        if not (root / folder).is_dir()
    ]
