"""The memory plan: by hand, by another route over the same JSON, and on random graphs."""

import json
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers import WorkbookError, build, fusion, plots, storage, zoo
from helpers.targets import TEACHING_CPU

CHEAP = [
    ("mlp", {}),
    ("file_type", {}),
    ("voice_activity", {}),
    ("encoder", {"layers": 1, "hidden": 64, "length": 12}),
]


def built(body, *params):
    """Each operator a kernel of its own."""
    from tvm import relay

    config = {"relay.FuseOps.max_depth": 1}
    return build.compile(relay.Function(list(params), body), "graph", config=config)


def chain(length, elements=1000):
    from tvm import relay

    x = relay.var("x", shape=(elements,))
    y = x
    for _ in range(length):
        y = relay.tanh(y)
    return x, y


# --- by hand -------------------------------------------------------------------------------------


def test_a_chain_needs_two_pools(relay):
    x, y = chain(6)
    plan = storage.plan(built(y, x))
    assert [(t.first, t.last) for t in plan.tensors] == [
        (0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 5),
    ]  # fmt: skip
    assert [t.pool for t in plan.tensors] == [0, 1, 0, 1, 0, 1]
    assert [t.is_output for t in plan.tensors] == [False] * 5 + [True]
    assert plan.pools == (4000, 4000)
    assert (plan.total_bytes, plan.planned_bytes, plan.peak_bytes) == (24000, 8000, 8000)
    assert plan.alive == (4000, *[8000] * 5)
    assert plan.peak_step == 1
    assert (plan.input_bytes, plan.parameter_bytes) == (4000, 0)


def test_a_value_that_is_used_again_stays(relay):
    x, first = chain(1)
    y = first
    for _ in range(4):
        y = relay.tanh(y)
    plan = storage.plan(built(y + first, x))
    assert (plan.tensors[0].first, plan.tensors[0].last) == (0, 5)
    assert (plan.total_bytes, plan.planned_bytes, plan.peak_bytes) == (24000, 12000, 12000)


def test_pools_are_as_large_as_their_largest_tensor(relay):
    """Rows shrink from 32 to 1: TVM takes a third pool for the result, 4000 bytes over the peak."""
    x = relay.var("x", shape=(32, 1000))
    y = relay.tanh(x)
    for rows in (16, 8, 4, 2, 1):
        y = relay.tanh(relay.strided_slice(y, [0, 0], [rows, 1000]))
    plan = storage.plan(built(y, x))
    sizes = [4000 * rows for rows in (32, 16, 16, 8, 8, 4, 4, 2, 2, 1, 1)]
    assert [t.bytes for t in plan.tensors] == sizes
    assert plan.total_bytes == sum(sizes)
    assert plan.peak_bytes == 4000 * (32 + 16)
    assert plan.planned_bytes == 196000


def test_a_reshape_is_another_name(relay):
    x, y = chain(1, elements=24)
    body = relay.tanh(relay.reshape(y, (2, 12)))
    plan = storage.plan(built(relay.Tuple([body, y]), x))
    assert len(plan.kernels) == len(plan.tensors) == 2
    assert (plan.tensors[0].last, plan.tensors[0].is_output) == (1, True)
    assert plan.peak_bytes == 2 * 24 * 4


def test_a_kernel_with_several_results(relay):
    x = relay.var("x", shape=(6, 10))
    parts = relay.split(x, 3, axis=0)
    plan = storage.plan(built(relay.exp(parts[1]), x))
    split, last = plan.tensors[:3], plan.tensors[3]
    assert [(t.first, t.last, t.bytes) for t in split] == [(0, 0, 80), (0, 1, 80), (0, 0, 80)]
    assert plan.alive == (240, 160)
    assert last.is_output
    assert not storage.conflicts(plan.tensors, [t.pool for t in plan.tensors])


def test_dtypes_have_their_sizes(relay):
    x = relay.var("x", shape=(10,))
    plan = storage.plan(built(relay.cast(relay.greater(x, relay.const(0.0)), "int8"), x))
    assert [(t.dtype, t.bytes) for t in plan.tensors] == [("bool", 10), ("int8", 10)]


