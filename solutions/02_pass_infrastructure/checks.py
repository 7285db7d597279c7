"""Lab 02: wrong answers that the checks must refuse, other right ones, and the hidden checks."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.random import Generator

from helpers import modules, programs
from helpers.errors import WorkbookError
from helpers.grading.hidden import Hidden

# Question -> what is wrong with the answer -> which of its texts are replaced by what.
WRONG: dict[str, dict[str, dict[str, str]]] = {
    "q1": {
        "InferType is in the list, too": {' if row[0] != "InferType"': ""},
        "a Sequential is a pass as well, and is missing": {
            '!= "InferType"': 'not in ("InferType", "sequential")'
        },
        "the pass that ends is taken for the one that began first, not last": {
            "begun.pop()": "begun.pop(0)"
        },
        "the number before is that of the pass that began last, also for the passes around it": {
            "begun.append(operators(module))": "begun[:] = [operators(module)]",
            "begun.pop()": "begun[0]",
        },
        "the level that was given is not used": {"opt_level=level, ": ""},
        "the level is always 3": {"opt_level=level": "opt_level=3"},
        "the last pass that ends comes first, not last": {
            "for row in rows": "for row in rows[::-1]"
        },
        "passes that leave the number of operators as it is are missing": {
            '!= "InferType"': '!= "InferType" and row[1] != row[2]'
        },
        "there is a row that belongs to no pass": {
            "run()\n": "run()\n        rows.append(('run', 0, 0))\n"
        },
    },
    "q2": {
        "the last pass of the list runs first": {"in pipeline": "in reversed(pipeline)"},
        "passes run although the context disables them": {"in context.disabled_pass": "in ()"},
        "a pass that is both required and disabled runs": {
            "in context.disabled_pass": "in set(context.disabled_pass) - set(context.required_pass)"
        },
        "a pass that the context requires does not run above the context's level": {
            "not in context.required_pass": "not in ()"
        },
        "passes run at any level": {"p.info.opt_level > context.opt_level": "False"},
        "a pass whose level is exactly the context's does not run": {
            "p.info.opt_level > context.opt_level": "p.info.opt_level >= context.opt_level"
        },
        "the level of the context does not count: it is taken to be 3": {
            "p.info.opt_level > context.opt_level": "p.info.opt_level > 3"
        },
        "the passes run outside of the context": {"with context:": "if True:"},
        "what a pass requires does not run before it": {"in p.info.required": "in ()"},
        "each pass gets the module that was given, not the result of the pass before it": {
            "with context:": "first = module\n    with context:",
            "(transform, name)()(module)": "(transform, name)()(first)",
            "module = p(module)": "module = p(transform.InferType()(first))",
        },
        "the last pass of the list never runs": {"in pipeline": "in pipeline[:-1]"},
    },
    "q3": {
        "where a pass runs is taken from its level, not from the build": {
            "if rows:": "if passes.info(name).level <= level:",
        },
        "level 4 is not watched": {"range(5)": "range(4)"},
        "level 0 is not watched": {"range(5)": "range(1, 5)"},
        "only the first run of the pass in a build counts": {"in rows)": "in rows[:1])"},
        "a level counts as one at which the pass runs only when it changes something there": {
            "if rows:": "if any(b != a for _, b, a in rows):"
        },
        "each level at which the pass runs counts as one at which it changes something": {
            "before != after for": "True for"
        },
        "only levels at which every run takes operators away count, not those that add some": {
            "if any(before != after": "if all(before > after"
        },
        "all passes count, not only those of the name": {" if row[0] == name": ""},
    },
    "q4": {
        "an operator that makes the shape larger is dropped: the types are not compared": {
            "call.checked_type == call.args[kept].checked_type": "True"
        },
        "one divided by x is taken for x": {" and kept == 0": ""},
        "a one on the left is not found": {"((0, 1), (1, 0))": "((0, 1),)"},
        "a one on the right is not found": {"((0, 1), (1, 0))": "((1, 0),)"},
        "multiplications and divisions by any constant are dropped": {
            "is_one(call.args[one])": "isinstance(call.args[one], relay.Constant)",
        },
        "the argument is put in as it was before it was rewritten itself": {
            "return new.args[kept]": "return call.args[kept]"
        },
        "only the last operator is looked at, not those in its arguments": {
            "new = super().visit_call(call)": "new = call"
        },
        "tensors of ones are kept where they change nothing": {
            "if known": "if known and call.args[one].checked_type.shape == []"
        },
        "additions of one are dropped": {'== "multiply"': 'in ("multiply", "add")'},
        "divisions by one are kept": {'call.op.name == "divide"': "False"},
        "the one is kept, and the other operand is dropped": {
            "return new.args[kept]": "return new.args[one]"
        },
    },
    "q5": {
        "the axes are composed the other way round": {
            "[inner[axis] for axis in outer]": "[outer[axis] for axis in inner]"
        },
        "two transposes are dropped although together they change the order": {
            "data if axes == sorted(axes) else": "data if True else"
        },
        "two transposes are dropped where they are equal, not where they undo each other": {
            "axes == sorted(axes)": "inner == outer"
        },
        "two transposes are made one only where nothing is left": {
            "else relay.transpose(data, axes)": "else after"
        },
        "a transpose that changes nothing is left": {"data if axes == sorted(axes) else ": ""},
        "a transpose that the callback made has no type when it is met again": {
            "require_type=True": ""
        },
        "a transpose whose argument is no transpose is rewritten, too": {
            'is_op("transpose")(is_op("transpose")(self.data))': 'is_op("transpose")(self.data)',
            "axes_of(before.args[0]), axes_of(before)": "axes_of(before), axes_of(before)",
        },
        "the outer transpose is dropped, whatever its axes are": {
            "relay.transpose(data, axes)": "relay.transpose(data, inner)"
        },
        "nothing is rewritten": {"rewrite(Merge(), function)": "function"},
    },
    "q6": {
        "the number of passes is returned, not the index of the last of them": {
            "return high - 1": "return high"
        },
        "the index is that of the last pass that did no harm": {
            "return high - 1": "return low - 1"
        },
        "the passes are tried one after the other, from the first on": {
            "(low + high) // 2": "low + 1"
        },
        "the passes are tried one after the other, from the last on": {
            "(low + high) // 2": "high - 1"
        },
        "some pass is always found, also where the result works": {
            "if works(states[high]):": "if False:"
        },
        "a number is returned where no pass is faulty": {"return None": "return len(pipeline)"},
        "works is asked for the module after each pass": {
            "if works(states[high]):": "if all([works(s) for s in states]):"
        },
        "the search goes on in the wrong half": {
            "if works(states[middle])": "if not works(states[middle])"
        },
        "each pass gets the module that was given, not the result of the pass before it": {
            "p(states[-1])": "p(module)"
        },
        "the passes run in a Sequential, which leaves out those above the context's level": {
            "p(states[-1])": "Sequential([p])(states[-1])"
        },
    },
    "q7": {
        "a pass that is required runs, also when it is disabled": {
            "    if name not in own_context.disabled_pass\n    and (p": (
                "    if name in own_context.required_pass\n"
                "    or name not in own_context.disabled_pass\n    and (p"
            ),
        },
        "required_pass is not looked at": {" or name in own_context.required_pass": ""},
        "disabled_pass is not looked at": {"name not in own_context.disabled_pass": "True"},
        "a pass of the level of the context does not run": {"<=": "<"},
        "the pass itself is given, not its name": {"[\n    name\n": "[\n    [name, 'Pass']\n"},
        "the axes of two transposes are put together the wrong way round": {
            "transposes(merge_transposes, own_body)": (
                "[axes for a, b, c in ([*turn, range(4), range(4)][:3] for turn in own_turns) "
                "for axes in [[c[b[a[k]]] for k in range(4)]] if axes != [0, 1, 2, 3]]"
            )
        },
        "transposes in a row are left as they are": {"merge_transposes, own": "lambda f: f, own"},
        "the axes are counted from 1": {
            "= transposes(merge_transposes, own_body)": (
                "= [[axis + 1 for axis in axes] for axes in transposes(merge_transposes, own_body)]"
            )
        },
        "a transpose that stands alone is left out": {
            "= transposes(merge_transposes, own_body)": (
                "= [axes for axes in transposes(merge_transposes, own_body) "
                "if [(*axes,)] not in own_turns]"
            )
        },
    },
}

# Question -> a right answer of another kind.
OTHERS: dict[str, str] = {
    "q2": """
