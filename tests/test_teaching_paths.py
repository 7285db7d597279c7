"""The ways through the workbook for a class: true to the lessons; what is wrong is said."""

import os
import re
import subprocess

import nbformat
import pytest
import yaml
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from helpers import lesson_steps, progress, teaching_paths
from helpers.errors import WorkbookError
from helpers.kernels import ROOT, kernel_client
from tools import instructor_pages, release
from tools.pages import as_text

PATHS = {name: teaching_paths.load(name) for name in teaching_paths.names()}
REVEALS = teaching_paths.reveals()


@pytest.fixture(params=PATHS)
def path(request):
    return PATHS[request.param]


def stated_minutes(file):
    return int(re.search(r"About\s+(\d+)\s+minutes", file.read_text())[1])


def numbers(text):
    """The numbers in a text, without their commas: ``1,024`` and ``1024`` are the same."""
    return {n.replace(",", "") for n in re.findall(r"\d+(?:,\d{3})*(?:\.\d+)?", text)}


def shown(cell):
    """The text that a cell has printed, or what its figure says."""
    outputs = cell.get("outputs", [])
    texts = [out.get("text", "") or out.get("evalue", "") for out in outputs]
    return " ".join([*texts, *(out.get("data", {}).get("text/plain", "") for out in outputs)])


# --- the paths -----------------------------------------------------------------------------------


def test_the_three_paths_are_there():
    assert [*PATHS] == ["three_hours", "one_day", "five_weeks"]


def test_the_clock_ends_with_the_session(path):
    for session in path.sessions:
        *_, (start, _) = [(now, part) for now, part in session.clock() if part.home] or [(None, 0)]
        now, last = [(now, part) for now, part in session.clock() if not part.home][-1]
        assert now + last.minutes == session.minutes
        assert start in (None, session.minutes)


def test_everything_that_a_path_names_exists(path):
    assert not list(teaching_paths.faults(path))


def test_no_section_is_taught_twice(path):
    taken = [
        step
        for part in path.parts
        if part.lesson
        for step in part.steps or [step.name for step in teaching_paths.sections(part.lesson)]
    ]
    assert len(taken) == len(set(taken))


def test_a_lesson_that_is_taken_whole_takes_the_minutes_that_it_states(path):
    for lesson, source in lesson_steps.lessons().items():
        parts = [part for part in path.parts if part.lesson == lesson]
        every = {step.name for step in teaching_paths.sections(lesson)}
        if {step for part in parts for step in part.steps or every} == every:
            assert sum(part.minutes for part in parts) == stated_minutes(source), lesson
    for part in path.parts:
        if part.lab and part.home:
            (source,) = (ROOT / "solutions").glob(f"{part.lab}_*/lab.md")
            assert part.minutes == stated_minutes(source), part.title


@pytest.mark.skipif(
    "TEACHING_PATHS" not in os.environ,
    reason="takes ten minutes: TEACHING_PATHS=1 pytest tests/test_teaching_paths.py -k left_out",
)
def test_the_sections_run_without_those_left_out(path):
    for lesson in dict.fromkeys(part.lesson for part in path.parts if part.lesson):
        steps = {step.name: step for step in teaching_paths.sections(lesson)}
        parts = [part for part in path.parts if part.lesson == lesson and not part.home]
        taken = [steps[name] for part in parts for name in part.steps or steps]
        cells = [
            new_code_cell(cell.source, metadata={"tags": list(cell.tags)})
            for step in taken
            for cell in step.cells
        ]
        client, environment = kernel_client(
            new_notebook(cells=cells), ROOT / "notebooks", timeout=300
        )
        with client.setup_kernel(env=environment, stderr=subprocess.DEVNULL):
            for number, cell in enumerate(client.nb.cells):
                client.execute_cell(cell, number, store_history=False)


def test_the_long_path_takes_everything():
    path = PATHS["five_weeks"]
    taken = {
        step
        for part in path.parts
        if part.lesson
        for step in part.steps or [step.name for step in teaching_paths.sections(part.lesson)]
    }
    lessons = lesson_steps.lessons()
    assert taken == {step.name for lesson in lessons for step in teaching_paths.sections(lesson)}
    labs = {folder.name[:2] for folder in (ROOT / "labs").iterdir() if folder.is_dir()}
    assert {part.lab for part in path.parts if part.lab} == labs


