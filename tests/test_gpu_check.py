"""The GPU checks without a GPU, and wheels that arrive in parts."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def gpu_check(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
    return subprocess.run(
        [sys.executable, "-m", "bench.gpu_check", *arguments],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_dry_run_compiles_all_sections_and_writes_no_record(tmp_path):
    record = tmp_path / "record.json"
    done = gpu_check("--dry-run", "--record", str(record), "--models", "mlp", "lstm")
    assert done.returncode == 0, done.stderr
    assert not record.exists()
    sections = [line.split(":")[0] for line in done.stdout.splitlines() if ": {" in line]
    assert sections == ["bandwidth", "fusion", "batches", "copies"]
    assert '"chain_fused": {"launches": 1, "bytes": 536870912, "seconds": null}' in done.stdout
    assert '"chain_alone": {"launches": 8,' in done.stdout
    assert done.stdout.count('"layout": "NHWC"') == 2
    assert "mlp               {'launches': 4," in done.stdout
    assert "lstm" not in done.stdout  # it has no ONNX form


def test_without_a_gpu_it_says_so_in_one_sentence(tmp_path):
    record = tmp_path / "record.json"
    done = gpu_check("--record", str(record))
    assert done.returncode == 1
    assert "There is no GPU here that CUDA reaches" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert "Traceback" not in done.stderr + done.stdout
    assert not record.exists()


@pytest.fixture(scope="module")
def wheels():
    path = ROOT / "setup" / "join_wheels.py"
    spec = importlib.util.spec_from_file_location("join_wheels", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_wheel_in_parts_is_whole_again(wheels, tmp_path):
    contents = {"big-1.whl": os.urandom(2500), "small-1.whl": b"small"}
    for name, data in contents.items():
        (tmp_path / name).write_bytes(data)
    assert wheels.split(tmp_path, size=1000) == ["big-1.whl"]
    sizes = [part.stat().st_size for part in sorted(tmp_path.glob("*.part*"))]
    assert sizes == [1000, 1000, 500]
    assert not (tmp_path / "big-1.whl").exists()
    assert wheels.join(tmp_path) == ["big-1.whl"]
    assert {path.name: path.read_bytes() for path in tmp_path.glob("*.whl")} == contents


def test_a_missing_part_is_noticed(wheels, tmp_path):
    (tmp_path / "big-1.whl").write_bytes(os.urandom(2500))
    wheels.split(tmp_path, size=1000)
    (tmp_path / "big-1.whl.part001").unlink()
    with pytest.raises(ValueError, match="is not whole: a part is missing"):
        wheels.join(tmp_path)
    assert not (tmp_path / "big-1.whl").exists()
