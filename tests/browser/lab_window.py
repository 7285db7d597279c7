"""A JupyterLab on loopback with its own copy of the workbook, and a notebook opened in it."""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import nbformat

from helpers.kernels import ROOT, prepare_environment, server_environment

SHARED_STATE = ("cache", "zoo", "tvm_test_data")  # made once: what runs has no part in them
RUN_LIMIT = 900  # seconds for all cells of a notebook
WIDTH, HEIGHT = 1280, 1000
LONGEST = 16_000  # pixels: beyond, Chromium paints nothing

# What JupyterLab itself writes to the console as an error, and why it is none of the workbook's.
CONSOLE_OF_JUPYTERLAB: dict[str, str] = {}


def copy_workbook(folder: Path) -> None:
    """The workbook as it is now, in ``folder``; installed packages and compiled models shared."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    (folder / ".deps").symlink_to(ROOT / ".deps")
    for name in SHARED_STATE:
        (ROOT / ".state" / name).mkdir(parents=True, exist_ok=True)
        (folder / ".state").mkdir(exist_ok=True)
        (folder / ".state" / name).symlink_to(ROOT / ".state" / name)


class Server:
    """A running JupyterLab whose root is ``folder``, started as ``make lab`` starts it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.token = secrets.token_hex(16)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.origin = f"http://127.0.0.1:{port}"
        prepare_environment()
        environment = {
            **os.environ,
            "PYTHONPATH": str(folder),
            **server_environment(folder),
            # Nothing that a kernel or the server would fetch can be reached.
            **dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"), "http://127.0.0.1:9"),
            "NO_PROXY": "127.0.0.1,localhost",
        }
        environment.pop("PYTEST_CURRENT_TEST", None)
        self.log = folder / ".state" / "server.log"
        command = [
            *(sys.executable, "-m", "jupyterlab", "--no-browser", "--ServerApp.ip=127.0.0.1"),
            *(f"--ServerApp.port={port}", "--ServerApp.port_retries=0"),
            *(f"--IdentityProvider.token={self.token}", f"--ServerApp.root_dir={folder}"),
        ]
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                command, env=environment, cwd=folder, stdout=log, stderr=subprocess.STDOUT
            )
        self._wait()

    def _wait(self) -> None:
        for _ in range(600):
            if self.process.poll() is not None:
                break
            try:
                self.ask("status")
            except OSError:
                time.sleep(0.2)
            else:
                return
        raise RuntimeError(f"JupyterLab does not start:\n{self.log.read_text()[-3000:]}")

    def ask(self, path: str, method: str = "GET") -> Any:
        """What the server's REST interface answers."""
        request = urllib.request.Request(f"{self.origin}/api/{path}", method=method)
        request.add_header("Authorization", f"token {self.token}")
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(request, timeout=30) as answer:
            return json.loads(answer.read() or "null")

    def end_kernels(self) -> None:
        """End the kernels of all notebooks."""
        for session in self.ask("sessions"):
            try:
                self.ask(f"sessions/{session['id']}", "DELETE")
            except urllib.error.HTTPError as error:
                if error.code != 404:
                    raise

    def light(self) -> None:
        """Go back to the theme that JupyterLab has at first."""
        place = "settings/@jupyterlab/apputils-extension/themes.jupyterlab-settings"
        (self.folder / ".state" / "jupyter" / place).unlink(missing_ok=True)

    def stop(self) -> None:
        """End the server and its kernels."""
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()


class Window:
    """One browser window with JupyterLab in it, and all that went wrong in it so far."""

    def __init__(self, page: Any, server: Server) -> None:
        self.page, self.server = page, server
        self.wrong: list[str] = []
        page.set_default_timeout(120_000)
        page.on("pageerror", lambda error: self.wrong.append(f"page error: {error}"))
        page.on("console", self._console)
        page.on("dialog", self._dialog)
        page.route("**/*", self._request)

    def _request(self, route: Any) -> None:
        if urlsplit(route.request.url).hostname == "127.0.0.1":
            route.continue_()
        else:
            self.wrong.append(f"request to an outside host: {route.request.url[:200]}")
            route.abort()

    def _dialog(self, dialog: Any) -> None:
        self.wrong.append(f"dialog of the browser: {dialog.message}")
        dialog.dismiss()

    def _console(self, message: Any) -> None:
        known = any(re.search(pattern, message.text) for pattern in CONSOLE_OF_JUPYTERLAB)
        if message.type == "error" and not known:
            self.wrong.append(f"console error: {message.text[:500]}")

    def open(self, path: str) -> Notebook:
        """Open the notebook at ``path`` alone, in a workspace of its own."""
        workspace = re.sub(r"\W", "-", path)
        self.page.goto(
            f"{self.server.origin}/lab/workspaces/{workspace}/tree/{quote(path)}"
            f"?reset&token={self.server.token}"
        )
        return self.opened(path)

    def opened(self, path: str) -> Notebook:
        """The notebook at ``path`` when it is in front and its kernel is ready."""
        notebook = Notebook(self, path)
        notebook.cell(notebook.source.cells[-1].id).wait_for(state="attached")
        # Before its kernel is there, JupyterLab takes a notebook for one that has none.
        self.page.get_by_text(re.compile(r"\| Idle$")).wait_for()
        return notebook

    def menu(self, *names: str) -> None:
        """Choose from the menu bar, by the names that a reader sees."""
        self.page.get_by_role("menuitem", name=names[0], exact=True).first.click()
        for name in names[1:]:
            self.page.locator(".lm-Menu-item").filter(
                has=self.page.get_by_text(name, exact=True)
            ).first.click()

    def theme(self, name: str) -> None:
        """Change JupyterLab's theme: ``Light`` or ``Dark``."""
        self.menu("Settings", "Theme", f"JupyterLab {name}")
        self.page.wait_for_selector(
            f"body[data-jp-theme-name='JupyterLab {name}']", state="attached"
        )
        self.page.wait_for_timeout(500)


