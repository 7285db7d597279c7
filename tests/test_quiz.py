"""Questions, predictions and the rules of a bank; all banks of the workbook are held to them."""

from pathlib import Path

import numpy as np
import pytest
import yaml
from hypothesis import assume, given
from hypothesis import strategies as st

from helpers import quiz, quiz_record
from helpers.errors import WorkbookError
from helpers.kernels import ROOT
from tools.pages import find_pages, read_page

BANK = """\
- id: 01-1
  kind: single
  difficulty: easy
  rests_on: fused-kernels
  question: What does fusion save?
  options:
    - text: Arithmetic
      why: The kernel does the same arithmetic.
    - text: Trips to memory
      right: true
      why: The intermediate tensor is never written.
    - text: Compile time
      why: Compiling takes as long.
- id: 01-2
  kind: multiple
  difficulty: medium
  rests_on: fused-kernels
  question: Which are injective?
  options:
    - {text: transpose, right: true, why: One output element from one input element.}
    - {text: sum, why: It is a reduction.}
    - {text: reshape, right: true, why: It moves elements.}
- id: 01-3
  kind: number
  difficulty: hard
  rests_on: fused-kernels
  question: How many bytes?
  answer: 1024
  tolerance: 4
  unit: bytes
  why: Four times 256.
  slips:
    - {value: 512, why: That counts the reads only.}
"""


@pytest.fixture(autouse=True)
def record(tmp_path, monkeypatch):
    """A record of its own for each test, so that none touches the learner's."""
    monkeypatch.setattr(quiz_record, "FILE", tmp_path / "record.json")
    return quiz_record.FILE


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "01_tiny.yaml").write_text(BANK)
    return tmp_path


@pytest.fixture
def said(folder, capsys):
    """What ``quiz.ask`` prints."""

    def ask(*arguments):
        quiz.ask(*arguments, folder=folder)
        return capsys.readouterr().out

    return ask


def test_a_question_shows_its_options_and_no_answer(said):
    assert said("01-1") == (
        "Question 01-1. What does fusion save?\n"
        "\n"
        "  A  Arithmetic\n"
        "  B  Trips to memory\n"
        "  C  Compile time\n"
        "\n"
        'Answer with one letter: quiz.ask("01-1", "B")\n'
    )
    assert "1024" not in said("01-3")
    assert "in bytes" in said("01-3")


def test_a_lesson_shows_all_of_its_questions(said):
    text = said("01")
    assert [line.split()[1] for line in text.splitlines() if line.startswith("Question ")] == [
        "01-1.",
        "01-2.",
        "01-3.",
    ]
    assert said("01-2").strip() in text
    for never in ("reduction", "1024", "wrong", "right)"):
        assert never not in text


def test_code_is_shown_as_it_stands(tmp_path, capsys):
    bank = yaml.safe_load(BANK)
    bank[2] |= {"question": "What does it print?", "code": "for i in range(2):\n    print(i)\n"}
    (tmp_path / "01_tiny.yaml").write_text(yaml.safe_dump(bank))
    quiz.ask("01-3", folder=tmp_path)
    assert "\n    for i in range(2):\n        print(i)\n" in capsys.readouterr().out


def test_what_is_often_said_comes_with_the_right_answer_only(tmp_path, capsys):
    bank = yaml.safe_load(BANK)
    bank[0]["often_said"] = "Fusion saves arithmetic. It does not: see the cell."
    bank[2]["often_said"] = "It is 2048. That counts twice."
    (tmp_path / "01_tiny.yaml").write_text(yaml.safe_dump(bank))
    for question, wrong, right in (("01-1", "A", "B"), ("01-3", 512, 1024)):
        quiz.ask(question, wrong, folder=tmp_path)
        assert "Often said" not in capsys.readouterr().out
        quiz.ask(question, right, folder=tmp_path)
        assert "Often said: " in capsys.readouterr().out


def test_an_answer_is_remembered(said, record):
    said("01-1", "A")
    said("01-1", "B")
    said("01-3", 5)
    assert quiz_record.load(record) == {
        "01-1": quiz_record.Record(right=1, wrong=1, last=True),
        "01-3": quiz_record.Record(right=0, wrong=1, last=False),
    }


@pytest.mark.parametrize("text", ["", "[1]", '{"01-1": 3}', '{"01-1": {"colour": 1}}', "\x00"])
def test_a_damaged_record_is_no_obstacle(said, record, text):
    record.write_text(text)
    assert "Right." in said("01-1", "B")
    assert quiz_record.load(record)["01-1"].last


def test_a_record_that_cannot_be_written_is_no_obstacle(said, monkeypatch, tmp_path):
    monkeypatch.setattr(quiz_record, "FILE", tmp_path / "missing" / "record.json")
    assert "Right." in said("01-1", "B")


