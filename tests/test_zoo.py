"""The zoo: metadata, inputs and references of every model; Relay modules of the small ones."""

import json
import subprocess
import sys

import numpy as np
import pytest

from helpers import WorkbookError, build, zoo
from helpers.tvm_builds import ROOT
from helpers.zoo import formats, samples

TINY = ["mlp", "squeezenet", "file_type", "voice_activity", "iris_landmark"]


def test_there_are_models_of_every_origin():
    models = [zoo.load(name) for name in zoo.names()]
    assert len(models) >= 14
    assert {model.weights for model in models} == {"trained", "seeded random"}
    assert len({model.source for model in models}) == 7


@pytest.mark.parametrize("name", zoo.names())
def test_metadata_and_inputs(name):
    model = zoo.load(name)
    assert model.name == name
    assert model.family
    assert model.licence in ("MIT", "Apache-2.0")
    package, version = model.source.split()
    assert version[0].isdigit() or model.source == "this workbook", package
    assert 0 < model.rtol <= 1e-3
    assert 0 < model.atol <= 1e-3
    sizes = {
        key: tuple(model.sample_length if isinstance(n, str) else n for n in shape)
        for key, shape in model.input_shapes.items()
    }
    assert {key: array.shape for key, array in model.inputs.items()} == sizes
    for key, array in model.inputs.items():
        assert np.isfinite(array).all()
        assert np.array_equal(array, zoo.load(name).inputs[key])
        assert not np.array_equal(array, zoo.load(name, seed=1).inputs[key])
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0


@pytest.mark.parametrize("name", zoo.names())
def test_reference_tells_inputs_and_classes_apart(name, capfd):
    """Otherwise agreeing with it would prove nothing."""
    model, other = zoo.load(name), zoo.load(name, seed=1)
    for mine, again, theirs in zip(
        model.reference, model.expected(model.inputs), other.reference, strict=True
    ):
        assert np.array_equal(mine, again)
        assert np.isfinite(mine).all()
        allowed = model.atol + model.rtol * np.abs(mine)
        assert mine.shape != theirs.shape or (np.abs(mine - theirs) / allowed).max() > 100
        if mine.size > 1:
            assert np.ptp(mine) > 100 * allowed.max()
        if name in SOFTMAX:
            assert mine.sum(axis=1) == pytest.approx(1, abs=1e-4)
            assert mine.max() < 0.9, "one class takes all: the others' errors would not show"
    assert capfd.readouterr().err == ""


SOFTMAX = {"mlp", "resnet18", "mobilenet", "squeezenet", "shufflenet", "inception_v1", "resnet50"}


