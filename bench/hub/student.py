"""A student who logs in to a Hub, starts a server, opens a lesson and runs all its cells."""

from __future__ import annotations

import json
import threading
import time
import uuid
from dataclasses import dataclass, field
from typing import Any

import nbformat
import requests
import websocket

LIMIT = 300.0  # seconds for one step


@dataclass
class Times:
    """Seconds since the student asked for the login page."""

    login: float = 0.0
    server: float = 0.0
    first_cell: float = 0.0
    lesson: float = 0.0
    whole: float = 0.0  # from the first cell to the last


@dataclass
class Student:
    """One student, by the interfaces that a browser uses; ``wrong`` is what went wrong."""

    name: str
    password: str
    hub: str
    lesson: str
    crash_after: int | None = None
    times: Times = field(default_factory=Times)
    wrong: list[str] = field(default_factory=list)
    restarts: int = 0
    token: str = ""

    def run(self, together: threading.Barrier) -> None:
        """Log in when all are there, and go on to the end of the lesson."""
        together.wait()
        began = time.monotonic()
        try:
            self.log_in()
            self.times.login = time.monotonic() - began
            self.start_server()
            self.times.server = time.monotonic() - began
            self.run_lesson(began)
        except Exception as error:  # whatever it is, it is a result of the trial
            self.wrong.append(f"{type(error).__name__}: {error}"[:300])

    def log_in(self) -> None:
        """The login form, and a token for what follows."""
        session = requests.Session()
        session.trust_env = False
        form = session.get(f"{self.hub}/hub/login", timeout=LIMIT)
        form.raise_for_status()
        fields = {"username": self.name, "password": self.password, "_xsrf": _xsrf(session)}
        answer = session.post(f"{self.hub}/hub/login?next=/hub/token", data=fields, timeout=LIMIT)
        answer.raise_for_status()
        made = session.post(
            f"{self.hub}/hub/api/users/{self.name}/tokens",
            json={"note": "trial"},
            headers={"X-XSRFToken": _xsrf(session)},
            timeout=LIMIT,
        )
        made.raise_for_status()
        self.token = made.json()["token"]

    def ask(self, method: str, path: str, **more: Any) -> requests.Response:
        """A request with the student's token."""
        headers = {"Authorization": f"token {self.token}"}
        with requests.Session() as session:
            session.trust_env = False
            return session.request(
                method, f"{self.hub}{path}", headers=headers, timeout=LIMIT, **more
            )

    def start_server(self) -> None:
        """Ask the Hub for a server and wait until it answers."""
        account = f"/hub/api/users/{self.name}"
        self.ask("POST", f"{account}/server").raise_for_status()
        until = time.monotonic() + LIMIT
        while time.monotonic() < until:
            server = self.ask("GET", account).json()["servers"].get("")
            if server and server["ready"]:
                return
            if not server:
                raise RuntimeError("the server did not start")
            time.sleep(0.3)
        raise TimeoutError("the server is not ready")

    def run_lesson(self, began: float) -> None:
        """Open the lesson as JupyterLab does and run its cells, anew after a crash."""
        place = f"/user/{self.name}/api"
        opened = self.ask("GET", f"{place}/contents/{self.lesson}?content=1&type=notebook")
        opened.raise_for_status()
        cells = nbformat.from_dict(opened.json()["content"]).cells
        code = [cell for cell in cells if cell.cell_type == "code"]
        kernel = self.kernel(self.lesson)
        try:
            if self.crash_after is not None:
                for cell in code[: self.crash_after]:
                    kernel.execute(cell.source)
                kernel.execute("import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
                self.restarts = kernel.restarts
            first = time.monotonic()
            for cell in code:
                error = kernel.execute(cell.source)
                if error and "raises-exception" not in cell.metadata.get("tags", ()):
                    self.wrong.append(f"cell {cell.id}: {error}")
                if not self.times.first_cell:
                    self.times.first_cell = time.monotonic() - began
            self.times.whole = time.monotonic() - first
            self.times.lesson = time.monotonic() - began
        finally:
            kernel.close()

    def kernel(self, path: str) -> Kernel:
        """A new kernel for the notebook ``path``."""
        place = f"/user/{self.name}/api"
        fields = {"path": path, "name": path, "type": "notebook", "kernel": {"name": "python3"}}
        made = self.ask("POST", f"{place}/sessions", json=fields)
        made.raise_for_status()
        address = (
            f"{self.hub.replace('http', 'ws', 1)}{place}/kernels/{made.json()['kernel']['id']}"
        )
        return Kernel(f"{address}/channels", self.token)


class Kernel:
    """A kernel behind the Hub's proxy, spoken to over its websocket."""

    def __init__(self, address: str, token: str) -> None:
        self.session = uuid.uuid4().hex
        self.restarts = 0
        self.socket = websocket.create_connection(
            f"{address}?session_id={self.session}",
            header=[f"Authorization: token {token}"],
            timeout=LIMIT,
            http_no_proxy=["127.0.0.1"],
        )

    def execute(self, source: str) -> str:
        """Run a cell; what it printed at the end of a traceback, ``""`` when all went well.

        When the kernel dies and is started again, that is counted and the cell is given up.
        """
        return self.ask(source)[1]

    def ask(self, source: str) -> tuple[str, str]:
        """Run a cell; what it printed, and its error."""
        name, printed, error = uuid.uuid4().hex, "", ""
        header = {"msg_id": name, "msg_type": "execute_request", "session": self.session}
        header |= {"username": "", "version": "5.3", "date": "2026-01-01T00:00:00Z"}
        content = {"code": source, "silent": False, "allow_stdin": False, "store_history": True}
        message = {"header": header, "parent_header": {}, "metadata": {}, "content": content}
        self.socket.send(json.dumps({**message, "channel": "shell", "buffers": []}))
        replied = idle = False
        while not (replied and idle):
            got = self._receive()
            if got is None:
                continue
            kind, told = got["msg_type"], got["content"]
            if kind == "status" and told["execution_state"] in ("restarting", "autorestarting"):
                self.restarts += 1
                return printed, "the kernel died and was started again"
            if got["parent_header"].get("msg_id") != name:
                continue
            if kind == "stream":
                printed += told["text"]
            elif kind == "error":
                error = f"{told['ename']}: {told['evalue']}"[:300]
            elif kind == "execute_reply":
                replied = True
            elif kind == "status":
                idle = told["execution_state"] == "idle"
        return printed, error

    def _receive(self) -> dict[str, Any] | None:
        """The next message; ``None`` for one with buffers, which belongs to a widget."""
        text = self.socket.recv()
        if not text:
            raise ConnectionError("the connection to the kernel was closed")
        return json.loads(text) if isinstance(text, str) else None

    def close(self) -> None:
        """Close the connection; the kernel goes on."""
        self.socket.close()


def _xsrf(session: requests.Session) -> str:
    return next(
        cookie.value or ""
        for cookie in session.cookies
        if cookie.name == "_xsrf" and cookie.path.startswith("/hub")
    )
