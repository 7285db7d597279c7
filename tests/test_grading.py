"""Grading: a class of right, wrong, broken and hostile submissions gets the grades it deserves.

The parts that run submissions are skipped where bubblewrap is missing or cannot be used.
"""

import contextlib
import csv
import json
import math
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import tracemalloc
import zipfile
from html.parser import HTMLParser
from pathlib import Path

import grading_cases as cases
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from helpers.errors import WorkbookError
from helpers.grading import __main__ as command
from helpers.grading import cohort, encoding, hidden, report, runner, sandbox, submission
from helpers.grading.cohort import Threads, grade_class
from helpers.grading.sandbox import ROOT

SECRET = b"the secret of the tests"
needs_sandbox = pytest.mark.skipif(
    bool(sandbox.sandbox_problem()), reason=f"no sandbox: {sandbox.sandbox_problem()}"
)

# --- values as text ------------------------------------------------------------------------------

DTYPES = st.sampled_from(["bool", "int8", "int64", "uint16", "float16", "float32", "complex64"])
ARRAYS = DTYPES.flatmap(lambda dtype: arrays.arrays(dtype, arrays.array_shapes(min_dims=0)))
ATOMS = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
KEYS = st.integers() | st.text() | st.tuples(st.integers(), st.text())
VALUES = st.recursive(
    ATOMS | ARRAYS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["dict", "array", "relay", "relax", "float", "x"]), inner, max_size=2
        )
    ),
    max_leaves=10,
)


def equal(a, b):
    """The same value; NaN is NaN."""
    if isinstance(a, np.ndarray):
        same_kind = isinstance(b, np.ndarray) and a.dtype == b.dtype and a.shape == b.shape
        return same_kind and a.tobytes() == b.tobytes()
    if isinstance(a, list):
        return isinstance(b, list) and len(a) == len(b) and all(map(equal, a, b))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(equal(a[key], b[key]) for key in a)
    if isinstance(a, float) and math.isnan(a):
        return isinstance(b, float) and math.isnan(b)
    return type(a) is type(b) and a == b


@given(VALUES)
def test_a_value_survives_the_way_out(value):
    text = encoding.dumps(value)
    assert text.isascii()
    assert "\n" not in text
    assert equal(encoding.loads(text), value)


def test_numpy_and_tuples_arrive_as_plain_values():
    value = encoding.loads(encoding.dumps({"a": (np.int64(3), np.float32(0.5), np.bool_(True))}))
    assert value == {"a": [3, 0.5, True]}
    assert [type(item) for item in value["a"]] == [int, float, bool]


@given(st.binary(max_size=60) | st.text(max_size=60).map(str.encode))
def test_any_bytes_are_a_value_or_refused(data):
    with contextlib.suppress(encoding.NotAValueError):
        encoding.loads(data.decode("latin-1"))


@settings(deadline=None)  # TVM is imported for the first program
@given(JSON)
@example({"relay": ""})
@example({"relax": []})
def test_any_json_is_a_value_or_refused(relay, tree):
    try:
        value = encoding.loads(json.dumps(tree))
    except encoding.NotAValueError:
        return
    text = encoding.dumps(value)
    again = encoding.loads(text)
    assert encoding.dumps(again) == text
    with contextlib.suppress(encoding.NotAValueError):  # the text of no program has no equal
        assert equal(again, value)


def test_a_program_is_rebuilt_by_its_own_tvm_only(relay):
    """Neither in a process with the other TVM, nor by whichever TVM is imported first."""
    with pytest.raises(encoding.NotAValueError, match="TVM with Relax"):
        encoding.loads('{"relax": []}').expression()
    code = """
import sys
from helpers.grading import encoding
try:
    encoding.loads('{"relay": ""}').expression()
except encoding.NotAValueError:
    from tvm import relay
"""
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "NaN",
        "[" * 100_000,
        "[" * 40 + "]" * 40,
        "1" * 5_000,
        '{"value": 1}',
        '{"float": "1e9"}',
        '{"dict": [[1, 2], [1, 3]]}',
        '{"dict": [[{"dict": []}, 1]]}',
        '{"dict": [[1]]}',
        '{"array": ["object", [1], "AAAAAAAAAAA="]}',
        '{"array": ["float32", [2], "AAAA"]}',
        '{"array": ["float32", [-1], ""]}',
        '{"array": ["float32", [true], "AAAAAA=="]}',
        '{"array": ["float32", [99999999, 99999999, 99999999], ""]}',
        '{"array": ["float32", [1], "AAAAAA==\\n"]}',
        '{"array": ["bool", [1], "Ag=="]}',
        '{"array": [["float32"], [1], "AAAAAA=="]}',
        '{"relay": 3}',
        '{"pickle": "gASVAA=="}',
        '"' + "x" * encoding.LONGEST + '"',
    ],
)
def test_what_is_no_value_is_refused(text):
    with pytest.raises(encoding.NotAValueError):
        encoding.loads(text)


