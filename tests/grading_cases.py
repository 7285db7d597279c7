"""A small course and a class of submissions to it, each with the points that it deserves.

The course is built by the same code as the labs. It has three labs: ``91_bytes``, which needs no
TVM, ``92_relay``, whose answer is a Relay function, and ``93_relax``, whose answer is a Relax
module.
"""

from __future__ import annotations

import json
import textwrap
import zipfile
from dataclasses import dataclass, field
from pathlib import Path

from tools.pages import as_text, find_pages, read_page

BYTES_LAB = '''
# Lab 91 · Bytes

```{code-cell}
from helpers.grading import checks

WIDTH = {"int8": 1, "float16": 2, "float32": 4}


def known(name):
    """Used by the check only."""
    return WIDTH[name]
```

```{code-cell}
:tags: [solution]

def twice(n):
    """2 n."""
    ### BEGIN SOLUTION
    return n + n
    ### END SOLUTION
```

```{code-cell}
:tags: [check]
:points: 2

checks.question("q1", twice, [("twice(1)", lambda f: f(1), 2)])
```

```{code-cell}
:tags: [solution]

def count_bytes(shape, dtype):
    """Bytes of a tensor."""
    ### BEGIN SOLUTION
    size = WIDTH[dtype]
    for axis in shape:
        size = size * axis
    return size
    ### END SOLUTION
```

```{code-cell}
:tags: [check]
:points: 4

checks.question("q2", count_bytes, [("()", lambda f: f((), "int8"), known("int8"))])
```

```{code-cell}
:tags: [solution]

def ratio(shape):
    """Bytes of two tensors in float32 by those of one in float16."""
    ### BEGIN SOLUTION
    return twice(count_bytes(shape, "float32")) / count_bytes(shape, "float16")
    ### END SOLUTION
```

```{code-cell}
:tags: [check]
:points: 1

checks.question("q3", ratio, [("(1,)", lambda f: f((1,)), 4.0)])
```

```{code-cell}
:tags: [solution]
kernels = 31
```

```{code-cell}
:tags: [check]
:points: 1

checks.question("q4", kernels, [("a number", lambda k: isinstance(k, int), True)])
```

+++ {"tags": ["written"], "points": 2}

Because of the trips to memory.
'''

BYTES_CHECKS = '''
"""Checks of the small lab."""

from helpers.grading.hidden import Hidden


def drawn(random):
    """Cases with edge points."""
    some = [random.integers(1, 9, size=int(random.integers(1, 5))).tolist() for _ in range(6)]
    return {"cases": [[[], "int8"], [[0, 3], "float32"], *([s, "float16"] for s in some)]}


def is_ratio(value, shapes, lab):
    """Any number near enough."""
    wanted = [lab.twice(4) / 2 for shape in shapes]
    good = len(value) == len(wanted) and all(abs(v - w) < 1e-6 for v, w in zip(value, wanted))
    return "" if good else "the ratio does not depend on the shape"


HIDDEN = {
    "q1": [
        Hidden(
            "whole numbers, small and large",
            probe="[twice(n) for n in numbers]",
            draw=lambda random: {"numbers": [0, -3, 10**30, *random.integers(1, 99, 4).tolist()]},
            timeout=1,
        )
    ],
    "q2": [
        Hidden(
            "shapes with up to four axes",
            probe="[count_bytes(tuple(shape), dtype) for shape, dtype in cases]",
            draw=drawn,
            weight=3,
            timeout=1,
        ),
        Hidden("a scalar", probe="count_bytes((), 'int8')", timeout=1),
    ],
    "q3": [
        Hidden(
            "several shapes",
            probe="[ratio(tuple(shape)) for shape in shapes]",
            draw=lambda random: {"shapes": [[1], random.integers(1, 9, 3).tolist()]},
            verify=is_ratio,
            timeout=1,
        )
    ],
    "q4": [Hidden("the number", probe="kernels", timeout=1)],
}
WRONG = {
    "q1": {
        "the square is not the double": {"n + n": "n * n"},
        "a number is taken for a list": {"return n + n": "return n.extend(n)"},
    },
    "q2": {
        "the axes are multiplied, not added": {
            "size = WIDTH[dtype]": "size = 0",
            "size = size * axis": "size = size + axis * WIDTH[dtype]",
        },
        "a scalar has one element": {"return size": "return size if shape else 0"},
    },
    "q3": {"one tensor is not two": {"twice(": "("}},
    "q4": {"fusion makes fewer kernels": {"31": "63"}},
}
OTHERS = {"q1": "def twice(n):\\n    return 2 * n"}
'''

