"""How many times faster is a chain of cheap operators when it is one kernel?

By the bytes the answer is the length of the chain: each of n kernels reads one tensor and writes
one, the fused kernel does so once. It holds while memory, and not arithmetic, sets the pace.

    .venv/bin/python -m bench.fused_chain --help
"""

from __future__ import annotations

import argparse
from typing import Any

from helpers import WorkbookError, use_tvm
from helpers.errors import exit_with_sentence
from helpers.fusion import Ledger, intermediate_buffers, ledger
from helpers.measure import Comparison, compare, compare_processes
from helpers.targets import resolve


def chain(length: int, elements: int) -> Any:
    """``y = x + c + c + ...``: ``length`` additions to ``elements`` float32 numbers.

    The operand is a run-time scalar: additions of constants would be merged by SimplifyExpr.
    """
    import tvm
    from tvm import relay

    x = relay.var("x", shape=(elements,), dtype="float32")
    c = relay.var("c", shape=(), dtype="float32")
    y = x
    for _ in range(length):
        y = relay.add(y, c)
    return tvm.IRModule.from_expr(relay.Function([x, c], y))


def build(mod: Any, target: str, fused: bool) -> Any:
    """``relay.build`` at level 3, with or without fusion and with nothing else changed."""
    import tvm
    from tvm import relay

    config = {} if fused else {"relay.FuseOps.max_depth": 1}
    with tvm.transform.PassContext(opt_level=3, config=config):
        return relay.build(mod, target=resolve(target))


def runner(library: Any, elements: int) -> Any:
    """The library in a graph executor, with its inputs set; call ``run`` to run it."""
    import numpy as np
    import tvm
    from tvm.contrib import graph_executor

    module = graph_executor.GraphModule(library["default"](tvm.cpu()))
    module.set_input("x", np.linspace(0, 1, elements, dtype="float32"))
    module.set_input("c", np.float32(0.5))
    return module


def measure(
    length: int = 8, megabytes: float = 64, target: str = "host", rounds: int = 11
) -> tuple[Ledger, Ledger, Comparison]:
    """The ledgers of both builds and the comparison of their run times.

    One tensor holds ``megabytes`` times 2**20 bytes. Raises :class:`WorkbookError` when the builds
    are not what the question is about: ``length`` kernels and one, nothing kept inside.
    """
    import numpy as np

    elements = int(megabytes * 2**20) // 4
    mod = chain(length, elements)
    unfused, fused = build(mod, target, fused=False), build(mod, target, fused=True)
    before, after = ledger(unfused), ledger(fused)
    if (before.kernels, after.kernels) != (length, 1) or any(intermediate_buffers(fused).values()):
        raise WorkbookError(
            f"Expected {length} kernels and 1 without buffers inside, and got {before.kernels} and "
            f"{after.kernels}: the schedules are not upstream's (see helpers/tvm_builds.py)."
        )
    a, b = runner(unfused, elements), runner(fused, elements)
    a.run()
    b.run()
    np.testing.assert_array_equal(a.get_output(0).numpy(), b.get_output(0).numpy())
    return before, after, compare({"unfused": a.run, "fused": b.run}, rounds=rounds, min_time=0.05)


def speedup(
    length: int = 8, megabytes: float = 64, target: str = "host", rounds: int = 11
) -> float:
    """How many times faster the fused chain runs: what :func:`compare_processes` repeats."""
    use_tvm("relay", quiet=True)
    return measure(length, megabytes, target, rounds)[2].speedup("fused")


def main() -> None:
    """Print what one process sees, then the median and range over fresh ones."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--length", type=int, default=8, help="operators in the chain")
    parser.add_argument("--megabytes", type=float, default=64, help="size of a tensor, 2**20 B")
    parser.add_argument("--target", default="host", help="host, teaching or a TVM target string")
    parser.add_argument("--processes", type=int, default=5, help="fresh processes")
    given = parser.parse_args()
    use_tvm("relay")
    arguments = {"length": given.length, "megabytes": given.megabytes, "target": given.target}
    before, after, once = measure(**arguments)
    print(before.against(after, ("unfused", "fused")))
    print(once)
    many = compare_processes(
        "bench.fused_chain:speedup", arguments=arguments, processes=given.processes
    )
    print(f"bytes say {before.total / after.total:.2f} times, the clock says {many}")


if __name__ == "__main__":
    try:
        main()
    except WorkbookError as error:
        exit_with_sentence(error)
