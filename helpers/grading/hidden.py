"""Hidden checks of a lab: what is asked of an answer, with which inputs, and what counts as right.

They live in ``solutions/NN_topic/checks.py`` beside ``WRONG`` and ``OTHERS``::

    HIDDEN = {
        "q1": [
            Hidden(
                "shapes of rank 0 to 5, every dtype",
                probe="[count_bytes(tuple(shape), dtype) for shape, dtype in cases]",
                draw=lambda random: {"cases": [[[], "int8"], *drawn_shapes(random)]},
            ),
        ],
    }

The probe is evaluated where the learner's answer lives; its value is compared elsewhere.
"""

from __future__ import annotations

import hashlib
import json
import runpy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from helpers.errors import WorkbookError

Inputs = dict[str, Any]


@dataclass(frozen=True)
class Hidden:
    """One hidden check.

    ``tried`` is shown in the feedback and gives no answer away. ``probe`` is an expression in the
    names of the lab, of the answers and of the inputs. ``draw`` makes the inputs, JSON values by
    name, from a NumPy generator; write edge points first, then drawn ones.

    Without ``verify`` an answer is right when its value agrees with the value that the reference
    solution gives: floats within ``atol + rtol * |expected|``, all else equal, Relay structurally
    equal. ``verify(value, **inputs)`` returns ``""`` for a right value, else one sentence that
    gives no answer away. It runs where TVM is and no learner's code; a parameter called ``lab``
    gets the names of the lab with the right answers, as attributes.

    With ``own`` the question is about what the lab draws from the name of the learner's variant
    (:mod:`helpers.variants`): there are no inputs, and the expected value is what the reference
    answer gives after the cells before it have drawn anew.

    ``weight`` is this check's part of the question's points. ``timeout`` is in seconds of
    processor time, for the answers and the probe together.
    """

    tried: str
    probe: str
    draw: Callable[[np.random.Generator], Inputs] | None = None
    verify: Callable[..., str] | None = None
    own: bool = False
    rtol: float = 1e-5
    atol: float = 1e-8
    weight: float = 1
    timeout: float = 10

    def inputs(self, secret: bytes, lab: str, question: str, number: int) -> Inputs:
        """The inputs of this check, the ``number``-th of a question: the same for the same secret.

        Raises :class:`WorkbookError` when ``draw`` gives something that is not JSON.
        """
        if self.draw is None:
            return {}
        place = b"\0".join([secret, lab.encode(), question.encode(), b"%d" % number])
        random = np.random.default_rng(int.from_bytes(hashlib.sha256(place).digest(), "big"))
        try:
            drawn: Inputs = json.loads(json.dumps(self.draw(random), allow_nan=False))
        except (TypeError, ValueError) as error:
            raise WorkbookError(
                f"Lab {lab}, {question}, check {number}: what draw gives is not JSON ({error})."
            ) from error
        return drawn


@dataclass(frozen=True)
class Bank:
    """What ``checks.py`` of a lab holds."""

    hidden: Mapping[str, list[Hidden]]
    wrong: Mapping[str, Mapping[str, Mapping[str, str]]] = field(default_factory=dict)
    others: Mapping[str, str] = field(default_factory=dict)


def read_bank(path: Path) -> Bank:
    """The checks in a ``checks.py``; no hidden ones when it has none."""
    names = runpy.run_path(str(path))
    return Bank(names.get("HIDDEN", {}), names.get("WRONG", {}), names.get("OTHERS", {}))


def mutated(source: str, changes: Mapping[str, str]) -> str:
    """A wrong answer: the right one with each old text, which occurs once, replaced.

    Raises :class:`WorkbookError` when an old text does not occur exactly once.
    """
    for old, new in changes.items():
        if source.count(old) != 1:
            raise WorkbookError(f"{old!r} is {source.count(old)} times in the answer, not once.")
        source = source.replace(old, new)
    return source
