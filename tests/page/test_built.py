"""The asset that the wheel ships is what `src/page` builds, with the types of the JSON Schemas as they are now."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "page"

pytestmark = [pytest.mark.full, pytest.mark.needs("node")]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the source, built anew from its lock file."""
    if shutil.which("npm") is None:
        pytest.skip("this machine lacks npm")
    root = tmp_path_factory.mktemp("page")
    copy = root / "src" / "page"
    shutil.copytree(SOURCE, copy, ignore=shutil.ignore_patterns("node_modules", "types"))
    shutil.copytree(ROOT / "configs" / "schemas", root / "configs" / "schemas")
    (root / "docs" / "reference").mkdir(parents=True)
    shutil.copy(ROOT / "docs" / "reference" / "openapi.json", root / "docs" / "reference")
    for words in (["ci", "--no-audit", "--no-fund"], ["run", "build"]):
        done = subprocess.run(["npm", *words], cwd=copy, check=False, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stdout + done.stderr
    return root


def test_the_asset_is_built_from_the_source(built: Path) -> None:
    """Byte by byte: `npm run build` in src/page writes it."""
    shipped = ROOT / "src" / "clawtrace" / "report" / "assets" / "page.html"

    assert (built / "src" / "clawtrace" / "report" / "assets" / "page.html").read_bytes() == shipped.read_bytes()


def test_the_lock_file_names_no_registry() -> None:
    """Where packages come from is the setting of each machine."""
    assert '"resolved"' not in (SOURCE / "package-lock.json").read_text()
