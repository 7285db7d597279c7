"""Lab 11: wrong answers that the checks must refuse, other right ones, and the hidden checks."""

from typing import Any

import numpy as np
from numpy.random import Generator

from helpers import programs
from helpers.grading.hidden import Hidden, Inputs

# Question -> what is wrong with the answer -> which of its texts are replaced by what.
WRONG: dict[str, dict[str, dict[str, str]]] = {
    "q1": {
        "only unknown shapes are taken for a reason": {'found.add("order")': "pass"},
        "only an unknown order is taken for a reason": {'found.add("shape")': "pass"},
        "only an if is taken to decide something": {
            "(relay.If, relay.Match, relay.RefCreate, relay.RefRead, relay.RefWrite)": (
                "(relay.If,)"
            ),
            " or calls:": ":",
        },
        "a where is taken for an if": {
            "isinstance(node, decide)": (
                'isinstance(node, decide) or getattr(getattr(node, "op", 0), "name", "") == "where"'
            )
        },
        "only the types of variables are looked at": {
            "if relay.ty.is_dynamic(node.checked_type)": (
                "if isinstance(node, relay.Var) and relay.ty.is_dynamic(node.checked_type)"
            )
        },
        "only the type of the result is looked at": {
            "relay.ty.is_dynamic(node.checked_type)": (
                "relay.ty.is_dynamic(function.body.checked_type)"
            )
        },
        "a parameter is looked at only where it is used": {
            "post_order_visit(function, visit)": "post_order_visit(function.body, visit)"
        },
        "a tuple is taken to have no unknown shape in it": {
            "if relay.ty.is_dynamic(node.checked_type)": (
                "if isinstance(node.checked_type, relay.TensorType) "
                "and relay.ty.is_dynamic(node.checked_type)"
            )
        },
        "only the call of a variable is taken for an unknown order": {
            "not isinstance(node.op, tvm.ir.Op)": "isinstance(node.op, relay.Var)"
        },
        "only the call of a name of the module is taken for an unknown order": {
            "not isinstance(node.op, tvm.ir.Op)": "isinstance(node.op, relay.GlobalVar)"
        },
        "references are taken for values like all others": {
            "relay.Match, relay.RefCreate, relay.RefRead, relay.RefWrite": "relay.Match"
        },
        "a match is not taken for a choice": {"relay.If, relay.Match, ": "relay.If, "},
        "neither a match nor the call of a constructor is looked at": {
            "relay.If, relay.Match, ": "relay.If, ",
            "tvm.ir.Op)\n": "(tvm.ir.Op, relay.Constructor))\n",
        },
        "an operator is judged by its name, and not by its type": {
            "if isinstance(node, decide)": (
                'if "unique" in str(getattr(node, "op", "")) or isinstance(node, decide)'
            )
        },
        "a let is taken for a reason": {
            "if isinstance(node, decide)": "if isinstance(node, (relay.Let, *decide))"
        },
        "of two reasons only one is given": {"return found": "return set(sorted(found)[:1])"},
        "the call of an operator is taken for a reason": {
            "not isinstance(node.op, tvm.ir.Op)": "True"
        },
    },
    "q2": {
        "FoldConstant is taken to replace an operator with a shape argument": {
            '["DynamicToStatic"]': '["FoldConstant"]'
        },
        "an if is taken to stay, whatever its condition is": {
            '"number of rows": ["FoldConstant"]': '"number of rows": None',
        },
        "a known shape is taken to need a pass more than FoldConstant": {
            '"number of rows": ["FoldConstant"]': (
                '"number of rows": ["DynamicToStatic", "FoldConstant"]'
            )
        },
        "PartialEvaluate is taken to remove the closure that it has called": {
            '"closure": evaluate': '"closure": ["PartialEvaluate"]'
        },
        "the graph executor is taken to call functions": {'"function": evaluate': '"function": []'},
        "PartialEvaluate is taken to leave nothing of a function behind": {
            '"function": evaluate': '"function": ["PartialEvaluate"]'
        },
        "FoldConstant is taken to call functions": {
            '"closure": evaluate': '"closure": ["FoldConstant"]'
        },
        "a reference is taken to stay, although its value is known": {
            '"reference": evaluate': '"reference": None'
        },
        "a reference that is read is taken for dead code": {
            '"reference": evaluate': '"reference": ["DeadCodeElimination"]'
        },
        "dead code is removed before it has become dead": {
            '["PartialEvaluate", "DeadCodeElimination"]': (
                '["DeadCodeElimination", "PartialEvaluate"]'
            )
        },
        "a condition that comes with the input is taken for a constant": {
            '"flag": None': '"flag": ["FoldConstant"]'
        },
        "the graph executor is taken to skip an if that nobody uses": {
            '["DeadCodeElimination"],': "[],"
        },
        "an if that nobody uses is taken to stay": {'["DeadCodeElimination"],': "None,"},
        "a where is taken for a choice at run time": {'"where": []': '"where": None'},
        "a where is taken to need a pass": {'"where": []': '"where": ["FoldConstant"]'},
        "a known shape of the input is taken for a known shape of the result": {
            '"argwhere": None': '"argwhere": []'
        },
        "DynamicToStatic is taken to make a shape known that depends on values": {
            '"argwhere": None': '"argwhere": ["DynamicToStatic"]'
        },
    },
    "q3": {
        "the body still uses the old parameters": {
            "relay.bind(function.body, new)": "function.body"
        },
        "nothing is folded afterwards": {'"FoldConstant"': '"InferType"'},
        "known dimensions are replaced, too": {" if isinstance(d, tvm.tir.Any) else d": ""},
        "the first dimension is taken for the unknown one": {
            "[length if isinstance(d, tvm.tir.Any) else d for d in kind.shape]": (
                "[length, *kind.shape[1:]]"
            )
        },
        "the dtypes of the parameters are lost": {", dtype=kind.dtype": ""},
        "the names of the parameters are lost": {"relay.var(p.name_hint,": 'relay.var("x",'},
        "only the first parameter is replaced": {
            "for p in function.params:": "for p in function.params[:1]:",
            "list(new.values())": "[*new.values(), *function.params[1:]]",
        },
        "the unknown dimensions stay": {
            "[length if isinstance(d, tvm.tir.Any) else d for d in kind.shape]": "kind.shape"
        },
        "the length is off by one": {"[length if": "[length + 1 if"},
    },
    "q4": {
        "the mask says of the padding, too, that it is there": {
            "mask[0, :count] = 1": "mask[...] = 1"
        },
        "the mask is 1 for the padding, and not for the tokens": {
            "mask[0, :count] = 1": "mask[0, count:] = 1"
        },
        "a token 0 of the request is taken for padding": {
            "mask[0, :count] = 1": "mask[padded != 0] = 1"
        },
        "the mean is taken over the rows of the padding, too": {"[0, :count].mean": "[0].mean"},
        "the sum of the rows is divided by the size, not by the number of tokens": {
            "[0, :count].mean(axis=0)": "[0, :count].sum(axis=0) / longest"
        },
        "the row of the first token is taken for the mean": {"[0, :count].mean(axis=0)": "[0, 0]"},
        "the padding stands in front, and so the tokens have other positions": {
            "padded[0, :count] = ids": "padded[0, longest - count :] = ids",
            "mask[0, :count] = 1": "mask[0, longest - count :] = 1",
            "[0, :count].mean": "[0, longest - count :].mean",
        },
        "tokens that are too many are cut off": {
            'raise ValueError("too many tokens")': "ids, count = ids[:longest], longest"
        },
        "as many tokens as fit are taken for too many": {"count > longest": "count >= longest"},
        "the mask has another dtype than the encoder wants": {'"float32"': '"int64"'},
        "the mean is taken over the numbers of a token, not over the tokens": {
            ".mean(axis=0)": ".mean(axis=1)"
        },
        "the request is repeated where there should be padding": {
            "padded[0, :count] = ids": "padded[0] = np.resize(ids, longest)"
        },
    },
    "q5": {
        "tokens are counted, not their work": {"work(last)": "last"},
        "each length counts once, however many requests have it": {
            "(below[j] - below[i]) * work(last)": "(j - i) * work(last)"
        },
        "a size costs once, and not for each request": {
            "(below[j] - below[i]) * work(last)": "work(last)"
        },
        "there is one size more than allowed": {"range(k)": "range(k + 1)"},
        "there is one size less than allowed": {"range(k)": "range(max(k - 1, 1))"},
        "requests are given a size below their length": {
            "best[i][1] + [last]": "best[i][1] + [sizes[i]]"
        },
        "the sizes are enough for the shortest requests only": {
            "return best[-1][1]": "return best[1][1]"
        },
        "each length has a size of its own": {"return best[-1][1]": "return sizes"},
        "the sizes are spread evenly, wherever the requests are": {
            "return best[-1][1]": (
                "return sorted({-(-max(sizes) * q // k) for q in range(1, k + 1)})"
            )
        },
        "each size has as many requests, whatever they cost": {
            "return best[-1][1]": (
                "return sorted({sorted(lengths)[len(lengths) * q // k - 1] for q in range(1, k)}"
                " | {sizes[-1]})"
            )
        },
        "the largest lengths are taken as the sizes": {"return best[-1][1]": "return sizes[-k:]"},
        "the sizes are powers of two": {
            "return best[-1][1]": "return sorted({1 << (n - 1).bit_length() for n in sizes})[-k:]"
        },
    },
    "q6": {
        "the second part computes the cut again": {
            "Replace().visit(function.body)": "function.body"
        },
        "the cut is replaced at its first place only": {
            "return middle if node.same_as(cut) else super().visit(node)": (
                "if node.same_as(cut) and not hasattr(self, 'done'):\n"
                "                self.done = True\n"
                "                return middle\n"
                "            return super().visit(node)"
            )
        },
        "the second part has parameters that it does not need": {
            "in function.params if p in late": "in function.params"
        },
        "the first part has parameters that it does not need": {
            "[p for p in function.params if p in early]": "function.params"
        },
        "a parameter of the first part is missing in the second": {
            "if p in late": "if p in late and p not in early"
        },
        "the parameters of the second part are in the order of their use": {
            "(p for p in function.params if p in late)": (
                "(p for p in late if not p.same_as(middle))"
            )
        },
        "the parameters of the first part are in the order of their use": {
            "[p for p in function.params if p in early]": "list(early)"
        },
        "the new parameter comes last": {
            "[middle, *(p for p in function.params if p in late)]": (
                "[*(p for p in function.params if p in late), middle]"
            )
        },
        "the first part gives an operand of the cut": {
            "if p in early], cut)": "if p in early], cut.args[0])"
        },
        "the first part computes the whole result": {
            "if p in early], cut)": "if True], function.body)"
        },
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

# Question -> what the public checks may accept -> an answer that does not do what is asked.
CHEATS: dict[str, dict[str, str]] = {
    "q2": {
        "it tries all lists of one or two passes": """
def recipes():
    lists = [[], *([k] for k in KNOWN), *([a, b] for a in KNOWN for b in KNOWN)]
    return {name: next((k for k in lists if helps(name, k)), None) for name in nine}
""",
    },
}

# --- hidden checks -------------------------------------------------------------------------------

T = "Tensor[(3, 4), float32]"
OPEN = "Tensor[(?, 4), float32]"
LIST = "type List[A] { Cons(A, List[A]), Nil, }"
# Functions and their module: main is what is looked at.
MODULES = [
    f"def @main(%s: {T}) {{ %s }}",
    f"def @main(%s: {OPEN}) {{ 1f }}",
    f"def @main(%s: {T}) {{ let %u = exp(%s); let %v = (%u, %s); %v.0 }}",
    f"def @main(%s: {T}) {{ where(greater(%s, 0f), exp(%s), %s) }}",
    f"def @main(%s: {T}) {{ %0 = argwhere(%s); shape_of(%0) }}",
    f"def @main(%p: (({T}, {OPEN}), {T})) {{ exp(%p.1) }}",
    f"def @main(%s: {T}, %f: bool) {{ let %u = if (%f) {{ exp(%s) }} else {{ %s }}; %s }}",
    f"def @main(%s: {T}) {{ let %r = ref(%s); %s }}",
    f"def @main(%s: {T}) {{ let %r = ref(%s); let %u = ref_write(%r, exp(%s)); ref_read(%r) }}",
    f"def @main(%s: {T}) {{ let %g = fn (%p: {T}) {{ exp(%p) }}; %s }}",
    f"def @main(%s: {T}) {{ let %g = fn (%p: {OPEN}) {{ exp(%p) }}; %s }}",
    f"def @main(%s: {T}) {{ let %g = fn (%p: {T}) {{ exp(%p) }}; %g(%s) }}",
    f"def @main(%s: {T}) {{ %0 = fn (%p: {T}) {{ exp(%p) }}; %0(%s) }}",
    f"def @main(%s: {T}, %g: fn ({T}) -> {T}) {{ %g(%s) }}",
    f"def @double(%p: {T}) -> {T} {{ add(%p, %p) }} def @main(%s: {T}) {{ @double(%s) }}",
    f"def @main(%s: {OPEN}, %f: bool) {{ if (%f) {{ exp(%s) }} else {{ %s }} }}",
    f"{LIST} def @main(%s: {T}) {{ let %u = Cons(%s, Nil); %s }}",
    f"{LIST} def @main(%u: List[{T}]) {{ match (%u) {{ Cons(%h, _) => exp(%h), Nil => 1f, }} }}",
]
MODULES[-1] = MODULES[-1].replace("1f", "zeros(shape=[3, 4], dtype='float32')").replace("'", '"')
# The text of this one cannot be read back.
UNIQUE = "relay.Function([s], relay.unique(relay.reshape(relay.exp(s), (12,)))[0])"
VERSION = '#[version = "0.0.5"]\n'


def are_recipes(value: Any, names: list[str], lab: Any) -> str:
    """Each list makes its program static, and no shorter one does."""
    for name, list_of_passes in zip(names, value, strict=True):
        says = lab.judged(lambda name=name, value=list_of_passes: {name: value}, name)
        if says != "right":
            return "a list is not the shortest that makes its program static"
    return ""


def lists_for(*names: str) -> Hidden:
    """The lists of passes for these programs."""
    return Hidden(
        f"the lists for these programs: {', '.join(names)}",
        probe="[recipes()[name] for name in names]",
        draw=lambda random: {"names": names},
        verify=are_recipes,
        timeout=1,  # for what is known; trying the passes takes longer
    )


def open_programs(random: Generator, *, counting: bool) -> Inputs:
    """[text, length]: functions with unknown dimensions; some compute with them (`counting`)."""
    n, m = random.integers(2, 9, size=2).tolist()
    rows = '%0 = shape_of(%x, dtype="int32"); %1 = take(%0, 0, axis=0);'
    texts = [
        f"fn (%x: Tensor[({n}, {m}), float16]) {{ tanh(%x) }}",
        f"fn (%ids: Tensor[({n}, ?), int64], %w: Tensor[(?, {m}), float32]) {{ (exp(%w), %ids) }}",
        f"fn (%b: Tensor[(?, {m}, ?), int8], %a: float32, %c: Tensor[(?), bool]) {{ (%a, %b) }}",
        f"fn (%x: Tensor[(?, {m}), float32], %y: Tensor[({n}), float32]) {{ {rows} "
        '%2 = cast(%1, dtype="float32"); (divide(sum(%x, axis=[0]), %2), %y) }',
        f"fn (%x: Tensor[(?, {m}), float32], %b: Tensor[({m}), float32]) {{ {rows} "
        "if (less(%1, 10)) { add(exp(%x), %b) } else { %x } }",
    ]
    lengths = [1, *random.integers(2, 20, size=2).tolist()]
    chosen = texts[3:] if counting else texts[:3]
    return {"cases": [[text, length] for text in chosen for length in lengths]}


def are_static(value: Any, cases: list[Any], lab: Any) -> str:
    """Modules with the parameters, the values and no more to fold than the right answer's."""
    for (text, length), module in zip(cases, value, strict=True):
        if not isinstance(module, lab.tvm.IRModule):
            return "what comes back is no module"
        wanted = lab.with_length(lab.relay.parse_expr(text), length)
        module = lab.modules.typed(module)
        if lab.parameters(module) != lab.parameters(wanted):
            return "the parameters have other names or types"
        if lab.tvm.ir.structural_equal(module, wanted):
            continue
        inputs = [sample(p.checked_type) for p in wanted["main"].params]
        if not alike(module, wanted, inputs):
            return "a program gives other values"
        if not lab.tvm.ir.structural_equal(lab.passes.run(module, "FoldConstant"), module):
            return "something is left that FoldConstant computes"
    return ""


def sample(kind: Any) -> np.ndarray:
    """Numbers for a parameter of this type."""
    random = np.random.default_rng(7)
    return random.normal(1, 2, [int(n) for n in kind.shape]).astype(str(kind.dtype))


def alike(x: Any, y: Any, inputs: list[np.ndarray]) -> bool:
    """Whether two programs give the same for these inputs, in the order of the parameters."""
    pairs = zip(programs.evaluate(x, inputs), programs.evaluate(y, inputs), strict=True)
    return all(np.allclose(a, b, rtol=1e-4, atol=1e-5, equal_nan=True) for a, b in pairs)


# An encoder whose rows show the ids, the mask, the places, and whether shapes and types are right.
ENCODER = (
    "(lambda ids, mask: np.stack(np.broadcast_arrays(ids, place * (ids * mask).sum() + place, "
    "1000.0 ** (1 - mask), mask.sum(), ids.sum(), [[str(ids.dtype) == 'int64' "
    "and str(mask.dtype) == 'float32' and ids.shape == mask.shape == (1, longest)]]), "
    "axis=-1).astype('float32'))"
)
PLACES = "for place in [np.arange(longest)[None]]"


def requests(random: Generator, longest: int | None = None) -> Inputs:
    """[ids, longest]: one token, all tokens, the token 0 at both ends; drawn ones."""
    cases = [[[7], 1], [[0], 1], [[0], 5], [[0, 3, 0], 3], [[0, 3, 0, 0], 9], [[4, 4], 3]]
    cases = [[ids, longest or most] for ids, most in cases]
    for _ in range(5):
        most = longest or int(random.integers(2, 40))
        ids = random.integers(200, size=int(random.integers(1, most + 1)))
        cases.append([(ids * (random.random(len(ids)) < 0.8)).tolist(), most])
    return {"cases": cases}


def traffics(random: Generator) -> Inputs:
    """[lengths, k, a, b], work a n + b n ** 2: one request, equal ones, many sizes; drawn ones."""
    cases: list[Any] = [
        [[5], 1, 1, 0],
        [[5], 3, 1, 0],
        [[9, 9, 9], 2, 1, 0],
        [[8, 2, 2, 4], 1, 0, 1],
        [[8, 2, 2, 4], 3, 3, 1],
        [[8, 2, 2, 4], 9, 3, 1],
        [[1] * 20 + [2] * 2 + [100], 2, 1, 0],
        [[40] * 3 + [50] * 3 + [60] * 3, 2, 0, 1],
    ]
    for _ in range(8):
        lengths = np.clip(random.lognormal(3, 0.6, int(random.integers(5, 120))), 1, 60)
        lengths = (lengths // 3 * 3 + 1).astype(int)
        a, b = random.integers(100, size=2).tolist()
        cases.append([lengths.tolist(), int(random.integers(1, 5)), a + 1, b])
    return {"cases": cases}


def busy_day(random: Generator) -> Inputs:
    """300 requests."""
    lengths = np.clip(random.lognormal(3, 0.6, 300).astype(int) + 1, 1, 128)
    return {"cases": [[lengths.tolist(), 4, 1_000, 256]]}


def are_best(value: Any, cases: list[Any], lab: Any) -> str:
    """Sizes in order, enough for all requests, and with the least work."""
    for (lengths, k, a, b), sizes in zip(cases, value, strict=True):

        def work(n: float, a: int = a, b: int = b) -> float:
            return a * n + b * n**2

        if len(sizes) > k:
            return "there are more sizes than allowed"
        if sizes != sorted(sizes):
            return "the sizes are not sorted"
        if not sizes or max(sizes) < max(lengths):
            return "a request fits in no size"
        least = lab.padded_work(lengths, lab.best_sizes(lengths, k, work), work)
        if lab.padded_work(lengths, sizes, work) > least:
            return "there are sizes with less work"
    return ""


BEST = "[best_sizes(list(lengths), k, lambda n: a * n + b * n**2) for lengths, k, a, b in cases]"


def splits(random: Generator) -> Inputs:
    """[text, number of the call to cut at]: the whole body, one branch, in a let."""
    head = f"fn (%a: {T}, %b: {T}, %c: {T}, %f: bool)"
    some = f"{head} {{ %0 = exp(%c); %1 = tanh(%0); %2 = add(%1, %a); multiply(%2, %1) }}"
    cases: list[Any] = [[some, k] for k in range(4)]
    cases += [
        [f"{head} {{ %0 = subtract(%c, %a); (%0, %b, (%0, %f), %a) }}", 0],
        [f"{head} {{ if (%f) {{ %0 = exp(%b); add(%0, %0) }} else {{ subtract(%b, %a) }} }}", 0],
        [f"{head} {{ let %u = exp(%c); let %v = tanh(%b); add(multiply(%v, %u), %c) }}", 1],
        [f"{head} {{ %0 = cast(%b, dtype='int32'); add(%0, cast(%c, dtype='int32')) }}", 0],
        [f"{head} {{ %0 = split(%a, indices_or_sections=2, axis=1); add(%0.1, %0.0) }}", 0],
    ]
    return {"cases": [[text.replace("'", '"'), k] for text, k in cases]}


def random_splits(random: Generator) -> Inputs:
    """The same for drawn programs."""
    head, cases = f"fn (%a: {T}, %b: {T}, %c: {T}, %f: bool)", []
    for _ in range(8):
        names, lines = ["%a", "%b", "%c"], []
        for number in range(int(random.integers(3, 9))):
            x, y = (names[int(k)] for k in random.integers(len(names), size=2))
            op = str(random.choice(["add", "subtract", "maximum"]))
            lines.append(f"%{number} = {op}({x}, tanh(multiply({y}, {number + 2}f)));")
            names.append(f"%{number}")
        text = f"{head} {{ {' '.join(lines)} (%f, {names[-1]}, add({names[-2]}, {names[-3]})) }}"
        cases.append([text, int(random.integers(3 * len(lines)))])
    return {"cases": cases}


FUNCTION = "modules.typed(relay.parse_expr(text))['main']"
CALLS = "[node for node in nodes if isinstance(node, relay.Call)]"
SPLIT = (
    f"[list(split(function, {CALLS}[min(k, len({CALLS}) - 1)])) for text, k in cases "
    f"for function in [{FUNCTION}] for nodes in [[]] "
    "for _ in [relay.analysis.post_order_visit(function.body, nodes.append)]]"
)


def are_parts(value: Any, cases: list[Any], lab: Any) -> str:
    """Both parts have the right parameters, and give the right values for any middle."""
    names = {"split": lab.split, "modules": lab.modules, "relay": lab.relay, "cases": cases}
    for wanted, found in zip(eval(SPLIT, names), value, strict=True):
        for part, (x, y) in enumerate(zip(found, wanted, strict=True)):
            x, y = (lab.modules.typed(function) for function in (x, y))
            mine, others = (module["main"].params for module in (x, y))
            if [p.name_hint for p in mine[part:]] != [p.name_hint for p in others[part:]]:
                return f"the {('first', 'second')[part]} part has other parameters"
            kinds = [[str(p.checked_type) for p in params] for params in (mine, others)]
            if kinds[0] != kinds[1]:
                return f"a parameter of the {('first', 'second')[part]} part has another type"
            if lab.tvm.ir.structural_equal(x, y):
                continue
            if not alike(x, y, [sample(p.checked_type) for p in others]):
                return f"the {('first', 'second')[part]} part gives other values"
    return ""


HIDDEN = {
    "q1": [
        Hidden(
            "programs with one reason or none: in parameters, tuples, lets, functions, branches",
            probe="[sorted(reasons(modules.typed(program)['main'])) for program in "
            f"[*map(relay.fromtext, texts), {UNIQUE}]]",
            draw=lambda random: {"texts": [VERSION + text for text in MODULES]},
        ),
        Hidden(
            "50 random programs",
            probe="[sorted(reasons(random_program(seed))) for seed in seeds]",
            draw=lambda random: {"seeds": random.integers(10**3, 10**9, size=50).tolist()},
        ),
    ],
    "q2": [
        lists_for("number of rows", "shape of b"),
        lists_for("closure", "function", "reference"),
        lists_for("flag", "flag, not used"),
        lists_for("where", "argwhere"),
    ],
    "q3": [
        Hidden(
            "functions of several parameters, known and unknown dimensions, and many types",
            probe="[with_length(relay.parse_expr(text), length) for text, length in cases]",
            draw=lambda random: open_programs(random, counting=False),
            verify=are_static,
        ),
        Hidden(
            "functions that compute with an unknown dimension of theirs",
            probe="[with_length(relay.parse_expr(text), length) for text, length in cases]",
            draw=lambda random: open_programs(random, counting=True),
            verify=are_static,
        ),
    ],
    "q4": [
        Hidden(
            "one to all tokens, the token 0 at the ends, with an encoder that shows what it gets",
            probe=f"[embed({ENCODER}, ids, longest) for ids, longest in cases {PLACES}]",
            draw=requests,
            rtol=1e-4,
            weight=3,
        ),
        Hidden(
            "as many tokens as the encoder takes, one more, and many more",
            probe="[too_long(lambda *_, size=size, longest=longest, place=place: "
            f"embed({ENCODER}, [1] * size, longest)) for longest, size in cases {PLACES}]",
            draw=lambda random: {
                "cases": [
                    [n, size]
                    for n in random.integers(3, 20, size=2).tolist()
                    for size in (n, n + 1, 9 * n)
                ]
            },
        ),
        Hidden(
            "other tokens, with the encoder of the lab",
            probe="[embed(encode, ids, longest) for ids, longest in cases]",
            draw=lambda random: requests(random, 64),
            rtol=1e-3,
            atol=1e-4,
        ),
    ],
    "q5": [
        Hidden(
            "one request, equal ones, few and many sizes, several kinds of work",
            probe=BEST,
            draw=traffics,
            verify=are_best,
            weight=2,
        ),
        Hidden("300 requests, 4 sizes", probe=BEST, draw=busy_day, verify=are_best, timeout=20),
    ],
    "q6": [
        Hidden(
            "cuts at the whole body, in a branch, beside a let, and of several types",
            probe=SPLIT,
            draw=splits,
            verify=are_parts,
        ),
        Hidden("cuts of random programs", probe=SPLIT, draw=random_splits, verify=are_parts),
    ],
}
