"""The pass microscope: run a pipeline of passes and keep what every pass did to the program.

    trace = passes.trace(model)                    # the graph passes of relay.build at level 3
    trace = passes.trace(program, ["SimplifyInference", "FoldConstant", "FuseOps"])
    print(trace.table())
    print(trace.step("FoldConstant").diff())

TVM itself reports every pass that it runs to a ``PassInstrument``: names, order and nesting are
TVM's own. What a pass did is worked out only when it is asked for, from the modules before and
after it.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from helpers import differences, ir, modules, plots, targets
from helpers.build import checked_config, checked_names, pass_names
from helpers.compiled import nearest
from helpers.errors import WorkbookError, whole_number
from helpers.tvm_builds import need_relay
from helpers.tvm_errors import explained

PIPELINES = ("build", "vm")


# --- one number per question ----------------------------------------------------------------------


@dataclass(frozen=True)
class Counts:
    """What a module holds, over all its Relay functions; each shared node counts once.

    ``operators`` are calls of operators, also those inside fused functions; ``calls`` are calls of
    anything: operators, fused functions, closures, globals. ``constants`` are constant nodes (a
    scalar is one) and ``constant_bytes`` their size. ``lets`` are ``let`` bindings.
    ``intermediate_bytes`` is the size of all tensors that lie between kernels: the results of all
    calls outside fused functions, without the results of the functions and without those of
    operators that only rename a shape (``reshape``); ``None`` when a size is not known before the
    run.
    """

    operators: int
    calls: int
    constants: int
    lets: int
    constant_bytes: int
    intermediate_bytes: int | None


COUNTS = {
    "operators": "operators",
    "calls": "calls",
    "constants": "constants",
    "lets": "lets",
    "constant_bytes": "constants, bytes",
    "intermediate_bytes": "intermediates, bytes",
}
"""The fields of :class:`Counts`, and what a table or a figure calls them."""


def counts(x: Any) -> Counts:
    """The counts of a Relay function, module or zoo model. Types are inferred on a copy.

    Raises :class:`WorkbookError` for anything else, and on a type error.
    """
    return _count(modules.typed(x))


def _count(module: Any) -> Counts:
    from tvm import relay

    found: dict[Any, None] = {}
    inside: set[Any] = set()
    results: set[Any] = set()

    def visit(node: Any) -> None:
        found[node] = None
        if isinstance(node, relay.Function):
            if _flag(node, "Primitive"):
                relay.analysis.post_order_visit(node.body, inside.add)
            else:
                results.update(_results(node.body))

    for function in module.functions.values():
        if isinstance(function, relay.Function):
            relay.analysis.post_order_visit(function, visit)
    calls = [node for node in found if isinstance(node, relay.Call)]
    constants = [node for node in found if isinstance(node, relay.Constant)]
    sizes = [
        _bytes(call)
        for call in calls
        if call not in inside and call not in results and not _renames(call)
    ]
    return Counts(
        operators=sum(_is_operator(call.op) for call in calls),
        calls=len(calls),
        constants=len(constants),
        lets=sum(isinstance(node, relay.Let) for node in found),
        constant_bytes=sum(
            ir.tensor_bytes(tuple(node.data.shape), node.data.dtype) or 0 for node in constants
        ),
        intermediate_bytes=None if None in sizes else sum(size or 0 for size in sizes),
    )


def _is_operator(callee: Any) -> bool:
    import tvm

    return isinstance(callee, tvm.ir.Op)


def _flag(function: Any, name: str) -> bool:
    return bool(function.attrs and name in function.attrs and int(function.attrs[name]))


def _renames(call: Any) -> bool:
    """Whether the call gives a tensor that lies where its argument lies."""
    from tvm import relay

    if _is_operator(call.op):
        return call.op.name == "on_device" or bool(call.op.get_attr("TReshapeOp"))
    return isinstance(call.op, relay.Function) and _flag(call.op, "relay.reshape_only")


def _results(body: Any) -> Iterator[Any]:
    """The expressions whose value is (part of) the result of a function with this body."""
    from tvm import relay

    bound: dict[Any, Any] = {}
    waiting = [body]
    while waiting:
        node = waiting.pop()
        if isinstance(node, relay.Let):
            bound[node.var] = node.value
            waiting.append(node.body)
        elif isinstance(node, relay.Var) and node in bound:
            waiting.append(bound[node])
        elif isinstance(node, relay.Tuple):
            waiting.extend(node.fields)
        elif isinstance(node, relay.TupleGetItem):
            waiting.append(node.tuple_value)
        elif isinstance(node, relay.If):
            waiting += [node.true_branch, node.false_branch]
        elif isinstance(node, relay.Call):
            yield node
            if _renames(node):
                waiting.extend(node.args)


def _bytes(call: Any) -> int | None:
    """Bytes of the tensors that a call gives; ``None`` when a dimension is unknown."""
    from tvm import relay

    total = 0
    try:
        waiting = [call.checked_type]
    except ValueError:  # not typed
        return None
    while waiting:
        kind = waiting.pop()
        if isinstance(kind, relay.TupleType):
            waiting.extend(kind.fields)
        elif isinstance(kind, relay.TensorType):
            try:
                shape = tuple(int(axis) for axis in kind.shape)
            except TypeError:
                return None
            total += ir.tensor_bytes(shape, kind.dtype) or 0
    return total


# --- passes by name -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Info:
    """What TVM says of a pass: from ``level`` on a ``Sequential`` runs it, after ``required``.

    ``kind`` is ``"module"`` (it sees the whole module), ``"function"`` (it rewrites one function at
    a time, after which TVM infers types), ``"sequential"`` (other passes in a row) or
    ``"internal"`` (TVM gives no constructor for it, so that its kind cannot be asked).
    """

    name: str
    level: int
    required: tuple[str, ...]
    kind: str


_MADE_BY = {  # name of a pass -> what its constructor is called
    "CombineParallelConv2d": "CombineParallelConv2D",
    "InlineGlobals": "Inline",
    "PartialEval": "PartialEvaluate",
}
_ANY_ARGUMENTS: dict[str, tuple[Any, ...]] = {  # enough to ask a pass for its name and level
    "AnnotateTarget": (["llvm"],),
    "ConvertLayout": ({},),
    "MergeComposite": ([],),
    "SplitArgs": (1,),
}


def info(name: Any) -> Info:
    """Level, required passes and kind of a pass, by its name or of a pass object.

    Raises :class:`WorkbookError` for a name that is no pass, and for one that cannot be made from
    its name.
    """
    need_relay()
    made = name if _is_pass(name) else _make(name, _ANY_ARGUMENTS.get(name, ()))
    return Info(
        str(made.info.name),
        int(made.info.opt_level),
        tuple(map(str, made.info.required)),
        _kind_of(made),
    )


def _is_pass(item: Any) -> bool:
    import tvm

    return isinstance(item, tvm.transform.Pass)


def _kind_of(made: Any) -> str:
    import tvm

    if isinstance(made, tvm.transform.Sequential):
        return "sequential"
    return "module" if isinstance(made, tvm.transform.ModulePass) else "function"


@functools.cache
def _kind(name: str) -> str:
    if name == "sequential":
        return name
    try:
        return _kind_of(_make(name, _ANY_ARGUMENTS.get(name, ())))
    except WorkbookError:
        return "internal"


@functools.lru_cache(maxsize=1)
def _known() -> frozenset[str]:
    """Names under which a Relay pass may be asked for."""
    relay_passes = {name for name in pass_names() if not name.startswith("tir.")}
    return frozenset(relay_passes | set(_MADE_BY.values()))


def _constructor(name: str) -> Callable[..., Any] | None:
    import tvm
    from tvm import relay

    maker = _MADE_BY.get(name, name)
    return getattr(relay.transform, maker, None) or tvm.get_global_func(
        f"relay._transform.{maker}", allow_missing=True
    )


def _make(name: Any, arguments: Sequence[Any] = ()) -> Any:
    """The pass called ``name``, with TVM's default settings."""
    if not isinstance(name, str):
        raise WorkbookError(
            'A pass is given by its name, such as "FoldConstant", or as an object, not '
            + (
                f"the function {name.__name__}: call it."
                if hasattr(name, "__name__")
                else f"{name!r}."
            )
        )
    if name not in _known():
        hint = nearest(name, (*PIPELINES, *_known()))
        raise WorkbookError(f"TVM has no Relay pass called {name!r}{hint}.")
    maker = _constructor(name)
    if maker is None:
        raise WorkbookError(
            f"{name} runs only inside TVM's own pipelines: TVM has no constructor for it."
        )
    try:
        made = maker(*arguments)
    except Exception as error:
        raise WorkbookError(
            f"{name} cannot be made from its name alone: give the pass itself, "
            f"relay.transform.{name}{_signature(maker)}."
        ) from error
    if not _is_pass(made):
        raise WorkbookError(f"{name} is no pass: TVM's function of this name does something else.")
    return made


