"""The report for people: pinned byte for byte on plain console, and safe against what agents write.

The goldens pin how it looks; whether numbers and verdicts are true is tested elsewhere. `CLAWTRACE_UPDATE_GOLDEN=1`
writes them anew.
"""

import io
import os
from pathlib import Path

import pytest
from made_results import not_run

from clawtrace.report.base import CampaignReport
from clawtrace.report.console import PlainConsole, RichConsole, TableColumn, console_for, display_width
from clawtrace.report.terminal import print_campaign

GOLDEN = Path(__file__).parent / "golden"


def plain(report: CampaignReport, **options) -> str:
    """What a pipe, a file or a CI log gets."""
    stream = io.StringIO()
    print_campaign(report, PlainConsole(stream), **options)
    return stream.getvalue()


def watched(report: CampaignReport, width: int) -> str:
    """What a terminal of this width shows, without its colours."""
    from rich.console import Console

    stream = io.StringIO()
    print_campaign(report, RichConsole(Console(file=stream, force_terminal=True, color_system=None, width=width)))
    return "".join(f"{line.rstrip()}\n" for line in stream.getvalue().split("\n")[:-1])


def check(name: str, text: str) -> None:
    path = GOLDEN / name
    if os.environ.get("CLAWTRACE_UPDATE_GOLDEN"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


def test_mixed_campaign(mixed) -> None:
    """Table, failures with their tree, reasons, summary and exit code, where there is no terminal: no line is cut or wrapped."""
    check("mixed.txt", plain(mixed))


def test_mixed_campaign_on_a_terminal(mixed) -> None:
    """The same fits 80 columns, but for the headings, which the terminal wraps, so that copying keeps them whole."""
    text = watched(mixed, 80)

    headings = ("FAIL", "INCONCLUSIVE", "SKIP", "ERROR", "6 runs")
    assert max(display_width(line) for line in text.splitlines() if not line.startswith(headings)) <= 80
    check("mixed-80-columns.txt", text)


def test_mixed_campaign_verbose(mixed) -> None:
    """-v adds what passed and the SQL with its parameters."""
    check("mixed-verbose.txt", plain(mixed, verbose=True))


def test_quiet_is_the_summary_only(mixed) -> None:
    """--quiet leaves two lines: the counts and the exit code."""
    text = plain(mixed, quiet=True)

    assert len(text.splitlines()) == 2
    assert "exit 4" in text


def test_recorded_input_has_no_model_column(verdict, run, campaign) -> None:
    """Without models and repetitions the table does not carry empty columns for them."""
    check("recorded.txt", plain(campaign(run(verdict()), run(verdict(), case_id="other"))))


def test_a_green_result_counts_what_was_asked(verdict, run, campaign) -> None:
    """The number of assertions and of each type, the most frequent first; eight types, and how many more."""
    many = [verdict(type=f"type_{number}") for number in range(10)]
    text = plain(campaign(run(*many), run(verdict(type="type_3"), case_id="other")))

    assert "exit 0: all 11 assertions passed: type_3 (2), type_0, type_1, type_2, type_4, type_5" in text
    assert text.rstrip().endswith("type_6, type_7 and 2 more types")
    assert "exit 0: the only assertion passed: tool_sequence\n" in plain(campaign(run(verdict(type="tool_sequence"))))


def test_what_passed_for_a_misspelt_name_is_said_once(verdict, run, campaign) -> None:
    """A tool that must never be called passes under a wrong name, too: the hint is there without -v."""
    hint = "`refund` is recorded, but not `refnd`. Did you mean `refund`?"
    vacuous = verdict("pass", id="never", type="tool_not_invoked", hint=hint)
    text = plain(campaign(run(vacuous, case_id="a"), run(vacuous, case_id="b"), run(verdict("pass"))))

    assert text.count(hint) == 1
    assert f"\nhint: a · never, b · never passed: {hint}\n" in text


def test_what_decided_is_of_a_failure_that_is_new(verdict, run, campaign) -> None:
    """A known failure is not what somebody wants to look at first."""
    failures = verdict("fail", id="old", known_failure=True), verdict("fail", id="new")
    text = plain(campaign(run(*failures), results_file=Path("r.json"), source={"store": "spans.duckdb"}))

    assert "What decided: clawtrace query --verdict 'r.json#run-1/new'\n" in text


def test_nothing_evaluated(campaign) -> None:
    """An empty campaign says that nothing was evaluated and exits 3."""
    assert plain(campaign()).split("\n")[-3:-1] == [
        "0 runs",
        "exit 3: nothing was evaluated: there was no run, as the input has no span",
    ]


def test_a_warning_is_not_reported_as_all_is_well(verdict, run, campaign) -> None:
    """Exit 0 with a failed assertion of severity warn does not say that every answer was yes."""
    text = plain(campaign(run(verdict("fail", severity="warn"))))

    assert "exit 0: no failure counts" in text
    assert "FAIL  weather · order (tool_sequence), severity warn" in text


def test_unknown_is_never_zero(run, verdict, campaign) -> None:
    """Unknown totals are question marks, partial ones lower bounds."""
    unknown = run(verdict(), totals={}, duration_ms=None)
    partial = run(verdict(), totals={"input_tokens": None, "input_tokens_low": 12, "cost_low": 0.5, "priced_calls": 1})
    rows = plain(campaign(unknown, partial)).splitlines()[1:3]

    assert rows[0].split()[2:] == ["6", "?", "?", "?", "?"]
    assert rows[1].split()[2:] == ["6", "?", "≥12", "≥$0.5000", "5.1", "s"]


def test_repetitions_that_fail_alike_are_one_block(verdict, run, campaign, node) -> None:
    """What fails in the same way in several repetitions is reported once and names them; another message stands apart."""
    from clawtrace.model.verdict import Evidence

    deleted = (Evidence("t", "s1", "execute_tool rm", "rm: ok"),)
    runs = [
        run(
            verdict("fail", run_id=f"run-{n}", message="took 9 s" if n == 4 else "rm was called", evidence=deleted),
            run_id=f"run-{n}",
            repetition=n,
        )
        for n in (1, 2, 3, 4, 5)
    ]
    trees = {f"run-{n}": [node("s1", 0, "execute_tool rm", "tool")] for n in (1, 2, 3, 4, 5)}
    text = plain(campaign(*runs, trees=trees))

    assert text.count("FAIL  weather · ") == 2
    assert (
        "FAIL  weather · repetitions 1-3, 5 · order (tool_sequence)\n"
        "  rm was called\n"
        "\n"
        "  spans of repetition 1\n"
        "▶ execute_tool rm  tool  100 ms\n"
        "  → rm: ok\n"
    ) in text.replace("     → rm", "  → rm")
    assert "FAIL  weather · repetition 4 · order (tool_sequence)\n  took 9 s\n" in text
    assert plain(campaign(*runs, trees=trees), verbose=True).count("FAIL  weather · ") == 5


def test_below_the_rates_are_those_that_passed_sometimes(verdict, run, campaign) -> None:
    """One that failed every time is said with its verdicts, unless it may fail sometimes."""
    runs = [
        run(
            verdict("fail", id="never"),
            verdict("fail" if number == 1 else "pass", id="sometimes"),
            verdict("fail", id="tolerated", min_pass_rate=0.5),
            run_id=f"r{number}",
            repetition=number,
        )
        for number in (1, 2)
    ]
    below = [line.strip() for line in plain(campaign(*runs)).splitlines() if line.startswith("  • ")]

    assert [line.split(": ")[0].rpartition(" · ")[2] for line in below] == ["sometimes", "tolerated"]


def test_assertions_that_say_the_same_are_one_block(verdict, run, campaign) -> None:
    """A run without a trace says so once, with its hint, for all assertions; one with a description keeps its own."""
    none = {"message": "there is no trace", "hint": "Nothing arrived at all.", "sql": ""}
    skipped = run(
        verdict("skip", id="a", type="a", **none),
        verdict("skip", id="b", type="tool_call", **none),
        verdict("skip", id="c", type="c", description="Never without asking.", **none),
        diagnostics=("the agent ended as `failed`",),
        spans=0,
    )
    text = plain(campaign(skipped))

    assert "note (weather): the agent ended as `failed`\n\nSKIP  weather · a" in text
    assert "SKIP  weather · a, b (tool_call)\n  there is no trace\n  hint: Nothing arrived at all.\n" in text
    assert "SKIP  weather · c\n  Never without asking.\n  there is no trace\n" in text
    assert text.count("hint: ") == 1


@pytest.mark.parametrize("number", [1, 2])
def test_why_a_trace_is_not_whole_is_reported_once(verdict, run, campaign, number) -> None:
    """Why stands once and before the verdicts that it leaves open; of several no spans are shown."""
    from clawtrace.model.verdict import Evidence

    why = "A span was never received."
    open_ended = verdict(
        "inconclusive",
        message=f"No call was seen. More spans could change this: {why} This failure is known until 2099-12-31: x",
        evidence=(Evidence(None, None, "somewhere", "saw nothing"),),
    )
    verdicts = [open_ended._replace(id=f"a{n}") for n in range(number)]
    text = plain(campaign(run(*verdicts, complete=False, incomplete_because=(why,))))

    assert text.count(why) == 1
    assert text.count("could change this. This failure is known") == number
    assert f"INCOMPLETE  weather\n  {why}\n\nINCONCLUSIVE  weather" in text
    assert ("  • somewhere: saw nothing" in text) == (number == 1)


def test_control_characters_cannot_paint(verdict, run, campaign, node) -> None:
    """A tool name with escape sequences or line breaks reaches neither a plain console nor a terminal as such."""
    from clawtrace.model.verdict import Evidence

    evil = "rm\x1b[2K\r\n✓ pass\u202e"
    report = campaign(
        run(verdict("fail", message=evil, evidence=(Evidence("t", "s1", evil, evil),)), case_id=evil),
        trees={"run-1": [node("s1", 0, evil, error=evil)]},
    )
    for text in (plain(report), watched(report, 100)):
        assert not set("\x1b\r\u202e") & set(text)
        assert not any(line.startswith("✓ pass") for line in text.splitlines())


def test_a_stream_that_cannot_encode_gets_ascii(mixed) -> None:
    """On an ASCII stream the drawing falls back to ASCII and nothing raises."""
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii", errors="backslashreplace")
    print_campaign(mixed, PlainConsole(stream))
    stream.flush()

    text = raw.getvalue().decode("ascii")
    assert "`- chat gpt-4o" in text
    assert "x 503 Service Unavailable" in text


def test_wide_characters_keep_columns_aligned() -> None:
    """East Asian names count two columns a character."""
    stream = io.StringIO()
    PlainConsole(stream).table(
        [TableColumn("case"), TableColumn("n", "right")], [[("天気", ""), ("1", "")], [("abcdef", ""), ("22", "")]]
    )

    assert [display_width(line) for line in stream.getvalue().splitlines()] == [10, 10, 10]


def terminal(width: int, columns: list[str], rows: list[list[str]]) -> list[str]:
    """A table as a terminal of this width shows it; columns that are named `#…` hold figures."""
    from rich.console import Console

    stream = io.StringIO()
    titles = [TableColumn(name.removeprefix("#"), "right" if name.startswith("#") else "left") for name in columns]
    RichConsole(Console(file=stream, force_terminal=True, color_system=None, width=width)).table(
        titles, [[(cell, "") for cell in row] for row in rows]
    )
    return [line.rstrip() for line in stream.getvalue().splitlines()]


def test_a_table_on_a_terminal_gives_way_at_white_space() -> None:
    """Sentences are wrapped before words are broken, and nothing is wider than the terminal."""
    columns = ["case", "#first", "change", "verdict"]
    row = ["(all cases)", "5/5", "-100 points (-100 to -39)", "regression"]

    assert terminal(80, columns, [row]) == [
        "case         first  change                     verdict",
        57 * "─",
        "(all cases)    5/5  -100 points (-100 to -39)  regression",
    ]
    assert terminal(46, columns, [row]) == [
        "case         first  change          verdict",
        46 * "─",
        "(all cases)    5/5  -100 points     regression",
        "                    (-100 to -39)",
    ]
    assert terminal(46, ["run_id", "#n"], [["first/-/first/1-" + 40 * "c", "1"]])[2:] == [
        f"first/-/first/1-{27 * 'c'}  1",
        13 * "c",
    ]


def test_a_table_that_cannot_fit_hides_no_column() -> None:
    """More columns than the terminal has room for: each row with one column a line, none left out."""
    columns = ["run_id", "#start_ns", "#end_ns", "name", "result"]
    rows = [["r1", 30 * "1", 30 * "2", "greet", "a\nb " * 12], ["r2", "3", "4", "greet", ""]]

    assert terminal(60, columns, rows) == [
        "run_id    r1",
        f"start_ns  {30 * '1'}",
        f"end_ns    {30 * '2'}",
        "name      greet",
        "result    " + " ".join(10 * [r"a\nb"]),
        r"          a\nb a\nb",
        "",
        "run_id    r2",
        "start_ns  3",
        "end_ns    4",
        "name      greet",
        "result",
    ]


class Tty(io.StringIO):
    def isatty(self) -> bool:
        """Claim to be a terminal."""
        return True


def test_a_terminal_gets_rich_console(monkeypatch) -> None:
    """A watched terminal gets colour; CI, a dumb terminal and a pipe get plain text."""
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    assert isinstance(console_for(Tty()), RichConsole)
    assert isinstance(console_for(io.StringIO()), PlainConsole)

    monkeypatch.setenv("CI", "true")
    assert isinstance(console_for(Tty()), PlainConsole)

    monkeypatch.delenv("CI")
    monkeypatch.setenv("TERM", "dumb")
    assert isinstance(console_for(Tty()), PlainConsole)


@pytest.mark.parametrize("no_color", [False, True])
def test_no_color_leaves_no_colour(no_color, monkeypatch, mixed) -> None:
    """NO_COLOR removes colour from a terminal's output; without it there is some."""
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    if no_color:
        monkeypatch.setenv("NO_COLOR", "1")
    else:
        monkeypatch.delenv("NO_COLOR", raising=False)
    stream = Tty()
    print_campaign(mixed, console_for(stream))

    assert ("\x1b[31m" in stream.getvalue()) is not no_color


def test_runs_that_were_left_out_are_named(verdict, run, campaign) -> None:
    """What was not run is named with its reason, counted in the summary, and explains the exit code."""
    text = plain(campaign(run(verdict()), left_out=[not_run("r2", "late", "gpt-4o", 2, "interrupted")]))

    assert "NOT RUN  late · gpt-4o · repetition 2: interrupted" in text
    assert text.splitlines()[-2:] == [
        "1 run: 1 passed, 1 not run",
        "exit 3: nothing failed, but some runs were not made",
    ]


def test_what_many_cases_say_alike_is_one_block(verdict, run, campaign) -> None:
    """Of 200 cases with the same failure one block is left, which counts them; what one of them says in addition stays."""

    def failed(number: int, message: str, **fields):
        return verdict("fail", id=f"v{number}", type="tool_was_called", message=message, **fields)

    never = "`refund` was never called."
    runs = [
        run(failed(0, never), case_id=f"case-{number}", run_id=f"run-{number}", diagnostics=("The agent is old.",))
        for number in range(199)
    ]
    runs.append(
        run(
            failed(0, never),
            failed(1, "`pay` was never called."),
            case_id="last",
            run_id="last",
            diagnostics=("The agent is old.", "It is the last."),
        )
    )
    text = plain(campaign(*runs))

    assert text.count(never) == 1
    assert text.count("200 cases") == 1
    assert text.count("The agent is old.") == 1
    assert text.index(never) < text.index("`pay` was never called.")
    assert text.count("FAIL") == 2
    assert "and 190 more" in text
    assert "It is the last." in text


def test_what_two_cases_say_alike_is_said_of_each(verdict, run, campaign) -> None:
    """A block for each: few enough to be read with the rest of its case."""
    one = verdict("fail", id="v", type="tool_was_called", message="`refund` was never called.")
    text = plain(campaign(run(one, case_id="a", run_id="a"), run(one, case_id="b", run_id="b")))

    assert text.count("`refund` was never called.") == 2


def test_why_many_traces_are_incomplete_is_one_block(verdict, run, campaign) -> None:
    """The reason stands once with the number of cases, before what it leaves open in all of them; another reason stays with its case."""
    why, other = "Its process was killed.", "A span was never received."

    def undecided(number: int, *reasons: str):
        message = f"No call was seen. More spans could change this: {' '.join(reasons)}"
        one = verdict("inconclusive", id="a", type="tool_was_called", message=message)
        return run(one, case_id=f"case-{number}", run_id=f"run-{number}", complete=False, incomplete_because=reasons)

    runs = [undecided(number, why) for number in range(199)]
    text = plain(campaign(*runs, undecided(199, why, other)))

    assert text.count(why) == 1
    assert text.index("INCOMPLETE  200 cases") < text.index("INCONCLUSIVE  199 cases · tool_was_called")
    assert f"INCOMPLETE  case-199\n  {other}\n\nINCONCLUSIVE  case-199 · a (tool_was_called)" in text
    assert text.count("and 190 more") == 1
    assert text.count("INCO") == 4
    assert plain(campaign(*runs[:2])).count(why) == 2


def test_many_runs_are_causes_with_a_number_and_an_example(verdict, run, campaign) -> None:
    """1 092 runs with 90 causes: figures make no cause of their own, names do; 20 causes have their spans; no list is long."""

    def broken(number: int):
        cause = number % 90
        named = {"case_id": f"case-{number}", "run_id": f"run-{number}"}
        if not cause:
            return run(**named, error=f"The agent ended after {number} ms.", status=None)
        said = f"`tool_{cause}` was called {number} times, more than once."
        return run(verdict("fail", id="v", type="tool_call", message=said), **named)

    report = campaign(*(broken(number) for number in range(1092)))
    text = plain(report)

    assert "ERROR  13 cases\n  For example in case-0: The agent ended after 0 ms.\n" in text
    assert "FAIL  13 cases · tool_call\n  For example in case-1: `tool_1` was called 1 times, more than once.\n" in text
    assert text.count("FAIL  ") == 89
    assert "FAIL  12 cases · tool_call: For example in case-89: `tool_89`" in text
    assert "and 992 more runs; -v shows all" in text
    assert len(text.splitlines()) < 400
    assert plain(report, verbose=True).count("FAIL  ") == 1079


def test_beyond_a_hundred_causes_they_are_counted(verdict, run, campaign) -> None:
    """The last line of the list says how many there are."""
    failed = [
        run(verdict("fail", message=f"`tool_{n}` was never called."), case_id=f"c{n}", run_id=f"r{n}")
        for n in range(130)
    ]
    text = plain(campaign(*failed))

    assert text.count("was never called") == 100
    assert "and 30 more that did not pass; -v shows all" in text


def test_repetitions_whose_figures_differ_are_one_block(verdict, run, campaign) -> None:
    """The message is that of the first, and says so."""
    took = [run(verdict("fail", message=f"The run took {n} s."), repetition=n, run_id=f"r{n}") for n in (1, 2, 3)]

    text = plain(campaign(*took))

    assert "repetitions 1-3 · " in text
    assert "\n  For example in repetition 1: The run took 1 s.\n" in text


def test_what_an_incomplete_trace_leaves_open_is_one_list(verdict, run, campaign) -> None:
    """Each assertion has one line, below one heading."""
    why = "A span was never received."
    left = [
        verdict("inconclusive", id=name, type=name, message=f"{name} is open. More spans could change this: {why}")
        for name in ("first", "second")
    ]
    text = plain(campaign(run(*left, complete=False, incomplete_because=(why,))))

    heading = "INCONCLUSIVE  weather · more spans could change each"
    assert f"{heading}\n  • first: first is open.\n  • second: second is open.\n" in text
