"""Lab 04: wrong answers that the checks must refuse, other right ones, and the hidden checks."""

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
        "an operator without arguments is folded, too": {" and arguments:": ":"},
        "inputs are folded as if they were operators with known values": {
            "if op in COMPUTE and arguments:": 'if op != "const":',
            "COMPUTE[op](": "COMPUTE.get(op, lambda *_: None)(",
        },
        "a folded operator does not count as a constant for those behind it": {
            "[folded[argument] for": "[graph[argument] for"
        },
        "an operator is folded when only some of its arguments are constants": {
            "if all(": "if any("
        },
        "the dictionary that was given is changed": {"dict(graph)": "graph"},
        "a folded operator becomes a bare value, not a (const, value)": {
            '("const", COMPUTE[op](*': "(COMPUTE[op](*",
        },
        "a constant is missing in the result": {
            "return folded": 'return {name: node for name, node in folded.items() if name != "c"}'
        },
    },
    "q2": {
        "a call without arguments counts as foldable": {" or len(call.args) == 0": ""},
        "one constant argument is taken to be enough": {
            "return all(is_constant(argument)": "return any(is_constant(argument)"
        },
        "only the first argument is looked at": {"in call.args)": "in call.args[:1])"},
        "only the last argument is looked at": {"in call.args)": "in call.args[-1:])"},
        "a tuple of constants does not count as a constant": {
            "return all(is_constant(field) for field in expression.fields)": "return False"
        },
        "every tuple counts as a constant, whatever its fields are": {
            "return all(is_constant(field) for field in expression.fields)": "return True"
        },
        "stateful operators count as foldable": {'call.op.get_attr("TOpIsStateful") or ': ""},
        "non-computational operators count as foldable": {
            ' or call.op.get_attr("TNonComputational")': ""
        },
        "calls of functions count as foldable": {
            "not isinstance(call.op, tvm.ir.Op) or ": "",
            "    def is": "    entry = getattr(call.op, 'get_attr', {}.get)\n\n    def is",
            'call.op.get_attr("TOp': 'entry("TOp',
            'call.op.get_attr("TNon': 'entry("TNon',
        },
        "operators of random numbers are excluded, although the registry allows them": {
            "if call.op.get_attr": 'if call.op.name.startswith("random") or call.op.get_attr'
        },
        "whatever does not depend on an input counts as a constant": {
            "isinstance(expression, relay.Constant)": "not relay.analysis.free_vars(expression)"
        },
        "no call counts as foldable": {
            "return all(is_constant(argument) for argument in call.args)": "return False"
        },
    },
    "q3": {
        "foldable is asked about the old call, whose arguments have not been folded": {
            "call = super().visit_call(call)\n": "new = super().visit_call(call)\n",
            "foldable(call) else call": "foldable(call) else new",
        },
        "no call is folded": {"evaluate(call) if foldable(call) else call": "call"},
        "fields of tuples that are written in the program are not taken out": {
            "if isinstance(whole, relay.Tuple):": "if False:"
        },
        "the first field of a tuple is taken, whichever is asked for": {
            "whole.fields[field.index]": "whole.fields[0]"
        },
        "the last field of a tuple is taken, whichever is asked for": {
            "whole.fields[field.index]": "whole.fields[-1]"
        },
        "the arguments alone decide, not the rule of question 2": {
            "foldable(call) else": "all(isinstance(a, relay.Constant) for a in call.args) else"
        },
        "what is inside of a tuple is not folded before a field is taken out": {
            "self.visit(field.tuple_value)": "field.tuple_value"
        },
    },
    "q4": {
        "lets of values that are no constants are left out, too": {
            "if isinstance(value, relay.Constant):": "if True:"
        },
        "no let is left out": {"if isinstance(value, relay.Constant):": "if False:"},
        "the let is left out, and its variable stays where it was used": {
            "self.memo_map[let.var] = value\n": "pass\n"
        },
        "the constant takes the place of the variable, and the let stays": {
            "return self.visit(let.body)": "return relay.Let(let.var, value, self.visit(let.body))"
        },
        "the value of a let is not rewritten before it is looked at": {
            "value = self.visit(let.value)": "value = let.value"
        },
        "the first branch is taken, whatever the condition is": {
            "branch.true_branch if taken else branch.false_branch": "branch.true_branch"
        },
        "the branch that is not taken stays": {"bool(condition": "not bool(condition"},
        "ifs whose condition is no constant are decided, too": {
            "if isinstance(condition, relay.Constant):": "if True:",
            "bool(condition.data.numpy())": "getattr(condition, 'data', None) is None or False",
        },
        "no if is decided": {"if isinstance(condition, relay.Constant):": "if False:"},
        "the branch that is taken is not rewritten": {
            "self.visit(branch.true_branch if": "(branch.true_branch if",
        },
    },
    "q5": {
        "calls are folded whatever the limit is": {
            "return result if after <= before + limit else call": "return result"
        },
        "a call whose growth is exactly the limit is not folded": {
            "return result if after <= before + limit": "return result if after < before + limit"
        },
        "the limit is compared with the bytes of the result, not with the growth": {
            "after <= before + limit))": "after <= limit))",
            "result if after <= before + limit": "result if after <= limit",
        },
        "a call is refused because of the growth of other calls": {
            "result if after <= before": "result if sum(row[2] - row[1] for row in ledger) <= 0"
        },
        "calls that are not folded are missing in the ledger": {
            "ledger.append((": "after <= before + limit and ledger.append(("
        },
        "calls that are not foldable are in the ledger, too": {
            "return call\n": "return ledger.append((call.op.name, 0, 0, False)) or call\n"
        },
        "a constant that is used twice in a call is counted twice": {
            "constant_bytes(call.args), ": "sum(constant_bytes([a]) for a in call.args), "
        },
        "bytes before and after are exchanged in the ledger": {
            "call.op.name, before, after,": "call.op.name, after, before,"
        },
        "nothing is folded, whatever the ledger says": {
            "return result if after <= before + limit else call": "return call"
        },
    },
    "q6": {
        "epsilon is missing": {" + epsilon": ""},
        "the square root of the variance is missing": {"np.sqrt(var + epsilon)": "(var + epsilon)"},
        "gamma is missing": {"gamma /": "1 /"},
        "the old bias is added without the scale": {"(b - mean) * scale": "b - mean * scale"},
        "the old bias is missing": {"(b - mean)": "-mean"},
        "beta is missing": {" * scale + beta": " * scale"},
        "the scale is applied to the input channels, not to the output channels": {
            "scale.reshape(-1, 1, 1, 1)": "np.resize(scale, 4).reshape(1, -1, 1, 1)"
        },
        "the bias has one axis too many": {"* scale + beta": "* scale.reshape(-1, 1) + beta"},
    },
    "q7": {
        "what needs a folded name is not folded": {
            '"const"\n}': (
                "\"const\" and all(own_graph[a][0] == 'const' for a in own_graph[name][1:])\n}"
            )
        },
        "an operator without arguments is a constant": {
            "fold_graph(own_graph)": "fold_graph({**own_graph, 'z': ('const', 0.0)})"
        },
        "the constants that are given are folded, too": {'own_graph[name][0] != "const" and ': ""},
        "the input counts as a constant 0": {
            "fold_graph(own_graph)": "fold_graph({**own_graph, 'x': ('const', 0.0)})"
        },
        "the nodes are given, not their values": {"name: node[1]": "name: node"},
        "beta is forgotten": {
            '[own_norm[name]]) for name in ("b"': (
                '[own_norm[name] * (name != "beta")]) for name in ("b"'
            )
        },
        "the old bias is not scaled": {
            '[own_norm[name]]) for name in ("b"': (
                '[own_norm[name] / (own_norm["gamma"] / np.sqrt(own_norm["var"] + 1) '
                'if name == "b" else 1)]) for name in ("b"'
            )
        },
        "the variance is taken for the standard deviation": {
            '[own_norm[name]]) for name in ("b"': (
                '[own_norm[name] if name != "var" else (own_norm[name] + 1) ** 2 - 1]) '
                'for name in ("b"'
            )
        },
        "the new bias is missing": {
            '        own_norm["epsilon"],\n    )\n]': '        own_norm["epsilon"],\n    )\n][:1]'
        },
    },
}

