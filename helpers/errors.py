"""The one exception of this project that a reader is meant to see."""

from __future__ import annotations

import sys
from numbers import Integral
from typing import Any


class WorkbookError(Exception):
    """Something the reader can mend: the message says what is wrong and what to do.

    In a notebook only the message is shown; the frames between the reader's line and
    ours would not help to mend it. In a terminal :func:`exit_with_sentence` does the same.
    """

    def _render_traceback_(self) -> list[str]:
        return [f"{type(self).__name__}: {self}"]


def whole_number(value: Any, name: str, least: int) -> int:
    """``value`` as an int. Raises :class:`WorkbookError` unless it is one, ``least`` or more."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise WorkbookError(f"{name} is a whole number, {least} or more, not {value!r}.")
    return int(value)


def exit_with_sentence(error: BaseException) -> None:
    """Print ``error`` as one line on standard error and exit with status 1."""
    print(f"{type(error).__name__}: {error}", file=sys.stderr)
    raise SystemExit(1)
