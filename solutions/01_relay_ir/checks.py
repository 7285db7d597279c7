"""Lab 01: wrong answers that the checks must refuse, other right ones, and the hidden checks."""

from typing import Any

from numpy.random import Generator

from helpers.grading.hidden import Hidden

# Question -> what is wrong with the answer -> which of its texts are replaced by what.
WRONG: dict[str, dict[str, dict[str, str]]] = {
    "q1": {
        "an input is given as its own operand, although it has none": {
            "    return []": "    return [node]"
        },
        "the operator is given as an operand, although it is no value of the program": {
            "list(node.args)": "[node.op, *node.args]"
        },
        "the operands are in the opposite order": {"list(node.args)": "list(node.args)[::-1]"},
        "an operand that a call uses twice is given once only": {
            "list(node.args)": "list(dict.fromkeys(node.args))"
        },
        "a tuple is taken to have no operands": {"list(node.fields)": "[]"},
        "a field of a tuple is taken to have no operand": {"[node.tuple_value]": "[]"},
        "the operand of a field is taken to be the fields of the tuple, and not the tuple itself": {
            "[node.tuple_value]": "list(node.tuple_value.fields)"
        },
    },
    "q2": {
        "a vertex is listed again for each path that leads to it": {
            "if node not in met": "if node not in function.params"
        },
        "a vertex comes before its operands": {
            "met.add(node)": "met.add(node); V.append(node)",
            "            V.append(node)\n\n": "\n",
        },
        "the operands of a vertex are visited again each time it is met": {
            "        if node not in met:\n            met.add(node)\n": "        if True:\n",
            "            V.append(node)\n\n": "            V.extend({node} - set(V))\n\n",
        },
        "two vertices that look alike are taken for one": {
            "if node not in met": "if label(node) not in met",
            "met.add(node)": "met.add(label(node))",
        },
        "a parameter that nothing uses is missing, or the parameters do not come first": {
            "V = list(function.params)": "V = []"
        },
        "the body itself is missing": {
            "visit(function.body)": "[visit(n) for n in operands(function.body)]"
        },
        "only the first operand of a vertex is followed": {
            "for operand in operands(node)": "for operand in operands(node)[:1]"
        },
    },
    "q3": {
        "a vertex that uses a value twice has one edge from it, and not two": {
            "return [": "return list({",
            "operands(node)]": "operands(node)})",
        },
        "the edges go from the vertex to its operand, and not the other way": {
            "(place[operand], place[node])": "(place[node], place[operand])"
        },
        "the places in V are counted from 1, and not from 0": {"enumerate(V)": "enumerate(V, 1)"},
        "a vertex has an edge from its first operand only": {
            "in operands(node)]": "in operands(node)[:1]]"
        },
    },
    "q4": {
        "a let is taken for a vertex: the chain of lets is not followed": {
            "while isinstance(result, relay.Let)": "while False"
        },
        "a variable that stands for another variable is followed only once": {
            "return real(value_of[node])": "return value_of[node]"
        },
        "a value whose variable nobody uses is missing": {
            "[*value_of.values(), result]": "[result]"
        },
        "the result behind the last let is missing": {
            "[*value_of.values(), result]": "value_of.values()"
        },
        "a vertex that uses a value twice has one edge from it, and not two": {
            "return V, [": "return V, list({",
            "operands(node)]": "operands(node)})",
        },
        "the edges go from the vertex to its operand, and not the other way": {
            "(place[real(operand)], place[node])": "(place[node], place[real(operand)])"
        },
    },
    "q5": {
        "each element is taken to have 4 bytes, whatever its dtype is": {
            "np.dtype(kind.dtype).itemsize": "4"
        },
        "bits are counted, and not bytes": {
            "np.dtype(kind.dtype).itemsize": "8 * np.dtype(kind.dtype).itemsize"
        },
        "a scalar is taken to have no element": {
            "elements = int(": "elements = len(kind.shape) and int("
        },
        "the axes are added up, and not multiplied": {"np.prod(": "np.sum("},
        "only the first field of a tuple is counted": {"in kind.fields]": "in kind.fields[:1]]"},
    },
    "q6": {
        "a multiply-add is counted as two, a product and a sum": {"return int(": "return 2 * int("},
        "the groups are not taken into account: a filter sees only C/g channels": {
            "weights[1:]": "[int(call.args[0].checked_type.shape[1]), *weights[2:]]"
        },
        "the elements of the input are taken, and not those of the output": {
            "in call.checked_type.shape": "in call.args[0].checked_type.shape"
        },
        "nn.conv1d is taken to have no multiply-adds": {'"nn.conv1d", ': ""},
        "the batch of nn.batch_matmul counts among the products that one output element needs": {
            'weights[-1:] if call.op.name == "nn.batch_matmul" else weights[1:]': "weights[1:]"
        },
        "an operator that is not in the table gets multiply-adds, too": {"return 0": "pass"},
        "the window of the filter is not taken into account": {
            "else weights[1:]": "else weights[1:2]"
        },
    },
    "q7": {
        "a multiply-add is counted as one FLOP, and not as two": {"2 * macs(call)": "macs(call)"},
        "only the operators with weights have FLOPs here": {
            "if call.op.name in ONE_EACH": "if False"
        },
        "every operator is taken to have one FLOP for each element of its result": {
            "if call.op.name in ONE_EACH": "if True"
        },
        "the inputs count as parameters, too": {
            "relay.Constant)]": "(relay.Constant, relay.Var))]"
        },
        "the bytes of the parameters are given, and not their number": {
            "sum(elements for elements, _ in constants)": "sum(count for _, count in constants)"
        },
        "the calls are counted, and not all vertices": {
            '"vertices": len(V)': '"vertices": sum(isinstance(n, relay.Call) for n in V)'
        },
    },
    "q8": {
        "the filters of a convolution are counted as if they had one input channel": {
            "[macs(typed_call(call)) for call": (
                "[macs(typed_call(call)) // (int(call.args[1].data.shape[1]) "
                "if call.op.name == 'nn.conv2d' else 1) for call"
            )
        },
        "the result of the convolution has the size of its input": {
            "[macs(typed_call(call)) for call": (
                "[macs(typed_call(call)) if call.op.name != 'nn.conv2d' else "
                "int(np.prod(call.args[1].data.shape)) "
                "* int(own.params[0].type_annotation.shape[2]) ** 2 for call"
            )
        },
        "a multiply-add is counted as two": {
            "[macs(typed_call(call)) for call": "[2 * macs(typed_call(call)) for call"
        },
        "calls without multiply-adds are listed, too": {" if macs(typed_call(call))": ""},
        "a parameter has one byte": {
            "list(count(own).values())": (
                "list((count(own) | {'bytes': count(own)['parameters']}).values())"
            )
        },
        "the flops are the multiply-adds": {
            "list(count(own).values())": "list((count(own) | {'flops': sum(own_macs)}).values())"
        },
        "elementwise operators are not counted": {
            "list(count(own).values())": (
                "list((count(own) | {'flops': 2 * sum(own_macs)}).values())"
            )
        },
        "constants are no vertices": {
            "list(count(own).values())": (
                "list((count(own) | {'vertices': count(own)['vertices'] - 4}).values())"
            )
        },
        "vertices and edges are left out": {
            "list(count(own).values())": "list(count(own).values())[2:]"
        },
    },
}

