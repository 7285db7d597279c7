"""Where the workbook is installed, and where a learner's own files are: mostly one folder.

On a server many learners share one installation that none of them can write. Each has a folder with
copies of the pages, and the environment variable names it: all that a learner makes stays there.
"""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VARIABLE = "RELAY_WORKBOOK_FOLDER"
FOLDER = Path(os.environ.get(VARIABLE) or ROOT)
