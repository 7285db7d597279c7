"""Lab 09: wrong answers that the checks must refuse, other right ones, and the hidden checks."""

import math
from typing import Any

from numpy.random import Generator

from helpers.grading.hidden import Hidden

# Question -> what is wrong with the answer -> which of its texts are replaced by what.
WRONG: dict[str, dict[str, dict[str, str]]] = {
    "q1": {
        "reads through a reshape are lost": {
            "same.get(rows[source] + r, rows[source] + r)": "rows[source] + r"
        },
        "a reshape of a reshape is lost": {
            "= read[0]": '= rows[node["inputs"][0][0]] + node["inputs"][0][1]'
        },
        "a reshape is a step": {
            "same[rows[k]] = read[0]": "step, same[rows[k]] = step + 1, read[0]"
        },
        "a result of the model dies with its last reader": {
            "step - 1 if e in heads else last": "last"
        },
        "a result of the model outlives the run": {"step - 1 if": "step if"},
        "a reshape that is a result is forgotten": {
            "same.get(rows[k] + r, rows[k] + r)": "rows[k] + r"
        },
        "one result for each kernel": {
            "range(rows[k], rows[k + 1])": "range(rows[k], rows[k] + 1)"
        },
        "dead at the step that reads it": {
            ", step) for entry in read": ", step - 1) for entry in read"
        },
        "inputs are tensors": {
            " if entry in life}": "}",
            "life[entry][0], step": "life.get(entry, (0,))[0], step",
        },
    },
    "q2": {
        "a pool holds all its tensors at once": {
            "max(largest.get(pool, 0), sizes[t])": "largest.get(pool, 0) + sizes[t]"
        },
        "a pool is as large as its last tensor": {
            "max(largest.get(pool, 0), sizes[t])": "sizes[t]"
        },
        "dead at its last step": {"step <= life[t][1]": "step < life[t][1]"},
        "the peak is the largest tensor": {
            "sum(sizes[t] for t in life if": "max(sizes[t] for t in life if"
        },
        "the plan is the peak": {"sum(largest.values())": "max(alive)"},
        "pools are counted, not bytes": {"sum(largest.values())": "len(largest)"},
    },
    "q3": {
        "written where it is still read": {
            "life[a][1] < life[b][0] or life[b][1] < life[a][0]": (
                "life[a][1] <= life[b][0] or life[b][1] <= life[a][0]"
            )
        },
        "all are legal": {"return False": "return True"},
        "none is legal": {"return True": "return False"},
        "the pools do not matter": {" and pools[a] == pools[b]": ""},
        "the first in the dictionary runs first": {
            "life[a][1] < life[b][0] or life[b][1] < life[a][0]": (
                "(life[a][1] < life[b][0]) if list(life).index(a) < list(life).index(b) else True"
            )
        },
        "only the same beginning collides": {
            "life[a][1] < life[b][0] or life[b][1] < life[a][0]": "life[a][0] != life[b][0]"
        },
    },
    "q4": {
        "a pool for each tensor": {"if all(last": "if False and all(last"},
        "one pool": {"if all(last": "if True or all(last"},
        "written where it is still read": {
            "last < life[o][0] or life[o][1] < first": "last <= life[o][0] or life[o][1] <= first"
        },
        "in the order of writing": {"(-sizes[t], life[t])": "life[t]"},
        "the smallest first": {"-sizes[t]": "sizes[t]"},
        "the last member of a pool only": {"for o in others)": "for o in others[-1:])"},
    },
    "q5": {
        "a reshape has memory of its own": {
            "raw = arrays[rows[source] + result].reshape(-1)": "raw = allocate(sizes[entry])"
        },
        "each tensor has memory of its own": {
            "memory[pools[entry]][: sizes[entry]]": "allocate(sizes[entry])"
        },
        "a pool is as large as its smallest tensor": {"max(sizes[t]": "min(sizes[t]"},
        "all inputs and weights in one memory": {
            "raw = allocate(sizes[entry])": (
                "raw = memory.setdefault(-1, allocate(sum(sizes)))[: sizes[entry]]"
            )
        },
        "no shapes": {".reshape(shapes[entry])": ""},
        "all are float32": {"dtypes[entry]": '"float32"'},
        "the first entry of a node is enough": {"rows[source] + result": "rows[source + 1]"},
    },
}