@pytest.mark.parametrize(
    "value", [{1, 2}, b"31", object(), np.array([object()]), [[]] * 2 + [{1: {2: {3}}}]]
)
def test_what_cannot_be_graded_is_not_written(value):
    with pytest.raises(encoding.NotAValueError):
        encoding.dumps(value)


def test_an_array_that_is_too_large_is_refused_before_it_is_written():
    with pytest.raises(encoding.NotAValueError, match="more than 8,000,000 characters"):
        encoding.dumps(np.broadcast_to(np.float32(1), (10**6, 10**6)))


# --- hidden checks -------------------------------------------------------------------------------


def test_inputs_depend_on_the_secret_and_the_place_alone():
    check = hidden.Hidden(
        "x", "x", draw=lambda random: {"n": random.integers(1 << 40, size=3).tolist()}
    )
    base = check.inputs(b"secret", "03", "q1", 0)
    assert check.inputs(b"secret", "03", "q1", 0) == base
    others = [(b"other", "03", "q1", 0), (b"secret", "04", "q1", 0), (b"secret", "03", "q2", 0)]
    assert all(check.inputs(*place) != base for place in [*others, (b"secret", "03", "q1", 1)])


def test_inputs_are_what_json_makes_of_them():
    assert hidden.Hidden("x", "x", draw=lambda random: {"s": (1, 2)}).inputs(b"", "a", "b", 0) == {
        "s": [1, 2]
    }
    with pytest.raises(WorkbookError, match=r"Lab a, b, check 0: what draw gives is not JSON"):
        hidden.Hidden("x", "x", draw=lambda random: {"s": {1, 2}}).inputs(b"", "a", "b", 0)


def test_a_mutant_replaces_a_text_that_is_there_once():
    assert hidden.mutated("a + b", {"+": "-"}) == "a - b"
    with pytest.raises(WorkbookError, match="2 times"):
        hidden.mutated("a + a", {"a": "b"})


# --- files of anybody ----------------------------------------------------------------------------


@pytest.fixture
def handed_in(tmp_path):
    """A folder of submissions, with an enemy's ideas of what belongs there."""
    folder = tmp_path / "submissions"
    for place in (
        "alice/91_bytes.ipynb",
        "alice/labs/91_bytes/91_bytes.ipynb",
        "alice/.ipynb_checkpoints/91_bytes-checkpoint.ipynb",
        "bob/labs/91_bytes/91_bytes (1).ipynb",
        "carol/notes.txt",
        "dave/91_bytes2.ipynb",
    ):
        path = folder / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(place)
    (folder / "README.md").write_text("not a student")
    (folder / "eve").symlink_to(folder / "alice")
    (folder / "mallory").mkdir()
    (folder / "mallory" / "91_bytes.ipynb").symlink_to("/etc/passwd")
    (folder / "mallory" / "all").symlink_to(folder)
    (folder / "oscar").mkdir()
    os.mkfifo(folder / "oscar" / "91_bytes.ipynb")
    (folder / "peggy" / "91_bytes.ipynb").mkdir(parents=True)
    cases.write_zip(folder / "trent.zip", b"from the zip")
    cases.write_zip_bomb(folder / "victor.zip")
    (folder / "walter.zip").write_bytes(b"PK\x03\x04 not a zip")
    return folder


def test_each_student_has_at_most_one_notebook_for_a_lab(handed_in):
    found = submission.find(handed_in, ["91_bytes", "92_relay"])
    assert found.loose == ["README.md", "eve"]
    assert found.of_no_lab == ["dave/91_bytes2.ipynb"]
    read = {name: [(f.data, *f.notes) for f in files] for name, files in found.notebooks.items()}
    assert read == {
        "alice": [
            (b"alice/91_bytes.ipynb", "2 files are for this lab: 91_bytes.ipynb was graded.")
        ],
        "bob": [(b"bob/labs/91_bytes/91_bytes (1).ipynb",)],
        "carol": [],
        "dave": [],
        "mallory": [(b"", "The file is a link.")],
        "oscar": [(b"", "The file is not a regular file.")],
        "peggy": [],
        "trent": [(b"from the zip",)],
        "victor": [(b"", "The file is larger than 50 MB.")],
        "walter": [],
    }


