"""The pages of the book that are no notebooks: what they say stands in what they are made from."""

import ast
import re

import pytest

from helpers import quiz
from helpers.kernels import ROOT
from tools import book_pages, build_notebooks, check_notebooks, verified
from tools.book_pages import introduced, observations, stressed, terms
from tools.pages import find_pages

NUMBER = re.compile(r"(?<![\w.])\d+(?:[.,]\d+)*")


@pytest.fixture(scope="module")
def lessons():
    return {lesson.number: lesson for lesson in book_pages.lessons()}


@pytest.fixture(scope="module")
def glossary():
    return terms()


@pytest.fixture(scope="module")
def seen():
    return observations()


@pytest.fixture(scope="module")
def pages():
    return book_pages.pages()


def test_every_page_has_one_title(pages):
    for name, text in pages.items():
        assert len(re.findall(r"^# ", text, re.MULTILINE)) == 1, name


def test_every_link_leads_to_a_heading(pages, lessons):
    anchors = {
        f"notebooks/{lesson.page.name}.ipynb": {
            re.sub(r"[^\w\- ]", "", section.title.lower()).replace(" ", "-")
            for section in lesson.sections
        }
        for lesson in lessons.values()
    }
    links = [link for text in pages.values() for link in re.findall(r"\]\((\S+?)\)", text)]
    assert len(links) > 300
    for link in links:
        path, _, anchor = link.partition("#")
        assert (ROOT / path).exists(), link
        assert not anchor or anchor in anchors[path], link


class TestGlossary:
    def test_has_the_terms_of_the_workbook_once(self, glossary):
        forms = [form.lower() for term in glossary for form in term.forms]
        assert sorted(set(forms)) == sorted(forms)
        assert len(glossary) > 120

    def test_a_term_is_in_the_lesson_that_introduces_it(self, glossary, lessons):
        for term in glossary:
            assert term.occurs(lessons[term.lesson].prose), term.term
            assert introduced(term, lessons[term.lesson])

    def test_no_earlier_lesson_uses_it_but_those_named(self, glossary, lessons):
        for term in glossary:
            before = [lesson for number, lesson in lessons.items() if number < term.lesson]
            uses = [lesson.number for lesson in before if term.occurs(lesson.prose)]
            assert uses == [*term.earlier], term.term

    def test_what_a_lesson_emphasises_is_a_term_or_named_as_stress(self, glossary, lessons):
        forms = {form.lower() for term in glossary for form in term.forms}
        words_of_stress = stressed()
        for number, lesson in lessons.items():
            words = {word for section in lesson.sections for word in section.emphasised}
            known = {
                word
                for word in words
                for form in [word.lower().rstrip(".:,")]
                if {form, form[:-1], form[:-2]} & forms
            }
            assert sorted(words - known) == sorted(words_of_stress[number]), number


class TestObservations:
    def test_quote_the_lesson(self, seen, lessons):
        for row in seen:
            lesson = lessons[row.lesson]
            assert row.belief in lesson.prose, row.belief
            sections = [*lesson.sections]
            behind = sections[sections.index(lesson.section(row.cells[0])) :]
            text = " ".join(section.prose for section in behind)
            for said in row.result:
                assert said in text, said

    def test_rest_on_cells_that_ran(self, seen, lessons):
        for row in seen:
            for name in row.cells:
                cell = lessons[row.lesson].cells[name]
                assert cell.execution_count is not None, (row.lesson, name)
                assert cell.outputs, (row.lesson, name)

    def test_a_number_of_the_result_was_printed(self, seen, lessons):
        for row in seen:
            cells = [lessons[row.lesson].cells[name] for name in row.cells]
            printed = NUMBER.findall(" ".join(map(book_pages._printed, cells)))
            assert {*NUMBER.findall(" ".join(row.result))} <= {*printed}, row.belief

    def test_hold_every_belief_of_the_lessons(self, seen, lessons, pages):
        quoted = re.compile(r"^> (.*(?:\n> .*)*)", re.MULTILINE)
        for number, lesson in lessons.items():
            cells = [c for s in lesson.sections for c in s.cells if c.cell_type == "markdown"]
            found = [text for cell in cells for text in quoted.findall(cell.source)]
            beliefs = {" ".join(text.replace("\n> ", " ").split()) for text in found}
            here = {row.belief for row in seen if row.lesson == number}
            assert beliefs <= here, number
            assert here, number
            for question in quiz.load(quiz.QUIZ / f"{lesson.page.name}.yaml"):
                asked = f"[question {question.id}]" in pages["observations.md"]
                assert asked == bool(question.belief), question.id


