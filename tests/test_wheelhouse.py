"""The wheelhouse: what it needs, what it lacks, and an installation from it alone.

The real one takes minutes: WORKBOOK_TEST_WHEELHOUSE names a filled wheelhouse, and with the network
cut off the workbook and a class's copy of it are set up from there, by pip and (where it is on
PATH) by uv, for each Python in WORKBOOK_TEST_PYTHONS (paths with ":" between them; or this one).
"""

import hashlib
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest

from helpers import WorkbookError, wheelhouse

ROOT = Path(__file__).resolve().parent.parent
HERE = "{}.{}".format(*sys.version_info)
LOCKED = "small==1.0 ; python_version >= '3.10' \\\n    --hash=sha256:{}\n    # via x\n"


def wheel(folder: Path, name: str = "small", tag: str = "py3-none-any") -> Path:
    """The smallest wheel that pip and uv install."""
    folder.mkdir(parents=True, exist_ok=True)
    path, info = folder / f"{name}-1.0-{tag}.whl", f"{name}-1.0.dist-info"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{name}.py", f"TAG = {tag!r}\n")
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        archive.writestr(
            f"{info}/WHEEL", f"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: {tag}\n"
        )
        archive.writestr(f"{info}/RECORD", "")
    return path


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture
def root(tmp_path):
    """A workbook whose locks ask for one package each."""
    folder = tmp_path / "a workbook"
    for number, lock in enumerate(wheelhouse.LOCKS):
        made = wheel(tmp_path / "index", f"small{number}")
        text = LOCKED.replace("small", f"small{number}").format(digest(made))
        folder.mkdir(exist_ok=True)
        (folder / lock).write_text(text)
    return folder


@pytest.fixture
def full(root, tmp_path, monkeypatch):
    """A wheelhouse for it, in a folder whose name has a space."""
    fetched = []

    def fetch(pins, python, folder, scratch):
        for pin in pins:
            fetched.append(pin.name)
            shutil.copy(tmp_path / "index" / f"{pin.name}-1.0-py3-none-any.whl", folder)

    monkeypatch.setattr(wheelhouse, "_fetch", fetch)
    folder = tmp_path / "all wheels"
    wheelhouse.fill(folder, wheelhouse.LOCKS, root)
    assert sorted(fetched) == ["small0", "small1", "small2", "small3"]  # each once, not per Python
    fetched.clear()
    monkeypatch.setattr(wheelhouse, "fetched", fetched, raising=False)
    return folder


def test_what_the_real_locks_ask_for():
    for lock in wheelhouse.LOCKS:
        text = (ROOT / lock).read_text()
        pins = wheelhouse.pins(text)
        assert len(pins) == len([line for line in text.splitlines() if line[0].isalnum()])
        assert sum(len(pin.hashes) for pin in pins) == text.count("--hash=sha256:")
    pins = wheelhouse.pins((ROOT / "requirements.lock").read_text())
    versions = {p: [pin for pin in pins if pin.applies(p)] for p in wheelhouse.PYTHONS}
    for asked in versions.values():  # a package that is locked twice has one version for each
        assert len({pin.name for pin in asked}) == len(asked)
    assert {"backports-strenum"} <= {pin.name for pin in versions["3.12"]}
    assert {"exceptiongroup"} & {pin.name for pin in versions["3.10"]}
    assert not {"exceptiongroup"} & {pin.name for pin in versions["3.12"]}


def test_the_wheel_that_fits_best_is_taken(tmp_path):
    tags = ("cp311-cp311-manylinux_2_17_x86_64", "cp39-abi3-manylinux_2_28_x86_64", "py3-none-any")
    good = [wheel(tmp_path, tag=tag) for tag in tags]
    bad = [
        wheel(tmp_path, tag=tag)
        for tag in ("cp311-cp311-manylinux_2_35_x86_64", "cp311-cp311-macosx_11_0_arm64")
    ]
    pin = wheelhouse.Pin("small", "1.0", "", frozenset(map(digest, good + bad)))
    shelf = wheelhouse.Shelf(tmp_path)
    best = {p: shelf.best(pin, wheelhouse._tags(p)) for p in ("3.10", "3.11", "3.12")}
    assert best == {"3.10": good[1], "3.11": good[0], "3.12": good[1]}
    other = wheelhouse.Pin("small", "1.0", "", frozenset({"0" * 64}))
    assert shelf.best(other, wheelhouse._tags("3.11")) is None