def test_loading_needs_no_framework():
    code = (
        "import sys; from helpers import zoo\n"
        "for name in zoo.names(): zoo.load(name).inputs\n"
        "zoo.table()\n"
        "heavy = {'tvm', 'onnx', 'onnxruntime', 'tflite', 'ai_edge_litert'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert (run.stdout, run.stderr) == ("[]\n", "")


# --- what the trained models are known to answer -------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_recognizer_reads_the_words(seed):
    import onnx

    model = zoo.load("ocr_recognizer", seed=seed)
    metadata = {entry.key: entry.value for entry in onnx.load(model.onnx).metadata_props}
    alphabet = ["", *metadata["character"].splitlines(), " "]
    best = model.reference[0][0].argmax(axis=1)
    # CTC: repeated symbols count once, symbol 0 is no symbol
    read = "".join(alphabet[a] for a, before in zip(best, [-1, *best], strict=False) if a != before)
    assert read == samples.text(seed)


@pytest.mark.parametrize("seed", range(4))
def test_direction_classifier_sees_lines_turned(seed):
    (scores,) = zoo.load("ocr_direction", seed=seed).reference
    assert scores.argmax() == seed % 2  # its classes: 0 and 180 degrees


def test_detector_finds_the_words_in_the_middle():
    (heat,) = zoo.load("ocr_detector", size=(128, 320)).reference
    rows, columns = np.nonzero(heat[0, 0] > 0.3)
    assert 40 < rows.min() < 64 < rows.max() < 88
    assert 60 < columns.min() < 160 < columns.max() < 260


def test_file_type_recognises_python():
    config = formats.MODELS_DIR / "magika/models/standard_v3_3/config.min.json"
    labels = json.loads(config.read_text())["target_labels_space"]
    for scores in zoo.load("file_type", batch=3).reference[0]:
        assert labels[scores.argmax()] == "python"


# --- options and errors --------------------------------------------------------------------------


def test_rows_of_a_batch_are_separate():
    model = zoo.load("mlp", batch=4)
    for row in range(4):
        one = {"data": model.inputs["data"][row : row + 1]}
        (alone,) = zoo.load("mlp").expected(one)
        np.testing.assert_allclose(model.reference[0][row], alone[0], rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize(
    ("name", "options", "shapes"),
    [
        ("resnet18", {"size": 64, "batch": 2, "layers": 34}, {"data": (2, 3, 64, 64)}),
        ("mobilenet", {"size": (64, 96)}, {"data": (1, 3, 64, 96)}),
        ("ocr_detector", {"size": [64, 128]}, {"x": (1, 3, 64, 128)}),
        ("ocr_recognizer", {"width": 160}, {"x": (1, 3, 48, 160)}),
        ("ocr_direction", {"batch": 2}, {"x": (2, 3, 48, 192)}),
        ("mlp", {"batch": "rows"}, {"data": ("rows", 1, 28, 28)}),
    ],
)
def test_options_shape_the_inputs(name, options, shapes):
    model = zoo.load(name, **options)
    assert model.input_shapes == shapes
    assert len(model.reference[0]) == len(next(iter(model.inputs.values())))


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("resnet5", {}, "'resnet5'.*resnet50"),
        ("MobileNet", {}, "mobilenet"),
        ("qqqqqq", {}, "mlp.*iris_landmark.*beam_search"),
        (3, {}, "no model 3"),
        (["mlp"], {}, "no model \\['mlp'\\]"),
        ("mlp", {"seed": -1}, "seed is a whole number from 0, not -1"),
        ("mlp", {"seed": "x"}, "seed is a whole number from 0, not 'x'"),
        ("resnet18", {"layers": [18]}, "18 or 34, not"),
        ("resnet50", {"size": 64}, "resnet50 has no option 'size'; it has seed, bind"),
        ("resnet18", {"size": 50}, "size of resnet18 is a multiple of 32 from 64.*not 50"),
        ("resnet18", {"size": "big"}, "not 'big'"),
        ("resnet18", {"layers": 20}, "18 or 34, not 20"),
        ("resnet18", {"batch": 0}, "a whole number from 1, not 0"),
        ("resnet18", {"batch": "n"}, "a whole number from 1, not 'n'"),
        ("mlp", {"batch": True}, "or an axis name, not True"),
        ("mlp", {"bind": 1}, "True or False, not 1"),
        ("ocr_recognizer", {"width": 3.5}, "multiple of 8 from 64, not 3.5"),
    ],
)
def test_wrong_requests_are_answered_in_a_sentence(name, options, words):
    with pytest.raises(WorkbookError, match=words) as caught:
        zoo.load(name, **options)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "inputs", "given"),
    [
        ("file_type", {}, "takes bytes (1, 2048) int32, and nothing was given"),
        ("file_type", {"x": np.zeros(3)}, "x (3,) float64 was given"),
        ("iris_landmark", {"x": 3}, "x () int was given"),
        ("file_type", [1], "a dictionary of arrays by name, not list"),
    ],
)
def test_wrong_inputs_of_a_reference_are_answered_in_a_sentence(name, inputs, given):
    with pytest.raises(WorkbookError) as caught:
        zoo.load(name).expected(inputs)
    assert given in str(caught.value)
    assert "\n" not in str(caught.value)


def test_missing_model_files_say_what_to_do(monkeypatch, tmp_path):
    monkeypatch.setattr(formats, "MODELS_DIR", tmp_path)
    for name in ("file_type", "iris_landmark"):
        with pytest.raises(WorkbookError, match="not installed: run `make lab` once"):
            zoo.load(name)
    assert zoo.load("mlp").name == "mlp"


def test_table_has_a_line_for_each_model():
    heading, *lines = zoo.table().splitlines()
    assert heading.split()[0] == "name"
    assert [line.split()[0] for line in lines] == zoo.names()


# --- in Relay ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*TINY, "face_detector", "face_landmark", "mobilenet", "resnet18"])
def test_module_takes_the_inputs_and_nothing_else(relay, name):
    model = zoo.load(name)
    main = model.module["main"]
    taken = {var.name_hint: var.checked_type for var in main.params}
    assert {key: tuple(map(int, kind.shape)) for key, kind in taken.items()} == model.input_shapes
    assert {key: kind.dtype for key, kind in taken.items()} == {
        key: array.dtype.name for key, array in model.inputs.items()
    }
    assert not relay.analysis.free_vars(main)
    assert model.params == {}
    result = main.checked_type.ret_type
    fields = getattr(result, "fields", [result])
    assert [tuple(map(int, kind.shape)) for kind in fields] == [r.shape for r in model.reference]


