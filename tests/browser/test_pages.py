"""Every page, run from start to end by the menu, used, and looked at in both themes."""

import pytest
from accessibility import serious_findings
from controls import answer_all, drive
from explorers import MOVES, open_explorer

from helpers.kernels import ROOT
from tools.pages import find_pages

PAGES = [page.target.relative_to(ROOT) for page in find_pages(ROOT)]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.with_suffix("")))
def test_a_page_runs_and_can_be_used_and_read(window, pictures, path):
    notebook = window.open(path.as_posix())
    notebook.run_all()
    found = notebook.faults()
    if path.parts[0] == "notebooks":
        found += answer_all(notebook, path.stem)
        if opened := open_explorer(notebook):
            found += drive(*opened)
    notebook.show_whole()
    for theme in ("Light", "Dark"):
        window.theme(theme)
        notebook.picture(pictures / path.parts[0] / f"{path.stem}-{theme.lower()}.png")
        found += [f"{theme}: {finding}" for finding in serious_findings(window.page)]
    found += window.wrong
    assert not found, "\n".join(found)


def test_every_explorer_is_driven():
    """A lesson that shows one has its moves."""
    shown = {
        path.stem.split("_")[0]
        for path in PAGES
        if path.parts[0] == "notebooks" and "from helpers.widgets" in (ROOT / path).read_text()
    }
    assert shown == MOVES.keys()
