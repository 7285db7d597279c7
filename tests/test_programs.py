"""Random Relay programs, their values by numpy, and the smallest program that a pass breaks."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from helpers import programs

QUIET = settings(deadline=None, suppress_health_check=list(HealthCheck), max_examples=60)
EVERYTHING = {
    "lets": True,
    "branches": True,
    "references": True,
    "operators": (*programs.OPERATORS, *programs.MORE_OPERATORS),
}


@pytest.fixture(scope="module", autouse=True)
def _relay(relay):
    """All tests here need Relay."""


@QUIET
@given(programs.programs(**EVERYTHING))
def test_every_program_is_well_typed_and_tame(relay, program):
    assert relay.analysis.well_formed(program.module["main"])
    for value in programs.evaluate(program.function, program.inputs):
        assert np.all(np.abs(value) <= 1000)


# --- the smallest broken program ------------------------------------------------------------------


def rewritten(relay, name, replace):
    """A pass that replaces the calls of one operator."""

    class Rewriter(relay.ExprMutator):
        def visit_call(self, call):
            call = super().visit_call(call)
            return replace(*call.args) if getattr(call.op, "name", "") == name else call

    return lambda module: Rewriter().visit(module["main"])


def test_the_smallest_program_and_the_values_that_differ(relay):
    found = programs.counterexample(rewritten(relay, "nn.relu", lambda x: x))
    assert str(found) == (
        "It breaks this program:\n"
        "  fn (%x: Tensor[(2), float32]) -> Tensor[(2), float32] {\n"
        "    nn.relu(%x)\n"
        "  }\n"
        "  x = [1, -2]\n"
        "and makes this of it:\n"
        "  fn (%x: Tensor[(2), float32]) -> Tensor[(2), float32] {\n"
        "    %x\n"
        "  }\n"
        "The values differ: the output is\n"
        "  [1, -2]\n"
        "and was\n"
        "  [1, 0]"
    )
