"""`model_used`: which models answered."""

from __future__ import annotations

from typing import Any

from pydantic import Field, model_validator

from clawtrace.assertions.base import Assertion, Growth, Outcome
from clawtrace.assertions.counting.bounds import need_one_of, plural
from clawtrace.assertions.matching.matchers import LimitingModel, ModelMatcher
from clawtrace.assertions.refused import refused
from clawtrace.model.query import Query, Resolve

__all__ = ["ModelUsed"]

_EXPECTED, _FORBIDDEN, _ALLOWED, _PERHAPS = 0, 1, 2, 3
"""What a recorded name is resolved to; it may be several."""


def _among(column: str, relation: str, item: int) -> str:
    return f"{column} IN (SELECT m.value FROM {relation} AS m WHERE m.item = {item})"


def _either(item: int) -> str:
    """SQL: the requested or the responding name is one of `item`."""
    requested, responding = (
        _among("c.request_model", "asked_requests", item),
        _among("c.response_model", "asked_responses", item),
    )
    return f"({requested} OR {responding})"


_SILENT = "(c.outcome = 'ok' AND c.response_model IS NULL)"
"""SQL: the call was answered, and nothing says by which model: a fallback would not show."""
# The model in question is a version of the one that was asked for, and nothing tells which version answered.
_VERSION = f"({_SILENT} AND {_among('c.request_model', 'asked_requests', _PERHAPS)})"

_WANTED = f"c.outcome = 'ok' AND {_either(_EXPECTED)}"
_FOREIGN_ANSWER = f"(c.response_model IS NOT NULL AND NOT {_among('c.response_model', 'asked_responses', _ALLOWED)})"
_FOREIGN = f"""((c.request_model IS NOT NULL AND NOT {_among("c.request_model", "asked_requests", _ALLOWED)})
            OR {_FOREIGN_ANSWER})"""


_USED = f"""CASE WHEN {_among("c.response_model", "asked_responses", _EXPECTED)} THEN c.response_model
            WHEN {_among("c.request_model", "asked_requests", _EXPECTED)} THEN c.request_model
            ELSE coalesce(c.response_model, c.request_model) END"""
"""SQL for the name that a message shows: the one that was expected, else the responding or the requested one."""


def _number(condition: str) -> str:
    """SQL for how many calls are so; calls of a run that say the same are one row, and ``n`` their number."""
    return f"CAST(sum(CASE WHEN {condition} THEN f.n ELSE 0 END) AS bigint)"


