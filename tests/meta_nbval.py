"""Change a stored output in every strictly compared cell of the workbook: nbval must fail there.

Not collected by default, for it runs every page again: ``pytest tests/meta_nbval.py``. The plugin
``tools.nbval_plugin`` proves the same in each normal run with nbval's comparison alone; this is
the proof by nbval as a whole: a cell fails if and only if its stored output was changed.
"""

import nbformat

from helpers.kernels import ROOT
from tools.check_notebooks import changed_copy, run_nbval
from tools.pages import as_text, find_pages


def test_nbval_fails_exactly_where_a_stored_output_was_changed(tmp_path):
    copies, changed = [], set()
    for page in find_pages(ROOT):
        copy, cells = changed_copy(nbformat.read(page.target, 4))
        name = page.target.relative_to(ROOT)
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(as_text(copy))
        copies.append(tmp_path / name)
        changed |= {(name.as_posix(), number) for number in cells}
    ran = run_nbval(copies, tmp_path, quiet=True)
    assert {cell for cell, outcome in ran.items() if outcome != "passed"} == changed
