"""A second reading of spans as facts, written from the specification alone: slow, plain, and of no line of the engine.

It reads what a program writes that follows OpenTelemetry's GenAI conventions. Rows are mappings; `certain` says whether the row is
there in every world that the spans allow, a value that nothing tells is `UNKNOWN`, and `gaps` are rows that nothing shows.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

UNKNOWN = "?"
ANY = 1_000_000_000
"""More than any number that is asked for."""
LLM = ("chat", "text_completion", "generate_content")

Row = dict[str, Any]


@dataclass
class Facts:
    """What is known of a run."""

    llm: list[Row] = field(default_factory=list)
    tools: list[Row] = field(default_factory=list)
    agents: list[Row] = field(default_factory=list)
    errors: list[Row] = field(default_factory=list)
    gaps: set[str] = field(default_factory=set)
    """Relations of which any number of rows may be missing; `failed` is of failed requests to models alone."""
    turns: int = 1
    reasons: set[str] = field(default_factory=set)
    """Why the trace is not complete."""
    spans: list[tuple[int, int | None]] = field(default_factory=list)
    """Start and end of each span of the agent's work."""
    lengths: dict[str, list[int | None]] = field(default_factory=dict)
    """How long each span of a kind took, None where it never ended."""
    final: Any = UNKNOWN
    """The last turn's answer; None where its work ended in a failure."""


def kind_of(span: Row) -> str:
    """Return what a span is by the conventions: llm, tool, agent, handoff, infra or other."""
    said = span["attributes"]
    operation = said.get("gen_ai.operation.name")
    if said.get("mcp.method.name") == "tools/call":
        return "tool"
    if "mcp.method.name" in said or any(key.startswith("http.") for key in said):
        return "infra"
    if operation == "execute_tool":
        return "handoff" if said.get("gen_ai.transfer.mode") == "pass_control" else "tool"
    return {**dict.fromkeys(LLM, "llm"), "invoke_agent": "agent"}.get(operation, "other")


def failed(span: Row) -> bool:
    """Return whether a span says that it failed."""
    return span["status"].get("code") == 2 or ("error.type" in span["attributes"] and span["status"].get("code") != 1)


def answered(span: Row) -> bool:
    """Return whether a model's span tells anything of an answer."""
    return any(key.startswith(("gen_ai.response.", "gen_ai.usage.", "gen_ai.output.")) for key in span["attributes"])