# Question -> a right answer of another kind.
OTHERS: dict[str, str] = {
    "q1": """
def operands(node):
    return getattr(node, "args", None) or getattr(node, "fields", None) or (
        [node.tuple_value] if hasattr(node, "tuple_value") else ())
""",
    "q2": """
def vertices(function):
    found = list(function.params)
    relay.analysis.post_order_visit(function.body, lambda e: found.append(e)
        if e not in function.params and not isinstance(e, tvm.ir.Op) else None)
    return found
""",
    "q3": """
def edges(V):
    return [(i, j) for j, node in enumerate(V) for o in operands(node)
            for i, other in enumerate(V) if other == o][::-1]
""",
    "q4": """
def extract(function):
    graph = ir.graph(function)
    return [node.expr for node in graph.nodes], [list(edge) for edge in graph.edges]
""",
    "q5": """
def size(kind):
    if hasattr(kind, "fields"):
        return list(np.sum([size(field) for field in kind.fields], axis=0))
    elements = np.prod([int(n) for n in kind.shape])
    return [elements, np.dtype(kind.dtype).itemsize * elements]
""",
    "q6": """
def macs(call):
    if call.op.name.startswith("nn.conv"):
        one = call.args[1].checked_type.shape[1:]
    elif call.op.name == "nn.dense" or call.op.name == "nn.batch_matmul":
        one = call.args[0].checked_type.shape[-1:]
    else:
        return 0
    return np.prod([int(n) for n in [*one, *call.checked_type.shape]])
""",
}

