"""What a learner does with the notebooks: nothing of it is lost, and all of it is seen."""

import json
import os
import subprocess

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from helpers import attempts, progress, quiz, quiz_record, update, verify
from helpers.errors import WorkbookError
from helpers.kernels import ROOT
from tools import build_notebooks
from tools.pages import as_text, find_notebooks, find_pages

LAB = ROOT / "labs" / "03_operator_fusion" / "03_operator_fusion.ipynb"


@pytest.fixture
def lab():
    return attempts.read(LAB)


def code_cells(page):
    return [cell for cell in attempts.read(page.target).cells if cell.cell_type == "code"]


def cell(notebook, name):
    return next(cell for cell in notebook.cells if cell.id == name)


# --- what was written ----------------------------------------------------------------------------


@pytest.mark.parametrize("page", find_pages(ROOT), ids=str)
def test_nothing_is_written_in_the_pages_as_they_are_given_out(page):
    """Fresh lessons hold predictions; nothing is predicted or answered in a fresh page."""
    if page.kind == "solution" or build_notebooks.is_learners(page):
        pytest.skip("not a page that was just given out")
    attempt = attempts.examine(attempts.read(page.target))
    assert not attempt.edited
    if page.kind == "lesson":
        assert attempt.predictions
        asking = [cell.id for cell in code_cells(page) if "quiz.predict(" in cell.source]
        answered = {name.split("/")[0] for name in attempt.predictions}
        assert answered.issuperset(asking)  # each shows a None to write a number for
    else:
        assert attempt.answers.keys() == attempt.verdicts.keys()


def test_an_answer_in_a_lab_is_seen(lab):
    cell(lab, "q1").source += "\n    return 1"
    attempt = attempts.examine(lab)
    assert attempt.edited
    assert [name for name, given in attempt.answers.items() if given] == ["q1"]


def test_a_changed_check_and_an_own_cell_are_seen(lab):
    cell(lab, "q2-check").source = "print('Question q2: public checks passed (9 of 9)')"
    lab.cells.append(new_code_cell("1 + 1", id="0d9f6a3e-7c1b-4f57-a1f0-0c9f6d3f1c2a"))
    attempt = attempts.examine(lab)
    assert attempt.changed == ["q2-check"]
    assert attempt.added == ["0d9f6a3e-7c1b-4f57-a1f0-0c9f6d3f1c2a"]


@pytest.mark.parametrize(
    ("source", "predictions"),
    [
        ("guess = quiz.predict(a=None, b=3)", {"a": False, "b": True}),
        ("guess = quiz.predict(**dict(a=None), b=None)", {"a": False, "b": False}),
        ("guess = quiz.predict(**{'a': 2})", {"a": True}),
        ("both = dict(a=1)\nguess = quiz.predict(**both, b=None)", {"a": True, "b": False}),
        ("guess = quiz.predict(a=", {}),
        ("%time x = 1", {}),
    ],
)
def test_predictions_are_found(source, predictions):
    found = attempts.examine(new_notebook(cells=[new_code_cell(source, id="p")])).predictions
    assert found == {f"p/{name}": given for name, given in predictions.items()}


@pytest.mark.parametrize(
    ("source", "answered"),
    [
        ('quiz.ask("03-1")', False),
        ('quiz.ask("03-1", "B")', True),
        ('quiz.ask("03-1", answer=1024)', True),
        ('quiz.ask("03-1", None)', False),
        ('quiz.ask("03")\nquiz.ask("03-1", "B")', True),
    ],
)
def test_questions_are_found(source, answered):
    found = attempts.examine(new_notebook(cells=[new_code_cell(source, id="q")])).questions
    assert found == {"03-1": answered}


@pytest.mark.parametrize("text", ["", "{}", '{"cells": [1], "nbformat": 4}', "PK\x03", "[1]"])
def test_a_damaged_notebook_is_a_sentence(tmp_path, text):
    path = tmp_path / "03.ipynb"
    path.write_text(text)
    with pytest.raises(WorkbookError, match="not a notebook any more"):
        attempts.read(path)