def compose(module, pipeline, context):
    def runs(info):
        enabled = info.opt_level <= context.opt_level or info.name in context.required_pass
        return enabled and info.name not in context.disabled_pass
    for p in filter(lambda p: runs(p.info), pipeline):
        for step in [getattr(transform, name)() for name in p.info.required] + [p]:
            with context:
                module = step(module)
    return module
""",
    "q4": """
def drop_ones(function):
    class Drop(DFPatternCallback):
        def __init__(self):
            super().__init__(require_type=True)
            a, b = wildcard(), wildcard()
            self.pattern = is_op("multiply")(a, b) | is_op("divide")(a, b)
        def callback(self, before, after, matched):
            a, b = before.args
            if is_one(b) and a.checked_type == before.checked_type:
                return after.args[0]
            commutes = before.op.name == "multiply"
            if commutes and is_one(a) and b.checked_type == before.checked_type:
                return after.args[1]
            return after
    return rewrite(Drop(), function)
""",
    "q6": """
def first_breaking(module, pipeline, works):
    states = [module]
    for p in pipeline:
        states.append(p(states[-1]))
    def search(low, high):
        if high - low == 1:
            return low
        middle = (low + high) // 2
        return search(middle, high) if works(states[middle]) else search(low, middle)
    return None if works(states[-1]) else search(0, len(pipeline))
