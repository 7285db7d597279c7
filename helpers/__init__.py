"""Shared helpers of the Relay workbook.

Every notebook starts with ``use_tvm``, which decides which TVM this process imports.
No module here imports ``tvm`` before that decision.
"""

import os

from helpers.errors import WorkbookError
from helpers.lesson_steps import checkpoint
from helpers.tvm_builds import use_tvm

__all__ = ["WorkbookError", "checkpoint", "use_tvm"]

# ONNX Runtime would keep a device id in the home directory and report what it runs.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