# --- make verify ---------------------------------------------------------------------------------


def given_out(*pairs):
    """A lab of answers and checks, as the build makes it, and answered as given."""
    cells = []
    for number, (answer, case) in enumerate(pairs, 1):
        role = {"schema_version": 3, "grade": False, "solution": True, "locked": False}
        cells.append(new_code_cell(answer, id=f"q{number}", metadata={"nbgrader": role}))
        check = (
            "from helpers.grading import checks\n"
            f'checks.question("q{number}", f{number}, [("case", {case}, 1)])'
        )
        role = {"schema_version": 3, "grade": True, "solution": False, "locked": True}
        cells.append(new_code_cell(check, id=f"q{number}-check", metadata={"nbgrader": role}))
    return new_notebook(cells=cells, metadata={})


def test_each_question_has_its_own_verdict(tmp_path):
    """A wrong answer, an endless loop and a dead kernel cost their own question."""
    notebook = given_out(
        ("def f1(): return 1", "lambda f: f()"),
        ("def f2():\n    while True: pass", "lambda f: f()"),
        ("def f3():\n    import os\n    os._exit(3)", "lambda f: f()"),
        ("def f4(): return 4", "lambda f: f()"),
        ("def f5(): return helper()\nhelper = lambda: 1", "lambda f: f()"),
        ("f6 = None", "lambda v: v"),
        ("1 / 0", "lambda f: f()"),
    )
    path = tmp_path / "99_trial.ipynb"
    path.write_text(as_text(notebook))
    found = verify.verdicts(path, cell_timeout=5)
    assert found["q1"] == "Question q1: public checks passed (1 of 1)"
    assert found["q2"] == "Question q2: stopped after 5 s: does a loop in it never end?"
    assert found["q3"] == "Question q3: the kernel ended with exit status 3 while it ran"
    assert "its check did not pass" in found["q4"]
    assert found["q5"] == "Question q5: public checks passed (1 of 1)"
    assert found["q6"] == "Question q6: not attempted"
    assert found["q7"] == (
        "Question q7: its answer cell stopped in line 1 (`1 / 0`): "
        "ZeroDivisionError: division by zero"
    )
    assert nbformat.read(path, 4) == notebook, "the learner's file is not written"
    assert "passed for 2 of 7 questions" in verify.report(path, found)


def test_the_error_of_an_answer_cell_is_told_and_not_what_it_leads_to(tmp_path):
    notebook = given_out(
        ("\n\ndef f1():\n    return 'one", "lambda f: f()"),
        ("def f2(): return f1()", "lambda f: f()"),
        ("def f3():\n    return 1\nf3[0]", "lambda f: f()"),
        ("f4 = 1", "lambda v: v + f1()"),
    )
    before = "length = len(f1())"
    notebook.cells.insert(6, new_code_cell(before, id="between"))
    notebook.cells[-1].source = f"print(length)\n{notebook.cells[-1].source}"
    path = tmp_path / "99_trial.ipynb"
    path.write_text(as_text(notebook))
    found = verify.verdicts(path)
    error = "SyntaxError: unterminated string literal (detected at line 2)"
    assert found["q1"] == (
        f"Question q1: its answer cell stopped in line 4 (`return 'one`): {error}"
    )
    assert found["q2"].endswith(
        "  (the answer cell of q1 that defines f1 stopped in line 4 (`return 'one`): " + error + ")"
    )
    assert found["q3"].startswith(
        "Question q3: its answer cell stopped in line 3 (`f3[0]`): TypeError: "
    )
    assert found["q4"] == (
        "Question q4: its check stopped in line 1 (`print(length)`): "
        "NameError: name 'length' is not defined\n"
        "  (the cell that defines length stopped in line 1 (`length = len(f1())`): "
        "NameError: name 'f1' is not defined)"
    )
    assert "passed for 0 of 4" in verify.report(path, found)


