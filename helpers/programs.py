"""Small random Relay programs, and the smallest one that a pass breaks.

A pass is right when every program computes the same values after it. :func:`counterexample` tries a
pass on random programs and answers with the smallest that it breaks; ``None`` when it breaks none::

    programs.counterexample(relay.transform.FoldConstant())

:func:`programs` is the `hypothesis <https://hypothesis.readthedocs.io>`_ strategy behind it, and
:func:`evaluate` computes what a program means: by numpy alone, without TVM's kernels.
"""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from helpers import modules
from helpers.errors import WorkbookError, whole_number
from helpers.tvm_builds import native_log_quiet, need_relay
from helpers.tvm_errors import diagnostics_kept, reason, told

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

Shape = tuple[int, ...]

# --- what a program means -------------------------------------------------------------------------


def evaluate(x: Any, inputs: Mapping[str, Any] | Sequence[Any]) -> list[np.ndarray]:
    """The outputs of a Relay program, computed by numpy: one array for each tensor of the result.

    ``x`` is a Relay function, an IRModule (its ``main``) or anything with a ``module``; ``inputs``
    are arrays, by parameter name or in the order of the parameters. All of Relay's core is
    evaluated (calls, tuples, ``let``, ``if``, references, local and global functions, fused ones
    among them), and the operators that :func:`operators` lists. Every value has the type that Relay
    gives it; rounding differs from TVM's kernels. Raises :class:`WorkbookError` for other operators
    (the message names them), ill-typed programs and missing inputs.
    """
    return _evaluate(modules.typed(x), inputs)


def operators() -> list[str]:
    """The names of the operators that :func:`evaluate` knows."""
    return sorted(_MEANING)


def _evaluate(typed: Any, inputs: Mapping[str, Any] | Sequence[Any]) -> list[np.ndarray]:
    main = typed["main"]
    names = [variable.name_hint for variable in main.params]
    if isinstance(inputs, Mapping):
        if missing := [name for name in names if name not in inputs]:
            raise WorkbookError(f"The program needs a value for its input {missing[0]}.")
        given = [inputs[name] for name in names]
    else:
        given = list(inputs)
    if len(given) != len(names):
        raise WorkbookError(f"The program has {len(names)} inputs, and {len(given)} are given.")
    arrays = []
    for variable, value in zip(main.params, given, strict=True):
        kind = variable.checked_type
        array = np.asarray(value, dtype=str(kind.dtype))
        if array.shape != _shape(kind):
            raise WorkbookError(
                f"The input {variable.name_hint} has shape {_shape(kind)}, not {array.shape}."
            )
        arrays.append(array)
    with np.errstate(all="ignore"):
        result = _Evaluation(typed).call(main, arrays, {})
    return _flat(result)


def _flat(value: Any) -> list[np.ndarray]:
    if isinstance(value, tuple):
        return [array for item in value for array in _flat(item)]
    return [np.asarray(value)]


def _shape(kind: Any) -> Shape:
    return tuple(int(size) for size in kind.shape)


@dataclass
class _Reference:
    value: Any


@dataclass(frozen=True)
class _Closure:
    """A local function; its variables are shared with the scope, so that it can call itself."""

    function: Any
    variables: dict[int, Any]


@dataclass
class _Scope:
    """What is known while one body is evaluated. Keys are addresses of nodes, which are alive."""

    variables: dict[int, Any]
    done: dict[int, Any] = field(default_factory=dict)


class _Evaluation:
    """Evaluates the functions of one typed module."""

    def __init__(self, module: Any) -> None:
        from tvm import relay
        from tvm.ir import GlobalVar, Op

        self._module = module
        self._op, self._global = Op, GlobalVar
        self._rules: dict[type, Callable[[Any, _Scope], Any]] = {
            relay.Call: self._call,
            relay.Let: self._let,
            relay.If: self._if,
            relay.Tuple: lambda node, scope: tuple([self.value(f, scope) for f in node.fields]),
            relay.TupleGetItem: lambda node, scope: self.value(node.tuple_value, scope)[node.index],
            relay.Constant: lambda node, scope: node.data.numpy(),
            relay.Function: lambda node, scope: _Closure(node, scope.variables),
            relay.RefCreate: lambda node, scope: _Reference(self.value(node.value, scope)),
            relay.RefRead: lambda node, scope: self.value(node.ref, scope).value,
            relay.RefWrite: self._write,
        }
        self._variable = relay.Var

    def call(self, function: Any, arguments: Sequence[Any], outer: dict[int, Any]) -> Any:
        own = {p.handle.value: a for p, a in zip(function.params, arguments, strict=True)}
        return self.value(function.body, _Scope({**outer, **own}))

    def value(self, node: Any, scope: _Scope) -> Any:
        key = node.handle.value
        if isinstance(node, self._variable):
            if key not in scope.variables:
                raise WorkbookError(f"The variable {node.name_hint} has no value where it is used.")
            return scope.variables[key]
        if key not in scope.done:
            rule = self._rules.get(type(node))
            if rule is None:
                raise WorkbookError(f"The evaluator does not know {type(node).__name__}.")
            scope.done[key] = rule(node, scope)
        return scope.done[key]

    def _call(self, node: Any, scope: _Scope) -> Any:
        callee = node.op
        if isinstance(callee, self._op):
            meaning = _MEANING.get(callee.name)
            if meaning is None:
                raise WorkbookError(f"The evaluator does not know the operator {callee.name}.")
            result = meaning([self.value(a, scope) for a in node.args], node)
            if getattr(result, "dtype", None) == np.float64:  # numpy widens scalars
                result = result.astype(str(_output(node).dtype))
            return result
        arguments = [self.value(a, scope) for a in node.args]
        if isinstance(callee, self._global):
            return self.call(self._module[callee], arguments, {})
        closure = self.value(callee, scope)
        return self.call(closure.function, arguments, closure.variables)

    def _let(self, node: Any, scope: _Scope) -> Any:
        while type(node).__name__ == "Let":
            scope.variables[node.var.handle.value] = self.value(node.value, scope)
            node = node.body
        return self.value(node, scope)

    def _if(self, node: Any, scope: _Scope) -> Any:
        chosen = node.true_branch if bool(self.value(node.cond, scope)) else node.false_branch
        return self.value(chosen, scope)

    def _write(self, node: Any, scope: _Scope) -> tuple[()]:
        reference = self.value(node.ref, scope)
        reference.value = self.value(node.value, scope)
        return ()


# --- the operators --------------------------------------------------------------------------------


def _output(node: Any) -> Any:
    """The type of a call's result: where a shape or type is written nowhere else."""
    return node.checked_type


