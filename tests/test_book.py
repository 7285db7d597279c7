"""The source of the book. The site itself is read in tests/browser/test_book.py."""

import re
from html import unescape

import nbformat
import pytest
import yaml

from helpers.errors import WorkbookError
from helpers.kernels import ROOT
from tools import book, figures, release
from tools.pages import find_pages

PAGES = [page for page in find_pages(ROOT) if page.kind != "solution" and page.target.exists()]
LESSONS = [page for page in PAGES if page.kind == "lesson"]


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    folder = tmp_path_factory.mktemp("book")
    book.stage(folder)
    return folder


def staged(source, page):
    return nbformat.read(source / page.target.relative_to(ROOT), 4)


def test_every_page_stands_once_in_the_contents_and_a_lab_after_its_lesson(source):
    toc = yaml.safe_load((source / "_toc.yml").read_text())
    chapters = [chapter for part in toc["parts"] for chapter in part["chapters"]]
    order = [
        entry["file"] for chapter in chapters for entry in (chapter, *chapter.get("sections", ()))
    ]
    assert len(set(order)) == len(order)
    assert {page.target.relative_to(ROOT).as_posix() for page in PAGES} <= {*order}
    assert all((source / file).exists() for file in order)
    place = order.index("notebooks/03_operator_fusion.ipynb")
    assert order[place + 1] == "labs/03_operator_fusion/03_operator_fusion.ipynb"


def test_no_page_holds_a_part_of_a_solution(source):
    files = {
        file.relative_to(source).as_posix(): file.read_bytes()
        for file in source.rglob("*")
        if file.suffix in (".ipynb", ".md")
    }
    assert len(files) > len(PAGES)
    assert release.leaks(files, release.secrets()) == []


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_a_page_says_first_how_long_it_takes(source, page):
    lines = staged(source, page).cells[0].source.splitlines()
    assert lines[0].startswith("# ")
    assert lines[2] == ":::{div} page-facts"
    assert re.fullmatch(r"- \d+ minutes", lines[3])
    if page.kind == "lesson":
        assert re.match(r"- (after lessons? |needs )", lines[4])


@pytest.mark.parametrize("page", LESSONS, ids=str)
def test_outputs_stay_and_each_figure_is_an_svg_with_the_same_alt_text(source, page):
    before, after = nbformat.read(page.target, 4), staged(source, page)
    for old_cell, new_cell in zip(before.cells, after.cells, strict=True):
        for old, new in zip(old_cell.get("outputs", ()), new_cell.get("outputs", ()), strict=True):
            if figures.PNG not in old.get("data", {}):
                assert old == new
                continue
            picture = new.data["text/html"]
            alt = re.search(r'alt="([^"]*)"', picture)
            assert unescape(alt[1]) == old.data["text/plain"]
            shown = re.search(r'src="\.\./_static/(figures/[^"]*\.svg)"', picture)
            if figures.problems(before, page.target) == []:
                assert (source / "assets" / shown[1]).exists()


def test_a_figure_without_an_svg_is_shown_as_it_is_stored():
    (page,) = (page for page in LESSONS if page.name.startswith("03"))
    notebook = nbformat.read(page.target, 4)
    cell = next(
        cell
        for cell in notebook.cells
        if any(figures.PNG in output.get("data", {}) for output in cell.get("outputs", ()))
    )
    cell.id = "renamed"  # so that its file is not found
    png = next(o.data[figures.PNG] for o in cell.outputs if figures.PNG in o.get("data", {}))
    book._use_vectors(notebook, page, "../_static/")
    shown = [output.data.get("text/html", "") for output in cell.outputs if "data" in output]
    assert any(f"base64,{png}" in text and 'alt="' in text for text in shown)


def test_a_page_that_does_not_say_how_long_it_takes_is_named():
    cell = nbformat.v4.new_markdown_cell("# 03 · A topic\n\n**You need.** A pencil.")
    with pytest.raises(WorkbookError, match="03 · A topic: the first cell does not say how long"):
        book._need(nbformat.v4.new_notebook(cells=[cell]))


@pytest.mark.parametrize(
    ("need", "said"),
    [
        ("[Lesson 01](01_relay_ir.ipynb), Python.\n", "after lesson [01](01_relay_ir.ipynb)"),
        ("Lessons 01 to 14. ", "after lessons 01 to 14"),
        (
            "Python and a little\nNumPy. You need not know compilers. ",
            "needs Python and a little NumPy",
        ),
    ],
)
def test_what_comes_before_a_lesson(need, said):
    assert book._before(need) == said
