"""What is said before anything is installed, on machines that this one is not."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from helpers import WorkbookError

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture
def preflight(monkeypatch, tmp_path):
    """The module, for a workbook in ``tmp_path`` that is not installed, on a fit machine."""
    monkeypatch.syspath_prepend(ROOT / "setup")
    monkeypatch.delitem(sys.modules, "install", raising=False)
    monkeypatch.delitem(sys.modules, "preflight", raising=False)
    import preflight

    install = preflight.install
    for name in ("requirements.lock", "relay.lock", "models.lock", "openmp.lock"):
        shutil.copy(ROOT / name, tmp_path)
    monkeypatch.setattr(install, "ROOT", tmp_path)
    monkeypatch.setattr(install, "DEPS", tmp_path / ".deps")
    monkeypatch.setattr(install, "STAMP", tmp_path / ".deps" / "installed.json")
    monkeypatch.setattr(install, "NEEDED_BYTES", 0)
    monkeypatch.setattr(preflight, "NEEDED_MEMORY", 0)
    monkeypatch.delenv("WHEELHOUSE", raising=False)
    for name in ("PIP_DEFAULT_TIMEOUT", "PIP_RETRIES", "UV_HTTP_TIMEOUT", "UV_HTTP_RETRIES"):
        monkeypatch.setenv(name, "1")  # so that what the trial sets is taken back

    def environment(installer, bare):
        installer.python.parent.mkdir(parents=True)
        installer.python.symlink_to(sys.executable)

    monkeypatch.setattr(install.Installer, "environment", environment)
    monkeypatch.setattr(install.Installer, "locked", lambda installer, lock: None)
    return preflight


def lines(preflight, uv=None, problem=None):
    return {line.what: line for line in preflight.report(uv, problem)}


def raises(error):
    def raising(*_, **__):
        raise error

    return raising


def test_a_machine_that_is_fit(preflight, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["preflight.py"])
    assert preflight.main() == 0
    out = capsys.readouterr().out
    assert out.endswith("The workbook will run here.\n")
    assert "NO" not in out
    assert "two minutes with pip" in out
    assert "half a minute with uv" in lines(preflight, uv="uv")["packages"].text
    assert list((tmp_path / ".deps").iterdir()) == []  # what was tried is gone


def test_the_trial_asks_for_one_locked_package_by_its_hash(preflight, monkeypatch):
    asked = []
    monkeypatch.setattr(
        preflight.install.Installer,
        "locked",
        lambda installer, lock: asked.append(Path(lock).read_text()),
    )
    lines(preflight)
    (text,) = asked
    assert text.startswith(f"{preflight.TRIAL}==")
    assert "--hash=sha256:" in text
    assert len([line for line in text.splitlines() if line[0].isalpha()]) == 1


@pytest.mark.parametrize(
    ("change", "what", "state", "says"),
    [
        (("tvm_builds.platform.machine", lambda: "aarch64"), "system", "bad", "x86-64 processors"),
        (("tvm_builds.cpu_flags", lambda: frozenset({"fma"})), "system", "bad", "lacks avx2"),
        (("tvm_builds.platform.libc_ver", lambda: ("", "")), "system", "bad", "glibc 2.28"),
        (("NEEDED_MEMORY", 10**18), "memory", "note", "the lessons want 4"),
        (("install.NEEDED_BYTES", 10**18), "disk", "bad", "GB are free: free some"),
        (("shutil.which", lambda name: None), "git", "note", "make update"),
        (("shutil.which", lambda name: None), "lesson 14", "note", "C++ compiler g++ is missing"),
        (("tempfile.mkdtemp", raises(PermissionError(13, "Permission denied"))), "folder", "bad",
         "cannot be written"),
        (("install.Installer.environment", raises(WorkbookError("No links here."))),
         "environment", "bad", "No links here."),
        (("install.Installer.environment", raises(subprocess.TimeoutExpired("venv", 8))),
         "environment", "note", "busy or slow"),
        (("install.Installer.locked", raises(WorkbookError("No index."))), "packages", "bad",
         "No index."),
        (("install.Installer.locked", raises(subprocess.TimeoutExpired("pip", 8))), "packages",
         "bad", "or a wheelhouse"),
        (("SLOW", 0.0), "packages", "note", "485 MB to fetch could take"),
    ],
)  # fmt: skip
def test_each_thing_that_is_amiss_has_its_line(preflight, monkeypatch, change, what, state, says):
    name, value = change
    owner = preflight
    *path, last = name.split(".")
    for part in path:
        owner = getattr(owner, part)
    monkeypatch.setattr(owner, last, value)
    monkeypatch.delenv("CXX", raising=False)
    found = lines(preflight)
    assert (found[what].state, says in found[what].text) == (state, True), found[what]
    assert all("\n" not in line.text for line in found.values())
    monkeypatch.setattr(sys, "argv", ["preflight.py"])
    assert preflight.main() == (1 if state == "bad" else 0)


def test_no_fit_python_is_said_and_the_rest_too(preflight):
    found = lines(preflight, problem="Only Python 3.13 was found.")
    assert (found["Python"].state, found["Python"].text) == ("bad", "Only Python 3.13 was found.")
    assert {"system", "memory", "disk", "git"} <= found.keys()
    assert "environment" not in found


def test_a_wheelhouse_is_looked_at_whole(preflight, monkeypatch, tmp_path):
    monkeypatch.setenv("WHEELHOUSE", str(tmp_path / "none"))
    assert lines(preflight)["wheelhouse"].state == "bad"
    asked = []

    def check(folder, locks, python, *, hashes):
        asked.append((tuple(locks), hashes))

    monkeypatch.setattr(preflight.wheelhouse, "find", lambda asked: tmp_path)
    monkeypatch.setattr(preflight.wheelhouse, "check", check)
    found = lines(preflight)
    assert found["wheelhouse"].state == "ok"
    assert (preflight.install.LOCKS, True) in asked
    assert "the wheelhouse is used" in found["packages"].text
    check = raises(WorkbookError("It lacks x.whl."))
    monkeypatch.setattr(preflight.wheelhouse, "check", check)
    assert lines(preflight)["wheelhouse"].text == "It lacks x.whl."


def test_an_installation_that_is_there_is_not_tried_again(preflight, monkeypatch):
    monkeypatch.setattr(preflight.install, "is_installed", lambda wanted: True)
    monkeypatch.setattr(preflight.install.Installer, "locked", raises(AssertionError()))
    assert "in place already" in lines(preflight)["installation"].text


def test_a_step_that_hangs_is_ended_with_what_it_started(preflight, tmp_path):
    installer = preflight.install.Installer(None, scratch=tmp_path, seconds=1)
    began = time.monotonic()
    with pytest.raises(subprocess.TimeoutExpired):
        installer._run(["sh", "-c", f"(sleep 3; touch '{tmp_path}/late') & wait"])
    assert time.monotonic() - began < 3
    time.sleep(2.5)
    assert not (tmp_path / "late").exists()


def test_the_command(tmp_path):
    """Here, as ``make preflight`` runs it; the workbook is installed or not."""
    done = subprocess.run(
        ["make", "preflight", f"PYTHON={Path(sys.executable).resolve()}"],
        cwd=ROOT,
        env={**os.environ, "WHEELHOUSE": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.splitlines()[0].startswith("  ok   system       Linux x86_64, glibc")
    assert done.returncode == 0, done.stdout + done.stderr