RELAY_LAB = '''
# Lab 92 · Relay

```{code-cell}
from helpers import use_tvm

use_tvm("relay")
```

```{code-cell}
from tvm import relay

from helpers.grading import checks
```

```{code-cell}
:tags: [solution]

def chain(shape, length):
    """Some calls of exp, one on the other."""
    ### BEGIN SOLUTION
    x = y = relay.var("x", shape=shape)
    for _ in range(length):
        y = relay.exp(y)
    return relay.Function([x], y)
    ### END SOLUTION
```

```{code-cell}
:tags: [check]
:points: 3

checks.question("q1", chain, [("its parameters", lambda f: len(f((1,), 2).params), 1)])
```
'''

RELAY_CHECKS = '''
"""Checks of the small lab with Relay."""

from helpers.grading.hidden import Hidden


def is_chain(value, length):
    """Any function of that many calls."""
    from tvm import relay

    calls = []
    relay.analysis.post_order_visit(
        value, lambda node: calls.append(node) if isinstance(node, relay.Call) else None
    )
    return "" if len(calls) == length else "it has another number of calls"


HIDDEN = {
    "q1": [
        Hidden(
            "chains of several lengths",
            probe="[chain(tuple(shape), length) for shape, length in cases]",
            draw=lambda random: {"cases": [[[1, 8], 0], [[2], int(random.integers(3, 9))]]},
        ),
        Hidden(
            "a chain of two",
            probe="chain((4,), length)",
            draw=lambda random: {"length": 2},
            verify=is_chain,
        ),
    ]
}
WRONG = {"q1": {"the first call is missing": {"range(length)": "range(length - 1)"}}}
OTHERS = {}
'''

RELAX_LAB = '''
# Lab 93 · Relax

```{code-cell}
from helpers import use_tvm

use_tvm("relax")
```

```{code-cell}
import tvm
from tvm import relax

from helpers.grading import checks
from helpers.relax_ir import program

op = relax.op
```

```{code-cell}
:tags: [solution]

def chain(shape, length):
    """Some calls of exp, one on the other."""
    ### BEGIN SOLUTION
    def body(emit, x):
        for _ in range(length - 1):
            x = emit(op.exp(x))
        return op.exp(x)

    return program(body, shape)
    ### END SOLUTION
```

```{code-cell}
:tags: [check]
:points: 3

checks.question("q1", chain, [("its inputs", lambda f: len(f((1,), 2)["main"].params), 1)])
```
'''

RELAX_CHECKS = '''
"""Checks of the small lab with Relax."""

from helpers.grading.hidden import Hidden


def is_chain(value, length):
    """Any module of that many operators."""
    from helpers.relax_ir import operators

    return "" if operators(value) == length else "it has another number of calls"


HIDDEN = {
    "q1": [
        Hidden(
            "chains of several lengths",
            probe="[chain(tuple(shape), length) for shape, length in cases]",
            draw=lambda random: {"cases": [[[1, 8], 1], [[2], int(random.integers(3, 9))]]},
        ),
        Hidden(
            "a chain of two",
            probe="chain((4,), length)",
            draw=lambda random: {"length": 2},
            verify=is_chain,
        ),
    ]
}
WRONG = {"q1": {"the first call is missing": {"length - 1": "length - 2"}}}
OTHERS = {}
'''

LABS = {
    "91_bytes": (BYTES_LAB, BYTES_CHECKS),
    "92_relay": (RELAY_LAB, RELAY_CHECKS),
    "93_relax": (RELAX_LAB, RELAX_CHECKS),
}
RIGHT = {
    "q1": "def twice(n):\n    return n + n",
    "q2": "def count_bytes(shape, dtype):\n    size = WIDTH[dtype]\n"
    "    for axis in shape:\n        size *= axis\n    return size",
    "q3": "def ratio(shape):\n"
    "    return twice(count_bytes(shape, 'float32')) / count_bytes(shape, 'float16')",
    "q4": "kernels = 31",
}
FULL = {"q1": 2, "q2": 4, "q3": 1, "q4": 1}


def make_course(root: Path) -> Path:
    """Write and build the course; its root."""
    for name, (lab, checks) in LABS.items():
        folder = root / "solutions" / name
        folder.mkdir(parents=True)
        (folder / "lab.md").write_text(lab.lstrip())
        (folder / "checks.py").write_text(checks.lstrip())
    for page in find_pages(root):
        page.target.parent.mkdir(parents=True, exist_ok=True)
        page.target.write_text(as_text(read_page(page)))
    return root


