"""What a pipeline does with the files of this repository: a step's shell, and the GitHub Action."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import yaml

__all__ = ["run_the_action", "shell"]

ROOT = Path(__file__).parents[1]


def shell(script: str, folder: Path, program: str = "bash", **env: str) -> subprocess.CompletedProcess[str]:
    """Run a script as a pipeline does, with the program and its interpreter first on the path."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    kept = {name: value for name, value in os.environ.items() if name in ("PYTHONPATH", "HOME", "LANG")}
    return subprocess.run(
        [program, "-e", "-c", script],
        cwd=folder,
        env=kept | {"PATH": path, "CI": "true"} | env,
        capture_output=True,
        text=True,
        timeout=300,
    )


def run_the_action(
    folder: Path, inputs: Mapping[str, str], step_id: str = "eval", **env: str
) -> subprocess.CompletedProcess[str]:
    """Run a step of action.yml; its outputs go to the file `output`, its summary to `summary`.

    Args:
        folder: of the project.
        inputs: of the action; the others have their defaults.
        step_id: by default the step that evaluates.
        env: further variables.
    """
    action = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
    given = {name: str(one.get("default", "")) for name, one in action["inputs"].items()}
    assert inputs.keys() <= given.keys()
    given.update(inputs)
    (step,) = [one for one in action["runs"]["steps"] if one.get("id") == step_id]
    variables = {
        name: re.sub(r"\$\{\{ inputs\.([\w-]+) \}\}", lambda one: given[one[1]], value).replace(
            "${{ github.action_path }}", str(ROOT)
        )
        for name, value in step["env"].items()
    }
    files = {"GITHUB_OUTPUT": str(folder / "output"), "GITHUB_STEP_SUMMARY": str(folder / "summary")}
    return shell(step["run"], folder, **variables, **files, **env)
