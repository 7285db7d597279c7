"""Relax functions as plain values: what is listed comes back the same, and nothing else comes in.

All of it runs in processes that have chosen Relax; what is printed there is compared here.
"""

import textwrap

import pytest

from helpers.tvm_builds import run_with

pytestmark = pytest.mark.usefixtures("relay")

HEAD = """
import random
import numpy as np
import tvm
from tvm import relax, tirx
from helpers import targets
from helpers.grading import encoding, relax_listing
from helpers.grading.relax_listing import OPERATORS, ListingError, listed, rebuilt
from helpers.relax_ir import program

op = relax.op

def there_and_back(module):
    return encoding.with_programs(encoding.loads(encoding.dumps(module)))

def written(module):
    return encoding.dumps(listed(module))

def values(module, *inputs):
    target = targets.resolve("teaching")
    built = relax.build(module, target, relax_pipeline=relax.get_default_pipeline(target))
    found = relax.VirtualMachine(built, tvm.cpu())["main"](*map(tvm.runtime.tensor, inputs))
    return [tensor.numpy() for tensor in (found if hasattr(found, "__len__") else [found])]

def refused(act):
    try:
        act()
    except (ListingError, encoding.NotAValueError) as error:
        return str(error)
"""


def relax(source: str) -> list[str]:
    """The lines that this source prints in a process that has chosen Relax."""
    return run_with("relax", HEAD + textwrap.dedent(source)).splitlines()


def test_every_operator_comes_back_with_the_same_values():
    lines = relax("""
        def body(emit, x, y, b, i, image, kernel):
            j = emit(op.add(i, relax.const(2, "int32")))
            some = {
                "astype": [op.astype(x, "float16")],
                "broadcast_to": [op.broadcast_to(x, (4, 2, 3))],
                "clip": [op.clip(x, 0.2, 0.5)],
                "concat": [op.concat([x, y], axis=1)],
                "expand_dims": [op.expand_dims(x, [0, 2])],
                "flip": [op.flip(x, axis=1)],
                "matmul": [op.matmul(x, op.permute_dims(y), out_dtype="float32")],
                "nn.conv2d": [
                    op.nn.conv2d(image, kernel, strides=2, padding=[0, 1, 1, 0], dilation=2),
                    op.nn.conv2d(image, emit(op.reshape(kernel, (3, 1, 3, 4))), groups=3),
                ],
                "nn.leakyrelu": [op.nn.leakyrelu(x, 0.3)],
                "nn.log_softmax": [op.nn.log_softmax(x, axis=0)],
                "nn.softmax": [op.nn.softmax(x, axis=0)],
                "permute_dims": [op.permute_dims(x), op.permute_dims(image, [0, 2, 3, 1])],
                "repeat": [op.repeat(x, 2, axis=1)],
                "reshape": [op.reshape(x, (3, -1)), op.reshape(x, (6,))],
                "squeeze": [op.squeeze(image, [0]), op.squeeze(image)],
                "stack": [op.stack([x, y], axis=1)],
                "tile": [op.tile(x, (2, 1))],
                "where": [op.where(b, x, y)],
                "logical_not": [op.logical_not(b)],
            }
            for name in ("argmax", "argmin"):
                some[name] = [getattr(op, name)(x, axis=1, keepdims=True)]
            for name in ("max", "mean", "min", "prod", "std", "sum", "variance"):
                some[name] = [getattr(op, name)(x, axis=[0]), getattr(op, name)(x, keepdims=True)]
            for name in ("floor_divide", "mod"):
                some[name] = [getattr(op, name)(j, i)]
            for name in ("logical_and", "logical_or", "logical_xor"):
                some[name] = [getattr(op, name)(b, emit(op.logical_not(b)))]
            for name in ("add", "divide", "equal", "greater", "greater_equal", "less", "less_equal",
                         "maximum", "minimum", "multiply", "not_equal", "power", "subtract"):
                some[name] = [getattr(op, name)(x, y)]
            names = {name.removeprefix("relax.") for name in OPERATORS}
            print(sorted(some.keys() - names))
            for name in sorted(names - some.keys()):
                made = op.nn if name.startswith("nn.") else op
                some[name] = [getattr(made, name.removeprefix("nn."))(x)]
            found = [emit(call) for calls in some.values() for call in calls]
            return relax.Tuple([emit(op.astype(found[0], "float32")), *found])

        float32 = "float32"
        kinds = [((2, 3), float32), ((2, 3), float32), ((2, 3), "bool"), ((2, 3), "int32"),
                 ((1, 3, 6, 6), float32), ((2, 3, 3, 2), float32)]
        builder = relax.BlockBuilder()
        inputs = [relax.Var(f"v{k}", relax.TensorType(*kind)) for k, kind in enumerate(kinds)]
        with builder.function("main", inputs):
            with builder.dataflow():
                found = builder.emit_output(body(builder.emit, *inputs))
            builder.emit_func_output(found)
        module = builder.get()
        called = {line[1] for line in listed(module)["lines"] if line[0] == "call"}
        print(sorted(OPERATORS - called))
        again = there_and_back(module)
        print(written(again) == written(module))
        rng = np.random.default_rng(0)
        arrays = [rng.uniform(0.1, 0.9, shape).astype(float32) if kind == float32
                  else rng.integers(1 if kind == "int32" else 0, 2, shape).astype(kind)
                  for shape, kind in kinds]
        one, other = values(module, *arrays), values(again, *arrays)
        print(len(one) == len(other) > len(OPERATORS))
        print(all(a.dtype == b.dtype and np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
                  for a, b in zip(one, other)))
    """)
    assert lines == ["[]", "[]", "True", "True", "True"]