def test_passing_never_claims_more_than_the_public_checks(tmp_path):
    text = verify.report(
        tmp_path / "03_x.ipynb", {"q1": "Question q1: public checks passed (1 of 1)"}
    )
    assert "public checks passed for 1 of 1" in text
    assert "drawn for" not in text
    assert "A grader tries more cases" in text
    assert "all" not in text.lower().split()


@pytest.mark.parametrize("name", ["3", "03", 3, "03_operator_fusion", "03_operator_fusion.ipynb"])
def test_a_lab_is_found_by_number_or_name(name):
    assert verify.find(name) == LAB


@pytest.mark.parametrize("name", ["", "77", "fusion", "-3"])
def test_an_unknown_lab_is_a_sentence(name):
    with pytest.raises(WorkbookError, match="There is no lab"):
        verify.find(name)


# --- make progress -------------------------------------------------------------------------------


def test_progress_only_gains(tmp_path, lab):
    root, kept = tmp_path / "book", tmp_path / "progress.json"
    for folder in ("notebooks", "labs/03_operator_fusion"):
        (root / folder).mkdir(parents=True)
    lesson = root / "notebooks" / "03_operator_fusion.ipynb"
    answered = [new_code_cell('quiz.ask("03-1", "A")', id="a"), new_code_cell("x", id="b")]
    blank = [new_code_cell('quiz.ask("03-1")', id="a")]
    target = root / "labs" / "03_operator_fusion" / "03_operator_fusion.ipynb"
    target.write_text(as_text(lab))
    lesson.write_text(as_text(new_notebook(cells=answered)))
    first = progress.table(root, kept)
    assert first.splitlines()[1].split()[4:7] == ["1", "of", "1"]
    lesson.write_text(as_text(new_notebook(cells=blank)))
    progress.note_lab(
        "03_operator_fusion", {"q1": "Question q1: public checks passed (2 of 2)"}, kept
    )
    second = progress.table(root, kept)
    assert "1 of 1" in second
    assert f"1 of {len(attempts.examine(lab).answers)}" in second


def test_progress_counts_what_was_answered_in_the_form(tmp_path, monkeypatch):
    (tmp_path / "notebooks" / "quiz").mkdir(parents=True)
    name = "03_operator_fusion"
    bank = ROOT / "notebooks" / "quiz" / f"{name}.yaml"
    (tmp_path / "notebooks" / "quiz" / f"{name}.yaml").write_text(bank.read_text())
    cells = [
        new_code_cell('quiz.ask("03")', id="a"),
        new_code_cell('quiz.ask("03-2", "A")', id="b"),
    ]
    (tmp_path / "notebooks" / f"{name}.ipynb").write_text(as_text(new_notebook(cells=cells)))
    monkeypatch.setattr(quiz_record, "FILE", tmp_path / "record.json")
    quiz_record.note("03-1", False)
    quiz_record.note("04-1", True)
    shown = progress.table(tmp_path, tmp_path / "kept.json").splitlines()[1].split()
    assert shown[4:7] == ["2", "of", str(len(quiz.load(bank)))]


@pytest.mark.parametrize("text", ["", "[]", '{"03": {"answers": 1, "unknown": 2}}', "\x00"])
def test_a_damaged_progress_file_is_put_aside(tmp_path, capsys, text):
    path = tmp_path / "progress.json"
    path.write_text(text)
    assert progress.load(path) == {}
    assert (tmp_path / "progress.damaged.json").read_text() == text
    assert "damaged" in capsys.readouterr().out


# --- make update ---------------------------------------------------------------------------------

NAME = "labs/03_x/03_x.ipynb"
OTHER = "notebooks/03_x.ipynb"


def git(folder, *arguments):
    names = {
        f"GIT_{who}_{what}": "someone@example.org"
        for who in ("AUTHOR", "COMMITTER")
        for what in ("NAME", "EMAIL")
    }
    return subprocess.run(
        ["git", "-C", str(folder), *arguments],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, **names},
    ).stdout


def page(*sources):
    cells = [new_code_cell(source, id=f"c{k}") for k, source in enumerate(sources)]
    return as_text(new_notebook(cells=cells))