def _signature(maker: Callable[..., Any]) -> str:
    try:
        return str(inspect.signature(maker))
    except (TypeError, ValueError):
        return "(...)"


def _listed(passes: Any) -> list[Any]:
    """The pass objects of one or several names and passes."""
    several = isinstance(passes, (list, tuple))
    return [item if _is_pass(item) else _make(item) for item in (passes if several else [passes])]


# --- running ----------------------------------------------------------------------------------


def run(
    x: Any,
    passes: Any,
    *,
    opt_level: int = 4,
    disabled_pass: Collection[str] = (),
    required_pass: Collection[str] = (),
    config: Mapping[str, Any] | None = None,
    target: Any = None,
) -> Any:
    """A typed ``IRModule``: ``x`` after ``passes``; ``x`` stays as it is.

    ``x`` is a Relay function, an ``IRModule`` or a zoo model; weights that are not yet constants
    of it stay parameters. ``passes`` is one or a list of names and pass objects. They run in one
    ``tvm.transform.Sequential``, so that what a pass requires (InferType) runs before it. At the
    default level 4 none of them is left out; at a lower ``opt_level`` TVM silently skips those of
    a higher level, unless ``required_pass`` names them. ``target`` (as in :mod:`helpers.targets`;
    the teaching CPU) is what layouts are chosen for.

    Raises :class:`WorkbookError` for a name that is no pass, a wrong setting, and when a pass fails
    on this program.
    """
    need_relay()
    listed = _listed(passes)
    job = _Job.of(opt_level, disabled_pass, required_pass, config, target, listed)
    return job.run(modules.typed(x), listed, _Recorder(keep=False))


