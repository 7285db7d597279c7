"""Values as text: how a value leaves the process of a learner's answer.

A student's process sends JSON, and nothing in it is evaluated or unpickled. ``null``, booleans,
strings, whole numbers and finite floats stand for themselves; a list stands for a list or a tuple.
Everything else is an object with one key, its kind:

========== ==========================================================
``dict``   a list of pairs ``[key, value]``
``float``  ``"nan"``, ``"inf"`` or ``"-inf"``
``array``  ``[dtype, shape, base64 of the bytes in C order]``
``relay``  the text of ``tvm.ir.save_json``
``relax``  a listing of :mod:`helpers.grading.relax_listing`
========== ==========================================================

:func:`loads` takes nothing else. A program stays text (:class:`RelayText`) or a listing
(:class:`RelaxListing`) until a process without a learner's code makes a program of it again.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import numbers
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from helpers.errors import WorkbookError
from helpers.grading import relax_listing
from helpers.tvm_builds import use_tvm

LONGEST = 8_000_000
"""Characters of an encoded value. A larger one is not a value."""
DEEPEST = 32
"""Levels of lists and dictionaries in a value."""
_MOST_DIGITS = 4000  # of a whole number
_MOST_AXES = 8
_DTYPES = frozenset(
    [
        "bool",
        "int8",
        "int16",
        "int32",
        "int64",
        "uint8",
        "uint16",
        "uint32",
        "uint64",
        "float16",
        "float32",
        "float64",
        "complex64",
        "complex128",
    ]
)


class NotAValueError(ValueError):
    """What came out cannot be read as a value, or what shall go in cannot be written as one."""


def _choose(kind: str) -> None:
    """The TVM that rebuilds a program: never whichever comes first, nor the other one's."""
    try:
        use_tvm(kind, quiet=True)
    except WorkbookError as error:
        raise NotAValueError(f"a program for the TVM with {kind.capitalize()}") from error


@dataclass(frozen=True)
class RelayText:
    """A Relay expression, function or module as ``tvm.ir.save_json`` writes it.

    Two are equal when they are the same program, whatever the names of its variables. Comparing
    needs a process that has chosen the TVM with Relay: nothing a learner sent is rebuilt elsewhere.
    """

    text: str

    def expression(self) -> Any:
        """The Relay object. Raises :class:`NotAValueError` when the text holds none."""
        _choose("relay")
        import tvm

        try:
            found = tvm.ir.load_json(self.text)
        except Exception as error:
            raise NotAValueError("not the text of a Relay program") from error
        if not _is_relay(found):
            raise NotAValueError("the text of something that is no Relay program")
        return found

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RelayText):
            return NotImplemented
        import tvm

        mine, others = self.expression(), other.expression()
        return bool(tvm.ir.structural_equal(mine, others, map_free_vars=True))

    def __hash__(self) -> int:  # equal programs may differ in their texts
        return 0


@dataclass(frozen=True)
class RelaxListing:
    """A Relax function as :func:`helpers.grading.relax_listing.listed` writes it.

    Two are equal when they are the same program, whatever the names of its variables. Comparing
    needs a process that has chosen the TVM with Relax.
    """

    tree: Any

    def expression(self) -> Any:
        """The Relax module. Raises :class:`NotAValueError` when the listing stands for none."""
        _choose("relax")
        try:
            return relax_listing.rebuilt(self.tree)
        except relax_listing.ListingError as error:
            raise NotAValueError("not the listing of a Relax program") from error

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RelaxListing):
            return NotImplemented
        return self._without_names() == other._without_names()

    def _without_names(self) -> str:
        tree = relax_listing.listed(self.expression())
        return dumps({**tree, "inputs": [kind for _, *kind in tree["inputs"]]})

    def __hash__(self) -> int:  # equal programs may differ in the names of their inputs
        return 0


Program = RelayText | RelaxListing


def dumps(value: Any) -> str:
    """One line of ASCII for a value. Raises :class:`NotAValueError` for what is none."""
    text = json.dumps(_encoded(value, 0), allow_nan=False, separators=(",", ":"))
    if len(text) > LONGEST:
        raise NotAValueError(f"more than {LONGEST:,} characters")
    return text


def loads(text: str) -> Any:
    """The value that :func:`dumps` wrote; lists stand for lists and tuples alike.

    Raises :class:`NotAValueError` for all that :func:`dumps` does not write: whatever a hostile
    process sends ends in a value made of Python's and NumPy's own types, or here.
    """
    if len(text) > LONGEST:
        raise NotAValueError(f"more than {LONGEST:,} characters")
    try:
        tree = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise NotAValueError("not JSON") from error
    return _decoded(tree, 0)


def holds_program(value: Any) -> bool:
    """Whether a decoded value is or contains a program of Relay or Relax."""
    if isinstance(value, Mapping):
        return any(map(holds_program, (*value.keys(), *value.values())))
    return any(map(holds_program, value)) if isinstance(value, list) else isinstance(value, Program)


def with_programs(value: Any) -> Any:
    """A decoded value in which the objects of TVM stand for texts and listings of programs."""
    if isinstance(value, dict):
        return {key: with_programs(item) for key, item in value.items()}
    if isinstance(value, list):
        return [with_programs(item) for item in value]
    return value.expression() if isinstance(value, Program) else value


