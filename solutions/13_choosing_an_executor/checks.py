"""Lab 13: wrong answers, which the public checks must refuse, and other right ones."""

# Question -> what is wrong with the answer -> which of its texts are replaced by what.
WRONG: dict[str, dict[str, dict[str, str]]] = {
    "q1": {
        "constants are not folded": {'passes.run(program, "FoldConstant")': "program"},
        "AOT is forgotten": {'{"graph", "aot", "vm"}': '{"graph", "vm"}'},
        "the VM is for dynamic programs alone": {'{"graph", "aot", "vm"}': '{"graph", "aot"}'},
        "the VM runs references": {"return set()": 'return {"vm"}'},
        "everything runs on the VM alone": {
            '{"vm"} if reasons else {"graph", "aot", "vm"}': '{"vm"}'
        },
        "AOT runs choices": {'{"vm"} if reasons': '{"aot", "vm"} if reasons'},
        "unknown dimensions alone": {
            "= ir.is_dynamic(folded).reasons": (
                '= [r for r in ir.is_dynamic(folded).reasons if "dimension" in r or "ref" in r]'
            )
        },
        "choices and loops alone": {
            "= ir.is_dynamic(folded).reasons": (
                '= [r for r in ir.is_dynamic(folded).reasons if "dimension" not in r]'
            )
        },
        "the types of inputs alone": {
            "= ir.is_dynamic(folded).reasons": (
                '= [p for p in folded["main"].params if "?" in str(p.checked_type)]'
            )
        },
        "nothing can run a program with a choice": {'{"vm"} if reasons': "set() if reasons"},
    },
    "q2": {
        "the times are not divided": {" / fastest": ""},
        "divided by the slowest": {
            "min(T[name] for name in able)": "max(T[name] for name in able)"
        },
        "the weights are exchanged": {
            "weight * T": "(1 - weight) * T",
            "(1 - weight) * F": "weight * F",
        },
        "flexibility is not weighed": {"(1 - weight) * F[name]": "F[name]"},
        "the largest score": {"return min(": "return max("},
        "F is taken for flexibility": {"+ (1 - weight) * F[name]": "- (1 - weight) * F[name]"},
        "an infinite time counts as none": {
            "* T[name] / fastest": "* (T[name] if T[name] < inf else 0) / fastest",
            "if T[name] < inf]": "]",
            "(T[name] for name in able)": "(T[name] for name in T)",
        },
        "time is not weighed": {"weight * T[name] / fastest + ": ""},
        "the error instead of None": {"        return None\n": "        raise ValueError(T)\n"},
    },
    "q3": {
        "the times are not divided": {"(T[b] - T[a]) / fastest": "T[b] - T[a]"},
        "from large weights to small ones": {
            "pairwise(sorted(borders))": "reversed([*pairwise(sorted(borders))])"
        },
        "who wins at the borders alone": {"(low + high) / 2": "low + 1e-3"},
        "a coarse grid": {"pairwise(sorted(borders))": "pairwise(np.linspace(0, 1, 21))"},
        "each time it wins": {"if name not in found:": "if True:"},
        "not better in both": {
            "    return found\n": "    return sorted(T, key=lambda name: F[name])\n"
        },
        "the two ends alone": {"borders.add(more / (more + slower))": "pass"},
        "without the least weights": {"{0.0, 1.0}": "{1.0}"},
        "without the largest weights": {"{0.0, 1.0}": "{0.0}"},
        "parallel lines are not seen": {"if more + slower and 0 <": "if 0 <"},
    },
    "q4": {
        "bytes are ignored": {"sum(held[size] for size in chosen) > budget or ": ""},
        "the whole budget is not allowed": {"> budget": ">= budget"},
        "long requests are ignored": {
            " or chosen[-1] < max(lengths)": "",
            "(s for s in chosen if s >= length)": "((s for s in chosen if s >= length), default=0)",
        },
        "the longest must be shorter": {
            "chosen[-1] < max(lengths)": "chosen[-1] <= max(lengths)",
        },
        "the first that fits": {"if work < least:": "if best is None:"},
        "more builds for nothing": {"if work < least:": "if work <= least:"},
        "no padding": {"macs(min(s for s in chosen if s >= length))": "macs(length)"},
        "the length, not the work": {"macs(min(s for s in chosen if s >= length))": "1"},
        "padded to the longest": {"min(s for s in chosen if s >= length)": "chosen[-1]"},
        "as many builds as fit": {
            "if work < least:": "if True:",
        },
        "two builds at most": {"range(1, len(held) + 1)": "range(1, 3)"},
        "as few bytes as possible": {
            "work = sum(macs(min(s for s in chosen if s >= length)) for length in lengths)": (
                "work = sum(held[size] for size in chosen)"
            )
        },
        "an empty tuple": {"best, least = None, inf": "best, least = (), inf"},
    },
    "q5": {
        "all parameters for both": {" if p in used": "", " if p in left": ""},
        "all parameters for the second": {" if p in left": ""},
        "handed comes last": {"[handed, *others]": "[*others, handed]"},
        "nothing is replaced": {"Replace().visit(function.body)": "function.body"},
        "the second half alone": {"return before, ": "return function, "},
        "the order of use": {
            "[p for p in function.params if p in left]": "[p for p in left if p is not handed]"
        },
        "the halves are exchanged": {"return before, after": "return after, before"},
        "the rest is doubled": {"*others], rest)": "*others], rest + rest)"},
        "the rest is the cut": {"*others], rest)": "*others], cut)"},
        "only the first use is replaced": {
            "expr.same_as(cut)": "expr.same_as(cut) and not done and not done.append(1)",
            "    class Replace": "    done = []\n\n    class Replace",
        },
    },
    "q6": {
        "who can run it is not asked": {"name in executors(program) and ": ""},
        "memory is not asked": {" and held[name] <= budget": ""},
        "the whole budget is not allowed": {"<= budget": "< budget"},
        "one inference": {".total(n)": ".infer"},
        "the fixed part alone": {".total(n)": ".fixed"},
        "the least memory": {"bills[name].total(n)": "held[name]"},
        "an error instead of None": {", default=None": ""},
        "the VM whenever it can": {
            "    return min(able": (
                '    if "vm" in able and n > 5000:\n        return "vm"\n    return min(able'
            )
        },
        "a bill is taken for granted": {"for name in bills if": "for name in held if"},
    },
}

