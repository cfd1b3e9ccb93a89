"""clawtrace and its peers on the same work, on this machine, in turn: a table in Markdown.

    python benchmarks/compare [PEER…] [--times 3] [--seconds 1] [--out FILE]

Each peer gets a separate environment from PyPI or npm, in the cache of the soak's environments; the first call needs the network
and about 3 GB. How each row is measured: docs/comparison.md.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from peers import PEERS, Peer, installed, version  # first: it makes the other benchmarks importable

import judging  # isort: skip
import reading  # isort: skip
from environments import CannotInstallError  # isort: skip
from receiving import kill, receive  # isort: skip
from serving import NotRunError, Served  # isort: skip

Figures = dict[str, list[float]]


def measured(peer: Peer, given: argparse.Namespace) -> tuple[Figures, list[str]]:
    """Measure one peer; return the figures, and why some are missing."""
    figures: Figures = {}
    reasons: list[str] = []

    def attempt(measure: Callable[[], Figures]) -> None:
        began = time.perf_counter()
        try:
            figures.update(measure())
        except (NotRunError, OSError, sqlite3.Error, SystemExit) as error:
            reasons.append(str(error))
        print(f"{peer.name}: {time.perf_counter() - began:.0f} s {reasons or ''}", file=sys.stderr, flush=True)

    try:
        installed(peer)
    except CannotInstallError as error:
        return figures, [str(error)]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        attempt(lambda: judging.measure(peer, Path(name), given.times))
        if (read := reading.READERS.get(peer.name)) is not None:
            attempt(lambda: reading.compared(read(peer, reading.recordings(), Path(name))))
    if peer.server is not None:
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
            attempt(lambda: served(peer, Path(name), given))
    return figures, reasons


def served(peer: Peer, folder: Path, given: argparse.Namespace) -> Figures:
    """Measure one peer's server."""
    server = Served(peer, folder)
    try:
        figures: Figures = {"first start of the server (s, wall)": [server.started]}
        figures |= receive(server, given.times, given.seconds)
        if peer.name in reading.SERVED:
            figures |= reading.compared(reading.of_server(server, reading.recordings()))
        return figures | kill(peer, folder, server, given.times)
    finally:
        server.kill()


def shown(values: list[float] | None, ours: list[float] | None) -> str:
    """Return median and spread, and how many times clawtrace's that is."""
    if not values or math.isnan(values[0]):
        return "–"
    middle, least, most = statistics.median(values), min(values), max(values)
    spread = f" ({number(least)}–{number(most)})" if len(values) > 1 else ""
    base = statistics.median(ours) if ours else 0
    return f"{number(middle)}{spread}" + (f", {number(middle / base)} ×" if ours is not values and base else "")


def number(value: float) -> str:
    """Return three figures of a number."""
    return f"{value:,.0f}".replace(",", " ") if value >= 100 or value == round(value) else f"{value:.3g}"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = [peer.name for peer in PEERS]
    parser.add_argument("peers", nargs="*", metavar="PEER", help=f"of {', '.join(names)}; all by default")
    parser.add_argument("--times", type=int, default=3, help="how often each is measured")
    parser.add_argument("--seconds", type=float, default=1.0, help="CPU seconds of a server that a load should take")
    parser.add_argument("--out", type=Path, help="keep all figures as JSON")
    given = parser.parse_args()
    if unknown := set(given.peers) - set(names):
        parser.error(f"no such peer: {', '.join(sorted(unknown))}; there are {', '.join(names)}")
    chosen = [peer for peer in PEERS if not given.peers or peer.name in given.peers]
    load, results = os.getloadavg()[0], {}
    for peer in chosen:
        results[peer.name] = measured(peer, given)
    ours = results.get("clawtrace", ({}, []))[0]
    ours = {row: values for row, values in ours.items() if "(%)" not in row and row != "spans received"}
    rows = dict.fromkeys(row for figures, _ in results.values() for row in figures)
    print(
        f"\n{platform.machine()}, {os.cpu_count()} cores, load {load:.1f} before and {os.getloadavg()[0]:.1f} after; medians of"
    )
    print(f"{given.times}, least and most, and how many times clawtrace's figure that is.\n")
    print("\n".join(f"- {peer.name}: {version(peer)}" for peer in chosen))
    print("\n| | " + " | ".join(results) + " |\n|---|" + "---|" * len(results))
    for row in rows:
        print(
            f"| {row} | " + " | ".join(shown(figures.get(row), ours.get(row)) for figures, _ in results.values()) + " |"
        )
    for name, (_, reasons) in results.items():
        print("".join(f"\n{name}: not run: {reason}" for reason in reasons), end="")
    if given.out is not None:
        kept = {name: {"figures": figures, "not_run": reasons} for name, (figures, reasons) in results.items()}
        given.out.write_text(json.dumps(kept, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
