"""The built book on loopback, and what a reader's browser says of one of its pages."""

from __future__ import annotations

import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from accessibility import serious_findings

DESKTOP = {"width": 1280, "height": 1000}
PHONE = {"width": 390, "height": 844}


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        """Say nothing."""


class Site:
    """A server of the files in ``folder``."""

    def __init__(self, folder: Path) -> None:
        handler = partial(_Quiet, directory=str(folder))
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.origin = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def stop(self) -> None:
        """End it."""
        self.server.shutdown()
        self.server.server_close()


class Reader:
    """A window with one page of the book after the other, and all that went wrong in it so far."""

    def __init__(self, page: Any, site: Site) -> None:
        self.page, self.site = page, site
        self.wrong: list[str] = []
        page.on("pageerror", lambda error: self.wrong.append(f"page error: {error}"))
        page.on("console", self._console)
        page.on("requestfailed", lambda asked: self.wrong.append(f"not there: {asked.url[:200]}"))
        page.on("response", self._response)
        page.route("**/*", self._request)

    def _console(self, message: Any) -> None:
        if message.type == "error":
            self.wrong.append(f"console error: {message.text[:500]}")

    def _response(self, response: Any) -> None:
        if response.status >= 400:
            self.wrong.append(f"status {response.status}: {response.url[:200]}")

    def _request(self, route: Any) -> None:
        address = urlsplit(route.request.url)
        if address.hostname == "127.0.0.1" or address.scheme == "data":
            route.continue_()
        else:
            self.wrong.append(f"request to an outside host: {route.request.url[:200]}")
            route.abort()

    def open(self, name: str) -> None:
        """Open a page, in the light theme, and wait until its formulas are set."""
        self.page.set_viewport_size(DESKTOP)
        self.theme("light")
        self.page.goto(f"{self.site.origin}/{name}")
        self.page.evaluate("() => window.MathJax?.startup?.promise")
        self.page.add_style_tag(content="* { transition: none !important; }")

    def theme(self, name: str) -> None:
        """Be a reader whose system is ``light`` or ``dark``."""
        self.page.emulate_media(color_scheme=name)

    def findings(self) -> list[str]:
        """What axe-core says in the theme shown.

        Of the words of code of one colour it looks at the first only: there are thousands.
        """
        self.page.evaluate(
            """() => {
                const seen = new Set();
                for (const word of document.querySelectorAll('.highlight span')) {
                    const block = word.closest('.cell_input, .cell_output');
                    const kind = `${word.className} ${block?.className}`;
                    if (seen.has(kind)) word.replaceWith(...word.childNodes);
                    else seen.add(kind);
                }
                // A formula is read from the copy beside its glyphs.
                document.querySelectorAll('mjx-math').forEach(drawn => drawn.remove());
            }"""
        )
        return serious_findings(self.page, ["html"])

    def faults(self) -> list[str]:
        """What is wrong with headings and pictures."""
        return self.page.evaluate(
            """() => {
                const found = [];
                const titles = [...document.querySelectorAll('h1')]
                    .filter(title => title.checkVisibility()).length;
                if (titles !== 1) found.push(`${titles} headings of level 1`);
                for (const picture of document.images) {
                    const name = picture.src.slice(0, 200);
                    if (!picture.naturalWidth) found.push(`no picture: ${name}`);
                    if (!picture.alt.trim()) found.push(`no alt text: ${name}`);
                }
                for (const odd of document.querySelectorAll('mjx-merror, .system-message'))
                    found.push(`an error is shown: ${odd.textContent.slice(0, 200)}`);
                return found;
            }"""
        )

    def too_wide(self) -> list[str]:
        """What a reader could see by scrolling the whole page sideways only, or not at all."""
        return self.page.evaluate(
            """() => {
                const wide = document.documentElement.clientWidth;
                const found = [];
                if (document.documentElement.scrollWidth > wide)
                    found.push(`the page is ${document.documentElement.scrollWidth} pixels wide`);
                const scrolls = part => {
                    for (; part && !part.matches('.bd-article'); part = part.parentElement)
                        if (['auto', 'scroll'].includes(getComputedStyle(part).overflowX))
                            return true;
                    return false;
                };
                for (const part of document.querySelectorAll('.bd-article *')) {
                    const box = part.getBoundingClientRect();
                    const hidden = box.width <= 1 || part.closest('mjx-assistive-mml');
                    if (!hidden && box.right > wide + 1 && !scrolls(part))
                        found.push(`${part.tagName} ${part.className} ends at ${box.right}: `
                            + part.textContent.slice(0, 60));
                }
                return found;
            }"""
        )