# --- hidden checks -------------------------------------------------------------------------------


def program(random: Generator, length: int, *, lets: bool = False) -> str:
    """The text of a Relay function of two inputs: sums, products, exp, tanh, pairs and fields."""
    values, pairs, lines = ["%x", "%y"], [], []
    for number in range(length):
        name = f"%v{number}" if lets else f"%{number}"
        kind = random.choice(["exp", "tanh", "add", "multiply", "pair", "field", "same"])
        a, b = (values[int(k)] for k in random.integers(len(values), size=2))
        if kind == "field" and pairs:
            what = f"{pairs[int(random.integers(len(pairs)))]}.{random.integers(2)}"
        elif kind == "pair":
            what = f"({a}, {b})"
        elif kind == "same" and lets:
            what = a
        else:
            what = f"{kind}({a})" if kind in ("exp", "tanh") else f"add({a}, {b})"
        lines.append(f"let {name} = {what};" if lets else f"{name} = {what};")
        (pairs if kind == "pair" else values).append(name)
    return f"fn ({INPUTS}) {{ {' '.join(lines)} subtract({values[-1]}, {values[-2]}) }}"


INPUTS = "%x: Tensor[(1, 8), float32], %y: Tensor[(1, 8), float32]"
EDGE_PROGRAMS = [
    f"fn ({INPUTS}) {{ %x }}",
    f"fn ({INPUTS}) {{ 2f }}",
    f"fn ({INPUTS}) {{ subtract(3f, %y) }}",
    f"fn ({INPUTS}) {{ %0 = exp(%x); %1 = (%0, %0, %y); add(%1.0, %1.2) }}",
]
EDGE_LETS = [
    f"fn ({INPUTS}) {{ let %a = %x; let %b = %a; let %c = %b; add(%c, %a) }}",
    f"fn ({INPUTS}) {{ let %a = exp(%x); let %b = tanh(%a); %y }}",
    f"fn ({INPUTS}) {{ let %a = (%x, %y); let %b = %a.1; %b }}",
]


def programs(random: Generator, count: int = 8, *, lets: bool = False) -> list[str]:
    """Edge cases, then drawn programs of 3 to 14 lines."""
    lengths = random.integers(3, 15, size=count)
    drawn = [
        program(random, int(length), lets=lets and k % 2 == 0) for k, length in enumerate(lengths)
    ]
    return [*EDGE_PROGRAMS, *(EDGE_LETS if lets else ()), *drawn]


def doubled(times: int) -> str:
    """y = y + y, many times."""
    lines = [f"%{k} = add(%{k - 1}, %{k - 1});" for k in range(1, times)]
    return f"fn ({INPUTS}) {{ %0 = add(%x, %x); {' '.join(lines)} %{times - 1} }}"


FUNCTIONS = "[relay.parse_expr(text) for text in texts]"
# Each vertex of V: its label, and the places of its operands in V (-1: not there, or behind).
DESCRIBED = (
    "[[label(n), [next((k for k, v in enumerate(V[:j]) if v == o), -1) for o in "
    "(*getattr(n, 'args', ()), *getattr(n, 'fields', ()), "
    "*([n.tuple_value] if hasattr(n, 'tuple_value') else ()))]] for j, n in enumerate(V)]"
)


