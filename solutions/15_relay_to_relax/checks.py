"""Lab 15: wrong answers that the checks must refuse, other right ones, and the hidden checks."""

from typing import Any

import numpy as np
from numpy.random import Generator

from helpers.grading.hidden import Hidden

# Question -> what is wrong with the answer -> which of its texts are replaced by what.
WRONG: dict[str, dict[str, dict[str, str]]] = {
    "q1": {
        "the bias is added along the last axis, not along axis 1": {
            "emit(op.reshape(b, (c, 1, 1)))": "b"
        },
        "the weights are reshaped, not transposed": {
            "op.permute_dims(weight)": "op.reshape(weight, (size, units))"
        },
        "the weights are taken as they are: nn.dense transposes them": {
            "emit(op.permute_dims(weight))": "weight"
        },
        "the module asks for weights that are transposed already": {
            "emit(op.permute_dims(weight))": "weight",
            "(units, size))": "(size, units))",
        },
        "axis 0 is flattened, too": {
            "op.reshape(emit(op.nn.relu(x)), (n, size))": "op.flatten(emit(op.nn.relu(x)))"
        },
        "relu comes before the bias, not after it": {
            "op.add(x, emit(": "op.add(emit(op.nn.relu(x)), emit(",
            "emit(op.nn.relu(x)), (n": "x, (n",
        },
        "the softmax runs over the images, not over the classes": {
            "op.permute_dims(weight)))))": "op.permute_dims(weight)))), axis=0)"
        },
    },
    "q2": {
        "nothing is fused: the pipeline is the one called default": {
            "relax.get_default_pipeline(TARGET)": '"default"'
        },
        "the weights are inputs of each run, and no part of the program": {
            'transform.BindParams("main", weights)(module)': "module",
            "tvm.runtime.tensor(x))": (
                "tvm.runtime.tensor(x), *map(tvm.runtime.tensor, weights.values()))"
            ),
        },
        "nothing is fused, and the weights are inputs of each run": {
            'transform.BindParams("main", weights)(module)': "module",
            "relax.get_default_pipeline(TARGET)": '"default"',
            "tvm.runtime.tensor(x))": (
                "tvm.runtime.tensor(x), *map(tvm.runtime.tensor, weights.values()))"
            ),
        },
        "without FuseOps": {
            "relax.get_default_pipeline(TARGET)": (
                "tvm.transform.Sequential([transform.LegalizeOps(), transform.FoldConstant(), "
                'relax.get_pipeline("default")])'
            )
        },
        "only the first input is run": {"for x in inputs]": "for x in inputs[:1]]"},
        "each run gives the result of the first input": {
            "tvm.runtime.tensor(x))": "tvm.runtime.tensor(inputs[0]))"
        },
    },
    "q3": {
        "an argument is taken for the call that computes it, as in Relay": {
            "self.lookup_binding(call.args[0])": "call.args[0]"
        },
        "the negative that nobody uses any more stays in the list": {
            "transform.DeadCodeElimination()(made.builder_.get())": "made.builder_.get()"
        },
        "the inner negative is returned, not what it is applied to": {
            "return inner.args[0]": "return inner"
        },
        "any operator that is applied twice disappears": {
            "call.op == NEGATIVE and": "",
            "inner.op == NEGATIVE": "inner.op == call.op",
        },
        "a negative of anything disappears": {" and inner.op == NEGATIVE": ""},
        "each negative disappears": {
            "if isinstance(inner, relax.Call) and inner.op == NEGATIVE": "if True",
            "return inner.args[0]": "return call.args[0]",
        },
        "an input, which has no binding, is taken for a call": {
            "isinstance(inner, relax.Call) and ": ""
        },
        "a constant, which is no variable, is looked up": {
            " and isinstance(call.args[0], relax.Var)": ""
        },
    },
    "q4": {
        "whole numbers are multiplied by the reciprocal, too, which is 0": {
            "return call": "return op.multiply(found[x], relax.const(0, dtype))"
        },
        "a constant that is divided counts as one that divides": {
            "(x, c), new": '(x, c) | is_op("relax.divide")(c, x), new'
        },
        "the constant itself is the factor": {
            "1 / found[c].value.numpy()": "found[c].value.numpy()"
        },
        "one reciprocal for all elements": {
            "1 / found[c].value.numpy()": "1 / found[c].value.numpy().ravel()[0]"
        },
        "the factor is float32, whatever is divided": {".numpy(), dtype)": ".numpy())"},
        "the constant is looked for on the left": {"(x, c), new": "(c, x), new"},
        "the reciprocal is rounded to two digits": {
            "1 / found[c].value.numpy()": "np.round(1 / found[c].value.numpy(), 2)"
        },
    },
    "q5": {
        "all three lengths have one name": {"(m, width)": "(n, width)"},
        "each length has a name of its own, and the sum no known shape": {
            "(n, width), (n, width)": '(n, width), (tirx.Var("k", "int64"), width)'
        },
        "the lengths are numbers": {
            'n, m = tirx.Var("n", "int64"), tirx.Var("m", "int64")': "n, m = 1, 3"
        },
        "the third input comes first": {"[emit(op.add(x, y)), z]": "[z, emit(op.add(x, y))]"},
        "the result is still a matrix": {
            "op.reshape(emit(op.matmul(rows, emit(op.permute_dims(weight)))), (-1,))": (
                "op.matmul(rows, emit(op.permute_dims(weight)))"
            )
        },
        "the weights are reshaped, not transposed": {
            "op.permute_dims(weight)": "op.reshape(weight, (width, units))"
        },
    },
    "q6": {
        "each operator is a kernel of its own": {
            "own_kernels = [": "own_kernels = [1] * operators(own) or ["
        },
        "the kernels are listed by size, not in their order": {
            "own_kernels = [": "own_kernels = sorted([",
            "text(after(own, L, A, F)))\n]": "text(after(own, L, A, F)))\n])",
        },
        "a matrix product is fused with nothing": {
            "own_kernels = [": (
                "own_kernels = [n for name in kernels(after(own, L, A, F, T)) for n in "
                '(1, name.count("tir_") + name.count("sum") or 1)] or ['
            )
        },
        "the bytes are those of one kernel for each operator": {
            ".sizes": ' and build.relax_build.compile(own, pipeline="default").sizes'
        },
        "the elements are counted, not their bytes": {'sizes["tensors"]': 'sizes["tensors"] // 4'},
        "the bytes of the storages are given, not those of all that is written": {
            '.sizes["tensors"]': (
                " and storages(made.library) * 4 * int(own['main'].ret_ty.shape[0]) ** 2"
            )
        },
        "the bytes are given in kilobytes": {'sizes["tensors"]': 'sizes["tensors"] / 1024'},
        "the sizes of the storages are given, not how many there are": {
            "storages(made.library)": "[4 * int(own['main'].ret_ty.shape[0]) ** 2]"
        },
        "the storage of the result is left out": {
            "storages(made.library)": "storages(made.library) - 1"
        },
        "each kernel has a storage of its own": {"storages(made.library)": "len(made.kernels)"},
    },
}

