"""Shell text split into the commands in it, by the grammar of tree-sitter-bash.

A simple command is a program with its arguments. What carries others (`sudo a`, `sh -c 'a; b'`, `A=1 a`, `echo $(a)`) is
given before them and is not simple. Text is never guessed at: what does not parse as a whole is not split at all.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Literal, NamedTuple

from clawtrace.facts.commands.shell_words import ELIDED, Carried, Word, carried, program, reads_script, value_of

if TYPE_CHECKING:
    from tree_sitter import Language, Node

__all__ = ["MAX_BYTES", "CommandPart", "split"]

MAX_BYTES = 100_000
"""Text beyond is not split. The worst text of this length takes half a second to parse."""

_MAX_DEPTH = 60
_MAX_TEXT = 16_000_000
"""Most characters of all the texts of one split: each part is stored in addition to the whole text, and repeats what is inside of it."""

End = Literal["ok", "failed", "same", "unmet"] | None
"""How a part ended: with exit code 0, with another one, with the one of the whole; ``unmet``: it failed or never ran;
None: unknown."""

Ends = tuple[End, End]
"""How a part ended when the whole ended well, and when it did not."""

_WHOLE: Ends = ("ok", "same")
_UNKNOWN: Ends = (None, None)

# With one of these somewhere, the last command need not be the one that ended the whole.
_CONTROL = frozenset(
    ("set", "exit", "return", "trap", "exec", "eval", "source", ".", "shopt", "break", "continue", "kill")
)
# The grammar takes some reserved words for programs (`time { a; }`): then it has misread the text.
_RESERVED = frozenset(
    ["{", "}", "!", "if", "then", "else", "elif", "fi", "do", "done", "case", "esac", "while", "until", "for"]
)
_ECHO = frozenset(("-e", "-n"))
_SUBSTITUTIONS = frozenset(("command_substitution", "process_substitution"))
_BLOCKS = frozenset(("program", "subshell", "compound_statement"))
_PROGRAMS = frozenset(("command", "declaration_command", "unset_command", "test_command"))


class CommandPart(NamedTuple):
    """One command in a text, in the order of the text; a carrier comes before what it carries."""

    text: str
    argv0: str | None
    """The program, without its folder; None where a carrier has none."""
    simple: bool
    last: int
    """Place of the last part inside this one; its own place where none is."""
    ends: Ends


class _CommandScope(NamedTuple):
    """The command at hand."""

    stop: int
    """Where it ends in the source, in bytes, redirections behind it included."""
    substitutions: Sequence[Node]
    """The outermost substitutions in it, in order."""


class _NotSplitError(Exception):
    """The text cannot be split for sure."""


def serve() -> None:
    """Split the texts that come as lines of JSON on standard input, and answer each with a line of JSON."""
    for line in sys.stdin:
        sys.stdout.write(json.dumps(split(json.loads(line))) + "\n")
        sys.stdout.flush()


def split(text: str) -> tuple[CommandPart, ...] | None:
    """Return the commands in `text`, in order; None when it cannot be split: it is no POSIX shell text, or too long.

    The grammar can end the process on texts that do not parse: `clawtrace.facts.commands.shell_split` uses a separate process.
    """
    source = text.encode("utf-8", "replace")
    if len(source) > MAX_BYTES:
        return None
    splitter = _Splitter()
    try:
        splitter.script(source, _WHOLE)
    except _NotSplitError:
        return None
    parts = splitter.parts
    if len(parts) * len(text) > _MAX_TEXT:
        return None
    if sum(part.simple for part in parts) > 1 and any(part.argv0 in _CONTROL for part in parts):
        parts = [part._replace(ends=_UNKNOWN) for part in parts]
    return tuple(parts)


@cache
def _language() -> Language:
    import tree_sitter_bash
    from tree_sitter import Language

    return Language(tree_sitter_bash.language())


def _parsed(source: bytes) -> Node:
    """Return the tree of a text, from a new parser: one that is used again keeps state of the grammar's scanner."""
    from tree_sitter import Parser

    return Parser(_language()).parse(source).root_node


def _both(ends: Ends, ok: End, failed: End, unmet: End = "unmet") -> Ends:
    """Return how a part ended, given how what holds it ended (`ends`) and what each of its ends says of the part.

    ``same`` keeps the end as it is.
    """

    def end(of: End) -> End:
        if of is None:
            return None
        said = {"ok": ok, "unmet": unmet}.get(of, failed)
        return of if said == "same" else said

    return end(ends[0]), end(ends[1])