# Question -> a right answer of another kind.
OTHERS: dict[str, str] = {
    "q1": """
def fold_graph(graph):
    known = {name: node[1] for name, node in graph.items() if node[0] == "const"}
    changed = True
    while changed:
        changed = False
        for name, (op, *args) in graph.items():
            if name not in known and op != "input" and args and set(args) <= known.keys():
                known[name] = COMPUTE[op](*map(known.get, args))
                changed = True
    return {name: ("const", known[name]) if name in known else graph[name] for name in graph}
""",
    "q3": """
def fold_calls(function):
    done = {}
    def fold(node):
        if node not in done:
            if isinstance(node, relay.Call):
                new = relay.Call(fold(node.op), [fold(a) for a in node.args], node.attrs)
                done[node] = evaluate(new) if foldable(new) else new
            elif isinstance(node, relay.Tuple):
                done[node] = relay.Tuple([fold(field) for field in node.fields])
            elif isinstance(node, relay.TupleGetItem):
                whole = fold(node.tuple_value)
                if isinstance(whole, relay.Tuple):
                    done[node] = whole.fields[node.index]
                else:
                    done[node] = relay.TupleGetItem(whole, node.index)
            elif isinstance(node, relay.If):
                done[node] = relay.If(*map(fold, (node.cond, node.true_branch, node.false_branch)))
            elif isinstance(node, relay.Let):
                done[node] = relay.Let(node.var, fold(node.value), fold(node.body))
            else:
                done[node] = node
        return done[node]
    return relay.Function(function.params, fold(function.body))
""",
    "q4": """
def fold_bindings(function):
    class Binder(relay.ExprMutator):
        known = {}
        def visit_var(self, var):
            return self.known.get(var, var)
        def visit_let(self, let):
            value = self.visit(let.value)
            if isinstance(value, relay.Constant):
                self.known = {**self.known, let.var: value}
                return self.visit(let.body)
            return relay.Let(let.var, value, self.visit(let.body))
        def visit_if(self, branch):
            new = super().visit_if(branch)
            if not isinstance(new.cond, relay.Constant):
                return new
            return new.true_branch if new.cond.data.numpy().item() else new.false_branch
    return Binder().visit(function)
""",
}


