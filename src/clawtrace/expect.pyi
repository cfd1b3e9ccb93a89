# Written by docs/generate.py; change the code and run `make docs`.
"""Every assertion type as a function, with the types of its fields."""

from collections.abc import Iterator, Mapping
from datetime import date
from typing import Literal, NotRequired, Protocol, TypeAlias, TypedDict, TypeVar, Unpack

from clawtrace._capture.constructors import Spans as Spans
from clawtrace._capture.constructors import spans as spans
from clawtrace.assertions.base import Assertion

_T = TypeVar("_T", covariant=True)

class _List(Protocol[_T]):
    """A list or a tuple; a text is none."""

    def __contains__(self, value: object, /) -> bool: ...
    def __getitem__(self, index: int, /) -> _T: ...
    def __iter__(self) -> Iterator[_T]: ...
    def __len__(self) -> int: ...

class _Consistency(TypedDict):
    runs: NotRequired[int]
    min_passes: NotRequired[int | None]

class _Matching(TypedDict):
    matching: str
    """Regular expression, found anywhere in the text of a command or of a simple command in it."""

class _MinMax(TypedDict):
    min: NotRequired[int]
    max: NotRequired[int]

_SpanCondition = TypedDict(
    "_SpanCondition",
    {
        "attributes": NotRequired[Mapping[str, object] | None],
        "resource_attributes": NotRequired[Mapping[str, object] | None],
        "scope_attributes": NotRequired[Mapping[str, object] | None],
        "event_attributes": NotRequired[Mapping[str, object] | None],
        "event": NotRequired[object],
        "link": NotRequired[Mapping[str, object] | None],
        "child": NotRequired[_SpanCondition | None],
        "descendant": NotRequired[_SpanCondition | None],
        "parent": NotRequired[_SpanCondition | None],
        "ancestor": NotRequired[_SpanCondition | None],
        "sibling": NotRequired[_SpanCondition | None],
        "before": NotRequired[_SpanCondition | None],
        "after": NotRequired[_SpanCondition | None],
        "overlaps": NotRequired[_SpanCondition | None],
        "count": NotRequired[int | _MinMax | None],
        "not": NotRequired[_SpanCondition | None],
        "and": NotRequired[_List[_SpanCondition] | None],
        "or": NotRequired[_List[_SpanCondition] | None],
        "run_rule": NotRequired[str | _List[str] | None],
        "trace_id": NotRequired[str | _List[str] | None],
        "span_id": NotRequired[str | _List[str] | None],
        "parent_span_id": NotRequired[str | _List[str] | None],
        "root_span_id": NotRequired[str | _List[str] | None],
        "tree_enter": NotRequired[float | str | _MinMax2],
        "tree_leave": NotRequired[float | str | _MinMax2],
        "depth": NotRequired[float | str | _MinMax2],
        "name": NotRequired[str | _List[str] | None],
        "start_ns": NotRequired[float | str | _MinMax2],
        "end_ns": NotRequired[float | str | _MinMax2],
        "duration_ns": NotRequired[float | str | _MinMax2],
        "ended": NotRequired[bool],
        "turn": NotRequired[float | str | _MinMax2],
        "kind": NotRequired[str | _List[str] | None],
        "dialect": NotRequired[str | _List[str] | None],
        "rule": NotRequired[str | _List[str] | None],
        "operation": NotRequired[str | _List[str] | None],
        "provider": NotRequired[str | _List[str] | None],
        "request_model": NotRequired[str | _List[str] | None],
        "response_model": NotRequired[str | _List[str] | None],
        "input_tokens": NotRequired[float | str | _MinMax2],
        "output_tokens": NotRequired[float | str | _MinMax2],
        "cache_read_tokens": NotRequired[float | str | _MinMax2],
        "cache_write_tokens": NotRequired[float | str | _MinMax2],
        "reasoning_tokens": NotRequired[float | str | _MinMax2],
        "cost_usd": NotRequired[float | str | _MinMax2],
        "tool_name": NotRequired[str | _List[str] | None],
        "tool_call_id": NotRequired[str | _List[str] | None],
        "agent_name": NotRequired[str | _List[str] | None],
        "agent_id": NotRequired[str | _List[str] | None],
        "session_id": NotRequired[str | _List[str] | None],
        "error": NotRequired[str | _List[str] | None],
        "error_type": NotRequired[str | _List[str] | None],
        "service": NotRequired[str | _List[str] | None],
        "scope": NotRequired[str | _List[str] | None],
        "scope_version": NotRequired[str | _List[str] | None],
        "span_kind": NotRequired[str | _List[str] | None],
        "status": NotRequired[str | _List[str] | None],
        "source": NotRequired[str | _List[str] | None],
        "counted_as": NotRequired[str | _List[str] | None],
        "counted_in": NotRequired[str | _List[str] | None],
        "counted_by": NotRequired[str | _List[str] | None],
    },
)

class _MinMax2(TypedDict):
    min: NotRequired[float]
    max: NotRequired[float]

class _DescribedCall(TypedDict):
    tool: str
    """Name of the tool: whole and case-sensitive, or `glob:`, `re:`, `literal:`."""
    args: NotRequired[Mapping[str, object] | None]
    """Expected arguments by name: literals, `re:`, `glob:`, `literal:`, comparisons such as `">=3"`, or `any`."""
    match: NotRequired[Literal["subset", "partial", "exact", "superset"]]
    """`subset`: others are allowed; `partial`: others are, in objects inside of them as well; `exact`: no others;
    `superset`: no others, and given ones may be absent.
    """
    ignore: NotRequired[_List[str]]
    """JSONPaths left out of the comparison."""
    status: NotRequired[Literal["ok", "error", "blocked"] | None]
    """The required outcome of the call."""

_Then: TypeAlias = _List[str | _DescribedCall | _Then | _AnyOrder | _Optional | _RepeatStep]

class _AnyOrder(TypedDict):
    any_order: _List[str | _DescribedCall | _Then | _AnyOrder | _Optional | _RepeatStep]
    """The parts."""

class _Optional(TypedDict):
    optional: str | _DescribedCall | _Then | _AnyOrder | _Optional | _RepeatStep
    """The part."""

class _RepeatStep(TypedDict):
    repeat: str | _DescribedCall | _Then | _AnyOrder | _Optional | _RepeatStep
    """The part."""
    min: NotRequired[int]
    """The least number of calls."""
    max: NotRequired[int | None]
    """The largest number of calls; its tools are then called nowhere else."""

class _ForbidBetween(TypedDict):
    tools: str | _List[str]
    """Names of the tools: whole and case-sensitive, or `glob:`, `re:`, `literal:`."""
    after: NotRequired[str | None]
    """The step that begins the interval; without it the interval begins with the run."""
    before: NotRequired[str | None]
    """The step that ends the interval; without it the interval ends with the run."""

