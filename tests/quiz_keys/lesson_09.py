"""The graph executor: its list, its memory, its plan."""

import json
from functools import cache

import numpy as np
import tvm
from proofs import Finding, cells, proof, works
from small import ALONE, built, chain, choice, parsed
from tvm import relay
from tvm.contrib import graph_executor

from helpers import build, modules, storage
from helpers.targets import TEACHING_CPU as CPU

DEVICE = tvm.cpu()


@cache
def with_a_reshape():
    """reshape(exp(x) times 2 W): the library that relay.build makes, and its graph JSON."""
    x, ones = relay.var("x", shape=(4, 8)), relay.const(np.ones((6, 8), "float32"))
    doubled = relay.multiply(relay.const(np.float32(2)), ones)
    y = relay.nn.softmax(relay.reshape(relay.nn.dense(relay.exp(x), doubled), (6, 4)))
    library = relay.build(modules.typed(relay.Function([x], y)), CPU)
    return library, json.loads(library.get_graph_json())


def in_another_order():
    """tanh(exp(x)) by a graph JSON whose list has tanh first: is the result right?"""
    with tvm.transform.PassContext(config=ALONE):
        library = relay.build(modules.typed(chain_of_two()), CPU)
    graph = json.loads(library.get_graph_json())
    (x, first, second), attrs = graph["nodes"], graph["attrs"]
    graph["nodes"] = [x, second | {"inputs": [[2, 0, 0]]}, first | {"inputs": [[0, 0, 0]]}]
    graph["heads"] = [[1, 0, 0]]
    ids = attrs["storage_id"][1]
    ids[1], ids[2] = ids[2], ids[1]
    executor = graph_executor.create(json.dumps(graph), library.get_lib(), DEVICE)
    results = []
    for value in (0.0, 1.0):  # the second run reads what the first one has left
        executor.run(x=np.full(16, value, "float32"))
        results.append(np.allclose(executor.get_output(0).numpy(), np.tanh(np.exp(value))))
    return results[-1]


def chain_of_two():
    x = relay.var("x", shape=(16,))
    return relay.Function([x], relay.tanh(relay.exp(x)))


@proof("09-1", "712290f7")
def what_the_json_says() -> Finding:
    library, graph = with_a_reshape()
    kernels = [node for node in graph["nodes"] if node["op"] == "tvm_op"]
    reshaped = next(
        n for n, k in enumerate(graph["nodes"]) if k.get("name", "").startswith("reshape")
    )
    (source, _, _) = graph["nodes"][reshaped]["inputs"][0]
    ids = graph["attrs"]["storage_id"][1]
    weight = library.get_params()["p0"].numpy()
    return {
        "A Each `tvm_op` node": all(k["attrs"]["func_name"] != "__nop" for k in kernels),
        "B A product of two constants": bool(np.all(weight == 2))
        and not any("multiply" in k["name"] for k in kernels),
        "C Two entries with one storage id": ids[reshaped] == ids[source]
        and graph["nodes"][reshaped]["attrs"]["func_name"] == "__nop",
        "D It is a set of operators": in_another_order(),
    }


@proof("09-2", "a9bd3785")
def peak_of_liveness() -> Finding:
    body = "let %a = exp(%x); let %b = tanh(%a); let %c = sum(%b); %a + %c"
    return storage.plan(build.compile(parsed(body))).peak_bytes


@proof("09-3", "1c58871c")
def two_free_pools() -> Finding:
    kilobytes = {name: f"%{name}: Tensor[({256 * size}), float32]" for name, size in
                 {"x": 64, "y": 8, "z": 4, "w": 64}.items()}  # fmt: skip
    program = parsed(
        "let %large = exp(%x); let %middle = exp(%y); let %a = sum(%large); let %b = sum(%middle);"
        "let %small = exp(%z); let %c = sum(%z); let %last = exp(%w); let %d = sum(%last);"
        "(%small, %a, %b, %c, %d)",
        ", ".join(kilobytes.values()),
    )
    plan = storage.plan(build.compile(program))
    large, middle, small, last = (t for t in plan.tensors if t.bytes >= 4096)
    assert (large.bytes, middle.bytes, small.bytes, last.bytes) == (65536, 8192, 4096, 65536)
    assert max(large.last, middle.last) < small.first == last.first - 2
    old = {large.pool, middle.pool}
    return {
        "A The small tensor takes the 8 KB pool": small.pool == middle.pool
        and last.pool == large.pool,
        "B The small tensor takes the 64 KB pool, and the large": small.pool == large.pool
        and last.pool not in old,
        "C The small tensor gets a new pool": small.pool not in old,
        "D The small tensor takes the 64 KB pool, and it moves": small.pool == large.pool
        and last.pool == large.pool,
    }


@proof("09-4", "839ed355")
def planned_and_peak() -> Finding:
    names = cells("09", "setup", "lifetimes-prediction", "lifetimes-computed", "tvm-rule",
        "block-prediction", "block-planned")  # fmt: skip
    wide = names["plan"](names["block"](16, 16))
    plans = [wide, storage.plan(built("mlp")), storage.plan(built("voice_activity"))]
    other = names["tvm_rule"](wide.tensors, 4)
    assert not storage.conflicts(wide.tensors, other)
    late, early = (names["toys"][name] for name in ("late", "early"))
    assert sorted(t.bytes for t in late.tensors) == sorted(t.bytes for t in early.tensors)
    return {
        "A P is never below L": all(plan.planned_bytes >= plan.peak_bytes for plan in plans),
        "B TVM's P is always within a few": all(
            p.planned_bytes < 1.1 * p.peak_bytes for p in plans
        ),
        "C P can be lowered": sum(storage.pool_sizes(wide.tensors, other)) < wide.planned_bytes,
        "D L depends on the order": late.peak_bytes != early.peak_bytes,
    }


@proof("09-5", "3f6bedae")
def decided_in_advance() -> Finding:
    library, graph = with_a_reshape()
    entries, ids = graph["node_row_ptr"][-1], graph["attrs"]["storage_id"][1]
    vm = relay.vm.compile(modules.typed(chain_of_two()), CPU)
    assert hasattr(vm, "bytecode")
    return {
        "A Which kernel runs": not in_another_order(),
        "B In which block of memory": len(ids) == entries,
        "C Which of two branches": works(lambda: build.compile(choice())),
        "D In which way bytecode": hasattr(library, "bytecode"),
    }


@proof("09-7", "969fbcb1")
def all_results_over_planned() -> Finding:
    plan = storage.plan(build.compile(chain(10, 1000), config=ALONE))
    assert plan.total_bytes == 10 * 4000
    return plan.total_bytes / plan.planned_bytes
