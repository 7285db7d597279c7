"""Lab 08: wrong answers that the checks must refuse, other right ones, and the hidden checks."""

import json
from collections.abc import Callable
from typing import Any

from numpy.random import Generator

from helpers.grading.hidden import Hidden, Inputs

# Question -> what is wrong with the answer -> which of its texts are replaced by what.
WRONG: dict[str, dict[str, dict[str, str]]] = {
    "q1": {
        "the names of the nodes are listed, not the kernels that they call": {
            'node["attrs"]["func_name"] for': 'node["name"] for'
        },
        "inputs and weights are listed as kernels": {
            ' if node["op"] == "tvm_op"]': "]",
            '["attrs"]["func_name"] for': ('.get("attrs", {}).get("func_name", node["name"]) for'),
        },
        "a reshape that moves nothing is listed as a kernel": {' if name != "__nop"': ""},
        "the kernels of the VM are listed, not its calls of them": {
            'names[int(number)] for number in re.findall(r"PackedFunc\\[(\\d+)\\]", text)': (
                "name for name in names"
            )
        },
        "each kernel is listed once, however often it is called": {
            "return [name for name in short": "return [name for name in dict.fromkeys(short)"
        },
        "the calls are in the order of their names, not of the artefact": {
            "for name in short if": "for name in sorted(short) if"
        },
        "each name with the prefix is taken for a call, the entry function's own too": {
            'call_cpacked\\("(\\w+)"': "(tvmgen_default_\\w+)"
        },
        "the prefix of the VM's kernels stays": {'.removeprefix("vm_mod_")': ""},
        "the prefix of the kernels of graph and AOT stays": {
            '.removeprefix("tvmgen_default_")': ""
        },
        "the numbers of the VM's kernels are listed, not their names": {
            "names[int(number)] for": "number for"
        },
        "the VM's kernels are counted from 1": {
            "names[int(number)] for": "names[int(number) - 1] for"
        },
        "a flatten is left out where a kernel is called for it": {
            'if name != "__nop"': 'if name not in ("__nop", "fused_nn_batch_flatten")'
        },
    },
    "q2": {
        "a let is taken for a choice": {
            '["list", "let", "two results"]': '["list", "two results"]',
            '"where": every': ('"let": flexible, "where": every'),
        },
        "two results are taken for more than a list of kernels can give": {
            '["list", "let", "two results"]': '["list", "let"]',
            '"where": every': ('"two results": flexible, "where": every'),
        },
        "the code of AOT is taken for one that can branch": {
            '"choice": flexible': '"choice": {*flexible, "aot"}'
        },
        "the interpreter is left out where the others run a program": {
            'every = {"graph", "aot", *flexible}': 'every = {"graph", "aot", "vm"}'
        },
        "a where is taken for an if": {'"where": every': '"where": flexible'},
        "an if is taken for a where, which computes both": {
            '"choice": flexible': '"choice": every'
        },
        "a loop is taken for a long list of kernels": {'"loop": flexible': '"loop": every'},
        "a closure is taken for a function whose body is put in its place": {
            '"closure": flexible': '"closure": every'
        },
        "a build for one length is taken for one for any length": {
            '"any length": flexible': '"any length": every'
        },
        "the interpreter is taken to need shapes that are known": {
            '"any length": flexible': '"any length": {"vm"}'
        },
        "a known shape of the input is taken for a known shape of the result": {
            '"argwhere": flexible': '"argwhere": every'
        },
        "a shape that is found at run time is left to the interpreter alone": {
            '"argwhere": flexible': '"argwhere": {"interpreter"}'
        },
        "the VM is taken to have instructions for references": {
            '"reference": {"interpreter"}': '"reference": flexible'
        },
        "references are taken to run nowhere": {
            '"reference": {"interpreter"}': '"reference": set()'
        },
    },
    "q3": {
        "each process compiles although the artefact is shared": {
            '"shared": 1': '"shared": processes'
        },
        "one process compiles for all although nothing is saved": {
            '"none": processes': '"none": 1'
        },
        "a kept artefact is compiled once more": {'"kept": 0': '"kept": 1'},
        "a process that finds a kept artefact starts for nothing": {
            "one = startup +": 'one = (startup if artefact != "kept" else 0) +'
        },
        "startup counts once, not for each process": {
            "+ processes * one": "+ startup + processes * (one - startup)"
        },
        "each process answers all requests, not its share": {
            "requests / processes / batch": "requests / batch"
        },
        "the time of one process counts, not that of all": {"processes * one": "one"},
        "an inference of a batch takes as long as one of a single request": {
            "inferences * factor * infer": "inferences * infer"
        },
        "the factor is taken for each request of a batch, not for the inference": {
            "inferences * factor * infer": "inferences * batch * factor * infer"
        },
        "the requests of the last, smaller batch are not answered": {
            "ceil(requests / processes / batch)": "requests // processes // batch"
        },
        "a smaller last batch takes a part of the time": {
            "ceil(requests / processes / batch)": "requests / processes / batch"
        },
        "batches are made of the requests of all processes together": {
            "ceil(requests / processes / batch)": "ceil(requests / batch) / processes"
        },
        "the first inference is taken for a part of startup": {
            "ceil(requests / processes / batch)": "ceil((requests / processes - 1) / batch)"
        },
        "warming up takes no time": {"warmup + ceil": "ceil"},
        "the inferences of the warm-up answer requests": {"warmup + ceil": "-warmup + ceil"},
        "an inference of the warm-up is taken without its factor": {
            "warmup + ceil": "warmup / factor + ceil",
        },
        "each request has an inference of its own, batches or not": {"/ batch)": ")"},
    },
    "q4": {
        "compile and startup are added up to one term": {
            '("compile", compile) if compile >= startup else ("startup", startup)': (
                '("compile", compile + startup)'
            )
        },
        "compile is taken for larger than startup, whatever they are": {
            '("compile", compile) if compile >= startup else ("startup", startup)': (
                '("compile", compile)'
            )
        },
        "startup counts although compile is as large and comes earlier": {
            "compile >= startup": "compile > startup"
        },
        "infer counts although a term that comes earlier is as large": {
            "fixed // infer": "(fixed - 1) // infer"
        },
        "the last N of the first range is rounded up": {"fixed // infer": "-(-fixed // infer)"},
        "one N is in two ranges": {'("infer", last + 1, None)': '("infer", last, None)'},
        "a range without any N is in the list": {"if last >= 1 else []": "if True else []"},
        "the last range has an end": {'("infer", last + 1, None)': '("infer", last + 1, 10**6)'},
        "N begins with 0": {"(name, 1, last)": "(name, 0, last)"},
    },
    "q5": {
        "weights grow with the batch": {
            'size if nodes[source]["name"] in weights else batch * size': "batch * size"
        },
        "no tensor grows with the batch": {
            ' if nodes[source]["name"] in weights else batch * size': ""
        },
        "reading weights is taken for free": {"size if nodes[source]": "0 if nodes[source]"},
        "the inputs of the model are taken for weights": {
            'nodes[source]["name"] in weights': 'nodes[source]["op"] == "null"'
        },
        "what kernels write is not counted": {"in reads + writes": "in reads"},
        "what kernels read is not counted": {"in reads + writes": "in writes"},
        "a reshape that moves nothing is counted": {
            ' or node["attrs"]["func_name"] == "__nop"': ""
        },
        "each number is taken for one of four bytes": {"np.dtype(dtypes[place]).itemsize": "4"},
        "each node is taken to have one result": {"range(rows[k], rows[k + 1])": "(rows[k],)"},
        "the number of a node is taken for its place in the columns": {
            "rows[source] + result": "source + result"
        },
        "what another kernel has written is read for free": {
            "in reads + writes": ('in writes + [p for p in reads if nodes[p[0]]["op"] == "null"]')
        },
        "numbers are counted, not their bytes": {" * np.dtype(dtypes[place]).itemsize": ""},
    },
}