# --- hidden checks -------------------------------------------------------------------------------


def toys(random: Generator) -> dict[str, Any]:
    """Toy graphs as [name, [operator, arguments ...]] in order."""
    edges: list[Any] = [
        [],
        [["x", ["input"]]],
        [["c", ["const", 0]], ["z", ["zero"]], ["y", ["mul", "c", "c"]], ["u", ["neg", "z"]]],
        [
            ["a", ["const", 2.5]],
            *([f"n{k}", ["neg", f"n{k - 1}" if k else "a"]] for k in range(300)),
        ],
    ]
    for _ in range(8):
        graph: list[Any] = [["c", ["const", float(random.choice([-1, 2, 3]))]], ["x", ["input"]]]
        for name in random.permutation(list("abdefghij"))[: int(random.integers(4, 9))]:
            before = [node for node, _ in graph]
            op = str(random.choice(["add", "mul", "neg", "neg", "zero", "const", "input"]))
            count = {"add": 2, "mul": 2, "neg": 1}.get(op, 0)
            arguments = [str(a) for a in random.choice(before, size=count)]
            graph.append([str(name), [op, *([0.5] if op == "const" else arguments)]])
        edges.append(graph)
    return {"cases": edges}


def asked_calls(random: Generator) -> dict[str, Any]:
    """Calls as Python texts, in the names `c` (a constant), `v` (an input) and `key`."""
    edges = [
        "relay.shape_of(v)",
        "relay.shape_of(c)",
        "relay.ones((2,), 'float32')",
        "relay.stack([c, relay.ones((2,), 'float32')], axis=0)",
        "relay.Call(relay.Function([], relay.exp(c)), [])",
        "relay.Call(relay.Function([v], relay.exp(v)), [c])",
        "relay.nn.dropout(c).tuple_value",
        "relay.nn.dropout(v).tuple_value",
        "relay.split(c, 2).tuple_value",
        "relay.random.uniform(key, (3,))",
        "relay.random.normal(key, (3,))",
        "relay.exp(relay.zeros((2,), 'float32'))",
        "relay.tanh(relay.nn.dropout(c))",
        "relay.qnn.op.dequantize(const([1, 2], 'int8'), const(0.5), const(0, 'int32'))",
        "relay.concatenate(relay.Tuple([c]), axis=0)",
    ]
    drawn = []
    for _ in range(20):
        operands = [str(o) for o in random.choice(["c", "c", "v"], size=3)]
        name = str(random.choice(["add", "multiply", "where", "concatenate", "stack", "tanh"]))
        if name in ("concatenate", "stack"):
            drawn.append(f"relay.{name}([{', '.join(operands)}], axis=0)")
        else:
            count = {"add": 2, "multiply": 2, "where": 3}.get(name, 1)
            drawn.append(f"relay.{name}({', '.join(operands[:count])})")
    return {"texts": [*edges, *(str(text) for text in random.permutation(drawn))]}


