"""The commands of a documentation page: blocks of shell after a comment `<!-- run -->`, run as a reader pastes them."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

__all__ = ["FRAMEWORKS", "ROOT", "RUN", "heredoc", "installed", "run_the_blocks"]

ROOT = Path(__file__).parents[1]
FRAMEWORKS = ROOT / "docs" / "frameworks"
RUN = re.compile(r"<!-- (run[^>]*?) -->\n```sh\n(.*?)```", re.DOTALL)
_FAIL = {"run, the last exits with 1": 1, "run, the last two exit with 1": 2}
"""How many lines at the end of a block exit with 1, by the block's comment."""


def run_the_blocks(text: str, folder: Path, *programs: Path, **more: str) -> list[str]:
    """Run the commands of a page, one block after the other, each of which succeeds, or fails where the page says so.

    Args:
        text: of the page.
        folder: where the reader begins.
        programs: folders of programs that come before those of this environment.
        more: variables.

    Returns:
        what each block printed.
    """
    blocks = RUN.findall(text)
    assert len(blocks) >= 4
    path = os.pathsep.join([*map(str, programs), str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, "HOME": str(folder), "CI": "1", **more}
    here, printed = folder, list[str]()
    for kind, block in blocks:
        where = ROOT if kind == "run in the checkout" else here
        lines, fail = block.strip().splitlines(), _FAIL.get(kind, 0)
        failing = lines[len(lines) - fail :]
        ends = [f"{line} || status=$?\ntest ${{status:-0}} -eq 1\nstatus=" for line in failing]
        script = "\n".join(["set -e", *lines[: len(lines) - fail], *ends, f"pwd > {folder}/folder"])
        done = subprocess.run(
            ["sh", "-c", script], cwd=where, env=environment, capture_output=True, text=True, timeout=300
        )
        assert done.returncode == 0, f"{block}\n--- stdout\n{done.stdout}\n--- stderr\n{done.stderr}"
        printed.append(done.stdout)
        if where is here:
            here = Path((folder / "folder").read_text().strip())
    return printed


def installed(text: str) -> list[str]:
    """Return the packages that a page installs."""
    (block,) = re.findall(r"<!-- install -->\n```sh\n(.*?)```", text, re.DOTALL)
    words = [word for line in block.splitlines() if " install " in line for word in shlex.split(line)[2:]]
    return [word for word in words if word != "-g"]


def heredoc(text: str, file: str) -> str:
    """Return what a page writes into a file."""
    (found,) = re.findall(rf"cat > {re.escape(file)} <<'(\w+)'\n(.*?)\n\1\n", text, re.DOTALL)
    return str(found[1])
