"""Lab 12: wrong answers, which the public checks must refuse, and other right ones."""

# Question -> what is wrong with the answer -> which of its texts are replaced by what.
WRONG: dict[str, dict[str, dict[str, str]]] = {
    "q1": {
        "the first inference is counted twice": {"(requests - 1)": "requests"},
        "the first inference is like the others": {
            "bill.first + (requests - 1) * bill.infer": "requests * bill.infer"
        },
        "loading is paid once": {
            "processes * (bill.load + bill.first": "bill.load + processes * (bill.first"
        },
        "each process compiles": {"(1 if kept else processes)": "processes"},
        "compiling is always paid once": {"(1 if kept else processes)": "1"},
        "what is kept is not compiled": {
            "(1 if kept else processes)": "(0 if kept else processes)"
        },
        "one process": {"processes * (bill.load": "(bill.load"},
        "the processes share the requests": {"(requests - 1)": "(requests // processes - 1)"},
    },
    "q2": {
        "where both cost the same": {"// gain + 1": "// gain"},
        "rounded up": {
            "(fixed(high) - fixed(low)) // gain + 1": "-(-(fixed(high) - fixed(low)) // gain)"
        },
        "not a whole number": {"// gain + 1": "/ gain"},
        "the first bill is the one with the larger fixed part": {
            "(a, b) if fixed(a) > fixed(b) else (b, a)": "a, b"
        },
        "every pair of lines crosses": {"if gain <= 0:": "if gain == 0:"},
        "never is 0": {"return None": "return 0"},
        "never is infinite": {"return None": 'return float("inf")'},
        "compiling is all that is fixed": {
            "(fixed(high) - fixed(low))": "(high.compile - low.compile)"
        },
        "loading and the first inference are forgotten": {
            "(fixed(high) - fixed(low))": "(high.compile + high.first - low.compile - low.first)"
        },
        "the size of the gain": {"low.infer - high.infer": "abs(low.infer - high.infer)"},
        "equal lines are divided": {"if gain <= 0:": "if gain < 0:"},
    },
    "q3": {
        "what stands in the program": {'compiled.executor != "vm"': "True"},
        "the operators' kernels only": {
            "event.kernel is not None": (
                'event.kernel is not None and event.instruction.purpose == "operator"'
            )
        },
        "each kernel once": {
            "sum(event.kernel is not None for event in run)": (
                "len({event.kernel for event in run} - {None})"
            )
        },
        "all instructions": {
            "sum(event.kernel is not None for event in run)": "sum(1 for event in run)"
        },
        "only what main calls": {
            "event.kernel is not None": "event.kernel is not None and event.depth == 0"
        },
        "a reshape is no call": {
            "len(compiled.kernels)": 'sum("flatten" not in name for name in compiled.kernels)'
        },
        "the list of kernels has an entry for the output": {
            "len(compiled.kernels)": "len(compiled.kernels) + 1"
        },
        "the last call is forgotten": {
            "for event in run)": "for event in run) - 1",
        },
    },
    "q4": {
        "absolute errors": {"1 / seconds": "np.ones(len(k))"},
        "errors relative to the overhead": {"1 / seconds": "1 / (seconds - kernels)"},
        "the kernels' time is forgotten": {"(seconds - kernels)": "seconds"},
        "no fixed part": {"[weight, k": "[0 * weight, k"},
        "nothing for each kernel": {"k * weight]": "0 * weight]"},
        "exchanged": {"[weight, k * weight]": "[k * weight, weight]"},
        "negative costs": {
            "nnls(columns, (seconds - kernels) * weight)": (
                "np.linalg.lstsq(columns, (seconds - kernels) * weight, rcond=None)[:2]"
            )
        },
        "negative costs are cut off afterwards": {
            "nnls(columns, (seconds - kernels) * weight)": (
                "(np.maximum(0, np.linalg.lstsq(columns, (seconds - kernels) * weight, "
                "rcond=None)[0]), 0)"
            )
        },
    },
    "q5": {
        "all edges are built": {"len(set(to))": "len(set(chosen))"},
        "a build for each request": {"len(set(to))": "len(to)"},
        "the nearest edge": {
            "min(edge for edge in chosen if edge >= length)": (
                "min(chosen, key=lambda edge: abs(edge - length))"
            )
        },
        "the longest edge": {"min(edge for edge in chosen if edge >= length)": "max(chosen)"},
        "always a longer edge": {
            "min(edge for edge in chosen if edge >= length)": (
                "min((edge for edge in chosen if edge > length), default=length)"
            )
        },
        "padding costs nothing": {"sum(map(static, to))": "sum(map(static, lengths))"},
        "padded to the last edge": {"padded([max(lengths)])": "padded([max(edges)])"},
        "the VM takes no longer": {"map(dynamic, lengths)": "map(static, lengths)"},
        "the VM needs no build": {"vm_build + sum": "sum"},
        "the VM builds for each length": {
            "vm_build + sum": "vm_build * len(set(lengths)) + sum",
        },
        "builds are free": {"len(set(to)) * build + ": ""},
    },
    "q6": {
        "the weights are exchanged": {
            "weight * able[name] / fastest + (1 - weight) * lack": (
                "(1 - weight) * able[name] / fastest + weight * lack"
            )
        },
        "microseconds and shares are added": {" / fastest": ""},
        "seconds and shares are added": {" / fastest": " / 1e6"},
        "divided by the slowest": {"min(able.values())": "max(able.values())"},
        "flexibility instead of its lack": {"need not in serves[name]": "need in serves[name]"},
        "needs are counted": {
            "sum(own for need": "sum(1 for need",
            "sum(needs.values())": "len(needs)",
        },
        "the lack is no share": {"missing / sum(needs.values())": "missing"},
        "the fastest": {" + (1 - weight) * lack": ""},
        "the most flexible": {"weight * able[name] / fastest + ": ""},
        "what cannot run takes no time": {
            "able = {name: time for name, time in times.items() if time is not None}": (
                "able = {name: time or 1 for name, time in times.items()}"
            )
        },
        "the largest score": {"return min(able": "return max(able"},
    },
}