""",
}


# --- hidden checks -------------------------------------------------------------------------------

INPUT = "%x: Tensor[(2, 4), float32]"
EDGE_TEXTS = [
    f"fn ({INPUT}) {{ %x }}",
    f"fn ({INPUT}) {{ %0 = nn.dropout(%x, rate=0.5f); %1 = add(2f, 1f); multiply(%0.0, %1) }}",
]


def text(random: Generator) -> str:
    """A program with repeated operators, sums of constants, and dropouts."""
    values, lines = ["%x"], []

    def line(what: str) -> str:
        lines.append(f"%{len(lines)} = {what};")
        return f"%{len(lines) - 1}"

    for k in range(int(random.integers(4, 12))):
        kind = random.choice(["exp", "tanh", "add", "constant", "dropout"])
        a, b = (values[int(n)] for n in random.integers(len(values), size=2))
        if kind == "dropout":
            whole = line(f"nn.dropout({a}, rate=0.5f)")
            values.append(line(f"{whole}.0"))
        elif kind == "constant":
            three = line(f"add({k}f, 1f)")
            values.append(line(f"multiply({a}, {three})"))
        else:
            values.append(line(f"add({a}, {b})" if kind == "add" else f"{kind}({a})"))
    return f"fn ({INPUT}) {{ {' '.join(lines)} add({values[-1]}, {values[-2]}) }}"


def texts(random: Generator, count: int) -> list[str]:
    """Some programs."""
    return [text(random) for _ in range(count)]


MODULE = "modules.typed(relay.parse_expr(text))"
NAMES = ["SimplifyInference", "FoldConstant", "EliminateCommonSubexpr", "DeadCodeElimination"]


def tree(random: Generator, depth: int) -> Any:
    """A pass's name, or [name of a Sequential, what is in it ...]."""
    if not depth or random.random() < 0.2:
        return str(random.choice(NAMES))
    inside = [tree(random, depth - 1) for _ in range(int(random.integers(1, 4)))]
    return [str(random.choice(["sequential", "outer", "inner"])), *inside]


