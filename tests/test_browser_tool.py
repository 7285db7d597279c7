"""Which browser the browser tests take, and what they say where there is none."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from helpers.errors import WorkbookError
from helpers.kernels import ROOT
from tools import browser


def program(path: Path) -> Path:
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder that is all of the path."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CHROMIUM", raising=False)
    return tmp_path


def test_a_chromium_is_found_on_the_path(folder):
    assert browser.find_chromium() is None
    chrome = program(folder / "google-chrome")
    assert browser.find_chromium() == str(chrome)
    chromium = program(folder / "chromium")
    assert browser.find_chromium() == str(chromium)


def test_one_that_is_named_is_taken(folder, monkeypatch):
    program(folder / "chromium")
    mine = program(folder / "my-chromium")
    monkeypatch.setenv("CHROMIUM", str(mine))
    assert browser.find_chromium() == str(mine)
    monkeypatch.setenv("CHROMIUM", str(folder / "gone"))
    with pytest.raises(WorkbookError, match="not a program"):
        browser.find_chromium()


def test_nothing_is_installed_unless_it_is_asked_for(folder, monkeypatch):
    ran = []

    class Done:
        returncode = 0

    monkeypatch.setattr(browser.subprocess, "run", lambda command, **_: ran.append(command) or Done)
    monkeypatch.delenv("INSTALL_CHROMIUM", raising=False)
    assert browser.main([]) == 0
    assert [command[2] for command in ran] == ["pytest"]  # which skips every test
    ran.clear()
    program(folder / "apt-get")
    monkeypatch.setenv("INSTALL_CHROMIUM", "1")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    browser.main([])
    assert [command[:2] for command in ran[:2]] == [["apt-get", "update"], ["apt-get", "install"]]


def test_without_a_chromium_the_tests_are_skipped_by_name(folder):
    command = [sys.executable, "-m", "pytest", "-q", "tests/browser", "-k", "restart"]
    environment = {**os.environ, "HOME": str(folder)}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout
    assert browser.NO_CHROMIUM in done.stdout
    assert "1 skipped" in done.stdout
