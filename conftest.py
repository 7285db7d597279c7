"""Lets ``pytest --nbval NOTEBOOK`` run as the project's own checks do."""

pytest_plugins = ["tools.nbval_plugin"]
