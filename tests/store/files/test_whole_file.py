"""Files that appear whole or not at all, for whom the umask lets read them."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from clawtrace.campaign.results.stored import write_json
from clawtrace.runners.workspace import collect_artifacts
from clawtrace.store.files.owner import Owner, write_owner
from clawtrace.support.files import whole_file, whole_text_file


@pytest.fixture(params=[0o077, 0o022])
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    """The umask of this process."""
    was = os.umask(request.param)
    yield request.param
    os.umask(was)


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_block_that_raises_leaves_the_old_file_and_nothing_else(tmp_path: Path):
    """What was written before the error is nowhere to be seen."""
    path = tmp_path / "results.json"
    path.write_text("old")

    with pytest.raises(ZeroDivisionError), whole_text_file(path) as stream:
        stream.writelines(str(1 // left) * 100_000 for left in (1, 0))

    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_readers_see_the_old_file_until_the_block_ends(tmp_path: Path):
    """The new content takes the place at once, whole."""
    path = tmp_path / "results.json"
    path.write_bytes(b"old")

    with whole_file(path) as stream:
        stream.write(b"new")
        stream.flush()
        assert path.read_bytes() == b"old"

    assert path.read_bytes() == b"new"


def test_an_error_names_the_file_that_was_to_be_written(tmp_path: Path):
    """A message made of it names what the user knows, not the draft."""
    path = tmp_path / "missing" / "results.json"

    with pytest.raises(FileNotFoundError) as raised, whole_file(path):
        pass

    assert raised.value.filename == str(path)


def test_what_utf8_cannot_carry_is_written_as_the_caller_says(tmp_path: Path):
    """A lone surrogate is an error that leaves nothing, or what `errors` makes of it."""
    path = tmp_path / "names.json"

    with pytest.raises(UnicodeEncodeError), whole_text_file(path) as stream:
        stream.write("\udcff")
    assert list(tmp_path.iterdir()) == []

    with whole_text_file(path, errors="backslashreplace") as stream:
        stream.write("\udcff")
    assert path.read_text() == "\\udcff"


def test_results_are_readable_by_whom_the_umask_lets(tmp_path: Path, umask: int):
    """Results and artifacts hold what people wrote: who keeps new files for himself keeps these for himself, too."""
    write_json(tmp_path / "run.json", {"message": "private"})
    (tmp_path / "workspace").mkdir()
    (tmp_path / "workspace" / "notes.md").write_text("private")
    created = {"created": ["notes.md"]}
    ((artifact,), _) = collect_artifacts(tmp_path / "workspace", created, tmp_path / "artifacts")

    assert mode_of(tmp_path / "run.json") == 0o666 & ~umask
    assert mode_of(tmp_path / "artifacts" / artifact.sha256) == 0o666 & ~umask


def test_a_token_is_readable_by_the_user_alone(tmp_path: Path, umask: int):
    """The owner's file has mode 0600 whatever the umask."""
    path = write_owner(tmp_path / "spans.duckdb", Owner("http://127.0.0.1:1", "token", os.getpid()))

    assert mode_of(path) == 0o600