def edges_by_label(described: Any) -> list[tuple[str, str]]:
    """What goes into what, whatever the order of the vertices."""
    return sorted((described[o][0], name) for name, operands in described for o in operands)


def are_vertices(value: Any, texts: list[str], lab: Any) -> str:
    """V in any order that puts the parameters first and each vertex after its operands."""
    for text, got in zip(texts, value, strict=True):
        wanted = lab.vertices(lab.relay.parse_expr(text))
        if len(got) != len(wanted):
            return "a program has another number of vertices"
        if sorted(name for name, _ in got) != sorted(lab.labels(wanted)):
            return "the vertices are other ones"
        if [name for name, _ in got[:2]] != ["%x", "%y"]:
            return "the parameters do not come first"
        if any(place == -1 for _, operands in got for place in operands):
            return "a vertex does not come after its operands"
    return ""


def is_graph(value: Any, texts: list[str], lab: Any) -> str:
    """(V, E) in any order that puts the parameters first and each vertex after its operands."""
    for text, (names, edges) in zip(texts, value, strict=True):
        V, E = lab.extract(lab.relay.parse_expr(text))
        wanted = lab.labels(V)
        if sorted(names) != sorted(wanted):
            return "the vertices are other ones"
        if names[:2] != ["%x", "%y"]:
            return "the parameters do not come first"
        if len(edges) != len(E):
            return "a program has another number of edges"
        if any(i >= j for i, j in edges):
            return "a vertex does not come after its operands"
        if sorted((names[i], names[j]) for i, j in edges) != sorted(
            (wanted[i], wanted[j]) for i, j in E
        ):
            return "the edges are other ones"
    return ""


def types(random: Generator) -> list[Any]:
    """Shapes and dtypes: scalars, an empty axis, more than 2 ** 31 elements, drawn ones."""
    dtypes = ["bool", "int8", "float16", "float32", "int64", "uint16"]
    drawn = [
        [random.integers(1, 12, size=int(random.integers(6))).tolist(), str(random.choice(dtypes))]
        for _ in range(10)
    ]
    return [[[], "float32"], [[3, 0, 2], "int8"], [[1 << 16, 1 << 17], "float16"], *drawn]


TYPE = "relay.TensorType(tuple(shape), dtype)"