@dataclass(frozen=True)
class _Job:
    """The settings of one run."""

    opt_level: int
    disabled: tuple[str, ...]
    required: tuple[str, ...]
    config: dict[str, Any]
    target: Any

    @classmethod
    def of(
        cls,
        opt_level: int,
        disabled: Collection[str],
        required: Collection[str],
        config: Mapping[str, Any] | None,
        target: Any,
        listed: Sequence[Any],
    ) -> _Job:
        level = whole_number(opt_level, "opt_level", 0)
        if level > 4:
            raise WorkbookError(f"opt_level is 0, 1, 2, 3 or 4, not {opt_level!r}.")
        own = {str(item.info.name) for item in listed}
        return cls(
            level,
            checked_names("disabled_pass", disabled, own),
            checked_names("required_pass", required, own),
            checked_config(config),
            targets.resolve(target),
        )

    def enabled(self, known: Info) -> bool:
        """Whether a ``Sequential`` runs such a pass."""
        if known.name in self.disabled:
            return False
        return known.name in self.required or known.level <= self.opt_level

    def run(self, module: Any, passes: Sequence[Any], recorder: _Recorder) -> Any:
        import tvm

        sequence = tvm.transform.Sequential(list(passes), name=_OWN)

        def work() -> Any:
            with self.target:
                return sequence(module)

        return self.watch(work, recorder)

    def watch(self, work: Callable[[], Any], recorder: _Recorder) -> Any:
        """The typed module that ``work`` gives, with ``recorder`` watching its pass context."""
        import tvm
        from tvm import relay

        context = tvm.transform.PassContext(
            opt_level=self.opt_level,
            required_pass=list(self.required),
            disabled_pass=list(self.disabled),
            instruments=[recorder.instrument],
            config=self.config,
        )
        try:
            with explained(""):
                with context:
                    end = work()
                return relay.transform.InferType()(modules.copy(end))
        except WorkbookError as error:
            why = str(error).removeprefix(": ")
            if recorder.running:
                what = f"{recorder.running[-1]} fails on this program"
            elif recorder.last:
                what = f"After {recorder.last} the program has no valid types"
            else:
                what = "TVM cannot run these passes"
            raise WorkbookError(f"{what}: {why}") from error.__cause__


