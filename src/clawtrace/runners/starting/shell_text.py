"""Templates inside a shell command: a value becomes a variable's expansion, never part of the command's text.

So a message that holds quotes, ``$(…)`` or a newline is data to the shell, with any content.
"""

from __future__ import annotations

import re
from collections.abc import Callable

__all__ = ["shell_text"]

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