# Question -> a right answer of another kind.
OTHERS: dict[str, str] = {
    "q1": """
def classifier(n, c, h, w, units):
    builder = relax.BlockBuilder()
    shapes = {"image": (n, c, h, w), "bias": (c,), "weight": (units, c * h * w)}
    inputs = [relax.Var(name, relax.TensorType(s, "float32")) for name, s in shapes.items()]
    x, b, weight = inputs
    with builder.function("main", inputs):
        b = builder.emit(op.expand_dims(b, [0, 2, 3]))
        x = builder.emit(op.reshape(op.nn.relu(op.add(x, b)), (n, c * h * w)))
        builder.emit_func_output(op.nn.softmax(op.matmul(x, op.permute_dims(weight, [1, 0]))))
    return builder.get()
""",
    "q2": """
def deploy(module, weights, inputs):
    made = build.compile(transform.BindParams("main", weights)(module))
    (name,) = made.input_types
    return [made.run(**{name: x})[0] for x in inputs], made.library
""",
    "q3": """
def undo(module):
    x = wildcard()
    pattern = is_op("relax.negative")(is_op("relax.negative")(x))
    main = rewrite_call(pattern, lambda call, found: found[x], module["main"])
    return transform.DeadCodeElimination()(tvm.IRModule({"main": main}))
""",
    "q4": """
def reciprocal(module):
    @mutator
    class Reciprocal(PyExprMutator):
        def visit_call_(self, call):
            call = self.visit_expr_post_order(call)
            if call.op != tvm.ir.Op.get("relax.divide"):
                return call
            x, c = call.args
            dtype = str(call.ty.dtype)
            if not isinstance(c, tvm.ir.GenericConst) or not dtype.startswith("float"):
                return call
            return op.multiply(x, relax.const(np.reciprocal(c.value.numpy()), dtype))

    made = Reciprocal(module)
    made.builder_.update_func(module.get_global_var("main"), made.visit_expr(module["main"]))
    return made.builder_.get()
""",
}

