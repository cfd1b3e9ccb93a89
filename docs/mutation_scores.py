"""Measure the mutation scores of the bundled suites, and write them into suggest.md.

    python docs/mutation_scores.py

Every suite that needs neither a provider nor a foreign program is run once, in a folder of its own.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "suggest.md"
BEGIN, END = "<!-- scores -->", "<!-- /scores -->"


class Bundled(NamedTuple):
    """How a suite is run."""

    suite: str
    model: str = ""
    """The script of the model that is started around it, if it has none of its own."""
    flags: tuple[str, ...] = ()
    profile: str = ""
    """Its evaluation profile."""


SUITES = (
    Bundled("quickstart"),
    Bundled("conversation"),
    Bundled("features"),
    Bundled("models"),
    Bundled("probe", "configs/cases/probe/script.yaml", ("--run-profile", "probe")),
    Bundled("judged", "configs/cases/judged/letter/judge.yaml", (), "judged"),
)


def measured(bundled: Bundled, folder: Path) -> list[dict[str, Any]]:
    """Run a suite in a folder that has the bundled files; return the score of each of its cases."""
    environment = {name: value for name, value in os.environ.items() if name != "CI"}
    around = ["clawtrace", "model-server", bundled.model, "--"] if bundled.model else []
    profile = ["--evaluation-profile", bundled.profile] if bundled.profile else []
    command = [*around, "clawtrace", "eval", "--suite", bundled.suite, *bundled.flags, *profile]
    subprocess.run(command, cwd=folder, env=environment, check=False, capture_output=True)
    command = ["clawtrace", "mutate", "--suite", bundled.suite, *profile, "--json"]
    scored = subprocess.run(command, cwd=folder, env=environment, check=False, stdout=subprocess.PIPE, text=True)
    return list(json.loads(scored.stdout)["runs"])


def row(bundled: Bundled, scores: list[dict[str, Any]]) -> str:
    """Return the line of a suite in the table."""
    caught, faults = (sum(score[name] for score in scores) for name in ("caught", "faults"))
    missed = [one["what"] for score in scores for one in score["mutants"] if not one["caught"]]
    named = "; ".join(missed[:3]) + (f"; and {len(missed) - 3} more" if len(missed) > 3 else "")
    return f"| `{bundled.suite}` | {len(scores)} | {caught} of {faults} | {named or 'nothing'} |"


def with_bundled_files(folder: Path) -> Path:
    """Copy what the suites need into a folder."""
    shutil.copy(ROOT / "clawtrace.yaml", folder)
    shutil.copytree(ROOT / "configs", folder / "configs")
    return folder


def main() -> None:
    """Measure all suites, and write the table."""
    with tempfile.TemporaryDirectory() as place:
        folder = with_bundled_files(Path(place))
        rows = [row(bundled, measured(bundled, folder)) for bundled in SUITES]
    table = "\n".join(("| suite | cases | caught | missed |", "|---|---|---|---|", *rows))
    text = PAGE.read_text(encoding="utf-8")
    block = re.compile(f"{re.escape(BEGIN)}.*{re.escape(END)}", re.DOTALL)
    PAGE.write_text(block.sub(lambda _: f"{BEGIN}\n{table}\n{END}", text), encoding="utf-8")


if __name__ == "__main__":
    main()