# Question -> a right answer of another kind.
OTHERS: dict[str, str] = {
    "q1": """
def total(bill, requests, processes=1, kept=True):
    seconds = 0
    for process in range(processes):
        if process == 0 or not kept:
            seconds += bill.compile
        seconds += bill.load
        for request in range(requests):
            seconds += bill.infer if request else bill.first
    return seconds
""",
    "q2": """
def break_even(a, b):
    if fixed(a) < fixed(b):
        a, b = b, a
    if a.infer >= b.infer:
        return None
    n = 1
    while fixed(a) + n * a.infer >= fixed(b) + n * b.infer:
        n += 1
    return n
""",
    "q3": """
def dispatches(compiled, inputs):
    return counters.count(compiled, **inputs).dispatches
""",
    "q4": """
def fit(rows):
    rows = np.array(rows, float)
    A = np.stack([np.ones(len(rows)), rows[:, 0]], axis=1) / rows[:, 2:]
    y = 1 - rows[:, 1] / rows[:, 2]
    candidates = [np.linalg.lstsq(A, y, rcond=None)[0]]
    for column in (0, 1):
        x = np.zeros(2)
        x[column] = max(0, A[:, column] @ y / (A[:, column] @ A[:, column]))
        candidates.append(x)
    allowed = [x for x in candidates if min(x) >= 0]
    f, t_d = min(allowed, key=lambda x: np.linalg.norm(A @ x - y))
    return float(f), float(t_d)
""",
    "q5": """
def totals(lengths, edges, static, dynamic, build, vm_build):
    result = {"dynamic": vm_build}
    for name, chosen in (("padded", [max(lengths)]), ("buckets", edges), ("per length", lengths)):
        result[name], have = 0, set()
        for length in lengths:
            edge = sorted(e for e in chosen if e >= length)[0]
            if edge not in have:
                have.add(edge)
                result[name] += build
            result[name] += static(edge)
    for length in lengths:
        result["dynamic"] += dynamic(length)
    return result
""",
}
