"""`model_used`: which models answered."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from clawtrace.assertions._bounds import plural
from clawtrace.assertions.base import Assertion, Growth, Outcome
from clawtrace.assertions.matchers import ModelMatcher
from clawtrace.model.query import Query, Resolve

__all__ = ["ModelUsed"]

_ASKED = "c.request_model IN (SELECT m.value FROM asked_requests AS m)"
_ANSWERED = "c.response_model IN (SELECT m.value FROM asked_responses AS m)"
_HIT = f"({_ASKED} OR {_ANSWERED})"
_FOREIGN = f"(c.request_model IS NOT NULL AND NOT {_ASKED}) OR (c.response_model IS NOT NULL AND NOT {_ANSWERED})"


class ModelUsed(Assertion):
    """The run's model calls used the expected model, none that is forbidden, or only those listed.

    A silent fallback to another model changes cost, quality and where data go. The requested and the responding
    model both count: for `expected` one of them in an answered call is enough, for `not_expected` and `only` neither
    may offend in any call. Without any recorded model call the two are undecided. Names: see "Models" in the guide;
    a text with a digit names a version (`gpt-4o` is not `gpt-4o-mini`), one without a family (`sonnet`).

    Example:
        - type: model_used
          expected: claude-sonnet-4-6
    """

    growth = "exact"
    main_field = "expected"
    requires = ("llm_calls.request_model", "llm_calls.response_model")

    expected: ModelMatcher | None = None
    """Model that at least one answered call used; or `glob:`, `re:`, `literal:`."""
    not_expected: ModelMatcher | None = None
    """Model that no call may use, matched widely: `gpt-4` forbids `gpt-4-turbo` too, not `gpt-4o`."""
    only: tuple[ModelMatcher, ...] | None = Field(default=None, min_length=1)
    """Models of which every call used one."""

    @model_validator(mode="after")
    def _check(self) -> ModelUsed:
        given = [name for name, value in self._questions.items() if value is not None]
        if len(given) != 1:
            found = " and ".join(f"`{name}`" for name in given) if given else "none"
            raise PydanticCustomError(
                "exclusive", "takes exactly one of `expected`, `not_expected`, `only`; found {found}", {"found": found}
            )
        return self

    @property
    def _questions(self) -> dict[str, Any]:
        return {"expected": self.expected, "not_expected": self.not_expected, "only": self.only}

    def growth_of(self) -> Growth:
        """`expected` is a growing question, the others are shrinking ones."""
        return "shrinking" if self.expected is None else "growing"

    def resolve(self) -> tuple[Resolve, ...]:
        """Decide each distinct requested and responding name."""
        return (
            Resolve("asked_requests", "llm_calls", "request_model", self._items()),
            Resolve("asked_responses", "llm_calls", "response_model", self._items()),
        )

    def _items(self) -> Callable[[str], tuple[int, ...]]:
        if self.not_expected is not None:
            forbidden = self.not_expected
            return lambda name: (0,) if forbidden.mentioned(name) else ()
        wanted = self.only or (self.expected,)
        return lambda name: (0,) if any(model is not None and model.named(name) for model in wanted) else ()

    @property
    def _hit(self) -> str:
        return f"c.outcome = 'ok' AND {_HIT}" if self.expected else _HIT if self.not_expected else f"({_FOREIGN})"

    def query(self) -> Query:
        """Count the calls that hit, and those whose model nobody recorded."""
        found, absent = ("TRUE", "FALSE") if self.expected else ("FALSE", "TRUE")
        none_seen = "" if self.expected else " OR g.calls = 0"
        return Query(f"""
SELECT g.run_id AS run_id, g.calls AS calls, g.hits AS hits, g.nameless AS nameless,
       g.hit_model AS hit_model, g.first_model AS first_model, g.last_model AS last_model,
       CASE WHEN g.hits > 0 THEN {found} WHEN g.countable = 0 OR g.calls < g.answered OR g.nameless > 0{none_seen} THEN NULL
            ELSE {absent} END AS holds,
       CASE WHEN g.hits > 0 THEN NULL WHEN g.countable = 0 OR g.calls < g.answered{none_seen} THEN 'llm_calls'
            WHEN g.nameless > 0 THEN 'llm_calls.model' ELSE NULL END AS missing
