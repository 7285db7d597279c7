"""Lab 10: wrong answers that the checks must refuse, other right ones, and the hidden checks."""

from typing import Any

from numpy.random import Generator

from helpers.grading.hidden import Hidden, Inputs

# Question -> what is wrong with the answer -> which of its texts are replaced by what.
WRONG: dict[str, dict[str, dict[str, str]]] = {
    "q1": {
        "after the first block the second one runs, too": {
            "len(then) + 2": "len(then) + 1",
            '("goto", len(otherwise) + 1), ': "",
        },
        "the goto leads into the second block, and not behind it": {"len(otherwise) + 1": "1"},
        "the if leads to the goto between the blocks, and not behind it": {
            "len(then) + 2": "len(then) + 1"
        },
        "the goto is given a position, where jumps are distances": {
            "len(otherwise) + 1": "len(then) + len(otherwise) + 2"
        },
        "the first block runs when the test is false": {
            "*then, (": "*otherwise, (",
            "+ 1), *otherwise]": "+ 1), *then]",
            "len(then) + 2": "len(otherwise) + 2",
            "len(otherwise) + 1": "len(then) + 1",
        },
        "the second block is taken to have one line": {"len(otherwise) + 1": "2"},
        "the goto before an empty block stays where it is": {
            "len(otherwise) + 1": "len(otherwise) + bool(otherwise)"
        },
        "the register is tested again after the first block, which may have changed it": {
            "len(then) + 2": "len(then) + 1",
            '("goto", len(otherwise) + 1)': '("if", test, len(otherwise) + 1, 1)',
        },
    },
    "q2": {
        "move makes a copy, and not a second way to the same object": {
            "registers[i.dst] = registers[i.source]": (
                "registers[i.dst] = tensor(registers[i.source].array.numpy())"
            )
        },
        "move empties the register from which it reads": {
            "registers[i.dst] = registers[i.source]": (
                "registers[i.dst], registers[i.source] = registers[i.source], None"
            )
        },
        "move changes the register from which it should read": {
            "registers[i.dst] = registers[i.source]": "registers[i.source] = registers[i.dst]"
        },
        "load_const loads the number of the constant, and not the constant": {
            "machine.constants[i.index]": "tensor(i.index)"
        },
        "load_consti loads a constant of that number, and not the integer itself": {
            "tensor(i.value)": "machine.constants[i.value]"
        },
        "kill_register leaves the value where it is": {"registers[i.dst] = None": "pass"},
        "kill_register takes the register out of the frame, and all behind it move": {
            "registers[i.dst] = None": "del registers[i.dst]"
        },
        "the tuple holds numbers of registers, and not what is in them": {
            "tuple(registers[r] for r in i.fields)": "tuple(i.fields)",
        },
        "get_field gives the whole tuple": {"[i.object][i.index]": "[i.object]"},
        "goto takes its position for a distance": {"frame.pc = i.pc": "frame.pc += i.pc"},
        "if goes to the other branch": {
            "i.then if equal else i.otherwise": "i.otherwise if equal else i.then"
        },
        "if asks whether the test is true, and compares no numbers": {
            " == number(registers[i.target])": " != 0"
        },
        "if compares the objects, and not the numbers in them": {
            "number(registers[i.test]) == number(registers[i.target])": (
                "registers[i.test] is registers[i.target]"
            )
        },
        "if does not jump when the numbers differ": {" else i.otherwise": " else frame.pc"},
    },
    "q3": {
        "each number is taken for one of four bytes": {"bytecode.item_bytes(i.dtype)": "4"},
        "numbers are counted, not their bytes": {" * bytecode.item_bytes(i.dtype)": ""},
        "the number of the register is taken for the size in it": {
            "number(registers[i.size])": "i.size"
        },
        "the size in the register is not used": {
            "size if i.size is None else ": "size if True else "
        },
        "shape_of gives the rank, and not the shape": {
            "tensor(registers[i.tensor].array.shape, ": "tensor([registers[i.tensor].array.ndim], ",
        },
        "a shape is made of other integers than int64": {'"int64"': '"int32"'},
        "the number of the register is taken for the shape in it": {
            "registers[i.shape].array.numpy().tolist()": "(i.shape,)"
        },
        "a new tensor lies in no storage": {", registers[i.storage])": ")"},
        "each tensor is made of float32, whatever the instruction says": {
            "empty(shape, i.dtype)": 'empty(shape, "float32")'
        },
        "a reshaped tensor loses its storage": {", old.storage)": ")"},
        "a tensor gets a storage of its own, and not the one in the register": {
            ", registers[i.storage])": ", Storage(registers[i.storage].bytes))"
        },
        "a reshaped tensor loses its numbers": {
            "view(old.array, shape)": "tensor(np.zeros(shape), old.array.dtype).array"
        },
    },
    "q4": {
        "the kernel does not get the arrays into which it writes": {
            "(*i.inputs, *i.outputs)": "i.inputs"
        },
        "the kernel gets the array of its first output only": {"*i.outputs)": "*i.outputs[:1])"},
        "a tuple is handed over as one argument": {
            "value if isinstance(value, tuple) else (value,)": "(value,)",
        },
        "the kernel gets only the first element of a tuple": {"+= value if": "+= value[:1] if"},
        "the kernel gets Tensors, and not the arrays in them": {"t.array for t": "t for t"},
        "the kernel gets the outputs before the inputs": {
            "(*i.inputs, *i.outputs)": "(*i.outputs, *i.inputs)"
        },
    },
    "q5": {
        "captured values stand behind the arguments": {
            "[*closure.captured, *arguments]": "[*arguments, *closure.captured]"
        },
        "captured values are not handed over in the call": {
            "[*closure.captured, *arguments]": "arguments"
        },
        "a closure captures nothing when it is made": {
            "tuple(registers[r] for r in i.captured)": "()"
        },
        "the caller does not get the result": {
            "[frame.dst] = registers[i.result]": "[frame.dst] = None"
        },
        "each result goes to register 0 of the caller": {"registers[frame.dst]": "registers[0]"},
        "the frame is not told which register of its caller gets the result": {
            "arguments, i.dst)": "arguments)"
        },
        "the first ret takes all frames away": {
            "machine.frames.pop()": "machine.frames.clear()",
        },
        "the result of main is lost": {
            "machine.result = registers[i.result]": "machine.result = ()"
        },
        "a call hands over other values than those in the registers": {
            "[registers[r] for r in i.args]": "[tensor(r + 1) for r in i.args]"
        },
    },
    "q6": {
        "a storage counts once for each way that leads to it": {
            "set(), [": "[], [",
            "alive.add(": "alive.append(",
        },
        "only the registers of the frame that runs count": {
            "in machine.frames for": "in machine.frames[-1:] for"
        },
        "what a tuple holds does not count": {"isinstance(value, tuple)": "False"},
        "what a closure has captured does not count": {"isinstance(value, Closure)": "False"},
        "a storage counts only where a register holds it itself, not through a tensor": {
            "waiting.append(value.storage)": "pass",
        },
        "the bytes of the tensors count, not those of their storages": {
            "waiting.append(value.storage)": "alive.add(Storage(value.array.numpy().nbytes))",
        },
    },
    "q7": {
        "a storage is gone when its own register has another value": {
            "after_each(live_bytes,": (
                "after_each(lambda machine: sum(value.bytes for value in "
                "machine.frames[0].registers if isinstance(value, Storage)),"
            )
        },
        "a storage counts once for each register that leads to it": {
            "after_each(live_bytes,": (
                "after_each(lambda machine: sum(live_bytes(Machine([Frame(None, [value])])) "
                "for value in machine.frames[0].registers),"
            )
        },
        "a tuple does not keep alive what it holds": {
            "after_each(live_bytes,": (
                "after_each(lambda machine: live_bytes(Machine([Frame(None, [value for value in "
                "machine.frames[0].registers if not isinstance(value, tuple)])])),"
            )
        },
        "nothing is ever given back": {
            "after_each(live_bytes, own_code)": (
                "[max(seen) for n in range(len(own_code)) "
                "for seen in [after_each(live_bytes, own_code[: n + 1])]]"
            )
        },
        "only the most of it is given": {
            "after_each(live_bytes, own_code)": "[max(after_each(live_bytes, own_code))]"
        },
        "a goto ends on the last line of the block that it skips": {
            "    line[-1]\n": "    line[-1] - (line[0] == 'goto')\n"
        },
        "an if does not count the goto behind its first block": {
            "    line[-1]\n": "    line[-1] - (line[0] == 'if')\n"
        },
        "the jumps of the inner choice do not count for the outer one": {
            "    line[-1]\n": "    line[-1] - 2 * (line == ('goto', b + c + 3))\n"
        },
        "all numbers of each instruction are given": {"    line[-1]\n": "    line[1:]\n"},
    },
}

