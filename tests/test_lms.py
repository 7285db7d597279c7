"""Labs and grades for other systems: nbgrader, Canvas and Moodle."""

import collections
import csv
import io
import re
import subprocess
import sys

import nbformat
import pytest
from nbgrader.nbgraderformat import MetadataValidator

from helpers.errors import WorkbookError
from helpers.grading import __main__ as command
from helpers.grading import checks, lms, report
from helpers.grading.cohort import Class
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
        (3, "Question q1: its check did not pass:"),
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


# --- Canvas and Moodle ---------------------------------------------------------------------------


def record(student, lab, points, of):
    """A result with one graded question, and one that is marked by hand."""
    questions = [
        {"question": "q1", "state": "graded", "points": points, "of": of - 2, "checks": []},
        {"question": "q2", "state": "by hand", "points": 0, "of": 2, "checks": []},
    ]
    return {
        "student": student, "lab": lab, "points": points, "of": of,
        "notes": [], "questions": questions,
    }  # fmt: skip


CLASS = Class(
    [
        record("ada", "01_relay_ir", 4.5, 7),
        record("ada", "03_operator_fusion", 1 / 3, 3),
        record("=HYPERLINK(1)", "03_operator_fusion", 0, 3),
    ],
    ["=HYPERLINK(1)", "ada", "bob"],
    ["README.md"],
    ["bob/lab3.ipynb"],
)
ROSTER = """\ufefffolder,Student,ID,SIS Login ID,Section,Email Address,Notes
ada,"Lovelace, Ada",17,al17,A,ada@example.org,x
bob,"O'Hara, Bob",18,bo18,B,bob@example.org,
=HYPERLINK(1),Eve,,,B,eve@example.org
,,,,,nobody@example.org,
"""


def rows(text):
    return list(csv.reader(io.StringIO(text)))


@pytest.fixture
def roster(tmp_path):
    path = tmp_path / "roster.csv"
    path.write_text(ROSTER, encoding="utf-8")
    return lms.read_roster(path)


def test_canvas_gets_its_columns_and_what_a_lab_is_worth(roster):
    assert rows(lms.canvas(CLASS, roster)) == [
        [
            "Student", "ID", "SIS User ID", "SIS Login ID", "Section",
            "01_relay_ir", "03_operator_fusion",
        ],
        ["    Points Possible", "", "", "", "", "7", "3"],
        ["Eve", "", "", "", "B", "", "0"],
        ["Lovelace, Ada", "17", "", "al17", "A", "4.5", "0.333"],
        ["O'Hara, Bob", "18", "", "bo18", "B", "", ""],
    ]  # fmt: skip


def test_moodle_gets_a_column_that_tells_who_everybody_is(roster):
    assert rows(lms.moodle(CLASS, roster)) == [
        ["Email address", "01_relay_ir", "03_operator_fusion"],
        ["eve@example.org", "-", "0"],
        ["ada@example.org", "4.5", "0.333"],
        ["bob@example.org", "-", "-"],
    ]


@pytest.mark.parametrize("roster", [{}, {"ada": {"Email address": "ada@example.org"}}])
def test_without_a_roster_for_all_the_folder_is_the_login(roster):
    table = rows(lms.moodle(CLASS, roster))
    assert table[0][0] == "Username"
    assert [row[0] for row in table[1:]] == ["'=HYPERLINK(1)", "ada", "bob"]
    logins = [row[3] for row in rows(lms.canvas(CLASS, roster))[2:]]
    assert logins[::2] == ["'=HYPERLINK(1)", "bob"]


NAMES = ["=1+1", "+1", "-1", "@a", "Points Possible", 'Read, "me"', "a\nb", "\udcff", "Zoë 李"]


def test_no_name_is_a_formula_or_another_row_of_the_table():
    records = [record(lms.printable(name), "01_relay_ir", 1, 3) for name in NAMES]
    graded = Class(records, NAMES)
    for text in (lms.canvas(graded, {}), lms.moodle(graded, {}), report.grades(graded)):
        text.encode()  # is UTF-8
        cells = [cell for row in rows(text) for cell in row]
        assert not [cell for cell in cells if re.match(r"[=+@\t\r]|-.", cell)]
    canvas = rows(lms.canvas(graded, {}))
    assert sum("Points Possible" in row[0] for row in canvas) == 1
    assert [row[-1] for row in canvas] == ["01_relay_ir", "3", *["1"] * len(NAMES)]
    assert {len(row) for row in canvas} == {6}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "needs a column `folder`"),
        ("Student,ID\nAda,1\n", "needs a column `folder`"),
        ("folder,Name\nada,Ada\n", "one or more of Student, ID, SIS User ID"),
        ("folder;ID\nada;1\n", "separated by commas"),
        ("folder,ID\nada,1\nada,2\n", "two rows for the folder 'ada'"),
        ("folder,ID\nada,1\nbob,1\n", "folders 'ada' and 'bob' the same ID"),
        ("folder,ID\nada,\udcff\n", "cannot be read as UTF-8 CSV"),
    ],
)
def test_a_wrong_roster_is_told_in_a_sentence(text, said, tmp_path):
    path = tmp_path / "roster.csv"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(WorkbookError) as raised:
        lms.read_roster(path)
    assert said in str(raised.value)


def test_the_command_reads_the_roster_and_names_who_is_not_in_it(tmp_path, monkeypatch, capsys):
    path = tmp_path / "roster.csv"
    path.write_text("folder,ID number\nada,17\n=HYPERLINK(1),18\n", encoding="utf-8")
    monkeypatch.setattr(command, "grade_class", lambda *a, **k: CLASS)
    out = tmp_path / "out"
    out.mkdir()
    assert command.main([str(tmp_path), str(out), "--roster", str(path)]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert f"Not in {path}: bob." in printed
    assert "Not graded, its name begins with no lab's name: bob/lab3.ipynb." in printed
    assert "Loose in SUBMISSIONS, belongs to nobody: README.md." in printed
    first = (out / "moodle.csv").read_bytes()
    path.write_text(path.read_text() + "bob,19\n", encoding="utf-8")
    assert command.main([str(tmp_path), str(out), "--roster", str(path)]) == 0
    printed = capsys.readouterr().out
    assert "Not in " not in printed
    assert "without a folder" not in printed
    assert first.splitlines()[0].startswith(b"Username")
    assert [row[0] for row in rows((out / "moodle.csv").read_text())] == [
        "ID number", "18", "17", "19"
    ]  # fmt: skip
    again = {path.name: path.read_bytes() for path in out.glob("*.csv")}
    assert command.main([str(tmp_path), str(out), "--roster", str(path)]) == 0
    assert again == {path.name: path.read_bytes() for path in out.glob("*.csv")}


def test_the_command_names_the_rows_of_the_roster_without_a_folder(tmp_path, monkeypatch, capsys):
    path, out = tmp_path / "roster.csv", tmp_path / "out"
    path.write_text(
        "folder,Student,ID,Section,Notes\n"
        ",    Points Possible,,,\n"
        ",,,,only a note\n"
        'ada,"Lovelace, Ada",17,A,\n'
        'carol,"Shaw, Carol",18,A,\n'
        ',"Hopper, Grace",19,A,\n'
        ",,20,A,\n",
        encoding="utf-8",
    )
    monkeypatch.setattr(command, "grade_class", lambda *a, **k: CLASS)
    assert command.main([str(tmp_path), str(out), "--roster", str(path)]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert f"In {path}, without a folder: carol, Hopper, Grace, 20." in printed
    assert f"Not in {path}: =HYPERLINK(1), bob." in printed