# Question -> a right answer of another kind.
OTHERS: dict[str, str] = {
    "q2": """
def three_numbers(life, sizes, pools):
    change = {}
    for t, (first, last) in life.items():
        change[first] = change.get(first, 0) + sizes[t]
        change[last + 1] = change.get(last + 1, 0) - sizes[t]
    alive = peak = 0
    for step in sorted(change):
        alive += change[step]
        peak = max(peak, alive)
    planned = sum(max(sizes[t] for t in life if pools[t] == p) for p in set(pools.values()))
    return sum(map(sizes.__getitem__, life)), planned, peak
""",
    "q3": """
def legal(life, pools):
    busy = set()
    for t, (first, last) in life.items():
        steps = {(pools[t], step) for step in range(first, last + 1)}
        if busy & steps:
            return False
        busy |= steps
    return True
""",
    "q4": """
def make_plan(life, sizes):
    pools, busy = {}, []
    for t in sorted(life, key=lambda t: (sizes[t], -life[t][0]), reverse=True):
        steps = set(range(life[t][0], life[t][1] + 1))
        pool = next((p for p, used in enumerate(busy) if not used & steps), len(busy))
        if pool == len(busy):
            busy.append(set())
        busy[pool] |= steps
        pools[t] = pool
    return pools
""",
}

# --- hidden checks -------------------------------------------------------------------------------

DTYPES = {"float32": 4, "float16": 2, "int8": 1, "int64": 8}


def graph(random: Generator, kernels: int) -> list[Any]:
    """[nodes, heads] for make_graph: inputs, kernels with one to three results, reshapes."""
    nodes: list[Any] = [[None, [], [[4]]], [None, [], [[2, 3]]]]
    results = [[0, 0], [1, 0]]
    while kernels:
        number, kind = len(nodes), str(random.choice(["one", "one", "two", "three", "__nop"]))
        recent = results[-6:]
        picked = random.integers(len(recent), size=1 if kind == "__nop" else random.integers(1, 4))
        read = [recent[int(k)] for k in picked]
        if kind == "__nop":
            (source, result) = read[0]
            shapes = [[1, *nodes[source][2][result]]]
        else:
            count = {"one": 1, "two": 2, "three": 3}[kind]
            shapes = [
                random.integers(1, 9, size=int(random.integers(3))).tolist() for _ in range(count)
            ]
            kernels -= 1
        nodes.append([kind, read, shapes])
        results += [[number, k] for k in range(len(shapes))]
    heads = [results[-1], results[int(random.integers(len(results)))]]
    return [nodes, heads]


EDGE_GRAPHS: list[Any] = [
    [[[None, [], [[4]]], ["f", [[0, 0]], [[]]]], [[1, 0]]],
    [[[None, [], [[4]]], ["f", [[0, 0]], [[4]]], ["g", [[0, 0]], [[4]]]], [[2, 0]]],
    [
        [
            [None, [], [[4]]],
            ["f", [[0, 0]], [[2], [2]]],
            ["__nop", [[1, 1]], [[1, 2]]],
            ["__nop", [[2, 0]], [[2, 1]]],
            ["g", [[1, 0]], [[2]]],
            ["h", [[4, 0]], [[2]]],
        ],
        [[3, 0], [5, 0]],
    ],
    [
        [
            [None, [], [[4]]],
            ["__nop", [[0, 0]], [[2, 2]]],
            ["f", [[1, 0], [1, 0]], [[4]]],
            ["g", [[2, 0], [0, 0]], [[4]]],
        ],
        [[0, 0], [3, 0]],
    ],
]


def graphs(random: Generator, count: int = 12) -> list[Any]:
    """Edge cases, then drawn graphs of 2 to 14 kernels."""
    drawn = [graph(random, int(kernels)) for kernels in random.integers(2, 15, size=count)]
    return [*EDGE_GRAPHS, *drawn]


def lives(random: Generator, tensors: int) -> list[list[int]]:
    """[tensor, first, last] each, in any order; the numbers of tensors have gaps."""
    numbers = sorted(random.permutation(2 * tensors)[:tensors].tolist())
    found = []
    for place, number in enumerate(numbers):
        found.append([number, place, place + int(random.choice([0, 1, 1, 2, 5]))])
    return [found[int(place)] for place in random.permutation(tensors)]


