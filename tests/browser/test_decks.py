"""Every slide of every deck in a window of 1280 x 720, from a file and without a server."""

import pytest
from PIL import Image

from helpers import teaching_paths
from tools.slides import __main__ as slides

WINDOW = {"width": 1280, "height": 720}
SMALL, ACROSS = (640, 360), 3  # of the slides on a picture of a deck

# What reaches over the slide's room, in pixels, with all that comes later in sight.
OVER = """number => {
    const slide = Reveal.getSlides()[number], {h, v} = Reveal.getIndices(slide);
    Reveal.slide(h, v, 100);
    const room = slide.querySelector('.body').getBoundingClientRect();
    const title = slide.querySelector('h1, h2');
    const found = [...slide.querySelectorAll('.body *')].filter(part => {
        const place = part.getBoundingClientRect();
        return place.width && (place.right > room.right + 1 || place.bottom > room.bottom + 1
                               || place.left < room.left - 1);
    }).map(part => `${part.tagName}: ${part.textContent.slice(0, 60)}`);
    if (title.scrollWidth > title.clientWidth + 1) found.push(`title: ${title.textContent}`);
    return found.slice(0, 3);
}"""

NEW = """Reveal.getSlides().flatMap((slide, number) =>
    slide.matches('.part, .question') ? [number] : [])"""


@pytest.fixture(scope="session")
def folder(browser, tmp_path_factory):
    slides.install()
    return tmp_path_factory.mktemp("slides")


@pytest.mark.parametrize("name", [*slides.lessons(), *teaching_paths.names()])
def test_nothing_reaches_over_a_slide(browser, folder, pictures, name):
    out = folder / name
    course = name in teaching_paths.names()
    if course:
        slides.write_course(name, out)
    else:
        slides.write([name], out)
    wrong = []
    page = browser.new_page(viewport=WINDOW)
    page.on("console", lambda message: wrong.append(f"console: {message.text}"))
    page.on("pageerror", lambda error: wrong.append(f"page error: {error}"))
    page.on("requestfailed", lambda request: wrong.append(f"not there: {request.url[:100]}"))
    page.on(
        "request",
        lambda request: (
            request.url.startswith(("file:", "data:"))
            or wrong.append(f"asked for {request.url[:100]}")
        ),
    )
    decks = sorted(out.glob("*.html"))
    assert decks
    for deck in decks:
        page.goto(deck.as_uri())
        page.evaluate("MathJax.startup.promise")
        # A path's deck has the lessons' slides once more; only the others are new in it.
        numbers = page.evaluate(NEW if course else "[...Reveal.getSlides().keys()]")
        shots = []
        for number in numbers:
            over = page.evaluate(OVER, number)
            wrong += [f"{deck.stem}, slide {number + 1}: {part}" for part in over]
            shots.append(out / f"{number}.png")
            page.screenshot(path=str(shots[-1]))
        assert len(numbers) > 3
        sheet(shots).save(pictures / f"slides-{deck.stem}.png")
    page.close()
    assert wrong == []


def sheet(shots):
    """All slides of a deck on one picture, for someone to look at."""
    wide, high = SMALL
    made = Image.new("RGB", (wide * ACROSS, high * -(-len(shots) // ACROSS)), "grey")
    for place, shot in enumerate(shots):
        made.paste(Image.open(shot).resize(SMALL), (place % ACROSS * wide, place // ACROSS * high))
    return made