class _RequireCall(TypedDict):
    tool: str
    """Name of the tool: whole and case-sensitive, or `glob:`, `re:`, `literal:`."""
    before: NotRequired[str | None]
    """The step of which every call has one of `tool` before it."""
    after: NotRequired[str | None]
    """The step of which every call has one of `tool` after it."""

class _ScoreBound(TypedDict):
    metric: Literal["recall", "precision", "f1"]
    """`recall`: the share of what is expected that was called; `precision`: the share of the calls that is expected; `f1`: the harmonic
    mean of both.
    """
    min: float
    """The smallest score that is right."""

class _AnyFields(TypedDict):
    id: NotRequired[str | None]
    """Name of the assertion in reports; by default its type and place in the file."""
    description: NotRequired[str]
    """A sentence for the reader of the report."""
    severity: NotRequired[Literal["error", "warn"]]
    """`warn` keeps a fail, skip or inconclusive out of the exit code."""
    on_missing: NotRequired[Literal["skip", "inconclusive", "fail", "pass"] | None]
    """The status when the question met no data at all: no trace, nothing of the agent or turn, or a fact that the
    instrumentation cannot record.
    """
    dimensions: NotRequired[_List[Literal["task", "process", "autonomy", "closeness", "efficiency", "spark"]]]
    """What the answer counts towards in the run's scores: task, process, autonomy, closeness, efficiency, spark."""
    agent: NotRequired[str | None]
    """Ask only about what happened at or under an agent of this name, whole and case-sensitive; or `glob:`, `re:`, `literal:`."""
    turn: NotRequired[int | Literal["last"] | None]
    """Ask only about what happened in this turn of the conversation, counted from 1; or `last`."""
    min_pass_rate: NotRequired[float]
    """Least share of the repetitions that must pass, above 0 up to 1."""
    reason: NotRequired[str | None]
    """The known fault; required by `expect: fail`."""
    until: NotRequired[date | str | None]
    """Last day of the known failure, `2026-11-20`; `expect: fail` needs it. Afterwards the assertion is an ordinary one."""

class _Fields(_AnyFields):
    expect: NotRequired[Literal["fail"] | None]
    """`fail`: a known failure. It fails no run while it lasts; that it passes is then itself a failure."""

def agent_exit_code(
    value: int = ...,
    **common: Unpack[_Fields],
) -> Assertion:
    """The agent's process ended with the exit code `value`.

    An agent that crashed may have answered before. It is the code of the agent's own process, not of a command that
    the agent ran. A process that was killed by a signal has none, or the one that a shell makes of it (137); that
    of a recording is unknown.

    Args:
        value: The exit code that is right.
    """

def agent_identity_consistent(
    output_path: str,
    *,
    soul_path: str,
    judge: str | None = ...,
    scale: _List[object] = ...,
    pass_threshold: float = ...,
    consistency: bool | _Consistency = ...,
    **common: Unpack[_Fields],
) -> Assertion:
    """The file that the run left is consistent with the persona in SOUL.md, in a judge's eyes.

    Agents that run for long drift from who they are meant to be. The judge is one of the evaluation profile's; it
    is given the persona and, quoted as data, the agent's text. A file that does not exist fails without asking it.

    Args:
        output_path: The agent's file, relative to the run's workspace.
        soul_path: The persona, relative to the case file.
        judge: Id of the judge in the evaluation profile; by default its first.
        scale: Worst and best score.
        pass_threshold: Least score to pass, on the scale.
        consistency: `true`: three answers must all reach the threshold; or `{runs: 5, min_passes: 4}`.
    """

def artifact_absent_words(
    path: str,
    *,
    timeout: float = ...,
    updated_after: str | None = ...,
    allow_stale: bool = ...,
    words: _List[str] | None = ...,
    source: str | None = ...,
    key: str | None = ...,
    **common: Unpack[_Fields],
) -> Assertion:
    """None of the words or phrases is in the file that the run left.

    A mail that promises "guaranteed" results breaks the law in some places. Words are compared whole and without
    regard to case; the parts of a phrase may have any white space between them; characters that are not seen (soft
    hyphens) do not part a word. A file that is missing or empty fails, and so does one that was there before the
    run and was not touched unless `allow_stale` accepts it: nothing was written that could be free of anything. In
    a file that cannot be read as text whole, a word that is not found may still be there.

    Args:
        path: The file, relative to the run's workspace.
        timeout: The longest wait for the file after the agent has ended, in seconds; changes of files wake the check.
        updated_after: ISO 8601 time after which the file must have been changed; without an offset it is local time.
        allow_stale: Whether a file that was there before the run and was not touched is accepted.
        words: Words and phrases that must not be there.
        source: YAML file with further words, relative to the case file.
        key: Key of the list in `source`; dots lead into nested mappings.
    """

def artifact_contains(
    path: str,
    *,
    timeout: float = ...,
    updated_after: str | None = ...,
    allow_stale: bool = ...,
    sections: _List[str] | None = ...,
    fields: _List[str] | None = ...,
    **common: Unpack[_Fields],
) -> Assertion:
    """The file that the run left has every section and every field that it should have.

    A draft without its call to action is not done. `sections` are headings of Markdown, compared whole and without
    regard to case; what looks like one inside of a code fence is none. `fields` are keys of a YAML or JSON
    document, or of the front matter of a Markdown file; a dotted path leads into nested mappings. Given both, both
    must hold.

    Args:
        path: The file, relative to the run's workspace.
        timeout: The longest wait for the file after the agent has ended, in seconds; changes of files wake the check.
        updated_after: ISO 8601 time after which the file must have been changed; without an offset it is local time.
        allow_stale: Whether a file that was there before the run and was not touched is accepted.
        sections: Headings that the file must have.
        fields: Keys that the document or its front matter must have; dots lead into nested mappings.
    """

def artifact_exists(
    path: str,
    *,
    timeout: float = ...,
    updated_after: str | None = ...,
    allow_stale: bool = ...,
    **common: Unpack[_Fields],
) -> Assertion:
    """The run left the file `path`, created or changed by it.

    An agent that says "done" may have written nothing. A file that was there before the run and was not touched is
    stale and no artifact of the run, unless `allow_stale` accepts it; `updated_after` asks for a time instead. Of a
    recording there is no workspace to look at: the answer is unknown then.

    Args:
        path: The file, relative to the run's workspace.
        timeout: The longest wait for the file after the agent has ended, in seconds; changes of files wake the check.
        updated_after: ISO 8601 time after which the file must have been changed; without an offset it is local time.
        allow_stale: Whether a file that was there before the run and was not touched is accepted.
    """

