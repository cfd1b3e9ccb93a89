"""A project folder that tests fill with files."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from clawtrace.config.loading.suite_file import LoadedSuite, load_suite
from clawtrace.config.projects.project_file import Project, load_project
from clawtrace.errors import ConfigError

CASE = """\
schema_version: 1
case_id: {case_id}
title: A case
tags: [{tags}]
runner:
  type: command
  command: [agent]
input:
  messages:
    - role: user
      content: hello
"""


class Files:
    """Writes files below one folder and loads them."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def write(self, name: str, text: str) -> Path:
        """Write one file."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text), encoding="utf-8")
        return path

    def case(self, case_id: str, tags: str = "", text: str | None = None, group: str = "") -> Path:
        """Write a case, by default one that does nothing."""
        folder = f"configs/cases/{group}/{case_id}" if group else f"configs/cases/{case_id}"
        return self.write(f"{folder}/test.yaml", text or CASE.format(case_id=case_id, tags=tags))

    def suite(self, more: str = "", suite_id: str = "main") -> Path:
        """Write a suite."""
        text = f"schema_version: 1\nsuite_id: {suite_id}\ntitle: A suite\n" + dedent(more)
        return self.write(f"configs/suites/{suite_id}.yaml", text)

    def project(self, env: dict[str, str] | None = None) -> Project:
        """Load the project."""
        return load_project(self.root, env or {})

    def load(self, suite: str = "main", env: dict[str, str] | None = None, **profiles: str) -> LoadedSuite:
        """Load a suite."""
        return load_suite(suite, self.project(), env or {}, **profiles)

    def problems(self, suite: str = "main", env: dict[str, str] | None = None, **profiles: str) -> list[str]:
        """Return the text of every problem of a suite."""
        with pytest.raises(ConfigError) as caught:
            self.load(suite, env, **profiles)
        return [str(problem) for problem in caught.value.problems]


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Files:
    monkeypatch.chdir(tmp_path)
    return Files(tmp_path)
