"""What a class receives works on its own and gives nothing away."""

import ast
import os
import re
import subprocess
import sys
import tarfile

import nbformat
import pytest

from helpers import version
from helpers.errors import WorkbookError
from helpers.kernels import ROOT
from tools import release
from tools.pages import find_pages


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The copy's files as they are on the disk now, committed or not."""
    try:
        release._git(ROOT, "rev-parse", "HEAD")
    except WorkbookError as error:
        pytest.skip(f"needs a git checkout: {error}")
    with pytest.MonkeyPatch.context() as patch:
        whole = release._git
        patch.setattr(
            release,
            "_git",
            lambda root, *arguments: "" if arguments[0] == "diff" else whole(root, *arguments),
        )
        return release.contents(ROOT)


@pytest.fixture(scope="module")
def hidden():
    return release.secrets(ROOT)


def test_no_answer_is_anywhere_in_it(files, hidden):
    assert min(map(len, hidden.values())) > 30
    assert release.leaks(files, hidden) == []


@pytest.mark.parametrize("page", [p for p in find_pages(ROOT) if p.kind == "lab"], ids=str)
def test_an_answer_that_slips_in_is_found(page, hidden):
    """A whole solution, saved as the lab or pasted into a helper."""
    solved = (ROOT / "solutions" / page.name / f"{page.name}.ipynb").read_bytes()
    checks = (ROOT / "solutions" / page.name / "checks.py").read_bytes()
    slipped = {
        f"labs/{page.name}/{page.name}.ipynb": solved,
        "helpers/more.py": checks,
        "notebooks/99.ipynb": solved,
    }
    found = release.leaks(slipped, hidden)
    assert {text.split()[0] for text in found} == slipped.keys()


def test_nothing_but_what_belongs_into_it(files):
    folders = {name.split("/")[0] for name in files if "/" in name}
    assert folders == {"bench", "docs", "helpers", "labs", "notebooks", "setup"}
    bench = {name for name in files if name.startswith("bench/") and not name.endswith(".json")}
    assert bench == {"bench/pass_ablation.py"}
    paths = {name for name in files if name.startswith("docs/")}
    assert {name.rpartition("/")[0] for name in paths} == {"docs/instructor/paths"}
    assert not [name for name in files if "solution" in name]
    assert {"README.md", "Makefile", "environment.yml", "requirements.lock"} <= files.keys()
    for page in find_pages(ROOT):
        if page.kind != "solution" and page.target.exists():
            assert page.target.relative_to(ROOT).as_posix() in files or not tracked(page.target)


def tracked(path):
    command = ["git", "ls-files", "--error-unmatch", str(path)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, check=False).returncode == 0


def test_the_copy_stands_on_its_own(files, tmp_path, monkeypatch):
    """Every helper can be imported where nothing else of the workbook is."""
    monkeypatch.setattr(release, "contents", lambda root: files)
    folder, archive = release.release(tmp_path / "class", ROOT)
    with tarfile.open(archive) as tar:
        assert sorted(entry.name for entry in tar if entry.isfile()) == sorted(
            f"class/{name}" for name in files
        )
    assert not (folder / ".git").exists()
    said = subprocess.run(["make", "help"], cwd=folder, capture_output=True, text=True, check=True)
    assert "make verify" in said.stdout
    assert "make test" not in said.stdout
    modules = sorted(
        name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        for name in files
        if name.startswith("helpers/") and name.endswith(".py") and "__main__" not in name
    )
    code = f"import importlib\nfor name in {modules}: importlib.import_module(name)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(folder)},
    )
    assert done.returncode == 0, done.stderr


def test_what_pages_import_from_the_workbook_is_in_it(files):
    """Also what a measurement's own process imports: ``compare_processes("bench.x:f")``."""
    pages = {name: nbformat.reads(files[name], 4) for name in files if name.endswith(".ipynb")}
    code = {
        (name, cell.source)
        for name, page in pages.items()
        for cell in page.cells
        if cell.cell_type == "code"
    }
    wanted = set()
    for name, source in code:
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.ImportFrom):
                names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
            elif isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.Constant) and re.fullmatch(
                r"bench\.\w+:\w+", str(node.value)
            ):
                names = [node.value.partition(":")[0]]
            else:
                continue
            paths = [module.replace(".", "/") + ".py" for module in names]
            wanted |= {(name, path) for path in paths if (ROOT / path).exists()}
    assert {"helpers/fusion.py", "bench/pass_ablation.py"} <= {path for _, path in wanted}
    assert not [(name, path) for name, path in wanted if path not in files]


def test_the_copy_knows_its_version(files):
    text = files["pyproject.toml"].decode()
    assert version.number(text) == version.number()
    assert "[tool" not in text


def test_the_same_commit_gives_the_same_bytes(files, tmp_path, monkeypatch):
    monkeypatch.setattr(release, "contents", lambda root: files)
    archives = [release.release(tmp_path / k / "class", ROOT)[1] for k in ("a", "b")]
    assert archives[0].read_bytes() == archives[1].read_bytes()


def test_where_it_cannot_go_is_a_sentence(files, tmp_path, monkeypatch):
    monkeypatch.setattr(release, "contents", lambda root: files)
    with pytest.raises(WorkbookError, match="lies in the workbook itself"):
        release.release(ROOT / "for-the-class", ROOT)
    (tmp_path / "class").mkdir()
    with pytest.raises(WorkbookError, match="exists already"):
        release.release(tmp_path / "class", ROOT)
    with pytest.raises(WorkbookError, match="OUT="):
        release.main([""])
