"""A VM executable as a program that can be read, and stepped through.

    program = bytecode.decode(compiled)     # of build.compile(model, executor="vm")
    print(program)
    run = program.start(**inputs)           # see helpers.stepper
    for event in run:
        print(event)

What changes from one compilation to the next is left out: addresses are not shown, and functions,
constants and kernels are numbered in the order in which the program names them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from helpers.compiled import Compiled, TensorType
from helpers.errors import WorkbookError
from helpers.instructions import (
    AllocClosure,
    AllocData,
    AllocStorage,
    AllocTensor,
    AllocTensorReg,
    DeviceCopy,
    Fatal,
    GetField,
    GetTag,
    Goto,
    If,
    Instruction,
    Invoke,
    InvokeClosure,
    InvokePacked,
    KillRegister,
    LoadConst,
    LoadConsti,
    Move,
    ReshapeTensor,
    Ret,
    ShapeOf,
)

if TYPE_CHECKING:
    from helpers.stepper import Run


@dataclass(frozen=True)
class Function:
    """One function. Its parameters are in its first registers when it starts.

    A function inside a function becomes one of its own, which takes what it captures before its
    parameters. TVM calls it ``lifted_name`` and a captured value without a name ``x_``, and a
    number that changes from one compilation to the next; here they are counted from 1.
    """

    name: str
    params: tuple[str, ...]
    registers: int
    instructions: tuple[Instruction, ...]


@dataclass(frozen=True)
class Kernel:
    """A compiled function. ``symbol`` is its name in the library.

    Where several kernels have one name TVM numbers them in an order of its own; ``name`` numbers
    them as the program calls them.
    """

    name: str
    symbol: str


@dataclass(frozen=True)
class Constant:
    """A constant of the program: a weight, a size, a shape."""

    index: int
    shape: tuple[int, ...]
    dtype: str
    data: Any = field(repr=False, compare=False)

    @property
    def bytes(self) -> int:
        """Its size in memory."""
        return prod(self.shape) * item_bytes(self.dtype)

    @property
    def value(self) -> np.ndarray:
        """A copy of its numbers."""
        return self.data.numpy()

    def __str__(self) -> str:
        return shown(self.data)


@dataclass(frozen=True, eq=False)
class Program:
    """What :func:`decode` makes of a compiled model; ``main`` is its first function."""

    functions: tuple[Function, ...]
    kernels: tuple[Kernel, ...]
    constants: tuple[Constant, ...]
    compiled: Compiled = field(repr=False)

    @cached_property
    def by_name(self) -> dict[str, Function]:
        """The functions by their names."""
        return {function.name: function for function in self.functions}

    @property
    def opcodes(self) -> Counter[str]:
        """How often each instruction stands in the program (not: how often it runs)."""
        return Counter(i.op for function in self.functions for i in function.instructions)

    def text(self, function: str | None = None, mark: int | None = None) -> str:
        """The listing, of one ``function`` or of all; an arrow stands before line ``mark``."""
        if function is not None and function not in self.by_name:
            names = ", ".join(self.by_name)
            raise WorkbookError(f"The program has no function {function!r}; it has {names}.")
        chosen = self.functions if function is None else [self.by_name[function]]
        return "\n\n".join(self._listing(item, mark) for item in chosen)

    def _listing(self, function: Function, mark: int | None) -> str:
        count = len(function.instructions)
        lines = [str(instruction) for instruction in function.instructions]
        width = min(60, max(map(len, lines)))
        rows = [
            f"{function.name}({', '.join(function.params)}): "
            f"{function.registers} registers, {count} instructions"
        ]
        for pc, (line, instruction) in enumerate(zip(lines, function.instructions, strict=True)):
            arrow = ">" if pc == mark else " "
            note = self._note(instruction)
            rows.append(
                f"{arrow}{pc:>{len(str(count - 1))}}  " + f"{line:{width}}  {note}".rstrip()
            )
        return "\n".join(rows)

    def _note(self, instruction: Instruction) -> str:
        if isinstance(instruction, LoadConst):
            return f"# {self.constants[instruction.index]}"
        if isinstance(instruction, InvokePacked) and instruction.purpose != "operator":
            return f"# {instruction.purpose}"
        return ""

    def __str__(self) -> str:
        return self.text()

    def start(self, /, **inputs: Any) -> Run:
        """A run that stands before the first instruction of ``main``.

        Inputs as for ``Compiled.run``; raises :class:`WorkbookError` like that, and for a program
        that is not for the CPU.
        """
        from helpers.stepper import Run

        return Run(self, inputs)

    @cached_property
    def kernel_functions(self) -> dict[str, Callable[..., Any]]:
        """The compiled functions themselves, by the kernels' names: ``f(*inputs, *outputs)``."""
        library = self.compiled.library.lib
        return {
            kernel.name: library.get_function(kernel.symbol, query_imports=True)
            for kernel in self.kernels
        }