def artifact_matches_golden(
    path: str,
    *,
    golden: str,
    timeout: float = ...,
    updated_after: str | None = ...,
    allow_stale: bool = ...,
    rouge_threshold: float = ...,
    **common: Unpack[_Fields],
) -> Assertion:
    """The file that the run left is as similar to the golden file as asked.

    It finds the draft that lost half of its points. The measure is ROUGE-L F1: the longest common subsequence of
    words, over the number of words of both, without regard to case; 1 is the same text, and below `rouge_threshold`
    it fails. So does a file that was there before the run and was not touched, however similar it is, unless
    `allow_stale` accepts it.

    Args:
        path: The file, relative to the run's workspace.
        golden: The reference file, relative to the case file.
        timeout: The longest wait for the file after the agent has ended, in seconds; changes of files wake the check.
        updated_after: ISO 8601 time after which the file must have been changed; without an offset it is local time.
        allow_stale: Whether a file that was there before the run and was not touched is accepted.
        rouge_threshold: Least ROUGE-L F1, above 0 up to 1.
    """

def conversation_end(
    status: Literal["goal_reached", "gave_up", "max_turns", "agent_failed"],
    **common: Unpack[_Fields],
) -> Assertion:
    """The conversation with the simulated user ended as `status`.

    It is the word of the model that plays the user (`input.user` of the case): `goal_reached`, `gave_up` where it
    took the goal for out of reach, `max_turns` where it would have said more; or `agent_failed`, where a turn did
    not end well. Where the model failed, the run is an error. Without a simulated user nothing is known.

    Args:
        status: The end that is right.
    """

def decision_routed_to(
    *,
    state_path: str,
    expected_agent: str,
    allow_stale: bool = ...,
    **common: Unpack[_Fields],
) -> Assertion:
    """The router's last decision is `expected_agent`.

    A request that went to the wrong agent may still be answered, badly. The state file is a YAML or JSON mapping or
    a list of them, of which the last decides; the agent is `selected_agent`, else `agent`, else `to`, compared
    whole. A file that was there before the run and was not touched holds the decisions of an earlier one, and fails
    unless `allow_stale` accepts it.

    Args:
        state_path: The router's state file, relative to the run's workspace.
        expected_agent: Agent id or path, whole.
        allow_stale: Whether a file that was there before the run and was not touched is accepted.
    """

def delegation_occurred(
    to_agent: str,
    *,
    log_path: str | None = ...,
    run_id: str | None = ...,
    **common: Unpack[_Fields],
) -> Assertion:
    """Work was delegated to the agent: it was at work because another agent handed on to it.

    An orchestrator that answers itself looks like one that delegated. Handoffs, agents as tools, spawned sessions
    and nested agents all delegate; an agent that was only started as the root did not get its work from another.
    Where the instrumentation cannot record agents, or a delegated one has no name, an absence is unknown.

    Args:
        to_agent: Name or id of the agent, whole and case-sensitive; or `glob:`, `re:`, `literal:`.
        log_path: Log, or a glob of transcripts, that is read when the run has no trace; relative to the run's
            workspace.
        run_id: Ask only about the run of exactly this id, as the log calls it; by default the current run.
    """

def delegation_path(
    expected: _List[str],
    *,
    mode: Literal["ordered", "path"] = ...,
    routing_path: str | None = ...,
    routing_decisions: str | None = ...,
    state_path: str | None = ...,
    **common: Unpack[_Fields],
) -> Assertion:
    """The agents were at work in the expected order, or one delegated to the next.

    A pipeline that skips its reviewer looks the same from outside. `ordered` finds the names in this order among
    the agent activations by start, others may come between; `path` wants a chain in which each delegated to the
    next, beginning at a root: an agent that no other one started. Handoffs, agents as tools and spawned sessions
    all delegate. When the telemetry shows no agent at all the assertion warns; an agent without a name may be the
    missing one. Where it shows none but a root, the decisions in a router state file are used, if one is named: a
    YAML or JSON mapping or a list of them, the agent of each being `selected_agent`, else `agent`, else `to`; the
    recorded root comes before them.

    Args:
        expected: Agent names in order, whole and case-sensitive; or `glob:`, `re:`, `literal:`.
        mode: `ordered`: one after the other; `path`: each delegated to the next, the first is a root.
        routing_path: Router state file to fall back on, relative to the run's workspace; one that the run did not touch
            is not used.
        routing_decisions: The same; of several files the first that holds a decision of the run is used.
        state_path: The same.
    """

def env_present(
    vars: _List[str],
    **common: Unpack[_Fields],
) -> Assertion:
    """Every variable of `vars` is set and not empty.

    A run without its key fails after it was started, and looks like the agent's mistake. It is the environment of
    the clawtrace process; values are never shown.

    Args:
        vars: Names of variables.
    """

def error_contains(
    value: str,
    *,
    of: Literal["last", "any", "all"] | _Matching = ...,
    **common: Unpack[_Fields],
) -> Assertion:
    """The standard error of the last command, or of the commands that `of` names, contains the text.

    A message on standard error says what went wrong, or warns though all went well. Where the instrumentation does
    not tell standard error and output apart, all that was printed is looked at, and the message says so. Where
    neither was captured nothing is known. No command at all fails.

    Args:
        value: Text, compared case-sensitively.
        of: Which commands: the `last` one, at least one (`any`), each one (`all`), or the last that an expression finds
            (`{matching: "^pytest"}`).
    """

def exit_code(
    value: int,
    *,
    of: Literal["last", "any", "all"] | _Matching = ...,
    **common: Unpack[_Fields],
) -> Assertion:
    """The last command, or the commands that `of` names, ended with this exit code.

    It is the exit code of a command that the agent ran, not of the agent (`agent_exit_code`). The last command may
    hide an earlier failure (`ls` after a build that broke): `of: all` looks at each one, `of: {matching: "^make"}`
    at the last that matches. In a compound command the code of `{matching}` is the simple command's own where the
    shell's code implies it, and unknown otherwise (`make; ls`). Where no exit code was recorded nothing is known.
    No command at all fails.

    Args:
        value: The exit code; 0 is success.
        of: Which commands: the `last` one, at least one (`any`), each one (`all`), or the last that an expression finds
            (`{matching: "^pytest"}`).
    """

def file_absent(
    path: str,
    **common: Unpack[_Fields],
) -> Assertion:
    """Nothing is at `path`: no file, no folder, no link.

    As a precondition it keeps a leftover of an earlier run from being taken for the work of this one; after the run
    it verifies that the agent cleaned up.

    Args:
        path: What must not exist, relative to the run's workspace; one path, not a pattern.
    """

def file_contains(
    path: str,
    *,
    text: str,
    **common: Unpack[_Fields],
) -> Assertion:
    """The file `path` contains `text`.

    A file that exists may still be empty, or hold an error message. The text is looked for as it is, case-
    sensitively.

    Args:
        path: The file, relative to the run's workspace.
        text: The text that it must contain.
    """

def file_exists(
    path: str,
    **common: Unpack[_Fields],
) -> Assertion:
    """The file `path` exists after the run.

    It does not ask who wrote it: a file of the scaffold counts. `artifact_exists` asks for the run's own work.

    Args:
        path: The file, relative to the run's workspace.
    """

