"""clawtrace in the environment of an agent: it holds no framework back, and judges an agent that runs beside it."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from contextlib import ExitStack
from pathlib import Path

import pytest

from not_run import not_run

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests" / "soak"))

import environments  # noqa: E402
from random_model import RandomModel  # noqa: E402

pytestmark = pytest.mark.full

FRAMEWORKS = {
    "agent-framework": "agent-framework-core",
    "crewai": "crewai",
    "google-adk": "google-adk",
    "haystack": "haystack-ai",
    "langgraph": "langgraph",
    "llama-index": "llama-index-core",
    "openai-agents": "openai-agents",
    "pydantic-ai": "pydantic-ai-slim",
    "smolagents": "smolagents",
    "strands": "strands-agents",
}
"""The programs of tests/soak, and the distribution of each framework."""
OURS = tuple(tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["dependencies"])


def newest(requirements: tuple[str, ...]) -> dict[str, str]:
    """Return the versions that are installed for requirements, by name, if each is as new as the others allow."""
    command = [sys.executable, "-m", "uv", "pip", "compile", "--quiet", "--no-header", "--no-annotate", "-"]
    done = subprocess.run(command, input="\n".join(requirements), capture_output=True, text=True, timeout=300)
    if done.returncode and "No solution found" not in done.stderr:
        not_run("registry", "the package index does not answer")
    assert done.returncode == 0, done.stderr
    return dict(line.split(" ;")[0].split("==") for line in done.stdout.splitlines() if "==" in line)


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_the_newest_framework_is_installed_beside_it(name: str) -> None:
    """Nothing that clawtrace asks for keeps a framework at an older version than it would have alone."""
    wanted = environments.frameworks()[name].dependencies
    (framework,) = [re.sub("==.*", "", one) for one in wanted if re.match(rf"{FRAMEWORKS[name]}(\[|==)", one)]
    alone, together = newest((framework,)), newest((framework, *OURS))

    assert together[FRAMEWORKS[name]] == alone[FRAMEWORKS[name]]


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_an_agent_runs_beside_it(name: str, tmp_path: Path) -> None:
    """Requirements of both agree in one environment, from which clawtrace starts the agent and judges what it did."""
    framework = environments.frameworks()[name]
    try:
        folder = environments.environment(f"beside-{name}", (*framework.dependencies, *OURS))
    except environments.CannotInstallError as error:
        not_run("frameworks", f"{name} beside clawtrace: {error}")
    python = str(folder / "venv" / "bin" / "python")
    agree = subprocess.run(
        [sys.executable, "-m", "uv", "pip", "check", "--python", python], capture_output=True, text=True
    )
    (tmp_path / "checks.yaml").write_text(
        "assert:\n- agent_exit_code: 0\n- sql: SELECT run_id FROM runs WHERE run_id = :run_id AND run_id NOT IN (SELECT run_id FROM spans)\n"
    )
    with ExitStack() as end:
        model = RandomModel("beside").start()
        end.callback(model.stop)
        job = {"run": "RUN", "url": f"{model.url}/beside/v1", "turns": ["Do what is needed."], "stream": False}
        (tmp_path / "jobs.json").write_text(json.dumps([job | {"count_stream": False, "helper": None}]))
        (tmp_path / "log").touch()
        program = [python, "-P", str(framework.script), framework.instrumentations[0], "own.json", "log"]
        named = f'sed "s/RUN/$CLAWTRACE_RUN_ID/" jobs.json > own.json && exec {shlex.join(program)}'
        command = [python, "-m", "clawtrace", "run", "--assertions", "checks.yaml", "--", "sh", "-c", named]
        environment = {
            **{key: value for key, value in os.environ.items() if key in ("PATH", "HOME", "LANG", "TMPDIR")},
            "PYTHONPATH": os.pathsep.join((str(ROOT / "src"), str(ROOT / "tests" / "soak"))),
        }
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=180)

    assert done.returncode == 0, done.stdout[-2_000:] + done.stderr[-2_000:]
    assert agree.returncode == 0, agree.stderr
