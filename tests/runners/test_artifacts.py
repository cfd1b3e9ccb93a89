"""What a run leaves is kept by content; what it starts from may be an agent's (spec: config.md §3, §5)."""

from __future__ import annotations

import hashlib
import stat
from dataclasses import replace

import pytest

from clawtrace.errors import RunnerError
from clawtrace.runners import workspace as kept
from clawtrace.runners.command import CommandRunner
from clawtrace.runners.workspace import STANDARD_FILES, AgentFiles


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@pytest.fixture
def agent(tmp_path):
    """An agent with a program, a link, a persona, and a folder."""
    folder = tmp_path / "agents" / "helper" / "workspace"
    (folder / "notes").mkdir(parents=True)
    (folder / "tool.sh").write_text("#!/bin/sh\necho tool\n")
    (folder / "tool.sh").chmod(0o755)
    (folder / "SOUL.md").write_text("I am calm.\n")
    (folder / "link").symlink_to("SOUL.md")
    (folder / "notes" / "a").write_text("agent's")
    (folder / "notes" / "b").write_text("agent's")
    return AgentFiles("helper", folder)


def run(bench, *, agent=None, expected=None, **settings):
    request = replace(bench.request(**settings), agent=agent, expected_artifact=expected)
    return CommandRunner().run(request, bench.target, bench.stop)


class TestArtifacts:
    def test_created_and_modified_files_are_kept_by_content(self, bench):
        """Each file is under the SHA-256 of its content, with size and media type; equal content is there once."""
        (bench.case_dir / "start").mkdir()
        for name in ("edited.txt", "same.txt"):
            (bench.case_dir / "start" / name).write_text("before")
        command = "echo x > report.md; mkdir d; echo x > d/again.bin; echo after > edited.txt; ln -s report.md link"
        outcome = run(bench, command=command, scaffold="start")
        folder = outcome.stdout.parent / "artifacts"

        assert [(one.path, one.sha256, one.size, one.media_type, one.left_out) for one in outcome.artifacts] == [
            ("d/again.bin", sha("x\n"), 2, "application/octet-stream", ""),
            ("edited.txt", sha("after\n"), 6, "text/plain", ""),
            ("report.md", sha("x\n"), 2, "text/markdown", ""),
        ]
        assert {path.name: path.read_text() for path in folder.iterdir()} == {
            sha("x\n"): "x\n",
            sha("after\n"): "after\n",
        }

    @pytest.mark.parametrize(
        ("globs", "kept"),
        [
            (["*.md"], ["a.md"]),
            (["**/*.md"], ["a.md", "d/b.md", "d/e/c.md"]),
            (["d"], ["d/b.md", "d/e/c.md", "d/x"]),
            (["d/*"], ["d/b.md", "d/e/c.md", "d/x"]),
            (["d/*.md", "a.?d"], ["a.md", "d/b.md"]),
            ([], []),
        ],
    )
    def test_globs_narrow(self, bench, globs, kept):
        """`artifacts` says which of the touched files are kept; `**` spans folders, a folder stands for all in it."""
        outcome = run(bench, command="mkdir -p d/e; touch a.md d/b.md d/e/c.md d/x", artifacts=globs)

        assert [one.path for one in outcome.artifacts] == kept

    def test_what_is_too_large_is_listed(self, bench, monkeypatch):
        """A file over the limit has its digest and the reason why it is not kept; the run's total is bounded too."""
        monkeypatch.setattr(kept, "MAX_FILE_BYTES", 5)
        monkeypatch.setattr(kept, "MAX_BYTES", 6)
        outcome = run(bench, command="printf 123456 > large; printf 12345 > ok; printf abcde > second")
        found = {one.path: (one.sha256, one.left_out) for one in outcome.artifacts}

        assert found == {
            "large": (sha("123456"), "larger than 5 bytes"),
            "ok": (sha("12345"), ""),
            "second": (sha("abcde"), "the run's artifacts hold more than 6 bytes"),
        }
        assert [path.name for path in (outcome.stdout.parent / "artifacts").iterdir()] == [sha("12345")]

    def test_many_files_are_counted(self, bench, monkeypatch):
        """Beyond the limit files are counted, and the run says so."""
        monkeypatch.setattr(kept, "MAX_FILES", 2)
        outcome = run(bench, command="touch a b c")

        assert [one.path for one in outcome.artifacts] == ["a", "b"]
        assert outcome.notes == ("only 2 of 3 artifacts are listed",)

    def test_no_link_or_pipe_is_followed(self, bench, tmp_path):
        """A link to a secret elsewhere, and a pipe without a writer, are no artifacts and hold nothing up."""
        (tmp_path / "secret").write_text("secret")
        outcome = run(bench, command=f"ln -s {tmp_path / 'secret'} stolen; mkfifo pipe; touch real")

        assert [one.path for one in outcome.artifacts] == ["real"]

    def test_the_expected_artifact_is_kept_or_missed(self, bench):
        """It is kept first, also when the run did not touch it or the globs leave it out; its absence is noted."""
        (bench.case_dir / "start").mkdir()
        (bench.case_dir / "start" / "report.md").write_text("old")
        there = run(bench, command="touch a", scaffold="start", artifacts=[], expected="report.md")
        missed = run(bench, command="touch a", expected="report.md")

        assert [one.path for one in there.artifacts] == ["report.md"]
        assert there.notes == ()
        assert missed.notes == ("the expected artifact `report.md` is not in the workspace",)


