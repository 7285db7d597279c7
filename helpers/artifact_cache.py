"""Files that hold a compiled model, and a folder of them: the cache on disk.

A file is a magic line, the SHA-256 of all that follows it, and that: the length of a JSON header,
the header, and the sections it names. Nothing in it is unpickled. It does hold machine code, so
load only files that you would also run.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MAGIC = b"relay workbook artifact 1\n"
_DIGEST = hashlib.sha256().digest_size
_LENGTH = 8
_SUFFIX = ".artifact"
_ABANDONED = 3600.0
"""Seconds after which a half-written file is taken for one whose writer has died."""


class DamagedError(ValueError):
    """The file is not a whole artifact: cut short, changed, or something else altogether."""


def pack(header: Mapping[str, Any], sections: Mapping[str, bytes]) -> bytes:
    """One artifact as bytes. ``header`` must be JSON; the key ``"sections"`` is taken."""
    lengths = [[name, len(data)] for name, data in sections.items()]
    text = json.dumps({**header, "sections": lengths}).encode()
    body = b"".join([len(text).to_bytes(_LENGTH, "little"), text, *sections.values()])
    return MAGIC + hashlib.sha256(body).digest() + body


def unpack(data: bytes) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Header and sections of what :func:`pack` made; :class:`DamagedError` for anything else."""
    start = len(MAGIC) + _DIGEST
    body = memoryview(data)[start:]
    if data[: len(MAGIC)] != MAGIC or hashlib.sha256(body).digest() != data[len(MAGIC) : start]:
        raise DamagedError("not a whole artifact")
    at = _LENGTH + int.from_bytes(body[:_LENGTH], "little")
    header = json.loads(bytes(body[_LENGTH:at]))
    sections = {}
    for name, length in header.pop("sections"):
        sections[name] = bytes(body[at : at + length])
        at += length
    return header, sections


def write(path: Path, data: bytes) -> None:
    """Write ``path`` whole or not at all, also when others write or read it at the same time."""
    descriptor, name = tempfile.mkstemp(prefix=".part-", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        Path(name).replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(name).unlink()
        raise


@dataclass(frozen=True)
class ArtifactCache:
    """A folder of artifacts by key, no larger than ``limit`` bytes: the least recently used go.

    Any number of processes may share it. It never raises for the disk's sake: a full, read-only
    or vanished disk means that nothing is kept or found. What is not in ``directory`` is looked for
    in the folder ``shared``, which is only read.
    """

    directory: Path
    limit: int = 2 * 10**9
    shared: Path | None = None

    def get(self, key: str) -> bytes | None:
        """The bytes stored under ``key``, which now count as just used; ``None`` without."""
        path = self._path(key)
        try:
            data = path.read_bytes()
            os.utime(path)
        except OSError:
            return self._shared(key)
        return data

    def put(self, key: str, data: bytes) -> bool:
        """Store ``data`` under ``key``; whether that worked."""
        if len(data) > self.limit:
            return False
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            write(self._path(key), data)
        except OSError:
            return False
        self._trim()
        return True

    def clear(self) -> int:
        """Remove every entry; the bytes that this freed."""
        return sum(self._remove(path) for _, _, path in self._entries())

    def size(self) -> int:
        """Bytes in the cache."""
        return sum(size for _, size, _ in self._entries())

    def _shared(self, key: str) -> bytes | None:
        if self.shared is None:
            return None
        try:
            return (self.shared / f"{key}{_SUFFIX}").read_bytes()
        except OSError:
            return None

    def _path(self, key: str) -> Path:
        return self.directory / f"{key}{_SUFFIX}"

    def _entries(self) -> list[tuple[float, int, Path]]:
        """(time of last use, bytes, path) of each file of ours, the least recently used first."""
        found = []
        for pattern in (f"*{_SUFFIX}", ".part-*"):
            for path in self.directory.glob(pattern):
                with contextlib.suppress(OSError):  # another process has just removed it
                    status = path.stat()
                    found.append((status.st_mtime, status.st_size, path))
        return sorted(found)

    def _trim(self) -> None:
        entries = self._entries()
        total = sum(size for _, size, _ in entries)
        for used, size, path in entries:
            being_written = path.suffix != _SUFFIX and time.time() - used < _ABANDONED
            if being_written or (path.suffix == _SUFFIX and total <= self.limit):
                continue
            self._remove(path)
            total -= size

    @staticmethod
    def _remove(path: Path) -> int:
        try:
            size = path.stat().st_size
            path.unlink()
        except OSError:
            return 0
        return size
