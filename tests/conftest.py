"""Fixtures shared by all tests: one process works with one TVM, and here it is the one with Relay."""

import os

import pytest

os.environ.setdefault("TVM_NUM_THREADS", "1")


@pytest.fixture(scope="session")
def relay():
    """``tvm.relay``, with the repairs of ``use_tvm`` in place."""
    from helpers import use_tvm

    use_tvm("relay", quiet=True)
    from tvm import relay as module

    return module
