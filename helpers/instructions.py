"""The instructions of the Relay VM (``include/tvm/runtime/vm/bytecode.h`` of TVM 0.16).

A register is an integer; what an instruction does to the registers is said in one line each. How a
program is made of them is in :mod:`helpers.bytecode`, what they do in :mod:`helpers.stepper`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from helpers.compiled import TensorType

Registers = tuple[int, ...]


def _listed(registers: Registers) -> str:
    return ", ".join(f"${register}" for register in registers)


@dataclass(frozen=True)
class Instruction:
    """One instruction. ``op`` is TVM's name of it; integers are numbers of registers, unless named
    otherwise. Jumps hold the place they go to, where TVM has the distance.
    """

    op: ClassVar[str] = ""
    sources: ClassVar[tuple[str, ...]] = ()
    """The fields that name registers which are read."""

    @property
    def reads(self) -> Registers:
        """The registers that are read, in the order of the fields."""
        found: list[int] = []
        for name in self.sources:
            value = getattr(self, name)
            found += value if isinstance(value, tuple) else () if value is None else (value,)
        return tuple(found)

    @property
    def writes(self) -> int | None:
        """The register that is given a new value; a call of a kernel only fills tensors."""
        return getattr(self, "dst", None)


@dataclass(frozen=True)
class Move(Instruction):
    """``dst`` becomes what ``source`` is."""

    dst: int
    source: int
    op = "move"
    sources = ("source",)

    def __str__(self) -> str:
        return f"${self.dst} = move ${self.source}"


@dataclass(frozen=True)
class Ret(Instruction):
    """Leave the function with ``result``."""

    result: int
    op = "ret"
    sources = ("result",)

    def __str__(self) -> str:
        return f"ret ${self.result}"


@dataclass(frozen=True)
class Fatal(Instruction):
    """End with an error: no clause of a match fits."""

    op = "fatal"

    def __str__(self) -> str:
        return "fatal"


@dataclass(frozen=True)
class Invoke(Instruction):
    """Call a function of the program by name."""

    dst: int
    function: str
    args: Registers
    op = "invoke"
    sources = ("args",)

    def __str__(self) -> str:
        return f"${self.dst} = invoke {self.function}({_listed(self.args)})"


@dataclass(frozen=True)
class InvokeClosure(Instruction):
    """Call the function that a closure holds: its captured values come before ``args``."""

    dst: int
    closure: int
    args: Registers
    op = "invoke_closure"
    sources = ("closure", "args")

    def __str__(self) -> str:
        return f"${self.dst} = invoke_closure ${self.closure}({_listed(self.args)})"


@dataclass(frozen=True)
class InvokePacked(Instruction):
    """Call a compiled kernel on ``inputs``; it fills the tensors in ``outputs``.

    ``purpose`` is ``"operator"``, ``"shape function"``, or ``"storage size"`` for a kernel whose
    results serve only to allocate storage.
    """

    kernel: str
    inputs: Registers
    outputs: Registers
    purpose: str = "operator"
    op = "invoke_packed"
    sources = ("inputs", "outputs")

    def __str__(self) -> str:
        return f"invoke_packed {self.kernel}({_listed(self.inputs)}) -> {_listed(self.outputs)}"


@dataclass(frozen=True)
class AllocTensor(Instruction):
    """A tensor of a known shape in a storage, at the offset that ``offset`` holds."""

    dst: int
    storage: int
    offset: int
    shape: tuple[int, ...]
    dtype: str
    op = "alloc_tensor"
    sources = ("storage", "offset")

    def __str__(self) -> str:
        kind = TensorType(self.shape, self.dtype)
        return f"${self.dst} = alloc_tensor ${self.storage} at ${self.offset}, {kind}"


@dataclass(frozen=True)
class AllocTensorReg(Instruction):
    """A tensor whose shape is in the register ``shape``."""

    dst: int
    storage: int
    offset: int
    shape: int
    dtype: str
    op = "alloc_tensor_reg"
    sources = ("storage", "offset", "shape")

    def __str__(self) -> str:
        where = f"${self.storage} at ${self.offset}"
        return f"${self.dst} = alloc_tensor_reg {where}, {self.dtype} of shape ${self.shape}"


@dataclass(frozen=True)
class AllocData(Instruction):
    """A tuple, or a value of an algebraic data type: its constructor's tag and its fields."""

    dst: int
    tag: int
    fields: Registers
    op = "alloc_data"
    sources = ("fields",)

    def __str__(self) -> str:
        return f"${self.dst} = alloc_data tag {self.tag} ({_listed(self.fields)})"