# Question -> a right answer of another kind.
OTHERS: dict[str, str] = {
    "q1": """
def either_or(test, then, otherwise):
    second = [*otherwise, ("goto", len(then) + 1)]
    return [("if", test, len(second) + 1, 1), *second, *then]
""",
    "q5": """
def call_and_return(machine, frame, i):
    R = frame.registers
    if i.op == "ret":
        value = R[i.result]
        machine.frames.remove(frame)
        machine.result = value
        for caller in machine.frames[-1:]:
            caller.registers[frame.dst] = value
        return
    if i.op == "alloc_closure":
        R[i.dst] = Closure(machine.program.by_name[i.function], tuple(R[r] for r in i.captured))
        return
    if i.op == "invoke":
        closure = Closure(machine.program.by_name[i.function], ())
    else:
        closure = R[i.closure]
    values = [*closure.captured, *(R[r] for r in i.args)]
    machine.frames.append(new_frame(closure.function, values, i.dst))
""",
    "q6": """
def live_bytes(machine):
    found = {}

    def look(value):
        if isinstance(value, Storage):
            found[id(value)] = value.bytes
        elif isinstance(value, Tensor):
            look(value.storage)
        elif isinstance(value, (tuple, list)):
            for item in value:
                look(item)
        elif isinstance(value, Closure):
            look(value.captured)

    for frame in machine.frames:
        look(frame.registers)
    return sum(found.values())
""",
}

