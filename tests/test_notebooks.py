"""From source to notebook, to lab, to a run under nbval: on small pages in a temporary workbook."""

import json
import shutil
import signal
from pathlib import Path

import nbformat
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.errors import WorkbookError
from helpers.kernels import ROOT
from tools import build_notebooks, page_checks
from tools.build_notebooks import build, differences, main
from tools.check_notebooks import changed_copy, run_nbval
from tools.check_notebooks import main as check_notebooks
from tools.pages import Page, as_text, blank_answers, find_pages, read_page

LESSON = """\
# Tiny page

One paragraph.

```{code-cell}
import os
import sys

import helpers

print("one")
os.write(2, b"a native line\\n")
```

## Sums

```{code-cell}
:name: total
print("sum")
1 + 1;
```

```{code-cell}
:tags: [nbval-ignore-output]
import time

time.time()
```

```{code-cell}
assert time.time() > 0
```

+++

A [link](#Sums).

```{code-cell}
:tags: [raises-exception]
1 / 0
```
"""

LAB = '''\
# Tiny lab

```{code-cell}
from helpers.grading import checks
```

## Question 1

```{code-cell}
:tags: [solution]
kernels = 3
extra = [1,
         2]
```

```{code-cell}
:tags: [check]
:points: 2
checks.question("q1", kernels, [("kernels", lambda k: k > 0, True)])
```

## Question 2

```{code-cell}
:tags: [solution]
def twice(n):
    """Two times n."""
    ### BEGIN SOLUTION
    return 2 * n
    ### END SOLUTION
```

```{code-cell}
:tags: [check]
checks.question("q2", twice, [("twice(3)", lambda f: f(3), 6)])
```

+++ {"tags": ["written"], "points": 3}

The reason is secret.
'''


def workbook(root: Path, lesson: str = LESSON, lab: str | None = None) -> Path:
    (root / "notebooks" / "src").mkdir(parents=True, exist_ok=True)
    (root / "notebooks" / "src" / "01_tiny.md").write_text(lesson)
    if lab is not None:
        (root / "solutions" / "01_tiny").mkdir(parents=True, exist_ok=True)
        (root / "solutions" / "01_tiny" / "lab.md").write_text(lab)
    return root


def lesson_page(root: Path, source: str) -> Page:
    return find_pages(workbook(root, source))[0]