INPUT = "%x: Tensor[(2), float32]"


def text(random: Generator, *, lets: bool = False) -> str:
    """A program of scalars and %x with much to fold: sums, fields of tuples; or lets and ifs."""
    lines: list[str] = []
    values = ["%x", "2f", "3f", "0.5f"]

    def line(what: str) -> str:
        number = len(lines)
        lines.append(f"let %v{number} = {what};" if lets else f"%{number} = {what};")
        return f"%v{number}" if lets else f"%{number}"

    for _ in range(int(random.integers(4, 10))):
        recent = values[-6:]
        a, b = (recent[int(k)] for k in random.integers(len(recent), size=2))
        kind = str(random.choice(["add", "maximum", "tanh", "pair", "same" if lets else "add"]))
        if lets and random.random() < 0.3:
            condition = str(random.choice(["True", "False", "%flag"]))
            values.append(line(f"if ({condition}) {{ tanh(%x) }} else {{ negative(%x) }}"))
        elif kind == "pair" and not lets:
            whole = line(f"({a}, {b})")
            values.append(line(f"{whole}.{random.integers(2)}"))
        elif kind == "same" or (lets and random.random() < 0.3):
            values.append(line(a))
        else:
            values.append(line(f"tanh({a})" if kind == "tanh" else f"add({a}, {b})"))
    flag = ", %flag: bool" if lets else ""
    return f"fn ({INPUT}{flag}) {{ {' '.join(lines)} multiply(%x, {values[-1]}) }}"


def to_fold(random: Generator) -> dict[str, Any]:
    """Programs in graph form."""
    edges = [
        f"fn ({INPUT}) {{ %x }}",
        "fn () { tanh(exp(add(1f, 2f))) }",
        f"fn ({INPUT}) {{ %0 = (exp(%x), add(1f, 2f), %x); %1 = (%0.1, %0); %1.0 }}",
        f"fn ({INPUT}) {{ %0 = (tanh(2f), %x); %1 = (%0, 1f); %2 = %1.0; add(%2.0, %2.1) }}",
        f'fn ({INPUT}) {{ %0 = shape_of(%x, dtype="int32"); add(cast(%0, dtype="float32"), 1f) }}',
        f'fn ({INPUT}) {{ %0 = zeros(shape=[2], dtype="float32"); add(exp(%0), exp(1f)) }}',
        f"fn ({INPUT}) {{ %0 = nn.dropout(exp(1f), rate=0.5f); (%0.0, %0.1) }}",
        "fn () { %0 = broadcast_to(1.5f, shape=[4]); %1 = split(%0, indices_or_sections=2); %1.1 }",
    ]
    return {"texts": [*edges, *(text(random) for _ in range(8))]}


def to_bind(random: Generator) -> dict[str, Any]:
    """Programs with lets and ifs."""
    head = f"fn ({INPUT}, %flag: bool)"
    edges = [
        f"{head} {{ let %a = 3f; let %b = %a; let %c = %b; add(%x, %c) }}",
        f"{head} {{ let %a = add(1f, 2f); add(%x, %a) }}",
        f"{head} {{ let %a = %x; let %b = 2f; multiply(%a, %b) }}",
        f"{head} {{ let %a = if (True) {{ let %b = 2f; %b }} else {{ 3f }}; add(%x, %a) }}",
        f"{head} {{ let %a = 1f; %x }}",
        f"{head} {{ let %c = False; if (%c) {{ exp(%x) }} else {{ let %d = 2f; add(%x, %d) }} }}",
        f"{head} {{ if (%flag) {{ let %a = 2f; add(%x, %a) }} else {{ if (True) {{ %x }} else "
        "{ exp(%x) } } }",
        f"{head} {{ if (True) {{ if (False) {{ %x }} else {{ tanh(%x) }} }} else {{ exp(%x) }} }}",
        f"{head} {{ if (logical_not(True)) {{ %x }} else {{ tanh(%x) }} }}",
    ]
    return {"texts": [*edges, *(text(random, lets=True) for _ in range(8))]}