def file_present(
    path: str,
    **common: Unpack[_Fields],
) -> Assertion:
    """The file `path` is there.

    As a precondition it keeps a run from being paid for that lacks what the agent needs: a skill, an input, a key
    file. It is asked of the prepared workspace, after `scaffold` and `setup`.

    Args:
        path: The file, relative to the run's workspace.
    """

def final_response(
    contains: str | _List[str] | None = ...,
    *,
    not_contains: str | _List[str] | None = ...,
    matches: str | None = ...,
    not_matches: str | None = ...,
    equals: str | None = ...,
    json_schema: Mapping[str, object] | None = ...,
    similar_to: str | None = ...,
    threshold: float = ...,
    max_length: int | None = ...,
    **common: Unpack[_Fields],
) -> Assertion:
    """The run's final answer is as asked, in every respect that is given.

    The answer comes from the spans' messages, else from what the runner read from the agent's output; of several
    turns it is the last one's. A run without any span is judged by what its runner read, once it is over. An agent
    whose work ended in a failure gave no answer, which meets no condition; where an answer is only not recorded,
    nothing is known. A secret that was redacted on arrival could have been any text: what is then neither sure nor
    impossible stays open, also that a text is absent.

    Args:
        contains: Text, or texts of which each one, that the answer contains, case-sensitively.
        not_contains: Text, or texts of which none, that the answer contains, case-sensitively.
        matches: Regular expression that is found somewhere in the answer.
        not_matches: Regular expression that is found nowhere in the answer.
        equals: The whole answer, white space around it left out.
        json_schema: JSON Schema; the whole answer is one JSON document that it describes. Patterns without look-around.
        similar_to: Text to which the answer is similar: ROUGE-L F1 over words, without regard to case.
        threshold: Least ROUGE-L F1 for `similar_to`, above 0 up to 1.
        max_length: Most characters.
    """

def final_response_present(
    **common: Unpack[_Fields],
) -> Assertion:
    """The run ended well, with a final answer that is not empty.

    An agent that ends without a word has not finished. The answer comes from the spans' messages, else from the
    runner's reading of the agent's standard output; standard error is no answer, and neither is JSON without
    content, such as an empty list of payloads. A run without any span is judged by what its runner read, once it is
    over. A run that failed, timed out or lost its provider gave no answer, regardless of what it printed.
    """

def gateway_healthy(
    *,
    timeout: float = ...,
    **common: Unpack[_Fields],
) -> Assertion:
    """The agent gateway answers 200 on its health endpoint.

    As a precondition it keeps a suite from running against a gateway that is down. The address is `gateway.url` of
    `clawtrace.yaml`, by default http://127.0.0.1:18789; `/health` is asked. A gateway that does not answer is not
    healthy.

    Args:
        timeout: The longest wait for the answer, in seconds.
    """

def gateway_response(
    *,
    endpoint: str,
    expected_status: int,
    method: Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"] = ...,
    headers: Mapping[str, str] = ...,
    expected_body: str | None = ...,
    timeout: float = ...,
    **common: Unpack[_Fields],
) -> Assertion:
    """The endpoint answers a request with `expected_status`.

    A service that the agent deployed, or the gateway that it works for, must still answer after the run. Redirects
    are not followed, so that 302 can be expected. An endpoint that refuses the connection or does not answer in
    time is an error, not a failure: nothing was judged.

    Args:
        endpoint: Full URL.
        expected_status: HTTP status code that is right.
        method: HTTP method.
        headers: Headers of the request.
        expected_body: Text that the body must contain.
        timeout: The longest wait for the answer, in seconds.
    """

def llm_call_count(
    count: int | _MinMax | None = ...,
    *,
    min: int | None = ...,
    max: int | None = ...,
    include_failed: bool = ...,
    **common: Unpack[_Fields],
) -> Assertion:
    """The number of answered model calls is as asked: exactly `count`, or within the bounds.

    Too many calls are a loop that costs money, too few an agent that did not work. A logical call counts once,
    however many spans record it; the evidence says how spans became calls.

    Args:
        count: The exact number of calls, or `{min, max}`.
        min: Smallest number of calls.
        max: Largest number of calls.
        include_failed: Whether attempts that got no answer count too.
    """

def llm_judge(
    rubric: str,
    *,
    judge: str | None = ...,
    scale: _List[object] = ...,
    pass_threshold: float = ...,
    consistency: bool | _Consistency = ...,
    target: Literal["path", "final_response", "conversation"] = ...,
    path: str | None = ...,
    section: str | None = ...,
    **common: Unpack[_Fields],
) -> Assertion:
    """A judge's score of what the run left reaches the threshold.

    Use it for what no rule can check, such as whether a text is persuasive. The judge is one of the evaluation
    profile's; it states its evidence, then a score. What it scores is quoted to it as data. A file or section that
    does not exist fails without asking it. `consistency` asks several times: a judge that is not sure of itself
    does not pass.

    Args:
        rubric: What the judge is asked, and what scores mean.
        judge: Id of the judge in the evaluation profile; by default its first.
        scale: Worst and best score.
        pass_threshold: Least score to pass, on the scale.
        consistency: `true`: three answers must all reach the threshold; or `{runs: 5, min_passes: 4}`.
        target: What is judged: the file `path`, the final answer, or everything that was said.
        path: The file, relative to the run's workspace.
        section: Judge only the part below this heading of the file.
    """

def log_entry(
    pattern: str,
    *,
    path: str,
    absent: bool = ...,
    **common: Unpack[_Fields],
) -> Assertion:
    """The log file has a line that matches `pattern`; with `absent`, it has none.

    It is for what only a log records, such as an approval. The pattern is a regular expression that is searched in
    each line; an invalid one is refused when the file is loaded. A file that does not exist fails either way: it is
    evidence of nothing. Where no line matches and one could not be read whole (it is no text, or longer than a
    million characters), the answer is unknown.

    Args:
        pattern: Regular expression.
        path: The file, relative to the run's workspace.
        absent: True: no line may match.
    """

def model_used(
    expected: str | None = ...,
    *,
    not_expected: str | None = ...,
    only: _List[str] | None = ...,
    answered_by: bool = ...,
    **common: Unpack[_Fields],
) -> Assertion:
    """The run's model calls used the expected model, none that is forbidden, and only those listed, as far as each is asked.

    A silent fallback to another model changes cost, quality and where data go. The requested and the responding
    model both count: for `expected` one of them in an answered call is enough, for `not_expected` and `only`
    neither may offend in any call. Where no responding model is recorded the requested one counts alone, although a
    fallback would not show; `answered_by: true` asks for the responding model, and then leaves such calls open. A
    requested `gpt-4o` does not decide whether one of its versions (`gpt-4o-2024-08-06`) answered, and does not
    offend where `only` lists one; nor does the name of a profile, an endpoint or a router (`openrouter/auto`).
    Without any recorded model call `not_expected` and `only` are undecided. Names: see "Models" in the guide; a
    text with a digit names a version (`gpt-4o` is not `gpt-4o-mini`), one without a family (`sonnet`).

    Args:
        expected: Model that at least one answered call used; or `glob:`, `re:`, `literal:`.
        not_expected: Model that no call may use, matched widely: `gpt-4` forbids `gpt-4-turbo` too, not `gpt-4o`.
        only: Models of which every call used one.
        answered_by: Whether only the responding model counts; where it is not recorded, which model answered is
            unknown.
    """

