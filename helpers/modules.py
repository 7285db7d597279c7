"""From whatever the reader holds (a function, a module, a zoo model) to a Relay module."""

from __future__ import annotations

from typing import Any

from helpers.errors import WorkbookError
from helpers.tvm_builds import need_relay
from helpers.tvm_errors import explained


def as_module(x: Any) -> Any:
    """``x`` as an ``IRModule``; the same object when it is one.

    ``x`` is an ``IRModule``, a Relay function or expression (its free variables become parameters)
    or anything whose ``module`` is an ``IRModule``, such as a zoo model. Raises
    :class:`WorkbookError` for anything else, and for a function with free variables.
    """
    need_relay()
    import tvm
    from tvm import relay

    if not isinstance(x, tvm.runtime.Object) and isinstance(
        getattr(x, "module", None), tvm.IRModule
    ):
        x = x.module
    if isinstance(x, tvm.IRModule):
        return x
    if isinstance(x, relay.Expr) and not isinstance(x, tvm.ir.Op):
        if not isinstance(x, relay.Function):
            x = relay.Function(relay.analysis.free_vars(x), x)
        if free := [variable.name_hint for variable in relay.analysis.free_vars(x)]:
            raise WorkbookError(
                f"The function uses {', '.join(free)} without taking it as a parameter: "
                "name it in relay.Function([...], ...), or bind it to a constant."
            )
        return tvm.IRModule.from_expr(x)
    kind = type(x).__name__ if x is not None else "NoneType (is a `return` missing?)"
    raise WorkbookError(f"A Relay function, an IRModule or a zoo model is needed here, not {kind}.")


def copy(module: Any) -> Any:
    """A module of its own with the same functions, which are immutable.

    Some passes and compilers change the module they are given in place (``ToANormalForm``,
    ``relay.vm.compile``).
    """
    import tvm

    return tvm.IRModule(module.functions, module.type_definitions, attrs=module.attrs)


def typed(x: Any) -> Any:
    """A copy of ``x`` with all types inferred. Raises :class:`WorkbookError` on a type error."""
    module = as_module(x)
    from tvm import relay

    with explained("Relay cannot infer the types of this program"):
        return relay.transform.InferType()(copy(module))
