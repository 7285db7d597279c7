"""Lab 04: wrong answers, which the public checks must refuse, and other right ones."""

# Question -> what is wrong with the answer -> which of its texts are replaced by what.
WRONG: dict[str, dict[str, dict[str, str]]] = {
    "q1": {
        "for all of no arguments": {" and arguments:": ":"},
        "inputs are constants": {
            "if op in COMPUTE and arguments:": 'if op != "const":',
            "COMPUTE[op](": "COMPUTE.get(op, lambda *_: None)(",
        },
        "one round": {"[folded[argument] for": "[graph[argument] for"},
        "one constant is enough": {"if all(": "if any("},
        "the given graph is changed": {"dict(graph)": "graph"},
        "the value alone": {
            '("const", COMPUTE[op](*': "(COMPUTE[op](*",
        },
        "constants that were folded are left out": {
            "return folded": 'return {name: node for name, node in folded.items() if name != "c"}'
        },
    },
    "q2": {
        "for all of no arguments": {" or len(call.args) == 0": ""},
        "one constant is enough": {
            "return all(is_constant(argument)": "return any(is_constant(argument)"
        },
        "the first argument decides": {"in call.args)": "in call.args[:1])"},
        "the last argument decides": {"in call.args)": "in call.args[-1:])"},
        "a tuple is no constant": {
            "return all(is_constant(field) for field in expression.fields)": "return False"
        },
        "a tuple is a constant": {
            "return all(is_constant(field) for field in expression.fields)": "return True"
        },
        "stateful operators, too": {'call.op.get_attr("TOpIsStateful") or ': ""},
        "non-computational operators, too": {' or call.op.get_attr("TNonComputational")': ""},
        "functions, too": {
            "not isinstance(call.op, tvm.ir.Op) or ": "",
            "    def is": "    entry = getattr(call.op, 'get_attr', {}.get)\n\n    def is",
            'call.op.get_attr("TOp': 'entry("TOp',
            'call.op.get_attr("TNon': 'entry("TNon',
        },
        "random operators never": {
            "if call.op.get_attr": 'if call.op.name.startswith("random") or call.op.get_attr'
        },
        "calls count as constants": {
            "isinstance(expression, relay.Constant)": "not relay.analysis.free_vars(expression)"
        },
        "never": {"return all(is_constant(argument) for argument in call.args)": "return False"},
    },
    "q3": {
        "one round": {
            "call = super().visit_call(call)\n": "new = super().visit_call(call)\n",
            "foldable(call) else call": "foldable(call) else new",
        },
        "nothing is folded": {"evaluate(call) if foldable(call) else call": "call"},
        "fields stay in tuples": {"if isinstance(whole, relay.Tuple):": "if False:"},
        "always field 0": {"whole.fields[field.index]": "whole.fields[0]"},
        "always the last field": {"whole.fields[field.index]": "whole.fields[-1]"},
        "all calls of constants": {
            "foldable(call) else": "all(isinstance(a, relay.Constant) for a in call.args) else"
        },
        "tuples are not visited": {"self.visit(field.tuple_value)": "field.tuple_value"},
    },
    "q4": {
        "all lets are replaced": {"if isinstance(value, relay.Constant):": "if True:"},
        "no let is replaced": {"if isinstance(value, relay.Constant):": "if False:"},
        "the let is left out, the variable stays": {"self.memo_map[let.var] = value\n": "pass\n"},
        "the let stays": {
            "return self.visit(let.body)": "return relay.Let(let.var, value, self.visit(let.body))"
        },
        "the value is not visited": {"value = self.visit(let.value)": "value = let.value"},
        "always the first branch": {
            "branch.true_branch if taken else branch.false_branch": "branch.true_branch"
        },
        "the other branch": {"bool(condition": "not bool(condition"},
        "every if is decided": {
            "if isinstance(condition, relay.Constant):": "if True:",
            "bool(condition.data.numpy())": "getattr(condition, 'data', None) is None or False",
        },
        "no if is decided": {"if isinstance(condition, relay.Constant):": "if False:"},
        "the branch is not visited": {
            "self.visit(branch.true_branch if": "(branch.true_branch if",
        },
    },
    "q5": {
        "no limit": {"return result if after <= before + limit else call": "return result"},
        "less than the limit": {
            "return result if after <= before + limit": "return result if after < before + limit"
        },
        "the limit is for the result": {
            "after <= before + limit))": "after <= limit))",
            "result if after <= before + limit": "result if after <= limit",
        },
        "the limit is for all calls together": {
            "result if after <= before": "result if sum(row[2] - row[1] for row in ledger) <= 0"
        },
        "only what is folded is in the ledger": {
            "ledger.append((": "after <= before + limit and ledger.append(("
        },
        "all calls are in the ledger": {
            "return call\n": "return ledger.append((call.op.name, 0, 0, False)) or call\n"
        },
        "a constant counts at each use": {
            "constant_bytes(call.args), ": "sum(constant_bytes([a]) for a in call.args), "
        },
        "bytes the other way round": {
            "call.op.name, before, after,": "call.op.name, after, before,"
        },
        "the old call": {"return result if after <= before + limit else call": "return call"},
    },
    "q6": {
        "epsilon forgotten": {" + epsilon": ""},
        "no square root": {"np.sqrt(var + epsilon)": "(var + epsilon)"},
        "gamma forgotten": {"gamma /": "1 /"},
        "the old bias is not scaled": {"(b - mean) * scale": "b - mean * scale"},
        "the old bias forgotten": {"(b - mean)": "-mean"},
        "beta forgotten": {" * scale + beta": " * scale"},
        "scale along the input channels": {
            "scale.reshape(-1, 1, 1, 1)": "np.resize(scale, 4).reshape(1, -1, 1, 1)"
        },
        "the bias as a column": {"* scale + beta": "* scale.reshape(-1, 1) + beta"},
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
