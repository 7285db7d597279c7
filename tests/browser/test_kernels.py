"""What a reader does with kernels: restart one half-way, have two TVMs open side by side."""

import nbformat
from nbformat.v4 import new_code_cell, new_notebook

from tools.pages import METADATA


def test_a_restart_in_the_middle_and_on_from_there(window):
    notebook = window.open("notebooks/01_relay_ir.ipynb")
    code = [cell for cell in notebook.source.cells if cell.cell_type == "code"]
    middle = notebook.cell(code[len(code) // 2].id)
    middle.locator(".jp-InputArea-prompt").click()
    window.menu("Run", "Run All Above Selected Cell")
    window.page.wait_for_timeout(500)
    notebook.wait_idle()
    notebook.restart()
    notebook.run_all()
    assert not [*notebook.faults(), *window.wrong]
    ran = [cell for cell in notebook.save().cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in ran] == list(range(1, len(ran) + 1))


def test_what_is_to_be_predicted_is_in_sight_when_its_cell_has_run(window, pictures):
    notebook = window.open("notebooks/00_start_here.ipynb")
    notebook.show_whole()
    folded = [cell.id for cell in notebook.source.cells if "jupyter" in cell.metadata]
    seen = [notebook.cell(name).locator(".jp-OutputArea-output").first for name in folded]
    assert folded
    assert not any(output.is_visible() for output in seen)
    first_lines = notebook.panel.locator(".jp-OutputPlaceholder .jp-PlaceholderText")
    sizes = first_lines.evaluate_all("all => all.map(line => getComputedStyle(line).fontSize)")
    assert sizes == ["0px"] * len(folded)
    notebook.picture(pictures / "folded.png")
    notebook.run_all()
    assert all(output.is_visible() for output in seen)


def test_two_notebooks_with_two_tvms_side_by_side(window, server):
    for kind in ("relay", "relax"):
        ask = [
            new_code_cell(
                f'from helpers import use_tvm\n\nuse_tvm("{kind}", quiet=True)', id="use"
            ),
            new_code_cell("import tvm\n\nprint(tvm.__version__)", id="version"),
            new_code_cell('print(hasattr(tvm, "relay"), hasattr(tvm, "relax"))', id="parts"),
        ]
        folder = server.folder / "two"
        folder.mkdir(exist_ok=True)
        nbformat.write(new_notebook(cells=ask, metadata=METADATA), folder / f"{kind}.ipynb")
    relay = window.open("two/relay.ipynb")
    window.page.locator(".jp-DirListing-item", has_text="relax.ipynb").dblclick()
    relax = window.opened("two/relax.ipynb")
    relax.run_all()
    window.page.get_by_role("tab", name="relay.ipynb").click()
    relay.run_all()
    window.page.get_by_role("tab", name="relax.ipynb").click()
    relax.run_all()
    assert printed(relax) == ["0.27.0.post1", "False True"]
    assert not relax.faults()
    window.page.get_by_role("tab", name="relay.ipynb").click()
    assert printed(relay) == ["0.16.dev0", "True False"]
    assert not [*relay.faults(), *window.wrong]


def printed(notebook):
    return [
        notebook.cell(name).locator(".jp-OutputArea-output").inner_text().strip()
        for name in ("version", "parts")
    ]
