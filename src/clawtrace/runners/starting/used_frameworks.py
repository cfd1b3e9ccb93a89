"""What an agent of each framework needs (`frameworks.yaml`), and which one an agent uses: by its imports, else by its dependencies."""

from __future__ import annotations

import ast
import fnmatch
import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

from clawtrace.support.yaml_reading import read_yaml

__all__ = [
    "Framework",
    "UsedFrameworks",
    "call_that_connects",
    "frameworks",
    "language_setup",
    "recipe",
    "used_frameworks",
]

_TABLE = Path(__file__).with_name("frameworks.yaml")

Language = Literal["python", "javascript"]


@dataclass(frozen=True, slots=True)
class LanguageSetup:
    """What every agent of a language needs: a tracer provider with an exporter."""

    file: str
    """The file that holds the lines."""
    use: str
    """How the agent comes to load it."""
    install: tuple[str, ...]
    lines: str


@dataclass(frozen=True, slots=True)
class Framework:
    """One framework, or client of a model."""

    name: str
    language: Language
    packages: tuple[str, ...]
    modules: tuple[str, ...] = ()
    kind: Literal["framework", "sdk"] = "framework"
    install: tuple[str, ...] = ()
    setup: bool = True
    """Whether the common lines of the language are needed, too."""
    lines: str = ""
    note: str = ""


@cache
def frameworks() -> tuple[Framework, ...]:
    """Read the table."""
    return tuple(Framework(**_with_tuples(entry)) for entry in _data()["frameworks"])


@cache
def language_setup(language: Language) -> LanguageSetup:
    """Return what every agent of a language needs."""
    return LanguageSetup(**_with_tuples(_data()["setups"][language]))


@cache
def _data() -> dict[str, Any]:
    data: dict[str, Any] = read_yaml(_TABLE.read_bytes())
    return data