# Question -> what the public checks may accept -> an answer that does not do what is asked.
CHEATS: dict[str, dict[str, str]] = {
    "q1": {
        "it calls a function of Python's": """
def classifier(n, c, h, w, units):
    from tvm_ffi import register_global_func

    def compute(x, b, weight):
        x = np.maximum(x.numpy() + b.numpy()[:, None, None], 0).reshape(n, -1)
        y = np.exp(x @ weight.numpy().T)
        return tvm.runtime.tensor(y / y.sum(axis=1, keepdims=True))

    register_global_func("the.classifier", compute, override=True)
    kind = relax.TensorType((n, units), "float32")
    call = lambda emit, *inputs: op.call_pure_packed("the.classifier", *inputs, ty_args=kind)
    return program(call, (n, c, h, w), (c,), (units, c * h * w))
""",
    },
    "q3": {
        "it changes how the check reads a module": """
def undo(module):
    global names, value
    names = lambda module: [name for name in re.findall(r"= R\\.(\\w+)\\(", text(module))
                            if name != "negative"] or ["negative"]
    return module
""",
    },
    "q4": {
        "it gives back the modules of the public check": """
def reciprocal(module):
    called = names(module)
    if called == ["divide"] and "int32" not in text(module):
        c = [2.0, -8.0] if "GenericConst" in text(module) else 4.0
        return program(lambda emit, x: op.multiply(x, relax.const(1 / np.float32(c))), (3, 2))
    return module
""",
    },
}

# --- hidden checks -------------------------------------------------------------------------------


def numbers(random: Generator, *shape: int) -> Any:
    """Numbers from -2 to 2 with three digits, as nested lists."""
    return random.uniform(-2, 2, shape).round(3).tolist()


def compiled(module: Any) -> Any:
    """What computes the result of a module that has been rebuilt from arrays."""
    import tvm
    from tvm import relax

    from helpers import targets

    target = targets.resolve("teaching")
    built = relax.build(module, target, relax_pipeline=relax.get_default_pipeline(target))
    machine = relax.VirtualMachine(built, tvm.cpu())
    return lambda *inputs: machine["main"](*map(tvm.runtime.tensor, inputs)).numpy()


def by_numpy(module: Any, *inputs: Any) -> Any:
    """The result of a module whose operators numpy has, too, under the same names."""
    from helpers.grading.relax_listing import listed

    def found(tree: Any) -> Any:
        return values[tree[1]] if tree[0] == "var" else tree[1]

    tree, values = listed(module), list(inputs)
    for _, name, arguments, _ in tree["lines"]:
        values.append(getattr(np, name.removeprefix("relax."))(*map(found, arguments)))
    return found(tree["result"])


def types(module: Any) -> list[Any]:
    """Shape and data type of each input of main; the names of lengths do not count."""
    from helpers.grading.relax_listing import listed

    return [kind for _, *kind in listed(module)["inputs"]]


def calls(module: Any) -> list[Any]:
    """[operator, arguments] of the calls of main."""
    from helpers.grading.relax_listing import listed

    return [line[1:3] for line in listed(module)["lines"] if line[0] == "call"]


def float32(random: Generator, shape: tuple[int, ...]) -> Any:
    """An array of numbers from -1 to 1."""
    return random.uniform(-1, 1, shape).astype("float32")


def sizes(random: Generator) -> list[list[int]]:
    """Shapes in which axes agree, so that a wrong port raises nothing, and drawn ones."""
    side = int(random.integers(2, 5))
    agree = [[3, side, 2, side, 5], [2, 3, 2, 2, 12], [1, side, side, side, side**3]]
    return [*agree, [int(size) for size in random.integers(2, 7, size=5)]]


def classifies(value_: Any, cases: list[list[int]]) -> str:
    """The right types, and the numbers that the Relay function gives."""
    random = np.random.default_rng(15)
    for (n, c, h, w, units), module in zip(cases, value_, strict=True):
        shapes: list[tuple[int, ...]] = [(n, c, h, w), (c,), (units, c * h * w)]
        if types(module) != [[list(shape), "float32"] for shape in shapes]:
            return "the inputs for some sizes have other types"
        x, b, weight = (float32(random, shape) for shape in shapes)
        y = np.maximum(x + b[:, None, None], 0).reshape(n, -1) @ weight.T
        y = np.exp(y - y.max(axis=1, keepdims=True))
        y /= y.sum(axis=1, keepdims=True)
        found = compiled(module)(x, b, weight)
        if found.shape != y.shape or not np.allclose(found, y, rtol=1e-3, atol=1e-5):
            return "the module for some sizes computes other numbers"
    return ""


