"""What the lessons say of GPUs, checked and measured on one: writes ``bench/gpu_record.json``.

On a GPU that CUDA reaches: every zoo model that has an ONNX form against its reference; what fusion
does to launches, bytes and time; how fast memory is copied; layouts and number types of a
convolution; batch sizes; copies between host and device. Under eight minutes: what does not fit is
listed as left out. Without a GPU it says so and ends with 1.

    .venv/bin/python -m bench.gpu_check
    .venv/bin/python -m bench.gpu_check --dry-run           # compiles all of it, runs nothing
    .venv/bin/python -m bench.gpu_check --models mlp squeezenet --seconds 120
"""

from __future__ import annotations

import argparse
import datetime
import hashlib
import json
import platform
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from helpers import WorkbookError, cuda_source, relax_ir, use_tvm, zoo
from helpers.errors import exit_with_sentence
from helpers.relax_build import module_of
from helpers.tvm_errors import reason

RECORD = Path(__file__).with_name("gpu_record.json")
ELEMENTS = 2**26
"""Numbers in a tensor of the copy and of the chain: 256 MiB, more than a GPU's caches hold."""

BATCHES = (1, 4, 16, 64)
LAYOUTS = (
    ("NCHW", "OIHW", (64, 56, 56), (64, 64, 3, 3)),
    ("NHWC", "OHWI", (56, 56, 64), (64, 3, 3, 64)),
)
DTYPES = ("float32", "float16")


class Check:
    """The device, or none of it in a dry run."""

    def __init__(self, dry_run: bool, seconds: float) -> None:
        import tvm

        self.dry_run = dry_run
        self.end = time.monotonic() + seconds
        self.device = tvm.cuda(0)
        if not dry_run and not self.device.exist:
            raise WorkbookError(
                "There is no GPU here that CUDA reaches: run this on a machine with one, or with "
                "--dry-run, which only compiles."
            )
        self.architecture = cuda_source.ARCHITECTURE
        if not dry_run:
            self.architecture = "sm_" + str(self.device.compute_version).replace(".", "")

    @property
    def late(self) -> bool:
        """Whether the time for new models is over."""
        return time.monotonic() > self.end

    def code(self, model: Any, *, fuse: bool = True) -> cuda_source.Code:
        """The model compiled for this device, or for the lessons' GPU in a dry run."""
        return cuda_source.generate(model, fuse=fuse, architecture=self.architecture)

    def machine(self, code: cuda_source.Code) -> tuple[Any, Callable[..., list[np.ndarray]]]:
        """The virtual machine of a model, and a function from arrays to arrays."""
        import tvm
        from tvm import relax

        machine = relax.VirtualMachine(code.executable, self.device)

        def run(*arrays: np.ndarray) -> list[np.ndarray]:
            machine.set_input("main", *[tvm.runtime.tensor(a, self.device) for a in arrays])
            machine.invoke_stateful("main")
            outputs = machine.get_outputs("main")
            listed = [outputs] if hasattr(outputs, "numpy") else list(outputs)
            return [output.numpy() for output in listed]

        return machine, run

    def seconds(self, code: cuda_source.Code, *arrays: np.ndarray) -> float | None:
        """Median seconds of an inference whose inputs are on the device; ``None`` in a dry run."""
        if self.dry_run:
            return None
        machine, run = self.machine(code)
        run(*arrays)
        timer = machine.time_evaluator(
            "invoke_stateful", self.device, number=1, repeat=11, min_repeat_ms=20
        )
        return float(np.median(timer("main").results))

    def copied(self, megabytes: int) -> dict[str, float] | None:
        """Median seconds of a copy from host to device and back."""
        if self.dry_run:
            return None
        import tvm

        host = np.ones(megabytes * 2**18, "float32")
        there = tvm.runtime.empty(host.shape, "float32", self.device)
        ways = {"to_device": lambda: there.copyfrom(host), "to_host": there.numpy}
        return {name: self._clock(way) for name, way in ways.items()}

    def _clock(self, way: Callable[[], Any]) -> float:
        taken = []
        for _ in range(7):
            self.device.sync()
            start = time.perf_counter()
            way()
            self.device.sync()
            taken.append(time.perf_counter() - start)
        return float(np.median(taken[1:]))


def counts(code: cuda_source.Code, seconds: float | None) -> dict[str, Any]:
    """Launches and bytes (ledger) of one inference, and its seconds if it was timed."""
    return {"launches": len(code.launches), "bytes": code.moved, "seconds": seconds}


# --- the sections of the record ------------------------------------------------------------------


def models(check: Check, names: list[str]) -> dict[str, Any]:
    """Every model against its reference; ``near``: all outputs are within its tolerance."""
    found: dict[str, Any] = {}
    for name in names:
        if check.late:
            found[name] = {"left_out": "no time was left"}
            continue
        try:
            model = zoo.load(name)
            if model.onnx is None:
                continue
            code = check.code(model)
            found[name] = counts(code, None)
            if not check.dry_run:
                outputs = check.machine(code)[1](*_arrays(model))
                pairs = list(zip(outputs, model.reference, strict=True))
                found[name]["difference"] = max(float(np.max(np.abs(a - b))) for a, b in pairs)
                found[name]["near"] = all(
                    np.allclose(a, b, rtol=model.rtol, atol=model.atol) for a, b in pairs
                )
                found[name]["seconds"] = check.seconds(code, *_arrays(model))
        except WorkbookError as error:
            found[name] = {"refused": str(error).splitlines()[0]}
        except Exception as error:  # the other models are still to be checked
            found[name] = {"near": False, "failed": reason(error)}
        print(f"{name:18}{found[name]}", flush=True)
    return found


