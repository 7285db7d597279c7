"""The SVGs that a page's build leaves beside it for the book."""

import base64
import re
import xml.etree.ElementTree as ElementTree

import nbformat
import pytest

from helpers import plots
from helpers.kernels import ROOT
from tools import figures
from tools.pages import find_pages

PNG = base64.b64encode(b"a picture").decode()


def bars():
    return plots.bars(["a", "b"], {"s": [1.0, 2.5]})


def page(*outputs):
    cell = nbformat.v4.new_code_cell("draw()", id="drawn")
    cell.outputs = [nbformat.v4.new_output("display_data", data=dict(data)) for data in outputs]
    return nbformat.v4.new_notebook(cells=[cell])


def test_equal_figures_give_equal_svgs_without_a_date_or_a_font():
    text = plots.svg(bars())
    assert text == plots.svg(bars())
    assert "date" not in text.lower()
    assert "<text" not in text  # letters are outlines: no font is needed to read them


def test_a_notebook_gets_the_svg_only_where_the_build_asks_for_it(monkeypatch):
    monkeypatch.delenv(plots.VECTOR, raising=False)
    assert list(plots.pictures(bars())) == [figures.PNG]
    monkeypatch.setenv(plots.VECTOR, "1")
    assert list(plots.pictures(bars())) == [figures.PNG, figures.SVG]


def test_the_build_takes_the_svgs_out_and_keeps_them_beside_the_lesson(tmp_path):
    lesson = tmp_path / "notebooks" / "03_topic.ipynb"
    notebook = page({figures.PNG: PNG, figures.SVG: "<svg/>", "text/plain": "a bar"})
    taken = figures.take(notebook)
    assert dict(notebook.cells[0].outputs[0].data) == {figures.PNG: PNG, "text/plain": "a bar"}
    figures.keep(lesson, {"drawn-00000000.svg": "of the run before"})
    assert figures.problems(notebook, lesson)
    figures.keep(lesson, taken)
    (file,) = (tmp_path / "notebooks" / "figures" / "03_topic").iterdir()
    assert file.read_text() == "<svg/>"
    assert figures.problems(notebook, lesson) == []


def test_a_figure_drawn_again_from_other_times_does_not_match_the_old_svg(tmp_path):
    lesson = tmp_path / "03_topic.ipynb"
    figures.keep(lesson, figures.take(page({figures.PNG: PNG, figures.SVG: "<svg/>"})))
    other = page({figures.PNG: base64.b64encode(b"another").decode()})
    missing, left_over = figures.problems(other, lesson)
    assert "is missing" in missing
    assert "belongs to no figure" in left_over


def test_shortened_paths_stay_within_a_hundredth_of_a_point():
    whole = plots.svg(bars())
    short = figures.shortened(whole)
    assert len(short) < len(whole)
    number = r"-?\d+(?:\.\d+)?"
    for before, after in zip(
        re.findall(r' d="([^"]+)', whole), re.findall(r' d="([^"]+)', short), strict=True
    ):
        pairs = zip(re.findall(number, before), re.findall(number, after), strict=True)
        assert all(abs(float(a) - float(b)) <= 0.01 for a, b in pairs)
    assert re.sub(r' d="[^"]+', "", short) == re.sub(r' d="[^"]+', "", whole)


def test_the_size_is_that_of_the_figure():
    figure = bars()
    wide, high = figure.get_size_inches()
    assert figures.size(plots.svg(figure)) == (round(96 * wide), round(96 * high))


@pytest.mark.parametrize(
    "lesson", [page for page in find_pages(ROOT) if page.kind == "lesson"], ids=str
)
def test_every_stored_svg_is_small_and_well_formed(lesson):
    for file in figures.folder(lesson.target).glob("*.svg"):
        assert file.stat().st_size < 400_000
        ElementTree.parse(file)