# Question -> a right answer of another kind.
OTHERS: dict[str, str] = {
    "q3": """
def winners(T, F):
    fastest = min(T.values())
    lines = {name: (T[name] / fastest - F[name], F[name]) for name in T}
    now, found = 0.0, []
    name = min(T, key=lambda one: (lines[one][1], lines[one][0]))
    while True:
        found.append(name)
        slope, level = lines[name]
        later = [
            ((own - level) / (slope - steep), steep, one)
            for one, (steep, own) in lines.items()
            if steep < slope
        ]
        later = [each for each in later if now <= each[0] < 1]
        if not later:
            return found
        now, _, name = min(later)
""",
    "q4": """
def best_sizes(lengths, held, budget):
    sizes = sorted(held)
    states = {(0, 0, 0): ()}  # (longest size, bytes, work) -> the sizes
    for size in sizes:
        for (last, taken, work), chosen in list(states.items()):
            number = sum(last < length <= size for length in lengths)
            if taken + held[size] <= budget:
                key = (size, taken + held[size], work + number * macs(size))
                if key not in states or len(states[key]) > len(chosen) + 1:
                    states[key] = (*chosen, size)
    whole = [(key[2], len(c), c) for key, c in states.items() if key[0] >= max(lengths)]
    return min(whole)[2] if whole else None
""",
    "q6": """
def decide(program, bills, held, n, budget):
    best = None
    for name, bill in bills.items():
        if held[name] > budget or name not in executors(program):
            continue
        if best is None or bill.total(n) < bills[best].total(n):
            best = name
    return best
""",
}
