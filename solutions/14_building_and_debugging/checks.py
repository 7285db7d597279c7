"""Lab 14: wrong answers that the checks must refuse, other right ones, and the hidden checks."""

from typing import Any

from numpy.random import Generator

from helpers.grading.hidden import Hidden

# Question -> what is wrong with the answer -> which of its texts are replaced by what.
WRONG: dict[str, dict[str, dict[str, str]]] = {
    "q1": {
        "the VM's compiler changes the module that it is given, and it was given no copy": {
            "modules.copy(program)": "program"
        },
        "the build has no weights, and the fresh process has none to give it": {
            ", params=weights": ""
        },
        "the text uses a variable of this process, which the fresh process does not have": {
            "tvm.runtime.load_module({path!r})": "built",
            "return f'''": "return '''",
        },
        "the graph executor is taken, which has no memory for an unknown number of rows": {
            "relay.vm.compile(modules.copy(program), CPU, params=weights)": (
                "relay.build(program, CPU, params=weights)"
            ),
            "built.mod.export_library": "built.export_library",
            "from tvm.runtime.vm import VirtualMachine": (
                "from tvm.contrib.graph_executor import GraphModule"
            ),
            "machine = VirtualMachine(tvm.runtime.load_module({path!r}), tvm.cpu())": (
                'machine = GraphModule(tvm.runtime.load_module({path!r})["default"](tvm.cpu()))'
            ),
            'return machine.invoke("main", tvm.nd.array(x)).numpy()': (
                'machine.set_input("x", x)\n    machine.run()\n'
                "    return machine.get_output(0).numpy()"
            ),
        },
        "the library of a VM is loaded as if it were one of the graph executor": {
            "VirtualMachine(tvm.runtime.load_module({path!r}), tvm.cpu())": (
                'tvm.runtime.load_module({path!r})["default"](tvm.cpu())'
            ),
        },
        "a VirtualMachine has no such method: its constructor already takes the device": {
            ", tvm.cpu())\n": ", tvm.cpu())\nmachine.initialize()\n"
        },
    },
    "q2": {
        "this is the largest number of passes that is right, not the smallest that is wrong": {
            "return high": "return high - 1"
        },
        "0 is never considered, although the fault may be in no optional pass": {
            "low, high = 0, n": "low, high = 1, n"
        },
        "one number after the other is asked for, from below: that is n builds, not log2(n)": {
            "(low + high) // 2": "low"
        },
        "one number after the other is asked for, from above: that is n builds, not log2(n)": {
            "(low + high) // 2": "high - 1"
        },
        "builds are spent on n, for which the answer is known": {
            "low, high = 0, n": "low, high = 0, n\n    wrong(n), wrong(n), wrong(n)"
        },
        "after a wrong result the search goes on above it, and not at it or below": {
            "if wrong(middle)": "if not wrong(middle)"
        },
        "the search stops while two numbers are left": {"while low < high": "while low + 1 < high"},
        "a number that is known to be wrong is dropped, although it may be the smallest one": {
            "high = middle\n": "high = middle - 1\n"
        },
        "1 is given where the answer is 0: a fault in no optional pass": {
            "return high": "return max(high, 1)"
        },
    },
    "q3": {
        "the search stops at one faulty pass, although others can be faulty, too": {
            "while wrong(found)": "for _ in range(1)"
        },
        "the passes are in the order in which the search finds them, from last to first": {
            "return found[::-1]": "return found"
        },
        "passes already found run again in the next search, and so it finds the last one again": {
            "wrong(found + names[:middle])": "wrong(names[:middle])"
        },
        "the names are left out one after the other: n builds for each faulty pass, not log2(n)": {
            "(low + high) // 2": "high - 1"
        },
        "the name after the faulty pass is taken: the first k names end with number k - 1": {
            "names[high - 1]": "names[min(high, len(names) - 1)]"
        },
        "a faulty pass is looked for without asking whether there is one": {
            "while wrong(found)": "while not found or wrong(found)"
        },
        "an empty list is given where others are to blame: it would say that all is right": {
            "return None": "return []"
        },
        "the search goes on in the half without the last faulty pass": {
            "if wrong(found + names[:middle])": "if not wrong(found + names[:middle])"
        },
        "each name is left out alone, which shows nothing when two passes are faulty": {
            "while wrong(found):\n        low": (
                "return [name for name in names if not wrong([name])]\n"
                "    while wrong(found):\n        low"
            )
        },
        "each name is tried in a build of its own: n builds, not log2(n) for each faulty pass": {
            "while wrong(found):\n        low": (
                "return [n for n in names if wrong([m for m in names if m != n])]\n"
                "    while wrong(found):\n        low"
            )
        },
    },
    "q4": {
        "the numbers are compared in the order in which they lie, which depends on the layout": {
            'known = [np.sort(array.astype("float64").ravel())': (
                'known = [(array.astype("float64").ravel())'
            ),
            'mine = np.sort(value.astype("float64").ravel())': (
                'mine = value.astype("float64").ravel()'
            ),
        },
        "the numbers of the result are sorted, those of the reference are not": {
            'known = [np.sort(array.astype("float64").ravel())': (
                'known = [(array.astype("float64").ravel())'
            ),
        },
        "arrays of bool are subtracted as they are, which NumPy refuses": {
            'value.astype("float64").ravel()': "value.ravel()",
            'array.astype("float64").ravel()': "array.ravel()",
        },
        "the shapes must be equal, although another layout has another shape": {
            'known = [np.sort(array.astype("float64").ravel())': (
                "shapes = [array.shape for array in reference]\n"
                '    known = [np.sort(array.astype("float64").ravel())'
            ),
            "mine = np.sort": (
                "if value.shape not in shapes:\n            return position\n        mine = np.sort"
            ),
        },
        "the tolerance is taken as an absolute one, whatever the size of the numbers": {
            " * np.abs(array).max(initial=0)": ""
        },
        "the tolerance is relative to the result and not to the reference": {
            "np.abs(array).max(initial=0)": "np.abs(mine).max(initial=0)"
        },
        "a result that is not a number counts as equal: no comparison with it is true": {
            "np.abs(a - mine).max(initial=0) <= most": "not np.abs(a - mine).max(initial=0) > most"
        },
        "the sums of the arrays are compared, and not their numbers": {
            "np.abs(a - mine).max(initial=0) <=": "abs(a.sum() - mine.sum()) <=",
        },
        "absolute values are compared, so that the sign is lost": {
            "np.abs(a - mine)": "np.abs(np.sort(abs(a)) - np.sort(abs(mine)))"
        },
        "an array without any number is taken to have no partner": {
            "array.size == mine.size]": "array.size == mine.size > 0]"
        },
        "the largest of no numbers is asked for, which raises an error": {
            "np.abs(a - mine).max(initial=0)": "np.abs(a - mine).max()"
        },
        "a number is given where all results have a partner, and not None": {
            "return None": "return len(results)"
        },
        "the positions are counted from 1": {"return position": "return position + 1"},
        "this is the position of the kernel before the first that differs": {
            "return position": "return position - 1"
        },
        "this is the last result without a partner, not the first": {
            "return None": "return last",
            "return position": "last = position",
            "known = [": "last = None\n    known = [",
        },
        "arrays of different lengths are compared up to the shorter one's end": {
            "[array for array in known if array.size == mine.size]": (
                "[array[: min(array.size, mine.size)] for array in known]"
            ),
            "np.abs(a - mine)": "np.abs(a - mine[: a.size])",
        },
    },
    "q5": {
        "of a kernel with several rows only the last one counts": {
            "times[name] += microseconds": "times[name] = microseconds"
        },
        "each row counts as a kernel of its own, although a kernel may have several": {
            "in times.most_common()": "in sorted(rows, key=lambda row: -row[1])"
        },
        "the kernels are taken in the order of the run, and not the largest first": {
            "times.most_common()": "times.items()"
        },
        "one kernel is missing: the ones given take less than the share": {
            "if sum(times[n] for n in names) >=": "if sum(times[n] for n in [*names, name]) >="
        },
        "one kernel too many: those before it take the share already": {
            ">= share * total": "> share * total + 1e-9"
        },
        "the share is one of all rows, and not of the kernels": {
            "share * total:": "share * (total + other):"
        },
        "the VM's instructions and __nop count as kernels": {'("VM::", "__nop")': '("nothing",)'},
        "__nop counts as a kernel, although it computes nothing": {'("VM::", "__nop")': '"VM::"'},
        "the rest is divided by the time of the kernels, and not by that of all rows": {
            "other / (total + other)": "other / total"
        },
        "the rest is in microseconds, and not a part of the whole": {
            "other / (total + other)": "other"
        },
        "the kernels that take least come first": {
            "times.most_common()": "times.most_common()[::-1]"
        },
    },
    "q6": {
        "the executor is named by a string, and relay.build wants an Executor": {
            "graph = relay.build(program, CPU, ": (
                'graph = relay.build(program, CPU, executor="graph", '
            )
        },
        "the VM is asked for as an Executor, and it has a compiler of its own": {
            "relay.vm.compile(modules.copy(program), CPU, params=weights)": (
                'relay.build(program, CPU, executor=Executor("vm"), params=weights)'
            )
        },
        "a VirtualMachine has no such method: its constructor already takes the device": {
            "machine = VirtualMachine(vm, dev)": (
                "machine = VirtualMachine(vm, dev)\n    machine.initialize()"
            )
        },
        "level 0 is taken, at which the VM has no build": {"opt_level=3": "opt_level=0"},
        "the VM's program is run as if it were one of the graph executor": {
            "VirtualMachine(vm, dev)": 'GraphModule(vm.mod["default"](dev))'
        },
        "GraphModule is taken for the AOT executor, whose module has a class of its own": {
            'AotModule(aot["default"](dev))': 'GraphModule(aot["default"](dev))'
        },
        "the name of the VM's allocator is written in capitals, and TVM does not know it so": {
            "VirtualMachine(vm, dev)": 'VirtualMachine(vm, dev, "POOLED")'
        },
        "an array of TVM is given where an array of NumPy is asked for": {
            "append(m.get_output(0).numpy())": "append(m.get_output(0))"
        },
        "the results share the memory of the output, which the next run overwrites": {
            "append(m.get_output(0).numpy())": "append(np.from_dlpack(m.get_output(0)))"
        },
        "the graph executor is given no weights": {
            "graph = relay.build(program, CPU, params=weights)": "graph = relay.build(program, CPU)"
        },
        "the VM is given the first input each time": {
            'machine.invoke("main", tvm.nd.array(x)).numpy()': (
                '(machine.set_input("main", tvm.nd.array(inputs[0])), machine.run())[1].numpy()'
            )
        },
        "the VM's compiler changes the module that it is given, and it was given no copy": {
            "modules.copy(program)": "program"
        },
        "the weights of the lab are taken, and not those that are given": {
            "graph = relay.build(program, CPU, params=weights)": (
                "graph = relay.build(program, CPU, params=WEIGHTS)"
            )
        },
    },
}

