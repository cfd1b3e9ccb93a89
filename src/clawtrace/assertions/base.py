"""What an assertion is: a pydantic model with its fields, a question in one of five forms, and the nouns of its sentence.

The forms (`clawtrace.assertions.forms`) decide in every world that the spans allow; no assertion handles unknown values by hand,
sees spans in another way, or imports another assertion or a store (spec: certain-and-possible.md §3).

Example of a whole assertion::

    class ToolNotInvoked(Assertion):
        '''The tool was never attempted. ...'''

        tool: Matcher
        '''Tool name, whole and case-sensitive; or `glob:`, `re:`, `literal:`.'''

        def question(self) -> Count:
            return Count("run_tools", (CountedRows(name_is(self.tool), max=0, noun="attempt", of=f" of `{self.tool}`"),))
"""

# No `from __future__ import annotations`: pydantic evaluates the class variables of a base anew for each subclass.
import re
from collections.abc import Iterable, Sequence
from datetime import date, datetime
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema, model_validator

from clawtrace.assertions.forms.form import Form, Outcome, Row
from clawtrace.assertions.matching.matchers import Matcher
from clawtrace.assertions.refused import refused
from clawtrace.assertions.world import World
from clawtrace.errors import ClawtraceError, ExitCode
from clawtrace.model.verdict import Severity
from clawtrace.support.attribute_docs import Documented

__all__ = ["Assertion", "AssertionProblem", "InvalidAssertionError", "Outcome", "Row", "Turn"]

Dimension = Literal["task", "process", "autonomy", "closeness", "efficiency", "spark"]


def _turn(value: Any) -> Any:
    if value is None or value == "last" or (isinstance(value, int) and not isinstance(value, bool) and value >= 1):
        return value
    raise refused(f"must be the number of a turn, counted from 1, or `last`, found {value!r}")


def _day(value: Any) -> Any:
    if value is None or (isinstance(value, date) and not isinstance(value, datetime)):
        return value
    try:
        if isinstance(value, str) and len(value) == len("2026-11-20"):
            return date.fromisoformat(value)
    except ValueError:
        pass
    raise refused(f"must be a date such as 2026-11-20, found {value!r}")


Turn = Annotated[
    int | Literal["last"] | None,
    BeforeValidator(_turn),
    WithJsonSchema({"anyOf": [{"type": "integer", "minimum": 1}, {"const": "last"}, {"type": "null"}]}),
]
"""A turn of the conversation."""


class AssertionProblem(NamedTuple):
    """One thing that is wrong with one assertion."""

    path: tuple[str | int, ...]
    """Keys and indexes from the assertion's mapping down; the last one need not exist there (a missing field)."""
    message: str
    """The given value and the valid ones."""
    hint: str = ""
    """A nearby valid word ("Did you mean …?"); empty when there is none."""

    def __str__(self) -> str:
        where = ".".join(str(part) for part in self.path)
        said = f"{self.message.rstrip('.')}. {self.hint}" if self.hint else self.message
        return f"`{where}` {said}" if where else said


class InvalidAssertionError(ClawtraceError):
    """An assertion is invalid; `problems` holds all that is wrong with it."""

    exit_code = ExitCode.USAGE

    def __init__(self, problems: Sequence[AssertionProblem]) -> None:
        self.problems = list(problems)
        super().__init__("; ".join(str(problem) for problem in self.problems))


