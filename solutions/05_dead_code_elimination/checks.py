"""Lab 05: wrong answers that the checks must refuse, other right ones, and the hidden checks."""

from typing import Any

import numpy as np
from numpy.random import Generator

from helpers import programs
from helpers.errors import WorkbookError
from helpers.grading.hidden import Hidden

# Question -> what is wrong with the answer -> which of its texts are replaced by what.
WRONG: dict[str, dict[str, dict[str, str]]] = {
    "q1": {
        "the walk stops after one step back from an output": {
            "waiting += sources[v]": "waiting += sources[v] if v == output else []"
        },
        "an output does not count as needed by itself": {
            "    return needs": "        needs[output] = set()\n    return needs"
        },
        "all vertices share one and the same set": {
            "{v: set() for v in sources}": "dict.fromkeys(sources, set())"
        },
        "only the first output is walked back from": {
            "for output in outputs": "for output in outputs[:1]"
        },
        "a vertex that one output has met is not looked at for the next output": {
            "if output not in needs[v]": "if not needs[v]",
        },
        "a vertex is looked at once for each path that leads to it": {
            "if output not in needs[v]": "if True"
        },
        "the walk goes from an output to what is computed from it": {
            "waiting += sources[v]": "waiting += [u for u in sources if v in sources[u]]"
        },
        "a vertex that no output needs is missing in the result": {
            "return needs": "return {v: found for v, found in needs.items() if found}"
        },
    },
    "q2": {
        "the place behind `let`, where a variable gets its value, counts as a use": {
            "bound.append(e.var)": "bound.append(e.var)\n            used[e.var] += 1"
        },
        "an expression that uses a variable twice counts as one use": {
            "used.update(c": "used.update({c",
            "relay.Var))": "relay.Var)})",
        },
        "a variable directly behind the last let, as a result, does not count": {
            "relay.Var))": "relay.Var) and not isinstance(e, relay.Let))"
        },
        "only arguments of calls count as uses": {"in children(e)": "in getattr(e, 'args', [])"},
        "calling a variable does not count as a use of it": {
            "relay.Var))": "relay.Var) and c != getattr(e, 'op', None))"
        },
        "a variable that is never used is missing in the result": {
            "for variable in bound}": "for variable in bound if used[variable]}"
        },
        "the parameters of the function are counted, too": {
            "for variable in bound}": "for variable in [*bound, *function.params]}"
        },
    },
    "q3": {
        "there is one round only, and what becomes unused in it stays": {
            "    return function": "        return function\n    return function"
        },
        "there is one round only, and lets inside of the value of a let are not looked at": {
            "    return function": "        return function\n    return function",
            "return super().visit_let(let)": (
                "return relay.Let(let.var, let.value, self.visit(let.body))"
            ),
        },
        "a let that is used once is removed as well": {
            "counts[let.var] == 0": "counts[let.var] <= 1",
            "while 0 in (": "while {0, 1} & {*(",
            ".values():": ".values()}:",
        },
        "as soon as one let is unused, all lets are removed": {"counts[let.var] == 0": "True"},
        "no let is removed": {"while 0 in": "while None in"},
    },
    "q4": {
        "reading a reference counts as pure": {"(relay.RefRead, relay.RefWrite)": "relay.RefWrite"},
        "writing a reference counts as pure": {"(relay.RefRead, relay.RefWrite)": "relay.RefRead"},
        "making a function counts as running its body": {
            "if isinstance(e, relay.Function):\n        return True": "if False:\n        pass"
        },
        "a call of a function that stands in its place is pure whatever its body does": {
            " or not is_pure(e.op.body)": ""
        },
        "a call of a function that stands in its place is never pure": {
            "not isinstance(e.op, relay.Function) or": "True or"
        },
        "a call of a variable counts as pure": {
            "not isinstance(e.op, relay.Function) or not is_pure(e.op.body)": (
                "isinstance(e.op, relay.Function) and not is_pure(e.op.body)"
            )
        },
        "stateful operators count as pure": {"if is_stateful(e.op)": "if False"},
        "whatever has children counts as impure": {
            "all(is_pure(c) for c in children(e))": "not children(e)"
        },
        "the children of an expression are not looked at": {
            "all(is_pure(c) for c in children(e))": "True"
        },
        "one pure child is taken to be enough": {
            "all(is_pure(c) for c": "not children(e) or any(is_pure(c) for c"
        },
        "making a reference counts as pure whatever value is stored in it": {
            "isinstance(e, relay.Function)": "isinstance(e, (relay.Function, relay.RefCreate))"
        },
        "making a reference counts as impure": {
            "(relay.RefRead, relay.RefWrite)": "(relay.RefRead, relay.RefWrite, relay.RefCreate)"
        },
        "what is inside of a let is not looked at": {
            "in children(e))": "in children(e) if not isinstance(e, relay.Let))"
        },
        "the condition and the branches of an if are not looked at": {
            "in children(e))": "in children(e) if not isinstance(e, relay.If))"
        },
        "the arguments of a call are not looked at": {
            "in children(e))": "in children(e) if not isinstance(e, relay.Call))"
        },
    },
    "q5": {
        "an unused let is removed although its value is not pure": {"is_pure(let.value) and ": ""},
        "a let with a pure value is removed although its variable is used": {
            " and let.var not in relay.analysis.free_vars(body)": ""
        },
        "uses are looked for in the body as it was before dead lets were removed from it": {
            "free_vars(body)": "free_vars(let.body)"
        },
        "lets inside of the value of a let are not looked at": {
            "self.visit(let.value)": "let.value"
        },
        "whether a variable is used makes no difference": {
            "let.var not in relay.analysis.free_vars(body)": "True"
        },
        "an effect inside of the value of a let, or a read of a reference, is overlooked": {
            "is_pure(let.value)": "not isinstance(let.value, relay.RefWrite)"
        },
    },
    "q6": {
        "the order of operands matters for every operator": {
            "operands = frozenset(operands)": "pass"
        },
        "the order of operands matters for no operator": {" and value.op.name in COMMUTATIVE": ""},
        "calls of one operator with different attributes count as equal": {
            "kind(value)": "getattr(getattr(value, 'op', 0), 'name', kind(value))"
        },
        "a value is compared before the replaced variables in it are exchanged": {
            "value = relay.bind(value, same)": "pass"
        },
        "the result of the function is still a variable that was replaced": {
            "relay.bind(result, same)": "result"
        },
        "values that are not pure are shared": {" and is_pure(value)": ""},
        "values of one kind count as equal whatever their operands are": {
            "(kind(value), operands)": "kind(value)"
        },
        "all constants count as equal": {
            "kind(value)": "isinstance(value, relay.Constant) or kind(value)"
        },
        "constants are never shared": {
            "and is_pure(value)": "and is_pure(value) and not isinstance(value, relay.Constant)"
        },
        "no value is shared": {"if description in first": "if False"},
    },
    "q7": {
        "the result of the program is no use": {
            "variable.name_hint): count for": (
                "variable.name_hint): count - (own_result == f'%{variable.name_hint}') for"
            )
        },
        "a variable that stands twice in one call has one use there": {
            "variable.name_hint): count for": (
                "variable.name_hint): sum(f'%{variable.name_hint}' in text "
                "for text in [*own_lets.values(), own_result]) for"
            )
        },
        "a variable that is not used is left out": {
            'uses(own["main"]).items()}': 'uses(own["main"]).items() if count}'
        },
        "it is given who uses a variable, not how often": {
            "variable.name_hint): count for": (
                "variable.name_hint): [n for n, text in own_lets.items() "
                "if f'%{variable.name_hint}' in text] for"
            )
        },
        "an unused let goes, whatever its value does": {"left(remove_dead,": "left(eliminate,"},
        "a read that nothing uses may go": {
            'left(remove_dead, f"{own_text} {own_result}", "float32")': (
                "[name for name in left(remove_dead, f'{own_text} {own_result}', 'float32') "
                "if own_uses[name] or 'read' not in own_lets[name]]"
            )
        },
        "one round is made: what only a removed let uses stays": {
            'left(remove_dead, f"{own_text} {own_result}", "float32")': (
                "[name for name, text in own_lets.items() if own_uses[name] or 'ref_' in text]"
            )
        },
        "making a reference is an effect": {
            'left(remove_dead, f"{own_text} {own_result}", "float32")': (
                "sorted({*left(remove_dead, f'{own_text} {own_result}', 'float32'), "
                "*(name for name, text in own_lets.items() if text.startswith('ref('))})"
            )
        },
        "the lets are given with their values": {
            'left(remove_dead, f"{own_text} {own_result}", "float32")': (
                "[f'%{name} = {own_lets[name]}' "
                "for name in left(remove_dead, f'{own_text} {own_result}', 'float32')]"
            )
        },
    },
}

