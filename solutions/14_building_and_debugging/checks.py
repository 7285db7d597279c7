"""Lab 14: wrong answers, which the public checks must refuse, and other right ones."""

# Question -> what is wrong with the answer -> which of its texts are replaced by what.
WRONG: dict[str, dict[str, dict[str, str]]] = {
    "q1": {
        "compiling changes the program": {"modules.copy(program)": "program"},
        "the weights stay behind": {", params=weights": ""},
        "another process, the same variables": {
            "tvm.runtime.load_module({path!r})": "built",
            "return f'''": "return '''",
        },
        "the graph executor, which takes no unknown shape": {
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
        "the graph executor's way to load a VM": {
            "VirtualMachine(tvm.runtime.load_module({path!r}), tvm.cpu())": (
                'tvm.runtime.load_module({path!r})["default"](tvm.cpu())'
            ),
        },
        "initialize": {", tvm.cpu())\n": ", tvm.cpu())\nmachine.initialize()\n"},
    },
    "q2": {
        "the first that works": {"return high": "return high - 1"},
        "never asks for no pass at all": {"low, high = 0, n": "low, high = 1, n"},
        "one after the other": {"(low + high) // 2": "low"},
        "from the end": {"(low + high) // 2": "high - 1"},
        "asks for what is known": {
            "low, high = 0, n": "low, high = 0, n\n    wrong(n), wrong(n), wrong(n)"
        },
        "the halves are swapped": {"if wrong(middle)": "if not wrong(middle)"},
        "stops one early": {"while low < high": "while low + 1 < high"},
        "drops the middle": {"high = middle\n": "high = middle - 1\n"},
        "some pass is guilty": {"return high": "return max(high, 1)"},
    },
    "q3": {
        "only one": {"while wrong(found)": "for _ in range(1)"},
        "from last to first": {"return found[::-1]": "return found"},
        "the passes that were found run again": {
            "wrong(found + names[:middle])": "wrong(names[:middle])"
        },
        "one after the other": {"(low + high) // 2": "high - 1"},
        "the one after it": {"names[high - 1]": "names[min(high, len(names) - 1)]"},
        "someone is always guilty": {"while wrong(found)": "while not found or wrong(found)"},
        "nobody is an empty list": {"return None": "return []"},
        "the halves are swapped": {
            "if wrong(found + names[:middle])": "if not wrong(found + names[:middle])"
        },
        "each name alone": {
            "while wrong(found):\n        low": (
                "return [name for name in names if not wrong([name])]\n"
                "    while wrong(found):\n        low"
            )
        },
        "a test for each name": {
            "while wrong(found):\n        low": (
                "return [n for n in names if wrong([m for m in names if m != n])]\n"
                "    while wrong(found):\n        low"
            )
        },
    },
    "q4": {
        "in the same order only": {
            'known = [np.sort(array.astype("float64").ravel())': (
                'known = [(array.astype("float64").ravel())'
            ),
            'mine = np.sort(value.astype("float64").ravel())': (
                'mine = value.astype("float64").ravel()'
            ),
        },
        "only the result is sorted": {
            'known = [np.sort(array.astype("float64").ravel())': (
                'known = [(array.astype("float64").ravel())'
            ),
        },
        "booleans are not numbers": {
            'value.astype("float64").ravel()': "value.ravel()",
            'array.astype("float64").ravel()': "array.ravel()",
        },
        "the same shape": {
            'known = [np.sort(array.astype("float64").ravel())': (
                "shapes = [array.shape for array in reference]\n"
                '    known = [np.sort(array.astype("float64").ravel())'
            ),
            "mine = np.sort": (
                "if value.shape not in shapes:\n            return position\n        mine = np.sort"
            ),
        },
        "an absolute tolerance": {" * np.abs(a).max() for": " for"},
        "relative to the result": {"tolerance * np.abs(a).max()": "tolerance * np.abs(mine).max()"},
        "not a number is near everything": {
            "any(np.abs(a - mine).max() <= tolerance * np.abs(a).max() for a in same)": (
                "any(not np.abs(a - mine).max() > tolerance * np.abs(a).max() for a in same)"
            )
        },
        "the sums are compared": {
            "np.abs(a - mine).max() <=": "abs(a.sum() - mine.sum()) <=",
        },
        "absolute values": {
            "np.abs(a - mine).max()": "np.abs(np.sort(abs(a)) - np.sort(abs(mine))).max()"
        },
        "how many differ": {"return None": "return len(results)"},
        "counts from one": {"return position": "return position + 1"},
        "the kernel before it": {"return position": "return position - 1"},
        "the last one": {
            "return None": "return last",
            "return position": "last = position",
            "known = [": "last = None\n    known = [",
        },
        "the number of numbers does not count": {
            "[array for array in known if array.size == mine.size]": (
                "[array[: min(array.size, mine.size)] for array in known]"
            ),
            "np.abs(a - mine).max()": "np.abs(a - mine[: a.size]).max()",
        },
    },
    "q5": {
        "rows are not added": {"times[name] += microseconds": "times[name] = microseconds"},
        "each row is a kernel": {
            "in times.most_common()": "in sorted(rows, key=lambda row: -row[1])"
        },
        "in the order of the run": {"times.most_common()": "times.items()"},
        "one kernel short": {
            "if sum(times[n] for n in names) >=": "if sum(times[n] for n in [*names, name]) >="
        },
        "one kernel more": {">= share * total": "> share * total + 1e-9"},
        "a share of all rows": {"share * total:": "share * (total + other):"},
        "instructions are kernels": {'("VM::", "__nop")': '("nothing",)'},
        "a reshape is a kernel": {'("VM::", "__nop")': '"VM::"'},
        "other as a part of the kernels": {"other / (total + other)": "other / total"},
        "microseconds of the others": {"other / (total + other)": "other"},
        "the smallest first": {"times.most_common()": "times.most_common()[::-1]"},
    },
    "q6": {
        "a string names the executor": {
            "graph = relay.build(program, CPU, ": (
                'graph = relay.build(program, CPU, executor="graph", '
            )
        },
        "Executor knows the VM": {
            "relay.vm.compile(modules.copy(program), CPU, params=weights)": (
                'relay.build(program, CPU, executor=Executor("vm"), params=weights)'
            )
        },
        "initialize": {
            "machine = VirtualMachine(vm, dev)": (
                "machine = VirtualMachine(vm, dev)\n    machine.initialize()"
            )
        },
        "level 0 is safe": {"opt_level=3": "opt_level=0"},
        "the graph executor's way": {
            "VirtualMachine(vm, dev)": 'GraphModule(vm.mod["default"](dev))'
        },
        "one class for both": {
            'AotModule(aot["default"](dev))': 'GraphModule(aot["default"](dev))'
        },
        "names in capitals": {"VirtualMachine(vm, dev)": 'VirtualMachine(vm, dev, "POOLED")'},
        "the memory of the next result": {
            "append(m.get_output(0).numpy())": "append(m.get_output(0))"
        },
        "a result that lives in the next one": {
            "append(m.get_output(0).numpy())": "append(np.from_dlpack(m.get_output(0)))"
        },
        "the weights are forgotten": {
            "graph = relay.build(program, CPU, params=weights)": "graph = relay.build(program, CPU)"
        },
        "the VM keeps its inputs": {
            'machine.invoke("main", tvm.nd.array(x)).numpy()': (
                '(machine.set_input("main", tvm.nd.array(inputs[0])), machine.run())[1].numpy()'
            )
        },
        "compiling changes the program": {"modules.copy(program)": "program"},
        "the weights of the lab, whatever is given": {
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
