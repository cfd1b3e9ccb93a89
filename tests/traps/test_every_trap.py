"""Every trap of the specification (assertions.md §10) is set by a test that bears its number."""

from __future__ import annotations

import re
from pathlib import Path

TRAPS = range(1, 33)


def test_every_trap_has_a_test_with_its_number():
    """T1 to T32, each in this folder, so that each is found by its number."""
    text = "".join(path.read_text(encoding="utf-8") for path in Path(__file__).parent.glob("test_t*.py"))
    names = re.findall(r"^def test_(t\d\d_\w+)", text, re.MULTILINE)
    numbers = {int(number) for name in names for number in re.findall(r"t(\d\d)_", f"{name}_")}

    assert numbers == set(TRAPS)
