"""Lab 11: wrong answers, which the public checks must refuse, and other right ones."""

# Question -> what is wrong with the answer -> which of its texts are replaced by what.
WRONG: dict[str, dict[str, dict[str, str]]] = {
    "q1": {
        "only unknown shapes make a program dynamic": {'found.add("order")': "pass"},
        "only the order makes a program dynamic": {'found.add("shape")': "pass"},
        "only an if decides": {
            "(relay.If, relay.Match, relay.RefCreate, relay.RefRead, relay.RefWrite)": (
                "(relay.If,)"
            ),
            " or calls:": ":",
        },
        "a where decides": {
            "isinstance(node, decide)": (
                'isinstance(node, decide) or getattr(getattr(node, "op", 0), "name", "") == "where"'
            )
        },
        "only parameters have shapes": {
            "if relay.ty.is_dynamic(node.checked_type)": (
                "if isinstance(node, relay.Var) and relay.ty.is_dynamic(node.checked_type)"
            )
        },
        "only the result has a shape": {
            "relay.ty.is_dynamic(node.checked_type)": (
                "relay.ty.is_dynamic(function.body.checked_type)"
            )
        },
        "parameters are not looked at": {
            "post_order_visit(function, visit)": "post_order_visit(function.body, visit)"
        },
        "a tuple has no shape": {
            "if relay.ty.is_dynamic(node.checked_type)": (
                "if isinstance(node.checked_type, relay.TensorType) "
                "and relay.ty.is_dynamic(node.checked_type)"
            )
        },
        "only calls of variables": {
            "not isinstance(node.op, tvm.ir.Op)": "isinstance(node.op, relay.Var)"
        },
        "only calls of names of the module": {
            "not isinstance(node.op, tvm.ir.Op)": "isinstance(node.op, relay.GlobalVar)"
        },
        "references are values as others": {
            "relay.Match, relay.RefCreate, relay.RefRead, relay.RefWrite": "relay.Match"
        },
        "match is no choice": {"relay.If, relay.Match, ": "relay.If, "},
        "match and constructors are no choice": {
            "relay.If, relay.Match, ": "relay.If, ",
            "tvm.ir.Op)\n": "(tvm.ir.Op, relay.Constructor))\n",
        },
        "an operator whose name sounds dynamic": {
            "if isinstance(node, decide)": (
                'if "unique" in str(getattr(node, "op", "")) or isinstance(node, decide)'
            )
        },
        "every let is dynamic": {
            "if isinstance(node, decide)": "if isinstance(node, (relay.Let, *decide))"
        },
        "one reason is enough": {"return found": "return set(sorted(found)[:1])"},
        "each call decides": {"not isinstance(node.op, tvm.ir.Op)": "True"},
    },
    "q2": {
        "shapes are known to FoldConstant alone": {'["DynamicToStatic"]': '["FoldConstant"]'},
        "an if is always dynamic": {
            '"number of rows": ["FoldConstant"]': '"number of rows": None',
        },
        "any argument that is a shape needs DynamicToStatic": {
            '"number of rows": ["FoldConstant"]': (
                '"number of rows": ["DynamicToStatic", "FoldConstant"]'
            )
        },
        "a closure is gone after PartialEvaluate": {
            '"closure": evaluate': '"closure": ["PartialEvaluate"]'
        },
        "a function is run as it is": {'"function": evaluate': '"function": []'},
        "a function is no closure": {'"function": evaluate': '"function": ["PartialEvaluate"]'},
        "FoldConstant calls functions": {'"closure": evaluate': '"closure": ["FoldConstant"]'},
        "nobody takes references": {'"reference": evaluate': '"reference": None'},
        "a reference is dead code": {
            '"reference": evaluate': '"reference": ["DeadCodeElimination"]'
        },
        "dead code first": {
            '["PartialEvaluate", "DeadCodeElimination"]': (
                '["DeadCodeElimination", "PartialEvaluate"]'
            )
        },
        "both branches can be folded": {'"flag": None': '"flag": ["FoldConstant"]'},
        "an if that is not used is no if": {'["DeadCodeElimination"],': "[],"},
        "an if stays, used or not": {'["DeadCodeElimination"],': "None,"},
        "a where chooses a kernel": {'"where": []': '"where": None'},
        "a where has to be folded": {'"where": []': '"where": ["FoldConstant"]'},
        "known inputs, known shapes": {'"argwhere": None': '"argwhere": []'},
        "DynamicToStatic makes all static": {'"argwhere": None': '"argwhere": ["DynamicToStatic"]'},
    },
    "q3": {
        "only the parameters are new": {"relay.bind(function.body, new)": "function.body"},
        "no pass": {'"FoldConstant"': '"InferType"'},
        "every dimension is replaced": {" if isinstance(d, tvm.tir.Any) else d": ""},
        "the first dimension is the open one": {
            "[length if isinstance(d, tvm.tir.Any) else d for d in kind.shape]": (
                "[length, *kind.shape[1:]]"
            )
        },
        "all are float32": {", dtype=kind.dtype": ""},
        "new names": {"relay.var(p.name_hint,": 'relay.var("x",'},
        "only the first open parameter": {
            "for p in function.params:": "for p in function.params[:1]:",
            "list(new.values())": "[*new.values(), *function.params[1:]]",
        },
        "the types are kept": {
            "[length if isinstance(d, tvm.tir.Any) else d for d in kind.shape]": "kind.shape"
        },
        "the length is off by one": {"[length if": "[length + 1 if"},
    },
    "q4": {
        "the mask is all ones": {"mask[0, :count] = 1": "mask[...] = 1"},
        "the mask says what is padding": {"mask[0, :count] = 1": "mask[0, count:] = 1"},
        "a token 0 is padding": {"mask[0, :count] = 1": "mask[padded != 0] = 1"},
        "the mean over all rows": {"[0, :count].mean": "[0].mean"},
        "the sum over the size": {"[0, :count].mean(axis=0)": "[0, :count].sum(axis=0) / longest"},
        "the first token for all": {"[0, :count].mean(axis=0)": "[0, 0]"},
        "padding in front": {
            "padded[0, :count] = ids": "padded[0, longest - count :] = ids",
            "mask[0, :count] = 1": "mask[0, longest - count :] = 1",
            "[0, :count].mean": "[0, longest - count :].mean",
        },
        "what is too long is cut": {
            'raise ValueError("too many tokens")': "ids, count = ids[:longest], longest"
        },
        "no tokens left for the last": {"count > longest": "count >= longest"},
        "masks of integers": {'"float32"': '"int64"'},
        "the mean over the wrong axis": {".mean(axis=0)": ".mean(axis=1)"},
        "repeated instead of padded": {
            "padded[0, :count] = ids": "padded[0] = np.resize(ids, longest)"
        },
    },
    "q5": {
        "tokens instead of work": {"work(last)": "last"},
        "each length counts once": {"(below[j] - below[i]) * work(last)": "(j - i) * work(last)"},
        "a size costs once, not for each request": {
            "(below[j] - below[i]) * work(last)": "work(last)"
        },
        "one size too many": {"range(k)": "range(k + 1)"},
        "one size too few": {"range(k)": "range(max(k - 1, 1))"},
        "a size below the request": {"best[i][1] + [last]": "best[i][1] + [sizes[i]]"},
        "the shortest request fits": {"return best[-1][1]": "return best[1][1]"},
        "a size for each length": {"return best[-1][1]": "return sizes"},
        "evenly spread": {
            "return best[-1][1]": (
                "return sorted({-(-max(sizes) * q // k) for q in range(1, k + 1)})"
            )
        },
        "the same number of requests each": {
            "return best[-1][1]": (
                "return sorted({sorted(lengths)[len(lengths) * q // k - 1] for q in range(1, k)}"
                " | {sizes[-1]})"
            )
        },
        "the largest ones": {"return best[-1][1]": "return sizes[-k:]"},
        "powers of two": {
            "return best[-1][1]": "return sorted({1 << (n - 1).bit_length() for n in sizes})[-k:]"
        },
    },
    "q6": {
        "the second part computes it again": {"Replace().visit(function.body)": "function.body"},
        "only the first place": {
            "return middle if node.same_as(cut) else super().visit(node)": (
                "if node.same_as(cut) and not hasattr(self, 'done'):\n"
                "                self.done = True\n"
                "                return middle\n"
                "            return super().visit(node)"
            )
        },
        "all parameters for the second part": {
            "in function.params if p in late": "in function.params"
        },
        "all parameters for the first part": {
            "[p for p in function.params if p in early]": "function.params"
        },
        "what the first has taken is gone": {"if p in late": "if p in late and p not in early"},
        "in the order of their use": {
            "(p for p in function.params if p in late)": (
                "(p for p in late if not p.same_as(middle))"
            )
        },
        "the first in the order of its use": {
            "[p for p in function.params if p in early]": "list(early)"
        },
        "the new parameter comes last": {
            "[middle, *(p for p in function.params if p in late)]": (
                "[*(p for p in function.params if p in late), middle]"
            )
        },
        "the first gives its operand": {"if p in early], cut)": "if p in early], cut.args[0])"},
        "the whole as the first part": {"if p in early], cut)": "if True], function.body)"},
    },
}

