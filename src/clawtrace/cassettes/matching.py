"""What a request means, by which a recorded answer is found: all that a model could answer differently to.

What differs from run to run without a meaning (times, temporary paths, ids) is replaced by a word for its kind. Ids may mean
something after all, so they are kept apart: of several recorded requests with the same meaning, the one is taken that has most
of them in common.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

from clawtrace.assertions.matching.json_path import parse_path, without
from clawtrace.support.yaml_writing import readable_yaml

__all__ = ["Meaning", "Rules", "difference", "nearest"]

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = rf"(?:{'|'.join(_MONTHS)})[a-z]*\.?"
_CLOCK = r"\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?(?: ?[ap]m)?(?: ?(?:Z\b|UTC\b|GMT\b|[+-]\d{2}:?\d{2}))?"
_DAY = rf"""(?xi) \b(?:(?:mon|tues|wednes|thurs|fri|satur|sun)day,?[ ])?
    (?: (?P<y>\d{{4}})-(?P<m>\d\d)-(?P<d>\d\d) | (?P<mon>{_MONTH})[ ](?P<d2>\d{{1,2}})(?:st|nd|rd|th)?,?[ ](?P<y2>\d{{4}})
      | (?P<d3>\d{{1,2}})[ ](?P<mon3>{_MONTH})[ ](?P<y3>\d{{4}}) )
    (?:(?:T|,?[ ](?:at[ ])?){_CLOCK.replace(" ", "[ ]")})? (?!\w)"""
_TIMES = (re.compile(_DAY), re.compile(r"\b(?P<unix>1\d{9})(?:\d{3}|\.\d+)?\b"))
"""Dates with and without a time, and seconds or milliseconds of Unix; what counts is whether they are of the request's day."""
_NEAR_S = 36 * 3600.0
_BUILT_IN: tuple[tuple[str, str, str], ...] = (
    (r"\[REDACTED:([\w-]+):[0-9a-f]{8}\]", r"<secret \1>", ""),
    (
        r"(?:/[\w.@~+-]{1,255}){1,64}/runs/[\w.-]{1,128}/[\w.-]{1,128}/\d+(?=/(?:workspace|gateway)\b)",
        "<run folder>",
        "/(?:workspace|gateway)",
    ),
    (
        r"\b[\w.-]{1,128}/[\w.-]{1,128}/[\w.-]{1,128}/\d+-[0-9a-f]{8}(?:-attempt\d+)?\b",
        "<run id>",
        r"/\d+-[0-9a-f]{8}\b",
    ),
    (r"(?:/private)?(?:/var/folders/[\w+-]+/[\w+-]+/T|/var/tmp|/tmp)/[\w.+-]+", "<temporary folder>", ""),
)
"""Patterns with what takes their place; the last is found wherever they are, and sooner in a long text that is none."""
_UUID = re.compile(r"\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b")
_IDS = re.compile(r"id|(\w+_)?(call|use)_id|toolCallId")
"""Keys of ids that tie a call to its result: what counts is which belong together."""
_FREE = frozenset(("args", "arguments", "input", "response", "parameters", "input_schema", "properties"))
"""Keys of mappings that tools define: an id in them is what it is."""
_LEFT_OUT = frozenset(("model", "metadata", "user", "safety_identifier", "prompt_cache_key", "prompt_cache_retention"))
"""Keys of a request's body that no answer depends on, and the model, which is compared by itself."""


class Meaning(NamedTuple):
    """One request as it is compared."""

    digest: str
    """Of what it means: 64 hex digits."""
    content: Mapping[str, Any]
    """What it means, as JSON values."""
    ids: tuple[str, ...]
    """The ids that were replaced, in order."""


@dataclass(frozen=True, slots=True)
class Rules:
    """What is left out of a request before it is compared."""

    normalise: tuple[tuple[str, str], ...] = ()
    """Own regular expressions, each with what takes the place of what it finds; before the built-in ones."""
    ignore: tuple[str, ...] = ()
    """JSON paths in the request's body."""

    def meaning(self, api: str, model: str, path: str, body: Any, at: float) -> Meaning:
        """Return what a request means.

        Args:
            api: its protocol; `other` for one that is known by its path alone, `mcp` for a server of tools.
            model: which model is asked.
            path: at the provider.
            body: JSON value.
            at: when it was asked, in seconds since the epoch: a time of about then says when it was, and no more.
        """
        own = ((pattern, word, "") for pattern, word in self.normalise)
        reading = _Reading([(re.compile(one), word, re.compile(sign)) for one, word, sign in (*own, *_BUILT_IN)], at)
        if isinstance(body, dict):
            body = {key: value for key, value in body.items() if key not in _LEFT_OUT}
        body = reading.value(without(body, tuple(map(parse_path, self.ignore))))
        streamed = {"stream": True} if ":stream" in path else {}
        named = {"path": reading.text(path)} if api in ("other", "mcp") else {}
        content = {"api": api, "model": model, **named, **streamed, "body": body}
        return Meaning(hashlib.sha256(_canonical(content).encode()).hexdigest(), content, tuple(reading.ids))