_OWN = "what the caller listed"  # the name of our Sequential
_NOT_THE_CALLERS = (_OWN, "InferType", "sequential")


class _Recorder:
    """Keeps the passes that run: which, when, how deep, and the modules around each.

    Nothing here is allowed to fail: an exception inside an instrument ends the pass with TVM's
    error in place of its own. So the callbacks only copy references, and all else is done later.
    """

    def __init__(self, keep: bool = True) -> None:
        import tvm

        self.records: list[_Record] = []
        self.last = ""  # the pass that ended last
        self._open: list[_Record] = []
        self.spent = 0.0  # seconds in here
        recorder = self

        @tvm.ir.instrument.pass_instrument
        class Instrument:
            def run_before_pass(self, module: Any, info: Any) -> None:
                recorder._enter(module, info, keep)

            def run_after_pass(self, module: Any, info: Any) -> None:
                recorder._leave(module, info, keep)

        self.instrument = Instrument()

    @property
    def running(self) -> list[str]:
        """The passes that have begun and not ended, the innermost last."""
        return [record.name for record in self._open if record.name not in _NOT_THE_CALLERS]

    def _enter(self, module: Any, info: Any, keep: bool) -> None:
        begin = time.perf_counter()
        record = _Record(
            str(info.name),
            int(info.opt_level),
            tuple(map(str, info.required)),
            len(self._open),
            modules.copy(module) if keep else None,
        )
        self._open.append(record)
        if keep:
            self.records.append(record)
        record.start = time.perf_counter()
        self.spent += record.start - begin
        record.spent = self.spent

    def _leave(self, module: Any, info: Any, keep: bool) -> None:
        end = time.perf_counter()
        # A pass that failed, and whose failure an outer pass caught, never comes to its end.
        while self._open:
            record = self._open.pop()
            if record.name == str(info.name):
                break
        else:
            return
        if record.name not in _NOT_THE_CALLERS:
            self.last = record.name
        record.seconds = end - record.start - (self.spent - record.spent)
        record.after = modules.copy(module) if keep else None
        self.spent += time.perf_counter() - end


@dataclass
class _Record:
    name: str
    level: int
    required: tuple[str, ...]
    depth: int
    before: Any
    after: Any = None
    seconds: float = 0.0
    start: float = 0.0
    spent: float = 0.0


# --- what every pass did --------------------------------------------------------------------------