def decode(compiled: Compiled) -> Program:
    """The program of a model compiled for the VM, whether compiled just now or loaded.

    Raises :class:`WorkbookError` for anything else.
    """
    if not isinstance(compiled, Compiled):
        raise WorkbookError(
            f"decode takes a compiled model, not {type(compiled).__name__}: "
            'build.compile(model, executor="vm") makes one.'
        )
    if compiled.executor != "vm":
        raise WorkbookError(
            f"Only the VM has bytecode, and this model was compiled for {compiled.executor!r}: "
            'compile it with executor="vm".'
        )
    executable = compiled.library
    functions = _raw_functions(executable)
    order = _order(functions)
    names = _function_names([functions[index].name for index in order])
    return _Decoder(
        {index: names[place] for place, index in enumerate(order)},
        [functions[index] for index in order],
        list(executable.primitive_ops),
        _constants_of(executable),
        compiled,
    ).program()


@dataclass
class _Raw:
    """A function as the executable lists it: opcode and fields of each instruction."""

    name: str
    params: tuple[str, ...]
    registers: int
    code: list[tuple[int, list[int]]]


_LINE = re.compile(r"\s*(\d+): (\d+)((?: -?\d+)*) +#")


def _raw_functions(executable: Any) -> list[_Raw]:
    """Read from the listing, whose lines begin with the serialised instruction."""
    found: list[_Raw] = []
    counts: list[int] = []
    names = list(executable.globals)
    for line in executable.bytecode.splitlines():
        if line.startswith("VM Function["):
            name = names[len(found)]
            params = list(executable.get_function_params(name))
            if name.startswith("lifted_name"):
                params = _renumbered(params, r"(x_)\d+")
            found.append(_Raw(name, tuple(params), 0, []))
        elif line.startswith("# reg file size = "):
            found[-1].registers = int(line.rpartition("=")[2])
        elif line.startswith("# instruction count = "):
            counts.append(int(line.rpartition("=")[2]))
        elif match := _LINE.match(line):
            found[-1].code.append((int(match[2]), [int(n) for n in match[3].split()]))
    if [len(raw.code) for raw in found] != counts or len(found) != len(names):
        raise RuntimeError("the VM's listing was not understood")
    return found


def _constants_of(executable: Any) -> list[Any]:
    """The constants as NDArrays, taken out of a copy: taking them leaves an executable without."""
    import tvm

    copy = tvm.runtime.vm.Executable.load_exec(*executable.save())
    found = dict(copy.get_late_bound_consts(0).items())
    return [found[f"const_{index}"] for index in range(len(found))]


# Opcodes as they are numbered in include/tvm/runtime/vm/bytecode.h.
_MOVE, _RET, _INVOKE, _INVOKE_CLOSURE, _INVOKE_PACKED = range(5)
_ALLOC_TENSOR, _ALLOC_TENSOR_REG, _ALLOC_DATA, _ALLOC_CLOSURE, _GET_FIELD = range(5, 10)
_IF, _LOAD_CONST, _GOTO, _GET_TAG, _LOAD_CONSTI, _FATAL = range(10, 16)
_ALLOC_STORAGE, _SHAPE_OF, _RESHAPE_TENSOR, _DEVICE_COPY, _KILL_REGISTER = range(16, 21)