# --- real models ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "options"), CHEAP)
def test_plan_of_a_model_by_another_route(relay, name, options):
    """Play the JSON: a pool holds what was written last; whatever is read must still be there."""
    model = zoo.load(name, **options)
    made = build.compile(model, "graph")
    plan = storage.plan(made)
    graph = json.loads(made.library.get_graph_json())
    rows, ids = graph["node_row_ptr"], graph["attrs"]["storage_id"][1]
    holds, name_of, sizes, kernels, inputs = {}, {}, {}, 0, set()
    shapes, dtypes = graph["attrs"]["shape"][1], graph["attrs"]["dltype"][1]
    for index, node in enumerate(graph["nodes"]):
        read = [rows[source] + output for source, output, _ in node["inputs"]]
        for entry in range(rows[index], rows[index + 1]):
            bits = np.dtype(dtypes[entry].replace("uint1", "bool")).itemsize
            size = bits * int(np.prod(shapes[entry]))
            if node["op"] == "null":
                inputs.add(ids[entry])
            elif node["attrs"]["func_name"] == "__nop":
                assert ids[entry] == ids[read[0]]
                name_of[entry] = name_of.get(read[0], read[0])
            else:
                sizes[ids[entry]] = max(sizes.get(ids[entry], 0), size)
        for entry in read:
            entry = name_of.get(entry, entry)
            assert holds.get(ids[entry], entry) == entry
        if node["op"] == "null" or node["attrs"]["func_name"] != "__nop":
            for entry in range(rows[index], rows[index + 1]):
                holds[ids[entry]] = entry
            kernels += node["op"] != "null"
    for source, output, _ in graph["heads"]:
        entry = name_of.get(rows[source] + output, rows[source] + output)
        assert holds[ids[entry]] == entry
    assert plan.planned_bytes == sum(size for pool, size in sizes.items() if pool not in inputs)
    assert list(plan.kernels) == made.kernels
    assert len(plan.kernels) == kernels
    assert not storage.conflicts(plan.tensors, [t.pool for t in plan.tensors])
    assert plan.parameter_bytes == made.sizes["parameters"]
    assert plan.input_bytes == sum(a.nbytes for a in model.inputs.values())


@pytest.mark.parametrize(("name", "options"), CHEAP)
def test_bounds_of_a_plan(relay, name, options):
    model = zoo.load(name, **options)
    made = build.compile(model, "graph")
    plan = storage.plan(made)
    needed = [
        sum(t.bytes for t in plan.tensors if t.first <= step <= t.last)
        for step in range(len(plan.kernels))
    ]
    assert list(plan.alive) == needed
    assert max(needed) == plan.peak_bytes <= plan.planned_bytes <= plan.total_bytes
    assert plan.total_bytes == fusion.ledger(made).written


def test_plan_of_what_tvm_returns(relay):
    import tvm

    module = zoo.load("mlp").module
    with tvm.transform.PassContext(opt_level=3):
        library = relay.build(module, TEACHING_CPU)
    plan, ours = storage.plan(library), storage.plan(build.compile(module, "graph"))
    assert plan.tensors == ours.tensors
    assert plan.kernels == ours.kernels


# --- random graphs -------------------------------------------------------------------------------


class Library:
    """A graph JSON as a build would hold it."""

    def __init__(self, sizes, reads, pools, outputs):
        nodes = [{"op": "null", "name": "x", "inputs": []}]
        for index, sources in enumerate(reads):
            attrs = {"func_name": f"tvmgen_default_fused_{index}"}
            inputs = [[source, 0, 0] for source in sources]
            nodes.append(
                {"op": "tvm_op", "name": attrs["func_name"], "attrs": attrs, "inputs": inputs}
            )
        count = len(nodes)
        self.graph = {
            "nodes": nodes,
            "heads": [[node, 0, 0] for node in outputs],
            "node_row_ptr": list(range(count + 1)),
            "attrs": {
                "shape": ["list_shape", [[4], *([size] for size in sizes)]],
                "dltype": ["list_str", ["float32"] * count],
                "storage_id": ["list_int", [0, *(1 + pool for pool in pools)]],
            },
        }

    def get_graph_json(self):
        return json.dumps(self.graph)

    def get_params(self):
        return {}


@st.composite
def libraries(draw):
    count = draw(st.integers(1, 12))
    sizes = draw(st.lists(st.integers(1, 9), min_size=count, max_size=count))
    pools = draw(st.lists(st.integers(0, 4), min_size=count, max_size=count))
    reads = [draw(st.lists(st.integers(0, node), min_size=1, max_size=3)) for node in range(count)]
    outputs = draw(st.lists(st.integers(1, count), min_size=1, max_size=2, unique=True))
    return Library(sizes, reads, pools, [*outputs, count])