# Question -> a right answer of another kind.
OTHERS: dict[str, str] = {
    "q1": """
def keep(program, weights, folder):
    bound = relay.build_module.bind_params_by_name(program["main"], weights)
    with PassContext(opt_level=3):
        code, kernels = relay.vm.compile(tvm.IRModule.from_expr(bound), CPU).save()
    with open(folder + "/code", "wb") as file:
        file.write(code)
    kernels.export_library(folder + "/kernels.so")
    return '''
import tvm
def infer(x, folder=FOLDER):
    code = bytearray(open(folder + "/code", "rb").read())
    kernels = tvm.runtime.load_module(folder + "/kernels.so")
    executable = tvm.runtime.vm.Executable.load_exec(code, kernels)
    machine = tvm.runtime.vm.VirtualMachine(executable, tvm.cpu())
    return machine.run(tvm.nd.array(x)).numpy()
'''.replace("FOLDER", repr(folder))
""",
    "q2": """
def smallest_wrong(n, wrong):
    candidates = list(range(n + 1))
    while len(candidates) > 1:
        half = (len(candidates) + 1) // 2
        good_ones, bad_ones = candidates[:half], candidates[half:]
        candidates = good_ones if wrong(good_ones[-1]) else bad_ones
    return candidates[0]
""",
    "q3": """
def all_guilty(names, wrong):
    if wrong(names):
        return None
    found, end = set(), len(names)
    while wrong(sorted(found, key=names.index)):
        low = 0
        while end - low > 1:
            middle = (low + end) // 2
            if wrong(names[:middle] + sorted(found, key=names.index)):
                low = middle
            else:
                end = middle
        found.add(names[end - 1])
    return [name for name in names if name in found]
""",
    "q5": """
def hot(rows, share):
    kernels = [row for row in rows if row[0][:4] != "VM::" and row[0][:5] != "__nop"]
    names = sorted({n for n, _ in kernels}, key=lambda n: -sum(t for m, t in kernels if m == n))
    all_rows, total = sum(t for _, t in rows), sum(t for _, t in kernels)
    for count in range(len(names) + 1):
        if sum(t for n, t in kernels if n in names[:count]) >= share * total - 1e-9:
            return names[:count], 1 - total / all_rows
""",
}

