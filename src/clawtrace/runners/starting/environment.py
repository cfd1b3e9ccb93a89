"""The environment of an agent: an allow-list of the caller's, the telemetry variables, and what the case says."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Mapping

from clawtrace.runners.base import Protocol, TelemetryTarget
from clawtrace.runners.starting.telemetry_env import is_removed, merge_value, telemetry_variables

__all__ = ["ALLOWED", "allowed_environment", "with_telemetry"]

ALLOWED: Mapping[str, str] = {
    "PATH": "finds programs",
    "HOME": "where an agent finds the user's settings",
    "USER": "the user's name",
    "LOGNAME": "the user's name",
    "SHELL": "which shell tools start",
    "LANG": "language and encoding",
    "LC_*": "language and encoding",
    "TZ": "the clock's zone",
    "TERM": "the terminal's kind",
    "TMPDIR": "temporary files",
    "XDG_*": "folders of settings, data and caches",
    "SSL_CERT_FILE": "certificates of the system or a proxy",
    "SSL_CERT_DIR": "certificates of the system or a proxy",
    "REQUESTS_CA_BUNDLE": "certificates of the system or a proxy",
    "CURL_CA_BUNDLE": "certificates of the system or a proxy",
    "NODE_EXTRA_CA_CERTS": "certificates of the system or a proxy",
    "HTTP_PROXY": "the proxy to use",
    "HTTPS_PROXY": "the proxy to use",
    "ALL_PROXY": "the proxy to use",
    "NO_PROXY": "hosts that need no proxy",
    "http_proxy": "the proxy to use",
    "https_proxy": "the proxy to use",
    "all_proxy": "the proxy to use",
    "no_proxy": "hosts that need no proxy",
    "VIRTUAL_ENV": "the active Python environment",
    "CONDA_PREFIX": "the active Python environment",
    "LD_LIBRARY_PATH": "libraries of manually installed programs",
    "OTEL_RESOURCE_ATTRIBUTES": "the user's resource attributes, which are merged",
    "OTEL_SERVICE_NAME": "the user's service name",
}
"""Variables of the caller that an agent gets, as names or globs, with what each is for. Keys and tokens are not
among them: a case names what its agent needs in `pass_env`, so that no secret reaches an agent by accident."""


def allowed_environment(caller: Mapping[str, str], more: Iterable[str] = ()) -> dict[str, str]:
    """Return the variables of `caller` that the allow-list or `more` (names or globs) lets through."""
    patterns = [*ALLOWED, *more]
    return {name: value for name, value in caller.items() if any(fnmatch.fnmatchcase(name, p) for p in patterns)}


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
