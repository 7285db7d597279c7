"""How far is each model of the zoo from its reference, on each executor?

Prints a line per model and executor: seconds to compile, kernels, the largest difference from the
independent reference, and whether it is within the model's tolerance. A dynamic model runs on the
VM alone. Takes about 20 minutes.

    .venv/bin/python -m bench.zoo_accuracy [MODEL ...]
"""

from __future__ import annotations

import argparse
import sys

import numpy as np

from helpers import WorkbookError, build, ir, use_tvm, zoo
from helpers.errors import exit_with_sentence

EXECUTORS = ("graph", "vm", "aot")


def worst(compiled: build.Compiled, model: zoo.Model) -> tuple[float, bool]:
    """The largest ``|output - reference|``, and whether all outputs are within tolerance."""
    outputs = compiled.run(**model.inputs)
    pairs = list(zip(outputs, model.reference, strict=True))
    difference = max(float(np.max(np.abs(ours - theirs))) for ours, theirs in pairs)
    near = all(np.allclose(a, b, rtol=model.rtol, atol=model.atol) for a, b in pairs)
    return difference, near


def main() -> int:
    """Measure the models named on the command line, or all; 1 when one is out of tolerance."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", default=zoo.names())
    use_tvm("relay")
    failed = 0
    print(f"{'model':18}{'executor':9}{'compile':>9}{'kernels':>9}{'difference':>12}")
    for name in parser.parse_args().models:
        model = zoo.load(name)
        for executor in ("vm",) if ir.is_dynamic(model.module) else EXECUTORS:
            compiled = build.compile(model, executor)
            difference, near = worst(compiled, model)
            failed += not near
            seconds = f"{compiled.times['compile']:.1f} s"
            row = f"{name:18}{executor:9}{seconds:>9}{len(compiled.kernels):9}{difference:12.1e}"
            print(row if near else f"{row}  OUT OF TOLERANCE", flush=True)
    return min(failed, 1)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except WorkbookError as error:
        exit_with_sentence(error)
