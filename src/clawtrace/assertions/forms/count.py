"""The form `count`: how many rows of a relation meet a condition, within bounds.

The fewest are the certain rows of which the condition is true; the most are all rows of which it is not false, and the gaps
that could hold such a row. Where the spans state a number, it is the least. The truth lies between them in every world that the spans allow.

The form `share` is decided from two counts: of the rows that meet the condition, and of those that do not. The least share has
the fewest of the one and the most of the other. Where no row is certain there is no share, and nothing is answered.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from clawtrace.assertions.forms.bounds import all_sql, decide_sql, interval, number_or_bounds, numbers, plural, words
from clawtrace.assertions.forms.form import Form, Outcome, Row
from clawtrace.assertions.forms.sources import SOURCES, Source, UnionPart, handed_over, rows_evidence, union
from clawtrace.assertions.forms.where import ANY, Where
from clawtrace.model.query import Query, Resolve, Scalar

__all__ = ["Count", "CountedRows", "Share", "share"]


class CountedRows(NamedTuple):
    """One number that is asked for."""

    where: Where = ANY
    min: int | None = None
    max: int | None = None
    noun: str = "call"
    of: str = ""
    """What follows the noun in the sentence, such as " of `refund`"."""
    key: str = ""
    """Tells its columns from those of other numbers: ``low<key>``, ``high<key>``."""

    @property
    def params(self) -> dict[str, Scalar]:
        """The bounds and the parameters of the condition."""
        given = {f"min{self.key}": self.min, f"max{self.key}": self.max}
        return {**self.where.params, **{name: bound for name, bound in given.items() if bound is not None}}

    @property
    def decided(self) -> str:
        """SQL that decides it over the alias ``g``."""
        minimum = None if self.min is None else f":min{self.key}"
        maximum = None if self.max is None else f":max{self.key}"
        return decide_sql(f"g.low{self.key}", f"g.high{self.key}", minimum, maximum)


@dataclass(frozen=True)
class Count(Form):
    """Rows are counted; every number must be within its bounds."""

    source: str | Source
    """One of `SOURCES`, or another one."""
    tallies: tuple[CountedRows, ...]
    parts: Mapping[str, str] = field(default_factory=dict)
    """What the certain rows of the first number are split into, for the sentence: a word each, and a condition over ``r``."""
    label: str = ""
    """SQL over ``r``: the first and the last by name of what the first number counts are ``first_label`` and ``last_label``, and
    ``gap_label`` is a name in the gaps."""
    named: Where | None = None
    """The condition on the names of tools: how many of them were asked for in vain is ``asked``; ``handed`` a handoff's name."""
    shown: str = ""
    """SQL over ``r``: what evidence says of a row."""
    order: str = ""
    """SQL over ``r`` by which evidence is ordered before the rows' numbers."""
    needs_row: bool = False
    """Whether nothing is right where no row is certain, whatever it says; ``seen`` is how many there are."""
    greatest: Mapping[str, str] = field(default_factory=dict)
    """More columns of the answer: SQL over ``r``, of which a run has the greatest value."""
    stated: str = ""
    """SQL over ``t``, the run's totals: how many there are at least, also where the spans state their number and have no row of them."""
    decision: str = ""
    """SQL over ``g`` that answers in place of the bounds."""

    @property
    def fact(self) -> str:  # type: ignore[override]
        """The relation."""
        return self._source.fact or self._source.relation

    @property
    def _source(self) -> Source:
        return SOURCES[self.source] if isinstance(self.source, str) else self.source

    def resolve(self) -> Sequence[Resolve]:
        """Return the predicates of the conditions, each once."""
        asked = [tally.where for tally in self.tallies] + ([self.named] if self.named else [])
        return tuple({one.name: one for where in asked for one in where.resolve}.values())

    def query(self) -> Query:
        """Return the count: one row a run."""
        columns = self._summed()
        bounded = [one.decided for one in self.tallies if (one.min, one.max) != (None, None)]
        decided = [self.decision] if self.decision else bounded
        decided += ["CASE WHEN g.seen > 0 THEN TRUE ELSE NULL END"] if self.needs_row else []
        return Query(
            f"""
SELECT g.run_id AS run_id, {all_sql(decided)} AS holds,
       {", ".join(f"g.{name} AS {name}" for name in columns)}
FROM (
  SELECT f.run_id AS run_id, max(f.traced) AS traced,
         {", ".join(f"{sql} AS {name}" for name, sql in columns.items())}
  FROM (
{self._union()}
  ) AS f
  JOIN selected_runs AS s ON s.run_id = f.run_id
  GROUP BY f.run_id
) AS g
WHERE g.traced = 1
""",
            {name: value for one in self.tallies for name, value in one.params.items()},
        )

    def _summed(self) -> dict[str, str]:
        """SQL of the columns of a run, by name. Sums of bigint are 128 bits wide in DuckDB, and three times as slow to fetch."""
        found = {}
        for key in (one.key for one in self.tallies):
            low = f"sum(f.low{key})"
            low = f"CASE WHEN max(f.stated) > {low} THEN max(f.stated) ELSE {low} END" if self.stated else low
            found[f"low{key}"] = f"CAST({low} AS bigint)"
            found[f"high{key}"] = f"CASE WHEN sum(f.open{key}) > 0 THEN NULL ELSE CAST(sum(f.high{key}) AS bigint) END"
        found |= {f"part_{n}": f"CAST(sum(f.part_{n}) AS bigint)" for n in range(len(self.parts))}
        if self.label:
            found |= {"first_label": "min(f.label)", "last_label": "max(f.label)", "gap_label": "max(f.gap_label)"}
        if self.named:
            found |= {"asked": "CAST(sum(f.asked) AS bigint)", "handed": "max(f.handed)"}
        found |= {"seen": "CAST(sum(f.seen) AS bigint)"} if self.needs_row else {}
        return found | {name: f"max(f.{name})" for name in self.greatest}

    def _union(self) -> str:
        """SQL of what is added up: the run itself, its rows, what was asked for in vain, and its gaps."""
        names = {"traced": "0"} | {f"{side}{one.key}": "0" for one in self.tallies for side in ("low", "high", "open")}
        names |= {f"part_{n}": "0" for n in range(len(self.parts))}
        names |= {"label": "NULL", "gap_label": "NULL"} if self.label else {}
        names |= {"asked": "0", "handed": "NULL"} if self.named else {}
        names |= {"seen": "0"} if self.needs_row else {}
        names |= {"stated": "0"} if self.stated else {}
        names |= dict.fromkeys(self.greatest, "NULL")
        found = [
            UnionPart("t", "run_totals AS t", {"traced": "1", "stated": self.stated or "0"}),
            UnionPart("x", self._rows(), self._row_values()),
        ]
        if self.named:
            name = f"CASE WHEN ({self.named.sql}) THEN 1 ELSE 0 END"
            handed = f"CASE WHEN r.reason = 'handed-over' AND ({self.named.sql}) THEN r.name END"
            found.append(UnionPart("r", "tool_requests AS r", {"asked": name, "handed": handed}))
        found.append(UnionPart("p", f"gaps AS p WHERE {self._source.gaps}", self._gap_values()))
        return union(found, names)

    def _rows(self) -> str:
        """SQL of the rows, each with its numbers and whether it meets each condition."""
        source = self._source
        met = "".join(f", ({one.where.sql}) AS met{one.key}" for one in self.tallies)
        is_part = "".join(f", ({sql}) AS is_{n}" for n, sql in enumerate(self.parts.values()))
        label = f", {self.label} AS label" if self.label else ""
        label += "".join(f", {sql} AS {name}" for name, sql in self.greatest.items())
        return f"""(
      SELECT r.run_id AS run_id, {source.low} AS n_low, {source.high} AS n_high{met}{is_part}{label}
      FROM {source.counted} AS r
    ) AS x"""

    def _row_values(self) -> dict[str, str]:
        found = {}
        for key in (one.key for one in self.tallies):
            found[f"low{key}"] = f"CASE WHEN x.met{key} THEN x.n_low ELSE 0 END"
            found[f"high{key}"] = f"CASE WHEN x.met{key} = FALSE THEN 0 ELSE x.n_high END"
            if self._source.endless:
                found[f"open{key}"] = f"CASE WHEN x.met{key} = FALSE OR x.n_high IS NOT NULL THEN 0 ELSE 1 END"
        first = f"x.met{self.tallies[0].key}"
        for number in range(len(self.parts)):
            found[f"part_{number}"] = f"CASE WHEN {first} AND x.is_{number} THEN x.n_low ELSE 0 END"
        if self.label:
            found["label"] = f"CASE WHEN {first} THEN x.label END"
        return found | {"seen": "x.n_low"} | {name: f"x.{name}" for name in self.greatest}

    def _gap_values(self) -> dict[str, str]:
        found = {"gap_label": f"CASE WHEN ({self.tallies[0].where.gap}) = FALSE THEN NULL ELSE p.name END"}
        most = "NULL" if self._source.endless else "p.at_most"
        for one in self.tallies:
            out = f"({one.where.gap}) = FALSE"
            found[f"high{one.key}"] = f"CASE WHEN {out} OR {most} IS NULL THEN 0 ELSE {most} END"
            found[f"open{one.key}"] = f"CASE WHEN {out} OR {most} IS NOT NULL THEN 0 ELSE 1 END"
        return found

    def evidence(self) -> Query:
        """Return the rows that count, those in doubt marked, and the gaps that could hold such rows."""
        params = {name: value for one in self.tallies for name, value in one.where.params.items()}
        return rows_evidence(self._source, [one.where for one in self.tallies], self.shown, self.order, params)

    def actual(self, row: Row) -> Any:
        """Return each number, or its bounds."""
        return numbers(row, (one.key for one in self.tallies), "count")

    def sentence(self, outcome: Outcome) -> str:
        """Return each number with its bounds: "2 to 3 calls of `refund` (1 ok, 1 failed), expected at most 1"."""
        row, said = outcome.row, []
        split = ", ".join(f"{row[f'part_{n}']} {word}" for n, word in enumerate(self.parts) if row[f"part_{n}"])
        for one in self.tallies:
            low, high = row[f"low{one.key}"], row[f"high{one.key}"]
            found = f"no {one.noun}" if high == 0 else interval(low, high, one.noun)
            parts = f" ({split})" if split and one is self.tallies[0] else ""
            said.append(f"{found}{one.of}{parts}, expected {words(one.min, one.max)}")
        text = "; ".join(said)
        return f"{text[0].upper()}{text[1:]}.{self.asked_words(row)}"

    def asked_words(self, row: Row) -> str:
        """Return, after a space, requests without an execution; empty if there are none."""
        if not self.named or not row["asked"]:
            return ""
        if row["handed"] is not None:
            return handed_over(row["handed"])
        return f" The model asked for it {plural(row['asked'], 'more time')}, and no tool was run for that."


