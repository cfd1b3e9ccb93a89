"""A file for `--assertions`: what must be true of recorded runs (spec: cli.md).

Apart from suites and cases, so that judging one recording need not load their models.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from pydantic import Field, model_validator

from clawtrace.assertions.world import HookPolicy
from clawtrace.config.base import ConfigModel, SchemaVersion
from clawtrace.config.cases.assertion_list import ASSERTIONS, PRECONDITIONS, AssertionList, load_assertions
from clawtrace.config.files.document import Document, parse_document, read_document
from clawtrace.config.files.problems import in_document, in_reading_order, validated
from clawtrace.config.projects.project_file import Project, pricing_of
from clawtrace.errors import ConfigError, ConfigProblem, UsageError
from clawtrace.support.did_you_mean import did_you_mean

if TYPE_CHECKING:
    from clawtrace.config.suites.evaluation_profile import EvaluationProfile
    from clawtrace.judge.panel import Panel

__all__ = ["AssertionsFile", "LoadedAssertions", "load_assertions_file", "load_assertions_text"]


class AssertionsFile(ConfigModel):
    """A file for `--assertions`: what must be true of each recorded run."""

    keys_of_others: ClassVar[Mapping[str, str]] = dict.fromkeys(
        PRECONDITIONS, "a recording has already run; preconditions belong to a case"
    )

    schema_version: SchemaVersion = 1
    """Version of this file's format."""
    assertions: list[Any] | None = None
    """What must be true: `- type: …` with that type's fields, or the short notation, `- ran: "make test"`."""
    assert_: list[Any] | None = Field(default=None, alias="assert")
    """The same as `assertions`; a file may have both."""
    deterministic_checks: list[Any] | None = None
    """What must be true, in the check notation: `check_id` with `declarative` or `python_hook`."""
    model_pricing: dict[str, Any] | None = None
    """Prices of models, over those of the project."""

    @model_validator(mode="after")
    def _asks(self) -> AssertionsFile:
        if self.assertions is None and self.assert_ is None and self.deterministic_checks is None:
            raise ValueError("one of `assertions`, `assert` and `deterministic_checks` is required; it may be empty")
        return self


class LoadedAssertions(NamedTuple):
    """A file for `--assertions`."""

    assertions: AssertionList
    project: Project
    """The project, with the file's own `model_pricing` where it states one."""
    hooks: HookPolicy
    """What the evaluation profile lets Python hooks do."""
    panel: Panel | None
    """Its judges; None where it has none."""
    warnings: tuple[str, ...]
    """What is odd and yet valid, one sentence each."""


def load_assertions_file(
    file: str, project: Project, env: Mapping[str, str], *, evaluation_profile: str | None = None
) -> LoadedAssertions:
    """Load a file for `--assertions`.

    Args:
        file: its path; `-` is standard input.
        evaluation_profile: id or path of the profile that says what hooks may do.

    Raises:
        UsageError: it does not exist.
        ConfigError: every problem in it.
    """
    document = _read(file)
    _refuse_case(document)
    problems: list[ConfigProblem] = []
    config = validated(AssertionsFile, document.data, in_document(document), problems)
    assertions = load_assertions(document, ASSERTIONS, env, problems, recorded=True)
    warnings: list[str] = []
    profile: EvaluationProfile | None = None
    if evaluation_profile is not None:
        from clawtrace.config.suites.profile_files import load_evaluation_profile, profile_file

        named = profile_file("evaluation profile", evaluation_profile, project.configs)
        profile = load_evaluation_profile(named, env, problems, warnings)
    policy, panel = HookPolicy(), None
    if profile is not None or any(one.is_probe for one in assertions.parsed):
        from clawtrace.config.loading.judges import hook_policy, hook_problems, judge_refusals, panel_of

        policy = hook_policy(profile)
        problems += hook_problems(assertions, policy)
        problems += judge_refusals(assertions, profile)
        panel = None if problems else panel_of(profile)
    if config is None:
        raise ConfigError(in_reading_order(problems))
    if config.model_pricing is not None:
        prices = (project.config.model_pricing or {}) | config.model_pricing
        project = project._replace(pricing=pricing_of(prices, document, problems))
    if problems:
        raise ConfigError(in_reading_order(problems))
    return LoadedAssertions(assertions, project, policy, panel, tuple(warnings))


def load_assertions_text(text: str, name: str) -> AssertionList:
    """Load the text of such a file that another process sent: it reads no variable and no file.

    Args:
        text: YAML or JSON.
        name: what problems call it.

    Raises:
        ConfigError: every problem in it.
    """
    document = parse_document(text, name)
    problems: list[ConfigProblem] = []
    config = validated(AssertionsFile, document.data, in_document(document), problems)
    assertions = load_assertions(document, ASSERTIONS, {}, problems, recorded=True)
    if config is not None and config.model_pricing is not None:
        problems.append(document.problem(("model_pricing",), "belongs in the clawtrace.yaml of the service", key=True))
    if problems:
        raise ConfigError(in_reading_order(problems))
    return assertions


def _refuse_case(document: Document) -> None:
    """Refuse the file of a case, whose keys mean nothing here.

    Raises:
        ConfigError: it is one.
    """
    if isinstance(document.data, dict) and "case_id" in document.data:
        hint = "`clawtrace eval --suite` runs cases; an assertions file has only `assertions:`."
        raise ConfigError(document.problem(("case_id",), "this is the file of a case", hint, key=True))


def _read(file: str) -> Document:
    """Return the document; paths in one that comes through a pipe are relative to the working folder.

    Raises:
        UsageError: there is no such file.
        ConfigError: as `read_document`.
    """
    path = Path(file).absolute()
    if file == "-":
        return _piped(sys.stdin.buffer.read(), "standard input")
    if path.is_dir():
        raise UsageError(f"{file!r} is a folder; `--assertions` names a file in it")
    if not path.exists():
        near = did_you_mean(path.name, sorted(one.name for one in path.parent.glob("*.y*ml")))
        raise UsageError(f"the assertions file {file!r} does not exist. {near}".rstrip())
    if path.is_file() and path.parts[1:2] not in (("dev",), ("proc",)):
        return read_document(path)
    return _piped(path.read_bytes(), file)  # a pipe, such as a shell's <(…): it can be read once, and lies nowhere


def _piped(content: bytes, name: str) -> Document:
    try:
        return parse_document(content.decode("utf-8-sig"), name, Path.cwd() / "assertions")
    except UnicodeDecodeError as error:
        raise ConfigError(ConfigProblem(name, 0, 0, f"is not UTF-8 text (byte {error.start})")) from error
