"""Relation rows for tests, written shortly, and a DuckDB store that holds them.

`Run` turns a short description (the tools, model calls, agents and errors of one run) into rows of every relation
that assertions ask, with the run facts derived in plain Python: the tests' own idea of what they mean.
"""

import duckdb

from clawtrace.errors import QueryError
from clawtrace.model.query import NO_LIMITS, Query
from clawtrace.model.relations import COUNTED, RELATIONS
from clawtrace.store.api import Answer
from clawtrace.store.questions.statements import rewrite_markers
from clawtrace.verdicts.asking.evidence import EvidenceByRun, ShownSpans

TYPES = {"text": "VARCHAR", "bigint": "BIGINT", "double": "DOUBLE", "boolean": "BOOLEAN"}


def outcomes_of(asked):
    """Return the outcome of every row of an answer that has one."""
    return [outcome for outcome in map(asked.outcome, range(len(asked.answer))) if outcome is not None]


def evidence_of(asked, run_ids):
    """Return the spans that decided, by run id."""
    rows = asked.evidence_rows(asked.store, run_ids)
    found = EvidenceByRun(rows, None if rows is None else ShownSpans(asked.store, run_ids, [rows]))
    return {run_id: found.of(run_id) for run_id in run_ids}


class DuckFacts:
    """The relations as empty DuckDB tables with exactly the contract's columns; `load` fills them."""

    def __init__(self):
        self._db = duckdb.connect(
            config={"threads": 1}
        )  # a few rows: threads would wait for each other on a busy machine
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
            cursor = self._db.execute(rewrite_markers(query.sql), dict(query.params) or None)
        except duckdb.Error as error:
            raise QueryError(str(error)) from error
        return Answer(tuple(column[0] for column in cursor.description), cursor.fetchall())

    ask_columns = ask

    def ask_user(self, sql, params=None, limits=NO_LIMITS):
        """Answer a user's SQL; what keeps it from writing is the real store's and tested there."""
        answer = self.ask(Query(sql, params or {}))
        return Answer(answer.columns, answer.rows[: limits.max_rows])

    def close(self):
        """Let go of the database."""
        self._db.close()


TOKENS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens")