def read(root: Path, source: str):
    return read_page(lesson_page(root, source))


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A workbook of one lesson and one lab, built; not to be changed."""
    root = workbook(tmp_path_factory.mktemp("workbook"), lab=LAB)
    assert main([], root) == 0
    return root


@pytest.fixture
def copied(built, tmp_path):
    """The built workbook again, to be changed."""
    return shutil.copytree(built, tmp_path / "copy")


def cells(path: Path):
    return {cell.id: cell for cell in nbformat.read(path, 4).cells}


# --- sources ---------------------------------------------------------------------------------


def test_ids_come_from_names_and_headings(tmp_path):
    ids = [cell.id for cell in read(tmp_path, LESSON).cells]
    assert ids == [
        *("tiny-page-1", "tiny-page-2", "sums-1", "total", "sums-2", "sums-3", "sums-4", "sums-5"),
    ]


def test_a_new_cell_changes_no_id_in_another_section(tmp_path):
    before = read(tmp_path, LESSON)
    after = read(tmp_path, LESSON.replace("## Sums", "+++\n\nNew.\n\n+++\n\n## Sums"))
    assert [c.id for c in before.cells if "sums" in c.id] == [
        c.id for c in after.cells if "sums" in c.id
    ]


@given(st.lists(st.text("ab #1-\n", max_size=12), max_size=8))
def test_ids_are_unique_and_valid_whatever_the_headings(tmp_path_factory, texts):
    source = "# A\n" + "\n\n+++\n\n".join(f"## {text}" for text in texts)
    notebook = read(tmp_path_factory.getbasetemp() / "ids", source)
    nbformat.validate(notebook)
    assert len({cell.id for cell in notebook.cells}) == len(notebook.cells)


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("```{code-cell}\n:name: x\n1\n```\n```{code-cell}\n:name: x\n2\n```", "two cells are na"),
        ("```{code-cell}\n:name: Not good\n1\n```", "'Not good'"),
        ("```{code-cell}\n:tags: [nbval-ignore-outputs]\n1\n```", "mean 'nbval-ignore-output'"),
        ("```{code-cell}\n:tag: [x]\n1\n```", "mean 'tags'"),
        ("```{code-cell}\n:tags: [check]\n1\n```", "belongs into a lab"),
        ("```{code-cell}\n:tags: [\n1\n```", "line 1"),
    ],
)
def test_a_source_that_is_not_well_formed_is_named(tmp_path, source, said):
    with pytest.raises(WorkbookError, match="01_tiny") as caught:
        read(tmp_path, source)
    assert said in str(caught.value)


def test_an_unknown_name_gets_the_nearest_page(built):
    with pytest.raises(WorkbookError, match="01_tiny"):
        find_pages(built, ["01_tini"])


def test_blank_answers_keep_the_names():
    namespace: dict = {}
    exec(blank_answers("a = 1\nb = [\n  2,\n]  # two"), namespace)
    assert (namespace["a"], namespace["b"]) == (None, None)
    with pytest.raises(ValueError, match="BEGIN SOLUTION"):
        blank_answers("a = 1\nprint(a)")


# --- built pages -----------------------------------------------------------------------------


def test_stored_outputs_are_what_nbval_will_see(built):
    page = cells(built / "notebooks" / "01_tiny.ipynb")
    first = page["tiny-page-2"]
    assert [out.text for out in first.outputs if out.output_type == "stream"] == ["one\n"]
    assert page["total"].outputs[0].text == "sum\n"
    assert page["total"].outputs[1].data == {"text/plain": "2"}
    assert page["sums-5"].outputs[0].traceback == ["ZeroDivisionError: division by zero"]
    assert [c.execution_count for c in page.values() if c.cell_type == "code"] == [1, 2, 3, 4, 5]


def test_the_build_is_deterministic(copied):
    page = find_pages(copied)[0]
    before = page.target.read_text()
    build(page)
    changing = json.dumps(cells(page.target)["sums-2"].outputs)
    again = page.target.read_text()
    assert changing not in before
    ignored = [cells(page.target)["sums-2"].outputs[0].data["text/plain"]]
    assert len(before.splitlines()) == len(again.splitlines())
    differing = [b for a, b in zip(before.splitlines(), again.splitlines(), strict=True) if a != b]
    assert [line.strip().strip('"') for line in differing] == ignored


def test_the_lab_has_no_answer_and_runs_through(built):
    text = (built / "labs" / "01_tiny" / "01_tiny.ipynb").read_text()
    lab = cells(built / "labs" / "01_tiny" / "01_tiny.ipynb")
    assert "2 * n" not in text
    assert "secret" not in text
    assert lab["q1"].source.splitlines()[0].startswith("kernels = None")
    assert lab["q1-check"].outputs[0].text == "Question q1: not attempted\n"
    assert lab["q2-check"].outputs[0].text == "Question q2: not attempted\n"
    assert '"""Two times n."""' in lab["q2"].source
    assert lab["q3"].source == "*Your answer here.*"


def test_the_solution_passes_its_own_checks(built):
    page = cells(built / "solutions" / "01_tiny" / "01_tiny.ipynb")
    assert page["q1-check"].outputs[0].text == "Question q1: public checks passed (1 of 1)\n"
    assert page["q2-check"].outputs[0].text == "Question q2: public checks passed (1 of 1)\n"


def test_the_masters_are_valid_for_nbgrader(built):
    from nbgrader.nbgraderformat import MetadataValidator

    for kind in ("solutions", "labs"):
        notebook = nbformat.read(built / kind / "01_tiny" / "01_tiny.ipynb", 4)
        MetadataValidator().validate_nb(notebook)
        graded = {
            c.metadata.nbgrader.grade_id: c.metadata.nbgrader.get("points")
            for c in notebook.cells
            if c.metadata.get("nbgrader", {}).get("grade")
        }
        assert graded == {"q1-check": 2, "q2-check": 1, "q3": 3}


def test_a_built_workbook_is_what_its_sources_build(built):
    assert differences(built) == []


def edit(path: Path, change) -> None:
    notebook = nbformat.read(path, 4)
    change(notebook)
    path.write_text(as_text(notebook))


@pytest.mark.parametrize(
    ("where", "change", "said"),
    [
        ("notebooks", lambda n: n.cells[0].update(source="# Other"), "source of cell 1 (tiny-page"),
        ("notebooks", lambda n: n.cells[1].update(id="other"), "the id of cell 2"),
        ("notebooks", lambda n: n.cells[1].metadata.update(x=1), "metadata of cell 2"),
        ("notebooks", lambda n: n.cells.pop(), "7 cells, its source has 8"),
        ("notebooks", lambda n: n.metadata.update(widgets={}), "its metadata"),
        ("labs/01_tiny", lambda n: n.cells[3].update(source="kernels = 3"), "cell 4 (q1)"),
    ],
)
def test_a_hand_edited_notebook_is_found(copied, where, change, said):
    edit(copied / where / "01_tiny.ipynb", change)
    (problem,) = differences(copied)
    assert said in problem


def test_other_ways_not_to_be_what_the_source_builds(copied, capsys):
    path = copied / "notebooks" / "01_tiny.ipynb"
    (copied / "notebooks" / "other.ipynb").write_text(path.read_text())
    path.write_text(json.dumps(json.loads(path.read_text()), indent=2))
    (copied / "labs" / "01_tiny" / "01_tiny.ipynb").unlink()
    assert main(["--check"], copied) == 1
    said = capsys.readouterr().out
    assert "another program" in said
    assert "is not built" in said
    assert "no source builds this notebook" in said


def test_outputs_are_kept_up_to_the_first_changed_cell(copied):
    source = copied / "notebooks" / "src" / "01_tiny.md"
    source.write_text(source.read_text().replace("One para", "1 para").replace("1 + 1", "1 + 2"))
    build(find_pages(copied)[0], run=False)
    page = cells(copied / "notebooks" / "01_tiny.ipynb")
    assert page["tiny-page-1"].source.endswith("1 paragraph.")
    assert page["tiny-page-2"].execution_count == 1
    assert page["tiny-page-2"].outputs
    assert page["total"].execution_count is None
    assert page["sums-3"].execution_count is None


def code(*sources: str) -> str:
    return "# Page\n\n" + "\n\n".join(f"```{{code-cell}}\n{source}\n```" for source in sources)


def test_a_failing_cell_is_named_with_its_line(tmp_path):
    page = lesson_page(tmp_path, code("x = 0", "y = 1\ny / x"))
    with pytest.raises(WorkbookError) as caught:
        build(page)
    assert str(caught.value) == (
        "01_tiny, cell 'page-3' (code cell 2): line 2: `y / x`: ZeroDivisionError: division by zero"
    )
    assert not page.target.exists()


def test_a_cell_that_kills_the_kernel_is_named_with_the_signal(tmp_path):
    page = lesson_page(tmp_path, code("import os\nos.kill(os.getpid(), 11)"))
    with pytest.raises(WorkbookError, match=r"cell 'page-2'.*SIGSEGV"):
        build(page)


# --- nbval ------------------------------------------------------------------------------------


def test_nbval_fails_exactly_the_changed_cells_and_reports_a_dead_kernel(built, tmp_path):
    good = nbformat.read(built / "notebooks" / "01_tiny.ipynb", 4)
    changed, hit = changed_copy(good)
    assert hit == {0, 1, 4}  # not the ignored cell, nor the one without output
    emptied = nbformat.from_dict(good)
    emptied.cells[1].outputs = []
    emptied.cells[4].outputs = []  # ignored: nbval lets it pass
    page = lesson_page(
        tmp_path / "killer", code("print(1)", "import os\nos.kill(os.getpid(), 11)", "print(2)")
    )
    killer = read_page(page)
    for count, cell in enumerate(page_checks.code_cells(killer), 1):
        cell.execution_count = count
    killer.cells[1].outputs = [nbformat.v4.new_output("stream", name="stdout", text="1\n")]
    made = {
        "good": (good, set()),
        "changed": (changed, hit),
        "emptied": (emptied, {0}),
        "killer": (killer, {1, 2}),
    }
    for name, (notebook, _) in made.items():
        (tmp_path / f"{name}.ipynb").write_text(as_text(notebook))
    found = run_nbval([tmp_path / f"{name}.ipynb" for name in made], tmp_path, quiet=True)
    for name, (notebook, failing) in made.items():
        here = {cell: said for (page, cell), said in found.items() if page == f"{name}.ipynb"}
        assert len(here) == len(page_checks.code_cells(notebook)), name
        assert {cell for cell, said in here.items() if said != "passed"} == failing, name
    assert f"killed by {signal.Signals.SIGSEGV.name}" in found["killer.ipynb", 1]


def test_a_cell_that_nbval_does_not_run_has_not_passed(tmp_path, monkeypatch):
    monkeypatch.setattr("tools.check_notebooks.subprocess.run", lambda *_, **__: None)
    (tmp_path / "page.ipynb").write_text(as_text(stored(["1", "2"])))
    found = run_nbval([tmp_path / "page.ipynb"], tmp_path)
    assert found == dict.fromkeys([("page.ipynb", 0), ("page.ipynb", 1)], "nbval did not run it")


def test_no_notebook_is_not_a_pass(tmp_path, capsys):
    assert check_notebooks([], tmp_path) == 1
    assert "no notebook to check" in capsys.readouterr().out


def test_the_whole_check_names_page_and_defect(built, capsys):
    assert check_notebooks(["--static"], built) == 1
    said = capsys.readouterr().out.splitlines()
    assert said == [
        "01_tiny: There are 8 cells: a lesson has 20 to 35.",
        "01_tiny: Only 3 of 4 outputs are compared strictly, not 85%.",
        "nbval compares 7 of 8 outputs strictly.",
    ]


class Item:
    """What the proof sees of nbval's test item; ``same`` is what the comparison answers."""

    def __init__(self, cell, same):
        self.cell, self.options, self.test_outputs = cell, {"check": True}, cell.outputs
        self.compare_outputs = lambda got, stored: same


