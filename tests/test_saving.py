"""A saved notebook opens without a kernel: no view of a widget hides its static form."""

import nbformat
from jupyter_server.services.contents.largefilemanager import LargeFileManager
from nbformat.v4 import new_code_cell, new_notebook, new_output
from traitlets.config import PyFileConfigLoader

from helpers.kernels import ROOT
from helpers.saving import WIDGET_VIEW

VIEW = {WIDGET_VIEW: {"model_id": "1", "version_major": 2, "version_minor": 0}}


def saved(folder, *data):
    """The data of each output after the server of this workbook has saved a notebook."""
    settings = ROOT / "setup" / "jupyter" / "jupyter_server_config.py"
    config = PyFileConfigLoader(settings.name, settings.parent).load_config()
    manager = LargeFileManager(root_dir=str(folder), config=config)
    outputs = [new_output("display_data", data=dict(one)) for one in data]
    outputs.append(new_output("stream", text="printed"))
    notebook = new_notebook(cells=[new_code_cell("x", outputs=outputs)])
    manager.save({"type": "notebook", "format": "json", "content": notebook}, "page.ipynb")
    manager.save({"type": "file", "format": "text", "content": "words"}, "notes.txt")
    assert (folder / "notes.txt").read_text() == "words"
    (cell,) = nbformat.read(folder / "page.ipynb", 4).cells
    *shown, stream = cell.outputs
    assert stream.text == "printed"
    return [dict(output.data) for output in shown]


def test_a_view_is_not_saved_beside_its_static_form(tmp_path):
    static = {"text/html": "<p>static</p>", "text/plain": "static"}
    assert saved(tmp_path, VIEW | static, static) == [static, static]


def test_a_view_without_a_static_form_stays(tmp_path):
    assert saved(tmp_path, VIEW) == [VIEW]
