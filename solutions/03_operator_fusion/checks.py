"""Lab 03: wrong answers, which the public checks must refuse, and other right ones."""

# Question -> what is wrong with the answer -> which of its texts are replaced by what.
WRONG: dict[str, dict[str, dict[str, str]]] = {
    "q1": {
        "an operand counts at each use": {
            "read = {source": "read = [source",
            "inputs} - set(group)": "inputs if source not in group]",
            "read -= scalars - needed": "read = [v for v in read if v not in scalars - needed]",
        },
        "reads inside count": {" - set(group)": ""},
        "scalar constants count": {"read -= scalars - needed": ""},
        "no scalar constant counts": {"scalars - needed": "scalars"},
        "no constant counts": {" and G.nodes[v].shape == ()}": "}"},
        "only the last is written": {"needed & set(group)": "{max(group)}"},
        "all is written": {"needed & set(group)": "set(group)"},
        "the result is not written": {"needed.add(G.output)": ""},
    },
    "q2": {
        "unfused counts writes only": {"return 2 * n * size": "return n * size"},
        "fused has one access per operator": {", 2 * size": ", (n + 1) * size"},
        "fused writes nothing": {"(n + 2) * size": "(n + 1) * size", ", 2 * size": ", size"},
        "the first input forgotten": {"3 * n * size": "(3 * n - 1) * size"},
        "fresh operands forgotten": {"if fresh": "if False"},
        "accesses instead of bytes": {
            "return 3 * n * size, (n + 2) * size": "return 3 * n, n + 2",
            "return 2 * n * size, 2 * size": "return 2 * n, 2",
        },
    },
    "q3": {
        "the first consumer": {"dominator[v] for v": "consumers[v][0] for v"},
        "the last consumer": {"dominator[v] for v": "consumers[v][-1] for v"},
        "always the end": {"dominator[v] for v": "EXIT for v"},
        "the end is forgotten": {
            "for c in following)": "for c in following if c != EXIT or len(following) == 1)"
        },
        "dominators instead": {
            "(c, v) for c": "(v, c) for c",
            "(reversed_graph, EXIT)": "(reversed_graph, 1) | {1: EXIT}",
        },
        "one step too far": {"dominator[v] for v": "dominator.get(dominator[v], EXIT) for v"},
    },
    "q4": {
        "always": {"largest = max([0, *between])": "return True"},
        "never": {"largest = max([0, *between])": "return False"},
        "edges do not matter to elementwise work": {"edge <= OpPattern.COMM_REDUCE": "True"},
        "no elementwise work into a reduction": {
            "edge <= OpPattern.COMM_REDUCE": "edge <= OpPattern.INJECTIVE"
        },
        "anything between elementwise operators": {"and largest <= OpPattern.INJECTIVE": ""},
        "only injective ends": {"d <= OpPattern.OUT_ELEMWISE_FUSABLE": "d <= OpPattern.INJECTIVE"},
        "any end": {"and d <= OpPattern.OUT_ELEMWISE_FUSABLE": ""},
        "injective in any phase": {"phase == 1 and ": ""},
        "injective into a reduction": {
            "max(largest, d) <= OpPattern.INJECTIVE": "max(largest, d) <= OpPattern.COMM_REDUCE"
        },
        "injective, the end alone": {
            "max(largest, d) <= OpPattern.INJECTIVE": "d <= OpPattern.INJECTIVE"
        },
        "tuples forgotten": {"(OpPattern.INJECTIVE, OpPattern.TUPLE)": "(OpPattern.INJECTIVE,)"},
        "a convolution in any phase": {"phase == 0 and ": ""},
        "a convolution through a broadcast": {
            "edge == OpPattern.ELEMWISE": "edge <= OpPattern.BROADCAST"
        },
        "two convolutions": {
            "max(largest, d) <= OpPattern.BROADCAST": "largest <= OpPattern.BROADCAST"
        },
        "a convolution, the end alone": {
            "max(largest, d) <= OpPattern.BROADCAST": "d <= OpPattern.BROADCAST"
        },
        "reductions as elementwise work": {"if v <= OpPattern.BROADCAST": "if v in (0, 1, 3)"},
        "opaque operators as elementwise work": {
            "if v <= OpPattern.BROADCAST": "if v in (0, 1, 8)"
        },
    },
    "q5": {
        "patterns of vertices, not of groups": {
            "groups.pattern(u)": "P.pattern[u]",
            "groups.pattern(v)": "P.pattern[v]",
            "groups.pattern(d)": "P.pattern[d]",
        },
        "what is between stays behind": {"(v, *between)": "(v,)"},
        "phase 0 only": {"in (0, 1)": "in (0,)"},
        "phase 1 only": {"in (0, 1)": "in (1,)"},
        "phase 1 first": {"in (0, 1)": "in (1, 0)"},
        "both phases at each vertex": {
            "    for phase in (0, 1):\n        for v in P.vertices:": "    for v in P.vertices:\n"
            "        for phase in (0, 1):"
        },
        "never asks": {"if may_fuse(": "if False and may_fuse("},
        "does not ask": {"if may_fuse(": "if True or may_fuse("},
        "the first consumer, not the post-dominator": {"d = dominator[v]": "d = P.consumers[v][0]"},
    },
    "q6": {
        "nothing": {"if d != EXIT": "if False"},
        "into any tuple": {"(v, *between, d)) <=": "(v, *between)) <="},
        "convolutions, too": {"<= OpPattern.INJECTIVE": "<= OpPattern.OUT_ELEMWISE_FUSABLE"},
        "the operator's pattern, not its group's": {
            "max(groups.pattern(u)": "max(groups.pattern(d) if u == d else P.pattern[u]"
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
