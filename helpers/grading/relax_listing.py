"""A Relax function as a listing of plain values, and the function that a listing stands for.

An answer leaves its process as values (:mod:`encoding`). For Relax neither of TVM's own forms will
do: its JSON writer ends in a segmentation fault here, and its parser of text evaluates Python. So
the bindings of ``main`` are written down one by one. Whoever rebuilds them does it with operators
from :data:`OPERATORS` alone, which compute tensors and do nothing else: a listing that somebody
made up can call no function, hold no loops of its own, and so do no harm when it is compiled and
run. TVM's own functions make the calls, which check what they are given; types are inferred anew.

====================================== ==========================================
``{"inputs", "lines", "result"}``       a function; inputs are ``[name, dimensions, dtype]``
``["var", k]``                          the k-th value: first the inputs, then the lines
``["call", operator, arguments, {}]``    a call, and its attributes by name
``["item", value, k]``                  a field of a tuple
``["tuple", values]``                   a tuple
``["constant", array]``                 a constant
``["shape", dimensions]``               a shape
``["number", value, dtype]``            a number that is no tensor
====================================== ==========================================

A dimension is a whole number, a variable's number as a text, or ``[operation, one, other]``.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import Any

import numpy as np

OPERATORS = frozenset(
    f"relax.{name}"
    for line in """
    abs acos acosh asin asinh atan atanh ceil cos cosh erf exp floor log logical_not negative round
    rsqrt sigmoid sign sin sinh sqrt square tan tanh clip
    add divide equal floor_divide greater greater_equal less less_equal logical_and logical_or
    logical_xor maximum minimum mod multiply not_equal power subtract
    argmax argmin max mean min prod std sum variance
    astype broadcast_to concat expand_dims flatten flip ones_like permute_dims repeat reshape
    squeeze stack tile where zeros_like matmul
    nn.conv2d nn.gelu nn.leakyrelu nn.log_softmax nn.relu nn.silu nn.softmax
    """.splitlines()
    for name in line.split()
)
"""What a listing may call."""

_OPERATIONS = {
    "Add": "+",
    "Sub": "-",
    "Mul": "*",
    "FloorDiv": "//",
    "FloorMod": "%",
    "Min": "min",
    "Max": "max",
}
_NAME = re.compile(r"\w{1,60}")


class ListingError(ValueError):
    """What cannot be listed, or what is no listing."""


# --- writing -------------------------------------------------------------------------------------


def listed(value: Any) -> dict[str, Any]:
    """The listing of a Relax function, or of a module whose only function is ``main``.

    A binding that only gives a value a second name is left out. Raises :class:`ListingError` for a
    function with anything but calls of :data:`OPERATORS`, tuples and constants.
    """
    import tvm
    from tvm import relax

    if isinstance(value, tvm.IRModule):
        names = [variable.name_hint for variable in value.get_global_vars()]
        if names != ["main"]:
            raise ListingError(f"a module with the functions {names}: main alone can be graded")
        value = value["main"]
    if not isinstance(value, relax.Function):
        raise ListingError(f"{type(value).__name__} is no Relax function or module")
    return _Writer().function(value)


class _Writer:
    def __init__(self) -> None:
        self._known: list[tuple[Any, Any]] = []  # a variable, and what stands for it
        self._lengths: list[Any] = []
        self._lines: list[Any] = []

    def function(self, function: Any) -> dict[str, Any]:
        from tvm import relax

        inputs = [self._input(k, variable) for k, variable in enumerate(function.params)]
        if not isinstance(function.body, relax.SeqExpr):
            raise ListingError("a function without bindings")
        for block in function.body.blocks:
            for binding in block.bindings:
                if not isinstance(binding, relax.VarBinding):
                    raise ListingError(f"{type(binding).__name__} cannot be graded")
                line = self._value(binding.value)
                if line[0] in ("call", "item", "tuple"):
                    self._lines.append(line)
                    line = ["var", len(inputs) + len(self._lines) - 1]
                self._known.append((binding.var, line))
        return {"inputs": inputs, "lines": self._lines, "result": self._value(function.body.body)}

    def _input(self, number: int, variable: Any) -> list[Any]:
        from tvm import relax

        kind = variable.ty
        if not isinstance(kind, relax.TensorType) or kind.shape is None:
            raise ListingError("an input that is no tensor with a shape")
        self._known.append((variable, ["var", number]))
        dimensions = [self._dimension(length) for length in kind.shape.values]
        return [str(variable.name), dimensions, str(kind.dtype)]

    def _value(self, value: Any) -> list[Any]:
        import tvm
        from tvm import relax, tirx

        if isinstance(value, relax.Var):
            for variable, stands in self._known:
                if variable.same_as(value):
                    return stands
            raise ListingError("a variable that is not defined")
        if isinstance(value, relax.Call):
            return self._call(value)
        if isinstance(value, relax.Tuple):
            return ["tuple", [self._value(field) for field in value.fields]]
        if isinstance(value, relax.TupleGetItem):
            return ["item", self._value(value.tuple_value), int(value.index)]
        if isinstance(value, relax.ShapeExpr):
            return ["shape", [self._dimension(length) for length in value.values]]
        if isinstance(value, (tirx.IntImm, tirx.FloatImm)):
            return ["number", value.value, str(value.ty.dtype)]
        if isinstance(value, tvm.ir.GenericConst):
            return ["constant", value.value.numpy()]
        raise ListingError(f"{type(value).__name__} cannot be graded")

    def _call(self, call: Any) -> list[Any]:
        import tvm

        name = str(call.op.name) if isinstance(call.op, tvm.ir.Op) else type(call.op).__name__
        if name not in OPERATORS:
            raise ListingError(f"a call of {name} cannot be graded")
        arguments = [self._value(argument) for argument in call.args]
        if call.attrs is None:
            return ["call", name, arguments, {}]
        fields = type(call.attrs).__tvm_ffi_type_info__.fields
        named = {field.name: _plain(getattr(call.attrs, field.name)) for field in fields}
        return ["call", name, arguments, named]

    def _dimension(self, length: Any) -> Any:
        from tvm import tirx

        if isinstance(length, (int, tirx.IntImm)):
            return int(length)
        if isinstance(length, tirx.Var):
            for number, known in enumerate(self._lengths):
                if known.same_as(length):
                    return str(number)
            self._lengths.append(length)
            return str(len(self._lengths) - 1)
        if operation := _OPERATIONS.get(type(length).__name__):
            return [operation, self._dimension(length.a), self._dimension(length.b)]
        raise ListingError("a length of this kind cannot be graded")


def _plain(value: Any) -> Any:
    """An attribute as a plain value."""
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, str):
        return str(value)
    if hasattr(value, "value") and isinstance(value.value, (bool, int, float)):
        return value.value
    if hasattr(value, "__len__"):
        return [_plain(item) for item in value]
    text = str(value)
    if _NAME.fullmatch(text):  # a data type
        return text
    raise ListingError("an attribute of this kind cannot be graded")


# --- rebuilding ----------------------------------------------------------------------------------


def rebuilt(tree: Any) -> Any:
    """The Relax module with a function ``main`` that a listing stands for.

    Raises :class:`ListingError` for what is none, whatever it is, and for one whose types do not
    fit.
    """
    try:
        return _Reader().module(tree)
    except ListingError:
        raise
    except Exception as error:
        raise ListingError("the listing of no Relax function") from error


class _Reader:
    def __init__(self) -> None:
        self._values: list[Any] = []
        self._lengths: dict[str, Any] = {}

    def module(self, tree: Any) -> Any:
        from tvm import relax

        builder = relax.BlockBuilder()
        for name, dimensions, dtype in tree["inputs"]:
            if not _NAME.fullmatch(name):
                raise ListingError("an input without a name")
            kind = relax.TensorType([self._dimension(length) for length in dimensions], dtype)
            self._values.append(relax.Var(name, kind))
        inputs = list(self._values)
        with builder.function("main", inputs):
            with builder.dataflow():
                for line in tree["lines"]:
                    self._values.append(builder.emit(self._value(line)))
                result = builder.emit_output(self._value(tree["result"]))
            builder.emit_func_output(result)
        return builder.get()

    def _value(self, tree: Any) -> Any:
        from tvm import relax, tirx

        kind, content, *more = tree
        if kind == "var" and type(content) is int and content >= 0:
            return self._values[content]
        if kind == "call":
            return self._call(content, *more)
        if kind == "tuple":
            return relax.Tuple([self._value(field) for field in content])
        if kind == "item":
            return relax.TupleGetItem(self._value(content), int(more[0]))
        if kind == "shape":
            return relax.ShapeExpr([self._dimension(length) for length in content])
        if kind == "number":
            made: Callable[..., Any] = tirx.IntImm if type(content) is int else tirx.FloatImm
            return made(str(more[0]), content)
        if kind == "constant" and isinstance(content, np.ndarray):
            return relax.const(content, str(content.dtype))
        raise ListingError("a value of an unknown kind")

    def _call(self, name: Any, arguments: Any, attributes: Any) -> Any:
        from tvm import relax

        if name not in OPERATORS:
            raise ListingError("a call of something else than an operator")
        made = operator.attrgetter(name.removeprefix("relax."))(relax.op)
        return made(*map(self._value, arguments), **attributes)

    def _dimension(self, tree: Any) -> Any:
        from tvm import tirx

        if type(tree) is int and tree >= 0:
            return tirx.IntImm("int64", tree)
        if isinstance(tree, str) and tree.isdecimal():
            return self._lengths.setdefault(tree, tirx.Var(f"n{tree}", "int64"))
        operation, one, other = tree
        names = {sign: name for name, sign in _OPERATIONS.items()}
        return getattr(tirx, names[operation])(self._dimension(one), self._dimension(other))
