"""What nbval needs beside its own: the page's surroundings, early news of a dead kernel, a proof.

The proof: nbval passes a cell whose output it does not compare. After each cell that counts as
strictly compared has passed, every piece of its stored output is changed in turn, and nbval's own
comparison with what the kernel has just sent must fail each time. That costs no second run.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from queue import Empty
from typing import Any

import pytest

OUTPUT_TIMEOUT = 30  # seconds; nbval's own 5 s are too few beside another busy process


class KernelDied(RuntimeError):
    """The kernel ended while a cell ran."""


class NotCompared(AssertionError):
    """A cell counts as strictly compared, and nbval did not notice a changed output."""


def pytest_configure(config: pytest.Config) -> None:
    """Give kernels the build's surroundings and this interpreter, unless asked for another."""
    if not config.getoption("nbval", False):
        return
    from nbval.kernel import RunningKernel

    from helpers.kernels import prepare_environment
    from tools.build_notebooks import keep_stored

    prepare_environment()
    os.environ["VARIANT"] = ""  # the stored outputs are those of the common variant
    config.option.nbval_current_env = not config.option.nbval_kernel_name
    RunningKernel.await_reply = _await_reply
    get_message = RunningKernel.get_message

    def stored_form(self: Any, stream: str, timeout: float | None = None) -> Any:
        message = get_message(self, stream, timeout)
        keep_stored(message["content"].get("data", {}))
        return message

    RunningKernel.get_message = stored_form


def _await_reply(self: Any, msg_id: str, timeout: float | None = None) -> None:
    """Replace nbval's method, which waits out the whole cell timeout for a kernel that is gone."""
    from helpers.kernels import cause_of_death

    end = time.monotonic() + (timeout or 600)
    while True:
        try:
            message = self.get_message(stream="shell", timeout=1)
        except Empty:
            if not self.is_alive():
                raise KernelDied(cause_of_death(self.km)) from None
            if time.monotonic() > end:
                raise
            continue
        if message["parent_header"].get("msg_id") == msg_id:
            if message["content"]["status"] == "aborted":
                raise RuntimeError("the kernel aborted the request")
            return


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Wait longer for outputs than nbval does by itself."""
    for item in items:
        if hasattr(item, "output_timeout"):
            item.output_timeout = OUTPUT_TIMEOUT


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: Any) -> Iterator[None]:
    """After a cell has passed, prove that nbval would have noticed a change of its output."""
    yield
    if item.config.getoption("nbval", False) and hasattr(item, "compare_outputs"):
        from tools.page_checks import classify

        if classify(item.cell) == "strict":
            unnoticed = list(unnoticed_changes(item))
            if unnoticed:
                raise NotCompared(f"nbval does not notice a change of {', '.join(unnoticed)}")


def unnoticed_changes(item: Any) -> Iterator[str]:
    """Each change of the stored output that nbval's comparison lets pass, in words."""
    from nbval.plugin import coalesce_streams

    from tools.page_checks import changed_outputs

    if not item.options["check"]:
        yield "anything: it was told not to compare"
        return
    # The text of a difference is not wanted, and takes long for a long output.
    item.format_output_compare = lambda *_: None
    try:
        for what, outputs in changed_outputs(item.cell):
            if item.compare_outputs(item.test_outputs, coalesce_streams(outputs)):
                yield what
    finally:
        del item.format_output_compare
