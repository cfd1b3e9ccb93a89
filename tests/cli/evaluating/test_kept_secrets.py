"""No file of results holds a secret that an agent said, was sent, was started with or is asked about (span-model.md §1)."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from tests.cli.conftest import PROGRAM, clean_environment
from tests.cli.evaluating.test_reuse import AGENT, Project
from tests.receiver.secret_samples import SAMPLES

pytestmark = pytest.mark.full

KEY = SAMPLES["openai-4"].secret
VALUE = "hunter-" + "2-of-the-environment"

CASE = """\
schema_version: 1
case_id: a
title: a
runner:
  type: command
  command: ["{python}", "{{{{case_dir}}}}/../../../agents/main.py", "{key}"]
  env: {{GIVEN: "{key}"}}
  setup: ["echo {key}; {setup}"]
input: {{messages: [{{role: user, content: "the key is {key}"}}]}}
assertions:
  - {{type: final_response, contains: ["[REDACTED:"]}}
  - {{type: final_response, id: plain, not_contains: ["{key}"], severity: warn}}
  - {{type: tool_not_invoked, tool: "{{{{env.MY_TOKEN}}}}"}}
"""

TALKER = """\
import os, runpy, sys
key = sys.argv[1]
print("my key is", key)
print("and", os.environ["GIVEN"], {value!r}, file=sys.stderr)
sys.stdout.buffer.write(b"\\xff\\xfe no text\\n")
sys.argv = [{agent!r}, "search"]
sys.stdout.flush()
runpy.run_path({agent!r}, run_name="__main__")
"""

IN_PROCESS = True


@pytest.fixture
def project(tmp_path, program):
    found = Project(tmp_path, program)
    (found.root / "configs/cases/b/test.yaml").unlink()
    found.write("agents/main.py", TALKER.format(value=VALUE, agent=str(AGENT)))
    found.write("configs/cases/a/test.yaml", CASE.format(python=sys.executable, key=KEY, setup="true"))
    return found


def leaks(project) -> list[str]:
    """The files of results that hold one of the secrets, as text or in a database."""
    files = [path for path in (project.root / "outputs").rglob("*") if path.is_file()]
    assert len(files) > 8
    secrets = [KEY.encode(), VALUE.encode()]
    return [path.name for path in files if any(one in path.read_bytes() for one in secrets)]


def test_what_an_agent_prints_is_kept_without_them(project):
    """Streams, settings, message, setup, verdicts, reports: a mark stands in the place, and all else is as it was printed."""
    assert project.eval(MY_TOKEN=VALUE) == {("a", 1): (False, "warn")}
    assert project.ended.returncode == 0, project.ended.stdout
    assert "avoid '[REDACTED:openai:" in project.ended.stdout

    assert leaks(project) == []
    (folder,) = (project.root / "outputs/campaigns/s").glob("default-*/runs/-/a/1")
    said = (folder / "stdout").read_bytes()
    assert b"my key is [REDACTED:openai:" in said
    assert b"\xff\xfe no text\n" in said
    assert "[REDACTED:env:" in (folder / "stderr").read_text()
    kept = json.loads((folder / "run.json").read_text())
    assert kept["runner"]["command"][2].startswith("[REDACTED:")


def test_judged_again_the_words_are_the_same(project):
    """A verdict does not depend on whether the run was just made or stands for another one."""
    project.eval(MY_TOKEN=VALUE)

    assert project.eval("--reuse", "all", MY_TOKEN=VALUE) == {("a", 1): (True, "warn")}
    assert project.ended.returncode == 0


def test_a_setup_that_fails_says_nothing_of_them(project):
    """Its last line is in the report, with a mark."""
    setup = f"echo it broke with {KEY}; exit 1"
    project.write("configs/cases/a/test.yaml", CASE.format(python=sys.executable, key=KEY, setup=setup))
    ended = project.clawtrace("eval", "--suite", "s", env={"MY_TOKEN": VALUE})

    assert ended.returncode == 4
    assert "it broke with [REDACTED:" in ended.stdout
    assert leaks(project) == []


def test_redaction_that_is_off_keeps_every_word(project):
    """The project's switch holds for these files as well."""
    project.write("clawtrace.yaml", "schema_version: 1\nredaction: {enabled: false}\n")
    project.eval(MY_TOKEN=VALUE)

    assert {"stdout", "run.json"} <= set(leaks(project))


def test_what_an_agent_printed_that_was_cut_down_with_clawtrace_is_cleaned_by_the_next_evaluation(
    project, tmp_path_factory
):
    """No process was left to clean it; the run is not of the next evaluation, and its folder stays."""
    waits = TALKER.replace(
        "runpy.run_path", "open(os.environ['PLACE'], 'w').close(); __import__('signal').pause(); runpy.run_path"
    )
    project.write("agents/main.py", waits.format(value=VALUE, agent=str(AGENT)))
    place = tmp_path_factory.mktemp("apart") / "said"
    os.mkfifo(place)
    case = project.root / "configs/cases/a/test.yaml"
    case.write_text(case.read_text().replace("env: {", f"env: {{PLACE: '{place}', "))
    quiet = subprocess.DEVNULL
    environment = clean_environment(MY_TOKEN=VALUE)
    process = subprocess.Popen(
        [str(PROGRAM), "eval", "--suite", "s"], cwd=project.root, env=environment, stdout=quiet, stderr=quiet
    )
    place.open().close()  # waits for the agent, which has said everything then
    process.kill()
    process.wait()
    assert "stdout" in leaks(project)

    project.case("b")
    project.eval("--case", "b", MY_TOKEN=VALUE)
    assert leaks(project) == []