PASS_OF_TREE = (
    "(lambda make: make(make, tree))(lambda make, t: getattr(transform, t)() if isinstance(t, str)"
    " else Sequential([make(make, inside) for inside in t[1:]], name=t[0]))"
)


def trees(random: Generator) -> dict[str, Any]:
    """Trees of passes for drawn programs, and a level for each."""
    edges = [["sequential"], ["outer", ["inner", ["inner", "FoldConstant"]], "SimplifyInference"]]
    drawn = [tree(random, 3) for _ in range(6)]
    programs = [*EDGE_TEXTS, *texts(random, 6)]
    levels = random.integers(0, 5, size=8).tolist()
    return {"cases": [list(case) for case in zip(programs, [*edges, *drawn], levels, strict=True)]}


def contexts(random: Generator) -> dict[str, Any]:
    """Programs, lists of passes, and settings of a context."""
    listed, cases = [*NAMES, "FuseOps"], []
    for k, text in enumerate([*EDGE_TEXTS, *texts(random, 10)]):
        some = [str(n) for n in random.choice(listed, size=int(random.integers(0, 6)))]
        given: dict[str, Any] = {"opt_level": int(random.integers(0, 5))}
        if k % 2:
            given["required_pass"] = sorted({str(n) for n in random.choice(listed, size=2)})
        if k % 3 == 2:
            given["disabled_pass"] = sorted({str(n) for n in random.choice(listed, size=2)})
        if k % 4 == 3:
            given["config"] = {"relay.FuseOps.max_depth": int(random.integers(1, 4))}
            some.append("FuseOps")
        cases.append([text, some, given])
    return {"cases": cases}


# A pass of TVM that a Sequential does not take.
WRAPPED_PASS = (
    "(lambda p: type('Own', (), {'info': p.info, '__call__': lambda self, m: p(m)})())"
    "(getattr(transform, n)())"
)
# Its calls are in `log`: its name, the level of the context, whether the module has types.
OWN_PASS = (
    "type('Own', (), {'info': __import__('types').SimpleNamespace(name=name, opt_level=level, "
    "required=required), '__call__': lambda self, m, name=name, op=op: (log.append([name, "
    "int(PassContext.current().opt_level), m['main'].body._checked_type_ is not None]), "
    "program(getattr(relay, op)(m['main'].body)))[1]})()"
)


def own_passes(random: Generator) -> dict[str, Any]:
    """Passes written in Python: name, level, the operator that they put on top, requirements."""
    operators = ["exp", "tanh", "sigmoid", "sqrt"]
    three = [[f"P{n}", 4 - n, operators[n], []] for n in range(3)]
    cases: list[Any] = [
        [[], {}],
        [three, {"opt_level": 1, "required_pass": ["P1"]}],
        [three, {"opt_level": 4, "required_pass": ["P0", "P1"], "disabled_pass": ["P1", "P2"]}],
    ]
    for _ in range(5):
        pipeline = [
            [
                f"P{random.integers(6)}",
                int(random.integers(0, 5)),
                str(random.choice(operators)),
                ["InferType"] if random.random() < 0.4 else [],
            ]
            for _ in range(int(random.integers(3, 8)))
        ]
        required, disabled = (sorted({f"P{n}" for n in random.integers(0, 6, 2)}) for _ in range(2))
        level = int(random.integers(0, 4))
        given = {"opt_level": level, "required_pass": required, "disabled_pass": disabled}
        cases.append([pipeline, given])
    return {"cases": cases}


def levels_to_watch(random: Generator) -> dict[str, Any]:
    """Names of passes and a program for each."""
    others = ["FuseOps", "ToBasicBlockNormalForm", "AlterOpLayout", "LabelOps", "FastMath"]
    names = ["FoldConstant", "SimplifyInference", "DeadCodeElimination", str(random.choice(others))]
    return {"cases": [[name, text(random)] for name in names]}


def layers(random: Generator) -> dict[str, Any]:
    """Shapes of dense layers: (inputs, outputs)."""
    sizes = random.integers(1, 5, size=2).tolist()
    return {"cases": [["FoldConstant", [8 * sizes[0], 8 * sizes[1]]], ["FuseOps", [4, 8]]]}


