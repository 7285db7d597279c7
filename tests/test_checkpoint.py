"""A checkpoint leaves what the cells before it leave, and the next cells print what they print.

The gate jumps to the last step that the three-hour path takes of each lesson, ``CHECKPOINTS=all``
to every step of every lesson, each in a kernel of its own (an hour).
"""

import json
import os
import subprocess
import sys
import time

import nbformat
import pytest

from helpers import lesson_steps, progress, quiz_record, teaching_paths
from helpers.errors import WorkbookError
from helpers.kernels import ROOT, kernel_client
from tools.build_notebooks import normalise
from tools.pages import find_pages, read_page

EVERY = [step.name for number in lesson_steps.lessons() for step in lesson_steps.steps(number)]
CALL = "from helpers import checkpoint\n\ncheckpoint({!r})"
LESSONS = [page for page in find_pages(ROOT) if page.kind == "lesson"]


def last_steps():
    """Of each lesson on the shortest path: to get there, all of its steps before are run."""
    path = teaching_paths.load("three_hours")
    return {part.lesson: part.steps[-1] for part in path.parts if part.steps}.values()


# --- steps ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", LESSONS, ids=str)
def test_the_steps_hold_the_code_cells_of_the_lesson(page):
    """The same as the build reads, which uses another parser."""
    cells = [cell for cell in read_page(page).cells if cell.cell_type == "code"]
    found = [cell for step in lesson_steps.steps(page.name[:2]) for cell in step.cells]
    assert [cell.source for cell in found] == [cell.source for cell in cells]
    assert [list(cell.tags) for cell in found] == [cell.metadata.get("tags", []) for cell in cells]
    assert [cell.name or other.id for cell, other in zip(found, cells, strict=True)] == [
        cell.id for cell in cells
    ]


def test_a_step_is_a_section_of_the_second_level(tmp_path):
    (tmp_path / "07_small.md").write_text(
        "# 07 · Small\n\n```{code-cell}\n:name: setup\n\na = 1\n```\n\n## One\n\n### Not one\n\n"
        "```python\n## no heading, and no cell\n```\n\n## Two `words`\n\n"
        "```{code-cell}\n:tags: [raises-exception, hide-input]\n\n\nb = 2\n\n# end\n```\n"
    )
    found = lesson_steps.steps("07", tmp_path)
    assert [(step.name, step.title, step.code) for step in found] == [
        ("07.0", "07 · Small", ("a = 1",)),
        ("07.1", "One", ()),
        ("07.2", "Two `words`", ("b = 2\n\n# end",)),
    ]
    assert found[0].cells[0].name == "setup"
    assert found[2].cells[0].tags == ("raises-exception", "hide-input")


def test_the_steps_are_listed(capsys):
    lesson_steps.checkpoint("3")
    lines = capsys.readouterr().out.splitlines()
    assert lines[4].split(maxsplit=1) == ["03.4", "The arithmetic of memory"]
    lesson_steps.checkpoint()
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines() if line] == EVERY


@pytest.mark.parametrize(
    ("step", "said"),
    [
        ("03.99", 'the nearest is "03.12"'),
        ("3.four", "names no step"),
        ("03-4", "names no step"),
        ("77.1", 'no lesson "77"'),
        ("77", 'no lesson "77"'),
        ("fusion", "names no step"),
        (3.1, "in quotes"),  # which would also be 3.10
    ],
)
def test_what_is_no_step_is_a_sentence(step, said):
    with pytest.raises(WorkbookError, match=said) as caught:
        lesson_steps.checkpoint(step)
    assert "\n" not in str(caught.value)


# --- what is run ---------------------------------------------------------------------------------


@pytest.fixture
def small(tmp_path, monkeypatch):
    """A lesson of its own, of cells with tags or without -> what it leaves in a namespace."""
    folder = tmp_path / "src"
    folder.mkdir()
    monkeypatch.setattr(lesson_steps, "SOURCES", folder)

    def jump(*cells, namespace=None):
        tagged = [cell if isinstance(cell, tuple) else (cell, "") for cell in cells]
        blocks = [f"```{{code-cell}}\n:tags: [{tag}]\n\n{cell}\n```\n" for cell, tag in tagged]
        (folder / "90_small.md").write_text("# 90\n\n" + "\n".join(blocks) + "\n## End\n")
        names = {} if namespace is None else namespace
        call = "from helpers.lesson_steps import checkpoint\ncheckpoint('90.1')"
        monkeypatch.setattr(lesson_steps.steps, "__defaults__", (folder,))
        monkeypatch.setattr(lesson_steps.find, "__defaults__", (folder,))
        exec(call, names)
        return names

    return jump


def test_it_says_one_line_and_nothing_else(small, capfd):
    small("import sys\nprint('loud')\nprint('louder', file=sys.stderr)\nimport warnings")
    assert capfd.readouterr().out == "90.1 End: ready, in 0 s\n"


def test_own_names_stay_and_what_hides_a_builtin_goes(small):
    names = small("a = sum([1, 2])", namespace={"mine": 5, "a": "old", "sum": 3, "print": None})
    assert (names["mine"], names["a"]) == (5, 3)
    assert names.keys().isdisjoint({"sum", "print"})