def with_limits(random: Generator) -> dict[str, Any]:
    """Programs that grow when folded, and limits: the growth itself, one less, none, others."""
    rows, columns = random.integers(3, 30, size=2).tolist()
    growth = 4 * rows * columns - 4
    wide = f"broadcast_to(1.5f, shape=[{rows}, {columns}])"
    programs = [
        f"fn () {{ {wide} }}",
        f"fn () {{ sum({wide}) }}",
        f"fn ({INPUT}) {{ %0 = {wide}; %1 = exp(%0); %2 = add(%1, %0); (%2, exp(%x), exp(2f)) }}",
        f"fn () {{ %0 = {wide}; %1 = tanh(3f); %2 = broadcast_to(%1, shape=[8]); add(%2, %2) }}",
        "fn () { %0 = broadcast_to(2f, shape=[6]); concatenate((%0, %0)) }",
        f"fn () {{ %0 = nn.dropout({wide}, rate=0.5f); %0.0 }}",
        "fn () { %0 = broadcast_to(2f, shape=[6]); %1 = split(%0, indices_or_sections=3); %1.0 }",
    ]
    limits = [growth, growth - 1, 0, 20, int(random.integers(21, 99)), 10**9]
    return {"texts": programs, "limits": limits}


def blocks(*shapes: tuple[int, int, int, int]) -> Callable[[Generator], dict[str, Any]]:
    """Weights of these shapes, a bias, parameters of a batch normalisation, an epsilon."""

    def draw(random: Generator) -> dict[str, Any]:
        cases = []
        for k, shape in enumerate(shapes):
            gamma, beta, mean, bias = random.normal(size=(4, shape[0])).round(3).tolist()
            variance = random.uniform(0.1, 3, size=shape[0]).round(3).tolist()
            weights = random.normal(size=shape).round(3).tolist()
            epsilon = 0 if k == 1 else float(random.uniform(0.001, 0.5))
            cases.append([weights, bias, gamma, beta, mean, variance, epsilon])
        return {"cases": cases}

    return draw


def drawn_from(*operators: str) -> Callable[[Generator], dict[str, Any]]:
    """Options of random programs, in an order of their own for each secret."""

    def draw(random: Generator) -> dict[str, Any]:
        shapes = [[2], [], [1], [3], [2, 3], [1, 3]]
        return {
            "operators": [str(name) for name in random.permutation(operators)],
            "shapes": [shapes[k] for k in random.permutation(len(shapes))],
        }

    return draw


EXAMPLES = 40
GRAPHS = {"examples": EXAMPLES}
BINDINGS = {"examples": EXAMPLES, "lets": True, "branches": True}


def random_programs(options: dict[str, Any]) -> str:
    """The text that gives random programs with these options, as modules."""
    return (
        "(lambda found: (programs.counterexample(lambda m: found.append(m) or m, "
        f"operators=operators, shapes=[tuple(s) for s in shapes], **{options}), found)[1])([])"
    )


