"""Lab 13: wrong answers that the checks must refuse, other right ones, and the hidden checks."""

from itertools import combinations
from typing import Any

import numpy as np
from numpy.random import Generator

from helpers import programs
from helpers.grading.hidden import Hidden, Inputs

# Question -> what is wrong with the answer -> which of its texts are replaced by what.
WRONG: dict[str, dict[str, dict[str, str]]] = {
    "q1": {
        "a choice with a constant condition is taken for a choice at run time": {
            'passes.run(program, "FoldConstant")': "program"
        },
        "AOT is left out, although it runs static programs": {
            '{"graph", "aot", "vm"}': '{"graph", "vm"}'
        },
        "the VM is taken to run dynamic programs only": {
            '{"graph", "aot", "vm"}': '{"graph", "aot"}'
        },
        "the VM is taken to run a program with a reference": {"return set()": 'return {"vm"}'},
        "each executor is taken to run each program": {
            "        return set()\n": '        return {"graph", "aot", "vm"}\n',
            '{"vm"} if reasons else ': "",
        },
        "only the VM is named, also for a static program": {
            '{"vm"} if reasons else {"graph", "aot", "vm"}': '{"vm"}'
        },
        "AOT is taken to run dynamic programs": {'{"vm"} if reasons': '{"aot", "vm"} if reasons'},
        "only an unknown dimension is taken to make a program dynamic, not a choice or a loop": {
            "= ir.is_dynamic(folded).reasons": (
                '= [r for r in ir.is_dynamic(folded).reasons if "dimension" in r or "ref" in r]'
            )
        },
        "only a choice or a loop is taken to make a program dynamic, not an unknown dimension": {
            "= ir.is_dynamic(folded).reasons": (
                '= [r for r in ir.is_dynamic(folded).reasons if "dimension" not in r]'
            )
        },
        "only the types of the inputs are looked at, and nothing inside of the program": {
            "= ir.is_dynamic(folded).reasons": (
                '= [p for p in folded["main"].params if "?" in str(p.checked_type)]'
            )
        },
        "no executor is taken to run a dynamic program": {'{"vm"} if reasons': "set() if reasons"},
    },
    "q2": {
        "seconds are added to F: the times are not divided by the smallest": {" / fastest": ""},
        "the times are divided by the largest, not by the smallest": {
            "min(T[name] for name in able)": "max(T[name] for name in able)"
        },
        "the weight is given to F, and what remains of 1 to the times": {
            "weight * T": "(1 - weight) * T",
            "(1 - weight) * F": "weight * F",
        },
        "F is added without the factor 1 - weight": {"(1 - weight) * F[name]": "F[name]"},
        "the candidate with the largest score is chosen": {"return min(": "return max("},
        "a large F is taken for an advantage: it is subtracted": {
            "+ (1 - weight) * F[name]": "- (1 - weight) * F[name]"
        },
        "an infinite time is taken for a time of 0": {
            "* T[name] / fastest": "* (T[name] if T[name] < inf else 0) / fastest",
            "if T[name] < inf]": "]",
            "(T[name] for name in able)": "(T[name] for name in T)",
        },
        "the times are left out of the score": {"weight * T[name] / fastest + ": ""},
        "an error is raised where no candidate can run the model": {
            "        return None\n": "        raise ValueError(T)\n"
        },
    },
    "q3": {
        "the crossings are those of the times in seconds, not of the divided times": {
            "(T[b] - T[a]) / fastest": "T[b] - T[a]"
        },
        "the winners are listed from large weights to small ones": {
            "pairwise(sorted(borders))": "reversed([*pairwise(sorted(borders))])"
        },
        "a range of weights that is narrower than some fixed step is missed": {
            "(low + high) / 2": "low + 1e-3"
        },
        "the weights are tried on a coarse grid, which steps over narrow ranges": {
            "pairwise(sorted(borders))": "pairwise(np.linspace(0, 1, 21))"
        },
        "a candidate is listed again for each range that it wins": {
            "if name not in found:": "if True:"
        },
        "candidates are listed that no weight chooses": {
            "    return found\n": "    return sorted(T, key=lambda name: F[name])\n"
        },
        "only one weight in the middle is asked, whatever crossings there are": {
            "borders.add(more / (more + slower))": "pass"
        },
        "the range below the smallest crossing is left out": {"{0.0, 1.0}": "{1.0}"},
        "the range above the largest crossing is left out": {"{0.0, 1.0}": "{0.0}"},
        "two parallel lines are taken to cross, which divides by 0": {
            "if more + slower and 0 <": "if 0 <"
        },
    },
    "q4": {
        "the budget is ignored": {"sum(held[size] for size in chosen) > budget or ": ""},
        "a choice that needs the whole budget is taken to be too large": {"> budget": ">= budget"},
        "a request that is longer than the largest size is ignored": {
            " or chosen[-1] < max(lengths)": "",
            "(s for s in chosen if s >= length)": "((s for s in chosen if s >= length), default=0)",
        },
        "a request of exactly the largest size is taken not to fit": {
            "chosen[-1] < max(lengths)": "chosen[-1] <= max(lengths)",
        },
        "the first subset that fits is taken, not the one with the least work": {
            "if work < least:": "if best is None:"
        },
        "of equal work, the subset with the most builds is taken": {
            "if work < least:": "if work <= least:"
        },
        "the work is that of the requests themselves, without their padding": {
            "macs(min(s for s in chosen if s >= length))": "macs(length)"
        },
        "requests are counted, not their work": {
            "macs(min(s for s in chosen if s >= length))": "1"
        },
        "each request is padded to the largest size built, not to the next one": {
            "min(s for s in chosen if s >= length)": "chosen[-1]"
        },
        "as many builds as the budget allows are taken, whatever they gain": {
            "if work < least:": "if True:",
        },
        "no more than two builds are tried": {"range(1, len(held) + 1)": "range(1, 3)"},
        "the bytes are made small, not the work": {
            "work = sum(macs(min(s for s in chosen if s >= length)) for length in lengths)": (
                "work = sum(held[size] for size in chosen)"
            )
        },
        "an empty tuple is given where nothing fits, not None": {
            "best, least = None, inf": "best, least = (), inf"
        },
    },
    "q5": {
        "both halves get all parameters, also those that they do not use": {
            " if p in used": "",
            " if p in left": "",
        },
        "the second half gets all parameters, also those that it does not use": {
            " if p in left": ""
        },
        "`handed` is the last parameter of the second half, not the first": {
            "[handed, *others]": "[*others, handed]"
        },
        "the second half computes the cut again, and does not use `handed`": {
            "Replace().visit(function.body)": "function.body"
        },
        "the first half is the whole function": {"return before, ": "return function, "},
        "the parameters of the second half are in the order of their use": {
            "[p for p in function.params if p in left]": "[p for p in left if p is not handed]"
        },
        "the halves are given in the wrong order": {"return before, after": "return after, before"},
        "the second half gives twice the result": {"*others], rest)": "*others], rest + rest)"},
        "the second half computes the cut, not the result of the function": {
            "*others], rest)": "*others], cut)"
        },
        "only the first use of the cut is replaced": {
            "expr.same_as(cut)": "expr.same_as(cut) and not done and not done.append(1)",
            "    class Replace": "    done = []\n\n    class Replace",
        },
    },
    "q6": {
        "it is not asked who can run the program": {"name in executors(program) and ": ""},
        "the budget is not asked about": {" and held[name] <= budget": ""},
        "an executor that holds exactly the budget is taken to hold too much": {
            "<= budget": "< budget"
        },
        "the time of one inference decides, not the total for n": {".total(n)": ".infer"},
        "only what is paid before the first inference decides, whatever n is": {
            ".total(n)": ".fixed"
        },
        "the executor with the fewest bytes is chosen, not the one with the smallest total": {
            "bills[name].total(n)": "held[name]"
        },
        "an error is raised where no executor is left": {", default=None": ""},
        "the VM is chosen for many inferences whenever it can run the program": {
            "    return min(able": (
                '    if "vm" in able and n > 5000:\n        return "vm"\n    return min(able'
            )
        },
        "the seconds of compilation are left out of the total": {
            ".total(n)": ".startup + n * bills[name].infer"
        },
        "each executor is taken to have a bill": {"for name in bills if": "for name in held if"},
    },
    "q7": {
        "the order is from large weights to small ones": {
            "= winners(own_T, own_F)": "= winners(own_T, own_F)[::-1]"
        },
        "every candidate wins somewhere": {
            "= winners(own_T, own_F)": "= sorted(own_T, key=own_F.get)"
        },
        "only the fastest and the most flexible candidate can win": {
            "= winners(own_T, own_F)": "= [min(own_F, key=own_F.get), min(own_T, key=own_T.get)]"
        },
        "the winners are given with their times": {
            "= winners(own_T, own_F)": "= [*winners(own_T, own_F), 'time']",
            "pairwise(own_winners)": "pairwise(own_winners[:-1])",
        },
        "the times are not divided by the smallest one": {
            "(own_T[a] - own_T[b]) / min(own_T.values())": "(own_T[a] - own_T[b])"
        },
        "lambda weighs the flexibility, not the time": {
            "    (own_F[b] - own_F[a]) / (own": "    1 - (own_F[b] - own_F[a]) / (own"
        },
        "the borders are those between neighbours in time, winners or not": {
            "pairwise(own_winners)": "pairwise(sorted(own_T, key=own_F.get))"
        },
        "the borders are given in percent": {
            "    (own_F[b] - own_F[a]) / (own": "    100 * (own_F[b] - own_F[a]) / (own"
        },
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

# Question -> what the public checks may accept -> an answer that does not do what is asked.
CHEATS: dict[str, dict[str, str]] = {
    "q1": {
        "a choice is asked about first": """
def executors(program):
    reasons = ir.is_dynamic(passes.run(program, "FoldConstant")).reasons
    if reasons and all("reference" in reason for reason in reasons):
        return set()
    return {"vm"} if reasons else {"graph", "aot", "vm"}
""",
        "references are looked for before folding": """
def executors(program):
    reasons = ir.is_dynamic(passes.run(program, "FoldConstant")).reasons
    if any("reference" in reason for reason in ir.is_dynamic(program).reasons):
        return set()
    return {"vm"} if reasons else {"graph", "aot", "vm"}
""",
    },
    "q3": {
        "it tries a fine grid": """
def winners(T, F):
    return list(dict.fromkeys(choose(T, F, (k + 0.5) / 5000) for k in range(5000)))
""",
    },
    "q4": {
        "the sizes are taken in the order of the dictionary": """
def best_sizes(lengths, held, budget):
    best, least = None, inf
    for count in range(1, len(held) + 1):
        for chosen in combinations(held, count):
            if sum(held[s] for s in chosen) <= budget and chosen[-1] >= max(lengths):
                work = sum(macs(min((s for s in chosen if s >= n), default=0)) for n in lengths)
                if work < least:
                    best, least = chosen, work
    return best
""",
        "it adds the size that gains most, one after another": """
def best_sizes(lengths, held, budget):
    def work(chosen):
        return sum(macs(min(s for s in chosen if s >= n)) for n in lengths)

    able = [s for s in sorted(held) if s >= max(lengths) and held[s] <= budget]
    chosen = able[:1]
    while chosen:
        more = [s for s in held if sum(map(held.get, [*chosen, s])) <= budget]
        better = min(more, key=lambda s: work([*chosen, s]), default=None)
        if better is None or work([*chosen, better]) >= work(chosen):
            return tuple(sorted(chosen))
        chosen.append(better)
""",
    },
    "q5": {
        "each value is taken for float32": """
def split_at(function, cut):
    handed = relay.var("handed", shape=cut.checked_type.shape)

    class Replace(relay.ExprMutator):
        def visit(self, expr):
            return handed if expr.same_as(cut) else super().visit(expr)

    rest = Replace().visit(function.body)
    used, left = (list(relay.analysis.free_vars(part)) for part in (cut, rest))
    others = [p for p in function.params if p in left]
    before = relay.Function([p for p in function.params if p in used], cut)
    return before, relay.Function([handed, *others], rest)
""",
    },
}

# --- hidden checks -------------------------------------------------------------------------------

VERSION = '#[version = "0.0.5"]\n'
ROWS = '%0 = shape_of(%x, dtype="int32"); %1 = take(%0, 0, axis=0);'


def program_texts(random: Generator) -> Inputs:
    """Modules: static ones, dynamic ones of each kind, with a reference, and with constants."""
    n, m = random.integers(2, 9, size=2).tolist()
    known, rows = f"Tensor[({n}, {m}), float32]", f"Tensor[(?, {m}), float32]"
    x, rest = f"%x: {known}", "{ exp(%x) } else { tanh(%x) }"
    mains = [
        f"({x}) {{ %x }}",
        f"({x}) {{ let %u = exp(%x); let %v = tanh(%u); add(%u, %v) }}",
        f"({x}) {{ where(greater(%x, 0f), exp(%x), %x) }}",
        f"(%p: ({known}, {rows})) {{ exp(%p.1) }}",
        f"({x}) {{ %0 = argwhere(%x); sum(%0) }}",
        f"({x}, %f: bool) {{ if (%f) {rest} }}",
        f"({x}) {{ {ROWS} if (less(%1, {n})) {rest} }}",
        f"(%x: {rows}) {{ {ROWS} if (less(%1, {n})) {rest} }}",
        f"({x}, %f: bool) {{ if (%f) {{ if (less(1f, 2f)) {rest} }} else {{ %x }} }}",
        f"({x}) {{ if (less(1f, 2f)) {{ if (greater(sum(%x), 0f)) {rest} }} else {{ %x }} }}",
        f"({x}) {{ if (less(2f, 1f)) {{ let %r = ref(%x); ref_read(%r) }} else {{ tanh(%x) }} }}",
        f"(%x: {rows}) {{ let %r = ref(exp(%x)); ref_read(%r) }}",
        f"({x}, %f: bool) {{ let %r = ref(%x); if (%f) {{ ref_read(%r) }} else {{ exp(%x) }} }}",
    ]
    loop = (
        f"def @loop(%i: int32, {x}) -> {known} "
        f"{{ if (less(%i, 3)) {{ @loop(add(%i, 1), tanh(%x)) }} else {{ %x }} }}\n"
        f"def @main({x}) {{ @loop(0, %x) }}"
    )
    return {"texts": [VERSION + text for text in [*(f"def @main{main}" for main in mains), loop]]}


def long_program(random: Generator) -> Inputs:
    """A static program of 150 kernels of different shapes: three builds take half a minute."""
    width, lines = int(random.integers(300, 400)), ["%0 = nn.softmax(%x);"]
    for k in range(1, 150):
        end = f"begin=[0], end=[{width - k}], strides=[1], axes=[1]"
        lines.append(f"%{2 * k - 1} = strided_slice(%{2 * k - 2}, {end});")
        lines.append(f"%{2 * k} = nn.softmax(%{2 * k - 1});")
    main = f"def @main(%x: Tensor[(2, {width}), float32]) {{ {' '.join(lines)} %{2 * k} }}"
    return {"text": VERSION + main}


def drawn_models(random: Generator) -> Inputs:
    """[name, options] of models of the zoo."""
    length, layers = int(random.integers(5, 30)), int(random.integers(1, 3))
    return {
        "chosen_models": [
            ["encoder", {"layers": layers}],
            ["encoder", {"layers": layers, "length": length}],
            ["early_exit", {"layers": layers}],
            ["early_exit", {"layers": layers, "both": True}],
            ["greedy_search", {"length": length}],
        ]
    }


def scores(random: Generator) -> Inputs:
    """[times, F, weight] without ties; a time of None stands for infinity."""
    found: list[Any] = [
        [{"a": None}, {"a": 0.0}, 0.5],
        [{"a": 3.0}, {"a": 1.0}, 0.0],
        [{"a": None, "b": 7e-6, "c": 8e-6}, {"c": 0.0, "b": 1.0, "a": 0.0}, 1.0],
        [{"a": None, "b": 7e-6, "c": 8e-6}, {"c": 0.0, "b": 1.0, "a": 0.0}, 0.0],
    ]
    while len(found) < 70:
        names = [str(n) for n in random.permutation(["graph", "aot", "vm", "buckets", "other"])]
        names = names[: int(random.integers(2, 6))]
        scale = float(10.0 ** random.integers(-6, 5))
        times = {name: float(random.integers(10, 40)) * scale for name in names}
        lacks = {name: float(random.integers(0, 21)) / 20 for name in reversed(names)}
        weight = float(random.choice([0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0]))
        able = names[int(random.integers(0, 2)) :]
        least = min(times[name] for name in able)
        ranked = sorted(weight * times[n] / least + (1 - weight) * lacks[n] for n in able)
        if len(able) == 1 or ranked[1] - ranked[0] > 1e-6:
            given = {name: times[name] if name in able else None for name in names}
            found.append([given, lacks, weight])
    return {"cases": found}


def lines(random: Generator) -> Inputs:
    """[times, F]: one candidate, three lines through one point, narrow ranges; drawn ones."""
    found: list[Any] = [
        [{"a": 5.0}, {"a": 0.5}],
        [{"a": 1.0, "b": 1.5, "c": 2.0}, {"a": 1.0, "b": 0.5, "c": 0.0}],
        [{"a": 4.0, "b": 4.0}, {"a": 0.5, "b": 0.25}],
        [{"a": 4e-5, "b": 2e-5}, {"a": 1.0, "b": 1.0}],
        [{"a": 6.0, "b": 4.0, "c": 5.0}, {"a": 0.75, "b": 0.25, "c": 0.0}],
        [{"b": 1.5, "c": 2.0, "a": 1.0}, {"a": 1.0, "b": 0.5 - 1e-6, "c": 0.0}],
        [{"b": 3e3, "a": 2e3, "c": 4e3}, {"a": 1.0, "b": 0.5 + 1e-6, "c": 0.0}],
    ]
    while len(found) < 30:
        count = int(random.integers(2, 8))
        names = [f"{name}" for name in random.permutation(list("abcdefgh"))[:count]]
        scale = float(10.0 ** random.integers(-6, 5))
        # On a falling, hollow curve more of the candidates win than of points drawn anywhere.
        times = 1 + 3 * random.random(count)
        lacks = (4 - times) ** 2 / 9 * (0.9 + 0.1 * random.random(count))
        if len({round(float(t), 3) for t in times}) == count:
            both = ([float(v) for v in values] for values in (times * scale, lacks))
            found.append([dict(zip(names, values, strict=True)) for values in both])
    return {"cases": found}


def work(length: int) -> int:
    """The lab's `macs`."""
    return 12 * 32**2 * length + 2 * 32 * length**2


def has_one_best(lengths: list[int], held: dict[int, int], budget: int) -> bool:
    """Whether no two subsets are equally good, or none fits."""
    ranks = [
        (sum(work(min(s for s in chosen if s >= n)) for n in lengths), count)
        for count in range(1, len(held) + 1)
        for chosen in combinations(sorted(held), count)
        if sum(map(held.__getitem__, chosen)) <= budget and chosen[-1] >= max(lengths)
    ]
    return not ranks or ranks.count(min(ranks)) == 1


def buckets(random: Generator) -> Inputs:
    """[lengths, [size, bytes] in any order, budget]: one request, one size; drawn ones."""
    found: list[Any] = [
        [[16], [[16, 5]], 5],
        [[16], [[16, 5]], 4],
        [[17], [[16, 5]], 9],
        [[1], [[64, 1], [16, 9]], 9],
        [[1], [[64, 1], [16, 9]], 8],
        [[5, 5, 40], [[64, 4], [8, 0], [32, 0], [48, 5]], 5],
    ]
    # Evenly spread requests: the best size to add alone is not among the best two or three.
    for builds in (3, 4):
        step = int(random.integers(5, 13))
        sizes = [step * k for k in random.permutation(np.arange(1, 7)).tolist()]
        evenly = [*range(1, 6 * step, 2), 6 * step]
        found.append([evenly, [[size, 2] for size in sizes], 2 * builds + 1])
    while len(found) < 24:
        count = 10 if len(found) == 23 else int(random.integers(2, 7))
        sizes = [8 * int(n) for n in random.permutation(np.arange(1, 25))[:count]]
        held = {size: int(random.integers(3, 10)) for size in sizes}
        drawn = random.lognormal(3.5, 0.8, int(random.integers(1, 40))).astype(int)
        lengths = np.clip(drawn + 1, 1, max(sizes)).tolist()
        lengths[0] = max(sizes) if random.random() < 0.7 else lengths[0]
        budget = int(sum(held.values()) * random.choice([0.2, 0.4, 0.6, 0.8, 1.0]))
        if has_one_best(lengths, held, budget):
            found.append([lengths, [[size, held[size]] for size in sizes], budget])
    return {"cases": found}


def cuts(random: Generator) -> Inputs:
    """[text, number of the call to cut at]: at the body, in a branch, a let, a tuple; drawn ones.

    No two calls of a program are equal, so that only the cut itself can stand for the cut.
    """
    n, m = random.integers(2, 6, size=2).tolist()
    kind = f"Tensor[({n}, {m}), float32]"
    head = f"fn (%a: {kind}, %b: {kind}, %c: {kind}, %f: bool)"
    some = f"{head} {{ %0 = exp(%c); %1 = tanh(%0); %2 = subtract(%1, %a); multiply(%2, %1) }}"
    found: list[Any] = [[some, k] for k in range(4)]
    found += [
        [f"{head} {{ %0 = subtract(%c, %a); (%0, %b, (%0, %f), %a) }}", 0],
        [f"{head} {{ if (%f) {{ %0 = exp(%b); add(%0, %0) }} else {{ subtract(%b, %a) }} }}", 0],
        [f"{head} {{ let %u = exp(%c); let %v = tanh(%b); add(multiply(%v, %u), %c) }}", 1],
        [f'{head} {{ %0 = cast(%b, dtype="int32"); subtract(%0, cast(%c, dtype="int32")) }}', 0],
        [f"{head} {{ let %v = less(%b, %a); (%v, where(%v, %c, %a)) }}", 0],
    ]
    for _ in range(8):
        names, steps = ["%a", "%b", "%c"], []
        for number in range(int(random.integers(3, 9))):
            x, y = (names[int(k)] for k in random.integers(len(names), size=2))
            op = str(random.choice(["add", "subtract", "maximum"]))
            steps.append(f"%{number} = {op}({x}, tanh(multiply({y}, {number + 2}f)));")
            names.append(f"%{number}")
        text = f"{head} {{ {' '.join(steps)} (%f, {names[-1]}, add({names[-2]}, {names[-3]})) }}"
        found.append([text, int(random.integers(3 * len(steps)))])
    return {"cases": found}


CALLS = "[node for node in nodes if isinstance(node, relay.Call)]"
HALVES = (
    f"[list(split_at(function, {CALLS}[min(k, len({CALLS}) - 1)])) for text, k in cases "
    "for function in [modules.typed(relay.parse_expr(text))['main']] for nodes in [[]] "
    "for _ in [relay.analysis.post_order_visit(function.body, nodes.append)]]"
)


def are_halves(value: Any, cases: list[Any], lab: Any) -> str:
    """Both halves have the right parameters, and give the right values whatever is handed."""
    wanted = eval(HALVES, {**vars(lab), "cases": cases})
    for found, right in zip(value, wanted, strict=True):
        for which, mine, own in zip(("first", "second"), found, right, strict=True):
            x, y = lab.modules.typed(mine), lab.modules.typed(own)
            params = [
                [(p.name_hint, str(p.checked_type)) for p in module["main"].params]
                for module in (x, y)
            ]
            if [name for name, _ in params[0]] != [name for name, _ in params[1]]:
                return f"the {which} half has other parameters, or in another order"
            if params[0] != params[1]:
                return f"a parameter of the {which} half has another type"
            inputs = [sample(p.checked_type) for p in y["main"].params]
            results = (programs.evaluate(module, inputs) for module in (x, y))
            if not all(
                a.shape == b.shape and np.allclose(a, b, rtol=1e-4, atol=1e-5, equal_nan=True)
                for a, b in zip(*results, strict=True)
            ):
                return f"the {which} half gives other values"
    return ""


def sample(kind: Any) -> np.ndarray:
    """Numbers for a parameter of this type."""
    random = np.random.default_rng(13)
    return random.normal(1, 2, [int(n) for n in kind.shape]).astype(str(kind.dtype))


def decisions(random: Generator) -> Inputs:
    """[program, [executor, compile, load, first, infer] each, bytes, n, budget] without ties."""
    two, bytes_of_each = (
        [["graph", 1, 2, 5, 4], ["vm", 1, 1, 9, 9]],
        {"graph": 5, "aot": 4, "vm": 5},
    )
    found: list[Any] = [
        ["list", two, bytes_of_each, n, budget] for n in (0, 10**6) for budget in (4, 5)
    ]
    kinds = ["list", "any rows", "argwhere", "choice", "constant choice", "reference"]
    while len(found) < 60:
        names = [str(n) for n in random.permutation(["graph", "aot", "vm"])]
        rows = []
        for name in names[: int(random.choice([1, 2, 3, 3]))]:
            compiling, load, infer = random.integers(1, [200, 30, 30]).tolist()
            first = infer + int(random.integers(0, 9))
            rows.append([name, compiling, load, first, infer])
        taken = {name: int(random.integers(5, 12)) for name in names}
        n = int(random.choice([0, 1, 4, 20, 10_000, 10**6]))
        totals = {a + b + first - each + n * each for _, a, b, first, each in rows}
        if len(totals) == len(rows):
            kind = "list" if random.random() < 0.5 else str(random.choice(kinds))
            found.append([kind, rows, taken, n, int(random.integers(6, 13))])
    return {"cases": found}


HIDDEN = {
    "q1": [
        Hidden(
            "modules with lets, tuples, choices, loops, references and constant conditions",
            probe="[sorted(executors(relay.fromtext(text))) for text in texts]",
            draw=program_texts,
            weight=3,
        ),
        Hidden(
            "models of other sizes",
            probe="[sorted(executors(zoo.load(name, **options))) "
            "for name, options in chosen_models]",
            draw=drawn_models,
        ),
        Hidden(
            "a static program of 300 operators, in less time than its builds take",
            probe="sorted(executors(relay.fromtext(text)))",
            draw=long_program,
            timeout=5,
        ),
    ],
    "q2": [
        Hidden(
            "one to five candidates, microseconds to hours, some that cannot run, seven weights",
            probe="[choose({name: inf if t is None else t for name, t in times.items()}, "
            "lacks, weight) for times, lacks, weight in cases]",
            draw=scores,
        ),
    ],
    "q3": [
        Hidden(
            "one to seven candidates, narrow ranges, parallel lines, three lines in one point",
            probe="[winners(times, lacks) for times, lacks in cases]",
            draw=lines,
        ),
    ],
    "q4": [
        Hidden(
            "one to ten sizes in any order, one request or many, small and large budgets",
            probe="[best_sizes(lengths, dict(sizes), budget) for lengths, sizes, budget in cases]",
            draw=buckets,
        ),
    ],
    "q5": [
        Hidden(
            "cuts at the whole body, in a branch, in a let, of several types; drawn programs",
            probe=HALVES,
            draw=cuts,
            verify=are_halves,
        ),
    ],
    "q6": [
        Hidden(
            "one to three bills in any order, six programs, none to many inferences",
            probe="[decide(programs[kind], {name: cost.Bill(*bill) for name, *bill in rows}, "
            "taken, n, budget) for kind, rows, taken, n, budget in cases]",
            draw=decisions,
        ),
    ],
    "q7": [
        Hidden("the candidates that your weights choose", probe="list(own_winners)", own=True),
        Hidden("where the choice changes", probe="list(own_borders)", atol=2e-3, own=True),
    ],
}