def test_all_reasons_are_given_for_a_question_that_was_given_up(folder):
    single, multiple, number = quiz.lesson("01", folder)
    assert quiz.explain(single).text.splitlines()[0] == "Right is B."
    assert quiz.explain(multiple).said == "Right are A, C."
    assert len(quiz.explain(multiple).reasons) == 3
    assert quiz.explain(number).text == "The answer is 1,024 bytes.\n  Four times 256."


@pytest.mark.parametrize(
    ("answer", "lines"),
    [
        ("B", ["Question 01-1: Right.", "  B  (right) The intermediate tensor is never written."]),
        ("a", ["Question 01-1: Not yet.", "  A  (wrong) The kernel does the same arithmetic."]),
    ],
)
def test_the_chosen_option_explains_itself(said, answer, lines):
    assert said("01-1", answer).splitlines() == lines


@pytest.mark.parametrize("answer", ["AC", "a, c", "C and A", ["A", "C"], ("C", "A"), {"A", "C"}])
def test_several_letters_can_be_given_in_any_way(said, answer):
    assert said("01-2", answer).startswith("Question 01-2: Right.\n  A  (right)")


def test_part_of_several_right_options(said):
    assert said("01-2", "AB").splitlines() == [
        "Question 01-2: Partly right.",
        "  A  (right) One output element from one input element.",
        "  B  (wrong) It is a reduction.",
        "  1 more is right.",
    ]
    assert said("01-2", "B").startswith("Question 01-2: Not yet.")
    assert said("01-2", "ABC").startswith("Question 01-2: Partly right.")


@pytest.mark.parametrize("answer", [1024, "1,024", 1028.0, np.int64(1020), "1024"])
def test_a_number_within_the_tolerance_is_right(said, answer):
    text = said("01-3", answer)
    assert "is right" in text
    assert "Four times 256." in text


def test_a_wrong_number(said):
    assert "reads only" in said("01-3", 512)
    assert said("01-3", 2000) == "Question 01-3: 2,000 bytes is too high.\n"
    assert said("01-3", -1) == "Question 01-3: -1 bytes is too low.\n"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("01-9",), 'There is no quiz question "01-9". The nearest is "01-'),
        (("09-1",), 'There is no quiz question "09-1". The nearest is "01-1"'),
        (("fusion",), 'There is no quiz question "fusion"'),
        (("05",), 'There are no questions of lesson "05", only of 01.'),
        (("01", "B"), 'say which one you answer, as in quiz.ask("01-1", "B").'),
        (("01-1", "D"), "Question 01-1 has no option D: its options are A, B, C."),
        (("01-1", "AB"), "answer with one letter"),
        (("01-1", ""), "its options are A, B, C."),
        (("01-1", 2), "its options are A, B, C."),
        (("01-1", "option A"), "not answered by 'option A': its options are A, B, C."),
        (("01-3", 10**400), "must be a number"),
        (("/01-1",), 'There is no quiz question "/01-1"'),
        (("**-1",), 'There is no quiz question "**-1"'),
        (("01-3", "many"), "Question 01-3 must be a number such as 12 or 0.5, not 'many'."),
        (("01-3", True), "must be a number"),
        (("01-3", float("nan")), "must be a number"),
        (("01-3", [1, 2]), "must be a number"),
    ],
)
def test_a_slip_gets_a_sentence(said, arguments, sentence):
    with pytest.raises(WorkbookError) as caught:
        said(*arguments)
    assert sentence in str(caught.value)


def test_a_file_that_is_no_bank_gets_a_sentence(tmp_path):
    for text in ("- id: 01-1", "- [", "12", "- {id: a, kind: b, colour: c}", ""):
        (tmp_path / "01_bad.yaml").write_text(text)
        with pytest.raises(WorkbookError, match=r"01_bad\.yaml cannot be read"):
            quiz.load(tmp_path / "01_bad.yaml")


# --- the rules of a bank ---------------------------------------------------------------------


def faults(tmp_path: Path, change) -> str:
    entries = yaml.safe_load(BANK)
    change(entries)
    (tmp_path / "bank.yaml").write_text(yaml.safe_dump(entries))
    return " ".join(quiz.validate(quiz.load(tmp_path / "bank.yaml"), "01_tiny"))


