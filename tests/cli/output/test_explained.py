"""`clawtrace inspect --explain`: where each fact of each span comes from."""

from __future__ import annotations

import json
import re


def test_text(invoke, recordings) -> None:
    """After the tree each span names its dialect, and each column its value, its rule and the file the rule stands in."""
    text = invoke("inspect", "--traces", recordings / "pydantic-ai/one_tool", "--run-per-dir", "--explain").stdout
    lines = [line.strip() for line in text.splitlines()]
    columns = [line for line in text.splitlines() if line.startswith("    ") and line[4] not in " ▶├└│"]
    width = max(len(line.split()[0]) for line in columns)
    at = lines.index(f'{"tool_arguments":<{width}} {{"city":"Paris"}}')

    assert lines[at + 1] == "from gen_ai.tool.call.arguments [pydantic-ai]"
    assert all(line[4 + width] == " " != line[5 + width] for line in columns)  # the values stand below each other
    assert any(
        line.startswith("chat gpt-4o") and line.endswith("pydantic-ai, verified, counted as call") for line in lines
    )


def test_spans_that_are_one_call_are_listed_with_their_rule(invoke, recordings) -> None:
    """Two instrumentations record each model call; the rule is explained once."""
    recording = recordings / "openai-sdk+official+openinference/cached_tokens"
    text = " ".join(invoke("inspect", "--traces", recording, "--run-per-dir", "--explain").stdout.split())
    (run,) = json.loads(invoke("inspect", "--traces", recording, "--run-per-dir", "--explain", "--json").stdout)["runs"]
    joined = [span for span in run["explained"] if span["counted_by"] is not None]

    assert {span["counted_by"] for span in joined} == {"nested-model-span"}
    assert text.count("these 2 spans are one call: rule `nested-model-span`") == len(joined) > 0
    assert text.count("rule nested-model-span: A model span inside another one") == 1
    assert all(span["span_id"] in text for span in joined)


def test_an_unknown_value_says_why(invoke, recordings) -> None:
    """One line for the rows of one reason; the reason is explained once, with what settles it, and JSON has the same."""
    recording = recordings / "bedrock-sdk+official/invoke_cached"
    text = " ".join(invoke("inspect", "--traces", recording, "--run-per-dir", "--explain").stdout.split())
    (run,) = json.loads(invoke("inspect", "--traces", recording, "--run-per-dir", "--json").stdout)["runs"]
    reasons = {one["reason"] for one in run["doubts"] if one["column_name"] == "input_tokens"}

    assert (run["totals"]["input_tokens"], run["totals"]["llm_calls"]) == (None, 2)
    assert reasons == {"tokens-not-recorded"}
    assert "llm_calls: input_tokens unknown: reason `tokens-not-recorded`" in text
    assert text.count("reason tokens-not-recorded: The spans of this call record no usage.") == 1


def test_json(invoke, recordings) -> None:
    """Every span of the run, in the order of its tree, under a separate key; without the flag there is none."""
    flags = ("inspect", "--traces", recordings / "pydantic-ai/one_tool", "--run-per-dir", "--json")
    (plain,), (run,) = (json.loads(invoke(*flags, *more).stdout)["runs"] for more in ((), ("--explain",)))

    assert {key: value for key, value in run.items() if key != "explained"} == plain
    assert len(run["explained"]) == run["spans"]
    assert run["explained"][0]["name"] == "invoke_agent assistant"


def test_spans_that_no_recording_verifies_are_named_with_their_version(invoke, recordings, tmp_path) -> None:
    """A version that was never recorded is no drift without notice; a verified one has no line."""
    text = (recordings / "pydantic-ai/one_tool/traces.otlp.jsonl").read_text(encoding="utf-8")
    version = json.loads(text.splitlines()[0])["resourceSpans"][0]["scopeSpans"][0]["scope"]["version"]
    (tmp_path / "newer.jsonl").write_text(text.replace(f'"{version}"', '"99.1.0"'), encoding="utf-8")

    plain = invoke("inspect", "--traces", recordings / "pydantic-ai/one_tool", "--run-per-dir", "--explain").stdout
    newer = invoke("inspect", "--traces", tmp_path / "newer.jsonl", "--explain").stdout

    assert "other-version" not in plain
    assert "of `pydantic-ai` 99.1.0 (dialect `pydantic-ai`): other-version" in " ".join(newer.split())


def test_attributes_that_nothing_knows_are_named(invoke, recordings, tmp_path) -> None:
    """A renamed attribute of a namespace that the dialect reads; those of others, a user's own and recorded ones are none."""
    text = (recordings / "pydantic-ai/one_tool/traces.otlp.jsonl").read_text(encoding="utf-8")
    renamed = text.replace('"gen_ai.usage.input_tokens"', '"gen_ai.usage.tokens.0.in"')
    renamed = renamed.replace('"gen_ai.tool.name"', '"gen_ai.agent.metadata.mine"').replace("server.port", "http.news")
    (tmp_path / "newer.jsonl").write_text(renamed, encoding="utf-8")
    unknown = "that the dialect `pydantic-ai` does not know"

    plain = invoke("inspect", "--traces", recordings / "pydantic-ai/one_tool", "--run-per-dir", "--explain").stdout
    newer = " ".join(invoke("inspect", "--traces", tmp_path / "newer.jsonl", "--explain").stdout.split())
    (run,) = json.loads(invoke("inspect", "--traces", tmp_path / "newer.jsonl", "--explain", "--json").stdout)["runs"]

    assert "does not know" not in plain
    assert f"{unknown}: gen_ai.usage.tokens.N.in " in newer
    assert newer.count("does not know") == 1
    assert {key for span in run["explained"] for key in span["unknown_attributes"]} == {"gen_ai.usage.tokens.N.in"}


def test_many_runs_are_listed_without_their_trees(invoke, recordings, tmp_path) -> None:
    """Each of more than twenty runs has its totals, and whether it is complete; a run that is named has its tree."""
    whole = (recordings / "ag2/tool_error/traces.otlp.jsonl").read_text()
    (trace_id,) = set(re.findall(r'"traceId": ?"(\w+)"', whole))
    for number in range(1, 22):
        (tmp_path / f"{number}.otlp.jsonl").write_text(whole.replace(trace_id, f"{number:032x}"))
    listed = invoke("inspect", tmp_path).stdout
    named = invoke("inspect", tmp_path, "--run-id", f"{21:032x}").stdout

    assert listed.count("llm calls 4") == 21
    assert "21 runs: `--run-id ID` shows the spans of one" in listed
    assert "├─" not in listed
    assert named.count("llm calls 4") == 1
    assert "├─" in named