def test_random_programs_come_back_and_their_copies_compute_the_same():
    """Lengths with names, values used again, constants, tuples and their fields."""
    lines = relax("""
        def drawn(draw):
            n, width = tirx.Var("n", "int64"), draw.randint(1, 4)

            def body(emit, x, y):
                values = [x, y]
                for _ in range(draw.randint(1, 9)):
                    kind = draw.choice(["exp", "tanh", "negative", "add", "multiply", "const",
                                        "tuple", "name"])
                    a, b = draw.choice(values), draw.choice(values)
                    if kind in ("add", "multiply"):
                        values.append(emit(getattr(op, kind)(a, b)))
                    elif kind == "const":
                        c = np.float32([draw.uniform(-1, 1) for _ in range(width)])
                        values.append(emit(op.maximum(a, relax.const(c))))
                    elif kind == "tuple":
                        values.append(emit(relax.TupleGetItem(emit(relax.Tuple([a, b])), 1)))
                    elif kind == "name":
                        values.append(emit(a))
                    else:
                        values.append(emit(getattr(op, kind)(a)))
                return op.concat([values[-1], draw.choice(values)], axis=0)

            return program(body, (n, width), (n, width)), width

        wrong = []
        for seed in range(60):
            module, width = drawn(random.Random(seed))
            again = there_and_back(module)
            same = written(module) == written(again)
            if seed % 12 == 0:
                x, y = np.random.default_rng(seed).uniform(-1, 1, (2, 3, width)).astype("float32")
                same = same and np.array_equal(values(module, x, y)[0], values(again, x, y)[0])
            if not same:
                wrong.append(seed)
        print(wrong)
    """)
    assert lines == ["[]"]


def test_names_of_variables_do_not_count_and_all_else_does():
    lines = relax("""
        def listing(operator, shape=(2, 3), constant=1.0, axis=1):
            def body(emit, x):
                return op.sum(emit(operator(x, relax.const(constant))), axis=axis)
            return encoding.loads(encoding.dumps(program(body, shape)))

        base = listing(op.add)
        named = encoding.RelaxListing({**base.tree, "inputs": [["other", [2, 3], "float32"]]})
        print(base == named, hash(base) == hash(named))
        print([base == other for other in (
            listing(op.multiply), listing(op.add, (3, 3)), listing(op.add, constant=2.0),
            listing(op.add, axis=0))])
    """)
    assert lines == ["True True", "[False, False, False, False]"]


def test_what_is_no_list_of_operators_is_not_written():
    lines = relax("""
        kind = relax.TensorType((3,), "float32")
        x = relax.Var("x", kind)
        packed = lambda emit, x: op.call_pure_packed("f", x, ty_args=kind)
        exp = program(lambda emit, x: op.exp(x), (3,))
        legal = relax.transform.LegalizeOps()(exp)
        two = tvm.IRModule({"main": exp["main"], "other": exp["main"]})
        condition = relax.Var("c", relax.TensorType((), "bool"))
        builder = relax.BlockBuilder()
        with builder.function("main", [condition, x]):
            builder.emit_func_output(builder.emit(relax.If(condition, x, x)))
        for value in (program(packed, (3,)), legal, two, builder.get(),
                      program(lambda emit, x: op.take(x, relax.const([0])), (3,)),
                      tvm.IRModule({}), legal["tir_exp"]):
            print(refused(lambda: encoding.dumps(value)))
        print(refused(lambda: listed(3)))
    """)
    assert lines == [
        "a call of relax.call_pure_packed cannot be graded",
        "a module with the functions ['main', 'tir_exp']: main alone can be graded",
        "a module with the functions ['main', 'other']: main alone can be graded",
        "If cannot be graded",
        "a call of relax.take cannot be graded",
        "a module with the functions []: main alone can be graded",
        "PrimFunc is no Relax function or module",
        "int is no Relax function or module",
    ]


def test_what_is_no_listing_is_refused_whatever_it_is():
    """Parts of a listing are replaced by others and by junk: a module comes out, or one error."""
    lines = relax("""
        n = tirx.Var("n", "int64")
        module = program(
            lambda emit, x, y: op.reshape(
                emit(op.add(emit(op.exp(x)), relax.const(2.0))), (n, 1, 2)),
            (n, 2), (n * 2, 2))
        good = listed(module)
        junk = [None, True, -1, 0, 10**18, 2.5, "", "x", "relax.exp", "relax.call_pure_packed",
                "__class__", "nn.relu.__globals__", [], {}, ["var", 99], ["var", 0], ["call"],
                ["call", "relax.exp", [["var", 0]], {"axis": 1}], ["constant", [1]], ["tuple", 3],
                ["item", ["var", 0], 5], ["shape", ["Add"]], ["number", "x", "int64"],
                np.zeros((2, 2), "float32"), np.array("text"), ["Add", "0", -3]]

        def places(tree, path=()):
            yield path
            if isinstance(tree, (list, dict)):
                for key in (range(len(tree)) if isinstance(tree, list) else tree):
                    yield from places(tree[key], (*path, key))

        def replaced(tree, path, new):
            if not path:
                return new
            copy = dict(tree) if isinstance(tree, dict) else list(tree)
            copy[path[0]] = replaced(tree[path[0]], path[1:], new)
            return copy

        accepted, told = 0, set()
        for path in places(good):
            for new in junk:
                tree = replaced(good, path, new)
                try:
                    made = rebuilt(tree)
                    accepted += 1
                    listed(made)
                except ListingError as error:
                    told.add(str(error))
        print(accepted > 20, sorted(told))
        print(refused(lambda: encoding.RelaxListing({"lines": []}).expression()))
    """)
    assert lines[0].startswith("True ")
    assert "the listing of no Relax function" in lines[0]
    assert lines[1] == "not the listing of a Relax program"
