"""Lab 07: wrong answers that the checks must refuse, other right ones, and the hidden checks."""

from itertools import combinations, permutations, product
from typing import Any

import numpy as np
from numpy.random import Generator

from helpers import programs
from helpers.grading.hidden import Hidden

# Question -> what is wrong with the answer -> which of its texts are replaced by what.
WRONG: dict[str, dict[str, dict[str, str]]] = {
    "q1": {
        "each operator of the text counts as a kernel, expand_dims too": {
            "block = 11": "block = 13",
            "block == 11": "block == 13",
            "11: 2": "13: 2",
        },
        "FuseOps is taken to make one kernel of a block, whatever ran before": {
            "{3: 3, 11: 2, 4: 1}": "{3: 1, 11: 1, 4: 1}"
        },
        "batch_norm is taken to fuse as it is": {"{3: 3,": "{3: 1,"},
        "what could have been folded is taken to cost no kernel after FuseOps": {
            "11: 2,": "11: 1,"
        },
        "the passes are taken to work inside of fused functions": {"            break\n": ""},
        "FoldConstant is taken to have its effect after FuseOps": {
            "            break\n": "            if order[-1] == 'FoldConstant': block = 1\n"
            "            break\n"
        },
        "FoldConstant is taken to fold a batch_norm that was not simplified": {
            "elif block == 11": "else"
        },
        "the order of the passes is taken not to matter": {
            "for name in order": "for name in sorted(order, key=[SIMPLIFY, FOLD, FUSE].index)"
        },
        "SimplifyInference is taken to leave what only FoldConstant after it leaves": {
            "block = 11": "block = 4"
        },
        "FoldConstant is taken to leave a single kernel without FuseOps": {
            "block = 4": "block = 1",
            "4: 1}": "1: 1}",
        },
        "the passes are run instead of reasoned about": {
            "    block = 3\n": "    return len(fusion.groups(passes.run(blocks(count), order)))\n"
            "    block = 3\n"
        },
        "several blocks are taken to fuse with each other": {
            "block * count": "block if 'FuseOps' in order else block * count"
        },
    },
    "q2": {
        "the two objects are compared, not the programs in them": {
            "bool(tvm.ir.structural_equal(one, other))": "one == other"
        },
        "the numbers of kernels are compared, not the programs": {
            "bool(tvm.ir.structural_equal(one, other))": (
                "len(fusion.groups(one)) == len(fusion.groups(other))"
            )
        },
        "the texts are compared, and the numbers of a constant are not in them": {
            "bool(tvm.ir.structural_equal(one, other))": "ir.text(one) == ir.text(other)"
        },
        "both times the passes run in the same order": {"[second, first]": "[first, second]"},
        "one of the passes is left out the second time": {"[second, first]": "[first]"},
        "every two passes are taken to commute": {
            "bool(tvm.ir.structural_equal(one, other))": "True"
        },
    },
    "q3": {
        "no pass is removed": {"price(shorter) <= limit": "False"},
        "a pass that changes nothing stays": {"price(shorter) <= limit": "price(shorter) < limit"},
        "all passes are removed, whatever that costs": {"price(shorter) <= limit": "True"},
        "passes that were kept are not tried again when another one has gone": {
            "order, k = shorter, 0": "order = shorter"
        },
        "only one pass is removed": {
            "order, k = shorter, 0": "return shorter",
        },
        "the last pass is never tried": {"while k < len(order)": "while k < len(order) - 1"},
        "all passes of one name are removed together": {
            "order[:k] + order[k + 1 :]": "tuple(n for n in order if n != order[k])"
        },
        "only passes whose name occurs twice are removed": {
            "price(shorter) <= limit": "order[k] in shorter"
        },
        "each step is compared with the step before, not with the whole order": {
            "order, k = shorter, 0": "order, k, limit = shorter, 0, price(shorter)"
        },
        "the answer is a list, not a tuple": {"    return order": "    return list(order)"},
    },
    "q4": {
        "the search stops when nothing in a round is cheaper than the best so far": {
            "        kept = [new": "        if new and min(new) > price(best): break\n"
            "        kept = [new"
        },
        "only one order is kept, whatever the width is": {"sorted(new)[:width]": "sorted(new)[:1]"},
        "one order more than the width is kept": {
            "sorted(new)[:width]": "sorted(new)[: width + 1]"
        },
        "all new orders are kept, whatever the width is": {"sorted(new)[:width]": "sorted(new)"},
        "the dearest orders are kept, not the cheapest": {
            "sorted(new)[:width]": "sorted(new, reverse=True)[:width]"
        },
        "orders whose price was seen in an earlier round are kept": {
            "if cost not in seen": "",
        },
        "the cheapest order of the last round is returned, not of all rounds": {
            "best = min([best, *kept], key=price)": "best = kept[0] if kept else best"
        },
        "the empty order is never returned": {
            "    return best": "    return best or (names[0],)",
        },
        "there is a round too many": {"range(length)": "range(length + 1)"},
        "there is a round too few": {"range(length)": "range(length - 1)"},
        "the prices of all orders are asked for": {
            "        kept = [new": "        list(map(price, product(names, repeat=length)))\n"
            "        kept = [new"
        },
        "no pass occurs twice in an order": {
            "for name in names:": "for name in [n for n in names if n not in order]:"
        },
    },
    "q5": {
        "the passes are those of level 3": {
            '"ToGraphNormalForm",\n': "",
            '"CombineParallelConv2d",\n': '"AlterOpLayout",\n',
        },
        "the program stays in A-normal form": {'        "ToGraphNormalForm",\n': ""},
        "the normalisations stay as they are": {'        "SimplifyInference",\n': ""},
        "what BackwardFoldScaleAxis leaves is not folded": {
            '        "BackwardFoldScaleAxis",\n        "FoldConstant",\n': (
                '        "BackwardFoldScaleAxis",\n'
            )
        },
        "the scales stay behind the convolutions": {'        "BackwardFoldScaleAxis",\n': ""},
        "the parallel convolutions stay three kernels": {'        "CombineParallelConv2d",\n': ""},
        "FuseOps runs before the passes that need to see the operators": {
            '"ToGraphNormalForm",': '"FuseOps", "ToGraphNormalForm",'
        },
        "the bytes are saved by half precision, which changes the values": {
            '"BackwardFoldScaleAxis",': '"BackwardFoldScaleAxis", "ToMixedPrecision",'
        },
        "all passes run": {"return [\n": "return list(POOL) + [\n"},
        "the answer is a program, not a list of names": {
            "    return [\n": "    return passes.run(exported(), 'FuseOps')\n    return [\n"
        },
    },
    "q6": {
        "it makes no difference in which order the passes run": {
            "kernels(order, own_count)": (
                "kernels([name for name in (SIMPLIFY, FOLD, FUSE) if name in order], own_count)"
            )
        },
        "the blocks fuse with each other": {
            "kernels(order, own_count)": "kernels(order, 1 if FUSE in order else own_count)"
        },
        "FoldConstant finds nothing, whenever it runs": {
            "kernels(order, own_count)": (
                "kernels([name for name in order if name != FOLD], own_count)"
            )
        },
        "the passes after FuseOps still find what they look for": {
            "kernels(order, own_count)": (
                "kernels([*(n for n in order if n != FUSE), *(n for n in order if n == FUSE)], "
                "own_count)"
            )
        },
        "the kernels of one block are counted": {"kernels(order, own_count)": "kernels(order, 1)"},
        "the kernels of all orders are added up": {
            "[kernels(order, own_count) for order in own_orders]": (
                "[sum(kernels(order, own_count) for order in own_orders)]"
            )
        },
        "both widths keep one word": {"for width in (1, 2)": "for width in (1, 1)"},
        "both widths keep two words": {"for width in (1, 2)": "for width in (2, 2)"},
        "the cheapest of all words is given, which the search need not meet": {
            '"".join(search(list("abcd"), toy(own_prices), width, 2))': (
                "min(own_prices, key=own_prices.get)"
            )
        },
        "the word of the second round is given, though an earlier one is cheaper": {
            '"".join(search(list("abcd"), toy(own_prices), width, 2))': (
                "min((word for word in own_prices if len(word) == 2 and word[0] in "
                "sorted('abcd', key=own_prices.get)[:width]), key=own_prices.get)"
            )
        },
        "the prices are given, not the words": {
            '"".join(search(list("abcd"), toy(own_prices), width, 2))': (
                "own_prices[''.join(search(list('abcd'), toy(own_prices), width, 2))]"
            )
        },
    },
}