def steps(random: Generator, *more: list[Any]) -> dict[str, Any]:
    """Chains of operators with constants: [operator, side of the constant, its shape, its values].

    ``more`` are steps that a chain may have, too.
    """
    edges = [
        [[2], "float32", []],
        [[], "float32", [["multiply", 1, [], [1]]]],
        [[], "float32", [["multiply", 1, [1], [1]]]],
        [[4], "float32", [["multiply", 0, [1], [1]], ["multiply", 1, [1, 4], [1]]]],
        [[1, 4], "float32", [["exp"], ["divide", 1, [3, 1], [1]], ["divide", 1, [3, 4], [1]]]],
        [[2, 3], "float32", [["divide", 0, [], [1]], ["divide", 0, [2, 3], [1]]]],
        [[3], "int64", [["multiply", 0, [3], [1]], ["multiply", 1, [], [3]]]],
        [[2, 2], "float64", [["multiply", 1, [2], [1, 2]], ["divide", 1, [2], [1, 1]]]],
    ]
    choices: list[list[Any]] = [["exp"], ["tanh"], *more]
    for shape in ([], [1], [2, 3], [4, 2, 3]):
        for name, side in (("multiply", 1), ("multiply", 0), ("divide", 1), ("divide", 0)):
            choices.append([name, side, shape, [1]])
    choices += [["multiply", 1, [], [2]], ["divide", 1, [3], [1, 1, 2]]]
    for _ in range(8):
        chain = random.permutation(len(choices) + 3 * len(more))[: int(random.integers(3, 8))]
        picked = [choices[k] if k < len(choices) else more[k % len(more)] for k in chain]
        edges.append([[1, 3], "float32", [*more, *picked]])
    return {"cases": edges}


CHAIN = (
    "__import__('functools').reduce(lambda e, s: getattr(relay, s[0])(*([e, c(s)] if s[1] else "
    "[c(s), e]) if s[1:] else [e]), steps, relay.var('x', shape=tuple(shape), dtype=dtype))"
)
LEFT_OF_CHAINS = (
    "[(lambda f: [[node.op for node in ir.graph(f).calls], "
    "programs.evaluate(f, {'x': programs.entries(tuple(shape))})])"
    f"(program(drop_ones(modules.typed(program((lambda c: {CHAIN})(lambda s: relay.const("
    "np.resize(np.array(s[3], dtype), tuple(s[2])), dtype))))['main']).body))"
    " for shape, dtype, steps in cases]"
)


def turns(*sizes: int) -> Callable[[Generator], dict[str, Any]]:
    """Shapes of these axes, and the axes of transposes in a row; a text is another operator."""

    def draw(random: Generator) -> dict[str, Any]:
        cases: list[Any] = [
            [2, [None, [1, 0]]],
            [2, [[-1, -2], [1, 0], [-1, 0]]],
            [3, [[1, 2, 0], [1, 2, 0]]],
            [3, [[1, 2, 0], None]],
            [3, [[1, 2, 0]]],
            [3, [[1, 2, 0], "exp", [2, 0, 1]]],
            [3, [[1, 2, 0], "add", [2, 0, 1]]],
        ]
        for _ in range(8):
            rank, length = random.integers(2, [5, 6]).tolist()
            chain: list[Any] = [random.permutation(rank).tolist() for _ in range(length)]
            cases.append(
                [
                    rank,
                    [
                        *chain[:2],
                        *([str(random.choice(["tanh", "add"])), *chain[2:]] if length > 3 else []),
                    ],
                ]
            )
        return {
            "cases": [[random.permutation(sizes)[:rank].tolist(), chain] for rank, chain in cases]
        }

    return draw