def no_loops(
    max_repeats: int = ...,
    **common: Unpack[_Fields],
) -> Assertion:
    """No tool is called more than `max_repeats` times in a row with the same arguments.

    An agent that repeats itself burns money without getting anywhere. In a row means without another call in
    between, among all calls of the run by start or among those of one agent that the spans show. Executed, failed
    and blocked calls count. Arguments are compared as JSON values; where they were not captured, cut off or masked,
    calls of one tool may be the same. A call that nothing records may part a row as well as lengthen it.

    Args:
        max_repeats: Most calls in a row of one tool with the same arguments; 1 allows no repetition.
    """

def no_secret_leak(
    allow: _List[str] = ...,
    *,
    files: bool = ...,
    **common: Unpack[_Fields],
) -> Assertion:
    """No secret is in the arguments, results or errors of tool calls, in what the agent answered, or in the files it wrote.

    Secrets are replaced on arrival by `[REDACTED:kind:hash8]`; these marks are what is looked for. So it sees the
    kinds of secrets and the environment values that redaction knows, and none where redaction was switched off or
    content was recorded elsewhere first. A mark that a text held when it arrived counts as well: a recording that
    was redacted before is judged like one that is redacted now. Files that the run created or changed in its
    workspace are read for the same secrets, compressed ones as they are; a run without a workspace here, such as a
    recording, has none to look at. Of a workspace without a snapshot from before the run it is unknown which files
    those are. The verdict says which kinds the project excluded from redaction (`redaction: kinds_off`). Texts that
    were not captured leave the question open.

    Args:
        allow: Kinds of secrets that may be there, whole as in the mark, or `glob:`, `re:`, `literal:`.
        files: Whether the files that the run created or changed are looked at.
    """

def no_span_errors(
    *,
    ignore: _List[str] = ...,
    unrecovered: bool = ...,
    **common: Unpack[_Fields],
) -> Assertion:
    """Nothing failed in the agent's work.

    An error that an agent swallows leaves no trace in its answer. Each cause counts once, however far it travels up
    to parent spans; infrastructure spans such as HTTP clients do not count. With `unrecovered: true` an error is
    tolerated when a later call of the same tool or model succeeded. A span around an ignored error that failed
    right after it, with other words, may have failed for another reason: that leaves the question open.

    Args:
        ignore: Names of spans, tools or models (bare) whose errors do not count, whole, or `glob:`, `re:`, `literal:`.
        unrecovered: Whether only errors count after which the same tool or model did not succeed.
    """

def not_ran(
    pattern: str,
    **common: Unpack[_Fields],
) -> Assertion:
    r"""No command was run whose text, or a simple command in it, matches the regular expression.

    The pattern is searched in the whole text of each call of a shell-like tool and in each simple command in it. So
    `rm -rf` is also found in `echo "rm -rf"`; `^(\S*/)?rm\b` asks for the program and finds it in `cd x && sudo
    /bin/rm y` too. A part that a shell may have skipped (`false && rm x`) counts. A command that a guard blocked
    did not run and is no match; `tool_not_invoked` and `tool_call` with `status: blocked` ask for attempts. A text
    that was not captured, redacted, or not split could hide a match: then nothing is known. Nor is it where a tool
    that is not known as a shell was given a `command` that matches. Another run without any call of a shell passes.

    Args:
        pattern: Regular expression, found anywhere in the text of a command or of a simple command in it; `^` asks for
            its program.
    """

def openclaw_workspace_file_present(
    relative_path: str,
    *,
    contains: str | None = ...,
    contains_all: _List[str] | None = ...,
    contains_any: _List[str] | None = ...,
    **common: Unpack[_Fields],
) -> Assertion:
    """The run created or changed the file `relative_path` of its workspace, with the expected texts.

    The path is compared exactly with the difference between the snapshots before and after, so that neither a file
    of the template nor one of a like name counts. `contains` is one text as it is; `contains_all` and
    `contains_any` ignore case and accents. It works with every runner that has a workspace.

    Args:
        relative_path: The file, relative to the workspace, without `..`.
        contains: Text that the file contains as it is.
        contains_all: Texts of which each is contained, without regard to case and accents.
        contains_any: Texts of which at least one is contained, without regard to case and accents.
    """

def output_artifact_present(
    artifact_type: str | None = ...,
    **common: Unpack[_Fields],
) -> Assertion:
    """The run created or changed a file in its workspace, of the expected type.

    It asks for any work at all, where the name of the file is the agent's choice. What the run touched is the
    difference between the snapshots of its workspace before and after; where there are none, as of a recording, the
    answer is unknown.

    Args:
        artifact_type: A media type (`text/markdown`, `image/*`) or a suffix (`md`, `.tar.gz`); by default any file.
    """

def output_contains(
    value: str,
    *,
    of: Literal["last", "any", "all"] | _Matching = ...,
    **common: Unpack[_Fields],
) -> Assertion:
    """The output of the last command, or of the commands that `of` names, contains the text.

    It is what a command of the agent printed, not the agent's answer (`final_response`). Standard output is looked
    at; where the instrumentation does not tell it apart from standard error and from the tool's own words, all of
    it is, and the message says so. Where no output was captured nothing is known. No command at all fails.

    Args:
        value: Text, compared case-sensitively.
        of: Which commands: the `last` one, at least one (`any`), each one (`all`), or the last that an expression finds
            (`{matching: "^pytest"}`).
    """

def output_equals(
    value: str,
    *,
    of: Literal["last", "any", "all"] | _Matching = ...,
    **common: Unpack[_Fields],
) -> Assertion:
    """The output of the last command, or of the commands that `of` names, is exactly the text.

    White space around both is left out. Standard output is looked at. Where the instrumentation does not tell it
    apart, the tool's own words may stand around it ("Process exited with code 0"): text that equals all of it
    passes, text that is only a part of it leaves the question open. Where no output was captured nothing is known.
    No command at all fails.

    Args:
        value: The whole text; empty for a command that prints nothing.
        of: Which commands: the `last` one, at least one (`any`), each one (`all`), or the last that an expression finds
            (`{matching: "^pytest"}`).
    """

def path_exists(
    path: str,
    **common: Unpack[_Fields],
) -> Assertion:
    """A file or folder is at `path` after the run.

    Some work shows in a folder, regardless of the names of its files.

    Args:
        path: The file or folder, relative to the run's workspace.
    """