# --- hidden checks -------------------------------------------------------------------------------


def toy_block(random: Generator, length: int, depth: int = 2) -> list[Any]:
    """A block of the toy VM; some contain an either-or."""
    block: list[Any] = []
    for _ in range(length):
        if depth and random.random() < 0.3:
            then, otherwise = (
                toy_block(random, int(random.integers(4)), depth - 1) for _ in range(2)
            )
            test = int(random.integers(4))
            block += [["if", test, 1, len(then) + 2], *then, ["goto", len(otherwise) + 1]]
            block += otherwise
        else:
            op = str(random.choice(["add", "sub", "mul"]))
            block.append([op, *random.integers(4, size=2).tolist()])
    return block


def toy_blocks(random: Generator) -> list[Any]:
    """[test, then, otherwise] each: empty blocks, one that changes the test, then drawn ones."""
    found: list[Any] = [
        [0, [], []],
        [1, [["add", 0, 1]], []],
        [2, [], [["add", 0, 1]]],
        [3, [["mul", 3, 0], ["add", 0, 3]], [["add", 3, 1], ["sub", 0, 5]]],
    ]
    for _ in range(10):
        blocks = (toy_block(random, int(random.integers(7))) for _ in range(2))
        found.append([int(random.integers(4)), *blocks])
    return found


def run_one_block(value: Any, cases: list[Any], lab: Any) -> str:
    """Each program does what the block alone does, and ends behind its last line."""
    behind = ["add", 0, 100]
    for (test, *blocks), program in zip(cases, value, strict=True):
        for registers in ([0, 0, 0, 0], [1, 2, 3, 4], [0, 5, 0, 7], [6, 0, 8, 0]):
            block = blocks[0] if registers[test] else blocks[1]
            try:
                found, _ = lab.run_toy([*program, behind], *registers)
            except lab.WorkbookError:
                return "a program does not end"
            if found != lab.run_toy([*block, behind], *registers)[0]:
                return "a program does something else than the block that should run"
    return ""


