"""Outcome and output of a command: `exit_code`, `output_contains`, `output_equals` and `error_contains`.

Each states what fits on a row of commands; which commands are looked at, and what the run's answer is then, is the same
for all of them: one row a command, ranked so that the first one decides.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Discriminator, Field, Tag, WithJsonSchema

from clawtrace.assertions.base import Assertion, Outcome, Row
from clawtrace.assertions.commands.command_count import FIRST, RAN, command_count
from clawtrace.assertions.commands.commands import MATCH, hits, listed, may_be, other_calls, resolve_commands, shown
from clawtrace.assertions.forms.bounds import plural
from clawtrace.assertions.forms.count import Count, CountedRows
from clawtrace.assertions.forms.where import Where
from clawtrace.assertions.matching.matchers import RegexText
from clawtrace.assertions.matching.redacted import contains, holds_mark
from clawtrace.model.query import Resolve
from clawtrace.support.attribute_docs import Documented

__all__ = ["CommandResult", "CommandText", "Matching"]

_RANKS = {
    "last": "CASE WHEN y.fits IS NULL THEN 0 WHEN y.certain THEN 1 ELSE 2 END",
    "any": "CASE WHEN y.fits = FALSE THEN 2 WHEN y.fits AND y.certain THEN 0 ELSE 1 END",
    "all": "CASE WHEN y.fits THEN 2 WHEN y.fits = FALSE AND y.certain THEN 0 ELSE 1 END",
}
"""The order of the shown commands by `of`: first the one that decides or leaves the question open."""

_EVERY_ONE_FITS = "WHEN g.high = 0 THEN FALSE WHEN g.high_not = 0 AND g.low > 0 THEN TRUE ELSE NULL END"
_DECISIONS = {
    "last": f"CASE {_EVERY_ONE_FITS}",
    "any": "CASE WHEN g.low > 0 THEN TRUE WHEN g.high = 0 THEN FALSE ELSE NULL END",
    "all": f"CASE WHEN g.low_not > 0 THEN FALSE {_EVERY_ONE_FITS}",
}
"""The answer from the commands that fit, ``low`` to ``high``, and those that do not, ``low_not`` to ``high_not``: of `last` every
command that may be it is counted, which is the last certain one and all that may have come after it."""


_COLUMNS = (
    "run_id", "call_no", "command_no", "text", "exit_code", "certain", "most", "kind", "stdout", "stderr", "output", "span_id",
    "timed",
)  # fmt: skip
_MADE = ("part", "fits", "n")


class Matching(Documented):
    """The last command that a regular expression finds."""

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
    """The checked value, in one word."""

    shows: ClassVar[tuple[str, ...]]
    """The columns of `commands` that the sentence needs."""

    def fit(self) -> Where:
        """Return the condition on the row ``c`` of a command, with what it resolves and binds."""
        raise NotImplementedError

    @property
    def _pattern(self) -> str | None:
        return self.of.matching if isinstance(self.of, Matching) else None

    @property
    def _of(self) -> str:
        return self.of if isinstance(self.of, str) else "last"

    def _meant(self) -> str:
        """SQL of one row a command that is meant, or may be."""
        output = "w.stdout AS stdout, w.stderr AS stderr, w.output AS output, k.span_id AS span_id, k.start_ns IS NOT NULL AS timed"
        calls = "JOIN tool_calls AS k ON k.run_id = w.run_id AND k.call_no = w.tool_call_no"
        if self._pattern is None:
            return f"""
        SELECT w.run_id AS run_id, w.tool_call_no AS call_no, 1 AS command_no, w.text AS text, w.exit_code AS exit_code,
               w.certain AS certain, 1 AS most, {MATCH} AS kind, {output}
        FROM commands AS w
        JOIN selected_runs AS q ON q.run_id = w.run_id
        {calls}
        WHERE w.command_no = 1"""
        # Where a part was found, its own exit code counts; its output is the one of the whole.
        return f"""
        SELECT h.run_id AS run_id, h.call_no AS call_no, h.command_no AS command_no, h.text AS text, h.exit_code AS exit_code,
               h.certain AND h.kind = {MATCH} AS certain, h.most AS most, h.kind AS kind, {output}
        FROM commands AS w
        JOIN ({hits(self._pattern)}
        ) AS h ON h.run_id = w.run_id AND h.call_no = w.tool_call_no
        {calls}
        WHERE w.command_no = 1"""

    def question(self) -> Count:
        """Count the commands that fit, and those that do not, among those that are meant."""
        fit = self.fit()
        kept, read = (
            ", ".join(f"{at}.{name} AS {name}" for name in (*_COLUMNS, *more)) for at, more in (("y", _MADE), ("c", ()))
        )
        rows = f"""(
    SELECT {kept}, row_number() OVER (
             PARTITION BY y.run_id ORDER BY {_RANKS[self._of]}, y.call_no DESC, y.command_no DESC) AS place
    FROM (
      SELECT {read}, CASE WHEN c.command_no > 1 THEN 1 ELSE 0 END AS part, CASE WHEN c.kind = {MATCH} THEN ({fit.sql}) END AS fits,
             count(*) OVER (PARTITION BY c.run_id) AS n,
             count(CASE WHEN c.certain AND c.timed THEN 1 END) OVER (
               PARTITION BY c.run_id ORDER BY c.call_no DESC, c.command_no DESC
               ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS later
      FROM ({self._meant()}
        UNION ALL
        SELECT u.run_id AS run_id, u.call_no AS call_no, 1 AS command_no, u.text AS text, u.exit_code AS exit_code,
               FALSE AS certain, u.most AS most, u.kind AS kind, u.text AS stdout, u.text AS stderr,
               u.text AS output, u.span_id AS span_id, TRUE AS timed
        FROM ({other_calls()}
        ) AS u
      ) AS c
    ) AS y
    WHERE {"y.later = 0 OR NOT y.timed" if self._of == "last" else "1 = 1"}
  )"""
        resolve = () if self._pattern is None else resolve_commands(self._pattern)
        fits = fit._replace(
            sql="r.fits", gap=RAN, columns=("name", "arguments", "result"), resolve=(*resolve, *fit.resolve)
        )
        return command_count(
            rows,
            (CountedRows(fits, noun="command"), CountedRows(fits._replace(sql="NOT (r.fits)"), key="_not")),
            decision=_DECISIONS[self._of],
            first=(*FIRST, "part", "n", *self.shows),
            shown="coalesce(r.text, '(a command that was not captured)') || CASE WHEN r.fits THEN ': as expected'"
            " WHEN r.fits = FALSE THEN ': not as expected' ELSE ': unknown' END",
            order="r.place",
        )

    def asked_of(self) -> dict[str, Any]:
        """Return which commands are meant, for a report."""
        return {"of": self.of.model_dump() if isinstance(self.of, Matching) else self.of}

    def which(self, row: Row) -> str:
        """Return the deciding command in words."""
        which = "command"
        if self._pattern is not None:
            which = f"last command that matches `{self._pattern}`"
        elif self.of == "last":
            which = "only command" if row["n"] == 1 else f"last of {row['n']} commands"
        return f"the {which}, {listed(row['text'])},"

    def explain(self, outcome: Outcome) -> str:
        """Return what the command that decided shows."""
        row, pattern = outcome.row, self._pattern
        if row["kind"] is None:
            found = "No command was run" if pattern is None else f"No command matches `{pattern}`"
            return f"{found}{' for sure' if outcome.holds is None else ''}, so its {self.what} cannot be as expected."
        if row["kind"] != MATCH:
            which = f"The {self.what}" if pattern is None else f"Which command matches `{pattern}` last"
            return f"{which} is unknown: {may_be(row['kind'], row['text'])}."
        several = self._of in ("any", "all")
        of_all = f" ({row['low']} of {plural(row['n'], 'command')} are as expected)" if several else ""
        unsure = "; which commands ran is not certain" if outcome.holds is None and not self.unread(row) else ""
        return f"{self.says(outcome)}{of_all}{unsure}."

    def unread(self, row: Row) -> bool:
        """Return whether what is asked of the command that is shown is unknown."""
        raise NotImplementedError

    def says(self, outcome: Outcome) -> str:
        """Return the deciding command's value in words, without a full stop."""
        raise NotImplementedError


class CommandText(CommandResult):
    """Base of the assertions on what commands printed."""

    stream: ClassVar[Literal["stdout", "stderr"]] = "stdout"
    """The stream that is checked where the instrumentation records it separately; `output` otherwise."""
    verb: ClassVar[str] = "contain"
    """The verb of the condition."""

    main_field = "value"
    shows = ("stdout", "stderr", "output")

    value: Annotated[str, Field(min_length=1)]
    """Text, compared case-sensitively."""

    def met(self, text: str) -> bool:
        """Return whether a text is as asked."""
        return contains(text, self.value)

    def open_in(self, text: str) -> bool:
        """Return whether a text that holds more than the stream alone may still be as asked, though it is not `met`."""
        return holds_mark(text)

    def fit(self) -> Where:
        """Look at the stream, and where the streams are not separated, at the output; each distinct text is decided once."""

        def apart(text: str) -> tuple[int, ...]:
            return (0,) if self.met(text) else (1,) if holds_mark(text) else ()

        def together(text: str) -> tuple[int, ...]:
            return (0,) if self.met(text) else (1,) if self.open_in(text) else ()

        first = "r.command_no = 1"
        texts = {"asked_stream": self.stream, "asked_output": "output"}
        read = [
            f"WHEN c.{name} IN (SELECT a.value FROM {bound} AS a WHERE a.item = 0) THEN TRUE "
            f"WHEN c.{name} IN (SELECT b.value FROM {bound} AS b WHERE b.item = 1) THEN NULL WHEN c.{name} IS NOT NULL THEN FALSE"
            for bound, name in texts.items()
        ]
        resolve = (
            Resolve("asked_stream", "commands", self.stream, apart, first),
            Resolve("asked_output", "commands", "output", together, first),
        )
        return Where(f"CASE {' '.join(read)} ELSE NULL END", resolve=resolve)

    def expectation(self) -> Any:
        """Return the text, and of which commands."""
        return {f"{self.verb}s": self.value, **self.asked_of()}

    def found(self, row: Row) -> str | None:
        """Return the text that was looked at; None when it is unknown."""
        text = row[self.stream] if row[self.stream] is not None else row["output"]
        return None if text is None else str(text)

    def unread(self, row: Row) -> bool:
        """Return whether no text was captured, or whether it is as asked cannot be told."""
        text = self.found(row)
        if text is None:
            return True
        return not self.met(text) and (holds_mark(text) if row[self.stream] is not None else self.open_in(text))

    def actual(self, outcome: Outcome) -> Any:
        """Return the command that decided, and its text."""
        row = outcome.row
        text = self.found(row)
        return {"command": row["text"], self.what: None if text is None else shown(text)}

    def says(self, outcome: Outcome) -> str:
        """Return what the text of the command that decided is."""
        row = outcome.row
        text = self.found(row)
        if text is None:
            return f"The {self.what} of {self.which(row)} is unknown: it was not captured"
        notes = []
        if row[self.stream] is None:
            notes.append("standard output and standard error were not recorded separately, so both were searched")
        if row["part"]:
            notes.append("the output is that of the whole text that contains the command")
        if open_text := outcome.holds is None and self.unread(row):
            notes.append("parts of it were redacted" if holds_mark(text) else "it contains more than the output")
        met = self.met(text)
        verb = f"{self.verb}s" if met else f"{'may' if open_text else 'does not'} {self.verb}"
        noted = f"; {'; '.join(notes)}" if notes else ""
        return f"The {self.what} of {self.which(row)} {verb} {self.value.strip()!r}: {shown(text)!r}{noted}"