class _Reading:
    """One request being read: which ids it has."""

    def __init__(self, rules: Sequence[tuple[re.Pattern[str], str, re.Pattern[str]]], at: float) -> None:
        self._rules = rules
        self._at = at
        self._words: dict[str, str] = {}
        self.ids: list[str] = []

    def value(self, value: Any, key: str = "", *, free: bool = False) -> Any:
        if isinstance(value, str):
            return self._id(value) if _IDS.fullmatch(key) and not free else self.text(value)
        if isinstance(value, dict):
            free = free or key in _FREE
            return {name: self.value(value[name], name, free=free) for name in sorted(value)}
        return [self.value(one, free=free) for one in value] if isinstance(value, list) else value

    def _id(self, text: str) -> str:
        self.ids.append(text)
        return self._words.setdefault(text, f"<id {len(self._words) + 1}>")

    def text(self, text: str) -> str:
        for pattern, word, sign in self._rules:
            if sign.search(text):
                text = pattern.sub(word, text)
        for pattern in _TIMES:
            text = pattern.sub(self._time, text)
        self.ids += _UUID.findall(text)
        return _UUID.sub("<uuid>", text)

    def _time(self, found: re.Match[str]) -> str:
        """Return what stands for a time of the request's day; any other means what it says."""
        when = _seconds(found.groupdict())
        near = when is not None and abs(when - self._at) <= _NEAR_S
        return "<now>" if near else found[0]


def _seconds(of: Mapping[str, str | None]) -> float | None:
    """Return the time that a match of `_TIMES` names, a date as its noon; None where there is no such day."""
    if unix := of.get("unix"):
        return float(unix)
    month = of["m"] or of["mon"] or of["mon3"] or ""
    number = int(month) if month.isdecimal() else _MONTHS.index(month[:3].lower()) + 1
    year, day = int(of["y"] or of["y2"] or of["y3"] or 0), int(of["d"] or of["d2"] or of["d3"] or 0)
    try:
        return datetime(year, number, day, 12, tzinfo=UTC).timestamp()
    except ValueError:
        return None


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def order(meaning: Meaning) -> tuple[str, ...]:
    """Return the place of a request in a file: by model and messages, a conversation's beginning before its continuation."""
    body = meaning.content["body"]
    lists = [body.get(key) for key in MESSAGES] if isinstance(body, dict) else []
    messages: list[Any] = next((one for one in lists if isinstance(one, list)), [])
    return (meaning.content["model"], *map(_canonical, messages), "", _canonical(meaning.content))


MESSAGES = ("messages", "input", "contents")
"""What the protocols call the list of a request's messages."""


# --- what was recorded nearest ----------------------------------------------------------------------------------------


_SHOWN_LINES = 60
_COMPARED = 24
"""Recorded requests that are compared line by line: those with most messages in common."""


def not_recorded(asked: Meaning, recorded: Sequence[tuple[Meaning, str]], times: int, name: str, why: str = "") -> str:
    """Return what to say of a request that was not recorded: the nearest one as a difference, and what to do.

    Args:
        recorded: what is recorded, each with its id.
        times: how often this very request is.
        name: the file.
        why: why it could not be recorded now, where that is known.
    """
    to_do = f"If the new request is meant, record it with `--mode auto`, or `eval --cassette-mode auto`{why}."
    what = f"a request to `{asked.content['model'] or asked.content['path']}`"
    if times:
        often = "once" if times == 1 else f"{times} times"
        return f"{what} was asked more often than it was recorded in {name}: {often}. {to_do}"
    place = nearest(asked, [meaning for meaning, _ in recorded])
    head = f"{what} was not recorded in {name}"
    if place is None:
        return f"{head}, which holds no exchange. {to_do}"
    meaning, exchange = recorded[place]
    diff = difference(meaning, asked, f"{exchange} in {name}")
    return f"{head}. {to_do} The nearest that was recorded, `{exchange}`, differs so:\n{diff}"


def nearest(asked: Meaning, recorded: Iterable[Meaning]) -> int | None:
    """Return the number of the recorded request that is most like the one that is asked; None where there is none."""
    parts, lines = set(order(asked)), _lines(asked)

    def in_common(one: Meaning) -> tuple[bool, bool, int]:
        alike = (one.content[name] == asked.content[name] for name in ("api", "model"))
        return (*alike, len(parts.intersection(order(one))))

    def likeness(one: Meaning) -> float:
        return difflib.SequenceMatcher(None, lines, _lines(one), autojunk=False).ratio()

    known = list(enumerate(recorded))
    best = sorted(known, key=lambda one: in_common(one[1]), reverse=True)[:_COMPARED]
    most = max((in_common(one)[:2] for _, one in best), default=None)
    alike = [one for one in best if in_common(one[1])[:2] == most]
    return max(alike, key=lambda one: (likeness(one[1]), -one[0]))[0] if alike else None


def difference(recorded: Meaning, asked: Meaning, name: str) -> str:
    """Return how a recorded request differs from the one that is asked: a unified diff of what they mean."""
    diff = list(difflib.unified_diff(_lines(recorded), _lines(asked), f"recorded {name}", "asked", n=2, lineterm=""))
    left = len(diff) - _SHOWN_LINES
    return "\n".join(diff[:_SHOWN_LINES] + ([f"… {left} more lines"] if left > 0 else []))


def _lines(meaning: Meaning) -> list[str]:
    return readable_yaml(dict(meaning.content)).splitlines()