ROW = (
    "__import__('functools').reduce(lambda e, s: relay.transpose(e, s) if not isinstance(s, str) "
    "else e + relay.const(0.0) if s == 'add' else getattr(relay, s)(e), steps, "
    "relay.var('x', shape=tuple(shape)))"
)
LEFT_OF_ROWS = (
    "[(lambda f: [[axes_of(n.expr) if n.op == 'transpose' else n.op for n in ir.graph(f).calls], "
    "programs.evaluate(f, {'x': programs.entries(tuple(shape))})])"
    f"(program(merge_transposes(modules.typed(program({ROW}))['main']).body))"
    " for shape, steps in cases]"
)


def neighbours(random: Generator) -> dict[str, Any]:
    """Texts with two transposes in a row beside other operators that could be merged."""
    four = "%x: Tensor[(2, 4, 3, 3), float32]"
    first, second = (random.permutation(4).tolist() for _ in range(2))
    pair = f"%0 = transpose(%x, axes={first}); %1 = transpose(%0, axes={second});"
    rest = [
        "%2 = reshape(%1, newshape=[-1, 6]); %3 = reshape(%2, newshape=[6, -1]); exp(%3)",
        "%2 = add(%1, 0f); %3 = multiply(%2, 1f); tanh(%3)",
        '%2 = cast(%1, dtype="float64"); %3 = cast(%2, dtype="float32"); exp(%3)',
        "%2 = nn.relu(%1); %3 = transpose(%2, axes=[0, 2, 3, 1]); %4 = nn.relu(%3); exp(%4)",
    ]
    layout = '%0 = layout_transform(%x, src_layout="NCHW", dst_layout="NHWC");'
    after = f"{layout} %1 = transpose(%0, axes={first}); %2 = transpose(%1, axes={second}); exp(%2)"
    bodies = [*(f"{pair} {line}" for line in rest), after]
    return {"texts": [f"fn ({four}) {{ {body} }}" for body in bodies]}


def drawn_from(*operators: str, shapes: list[list[int]]) -> Callable[[Generator], dict[str, Any]]:
    """Options of random programs, in an order of their own for each secret."""

    def draw(random: Generator) -> dict[str, Any]:
        return {
            "operators": [str(name) for name in random.permutation(operators)],
            "shapes": [shapes[k] for k in random.permutation(len(shapes))],
        }

    return draw


EXAMPLES = 40
RANDOM = (
    f"(lambda found: (programs.counterexample(lambda m: found.append(m) or m, examples={EXAMPLES},"
    " operators=operators, shapes=[tuple(s) for s in shapes]), found)[1])([])"
)


def modules_of(operators: list[str], shapes: list[list[int]]) -> list[Any]:
    """The random programs that RANDOM gives."""
    found: list[Any] = []
    programs.counterexample(
        lambda module: found.append(module) or module,
        examples=EXAMPLES,
        operators=operators,
        shapes=[tuple(shape) for shape in shapes],
    )
    return found


def broken(before: Any, after: Any) -> str:
    """What is wrong with a function made of a typed module, if types or values differ."""
    from tvm.ir import structural_equal

    try:
        typed = modules.typed(after)
    except WorkbookError:
        return "a program is no longer well-typed after it"
    if not structural_equal(typed["main"].checked_type, before["main"].checked_type):
        return "a program has another type after it"
    inputs = [
        programs.entries(tuple(int(size) for size in p.checked_type.shape), 3 * k)
        for k, p in enumerate(before["main"].params)
    ]
    pairs = zip(programs.evaluate(before, inputs), programs.evaluate(typed, inputs), strict=True)
    if not all(np.allclose(a, b, rtol=1e-3, atol=1e-3, equal_nan=True) for a, b in pairs):
        return "a program computes other values after it"
    return ""


def has_no_ones(value: Any, operators: list[str], shapes: list[list[int]], lab: Any) -> str:
    """Right values and types, and as many operators as can be left."""
    for before, after in zip(modules_of(operators, shapes), value, strict=True):
        if says := broken(before, after):
            return says
        wanted = lab.drop_ones(before["main"])
        if len(lab.ir.graph(after).calls) != len(lab.ir.graph(wanted).calls):
            return "a program has another number of operators after it"
    return ""