# Question -> a right answer of another kind.
OTHERS: dict[str, str] = {
    "q1": """
def kernels(order, count):
    before = order[: order.index("FuseOps")] if "FuseOps" in order else order
    simplified = "SimplifyInference" in before
    folded = simplified and "FoldConstant" in before[before.index("SimplifyInference") :]
    unfused, fused = (4, 1) if folded else (11, 2) if simplified else (3, 3)
    return count * (fused if "FuseOps" in order else unfused)
""",
    "q3": """
def needed(order, price, limit=None):
    limit = price(order) if limit is None else limit
    for k in reversed(range(len(order))):
        shorter = order[:k] + order[k + 1 :]
        if price(shorter) <= limit:
            return needed(shorter, price, limit)
    return order
""",
    "q4": """
def search(names, price, width, length):
    beam, seen, all_kept = [()], {price(())}, [()]
    while beam and length > 0:
        new = [(*order, name) for order in beam for name in names]
        new = sorted((o for o in new if price(o) not in seen), key=price)
        seen |= {price(order) for order in new}
        beam = []
        for order in new:
            if len(beam) < width and price(order) not in [price(other) for other in beam]:
                beam.append(order)
        all_kept += beam
        length -= 1
    return min(all_kept, key=price)
""",
    "q5": """
def chosen():
    return (
        "SimplifyInference ToGraphNormalForm SimplifyExpr CombineParallelConv2d "
        "FoldConstant ForwardFoldScaleAxis FoldConstant"
    ).split()
""",
}


