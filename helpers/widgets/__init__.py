"""What a learner moves and presses: thin ipywidgets over functions that compute.

Each explorer is one function called in a notebook. It shows its widgets where there is a kernel,
and a static figure everywhere else.
"""