def _arrays(model: Any) -> list[np.ndarray]:
    _, names = module_of(model)
    return [np.asarray(model.inputs[name]) for name in names]


def fusion(check: Check) -> dict[str, Any]:
    """A chain of eight operators on 256 MiB and a network, each with fusion and without."""
    from tvm import relax

    def chain(emit: Any, x: Any) -> Any:
        for operator in (relax.op.negative, relax.op.abs) * 4:
            x = emit(operator(x))
        return x

    ones = np.ones(ELEMENTS, "float32")
    module = relax_ir.program(chain, (ELEMENTS,))
    found: dict[str, Any] = {}
    for label, fuse in (("fused", True), ("alone", False)):
        code = check.code(module, fuse=fuse)
        found[f"chain_{label}"] = counts(code, check.seconds(code, ones))
        model = zoo.load("squeezenet")
        code = check.code(model, fuse=fuse)
        found[f"squeezenet_{label}"] = counts(code, check.seconds(code, *_arrays(model)))
    return found


def bandwidth(check: Check) -> dict[str, Any]:
    """One kernel that reads 256 MiB and writes them: bytes and seconds."""
    from tvm import relax

    code = check.code(relax_ir.program(lambda emit, x: emit(relax.op.negative(x)), (ELEMENTS,)))
    return counts(code, check.seconds(code, np.ones(ELEMENTS, "float32")))


def layouts(check: Check) -> list[dict[str, Any]]:
    """A convolution of 64 to 64 channels in two layouts and two number types.

    ``tensor_cores``: the generated text has an instruction for them.
    """
    from tvm import relax

    rows = []
    for layout, kernel, data, weight in LAYOUTS:
        for dtype in DTYPES:

            def body(emit: Any, x: Any, w: Any, layout: str = layout, kernel: str = kernel) -> Any:
                return emit(
                    relax.op.nn.conv2d(x, w, padding=1, data_layout=layout, kernel_layout=kernel)
                )

            shapes = ((16, *data), weight)
            code = check.code(relax_ir.program(body, *shapes, dtype=dtype))
            seconds = check.seconds(code, *[np.ones(shape, dtype) for shape in shapes])
            tensor_cores = any("mma" in one.source for one in code.kernels)
            rows.append(
                {
                    "layout": layout,
                    "dtype": dtype,
                    "tensor_cores": tensor_cores,
                    **counts(code, seconds),
                }
            )
    return rows


def batches(check: Check) -> dict[str, Any]:
    """A network of three dense layers for several batches."""
    found = {}
    for batch in BATCHES:
        model = zoo.load("mlp", batch=batch)
        code = check.code(model)
        found[str(batch)] = counts(code, check.seconds(code, *_arrays(model)))
    return found


def copies(check: Check) -> dict[str, Any]:
    """Megabytes and the seconds to copy them to the device and back."""
    return {str(megabytes): check.copied(megabytes) for megabytes in (1, 16, 256)}


def main() -> int:
    """Check what the command line asks for; 1 when a part fails or a model is out of tolerance."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--dry-run", action="store_true", help="compile all, run and write nothing")
    parser.add_argument("--models", nargs="*", metavar="MODEL", help="default: the whole zoo")
    parser.add_argument("--seconds", type=float, default=400, help="no model starts after these")
    parser.add_argument("--record", type=Path, default=RECORD, help="the file that is written")
    arguments = parser.parse_args()
    use_tvm("relax", quiet=True)
    check = Check(arguments.dry_run, arguments.seconds)
    found: dict[str, Any] = {}
    failed = []
    for name, section in (
        ("bandwidth", bandwidth),
        ("fusion", fusion),
        ("layouts", layouts),
        ("batches", batches),
        ("copies", copies),
    ):
        try:
            found[name] = section(check)
        except WorkbookError:
            raise
        except Exception as error:  # what else can be measured is still of use
            found[name] = {"failed": reason(error)}
            failed.append(name)
        print(f"{name}: {json.dumps(found[name])}", flush=True)
    found["models"] = models(check, zoo.names() if arguments.models is None else arguments.models)
    failed += [name for name, one in found["models"].items() if one.get("near") is False]
    if check.dry_run:
        print("Compiled for CUDA, nothing was run: no record is written.")
        return 0
    arguments.record.write_text(json.dumps({**about(check), **found}, indent=1) + "\n")
    print(
        f"Written: {arguments.record}. Failed or out of tolerance: {', '.join(failed) or 'none'}."
    )
    return min(len(failed), 1)


def about(check: Check) -> dict[str, Any]:
    """Where and with what the record was made."""
    import tvm

    return {
        "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
        "device": str(check.device.device_name),
        "architecture": check.architecture,
        "versions": {"tvm": tvm.__version__, "python": platform.python_version()},
        "script": "bench/gpu_check.py",
        "script_sha256": hashlib.sha256(Path(__file__).read_bytes()).hexdigest(),
    }


if __name__ == "__main__":
    try:
        sys.exit(main())
    except WorkbookError as error:
        exit_with_sentence(error)