@dataclass
class Case:
    """A submission to lab 91, and what it deserves.

    ``answers`` take the place of the right ones (``None``: the cell is gone). ``change`` alters the
    notebook, or gives the bytes of the file. ``says`` must be in the feedback on the first question
    that lost points, ``state`` is the state of that question.
    """

    name: str
    answers: dict[str, str | None] = field(default_factory=dict)
    points: dict[str, float] = field(default_factory=dict)
    change: object = None
    says: str = ""
    state: str = ""

    def expected(self) -> dict[str, float]:
        return {**FULL, **self.points}

    def data(self, blank: bytes) -> bytes:
        """The bytes of the notebook."""
        notebook = json.loads(blank)
        for cell in list(notebook["cells"]):
            source = {**RIGHT, **self.answers}.get(cell["id"], "")
            if source is None:
                notebook["cells"].remove(cell)
            elif source:
                cell["source"] = textwrap.dedent(source).splitlines(keepends=True)
        changed = self.change(notebook) if callable(self.change) else None
        return changed if isinstance(changed, bytes) else json.dumps(notebook).encode()


# --- honest ones ---------------------------------------------------------------------------------

BLANK = {
    "q1": 'def twice(n):\n    """2 n."""\n    # your code here\n'
    '    raise NotImplementedError("your code here")',
    "q2": 'def count_bytes(shape, dtype):\n    """Bytes of a tensor."""\n    # your code here\n'
    '    raise NotImplementedError("your code here")',
    "q4": "kernels = None  # your answer here",
}
NOTHING = dict.fromkeys(FULL, 0)

HONEST = [
    Case("right"),
    Case("of-another-kind", {"q1": "twice = lambda n: 2 * n", "q4": "kernels = int(62 / 2)"}),
    Case("numpy-numbers", {"q4": "import numpy as np\nkernels = np.int64(31)"}),
    Case(
        "noise",
        {"q1": "import sys\nprint('x' * 10000); print('e', file=sys.stderr)\n" + RIGHT["q1"]},
    ),
    Case("a-magic", {"q1": "%time 1 + 1\n" + RIGHT["q1"]}),
    Case("blank-q4", {"q4": BLANK["q4"]}, {"q4": 0}, state="not attempted"),
    Case("blank-q2", {"q2": BLANK["q2"]}, {"q2": 0, "q3": 0}, state="not attempted"),
    Case(
        "needs-a-blank-one",
        {"q1": BLANK["q1"], "q2": BLANK["q2"]},
        {"q1": 0, "q2": 0, "q3": 0},
        state="not attempted",
    ),
    Case(
        "a-known-mistake",
        {"q1": "def twice(n):\n    return n ** 2"},
        {"q1": 0, "q3": 0},
        says="A known mistake gives the same: the square is not the double.",
    ),
    Case(
        "a-known-mistake-that-raises",
        {"q1": "def twice(n):\n    n.extend(n)\n    return n"},
        {"q1": 0, "q3": 0},
        says="A known mistake raises the same: a number is taken for a list.",
    ),
    Case(
        "raises-the-same-class",
        {"q1": "def twice(n):\n    return n.double()"},
        {"q1": 0, "q3": 0},
        says="It raised AttributeError, in line 2 of the answer: return n.double()",
    ),
    Case(
        "half-of-a-question",
        {"q2": RIGHT["q2"].replace("size *= axis", "size += axis")},
        {"q2": 1, "q3": 0},
    ),
    Case(
        "syntax-error", {"q4": "kernels = 31)"}, {"q4": 0}, says="It raised SyntaxError, in line 1"
    ),
    Case(
        "raises",
        {"q4": "kernels = 1 // 0"},
        {"q4": 0},
        says="ZeroDivisionError, in line 1 of the answer: kernels = 1 // 0",
    ),
    Case("a-text-for-a-number", {"q4": "kernels = '31'"}, {"q4": 0}),
    Case("true-for-one", {"q1": "def twice(n):\n    return str(2 * n)"}, {"q1": 0, "q3": 0}),
    Case("returns-nothing", {"q1": "def twice(n):\n    n + n"}, {"q1": 0, "q3": 0}),
    Case("name-of-another-cell", {"q4": "kernels = count"}, {"q4": 0}, says="and no others"),
    Case(
        "endless-recursion",
        {"q4": "f = lambda: f()\nkernels = f()"},
        {"q4": 0},
        says="RecursionError",
    ),
    Case("missing-cell", {"q4": None}, {"q4": 0}, state="missing"),
]


def _extra_cell(source, name="q4"):
    def change(notebook):
        cell = next(cell for cell in notebook["cells"] if cell["id"] == name)
        notebook["cells"].append({**cell, "id": "copy", "source": source})

    return change


def _without_metadata(notebook):
    for cell in notebook["cells"]:
        cell["metadata"] = {}


def _hostile_metadata(notebook):
    notebook["metadata"]["kernelspec"] = {"name": "../../evil", "argv": ["touch", "/tmp/evil"]}
    notebook["metadata"]["language_info"] = {"name": "<script>alert(1)</script>"}
    for cell in notebook["cells"]:
        cell["metadata"]["tags"] = [{"a": 1}]


