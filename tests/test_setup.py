"""Setting up: which Python is found, what a machine that cannot work is told, what survives."""

import importlib.util
import json
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture
def install():
    spec = importlib.util.spec_from_file_location("install", ROOT / "setup" / "install.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def command(folder: Path, name: str, script: str) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def run_setup(tmp_path: Path, *folders: Path, arguments=(), **env: str):
    """``setup.sh`` with Pythons that only say which of them was given the work, and which work."""
    setup = tmp_path / "checkout" / "setup"
    setup.mkdir(parents=True)
    shutil.copy(ROOT / "setup" / "setup.sh", setup)
    tools = tmp_path / "tools"
    for name in ("uname", "dirname"):
        if not (tools / name).exists():
            tools.mkdir(exist_ok=True)
            (tools / name).symlink_to(shutil.which(name))
    path = os.pathsep.join(map(str, [*folders, tools]))
    return subprocess.run(
        ["/bin/sh", str(setup / "setup.sh"), *arguments],
        env={"PATH": path, **env},
        capture_output=True,
        text=True,
        check=False,
    )


def fake_python(folder: Path, name: str, version: str, able: str = "yes") -> None:
    script = f'case "$1" in -c) echo "{version} {able}";; *) echo "$0 $*";; esac'
    command(folder, name, script)


def test_the_newest_supported_python_is_taken(tmp_path):
    fake_python(tmp_path / "a", "python3.10", "3.10")
    fake_python(tmp_path / "b", "python3.12", "3.12")
    fake_python(tmp_path / "b", "python3", "3.13")
    done = run_setup(tmp_path, tmp_path / "a", tmp_path / "b")
    assert done.returncode == 0
    assert done.stdout.startswith(f"{tmp_path}/b/python3.12 ")
    assert "--uv" not in done.stdout


def test_a_command_that_does_not_start_is_passed_over(tmp_path):
    command(
        tmp_path / "shims",
        "python3.12",
        "echo 'pyenv: python3.12: command not found' >&2; exit 127",
    )
    command(tmp_path / "shims", "python3.11", "exit 1")
    fake_python(tmp_path / "real", "python3.11", "3.11")
    done = run_setup(tmp_path, tmp_path / "shims", tmp_path / "real")
    assert done.stdout.startswith(f"{tmp_path}/real/python3.11 ")


def test_a_plain_python3_will_do(tmp_path):
    fake_python(tmp_path / "a", "python3", "3.10")
    assert run_setup(tmp_path, tmp_path / "a").stdout.startswith(f"{tmp_path}/a/python3 ")


def test_uv_is_handed_on_where_it_works(tmp_path):
    fake_python(tmp_path / "a", "python3", "3.11", able="no")
    command(tmp_path / "a", "uv", "exit 0")
    assert f"--uv {tmp_path}/a/uv" in run_setup(tmp_path, tmp_path / "a").stdout


@pytest.mark.parametrize(
    ("version", "able", "says"),
    [
        ("3.13", "yes", "3.10, 3.11 or 3.12, and only Python 3.13"),
        ("3.9", "yes", "3.10, 3.11 or 3.12, and only Python 3.9"),
        ("3.11", "no", "apt install python3.11-venv"),
        (None, "", "No Python was found"),
    ],
)
def test_a_python_that_cannot_work_gets_one_sentence(tmp_path, version, able, says):
    if version:
        fake_python(tmp_path / "a", "python3", version, able)
    done = run_setup(tmp_path, tmp_path / "a")
    assert done.returncode == 1
    assert says in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_the_look_beforehand_gets_the_python_that_the_installation_would(tmp_path):
    fake_python(tmp_path / "a", "python3.11", "3.11")
    done = run_setup(tmp_path, tmp_path / "a", arguments=["--preflight"])
    assert done.stdout.endswith("/setup/preflight.py\n")
    assert done.stdout.startswith(f"{tmp_path}/a/python3.11 ")


@pytest.mark.parametrize(
    ("version", "able", "problem"),
    [("3.13", "yes", "only Python 3.13 was found"), ("3.11", "no", "cannot make a virtual")],
)
def test_a_python_that_cannot_work_says_what_else_is_amiss(tmp_path, version, able, problem):
    fake_python(tmp_path / "a", "python3", version, able)
    done = run_setup(tmp_path, tmp_path / "a", arguments=["--preflight"])
    assert "/setup/preflight.py --python-problem " in done.stdout
    assert problem in done.stdout
    assert done.stderr == ""


def test_without_any_python_the_look_beforehand_is_a_sentence(tmp_path):
    fake_python(tmp_path / "a", "python3", "3.6")
    done = run_setup(tmp_path, tmp_path / "a", arguments=["--preflight"])
    assert (done.returncode, done.stdout) == (1, "")
    assert "only Python 3.6 was found" in done.stderr


def test_another_system_gets_one_sentence(tmp_path):
    command(tmp_path / "mac", "uname", 'case "$1" in -s) echo Darwin;; *) echo arm64;; esac')
    fake_python(tmp_path / "a", "python3", "3.11")
    done = run_setup(tmp_path, tmp_path / "mac", tmp_path / "a")
    assert done.returncode == 1
    assert "exists for Linux on x86-64 processors only, and this is Darwin on arm64" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("output", "says"),
    [
        ("ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE.", "checksum"),
        ("error: Hash mismatch for `six==1.16.0`", "checksum"),
        ("OSError: [Errno 28] No space left on device", "disk is full"),
        ("failed to create directory: Permission denied (os error 13)", "cannot be written"),
        ("dns error: failed to lookup address information", "cannot be reached"),
        ("Failed to establish a new connection: [Errno 101] Network is unreachable", "reached"),
        ("ERROR: No matching distribution found for numpy==1.26.4", "does not have a package"),
        ("/usr/bin/python3.11: No module named pip", "needs pip or uv"),
        ("something else", "install.log"),
    ],
)
def test_an_installers_failure_is_one_sentence(install, output, says):
    sentence = install.explain(f"Collecting numpy\n{output}\n", 1)
    assert says in sentence
    assert "\n" not in sentence