class Notebook:
    """A notebook in front of a window."""

    def __init__(self, window: Window, path: str) -> None:
        self.window, self.page, self.path = window, window.page, path
        self.file = window.server.folder / path
        self.source = nbformat.read(self.file, 4)
        self.panel = self.page.locator(".jp-NotebookPanel:not(.lm-mod-hidden)")

    # --- running ---

    def wait_idle(self, limit: float = RUN_LIMIT) -> None:
        """Until the kernel has nothing left to do."""
        self.page.wait_for_function(
            """() => {
                const panel = document.querySelector('.jp-NotebookPanel:not(.lm-mod-hidden)');
                if (!panel || document.querySelector('.jp-Dialog')) return Boolean(panel);
                const sign = panel.querySelector('.jp-Notebook-ExecutionIndicator');
                const prompts = [...panel.querySelectorAll('.jp-InputPrompt')];
                return sign && sign.dataset.status === 'idle' && panel.querySelector('.jp-Cell')
                    && !prompts.some(prompt => prompt.textContent.includes('[*]'));
            }""",
            timeout=limit * 1000,
        )

    def run_all(self) -> None:
        """Run every cell and wait for the last one."""
        self.window.menu("Run", "Run All Cells")
        self.page.wait_for_timeout(500)
        self.wait_idle()

    def restart(self) -> None:
        """Restart the kernel from the menu, and say yes to the question."""
        self.window.menu("Kernel", "Restart Kernel…")
        self.page.locator(".jp-Dialog .jp-mod-accept").click()
        self.page.wait_for_timeout(500)
        self.wait_idle()

    def save(self) -> nbformat.NotebookNode:
        """Save with the keyboard, and read what is then in the file."""
        before = self.file.stat().st_mtime_ns
        self.page.keyboard.press("Escape")
        self.page.keyboard.press("Control+s")
        for _ in range(100):
            if self.file.stat().st_mtime_ns != before:
                self.page.wait_for_timeout(200)
                return nbformat.read(self.file, 4)
            self.page.wait_for_timeout(100)
        raise AssertionError(f"{self.path} was not saved.")

    # --- what is to be seen ---

    def cell(self, name: str) -> Any:
        """The cell called ``name``, as a place to look for controls and outputs."""
        number = next(i for i, cell in enumerate(self.source.cells) if cell.id == name)
        return self.panel.locator(".jp-Notebook .jp-Cell").nth(number)

    def faults(self) -> list[str]:
        """What the cells show that a reader must not see; empty when all is well.

        What went wrong in the window as a whole is in its ``wrong``.
        """
        found = []
        shown = self.page.locator(".jp-Dialog").all_inner_texts()
        found += [f"dialog: {text[:300]}" for text in shown]
        for text in self.panel.locator(".jp-OutputArea-output").all_text_contents():
            if "Error displaying widget" in text or "Loading widget" in text:
                found.append(f"a widget is not there: {text[:300]}")
        for cell in self.save().cells:
            if cell.cell_type != "code" or not cell.source.strip():
                continue
            if cell.execution_count is None:
                found.append(f"cell {cell.id} did not run")
            errors = [output for output in cell.outputs if output.output_type == "error"]
            wanted = "raises-exception" in cell.metadata.get("tags", ())
            if bool(errors) != wanted:
                said = errors[0].ename + ": " + errors[0].evalue[:300] if errors else "no error"
                found.append(f"cell {cell.id}: {said}")
        return found

    def show_whole(self) -> None:
        """Make the window as tall as the notebook, so that all of it is drawn."""
        before = 0
        while True:
            tall = self.page.evaluate(
                """() => {
                    const panel = document.querySelector('.jp-NotebookPanel:not(.lm-mod-hidden)');
                    const outer = panel.querySelector('.jp-WindowedPanel-outer');
                    outer.scrollTop = 0;
                    const last = [...panel.querySelectorAll('.jp-Cell')].pop();
                    return Math.ceil(last.getBoundingClientRect().bottom) + 100;
                }"""
            )
            height = max(HEIGHT, min(tall, LONGEST))
            if height <= before:
                return
            # What has not been drawn yet has a height that JupyterLab guessed: look again.
            self.page.set_viewport_size({"width": WIDTH, "height": height})
            self.page.wait_for_timeout(1000)
            before = height

    def picture(self, file: Path) -> None:
        """A picture of the window as it is now."""
        file.parent.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=str(file))