def _odd_cells(notebook):
    odd = [
        None,
        7,
        [],
        {},
        {"cell_type": "code"},
        {"cell_type": "code", "id": ["q4"], "metadata": 3},
    ]
    grades = [["q1"], {"q1": 1}, None, 3]
    odd += [
        {
            "cell_type": "code",
            "source": "1",
            "metadata": {"nbgrader": {"grade_id": g, "solution": True}},
        }
        for g in grades
    ]
    odd += [
        {
            "cell_type": "code",
            "source": {"a": 1},
            "metadata": {"nbgrader": {"grade_id": "q9", "solution": True}},
        }
    ]
    notebook["cells"] += odd


def _hostile_outputs(notebook):
    bomb = {
        "output_type": "display_data",
        "data": {"text/html": "<script>alert(1)</script>" * 1000},
    }
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            cell["outputs"] = [bomb]


def _raw(data):
    return lambda notebook: data


def _with(**changes):
    return lambda notebook: notebook.update(changes)


def _source(value):
    def change(notebook):
        next(cell for cell in notebook["cells"] if cell["id"] == "q4")["source"] = value

    return change


FILES = [
    Case("answered-twice", change=_extra_cell("kernels = 63"), points={"q4": 0}),
    Case("answered-twice-right-last", {"q4": "kernels = 63"}, change=_extra_cell("kernels = 31")),
    Case("no-metadata", change=_without_metadata),
    Case("hostile-metadata", change=_hostile_metadata),
    Case("odd-cells", change=_odd_cells),
    Case("hostile-outputs", change=_hostile_outputs),
    Case("byte-order-mark", change=lambda nb: b"\xef\xbb\xbf" + json.dumps(nb).encode()),
    Case("empty", points=NOTHING, change=_raw(b""), state="unreadable"),
    Case("not-json", points=NOTHING, change=_raw(b"print(1)"), state="unreadable"),
    Case("not-utf-8", points=NOTHING, change=_raw(b'{"cells": ["\xff\xfe"]}'), state="unreadable"),
    Case(
        "utf-16",
        points=NOTHING,
        change=lambda nb: json.dumps(nb).encode("utf-16"),
        state="unreadable",
    ),
    Case(
        "a-pickle",
        points=NOTHING,
        change=_raw(b"cos\nsystem\n(S'touch /tmp/evil'\ntR."),
        state="unreadable",
    ),
    Case("deep-json", points=NOTHING, change=_raw(b"[" * 200_000), state="unreadable"),
    Case("a-number", points=NOTHING, change=_raw(b"1" * 10_000), state="unreadable"),
    Case("old-format", points=NOTHING, change=_with(nbformat=3), state="unreadable"),
    Case("no-list-of-cells", points=NOTHING, change=_with(cells={"q1": 1}), state="unreadable"),
    Case(
        "gigantic",
        points=NOTHING,
        change=lambda nb: json.dumps(nb).encode() + b" " * 50_000_001,
        state="unreadable",
    ),
    Case("source-of-no-text", points={"q4": 0}, change=_source([1, 2]), state="missing"),
    Case("gigantic-answer", points={"q4": 0}, change=_source("#" * 100_001), state="missing"),
    Case("lone-surrogate", points={"q4": 0}, change=_source("kernels = '\ud800'")),
    Case("null-byte", points={"q4": 0}, change=_source("kernels = 31\0")),
]


# --- attempts to get points for wrong answers ----------------------------------------------------

WRONG_Q2 = "def count_bytes(shape, dtype):\n    return -1"


def _cheat(name, code, q1=2, q4=1, answer=RIGHT["q1"]):
    """The attack stands before the right answer to q1; the answer to q2 is wrong."""
    return Case(
        name,
        {"q1": textwrap.dedent(code) + "\n" + answer, "q2": WRONG_Q2},
        {"q1": q1, "q2": 0, "q3": 0, "q4": q4},
    )


