"""A learner's own variant: the last question of a lab is about something drawn from a name.

``make lab VARIANT=ada`` draws the programs and numbers of ada and keeps the name for the next
``make lab``; in a notebook ``variants.remember("ada")`` does the same. Without a name everybody
has the common variant, which is also the one in the pages as they are given out.

What is drawn depends on the name and the lab alone: on no machine, no process and no Python.
"""

from __future__ import annotations

import hashlib
import os
import unicodedata

import numpy as np

from helpers import artifact_cache
from helpers.errors import WorkbookError, exit_with_sentence
from helpers.places import FOLDER

VARIABLE = "VARIANT"
"""The environment variable. Where it is set, even to nothing, the kept name does not count."""
FILE = FOLDER / ".state" / "variant"
LONGEST = 100  # characters of a name


def normalised(text: str) -> str:
    """A name as it counts: without spaces around it, no capitals, in one way of writing.

    ``""`` stands for the common variant. Raises :class:`WorkbookError` for a name that is longer
    than :data:`LONGEST` characters, or that holds a character which cannot be printed.
    """
    name = unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())
    name = " ".join(name.split())
    if len(name) > LONGEST or not name.isprintable():
        raise WorkbookError(
            f"{ascii(text)[:60]} cannot be the name of a variant: take one of at most {LONGEST} "
            "characters that can be printed."
        )
    return name


def name() -> str:
    """The name that counts here: of the environment, else the one that is kept, else ``""``."""
    if VARIABLE in os.environ:
        return normalised(os.environ[VARIABLE])
    try:
        return normalised(FILE.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise WorkbookError(f"{FILE} cannot be read: remove it, and give the name anew.") from error


def title() -> str:
    """What a lab prints above what it has drawn."""
    return f"Variant: {name() or 'the common one'}"


def remember(text: str) -> None:
    """Keep a name for all labs from now on, ``""`` for the common variant, and use it here."""
    name = normalised(text)
    try:
        if name:
            FILE.parent.mkdir(parents=True, exist_ok=True)
            artifact_cache.write(FILE, f"{name}\n".encode())
        else:
            FILE.unlink(missing_ok=True)
    except OSError as error:
        raise WorkbookError(f"{FILE} cannot be written: {error.strerror}.") from error
    os.environ[VARIABLE] = name


def drawn(lab: str) -> np.random.Generator:
    """The random numbers of a lab, for example of ``"03"``, for the name that counts here."""
    place = f"{name()}\0{lab}".encode()
    return np.random.default_rng(int.from_bytes(hashlib.sha256(place).digest(), "big"))


def main() -> None:
    """Keep the name in the environment, if there is one; ``make lab`` begins with this."""
    if VARIABLE in os.environ:
        remember(os.environ[VARIABLE])
        print(title())


if __name__ == "__main__":
    try:
        main()
    except WorkbookError as error:
        exit_with_sentence(error)