def convolutions(random: Generator) -> list[Any]:
    """[data, weights, settings] of valid calls of nn.conv2d."""
    found: list[Any] = [[[1, 1, 1, 1], [1, 1, 1, 1], {}]]
    for _ in range(6):
        groups = int(random.choice([1, 1, 2, 4]))
        channels, filters = (groups * int(random.integers(1, 4)) for _ in range(2))
        window = random.integers(1, 4, size=2).tolist()
        size = random.integers(4, 10, size=2).tolist()
        stride = int(random.integers(1, 3))
        data = [int(random.integers(1, 4)), channels, *size]
        settings = {"groups": groups, "strides": [stride, stride], "padding": [1, 1]}
        found.append([data, [filters, channels // groups, *window], settings])
    return found


def others(random: Generator) -> list[Any]:
    """[operator, first shape, second shape, settings] of the calls that are no conv2d."""
    n, k, m, b = (int(v) for v in random.integers(2, 9, size=4))
    return [
        ["dense", [n, k], [m, k], {"units": m}],
        ["dense", [1, 1], [1, 1], {"units": 1}],
        ["batch_matmul", [b, n, k], [b, m, k], {}],
        [
            "conv1d",
            [n, 2 * k, 12],
            [2 * m, k, 3],
            {"channels": 2 * m, "kernel_size": 3, "groups": 2},
        ],
        ["matmul", [n, k], [k, m], {}],
        ["bias_add", [n, m], [m], {}],
    ]


def networks(random: Generator) -> list[str]:
    """Small networks as text; weights begin with w."""
    found = []
    for _ in range(4):
        k, m, rows = (int(v) for v in random.integers(2, 9, size=3))
        kind = str(random.choice(["nn.relu", "sigmoid", "exp", "nn.softmax"]))
        found.append(
            f"fn (%x: Tensor[({rows}, {k}), float32], %w: Tensor[({m}, {k}), float32], "
            f"%w1: Tensor[({m}), float32]) {{ %0 = nn.dense(%x, %w, units={m}); "
            f"%1 = nn.bias_add(%0, %w1); %2 = {kind}(%1); %3 = add(%2, %1); "
            f"%4 = (%3, %0); %5 = concatenate(%4, axis=1); multiply(%5, 2f) }}"
        )
    return found


BOUND = (
    "relay.build_module.bind_params_by_name(f, {p.name_hint: np.ones("
    "[int(axis) for axis in p.type_annotation.shape], p.type_annotation.dtype) "
    "for p in f.params if p.name_hint.startswith('w')})"
)

HIDDEN = {
    "q1": [
        Hidden(
            "the operands of all vertices of several programs",
            probe="[[labels(operands(node.expr)) for node in ir.graph(f).nodes] "
            f"for f in {FUNCTIONS}]",
            draw=lambda random: {"texts": programs(random)},
        ),
    ],
    "q2": [
        Hidden(
            "V of several programs, with shared values, tuples and unused inputs",
            probe=f"[{DESCRIBED} for V in map(vertices, {FUNCTIONS})]",
            draw=lambda random: {"texts": programs(random)},
            verify=are_vertices,
            weight=2,
        ),
        Hidden(
            "|V| of y = y + y, many times",
            probe="len(vertices(relay.parse_expr(text)))",
            draw=lambda random: {"text": doubled(int(random.integers(40, 60)))},
            timeout=10,
        ),
    ],
    "q3": [
        Hidden(
            "E of several programs",
            probe="[sorted(map(list, edges([node.expr for node in ir.graph(f).nodes]))) "
            f"for f in {FUNCTIONS}]",
            draw=lambda random: {"texts": programs(random)},
        ),
    ],
    "q4": [
        Hidden(
            "V and E of several programs, in graph form and with let",
            probe=f"[[labels(V), list(map(list, E))] for V, E in map(extract, {FUNCTIONS})]",
            draw=lambda random: {"texts": programs(random, lets=True)},
            verify=is_graph,
            weight=2,
        ),
        Hidden(
            "(|V|, |E|) of y = y + y, many times, in A-normal form",
            probe="[len(part) for part in extract(with_let(relay.parse_expr(text)))]",
            draw=lambda random: {"text": doubled(int(random.integers(40, 60)))},
            timeout=10,
        ),
    ],
    "q5": [
        Hidden(
            "tensors of rank 0 to 5, with an empty axis, with many elements",
            probe=f"[list(size({TYPE})) for shape, dtype in cases]",
            draw=lambda random: {"cases": types(random)},
        ),
        Hidden(
            "tuples, and tuples in tuples",
            probe="[list(size(relay.TupleType([fields[0], relay.TupleType(fields)]))) "
            f"for fields in [[{TYPE} for shape, dtype in part] for part in cases]]",
            draw=lambda random: {"cases": [types(random)[:2], types(random)[4:8]]},
        ),
    ],
    "q6": [
        Hidden(
            "convolutions with groups, strides and padding",
            probe="[macs(conv2d(tuple(data), tuple(weights), **settings)) "
            "for data, weights, settings in cases]",
            draw=lambda random: {"cases": convolutions(random)},
            weight=2,
        ),
        Hidden(
            "the other operators of the table, and some that are not in it",
            probe="[macs(named(getattr(relay.nn, name), a, b, **settings)) "
            "for name, a, b, settings in cases]",
            draw=lambda random: {"cases": others(random)},
            weight=2,
        ),
    ],
    "q7": [
        Hidden(
            "small networks with weights inside",
            probe=f"[count({BOUND}) for f in {FUNCTIONS}]",
            draw=lambda random: {"texts": networks(random)},
        ),
        Hidden("a real model", probe="count(zoo.load('voice_activity').module['main'])"),
    ],
    "q8": [
        Hidden("the multiply-adds of your network", probe="list(own_macs)", own=True),
        Hidden("the five numbers of your network", probe="list(own_counts)", own=True),
    ],
}
