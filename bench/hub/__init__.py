"""A class on a real JupyterHub: how long its students wait, and what memory they take."""
