"""The environment of an agent: an allow-list of the caller's, the telemetry variables, and what the case says (spec: span-model.md §2).

The variables that make an agent export its spans here are a table of data, `telemetry_env.yaml` next to this file: each
variable, what it changes in what the agent emits, and the group by which it can be switched off. `clawtrace env` prints it.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

from clawtrace.runners.base import Protocol, TelemetryTarget
from clawtrace.support.yaml_reading import read_yaml

__all__ = [
    "ALLOWED",
    "SEARCHED",
    "allowed_environment",
    "is_removed",
    "kept_back",
    "switch_names",
    "table",
    "telemetry_variables",
    "with_telemetry",
]

_TABLE = Path(__file__).with_name("telemetry_env.yaml")
SEARCHED = frozenset({"PYTHONPATH", "NODE_PATH", "CLASSPATH", "RUBYLIB", "PERL5LIB"})
"""Variables whose folders programs load code from."""
_PLAIN = "/-._~"
"""Characters that parsers of pairs and of URLs leave alone; everything else is percent-encoded."""


@dataclass(frozen=True, slots=True)
class Variable:
    """One variable of the table."""

    name: str
    group: str
    value: str
    """With placeholders in single braces."""
    changes: str
    """One sentence: what it changes in what the agent emits."""
    merge: Literal["pairs", "list"] | None = None
    """How the user's own value is kept along with ours; None: ours replaces it."""
    instead_of: Mapping[str, str] = field(default_factory=dict)
    """Another variable's name to the value that this one takes when that one is switched off."""
    asked_for: bool = False
    """It is set only where `telemetry_env` switches it, or its group, on."""


@dataclass(frozen=True, slots=True)
class Removed:
    """Variables of the caller that are taken away."""

    match: str
    """Name or glob."""
    why: str


@dataclass(frozen=True, slots=True)
class Table:
    """The whole table."""

    groups: Mapping[str, str]
    variables: tuple[Variable, ...]
    removed: tuple[Removed, ...]


@cache
def table() -> Table:
    """Read the table."""
    data: dict[str, Any] = read_yaml(_TABLE.read_bytes())
    return Table(
        groups=data["groups"],
        variables=tuple(Variable(**entry) for entry in data["variables"]),
        removed=tuple(Removed(**entry) for entry in data["removed"]),
    )


def switch_names() -> list[str]:
    """Return what `telemetry_env` may name: groups that hold variables, and variables."""
    names = [variable.name for variable in table().variables]
    return sorted({variable.group for variable in table().variables}) + names


def telemetry_variables(target: TelemetryTarget, protocol: Protocol, run_id: str) -> Iterator[tuple[Variable, str]]:
    """Yield each variable that is on, with its value for this run."""
    switches = target.switches
    off = {
        variable.name
        for variable in table().variables
        if switches.get(variable.name, switches.get(variable.group, not variable.asked_for)) is False
    }
    values = _placeholders(target, protocol, run_id)
    for variable in table().variables:
        if variable.name in off:
            continue
        chosen = switches.get(variable.name)
        if isinstance(chosen, str):
            yield variable, chosen
            continue
        value = next((instead for name, instead in variable.instead_of.items() if name in off), variable.value)
        yield variable, value.format_map(values)


def merge_value(variable: Variable, own: str | None, value: str) -> str:
    """Return `value` together with the user's `own`, whose entries of other names stay as they are written."""
    if not own or variable.merge is None:
        return value
    ours = value.split(",")
    if variable.merge == "pairs":
        names = {pair.split("=", 1)[0].strip().lower() for pair in ours}
        kept = [pair for pair in own.split(",") if pair.strip() and pair.split("=", 1)[0].strip().lower() not in names]
    else:
        kept = [entry for entry in own.split(",") if entry.strip() and entry.strip() not in ours]
    return ",".join(filter(None, [*kept, *ours]))


