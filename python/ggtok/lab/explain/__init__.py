"""Traces of the algorithms, and their views: tables, a walk through the steps, a page."""
