"""The networks written here: references known by other routes, and the VM against them."""

from itertools import pairwise

import numpy as np
import pytest

from helpers import WorkbookError, build, ir, zoo
from helpers.zoo import dynamic, samples

SMALL = {
    "encoder": {"layers": 1, "hidden": 64},
    "lstm": {"hidden": 64},
    "early_exit": {"layers": 2},
    "greedy_search": {},
    "beam_search": {"beams": 3},
}
LENGTHS = {
    "encoder": (1, 2, 33, 512),
    "lstm": (1, 2, 300),
    "early_exit": (None,),
    "greedy_search": (1, 4, 30),
    "beam_search": (1, 4, 30),
}


def agree(outputs, model):
    for got, wanted in zip(outputs, model.reference, strict=True):
        assert (got.shape, got.dtype) == (wanted.shape, wanted.dtype)
        np.testing.assert_allclose(got, wanted, model.rtol, model.atol)


@pytest.mark.parametrize("name", SMALL)
def test_vm_agrees_with_the_reference_at_any_length(relay, name):
    compiled = build.compile(zoo.load(name, **SMALL[name]), "vm")
    for length in LENGTHS[name]:
        for seed in range(3):
            model = zoo.load(name, seed=seed, sample_length=length, **SMALL[name])
            agree(compiled.run(**model.inputs), model)


@pytest.mark.parametrize(
    ("name", "options", "because"),
    [
        ("encoder", {}, "dimension 1 of (1, ?)"),
        ("encoder", {"length": 8}, ""),
        ("encoder", {"length": 8, "masked": True}, ""),
        ("lstm", {}, "calls itself"),
        ("lstm", {"length": 3}, ""),
        ("early_exit", {}, "if: a value"),
        ("early_exit", {"both": True}, ""),
        ("greedy_search", {}, "calls itself"),
        ("greedy_search", {"length": 9}, "calls itself"),
        ("beam_search", {"length": 9}, "calls itself"),
    ],
)
def test_which_options_make_a_model_static(relay, name, options, because):
    found = ir.is_dynamic(zoo.load(name, **options).module)
    assert bool(found) == bool(because), found.reasons
    assert because in "; ".join(found.reasons)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("encoder", {"layers": 1, "hidden": 64, "length": 12, "masked": True}),
        ("lstm", {"hidden": 64, "length": 3}),
        ("early_exit", {"layers": 2, "both": True}),
    ],
)
def test_static_forms_run_on_the_graph_executor(relay, name, options):
    compiled = build.compile(zoo.load(name, **options), "graph")
    for seed in range(2):
        model = zoo.load(name, seed=seed, **options)
        agree(compiled.run(**model.inputs), model)


# --- the references ------------------------------------------------------------------------------


@pytest.mark.parametrize("length", [1, 7])
def test_lstm_is_the_one_of_onnx(length):
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper

    model = zoo.load("lstm", sample_length=length, hidden=32)
    w = dynamic.LSTM.weights(model.options)
    bias = np.concatenate([w["input_bias"], 0 * w["input_bias"]])
    constants = {"W": w["input_weight"], "R": w["state_weight"], "B": bias}
    graph = helper.make_graph(
        [helper.make_node("LSTM", ["x", "W", "R", "B"], ["", "h"], hidden_size=32)],
        "lstm",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [length, 1, dynamic.FEATURES])],
        [helper.make_tensor_value_info("h", TensorProto.FLOAT, [1, 1, 32])],
        [numpy_helper.from_array(value[None], name) for name, value in constants.items()],
    )
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8)
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    (wanted,) = session.run(None, dict(model.inputs))
    np.testing.assert_allclose(model.reference[0], wanted[0], rtol=1e-4, atol=1e-6)


def test_padding_that_is_masked_changes_nothing():
    plain = zoo.load("encoder", sample_length=20)
    padded = zoo.load("encoder", length=64, masked=True)
    for filling in (0, 7):
        ids = np.full((1, 64), filling)
        ids[:, :20] = plain.inputs["ids"]
        mask = (np.arange(64) < 20).astype(np.float32)[None]
        (got,) = padded.expected({"ids": ids, "mask": mask})
        np.testing.assert_allclose(got[:, :20], plain.reference[0], rtol=1e-4, atol=1e-5)


def test_encoder_sees_order_and_other_tokens():
    model = zoo.load("encoder", sample_length=6)
    ids = model.inputs["ids"]
    (turned,) = model.expected({"ids": ids[:, ::-1]})
    assert not np.allclose(turned[:, ::-1], model.reference[0], atol=0.05)
    (other,) = model.expected({"ids": np.where(np.arange(6) == 5, (ids + 1) % 1000, ids)})
    assert not np.allclose(other[:, 0], model.reference[0][:, 0], atol=1e-3)