def moves(random: Generator) -> list[Any]:
    """[instruction, its fields, values of the first registers] each."""
    a, b = random.integers(3, 90, size=2).tolist()
    return [
        ["Move", [2, 0], [a, b]],
        ["Move", [0, 1], [a, b]],
        ["Move", [1, 1], [a, b]],
        ["LoadConst", [0, 0], [a]],
        ["LoadConst", [1, 1], [a, b]],
        ["LoadConst", [1, 2], [a, None]],
        ["LoadConsti", [0, 0], [a]],
        ["LoadConsti", [1, 1], [a, b]],
        ["LoadConsti", [1, -1], [a, b]],
        ["LoadConsti", [1, int(random.integers(10**6, 10**9))], [[a, b], b]],
        ["KillRegister", [1], [a, b, a]],
        ["KillRegister", [1], [a, None, b]],
    ]


def tuples(random: Generator) -> list[Any]:
    """The same for tuples: empty, with a value twice, of tuples, the last element."""
    a, b, c = random.integers(3, 90, size=3).tolist()
    order = random.permutation(3).tolist()
    return [
        ["AllocData", [2, 0, []], [a, b]],
        ["AllocData", [1, 0, [0]], [a, None]],
        ["AllocData", [0, 0, [1, 0, 1]], [a, b]],
        ["AllocData", [3, 0, order], [a, b, [c, a]]],
        ["AllocData", [2, 0, [1, 0]], [{"tuple": [a, b]}, c]],
        ["GetField", [1, 0, 0], [{"tuple": [a, b, c]}, b]],
        ["Move", [1, 0], [{"tuple": [a, b]}, None]],
        ["GetField", [1, 0, 2], [{"tuple": [a, b, c]}]],
        ["GetField", [0, 1, 1], [a, {"tuple": [a, [b, c]]}]],
    ]


def jumps(random: Generator) -> list[Any]:
    """The same for jumps: forward, backward, large numbers, other dtypes, one register twice."""
    many = int(random.integers(300, 10**6))
    there, here = random.integers(6, 60, size=2).tolist()
    return [
        ["Goto", [0], [1]],
        ["Goto", [there], [1]],
        ["If", [0, 1, there, 0], [0, 0]],
        ["If", [0, 1, there, 0], [1, 0]],
        ["If", [1, 0, 3, here + 60], [2, 1]],
        ["If", [1, 2, 3, here + 60], [many, -1, -1]],
        ["If", [0, 1, there, here + 60], [many, many]],
        ["If", [0, 1, there, here + 60], [many, many + 1]],
        ["If", [1, 1, there, 2], [0, many]],
        ["If", [0, 1, there, 2], [True, 1]],
        ["If", [0, 1, there, 2], [[1], 1]],
    ]


CLASSES = (
    "{'Move': Move, 'LoadConst': LoadConst, 'LoadConsti': LoadConsti, 'If': If, 'Goto': Goto, "
    "'KillRegister': KillRegister, 'AllocData': AllocData, 'GetField': GetField}"
)
INSTRUCTION = f"{CLASSES}[name](*[tuple(f) if isinstance(f, list) else f for f in fields])"
AFTER = (
    f"[after(move_and_jump, {INSTRUCTION}, "
    "*[tuple(v['tuple']) if isinstance(v, dict) else v for v in values]) "
    "for name, fields, values in cases]"
)

DTYPES = ["float32", "int8", "float16", "int64", "float64", "bool", "uint8"]


def shapes(random: Generator, rank: int = 5) -> list[list[int]]:
    """A scalar, one element, and drawn shapes."""
    drawn = (random.integers(1, 5, size=int(random.integers(1, rank))).tolist() for _ in range(5))
    return [[], [1], *drawn]


def storages(random: Generator) -> Inputs:
    """[size, shape, dtype, what the register holds] of alloc_storage, with and without a size."""
    some = [[None, shape, str(random.choice(DTYPES)), 3] for shape in shapes(random)]
    some += [[None, [4, 0], "float32", 3], [None, [2, 3], "float64", 3]]
    some += [[0, [], "float32", int(size)] for size in (0, 1, *random.integers(2, 10**6, size=2))]
    return {"cases": some}


