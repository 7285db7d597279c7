"""The labs: right answers pass, blanks are not attempted, and every public case can fail.

Each lab's solution is executed once, cell by cell. At a question the wrong answers below take the
place of the right one, and the check's cases are tried on each of them one by one. A case that no
wrong answer fails would be no check at all.
"""

import contextlib
import io
import re

import pytest

from helpers.grading import checks
from tools.kernels import ROOT
from tools.pages import find_pages, read_page

# Lab and question -> what is wrong with an answer -> which of its texts are replaced by what.
WRONG: dict[tuple[str, str], dict[str, dict[str, str]]] = {
    ("01", "q1"): {
        "an input is its own operand": {"    return []": "    return [node]"},
        "the operator is an operand": {"list(node.args)": "[x, *node.args]"},
        "operands in reverse": {"list(node.args)": "list(node.args)[::-1]"},
        "equal operands once": {"list(node.args)": "list(dict.fromkeys(node.args))"},
        "tuples forgotten": {"list(node.fields)": "[]"},
        "tuple fields forgotten": {"[node.tuple_value]": "[]"},
        "fields of the tuple behind": {"[node.tuple_value]": "list(node.tuple_value.fields)"},
    },
    ("01", "q2"): {
        "forgets what it has met": {"if node not in met": "if node not in function.params"},
        "a vertex before its operands": {
            "met.add(node)": "met.add(node); V.append(node)",
            "            V.append(node)\n\n": "\n",
        },
        "asks again for what it has met": {
            "        if node not in met:\n            met.add(node)\n": "        if True:\n",
            "            V.append(node)\n\n": "            V.extend({node} - set(V))\n\n",
        },
        "what looks alike is one": {
            "if node not in met": "if label(node) not in met",
            "met.add(node)": "met.add(label(node))",
        },
        "unused parameters forgotten": {"V = list(function.params)": "V = []"},
        "without the body": {"visit(function.body)": "[visit(n) for n in operands(function.body)]"},
        "only the first operand": {
            "for operand in operands(node)": "for operand in operands(node)[:1]"
        },
    },
    ("01", "q3"): {
        "each pair once": {"return [": "return list({", "operands(node)]": "operands(node)})"},
        "from consumer to producer": {
            "(place[operand], place[node])": "(place[node], place[operand])"
        },
        "counted from 1": {"enumerate(V)": "enumerate(V, 1)"},
        "one edge per vertex": {"in operands(node)]": "in operands(node)[:1]]"},
    },
    ("01", "q4"): {
        "lets are not followed": {"while isinstance(result, relay.Let)": "while False"},
        "a second name is followed once": {"return real(value_of[node])": "return value_of[node]"},
        "unused lets are dropped": {"[*value_of.values(), result]": "[result]"},
        "only what a let names": {"[*value_of.values(), result]": "value_of.values()"},
        "equal edges once": {
            "return V, [": "return V, list({",
            "operands(node)]": "operands(node)})",
        },
        "from consumer to producer": {
            "(place[real(operand)], place[node])": "(place[node], place[real(operand)])"
        },
    },
    ("01", "q5"): {
        "four bytes each": {"np.dtype(kind.dtype).itemsize": "4"},
        "bits": {"np.dtype(kind.dtype).itemsize": "8 * np.dtype(kind.dtype).itemsize"},
        "a scalar has no element": {"elements = int(": "elements = len(kind.shape) and int("},
        "sum of the axes": {"np.prod(": "np.sum("},
        "first field of a tuple only": {"in kind.fields]": "in kind.fields[:1]]"},
    },
    ("01", "q6"): {
        "a product and a sum are two": {"return int(": "return 2 * int("},
        "groups forgotten": {
            "weights[1:]": "[int(call.args[0].checked_type.shape[1]), *weights[2:]]"
        },
        "input size instead of output size": {
            "in call.checked_type.shape": "in call.args[0].checked_type.shape"
        },
        "conv1d forgotten": {'"nn.conv1d", ': ""},
        "batch_matmul as dense": {
            'weights[-1:] if call.op.name == "nn.batch_matmul" else weights[1:]': "weights[1:]"
        },
        "any operator has weights": {"return 0": "pass"},
        "the window forgotten": {"else weights[1:]": "else weights[1:2]"},
    },
    ("01", "q7"): {
        "one FLOP per multiply-add": {"2 * macs(call)": "macs(call)"},
        "weighted operators only": {"if call.op.name in ONE_EACH": "if False"},
        "every operator has one FLOP an element": {"if call.op.name in ONE_EACH": "if True"},
        "inputs are parameters": {"relay.Constant)]": "(relay.Constant, relay.Var))]"},
        "bytes for elements": {
            "sum(elements for elements, _ in constants)": "sum(count for _, count in constants)"
        },
        "calls for vertices": {
            '"vertices": len(V)': '"vertices": sum(isinstance(n, relay.Call) for n in V)'
        },
    },
    ("03", "q1"): {
        "an operand counts at each use": {
            "read = {source": "read = [source",
            "inputs} - set(group)": "inputs if source not in group]",
            "read -= scalars - needed": "read = [v for v in read if v not in scalars - needed]",
        },
        "reads inside count": {" - set(group)": ""},
        "scalar constants count": {"read -= scalars - needed": ""},
        "no scalar constant counts": {"scalars - needed": "scalars"},
        "no constant counts": {" and G.nodes[v].shape == ()}": "}"},
        "only the last is written": {"needed & set(group)": "{max(group)}"},
        "all is written": {"needed & set(group)": "set(group)"},
        "the result is not written": {"needed.add(G.output)": ""},
    },
    ("03", "q2"): {
        "unfused counts writes only": {"return 2 * n * size": "return n * size"},
        "fused has one access per operator": {", 2 * size": ", (n + 1) * size"},
        "fused writes nothing": {"(n + 2) * size": "(n + 1) * size", ", 2 * size": ", size"},
        "the first input forgotten": {"3 * n * size": "(3 * n - 1) * size"},
        "fresh operands forgotten": {"if fresh": "if False"},
        "accesses instead of bytes": {
            "return 3 * n * size, (n + 2) * size": "return 3 * n, n + 2",
            "return 2 * n * size, 2 * size": "return 2 * n, 2",
        },
    },
    ("03", "q3"): {
        "the first consumer": {"dominator[v] for v": "consumers[v][0] for v"},
        "the last consumer": {"dominator[v] for v": "consumers[v][-1] for v"},
        "always the end": {"dominator[v] for v": "EXIT for v"},
        "the end is forgotten": {
            "for c in following)": "for c in following if c != EXIT or len(following) == 1)"
        },
        "dominators instead": {
            "(c, v) for c": "(v, c) for c",
            "(reversed_graph, EXIT)": "(reversed_graph, 1) | {1: EXIT}",
        },
        "one step too far": {"dominator[v] for v": "dominator.get(dominator[v], EXIT) for v"},
    },
    ("03", "q4"): {
        "always": {"largest = max([0, *between])": "return True"},
        "never": {"largest = max([0, *between])": "return False"},
        "edges do not matter to elementwise work": {"edge <= OpPattern.COMM_REDUCE": "True"},
        "no elementwise work into a reduction": {
            "edge <= OpPattern.COMM_REDUCE": "edge <= OpPattern.INJECTIVE"
        },
        "anything between elementwise operators": {"and largest <= OpPattern.INJECTIVE": ""},
        "only injective ends": {"d <= OpPattern.OUT_ELEMWISE_FUSABLE": "d <= OpPattern.INJECTIVE"},
        "any end": {"and d <= OpPattern.OUT_ELEMWISE_FUSABLE": ""},
        "injective in any phase": {"phase == 1 and ": ""},
        "injective into a reduction": {
            "max(largest, d) <= OpPattern.INJECTIVE": "max(largest, d) <= OpPattern.COMM_REDUCE"
        },
        "injective, the end alone": {
            "max(largest, d) <= OpPattern.INJECTIVE": "d <= OpPattern.INJECTIVE"
        },
        "tuples forgotten": {"(OpPattern.INJECTIVE, OpPattern.TUPLE)": "(OpPattern.INJECTIVE,)"},
        "a convolution in any phase": {"phase == 0 and ": ""},
        "a convolution through a broadcast": {
            "edge == OpPattern.ELEMWISE": "edge <= OpPattern.BROADCAST"
        },
        "two convolutions": {
            "max(largest, d) <= OpPattern.BROADCAST": "largest <= OpPattern.BROADCAST"
        },
        "a convolution, the end alone": {
            "max(largest, d) <= OpPattern.BROADCAST": "d <= OpPattern.BROADCAST"
        },
        "reductions as elementwise work": {"if v <= OpPattern.BROADCAST": "if v in (0, 1, 3)"},
        "opaque operators as elementwise work": {
            "if v <= OpPattern.BROADCAST": "if v in (0, 1, 8)"
        },
    },
    ("03", "q5"): {
        "patterns of vertices, not of groups": {
            "groups.pattern(u)": "P.pattern[u]",
            "groups.pattern(v)": "P.pattern[v]",
            "groups.pattern(d)": "P.pattern[d]",
        },
        "what is between stays behind": {"(v, *between)": "(v,)"},
        "phase 0 only": {"in (0, 1)": "in (0,)"},
        "phase 1 only": {"in (0, 1)": "in (1,)"},
        "phase 1 first": {"in (0, 1)": "in (1, 0)"},
        "both phases at each vertex": {
            "    for phase in (0, 1):\n        for v in P.vertices:": "    for v in P.vertices:\n"
            "        for phase in (0, 1):"
        },
        "never asks": {"if may_fuse(": "if False and may_fuse("},
        "does not ask": {"if may_fuse(": "if True or may_fuse("},
        "the first consumer, not the post-dominator": {"d = dominator[v]": "d = P.consumers[v][0]"},
    },
    ("03", "q6"): {
        "nothing": {"if d != EXIT": "if False"},
        "into any tuple": {"(v, *between, d)) <=": "(v, *between)) <="},
        "convolutions, too": {"<= OpPattern.INJECTIVE": "<= OpPattern.OUT_ELEMWISE_FUSABLE"},
        "the operator's pattern, not its group's": {
            "max(groups.pattern(u)": "max(groups.pattern(d) if u == d else P.pattern[u]"
        },
    },
}


