"""The locks, environment.yml and what is installed say the same."""

import json
import re
import subprocess
import tempfile
from pathlib import Path

import pytest
import yaml

from helpers import check_env

ROOT = Path(__file__).resolve().parent.parent
LOCKS = (
    *(f"{name}.lock" for name in ("requirements", "relay", "models", "openmp", "browser", "book")),
    "setup/hub/hub.lock",
)


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def conda():
    return yaml.safe_load((ROOT / "environment.yml").read_text())


def test_every_pin_is_exact_and_hashed():
    for lock in LOCKS:
        text = "\n".join(
            line
            for line in (ROOT / lock).read_text().splitlines()
            if not line.lstrip().startswith("#")
        )
        pins = [block for block in re.split(r"\n(?=\S)", text.strip()) if block.strip()]
        assert pins
        for block in pins:
            assert re.match(r"[A-Za-z0-9._-]+==\S+", block), block
            assert "--hash=sha256:" in block, block


def test_no_host_is_named():
    for name in (
        *LOCKS,
        "requirements.in",
        "browser.in",
        "book.in",
        "setup/hub/hub.in",
        "environment.yml",
        "pyproject.toml",
        "Makefile",
    ):
        text = (ROOT / name).read_text()
        assert not re.search(
            r"https?://|index-url|--find-links|--trusted-host",
            text.replace("--no-emit-index-url", ""),
        ), name


def test_the_customers_packages_are_asked_for():
    asked = {
        normal(re.split(r"[=<>;! ]", line)[0])
        for line in (ROOT / "requirements.in").read_text().splitlines()
        if line and line[0] != "#"
    }
    assert {"apache-tvm", "jupyterlab", "ipywidgets", "matplotlib", "nbval"} <= asked
    locked = {normal(name) for name in check_env.locked_versions()}
    assert asked <= locked | {"backports-strenum"}


def test_installed_is_what_is_locked():
    assert len(check_env.locked_versions()) > 100
    assert list(check_env.package_problems()) == []


def test_conda_gets_the_same_lock():
    spec = conda()
    assert spec["channels"] == ["conda-forge", "nodefaults"]
    python, pip, section = spec["dependencies"]
    assert python in {"python=3.10", "python=3.11", "python=3.12"}
    assert pip.startswith("pip>=")
    # conda writes the section to a file beside environment.yml and gives that file to pip.
    assert section == {"pip": ["-r requirements.lock"]}


def test_conda_would_have_nothing_left_to_install(pip):
    """What conda's pip step does, asked of an environment that holds the lock."""
    with tempfile.NamedTemporaryFile("w", dir=ROOT, suffix=".requirements.txt") as listed:
        listed.write("\n".join(conda()["dependencies"][-1]["pip"]) + "\n")
        listed.flush()
        dry = ["install", "--dry-run", "--quiet", "--no-deps", "--report", "-", "-r", listed.name]
        done = subprocess.run([*pip, *dry], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["install"] == []


def test_check_env_names_what_is_wrong(monkeypatch, capsys):
    monkeypatch.setattr(
        check_env, "locked_versions", lambda: {"numpy": "0.0.1", "no-such-package": "1"}
    )
    monkeypatch.setattr(check_env, "tvm_line", lambda kind: (kind == "relax", f"{kind} line"))
    assert check_env.main() == 1
    out = capsys.readouterr().out
    assert "the workbook was checked with 0.0.1" in out
    assert "no-such-package 1 is missing." in out
    assert "  - relay line" in out
    assert "make clean lab" in out


@pytest.mark.parametrize(
    ("script", "line"),
    [
        (
            "echo 'NVIDIA H200, 570.1, 143771 MiB'",
            "NVIDIA driver: NVIDIA H200, 570.1, 143771 MiB",
        ),
        (
            "echo 'couldn'\"'\"'t communicate with the driver'; exit 9",
            "NVIDIA driver: does not answer (couldn't communicate with the driver), kernels run on "
            "the CPU",
        ),
        ("exit 0", "NVIDIA driver: does not answer (it says nothing), kernels run on the CPU"),
        (None, "NVIDIA driver: none found, kernels run on the CPU"),
    ],
)
def test_check_env_says_what_the_driver_says(monkeypatch, tmp_path, script, line):
    if script is not None:
        tool = tmp_path / "nvidia-smi"
        tool.write_text(f"#!/bin/sh\n{script}\n")
        tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/nowhere")
    assert check_env.driver_line() == line


def test_check_env_says_what_runs_where():
    cpu, gpu = "devices: cpu", "devices: cpu, cuda"
    assert "refused here" in check_env.where_line({"relay": cpu, "relax": cpu})
    assert check_env.where_line({"relay": cpu, "relax": gpu}).startswith("Relax can use")
    assert check_env.where_line({"relay": gpu, "relax": gpu}).startswith("Relay and Relax can use")


def test_a_tvm_that_does_not_load_in_time_is_said_to(monkeypatch):
    monkeypatch.setattr(check_env, "SECONDS", 0.01)
    assert check_env.tvm_line("relax") == (False, "Relax: does not load within 0.01 s.")