def rows_of(run_id, described):
    """Return the rows of one described run by relation.

    Keys: `tools` (names or mappings; by default one after the other, 10 ns long), `llm` (models or mappings), `agents`
    (names or mappings), `errors` (names or mappings), `spans` and `attributes` (mappings), `messages` (texts that the model put out, or
    mappings), `requests` (names or mappings of `tool_requests`), `doubts` and `gaps` (mappings), `commands` (texts of shell commands or mappings, with `parts` where they are more than one; each is a call of
    the tool `bash` where no `tools` are given), `record` (columns of the run's row), `totals` (columns that replace the derived ones), `trace: false` for
    a run without any trace. A row in doubt is written with `certain: false`, or with `doubt: reason`. A run whose `record` says
    `closed_by: null` has a gap in every relation.
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
    doubts = [{"run_id": run_id} | one for one in described.get("doubts", ())]
    doubts += _doubts("tool_calls", "call_no", tools) + _doubts("llm_calls", "call_no", llm)
    doubts += _doubts("agents", "activation_no", agents) + _doubts("errors", "error_no", errors)
    gaps = [{"run_id": run_id} | one for one in described.get("gaps", ())]
    record = {"run_id": run_id, "case_id": run_id, "closed_by": "recording"} | described.get("record", {})
    if record["closed_by"] is None:
        gaps += [{"run_id": run_id, "relation": name, "reason": "run_open"} for name in WITH_GAPS]
        doubts.append({"run_id": run_id, "relation": "runs", "column_name": "final_output", "reason": "run_open"})
    totals = _totals(run_id, tools, llm, agents, errors, gaps) | described.get("totals", {})
    return {
        "tool_calls": tools,
        "tool_requests": [_request(run_id, place, one) for place, one in enumerate(described.get("requests", ()), 1)],
        "commands": commands,
        "llm_calls": llm,
        "agents": agents,
        "errors": errors,
        "spans": spans,
        "attributes": [{"run_id": run_id} | one for one in described.get("attributes", ())],
        "messages": messages,
        "runs": [record],
        "run_tools": _run_tools(run_id, tools),
        "run_totals": [totals],
        "doubts": doubts,
        "gaps": gaps,
    }


WITH_GAPS = ("llm_calls", "tool_calls", "commands", "agents", "errors", "spans", "messages")
"""The relations in which rows may exist that nothing records."""


def _doubts(relation, number, rows):
    """The rows of `doubts` for rows that are not certain; a reason that a row gives is taken out of it."""
    found = []
    for row in rows:
        reason = row.pop("doubt", None)
        if reason is not None:
            row["certain"] = False
        if not row["certain"]:
            where = {"run_id": row["run_id"], "relation": relation, "row_no": row[number]}
            found.append(where | {"reason": reason or "asked-not-seen", "span_id": row.get("span_id")})
    return found


def _request(run_id, place, request):
    given = {"name": request} if isinstance(request, str) else request
    return {"run_id": run_id, "request_no": place, "span_id": f"l{place}", "reason": "not-run"} | given


def join(rows):
    """Return the rows of several runs by relation."""
    joined = {name: [] for name in RELATIONS}
    for run in rows:
        for name, some in run.items():
            joined[name] += some
    return joined


def _tool(run_id, place, tool):
    given = {"name": tool} if tool is None or isinstance(tool, str) else tool
    defaults = {
        "run_id": run_id,
        "call_no": place,
        "span_id": f"t{place}",
        "outcome": "ok",
        "source": "span",
        "certain": True,
    }
    times = {"start_ns": place * 100, "end_ns": place * 100 + 10}
    return defaults | times | given


def _command(run_id, place, command):
    """The whole and its parts; without `parts` it is one simple command, with `parts: null` it was not split."""
    given = {"text": command} if command is None or isinstance(command, str) else dict(command)
    code = given.get("exit_code")
    known = {"exit_code": code, "ok": given.get("ok", None if code is None else code == 0)}
    parts = given.pop("parts", [{"text": given["text"], **known}])
    last = None if parts is None or given["text"] is None else len(parts) + 1
    whole = (
        {"run_id": run_id, "tool_call_no": place, "command_no": 1, "simple": False, "last_no": last, "certain": True}
        | known
        | given
    )
    rows = [whole | {"whole": given["text"]}]
    for number, part in enumerate(parts if last else (), 2):
        spec = {"text": part} if isinstance(part, str) else part
        own = {
            "run_id": run_id,
            "tool_call_no": place,
            "command_no": number,
            "last_no": number,
            "whole": given["text"],
            "certain": whole["certain"],
        }
        own |= spec
        rows.append(own | {"simple": own["last_no"] == number})
    return rows


def _llm(run_id, place, call):
    given = {"request_model": call, "response_model": call} if call is None or isinstance(call, str) else call
    row = {
        "run_id": run_id,
        "call_no": place,
        "span_id": f"l{place}",
        "outcome": "ok",
        "attempts": 1,
        "certain": True,
    } | given
    row.setdefault("model", row.get("response_model") or row.get("request_model"))
    return row


def _agent(run_id, place, agent):
    given = {"name": agent} if agent is None or isinstance(agent, str) else agent
    parent = None if place == 1 else 1
    defaults = {"run_id": run_id, "activation_no": place, "span_id": f"a{place}", "parent_activation_no": parent}
    return (
        defaults
        | {"via": "root" if parent is None else "nesting", "start_ns": place, "end_ns": 1000, "certain": True}
        | given
    )


def _error(run_id, place, error):
    given = {"name": error} if error is None or isinstance(error, str) else error
    row = {
        "run_id": run_id,
        "error_no": place,
        "span_id": f"e{place}",
        "kind": "tool",
        "message": "boom",
        "recovered": False,
    }
    return row | {"certain": True} | given


def _message(run_id, place, message):
    given = {"text": message} if isinstance(message, str) else message
    row = {"run_id": run_id, "span_id": f"m{place}", "direction": "output", "message_no": 1, "part_no": 1}
    return row | {"role": "assistant", "type": "text"} | given


def _run_tools(run_id, tools):
    groups = {}
    for tool in tools:
        groups.setdefault((tool["name"], tool["outcome"]), []).append(tool)
    return [
        {"run_id": run_id, "name": name, "outcome": outcome, "n_low": _certain(of), "n_high": len(of)}
        for (name, outcome), of in groups.items()
    ]


def _certain(rows):
    return sum(row["certain"] for row in rows)


def _totals(run_id, tools, llm, agents, errors, gaps):
    answered = [call for call in llm if call["outcome"] != "error"]
    failed = [call for call in llm if call["outcome"] != "ok"]
    used = [call for call in llm if call["outcome"] != "error" or any(call.get(name) is not None for name in TOKENS)]
    unrecovered = [error for error in errors if error["recovered"] is not True]
    counts = {
        "llm_calls": (sum(call["certain"] and call["outcome"] == "ok" for call in llm), len(answered)),
        "failed_llm_attempts": (sum(call["certain"] and call["outcome"] == "error" for call in llm), len(failed)),
        "tool_calls": (_certain(tools), len(tools)),
        "errors": (_certain(errors), len(errors)),
        "unrecovered_errors": (sum(e["certain"] and e["recovered"] is False for e in errors), len(unrecovered)),
        "agents": (_certain(agents), len(agents)),
    }
    sums = {name: _sum(used, name) for name in TOKENS} | {"cost": _sum(used, "cost_usd")}
    row = {
        "run_id": run_id,
        "usage_calls": len(used),
        "priced_calls": sum(call.get("cost_usd") is not None for call in llm),
        "input_tokens_known": sum(call.get("input_tokens") is not None for call in llm),
        "output_tokens_known": sum(call.get("output_tokens") is not None for call in llm),
        "first_start_ns": 0,
        "last_end_ns": 2_000_000,
        "busy_ns": 1_000_000,
    }
    for name, (low, high) in (counts | sums).items():
        row |= {f"{name}_low": low, f"{name}_high": _with_gaps(name, high, gaps)}
    assert {f"{name}_low" for name in COUNTED} <= row.keys()
    return row


def _sum(calls, name):
    """The least and the most, None where a call does not say it."""
    low = sum(call.get(name) or 0 for call in calls if call["certain"])
    return low, None if any(call.get(name) is None for call in calls) else sum(call[name] for call in calls)


OF_RELATION = {"tool_calls": "tool_calls", "agents": "agents", "errors": "errors", "unrecovered_errors": "errors"}


def _with_gaps(name, high, gaps):
    for gap in gaps:
        only_failed = gap.get("outcome") == "error"
        if gap["relation"] != OF_RELATION.get(name, "llm_calls") or (name == "llm_calls" and only_failed):
            continue
        if gap.get("at_most") is None or high is None:
            return None
        high = high + gap["at_most"] if name in COUNTED and not name.endswith("_tokens") else None
    return high