@settings(max_examples=150, deadline=None)
@given(libraries())
def test_random_graphs_by_brute_force(relay, library):
    plan = storage.plan(library)
    count = len(plan.kernels)
    nodes = library.graph["nodes"][1:]
    outputs = {node for node, _, _ in library.graph["heads"]}
    alive = []
    for step in range(count):
        needed = {
            node
            for node in range(1, step + 2)
            if node == step + 1
            or node in outputs
            or any([node, 0, 0] in nodes[later]["inputs"] for later in range(step, count))
        }
        alive.append(sum(plan.tensors[node - 1].bytes for node in needed))
    assert list(plan.alive) == alive

    pools = [tensor.pool for tensor in plan.tensors]
    overlap = {
        (one.name, other.name)
        for index, one in enumerate(plan.tensors)
        for other in plan.tensors[index + 1 :]
        if one.pool == other.pool and other.first <= one.last
    }
    found = storage.conflicts(plan.tensors, pools)
    assert {(one.name, other.name) for one, other in found} <= overlap
    assert {other.name for _, other in found} == {name for _, name in overlap}
    assert storage.pool_sizes(plan.tensors, pools) == plan.pools
    assert len({*pools}) == max(pools) + 1, "pools are numbered from 0 without a gap"


def test_a_long_graph_takes_no_time(relay):
    count = 10_000
    library = Library(
        [1 + node % 7 for node in range(count)],
        [[node, max(0, node - 9)] for node in range(count)],
        range(count),
        [count],
    )
    plan = storage.plan(library)
    assert len(plan.tensors) == count
    assert plan.peak_bytes == max(plan.alive)
    assert storage.conflicts(plan.tensors, [0] * count)


# --- figure and errors ---------------------------------------------------------------------------


def test_figure_has_a_box_for_each_tensor(relay):
    plan = storage.plan(build.compile("voice_activity", "graph"))
    figure = plan.figure("Voice activity")
    above, below = figure.axes
    boxes = [patch for patch in above.patches if patch.get_facecolor()[3] == 1]
    assert len(boxes) >= len(plan.tensors)
    assert above.get_ylim()[1] == plan.planned_bytes
    assert above.get_title(loc="left") == "Voice activity"
    assert below.get_xlim() == (0, len(plan.kernels))
    assert plots.png(figure) == plots.png(plan.figure("Voice activity"))


def test_words(relay):
    plan = storage.plan(build.compile("mlp", "graph"))
    assert plan.alt_text("MLP") == (
        "MLP: memory plan of 4 kernels. 4 tensors (848 bytes) lie in 2 pools of together 768 "
        "bytes; at most 768 bytes are needed at once, at step 1."
    )
    assert str(plan).splitlines() == [
        "4 tensors of 4 kernels in 2 pools",
        "all tensors       848 B",
        "planned           768 B  1.000 x the peak",
        "peak of liveness  768 B  at step 1, fused_nn_contrib_dense_pack_add_nn_relu_1",
    ]
    assert str(plan.tensors[0]) == (
        "fused_nn_contrib_dense_pack_add_nn_relu float32[1, 128]: 512 B in pool 0, 0-1"
    )


def test_model_without_a_kernel(relay):
    x = relay.var("x", shape=(2, 3))
    plan = storage.plan(build.compile(relay.Function([x], relay.reshape(x, (6,))), "graph"))
    assert (plan.tensors, plan.planned_bytes, plan.peak_bytes) == ((), 0, 0)
    assert str(plan) == "0 tensors of 0 kernels: nothing is planned"
    assert plan.figure() is not None


def test_wrong_requests_are_answered_in_a_sentence(relay):
    with pytest.raises(WorkbookError, match="graph executor alone, and this is a model for 'vm'"):
        storage.plan(build.compile("mlp", "vm"))
    with pytest.raises(WorkbookError, match="and this is int: pass what"):
        storage.plan(3)
    tensors = storage.plan(build.compile("mlp", "graph")).tensors
    with pytest.raises(WorkbookError, match=r"each of the 4 tensors .* 2 were given\.$"):
        storage.pool_sizes(tensors, [0, 1])
    for pools in ([0, 1, -1, 0], [0, 1, 1.5, 0]):
        with pytest.raises(WorkbookError, match="not all are such numbers"):
            storage.conflicts(tensors, pools)


def test_tensors_come_in_the_order_in_which_they_are_written(relay):
    plan = storage.plan(build.compile("file_type", "graph"))
    assert all(one.first <= other.first for one, other in pairwise(plan.tensors))
