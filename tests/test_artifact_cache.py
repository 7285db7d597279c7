"""The file format and the folder: whole or refused, bounded, shared, and never in the way."""

import os
import random
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers import artifact_cache
from helpers.artifact_cache import ArtifactCache, DamagedError
from helpers.tvm_builds import ROOT

SECTIONS = st.dictionaries(st.text(max_size=8), st.binary(max_size=200), max_size=4)


@given(SECTIONS, st.dictionaries(st.text(max_size=5).filter(lambda k: k != "sections"), st.text()))
@settings(max_examples=50, deadline=None)
def test_what_is_packed_comes_back(sections, header):
    assert artifact_cache.unpack(artifact_cache.pack(header, sections)) == (header, sections)


@given(st.data())
@settings(max_examples=100, deadline=None)
def test_any_changed_byte_and_any_cut_is_noticed(data):
    whole = artifact_cache.pack({"name": "x"}, {"a": b"some bytes", "b": b""})
    place = data.draw(st.integers(0, len(whole) - 1))
    other = data.draw(st.integers(0, 255).filter(lambda byte: byte != whole[place]))
    changed = whole[:place] + bytes([other]) + whole[place + 1 :]
    for damaged in (changed, whole[:place], whole + b"x"):
        with pytest.raises(DamagedError):
            artifact_cache.unpack(damaged)


def test_an_entry_is_found_under_its_key_only(tmp_path):
    cache = ArtifactCache(tmp_path / "new" / "folder")
    assert cache.get("a") is None
    assert cache.put("a", b"first")
    assert cache.put("b", b"second")
    assert (cache.get("a"), cache.get("b"), cache.get("c")) == (b"first", b"second", None)
    assert cache.put("a", b"third")
    assert cache.get("a") == b"third"
    assert cache.size() == len(b"third" + b"second")


def test_what_others_share_is_read_and_never_changed(tmp_path):
    shared = ArtifactCache(tmp_path / "shared")
    shared.put("a", b"theirs")
    before = [(path.name, path.stat()) for path in shared.directory.iterdir()]
    own = ArtifactCache(tmp_path / "own", shared=shared.directory)
    assert (own.get("a"), own.get("b")) == (b"theirs", None)
    assert own.size() == 0
    own.put("a", b"mine")
    assert own.get("a") == b"mine"
    assert own.clear() == len(b"mine")
    assert own.get("a") == b"theirs"
    assert [(path.name, path.stat()) for path in shared.directory.iterdir()] == before


def _age(cache, key, seconds):
    """Make an entry look used ``seconds`` earlier than it was."""
    path = cache.directory / f"{key}.artifact"
    used = path.stat().st_mtime - seconds
    os.utime(path, (used, used))


def test_the_least_recently_used_go_when_the_limit_is_passed(tmp_path):
    cache = ArtifactCache(tmp_path, limit=30)
    for age, key in ((300, "a"), (200, "b"), (100, "c")):
        cache.put(key, bytes(10))
        _age(cache, key, age)
    assert cache.get("a") is not None  # used just now: "b" is the oldest from here on
    cache.put("d", bytes(10))
    assert [key for key in "abcd" if cache.get(key)] == ["a", "c", "d"]
    assert cache.size() <= 30


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.integers(0, 50)), max_size=30))
@settings(max_examples=30, deadline=None)
def test_the_cache_never_outgrows_its_limit(tmp_path_factory, puts):
    cache = ArtifactCache(tmp_path_factory.mktemp("cache"), limit=40)
    for key, size in puts:
        assert cache.put(key, bytes(size)) == (size <= 40)
        assert cache.size() <= 40
        assert size > 40 or cache.get(key) == bytes(size)


def test_clearing_frees_what_was_there_and_nothing_else(tmp_path):
    (tmp_path / "not-ours.txt").write_text("keep")
    cache = ArtifactCache(tmp_path)
    cache.put("a", bytes(7))
    cache.put("b", bytes(5))
    assert cache.clear() == 12
    assert cache.clear() == 0
    assert [path.name for path in tmp_path.iterdir()] == ["not-ours.txt"]


def test_half_written_files_of_dead_writers_are_swept(tmp_path):
    cache = ArtifactCache(tmp_path)
    fresh, old = tmp_path / ".part-fresh", tmp_path / ".part-old"
    for path in (fresh, old):
        path.write_bytes(b"half")
    os.utime(old, (0, 0))
    cache.put("a", b"x")
    assert fresh.exists()
    assert not old.exists()


def test_a_disk_that_refuses_only_means_that_nothing_is_kept(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("a file where the folder should be")
    blocked = ArtifactCache(tmp_path / "file" / "cache")
    assert not blocked.put("a", b"x")
    assert blocked.get("a") is None
    assert blocked.clear() == 0

    cache = ArtifactCache(tmp_path / "cache")
    cache.put("a", b"before")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fdopen", full)
    assert not cache.put("a", b"after")
    monkeypatch.undo()
    assert cache.get("a") == b"before"
    assert [path.name for path in cache.directory.iterdir()] == ["a.artifact"]


def test_readers_and_writers_at_once_see_whole_entries_only(tmp_path):
    script = textwrap.dedent("""
        import sys
        from pathlib import Path
        from helpers import artifact_cache
        cache = artifact_cache.ArtifactCache(Path(sys.argv[1]), limit=400_000)
        for i in range(60):
            key = "abc"[i % 3]
            cache.put(key, artifact_cache.pack({"by": sys.argv[2]}, {"x": bytes([i]) * 90_000}))
            for other in "abc":
                data = cache.get(other)
                if data is not None:
                    (byte,) = set(artifact_cache.unpack(data)[1]["x"])
    """)

    def run(name):
        command = [sys.executable, "-c", script, str(tmp_path), name]
        return subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)

    with ThreadPoolExecutor(3) as pool:
        for result in pool.map(run, ("one", "two", "three")):
            assert result.returncode == 0, result.stderr
    assert not list(tmp_path.glob(".part-*"))


def test_the_pieces_of_an_artifact_are_found_whatever_their_size():
    rng = random.Random(0)
    sections = {str(i): rng.randbytes(rng.choice((0, 1, 1000, 100_000))) for i in range(20)}
    assert artifact_cache.unpack(artifact_cache.pack({}, sections))[1] == sections
