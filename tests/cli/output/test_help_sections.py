"""The help of commands whose options stand under headings."""

from __future__ import annotations

import re


def test_every_option_of_eval_has_a_section(invoke) -> None:
    """A new option that no section names would stand under "Other options", where only `--help` is."""
    text = invoke("eval", "--help").stdout
    *named, other = re.split(r"^([A-Z][^\n:]*):$", text, flags=re.MULTILINE)[1:]

    assert named[::2][0] == "Run a suite"
    assert re.findall(r"^  (-\S+)", other, re.MULTILINE) == ["-h,"]
