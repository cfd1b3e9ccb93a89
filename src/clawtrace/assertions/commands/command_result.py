"""How a command ended and what it printed: `exit_code`, `output_contains`, `output_equals` and `error_contains`.

Each states what fits on a row of commands; which commands are looked at, and what the run's answer is then, is the same
for all of them: one row a command, ranked so that the first one decides.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import ConfigDict, Discriminator, Tag, WithJsonSchema

from clawtrace.assertions.base import Assertion, Outcome, Row
from clawtrace.assertions.commands.commands import doubt, hits, listed, resolve_commands, shown, why_unknown
from clawtrace.assertions.forms.bounds import plural
from clawtrace.assertions.matching.matchers import RegexText
from clawtrace.assertions.matching.redacted import holds_mark
from clawtrace.model.query import Query, Resolve, Scalar
from clawtrace.support.attribute_docs import Documented

__all__ = ["CommandResult", "CommandText", "Matching"]

_RANKS = {
    "last": "j.call_no DESC, j.command_no DESC",
    "any": "CASE j.fit WHEN 1 THEN 0 WHEN 2 THEN 1 ELSE 2 END, j.call_no DESC, j.command_no DESC",
    "all": "CASE j.fit WHEN 0 THEN 0 WHEN 2 THEN 1 ELSE 2 END, j.call_no DESC, j.command_no DESC",
}
"""Which command decides, by `of`: the first in this order."""


class Matching(Documented):
    """The last command that a regular expression finds."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    matching: RegexText
    """Regular expression, found anywhere in the text of a command or of a simple command in it."""


def _form(value: Any) -> str:
    """Return which form of `of` is written, so that only its problems are reported."""
    return "a mapping" if isinstance(value, Mapping | Matching) else "one word"


Of = Annotated[
    Annotated[Literal["last", "any", "all"], Tag("one word")] | Annotated[Matching, Tag("a mapping")],
    Discriminator(_form),
    WithJsonSchema({"anyOf": [{"enum": ["last", "any", "all"]}, Matching.model_json_schema()]}),
]


