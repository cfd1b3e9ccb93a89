"""Documents: their links lead somewhere, the generated ones are as the code says, the README's commands run."""

from __future__ import annotations

import importlib.util
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from clawtrace.config.projects.project_file import load_project
from free_port import free_port
from not_run import not_run
from page_blocks import RUN, run_the_blocks

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "tests").rglob("*.md")])
LINK = re.compile(r"\]\((?!https?:)([^)#]+)(#[^)]*)?\)")


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub and GitLab make them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {"#" + re.sub(r"[^\w -]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page: Path):
    """Every relative link names a file that exists, and its anchor a heading of that page."""
    broken = []
    for target, anchor in LINK.findall(page.read_text()):
        file = (page.parent / target).resolve()
        if not file.exists() or (anchor and anchor not in anchors(file)):
            broken.append(target + anchor)

    assert broken == []


def test_the_readme_fits_three_screens():
    """The README has at most 120 lines, and leads to the index of the pages, the decisions and the way to contribute."""
    readme = ROOT / "README.md"
    linked = {(ROOT / target).resolve() for target, _ in LINK.findall(readme.read_text())}

    assert len(readme.read_text().splitlines()) <= 120
    assert {ROOT / "docs" / "README.md", ROOT / "docs" / "adr" / "README.md", ROOT / "CONTRIBUTING.md"} <= linked


@pytest.mark.parametrize("page", sorted((ROOT / "docs").glob("*.md")), ids=lambda page: page.name)
def test_a_page_begins_with_its_purpose(page: Path):
    """Below the title stands a paragraph of prose: what the page is for, before any heading, list, table or code."""
    title, blank, first, *_ = page.read_text().splitlines()

    assert title.startswith("# ")
    assert blank == ""
    assert re.match(r"[A-Z`]", first)


def test_every_page_is_linked():
    """No page of docs/ is an orphan: the index, or its own folder's, names each."""
    orphans = []
    for page in (page for page in PAGES if page.is_relative_to(ROOT / "docs") and page.name != "README.md"):
        indexes = [index for index in (ROOT / "docs" / "README.md", page.parent / "README.md") if index.is_file()]
        links = [
            (index.parent / target).resolve() for index in indexes for target, _ in LINK.findall(index.read_text())
        ]
        if page not in links:
            orphans.append(page.name)

    assert orphans == []


def test_generated_documents_are_as_the_code_says():
    """`make docs` would change nothing: reference pages and JSON Schemas have not drifted from the code."""
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    generate = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generate)

    pages = dict(generate.pages())
    drifted = [name for name, text in pages.items() if not (ROOT / name).is_file() or (ROOT / name).read_text() != text]
    kept = {
        path.relative_to(ROOT).as_posix()
        for folder in ("docs/reference", "configs/schemas")
        for path in (ROOT / folder).rglob("*")
        if path.is_file()
    }

    assert drifted == []
    assert kept - pages.keys() == set()


@pytest.mark.parametrize(
    "page",
    [
        "README.md",
        *(pytest.param(page, marks=pytest.mark.full) for page in ("docs/first-case.md", "docs/relations.md")),
    ],
)
def test_the_commands_of_a_page_run(tmp_path: Path, page: str):
    """A reader who pastes the commands, one block after the other, sees each succeed, or fail where the page says so."""
    checkout = tmp_path / "checkout"
    checkout.mkdir()
    run_the_blocks((ROOT / page).read_text(), checkout)


@pytest.mark.full
def test_the_readme_works_as_installed(tmp_path: Path):
    """Clawtrace in an environment to itself, by the page's line, the agent's packages in another; then each block as written."""
    text = (ROOT / "README.md").read_text()
    install, packages = (
        re.search(rf"<!-- {name} -->\n```sh\n(.*?)```", text, re.DOTALL)[1] for name in ("install", "packages")
    )
    agent, tools, programs = tmp_path / "agent", tmp_path / "tools", tmp_path / "programs"
    path = os.pathsep.join(
        [str(programs), str(agent / ".venv/bin"), str(Path(sys.executable).parent), os.environ["PATH"]]
    )
    places = {"PATH": path, "UV_TOOL_DIR": str(tools), "UV_TOOL_BIN_DIR": str(programs)}
    environment = {**os.environ, **places, "PYTHONPATH": ""}
    agent.mkdir()
    for script, folder in ((install, ROOT), (packages, agent)):
        done = subprocess.run(
            ["sh", "-ec", script], cwd=folder, env=environment, capture_output=True, text=True, timeout=400
        )
        if done.returncode:
            not_run("registry", f"this machine lacks a package registry: {done.stderr.strip().splitlines()[-1:]}")
    (site,) = (tools / "clawtrace-eval").glob("lib/*/site-packages")
    assert not {"pytest", "pyarrow", "pydantic_ai"} & {found.name for found in site.iterdir()}

    (tmp_path / "checkout").mkdir()
    run_the_blocks(text, tmp_path / "checkout", programs, agent / ".venv/bin", PYTHONPATH="")


@pytest.mark.needs("curl")
@pytest.mark.full
def test_the_commands_for_an_agent_that_already_runs(tmp_path: Path):
    """The same of that page, with ports that are free here and an exporter that is not waited for: all but the last pass."""
    text = (ROOT / "docs/already-running.md").read_text()
    for port in ("4318", "8000"):
        text = re.sub(rf"\b{port}\b", str(free_port()), text)
    try:
        run_the_blocks(text, tmp_path, OTEL_BSP_SCHEDULE_DELAY="200")
    except BaseException:
        os.kill(int((tmp_path / "support/agent.pid").read_text()), signal.SIGKILL)
        raise


@pytest.mark.needs("curl")
@pytest.mark.full
def test_the_commands_for_the_sidecar(tmp_path: Path):
    """The same of that page, in one shell as a reader has it, with ports that are free here."""
    text = (ROOT / "docs/sidecar.md").read_text()
    grpc_port, http_port = free_port(), free_port()
    ports = {"CLAWTRACE_RECEIVER_GRPC_PORT": str(grpc_port), "CLAWTRACE_RECEIVER_HTTP_PORT": str(http_port)}
    script = "\n".join(block for _, block in RUN.findall(text)).replace(":4318/", f":{http_port}/")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["sh", "-eu", "-c", f"{script}\nwait"],
        cwd=tmp_path,
        env={**os.environ, "PATH": path, **ports},
        capture_output=True,
        text=True,
        timeout=120,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "sidecar/sidecar.log").read_text().endswith("stopped\n")
    assert '"complete": true' in done.stdout
    assert "exit 0" in done.stdout


