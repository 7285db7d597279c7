"""The form of quiz questions: driven in Python, and its static form read as HTML."""

from html.parser import HTMLParser

import ipywidgets
import nbformat
import pytest

from helpers import quiz, quiz_record
from helpers.kernels import ROOT
from helpers.quiz import Option, Question, Slip
from helpers.widgets import frame, quiz_form

EVIL = '<img src=x onerror="alert(1)"> & <script>alert(2)</script>'
SINGLE = Question(
    id="01-1",
    kind="single",
    question=f"What is `a < b`? {EVIL}\n\n    x = {EVIL}\n\nChoose.",
    rests_on="cell",
    difficulty="easy",
    options=(
        Option(text=f"A name {EVIL}", why=f"No name {EVIL}."),
        Option(text="A `comparison`", why="It compares.", right=True),
    ),
    often_said="It is a tag. It is not.",
)
MULTIPLE = Question(
    id="01-2",
    kind="multiple",
    question="Which are even?",
    rests_on="cell",
    difficulty="easy",
    options=(
        Option(text="2", why="Twice 1.", right=True),
        Option(text="3", why="It is odd."),
        Option(text="4", why="Twice 2.", right=True),
    ),
)
NUMBER = Question(
    id="01-3",
    kind="number",
    question="What does it print?",
    code="if 1 < 2:\n    print(1024)",
    rests_on="cell",
    difficulty="hard",
    answer=1024,
    unit="bytes",
    why="It prints it.",
    slips=(Slip(value=2, why="That is the bound."),),
)
ALL = [SINGLE, MULTIPLE, NUMBER]


@pytest.fixture(autouse=True)
def record(tmp_path, monkeypatch):
    monkeypatch.setattr(quiz_record, "FILE", tmp_path / "record.json")
    return quiz_record.FILE


class Tags(HTMLParser):
    """The tags of a text, and what is read outside of and inside ``details``."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.open, self.shown, self.folded = set(), [], "", ""
        self.feed(text)
        assert not self.open, self.open

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        if tag not in ("br", "hr"):
            self.open.append(tag)
        assert not any(name.startswith("on") for name, _ in attrs)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "details" in self.open and "summary" not in self.open:
            self.folded += data
        else:
            self.shown += data


class Part:
    """The controls of one question, and what its status says."""

    def __init__(self, box):
        self.text, *self.controls, self.button, self.said = box.children

    def check(self):
        self.button.click()
        assert 'role="status" aria-live="polite"' in self.said.value
        return Tags(self.said.value).shown


@pytest.fixture
def parts():
    box = quiz_form.form(ALL)
    _, *questions, count = box.children
    return [*map(Part, questions), count]


def test_each_kind_has_its_controls(parts):
    single, multiple, number, _ = parts
    (radio,) = single.controls
    assert isinstance(radio, ipywidgets.RadioButtons)
    assert radio.value is None
    assert radio.options[1] == ("B. A comparison", "B")
    assert all(isinstance(box, ipywidgets.Checkbox) and not box.value for box in multiple.controls)
    (field,) = number.controls
    assert isinstance(field, ipywidgets.Text)
    assert field.description == "Your number (in bytes):"
    assert [p.button.description for p in parts[:3]] == ["Check 01-1", "Check 01-2", "Check 01-3"]


def test_nothing_is_revealed_before_an_answer(parts):
    for part in parts[:3]:
        assert Tags(part.said.value).shown == ""
        assert part.check().endswith("has no answer yet.")
        for secret in ("compares", "odd", "Twice", "prints it", "Often"):
            assert secret not in part.text.value + part.said.value


def test_only_what_was_chosen_explains_itself(parts, record):
    single, multiple, number, count = parts
    single.controls[0].value = "A"
    assert "Not yet" in single.check()
    assert "compares" not in single.said.value
    assert "Often said" not in single.said.value
    assert not quiz_record.load()["01-1"].last
    single.controls[0].value = "B"
    assert "Right." in single.check()
    assert "Often said: It is a tag." in Tags(single.said.value).shown
    assert quiz_record.load()["01-1"] == quiz_record.Record(right=1, wrong=1, last=True)
    assert "1 of 3" in count.value
    multiple.controls[0].value = True
    assert "1 more is right" in multiple.check()
    assert "odd" not in multiple.said.value
    multiple.controls[2].value = True
    assert "Right." in multiple.check()
    number.controls[0].value = "2"
    assert "That is the bound" in number.check()
    number.controls[0].value = "many"
    assert "must be a number" in number.check()
    number.controls[0].value = "1,024"
    assert "is right" in number.check()
    assert "3 of 3" in count.value


def test_enter_in_the_field_of_a_number_checks(parts):
    number = parts[2]
    number.controls[0].value = "1024"
    number.controls[0]._handle_custom_msg({"event": "submit"}, [])
    assert "is right" in number.said.value


def test_the_static_form_folds_the_answers():
    tags = Tags(quiz_form.static(ALL))
    for text in ("A comparison", "Which are even?", "print(1024)", "x = <img"):
        assert text in tags.shown
    for secret in ("It compares.", "It is odd.", "1,024", "It prints it.", "Often said", "Right"):
        assert secret in tags.folded
        assert secret not in tags.shown


def test_no_text_of_a_bank_becomes_a_tag(parts):
    parts[0].controls[0].value = "A"
    parts[0].check()
    for made in (quiz_form.static(ALL), *(part.text.value + part.said.value for part in parts[:3])):
        assert not Tags(made).tags & {"img", "script"}


def test_one_display_carries_the_form_and_the_static_form(monkeypatch):
    shown = []
    monkeypatch.setattr(frame, "display", lambda data, **_: shown.append(data))
    quiz_form.show(ALL)
    (data,) = shown
    assert data["text/plain"] == quiz.as_text(ALL)
    assert data["text/html"] == quiz_form.static(ALL)
    assert "application/vnd.jupyter.widget-view+json" in data


@pytest.mark.parametrize("path", sorted(quiz.QUIZ.glob("*.yaml")), ids=lambda path: path.stem)
def test_the_stored_page_has_the_form_of_its_bank(path):
    """A page is built again when its bank has changed; nbval would say so much later."""
    notebook = nbformat.read(ROOT / "notebooks" / f"{path.stem}.ipynb", 4)
    (cell,) = (cell for cell in notebook.cells if cell.id == "quiz")
    (output,) = cell.outputs
    bank = quiz.load(path)
    assert output.data["text/plain"] == quiz.as_text(bank)
    assert output.data["text/html"] == quiz_form.static(bank)