class ModelUsed(Assertion):
    """The run's model calls used the expected model, none that is forbidden, and only those listed, as far as each is asked.

    A silent fallback to another model changes cost, quality and where data go. The requested and the responding
    model both count: for `expected` one of them in an answered call is enough, for `not_expected` and `only` neither
    may offend in any call. Where no responding model is recorded, these two never pass, because a fallback would not show;
    and a requested `gpt-4o` does not decide whether one of its versions (`gpt-4o-2024-08-06`) is the `expected` one. Without
    any recorded model call the two are undecided. Names: see "Models" in the guide;
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
    only: tuple[LimitingModel, ...] | None = Field(default=None, min_length=1)
    """Models of which every call used one."""

    @model_validator(mode="after")
    def _check(self) -> ModelUsed:
        need_one_of(self, "expected", "not_expected", "only")
        if self.expected is not None and self.not_expected is not None:
            raise refused("takes `expected` or `not_expected`, not both: write two assertions", "not_expected")
        return self

    @property
    def _limits(self) -> bool:
        """Whether some models are out of bounds."""
        return self.not_expected is not None or self.only is not None

    def growth_of(self) -> Growth:
        """`expected` is a growing question, the others are shrinking ones, and both together neither."""
        return "shrinking" if self.expected is None else "exact" if self._limits else "growing"

    def resolve(self) -> tuple[Resolve, ...]:
        """Decide each distinct requested and responding name."""
        return (
            Resolve("asked_requests", "llm_calls", "request_model", self._items),
            Resolve("asked_responses", "llm_calls", "response_model", self._items),
        )

    def _items(self, name: str) -> tuple[int, ...]:
        found = []
        if self.expected is not None and self.expected.named(name):
            found.append(_EXPECTED)
        if self.not_expected is not None and self.not_expected.mentioned(name):
            found.append(_FORBIDDEN)
        if any(model.named(name) for model in self.only or ()):
            found.append(_ALLOWED)
        asked = (self.expected, self.not_expected)
        if any(model is not None and model.is_version_of(name) for model in asked):
            found.append(_PERHAPS)
        return tuple(found)

    @property
    def _wrong(self) -> str:
        """SQL: the call used a model that is out of bounds."""
        wrong = [_either(_FORBIDDEN)] if self.not_expected is not None else []
        wrong += [_FOREIGN] if self.only is not None else []
        return f"({' OR '.join(wrong)})" if wrong else "1 = 0"

    @property
    def _hit(self) -> str:
        """SQL: the call decides, for good or for bad."""
        return self._wrong if self.expected is None else f"({_WANTED} OR {self._wrong})"

    def query(self) -> Query:
        """Count the calls that meet, those that offend, and those without a recorded model."""
        vague = "(g.countable = 0 OR g.calls < g.answered OR g.nameless > 0 OR g.open > 0{none})".format(
            none=" OR g.calls = 0" if self._limits else ""
        )
        none_seen = " OR g.calls = 0" if self._limits else ""
        met = "g.wanted > 0" if self.expected is not None else "TRUE"
        within = f"NOT {vague}" if self._limits else "TRUE"
        return Query(f"""
SELECT g.run_id AS run_id, g.calls AS calls, g.wanted AS wanted, g.wrong AS wrong, g.nameless AS nameless, g.open AS open,
       g.wanted_model AS wanted_model, g.wrong_model AS wrong_model, g.first_model AS first_model,
       g.last_model AS last_model, CASE WHEN g.wrong > 0 THEN TRUE ELSE FALSE END AS final,
       CASE WHEN g.wrong > 0 THEN FALSE WHEN {met} AND {within} THEN TRUE WHEN {vague} THEN NULL ELSE FALSE END AS holds,
       CASE WHEN g.wrong > 0 OR ({met} AND {within}) THEN NULL
            WHEN g.countable = 0 OR g.calls < g.answered{none_seen} THEN 'llm_calls'
            WHEN g.nameless + g.open > 0 THEN 'llm_calls.model' ELSE NULL END AS missing
FROM (
  SELECT f.run_id AS run_id, max(f.has_trace) AS has_trace, max(f.countable) AS countable,
         max(f.answered) AS answered, {_number("TRUE")} AS calls, {_number("f.meets = 1")} AS wanted,
         {_number("f.offends = 1")} AS wrong, {_number("f.used IS NULL")} AS nameless, {_number("f.is_open = 1")} AS open,
         min(CASE WHEN f.meets = 1 THEN f.used END) AS wanted_model,
         min(CASE WHEN f.offends = 1 THEN f.culprit END) AS wrong_model,
         min(f.used) AS first_model, max(f.used) AS last_model
  FROM (
    SELECT t.run_id AS run_id, 1 AS has_trace, CASE WHEN t.llm_calls IS NULL THEN 0 ELSE 1 END AS countable,
           coalesce(t.llm_calls, 0) AS answered, 0 AS n, 0 AS meets, 0 AS offends, 0 AS is_open, NULL AS culprit, NULL AS used
    FROM run_totals AS t
    JOIN selected_runs AS s ON s.run_id = t.run_id
    UNION ALL
    SELECT c.run_id AS run_id, 0 AS has_trace, 0 AS countable, 0 AS answered, c.n AS n,
           CASE WHEN {_WANTED} THEN 1 ELSE 0 END AS meets, CASE WHEN {self._wrong} THEN 1 ELSE 0 END AS offends,
           CASE WHEN {_SILENT if self._limits else _VERSION} THEN 1 ELSE 0 END AS is_open, {self._culprit} AS culprit, {_USED} AS used
    FROM (
      SELECT k.run_id AS run_id, k.request_model AS request_model, k.response_model AS response_model,
             k.outcome AS outcome, count(*) AS n
      FROM llm_calls AS k
      JOIN selected_runs AS q ON q.run_id = k.run_id
      GROUP BY k.run_id, k.request_model, k.response_model, k.outcome
    ) AS c
  ) AS f
  GROUP BY f.run_id
) AS g
WHERE g.has_trace = 1
""")

    @property
    def _culprit(self) -> str:
        """SQL for the name that is out of bounds: the responding one where it is, else the requested one."""
        answers = [_among("c.response_model", "asked_responses", _FORBIDDEN)] if self.not_expected is not None else []
        answers += [_FOREIGN_ANSWER] if self.only is not None else []
        return f"CASE WHEN {' OR '.join(answers)} THEN c.response_model ELSE c.request_model END" if answers else "NULL"

    def evidence(self) -> Query:
        """Return the calls, those that hit first, with the requested and the responding model."""
        return Query(f"""
