"""The given cells of a lab can be run again in any order: no question takes a name from another."""

import ast
import symtable
from collections.abc import Iterator

import pytest

from helpers.kernels import ROOT
from tools.pages import find_pages, read_page

LABS = [page for page in find_pages(ROOT) if page.kind == "solution"]
_OWN_SCOPE = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


class Cell:
    """A code cell: what it binds outside of functions, and what it reads of other cells.

    ``question`` is the one whose check is the next.
    """

    def __init__(self, cell, question):
        role = cell.metadata.get("nbgrader", {})
        self.id, self.question = cell.id, question
        self.answer, self.check = role.get("solution", False), role.get("locked", False)
        tree = ast.parse(cell.source)
        self.binds = {}  # name -> the texts of the statements that bind it
        self.functions = {}  # name -> what it reads of other cells
        for statement in tree.body:
            for name in bound(statement):
                self.binds.setdefault(name, set()).add(ast.unparse(statement))
            if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
                self.functions[statement.name] = read(ast.unparse(statement))
        self.reads = read(cell.source)


def bound(node: ast.AST) -> Iterator[str]:
    """The names that a statement binds where it stands."""
    if isinstance(node, _OWN_SCOPE):
        return
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        yield node.name
        return
    if isinstance(node, ast.alias):
        yield (node.asname or node.name).split(".")[0]
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.id
    for child in ast.iter_child_nodes(node):
        yield from bound(child)


def read(source: str) -> set[str]:
    """The names that a text, or a function in it, takes from the notebook."""

    def walk(table: symtable.SymbolTable) -> Iterator[str]:
        for symbol in table.get_symbols():
            if symbol.is_referenced() and (table.get_type() == "module" or symbol.is_global()):
                yield symbol.get_name()
        for inner in table.get_children():
            yield from walk(inner)

    return set(walk(symtable.symtable(source, "<cell>", "exec")))


def cells_of(page) -> list[Cell]:
    found, question = [], "the end"
    for cell in reversed(read_page(page).cells):
        if cell.cell_type == "code":
            if cell.metadata.get("nbgrader", {}).get("locked"):
                question = cell.id.removesuffix("-check")
            found.append(Cell(cell, question))
    return found[::-1]


def taken(cells: list[Cell]) -> Iterator[tuple[str, str, str]]:
    """(check, name, cell) where another question's cell binds a name that the check reads.

    A check that binds the name itself does not mind, and equal statements give the same value.
    """
    given = [cell for cell in cells if not cell.answer]
    for check in (cell for cell in cells if cell.check):
        seen, waiting = set(check.binds), sorted(check.reads - check.binds.keys())
        while waiting:
            name = waiting.pop()
            if name in seen:
                continue
            seen.add(name)
            waiting += [n for cell in cells for n in cell.functions.get(name, ())]
            binding = [cell for cell in given if name in cell.binds]
            if len(set().union(*(cell.binds[name] for cell in binding))) > 1:
                for cell in binding:
                    if cell.question != binding[0].question:
                        yield check.id, name, cell.id


@pytest.mark.parametrize("page", LABS, ids=lambda page: page.name[:2])
def test_a_check_reads_no_name_that_two_questions_give_a_value(page):
    assert sorted(taken(cells_of(page))) == []
