"""The decks of the lessons: their order, what they hold, and that nothing is too long."""

import re
from html import escape

import nbformat
import pytest

from helpers import lesson_steps, quiz, teaching_paths
from helpers.errors import WorkbookError
from tools.slides import __main__ as slides
from tools.slides.choose import segments, shown
from tools.slides.deck import HEIGHT, WIDTH, deck

DECKS = {number: slides.read(path) for number, path in slides.lessons().items()}


@pytest.fixture(params=DECKS, ids=str)
def made(request):
    return DECKS[request.param]


def test_a_deck_has_ten_to_twenty_five_slides_from_the_title_to_the_take_away(made):
    assert 10 <= len(made) <= 25
    assert (made[0].kind, made[-1].kind) == ("title", "take-away")
    assert {"predict", "output", "question"} <= {slide.kind for slide in made}


def test_a_prediction_stands_before_what_it_reveals(made):
    number = made[0].step[:2]
    asked = teaching_paths.reveals()[number]
    revealed = [slide.cell for slide in made if slide.kind == "output" and slide.cell in asked]
    assert revealed
    for cell in revealed:
        ask = next(place for place, slide in enumerate(made) if slide.reveals == cell)
        out = next(p for p, s in enumerate(made) if s.kind == "output" and s.cell == cell)
        assert ask < out
        assert made[ask].kind == "predict"
        assert asked[cell].question in "".join(made[ask].notes)


def test_an_answer_comes_after_its_question_and_at_the_next_key(made):
    for slide in made:
        if slide.question:
            before, answer = slide.body.split('<p class="answer fragment">')
            said = quiz.explain(quiz.find(slide.question)).said
            assert said in re.sub("<[^>]+>", "", answer)
            assert said not in before


def test_steps_have_the_names_and_titles_of_the_checkpoints(made):
    known = {step.name: step.title for step in lesson_steps.steps(made[0].step[:2])}
    for slide in made:
        assert slide.step in known
        if not slide.question:
            assert slide.title == known[slide.step]


def test_what_is_not_shown_is_said(made):
    assert all(slide.notes for slide in made if slide.kind in ("title", "predict", "question"))
    assert sum(len("".join(slide.notes)) for slide in made) > 2000


def test_a_figure_fits_and_can_be_read(made):
    for slide in made:
        for width, height in re.findall(r'<img width="(\d+)" height="(\d+)"', slide.body):
            assert int(width) <= WIDTH
            assert int(height) <= HEIGHT
        assert slide.smallest >= 12.5


def test_a_page_asks_nobody_else_for_anything(made):
    page = slides.page("title", made)
    assert not re.findall(r'(?:src|href)="(?!data:|assets/)', page)
    assert len(re.findall(r'<aside class="notes">', page)) == len(made)
    ids = re.findall(r'<section class="[\w-]+" id="([^"]+)"', page)
    assert ids == list(dict.fromkeys(slide.step for slide in made))


def notebook(*cells):
    first = nbformat.v4.new_markdown_cell("# 00 · Title")
    return nbformat.v4.new_notebook(cells=[first, *cells])


def code(printed, **wants):
    cell = nbformat.v4.new_code_cell("print()", execution_count=1)
    cell.outputs = [nbformat.v4.new_output("stream", text=printed)]
    cell.metadata["slideshow"] = {"slide_type": "slide", **wants}
    return cell


def test_what_does_not_fit_is_refused_and_chosen_lines_are_shown():
    long = "\n".join(f"line {number}" for number in range(1, 41))
    with pytest.raises(WorkbookError, match="does not fit"):
        deck(notebook(code(long)), "00", {})
    (_, slide) = deck(notebook(code(long, text="1-2,40")), "00", {})
    assert "line 1\nline 2\n...\nline 40<" in slide.body


def test_a_wish_that_cannot_be_met_is_named():
    with pytest.raises(WorkbookError, match="unknown key 'lines'"):
        deck(notebook(code("x", lines="1")), "00", {})
    text = nbformat.v4.new_markdown_cell("## Idea\n\nOne thing. Another.")
    text.metadata["slideshow"] = {"slide_type": "slide", "show": ["Another", "A third"]}
    with pytest.raises(WorkbookError, match="begins with 'A third'"):
        deck(notebook(text), "00", {})


def test_the_sentences_asked_for_are_shown_and_no_others():
    (segment,) = segments("## Idea\n\nOne thing. Another (see f. 3). A third.\n\n- a\n- b")
    assert shown(segment, ["Another", "b"], set()) == "Another (see f. 3).\n\n- b"


def test_a_course_has_the_parts_of_its_path_and_the_steps_of_each():
    path = teaching_paths.load("three_hours")
    ((_, made),) = slides.sessions("three_hours")
    parts = [part for part in path.parts if not part.home]
    assert sum(slide.kind == "part" for slide in made) == len(parts)
    asked = [question for part in parts if part.lesson for question in part.questions]
    assert [slide.question for slide in made if slide.question] == asked
    assert escape(path.sessions[0].aim) in made[0].body