SELECT c.run_id AS run_id, c.span_id AS span_id,
       'requested ' || coalesce(c.request_model, '(not recorded)') || ', answered by '
         || coalesce(c.response_model, '(not recorded)') || ', ' || c.outcome AS why,
       row_number() OVER (
         PARTITION BY c.run_id ORDER BY CASE WHEN {self._hit} THEN 0 ELSE 1 END, c.call_no) AS rank
FROM llm_calls AS c
JOIN selected_runs AS s ON s.run_id = c.run_id
""")

    def expectation(self) -> Any:
        """Return the question."""
        asked = {"expected": self.expected, "not_expected": self.not_expected}
        found: dict[str, Any] = {name: str(value) for name, value in asked.items() if value is not None}
        return found | ({"only": [model.text for model in self.only]} if self.only is not None else {})

    def actual(self, outcome: Outcome) -> Any:
        """Return how many calls there were, how many decided, and models that were used (the first and last by name)."""
        row = outcome.row
        hits = row["wanted"] if self.expected is not None and not row["wrong"] else row["wrong"]
        return {"calls": row["calls"], "hits": hits, "models": self._names(outcome)}

    def _names(self, outcome: Outcome) -> list[str]:
        return sorted({name for name in (outcome.row["first_model"], outcome.row["last_model"]) if name})

    def explain(self, outcome: Outcome) -> str:
        """Say which models were used against what was asked."""
        row = outcome.row
        calls = plural(row["calls"], "model call")
        if row["wrong"]:
            why = [f"forbidden by `not_expected: {self.not_expected}`"] if self.not_expected is not None else []
            why += ["outside of `only`"] if self.only is not None else []
            return f"{row['wrong']} of {calls} used a model {' or '.join(why)}: {row['wrong_model']!r}."
        met = f"`{self.expected}` was used in {row['wanted']} of {calls} (recorded as {row['wanted_model']!r})"
        if outcome.holds is None:
            nameless = (
                f"{row['nameless']} of {calls} do not record their model" if row["nameless"] else f"{calls} recorded"
            )
            if row["open"]:
                asked = f" the request for {row['first_model']!r}" if row["first_model"] else ""
                nameless = f"in {row['open']} of {calls} nothing says which model answered{asked}"
            seen = f"{met}; which others were used is unknown" if row["wanted"] else "Which models were used is unknown"
            return f"{seen}: {nameless}."
        names = self._names(outcome)
        among = ", among them" if len(names) > 1 else ""
        used = f"{calls} used{among} {' and '.join(map(repr, names))}" if names else f"{calls} were recorded"
        if self.expected is not None and not outcome.holds:
            return f"No answered call used `{self.expected}`: {used}."
        if self.expected is not None:
            return f"{met}." if self.only is None else f"{met}; all are listed in `only`."
        within = [f"none is `{self.not_expected}`"] if self.not_expected is not None else []
        within += ["all are listed in `only`"] if self.only is not None else []
        return f"{used}: {', '.join(within)}."
