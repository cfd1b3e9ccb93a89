"""`model_used`: which models answered."""

from __future__ import annotations

from typing import Any

from pydantic import Field, model_validator

from clawtrace.assertions.base import Assertion, Outcome
from clawtrace.assertions.forms.bounds import need_one_of
from clawtrace.assertions.forms.calls import ANSWERED
from clawtrace.assertions.forms.count import Count, CountedRows
from clawtrace.assertions.forms.where import Where, among, both
from clawtrace.assertions.matching.matchers import LimitingModel, ModelMatcher
from clawtrace.assertions.refused import refused
from clawtrace.model.model_names import names_no_model
from clawtrace.model.query import Resolve

__all__ = ["ModelUsed"]

_EXPECTED, _FORBIDDEN, _ALLOWED, _VERSION, _ONLY_VERSION = range(5)
"""What a recorded name is resolved to; it may be several."""

_SHOWN = """'requested ' || coalesce(r.request_model, '(not recorded)') || ', answered by '
         || coalesce(r.response_model, '(not recorded)') || ', ' || coalesce(r.outcome, 'whether it was answered is unknown')"""


def _is(column: str, item: int) -> str:
    """SQL: the name in a column is such a one; NULL where there is none."""
    return f"({among(f'r.{column}', f'asked_{column}', item)})"


class ModelUsed(Assertion):
    """The run's model calls used the expected model, none that is forbidden, and only those listed, as far as each is asked.

    A silent fallback to another model changes cost, quality and where data go. The requested and the responding
    model both count: for `expected` one of them in an answered call is enough, for `not_expected` and `only` neither
    may offend in any call. Where no responding model is recorded the requested one counts alone, although a fallback would not
    show; `answered_by: true` asks for the responding model, and then leaves such calls open. A requested `gpt-4o` does not
    decide whether one of its versions (`gpt-4o-2024-08-06`) answered, and does not offend where `only` lists one; nor does the name of a profile, an endpoint or a router (`openrouter/auto`). Without any recorded model call `not_expected` and
    `only` are undecided. Names: see "Models" in the guide; a text with a digit names a version (`gpt-4o` is not `gpt-4o-mini`),
    one without a family (`sonnet`).

    Example:
        - type: model_used
          expected: claude-sonnet-4-6
    """

    main_field = "expected"
    requires = ("llm_calls.request_model", "llm_calls.response_model")

    expected: ModelMatcher | None = None
    """Model that at least one answered call used; or `glob:`, `re:`, `literal:`."""
    not_expected: ModelMatcher | None = None
    """Model that no call may use, matched widely: `gpt-4` forbids `gpt-4-turbo` too, not `gpt-4o`."""
    only: tuple[LimitingModel, ...] | None = Field(default=None, min_length=1)
    """Models of which every call used one."""
    answered_by: bool = False
    """Whether only the responding model counts; where it is not recorded, which model answered is unknown."""

    @model_validator(mode="after")
    def _check(self) -> ModelUsed:
        need_one_of(self, "expected", "not_expected", "only")
        if self.expected is not None and self.not_expected is not None:
            raise refused("takes `expected` or `not_expected`, not both: write two assertions", "not_expected")
        return self

    def _items(self, name: str) -> tuple[int, ...]:
        asked = {
            _EXPECTED: self.expected is not None and self.expected.named(name),
            _FORBIDDEN: self.not_expected is not None and self.not_expected.mentioned(name),
            _ALLOWED: any(model.named(name) for model in self.only or ()),
            _VERSION: any(one.is_version_of(name) for one in (self.expected, self.not_expected) if one is not None),
        }
        if not any(asked.values()) and names_no_model(name):
            return (_VERSION, _ONLY_VERSION)
        asked[_ONLY_VERSION] = not asked[_ALLOWED] and any(one.is_version_of(name) for one in self.only or ())
        return tuple(item for item, meant in asked.items() if meant)

    @property
    def _columns(self) -> tuple[str, ...]:
        return ("response_model",) if self.answered_by else ("response_model", "request_model")

    def _where(self, item: int, *, outside: bool = False) -> Where:
        """Return the condition that a name of the call is such a one; with `outside`, that one is not."""
        used = " OR ".join(f"{_is(column, item)} = {'FALSE' if outside else 'TRUE'}" for column in self._columns)
        if outside and not self.answered_by:  # it asks for the last column, the requested model
            used += f" AND {_is('request_model', _ONLY_VERSION)} = FALSE"
        nameless = " AND ".join(f"r.{column} IS NULL" for column in self._columns)
        unanswered = "r.outcome = 'error'" + ("" if self.answered_by else " AND r.request_model IS NOT NULL")
        version = f"{nameless} OR (r.response_model IS NULL AND {_is('request_model', _ONLY_VERSION if outside else _VERSION)})"
        return Where(
            f"CASE WHEN {used} THEN TRUE WHEN {unanswered} THEN FALSE WHEN {version} THEN NULL ELSE FALSE END",
            ANSWERED.gap,  # a failed attempt that nothing records asked for the same model as the attempt that is recorded
            ("outcome", "request_model", "response_model"),
            tuple(
                Resolve(f"asked_{name}", "llm_calls", name, self._items) for name in ("response_model", "request_model")
            ),
        )

    def question(self) -> Count:
        """Count the calls that offend, and the answered ones of the expected model."""
        tallies, labels = [], []
        if self.not_expected is not None:
            tallies.append(
                CountedRows(self._where(_FORBIDDEN), max=0, of=f" of `{self.not_expected}`", noun="model call")
            )
            labels.append(f"{_is('response_model', _FORBIDDEN)}")
        if self.only is not None:
            outside = self._where(_ALLOWED, outside=True)
            tallies.append(CountedRows(outside, max=0, of=" outside of `only`", noun="model call", key="_outside"))
            labels.append(f"{_is('response_model', _ALLOWED)} = FALSE")
        if self.expected is not None:
            expected = both(ANSWERED, self._where(_EXPECTED))
            of = f" of `{self.expected}`"
            tallies.append(CountedRows(expected, min=1, of=of, noun="answered model call", key="_expected"))
            labels.append(f"{_is('response_model', _EXPECTED)}")
        return Count(
            "llm_calls",
            tuple(tallies),
            label=f"CASE WHEN {labels[0]} THEN r.response_model ELSE coalesce(r.request_model, r.response_model) END",
            shown=_SHOWN,
            needs_row=self.expected is None or len(tallies) > 1,
        )

    def expectation(self) -> Any:
        """Return the question."""
        asked = {"expected": self.expected, "not_expected": self.not_expected}
        found: dict[str, Any] = {name: str(value) for name, value in asked.items() if value is not None}
        found |= {"only": [model.text for model in self.only]} if self.only is not None else {}
        return found | ({"answered_by": True} if self.answered_by else {})

    def explain(self, outcome: Outcome) -> str:
        """Return how many calls used which models."""
        row = outcome.row
        if row.get("seen") == 0:
            return "No model call is recorded for sure, so which models were used is unknown."
        names = dict.fromkeys(row[f"{side}_label"] for side in ("first", "last") if row[f"{side}_label"] is not None)
        recorded = f" Recorded as {' and '.join(map(repr, names))}." if names else ""
        return f"{self.form.sentence(outcome)}{recorded}"