def tensors(random: Generator) -> Inputs:
    """[shape, dtype] of new tensors."""
    return {"cases": [[shape, str(random.choice(DTYPES[:5]))] for shape in shapes(random)]}


def views(random: Generator) -> Inputs:
    """[shape, dtype, another shape of as many numbers]."""
    cases: list[Any] = [[[1], "float32", []], [[], "int64", [1, 1]]]
    for _ in range(5):
        shape = random.integers(1, 4, size=int(random.integers(2, 5))).tolist()
        other = [shape[int(k)] for k in random.permutation(len(shape))]
        dtype = str(random.choice(DTYPES[:5]))
        cases.append([shape, dtype, [other[0] * other[1], *other[2:]]])
    return {"cases": cases}


ALLOCATED = (
    "[[made(allocate, AllocTensor(3, 0, 1, tuple(shape), dtype), room, 0), "
    "made(allocate, AllocTensorReg(3, 1, 2, 0, dtype), tensor(shape, 'int64'), room, 0)] "
    "for shape, dtype in cases]"
)
SHAPE_OF = (
    "[[str(frame.registers[1].array.dtype), plain(frame.registers[1])] for shape, dtype in cases "
    "for frame in [Frame(None, [tensor(np.ones(shape, dtype)), None])] "
    "for _ in [allocate(Machine([frame]), frame, ShapeOf(1, 0))]]"
)
RESHAPED = (
    "[[str(new.array.dtype), new.array.numpy(), new.storage is room] "
    "for shape, dtype, other in cases "
    "for array in [np.arange(np.prod(shape)).astype(dtype).reshape(shape)] "
    "for old in [Tensor(tvm.nd.array(array), room)] "
    "for frame in [Frame(None, [old, tensor(other, 'int64'), None])] "
    "for _ in [allocate(Machine([frame]), frame, ReshapeTensor(2, 0, 1))] "
    "for new in [frame.registers[2]]]"
)


def kernel_calls(random: Generator) -> Inputs:
    """[registers, inputs, outputs] of kernels: no inputs, one register twice, several tuples."""
    a, b, c, d, e = random.integers(2, 90, size=5).tolist()
    one, many = {"tuple": [e]}, {"tuple": [a, c, b, d]}
    return {
        "cases": [
            [[a, b, c], [], [1]],
            [[a, b, c], [2, 0], [1]],
            [[a, b, c], [0, 0], [2]],
            [[a, many, [b, c], one], [1, 0, 3], [2]],
            [[many, b, c, d], [0], [3, 1, 2]],
            [[one, many, c], [1, 0, 1], [2]],
        ]
    }


def program(functions: str = "{}", kernels: str = "{}") -> str:
    """An expression: a program of these functions and kernels and nothing else."""
    names = f"{{'by_name': {functions}, 'kernel_functions': {kernels}, 'constants': []}}"
    return f"type('Program', (), {names})()"


RECORDED = (
    "[calls for registers, inputs, outputs in cases for calls in [[]] "
    "for frame in [Frame(None, [tuple(map(tensor, r['tuple'])) if isinstance(r, dict) "
    "else tensor(r) for r in registers])] "
    "for recorder in [lambda *arrays, calls=calls: calls.append([a.numpy() for a in arrays])] "
    "for _ in [call_kernel(Machine([frame], "
    + program(kernels="{'kernel': recorder}")
    + "), frame, bytecode.InvokePacked('kernel', tuple(inputs), tuple(outputs)))]]"
)


def normal(shape: str, dtype: str = "'float32'") -> str:
    """An expression: numbers of the seed `seed`."""
    return f"np.random.default_rng(seed).normal(size={shape}).astype({dtype})"


def seeds(random: Generator, count: int, least: int, most: int) -> Inputs:
    """[seed, size] each."""
    return {
        "cases": [
            [int(random.integers(2**32)), int(size)]
            for size in random.integers(least, most + 1, size=count)
        ]
    }


