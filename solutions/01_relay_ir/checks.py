"""Lab 01: wrong answers, which the public checks must refuse, and other right ones."""

# Question -> what is wrong with the answer -> which of its texts are replaced by what.
WRONG: dict[str, dict[str, dict[str, str]]] = {
    "q1": {
        "an input is its own operand": {"    return []": "    return [node]"},
        "the operator is an operand": {"list(node.args)": "[x, *node.args]"},
        "operands in reverse": {"list(node.args)": "list(node.args)[::-1]"},
        "equal operands once": {"list(node.args)": "list(dict.fromkeys(node.args))"},
        "tuples forgotten": {"list(node.fields)": "[]"},
        "tuple fields forgotten": {"[node.tuple_value]": "[]"},
        "fields of the tuple behind": {"[node.tuple_value]": "list(node.tuple_value.fields)"},
    },
    "q2": {
        "forgets what it has met": {"if node not in met": "if node not in function.params"},
        "a vertex before its operands": {
            "met.add(node)": "met.add(node); V.append(node)",
            "            V.append(node)\n\n": "\n",
        },
        "asks again for what it has met": {
            "        if node not in met:\n            met.add(node)\n": "        if True:\n",
            "            V.append(node)\n\n": "            V.extend({node} - set(V))\n\n",
        },
        "what looks alike is one": {
            "if node not in met": "if label(node) not in met",
            "met.add(node)": "met.add(label(node))",
        },
        "unused parameters forgotten": {"V = list(function.params)": "V = []"},
        "without the body": {"visit(function.body)": "[visit(n) for n in operands(function.body)]"},
        "only the first operand": {
            "for operand in operands(node)": "for operand in operands(node)[:1]"
        },
    },
    "q3": {
        "each pair once": {"return [": "return list({", "operands(node)]": "operands(node)})"},
        "from consumer to producer": {
            "(place[operand], place[node])": "(place[node], place[operand])"
        },
        "counted from 1": {"enumerate(V)": "enumerate(V, 1)"},
        "one edge per vertex": {"in operands(node)]": "in operands(node)[:1]]"},
    },
    "q4": {
        "lets are not followed": {"while isinstance(result, relay.Let)": "while False"},
        "a second name is followed once": {"return real(value_of[node])": "return value_of[node]"},
        "unused lets are dropped": {"[*value_of.values(), result]": "[result]"},
        "only what a let names": {"[*value_of.values(), result]": "value_of.values()"},
        "equal edges once": {
            "return V, [": "return V, list({",
            "operands(node)]": "operands(node)})",
        },
        "from consumer to producer": {
            "(place[real(operand)], place[node])": "(place[node], place[real(operand)])"
        },
    },
    "q5": {
        "four bytes each": {"np.dtype(kind.dtype).itemsize": "4"},
        "bits": {"np.dtype(kind.dtype).itemsize": "8 * np.dtype(kind.dtype).itemsize"},
        "a scalar has no element": {"elements = int(": "elements = len(kind.shape) and int("},
        "sum of the axes": {"np.prod(": "np.sum("},
        "first field of a tuple only": {"in kind.fields]": "in kind.fields[:1]]"},
    },
    "q6": {
        "a product and a sum are two": {"return int(": "return 2 * int("},
        "groups forgotten": {
            "weights[1:]": "[int(call.args[0].checked_type.shape[1]), *weights[2:]]"
        },
        "input size instead of output size": {
            "in call.checked_type.shape": "in call.args[0].checked_type.shape"
        },
        "conv1d forgotten": {'"nn.conv1d", ': ""},
        "batch_matmul as dense": {
            'weights[-1:] if call.op.name == "nn.batch_matmul" else weights[1:]': "weights[1:]"
        },
        "any operator has weights": {"return 0": "pass"},
        "the window forgotten": {"else weights[1:]": "else weights[1:2]"},
    },
    "q7": {
        "one FLOP per multiply-add": {"2 * macs(call)": "macs(call)"},
        "weighted operators only": {"if call.op.name in ONE_EACH": "if False"},
        "every operator has one FLOP an element": {"if call.op.name in ONE_EACH": "if True"},
        "inputs are parameters": {"relay.Constant)]": "(relay.Constant, relay.Var))]"},
        "bytes for elements": {
            "sum(elements for elements, _ in constants)": "sum(count for _, count in constants)"
        },
        "calls for vertices": {
            '"vertices": len(V)': '"vertices": sum(isinstance(n, relay.Call) for n in V)'
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