def test_what_is_of_no_lab_is_named_once_for_each_student(tmp_path):
    for name in ("zoe/deep/down/first.ipynb", "zoe/b.ipynb", "zoe/notes.txt", "yan/91_bytes.ipynb"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    with zipfile.ZipFile(tmp_path / "xia.zip", "w") as archive:
        archive.writestr("lab/91_bytes.ipynb", b"")
        archive.writestr("lab/bytes.ipynb", b"x")
    found = submission.find(tmp_path, ["91_bytes"])
    assert found.of_no_lab == ["xia/lab/bytes.ipynb", "zoe/b.ipynb and 1 more"]
    empty = "The file is empty (0 bytes): probably the upload failed."
    assert [one.notes for name in ("xia", "yan") for one in found.notebooks[name]] == [(empty,)] * 2


def test_a_list_of_names_has_an_end():
    assert submission.named(["a", "b\n"]) == "a, b\\n"
    listed = submission.named([f"s{k}" for k in range(25)])
    assert listed.startswith("s0, s1, ")
    assert listed.endswith("s19 and 5 more")


def test_of_an_archive_only_what_counts_is_in_memory(tmp_path, monkeypatch):
    """A small archive with many large notebooks does not fill the memory of the grader."""
    size = 1_000_000
    monkeypatch.setattr(submission, "MOST_BYTES", size)
    with zipfile.ZipFile(tmp_path / "victor.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(30):
            archive.writestr(f"{number:02}/91_bytes.ipynb", b" " * size)
    tracemalloc.start()
    try:
        found = submission.find(tmp_path, ["91_bytes"])
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    ((one,),) = found.notebooks.values()
    assert (one.place, len(one.data)) == ("00/91_bytes.ipynb", size)
    assert most < 5 * size


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA])
def test_a_damaged_notebook_in_an_archive_costs_that_notebook(tmp_path, method):
    path = tmp_path / "walter.zip"
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.writestr("91_bytes.ipynb", bytes(range(256)) * 20)
        archive.writestr("92_relay.ipynb", b"whole")
        start = archive.getinfo("91_bytes.ipynb").header_offset + 30 + len("91_bytes.ipynb")
    data = bytearray(path.read_bytes())
    data[start + 9 : start + 40] = b"\xff" * 31
    path.write_bytes(data)
    found = submission.find(tmp_path, ["91_bytes", "92_relay"]).notebooks["walter"]
    assert [(one.data, *one.notes) for one in found] == [
        (b"", "The file is damaged in the archive, or encrypted."),
        (b"whole",),
    ]


def test_a_folder_that_cannot_be_graded_is_named(tmp_path):
    with pytest.raises(WorkbookError, match="No such file"):
        submission.find(tmp_path / "nowhere", [])
    with pytest.raises(WorkbookError, match="Nobody is in"):
        submission.find(tmp_path, [])
    (tmp_path / "alice").mkdir()
    (tmp_path / "alice.zip").write_bytes(b"")
    with pytest.raises(WorkbookError, match="a folder and a zip file of 'alice'"):
        submission.find(tmp_path, [])


@given(st.text(min_size=1, max_size=80))
def test_a_name_of_a_student_makes_a_plain_file_name(name):
    plain = submission.file_name(name)
    assert set(plain) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.@-")
    assert plain.strip(".")
    assert len(plain) < 80
    assert plain[0] not in ".-"


@given(st.lists(st.text(min_size=1, max_size=9), unique=True))
def test_two_students_have_two_file_names(names):
    assert len(set(map(submission.file_name, names))) == len(names)


@given(
    st.binary(max_size=200)
    | JSON.map(lambda tree: json.dumps({"nbformat": 4, "cells": tree}).encode())
)
def test_reading_answers_never_fails(data):
    answers = submission.read_answers(data, ["q1"])
    assert answers.unreadable or isinstance(answers.sources, dict)


# --- a class -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    return cases.make_course(tmp_path_factory.mktemp("course"))


