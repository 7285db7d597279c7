"""Slides of the lessons: ``python -m tools.slides``."""
