"""What JupyterLab writes into a notebook when a learner saves it.

A view of a widget is a reference to an object in a kernel. When the notebook is opened again that
kernel is gone, and JupyterLab would show an error in place of the static form beside the view.
"""

from __future__ import annotations

from typing import Any

WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"


def drop_views(model: dict[str, Any], **_: Any) -> None:
    """Leave out of what is saved each view of a widget that has a static form beside it.

    A ``pre_save_hook`` of Jupyter's: ``model`` is changed in place, what is open stays as it is.
    """
    if model.get("type") != "notebook" or not isinstance(model.get("content"), dict):
        return
    for cell in model["content"].get("cells", []):
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            if WIDGET_VIEW in data and len(data) > 1:
                del data[WIDGET_VIEW]
