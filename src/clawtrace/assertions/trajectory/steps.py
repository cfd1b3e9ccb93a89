"""The words of `steps`, `forbid_between` and `require`: how a partial order of calls is written, and what it compiles to."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Any, Literal

from pydantic import (
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    GetJsonSchemaHandler,
    RootModel,
    Tag,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from clawtrace.assertions.forms.bounds import Natural, check_bounds
from clawtrace.assertions.forms.form import Row
from clawtrace.assertions.matching.arguments import ArgumentMode, ArgumentPath, Arguments, match_arguments
from clawtrace.assertions.matching.matchers import Matcher
from clawtrace.assertions.refused import refused
from clawtrace.assertions.trajectory import call_pattern
from clawtrace.support.attribute_docs import Documented
from clawtrace.support.did_you_mean import did_you_mean

__all__ = [
    "Call",
    "DescribedCall",
    "ForbidBetween",
    "OneOrMore",
    "RequireCall",
    "Step",
    "Then",
    "bounded",
    "named",
    "pattern",
    "text",
]

_FORMS = ("tool", "any_order", "optional", "repeat")


class _StepPart(Documented):
    """A step, or a rule of steps, that is written as a mapping."""


class DescribedCall(_StepPart):
    """A call of a tool with certain arguments or a certain outcome, compared as `tool_call` compares them."""

    tool: Matcher
    """Name of the tool: whole and case-sensitive, or `glob:`, `re:`, `literal:`."""
    args: Arguments | None = None
    """Expected arguments by name: literals, `re:`, `glob:`, `literal:`, comparisons such as `">=3"`, or `any`."""
    match: ArgumentMode = "subset"
    """`subset`: others are allowed; `partial`: others are, in objects inside of them as well; `exact`: no others;
    `superset`: no others, and given ones may be absent."""
    ignore: tuple[ArgumentPath, ...] = ()
    """JSONPaths left out of the comparison."""
    status: Literal["ok", "error", "blocked"] | None = None
    """The required outcome of the call."""

    @model_validator(mode="after")
    def _check(self) -> DescribedCall:
        if self.args is None and self.status is None:
            raise refused(f"describes nothing: write `{self.tool}`, or give `args` or `status`")
        if self.args is None and {"match", "ignore"} & self.model_fields_set:
            raise refused("`match` and `ignore` say how to compare `args`, which are not given")
        return self

    def __str__(self) -> str:
        args = None if self.args is None else json.dumps(self.args, ensure_ascii=False, default=str)
        return " ".join(filter(None, (str(self.tool), args, self.status)))

    def fits(self, row: Row) -> bool | None:
        """Return whether a call of the tool is as described; None where what decides was not recorded."""
        answers: list[bool | None] = []
        if self.args is not None:
            recorded = row["arguments"]
            known = recorded is not None
            answers.append(match_arguments(self.args, recorded, self.match, self.ignore) if known else None)
        if self.status is not None:
            answers.append(None if row["outcome"] is None else row["outcome"] == self.status)
        return False if False in answers else None if None in answers else True


Call = Matcher | DescribedCall
"""One expected call."""


class AnyOrder(_StepPart):
    """Parts that come in any order; a list inside keeps its own order and may be interleaved with the others."""

    any_order: tuple[Step, ...] = Field(min_length=2)
    """The parts."""


class Optional(_StepPart):
    """A part that may be left out; its tools are called nowhere else."""

    optional: Step
    """The part."""


class RepeatStep(_StepPart):
    """A part that comes several times in a row."""

    repeat: Step
    """The part."""
    min: Natural = 1
    """The least number of calls."""
    max: Annotated[Natural, Field(ge=1)] | None = None
    """The largest number of calls; its tools are then called nowhere else."""

    @model_validator(mode="after")
    def _check(self) -> RepeatStep:
        check_bounds(self.min, self.max, alone=False)  # where there are others, `min: 0` lets it be absent
        return self


class Then(RootModel[tuple["Step", ...]]):
    """Parts that come one after the other."""

    model_config = ConfigDict(frozen=True, defer_build=True)

    root: Annotated[tuple[Step, ...], Field(min_length=1)]


def _check_form(written: Any) -> Any:
    """Refuse a step of no known form, with the nearest word."""
    if isinstance(written, _StepPart | Then | Matcher | str | list | tuple):
        return written
    if not isinstance(written, dict):
        raise refused(f"a step is a tool's name, a list of steps, or a mapping with {_words()}; found {written!r}")
    forms = [key for key in written if key in _FORMS]
    if len(forms) == 1:
        return written
    found = " and ".join(f"`{key}`" for key in forms or written) or "an empty mapping"
    hint = "" if forms else next(filter(None, (did_you_mean(key, _FORMS) for key in written)), "")
    raise refused(f"a step has exactly one of {_words()}; found {found}", hint=hint)


def _words() -> str:
    return ", ".join(f"`{form}`" for form in _FORMS)


def _form(written: Any) -> str:
    """Return the tag of a step; tags are no keys, so that paths into the file stay right."""
    if isinstance(written, str | Matcher):
        return "a tool's name"
    if isinstance(written, list | tuple | Then):
        return "a list of steps"
    if isinstance(written, dict):
        return next(f"the step {form}" for form in _FORMS if form in written)
    return f"the step {next(form for form in _FORMS if hasattr(written, form))}"


Step = Annotated[
    Annotated[Matcher, Tag("a tool's name")]
    | Annotated[DescribedCall, Tag("the step tool")]
    | Annotated[Then, Tag("a list of steps")]
    | Annotated[AnyOrder, Tag("the step any_order")]
    | Annotated[Optional, Tag("the step optional")]
    | Annotated[RepeatStep, Tag("the step repeat")],
    Discriminator(_form),
    BeforeValidator(_check_form),
]
"""One step: a tool's name, or a group of steps."""