def _encoded(value: Any, depth: int) -> Any:
    if depth > DEEPEST:
        raise NotAValueError(f"nested more than {DEEPEST} levels deep")
    if value is None or isinstance(value, (bool, np.bool_)):
        return None if value is None else bool(value)
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, numbers.Real):
        number = float(value)
        return number if math.isfinite(number) else {"float": str(number)}
    if isinstance(value, (list, tuple)):
        return [_encoded(item, depth + 1) for item in value]
    if isinstance(value, Mapping):
        pairs = [[_encoded(key, depth + 1), _encoded(value[key], depth + 1)] for key in value]
        return {"dict": pairs}
    if isinstance(value, np.ndarray) and value.dtype.name in _DTYPES:
        if value.nbytes > LONGEST:  # before its bytes take time and memory
            raise NotAValueError(f"more than {LONGEST:,} characters")
        data = base64.b64encode(np.ascontiguousarray(value).tobytes()).decode()
        return {"array": [value.dtype.name, list(value.shape), data]}
    if isinstance(value, RelayText):
        return {"relay": value.text}
    if isinstance(value, RelaxListing):
        return {"relax": _encoded(value.tree, depth + 1)}
    if _is_relay(value):
        import tvm

        return {"relay": tvm.ir.save_json(value)}
    if _is_relax(value):
        try:
            return {"relax": _encoded(relax_listing.listed(value), depth + 1)}
        except relax_listing.ListingError as error:
            raise NotAValueError(str(error)) from error
    raise NotAValueError(f"a value of type {type(value).__name__} cannot be graded")


def _is_relay(value: Any) -> bool:
    """Whether a value is a Relay expression or a module; without importing TVM for the answer."""
    if not type(value).__module__.startswith("tvm."):
        return False
    import tvm

    return hasattr(tvm.ir, "RelayExpr") and isinstance(value, (tvm.ir.RelayExpr, tvm.IRModule))


def _is_relax(value: Any) -> bool:
    """Whether a value is a function or a module of the TVM without Relay."""
    if not type(value).__module__.startswith("tvm."):
        return False
    import tvm

    return not hasattr(tvm.ir, "RelayExpr") and isinstance(value, (tvm.ir.BaseFunc, tvm.IRModule))


def _refuse(constant: str) -> Any:
    raise NotAValueError(f"{constant} is not written so")


def _decoded(tree: Any, depth: int) -> Any:
    if depth > DEEPEST:
        raise NotAValueError(f"nested more than {DEEPEST} levels deep")
    if isinstance(tree, list):
        return [_decoded(item, depth + 1) for item in tree]
    if not isinstance(tree, dict):
        if isinstance(tree, float) and not math.isfinite(tree):
            raise NotAValueError("a number too large for a float")
        if isinstance(tree, int) and abs(tree) >= 10**_MOST_DIGITS:
            raise NotAValueError("a whole number with too many digits")
        return tree
    if len(tree) != 1:
        raise NotAValueError("an object has one key, its kind")
    ((kind, content),) = tree.items()
    if kind == "float" and content in ("nan", "inf", "-inf"):
        return float(content)
    if kind == "relay" and isinstance(content, str):
        return RelayText(content)
    if kind == "relax":
        return RelaxListing(_decoded(content, depth + 1))
    if kind == "array" and isinstance(content, list) and len(content) == 3:
        return _array(*content)
    if kind == "dict" and isinstance(content, list):
        return _mapping(content, depth)
    raise NotAValueError("an object of an unknown kind")


def _mapping(pairs: list[Any], depth: int) -> dict[Any, Any]:
    if not all(isinstance(pair, list) and len(pair) == 2 for pair in pairs):
        raise NotAValueError("a dictionary is a list of pairs")
    found = {}
    for key, value in pairs:
        decoded = _decoded(key, depth + 1)
        found[_hashable(decoded)] = _decoded(value, depth + 1)
    if len(found) != len(pairs):
        raise NotAValueError("two keys of a dictionary are equal")
    return found


def _hashable(key: Any) -> Any:
    """A key as Python's dictionaries take it: a list, here as everywhere, stands for a tuple."""
    if isinstance(key, list):
        return tuple(map(_hashable, key))
    if isinstance(key, (dict, np.ndarray, Program)):
        raise NotAValueError("a key of a dictionary is a number, a text or a tuple of them")
    return key


def _array(dtype: Any, shape: Any, data: Any) -> np.ndarray:
    if not isinstance(dtype, str) or dtype not in _DTYPES or not isinstance(data, str):
        raise NotAValueError("an array of an unknown type")
    if not isinstance(shape, list) or len(shape) > _MOST_AXES:
        raise NotAValueError("an array without a shape")
    if not all(type(axis) is int and 0 <= axis <= LONGEST for axis in shape):
        raise NotAValueError("an array without a shape")
    try:
        raw = base64.b64decode(data, validate=True)
    except (ValueError, binascii.Error) as error:
        raise NotAValueError("an array whose bytes are not base64") from error
    if len(raw) != math.prod(shape) * np.dtype(dtype).itemsize:
        raise NotAValueError("an array with more or fewer bytes than its shape has")
    if dtype == "bool" and any(byte > 1 for byte in raw):
        raise NotAValueError("an array of truth values with other bytes than 0 and 1")
    return np.frombuffer(raw, dtype).reshape(shape)