def test_the_proof_finds_a_comparison_that_lets_changes_pass(built):
    from tools.nbval_plugin import unnoticed_changes

    cell = cells(built / "notebooks" / "01_tiny.ipynb")["total"]
    assert list(unnoticed_changes(Item(cell, same=False))) == []
    assert list(unnoticed_changes(Item(cell, same=True))) == [
        *("text in output 1", "the loss of output 1"),
        *("text/plain in output 2", "the loss of output 2"),
    ]


# --- what a page must be like -----------------------------------------------------------------


def stored(sources, outputs=(), tags=(), prose="# T"):
    """A notebook with code cells that have run."""
    made = [nbformat.v4.new_markdown_cell(prose, id="prose")]
    for number, source in enumerate(sources):
        cell = nbformat.v4.new_code_cell(source, execution_count=number + 1, id=f"c{number}")
        cell.outputs = list(outputs[number]) if number < len(outputs) else []
        if number < len(tags) and tags[number]:
            cell.metadata["tags"] = [tags[number]]
        made.append(cell)
    return nbformat.v4.new_notebook(cells=made)


def out(text, name="stdout"):
    return nbformat.v4.new_output("stream", name=name, text=text)


def figure(alt):
    data = {"image/png": "iVBORw0KGgo=", "text/plain": alt}
    return nbformat.v4.new_output("display_data", data=data)


