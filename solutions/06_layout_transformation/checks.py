"""Lab 06: wrong answers that the checks must refuse, other right ones, and the hidden checks."""

from math import prod
from typing import Any

import numpy as np
from numpy.random import Generator

from helpers import programs
from helpers.errors import WorkbookError
from helpers.grading.hidden import Hidden

# Question -> what is wrong with the answer -> which of its texts are replaced by what.
WRONG: dict[str, dict[str, dict[str, str]]] = {
    "q1": {
        "the strides are listed from the innermost axis to the outermost": {
            "for k in range(len(extents))]": "for k in range(len(extents))][::-1]"
        },
        "the extent of an axis itself is part of its stride": {"extents[k + 1 :]": "extents[k:]"},
        "a stride is the product of the extents before it, not behind it": {
            "extents[k + 1 :]": "extents[:k]"
        },
        "the stride of the innermost axis is missing": {
            "range(len(extents))": "range(len(extents) - 1)"
        },
        "an axis that is cut into blocks keeps its whole size": {" // cut.get(axis, 1)": ""},
        "the axes are taken in the order of the sizes, not of the layout": {
            "size in parts(layout)]": "size in parts(''.join(dims))]"
        },
    },
    "q2": {
        "the number of the block and the place in the block are exchanged": {
            "index[axis] % size if size else index[axis] // cut.get(axis, 1)": (
                "index[axis] // size if size else index[axis] % cut.get(axis, 10**6)"
            )
        },
        "along an axis that was cut, the whole index counts as the step": {
            "index[axis] // cut.get(axis, 1)": "index[axis]"
        },
        "the strides belong to the axes in the opposite order": {
            "for (axis, size), stride in zip(parts(layout), strides(dims, layout)):\n"
            "        step = index": (
                "for (axis, size), stride in zip(parts(layout), strides(dims, layout)[::-1]):\n"
                "        step = index"
            )
        },
        "the place of an element in its block does not count": {
            "index[axis] % size if size else": "0 if size else",
        },
        "places are counted as if no axis was cut": {
            "place += step * stride": "place = place * dims[axis] + step",
        },
        "strides of the uncut layout are used in offset": {
            "for (axis, size), stride in zip(parts(layout), strides(dims, layout)):\n"
            "        step = index": (
                "for (axis, size), stride in zip(parts(layout), strides(dims, ''.join(dims))):\n"
                "        step = index"
            )
        },
        "on the way back a block counts as one element of its axis": {
            "step if size else step * cut.get(axis, 1)": "step"
        },
        "on the way back a step inside of a block counts as a whole block": {
            "step if size else step * cut.get(axis, 1)": "step * cut.get(axis, 1)"
        },
        "on the way back the parts of an axis that was cut are not added up": {
            "index[axis] += step if": "index[axis] = step if"
        },
        "on the way back quotient and rest are exchanged": {
            "step, place = divmod": "place, step = divmod"
        },
        "the way back is that of the uncut layout": {
            "    for (axis, size), stride in zip(parts(layout), strides(dims, layout)):\n"
            "        step, place": (
                "    layout = ''.join(dims)\n"
                "    for (axis, size), stride in zip(parts(layout), strides(dims, layout)):\n"
                "        step, place"
            )
        },
    },
    "q3": {
        "elements are counted, not lines": {" // 16": ""},
        "a line is taken to hold 64 elements, not 64 bytes": {" // 16": " // 64"},
        "a line is taken to hold 4 elements": {" // 16": " // 4"},
        "the loop begins at 0, not at the start that was given": {
            "range(start[axis], ends[axis])": "range(ends[axis])"
        },
        "the loop ends one step before the end of the axis": {
            "dims[axis] if axis in loop": "dims[axis] - 1 if axis in loop"
        },
        "the loop makes as many steps as the axis is long, and leaves the tensor": {
            "for axis in dims}": "for axis in dims}\n"
            "    dims = {a: dims[a] + start[a] if a in loop else dims[a] for a in dims}\n"
            "    ends = {a: dims[a] if a in loop else start[a] + 1 for a in dims}"
        },
        "the axes that are not in the loop run, too": {
            "dims[axis] if axis in loop else start[axis] + 1": "dims[axis]"
        },
        "each element is taken to have a line of its own": {
            "return len(touched)": "return prod(ends[a] - start[a] for a in dims)"
        },
        "the elements are taken to lie side by side": {
            "return len(touched)": "return -(-prod(ends[a] - start[a] for a in dims) // 16)"
        },
        "the places are those of the layout NCHW": {"at)), dims, layout)": "at)), dims, 'NCHW')"},
    },
    "q4": {
        "no operator is taken to run at compile time": {"constant.add(node.index)": "pass"},
        "what is computed from constants does not count as constant": {
            " or (node.inputs and constant.issuperset(node.inputs))": ""
        },
        "one constant input is taken to be enough": {
            "constant.issuperset(node.inputs)": "constant.intersection(node.inputs)"
        },
        "an operator without inputs counts as constant": {
            "(node.inputs and constant": "(node.kind != 'input' and constant",
        },
        "inputs of the program count as constant": {
            'node.kind == "constant"': "node.kind in ('constant', 'input')"
        },
        "the second number counts the transforms of constants, not the others": {
            "node.index not in constant": "node.index in constant"
        },
        "only a transform can be constant, no other operator": {
            "(node.inputs and constant": "(node.op == 'layout_transform' and constant",
        },
        "a concatenation counts as a transform": {
            'node.op == "layout_transform"': "node.op in ('layout_transform', 'concatenate')"
        },
    },
    "q5": {
        "SimplifyExpr runs, which changes other operators, too": {
            "    class Cancel": "    return passes.run(module, 'SimplifyExpr')\n\n    class Cancel"
        },
        "no transform is removed": {'is_call(call, "layout_transform") and': "False and"},
        "two transforms that fit are always removed, whatever layout comes out": {
            "return relay.layout_transform(x, begin.src_layout, end.dst_layout)": "return x"
        },
        "two transforms become none when they are inverse, and never one": {
            "return relay.layout_transform(x, begin.src_layout, end.dst_layout)": "return call"
        },
        "two transforms are combined although they do not fit": {
            "if begin.dst_layout == end.src_layout:": "if True:"
        },
        "of two inverse transforms the first one stays": {"return x\n": "return call.args[0]\n"},
        "two inverse transforms become one from a layout to itself": {
            "if begin.src_layout == end.dst_layout:": "if False:"
        },
        "the two layouts of the new transform are exchanged": {
            "(x, begin.src_layout, end.dst_layout)": "(x, end.dst_layout, begin.src_layout)"
        },
        "the arguments of a transform are not rewritten before it is looked at": {
            "call = super().visit_call(call)": "pass"
        },
        "an operator between two transforms is lost": {
            'is_call(call.args[0], "layout_transform")': (
                "is_call(call.args[0], 'layout_transform', 'nn.relu')"
            )
        },
    },
    "q6": {
        "no transform is moved": {"if is_call(moved, *ELEMENTWISE) and": "if False and"},
        "a transform is moved although its result is used elsewhere, too": {
            " and used[call.args[0]] == 1": ""
        },
        "a transform is moved behind operators that are not elementwise": {
            "is_call(moved, *ELEMENTWISE)": "moved.args"
        },
        "the transform is lost behind the operator": {
            "return relay.Call(change.op, [inner], change.attrs)": "return inner"
        },
        "the operator is lost, and only the transform is left": {
            "[inner], change.attrs": "change.args, change.attrs"
        },
        "a transform passes only one operator: the argument is looked at as it was before": {
            "change = moved.args[0]": "change = call.args[0]"
        },
        "a transform is looked for behind the wrong operator": {
            'if is_call(change, "layout_transform"):': "if is_call(change, 'nn.softmax'):",
        },
        "softmax counts as elementwise": {"*ELEMENTWISE)": "*ELEMENTWISE, 'nn.softmax')"},
    },
    "q7": {
        "the axis that is cut into blocks keeps its whole size": {
            "= strides(own_dims, own_layout)": (
                "= [s * (blocks(own_layout)['C'] if k < own_layout.index('C') else 1) "
                "for k, s in enumerate(strides(own_dims, own_layout))]"
            )
        },
        "the strides are in bytes": {
            "= strides(own_dims, own_layout)": (
                "= [4 * stride for stride in strides(own_dims, own_layout)]"
            )
        },
        "a stride is the product of what stands before it": {
            "= strides(own_dims, own_layout)": "= strides(own_dims, own_layout)[::-1]"
        },
        "the block has no stride of its own": {
            "= strides(own_dims, own_layout)": "= strides(own_dims, own_layout)[:-1]"
        },
        "the place is that of the plain order of the axes": {
            "offset(own_index, own_dims, own_layout)": "offset(own_index, own_dims, 'NCHW')"
        },
        "the place is given with its line": {
            "offset(own_index, own_dims, own_layout)": (
                "divmod(offset(own_index, own_dims, own_layout), 16)"
            )
        },
        "the element is sought in the plain order of the axes": {
            "element(own_place, own_dims, own_layout)": "element(own_place, own_dims, 'NCHW')"
        },
        "the element is given by its steps along the axes in memory": {
            "element(own_place, own_dims, own_layout)": (
                "dict(enumerate(element(own_place, own_dims, own_layout).values()))"
            )
        },
        "each channel touches a line of its own": {
            'lines("C", own_index | {"C": 0}, own_dims, own_layout)': 'own_dims["C"]'
        },
        "the channels of a block lie in one line, and each block in another one": {
            'lines("C", own_index | {"C": 0}, own_dims, own_layout)': (
                'float(own_dims["C"] / blocks(own_layout)["C"] + 1)'
            )
        },
    },
}

