"""The relations that are counted, and how: one row is one, or a row of `run_tools` as many as it says."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["EVERY_COMMAND", "EVERY_TOOL_CALL", "SOURCES", "Source"]


class Source(NamedTuple):
    """What is counted."""

    counted: str
    """The relation, or a subquery: what the count reads."""
    low: str = "CASE WHEN r.certain THEN 1 ELSE 0 END"
    """SQL over ``r``: how many a row is at least."""
    high: str = "1"
    """SQL over ``r``: how many a row is at most; NULL for any number, where `endless`."""
    rows: str = ""
    """What evidence reads, a row for each; empty: `counted`."""
    number: str = "call_no"
    """The column that numbers the rows, by which `doubts` names them."""
    relation: str = "tool_calls"
    """The relation whose doubts and gaps concern it."""
    nameless: str = "(nameless)"
    """What evidence calls a row without a name."""
    why: str = ""
    """SQL over ``r``: why a row is in doubt, where `doubts` does not say it of the relation."""
    hidden: tuple[str, ...] = ()
    """Further relations: rows that they may lack are rows that are counted here, too."""
    endless: bool = False
    """Whether a row may stand for any number; then each gap does."""
    fact: str = ""
    """What is asked of (`Form.fact`); empty: `relation`."""

    @property
    def gaps(self) -> str:
        """SQL over ``p``: the gaps that concern it."""
        return f"p.relation IN ({', '.join(repr(name) for name in (self.relation, *self.hidden))})"


def _both(columns: str, relation: str, background: str) -> str:
    return f"(SELECT {columns} FROM {relation} UNION ALL SELECT {columns} FROM {background})"


EVERY_TOOL_CALL = _both(
    "run_id, call_no, span_id, name, arguments, result, outcome, error, certain", "tool_calls", "background_tool_calls"
)
"""In place of ``tool_calls`` for questions of what must never happen: what a timer started (a heartbeat) is in no count, but a
forbidden tool that was called there was called all the same."""

EVERY_COMMAND = _both(
    "run_id, tool_call_no, command_no, text, whole, exit_code, ok, last_no, certain", "commands", "background_commands"
)
"""In place of ``commands``, likewise."""

_EVERY_TOOL = (
    "(SELECT run_id, name, outcome, n_low, n_high FROM run_tools UNION ALL SELECT run_id, name, outcome,"
    " CASE WHEN certain THEN 1 ELSE 0 END AS n_low, 1 AS n_high FROM background_tool_calls)"
)

SOURCES = {
    "run_tools": Source("run_tools", "r.n_low", "r.n_high", "tool_calls", nameless="(tool without a name)"),
    "every_tool": Source(_EVERY_TOOL, "r.n_low", "r.n_high", EVERY_TOOL_CALL, nameless="(tool without a name)"),
    "tool_calls": Source("tool_calls", nameless="(tool without a name)"),
    "llm_calls": Source("llm_calls", relation="llm_calls"),
    "model_requests": Source(
        "llm_calls", "CASE WHEN r.certain THEN r.attempts ELSE 0 END", "r.attempts", relation="llm_calls"
    ),
    "agents": Source("agents", number="activation_no", relation="agents", nameless="(agent without a name)"),
    "errors": Source("errors", number="error_no", relation="errors", nameless="(no name)"),
}
"""By name. `run_tools` and `every_tool` (with what a timer started) read names and outcomes only; `model_requests`
has as many as each model call took, answered or not."""
