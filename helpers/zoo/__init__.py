"""Real models by name: shapes, sample inputs, reference outputs, and the Relay module.

Nothing is downloaded: the models come out of pinned packages. ``load`` itself touches neither TVM
nor ONNX; importing a model to Relay and computing its reference happen when they are first asked
for.
"""

from __future__ import annotations

import difflib
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

import numpy as np

from helpers.errors import WorkbookError
from helpers.tvm_builds import RELAY_DIR
from helpers.zoo import formats
from helpers.zoo.catalogue import MODELS, Entry
from helpers.zoo.networks import RESNET_UNITS

__all__ = ["Model", "load", "names", "table"]


@dataclass(frozen=True, eq=False)
class Model:
    """A model of the zoo. Get one with :func:`load`.

    ``source`` is package and version; ``weights`` is ``"trained"`` or ``"seeded random"``;
    ``input_shapes`` are the shapes the module takes, an axis of any length given by its name;
    ``sample_length`` is how long such an axis is in ``inputs``.
    Outputs of a compiled model agree with the reference when
    ``|output - reference| <= atol + rtol * |reference|`` (numpy's ``allclose``).
    """

    name: str
    family: str
    source: str
    licence: str
    weights: str
    input_shapes: dict[str, tuple[int | str, ...]]
    rtol: float
    atol: float
    options: dict[str, Any] = field(default_factory=dict)
    seed: int = 0
    sample_length: int | None = None

    @property
    def _entry(self) -> Entry:
        return MODELS[self.name]

    @cached_property
    def inputs(self) -> dict[str, np.ndarray]:
        """Sample inputs drawn from ``seed``; the arrays are read-only."""
        drawn = {}
        any_length = self.sample_length or 0
        for name, (shape, sampler) in self._entry.inputs(self.options).items():
            lengths = tuple(any_length if isinstance(n, str) else n for n in shape)
            drawn[name] = sampler(lengths, self.seed)
            drawn[name].setflags(write=False)
        return drawn

    @cached_property
    def reference(self) -> list[np.ndarray]:
        """The outputs for ``inputs``, computed without TVM."""
        return self.expected(self.inputs)

    def expected(self, inputs: Mapping[str, np.ndarray]) -> list[np.ndarray]:
        """The outputs for any inputs of the right shapes: ONNX Runtime's, LiteRT's for TFLite, and
        numpy's for the networks of ``helpers.zoo.dynamic``.

        Raises :class:`WorkbookError` for other names, shapes and dtypes.
        """
        if not isinstance(inputs, Mapping):
            raise WorkbookError(
                f"The inputs are a dictionary of arrays by name, not {type(inputs).__name__}."
            )
        try:
            return self._runner(inputs)
        except WorkbookError:
            raise
        except Exception as error:
            wanted = ", ".join(
                f"{name} ({', '.join(map(str, shape))}) {self.inputs[name].dtype}"
                for name, shape in self.input_shapes.items()
            )
            given = ", ".join(
                f"{name} {np.shape(value)} {getattr(value, 'dtype', type(value).__name__)}"
                for name, value in inputs.items()
            )
            raise WorkbookError(
                f"{self.name} cannot be run on these inputs: it takes {wanted}, and "
                f"{given or 'nothing'} was given."
            ) from error

    @cached_property
    def _runner(self) -> formats.Runner:
        return self._entry.form.runner(self.input_shapes, self.options)

    @property
    def module(self) -> Any:
        """The typed ``tvm.IRModule``, a new one each time: some compilers change theirs in place.

        Weights are constants of it, unless the model was loaded with ``bind=False``.
        """
        import tvm

        module = self._imported[0]
        return tvm.IRModule(dict(module.functions.items()), dict(module.type_definitions.items()))

    @property
    def params(self) -> dict[str, Any]:
        """Weights that are not yet in the module, by name: empty unless ``bind=False``."""
        return dict(self._imported[1])

    @property
    def _imported(self) -> tuple[Any, dict[str, Any]]:
        return _import(self.name, tuple(self.input_shapes.items()), tuple(self.options.items()))

    @property
    def onnx(self) -> Path | None:
        """The model as an ``.onnx`` file; ``None`` for TFLite models and those in ``dynamic``.

        A model whose weights are drawn here is written under ``.state/zoo`` when first asked for.
        """
        return self._entry.form.onnx_path(self.input_shapes, self.options)


@lru_cache(maxsize=2)
def _import(
    name: str, shapes: tuple[tuple[str, Any], ...], options: tuple[tuple[str, Any], ...]
) -> tuple[Any, dict[str, Any]]:
    chosen = dict(options)
    return formats.import_module(
        MODELS[name].form, dict(shapes), chosen, bind=chosen.get("bind", True)
    )


def names() -> list[str]:
    """The names of all models, simple ones first."""
    return list(MODELS)