# Question -> a right answer of another kind.
OTHERS: dict[str, str] = {
    "q1": """
def strides(dims, layout):
    found, stride, cut = [], 1, blocks(layout)
    for axis, size in reversed(parts(layout)):
        found.insert(0, stride)
        stride *= size if size else dims[axis] // cut.get(axis, 1)
    return found
""",
    "q3": """
def lines(loop, start, dims, layout):
    import numpy as np
    places = np.array([0])
    for axis in dims:
        end = dims[axis] if axis in loop else start[axis] + 1
        zero = dict.fromkeys(dims, 0)
        steps = [offset({**zero, axis: i}, dims, layout) for i in range(start[axis], end)]
        places = np.add.outer(places, steps).ravel()
    return len(np.unique(places // 16))
""",
    "q5": """
def cancel(module):
    def is_transform(expr):
        return isinstance(expr, relay.Call) and str(expr.op) == 'Op(layout_transform)'
    def clean(expr):
        if isinstance(expr, relay.Call) and isinstance(expr.op, tvm.ir.Op):
            args = [clean(a) for a in expr.args]
            if is_transform(expr) and is_transform(args[0]):
                a, b = args[0].attrs, expr.attrs
                if str(a.dst_layout) == str(b.src_layout):
                    x = args[0].args[0]
                    if str(a.src_layout) == str(b.dst_layout):
                        return x
                    return relay.layout_transform(x, a.src_layout, b.dst_layout)
            return relay.Call(expr.op, args, expr.attrs)
        if isinstance(expr, relay.Tuple):
            return relay.Tuple([clean(f) for f in expr.fields])
        if isinstance(expr, relay.TupleGetItem):
            return relay.TupleGetItem(clean(expr.tuple_value), expr.index)
        return expr
    main = module['main']
    return relay.Function(main.params, clean(main.body))
""",
}