# Right answers of another kind: the checks must not ask for one way to write it.
OTHERS: dict[tuple[str, str], str] = {
    ("01", "q1"): """
def operands(node):
    return getattr(node, "args", None) or getattr(node, "fields", None) or (
        [node.tuple_value] if hasattr(node, "tuple_value") else ())
""",
    ("01", "q2"): """
def vertices(function):
    found = list(function.params)
    relay.analysis.post_order_visit(function.body, lambda e: found.append(e)
        if e not in function.params and not isinstance(e, tvm.ir.Op) else None)
    return found
""",
    ("01", "q3"): """
def edges(V):
    return [(i, j) for j, node in enumerate(V) for o in operands(node)
            for i, other in enumerate(V) if other == o][::-1]
""",
    ("01", "q4"): """
def extract(function):
    graph = ir.graph(function)
    return [node.expr for node in graph.nodes], [list(edge) for edge in graph.edges]
""",
    ("01", "q5"): """
def size(kind):
    if hasattr(kind, "fields"):
        return list(np.sum([size(field) for field in kind.fields], axis=0))
    elements = np.prod([int(n) for n in kind.shape])
    return [elements, np.dtype(kind.dtype).itemsize * elements]
""",
    ("01", "q6"): """
def macs(call):
    if call.op.name.startswith("nn.conv"):
        one = call.args[1].checked_type.shape[1:]
    elif call.op.name == "nn.dense" or call.op.name == "nn.batch_matmul":
        one = call.args[0].checked_type.shape[-1:]
    else:
        return 0
    return np.prod([int(n) for n in [*one, *call.checked_type.shape]])
""",
    ("03", "q3"): """
def post_dominators(consumers):
    answer = {}
    def chain(c):
        return [c] + (chain(answer[c]) if c != EXIT else [])
    for v in reversed(list(consumers)):
        chains = [chain(c) for c in consumers[v]]
        answer[v] = next(c for c in chains[0] if all(c in other for other in chains))
    return answer
""",
    ("03", "q4"): """
def may_fuse(phase, v, edge, between, d):
    row = {0: ((0, 1), 3, 2, 4), 1: ((0, 1), 3, 2, 4), 2: ((1,), 8, 2, 2), 7: ((1,), 8, 2, 2),
           4: ((0,), 0, 1, 1)}.get(int(v))
    return (row is not None and phase in row[0] and edge <= row[1]
            and all(p <= row[2] for p in between) and d <= row[3])
""",
}

