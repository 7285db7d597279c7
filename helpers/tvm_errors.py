"""TVM's errors in a sentence, and any error in a line."""

from __future__ import annotations

import contextlib
import linecache
import re
import textwrap
import traceback
from collections.abc import Iterator, Sequence
from types import CodeType
from typing import Any

from helpers.errors import WorkbookError


@contextlib.contextmanager
def diagnostics_kept() -> Iterator[list[str]]:
    """Collect what TVM's type checker says inside the block, instead of printing it."""
    from tvm.ir import diagnostics

    notes: list[str] = []

    def keep(context: Any) -> None:
        notes.extend(str(item.message) for item in context.diagnostics)

    diagnostics.override_renderer(keep)
    try:
        yield notes
    finally:
        diagnostics.override_renderer(None)


@contextlib.contextmanager
def explained(what: str) -> Iterator[None]:
    """Turn an error of TVM inside the block into a WorkbookError that begins with ``what``."""
    with diagnostics_kept() as notes:
        try:
            yield
        except WorkbookError:
            raise
        except Exception as error:
            raise WorkbookError(f"{what}: {reason(error, notes)}.") from error


def reason(error: BaseException, notes: Sequence[str] = ()) -> str:
    """The line of TVM's message that says what is wrong, without its C++ frames."""
    useful = [note for note in notes if "was unable to infer a type" not in note] or list(notes)
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if free := [line for line in lines if line.startswith("contains free variables")]:
        return f"a function {free[-1]}"  # TVM prints the whole function before
    marked = [line for line in lines if re.match(r"[\w.]*(Error|Exit): ", line)]
    line = useful[0] if useful else (marked or lines or [type(error).__name__])[-1]
    line = re.sub(r"^[\w.]*(Error|Exit): ", "", line)
    line = _without_fields(re.sub(r"^Check failed: .*? is false: (?=\S)", "", line))
    return textwrap.shorten(line, 240, placeholder=" ...").rstrip(". :")


def _without_fields(text: str) -> str:
    """The text with the names of Relax's operators, and numbers, where TVM prints whole objects."""
    text = re.sub(r'ir\.Op\(span=.*?, name="([\w.]+)".*?support_level=\d+\)', r"\1", text)
    return re.sub(r"\bT\.int64\((\d+)\)", r"\1", text)


def told(
    error: BaseException,
    code: CodeType | None = None,
    but: CodeType | None = None,
    notes: Sequence[str] = (),
) -> str:
    """One line on an exception: its type, its message, and the learner's line it came from.

    A line is the learner's when its file is that of ``code``, or a cell of a notebook; the frame
    of ``but`` does not count. ``notes`` are what :func:`diagnostics_kept` has kept.
    """
    message = str(error).strip().splitlines()
    typing = type(error).__name__ == "DiagnosticError"  # its message only refers to the notes
    if message and (message[0].startswith("Traceback") or (notes and typing)):
        message = [reason(error, notes if typing else ())]  # TVM's errors begin with C++ frames
    said = [_without_fields(line)[:200] for line in message[:1]]
    text = ": ".join([type(error).__name__, *said])
    place = ""
    for frame, line in traceback.walk_tb(error.__traceback__):
        if frame.f_code is not but and _is_the_learners(frame.f_code, code):
            source = linecache.getline(frame.f_code.co_filename, line, frame.f_globals).strip()
            place = f"  (line {line} of your cell" + (f": `{source}`)" if source else ")")
    return text + place


def _is_the_learners(frame: CodeType, code: CodeType | None) -> bool:
    """Whether a frame runs code from the file of ``code``, or from a cell."""
    if code is not None and frame.co_filename == code.co_filename:
        return True
    return "ipykernel_" in frame.co_filename or frame.co_filename.startswith("<ipython-input")