# Question -> what the public checks may accept -> an answer that does not do what is asked.
CHEATS: dict[str, dict[str, str]] = {
    "q4": {
        "it asks debugging.partner": """
def first_difference(reference, results, tolerance):
    tensors = {str(number): array for number, array in enumerate(reference)}
    for position, (_, value) in enumerate(results):
        if debugging.partner(value, tensors, tolerance) is None:
            return position
    return None
""",
    },
}

# --- hidden checks -------------------------------------------------------------------------------


def run(script: str) -> str:
    """A probe that executes a script; its value is the script's variable ``value``."""
    return f"(exec({script!r}), value)[1]"


def numbers(random: Generator, *shape: int) -> Any:
    """Numbers from -2 to 2 with three digits, as nested lists."""
    return random.uniform(-2, 2, shape).round(3).tolist()


# A layer as the lab has it, with another activation and other sizes.
PROGRAM = """
def program(rows, units, width, activation):
    shapes = {"x": (rows, width), "W": (units, width), "b": (units,)}
    x, w, b = (relay.var(name, shape=shape) for name, shape in shapes.items())
    body = activation(relay.nn.bias_add(relay.nn.dense(x, w), b))
    return modules.typed(relay.Function([x, w, b], body))
"""

# Two programs with other weights, one with any number of rows; a new process has the texts alone.
FRESH = """
from pathlib import Path

with tempfile.TemporaryDirectory() as place:
    code = f"import numpy as np\\nfound = []\\nasked = np.load({place + '/asked.npz'!r})\\n"
    asked = []
    for number, (rows, W, b, inputs) in enumerate(cases):
        Path(place, str(number)).mkdir()
        arrays = {"W": np.array(W, "float32"), "b": np.array(b, "float32")}
        weights = {name: tvm.nd.array(array) for name, array in arrays.items()}
        activation = relay.nn.relu if rows else relay.tanh
        given = program(rows or relay.Any(), *arrays["W"].shape, activation)
        code += keep(given, weights, f"{place}/{number}") + "\\n"
        for x in inputs:
            code += f"found.append(infer(asked['arr_{len(asked)}']))\\n"
            asked.append(np.array(x, "float32"))
    np.savez(f"{place}/asked.npz", *asked)
    run_with("relay", code + f"np.savez({place + '/found.npz'!r}, *found)")
    with np.load(f"{place}/found.npz") as found:
        value = [found[f"arr_{k}"] for k in range(len(asked))]
"""

