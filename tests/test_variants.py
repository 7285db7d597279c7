"""A learner's own variant: what is drawn from a name, and how an answer about it is graded."""

import csv
import json
import os
import subprocess
import sys

import nbformat
import pytest

from helpers import variants, verify
from helpers.errors import WorkbookError
from helpers.grading import __main__ as command
from helpers.grading import lms, report, sandbox
from helpers.grading.cohort import Threads, grade_class
from helpers.grading.sandbox import ROOT
from tools import build_notebooks
from tools.pages import as_text, find_pages, read_page

SECRET = b"the secret of the tests"
needs_sandbox = pytest.mark.skipif(
    bool(sandbox.sandbox_problem()), reason=f"no sandbox: {sandbox.sandbox_problem()}"
)


@pytest.fixture
def own_name(monkeypatch, tmp_path):
    """No name in the environment or kept; the file would be in a folder of its own."""
    monkeypatch.delenv(variants.VARIABLE, raising=False)
    monkeypatch.setattr(variants, "FILE", tmp_path / "state" / "variant")
    return variants.FILE


# --- names ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("ada", "ada"),
        ("  Ada \n", "ada"),
        ("ADA  Lovelace", "ada lovelace"),
        ("Jose\u0301", "jos\u00e9"),
        ("STRASSE", "strasse"),
        ("Stra\u00dfe", "strasse"),
        ("\u738b\u5c0f\u660e", "\u738b\u5c0f\u660e"),
        ("", ""),
        ("   ", ""),
    ],
)
def test_a_name_counts_in_one_way_of_writing(text, name):
    assert variants.normalised(text) == name
    assert variants.normalised(name) == name


@pytest.mark.parametrize("text", ["a\0b", "a\u200eb", "x" * 101, "\ud800", "a\x1bb"])
def test_what_can_be_no_name_is_refused_in_a_sentence(text):
    with pytest.raises(WorkbookError, match="cannot be the name of a variant: take one of") as said:
        variants.normalised(text)
    assert str(said.value).isprintable()


def test_a_name_that_was_given_once_is_kept(own_name, monkeypatch):
    assert variants.name() == ""
    variants.remember(" Ada ")
    monkeypatch.delenv(variants.VARIABLE)  # a new process
    assert variants.name() == "ada"
    assert variants.title() == "Variant: ada"
    monkeypatch.setenv(variants.VARIABLE, "Bob")
    assert variants.name() == "bob"
    monkeypatch.setenv(variants.VARIABLE, "")
    assert variants.name() == ""
    variants.remember("")
    monkeypatch.delenv(variants.VARIABLE)
    assert not own_name.exists()
    assert variants.title() == "Variant: the common one"


def test_make_lab_keeps_the_name_only_when_there_is_one(own_name, monkeypatch, capsys):
    variants.main()
    assert not own_name.exists()
    monkeypatch.setenv(variants.VARIABLE, "Ada")
    variants.main()
    assert own_name.read_text() == "ada\n"
    assert capsys.readouterr().out == "Variant: ada\n"


@pytest.mark.parametrize("given", [[], ["VARIANT=ada"], ["VARIANT="]])
def test_make_lab_tells_of_a_name_that_is_given(given):
    environment = {k: v for k, v in os.environ.items() if k != variants.VARIABLE}
    command = ["make", "-n", "lab", *given]
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    assert ("helpers.variants" in done.stdout) == bool(given)


KNOWN = [482594904190, 746985049447, 306368697217]  # of ada in lab 03, on every Python and machine


# --- what is drawn -------------------------------------------------------------------------------


def test_what_is_drawn_depends_on_the_name_and_the_lab_alone(monkeypatch):
    def numbers(name, lab):
        monkeypatch.setenv(variants.VARIABLE, name)
        return variants.drawn(lab).integers(1 << 40, size=3).tolist()

    assert numbers("Ada ", "03") == numbers("ada", "03")
    places = [("ada", "03"), ("ada", "05"), ("bob", "03"), ("", "03"), ("ada0", "3")]
    assert len({tuple(numbers(*place)) for place in places}) == len(places)


def test_another_process_draws_the_same():
    """Also with another seed of hash(). The numbers are those of every Python and machine."""
    text = (
        "from helpers import variants;"
        "print(variants.drawn('03').integers(1 << 40, size=3).tolist())"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "7", variants.VARIABLE: "ada"}
    command = [sys.executable, "-c", text]
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout) == KNOWN


def notebook_of(*sources):
    return nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(source, id=f"c{k}") for k, source in enumerate(sources)]
    )


def test_pages_are_built_with_the_common_variant_and_verified_with_the_own(own_name):
    variants.remember("ada")
    source = "from helpers import variants; print(variants.title())"
    page = notebook_of(source)
    build_notebooks.execute(page, "a page", ROOT)
    assert page.cells[0].outputs[0].text == "Variant: the common one\n"
    mine = notebook_of(source)
    assert verify._run(mine, ROOT, {}, 60) is None
    assert mine.cells[0].outputs[0].text == "Variant: ada\n"


