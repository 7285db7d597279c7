"""Lab 12: wrong answers, other right ones, and the hidden checks."""

from typing import Any

from numpy.random import Generator

from helpers.grading.hidden import Hidden

# Question -> what is wrong with the answer -> which of its texts are replaced by what.
WRONG: dict[str, dict[str, dict[str, str]]] = {
    "q1": {
        "the first inference is counted twice: it is one of the requests": {
            "(requests - 1)": "requests"
        },
        "the first inference is taken to last as long as the others": {
            "bill.first + (requests - 1) * bill.infer": "requests * bill.infer"
        },
        "loading is paid once, and not by each process": {
            "processes * (bill.load + bill.first": "bill.load + processes * (bill.first"
        },
        "each process compiles, also when the artefact is kept": {
            "(1 if kept else processes)": "processes"
        },
        "compiling is paid once, also when the artefact is not kept": {
            "(1 if kept else processes)": "1"
        },
        "an artefact that is kept is taken to need no compilation at all": {
            "(1 if kept else processes)": "(0 if kept else processes)"
        },
        "one process is counted, whatever their number": {"processes * (bill.load": "(bill.load"},
        "the processes share the requests, although each of them answers so many": {
            "(requests - 1)": "(requests // processes - 1)"
        },
    },
    "q2": {
        "this can be a number for which both cost the same, and less is what is asked for": {
            "// gain + 1": "// gain"
        },
        "the crossing is rounded up: where it is a whole number, both cost the same there": {
            "(fixed(high) - fixed(low)) // gain + 1": "-(-(fixed(high) - fixed(low)) // gain)"
        },
        "the number of requests is not a whole number": {"// gain + 1": "/ gain"},
        "the first bill is taken to be the one with the larger fixed part": {
            "(a, b) if fixed(a) > fixed(b) else (b, a)": "a, b"
        },
        "two lines are taken to cross whatever their slopes are": {
            "if gain <= 0:": "if gain == 0:"
        },
        "0 is given where there is no such number, and not None": {"return None": "return 0"},
        "infinity is given where there is no such number, and not None": {
            "return None": 'return float("inf")'
        },
        "compiling is taken to be all that does not depend on N": {
            "(fixed(high) - fixed(low))": "(high.compile - low.compile)"
        },
        "loading is left out of the fixed part, and the first inference counts whole": {
            "(fixed(high) - fixed(low))": "(high.compile + high.first - low.compile - low.first)"
        },
        "what is won back in each inference is taken without its sign": {
            "low.infer - high.infer": "abs(low.infer - high.infer)"
        },
        "two parallel lines are taken to cross, which divides by 0": {
            "if gain <= 0:": "if gain < 0:"
        },
    },
    "q3": {
        "the calls that stand in the program are counted, not those that are made": {
            'compiled.executor != "vm"': "True"
        },
        "shape functions and storage sizes are left out, although they are called as well": {
            "event.kernel is not None": (
                'event.kernel is not None and event.instruction.purpose == "operator"'
            )
        },
        "a kernel that is called several times is counted once": {
            "sum(event.kernel is not None for event in run)": (
                "len({event.kernel for event in run} - {None})"
            )
        },
        "all instructions are counted, and not only those that call a function": {
            "sum(event.kernel is not None for event in run)": "sum(1 for event in run)"
        },
        "only the calls of `main` are counted, and not those in the functions that it calls": {
            "event.kernel is not None": "event.kernel is not None and event.depth == 0"
        },
        "a reshape is left out, although AOT calls a function for it": {
            "len(compiled.kernels)": 'sum("flatten" not in name for name in compiled.kernels)'
        },
        "one more than the entries of compiled.kernels is counted": {
            "len(compiled.kernels)": "len(compiled.kernels) + 1"
        },
        "one call fewer than those made on the VM is counted": {
            "for event in run)": "for event in run) - 1",
        },
    },
    "q4": {
        "the errors are absolute, and not relative to T": {"1 / seconds": "np.ones(len(k))"},
        "the errors are relative to T - K, and not to T": {
            "1 / seconds": "1 / (seconds - kernels)"
        },
        "the time of the kernels is left in: T is fitted, and not T - K": {
            "(seconds - kernels)": "seconds"
        },
        "f is taken to be 0": {"[weight, k": "[0 * weight, k"},
        "t_d is taken to be 0": {"k * weight]": "0 * weight]"},
        "f and t_d are exchanged": {"[weight, k * weight]": "[k * weight, weight]"},
        "f or t_d can become negative": {
            "nnls(columns, (seconds - kernels) * weight)": (
                "np.linalg.lstsq(columns, (seconds - kernels) * weight, rcond=None)[:2]"
            )
        },
        "a negative f or t_d is set to 0 afterwards, and the other one is not fitted again": {
            "nnls(columns, (seconds - kernels) * weight)": (
                "(np.maximum(0, np.linalg.lstsq(columns, (seconds - kernels) * weight, "
                "rcond=None)[0]), 0)"
            )
        },
    },
    "q5": {
        "all edges are built, also those that no request needs": {
            "len(set(to))": "len(set(chosen))"
        },
        "each request gets a build, also where two share an edge": {"len(set(to))": "len(to)"},
        "a request goes to the nearest edge, which can be too short for it": {
            "min(edge for edge in chosen if edge >= length)": (
                "min(chosen, key=lambda edge: abs(edge - length))"
            )
        },
        "each request is padded to the longest edge": {
            "min(edge for edge in chosen if edge >= length)": "max(chosen)"
        },
        "a request whose length is an edge is padded to the next longer one": {
            "min(edge for edge in chosen if edge >= length)": (
                "min((edge for edge in chosen if edge > length), default=length)"
            )
        },
        "padding is taken to cost nothing: a request takes the time of its own length": {
            "sum(map(static, to))": "sum(map(static, lengths))"
        },
        '"padded" uses the last edge, and not the longest length that occurs': {
            "padded([max(lengths)])": "padded([max(edges)])"
        },
        "the VM is taken to need the time of a static build": {
            "map(dynamic, lengths)": "map(static, lengths)"
        },
        "the build for the VM is left out": {"vm_build + sum": "sum"},
        "the VM gets a build for each length, although one takes all": {
            "vm_build + sum": "vm_build * len(set(lengths)) + sum",
        },
        "the static builds are left out": {"len(set(to)) * build + ": ""},
    },
    "q6": {
        "the weight is given to the lack of flexibility, and what remains of 1 to the time": {
            "weight * able[name] / fastest + (1 - weight) * lack": (
                "(1 - weight) * able[name] / fastest + weight * lack"
            )
        },
        "the times are not divided by the smallest: microseconds and shares are added": {
            " / fastest": ""
        },
        "the times are given in seconds, and not divided by the smallest": {" / fastest": " / 1e6"},
        "the times are divided by the largest, and not by the smallest": {
            "min(able.values())": "max(able.values())"
        },
        "the needs that are served count, and not those that are not served": {
            "need not in serves[name]": "need in serves[name]"
        },
        "the needs are counted, and their weights are not used": {
            "sum(own for need": "sum(1 for need",
            "sum(needs.values())": "len(needs)",
        },
        "the lack is not divided by the sum of all weights": {
            "missing / sum(needs.values())": "missing"
        },
        "the fastest executor is chosen, whatever lambda is": {" + (1 - weight) * lack": ""},
        "the most flexible executor is chosen, whatever lambda is": {
            "weight * able[name] / fastest + ": ""
        },
        "an executor that cannot run the model gets a time, and can be chosen": {
            "able = {name: time for name, time in times.items() if time is not None}": (
                "able = {name: time or 1 for name, time in times.items()}"
            )
        },
        "the executor with the largest score is chosen": {"return min(able": "return max(able"},
    },
    "q7": {
        "the processes share one artefact": {"kept=False": "kept=True"},
        "the first inference is counted twice": {
            "total(bill, own_requests,": "total(bill, own_requests + 1,"
        },
        "one process is counted": {"own_processes, kept": "1, kept"},
        "the totals are added up": {
            "= [\n    total(bill": "= [sum(\n    total(bill",
            "(own_slow, own_fast)\n]": "(own_slow, own_fast)\n)]",
        },
        "the number at which both cost the same is given": {
            "= break_even(own_slow, own_fast)": "= break_even(own_slow, own_fast) - 1"
        },
        "the whole compile time has to be won back": {
            "= break_even(own_slow, own_fast)": (
                "= fixed(own_fast) // (own_slow.infer - own_fast.infer) + 1"
            )
        },
        "the number is not rounded to a whole one": {
            "= break_even(own_slow, own_fast)": (
                "= (fixed(own_fast) - fixed(own_slow)) / (own_slow.infer - own_fast.infer)"
            )
        },
        "lambda weighs the flexibility, not the time": {
            "own_border = 1 / (": "own_border = 1 - 1 / ("
        },
        "the needs count alike": {
            "sum(own_needs.values())": "len(own_needs)",
            "own_needs[need] for need in": "1 for need in",
        },
        "the times are not divided by the smallest one": {
            '(own_times["vm"] / own_times["graph"] - 1)': ('(own_times["vm"] - own_times["graph"])')
        },
        "the border is given in percent": {"own_border = 1 / (": "own_border = 100 / ("},
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

# Question -> what the public checks may accept -> an answer that does not do what is asked.
CHEATS: dict[str, dict[str, str]] = {
    "q2": {
        "it asks helpers.cost": """
def break_even(a, b):
    return cost.break_even(cost.Bill(*a), cost.Bill(*b))
""",
    },
}


def services(random: Generator) -> list[Any]:
    """A bill, requests, processes, kept: one request, one process, terms of 0; then drawn ones."""
    found: list[Any] = [
        [[1000, 200, 50, 10], 1, 1, True],
        [[1000, 200, 50, 10], 1, 6, False],
        [[1000, 200, 50, 10], 2, 6, True],
        [[0, 0, 9, 9], 40, 3, False],
    ]
    for _ in range(30):
        bill = [int(random.integers(most)) for most in (3_000_000, 50_000, 9_000, 4_000)]
        requests, processes = (int(random.integers(1, most)) for most in (5_000, 30))
        found.append([bill, requests, processes, bool(random.random() < 0.5)])
    return found


def two_bills(random: Generator) -> list[Any]:
    """Pairs of bills: crossings at a whole number, just before one, at once, none; drawn ones."""
    found = [
        [[100, 0, 2, 2], [40, 0, 12, 12]],
        [[41, 0, 12, 12], [42, 0, 2, 2]],
        [[9, 3, 4, 4], [5, 0, 4, 4]],
        [[0, 30, 5, 5], [10, 0, 6, 6]],
        [[0, 30, 7, 6], [10, 0, 6, 5]],
        [[10, 0, 90, 4], [60, 5, 7, 3]],
    ]
    # 20 minutes of compilation, won back to one microsecond at a whole number of requests: too
    # near for `cost.break_even`, which computes with floats and allows for rounding.
    for gain in random.integers(30_000, 60_000, size=4).tolist():
        crossing = 1_200_000_000 // gain + int(random.integers(1000))
        slow, fast = [0, 0, gain + 900, gain + 900], [gain * crossing - 1, 0, 900, 900]
        found.append([slow, fast] if gain % 2 else [fast, slow])
    while len(found) < 40:
        pair = [[int(random.integers(most)) for most in (900, 300, 90, 40)] for _ in range(2)]
        fixed = [compiled + load + first - infer for compiled, load, first, infer in pair]
        if fixed[0] != fixed[1]:
            found.append(pair)
    return found


def observed(random: Generator) -> list[Any]:
    """Rows of k, K, T: exact ones, and such that a free fit would make f or t_d negative."""
    found: list[Any] = [
        [[1, 8, 14], [3, 2, 16], [7, 30, 60]],
        [[4, 12, 13], [8, 20, 26], [16, 40, 56], [40, 90, 140]],
        [[4, 12, 17], [8, 90, 94], [16, 300, 304], [40, 800, 803]],
    ]
    for _ in range(20):
        fixed, dispatch = random.uniform(0, 9), random.uniform(0.2, 3)
        rows = []
        for k in random.choice(90, size=int(random.integers(4, 8)), replace=False) + 1:
            kernels = float(k * random.lognormal(1, 1))
            time = float((fixed + dispatch * k + kernels) * random.uniform(0.9, 1.1))
            rows.append([int(k), round(kernels, 1), max(round(time, 1), round(kernels, 1) + 0.1)])
        found.append(rows)
    return found


def traffics(random: Generator) -> list[Any]:
    """Lengths, edges, build and vm_build: one request, lengths on edges; then drawn ones."""
    found: list[Any] = [
        [[5], [5], 1000, 3000],
        [[5], [3, 8, 20], 1000, 3000],
        [[8, 8, 3], [3, 8, 20], 1000, 3000],
    ]
    for _ in range(12):
        lengths = random.integers(1, 300, size=int(random.integers(1, 60)))
        edges = {*random.integers(1, 300, size=4).tolist(), int(max(lengths)) + 9}
        prices = [int(random.integers(1, most)) for most in (60_000, 200_000)]
        found.append([lengths.tolist(), sorted(edges), *prices])
    return found


def choices(random: Generator) -> list[Any]:
    """Times, needs, served needs and a weight, without ties."""
    found: list[Any] = []
    while len(found) < 40:
        names = ["graph", "aot", "vm", "other"][: int(random.integers(2, 5))]
        times: dict[str, Any] = {name: int(random.integers(5, 40)) for name in names}
        if random.random() < 0.4:
            times[names[0]] = None
        needs = {need: int(random.integers(0, 9)) for need in ("a", "b", "c")} | {"d": 1}
        serves = {name: [need for need in needs if random.random() < 0.6] for name in names}
        weight = float(random.choice([0.0, 0.2, 0.5, 0.8, 1.0]))
        able = [name for name in names if times[name] is not None]
        fastest, whole = min(times[name] for name in able), sum(needs.values())
        scores = sorted(
            weight * times[name] / fastest
            + (1 - weight) * (whole - sum(needs[need] for need in serves[name])) / whole
            for name in able
        )
        if len(scores) == 1 or scores[1] - scores[0] > 1e-6:
            found.append([times, needs, serves, weight])
    return found


# What the grader asks of an answer: other arguments, compared with the reference solution.
HIDDEN = {
    "q1": [
        Hidden(
            "services of one and several processes, with kept artefacts and without",
            probe="[total(Bill(*bill), *service) for bill, *service in cases]",
            draw=lambda random: {"cases": services(random)},
        ),
    ],
    "q2": [
        Hidden(
            "pairs of bills in both orders, with and without a break-even",
            probe="[break_even(Bill(*a), Bill(*b)) for a, b in cases]",
            draw=lambda random: {"cases": two_bills(random)},
        ),
    ],
    "q3": [
        Hidden(
            "an lstm with other numbers of rows, and an mlp with another batch",
            probe=(
                "[dispatches(built['lstm, 7 rows', 'vm'], "
                "zoo.load('lstm', hidden=32, sample_length=n).inputs) for n in rows] + "
                "[dispatches(built['mlp, any batch', 'vm'], "
                "{'data': np.zeros((rows[1], 1, 28, 28), 'float32')})]"
            ),
            draw=lambda random: {"rows": [1, *random.integers(2, 25, size=3).tolist()]},
        ),
        Hidden(
            "models with another number of layers, on the graph executor and on AOT",
            probe=(
                "[dispatches(build.compile(other, kind), other.inputs) "
                "for other in [zoo.load('early_exit', layers=layers, both=True)] "
                "for kind in ('graph', 'aot')] + "
                "[dispatches(built['mlp', 'aot'], models['mlp'].inputs)]"
            ),
            draw=lambda random: {"layers": int(random.choice([1, 3]))},
            timeout=20,
        ),
    ],
    "q4": [
        Hidden(
            "measured times with errors, also where a free fit would be negative",
            probe="[[float(x) for x in fit([tuple(row) for row in rows])] for rows in cases]",
            draw=lambda random: {"cases": observed(random)},
            rtol=1e-4,
            atol=1e-6,
        ),
    ],
    "q5": [
        Hidden(
            "traffics of 1 to 60 requests, with lengths on an edge and edges that none needs",
            probe=(
                "[totals(lengths, edges, lambda n: 7 * n + n * n, lambda n: 90 + 11 * n + n * n, "
                "*prices) for lengths, edges, *prices in cases]"
            ),
            draw=lambda random: {"cases": traffics(random)},
        ),
    ],
    "q6": [
        Hidden(
            "two to four executors, some of which cannot run the model, and several weights",
            probe="[choose(*case) for case in cases]",
            draw=lambda random: {"cases": choices(random)},
        ),
    ],
    "q7": [
        Hidden("the totals of your bills", probe="list(own_totals)", own=True),
        Hidden("where your bills break even", probe="own_even", own=True),
        Hidden(
            "the weight at which your executors are equal", probe="own_border", atol=2e-3, own=True
        ),
    ],
}