# The program afterwards, and that something was kept: the text is executed without other names.
LEFT = """
value = []
for rows in (3, relay.Any()):
    given, same = (program(rows, 8, 4, relay.sigmoid) for _ in range(2))
    with tempfile.TemporaryDirectory() as place:
        text, names = keep(given, WEIGHTS, place), {}
        exec(text, names)
        value.append(names["infer"](np.array(x, "float32")))
    value.append([parameter.name_hint for parameter in given["main"].params])
    value.append(bool(tvm.ir.structural_equal(given, same)))
"""

SEARCH = """
def search(n, place):
    asked = []
    def wrong(k):
        asked.append(k)
        if len(asked) > 5000:
            raise WorkbookError("asked more than 5000 times: is this a loop without end?")
        return k >= place
    return [smallest_wrong(n, wrong), asked]

found = [search(n, place) for n, place in cases]
"""

SEARCH_ALL = """
def search(names, guilty):
    asked = []
    def wrong(left_out):
        asked.append(len(left_out))
        if len(asked) > 5000:
            raise WorkbookError("asked more than 5000 times: is this a loop without end?")
        return guilty is None or not set(guilty) <= set(left_out)
    return [all_guilty(list(names), wrong), len(asked)]

found = [search(names, guilty) for names, guilty in cases]
"""

