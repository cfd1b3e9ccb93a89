"""Shell text: which commands are in it, and what the end of the whole says of each."""

import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from clawtrace.facts.commands.shell_split import split
from clawtrace.facts.commands.shell_text import MAX_BYTES
from clawtrace.facts.commands.shell_words import ELIDED
from clawtrace.support.yaml_reading import read_yaml

CASES = read_yaml(Path(__file__).with_name("shell_cases.yaml").read_text(encoding="utf-8"))

PROGRAMS = [
    ("/usr/bin/git status", "git"),
    (r"\rm x", "rm"),
    ("'my prog' x", "my prog"),
    ("$EDITOR x", "$EDITOR"),
    ("${SHELL-/bin/sh} x", "${SHELL-/bin/sh}"),
    ("[ -f x ]", "["),
    ("export A=1", "export"),
    ("./build.sh", "build.sh"),
    ("$'ls' x", "ls"),
    ("$(which python) x.py", "$(…)"),
]

# Text; what is known of each simple command when the whole ends with 0, and when it does not.
ENDS = [
    ("a", ["ok"], ["same"]),
    ("a && b", ["ok", "ok"], [None, "unmet"]),
    ("a || b", [None, None], ["failed", "same"]),
    ("a; b", [None, "ok"], [None, "same"]),
    ("a | b", [None, "ok"], [None, "same"]),
    ("set -o pipefail; a | b", [None, None, None], [None, None, None]),
    ("a &", [None], [None]),
    ("a & b", [None, "ok"], [None, "same"]),
    ("! a", ["failed"], ["ok"]),
    ("(a; b)", [None, "ok"], [None, "same"]),
    ("a && b || c", [None, None, None], [None, "unmet", "same"]),
    ("a && b && c", ["ok", "ok", "ok"], [None, None, "unmet"]),
    ("a || b && c", [None, None, "ok"], [None, None, "unmet"]),
    ("a && ! b", ["ok", "failed"], [None, None]),
    ("! (a && b)", [None, "unmet"], ["ok", "ok"]),
    ("a; exit 3", [None, None], [None, None]),
    ("exit 3", ["ok"], ["same"]),
    ("bash -lc 'a && b'", ["ok", "ok"], [None, "unmet"]),
    ("bash -c 'a; b'", [None, "ok"], [None, "same"]),
    ("bash -ec 'a; b'", [None, "ok"], [None, "unmet"]),
    ("sudo a", ["ok"], ["unmet"]),
    ("env X=1 a", ["ok"], ["unmet"]),
    ("X=1 a", ["ok"], ["same"]),
    ("echo $(a)", ["ok", None], ["same", None]),
    ("find . -exec a \\;", [None], [None]),
    ("if a; then b; fi", [None, None], [None, None]),
    ("for x in y; do a; done", [None], [None]),
    ("cat <<E && b\nx\nE", [None, None], [None, None]),
    ("a > f && b 2>&1", ["ok", "ok"], [None, "unmet"]),
]


@pytest.mark.parametrize("case", CASES, ids=[case["text"][:40] for case in CASES])
def test_each_text_is_split_as_written(case) -> None:
    """What carries commands comes before them; quoted text, comments and here-documents are no commands."""
    parts = split(case["text"])

    if case.get("split", True):
        assert [part.text if part.simple else f"> {part.text}" for part in parts] == case["parts"]
    else:
        assert parts is None


@pytest.mark.parametrize(("text", "program"), PROGRAMS)
def test_a_program_is_named_without_folder_and_quotes(text: str, program: str) -> None:
    assert split(text)[0].argv0 == program


@pytest.mark.parametrize(("text", "when_ok", "when_failed"), ENDS, ids=[text for text, *_ in ENDS])
def test_the_end_of_the_whole_says_as_much_of_a_part_as_the_shell_guarantees(text, when_ok, when_failed) -> None:
    parts = [part for part in split(text) if part.simple]

    assert [part.ends[0] for part in parts] == when_ok
    assert [part.ends[1] for part in parts] == when_failed