def load(name: str, *, seed: int = 0, sample_length: int | None = None, **options: Any) -> Model:
    """The model ``name``, in milliseconds: its parts are made when they are asked for.

    ``seed`` draws the sample inputs (the weights do not depend on it). ``sample_length`` is how
    long an axis of any length is in them; the module does not depend on it. The options differ by
    model:

    - ``batch``: inputs at a time (mlp, resnet18, mobilenet, file_type, ocr_direction). For mlp also
      a name such as ``"batch"``: then that axis has any length, and the model is dynamic.
    - ``length``: of the sequence (encoder, lstm, greedy_search, beam_search): a name, which is the
      default and makes the model dynamic, or a number. With a number the encoder is static, and the
      lstm too: its steps then stand one after another. The searches loop in any case.
    - ``size``: height and width in pixels, a number or a pair, multiples of 32 from 64
      (resnet18, mobilenet, ocr_detector). ``width``: of the line of text (ocr_recognizer).
    - ``layers``: 18 or 34 (resnet18), any number (encoder, early_exit). ``hidden``: width of a
      layer, a multiple of 32 (encoder, lstm, early_exit).
    - ``masked=True``: a second input says which tokens are no padding (encoder). ``both=True``:
      both answers are always computed, which makes a static graph (early_exit). ``beams``: texts
      kept at each step (beam_search).
    - ``bind=False``: keep weights as parameters beside the module (all with random weights).

    Raises :class:`WorkbookError` for an unknown name (with the nearest ones), an option the model
    does not have, a value that does not fit, and a model file that is not installed.
    """
    if not isinstance(name, str) or name not in MODELS:
        asked = str(name).lower().replace(" ", "_")
        near = difflib.get_close_matches(asked, MODELS, n=3, cutoff=0.4)
        hint = f"did you mean {', '.join(near)}?" if near else f"it has {', '.join(names())}."
        raise WorkbookError(f"The zoo has no model {name!r}; {hint}")
    if not isinstance(seed, int) or isinstance(seed, bool) or seed < 0:
        raise WorkbookError(f"seed is a whole number from 0, not {seed!r}.")
    entry = MODELS[name]
    if sample_length is not None:
        sample_length = _checked(name, "sample_length", sample_length)
    for option, value in options.items():
        if option not in entry.options:
            known = ", ".join(["seed", *entry.options])
            raise WorkbookError(f"{name} has no option {option!r}; it has {known}.")
        options[option] = _checked(name, option, value)
    options = {**entry.options, **options}
    entry.form.check()
    shapes = {key: shape for key, (shape, _) in entry.inputs(options).items()}
    dynamic = any(isinstance(n, str) for shape in shapes.values() for n in shape)
    if sample_length is not None and not dynamic:
        raise WorkbookError(
            f"No axis of {name} has any length here, so leave sample_length out: its inputs are "
            f"{', '.join(f'{key} {shape}' for key, shape in shapes.items())}."
        )
    return Model(
        name=name,
        family=entry.family,
        source=_source(entry.package),
        licence=entry.licence,
        weights=entry.weights,
        input_shapes=shapes,
        rtol=entry.rtol,
        atol=entry.atol,
        options=options,
        seed=seed,
        sample_length=(sample_length or entry.sample_length) if dynamic else None,
    )


def _checked(name: str, option: str, value: Any) -> Any:
    """The value in the form the entries use, or :class:`WorkbookError`."""
    number = isinstance(value, int) and not isinstance(value, bool)
    if option == "size":
        pair = tuple(value) if isinstance(value, (tuple, list)) else (value, value)
        if len(pair) == 2 and all(isinstance(n, int) and n >= 64 and n % 32 == 0 for n in pair):
            return pair
        wanted = "a multiple of 32 from 64 (or a pair of them)"
    elif option == "width":
        if number and value >= 64 and value % 8 == 0:
            return value
        wanted = "a multiple of 8 from 64"
    elif option == "layers" and name == "resnet18":
        if number and value in RESNET_UNITS:
            return value
        wanted = " or ".join(map(str, RESNET_UNITS))
    elif option == "hidden":
        if number and value >= 32 and value % 32 == 0:
            return value
        wanted = "a multiple of 32 from 32"
    elif option in ("bind", "masked", "both"):
        if isinstance(value, bool):
            return value
        wanted = "True or False"
    else:
        named = option == "length" or (option == "batch" and name == "mlp")
        most = MODELS[name].longest if "length" in option else None
        if named and isinstance(value, str) and value:
            return value
        if number and 1 <= value <= (most or value):
            return value
        wanted = "a whole number from 1"
        wanted += f" to {most}" * bool(most) + " or an axis name" * named
    raise WorkbookError(f"{option} of {name} is {wanted}, not {value!r}.")


@lru_cache
def _source(package: str) -> str:
    """``package version``, wherever the package is installed."""
    for path in ([str(formats.MODELS_DIR)], [str(RELAY_DIR)], sys.path):
        for distribution in distributions(name=package, path=path):
            return f"{package} {distribution.version}"
    return package


def table() -> str:
    """The zoo as a plain-text table, one line a model."""
    rows = [("name", "family", "inputs", "weights", "source", "licence")]
    for name in names():
        model = load(name)
        shapes = ", ".join("×".join(map(str, shape)) for shape in model.input_shapes.values())
        rows.append((name, model.family, shapes, model.weights, model.source, model.licence))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
    return "\n".join(lines)
