"""Where reports are printed: plain text for pipes, files and CI; colour and boxes on a terminal.

Both consoles get the same content, as lines of styled segments and as tables. Text that an agent wrote reaches a
terminal only here, with its control characters made visible: a span name cannot move the cursor or repaint a verdict.
"""

from __future__ import annotations

import os
import re
import textwrap
import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple, TextIO

if TYPE_CHECKING:
    from rich.console import Console

__all__ = [
    "ConsoleOutput",
    "PlainConsole",
    "Segment",
    "TableColumn",
    "clean",
    "console_for",
    "cut",
    "display_width",
    "is_watched",
]

Segment = tuple[str, str]
"""Text and its style: a colour of rich, `bold`, `dim`, or nothing."""

_UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters, line and paragraph separators, marks that turn the reading direction, lone surrogates."""

_ASCII = str.maketrans(
    {"├": "|", "│": "|", "└": "`", "─": "-", "…": "...", "▶": ">", "✓": "+", "✗": "x", "≥": ">=", "→": "->"}
    | {"·": "-", "–": "-", "•": "*", "━": "="}
)


_GAP = 2
"""Space between the columns of a table."""
_LEAST_WIDTH = 12
"""What a column of texts keeps of a word that is longer, in a table that has to be narrowed."""


class TableColumn(NamedTuple):
    """One column of a table."""

    title: str
    align: Literal["left", "right"] = "left"


class ConsoleOutput(ABC):
    """An output for lines, paragraphs and tables."""

    width: int | None
    """Columns of a line; None when lines may be as long as they are."""

    @abstractmethod
    def line(self, *segments: Segment) -> None:
        """Write one line."""

    @abstractmethod
    def table(self, columns: Sequence[TableColumn], rows: Sequence[Sequence[Segment]]) -> None:
        """Write a table: one segment a cell."""

    def paragraph(
        self, text: str, *, indent: str = "", style: str = "", first: str | None = None, first_style: str | None = None
    ) -> None:
        """Write `text`, wrapped to the width; `first` goes before the first line in the place of `indent`.

        Args:
            text: what to write; its line breaks stay.
            indent: before every line.
            first: before the first line.
            first_style: of `first`; None for that of the text.
        """
        start = indent if first is None else first
        lines = [clean(line) for line in text.splitlines()] or [""]
        for number, line in enumerate(lines):
            lead = start if number == 0 else indent
            for place, piece in enumerate(self._wrap(line, lead, indent)):
                marked = len(start) if number == place == 0 and first_style is not None else 0
                self.line((piece[:marked], first_style or ""), (piece[marked:], style))

    def _wrap(self, line: str, first: str, rest: str) -> list[str]:
        if self.width is None or not line:
            return [first + line]
        return textwrap.wrap(
            line,
            max(self.width, len(rest) + 20),
            initial_indent=first,
            subsequent_indent=rest,
            break_on_hyphens=False,
            drop_whitespace=True,
        )


class PlainConsole(ConsoleOutput):
    """Text without colour, as pipes, files and CI logs want it: lines are as long as they are, nothing is cut."""

    width = None

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._ascii = not _can_encode(stream, "├─…▶✓")

    def line(self, *segments: Segment) -> None:
        """Write one line, without its styles."""
        text = clean("".join(text for text, _ in segments)).rstrip()
        self._stream.write((text.translate(_ASCII) if self._ascii else text) + "\n")

    def table(self, columns: Sequence[TableColumn], rows: Sequence[Sequence[Segment]]) -> None:
        """Write a table with two spaces between columns."""
        cells = [[column.title for column in columns], *([clean(text) for text, _ in row] for row in rows)]
        widths = [max(display_width(row[i]) for row in cells) for i in range(len(columns))]
        for row in cells:
            padded = (_pad(text, width, column.align) for text, width, column in zip(row, widths, columns, strict=True))
            self.line(((" " * _GAP).join(padded), ""))


class RichConsole(ConsoleOutput):
    """A terminal, through rich; colour obeys `NO_COLOR`."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self.width = console.width

    def line(self, *segments: Segment) -> None:
        """Write one line; what is too long is wrapped by the terminal, so that copying keeps it whole."""
        from rich.text import Text

        text = Text.assemble(*((clean(text), style) for text, style in segments))
        self._console.print(text, soft_wrap=True)

    def table(self, columns: Sequence[TableColumn], rows: Sequence[Sequence[Segment]]) -> None:
        """Write a table that fits the terminal's width; where none can, the rows with one column a line."""
        from rich import box
        from rich.table import Table
        from rich.text import Text

        cells = [[column.title for column in columns], *([clean(text) for text, _ in row] for row in rows)]
        widths = _narrowed(cells, columns, self._console.width - _GAP * (len(columns) - 1))
        if widths is None:
            self._records(cells[0], cells[1:])
            return
        table = Table(
            box=box.SIMPLE_HEAD, padding=(0, _GAP - 1, 0, 0), pad_edge=False, show_edge=False, header_style="bold"
        )
        for column, width in zip(columns, widths, strict=True):
            table.add_column(column.title, justify=column.align, overflow="fold", width=width)
        for row in rows:
            table.add_row(*(Text(clean(text), style=style) for text, style in row))
        self._console.print(table)

    def _records(self, titles: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        lead = max(map(display_width, titles)) + _GAP
        for number, row in enumerate(rows):
            if number:
                self.line()
            for title, text in zip(titles, row, strict=True):
                self.paragraph(text, first=_pad(title, lead, "left"), indent=" " * lead)


def console_for(stream: TextIO) -> ConsoleOutput:
    """Return a rich console when a person watches `stream` on a terminal, else a plain one without a width."""
    if not is_watched(stream):
        return PlainConsole(stream)
    from rich.console import Console

    return RichConsole(Console(file=stream, highlight=False))


def is_watched(stream: TextIO) -> bool:
    """Whether a person watches `stream` on a terminal that can draw; in CI none does."""
    return stream.isatty() and not os.environ.get("CI") and os.environ.get("TERM") != "dumb"


def clean(text: str) -> str:
    """Return `text` with control characters as Python would escape them: it stays on its line and paints nothing."""
    return _UNSAFE.sub(lambda match: match.group().encode("unicode_escape", "surrogatepass").decode("ascii"), text)


def display_width(text: str) -> int:
    """Return how many columns `text` takes on a terminal."""
    if text.isascii():
        return len(text)
    wide = sum(unicodedata.east_asian_width(char) in "WF" for char in text)
    marks = sum(unicodedata.combining(char) != 0 for char in text)
    return len(text) + wide - marks


def cut(text: str, width: int) -> str:
    """Return `text` in at most `width` columns, its end replaced by an ellipsis when it was cut."""
    if display_width(text) <= width:
        return text
    kept = text[: max(width - 1, 0)]
    while kept and display_width(kept) > width - 1:
        kept = kept[:-1]
    return kept + "…"


def _narrowed(cells: Sequence[Sequence[str]], columns: Sequence[TableColumn], room: int) -> list[int] | None:
    """Return widths of columns that fit into `room`; None where there are none.

    Figures keep their width. Of the texts the widest gives way first: at its white space, then also within words.
    """
    widths = [min(max(display_width(row[i]) for row in cells), max(room, 1)) for i in range(len(columns))]
    texts = [i for i, column in enumerate(columns) if column.align == "left"]
    words = {i: max((display_width(word) for row in cells for word in row[i].split()), default=0) for i in texts}
    for least in (words, {i: min(words[i], _LEAST_WIDTH) for i in texts}):
        while sum(widths) > room and (wide := [i for i in texts if widths[i] > least[i]]):
            widths[max(wide, key=lambda i: (widths[i], i))] -= 1
    return widths if sum(widths) <= room else None


def _pad(text: str, width: int, align: str) -> str:
    space = " " * (width - display_width(text))
    return space + text if align == "right" else text + space


def _can_encode(stream: TextIO, text: str) -> bool:
    try:
        text.encode(getattr(stream, "encoding", None) or "utf-8")
    except (UnicodeEncodeError, LookupError):
        return False
    return True