def calls(random: Generator) -> Inputs:
    """Instructions that call and return: `main` has six arguments, `f` three and `g` two."""
    found: list[Any] = []
    for _ in range(3):
        a, b, c, d = random.integers(6, size=4).tolist()
        dst = int(random.integers(1, 8))
        other = (dst + 1 - (dst == 7) * 2) or 1
        found += [
            [
                ["Invoke", dst, "f", [a, b, c]],
                ["Invoke", 3, "g", [2, 0]],
                ["Ret", 1],
                ["Ret", 3],
                ["Ret", dst],
            ],
            [
                ["AllocClosure", other, "f", [a]],
                ["InvokeClosure", dst, other, [b, c]],
                ["AllocClosure", 3, "g", []],
                ["InvokeClosure", 4, 3, [1, 1]],
                ["Ret", 0],
                ["Ret", 4],
                ["Ret", dst],
            ],
            [
                ["AllocClosure", other, "f", [a, b, c]],
                ["Invoke", dst, "g", [other, d]],
                ["InvokeClosure", 2, 0, []],
                ["Ret", 2],
                ["Ret", 2],
                ["Ret", dst],
            ],
        ]
    return {"cases": found}


FUNCTIONS = (
    "{name: bytecode.Function(name, tuple('abcdef'[:count]), size, ()) "
    "for name, count, size in (('main', 6, 8), ('f', 3, 5), ('g', 2, 4))}"
)
CALLED = (
    "[[[[frame.function.name, frame.dst, [shown(v) for v in frame.registers]] "
    "for frame in machine.frames] or shown(machine.result) "
    "for shown in [lambda v: v.function.name if isinstance(v, Closure) else plain(v)] "
    "for name, *fields in case "
    "for i in [{'Ret': bytecode.Ret, 'Invoke': Invoke, 'AllocClosure': AllocClosure, "
    "'InvokeClosure': InvokeClosure}[name]"
    "(*[tuple(field) if isinstance(field, list) else field for field in fields])] "
    "for _ in [call_and_return(machine, machine.frames[-1], i)]] "
    f"for case in cases for functions in [{FUNCTIONS}] "
    "for machine in [Machine([new_frame(functions['main'], [tensor(k + 10) for k in range(6)])], "
    f"{program('functions')})]]"
)
# The result, and how many frames there are after each instruction.
TRACED = (
    "[[interpret({program}, {{'{name}': {numbers}}}, watch=lambda m, t=trace: "
    "t.append(len(m.frames))), trace] for seed, size in cases for trace in [[]]]"
)


def values(random: Generator) -> Inputs:
    """[bytes of storages, values by earlier ones, registers of frames] each.

    Value 0 is None. A value is [kind, numbers]: of its storage, or of the values that it holds.
    """
    found: list[Any] = [
        [[], [], []],
        [[], [["tensor", []]], [[0, 1, 1], [0]]],
        [[64, 64], [["tensor", [0]], ["tensor", [1]], ["tensor", [1]]], [[1, 2, 3], [2]]],
        [[8], [["storage", [0]], ["tuple", [1]], ["closure", [2]], ["tuple", [3, 3]]], [[4], []]],
        [[8, 16], [["tensor", [0]], ["tensor", [1]], ["tuple", []]], [[1], [2], [3, 0]]],
    ]
    for _ in range(12):
        rooms = random.integers(1, 500, size=int(random.integers(1, 7))).tolist()
        items: list[Any] = []
        for _ in range(int(random.integers(2, 14))):
            kind = str(random.choice(["storage", "tensor", "tensor", "tuple", "closure"]))
            if kind in ("storage", "tensor"):
                held = [int(random.integers(len(rooms)))]
                held = [] if kind == "tensor" and random.random() < 0.2 else held
            else:
                held = random.integers(len(items) + 1, size=int(random.integers(4))).tolist()
            items.append([kind, held])
        frames = [
            random.integers(len(items) + 1, size=int(random.integers(4))).tolist()
            for _ in range(int(random.integers(1, 5)))
        ]
        found.append([rooms, items, frames])
    return {"cases": found}