def test_nbval_runs_pages_with_the_common_variant(tmp_path, monkeypatch):
    """Whatever the environment says: pages are compared as they are given out."""
    page = notebook_of("from helpers import variants; print(variants.title())")
    output = nbformat.v4.new_output("stream", name="stdout", text="Variant: the common one\n")
    page.cells[0].outputs, page.cells[0].execution_count = [output], 1
    (tmp_path / "page.ipynb").write_text(nbformat.writes(page))
    monkeypatch.setenv(variants.VARIABLE, "ada")
    (tmp_path / "conftest.py").write_text('pytest_plugins = ["tools.nbval_plugin"]\n')
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    command = [sys.executable, "-m", "pytest", "-q", "--nbval", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, "page.ipynb"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "1 passed" in done.stdout


@pytest.mark.parametrize(
    ("answer", "computes"),
    [
        ("kernels = 7\nsizes = {'a': [1, 2 * 3], 'b': set()}", False),
        ("kernels = 7\nmore = sum([kernels, 2])", False),
        ("kernels = len(fuse(own))", True),
        ("kernels = 7\nsizes = [own[k] for k in (1, 2)]", True),
        ("kernels = None  # your answer here", False),
        ("def f(x):\n    return helper(x)", False),
        ("f = lambda x: helper(x)", False),
        ("import math\nf = math.prod", False),
        ("kernels = (", False),
    ],
)
def test_verify_tells_values_from_code_that_computes_them(answer, computes):
    assert verify._computes_values(answer) == computes


# --- grading -------------------------------------------------------------------------------------

LAB = """
# Lab 93 · An own question

```{code-cell}
from helpers import variants
from helpers.grading import checks
```

```{code-cell}
:tags: [solution]

def total(numbers):
    \"\"\"Their sum.\"\"\"
    ### BEGIN SOLUTION
    return sum(numbers)
    ### END SOLUTION
```

```{code-cell}
:tags: [check]
:points: 3

checks.question("q1", total, [("[1, 2]", lambda f: f([1, 2]), 3)])
```

```{code-cell}
random = variants.drawn("93")
```

```{code-cell}
own_numbers = random.integers(1000, 10**6, size=4).tolist()
print(variants.title(), own_numbers)
```

```{code-cell}
:tags: [solution]

own_total = total(own_numbers)
own_most = max(own_numbers)
```

```{code-cell}
:tags: [check]
:points: 2

answer = {"own_total": own_total, "own_most": own_most}
checks.question("q2", answer, [("a number", lambda a: type(a["own_total"]) is int, True)])
```
"""

CHECKS = """
from helpers.grading.hidden import Hidden

WRONG = {
    "q1": {"one is missing": {"sum(numbers)": "sum(numbers[1:])"}},
    "q2": {"the last number is left out": {"total(own_numbers)": "total(own_numbers[:-1])"}},
}
OTHERS = {}
HIDDEN = {
    "q1": [
        Hidden(
            "lists",
            probe="total(numbers)",
            draw=lambda random: {"numbers": random.integers(9, size=5).tolist()},
        )
    ],
    "q2": [
        Hidden("your numbers: the sum", probe="own_total", own=True),
        Hidden("your numbers: the largest", probe="own_most", own=True),
    ],
}
"""
TOTAL = "def total(numbers):\n    return sum(numbers)"


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    root = tmp_path_factory.mktemp("course")
    folder = root / "solutions" / "93_own"
    folder.mkdir(parents=True)
    (folder / "lab.md").write_text(LAB.lstrip())
    (folder / "checks.py").write_text(CHECKS.lstrip())
    for page in find_pages(root):
        page.target.parent.mkdir(parents=True, exist_ok=True)
        page.target.write_text(as_text(read_page(page)))
    return root


def numbers_of(name):
    """What the lab draws for a name."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(variants.VARIABLE, name)
        return variants.drawn("93").integers(1000, 10**6, size=4).tolist()


def hand_in(folder, course, student, answer):
    """The lab with a right answer to question 1 and this one to question 2."""
    page = json.loads((course / "labs" / "93_own" / "93_own.ipynb").read_text())
    for cell in page["cells"]:
        cell["source"] = {"q1": TOTAL, "q2": answer}.get(cell["id"], cell["source"])
    (folder / student).mkdir(parents=True)
    (folder / student / "93_own.ipynb").write_text(json.dumps(page))


def literal(numbers):
    return f"own_total = {sum(numbers)}\nown_most = {max(numbers)}"


def points(graded):
    return {
        record["student"]: [verdict["points"] for verdict in record["questions"]]
        for record in graded.records
    }


def says(graded, student):
    record = next(record for record in graded.records if record["student"] == student)
    return [check["feedback"] for check in record["questions"][1]["checks"]]


@pytest.fixture(scope="module")
def handed_in(course, tmp_path_factory):
    folder = tmp_path_factory.mktemp("submissions")
    ada = literal(numbers_of("ada"))
    hand_in(folder, course, "Ada", ada)
    hand_in(folder, course, "bob", ada)  # copied
    hand_in(folder, course, "carol", literal(numbers_of("")))
    hand_in(folder, course, "dave", "own_total = total(own_numbers)\nown_most = max(own_numbers)")
    *most, last = numbers_of("eve")
    hand_in(folder, course, "eve", f"own_total = {sum(most)}\nown_most = {max([*most, last])}")
    return folder


@needs_sandbox
def test_a_copied_answer_loses_the_points_of_the_own_question(course, handed_in, tmp_path):
    graded = grade_class(
        course, handed_in, tmp_path / "out", secret=SECRET, variants={}, pool=Threads(1)
    )
    assert points(graded) == {
        "Ada": [3, 2], "bob": [3, 0], "carol": [3, 0], "dave": [3, 0], "eve": [3, 1],
    }  # fmt: skip
    assert says(graded, "bob") == ["The value is not the right one."] * 2
    common = "This is right for the common variant, and not for {}."
    assert says(graded, "carol") == [common.format("carol")] * 2
    assert says(graded, "dave") == [common.format("dave")] * 2
    mistake = "A known mistake gives the same: the last number is left out."
    assert says(graded, "eve") == [f"The value is not the right one. {mistake}", ""]
    report.write(graded, tmp_path / "out")
    assert "Variant: ada" in (tmp_path / "out" / "feedback" / "Ada.html").read_text()
    told = "".join(path.read_text() for path in (tmp_path / "out" / "feedback").iterdir())
    for name in ("bob", "carol", "dave", "eve"):
        assert str(sum(numbers_of(name))) not in told


@needs_sandbox
def test_without_variants_everybody_has_the_common_one(course, handed_in, tmp_path):
    graded = grade_class(course, handed_in, tmp_path / "out", secret=SECRET, pool=Threads(1))
    assert points(graded) == {
        "Ada": [3, 0], "bob": [3, 0], "carol": [3, 2], "dave": [3, 2], "eve": [3, 0],
    }  # fmt: skip


@needs_sandbox
def test_another_variant_is_graded_anew_and_the_others_are_kept(course, handed_in, tmp_path):
    """A roster names the variants; who has another one than before is graded again."""
    roster = tmp_path / "roster.csv"
    roster.write_text("folder,Variant\nbob,ADA \n")
    names = {folder: who[lms.VARIANT] for folder, who in lms.read_roster(roster).items()}
    out = tmp_path / "out"
    grade_class(course, handed_in, out, secret=SECRET, variants={}, pool=Threads(1))
    before = {path: path.stat().st_mtime_ns for path in out.glob("results/*/*.json")}
    graded = grade_class(course, handed_in, out, secret=SECRET, variants=names, pool=Threads(1))
    assert points(graded)["bob"] == [3, 2]
    changed = [path.parent.name for path, then in before.items() if path.stat().st_mtime_ns != then]
    assert changed == ["bob"]


@needs_sandbox
def test_the_command_takes_variants_from_folders_and_roster(
    handed_in, course, tmp_path, monkeypatch
):
    monkeypatch.setattr(command, "ROOT", course)
    secret, roster = tmp_path / "secret", tmp_path / "roster.csv"
    secret.write_text("sixteen bytes and more")
    roster.write_text("folder,Variant\nbob,ada\n")
    options = [str(handed_in), str(tmp_path / "out"), "--secret", str(secret), "--jobs", "1"]
    assert command.main([*options, "--variants", "--roster", str(roster)]) == 0
    with (tmp_path / "out" / "grades.csv").open(newline="") as file:
        rows = {(row["student"], row["question"]): row["points"] for row in csv.DictReader(file)}
    assert rows["Ada", "q2"] == rows["bob", "q2"] == "2"
    assert rows["carol", "q2"] == "0"


def test_a_folder_that_can_be_no_name_is_told(course, tmp_path):
    hand_in(tmp_path / "in", course, "x" * 101, "own_total = 1\nown_most = 1")
    with pytest.raises(WorkbookError, match="in the column Variant of a roster"):
        grade_class(course, tmp_path / "in", tmp_path / "out", variants={}, unsafe=True)
    assert not (tmp_path / "out").exists()


@needs_sandbox
def test_the_variant_of_the_one_who_grades_does_not_count(course, handed_in, tmp_path, monkeypatch):
    monkeypatch.setenv(variants.VARIABLE, "ada")
    for unsafe in (False, True):
        out = tmp_path / f"out-{unsafe}"
        graded = grade_class(course, handed_in, out, secret=SECRET, pool=Threads(1), unsafe=unsafe)
        assert points(graded)["Ada"] == [3, 0]
        assert points(graded)["dave"] == [3, 2]
