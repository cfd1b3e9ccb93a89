"""Whether an agent failed because the model's provider did: its last model call got no answer, for a provider's reason."""

from __future__ import annotations

import re

from clawtrace.model.query import Query
from clawtrace.store.api import QueryableStore

__all__ = ["provider_failure"]

_LAST_CALL = """
SELECT c.outcome AS outcome, e.error_type AS error_type
FROM llm_calls AS c
JOIN selected_runs AS r ON r.run_id = c.run_id
JOIN spans AS s ON s.run_id = c.run_id AND s.span_id = c.span_id
JOIN spans AS e ON e.run_id = c.run_id AND e.error_type IS NOT NULL
 AND (e.counted_in = c.span_id OR (e.tree_enter >= s.tree_enter AND e.tree_leave <= s.tree_leave))
WHERE c.call_no = (SELECT max(l.call_no) FROM llm_calls AS l WHERE l.run_id = c.run_id)
"""
"""The errors of the call that started last: its own spans', and those below them, such as an HTTP client's."""

_CODES = re.compile(r"40[1237-9]|425|429|5\d\d")
"""No access, no credit, too many requests, the server's own. What is wrong with the request itself is the agent's doing."""

_NAMES = frozenset({
    # The Python and JavaScript SDKs of OpenAI and Anthropic, and the `type` of their error bodies.
    "apiconnectionerror", "apiconnectiontimeouterror", "apitimeouterror", "authenticationerror", "authenticationfailed",
    "billingerror", "insufficientquota", "internalservererror", "overloadederror", "permissiondeniederror",
    "permissionerror", "ratelimiterror", "ratelimitexceeded", "servererror", "serviceunavailableerror", "timeouterror",
    # Google, AWS, Azure.
    "accessdeniedexception", "clientauthenticationerror", "deadlineexceeded", "internalserverexception",
    "modelnotreadyexception", "modeltimeoutexception", "permissiondenied", "resourceexhausted", "servicerequesterror",
    "serviceunavailable", "serviceunavailableexception", "throttlingexception", "toomanyrequests", "unauthenticated",
    # HTTP clients and the operating system; `timeout` is OpenTelemetry's word.
    "connecterror", "connectionabortederror", "connectionerror", "connectionrefusederror", "connectionreseterror",
    "connecttimeout", "econnrefused", "econnreset", "enotfound", "etimedout", "gaierror", "pooltimeout", "readerror",
    "readtimeout", "remotedisconnected", "remoteprotocolerror", "timeout", "writeerror", "writetimeout",
})  # fmt: skip
"""Names of errors, without what precedes the last dot, and without `_`, in small letters."""


def provider_failure(store: QueryableStore, run_id: str) -> str | None:
    """Return the error of a provider that the last model call of a run ended with; None when it ended otherwise.

    It is recognised by codes and by names of errors, never by prose. Facts must be current.
    """
    store.select_runs([run_id])
    answer = store.ask(Query(_LAST_CALL))
    found = [error_type for outcome, error_type in answer.rows if outcome != "ok"]
    return next((one for one in found if _is_providers(one)), None)


def _is_providers(error_type: str) -> bool:
    if _CODES.fullmatch(error_type.strip()):
        return True
    name = re.split(r"[.:/]", error_type.strip())[-1]
    return re.sub(r"[\W_]", "", name).casefold() in _NAMES