def is_removed(name: str) -> bool:
    """Whether a variable of the caller is taken away from the agent."""
    return any(fnmatch.fnmatchcase(name, entry.match) for entry in table().removed)


def _placeholders(target: TelemetryTarget, protocol: Protocol, run_id: str) -> dict[str, str]:
    encoded = quote(run_id, safe=_PLAIN)
    grpc = protocol == "grpc"
    # Not `authorization: Bearer …`: exporters differ in whether they decode the blank.
    token = f"x-clawtrace-token={quote(target.token, safe=_PLAIN)}" if target.token else ""
    # Exporters fail on a header with other characters. The resource names the run as well, and over HTTP the path.
    header = f"x-clawtrace-run-id={encoded}" if run_id.isascii() and run_id.isprintable() else ""
    return {
        "headers": ",".join(filter(None, (header, token))),
        "endpoint": target.grpc if grpc else f"{target.http}/run/{encoded}",
        "http": target.http,
        "grpc_port": target.grpc.rpartition(":")[2],
        "protocol": protocol,
        "simple_protocol": "grpc" if grpc else "http",
        "run_id": encoded,
        "resource": "".join(f",{name}={quote(text, safe=_PLAIN)}" for name, text in target.resource.items()),
        "plain_run_id": run_id,
        "traceparent": target.traceparent,
    }


# --- what an agent gets -----------------------------------------------------------------------------------------------


ALLOWED = (
    *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_*", "TZ", "TERM", "TMPDIR", "XDG_*"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS"),
    *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy"),
    *("VIRTUAL_ENV", "CONDA_PREFIX", "LD_LIBRARY_PATH"),
    *("OTEL_RESOURCE_ATTRIBUTES", "OTEL_SERVICE_NAME"),  # they are merged
)
"""Variables of the caller that an agent gets, as names or globs: its system, certificates, proxies, environments of Python, and
what it says of itself. Keys and tokens are not among them: a case names what its agent needs in `pass_env`, so that no secret
reaches an agent by accident."""


def allowed_environment(caller: Mapping[str, str], more: Iterable[str] = ()) -> dict[str, str]:
    """Return the variables of `caller` that the allow-list or `more` (names or globs) lets through."""
    patterns = [*ALLOWED, *more]
    return {name: value for name, value in caller.items() if any(fnmatch.fnmatchcase(name, p) for p in patterns)}


_OURS = ("OTEL_", "CLAWTRACE_")
_A_NAME = re.compile(r"[A-Z][A-Z0-9]*_[A-Z0-9_]+|(?<=['\"`$])[A-Z][A-Z0-9]{2,}")
"""What reads like a variable: `DEBUG` is also a word of logs, unless it is quoted."""
_CODE_NOT_FOUND = re.compile("No module named|Cannot find (?:module|package)")


def kept_back(caller: Mapping[str, str], got: Mapping[str, str], said: str) -> list[str]:
    """Return the variables of `caller` that an agent did not get and seems to miss, by what it `said` when it failed."""
    words = set(_A_NAME.findall(said))
    words |= SEARCHED if _CODE_NOT_FOUND.search(said) else set()
    return sorted(name for name in caller.keys() - got.keys() if name in words and not name.startswith(_OURS))


def with_telemetry(
    env: Mapping[str, str], own: Mapping[str, str], target: TelemetryTarget, protocol: Protocol, run_id: str
) -> dict[str, str]:
    """Return `env` with the telemetry variables, then `own` (what the case sets itself).

    A variable that the case sets itself wins, except that lists and pairs are merged: a case may add resource
    attributes or headers and cannot lose the run id by it.
    """
    result = {name: value for name, value in env.items() if not is_removed(name)}
    result.update(own)
    for variable, value in telemetry_variables(target, protocol, run_id):
        if variable.merge is not None:
            result[variable.name] = merge_value(variable, result.get(variable.name), value)
        elif variable.name not in own:
            result[variable.name] = value
    return result
