"""One JupyterLab and one Chromium for each test process; a window of its own for each test."""

import os
import shutil

import pytest
from lab_window import HEIGHT, WIDTH, Server, Window, copy_workbook

from helpers.kernels import ROOT
from tools.browser import NO_CHROMIUM, find_chromium

FLAGS = (
    "--no-sandbox",  # a container's root may not have Chromium's own sandbox
    "--disable-gpu",
    "--disable-dev-shm-usage",  # a container's /dev/shm may be too small for it
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)


@pytest.fixture(scope="session")
def browser():
    executable = find_chromium()
    if executable is None:
        pytest.skip(NO_CHROMIUM)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def server(browser, tmp_path_factory):
    folder = tmp_path_factory.mktemp("workbook")
    copy_workbook(folder)
    server = Server(folder)
    yield server
    server.stop()


@pytest.fixture(scope="session")
def context(browser):
    context = browser.new_context(viewport={"width": WIDTH, "height": HEIGHT})
    yield context
    context.close()


@pytest.fixture
def window(context, server):
    server.light()
    window = Window(context.new_page(), server)
    yield window
    window.page.close()
    server.end_kernels()


@pytest.fixture(scope="session")
def pictures():
    """Where pictures of the pages are left for someone to look at."""
    folder = ROOT / ".state" / "browser"
    if os.environ.get("PYTEST_XDIST_WORKER", "gw0") == "gw0":
        shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    return folder