# Question -> a right answer of another kind.
OTHERS: dict[str, str] = {
    "q1": """
def calls(kind, text, names):
    prefix = {"graph": "tvmgen_default_", "aot": "tvmgen_default_", "vm": "vm_mod_"}[kind]
    if kind == "graph":
        kernels = []
        for node in json.loads(text)["nodes"]:
            kernels.append(node.get("attrs", {}).get("func_name", "__nop"))
    elif kind == "aot":
        kernels = [part.split('"')[0] for part in text.split('call_cpacked("')[1:]]
    else:
        kernels = [names[int(part.split("]")[0])] for part in text.split("PackedFunc[")[1:]]
    return [kernel[len(prefix):] for kernel in kernels if kernel != "__nop"]
""",
    "q3": """
def total(compile, startup, infer, requests, artefact, processes, batch, factor, warmup):
    share = requests // processes
    runs = warmup + share // batch + (share % batch > 0)
    bill = processes * (startup + runs * infer * factor)
    if artefact == "none":
        bill += processes * compile
    elif artefact == "shared":
        bill += compile
    return bill
""",
    "q4": """
def largest(compile, startup, infer):
    fixed, n = max(compile, startup), 1
    n += fixed // infer
    name = "startup" if startup > compile else "compile"
    ranges = [(name, 1, n - 1), ("infer", n, None)]
    return ranges if n > 1 else ranges[1:]
""",
    "q5": """
def moved(graph, weights, batch):
    size = [
        prod(shape) * np.dtype(dtype).itemsize
        for shape, dtype in zip(graph["attrs"]["shape"][1], graph["attrs"]["dltype"][1])
    ]
    start, fixed, growing = graph["node_row_ptr"], 0, 0
    for k, node in enumerate(graph["nodes"]):
        if node.get("attrs", {}).get("func_name", "__nop") != "__nop":
            growing += sum(size[start[k] : start[k + 1]])
            for source, result, _ in node["inputs"]:
                if graph["nodes"][source]["name"] in weights:
                    fixed += size[start[source] + result]
                else:
                    growing += size[start[source] + result]
    return fixed + batch * growing
""",
}