def per_span_budget(
    max_tokens: int,
    *,
    span_type: Literal["llm", "tool", "agent", "subagent", "chain", "retrieval", "embedding", "guardrail", "evaluator", "infra", "other"] = ...,
    span_name: str | None = ...,
    **common: Unpack[_Fields],
) -> Assertion:
    """No span of the type, with `span_name` in its name, used more than `max_tokens` tokens.

    One overlong prompt hides in a total. A model call counts input and output once, however many spans report it;
    any other span counts the usage recorded on it or the calls under it, whichever is more. The spans over the
    budget are the evidence, the largest first. A span whose tokens are unknown leaves the question open, and so do
    a run without any such span and model calls that are not recorded.

    Args:
        max_tokens: Most tokens of one span, input and output together.
        span_type: The kind of the spans; `subagent` is `agent`.
        span_name: Text that the span's name contains, case-sensitively, or `glob:`, `re:`, `literal:` for the whole
            name; by default every name.
    """

def python_hook(
    path: str | None = ...,
    *,
    callable_name: str,
    import_path: str | None = ...,
    timeout: float = ...,
    **common: Unpack[_Fields],
) -> Assertion:
    """The Python function answers true.

    Some questions need code: a parser, a database, arithmetic over several files. The function takes nothing,
    `run`, or `run` and `context`, and returns true or false, or a mapping of `passed`, `message` and `metadata`.
    `run` holds the facts that `clawtrace inspect --json` prints for the run, with its `workspace`, `run_status`,
    `agent_exit_code` and `changes`; keys are attributes as well. It runs in its own process, with a time limit, and
    without network unless the evaluation profile allows it; hooks are off until the profile says
    `allow_local_python_hooks: true`.

    Args:
        path: Python file, relative to the case file.
        callable_name: Name of the function.
        import_path: Dotted name of a module, importable from the folder in which clawtrace was started.
        timeout: Time limit in seconds.
    """

def ran(
    pattern: str,
    *,
    status: Literal["any", "ok"] = ...,
    **common: Unpack[_Fields],
) -> Assertion:
    """A command was run whose text, or a simple command in it, matches the regular expression.

    Commands are the calls of shell-like tools. The pattern is searched in the whole text, and in each simple
    command of a compound one (`a && b; c | d`, `sh -c 'a'`, `env X=1 a`, `sudo a`), so that `^docker build` also
    finds `cd app && sudo docker build .`. A part of a compound command counts although a shell may have skipped it;
    `status: ok` asks for one that succeeded: its own exit code is known to be 0, not that of a later command in the
    same text. A command that was blocked, or that nothing carried out, did not run.

    Args:
        pattern: Regular expression, found anywhere in the text of a command or of a simple command in it; `^` asks for
            its program.
        status: `ok`: the matching command succeeded; `any`: it may have failed.
    """

def run_count(
    pattern: str,
    *,
    count: int | _MinMax | None = ...,
    min: int | None = ...,
    max: int | None = ...,
    **common: Unpack[_Fields],
) -> Assertion:
    """The number of simple commands that match the regular expression is as asked: exactly `count`, or within the bounds.

    Simple commands are counted: `curl a && curl b` are two, `sudo curl a` and `sh -c 'curl a'` are one. A pattern
    that is found only in what carries simple commands (`cd x && make`, `^sudo`) counts once for the smallest such
    text. What a loop repeats is one command. Blocked commands did not run. A text that was not captured, redacted,
    or not split could hold any number of matches.

    Args:
        pattern: Regular expression, found anywhere in the text of a simple command.
        count: The exact number of calls, or `{min, max}`.
        min: Smallest number of calls.
        max: Largest number of calls.
    """

def span_duration(
    max_ms: float,
    *,
    span_type: Literal["llm", "tool", "agent", "subagent", "chain", "retrieval", "embedding", "guardrail", "evaluator", "infra", "other"] | None = ...,
    span_name: str | None = ...,
    quantile: float = ...,
    first_token: bool = ...,
    **common: Unpack[_Fields],
) -> Assertion:
    """The given quantile of the durations of the spans, or of the times to their first token, is at most `max_ms`.

    A run can be fast on the whole and slow where a user waits. The quantile is a value that occurred: of n spans at
    least quantile × n took no longer. Every span of the type counts; infrastructure spans only on request, spans
    that only account for a call never. A span that never ended, or whose first token was not recorded, may have
    taken any time; a run without any such span leaves the question open.

    Args:
        max_ms: Longest duration, in milliseconds.
        span_type: The kind of the spans, `subagent` being `agent`; by default all of the agent's work (not infra).
        span_name: Text that the span's name contains, case-sensitively, or `glob:`, `re:`, `literal:` for the whole
            name; by default every name.
        quantile: The share of the spans that must be within the limit, above 0; 1 means every one.
        first_token: Measure model calls up to their first token.
    """

def span_query(
    select: _SpanCondition,
    *,
    where: _SpanCondition | None = ...,
    count: int | _MinMax = ...,
    nth: int | Literal["first", "last"] | None = ...,
    share: float | None = ...,
    **common: Unpack[_Fields],
) -> Assertion:
    """The number of selected spans is right, and every one of them satisfies `where`.

    Which span ran under which, alongside which and after which is what other types do not ask. `select` chooses
    spans; `count` says how many are right (by default at least one); `where` is what each of them must satisfy. A
    condition is a mapping, all of whose entries must be met: columns of `spans` (names, `glob:`, `re:`, lists;
    numbers, `">=3"`, of times `"<2s"`; `any`, or null for none), `attributes` as they were sent, spans around it
    (`child`, `descendant`, `parent`, `ancestor`, `sibling`, `before`, `after`, `overlaps`), and `not`, `and`, `or`.
    A column that was not recorded leaves a span undecided, and the answer too where it depends on that span. With
    nothing selected `where` says nothing, so that it fails unless `count: {min: 0}` allows it. Spans are counted,
    not calls: `counted_as: call` leaves out the others that record the same call. `nth` takes one of the selected
    spans, `share` is content with fewer than all of them, and `count` inside of `child` and `descendant` says how
    many there are.

    Args:
        select: The condition that selects spans; `{}` selects all.
        where: The condition that every selected span must satisfy.
        count: The allowed number of spans: a number, or `min`, `max` or both.
        nth: Take the first or the last selected span by start, or a number from 1, or from -1 for the last; `count` and
            `where` are about this one.
        share: Share of the selected spans that must satisfy `where`, in place of all of them; without a selected span
            it is unknown.
    """