def has_no_row(value: Any, operators: list[str], shapes: list[list[int]], lab: Any) -> str:
    """Right values and types, and no transpose whose only use is another one."""

    def others(x: Any) -> list[str]:
        return sorted(node.op for node in lab.ir.graph(x).calls if node.op != "transpose")

    for before, after in zip(modules_of(operators, shapes), value, strict=True):
        if says := broken(before, after):
            return says
        if lab.still_in_a_row(before, after):
            return "a transpose is left whose only use is another transpose"
        if others(before) != others(after):
            return "other operators than transposes have changed"
    return ""


def searches(*lengths: int) -> Callable[[Generator], dict[str, Any]]:
    """Lengths of pipelines, the faulty pass of each (null: none), levels of the passes."""

    def draw(random: Generator) -> dict[str, Any]:
        faulty = [[n, int(k)] for n in lengths for k in {0, n - 1, int(random.integers(n))}]
        cases = [*faulty, *([n, None] for n in lengths)]
        return {"cases": cases, "levels": random.integers(0, 5, size=max(lengths)).tolist()}

    return draw


# Pass k puts exp on top: a module says by its operators how many passes it has seen.
SEARCH = (
    "[(lambda asked: [first_breaking(modules.typed(program(x)), "
    "[tvm.transform.module_pass(lambda m, c: modules.typed(program(relay.exp(m['main'].body))), "
    "opt_level=level, name='Step') for level in levels[:n]], "
    "lambda m: (asked.append(operators(m)), k is None or operators(m) <= k)[1]), "
    "max(len(asked), 1 + (n - 1).bit_length())])([]) for n, k in cases]"
)