def found(notebook, kind="solution", path=ROOT / "notebooks" / "x.ipynb"):
    return page_checks.problems(notebook, path, kind)


@pytest.mark.parametrize(
    ("notebook", "said"),
    [
        (stored(["1"], prose="text"), "0 headings of level 1"),
        (stored(["1"], prose="# A\n\n# B"), "2 headings of level 1"),
        (stored(["a\n" * 26]), "26 lines of code"),
        (stored(["a\n" * 7] * 2), "median code cell is longer than 6"),
        (stored(["1"], tags=["nbval-skip"]), "c0 is skipped"),
        (stored(["# NBVAL_IGNORE_OUTPUT\nassert 1"], [[out("1")]]), "by a comment"),
        (stored(["t()", "1"], [[out("1")]], ["nbval-ignore-output"]), "no assertion"),
        (stored(["t()", "assert 1"], [[out("1")]], ["nbval-ignore-output"] * 1), "Only 0 of 1"),
        (stored(["f()"], [[figure("<Figure size 640x480 with 1 Axes>")]]), "c0 shows only what"),
        (stored(["f()"], [[out("1"), figure("<Figure size 640x480 with 1 Axes>")]]), "no alt text"),
        (stored(["f()"], [[figure("A plot.")]]), "no alt text"),
        (stored(["f()"], [[out("<object at 0x7f00aa11>")]]), "an object's address: 0x7f00aa11"),
        (stored(["f()"], [[out("in /tmp/ipykernel_1/2.py")]]), "a path of this machine: /tmp/"),
        (stored(["f()"], [[out("x.py:1: UserWarning: old")]]), "a warning: UserWarning:"),
        (stored(["f()"], [[out("[12:00:01] /a/b.cc:12: Warning: x")]]), "a line of TVM's log"),
        (stored(["f()"], [[out("oops", "stderr")]]), "standard error: oops"),
        (stored([], prose="# T\n\n![](../conftest.py)"), "no alt text"),
        (stored([], prose='# T\n\n<img src="../conftest.py">'), "no alt text"),
        (stored([], prose="# T\n\n[a](nowhere.md)"), "nowhere.md in cell prose leads nowhere"),
        (stored([], prose="# T\n\n[a](#nowhere)"), "anchor #nowhere"),
    ],
)
def test_a_defect_of_a_page_is_found(notebook, said):
    assert [problem for problem in found(notebook) if said in problem], found(notebook)