LABS = {"01": "01_relay_ir", "03": "03_operator_fusion"}


class Lab:
    """One lab, executed: what its checks say of right, wrong and blank answers."""

    def __init__(self, number):
        pages = {page.kind: page for page in find_pages(ROOT, [LABS[number]])}
        self.blanks = {cell.id: cell.source for cell in read_page(pages["lab"]).cells}
        self.space = {"__name__": "__main__"}
        self.answers = {}
        self.right = {}  # question -> the verdict
        self.other = {}  # question -> the verdict on a right answer of another kind
        self.blank = {}  # question -> the verdict
        self.earlier_blank = {}  # question, earlier question -> the verdict when that is blank
        self.cases = {}  # question -> what its check tries
        self.failed = {}  # question, what is wrong -> for each case whether it fails
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(checks, "question", self.hand_over)
            for cell in read_page(pages["solution"]).cells:
                if cell.cell_type == "code":
                    self.meet(cell, cell.metadata.get("nbgrader", {}), number)

    def hand_over(self, name, answer, cases, **tolerance):
        """What a check cell calls instead of printing a verdict."""
        self.asked = name, answer, list(cases), tolerance

    def execute(self, source, name):
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile(source, f"<{name}>", "exec"), self.space)

    def verdict(self, check):
        self.execute(check.source, check.id)
        name, answer, cases, tolerance = self.asked
        return checks.judge(name, answer, cases, **tolerance)

    def verdicts(self, check):
        """One verdict for each case of the check."""
        self.execute(check.source, check.id)
        name, answer, cases, tolerance = self.asked
        return [checks.judge(name, answer, [case], **tolerance) for case in cases]

    def meet(self, cell, role, number):
        if role.get("solution"):
            self.answers[cell.id] = cell.source
        if not role.get("locked"):
            self.execute(cell.source, cell.id)
            return
        question = cell.id.removesuffix("-check")
        right = self.answers[question]
        self.right[question] = self.verdict(cell)
        self.cases[question] = [text for text, *_ in self.asked[2]]
        for what, changes in WRONG[number, question].items():
            self.execute(mutated(right, changes), question)
            self.failed[question, what] = [bool(v.failure) for v in self.verdicts(cell)]
        if (number, question) in OTHERS:
            self.execute(OTHERS[number, question], question)
            self.other[question] = self.verdict(cell)
        self.execute(self.blanks[question], question)
        self.blank[question] = self.verdict(cell)
        self.execute(right, question)
        for earlier, answer in self.answers.items():
            function = re.search(r"^def (\w+)", answer, re.M)[1]
            if earlier != question and re.search(rf"\b{function}\(", right + cell.source):
                self.execute(self.blanks[earlier], earlier)
                self.earlier_blank[question, earlier] = self.verdict(cell)
                self.execute(answer, earlier)