def hand_in(folder, lab, student, data):
    path = folder / student / f"{lab}.ipynb"
    path.parent.mkdir(parents=True)
    path.write_bytes(data)


def one_answer(blank, answer):
    notebook = json.loads(blank)
    next(cell for cell in notebook["cells"] if cell["id"] == "q1")["source"] = answer
    return json.dumps(notebook).encode()


def blank_of(course, lab):
    return (course / "labs" / lab / f"{lab}.ipynb").read_bytes()


WALLS = [f"wall-{name}" for name in cases.WALLS]


@pytest.fixture(scope="module")
def graded(course, tmp_path_factory):
    """Everybody, graded once; the folder of the results."""
    folder, out = tmp_path_factory.mktemp("submissions"), tmp_path_factory.mktemp("out")
    blank = blank_of(course, "91_bytes")
    with socket.create_server(("127.0.0.1", 0)) as server, abstract_server(server):
        port = server.getsockname()[1]
        for case in [*cases.CASES, *cases.walls(course, ROOT, port)]:
            hand_in(folder, "91_bytes", case.name, case.data(blank))
        right = cases.Case("right").data(blank)
        for name in cases.NAMES:
            hand_in(folder, "91_bytes", name, right)
        for lab, answers in (("92_relay", cases.RELAY), ("93_relax", cases.RELAX)):
            for name, (answer, _) in answers.items():
                data = one_answer(blank_of(course, lab), answer)
                hand_in(folder, lab, f"{lab[3:]}-{name}", data)
        (folder / "link").mkdir()
        (folder / "link" / "91_bytes.ipynb").symlink_to(
            course / "solutions" / "91_bytes" / "91_bytes.ipynb"
        )
        cases.write_zip(folder / "zipped.zip", right)
        report.write(grade_class(course, folder, out, secret=SECRET, pool=Threads(4)), out)
    return out


def abstract_server(server):
    """A Unix socket with an abstract name, which only a network namespace keeps apart."""
    listening = socket.socket(socket.AF_UNIX)
    listening.bind("\0" + str(server.getsockname()[1]))
    listening.listen()
    return listening


def result(out, student, lab="91_bytes"):
    path = out / "results" / submission.file_name(student) / f"{lab}.json"
    return json.loads(path.read_text())


def points(record):
    return {v["question"]: v["points"] for v in record["questions"] if v["state"] != "by hand"}


@needs_sandbox
@pytest.mark.parametrize("case", cases.CASES, ids=lambda case: case.name)
def test_a_submission_gets_what_it_deserves(graded, case):
    record = result(graded, case.name)
    assert points(record) == case.expected()
    lost = next((v for v in record["questions"] if v["points"] < v["of"]), None)
    if case.says:
        said = [check["feedback"] for check in lost["checks"]]
        assert any(case.says in text for text in said), said
    if case.state:
        assert lost["state"] == case.state


@needs_sandbox
@pytest.mark.parametrize("name", WALLS)
def test_a_wall_of_the_sandbox_stands(graded, name):
    assert points(result(graded, name)) == cases.FULL


@needs_sandbox
@pytest.mark.parametrize("name", cases.RELAY)
def test_a_relay_answer_is_rebuilt_without_its_code(graded, name):
    assert points(result(graded, f"relay-{name}", "92_relay")) == {"q1": cases.RELAY[name][1]}


@needs_sandbox
@pytest.mark.parametrize("name", cases.RELAX)
def test_a_relax_answer_is_rebuilt_of_operators_alone(graded, name):
    assert points(result(graded, f"relax-{name}", "93_relax")) == {"q1": cases.RELAX[name][1]}


@needs_sandbox
def test_a_link_to_the_solution_is_not_followed(graded):
    record = result(graded, "link")
    assert record["points"] == 0
    assert record["notes"] == ["The file is a link."]