@pytest.mark.parametrize("seed", range(20))
def test_classifier_knows_the_patterns_and_is_unsure_between_two(seed):
    (answer,) = zoo.load("early_exit", seed=seed).reference
    (without,) = zoo.load("early_exit", seed=seed, layers=7).reference
    early = np.array_equal(answer, without)  # one layer more changes nothing
    assert early == (seed % 2 == 0)
    if early:
        assert answer.argmax() == seed // 2
        assert answer.max() > dynamic.SURE
    assert answer.sum() == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("seed", range(4))
def test_one_beam_is_greedy_search(seed):
    (text,) = zoo.load("greedy_search", seed=seed).reference
    texts, _ = zoo.load("beam_search", seed=seed, beams=1).reference
    assert texts[0, : len(text)].tolist() == text.tolist()
    assert not texts[0, len(text) :].any()


def test_beam_scores_are_the_probabilities_of_its_texts():
    model = zoo.load("beam_search", seed=2)
    w = dynamic.BEAM.weights(model.options)
    texts, scores = model.reference
    assert list(scores) == sorted(scores, reverse=True)
    for text, score in zip(texts, scores, strict=True):
        total, h = 0.0, np.zeros(dynamic.STATE, np.float32)
        for token, following in pairwise(text):
            logits, h = dynamic._reference_step(token, h, model.inputs["states"], w)
            total += logits[following] - np.log(np.exp(logits).sum())
            if following == dynamic.END:
                break
        assert total == pytest.approx(score, abs=1e-3)


def test_texts_end_by_themselves_and_by_the_limit():
    lengths = [len(zoo.load("greedy_search", seed=seed).reference[0]) for seed in range(8)]
    assert min(lengths) < 10 < 20 < max(lengths) == dynamic.MOST_TOKENS + 1


# --- options and errors --------------------------------------------------------------------------


def test_sample_length_is_for_the_inputs_alone(relay):
    import tvm

    long, short = zoo.load("lstm", sample_length=50), zoo.load("lstm", sample_length=2)
    assert (len(long.inputs["x"]), len(short.inputs["x"])) == (50, 2)
    assert tvm.ir.structural_equal(long.module, short.module)
    assert zoo.load("mlp", batch="rows", sample_length=9).inputs["data"].shape == (9, 1, 28, 28)
    assert zoo.load("mlp").sample_length is None


@pytest.mark.parametrize("name", SMALL)
def test_unbound_weights_are_parameters(relay, name):
    model = zoo.load(name, bind=False, **SMALL[name])
    taken = {var.name_hint for var in model.module["main"].params}
    assert taken == model.params.keys() | model.inputs.keys()
    assert model.params.keys()
    assert model.onnx is None
    assert model.source == "this workbook"


def test_unbound_weights_give_the_same_outputs(relay):
    model = zoo.load("lstm", bind=False, hidden=32)
    agree(build.compile(model, "vm").run(**model.inputs), model)


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("encoder", {"sample_length": 513}, "sample_length .* whole number from 1 to 512, not 513"),
        ("encoder", {"length": 0}, "from 1 to 512 or an axis name, not 0"),
        ("encoder", {"hidden": 100}, "a multiple of 32 from 32, not 100"),
        ("encoder", {"layers": 0}, "layers of encoder is a whole number from 1, not 0"),
        ("encoder", {"masked": "yes"}, "True or False, not 'yes'"),
        ("lstm", {"length": ""}, "or an axis name, not ''"),
        ("lstm", {"sample_length": "n"}, "whole number from 1, not 'n'"),
        ("lstm", {"length": 3, "sample_length": 3}, "No axis of lstm has any length here"),
        ("resnet18", {"sample_length": 3}, "leave sample_length out: its inputs are data"),
        ("beam_search", {"beams": 0}, "beams of beam_search is a whole number from 1, not 0"),
        ("early_exit", {"beams": 2}, "no option 'beams'; it has seed, layers, hidden, both, bind"),
    ],
)
def test_wrong_requests_are_answered_in_a_sentence(name, options, words):
    with pytest.raises(WorkbookError, match=words) as caught:
        zoo.load(name, **options)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "inputs"),
    [
        ("lstm", {"x": np.zeros((3, 2, 64), np.float32)}),
        ("lstm", {"x": np.zeros((3, 1, 64))}),
        ("lstm", {"y": np.zeros((3, 1, 64), np.float32)}),
        ("lstm", {"x": 3}),
        ("encoder", {"ids": np.zeros((1, 513), np.int64)}),
        ("encoder", {"ids": np.full((1, 3), samples.VOCABULARY)}),
        ("early_exit", {"x": np.zeros(256, np.float32)}),
    ],
)
def test_wrong_inputs_of_a_reference_are_answered_in_a_sentence(name, inputs):
    with pytest.raises(WorkbookError, match="cannot be run on these inputs: it takes"):
        zoo.load(name).expected(inputs)


def test_axes_of_one_name_have_one_length():
    model = zoo.load("encoder", masked=True)
    inputs = {"ids": np.zeros((1, 4), np.int64), "mask": np.ones((1, 5), np.float32)}
    with pytest.raises(WorkbookError, match=r"ids \(1, 4\) int64, mask \(1, 5\)"):
        model.expected(inputs)