# Question -> what the public checks may accept -> an answer that does not do what is asked.
CHEATS: dict[str, dict[str, str]] = {
    "q2": {
        "it tries all programs": """
def executors():
    kinds = "graph", "aot", "vm", "interpreter"
    return {name: {kind for kind in kinds if runs(name, kind)} for name in ten}
""",
    },
}

# --- hidden checks -------------------------------------------------------------------------------

NAMES = ["exp", "tanh", "add", "nn_relu", "nn_softmax", "nn_contrib_dense_pack_exp", "mean"]


def called(random: Generator) -> list[str]:
    """Kernels that an artefact calls, some of them more than once, in no order."""
    names = [f"fused_{random.choice(NAMES)}{random.choice(['', '_1', '_2'])}" for _ in range(5)]
    names += ["fused_nn_batch_flatten", str(random.choice(names))]
    return [names[int(k)] for k in random.permutation(len(names))]


def graph_text(random: Generator) -> str:
    """A graph JSON: inputs and reshapes between kernels, and names of nodes with numbers."""
    nodes: list[dict[str, Any]] = [{"op": "null", "name": "x", "inputs": []}]
    for place, kernel in enumerate(["__nop", *called(random), "__nop"]):
        if random.random() < 0.4:
            nodes.append({"op": "null", "name": f"p{place}", "inputs": []})
        function = kernel if kernel == "__nop" else f"tvmgen_default_{kernel}"
        name = "reshape_nop" if kernel == "__nop" else f"{function}_{place}"
        attributes = {"num_outputs": "1", "func_name": function, "hash": f"{place:016x}"}
        nodes.append({"op": "tvm_op", "name": name, "attrs": attributes, "inputs": [[0, 0, 0]]})
    return json.dumps({"nodes": nodes, "heads": [[len(nodes) - 1, 0, 0]]})


def aot_text(random: Generator) -> str:
    """An entry function of AOT in TIR."""
    lines = [
        "@T.prim_func",
        "def tvmgen_default___tvm_main__(x: T.handle, output: T.handle):",
        '    x_buffer = T.match_buffer(x, (2, 8), align=16)  # "tvmgen_default_fused_none"',
        '    sid_1 = T.allocate([64], "int8", "global.workspace")',
    ]
    for kernel in called(random):
        array = 'T.tvm_stack_make_array(sid_1, 0, T.reinterpret("handle", T.uint64(0)), 2)'
        lines.append(f'    T.call_cpacked("tvmgen_default_{kernel}", {array}, {array})')
    return "\n".join(lines)