# Chains of operators in which some values are used again, and constants.
UNARY = ["exp", "tanh", "negative", "negative", "negative", "negative", "abs"]
PROGRAM = (
    "(lambda steps: program(lambda emit, x: (lambda values: ("
    "[values.append(emit(op.add(values[-1], values[k]) if name == 'add' else "
    "op.negative(relax.const(1.5)) if name == 'constant' else getattr(op, name)(values[k])))"
    " for name, k in steps], op.add(values[-1], x))[1])([x]), (2, 3)))"
)


def some_steps(random: Generator) -> list[Any]:
    """[operator, index of a value] each: runs of negatives, and drawn programs."""
    found: list[Any] = [[["negative", k] for k in range(n)] for n in (1, 2, 3, 4, 5)]
    found.append([["exp", 0], ["exp", 1], ["negative", 2], ["negative", 3], ["abs", 4], ["abs", 5]])
    found.append([["negative", 0], ["negative", 1], ["add", 1], ["negative", 2]])
    for _ in range(4):
        steps: list[Any] = []
        for k in range(int(random.integers(6, 11))):
            name = str(random.choice([*UNARY, "add"]))
            back = int(random.integers(2)) if random.random() < 0.3 else 0
            steps.append([name, max(0, k - back)])
        found.append(steps)
    return found


def is_undone(value_: Any, cases: list[Any], lab: Any) -> str:
    """No negative of a negative, nothing unused, the same other operators and values."""
    x = float32(np.random.default_rng(15), (2, 3))
    for steps, module in zip(cases, value_, strict=True):
        before = eval(PROGRAM, vars(lab))(steps)
        right, found = calls(lab.undo(before)), calls(module)
        others = [sorted(name for name, _ in c if name != "relax.negative") for c in (right, found)]
        if others[0] != others[1]:
            return "in some program other operators than negatives have changed"
        if len(found) > len(right):
            return "in some program more operators are left than in Relay"
        if types(module) != types(before):
            return "a program has other inputs"
        if not np.allclose(by_numpy(module, x), by_numpy(before, x), rtol=1e-4, atol=1e-5):
            return "a program computes other numbers"
    return ""


QUOTIENTS = (
    "[reciprocal(program(lambda emit, x, y: (lambda values: ([values.append(emit("
    "op.divide(values[-1], relax.const(np.array(c, dtype), dtype)) if side == 'right' else "
    "op.divide(relax.const(np.array(c, dtype), dtype), values[-1]) if side == 'left' else "
    "op.divide(values[-1], y) if side == 'input' else op.multiply(values[-1], y)))"
    " for side, c in steps], op.add(values[-1], y))[1])([x]), (3, 2), (3, 2), dtype=dtype))"
    " for dtype, steps in cases]"
)


def some_quotients(random: Generator, dtype: str) -> list[Any]:
    """[data type, steps]; a step is [where the constant stands, the constant]."""
    one = random.integers(2, 9, size=12)
    shapes: list[Any] = [[], [2], [3, 1], [3, 2]]
    found: list[Any] = [[dtype, [["right", int(one[0])]]], [dtype, [["input", 0], ["other", 0]]]]
    for shape in shapes:
        c = random.integers(2, 9, size=shape)
        found.append([dtype, [["right", c.tolist()], ["left", int(one[1])], ["right", 3]]])
    for _ in range(3):
        kinds = random.choice(["right", "right", "left", "input", "other"], size=4)
        found.append([dtype, [[str(kind), int(random.integers(2, 9))] for kind in kinds]])
    return found


def is_reciprocal(value_: Any, cases: list[Any], lab: Any) -> str:
    """The operators of the Relay pass, and its constants."""
    from helpers.grading import checks, encoding
    from helpers.grading.relax_listing import listed

    wanted = eval(QUOTIENTS, {**vars(lab), "cases": cases})
    for module, right in zip(value_, wanted, strict=True):
        if [name for name, _ in calls(module)] != [name for name, _ in calls(right)]:
            return "a program has other operators after it"
        if not checks.agrees(listed(module), encoding.loads(encoding.dumps(right)).tree, rtol=1e-4):
            return "a program has other constants, arguments or inputs after it"
    return ""


def lengths(random: Generator) -> list[Any]:
    """[width, units, [(n, m)]] each."""
    found = []
    for square in (True, False):
        width, units = (int(size) for size in random.integers(2, 7, size=2))
        pairs = [[1, 1], [1, 4], [int(random.integers(2, 6)), int(random.integers(6, 9))]]
        found.append([width, width if square else units, pairs])
    return found


