"""The tree: every span is shown or counted in a fold, marks point at evidence, depth and width do not matter."""

import re
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from clawtrace.report.tree import tree_lines


def text_of(nodes: Sequence, **options) -> list[str]:
    return ["".join(text for text, _ in line).rstrip() for line in tree_lines(nodes, **options)]


def chain_of(node, depths: Sequence[int]) -> list:
    return [node(f"s{i}", depth, f"span-{i}.") for i, depth in enumerate(depths)]


def test_the_whole_tree(weather_tree) -> None:
    """Kinds, tokens, cost and time stand in columns; errors below their span; what never ended says so."""
    assert text_of(weather_tree, width=80) == [
        "  invoke_agent assistant       agent                         5.1 s",
        "  ├─ chat gpt-4o               llm    500→11  $0.0010        1.2 s",
        "  ├─ execute_tool search       tool                         301 ms",
        "  │  └─ GET /search            infra                        250 ms",
        "  │        ✗ 503 Service Unavailable",
        "  ├─ execute_tool get_weather  tool                          42 ms",
        "  └─ chat gpt-4o               llm    513→12  $0.0011  never ended",
    ]


def test_marks_carry_their_reason(weather_tree) -> None:
    """A marked span has a pointer before it and the reason on the next line."""
    lines = text_of(weather_tree, marks={"c1": "ran first"})

    at = next(i for i, line in enumerate(lines) if "execute_tool search" in line)
    assert lines[at].startswith("▶ ")
    assert lines[at + 1] == "  │  │  → ran first"
    assert sum(line.startswith("▶") for line in lines) == 1


def test_spans_that_are_no_calls_say_so(node) -> None:
    """A wrapper, an accounting span and a duplicate are labelled, so that they are not added up."""
    lines = text_of([node(w, 0, w, "llm", counted_as=w) for w in ("wrapper", "accounting", "duplicate", "call")])

    assert [line.split(None, 1)[1].rsplit("  ", 1)[0].strip() for line in lines] == [
        "llm (wraps the call)",
        "llm (accounts for a call)",
        "llm (duplicate)",
        "llm",
    ]


def test_a_span_whose_name_does_not_say_its_tool_shows_it(node) -> None:
    """Vercel AI's calls are all `ai.toolCall`: only the tool tells one from another."""
    lines = text_of([node("t", 0, name, "tool", tool_name="refund") for name in ("ai.toolCall", "execute_tool refund")])

    assert [" ".join(line.split()[:2]) for line in lines] == ["ai.toolCall refund", "execute_tool refund"]


def test_long_sibling_lists_fold_and_say_how_many(node) -> None:
    """Of 100 siblings the first 12, the last 4 and the failing one are shown; the fold counts the rest."""
    nodes = [node("root", 0, "root")]
    nodes += [node(f"s{i}", 1, f"span-{i}.", error="boom" if i == 50 else None) for i in range(100)]
    lines = text_of(nodes)

    assert [int(n) for line in lines for n in re.findall(r"span-(\d+)\.", line)] == [*range(12), 50, *range(96, 100)]
    assert [line.strip(" ├─└") for line in lines if "more spans" in line] == ["… 38 more spans", "… 45 more spans"]


def test_only_marked_keeps_ancestors_and_neighbours(node) -> None:
    """Of a big tree only the way to the marked span and its neighbours are drawn; the rest is counted."""
    nodes = [node("root", 0, "root")]
    for i in range(10):
        nodes.append(node(f"t{i}", 1, f"turn-{i}."))
        nodes += [node(f"t{i}c{j}", 2, f"call-{i}-{j}.") for j in range(3)]
    lines = text_of(nodes, marks={"t5c1": "here"}, only_marked=True)

    assert lines[0].split()[0] == "root"
    assert [re.search(r"(turn|call)-[\d-]+\.|… \d+", line).group() for line in lines[1:] if "→" not in line] == [
        "… 16", "turn-4.", "turn-5.", "call-5-0.", "call-5-1.", "call-5-2.", "turn-6.", "… 12",
    ]  # fmt: skip
    assert any("turn-4.  (+3 spans)" in line for line in lines)


def test_a_small_tree_that_was_shown_is_folded(weather_tree) -> None:
    """Whole at first; where another verdict points at it, the marked span with its ancestors and neighbours."""
    whole = text_of(weather_tree, marks={"b1": "here"}, only_marked=True)
    again = text_of(weather_tree, marks={"b1": "here"}, only_marked=True, small_whole=False)

    assert not any("more span" in line for line in whole)
    assert any("… 2 more spans" in line for line in again)
    assert any("→ here" in line for line in again)


@given(data=st.data(), only_marked=st.booleans())
def test_every_span_is_shown_or_counted(node, data, only_marked) -> None:
    """Whatever the shape of the forest and the marks: spans shown plus spans counted in folds are all spans."""
    steps = data.draw(st.lists(st.integers(0, 4), max_size=120))
    depths: list[int] = []
    for step in steps:
        depths.append(min(step, depths[-1] + 1) if depths else 0)
    nodes = chain_of(node, depths)
    marked = data.draw(st.sets(st.sampled_from(range(len(nodes))), max_size=3)) if nodes else set()
    lines = text_of(nodes, marks={f"s{i}": "why" for i in marked}, only_marked=only_marked)

    shown = [int(n) for line in lines for n in re.findall(r"span-(\d+)\.", line)]
    folded = sum(int(n) for line in lines for n in re.findall(r"(?:… |\(\+)(\d+) (?:more )?span", line))
    assert len(shown) + folded == len(nodes)
    assert shown == sorted(set(shown))
    assert marked <= set(shown)


def test_five_thousand_deep(node) -> None:
    """A very deep tree is drawn without recursion; lines stay bounded and say their depth."""
    lines = text_of(chain_of(node, range(5000)), width=80)

    assert len(lines) == 5000
    assert "… depth 4999" in lines[-1]
    assert max(map(len, lines)) < 140


def test_a_failure_that_repeats_is_folded(node) -> None:
    """Of 40 equal attempts to connect the first and the last ones are shown; another failure among them is shown, too."""
    errors = ["refused"] * 20 + ["not found"] + ["refused"] * 19
    nodes = [node(f"s{at}", 0, "GET", "infra", error=error) for at, error in enumerate(errors)]

    lines = text_of(nodes)

    assert sum("✗ refused" in line for line in lines) == 17
    assert sum("✗ not found" in line for line in lines) == 1
    assert [line.strip() for line in lines if "more" in line] == [
        "… 8 more spans, 8 failed",
        "… 14 more spans, 14 failed",
    ]


def test_an_error_is_shown_once_and_without_its_traceback(node) -> None:
    """What is said before a traceback, else its last line; a reason that ends with the error is enough."""
    trace = 'Traceback (most recent call last):\n  File "a.py", line 1, in go\nValueError: no'
    nodes = [node("a", 0, "tool", error=f"ValueError('no'){trace}"), node("b", 0, "other", error=trace)]

    shown = [line.strip() for line in text_of(nodes, marks={"a": f"tool: ValueError('no'){trace}"}) if "no" in line]
    assert shown == ["→ tool: ValueError('no')", "✗ ValueError: no"]


def test_names_are_cut_to_the_width(node) -> None:
    """At a given width long names end in an ellipsis; without one they are written out."""
    nodes = [node("a", 0, "x" * 300, "llm")]

    assert len(text_of(nodes, width=80)[0]) <= 80
    assert "…" in text_of(nodes, width=80)[0]
    assert "x" * 300 in text_of(nodes)[0]