def vm_text(random: Generator) -> tuple[str, list[str]]:
    """Bytecode of two functions, and the kernels in an order of their own, one never called."""
    calls = called(random)
    different = sorted({*calls, "fused_never"})
    kernels = [different[int(k)] for k in random.permutation(len(different))]
    lines = ["VM Function[0]: main(x)", "# reg file size = 9", "opcode, fields # inst(text):"]
    for place, kernel in enumerate(calls):
        if place == 4:
            lines += ["", "VM Function[1]: lifted_name7(x)", "opcode, fields # inst(text):"]
        number = kernels.index(kernel)
        lines += [
            f" {3 * place}: 11 {place} 0 2      # load_const $2 Const[{place}] 0",
            f" {3 * place + 1}: 4 {number} 2 1 2 3   "
            f"# invoke_packed PackedFunc[{number}] (in: $2, out: $3)",
            f" {3 * place + 2}: 20 2             # kill_register $2",
        ]
    return "\n".join(lines), [f"vm_mod_{kernel}" for kernel in kernels]


def texts(random: Generator, make: Callable[[Generator], Any]) -> Inputs:
    """Four artefacts of one kind."""
    return {"cases": [make(random) for _ in range(4)]}


def services(random: Generator) -> list[Any]:
    """Arguments of total with batches and warm-up: edge cases, then drawn ones."""
    found: list[Any] = [
        [7_000, 300, 20, 1, "none", 1, 1, 1, 0],
        [7_000, 300, 20, 5, "none", 5, 8, 3, 2],
        [0, 0, 1, 12, "shared", 3, 4, 4, 0],
        [9_000, 500, 10, 24, "kept", 2, 12, 5, 1],
        [9_000, 500, 10, 26, "shared", 2, 12, 5, 7],
    ]
    for _ in range(40):
        processes = int(random.integers(1, 9))
        found.append(
            [
                *(int(random.integers(most)) for most in (9_000_000, 5_000_000)),
                int(random.integers(1, 900)),
                processes * int(random.integers(1, 200)),
                str(random.choice(["kept", "shared", "none"])),
                processes,
                *random.integers(1, 17, size=2).tolist(),
                int(random.choice([0, 0, 1, 40])),
            ]
        )
    return found


def one_by_one(random: Generator) -> list[Any]:
    """The same services, with neither batches nor warm-up."""
    return [[*service[:6], 1, 1, 0] for service in services(random)]


def plain_bills(random: Generator) -> list[list[int]]:
    """Arguments of largest without ties, and with an inference shorter than another term."""
    found = []
    for _ in range(20):
        infer = int(random.integers(2, 50))
        terms = infer * random.permutation(40)[:2] + random.integers(1, infer, size=2)
        found.append([*terms.tolist(), infer] if max(terms) > infer else [infer + 1, 0, infer])
    return found


def bills(random: Generator) -> list[list[int]]:
    """Arguments of largest: ties, terms of 0, one inference above all; then drawn ones."""
    found = [[0, 0, 1], [5, 5, 5], [6, 6, 7], [0, 8, 3], [9, 0, 3], [8, 9, 9], [10**12, 1, 7]]
    for _ in range(30):
        infer = int(random.integers(1, 50))
        found.append([*random.integers(600, size=2).tolist(), infer])
        fixed = infer * int(random.integers(1, 20))  # equal for this N
        smaller = int(random.integers(fixed + 1))
        found.append([fixed, smaller, infer] if random.random() < 0.5 else [smaller, fixed, infer])
    return found


def graph(random: Generator, plain: bool = False) -> list[Any]:
    """[graph JSON, weights, batch]: kernels with one or two results, weights, reshapes.

    A plain one has kernels with one result of float32, and no reshapes.
    """
    nodes: list[Any] = [{"op": "null", "name": "x", "inputs": []}]
    rows, weights = [0, 1], ["unused"]
    shapes: list[list[int]] = [[1, 12]]
    dtypes = [str(random.choice(DTYPES[:1] if plain else DTYPES))]
    live = [[0, 0]]  # results that a kernel may read
    for place in range(int(random.integers(3, 9))):
        read = [live[int(k)] for k in random.permutation(len(live))[: int(random.integers(1, 3))]]
        if random.random() < 0.5:
            name = f"p{place}"
            weights.append(name)
            nodes.append({"op": "null", "name": name, "inputs": []})
            rows.append(rows[-1] + 1)
            shapes.append(random.integers(1, 9, size=int(random.integers(3))).tolist())
            dtypes.append(str(random.choice(DTYPES[:1] if plain else DTYPES)))
            read.append([len(nodes) - 1, 0])
        number, reshape = len(nodes), not plain and random.random() < 0.3
        if reshape:
            (source, result) = read[0]
            read, shape = read[:1], shapes[rows[source] + result]
            results = [([*shape, 1], dtypes[rows[source] + result])]
        else:
            results = [
                (
                    [1, *random.integers(1, 9, size=2).tolist()],
                    str(random.choice(DTYPES[:1] if plain else DTYPES)),
                )
                for _ in range(1 if plain else int(random.integers(1, 3)))
            ]
        function = "__nop" if reshape else f"tvmgen_default_fused_{place}"
        attributes = {"num_outputs": str(len(results)), "func_name": function}
        inputs = [[source, result, 0] for source, result in read]
        nodes.append({"op": "tvm_op", "name": f"{function}_{place}", "inputs": inputs})
        nodes[-1]["attrs"] = attributes
        rows.append(rows[-1] + len(results))
        for result, (shape, dtype) in enumerate(results):
            shapes.append(shape)
            dtypes.append(dtype)
            live.append([number, result])
    columns = {"shape": ["list_shape", shapes], "dltype": ["list_str", dtypes]}
    made = {"nodes": nodes, "node_row_ptr": rows, "attrs": columns}
    return [made, weights, int(random.choice([1, 2, 7, 64]))]


