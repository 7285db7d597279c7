"""The version stands in one place, and what else names it agrees."""

import datetime
import re

import pytest
import yaml

from helpers import version
from helpers.kernels import ROOT

CHANGELOG = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
RELEASED = re.findall(r"^## \[(\d+\.\d+\.\d+)\] - (\S+)$", CHANGELOG, re.M)


def test_changelog_and_citation_agree_with_the_project():
    number, date = RELEASED[0]
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert version.number() == number == cited["version"], "pyproject.toml, CHANGELOG, CITATION.cff"
    assert cited["date-released"] == date
    assert cited["license"] in (ROOT / "pyproject.toml").read_text(encoding="utf-8")


def test_the_changelog_has_the_form_that_it_says():
    sections = re.findall(r"^## (.*)$", CHANGELOG, re.M)
    assert sections == ["[Unreleased]", *(f"[{number}] - {date}" for number, date in RELEASED)]
    numbers = [tuple(map(int, number.split("."))) for number, _ in RELEASED]
    assert numbers == sorted(set(numbers), reverse=True)
    dates = [datetime.date.fromisoformat(date) for _, date in RELEASED]
    assert dates == sorted(dates, reverse=True)
    kinds = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
    assert set(re.findall(r"^### (.*)$", CHANGELOG, re.M)) <= kinds


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ('[project]\nname = "x"\nversion = "1.2.3"\n', "1.2.3"),
        ('[tool.x]\nversion = "9"\n\n[project]\nversion = "1.2.3"\n', "1.2.3"),
        ('[project]\nname = "x"\n', ""),
        ("", ""),
    ],
)
def test_the_number_of_a_project(text, number):
    assert version.number(text) == number


OLD = """# Changelog

## [Unreleased]

### Added

- A.
- B, which
  takes two lines.

## [0.1.0] - 2026-01-01

### Added

- Z.
"""
NEW = """# Changelog

## [Unreleased]

### Fixed

- D.

## [0.2.0] - 2026-02-01

Words.

### Added

- A.
- B, which
  takes two lines.

### Changed

- C, which
  takes two lines.

## [0.1.0] - 2026-01-01

### Added

- Z, with a word mended.
"""


def test_what_is_new_since_a_version():
    """What a learner has already, from between two releases, is not told again."""
    fixed = ["", "Unreleased", "Fixed:", "- D."]
    changed = ["Changed:", "- C, which\n  takes two lines."]
    added = ["Added:", "- A.", "- B, which\n  takes two lines."]
    title = ["", "0.2.0 - 2026-02-01"]
    assert version.news(NEW, "0.1.0") == [*fixed, *title, *added, *changed]
    assert version.news(NEW, "0.1.0", OLD) == [*fixed, *title, *changed]
    assert version.news(NEW, "0.2.0", NEW) == []
    assert version.news(NEW, "0.0.9") == version.news(NEW, "") == version.news("", "0.1.0") == []