def modules_of(operators: list[str], shapes: list[list[int]], options: dict[str, Any]) -> list[Any]:
    """The same programs here."""
    found: list[Any] = []
    programs.counterexample(
        lambda module: found.append(module) or module,
        operators=operators,
        shapes=[tuple(shape) for shape in shapes],
        **options,
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
    kinds = [parameter.checked_type for parameter in before["main"].params]
    inputs = [
        programs.entries(tuple(int(size) for size in kind.shape), 3 * k).astype(str(kind.dtype))
        for k, kind in enumerate(kinds)
    ]
    pairs = zip(programs.evaluate(before, inputs), programs.evaluate(typed, inputs), strict=True)
    if not all(np.allclose(a, b, rtol=1e-3, atol=1e-3, equal_nan=True) for a, b in pairs):
        return "a program computes other values after it"
    return ""


def compared(options: dict[str, Any], name: str) -> Callable[..., str]:
    """A check of what a pass makes of random programs: types, values, operators and lets left."""

    def verify(value: Any, operators: list[str], shapes: list[list[int]], lab: Any) -> str:
        for before, after in zip(modules_of(operators, shapes, options), value, strict=True):
            if says := broken(before, after):
                return says
            if lab.left_of(after) != lab.left_of(getattr(lab, name)(before["main"])):
                return "a program has other numbers of operators or lets after it"
        return ""

    return verify


OPERATORS = ("negative", "exp", "add", "multiply", "sum", "reshape", "concatenate", "split")
LEFT = "[[n.op for n in ir.graph(f).calls], constants(f)]"

HIDDEN = {
    "q1": [
        Hidden(
            "graphs of up to 300 names: what is made of each, and the graph that was given",
            probe=(
                "[[list(fold_graph(given).items()), list(given.items())] for case in cases "
                "for given in [{name: tuple(node) for name, node in case}]]"
            ),
            draw=toys,
        ),
        Hidden(
            "the result is another dictionary than the one that was given",
            probe=(
                "[fold_graph(given) is given for case in cases "
                "for given in [{name: tuple(node) for name, node in case}]]"
            ),
            draw=toys,
            weight=0.5,
        ),
    ],
    "q2": [
        Hidden(
            "calls of many operators and of functions, with constants and inputs",
            probe=(
                "[foldable(eval(text, {'relay': relay, 'const': const, 'c': const([1, 2]), "
                "'v': relay.var('v', shape=(2,)), 'key': relay.random.threefry_key(3)}))"
                " for text in texts]"
            ),
            draw=asked_calls,
        ),
    ],
    "q3": [
        Hidden(
            "chains, tuples and their fields: the operators and the constants left",
            probe=f"[{LEFT} for text in texts for f in [fold_calls(relay.parse_expr(text))]]",
            draw=to_fold,
        ),
        Hidden(
            "a convolution with a batch normalisation, written as simpler operators",
            probe=(
                f"[{LEFT} for size in sizes for f in [fold_calls(passes.run(block("
                "*random_block(size, 1, seed)), 'SimplifyInference')['main'])]]"
            ),
            draw=lambda random: {
                "sizes": [1, int(random.integers(2, 9))],
                "seed": int(random.integers(100, 10**6)),
            },
            rtol=1e-4,
            weight=0.5,
        ),
        Hidden(
            f"{EXAMPLES} random programs: values, types and the number of operators",
            probe=f"[fold_calls(m['main']) for m in {random_programs(GRAPHS)}]",
            draw=drawn_from(*OPERATORS, "zeros", "nn.dropout", "shape_of"),
            verify=compared(GRAPHS, "fold_calls"),
        ),
    ],
    "q4": [
        Hidden(
            "lets and ifs, some inside of others: what is left, and the values",
            probe=(
                "[[left_of(f), 'if (' in ir.text(f), programs.evaluate(f, {'x': [0.5, -2.0], "
                "'flag': flag})] for text in texts for f in [fold_bindings(relay.parse_expr(text))]"
                " for flag in (True, False)]"
            ),
            draw=to_bind,
        ),
        Hidden(
            f"{EXAMPLES} random programs: values, types, and the operators and lets left",
            probe=f"[fold_bindings(m['main']) for m in {random_programs(BINDINGS)}]",
            draw=drawn_from(*OPERATORS, "zeros"),
            verify=compared(BINDINGS, "fold_bindings"),
        ),
    ],
    "q5": [
        Hidden(
            "programs that grow, each with several limits: the ledger, and the operators left",
            probe=(
                "[[ledger, [n.op for n in ir.graph(f).calls]] for text in texts for limit in limits"
                " for f, ledger in [fold_within(relay.parse_expr(text), limit)]]"
            ),
            draw=with_limits,
        ),
        Hidden(
            "the network for face landmarks, with a limit drawn at random",
            probe="tried(fold_within, landmark, limit)",
            draw=lambda random: {"limit": int(random.integers(1, 30)) * 1000},
        ),
    ],
    "q6": [
        Hidden(
            f"convolutions with {kind}: weights, bias, and the arrays that were given",
            probe=(
                "[[*fold_batch_norm(*arrays, epsilon), *arrays] for *lists, epsilon in cases "
                "for arrays in [[np.array(values) for values in lists]]]"
            ),
            draw=blocks(*shapes),
        )
        for kind, shapes in (
            ("four channels", ((4, 4, 1, 1), (4, 4, 3, 3))),
            ("any number of channels", ((1, 1, 1, 1), (3, 2, 1, 5), (6, 1, 3, 3), (2, 5, 1, 1))),
        )
    ],
    "q7": [
        Hidden(
            "what is folded of your program",
            probe="sorted([name, value] for name, value in own_values.items())",
            rtol=1e-3,
            own=True,
        ),
        Hidden("your batch normalisation", probe="list(own_folded)", rtol=1e-3, own=True),
    ],
}

# Answers that the public checks may accept and that do not do what is asked.
CHEATS: dict[str, dict[str, str]] = {
    "q2": {
        "it asks FoldConstant": """def foldable(call):
    return passes.counts(passes.run(call, "FoldConstant")).operators == 0
""",
    },
    "q3": {
        "it calls FoldConstant": """def fold_calls(function):
    return passes.run(function, "FoldConstant")["main"]
""",
    },
    "q4": {
        "it calls FoldConstant": """def fold_bindings(function):
    return passes.run(function, "FoldConstant")["main"]
""",
    },
}