class CommandResult(Assertion):
    """Base of the assertions on how commands ended."""

    of: Of = "last"
    """Which commands: the `last` one, at least one (`any`), each one (`all`), or the last that an expression finds
    (`{matching: "^pytest"}`)."""

    what: ClassVar[str]
    """What is looked at, in a word."""

    def fit(self) -> str:
        """Return SQL on the row ``c`` of a command: 1 it is as asked, 0 it is not, 2 that is unknown."""
        raise NotImplementedError

    def fact(self) -> str:
        """Return SQL on the row ``c`` for the fact that is unknown where `fit` is 2."""
        raise NotImplementedError

    def params(self) -> dict[str, Scalar]:
        """Return what `fit` binds."""
        return {}

    def resolve(self) -> tuple[Resolve, ...]:
        """Search the commands that are meant."""
        return resolve_commands(self.of.matching) if isinstance(self.of, Matching) else ()

    def _looked_at(self) -> str:
        """SQL of one row a command that is, or may be, meant."""
        if isinstance(self.of, Matching):
            # Where a part was found, its own exit code counts; its output is the one of the whole.
            source = f"""FROM commands AS w
      JOIN ({hits(self.of.matching)}
      ) AS h ON h.run_id = w.run_id AND h.call_no = w.tool_call_no
      WHERE w.command_no = 1"""
            code, number, text, lacking = "h.exit_code", "h.command_no", "h.text", doubt("h")
            unsure, part = "CASE WHEN h.fit = 2 THEN 1 ELSE 0 END", "CASE WHEN h.command_no > 1 THEN 1 ELSE 0 END"
        else:
            source = (
                "FROM commands AS w\n      JOIN selected_runs AS q ON q.run_id = w.run_id\n      WHERE w.command_no = 1"
            )
            code, number, text, unsure, part = "w.exit_code", "w.command_no", "w.text", "0", "0"
            lacking = "NULL"
        return f"""
    SELECT c.run_id AS run_id, c.call_no AS call_no, c.command_no AS command_no, c.text AS text, c.part AS part,
           c.exit_code AS exit_code, c.stdout AS stdout, c.stderr AS stderr, c.output AS output,
           CASE WHEN c.unsure = 1 THEN 2 ELSE {self.fit()} END AS fit,
           CASE WHEN c.unsure = 1 THEN c.lacking ELSE {self.fact()} END AS fact
    FROM (
      SELECT w.run_id AS run_id, w.tool_call_no AS call_no, {number} AS command_no, {text} AS text, {unsure} AS unsure,
             {lacking} AS lacking, {part} AS part, {code} AS exit_code, w.stdout AS stdout, w.stderr AS stderr, w.output AS output
      {source}
    ) AS c
    UNION ALL
    SELECT x.run_id AS run_id, x.call_no AS call_no, 1 AS command_no, NULL AS text, 0 AS part, NULL AS exit_code,
           NULL AS stdout, NULL AS stderr, NULL AS output, 2 AS fit, 'tool_calls.name' AS fact
    FROM tool_calls AS x
    JOIN selected_runs AS y ON y.run_id = x.run_id
    WHERE x.name IS NULL AND x.outcome NOT IN ('requested', 'unexecuted', 'blocked')"""

    @property
    def _rank(self) -> str:
        return _RANKS[self.of if isinstance(self.of, str) else "last"]

    def query(self) -> Query:
        """Look at the command that decides."""
        # What one command shows decides `any` and `all` for good; a later one can change everything else.
        decided = {"any": "g.fit = 1", "all": "g.fit = 0"}.get(str(self.of), "1 = 0")
        return Query(
            f"""
SELECT t.run_id AS run_id,
       CASE WHEN {decided} THEN g.fit = 1 WHEN t.tool_calls IS NULL THEN NULL WHEN g.fit = 2 THEN NULL
            WHEN g.fit IS NULL THEN FALSE ELSE g.fit = 1 END AS holds,
       CASE WHEN {decided} THEN TRUE ELSE FALSE END AS final,
       CASE WHEN {decided} THEN NULL WHEN t.tool_calls IS NULL THEN 'tool_calls' WHEN g.fit = 2 THEN g.fact
            ELSE NULL END AS missing,
       coalesce(g.n, 0) AS commands, coalesce(g.fitting, 0) AS fitting, g.text AS text, g.part AS part,
       g.exit_code AS exit_code, g.stdout AS stdout, g.stderr AS stderr, g.output AS output
FROM run_totals AS t
JOIN selected_runs AS s ON s.run_id = t.run_id
LEFT JOIN (
  SELECT j.run_id AS run_id, j.text AS text, j.part AS part, j.exit_code AS exit_code, j.stdout AS stdout,
         j.stderr AS stderr, j.output AS output, j.fit AS fit, j.fact AS fact,
         row_number() OVER (PARTITION BY j.run_id ORDER BY {self._rank}) AS place,
         count(*) OVER (PARTITION BY j.run_id) AS n,
         count(CASE WHEN j.fit = 1 THEN 1 END) OVER (PARTITION BY j.run_id) AS fitting
  FROM ({self._looked_at()}
  ) AS j
) AS g ON g.run_id = t.run_id AND g.place = 1
""",
            self.params(),
        )

    def evidence(self) -> Query:
        """Return the commands that are looked at, the one that decides first."""
        return Query(
            f"""
SELECT j.run_id AS run_id, k.span_id AS span_id,
       coalesce(j.text, '(a command that was not captured)') || ': '
         || CASE j.fit WHEN 1 THEN 'as expected' WHEN 0 THEN 'not as expected' ELSE 'unknown' END AS why,
       row_number() OVER (PARTITION BY j.run_id ORDER BY {self._rank}) AS rank
FROM ({self._looked_at()}
) AS j
JOIN tool_calls AS k ON k.run_id = j.run_id AND k.call_no = j.call_no
""",
            self.params(),
        )

    def asked_of(self) -> dict[str, Any]:
        """Return which commands are meant, for a report."""
        return {"of": self.of.model_dump() if isinstance(self.of, Matching) else self.of}

    def which(self, row: Row) -> str:
        """Say the command that decided."""
        which = "command"
        if isinstance(self.of, Matching):
            which = f"last command that matches {self.of.matching!r}"
        elif self.of == "last":
            which = "only command" if row["commands"] == 1 else f"last of {row['commands']} commands"
        return f"the {which}, {listed(row['text'])},"

    def none_words(self, row: Row) -> str:
        """Say that there was no such command; empty when there was one."""
        if row["commands"]:
            return ""
        found = f"No command matches {self.of.matching!r}" if isinstance(self.of, Matching) else "No command was run"
        return f"{found}, so its {self.what} cannot be as expected."

    def explain(self, outcome: Outcome) -> str:
        """Say what the command that decided shows."""
        row = outcome.row
        if outcome.missing == "tool_calls":
            return f"The {self.what} of commands is unknown: tool calls were not recorded."
        if not row["commands"]:
            return self.none_words(row)
        if outcome.missing in ("commands.text", "commands.last_no", "redaction"):
            asked, why = self.asked_of()["of"]["matching"], why_unknown(outcome.missing)
            return f"Which command matches {asked!r} last is unknown: {listed(row['text'])} may be it{why}."
        if outcome.missing == "tool_calls.name":
            return f"The {self.what} is unknown: a tool call without a name may have been a shell's."
        of_all = (
            f" ({row['fitting']} of {plural(row['commands'], 'command')} are as expected)"
            if self.of in ("any", "all")
            else ""
        )
        return f"{self.says(outcome)}{of_all}."

    def says(self, outcome: Outcome) -> str:
        """Say of the command that decided what was found, without a full stop."""
        raise NotImplementedError