def trace(
    x: Any,
    passes: Any = "build",
    *,
    opt_level: int | None = None,
    target: Any = None,
    disabled_pass: Collection[str] = (),
    required_pass: Collection[str] = (),
    config: Mapping[str, Any] | None = None,
) -> Trace:
    """Run ``passes`` on a copy of ``x``, and keep what each of them did.

    ``passes`` is one or a list of names and pass objects, run as by :func:`run` (``opt_level`` 4);
    or ``"build"``: the graph passes of ``relay.build`` at ``opt_level`` (3), that is all that it
    runs before it lowers the fused functions to TIR (``relay.optimize`` runs just these); or
    ``"vm"``: the passes of ``relay.vm.compile``, lowering included, without those that run on TIR
    functions alone and without LLVM. For these two, weights that are not yet constants of a zoo
    model are bound, as a build does.

    Raises :class:`WorkbookError` as :func:`run` does.
    """
    need_relay()
    whole = isinstance(passes, str) and passes in PIPELINES
    level = (3 if whole else 4) if opt_level is None else opt_level
    listed = [] if whole else _listed(passes)
    job = _Job.of(level, disabled_pass, required_pass, config, target, listed)
    module = modules.typed(x)
    recorder = _Recorder()
    if whole:
        params = dict(getattr(x, "params", None) or {}) if hasattr(x, "module") else {}
        end = _pipeline(passes, module, params, job, recorder)
    else:
        end = job.run(module, listed, recorder)
    skipped = tuple(known.name for known in map(info, listed) if not job.enabled(known))
    records = [record for record in recorder.records if _is_graph_pass(record)]
    if not whole:
        records = records[1:]
        for record in records:
            record.depth -= 1
    start = records[0].before if records else module
    return Trace(_steps(records), start, end, recorder.spent, skipped)


def _pipeline(
    name: str, module: Any, params: dict[str, Any], job: _Job, recorder: _Recorder
) -> Any:
    """The module after the graph passes of ``relay.build`` or ``relay.vm.compile``."""
    from tvm import relay

    # Both change the module they are given in place.
    own = modules.copy(module)
    if name == "build":
        return job.watch(lambda: relay.optimize(own, job.target, params)[0], recorder)
    try:
        compiler = relay.vm.VMCompiler()
        return job.watch(lambda: compiler.optimize(own, job.target, params=params)[0], recorder)
    except WorkbookError as error:
        if job.opt_level > 0:
            raise
        raise WorkbookError(
            "The Relay VM cannot be compiled for at opt_level 0: a pass that it needs "
            "(ToANormalForm) runs from level 1 on, so set opt_level to 1 or more."
        ) from error.__cause__


def _is_graph_pass(record: _Record) -> bool:
    """Lowering runs passes on modules of TIR functions, which have no graph to look at."""
    from tvm import relay

    if record.name.startswith("tir."):
        return False
    functions = record.before.functions.values()
    return any(isinstance(function, relay.Function) for function in functions)


def _steps(records: Sequence[_Record]) -> list[Step]:
    known: dict[Any, Counts] = {}
    steps = []
    for index, record in enumerate(records):
        inner = []
        for other in records[index + 1 :]:
            if other.depth <= record.depth:
                break
            inner.append(other.name)
        steps.append(
            Step(
                index,
                record.depth,
                record.name,
                record.level,
                record.required,
                record.seconds,
                record.before,
                record.before if record.after is None else record.after,
                any(name != "InferType" for name in inner),
                known,
            )
        )
    return steps


