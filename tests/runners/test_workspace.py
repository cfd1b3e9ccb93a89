"""Each run has a separate workspace, and says what the agent changed in it (spec: config.md §3)."""

from __future__ import annotations

import hashlib
import stat

import pytest

from clawtrace.errors import RunnerError
from clawtrace.runners.base import StopSignal
from clawtrace.runners.workspace import digests, snapshot


@pytest.fixture
def scaffold(bench):
    folder = bench.case_dir / "start"
    (folder / "sub").mkdir(parents=True)
    (folder / "keep.txt").write_text("keep")
    (folder / "edit.txt").write_text("before")
    (folder / "drop.txt").write_text("drop")
    (folder / "tool.sh").write_text("#!/bin/sh\necho from the tool\n")
    (folder / "tool.sh").chmod(0o755)
    (folder / "link").symlink_to("keep.txt")
    (folder / "dangling").symlink_to("nowhere")
    return folder


def test_modes_and_links_are_kept(bench, scaffold):
    """The copy of a scaffold keeps permissions and symbolic links, dangling ones too."""
    outcome = bench.run(command=["./tool.sh"], scaffold="start")

    assert outcome.final_output == "from the tool"
    assert stat.S_IMODE((outcome.workspace / "tool.sh").stat().st_mode) == 0o755
    assert (outcome.workspace / "link").is_symlink()
    assert str((outcome.workspace / "dangling").readlink()) == "nowhere"


def test_changes_are_distinguished(bench, scaffold):
    """Created, modified (content or mode), deleted and unchanged paths are compared by content."""
    command = (
        "echo after > edit.txt; rm drop.txt; mkdir -p new/deep; echo x > new/deep/f; chmod 600 keep.txt; touch tool.sh"
    )
    outcome = bench.run(command=command, scaffold="start")

    assert outcome.changes == {
        "created": ["new/deep/f"],
        "modified": ["edit.txt", "keep.txt"],
        "deleted": ["drop.txt"],
        "unchanged": ["dangling", "link", "tool.sh"],
    }


def test_digests_of_files_before_and_after(tmp_path):
    """SHA-256 of each regular file, by path; links and what cannot be read have none."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder/a.txt").write_text("a")
    (tmp_path / "link").symlink_to("folder/a.txt")

    assert digests(snapshot(tmp_path)) == {"folder/a.txt": hashlib.sha256(b"a").hexdigest()}


def test_a_folder_that_an_agent_put_in_its_workspaces_place_is_not_its_work(tmp_path):
    """A link out of the workspace leads to what others wrote, also where the workspace itself became the link."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "old.md").write_text("x")
    (tmp_path / "workspace").symlink_to("elsewhere")

    assert snapshot(tmp_path / "workspace") == {}
    assert list(snapshot(tmp_path / "elsewhere")) == ["old.md"]


def test_runs_share_nothing(bench, scaffold):
    """Two runs of one case start from the same files, whatever the first one did, and the case stays as it was."""
    bench.run(command="echo spoiled > edit.txt; echo more > other.txt", scaffold="start")
    second = bench.run(command="cat edit.txt; ls", scaffold="start")

    assert second.final_output.startswith("before")
    assert "other.txt" not in second.final_output
    assert (scaffold / "edit.txt").read_text() == "before"


def test_setup_belongs_to_the_state_before(bench):
    """Setup commands run in the workspace before the snapshot: what they write is not the agent's."""
    outcome = bench.run(command="cat made", setup=["echo one > made", ["sh", "-c", "echo two >> made"]])

    assert outcome.final_output == "one\ntwo"
    assert outcome.changes["created"] == []
    assert outcome.changes["unchanged"] == ["made"]


def test_a_setup_that_fails_stops_the_run(bench):
    """A failing setup command is an error with its last words; the agent is not started."""
    with pytest.raises(RunnerError, match="setup command 2 ended with exit code 4: no database"):
        bench.run(command="touch started", setup=["true", "echo no database >&2; exit 4"])
    assert not (bench.folder / "run1" / "workspace" / "started").exists()


def test_setup_emits_no_telemetry(bench):
    """Setup commands do not get the run's telemetry environment: their spans would be the agent's."""
    bench.run(command="true", setup=['echo "${OTEL_EXPORTER_OTLP_ENDPOINT:-none}"'])

    assert (bench.folder / "run1" / "setup.log").read_text() == "none\n"


def test_a_missing_scaffold_is_known_before_the_start(bench):
    """`absent` names a scaffold that is not there, `missing` a program that is not on PATH."""
    request = bench.request(command=["true"], scaffold="absent")
    absent = bench.request(command=["no-such-agent"])

    assert list(request.settings.absent(bench.case_dir, {})) == [
        (("scaffold",), "the folder 'absent' does not exist next to the case file")
    ]
    assert "`no-such-agent` is not on PATH" in absent.settings.missing(absent.base_env)
    assert bench.request(command=["sh"]).settings.missing(absent.base_env) is None


def test_a_stop_before_the_start_is_obeyed(bench):
    """A stop that was set before subscribing is seen at once."""
    stop, calls = StopSignal(), []
    stop.set()
    stop.subscribe(lambda: calls.append(1))

    assert calls == [1]


def test_a_scaffold_that_holds_the_workspace_is_refused(bench):
    """It would be copied into itself without end."""
    with pytest.raises(RunnerError, match="holds the run's workspace"):
        bench.run(command=["true"], scaffold="..")
