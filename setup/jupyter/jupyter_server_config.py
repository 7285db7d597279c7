"""Settings of the server that JSON cannot hold."""

import warnings

from helpers import saving
from helpers.kernels import ROOT

c = get_config()  # type: ignore[name-defined]  # noqa: F821 - Jupyter defines it
c.ContentsManager.pre_save_hook = saving.drop_views
# Jupyter reads this file more than once, and warns that it gets the same function again.
warnings.filterwarnings("ignore", "Overriding existing pre_save_hook")
c.LabApp.custom_css = True
c.ServerApp.tornado_settings = {"static_custom_path": [str(ROOT / "setup/jupyter/custom")]}
