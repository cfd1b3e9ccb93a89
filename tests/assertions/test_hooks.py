"""Python hooks: in a separate process, bounded, without network unless allowed (spec: config.md §4)."""

from __future__ import annotations

import os
import textwrap
import time

import pytest

from clawtrace.assertions.probing.hook_process import HookError, network_can_be_denied
from clawtrace.assertions.registry import InvalidAssertionError, parse_assertion
from clawtrace.assertions.world import HookPolicy, World
from clawtrace.config.loading.judges import hook_policy
from clawtrace.config.suites.evaluation_profile import EvaluationProfile


@pytest.fixture
def ask(tmp_path):
    """Ask a hook written in a file."""

    def call(code, *, network="deny", name="check", timeout=30, **world):
        (tmp_path / "hook.py").write_text(textwrap.dedent(code), encoding="utf-8")
        probe = parse_assertion({"type": "python_hook", "path": "hook.py", "callable_name": name, "timeout": timeout})
        given = {"case_dir": tmp_path, "env": os.environ, "hooks": HookPolicy(True, network)} | world
        return probe.probe(World("r1", **given))

    return call


@pytest.mark.parametrize(
    ("code", "holds", "sentence"),
    [
        ("def check(): return True", True, "the hook `check` says yes."),
        ("def check(run): return run['final_output'] == 'x'", False, "the hook `check` says no."),
        ("def check(run): return run.totals.llm_calls == 2", True, "the hook `check` says yes."),
        ("def check(run, context): return {'passed': False, 'message': context.check_id}", False, "None"),
        ("def check(*args): return len(args) == 2", True, "the hook `check` says yes."),
        ("class R: passed, message = True, 'fine'\ndef check(run): return R()", True, "fine"),
    ],
)
def test_every_form_of_a_hook(ask, code, holds, sentence):
    """It takes nothing, the run, or run and context, and answers with a truth value or more."""
    finding = ask(
        code.replace("context.check_id", "str(context.check_id)"),
        facts=lambda: {"totals": {"llm_calls": 2}, "final_output": ""},
    )

    assert (finding.holds, finding.sentence) == (holds, sentence)


def test_metadata_reaches_the_report(ask):
    """What a hook measured is shown with the verdict."""
    finding = ask("def check(): return {'passed': True, 'metadata': {'score': 3}}")

    assert finding.actual == {"passed": True, "metadata": {"score": 3}}


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("def check():\n    raise ValueError('no such table')", r"raised ValueError: no such table \(hook\.py:2\)"),
        ("def check(): return 'yes'", "raised TypeError: a hook returns true or false"),
        (
            "import os\ndef check():\n    for fd in range(3, 1000):\n        try: os.write(fd, b'{\"passed\": true}')\n"
            "        except OSError: pass\n    return False",
            "wrote into the file for its answer",
        ),
        ("def check(): return None", "raised TypeError"),
        ("import sys\ndef check(): sys.exit(3)", "raised SystemExit: 3"),
        ("import os\ndef check(): os._exit(7)", "ended with exit code 7 and no answer"),
        ("def other(): return True", "has no callable 'check'"),
        ("def check(:", "raised SyntaxError"),
        ("import nosuchmodule", "raised ModuleNotFoundError"),
        ("import time\ndef check(): time.sleep(100)", "took longer than 1 s"),
    ],
)
def test_a_hook_that_breaks_is_an_error_never_a_verdict(ask, code, says):
    """The message names what was raised and where."""
    with pytest.raises(HookError, match=says):
        ask(code, timeout=1 if "sleep" in code else 30)


def test_what_a_hook_prints_is_no_answer(ask):
    """Standard output is not the channel of answers, so that a hook may print."""
    assert ask("def check():\n    print('{\"passed\": true}')\n    return False").holds is False


def test_a_process_that_a_hook_leaves_behind_is_not_waited_for(ask):
    """The answer counts when the hook has ended, even if a process still holds its streams open."""
    code = """
        import os, subprocess, sys
        def check():
            subprocess.Popen([sys.executable, "-c", "import time; time.sleep(100)"], start_new_session=True, close_fds=False)
            return True
    """
    began = time.monotonic()

    assert ask(code).holds
    assert time.monotonic() - began < 30


def test_a_long_answer_is_read_whole(ask):
    """More than a pipe holds."""
    assert len(ask("def check(): return {'passed': True, 'message': 'x' * 200_000}").sentence) == 200_000


SOCKET = """
    import socket, threading
    def check():
        server = socket.socket()
        server.bind(("127.0.0.1", 0))
        return True
"""


def test_the_network_is_denied_by_the_system(ask):
    """A hook cannot open a socket, nor can what it starts; with `allow` it can."""
    assert network_can_be_denied(), "this machine has no seccomp"
    with pytest.raises(HookError, match="raised PermissionError"):
        ask(SOCKET)
    child = """
        import subprocess, sys
        def check():
            code = "import socket; socket.socket()"
            return subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == 0
    """
    assert ask(child).holds is False
    assert ask(child, network="allow").holds is True
    assert ask(SOCKET, network="allow").holds is True


def test_a_module_is_imported_by_name(tmp_path, monkeypatch):
    """`import_path` is looked for from the folder in which clawtrace was started."""
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/checks.py").write_text("def check(run): return run.run_id == 'r1'\n")
    monkeypatch.chdir(tmp_path)
    probe = parse_assertion({"type": "python_hook", "import_path": "mine.checks", "callable_name": "check"})

    assert probe.probe(World("r1", env=os.environ, hooks=HookPolicy(True))).holds


def test_a_hook_gets_few_variables(ask):
    """Keys of agents and judges are not its business, unless the evaluation profile says so."""
    env = {"PATH": os.environ["PATH"], "OPENAI_API_KEY": "sk-1", "DB_URL": "x", "LANG": "C"}
    code = "import os\ndef check(): return {'passed': True, 'message': ' '.join(sorted(os.environ))}"
    profile = {"schema_version": 1, "evaluation_profile_id": "e", "title": "E"}
    policy = {"allow_local_python_hooks": True, "pass_env": ["DB_*"]}
    said = EvaluationProfile.model_validate(profile | {"security_policy": policy})

    names = ask(code, env=env, hooks=hook_policy(said)).sentence.split()
    assert {"PATH", "LANG", "DB_URL"} <= set(names)
    assert "OPENAI_API_KEY" not in names


def test_hooks_are_off_unless_allowed(ask):
    """Also where the profile was not looked at when the file was loaded."""
    with pytest.raises(HookError, match="Python hooks are off"):
        ask("def check(): return True", hooks=HookPolicy())


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"callable_name": "f"}, "exactly one of `path` and `import_path`; neither"),
        ({"callable_name": "f", "path": "a", "import_path": "b"}, "both are given"),
        ({"callable_name": "f g", "path": "a"}, "must be a name of Python"),
        ({"path": "a"}, "`callable_name` is required"),
    ],
)
def test_what_cannot_be_meant_is_refused_when_loaded(fields, says):
    """Before any run."""
    with pytest.raises(InvalidAssertionError, match=says):
        parse_assertion({"type": "python_hook"} | fields)
