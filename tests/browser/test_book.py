"""Every page of the built book, read in both themes, on a desk and on a phone."""

import pytest
from book_reader import DESKTOP, PHONE, Reader, Site

from helpers.kernels import ROOT
from tools.book import SITE
from tools.pages import find_pages

PAGES = sorted(
    file.relative_to(SITE).as_posix()
    for file in SITE.rglob("*.html")
    if "_static" not in file.parts
)
NOTEBOOKS = [page for page in find_pages(ROOT) if page.kind != "solution"]

pytestmark = pytest.mark.skipif(not PAGES, reason="the book is not built: make book")


@pytest.fixture(scope="session")
def site():
    site = Site(SITE)
    yield site
    site.stop()


@pytest.fixture
def reader(browser, site):
    reader = Reader(browser.new_page(), site)
    yield reader
    reader.page.close()


@pytest.mark.parametrize("name", PAGES)
def test_a_page_reads_well(reader, pictures, name):
    reader.open(name)
    wrong = reader.faults()
    file = pictures / "book" / f"{name.removesuffix('.html').replace('/', '-')}.png"
    reader.page.set_viewport_size(PHONE)
    wrong += [f"phone: {text}" for text in reader.too_wide()]
    reader.page.screenshot(path=str(file.with_suffix(".phone.png")))
    reader.page.set_viewport_size(DESKTOP)
    for theme in ("light", "dark"):
        reader.theme(theme)
        reader.page.screenshot(path=str(file.with_suffix(f".{theme}.png")))
        wrong += [f"{theme}: {finding}" for finding in reader.findings()]
    assert [*wrong, *reader.wrong] == []


def test_every_lesson_and_lab_is_a_page():
    names = {page.target.relative_to(ROOT).with_suffix(".html").as_posix() for page in NOTEBOOKS}
    assert names <= {*PAGES}


def test_the_search_finds_a_term_and_where_it_is_explained(reader):
    reader.open("index.html")
    reader.page.get_by_role("button", name="Search").first.click()
    reader.page.keyboard.type("post-dominator")
    reader.page.keyboard.press("Enter")
    found = reader.page.locator("#search-results a")
    found.first.wait_for()
    assert "03_operator_fusion" in " ".join(
        link.get_attribute("href") or "" for link in found.all()
    )
    assert reader.wrong == []


def test_an_answer_and_a_hint_are_folded_and_open_when_pressed(reader):
    for name, inside in (
        ("notebooks/03_operator_fusion.html", "Right is"),
        ("labs/03_operator_fusion/03_operator_fusion.html", ""),
    ):
        reader.open(name)
        folded = reader.page.locator(".bd-article details", has_text=inside).first
        text = folded.locator(":scope > :not(summary)").first
        assert not text.is_visible()
        folded.locator("summary").click()
        assert text.is_visible()


def test_the_book_can_be_read_from_a_folder(browser):
    page = browser.new_page()
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto((SITE / "notebooks" / "03_operator_fusion.html").as_uri())
    page.wait_for_selector("mjx-container")
    assert page.locator(".bd-article img").evaluate_all(
        "pictures => pictures.every(picture => picture.naturalWidth > 0)"
    )
    assert all(url.startswith(("file:", "data:")) for url in asked)
    page.close()