COMPARE = """
def some(arrays):
    return [np.array(numbers, dtype) for numbers, dtype in arrays]

def position(reference, results, tolerance):
    results = [(f"kernel_{k}", array) for k, array in enumerate(some(results))]
    return first_difference(some(reference), results, tolerance)

value = [position(*case) for case in cases]
"""

# Programs with other names; each executor has to run, not only to be built.
EXECUTORS = """
import contextlib
from unittest.mock import patch

runs = {"graph": 0, "aot": 0, "vm": 0}

def counting(kind, method):
    def counted(*args, **kwargs):
        runs[kind] += 1
        return method(*args, **kwargs)
    return counted

methods = {
    "graph": (tvm.contrib.graph_executor.GraphModule, "run"),
    "aot": (tvm.runtime.executor.AotModule, "run"),
    "vm": (tvm.runtime.vm.VirtualMachine, "invoke"),
}
arrays = {name: np.array(numbers, "float32") for name, numbers in weights}
x = relay.var("x", shape=(rows, width))
others = [relay.var(name, shape=array.shape) for name, array in arrays.items()]
body = relay.tanh(relay.nn.bias_add(relay.nn.dense(x, others[0]), others[1]))
given = modules.typed(relay.Function([x, *others], body))
with contextlib.ExitStack() as stack:
    for kind, (owner, name) in methods.items():
        method = counting(kind, getattr(owner, name))
        stack.enter_context(patch.object(owner, name, method))
    given_weights = {name: tvm.nd.array(array) for name, array in arrays.items()}
    results = deploy(given, given_weights, [np.array(each, "float32") for each in inputs])
ran = {kind: count >= len(inputs) for kind, count in runs.items()}
"""


def kept(random: Generator) -> list[Any]:
    """[rows or 0 for any number, W, b, inputs] of two programs."""
    return [
        [1, numbers(random, 3, 5), numbers(random, 3), [numbers(random, 1, 5) for _ in range(2)]],
        [0, numbers(random, 6, 4), numbers(random, 6), [numbers(random, n, 4) for n in (1, 5)]],
    ]


def places(random: Generator) -> list[Any]:
    """[n, place]: each place among 1 to 20 passes; then drawn ones among up to 2000."""
    found = [[n, place] for n in range(1, 21) for place in range(n + 1)]
    for n in [32, 33, 64, 127, *random.integers(40, 2000, size=12).tolist()]:
        found += [[n, place] for place in (0, 1, n - 1, n, int(random.integers(n)))]
    return found


def is_short(value: Any, cases: list[Any]) -> str:
    """The right answers with few calls, none of them for what is known."""
    for (n, place), (answer, asked) in zip(cases, value, strict=True):
        if type(answer) is not int or answer != place:
            return "the answer for some place of the fault is another one"
        if not all(type(k) is int and 0 <= k < n for k in asked):
            return "a call of `wrong` asks for something else than a number from 0 to n - 1"
        if len(asked) > (n - 1).bit_length() + 1:
            return "there are more calls of `wrong` than the statement allows"
    return ""