# Question -> a right answer of another kind.
OTHERS: dict[str, str] = {
    "q1": """
def needed_by(sources, outputs):
    needs = {v: {v} & set(outputs) for v in sources}
    changed = True
    while changed:
        before = {v: len(found) for v, found in needs.items()}
        for v, inputs in sources.items():
            for source in inputs:
                needs[source] |= needs[v]
        changed = before != {v: len(found) for v, found in needs.items()}
    return needs
""",
    "q3": """
def eliminate(function):
    class Remover(relay.ExprMutator):
        def visit_let(self, let):
            body = self.visit(let.body)
            if let.var in relay.analysis.free_vars(body):
                return relay.Let(let.var, self.visit(let.value), body)
            return body
    return Remover().visit(function)
""",
    "q5": """
def remove_dead(function):
    class Remover(relay.ExprMutator):
        def visit_let(self, let):
            if let.var in dead:
                return self.visit(let.body)
            return super().visit_let(let)
    while True:
        pure = set()
        def visit(e):
            if isinstance(e, relay.Let) and is_pure(e.value):
                pure.add(e.var)
        relay.analysis.post_order_visit(function, visit)
        dead = {v for v, count in uses(function).items() if count == 0 and v in pure}
        if not dead:
            return function
        function = Remover().visit(function)
""",
}


