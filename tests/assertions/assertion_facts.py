"""Relation rows for tests, written shortly, and a DuckDB store that holds them.

`Run` turns a short description (the tools, model calls, agents and errors of one run) into rows of every relation
that assertions ask, with the run facts derived in plain Python: the tests' own idea of what they mean.
"""

import itertools

import duckdb

from clawtrace.errors import QueryError
from clawtrace.model.query import Query
from clawtrace.model.relations import NOT_EXECUTED, RELATIONS
from clawtrace.store.api import Answer
from clawtrace.store.questions.markers import rewrite_markers

TYPES = {"text": "VARCHAR", "bigint": "BIGINT", "double": "DOUBLE", "boolean": "BOOLEAN"}


class DuckFacts:
    """The relations as empty DuckDB tables with exactly the contract's columns; `load` fills them."""

    def __init__(self):
        self._db = duckdb.connect()
        self._filled = set()
        for relation in RELATIONS.values():
            columns = ", ".join(f"{column.name} {TYPES[column.type]}" for column in relation.columns)
            self._db.execute(f"CREATE TABLE {relation.name} ({columns})")
        self._db.execute("CREATE TABLE selected_runs (run_id VARCHAR)")

    def load(self, rows_by_relation):
        """Make every relation hold exactly the rows given for it, as mappings; a column left out is NULL."""
        for name in self._filled:
            self._db.execute(f"DELETE FROM {name}")
        self._filled = {name for name, rows in rows_by_relation.items() if rows}
        for name in self._filled:
            names = RELATIONS[name].column_names
            marks = ", ".join(f"({', '.join('?' for _ in names)})" for _ in rows_by_relation[name])
            values = [row.get(column) for row in rows_by_relation[name] for column in names]
            self._db.execute(f"INSERT INTO {name} VALUES {marks}", values)

    def select_runs(self, run_ids):
        """Make `selected_runs` hold exactly `run_ids`."""
        self._db.execute("DELETE FROM selected_runs")
        self._db.execute("INSERT INTO selected_runs SELECT unnest(?::VARCHAR[])", [list(run_ids)])

    def ask(self, query, bound=()):
        """Answer one query."""
        for relation in bound:
            values, items = [row[0] for row in relation.rows], [row[1] for row in relation.rows]
            self._db.execute(
                f"CREATE OR REPLACE TEMP TABLE {relation.name} AS "
                "SELECT unnest(?::VARCHAR[]) AS value, unnest(?::BIGINT[]) AS item",
                [values, items],
            )
        try:
            cursor = self._db.execute(rewrite_markers(query.sql, "$"), dict(query.params) or None)
        except duckdb.Error as error:
            raise QueryError(str(error)) from error
        return Answer(tuple(column[0] for column in cursor.description), cursor.fetchall())

    ask_columns = ask

    def ask_user(self, sql, params=None, *, max_rows=None, **_limits):
        """Answer a user's SQL; what keeps it from writing is the real store's and tested there."""
        answer = self.ask(Query(sql, params or {}))
        return Answer(answer.columns, answer.rows[:max_rows])

    def close(self):
        """Let go of the database."""
        self._db.close()


TOKENS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens")


def rows_of(run_id, described):
    """Return the rows of one described run by relation.

    Keys: `tools` (names or mappings; by default one after the other, 10 ns long), `llm` (models or mappings), `agents`
    (names or mappings), `errors` (names or mappings), `spans` and `attributes` (mappings), `messages` (texts that the model put out, or
    mappings), `commands` (texts of shell commands or mappings, with `parts` where they are more than one; each is a call of
    the tool `bash` where no `tools` are given), `record` (columns of the run's row), `totals` (columns that replace the derived ones), `trace: false` for
    a run without any trace.
    """
    if described.get("trace", True) is False:
        return {}
    commands = [
        row for place, one in enumerate(described.get("commands", ()), 1) for row in _command(run_id, place, one)
    ]
    shells = ["bash"] * sum(row["command_no"] == 1 for row in commands)
    tools = [_tool(run_id, place, tool) for place, tool in enumerate(described.get("tools", shells), 1)]
    llm = [_llm(run_id, place, call) for place, call in enumerate(described.get("llm", ()), 1)]
    agents = [_agent(run_id, place, agent) for place, agent in enumerate(described.get("agents", ()), 1)]
    errors = [_error(run_id, place, error) for place, error in enumerate(described.get("errors", ()), 1)]
    spans = [
        {"run_id": run_id, "span_id": f"p{place}"} | span for place, span in enumerate(described.get("spans", ()), 1)
    ]
    messages = [_message(run_id, place, one) for place, one in enumerate(described.get("messages", ()), 1)]
    totals = _totals(run_id, tools, llm, agents, errors) | described.get("totals", {})
    return {
        "tool_calls": tools,
        "commands": commands,
        "llm_calls": llm,
        "agents": agents,
        "errors": errors,
        "spans": spans,
        "attributes": [{"run_id": run_id} | one for one in described.get("attributes", ())],
        "messages": messages,
        "runs": [{"run_id": run_id, "case_id": run_id, "closed_by": "recording"} | described.get("record", {})],
        "run_tools": _run_tools(run_id, tools),
        "run_totals": [totals],
    }