# --- hidden checks -------------------------------------------------------------------------------

PASSES = ("SimplifyInference", "FoldConstant", "FuseOps")
ORDERS = [list(order) for k in range(4) for order in permutations(PASSES, k)]


def orders(random: Generator) -> dict[str, Any]:
    """[order, count]: every order, with few blocks, and with more than can be built."""
    cases = [[order, count] for order in ORDERS for count in (1, int(random.integers(2, 40)))]
    many = [[order, int(random.integers(10**6, 10**9))] for order in ORDERS]
    return {"cases": [*cases, *many]}


NAMED = [
    *("FoldConstant", "SimplifyInference", "FuseOps", "ToANormalForm", "ToGraphNormalForm"),
    *("EliminateCommonSubexpr", "SimplifyExpr", "DeadCodeElimination", "FastMath"),
]


def pairs(random: Generator) -> dict[str, Any]:
    """[program, first, second]. A program is a number of blocks or a list of operators.

    A pass is a name, or [factor, shift]: each constant times the factor, plus the shift.
    """
    cases: list[Any] = [
        [["exp"], "FuseOps", "FuseOps"],
        [[], "FuseOps", "ToANormalForm"],
        [["exp", "tanh"], "ToANormalForm", "ToGraphNormalForm"],
        [["exp", "tanh"], "FastMath", "FuseOps"],
        [["exp", "tanh"], [2, 0], [1, 1]],
        [1, "SimplifyInference", "FuseOps"],
        [1, "SimplifyInference", "FoldConstant"],
        [2, "EliminateCommonSubexpr", "SimplifyInference"],
        [1, [2, 0], [1, 1]],
        [1, [2, 2], [3, 4]],
        [1, [1, 3], [1, -2]],
        [1, [-1, 4], [-1, 4]],
        [1, [2, 0], "SimplifyInference"],
        [1, [2, 0], "ToANormalForm"],
        [2, [1, 0], [3, 1]],
    ]
    for _ in range(8):
        operators = random.choice(["exp", "tanh", "sqrt", "negative"], size=random.integers(1, 5))
        first, second = (str(name) for name in random.choice(NAMED, size=2, replace=False))
        program = 1 if random.random() < 0.5 else [str(name) for name in operators]
        cases.append([program, first, second])
        cases.append([1, *random.integers(-2, 4, size=(2, 2)).tolist()])
    return {"cases": cases}