@dataclass(frozen=True, eq=False)
class Step:
    """One run of one pass.

    ``depth`` is how many passes it ran inside of. ``seconds`` is the time of the pass with all that
    ran inside it, without this record's own. ``module_before`` and ``module_after`` are the modules
    as TVM handed them over (after a rewrite that TVM has not typed yet, without types).
    ``is_group`` is true when other passes than InferType ran inside it.
    """

    index: int
    depth: int
    name: str
    level: int
    required: tuple[str, ...]
    seconds: float
    module_before: Any = field(repr=False)
    module_after: Any = field(repr=False)
    is_group: bool
    _known: dict[Any, Counts] = field(repr=False)

    @property
    def kind(self) -> str:
        """``"module"``, ``"function"``, ``"sequential"`` or ``"internal"``: see :class:`Info`."""
        return _kind(self.name)

    @cached_property
    def changed(self) -> bool:
        """Whether the module afterwards differs in structure: anything but names and spans."""
        import tvm

        return _key(self.module_before) != _key(self.module_after) and not bool(
            tvm.ir.structural_equal(self.module_before, self.module_after)
        )

    @cached_property
    def before(self) -> Counts:
        """The counts of the module before the pass."""
        return self._counted(self.module_before)

    @cached_property
    def after(self) -> Counts:
        """The counts of the module after the pass."""
        return self._counted(self.module_after) if self.changed else self.before

    def _counted(self, module: Any) -> Counts:
        key = _key(module)
        if key not in self._known:
            # Inside a pass TVM may hold a module that does not type: then what can be is counted.
            with contextlib.suppress(WorkbookError):
                module = modules.typed(module)
            self._known[key] = _count(module)
        return self._known[key]

    def diff(self, context: int = 2) -> str:
        """What the pass changed in the text of the program, as a unified difference.

        Relay's text numbers all values anew, so that one new value near the top changes every
        line. Here a value keeps the name that it had before the pass, and a value that the pass
        made gets a name of its own. ``context`` is the number of unchanged lines around a change.
        """
        lines = whole_number(context, "context, the lines around a change,", 0)
        if not self.changed:
            return f"{self.name} changed nothing."
        return differences.text(self.module_before, self.module_after, lines) or (
            f"{self.name} changed the program, but not its text (types or attributes only)."
        )

    def draw(self, *, max_boxes: int = 20, whole: bool = False) -> Any:
        """The graphs before and after the pass side by side, as a matplotlib ``Figure``.

        An operator that the pass took away is marked "removed", one that it put in "new", and one
        that it gave other attributes or another type "changed". Of graphs of more than
        ``max_boxes`` boxes the part with the first change is drawn; with ``whole`` all of them, but
        folded as in :func:`helpers.ir.picture`. Show it with
        ``plots.show(step.draw(), step.alt_text())``.
        """
        return plots.side_by_side(self.panels(max_boxes=max_boxes, whole=whole))

    def panels(self, *, max_boxes: int = 20, whole: bool = False) -> list[plots.Panel]:
        """What :meth:`draw` draws, before and after, as data; takes the same options."""
        found = self.pictures(max_boxes, whole)
        return [
            ir.drawing(picture, marks, f"{when} {self.name}{_share(picture, found.is_part)}")
            for when, picture, marks in (
                ("before", found.before, found.marks_before),
                ("after", found.after, found.marks_after),
            )
        ]

    def alt_text(self, *, max_boxes: int = 20, whole: bool = False) -> str:
        """What :meth:`draw` shows, in words made from the same data; takes the same options."""
        found = self.pictures(max_boxes, whole)
        parts = [
            f"The graph before and after {self.name}",
            f"Before{_share(found.before, found.is_part)}: {_in_words(found.before)}",
            f"After{_share(found.after, found.is_part)}: {_in_words(found.after)}",
        ]
        for word, marks, picture in (
            ("removed", found.marks_before, found.before),
            ("new", found.marks_after, found.after),
            ("changed", found.marks_after, found.after),
        ):
            drawn = _drawn(picture)
            names = Counter(node.op for node in drawn if node.op and marks.get(node.index) == word)
            if names:
                parts.append(f"Marked as {word}: {_listed_operators(names)}")
        return ". ".join(parts) + "."

    def pictures(self, max_boxes: int = 20, whole: bool = False) -> differences.Pictures:
        """The graphs before and after, and what differs, as data; options as for :meth:`draw`."""
        most = whole_number(max_boxes, "max_boxes", 1)
        if (most, whole) not in self._drawings:
            self._drawings[most, whole] = differences.Pictures.of(
                self.module_before, self.module_after, most, whole
            )
        return self._drawings[most, whole]

    @cached_property
    def _drawings(self) -> dict[tuple[int, bool], differences.Pictures]:
        return {}


