"""Lab 06: wrong answers, which the public checks must refuse, and other right ones."""

# Question -> what is wrong with the answer -> which of its texts are replaced by what.
WRONG: dict[str, dict[str, dict[str, str]]] = {
    "q1": {
        "innermost first": {"for k in range(len(extents))]": "for k in range(len(extents))][::-1]"},
        "the own extent counts": {"extents[k + 1 :]": "extents[k:]"},
        "products of what is outside": {"extents[k + 1 :]": "extents[:k]"},
        "strides of one axis less": {"range(len(extents))": "range(len(extents) - 1)"},
        "the cut axis keeps its size": {" // cut.get(axis, 1)": ""},
        "always NCHW": {"size in parts(layout)]": "size in parts(''.join(dims))]"},
    },
    "q2": {
        "groups and places in a group exchanged": {
            "index[axis] % size if size else index[axis] // cut.get(axis, 1)": (
                "index[axis] // size if size else index[axis] % cut.get(axis, 10**6)"
            )
        },
        "the cut axis steps as far as its index": {
            "index[axis] // cut.get(axis, 1)": "index[axis]"
        },
        "innermost first": {
            "for (axis, size), stride in zip(parts(layout), strides(dims, layout)):\n"
            "        step = index": (
                "for (axis, size), stride in zip(parts(layout), strides(dims, layout)[::-1]):\n"
                "        step = index"
            )
        },
        "blocks are forgotten": {
            "index[axis] % size if size else": "0 if size else",
        },
        "strides of the other order": {
            "place += step * stride": "place = place * dims[axis] + step",
        },
        "in the order of dims": {
            "for (axis, size), stride in zip(parts(layout), strides(dims, layout)):\n"
            "        step = index": (
                "for (axis, size), stride in zip(parts(layout), strides(dims, ''.join(dims))):\n"
                "        step = index"
            )
        },
        "a step along the cut axis counts once": {
            "step if size else step * cut.get(axis, 1)": "step"
        },
        "a step in a block counts as many": {
            "step if size else step * cut.get(axis, 1)": "step * cut.get(axis, 1)"
        },
        "the last one counts": {"index[axis] += step if": "index[axis] = step if"},
        "quotient and rest exchanged": {"step, place = divmod": "place, step = divmod"},
        "the way back is that of NCHW": {
            "    for (axis, size), stride in zip(parts(layout), strides(dims, layout)):\n"
            "        step, place": (
                "    layout = ''.join(dims)\n"
                "    for (axis, size), stride in zip(parts(layout), strides(dims, layout)):\n"
                "        step, place"
            )
        },
    },
    "q3": {
        "elements instead of lines": {" // 16": ""},
        "lines of 64 elements": {" // 16": " // 64"},
        "bytes are forgotten on one side": {" // 16": " // 4"},
        "from the beginning": {"range(start[axis], ends[axis])": "range(ends[axis])"},
        "the loop ends one early": {"dims[axis] if axis in loop": "dims[axis] - 1 if axis in loop"},
        "as many steps as the axis is long": {
            "for axis in dims}": "for axis in dims}\n"
            "    dims = {a: dims[a] + start[a] if a in loop else dims[a] for a in dims}\n"
            "    ends = {a: dims[a] if a in loop else start[a] + 1 for a in dims}"
        },
        "the other axes run, too": {
            "dims[axis] if axis in loop else start[axis] + 1": "dims[axis]"
        },
        "a line for each element": {
            "return len(touched)": "return prod(ends[a] - start[a] for a in dims)"
        },
        "elements divided by 16": {
            "return len(touched)": "return -(-prod(ends[a] - start[a] for a in dims) // 16)"
        },
        "always NCHW": {"at)), dims, layout)": "at)), dims, 'NCHW')"},
    },
    "q4": {
        "none is constant": {"constant.add(node.index)": "pass"},
        "operators on constants are not constant": {
            " or (node.inputs and constant.issuperset(node.inputs))": ""
        },
        "one constant input is enough": {
            "constant.issuperset(node.inputs)": "constant.intersection(node.inputs)"
        },
        "all of nothing": {
            "(node.inputs and constant": "(node.kind != 'input' and constant",
        },
        "inputs are constant": {'node.kind == "constant"': "node.kind in ('constant', 'input')"},
        "the constant ones": {"node.index not in constant": "node.index in constant"},
        "only a transform right behind a constant": {
            "(node.inputs and constant": "(node.op == 'layout_transform' and constant",
        },
        "any change of shape": {
            'node.op == "layout_transform"': "node.op in ('layout_transform', 'concatenate')"
        },
    },
    "q5": {
        "nothing": {'is_call(call, "layout_transform") and': "False and"},
        "always none": {
            "return relay.layout_transform(x, begin.src_layout, end.dst_layout)": "return x"
        },
        "inverse pairs only": {
            "return relay.layout_transform(x, begin.src_layout, end.dst_layout)": "return call"
        },
        "any two": {"if begin.dst_layout == end.src_layout:": "if True:"},
        "one too many": {"return x\n": "return call.args[0]\n"},
        "never none": {"if begin.src_layout == end.dst_layout:": "if False:"},
        "the layouts exchanged": {
            "(x, begin.src_layout, end.dst_layout)": "(x, end.dst_layout, begin.src_layout)"
        },
        "from the outside": {"call = super().visit_call(call)": "pass"},
        "any operator before": {
            'is_call(call.args[0], "layout_transform")': (
                "is_call(call.args[0], 'layout_transform', 'nn.relu')"
            )
        },
    },
    "q6": {
        "nothing": {"if is_call(moved, *ELEMENTWISE) and": "if False and"},
        "used elsewhere, too": {" and used[call.args[0]] == 1": ""},
        "every operator": {"is_call(moved, *ELEMENTWISE)": "moved.args"},
        "the transform is lost": {
            "return relay.Call(change.op, [inner], change.attrs)": "return inner"
        },
        "the operator is lost": {"[inner], change.attrs": "change.args, change.attrs"},
        "one operator only": {"change = moved.args[0]": "change = call.args[0]"},
        "any operator before": {
            'if is_call(change, "layout_transform"):': "if is_call(change, 'nn.softmax'):",
        },
        "softmax, too": {"*ELEMENTWISE)": "*ELEMENTWISE, 'nn.softmax')"},
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