def priced(random: Generator) -> dict[str, Any]:
    """[order, prices of all that can be left of it]: edge cases, then drawn ones."""
    cases: list[Any] = [
        ["", {"": 1}],
        ["a", {"": 1, "a": 1}],
        ["a", {"": 2, "a": 1}],
        ["aa", {"": 2, "a": 1, "aa": 1}],
        ["aba", {"": 5, "a": 3, "b": 3, "aa": 3, "ab": 2, "ba": 4, "aba": 2}],
        ["ab", {"": 1, "a": 3, "b": 3, "ab": 2}],
        ["abc", {"": 9, "a": 9, "b": 9, "c": 1, "ab": 9, "ac": 3, "bc": 9, "abc": 3}],
    ]
    for length in random.integers(3, 7, size=30):
        order = "".join(random.choice(list("abcd"), size=length))
        kept = (k for size in range(length + 1) for k in combinations(range(length), size))
        parts = {"".join(order[i] for i in part) for part in kept}
        prices = {part: int(random.integers(1, 5)) for part in sorted(parts)}
        prices[order] = int(random.integers(2, 4))
        cases.append([order, prices])
    return {"cases": cases}


def are_needed(value: Any, cases: list[Any], lab: Any) -> str:
    """Tuples that are parts of the orders, no dearer, with nothing that could be left out."""
    for (order, prices), (kind, found) in zip(cases, value, strict=True):
        if kind != "tuple":
            return "an answer is not a tuple"
        names = tuple(order)
        says = lab.verdict(tuple(found), names, lab.toy(prices))
        if says != "needed":
            if "no part" in says:
                return "an answer is not a part of the order"
            more = "is no longer needed" in says
            return (
                "a pass could still be left out" if more else "an answer is dearer than the order"
            )
    return ""


def searches(random: Generator) -> dict[str, Any]:
    """[names, prices, width, length]: edge cases, then drawn ones with equal prices among them."""
    cases: list[Any] = [
        ["", {"": 1}, 1, 3],
        ["ab", {"": 3, "a": 1, "b": 2}, 2, 0],
        ["a", {"": 3, "a": 3, "aa": 1}, 2, 2],
        ["ba", {"": 3, "a": 2, "b": 2, "ab": 1, "bb": 0}, 1, 2],
        ["ab", {"": 0, "a": 5, "b": 4, "ba": 6, "bab": -1}, 1, 3],
        ["ab", {"": 9, "a": 8, "b": 7, "aa": 7, "ab": 2, "ba": 8, "bb": 6, "bba": 1}, 2, 3],
    ]
    for _ in range(24):
        names = "".join(random.permutation(list("abcd"))[: int(random.integers(2, 4))])
        words = ["".join(word) for k in range(5) for word in product(names, repeat=k)]
        most = int(random.choice([6, 20, 500]))
        prices = {word: int(random.integers(most)) - 2 * len(word) for word in words}
        cases.append([names, prices, int(random.integers(1, 4)), int(random.integers(1, 5))])
    return {"cases": cases}


