"""What a command depends on: the files that it names wherever they lie, and what `inputs` declares (spec: config.md §5)."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from clawtrace.runners.base import InputsRequest
from clawtrace.runners.command import CommandSettings
from clawtrace.runners.inputs import named_files
from clawtrace.runners.inputs.command_inputs import forget_project_digests


@pytest.fixture
def world(tmp_path: Path):
    """`/evals` with a case, `/agent` next to it, and an environment with packages."""
    write(tmp_path / "evals/configs/cases/c/test.yaml", "")
    write(tmp_path / "agent/main.py", "import tools")
    write(tmp_path / "agent/tools.py", "v1")
    write(tmp_path / "agent/prompt.txt", "be brief")
    site = tmp_path / "venv/lib/python3.12/site-packages"
    write(site / "helper/__init__.py", "v1")
    write(site / "helper_lib-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: helper-lib\nVersion: 1.0\n")
    write(site / "helper_lib-1.0.dist-info/RECORD", "helper/__init__.py,,\nhelper_lib-1.0.dist-info/METADATA,,\n")
    write(site / "local-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: local\nVersion: 1.0\n")
    url = json.dumps({"url": (tmp_path / "agent").as_uri(), "dir_info": {"editable": True}})
    write(site / "local-1.0.dist-info/direct_url.json", url)
    write(site / "local-1.0.dist-info/RECORD", "local-1.0.dist-info/METADATA,,\n")
    return SimpleNamespace(root=tmp_path, site=site, case_dir=tmp_path / "evals/configs/cases/c")


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def inputs_of(world, *, anew=True, leave_out=(), **settings):
    if anew:
        forget_project_digests()
    filled = json.loads(json.dumps(settings).replace("ROOT", str(world.root)))
    root = world.root / "evals"
    env = {"PATH": "/usr/bin:/bin", "VIRTUAL_ENV": str(world.root / "venv")}
    leave_out = frozenset(leave_out or {world.case_dir, root / "outputs"})
    request = InputsRequest(world.case_dir, root, leave_out, (world.case_dir / "test.yaml",), env)
    return CommandSettings.model_validate(filled).depends_on(request)


@pytest.mark.parametrize(
    "settings",
    [
        {"command": [sys.executable, "ROOT/agent/main.py"]},
        {"command": [sys.executable, "{{case_dir}}/../../../../agent/main.py"]},
        {"command": "cd ROOT/agent && python main.py"},
        {"command": "cd ROOT/agent&&python main.py;"},
        {"command": "python main.py", "cwd": "ROOT/agent"},
        {"command": ["python", "main.py"], "cwd": "{{case_dir}}/../../../../agent"},
        {"command": "PYTHONPATH=/nowhere:ROOT/agent python -m main"},
        {"command": ["python", "-m", "main"], "env": {"PYTHONPATH": "ROOT/agent"}},
        {"command": ["runner", "--agent=ROOT/agent"]},
        {"command": ["make", "-C", "ROOT/agent", "agent"]},
        {"command": ["true"], "setup": ["cp -r ROOT/agent ."]},
        {"command": ["agent"], "inputs": ["../../../../agent"]},
        {"command": ["agent"], "inputs": ["ROOT/agent/*.py"]},
        {"command": ["agent"], "inputs": ["package:local"]},
    ],
    ids=str,
)
def test_an_edit_of_code_outside_of_the_project_is_seen(world, settings):
    """However the settings name it: a file next to the script, a working folder, a search path, a package in editable mode."""
    before = inputs_of(world, **settings).digests
    assert inputs_of(world, **settings).digests == before
    write(world.root / "agent/tools.py", "v2")
    after = inputs_of(world, **settings)

    assert after.digests != before
    (part,) = [name for name in before if before[name] != after.digests[name]]
    assert any("tools.py" in file for file in after.files[part])


@pytest.mark.parametrize(
    "settings",
    [
        {"command": ["agent"], "inputs": ["../../../../agent"]},
        {"command": ["agent"], "inputs": ["package:local"]},
        {"command": ["runner", "--agent=ROOT/agent"]},
    ],
    ids=str,
)
def test_an_edit_of_what_git_ignores_in_a_named_folder_is_seen(world, settings):
    """An agent's `.env` is ignored as a rule, and may say which model it asks."""
    subprocess.run(["git", "init", "-q", world.root], check=True)
    write(world.root / ".gitignore", ".env\n")
    write(world.root / "agent/.env", "MODEL=one")
    before = inputs_of(world, **settings).digests
    assert inputs_of(world, **settings).digests == before

    write(world.root / "agent/.env", "MODEL=another")
    assert inputs_of(world, **settings).digests != before


