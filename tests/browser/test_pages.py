"""Every page, run from start to end by the menu, and looked at in the light and the dark theme."""

import pytest
from accessibility import serious_findings

from helpers.kernels import ROOT
from tools.pages import find_pages

PAGES = [page.target.relative_to(ROOT) for page in find_pages(ROOT)]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.with_suffix("")))
def test_a_page_runs_and_can_be_read(window, pictures, path):
    notebook = window.open(path.as_posix())
    notebook.run_all()
    found = notebook.faults()
    notebook.show_whole()
    for theme in ("Light", "Dark"):
        window.theme(theme)
        notebook.picture(pictures / path.parts[0] / f"{path.stem}-{theme.lower()}.png")
        found += [f"{theme}: {finding}" for finding in serious_findings(window.page)]
    assert not found, "\n".join(found)
