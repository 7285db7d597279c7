"""Join wheels that were carried in parts of at most 64 MiB, and check them.

On a machine with the network, then (after the folder is carried over) on the one without:

    python3 setup/join_wheels.py --split wheels
    python3 setup/join_wheels.py wheels

``NAME.whl`` becomes ``NAME.whl.part000``, ``.part001``, ... and ``NAME.whl.sha256``, and back.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
from pathlib import Path

PART = 60 * 2**20


def split(folder: Path, size: int = PART) -> list[str]:
    """Replace each wheel larger than ``size`` bytes by its parts; the names of the wheels."""
    done = []
    for wheel in sorted(folder.glob("*.whl")):
        data = wheel.read_bytes()
        if len(data) <= size:
            continue
        for number, start in enumerate(range(0, len(data), size)):
            part = folder / f"{wheel.name}.part{number:03}"
            part.write_bytes(data[start : start + size])
        wheel.with_name(f"{wheel.name}.sha256").write_text(hashlib.sha256(data).hexdigest())
        wheel.unlink()
        done.append(wheel.name)
    return done


def join(folder: Path) -> list[str]:
    """Make the wheels of their parts; the names. Raises ValueError when one is not whole."""
    done = []
    for checksum in sorted(folder.glob("*.whl.sha256")):
        name = checksum.name.removesuffix(".sha256")
        parts = sorted(folder.glob(f"{name}.part*"))
        data = b"".join(part.read_bytes() for part in parts)
        if hashlib.sha256(data).hexdigest() != checksum.read_text().strip():
            raise ValueError(
                f"{name} is not whole: a part is missing or damaged, carry its parts again."
            )
        (folder / name).write_bytes(data)
        done.append(name)
    return done


def main() -> int:
    """Split or join the wheels of a folder."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--split", action="store_true", help="make parts instead of joining them")
    arguments = parser.parse_args()
    try:
        done = split(arguments.folder) if arguments.split else join(arguments.folder)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    print(f"{'Split' if arguments.split else 'Joined'}: {', '.join(done) or 'nothing to do'}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