# --- hidden checks -------------------------------------------------------------------------------


def drawn_graph(random: Generator) -> list[Any]:
    """[[vertex, sources] ..., outputs] in an order of its own; sources are computed before."""
    names = [str(name) for name in random.permutation(list("abcdefghijklmnopqrstuvwxyz"))]
    names = names[: int(random.integers(4, 20))]
    graph = []
    for k, name in enumerate(names):
        count = int(random.integers(min(k, 3) + 1))
        graph.append([name, [names[int(i)] for i in random.integers(k, size=count)] if k else []])
    outputs = [names[-1 - int(i)] for i in random.permutation(4)[: int(random.integers(1, 4))]]
    return [[graph[int(i)] for i in random.permutation(len(graph))], outputs]


def graphs(random: Generator) -> dict[str, Any]:
    """Graphs with outputs: edge cases, then drawn ones."""
    edges: list[Any] = [
        [[["x", []]], []],
        [[["x", []]], ["x"]],
        [[["x", []], ["y", ["x", "x"]]], ["y", "y"]],
        [[["y", ["x"]], ["z", ["y"]], ["x", []]], ["z", "y", "x"]],
        [[[3, [1, 2]], [1, []], [2, [1]], [0, [3]], [7, []]], [2, 0]],
        [[["a", []], ["b", []], ["c", ["a"]], ["d", ["b"]]], ["c", "d"]],
    ]
    return {"cases": [*edges, *(drawn_graph(random) for _ in range(12))]}