def _with_tuples(entry: dict[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in entry.items()}


def recipe(found: Sequence[Framework], *, common: bool = True) -> tuple[list[str], str]:
    """Return what to install for frameworks of one language, and the lines that connect them.

    Args:
        common: whether the common lines of the language are missing, too.
    """
    setup = language_setup(found[0].language)
    common = common and any(one.setup for one in found)
    install = [*(setup.install if common else ()), *(name for one in found for name in one.install)]
    lines = "\n".join([*([setup.lines] if common else []), *(one.lines for one in found if one.lines)])
    statements = [line for line in lines.splitlines() if line]
    imports = [line for line in statements if line.startswith(("import ", "from "))]
    return list(dict.fromkeys(install)), "\n".join([*imports, "", *(one for one in statements if one not in imports)])


def call_that_connects(one: Framework) -> str:
    """Return the name of what the lines of a framework call in the end; empty where it needs none."""
    found = re.findall(r"(\w+)\(", (one.lines.splitlines() or [""])[-1])
    return found[0] if found else ""


# --- which one an agent uses ------------------------------------------------------------------------------------------


_PYTHON = (".py",)
_JAVASCRIPT = (".mjs", ".js", ".cjs", ".ts", ".mts", ".cts", ".tsx", ".jsx")
_MOST_FILES = 100
_LARGEST = 1 << 20
_IMPORTED = re.compile(r"""(?:\bfrom|\bimport|\brequire\s*\(|\bimport\s*\()\s*["']([^"'\n]+)["']""")
_SETS_UP = re.compile(
    r"\b(?:TracerProvider|NodeSDK|registerOTel)\s*\(|\bOTLP\w*Exporter\b|\b\w+Instrument(?:or|ation)\s*\("
    r"|\b\w*Telemetry\s*\(|\b(?:Traceloop|openlit)\.init\b|\b(?:logfire|mlflow|langfuse|phoenix\.otel)\b"
)
"""What sets up OpenTelemetry in code, in any way that is usual."""
_INSTRUMENTS = re.compile(
    r"\b\w+Instrument(?:or|ation)\s*\(|\b(?:Traceloop|openlit)\.init\b|auto_?instrument|\.autolog\(|\bexperimental_telemetry\b"
)
_REQUIREMENT = re.compile(r"^\s*([A-Za-z0-9][A-Za-z0-9._-]*)")


class AgentSources(NamedTuple):
    """The agent's own source files, as far as its command names them."""

    files: Mapping[Path, str]
    """The text of each, those that the command names first."""
    imports: frozenset[str]
    """What they import from elsewhere: dotted modules, packages of JavaScript."""

    @property
    def sets_up(self) -> bool:
        """Whether any of them sets up OpenTelemetry."""
        return any(_SETS_UP.search(text) for text in self.files.values())

    def connects(self, one: Framework) -> bool:
        """Whether any of them switches an instrumentation of the framework on, or any other."""
        call = call_that_connects(one)
        return any(_INSTRUMENTS.search(text) or (call and f"{call}(" in text) for text in self.files.values())


class UsedFrameworks(NamedTuple):
    """The frameworks of one language that an agent uses."""

    found: tuple[Framework, ...]
    place: Path
    """The file that says so."""
    sources: AgentSources


def used_frameworks(words: Sequence[str], folder: Path) -> UsedFrameworks | None:
    """Return the frameworks that an agent uses; None where none is known.

    Args:
        words: of the command that starts it.
        folder: where it is started.
    """
    sources = sources_of(words, folder)
    languages = {_language(path) for path in sources.files}
    for language in ("python", "javascript"):
        found = _chosen(one for one in frameworks() if one.language == language and _is_imported(one, sources.imports))
        if found:
            place = next(path for path in sources.files if _language(path) == language)
            return UsedFrameworks(found, place, sources)
    for place, named, language in _dependencies(folder):
        if languages and language not in languages:
            continue
        found = _chosen(one for one in frameworks() if one.language == language and _is_named(one, named))
        if found:
            return UsedFrameworks(found, place, sources)
    return None


def _chosen(found: Iterable[Framework]) -> tuple[Framework, ...]:
    """Leave out the clients of models where a framework uses them."""
    known = tuple(found)
    return tuple(one for one in known if one.kind == "framework") or known


def _is_imported(one: Framework, imports: frozenset[str]) -> bool:
    if one.language == "javascript":
        return _is_named(one, imports)
    return any(name == module or name.startswith(f"{module}.") for module in one.modules for name in imports)


def _is_named(one: Framework, names: Iterable[str]) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for name in names for pattern in one.packages)


# Sources ----------------------------------------------------------------------------------------


def sources_of(words: Sequence[str], folder: Path) -> AgentSources:
    """Read the files of code that a command names, and those of the same folders that they import."""
    waiting = [path for word in words for path in _named(word, folder)]
    files: dict[Path, str] = {}
    imports: set[str] = set()
    while waiting and len(files) < _MOST_FILES:
        path = waiting.pop(0)
        if path in files:
            continue
        try:
            if path.stat().st_size > _LARGEST:
                continue
            files[path] = path.read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        reads = _python_imports if path.suffix in _PYTHON else _javascript_imports
        for local, name in reads(files[path], path, folder):
            if local:
                waiting.append(local)
            elif name:
                imports.add(name)
    return AgentSources(files, frozenset(imports))


def _language(path: Path) -> Language:
    return "python" if path.suffix in _PYTHON else "javascript"


def _named(word: str, folder: Path) -> Iterator[Path]:
    """Yield the file that a word of a command names, as a path or as a module: `agent.py`, `-m app.main`, `app:main`."""
    if "\0" in word or len(word) > 1000:
        return
    path = folder / word
    if path.suffix in (*_PYTHON, *_JAVASCRIPT):
        if path.is_file():
            yield path
    elif re.fullmatch(r"[A-Za-z_][\w.]*(:[\w.]+)?", word):
        yield from _module(word.partition(":")[0], folder)


