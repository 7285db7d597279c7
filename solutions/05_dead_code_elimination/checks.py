"""Lab 05: wrong answers, which the public checks must refuse, and other right ones."""

# Question -> what is wrong with the answer -> which of its texts are replaced by what.
WRONG: dict[str, dict[str, dict[str, str]]] = {
    "q1": {
        "only what an output is computed from directly": {
            "waiting += sources[v]": "waiting += sources[v] if v == output else []"
        },
        "an output does not need itself": {
            "    return needs": "        needs[output] = set()\n    return needs"
        },
        "one set for all vertices": {
            "{v: set() for v in sources}": "dict.fromkeys(sources, set())"
        },
        "the first output only": {"for output in outputs": "for output in outputs[:1]"},
        "one walk for all outputs": {
            "if output not in needs[v]": "if not needs[v]",
        },
        "each path is walked": {"if output not in needs[v]": "if True"},
        "forwards": {"waiting += sources[v]": "waiting += [u for u in sources if v in sources[u]]"},
        "live vertices only": {
            "return needs": "return {v: found for v, found in needs.items() if found}"
        },
    },
    "q2": {
        "the binding is a use": {
            "bound.append(e.var)": "bound.append(e.var)\n            used[e.var] += 1"
        },
        "each user once": {"used.update(c": "used.update({c", "relay.Var))": "relay.Var)})"},
        "the result is no use": {"relay.Var))": "relay.Var) and not isinstance(e, relay.Let))"},
        "arguments of calls only": {"in children(e)": "in getattr(e, 'args', [])"},
        "a called variable is not used": {
            "relay.Var))": "relay.Var) and c != getattr(e, 'op', None))"
        },
        "only what is used": {"for variable in bound}": "for variable in bound if used[variable]}"},
        "parameters, too": {
            "for variable in bound}": "for variable in [*bound, *function.params]}"
        },
    },
    "q3": {
        "one round": {"    return function": "        return function\n    return function"},
        "one round, and the value of a let is not visited": {
            "    return function": "        return function\n    return function",
            "return super().visit_let(let)": (
                "return relay.Let(let.var, let.value, self.visit(let.body))"
            ),
        },
        "what is used once goes as well": {
            "counts[let.var] == 0": "counts[let.var] <= 1",
            "while 0 in (": "while {0, 1} & {*(",
            ".values():": ".values()}:",
        },
        "all lets go when one is unused": {"counts[let.var] == 0": "True"},
        "nothing": {"while 0 in": "while None in"},
    },
    "q4": {
        "reading is pure": {"(relay.RefRead, relay.RefWrite)": "relay.RefWrite"},
        "writing is pure": {"(relay.RefRead, relay.RefWrite)": "relay.RefRead"},
        "functions are as pure as their bodies": {
            "if isinstance(e, relay.Function):\n        return True": "if False:\n        pass"
        },
        "calling a function is pure": {" or not is_pure(e.op.body)": ""},
        "calling a function is never pure": {"not isinstance(e.op, relay.Function) or": "True or"},
        "calling a variable is pure": {
            "not isinstance(e.op, relay.Function) or not is_pure(e.op.body)": (
                "isinstance(e.op, relay.Function) and not is_pure(e.op.body)"
            )
        },
        "no operator is stateful": {"if is_stateful(e.op)": "if False"},
        "only what has no operands": {"all(is_pure(c) for c in children(e))": "not children(e)"},
        "children do not matter": {"all(is_pure(c) for c in children(e))": "True"},
        "one pure child is enough": {
            "all(is_pure(c) for c": "not children(e) or any(is_pure(c) for c"
        },
        "a reference is pure whatever is inside, as in TVM": {
            "isinstance(e, relay.Function)": "isinstance(e, (relay.Function, relay.RefCreate))"
        },
        "references are impure": {
            "(relay.RefRead, relay.RefWrite)": "(relay.RefRead, relay.RefWrite, relay.RefCreate)"
        },
        "lets are not looked into": {
            "in children(e))": "in children(e) if not isinstance(e, relay.Let))"
        },
        "branches are not looked into": {
            "in children(e))": "in children(e) if not isinstance(e, relay.If))"
        },
        "the arguments of a call do not matter": {
            "in children(e))": "in children(e) if not isinstance(e, relay.Call))"
        },
    },
    "q5": {
        "impure lets go as well": {"is_pure(let.value) and ": ""},
        "pure lets go, used or not": {" and let.var not in relay.analysis.free_vars(body)": ""},
        "used in the body as it was": {"free_vars(body)": "free_vars(let.body)"},
        "the value of a let is not visited": {"self.visit(let.value)": "let.value"},
        "all that is impure is kept, and nothing else counts": {
            "let.var not in relay.analysis.free_vars(body)": "True"
        },
        "without purity inside": {
            "is_pure(let.value)": "not isinstance(let.value, relay.RefWrite)"
        },
    },
    "q6": {
        "order always matters": {"operands = frozenset(operands)": "pass"},
        "order never matters": {" and value.op.name in COMMUTATIVE": ""},
        "attributes do not matter": {
            "kind(value)": "getattr(getattr(value, 'op', 0), 'name', kind(value))"
        },
        "replaced variables stay in the values": {"value = relay.bind(value, same)": "pass"},
        "the result keeps its variable": {"relay.bind(result, same)": "result"},
        "impure values are shared": {" and is_pure(value)": ""},
        "operands do not matter": {"(kind(value), operands)": "kind(value)"},
        "constants are all equal": {
            "kind(value)": "isinstance(value, relay.Constant) or kind(value)"
        },
        "constants are never shared": {
            "and is_pure(value)": "and is_pure(value) and not isinstance(value, relay.Constant)"
        },
        "nothing is shared": {"if description in first": "if False"},
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