def sql(
    select: str,
    *,
    expect: _List[Mapping[str, object]] | Literal["fail"] = ...,
    time_limit_s: float = ...,
    **common: Unpack[_AnyFields],
) -> Assertion:
    """The SELECT returns no row for the run, or exactly the rows that are expected.

    For what no other type asks: write the query so that each row is something wrong. It reads the relations (see
    `clawtrace query`) in the store's own SQL, once for each run; it cannot write, attach or read files. Where rows
    may be missing in a relation that it names (`gaps`), the answer is unknown. Where rows of one are in doubt, it
    is asked over the certain ones as well, and answers that differ are no answer. Where a value is in doubt
    (`doubts`) of a column that it compares, no row and expected rows are no answer; a NULL that `doubts` does not
    list is taken as it is. A query that names `certain`, `doubts` or `gaps` minds them itself; of a trace that is
    not complete the answer is unknown in any case.

    Args:
        select: One SELECT; `:run_id` is replaced by the run's id and must be used.
        expect: The rows that are right, as mappings from column to value, in any order; by default none. Or `fail`: a
            known failure.
        time_limit_s: The longest time of the query for one run, in seconds; beyond it the assertion ends as an error.
    """

def state_file(
    path: str | None = ...,
    *,
    timeout: float = ...,
    updated_after: str | None = ...,
    allow_stale: bool = ...,
    state_path: str | None = ...,
    expected_status: object = ...,
    expected_fields: Mapping[str, object] | None = ...,
    **common: Unpack[_Fields],
) -> Assertion:
    """The state file that the run left has the expected status and fields.

    Agents keep their place in such files, and the next session believes them. It is a YAML or JSON mapping (or
    Markdown with front matter); values are compared with their types: `true` is not 1, and "0" is not 0. A file
    that was there before the run and was not touched is the state of an earlier one, and fails unless `allow_stale`
    accepts it.

    Args:
        path: The file, relative to the run's workspace.
        timeout: The longest wait for the file after the agent has ended, in seconds; changes of files wake the check.
        updated_after: ISO 8601 time after which the file must have been changed; without an offset it is local time.
        allow_stale: Whether a file that was there before the run and was not touched is accepted.
        state_path: Another word for `path`; one of the two.
        expected_status: The required value of the key `status`.
        expected_fields: Keys with what they must be; dots lead into nested mappings.
    """

def status_is(
    status: Literal["success", "failed", "timed_out", "provider_error", "invalid"],
    **common: Unpack[_Fields],
) -> Assertion:
    """The run ended as `status`.

    It distinguishes a wrong answer from no answer, and asserts intended time limits and refusals. It is the
    runner's word: `success` and `failed` by the agent's exit code, `timed_out` by our time limit, `provider_error`
    when the model's provider gave up. Clawtrace did not run a recording, so that its status is unknown.

    Args:
        status: The status that is right.
    """

def token_budget(
    *,
    max_input_tokens: int | None = ...,
    max_output_tokens: int | None = ...,
    max_total_tokens: int | None = ...,
    log_path: str | None = ...,
    run_id: str | None = ...,
    **common: Unpack[_Fields],
) -> Assertion:
    """The tokens of the whole run stay within the budget.

    It asks what `trace_token_budget` asks, of the same model calls, and also takes `log_path` and `run_id`. A call
    that does not say its tokens leaves the sum open: over the budget for sure fails, everything else is undecided.
    A span that records the same call can lower the sum: over the budget is final once the run is closed.

    Args:
        max_input_tokens: Most input tokens, cached ones included.
        max_output_tokens: Most output tokens, reasoning included.
        max_total_tokens: Most input and output tokens together.
        log_path: Log, or a glob of transcripts, that is read when the run has no trace; relative to the run's
            workspace.
        run_id: Ask only about the run of exactly this id, as the log calls it; by default the current run.
    """

def tool_call(
    *,
    tool: str,
    args: Mapping[str, object] | None = ...,
    match: Literal["subset", "partial", "exact", "superset"] = ...,
    ignore: _List[str] = ...,
    count: int | _MinMax = ...,
    status: Literal["ok", "error", "blocked"] | None = ...,
    result_contains: str | None = ...,
    by_agent: str | None = ...,
    **common: Unpack[_Fields],
) -> Assertion:
    """The tool was called as described: with these arguments, this outcome, this result, by this agent.

    That a tool ran says little when it ran on the wrong file. All that is given must hold of one call; `count` says
    how many such calls are right (by default at least one). Executed, failed and blocked calls are looked at,
    requests that nothing carried out are not. Where arguments, outcome, result or agent were not captured, such a
    call counts as possible.

    Args:
        tool: Name of the tool, whole and case-sensitive; or `glob:`, `re:`, `literal:`.
        args: Expected arguments by name: literals, `re:`, `glob:`, `literal:`, comparisons such as `">=3"`, or `any`.
        match: `subset`: others are allowed; `partial`: others are, in objects inside of them as well; `exact`: no
            others; `superset`: no others, and given ones may be absent.
        ignore: JSONPaths left out of the comparison: `$.a.b`, `$['a']`, `$.list[0]`, `$.list[*]`, `$..name`.
        count: The allowed number of such calls: a number, or `min`, `max` or both.
        status: The required outcome of the call.
        result_contains: Text that the result contains, case-sensitively.
        by_agent: Name of the agent that made the call itself (not through another agent).
    """

def tool_call_count(
    count: int | _MinMax | None = ...,
    *,
    min: int | None = ...,
    max: int | None = ...,
    tool: str | None = ...,
    **common: Unpack[_Fields],
) -> Assertion:
    """The number of tool calls is as asked: of one tool, or of all tools together.

    Every attempt counts, whatever came of it; a call that the model asked for and nothing carried out does not. A
    call without a name may be of the asked tool.

    Args:
        count: The exact number of calls, or `{min, max}`.
        min: Smallest number of calls.
        max: Largest number of calls.
        tool: Name of the tool, whole and case-sensitive, or `glob:`, `re:`, `literal:`; by default all tools together.
    """

def tool_not_called(
    tool: str,
    *,
    count_blocked: bool = ...,
    log_path: str | None = ...,
    run_id: str | None = ...,
    **common: Unpack[_Fields],
) -> Assertion:
    """The tool was never called: not executed, not failed, not blocked.

    It asks what `tool_not_invoked` asks, of the same spans, and also takes `log_path` and `run_id`. A tool's name
    in a text is no call; a call that the model requested and nothing executed is none either.

    Args:
        tool: Name of the tool, whole and case-sensitive; or `glob:`, `re:`, `literal:`.
        count_blocked: Whether an attempt that was denied counts; `false` forgives it.
        log_path: Log, or a glob of transcripts, that is read when the run has no trace; relative to the run's
            workspace.
        run_id: Ask only about the run of exactly this id, as the log calls it; by default the current run.
    """

def tool_not_invoked(
    tool: str,
    *,
    count_blocked: bool = ...,
    **common: Unpack[_Fields],
) -> Assertion:
    """The tool was never attempted: not executed, not failed, not blocked.

    A forbidden tool that was tried is a finding even when it failed or a guard stopped it. A call that the model
    asked for and nothing executed is no attempt. Where the instrumentation cannot record tool calls, nothing is
    known.

    Args:
        tool: Name of the tool, whole and case-sensitive; or `glob:`, `re:`, `literal:`.
        count_blocked: Whether an attempt that was denied counts; `false` forgives it.
    """

