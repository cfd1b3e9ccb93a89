"""The documentation as a site: `make site`."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from html import unescape
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

ROOT = Path(__file__).parents[2]
CONFIG = tomllib.loads((ROOT / "zensical.toml").read_text())["project"]


def test_the_navigation_names_every_page():
    """A page of docs/ stands in the navigation once; decisions and generated pages are reached through their indexes."""
    listed = [
        page for section in CONFIG["nav"] for pages in section.values() for page in pages if isinstance(pages, list)
    ]
    docs = ROOT / "docs"
    pages = {
        page.relative_to(docs).as_posix() for pattern in ("*.md", "frameworks/*.md") for page in docs.glob(pattern)
    }

    assert sorted(page for page in listed if not page.startswith(("adr/", "reference/"))) == sorted(
        pages - {"README.md"}
    )
    assert [page for page in listed if not (ROOT / "docs" / page).is_file()] == []


@pytest.mark.full
def test_every_link_of_the_site_leads_to_a_file(tmp_path: Path):
    """A strict build passes; what the pages link outside of docs/ is copied next to them, and nothing is loaded from elsewhere."""
    copied = re.search(r"\n\tcp -R (.+) build/site\n", (ROOT / "Makefile").read_text())
    assert copied is not None
    for name in ("zensical.toml", "docs", *copied[1].split()):
        path = ROOT / name
        (shutil.copytree if path.is_dir() else shutil.copy)(path, tmp_path / name)
    subprocess.run(["zensical", "build", "--strict"], cwd=tmp_path, check=True, capture_output=True, timeout=120)
    site = tmp_path / CONFIG["site_dir"]
    for name in copied[1].split():
        (tmp_path / name).rename(site.parent / name)
    pages = [page for page in site.rglob("*.html") if page.name != "404.html"]
    broken, remote = [], []
    for page in pages:
        text = page.read_text()
        for link in map(unescape, re.findall(r'<(?:a|link|script|img)\b[^>]*?(?:href|src)="([^"]+)"', text)):
            parts = urlsplit(link)
            if not parts.scheme and parts.path and not (page.parent / unquote(parts.path)).is_file():
                broken.append(f"{page.relative_to(site)}: {link}")
        remote += re.findall(r'<(?:link|script|img)\b[^>]*?(?:href|src)="(https?:[^"]+)"', text)

    assert len(pages) > 150
    assert broken == []
    assert remote == []
