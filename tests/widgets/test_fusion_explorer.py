"""The fusion explorer: its programs against a count by hand, and its widgets driven."""

import itertools

import pytest
from matplotlib.figure import Figure

from helpers import WorkbookError, fusion, ir, modules, plots
from helpers.widgets import fusion_explorer
from helpers.widgets.fusion_explorer import KINDS, State, program

pytestmark = pytest.mark.usefixtures("relay")

PATTERNS = {
    "elementwise": "ELEMWISE",
    "broadcast": "BROADCAST",
    "injective": "INJECTIVE",
    "reduction": "COMM_REDUCE",
    "conv": "OUT_ELEMWISE_FUSABLE",
}
KB = 1000


def joins(producer, consumer):
    """Lesson 03's matrix, by hand: does FuseOps put the two into one kernel?"""
    if producer in ("elementwise", "broadcast"):
        return consumer != "conv"
    if producer == "injective":
        return consumer in ("elementwise", "broadcast", "injective")
    return producer == "conv" and consumer in ("elementwise", "broadcast")


def by_hand(kinds):
    """The sizes of a chain's kernels. FuseOps joins injective producers last, to what is there."""
    joined = [False] * (len(kinds) - 1)

    def group(place, step):
        """The kinds in the group of an operator, from it on in one direction."""
        found = [kinds[place]]
        while 0 <= (gap := place if step > 0 else place - 1) < len(joined) and joined[gap]:
            place += step
            found.append(kinds[place])
        return found

    for last in (False, True):
        for k in range(len(joined)):
            if (kinds[k] == "injective") == last:
                behind = group(k + 1, 1) if last else [kinds[k + 1]]
                joined[k] = all(joins(a, b) for a in group(k, -1) for b in behind)
    sizes = [1]
    for together in joined:
        if together:
            sizes[-1] += 1
        else:
            sizes.append(1)
    return sizes


def test_each_kind_is_an_operator_of_its_pattern():
    for kind, pattern in PATTERNS.items():
        nodes = ir.graph(program("chain", (kind,) * 3)).calls
        assert [fusion.pattern(node.op) for node in nodes] == [pattern] * 3


@pytest.mark.parametrize("first", KINDS)
def test_kernels_of_every_chain(first):
    for rest in itertools.product(KINDS, repeat=2):
        kinds = (first, *rest)
        state = State.of(program("chain", kinds), 256)
        found = [len(row.operators) for row in state.after.rows]
        assert found == by_hand(kinds), kinds


def test_bytes_by_hand():
    chain = State.of(program("chain", ("elementwise",) * 3), 256)
    assert (chain.before.total, chain.after.total) == (24 * KB, 8 * KB)
    cut = State.of(program("chain", ("elementwise",) * 3), 2)
    assert (cut.after.kernels, cut.after.total) == (2, 16 * KB)
    conv = State.of(program("chain", ("conv", "broadcast", "reduction")), 256)
    # conv + add: 4 in, 3.6 and 0.04 of weights, 4 out; sum: 4 in, 0.4 out
    assert [row.total for row in conv.after.rows] == [11640, 4400]
    diamond = State.of(program("diamond", ("elementwise", "conv", "elementwise")), 256)
    assert [row.total for row in diamond.after.rows] == [8 * KB, 4 * KB + 3600 + 4 * KB]
    assert diamond.before.total == 8 * KB + 11600 + 8 * KB + 12 * KB


def test_every_state_can_be_drawn():
    for form in fusion_explorer.FORMS:
        for kinds in itertools.product(("broadcast", "reduction", "conv"), repeat=3):
            state = State.of(program(form, kinds), 3)
            view = fusion_explorer.answer(state)
            assert view.picture.count("<svg") >= 2
            assert f"{state.after.kernels} kernel" in view.words


def test_what_is_not_a_program():
    with pytest.raises(WorkbookError, match="chain or diamond"):
        program("ring", ("conv",) * 3)
    with pytest.raises(WorkbookError, match="three kinds"):
        program("chain", ("conv", "softmax", "conv"))
    with pytest.raises(WorkbookError, match="more than 20 operators"):
        fusion_explorer.explorer({"long": long_chain(21)})


def long_chain(n):
    from tvm import relay

    x = relay.var("x", shape=(4,))
    for _ in range(n):
        x = relay.tanh(x)
    return modules.typed(x)


# --- the widgets ----------------------------------------------------------------------------------


@pytest.fixture
def driven(monkeypatch):
    """The controls by what they are called, the words and the picture."""
    shown = []
    monkeypatch.setattr("helpers.widgets.frame.display", lambda data, **kwargs: shown.append(data))

    def drive(blocks=None):
        first, second, words, picture, *_ = fusion_explorer.explorer(blocks).children
        controls = [*first.children, *second.children]
        return {control.description: control for control in controls}, words, picture, shown

    return drive


def test_kernels_stay_hidden_until_both_guesses_are_there(driven):
    controls, words, picture, _ = driven()
    kernels, moved = controls["Your guess, kernels:"], controls["kB read and written:"]
    assert "How many kernels" in words.value
    assert "k1" not in picture.value
    kernels.value = 2
    assert "k1" not in picture.value
    moved.value = 8
    assert "Kernels: 1, and you said 2. kB: right, 8." in words.value
    assert "k1" in picture.value
    controls["Second operator:"].value = "conv"  # another program: hidden again
    assert (kernels.value, moved.value) == (0, 0)
    assert "k1" not in picture.value
    assert "conv2d 3.6 kB" in words.value


def test_shown_without_a_guess(driven):
    controls, words, picture, _ = driven({"ten": long_chain(10)})
    controls["show without a guess"].value = True
    seen = {words.value: picture.value}
    for description, value in (
        ("Third operator:", "injective"),
        ("Program:", "diamond"),
        ("Second operator:", "conv"),
        ("max_depth:", 1),
        ("Program:", "ten"),
    ):
        controls[description].value = value
        seen[words.value] = picture.value
    assert len(set(seen.values())) == len(seen) == 6
    assert "10 kernels, 0.32 kB read and written; without fusion 10" in words.value
    assert controls["First operator:"].disabled


def test_static_form_says_what_it_shows(driven):
    *_, shown = driven()
    states = fusion_explorer.main_states()
    assert shown[0]["text/plain"] == fusion_explorer.alt_text(states)
    figure = fusion_explorer.figure(states)
    assert isinstance(figure, Figure)
    texts = [text.get_text() for text in figure.axes[0].texts]
    for state in states.values():
        noun = "kernel" if state.after.kernels == 1 else "kernels"
        assert any(f"{state.after.kernels} {noun}, " in text for text in texts)
    assert plots.png(figure)
