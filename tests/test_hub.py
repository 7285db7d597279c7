"""A class on a server: what each student gets, and that the configuration fits what is there.

The Hub itself is tried by name: ``python -m bench.hub``.
"""

import json
import os
import re
import runpy
import subprocess
import sys
import sysconfig
from pathlib import Path

import nbformat
import pytest
import yaml
from nbformat.v4 import new_code_cell, new_notebook
from traitlets.config import Config

from helpers.check_env import PIN
from helpers.errors import WorkbookError
from helpers.kernels import ROOT
from tools.pages import find_pages, read_page

HUB = ROOT / "setup" / "hub"
LESSON = "notebooks/01_first.ipynb"


@pytest.fixture(scope="module")
def server():
    return runpy.run_path(str(HUB / "server.py"))


@pytest.fixture
def installed(tmp_path):
    """An installation with a lesson and a lab, which nobody writes."""
    root = tmp_path / "installed"
    for name in ("helpers", "setup", ".venv", ".deps", "notebooks/quiz", "labs/01_first"):
        (root / name).mkdir(parents=True)
    (root / "Makefile").write_text("")
    for name in (LESSON, "labs/01_first/01_first.ipynb"):
        write(root / name, "x = 1")
    return root


def write(path, source, outputs=()):
    cell = new_code_cell(source, id="a", outputs=list(outputs))
    nbformat.write(new_notebook(cells=[cell]), path)


def source(path):
    return nbformat.read(path, 4).cells[0].source


def test_a_student_gets_pages_of_their_own_and_the_rest_by_links(server, installed, tmp_path):
    folder = tmp_path / "home" / "workbook"
    assert server["prepare"](folder, installed) == []
    assert folder.stat().st_mode & 0o077 == 0
    write(folder / LESSON, "x = 2")
    assert source(installed / LESSON) == "x = 1"
    for name in ("helpers", ".venv", ".deps", "setup", "Makefile", "notebooks/quiz"):
        assert (folder / name).resolve() == installed / name


def test_every_file_that_a_page_reads_is_in_a_student_s_folder(server, tmp_path):
    """Of the files beside the pages; a record that nobody has made yet is nowhere."""
    folder = tmp_path / "workbook"
    server["prepare"](folder, ROOT)
    found = []
    for page in find_pages(ROOT):
        if page.kind != "solution":
            place = page.target.parent.relative_to(ROOT)
            cells = [cell.source for cell in read_page(page).cells if cell.cell_type == "code"]
            names = re.findall(r'"((?:\.\./|src/|quiz/)[\w./-]+)"', "\n".join(cells))
            found += [place / name for name in names if (ROOT / place / name).exists()]
    assert len(found) >= 5
    assert [str(path) for path in found if not (folder / path).exists()] == []


def test_what_a_student_wrote_stays_and_the_new_page_is_put_beside_it(server, installed, tmp_path):
    folder = tmp_path / "workbook"
    server["prepare"](folder, installed)
    write(folder / LESSON, "mine")
    assert server["prepare"](folder, installed) == []
    write(installed / LESSON, "x = 3")
    (said,) = server["prepare"](folder, installed)
    assert "01_first.fresh.ipynb" in said
    assert source(folder / LESSON) == "mine"
    assert source(folder / "notebooks/01_first.fresh.ipynb") == "x = 3"
    assert server["prepare"](folder, installed) == []  # said once


def test_a_page_that_was_only_run_or_removed_is_the_newest(server, installed, tmp_path):
    folder, lab = tmp_path / "workbook", "labs/01_first/01_first.ipynb"
    server["prepare"](folder, installed)
    write(folder / LESSON, "x = 1", [nbformat.v4.new_output("stream", text="1")])
    (folder / lab).unlink()
    write(installed / LESSON, "x = 3")
    assert server["prepare"](folder, installed) == []
    assert source(folder / LESSON) == "x = 3"
    assert source(folder / lab) == "x = 1"


def test_an_installation_that_has_moved_is_followed(server, installed, tmp_path):
    folder = tmp_path / "workbook"
    server["prepare"](folder, installed)
    moved = installed.rename(tmp_path / "moved")
    server["prepare"](folder, moved)
    assert (folder / "helpers").resolve() == moved / "helpers"


def test_the_server_is_started_with_what_it_was_asked_for(installed, tmp_path):
    """Without a Hub: what runs in place of jupyterhub-singleuser says how it was called."""
    (installed / ".venv" / "bin").mkdir()
    python = installed / ".venv" / "bin" / "python"
    python.symlink_to(sys.executable)
    singleuser = python.with_name("jupyterhub-singleuser")
    singleuser.write_text('#!/bin/sh\necho "$PWD|$RELAY_WORKBOOK_FOLDER|$TVM_NUM_THREADS|$*"\n')
    singleuser.chmod(0o755)
    packages = os.pathsep.join((str(ROOT), sysconfig.get_path("purelib")))
    environment = {**os.environ, "HOME": str(tmp_path), "PYTHONPATH": packages}
    command = [str(python), str(HUB / "server.py"), "--port=1", "a b"]
    for _ in range(2):  # the second time the folder is there
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        folder = tmp_path / "workbook"
        assert done.stdout == f"{folder}|{folder}|1|--port=1 a b\n"
    singleuser.unlink()
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert len(done.stderr.splitlines()) == 1
    assert "make hub" in done.stderr


