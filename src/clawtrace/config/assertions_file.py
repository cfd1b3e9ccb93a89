"""A file for `--assertions`: what must be true of recorded runs (spec: cli.md).

Apart from suites and cases, so that judging one recording need not load their models.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from clawtrace.config.assertion_list import AssertionList, load_assertions
from clawtrace.config.base import ConfigModel, SchemaVersion
from clawtrace.config.document import read_document
from clawtrace.config.problems import in_document, in_reading_order, validated
from clawtrace.config.project_file import Project, pricing_of
from clawtrace.errors import ConfigError, ConfigProblem, UsageError

__all__ = ["AssertionsFile", "LoadedAssertions", "load_assertions_file"]


class AssertionsFile(ConfigModel):
    """A file for `--assertions`: what must be true of each recorded run."""

    not_supported_yet: ClassVar[Mapping[str, str]] = {
        "assert": "the short notation comes with a later version; write the entry under `assertions:` with `type:`",
        "deterministic_checks": "the check notation comes with a later version; write the entry under `assertions:` with "
        "`type:`",
    }

    schema_version: SchemaVersion = 1
    """Version of this file's format."""
    assertions: list[dict[str, Any]]
    """What must be true: a list of `- type: …` with that type's fields."""
    model_pricing: dict[str, Any] | None = None
    """Prices of models, over those of the project."""


class LoadedAssertions(NamedTuple):
    """A file for `--assertions`."""

    path: Path
    assertions: AssertionList
    project: Project
    """The project, with the file's own `model_pricing` where it states one."""


def load_assertions_file(file: str, project: Project, env: Mapping[str, str]) -> LoadedAssertions:
    """Load a file for `--assertions`.

    Raises:
        UsageError: it does not exist.
        ConfigError: every problem in it.
    """
    path = Path(file).absolute()
    if not path.is_file():
        raise UsageError(f"the assertions file {file!r} does not exist")
    document = read_document(path)
    problems: list[ConfigProblem] = []
    config = validated(AssertionsFile, document.data, in_document(document), problems)
    raw = document.data.get("assertions")
    assertions = load_assertions(raw if isinstance(raw, list) else [], document, env, problems, recorded=True)
    if config is None:
        raise ConfigError(in_reading_order(problems))
    pricing = pricing_of(_merged_pricing(project, config), document, problems) or project.pricing
    if problems:
        raise ConfigError(in_reading_order(problems))
    return LoadedAssertions(path, assertions, Project(project.config, project.root, project.path, pricing))


def _merged_pricing(project: Project, config: AssertionsFile) -> dict[str, object] | None:
    if config.model_pricing is None:
        return None
    return (project.config.model_pricing or {}) | config.model_pricing