def test_the_folder_of_the_project_is_listed_once_for_all_cases(world, monkeypatch):
    """As `init` writes it, each case names the folder by its own path: a suite of 300 cases lists it once."""
    listed = []
    monkeypatch.setattr(named_files, "files_below", lambda root, *_, **__: listed.append(root) or [])
    for number in range(3):
        other = SimpleNamespace(root=world.root, case_dir=world.case_dir.with_name(f"c{number}"))
        write(other.case_dir / "test.yaml", "")
        inputs_of(
            other, anew=not number, command=["agent"], cwd="{{case_dir}}/../../..", leave_out={world.case_dir.parent}
        )

    assert listed == [world.root / "evals"]


def test_a_link_in_the_working_folder_is_followed_first(world):
    """`link/..` is the folder that holds what the link leads to, as the operating system has it."""
    write(world.root / "far/agent/main.py", "v1")
    write(world.root / "far/data/one", "")
    (world.case_dir / "link").symlink_to(world.root / "far/data")
    settings = {"command": ["agent"], "cwd": "{{case_dir}}/link/../agent"}
    before = inputs_of(world, **settings).digests
    write(world.root / "far/agent/main.py", "v2")

    assert inputs_of(world, **settings).digests != before


def test_the_content_of_an_installed_package_is_seen(world):
    """By the distribution's name or by the one it is imported by, though no version changes."""
    for name in ("helper-lib", "helper_lib", "helper"):
        before = inputs_of(world, command=["agent"], inputs=[f"package:{name}"]).digests
        file = world.site / "helper/__init__.py"
        file.write_text(file.read_text() + "#")
        assert inputs_of(world, command=["agent"], inputs=[f"package:{name}"]).digests != before


def test_what_is_not_declared_is_not_known(world):
    """Any program can load code that its command does not name; the reason proposes what would declare it."""
    script = inputs_of(world, command=[sys.executable, "ROOT/agent/main.py"])
    assert "`inputs: [../../../../agent]`" in script.unknown
    for command, proposed in (
        ("python -m pkg.agent", "`inputs: [package:pkg]`"),
        (["npx", "agent"], "package:NAME"),
        (["docker", "run", "image"], "package:NAME"),
        ("make agent", "package:NAME"),
    ):
        assert proposed in inputs_of(world, command=command).unknown
    assert inputs_of(world, command=[sys.executable, "ROOT/agent/main.py"], inputs=[]).unknown == ""


def test_the_root_of_all_files_says_nothing(world):
    """`cd / && agent` names no code; and what cannot be listed makes nothing known."""
    assert inputs_of(world, command="cd / && agent", inputs=[]).files["a folder that the command or `cwd` names"] == {}


def test_what_only_judges_is_no_input(world):
    """Naming the project's folder leaves out results and what the case file says of verdicts."""
    before = inputs_of(world, command=["agent"], inputs=["../../.."]).digests
    write(world.case_dir / "test.yaml", "edited")
    write(world.root / "evals/outputs/x", "result")
    assert inputs_of(world, command=["agent"], inputs=["../../.."]).digests == before
    write(world.root / "evals/prompt.txt", "x")
    assert inputs_of(world, command=["agent"], inputs=["../../.."]).digests != before


def test_entries_that_name_nothing_are_found(world):
    """Each by its place in the list; what is there is not complained of."""
    entries = ["agnet.py", "../../../../agent/*.py", "package:helper", "package:helpr", "*/nothing"]
    settings = CommandSettings.model_validate({"command": ["agent"], "inputs": entries})
    env = {"PATH": "/usr/bin:/bin", "VIRTUAL_ENV": str(world.root / "venv")}
    found = dict(settings.absent(world.case_dir, env))

    assert set(found) == {("inputs", 0), ("inputs", 3), ("inputs", 4)}
    assert "'agnet.py' matches no file" in found["inputs", 0]
    assert "no Python package 'helpr' is installed" in found["inputs", 3]