def join(rows):
    """Return the rows of several runs by relation."""
    joined = {name: [] for name in RELATIONS}
    for run in rows:
        for name, some in run.items():
            joined[name] += some
    return joined


def _tool(run_id, place, tool):
    given = {"name": tool} if tool is None or isinstance(tool, str) else tool
    defaults = {"run_id": run_id, "call_no": place, "span_id": f"t{place}", "outcome": "ok", "source": "span"}
    times = {"start_ns": place * 100, "end_ns": place * 100 + 10}
    return defaults | times | given


def _command(run_id, place, command):
    """The whole and its parts; without `parts` it is one simple command, with `parts: null` it was not split."""
    given = {"text": command} if command is None or isinstance(command, str) else dict(command)
    code = given.get("exit_code")
    known = {"exit_code": code, "ok": given.get("ok", None if code is None else code == 0)}
    parts = given.pop("parts", [{"text": given["text"], **known}])
    last = None if parts is None or given["text"] is None else len(parts) + 1
    whole = {"run_id": run_id, "tool_call_no": place, "command_no": 1, "simple": False, "last_no": last} | known | given
    rows = [whole | {"whole": given["text"]}]
    for number, part in enumerate(parts if last else (), 2):
        spec = {"text": part} if isinstance(part, str) else part
        own = {"run_id": run_id, "tool_call_no": place, "command_no": number, "last_no": number, "whole": given["text"]}
        own |= spec
        rows.append(own | {"simple": own["last_no"] == number})
    return rows


def _llm(run_id, place, call):
    given = {"request_model": call, "response_model": call} if call is None or isinstance(call, str) else call
    row = {"run_id": run_id, "call_no": place, "span_id": f"l{place}", "outcome": "ok", "attempts": 1} | given
    row.setdefault("model", row.get("response_model") or row.get("request_model"))
    return row


def _agent(run_id, place, agent):
    given = {"name": agent} if agent is None or isinstance(agent, str) else agent
    parent = None if place == 1 else 1
    defaults = {"run_id": run_id, "activation_no": place, "span_id": f"a{place}", "parent_activation_no": parent}
    return defaults | {"via": "root" if parent is None else "nesting", "start_ns": place, "end_ns": 1000} | given


def _error(run_id, place, error):
    given = {"name": error} if error is None or isinstance(error, str) else error
    return {"run_id": run_id, "span_id": f"e{place}", "kind": "tool", "message": "boom", "recovered": False} | given


def _message(run_id, place, message):
    given = {"text": message} if isinstance(message, str) else message
    row = {"run_id": run_id, "span_id": f"m{place}", "direction": "output", "message_no": 1, "part_no": 1}
    return row | {"role": "assistant", "type": "text"} | given


def _run_tools(run_id, tools):
    def key(tool):
        return (tool["name"], tool["outcome"])

    groups = itertools.groupby(sorted((tool for tool in tools if tool["name"] is not None), key=key), key)
    return [
        {"run_id": run_id, "name": group[0]["name"], "outcome": group[0]["outcome"], "n": len(group)}
        for group in (list(members) for _, members in groups)
    ]


def _totals(run_id, tools, llm, agents, errors):
    answered = [call for call in llm if call["outcome"] == "ok"]
    priced = [call["cost_usd"] for call in llm if call.get("cost_usd") is not None]
    used = [call for call in llm if call["outcome"] == "ok" or any(call.get(name) is not None for name in TOKENS)]
    row = {
        "run_id": run_id,
        "llm_calls": len(answered),
        "failed_llm_attempts": len(llm) - len(answered),
        "tool_calls": sum(tool["outcome"] not in NOT_EXECUTED for tool in tools),
        "usage_calls": len(used),
        "cost_low": sum(priced),
        "cost_high": sum(priced) if len(priced) == len(used) else None,
        "priced_calls": len(priced),
        "first_start_ns": 0,
        "last_end_ns": 2_000_000,
        "busy_ns": 1_000_000,
        "errors": len(errors),
        "unrecovered_errors": sum(error["recovered"] is not True for error in errors),
        "agents": len(agents),
    }
    for name in TOKENS:
        known = [call[name] for call in llm if call.get(name) is not None]
        whole = all(call.get(name) is not None for call in answered)
        row |= {name: sum(known) if whole else None, f"{name}_known": len(known)}
        if name in TOKENS[:2]:
            row[f"{name}_low"] = sum(known)
    return row