def faults(random: Generator) -> list[Any]:
    """[names, the faulty ones or None when others are to blame]."""
    found: list[Any] = [[["p"], None], [list("dacb"), None], [[f"p{k}" for k in range(30)], None]]
    for few in ("a", "ba", "cab", "dbca", "ebdac"):
        for chosen in range(2 ** len(few)):
            found.append([list(few), [c for k, c in enumerate(few) if chosen >> k & 1]])
    for n in random.integers(6, 70, size=12).tolist():
        names = [f"pass_{k}" for k in random.permutation(n)]
        picked = sorted(random.choice(n, size=int(random.integers(6)), replace=False))
        found.append([names, [names[k] for k in picked]])
    return found


def finds_quickly(value: Any, cases: list[Any]) -> str:
    """All faulty passes with few calls."""
    for (names, guilty), (answer, calls) in zip(cases, value, strict=True):
        if answer != guilty:
            return "the answer for some faulty passes is another one"
        if calls > (len(guilty or []) + 1) * ((len(names) - 1).bit_length() + 1) + 1:
            return "there are more calls of `wrong` than the statement allows"
    return ""


def comparisons(random: Generator) -> list[Any]:
    """[reference, results, tolerance]; an array is [numbers, data type], and None is no number."""
    pair = [[1.0, -4.0], "float32"]
    found: list[Any] = [
        [[], [], 0.1],
        [[pair], [], 0.1],
        [[], [pair], 0.1],
        [[pair, [[], "float32"]], [[[[], []], "float64"], [[1.0], "float32"]], 0.1],
        [[pair], [pair, [[], "float32"]], 10.0],
        [[[8.0, "float32"]], [[10.0, "float32"], [10.25, "float32"]], 0.25],
        [[pair], [[[-4.0, 1.0], "float64"], [[[-4.0], [1.0]], "float32"]], 0.0],
        [[pair], [pair, [[[-4.0, None]], "float32"]], 10.0],
        [[[[0, 0], "int64"]], [[[0, 0], "int64"], [[0, 1], "int64"]], 0.5],
        [[[[3, 250], "uint8"]], [[[250, 4], "uint8"], [[3, 3], "uint8"]], 0.01],
        [[[[True, False], "bool"]], [[[False, True], "bool"], [[True, True], "bool"]], 0.1],
        [[[[2.0], "float32"], pair], [[[-4.0, 1.0], "float32"], [[2.0, 2.0], "float32"]], 0.01],
        [[[[5.0, -5.0], "float32"]], [[[-4.0, 4.0], "float32"], [[0.0, 0.0], "float32"]], 0.5],
    ]
    for _ in range(40):
        tolerance = float(random.choice([1e-3, 1e-2, 0.1]))
        shapes = [tuple(random.integers(1, 4, size=int(random.integers(4)))) for _ in range(5)]
        reference = [random.normal(size=shape) * 10 ** random.uniform(-2, 3) for shape in shapes]
        results = []
        for step in range(int(random.integers(1, 7))):
            array = reference[int(random.integers(5))]
            most = tolerance * float(abs(array).max())
            off = random.uniform(-0.5, 0.5, array.shape) * most
            if random.random() < 0.15 + 0.05 * step:
                off.ravel()[int(random.integers(array.size))] = 2e3 * most * random.choice([-1, 1])
            changed = (array + off).ravel()[random.permutation(array.size)]
            results.append([changed.tolist(), "float64"])
        known = [[array.tolist(), "float64"] for array in reference]
        found.append([known, results, tolerance])
    return found


EDGE_PROFILES: list[Any] = [
    [[["a", 4.0], ["b", 3.0], ["c", 1.0]], 0.5],
    [[["c", 1.0], ["b", 3.0], ["a", 4.0]], 0.875],
    [[["a", 1.0], ["b", 2.0], ["a", 2.0]], 1.0],
    [[["VM::Move", 2.0], ["__nop", 1.0]], 0.5],
    [[["VMatmul", 4.0], ["nop", 2.0], ["__nop_1", 1.0], ["VM::A", 1.0], ["my_VM::", 1.0]], 1.0],
    [[["a", 4.0], ["VM::A", 12.0]], 0.0],
]


