"""Lab 03: wrong answers that the checks must refuse, other right ones, and the hidden checks."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.random import Generator

from helpers.grading.hidden import Hidden

# Question -> what is wrong with the answer -> which of its texts are replaced by what.
WRONG: dict[str, dict[str, dict[str, str]]] = {
    "q1": {
        "a tensor is counted at each use, not once": {
            "read = {source": "read = [source",
            "inputs} - set(group)": "inputs if source not in group]",
            "read -= scalars - needed": "read = [v for v in read if v not in scalars - needed]",
        },
        "tensors that the kernel computes itself are counted as read": {" - set(group)": ""},
        "a scalar constant of this kernel alone is part of its code, and is counted as read": {
            "read -= scalars - needed": ""
        },
        "a scalar constant that other kernels use, too, is not counted as read": {
            "scalars - needed": "scalars"
        },
        "constants that are no scalars are not counted as read": {
            " and G.nodes[v].shape == ()}": "}"
        },
        "only the last tensor is counted as written, also when others are needed outside": {
            "needed & set(group)": "{max(group)}"
        },
        "tensors that only the kernel itself needs are counted as written": {
            "needed & set(group)": "set(group)"
        },
        "the result of the function is not counted as written": {"needed.add(G.output)": ""},
    },
    "q2": {
        "without fusion only what kernels write is counted": {
            "return 2 * n * size": "return n * size"
        },
        "the fused kernel is counted as if it moved the tensors between its operators": {
            ", 2 * size": ", (n + 1) * size"
        },
        "the fused kernel's result is not counted": {
            "(n + 2) * size": "(n + 1) * size",
            ", 2 * size": ", size",
        },
        "the first input of a chain with fresh operands is not counted": {
            "3 * n * size": "(3 * n - 1) * size"
        },
        "the fresh operands are not counted": {"if fresh": "if False"},
        "tensors are counted, not their bytes": {
            "return 3 * n * size, (n + 2) * size": "return 3 * n, n + 2",
            "return 2 * n * size, 2 * size": "return 2 * n, 2",
        },
    },
    "q3": {
        "the first consumer is taken, though other paths may go round it": {
            "dominator[v] for v": "consumers[v][0] for v"
        },
        "the last consumer is taken, though other paths may go round it": {
            "dominator[v] for v": "consumers[v][-1] for v"
        },
        "the end is always taken, though the paths may meet earlier": {
            "dominator[v] for v": "EXIT for v"
        },
        "a vertex that is also the result is treated as if no path led from it to the end": {
            "for c in following)": "for c in following if c != EXIT or len(following) == 1)"
        },
        "the vertices on all paths from the start are taken, not those on all paths to the end": {
            "(c, v) for c": "(v, c) for c",
            "(reversed_graph, EXIT)": "(reversed_graph, 1) | {1: EXIT}",
        },
        "a vertex where all paths meet is taken, but not the nearest": {
            "dominator[v] for v": "dominator.get(dominator[v], EXIT) for v"
        },
    },
    "q4": {
        "everything may be fused": {"largest = max([0, *between])": "return True"},
        "nothing may be fused": {"largest = max([0, *between])": "return False"},
        "elementwise work goes on through any edge": {"edge <= OpPattern.COMM_REDUCE": "True"},
        "elementwise work does not go into a reduction": {
            "edge <= OpPattern.COMM_REDUCE": "edge <= OpPattern.INJECTIVE"
        },
        "elementwise work goes on through any group between": {
            "and largest <= OpPattern.INJECTIVE": ""
        },
        "elementwise work goes into no group with a reduction or a convolution": {
            "d <= OpPattern.OUT_ELEMWISE_FUSABLE": "d <= OpPattern.INJECTIVE"
        },
        "elementwise work goes into groups of any pattern": {
            "and d <= OpPattern.OUT_ELEMWISE_FUSABLE": ""
        },
        "data movement is fused in phase 0 already": {"phase == 1 and ": ""},
        "data movement goes into reductions": {
            "max(largest, d) <= OpPattern.INJECTIVE": "max(largest, d) <= OpPattern.COMM_REDUCE"
        },
        "for data movement the groups between do not count": {
            "max(largest, d) <= OpPattern.INJECTIVE": "d <= OpPattern.INJECTIVE"
        },
        "a tuple is never fused into what comes after it": {
            "(OpPattern.INJECTIVE, OpPattern.TUPLE)": "(OpPattern.INJECTIVE,)"
        },
        "a convolution is fused in phase 1, too": {"phase == 0 and ": ""},
        "a convolution goes on through an edge that makes its result larger": {
            "edge == OpPattern.ELEMWISE": "edge <= OpPattern.BROADCAST"
        },
        "what follows a convolution may be in the group of another convolution": {
            "max(largest, d) <= OpPattern.BROADCAST": "largest <= OpPattern.BROADCAST"
        },
        "behind a convolution the groups between do not count": {
            "max(largest, d) <= OpPattern.BROADCAST": "d <= OpPattern.BROADCAST"
        },
        "a reduction is fused into what comes after it": {
            "if v <= OpPattern.BROADCAST": "if v in (0, 1, 3)"
        },
        "an opaque operator is fused into what comes after it": {
            "if v <= OpPattern.BROADCAST": "if v in (0, 1, 8)"
        },
    },
    "q5": {
        "the patterns are those of the vertices, not those of their groups": {
            "groups.pattern(u)": "P.pattern[u]",
            "groups.pattern(v)": "P.pattern[v]",
            "groups.pattern(d)": "P.pattern[d]",
        },
        "what lies between does not join the group": {"(v, *between)": "(v,)"},
        "there is no phase 1": {"in (0, 1)": "in (0,)"},
        "there is no phase 0": {"in (0, 1)": "in (1,)"},
        "phase 1 comes before phase 0": {"in (0, 1)": "in (1, 0)"},
        "both phases are done at one vertex before the next is looked at": {
            "    for phase in (0, 1):\n        for v in P.vertices:": "    for v in P.vertices:\n"
            "        for phase in (0, 1):"
        },
        "nothing is ever joined": {"if may_fuse(": "if False and may_fuse("},
        "all is joined, whatever the rules say": {"if may_fuse(": "if True or may_fuse("},
        "the group of the first consumer is joined, not that of the post-dominator": {
            "d = dominator[v]": "d = P.consumers[v][0]"
        },
    },
    "q6": {
        "nothing joins a tuple": {"if d != EXIT": "if False"},
        "fields join a tuple whose group has the pattern TUPLE": {
            "(v, *between, d)) <=": "(v, *between)) <="
        },
        "convolutions join the group of a tuple": {
            "<= OpPattern.INJECTIVE": "<= OpPattern.OUT_ELEMWISE_FUSABLE"
        },
        "for what joins, the patterns are those of the vertices, not those of their groups": {
            "max(groups.pattern(u)": "max(groups.pattern(d) if u == d else P.pattern[u]"
        },
        "the groups between do not count": {"(v, *between, d)) <=": "(v, d)) <="},
    },
    "q7": {
        "each operator is a kernel of its own": {
            "all_phases(fuse_tuple_fields, own).sets()": "[{v} for v in prepare(own).vertices]"
        },
        "a value with several uses is never fused into what comes after it": {
            "all_phases(fuse_tuple_fields, own)": (
                "fuse(prepare(own), lambda phase, v, edge, between, d: "
                "not between and may_fuse(phase, v, edge, between, d))"
            )
        },
        "a reduction is fused into what comes after it": {
            "all_phases(fuse_tuple_fields, own)": (
                "fuse(prepare(own), lambda phase, v, *more: "
                "may_fuse(phase, 0 if v == OpPattern.COMM_REDUCE else v, *more))"
            )
        },
        "a product of matrices is fused with nothing": {
            "all_phases(fuse_tuple_fields, own)": (
                "fuse(prepare(own), lambda phase, v, edge, between, d: "
                "OpPattern.OUT_ELEMWISE_FUSABLE not in (v, d) "
                "and may_fuse(phase, v, edge, between, d))"
            )
        },
        "the inputs of a kernel are put into its group": {
            "all_phases(fuse_tuple_fields, own).sets()": (
                "[{0, *group} for group in all_phases(fuse_tuple_fields, own).sets()]"
            )
        },
        "the bytes are those of one kernel for each operator": {
            "ir.graph(own), own_groups": "ir.graph(own), [{v} for v in prepare(own).vertices]"
        },
        "a tensor counts as often as it is used in a kernel": {
            "total_bytes(group_bytes,": (
                "total_bytes(lambda G, group: (sum(G.nodes[s].bytes for v in group "
                "for s in G.nodes[v].inputs if s not in group), group_bytes(G, group)[1]),"
            )
        },
        "the bytes read and written are added up": {
            "total_bytes(group_bytes, ir.graph(own), own_groups)": (
                "[sum(total_bytes(group_bytes, ir.graph(own), own_groups))]"
            )
        },
    },
}

# Question -> a right answer of another kind.
OTHERS: dict[str, str] = {
    "q3": """
