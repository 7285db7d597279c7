"""Lab 09: wrong answers that the checks must refuse, other right ones, and the hidden checks."""

import math
from typing import Any

from numpy.random import Generator

from helpers.grading.hidden import Hidden

# Question -> what is wrong with the answer -> which of its texts are replaced by what.
WRONG: dict[str, dict[str, dict[str, str]]] = {
    "q1": {
        "what a kernel reads through a reshape does not count as read": {
            "same.get(rows[source] + r, rows[source] + r)": "rows[source] + r"
        },
        "a reshape of a reshape is not followed to the entry that holds the numbers": {
            "= read[0]": '= rows[node["inputs"][0][0]] + node["inputs"][0][1]'
        },
        "a reshape counts as a step": {
            "same[rows[k]] = read[0]": "step, same[rows[k]] = step + 1, read[0]"
        },
        "a result of the model is taken to be needed only until its last reader": {
            "step - 1 if e in heads else last": "last"
        },
        "a result of the model is kept one step too long, beyond the last kernel": {
            "step - 1 if": "step if"
        },
        "where a result of the model is a reshape, the entry behind it is not kept": {
            "same.get(rows[k] + r, rows[k] + r)": "rows[k] + r"
        },
        "each kernel is taken to have one result only": {
            "range(rows[k], rows[k + 1])": "range(rows[k], rows[k] + 1)"
        },
        "a tensor is taken to be free already at the step that reads it last": {
            ", step) for entry in read": ", step - 1) for entry in read"
        },
        "the inputs of the model get lifetimes, too": {
            " if entry in life}": "}",
            "life[entry][0], step": "life.get(entry, (0,))[0], step",
        },
    },
    "q2": {
        "a pool is taken to hold all its tensors at once, side by side": {
            "max(largest.get(pool, 0), sizes[t])": "largest.get(pool, 0) + sizes[t]"
        },
        "a pool gets the size of its last tensor, not of its largest": {
            "max(largest.get(pool, 0), sizes[t])": "sizes[t]"
        },
        "a tensor is taken to be free already at its last step": {
            "step <= life[t][1]": "step < life[t][1]"
        },
        "the peak is taken to be the largest tensor alone": {
            "sum(sizes[t] for t in life if": "max(sizes[t] for t in life if"
        },
        "the plan is taken to need no more than the peak of liveness": {
            "sum(largest.values())": "max(alive)"
        },
        "the pools are counted, and not their bytes": {"sum(largest.values())": "len(largest)"},
    },
    "q3": {
        "a tensor may be written into the pool of one that the same step still reads": {
            "life[a][1] < life[b][0] or life[b][1] < life[a][0]": (
                "life[a][1] <= life[b][0] or life[b][1] <= life[a][0]"
            )
        },
        "every plan is taken to be legal": {"return False": "return True"},
        "no plan is taken to be legal": {"return True": "return False"},
        "tensors in different pools are taken to collide, too": {" and pools[a] == pools[b]": ""},
        "the tensor that stands first in the dictionary is taken to run first": {
            "life[a][1] < life[b][0] or life[b][1] < life[a][0]": (
                "(life[a][1] < life[b][0]) if list(life).index(a) < list(life).index(b) else True"
            )
        },
        "two tensors are taken to collide only when the same step writes both": {
            "life[a][1] < life[b][0] or life[b][1] < life[a][0]": "life[a][0] != life[b][0]"
        },
    },
    "q4": {
        "each tensor gets a pool of its own": {"if apart(t, pool)]": "if False]"},
        "all tensors get the same pool": {"if apart(t, pool)]": "if True]"},
        "a tensor is written into the pool of one that the same step still reads": {
            "life[t][1] < life[o][0] or life[o][1] < life[t][0]": (
                "life[t][1] <= life[o][0] or life[o][1] <= life[t][0]"
            )
        },
        "only the last member of a pool is asked about, not all of them": {
            "for o in pool)": "for o in pool[-1:])"
        },
        "only the largest-first order is tried, which is not the best one everywhere": {
            "(-life[t][1], -sizes[t])": "(-sizes[t], life[t])"
        },
        "the tensors are taken in the order in which they are written, as TVM takes them": {
            "(-sizes[t], life[t])": "life[t]",
            "(-life[t][1], -sizes[t])": "life[t]",
        },
        "the smallest tensors are taken first": {
            "(-sizes[t], life[t])": "(sizes[t], life[t])",
            "(-life[t][1], -sizes[t])": "(sizes[t], life[t])",
        },
        "of the plans that are made the largest is given, not the smallest": {
            "min(by_size, backwards": "max(by_size, backwards"
        },
        "of equal last steps the smallest tensor is taken first": {
            "(-life[t][1], -sizes[t])": "(-life[t][1], sizes[t])",
            "best = min(by_size, backwards": "best = min(backwards, backwards",
        },
    },
    "q5": {
        "a reshape gets memory of its own": {
            "raw = arrays[rows[source] + result].reshape(-1)": "raw = allocate(sizes[entry])"
        },
        "each tensor gets memory of its own, whatever its pool is": {
            "memory[pools[entry]][: sizes[entry]]": "allocate(sizes[entry])"
        },
        "a pool gets the size of its smallest tensor, not of its largest": {
            "max(sizes[t]": "min(sizes[t]"
        },
        "all inputs and weights lie in the same memory": {
            "raw = allocate(sizes[entry])": (
                "raw = memory.setdefault(-1, allocate(sum(sizes)))[: sizes[entry]]"
            )
        },
        "the arrays do not have the shapes of the graph JSON": {".reshape(shapes[entry])": ""},
        "all arrays are taken to hold float32": {"dtypes[entry]": '"float32"'},
        "a reshape gets the memory of the node behind the one that it reads": {
            "rows[source] + result": "rows[source + 1]"
        },
    },
    "q6": {
        "a result of the model is not kept until the end": {
            "= lifetimes(own_graph)": "= lifetimes({**own_graph, 'heads': []})"
        },
        "a reshape is a tensor of its own": {
            "= lifetimes(own_graph)": (
                "= lifetimes(make_graph([('f' if n[0] else None, *n[1:]) for n in own_nodes], "
                "[head[:2] for head in own_graph['heads']]))"
            )
        },
        "only the last step is given": {
            "= lifetimes(own_graph)": (
                "= {t: (last, last) for t, (_, last) in lifetimes(own_graph).items()}"
            )
        },
        "how long each tensor is alive is given, too": {
            "= lifetimes(own_graph)": (
                "= {t: (a, b, b - a) for t, (a, b) in lifetimes(own_graph).items()}"
            ),
            "three_numbers(own_life,": "three_numbers({t: p[:2] for t, p in own_life.items()},",
        },
        "the input has a lifetime, too": {
            "= lifetimes(own_graph)": "= {0: (0, 0), **lifetimes(own_graph)}"
        },
        "a tensor is not alive any more at the step that reads it last": {
            "three_numbers(own_life,": (
                "three_numbers({t: (a, max(a, b - 1)) for t, (a, b) in own_life.items()},"
            )
        },
        "the peak is that of the largest tensor": {
            "three_numbers(own_life, own_sizes, {t: t for t in own_life})[::2]": (
                "[sum(own_sizes[t] for t in own_life), max(own_sizes.values())]"
            )
        },
        "all three numbers are given": {"})[::2]": "})[::1]"},
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
    pools, busy, size = {}, [], []
    for t in sorted(life, key=lambda t: (life[t][1], sizes[t]), reverse=True):
        steps = set(range(life[t][0], life[t][1] + 1))
        growth = [
            (max(sizes[t] - size[p], 0), p) for p, used in enumerate(busy) if not used & steps
        ]
        _, pool = min(growth, default=(0, len(busy)))
        if pool == len(busy):
            busy.append(set())
            size.append(0)
        busy[pool] |= steps
        size[pool] = max(size[pool], sizes[t])
        pools[t] = pool
    return pools
""",
}

# Question -> what the public checks may accept -> an answer that does not do what is asked.
CHEATS: dict[str, dict[str, str]] = {
    "q1": {
        "it asks the lab's `known`": """
def lifetimes(graph):
    return known(graph).life
""",
    },
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
    """Legal plans of the six models: no larger than TVM's, and one of them smaller."""
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
            probe="[lifetimes(unplanned(make_graph(nodes, heads))) for nodes, heads in cases]",
            draw=lambda random: {"cases": graphs(random)},
        ),
        Hidden("the graph of a model", probe="lifetimes(unplanned(graphs['squeezenet']))"),
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
            "the plans of the six models, beside TVM's",
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
    "q6": [
        Hidden(
            "the lifetimes in your graph",
            probe="sorted([t, *life] for t, life in own_life.items())",
            own=True,
        ),
        Hidden("the bytes of your graph", probe="list(own_bytes)", own=True),
    ],
}
