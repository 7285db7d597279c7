"""The record that lesson 15 shows: of the installed versions, and as a new run gives it."""

import json
import os
import subprocess
import sys

import pytest

from helpers.kernels import ROOT

RECORD = ROOT / "bench" / "relay_and_relax.json"
CODE = """
import json, sys
from helpers import use_tvm
use_tvm("relax", quiet=True)
from bench.relay_and_relax import both
found = both(sys.argv[1])
found.pop("time_relax_over_relay")
print(json.dumps(found))
"""


def test_the_record_is_of_the_versions_in_the_locks():
    record = json.loads(RECORD.read_text())
    assert record["relay"] in (ROOT / "relay.lock").read_text()
    assert record["relax"].replace(" ", "==") in (ROOT / "requirements.lock").read_text()


@pytest.mark.parametrize("name", ["mlp", "shufflenet", "ocr_direction"])
def test_a_new_run_gives_what_is_recorded(name):
    if name != "mlp" and os.environ.get("RECORDS") != "1":
        pytest.skip("half a minute of compilation: RECORDS=1 runs it (the lesson checks the small)")
    wanted = json.loads(RECORD.read_text())["models"][name]
    assert wanted.pop("time_relax_over_relay") > 0
    command = [sys.executable, "-c", CODE, name]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout.splitlines()[-1]) == wanted