DTYPES = ["float32", "float32", "float16", "int8", "int64", "float64"]
EDGE_GRAPH = [  # one kernel of an input and nothing else
    {
        "nodes": [
            {"op": "null", "name": "x", "inputs": []},
            {"op": "tvm_op", "name": "f", "inputs": [[0, 0, 0]], "attrs": {"func_name": "f"}},
        ],
        "node_row_ptr": [0, 1, 3],
        "attrs": {
            "shape": ["list_shape", [[1, 3], [1], [1, 2]]],
            "dltype": ["list_str", ["int8", "float64", "float32"]],
        },
    },
    [],
    3,
]


def kinds(*names: str) -> Hidden:
    """The executors of these programs."""
    return Hidden(
        f"the executors of these programs: {', '.join(names)}",
        probe="[sorted(executors()[name]) for name in names]",
        draw=lambda random: {"names": names},
        timeout=1,  # for what is known; trying all programs takes longer
    )


HIDDEN = {
    "q1": [
        Hidden(
            "graph JSONs with repeated kernels, reshapes, and weights between the kernels",
            probe="[calls('graph', text, []) for text in cases]",
            draw=lambda random: texts(random, graph_text),
        ),
        Hidden(
            "entry functions of AOT with repeated kernels",
            probe="[calls('aot', text, []) for text in cases]",
            draw=lambda random: texts(random, aot_text),
        ),
        Hidden(
            "bytecode of two functions, with a kernel that is never called",
            probe="[calls('vm', text, names) for text, names in cases]",
            draw=lambda random: texts(random, vm_text),
        ),
    ],
    "q2": [
        kinds("list", "let", "two results", "where"),
        kinds("choice", "loop"),
        kinds("closure"),
        kinds("any length", "argwhere"),
        kinds("reference"),
    ],
    "q3": [
        Hidden(
            "services of one and several processes, one request at a time",
            probe="[total(*service) for service in cases]",
            draw=lambda random: {"cases": one_by_one(random)},
        ),
        Hidden(
            "services with batches and a warm-up, and with few requests for each process",
            probe="[total(*service) for service in cases]",
            draw=lambda random: {"cases": services(random)},
        ),
    ],
    "q4": [
        Hidden(
            "bills with three different terms",
            probe="[largest(*bill) for bill in cases]",
            draw=lambda random: {"cases": plain_bills(random)},
        ),
        Hidden(
            "bills with equal terms, with terms of 0, and with a long inference",
            probe="[largest(*bill) for bill in cases]",
            draw=lambda random: {"cases": bills(random)},
        ),
    ],
    "q5": [
        Hidden(
            "graphs of float32 with weights, each kernel with one result",
            probe="[moved(graph, set(weights), batch) for graph, weights, batch in cases]",
            draw=lambda random: {"cases": [graph(random, plain=True) for _ in range(6)]},
        ),
        Hidden(
            "graphs with several results, types, reshapes, and weights that no kernel reads",
            probe="[moved(graph, set(weights), batch) for graph, weights, batch in cases]",
            draw=lambda random: {"cases": [EDGE_GRAPH, *(graph(random) for _ in range(8))]},
        ),
    ],
}
