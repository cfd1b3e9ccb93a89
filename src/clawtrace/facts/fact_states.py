"""What the facts of runs were computed from, and what was to be said when they were."""

from __future__ import annotations

import json
from typing import NamedTuple

from clawtrace.model.query import Query
from clawtrace.store.api import QueryableStore

__all__ = ["FactState", "fact_states"]

_STATES = """
SELECT f.run_id AS run_id, f.raw_rows AS raw_rows, f.last_arrival_ns AS last_arrival_ns, f.record_ns AS record_ns,
       f.normaliser AS normaliser, f.diagnostics AS diagnostics
FROM fact_state AS f JOIN selected_runs AS s ON s.run_id = f.run_id
"""


class FactState(NamedTuple):
    """The state of one run's facts."""

    computed_from: tuple[int | str, ...]
    """Raw rows, last arrival, record and rules; the facts are out of date when it differs."""
    diagnostics: tuple[str, ...]
    """Sentences about the run's spans, such as that a parent was cut."""


def fact_states(store: QueryableStore) -> dict[str, FactState]:
    """Return the state of the facts of each selected run."""
    return {
        run_id: FactState(tuple(state), tuple(json.loads(diagnostics)))
        for run_id, *state, diagnostics in store.ask(Query(_STATES)).rows
    }
