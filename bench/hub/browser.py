"""A student at a real browser."""

from __future__ import annotations

import importlib
import re
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.hub.student import LIMIT, Student
from helpers.kernels import ROOT
from tools.browser import find_chromium

sys.path.append(str(ROOT / "tests" / "browser"))  # what drives JupyterLab's window
FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run")


def chromium() -> str | None:
    """A Chromium and what drives it, or ``None``."""
    try:
        import playwright  # noqa: F401
    except ImportError:
        return None
    return find_chromium()


@dataclass
class _Place:
    """What :class:`lab_window.Window` asks of a server."""

    origin: str
    folder: Path
    token: str = ""


@dataclass
class BrowserStudent(Student):
    """Logs in by the form, waits at the Hub's page, and uses JupyterLab's menus."""

    home: Path = Path()

    def log_in(self) -> None:
        """Nothing yet: everything happens in :meth:`run_lesson`, in one window."""

    def start_server(self) -> None:
        """Nothing yet."""

    def run_lesson(self, began: float) -> None:
        """The whole of it in Chromium; then a token, for what is tried afterwards."""
        from playwright.sync_api import sync_playwright

        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium(), args=FLAGS)
            try:
                self._at_window(browser.new_page(), began)
            finally:
                browser.close()
        Student.log_in(self)

    def _at_window(self, page: Any, began: float) -> None:
        place = _Place(f"{self.hub}/user/{self.name}", self.home / "workbook")
        window = importlib.import_module("lab_window").Window(page, place)
        page.set_default_timeout(LIMIT * 1000)
        page.goto(f"{self.hub}/hub/login?next=/hub/spawn")
        page.fill("#username_input", self.name)
        page.fill("#password_input", self.password)
        page.click("#login_submit")
        self.times.login = time.monotonic() - began
        page.wait_for_url(re.compile(rf"/user/{self.name}/lab"))
        self.times.server = time.monotonic() - began
        notebook = window.open(self.lesson)
        first = time.monotonic()
        window.menu("Run", "Run All Cells")
        notebook.cell("setup").get_by_text("Relay: TVM").wait_for()
        self.times.first_cell = time.monotonic() - began
        page.wait_for_timeout(500)
        notebook.wait_idle(LIMIT)
        self.times.whole = time.monotonic() - first
        self.times.lesson = time.monotonic() - began
        self.wrong += notebook.faults() + window.wrong