class Reading:
    """The spans of one run, as a tree, and the facts in them."""

    def __init__(self, spans: list[Row]) -> None:
        unique = {(span["trace"], span["id"]): span for span in reversed(spans)}
        self.spans = sorted(unique.values(), key=lambda span: (span["start"], -(span["end"] or ANY**3)))
        self.of = {span["id"]: span for span in self.spans}
        self.kinds = {span["id"]: kind_of(span) for span in self.spans}
        self.facts = Facts()
        self._turns()
        self._agents()
        self._llm()
        self._tools()
        self._errors()
        self._completeness()
        self._final()

    def above(self, span: Row) -> list[Row]:
        """Return the spans around a span, the nearest first."""
        found = []
        while span["parent"] in self.of:
            span = self.of[span["parent"]]
            found.append(span)
        return found

    def below(self, span: Row) -> list[Row]:
        """Return the spans inside of a span."""
        return [one for one in self.spans if span in self.above(one)]

    def _turns(self) -> None:
        """A root trace is a turn, unless it lies within another one: that is a thread of it."""
        self.turn: dict[str, Any] = {}
        reach, turn = 0, 0
        for span in self.spans:
            if span["trace"] in self.turn:
                continue
            members = [one for one in self.spans if one["trace"] == span["trace"]]
            if span["start"] >= reach:
                turn += 1
            reach = max([reach, *(one["end"] or one["start"] for one in members)])
            self.turn[span["trace"]] = turn
        self.facts.turns = turn

    def _agent_around(self, span: Row) -> Any:
        for one in self.above(span):
            if self.kinds[one["id"]] == "agent":
                return one["id"]
        return UNKNOWN if self._cut(span) or not self._has_agents(span) else None

    def _has_agents(self, span: Row) -> bool:
        return any(self.kinds[one["id"]] == "agent" for one in self.spans if one["trace"] == span["trace"])

    def _cut(self, span: Row) -> bool:
        """Whether the top of what is around a span names a parent that was never received."""
        top = (self.above(span) or [span])[-1]
        return top["parent"] is not None

    def _beside(self, span: Row) -> bool:
        """Whether something of another trace was at work when a span began: a thread begins so, without its context."""
        return any(
            one["trace"] != span["trace"] and one["start"] <= span["start"] <= (one["end"] or ANY**3)
            for one in self.spans
        )

    def _agents(self) -> None:
        hands = [span for span in self.spans if self.kinds[span["id"]] == "handoff"]
        for span in self.spans:
            if self.kinds[span["id"]] != "agent":
                continue
            name = span["attributes"].get("gen_ai.agent.name", UNKNOWN)
            parent = self._agent_around(span)
            before = [
                one
                for one in hands
                if one["attributes"]["gen_ai.transfer.target.name"] == name and one["start"] < span["start"]
            ]
            if before:
                parent = self._agent_around(before[-1])
                hands.remove(before[-1])
            elif parent is None and self._beside(span):
                parent = UNKNOWN
            self.facts.agents.append(
                {"id": span["id"], "name": name, "parent": parent, "start": span["start"], "end": span["end"], "turn": self.turn[span["trace"]], "certain": True}
            )  # fmt: skip

    def _llm(self) -> None:
        self.calls: list[tuple[Row, Row]] = []
        """Each model call with its span."""
        seen: set[str] = set()
        tells = any(answered(one) for one in self.spans if self.kinds[one["id"]] == "llm")
        for span in self.spans:
            if self.kinds[span["id"]] != "llm":
                continue
            around = [one for one in self.above(span) if self.kinds[one["id"]] in ("llm", "tool", "agent", "handoff")]
            said = span["attributes"]
            answer = said.get("gen_ai.response.id")
            if (answer and answer in seen) or (around and self.kinds[around[0]["id"]] == "llm"):
                continue
            seen |= {answer} if answer else set()
            ok: Any = not failed(span)
            tells_here = tells or any(failed(one) for one in self.above(span))
            if ok and not answered(span) and tells_here and self._given_up(span):
                ok = UNKNOWN
            row = {
                "ok": ok, "request": said.get("gen_ai.request.model"), "response": said.get("gen_ai.response.model"),
                "input": said.get("gen_ai.usage.input_tokens", UNKNOWN if ok else 0), "output": said.get("gen_ai.usage.output_tokens", UNKNOWN if ok else 0),
                "start": span["start"], "agent": self._agent_around(span), "turn": self.turn[span["trace"]], "certain": span["end"] is not None,
            }  # fmt: skip
            self.calls.append((row, span))
            self.facts.llm.append(row)

    def _given_up(self, span: Row) -> bool:
        """Whether the work around a model call ended there: nothing of it followed."""
        around = self.above(span)
        if not around:
            return True
        return not any(one["start"] > span["start"] and span not in self.above(one) for one in self.below(around[0]))

    def _tools(self) -> None:
        rows: list[tuple[Row, Row, set[Any]]] = []
        for span in self.spans:
            if self.kinds[span["id"]] != "tool":
                continue
            outer = None
            for one in self.above(span):
                if self.kinds[one["id"]] == "agent":
                    break
                outer = next((row for row, of, _ in rows if of is one and self._may_be_one(span, of)), outer)
            if (
                outer is None and span["parent"] not in self.of and span["kind"] == 2
            ):  # the server's side of a call in its time
                outer = next(
                    (
                        row
                        for row, _, _ in rows
                        if row["name"] == self._tool_name(span) and row["start"] <= span["start"] <= row["end"]
                    ),
                    None,
                )
            said = span["attributes"]
            outcome: Any = "error" if failed(span) else "ok"
            again = outer is not None and self._asked_within(span, next(of for row, of, _ in rows if row is outer))
            if outer is not None and "error" in (outcome, outer["outcome"]):
                outer["outcome"] = UNKNOWN if again else "error"
            if outer is not None and not again:
                continue
            if outcome == "ok" and (span["end"] is None or self._cut_short(span)):
                outcome = UNKNOWN
            row = {
                "name": self._tool_name(span), "arguments": json.loads(said["gen_ai.tool.call.arguments"]) if "gen_ai.tool.call.arguments" in said else UNKNOWN,
                "outcome": outcome, "result": self._result(span), "start": span["start"], "end": span["end"] or ANY**3, "agent": self._agent_around(span), "turn": self.turn[span["trace"]],
                "certain": not again,
            }  # fmt: skip
            rows.append((row, span, {said.get("gen_ai.tool.call.id")} - {None}))
        self.facts.tools = [row for row, _, _ in rows]
        self._requests(rows)
        self.facts.tools.sort(key=lambda row: row["start"])

    def _result(self, span: Row) -> Any:
        """What a call gave back: as its span says, or the message that has its id."""
        said = span["attributes"]
        told = [
            one["response"]
            for later in self.spans
            for one in _parts(later, "gen_ai.input.messages", "tool_call_response")
            if one["id"] == said.get("gen_ai.tool.call.id")
        ]
        return said.get("gen_ai.tool.call.result", next(iter(told), UNKNOWN))

    def _asked_within(self, span: Row, outer: Row) -> bool:
        """Whether a model that a tool had asked may have called that tool again: no id tells."""
        asked = any(of["end"] and of["end"] <= span["start"] and outer in self.above(of) for _, of in self.calls)
        return asked and "gen_ai.tool.call.id" not in span["attributes"]

    def _may_be_one(self, span: Row, outer: Row) -> bool:
        """Whether two spans of tools may be of one call: they have one name, and not two ids."""
        ids = {one["attributes"].get("gen_ai.tool.call.id") for one in (span, outer)} - {None}
        return self._tool_name(span) == self._tool_name(outer) and len(ids) < 2

    def _tool_name(self, span: Row) -> Any:
        return span["attributes"].get("gen_ai.tool.name", UNKNOWN)

    def _cut_short(self, span: Row) -> bool:
        """Whether what a tool call was doing was given up: its agent failed, or asked a model that never answered."""
        inside = self.below(span)
        return any(row["ok"] is not True and of in inside and self._given_up(of) for row, of in self.calls)

    def _requests(self, rows: list[tuple[Row, Row, set[Any]]]) -> None:
        """Find which execution carried out each request; what none did may have been carried out where no span shows it."""
        free = list(rows)
        told = [span for row, span in self.calls if row["ok"] is True]
        seen: set[str] = set()
        for span in told:
            for part in _parts(span, "gen_ai.output.messages", "tool_call"):
                if part["id"] in seen:
                    continue
                seen.add(part["id"])
                by_id = [one for one in free if part["id"] in one[2]]
                by_name = [one for one in free if not one[2] and one[0]["name"] == part["name"] and one[0]["start"] >= span["start"] and one[0]["arguments"] in (UNKNOWN, part["arguments"])]  # fmt: skip
                if by_id or by_name:
                    done = (by_id or by_name)[0]
                    free.remove(done)
                    if done[0]["arguments"] == UNKNOWN:
                        done[0]["arguments"] = (
                            part["arguments"]
                            if by_id or len({json.dumps(p["arguments"]) for p in self._asked(part["name"])}) == 1
                            else UNKNOWN
                        )
                elif not self._handed(part, span) and self._offered(part, span):
                    answered = [
                        later["start"]
                        for later in told
                        for one in _parts(later, "gen_ai.input.messages", "tool_call_response")
                        if part["id"] == one["id"]
                    ]
                    asked = span["end"] or span["start"]
                    self.facts.tools.append(
                        {"name": part["name"], "arguments": part["arguments"], "outcome": UNKNOWN, "result": UNKNOWN, "start": asked, "window": (asked, min(answered, default=asked + ANY), len(seen)),
                         "agent": self._agent_around(span), "turn": self.turn[span["trace"]], "certain": False, }
                    )  # fmt: skip
        for row, span in self.calls:
            silent = "gen_ai.output.messages" not in span["attributes"]
            asked = span["attributes"].get("gen_ai.response.finish_reasons") != ["stop"]
            if silent and row["ok"] is not False and asked and not self._ran_after(span, rows):
                self.facts.gaps.add("tools")

    def _asked(self, name: str) -> list[Row]:
        return [
            part
            for _, span in self.calls
            for part in _parts(span, "gen_ai.output.messages", "tool_call")
            if part["name"] == name
        ]

    def _ran_after(self, span: Row, rows: list[Any]) -> bool:
        """Whether executions follow a model call in its agent before that asks again: what was asked for has spans.

        A span of an MCP client is of one tool's way to its server, and says nothing of tools that have no server.
        """
        rows = [one for one in rows if "mcp.method.name" not in one[1]["attributes"]]
        later = [
            one
            for _, one in self.calls
            if one["start"] > span["start"] and self._agent_around(one) == self._agent_around(span)
        ]
        until = min((one["start"] for one in later), default=ANY**3)
        return bool(rows) and (not later or any(span["start"] < row["start"] < until for row, _, _ in rows))

    def _offered(self, part: Row, span: Row) -> bool:
        told = span["attributes"].get("gen_ai.tool.definitions")
        return told is None or any(one["name"] == part["name"] for one in json.loads(told))

    def _handed(self, part: Row, span: Row) -> bool:
        return any(
            self.kinds[one["id"]] == "handoff" and one["attributes"].get("gen_ai.tool.name") == part["name"] and one["start"] >= span["start"]
            for one in self.spans
        )  # fmt: skip

    def _errors(self) -> None:
        for span in self.spans:
            inside = self.below(span)
            kind = self.kinds[span["id"]]
            if (
                kind == "infra"
                or not failed(span)
                or any(failed(one) and self.kinds[one["id"]] != "infra" for one in inside)
            ):
                continue
            said = span["attributes"]
            of = (
                said.get("gen_ai.tool.name")
                if kind == "tool"
                else said.get("gen_ai.request.model")
                if kind == "llm"
                else None
            )
            rows = self.facts.tools if kind == "tool" else self.facts.llm
            recovered: Any = False
            for row in rows if of else ():
                same = row["name"] == of if kind == "tool" else row["agent"] == self._agent_around(span)
                good = same and (row["outcome"] in ("ok", UNKNOWN) if kind == "tool" else row["ok"])
                sure = good is True and row["certain"] and (kind == "llm" or row["outcome"] == "ok")
                if good and row["start"] >= (span["end"] or ANY**3):
                    recovered = True if sure else recovered or UNKNOWN
            self.facts.errors.append(
                {"name": of or span["name"], "also": (span["name"],), "recovered": recovered, "start": span["start"], "agent": span["id"] if kind == "agent" else self._agent_around(span),
                 "turn": self.turn[span["trace"]], "certain": True}
            )  # fmt: skip

        for row in self.facts.tools:  # what no span shows may have failed
            if "window" in row:
                said = {"name": row["name"], "also": (), "recovered": UNKNOWN, "certain": False}
                self.facts.errors.append({**said, **{key: row[key] for key in ("start", "agent", "turn")}})

    def _lost_calls(self) -> bool:
        """Whether a model call is missing: an agent states more than those inside of it used, or a tool ran that no answer asked for."""
        for span in self.spans:
            stated = span["attributes"].get("gen_ai.usage.input_tokens")
            inside = [row["input"] for row, of in self.calls if span in self.above(of)]
            if (
                self.kinds[span["id"]] == "agent"
                and stated is not None
                and UNKNOWN not in inside
                and stated > sum(inside)
            ):
                return True
        told = [span for row, span in self.calls if row["ok"] is True]
        asked = {part["id"] for span in told for part in _parts(span, "gen_ai.output.messages", "tool_call")}
        ran = {span["attributes"].get("gen_ai.tool.call.id") for span in self.spans} - {None}
        return all("gen_ai.output.messages" in span["attributes"] for span in told) and not ran <= asked

    def _completeness(self) -> None:
        facts = self.facts
        if self._lost_calls():
            facts.gaps.add("llm")
        facts.spans = [(span["start"], span["end"]) for span in self.spans if self.kinds[span["id"]] != "infra"]
        if any(span["parent"] and span["parent"] not in self.of and not span["remote"] for span in self.spans):
            facts.reasons.add("missing_parent")
        if any(span["end"] is None for span in self.spans):
            facts.reasons.add("open_span")
        answered = [span for row, span in self.calls if row["ok"] is True]
        for last in answered[-1:]:
            wants = _parts(last, "gen_ai.output.messages", "tool_call") or last["attributes"].get(
                "gen_ai.response.finish_reasons"
            ) == ["tool_calls"]
            after = [
                one
                for one in self.spans
                if one["start"] >= (last["end"] or ANY**3) and self.kinds[one["id"]] != "infra"
            ]
            if wants and not after and not any(self.kinds[one["id"]] == "agent" for one in self.above(last)):
                facts.reasons.add("unanswered_tool_call")
        for span in self.spans:
            length = span["end"] and span["end"] - span["start"]
            facts.lengths.setdefault(self.kinds[span["id"]], []).append(length)
        facts.gaps.add("failed")  # what an SDK makes again by itself is in no span
        if facts.reasons:
            facts.gaps |= {"llm", "tools", "agents", "errors"}
            for row in facts.errors:  # what is missing may have been the retry of a tool or a model
                if row["recovered"] is False and row["name"] not in row["also"]:
                    row["recovered"] = UNKNOWN
        if not facts.agents:
            facts.gaps.add("agents")

    def _final(self) -> None:
        """The text of the last model call of the last turn, if no tool made it; a failure ended the turn without an answer."""
        last = [(row, span) for row, span in self.calls if row["turn"] == self.facts.turns][-1:]
        for row, span in last:
            texts = _parts(span, "gen_ai.output.messages", "text")
            if UNKNOWN in [one["ok"] for one, _ in self.calls] or any(
                self.kinds[one["id"]] == "tool" for one in self.above(span)
            ):
                continue
            if row["ok"] is False:
                self.facts.final = None
            elif row["ok"] is True and texts:
                self.facts.final = texts[-1]["content"]


def _parts(span: Row, key: str, kind: str) -> list[Row]:
    return [
        part
        for message in json.loads(span["attributes"].get(key, "[]"))
        for part in message["parts"]
        if part["type"] == kind
    ]
