"""The latest runs that were deleted while the receiver may still get spans of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

__all__ = ["DeletedRuns"]

_LIMIT = 10_000


class DeletedRuns:
    """Numbers and ids; guarded by the lock of `Attribution`."""

    def __init__(self, runs: Iterable[tuple[str, int]] = ()) -> None:
        self._numbers: dict[str, int] = dict(runs)
        self._ids: dict[int, str] = {number: run_id for run_id, number in self._numbers.items()}

    def __contains__(self, number: object) -> bool:
        return number in self._ids

    def __bool__(self) -> bool:
        return bool(self._ids)

    def number(self, run_id: str) -> int | None:
        """Return the number that a deleted run had; None where no such run was deleted."""
        return self._numbers.get(run_id)

    def run_id(self, number: int) -> str:
        """Return the id of a deleted run."""
        return self._ids[number]

    def add(self, runs: Mapping[str, int]) -> set[int]:
        """Add runs; return the numbers of those that are forgotten for them."""
        self._numbers.update(runs)
        self._ids.update((number, run_id) for run_id, number in runs.items())
        dropped = list(self._ids)[: max(0, len(self._ids) - _LIMIT)]
        for number in dropped:
            self._numbers.pop(self._ids.pop(number), None)
        return set(dropped)

    def remove(self, runs: Mapping[str, int]) -> None:
        """Take runs back that are there after all."""
        for run_id, number in runs.items():
            self._numbers.pop(run_id, None)
            self._ids.pop(number, None)

    def revive(self, run_id: str) -> None:
        """Let the id name a new run: it was announced once more. What belongs to the old one by its trace stays late."""
        self._numbers.pop(run_id, None)
