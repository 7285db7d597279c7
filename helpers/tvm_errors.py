"""TVM's errors in a sentence."""

from __future__ import annotations

import contextlib
import re
import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

from helpers.errors import WorkbookError


@contextlib.contextmanager
def explained(what: str) -> Iterator[None]:
    """Turn an error of TVM inside the block into a WorkbookError that begins with ``what``."""
    from tvm.ir import diagnostics

    notes: list[str] = []

    def keep(context: Any) -> None:
        notes.extend(str(item.message) for item in context.diagnostics)

    diagnostics.override_renderer(keep)
    try:
        yield
    except WorkbookError:
        raise
    except Exception as error:
        raise WorkbookError(f"{what}: {reason(error, notes)}.") from error
    finally:
        diagnostics.override_renderer(None)


def reason(error: BaseException, notes: Sequence[str] = ()) -> str:
    """The line of TVM's message that says what is wrong, without its C++ frames."""
    useful = [note for note in notes if "was unable to infer a type" not in note] or list(notes)
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    marked = [line for line in lines if re.match(r"[\w.]*(Error|Exit): ", line)]
    line = useful[0] if useful else (marked or lines or [type(error).__name__])[-1]
    line = re.sub(r"^[\w.]*(Error|Exit): ", "", line)
    line = re.sub(r"^Check failed: .*? is false: (?=\S)", "", line)
    return textwrap.shorten(line, 240, placeholder=" ...").rstrip(". :")