class _Splitter:
    """Collects the parts of one text; scripts inside of arguments are separate texts."""

    def __init__(self) -> None:
        self.parts: list[CommandPart] = []
        self._source = b""
        self._depth = 0
        self._written = 0

    def script(self, source: bytes, ends: Ends) -> None:
        """Collect the commands of a whole text."""
        outer, self._source = self._source, source
        root = _parsed(source)
        if root.has_error:
            raise _NotSplitError
        self._visit(root, ends)
        self._source = outer

    def _visit(self, node: Node, ends: Ends, end: int | None = None) -> None:
        """Collect the commands below a node; `end` is where redirections behind its last command end."""
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise _NotSplitError
        kind = node.type
        if kind in _PROGRAMS:
            self._command(node, ends, end)
        elif kind == "list":
            self._list(node, ends, end)
        elif kind == "pipeline":
            *first, last = node.named_children
            for child in first:
                self._visit(child, _UNKNOWN)
            self._visit(last, ends, end)
            if first and first[-1].type == last.type == "command" and reads_script(self._words(last)):
                self._echoed(first[-1], ends)
        elif kind == "redirected_statement":
            self._redirected(node, ends)
        elif kind == "negated_command":
            for child in node.named_children:
                self._visit(child, _both(ends, "failed", "ok", None), end)
        elif kind in _BLOCKS or kind in _SUBSTITUTIONS:
            self._block(node, ends)
        else:
            for child in node.named_children:
                self._visit(child, _UNKNOWN)
        self._depth -= 1

    def _list(self, node: Node, ends: Ends, end: int | None) -> None:
        """Collect ``a && b || c``: nested to the left, once for each operator, and thousands of them are ordinary."""
        rights: list[tuple[Node, Ends]] = []
        current = node
        while current.type == "list":
            left, operator, right = current.children[0], current.children[1].type, current.children[-1]
            if operator == "&&":
                rights.append((right, _both(ends, "same", "unmet")))
                ends = _both(ends, "ok", None, None)
            else:
                rights.append((right, _both(ends, None, "same")))
                ends = _both(ends, None, "failed")
            current = left
        self._visit(current, ends)
        for place, (right, of_right) in enumerate(reversed(rights), 1):
            self._visit(right, of_right, end if place == len(rights) else None)

    def _block(self, node: Node, ends: Ends) -> None:
        """Collect statements one after the other: the last one's end is the block's, unless it is in the background."""
        children = node.children
        commands = [place for place, child in enumerate(children) if child.is_named and child.type != "comment"]
        for place in commands:
            behind = children[place + 1].type if place + 1 < len(children) else ""
            self._visit(children[place], ends if place == commands[-1] and behind != "&" else _UNKNOWN)

    def _redirected(self, node: Node, ends: Ends) -> None:
        body = node.child_by_field_name("body")
        redirects = node.children_by_field_name("redirect")
        documents = [one for one in redirects if one.type == "heredoc_redirect"]
        scripts = [part.text or b"" for one in documents for part in one.children if part.type == "heredoc_body"]
        if body is not None:
            # What follows a here-document on its line (`<<E && b`, `<<E | b`) is inside of it in the grammar.
            own = _UNKNOWN if any(set(_behind(one)) for one in documents) else ends
            begun = len(self.parts)
            self._visit(body, own, max(map(_redirect_end, redirects)))
            if body.type == "command" and scripts and reads_script(self._words(body)):
                self._fed(begun, scripts[0], own)
        for redirect in redirects:
            for child in redirect.named_children:
                self._visit(child, _UNKNOWN)
            reader = next(_behind(redirect), None) if redirect in documents else None
            while reader is not None and reader.type == "pipeline":
                reader = reader.named_children[0]
            if scripts and reader is not None and reader.type == "command" and reads_script(self._words(reader)):
                self.script(scripts[0], _UNKNOWN)

    def _echoed(self, node: Node, ends: Ends) -> None:
        """Collect the script that `echo` prints for a shell that reads it."""
        first, *words = self._words(node)
        if first.value == "echo":
            self.script(" ".join(one.value for one in words if one.value not in _ECHO).encode("utf-8", "replace"), ends)

    def _fed(self, begun: int, script: bytes, ends: Ends) -> None:
        """Collect a script that a shell reads from its input; what has carried that shell since `begun` carries it too."""
        carriers = [place for place in range(begun, len(self.parts)) if self.parts[place].last == len(self.parts) - 1]
        self.script(script, ends)
        for place in carriers:
            self._close(place)

    def _command(self, node: Node, ends: Ends, end: int | None) -> None:
        """Collect one command, what its arguments carry, and what is in its substitutions."""
        stop = node.end_byte if end is None else end
        scope = _CommandScope(stop, list(_substitutions(node)))
        words = self._words(node)
        inner = list(carried(words))
        assigned = node.children[0].type == "variable_assignment"
        place = self._add(self._slice(node.start_byte, stop), words, ends)
        if inner:
            self._carried(inner, words, ends, scope)
        elif scope.substitutions or (assigned and words):
            start = words[0].start if assigned and words else node.start_byte
            self._add(self._slice(start, stop, scope.substitutions), words, ends)
        texts = [one for one in node.children_by_field_name("redirect") if one.type == "herestring_redirect"]
        if texts and reads_script(words):
            text = texts[0].named_children[0]
            self._fed(place, value_of(self._slice(text.start_byte, text.end_byte)).encode("utf-8", "replace"), ends)
        self._inside(node)
        self._close(place)

    def _carried(self, inner: Sequence[Carried], words: Sequence[Word], ends: Ends, scope: _CommandScope) -> None:
        """Collect what a command carries in its arguments."""
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise _NotSplitError
        for one in inner:
            of_one = {"same": ends, "ok": _both(ends, "ok", "unmet")}.get(one.end or "", _UNKNOWN)
            if one.script is not None:
                if one.script.replace(ELIDED, "").strip():
                    self.script(one.script.encode("utf-8", "replace"), of_one)
                continue
            stop = scope.stop if one.words[-1] is words[-1] else one.words[-1].end
            place = self._add(self._slice(one.words[0].start, stop, scope.substitutions), one.words, of_one)
            self._carried(list(carried(one.words)), one.words, of_one, scope._replace(stop=stop))
            self._close(place)
        self._depth -= 1

    def _inside(self, node: Node) -> None:
        """Collect the commands in the substitutions below a node."""
        for one in _substitutions(node):
            self._depth += 1
            self._block(one, _UNKNOWN)
            self._depth -= 1

    def _words(self, node: Node) -> list[Word]:
        """Return the words of a command: its program and arguments, without assignments and redirections."""
        if node.type != "command":
            head = node.children[0]
            return [Word(head.type, head.start_byte, head.end_byte)]
        named = [child for child in node.children if child.type == "command_name"]
        given = [*named, *node.children_by_field_name("argument")]
        return [
            Word(
                value_of(self._slice(child.start_byte, child.end_byte, list(_substitutions(child)))),
                child.start_byte, child.end_byte,
            )
            for child in given
        ]  # fmt: skip

    def _slice(self, start: int, end: int, leave_out: Sequence[Node] = ()) -> str:
        """Return a part of the source, with `ELIDED` for each of the nodes to leave out."""
        pieces, at = [], start
        for node in leave_out:
            if start <= node.start_byte < end:
                pieces += [self._source[at : node.start_byte], ELIDED.encode()]
                at = node.end_byte
        return b"".join([*pieces, self._source[at:end]]).decode("utf-8", "replace").strip()

    def _add(self, text: str, words: Sequence[Word], ends: Ends) -> int:
        """Note a command; return its place. It is simple unless `_close` finds something inside of it."""
        name = program(words)
        if name in _RESERVED:
            raise _NotSplitError
        self._written += len(text)
        if self._written > _MAX_TEXT:
            raise _NotSplitError
        self.parts.append(CommandPart(text, name, True, len(self.parts), ends))
        return len(self.parts) - 1

    def _close(self, place: int) -> None:
        """Note that what was collected since `place` is inside of the command there."""
        last = len(self.parts) - 1
        self.parts[place] = self.parts[place]._replace(simple=last == place, last=last)


def _substitutions(node: Node) -> Iterator[Node]:
    """Yield the outermost substitutions below a node, in order."""
    waiting = list(reversed(node.children))
    while waiting:
        child = waiting.pop()
        if child.type in _SUBSTITUTIONS:
            if child.text != ELIDED.encode():
                yield child
        else:
            waiting.extend(reversed(child.children))


def _behind(document: Node) -> Iterator[Node]:
    """Yield the commands that follow a here-document on its line."""
    for child in document.named_children:
        if child.type not in ("heredoc_start", "heredoc_body", "heredoc_end", "file_redirect", "herestring_redirect"):
            yield child


def _redirect_end(redirect: Node) -> int:
    """Return where a redirection ends; the text of a here-document is elsewhere."""
    if redirect.type != "heredoc_redirect":
        return redirect.end_byte
    heads = [child.end_byte for child in redirect.children if child.type in ("heredoc_start", "file_redirect")]
    return max(heads, default=redirect.start_byte)