ALIVE = (
    "[live_bytes(Machine([Frame(None, [made_so_far[k] for k in frame]) for frame in frames])) "
    "for sizes, items, frames in cases for rooms in [[Storage(size) for size in sizes]] "
    "for made_so_far in [[None]] for _ in [[made_so_far.append({"
    "'storage': lambda: rooms[held[0]], "
    "'tensor': lambda: Tensor(tensor([1, 2]).array, rooms[held[0]] if held else None), "
    "'tuple': lambda: tuple(made_so_far[k] for k in held), "
    "'closure': lambda: Closure(None, tuple(made_so_far[k] for k in held))}[kind]()) "
    "for kind, held in items]]]"
)

HIDDEN = {
    "q1": [
        Hidden(
            "blocks of 0 to 6 instructions, some with an either-or inside, run from four states",
            probe="[either_or(test, [tuple(i) for i in then], [tuple(i) for i in otherwise]) "
            "for test, then, otherwise in cases]",
            draw=lambda random: {"cases": toy_blocks(random)},
            verify=run_one_block,
        ),
    ],
    "q2": [
        Hidden(
            "moves, constants and registers that are killed",
            probe=AFTER,
            draw=lambda random: {"cases": moves(random)},
        ),
        Hidden(
            "a move of a tensor whose numbers change later",
            probe="[plain(frame.registers[1]) for moved in [tensor(numbers)] "
            "for frame in [Frame(None, [moved, None])] "
            "for _ in [move_and_jump(Machine([frame]), frame, Move(1, 0))] "
            "for _ in [moved.array.copyfrom(np.asarray(numbers[::-1]))]]",
            draw=lambda random: {"numbers": [1, int(random.integers(2, 99))]},
        ),
        Hidden(
            "tuples: empty, with a value twice, of tuples",
            probe=AFTER,
            draw=lambda random: {"cases": tuples(random)},
        ),
        Hidden(
            "jumps forward and backward, by small and large numbers of several types",
            probe=AFTER,
            draw=lambda random: {"cases": jumps(random)},
        ),
    ],
    "q3": [
        Hidden(
            "storages of shapes and sizes of many kinds",
            probe="[stored(allocate, AllocStorage(1, size, tuple(shape), dtype, 64), value) "
            "for size, shape, dtype, value in cases]",
            draw=storages,
        ),
        Hidden("tensors of many shapes and types, in a storage", probe=ALLOCATED, draw=tensors),
        Hidden("the shapes of tensors of rank 0 to 4", probe=SHAPE_OF, draw=tensors),
        Hidden("tensors under another shape", probe=RESHAPED, draw=views),
    ],
    "q4": [
        Hidden(
            "what a kernel gets: no inputs, one register twice, tuples, several outputs",
            probe=RECORDED,
            draw=kernel_calls,
            weight=2,
        ),
        Hidden(
            "row sums of matrices, on your interpreter",
            probe="[interpret(sums, {'x': "
            + normal("(size, 4)")
            + "}, call_and_return=leave_main) for seed, size in cases]",
            draw=lambda random: seeds(random, 3, 1, 40),
        ),
        Hidden(
            "early_exit with other inputs, on your interpreter",
            probe="[interpret(early_exit, {'x': size * "
            + normal("(1, 256)")
            + "}, call_and_return=leave_main) for seed, size in cases]",
            draw=lambda random: seeds(random, 4, 0, 3),
        ),
    ],
    "q5": [
        Hidden(
            "the frames after each of several calls, and of calls in calls",
            probe=CALLED,
            draw=calls,
            weight=2,
        ),
        Hidden(
            "the LSTM with other inputs, and the frames on the way",
            probe=TRACED.format(program="lstm", name="x", numbers=normal("(size, 1, 64)")),
            draw=lambda random: seeds(random, 3, 1, 12),
        ),
    ],
    "q6": [
        Hidden(
            "frames with values of many kinds, some of them shared",
            probe=ALIVE,
            draw=values,
            weight=2,
        ),
        Hidden(
            "the peak of the LSTM with other numbers of rows",
            probe="[peak(live_bytes, lstm, {'x': "
            + normal("(size, 1, 64)")
            + "}) for seed, size in cases]",
            draw=lambda random: seeds(random, 3, 3, 14),
        ),
    ],
    "q7": [
        Hidden("the bytes alive in your program", probe="list(own_alive)", own=True),
        Hidden("the jumps of your choices", probe="list(own_jumps)", own=True),
    ],
}