def test_all_that_a_student_makes_is_in_their_folder(tmp_path):
    code = """
        from helpers import build, kernels, progress, quiz_record, variants, verify
        from helpers.zoo import formats
        kernels.prepare_environment()
        variants.remember("ada")
        quiz_record.note("01-1", True)
        progress.note_lab("01_first", {})
        print(build._cache().directory, build._cache().shared, formats._kept("new.json"))
        try:
            verify.find("03")
        except Exception as error:
            print(error)
    """
    fonts = tmp_path / ".state" / "matplotlib" / "fontlist-0.json"
    fonts.parent.mkdir(parents=True)
    fonts.touch()  # looking for them would take seconds
    environment = {**os.environ, "RELAY_WORKBOOK_FOLDER": str(tmp_path), "PYTHONPATH": str(ROOT)}
    environment.pop("RELAY_WORKBOOK_CACHE", None)
    command = [sys.executable, "-c", "if True:" + code]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    places, no_lab = done.stdout.splitlines()
    state = tmp_path / ".state"
    assert places == f"{state / 'cache'} {ROOT / '.state' / 'cache'} {state / 'zoo' / 'new.json'}"
    assert "There is no lab" in no_lab
    made = {path.name for path in tmp_path.iterdir()} | {path.name for path in state.iterdir()}
    assert {"progress.json", "progress-quiz.json", "variant", "ipython", "matplotlib"} <= made


def configuration():
    config = Config()
    runpy.run_path(str(HUB / "jupyterhub_config.py"), {"get_config": lambda: config})
    return config


def test_the_configuration_names_what_is_there():
    config = configuration()
    python, script = config.Spawner.cmd
    assert (python, Path(script)) == (sys.executable, HUB / "server.py")
    assert (ROOT / config.Spawner.default_url.removeprefix("/lab/tree/")).is_file()
    assert config.JupyterHub.bind_url.startswith("http://127.0.0.1:")
    (proxy,) = config.ConfigurableHTTPProxy.command
    assert Path(proxy).is_relative_to(ROOT / ".deps" / "hub")


def test_the_packages_of_the_hub_fit_those_of_the_workbook():
    def pins(path):
        return {(name, marker): version for name, version, marker in PIN.findall(path.read_text())}

    workbook, hub = pins(ROOT / "requirements.lock"), pins(HUB / "hub.lock")
    both = workbook.keys() & hub.keys()
    assert len(both) > 20
    assert {key: hub[key] for key in both} == {key: workbook[key] for key in both}


def test_every_package_of_the_proxy_is_pinned_by_hash_and_names_no_host():
    text = (HUB / "package-lock.json").read_text()
    packages = {k: v for k, v in json.loads(text)["packages"].items() if k}
    assert all(entry["integrity"].startswith("sha512-") for entry in packages.values())
    assert "://" not in re.sub(r'"funding": \{.*?\}|"url": "[^"]*"', "", text, flags=re.S)
    asked = json.loads((HUB / "package.json").read_text())["dependencies"]
    for name, version in asked.items():
        assert packages[f"node_modules/{name}"]["version"] == version


def test_the_instructions_name_what_is_there():
    text = (ROOT / "docs" / "hub.md").read_text()
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))
    assert set(re.findall(r"\bmake ([a-z-]{3,})(?= |`|$)", text, re.M)) <= targets
    for name in re.findall(r"\b(?:setup/hub|bench/hub)/[\w.-]+", text):
        assert (ROOT / name).exists(), name
    unit = (HUB / "relay-hub.service").read_text()
    folder = re.search(r"ExecStart=(\S+)/\.venv/bin/jupyterhub --config=(\S+)", unit)
    assert f"make release OUT={folder[1]}" in text
    assert folder[2] in text
    assert f'load_subconfig("{folder[1]}/setup/hub/jupyterhub_config.py")' in text


def test_kubernetes_starts_the_same_server_with_the_same_limits():
    values = yaml.safe_load((HUB / "values.yaml").read_text())
    single = values["singleuser"]
    assert single["cmd"][1].endswith("setup/hub/server.py")
    assert single["memory"]["limit"] == configuration().SystemdSpawner.mem_limit
    assert single["cpu"]["limit"] == configuration().SystemdSpawner.cpu_limit
    gpu = [p for p in single["profileList"] if "kubespawner_override" in p]
    assert gpu[0]["kubespawner_override"]["extra_resource_limits"] == {"nvidia.com/gpu": "1"}


@pytest.mark.parametrize("sentence", ["needs root", "is not installed"])
def test_a_trial_that_cannot_be_made_is_refused_in_a_sentence(monkeypatch, sentence):
    from bench.hub import __main__ as bench

    monkeypatch.setattr("os.geteuid", lambda: 1000 if sentence == "needs root" else 0)
    monkeypatch.setattr("shutil.which", lambda name: None)
    with pytest.raises(WorkbookError, match=sentence):
        bench.main(["1"])