CHEATS = [
    _cheat(
        "allclose-replaced",
        """
        import numpy as np
        np.allclose = np.array_equal = np.isclose = lambda *a, **k: True""",
    ),
    _cheat(
        "checks-replaced",
        """
        from helpers.grading import checks
        checks.agrees = checks._agrees = lambda *a, **k: True
        checks.judge = checks.question = lambda *a, **k: print("passed")""",
    ),
    _cheat("helpers-redefined", "known = lambda name: -1\nWIDTH = dict.fromkeys(WIDTH, -1)"),
    _cheat(
        "builtins-rebound",
        """
        import builtins
        builtins.all = builtins.any = lambda *a: True
        builtins.abs = builtins.round = builtins.max = lambda *a: 0""",
    ),
    _cheat("truth-rebound", "import builtins\nbuiltins.bool = lambda *a: True", q1=0, q4=0),
    _cheat(
        "eq-of-everything",
        """
        class Same(int):
            def __eq__(self, other): return True
            __hash__ = None
        kernels = Same(4)""",
        answer="def twice(n):\n    return Same(n + n)",
    ),
    Case(
        "always-equal",
        {"q4": "class Same:\n    def __eq__(self, o): return True\nkernels = Same()"},
        {"q4": 0},
    ),
    Case(
        "always-equal-number",
        {"q4": "class Same(int):\n    def __eq__(self, o): return True\nkernels = Same(4)"},
        {"q4": 0},
    ),
    Case(
        "always-equal-text",
        {"q4": "class Same(str):\n    def __eq__(self, o): return True\nkernels = Same('31')"},
        {"q4": 0},
    ),
    Case(
        "always-equal-array",
        {
            "q4": "import numpy as np\n"
            "class Same(np.ndarray):\n    def __eq__(self, o): return True\n"
            "kernels = np.zeros(1).view(Same)"
        },
        {"q4": 0},
    ),
    _cheat(
        "input-transformer",
        """
        def skip(lines): return ["pass\\n"]
        get_ipython().input_transformers_post.append(skip)
        get_ipython().input_transformers_cleanup.append(skip)""",
        q4=0,
    ),
    _cheat(
        "ast-transformer",
        """
        import ast
        class Skip(ast.NodeTransformer):
            def visit(self, node): return ast.parse("pass")
        get_ipython().ast_transformers.append(Skip())""",
    ),
    _cheat(
        "import-hook",
        """
        import sys, types
        class Hook:
            def find_spec(self, name, path=None, target=None): raise ImportError(name)
        sys.meta_path.insert(0, Hook())
        sys.modules["json"] = sys.modules["numpy"] = types.ModuleType("fake")""",
    ),
    _cheat(
        "encoder-replaced",
        """
        from helpers.grading import encoding
        encoding.dumps = lambda value: "4" """,
        q1=0,
        q4=0,
    ),
    _cheat(
        "runner-replaced",
        """
        import sys
        for module in list(sys.modules.values()):
            for name in ("_probe", "answer", "_judge"):
                if hasattr(module, name):
                    setattr(module, name, lambda *a: {"value": "4"})""",
    ),
    _cheat(
        "replies-forged",
        """
        import os, json
        for descriptor in range(3, 60):
            try: os.write(descriptor, b'{"value": "4"}\\n{"says": ""}\\n')
            except OSError: pass""",
    ),
    Case(
        "reply-forged-and-gone",
        {
            "q4": """
        import os
        for descriptor in range(3, 60):
            try: os.write(descriptor, b'{"value": "63"}\\n')
            except OSError: pass
        os._exit(0)"""
        },
        {"q4": 0},
    ),
    Case(
        "odd-replies",
        {
            "q4": """
        import os
        lines = b'{"error": [1], "in": {}}\\n{"at": "q1"}\\n{"at": 3}\\n[' + b"[" * 99999
        lines += b']\\n{"status": "done", "clean": true, "usable": true, "size": 99999999999}\\n'
        lines += b'\\xff\\xfe\\n{"value": {"a": 1}}\\n'
        for descriptor in range(3, 60):
            try: os.write(descriptor, lines)
            except OSError: pass
        os._exit(0)"""
        },
        {"q4": 0},
    ),
    Case(
        "error-forged",
        {
            "q4": """
        import os
        for descriptor in range(3, 60):
            try: os.write(descriptor, b'{"error": ["<b>"], "in": ["q4"], "line": [1]}\\n')
            except OSError: pass
        os._exit(0)"""
        },
        {"q4": 0},
    ),
    Case(
        "a-lie-about-where",
        {
            "q4": """
        import os
        for descriptor in range(3, 60):
            try: os.write(descriptor, b'{"at": "q1"}\\n')
            except OSError: pass
        os._exit(0)"""
        },
        {"q4": 0},
    ),
    Case(
        "gc-search",
        {
            "q4": """
        import gc
        def find():
            for thing in gc.get_objects():
                if isinstance(thing, dict) and ("expected" in thing or "mistakes" in thing):
                    return thing
        kernels = find() or 0"""
        },
        {"q4": 0},
    ),
    Case(
        "frame-search",
        {
            "q4": """
        import inspect
        found = [f.frame.f_locals for f in inspect.stack()]
        kernels = next((f["expected"] for f in found if "expected" in f), 0)"""
        },
        {"q4": 0},
    ),
    Case(
        "inputs-in-an-error",
        {
            "q1": """
        import inspect
        def twice(n):
            raise ValueError(str(inspect.stack()[2].frame.f_globals.get("numbers")))"""
        },
        {"q1": 0, "q3": 0},
        says="It raised ValueError, in line 4 of the answer: raise ValueError",
    ),
    Case(
        "inputs-in-the-name-of-an-error",
        {
            "q1": """
        def twice(n):
            raise type(f"Secret{n}", (Exception,), {})()"""
        },
        {"q1": 0, "q3": 0},
        says="It raised an exception of its own",
    ),
    Case("only-the-public-case", {"q1": "def twice(n):\n    return 2"}, {"q1": 0, "q3": 0}),
]