def test_an_expected_error_is_passed_over_and_another_one_is_a_sentence(small):
    assert small(("a = 1\nraise ValueError", "raises-exception"), "b = a")["b"] == 1
    with pytest.raises(
        WorkbookError, match=r"Step 90\.0 does not run .*ZeroDivisionError.*restart"
    ):
        small("1 / 0")


def test_what_only_shows_is_left_out_and_what_it_names_is_not(small):
    names = small(
        "calls = []\nclass plots:\n    show = calls.append\nquiz = None",
        "plots.show('a')\nquiz.ask('03')\nfor i in range(2):\n    plots.show(i)",
        "def later():\n    plots.show('b')\n\nplots.show(named := 'c')\nlater()",
    )
    assert (names["calls"], names["named"]) == (["c", "b"], "c")


def test_a_measuring_cell_is_left_out_unless_later_cells_need_it(small):
    measuring = "nbval-ignore-output"
    assert "a" not in small(("a = 1", measuring), "b = 2")
    assert small(("a = 1", measuring), "b = lambda: a")["b"]() == 1
    assert small(("a = 1", measuring), ("b = a", measuring))["a"] == 1  # the second may be next
    assert small("a = {}", ("a['b'] = 1", measuring))["a"] == {"b": 1}


def test_functions_have_their_source(small):
    names = small("import inspect\n\n\ndef f():\n    return 1\n\n\ntext = inspect.getsource(f)")
    assert names["text"] == "def f():\n    return 1\n"


# --- against the notebook ------------------------------------------------------------------------

STATE = """
import ast, json, sys, types
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

shell = InteractiveShell.instance()
with capture_output():
    for cell in json.load(sys.stdin):
        shell.run_cell(cell).raise_error()

def simple(value):
    try:
        return value == ast.literal_eval(repr(value))
    except Exception:
        return False

names = {name: value for name, value in shell.user_ns.items() if name not in shell.user_ns_hidden}
print(json.dumps({n: repr(v) if simple(v) else type(v).__name__ for n, v in names.items()}))
"""


def state(*cells):
    done = subprocess.run(
        [sys.executable, "-c", STATE],
        input=json.dumps(cells),
        capture_output=True,
        text=True,
        cwd=ROOT / "notebooks",
        env={**os.environ, "PYTHONPATH": str(ROOT), "IPYTHONDIR": str(ROOT / ".state/ipython")},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    names = json.loads(done.stdout.splitlines()[-1])
    return {name: value for name, value in names.items() if name != "checkpoint"}


@pytest.mark.parametrize("step", ["00.5", "01.5"])
def test_the_state_is_the_one_that_the_cells_leave_and_nothing_else_is_kept(step):
    files = [progress.FILE, quiz_record.FILE, *(ROOT / "notebooks").glob("*.ipynb")]
    kept = [file.read_bytes() if file.exists() else None for file in files]
    before, _ = lesson_steps.find(step)
    notebook = nbformat.read(lesson_notebook(step), 4)
    cells = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    cells = cells[: sum(len(step.cells) for step in before)]
    reached, there = state(CALL.format(step)), state(*cells)
    assert len(there) > 20
    assert reached == there
    assert [file.read_bytes() if file.exists() else None for file in files] == kept


def lesson_notebook(step):
    return next(page.target for page in LESSONS if page.name.startswith(step[:2]))


def test_the_other_tvm_is_a_sentence():
    code = 'from helpers import checkpoint, use_tvm\nuse_tvm("relax")\ncheckpoint("03.1")'
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=False,
    )
    last = done.stderr.strip().splitlines()[-1]
    assert "uses the TVM with Relay" in last
    assert 'restart it, then run checkpoint("03.1") first' in last


def compared(cell):
    """What nbval compares of a cell's outputs: its text."""
    texts = []
    for output in cell.outputs:
        match output.output_type:
            case "stream":
                texts.append(output.text)
            case "error":
                texts.append(f"{output.ename}: {output.evalue}")
            case _:
                texts.append(output.data.get("text/plain"))
    return texts


@pytest.mark.parametrize("step", EVERY)
def test_after_a_jump_the_step_prints_what_is_stored(step, record_property):
    if os.environ.get("CHECKPOINTS") != "all" and step not in last_steps():
        pytest.skip("CHECKPOINTS=all jumps to every step")
    before, wanted = lesson_steps.find(step)
    stored = nbformat.read(lesson_notebook(step), 4)
    cells = [cell for cell in stored.cells if cell.cell_type == "code"]
    first = sum(len(step.cells) for step in before)
    cells = cells[first : first + len(wanted.cells)]
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(CALL.format(step)), *nbformat.from_dict(cells)]
    )
    client, environment = kernel_client(notebook, ROOT / "notebooks", timeout=600)
    with client.setup_kernel(env=environment, stderr=subprocess.DEVNULL):
        for index, cell in enumerate(notebook.cells):
            start = time.monotonic()
            client.execute_cell(cell, index, store_history=False)
            if index == 0:
                record_property("seconds", round(time.monotonic() - start, 1))
    normalise(notebook)
    jump, *ran = notebook.cells
    (said,) = jump.outputs
    assert said.text.startswith(f"{step} {wanted.title}: ready, in ")
    assert said.text.count("\n") == 1
    for cell, old in zip(ran, cells, strict=True):
        if "nbval-ignore-output" not in old.metadata.get("tags", []):
            assert compared(cell) == compared(old), cell.id
