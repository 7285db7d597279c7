"""What is easily forgotten when something is added, and instructions that name what is there."""

import re

import pytest

from helpers import lesson_steps
from helpers.kernels import ROOT
from tools.pages import find_pages

README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("page", [p for p in find_pages(ROOT) if p.kind != "solution"], ids=str)
def test_the_readme_lists_every_lesson_and_lab(page):
    assert f"({page.target.relative_to(ROOT).as_posix()})" in README


def test_every_explorer_is_used_in_the_browser_tests():
    """Its moves stand in tests/browser/explorers.py, by the number of the lesson."""
    driven = (ROOT / "tests" / "browser" / "explorers.py").read_text(encoding="utf-8")
    moves = set(re.findall(r'^    "(\d\d)": \(', driven, re.M))
    shown = {
        number
        for number, file in lesson_steps.lessons().items()
        if re.search(r"^\w+\.explorer\(", file.read_text(encoding="utf-8"), re.M)
    }
    assert shown == moves


@pytest.mark.parametrize("name", ["docs/maintaining.md", "CONTRIBUTING.md"])
def test_what_the_instructions_name_is_there(name):
    text = (ROOT / name).read_text(encoding="utf-8")
    rooms = {path.name for path in ROOT.iterdir() if path.is_dir() and path.name[0] != "."}
    named = [path.rstrip(".") for path in re.findall(r"\w[\w.]*/[\w./*-]*", text)]
    paths = [p for p in named if p.split("/")[0] in rooms and not re.search("NN|NAME", p)]
    modules = [m.replace(".", "/") for m in re.findall(r"python -m ((?:tools|bench)[\w.]+)", text)]
    assert paths
    assert [p for p in paths if not any(ROOT.glob(p))] == []
    assert [m for m in modules if not any(ROOT.glob(f"{m}*"))] == []
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M)
    assert set(re.findall(r"`make ([a-z-]+)", text)) <= set(targets)
    links = re.findall(r"\]\(([^)#:]+)", text)
    assert [link for link in links if not (ROOT / name).parent.joinpath(link).exists()] == []