def _axes(axis: Any, rank: int, exclude: bool = False) -> tuple[int, ...]:
    """The axes that a reduction works along, none of them negative."""
    if axis is None:
        chosen = set(range(rank))
    else:
        chosen = {int(a) % rank for a in (axis if hasattr(axis, "__len__") else [axis])}
    return tuple(k for k in range(rank) if (k in chosen) is not exclude)


def _reduce(function: Callable[..., Any]) -> Callable[[list[Any], Any], Any]:
    def meaning(arguments: list[Any], node: Any) -> Any:
        attrs, (array,) = node.attrs, arguments
        axes = _axes(attrs.axis, array.ndim, bool(attrs.exclude))
        return function(array, axis=axes, keepdims=bool(attrs.keepdims)) if array.ndim else array

    return meaning


def _ufunc(function: Callable[..., Any]) -> Callable[[list[Any], Any], Any]:
    return lambda arguments, node: function(*arguments)


def _shaped(arguments: list[Any], node: Any) -> Any:
    return arguments[0].reshape(_shape(_output(node)))


def _filled(value: float | None) -> Callable[[list[Any], Any], Any]:
    def meaning(arguments: list[Any], node: Any) -> Any:
        kind = _output(node)
        return np.full(_shape(kind), arguments[0] if value is None else value, str(kind.dtype))

    return meaning


def _transpose(arguments: list[Any], node: Any) -> Any:
    axes = node.attrs.axes
    return np.transpose(arguments[0], [int(a) for a in axes] if axes is not None else None)


def _split(arguments: list[Any], node: Any) -> Any:
    parts = node.attrs.indices_or_sections
    parts = [int(p) for p in parts] if hasattr(parts, "__len__") else int(parts)
    return tuple(np.split(arguments[0], parts, int(node.attrs.axis)))


def _strided_slice(arguments: list[Any], node: Any) -> Any:
    attrs, array = node.attrs, arguments[0]
    begin, end = [int(b) for b in attrs.begin], [int(e) for e in attrs.end]
    strides = [int(s) for s in attrs.strides] or [1]
    strides = strides * len(begin) if len(strides) == 1 else strides
    axes = list(range(len(begin))) if attrs.axes is None else [int(a) for a in attrs.axes]
    if str(attrs.slice_mode) == "size":
        sizes = [
            array.shape[a] - b if e < 0 else e for a, b, e in zip(axes, begin, end, strict=True)
        ]
        end, strides = [b + s for b, s in zip(begin, sizes, strict=True)], [1] * len(begin)
    index = [slice(None)] * array.ndim
    for axis, b, e, s in zip(axes, begin, end, strides, strict=True):
        if s < 0 and e < -array.shape[axis]:
            index[axis] = slice(b, None, s)
        else:
            index[axis] = slice(b, e, s)
    return array[tuple(index)]


def _cumulate(function: Callable[..., Any]) -> Callable[[list[Any], Any], Any]:
    def meaning(arguments: list[Any], node: Any) -> Any:
        attrs, (array,) = node.attrs, arguments
        axis = None if attrs.axis is None else int(attrs.axis)
        if axis is None:
            array, axis = array.reshape(-1), 0
        if attrs.exclusive is not None and int(attrs.exclusive):
            raise WorkbookError("The evaluator does not know exclusive cumsum and cumprod.")
        return function(array, axis=axis, dtype=str(_output(node).dtype))

    return meaning


def _softmax(arguments: list[Any], node: Any) -> Any:
    (array,), axis = arguments, int(node.attrs.axis)
    powers = np.exp(array - array.max(axis=axis, keepdims=True))
    return powers / powers.sum(axis=axis, keepdims=True)


def _dense(arguments: list[Any], node: Any) -> Any:
    return arguments[0] @ arguments[1].T


def _batch_matmul(arguments: list[Any], node: Any) -> Any:
    a, b = arguments
    a = a.swapaxes(-1, -2) if node.attrs.transpose_a else a
    return a @ (b.swapaxes(-1, -2) if node.attrs.transpose_b else b)


def _bias_add(arguments: list[Any], node: Any) -> Any:
    array, bias = arguments
    axis = int(node.attrs.axis) % array.ndim
    return array + bias.reshape([-1] + [1] * (array.ndim - axis - 1))


def _batch_norm(arguments: list[Any], node: Any) -> Any:
    array, *parameters = arguments
    attrs = node.attrs
    shape = [-1] + [1] * (array.ndim - int(attrs.axis) % array.ndim - 1)
    gamma, beta, mean, variance = (p.reshape(shape) for p in parameters)
    result = (array - mean) / np.sqrt(variance + array.dtype.type(attrs.epsilon))
    result = result * gamma if attrs.scale else result
    result = result + beta if attrs.center else result
    return result, arguments[3], arguments[4]


def relayout(array: np.ndarray, source: str, target: str) -> np.ndarray:
    """``array`` with its axes in another layout: ``relayout(x, "NCHW", "NCHW4c")``.

    A layout names each axis by a capital letter. A number with a small letter is a block of that
    size of the axis: element ``C`` of ``NCHW`` is element ``(C // 4, C % 4)`` of ``C`` and ``4c``.
    """
    inner, outer = _layout_axes(source), _layout_axes(target)
    names = [name for name, _ in inner]
    plain = [name for name in names if name.isupper()]
    order = [k for p in plain for k, name in enumerate(names) if name.upper() == p]
    whole = [math.prod(array.shape[k] for k in order if names[k].upper() == p) for p in plain]
    array = array.transpose(order).reshape(whole)
    sizes, split = dict(zip(plain, whole, strict=True)), []
    for p in plain:
        blocks = [(name, size) for name, size in outer if name.upper() == p and name != p]
        rest, left = divmod(sizes[p], math.prod(size for _, size in blocks))
        if left:
            raise WorkbookError(f"Axis {p} of {sizes[p]} does not divide into blocks of {target}.")
        split += [(p, rest), *blocks]
    array = array.reshape([size for _, size in split])
    found = [name for name, _ in split]
    return np.ascontiguousarray(array.transpose([found.index(name) for name, _ in outer]))


def _layout_axes(layout: str) -> list[tuple[str, int]]:
    return [(name, int(size or 0)) for size, name in re.findall(r"(\d*)([A-Za-z])", layout)]


def _layout_transform(arguments: list[Any], node: Any) -> Any:
    return relayout(arguments[0], str(node.attrs.src_layout), str(node.attrs.dst_layout))


def _padding(padding: Any) -> tuple[tuple[int, int], tuple[int, int]]:
    """``(top, bottom), (left, right)`` from the one, two or four numbers of an attribute."""
    numbers = [int(p) for p in padding]
    top, left, bottom, right = {1: numbers * 4, 2: numbers * 2, 4: numbers}[len(numbers)]
    return (top, bottom), (left, right)


