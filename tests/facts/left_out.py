"""First contact, made again: each recording is read without the dialect that knows its client, by the general rules alone.

    python tests/facts/left_out.py [DIALECT…] [--wrong]     # a line for each dialect, and the sums; what is wrong in words

A dialect is left out with what extends it, and what its recordings verified is verified no longer.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from unittest.mock import patch

import conformance
import yaml

from clawtrace.dialects import load
from clawtrace.dialects.load import BUILTIN
from clawtrace.dialects.schema import Verified

GENERAL = frozenset(
    ("genai-agents", "log-gateway", "log-transcript", "log-without-tools", "mcp", "openinference", "openllmetry", "opentelemetry",
     "otel-genai", "own-events", "own-words", "span-types", "span-types-events")
)  # fmt: skip
"""Dialects of conventions, logs and a program's own words: without them nothing would read a new client."""

VERIFIED = load.evidence

ROOT = Path(__file__).parents[1] / "recordings"


def family(dialect: str) -> set[str]:
    """Return a dialect with those that extend it."""
    extends = {path.stem: yaml.safe_load(path.read_text()).get("extends") for path in BUILTIN.glob("*.yaml")}
    found = {dialect}
    while more := {name for name, base in extends.items() if base in found} - found:
        found |= more
    return found


def left_out(dialects: set[str], folder: Path) -> list[str]:
    """Write dialects of these names that read nothing, and return the scopes that recordings verified for them.

    A project's own files go before the built-in ones.
    """
    nothing = {"title": "-", "source": "-", "about": "-", "detect": {"priority": 0, "any": [{"always": False}]}}
    for name in dialects:
        (folder / f"{name}.yaml").write_text(yaml.safe_dump({"dialect": name, **nothing}))
    words = [yaml.safe_load((BUILTIN / f"{name}.yaml").read_text()) for name in dialects]
    return [one["scope"] for said in words for one in said.get("verified", ())]


def readers() -> dict[str, list[Path]]:
    """Return the recordings that each dialect reads."""
    paths = {conformance.name(path): path for path in conformance.recordings(ROOT)}
    with conformance.loaded(paths.values()) as session:
        rows = session.query("SELECT DISTINCT dialect, run_id FROM spans ORDER BY ALL").rows
    found: dict[str, list[Path]] = defaultdict(list)
    for dialect, run in rows:
        found[dialect].append(paths[run])
    return found


def main(asked: Sequence[str], *, wrong: bool) -> None:
    """Print true, unknown and wrong facts by dialect, of the core facts but whether the run is complete."""
    together: Counter[str] = Counter()
    for dialect, paths in readers().items():
        if dialect in GENERAL or (asked and dialect not in asked):
            continue
        with tempfile.TemporaryDirectory() as folder:
            scopes = left_out(family(dialect), Path(folder))

            def evidence(entries: Iterable[Verified], scope: str, version: str, unmet: Sequence[str] = scopes) -> str:
                known = not any(load.fits(scope, glob) for glob in unmet)
                return VERIFIED(entries, scope, version) if known else "generic"

            with patch.object(load, "evidence", evidence), conformance.loaded(paths, Path(folder)) as session:
                runs = conformance.inspected(session)
        found: Counter[str] = Counter()
        for path in paths:
            for fact, (status, seen, truth) in conformance.compare(path, runs[conformance.name(path)]).items():
                if fact in conformance.DETAILS or fact == "complete":
                    continue
                if runs[conformance.name(path)]["complete"] is None:
                    status = "unknown"  # no span was read: verdicts are `skip`
                found[status] += 1
                if status == "wrong" and wrong:
                    print(f"{conformance.name(path)}: {fact}: found {seen!r}, true is {truth!r}")
        together += found
        print(dialect.ljust(36), *(f"{found[status]:6}" for status in ("true", "unknown", "wrong")), flush=True)
    print("together".ljust(36), *(f"{together[status]:6}" for status in ("true", "unknown", "wrong")))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dialect", nargs="*")
    parser.add_argument("--wrong", action="store_true", help="also print each wrong fact")
    options = parser.parse_args()
    main(options.dialect, wrong=options.wrong)