@needs_sandbox
def test_a_name_harms_nothing(graded):
    assert points(result(graded, "zipped")) == cases.FULL
    for name in cases.NAMES:
        assert points(result(graded, name)) == cases.FULL
    inside = {path.resolve().relative_to(graded.resolve()).parts[0] for path in graded.rglob("*")}
    assert inside == {
        "results", "feedback", "oracles", "grades.csv", "canvas.csv", "moodle.csv",
        "summary.html", "summary.json", "variants",
    }  # fmt: skip
    with (graded / "grades.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert all(row["student"][0] not in "=+-@" for row in rows)
    assert (
        sum(
            float(row["points"])
            for row in rows
            if row["student"] == "Zoë Ångström 李" and row["points"]
        )
        == 8
    )
    assert {row["points"] for row in rows if row["question"] == "q5"} == {""}


class Tags(HTMLParser):
    """The elements and attributes of a page."""

    def __init__(self, text):
        super().__init__()
        self.found, self.links = set(), set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.found.add((tag, *sorted(name for name, _ in attrs)))
        self.links |= {value for name, value in attrs if name == "href"}


@needs_sandbox
def test_no_submission_scripts_a_page(graded):
    pages = [*graded.glob("feedback/*.html"), graded / "summary.html"]
    assert len(pages) > len(cases.CASES)
    ours = {
        ("html", "lang"), ("head",), ("meta", "charset"), ("meta", "content", "http-equiv"),
        ("meta", "content", "name"), ("title",), ("style",), ("body",), ("h1",), ("h2",), ("h3",),
        ("p",), ("table",), ("caption",), ("tr",), ("th",), ("td",),
        ("a", "href"),
    }  # fmt: skip
    for page in pages:
        tags = Tags(page.read_text(encoding="utf-8"))
        assert tags.found <= ours, page
        assert tags.links == (
            {f"feedback/{feedback.name}" for feedback in graded.glob("feedback/*.html")}
            if page.name == "summary.html"
            else set()
        )


@needs_sandbox
def test_feedback_holds_neither_inputs_nor_expected_values(graded):
    (oracle,) = graded.glob("oracles/91_bytes-*.json")
    checked = [check for checks in json.loads(oracle.read_text()).values() for check in checks]
    secrets = {check["expected"] for check in checked if len(check["expected"]) > 3}
    secrets.add(str(10**30))
    assert len(secrets) > 3
    for page in graded.glob("feedback/*.html"):
        text = page.read_text(encoding="utf-8")
        assert not [secret for secret in secrets if secret in text], page


@needs_sandbox
def test_the_summary_counts_what_happened(graded):
    row = json.loads((graded / "summary.json").read_text())["labs"]["92_relay"]["q1"]
    assert row["handed in"] == row["attempted"] == len(cases.RELAY)
    assert row["points"] == sum(points for _, points in cases.RELAY.values())
    assert row["kinds"]["right"] == 5
    assert row["per cent"] == round(100 * row["points"] / (row["handed in"] * row["of"]), 1)


@needs_sandbox
def test_the_summary_names_who_ended_strangely(graded):
    rows = json.loads((graded / "summary.json").read_text())["look at these"]
    found = {(row["student"], row["kind"]): (row["questions"], row["what"]) for row in rows}
    four = ["q1", "q2", "q3", "q4"]
    empty = "The file is empty (0 bytes): probably the upload failed."
    assert found["empty", "unreadable"] == (four, empty)
    assert found["not-json", "unreadable"] == (
        four, "The file is not a notebook: it is not JSON."
    )  # fmt: skip
    assert found["link", "unreadable"] == (four, "The file is a link.")
    assert found["missing-cell", "missing"] == (["q4"], "The answer cell is missing.")
    assert "SIGABRT" in found["abort", "ended"][1]
    assert "did not end" in found["harmful-q1-only", "time"][1]
    assert "and no others" in found["name-of-another-cell", "error"][1]
    students = {row["student"] for row in rows}
    assert not students & {
        "right", "blank-q4", "blank-q2", "a-text-for-a-number", "returns-nothing",
        "inputs-in-an-error", *cases.NAMES,
    }  # fmt: skip
    page = (graded / "summary.html").read_text(encoding="utf-8")
    assert '<td><a href="feedback/empty.html">empty</a></td><td>91_bytes</td><td>q1' in page
    assert page.index("Look at these yourself") < page.index("Points</caption>")


def test_points_are_marked_where_no_answer_was_run():
    def record(student, points, *states):
        verdicts = [
            {"question": f"q{k}", "state": state, "points": points / 2, "of": 4, "checks": []}
            for k, state in enumerate(states)
        ]
        verdicts.append({"question": "q9", "state": "by hand", "points": 0, "of": 3, "checks": []})
        return {"student": student, "lab": "91_bytes", "points": points, "of": 11, "notes": [],
                "questions": verdicts}  # fmt: skip

    students = {
        "ada": (5, "graded", "graded"),
        "bob": (0, "graded", "not attempted"),
        "eve": (0, "unreadable", "unreadable"),
        "kim": (0, "not attempted", "not attempted"),
    }
    records = [record(name, *rest) for name, rest in students.items()]
    graded = cohort.Class(records, [*students, "zoe"], ["a.ipynb"], ["kim/lab.ipynb"])
    page = report.summary_page(graded)
    cells = ["5", "0", "0 (unreadable)", "0 (not attempted)", "-"]
    for name, cell in zip(graded.students, cells, strict=True):
        assert f'<tr><td><a href="feedback/{name}.html">{name}</a></td><td>{cell}</td></tr>' in page
    assert "<td>q0</td><td>2 of 4</td><td>0.625</td><td>16</td><td>4</td>" in page
    assert "<td>q9</td><td>0 of 4</td><td>-</td><td>-</td><td>3</td>" in page
    assert "Not graded, its name begins with no lab&#x27;s name: kim/lab.ipynb." in page
    assert "Loose in SUBMISSIONS, belongs to nobody: a.ipynb." in page
    assert "Without a notebook: zoe." in page


@needs_sandbox
def test_nobody_is_left(graded):
    """No process of a sandbox outlives the grading."""
    mine = os.getpid()
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
            line = (path.parent / "cmdline").read_bytes()
        except OSError:
            continue
        assert not (int(fields[1]) == mine and b"helpers.grading.runner" in line)


@needs_sandbox
def test_too_much_output_is_not_kept_for_the_next_request():
    """The buffer of the parent, as the next child finds it, is empty."""
    flood = """
import os, sys
frame = sys._getframe()
while "writer" not in frame.f_locals: frame = frame.f_back
while True: os.write(frame.f_locals["writer"], b"MARK" * 10000)"""
    look = """
import sys
frame = sys._getframe()
while "_buffer" not in frame.f_globals: frame = frame.f_back
found = bytes(frame.f_globals["_buffer"]).count(b"MARK"), len(frame.f_globals["_buffer"])"""
    with sandbox.Sandbox(()) as box:
        asked = {"question": "q1", "probe": "found", "inputs": {}}
        assert box.ask({**asked, "answers": [["q1", flood]]}, 5).status == "size"
        assert box.usable
        last = box.ask({**asked, "answers": [["q1", look]]}, 5).last
    assert encoding.loads(last["value"]) == [0, runner.MOST_BYTES + 1]


# --- again and again -----------------------------------------------------------------------------

SOME = ["right", "a-known-mistake", "abort", "blank-q4", "orphan"]


@pytest.fixture
def some(course, tmp_path):
    """A small class."""
    folder = tmp_path / "submissions"
    for case in cases.CASES:
        if case.name in SOME:
            hand_in(folder, "91_bytes", case.name, case.data(blank_of(course, "91_bytes")))
    return folder


def written(out):
    """All that grading wrote, but the times."""
    files = (
        path for path in sorted(out.rglob("*")) if path.is_file() and path.suffix != ".seconds"
    )
    return {path.relative_to(out).as_posix(): path.read_bytes() for path in files}


def results(out, students=SOME):
    """What is kept of some students: the same bytes, however it was made."""
    return {name: (out / "results" / name / "91_bytes.json").read_bytes() for name in students}


def grade(course, some, out, pool=None):
    report.write(grade_class(course, some, out, secret=SECRET, pool=pool), out)
    return written(out)


@needs_sandbox
def test_killed_at_any_moment_it_continues_and_loses_nothing(course, some, graded, tmp_path):
    code = (
        "import sys; from pathlib import Path\n"
        "from helpers.grading.cohort import *\n"
        f"grade_class(Path({str(course)!r}), Path({str(some)!r}), Path(sys.argv[1]),"
        f" secret={SECRET!r}, pool=Threads(1))"
    )
    out = tmp_path / "killed"
    kept, environment = {}, {**os.environ, "PYTHONPATH": str(ROOT)}
    for wanted in (1, 3):
        process = subprocess.Popen([sys.executable, "-c", code, str(out)], env=environment)
        while len(list(out.glob("results/*/*.json"))) < wanted and process.poll() is None:
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.wait()
        for path, (data, when) in kept.items():
            assert (path.read_bytes(), path.stat().st_mtime_ns) == (data, when)
        found = out.glob("results/*/*.json")
        kept = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in found}
        assert len(kept) >= wanted
    grade(course, some, out)
    assert results(out) == results(graded)
    for path, (data, when) in kept.items():
        assert (path.read_bytes(), path.stat().st_mtime_ns) == (data, when)