def test_only_what_is_missing_is_fetched_again(full, root):
    wheelhouse.fill(full, wheelhouse.LOCKS, root)
    assert wheelhouse.fetched == []
    (full / "small2-1.0-py3-none-any.whl").unlink()
    (full / "small1-1.0-py3-none-any.whl").write_bytes(b"half")
    wheelhouse.fill(full, wheelhouse.LOCKS, root)
    assert wheelhouse.fetched == ["small1", "small2"]
    assert wheelhouse.check(full, wheelhouse.LOCKS, "3.12", hashes=True, root=root) > 0


def test_an_interruption_leaves_no_index_and_keeps_what_came(root, tmp_path, monkeypatch):
    def stopped(pins, python, folder, scratch):
        if pins[0].name == "small1":
            raise KeyboardInterrupt
        shutil.copy(tmp_path / "index" / f"{pins[0].name}-1.0-py3-none-any.whl", folder)

    monkeypatch.setattr(wheelhouse, "_fetch", stopped)
    with pytest.raises(KeyboardInterrupt):
        wheelhouse.fill(tmp_path / "w", wheelhouse.LOCKS, root)
    assert [path.name for path in (tmp_path / "w").iterdir()] == ["small0-1.0-py3-none-any.whl"]
    with pytest.raises(WorkbookError, match="was not filled to the end"):
        wheelhouse.find(str(tmp_path / "w"))


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda w, r: (w / "small0-1.0-py3-none-any.whl").unlink(), "lacks small0-1.0-py3-none"),
        (lambda w, r: (w / "small1-1.0-py3-none-any.whl").write_bytes(b""), "small1-.* not whole"),
        (lambda w, r: swap(w / "small1-1.0-py3-none-any.whl"), "small1-.* damaged"),
        (lambda w, r: (w / wheelhouse.INDEX).write_text("{"), "wheelhouse.json is damaged"),
        (lambda w, r: (r / "relay.lock").write_text("x==1\n"), "another version .*relay.lock dif"),
    ],
)
def test_what_is_wrong_with_a_wheelhouse_is_one_sentence(full, root, damage, says):
    damage(full, root)
    with pytest.raises(WorkbookError, match=says) as caught:
        wheelhouse.check(full, wheelhouse.LOCKS, HERE, hashes=True, root=root)
    assert f"make wheelhouse OUT={full}" in str(caught.value)
    assert "\n" not in str(caught.value)