@pytest.fixture
def checkouts(tmp_path):
    """The published workbook and a learner's clone of it."""
    published, mine = tmp_path / "published", tmp_path / "mine"
    for name in (NAME, OTHER):
        (published / name).parent.mkdir(parents=True)
        (published / name).write_text(page("blank"))
    (published / "Makefile").write_text("old\n")
    git(tmp_path, "init", "--quiet", "--initial-branch=main", str(published))
    git(published, "add", "-A")
    git(published, "commit", "--quiet", "-m", "first")
    git(tmp_path, "clone", "--quiet", str(published), str(mine))
    return published, mine


def publish(published, **files):
    for name, text in files.items():
        (published / name).write_text(text)
    git(published, "commit", "--quiet", "-am", "next")


def test_an_answered_lab_survives_an_update(checkouts):
    published, mine = checkouts
    (mine / NAME).write_text(page("my answer"))
    publish(published, **{NAME: page("blank, better"), OTHER: page("newer")})
    said = update.update(mine)
    assert (mine / NAME).read_text() == page("my answer")
    assert (mine / NAME.replace(".ipynb", ".fresh.ipynb")).read_text() == page("blank, better")
    assert (mine / OTHER).read_text() == page("newer")
    assert any("is yours and stays" in line for line in said)
    publish(published, **{NAME: page("blank, best")})
    update.update(mine)
    assert (mine / NAME).read_text() == page("my answer")
    assert (mine / NAME.replace(".ipynb", ".fresh.ipynb")).read_text() == page("blank, best")


def test_a_plain_pull_overwrites_nothing(checkouts):
    published, mine = checkouts
    (mine / NAME).write_text(page("my answer"))
    publish(published, **{NAME: page("blank, better")})
    with pytest.raises(subprocess.CalledProcessError):
        git(mine, "pull", "--ff-only")
    assert (mine / NAME).read_text() == page("my answer")


def test_a_lesson_that_was_only_run_is_replaced(checkouts):
    published, mine = checkouts
    notebook = nbformat.reads(page("blank"), 4)
    notebook.cells[0].outputs = [nbformat.v4.new_output("stream", text="ran\n")]
    (mine / OTHER).write_text(as_text(notebook))
    publish(published, **{OTHER: page("newer")})
    update.update(mine)
    assert (mine / OTHER).read_text() == page("newer")
    assert not list(mine.rglob("*.fresh.ipynb"))


def test_an_interrupted_update_is_finished_by_the_next(checkouts):
    """Killed after the learner's notebook was put aside: it comes back, and the new one too."""
    published, mine = checkouts
    aside = mine / NAME.replace(".ipynb", ".mine.ipynb")
    aside.write_text(page("my answer"))
    publish(published, **{NAME: page("blank, better")})
    update.update(mine)
    assert (mine / NAME).read_text() == page("my answer")
    assert (mine / NAME.replace(".ipynb", ".fresh.ipynb")).read_text() == page("blank, better")


def test_an_update_killed_before_it_changed_anything_takes_nothing_for_new(checkouts):
    """The learner's notebook was only copied: what lies in its place is not a new one."""
    published, mine = checkouts
    for name in (NAME, NAME.replace(".ipynb", ".mine.ipynb")):
        (mine / name).write_text(page("my answer"))
    assert update.update(mine) == ["The workbook is up to date."]
    assert (mine / NAME).read_text() == page("my answer")
    assert not list(mine.rglob("*.fresh.ipynb"))
    publish(published, **{NAME: page("blank, better")})
    update.update(mine)
    assert (mine / NAME.replace(".ipynb", ".fresh.ipynb")).read_text() == page("blank, better")


def test_a_failing_merge_leaves_everything_as_it_was(checkouts, monkeypatch):
    published, mine = checkouts
    (mine / NAME).write_text(page("my answer"))
    publish(published, **{NAME: page("blank, better")})
    whole = update._git

    def failing(root, *arguments, check=True):
        if arguments[0] == "merge":
            raise WorkbookError("no space left on device")
        return whole(root, *arguments, check=check)

    monkeypatch.setattr(update, "_git", failing)
    with pytest.raises(WorkbookError, match="no space"):
        update.update(mine)
    assert (mine / NAME).read_text() == page("my answer")


