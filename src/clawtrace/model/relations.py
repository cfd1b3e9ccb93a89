"""The relations that assertions query: the waist between normalisation and judgement.

From these definitions come the store's tables, the docs page, the conformance test that every
store passes, and the check that an assertion's SQL names nothing else (spec: span-model.md §4).
Times are nanoseconds since the Unix epoch. What is not known is written in three forms
(spec: certain-and-possible.md §2): a value is NULL, or its ``_low`` and ``_high`` differ; a row that perhaps does not
exist has ``certain`` FALSE; rows that nothing records may exist where `gaps` has a row. `doubts` says why.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

__all__ = ["COUNTED", "RELATIONS", "Column", "ColumnType", "Relation"]

ColumnType = Literal["text", "bigint", "double", "boolean"]


class Column(NamedTuple):
    """One column of a relation."""

    name: str
    type: ColumnType
    meaning: str
    """One sentence, with the unit or the allowed values."""


class Relation(NamedTuple):
    """One relation: what a row stands for and its columns, in order."""

    name: str
    meaning: str
    columns: tuple[Column, ...]

    @property
    def column_names(self) -> tuple[str, ...]:
        """The names of the columns, in order."""
        return tuple(column.name for column in self.columns)


_TYPES: dict[str, ColumnType] = {"t": "text", "i": "bigint", "d": "double", "b": "boolean"}


def _relation(name: str, meaning: str, columns: str) -> Relation:
    """Read a definition whose lines are ``column type meaning`` (t text, i bigint, d double, b boolean)."""
    rows = (line.split(None, 2) for line in columns.strip().splitlines())
    return Relation(name, meaning, tuple(Column(n, _TYPES[t], m) for n, t, m in rows))


_CERTAIN = "certain b FALSE where the row may not exist, or may be another row again: `doubts` says why."

_TOKENS = """
input_tokens i Input tokens, cached ones included (OpenTelemetry's definition).
output_tokens i Output tokens, reasoning included.
cache_read_tokens i The part of the input that was read from the provider's cache.
cache_write_tokens i The part of the input that was written to the provider's cache; of a call also 0 where no span records it, and the model's price list bills cached tokens, but no writing of them.
reasoning_tokens i The part of the output that was reasoning.
""".strip()

COUNTED: dict[str, str] = {
    "llm_calls": "answered model calls",
    "failed_llm_attempts": "requests to a model that got no answer",
    "tool_calls": "tool calls: attempts, whatever came of them",
    "input_tokens": "input tokens of all model calls",
    "output_tokens": "output tokens of all model calls",
    "cache_read_tokens": "input tokens that were read from the provider's cache",
    "cache_write_tokens": "input tokens that were written to the provider's cache",
    "reasoning_tokens": "output tokens that were reasoning",
    "errors": "rows of `errors`",
    "unrecovered_errors": "rows of `errors` whose recovered is not TRUE",
    "agents": "agent activations",
}
"""The counts and sums of `run_totals`, each as ``_low`` and ``_high``, with what they count."""

_COUNTED_COLUMNS = (
    "\n".join(
        line
        for name, counted in COUNTED.items()
        for line in (f"{name}_low i Fewest {counted}.", f"{name}_high i Most {counted}; NULL when nothing bounds them.")
    )
    + """
cost_low d Least cost of all model calls, in US dollars.
cost_high d Highest cost of all model calls, in US dollars; NULL when nothing bounds it, as where a call has no price."""
)

_DEFINITIONS: tuple[tuple[str, str, str], ...] = (
    (
        "runs",
        "One row for each run: one execution of an agent on one case, or one recording.",
        """
run_id t The run's id, unique in the store.
case_id t The case that was run; the run id itself for recorded input.
model_id t The suite's model entry; NULL for recorded input.
repetition i 1-based repetition of the same case and model.
closed_by t Why no more spans are expected: exit, end_run, evidence, settled, timeout, recording; NULL while open.
complete b Whether the trace is complete as far as is known; NULL while open, and for a run without spans where nothing suggests that any was lost.
incomplete_because t JSON list of reasons, each with code, message and span_ids; [] when none is known; NULL while open.
started_ns i When the run began (the runner's clock, else the first span's start).
ended_ns i When the run ended (the runner's clock, else the last span's end).
agent_exit_code i The agent process's own exit code; NULL when unknown or killed by a signal.
run_status t success, failed, timed_out, provider_error, invalid; NULL for recorded input.
final_output t The run's final answer, from the spans' messages or the runner's output.
conversation_end t How the conversation with a simulated user ended: goal_reached, gave_up, max_turns, agent_failed; NULL where there was none.
answered b Whether there is a final answer: false where the agent's work ended in a failure, NULL where that is unknown.
workspace t Absolute path of the run's workspace folder; NULL when there is none.
cassette t How recorded answers took the place of the providers of models: replay (nothing was spent), record, auto; NULL where providers were asked, or that is unknown.
""",
    ),
    (
        "spans",
        "One row for each distinct span of a run, of any kind.",
        f"""
run_id t The run that the span belongs to.
run_rule t The attribution rule that decided it (span-model.md §2): resource, span, header, path, trace, link, session, run_key, none, given.
trace_id t Trace id, 32 lower-case hex digits.
span_id t Span id, 16 lower-case hex digits.
parent_span_id t Parent's span id as sent; NULL for a root.
root_span_id t The topmost received ancestor of the span (itself for a root or orphan).
tree_enter i Position at which a depth-first walk of the run enters the span.
tree_leave i Position at which it leaves: d is under a when a.tree_enter < d.tree_enter and d.tree_leave < a.tree_leave.
depth i Number of received ancestors.
name t Span name as sent.
start_ns i Start time.
end_ns i End time; NULL when the span never ended.
duration_ns i end_ns - start_ns; NULL when the span never ended, ended before it started, or is the instant of one line of a log.
ended b Whether the span has an end.
turn i 1-based turn of the conversation (one root trace or user prompt is one turn); NULL when unknown.
kind t llm, tool, agent, chain, retrieval, embedding, guardrail, evaluator, infra, other.
dialect t The dialect file that read the span.
rule t On what evidence its rules were written: verified (on recordings of this instrumentation in this version range), other-version (of other versions only), generic (of none).
operation t gen_ai.operation.name, or what the dialect maps to it.
provider t Model provider (OpenTelemetry's names).
request_model t Requested model.
response_model t Responding model.
{_TOKENS}
cost_usd d Cost recorded on the span, in US dollars.
tool_name t Tool name as the model calls it.
tool_call_id t Id of the tool call.
agent_name t Name of the agent: on an agent span its own, else the agent that the span names.
agent_id t Agent id, as recorded.
session_id t Conversation or session id, as recorded.
error t Error message; NULL when the span has no error.
error_type t error.type or the exception's type.
service t service.name of the resource; NULL where it has none.
scope t Instrumentation scope name; NULL where it has none.
scope_version t Version of the instrumentation: of its scope, or service.version of an agent that is a program; NULL when unknown.
span_kind t OpenTelemetry's kind of the span: internal, server, client, producer, consumer, unspecified; NULL for one made from a log event.
status t Status as sent: unset, ok, error; NULL for one made from a log event. Whether it failed is in `error`.
source t otlp, or log for a span made from log lines or events.
counted_as t What the span is in the ledger: call, wrapper, accounting, duplicate, none.
counted_in t Span id of the logical call that the span belongs to; NULL for none.
counted_by t Id of the rule that merged the span into a call with others, kept it as a separate call, or excluded it as neither a call nor an agent; NULL where no rule was needed.
""",
    ),
    (
        "llm_calls",
        "One row for each logical model call, however many spans record it; outcome ok: it was answered.",
        f"""
run_id t The run.
call_no i 1-based, by start.
span_id t The span that represents the call.
agent_span_id t The agent activation that made the call; NULL when none was recorded.
turn i 1-based turn; NULL when unknown.
start_ns i Start of the call.
end_ns i End of the call; NULL when it never ended.
first_token_ns i When the first token arrived; NULL when not recorded.
provider t Model provider.
request_model t Requested model.
response_model t Responding model.
model t Bare name of the responding (else requested) model: no provider prefix, region, date or latest suffix.
{_TOKENS}
cost_usd d Cost in US dollars; the highest possible cost where the number of cached tokens is unknown and they are priced differently; NULL when unknown.
cost_source t recorded, model_pricing, genai-prices; NULL when unknown.
outcome t ok (an answer came) or error; NULL where it is unknown whether an answer came.
error t Error message of a failed call.
attempts i Provider requests known to belong to the call, at least 1.
finish_reason t Why the model stopped: stop, length, tool_call, content_filter, error, or the provider's own value.
{_CERTAIN}
""",
    ),
    (
        "tool_calls",
        "One row for each attempt: a tool call that the framework began to carry out, whatever came of it.",
        f"""
run_id t The run.
call_no i 1-based, by start.
span_id t The span that represents the call; NULL when known only from messages or logs.
call_id t The model's id of the call.
name t Tool name as the model called it.
agent_span_id t The agent activation that called; NULL when none was recorded.
turn i 1-based turn; NULL when unknown.
start_ns i Start of the execution; where no span records it, end of the model call that asked for it, a nanosecond later for each call that the same answer asked for before; NULL when it seems to have begun more than a second before the span that it is in: its clock is another.
end_ns i End of the execution, the latest end of its spans; NULL when none ended or none records it, or like start_ns.
arguments t Arguments as JSON text; NULL when not captured.
result t Result as text; NULL when not captured.
outcome t ok, error or blocked; NULL where how it ended is not recorded.
error t Error message.
source t span, message, log.
{_CERTAIN}
""",
    ),
    (
        "tool_requests",
        "One row for each tool call that a model asked for and that was not carried out: no attempt, so it counts in nothing.",
        """
run_id t The run.
request_no i 1-based, by the start of the model call.
span_id t The span of the model call that asked.
call_id t The model's id of the call.
name t Tool name as the model wrote it.
agent_span_id t The agent activation that asked; NULL when none was recorded.
turn i 1-based turn; NULL when unknown.
asked_ns i End of the model call, or its start where it never ended.
arguments t Arguments as JSON text; NULL when not captured.
result t What the model got for it as text; NULL when nothing was captured.
reason t Why it is no attempt: not-offered (the model asked for a tool that it did not have), not-run (its instrumentation writes a span for each execution, and there is none), handed-over (it is a handoff to another agent).
""",
    ),
    (
        "commands",
        "One row for each shell command that a tool call ran, as a whole, and one for each command in it. Blocked calls have none.",
        f"""
run_id t The run.
tool_call_no i call_no of the tool call.
command_no i 1-based, in the order of the text; 1 is the whole text; a command that contains others comes before them.
text t The command's text, with `$(…)` in place of each command that has its own row; NULL when it was not captured.
argv0 t The program, without its folder.
whole t The whole text that this command is part of.
exit_code i Exit code; NULL when unknown. A simple command has one where the exit code of the whole text implies it.
stdout t Standard output, where it is recorded separately; only of the whole text.
stderr t Standard error, where it is recorded separately; only of the whole text.
output t Output, where standard output and error are recorded together; only of the whole text.
simple b True for one simple command; false for the whole text and for commands that contain others (sudo a, sh -c 'a; b', A=1 a).
ok b Whether it succeeded: exit code 0, or the outcome of the call where its tool is known to fail with its command; NULL when unknown.
last_no i command_no of the last command inside this one, or of itself; NULL for a text that could not be split.
{_CERTAIN}
""",
    ),
    (
        "agents",
        "One row for each agent activation: one period in which an agent works.",
        f"""
run_id t The run.
activation_no i 1-based, by start.
span_id t The activation's span; NULL when it is known only from an attribute or log.
name t Agent name; NULL when the telemetry does not name it.
id t Agent id, as recorded.
parent_activation_no i The activation that delegated to this one; NULL for a root (via root), and where it is unknown (any other via).
via t How it was started: root (by no agent), nesting, tool, handoff, spawn, link; NULL where it is unknown whether an agent did.
start_ns i Start.
end_ns i End; NULL when it never ended.
{_CERTAIN}
""",
    ),
    (
        "messages",
        "One row for each part of a message that a model call, agent or tool sent or received.",
        """
run_id t The run.
span_id t The span that carries the message.
direction t input or output.
message_no i 1-based within span and direction.
part_no i 1-based within the message.
role t system, user, assistant, tool.
type t text, reasoning, tool_call, tool_call_response, or the recorded type.
call_id t Id of the tool call that the part requests or answers.
name t Tool name of a tool_call part.
text t Text, arguments (JSON text) or result of the part.
""",
    ),
    (
        "errors",
        "One row for each cause of failure in the agent's work; an error that is passed up to parents counts once.",
        f"""
run_id t The run.
error_no i 1-based.
span_id t The span where the error arose.
name t Span name, or the tool's or model's name.
kind t The span's kind.
message t Error message.
recovered b Whether a later call of the same tool or model succeeded; NULL when that cannot be known.
{_CERTAIN}
""",
    ),
    (
        "run_totals",
        "One row for each run that has a trace: counts and sums as budgets need them. The truth lies between `_low`, over the rows "
        "that are certain, and `_high`, over all rows and gaps; NULL: nothing bounds it.",
        f"""
run_id t The run.
{_COUNTED_COLUMNS}
input_tokens_known i How many calls know their input tokens.
output_tokens_known i How many calls know their output tokens.
usage_calls i Number of calls that can have usage: answered ones, and failed ones with usage.
priced_calls i How many calls have a cost.
first_start_ns i Earliest start among spans of the agent's work (kind not infra).
last_end_ns i Latest end among them; NULL when a root ended before it started, or a span began more than a second before the one that it is in.
busy_ns i Length of the union of their intervals; NULL likewise.
""",
    ),
    (
        "run_tools",
        "One row for each run, tool name and outcome: `tool_calls` summed up.",
        """
run_id t The run.
name t Tool name; NULL where it is unknown.
outcome t ok, error, blocked; NULL where it is unknown.
n_low i Number of calls that are certain.
n_high i Number of calls, with those that are not certain.
first_start_ns i Start of the first of them.
last_end_ns i End of the last of them.
""",
    ),
    (
        "doubts",
        "One row for each thing that the spans leave open of rows that there are; the reasons are on the page of reasons.",
        """
run_id t The run.
relation t The relation.
row_no i The row: its call_no, activation_no, or place in the relation; NULL for every row where the column is NULL.
column_name t The column whose value is unknown; NULL where the row itself is not certain.
reason t Reason, such as not-recorded.
span_id t The span that shows it; NULL where there is none.
""",
    ),
    (
        "gaps",
        "One row for each place where rows may exist that nothing records.",
        """
run_id t The run.
relation t The relation in which they would be.
at_most i How many rows; NULL for any number.
name t The name that they would have; NULL where it may be any.
outcome t The outcome that they would have; NULL where it may be any.
agent t Name of the agent that they would belong to; NULL where it may be any.
turn i The turn that they would be in; NULL where it may be any.
start_ns i The earliest instant at which they can have begun; NULL for any.
end_ns i The latest instant at which they can have ended; NULL for any.
reason t Reason, such as not-recorded, or missing_parent where the trace is not complete.
span_id t The span that shows it; NULL where there is none.
""",
    ),
    (
        "attributes",
        "One row for each attribute of a span, its resource, its instrumentation scope, its events or its links, as text; the names of events and the ids of links as well.",
        """
run_id t The run.
span_id t The span.
scope t span, resource, scope (key NULL: not kept), event, event_name (key `name`), link (keys `trace_id` and `span_id`, and those of its attributes).
key t Attribute key as sent.
value t Value as text; arrays and maps as JSON.
type t string, int, double, bool, array, map, bytes; NULL for scopes, events and links.
""",
    ),
    (
        "judgements",
        "One row for each score that a judge gave, and one for each that they amount to; no fact of the trace.",
        """
run_id t The run that was judged.
asked_by t judge for the evaluation profile, else the assertion's id.
judge_run_id t The profile's judge run; for an assertion the judge's id; NULL for a final score.
judge_id t The judge; NULL for a final score.
repetition i 1-based repetition; NULL for a final score.
part t overall, a dimension, or hard_expectations.1 and so on; hard_expectations alone is their weighted mean.
score d Score from 0 to 10; NULL where the judge knows none, or gave no answer.
raw_score d The score on the rubric's scale.
met b Whether the judge finds the hard expectation met; NULL for other parts.
evidence t The judge's evidence for the score.
counted b Whether the answer is in the sample that counts.
status t ok, or why there is no answer: unavailable, budget, outage, rate_limit, quota, wrong_key, unknown_model, rejected, malformed.
error t The provider's message.
scale_min d Worst score of the rubric's scale.
scale_max d Best score of the rubric's scale.
input_tokens i Input tokens of asking, on the row of the part overall.
output_tokens i Output tokens of asking, likewise.
cost_usd d Cost of asking in US dollars, likewise; NULL when unknown.
answered_ns i When it was stored.
""",
    ),
)

_LIKE: tuple[tuple[str, str, str], ...] = (
    (
        "background_tool_calls",
        "tool_calls",
        "One row for each tool call in work that a timer started (a heartbeat), without a request. `tool_calls` and "
        "every count leave it out; its call_no follows theirs.",
    ),
    (
        "background_commands",
        "commands",
        "One row for each shell command of `background_tool_calls`, as in `commands`.",
    ),
)
"""Relations that have the columns of another one."""

RELATIONS: dict[str, Relation] = {name: _relation(name, meaning, columns) for name, meaning, columns in _DEFINITIONS}
"""Every relation by name, in the order of the documentation."""
RELATIONS |= {name: Relation(name, meaning, RELATIONS[like].columns) for name, like, meaning in _LIKE}