def test_real_failures_of_pip_are_understood(install, tmp_path, pip):
    """What this environment's own pip prints, for a wrong checksum and for no network."""
    lock = tmp_path / "x.lock"
    package = tmp_path / "x-1-py3-none-any.whl"
    package.write_bytes(b"not a wheel")
    lock.write_text(f"x @ file://{package} --hash=sha256:{'0' * 64}\n")
    base = [*pip, "download", "--no-deps", "--retries", "1", "-d", str(tmp_path / "d")]
    wrong = subprocess.run(
        [*base, "--require-hashes", "-r", str(lock)], capture_output=True, text=True, check=False
    )
    assert "checksum" in install.explain(wrong.stdout + wrong.stderr, wrong.returncode)
    away = subprocess.run(
        [*base, "--isolated", "--index-url", "http://127.0.0.1:9/simple", "six==1.16.0"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "cannot be reached" in install.explain(away.stdout + away.stderr, away.returncode)


@pytest.fixture
def folder(install, tmp_path, monkeypatch):
    """An installer whose checkout is ``tmp_path`` and whose four steps only leave a trace."""
    for name in install.LOCKS:
        (tmp_path / name).write_text("six==1.16.0\n")
    for name, value in {
        "ROOT": tmp_path,
        "VENV": tmp_path / ".venv",
        "DEPS": tmp_path / ".deps",
        "STAMP": tmp_path / ".deps" / "installed.json",
        "LOG": tmp_path / ".deps" / "install.log",
    }.items():
        monkeypatch.setattr(install, name, value)
    steps: list[str] = []

    def all_steps(installer):
        steps.append("made")
        (install.VENV / "bin").mkdir(parents=True)
        (install.VENV / "bin" / "python").symlink_to(sys.executable)

    monkeypatch.setattr(install, "_install_all", all_steps)
    monkeypatch.setattr(install, "NEEDED_BYTES", 0)
    install.steps = steps
    return tmp_path


def test_a_second_run_does_nothing(install, folder):
    install.install(None)
    install.install(None)
    assert install.steps == ["made"]


def test_an_interrupted_installation_is_made_anew(install, folder, monkeypatch):
    def stopped(installer):
        (install.VENV / "half").mkdir(parents=True)
        raise KeyboardInterrupt

    whole = install._install_all
    monkeypatch.setattr(install, "_install_all", stopped)
    with pytest.raises(KeyboardInterrupt):
        install.install(None)
    assert not install.STAMP.exists()
    monkeypatch.setattr(install, "_install_all", whole)
    install.install(None)
    assert not (install.VENV / "half").exists()
    assert install.is_installed(install.wanted_stamp())


@pytest.mark.parametrize("change", ["lock", "python", "moved"])
def test_what_no_longer_fits_is_made_anew(install, folder, change):
    install.install(None)
    if change == "lock":
        (folder / "relay.lock").write_text("six==1.17.0\n")
    elif change == "python":
        (install.VENV / "bin" / "python").unlink()
    else:
        stamp = json.loads(install.STAMP.read_text())
        install.STAMP.write_text(json.dumps({**stamp, "root": "/elsewhere"}))
    install.install(None)
    assert install.steps == ["made", "made"]


def test_too_little_disk_is_said_before_anything_is_fetched(install, folder, monkeypatch, capsys):
    monkeypatch.setattr(install, "NEEDED_BYTES", 10**18)
    monkeypatch.setattr(sys, "argv", ["install.py"])
    assert install.main() == 1
    assert "GB of free disk space" in capsys.readouterr().err
    assert install.steps == []


def test_a_folder_that_cannot_be_written_is_said(install, folder, monkeypatch, capsys):
    (folder / ".deps").write_text("a file where the folder should be")
    monkeypatch.setattr(sys, "argv", ["install.py"])
    assert install.main() == 1
    assert len(capsys.readouterr().err.strip().splitlines()) == 1


def test_what_drives_a_browser_is_installed_once(install, folder, monkeypatch):
    installed = []
    monkeypatch.setattr(install.Installer, "locked", lambda _, lock: installed.append(lock))
    (folder / "browser.lock").write_text("playwright==1\n")
    install.install(None)
    for _ in range(2):
        install.install_browser_tests(None)
    assert installed == ["browser.lock"]
    (folder / "browser.lock").write_text("playwright==2\n")
    install.install_browser_tests(None)
    assert installed == ["browser.lock"] * 2


def test_the_builds_alone_leave_nothing_but_themselves(install, folder, monkeypatch):
    def locked(installer, lock, target):
        for path in (target, folder / ".deps" / "cache" / "pip"):
            path.mkdir(parents=True, exist_ok=True)

    monkeypatch.setattr(install.Installer, "locked", locked)
    monkeypatch.setattr(install, "lacks_openmp", lambda: False)
    monkeypatch.setattr(install, "_make_helpers_importable", lambda python: None)
    install.install_builds(None)
    assert {path.name for path in (folder / ".deps").iterdir()} == {"relay", "models"}


def test_a_hub_is_installed_once_and_needs_npm(install, folder, monkeypatch, capsys):
    installed = []
    monkeypatch.setattr(install.Installer, "locked", lambda _, lock: installed.append(lock))
    monkeypatch.setattr(install.Installer, "npm", lambda _, npm, place: installed.append(npm))
    hub = folder / "setup" / "hub"
    hub.mkdir(parents=True)
    for name in ("hub.lock", "package.json", "package-lock.json"):
        (hub / name).write_text("jupyterhub==1\n")
    install.install(None)
    monkeypatch.setattr("shutil.which", lambda name: None)
    monkeypatch.setattr(sys, "argv", ["install.py", "--hub"])
    assert install.main() == 1
    assert "Node.js" in capsys.readouterr().err
    monkeypatch.setattr("shutil.which", lambda name: name)
    for _ in range(2):
        assert install.main() == 0
    assert installed == ["setup/hub/hub.lock", "npm"]
    (hub / "package-lock.json").write_text("another")
    assert install.main() == 0
    assert len(installed) == 4
    (hub / "package-lock.json").write_text("a third")
    monkeypatch.setenv("WHEELHOUSE", str(folder))
    assert install.main() == 1
    assert "without WHEELHOUSE" in capsys.readouterr().err


def test_a_library_is_renamed_in_place(install):
    before = b"\x7fELF...\0libgomp-e985.so.1.0.0\0libdl.so.2\0..."
    after = install.with_soname(before, "libgomp-e985.so.1.0.0", "libgomp.so.1")
    assert len(after) == len(before)
    assert after.split(b"\0")[1] == b"libgomp.so.1"
    assert after.endswith(b"\0libdl.so.2\0...")


@pytest.mark.parametrize("lacking", [True, False])
def test_openmp_is_installed_only_where_the_system_has_none(install, folder, monkeypatch, lacking):
    installed = []

    def into(installer, lock, target):
        installed.append(lock)
        (target / "x.libs").mkdir(parents=True)
        (target / "x.libs" / "libgomp-e985.so.1.0.0").write_bytes(b"\0libgomp-e985.so.1.0.0\0")

    monkeypatch.setattr(install, "_into", into)
    monkeypatch.setattr(install, "OPENMP", install.DEPS / "openmp" / "libgomp.so.1")
    monkeypatch.setattr(install, "lacks_openmp", lambda: lacking)
    install._relay(None)
    assert installed == ["relay.lock", *["openmp.lock"] * lacking]
    assert install.OPENMP.exists() == lacking
    if lacking:
        assert install.OPENMP.read_bytes().startswith(b"\0libgomp.so.1\0")