def _listed(written: Any) -> Any:
    """Turn a single entry into a list."""
    return [written] if isinstance(written, str | dict) else written


class _OneOrMore(BeforeValidator):
    """Its schema says to editors that a single entry will do."""

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        listed = handler(schema)
        return {"anyOf": [listed["items"], listed]}


OneOrMore = _OneOrMore(_listed)
"""Makes a list of a single entry."""

Names = Annotated[tuple[Matcher, ...], OneOrMore, Field(min_length=1)]


class ForbidBetween(_StepPart):
    """Tools that are not called from each call of `after` to the next call of `before`."""

    tools: Names
    """Names of the tools: whole and case-sensitive, or `glob:`, `re:`, `literal:`."""
    after: Matcher | None = None
    """The step that begins the interval; without it the interval begins with the run."""
    before: Matcher | None = None
    """The step that ends the interval; without it the interval ends with the run."""

    @model_validator(mode="after")
    def _check(self) -> ForbidBetween:
        if self.after is None and self.before is None:
            raise refused("needs `after` or `before`: a tool that is never called is `tool_not_invoked`")
        return self


class RequireCall(_StepPart):
    """A tool that is called before, or after, every call of a step."""

    tool: Matcher
    """Name of the tool: whole and case-sensitive, or `glob:`, `re:`, `literal:`."""
    before: Matcher | None = None
    """The step of which every call has one of `tool` before it."""
    after: Matcher | None = None
    """The step of which every call has one of `tool` after it."""

    @model_validator(mode="after")
    def _check(self) -> RequireCall:
        if (self.before is None) == (self.after is None):
            raise refused("takes exactly one of `before` and `after`")
        return self


def named(step: Step) -> Iterator[Call]:
    """Yield the calls that a step expects, in order."""
    if isinstance(step, Call):
        yield step
        return
    for part in _parts(step):
        yield from named(part)


def _parts(step: Any) -> Sequence[Step]:
    if isinstance(step, Then):
        return step.root
    if isinstance(step, AnyOrder):
        return step.any_order
    return (step.repeat if isinstance(step, RepeatStep) else step.optional,)


def bounded(step: Step) -> Iterator[Call]:
    """Yield the calls that come only where the steps say: those of `optional`, and of `repeat` with `max`."""
    if isinstance(step, Call):
        return
    limits = isinstance(step, Optional) or (isinstance(step, RepeatStep) and step.max is not None)
    for part in _parts(step):
        yield from (named if limits else bounded)(part)


def pattern(step: Step, item: Callable[[Call], int]) -> call_pattern.Term:
    """Return a step as a term; `item` numbers the calls."""
    if isinstance(step, Call):
        return item(step)
    parts = [pattern(part, item) for part in _parts(step)]
    if isinstance(step, AnyOrder):
        return call_pattern.any_order(parts)
    if isinstance(step, Then):
        return call_pattern.sequence(parts)
    least, most = (step.min, step.max) if isinstance(step, RepeatStep) else (0, 1)
    return call_pattern.repeated(parts[0], least, most)


def text(step: Step) -> str:
    """Return a step in words for messages: ``a → {b, c} in any order → d?``."""
    if isinstance(step, Call):
        return f"`{step}`"
    if isinstance(step, Then):
        return " → ".join(text(part) for part in step.root)
    if isinstance(step, AnyOrder):
        inner = ", ".join(f"({text(part)})" if isinstance(part, Then) else text(part) for part in step.any_order)
        return f"{{{inner}}} in any order"
    (part,) = _parts(step)
    inside = f"({text(part)})" if isinstance(part, Then) else text(part)
    if isinstance(step, Optional):
        return f"{inside} or not"
    if step.max is None:
        return f"{inside} {step.min} or more times"
    return f"{inside} {step.min} times" if step.min == step.max else f"{inside} {step.min} to {step.max} times"
