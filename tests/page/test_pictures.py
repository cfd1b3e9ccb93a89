"""The pictures of the README are made by a command."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.full
def test_the_pictures_are_made_again(chromium: Path, tmp_path: Path) -> None:
    """The failing run is drawn as it is printed, without a font from elsewhere, and the page as a picture of the content's size."""
    spec = importlib.util.spec_from_file_location("pictures", DOCS / "pictures.py")
    assert spec is not None
    assert spec.loader is not None
    pictures = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(pictures)

    pictures.write(tmp_path)

    drawn, kept = ((folder / "terminal.svg").read_text() for folder in (tmp_path, DOCS / "pictures"))
    names = [re.findall(r"\b[a-z]+_[a-z]+\b", svg.partition("What")[0]) for svg in (drawn, kept)]
    assert "close_account" in names[0]
    assert names[0] == names[1]
    assert "@font-face" not in drawn
    assert (tmp_path / "live.png").stat().st_size > 10_000
    assert (tmp_path / "page.png").read_bytes()[16:24] == (1280).to_bytes(4) + (720).to_bytes(4)
