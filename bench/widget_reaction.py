"""How long each explorer takes from the change of a control to its new words and picture.

    .venv/bin/python -m bench.widget_reaction [NAME ...] [--changes 300]

The controls of an explorer are changed at random, one at a time: a list to another entry, a slider
or a number to another value, a box to its other state, a button by a press. What is timed is all
that the kernel does before the new view is in the widgets, not the browser's part. Choices that
trace or compile a program, with a sign of work meanwhile, are made once before that.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import ipywidgets

from helpers import WorkbookError, build, ir, modules, passes, storage, use_tvm, zoo
from helpers.errors import exit_with_sentence
from helpers.widgets import (
    executor_chooser,
    folding_steps,
    frame,
    fusion_explorer,
    layout_explorer,
    memory_planner,
    pass_microscope,
    vm_stepper,
)


def layer() -> Any:
    """The first layer of a trained classifier, as in lesson 02."""
    nodes = ir.graph(zoo.load("ocr_direction")).nodes
    return modules.typed(next(node.expr for node in nodes if node.op == "divide"))


def block(relu: int, model: str = "mobilenet") -> Any:
    """A model from its input up to one of its ``relu``, counted from 0."""
    calls = [node for node in ir.graph(zoo.load(model, size=64)).calls if node.op == "nn.relu"]
    steps = ["SimplifyInference", "FoldConstant", "BackwardFoldScaleAxis", "FoldConstant"]
    return passes.run(calls[relu].expr, steps)


def let_program() -> Any:
    """A program with two dead lets."""
    from tvm import relay

    head = '#[version = "0.0.5"] def @main(%x: Tensor[(1024), float32]) -> Tensor[(1024), float32]'
    body = "{ let %a = exp(%x); let %b = tanh(%a); let %c = sqrt(%b); nn.relu(%a) }"
    return relay.parse(f"{head} {body}")


def normalised() -> Any:
    """A batch normalisation as it is written before FoldConstant."""
    return passes.run(layer(), "SimplifyInference")


def plans() -> dict[str, Any]:
    """The memory plans of a small diamond and of a model."""
    from tvm import relay

    x = relay.var("x", shape=(64, 64))
    left, right = relay.nn.softmax(x), relay.nn.softmax(relay.nn.softmax(x))
    diamond = relay.Function([x], relay.nn.softmax(relay.concatenate([left, right], axis=1)))
    programs = {"diamond": diamond, "file_type": zoo.load("file_type")}
    return {name: storage.plan(build.compile(each, "graph")) for name, each in programs.items()}


def programs() -> dict[str, vm_stepper.Case]:
    """The two programs that lesson 10 steps through."""
    choice, loop = partial(zoo.load, "early_exit", layers=2), partial(zoo.load, "lstm", hidden=32)
    answers = {"sure": choice(seed=0).inputs, "not sure": choice(seed=1).inputs}
    rows = {f"{n} rows": loop(sample_length=n).inputs for n in (1, 2, 3)}
    return {
        "early_exit": vm_stepper.case(choice(), answers, static=choice(both=True)),
        "lstm": vm_stepper.case(loop(), rows, static=loop(length=3)),
    }


def offers() -> list[Any]:
    """Services and traffic with the round numbers of lesson 13, and points as if measured."""
    lengths = (64, 192, 512)
    static = executor_chooser.bills(lengths, 2, (0.001, 0.006, 0.03))
    dynamic = executor_chooser.bills(lengths, 7, (0.0025, 0.012, 0.065))
    held = dict(zip(lengths, (1.7e6, 2.4e6, 6.4e6), strict=True))
    camera = executor_chooser.bills(("graph", "vm"), 3, (0.012, 0.0125))
    services = {
        "encoder": executor_chooser.any_length(static, dynamic, held, 8.2e6),
        "camera": executor_chooser.one_length(camera, {"graph": 1.2e7, "vm": 1.5e7}),
    }
    return [services, {"64 only": [64] * 300, "alike": range(20, 513, 2)}, services]


EXPLORERS: dict[str, Callable[[], Any]] = {
    "pass_microscope": lambda: pass_microscope.explorer(
        {"layer": passes.trace(layer()), "file_type": passes.trace(zoo.load("file_type"))}
    ),
    "fusion_explorer": lambda: fusion_explorer.explorer({"MobileNet": block(1)}),
    "folding_steps, constants": lambda: folding_steps.explorer({"layer": normalised()}),
    "folding_steps, liveness": lambda: folding_steps.explorer({"lets": let_program()}, "liveness"),
    "layout_explorer": layout_explorer.explorer,
    "memory_planner": lambda: memory_planner.explorer(plans()),
    "vm_stepper": lambda: vm_stepper.explorer(programs()),
    "executor_chooser": lambda: executor_chooser.explorer(*offers()),
}
"""Each explorer by its name, and what displays it."""


def shown(make: Callable[[], Any]) -> ipywidgets.Box:
    """The box that an explorer displays, without displaying it."""
    boxes: list[Any] = []
    show, frame.show = frame.show, lambda widget, *_: boxes.append(widget)
    try:
        make()
    finally:
        frame.show = show
    return boxes[0]


def controls(box: ipywidgets.Box) -> Iterator[ipywidgets.Widget]:
    """What in a box can be changed, in order."""
    for child in box.children:
        if isinstance(child, ipywidgets.Box):
            yield from controls(child)
        elif values(child) or isinstance(child, ipywidgets.Button):
            yield child


def values(control: ipywidgets.Widget) -> list[Any]:
    """The values that a control can take now; of many numbers, 24 of them."""
    if isinstance(control, ipywidgets.Play | ipywidgets.HTML):
        return []
    if control.has_trait("options"):
        return list(range(len(control.options)))
    if control.has_trait("min"):
        span = control.max - control.min
        whole = isinstance(control.min, int) and isinstance(control.value, int)
        found = [control.min + span * k / 23 for k in range(24)]
        return sorted({round(value) for value in found}) if whole else found
    if isinstance(control.value if control.has_trait("value") else None, bool):
        return [False, True]
    return []


def change(control: ipywidgets.Widget, choose: random.Random) -> bool:
    """Change a control at random; whether there was another value to change to."""
    if isinstance(control, ipywidgets.Button):
        control.click()
        return True
    name = "index" if control.has_trait("options") else "value"
    other = [value for value in values(control) if value != getattr(control, name)]
    if not other:
        return False
    setattr(control, name, choose.choice(other))
    return True


def measured(box: ipywidgets.Box, changes: int) -> tuple[list[float], list[float]]:
    """Milliseconds of each change: by the clock, and of processor time."""
    choose = random.Random(0)
    clock: list[float] = []
    processor: list[float] = []
    for control in controls(box):
        if isinstance(control, ipywidgets.Dropdown):
            for index in reversed(range(len(control.options))):
                control.index = index
    while len(clock) < changes:
        enabled = [c for c in controls(box) if not getattr(c, "disabled", False)]
        control = choose.choice(enabled)
        wall, own = time.perf_counter(), time.process_time()
        if change(control, choose):
            processor.append(1000 * (time.process_time() - own))
            clock.append(1000 * (time.perf_counter() - wall))
    return clock, processor


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("names", nargs="*", help="explorers, by the start of their names")
    parser.add_argument("--changes", type=int, default=300)
    options = parser.parse_args()
    wanted = tuple(options.names) or ("",)
    use_tvm("relay", quiet=True)
    print("milliseconds                  clock            processor")
    print("                        median    worst    median    worst")
    for name, make in EXPLORERS.items():
        if name.startswith(wanted):
            box = shown(make)
            columns = [
                f"{statistics.median(times):>9.1f}{max(times):>9.1f}"
                for times in measured(box, options.changes)
            ]
            print(f"{name:<21}{' '.join(columns)}", flush=True)


if __name__ == "__main__":
    try:
        main()
    except WorkbookError as error:
        exit_with_sentence(error)
