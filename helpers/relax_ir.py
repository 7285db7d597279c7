"""Small Relax programs: written, printed, put through passes, and what can be counted in them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any


def program(body: Callable[..., Any], *shapes: Sequence[Any], dtype: str = "float32") -> Any:
    """A Relax module with a function ``main`` of one dataflow block.

    Its inputs ``x0``, ``x1``, ... are tensors of ``shapes`` (an axis is a number or a
    ``tirx.Var``). ``body(emit, x0, ...)`` returns the call whose value is the result; ``emit``
    gives a name to the value of a call that is used on the way.
    """
    from tvm import relax

    builder = relax.BlockBuilder()
    types = [relax.TensorType(tuple(shape), dtype) for shape in shapes]
    inputs = [relax.Var(f"x{i}", kind) for i, kind in enumerate(types)]
    try:
        with builder.function("main", inputs):
            with builder.dataflow():
                result = builder.emit_output(body(builder.emit, *inputs))
            builder.emit_func_output(result)
    except BaseException:
        builder._end_block()  # or its end is told on standard error, below the caller's traceback
        raise
    return builder.get()


def text(module: Any) -> str:
    """The function ``main`` as text, without comments and blank lines."""
    lines = module["main"].script().splitlines()
    return "\n".join(line for line in lines if line.strip() and not line.startswith("#"))


def after(module: Any, *passes: Any, config: Mapping[str, Any] | None = None) -> Any:
    """The module after these passes, with settings of passes by name."""
    import tvm

    with tvm.transform.PassContext(config=dict(config or {})):
        return tvm.transform.Sequential(list(passes))(module)


def kernels(module: Any) -> list[str]:
    """The names of the kernels that ``main`` calls by ``call_tir``, in order."""
    return re.findall(r"R\.call_tir\((?:cls\.)?(\w+)", text(module))


def operators(module: Any) -> int:
    """The number of calls of Relax operators in ``main``."""
    return len(re.findall(r"= R\.(?!call_tir|output)[\w.]+\(", text(module)))


def called(built: Any) -> list[str]:
    """The kernels that the bytecode of an executable calls, in order."""
    words = [line.split() for line in built.as_text().splitlines()]
    names = [word[1] for word in words if word[:1] == ["call"]]
    return [name for name in names if not name.startswith("vm.builtin.")]


def bytecode(built: Any) -> str:
    """The instructions of ``main`` in an executable's bytecode."""
    return str(built.as_text()).split("@main:")[-1].split("\n@")[0].strip("\n")


def storages(built: Any) -> int:
    """How many blocks of memory the bytecode of an executable allocates for tensors."""
    return bytecode(built).count("vm.builtin.alloc_storage")


def passes_run(module: Any, target: Any, opt_level: int) -> set[str]:
    """The passes on Relax functions that run in a build with the target's own pipeline."""
    import tvm
    from tvm import relax
    from tvm.ir.instrument import pass_instrument

    names: set[str] = set()

    class Names:
        def run_after_pass(self, module: Any, info: Any) -> None:
            names.add(str(info.name))

    with tvm.transform.PassContext(opt_level=opt_level, instruments=[pass_instrument(Names)()]):
        relax.build(module, target, relax_pipeline=relax.get_default_pipeline(target))
    wrappers = {"sequential", "_pipeline"}  # a pass that runs a list of passes
    return {name for name in names - wrappers if not name.startswith(("tirx.", "s_tir."))}


def loops(module: Any) -> tuple[int, int, int]:
    """Of the one kernel of a module: bytes of buffers inside, parallel loops, vectors of 8."""
    from tvm import tirx

    (kernel,) = (f for f in module.functions.values() if isinstance(f, tirx.PrimFunc))
    code = kernel.script().replace("T.int64(", "(")
    shapes = re.findall(r"= T\.sblock_alloc_buffer\(\((.*?)\)(?:, \"|\)\n)", code)
    size = 0
    for shape in shapes:
        count = 4  # float32
        for length in re.findall(r"\d+", shape):
            count *= int(length)
        size += count
    return size, code.count("T.parallel("), code.count("x8")