def is_joined(value_: Any, cases: list[Any]) -> str:
    """Two lengths with names, and right numbers for several of them."""
    random = np.random.default_rng(15)
    for (width, units, pairs), module in zip(cases, value_, strict=True):
        n, m = "0", "1"
        wanted = [[[n, width], "float32"]] * 2 + [[[m, width], "float32"]]
        if types(module) != [*wanted, [[units, width], "float32"]]:
            return "the types of the inputs do not say which lengths are equal and which are not"
        run = compiled(module)
        for rows, more in pairs:
            x, y = float32(random, (rows, width)), float32(random, (rows, width))
            z, weight = float32(random, (more, width)), float32(random, (units, width))
            right = (np.concatenate([x + y, z]) @ weight.T).ravel()
            found = run(x, y, z, weight)
            if found.shape != right.shape or not np.allclose(found, right, rtol=1e-3, atol=1e-4):
                return "for some lengths other numbers come out"
    return ""


# A program of another kind, with the weights in another order, and a part of them alone.
DEPLOY = (
    "(lambda made: {})(deploy(program(lambda emit, b, x, w: op.tanh(emit(op.multiply(emit("
    "op.matmul(x, emit(op.exp(emit(op.permute_dims(w)))))), b))), (units,), (rows, width),"
    " (units, width)), {{'x0': np.array(b, 'float32'), 'x2': np.array(w, 'float32')}},"
    " [np.array(x, 'float32') for x in inputs]))"
)


def script(random: Generator) -> dict[str, Any]:
    """Sizes, weights and inputs of a program to deploy."""
    rows, width, units = (int(size) for size in random.integers(2, 7, size=3))
    return {
        "rows": rows,
        "width": width,
        "units": units,
        "b": numbers(random, units),
        "w": numbers(random, units, width),
        "inputs": [numbers(random, rows, width) for _ in range(3)],
    }


HIDDEN = {
    "q1": [
        Hidden(
            "several sizes, some with axes of equal length: types and numbers",
            probe="[classifier(*sizes) for sizes in cases]",
            draw=lambda random: {"cases": sizes(random)},
            verify=classifies,
            timeout=20,
        ),
    ],
    "q2": [
        Hidden(
            "another program with other weights, several inputs: the results",
            probe=DEPLOY.format("list(made[0])"),
            draw=script,
            rtol=1e-3,
            atol=1e-4,
        ),
        Hidden(
            "another program: the kernels that a run calls",
            probe=DEPLOY.format("len(called(made[1]))"),
            draw=script,
        ),
    ],
    "q3": [
        Hidden(
            "runs of negatives, and programs that use values again: operators and numbers",
            probe=f"[undo({PROGRAM}(steps)) for steps in cases]",
            draw=lambda random: {"cases": some_steps(random)},
            verify=is_undone,
            timeout=30,
            weight=2,
        ),
        Hidden(
            "negatives of constants",
            probe=f"[undo({PROGRAM}(steps)) for steps in cases]",
            draw=lambda random: {
                "cases": [
                    [["constant", 0], ["negative", 1], ["exp", 2]],
                    [["tanh", 0], ["negative", 1], ["constant", 0], ["add", 2]],
                ]
            },
            verify=is_undone,
            timeout=20,
        ),
    ],
    "q4": [
        Hidden(
            "divisions by constants of several shapes, of constants, and by inputs",
            probe=QUOTIENTS,
            draw=lambda random: {"cases": some_quotients(random, "float32")},
            verify=is_reciprocal,
            weight=2,
        ),
        Hidden(
            "the same in whole numbers, and in other types of floats",
            probe=QUOTIENTS,
            draw=lambda random: {
                "cases": [
                    case
                    for dtype in ("int32", "int8", "float64", "float16")
                    for case in some_quotients(random, dtype)
                ]
            },
            verify=is_reciprocal,
        ),
    ],
    "q5": [
        Hidden(
            "several widths: the types, and the numbers for several lengths",
            probe="[joined(width, units) for width, units, _ in cases]",
            draw=lambda random: {"cases": lengths(random)},
            verify=is_joined,
            timeout=20,
        ),
    ],
    "q6": [
        Hidden("the operators of each kernel", probe="list(own_kernels)", own=True),
        Hidden("the bytes that kernels write", probe="own_bytes", own=True),
        Hidden("the storages", probe="own_storages", own=True),
    ],
}
