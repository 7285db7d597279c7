"""Grades and labs for other systems: nbgrader makes the labs from the masters."""

import collections
import subprocess
import sys

import nbformat
import pytest
from nbgrader.nbgraderformat import MetadataValidator

from helpers.grading import checks
from helpers.kernels import ROOT
from tools.build_notebooks import is_learners
from tools.pages import as_text, find_pages, without_outputs

PAGES = find_pages(ROOT)
MASTERS = [page for page in PAGES if page.kind == "solution"]
LABS = [page for page in PAGES if page.kind == "lab"]

# --- nbgrader ------------------------------------------------------------------------------------


def roles(path):
    """nbgrader's metadata of the cells that have some."""
    cells = nbformat.read(path, 4).cells
    return [cell.metadata.nbgrader for cell in cells if "nbgrader" in cell.metadata]


@pytest.mark.parametrize("page", MASTERS, ids=lambda page: page.name)
def test_a_master_is_valid_for_nbgrader(page):
    MetadataValidator().validate_nb(nbformat.read(page.target, 4))
    found = roles(page.target)
    names = collections.Counter(role.grade_id for role in found)
    assert set(names.values()) == {1}
    assert sum(role.points for role in found if role.grade) > 0
    assert {role.schema_version for role in found} == {3}


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    """What ``nbgrader generate_assignment`` makes of all masters."""
    course = tmp_path_factory.mktemp("course")
    config = ROOT / "tools" / "nbgrader_config.py"
    (course / "nbgrader_config.py").write_text(f"load_subconfig({str(config)!r})\n")
    subprocess.run(
        [sys.executable, "-m", "nbgrader", "generate_assignment", "*", "--no-db"],
        cwd=course,
        check=True,
        capture_output=True,
    )
    return course / "release"


def test_nbgrader_releases_the_labs_and_nothing_else(released):
    files = {path.relative_to(released).as_posix() for path in released.rglob("*.*")}
    assert files == {f"{page.name}/{page.name}.ipynb" for page in LABS}


@pytest.mark.parametrize("page", LABS, ids=lambda page: page.name)
def test_nbgrader_releases_the_bytes_of_a_lab(released, page):
    if is_learners(page):
        pytest.skip("somebody works in this lab")
    lab = as_text(without_outputs(nbformat.read(page.target, 4)))
    assert (released / page.name / f"{page.name}.ipynb").read_text(encoding="utf-8") == lab


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        (None, "Question q1: not attempted"),
        (3, "Question q1: 0 of 1 public checks passed; the first that did not:"),
        (4, ""),
    ],
)
def test_under_nbgrader_a_check_that_does_not_pass_raises(answer, verdict, monkeypatch, capsys):
    cases = [("the answer", lambda value: value, 4)]
    checks.question("q1", answer, cases)
    printed = capsys.readouterr().out
    monkeypatch.setenv("NBGRADER_EXECUTION", "autograde")
    if verdict:
        with pytest.raises(AssertionError) as raised:
            checks.question("q1", answer, cases)
        assert str(raised.value) == verdict
    else:
        checks.question("q1", answer, cases)
    assert capsys.readouterr().out == printed