def mutated(source, changes):
    for old, new in changes.items():
        assert source.count(old) == 1, f"{old!r} is {source.count(old)} times in the answer"
        source = source.replace(old, new)
    return source


@pytest.fixture(scope="module")
def runs(relay):
    made = {}

    def get(number):
        if number not in made:
            made[number] = Lab(number)
        return made[number]

    return get


@pytest.mark.parametrize("number", LABS)
def test_right_answers_pass(runs, number):
    verdicts = {question: str(outcome) for question, outcome in runs(number).right.items()}
    assert len(verdicts) >= 5
    assert {q: v for q, v in verdicts.items() if "public checks passed (" not in v} == {}


@pytest.mark.parametrize(("lab", "question"), OTHERS)
def test_another_right_answer_passes(runs, lab, question):
    assert runs(lab).other[question].failure == ""


@pytest.mark.parametrize("number", LABS)
def test_a_blank_is_not_attempted(runs, number):
    lab = runs(number)
    assert lab.blank.keys() == lab.right.keys()
    assert [q for q, outcome in lab.blank.items() if outcome.attempted] == []


@pytest.mark.parametrize("number", LABS)
def test_a_question_after_a_blank_one_says_so(runs, number):
    """An answer that needs an earlier one, still blank, gets a verdict and no traceback."""
    for outcome in runs(number).earlier_blank.values():
        assert not outcome.attempted or not outcome.failure or "your code here" in outcome.failure


@pytest.mark.parametrize(
    ("lab", "question", "what"), [(*place, what) for place in WRONG for what in WRONG[place]]
)
def test_a_wrong_answer_fails(runs, lab, question, what):
    assert any(runs(lab).failed[question, what])


@pytest.mark.parametrize("number", LABS)
def test_every_public_case_can_fail(runs, number):
    lab = runs(number)
    idle = [
        (question, text)
        for question, texts in lab.cases.items()
        for index, text in enumerate(texts)
        if not any(failed[index] for (q, _), failed in lab.failed.items() if q == question)
    ]
    assert idle == []