def formulas(random: Generator) -> dict[str, Any]:
    """[weights, modulus, width, length] of prices that a formula gives, for long searches."""
    cases = []
    for width, length in ((1, 12), (3, 12), (5, 10)):
        weights = dict(zip("abcdefg", random.integers(3, 900, size=7).tolist(), strict=True))
        cases.append([weights, int(random.integers(700, 1000)), width, length])
    return {"cases": cases}


def in_budget(value: Any, lab: Any) -> str:
    """Names of the pool, and the kernels and bytes that they lead to."""
    if (says := lab.names_only(value)) != "names":
        return f"the answer is not a list of at most {lab.LONGEST} names of the pool ({says})"
    kernels, moved = lab.exported_price(tuple(value))
    if kernels > lab.KERNELS:
        return "more kernels are left than the budget allows"
    return (
        "the kernels read and write more bytes than the budget allows" if moved > lab.BYTES else ""
    )


def keeps_values(value: Any, seed: int, lab: Any) -> str:
    """The values of the exported model, on a drawn input, of a program that is cheaper."""
    if lab.names_only(value) != "names":
        return "the answer is not a list of names of the pool"
    if lab.exported_price(tuple(value)) >= lab.exported_price(()):
        return "the program is no cheaper than without any pass"
    x = np.random.default_rng(seed).normal(size=(1, 8, 16, 16)).astype("float32")
    before, after = lab.exported(), lab.result(tuple(value))
    wanted, found = (programs.evaluate(program, {"x": x})[0] for program in (before, after))
    if found.shape != wanted.shape or found.dtype != wanted.dtype:
        return "the result has another shape or type"
    return "" if np.abs(found - wanted).max() <= 2e-5 else "the values differ"


PASS = (
    "(part if isinstance(part, str) else constant_pass(str(part), "
    "lambda array, part=part: array * np.float32(part[0]) + np.float32(part[1])))"
)

HIDDEN = {
    "q1": [
        Hidden(
            "every order of the passes, with one block and with up to a billion",
            probe="[reasoned(kernels, order, count) for order, count in cases]",
            draw=orders,
            timeout=5,
        ),
    ],
    "q2": [
        Hidden(
            "passes by name and passes that change constants, on blocks and on chains",
            probe=(
                "[commute(chain(program) if isinstance(program, list) else blocks(program), "
                f"*[{PASS} for part in pair]) for program, *pair in cases]"
            ),
            draw=pairs,
        ),
    ],
    "q3": [
        Hidden(
            "orders of up to six passes with prices of all kinds",
            probe=(
                "[[type(found).__name__, list(found)] for order, prices in cases "
                "for found in [needed(tuple(order), toy(prices))]]"
            ),
            draw=priced,
            verify=are_needed,
        ),
    ],
    "q4": [
        Hidden(
            "searches of every width, with equal prices, with no pass and with no round",
            probe=(
                "[search(list(names), toy(prices), width, length) "
                "for names, prices, width, length in cases]"
            ),
            draw=searches,
            weight=2,
        ),
        Hidden(
            "searches of twelve rounds among billions of orders",
            probe=(
                "[search(list(weights), lambda order: 1000 - sum((k + 2) * weights[name] "
                "for k, name in enumerate(order)) % modulus, width, length) "
                "for weights, modulus, width, length in cases]"
            ),
            draw=formulas,
            timeout=3,
        ),
    ],
    "q5": [
        Hidden(
            "the kernels, and the bytes that they read and write",
            probe="chosen()",
            verify=in_budget,
            weight=2,
        ),
        Hidden(
            "a cheaper program with the values of the model, on another input",
            probe="chosen()",
            draw=lambda random: {"seed": int(random.integers(10**6))},
            verify=keeps_values,
        ),
    ],
    "q6": [
        Hidden("the kernels after your orders", probe="list(own_kernels)", own=True),
        Hidden("the searches with your prices", probe="list(own_words)", own=True),
    ],
}