class TestAgents:
    def test_the_workspace_is_a_copy_of_the_agents(self, bench, agent):
        """Modes and links are kept, missing standard files are placeholders, and all of it is there before the run."""
        outcome = run(bench, agent=agent, command=["./tool.sh"])
        workspace = outcome.workspace

        assert outcome.final_output == "tool"
        assert stat.S_IMODE((workspace / "tool.sh").stat().st_mode) == 0o755
        assert str((workspace / "link").readlink()) == "SOUL.md"
        assert {name for name in STANDARD_FILES if (workspace / name).is_file()} == set(STANDARD_FILES)
        assert (workspace / "SOUL.md").read_text() == "I am calm.\n"
        assert (workspace / "USER.md").read_text() == "# USER\n\nThis agent has no USER.md.\n"
        assert outcome.changes["created"] == []
        assert outcome.changes["modified"] == []

    def test_runs_leave_the_template_alone(self, bench, agent):
        """What one run does to its copy reaches neither the template nor the next run."""
        run(bench, agent=agent, command="echo spoiled > SOUL.md; echo spoiled > link; rm notes/a")
        second = run(bench, agent=agent, command="cat SOUL.md notes/a")

        assert second.final_output == "I am calm.\nagent's"

    def test_the_cases_scaffold_lies_over_it(self, bench, agent):
        """Where both have a file it is the case's; a link of the agent is replaced and never written through."""
        start = bench.case_dir / "start"
        (start / "notes").mkdir(parents=True)
        (start / "notes" / "a").write_text("case's")
        (start / "link").write_text("a file")
        (start / "tool.sh").mkdir()
        outcome = run(bench, agent=agent, command="cat notes/a notes/b link SOUL.md; ls -d tool.sh/", scaffold="start")

        assert outcome.final_output == "case'sagent'sa fileI am calm.\ntool.sh/"

    def test_an_agents_folder_that_is_gone_is_an_error(self, bench, tmp_path):
        """A template that vanished after loading ends the run with a sentence."""
        with pytest.raises(RunnerError, match=r"the workspace of the agent `x` .* is not a folder"):
            run(bench, agent=AgentFiles("x", tmp_path / "absent"), command=["true"])


def test_globs_of_artifacts_and_logs_have_templates(bench):
    """What a template stands for is no pattern itself."""
    outcome = bench.run(
        command="touch case.txt other.txt case.log", artifacts=["{{case_id}}.txt"], logs=["{{workspace}}/*.log"]
    )

    assert [one.path for one in outcome.artifacts] == ["case.txt"]
    assert [path.name for path in outcome.logs] == ["case.log"]
