"""Layouts: offsets against numpy's and TVM's own, cache lines by hand, transforms by hand."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers import WorkbookError, fusion, layout, plots

IMAGE = {"N": 1, "C": 8, "H": 2, "W": 4}
FEATURES = {"N": 1, "C": 64, "H": 56, "W": 56}


@pytest.fixture(scope="module", autouse=True)
def _use_relay(relay):
    return relay


def test_formulas_and_strides_of_the_known_layouts():
    assert layout.formula("NCHW") == "((n*C + c)*H + h)*W + w"
    assert layout.formula("NHWC") == "((n*H + h)*W + w)*C + c"
    assert layout.formula("NCHW4c") == "(((n*(C//4) + c//4)*H + h)*W + w)*4 + c%4"
    assert layout.formula("C") == "c"
    assert layout.shape(IMAGE, "NCHW4c") == (1, 2, 2, 4, 4)
    assert layout.strides(IMAGE, "NCHW") == {"N": 64, "C": 8, "H": 4, "W": 1}
    assert layout.strides(IMAGE, "NHWC") == {"N": 64, "H": 32, "W": 8, "C": 1}
    assert layout.strides(IMAGE, "NCHW4c") == {"N": 64, "C": 32, "H": 16, "W": 4, "4c": 1}
    assert layout.offset({"N": 0, "C": 5, "H": 1, "W": 2}, IMAGE, "NCHW4c") == 32 + 16 + 8 + 1


def test_strides_of_permuted_axes_are_those_of_numpy():
    array = np.zeros((2, 3, 4, 5), "float32")
    for order in itertools.permutations("NCHW"):
        stored = np.ascontiguousarray(array.transpose(["NCHW".index(axis) for axis in order]))
        dims = dict(zip("NCHW", array.shape, strict=True))
        ours = list(layout.strides(dims, "".join(order)).values())
        assert ours == [stride // stored.itemsize for stride in stored.strides]


LAYOUTS = [
    *("NCHW", "NHWC", "HWCN", "NCHW4c", "NCHW2c", "NCHW4c2c", "N4cCHW", "NCHW2h4c", "CHWN2n"),
    *("NHWC8c", "NCHW2n"),
]


@pytest.mark.parametrize("target", LAYOUTS)
def test_offsets_are_where_tvm_puts_the_elements(relay, target):
    """The buffer that ``layout_transform`` writes, element by element."""
    import tvm

    dims = {"N": 2, "C": 8, "H": 2, "W": 3}
    numbers = np.arange(96, dtype="int32").reshape(tuple(dims.values()))
    stored = numbers
    if target != "NCHW":
        x = relay.var("x", shape=numbers.shape, dtype="int32")
        module = tvm.IRModule.from_expr(relay.layout_transform(x, "NCHW", target))
        run = relay.create_executor("graph", mod=module, target="llvm").evaluate()
        stored = run(numbers).numpy()
    assert stored.shape == layout.shape(dims, target)
    for index in itertools.product(*map(range, numbers.shape)):
        at = layout.offset(dict(zip("NCHW", index, strict=True)), dims, target)
        assert stored.ravel()[at] == numbers[index]
        sizes, places = dims, dict(zip("nchw", index, strict=True))
        assert eval(layout.formula(target), {}, {**sizes, **places}) == at


def test_a_large_tensor_needs_no_memory():
    dims = {"H": 10**12, "W": 10**12}
    assert layout.offset({"H": 5, "W": 7}, dims, "HW") == 5 * 10**12 + 7
    small = {"C": np.int32(8), "H": np.int64(10**12)}
    assert layout.offsets({"H": 2}, small, "HC", start={"H": 10**11}).tolist() == [
        8 * 10**11,
        8 * 10**11 + 8,
    ]


@pytest.mark.parametrize("target", ["HWIO", "OIHW4i8o", "OIHW4i2o2i"])
def test_kernel_layouts_agree_with_tvm(target):
    import tvm

    dims = {"O": 16, "I": 8, "H": 3, "W": 3}
    rule = tvm.tir.bijective_layout("OIHW", target)
    extents = [int(extent) for extent in rule.forward_shape(list(dims.values()))]
    assert layout.shape(dims, target) == tuple(extents)
    for index in itertools.product(range(0, 16, 5), range(0, 8, 3), (0, 2), (1,)):
        stored = [int(place) for place in rule.forward_index(list(index))]
        at = layout.offset(dict(zip("OIHW", index, strict=True)), dims, target)
        assert at == np.ravel_multi_index(stored, extents)


def tensors():
    """Dims of NCHW with 4 dividing C, and a layout of them."""
    dims = st.fixed_dictionaries(
        {
            "N": st.integers(1, 3),
            "C": st.sampled_from([4, 8, 12]),
            "H": st.integers(1, 5),
            "W": st.integers(1, 5),
        }
    )
    return st.tuples(dims, st.sampled_from(["NCHW", "NHWC", "NCHW4c", "NHWC2c", "WHCN4c"]))


@given(tensors())
@settings(max_examples=60, deadline=None)
def test_every_offset_is_taken_once(tensor):
    dims, name = tensor
    found = layout.offsets("NCHW", dims, name)
    assert sorted(found.tolist()) == list(range(int(np.prod(list(dims.values())))))


@given(tensors(), st.data())
@settings(max_examples=80, deadline=None)
def test_a_loop_visits_the_offsets_of_its_indices_in_order(tensor, data):
    dims, name = tensor
    start = {axis: data.draw(st.integers(0, size - 1), axis) for axis, size in dims.items()}
    order = data.draw(st.permutations("NCHW"))[: data.draw(st.integers(1, 4))]
    loop = {axis: data.draw(st.integers(1, dims[axis] - start[axis])) for axis in order}
    base = 4 * data.draw(st.integers(0, 40))
    visited = [
        layout.offset({**start, **dict(zip(order, places, strict=True))}, dims, name)
        for places in itertools.product(*(range(start[a], start[a] + loop[a]) for a in order))
    ]
    assert layout.offsets(loop, dims, name, start=start).tolist() == visited
    lines = {(base + 4 * at) // 64 for at in visited}
    assert layout.lines_touched(loop, dims, name, start=start, base=base) == len(lines)


@pytest.mark.parametrize(
    ("loop", "name", "lines"),
    [
        # 64 channels of a pixel: 56 * 56 elements apart, side by side, in groups of 16.
        ("C", "NCHW", 64),
        ("C", "NHWC", 4),
        ("C", "NCHW16c", 4),
        ("C", "NCHW8c", 8),
        # A row of 56 pixels in one channel: 224 bytes side by side, or 256 bytes apart.
        ("W", "NCHW", 4),
        ("W", "NHWC", 56),
        ("W", "NCHW16c", 56),
        ("W", "NCHW8c", 28),
        ("HW", "NCHW", 196),
    ],
)
def test_lines_by_hand(loop, name, lines):
    assert layout.lines_touched(loop, FEATURES, name) == lines


def test_alignment_and_the_size_of_an_element_count():
    one_line = {"C": 16}
    assert layout.lines_touched("C", one_line, "C") == 1
    assert layout.lines_touched("C", one_line, "C", base=4) == 2
    assert layout.lines_touched("C", one_line, "C", base=64) == 1
    assert layout.lines_touched("C", one_line, "C", element_bytes=8) == 2
    assert layout.lines_touched("C", one_line, "C", element_bytes=1) == 1
    assert layout.lines_touched("C", one_line, "C", line_bytes=32) == 2
    # Row 1 of W begins at element 56, in the middle of a line.
    assert layout.lines_touched("W", FEATURES, "NCHW", start={"H": 1}) == 4
    assert layout.lines_touched({"W": 8}, FEATURES, "NCHW", start={"H": 1}) == 1


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: layout.strides(IMAGE, "nchw"), "A layout is a string"),
        (lambda: layout.strides(IMAGE, 4), "A layout is a string"),
        (lambda: layout.strides(IMAGE, "NCHWc"), "A layout is a string"),
        (lambda: layout.strides(IMAGE, ""), "A layout is a string"),
        (lambda: layout.strides(IMAGE, "NCHW0c"), "A layout is a string"),
        (lambda: layout.formula("NCHWC"), "names C twice"),
        (lambda: layout.formula("NHW4c"), "has the block 4c of an axis C that it lacks"),
        (lambda: layout.shape(IMAGE, "NCHW3c"), "3 elements of C, and 8 elements cannot be cut"),
        (lambda: layout.shape({"N": 1}, "NCHW"), "dims gives the size of each axis of NCHW"),
        (lambda: layout.shape((1, 8, 2, 4), "NCHW"), "dims gives the size"),
        (lambda: layout.shape({**IMAGE, "W": 0}, "NCHW"), "The size of W is a whole number"),
        (lambda: layout.offset({"C": 1}, IMAGE, "NCHW"), "index gives a place along each"),
        (lambda: layout.offset(7, IMAGE, "NCHW"), "index gives a place along each"),
        (
            lambda: layout.offset({"N": 0, "C": 8, "H": 0, "W": 0}, IMAGE, "NCHW"),
            "The index of C is 8, and C has 8 elements, 0 to 7",
        ),
        (lambda: layout.offsets("X", IMAGE, "NCHW"), "loop names axes among N, C, H, W"),
        (lambda: layout.offsets("", IMAGE, "NCHW"), "loop names axes"),
        (lambda: layout.offsets(3, IMAGE, "NCHW"), "loop names axes"),
        (lambda: layout.offsets("CC", IMAGE, "NCHW"), "runs over an axis twice"),
        (lambda: layout.offsets({"C": 9}, IMAGE, "NCHW"), "9 steps from 0 along C leave"),
        (lambda: layout.offsets("C", IMAGE, "NCHW", start={"Q": 1}), "start gives a place"),
        (lambda: layout.offsets("C", IMAGE, "NCHW", start=1), "start is an index"),
        (lambda: layout.lines_touched("C", IMAGE, "NCHW", base=2), "multiples of element_bytes"),
        (lambda: layout.lines_touched("C", IMAGE, "NCHW", line_bytes=6), "multiples of"),
        (lambda: layout.memory("C", FEATURES, "NCHW"), "200,704 elements, and 256 can be drawn"),
        (lambda: layout.memory("C", IMAGE, []), "one layout or several"),
        (lambda: layout.memory("C", IMAGE, None), "one layout or several"),
        (lambda: layout.memory("C", IMAGE, "NCHW", start="H"), "start is an index"),
        (lambda: layout.memory("C", IMAGE, "NCHW", line_bytes=4096), "1,024 elements of 4, and 64"),
        (
            lambda: layout.offsets({"C": -1}, IMAGE, "NCHW"),
            "The number of steps along C is a whole",
        ),
        (lambda: layout.offsets("C", {"C": 10**12}, "C"), "over 1,000,000,000,000 elements"),
        (
            lambda: layout.offsets("W", {"H": 10**20, "W": 2}, "HW"),
            "over 2 elements of a tensor of 2",
        ),
        (lambda: layout.transforms("NCHW"), "A Relay function, an IRModule"),
    ],
)
def test_wrong_arguments_are_answered_in_a_sentence(call, words):
    with pytest.raises(WorkbookError, match=words):
        call()


def test_the_memory_figure_shows_each_element_once_and_fills_the_visited():
    figure = layout.memory("C", IMAGE, ["NCHW", "NCHW4c"], start={"H": 1, "W": 2}, base=8)
    for axes, lines in zip(figure.axes, (5, 2), strict=True):
        labels = [text.get_text() for text in axes.texts]
        assert sorted(labels) == [
            f"{c},{h},{w}" for c in range(8) for h in (0, 1) for w in range(4)
        ]
        blue = [box for box in axes.patches if box.get_facecolor()[:3] == to_rgb(plots.BLUE)]
        assert len(blue) == 8
        assert f"8 elements in {lines} of 5 cache lines" in axes.get_title(loc="left")
    words = figure.get_suptitle()
    assert "c = 0 to 7, h = 1, w = 2" in words
    assert "64 bytes" in words
    assert plots.png(figure) == plots.png(
        layout.memory("C", IMAGE, ["NCHW", "NCHW4c"], start={"H": 1, "W": 2}, base=8)
    )


def to_rgb(colour):
    return tuple(int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))


# --- transforms -----------------------------------------------------------------------------------


def test_transforms_of_a_program_written_by_hand(relay):
    x = relay.var("x", shape=(1, 8, 4, 4))
    weight = relay.const(np.ones((16, 8, 3, 3), "float32"))
    y = relay.layout_transform(x, "NCHW", "NHWC")
    kernel = relay.layout_transform(relay.negative(weight), "OIHW", "HWIO")
    y = relay.nn.conv2d(
        y, kernel, channels=16, kernel_size=(3, 3), data_layout="NHWC", kernel_layout="HWIO"
    )
    y = relay.exp(relay.layout_transform(relay.exp(y), "NHWC", "NCHW"))
    found = layout.transforms(y)
    assert [str(one) for one in found] == [
        "NCHW -> NHWC of float32[1, 8, 4, 4]",
        "OIHW -> HWIO of float32[16, 8, 3, 3] (constant)",
        "NHWC -> NCHW of float32[1, 2, 2, 16]",
    ]
    assert not any(one.kernel or one.alone for one in found)
    # A convolution takes exp into its kernel and no transform; weight and transform are one.
    kernels = [one.kernel for one in layout.transforms(fusion.fuse(y))]
    assert kernels == [
        ("layout_transform",),
        ("negative", "layout_transform"),
        ("layout_transform", "exp"),
    ]
    assert [one.alone for one in layout.transforms(fusion.fuse(y))] == [True, False, False]


def test_a_program_without_transforms_has_none(relay):
    assert layout.transforms(relay.exp(relay.var("x", shape=(4,)))) == []