def ladders(random: Generator) -> dict[str, Any]:
    """Graphs whose vertices are reached on up to 2 ** 90 paths: [number, two sources] each."""
    cases = []
    for steps in (60, int(random.integers(70, 91))):
        graph: list[Any] = [[0, []]]
        graph += [[k, [k - 1, int(random.integers(max(k - 3, 0), k))]] for k in range(1, steps)]
        cases.append([graph, [steps - 1, steps - 2, steps // 2]])
    return {"cases": cases}


class Texts:
    """Draws bodies of programs that compute a float32 from %x, with lets in lets and branches."""

    def __init__(self, random: Generator, kinds: list[str]) -> None:
        self.random, self.kinds, self.count = random, kinds, 0

    def block(self, values: list[str], places: list[str], deep: int = 0) -> str:
        """Lets and a result; ``values`` and ``places`` (references) may be used."""
        values, places, lines = list(values), list(places), ""
        for _ in range(int(self.random.integers(3 if deep else 5, 5 if deep else 12))):
            name = f"%v{self.count}"
            self.count += 1
            bound, kind = self.value(values, places, deep)
            if kind in ("tensor", "place"):
                (values if kind == "tensor" else places).append(name)
            lines += f"let {name} = {bound}; "
        return lines + self.one(values)

    def one(self, names: list[str]) -> str:
        """One of these names, most often one of the newest."""
        return names[-min(int(self.random.geometric(0.4)), len(names))]

    def value(self, values: list[str], places: list[str], deep: int) -> tuple[str, str]:
        """What a let binds, and what it is."""
        kind, a, b = str(self.random.choice(self.kinds)), self.one(values), self.one(values)
        if kind == "scope" and deep < 2:
            return f"({self.block(values, places, deep + 1)})", "tensor"
        if kind == "if" and deep < 2:
            yes, no = (self.block(values, places, deep + 1) for _ in range(2))
            return f"if (less({a}, {b})) {{ {yes} }} else {{ {no} }}", "tensor"
        if kind == "function" and deep < 2:
            return f"fn () {{ {self.block(values, places, deep + 1)} }}", "function"
        if kind == "call" and deep < 2:
            return f"(fn () {{ {self.block(values, places, deep + 1)} }})()", "tensor"
        if kind == "ref":
            return f"ref({a})", "place"
        if kind in ("read", "write") and places:
            place = self.one(places)
            read = kind == "read"
            return (f"ref_read({place})", "tensor") if read else (f"ref_write({place}, {a})", "")
        if kind == "pair":
            return f"(({a}, {b}), {a}).0", "pair"
        return (f"tanh({a})" if kind == "tanh" else f"maximum({a}, {b})"), "tensor"


PURE = ["tanh", "tanh", "add", "add", "scope", "if", "pair"]
EFFECTS = [*PURE, "ref", "read", "read", "write", "write", "function", "call"]
G = "def @g(%z: float32) -> float32 { let %a = exp(%z); %z }"

TO_COUNT = [
    "%x",
    "let %a = %x; %a",
    "let %a = exp(%x); let %b = %a; let %c = %b; %x",
    "let %b = (let %a = exp(%x); %a); let %a = tanh(%b); add(%a, %a)",
    "let %a = exp(%x); %0 = add(%a, %a); multiply(%0, %0)",
    "let %a = exp(%x); let %t = (%a, (%a, %x)); %t.0",
    "let %a = exp(%x); let %t = (%a, %a); let %u = %t.1; add(%u, %a)",
    "let %a = exp(%x); let %r = ref(%a); let %u = ref_write(%r, %a); ref_read(%r)",
    "let %f = fn (%y: float32) -> float32 { %f(%y) }; %x",
    "let %a = exp(%x); let %f = fn (%y: float32) -> float32 { add(%y, %a) }; %f(%a)",
    "let %f = fn (%y: float32) -> float32 { %y }; let %g = (%f, %f); %x",
    "let %a = exp(%x); @g(%a)",
    "let %a = exp(%x); let %b = (fn (%y: float32) { add(%y, %a) })(%a); %x",
    "let %a = less(%x, 1f); if (%a) { let %b = exp(%x); %b } else { %x }",
]
PURE_EDGES = [
    "%x",
    "let %a = exp(%x); %a",
    "let %a = exp(%x); let %b = %a; let %c = %b; %x",
    "let %a = (let %b = (let %c = exp(%x); let %d = tanh(%c); %x); let %e = exp(%b); %b); %a",
    "let %a = exp(%x); let %b = add(%a, %a); let %c = (%b, %a); let %d = exp(%x); %d",
    "let %a = exp(%x); if (less(%x, 1f)) { let %b = tanh(%a); %x } else { %a }",
    "let %a = exp(%x); if (less(%x, 1f)) { let %b = tanh(%a); %x } else { %x }",
    "let %a = less(%x, 1f); let %b = (if (%a) { let %c = exp(%x); %x } else { %x }); %x",
    "let %f = fn () { let %a = exp(%x); let %b = exp(%x); %b }; let %c = %f; %x",
    "add(let %a = exp(%x); let %b = %a; %a, let %c = exp(%x); %x)",
    f"let %a = exp(%x); let %u = {'tanh(' * 40}%a{')' * 40}; %x",
]
EFFECT_EDGES = [
    "let %r = ref(%x); let %s = ref(%x); let %u = ref_write(%r, 2f); ref_read(%r)",
    "let %f = fn () { ref_write(ref(%x), 1f) }; %x",
    "let %r = ref(%x); let %f = fn () { ref_write(%r, 1f) }; let %u = %f(); ref_read(%r)",
    "let %r = ref(%x); let %a = (let %u = ref_write(%r, 1f); let %b = exp(%x); %b); ref_read(%r)",
    "let %r = ref(%x); let %a = (let %b = ref_read(%r); exp(%x)); %x",
    "let %r = ref(%x); let %u = (%x, (ref_write(%r, 3f), %x)); ref_read(%r)",
    "let %r = ref(%x); let %u = if (less(%x, 9f)) { let %a = ref_write(%r, 3f); %x } else { %x };"
    " ref_read(%r)",
    "let %a = nn.dropout(%x); let %b = exp(%x); %x",
    "let %r = ref(%x); let %q = ref(%r); let %u = ref_write(ref_read(%q), 4f); ref_read(%r)",
    "let %r = ref(%x); let %u = (fn () { let %a = exp(%x); ref_write(%r, %a) })(); ref_read(%r)",
    "let %r = ref(%x); let %u = (fn () { let %a = ref(%x); %a })(); ref_read(%r)",
    "let %r = ref(%x); let %b = less(ref_read(%r), 1f); let %c = if (%b) { %x } else { 1f }; %x",
    f"let %u = {'tanh(' * 40}%x{')' * 40}; %x",
    "let %f = fn (%y: float32) { %y }; let %a = %f(%x); %x",
]


def bodies(edges: list[str], kinds: list[str], count: int = 10) -> Any:
    """A draw: edge cases, then drawn bodies."""

    def draw(random: Generator) -> dict[str, Any]:
        return {"bodies": [*edges, *(Texts(random, kinds).block(["%x"], []) for _ in range(count))]}

    return draw


def values_of(random: Generator) -> dict[str, Any]:
    """Texts of values: edge cases, then ones of up to four levels around an effect or none."""
    edges = [
        "%x",
        "1f",
        "%r",
        "%f",
        "ref(%r)",
        "ref(ref_read(%r))",
        "ref(fn () { ref_write(%r, 5f) })",
        "fn () { nn.dropout(%x) }",
        "(fn () { fn () { ref_write(%r, 5f) } })()",
        "(fn () { (fn () { ref_read(%r) })() })()",
        "(fn () { nn.dropout(%x) })()",
        "(fn (%y: float32) { %y })(%x)",
        "(fn (%y: float32) { %y })(@g(%x))",
        "(ref_write(%r, 5f), %x).1",
        "(let %v = fn () { ref_write(%r, 5f) }; %v)",
        "(let %v = fn () { ref_write(%r, 5f) }; %v())",
        "(let %v = %x; ref_read(%r))",
        "if (less(ref_read(%r), 1f)) { %x } else { %x }",
        "if (True) { %x } else { ref_read(%r) }",
        "if (True) { fn () { ref_read(%r) } } else { fn () { %x } }",
        "tanh(ref_read(%r))",
        "add(%x, ref_read(%r))",
        "ref_write(%r, tanh(%x))",
        "@g(%x)",
        f"{'tanh(' * 40}%x{')' * 40}",
        f"{'tanh(' * 40}ref_read(%r){')' * 40}",
    ]
    around = [
        "tanh({})",
        "add(%x, {})",
        "add({}, %x)",
        "(%x, {}).0",
        "(let %v = {}; %v)",
        "(let %v = tanh(%x); {})",
        "if (True) {{ {} }} else {{ %x }}",
        "if (True) {{ %x }} else {{ {} }}",
        "if (less(%x, {})) {{ %x }} else {{ 1f }}",
        "(fn () {{ {} }})()",
        "(fn (%y: float32) {{ tanh(%y) }})({})",
    ]
    last = ["ref({})", "fn () {{ {} }}", "({}, %x)", "((%x, {}), %x)"]
    drawn = []
    for _ in range(40):
        text = str(random.choice(["%x", "2f", "ref_read(%r)", "@g(%x)"]))
        for _ in range(int(random.integers(4))):
            text = (
                str(random.choice(around)).format(text).replace("%v", f"%v{random.integers(999)}")
            )
        drawn.append(str(random.choice(last)).format(text) if random.random() < 0.4 else text)
    return {"texts": [*edges, *drawn]}


def differs(before: Any, after: Any, inputs: list[Any]) -> str:
    """What is wrong with a function made of a module, if it is ill-typed or has other values."""
    try:
        found = programs.evaluate(after, inputs)
    except WorkbookError:
        return "a program is no longer well-typed, or uses a variable that is not bound"
    wanted = programs.evaluate(before, inputs)
    same = [
        a.shape == b.shape and np.allclose(a, b, rtol=1e-4, atol=1e-4, equal_nan=True)
        for a, b in zip(found, wanted, strict=True)
    ]
    return "" if all(same) else "a program computes other values after it"


def removed_by(name: str) -> Any:
    """A check of the functions that a pass makes: the values, and the lets that are left."""

    def verify(value: Any, bodies: list[str], lab: Any) -> str:
        for body, after in zip(bodies, value, strict=True):
            before = lab.program(body, "float32")
            inputs = [np.float32(0.5)]
            if says := differs(before, after, inputs):
                return says
            mine = lab.lets({"main": after})
            right = lab.lets({"main": getattr(lab, name)(before["main"])})
            if mine != right:
                more = len(mine) > len(right)
                return "a let is left that may go" if more else "other lets are left"
        return ""

    return verify


PIECES = ["x", "x", "(x + c(1))", "(c(1) + x)", "(x * c(1, 2))", "(c(1, 2) * x)", "(x + c(2))"]
ONE = ["r.tanh({})", "r.sum({}, axis=[0], keepdims=True)", "r.sum({}, axis=[1], keepdims=True)"]
TWO = ["({} + {})", "({} * {})", "({} - {})", "r.maximum({}, {})"]


def expression(random: Generator, deep: int) -> str:
    """A Python text of an expression of x, constants c(...) and operators of r = relay."""
    if deep == 0 or random.random() < 0.1:
        return str(random.choice(PIECES))
    if random.random() < 0.3:
        return str(random.choice(ONE)).format(expression(random, deep - 1))
    a, b = (expression(random, deep - 1) for _ in range(2))
    return str(random.choice(TWO)).format(a, b if random.random() < 0.6 else a)


def expressions(random: Generator) -> dict[str, Any]:
    """Expressions with equal parts, and parts that are nearly equal."""
    edges = [
        "x",
        "x + x",
        "r.Tuple([x + x, x + x])",
        "r.Tuple([r.tanh(x), r.exp(x), r.tanh(x)])",
        "r.tanh(r.tanh(r.tanh(x))) + r.tanh(r.tanh(x))",
        "(x - c(1)) * (c(1) - x)",
        "(x / c(2)) + (c(2) / x)",
        "r.minimum(x, c(1)) + r.minimum(c(1), x)",
        "(x + x) * (x * x)",
        "r.Tuple([x + c(1), x + c(1, 1), x + c([1], [1])])",
        "r.Tuple([c(1), c(1, dtype='int32'), c(1, dtype='int32'), c(1)])",
        "r.Tuple([r.cast(x, 'int32'), r.cast(x, 'int8'), r.cast(x, 'int32')])",
        "r.nn.dropout(x) + r.nn.dropout(x)",
        "r.tanh(r.nn.dropout(x)) + r.tanh(r.nn.dropout(x))",
        "(lambda s: s[0] + s[1])(r.split(x, 2))",
        "r.split(x, 2)[0] + r.split(x, 2)[0] * r.split(x, 2)[1]",
        "r.concatenate([x, x], 0) + r.concatenate([x, x], 0)",
        "r.Tuple([r.concatenate([x, r.exp(x)], 0), r.concatenate([r.exp(x), x], 0)])",
        "(lambda a, b: r.Let(a, r.exp(x), r.Let(b, r.exp(x), b)))(r.var('a'), r.var('b'))",
        "r.zeros((2, 2), 'float32') + r.zeros((2, 2), 'float32') * x",
    ]
    return {"texts": [*edges, *(expression(random, int(d)) for d in random.integers(2, 6, 12))]}


NAMES = (
    "{'r': relay, 'x': relay.var('x', shape=(2, 2)), "
    "'c': lambda *n, dtype='float32': relay.const(np.array(n if n[1:] else n[0], dtype), dtype)}"
)


def are_shared(value: Any, texts: list[str], lab: Any) -> str:
    """The values, the number of lets, and the number of each kind of value."""
    for text, after in zip(texts, value, strict=True):
        before = lab.anf(eval(text, eval(NAMES, {"relay": lab.relay, "np": np})))
        numbers = programs.entries((2, 2))
        if says := differs(before, after, [numbers] * len(before["main"].params)):
            return says
        mine, right = (
            sorted(str(lab.kind(bound)) for _, bound in lab.bindings(function)[0])
            for function in (after, lab.share(before["main"]))
        )
        if len(mine) != len(right):
            more = len(mine) > len(right)
            return "two lets have equal values" if more else "lets are gone that differ"
        if mine != right:
            return "other values are left than the first of those that are equal"
    return ""


HIDDEN = {
    "q1": [
        Hidden(
            "graphs with no, one and several outputs, and the graph that was given",
            probe=(
                "[[{v: [isinstance(s, (set, frozenset)), sorted(s)] for v, s in found.items()}, "
                "sources] for pairs, outputs in cases for sources in [dict(pairs)] "
                "for found in [needed_by(sources, outputs)]]"
            ),
            draw=graphs,
            weight=2,
        ),
        Hidden(
            "graphs with very many paths, in seconds",
            probe=(
                "[{v: sorted(s) for v, s in needed_by(dict(pairs), outputs).items()} "
                "for pairs, outputs in cases]"
            ),
            draw=ladders,
            timeout=3,
        ),
    ],
    "q2": [
        Hidden(
            "tuples, functions, references, branches, equal names in several scopes",
            probe=(
                "[sorted([v.name_hint, n] for v, n in uses(program(body, 'float32', more)["
                "'main']).items()) for body in bodies]"
            ),
            draw=lambda random: {**bodies(TO_COUNT, EFFECTS)(random), "more": G},
        ),
    ],
    "q3": [
        Hidden(
            "lets in lets and in branches: the values, and the lets that are left",
            probe="[eliminate(program(body, 'float32')['main']) for body in bodies]",
            draw=bodies(PURE_EDGES, PURE),
            verify=removed_by("eliminate"),
        ),
    ],
    "q4": [
        Hidden(
            "values with and without an effect, up to forty levels deep",
            probe=(
                "[is_pure(program('let %r = ref(%x); let %f = fn () { ref_write(%r, 5f) }; "
                "let %u = ' + text + '; ref_read(%r)', 'float32', more)['main']"
                ".body.body.body.value) for text in texts]"
            ),
            draw=lambda random: {**values_of(random), "more": G},
        ),
    ],
    "q5": [
        Hidden(
            "effects in lets, branches and functions: the values, and the lets that are left",
            probe="[remove_dead(program(body, 'float32')['main']) for body in bodies]",
            draw=bodies(EFFECT_EDGES, EFFECTS),
            verify=removed_by("remove_dead"),
            weight=2,
        ),
        Hidden(
            "programs without effects",
            probe="[remove_dead(program(body, 'float32')['main']) for body in bodies]",
            draw=bodies(PURE_EDGES, PURE),
            verify=removed_by("remove_dead"),
        ),
    ],
    "q6": [
        Hidden(
            "attributes, types, tuples, orders of operands: the values, and what is left",
            probe=f"[share(anf(eval(text, {NAMES}))['main']) for text in texts]",
            draw=expressions,
            verify=are_shared,
        ),
    ],
    "q7": [
        Hidden("the uses in your program", probe="sorted(own_uses.items())", own=True),
        Hidden("what is left of your program", probe="sorted(own_left)", own=True),
    ],
}
