"""The table of all series of random runs, as `docs/first-contact.md` has it: what README.md lists, summed up by framework.

`python tests/soak/table.py` prints it.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

RUNS, TRUE, UNKNOWN, WRONG, CONTRARY = 2, 3, 4, 5, 8
"""Columns of a series, after its client and its seed."""


def table() -> str:
    """Return the rows: of each framework the clients, runs, wrong facts and contrary verdicts, and of the last series the figures."""
    series: dict[str, list[list[str]]] = defaultdict(list)
    for line in (Path(__file__).parent / "README.md").read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) > CONTRARY and cells[1].isdigit():
            series[cells[0].partition(" ")[0].partition("+")[0]].append(cells)
    rows = {name: _row(found) for name, found in sorted(series.items())}
    together = [sum(column) for column in zip(*rows.values(), strict=True)]
    return "".join(
        f"| {name} | {' | '.join(map(str, row))} |\n" for name, row in [*rows.items(), ("together", together)]
    )


def _row(series: list[list[str]]) -> list[int]:
    last = {cells[0]: cells for cells in series}
    every = [sum(int(cells[column]) for cells in series) for column in (RUNS, WRONG, CONTRARY)]
    return [
        len(last),
        *every,
        *(sum(int(cells[n]) for cells in last.values()) for n in (RUNS, TRUE, UNKNOWN, WRONG, CONTRARY)),
    ]


if __name__ == "__main__":
    print(table(), end="")