def test_the_short_paths_have_breaks():
    for name in ("three_hours", "one_day"):
        (session,) = PATHS[name].sessions
        since = 0
        for part in session.parts:
            since = since + part.minutes if part.lesson or part.lab else 0
            assert since <= 100, part.title


def test_something_is_asked_before_each_reveal(path):
    """A cell of a section in class that compares predictions with what came out has a question."""
    for part in path.parts:
        if part.lesson and not part.home:
            steps = {step.name: step for step in teaching_paths.sections(part.lesson)}
            for cell in (cell for name in part.steps or steps for cell in steps[name].cells):
                if re.search(r"^\s*(guess|pairs)\.table\(", cell.source, re.M):
                    assert cell.name in part.ask


def test_the_plan_has_a_row_at_least_every_35_minutes(path):
    led = [part for part in path.parts if part.lesson and not part.home]
    assert [part.title for part in led if part.minutes > 35 or not part.cut] == []


def test_the_pages_are_what_the_files_give(path):
    page = teaching_paths.FOLDER.parent / f"{path.name}.md"
    told = "run python -m tools.instructor_pages"
    assert page.read_text(encoding="utf-8") == instructor_pages.page(path), told


def test_a_class_receives_the_paths_and_not_the_answers():
    named = [file.relative_to(ROOT).as_posix() for file in teaching_paths.FOLDER.glob("*.yaml")]
    given = [
        n for n in (*named, "docs/instructor/reveals.yaml") if any(map(_given(n), release.GIVEN))
    ]
    assert given == named


def _given(name):
    return lambda pattern: release._matches(name, pattern)


# --- what is asked before a cell -----------------------------------------------------------------


@pytest.mark.parametrize("lesson", REVEALS)
def test_each_number_is_one_of_the_lesson(lesson):
    """Right answers stand in the output of their cell, or in its assertion if it has a clock."""
    (file,) = (ROOT / "notebooks").glob(f"{lesson}_*.ipynb")
    cells = {cell.id: cell for cell in nbformat.read(file, 4).cells}
    whole = numbers(" ".join(cell.source + shown(cell) for cell in cells.values()))
    for name, reveal in REVEALS[lesson].items():
        cell = cells[name]
        clock = "nbval-ignore-output" in cell.metadata.get("tags", [])
        where = "\n".join(line for line in cell.source.splitlines() if "assert" in line)
        assert numbers(reveal.right) <= numbers(where if clock else shown(cell)), name
        for text in (reveal.question, reveal.why, *reveal.expect.values()):
            assert {n for n in numbers(text) if len(n) > 1} <= whole, f"{name}: {text}"


@pytest.mark.parametrize("lesson", REVEALS)
def test_no_right_answer_is_called_a_mistake(lesson):
    for name, reveal in REVEALS[lesson].items():
        assert reveal.expect, name
        assert reveal.right not in reveal.expect, name
        bare = [wrong for wrong in reveal.expect if re.fullmatch(r"[\d.,]+", wrong)]
        assert not set(bare) & {next(iter(re.findall(r"[\d.,]*\d", reveal.right)), "")}, name


# --- files that are wrong ------------------------------------------------------------------------

GOOD = """
title: A
summary: b
sessions:
- title: One
  minutes: 20
  parts:
  - {minutes: 15, title: Fusion, lesson: "03", steps: ["03.1"]}
  - {minutes: 5, title: Break}
"""


