"""The tools offered to models, and whether every execution of one has a span (spec: certain-and-possible.md §4)."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence

from clawtrace.facts.calls.llm_calls import LlmCall
from clawtrace.facts.calls.run_spans import RunSpans
from clawtrace.facts.tools.definitions import listed
from clawtrace.facts.tools.results import Result
from clawtrace.facts.tools.tool_call import Execution
from clawtrace.facts.tools.tool_requests import ToolRequest

__all__ = ["Offers", "Written"]


class Offers:
    """The names of the tools offered to the model calls of a run, read only if a request is in doubt."""

    def __init__(self, run: RunSpans) -> None:
        self._run = run
        self._of_group: dict[int, frozenset[str]] | None = None

    def lack(self, request: ToolRequest) -> bool:
        """Return whether the model's offer is recorded and lacks the requested tool."""
        if request.served or request.asked_as != request.name:
            return False
        offered = self._groups().get(request.group)
        return bool(offered) and request.name not in (offered or ())

    def hold(self, request: ToolRequest) -> bool:
        """Return whether the model's offer is recorded and holds the requested tool."""
        return request.name in self._groups().get(request.group, ())

    def _groups(self) -> Mapping[int, frozenset[str]]:
        if self._of_group is None:
            read: dict[str, frozenset[str]] = {}
            self._of_group = {}
            for index in self._run.kinds.get("llm", ()):
                number, text = self._run.group[index], self._run.spans[index].tool_definitions
                if number is not None and text is not None:
                    if text not in read:
                        read[text] = _names(text)
                    self._of_group.setdefault(number, read[text])
        return self._of_group


def _names(text: str) -> frozenset[str]:
    """Return the names of the offered tools; none if the form of one is unknown."""
    found: set[str] = set()
    for value in listed(text):
        inners = (value.get(key) for key in ("function", "data")) if isinstance(value, dict) else ()
        inner = next((one for one in inners if isinstance(one, dict)), value)
        if not isinstance(inner, dict) or not isinstance(inner.get("name"), str):
            return frozenset()
        found.add(inner["name"])
    return frozenset(found)


class Written:
    """What a run shows about requests without a span of their execution.

    Args:
        run: the spans.
        models: the model calls, in order of start.
        carried_out: other requests with their executions: where one has a span, those of the same scope have one, too.
    """

    def __init__(
        self, run: RunSpans, models: Sequence[LlmCall], carried_out: Iterable[tuple[ToolRequest, Execution]]
    ) -> None:
        self._run = run
        self._last = {call.agent: call.group for call in models}
        self._writers = run.groups("llm")
        """The spans of each model call."""
        self._named: dict[str, int] = {}
        """The latest starts of spans of no known kind, by names that may be tools'."""
        for index in run.every("other", "chain") if run.messages else ():
            if run.unproven(index):
                span = run.spans[index]
                self._named[span.name] = max(self._named.get(span.name, 0), span.start_ns)
        self._proved = {(run.spans[one.index].scope, request.agent is None) for request, one in carried_out}

    def none(self, request: ToolRequest, answer: Result | None) -> bool:
        """Return whether a request was not carried out: it would have a span.

        A program may run tools itself, around its agents or in a separate loop, and then no span tells: so a result must
        have reached the agent at work, where others of its tools have spans; and without one the agent must have ended.
        """
        if request.served or "spans" not in self._said(request) or (answer is not None and answer.failed is False):
            return False
        if self._named.get(request.name, -1) >= request.start_ns:
            return False
        if answer is not None:
            return answer.inside and self._is_proved(request)
        if request.agent is None:
            return self._is_proved(request) and self._last[None] != request.group
        return self._run.spans[request.agent].end_ns is not None

    def told(self, request: ToolRequest, answer: Result, spanned: Container[str | None]) -> bool:
        """Return whether a result says for certain that a request was carried out.

        Where no span is written for executions it does, but of tools of which others write spans (`spanned`), and of one
        that the model was made to call: it stands for the form of an answer.
        """
        if request.served or answer.failed is False:
            return True
        said = self._said(request)
        forced = any(self._run.spans[index].forced_tool == request.name for index in self._writers[request.group])
        silent = "none" in said and "spans" not in said and not self._is_proved(request)
        unread = self._named.get(request.name, -1) >= request.start_ns
        return silent and request.name not in spanned and not forced and not unread

    def _around(self, request: ToolRequest) -> set[int]:
        return {*self._writers[request.group], *(() if request.agent is None else (request.agent,))}

    def _said(self, request: ToolRequest) -> set[str | None]:
        return set(map(self._run.executions_of, self._around(request)))

    def _is_proved(self, request: ToolRequest) -> bool:
        scopes = (self._run.spans[index].scope for index in self._around(request))
        return any((scope, request.agent is None) in self._proved for scope in scopes)