def test_what_an_update_cannot_do_is_a_sentence(checkouts, tmp_path):
    published, mine = checkouts
    assert update.update(mine) == ["The workbook is up to date."]
    (mine / "Makefile").write_text("mine\n")
    publish(published, Makefile="new\n")
    with pytest.raises(WorkbookError, match="changes Makefile, and so did you"):
        update.update(mine)
    git(mine, "commit", "--quiet", "-am", "own")
    with pytest.raises(WorkbookError, match="commits of your own"):
        update.update(mine)
    with pytest.raises(WorkbookError, match="not a git checkout"):
        update.update(tmp_path)


def test_an_update_says_from_which_version_to_which_and_what_is_new(checkouts):
    published, mine = checkouts
    project, entries = (
        '[project]\nversion = "{}"\n',
        "## [0.1.0] - 2026-01-01\n\n### Added\n\n- Old.\n",
    )
    for name in ("pyproject.toml", "CHANGELOG.md"):
        (published / name).touch()
    git(published, "add", "-A")
    publish(published, **{"pyproject.toml": project.format("0.1.0"), "CHANGELOG.md": entries})
    assert update.update(mine) == ["The workbook is updated (version 0.1.0): 2 files changed."]
    entries = "## [0.2.0] - 2026-02-01\n\n### Added\n\n- A lab.\n\n" + entries
    (mine / "Makefile").write_text("mine\n")
    files = {"pyproject.toml": project.format("0.2.0"), "CHANGELOG.md": entries, "Makefile": "new"}
    publish(published, **files)
    with pytest.raises(WorkbookError, match=r"from version 0\.1\.0 to 0\.2\.0 changes Makefile"):
        update.update(mine)
    (mine / "Makefile").write_text("old\n")
    told = "The workbook is updated from version 0.1.0 to 0.2.0: 3 files changed."
    assert update.update(mine) == [told, "", "0.2.0 - 2026-02-01", "Added:", "- A lab."]
    assert update.update(mine) == ["The workbook is up to date (version 0.2.0)."]


# --- the build -----------------------------------------------------------------------------------


def test_the_build_does_not_write_over_an_answered_lab(tmp_path, capsys):
    """Nor does the comparison with the source call it a fault; a committed one it does."""
    source = tmp_path / "solutions" / "03_x" / "lab.md"
    source.parent.mkdir(parents=True)
    source.write_text(
        "# Lab 03 · X\n\n```{code-cell}\n:tags: [solution]\nanswer = 31\n```\n\n"
        "```{code-cell}\n:tags: [check]\nprint(answer)\n```\n"
    )
    solution, lab = find_pages(tmp_path)
    for each in (solution, lab):
        build_notebooks.build(each, run=False)
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "--quiet", "-m", "given out")
    given = lab.target.read_text()
    assert build_notebooks.differences(tmp_path) == []

    answered = json.loads(given)
    cells = {cell["id"]: cell for cell in answered["cells"]}
    cells["q1"]["source"] = ["answer = 30"]
    lab.target.write_text(json.dumps(answered))
    build_notebooks.build(lab, run=False)
    assert json.loads(lab.target.read_text()) == answered
    assert update.fresh_copy(lab.target).read_text() == given
    assert "stays as it is" in capsys.readouterr().out
    assert build_notebooks.differences(tmp_path) == []
    assert update.fresh_copy(lab.target) not in find_notebooks(tmp_path)

    git(tmp_path, "commit", "--quiet", "-am", "a mistake")
    assert build_notebooks.differences(tmp_path) != []


def test_verify_says_whose_variant_it_ran(monkeypatch, tmp_path):
    monkeypatch.setenv("VARIANT", " Ada ")
    passed = {"q1": "Question q1: public checks passed (1 of 1)"}
    text = verify.report(tmp_path / "03_x.ipynb", passed)
    assert text.endswith("What is drawn was drawn for ada.")
