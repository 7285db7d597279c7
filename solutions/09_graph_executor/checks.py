"""Lab 09: wrong answers, which the public checks must refuse, and other right ones."""

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