def test_porting_has_every_row_that_was_printed(pages, lessons):
    cells = lessons["15"].cells
    printed = cells["porting-table"].outputs[0].text.splitlines()
    rows = re.findall(
        r"Relay `(\S+)`<br>Relax `(\S+)` \| `(\S+)`<br>`(\S+)` \|$", pages["porting.md"], re.M
    )
    pairs = [tuple(line.split()[-2:]) for line in printed]
    assert [*zip(pairs[::2], pairs[1::2], strict=True)] == [
        ((old, a), (new, b)) for old, new, a, b in rows
    ]
    assert len(rows) > 10
    marks = ast.literal_eval(cells["then-and-now"].outputs[0].text.splitlines()[-1])
    for mark, count in marks.items():
        assert pages["porting.md"].count(f" {mark} |") == count


def test_measured_holds_every_output_of_a_clock(pages, lessons):
    text = pages["measured.md"]
    for lesson in lessons.values():
        for name, cell in lesson.cells.items():
            here = f"[`{name}`](notebooks/{lesson.page.name}.ipynb" in text
            assert here == ("nbval-ignore-output" in cell.metadata.get("tags", ())), name
    assert "AMD EPYC" in text
    assert "8.6 (8.1 to 10.0)" in text  # of bench/README.md
    recorded = (ROOT / "bench" / "gpu_record.json").exists()
    assert ("No run on a GPU has been recorded." in text) == (not recorded)


class TestVerified:
    def test_every_page_has_an_entry_with_the_versions_of_the_locks(self):
        entries = verified.read()
        built = [verified.key(page) for page in find_pages(ROOT) if page.target.exists()]
        missing = [name for name in built if name not in entries]
        assert not missing, "python -m tools.check_notebooks --record writes what is missing"
        locked = dict(
            re.findall(
                r"^([\w-]+)==(\S+)",
                "".join((ROOT / f"{name}.lock").read_text() for name in ("relay", "requirements")),
                re.MULTILINE,
            )
        )
        for name, entry in entries.items():
            assert locked["hhb-tvm"] in entry.relay, name
            assert locked["apache-tvm"] in entry.relax, name
            assert re.fullmatch(r"3\.1[0-2]\.\d+", entry.python), name

    def test_only_pages_that_passed_are_written_down(self, tmp_path, monkeypatch):
        sources = tmp_path / "notebooks" / "src"
        sources.mkdir(parents=True)
        for name in ("01_right", "02_wrong", "03_missing", "04_badly_made"):
            (sources / f"{name}.md").write_text("# Tiny\n\n```{code-cell}\nprint(1)\n```\n")
            (page,) = find_pages(tmp_path, [name])
            build_notebooks.build(page, run=False)
        (sources / "04_badly_made.md").write_text("# Changed since\n")
        ran = {
            ("notebooks/01_right.ipynb", 0): "passed",
            ("notebooks/02_wrong.ipynb", 0): "1 is not 2",
            ("notebooks/04_badly_made.ipynb", 0): "passed",
        }
        monkeypatch.setattr(check_notebooks, "run_nbval", lambda *_, **__: ran)
        monkeypatch.setattr(check_notebooks.page_checks, "problems", lambda *_: [])
        monkeypatch.setattr(verified, "_versions", lambda: ("0.16", "0.27"))
        assert check_notebooks.main(["--record"], tmp_path) == 1
        assert [*verified.read(tmp_path)] == ["notebooks/01_right"]

    def test_a_page_whose_code_has_changed_says_so(self, monkeypatch):
        page = find_pages(ROOT)[0]
        entry = verified.Entry("2026-01-31", "3.11.7", "0.16", "0.27", verified.code(page))
        monkeypatch.setattr(verified, "read", lambda _: {verified.key(page): entry})
        assert "| 31 January 2026 | Python 3.11.7<br>" in book_pages._verified(ROOT)
        monkeypatch.setattr(verified, "code", lambda _: "another")
        assert "31 January 2026, its code has changed since" in book_pages._verified(ROOT)