FROM (
  SELECT f.run_id AS run_id, max(f.has_trace) AS has_trace, max(f.countable) AS countable,
         max(f.answered) AS answered, max(f.calls) AS calls,
         max(f.hits) AS hits, max(f.nameless) AS nameless, max(f.hit_model) AS hit_model,
         max(f.first_model) AS first_model, max(f.last_model) AS last_model
  FROM (
    SELECT t.run_id AS run_id, 1 AS has_trace, CASE WHEN t.llm_calls IS NULL THEN 0 ELSE 1 END AS countable, coalesce(t.llm_calls, 0) AS answered,
           0 AS calls, 0 AS hits, 0 AS nameless, NULL AS hit_model, NULL AS first_model, NULL AS last_model
    FROM run_totals AS t
    JOIN selected_runs AS s ON s.run_id = t.run_id
    UNION ALL
    SELECT j.run_id AS run_id, 0 AS has_trace, 0 AS countable, 0 AS answered, count(*) AS calls,
           count(CASE WHEN j.hit = 1 THEN 1 END) AS hits, count(CASE WHEN j.used IS NULL THEN 1 END) AS nameless,
           min(CASE WHEN j.hit = 1 THEN j.used END) AS hit_model,
           min(j.used) AS first_model, max(j.used) AS last_model
    FROM (
      SELECT c.run_id AS run_id, CASE WHEN {self._hit} THEN 1 ELSE 0 END AS hit, {self._used} AS used
      FROM llm_calls AS c
      JOIN selected_runs AS q ON q.run_id = c.run_id
    ) AS j
    GROUP BY j.run_id
  ) AS f
  GROUP BY f.run_id
) AS g
WHERE g.has_trace = 1
""")

    @property
    def _used(self) -> str:
        """SQL for the name that a message shows: the one that decided, else the responding or the requested one."""
        culprit = f"c.response_model IS NOT NULL AND NOT {_ANSWERED}" if self.only else _ANSWERED
        return (
            f"CASE WHEN {culprit} THEN c.response_model WHEN {self._hit} THEN c.request_model "
            "ELSE coalesce(c.response_model, c.request_model) END"
        )

    def evidence(self) -> Query:
        """Return the calls, those that hit first, with the requested and the responding model."""
        return Query(f"""
SELECT c.run_id AS run_id, c.span_id AS span_id,
       'asked for ' || coalesce(c.request_model, '(not recorded)') || ', answered by '
         || coalesce(c.response_model, '(not recorded)') || ', ' || c.outcome AS why,
       row_number() OVER (
         PARTITION BY c.run_id ORDER BY CASE WHEN {self._hit} THEN 0 ELSE 1 END, c.call_no) AS rank
FROM llm_calls AS c
JOIN selected_runs AS s ON s.run_id = c.run_id
""")

    def expectation(self) -> Any:
        """Return the question."""
        if self.only:
            return {"only": [model.text for model in self.only]}
        return {name: str(value) for name, value in self._questions.items() if value is not None}

    def actual(self, outcome: Outcome) -> Any:
        """Return how many calls there were, how many hit, and models that were used (the first and last by name)."""
        row = outcome.row
        return {"calls": row["calls"], "hits": row["hits"], "models": self._names(outcome)}

    def _names(self, outcome: Outcome) -> list[str]:
        return sorted({name for name in (outcome.row["first_model"], outcome.row["last_model"]) if name})

    def explain(self, outcome: Outcome) -> str:
        """Say which models were used against what was asked."""
        row = outcome.row
        calls = plural(row["calls"], "model call")
        if outcome.holds is None:
            nameless = f"{row['nameless']} of {calls} do not say" if row["nameless"] else f"{calls} recorded"
            return f"Which models were used is unknown: {nameless}."
        if row["hits"] and self.expected:
            return f"`{self.expected}` was used in {row['hits']} of {calls} (recorded as {row['hit_model']!r})."
        if row["hits"]:
            why = f"forbidden by `not_expected: {self.not_expected}`" if self.not_expected else "outside of `only`"
            return f"{row['hits']} of {calls} used a model {why}: {row['hit_model']!r}."
        names = self._names(outcome)
        among = ", among them" if len(names) > 1 else ""
        used = f"{calls} used{among} {' and '.join(map(repr, names))}" if names else f"{calls} were recorded"
        if self.expected:
            return f"No answered call used `{self.expected}`: {used}."
        return f"{used}: " + (f"none is `{self.not_expected}`." if self.not_expected else "all are listed in `only`.")