def _drawn(picture: ir.Picture) -> list[ir.Node]:
    indices = {index for box in picture.boxes for copy in box.copies for index in copy}
    return [picture.graph.nodes[index] for index in sorted(indices)]


def _share(picture: ir.Picture, is_part: bool) -> str:
    """How much of a graph is drawn, if not all of it."""
    shown = sum(bool(node.op) for node in _drawn(picture))
    return f", {shown} of {len(picture.graph.calls)} operators" if is_part else ""


def _in_words(picture: ir.Picture) -> str:
    drawn = _drawn(picture)
    groups = len({node.group for node in drawn if node.group})
    noun = "group" if groups == 1 else "groups"
    operators = _listed_operators(Counter(node.op for node in drawn if node.op))
    return operators + (f", in {groups} fused {noun}" if groups else "")


def _listed_operators(names: Mapping[str, int]) -> str:
    return ", ".join(f"{times} {op}" for op, times in names.items()) or "no operators"


def _key(module: Any) -> tuple[tuple[str, int], ...]:
    """Equal for modules that share all their functions, which are immutable."""
    return tuple(
        sorted(
            (str(variable.name_hint), function.handle.value)
            for variable, function in module.functions.items()
        )
    )


@dataclass(frozen=True, eq=False)
class Trace:
    """What a pipeline did: ``steps`` in the order in which the passes began.

    ``start`` is the module before the first and ``end`` the typed module after the last pass.
    ``overhead`` is the time in seconds that keeping all this took beside the passes.
    ``skipped`` are the passes of the caller's list that did not run, since ``opt_level`` is below
    their level or ``disabled_pass`` names them.
    """

    steps: list[Step]
    start: Any = field(repr=False)
    end: Any = field(repr=False)
    overhead: float
    skipped: tuple[str, ...] = ()

    @property
    def names(self) -> list[str]:
        """The names of the passes, in the order in which they began."""
        return [step.name for step in self.steps]

    def step(self, name_or_index: str | int, nth: int = 0) -> Step:
        """A step by its index, or the ``nth`` run (from 0) of the pass of that name."""
        if isinstance(name_or_index, int):
            if not -len(self.steps) <= name_or_index < len(self.steps):
                raise WorkbookError(
                    f"There is no step {name_or_index}: the trace has {len(self.steps)} steps, "
                    "numbered from 0."
                )
            return self.steps[name_or_index]
        runs = [step for step in self.steps if step.name == name_or_index]
        if not runs:
            hint = nearest(str(name_or_index), self.names)
            raise WorkbookError(f"No pass called {name_or_index!r} ran{hint}.")
        if not isinstance(nth, int) or not -len(runs) <= nth < len(runs):
            times = "once" if len(runs) == 1 else f"{len(runs)} times"
            raise WorkbookError(f"{name_or_index} ran {times}: nth={nth!r} is out of range.")
        return runs[nth]

    @property
    def _first(self) -> Counts:
        return self.steps[0].before if self.steps else counts(self.start)

    def _rows(self, changed: bool) -> list[Step]:
        shown = [step for step in self.steps if step.name != "InferType"]
        return [step for step in shown if step.changed and not step.is_group] if changed else shown

    def table(self, *, changed: bool = False, times: bool = False) -> str:
        """One row per pass: its level, whether it changed the program, and the counts after it.

        Runs of InferType, which TVM inserts nearly everywhere, are left out and counted in the last
        line. Passes that ran inside another one are indented. With ``changed`` only the passes that
        changed the program are listed, without the groups around them. With ``times`` a column of
        milliseconds is added: a clock, which differs from run to run.
        """
        rows = self._rows(changed)
        head = ["pass", "level", *(["changed"] if not changed else []), *COUNTS.values()]
        first = ["(start)", "", *([""] if not changed else []), *_cells(self._first)]
        table = [head + ["ms"] * times, first + [""] * times]
        for step in rows:
            indent = "" if changed else "  " * step.depth
            row = [indent + step.name, str(step.level)]
            row += [] if changed else ["yes" if step.changed else "-"]
            row += _cells(step.after)
            table.append(row + [f"{1000 * step.seconds:.1f}"] * times)
        hidden = self.names.count("InferType")
        noun = "run of InferType is" if hidden == 1 else "runs of InferType are"
        notes = [f"{hidden} {noun} not listed."] if hidden else []
        if self.skipped:
            notes.append(f"Skipped, by level or disabled: {', '.join(self.skipped)}.")
        return "\n".join([_aligned(table), *notes])

    def figure(
        self,
        *,
        changed: bool = True,
        show: Sequence[str] = ("operators", "constants", "constant_bytes", "intermediate_bytes"),
        title: str = "",
    ) -> Any:
        """The counts after each pass as small multiples of bars, as a matplotlib ``Figure``.

        One row per pass that changed a count that is shown (all passes, with ``changed=False``), as
        far as they are no groups of others. ``show`` names fields of :class:`Counts`. A bar is pale
        where the pass left the count as it was. Show it with
        ``plots.show(trace.figure(), trace.alt_text())``.
        """
        columns = {}
        names, rows = self._states(changed, show)
        for key in show:
            values = [getattr(row, key) for row in rows]
            name, values = _in_unit(COUNTS[key], values) if key.endswith("bytes") else (key, values)
            columns[name] = values
        return plots.multiples(names, columns, title=title)

    def alt_text(
        self,
        *,
        changed: bool = True,
        show: Sequence[str] = ("operators", "constants", "constant_bytes", "intermediate_bytes"),
    ) -> str:
        """What :meth:`figure` shows, in words made from the same data."""
        names, rows = self._states(changed, show)
        parts = []
        for key in show:
            values = ["?" if (v := getattr(row, key)) is None else f"{v:,}" for row in rows]
            pairs = zip(names, values, strict=True)
            parts.append(f"{COUNTS[key]}: {', '.join(f'{name} {value}' for name, value in pairs)}")
        return f"Counts after each pass. {'. '.join(parts)}."

    def _states(self, changed: bool, show: Sequence[str]) -> tuple[list[str], list[Counts]]:
        """The rows of the figure: names of passes, and the counts after them."""
        if isinstance(show, str) or not show or not set(show) <= COUNTS.keys():
            raise WorkbookError(
                f"show lists what is counted, out of {', '.join(COUNTS)}, not {show!r}."
            )
        names, rows = ["(start)"], [self._first]
        for step in self._rows(changed=False):
            if step.is_group:
                continue
            if changed and all(getattr(step.after, key) == getattr(rows[-1], key) for key in show):
                continue
            names.append(step.name)
            rows.append(step.after)
        return names, rows


def _in_unit(name: str, values: Sequence[int | None]) -> tuple[str, list[float | None]]:
    """The heading ``constants, MB`` or ``constants, kB`` and the values in that unit."""
    most = max((value for value in values if value is not None), default=0)
    unit, size = ("MB", 10**6) if most >= 10**6 else ("kB", 1000) if most >= 10**4 else ("B", 1)
    heading = name.replace("bytes", unit)
    return heading, [None if value is None else value / size for value in values]


def _cells(found: Counts) -> list[str]:
    values = [getattr(found, name) for name in COUNTS]
    return ["?" if value is None else f"{value:,}" for value in values]


def _aligned(table: Sequence[Sequence[str]]) -> str:
    widths = [max(len(row[k]) for row in table) for k in range(len(table[0]))]
    lines = [
        "  ".join(
            cell.ljust(width) if k == 0 else cell.rjust(width)
            for k, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in table
    ]
    return "\n".join(lines)