def _order(functions: Sequence[_Raw]) -> list[int]:
    """``main``, then the functions in the order in which they are named, then any others."""
    order = [index for index, raw in enumerate(functions) if raw.name == "main"]
    for index in order:
        for opcode, fields in functions[index].code:
            if opcode in (_INVOKE, _ALLOC_CLOSURE) and fields[0] not in order:
                order.append(fields[0])
    rest = sorted(set(range(len(functions))) - set(order), key=lambda i: functions[i].name)
    return order + rest


def _function_names(names: Sequence[str]) -> list[str]:
    return _renumbered(names, r"(lifted_)name\d+")


def _renumbered(names: Sequence[str], numbered: str) -> list[str]:
    """``names`` with the numbers of those that match replaced by 1, 2, ... in this order."""
    count = 0
    result = []
    for name in names:
        if match := re.fullmatch(numbered, name):
            count += 1
            name = f"{match[1]}{count}"
        result.append(name)
    return result


def _dtype(code: int, bits: int, lanes: int) -> str:
    if (code, bits, lanes) == (1, 1, 1):
        return "bool"
    kind = {0: "int", 1: "uint", 2: "float", 3: "handle", 4: "bfloat"}[code]
    return f"{kind}{bits}" + (f"x{lanes}" if lanes > 1 else "")


@dataclass
class _Decoder:
    """Gives constants and kernels their numbers while it reads the functions in order."""

    function_names: dict[int, str]
    functions: list[_Raw]
    symbols: list[str]
    arrays: list[Any]
    compiled: Compiled
    constants: dict[int, int] = field(default_factory=dict)
    kernels: dict[int, Kernel] = field(default_factory=dict)

    def program(self) -> Program:
        functions = tuple(
            Function(
                self.function_names_in_order[place], raw.params, raw.registers, self.body(raw.code)
            )
            for place, raw in enumerate(self.functions)
        )
        for index in range(len(self.arrays)):
            self.constant(index)
        for index in sorted(range(len(self.symbols)), key=lambda i: self.symbols[i]):
            self.kernel(index)
        constants = tuple(
            Constant(place, tuple(map(int, array.shape)), str(array.dtype), array)
            for place, array in enumerate(self.arrays[index] for index in self.constants)
        )
        return Program(functions, tuple(self.kernels.values()), constants, self.compiled)

    @property
    def function_names_in_order(self) -> list[str]:
        return list(self.function_names.values())

    def constant(self, index: int) -> int:
        return self.constants.setdefault(index, len(self.constants))

    def kernel(self, index: int) -> str:
        if index not in self.kernels:
            bare = re.sub(r"_\d+$", "", self.symbols[index].removeprefix("vm_mod_"))
            taken = {kernel.name for kernel in self.kernels.values()}
            number = 0
            while (name := f"{bare}_{number}" if number else bare) in taken:
                number += 1
            self.kernels[index] = Kernel(name, self.symbols[index])
        return self.kernels[index].name

    def body(self, code: Sequence[tuple[int, list[int]]]) -> tuple[Instruction, ...]:
        decoded = [self.instruction(pc, *item) for pc, item in enumerate(code)]
        return tuple(_with_purposes(_with_kills_in_order(decoded)))

    def instruction(self, pc: int, opcode: int, f: list[int]) -> Instruction:
        """One instruction from its serialised fields, as ``SerializeInstruction`` writes them."""
        tail = tuple(f[3:])
        if opcode == _MOVE:
            return Move(dst=f[1], source=f[0])
        if opcode == _RET:
            return Ret(f[0])
        if opcode == _INVOKE:
            return Invoke(f[2], self.function_names[f[0]], tail)
        if opcode == _INVOKE_CLOSURE:
            return InvokeClosure(f[2], f[0], tail)
        if opcode == _INVOKE_PACKED:
            inputs = len(tail) - f[2]
            return InvokePacked(self.kernel(f[0]), tail[:inputs], tail[inputs:])
        if opcode == _ALLOC_TENSOR:
            return AllocTensor(f[6], f[0], f[1], tuple(f[7:]), _dtype(f[2], f[3], f[4]))
        if opcode == _ALLOC_TENSOR_REG:
            return AllocTensorReg(f[6], f[0], f[1], f[2], _dtype(f[3], f[4], f[5]))
        if opcode == _ALLOC_DATA:
            return AllocData(f[2], f[0], tail)
        if opcode == _ALLOC_CLOSURE:
            return AllocClosure(f[2], self.function_names[f[0]], tail)
        if opcode == _GET_FIELD:
            return GetField(f[2], f[0], f[1])
        if opcode == _IF:
            return If(f[0], f[1], pc + f[2], pc + f[3])
        if opcode == _LOAD_CONST:
            return LoadConst(f[2], self.constant(f[0]))
        if opcode == _GOTO:
            return Goto(pc + f[0])
        if opcode == _GET_TAG:
            return GetTag(f[1], f[0])
        if opcode == _LOAD_CONSTI:
            return LoadConsti(f[1], f[0])
        if opcode == _FATAL:
            return Fatal()
        if opcode == _ALLOC_STORAGE:
            # With a shape the register of the size is not set: that field is an address.
            size = None if f[6] else f[0]
            return AllocStorage(f[7], size, tuple(f[8:]), _dtype(f[2], f[3], f[4]), f[1])
        if opcode == _SHAPE_OF:
            return ShapeOf(f[1], f[0])
        if opcode == _RESHAPE_TENSOR:
            return ReshapeTensor(f[2], f[0], f[1])
        if opcode == _DEVICE_COPY:
            return DeviceCopy(f[3], f[0], f[1], f[2])
        if opcode == _KILL_REGISTER:
            return KillRegister(f[0])
        raise RuntimeError(f"the VM has no opcode {opcode}")


