"""The conformance of many frameworks and instrumentations, each in an environment with pinned packages of PyPI or npm.

    python tests/conforming/client_table.py [CLIENT…] [--newest [DATE]]

Runs `clawtrace conformance` with each client, as the soak has them (`tests/soak/frameworks`), and keeps the result in
`docs/conformance.json`, from which `docs/generate.py` writes the page. With `--newest` the newest versions are tried instead, or those
of a past day; nothing is kept, and what changed is printed: facts that flipped, and attributes that appeared, vanished or changed their type.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
SOAK = ROOT / "tests" / "soak"
KEPT = ROOT / "docs" / "conformance.json"
sys.path.insert(0, str(SOAK))

from environments import CannotInstallError, Framework, frameworks, program_of  # noqa: E402

MARKS = {"true": "✓", "absent": "·", "wrong": "✗"}
NO_FACT = "-"
_CLAWTRACE = [sys.executable, "-m", "clawtrace", "conformance"]


def clients() -> Iterator[tuple[str, Framework, str]]:
    """Yield the name of each client, its framework, and the instrumentations to switch on."""
    for name, framework in frameworks().items():
        for instrumentations in framework.instrumentations:
            more = "" if instrumentations == "" or "+" in name else f"+{instrumentations.replace(',', '+')}"
            yield name + more, framework, instrumentations


def newest(dependency: str) -> str:
    """Return a dependency without its version."""
    return re.sub(r"(?<=.)(==|@)[^@=]+$", "", dependency)


def versions(framework: Framework, program: tuple[str, ...]) -> dict[str, str]:
    """Return the versions of the packages that a client names, as they are installed."""
    named = [newest(one).split("[")[0] for one in framework.dependencies]
    if framework.script.suffix == ".mjs":
        modules = Path(program[1]).parent / "node_modules"
        return {one: json.loads((modules / one / "package.json").read_text("utf-8"))["version"] for one in named}
    asked = "import sys; from importlib.metadata import version\nfor one in sys.argv[1:]: print(version(one))"
    told = subprocess.run([program[0], "-c", asked, *named], capture_output=True, text=True, check=True)
    return dict(zip(named, told.stdout.split(), strict=True))


def tried(framework: Framework, instrumentations: str, *more: str) -> subprocess.CompletedProcess[str]:
    """Return `clawtrace conformance` with a client, ended."""
    program = program_of(framework)
    command = [*_CLAWTRACE, *more, "--", *program, instrumentations, ",".join(framework.helpers)]
    env = {**os.environ, "PYTHONPATH": str(SOAK), "OTEL_SERVICE_NAME": framework.name}
    with tempfile.TemporaryDirectory() as folder:
        return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=1800, check=False)


def packed(found: Mapping[str, Any], installed: Mapping[str, str]) -> dict[str, Any]:
    """Return a result as it is kept: a mark for each scenario in order, by fact."""
    trials = [one for one in found["trials"] if one["happened"]]
    names = dict.fromkeys(name for one in trials for name in one["facts"])
    facts = {
        name: "".join(MARKS[one["facts"][name]["status"]] if name in one["facts"] else NO_FACT for one in trials)
        for name in names
    }
    attributes = {key: types for one in trials for key, types in one["attributes"].items()}
    return {
        "packages": dict(installed),
        "scenarios": [one["scenario"] for one in trials],
        "facts": facts,
        "attributes": dict(sorted(attributes.items())),
    }


def unpacked(kept: Mapping[str, Any]) -> dict[str, Any]:
    """Return what `--against` reads, of a result as it is kept."""
    status = {mark: word for word, mark in MARKS.items()}
    trials = [
        {
            "scenario": scenario,
            "facts": {
                name: {"status": status[marks[place]]}
                for name, marks in kept["facts"].items()
                if marks[place] != NO_FACT
            },
            "attributes": kept["attributes"] if place == 0 else {},
        }
        for place, scenario in enumerate(kept["scenarios"])
    ]
    return {"trials": trials}


def main() -> None:
    """Try the clients of the command line, or all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("clients", nargs="*", metavar="CLIENT")
    parser.add_argument("--newest", nargs="?", const="", metavar="DATE")
    words = parser.parse_args()
    unknown = set(words.clients) - {name for name, *_ in clients()}
    if unknown:
        parser.error(
            f"no such client: {', '.join(sorted(unknown))}; there are {', '.join(name for name, *_ in clients())}"
        )
    for name, framework, instrumentations in clients():
        if words.clients and name not in words.clients:
            continue
        kept = json.loads(KEPT.read_text("utf-8")) if KEPT.exists() else {}
        try:
            if words.newest is not None:
                print(f"\n{name}", flush=True)
                with (
                    tempfile.TemporaryDirectory() as folder
                ):  # what was the newest when an environment was kept need not be it now
                    day = {"UV_EXCLUDE_NEWER": words.newest, "npm_config_before": words.newest} if words.newest else {}
                    os.environ.update(day, CLAWTRACE_SOAK_CACHE=folder)
                    loose = replace(framework, dependencies=tuple(map(newest, framework.dependencies)))
                    compare(kept[name], loose, instrumentations)
                continue
            done = tried(framework, instrumentations, "--json")
            found = packed(json.loads(done.stdout), versions(framework, program_of(framework)))
        except (CannotInstallError, KeyError, json.JSONDecodeError, subprocess.SubprocessError) as error:
            print(f"{name}: not tried: {type(error).__name__}: {error}", flush=True)
            continue
        marks = "".join(found["facts"].values())
        print(f"{name}: {', '.join(f'{marks.count(mark)} {word}' for word, mark in MARKS.items())}", flush=True)
        KEPT.write_text(
            json.dumps(dict(sorted({**kept, name: found}.items())), ensure_ascii=False, indent=1) + "\n", "utf-8"
        )


def compare(kept: Mapping[str, Any], framework: Framework, instrumentations: str) -> None:
    """Print what the newest versions of a client's packages change."""
    for package, version in versions(framework, program_of(framework)).items():
        if kept["packages"].get(package) != version:
            print(f"  {package} {kept['packages'].get(package, 'none')} → {version}")
    with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as before:
        json.dump(unpacked(kept), before)
        before.flush()
        done = tried(framework, instrumentations, "--against", before.name)
    print(done.stdout.rpartition("✗ wrong\n")[2] or done.stdout + done.stderr)


if __name__ == "__main__":
    main()