@needs_sandbox
def test_a_changed_submission_or_secret_is_graded_again(course, some, tmp_path):
    out = tmp_path / "out"
    before = grade(course, some, out)
    told = []
    grade_class(course, some, out, secret=SECRET, progress=lambda *numbers: told.append(numbers))
    assert told == [(len(SOME), len(SOME))]
    shutil.copy(some / "right" / "91_bytes.ipynb", some / "abort" / "91_bytes.ipynb")
    after = grade(course, some, out)
    changed = {name for name in after if after[name] != before[name]}
    assert changed == {
        "results/abort/91_bytes.json", "feedback/abort.html",
        "grades.csv", "canvas.csv", "moodle.csv", "summary.html", "summary.json",
    }  # fmt: skip
    told = []
    grade_class(course, some, out, secret=b"other", progress=lambda *numbers: told.append(numbers))
    assert told[0] == (0, len(SOME))


@needs_sandbox
@pytest.mark.parametrize(
    ("first", "then", "said"),
    [({}, None, "with VARIANTS=1: add it"), (None, {}, "without VARIANTS=1: leave it out")],
)
def test_forgotten_variants_change_no_result(course, some, tmp_path, first, then, said):
    class Stopped:
        def run(self, tasks):
            raise KeyboardInterrupt

    out = tmp_path / "out"
    with pytest.raises(KeyboardInterrupt):  # nothing is graded yet: the other way may follow
        grade_class(course, some, out, secret=SECRET, variants=then, pool=Stopped())
    for name in SOME[1:]:
        shutil.rmtree(some / name)
    grade_class(course, some, out, secret=SECRET, variants=first, pool=Threads(1))
    before = written(out)
    with pytest.raises(WorkbookError, match=f"graded {said}, or grade into another folder"):
        grade_class(course, some, out, secret=SECRET, variants=then, pool=Stopped())
    assert written(out) == before
    grade_class(course, some, out, secret=SECRET, variants=first, pool=Stopped())