@dataclass(frozen=True)
class AllocClosure(Instruction):
    """A function of the program together with the values it captures."""

    dst: int
    function: str
    captured: Registers
    op = "alloc_closure"
    sources = ("captured",)

    def __str__(self) -> str:
        return f"${self.dst} = alloc_closure {self.function}({_listed(self.captured)})"


@dataclass(frozen=True)
class GetField(Instruction):
    """Field number ``index`` of a tuple or data value."""

    dst: int
    object: int
    index: int
    op = "get_field"
    sources = ("object",)

    def __str__(self) -> str:
        return f"${self.dst} = get_field ${self.object}[{self.index}]"


@dataclass(frozen=True)
class If(Instruction):
    """Go to ``then`` where the integers in ``test`` and ``target`` are equal, and else on."""

    test: int
    target: int
    then: int
    otherwise: int
    op = "if"
    sources = ("test", "target")

    def __str__(self) -> str:
        return f"if ${self.test} == ${self.target} goto {self.then} else {self.otherwise}"


@dataclass(frozen=True)
class LoadConst(Instruction):
    """Constant number ``index`` of the program."""

    dst: int
    index: int
    op = "load_const"

    def __str__(self) -> str:
        return f"${self.dst} = load_const const[{self.index}]"


@dataclass(frozen=True)
class Goto(Instruction):
    """Go to ``pc``."""

    pc: int
    op = "goto"

    def __str__(self) -> str:
        return f"goto {self.pc}"


@dataclass(frozen=True)
class GetTag(Instruction):
    """The tag of a data value's constructor."""

    dst: int
    object: int
    op = "get_tag"
    sources = ("object",)

    def __str__(self) -> str:
        return f"${self.dst} = get_tag ${self.object}"


@dataclass(frozen=True)
class LoadConsti(Instruction):
    """An integer that stands in the instruction itself."""

    dst: int
    value: int
    op = "load_consti"

    def __str__(self) -> str:
        return f"${self.dst} = load_consti {self.value}"


@dataclass(frozen=True)
class AllocStorage(Instruction):
    """Memory: for ``dtype`` numbers of a known ``shape``, or of as many bytes as ``size`` holds."""

    dst: int
    size: int | None
    shape: tuple[int, ...]
    dtype: str
    alignment: int
    op = "alloc_storage"
    sources = ("size",)

    def __str__(self) -> str:
        if self.size is None:
            return f"${self.dst} = alloc_storage for {TensorType(self.shape, self.dtype)}"
        return f"${self.dst} = alloc_storage of ${self.size} bytes, {self.dtype}"


@dataclass(frozen=True)
class ShapeOf(Instruction):
    """The shape of a tensor, as a tensor of int64."""

    dst: int
    tensor: int
    op = "shape_of"
    sources = ("tensor",)

    def __str__(self) -> str:
        return f"${self.dst} = shape_of ${self.tensor}"


@dataclass(frozen=True)
class ReshapeTensor(Instruction):
    """The same numbers under the shape that is in the register ``shape``; nothing is copied."""

    dst: int
    tensor: int
    shape: int
    op = "reshape_tensor"
    sources = ("tensor", "shape")

    def __str__(self) -> str:
        return f"${self.dst} = reshape_tensor ${self.tensor} to ${self.shape}"


@dataclass(frozen=True)
class DeviceCopy(Instruction):
    """A copy of a tensor on another device."""

    dst: int
    source: int
    source_device: int
    device: int
    op = "device_copy"
    sources = ("source",)

    def __str__(self) -> str:
        devices = f"from device {self.source_device} to {self.device}"
        return f"${self.dst} = device_copy ${self.source} {devices}"


@dataclass(frozen=True)
class KillRegister(Instruction):
    """``dst`` holds nothing any more, so that its memory may be used again."""

    dst: int
    op = "kill_register"

    def __str__(self) -> str:
        return f"kill_register ${self.dst}"
