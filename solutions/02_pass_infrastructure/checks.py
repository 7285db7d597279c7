"""Lab 02: wrong answers, which the public checks must refuse, and other right ones."""

# Question -> what is wrong with the answer -> which of its texts are replaced by what.
WRONG: dict[str, dict[str, dict[str, str]]] = {
    "q1": {
        "InferType counts": {' if row[0] != "InferType"': ""},
        "sequentials are left out": {'!= "InferType"': 'not in ("InferType", "sequential")'},
        "the first that began ends first": {"begun.pop()": "begun.pop(0)"},
        "one number for all that have begun": {
            "begun.append(operators(module))": "begun[:] = [operators(module)]",
            "begun.pop()": "begun[0]",
        },
        "the default level": {"opt_level=level, ": ""},
        "always level 3": {"opt_level=level": "opt_level=3"},
        "the last to end comes first": {"for row in rows": "for row in rows[::-1]"},
        "only what changes": {'!= "InferType"': '!= "InferType" and row[1] != row[2]'},
        "the run itself is watched, too": {
            "run()\n": "run()\n        rows.append(('run', 0, 0))\n"
        },
    },
    "q2": {
        "from the outside to the inside": {"in pipeline": "in reversed(pipeline)"},
        "no name is disabled": {"in context.disabled_pass": "in ()"},
        "required wins over disabled": {
            "in context.disabled_pass": "in set(context.disabled_pass) - set(context.required_pass)"
        },
        "no name is required": {"not in context.required_pass": "not in ()"},
        "every level runs": {"p.info.opt_level > context.opt_level": "False"},
        "the level itself is left out": {
            "p.info.opt_level > context.opt_level": "p.info.opt_level >= context.opt_level"
        },
        "level 3, whatever the context says": {
            "p.info.opt_level > context.opt_level": "p.info.opt_level > 3"
        },
        "outside of the context": {"with context:": "if True:"},
        "nothing that is required runs": {"in p.info.required": "in ()"},
        "each pass gets the first module": {
            "with context:": "first = module\n    with context:",
            "(transform, name)()(module)": "(transform, name)()(first)",
            "module = p(module)": "module = p(transform.InferType()(first))",
        },
        "the last pass is forgotten": {"in pipeline": "in pipeline[:-1]"},
    },
    "q3": {
        "by the level of the pass": {
            "if rows:": "if passes.info(name).level <= level:",
        },
        "levels 0 to 3": {"range(5)": "range(4)"},
        "levels 1 to 4": {"range(5)": "range(1, 5)"},
        "the first run only": {"in rows)": "in rows[:1])"},
        "runs where it changes": {"if rows:": "if any(b != a for _, b, a in rows):"},
        "changes where it runs": {"before != after for": "True for"},
        "changes where it takes operators away": {
            "if any(before != after": "if all(before > after"
        },
        "any pass": {" if row[0] == name": ""},
    },
    "q4": {
        "types do not matter": {"call.checked_type == call.args[kept].checked_type": "True"},
        "one divided by x, too": {" and kept == 0": ""},
        "one is on the right": {"((0, 1), (1, 0))": "((0, 1),)"},
        "one is on the left": {"((0, 1), (1, 0))": "((1, 0),)"},
        "any constant is one": {
            "is_one(call.args[one])": "isinstance(call.args[one], relay.Constant)",
        },
        "the argument before its rewriting": {"return new.args[kept]": "return call.args[kept]"},
        "arguments are not visited": {"new = super().visit_call(call)": "new = call"},
        "scalars only": {"if known": "if known and call.args[one].checked_type.shape == []"},
        "adding one, too": {'== "multiply"': 'in ("multiply", "add")'},
        "division is forgotten": {'call.op.name == "divide"': "False"},
        "the one is kept": {"return new.args[kept]": "return new.args[one]"},
    },
    "q5": {
        "the other way round": {
            "[inner[axis] for axis in outer]": "[outer[axis] for axis in inner]"
        },
        "two always cancel": {"data if axes == sorted(axes) else": "data if True else"},
        "two equal ones cancel": {"axes == sorted(axes)": "inner == outer"},
        "only what cancels": {"else relay.transpose(data, axes)": "else after"},
        "never nothing": {"data if axes == sorted(axes) else ": ""},
        "no types for new calls": {"require_type=True": ""},
        "one transpose is enough": {
            'is_op("transpose")(is_op("transpose")(self.data))': 'is_op("transpose")(self.data)',
            "axes_of(before.args[0]), axes_of(before)": "axes_of(before), axes_of(before)",
        },
        "the outer one goes": {"relay.transpose(data, axes)": "relay.transpose(data, inner)"},
        "nothing": {"rewrite(Merge(), function)": "function"},
    },
    "q6": {
        "how many passes, not which": {"return high - 1": "return high"},
        "the last that works": {"return high - 1": "return low - 1"},
        "one after the other": {"(low + high) // 2": "low + 1"},
        "from the end": {"(low + high) // 2": "high - 1"},
        "always one is faulty": {"if works(states[high]):": "if False:"},
        "no pass is an index, too": {"return None": "return len(pipeline)"},
        "asks for all states": {"if works(states[high]):": "if all([works(s) for s in states]):"},
        "the halves are swapped": {"if works(states[middle])": "if not works(states[middle])"},
        "each pass gets the first module": {"p(states[-1])": "p(module)"},
        "in a Sequential": {"p(states[-1])": "Sequential([p])(states[-1])"},
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