# --- attempts to do harm -------------------------------------------------------------------------


def _harm(name, code, says=""):
    """An answer to the last question that ends, blocks or floods its process."""
    return Case(name, {"q4": textwrap.dedent(code)}, {"q4": 0}, says=says)


HARM = [
    _harm("exit-0", "import os\nos._exit(0)", "has ended"),
    _harm("exit-1", "import os\nos._exit(1)", "has ended"),
    _harm("sys-exit", "import sys\nsys.exit(0)", "SystemExit"),
    _harm("quit", "quit()"),
    _harm("interrupt", "raise KeyboardInterrupt", "KeyboardInterrupt"),
    _harm("abort", "import os\nos.abort()", "SIGABRT"),
    _harm("segfault", "import ctypes\nctypes.string_at(0)", "SIGSEGV"),
    _harm("kill-itself", "import os\nos.kill(os.getpid(), 9)", "SIGKILL"),
    _harm("kill-all", "import os, time\nos.kill(1, 9); os.kill(-1, 9)\ntime.sleep(60)"),
    _harm("kill-the-group", "import os\nos.killpg(0, 9)", "SIGKILL"),
    _harm("stop-itself", "import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)", "did not end"),
    _harm("endless-loop", "while True: pass", "did not end"),
    _harm(
        "deaf-endless-loop",
        """
        import signal
        for number in range(1, 65):
            try: signal.signal(number, lambda *a: None)
            except (OSError, ValueError): pass
        while True:
            try:
                while True: pass
            except BaseException: pass""",
        "did not end",
    ),
    _harm("waits", "import time\ntime.sleep(1000)", "did not end"),
    _harm("asks", "kernels = input()"),
    _harm("debugger", "breakpoint()"),
    _harm("fork-bomb", "import os\nwhile True: os.fork()"),
    _harm(
        "stubborn-fork-bomb",
        """
        import os
        while True:
            try: os.fork()
            except OSError: pass""",
    ),
    _harm(
        "thread-bomb",
        """
        import threading, time
        while True: threading.Thread(target=time.sleep, args=(60,)).start()""",
    ),
    _harm("memory-hog", "hog = []\nwhile True: hog.append(bytearray(10**8))"),
    _harm(
        "shared-memory-hog",
        """
        import mmap
        hog = []
        while True:
            piece = mmap.mmap(-1, 10**8); piece.write(b"1" * 10**8); hog.append(piece)""",
    ),
    _harm("huge-array", "import numpy as np\nkernels = np.ones(10**7)", "graded"),
    _harm("huge-text", "kernels = 'x' * 9_000_000", "graded"),
    _harm("huge-number", "kernels = 10 ** 100_000"),
    _harm("flood-of-output", "while True: print('x' * 10**6)", "did not end"),
    _harm(
        "flood-of-replies",
        """
        import os
        while True:
            for descriptor in range(3, 20):
                try: os.write(descriptor, b"x" * 65536)
                except OSError: pass""",
    ),
    _harm("large-file", "open('x', 'wb').write(b'1' * 10**8)", "OSError"),
    _harm("full-disk", "for k in range(99): open(f'{k}', 'wb').write(b'1' * 10**7)", "OSError"),
    _harm("many-files", "for k in range(10**7): open(f'{k}', 'wb')", "more files"),
    _harm("all-closed", "import os\nos.closerange(0, 256)"),
    _harm(
        "stack-overflow",
        """
        import sys
        sys.setrecursionlimit(10**9)
        f = lambda: f()
        f()""",
    ),
    _harm("pickle-value", "import pickle\nkernels = pickle.dumps(31)", "graded"),
    _harm(
        "reduce",
        """
        class Evil:
            def __reduce__(self): return (print, ("evil",))
        kernels = Evil()""",
        "graded",
    ),
    _harm(
        "deep-value",
        """
        kernels = 31
        for _ in range(50_000): kernels = [kernels]""",
    ),
    _harm("value-in-itself", "kernels = []\nkernels.append(kernels)"),
    _harm(
        "endless-value",
        """
        class Endless(dict):
            def __iter__(self):
                while True: yield 1
            def __getitem__(self, key): return 1
            def __len__(self): return 1
        kernels = Endless(a=1)""",
    ),
    _harm(
        "number-that-raises",
        """
        import numbers
        class Odd(float):
            def __float__(self): raise SystemExit
            def __repr__(self): return "<script>"
        kernels = Odd(31)""",
    ),
    _harm("script-in-the-source", "kernels = '</td><script>alert(1)</script>'[99]", "IndexError"),
]