def post_dominators(consumers):
    answer = {}
    def chain(c):
        return [c] + (chain(answer[c]) if c != EXIT else [])
    for v in reversed(list(consumers)):
        chains = [chain(c) for c in consumers[v]]
        answer[v] = next(c for c in chains[0] if all(c in other for other in chains))
    return answer
""",
    "q4": """
def may_fuse(phase, v, edge, between, d):
    row = {0: ((0, 1), 3, 2, 4), 1: ((0, 1), 3, 2, 4), 2: ((1,), 8, 2, 2), 7: ((1,), 8, 2, 2),
           4: ((0,), 0, 1, 1)}.get(int(v))
    return (row is not None and phase in row[0] and edge <= row[1]
            and all(p <= row[2] for p in between) and d <= row[3])
""",
}


# --- hidden checks -------------------------------------------------------------------------------

EXIT = -1
ELEMWISE, BROADCAST, INJECTIVE, REDUCE, CONVOLUTION, TUPLE, OPAQUE = 0, 1, 2, 3, 4, 7, 8

PARAMETERS = (
    "%x: Tensor[(4, 8), float32], %y: Tensor[(1, 8), float32], %i: Tensor[(4, 8), int8], "
    "%c: Tensor[(4, 1), float32], %d: Tensor[(1), float32]"
)
BOUND = {"c": [4, 1], "d": [1]}  # parameters that become constants of this shape


def text(random: Generator) -> str:
    """A program whose operators share operands and scalar constants, of several sizes."""
    lines = ["%0 = 2f;", "%1 = 3f;", "%2 = exp(%x);", '%3 = cast(%i, dtype="float32");']
    values = ["%x", "%y", "%2", "%3", "%c", "%d", "%0", "%1"]
    wide = ["%x", "%2", "%3"]
    for _ in range(int(random.integers(4, 9))):
        name, other = str(random.choice(wide)), str(random.choice(values))
        kind = str(random.choice(["add", "multiply", "tanh", "sum"]))
        place = f"%{len(lines)}"
        if kind == "sum":
            lines.append(f"{place} = sum({name}, axis=[1], keepdims=True);")
            values.append(place)
        else:
            lines.append(f"{place} = {kind}({name if kind == 'tanh' else f'{name}, {other}'});")
            wide.append(place)
            values += [place, place]
    result = f"({wide[-1]}, {wide[-2]})" if random.random() < 0.5 else f"negative({wide[-1]})"
    return f"fn ({PARAMETERS}) {{ {' '.join(lines)} {result} }}"


def some_groups(random: Generator) -> dict[str, Any]:
    """Programs, and which of their operators are in each group."""
    edges = [
        f"fn ({PARAMETERS}) {{ multiply(%x, %x) }}",
        f"fn ({PARAMETERS}) {{ %0 = 2f; %1 = add(%x, %0); %2 = multiply(%1, %0); exp(%2) }}",
        f"fn ({PARAMETERS}) {{ %0 = exp(%c); %1 = add(%c, %0); (%1, %0) }}",
        f"fn ({PARAMETERS}) {{ %0 = add(%d, %d); %1 = exp(%0); %2 = tanh(%0); (%1, %2, %1) }}",
    ]
    return {
        "texts": [*edges, *(text(random) for _ in range(6))],
        "picks": [
            [True] * 20,
            [True, False] * 10,
            [False, True] * 10,
            *(random.random((5, 20)) < 0.6).tolist(),
        ],
        "bound": BOUND,
    }


GRAPH = (
    "ir.graph(relay.build_module.bind_params_by_name(relay.parse_expr(text), "
    "{name: np.ones(shape, 'float32') for name, shape in bound.items()}))"
)


def pairs(random: Generator, size: int, exits: float = 0.0) -> list[Any]:
    """[vertex, its consumers] of a random program; all paths end at EXIT."""
    names = (1 + np.cumsum(random.integers(1, 4, size=size)) - 1).tolist()
    names[0] = 1
    found = []
    for k, name in enumerate(names):
        later = names[k + 1 : k + 6]
        if not later:
            found.append([name, [EXIT]])
            continue
        count = int(random.choice([1, 1, 1, 2, 2, 3]))
        consumers = [int(v) for v in random.permutation(later)[:count]]
        found.append([name, [*consumers, EXIT] if random.random() < exits else consumers])
    return found


def graphs(random: Generator) -> dict[str, Any]:
    """Programs of one to 150 vertices, some with results in the middle."""
    edges: list[Any] = [
        [[5, [EXIT]]],
        [[1, [2, EXIT]], [2, [3]], [3, [EXIT]]],
        [[1, [2, 3]], [2, [4, 5]], [3, [5]], [4, [6]], [5, [6]], [6, [7]], [7, [EXIT]]],
        [[1, [2, 3, 4]], [2, [5]], [3, [5]], [4, [6]], [5, [6]], [6, [EXIT]]],
    ]
    drawn = [pairs(random, int(size)) for size in random.integers(6, 30, size=6)]
    return {"cases": [*edges, *drawn, pairs(random, 20, 0.2), pairs(random, 150)]}


def rules(*patterns: int) -> Hidden:
    """The answers of may_fuse for a vertex of these patterns, and everything else that may be."""
    named = {0: "elementwise", 1: "broadcast", 2: "injective", 3: "reduce", 4: "convolution"}
    named |= {7: "tuple", 8: "opaque"}
    return Hidden(
        f"all that a vertex of pattern {' or '.join(named[p] for p in patterns)} may meet",
        probe=(
            "[may_fuse(phase, v, edge, list(between), d) for phase in (0, 1) for v in patterns "
            "for edge in numbers for d in numbers for between in lists]"
        ),
        draw=lambda random: {
            "patterns": list(patterns),
            "numbers": [0, 1, 2, 3, 4, 7, 8],
            "lists": [
                [],
                *([k] for k in (0, 1, 2, 3, 4, 7, 8)),
                *random.choice([0, 1, 2, 3, 4, 7, 8], size=(4, 3)).tolist(),
            ],
        },
    )


def prepared(random: Generator, size: int, *, tuples: float = 0.0) -> dict[str, Any]:
    """A random program as P, with edges and joins as lists."""
    own = pairs(random, size)
    pattern, edges, joins = {}, [], []
    for v, _ in own:
        drawn = random.choice([0, 0, 0, 1, 1, 2, 2, 3, 4, 8], p=[0.1] * 10)
        pattern[v] = TUPLE if random.random() < tuples else int(drawn)
    for v, consumers in own:
        for c in consumers:
            if c != EXIT:
                same_shape = pattern[c] == BROADCAST and random.random() < 0.6
                plain = INJECTIVE if pattern[c] == TUPLE else pattern[c]
                edges.append([v, c, ELEMWISE if same_shape else plain])
        first = consumers[0]
        if pattern[v] == TUPLE and first != EXIT and random.random() < 0.7:
            pattern[first] = INJECTIVE if pattern[first] != TUPLE else TUPLE
            joins.append([v, first])
    return {"pairs": own, "pattern": list(pattern.items()), "edges": edges, "joins": joins}


# concatenate(tanh(a), conv2d(a)), a = exp(x); and concatenate(relu(conv2d(x))), conv2d with relu
EDGE_TUPLES = [
    {
        "pairs": [[1, [2, 3]], [2, [4]], [3, [4]], [4, [5]], [5, [EXIT]]],
        "pattern": [[1, ELEMWISE], [2, ELEMWISE], [3, CONVOLUTION], [4, TUPLE], [5, INJECTIVE]],
        "edges": [[1, 2, 0], [1, 3, 4], [2, 4, 2], [3, 4, 2], [4, 5, 2]],
        "joins": [[4, 5]],
    },
    {
        "pairs": [[1, [2]], [2, [3]], [3, [4]], [4, [EXIT]]],
        "pattern": [[1, CONVOLUTION], [2, ELEMWISE], [3, TUPLE], [4, INJECTIVE]],
        "edges": [[1, 2, 0], [2, 3, 2], [3, 4, 2]],
        "joins": [[1, 2], [3, 4]],
    },
]


def programs(*sizes: int, tuples: float = 0.0) -> Callable[[Generator], dict[str, Any]]:
    """Random programs of about these sizes."""

    def draw(random: Generator) -> dict[str, Any]:
        sizes_drawn = [int(n + random.integers(3)) for n in sizes]
        drawn = [prepared(random, n, tuples=tuples) for n in sizes_drawn]
        return {"cases": [*(EDGE_TUPLES if tuples else []), *drawn]}

    return draw


P = (
    "SimpleNamespace(vertices=[v for v, _ in case['pairs']], "
    "consumers={v: list(c) for v, c in case['pairs']}, pattern={v: p for v, p in case['pattern']}, "
    "edge={(u, v): p for u, v, p in case['edges']})"
)
SETS = "sorted(sorted(group) for group in {}.sets())"
TABLE = (
    "(lambda row: row is not None and phase in row[0] and edge <= row[1] "
    "and max([0, *between]) <= row[2] and d <= row[3])({0: ((0, 1), 3, 2, 4), 1: ((0, 1), 3, 2, 4),"
    " 2: ((1,), 8, 2, 2), 7: ((1,), 8, 2, 2), 4: ((0,), 0, 1, 1)}.get(int(v)))"
)
DRAWN = (
    "allowed[(asked[0] + 3 * asked[1] + 7 * asked[2] + 11 * sum(asked[3]) + 5 * asked[4])"
    " % len(allowed)]"
)

HIDDEN = {
    "q1": [
        Hidden(
            "groups drawn at random, in programs that share tensors and constants",
            probe=(
                "[group_bytes(G, group) for text in texts for G in ["
                + GRAPH
                + "] for pick in picks"
                " for group in [{n.index for n, p in zip(G.calls, pick) if p}] if group]"
            ),
            draw=some_groups,
        ),
        Hidden(
            "all kernels of the face detector, one for each operator and fused",
            probe=(
                "[total_bytes(group_bytes, G, groups) for G in [ir.graph(detector)] for groups in "
                "([{n.index} for n in G.calls], groups_of_tvm(detector))]"
            ),
        ),
    ],
    "q2": [
        Hidden(
            f"chains with {kind} operands, short and long",
            probe="[chain_bytes(n, size, fresh) for n, size in cases]",
            draw=lambda random, fresh=fresh: {
                "fresh": fresh,
                "cases": [
                    [1, 4],
                    [2, 1],
                    [10**6, 10**6],
                    *random.integers(1, 1000, size=(4, 2)).tolist(),
                ],
            },
        )
        for kind, fresh in (("no other", False), ("fresh", True))
    ],
    "q3": [
        Hidden(
            "programs of one to 150 vertices, drawn at random",
            probe="[post_dominators({v: list(c) for v, c in pairs}) for pairs in cases]",
            draw=graphs,
        ),
        Hidden(
            "the face detector",
            probe="post_dominators(prepare(detector).consumers)",
        ),
    ],
    "q4": [
        rules(ELEMWISE, BROADCAST),
        rules(INJECTIVE, TUPLE),
        rules(CONVOLUTION),
        rules(REDUCE, OPAQUE),
    ],
    "q5": [
        Hidden(
            "programs drawn at random, by the rules of question 4",
            probe=(
                f"[{SETS.format(f'fuse({P}, lambda phase, v, edge, between, d: {TABLE})')}"
                " for case in cases]"
            ),
            draw=programs(1, 4, 8, 12, 20, 30, 40),
        ),
        Hidden(
            "programs drawn at random, by rules drawn at random",
            probe=f"[{SETS.format(f'fuse({P}, lambda *asked: {DRAWN})')} for case in cases]",
            draw=lambda random: {
                **programs(5, 10, 15, 25, 35)(random),
                "allowed": (random.random(97) < 0.6).tolist(),
            },
        ),
        Hidden(
            "the face detector",
            probe=SETS.format(
                f"fuse(prepare(detector), lambda phase, v, edge, between, d: {TABLE})"
            ),
        ),
    ],
    "q6": [
        Hidden(
            "programs with tuples drawn at random, some in the group of what uses them",
            probe=(
                f"[(fuse_tuple_fields(P, groups) is groups, {SETS.format('groups')}) for case in "
                f"cases for P in [{P}] for groups in [Groups(P)] "
                "if [groups.join(v, d) for v, d in case['joins']] is not None]"
            ),
            draw=programs(4, 8, 12, 16, 20, 25, tuples=0.3),
        ),
        Hidden(
            "the face detector, tuples in the groups of what uses them",
            probe=(
                f"[{SETS.format('fuse_tuple_fields(P, groups)')} for P in [prepare(detector)] "
                "for groups in [Groups(P)] if [groups.join(v, P.consumers[v][0]) for v in "
                "P.vertices if P.pattern[v] == OpPattern.TUPLE and P.consumers[v] != [EXIT]]]"
            ),
        ),
    ],
    "q7": [
        Hidden(
            "the groups of your program",
            probe="sorted(sorted(group) for group in own_groups)",
            own=True,
        ),
        Hidden("the bytes that its kernels move", probe="list(own_bytes)", own=True),
    ],
}