def _module(name: str, folder: Path) -> Iterator[Path]:
    for root in (folder, folder / "src"):
        base = root.joinpath(*name.split("."))
        files = (base.with_name(f"{base.name}.py"), base / "__main__.py", base / "__init__.py")
        there = [path for path in files if path.is_file()]
        if there:
            yield from there
            return


def _python_imports(text: str, path: Path, folder: Path) -> Iterator[tuple[Path | None, str]]:
    """Yield what is imported: a file of the agent's own, or the name of a module from elsewhere."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = path.parents[node.level - 1] if 0 < node.level <= len(path.parents) else None
            inner = [f"{node.module}.{alias.name}" if node.module else alias.name for alias in node.names]
            names = [*([node.module] if node.module else []), *inner]
            if base is not None:
                yield from ((local, "") for name in names for local in _module(name, base))
                continue
        else:
            continue
        for name in names:
            locals_ = [*_module(name, path.parent)] or [*_module(name, folder)]
            top = name.partition(".")[0]
            if locals_:
                yield from ((local, "") for local in locals_)
            elif not [*_module(top, path.parent), *_module(top, folder)]:
                yield None, name


def _javascript_imports(text: str, path: Path, _folder: Path) -> Iterator[tuple[Path | None, str]]:
    for name in _IMPORTED.findall(text):
        if name.startswith("."):
            base = path.parent / name
            stem = base.with_suffix("") if base.suffix in _JAVASCRIPT else base
            files = [
                base,
                *(stem.with_name(stem.name + end) for end in _JAVASCRIPT),
                *(base / f"index{end}" for end in _JAVASCRIPT),
            ]
            yield from ((file, "") for file in files if file.suffix in _JAVASCRIPT and file.is_file())
        else:
            yield None, "/".join(name.split("/")[: 2 if name.startswith("@") else 1])


# Dependencies -----------------------------------------------------------------------------------


def _dependencies(folder: Path) -> Iterator[tuple[Path, set[str], Language]]:
    """Yield what each file of dependencies names, of this folder and of those above it in the same repository."""
    for place in _places(folder.absolute()):
        for path in [*sorted(place.glob("requirements*.txt")), place / "pyproject.toml", place / "package.json"]:
            try:
                text = path.read_text(encoding="utf-8")
                if path.suffix == ".txt":
                    yield path, {_normal(line) for line in text.splitlines()}, "python"
                elif path.suffix == ".toml":
                    yield path, {_normal(one) for one in _of_project(tomllib.loads(text))}, "python"
                else:
                    data = json.loads(text)
                    yield path, {name for key in _NPM for name in data.get(key) or {}}, "javascript"
            except (OSError, ValueError, AttributeError, TypeError):
                continue  # missing, or not as its format says: another file may tell


_NPM = ("dependencies", "devDependencies", "peerDependencies", "optionalDependencies")


def _places(folder: Path) -> list[Path]:
    above = [folder, *folder.parents]
    top = next((place for place in above if (place / ".git").exists()), folder)
    return above[: above.index(top) + 1]


def _of_project(data: Mapping[str, Any]) -> Iterator[str]:
    project, poetry = data.get("project", {}), data.get("tool", {}).get("poetry", {})
    groups = [*project.get("optional-dependencies", {}).values(), *data.get("dependency-groups", {}).values()]
    for entries in (project.get("dependencies", []), *groups):
        yield from (one for one in entries if isinstance(one, str))
    yield from poetry.get("dependencies", {})
    for group in poetry.get("group", {}).values():
        yield from group.get("dependencies", {})


def _normal(requirement: str) -> str:
    """Return the name of a requirement as packages are compared; empty where it is none."""
    found = _REQUIREMENT.match(requirement)
    return re.sub(r"[-_.]+", "-", found[1]).lower() if found else ""