def profiles(random: Generator) -> list[Any]:
    """[rows, share]; no two kernels take the same time, and no sum is the share by a hair."""
    found: list[Any] = []
    while len(found) < 40:
        names = [f"kernel_{k}" for k in range(int(random.integers(1, 9)))]
        others = ["VM::AllocTensor", "VM::AllocStorage", "__nop", "VM::UnknownOp"]
        rows: list[tuple[str, float]] = [
            (str(random.choice(names if random.random() < 0.7 else others)), int(time) / 8)
            for time in random.integers(1, 4000, size=int(random.integers(3, 30)))
        ]
        times: dict[str, float] = {}
        for name, time in rows:
            if name in names:
                times[name] = times.get(name, 0) + time
        total, share = sum(times.values()), float(random.choice([0.2, 0.5, 0.8, 0.95, 1.0]))
        ordered = sorted(times.values(), reverse=True)
        sums = [sum(ordered[:k]) for k in range(1, len(ordered))]
        different = len(set(ordered)) == len(ordered) > 0
        if different and all(abs(part - share * total) > 1e-6 for part in sums):
            found.append([rows, share])
    return found


def scripts(random: Generator, count: int) -> dict[str, Any]:
    """What a deployed program needs: names, shapes, weights and inputs."""
    rows, width, units = (int(size) for size in random.integers(2, 7, size=3))
    return {
        "rows": rows,
        "width": width,
        "weights": [["kernel", numbers(random, units, width)], ["offset", numbers(random, units)]],
        "inputs": [numbers(random, rows, width) for _ in range(count)],
    }


HIDDEN = {
    "q1": [
        Hidden(
            "a fresh process: two other programs with other weights, and several inputs each",
            probe=run(PROGRAM + FRESH),
            draw=lambda random: {"cases": kept(random)},
            rtol=1e-4,
            atol=1e-5,
            weight=2,
        ),
        Hidden(
            "what is left of a program whose build is kept",
            probe=run(PROGRAM + LEFT),
            draw=lambda random: {"x": numbers(random, 3, 4)},
            rtol=1e-4,
            atol=1e-5,
        ),
    ],
    "q2": [
        Hidden(
            "each place of the fault among few and many passes",
            probe=run(SEARCH + "value = [answer for answer, _ in found]"),
            draw=lambda random: {"cases": places(random)},
        ),
        Hidden(
            "how many builds a search takes, and of what",
            probe=run(SEARCH + "value = found"),
            draw=lambda random: {"cases": places(random)},
            verify=is_short,
            weight=2,
        ),
    ],
    "q3": [
        Hidden(
            "no, one, several and only faulty passes among few and many names",
            probe=run(SEARCH_ALL + "value = [answer for answer, _ in found]"),
            draw=lambda random: {"cases": faults(random)},
        ),
        Hidden(
            "how many builds the searches take",
            probe=run(SEARCH_ALL + "value = found"),
            draw=lambda random: {"cases": faults(random)},
            verify=finds_quickly,
            weight=2,
        ),
    ],
    "q4": [
        Hidden(
            "arrays of several types, shapes, sizes and orders, and several tolerances",
            probe=run(COMPARE),
            draw=lambda random: {"cases": comparisons(random)},
        ),
    ],
    "q5": [
        Hidden(
            "drawn profiles, and the share of few and of all kernels",
            probe="[hot([tuple(row) for row in rows], share) for rows, share in cases]",
            draw=lambda random: {"cases": profiles(random)},
            weight=2,
        ),
        Hidden(
            "shares that are met exactly, profiles without kernels, names that only look alike",
            probe="[hot([tuple(row) for row in rows], share) for rows, share in cases]",
            draw=lambda random: {"cases": EDGE_PROFILES},
        ),
    ],
    "q6": [
        Hidden(
            "another program, several inputs, and whether all three executors run",
            probe=run(EXECUTORS + "value = [results, ran]"),
            draw=lambda random: scripts(random, 3),
            rtol=1e-4,
            atol=1e-5,
            weight=2,
        ),
        Hidden(
            "what is left of the program",
            probe=run(
                EXECUTORS
                + "names = [parameter.name_hint for parameter in given['main'].params]\n"
                + "value = [names, ran, results['vm'], results['graph']]"
            ),
            draw=lambda random: scripts(random, 1),
            rtol=1e-4,
            atol=1e-5,
        ),
    ],
}
