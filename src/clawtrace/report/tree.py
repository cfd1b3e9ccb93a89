"""A run's spans as a tree: kind, tokens, cost, time, errors; the spans that decided carry a mark and the reason.

Long lists of siblings are folded, and the fold says how many spans it hides: nothing disappears silently. A failure is
shown, but for those that repeat it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from clawtrace.report.console import Segment, clean, cut, display_width
from clawtrace.support.figures import amount, count, dollars, duration

if TYPE_CHECKING:
    from clawtrace.verdicts.reading.tree_view import SpanNode

__all__ = ["tree_lines"]

_SHOWN_SIBLINGS = 24
"""A list of siblings up to this length is shown whole."""
_HEAD, _TAIL = 12, 4
"""How much of a longer one is shown."""
_SMALL_TREE = 20
"""Spans up to which a tree is small."""
_SHOWN_DEPTH = 16
"""Levels that are drawn as indentation; deeper spans say their depth."""

_NOT_COUNTED = {"wrapper": "wraps the call", "accounting": "accounts for a call", "duplicate": "duplicate"}


@dataclass(slots=True)
class _Branch:
    """A span and the spans below it."""

    node: SpanNode | None
    children: list[_Branch] = field(default_factory=list)
    size: int = 0
    """Spans below."""
    marked: bool = False
    """Whether the span or one below it is marked."""
    failed: bool = False
    """Whether the span or one below it has an error."""


@dataclass(slots=True)
class _Fold:
    """Neighbouring siblings that are not shown."""

    size: int = 0
    """Spans, those below them included."""
    failed: int = 0
    """Siblings that have an error, or one below them."""


@dataclass(frozen=True, slots=True)
class _SpanLine:
    """One span as it is shown."""

    mark: bool
    left: str
    figures: tuple[str, str, str, str]
    """Kind, tokens, cost, time."""
    style: str
    notes: tuple[Segment, ...]
    """Further lines below it, with their indentation."""


def tree_lines(
    nodes: Sequence[SpanNode],
    *,
    marks: Mapping[str, str] | None = None,
    only_marked: bool = False,
    small_whole: bool = True,
    width: int | None = None,
) -> Iterator[tuple[Segment, ...]]:
    """Yield the lines of a tree.

    Args:
        nodes: spans of one run, depth first.
        marks: reason by span id of the spans to point at.
        only_marked: show the marked spans, their ancestors and their neighbours.
        small_whole: even so, show a small tree whole.
        width: columns of a line; names are cut to fit. None: names are written out.
    """
    marks = marks or {}
    root = _grow(nodes, marks)
    fold = only_marked and root.marked and not (small_whole and len(nodes) <= _SMALL_TREE)
    rows = list(_rows(root, marks, fold))
    widths = [max((display_width(row.figures[i]) for row in rows), default=0) for i in range(4)]
    figures_width = sum(column + 2 for column in widths if column)
    left_width = max((display_width(row.left) for row in rows), default=0)
    if width is not None:
        left_width = min(left_width, max(width - figures_width - 2, 20))
    for row in rows:
        yield from _lines(row, left_width, widths)


def _grow(nodes: Sequence[SpanNode], marks: Mapping[str, str]) -> _Branch:
    """Return a branch without a span that holds the roots; sizes and marks are summed up without recursion."""
    root = _Branch(None)
    path = [root]
    order: list[tuple[_Branch, _Branch]] = []
    for node in nodes:
        del path[min(node.depth, len(path) - 1) + 1 :]
        branch = _Branch(node, marked=node.span_id in marks, failed=node.error is not None)
        path[-1].children.append(branch)
        order.append((path[-1], branch))
        path.append(branch)
    for parent, branch in reversed(order):
        parent.size += branch.size + 1
        parent.marked |= branch.marked
        parent.failed |= branch.failed
    return root


def _rows(root: _Branch, marks: Mapping[str, str], fold: bool) -> Iterator[_SpanLine]:
    """Walk the tree depth first, with an explicit stack: 5 000 deep is ordinary."""
    stack: list[tuple[_Branch | _Fold, str, bool, int]] = _children(root, "", 0, fold)
    while stack:
        item, prefix, last, depth = stack.pop()
        lead, below = (prefix + ("└─ " if last else "├─ "), prefix + ("   " if last else "│  ")) if depth else ("", "")
        if isinstance(item, _Fold):
            text = f"{lead}… {amount(item.size, 'more span')}"
            text += f", {count(item.failed)} failed" if item.failed else ""
            yield _SpanLine(False, text, ("", "", "", ""), "dim", ())
            continue
        assert item.node is not None
        closed = fold and not item.marked and bool(item.children)
        pending = [] if closed else _children(item, below, depth + 1, fold)
        yield _row(item, lead, below + ("│  " if pending else "   "), marks, hidden=item.size if closed else 0)
        stack += pending


def _children(branch: _Branch, prefix: str, depth: int, fold: bool) -> list[tuple[_Branch | _Fold, str, bool, int]]:
    """Return what is shown below `branch`, last first: branches, and what is folded away."""
    shown: list[_Branch | _Fold] = []
    for position, child in enumerate(branch.children):
        if _is_shown(branch.children, position, fold):
            shown.append(child)
            continue
        folded = shown[-1] if shown and isinstance(shown[-1], _Fold) else _Fold()
        if not folded.size:
            shown.append(folded)
        folded.size += child.size + 1
        folded.failed += child.failed
    indent = prefix if depth <= _SHOWN_DEPTH else f"… depth {depth}  "
    return [(item, indent, item is shown[-1], depth) for item in reversed(shown)]


def _is_shown(siblings: Sequence[_Branch], position: int, fold: bool) -> bool:
    branch = siblings[position]
    if branch.marked:
        return True
    if fold:
        return any(other.marked for other in siblings[max(position - 1, 0) : position + 2])
    if len(siblings) <= _SHOWN_SIBLINGS:
        return True
    if position < _HEAD or position >= len(siblings) - _TAIL:
        return True
    return branch.failed and not _same_failure(branch, siblings[position - 1])


def _same_failure(branch: _Branch, other: _Branch) -> bool:
    """Return whether two spans without children have one name and one error, such as two attempts to connect."""
    if branch.children or other.children or branch.node is None or other.node is None:
        return False
    return (branch.node.name, branch.node.error) == (other.node.name, other.node.error)


def _row(branch: _Branch, lead: str, below: str, marks: Mapping[str, str], *, hidden: int) -> _SpanLine:
    node = branch.node
    assert node is not None
    called = f" {node.tool_name}" if node.tool_name and node.tool_name not in node.name else ""
    name = clean(node.name + called) + (f"  (+{amount(hidden, 'span')})" if hidden else "")
    marked = node.span_id in marks
    notes: list[Segment] = []
    why, error = _without_traceback(marks.get(node.span_id) or ""), _without_traceback(node.error or "error")
    if why:
        notes.append((f"{below}→ {clean(why)}", "yellow"))
    if node.error is not None and not why.endswith(f": {error}"):
        notes.append((f"{below}✗ {clean(cut(error, 200))}", "red"))
    figures = (_kind(node), _tokens(node), dollars(node.cost_usd) if node.cost_usd is not None else "", _time(node))
    style = "bold" if marked else "red" if node.error is not None else ""
    return _SpanLine(marked, lead + name, figures, style, tuple(notes))


def _without_traceback(text: str) -> str:
    """Return what is said before a traceback of Python, or its last line where nothing is."""
    said, _, trace = text.partition("Traceback (most recent call last)")
    return said.rstrip() or trace.rstrip().rpartition("\n")[2] or text


def _kind(node: SpanNode) -> str:
    if node.kind in ("llm", "tool") and node.counted_as in _NOT_COUNTED:
        return f"{node.kind} ({_NOT_COUNTED[node.counted_as]})"
    return node.kind


def _tokens(node: SpanNode) -> str:
    if node.input_tokens is None and node.output_tokens is None:
        return ""
    return f"{count(node.input_tokens)}→{count(node.output_tokens)}"


def _time(node: SpanNode) -> str:
    if node.duration_ms is None:
        return "?" if node.ended else "never ended"
    return duration(node.duration_ms)


def _lines(row: _SpanLine, left_width: int, widths: Sequence[int]) -> Iterator[tuple[Segment, ...]]:
    left = cut(row.left, left_width)
    segments: list[Segment] = [("▶ " if row.mark else "  ", "yellow"), (left, row.style)]
    if any(row.figures):
        segments.append((" " * (left_width - display_width(left)), ""))
        for number, (text, width) in enumerate(zip(row.figures, widths, strict=True)):
            if width:
                space = " " * (width - display_width(text))
                segments.append(("  " + (text + space if number == 0 else space + text), "dim"))
    yield tuple(segments)
    for text, style in row.notes:
        yield (("  ", ""), (text, style))