def test_an_unrun_cell_is_found():
    notebook = stored(["1"])
    notebook.cells[1].execution_count = None
    assert "unrun" in " ".join(found(notebook))


def test_a_lesson_has_twenty_to_thirty_five_cells():
    assert "20 to 35" in " ".join(found(stored(["1"] * 18), kind="lesson"))
    assert found(stored(["1"] * 19), kind="lesson") == []
    assert found(stored(["1"] * 34), kind="lesson") == []
    assert "20 to 35" in " ".join(found(stored(["1"] * 35), kind="lesson"))


def test_a_question_counts_as_a_cell_of_one_line():
    """Asked in one form or one by one, the questions of a page weigh the same."""
    long = ["a\n" * 7] * 2
    one = [[], [], [out("Question 03-1. What?\n\n\nQuestion 03-2. Why?\n")]]
    assert page_checks.median_lines(stored([*long, 'quiz.ask("03")'], one)) == 4
    assert page_checks.median_lines(stored([*long, "b()"])) == 7
    assert page_checks.median_lines(stored([*long, "b()\nc()"], one)) == 7


def test_a_good_page_has_no_defect():
    prose = (
        "# T\n\n[a](../conftest.py) [b](#A-Part) [c](https://tvm.apache.org) `[d](x)`\n\n## A Part"
    )
    alt = "Bytes moved per kernel: 64 before fusion, 32 after."
    sources = ["f()"] * 7 + ["t()", "assert 1"]
    outputs = [[figure(alt)]] * 7 + [[out("0.1")]]
    assert found(stored(sources, outputs, [""] * 7 + ["nbval-ignore-output"], prose)) == []


def test_build_prints_the_numbers_an_author_needs(built):
    notebook = nbformat.read(built / "notebooks" / "01_tiny.ipynb", 4)
    assert page_checks.summary(notebook) == (
        "8 cells, 5 of code (median 2 lines), 3 of 4 outputs compared strictly"
    )


def test_consecutive_streams_become_one():
    notebook = stored(["1"], [[out("a"), out("b"), figure("x"), out("c")]])
    build_notebooks.normalise(notebook)
    assert [o.get("text") for o in notebook.cells[1].outputs] == ["ab", None, "c"]