def test_a_good_file_is_read(tmp_path):
    (tmp_path / "own.yaml").write_text(GOOD)
    own = teaching_paths.load("own", tmp_path)
    assert own.minutes == 20
    assert own.parts[0].steps == ("03.1",)


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("minutes: 20", "minutes: 25", "session 1 (One) has 25 minutes, and its parts together 20"),
        (
            "minutes: 5,",
            "minuets: 5,",
            "part 2 has the unknown key 'minuets'. Did you mean minutes?",
        ),
        ("title: Break", "cut: x", "part 2 lacks title"),
        ('lesson: "03"', "lesson: 03", "part 1: lesson must be a text (put it in quotes), not 3"),
        ('["03.1"]', '"03.1"', "part 1: steps must be a list of texts"),
        ("minutes: 5,", "minutes: five,", "part 2: minutes must be a whole number, not 'five'"),
        ("minutes: 5,", "minutes: 0,", "part 2 (Break) takes 0 minutes"),
        ('lesson: "03"', 'lesson: "03", lab: "03"', "part 1 (Fusion) has a lesson and a lab"),
        (
            "title: Break",
            'title: Break, run: ["a"]',
            "part 2 (Break) has steps or cells, and no lesson",
        ),
        ("- {minutes: 5, title: Break}", "- Break", "part 2 is 'Break'"),
        ("  parts:", "  parts: []\n  other:", "session 1 has no list of parts"),
        ("summary: b\n", "", "lacks summary"),
        ("title: A", "title: [", "this is not YAML"),
        (GOOD, "", "is not a teaching path"),
    ],
)
def test_a_bad_file_is_one_sentence(tmp_path, old, new, told):
    assert old in GOOD
    (tmp_path / "own.yaml").write_text(GOOD.replace(old, new))
    with pytest.raises(WorkbookError) as caught:
        teaching_paths.load("own", tmp_path)
    assert told in str(caught.value)
    assert str(caught.value).startswith("own.yaml")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('"03.1"', '"03.99"', "there is no step 03.99"),
        ('lesson: "03", steps: ["03.1"]', 'lesson: "77"', "there is no lesson 77"),
        ('lesson: "03", steps: ["03.1"]', 'lab: "77"', "there is no lab 77"),
        ('["03.1"]', '["03.1"], run: [limits]', "no cell limits in its steps"),
        ('["03.1"]', '["03.2"], ask: [fusion-rules]', "fusion-rules is asked and not run"),
        ('["03.1"]', '["03.1"], questions: ["03-99"]', "there is no question 03-99"),
        ('steps: ["03.1"]', "run: [limits, setup]", "in the order of the lesson"),
    ],
)
def test_what_is_named_and_missing_is_said(tmp_path, old, new, told):
    (tmp_path / "own.yaml").write_text(GOOD.replace(old, new))
    said = list(teaching_paths.faults(teaching_paths.load("own", tmp_path)))
    assert any(told in sentence for sentence in said)
    assert all(sentence.startswith("own.yaml, Fusion: ") for sentence in said)


# --- make progress COURSE=... --------------------------------------------------------------------


def test_progress_follows_a_path(tmp_path):
    (tmp_path / "notebooks").mkdir()
    cells = [
        new_markdown_cell("# 03", id="title"),
        new_markdown_cell("## One", id="one"),
        new_code_cell("guess = quiz.predict(a=1, b=None)", id="first-guess"),
        new_markdown_cell("## My own heading", id="0d9f6a3e"),
        new_markdown_cell("What came out.\n\n## Two", id="two"),
        new_code_cell("guess = quiz.predict(c=1)", id="second-guess"),
    ]
    lesson = tmp_path / "notebooks" / "03_operator_fusion.ipynb"
    lesson.write_text(as_text(new_notebook(cells=cells)))
    parts = yaml.safe_load(GOOD)
    parts["sessions"][0]["parts"] = [
        {"minutes": 8, "title": "Second", "lesson": "03", "steps": ["03.2"]},
        {"minutes": 2, "title": "Break"},
        {"minutes": 10, "title": "First", "lesson": "03", "steps": ["03.0", "03.1"]},
    ]
    (tmp_path / "own.yaml").write_text(yaml.safe_dump(parts))
    own = teaching_paths.load("own", tmp_path)
    shown = progress.course(own, tmp_path, tmp_path / "kept.json").splitlines()
    assert [line.split() for line in shown[1:]] == [
        ["Second", "lesson", "03", "1", "of", "1"],
        ["First", "lesson", "03", "1", "of", "2"],
    ]


def test_an_unknown_course_is_a_sentence():
    with pytest.raises(WorkbookError, match=r"Did you mean three_hours\?"):
        progress.main(["three_hour"])
