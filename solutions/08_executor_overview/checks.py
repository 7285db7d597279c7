"""Lab 08: wrong answers, which the public checks must refuse, and other right ones."""

# Question -> what is wrong with the answer -> which of its texts are replaced by what.
WRONG: dict[str, dict[str, dict[str, str]]] = {
    "q1": {
        "the name of the node": {'node["attrs"]["func_name"] for': 'node["name"] for'},
        "each node is a kernel": {
            ' if node["op"] == "tvm_op"]': "]",
            '["attrs"]["func_name"] for': ('.get("attrs", {}).get("func_name", node["name"]) for'),
        },
        "a reshape is a kernel": {' if name != "__nop"': ""},
        "the kernels of the VM instead of its calls": {
            'names[int(number)] for number in re.findall(r"PackedFunc\\[(\\d+)\\]", text)': (
                "name for name in names"
            )
        },
        "each kernel once": {
            "return [name for name in short": "return [name for name in dict.fromkeys(short)"
        },
        "in the order of the names": {"for name in short if": "for name in sorted(short) if"},
        "the entry function calls itself": {'call_cpacked\\("(\\w+)"': "(tvmgen_default_\\w+)"},
        "prefixes of the graph only": {'.removeprefix("vm_mod_")': ""},
        "prefixes of the VM only": {'.removeprefix("tvmgen_default_")': ""},
        "numbers of kernels": {"names[int(number)] for": "number for"},
        "counted from one": {"names[int(number)] for": "names[int(number) - 1] for"},
        "a flatten is no kernel for any executor": {
            'if name != "__nop"': 'if name not in ("__nop", "fused_nn_batch_flatten")'
        },
    },
    "q2": {
        "a let is a choice": {
            '["list", "let", "two results"]': '["list", "two results"]',
            '"where": every': ('"let": flexible, "where": every'),
        },
        "a list has one result": {
            '["list", "let", "two results"]': '["list", "let"]',
            '"where": every': ('"two results": flexible, "where": every'),
        },
        "AOT is a VM": {'"choice": flexible': '"choice": {*flexible, "aot"}'},
        "the interpreter is for debugging only": {
            'every = {"graph", "aot", *flexible}': 'every = {"graph", "aot", "vm"}'
        },
        "a where is an if": {'"where": every': '"where": flexible'},
        "an if is a where": {'"choice": flexible': '"choice": every'},
        "a loop is a long list": {'"loop": flexible': '"loop": every'},
        "a closure can be put in place": {'"closure": flexible': '"closure": every'},
        "one length at a time is enough": {'"any length": flexible': '"any length": every'},
        "the interpreter needs shapes": {'"any length": flexible': '"any length": {"vm"}'},
        "known inputs, known results": {'"argwhere": flexible': '"argwhere": every'},
        "argwhere needs the interpreter": {'"argwhere": flexible': '"argwhere": {"interpreter"}'},
        "the VM runs everything": {'"reference": {"interpreter"}': '"reference": flexible'},
        "nothing runs a reference": {'"reference": {"interpreter"}': '"reference": set()'},
    },
    "q3": {
        "each process compiles always": {'"shared": 1': '"shared": processes'},
        "nobody compiles twice": {'"none": processes': '"none": 1'},
        "a kept artefact is compiled once": {'"kept": 0': '"kept": 1'},
        "a kept artefact needs no startup": {
            "one = startup +": 'one = (startup if artefact != "kept" else 0) +'
        },
        "one startup for all": {"+ processes * one": "+ startup + processes * (one - startup)"},
        "each process answers all requests": {"requests / processes / batch": "requests / batch"},
        "time passes once for all processes": {"processes * one": "one"},
        "a batch costs nothing more": {"inferences * factor * infer": "inferences * infer"},
        "the factor is for each request": {
            "inferences * factor * infer": "inferences * batch * factor * infer"
        },
        "the last batch is left out": {
            "ceil(requests / processes / batch)": "requests // processes // batch"
        },
        "the last batch takes a part of the time": {
            "ceil(requests / processes / batch)": "requests / processes / batch"
        },
        "batches over all processes": {
            "ceil(requests / processes / batch)": "ceil(requests / batch) / processes"
        },
        "startup has the first inference": {
            "ceil(requests / processes / batch)": "ceil((requests / processes - 1) / batch)"
        },
        "warming up is free": {"warmup + ceil": "ceil"},
        "a warm-up saves the first inferences": {"warmup + ceil": "-warmup + ceil"},
        "warm-up requests are no batches": {
            "warmup + ceil": "warmup / factor + ceil",
        },
        "a batch is not used": {"/ batch)": ")"},
    },
    "q4": {
        "the sum of both": {
            '("compile", compile) if compile >= startup else ("startup", startup)': (
                '("compile", compile + startup)'
            )
        },
        "compilation is always the largest": {
            '("compile", compile) if compile >= startup else ("startup", startup)': (
                '("compile", compile)'
            )
        },
        "startup wins a tie": {"compile >= startup": "compile > startup"},
        "inference wins a tie": {"fixed // infer": "(fixed - 1) // infer"},
        "rounded up": {"fixed // infer": "-(-fixed // infer)"},
        "one N in two ranges": {'("infer", last + 1, None)': '("infer", last, None)'},
        "an empty range": {"if last >= 1 else []": "if True else []"},
        "an end for N": {'("infer", last + 1, None)': '("infer", last + 1, 10**6)'},
        "from zero": {"(name, 1, last)": "(name, 0, last)"},
    },
    "q5": {
        "weights grow with the batch": {
            'size if nodes[source]["name"] in weights else batch * size': "batch * size"
        },
        "nothing grows": {' if nodes[source]["name"] in weights else batch * size': ""},
        "weights are free": {"size if nodes[source]": "0 if nodes[source]"},
        "inputs do not grow": {'nodes[source]["name"] in weights': 'nodes[source]["op"] == "null"'},
        "only what is read": {"in reads + writes": "in reads"},
        "only what is written": {"in reads + writes": "in writes"},
        "a reshape moves bytes": {' or node["attrs"]["func_name"] == "__nop"': ""},
        "all numbers have four bytes": {"np.dtype(dtypes[place]).itemsize": "4"},
        "a node has one result": {"range(rows[k], rows[k + 1])": "(rows[k],)"},
        "node numbers as places": {"rows[source] + result": "source + result"},
        "what was just written is read for free": {
            "in reads + writes": ('in writes + [p for p in reads if nodes[p[0]]["op"] == "null"]')
        },
        "numbers instead of bytes": {" * np.dtype(dtypes[place]).itemsize": ""},
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