class Assertion(Documented):
    """Base of every assertion; fields that each of them accepts."""

    type_name: ClassVar[str] = ""
    """The word in YAML; by default the class name in snake_case."""
    version: ClassVar[int] = 1
    """Raised when old verdicts stop being comparable."""
    main_field: ClassVar[str | None] = None
    """The field that a bare scalar fills in the short notation."""
    requires: ClassVar[tuple[str, ...]] = ()
    """The facts the question needs, as ``relation.column``; docs read it."""
    warns_when_absent: ClassVar[bool] = False
    """Whether nothing recorded at all makes the verdict ``warn`` and not ``inconclusive`` (spec: assertions.md §2)."""

    needs_trace: ClassVar[bool] = True
    """Whether a run without any span is skipped; False for what the runner or the world alone can answer."""
    is_probe: ClassVar[bool] = False
    """Whether it looks at the world, and asks no store (`clawtrace.assertions.probe`)."""
    precondition: ClassVar[bool] = False
    """Whether it can be asked before the agent starts (spec: assertions.md §1)."""
    outside: ClassVar[bool] = False
    """Whether it asks what can change while the run and its files stay: a judgement that was kept never answers it."""
    needs_permission: ClassVar[bool] = False
    """Whether it runs a user's own code in Python, which an evaluation profile must allow (spec: config.md §4)."""
    case_files: ClassVar[tuple[str, ...]] = ()
    """Fields that hold a path relative to the case file; it must exist when the case is loaded."""
    run_files: ClassVar[tuple[str, ...]] = ()
    """Fields that hold the path of a file that the answer depends on, relative to the run's workspace."""
    asks_answer: ClassVar[bool] = False
    """Whether it asks for the final answer, which the runner knows of a run without any span too."""
    needs_redaction: ClassVar[bool] = False
    """Whether the question is answered by redaction's marks, so that it cannot be asked where redaction was off."""
    unscoped: ClassVar[str] = ""
    """Why `agent` and `turn` cannot narrow the question down, as a sentence; empty where they can."""

    id: str | None = Field(default=None, min_length=1)
    """Name of the assertion in reports; by default its type and place in the file."""
    description: str = ""
    """A sentence for the reader of the report."""
    severity: Severity = "error"
    """`warn` keeps a fail, skip or inconclusive out of the exit code."""
    on_missing: Literal["skip", "inconclusive", "fail", "pass"] | None = None
    """The status when the question met no data at all: no trace, nothing of the agent or turn, or a fact that the
    instrumentation cannot record."""
    dimensions: Annotated[tuple[Dimension, ...], AfterValidator(lambda value: tuple(dict.fromkeys(value)))] = ()
    """What the answer counts towards in the run's scores: task, process, autonomy, closeness, efficiency, spark."""
    agent: Matcher | None = None
    """Ask only about what happened at or under an agent of this name, whole and case-sensitive; or `glob:`, `re:`, `literal:`."""
    turn: Turn = None
    """Ask only about what happened in this turn of the conversation, counted from 1; or `last`."""
    min_pass_rate: Annotated[float, Field(strict=True, gt=0, le=1)] = 1.0
    """Least share of the repetitions that must pass, above 0 up to 1."""
    expect: Literal["fail"] | None = None
    """`fail`: a known failure. It fails no run while it lasts; that it passes is then itself a failure."""
    reason: str | None = Field(default=None, min_length=1)
    """The known fault; required by `expect: fail`."""
    until: Annotated[date | None, BeforeValidator(_day)] = None
    """Last day of the known failure, `2026-11-20`; `expect: fail` needs it. Afterwards the assertion is an ordinary one."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "type_name" not in vars(cls):
            cls.type_name = re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower()

    @model_validator(mode="after")
    def _check_common_fields(self) -> "Assertion":
        """Refuse fields that exclude each other, or that mean nothing alone."""
        unscoped = self.unscoped or ("" if self.needs_trace else "it does not use the trace.")
        for name in ("agent", "turn"):
            if unscoped and getattr(self, name) is not None:
                raise refused(f"`{name}` cannot be used here: {unscoped}", name)
        if not self.expects_failure:
            for name in ("reason", "until"):
                if getattr(self, name) is not None:
                    raise refused(f"`{name}` belongs to `expect: fail`, which is not given", name)
            return self
        if self.reason is None:
            raise refused("`expect: fail` needs `reason`: what is known to be wrong", "reason")
        if self.until is None:
            raise refused(
                "`expect: fail` needs `until`: the day on which to look at it again, such as 2026-11-20", "until"
            )
        if "min_pass_rate" in self.model_fields_set:
            raise refused(
                "`min_pass_rate` and `expect: fail` exclude each other: a known failure has no rate", "min_pass_rate"
            )
        return self

    def written(self) -> dict[str, Any]:
        """Return the assertion in the long notation, as JSON has it and as far as it was written."""
        said = self.model_dump(mode="json", by_alias=True, exclude_unset=True, fallback=str)
        return {"type": self.type_name, **said}

    @property
    def expects_failure(self) -> bool:
        """Whether the assertion is a known failure."""
        return self.expect == "fail"

    def question(self) -> Form:
        """Return the question, in its form."""
        raise NotImplementedError

    @cached_property
    def form(self) -> Form:
        """The question, made once."""
        return self.question()

    def outcome(self, row: Row) -> Outcome:
        """Read one row of the question's answer."""
        return self.form.outcome(row)

    def reads_answer_alone(self) -> bool:
        """Return whether `outcome` looks at ``holds`` and ``absent`` only: then equal answers are read once."""
        return type(self).outcome is Assertion.outcome

    def world_rows(self, world: World) -> Sequence[Row]:
        """Return rows from the world of one run that `Form.decide` gets after those of `details`; read where it decides."""
        del world
        return ()

    def reads_world(self) -> bool:
        """Return whether `world_rows` has anything to read."""
        return type(self).world_rows is not Assertion.world_rows

    @property
    def names_log(self) -> bool:
        """Whether it names a log, which is read where a run has no trace."""
        return False

    def paths_read(self) -> Sequence[str]:
        """Return the paths of files that the answer depends on, as written; not those next to the case file."""
        return [path for name in self.run_files if (path := getattr(self, name)) is not None]

    def expectation(self) -> Any:
        """Return what was expected, as a JSON value for reports: by default the type's own fields that are set.

        It is not called `expected`: that is a field of several types.
        """
        own = set(type(self).model_fields) - self.fields_of_base()
        return self.model_dump(mode="json", include=own, exclude_none=True)

    @classmethod
    def fields_of_base(cls) -> set[str]:
        """Return the fields that say nothing of what is expected: those that every assertion has."""
        return set(Assertion.model_fields)

    def actual(self, outcome: Outcome) -> Any:
        """Return what was found, as a JSON value for reports; None when unknown."""
        return self.form.actual(outcome.row)

    def explain(self, outcome: Outcome) -> str:
        """Return one plain sentence that says what was found against what was asked.

        It is true of `outcome.holds` True, False and None alike; the engine adds what leaves an answer open.
        """
        return self.form.sentence(outcome)


def summary(cls: type[Assertion]) -> str:
    """Return the sentence that is true when an assertion of this type passes: the docstring's first line."""
    lines: Iterable[str] = (cls.__doc__ or "").strip().splitlines()
    return next(iter(lines), "")