@needs_sandbox
def test_a_cluster_gives_the_same_bytes(course, some, graded, tmp_path):
    distributed = pytest.importorskip("distributed", reason="dask.distributed is not installed")
    local = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None, local_directory=str(tmp_path)
    )
    with local, cohort.Cluster(local.scheduler_address) as pool:
        grade(course, some, tmp_path / "cluster", pool)
    assert results(tmp_path / "cluster") == results(graded)


def test_no_scheduler_is_told_in_a_sentence(monkeypatch):
    distributed = pytest.importorskip("distributed", reason="dask.distributed is not installed")
    monkeypatch.setattr(distributed, "Client", lambda *a, **k: (_ for _ in ()).throw(OSError("x")))
    with pytest.raises(WorkbookError, match="No dask scheduler answers at tcp://127"):
        cohort.Cluster("tcp://127.0.0.1:1")


def test_a_worker_that_lives_on_has_each_time_the_desk_that_is_asked_for(course, monkeypatch):
    """One grading may give the sandbox up; the next one on the same worker has not."""
    made, closed = [], []

    class FakeDesk:
        def __init__(self, *, unsafe):
            self.unsafe = unsafe
            made.append(unsafe)

        def grade(self, lab, data, known, variant):
            return [], (f"unsafe: {self.unsafe}",)

        def close(self):
            closed.append(self.unsafe)

    monkeypatch.setattr(cohort, "Desk", FakeDesk)
    lab = next(lab for lab in cohort.find_labs(course) if lab.name == "91_bytes")
    for unsafe in (True, False):
        task = cohort.Task(str(course), lab.name, lab.digest, SECRET, unsafe, b"", {})
        said = [cohort.work(task)["notes"] for _ in range(2)]
        assert said == [[f"unsafe: {unsafe}"]] * 2
        cohort.close_desks()
    assert made == closed == [True, False]
    for unsafe in (True, False):  # two gradings at once
        task = cohort.Task(str(course), lab.name, lab.digest, SECRET, unsafe, b"", {})
        assert cohort.work(task)["notes"] == [f"unsafe: {unsafe}"]
    cohort.close_desks()
    assert sorted(closed) == [False, False, True, True]


