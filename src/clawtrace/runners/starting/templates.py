r"""The ``{{name}}`` templates of strings in configuration files (spec: config.md §1).

One pass, no logic: what is inserted is never read again. ``\{{name}}`` writes the braces themselves.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from clawtrace.support.figures import utc_text

__all__ = ["NAMES", "RunValues", "escaped", "names_in", "render", "render_tree", "replaced", "session_id", "shell_text"]

NAMES: Mapping[str, str] = {
    "today": "local date on which the run started, `2026-11-20`",
    "now": "local time at which the run started with its offset, `2026-11-20T11:00:00+01:00`",
    "run_id": "id of the run",
    "session_id": "id of the run's session, a UUID: the same in all its turns",
    "case_id": "id of the case",
    "case_dir": "absolute path of the folder that holds the case file",
    "model_id": "id of the model, empty when the suite lists none",
    "workspace": "absolute path of the run's workspace",
    "run_started_at": "time at which the run started in UTC, `2026-11-20T10:00:00.000Z`",
    "python": "absolute path of the Python that runs clawtrace",
    "env.NAME": "the environment variable NAME of the shell that started clawtrace",
}
"""Every name that a template may contain, with its value."""

_TEMPLATE = re.compile(r"(\\?)\{\{\s*([A-Za-z_][\w.-]*)\s*\}\}")


class RunValues(NamedTuple):
    """The values of one run's templates: one clock, so that a prompt and an assertion agree on the day."""

    run_id: str
    case_id: str
    case_dir: str
    model_id: str | None
    workspace: str
    started_at: float
    """Seconds since the epoch."""
    env: Mapping[str, str]
    extra: Mapping[str, str] = {}
    """Names that only the runner knows, such as ``message``."""

    def value(self, name: str) -> str:
        """Return the value of `name`.

        Raises:
            KeyError: an unknown name, or an environment variable that is not set.
        """
        if name.startswith("env."):
            return self.env[name.removeprefix("env.")]
        if name in self.extra:
            return self.extra[name]
        local = datetime.fromtimestamp(self.started_at).astimezone()
        return {
            "today": local.date().isoformat(),
            "now": local.isoformat(timespec="seconds"),
            "run_id": self.run_id,
            "session_id": session_id(self.run_id),
            "case_id": self.case_id,
            "case_dir": self.case_dir,
            "model_id": self.model_id or "",
            "workspace": self.workspace,
            "python": sys.executable,
            "run_started_at": utc_text(local),
        }[name]


def session_id(run_id: str) -> str:
    """Return the UUID of a run's session: always the same for a run, and never that of another one."""
    import uuid  # takes as long to import as everything else here

    return str(uuid.uuid5(uuid.NAMESPACE_OID, f"clawtrace:{run_id}"))


def names_in(text: str) -> list[str]:
    """Return the names of all templates in `text`, in order."""
    return [match[2] for match in _TEMPLATE.finditer(text) if not match[1]]


def escaped(text: str) -> str:
    """Return `text` so that rendering it gives `text` again."""
    return _TEMPLATE.sub(lambda match: "\\" + match[0], text)


def render(text: str, value: Callable[[str], str]) -> str:
    """Replace each template in `text` by what `value` returns for its name."""
    return _TEMPLATE.sub(lambda match: match[0][1:] if match[1] else value(match[2]), text)


def replaced(text: str, prefix: str, value: Callable[[str], str]) -> str:
    """Replace each template in `text` whose name begins with `prefix`; all others stay, and so do written braces."""
    return _TEMPLATE.sub(
        lambda match: value(match[2]) if not match[1] and match[2].startswith(prefix) else match[0], text
    )


def render_tree(data: Any, value: Callable[[str], str]) -> Any:
    """Render every text in a JSON-like value; keys stay as they are."""
    if isinstance(data, str):
        return render(data, value)
    if isinstance(data, dict):
        return {key: render_tree(item, value) for key, item in data.items()}
    if isinstance(data, list):
        return [render_tree(item, value) for item in data]
    return data


# --- in shell texts ---------------------------------------------------------------------------------------------------


_PIECE = re.compile(r"\\?\{\{\s*([A-Za-z_][\w.-]*)\s*\}\}|\\.|'|\"|[^\\'\"{]+|.", re.DOTALL)


def shell_text(text: str, variable: Callable[[str], str]) -> str:
    r"""Return `text` with each template replaced by an expansion of the variable that `variable` names.

    Quotes around a template are respected: unquoted it becomes ``"${NAME}"``, inside double quotes ``${NAME}``,
    inside single quotes the quotes are closed around it. ``\{{name}}`` writes the braces themselves.
    """
    result: list[str] = []
    quote = ""
    for match in _PIECE.finditer(text):
        piece = match[0]
        if match[1] and piece.startswith("\\"):
            piece = piece[1:]
        elif match[1]:
            expansion = f"${{{variable(match[1])}}}"
            piece = {"": f'"{expansion}"', '"': expansion, "'": f"'\"{expansion}\"'"}[quote]
        elif piece in ("'", '"'):
            quote = "" if quote == piece else (quote or piece)
        elif piece == "\\'" and quote == "'":
            quote = ""
        result.append(piece)
    return "".join(result)