def plans(random: Generator, count: int = 12) -> list[Any]:
    """[lives, sizes, pools] each: edge cases, then drawn ones, legal or not."""
    found: list[Any] = [
        [[[0, 0, 0]], [8], [[0, 3]]],
        [[[0, 0, 1], [1, 1, 2]], [8, 4], [[0, 0], [1, 0]]],
        [[[0, 0, 1], [2, 2, 3]], [8, 99, 16], [[0, 5], [2, 5]]],
        [[[0, 0, 9], [1, 3, 4]], [8, 0], [[0, 1], [1, 1]]],
        [[[1, 0, 2], [0, 2, 2], [2, 3, 3]], [4, 8, 64], [[1, 0], [0, 1], [2, 0]]],
        [[[1, 2, 3], [0, 0, 1]], [4, 8], [[1, 0], [0, 0]]],
    ]
    for tensors in random.integers(1, 12, size=count):
        life = lives(random, int(tensors))
        sizes = random.integers(1, 400, size=2 * int(tensors)).tolist()
        pools = random.integers(1 + 3 * int(tensors) // 2, size=int(tensors)).tolist()
        found.append([life, sizes, [[t, p] for (t, _, _), p in zip(life, pools, strict=True)]])
    return found


def are_legal(value: Any, cases: list[Any], lab: Any) -> str:
    """A legal plan for each: any number of pools, any numbers for them."""
    for (life, _, _), pools in zip(cases, value, strict=True):
        alive = {t: (first, last) for t, first, last in life}
        if pools.keys() != alive.keys():
            return "a plan has not exactly the tensors of `life`"
        if not lab.legal(alive, pools):
            return "a plan is not legal"
    return ""


def are_small(value: Any, lab: Any) -> str:
    """Legal plans of the five models: no larger than TVM's, and one of them smaller."""
    smaller = 0
    for name, fact in lab.facts.items():
        if (found := lab.play(lab.graphs[name], value[name])) != "legal":
            return f"the plan of {name} is not legal: {found}"
        planned = lab.planned_bytes(fact.sizes, value[name])
        if planned > fact.planned:
            return f"the plan of {name} is larger than TVM's"
        smaller += planned < fact.planned
    return "" if smaller else "no plan is smaller than TVM's"


def memories(random: Generator) -> list[Any]:
    """[nodes, heads, dtypes, sizes, pools] each: plans of graphs whose tensors have many types."""
    found = []
    for nodes, heads in graphs(random, 6):
        dtypes: list[str] = []
        sizes, pools, start = [], [], {}
        for number, (function, read, shapes) in enumerate(nodes):
            start[number] = len(dtypes)
            for shape in shapes:
                dtype = str(random.choice(list(DTYPES)))
                if function == "__nop":
                    dtype = dtypes[start[read[0][0]] + read[0][1]]
                elif function is not None:
                    pools.append([len(dtypes), int(random.integers(4))])
                dtypes.append(dtype)
                sizes.append(math.prod(shape) * DTYPES[dtype])
        found.append([nodes, heads, dtypes, sizes, pools])
    return found


LIFE = "{t: (first, last) for t, first, last in life}"

HIDDEN = {
    "q1": [
        Hidden(
            "graphs with several results, chains of reshapes, unused tensors, inputs as results",
            probe="[lifetimes(make_graph(nodes, heads)) for nodes, heads in cases]",
            draw=lambda random: {"cases": graphs(random)},
        ),
        Hidden("the graph of a model", probe="lifetimes(graphs['squeezenet'])"),
    ],
    "q2": [
        Hidden(
            "plans of several tensors, legal or not",
            probe=f"[list(three_numbers({LIFE}, sizes, dict(pools))) "
            "for life, sizes, pools in cases]",
            draw=lambda random: {"cases": plans(random)},
        ),
    ],
    "q3": [
        Hidden(
            "plans of several tensors, legal or not",
            probe=f"[legal({LIFE}, dict(pools)) for life, sizes, pools in cases]",
            draw=lambda random: {"cases": [*plans(random, 30), [[], [], []]]},
        ),
    ],
    "q4": [
        Hidden(
            "lifetimes and sizes of many kinds",
            probe=f"[make_plan({LIFE}, sizes) for life, sizes, pools in cases]",
            draw=lambda random: {"cases": plans(random)},
            verify=are_legal,
        ),
        Hidden(
            "the plans of the five models, beside TVM's",
            probe="{name: make_plan(fact.life, fact.sizes) for name, fact in facts.items()}",
            verify=are_small,
            weight=2,
        ),
    ],
    "q5": [
        Hidden(
            "shapes, types and places of the arrays, and what is allocated",
            probe="[[sorted(calls), [[list(a.shape), str(a.dtype), "
            "[k for k, b in enumerate(arrays) if b.ctypes.data == a.ctypes.data]] "
            "for a in arrays]] "
            "for nodes, heads, dtypes, sizes, pools in cases "
            "for calls, graph in [([], make_graph(nodes, heads))] "
            "for _ in [graph['attrs']['dltype'].__setitem__(1, dtypes)] "
            "for arrays in [make_arrays(graph, sizes, dict(pools), "
            "lambda size, calls=calls: (calls.append(size), allocate(size))[1])]]",
            draw=lambda random: {"cases": memories(random)},
            weight=2,
        ),
        Hidden(
            "a model run in the arrays",
            probe="[execute(library, make_arrays(graph, own.sizes, own.pools, allocate), "
            "model.inputs)[0] for own in [known(graph)]]",
            rtol=0,
            atol=0,
        ),
    ],
}
