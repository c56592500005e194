"""What the documentation renders from the sources: parsers, settings, tables, docstrings, imports.

All modules but ``extension`` and ``references`` are plain functions that return reStructuredText
(or SVG), so that tests and other tools can use them without Sphinx.
"""
