"""Which version of the workbook this is, and what is new since another one.

The number stands in ``pyproject.toml`` alone; a class's copy has the first part of that file.
"""

from __future__ import annotations

import re
from itertools import takewhile

from helpers.places import ROOT

_NUMBER = re.compile(r'^\[project\].*?^version = "([^"]+)"$', re.M | re.S)
_ENTRY = re.compile(r"- .*(?:\n  .*)*")


def number(project: str | None = None) -> str:
    """The version in the text of a ``pyproject.toml``, by default this workbook's.

    ``""`` where none stands in it, or where there is no such file.
    """
    if project is None:
        file = ROOT / "pyproject.toml"
        project = file.read_text(encoding="utf-8") if file.exists() else ""
    found = _NUMBER.search(project)
    return found[1] if found else ""


def news(changelog: str, since: str, known: str = "") -> list[str]:
    """What ``changelog`` says above the section of version ``since``; its headings and entries.

    Entries that stand in ``known``, an older state of the file, are left out, and headings that
    have none left. Without a section for ``since`` there is no telling, and nothing is new.
    """
    sections = re.split(r"^(?=## )", changelog, flags=re.M)[1:]
    newer = list(takewhile(lambda section: not section.startswith(f"## [{since}]"), sections))
    if not since or len(newer) == len(sections):
        return []
    old, lines = set(_ENTRY.findall(known)), []
    for section in newer:
        title, *kinds = re.split(r"^### ", section, flags=re.M)
        found: list[str] = []
        for kind in kinds:
            if fresh := [entry for entry in _ENTRY.findall(kind) if entry not in old]:
                found += [f"{kind.splitlines()[0]}:", *fresh]
        if found:
            lines += ["", re.sub(r"## |[\[\]]", "", title.splitlines()[0]), *found]
    return lines
