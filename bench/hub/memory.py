"""What memory the processes of a user take, from ``/proc``."""

from __future__ import annotations

import re
import threading
from dataclasses import dataclass
from pathlib import Path

MB = 1e6


@dataclass
class Use:
    """Bytes. ``pss``: a page that n processes share counts as 1/n. ``uss``: unshared pages only."""

    pss: int = 0
    uss: int = 0
    rss: int = 0
    processes: int = 0

    def __add__(self, other: Use) -> Use:
        return Use(
            self.pss + other.pss,
            self.uss + other.uss,
            self.rss + other.rss,
            self.processes + other.processes,
        )


def of_process(folder: Path) -> Use:
    """What one process takes; nothing when it has ended."""
    try:
        text = (folder / "smaps_rollup").read_text()
    except OSError:
        return Use()
    kb = {name: int(number) for name, number in re.findall(r"^(\w+): +(\d+) kB", text, re.M)}
    private = kb.get("Private_Clean", 0) + kb.get("Private_Dirty", 0)
    return Use(kb.get("Pss", 0) * 1024, private * 1024, kb.get("Rss", 0) * 1024, 1)


def by_kind(uids: range) -> dict[int, dict[str, Use]]:
    """For each user in ``uids``: what ``"server"``, ``"kernel"`` and ``"other"`` processes take."""
    found: dict[int, dict[str, Use]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            uid = folder.stat().st_uid
            line = (folder / "cmdline").read_bytes().decode(errors="replace")
        except OSError:
            continue
        if uid in uids:
            kinds = found.setdefault(uid, {})
            kind = _kind(line)
            kinds[kind] = kinds.get(kind, Use()) + of_process(folder)
    return found


def of_hub() -> Use:
    """What the Hub, its proxy and its services take."""
    total = Use()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            line = (folder / "cmdline").read_bytes().decode(errors="replace")
        except OSError:
            continue
        names = ("bin/jupyterhub\0", "configurable-http-proxy", "jupyterhub-idle-culler")
        if any(name in line for name in names) and "/opt/relay-workbook" in line:
            total += of_process(folder)
    return total


def available() -> int:
    """Bytes of this machine's memory that programs can still have."""
    text = Path("/proc/meminfo").read_text()
    return int(re.search(r"^MemAvailable: +(\d+)", text, re.M)[1]) * 1024  # type: ignore[index]


class Watch:
    """The least memory that was available while it runs, and how far the load went up."""

    def __init__(self, seconds: float = 1.0) -> None:
        self.least = self.before = available()
        self.load = 0.0
        self._seconds = seconds
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    @property
    def taken(self) -> int:
        """Bytes that were taken at the peak, by whoever."""
        return self.before - self.least

    def _look(self) -> None:
        while not self._over.wait(self._seconds):
            self.least = min(self.least, available())
            self.load = max(self.load, float(Path("/proc/loadavg").read_text().split()[0]))


def _kind(line: str) -> str:
    if "ipykernel_launcher" in line:
        return "kernel"
    return "server" if "jupyterhub-singleuser" in line else "other"
