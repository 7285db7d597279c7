"""nbgrader's configuration for the masters in ``solutions/``; see docs/grading.md.

A course loads it from its own ``nbgrader_config.py``:

    load_subconfig("/path/to/workbook/tools/nbgrader_config.py")
"""

import sys
from pathlib import Path

from nbgrader.converters import GenerateAssignment

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT))  # for tools and helpers

from tools.clear_answers import release_steps  # noqa: E402

c = get_config()  # type: ignore[name-defined]  # noqa: F821

c.CourseDirectory.source_directory = str(ROOT / "solutions")
# nbgrader copies whatever lies beside a master. These two hold the answers and the hidden checks.
c.CourseDirectory.ignore = [
    ".ipynb_checkpoints", "*.pyc", "__pycache__", "feedback", "lab.md", "checks.py",
]  # fmt: skip
c.GenerateAssignment.preprocessors = release_steps(GenerateAssignment().preprocessors)
# A lab builds models: more than nbgrader's 30 s a cell.
c.ExecutePreprocessor.timeout = 300