HIDDEN = {
    "q1": [
        Hidden(
            "Sequentials inside of Sequentials, at several levels, on random programs",
            probe=(
                f"[watch(lambda: {PASS_OF_TREE}({MODULE}), level) for text, tree, level in cases]"
            ),
            draw=trees,
        ),
        Hidden(
            "passes that are called directly, one after the other, at several levels",
            probe=(
                "[watch(lambda: [getattr(transform, n)()(m) for n in names for m in modules_given],"
                " level) for modules_given in [list(map(modules.typed, (block, twice)))]"
                " for names, level in cases]"
            ),
            draw=lambda random: {
                "cases": [
                    [[str(n) for n in random.permutation([*NAMES, "InferType"])[:3]], level]
                    for level in range(5)
                ]
            },
        ),
        Hidden(
            "all passes of a build, at several levels",
            probe=(
                f"[watch(lambda: build_passes({MODULE}), level)"
                " for level in levels for text in texts]"
            ),
            draw=lambda random: {"texts": texts(random, 2), "levels": [1, 4]},
        ),
    ],
    "q2": [
        Hidden(
            "passes of TVM that only a direct call can run: random lists, programs and contexts",
            probe=(
                f"[kernels(compose({MODULE}, [{WRAPPED_PASS} for n in names],"
                " PassContext(**given))) for text, names, given in cases]"
            ),
            draw=contexts,
        ),
        Hidden(
            "passes written in Python, which only a direct call can run",
            probe=(
                "[(lambda log: [[node.op for node in ir.graph(compose(program(x), "
                f"[{OWN_PASS} for name, level, op, required in pipeline], "
                "PassContext(**given))).calls], log])([]) for pipeline, given in cases]"
            ),
            draw=own_passes,
        ),
    ],
    "q3": [
        Hidden(
            "several passes in builds of random programs",
            probe=f"[levels_of(name, {MODULE}) for name, text in cases]",
            draw=levels_to_watch,
        ),
        Hidden(
            "passes that find something to do only when others have run",
            probe=(
                "[levels_of(name, modules.typed(program(relay.nn.dense("
                "relay.var('x', shape=(1, size[0])), "
                "relay.const(np.ones(size[::-1], 'float32')))))) for name, size in cases]"
            ),
            draw=layers,
        ),
    ],
    "q4": [
        Hidden(
            "chains with ones of several shapes and types: the operators left, and the values",
            probe=LEFT_OF_CHAINS,
            draw=steps,
        ),
        Hidden(
            "chains with other operators that change nothing, which have to stay",
            probe=LEFT_OF_CHAINS,
            draw=lambda random: steps(
                random, ["add", 1, [], [0]], ["subtract", 1, [], [0]], ["add", 1, [3], [1]]
            ),
        ),
        Hidden(
            f"{EXAMPLES} random programs: values, types and the number of operators",
            probe=f"[drop_ones(m['main']) for m in {RANDOM}]",
            draw=drawn_from(
                "multiply",
                "multiply",
                "divide",
                "exp",
                "add",
                "sum",
                "concatenate",
                shapes=[[2], [], [1], [3], [1, 3], [2, 3]],
            ),
            verify=has_no_ones,
        ),
    ],
    "q5": [
        Hidden(
            "transposes in a row, all axes equally long: what is left, and the values",
            probe=LEFT_OF_ROWS,
            draw=turns(3, 3, 3, 3),
        ),
        Hidden(
            "transposes in a row, no two axes equally long: what is left, and the values",
            probe=LEFT_OF_ROWS,
            draw=turns(2, 3, 4, 5),
        ),
        Hidden(
            "transposes beside other operators that could be merged, which have to stay",
            probe="[[n.op for n in ir.graph(merge_transposes(modules.typed(relay.parse_expr(text))"
            "['main'])).calls] for text in texts]",
            draw=neighbours,
        ),
        Hidden(
            f"{EXAMPLES} random programs: values, types and the transposes that are left",
            probe=f"[merge_transposes(m['main']) for m in {RANDOM}]",
            draw=drawn_from(
                "transpose",
                "transpose",
                "transpose",
                "add",
                "exp",
                "concatenate",
                shapes=[[2, 3], [1, 2, 2, 2], [1, 4, 3, 3], [3]],
            ),
            verify=has_no_row,
        ),
    ],
    "q6": [
        Hidden(
            "pipelines of one to nine passes: the index, and how often works is called",
            probe=SEARCH,
            draw=searches(1, 2, 3, 4, 5, 8, 9),
        ),
        Hidden(
            "long pipelines: the index, and how often works is called",
            probe=SEARCH,
            draw=lambda random: searches(*random.integers(20, 70, size=3).tolist(), 64)(random),
        ),
    ],
    "q7": [
        Hidden("the passes of your pipeline that run", probe="list(own_run)", own=True),
        Hidden(
            "the transposes that are left of your program",
            probe="[list(axes) for axes in own_axes]",
            own=True,
        ),
    ],
}

# Answers that the public checks may accept and that do not do what is asked.
CHEATS: dict[str, dict[str, str]] = {
    "q2": {
        "it hands the pipeline to Sequential": """def compose(module, pipeline, context):
    with context:
        return Sequential(pipeline)(module)
""",
    },
    "q4": {
        "it calls TVM's SimplifyExpr": """def drop_ones(function):
    return transform.SimplifyExpr()(modules.typed(function))["main"]
""",
    },
    "q5": {
        "it calls TVM's SimplifyExpr": """def merge_transposes(function):
    return transform.SimplifyExpr()(modules.typed(function))["main"]
""",
    },
    "q6": {
        "it sets the count of questions back": """def first_breaking(module, pipeline, works):
    states = [module]
    for p in pipeline:
        states.append(p(states[-1]))
    found = next((k for k, s in enumerate(states[1:]) if not works(s)), None)
    try:
        works.asked = 0
    except Exception:
        pass
    return found
""",
        "it knows the name of the pass": """def first_breaking(module, pipeline, works):
    states = [module]
    for p in pipeline:
        states.append(p(states[-1]))
    if works(states[-1]):
        return None
    named = [k for k, p in enumerate(pipeline) if p.info.name == "DropScale"]
    return named[-1] if named else len(pipeline) - 1
""",
        "it asks a copy that nobody counts": """def first_breaking(module, pipeline, works):
    other = Works(module)
    for k, p in enumerate(pipeline):
        module = p(module)
        if not other(module):
            return k
""",
    },
}