@pytest.mark.parametrize(
    ("text", "when_ok", "when_failed"),
    [
        (text, when_ok, when_failed)
        for text, when_ok, when_failed in ENDS
        if text.replace("a", "").replace("b", "").replace("c", "").strip(" &|;!()") == ""
        or text.startswith(("bash", "if", "for", "X=", "env"))
    ],
)
@pytest.mark.parametrize("codes", [(a, b, c) for a in (0, 1) for b in (0, 2) for c in (0, 3)])
def test_a_real_shell_agrees(tmp_path: Path, text: str, when_ok, when_failed, codes) -> None:
    """Each simple command notes how it ended; what is said to be known of it is then true."""
    for name, code in zip("abc", codes, strict=True):
        (tmp_path / name).write_text(f"#!/bin/sh\necho {code} > {tmp_path}/{name}.end\nexit {code}\n")
        (tmp_path / name).chmod(0o755)
    done = subprocess.run(["bash", "-c", text], cwd=tmp_path, env={"PATH": f"{tmp_path}:/usr/bin:/bin"}, check=False)
    known = when_failed if done.returncode else when_ok
    for part, end in zip([part for part in split(text) if part.simple], known, strict=True):
        note = tmp_path / f"{part.argv0}.end"
        if end is None or (end == "unmet" and not note.exists()):
            continue
        ended = int(note.read_text())

        assert {"ok": ended == 0, "failed": ended != 0, "unmet": ended != 0, "same": ended == done.returncode}[end]


SHELLISH = st.text(alphabet=" abX=1$(){}[]|&;<>'\"`\\\n#!-/éif", max_size=60)
TOKENS = (
    "sudo", "env", "sh", "-c", "bash", "'a;b'", "&&", "||", "|", ";", "$(", ")", "`", '"', "'", "{", "}", "if", "then", "fi",
    "<<E", "E", "\n", "find", "-exec", "\\;", "rm", "x", "X=1", "eval", "time",
)  # fmt: skip
WORDS = st.lists(st.sampled_from(TOKENS), max_size=25).map(" ".join)


@settings(max_examples=400)
@given(text=st.one_of(SHELLISH, WORDS, st.text(max_size=40)))
@example("\ud800")
@example("bash -c \"$(a)\" 'b'")
def test_any_text_is_split_into_pieces_of_itself_or_not_at_all(text: str) -> None:
    """Nothing crashes; each part is nested in its carrier, and is text of the input, but for quotes that were taken away."""
    parts = split(text)
    if parts is None:
        return
    plain = "".join(letter for letter in text.encode("utf-8", "replace").decode() if letter not in "\\'\"$")
    for place, part in enumerate(parts):
        assert place <= part.last < len(parts)
        assert part.simple == (part.last == place)
        assert all(inner.last <= part.last for inner in parts[place : part.last + 1])
        pieces = part.text.encode("utf-8", "replace").decode().split(ELIDED)
        at = 0
        for piece in ("".join(letter for letter in piece if letter not in "\\'\"$") for piece in pieces):
            at = plain.find(piece, at)
            assert at >= 0


def test_a_long_text_is_not_split_and_costs_nothing() -> None:
    """A megabyte is refused at once; what is just short enough takes a second at the most."""
    began = time.process_time()
    assert split("a && " * 200_000 + "a") is None
    assert time.process_time() - began < 0.1
    for unit in ("<<E ", "$(", "((", "a;b ", '"$(', "{ ", "`", "if ", "a && "):
        began = time.process_time()
        split(unit * (MAX_BYTES // len(unit)))
        assert time.process_time() - began < 5


def test_thousands_of_commands_in_a_chain() -> None:
    """The grammar nests a chain as deep as it is long."""
    assert len(split(" && ".join(["ls"] * 1500))) == 1500


def test_a_deep_nest_is_not_split() -> None:
    """What nests beyond any reason is refused, not followed."""
    assert split("echo " + "$(echo " * 500 + "x" + ")" * 500) is None


def test_the_parser_is_loaded_with_the_first_command() -> None:
    """Without a command nothing of the parser is imported."""
    code = "import sys; import clawtrace.facts.commands.commands; print([m for m in sys.modules if m.startswith('tree_sitter')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"


def test_a_child_that_ends_leaves_its_text_whole_and_the_next_is_split(monkeypatch) -> None:
    """What a hostile text does to the parser's process, it does not do to this one."""
    from clawtrace.facts.commands import shell_split

    child = shell_split._Child()
    monkeypatch.setattr(shell_split, "_SERVE", "import os, sys; sys.stdin.readline(); os.abort()")
    assert child.ask("a; b") is None
    monkeypatch.undo()

    assert [part.argv0 for part in child.ask("a; b") if part.simple] == ["a", "b"]
    assert child.ask("\ud800; b") == shell_split.split("\ud800; b")