def test_the_figures_name_programs_that_exist():
    """Each benchmark that docs/performance.md says to run is there, and each one that can be run has its row."""
    named = set(re.findall(r"`python (benchmarks/\w+\.py)", (ROOT / "docs" / "performance.md").read_text()))
    runnable = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "benchmarks").glob("*.py")
        if '__name__ == "__main__"' in path.read_text()
    }

    assert named == runnable


def yaml_blocks(page: Path) -> list[str]:
    """The YAML examples of a page, without the indentation that a list gives them."""
    found = re.findall(r"^( *)```yaml\n(.*?)^ *```", page.read_text(), re.DOTALL | re.MULTILINE)
    return [re.sub(f"^{indent}", "", block, flags=re.MULTILINE) for indent, block in found]


@pytest.mark.parametrize("page", [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")], ids=lambda page: page.name)
def test_examples_of_the_project_file_are_valid(tmp_path: Path, page: Path):
    """Every YAML example can be read, and one that says it is of `clawtrace.yaml` is a project file without a problem."""
    for block in yaml_blocks(page):
        list(yaml.safe_load_all(block))
        if block.startswith("# clawtrace.yaml"):
            (tmp_path / "clawtrace.yaml").write_text(block)
            load_project(tmp_path, {})


def test_no_document_names_this_machine():
    """No file of the project holds the path of a checkout or a home folder."""
    done = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True
    )
    if done.returncode != 0:
        pytest.skip("not a git checkout")
    found = []
    for name in done.stdout.splitlines():
        path = ROOT / name
        if path.is_file() and path != Path(__file__):
            text = path.read_bytes()
            if str(ROOT).encode() in text or str(Path.home()).encode() + b"/" in text:
                found.append(name)

    assert found == []


def test_nothing_is_installed_from_a_registry_that_does_not_have_it():
    """As long as clawtrace is not on PyPI, each instruction installs a checkout or an address."""
    read = [*PAGES, *(ROOT / "docs").rglob("*.yml"), *(ROOT / "ci").iterdir(), ROOT / "action.yml"]
    named = re.compile(
        r"\b(?:pip|pipx|uv|uvx|tool|add|install|--with|--from) (?:--?\S+ )*['\"]?clawtrace(?:-eval)?(?![\w/-]| @)|requirements.txt .*and clawtrace"
    )

    found = [
        f"{path.name}: {line}" for path in read for line in path.read_text("utf-8").splitlines() if named.search(line)
    ]
    assert not found
    assert named.search("RUN pip install --quiet clawtrace-eval")
    assert named.search("pip install -r requirements.txt   # your agent and clawtrace")