# Each of these gives the right number only when the wall that it tries stands.
WALLS = {
    "no-solutions": "not any(os.path.exists(p) for p in ('{root}/solutions', '{root}/labs'))",
    "no-host-files": "not any(map(os.path.exists, ('/etc/passwd', '/var', '/opt')))",
    "no-checkout": "sorted(os.listdir('{checkout}')) == ['.deps', '.state', '.venv', 'helpers']",
    "no-network": "blocked(lambda: socket.create_connection(('192.0.2.1', 80), 1))",
    "no-loopback-service": "blocked(lambda: socket.create_connection(('127.0.0.1', {port}), 1))",
    "no-abstract-sockets": "blocked(lambda: unix(chr(0) + '{port}'))",
    "no-socket-to-the-host": "libc.socket(40, 1, 0) == -1 and ctypes.get_errno() == errno.EPERM",
    "no-kernel-cryptography": "libc.socket(38, 5, 0) == -1 and ctypes.get_errno() == errno.EPERM",
    "sockets-of-its-own": "all(socket.socket(family) for family in (1, 2, 10))",
    "no-other-process": "sum(map(str.isdigit, os.listdir('/proc'))) == 2",
    "no-memory-of-the-parent": "blocked(lambda: open('/proc/1/mem', 'rb').read(1))",
    "no-environment-of-the-parent": "blocked(lambda: open('/proc/1/environ').read())",
    "no-files-of-the-parent": "blocked(lambda: os.listdir('/proc/1/fd'))",
    "no-variables": "not any(word in repr(os.environ) for word in ('SECRET', 'TOKEN', 'GRADER'))",
    "read-only-helpers": "blocked(lambda: open('{checkout}/helpers/evil.py', 'w'))",
    "read-only-packages": "blocked(lambda: open(os.__file__, 'a'))",
    "read-only-root": "blocked(lambda: os.mkdir('/evil'))",
    "read-only-devices": "blocked(lambda: open('/dev/evil', 'w'))",
    "no-devices": "not any(map(os.path.exists, ('/dev/mem', '/dev/kmsg', '/dev/vda', '/dev/sda')))",
    "not-root": "os.getuid() != 0 and blocked(lambda: os.setuid(0))",
    "no-namespaces": "libc.unshare(0x10000000) == -1",
    "no-namespaces-by-clone": "libc.syscall(56, 0x10000000 | 17, 0, 0, 0, 0) == -1",
    "no-trace": "libc.ptrace(16, 1, 0, 0) == -1",
    "no-mounts": "libc.mount(b'none', b'/tmp', b'tmpfs', 0, 0) == -1",
    "no-shared-memory": "libc.shmget(7, 4096, 0o1666) == -1",
    "no-keys": "libc.syscall(250, 0, -3, 0) == -1",
    "no-chroot": "blocked(lambda: os.chroot('/tmp'))",
    "killing-the-parent-does-nothing": "[os.kill(1, n) for n in range(65)] and os.getppid() == 1",
    "nobody-was-here": "not os.path.exists('seen') and bool(open('seen', 'w'))",
    "no-links-out": "not os.symlink('/etc/passwd', 'l') and blocked(lambda: open('l'))",
}
WALL = """
import ctypes, errno, os, socket
libc = ctypes.CDLL(None, use_errno=True)

def blocked(act):
    try: act()
    except OSError: return True
    return False

def unix(name):
    socket.socket(socket.AF_UNIX).connect(name)

kernels = 31 if ({condition}) else 0
"""


def walls(root: Path, checkout: Path, port: int) -> list[Case]:
    """A case for each wall of the sandbox."""
    places = {"root": root, "checkout": checkout, "port": port}
    return [
        Case(f"wall-{name}", {"q4": WALL.format(condition=condition.format(**places))})
        for name, condition in WALLS.items()
    ]


