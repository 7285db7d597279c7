"""What is behind, and why, with a stand-in for pip."""

import json
import sys

import pytest

from helpers.errors import WorkbookError
from helpers.kernels import ROOT
from tools import update_check

PIP = """
import json, sys
from pathlib import Path

answers = json.loads({answers!r})
command, *rest = sys.argv[1:]
if answers == "offline":
    sys.exit("WARNING: Retrying: Failed to establish a new connection: [Errno 101]\\nERROR: none")
if command == "index":
    if rest[1] not in answers["newest"]:
        sys.exit("ERROR: No matching distribution found for " + rest[1])
    print(f"{{rest[1]}} ({{answers['newest'][rest[1]]}})\\nAvailable versions: 1")
else:
    asked = Path(rest[rest.index("-r") + 1]).read_text().split()
    with open({log!r}, "a") as log:
        print(*asked, file=log)
    for pin in asked:
        if pin in answers["conflicts"]:
            print("The conflict is caused by:\\n    The user requested " + pin)
            print("    " + answers["conflicts"][pin] + "\\n\\nTo fix this you could try to:")
            sys.exit("ERROR: ResolutionImpossible")
    if answers["conflicts"] == "offline":
        sys.exit("WARNING: Retrying after connection broken\\nERROR: No matching distribution")
"""


@pytest.fixture
def workbook(tmp_path):
    """A workbook with three packages, of which one stands alone."""
    (tmp_path / "requirements.in").write_text(
        "# Comments.\nKept==1.0  # newer ones are too new\nfree\n"
        "old_python ; python_version < '3'\n"
    )
    (tmp_path / "requirements.lock").write_text(
        "free==1.0 ; python_version < '3' \\\n    --hash=sha256:0\n"
        "free==2.0 ; python_version >= '3' \\\n    --hash=sha256:0\n"
        "kept==1.0 \\\n    --hash=sha256:0\nneeded-by-free==7 \\\n    --hash=sha256:0\n"
    )
    (tmp_path / "models.lock").write_text("# A model.\nmodel==1.9 --hash=sha256:0\n")
    return tmp_path


@pytest.fixture
def index(tmp_path):
    def made(answers):
        script = tmp_path / "pip.py"
        script.write_text(PIP.format(answers=json.dumps(answers), log=str(tmp_path / "asked")))
        return update_check.Index([sys.executable, str(script)])

    return made


def found(index, workbook):
    return {pin.name: (new, said) for pin, new, said in update_check.check(index, workbook)}


def test_each_newer_version_is_told_with_what_speaks_against_it(index, workbook):
    newest = {"free": "2.1", "kept": "3.0", "model": "1.10"}
    conflict = "kept 1.0 depends on free<2.1"
    pip = index({"newest": newest, "conflicts": {"free==2.1": conflict}})
    assert found(pip, workbook) == {
        "free": ("2.1", "stays: kept 1.0 needs free<2.1"),
        "kept": ("3.0", "stays: newer ones are too new"),
        "model": ("1.10", "may be taken: write it and its checksum into models.lock"),
    }
    asked = (workbook / "asked").read_text().splitlines()
    assert "kept==3.0 free==2.0" in asked  # each with all others as they are locked
    assert not any("old" in line or "needed" in line for line in asked)


def test_updates_that_go_together_are_asked_for_once(index, workbook):
    (workbook / "requirements.in").write_text("free\nkept==1.0\n")
    pip = index({"newest": {"free": "3", "kept": "3", "model": "1.9"}, "conflicts": {}})
    assert found(pip, workbook) == {
        "free": ("3", "may be taken: make lock UPGRADE=free"),
        "kept": ("3", "may be taken: write it into requirements.in, then make lock"),
    }
    assert (workbook / "asked").read_text() == "free==3 kept==3\n"


def test_nothing_behind_and_a_name_without_an_answer(index, workbook, capsys):
    update_check.main(
        index({"newest": {"free": "2.0", "kept": "1.0", "model": "1.9"}, "conflicts": {}}), workbook
    )
    assert "\n3 of the 3 packages are the newest ones" in capsys.readouterr().out
    update_check.main(index({"newest": {"free": "2.0", "kept": "1.0"}, "conflicts": {}}), workbook)
    assert "model    1.9     -       gone from this index" in capsys.readouterr().out


def test_of_a_conflict_that_is_told_which_explains_it():
    """As pip told them, of the real packages."""
    told = """
    The user requested ml-dtypes==0.6.0
    apache-tvm 0.27.0.post1 depends on numpy
    The user requested numpy==1.26.4
    scipy 1.17.1 depends on numpy<2.7 and >=1.26.4
    ml-dtypes 0.6.0 depends on numpy>=2.0.0"""
    wanted = {"ml-dtypes": "0.6.0", "apache-tvm": "0.27.0.post1", "numpy": "1.26.4"}
    assert update_check._causes(told, wanted) == "ml-dtypes 0.6.0 needs numpy>=2.0.0"
    told = "    a 1 depends on sphinx~=7.0\n    b 2 depends on sphinx>=8.2"
    assert update_check._causes(told, {"a": "1", "b": "2"}) == (
        "a 1 needs sphinx~=7.0; b 2 needs sphinx>=8.2"
    )


@pytest.mark.parametrize("answers", ["offline", {"newest": {"free": "3"}, "conflicts": "offline"}])
def test_offline_is_a_sentence(index, workbook, answers):
    """From the start, or later: then nothing is told as a conflict that is none."""
    with pytest.raises(WorkbookError, match="does not answer") as caught:
        update_check.check(index(answers), workbook)
    assert "\n" not in str(caught.value)


def test_every_lock_is_looked_at():
    locks = {path.relative_to(ROOT).as_posix() for path in ROOT.glob("*.lock")}
    looked = {file.replace(".in", ".lock") for file in (*update_check.GROUPS, *update_check.ALONE)}
    assert locks <= looked


@pytest.mark.parametrize("file", [*update_check.GROUPS, *update_check.ALONE])
def test_the_workbooks_own_files_are_read(file):
    pins = update_check.pins(file)
    assert pins
    assert all(pin.version[0].isdigit() for pin in pins)


def test_what_keeps_a_package_back_stands_beside_it():
    reasons = {pin.name: pin.reason for pin in update_check.pins("requirements.in", ROOT)}
    assert "NumPy 2" in reasons["numpy"]
    assert "onnx.mapping" in reasons["onnx"]
