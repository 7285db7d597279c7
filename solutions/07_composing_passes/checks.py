"""Lab 07: wrong answers, which the public checks must refuse, and other right ones."""

# Question -> what is wrong with the answer -> which of its texts are replaced by what.
WRONG: dict[str, dict[str, dict[str, str]]] = {
    "q1": {
        "each operator of the text is a kernel": {
            "block = 11": "block = 13",
            "block == 11": "block == 13",
            "11: 2": "13: 2",
        },
        "fusion makes one kernel of a block": {"{3: 3, 11: 2, 4: 1}": "{3: 1, 11: 1, 4: 1}"},
        "batch_norm fuses as it is": {"{3: 3,": "{3: 1,"},
        "what is not folded costs no kernel": {"11: 2,": "11: 1,"},
        "fused functions are simplified and folded, too": {"            break\n": ""},
        "folding after fusion has its effect": {
            "            break\n": "            if order[-1] == 'FoldConstant': block = 1\n"
            "            break\n"
        },
        "FoldConstant folds the batch_norm": {"elif block == 11": "else"},
        "the order does not matter": {
            "for name in order": "for name in sorted(order, key=[SIMPLIFY, FOLD, FUSE].index)"
        },
        "SimplifyInference leaves a multiply and an add": {"block = 11": "block = 4"},
        "FoldConstant leaves a single kernel": {"block = 4": "block = 1", "4: 1}": "1: 1}"},
        "runs the passes": {
            "    block = 3\n": "    return len(fusion.groups(passes.run(blocks(count), order)))\n"
            "    block = 3\n"
        },
        "blocks fuse with each other": {
            "block * count": "block if 'FuseOps' in order else block * count"
        },
    },
    "q2": {
        "compares objects": {"bool(tvm.ir.structural_equal(one, other))": "one == other"},
        "compares counts": {
            "bool(tvm.ir.structural_equal(one, other))": (
                "len(fusion.groups(one)) == len(fusion.groups(other))"
            )
        },
        "compares text": {
            "bool(tvm.ir.structural_equal(one, other))": "ir.text(one) == ir.text(other)"
        },
        "both orders are the same": {"[second, first]": "[first, second]"},
        "whether the second changes anything": {"[second, first]": "[first]"},
        "always": {"bool(tvm.ir.structural_equal(one, other))": "True"},
    },
    "q3": {
        "nothing is removed": {"price(shorter) <= limit": "False"},
        "only what makes it dearer is removed": {
            "price(shorter) <= limit": "price(shorter) < limit"
        },
        "everything is removed": {"price(shorter) <= limit": "True"},
        "one sweep": {"order, k = shorter, 0": "order = shorter"},
        "one removal": {
            "order, k = shorter, 0": "return shorter",
        },
        "the last pass is never tried": {"while k < len(order)": "while k < len(order) - 1"},
        "removes by name": {
            "order[:k] + order[k + 1 :]": "tuple(n for n in order if n != order[k])"
        },
        "duplicates only": {"price(shorter) <= limit": "order[k] in shorter"},
        "keeps it as a list": {"    return order": "    return list(order)"},
    },
    "q4": {
        "stops uphill": {
            "        kept = [new": "        if new and min(new) > price(best): break\n"
            "        kept = [new"
        },
        "greedy, whatever the width": {"sorted(new)[:width]": "sorted(new)[:1]"},
        "one more than the width": {"sorted(new)[:width]": "sorted(new)[: width + 1]"},
        "all are kept": {"sorted(new)[:width]": "sorted(new)"},
        "the dearest are kept": {"sorted(new)[:width]": "sorted(new, reverse=True)[:width]"},
        "prices seen before stay": {
            "if cost not in seen": "",
        },
        "the last round decides": {
            "best = min([best, *kept], key=price)": "best = kept[0] if kept else best"
        },
        "the empty order is no answer": {
            "    return best": "    return best or (names[0],)",
        },
        "a round too many": {"range(length)": "range(length + 1)"},
        "a round too few": {"range(length)": "range(length - 1)"},
        "all orders": {
            "        kept = [new": "        list(map(price, product(names, repeat=length)))\n"
            "        kept = [new"
        },
        "passes run only once": {
            "for name in names:": "for name in [n for n in names if n not in order]:"
        },
    },
    "q5": {
        "the level 3 pipeline": {
            '"ToGraphNormalForm",\n': "",
            '"CombineParallelConv2d",\n': '"AlterOpLayout",\n',
        },
        "without the normal form": {'        "ToGraphNormalForm",\n': ""},
        "without SimplifyInference": {'        "SimplifyInference",\n': ""},
        "without folding at the end": {
            '        "BackwardFoldScaleAxis",\n        "FoldConstant",\n': (
                '        "BackwardFoldScaleAxis",\n'
            )
        },
        "without moving the scales": {'        "BackwardFoldScaleAxis",\n': ""},
        "convolutions are not combined": {'        "CombineParallelConv2d",\n': ""},
        "fuses first": {'"ToGraphNormalForm",': '"FuseOps", "ToGraphNormalForm",'},
        "half the bytes in half precision": {
            '"BackwardFoldScaleAxis",': '"BackwardFoldScaleAxis", "ToMixedPrecision",'
        },
        "all passes": {"return [\n": "return list(POOL) + [\n"},
        "a program, not passes": {
            "    return [\n": "    return passes.run(exported(), 'FuseOps')\n    return [\n"
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