# Question -> a right answer of another kind.
OTHERS: dict[str, str] = {
    "q1": """
def reasons(function):
    order, shape = [], []

    class Look(relay.ExprVisitor):
        def visit(self, node):
            if not isinstance(node, (tvm.ir.Op, relay.Constructor)):
                shape.append("Any" in repr(node.checked_type) or "?" in str(node.checked_type))
            super().visit(node)

        def visit_call(self, call):
            order.append(not isinstance(call.op, tvm.ir.Op))
            super().visit_call(call)

        def visit_if(self, node):
            order.append(True)
            super().visit_if(node)

        def visit_match(self, node):
            order.append(True)

        def visit_ref_create(self, node):
            order.append(True)
            super().visit_ref_create(node)

        def visit_ref_read(self, node):
            order.append(True)
            super().visit_ref_read(node)

        def visit_ref_write(self, node):
            order.append(True)
            super().visit_ref_write(node)

    Look().visit(function)
    return {name for name, seen in (("order", order), ("shape", shape)) if any(seen)}
""",
    "q4": """
def embed(encode, ids, longest):
    missing = longest - len(ids)
    if missing < 0:
        raise ValueError(f"at most {longest} tokens")
    mask = np.array([[1.0] * len(ids) + [0.0] * missing], "float32")
    rows = encode(mask=mask, ids=np.array([[*ids, *[0] * missing]], "int64"))[0]
    return (mask[0] @ rows) / mask.sum()
""",
    "q5": """
def best_sizes(lengths, k, work):
    sizes, numbers = sorted(set(lengths)), np.array(lengths)
    k, best = min(k, len(sizes)), None
    cost = {size: work(size) for size in sizes}
    below = {size: int((numbers <= size).sum()) for size in sizes} | {0: 0}
    for chosen in combinations(sizes[:-1], k - 1):
        ends = [*chosen, sizes[-1]]
        total = sum((below[b] - below[a]) * cost[b] for a, b in zip([0, *ends], ends))
        if best is None or total < best[0]:
            best = total, ends
    return best[1]
""",
}
