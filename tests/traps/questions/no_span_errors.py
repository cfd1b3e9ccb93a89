"""`no_span_errors`: the question, what lies outside of it, and its answer over plain spans."""

from answers import PlainRun, succeeded

ASSERTION = {}
OUTSIDE = {
    "asks what failed": "answers, content of search, other_command, other_output, times, agents, nothing_captured, renamed_tool, repeated_tool_call, repeated_command, repeated_model_call, renamed_model, more_tokens, unknown_tokens, more_cost",
    "a command's exit code alone is no error of the span (`exit_code` and `ran` ask for it)": "quietly_failed_command",
    "what was lost left nothing behind, and did not fail": "lost_command, lost_first_request, lost_model_call",
}


def answer(run: PlainRun) -> bool:
    return all(map(succeeded, run.spans))