# share × number of rows in binary floating point may be off by its last bits.
_ROUNDING = "1e-9"


@dataclass(frozen=True)
class Share(Count):
    """The first number as a share of both together."""

    least: float = 1.0
    """Share that is enough, above 0 up to 1."""

    def actual(self, row: Row) -> Any:
        """Return how many rows meet the condition and how many do not, and the greatest number."""
        found = {
            "within": number_or_bounds(row["low"], row["high"]),
            "beyond": number_or_bounds(row["low_not"], row["high_not"]),
        }
        return found | ({"largest": row["largest"]} if self.greatest else {})

    def sentence(self, outcome: Outcome) -> str:
        """Return the share and the required one in words."""
        row, one = outcome.row, self.tallies[0]
        open_ones = row["seen"] - row["low"] - row["low_not"]
        unknown = "" if row["high"] == row["low"] else f", {open_ones or 'others'} unknown"
        asked = "all of them" if self.least == 1 else f"a share of {self.least:g}"
        return f"{row['low']} of {plural(row['seen'], one.noun)}{one.of}{unknown}, expected {asked}."


def share(source: str | Source, where: Where, least: float, *, noun: str, of: str = "", **more: Any) -> Share:
    """Return the question whether at least a share of the rows meets a condition.

    Args:
        source: what is counted.
        where: the condition.
        least: the share that is enough.
        noun: what a row is called.
        of: what follows the noun, such as " took at most 3 ms".
        more: what `Count` takes besides.
    """
    beyond = where._replace(sql=f"NOT ({where.sql})")
    enough = f"{least:.17e}"  # without a power of ten it would be a decimal in some stores
    worst = f"g.low >= {enough} * (g.low + g.high_not) - {_ROUNDING}"
    best = f"g.high < {enough} * (g.high + g.low_not) - {_ROUNDING}"
    # Without a bound of the rows that may be missing, one bad row still decides where all must be good.
    bad = " OR g.low_not > 0" if least == 1 else ""
    return Share(
        source,
        (CountedRows(where, noun=noun, of=of), CountedRows(beyond, key="_not")),
        decision=f"CASE WHEN {best}{bad} THEN FALSE WHEN {worst} THEN TRUE ELSE NULL END",
        least=least,
        needs_row=True,
        **more,
    )
