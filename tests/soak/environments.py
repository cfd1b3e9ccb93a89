"""The frameworks: each one script in `frameworks/`, whose first lines say what it needs (PEP 723), in a separate environment.

A script is of Python, with requirements of PyPI, or of JavaScript (`.mjs`), with packages of npm. Instrumentations that cannot be
installed next to the others, or are large, have an environment each: `[tool.soak.environments]` lists all that it needs.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
INSTALL_SECONDS = 900


class CannotInstallError(Exception):
    """What this machine does not provide, in words."""


@dataclass(frozen=True)
class Framework:
    """One agent program and what its first lines say of it."""

    name: str
    """Of the script; with the instrumentations, as `openai-agents+mlflow`, where these have a separate environment."""
    script: Path
    dependencies: tuple[str, ...]
    instrumentations: tuple[str, ...]
    """What is switched on in one process, comma-separated; empty where the framework writes its spans unasked."""
    helpers: tuple[str, ...]
    """How a second agent may come to work: `handoff`, `tool`."""
    patterns: tuple[str, ...]
    """Further ways in which programs of this framework work: agents one after the other, a check of the answer, an answer of a form …

    Each knows `again`: work that failed is done once more. Those of Python know `served`: a service's spans are around the agent.
    """
    named_agents: bool
    """Whether the framework knows agents by names."""
    pseudo: tuple[str, ...]
    """Offered tools that are none: handoffs."""
    counts_itself: tuple[str, ...]
    """The instrumentations with which tokens are counted where the model's server sends no numbers."""
    ends_broken_streams: bool
    """Whether what was received of a stream that breaks off is an answer to the client, which makes up how it ended and its tokens."""
    main_agent: str
    """What the first agent is called, where the framework does not let the program name it."""
    mends_names: bool = False
    """Whether the framework takes each sign of a tool's name that is no letter or digit for an underscore: `get weather?` is `get_weather`."""
    before: str = ""
    """The day before which its packages were released; empty where they are those that its script names."""


def frameworks() -> dict[str, Framework]:
    """Return all frameworks by name."""
    paths = sorted(path for path in (HERE / "frameworks").iterdir() if path.suffix in (".py", ".mjs"))
    return {framework.name: framework for path in paths for framework in _frameworks(path)}


def _frameworks(script: Path) -> Iterator[Framework]:
    block = re.search(r"(?m)^(#|//) /// script$\n((?:\1.*\n)+?)\1 ///$", script.read_text(encoding="utf-8"))
    assert block, f"{script.name} does not say what it needs"
    said: dict[str, Any] = tomllib.loads(re.sub(r"(?m)^(#|//) ?", "", block[2]))
    soak = said["tool"]["soak"]
    name = script.stem.replace("_", "-")
    shared = Framework(
        name, script, tuple(said["dependencies"]), tuple(soak.get("instrumentations", ("",))), tuple(soak.get("helpers", ())),
        ("again", *(["served"] if script.suffix == ".py" else []), *soak.get("patterns", ())), soak.get("named-agents", True), tuple(soak.get("pseudo-tools", ())), tuple(soak.get("counts-itself", ())),
        soak.get("ends-broken-streams", False), soak.get("main-agent", "assistant"), soak.get("mends-names", False),
    )  # fmt: skip
    yield shared
    for alone, dependencies in soak.get("environments", {}).items():
        own = f"{name}+{alone.replace(',', '+')}"
        yield replace(shared, name=own, dependencies=tuple(dependencies), instrumentations=(alone,))


def released_before(framework: Framework, day: str) -> Framework:
    """Return a framework with the newest packages that were released before a day (`2026-02-15`), without those that had no release."""
    javascript = framework.script.suffix == ".mjs"
    if javascript:
        named = [re.sub("(?<=.)@.*", "@latest", one) for one in framework.dependencies]
        check = ["npm", "install", "--dry-run", "--no-package-lock", "--before", day]
    else:
        named = [re.sub("==.*", "", one) for one in framework.dependencies]
        uv = (sys.executable, "-m", "uv", "pip", "install", "--quiet")
        check = [*uv, "--dry-run", "--no-deps", "--exclude-newer", day]
    with tempfile.TemporaryDirectory() as folder:
        known = [
            one
            for one in named
            if not subprocess.run([*check, one], cwd=folder, capture_output=True, check=False).returncode
        ]
    return replace(framework, dependencies=tuple(known), before=day)


def program_of(framework: Framework) -> tuple[str, ...]:
    """Return the command that starts a framework's script, in an environment that is made if it is not there yet.

    Raises:
        CannotInstallError: the machine cannot have it.
    """
    javascript = framework.script.suffix == ".mjs"
    folder = (packages if javascript else environment)(framework.name, framework.dependencies, framework.before)
    if not javascript:
        # Without -P a script named after a package, as litellm.py, would be imported for it.
        return str(folder / "venv" / "bin" / "python"), "-P", str(framework.script)
    # Node looks for packages above the place of the script.
    for script in (HERE / "agent_program.mjs", *framework.script.parent.glob("*.mjs")):
        shutil.copyfile(script, folder / script.name)
    return "node", str(folder / framework.script.name)


def environment(name: str, dependencies: Sequence[str], before: str = "") -> Path:
    """Return a folder whose `venv` has distributions of PyPI; it is made if it is not there yet.

    Raises:
        CannotInstallError: the machine cannot have it.
    """
    return _made(
        name, (sys.version, *dependencies, *filter(None, [before])), partial(_environment, before), dependencies
    )


def packages(name: str, dependencies: Sequence[str], before: str = "") -> Path:
    """Return a folder whose `node_modules` has packages of npm, `name@version`; it is made if it is not there yet.

    Raises:
        CannotInstallError: the machine cannot have it.
    """
    return _made(name, ("npm", *dependencies, *filter(None, [before])), partial(_packages, before), dependencies)


def _made(
    name: str, key: Sequence[str], install: Callable[[Path, Sequence[str]], None], dependencies: Sequence[str]
) -> Path:
    cache = Path(os.environ.get("CLAWTRACE_SOAK_CACHE") or Path(sys.prefix) / "cache" / "soak")
    wanted = hashlib.sha256("\n".join(key).encode()).hexdigest()[:8]
    folder = cache / f"{name}-{wanted}"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "done").exists():
            install(folder, dependencies)
            (folder / "done").touch()
    return folder


def _environment(before: str, folder: Path, dependencies: Sequence[str]) -> None:
    base = getattr(sys, "_base_executable", sys.executable)
    venv = str(folder / "venv")
    _run([base, "-m", "venv", "--without-pip", "--clear", venv], "an environment")
    earlier = ["--exclude-newer", before] if before else []
    _run(
        [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--python", venv, *earlier, *dependencies],
        folder.name,
    )


def _packages(before: str, folder: Path, dependencies: Sequence[str]) -> None:
    wanted = dict(dependency.rsplit("@", 1) for dependency in dependencies)
    package = {"private": True, "type": "module", "dependencies": wanted}
    (folder / "package.json").write_text(json.dumps(package), encoding="utf-8")
    npm = ["npm", "install", "--prefix", str(folder), "--no-package-lock", "--no-audit", "--no-fund"]
    npm += ["--before", before, "--legacy-peer-deps"] if before else []
    _run(npm, folder.name, folder)  # some packages write into the folder that npm was called in


def _run(command: list[str], what: str, folder: Path | None = None) -> None:
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CannotInstallError(f"{what} could not be installed: {type(error).__name__}") from None
    if done.returncode:
        # The last words may name a registry: what was asked for is enough.
        raise CannotInstallError(f"{what} could not be installed (exit code {done.returncode})")