def _windows(
    array: np.ndarray, size: Sequence[int], attrs: Any, fill: float, dilation: Sequence[int]
) -> np.ndarray:
    """All windows of an NCHW array: shape ``(N, C, rows, columns, *size)``."""
    strides = [int(s) for s in attrs.strides]
    array = np.pad(array, ((0, 0), (0, 0), *_padding(attrs.padding)), constant_values=fill)
    reach = [(k - 1) * d + 1 for k, d in zip(size, dilation, strict=True)]
    views: np.ndarray = sliding_window_view(array, tuple(reach), axis=(2, 3))  # type: ignore[call-overload]
    return views[:, :, :: strides[0], :: strides[1], :: dilation[0], :: dilation[1]]


def _conv2d(arguments: list[Any], node: Any) -> Any:
    attrs = node.attrs
    source = str(attrs.data_layout)
    data = relayout(arguments[0], source, "NCHW")
    kernel = relayout(arguments[1], str(attrs.kernel_layout), "OIHW")
    parts, dilation = int(attrs.groups), [int(d) for d in attrs.dilation]
    views = _windows(data, kernel.shape[2:], attrs, 0, dilation)
    n, channels, rows, columns = views.shape[:4]
    views = views.reshape(n, parts, channels // parts, *views.shape[2:])
    kernel = kernel.reshape(parts, kernel.shape[0] // parts, *kernel.shape[1:])
    result = np.einsum("ngcrshw,gochw->ngors", views, kernel).reshape(n, -1, rows, columns)
    target = str(attrs.out_layout) or source
    return relayout(result.astype(str(_output(node).dtype), copy=False), "NCHW", target)


def _pool2d(kind: str) -> Callable[[list[Any], Any], Any]:
    def meaning(arguments: list[Any], node: Any) -> Any:
        attrs = node.attrs
        layout = str(attrs.layout)
        if int(attrs.ceil_mode):
            raise WorkbookError("The evaluator does not know pooling with ceil_mode.")
        data = relayout(arguments[0], layout, "NCHW")
        size, dilation = [int(p) for p in attrs.pool_size], [int(d) for d in attrs.dilation]
        fill = -math.inf if kind == "max" else 0
        views = _windows(data, size, attrs, fill, dilation)
        if kind == "max":
            result = views.max(axis=(4, 5))
        else:
            ones = np.ones_like(data)
            one = 1 if int(attrs.count_include_pad) else 0
            counted = _windows(ones, size, attrs, one, dilation).sum(axis=(4, 5))
            result = views.sum(axis=(4, 5)) / counted
        return relayout(result, "NCHW", str(attrs.out_layout) or layout)

    return meaning


def _global_pool2d(function: Callable[..., Any]) -> Callable[[list[Any], Any], Any]:
    def meaning(arguments: list[Any], node: Any) -> Any:
        layout = str(node.attrs.layout)
        data = relayout(arguments[0], layout, "NCHW")
        result = function(data, axis=(2, 3), keepdims=True)
        return relayout(result, "NCHW", str(node.attrs.out_layout) or layout)

    return meaning


def _pad(arguments: list[Any], node: Any) -> Any:
    widths = [tuple(int(w) for w in pair) for pair in node.attrs.pad_width]
    return np.pad(arguments[0], widths, constant_values=arguments[1])


def _take(arguments: list[Any], node: Any) -> Any:
    (array, indices), axis = arguments, node.attrs.axis
    mode: Any = "wrap" if str(node.attrs.mode) == "wrap" else "clip"
    return np.take(array, indices, axis=None if axis is None else int(axis), mode=mode)


_SAME: dict[str, Callable[..., Any]] = {
    **{name: getattr(np, name) for name in ("negative", "exp", "log", "sqrt", "tanh", "abs")},
    **{name: getattr(np, name) for name in ("sin", "cos", "floor", "ceil", "sign")},
    **{name: getattr(np, name) for name in ("add", "subtract", "multiply", "divide", "power")},
    **{name: getattr(np, name) for name in ("maximum", "minimum", "equal", "not_equal")},
    **{name: getattr(np, name) for name in ("less", "less_equal", "greater", "greater_equal")},
    **{name: getattr(np, name) for name in ("logical_and", "logical_or", "logical_not", "where")},
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "fast_exp": np.exp,
    "fast_tanh": np.tanh,
    "nn.relu": lambda x: np.maximum(x, 0),
    "copy": lambda x: x,
    "annotation.stop_fusion": lambda x: x,
    "zeros_like": np.zeros_like,
    "ones_like": np.ones_like,
}

_MEANING: dict[str, Callable[[list[Any], Any], Any]] = {
    **{name: _ufunc(function) for name, function in _SAME.items()},
    **{name: _reduce(getattr(np, name)) for name in ("sum", "max", "min", "prod", "mean")},
    **dict.fromkeys(("reshape", "squeeze", "expand_dims", "nn.batch_flatten"), _shaped),
    "on_device": lambda arguments, node: arguments[0],
    "clip": lambda arguments, node: np.clip(
        arguments[0], *map(arguments[0].dtype.type, (node.attrs.a_min, node.attrs.a_max))
    ),
    "cast": lambda arguments, node: arguments[0].astype(str(_output(node).dtype)),
    "nn.leaky_relu": lambda arguments, node: np.where(
        arguments[0] > 0, arguments[0], arguments[0] * arguments[0].dtype.type(node.attrs.alpha)
    ),
    "zeros": _filled(0),
    "ones": _filled(1),
    "full": _filled(None),
    "full_like": lambda arguments, node: np.full_like(*arguments),
    "shape_of": lambda arguments, node: np.array(arguments[0].shape, str(_output(node).dtype)),
    "broadcast_to": lambda arguments, node: np.broadcast_to(arguments[0], _shape(_output(node))),
    "transpose": _transpose,
    "layout_transform": _layout_transform,
    "concatenate": lambda arguments, node: np.concatenate(arguments[0], int(node.attrs.axis)),
    "stack": lambda arguments, node: np.stack(arguments[0], int(node.attrs.axis)),
    "split": _split,
    "strided_slice": _strided_slice,
    "take": _take,
    "repeat": lambda arguments, node: np.repeat(
        arguments[0], int(node.attrs.repeats), int(node.attrs.axis)
    ),
    "cumsum": _cumulate(np.cumsum),
    "cumprod": _cumulate(np.cumprod),
    "nn.softmax": _softmax,
    "nn.fast_softmax": _softmax,
    "nn.log_softmax": lambda arguments, node: np.log(_softmax(arguments, node)),
    "nn.dense": _dense,
    "nn.batch_matmul": _batch_matmul,
    "nn.bias_add": _bias_add,
    "nn.batch_norm": _batch_norm,
    "nn.dropout": lambda arguments, node: (arguments[0], np.ones_like(arguments[0])),
    "nn.pad": _pad,
    "nn.conv2d": _conv2d,
    "nn.contrib_conv2d_NCHWc": _conv2d,
    "nn.contrib_depthwise_conv2d_NCHWc": _conv2d,
    "nn.max_pool2d": _pool2d("max"),
    "nn.avg_pool2d": _pool2d("avg"),
    "nn.global_avg_pool2d": _global_pool2d(np.mean),
    "nn.global_max_pool2d": _global_pool2d(np.max),
}


# --- drawing a program ----------------------------------------------------------------------------

# Values stay below this, so that no float32 overflows and rounding stays far below any real error.
_LARGEST = 1000.0
_ENTRIES = (1, -2, 3, -4, 2, -1, 4, -3)
_SCALARS = (2.0, 1.0, 0.0, 3.0, 0.5, -1.0)
SHAPES: tuple[Shape, ...] = ((2,), (), (1,), (3,), (2, 3), (1, 3), (1, 2, 2, 2), (1, 4, 3, 3))


def entries(shape: Shape, start: int = 0) -> np.ndarray:
    """Small whole numbers of both signs as a float32 array, the same at every call."""
    count = math.prod(shape)
    cycle = [_ENTRIES[(start + k) % len(_ENTRIES)] for k in range(count)]
    return np.array(cycle, "float32").reshape(shape)


@dataclass(frozen=True)
class Program:
    """A Relay function and a value for each of its inputs."""

    function: Any
    inputs: dict[str, np.ndarray]

    @property
    def module(self) -> Any:
        """A new, typed IRModule whose ``main`` is the function."""
        return modules.typed(self.function)

    def __str__(self) -> str:
        from helpers import ir

        values = [f"{name} = {_numbers(value)}" for name, value in self.inputs.items()]
        return "\n".join([ir.text(self.function), *values])


def _numbers(value: np.ndarray, most: int = 8) -> str:
    """The numbers of an array on one line, as a nested list; the first few of a large one."""
    value = np.asarray(value)
    if value.size > most:
        first = ", ".join(f"{v:.6g}" for v in value.ravel()[:most])
        return f"[{first}, ...] of shape {value.shape}"
    if value.ndim == 0:
        return f"{value[()]:.6g}" if value.dtype.kind == "f" else str(value[()])
    return f"[{', '.join(_numbers(part) for part in value)}]"


@dataclass(eq=False)
class _Value:
    """An expression, its shape, and the largest magnitude that its elements can have."""

    expr: Any
    shape: Shape
    bound: float
    used: bool = False


@dataclass
class _Place:
    """A reference: what is stored there has this shape, and at most this magnitude."""

    expr: Any
    shape: Shape
    bound: float


class _Maker:
    """Makes one program. ``pick(n)`` decides: a number below n, and 0 is the simplest choice."""

    def __init__(
        self,
        pick: Callable[[int], int],
        options: Options,
        position: Callable[[], int] = lambda: 0,
    ) -> None:
        from tvm import relay

        self.position = position  # how many choices have been made
        self.spans: list[tuple[int, int]] = []  # of the choices that made a step
        self.relay, self.pick, self.options = relay, pick, options
        self.parameters: list[Any] = []
        self.inputs: dict[str, np.ndarray] = {}
        self.pool: list[_Value] = []  # what an operand can be, the newest last
        self.places: list[_Place] = []
        self.done: list[tuple[str, _Value]] = []
        self.bindings: list[tuple[Any, Any]] = []
        self.left, self.named = options.most, 0

    def program(self) -> Program:
        self.pool.append(self.input(self.choose(self.options.shapes)))
        body, _ = self.block(outputs=3 if self.options.tuples else 1)
        return Program(self.relay.Function(self.parameters, body), self.inputs)

    def choose(self, choices: Sequence[Any]) -> Any:
        return choices[self.pick(len(choices))]

    # ---- scopes and steps

    def block(self, outputs: int = 1) -> tuple[Any, _Value]:
        """Some steps in a scope of their own: the expression, and its value when it is a tensor."""
        outer, self.bindings = self.bindings, []
        pool, places = len(self.pool), len(self.places)
        begin = self.position()
        while self.left and self.pick(16):
            self.left -= 1
            self.step()
            self.spans.append((begin, self.position()))
            begin = self.position()
        chosen = [self.use(self.newest())]
        while len(chosen) < outputs and self.pick(2):
            chosen.append(self.use(self.newest()))
        several = len(chosen) > 1
        body = self.relay.Tuple([v.expr for v in chosen]) if several else chosen[0].expr
        for variable, value in reversed(self.bindings):
            body = self.relay.Let(variable, value, body)
        self.bindings = outer
        del self.pool[pool:], self.places[places:]
        return body, chosen[0]

    def step(self) -> None:
        kind = self.pick(16)
        if kind in (8, 9):
            self.again()
        elif kind == 11 and self.options.tuples:
            self.tuple()
        elif kind == 12 and self.options.lets:
            body, value = self.block()
            self.keep(body, value.shape, value.bound, always=True)
        elif kind == 13 and self.options.branches:
            self.branch()
        elif self.options.references and kind in ((4, 5, 6, 7) if self.places else (10, 14, 15)):
            self.reference()
        else:
            self.operator()

    def bound(self, expr: Any, always: bool = False) -> Any:
        """``expr``, or a variable that a ``let`` binds to it.

        What may hold a ``let`` is ``always`` bound: used twice, it would bind its variable twice.
        """
        if not always and not (self.options.lets and self.pick(2)):
            return expr
        variable = self.relay.var(f"v{self.named}")
        self.named += 1
        self.bindings.append((variable, expr))
        return variable

    def keep(self, expr: Any, shape: Shape, bound: float, always: bool = False) -> None:
        self.pool.append(_Value(self.bound(expr, always), shape, bound))

    def fields(self, whole: Any, fields: Sequence[tuple[Shape, float]]) -> None:
        whole = self.bound(whole)
        for k, (shape, bound) in enumerate(fields):
            self.pool.append(_Value(self.relay.TupleGetItem(whole, k), shape, bound))

    def tuple(self) -> None:
        values = [self.operand(), self.operand()]
        whole = self.relay.Tuple([value.expr for value in values])
        self.fields(whole, [(value.shape, value.bound) for value in values])

    def branch(self) -> None:
        value = np.array(self.pick(2) == 0)
        condition = self.relay.const(value)
        if self.pick(2):
            condition = self.parameter(f"p{len(self.inputs)}", value)
        (yes, a), (no, b) = self.block(), self.block()
        if a.shape != b.shape:
            same = [value for value in self.pool[::-1] if value.shape == a.shape]
            if not same:
                return
            no, b = same[0].expr, same[0]
        whole = self.relay.If(condition, yes, no)
        self.keep(whole, a.shape, max(a.bound, b.bound), always=self.options.lets)

    def reference(self) -> None:
        """Create a reference, or read one, perhaps after a write to it.

        Each is bound, since their order matters.
        """
        if not self.places or not self.pick(5):
            value = self.operand()
            place = self.bound(self.relay.RefCreate(value.expr), always=True)
            self.places.append(_Place(place, value.shape, value.bound))
            return
        place = self.choose(self.places[::-1])
        values = [value for value in self.newest() if value.shape == place.shape]
        if values and self.pick(2):
            value = self.use(values)
            place.bound = max(place.bound, value.bound)
            self.bound(self.relay.RefWrite(place.expr, value.expr), always=True)
        read = self.bound(self.relay.RefRead(place.expr), always=True)
        self.pool.append(_Value(read, place.shape, place.bound))

    # ---- operands

    def newest(self) -> list[_Value]:
        """Values that nothing uses yet first, then the newest first."""
        newest = self.pool[::-1]
        return [v for v in newest if not v.used] + [v for v in newest if v.used]

    def use(self, values: Sequence[_Value], new: Sequence[Callable[[], _Value]] = ()) -> _Value:
        """One of ``values`` or a ``new`` one: mostly the first, so that most values are used."""
        count = len(values) + len(new)
        picked = self.pick(3 * count - 2)
        picked = picked if picked < count else 0
        value = values[picked] if picked < len(values) else new[picked - len(values)]()
        value.used = True
        return value

    def parameter(self, name: str, value: np.ndarray) -> Any:
        variable = self.relay.var(name, shape=value.shape, dtype=str(value.dtype))
        self.parameters.append(variable)
        self.inputs[name] = value
        return variable

    def input(self, shape: Shape) -> _Value:
        """A new input of the program."""
        count = len(self.inputs)
        value = entries(shape, 3 * count)
        name = "xyz"[count] if count < 3 else f"x{count}"
        return _Value(self.parameter(name, value), shape, _magnitude(value))

    def constant(self, shape: Shape, scale: float = 1.0) -> _Value:
        value = entries(shape, self.pick(len(_ENTRIES))) * np.float32(scale)
        return _Value(self.relay.const(value), shape, _magnitude(value))

    def scalar(self, choices: Sequence[float] = _SCALARS) -> _Value:
        value = self.choose(choices)
        return _Value(self.relay.const(value, "float32"), (), abs(value))

    def weight(self, shape: Shape, scale: float = 1.0) -> _Value:
        """A constant, or a new input: what a layer multiplies by."""
        if not self.options.constants or (self.may_take_input() and self.pick(4) == 3):
            return self.input(shape)
        return self.constant(shape, scale)

    def may_take_input(self) -> bool:
        return len(self.inputs) < 3

    def operand(self, like: Shape | None = None, same: bool = False) -> _Value:
        """A value that exists, a constant or a new input.

        ``like`` is the shape of the operand beside it: the new one broadcasts with it, or has the
        ``same`` shape.
        """
        shape = self.pool[0].shape if like is None else like
        values = [
            value
            for value in self.newest()
            if like in (None, value.shape) or (not same and _broadcast(value.shape, shape))
        ]
        new: list[Callable[[], _Value]] = []
        if self.options.constants:
            if not same:
                new.append(self.scalar)
            new.append(lambda: self.constant(shape))
            if like is not None and not same and len(shape) > 1:
                channel = tuple(size if k == 1 else 1 for k, size in enumerate(shape))
                new.append(lambda: self.constant(channel))
        if self.may_take_input():
            new.append(lambda: self.input(shape))
        return self.use(values, new)

    # ---- operators

    def operator(self) -> None:
        """One of the operators that the operand allows: the drawn one, or the next that does."""
        names = tuple(self.options.operators)
        first, value = self.pick(len(names)), self.operand()
        for k in range(len(names)):
            name = names[(first + k) % len(names)]
            if _FORMS[name](self, value):
                self.done.append((name, value))
                return

    def again(self) -> None:
        """An operator that was there before, on the same operand: equal, or nearly so."""
        done = [(name, value) for name, value in self.done if value in self.pool]
        if done:
            name, value = self.choose(done)
            _FORMS[name](self, value)


def _magnitude(value: np.ndarray) -> float:
    return float(np.abs(value).max(initial=0))


def _broadcast(a: Shape, b: Shape) -> bool:
    return all(m == n or 1 in (m, n) for m, n in zip(a[::-1], b[::-1], strict=False))


_Form = Callable[[_Maker, _Value], bool]


def _unary(name: str, bound: Callable[[float], float]) -> _Form:
    def form(maker: _Maker, x: _Value) -> bool:
        largest = bound(x.bound)
        if largest > _LARGEST:
            return False
        maker.keep(_relay_operator(name)(x.expr), x.shape, largest)
        return True

    return form


def _binary(name: str, bound: Callable[[float, float], float]) -> _Form:
    def form(maker: _Maker, x: _Value) -> bool:
        y = maker.operand(x.shape)
        largest = bound(x.bound, y.bound)
        if largest > _LARGEST:
            return False
        a, b = (y, x) if maker.pick(2) else (x, y)
        shape = np.broadcast_shapes(x.shape, y.shape)
        maker.keep(_relay_operator(name)(a.expr, b.expr), shape, largest)
        return True

    return form


def _relay_operator(name: str) -> Any:
    from tvm import relay

    place = relay
    for part in name.split("."):
        place = getattr(place, part)
    return place


def _reduction(name: str) -> _Form:
    def form(maker: _Maker, x: _Value) -> bool:
        if not x.shape:
            return False
        axis, keepdims = maker.pick(len(x.shape)), bool(maker.pick(2))
        largest = x.bound * (x.shape[axis] if name == "sum" else 1)
        if largest > _LARGEST:
            return False
        rest = [1] if keepdims else []
        shape = (*x.shape[:axis], *rest, *x.shape[axis + 1 :])
        maker.keep(_relay_operator(name)(x.expr, axis=axis, keepdims=keepdims), shape, largest)
        return True

    return form


def _form_divide(maker: _Maker, x: _Value) -> bool:
    if not maker.options.constants:
        return False
    y = maker.scalar((2.0, 4.0))
    maker.keep(maker.relay.divide(x.expr, y.expr), x.shape, x.bound)
    return True


def _form_transpose(maker: _Maker, x: _Value) -> bool:
    rank = len(x.shape)
    if rank < 2:
        return False
    turned = [(0, 2, 3, 1), (0, 3, 1, 2), (0, 1, 3, 2)] if rank == 4 else []
    axes = maker.choose([*turned, tuple(reversed(range(rank)))])
    shape = tuple(x.shape[a] for a in axes)
    maker.keep(maker.relay.transpose(x.expr, axes), shape, x.bound)
    return True


def _form_reshape(maker: _Maker, x: _Value) -> bool:
    count, choices = math.prod(x.shape), list(maker.options.shapes)
    choices = [(count,), (1, count), *(s for s in choices if math.prod(s) == count)]
    shape = maker.choose([shape for shape in choices if shape != x.shape])
    maker.keep(maker.relay.reshape(x.expr, shape), shape, x.bound)
    return True


def _form_concatenate(maker: _Maker, x: _Value) -> bool:
    if not x.shape:
        return False
    axis, y = maker.pick(len(x.shape)), maker.operand(x.shape, same=True)
    shape = tuple(size * 2 if k == axis else size for k, size in enumerate(x.shape))
    if math.prod(shape) > 200:
        return False
    expr = maker.relay.concatenate(maker.relay.Tuple([x.expr, y.expr]), axis)
    maker.keep(expr, shape, max(x.bound, y.bound))
    return True


def _form_strided_slice(maker: _Maker, x: _Value) -> bool:
    if not x.shape or x.shape[-1] < 2:
        return False
    begin, size = maker.pick(2), x.shape[-1] - 1
    axes = [len(x.shape) - 1]
    expr = maker.relay.strided_slice(x.expr, [begin], [begin + size], axes=axes)
    maker.keep(expr, (*x.shape[:-1], size), x.bound)
    return True


def _form_split(maker: _Maker, x: _Value) -> bool:
    wide = [k for k, size in enumerate(x.shape) if size > 1]
    if not wide:
        return False
    axis = maker.choose(wide)
    shapes = [(*x.shape[:axis], n, *x.shape[axis + 1 :]) for n in (1, x.shape[axis] - 1)]
    whole = maker.relay.split(x.expr, [1], axis).astuple()
    maker.fields(whole, [(shape, x.bound) for shape in shapes])
    return True


def _form_dense(maker: _Maker, x: _Value) -> bool:
    if len(x.shape) != 2:
        return False
    weight = maker.weight((maker.choose((2, 1, 3)), x.shape[1]), 0.5)
    largest = x.bound * weight.bound * x.shape[1]
    if largest > _LARGEST:
        return False
    expr = maker.relay.nn.dense(x.expr, weight.expr)
    maker.keep(expr, (x.shape[0], weight.shape[0]), largest)
    return True


def _form_conv2d(maker: _Maker, x: _Value) -> bool:
    if len(x.shape) != 4 or math.prod(x.shape[2:]) > 64:
        return False
    kind, channels = maker.pick(3), x.shape[1]
    size, groups = ((1, 1), (3, 1), (3, channels))[kind]
    out = channels if kind == 2 else maker.choose((channels, 1, 4, 2))
    weight = maker.weight((out, channels // groups, size, size), 0.25)
    largest = x.bound * weight.bound * math.prod(weight.shape[1:])
    if largest > _LARGEST:
        return False
    expr = maker.relay.nn.conv2d(
        x.expr,
        weight.expr,
        padding=(size // 2, size // 2),
        groups=groups,
        channels=out,
        kernel_size=(size, size),
    )
    maker.keep(expr, (x.shape[0], out, *x.shape[2:]), largest)
    return True


def _form_max_pool2d(maker: _Maker, x: _Value) -> bool:
    if len(x.shape) != 4 or min(x.shape[2:]) < 2:
        return False
    rows, columns = (size - 1 for size in x.shape[2:])
    expr = maker.relay.nn.max_pool2d(x.expr, (2, 2), (1, 1))
    maker.keep(expr, (*x.shape[:2], rows, columns), x.bound)
    return True


def _form_softmax(maker: _Maker, x: _Value) -> bool:
    if not x.shape:
        return False
    maker.keep(maker.relay.nn.softmax(x.expr), x.shape, 1.0)
    return True


def _form_cumsum(maker: _Maker, x: _Value) -> bool:
    if not x.shape:
        return False
    axis = maker.pick(len(x.shape))
    largest = x.bound * x.shape[axis]
    if largest > _LARGEST:
        return False
    maker.keep(maker.relay.cumsum(x.expr, axis), x.shape, largest)
    return True


def _form_bias_add(maker: _Maker, x: _Value) -> bool:
    if len(x.shape) < 2:
        return False
    bias = maker.weight((x.shape[1],))
    largest = x.bound + bias.bound
    if largest > _LARGEST:
        return False
    maker.keep(maker.relay.nn.bias_add(x.expr, bias.expr), x.shape, largest)
    return True


def _form_batch_norm(maker: _Maker, x: _Value) -> bool:
    largest = (x.bound + 4) * 8 + 4
    if not maker.options.constants or len(x.shape) < 2 or largest > _LARGEST:
        return False
    gamma, beta, mean = (maker.constant((x.shape[1],)) for _ in range(3))
    variance = maker.relay.const(np.abs(entries((x.shape[1],))))
    parameters = gamma.expr, beta.expr, mean.expr, variance
    maker.keep(maker.relay.nn.batch_norm(x.expr, *parameters)[0], x.shape, largest)
    return True


def _form_dropout(maker: _Maker, x: _Value) -> bool:
    maker.keep(maker.relay.nn.dropout(x.expr, 0.5), x.shape, x.bound)
    return True


def _form_layout_transform(maker: _Maker, x: _Value) -> bool:
    if len(x.shape) not in (4, 5):
        return False
    layouts = [("NCHW", "NHWC"), ("NHWC", "NCHW")]
    if len(x.shape) == 5:
        blocked = f"NCHW{x.shape[4]}c"
        layouts = [(blocked, "NCHW"), (blocked, "NHWC")]
    else:
        channels = {"NCHW": x.shape[1], "NHWC": x.shape[3]}
        layouts += [(plain, "NCHW4c") for plain, count in channels.items() if count % 4 == 0]
    source, target = maker.choose(layouts)
    shape = relayout(np.empty(x.shape, "int8"), source, target).shape
    maker.keep(maker.relay.layout_transform(x.expr, source, target), shape, x.bound)
    return True


def _creation(name: str, value: float) -> _Form:
    def form(maker: _Maker, x: _Value) -> bool:
        maker.keep(_relay_operator(name)(x.shape, "float32"), x.shape, value)
        return True

    return form


def _form_shape_of(maker: _Maker, x: _Value) -> bool:
    if not x.shape:
        return False
    expr = maker.relay.cast(maker.relay.shape_of(x.expr), "float32")
    maker.keep(expr, (len(x.shape),), float(max(x.shape)))
    return True


# How a program gets an operator: whether the operand allows it, and what comes out.
_FORMS: dict[str, _Form] = {
    "negative": _unary("negative", lambda b: b),
    "tanh": _unary("tanh", lambda b: 1.0),
    "exp": _unary("exp", lambda b: math.exp(min(b, 100))),
    "nn.relu": _unary("nn.relu", lambda b: b),
    "abs": _unary("abs", lambda b: b),
    "sigmoid": _unary("sigmoid", lambda b: 1.0),
    "copy": _unary("copy", lambda b: b),
    "add": _binary("add", lambda a, b: a + b),
    "multiply": _binary("multiply", lambda a, b: a * b),
    "subtract": _binary("subtract", lambda a, b: a + b),
    "maximum": _binary("maximum", max),
    "divide": _form_divide,
    "transpose": _form_transpose,
    "reshape": _form_reshape,
    "concatenate": _form_concatenate,
    "strided_slice": _form_strided_slice,
    "split": _form_split,
    "layout_transform": _form_layout_transform,
    "sum": _reduction("sum"),
    "max": _reduction("max"),
    "mean": _reduction("mean"),
    "nn.dense": _form_dense,
    "nn.conv2d": _form_conv2d,
    "nn.bias_add": _form_bias_add,
    "nn.batch_norm": _form_batch_norm,
    "nn.softmax": _form_softmax,
    "nn.max_pool2d": _form_max_pool2d,
    "cumsum": _form_cumsum,
    "nn.dropout": _form_dropout,
    "zeros": _creation("zeros", 0.0),
    "ones": _creation("ones", 1.0),
    "shape_of": _form_shape_of,
}

OPERATORS: tuple[str, ...] = (
    *("negative", "tanh", "exp", "nn.relu", "abs", "add", "multiply", "subtract", "maximum"),
    *("transpose", "reshape", "concatenate", "strided_slice", "split", "sum", "max", "mean"),
    *("nn.dense", "nn.conv2d", "nn.softmax", "nn.max_pool2d", "cumsum"),
)
MORE_OPERATORS: tuple[str, ...] = tuple(name for name in _FORMS if name not in OPERATORS)


@dataclass(frozen=True)
class Options:
    """Which programs are drawn; the keywords of :func:`programs` and :func:`counterexample`.

    - ``lets``: some values are bound by ``let``, in nested scopes, too; some are never used.
    - ``tuples``: tuples occur inside a program and as its result.
    - ``constants``: operands may be constants; without them there are more inputs instead.
    - ``branches``: ``if`` occurs, on a constant or on an input.
    - ``references``: references are created, written and read, in an order that ``let`` fixes.
    - ``operators``: names from ``OPERATORS`` (the default, some of each fusion pattern) and
      ``MORE_OPERATORS``.
    - ``shapes``: what the shape of the first input is chosen from, the simplest first.
    - ``most``: the largest number of steps; a step is an operator, a tuple, a scope, ...
    """

    lets: bool = False
    tuples: bool = True
    constants: bool = True
    branches: bool = False
    references: bool = False
    operators: Collection[str] = OPERATORS
    shapes: Sequence[Shape] = SHAPES
    most: int = 8

    def __post_init__(self) -> None:
        if unknown := [name for name in self.operators if name not in _FORMS]:
            raise WorkbookError(
                f"Programs cannot be made of {unknown[0]!r}: choose from {', '.join(_FORMS)}."
            )
        if not self.operators or not self.shapes:
            raise WorkbookError("Give at least one operator and one shape to make programs of.")
        if self.references and not self.lets:
            raise WorkbookError("References are used in an order: set lets=True, too.")
        whole_number(self.most, "most, the number of steps,", 0)


def programs(**options: Any) -> SearchStrategy[Program]:
    """A hypothesis strategy of well-typed float32 programs with inputs, which shrink well.

    The keywords are those of :class:`Options`. A value may be used many times, or never. No value
    exceeds 1000, and no operator jumps: a change in rounding stays small.
    """
    from hypothesis import strategies

    chosen = Options(**options)

    @strategies.composite
    def program(draw: Callable[..., int]) -> Program:
        need_relay()
        return _Maker(lambda n: draw(strategies.integers(0, n - 1)), chosen).program()

    return program()


# --- the smallest program that a pass breaks ------------------------------------------------------

_MOST_TRIES = 600  # programs tried while a found one is made smaller
_TOLERANCE = 1e-3  # of the largest element: a pass may round otherwise


@dataclass(frozen=True)
class Counterexample:
    """A program that a pass breaks.

    ``problem`` says what is wrong, in a sentence or a few lines. ``after`` is the module that the
    pass returned, ``None`` when it returned none.
    """

    program: Program
    problem: str
    after: Any = None

    def __str__(self) -> str:
        from tvm import TVMError, relay

        from helpers import ir

        parts = ["It breaks this program:", _indented(str(self.program), 13)]
        if self.after is not None:
            whole = isinstance(self.after, relay.Expr) or len(self.after.functions) > 1
            shown = self.after if whole else self.after["main"]
            try:
                text = ir.text(shown)
            except (WorkbookError, TVMError):  # an ill-formed program can be read, too
                text = re.sub(r" ?/\* .*? \*/", "", str(shown))
            parts += ["and makes this of it:", _indented(text, 10)]
        return "\n".join([*parts, self.problem])


def _indented(text: str, most: int) -> str:
    lines = text.splitlines()
    if len(lines) > most:
        half = (most - 1) // 2
        lines = [*lines[:half], "...", *lines[len(lines) - (most - 1 - half) :]]
    return textwrap.indent("\n".join(lines), "  ")


def counterexample(
    transform: Callable[[Any], Any],
    *,
    wanted: Callable[[Any, Any], str] | None = None,
    examples: int = 200,
    **options: Any,
) -> Counterexample | None:
    """The smallest random program that ``transform`` breaks; ``None`` when ``examples`` pass.

    ``transform`` takes a typed IRModule of its own and returns an IRModule or a function: a Relay
    pass, for example. It breaks a program when it raises, when what it returns is no well-formed
    and well-typed module with the same inputs and outputs, or when the outputs differ. ``wanted``
    is asked last: ``wanted(before, after)`` gets both typed modules and returns ``""``, or a
    sentence that says what is wrong with ``after``.

    The other keywords are those of :class:`Options`. The same call gives the same answer on every
    machine: the programs come from a fixed seed, and what is found is made smaller by the same
    steps. (Hypothesis promises that for one version of itself only, and each Python has its own.)
    A ``NotImplementedError`` on the simplest program is passed on: nothing has been written yet.
    """
    need_relay()
    chosen = Options(**options)

    def broken(choices: _Choices) -> Counterexample | None:
        maker = _Maker(choices, chosen, lambda: len(choices.made))
        program = maker.program()
        choices.spans = maker.spans
        return _verdict(program, transform, wanted)

    random = Random(0)
    with native_log_quiet():  # once, not at every pass: that takes longer than the pass
        for number in range(examples):
            choices = _Choices((), random if number else None)
            if found := broken(choices):
                return _smaller(choices, found, broken)
    return None


class _Choices:
    """Picks what it is given, then at random or 0, and keeps what was picked."""

    def __init__(self, given: Sequence[int], random: Random | None = None) -> None:
        self._given, self._random = given, random
        self.made: list[int] = []
        self.spans: list[tuple[int, int]] = []

    def __call__(self, n: int) -> int:
        if n == 1:
            return 0
        place = len(self.made)
        if place < len(self._given):
            value = min(self._given[place], n - 1)
        else:
            value = int(self._random.random() * n) if self._random else 0
        self.made.append(value)
        return value


def _smaller(
    choices: _Choices, found: Counterexample, broken: Callable[[_Choices], Counterexample | None]
) -> Counterexample:
    """The smallest broken program that removing, lowering and exchanging choices leads to.

    Fewer choices are smaller, then lower ones. Each choice has 0 as its simplest outcome, so what
    is left out at the end becomes simple.
    """
    tried: set[tuple[int, ...]] = set()

    def attempt(candidate: list[int]) -> bool:
        nonlocal choices, found
        if tuple(candidate) in tried or len(tried) >= _MOST_TRIES:
            return False
        tried.add(tuple(candidate))
        other = _Choices(candidate)
        result, made = broken(other), choices.made
        if result is None or (len(other.made), other.made) >= (len(made), made):
            return False
        choices, found = other, result
        return True

    def first(candidates: Callable[[list[int]], Iterator[list[int]]]) -> bool:
        """Whether one of the candidates was broken, too, and is now what has been found."""
        return any(attempt(candidate) for candidate in candidates(choices.made))

    def without_a_step(made: list[int]) -> Iterator[list[int]]:
        for begin, end in reversed(choices.spans):
            yield made[:begin] + made[end:]

    def without_a_part(made: list[int]) -> Iterator[list[int]]:
        for size in (4, 2, 1):
            for place in range(len(made) - size, -1, -1):
                yield made[:place] + made[place + size :]

    def lowered(made: list[int]) -> Iterator[list[int]]:
        for place, value in enumerate(made):
            for lower in range(value):
                yield [*made[:place], lower, *made[place + 1 :]]

    def exchanged(made: list[int]) -> Iterator[list[int]]:
        for place in range(len(made) - 1):
            if made[place] > made[place + 1]:
                yield [*made[:place], made[place + 1], made[place], *made[place + 2 :]]

    def without_a_step_and_with_another_choice(made: list[int]) -> Iterator[list[int]]:
        for begin, end in reversed(choices.spans):
            shorter = made[:begin] + made[end:]
            for place in range(begin, min(begin + 8, len(shorter))):  # in the step behind it
                for value in range(4):
                    yield [*shorter[:place], value, *shorter[place + 1 :]]

    while any(
        first(candidates)
        for candidates in (
            without_a_step,
            without_a_part,
            lowered,
            exchanged,
            without_a_step_and_with_another_choice,
        )
    ):
        pass
    return found


def _verdict(
    program: Program, transform: Callable[[Any], Any], wanted: Callable[[Any, Any], str] | None
) -> Counterexample | None:
    from tvm import relay

    before = program.module
    with diagnostics_kept() as notes:
        try:
            returned = transform(modules.copy(before))
        except (Exception, SystemExit) as error:
            if type(error) is NotImplementedError and isinstance(program.function.body, relay.Var):
                raise
            return Counterexample(program, f"It raised {told(error, notes=notes)}")
    try:
        after = _checked(returned, before)
        problem = _difference(program, before, after)
    except WorkbookError as error:
        shown = returned if isinstance(returned, relay.Expr) or _has_main(returned) else None
        return Counterexample(program, str(error), shown)
    if not problem and wanted is not None:
        problem = wanted(before, after)
    return Counterexample(program, problem, after) if problem else None


def _has_main(x: Any) -> bool:
    import tvm
    from tvm import relay

    return (
        isinstance(x, tvm.IRModule)
        and any(variable.name_hint == "main" for variable in x.get_global_vars())
        and isinstance(x["main"], relay.Function)
    )


def _checked(returned: Any, before: Any) -> Any:
    """What a pass returned as a typed module; :class:`WorkbookError` when it is not one."""
    import tvm
    from tvm import relay
    from tvm.ir import structural_equal

    if not isinstance(returned, (tvm.IRModule, relay.Function)):
        hint = " (is a `return` missing?)" if returned is None else ""
        raise WorkbookError(f"It returned {type(returned).__name__}, not a module{hint}.")
    if isinstance(returned, tvm.IRModule) and not _has_main(returned):
        raise WorkbookError("The module that it returned has no function main.")
    main = returned if isinstance(returned, relay.Function) else returned["main"]
    if free := [variable.name_hint for variable in relay.analysis.free_vars(main)]:
        raise WorkbookError(f"It uses {free[0]} where nothing gives {free[0]} a value.")
    if not relay.analysis.well_formed(main):
        raise WorkbookError("It binds the same variable twice.")
    after = modules.typed(returned)
    kinds = [module["main"].checked_type for module in (before, after)]
    if not structural_equal(kinds[0].arg_types, kinds[1].arg_types):
        raise WorkbookError(
            f"Its inputs are {_types(kinds[1].arg_types)}, and they were "
            f"{_types(kinds[0].arg_types)}."
        )
    if not structural_equal(kinds[0].ret_type, kinds[1].ret_type):
        was, is_now = (_types([kind.ret_type]) for kind in kinds)
        raise WorkbookError(f"Its result is {is_now}, and it was {was}.")
    return after


def _types(kinds: Sequence[Any]) -> str:
    """Types as Relay writes them."""
    from tvm import relay

    def text(kind: Any) -> str:
        if isinstance(kind, relay.TupleType):
            fields = [text(field) for field in kind.fields]
            return f"({', '.join(fields)}{',' if len(fields) == 1 else ''})"
        return str(kind)

    return ", ".join(map(text, kinds)) or "none"


def _difference(program: Program, before: Any, after: Any) -> str:
    """The first output that differs, ``""`` when all agree."""
    values = list(program.inputs.values())
    expected = _evaluate(before, values)
    try:
        found = _evaluate(after, values)
    except WorkbookError:
        raise
    except Exception as error:
        raise WorkbookError(f"It cannot be evaluated: {reason(error)}.") from error
    for number, (right, got) in enumerate(zip(expected, found, strict=True)):
        scale = max(1.0, _magnitude(right)) if right.dtype.kind == "f" else 0.0
        if not np.allclose(got, right, rtol=0, atol=_TOLERANCE * scale, equal_nan=True):
            which = f"output {number} of {len(expected)}" if len(expected) > 1 else "the output"
            return f"The values differ: {which} is\n  {_numbers(got)}\nand was\n  {_numbers(right)}"
    return ""