def swap(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[40] ^= 1
    path.write_bytes(data)


def test_extras_that_are_not_there(full, root):
    (root / "browser.lock").write_text("x==1\n")
    with pytest.raises(WorkbookError, match=r"without what browser\.lock needs.* EXTRAS=1"):
        wheelhouse.check(full, ["browser.lock"], HERE, root=root)


def test_where_a_wheelhouse_is_looked_for(full, monkeypatch, tmp_path):
    monkeypatch.chdir(full.parent)
    assert wheelhouse.find(full.name) == wheelhouse.find(f"./{full.name}/") == full
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")  # make -C: the shell stays where it was
    monkeypatch.setenv("PWD", str(full.parent))
    assert wheelhouse.find(full.name) == wheelhouse.find(str(full)) == full
    with pytest.raises(WorkbookError, match="there is no folder"):
        wheelhouse.find("nowhere")


def test_an_installation_asks_nothing_but_the_wheelhouse(full, root, tmp_path, monkeypatch, pip):
    """With this environment's own pip, and settings of the user's that lead elsewhere."""
    spec = importlib.util.spec_from_file_location("install", ROOT / "setup" / "install.py")
    install = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(install)
    for name in ("PIP_INDEX_URL", "UV_INDEX_URL", "PIP_FIND_LINKS"):
        monkeypatch.setenv(name, "http://127.0.0.1:9/simple")
    for name, value in {"ROOT": root, "DEPS": tmp_path, "LOG": tmp_path / "log"}.items():
        monkeypatch.setattr(install, name, value)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    (tmp_path / "tmp").mkdir()
    installer = install.Installer(None, Path(sys.executable), full)
    installer.locked("relay.lock", tmp_path / "out")
    assert (tmp_path / "out" / "small1.py").is_file()
    swap(full / "small2-1.0-py3-none-any.whl")
    with pytest.raises(WorkbookError, match="checksum"):
        installer.locked("models.lock", tmp_path / "out")


def test_an_environment_without_pip_is_installed_into(full, root, tmp_path, pip):
    """What uv makes has no pip; later, where there is no uv, it gets what a tool asks for."""
    made = tmp_path / "environment"
    base = Path(sys.base_prefix) / "bin" / f"python{HERE}"
    subprocess.run([str(base), "-m", "venv", "--without-pip", str(made)], check=True)
    code = (
        "import sys; sys.path.insert(0, sys.argv.pop(1)); import install; from pathlib import Path;"
        "root, place, wheels = map(Path, sys.argv[1:]); install.ROOT, install.DEPS = root, place;"
        "installer = install.Installer(None, Path(sys.executable), wheels, scratch=place);"
        "installer.locked('relay.lock'); installer.locked('models.lock', place / 'out')"
    )
    (tmp_path / "tmp").mkdir()
    python = str(made / "bin" / "python")
    paths = map(str, (ROOT / "setup", root, tmp_path, full))
    done = subprocess.run([python, "-c", code, *paths], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    subprocess.run([python, "-c", "import small1"], check=True)
    assert (tmp_path / "out" / "small2.py").is_file()


def test_the_command_line_says_where_to(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["wheelhouse", ""])
    with pytest.raises(WorkbookError, match="OUT="):
        wheelhouse.main()


# --- the real one, by name ------------------------------------------------------------------------


def test_the_figures_that_are_stated_are_its_own():
    """Those of docs/offline.md, and what ``make preflight`` says there is to fetch."""
    filled = os.environ.get("WORKBOOK_TEST_WHEELHOUSE")
    if not filled:
        pytest.skip("WORKBOOK_TEST_WHEELHOUSE names a filled wheelhouse")
    folder = wheelhouse.find(filled)
    index = json.loads((folder / wheelhouse.INDEX).read_text())
    rows = []
    for locks in (wheelhouse.LOCKS, index["locks"]):
        wheels = {
            name
            for lock in locks
            for some in index["locks"][lock]["wheels"].values()
            for name in some
        }
        size = sum(index["wheels"][name]["size"] for name in wheels)
        each = [wheelhouse.check(folder, locks, python) for python in wheelhouse.PYTHONS]
        low, high = min(each) / 1e6, max(each) / 1e6
        rows.append(f"| {len(wheels)} | {size / 1e6:.0f} | {low:.0f} to {high:.0f} MB |")
        if locks == wheelhouse.LOCKS:
            text = (ROOT / "setup" / "preflight.py").read_text()
            assert int(re.search(r"^DOWNLOAD = ([\d_]+)$", text, re.M)[1]) == pytest.approx(
                max(each), rel=0.02
            )
    stated = (ROOT / "docs" / "offline.md").read_text()
    assert rows[0] in stated
    if len(index["locks"]) > len(wheelhouse.LOCKS):
        assert rows[1] in stated


@pytest.mark.parametrize("installer", ["pip", "uv"])
@pytest.mark.parametrize("copy", ["checkout", "class"])
@pytest.mark.parametrize(
    "python", os.environ.get("WORKBOOK_TEST_PYTHONS", sys.executable).split(os.pathsep)
)
def test_set_up_without_a_network(python, copy, installer, tmp_path):
    filled = os.environ.get("WORKBOOK_TEST_WHEELHOUSE")
    if not filled:
        pytest.skip("takes minutes: WORKBOOK_TEST_WHEELHOUSE names a filled wheelhouse")
    if installer == "uv" and not shutil.which("uv"):
        pytest.skip("there is no uv on PATH")
    folder = tmp_path / "the workbook"
    clone = tmp_path / "clone" if copy == "class" else folder
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
    if copy == "class":
        from tools import release

        release.release(folder, clone)
    base = Path(sys.executable).resolve() if python == sys.executable else Path(python)
    path = "/usr/bin:/bin:/usr/sbin:/sbin"
    if installer == "uv":
        path = f"{Path(shutil.which('uv')).parent}:{path}"
    (tmp_path / "wheels").symlink_to(Path(filled).absolute())
    environment = {"PATH": path, "HOME": str(tmp_path), "PYTHON": str(base)}

    def cut_off(*command, cwd):
        # The kernel listens on loopback, which a new network namespace has switched off.
        alone = ["unshare", "-rn", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]
        return subprocess.run(
            [*alone, *command],
            cwd=cwd,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )

    began = time.monotonic()
    done = cut_off("make", "setup", "WHEELHOUSE=../wheels", cwd=folder)
    print(f"{base}, {copy}, {installer}: {time.monotonic() - began:.0f} s")
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"({installer}" in done.stdout
    said = cut_off("make", "check-env", cwd=folder)
    assert "Everything is in place." in said.stdout, said.stdout + said.stderr
    lesson = folder / "notebooks" / "03_operator_fusion.ipynb"
    run = (
        "import nbformat, nbclient, sys; page = nbformat.read(sys.argv[1], 4); "
        "nbclient.NotebookClient(page, timeout=300, kernel_name='python3').execute()"
    )
    python = folder / ".venv" / "bin" / "python"
    ran = cut_off(str(python), "-c", run, str(lesson), cwd=lesson.parent)
    assert ran.returncode == 0, ran.stderr[-2000:]
