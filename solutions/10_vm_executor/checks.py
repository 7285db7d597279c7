"""Lab 10: wrong answers, which the public checks must refuse, and other right ones."""

# Question -> what is wrong with the answer -> which of its texts are replaced by what.
WRONG: dict[str, dict[str, dict[str, str]]] = {
    "q1": {
        "no goto between the blocks": {
            "len(then) + 2": "len(then) + 1",
            '("goto", len(otherwise) + 1), ': "",
        },
        "the goto goes to the second block": {"len(otherwise) + 1": "1"},
        "one line short": {"len(then) + 2": "len(then) + 1"},
        "positions instead of distances": {"len(otherwise) + 1": "len(then) + len(otherwise) + 2"},
        "the blocks are exchanged": {
            "*then, (": "*otherwise, (",
            "+ 1), *otherwise]": "+ 1), *then]",
            "len(then) + 2": "len(otherwise) + 2",
            "len(otherwise) + 1": "len(then) + 1",
        },
        "the goto skips one block of one line": {"len(otherwise) + 1": "2"},
        "the goto of an empty block stays where it is": {
            "len(otherwise) + 1": "len(otherwise) + bool(otherwise)"
        },
        "the test is made a second time": {
            "len(then) + 2": "len(then) + 1",
            '("goto", len(otherwise) + 1)': '("if", test, len(otherwise) + 1, 1)',
        },
    },
    "q2": {
        "move copies": {
            "registers[i.dst] = registers[i.source]": (
                "registers[i.dst] = tensor(registers[i.source].array.numpy())"
            )
        },
        "move leaves nothing behind": {
            "registers[i.dst] = registers[i.source]": (
                "registers[i.dst], registers[i.source] = registers[i.source], None"
            )
        },
        "move the wrong way": {
            "registers[i.dst] = registers[i.source]": "registers[i.source] = registers[i.dst]"
        },
        "the number of the constant": {"machine.constants[i.index]": "tensor(i.index)"},
        "load_consti loads a constant": {"tensor(i.value)": "machine.constants[i.value]"},
        "kill does nothing": {"registers[i.dst] = None": "pass"},
        "kill takes the register away": {"registers[i.dst] = None": "del registers[i.dst]"},
        "data of register numbers": {
            "tuple(registers[r] for r in i.fields)": "tuple(i.fields)",
        },
        "the tuple instead of a field": {"[i.object][i.index]": "[i.object]"},
        "goto as a distance": {"frame.pc = i.pc": "frame.pc += i.pc"},
        "the branches are exchanged": {
            "i.then if equal else i.otherwise": "i.otherwise if equal else i.then"
        },
        "if asks whether the test is true": {" == number(registers[i.target])": " != 0"},
        "if compares objects": {
            "number(registers[i.test]) == number(registers[i.target])": (
                "registers[i.test] is registers[i.target]"
            )
        },
        "if goes on where it is not equal": {" else i.otherwise": " else frame.pc"},
    },
    "q3": {
        "four bytes for each number": {"bytecode.item_bytes(i.dtype)": "4"},
        "numbers instead of bytes": {" * bytecode.item_bytes(i.dtype)": ""},
        "the register of the size as the size": {"number(registers[i.size])": "i.size"},
        "the shape even if there is a size": {"size if i.size is None else ": "size if True else "},
        "the rank instead of the shape": {
            "tensor(registers[i.tensor].array.shape, ": "tensor([registers[i.tensor].array.ndim], ",
        },
        "a shape of int32": {'"int64"': '"int32"'},
        "the register's number as the shape": {
            "registers[i.shape].array.numpy().tolist()": "(i.shape,)"
        },
        "no storage": {", registers[i.storage])": ")"},
        "everything is float32": {"empty(shape, i.dtype)": 'empty(shape, "float32")'},
        "a reshaped tensor has no storage": {", old.storage)": ")"},
        "a tensor has memory of its own": {
            ", registers[i.storage])": ", Storage(registers[i.storage].bytes))"
        },
        "a reshaped tensor has no numbers": {
            "view(old.array, shape)": "empty(shape, old.array.dtype)"
        },
    },
    "q4": {
        "the outputs are left out": {"(*i.inputs, *i.outputs)": "i.inputs"},
        "only the first output": {"*i.outputs)": "*i.outputs[:1])"},
        "a tuple is one argument": {
            "value if isinstance(value, tuple) else (value,)": "(value,)",
        },
        "only the first element of a tuple": {"+= value if": "+= value[:1] if"},
        "tensors instead of arrays": {"t.array for t": "t for t"},
    },
    "q5": {
        "captured values behind the arguments": {
            "[*closure.captured, *arguments]": "[*arguments, *closure.captured]"
        },
        "captured values are forgotten": {"[*closure.captured, *arguments]": "arguments"},
        "nothing is captured": {"tuple(registers[r] for r in i.captured)": "()"},
        "the caller gets nothing": {"[frame.dst] = registers[i.result]": "[frame.dst] = None"},
        "the result goes to register 0": {"registers[frame.dst]": "registers[0]"},
        "the register is forgotten": {"arguments, i.dst)": "arguments)"},
        "the first ret ends everything": {
            "machine.frames.pop()": "machine.frames.clear()",
        },
        "main gives nothing": {"machine.result = registers[i.result]": "machine.result = ()"},
        "the numbers of the registers as arguments": {
            "[registers[r] for r in i.args]": "[tensor(r + 1) for r in i.args]"
        },
    },
    "q6": {
        "each way counts": {"set(), [": "[], [", "alive.add(": "alive.append("},
        "only the frame that runs": {"in machine.frames for": "in machine.frames[-1:] for"},
        "tuples are forgotten": {"isinstance(value, tuple)": "False"},
        "closures are forgotten": {"isinstance(value, Closure)": "False"},
        "only what registers hold themselves": {
            "waiting.append(value.storage)": "pass",
        },
        "the bytes of the tensors": {
            "waiting.append(value.storage)": "alive.add(Storage(value.array.numpy().nbytes))",
        },
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