@pytest.mark.parametrize("name", ["mlp", "resnet18", "mobilenet", "squeezenet"])
def test_unbound_weights_are_parameters(relay, name):
    model = zoo.load(name, bind=False)
    wanted = {var.name_hint: var.checked_type for var in model.module["main"].params}
    assert wanted.keys() == model.params.keys() | model.inputs.keys()
    for key, value in model.params.items():
        assert value.shape == tuple(map(int, wanted[key].shape))


def test_any_batch_in_relay(relay):
    import tvm

    main = zoo.load("mlp", batch="batch").module["main"]
    assert isinstance(main.params[0].checked_type.shape[0], tvm.tir.Any)
    assert [int(n) for n in main.params[0].checked_type.shape[1:]] == [1, 28, 28]


def test_changing_a_module_leaves_the_next_one_alone(relay):
    import tvm

    model = zoo.load("mlp")
    before = model.module
    main = before["main"]
    before["main"] = relay.Function([], relay.const(1.0))
    before["more"] = relay.Function([], relay.const(1.0))
    after = model.module
    assert [var.name_hint for var in after.get_global_vars()] == ["main"]
    assert tvm.ir.structural_equal(after["main"], main)


def test_kept_import_is_the_import(relay, monkeypatch, tmp_path):
    import tvm

    monkeypatch.setattr(formats, "CACHE_DIR", tmp_path)
    monkeypatch.setattr(formats, "SHARED_DIR", tmp_path)
    zoo._import.cache_clear()
    imported = zoo.load("squeezenet").module
    zoo._import.cache_clear()
    monkeypatch.setattr(relay.frontend, "from_onnx", None)
    assert tvm.ir.structural_equal(imported, zoo.load("squeezenet").module)
    assert [path.suffix for path in tmp_path.iterdir()] == [".json"]


def test_a_folder_that_cannot_be_written_costs_only_time(relay, monkeypatch, tmp_path):
    import tvm

    (tmp_path / "zoo").write_text("a file where the folder would be")
    monkeypatch.setattr(formats, "CACHE_DIR", tmp_path / "zoo")
    monkeypatch.setattr(formats, "SHARED_DIR", tmp_path)
    zoo._import.cache_clear()
    assert isinstance(zoo.load("mlp").module, tvm.IRModule)


@pytest.mark.parametrize("name", ["mlp", "squeezenet"])
def test_generated_models_can_be_had_as_onnx_files(name, monkeypatch, tmp_path):
    import onnxruntime

    monkeypatch.setattr(formats, "CACHE_DIR", tmp_path)
    monkeypatch.setattr(formats, "SHARED_DIR", tmp_path)
    model = zoo.load(name)
    assert model.onnx == zoo.load(name).onnx
    assert list(tmp_path.iterdir()) == [model.onnx]
    session = onnxruntime.InferenceSession(model.onnx, providers=["CPUExecutionProvider"])
    for got, wanted in zip(session.run(None, model.inputs), model.reference, strict=True):
        np.testing.assert_allclose(got, wanted, model.rtol, model.atol)


def compiled(model, opt_level):
    """The model built for the graph executor, as a function of its inputs."""
    import tvm
    from tvm import relay
    from tvm.contrib import graph_executor

    from helpers.targets import resolve

    with tvm.transform.PassContext(opt_level=opt_level):
        library = relay.build(model.module, resolve(), params=model.params)
    executor = graph_executor.GraphModule(library["default"](tvm.cpu()))

    def run(inputs):
        for key, value in inputs.items():
            executor.set_input(key, value)
        executor.run()
        return [executor.get_output(i).numpy() for i in range(executor.get_num_outputs())]

    return run


@pytest.mark.parametrize("name", TINY)
def test_compiled_model_agrees_with_its_reference(relay, name):
    run = compiled(zoo.load(name), opt_level=3)
    for seed in range(3):
        model = zoo.load(name, seed=seed)
        for got, wanted in zip(run(model.inputs), model.reference, strict=True):
            np.testing.assert_allclose(got, wanted, model.rtol, model.atol)


@pytest.mark.parametrize("name", ["resnet18", "mobilenet"])
def test_written_network_is_the_one_in_relay(relay, name):
    model = zoo.load(name, size=64, batch=2)
    (got,) = compiled(model, opt_level=1)(model.inputs)
    np.testing.assert_allclose(got, model.reference[0], model.rtol, model.atol)


@pytest.mark.parametrize("executor", ["graph", "vm", "aot"])
@pytest.mark.parametrize("name", ["mlp", "file_type", "voice_activity"])
def test_every_executor_agrees_with_the_reference(relay, name, executor):
    model = zoo.load(name)
    outputs = build.compile(model, executor).run(**model.inputs)
    for got, wanted in zip(outputs, model.reference, strict=True):
        np.testing.assert_allclose(got, wanted, model.rtol, model.atol)
