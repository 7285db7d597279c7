"""Checks that a learner runs in a lab."""