class CommandText(CommandResult):
    """Base of the assertions on what commands printed."""

    stream: ClassVar[Literal["stdout", "stderr"]] = "stdout"
    """The stream that is checked where the instrumentation records it separately; `output` otherwise."""
    verb: ClassVar[str] = "contain"
    """What is asked of it."""

    value: str
    """Text, compared case-sensitively."""

    def met(self, text: str) -> bool:
        """Return whether a text is as asked."""
        raise NotImplementedError

    def open_in(self, text: str) -> bool:
        """Return whether a text that holds more than the stream alone may still be as asked, though it is not `met`."""
        return holds_mark(text)

    def resolve(self) -> tuple[Resolve, ...]:
        """Decide once per distinct text: 0 it is as asked, 1 that is unknown."""

        def apart(text: str) -> tuple[int, ...]:
            return (0,) if self.met(text) else (1,) if holds_mark(text) else ()

        def together(text: str) -> tuple[int, ...]:
            return (0,) if self.met(text) else (1,) if self.open_in(text) else ()

        first = "r.command_no = 1"
        return (
            *super().resolve(),
            Resolve("asked_stream", "commands", self.stream, apart, first),
            Resolve("asked_output", "commands", "output", together, first),
        )

    def fit(self) -> str:
        """Look at the stream, and where the streams are not separated, at the output."""
        return f"""CASE
             WHEN c.{self.stream} IN (SELECT a.value FROM asked_stream AS a WHERE a.item = 0) THEN 1
             WHEN c.{self.stream} IN (SELECT b.value FROM asked_stream AS b WHERE b.item = 1) THEN 2
             WHEN c.{self.stream} IS NOT NULL THEN 0 WHEN c.output IS NULL THEN 2
             WHEN c.output IN (SELECT d.value FROM asked_output AS d WHERE d.item = 0) THEN 1
             WHEN c.output IN (SELECT e.value FROM asked_output AS e WHERE e.item = 1) THEN 2 ELSE 0 END"""

    def expectation(self) -> Any:
        """Return the text, and of which commands."""
        return {f"{self.verb}s": self.value, **self.asked_of()}

    def fact(self) -> str:
        """Return the stream."""
        return f"'commands.{self.stream}'"

    def found(self, row: Row) -> str | None:
        """Return the text that was looked at; None when it is unknown."""
        text = row[self.stream] if row[self.stream] is not None else row["output"]
        return None if text is None else str(text)

    def actual(self, outcome: Outcome) -> Any:
        """Return the command that decided, and its text."""
        row = outcome.row
        text = self.found(row)
        return {"command": row["text"], self.what: None if text is None else shown(text)}

    def says(self, outcome: Outcome) -> str:
        """Say what the text of the command that decided is."""
        row = outcome.row
        text = self.found(row)
        if text is None:
            return f"The {self.what} of {self.which(row)} is unknown: it was not captured"
        notes = []
        if row[self.stream] is None:
            notes.append("standard output and standard error were not recorded separately, so both were searched")
        if row["part"]:
            notes.append("the output is that of the whole text that contains the command")
        if outcome.holds is None:
            notes.append("parts of it were redacted" if holds_mark(text) else "it contains more than the output")
        verb = f"{self.verb}s" if outcome.holds else f"{'does not' if outcome.holds is False else 'may'} {self.verb}"
        noted = f"; {'; '.join(notes)}" if notes else ""
        return f"The {self.what} of {self.which(row)} {verb} {self.value.strip()!r}: {shown(text)!r}{noted}"