# --- without a sandbox, and the command ----------------------------------------------------------


def test_without_bubblewrap_it_refuses(course, some, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    sandbox.sandbox_problem.cache_clear()
    try:
        with pytest.raises(WorkbookError, match=r"there is no `bwrap` here.*UNSAFE=1"):
            grade_class(course, some, tmp_path / "out", secret=SECRET)
    finally:
        sandbox.sandbox_problem.cache_clear()
    assert not (tmp_path / "out").exists()


def test_unsafe_grades_and_says_what_is_given_up(course, some, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(command, "ROOT", course)
    shutil.rmtree(some / "orphan")
    assert command.main([str(some), str(tmp_path / "out"), "--unsafe", "--jobs", "2"]) == 0
    printed = capsys.readouterr()
    assert "can read, change and delete every file" in printed.err
    assert "4 notebooks of 4 students" in printed.out
    known = {case.name: case.expected() for case in cases.CASES}
    for path in some.iterdir():
        assert points(result(tmp_path / "out", path.name)) == known[path.name]


def test_the_command_refuses_what_cannot_be_meant(course, some, tmp_path, monkeypatch):
    monkeypatch.setattr(command, "ROOT", course)
    short = tmp_path / "secret"
    short.write_text("1234\n")
    with pytest.raises(WorkbookError, match="shorter than 16 bytes"):
        command.main([str(some), str(tmp_path / "out"), "--secret", str(short)])
    with pytest.raises(WorkbookError, match="cannot lie among the submissions"):
        command.main([str(some), str(some / "out")])
    with pytest.raises(WorkbookError, match="cannot be read"):
        command.main([str(some), str(tmp_path / "out"), "--secret", str(tmp_path / "none")])


@needs_sandbox
def test_where_results_cannot_be_written_it_says_so(course, some, tmp_path):
    (tmp_path / "file").write_text("in the way")
    for out in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(WorkbookError, match=r"cannot be written: (File exists|Not a dir)"):
            grade_class(course, some, out, secret=SECRET)
    out = tmp_path / "out"
    (out / "grades.csv" / "x").mkdir(parents=True)
    with pytest.raises(WorkbookError, match=r"grades.csv cannot be written: Is a dir"):
        report.write(cohort.Class([], [], []), out)


@pytest.mark.parametrize("jobs", [0, -1])
def test_a_number_of_jobs_is_one_or_more(jobs):
    with pytest.raises(WorkbookError, match=f"JOBS is a whole number, 1 or more, not {jobs}"):
        Threads(jobs)


@pytest.mark.skipif(not shutil.which("make"), reason="make is not installed here")
@pytest.mark.parametrize(
    ("given", "unsafe"), [("", False), ("0", False), ("no", False), ("1", True)]
)
def test_make_gives_the_sandbox_up_for_one_value_only(given, unsafe):
    command = ["make", "-n", "grade", "SUBMISSIONS=a b", "OUT=c d", f"UNSAFE={given}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert '-m helpers.grading "a b" "c d"' in done.stdout
    assert ("--unsafe" in done.stdout) == unsafe


@needs_sandbox
def test_a_reference_that_fails_its_own_check_is_named(course, tmp_path, some):
    broken = tmp_path / "course"
    shutil.copytree(course, broken)
    path = broken / "solutions" / "91_bytes" / "checks.py"
    path.write_text(path.read_text().replace("lab.twice(4) / 2", "lab.twice(4)"))
    with pytest.raises(WorkbookError, match=r"Lab 91_bytes, q3, check 0 .*does not pass"):
        grade_class(broken, some, tmp_path / "out", secret=SECRET)


def test_the_filter_on_system_calls_is_the_kernels(tmp_path):
    """The numbers of the refused calls, by the C library's own table."""
    from helpers.grading import seccomp

    header = Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h")
    if not header.exists():
        pytest.skip("the kernel's headers are not installed here")
    numbers = dict(
        line.split()[1:3]
        for line in header.read_text().splitlines()
        if "__NR_" in line and len(line.split()) == 3
    )
    known = {
        name: int(numbers[f"__NR_{name}"]) for name in seccomp.REFUSED if f"__NR_{name}" in numbers
    }
    assert len(known) > 40
    assert {name: seccomp.REFUSED[name] for name in known} == known