ORPHANS = [
    Case(
        "orphan",
        {
            "q4": """
        import os, time
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                while True: time.sleep(1)
            os._exit(0)
        kernels = 31"""
        },
    ),
    Case(
        "orphan-that-writes",
        {
            "q4": """
        import os, time
        if os.fork() == 0:
            while True:
                for d in range(3, 20):
                    try: os.write(d, b"junk\\n[]\\n")
                    except OSError: pass
                time.sleep(0.01)
        kernels = 31"""
        },
    ),
    Case(
        "locked-folder",
        {"q1": "import os\nos.makedirs('a/b')\nos.chmod('a', 0)\n" + RIGHT["q1"]},
    ),
    Case(
        "deep-folders",
        {
            "q1": """
        import os
        for _ in range(900):
            os.mkdir("d"); os.chdir("d")
        """
            + "\n"
            + textwrap.indent(RIGHT["q1"], " " * 8)
        },
    ),
    Case("harmful-q1-only", {"q1": "while True: pass"}, {"q1": 0, "q3": 0}, says="did not end"),
    Case(
        "crashing-function",
        {"q1": "import os\ndef twice(n): os.abort()"},
        {"q1": 0, "q3": 0},
        says="SIGABRT",
    ),
]
"""Those that leave something behind; the right answers in them count."""

CASES = HONEST + FILES + CHEATS + HARM + ORPHANS

NAMES = [
    "=cmd|' C calc'!A0",
    "<script>alert(1)<script>",
    "<b>\"&amp;'",
    "..evil",
    "two\nlines",
    'comma,quote"',
    "Zoë Ångström 李",
    "x" * 200,
    b"not-\xff-utf8".decode("utf-8", "surrogateescape"),
    "-rf",
]
"""Names of students, each with a right submission."""


# --- the lab with Relay: submission, points ------------------------------------------------------

_CHAIN = """
def chain(shape, length):
    y = x = relay.var({name}, shape=shape)
    for _ in range({times}):
        y = relay.exp(y)
    return relay.Function([x], y)
"""
RELAY = {
    "right": (_CHAIN.format(name="'x'", times="length"), 3),
    "other-names": (_CHAIN.format(name="'data'", times="length"), 3),
    "one-less": (_CHAIN.format(name="'x'", times="length - 1"), 0),
    "always-two": (_CHAIN.format(name="'x'", times="2"), 1.5),
    "no-relay": ("chain = lambda shape, length: 'fn (%x) {}'", 0),
    "another-object": ("import tvm\nchain = lambda shape, length: tvm.target.Target('llvm')", 0),
    "numbers": ("chain = lambda shape, length: [1, 2]", 0),
    "garbage": (
        "from helpers.grading.encoding import RelayText\n"
        'chain = lambda shape, length: RelayText(\'{"root": 99, "nodes": [{}]}\')',
        0,
    ),
}

_CHAIN_OF_RELAX = """
def chain(shape, length):
    builder = relax.BlockBuilder()
    x = y = relax.Var({name}, relax.TensorType(shape, "float32"))
    with builder.function("main", [x]):
        for _ in range({times}):
            y = builder.emit(op.exp(y))
        builder.emit_func_output(builder.emit(y))
    return builder.get()
"""
_PACKED = """
def chain(shape, length):
    from tvm_ffi import register_global_func

    register_global_func("its.own", lambda x: x, override=True)
    kind = relax.TensorType(shape, "float32")
    call = lambda emit, x: op.call_pure_packed("its.own", x, ty_args=kind)
    return program(call, shape)
"""
_LISTED = (
    "from helpers.grading.encoding import RelaxListing\n"
    "chain = lambda shape, length: RelaxListing({})"
)

# Answers to lab 93, and their points.
RELAX = {
    "right": (_CHAIN_OF_RELAX.format(name="'x0'", times="length"), 3),
    "other-names": (_CHAIN_OF_RELAX.format(name="'data'", times="length"), 3),
    "one-less": (_CHAIN_OF_RELAX.format(name="'x'", times="length - 1"), 0),
    "always-two": (_CHAIN_OF_RELAX.format(name="'x'", times="2"), 1.5),
    "no-relax": ("chain = lambda shape, length: 'def main(x): ...'", 0),
    "another-object": ("chain = lambda shape, length: tvm.target.Target('llvm')", 0),
    "a-function-of-its-own": (_PACKED, 0),
    "forged": (
        _LISTED.format(
            '{"inputs": [["x", [4], "float32"]], "result": ["var", 1],'
            ' "lines": [["call", "relax.call_pure_packed", [["var", 0]], {}]]}'
        ),
        0,
    ),
    "garbage": (_LISTED.format("[1, 2]"), 0),
    "ends-its-process": (
        "chain = lambda shape, length: tvm.ir.save_json(program(lambda emit, x: op.exp(x), shape))",
        0,
    ),
}


def write_zip(path: Path, data: bytes) -> None:
    """A zip file with the notebook at a place outside, and once at a proper one."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("../../../tmp/91_bytes.ipynb", b"evil")
        archive.writestr("/labs/91_bytes/91_bytes.ipynb", data)
        archive.writestr("__MACOSX/91_bytes.ipynb", b"evil")


def write_zip_bomb(path: Path) -> None:
    """A small zip file whose notebook is very large."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("91_bytes.ipynb", b" " * 300_000_000)