def test_a_good_bank_has_no_fault(tmp_path):
    assert faults(tmp_path, lambda bank: None) == ""


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda b: b[0].update(id="02-1"), "id is not 01-"),
        (lambda b: b[0].update(id="01-2"), "used twice"),
        (lambda b: b.pop(), "2 questions instead of"),
        (lambda b: b[0].update(kind="choice"), "the kind is 'choice'"),
        (lambda b: b[0].update(difficulty="huge"), "the difficulty is 'huge'"),
        (lambda b: b[0].update(rests_on=""), "rests on"),
        (lambda b: b[0]["options"][0].update(right=True), "2 options are right instead of one"),
        (lambda b: b[0]["options"][1].pop("right"), "0 options are right instead of one"),
        (lambda b: b[0]["options"][2].update(why=" "), "option C has no reason"),
        (lambda b: b[0]["options"][2].update(text="Arithmetic"), "say the same"),
        (lambda b: b[0].update(options=[]), "it has 0 options"),
        (lambda b: b[1]["options"][1].update(right=True), "3 of 3 options are right"),
        (lambda b: b[2].update(answer="many"), "not a number"),
        (lambda b: b[1].update(code="print(1)"), "the kind is single or number"),
        (lambda b: b[1].update(syllabus="X1"), "the syllabus has no question 'X1'"),
        (lambda b: b[1].update(syllabus="P11"), "the syllabus has no question 'P11'"),
        (lambda b: b[2].update(why=""), "gives no reason"),
        (lambda b: b[2]["slips"][0].update(value=1022), "within the tolerance"),
        (lambda b: b[2]["slips"][0].update(why=""), "slip 512 has no reason"),
    ],
)
def test_a_fault_of_a_bank_is_found(tmp_path, change, said):
    assert said in faults(tmp_path, change)


@pytest.mark.parametrize("path", sorted(quiz.QUIZ.glob("*.yaml")), ids=lambda path: path.stem)
def test_every_bank_of_the_workbook(path):
    bank = quiz.load(path)
    assert quiz.validate(bank, path.stem) == []
    (page, *_) = (page for page in find_pages(ROOT, [path.stem]) if page.kind == "lesson")
    named = {cell.id for cell in read_page(page).cells}
    for question in bank:
        assert question.rests_on in named or (ROOT / question.rests_on).is_file(), question.id
    asked = [cell.source for cell in read_page(page).cells if cell.cell_type == "code"]
    assert [code for code in asked if "quiz.ask" in code] == [f'quiz.ask("{path.stem[:2]}")']


def test_the_twenty_questions_of_the_syllabus_are_in_the_banks():
    tags = [
        (question.syllabus, path.stem[:2])
        for path in sorted(quiz.QUIZ.glob("*.yaml"))
        for question in quiz.load(path)
        if question.syllabus
    ]
    names = [name for name, _ in tags]
    assert sorted(names) == sorted(f"{track}{n}" for track in "PE" for n in range(1, 11))
    assert all((name[0] == "P") == (lesson < "08") for name, lesson in tags)


# --- predictions -----------------------------------------------------------------------------


def test_no_prediction_yet(capsys):
    guess = quiz.predict(kernels=None, bytes_moved=None)
    assert capsys.readouterr().out == (
        "kernels: none yet - write a number in place of None and run the cell\n"
        "bytes moved: none yet - write a number in place of None and run the cell\n"
    )
    guess.table(kernels=31, bytes_moved=(1_605_632, "B"))
    assert capsys.readouterr().out.splitlines() == [
        "                 predicted   measured",
        "kernels                  -         31  no prediction yet",
        "bytes moved (B)          -  1,605,632  no prediction yet",
    ]


@pytest.mark.parametrize(
    ("guess", "truth", "remark"),
    [
        (31, 31, "right"),
        ("1,024", np.float64(1000), "close (within 5 %)"),
        (62, 31, "too high by a factor of 2"),
        (8, 32.0, "too low by a factor of 4"),
        (0, 3, "too low by 3"),
        (-2, 3, "too low by 5"),
        (0.5, 0, "too high by 0.5"),
    ],
)
def test_a_prediction_beside_the_measurement(capsys, guess, truth, remark):
    quiz.predict(n=guess).table(n=truth)
    assert capsys.readouterr().out.splitlines()[-1].endswith(f"  {remark}")


@pytest.mark.parametrize("value", ["a few", True, [1], object(), float("inf"), 1j, 10**400])
def test_a_prediction_that_is_no_number_gets_a_sentence(value):
    with pytest.raises(WorkbookError, match="Your prediction of kernels must be a number"):
        quiz.predict(kernels=value)


def test_a_prediction_without_its_name_gets_a_sentence():
    with pytest.raises(WorkbookError, match=r"quiz\.predict\(kernels=12\)"):
        quiz.predict(12)


def test_a_measurement_that_nobody_predicted_gets_a_sentence():
    with pytest.raises(WorkbookError, match="only kernels"):
        quiz.predict(kernels=1).table(bytes=2)


@given(st.integers(-(10**15), 10**15))
def test_a_whole_number_is_read_back_from_its_own_text(value):
    for text in (value, str(value), f"{value:,}", f" {value:_} ", np.int64(value)):
        assert quiz.as_number(text) == value


@given(st.floats(1e-3, 1e6), st.floats(1e-3, 1e6))
def test_a_remark_takes_the_right_side(guess, truth):
    assume(abs(guess - truth) > 0.06 * max(guess, truth))
    assert ("high" in quiz._remark(guess, truth)) == (guess > truth)