def tool_not_permitted(
    allowed_tools: _List[str],
    *,
    log_path: str | None = ...,
    run_id: str | None = ...,
    count_blocked: bool = ...,
    **common: Unpack[_Fields],
) -> Assertion:
    """No tool outside of the allowed list was attempted.

    An agent that finds a way around its tools shows here first. An attempt that was executed, failed or was blocked
    by a guard counts; `count_blocked: false` forgives the blocked ones. A call that nothing executed is no attempt.

    Args:
        allowed_tools: Names of the permitted tools, whole and case-sensitive, or `glob:`, `re:`, `literal:`; empty
            permits none.
        log_path: Log, or a glob of transcripts, that is read when the run has no trace; relative to the run's
            workspace.
        run_id: Ask only about the run of exactly this id, as the log calls it; by default the current run.
        count_blocked: Whether an attempt that was denied counts; `false` forgives it.
    """

def tool_sequence(
    expected: _List[str] | None = ...,
    *,
    steps: _List[str | _DescribedCall | _Then | _AnyOrder | _Optional | _RepeatStep] | None = ...,
    mode: Literal["ordered", "strict", "contains"] = ...,
    order: Literal["interval", "start_time"] = ...,
    forbid_between: _ForbidBetween | _List[_ForbidBetween] = ...,
    require: _RequireCall | _List[_RequireCall] = ...,
    score: _ScoreBound | None = ...,
    **common: Unpack[_Fields],
) -> Assertion:
    """The tool calls are as expected: in this order, exactly this list, all of these, or in this partial order.

    An agent that writes before it has searched gets the right file for the wrong reason. `ordered` finds the names
    in this order with others between them; `strict` allows nothing else; `contains` ignores the order, and `[a, a]`
    needs two. `steps` say more than a list: any-order groups, optional and repeated parts. In `ordered` others may
    come between them, but a tool of an `optional` part, or of a `repeat` with `max`, is called only where the steps
    say. `forbid_between` and `require` are rules about every call of a step. Executed, failed and blocked calls
    count. Calls that ran side by side have no order: one order of all calls that respects "ended before started"
    must meet everything, unless `order: start_time` asks for the order of starts. The search is exact; where too
    many orders are possible the answer is unknown. `score` is content with a part of the list. A failure shows the
    smallest edit from the calls to what was expected.

    Args:
        expected: Tool names in order, whole and case-sensitive; or `glob:`, `re:`, `literal:`. Empty only with
            `strict`.
        steps: A partial order in place of `expected`: names, calls as `tool_call` describes them (`{tool: …, args: …,
            status: …}`), `{any_order: […]}`, `{optional: …}`, `{repeat: …, min: 1, max: 3}`, and lists of them, which
            keep their order inside of a group.
        mode: `ordered`: others may come between; `strict`: nothing else; `contains`: any order, others allowed.
        order: `interval`: calls that overlap have no order; `start_time`: the plain order of starts.
        forbid_between: Tools that are not called from any call of a step (`after`) to the next call of another
            (`before`); one or a list.
        require: A `tool` that is called `before`, or `after`, every call of a step; one or a list.
        score: `{metric: recall, min: 0.8}`: a part of `expected` is enough. The metric is `recall`, `precision` or
            `f1`; with `mode: contains` calls count in any order, else in that of their starts.
    """

def tool_was_called(
    tool: str,
    *,
    log_path: str | None = ...,
    run_id: str | None = ...,
    **common: Unpack[_Fields],
) -> Assertion:
    """The tool was called at least once: executed, failed or blocked.

    It shows that the agent reached for the tool, not that the tool did its work: the message counts what failed or
    was blocked, and `tool_call` with `status: ok` asks for success. A call that nothing executed is no call.

    Args:
        tool: Name of the tool, whole and case-sensitive; or `glob:`, `re:`, `literal:`.
        log_path: Log, or a glob of transcripts, that is read when the run has no trace; relative to the run's
            workspace.
        run_id: Ask only about the run of exactly this id, as the log calls it; by default the current run.
    """

def trace_cost(
    max_usd: float,
    **common: Unpack[_Fields],
) -> Assertion:
    """The run's model calls together cost at most `max_usd` US dollars.

    Unknown cached tokens make the cost of a call an interval, from all of its input cached to none of it. A call
    without a recorded cost and without a price makes the cost an interval: over the limit for sure fails, under it
    for sure passes, anything else is undecided and names the models without a price. Without any cost the run only
    warns.

    Args:
        max_usd: Highest cost, in US dollars.
    """

def trace_duration(
    max_ms: float,
    *,
    measure: Literal["wall", "busy"] = ...,
    **common: Unpack[_Fields],
) -> Assertion:
    """The run took at most `max_ms` milliseconds.

    Measured over the spans of the agent's work (infrastructure spans such as HTTP clients left out): `wall` from
    the first start to the last end, `busy` only the time in which at least one of them was open, idle gaps left
    out. Where the spans left out reach beyond the others, the message also says how long the whole trace took.

    Args:
        max_ms: Longest duration, in milliseconds.
        measure: `wall`: first start to last end; `busy`: the union of the spans' intervals.
    """

def trace_token_budget(
    *,
    max_input_tokens: int | None = ...,
    max_output_tokens: int | None = ...,
    max_total_tokens: int | None = ...,
    **common: Unpack[_Fields],
) -> Assertion:
    """The tokens of all model calls together stay within the budget.

    Input counts cached tokens, output counts reasoning; each logical call counts once, however many spans repeat
    it. Where a call does not say its tokens, the sum is an interval: over the budget for sure fails, everything
    else is undecided. A span that records the same call can lower the sum: over the budget is final once the run is
    closed.

    Args:
        max_input_tokens: Most input tokens, cached ones included.
        max_output_tokens: Most output tokens, reasoning included.
        max_total_tokens: Most input and output tokens together.
    """

def verify(
    run: str,
    *,
    output_contains: str | None = ...,
    output_equals: str | None = ...,
    timeout: float = ...,
    cwd: str | None = ...,
    **common: Unpack[_Fields],
) -> Assertion:
    """The command `run` succeeds in the run's workspace after the agent has ended, with the expected output.

    If it can be checked in a terminal, it can be checked here: a test suite, a database, a container. The exit code
    is looked at first: where it is not 0, the output is not looked at. The command is given to `/bin/sh`, gets the
    environment of the clawtrace process, and is ended with everything it started after `timeout` seconds, which
    fails.

    Args:
        run: Shell command.
        output_contains: Text that its standard output contains.
        output_equals: The expected standard output; surrounding white space is ignored.
        timeout: Time limit in seconds.
        cwd: Working folder, relative to the workspace; an absolute one also works for recordings.
    """
