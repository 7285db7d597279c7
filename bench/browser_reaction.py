"""How long a reader waits: from a key pressed in an explorer to its new picture on the screen.

    .venv/bin/python -m bench.browser_reaction [LESSON ...] [--keys 40]

Each explorer is opened in JupyterLab in Chromium as the browser tests do it. A key is pressed in a
control that needs no compilation; the page itself takes the time from that key to the first frame
after the explorer's output has changed. That holds all there is: the browser, the way to the
kernel and back, the kernel's work, the drawing. Nothing else should run on the machine.
"""

from __future__ import annotations

import argparse
import importlib
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

from helpers.errors import WorkbookError, exit_with_sentence
from helpers.kernels import ROOT
from tools.browser import NO_CHROMIUM, find_chromium

CONTROLS = {
    "02": ("Pass:", "ArrowRight"),
    "03": ("First operator:", "ArrowDown"),
    "04": ("Step:", "ArrowRight"),
    "05": ("Step:", "ArrowRight"),
    "06": ("C, channels", "ArrowRight"),
    "09": ("Tensor", "ArrowRight"),
    "10": ("Instructions done", "ArrowRight"),
    "13": ("N, requests", "ArrowRight"),
}
"""By lesson: the control of its explorer, and the key; at an end of it the opposite key."""

BACK = {
    "ArrowRight": "ArrowLeft",
    "ArrowLeft": "ArrowRight",
    "ArrowDown": "ArrowUp",
    "ArrowUp": "ArrowDown",
}

WATCH = """box => {
    window.reaction = new Promise(done => {
        let pressed = 0, shown = false;
        box.addEventListener('keydown', () => { pressed = performance.now(); },
                             {capture: true, once: true});
        const look = new MutationObserver(() => {
            if (!pressed || shown) return;
            shown = true;
            look.disconnect();
            requestAnimationFrame(() => setTimeout(() => done(performance.now() - pressed)));
        });
        const said = [...box.querySelectorAll('[role=status]')].pop();
        const view = said.closest('.widget-html').nextElementSibling;
        look.observe(view, {childList: true, subtree: true, characterData: true});
        setTimeout(() => { look.disconnect(); done(null); }, 3000);
    });
}"""


def times(window: Any, lesson: str, keys: int) -> list[float]:
    """Milliseconds of each press of a key that changed the picture."""
    controls: Any = importlib.import_module("controls")
    moves = importlib.import_module("explorers").MOVES

    path = next((ROOT / "notebooks").glob(f"{lesson}_*.ipynb")).relative_to(ROOT)
    notebook = window.open(path.as_posix())
    notebook.run_all()
    explorer = controls.Explorer(notebook, moves[lesson][0])
    label, key = CONTROLS[lesson]
    found: list[float] = []
    still = 0
    explorer.control(label).focus()
    while len(found) < keys and still < 4:
        window.page.wait_for_timeout(400)
        explorer.box.evaluate(WATCH)
        window.page.keyboard.press(key)
        taken = window.page.evaluate("window.reaction")
        if taken is None:  # at the end of the slider
            key, still = BACK[key], still + 1
        else:
            found.append(taken)
            still = 0
    return found


def main(arguments: list[str]) -> int:
    """Measure the lessons that were named, or all of them."""
    parser = argparse.ArgumentParser(prog="bench.browser_reaction")
    parser.add_argument("lessons", nargs="*", metavar="LESSON")
    parser.add_argument("--keys", type=int, default=40)
    options = parser.parse_args(arguments)
    if unknown := [name for name in options.lessons if name not in CONTROLS]:
        raise WorkbookError(f"Lesson {unknown[0]} has no explorer: {', '.join(CONTROLS)} have one.")
    executable = find_chromium()
    if executable is None:
        raise WorkbookError(f"There is {NO_CHROMIUM}.")
    sys.path.insert(0, str(ROOT / "tests" / "browser"))
    lab: Any = importlib.import_module("lab_window")
    flags = importlib.import_module("conftest").FLAGS
    playwright_api: Any = importlib.import_module("playwright.sync_api")

    print("milliseconds from the key to the picture")
    print("lesson   keys   median   90 %    worst")
    with tempfile.TemporaryDirectory() as folder, playwright_api.sync_playwright() as playwright:
        lab.copy_workbook(Path(folder))
        browser = playwright.chromium.launch(executable_path=executable, args=flags)
        server = lab.Server(Path(folder))
        try:
            for lesson in options.lessons or CONTROLS:
                context = browser.new_context(viewport={"width": lab.WIDTH, "height": lab.HEIGHT})
                window = lab.Window(context.new_page(), server)
                found = times(window, lesson, options.keys)
                if len(found) < options.keys:
                    raise WorkbookError(f"Lesson {lesson}: keys no longer change the picture.")
                high = statistics.quantiles(found, n=10)[-1]
                print(
                    f"{lesson:<9}{len(found):>4}{statistics.median(found):>9.0f}"
                    f"{high:>7.0f}{max(found):>9.0f}",
                    flush=True,
                )
                context.close()
                server.end_kernels()
        finally:
            server.stop()
            browser.close()
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except WorkbookError as error:
        exit_with_sentence(error)
