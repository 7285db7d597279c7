"""A program counter for the VM: one instruction at a time, with the real kernels and constants.

    run = bytecode.decode(compiled).start(**inputs)
    run.step(), run.registers, run.to_end(), run.counters

The semantics are those of ``src/runtime/vm/vm.cc`` of TVM 0.16.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from helpers.bytecode import Function, Program, item_bytes, shown, type_of
from helpers.counters import Counters
from helpers.errors import WorkbookError, whole_number
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

# --- values --------------------------------------------------------------------------------------


class _Meter:
    """Counts the storages that are alive, and what TVM's pooled allocator takes for them.

    The allocator (``src/runtime/vm/pooled_allocator.h``) gives out whole pages, keeps what it gets
    back, and reuses a block only for a request of as many pages.
    """

    def __init__(self, counters: Counters) -> None:
        self.counters = counters
        self.live = 0
        self.free: dict[int, int] = {}

    def allocate(self, size: int) -> None:
        counted = self.counters
        self.live += size
        counted.allocations = (counted.allocations or 0) + 1
        counted.allocated_bytes = (counted.allocated_bytes or 0) + size
        counted.peak_bytes = max(counted.peak_bytes or 0, self.live)
        pages = -(-size // _PAGE)
        if self.free.get(pages, 0):
            self.free[pages] -= 1
        else:
            counted.pool_bytes = (counted.pool_bytes or 0) + pages * _PAGE

    def release(self, size: int) -> None:
        self.live -= size
        pages = -(-size // _PAGE)
        self.free[pages] = self.free.get(pages, 0) + 1


_PAGE = 4096


class _Storage:
    """Memory: alive as long as a register, a tuple or a closure leads to it, as in the VM."""

    __slots__ = ("bytes", "meter", "number")

    def __init__(self, size: int, meter: _Meter) -> None:
        self.bytes, self.meter = size, meter
        meter.allocate(size)
        self.number = meter.counters.allocations or 0

    def __del__(self) -> None:
        self.meter.release(self.bytes)

    def __str__(self) -> str:
        return f"storage of {self.bytes:,} {'byte' if self.bytes == 1 else 'bytes'}"


@dataclass
class _Tensor:
    array: Any
    storage: _Storage | None = None
    filled: bool = True

    def __str__(self) -> str:
        return shown(self.array) if self.filled else f"{type_of(self.array)}, not filled yet"


@dataclass(frozen=True)
class _Data:
    tag: int
    fields: tuple[Any, ...]

    def __str__(self) -> str:
        count = len(self.fields)
        return f"tag {self.tag} with {count} {'field' if count == 1 else 'fields'}"


@dataclass(frozen=True)
class _Closure:
    function: Function
    captured: tuple[Any, ...]

    def __str__(self) -> str:
        return f"closure of {self.function.name}, {len(self.captured)} captured"


# --- the program counter -------------------------------------------------------------------------


@dataclass(frozen=True)
class Block:
    """A storage that is alive: its number in the order of allocation, its bytes, what lies in it.

    Tensors are given as a register shows them. A storage without one is kept for a tensor to come.
    """

    number: int
    bytes: int
    tensors: tuple[str, ...]


@dataclass(frozen=True)
class Event:
    """One instruction that was carried out, the ``step``-th from 0.

    ``wrote`` gives the new value of each register that it changed, ``branch`` whether an ``if``
    found its integers equal, ``kernel`` the kernel that it called, ``allocated`` and ``freed`` the
    bytes of storages it began and ended, ``live_bytes`` what is alive after it. ``next`` is
    (function, pc) of the next instruction, ``None`` after the last.
    """

    step: int
    function: str
    pc: int
    depth: int
    instruction: Instruction
    wrote: dict[int, str]
    branch: bool | None
    kernel: str | None
    allocated: int
    freed: int
    live_bytes: int
    next: tuple[str, int] | None

    def __str__(self) -> str:
        place = f"{'  ' * self.depth}{self.function} {self.pc}: {self.instruction}"
        notes = [f"${register}: {text}" for register, text in self.wrote.items()]
        if self.branch is not None and self.next:
            notes.append(f"{'equal' if self.branch else 'not equal'}: goes to {self.next[1]}")
        return f"{place}    # {'; '.join(notes)}" if notes else place


class _Frame:
    __slots__ = ("dst", "function", "pc", "registers")

    def __init__(self, function: Function, args: Sequence[Any], dst: int) -> None:
        self.function, self.pc, self.dst = function, 0, dst
        self.registers: list[Any] = [*args, *[None] * (function.registers - len(args))]


class Run:
    """A program that is being run, one instruction at a time. Made by :meth:`Program.start`.

    ``counters`` counts what was carried out so far. Loops are recursion in the VM: the frames are a
    list here, so they may be as deep as memory allows.
    """

    def __init__(self, program: Program, inputs: dict[str, Any]) -> None:
        import tvm

        self.program = program
        self.counters = Counters("vm")
        self._meter = _Meter(self.counters)
        compiled = program.compiled
        self._device = compiled._device
        if self._device.device_type != tvm.cpu().device_type:
            raise WorkbookError("Only programs for the CPU can be stepped through.")
        self._empty = tvm.nd.empty
        self._array = tvm.nd.array
        arguments = [self._value(item) for item in compiled._checked(inputs)]
        self._kernels = program.kernel_functions
        self._frames = [_Frame(program.by_name["main"], arguments, 0)]
        self._returned: Any = None

    def _value(self, item: Any) -> Any:
        if isinstance(item, tuple):
            return _Data(0, tuple(map(self._value, item)))
        return _Tensor(self._array(item, self._device))

    # --- what stands where ---

    @property
    def finished(self) -> bool:
        """Whether ``main`` has returned."""
        return not self._frames

    @property
    def at(self) -> tuple[str, int] | None:
        """(function, pc) of the next instruction; ``None`` when finished."""
        if not self._frames:
            return None
        return self._frames[-1].function.name, self._frames[-1].pc

    @property
    def next_instruction(self) -> Instruction | None:
        """The instruction that :meth:`step` will carry out."""
        if not self._frames:
            return None
        frame = self._frames[-1]
        return frame.function.instructions[frame.pc]

    @property
    def depth(self) -> int:
        """How many functions are waiting for the one that runs to return."""
        return max(0, len(self._frames) - 1)

    @property
    def live_bytes(self) -> int:
        """Bytes of the storages that are alive."""
        return self._meter.live

    @property
    def heap(self) -> list[Block]:
        """The storages that are alive, oldest first: their bytes add up to ``live_bytes``."""
        storages: dict[int, _Storage] = {}
        tensors: dict[int, dict[int, _Tensor]] = {}
        waiting = [self._returned, *(v for frame in self._frames for v in frame.registers)]
        while waiting:
            value = waiting.pop()
            if isinstance(value, _Data):
                waiting.extend(value.fields)
            elif isinstance(value, _Closure):
                waiting.extend(value.captured)
            elif isinstance(value, _Storage):
                storages[value.number] = value
            elif isinstance(value, _Tensor) and value.storage is not None:
                storages[value.storage.number] = value.storage
                tensors.setdefault(value.storage.number, {})[id(value)] = value
        return [
            Block(number, storage.bytes, tuple(sorted(map(str, tensors.get(number, {}).values()))))
            for number, storage in sorted(storages.items())
        ]

    @property
    def registers(self) -> dict[int, str]:
        """What the registers of the function that runs hold, those that hold something."""
        if not self._frames:
            return {}
        values = enumerate(self._frames[-1].registers)
        return {register: str(value) for register, value in values if value is not None}

    @property
    def stack(self) -> list[tuple[str, int]]:
        """(function, pc) of every frame, ``main`` first: where it is, or where it will go on."""
        return [(frame.function.name, frame.pc) for frame in self._frames]

    def value(self, register: int) -> Any:
        """A copy of what a register of the running function holds: an array, or a tuple of them.

        Raises :class:`WorkbookError` where it holds nothing, a storage or a closure.
        """
        register = whole_number(register, "register", 0)
        held = self._frames[-1].registers if self._frames else []
        value = held[register] if register < len(held) else None
        if not isinstance(value, (_Tensor, _Data)):
            what = "nothing" if value is None else f"a {value}"
            raise WorkbookError(f"Register ${register} holds no tensor now, but {what}.")
        return _plain(value)

    @property
    def result(self) -> list[np.ndarray]:
        """The outputs as ``Compiled.run`` gives them; :class:`WorkbookError` before the end."""
        if self._frames:
            raise WorkbookError("There is no result yet: call to_end() first.")
        return list(_flat(self._returned))

    # --- going on ---

    def __iter__(self) -> Iterator[Event]:
        while self._frames:
            yield self.step()

    def step(self) -> Event:
        """Carry out one instruction. Raises :class:`WorkbookError` after the last one."""
        if not self._frames:
            raise WorkbookError("The program has returned: start() begins a new run.")
        frame, depth = self._frames[-1], self.depth
        pc, instruction = frame.pc, frame.function.instructions[frame.pc]
        step, live = self.counters.instructions, self._meter.live
        before = self.counters.allocated_bytes or 0
        calls = self.counters.dispatches
        self._advance()
        allocated = (self.counters.allocated_bytes or 0) - before
        branch = frame.pc == instruction.then if isinstance(instruction, If) else None
        called = isinstance(instruction, InvokePacked) and self.counters.dispatches > calls
        return Event(
            step=step,
            function=frame.function.name,
            pc=pc,
            depth=depth,
            instruction=instruction,
            wrote=self._written(frame, instruction),
            branch=branch,
            kernel=instruction.kernel if called and isinstance(instruction, InvokePacked) else None,
            allocated=allocated,
            freed=live + allocated - self._meter.live,
            live_bytes=self._meter.live,
            next=self.at,
        )

    def _written(self, frame: _Frame, instruction: Instruction) -> dict[int, str]:
        if isinstance(instruction, InvokePacked):
            return {register: str(frame.registers[register]) for register in instruction.outputs}
        if isinstance(instruction, Ret):
            if not self._frames:
                return {}
            return {frame.dst: str(self._frames[-1].registers[frame.dst])}
        if instruction.writes is None or isinstance(instruction, (Invoke, InvokeClosure)):
            return {}
        value = frame.registers[instruction.writes]
        return {instruction.writes: "nothing" if value is None else str(value)}

    def until(self, wanted: Callable[[Event], Any]) -> Event | None:
        """Go on to the first event for which ``wanted`` is true; ``None`` at the end."""
        return next((event for event in self if wanted(event)), None)

    def to_end(self, limit: int | None = None) -> list[np.ndarray]:
        """Run to the end, and give the result.

        Raises :class:`WorkbookError` when ``limit`` instructions have not been enough.
        """
        if limit is not None:
            limit = whole_number(limit, "limit", 1)
        done = 0
        while self._frames:
            if done == limit:
                raise WorkbookError(f"The program has not ended after {limit} instructions.")
            self._advance()
            done += 1
        return self.result

    def _advance(self) -> None:
        frame = self._frames[-1]
        instruction = frame.function.instructions[frame.pc]
        self.counters.instructions += 1
        frame.pc += 1
        _CARRY_OUT[type(instruction)](self, frame, instruction)

    # --- the instructions; each method has the frame's pc already at the following one ---

    def _move(self, frame: _Frame, i: Move) -> None:
        frame.registers[i.dst] = frame.registers[i.source]

    def _ret(self, frame: _Frame, i: Ret) -> None:
        value = frame.registers[i.result]
        self._frames.pop()
        if self._frames:
            self._frames[-1].registers[frame.dst] = value
        else:
            self._returned = value
        frame.registers = []

    def _fatal(self, frame: _Frame, i: Fatal) -> None:
        raise WorkbookError("The program has ended with an error: no clause of a match fits.")

    def _call(self, function: Function, args: Sequence[Any], dst: int) -> None:
        self._frames.append(_Frame(function, args, dst))

    def _invoke(self, frame: _Frame, i: Invoke) -> None:
        args = [frame.registers[register] for register in i.args]
        self._call(self.program.by_name[i.function], args, i.dst)

    def _invoke_closure(self, frame: _Frame, i: InvokeClosure) -> None:
        closure = frame.registers[i.closure]
        args = [frame.registers[register] for register in i.args]
        self._call(closure.function, [*closure.captured, *args], i.dst)

    def _invoke_packed(self, frame: _Frame, i: InvokePacked) -> None:
        tensors: list[_Tensor] = []
        for register in (*i.inputs, *i.outputs):
            value = frame.registers[register]
            tensors += value.fields if isinstance(value, _Data) else [value]
        for tensor in tensors[len(tensors) - len(i.outputs) :]:
            tensor.filled = True
        if len(i.outputs) == 1 and 0 in tensors[-1].array.shape:
            return  # as in the VM: there is nothing to compute
        self._kernels[i.kernel](*(tensor.array for tensor in tensors))
        counted = self.counters
        if i.purpose == "operator":
            counted.kernels += 1
        elif i.purpose == "shape function":
            counted.shape_functions += 1
        else:
            counted.size_kernels += 1
        distinct = {id(tensor): tensor.array for tensor in tensors}.values()
        moved = sum(prod(map(int, a.shape)) * item_bytes(str(a.dtype)) for a in distinct)
        counted.moved_bytes = (counted.moved_bytes or 0) + moved

    def _alloc_tensor(self, frame: _Frame, i: AllocTensor) -> None:
        self._new_tensor(frame, i.dst, i.storage, i.shape, i.dtype)

    def _alloc_tensor_reg(self, frame: _Frame, i: AllocTensorReg) -> None:
        shape = tuple(frame.registers[i.shape].array.numpy().tolist())
        self._new_tensor(frame, i.dst, i.storage, shape, i.dtype)

    def _new_tensor(
        self, frame: _Frame, dst: int, storage: int, shape: tuple[int, ...], dtype: str
    ) -> None:
        # The array has memory of its own: tensors of one storage do not share numbers.
        array = self._empty(shape, dtype, self._device)
        frame.registers[dst] = _Tensor(array, frame.registers[storage], filled=False)

    def _alloc_data(self, frame: _Frame, i: AllocData) -> None:
        frame.registers[i.dst] = _Data(i.tag, tuple(frame.registers[r] for r in i.fields))

    def _alloc_closure(self, frame: _Frame, i: AllocClosure) -> None:
        captured = tuple(frame.registers[register] for register in i.captured)
        frame.registers[i.dst] = _Closure(self.program.by_name[i.function], captured)

    def _get_field(self, frame: _Frame, i: GetField) -> None:
        frame.registers[i.dst] = frame.registers[i.object].fields[i.index]

    def _if(self, frame: _Frame, i: If) -> None:
        equal = self._integer(frame, i.test) == self._integer(frame, i.target)
        frame.pc = i.then if equal else i.otherwise

    def _load_const(self, frame: _Frame, i: LoadConst) -> None:
        frame.registers[i.dst] = self._constants[i.index]

    @cached_property
    def _constants(self) -> list[_Tensor]:
        return [_Tensor(constant.data) for constant in self.program.constants]

    def _goto(self, frame: _Frame, i: Goto) -> None:
        frame.pc = i.pc

    def _get_tag(self, frame: _Frame, i: GetTag) -> None:
        tag = frame.registers[i.object].tag
        frame.registers[i.dst] = _Tensor(self._array(np.array([tag], np.int32)))

    def _load_consti(self, frame: _Frame, i: LoadConsti) -> None:
        frame.registers[i.dst] = _Tensor(self._array(np.array([i.value], np.int64)))

    def _alloc_storage(self, frame: _Frame, i: AllocStorage) -> None:
        if i.size is None:
            size = prod(i.shape) * item_bytes(i.dtype)
        else:
            size = self._integer(frame, i.size)
        frame.registers[i.dst] = _Storage(size, self._meter)

    def _shape_of(self, frame: _Frame, i: ShapeOf) -> None:
        shape = np.array(frame.registers[i.tensor].array.shape, np.int64)
        frame.registers[i.dst] = _Tensor(self._array(shape))

    def _reshape_tensor(self, frame: _Frame, i: ReshapeTensor) -> None:
        tensor = frame.registers[i.tensor]
        shape = frame.registers[i.shape].array.numpy().tolist()
        frame.registers[i.dst] = _Tensor(tensor.array._create_view(shape), tensor.storage)

    def _device_copy(self, frame: _Frame, i: DeviceCopy) -> None:
        frame.registers[i.dst] = _Tensor(frame.registers[i.source].array.copyto(self._device))

    def _kill_register(self, frame: _Frame, i: KillRegister) -> None:
        frame.registers[i.dst] = None

    def _integer(self, frame: _Frame, register: int) -> int:
        return int(frame.registers[register].array.numpy().flat[0])


_CARRY_OUT: dict[type[Instruction], Callable[[Run, _Frame, Any], None]] = {
    Move: Run._move,
    Ret: Run._ret,
    Fatal: Run._fatal,
    Invoke: Run._invoke,
    InvokeClosure: Run._invoke_closure,
    InvokePacked: Run._invoke_packed,
    AllocTensor: Run._alloc_tensor,
    AllocTensorReg: Run._alloc_tensor_reg,
    AllocData: Run._alloc_data,
    AllocClosure: Run._alloc_closure,
    GetField: Run._get_field,
    If: Run._if,
    LoadConst: Run._load_const,
    Goto: Run._goto,
    GetTag: Run._get_tag,
    LoadConsti: Run._load_consti,
    AllocStorage: Run._alloc_storage,
    ShapeOf: Run._shape_of,
    ReshapeTensor: Run._reshape_tensor,
    DeviceCopy: Run._device_copy,
    KillRegister: Run._kill_register,
}


def _plain(value: Any) -> Any:
    if isinstance(value, _Data):
        return tuple(map(_plain, value.fields))
    if isinstance(value, _Tensor):
        return value.array.numpy()
    raise WorkbookError(f"This value is no tensor, but a {value}.")


def _flat(value: Any) -> Iterator[np.ndarray]:
    """The tensors inside, as ``Compiled.run`` flattens tuples; lists may be long."""
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, _Data):
            waiting.extend(reversed(item.fields))
        else:
            yield _plain(item)