def _with_kills_in_order(code: Sequence[Instruction]) -> list[Instruction]:
    """Neighbouring kill_register instructions sorted: TVM writes them in the order of addresses."""
    targets = {pc for i in code for pc in _targets(i)}
    result = list(code)
    start = 0
    while start < len(result):
        end = start
        while (
            end < len(result)
            and isinstance(result[end], KillRegister)
            and (end == start or end not in targets)
        ):
            end += 1
        result[start:end] = sorted(result[start:end], key=lambda i: i.writes or 0)
        start = max(end, start + 1)
    return result


def _targets(instruction: Instruction) -> tuple[int, ...]:
    if isinstance(instruction, If):
        return instruction.then, instruction.otherwise
    return (instruction.pc,) if isinstance(instruction, Goto) else ()


def _with_purposes(code: Sequence[Instruction]) -> list[Instruction]:
    """Say of each kernel what it is for; a register is written by one alloc_tensor only."""
    readers: dict[int, list[Instruction]] = {}
    for instruction in code:
        for register in instruction.reads:
            readers.setdefault(register, []).append(instruction)

    sizes: set[int] = set()
    result = list(code)
    for place in reversed(range(len(code))):
        call = code[place]
        if not isinstance(call, InvokePacked):
            continue
        used = [r for output in call.outputs for r in readers[output] if r is not call]
        if call.kernel.startswith("shape_func_"):
            result[place] = replace(call, purpose="shape function")
        elif used and all(
            isinstance(r, AllocStorage) or (isinstance(r, InvokePacked) and id(r) in sizes)
            for r in used
        ):
            sizes.add(id(call))
            result[place] = replace(call, purpose="storage size")
    return result


@cache
def item_bytes(dtype: str) -> int:
    """Bytes of one number as TVM stores it."""
    from helpers import ir

    return ir.tensor_bytes((), dtype) or 0


def type_of(array: Any) -> TensorType:
    """Shape and dtype of an NDArray."""
    return TensorType(tuple(map(int, array.shape)), str(array.dtype))


def shown(array: Any) -> str:
    """Type of an array, and its numbers where they are few."""
    kind = type_of(array)
    if prod(array.shape) > _FEW:
        return str(kind)
    text = str(array.numpy().tolist())
    if "float" in kind.dtype:
        text = re.sub(r"\d[\d.]*(e[-+]\d+)?", lambda match: f"{float(match[0]):.4g}", text)
    return f"{kind} {text}" if kind.shape else f"{kind.dtype} {text}"


_FEW = 4
"""The values of tensors with at most so many numbers are shown."""