# Question -> what the public checks may accept -> an answer that does not do what is asked.
CHEATS: dict[str, dict[str, str]] = {
    "q4": {
        "it asks FoldConstant, as the lab's `by_tvm` does": """
def transforms(G):
    return by_tvm(tvm.IRModule.from_expr(G.nodes[-1].expr))
""",
    },
}

# --- hidden checks -------------------------------------------------------------------------------

LAYOUTS = {
    "NCHW": ["NCHW", "NHWC", "NCHW2c", "NCHW4c", "NHWC4c", "CHWN2n", "NCHW2n4c", "NHW4cC", "HWCN"],
    "OIHW": ["OIHW", "HWIO", "OHWI", "OIHW2i4o", "OIHW4o", "IOHW2o2i", "OIHW4i2o"],
    "NCW": ["NCW", "NWC", "NCW4c", "CW2wN"],
    "AB": ["AB", "BA", "AB4b", "BA4a", "AB2a4b"],
    "N": ["N", "N4n"],
}


def sized(random: Generator, axes: str, layout: str, most: int) -> dict[str, int]:
    """Sizes of the axes: multiples of the blocks of the layout, some of them of one block."""
    found = {}
    for axis in axes:
        place = layout.find(axis.lower())
        block = int(layout[place - 1]) if place > 0 else 1
        found[axis] = block * int(random.integers(1, max(most // block, 1) + 1))
    return found


def layouts(random: Generator, count: int, most: int) -> list[Any]:
    """[sizes, layout]: edge cases, then drawn ones."""
    found: list[Any] = [
        [{"N": 1}, "N"],
        [{"N": 4}, "N4n"],
        [{"N": 1, "C": 4, "H": 1, "W": 1}, "NCHW4c"],
        [{"N": 1, "C": 1, "H": 1, "W": 1}, "NHWC"],
        [{"W": 3, "H": 2, "C": 4, "N": 2}, "NCHW2c"],
        [{"N": 3, "C": 16, "H": 2, "W": 5}, "NCHW16c"],
    ]
    for _ in range(count):
        axes = str(random.choice(list(LAYOUTS)))
        layout = str(random.choice(LAYOUTS[axes]))
        found.append([sized(random, axes, layout, most), layout])
    return found


def at_random(random: Generator) -> dict[str, Any]:
    """[index, place, sizes, layout] in large tensors: the first element, the last, others."""
    cases = []
    for dims, layout in layouts(random, 30, 300):
        last = {axis: size - 1 for axis, size in dims.items()}
        index = {axis: int(random.integers(size)) for axis, size in dims.items()}
        place = int(random.integers(prod(dims.values())))
        cases += [[index, place, dims, layout], [last, prod(dims.values()) - 1, dims, layout]]
    return {"cases": cases}


def loops(random: Generator) -> dict[str, Any]:
    """[loop, start, sizes, layout]: no axis, all axes, a start at the end, any order of axes."""
    whole = {"N": 2, "C": 8, "H": 5, "W": 7}
    zero, last = dict.fromkeys(whole, 0), {axis: size - 1 for axis, size in whole.items()}
    cases: list[Any] = [
        ["", zero, whole, "NCHW"],
        ["", last, whole, "NCHW4c"],
        ["NCHW", zero, whole, "NHWC"],
        ["WHCN", zero, whole, "NCHW4c"],
        ["CW", last, whole, "NHWC"],
        ["N", {"N": 3}, {"N": 40}, "N4n"],
        ["W", zero, {"N": 1, "C": 1, "H": 1, "W": 65}, "NCHW"],
        ["W", {**zero, "W": 15}, {"N": 1, "C": 1, "H": 1, "W": 33}, "NCHW"],
    ]
    for dims, layout in layouts(random, 24, 24)[6:]:
        loop = "".join(axis for axis in random.permutation(list(dims)) if random.random() < 0.5)
        start = {axis: int(random.integers(size)) for axis, size in dims.items()}
        cases.append([loop, start, dims, layout])
    return {"cases": [case for case in cases if prod(case[2].values()) < 20_000]}


def long_loops(random: Generator) -> dict[str, Any]:
    """[loop, start, sizes, layout]: one axis of a tensor with far too many elements to store."""
    cases = []
    for layout in ("NCHW", "NHWC", "NCHW4c", "NCHW2n4c"):
        dims = sized(random, "NCHW", layout, 500)
        start = {axis: int(random.integers(size)) for axis, size in dims.items()}
        cases.append([str(random.choice(list(dims))), start, {**dims, "N": 10**4}, layout])
    return {"cases": cases}


def tensor(random: Generator, deep: int) -> str:
    """A Python text of a tensor in NCHW, from x (an input), c (a constant) and r = relay."""
    if deep == 0 or random.random() < 0.15:
        return str(random.choice(["x", "c", "c", "r.zeros((1, 4, 2, 2), 'float32')"]))
    a, b = (tensor(random, deep - 1) for _ in range(2))
    forms = [
        f"back(to({a}))",
        f"back(to({a}))",
        f"back(r.exp(to({a})))",
        f"back(to({a}) + to({b}))",
        f"({a} + {b})",
        f"r.exp({a})",
        f"r.concatenate(r.split({a}, 2, 1).astuple(), 1)",
    ]
    return str(random.choice(forms))


def to_count(random: Generator) -> dict[str, Any]:
    """Texts of programs with transforms of inputs and of constants."""
    edges = [
        "x",
        "r.exp(x)",
        "to(x)",
        "to(c)",
        "back(to(c)) + x",
        "to(x + c)",
        "to(c + c) + to(x)",
        "to(r.zeros((1, 4, 2, 2), 'float32'))",
        "to(r.exp(r.zeros((1, 4, 2, 2), 'float32'))) + to(c)",
        "to(r.zeros((1, 4, 2, 2), 'float32') + c)",
        "to(r.concatenate([c, c], 1)) + to(r.concatenate([c, x], 1))",
        "to(r.split(c, 2, 1)[1]) + to(r.split(x, 2, 1)[1])",
        "(lambda t: t + t)(to(x)) + (lambda t: t * t)(to(c))",
        "r.Tuple([to(c), to(x), to(r.exp(r.exp(c)))])",
        "r.transpose(x, (0, 2, 3, 1)) + to(c)",
        # FoldConstant by itself leaves operators of quantized numbers; the build folds this one.
        "to(r.qnn.op.quantize(c, r.const(0.5), r.const(0), out_dtype='int8'))",
    ]
    drawn = [tensor(random, int(deep)) for deep in random.integers(2, 5, size=16)]
    return {"texts": [*edges, *drawn]}


NAMES = (
    "{'r': relay, 'x': relay.var('x', shape=(1, 4, 2, 2)), "
    "'c': relay.const(np.ones((1, 4, 2, 2), 'float32')), "
    "'to': lambda y: relay.layout_transform(y, 'NCHW', 'NHWC'), "
    "'back': lambda y: relay.layout_transform(y, 'NHWC', 'NCHW')}"
)

ORDERS = ["NCHW", "NHWC", "HWCN", "CNHW"]
ONE = ["nn.relu", "exp", "tanh", "negative", "abs", "nn.softmax"]


INVERSE = [0, 2, 3, 1], [0, 3, 1, 2]


def program(steps: list[list[Any]], results: list[int]) -> str:
    """The text of a function. Value 0 is %x; a step makes a value of earlier ones.

    A step is [operator, value ...], [text with {}, value ...] or [layout, layout, value].
    """
    lines, names = "", ["%x", *(f"%{k}" for k in range(len(steps)))]
    for name, (what, *rest) in zip(names[1:], steps, strict=True):
        if "{}" in what:
            lines += f"{name} = {what.format(*(names[k] for k in rest))};\n"
        elif what[0].isupper():
            layouts = f'src_layout="{what}", dst_layout="{rest[0]}"'
            lines += f"{name} = layout_transform({names[rest[1]]}, {layouts});\n"
        else:
            lines += f"{name} = {what}({', '.join(names[k] for k in rest)});\n"
    result = ", ".join(names[k] for k in results)
    return f"fn (%x: Tensor[(4, 4, 4, 4), float32]) {{\n{lines}({result},) }}"


def rows(random: Generator) -> dict[str, Any]:
    """Texts of programs: transforms in a row and between operators, some used several times."""
    edges: list[Any] = [
        [[], [0]],
        [[["NCHW", "NHWC", 0]], [1]],
        [[["NCHW", "NHWC", 0], ["NHWC", "NCHW", 1]], [2]],
        [[["NCHW", "NHWC", 0], ["NHWC", "NCHW", 1]], [1, 2]],
        [[["NCHW", "NHWC", 0], ["NCHW", "NHWC", 1]], [2]],
        [[["NCHW", "HWCN", 0], ["NHWC", "NCHW", 1]], [2]],
        [[["NCHW", "NHWC", 0], ["NHWC", "HWCN", 1], ["HWCN", "NCHW", 2]], [3]],
        [[["NCHW", "NHWC", 0], ["nn.relu", 1], ["NHWC", "NCHW", 2]], [3]],
        [[["NCHW", "NHWC", 0], ["NHWC", "NCHW", 1], ["add", 1, 1], ["NHWC", "HWCN", 3]], [2, 4]],
        [[["NCHW", "NCHW2c", 0], ["NCHW2c", "NHWC", 1], ["nn.relu", 2]], [3]],
        [[["NCHW", "NCHW4c", 0], ["exp", 1], ["tanh", 2], ["NCHW4c", "NCHW", 3]], [4]],
        [[["NCHW", "NHWC", 0], ["nn.relu", 1]], [1, 2]],
        [[["NCHW", "NHWC", 0], ["nn.relu", 1], ["add", 1, 2]], [3]],
        [[["NCHW", "NHWC", 0], ["nn.relu", 1], ["exp", 2], ["tanh", 2]], [3, 4]],
        [[["NCHW", "NHWC", 0], ["nn.softmax", 1], ["nn.relu", 2], ["NHWC", "NCHW", 3]], [4]],
        [[["NCHW", "NHWC", 0], ["abs", 1], ["NHWC", "NCHW", 2], ["negative", 3]], [4]],
        [[["NCHW", "NHWC", 0], ["add", 1, 1], ["exp", 2]], [3]],
        [[[f"transpose({{}}, axes={axes})", k] for k, axes in enumerate(INVERSE)], [2]],
        [[["NCHW", "NHWC", 0], *([name, k + 1] for k, name in enumerate(2 * ONE[:4]))], [9]],
    ]
    for _ in range(10):
        steps: list[list[Any]] = []
        layouts = ["NCHW"]
        for _ in range(int(random.integers(3, 10))):
            at, b = (len(layouts) - min(int(k), len(layouts)) for k in random.geometric(0.7, 2))
            kind = str(random.choice(["move", "move", "one", "one", "two"]))
            if kind == "move":
                now = layouts[at] if random.random() < 0.8 else str(random.choice(ORDERS))
                target = str(random.choice([layout for layout in ORDERS if layout != now]))
                steps.append([now, target, at])
            else:
                target = layouts[at]
                steps.append([str(random.choice(ONE)), at] if kind == "one" else ["add", at, b])
            layouts.append(target)
        edges.append([steps, [len(steps), int(random.integers(len(steps) + 1))]])
    return {"texts": [program(steps, results) for steps, results in edges]}


def module_of(text: str, lab: Any) -> Any:
    """The typed module of a text."""
    return lab.passes.run(lab.tvm.IRModule.from_expr(lab.relay.parse_expr(text)), [])


def changed_by(lab: Any, text: str, after: Any) -> str:
    """What is wrong with a module made of a program, if it is ill-typed or has other values."""
    inputs = [programs.entries((4, 4, 4, 4))]
    try:
        found = programs.evaluate(after, inputs)
    except WorkbookError:
        return "a program is no longer well-typed after it"
    wanted = programs.evaluate(module_of(text, lab), inputs)
    same = [
        a.shape == b.shape and np.allclose(a, b, rtol=1e-4, atol=1e-4)
        for a, b in zip(found, wanted, strict=True)
    ]
    return "" if all(same) else "a program computes other values after it"


def are_cancelled(value: Any, texts: list[str], lab: Any) -> str:
    """The values; no transform behind one that fits; none from a layout to itself."""
    for text, after in zip(texts, value, strict=True):
        if says := changed_by(lab, text, after):
            return says
        after = lab.passes.run(after, [])
        if lab.in_a_row(None, after):
            return "a transform is left behind one that it fits"
        moves = [node.attrs for node in lab.ir.graph(after).nodes if node.op == "layout_transform"]
        if any(move["src_layout"] == move["dst_layout"] for move in moves):
            return "a transform from a layout to itself is left"
        others, left = (
            {node.op for node in lab.ir.graph(module).calls} - {"layout_transform"}
            for module in (module_of(text, lab), after)
        )
        if others != left:
            return "other operators than transforms were changed"
    return ""


def are_sunk(value: Any, texts: list[str], lab: Any) -> str:
    """The values; no more transforms; none before an elementwise operator that only it uses."""
    for text, after in zip(texts, value, strict=True):
        if says := changed_by(lab, text, after):
            return says
        before, after = module_of(text, lab), lab.passes.run(after, [])
        if lab.counted(after) > lab.counted(before):
            return "there are more transforms than before"
        if lab.waiting(before, after):
            return "an elementwise operator still follows a transform that only it uses"
    return ""


MODULES = "[passes.run(tvm.IRModule.from_expr(relay.parse_expr(text)), []) for text in texts]"

HIDDEN = {
    "q1": [
        Hidden(
            "layouts of one to four axes with no, one and two blocks",
            probe="[strides(dims, layout) for dims, layout in cases]",
            draw=lambda random: {"cases": layouts(random, 40, 5000)},
        ),
    ],
    "q2": [
        Hidden(
            "offset: all elements of small tensors",
            probe=(
                "[[offset(dict(zip(dims, at)), dims, layout) "
                "for at in product(*map(range, dims.values()))] for dims, layout in cases]"
            ),
            draw=lambda random: {"cases": layouts(random, 20, 6)},
        ),
        Hidden(
            "element: all places of small tensors",
            probe=(
                "[[element(place, dims, layout) for place in range(prod(dims.values()))] "
                "for dims, layout in cases]"
            ),
            draw=lambda random: {"cases": layouts(random, 20, 6)},
        ),
        Hidden(
            "both, in large tensors",
            probe=(
                "[[offset(index, dims, layout), element(place, dims, layout)] "
                "for index, place, dims, layout in cases]"
            ),
            draw=at_random,
        ),
    ],
    "q3": [
        Hidden(
            "loops over no, some and all axes, from any start, in any layout",
            probe="[lines(loop, start, dims, layout) for loop, start, dims, layout in cases]",
            draw=loops,
            weight=2,
        ),
        Hidden(
            "loops over one axis of very large tensors",
            probe="[lines(loop, start, dims, layout) for loop, start, dims, layout in cases]",
            draw=long_loops,
        ),
    ],
    "q4": [
        Hidden(
            "transforms of inputs, of constants, and of what is computed from both or from nothing",
            probe=(
                f"[transforms(ir.graph(tvm.IRModule.from_expr(eval(text, {NAMES})))) "
                "for text in texts]"
            ),
            draw=to_count,
        ),
    ],
    "q5": [
        Hidden(
            "transforms in rows, between operators, used twice: the values, and what is left",
            probe=f"[cancel(module) for module in {MODULES}]",
            draw=rows,
            verify=are_cancelled,
        ),
    ],
    "q6": [
        Hidden(
            "operators of all kinds behind transforms: the values, and what is left",
            probe=f"[repeated(sink)(module) for module in {MODULES}]",
            draw=rows,
            verify=are_sunk,
        ),
    ],
    "q7": [
        Hidden("the strides of your layout", probe="list(own_strides)", own=True),
        Hidden("the place of your element", probe="own_offset", own=True),
        Hidden("the element at your place", probe="dict(own_element)", own=True),
        Hidden("the lines of your loop", probe="own_lines", own=True),
    ],
}
