"""Programs that carry other commands in their arguments (`sudo`, `env`, `sh -c`, `find -exec`), and where those are."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import PurePosixPath
from typing import Literal, NamedTuple

__all__ = ["ELIDED", "SHELLS", "Carried", "Word", "carried", "program", "reads_script", "value_of"]

ELIDED = "$(…)"
"""What replaces a substitution in the text of the command around it."""

SHELLS = frozenset(("sh", "bash", "dash", "zsh", "ksh", "ash", "mksh"))

_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")


class Word(NamedTuple):
    """One word of a command."""

    value: str
    """As the program gets it: without quotes."""
    start: int
    """Its position in the source, in bytes."""
    end: int


class Carried(NamedTuple):
    """A command inside of another's arguments."""

    words: Sequence[Word]
    """The command's own words; none where `script` is given."""
    script: str | None = None
    """Shell text; None where the command is given in words."""
    end: Literal["same", "ok"] | None = None
    """What the carrier's end says: its exit code is the one of what it carries; when it is 0, that one is; nothing."""


class _Prefix(NamedTuple):
    """A program that runs the rest of its arguments."""

    valued: frozenset[str] = frozenset()
    """Options whose value is the next word."""
    operands: int = 0
    """Words before the command that are no options."""
    assigns: bool = False
    """Whether words like ``A=1`` may precede the command."""
    looks_up: frozenset[str] = frozenset()
    """Options with which it runs nothing."""


def _options(text: str) -> frozenset[str]:
    return frozenset(text.split())


_SUDO = _options("-u -g -h -p -C -D -R -T -U -r -t --user --group --host --prompt --chdir --chroot")
_XARGS = _options("-I -i -n -P -L -d -a -E -s --max-args --max-procs --max-lines --delimiter --arg-file --replace")

_CONTAINER = _options(
    "-a -e -h -l -m -p -u -v -w --add-host --cap-add --cpus --device --entrypoint --env --env-file --gpus --hostname --index --label"
    " --memory --mount --name --net --network --pid --platform --publish --restart --user --volume --workdir"
)
_PYTHON = _options("-p -m --python --with --extra --group --project --directory --env-file -n --name --prefix")
_SSH = _options("-b -c -D -E -e -F -I -i -J -L -l -m -O -o -p -Q -R -S -W -w")

_SUBCOMMANDS: Mapping[str, tuple[Sequence[str], _Prefix]] = {
    **dict.fromkeys(
        ("docker", "podman", "nerdctl", "docker-compose"), (("exec", "run"), _Prefix(_CONTAINER, operands=1))
    ),
    **dict.fromkeys(("uv", "poetry", "pipenv", "pdm", "hatch", "conda", "pipx"), (("run",), _Prefix(_PYTHON))),
    **dict.fromkeys(("npm", "pnpm", "yarn", "bundle"), (("exec",), _Prefix(_options("-p --package")))),
}
"""Programs of which a subcommand is such a prefix."""
_GROUPS = ("compose", "container")
"""Words between a program and its subcommand."""

_PREFIXES: Mapping[str, _Prefix] = {
    "env": _Prefix(_options("-u -C --unset --chdir"), assigns=True),
    "sudo": _Prefix(_SUDO, assigns=True, looks_up=_options("-l -v -k -K -e --list --validate --edit")),
    "doas": _Prefix(_options("-u -C -a")),
    "nohup": _Prefix(),
    "setsid": _Prefix(),
    "builtin": _Prefix(),
    "coproc": _Prefix(),
    "command": _Prefix(looks_up=_options("-v -V")),
    "exec": _Prefix(_options("-a")),
    "nice": _Prefix(_options("-n --adjustment")),
    "ionice": _Prefix(_options("-c -n -p --class --classdata --pid")),
    "stdbuf": _Prefix(_options("-i -o -e --input --output --error")),
    "timeout": _Prefix(_options("-k -s --kill-after --signal"), operands=1),
    "time": _Prefix(_options("-f -o --format --output")),
    "chroot": _Prefix(operands=1),
    "flock": _Prefix(_options("-w -E"), operands=1),
    "gosu": _Prefix(operands=1),
    "runuser": _Prefix(_options("-u -g -G")),
    "strace": _Prefix(_options("-e -o -p -s -u")),
    "watch": _Prefix(_options("-n --interval")),
    "npx": _Prefix(_options("-p --package")),
    "bunx": _Prefix(),
    "xargs": _Prefix(_XARGS),
}  # fmt: skip

_DETACHING = frozenset(("setsid", "coproc"))

_FIND_ACTIONS = frozenset(("-exec", "-execdir", "-ok", "-okdir"))


def value_of(source: str) -> str:
    """Return a word of shell text without its quotes; unchanged where it is no single word."""
    try:
        words = shlex.split(source.removeprefix("$") if source.startswith(("$'", '$"')) else source)
    except ValueError:
        return source
    return words[0] if len(words) == 1 else source


def program(words: Sequence[Word]) -> str | None:
    """Return the program without its folder, a variable unchanged; None without words."""
    if not words:
        return None
    value = words[0].value
    return value if value.startswith("$") else PurePosixPath(value).name or value


