"""The record of lesson 15: models compiled by Relay and by Relax, as both see them.

    .venv/bin/python -m bench.relay_and_relax [MODEL ...]

Kernels, the bytes that all kernels write, whether both agree with ONNX Runtime, and how many times
longer Relax's program takes, written to ``bench/relay_and_relax.json``. The lesson compiles the
small models itself and shows the large ones as recorded: Relay alone needs half a minute for each.
"""

from __future__ import annotations

import json
import sys
from datetime import date
from typing import Any

import numpy as np

from helpers import WorkbookError, bridge, build, use_tvm, zoo
from helpers.errors import exit_with_sentence
from helpers.kernels import ROOT

RECORD = ROOT / "bench" / "relay_and_relax.json"
MODELS = ("mlp", "file_type", "squeezenet", "shufflenet", "ocr_direction")


def both(name: str) -> dict[str, Any]:
    """One model on both TVMs; Relay at level 2, since Relax has no AlterOpLayout."""
    model = zoo.load(name)
    relax, relay = build.compile(model), bridge.compile(model, "graph", opt_level=2)
    agree = [
        np.allclose(side.run(**model.inputs)[0], model.reference[0], model.rtol, model.atol)
        for side in (relay, relax)
    ]
    seconds = [side.benchmark(model.inputs, repeat=3).low for side in (relay, relax)]
    return {
        "relay": {"kernels": relay.kernels, "bytes": relay.sizes["tensors"]},
        "relax": {"kernels": relax.kernels, "bytes": relax.sizes["tensors"]},
        "as_onnx_runtime": all(agree),
        "time_relax_over_relay": round(seconds[1] / seconds[0], 1),
    }


def main(names: list[str]) -> int:
    """Measure the models and write the record."""
    use_tvm("relax", quiet=True)
    import tvm

    relay_lock = (ROOT / "relay.lock").read_text(encoding="utf-8")
    models = {}
    for name in names or MODELS:
        models[name] = both(name)
        sides = (models[name][side] for side in ("relay", "relax"))
        print(name, *(f"{len(side['kernels'])} kernels {side['bytes']:,} B" for side in sides))
    record = {
        "date": date.today().isoformat(),
        "relax": f"apache-tvm {tvm.__version__}",
        "relay": next(line.split()[0] for line in relay_lock.splitlines() if "==" in line),
        "models": models,
    }
    RECORD.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except WorkbookError as error:
        exit_with_sentence(error)