def carried(words: Sequence[Word]) -> Iterator[Carried]:
    """Yield the commands that the arguments of a command carry, in order."""
    name = program(words)
    if name is None:
        return
    if name in SHELLS:
        yield from _of_shell(words)
    elif name == "eval" and len(words) > 1:
        yield Carried((), " ".join(word.value for word in words[1:]), "same")
    elif name == "su" or (name in ("flock", "runuser") and any(word.value == "-c" for word in words)):
        yield from _of_su(words)
    elif name == "find":
        yield from _of_find(words)
    elif name == "env" and (script := _split_string(words)):
        yield Carried((), script, "ok")
    elif name == "ssh":
        inner = _after_prefix(words, _Prefix(_SSH, operands=1))
        if inner:
            yield Carried(inner, " ".join(word.value for word in inner), "ok")
    elif name in ("kubectl", "oc"):
        values = [word.value for word in words]
        if "exec" in values and "--" in values[:-1]:
            yield Carried(words[values.index("--") + 1 :], end="ok")
    elif name in _SUBCOMMANDS:
        yield from _of_subcommand(words, *_SUBCOMMANDS[name])
    elif name in _PREFIXES:
        inner = _after_prefix(words, _PREFIXES[name])
        if inner:
            yield Carried(inner, end=None if name in _DETACHING else "ok")


def _of_subcommand(words: Sequence[Word], subcommands: Sequence[str], prefix: _Prefix) -> Iterator[Carried]:
    """Yield what a subcommand carries; before it may be options, each perhaps with a value."""
    for place, word in enumerate(words[1:], 1):
        if word.value in subcommands:
            inner = _after_prefix(words[place:], prefix)
            if inner:
                yield Carried(inner, end="ok")
            return
        if not (word.value.startswith("-") or words[place - 1].value.startswith("-") or word.value in _GROUPS):
            return


def _split_string(words: Sequence[Word]) -> str | None:
    """Return the text that ``env -S`` splits into a command, with the words behind it; None without one."""
    for place, word in enumerate(words[1:], 2):
        if not word.value.startswith("-") and not _ASSIGNMENT.match(word.value):
            return None
        for option in ("-S", "-vS", "--split-string="):
            if word.value.startswith(option):
                begun = [word.value.removeprefix(option)] if word.value != option else []
                return " ".join([*begun, *(one.value for one in words[place:])])
    return None


def reads_script(words: Sequence[Word]) -> bool:
    """Return whether a shell reads what it runs from its standard input: ``bash``, ``sh -s``, ``sudo bash -``, ``ssh host``."""
    if program(words) in SHELLS:
        return all(word.value.startswith("-") for word in words[1:]) and not _c_option(words)
    if program(words) == "ssh":
        inner = _after_prefix(words, _Prefix(_SSH, operands=1))
        return not inner or reads_script(inner)
    return any(reads_script(one.words) for one in carried(words))


def _c_option(words: Sequence[Word]) -> int | None:
    """Return the place of the option group that holds ``-c`` (``-lc``, ``-euc``); None without one."""
    place = 1
    while place < len(words) and words[place].value.startswith(("-", "+")):
        value = words[place].value
        if not value.startswith("--") and "c" in value[1:] and value[0] == "-":
            return place
        valued = value in ("--rcfile", "--init-file") or (not value.startswith("--") and value[-1] in "oO")
        place += 2 if valued else 1
    return None


def _of_shell(words: Sequence[Word]) -> Iterator[Carried]:
    option = _c_option(words)
    if option is None:
        return
    scripts = [word for word in words[option + 1 :] if not word.value.startswith(("-", "+"))]
    if scripts:
        # With -e the first command that fails ends the script.
        plain = all(set(word.value) <= set("-cli") or word.value == "--login" for word in words[1 : option + 1])
        yield Carried((), scripts[0].value, "same" if plain else "ok")


def _of_su(words: Sequence[Word]) -> Iterator[Carried]:
    for option, script in pairwise(words):
        if option.value in ("-c", "--command"):
            yield Carried((), script.value, "ok")


def _of_find(words: Sequence[Word]) -> Iterator[Carried]:
    begin: int | None = None
    for place, word in enumerate(words):
        if begin is None and word.value in _FIND_ACTIONS:
            begin = place + 1
        elif begin is not None and word.value in (";", "+"):
            if place > begin:
                yield Carried(words[begin:place])
            begin = None


def _after_prefix(words: Sequence[Word], prefix: _Prefix) -> Sequence[Word]:
    """Return the words of the command behind a prefix; none where it runs nothing."""
    place, operands = 1, prefix.operands
    while place < len(words):
        value = words[place].value
        if value in prefix.looks_up:
            return ()
        if value == "--":
            place += 1
            break
        if value.startswith("-") and len(value) > 1:
            place += 2 if value in prefix.valued else 1
        elif prefix.assigns and _ASSIGNMENT.match(value):
            place += 1
        elif operands:
            place, operands = place + 1, operands - 1
        else:
            break
    return words[place + operands :]
